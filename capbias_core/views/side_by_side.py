"""Captions of several captioners side by side: the images on which their guesses disagree most, and the words that only
one of them has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Annotated

import numpy as np
import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.measures.options import Option
from capbias_core.prepare import tokenize
from capbias_core.views.captions import CaptionScores, caption_scores
from capbias_core.views.rows import dots_chart
from capbias_core.views.view import Run, Scope, Shown, nothing_run
from capbias_core.views.word_comparison import scored_alike

FEWEST, MOST = 2, 6  # captioners
TOP = 20  # images of the view `side-by-side`
HOW = (
    "Disagreement: the largest minus the smallest probability of the labelled value over the captioners (of several "
    "captions of an image, their mean), 0 to 1. Attackers of each captioner read its captions, so they may disagree on "
    "equal captions too."
)


def disagreements(scores: Sequence[CaptionScores]) -> pd.DataFrame:
    """The images that all of these sets have, in the order of their IDs.

    Columns: image_id; caption_index (0); labelled (the value); p0, p1, ... (per set the probability of the labelled
    value, the mean over the set's captions of the image); disagreement (largest minus smallest of these, 0 to 1).
    """
    parts = []
    for index, set_scores in enumerate(scores):
        label = set_scores.table["label"].to_numpy()
        shares = set_scores.table[[f"p{value}" for value in range(len(set_scores.attribute.values))]].to_numpy()
        of_label = pd.Series(shares[np.arange(len(label)), label], set_scores.table["image_id"], name=f"p{index}")
        parts.append(of_label.groupby(level=0).mean())
    table = pd.concat(parts, axis=1, join="inner").sort_index()
    label = scores[0].table.drop_duplicates("image_id").set_index("image_id")["label"].reindex(table.index)
    values = pd.Series(scores[0].attribute.values, dtype="str").array
    columns = {
        "caption_index": 0,
        "labelled": values.take(label.to_numpy(dtype=int)),
        "disagreement": table.max(axis=1) - table.min(axis=1),
    }
    return table.assign(**columns).rename_axis("image_id").reset_index()


def first_rows(scores: CaptionScores, images: Sequence[str]) -> list[int]:
    """The row of the first caption of each of these images in scores.table."""
    first = scores.table.sort_values("caption_index", kind="stable").drop_duplicates("image_id")
    return pd.Series(first.index, first["image_id"]).loc[list(images)].tolist()


def words_alone(captions: Sequence[Sequence[str]]) -> list[np.ndarray]:
    """Of each caption the words that none of the others has: booleans, one per word.

    >>> [mask.tolist() for mask in words_alone([["a", "man"], ["a", "dog"], ["the", "dog"]])]
    [[False, True], [False, False], [True, False]]
    """
    has = [set(words) for words in captions]
    others = [set().union(*has[:index], *has[index + 1 :]) for index in range(len(has))]
    return [
        np.array([word not in elsewhere for word in words], dtype=bool)
        for words, elsewhere in zip(captions, others, strict=True)
    ]


def side_by_side_rows(
    scores: Mapping[str, CaptionScores], written: Mapping[str, pd.DataFrame], listed: pd.DataFrame
) -> pd.DataFrame:
    """Rows for a file, one per image and captioner.

    scores, written: of each captioner, and its captions as stored. listed: rows of `disagreements` of these scores.
    Columns: image_id; labelled; disagreement; captioner; caption (the first of the image); guess and bias_score (the
    value that the attacker guesses from it, and its probability); p_label (as in `disagreements`); only_here (its words
    that no other listed caption of the image has).
    """
    images, columns = listed["image_id"].tolist(), []
    rows = {name: first_rows(captioner_scores, images) for name, captioner_scores in scores.items()}
    captions = {
        name: written[name]["caption"].array.take(captioner_scores.table.loc[rows[name], "kept_at"].to_numpy())
        for name, captioner_scores in scores.items()
    }
    alone = [words_alone(words) for words in zip(*(map(tokenize, captions[name]) for name in scores), strict=True)]
    for index, (name, captioner_scores) in enumerate(scores.items()):
        first = captioner_scores.table.loc[rows[name]]
        columns.append(
            pd.DataFrame(
                {
                    "image_id": images,
                    "labelled": listed["labelled"].to_numpy(),
                    "disagreement": listed["disagreement"].to_numpy(),
                    "captioner": name,
                    "caption": captions[name],
                    "guess": [captioner_scores.attribute.values[value] for value in first["predicted"]],
                    "bias_score": first["confidence"].to_numpy(),
                    "p_label": listed[f"p{index}"].to_numpy(),
                    "only_here": [
                        " ".join(np.array(tokenize(caption), dtype=object)[of_image[index]])
                        for caption, of_image in zip(captions[name], alone, strict=True)
                    ],
                }
            ).assign(place=range(len(images)))
        )
    table = pd.concat(columns, ignore_index=True).sort_values("place", kind="stable", ignore_index=True)
    return table.drop(columns="place")


def checked(names: Sequence[str]) -> None:
    """Raises CapbiasError unless there are FEWEST to MOST captioners."""
    if not FEWEST <= len(names) <= MOST:
        raise CapbiasError(
            f"Side by side are {FEWEST} to {MOST} captioners, and here are {len(names)}: {', '.join(names)}.",
            "Name them with --captioner.",
        )


def side_by_side(
    scope: Scope, top: Annotated[int, Option("images", at_least=1, metavar="N")] = TOP, run: Run = nothing_run
) -> Shown:
    """The images on which captioners disagree most, with the caption and the guess of each. top: how many images.

    run: scores captions one by one first, where they were not. Raises CapbiasError unless there are 2 to 6 captioners,
    whose captions were scored one by one.
    """
    checked(scope.captioners)
    workspace, scores, written = scope.workspace, {}, {}
    for name in scope.captioners:
        scored = scored_alike(workspace, scope.collection, scope.run(name).spec, run)
        scores[name], written[name] = caption_scores(workspace, scored), workspace.frame(scored.spec.captions)
    table = disagreements(list(scores.values())).sort_values("disagreement", ascending=False, kind="stable")
    rows = side_by_side_rows(scores, written, table[:top])
    title = f"Where {', '.join(scope.captioners)} disagree on {scope.attribute}"
    notes = (f"{len(table):,} images have captions of all {len(scores)}; listed: {len(table[:top]):,}.", HOW)
    label = rows["image_id"].astype(str) + " · " + rows["captioner"]
    dots = rows.assign(panel="Probability of the labelled value", label=label, value=rows["p_label"])
    return Shown(title, rows, "", notes, cells(rows), lambda: dots_chart(dots))


def cells(rows: pd.DataFrame) -> pd.DataFrame:
    """`side_by_side_rows` for a reader."""
    return pd.DataFrame(
        {
            "image": rows["image_id"],
            "labelled": rows["labelled"],
            "disagreement": [f"{value:.2f}" for value in rows["disagreement"]],
            "captioner": rows["captioner"],
            "guess": [f"{to} {score:.0%}" for to, score in zip(rows["guess"], rows["bias_score"], strict=True)],
            "caption": rows["caption"],
            "only here": rows["only_here"],
        }
    )


STYLE = """<style>
.cb-columns {display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 13.5rem), 1fr)); gap: .9rem 1.1rem}
.cb-columns > section {border-top: 3px solid var(--cb-grey); padding-top: .35rem; min-width: 0}
.cb-columns header {display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 .6rem}
.cb-columns header b {overflow-wrap: anywhere}
</style>"""


def column(name: str, guess: str, words: str, below: str = "") -> str:
    """HTML of one captioner's column. words: HTML of its caption, as `words.coloured_words` gives it; the rest is
    text."""
    small = f'<div class="cb-note">{escape(below)}</div>' if below else ""
    return f"<section><header><b>{escape(name)}</b><span>{escape(guess)}</span></header>{words}{small}</section>"


def columns(sections: Sequence[str]) -> str:
    """HTML of columns, as many beside each other as fit. sections: of `column`."""
    return f'{STYLE}<div class="cb-columns">{"".join(sections)}</div>'
