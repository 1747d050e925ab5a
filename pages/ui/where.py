"""The tab Where of Scores: LIC, error and refusals in slices of images; a slice leads to its captions."""

from __future__ import annotations

import streamlit as st

from capbias_core.views.slices import FEWEST_IMAGES, LEAST_IMAGES, METRICS_OF_SLICES, MOST, slice_sources, slices
from capbias_core.views.view import Scope, Shown
from pages.ui import cached, view
from pages.ui.answer import chosen_comparison
from pages.ui.bar import Bar, captions_and_labels
from pages.ui.base import box, errors, note
from pages.ui.shown import draw_shown

WORDS = (
    "Words of human captions, such as kitchen|cooking: an image is in the slice if people say one of them. Commas "
    "between slices."
)
LEAST = (
    "Images that a slice, and the others, need for a number: those whose captions attackers guessed from. A slice with "
    f"fewer than {LEAST_IMAGES} gets numbers but is not tested, so no claim follows."
)
SEARCH = "A text anywhere in the captioner's captions. Commas between slices."
USUAL = (
    f"Without a choice: the {MOST} objects that most images have, else the {MOST} content words of most human captions."
)


def where_tab(bar: Bar) -> None:
    """Slices of one captioner's images beside the other images."""
    if captions_and_labels(bar) is None:
        return
    comparisons = cached.compared(bar.workspace, bar.collection)
    if not comparisons:
        box("Nothing to show yet.", "Slices are measured from a finished run of LIC. Run it in the tab Table.")
        return
    comparison, _ = chosen_comparison(bar, comparisons)
    captioner = bar.captioner([run.spec.model for run in comparison.runs])
    scope = Scope(bar.workspace, bar.collection, comparison, (captioner,))
    with errors():
        shown, rules = _shown(bar, scope)
        event = draw_shown(
            shown, "slices", on_select="rerun", selection_mode="single-row", alt="Slices beside the other images"
        )
        note("Select a row to read its captions.")
        if event.selection.rows:
            view.go("pages/3_Captions.py", captioner=captioner, slice=rules[event.selection.rows[0]])


def _shown(bar: Bar, scope: Scope) -> tuple[Shown, list[str]]:
    """The view of the slices that are chosen, and the rule of each row of its table."""
    run = scope.run(scope.captioners[0])
    sources = slice_sources(scope, run)
    metrics = METRICS_OF_SLICES[bool(run.spec.references)]
    metric = view.selectbox(st, "Metric", metrics, key="slice_metric", any_case=True, width=300)
    columns = st.expander("Choose slices").container(key="stacks_slices").columns(5, vertical_alignment="bottom")
    objects = view.multiselect(columns[0], "Objects", sorted(sources.by_object), key="slice_objects", help=USUAL)
    words = view.text(columns[1], "Words people use", key="slice_words", help=WORDS) if run.spec.references else ""
    values = view.multiselect(
        columns[2], "Columns of tables", [*sources.columns], key="slice_columns", help="A slice per value."
    )
    search = view.text(columns[3], "Search its captions", key="slice_search", help=SEARCH)
    least = view.number(
        columns[4], "Least images", FEWEST_IMAGES, LEAST_IMAGES, LEAST_IMAGES, step=10, key="slice_least", help=LEAST
    )

    if not (objects or words or values or search or sources.has_objects or run.spec.references):
        note("No objects and no human captions to slice by: choose columns or search.")
        view.stop()

    def work() -> Shown:
        return slices(scope, objects, _several(words), values, _several(search), metric=metric, least=int(least))

    shown = cached.once(scope.workspace, "slices", work)
    return shown, list(dict.fromkeys(shown.rows["rule"]))


def _several(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))
