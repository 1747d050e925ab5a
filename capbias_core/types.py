"""The frozen shapes that travel between the packages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

UNKNOWN_TOKEN = "<unk>"
# Between the parts of a value of a crossed attribute, such as `Female, Dark`.
WITHIN = ", "
# Directions: from the attribute to the task words, and from the task words to the attribute.
A_TO_T, T_TO_A = "A->T", "T->A"

# Boxes in pixels of the upright photograph, x to the right, y down, x2 and y2 exclusive. Confidence is in (0, 1], 1 for
# boxes drawn by people.
BOX_COLUMNS = ("image_id", "object", "confidence", "x1", "y1", "x2", "y2")

# What is masked on a photograph before it is captioned: nothing, a part of the person, the person's outline, their
# bounding box, the person (masked by somebody else), the most correlated object, person and object.
CONDITIONS = ("original", "part", "segment", "box", "person", "object", "both")

# Outlines, one object each. crowd: several objects in one outline. height, width: of the image, 0 if unknown. x1 to y2:
# the box around the outline as in BOX_COLUMNS. outline: COCO's `segmentation` as JSON text.
SEGMENT_COLUMNS = ("image_id", "object", "crowd", "height", "width", "x1", "y1", "x2", "y2", "outline")

CAPTION_COLUMNS = ("image_id", "caption_index", "caption")


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "run"), counted(3410, "run")
    ('1 run', '3,410 runs')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def left_out_lines(left_out: Mapping[str, str]) -> list[str]:
    """A line for each reason, with all the metrics that it concerns. left_out: reasons by metric.

    >>> left_out_lines({"LIC": "no references", "ratio": "no words", "LIC_D": "no references"})
    ['LIC, LIC_D left out: no references', 'ratio left out: no words']
    """
    names: dict[str, list[str]] = {}
    for metric, reason in left_out.items():
        names.setdefault(reason, []).append(metric)
    return [f"{', '.join(metrics)} left out: {reason}" for reason, metrics in names.items()]


# (share done, 0 to 1; text): long work calls it often. It raises Cancelled if the work must stop.
Progress = Callable[[float, str], None]
ShareDone = Callable[[float], None]


def silent(_share: float, _text: str = "") -> None:
    """A Progress that nobody watches."""


# Rules for an image whose captions name several values.
WITHOUT_ORDER, PRECEDENCE = ("drop", "majority"), "precedence"
BOTH = (*WITHOUT_ORDER, PRECEDENCE)


@dataclass(frozen=True)
class Derivation:
    """How an image gets its label from the words of its human captions."""

    precedence: tuple[str, ...] = ()  # the order of the values for both="precedence"
    at_least: int = 1  # a value is named if so many captions of the image have a word of it
    # If several values are named: "drop" gives no label, "majority" the value that most captions name (none in a tie),
    # "precedence" the first of that order.
    both: str = "drop"
    title: str = ""  # of derived labels, replaces the attribute's
    note: str = ""

    @property
    def text(self) -> str:
        """The rule as a sentence says it."""
        named = "any caption" if self.at_least == 1 else f"at least {self.at_least} captions"
        if self.both == PRECEDENCE:
            return f"the first of {', '.join(self.precedence)} that {named} of an image names"
        if self.both == "majority":
            return f"the value that most captions of an image name, and {named}"
        return f"the value that {named} of an image names, where no caption names another"


@dataclass(frozen=True)
class Attribute:
    """A protected attribute as data (one TOML file in `attributes/`)."""

    name: str
    title: str
    values: tuple[str, ...]  # two or more labels, in the order of the colour ramp (first = orange end, last = blue end)
    # For each value the words that name it, which are masked before an attacker reads a caption. Empty if captions do
    # not name the attribute (race).
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    mask_token: str = "<mask>"  # replaces a masked word, e.g. `<gender>`
    columns: tuple[str, ...] = ()  # usual names of its column in attribute tables
    aliases: dict[str, str] = field(default_factory=dict)  # raw label (lower case) -> value, to suggest a mapping
    note: str = ""  # limits of the labels, shown beside the numbers
    derived: Derivation | None = field(default=None, compare=False)  # how labels are made from human captions
    # For the Gender Score, rows of words with the same meaning: one for each value and, last, a neutral one.
    forms: tuple[tuple[str, ...], ...] = field(default=(), compare=False)

    def stored(self) -> dict[str, Any]:
        """The fields that are stored with a run and make its ID: all but `derived` and `forms`. A run depends on the
        labels, not on how they were made; forms are an option of the runs that read them."""
        return {name: value for name, value in asdict(self).items() if name not in ("derived", "forms")}

    @cached_property
    def masked_words(self) -> frozenset[str]:
        """Every word that is masked, over all values, lower case."""
        return frozenset(word for words in self.words.values() for word in words)

    @cached_property
    def value_words(self) -> tuple[tuple[str, ...], ...]:
        """The words that name each value, in the order of the values. Empty for a crossed attribute, whose masked words
        name values of its parts."""
        return tuple(tuple(self.words.get(value, ())) for value in self.values)

    @cached_property
    def unnamed_values(self) -> tuple[str, ...]:
        """The values that captions cannot name, since no word does."""
        return tuple(value for value, words in zip(self.values, self.value_words, strict=True) if not words)

    @property
    def names_values(self) -> bool:
        """Whether captions can name a value."""
        return any(self.value_words)

    @property
    def chance(self) -> float:
        """LIC_D and LIC_M of captions that say nothing, x100: 100 / K^2 for K balanced values."""
        return 100.0 / len(self.values) ** 2


@dataclass(frozen=True)
class Problem:
    """One fault of one row of a file."""

    file: str
    line: int  # number of the row, from 1
    message: str
    unit: str = "line"  # or "record", if the file is no text

    def __str__(self) -> str:
        return f"{self.unit} {self.line}: {self.message}"


@dataclass(frozen=True)
class Vectors:
    """Word vectors."""

    words: tuple[str, ...]  # n different words
    matrix: np.ndarray  # (n, d) float32


@dataclass(frozen=True)
class Split:
    """Positions (int arrays) into one list of captions; train and test share no image."""

    seed: int
    train: np.ndarray
    test: np.ndarray


@dataclass(frozen=True)
class Contributions:
    """What each word of each caption adds to an attacker's logits."""

    words: list[np.ndarray]  # for each caption (T, C): T tokens, C logits (1 for two values, K for more)
    baseline: np.ndarray  # (n, C), the part of no word (the intercept, or the logit of the empty caption)
    delta: np.ndarray  # (n,) largest absolute gap between baseline + sum of words and the logit; 0 for exact methods


