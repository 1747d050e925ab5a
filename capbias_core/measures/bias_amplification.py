"""BA and DBA: counts of values beside words and objects, human captions against the model's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from capbias_core.aggregate import Estimate, comparison
from capbias_core.aggregate.cross_fitting import HALVINGS, cross_fitted
from capbias_core.errors import NotMeasurable
from capbias_core.measures.base import (
    NOTHING_MORE,
    CountMetric,
    Group,
    Job,
    Measure,
    Metric,
    Needs,
    Outcome,
    by_name,
    from_npz,
    run_available,
    to_npz,
    zero,
)
from capbias_core.measures.caption_side import (
    LEAST,
    OF_CAPTIONS,
    CaptionSide,
    both_sides,
    cooccurrence,
    least_captions,
    of_no_value,
)
from capbias_core.measures.image_objects import annotated, objects_of
from capbias_core.metrics.bias_amplification import change_of_preferred, preferred
from capbias_core.metrics.directional import goes_together, object_to_value, value_to_object
from capbias_core.metrics.evidence import Cooccurrence, CooccurrenceCounts
from capbias_core.prepare.tasks import content_words, object_names
from capbias_core.types import Attribute, left_out_lines
from capbias_core.workspace.store import RunRow, Workspace, images_in

_LIC = "Hirota et al., CVPR 2022"
_DIRECTIONAL = f"Wang & Russakovsky, ICML 2021; {_LIC}, appendix A.2"


def word_to_value(
    human: CooccurrenceCounts, model: CooccurrenceCounts, whole: tuple[CooccurrenceCounts, CooccurrenceCounts]
) -> np.ndarray:
    """BA, (...) values. whole: both sides on all images; the human one decides which pairs count."""
    return change_of_preferred(human.pair, model.pair, whole[0].pair)


@dataclass(frozen=True, kw_only=True)
class SignedMetric(CountMetric):
    """A metric that adds up changes of pairs (a value and a word), each with the sign that it has on the human side.

    sign: human counts to (K, L) signs, whose mean over pairs times the changes is the value. given_value: whether a
    change is of p(word | value), else of p(value | word).
    """

    sign: Callable[[CooccurrenceCounts], np.ndarray]
    given_value: bool

    @property
    def crossfit(self) -> Metric:
        """The same with signs from other images; its interval is the one to read."""
        return Metric(
            f"{self.name}_crossfit",
            f"{self.name}, cross-fitted signs",
            self.scale,
            self.neutral,
            self.better,
            self.range,
            "capbias 2026, docs/statistics.md",
            f"{self.name} with each pair's sign taken from other images than those that its change is measured on. Its "
            "interval allows for signs that the images leave open.",
            digits=self.digits,
            needs=self.needs,
        )


def _signed(name: str, title: str, source: str, explanation: str, needs: Needs, **formula) -> SignedMetric:
    said = f"{explanation} The paper's value, without an interval: signs and changes are of the same captions."
    return SignedMetric(name, title, 100, zero, "lower", (-100, 100), source, said, digits=2, needs=needs, **formula)


PAPERS = by_name(
    _signed(
        "BA",
        "BA, bias amplification of word pairs",
        f"Zhao et al., EMNLP 2017; {_LIC}, Eq. 2-3",
        "How much more often than in the human captions a word stands beside the value that it goes with there, "
        "averaged over the common words. It does not see that one value is commoner than the other.",
        Needs(words="any"),
        compare=word_to_value,
        sign=lambda human: preferred(human.pair) * len(human.value),  # a mean over words, not over words and values
        given_value=False,
    ),
    _signed(
        "DBA_G",
        "DBA_G, objects to the named value",
        _DIRECTIONAL,
        "How much more than in the human captions the objects on the image go with the value that captions name.",
        Needs(words="any", objects="required"),
        compare=object_to_value,
        sign=lambda human: np.where(goes_together(human), 1.0, -1.0),
        given_value=False,
    ),
    _signed(
        "DBA_O",
        "DBA_O, the labelled value to named objects",
        _DIRECTIONAL,
        "How much more than in the human captions the labelled value goes with the objects that captions name.",
        NOTHING_MORE,
        compare=value_to_object,
        sign=lambda human: np.where(goes_together(human), 1.0, -1.0),
        given_value=True,
    ),
)
METRICS = by_name(*(row for own in PAPERS.values() for row in (own, own.crossfit)))


def run(job: Job) -> Outcome:
    """Counts of both sides on the images that both have."""
    evidence, notes, lacking = _evidence(both_sides(job)[::-1], job.attribute, job.objects())
    results = []
    for name, found in cooccurrence_estimates(evidence).items():
        n = int(evidence[name.removesuffix("_crossfit")].model[:, 0].sum())
        how = f"; see {name}_crossfit" if name in PAPERS else f"; signs of other images, {HALVINGS} random halvings"
        method = f"captions of the images that both sides have; {found.interval_method}{how}"
        results.append(job.result(METRICS[name], found, n, method))
    arrays = {name: cooccurrence_bytes(own) for name, own in evidence.items()}
    return Outcome(results, arrays, tuple(notes), lacking)


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The estimates of a finished run again from its counts, by metric and direction."""
    names = workspace.arrays(run.run_id)
    evidence = {name: cooccurrence_from(workspace.array(run.run_id, name)) for name in names}
    return {(name, ""): own for name, own in cooccurrence_estimates(evidence).items()}


