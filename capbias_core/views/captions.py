"""Scored captions to read: filtered, sorted, beside another set's, by other encoders, and for a person to guess."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from urllib.parse import quote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from capbias_core.aggregate.resampling import wilson
from capbias_core.attackers import ATTACKERS, attacker_entry
from capbias_core.attackers.what_if import Rescored, StoredAttackers
from capbias_core.load.tables import BETWEEN
from capbias_core.measures.base import from_npy
from capbias_core.measures.caption_scores import ENCODER_VIEW as MEASURE
from capbias_core.measures.caption_scores import attention_from
from capbias_core.measures.naming import names_in
from capbias_core.measures.registry import MEASURES
from capbias_core.metrics.captions import wrong_names
from capbias_core.prepare import child_seed
from capbias_core.prepare.split import random_order
from capbias_core.prepare.text import matching
from capbias_core.types import Attention, Attribute
from capbias_core.views.charts import BLUE_MARK, GREY, ORANGE_MARK
from capbias_core.views.results import attribute_of_run, current_runs, runs_with
from capbias_core.workspace.limited import within_limits
from capbias_core.workspace.models import encoder_option
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Item, RunRow, Workspace, bytes_frame


@dataclass(frozen=True)
class CaptionScores:
    """Out-of-fold bias scores of one caption set, and what each word adds."""

    run: RunRow
    attribute: Attribute
    # image_id, caption_index, kept_at (row of the caption in the stored set), fold, label (int), masked (str), tokens
    # (how many), logit0.., baseline0.., delta, p0.. (K probabilities), predicted (int) and confidence (its probability)
    table: pd.DataFrame
    words: np.ndarray  # (n, T_i, C) flattened
    offsets: np.ndarray  # (n + 1,) where each caption's words begin

    def words_of(self, row: int) -> np.ndarray:
        """(T, C) contributions of the masked tokens of the caption at this row."""
        return self.words[self.offsets[row] : self.offsets[row + 1]]

    def probabilities_of(self, row: int) -> np.ndarray:
        """(K,) what the attackers give each value, of the caption at this row."""
        return self.table.loc[row, [f"p{value}" for value in range(len(self.attribute.values))]].to_numpy(dtype=float)

    def intercept(self, row: pd.Series) -> float:
        """What the logit of a row of the table is without any word; of more than two values that of the predicted."""
        return float(row[f"baseline{0 if self.words.shape[1] == 1 else int(row['predicted'])}"])


def caption_scores(workspace: Workspace, run: RunRow) -> CaptionScores:
    """The per-caption table of a finished run of the measure `caption_scores`."""
    attribute = attribute_of_run(run)
    table = bytes_frame(workspace.array(run.run_id, "scores"))
    shares = table[[f"p{value}" for value in range(len(attribute.values))]].to_numpy()
    table["predicted"], table["confidence"] = shares.argmax(axis=1), shares.max(axis=1)
    words = from_npy(workspace.array(run.run_id, "words"))
    offsets = np.concatenate([[0], table["tokens"].cumsum().to_numpy()])
    return CaptionScores(run, attribute, table, words, offsets)


def stored_attackers(workspace: Workspace, run: RunRow, index: int = 0) -> StoredAttackers:
    """The linear attackers of a finished run of the measure `caption_scores`, for rescoring a caption of this index."""
    return StoredAttackers.from_bytes(workspace.array(run.run_id, f"attackers{index}"))


def scoring_attackers(workspace: Workspace, collection: str) -> list[str]:
    """Attackers that scored captions one by one: those of the table in its order, then models that users named."""
    used = {run.spec.attacker for run in current_runs(workspace, collection, "caption_scores")}
    return [name for name in ATTACKERS if name in used] + sorted(used - ATTACKERS.keys())


def caption_runs(
    workspace: Workspace, collection: str, attribute: str, attacker: str, table: Item
) -> dict[str, RunRow]:
    """Newest finished run of per-caption scores of each set, by name, for one attribute, attacker and table."""
    runs: dict[str, RunRow] = {}
    for run in runs_with(current_runs(workspace, collection, "caption_scores"), {attribute: table}):
        if run.spec.attacker == attacker:
            runs.setdefault(run.spec.model, run)
    return runs


DIFFERENCE = "difference"
IMAGE = "image id"
# Kinds of captions: one set gives the label away and the other does not, and a caption that names another value.
OWN, OTHER, WRONG = "own", "other", "wrong"
# The probability of the labelled value from which a caption gives it away.
GIVES_AWAY = 0.7
SEARCH_SECONDS = 5.0  # for a regular expression


@dataclass(frozen=True)
class Filters:
    """Which captions are listed; what is empty admits all."""

    group: str = ""  # the labelled value
    word: str = ""  # a whole word after masking
    query: str = ""  # text anywhere in the caption, or an image ID
    pattern: bool = False  # the query is a regular expression of RE2
    # OWN: the caption gives the labelled value a probability of GIVES_AWAY or more, the other set's captions of the
    # image at most chance, on average. OTHER: the reverse. WRONG: it names only another value.
    kind: str = ""
    images: Collection[str] | None = None  # images that count


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
        index = pc.fill_null(pc.index_in(pa.array(rows["image_id"]), pa.array(images)), -1)
        for name in shares:
            mean = np.append(np.bincount(image, other.table[name]) / np.bincount(image), np.nan)
            rows[f"other_{name}"] = mean[index]
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
        for index, value in enumerate(attribute.values if whose else ()):
            table[f"P({value}), {whose}"] = rows[f"{prefix}{index}"]
    return table


def written_captions(rows: pd.DataFrame, written: pd.DataFrame) -> pd.Series:
    """The captions of some rows as written. rows: with kept_at. written: the set as kept."""
    return pd.Series(written["caption"].array.take(rows["kept_at"].to_numpy()), rows.index, name="caption")


def column_values(table: pd.DataFrame, column: str) -> list[str]:
    """What a column of a table of labels holds, each once, in order; of lists such as cat|dog their parts."""
    texts = table[column].fillna("").astype(str).unique()
    return sorted({part for text in texts for part in text.split(BETWEEN) if part})


def images_with(table: pd.DataFrame, column: str, value: str) -> set[str]:
    """Images of a table of labels that have this value, or this part of a list, in a column."""
    texts = table[column].fillna("").astype(str)
    with_value = {text for text in texts.unique() if value in text.split(BETWEEN)}
    return {*table.loc[texts.isin(with_value), "image_id"]}


def select_rows(
    rows: pd.DataFrame, written: pd.DataFrame, attribute: Attribute, order: str, filters: Filters
) -> pd.DataFrame:
    """Which rows of `caption_rows` pass the filters, sorted; difference sorts by size, either way.

    written: the set as kept. Returns image_id and caption_index alone, with the index of `rows`: captions are many, and
    a page shows few. Raises CapbiasError for a regular expression that cannot be read, or takes too long.
    """
    selected, query = np.ones(len(rows), dtype=bool), filters.query.strip()
    if filters.group:
        selected &= (rows["labelled"] == filters.group).to_numpy()
    if filters.word:
        selected &= _with_word(rows["masked"], filters.word.lower().strip())
    if query:
        texts = written["caption"]
        if filters.pattern:
            texts = pa.array(texts, pa.string())
            matches = within_limits("The regular expression", matching, texts, query, seconds=SEARCH_SECONDS)
        else:
            matches = texts.str.contains(query, case=False, regex=False)
        selected &= np.asarray(matches, dtype=bool)[rows["kept_at"]] | (rows["image_id"] == query).to_numpy()
    if filters.kind == WRONG:  # as the metric error
        labels = pd.Index(attribute.values).get_indexer(rows["labelled"])
        named = attribute.names_values
        selected &= wrong_names(names_in(written_captions(rows, written), attribute), labels) if named else False
    elif filters.kind:
        sure, unsure = ("share", "other") if filters.kind == OWN else ("other", "share")
        selected &= ((rows[sure] >= GIVES_AWAY) & (rows[unsure] <= 1 / len(attribute.values))).to_numpy()
    if filters.images is not None:
        selected &= rows["image_id"].isin(filters.images).to_numpy()
    named = rows[["image_id", "caption_index"]]
    by_score = {f"bias score, {value} first": f"p{index}" for index, value in enumerate(attribute.values)}
    if order != DIFFERENCE and order not in by_score:
        return named[selected].sort_values(["image_id", "caption_index"], kind="stable")
    falling = rows[by_score[order]] if order in by_score else rows["difference"].abs()
    places = np.flatnonzero(selected)
    return named.iloc[places[np.argsort(-falling.to_numpy()[places], kind="stable")]]  # what is missing comes last


def _with_word(masked: pd.Series, word: str) -> np.ndarray:
    """Captions with a whole word, or several in a row; looked for in those that have its letters."""
    whole = np.array(masked.str.contains(word, regex=False), dtype=bool)
    whole[whole] = (" " + masked[whole] + " ").str.contains(f" {word} ", regex=False)
    return whole


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


def words_of_one(first: Sequence[str], second: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Words of each of two aligned captions that the other does not have at that place.

    Returns booleans, (T1,) and (T2,). The alignment is that of difflib: the longest runs of equal words, in order.

    >>> [mask.tolist() for mask in words_of_one("a man with a dog".split(), "a man holds a dog".split())]
    [[False, False, True, False, False], [False, False, True, False, False]]
    """
    alone = np.ones(len(first), dtype=bool), np.ones(len(second), dtype=bool)
    for block in SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks():
        for mask, start in zip(alone, (block.a, block.b), strict=True):
            mask[start : start + block.size] = False
    return alone


