"""Read captions: filter and sort them, one image from every captioner, words coloured, what if, words over the set."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from capbias_core.analysis.caption_filters import caption_rows, select_rows, sort_orders
from capbias_core.analysis.read import CaptionScores, caption_runs, scoring_attackers
from capbias_core.prepare import tokenize
from capbias_core.present.words import STYLE, legend
from capbias_core.runs.engine import Engine
from capbias_core.types import Attribute
from capbias_core.workspace.ingest import picture_path
from capbias_core.workspace.store import RunRow
from pages.ui import cached, view
from pages.ui.base import collection_picker, empty_state, errors, note, page
from pages.ui.coloured import coloured_caption
from pages.ui.encoder_view import other_encoders
from pages.ui.running import progress, score_now
from pages.ui.table import draw_table
from pages.ui.what_if import what_if

PAGE = 50
NOBODY = "nobody"
EVERYONE = "all"


def main() -> None:
    engine = page("Captions")
    st.html(STYLE)
    collection = collection_picker(engine.workspace)
    progress(engine)
    runs = _runs(engine, collection) if collection else {}
    if not runs:
        empty_state(engine, "No caption is scored yet.")
        if collection:
            with errors():
                score_now(engine, collection)
        return
    name = view.selectbox(st.sidebar, "Captions of", list(runs), key="captioner", missing="the captions of")
    # Reading starts at the difference: beside the human captions where there are any.
    others = [*(other for other in reversed(runs) if other != name), NOBODY]
    against = view.selectbox(st.sidebar, "Against", others, key="against", missing="the captions of")
    own = cached.scores(engine.folder, runs[name].run_id)
    rows = _rows(engine.folder, runs[name].run_id, runs[against].run_id if against != NOBODY else "")
    chosen = _filtered(rows, own.attribute, against)
    if chosen.empty:
        note("No caption fits these filters.")
    else:
        image, beside = _table(chosen, name, against)
        st.divider()
        _one_image(engine, collection, runs, name, image, beside)
    st.divider()
    _words(engine, runs[name], own, name)
    note(own.attribute.note)


def _runs(engine: Engine, collection: str) -> dict[str, RunRow]:
    """Scored sets of the chosen attribute and attacker, by name."""
    found = {}
    for table in engine.workspace.items("attributes", collection):
        for attribute in table.details["attributes"]:
            for attacker in scoring_attackers(engine.workspace, collection):
                runs = caption_runs(engine.workspace, collection, attribute, attacker)
                if runs:
                    found[f"{attribute}, {attacker}"] = runs
    if not found:
        return {}
    chosen = view.selectbox(st.sidebar, "Attribute and attacker", list(found), key="by", missing="the scores by")
    human = {item.name for item in engine.workspace.items("references", collection)}
    return dict(sorted(found[chosen].items(), key=lambda pair: (pair[0] in human, pair[0])))


@st.cache_resource(show_spinner=False, max_entries=16)
def _rows(folder: str, run_id: str, other_id: str) -> pd.DataFrame:
    own = cached.scores(folder, run_id)
    written = cached.captions(folder, own.run.spec.captions)
    return caption_rows(own, written, cached.scores(folder, other_id) if other_id else None)


def _filtered(rows: pd.DataFrame, attribute: Attribute, against: str) -> pd.DataFrame:
    side = st.sidebar
    orders = sort_orders(attribute, against != NOBODY)
    order = view.selectbox(side, "Sort by", orders, key="sort")
    group = view.selectbox(side, "Labelled", [EVERYONE, *attribute.values], key="group")
    word = view.text(side, "With the word", key="word", help="A whole word, after masking.")
    query = view.text(side, "Search captions or an image id", key="q")
    view.text(side, "Image shown below", key="image")
    return select_rows(rows, attribute, order, "" if group == EVERYONE else group, word, query)


def _table(chosen: pd.DataFrame, name: str, against: str) -> tuple[str, list[str]]:
    """A page of captions; the image of the selected row, and those of the page."""
    pages = -(-len(chosen) // PAGE)
    left, right = st.columns([4, 1], vertical_alignment="bottom")
    with left:
        note(f"{len(chosen):,} captions of {name}. Select a row to see its image.")
    number = view.number(right, f"Page of {pages:,}", 1, pages, 1, key="page")
    part = chosen.iloc[(number - 1) * PAGE : number * PAGE]
    shown = pd.DataFrame(
        {
            "caption": part["caption"],
            "bias score": [f"{score:.2f} {to}" for score, to in zip(part["score"], part["predicted"], strict=True)],
            "difference": part["difference"].round(2),
            "labelled": part["labelled"],
            "image": part["image_id"],
        }
    )
    if against == NOBODY:
        shown = shown.drop(columns="difference")
    key = f"captions_{name}_{against}_{number}_{len(chosen)}"
    draw_table(
        shown,
        height=400,
        selection_mode="single-row",
        key=key,
        alt=f"Captions of {name}",
        on_select=partial(_pick, key, "image", list(part["image_id"])),
        column_config={
            "difference": st.column_config.NumberColumn(
                format="%+.2f", help=f"Probability of the labelled value, {name} minus {against}."
            )
        },
    )
    images = list(part["image_id"])
    return st.session_state["image"].strip() or images[0], images


def _pick(key: str, target: str, values: list[str]) -> None:
    """Put the value of the row that was just selected into a filter, before the page is drawn."""
    selected = st.session_state[key].selection.rows
    if selected:
        st.session_state[target] = values[selected[0]]
        if target == "word":  # the captions listed are others, and so is the first image
            st.session_state["image"] = ""


def _one_image(
    engine: Engine, collection: str, runs: dict[str, RunRow], name: str, image: str, beside: list[str]
) -> None:
    """One image: its photograph where there is one, and its captions from everyone, words coloured.

    beside: the images of the page, which another encoder reads at the same time.
    """
    st.header(f"Image {image}" if image.isalnum() else "The image")
    picture = picture_path(engine.workspace, collection, image)
    left, right = st.container(key="stacks").columns([1, 2], gap="large") if picture else (None, st.container())
    if picture:
        left.image(str(picture), width="stretch", alt=f"Photograph {image}")
    shown = [
        (other, scores, place)
        for other, scores in ((other, cached.scores(engine.folder, run.run_id)) for other, run in runs.items())
        for place in scores.table.index[scores.table["image_id"] == image]
    ]
    with right:
        if not shown:
            note(f"No scored caption of image {image}.")
            return
        _, first, place = shown[0]
        label = first.attribute.values[int(first.table.at[place, "label"])]
        note(
            f"Labelled {label}. The number shows how confident the attackers are in their guess; they did not train on "
            "this image."
        )
        st.html(legend(first.attribute))
        # One colour scale for all captions of the image, so that they can be compared.
        largest = max(float(abs(scores.words_of(place)).max(initial=0.0)) for _, scores, place in shown)
        for other, scores, place in shown:
            _caption(engine, other, scores, place, largest)
    for other, scores, place in shown:
        if other == name:
            originals = tokenize(_written(engine, scores, place))
            other_encoders(engine, collection, runs[name], scores, place, beside, originals)
            what_if(engine, scores, place, _written(engine, scores, place), largest)
            return


def _written(engine: Engine, scores: CaptionScores, place: int) -> str:
    """The caption at this row, as it was written."""
    written = cached.captions(engine.folder, scores.run.spec.captions)
    return written["caption"].iloc[scores.table.at[place, "kept_at"]]


def _caption(engine: Engine, name: str, scores: CaptionScores, place: int, largest: float) -> None:
    row = scores.table.loc[place]
    delta = f", convergence delta {row['delta']:.3f}" if row["delta"] > 0 else ""
    coloured_caption(
        name,
        row["masked"].split(),
        scores.words_of(place),
        scores.attribute,
        int(row["predicted"]),
        row["confidence"],
        tokenize(_written(engine, scores, place)),
        largest,
        delta,
    )


def _words(engine: Engine, run: RunRow, own: CaptionScores, name: str) -> None:
    """The corpus table; a click lists the captions with the word."""
    st.header("Most revealing words")
    attribute = own.attribute
    table = cached.words(engine.folder, run.run_id)
    smallest = view.number(st, "In at least this many captions", 1, None, 10, key="smallest")
    table = table[(table["count"] >= smallest) & (table["word"] != attribute.mask_token)]
    means = table[[column for column in table if column.startswith("mean")]].to_numpy()
    two = means.shape[1] == 1
    place = (means[:, 0] > 0).astype(int) if two else means.argmax(axis=1)
    strength = abs(means[:, 0]) if two else means.max(axis=1)
    shown = pd.DataFrame(
        {
            "word": table["word"].to_numpy(),
            "pushes toward": [attribute.values[value] for value in place],
            "mean": strength,
            "count": table["count"].to_numpy(),
            **{
                f"share of {value}": 100 * table[f"share{number}"].to_numpy()
                for number, value in enumerate(attribute.values)
            },
        }
    ).sort_values("mean", ascending=False, ignore_index=True)
    formats = {f"share of {value}": st.column_config.NumberColumn(format="%.1f%%") for value in attribute.values}
    key = f"words_{run.run_id}_{smallest}"
    draw_table(
        shown,
        height=360,
        selection_mode="single-row",
        key=key,
        on_select=partial(_pick, key, "word", list(shown["word"])),
        column_config={"mean": st.column_config.NumberColumn(format="%.3f"), **formats},
        alt=f"Words of {name} and what they add",
    )
    note(
        "Mean: what the word adds to the logit of the captions that contain it. Share: of the captions of each "
        "labelled value. Select a word to list its captions."
    )


if __name__ == "__main__":  # a worker that starts imports the page, and must not draw it
    with errors():
        main()
