"""The interface of attackers: they read masked captions and guess the protected attribute."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from capbias_core.language.files import ModelFiles
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import Progress


class Seconds(NamedTuple):
    """Rough seconds for 1,000 captions that are read, on two free cores."""

    to_train: float  # one seed
    to_explain: float  # all captions, with an attacker for each fold


class Setup(NamedTuple):
    """What an attacker is made with."""

    device: str = "auto"  # where it trains, see language/device.py
    model: ModelFiles | None = None  # of a pretrained encoder
    cache: str | None = None  # a folder for embeddings


@dataclass(frozen=True)
class AttackerEntry:
    """What is known about an attacker without making it."""

    name: str
    title: str
    make: Callable[[Setup], Attacker]  # imports what the attacker needs
    seconds: Seconds
    in_process: bool = False  # light enough for the web server's process (no PyTorch)
    folds: int = 5  # of the cross-fitting that scores every caption
    model: str = ""  # the pretrained encoder, a folder or a name as in language/files.py
    rescores: bool = False  # linear in n-grams: stored with the scores of captions, to score an edited caption at once
    attends: bool = False  # trained attackers have `attention`
    from_scratch: bool = False  # a network that learns its word vectors, which vl_lic can join to photographs
    packages: tuple[str, ...] = ()  # imports from extras, by the names in errors.EXTRAS
    attribution: str = ""  # the method behind `contributions`, as pages name it
    preview: bool = False  # stands in for the papers' encoders until one of them has run; listed first
    lic_paper: bool = False  # an encoder of the paper that defines LIC
    seeds: int = 10  # how many LIC trains by default; more are better where they cost seconds
    version: int = 0  # raised when a change of the code changes its numbers; added to that of each measure

    @property
    def precedence(self) -> tuple[bool, bool]:
        """Whose answer is shown first, the larger first: an encoder of the LIC paper, then any but the preview."""
        return self.lic_paper, not self.preview


class Corpus:
    """Masked captions, each distinct one once: seeds, folds and captioners repeat most of them."""

    def __init__(self, captions: Sequence[str]):
        self.distinct, self.copy_of = Tokens.read(captions).distinct()  # D captions; (n,) which of them each is

    def at(self, rows: np.ndarray) -> tuple[Tokens, np.ndarray]:
        """The distinct captions at these rows, and the index of each row's caption among them."""
        numbers, copies = np.unique(self.copy_of[rows], return_inverse=True)
        return self.distinct.rows(numbers), copies


class Training(NamedTuple):
    """One attacker to train."""

    rows: np.ndarray  # (n,) its captions in the corpus
    labels: np.ndarray  # (n,) integers in [0, n_values), or (n, L) booleans: which of L task words are there
    seed: int


class Attacker(Protocol):
    """One encoder with its head.

    An attacker may also have `cut(captions)`: notes if its encoder does not read captions to their end; and `batch`,
    the field of a dataclass: on how many captions at a time it trains.
    """

    def corpus(self, captions: Sequence, /) -> Any:
        """Masked captions (tokens joined by a space) in the attacker's form; learns nothing from labels. An attacker
        that sees photographs gets pairs of the index of an image and a caption."""

    def fit_many(self, corpus, trainings: Sequence[Training], n_values: int, tick: Progress, /) -> Iterator:
        """The trained attackers, in order; only a few are trained ahead of the one that is asked for. `tick` gets the
        share of all trainings that is done; it raises Cancelled to stop them.

        A trained attacker has `logits(corpus, rows)`, (len(rows), C): C = 1 for two values (toward the second), K for
        more, L for task words; `contributions(corpus, rows)`, what each word adds to them; and, if its entry has
        `attends`, `attention(corpus, rows)`.
        """
        ...


def probabilities(logits: np.ndarray) -> np.ndarray:
    """(n, C) logits to (n, K) probabilities: logistic for C = 1, softmax for C = K. Raises ValueError for logits of
    another shape, and for non-finite ones, which would pass for a guess at random."""
    if logits.ndim != 2:
        raise ValueError(f"logits have the shape {logits.shape}, not (n, C)")
    if not np.isfinite(logits).all():
        raise ValueError("non-finite logits")
    if logits.shape[1] == 1:
        logits = np.concatenate([np.zeros_like(logits), logits], axis=1)
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def task_probabilities(logits: np.ndarray) -> np.ndarray:
    """(n, L) logits of task words to (n, L) probabilities that each is there."""
    return 1 / (1 + np.exp(-np.clip(logits, -700, 700)))
