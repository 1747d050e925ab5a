"""What every attacker can do, and what its entry says of it.

An attacker reads masked captions and guesses the protected attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from capbias_core.language.files import ModelFiles
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import Progress

# How networks here attribute a logit to words.
INTEGRATED_GRADIENTS = "integrated gradients (Captum)"


class Seconds(NamedTuple):
    """Rough seconds of an attacker on two free cores for 1,000 captions of a set: to train on them for one seed, and to
    explain all of them, which needs an attacker for each fold."""

    to_train: float
    to_explain: float


class Setup(NamedTuple):
    """What an attacker is made with. device: where it trains (see device.py). model: files of a pretrained encoder,
    None for an encoder from scratch. cache: a folder for its embeddings, None for none."""

    device: str = "auto"
    model: ModelFiles | None = None
    cache: str | None = None


@dataclass(frozen=True)
class AttackerEntry:
    """What is known about an attacker without making it.

    make: the attacker of a Setup; it imports what the attacker needs. seconds: how long it takes. in_process: light
    enough for the web server's process (no PyTorch). folds: of the cross-fitting that scores every caption. model: the
    pretrained encoder, a folder or a name as in language/files.py; '' for an encoder from scratch. rescores: its fitted
    attackers are linear in n-grams (`weights`, `intercept`; the corpus has `ngrams`) and are kept with the scores of
    captions, so that an edited caption is scored at once. attends: fitted ones have `attention`. from_scratch: a
    network that learns its own word vectors, which vl_lic can join to photographs. packages: what it imports of an
    extra, by the names in errors.EXTRAS. place: where it stands, smaller first. attribution: the method behind
    `contributions`, as pages name it. preview: stands in for the papers' encoders until one of them has been run.
    lic_paper: an encoder of the paper that defines LIC, whose answer precedes that of any other. seeds: how many LIC
    trains, unless another number is asked for; more are better where they cost seconds. version: raised when a
    change of the code changes its numbers; added to that of each measure.
    """

    name: str
    title: str
    make: Callable[[Setup], Attacker[str]]
    seconds: Seconds
    in_process: bool = False
    folds: int = 5
    model: str = ""
    rescores: bool = False
    attends: bool = False
    from_scratch: bool = False
    packages: tuple[str, ...] = ()
    place: int = 100
    attribution: str = ""
    preview: bool = False
    lic_paper: bool = False
    seeds: int = 10
    version: int = 0

    @property
    def precedence(self) -> tuple[bool, bool]:
        """The larger answers first: an encoder of the LIC paper, then any but the preview."""
        return self.lic_paper, not self.preview


class Corpus:
    """Masked captions, each distinct one once: seeds, folds and captioners repeat most of them. distinct: D captions.
    place: (n,) the place of each of the n captions among them."""

    def __init__(self, captions: Sequence[str]):
        self.distinct, self.place = Tokens.read(captions).distinct()

    def at(self, rows: np.ndarray) -> tuple[Tokens, np.ndarray]:
        """The distinct captions at these rows, and which of them each row has."""
        numbers, copies = np.unique(self.place[rows], return_inverse=True)
        return self.distinct.rows(numbers), copies


Text = TypeVar("Text", contravariant=True)


class Attacker(Protocol[Text]):
    """One encoder with its head; what is known without making it is in its AttackerEntry. Text: str; of one that sees
    photographs, the place of an image and its caption."""

    def corpus(self, captions: Sequence[Text], /) -> Any:
        """Masked captions (tokens joined by a space) in the attacker's own form; learns nothing from labels."""

    def fit(self, corpus, rows: np.ndarray, labels: np.ndarray, n_values: int, seed: int, tick: Progress, /) -> Any:
        """Trains on the captions at `rows`.

        Returns what has `logits(corpus, rows)`, (len(rows), C): C = 1 for two values (toward the second), K for more,
        L for task words; `contributions(corpus, rows)`, what each word adds to them; and, if its entry says
        `attends`, `attention(corpus, rows)`. labels: (len(rows),) integers in [0, n_values), or (len(rows), L)
        booleans, which of L task words are there.

        An attacker may have besides: `cut(captions)`, notes where its encoder does not read captions to their end;
        `batch`, the field of a dataclass, on how many captions at a time it trains; and `fit_many` (below).
        """


def fit_many(
    attacker: Attacker,
    corpus: Any,
    rows: Sequence,
    labels: Sequence,
    n_values: int,
    seeds: Sequence[int],
    tick: Progress,
) -> Iterator:
    """What `fit` returns for each seed with its rows and labels, in order, trained when it is asked for. An attacker
    may have a `fit_many` (without the first argument) that trains several side by side."""
    if together := getattr(attacker, "fit_many", None):
        yield from together(corpus, rows, labels, n_values, seeds, tick)
        return
    for done, case in enumerate(zip(rows, labels, seeds, strict=True)):

        def part(share: float, text: str, done=done) -> None:
            tick((done + share) / len(seeds), text)

        yield attacker.fit(corpus, *case[:2], n_values, case[2], part)


def probabilities(logits: np.ndarray) -> np.ndarray:
    """(n, C) logits to (n, K) probabilities: logistic for C = 1, softmax for C = K. Raises ValueError for non-finite
    logits, which would pass for a guess at random."""
    if not np.isfinite(logits).all():
        raise ValueError("non-finite logits")
    if logits.shape[1] == 1:
        logits = np.concatenate([np.zeros_like(logits), logits], axis=1)
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def task_probabilities(logits: np.ndarray) -> np.ndarray:
    """(n, L) logits of task words to (n, L) probabilities that each is there."""
    return 1 / (1 + np.exp(-np.clip(logits, -700, 700)))
