"""Values and objects in plain texts, without images or a workspace (Sabir and Padró, 2023, "Gender Bias in Twitter").

Objects are what a text names: COCO's categories, and the words that were given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from capbias_core.attributes import suggest_mapping
from capbias_core.errors import CapbiasError
from capbias_core.language.files import find_model
from capbias_core.measures import gender_score
from capbias_core.measures.base import Progress
from capbias_core.measures.caption_variants import texts_of
from capbias_core.measures.gender_score_common import (
    CAPTION,
    CONFIDENCE,
    Gendered,
    Label,
    Sums,
    gendered,
    method,
    object_rows,
    set_rows,
)
from capbias_core.measures.object_cooccurrence import cooccurrence
from capbias_core.measures.object_distance import distances
from capbias_core.metrics import METRICS
from capbias_core.prepare.variants import FORMS_METHOD, WORD
from capbias_core.types import RESULT_COLUMNS, Attribute
from capbias_core.workspace.models import KINDS

# Families of runs that need neither images nor human captions.
OF_TEXTS = ("object_cooccurrence", "object_distance", "gender_score")


@dataclass(frozen=True)
class TextRows:
    """rows: one a metric and value; by_object: one a metric, value and object (its name is the condition). Both in
    RESULT_COLUMNS. note: how many texts count."""

    rows: pd.DataFrame
    by_object: pd.DataFrame
    note: str


def text_results(
    texts: Sequence[str],
    name: str,
    attribute: Attribute,
    metrics: Sequence[str],
    options: dict,
    labels: Sequence[str] | None = None,
    progress: Progress = lambda share, text: None,
) -> TextRows:
    """The metrics of plain texts. Intervals are a bootstrap over texts.

    name: what the rows call the texts. options: those of the families of runs, and `lead`, such as `a {word} says:`,
    with which a text that names no value counts too. labels: who wrote each text, or what it is about; they then count
    in place of the value that a text names. Raises CapbiasError where a metric needs images, or no text counts.
    """
    wanted = dict.fromkeys(METRICS[metric].family for metric in metrics)
    for family in wanted:
        if family not in OF_TEXTS:
            raise CapbiasError(
                f"the metric {next(own for own in metrics if METRICS[own].family == family)} of plain texts",
                f"one of: {', '.join(own for own in METRICS if METRICS[own].family in OF_TEXTS)}",
                "The others need images, or human captions of the same images: use score.",
            )
    every = _read(texts, attribute, options, labels)
    data = every.with_objects()
    found = [part for family in wanted for part in _measured(family, data, attribute, options, progress)]
    shared = attribute.name, name
    labelled = [(sums, Label(*shared, encoder, "", how)) for sums, encoder, how in found]
    rows = [row.row() for sums, label in labelled for row in set_rows(sums, label)]
    by_object = pd.concat([object_rows(sums, label) for sums, label in labelled], ignore_index=True)
    frame = pd.DataFrame(rows, columns=list(RESULT_COLUMNS))
    kept = [own[own["metric"].isin(metrics)] for own in (frame, by_object)]
    return TextRows(*kept, _note(len(texts), every, data, options, labels))


def _read(texts: Sequence[str], attribute: Attribute, options: dict, labels: Sequence[str] | None) -> Gendered:
    """Texts with the value that counts and their objects; with a lead or labels also those that name no value."""
    frame = pd.DataFrame({"image_id": [str(place) for place in range(len(texts))], "caption": list(texts)})
    own = options | {"objects_from": CAPTION}
    if labels is None and not options.get("lead"):
        return gendered(frame, attribute, None, own)
    lead = options.get("lead") or ""
    if lead and WORD not in lead:
        raise CapbiasError(f"the lead {lead!r}", f"a text with {WORD} in it, such as 'a {WORD} says:'", "Add it.")
    return _every(frame, attribute, own, labels)


def _every(frame: pd.DataFrame, attribute: Attribute, options: dict, labels: Sequence[str] | None) -> Gendered:
    every = gendered(frame, attribute, None, options, keep_all=True)
    if labels is None:
        return every
    place = {value: number for number, value in enumerate(attribute.values)}
    meant = suggest_mapping(attribute, set(labels))
    value = np.array([place.get(meant[label], -1) for label in labels])
    if (value < 0).all():
        raise CapbiasError(
            f"labels such as {labels[0]!r}, none of which is a value of {attribute.name}",
            f"one of: {', '.join(attribute.values)}",
            "Check the column of labels.",
        )
    return replace(every, value=value)


def _measured(
    family: str, data: Gendered, attribute: Attribute, options: dict, progress: Progress
) -> list[tuple[Sums, str, str]]:
    """(sums, encoder, method) of everything that a family gives."""
    if family == "object_cooccurrence":
        return [(cooccurrence(data, attribute), "", _method(data))]
    lead = options.get("lead") or ""
    if not lead and (data.named < 0).any():
        data = data.having(data.named >= 0)
    texts = texts_of(data, attribute, (), lead)
    kinds = KINDS if family == "gender_score" else ("sentence_encoder",)
    kinds = [kind for kind in kinds if kind != "masked_model" or options.get(kind)]
    files = {kind: find_model(options.get(kind) or KINDS[kind][1], KINDS[kind][0]) for kind in kinds}
    how = _method(data, f"; {FORMS_METHOD}" + (f"; before texts that name none: {lead}" if lead else ""))
    if family == "object_distance":
        path = files["sentence_encoder"].path
        return [(distances(data, texts, path, attribute, progress), files["sentence_encoder"].name, how)]
    how += f"; mean token probability; confidence {options.get('confidence', CONFIDENCE):g} in objects"
    models = gender_score.load_models({kind: own.path for kind, own in files.items()})
    found = gender_score.scored(data, texts, models, attribute, progress)
    named = {kind: {"name": own.name} for kind, own in files.items()}
    return [(sums, gender_score.encoder_of(name, named), how) for name, sums in found.items()]


def _method(data: Gendered, further: str = "") -> str:
    which = "texts that name one value" if (data.named == data.value).all() and (data.named >= 0).all() else "texts"
    return method(data, further, which).replace("caption", "text").replace("image bootstrap", "bootstrap over texts")


def _note(n: int, every: Gendered, data: Gendered, options: dict, labels) -> str:
    if labels is not None or options.get("lead"):
        return f"{len(data.captions):,} of {n:,} texts name an object; {(data.value >= 0).sum():,} have a value."
    return (
        f"{len(data.captions):,} of {n:,} texts name one value and an object; {every.others:,} name no or several "
        "values (--lead lets them count), and the others no object (--object-words names more)."
    )
