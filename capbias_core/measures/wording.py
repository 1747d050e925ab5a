"""What captions say, by group: how long they are, their vocabulary, and refusals."""

from __future__ import annotations

from typing import Any

from capbias_core.aggregate import LOWER_SHARE, WITHOUT_LIMIT, Counts, Metric, no_neutral, with_gaps
from capbias_core.data import Data
from capbias_core.measures.base import Group, Measure, Outcome, group_of, sizes
from capbias_core.prepare.refusals import refusals
from capbias_core.types import Progress, Result

SHOWN = 60  # characters of a refusal in a note

LENGTH = with_gaps(
    Metric(
        "length",
        "length, words per caption",
        1,
        no_neutral,
        "none",
        WITHOUT_LIMIT,
        "Hirota et al., ACL 2025 (LOTUS)",
        "Words of a caption, punctuation left out.",
        reads=("words", "captions"),
    )
)
VOCABULARY = Metric(
    "vocabulary",
    "vocabulary, different words",
    1,
    no_neutral,
    "higher",
    WITHOUT_LIMIT,
    "Hirota et al., CVPR 2022, Figure 3",
    "Different words among the captions of the labelled images. It grows with the number of captions.",
    side="model",
)
REFUSED = with_gaps(
    Metric(
        "refused",
        "refusals, by group",
        *LOWER_SHARE,
        "capbias 2026, docs/metrics.md",
        "Captions that refuse to describe the image, such as “I'm sorry, but I can't help with identifying people”,"
        " of all captions. A caption that describes the image after such a sentence is none. A gap says that the "
        "model refuses one group more often than another.",
        reads=("refused", "captions"),
    ),
    source="capbias 2026, docs/metrics.md",
)


def length(data: Data, options: Any, progress: Progress) -> Outcome:
    """Words of the captions of labelled images."""
    words = data.tokens(data.frame).lengths
    counts = Counts.of_captions(data.frame["image_id"], data.codes, {"words": words})
    method = f"captions of {len(counts.images):,} labelled images"
    return Outcome(counts, {"method": method}, [f"Descriptions: {sizes(counts, data.attribute)}."])


def vocabulary(data: Data, options: Any, progress: Progress) -> Outcome:
    """Words of the captions of labelled images. The count of a whole set is no function of sums over images: it has no
    estimate, so captioners are not ranked by it."""
    result = Result(
        attribute=data.attribute.name,
        model=data.captioner,
        metric=VOCABULARY.name,
        value=float(len(data.tokens(data.frame).words)),
        scale=VOCABULARY.scale,
        n=len(data.frame),
        method="different words of the captions of labelled images; a count, without an interval",
    )
    return Outcome(results=[result])


def refused(data: Data, options: Any, progress: Progress) -> Outcome:
    """Which captions of labelled images are refusals."""
    captions = data.frame["caption"].to_numpy(dtype=object)
    refusing = refusals(captions)
    counts = Counts.of_captions(data.frame["image_id"], data.codes, {"refused": refusing})
    notes = []
    if refusing.any():
        example = " ".join(captions[refusing.argmax()].split())[:SHOWN]
        notes = [f"{refusing.sum():,} of {len(refusing):,} captions are refusals, such as “{example}”."]
    return Outcome(counts, {"method": "refusals by their wording"}, notes)


MEASURES = (
    Measure(
        name="refusals",
        title="refusals",
        position=2,
        metrics=REFUSED,
        groups=(group_of("refused", "refusals by group", REFUSED, default=True),),
        version=3,
        count=refused,
    ),
    Measure(
        name="description",
        title="length of captions",
        position=8,
        metrics=LENGTH,
        groups=(group_of("length", "length by group", LENGTH),),
        version=4,
        count=length,
    ),
    Measure(
        name="vocabulary",
        title="vocabulary size",
        position=8,
        metrics=(VOCABULARY,),
        groups=(Group("vocabulary", "vocabulary size", ("vocabulary",)),),
        count=vocabulary,
    ),
)
