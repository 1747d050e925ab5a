"""The charts that pages draw of results, made of the rows of a bundle: directions, encoders, masking and objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pandas as pd

from capbias_core.analysis import objects
from capbias_core.analysis.conditions import condition_rows
from capbias_core.analysis.directions import directions, measures_in
from capbias_core.analysis.encoders import rows_of, series_of
from capbias_core.analysis.read import attribute_of_run, references_read
from capbias_core.measures.registry import METRICS
from capbias_core.present.conditions import condition_chart
from capbias_core.present.directions import basis, explained, plane
from capbias_core.present.encoders import named, scores_by_encoder
from capbias_core.present.objects import (
    BINS,
    beside_chart,
    beside_note,
    counted_objects,
    distribution_chart,
    score_chart,
    score_of,
)
from capbias_core.present.plot_styles import captioner_looks
from capbias_core.present.sentence import intervals_over
from capbias_core.types import Attribute, counted
from capbias_core.workspace.conditions import all_sets, originals
from capbias_core.workspace.store import RunRow, Workspace

WAY = ["encoder", "variant", "seeds"]


class PageChart(NamedTuple):
    """A chart of a page. figure: of Plotly. note: what is to be known of it."""

    title: str
    figure: Any
    note: str


def page_charts(
    workspace: Workspace, collection: str, rows: pd.DataFrame, runs: Sequence[RunRow]
) -> Iterator[PageChart]:
    """Every chart that these results can show, in the order of the pages.

    rows: results of these finished runs of a collection, in RESULT_COLUMNS. Raises CapbiasError without Plotly.
    """
    attributes = {own.name: own for own in map(attribute_of_run, runs)}
    for run in runs:
        yield from _objects(workspace, collection, run, runs)
    captioners = rows[rows["model"].isin(originals(workspace.items("captions", collection)))]
    for name, attribute in attributes.items():
        own = rows[rows["attribute"] == name]
        compared = captioners[captioners["attribute"] == name]
        yield from _directions(compared, name)
        yield from _encoders(compared, attribute)
        yield from _conditions(workspace, collection, own, name)


def _objects(workspace: Workspace, collection: str, run: RunRow, runs: Sequence[RunRow]) -> Iterator[PageChart]:
    """Of a run that counts or scores objects; beside the human captions that any of the runs reads."""
    attribute, model = attribute_of_run(run), run.spec.model
    if run.spec.measure in objects.SCORED:
        title, metric = score_of(run.spec.measure)
        figure = score_chart(objects.scores_by_object(workspace, run), metric, (*attribute.values, "neutral"))
        yield PageChart(f"{title} by object, {model}", figure, METRICS[metric].explanation)
    if run.spec.measure != "object_cooccurrence":
        return
    read = {own.spec.references for own in runs}
    human = references_read(workspace, collection).get(attribute.name)
    human = human if human and human.hash in read else None
    table = counted_objects(workspace, run.spec, human)[1]
    if human:
        figure = beside_chart(table, attribute, model)
        yield PageChart(f"Objects of {model} beside the human captions", figure, beside_note(table, attribute))
    yield PageChart(f"Distribution over objects, {model}", distribution_chart(table, attribute, model), BINS)


def _directions(rows: pd.DataFrame, attribute: str) -> Iterator[PageChart]:
    for name in measures_in(rows):
        for (encoder, variant, seeds), own in directions(rows, name).groupby(WAY, sort=False):
            said = (attribute, encoder, variant.replace("_", " "), counted(seeds, "seed") if seeds else "")
            way = ", ".join(filter(None, said))
            yield PageChart(f"{name} in both directions ({way})", plane(own, name), f"{basis(own)} {explained(name)}")


def _encoders(rows: pd.DataFrame, attribute: Attribute) -> Iterator[PageChart]:
    """Of what several attackers measured."""
    looks = captioner_looks(rows["model"])
    for key in series_of(rows):
        own = rows_of(rows, key)
        if own["encoder"].nunique() > 1:
            figure = scores_by_encoder(own, own.iloc[:0], key, len(attribute.values), looks)
            said = f"Lines are intervals, {intervals_over(own)}. {METRICS[key[0]].explanation}"
            yield PageChart(f"{named(key)} by encoder and captioner ({attribute.name})", figure, said)


def _conditions(workspace: Workspace, collection: str, rows: pd.DataFrame, attribute: str) -> Iterator[PageChart]:
    """Of captioners that were measured on masked photographs too."""
    for captioner, sets in all_sets(workspace, collection).items():
        for attacker in dict.fromkeys(own for own in rows["encoder"] if own) if len(sets) > 1 else ():
            own = condition_rows(workspace, collection, captioner, attribute, attacker, among=set(rows["run_id"]))
            if own["masked"].nunique() > 1:
                title = f"{captioner} against what was masked ({attribute}, {attacker})"
                said = "Dots are measured values with 95% intervals; dashed: chance for LIC_M, 0 for the others."
                yield PageChart(title, condition_chart(own, own.iloc[:0]), said)
