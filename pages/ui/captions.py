"""The tabs of Captions that read scored captions: the captions themselves, the words, and Guess yourself."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from capbias_core.attackers import FROM_SCRATCH, attacker_entry
from capbias_core.runs.engine import Engine
from capbias_core.runs.plan import PER_CAPTION, plan
from capbias_core.spreadsheets import csv_text
from capbias_core.types import Attribute, counted
from capbias_core.views.captions import (
    BAR_WIDTH,
    GIVES_AWAY,
    OTHER,
    OWN,
    WRONG,
    CaptionScores,
    Filters,
    caption_rows,
    caption_runs,
    lean,
    plan_scores,
    probability_table,
    scoring_attackers,
    select_rows,
    signed_bar,
    sort_orders,
    written_captions,
)
from capbias_core.views.results import current_runs, first_request
from capbias_core.views.sentence import signed
from capbias_core.views.words import STYLE
from capbias_core.workspace.labels import tables_with
from capbias_core.workspace.store import RunRow
from pages.ui import cached, view
from pages.ui.bar import Bar
from pages.ui.base import attribute_names, box, empty_state, errors, note, plain
from pages.ui.guess import guess_yourself
from pages.ui.one_image import more_of_image, read_image, show_caption, side_by_side, steps
from pages.ui.present import present_caption
from pages.ui.revealing_words import revealing_words
from pages.ui.running import active_runs, nothing_scored, start_button
from pages.ui.table import FOUR_LINES, draw_table, select_row, selected_row

PAGE = 50
CAPTION_WIDTH, DIFFERENCE_WIDTH, HEIGHT = 240, 76, 540  # pixels
NOBODY = "nobody"
EVERYONE = "all"
ATTACKER = "Word contributions are exact for ngram. For networks they are integrated gradients, an approximation."
KINDS = (
    f"A caption reveals the label if the attacker gives it a probability of {GIVES_AWAY:g} or more, and hides it if "
    "that is chance or less. Wrong: the caption names one value only, and not the labelled one."
)


def captions_tab(bar: Bar) -> None:
    """Captions of one set beside another's, filtered and sorted; one image of them, with words and what-if."""
    runs = _scored(bar)
    if not runs:
        return
    engine, name = bar.engine, bar.captioner(list(runs))
    # Reading starts at the difference: beside the human captions where there are any.
    others = [*(other for other in reversed(runs) if other != name), NOBODY]
    against = view.selectbox(st.sidebar, "Compare with", others, key="against", missing="the captions of")
    scores = cached.scores(engine.folder, runs[name].run_id)
    other_id = runs[against].run_id if against != NOBODY else ""
    rows = _rows(engine.folder, runs[name].run_id, other_id)
    human = _human(engine, bar.collection)
    _offer_network(engine, bar.collection, [runs[name], *([runs[against]] if other_id else [])], human)
    chosen = _filtered(engine, runs[name], other_id, scores.attribute, against)
    if chosen.empty:
        note("No caption fits these filters.")
    else:
        present_caption(engine, bar.collection, scores, chosen)
        _read(engine, bar.collection, runs, name, against, scores, rows, chosen, human)
    note(scores.attribute.note)


def words_tab(bar: Bar) -> None:
    """The most revealing words of one set, beside the human captions."""
    runs = _scored(bar)
    if not runs:
        return
    engine, name = bar.engine, bar.captioner(list(runs))
    scores, human = cached.scores(engine.folder, runs[name].run_id), _human(engine, bar.collection)
    people = [(other, run) for other, run in runs.items() if other in human and other != name]
    revealing_words(engine, runs[name], scores, name, people[0] if people else None)
    note(scores.attribute.note)


def guess_tab(bar: Bar) -> None:
    if runs := _scored(bar):
        guess_yourself(bar.engine, runs, bar.captioner(list(runs)))


def _scored(bar: Bar) -> dict[str, RunRow]:
    """The scored sets by name; if there are none, what to do next is shown."""
    st.html(STYLE)
    runs = _runs(bar) if bar.collection else {}
    if not runs:
        _nothing_yet(bar.engine, bar.collection)
    return runs


