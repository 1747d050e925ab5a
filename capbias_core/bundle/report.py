"""Results as one HTML file that opens without a server and without a network, in light and dark.

Charts are drawn by the plotly.js that the file contains, so none is left out where a file is written without a browser.
Without scripts a reader sees their numbers as tables.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from typing import Any

import pandas as pd

from capbias_core.measures.registry import METRICS
from capbias_core.types import counted
from capbias_core.views.conditions import condition_chart, condition_rows
from capbias_core.views.directions import WAY, basis, directions, explained, measures_in, plane
from capbias_core.views.encoders import named, rows_of, scores_by_encoder, series_of
from capbias_core.views.objects import (
    BINS,
    SCORED,
    beside_chart,
    beside_note,
    counted_objects,
    distribution_chart,
    score_chart,
    scores_by_object,
)
from capbias_core.views.palette import VARIABLES
from capbias_core.views.pictures import HEIGHT, figure_data
from capbias_core.views.results import attribute_of_run, references_read
from capbias_core.views.sentence import intervals_over
from capbias_core.views.tables import value_parts
from capbias_core.views.view import Shown
from capbias_core.workspace.conditions import all_sets, originals
from capbias_core.workspace.store import RunRow, Workspace

STYLE = """
:root { color-scheme: light dark; --ink: #1b2733; --ground: #fff; --soft: #4d5a68; --line: #d5dbe2; --box: #f3f6f9 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6ebf0; --ground: #10161d; --soft: #aab5c1; --line: #33404d; --box: #18212b } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground); margin: 2rem auto;
  max-width: 62rem; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2.2rem } h3 { font-size: 1rem; margin-bottom: .3rem }
