"""Scores and words of each caption: out-of-fold bias scores of a set; or of the captions of some images, by an attacker
that trained on all others, with the attention of a Transformer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from capbias_core.aggregate.counts import from_npz, to_npz
from capbias_core.attackers import attacker_entry
from capbias_core.attackers.base import probabilities
from capbias_core.data import Data, images_in
from capbias_core.errors import CapbiasError
from capbias_core.language.device import trained_on
from capbias_core.measures.base import Measure, Outcome, npy
from capbias_core.measures.options import Attacked, option
from capbias_core.measures.training import AttackerTrainer, CaptionList, Case, attacker_of, caption_lists
from capbias_core.prepare.split import FIT, balanced_folds, child_seed, split_around
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import Attention, Progress
from capbias_core.workspace.store import frame_bytes


@dataclass(frozen=True)
class EncoderViewOptions(Attacked):
    """Choices of a view. images: ids of the images whose captions are read."""

    images: tuple[str, ...] = option((), "the images whose captions are read")


def caption_scores(data: Data, options: Any, progress: Progress) -> Outcome:
    """Cross-fitting: every caption is scored by the attacker of the fold that holds its image out."""
    images, folds = sorted(images_in(data.frame)), attacker_entry(options.attacker).folds
    y, k, seed = data.codes(images), len(data.attribute.values), options.seed_numbers[0]
    trainer, lists = _trainer(data, options, progress, images, y, k, folds)
    splits = balanced_folds(y, k, seed, folds)
    scored, arrays = [], {}
    for index, captions in enumerate(lists):
        corpus, models = trainer.attacker.corpus(captions.masked), []
        cases = [
            Case(captions, split, child_seed(seed, FIT, index, fold), what="bias scores")
            for fold, split in enumerate(splits)
        ]
        for fold, (split, fitted) in enumerate(zip(splits, trainer.fit(corpus, cases), strict=True)):
            table, words = scored_rows(fitted, corpus, captions, captions.with_caption(split.test), y)
            scored.append((table.assign(caption_index=index, fold=fold), words))
            models.append(fitted)
        if attacker_entry(options.attacker).rescores:  # the linear attackers, to score an edited caption at once
            arrays[f"attackers{index}"] = to_npz(
                None,
                terms=np.frombuffer("\n".join(corpus.ngrams.terms).encode(), dtype=np.uint8),
                weights=np.stack([fitted.weights for fitted in models]),
                intercepts=np.stack([fitted.intercept for fitted in models]),
            )
    table, words, kept = scores_arrays(scored, images)
    arrays["corpus"] = frame_bytes(corpus_table(table["masked"], words, table["label"].to_numpy(), k))
    note = f"Every caption is scored by an attacker that did not train on its image ({folds} folds)."
    return Outcome(notes=[note, *trainer.notes], arrays=arrays | kept)


def encoder_view(data: Data, options: Any, progress: Progress) -> Outcome:
    """Scores, words and attention of the captions of some images, by one attacker for each caption index."""
    images, chosen = sorted(images_in(data.frame)), set(options.images)
    indices = np.array([number for number, image in enumerate(images) if image in chosen], dtype=int)
    if not len(indices):
        raise CapbiasError(
            f"None of these images has both a caption of {data.captioner} and a label.", "Choose other images."
        )
    y, k = data.codes(images), len(data.attribute.values)
    trainer, lists = _trainer(data, options, progress, images, y, k, 1)
    split, scored, attention = split_around(y, k, options.seed_numbers[0], indices), [], []
    for index, captions in enumerate(lists):
        corpus, test = trainer.attacker.corpus(captions.masked), captions.with_caption(split.test)
        (fitted,) = trainer.fit(corpus, [Case(captions, split, child_seed(split.seed, FIT, index))])
        table, words = scored_rows(fitted, corpus, captions, test, y)
        scored.append((table.assign(caption_index=index, fold=0), words))
        if hasattr(fitted, "attention"):
            attention += fitted.attention(corpus, captions.rows(test))
    arrays = scores_arrays(scored, images)[2]
    arrays |= {"attention": attention_bytes(attention)} if attention else {}
    where = trained_on(trainer.attacker, options.deterministic)
    training = len(trainer.balance(split.train))
    note = f"Read by an attacker that trained on {training:,} other images{where}."
    return Outcome(notes=[note, *trainer.notes], arrays=arrays)


def _trainer(
    data: Data, options: Any, progress: Progress, images: list[str], y: np.ndarray, k: int, fits: int
) -> tuple[AttackerTrainer, list[CaptionList]]:
    """What trains the attackers of a run, and the masked captions. fits: attackers for each caption index."""
    lists = caption_lists(data.frame, data.masked(data.tokens(data.frame), options.merge_masks), images, y, k)
    trainer = AttackerTrainer(attacker_of(data, options), k, y, tuple(images), progress, fits * len(lists))
    trainer.note_unread("captions", lists)
    return trainer, lists


def scored_rows(
    fitted, corpus, captions: CaptionList, test: np.ndarray, y: np.ndarray
) -> tuple[pd.DataFrame, list[np.ndarray]]:
    """Scores of the captions of images held out: where they stand, logits, their baseline and the gap that attribution
    leaves; and what each of their words adds. test: indices of the images; y: the values of all of them."""
    rows = captions.rows(test)
    logits, contributions = fitted.logits(corpus, rows), fitted.contributions(corpus, rows)
    table = pd.DataFrame({"delta": contributions.delta})
    for column in range(logits.shape[1]):
        table[f"logit{column}"] = logits[:, column]
        table[f"baseline{column}"] = contributions.baseline[:, column]
    for value, share in enumerate(probabilities(logits).T):
        table[f"p{value}"] = share
    table["masked"] = [captions.masked[row] for row in rows]
    table["tokens"] = [len(added) for added in contributions.words]
    return table.assign(image=test, label=y[test], kept_at=captions.kept_at[rows]), contributions.words


def scores_arrays(
    scored: Sequence[tuple[pd.DataFrame, list[np.ndarray]]], images: list[str]
) -> tuple[pd.DataFrame, list[np.ndarray], dict[str, bytes]]:
    """The captions scored by `scored_rows` as one table, what their words add, and both as arrays of a run. images:
    ids."""
    table = pd.concat([rows for rows, _ in scored], ignore_index=True)
    words = [each for _, added in scored for each in added]
    image_id = np.array(images, dtype=object)[table["image"].to_numpy()]
    values = np.concatenate([*words, np.zeros((0, table.filter(like="logit").shape[1]))])
    kept = table.drop(columns="image").assign(image_id=image_id)
    return table, words, {"scores": frame_bytes(kept), "words": npy(values)}


def corpus_table(masked: Sequence[str], words: list[np.ndarray], labels: np.ndarray, n_values: int) -> pd.DataFrame:
    """One row a word, over all captions of a set.

    masked: n masked captions; words: for each, its contributions (T, C); labels: (n,) integers.
    Columns: word; mean0.. (mean over the captions that contain the word of what it adds to the logit: for two
    values positive pushes toward the second); count (captions that contain it); share0.. (share of the captions of
    each labelled value that contain it, 0 to 1). Sorted by count.
    """
    tokens = Tokens.read(masked)
    matrix, values = tokens.matrix(), np.concatenate(words) if words else np.zeros((0, 1))
    count = np.bincount(matrix.indices, minlength=len(tokens.words))
    table = pd.DataFrame({"word": tokens.words})
    for column, added in enumerate(values.T):
        table[f"mean{column}"] = np.bincount(tokens.codes, added, len(tokens.words)) / count
    table["count"] = count
    for value in range(n_values):
        table[f"share{value}"] = matrix.T @ (labels == value).astype(float) / max(1, int((labels == value).sum()))
    return table.sort_values(["count", "word"], ascending=[False, True], ignore_index=True)


def attention_bytes(attention: list[Attention]) -> bytes:
    """Attention of captions as bytes; `attention_from` reads it back."""
    layers, heads = attention[0].weights.shape[:2]
    flat = [each.weights.astype(np.float32).ravel() for each in attention]
    return to_npz([layers, heads, [each.words for each in attention]], values=np.concatenate(flat))


def attention_from(data: bytes) -> list[Attention]:
    """The attention in bytes of `attention_bytes`, caption by caption."""
    (layers, heads, words), arrays = from_npz(data)
    sizes = [layers * heads * len(each) ** 2 for each in words]
    parts = np.split(arrays["values"], np.cumsum(sizes)[:-1])
    return [
        Attention(tuple(each), part.reshape(layers, heads, len(each), len(each)))
        for each, part in zip(words, parts, strict=True)
    ]


MEASURES = (
    Measure(
        name="caption_scores",
        title="scores and words of each caption",
        position=90,
        options=Attacked,
        version=2,
        explains=True,
        count=caption_scores,
    ),
    Measure(
        name="encoder_view",
        title="how an encoder reads some captions",
        position=91,
        options=EncoderViewOptions,
        count=encoder_view,
    ),
)
ENCODER_VIEW = MEASURES[1]