def _nothing_yet(engine: Engine, collection: str) -> None:
    """What to do where no caption is scored."""
    text = "No caption is scored yet."
    if not collection:
        empty_state(engine, text)
        return
    if any(run.spec.measure == PER_CAPTION for run in active_runs(engine, collection)):
        box("Running.", "Scored captions appear here by themselves.")
        return
    with errors():
        asked = first_request(engine.workspace, collection)
        if not asked:
            nothing_scored(engine, collection, text)
            return
        box("Nothing to show yet.", text)
        specs = [spec for spec in plan(engine.workspace, asked) if spec.measure == PER_CAPTION]
        start_button(engine, collection, specs, "Score these captions", "words_now")


def _runs(bar: Bar) -> dict[str, RunRow]:
    """Scored sets by name, for the attribute, labels and attacker of the bar."""
    workspace, collection = bar.workspace, bar.collection
    tables = workspace.items("attributes", collection)
    attackers = scoring_attackers(workspace, collection)
    scored = {
        (attribute, table.name, attacker): runs
        for attribute in attribute_names(tables)
        for table in tables_with(tables, attribute)
        for attacker in attackers
        if (runs := caption_runs(workspace, collection, attribute, attacker, table))
    }
    names = list(dict.fromkeys(attribute for attribute, _, _ in scored))
    if not names:
        return {}
    attribute = bar.attribute(names)
    table = bar.labels(attribute).name
    having = {key: runs for key, runs in scored.items() if key[:2] == (attribute, table)}
    if not having:
        note(f"No caption is scored for {attribute} with the labels {table}.")
        return {}
    ways = {attacker: {"attacker": attacker} for _, _, attacker in having}
    chosen = bar.measured_with(ways, {name: name for name in ways}, help=ATTACKER)
    human = _human(bar.engine, collection)
    runs = having[attribute, table, chosen]
    return dict(sorted(runs.items(), key=lambda pair: (pair[0] in human, pair[0])))


def _offer_network(engine: Engine, collection: str, shown: list[RunRow], human: set[str]) -> None:
    """A run of a network over the captions shown, where none has scored them; else over the human captions.

    shown: the runs of the sets side by side, by the chosen attacker.
    """
    spec, done = shown[0].spec, current_runs(engine.workspace, collection, PER_CAPTION)
    same = ("labels", "attribute", "merge_masks")
    alike = [run.spec for run in done if all(getattr(run.spec, key) == getattr(spec, key) for key in same)]
    scored = {(own.captions, own.attacker) for own in alike}
    networks = {name for captions, name in scored if captions == spec.captions and not attacker_entry(name).in_process}
    wanted, label, options = [run.spec for run in shown], "Score with a network", FROM_SCRATCH
    if networks:
        wanted = [own for own in alike if own.model in human and (own.captions, spec.attacker) not in scored]
        label, options = "Score the human captions too", (spec.attacker,)
    if not wanted or (networks and spec.attacker not in networks.intersection(FROM_SCRATCH)):
        return
    left, right = st.container(key="stacks_network").columns([1, 3], vertical_alignment="bottom")
    network = view.selectbox(left, label, options, key="network", help=ATTACKER)
    with right, errors():
        specs = {own.run_id: own for own in (plan_scores(own, network) for own in wanted)}
        start_button(engine, collection, list(specs.values()), f"Score with {network}", "score_network")


def _human(engine: Engine, collection: str) -> set[str]:
    """Names of the sets of human captions."""
    return {item.name for item in engine.workspace.items("references", collection)}


@st.cache_resource(show_spinner=False, max_entries=16)
def _rows(folder: str, run_id: str, other_id: str) -> pd.DataFrame:
    return caption_rows(cached.scores(folder, run_id), cached.scores(folder, other_id) if other_id else None)


