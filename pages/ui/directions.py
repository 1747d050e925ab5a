"""The tab Directions of Scores: A->T against T->A, and metrics on sets whose bias is in the language alone."""

from __future__ import annotations

import streamlit as st

from capbias_core.question import Question
from capbias_core.runs.plan import plan
from capbias_core.views import directions as direction_views
from capbias_core.views.published import measured_rows
from capbias_core.views.sentence import named_notes, variants_warning
from capbias_core.workspace.conditions import originals
from pages.ui import cached, view
from pages.ui.bar import Bar, attribute_names, captions_and_labels
from pages.ui.base import box, errors, label_caveats, note
from pages.ui.runs import answer_box, start_button, to_do
from pages.ui.shown import draw_shown

SEEDS = 5
FIRST_COLUMNS = 4
WHAT = (
    "A captioner can over-reveal the person's {attribute} (A→T) or the objects in the image (T→A). Each captioner is a "
    "point in the chart."
)


def directions_tab(bar: Bar) -> None:
    sets_and_tables = captions_and_labels(bar)
    if sets_and_tables:
        with errors():
            _directions(bar, attribute_names(sets_and_tables[1]))


def _directions(bar: Bar, attributes: list[str]) -> None:
    workspace, sets = bar.workspace, tuple(originals(bar.items("captions")))
    attribute = bar.attribute(attributes)
    table, human = bar.labels(attribute), bar.references(attribute)
    references = {attribute: human} if human else {}
    rows = cached.once(
        workspace,
        "rows",
        lambda: measured_rows(workspace, bar.collection, {attribute: table}, references, each_seeds=True),
    )
    rows = rows[(rows["attribute"] == attribute) & rows["model"].isin(sets)]
    if measures := direction_views.measures_in(rows):
        name = view.selectbox(st, "Metric", measures, key="measure", missing="the metric", any_case=True, width=300)
        points = direction_views.directions(rows, name)
        # Captioners that were measured alike: one attacker, variant and number of seeds.
        settings = {direction_views.way_text(setting): setting for setting in direction_views.ways_measured(points)}
        choices = {
            title: {"attacker": setting[direction_views.WAY.index("encoder")]} for title, setting in settings.items()
        }
        chosen = settings[bar.measured_with(choices, {title: title for title in settings})]
        shown = points[(points[list(direction_views.WAY)] == list(chosen)).all(axis=1)]
        text = direction_views.directions_answer(shown, rows, name, attribute)
        answer_box(bar, text)
        if otherwise := direction_views.measured_otherwise(points, shown):
            note(otherwise)
        if warning := variants_warning(rows):
            note(f"⚠ {warning}")
        draw_shown(
            direction_views.directions_shown(shown, rows, name),
            "plane",
            headline=text.headline,
            legend=f"{text.support} {text.details}",
            first=FIRST_COLUMNS,
        )

        def run_notes() -> list[str]:  # such as whose objects were read
            metrics = [metric for metric, _ in direction_views.MEASURES[name].values()]
            same = rows["metric"].isin(metrics) & rows["model"].isin(shown["model"])
            ids = rows.loc[same & rows["encoder"].isin(shown["encoder"]), "run_id"].unique()
            return named_notes([(run.spec.model, run.notes) for run in workspace.runs_of(list(ids)).values()])

        notes = cached.once(workspace, "notes", run_notes)
        label_caveats({attribute: table}, [direction_views.explained(name), *notes])
    else:
        box("Nothing is measured in both directions yet.", WHAT.format(attribute=attribute))
    if human is None:
        note("Both directions need human captions of the same images.")
        view.link(st, "pages/1_Data.py", "Add data", ":material/upload:")
        return
    metrics = ("dbac", "dbac_equations", "dbac_accuracy", "dba", "ba")
    chosen_sets = view.multiselect(st, "Captioners to measure", sets, default=sets, key="to_measure")
    if not chosen_sets:
        return
    objects, chosen = bar.objects(table), tuple(chosen_sets)
    request = Question(bar.collection, chosen, table.name, attribute, metrics, human.name, seeds=SEEDS, objects=objects)
    specs = plan(workspace, request)
    if to_do(workspace, specs)[1]:
        note(f"DBAC (attacker ngram, {SEEDS} seeds), DBA and BA. Other metrics and attackers: in the tab Table.")
        start_button(bar, specs, "Measure", "measure_now")