def closest(caption: Sequence[str], others: Sequence[Sequence[str]]) -> int:
    """Place of the caption that shares most words with this one, in order; the first of several.

    >>> closest(["a", "dog"], [["two", "cats"], ["a", "dog", "runs"]])
    1
    """
    matcher = SequenceMatcher(None, b=caption, autojunk=False)
    shares = []
    for other in others:
        matcher.set_seq1(other)
        shares.append(matcher.ratio())
    return int(np.argmax(shares))


# What must be the same for two attackers' views of a caption to stand side by side.
SAME = ("model", "captions", "labels", "attribute", "merge_masks")


@dataclass(frozen=True)
class EncoderView:
    """How an attacker reads the captions of some images after training on others."""

    scores: CaptionScores
    attention: tuple[Attention, ...]  # of each caption in the order of `scores.table`; () if the attacker has none


def plan_encoder_view(
    workspace: Workspace,
    scored: RunSpec,
    attacker: str,
    images: Sequence[str],
    training: Mapping | None = None,
    edits: Sequence[str] = (),
    edited: int = 0,
) -> RunSpec:
    """The run in which an attacker reads the captions of some images.

    scored: a run of `caption_scores` on the same set. training: device and deterministic, as options of runs. edits:
    of the caption with the index `edited` of one image, to be read too. Raises CapbiasError where the encoder cannot be
    had.
    """
    entry = attacker_entry(attacker)
    encoder = encoder_option(workspace, entry) if entry.model else None
    settings = {"attacker": entry.name, "images": sorted(set(images)), "merge_masks": scored.merge_masks}
    settings |= {"edits": tuple(edits), "edited": edited if edits else 0}
    options = MEASURE.options.read({**(training or {}), **settings, "encoder": encoder}).effective()
    return replace(scored, measure=MEASURE.name, version=MEASURE.version_with(entry.name), options=options.to_dict())