def _filtered(engine: Engine, run: RunRow, other_id: str, attribute: Attribute, against: str) -> pd.DataFrame:
    side, name = st.sidebar, run.spec.model
    orders = sort_orders(attribute, against != NOBODY)
    order = view.selectbox(side, "Sort by", orders, key="sort")
    kinds = {EVERYONE: EVERYONE}
    if against != NOBODY:
        kinds |= {OWN: f"{name} reveals it, {against} does not", OTHER: f"{against} reveals it, {name} does not"}
    if attribute.names_values:
        kinds[WRONG] = "wrong value named"
    kind = view.selectbox(side, "Which captions", list(kinds), key="kind", format_func=kinds.get, help=KINDS)
    group = view.selectbox(side, "Labelled", [EVERYONE, *attribute.values], key="group")
    word = view.text(side, "With the word", key="word", help="A whole word, after masking.")
    query = view.text(side, "Search captions or an image ID", key="q")
    pattern = view.checkbox(side, "Regular expression", key="pattern", help="In RE2's syntax, such as (man|boy).*tie.")
    labels = _labels(engine, run)
    view.text(side, "Image shown", key="image")
    group, kind = ("" if chosen == EVERYONE else chosen for chosen in (group, kind))
    filters = Filters(group, word, query, pattern, kind)
    return _selected(engine.folder, run.run_id, other_id, order, filters, run.spec.labels["table"], *labels)


@st.cache_resource(show_spinner=False, max_entries=16, hash_funcs={Filters: repr})
def _selected(
    folder: str, run_id: str, other_id: str, order: str, filters: Filters, labels: str, column: str, value: str
) -> pd.DataFrame:
    """Which captions are listed. labels: the hash of a table; column, value: what its images have there; '' for all
    images, and for none where a column holds no value."""
    images = (cached.images_with(folder, labels, column, value) if value else set()) if column else None
    own = cached.scores(folder, run_id)
    written = cached.captions(folder, own.run.spec.captions)
    return select_rows(_rows(folder, run_id, other_id), written, own.attribute, order, replace(filters, images=images))


def _labels(engine: Engine, run: RunRow) -> tuple[str, str]:
    """A column of the table of labels, and the value that images have there; '' for all images."""
    digest = run.spec.labels["table"]
    columns = [column for column in engine.workspace.columns(digest) if column != "image_id"]
    column = view.selectbox(st.sidebar, "Column of the labels", [EVERYONE, *columns], key="column")
    if column == EVERYONE:
        return "", ""
    values = cached.column_values(engine.folder, digest, column)
    return column, view.selectbox(st.sidebar, f"{plain(column)} is", values, key="value", missing="the value") or ""


def _read(
    engine: Engine,
    collection: str,
    runs: dict[str, RunRow],
    name: str,
    against: str,
    own: CaptionScores,
    rows: pd.DataFrame,
    chosen: pd.DataFrame,
    human: set[str],
) -> None:
    """The table and, beside it, the image of the selected row; what else is known of that image below both."""
    left, right = st.container(key="stacks").columns([3, 2], gap="medium")
    with left:
        part = _table(engine, chosen, rows, own, name, against)
    with right:
        image = st.session_state["image"].strip()
        if not image:
            view.forget(["caption"])  # that of another image
        image = image or part["image_id"].iloc[0]
        st.header(f"Image {image}" if image.isalnum() else "The image")
        place = _place(own, image, part)
        if place is None:
            note(f"No scored caption of image {image}.")
            return
        steps(chosen, place, PAGE)
        found = read_image(engine, runs, name, against, place)
        side_by_side(engine, collection, found, human)
    more_of_image(engine, collection, runs, (name, against), found, list(part["image_id"]), human)


def _place(own: CaptionScores, image: str, part: pd.DataFrame) -> int | None:
    """The row of the scores with the caption of this image that is asked for; None where it has none."""
    places = np.flatnonzero(own.table["image_id"] == image)
    if len(places) == 0:
        return None
    by_index = dict(zip(own.table["caption_index"].to_numpy()[places].tolist(), places.tolist(), strict=True))
    first = part["caption_index"].iloc[0] if part["image_id"].iloc[0] == image else next(iter(by_index))
    if len(places) == 1:
        return int(places[0])
    chosen = view.selectbox(
        st, "Caption", list(by_index), default=int(first), key="caption", on_change=view.choose, args=("image", image)
    )
    return by_index[chosen]


