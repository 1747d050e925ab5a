"""The tab Captions: scored captions of one set beside another's; and the sets that Words and Guess yourself read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from capbias_core.attackers import FROM_SCRATCH, at_hand, attacker_entry
from capbias_core.runs.plan import PER_CAPTION, plan
from capbias_core.spreadsheets import csv_text
from capbias_core.types import Attribute, counted
from capbias_core.views import captions as caption_views
from capbias_core.views.results import current_runs, first_request
from capbias_core.views.sentence import signed
from capbias_core.views.slices import EXAMPLES, Slice, SliceSources
from capbias_core.views.words import STYLE
from capbias_core.workspace.labels import tables_with
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import RunRow
from pages.ui import cached, view
from pages.ui.bar import Bar, attribute_names, empty_state
from pages.ui.base import box, errors, note, plain
from pages.ui.compare import EVERYONE, compare
from pages.ui.drawing import THREE_LINES, draw_table, select_row, selected_row
from pages.ui.one_image import more_of_image, read_image, show_caption, side_by_side, steps
from pages.ui.present import present_caption
from pages.ui.runs import active_runs, nothing_scored, start_button

PAGE = 50
CAPTION_WIDTH, DIFFERENCE_WIDTH, HEIGHT = 240, 76, 730  # pixels: ten rows
READ, COMPARE = MODES = ("Read", "Compare")
NOBODY = "nobody"
ATTACKER = "Word contributions are exact for ngram. For networks they are integrated gradients, an approximation."
KINDS = (
    "A caption reveals the label if the attacker gives it a probability of "
    f"{caption_views.GIVES_AWAY:g} or more, and hides it if that is chance or less. Wrong: the caption names "
    "one value only, and not the labelled one."
)


def captions_tab(bar: Bar) -> None:
    """Captions of one set beside another's, filtered and sorted; one image of them, with words and what-if. Or several
    sets side by side."""
    runs = scored_sets(bar)
    if not runs:
        return
    drawn = {"draw": "segmented_control", "required": True, "label_visibility": "collapsed"}
    mode = view.selectbox(st, "Mode", MODES, key="mode", **drawn)
    if mode == COMPARE:
        compare(bar, runs, human_names(bar))
        return
    name = bar.captioner(list(runs))
    # Human captions come first, if there are any: reading starts at the difference.
    others = [*(other for other in reversed(runs) if other != name), NOBODY]
    against = view.selectbox(st.sidebar, "Compare with", others, key="against", missing="the captions of")
    scores = cached.scores(bar.folder, runs[name].run_id)
    _offer_network(bar, [runs[shown] for shown in (name, against) if shown in runs])
    listed = _filtered(bar, runs, name, against, scores.attribute)
    if listed.empty:
        note("No caption fits these filters.")
    else:
        present_caption(bar, scores, listed)
        _read(bar, runs, name, against, listed)
    note(scores.attribute.note)


def scored_sets(bar: Bar) -> dict[str, RunRow]:
    """Scored sets by name, human ones last, for the attribute, labels and attacker of the bar; if there are none, what
    to do next is shown."""
    st.html(STYLE)
    runs = _runs(bar) if bar.collection else {}
    if runs:
        return runs
    text = "No caption is scored yet."
    if not bar.collection:
        empty_state(bar, text)
    elif any(run.spec.measure == PER_CAPTION for run in active_runs(bar.workspace, bar.collection)):
        box("Running.", "Scored captions appear here when the run is done.")
    else:
        with errors():
            request = first_request(bar.workspace, bar.collection)
            if not request:
                nothing_scored(bar, text)
                return {}
            box("Nothing to show yet.", text)
            specs = [spec for spec in plan(bar.workspace, request) if spec.measure == PER_CAPTION]
            start_button(bar, specs, "Score these captions", "words_now")
    return {}


def _runs(bar: Bar) -> dict[str, RunRow]:
    tables = bar.items("attributes")
    attackers = caption_views.scoring_attackers(bar.workspace, bar.collection)
    scored = {
        (attribute, table.name, attacker): runs
        for attribute in attribute_names(tables)
        for table in tables_with(tables, attribute)
        for attacker in attackers
        if (runs := caption_views.caption_runs(bar.workspace, bar.collection, attribute, attacker, table))
    }
    names = list(dict.fromkeys(attribute for attribute, _, _ in scored))
    if not names:
        return {}
    attribute = bar.attribute(names)
    table = bar.labels(attribute).name
    by_attacker = {key[2]: runs for key, runs in scored.items() if key[:2] == (attribute, table)}
    if not by_attacker:
        note(f"No caption is scored for {attribute} with the labels {table}.")
        return {}
    choices = {attacker: {"attacker": attacker} for attacker in by_attacker}
    chosen = bar.measured_with(choices, {name: name for name in choices}, help=ATTACKER)
    human = human_names(bar)
    return dict(sorted(by_attacker[chosen].items(), key=lambda pair: (pair[0] in human, pair[0])))


def human_names(bar: Bar) -> set[str]:
    """Names of the sets of human captions."""
    return {item.name for item in bar.items("references")}


def _offer_network(bar: Bar, shown: list[RunRow]) -> None:
    """A run of a network over the captions shown, if none has scored them; else over the human captions.

    shown: the runs of the sets side by side, by the chosen attacker.
    """
    spec, finished = shown[0].spec, current_runs(bar.workspace, bar.collection, PER_CAPTION)
    same = ("labels", "attribute", "merge_masks")
    specs = [run.spec for run in finished if all(getattr(run.spec, key) == getattr(spec, key) for key in same)]
    scored = {(other.captions, other.attacker) for other in specs}
    networks = {name for captions, name in scored if captions == spec.captions and not attacker_entry(name).in_process}
    # Networks that Scores was measured with come first.
    measured = [
        each.attacker
        for each in cached.compared(bar.workspace, bar.collection)
        if each.attribute.name == spec.attribute["name"] and not attacker_entry(each.attacker).in_process
    ]
    wanted, label = [run.spec for run in shown], "Score with a network"
    options = tuple(dict.fromkeys([*filter(at_hand, measured), *FROM_SCRATCH]))
    if networks:
        human = human_names(bar)
        wanted = [
            candidate
            for candidate in specs
            if candidate.model in human and (candidate.captions, spec.attacker) not in scored
        ]
        label, options = "Score the human captions too", (spec.attacker,)
    if not wanted or (networks and spec.attacker not in networks.intersection(FROM_SCRATCH)):
        return
    left, right = st.container(key="stacks_network").columns([1, 3], vertical_alignment="bottom")
    network = view.selectbox(left, label, options, key="network", help=ATTACKER)
    with right, errors():
        planned = {
            spec.run_id: spec for spec in (caption_views.plan_scores(candidate, network) for candidate in wanted)
        }
        start_button(bar, list(planned.values()), f"Score with {network}", "score_network")


@st.cache_resource(show_spinner=False, max_entries=16)
def _rows(folder: str, run_id: str, other_id: str) -> pd.DataFrame:
    return caption_views.caption_rows(
        cached.scores(folder, run_id), cached.scores(folder, other_id) if other_id else None
    )


def _filtered(bar: Bar, runs: dict[str, RunRow], name: str, against: str, attribute: Attribute) -> pd.DataFrame:
    side, spec = st.sidebar, runs[name].spec
    orders = [f"bias score, {value} first" for value in attribute.values]
    orders = [*([caption_views.DIFFERENCE] if against != NOBODY else []), *orders, caption_views.IMAGE]
    order = view.selectbox(side, "Sort by", orders, key="sort")
    kinds = {EVERYONE: EVERYONE}
    if against != NOBODY:
        kinds |= {
            caption_views.OWN: f"{name} reveals it, {against} does not",
            caption_views.OTHER: f"{against} reveals it, {name} does not",
        }
    if attribute.names_values:
        kinds[caption_views.WRONG] = "wrong value named"
    kind = view.selectbox(side, "Which captions", list(kinds), key="kind", format_func=kinds.get, help=KINDS)
    group = view.selectbox(side, "Labelled", [EVERYONE, *attribute.values], key="group")
    word = view.text(side, "With the word", key="word", help="A whole word, after masking.")
    query = view.text(side, "Search captions or an image ID", key="q")
    pattern = view.checkbox(side, "Regular expression", key="pattern", help="In RE2's syntax, such as (man|boy).*tie.")
    labels, value = spec.labels["table"], ""
    columns = [column for column in bar.workspace.columns(labels) if column != "image_id"]
    column = view.selectbox(side, "Column of the labels", [EVERYONE, *columns], key="column")
    if column != EVERYONE:
        work = partial(caption_views.column_values, cached.captions(bar.folder, labels), column)
        values = cached.by_content(bar.workspace, "column values", (labels, column), work)
        value = view.selectbox(side, f"{plain(column)} is", values, key="value", missing="the value") or ""
    rule, picked = _slice(bar, spec)
    photographs = bar.photographs()
    with_photograph = photographs is not None and view.checkbox(side, "With a photograph", key="with_photograph")
    view.text(side, "Image shown", key="image")
    group, kind, column = ("" if chosen == EVERYONE else chosen for chosen in (group, kind, column))
    filters = caption_views.Filters(group, word, query, pattern, kind)
    other_id = runs[against].run_id if against in runs else ""
    of_photographs = photographs.hash if photographs and with_photograph else ""
    chosen_images = labels, column, value, of_photographs, rule, picked
    return _selected(bar.folder, runs[name].run_id, other_id, order, filters, *chosen_images)


def _slice(bar: Bar, spec: RunSpec) -> tuple[str, frozenset[str] | None]:
    """The rule of the slice that is chosen, with what it reads, as a key; and its images, None for all."""
    attribute, items = spec.attribute["name"], bar.items("attributes")
    table = next(item for item in items if item.hash == spec.labels["table"])
    rule = view.text(st.sidebar, "Slice", key="slice", help=f"A rule: {EXAMPLES}.")
    if not rule:
        return "", None
    human = cached.references_read(bar.workspace, bar.collection).get(attribute)
    sources = SliceSources(bar.workspace, bar.collection, table, spec.captions, human.hash if human else "")

    def work() -> frozenset[str]:
        return sources.members(Slice.parse(rule)).inside

    key = f"{rule} {spec.captions} {bar.workspace.version()}"
    with errors():
        return key, cached.of_collection(bar.workspace, bar.collection, f"slice {key}", work)
    return key, frozenset()


@st.cache_resource(show_spinner=False, max_entries=16, hash_funcs={caption_views.Filters: repr})
def _selected(
    folder: str,
    run_id: str,
    other_id: str,
    order: str,
    filters: caption_views.Filters,
    labels: str,
    column: str,
    value: str,
    photographs: str,
    rule: str,
    _picked: frozenset[str] | None,
) -> pd.DataFrame:
    """Which captions are listed. labels: the hash of a table; column, value: what its images have there; '' for all
    images, and for none if a column holds no value. photographs: the hash of their list, to leave out other images.
    rule, _picked: of `_slice`."""
    chosen: list[Collection[str]] = [] if _picked is None else [_picked]
    if column:
        chosen.append(caption_views.images_with(cached.captions(folder, labels), column, value) if value else set())
    if photographs:
        chosen.append(set(cached.captions(folder, photographs)["image_id"]))
    images = set.intersection(*map(set, chosen)) if chosen else None
    scores = cached.scores(folder, run_id)
    written, rows = cached.captions(folder, scores.run.spec.captions), _rows(folder, run_id, other_id)
    return caption_views.select_rows(rows, written, scores.attribute, order, replace(filters, images=images))


def _read(bar: Bar, runs: dict[str, RunRow], name: str, against: str, listed: pd.DataFrame) -> None:
    """The table and, beside it, the image of the selected row; what else is known of that image below both."""
    human, scores = human_names(bar), cached.scores(bar.folder, runs[name].run_id)
    left, right = st.container(key="stacks").columns([3, 2], gap="medium")
    with left:
        page = _table(bar, runs, name, against, listed)
    with right:
        image = st.session_state["image"].strip()
        if not image:
            view.forget(["caption"])  # that of another image
        image = image or page["image_id"].iloc[0]
        st.header(f"Image {image}" if image.isalnum() else "The image")
        rows = np.flatnonzero(scores.table["image_id"] == image).tolist()
        if not rows:
            note(f"No scored caption of image {image}.")
            return
        row = rows[0]
        if len(rows) > 1:
            by_index = {int(scores.table["caption_index"].iloc[row]): row for row in rows}
            first = page["caption_index"].iloc[0] if page["image_id"].iloc[0] == image else next(iter(by_index))
            keep_image = {"on_change": view.choose, "args": ("image", image)}
            row = by_index[
                view.selectbox(st, "Caption", list(by_index), default=int(first), key="caption", **keep_image)
            ]
        steps(listed, row, PAGE)
        lines = read_image(bar, runs, name, against, row)
        side_by_side(bar, lines, human)
    more_of_image(bar, runs, against, lines, list(page["image_id"]), human)


def _table(bar: Bar, runs: dict[str, RunRow], name: str, against: str, listed: pd.DataFrame) -> pd.DataFrame:
    """A page of the listed captions, which is returned."""
    pages, other = -(-len(listed) // PAGE), against if against in runs else ""
    image = st.session_state["image"].strip()
    left, right = st.columns([2, 1], vertical_alignment="bottom")
    with left:
        minus = f" Difference: probability of the label, minus its mean over the captions of {other}." if other else ""
        note(f"{counted(len(listed), 'caption')} of {name}.{minus} Select a row to see its image.")
    of_image = np.flatnonzero((listed["image_id"] == image).to_numpy())
    first = int(of_image[0]) // PAGE + 1 if len(of_image) else 1  # a link that names an image alone
    number = view.number(right, f"Page (1 to {pages:,})", 1, pages, first, key="page")
    rows = _rows(bar.folder, runs[name].run_id, runs[other].run_id if other else "")
    page = rows.loc[listed.index[(number - 1) * PAGE : number * PAGE]]
    attribute = cached.scores(bar.folder, runs[name].run_id).attribute
    written = cached.captions(bar.folder, runs[name].spec.captions)
    shown = pd.DataFrame(
        {
            "caption": caption_views.written_captions(page, written),
            "toward": [caption_views.signed_bar(value) for value in caption_views.lean(page, attribute)],
            "guess": [f"{to} {score:.0%}" for score, to in zip(page["score"], page["predicted"], strict=True)],
            "difference": page["difference"].round(2),
            "labelled": page["labelled"],
            "image": page["image_id"],
        }
    )
    if not other:
        shown = shown.drop(columns="difference")
    key = f"captions_{name}_{against}_{number}_{len(listed)}"
    selected = [0]  # the row whose image is shown, so that the table follows the arrow keys
    if image:
        here = (page["image_id"] == image).to_numpy()
        of_caption = here & (page["caption_index"] == st.session_state.get("caption")).to_numpy()
        selected = np.flatnonzero(of_caption if of_caption.any() else here)[:1].tolist()
    select_row(key, selected)

    def pick() -> None:
        if (row := selected_row(key)) is not None:
            show_caption(page["image_id"].iloc[row], int(page["caption_index"].iloc[row]))

    ends = "Longer bar: the classifier is surer of its guess."
    if len(attribute.values) == 2:
        ends = "Left: {}. Right: {}. Longer bar: the classifier is surer.".format(*map(plain, attribute.values))
    draw_table(
        shown.style.format({"difference": partial(signed, decimals=2)} if other else {}),
        height=min(HEIGHT, THREE_LINES * (len(page) + 1)),
        row_height=THREE_LINES,
        selection_mode="single-row",
        key=key,
        alt=f"Captions of {name}",
        on_select=pick,
        column_config={
            "caption": st.column_config.Column(width=CAPTION_WIDTH),
            "toward": st.column_config.ImageColumn(width=caption_views.BAR_WIDTH + 16, help=ends),
            "difference": st.column_config.NumberColumn(
                width=DIFFERENCE_WIDTH, help=f"Probability of the labelled value, {name} minus {against}."
            ),
        },
    )
    st.download_button(
        f"Captions and probabilities (CSV, {counted(len(listed), 'row')})",
        lambda: csv_text(caption_views.probability_table(rows.loc[listed.index], written, attribute, name, other)),
        f"{name}_captions.csv",
        "text/csv",
        key="captions_csv",
        on_click="ignore",
    )
    return page
