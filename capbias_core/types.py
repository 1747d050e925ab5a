"""The frozen shapes that travel between the packages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

UNKNOWN_TOKEN = "<unk>"
# Between the parts of a value of a crossed attribute, such as `Female, Dark`.
WITHIN = ", "
# Directions: from the attribute to the task words, and from the task words to the attribute.
A_TO_T, T_TO_A = "A->T", "T->A"

# Boxes: pixels of the upright photograph, x to the right, y down, x2 and y2 exclusive; confidence in (0, 1], 1 for
# boxes drawn by people.
BOX_COLUMNS = ("image_id", "object", "confidence", "x1", "y1", "x2", "y2")

# What of a photograph is masked before it is captioned: nothing, a part of the person, the person's outline, their
# bounding box, the person in a way of somebody else's, the most correlated object, person and object.
CONDITIONS = ("original", "part", "segment", "box", "person", "object", "both")

# Outlines, each of one object on an image: height and width of that image (0 where they are not known), the box around
# the outline as in BOX_COLUMNS, and COCO's `segmentation` as JSON text. crowd: several objects within one outline.
SEGMENT_COLUMNS = ("image_id", "object", "crowd", "height", "width", "x1", "y1", "x2", "y2", "outline")

CAPTION_COLUMNS = ("image_id", "caption_index", "caption")

PUBLISHED_COLUMNS = (
    "paper",
    "table",
    "attribute",
    "model",
    "metric",
    "encoder",
    "direction",
    "condition",
    "value",
    "spread",
    "spread_kind",
    "scale",
)
# Of a measured row, what it was measured on or with, each in a column of its own: which labelled images (coverage), how
# human words were aligned, the object and the group of images that it is about, the photographs and the prompt that a
# judge was given, and the device on which networks trained.
ORIGIN_COLUMNS = ("coverage", "alignment", "object", "group", "photographs", "prompt", "device")
SUPPORT_COLUMNS = ("run_id", "seeds", "training", "n", "ci_low", "ci_high", "interval", "verdict", "method")
RESULT_COLUMNS = (*PUBLISHED_COLUMNS, *ORIGIN_COLUMNS, *SUPPORT_COLUMNS)


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


# (share done, 0 to 1; text): called often by whatever takes long. It raises Cancelled if the work must stop.
Progress = Callable[[float, str], None]
ShareDone = Callable[[float], None]


def silent(_share: float, _text: str = "") -> None:
    """A Progress that nobody watches."""


# What becomes of an image whose captions name several values; the last asks for an order of the values.
WITHOUT_ORDER, PRECEDENCE = ("drop", "majority"), "precedence"
BOTH = (*WITHOUT_ORDER, PRECEDENCE)


@dataclass(frozen=True)
class Derivation:
    """How an image gets its label from the words of its human captions.

    A value is named where at least `at_least` captions of the image have a word of it. Where several are: `drop` gives
    no label, `majority` the value that most captions name (none in a tie), `precedence` the first named in this order.
    title, note: of labels that were made so, in place of the attribute's own.
    """

    precedence: tuple[str, ...] = ()
    at_least: int = 1
    both: str = "drop"
    title: str = ""
    note: str = ""

    def __post_init__(self):
        object.__setattr__(self, "precedence", tuple(self.precedence))

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
    """A protected attribute as data (one TOML file in `attributes/`).

    values: two or more labels, in the order of the colour ramp (first = orange end, last = blue end).
    words: for each value, the words that name it; they are masked before an attacker reads a caption.
        Empty where captions do not name the attribute (race).
    mask_token: what a masked word becomes, e.g. `<gender>`.
    columns: column names under which attribute tables usually hold it.
    aliases: raw label (lower case) -> value, to suggest a mapping.
    note: what the labels cannot say; shown where the numbers are.
    derived: how labels can be made from human captions, None where they cannot. Not in the dict that is kept with a
        run (`asdict`): numbers depend on the labels in a table, whose content the run names, not on how they were made.
    forms: rows of words that say the same of each value and, last, of no value, for the Gender Score. Not in that dict
        either: they are an option of the runs that read them.
    """

    name: str
    title: str
    values: tuple[str, ...]
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    mask_token: str = "<mask>"
    columns: tuple[str, ...] = ()
    aliases: dict[str, str] = field(default_factory=dict)
    note: str = ""
    if TYPE_CHECKING:
        derived: Derivation | None = None
        forms: tuple[tuple[str, ...], ...] = ()
    else:
        derived: InitVar[Derivation | None] = None
        forms: InitVar[tuple[tuple[str, ...], ...]] = ()

        def __post_init__(self, derived, forms):
            object.__setattr__(self, "derived", derived)
            object.__setattr__(self, "forms", tuple(map(tuple, forms)))

    @cached_property
    def masked_words(self) -> frozenset[str]:
        """Every word that is masked, over all values, lower case."""
        return frozenset(word for words in self.words.values() for word in words)

    @cached_property
    def value_words(self) -> tuple[tuple[str, ...], ...]:
        """The words that name each value, in the order of the values. None of a crossed attribute: a word that is
        masked there names a value of one of its parts."""
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
    """One fault of one row of a file. line: 1-based number of the row. unit: "line" (text) or "record"."""

    file: str
    line: int
    message: str
    unit: str = "line"

    def __str__(self) -> str:
        return f"{self.unit} {self.line}: {self.message}"


@dataclass(frozen=True)
class Table:
    """What was read from a file, before it is kept.

    frame: captions (CAPTION_COLUMNS, as written), raw labels (image_id and a string column each, '' where empty),
    objects (image_id and objects, one row per image, names such as `cat|dog`), boxes (BOX_COLUMNS) or outlines
    (SEGMENT_COLUMNS). rows: rows or annotations in the file. Left out, and counted: missing captions (empty),
    duplicates (rows that repeat the labels of an image), others (outlines of images that were not asked
    for), and rows with problems, of which the first are here. crowds: annotations of a crowd of objects. notes: what
    was taken from where, as sentences, if the names of columns do not say it. prompts: of captions that answer several
    prompts, the prompt of each. sets: of captions by several captioners, the captioner of each. account: what became of
    each column and row (load/account.py). cleaned, warnings: captions with text that is not a caption, by rule and as
    sentences (load/clean.py).
    """

    frame: pd.DataFrame
    rows: int
    empty: int = 0
    duplicates: int = 0
    others: int = 0
    crowds: int = 0
    problems: tuple[Problem, ...] = ()
    problem_count: int = 0
    notes: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    account: tuple[tuple[str, str], ...] = ()
    cleaned: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Vectors:
    """Word vectors. words: n different words. matrix: (n, d) float32, a row each."""

    words: tuple[str, ...]
    matrix: np.ndarray


@dataclass(frozen=True)
class Split:
    """Positions (int arrays) into one list of captions; train and test share no image."""

    seed: int
    train: np.ndarray
    test: np.ndarray


@dataclass(frozen=True)
class Contributions:
    """What each word of each caption adds to an attacker's logit.

    words: for each caption, an array (T, C): T tokens, C logits (1 for two values, signed toward the second
        value; K for K values).
    baseline: (n, C), the part that belongs to no word (the intercept, or the logit of the empty caption).
    delta: (n,) largest absolute gap between baseline + sum of words and the logit; 0 for exact methods.
    """

    words: list[np.ndarray]
    baseline: np.ndarray
    delta: np.ndarray


@dataclass(frozen=True)
class Attention:
    """How much each word of a caption reads of each, in every head of a Transformer.

    words: the W words as the encoder reads them, special tokens such as `[CLS]` among them. weights: (layers, heads, W,
        W) from 0 to 1, from the word that reads (row) to the one that is read (column); each row sums to 1.
    """

    words: tuple[str, ...]
    weights: np.ndarray


@dataclass(frozen=True)
class Result:
    """One number, with where it came from: a row of the one table that everything reads.

    Columns as in `assets/published`; value as shown (scale already applied). spread is the standard deviation
    over attacker seeds (ddof 1). training: images that each attacker was trained on, 0 for metrics without. ci_low,
    ci_high: the 95% interval. interval: what that is over: 'refits' (other images and attackers trained on them; see
    aggregate/resampling.py), 'images' (a bootstrap; of an attacker's metric, given the trained attackers), '' if there
    is none. Of an attacker's metric only 'refits' may carry a claim. verdict: of LIC, 'amplifies',
    'inconclusive' or 'reduces' (aggregate/estimate.py); '' of others.
    """

    attribute: str
    model: str
    metric: str
    value: float
    encoder: str = ""
    direction: str = ""
    condition: str = ""
    coverage: str = ""
    alignment: str = ""
    object: str = ""
    group: str = ""
    photographs: str = ""
    prompt: str = ""
    device: str = ""
    spread: float | None = None
    spread_kind: str = ""
    scale: float = 1.0
    run_id: str = ""
    seeds: int = 0
    training: int = 0
    n: int = 0
    ci_low: float | None = None
    ci_high: float | None = None
    interval: str = ""
    verdict: str = ""
    method: str = ""
    paper: str = "measured"
    table: str = ""

    def row(self) -> dict[str, Any]:
        """The columns of the results table, in their order."""
        return {column: getattr(self, column) for column in RESULT_COLUMNS}
