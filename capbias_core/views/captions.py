"""Captions of captioners and people side by side, those images first on which the guesses from them disagree most."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field as Described

from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.kinds import PHOTOGRAPHS
from capbias_core.types import counted
from capbias_core.views.choose import Choice
from capbias_core.views.results import in_order
from capbias_core.views.scored import (
    CaptionScores,
    Scored,
    caption_scores,
    runs_to_score,
    scored,
    toward,
    written_captions,
)
from capbias_core.views.sentence import listed, say
from capbias_core.views.view import Field, View, ViewOptions
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Workspace

MOST = 6  # captioners side by side
COLUMNS = ("image_id", "labelled", "disagreement", "captioner", "caption", "n", "guess", "probability", "value")
COLUMNS += ("words", "metric", "setting", "setting_name", "other")


class CaptionsOptions(ViewOptions):
    beside: tuple[str, ...] = Described(
        default=(), description="captioners and human captions beside it (default: people's and the others, six in all)"
    )
    top: int = Described(default=20, ge=1, description="images")
    search: str = Described(default="", description="images with this text in a caption, or with this ID")
    labelled: str = Described(default="", description="images with this label")
    guess: str = Described(
        default="", description="images for which this value is guessed from the captioner that is read"
    )
    differ: bool = Described(default=False, description="images for which the guesses differ")
    pictured: bool = Described(default=False, description="images with a photograph first")


USUAL = CaptionsOptions()


def side_by_side(choice: Choice, sets: Scored, options: CaptionsOptions) -> list[str]:
    """The sets that stand beside each other, the captioner that is read first. Raises CapbiasError for an unknown one,
    and for more than MOST."""
    for name in options.beside:
        if name not in sets.sets:
            raise unknown_name("captioner", name, sets.sets)
    names = list(dict.fromkeys([choice.captioner, *(options.beside or list(sets.sets)[:MOST])]))
    if len(names) > MOST:
        raise CapbiasError(f"Here are {len(names)} captioners; at most {MOST} can be read side by side.", "Name fewer.")
    return names


def disagreements(scores: Sequence[CaptionScores]) -> pd.DataFrame:
    """The images that all of these sets have, in the order of their IDs.

    Columns: image_id; labelled (the value); p0, p1, ... (per set the probability of the labelled value, the mean over
    the set's captions of the image); guess0, guess1, ... (of the first caption); disagreement (largest minus smallest
    of p0.., 0 to 1; nan of one set).
    """
    values = np.array(scores[0].attribute.values, dtype=object)
    columns: dict[str, pd.Series] = {}
    for index, of_set in enumerate(scores):
        table = of_set.table
        of_label = of_set.shares[np.arange(len(table)), table["label"].to_numpy()]
        columns[f"p{index}"] = pd.Series(of_label, table["image_id"]).groupby(level=0).mean()
        first = table.sort_values("caption_index", kind="stable").drop_duplicates("image_id").set_index("image_id")
        columns[f"guess{index}"] = pd.Series(values[first["predicted"]], first.index)
        columns.setdefault("labelled", pd.Series(values[first["label"]], first.index))
    listed = pd.concat(columns, axis=1, join="inner").sort_index().rename_axis("image_id").reset_index()
    shares = listed[[f"p{index}" for index in range(len(scores))]]
    return listed.assign(disagreement=shares.max(axis=1) - shares.min(axis=1) if len(scores) > 1 else np.nan)


def listed_images(choice: Choice, options: CaptionsOptions = USUAL) -> tuple[list[str], Scored, pd.DataFrame]:
    """The sets side by side, and the images that pass the filters as in `disagreements`, those on which the sets
    disagree most first; of one scored set those first whose label is surest. `attrs`: how many images there are, and on
    how many the guesses differ, before filters."""
    sets = scored(choice)
    names = side_by_side(choice, sets, options)
    if choice.captioner not in sets.runs:
        return names, sets, pd.DataFrame(columns=["image_id"])
    able = [name for name in names if name in sets.runs]
    scores = {name: caption_scores(sets.runs[name]) for name in able}
    rows = disagreements(list(scores.values()))
    guesses = rows[[f"guess{index}" for index in range(len(able))]]
    differ = guesses.ne(guesses["guess0"], axis=0).any(axis=1)
    rows.attrs = {"images": len(rows), "differ": int(differ.sum()), "sets": able}
    rows.attrs["right"] = int((rows["guess0"] == rows["labelled"]).sum())
    for key, column in (("labelled", "labelled"), ("guess", "guess0")):
        if (value := getattr(options, key)) and value not in choice.defined.values:
            raise unknown_name(key, value, choice.defined.values)
        rows = rows[rows[column] == value] if value else rows
    if options.differ:
        rows = rows[differ.reindex(rows.index)]
    if query := options.search.strip():
        images = {query}
        for name in names:
            written = choice.workspace.frame(sets.sets[name].hash)
            images |= set(written["image_id"][written["caption"].str.contains(query, case=False, regex=False)])
        rows = rows[rows["image_id"].isin(images)]
    rows = rows.sort_values("disagreement" if len(able) > 1 else "p0", ascending=False, kind="stable")
    if options.pictured:
        have = photographed(choice.workspace, choice.collection)
        rows = rows.iloc[np.argsort(~rows["image_id"].isin(have).to_numpy(), kind="stable")]
    return names, sets, rows


def photographed(workspace: Workspace, collection: str) -> set[str]:
    """The images with a photograph."""
    items = [item for item in workspace.items(PHOTOGRAPHS, collection) if "condition" not in item.details]
    return set().union(*(workspace.frame(item.hash)["image_id"] for item in items))


def caption_rows(choice: Choice, options: CaptionsOptions = USUAL) -> pd.DataFrame:
    """A row for each image and set: the first caption, the guess from it and its probability, value (probability of the
    label, the mean over the set's n captions of the image), and what each word adds."""
    names, sets, images = listed_images(choice, options)
    of_image = images.head(options.top).set_index("image_id")
    parts = []
    for name in names if len(of_image) else ():
        written = choice.workspace.frame(sets.sets[name].hash)
        part = written[written["image_id"].isin(of_image.index)][["image_id", "caption_index", "caption"]]
        if name in sets.runs:
            scores = caption_scores(sets.runs[name])
            rows = scores.table.index[scores.table["image_id"].isin(of_image.index)]
            part = caption_table(scores, written, rows).drop(columns="labelled")
            part["value"] = part.groupby("image_id")["p_label"].transform("mean")
        part = part.sort_values("caption_index", kind="stable")
        part = part.assign(captioner=name, n=part.groupby("image_id")["caption"].transform("size"))
        parts.append(part.drop_duplicates("image_id").set_index("image_id").reindex(of_image.index).reset_index())
    if not parts:
        return pd.DataFrame(columns=list(COLUMNS))
    rows = pd.concat(parts, ignore_index=True).join(of_image[["labelled", "disagreement"]], on="image_id")
    rows = in_order(rows, image_id=of_image.index)
    same = "" if sets.other else choice.setting
    rows = rows.assign(metric="p_label", setting=same, setting_name=sets.attacker, other=sets.other)
    rows = rows.reindex(columns=list(COLUMNS))
    rows.attrs = images.attrs
    return rows


def words_alone(captions: Sequence[Sequence[str]]) -> list[list[str]]:
    """Of each caption the words that none of the others has.

    >>> words_alone([["a", "man"], ["a", "dog"], ["the", "dog"]])
    [['man'], [], ['the']]
    """
    has = [set(words) for words in captions]
    others = [set().union(*has[:index], *has[index + 1 :]) for index in range(len(has))]
    return [
        [word for word in words if word not in elsewhere] for words, elsewhere in zip(captions, others, strict=True)
    ]


def caption_table(scores: CaptionScores, written: pd.DataFrame, rows: Sequence[int] | None = None) -> pd.DataFrame:
    """A row for each scored caption of a set. rows: only these of `scores.table`. written: the set as stored.

    Columns: captioner, image_id, caption_index, caption, labelled, guess, probability (of the guess), p_label (of the
    label), words: a list of pairs, a word as the attacker reads it and what it adds to the logit; of two values
    positive toward the second, of more toward the guess.
    """
    table = scores.table if rows is None else scores.table.loc[list(rows)]
    values = np.array(scores.attribute.values, dtype=object)
    words: list[list[tuple[str, float]]] = []
    for row, masked, guess in zip(table.index, table["masked"], table["predicted"], strict=True):
        added = toward(scores.attribute, scores.words_of(row), guess)[1]
        words.append(list(zip(masked.split(), added.tolist(), strict=True)))
    named = table.assign(captioner=scores.run.spec.model)[["captioner", "image_id", "caption_index"]]
    return named.assign(
        caption=written_captions(table, written),
        labelled=values[table["label"]],
        guess=values[table["predicted"]],
        probability=table["confidence"],
        p_label=scores.shares[table.index, table["label"]],
        words=words,
    ).reset_index(drop=True)  # fmt: skip


def report_captions(scored_sets: Iterable[tuple[CaptionScores, pd.DataFrame]]) -> pd.DataFrame:
    """`report.captions`: `caption_table` of each captioner, called `model` as in the other tables of a report.
    scored_sets: scores with the captions as read."""
    tables = [caption_table(scores, written) for scores, written in scored_sets]
    rows = pd.concat(tables, ignore_index=True).rename(columns={"captioner": "model"})
    return rows.sort_values(["model", "image_id", "caption_index"], kind="stable", ignore_index=True)


# captions to read beside a chart


def to_read(
    scores: CaptionScores, word: str = "", images: Collection[str] | None = None, first: Collection[str] = ()
) -> list[int]:
    """The rows of scores to read, one for each image: with a word those first to which it adds most, else those whose
    label is guessed most surely. images: only these. first: images that stand first, such as those with a photograph.
    """
    table = scores.table
    chosen = scores.with_word(word) if word else np.ones(len(table), dtype=bool)
    if images is not None:
        chosen &= table["image_id"].isin(images).to_numpy()
    rows = np.flatnonzero(chosen)
    strength = scores.shares[rows, table["label"].to_numpy()[rows]]
    if word:
        texts = zip(rows, table["masked"].iloc[rows].str.split(), strict=True)
        added = [scores.words_of(int(row))[[token == word for token in tokens]].sum(axis=0) for row, tokens in texts]
        strength = np.array([abs(each).max() for each in added])  # of all places of the word
    ordered = table.iloc[rows[np.argsort(-strength, kind="stable")]].drop_duplicates("image_id")
    return ordered.index[np.argsort(~ordered["image_id"].isin(first).to_numpy(), kind="stable")].tolist()


# the view


def caption_sentence(choice: Choice, rows: pd.DataFrame) -> str:
    about: dict[str, Any] = rows.attrs
    if rows.empty:
        return say("captions.no_image" if about.get("images") else "captions.none", captioner=choice.captioner)
    images = counted(about["images"], "image")
    if len(about["sets"]) < 2:
        return say("captions.right", captioner=choice.captioner, right=about["right"], images=images)
    return say("captions.differ", sets=listed(about["sets"]), differ=about["differ"], images=images)


def caption_notes(choice: Choice, rows: pd.DataFrame) -> Sequence[str]:
    if rows.empty:
        return ()
    lines = [say("captions.how")]
    if unread := [name for name, part in rows.groupby("captioner", sort=False) if part["value"].isna().all()]:
        lines.append(say("captions.unscored", names=listed(unread)))
    if other := rows["other"].iloc[0]:
        lines.append(say("captions.other", other=other, setting=choice.setting_name))
    return [*lines, choice.defined.note]


def runs_for_captions(choice: Choice, options: CaptionsOptions = USUAL) -> list[RunSpec]:
    """What the attacker of the setting still has to score."""
    return runs_to_score(choice, side_by_side(choice, scored(choice), options))


CAPTIONS = View(
    name="captions",
    question="What do captioners say of the same image?",
    rows=caption_rows,
    columns=(
        Field("image_id", label="image"),
        Field("labelled"),
        Field("disagreement", digits=2, help="largest minus smallest probability of the label, 0 to 1"),
        Field("caption", across=True),
        Field("value", label="P(label)", digits=2, across=True, help="probability of the label, by the classifier"),
    ),
    sentence=caption_sentence,
    by="image_id",
    across="captioner",
    options=CaptionsOptions,
    notes=caption_notes,
    needs=runs_for_captions,
    example="""\
  capbias view captions --collection coco --captioner oscar sat
  capbias view captions --collection coco --captioner oscar --differ \\
    --output captions.csv""",
)
