"""Captions to read: one set beside another, filtered and sorted; photographs by image id."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from capbias_core.analysis.read import CaptionScores
from capbias_core.types import Attribute

DIFFERENCE = "difference"
IMAGE = "image id"


def caption_rows(own: CaptionScores, written: pd.DataFrame, other: CaptionScores | None = None) -> pd.DataFrame:
    """One row a scored caption of a set, in the order of own.table.

    written: the set as kept. Columns: image_id, caption_index, labelled and
    predicted (values of the attribute), score (probability of the predicted value), p0.. ; caption (as written);
    masked; difference (probability of the labelled value, minus its mean over the other set's captions of the
    same image; missing where that set has none).
    """
    values = np.array(own.attribute.values, dtype=object)
    table = own.table
    shares = table[[f"p{value}" for value in range(len(values))]]
    rows = table[["image_id", "caption_index", "masked"]].assign(
        labelled=values[table["label"]], predicted=values[table["predicted"]], score=table["confidence"]
    )
    rows[shares.columns] = shares
    rows["caption"] = written["caption"].to_numpy()[table["kept_at"]]
    rows["difference"] = np.nan
    if other is not None:
        theirs = _labelled_share(other).groupby(other.table["image_id"]).mean()
        rows["difference"] = _labelled_share(own) - rows["image_id"].map(theirs)
    return rows


def _labelled_share(scores: CaptionScores) -> pd.Series:
    shares = scores.table[[f"p{value}" for value in range(len(scores.attribute.values))]].to_numpy()
    return pd.Series(shares[np.arange(len(shares)), scores.table["label"].to_numpy()], index=scores.table.index)


def sort_orders(attribute: Attribute, with_difference: bool) -> list[str]:
    """The names of the orders that `select_rows` knows."""
    toward = [f"bias score, {value} first" for value in attribute.values]
    return [DIFFERENCE, *toward, IMAGE] if with_difference else [*toward, IMAGE]


def select_rows(
    rows: pd.DataFrame, attribute: Attribute, order: str, group: str = "", word: str = "", query: str = ""
) -> pd.DataFrame:
    """Rows of one labelled value, with a whole word after masking, and with a text anywhere in the caption, sorted.

    Empty filters admit all. difference sorts by size, either way.
    """
    kept = np.ones(len(rows), dtype=bool)
    if group:
        kept &= (rows["labelled"] == group).to_numpy()
    if word:
        kept &= (" " + rows["masked"] + " ").str.contains(f" {word.lower().strip()} ", regex=False).to_numpy()
    if query:
        found = rows["caption"].str.contains(query.strip(), case=False, regex=False) | (
            rows["image_id"] == query.strip()
        )
        kept &= found.to_numpy(dtype=bool)
    chosen = rows[kept]
    if order == DIFFERENCE:
        return chosen.sort_values("difference", key=lambda column: -column.abs(), kind="stable")
    for place, value in enumerate(attribute.values):
        if order == f"bias score, {value} first":
            return chosen.sort_values(f"p{place}", ascending=False, kind="stable")
    return chosen.sort_values(["image_id", "caption_index"], kind="stable")


def captions_with(scores: CaptionScores, word: str, number: int) -> tuple[int, list[int]]:
    """How many captions of a set contain a word after masking, and the rows of those in which it adds most.

    Most is the largest size of what all its places in the caption add to a logit, either way; of equal ones the first.
    """
    masked = " " + scores.table["masked"] + " "
    places = np.flatnonzero(masked.str.contains(f" {word} ", regex=False)).tolist()
    added = [
        float(abs(scores.words_of(place)[np.array(scores.table.at[place, "masked"].split()) == word].sum(axis=0)).max())
        for place in places
    ]
    strongest = np.argsort(-np.array(added), kind="stable")[:number]
    return len(places), [places[rank] for rank in strongest]


def toward(attribute: Attribute, words: np.ndarray, predicted: int) -> tuple[Attribute, np.ndarray]:
    """Signed contributions to colour: for two values as they are; for more, toward the predicted value or away.

    words: (T, C). Returns an attribute whose two values name the ends of the ramp, and (T,) values.
    """
    if words.shape[1] == 1:
        return attribute, words[:, 0]
    name = attribute.values[predicted]
    return replace(attribute, values=(f"away from {name}", name)), words[:, predicted]