.answer { background: var(--box); border-left: 4px solid var(--cb-blue); padding: .8rem 1rem }
.answer b { font-size: 1.15rem } .answer p { margin: .4rem 0 0 }
.wide { overflow-x: auto; margin-bottom: 1.2rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line) }
.long td { overflow-wrap: anywhere } .long td:first-child { overflow-wrap: normal }
.small { color: var(--soft); font-size: .9rem } pre { background: var(--box); padding: .8rem; overflow-x: auto }
li { margin: .3rem 0 } @media (scripting: none) { .chart { min-height: 0 !important } }
"""
# Draws each chart when it comes into view, in the ink of the page, with a button that saves it as SVG.
DRAW = """
const ink = getComputedStyle(document.body).color, clear = "rgba(0,0,0,0)"
const axis = {automargin: true, gridcolor: "rgba(128,128,128,.25)", zerolinecolor: "rgba(128,128,128,.5)"}
const theme = {paper_bgcolor: clear, plot_bgcolor: clear, font: {color: ink}, xaxis: axis, yaxis: axis}
function draw(place) {
  seen.unobserve(place)
  const {data, layout} = JSON.parse(place.firstElementChild.textContent)
  const image = {format: "svg", filename: place.getAttribute("aria-label")}
  const config = {responsive: true, displaylogo: false, modeBarButtons: [["toImage"]], toImageButtonOptions: image}
  Plotly.newPlot(place, data, {...layout, template: {layout: theme}}, config)
}
const near = {rootMargin: "600px"}
const seen = new IntersectionObserver(all => all.filter(one => one.isIntersecting).map(one => draw(one.target)), near)
const places = document.querySelectorAll(".chart")
places.forEach(place => seen.observe(place))
addEventListener("beforeprint", () => places.forEach(place => place.matches(".js-plotly-plot") || draw(place)))
"""


@dataclass(frozen=True)
class Chart:
    """A chart of a report. figure: of Plotly. note: the text below it."""

    title: str
    figure: Any
    note: str = ""


@dataclass(frozen=True)
class ReportParts:
    """What a report shows. Texts are plain and are escaped here. answer: headline and what it depends on, ('', '') for
    none. tables: of scores. groups: each metric by group, empty for none. about: what was measured, label to text.
    sections: further tables, title to frame. views: heading to view; their charts are among the charts."""

    title: str
    answer: tuple[str, str]
    tables: Sequence[pd.DataFrame]
    table_note: str
    groups: pd.DataFrame = field(default_factory=pd.DataFrame)
    groups_note: str = ""
    charts: Sequence[Chart] = ()
    notes: Sequence[str] = ()
    about: Mapping[str, str] = field(default_factory=dict)
    sections: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    reproduce: str = ""
    views: Mapping[str, Shown] = field(default_factory=dict)


def report_cell(row: dict) -> str:
    """The value of a result row as `tables.value_text` has it, which may break before its interval alone."""
    return " ".join(part.replace(" ", "\u00a0") for part in value_parts(row) if part)


def report_html(parts: ReportParts) -> str:
    """The report as one file."""
    headline, support = parts.answer
    answer = f'<div class="answer"><b>{escape(headline)}</b><p>{escape(support)}</p></div>' if headline else ""
    notes = "".join(f"<li>{escape(note)}</li>" for note in parts.notes)
    scripts = [_plotly(), DRAW] if parts.charts else []
    hashes = [b64encode(sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes) or "'none'"
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; script-src {allowed}"
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            # Only these scripts run, whatever a name or a caption holds.
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            f"<title>{escape(parts.title)}</title>\n<style>{VARIABLES}{STYLE}</style>\n</head>\n<body>\n<main>",
            f"<h1>{escape(parts.title)}</h1>",
            answer,
            "<h2>Scores</h2>",
            *map(_table, parts.tables),
            _small(parts.table_note),
            *(["<h2>By group</h2>", _table(parts.groups), _small(parts.groups_note)] if len(parts.groups) else []),
            *(part for heading, shown in parts.views.items() for part in _view(heading, shown)),
            "<h2>Charts</h2>" if parts.charts else "",
            *map(_chart, parts.charts),
            *(["<h2>What to know</h2>", f"<ul>{notes}</ul>"] if parts.notes else []),
            "<h2>How it was measured</h2>",
            _table(pd.DataFrame(parts.about.items(), columns=["what", "value"]), "long"),
            *(f"<h3>{escape(title)}</h3>{_table(frame)}" for title, frame in parts.sections.items()),
            "<h2>How to reproduce it</h2>",
            f"<p>{escape(parts.reproduce)}</p>",
            "<pre>capbias reproduce BUNDLE.zip</pre>",
            "</main>",
            *(f"<script>{script}</script>" for script in scripts),
            "</body>\n</html>\n",
        ]
    )


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return get_plotlyjs()


def _view(heading: str, shown: Shown) -> Iterator[str]:
    yield f"<h2>{escape(heading)}</h2><p>{escape(shown.sentence)}</p>"
    yield _table(shown.for_reader)
    yield from map(_small, shown.notes)


def _chart(chart: Chart) -> str:
    """A figure as JSON, which DRAW draws; as a table where no script runs."""
    chart.figure.layout.template = None
    title, height = escape(chart.title), chart.figure.layout.height or HEIGHT
    figure = chart.figure.to_json().replace("<", "\\u003c")
    return (
        f'<h3>{title}</h3><div class="chart" role="figure" aria-label="{title}" style="min-height: {height}px">'
        f'<script type="application/json">{figure}</script></div>'
        f"<noscript>{_table(figure_data(chart.figure).round(3).fillna(''))}</noscript>{_small(chart.note)}"
    )


def _small(text: str) -> str:
    return f'<p class="small">{escape(text)}</p>' if text else ""


def _table(frame: pd.DataFrame, kind: str = "wide") -> str:
    """A table, in whose cells a name may break after each underscore."""
    lines = [[escape(str(cell)).replace("_", "_<wbr>") for cell in row] for row in ([*frame], *frame.to_numpy())]
    head = "".join(f'<th scope="col">{cell}</th>' for cell in lines[0])
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in lines[1:])
    # A region that scrolls is reached with the keyboard.
    return f'<div class="{kind}" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


# the charts that pages draw of results, made of the rows of a bundle


def page_charts(workspace: Workspace, collection: str, rows: pd.DataFrame, runs: Sequence[RunRow]) -> Iterator[Chart]:
    """The charts of directions, encoders, masking and objects that these results can show, in the order of the pages.
    Raises CapbiasError without Plotly."""
    attributes = {attribute.name: attribute for attribute in map(attribute_of_run, runs)}
    references = {run.spec.references for run in runs}
    for run in runs:
        attribute, model = attribute_of_run(run), run.spec.model
        if run.spec.measure in SCORED:
            title, metric = SCORED[run.spec.measure]
            figure = score_chart(scores_by_object(workspace, run), metric, (*attribute.values, "neutral"))
            yield Chart(f"{title} by object, {model}", figure, METRICS[metric].explanation)
        if run.spec.measure == "object_cooccurrence":
            human = references_read(workspace, collection).get(attribute.name)
            human = human if human and human.hash in references else None
            table = counted_objects(workspace, run.spec, human)[1]
            if human:
                figure = beside_chart(table, attribute, model)
                yield Chart(f"Objects of {model} beside the human captions", figure, beside_note(table, attribute))
            yield Chart(f"Distribution over objects, {model}", distribution_chart(table, attribute, model), BINS)
    captioners = rows[rows["model"].isin(originals(workspace.items("captions", collection)))]
    for name, attribute in attributes.items():
        compared = captioners[captioners["attribute"] == name]
        for pair in measures_in(compared):
            for (encoder, variant, seeds), group in directions(compared, pair).groupby(list(WAY), sort=False):
                parts = (name, encoder, variant.replace("_", " "), counted(seeds, "seed") if seeds else "")
                title = f"{pair} in both directions ({', '.join(filter(None, parts))})"
                yield Chart(title, plane(group, pair), f"{basis(group)} {explained(pair)}")
        for key in series_of(compared):
            series = rows_of(compared, key)
            if series["encoder"].nunique() > 1:
                figure = scores_by_encoder(series, series.iloc[:0], key, len(attribute.values))
                note = f"Lines are intervals, {intervals_over(series)}. {METRICS[key[0]].explanation}"
                yield Chart(f"{named(key)} by encoder and captioner ({name})", figure, note)
        of_attribute = rows[rows["attribute"] == name]
        attackers, among = (
            [encoder for encoder in dict.fromkeys(of_attribute["encoder"]) if encoder],
            set(of_attribute["run_id"]),
        )
        for captioner, sets in all_sets(workspace, collection).items():
            for attacker in attackers if len(sets) > 1 else ():
                by_condition = condition_rows(workspace, collection, captioner, name, attacker, among=among)
                if by_condition["masked"].nunique() > 1:
                    title = f"{captioner} against what was masked ({name}, {attacker})"
                    note = "Dots are measured values with 95% intervals; dashed: chance for LIC_M, 0 for the others."
                    yield Chart(title, condition_chart(by_condition, by_condition.iloc[:0]), note)
