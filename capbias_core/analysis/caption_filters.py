"""Captions to read: one set beside another, filtered and sorted; photographs by image id."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from capbias_core.analysis.read import CaptionScores
from capbias_core.load.tables import BETWEEN
from capbias_core.measures.naming import names_in
from capbias_core.metrics.captions import wrong_names
from capbias_core.prepare.text import matching
from capbias_core.types import Attribute
from capbias_core.workspace.limited import within_seconds

DIFFERENCE = "difference"
IMAGE = "image id"
# Kinds of captions: one set gives the label away and the other does not, and a caption that names another value.
OWN, OTHER, WRONG = "own", "other", "wrong"
# The probability of the labelled value from which a caption gives it away.
GIVES_AWAY = 0.7
SEARCH_SECONDS = 5.0  # for a regular expression


@dataclass(frozen=True)
class Filters:
    """Which captions are listed; what is empty admits all.

    group: the labelled value. word: a whole word after masking. query: text anywhere in the caption, or an image id.
    pattern: the query is a regular expression of RE2. kind: OWN (the caption gives the labelled value a probability of
    GIVES_AWAY or more, the other set's captions of the image at most chance, on average), OTHER (the reverse) or WRONG
    (it names only another value). images: those that count.
    """

    group: str = ""
    word: str = ""
    query: str = ""
    pattern: bool = False
    kind: str = ""
    images: Collection[str] | None = None


def caption_rows(own: CaptionScores, other: CaptionScores | None = None) -> pd.DataFrame:
    """One row a scored caption of a set, in the order of own.table.

    Columns: image_id, caption_index, kept_at (row of the caption in the set as kept), labelled and predicted (values of
    the attribute), score (probability of the predicted value), p0.. ; masked; share (probability of the labelled
    value); other_p0.. (means over the other set's captions of the same image; missing where that set has none); other
    (that of the labelled value); difference (share - other).
    """
    values, table = pd.Series(own.attribute.values, dtype="str").array, own.table
    shares = table[[f"p{value}" for value in range(len(values))]]
    rows = table[["image_id", "caption_index", "kept_at", "masked"]].assign(
        labelled=values.take(table["label"].to_numpy()),
        predicted=values.take(table["predicted"].to_numpy()),
        score=table["confidence"],
    )
    rows[shares.columns] = shares
    label, each = table["label"].to_numpy(), np.arange(len(rows))
    rows["share"], rows["other"] = shares.to_numpy()[each, label], np.nan
    if other is not None:
        image, images = pd.factorize(other.table["image_id"])
        place = pc.fill_null(pc.index_in(pa.array(rows["image_id"]), pa.array(images)), -1)
        for name in shares:
            mean = np.append(np.bincount(image, other.table[name]) / np.bincount(image), np.nan)
            rows[f"other_{name}"] = mean[place]
        rows["other"] = rows.filter(regex=r"^other_p\d+$").to_numpy()[each, label]
    rows["difference"] = rows["share"] - rows["other"]
    return rows


def probability_table(
    rows: pd.DataFrame, written: pd.DataFrame, attribute: Attribute, name: str, against: str = ""
) -> pd.DataFrame:
    """Captions with the probability that attackers give each value, for a file.

    rows: of `caption_rows`. written: the set as kept. name, against: of the set, and of the other where there is one;
    its probabilities are means over its captions of the same image.
    """
    table = rows[["image_id", "caption_index", "labelled", "predicted"]].rename(columns={"predicted": "guess"})
    table.insert(2, "caption", written_captions(rows, written))
    for prefix, whose in (("p", name), ("other_p", against)):
        for place, value in enumerate(attribute.values if whose else ()):
            table[f"P({value}), {whose}"] = rows[f"{prefix}{place}"]
    return table


def written_captions(rows: pd.DataFrame, written: pd.DataFrame) -> pd.Series:
    """The captions of some rows as written. rows: with kept_at. written: the set as kept."""
    return pd.Series(written["caption"].array.take(rows["kept_at"].to_numpy()), rows.index, name="caption")


def _names_wrong(rows: pd.DataFrame, written: pd.DataFrame, attribute: Attribute) -> np.ndarray:
    """Rows whose caption names one value alone, and not the labelled one; as the metric error."""
    if not attribute.names_values:
        return np.zeros(len(rows), dtype=bool)
    labels = pd.Index(attribute.values).get_indexer(rows["labelled"])
    return wrong_names(names_in(written_captions(rows, written), attribute), labels)


def sort_orders(attribute: Attribute, with_difference: bool) -> list[str]:
    """The names of the orders that `select_rows` knows."""
    toward = [f"bias score, {value} first" for value in attribute.values]
    return [DIFFERENCE, *toward, IMAGE] if with_difference else [*toward, IMAGE]


def column_values(table: pd.DataFrame, column: str) -> list[str]:
    """What a column of a table of labels holds, each once, in order; of lists such as cat|dog their parts."""
    return sorted({part for text in _texts(table, column).unique() for part in text.split(BETWEEN) if part})


def images_with(table: pd.DataFrame, column: str, value: str) -> set[str]:
    """Images of a table of labels that have this value, or this part of a list, in a column."""
    texts = _texts(table, column)
    with_value = {text for text in texts.unique() if value in text.split(BETWEEN)}
    return {*table.loc[texts.isin(with_value), "image_id"]}


def _texts(table: pd.DataFrame, column: str) -> pd.Series:
    return table[column].fillna("").astype(str)


def select_rows(
    rows: pd.DataFrame, written: pd.DataFrame, attribute: Attribute, order: str, filters: Filters
) -> pd.DataFrame:
    """Which rows of `caption_rows` pass the filters, sorted; difference sorts by size, either way.

    written: the set as kept.
    Returns image_id and caption_index alone, with the index of `rows`: captions are many, and a page shows few.
    Raises CapbiasError for a regular expression that cannot be read, or takes too long.
    """
    kept = np.ones(len(rows), dtype=bool)
    if filters.group:
        kept &= (rows["labelled"] == filters.group).to_numpy()
    if filters.word:
        kept &= _with_word(rows["masked"], filters.word.lower().strip())
    if filters.query.strip():
        kept &= _found(rows, written, filters.query.strip(), filters.pattern)
    if filters.kind:
        kept &= _of_kind(rows, written, filters.kind, attribute)
    if filters.images is not None:
        kept &= rows["image_id"].isin(filters.images).to_numpy()
    named = rows[["image_id", "caption_index"]]
    by_score = {f"bias score, {value} first": f"p{place}" for place, value in enumerate(attribute.values)}
    if order != DIFFERENCE and order not in by_score:
        return named[kept].sort_values(["image_id", "caption_index"], kind="stable")
    falling = rows[by_score[order]] if order in by_score else rows["difference"].abs()
    places = np.flatnonzero(kept)
    return named.iloc[places[np.argsort(-falling.to_numpy()[places], kind="stable")]]  # what is missing comes last


def _with_word(masked: pd.Series, word: str) -> np.ndarray:
    """Captions with a whole word, or several in a row; looked for in those that have its letters."""
    found = np.array(masked.str.contains(word, regex=False), dtype=bool)
    found[found] = (" " + masked[found] + " ").str.contains(f" {word} ", regex=False)
    return found


def _found(rows: pd.DataFrame, written: pd.DataFrame, query: str, pattern: bool) -> np.ndarray:
    """Rows whose caption has a text or an expression, whatever its case, and those of an image with that id."""
    if not pattern:
        found = written["caption"].str.contains(query, case=False, regex=False)
    else:
        texts = pa.array(written["caption"], pa.string())
        found = within_seconds(SEARCH_SECONDS, "The regular expression", matching, texts, query)
    return np.asarray(found, dtype=bool)[rows["kept_at"]] | (rows["image_id"] == query).to_numpy()


def _of_kind(rows: pd.DataFrame, written: pd.DataFrame, kind: str, attribute: Attribute) -> np.ndarray:
    if kind == WRONG:
        return _names_wrong(rows, written, attribute)
    sure, not_sure = ("share", "other") if kind == OWN else ("other", "share")
    return ((rows[sure] >= GIVES_AWAY) & (rows[not_sure] <= 1 / len(attribute.values))).to_numpy()


def captions_with(scores: CaptionScores, word: str, number: int) -> tuple[int, list[int]]:
    """How many captions of a set contain a word after masking, and the rows of those in which it adds most.

    Most is the largest size of what all its places in the caption add to a logit, either way; of equal ones the first.
    """
    masked = scores.table["masked"]
    rows = np.flatnonzero(_with_word(masked, word))
    if not len(rows):
        return 0, []
    tokens = pc.split_pattern(pa.array(masked.iloc[rows], pa.large_string()), " ")
    lengths = pc.list_value_length(tokens).to_numpy()
    starts = np.cumsum(lengths) - lengths
    at = np.flatnonzero(pc.equal(tokens.flatten(), word).to_numpy(zero_copy_only=False))
    row = np.searchsorted(starts, at, side="right") - 1
    added = np.zeros((len(rows), scores.words.shape[1]))
    np.add.at(added, row, scores.words[scores.offsets[rows[row]] + at - starts[row]])
    strongest = np.argsort(-abs(added).max(axis=1), kind="stable")[:number]
    return len(rows), rows[strongest].tolist()


def toward(attribute: Attribute, words: np.ndarray, predicted: int) -> tuple[Attribute, np.ndarray]:
    """Signed contributions to colour: for two values as they are; for more, toward the predicted value or away.

    words: (T, C). Returns an attribute whose two values name the ends of the ramp, and (T,) values.
    """
    if words.shape[1] == 1:
        return attribute, words[:, 0]
    name = attribute.values[predicted]
    return replace(attribute, values=(f"away from {name}", name)), words[:, predicted]