def plan_scores(scored: RunSpec, attacker: str) -> RunSpec:
    """The run in which an attacker from scratch scores the whole set of a run of `caption_scores`."""
    measure = MEASURES[scored.measure]
    options = measure.options.read({"attacker": attacker, "merge_masks": scored.merge_masks}).effective()
    return replace(scored, version=measure.version_with(attacker), options=options.to_dict())


def encoder_views(workspace: Workspace, collection: str, scored: RunRow, image: str) -> dict[str, RunRow]:
    """The newest finished view of an image by each attacker, those of the table in its order.

    scored: the run of `caption_scores` beside which they stand.
    """
    runs: dict[str, RunRow] = {}
    for run in current_runs(workspace, collection, MEASURE.name):
        if image in run.spec.options["images"] and all(
            getattr(run.spec, key) == getattr(scored.spec, key) for key in SAME
        ):
            runs.setdefault(run.spec.attacker, run)
    known = [*ATTACKERS, *sorted(runs.keys() - ATTACKERS.keys())]
    return {name: runs[name] for name in known if name in runs}


def encoder_view(workspace: Workspace, run: RunRow) -> EncoderView:
    """What a finished run of the measure `encoder_view` left."""
    attends = attacker_entry(run.spec.attacker).attends
    attention = attention_from(workspace.array(run.run_id, "attention")) if attends else []
    return EncoderView(caption_scores(workspace, run), tuple(attention))


