"""The corpus table: what each word adds on average, how often it occurs, and in whose captions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from capbias_core.prepare.ngrams import ngrams_of


def corpus_table(masked: Sequence[str], words: list[np.ndarray], labels: np.ndarray, n_values: int) -> pd.DataFrame:
    """One row a word, over all captions of a set.

    masked: n masked captions; words: for each, its contributions (T, C); labels: (n,) integers.
    Columns: word; mean0.. (mean over the captions that contain the word of what it adds to the logit: for two
    values positive pushes toward the second); count (captions that contain it); share0.. (share of the captions of
    each labelled value that contain it, 0 to 1). Sorted by count.
    """
    found = ngrams_of(masked, pairs=False)
    values = np.concatenate(words) if words else np.zeros((0, 1))
    count = np.bincount(found.matrix.indices, minlength=len(found.terms))
    there = np.flatnonzero(count)
    table = pd.DataFrame({"word": [found.terms[column] for column in there]})
    for column, own in enumerate(values.T):
        table[f"mean{column}"] = np.bincount(found.words, own, len(found.terms))[there] / count[there]
    table["count"] = count[there]
    for value in range(n_values):
        with_word = found.matrix.T @ (labels == value).astype(float)
        table[f"share{value}"] = with_word[there] / max(1, int((labels == value).sum()))
    return table.sort_values(["count", "word"], ascending=[False, True], ignore_index=True)