@dataclass(frozen=True)
class Attention:
    """How much each word of a caption attends to each, in every head of a Transformer."""

    words: tuple[str, ...]  # W words as the encoder reads them, with special tokens such as `[CLS]`
    weights: np.ndarray  # (layers, heads, W, W) from 0 to 1, from word (row) to word (column); rows sum to 1


@dataclass(frozen=True, kw_only=True)
class Result:
    """One number and its origin: a row of the table of results, its fields are the columns."""

    # as in `assets/published`
    paper: str = "measured"
    table: str = ""
    attribute: str
    model: str
    metric: str
    encoder: str = ""
    direction: str = ""
    condition: str = ""
    value: float  # as shown, scale applied
    spread: float | None = None  # standard deviation over attacker seeds (ddof 1)
    spread_kind: str = ""
    scale: float = 1.0
    # what was measured
    coverage: str = ""  # which labelled images
    alignment: str = ""  # of human words
    object: str = ""
    group: str = ""  # of images
    photographs: str = ""  # that a judge got, and its prompt
    prompt: str = ""
    device: str = ""  # on which networks trained
    # how far it carries
    run_id: str = ""
    seeds: int = 0
    training: int = 0  # images that each attacker was trained on, 0 for metrics without
    n: int = 0
    ci_low: float | None = None  # the 95% interval
    ci_high: float | None = None
    # What the interval covers: "refits" (other images, and attackers trained on them; see aggregate/resampling.py),
    # "images" (a bootstrap, given the trained attackers), "" for none. For attackers only "refits" may carry a claim.
    interval: str = ""
    verdict: str = ""  # of LIC: amplifies, inconclusive or reduces
    method: str = ""
    setting: str = ""  # numbers with the same were measured alike: workspace/spec.py, `Setting`
    setting_name: str = ""

    def row(self) -> dict[str, Any]:
        """The columns of the results table, in their order."""
        return dict(vars(self))


RESULT_COLUMNS = tuple(column.name for column in fields(Result))
_measured = RESULT_COLUMNS.index("coverage"), RESULT_COLUMNS.index("run_id")
PUBLISHED_COLUMNS, ORIGIN_COLUMNS = RESULT_COLUMNS[: _measured[0]], RESULT_COLUMNS[slice(*_measured)]
