"""The tabs of Images: the masking experiment, one photograph, and what photographs still need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
import streamlit as st

from capbias_core.attackers import ATTACKERS, attacker_entry
from capbias_core.errors import CapbiasError
from capbias_core.kinds import SEGMENTS
from capbias_core.load.photographs import PICTURES
from capbias_core.load.published import published_results
from capbias_core.measures.options import MOST_SEEDS
from capbias_core.measures.photographs import DETECT, MASKED, CaptionOptions, DetectOptions, MaskOptions, departures_in
from capbias_core.question import Question
from capbias_core.runs.artifact_runs import apart, plan_artifact, plan_captioning, plan_masking
from capbias_core.runs.condition_runs import plan_conditions
from capbias_core.runs.plan import plan
from capbias_core.types import CONDITIONS, counted
from capbias_core.views import conditions as condition_views
from capbias_core.views.photographs import keep_uploaded
from capbias_core.views.published import printed_conditions
from capbias_core.vision.detect import saved_weights, to_download
from capbias_core.vision.masking import HALF, OF_OBJECTS, OF_OUTLINES
from capbias_core.vision.presets import PRESETS
from capbias_core.workspace.conditions import all_sets, condition_of, condition_sets, describe, taken_of_several
from capbias_core.workspace.objects import CONFIDENCE, WEIGHTS, weights_option
from capbias_core.workspace.photographs import people_sources, photograph_sets
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import RUN, Item, checked_name, suggested_name
from pages.ui import cached, view
from pages.ui.bar import MEASURED_WITH, Bar, attribute_names, empty_state
from pages.ui.base import box, errors, label_caveats, note, show_error
from pages.ui.photo_inspector import photo_inspector, preview_masks
from pages.ui.plain import plain
from pages.ui.runs import active_runs, start_button
from pages.ui.shown import draw_shown
from pages.ui.uploads import uploaded_paths

SEEDS = 10
FIRST = "LIC_M"  # is shown at once, other metrics on demand
COLUMNS = 6  # of the tables at first
UPLOADED = "my photographs"
MEGABYTES, MOST = 20, 200


@dataclass(frozen=True)
class Masked:
    """The choices that the tabs read."""

    captioner: str
    attribute: str
    table: Item | None  # labels of the attribute
    chosen: list[str]  # names of sets, for conditions with several
    sets: dict[str, Item]  # the captioner's, by condition


def experiment_tab(bar: Bar) -> None:
    """How far the score falls when the person, the objects or both are hidden."""
    masked = _masked(bar, compared=True)
    if masked is None:
        return
    if len(masked.sets) > 1 and masked.table is not None:
        with errors():
            _experiment(bar, masked)
    elif len(masked.sets) > 1:
        box("Nothing to show yet.", f"Load a table of labels for “{bar.collection}” on Data.")
    else:
        box(
            "Nothing to show yet.",
            "Load captions of the same photographs, original and masked: name the files sat and sat_masked_person, or "
            "set captioner and condition below. The tab Prepare can mask photographs and write captions.",
        )
    with errors():
        _describe_sets(bar)
    if masked.table:
        label_caveats({masked.attribute: masked.table})


def photograph_tab(bar: Bar) -> None:
    masked = _masked(bar)
    if masked is not None:
        with errors():
            photo_inspector(bar, masked.sets, masked.attribute, masked.table)


def prepare_tab(bar: Bar) -> None:
    """A tab for each step, each with its cost and a button, and an upload of photographs."""
    masked = _masked(bar)
    with errors():
        if masked is not None:
            find, mask, caption, maps = st.tabs(
                ["1 Find people", "2 Mask", "3 Caption", "4 Map"], key="step", on_change="rerun"
            )
            if find.open:
                with find, errors():
                    _find_people(bar)
            if mask.open:
                with mask, errors():
                    _mask(bar, masked.attribute, masked.table)
            if caption.open:
                with caption, errors():
                    _caption(bar)
            if maps.open:
                with maps, errors():
                    _maps(bar, masked)
        _upload(bar)


def _masked(bar: Bar, compared: bool = False) -> Masked | None:
    """The choices of the bar; None if nothing is loaded, and what to do next is shown.

    compared: offer only captioners with sets of several conditions, if there are any.
    """
    if not bar.collection:
        empty_state(bar, "No photographs and no captions are loaded yet.")
        return None
    sets = all_sets(bar.workspace, bar.collection)
    attribute = bar.attribute(attribute_names(bar.items("labels")))
    table = bar.labels(attribute) if attribute else None
    most = max(map(len, sets.values()), default=0)
    several = [name for name in sets if len(sets[name]) > 1] if compared and most > 1 else list(sets)
    unfit = {name: f"{name} has no captions of masked photographs." for name in sets if name not in several}
    first = cached.answering(bar.workspace, bar.collection, [name for name in sets if len(sets[name]) == most])
    captioner = bar.captioner(several, first, unfit) or ""
    chosen = [
        view.selectbox(
            st.sidebar,
            f"Set for condition {condition}",
            [item.name for item in items],  # the newest first
            key=f"set_{condition}",
            help="This captioner has several sets for this condition, such as grey and blurred.",
        )
        for condition, items in sets.get(captioner, {}).items()
        if len(items) > 1
    ]
    of_captioner = condition_sets(bar.workspace, bar.collection, chosen).get(captioner, {})
    return Masked(captioner, attribute, table, chosen, of_captioner)


def _seeds(measured: pd.DataFrame) -> int:
    """The seeds to measure with, and of which results are shown: at first those of what was measured."""
    of_lic = measured.loc[measured["metric"] == "LIC_M", "seeds"]
    first = int(of_lic.max()) if len(of_lic) else SEEDS
    return int(view.number(st.sidebar, "Seeds", 1, MOST_SEEDS, first, key="seeds", help="The papers use 10."))


def _other_seeds(measured: pd.DataFrame, seeds: int) -> str:
    """Which metrics were measured with other numbers of seeds, and are not shown; '' if none was."""
    others = measured[~measured["seeds"].isin([0, seeds])]
    pairs = dict.fromkeys(zip(others["metric"], others["seeds"].astype(int), strict=True))
    texts = ", ".join(f"{metric} with {counted(number, 'seed')}" for metric, number in pairs)
    return f"Also measured, with other seeds: {texts}. Change Seeds on the left to see them." if texts else ""


# The experiment


def _experiment(bar: Bar, masked: Masked) -> None:
    workspace, collection = bar.workspace, bar.collection
    captioner, attribute = masked.captioner, masked.attribute
    human = bar.references(attribute)
    attacker = view.selectbox(
        bar.container,
        MEASURED_WITH,
        list(ATTACKERS),
        key="attacker",
        accept_new_options=True,
        help="ngram: a linear attacker, a preview in seconds. lstm_bi and lstm: the LIC and the DBAC paper's.",
    )
    name = attacker_entry(attacker).name
    inputs = {"chosen": masked.chosen, "table": masked.table}
    rows_with = partial(
        condition_views.condition_rows, workspace, collection, captioner, attribute, name, references=human, **inputs
    )
    measured = rows_with()
    seeds = _seeds(measured)
    rows = rows_with(seeds=seeds)
    text = condition_views.condition_answer(rows, captioner, attribute, bool(active_runs(workspace, collection)))
    box(text.headline, text.support)
    names = human.name if human else ""
    objects = bar.objects(masked.table) if masked.table else ""
    asked = (workspace, collection, captioner, attribute, name, seeds)
    runs = plan_conditions(*asked, references=names, objects=objects, **inputs)
    for line in runs.lacking:
        note(line)
    start_button(bar, list(runs.specs), "Run", "run_conditions")
    for line in taken_of_several(workspace, collection, captioner, masked.chosen):
        note(f"Of several sets of {captioner}, {line}. Choose another on the left.")
    if others := _other_seeds(measured, seeds):
        note(others)
    printed = printed_conditions(published_results(), attribute)
    overlay = view.checkbox(st, "Overlay published values", key="printed", draw="toggle")
    printed = printed if overlay else printed.iloc[:0]
    first, others = rows[rows["metric"] == FIRST], rows[rows["metric"] != FIRST]
    _measured(first, printed[printed["metric"] == FIRST], "conditions")
    names = ", ".join(name for name in condition_views.panel_names() if name != FIRST)
    folded = st.expander(f"Other metrics: {plain(names)}", key="other_metrics", on_change="rerun")
    if folded.open:
        with folded:
            _measured(others, printed[printed["metric"] != FIRST], "other_conditions")
            if missing := condition_views.without_value(workspace, runs, masked.sets, rows):
                note(" ".join(missing))


def _measured(rows: pd.DataFrame, printed: pd.DataFrame, key: str) -> None:
    """Chart and table of some metrics. printed: published values to overlay."""
    if rows.empty and printed.empty:
        note("Nothing is measured yet.")
        return
    shown = condition_views.conditions_shown(rows, printed)
    headline = shown.title if key == "conditions" else ""
    draw_shown(shown, key, headline=headline, legend=condition_views.PUBLISHED if len(printed) else "", first=COLUMNS)


def _describe_sets(bar: Bar) -> None:
    sets = bar.items("captions")
    if not sets:
        return
    with st.expander("Captioner and condition of each set", key="which_is_which", on_change="rerun"):
        note(
            "Suggested from names such as sat_masked_person. Changing them does not delete results. If several sets "
            "have the same captioner and condition, the newest is used unless you choose another on the left."
        )
        described = [condition_of(item) for item in sets]
        table = pd.DataFrame(
            {
                "set": [item.name for item in sets],
                "captioner": [captioner for captioner, _ in described],
                "condition": [condition for _, condition in described],
            }
        )
        edited = st.data_editor(
            table,
            hide_index=True,
            disabled=["set"],
            key="described",
            column_config={
                "condition": st.column_config.SelectboxColumn(
                    options=list(CONDITIONS), required=True, format_func=lambda name: condition_views.TITLES[str(name)]
                )
            },
        )
        if st.button("Save", key="describe", disabled=edited.equals(table)):
            for item, before, row in zip(sets, described, edited.to_dict("records"), strict=True):
                if (row["captioner"], row["condition"]) != before:
                    describe(bar.workspace, item, row["captioner"] or item.name, row["condition"])
            st.rerun()


# What photographs still need


def _find_people(bar: Bar) -> None:
    """Boxes by a detector; weights that are not on this machine are fetched first, when somebody asks for it."""
    left, right = st.columns([3, 1])
    weights = left.selectbox(
        "Weights of a detector",
        saved_weights(bar.workspace.folder / WEIGHTS),
        index=None,
        accept_new_options=True,
        key="weights",
        placeholder="Choose uploaded weights, or type yolov8n or a file that ends in .pt, .onnx or .tflite",
        help="A YOLO of ultralytics: uploaded weights (Data, Models and vectors), a path on the server, or a name, "
        "which is downloaded where there is a network.",
    )
    weights = (weights or "").strip()
    confidence = right.number_input("Confidence at least", 0.05, 0.95, CONFIDENCE, 0.05, key="sure")
    if weights:
        with errors():
            missing = to_download(weights, bar.workspace.folder / WEIGHTS)
            if missing and not st.button(f"Fetch {plain(weights)}", key="fetch"):
                note("These weights are not on this machine yet. They are downloaded once, into the workspace.")
            else:
                with st.spinner("Looking for the weights"):
                    option = weights_option(bar.workspace, weights)
                name = suggested_name(Path(option["name"]).stem)
                options = DetectOptions(name=name, weights=option, confidence=float(confidence))
                start_button(bar, [plan_artifact(bar.workspace, bar.collection, DETECT.name, options)], "Find", "find")
    sources = people_sources(bar.workspace, bar.collection)
    marked = ", ".join(f"{item.name} ({item.images:,} photographs)" for item in sources)
    text = f"People are marked by: {marked}." if marked else "No people are marked on these photographs yet."
    exact = any(item.kind == SEGMENTS for item in sources)
    note(text if exact else f"{text} If you have COCO instances, load them on Data; they are more exact.")


def _mask(bar: Bar, attribute: str, table: Item | None) -> None:
    sources = {item.name: item.kind for item in people_sources(bar.workspace, bar.collection)}
    if not sources or not photograph_sets(bar.workspace, bar.collection):
        note("Masks need photographs, and outlines (COCO instances, loaded on Data) or boxes (step 1).")
        return
    left, right = st.columns([1, 2])
    people = left.selectbox("Marked by", list(sources), key="mask_people")
    possible = [name for name in MASKED if sources[people] == SEGMENTS or name not in OF_OUTLINES]
    chosen = right.multiselect("Conditions", possible, default=possible, key=f"conditions_{people}")
    if lacking := [name for name in MASKED if name not in possible]:
        note(f"{' and '.join(lacking)} need outlines, and {people} has boxes only. Load COCO instances on Data.")
    left, right = st.columns([1, 2])
    fraction = left.number_input("Part of the person", 0.1, 1.0, HALF, 0.1, key="mask_fraction")
    names = right.text_input(
        "Objects to mask",
        key="mask_objects",
        placeholder=f"most associated with {attribute or 'the attribute'}",
        help="Names, separated by commas. Default: the object on each photograph most associated with a value of the "
        "attribute in human captions, as in the LIC paper.",
    )
    objects = {name.strip(): 1.0 for name in names.split(",") if name.strip()}
    only_masked = bool(set(chosen) & set(OF_OBJECTS)) and st.checkbox(
        "Leave out photographs without such an object",
        key="only_masked",
        help="Off, as in the LIC paper: they stay unmasked under object and hide only the person under both, so every "
        "condition uses the same photographs.",
    )
    specs, asked = [], objects
    for condition in chosen:
        with errors():
            departures = None
            if condition in OF_OBJECTS:
                departures = objects or departures_in(bar.workspace, bar.collection, attribute, table=table)
                asked = departures
            options = MaskOptions(
                condition=condition,
                people=people,
                fraction=float(fraction),
                departures=departures,
                only_masked=only_masked,
            )
            specs.append(plan_masking(bar.workspace, bar.collection, options))
    start_button(bar, specs, "Mask", "mask")
    preview_masks(bar, people, chosen, asked, float(fraction))


def _caption(bar: Bar) -> None:
    folders = [item.name for item in photograph_sets(bar.workspace, bar.collection)]
    if not folders:
        note("No photographs to caption. Upload some below, or name their folder on Data.")
        return
    captioner = st.selectbox(
        "Captioner",
        list(PRESETS),
        index=None,
        key="maker",
        accept_new_options=True,
        placeholder="blip, a folder, or a name in the local cache of Hugging Face",
        help="Any image-to-text model of transformers. Weights are never fetched: a missing one is named together "
        "with the command that gets it.",
    )
    left, middle, right = st.columns(3)
    chosen = left.multiselect("Photographs", folders, default=folders, key="captioned")
    beams = middle.number_input("Beams", 1, 20, 5, key="beams", help="Searched at once; 1 is greedy.")
    length = right.number_input("Length at most", 1, 100, 20, key="length", help="In the captioner's own tokens.")
    name = (captioner or "").strip()
    if not name or not chosen:
        note("Choose a captioner and photographs.")
        return
    options = [
        CaptionOptions(captioner=name, photographs=folder, beams=int(beams), length=int(length)) for folder in chosen
    ]
    specs = [plan_captioning(bar.workspace, bar.collection, of_folder) for of_folder in options]
    start_button(bar, apart(specs), "Caption", "caption")


def _maps(bar: Bar, masked: Masked) -> None:
    """The image regions behind the words that name a value, for all sets of the chosen captioner."""
    sets, table, attribute = masked.sets, masked.table, masked.attribute
    if not sets or table is None:
        note("Maps need captions of photographs with labels. Caption the photographs, and load a table of labels.")
        return
    left, right = st.columns([3, 1])
    known = all(RUN in item.details for item in sets.values())  # made here, so that their captioner is on record
    hint = "the one that wrote them" if known else "who wrote them: a name or a folder"
    name = left.text_input("Captioner that reads them", key="reader", placeholder=hint).strip()
    most = right.number_input("Images at most", 10, 100_000, 200, key="most", help="In a random order.")
    people = [item.name for item in people_sources(bar.workspace, bar.collection)]
    if not people:
        note("Mark people first: load COCO instances on Data, or run step 1.")
        return
    marked = st.selectbox("People marked by", people, key="people") if people[1:] else people[0]
    if not name and not known:
        note(f"Maps of {counted(len(sets), 'set')}: the image regions behind each {attribute} word.")
        return
    options = {"people": marked, "max_images": int(most)} | ({"captioner": name} if name else {})
    specs: list[RunSpec] = []
    for item in sets.values():
        metrics = ("attribution_score",)
        request = Question(bar.collection, (item.name,), table.name, attribute, metrics, options=options)
        with errors():
            specs += plan(bar.workspace, request)
    start_button(bar, specs, "Map", "map")


def _upload(bar: Bar) -> None:
    """Photographs, or a folder of them, from the visitor's computer; on disk as soon as they are here."""
    if text := view.pop_message("uploaded"):
        st.success(plain(text))
    if error := view.pop_message("upload_error"):
        show_error(error)
    with st.expander("Upload photographs, or a folder of them", key="upload", on_change="rerun"):
        left, right = st.columns([2, 1], vertical_alignment="bottom")
        names = list(dict.fromkeys([*bar.workspace.collections(), UPLOADED]))
        has_photographs = bool(bar.collection and photograph_sets(bar.workspace, bar.collection))
        first = UPLOADED if has_photographs or not bar.collection else bar.collection
        left.selectbox(
            "Into the collection",
            names,
            index=names.index(first),
            key=f"into_{bar.collection}",
            accept_new_options=True,
            help="One without photographs, or with uploaded ones. Type a new name to start one.",
        )
        whole = right.toggle("A whole folder", key="whole_folder")
        key = f"pictures_{st.session_state.setdefault('upload_round', 0)}_{whole}"

        def save() -> None:  # before the page is drawn, so that the collection can be chosen
            files, into = st.session_state[key], st.session_state[f"into_{bar.collection}"]
            if not files:
                return
            st.session_state["upload_round"] += 1
            try:
                paths = uploaded_paths(bar.folder, files[:MOST])
                item, refused = keep_uploaded(bar.workspace, checked_name(into), paths)
            except CapbiasError as error:
                st.session_state["upload_error"] = error
                return
            view.choose("collection", item.collection)
            text = f"{item.rows:,} photographs in the collection {item.collection}."
            if refused:
                text += f" Left out: {'; '.join(refused.values())}."
            if len(files) > MOST:
                text += f" Only the first {MOST} were taken: name a folder on the Data page for more."
            st.session_state["uploaded"] = text

        st.file_uploader(
            f"JPEG, PNG or WebP, named by image ID; at most {MEGABYTES} MB each",
            key=key,
            type=[ending.removeprefix(".") for ending in sorted(PICTURES)],
            max_upload_size=MEGABYTES,
            accept_multiple_files="directory" if whole else True,
            on_change=save,
        )
