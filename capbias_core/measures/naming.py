"""Which values captions name: ratio, error, the same by group, and beside the human captions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from capbias_core.aggregate import FEWEST, LOWER_SHARE, MISTAKES, QUOTIENT, Counts, Metric, Needs, with_gaps
from capbias_core.aggregate.resampling import wilson
from capbias_core.attributes import need_words
from capbias_core.data import Data
from capbias_core.measures.base import Group, Measure, Outcome, group_of, sizes
from capbias_core.measures.caption_side import both_sides, names_in, of_no_value
from capbias_core.metrics.captions import named_alone, ratio_of, wrong_names
from capbias_core.types import Progress

# An error of captions that name nobody is 0: surely (95%) this share or more must name exactly one value. In 18
# real sets 23% or more do, those of masked people included.
LEAST_NAMED = 0.05
PAPER = "Sabir and Padró, Findings of EMNLP 2023"
_BURNS = "Burns et al., ECCV 2018"
_SOURCE = f"{_BURNS}; Hirota et al., CVPR 2022, Table 1"

METRICS = (
    Metric(
        "ratio",
        "ratio of captions naming each value",
        *QUOTIENT,
        _SOURCE,
        "Captions that name only the second value (men, for gender) for each that names only the first. The labelled "
        "images need not be balanced.",
        of_labels=True,
        needs=Needs(words="any", values=2),
        reads=("second", "first"),
        of=ratio_of,
    ),
    *with_gaps(
        Metric(
            "error",
            "error, wrong value named",
            *MISTAKES,
            _SOURCE,
            "Captions whose only named value is not the labelled one, of all captions; also by label.",
            needs=Needs(words="any"),
            reads=("misnamed", "captions"),
        ),
        source=_SOURCE,
    ),
)
BY_GROUP = with_gaps(
    Metric(
        "unnamed",
        "no value named, by group",
        *LOWER_SHARE,
        _BURNS,
        "Captions that name no value of the attribute, such as those that say person, of all captions. To name "
        "none is not wrong: a gap says that it happens to one group more often than to another.",
        reads=("unnamed", "captions"),
    ),
    source=_BURNS,
)
RATIO_TO_HUMAN = Metric(
    "naming_ratio",
    "captions naming a value, over the human ones",
    *QUOTIENT,
    f"{PAPER}, Table 3",
    "Captions that name the value, for each human caption of the same images that does. The paper calls it leakage; "
    "here leakage is an attacker's accuracy.",
    reads=("model", "human"),
    by_value=True,
    no_interval=lambda counts: f"fewer than {FEWEST} images" if len(counts.images) < FEWEST else "",
)


def ratio_error(data: Data, options: Any, progress: Progress) -> Outcome:
    """Ratio and error of the captions of labelled images."""
    counts, lacking = naming_counts(data, METRICS, sort=False)
    notes = [] if lacking else [f"Labels: {sizes(counts, data.attribute).removesuffix(' captions')}."]
    if not lacking and "first" in counts.columns and not counts.size("first"):
        notes.append(f"No caption names only {data.attribute.values[0]}, so ratio is not defined.")
    return Outcome(counts, {"method": "captions by the values that their words name"}, notes, lacking)


def named_values(data: Data, options: Any, progress: Progress) -> Outcome:
    """Captions that name no value, by group."""
    counts, lacking = naming_counts(data, BY_GROUP)
    notes = [f"Labels: {sizes(counts, data.attribute).removesuffix(' captions')}."]
    return Outcome(counts, {"method": "values that the words of captions name"}, notes, lacking)


def naming_counts(data: Data, metrics: Sequence[Metric], sort: bool = True) -> tuple[Counts, dict[str, str]]:
    """Captions that name a wrong value, or none; of two values also those that name only the first or the second. And
    why metrics have no value, if hardly any caption names exactly one. Raises NotMeasurable if no value has words."""
    need_words(data.attribute)
    names = names_in(data.tokens(data.frame), data.attribute)
    columns = {"misnamed": wrong_names(names, data.codes(data.frame["image_id"])), "unnamed": ~names.any(axis=1)}
    if names.shape[1] == 2:
        columns["first"], columns["second"] = named_alone(names).T
    counts = Counts.of_captions(data.frame["image_id"], data.codes, columns, sort)
    one = int((names.sum(axis=1) == 1).sum())
    if one and (wilson(one / len(names), len(names))[0] or 0) >= LEAST_NAMED:
        return counts, {}
    reason = f"no caption names a value of {data.attribute.name}."
    if counts.size("unnamed") < counts.size():
        reason = f"{one:,} of {len(names):,} captions name exactly one value of {data.attribute.name}, too few to say."
    lost = [metric.name for metric in metrics if metric.reads[0] in counts.columns.keys() - {"unnamed"}]
    return counts.reading(("unnamed", "captions")), dict.fromkeys(lost, reason)


def naming_ratio(data: Data, options: Any, progress: Progress) -> Outcome:
    """Shares of each image's captions that name each value, on the images that both sides have."""
    need_words(data.attribute)
    sides = both_sides(data)
    images, columns = sides[0].images, {}
    for name, side in zip(("model", "human"), sides, strict=True):  # (n_images, K): shares of an image's captions
        row, value = np.nonzero((side.values.toarray() > 0) & side.only_one[:, None])
        of_image = np.bincount(side.image, minlength=len(images))[side.image]
        columns[name] = csr_array((1 / of_image[row], (side.image[row], value)), shape=(len(images), side.k))
    counts = Counts.by_image(images, sides[0].y, columns)
    method = "captions that name the value and no other, an image's captions together counting once"
    notes = [*filter(None, [of_no_value(*sides[::-1]).strip()])]
    return Outcome(counts, {"method": method, "n": len(images)}, notes)


MEASURES = (
    Measure(
        name="ratio_error",
        title="ratio and error",
        position=1,
        metrics=METRICS,
        groups=(
            Group("ratio", "ratio", ("ratio",), default=True),
            Group("error", "error", ("error", "error_gap"), default=True),
        ),
        version=6,
        count=ratio_error,
    ),
    Measure(
        name="named_values",
        title="no value named",
        position=2,
        metrics=BY_GROUP,
        groups=(
            Group("unnamed", "no value named", ("unnamed",), default=True),
            group_of("naming_gap", "no value named, by group", BY_GROUP),
        ),
        needs=Needs(words="every"),
        version=6,
        count=named_values,
    ),
    Measure(
        name="naming_ratio",
        title="values named, over the human captions",
        position=10,
        metrics=(RATIO_TO_HUMAN,),
        groups=(group_of("naming", "values named, over the human captions", [RATIO_TO_HUMAN]),),
        needs=Needs(references="required", words="any"),
        version=3,
        count=naming_ratio,
    ),
)
