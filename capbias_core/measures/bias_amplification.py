"""BA, DBA and Multi: values beside words and objects, human captions against the model's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, hstack

from capbias_core.aggregate import DIFFERENCE, MISTAKES, NOTHING_MORE, Counts, Metric, Needs, by_name
from capbias_core.attributes import need_words
from capbias_core.data import Data
from capbias_core.errors import NotMeasurable
from capbias_core.measures.base import Group, Measure, Outcome, run_available
from capbias_core.measures.caption_side import (
    LEAST,
    OF_CAPTIONS,
    CaptionSide,
    both_sides,
    comparing,
    cooccurrence,
    least_captions,
    objects_of,
    of_no_value,
)
from capbias_core.metrics.cooccurrence import (
    Table,
    goes_together,
    mean_change,
    object_to_value,
    preferred,
    signed_change,
    value_to_object,
    word_to_value,
)
from capbias_core.metrics.share import share
from capbias_core.prepare.split import FOLDS, child_seed, random_order
from capbias_core.prepare.tasks import content_words, object_names
from capbias_core.types import A_TO_T, T_TO_A, Progress, left_out_lines

HALVINGS = 10  # of the images, for signs of other images
OTHER_SIGNS = f"signs of other images, {HALVINGS} random halvings"
FEWEST = 5  # human captions with a combination of objects: of rarer ones, draws of a bootstrap often have none
_LIC = "Hirota et al., CVPR 2022"
_DIRECTIONAL = f"Wang & Russakovsky, ICML 2021; {_LIC}, appendix A.2"

# Metric -> human counts to (K, L) signs, whose mean over pairs times the changes is the value, and whether a change is
# of p(word | value), else of p(value | word). BA is a mean over words, not over words and values.
SIGNS: dict[str, tuple[Callable[[Table], np.ndarray], bool]] = {
    "BA": (lambda human: preferred(human) * len(human.value), False),
    "DBA_G": (lambda human: np.where(goes_together(human), 1.0, -1.0), False),
    "DBA_O": (lambda human: np.where(goes_together(human), 1.0, -1.0), True),
}


def _metrics(name: str, title: str, source: str, explanation: str, needs: Needs, formula: Callable) -> list[Metric]:
    """A metric that adds up changes of pairs (a value and a word), each with the sign that it has on the human side;
    and the same with signs from other images."""
    return [
        Metric(
            name,
            title,
            *DIFFERENCE,
            source,
            f"{explanation} The paper's value, without an interval: signs and changes are of the same captions.",
            digits=2,
            needs=needs,
            no_interval="signs are of the captions that are measured",
            **comparing(f"{name} human", f"{name} model", formula),
        ),
        Metric(
            f"{name}_crossfit",
            f"{name}, cross-fitted signs",
            *DIFFERENCE,
            "capbias 2026, docs/statistics.md",
            f"{name} with each pair's sign taken from other images than those that its change is measured on. Its "
            "interval allows for signs that the images leave open.",
            digits=2,
            needs=needs,
            reads=(f"{name} signed",),
            of=lambda columns, pairs: signed_change(*np.split(columns, 4, axis=-1)) / pairs,
            fix=lambda counts, k, direction: {"pairs": counts.constants[f"{name} pairs"]},
            interval="free",
        ),
    ]


METRICS = by_name(
    *_metrics(
        "BA",
        "BA, bias amplification of word pairs",
        f"Zhao et al., EMNLP 2017; {_LIC}, Eq. 2-3",
        "How much more often than in the human captions a word occurs with the value that it is associated with there, "
        "averaged over the common words. It does not see that one value is commoner than the other.",
        Needs(words="any"),
        word_to_value,
    ),
    *_metrics(
        "DBA_G",
        "DBA_G, objects to the named value",
        _DIRECTIONAL,
        "How much more than in the human captions the objects in the image occur with the value that captions name.",
        Needs(words="any", objects="required"),
        object_to_value,
    ),
    *_metrics(
        "DBA_O",
        "DBA_O, the labelled value to named objects",
        _DIRECTIONAL,
        "How much more than in the human captions the labelled value occurs with the objects that captions name.",
        NOTHING_MORE,
        value_to_object,
    ),
)


MULTI = Metric(
    "Multi",
    "Multi, change of combinations of objects",
    *MISTAKES,
    "Zhao et al., ICML 2023 (Multi->), Eq. 3-4",
    "Mean size of the change from the human captions, over values and objects or pairs of objects. It does not tell "
    f"more bias from less, and chance alone keeps it above 0. A combination counts from {FEWEST} human captions on, "
    "also where there are few: images that come twice change which count.",
    digits=2,
    **comparing("human", "model", mean_change, directed=True),
)


def count(data: Data, options: Any, progress: Progress) -> Outcome:
    """Counts of both sides on the images that both have."""
    sides = both_sides(data)[::-1]
    counts, notes, lacking = counts_of_sides(sides, data.objects)
    of_words = least_captions(sides[0])
    objects = [f"objects in {sides[0].k * of_words} human captions or more (paper: no minimum)"]
    words = [f"words with each value in {of_words} human captions or more (paper: {LEAST})"]
    least = {"BA": words if of_words != LEAST else [], "DBA_G": objects, "DBA_O": objects}
    own_columns = {}
    for name in (name for name in SIGNS if f"{name} model" in counts.columns):
        known = {"n": int(counts.columns[f"{name} model"][:, 0].sum()), "differs": least[name]}
        for metric, how in ((name, f"see {name}_crossfit"), (f"{name}_crossfit", OTHER_SIGNS)):
            own_columns[metric] = known | {"method": f"captions of the images that both sides have; {how}"}
    return Outcome(counts, notes=notes, lacking=lacking, own_columns=own_columns)


def counts_of_sides(
    sides: Sequence[CaptionSide], objects: pd.Series | None
) -> tuple[Counts, list[str], dict[str, str]]:
    """What each metric that the inputs allow reads, notes, and why others have no value. sides: the human captions and
    the model's. objects: as in `objects_of`."""
    side, ways = sides[0], {}
    if side.attribute.names_values:
        ways["BA"] = lambda: _ba(sides)
        if objects is not None:
            ways["DBA_G"] = lambda: _dba_g(sides, objects)
    ways["DBA_O"] = lambda: _dba_o(sides)
    tables, notes, lacking = run_available(ways)
    columns, constants = {}, {}
    for name, (human, model) in tables.items():
        of_metric, known = of_tables(name, side.images, human, model, side.k)
        columns, constants = columns | of_metric, constants | known
    return Counts.by_image(side.images, side.y, columns, constants=constants), notes, lacking