def _table(
    engine: Engine, chosen: pd.DataFrame, rows: pd.DataFrame, own: CaptionScores, name: str, against: str
) -> pd.DataFrame:
    """A page of the chosen among the rows, which is returned."""
    pages = -(-len(chosen) // PAGE)
    left, right = st.columns([2, 1], vertical_alignment="bottom")
    with left:
        minus = f" Difference: probability of the label, minus the mean for {against}." if against != NOBODY else ""
        note(f"{counted(len(chosen), 'caption')} of {name}.{minus} Select a row to see its image.")
    of_image = np.flatnonzero((chosen["image_id"] == st.session_state["image"].strip()).to_numpy())
    first = int(of_image[0]) // PAGE + 1 if len(of_image) else 1  # a link that names an image alone
    number = view.number(right, f"Page (1 to {pages:,})", 1, pages, first, key="page")
    part = rows.loc[chosen.index[(number - 1) * PAGE : number * PAGE]]
    written = cached.captions(engine.folder, own.run.spec.captions)
    shown = pd.DataFrame(
        {
            "caption": written_captions(part, written),
            "toward": [signed_bar(value) for value in lean(part, own.attribute)],
            "guess": [f"{to} {score:.0%}" for score, to in zip(part["score"], part["predicted"], strict=True)],
            "difference": part["difference"].round(2),
            "labelled": part["labelled"],
            "image": part["image_id"],
        }
    )
    if against == NOBODY:
        shown = shown.drop(columns="difference")
    key = f"captions_{name}_{against}_{number}_{len(chosen)}"
    select_row(key, _row_of_image(part))
    draw_table(
        shown.style.format({"difference": partial(signed, decimals=2)} if "difference" in shown else {}),
        height=min(HEIGHT, FOUR_LINES * (len(part) + 1)),
        row_height=FOUR_LINES,
        selection_mode="single-row",
        key=key,
        alt=f"Captions of {name}",
        on_select=partial(_pick, key, part),
        column_config={
            "caption": st.column_config.Column(width=CAPTION_WIDTH),
            "toward": st.column_config.ImageColumn(width=BAR_WIDTH + 16, help=_ends(own.attribute)),
            "difference": st.column_config.NumberColumn(
                width=DIFFERENCE_WIDTH, help=f"Probability of the labelled value, {name} minus {against}."
            ),
        },
    )
    other = against if against != NOBODY else ""
    st.download_button(
        f"Captions and probabilities (CSV, {counted(len(chosen), 'row')})",
        lambda: csv_text(probability_table(rows.loc[chosen.index], written, own.attribute, name, other)),
        f"{name}_captions.csv",
        "text/csv",
        key="captions_csv",
        on_click="ignore",
    )
    return part


def _ends(attribute: Attribute) -> str:
    """What a bar to either side says."""
    if len(attribute.values) > 2:
        return "Longer bar: the classifier is surer of its guess."
    return "Left: {}. Right: {}. Longer bar: the classifier is surer.".format(*map(plain, attribute.values))


def _row_of_image(part: pd.DataFrame) -> list[int]:
    """The row of this page whose image is shown, so that the table follows the arrow keys."""
    image, index = st.session_state["image"].strip(), st.session_state.get("caption")
    if not image:
        return [0]
    of_image = (part["image_id"] == image).to_numpy()
    of_caption = of_image & (part["caption_index"] == index).to_numpy()
    return np.flatnonzero(of_caption if of_caption.any() else of_image)[:1].tolist()


def _pick(key: str, part: pd.DataFrame) -> None:
    """Show the row that was just selected."""
    selected = selected_row(key)
    if selected is not None:
        row = part.iloc[selected]
        show_caption(row["image_id"], int(row["caption_index"]))
