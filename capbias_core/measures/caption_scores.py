"""Scores and words of each caption: out-of-fold bias scores of a whole set, and what every word adds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from capbias_core.attackers import attacker_entry
from capbias_core.attackers.base import probabilities
from capbias_core.measures.base import Job, Measure, Outcome, npy, npz
from capbias_core.measures.options import Attacked
from capbias_core.measures.training import AttackerTrainer, CaptionList, Case, attacker_of, caption_lists
from capbias_core.prepare import balanced_folds, child_seed
from capbias_core.prepare.split import FIT
from capbias_core.prepare.tokens import Tokens
from capbias_core.workspace.store import frame_bytes, images_in


def run(job: Job) -> Outcome:
    """Cross-fitting: every caption is scored by the attacker of the fold that holds its image out."""
    attacker, seed = job.options.attacker, job.spec.seeds[0]
    images = sorted(images_in(job.frame))
    y = job.codes(images)
    k, folds = len(job.attribute.values), attacker_entry(attacker).folds
    lists = caption_lists(job.frame, job.masked(job.tokens(job.frame)), images, y, k)
    splits = balanced_folds(y, k, seed, folds)
    trainer = AttackerTrainer(attacker_of(job), k, y, tuple(images), job.progress, folds * len(lists))
    trainer.note_unread("captions", lists)
    scored, arrays = [], {}
    for index, captions in enumerate(lists):
        corpus, models = trainer.attacker.corpus(captions.masked), []
        cases = [Case(captions, split, child_seed(seed, FIT, index, fold)) for fold, split in enumerate(splits)]
        for fold, (split, fitted) in enumerate(zip(splits, trainer.fit(corpus, cases, "bias scores"), strict=True)):
            table, words = scored_rows(fitted, corpus, captions, captions.having(split.test), y)
            scored.append((table.assign(caption_index=index, fold=fold), words))
            models.append(fitted)
        if attacker_entry(attacker).rescores:
            arrays[f"attackers{index}"] = _linear_models(corpus, models)
    table, words = pd.concat([own for own, _ in scored], ignore_index=True), [each for _, own in scored for each in own]
    arrays["corpus"] = frame_bytes(corpus_table(table["masked"], words, table["label"].to_numpy(), k))
    notes = (f"Every caption is scored by an attacker that did not train on its image ({folds} folds).",)
    return Outcome([], arrays | scores_arrays(table, words, images), (*notes, *trainer.notes))


def scores_arrays(table: pd.DataFrame, words: list[np.ndarray], images: list[str]) -> dict[str, bytes]:
    """Captions scored by `scored_rows` as the arrays that `read.caption_scores` reads. images: ids, by place."""
    image_id = np.array(images, dtype=object)[table["image"].to_numpy()]
    kept = table.drop(columns="image").assign(image_id=image_id)
    values = np.concatenate([*words, np.zeros((0, table.filter(like="logit").shape[1]))])
    return {"scores": frame_bytes(kept), "words": npy(values)}


def scored_rows(
    fitted, corpus, captions: CaptionList, test: np.ndarray, y: np.ndarray
) -> tuple[pd.DataFrame, list[np.ndarray]]:
    """Scores of the captions of images held out: where they stand, logits, their baseline and the gap that attribution
    leaves; and what each of their words adds.

    test: places of the images; y: the values of all of them.
    """
    rows = captions.rows(test)
    logits = fitted.logits(corpus, rows)
    found = fitted.contributions(corpus, rows)
    table = pd.DataFrame({"delta": found.delta})
    for column in range(logits.shape[1]):
        table[f"logit{column}"] = logits[:, column]
        table[f"baseline{column}"] = found.baseline[:, column]
    for value, share in enumerate(probabilities(logits).T):
        table[f"p{value}"] = share
    position = {"image": test, "label": y[test], "kept_at": captions.kept_at[rows]}
    texts = [captions.masked[row] for row in rows]
    return table.assign(**position, masked=texts, tokens=[len(own) for own in found.words]), found.words


def _linear_models(corpus, models) -> bytes:
    """The linear attackers of one caption index, one a fold, for rescoring an edited caption."""
    terms = sorted(corpus.columns, key=corpus.columns.get)
    return npz(
        terms=np.frombuffer("\n".join(terms).encode(), dtype=np.uint8),
        weights=np.stack([fitted.weights for fitted in models]),
        intercepts=np.stack([fitted.intercept for fitted in models]),
    )


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


MEASURE = Measure(
    name="caption_scores",
    title="scores and words of each caption",
    place=90,
    options=Attacked,
    version=2,
    explains=True,
    run=run,
)