def of_tables(
    name: str, images: Sequence[str], human: csr_array, model: csr_array, k: int
) -> tuple[dict[str, csr_array], dict[str, float]]:
    """The columns and constants that a metric and its cross-fitted one read. human, model: (n_images, ...) tables."""
    signed, pairs, off = cross_fitted(images, human, model, k, *SIGNS[name])
    columns = {f"{name} human": human, f"{name} model": model, f"{name} signed": signed}
    return columns, {f"{name} pairs": pairs, f"{name}_crossfit unsure": METRICS[name].scale * off}


def cross_fitted(
    images: Sequence[str],
    human: csr_array,
    model: csr_array,
    k: int,
    sign: Callable[[Table], np.ndarray],
    given_value: bool,
) -> tuple[csr_array, int, float]:
    """(n_images, 4 * W) columns that `signed_change` takes: the model's captions with signs, those of each condition,
    and the same of the human ones; over how many pairs the value is a mean; and how far it may be off, unscaled.

    BA and DBA add up changes of pairs (a value and a word), each with the sign of the pair on the human side. A sign
    from the same captions as the change follows the noise of that change, which lowers the value. So the images are
    halved at random, several times, and the changes of each half count with the signs of the other (cross-fitting):

        value = mean over pairs of sum over images i of s_i * m_i / sum of M - the same of the humans

    m_i, M: the captions of an image with the pair, and those with what it is given; s_i: the pair's sign in the halves
    without image i, on average. Where halves disagree on a sign, the most that this can move the value widens the
    interval: the sum over pairs of how far its sign can move, times its change, times the share that disagrees.

    human, model: as a `Table` has them. sign: human counts to (K, L) signs. given_value: whether a change is of
    p(word | value) (W = K), else of p(value | word) (W = L).
    """
    n_images, n_tasks = human.shape[0], (human.shape[1] - 1 - k) // (1 + k)
    conditions = slice(1, 1 + k) if given_value else slice(1 + k, 1 + k + n_tasks)
    width = k if given_value else n_tasks
    of_pair = np.repeat(np.arange(k), n_tasks) if given_value else np.tile(np.arange(n_tasks), k)
    sides = [csr_array(side, dtype=float) for side in (model, human)]
    pairs = [side[:, 1 + k + n_tasks :] for side in sides]
    signed, signs = [csr_array((n_images, width)) for _ in sides], []
    for halving in range(HALVINGS):
        first = np.zeros(n_images, dtype=bool)
        first[random_order(images, child_seed(halving, FOLDS))[: n_images // 2]] = True
        for half in (first, ~first):
            pair_signs = sign(Table.of(np.asarray(human[np.flatnonzero(~half)].sum(axis=0), dtype=float), k)).ravel()
            weights = csr_array(
                (pair_signs / HALVINGS, (np.arange(len(pair_signs)), of_pair)), shape=(len(pair_signs), width)
            )
            kept = csr_array((np.ones(half.sum()), (np.flatnonzero(half),) * 2), shape=(n_images, n_images))
            signed = [sums + kept @ (side @ weights) for sums, side in zip(signed, pairs, strict=True)]
            signs.append(pair_signs)
    given = [side[:, conditions] for side in sides]
    columns = csr_array(hstack([signed[0], given[0], signed[1], given[1]]))
    # How far the signs on which halves disagree can move the value
    of_model, of_human = (
        share(side.sum(axis=0), condition.sum(axis=0)[of_pair]) for side, condition in zip(pairs, given, strict=True)
    )
    by_half = np.array(signs)
    agreeing = (by_half == by_half.max(axis=0)).mean(axis=0)
    disagreeing = np.minimum(agreeing, 1 - agreeing)
    off = (np.nan_to_num(np.abs(of_model - of_human)) * np.ptp(by_half, axis=0) * disagreeing).mean()
    return columns, k * n_tasks, float(off)


def _ba(sides: Sequence[CaptionSide]) -> tuple[list[csr_array], str]:
    """Words of the human captions that stand often enough beside each value."""
    human, attribute = sides[0], sides[0].attribute
    least = least_captions(human)
    words = content_words(human.encoded, attribute.masked_words)
    pairs = human.values[human.only_one].T @ human.encoded.with_any([[word] for word in words])[human.only_one]
    have = [code for code, words in enumerate(attribute.value_words) if words]
    often = (pairs.toarray()[have] >= least).all(axis=0)
    words = [word for word, kept in zip(words, often, strict=True) if kept]
    if not words:
        raise NotMeasurable(
            f"No word of the human captions occurs with each value of {attribute.name} {least} times or more.",
            "Load more human captions.",
        )
    tasks = [side.encoded.with_any([[word] for word in words]) for side in sides]
    return cooccurrence(sides, tasks, np.ones(len(human.images), dtype=bool)), (
        f"{len(words)} nouns, verbs, adjectives and adverbs among the 1,000 commonest words, that occur with each "
        f"value in {least} human captions or more ({LEAST} where there are {OF_CAPTIONS:,}).{of_no_value(*sides)}"
    )


def _dba_g(sides: Sequence[CaptionSide], objects: pd.Series) -> tuple[list[csr_array], str]:
    human, images = sides[0], sides[0].images
    _, on_image, known = objects_of(images, objects)
    kept, least = _common(human, on_image[human.image[human.only_one & known[human.image]]])
    tables = cooccurrence(sides, [on_image[:, kept][side.image] for side in sides], known)
    part = "" if known.all() else f" Objects are known of {known.sum():,} of the {len(images):,} images."
    which = f"{len(kept)} objects of images with {least} human captions or more"
    return tables, f"{which}.{of_no_value(*sides)}{part}"


def _dba_o(sides: Sequence[CaptionSide]) -> tuple[list[csr_array], str]:
    human = sides[0]
    if not human.objects.sum():
        raise NotMeasurable(f"The human captions name no object such as {', '.join(list(object_names())[:3])}.")
    kept, least = _common(human, human.objects)
    tables = cooccurrence(sides, [side.objects[:, kept] for side in sides])
    return tables, f"{len(kept)} objects that {least} human captions or more name."


def _common(human: CaptionSide, objects: csr_array) -> tuple[np.ndarray, int]:
    """The columns of objects that are in enough human captions, and how many are enough: as many as BA needs of all
    values together, since the change of a rare object is large by chance and weighs as much as any other. objects: (n,
    L) booleans of the human captions that count. Raises NotMeasurable where no object is common enough."""
    least = human.k * least_captions(human)
    kept = np.flatnonzero(np.asarray(objects.sum(axis=0)).ravel() >= least)
    if not len(kept):
        raise NotMeasurable(f"No object is in {least} human captions or more.", "Load more human captions.")
    return kept, least


def count_multi(data: Data, options: Any, progress: Progress) -> Outcome:
    """Objects and pairs of objects beside values, in each direction that the inputs allow."""
    sides = both_sides(data)[::-1]
    least = max(FEWEST, least_captions(sides[0]))

    def named() -> tuple[list[csr_array], str]:
        """Labelled values, and objects that captions name."""
        combined, note = combinations([side.objects for side in sides], least)
        return cooccurrence(sides, combined), note

    def annotated_on_images() -> tuple[list[csr_array], str]:
        """Objects on images, and values that captions name."""
        need_words(data.attribute)
        _, on_image, known = objects_of(sides[0].images, data.objects)
        combined, note = combinations([on_image[side.image] for side in sides], least)
        return cooccurrence(sides, combined, known), note + of_no_value(*sides)

    tables, notes, reasons = run_available({A_TO_T: named, T_TO_A: annotated_on_images}, "Multi ")
    counts = {
        direction: Counts.by_image(sides[0].images, sides[0].y, {"human": human, "model": model})
        for direction, (human, model) in tables.items()
    }
    method = "objects and pairs of objects; captions of the images that both sides have"
    sizes = {direction: {"n": int(one.columns["model"][:, 0].sum())} for direction, one in counts.items()}
    return Outcome(counts, {"method": method}, [*notes, *left_out_lines(reasons)], own_columns=sizes)


def combinations(sides: Sequence[csr_array], least: int) -> tuple[list[csr_array], str]:
    """(n, M) 0 or 1 of each side for the objects and pairs of objects in enough human captions, and a note. sides: (n,
    L) 0 or 1 of each, people first."""
    counts = (sides[0].T @ sides[0]).toarray()
    single = np.flatnonzero(counts.diagonal() >= least)
    first, second = np.nonzero(np.triu(counts, k=1) >= least)
    if not len(single):
        raise NotMeasurable(
            f"No object occurs in {least} human captions or more.",
            "Load more human captions, or objects of these images.",
        )
    note = (
        f"{len(single)} objects and {len(first)} pairs of objects, in {least} human captions or more. Chance alone "
        "keeps Multi above 0; how far depends on the number of captions, so compare captioners on the same images only."
    )
    return [csr_array(hstack([side[:, single], side[:, first].multiply(side[:, second])])) for side in sides], note


MEASURES = (
    Measure(
        name="bias_amplification",
        title="BA and DBA",
        position=3,
        metrics=tuple(METRICS.values()),
        groups=(
            Group("ba", "BA", ("BA", "BA_crossfit")),
            Group("dba", "DBA_G and DBA_O", ("DBA_G", "DBA_G_crossfit", "DBA_O", "DBA_O_crossfit")),
        ),
        needs=Needs(references="required", objects="optional"),
        version=6,
        count=count,
    ),
    Measure(
        name="multi",
        title="Multi",
        position=6,
        metrics=(MULTI,),
        groups=(Group("multi", "Multi", ("Multi",)),),
        needs=Needs(references="required", objects="optional"),
        version=4,
        count=count_multi,
    ),
)
