"""How an encoder reads some captions: how one attacker reads the captions of a few images that it did not train on.

One attacker a caption index trains on all other images, so that an encoder shows a caption after one training; a run of
`caption_scores` trains several, for the whole set. What each word adds is kept, and of a Transformer the attention of
every layer and head.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from capbias_core.aggregate.counts import from_npz, to_npz
from capbias_core.attackers.device import trained_on
from capbias_core.errors import CapbiasError
from capbias_core.measures.base import Job, Measure, Outcome
from capbias_core.measures.caption_scores import scored_rows, scores_arrays
from capbias_core.measures.options import Attacked, option
from capbias_core.measures.training import AttackerTrainer, Case, attacker_of, caption_lists
from capbias_core.prepare import child_seed, split_around
from capbias_core.prepare.split import FIT
from capbias_core.types import Attention
from capbias_core.workspace.store import images_in


@dataclass(frozen=True)
class EncoderViewOptions(Attacked):
    """Choices of a view. images: ids of the images whose captions are read."""

    images: tuple[str, ...] = option((), "the images whose captions are read")


def run(job: Job) -> Outcome:
    """Scores, words and attention of the captions of the images that were asked for."""
    images = sorted(images_in(job.frame))
    y, k = job.codes(images), len(job.attribute.values)
    split = split_around(y, k, job.spec.seeds[0], _places(job, images))
    lists = caption_lists(job.frame, job.masked(job.tokens(job.frame)), images, y, k)
    # The split is balanced; where few have a further caption index, AttackerTrainer evens what is left.
    trainer = AttackerTrainer(attacker_of(job), k, y, tuple(images), job.progress, len(lists))
    trainer.note_unread("captions", lists)
    scored, attention = [], []
    for index, captions in enumerate(lists):
        corpus, test = trainer.attacker.corpus(captions.masked), captions.having(split.test)
        case = Case(captions, split, child_seed(split.seed, FIT, index))
        (fitted,) = trainer.fit(corpus, [case], "an attacker that reads")
        table, words = scored_rows(fitted, corpus, captions, test, y)
        scored.append((table.assign(caption_index=index, fold=0), words))
        if hasattr(fitted, "attention"):
            attention += fitted.attention(corpus, captions.rows(test))
    table, words = pd.concat([own for own, _ in scored], ignore_index=True), [each for _, own in scored for each in own]
    arrays = scores_arrays(table, words, images) | ({"attention": attention_bytes(attention)} if attention else {})
    return Outcome([], arrays, (_note(len(trainer.even(split.train)), job), *trainer.notes))


def _places(job: Job, images: list[str]) -> np.ndarray:
    """Places of the images that were asked for, those with a caption and a label. Raises where there is none."""
    asked = set(job.options.images)
    places = np.array([place for place, image in enumerate(images) if image in asked], dtype=int)
    if not len(places):
        raise CapbiasError(
            f"None of these images has both a caption of {job.spec.model} and a label.", "Choose other images."
        )
    return places


def _note(training: int, job: Job) -> str:
    where = trained_on(attacker_of(job), job.options.deterministic)
    return f"Read by an attacker that trained on {training:,} other images{where}."


def attention_bytes(attention: list[Attention]) -> bytes:
    """Attention of captions as bytes; `attention_from` reads it back."""
    layers, heads = attention[0].weights.shape[:2]
    flat = [own.weights.astype(np.float32).ravel() for own in attention]
    return to_npz([layers, heads, [own.words for own in attention]], values=np.concatenate(flat))


def attention_from(data: bytes) -> list[Attention]:
    """The attention in bytes of `attention_bytes`, caption by caption."""
    (layers, heads, words), arrays = from_npz(data)
    sizes = [layers * heads * len(own) ** 2 for own in words]
    parts = np.split(arrays["values"], np.cumsum(sizes)[:-1])
    return [
        Attention(tuple(own), part.reshape(layers, heads, len(own), len(own)))
        for own, part in zip(words, parts, strict=True)
    ]


MEASURE = Measure(
    name="encoder_view", title="how an encoder reads some captions", place=91, options=EncoderViewOptions, run=run
)