def what_if(workspace: Workspace, run: RunRow) -> list[Rescored]:
    """A caption and its edits, by a finished run of the measure `encoder_view` with edits."""
    scores = caption_scores(workspace, run)
    table = scores.table
    logits, baselines = (table.filter(like=name).to_numpy() for name in ("logit", "baseline"))  # (n, C)
    return [
        Rescored(text.split(), scores.words_of(row), baselines[row], logits[row], scores.probabilities_of(row))
        for row, text in enumerate(table["masked"])
    ]


GUESSED = 20
LEAST_WORDS = 3  # beside masked ones; fewer say nothing


def draw_captions(scores: CaptionScores, name: str, draw: int = 1) -> pd.DataFrame:
    """Rows of scores.table in random order: one caption per image, and equally many images of each value.

    There are 20 captions, fewer if they cannot be shared equally among the values or the rarest value has too few
    images. name: of the caption set; each set has its order of images, so that answers from one set do not help with
    the next. draw: 1, 2, ...; no two draws share an image. Empty if too few images are left.
    """
    mask, k, seed = scores.attribute.mask_token, len(scores.attribute.values), zlib.crc32(name.encode())
    table = scores.table.sort_values(["image_id", "caption_index"])
    words = np.array([sum(word != mask for word in text.split()) for text in table["masked"]], dtype=int)
    table = table[words >= LEAST_WORDS].drop_duplicates("image_id")
    table = table.iloc[random_order(list(table["image_id"]), seed)]
    by_value = [table[table["label"] == value] for value in range(k)]
    size = min(GUESSED // k, *map(len, by_value))
    first = (draw - 1) * size
    if first + size > min(map(len, by_value)):
        return table[:0]
    drawn = pd.concat([rows[first : first + size] for rows in by_value])
    return drawn.iloc[random_order(list(drawn["image_id"]), child_seed(seed, draw))]


def score_guesses(drawn: pd.DataFrame, guesses: Sequence[int]) -> dict[str, float | int | None]:
    """Accuracy in percent of the guesses and of the attacker, with Wilson's 95% intervals. drawn: rows of
    `draw_captions`; guesses: the place of a value for each of them.

    Keys: n; value, ci_low and ci_high of the guesses; the same with the prefix attacker_.
    """
    label = drawn["label"].to_numpy()
    row: dict[str, float | int | None] = {"n": len(drawn)}
    for prefix, guessed in (("", guesses), ("attacker_", drawn["predicted"])):
        right = int((label == np.asarray(guessed)).sum())
        row[f"{prefix}value"] = 100 * right / len(label)
        for name, end in zip(("ci_low", "ci_high"), wilson(right / len(label), len(label)), strict=True):
            row[prefix + name] = None if end is None else 100 * end
    return row


BAR_WIDTH = 64  # pixels


def signed_bar(value: float) -> str:
    """A signed number, -1 to 1, as a picture for a table, beside the number as text: a bar to the left below 0, to the
    right above; an SVG in a data URI."""
    middle, height, thickness = BAR_WIDTH / 2, 60, 16
    size = min(1.0, abs(value)) * middle
    left, colour = (middle - size, ORANGE_MARK) if value < 0 else (middle, BLUE_MARK)
    drawing = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{BAR_WIDTH}" height="{height}">'
        f'<rect x="{left:.1f}" y="{(height - thickness) / 2}" width="{size:.1f}" height="{thickness}" fill="{colour}"/>'
        f'<path d="M{middle} 8V{height - 8}" stroke="{GREY}"/></svg>'
    )
    return f"data:image/svg+xml,{quote(drawing, safe=' /:=')}"


def lean(rows: pd.DataFrame, attribute: Attribute) -> pd.Series:
    """How far each caption leans: of two values the probability of the second minus that of the first, -1 to 1; of more
    that of the predicted value above chance, 0 to 1.

    rows: of `caption_rows`.
    """
    if len(attribute.values) == 2:
        return rows["p1"] - rows["p0"]
    chance = 1 / len(attribute.values)
    return (rows["score"] - chance) / (1 - chance)
