"""The corpus table: what each word adds on average, how often it occurs, and in whose captions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd


def corpus_table(masked: Sequence[str], words: list[np.ndarray], labels: np.ndarray, n_values: int) -> pd.DataFrame:
    """One row a word, over all captions of a set.

    masked: n masked captions; words: for each, its contributions (T, C); labels: (n,) integers.
    Columns: word; mean0.. (mean over the captions that contain the word of what it adds to the logit: for two
    values positive pushes toward the second); count (captions that contain it); share0.. (share of the captions of
    each labelled value that contain it, 0 to 1). Sorted by count.
    """
    lengths = [len(item) for item in words]
    frame = pd.DataFrame({"word": [token for caption in masked for token in caption.split()]})
    frame["caption"] = np.repeat(np.arange(len(words)), lengths)
    values = np.concatenate(words) if words else np.zeros((0, 1))
    columns = [f"mean{column}" for column in range(values.shape[1])]
    frame[columns] = values
    by_caption = frame.groupby(["word", "caption"], sort=False)[columns].sum().reset_index()
    by_caption["label"] = labels[by_caption["caption"]]
    table = by_caption.groupby("word")[columns].mean()
    table["count"] = by_caption.groupby("word").size()
    for value in range(n_values):
        with_word = by_caption[by_caption["label"] == value].groupby("word").size()
        table[f"share{value}"] = (with_word / max(1, int((labels == value).sum()))).reindex(table.index).fillna(0.0)
    return table.reset_index().sort_values(["count", "word"], ascending=[False, True], ignore_index=True)