def evidence_of(
    human: pd.DataFrame, model: pd.DataFrame, labels: pd.Series, attribute: Attribute, objects: pd.Series | None
) -> tuple[dict[str, Cooccurrence], list[str]]:
    """The evidence of each metric that these inputs allow, by its name, and notes.

    human, model: captions of labelled images, image_id and caption; images on one side only are left out. labels:
    value by image id. objects: text such as `cat|dog` by image id, or None.
    """
    images = sorted(images_in(human) & images_in(model))
    sides = [CaptionSide(frame, images, attribute, labels) for frame in (human, model)]
    evidence, notes, lacking = _evidence(sides, attribute, objects)
    return evidence, [*notes, *left_out_lines(lacking)]


def _evidence(
    sides: Sequence[CaptionSide], attribute: Attribute, objects: pd.Series | None
) -> tuple[dict[str, Cooccurrence], list[str], dict[str, str]]:
    known = {
        "BA": lambda: _ba(sides, attribute),
        "DBA_G": lambda: _dba_g(sides, objects),
        "DBA_O": lambda: _dba_o(sides),
    }
    lacking = set() if attribute.names_values else {"BA", "DBA_G"}
    lacking |= {"DBA_G"} if objects is None else set()
    return run_available({name: count for name, count in known.items() if name not in lacking})


def _ba(sides: Sequence[CaptionSide], attribute: Attribute) -> tuple[Cooccurrence, str]:
    words, least = _words(sides[0], attribute)
    found = cooccurrence(sides, words, lambda side: (side.values, side.encoded.with_words(words), side.only_one))
    return found, (
        f"{len(words)} nouns, verbs, adjectives and adverbs among the 1,000 commonest words, that stand beside each "
        f"value in {least} human captions or more ({LEAST} where there are {OF_CAPTIONS:,}).{of_no_value(*sides)}"
    )


def _dba_g(sides: Sequence[CaptionSide], objects: pd.Series) -> tuple[Cooccurrence, str]:
    human, images = sides[0], sides[0].images
    names, on_image = objects_of(images, objects)
    known = annotated(images, objects)
    counted = human.only_one & known[human.image]
    kept, least = _common(human, on_image[human.image[counted]])
    names, on_image = [names[column] for column in kept], on_image[:, kept]
    found = cooccurrence(
        sides, names, lambda side: (side.values, on_image[side.image], side.only_one & known[side.image])
    )
    part = "" if known.all() else f" Objects are known of {known.sum():,} of the {len(images):,} images."
    which = f"{len(names)} objects of images with {least} human captions or more"
    return found, f"{which}.{of_no_value(*sides)}{part}"


def _dba_o(sides: Sequence[CaptionSide]) -> tuple[Cooccurrence, str]:
    human, table = sides[0], list(object_names())
    if not human.objects.sum():
        raise NotMeasurable(f"The human captions name no object such as {', '.join(table[:3])}.")
    kept, least = _common(human, human.objects)
    names = [table[column] for column in kept]
    found = cooccurrence(sides, names, lambda side: (side.labelled, side.objects[:, kept], slice(None)))
    return found, f"{len(names)} objects that {least} human captions or more name."


def _common(human: CaptionSide, objects: csr_array) -> tuple[np.ndarray, int]:
    """The columns of objects that are in enough human captions, and how many are enough.

    objects: (n, L) booleans of the human captions that count. Enough are as many as BA needs of all values together.
    The change of a rare object is large by chance and weighs as much as any other. Raises NotMeasurable where no object
    is common enough.
    """
    least = human.k * least_captions(human)
    kept = np.flatnonzero(np.asarray(objects.sum(axis=0)).ravel() >= least)
    if not len(kept):
        raise NotMeasurable(f"No object is in {least} human captions or more.", "Load more human captions.")
    return kept, least


def _words(human: CaptionSide, attribute: Attribute) -> tuple[list[str], int]:
    """Task words of the human captions, and how often each must stand beside each value."""
    least = least_captions(human)
    words = content_words(human.encoded, attribute.masked_words)
    pairs = human.values[human.only_one].T @ human.encoded.with_words(words)[human.only_one]
    have = [place for place, words in enumerate(attribute.value_words) if words]
    often = (pairs.toarray()[have] >= least).all(axis=0)
    words = [word for word, kept in zip(words, often, strict=True) if kept]
    if not words:
        raise NotMeasurable(
            f"No word of the human captions stands beside each value of {attribute.name} {least} times or more.",
            "Load more human captions.",
        )
    return words, least


def cooccurrence_estimates(evidence: dict[str, Cooccurrence]) -> dict[str, Estimate]:
    """The estimates of the paper's value and of the cross-fitted one of each evidence, by the name of the metric."""
    found = {}
    for name, own in evidence.items():
        row = PAPERS[name]
        found[name] = replace(comparison(row.compare, own, row.scale), signs_chosen=True)
        found[f"{name}_crossfit"] = cross_fitted(own, row.sign, row.given_value, row.scale)
    return found


def cooccurrence_bytes(evidence: Cooccurrence) -> bytes:
    """Evidence as bytes; `cooccurrence_from` reads them back."""
    return to_npz([evidence.n_values, evidence.tasks, evidence.images], human=evidence.human, model=evidence.model)


def cooccurrence_from(data: bytes) -> Cooccurrence:
    """The evidence in bytes of `cooccurrence_bytes`."""
    (n_values, tasks, images), sides = from_npz(data)
    return Cooccurrence(tuple(images), n_values, tuple(tasks), **sides)


MEASURE = Measure(
    name="bias_amplification",
    title="BA and DBA",
    place=3,
    metrics=tuple(METRICS.values()),
    groups=(
        Group("ba", "BA", ("BA", "BA_crossfit")),
        Group("dba", "DBA_G and DBA_O", ("DBA_G", "DBA_G_crossfit", "DBA_O", "DBA_O_crossfit")),
    ),
    needs=Needs(references="required", objects="optional"),
    version=3,
    run=run,
    estimates=estimates,
)
