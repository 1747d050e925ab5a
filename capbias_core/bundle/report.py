"""Results as one HTML file that opens without a server and without a network, in light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import pandas as pd

from capbias_core.measures.registry import METRICS
from capbias_core.types import counted
from capbias_core.views.charts import captioner_looks
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
.answer { background: var(--box); border-left: 4px solid #3B82D0; padding: .8rem 1rem }
.answer b { font-size: 1.15rem } .answer p { margin: .4rem 0 0 }
.wide { overflow-x: auto; margin-bottom: 1.2rem } svg { max-width: 100%; height: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line) }
.long td { overflow-wrap: anywhere } .long td:first-child { overflow-wrap: normal }
.small { color: var(--soft); font-size: .9rem } pre { background: var(--box); padding: .8rem; overflow-x: auto }
li { margin: .3rem 0 }
"""


@dataclass(frozen=True)
class Chart:
    """A chart of a report. svg: as `charts.interval_svg` makes it. note: what stands under it."""

    title: str
    svg: str
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
    plan: str = ""
    views: Mapping[str, Shown] = field(default_factory=dict)


def report_cell(row: dict) -> str:
    """The value of a result row as `tables.value_text` has it, which may break before its interval alone."""
    return " ".join(part.replace(" ", "\u00a0") for part in value_parts(row) if part)


def report_html(parts: ReportParts) -> str:
    """The report as one file."""
    headline, support = parts.answer
    answer = f'<div class="answer"><b>{escape(headline)}</b><p>{escape(support)}</p></div>' if headline else ""
    notes = "".join(f"<li>{escape(note)}</li>" for note in parts.notes)
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<title>{escape(parts.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>",
            f"<h1>{escape(parts.title)}</h1>",
            answer,
            "<h2>Scores</h2>",
            *map(_table, parts.tables),
            _small(parts.table_note),
            *(["<h2>By group</h2>", _table(parts.groups), _small(parts.groups_note)] if len(parts.groups) else []),
            *(part for heading, shown in parts.views.items() for part in _view(heading, shown)),
            "<h2>Charts</h2>" if parts.charts else "",
            *(f"<h3>{escape(chart.title)}</h3>{chart.svg}{_small(chart.note)}" for chart in parts.charts),
            *(["<h2>What to know</h2>", f"<ul>{notes}</ul>"] if parts.notes else []),
            "<h2>How it was measured</h2>",
            _table(pd.DataFrame(parts.about.items(), columns=["what", "value"]), "long"),
            *(f"<h3>{escape(title)}</h3>{_table(frame)}" for title, frame in parts.sections.items()),
            "<h2>How to reproduce it</h2>",
            f"<p>{escape(parts.reproduce)}</p>",
            "<pre>capbias reproduce BUNDLE.zip</pre>",
            f'<h3>The plan</h3>\n<pre tabindex="0">{escape(parts.plan)}</pre>',
            "</main>\n</body>\n</html>\n",
        ]
    )


def _view(heading: str, shown: Shown) -> Iterator[str]:
    yield f"<h2>{escape(heading)}</h2><p>{escape(shown.sentence)}</p>"
    yield _table(shown.for_reader)
    yield from map(_small, shown.notes)


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


def page_charts(
    workspace: Workspace, collection: str, rows: pd.DataFrame, runs: Sequence[RunRow]
) -> Iterator[tuple[str, Any, str]]:
    """The charts of directions, encoders, masking and objects that these results can show, in the order of the pages:
    title, figure of Plotly, and what is to be known of it. Raises CapbiasError without Plotly."""
    attributes = {attribute.name: attribute for attribute in map(attribute_of_run, runs)}
    references = {run.spec.references for run in runs}
    for run in runs:
        attribute, model = attribute_of_run(run), run.spec.model
        if run.spec.measure in SCORED:
            title, metric = SCORED[run.spec.measure]
            figure = score_chart(scores_by_object(workspace, run), metric, (*attribute.values, "neutral"))
            yield (f"{title} by object, {model}", figure, METRICS[metric].explanation)
        if run.spec.measure == "object_cooccurrence":
            human = references_read(workspace, collection).get(attribute.name)
            human = human if human and human.hash in references else None
            table = counted_objects(workspace, run.spec, human)[1]
            if human:
                figure = beside_chart(table, attribute, model)
                yield (f"Objects of {model} beside the human captions", figure, beside_note(table, attribute))
            yield (f"Distribution over objects, {model}", distribution_chart(table, attribute, model), BINS)
    captioners = rows[rows["model"].isin(originals(workspace.items("captions", collection)))]
    for name, attribute in attributes.items():
        compared = captioners[captioners["attribute"] == name]
        for pair in measures_in(compared):
            for (encoder, variant, seeds), group in directions(compared, pair).groupby(list(WAY), sort=False):
                parts = (name, encoder, variant.replace("_", " "), counted(seeds, "seed") if seeds else "")
                title = f"{pair} in both directions ({', '.join(filter(None, parts))})"
                yield (title, plane(group, pair), f"{basis(group)} {explained(pair)}")
        looks = captioner_looks(compared["model"])
        for key in series_of(compared):
            series = rows_of(compared, key)
            if series["encoder"].nunique() > 1:
                figure = scores_by_encoder(series, series.iloc[:0], key, len(attribute.values), looks)
                note = f"Lines are intervals, {intervals_over(series)}. {METRICS[key[0]].explanation}"
                yield (f"{named(key)} by encoder and captioner ({name})", figure, note)
        of_attribute = rows[rows["attribute"] == name]
        attackers, among = [own for own in dict.fromkeys(of_attribute["encoder"]) if own], set(of_attribute["run_id"])
        for captioner, sets in all_sets(workspace, collection).items():
            for attacker in attackers if len(sets) > 1 else ():
                by_condition = condition_rows(workspace, collection, captioner, name, attacker, among=among)
                if by_condition["masked"].nunique() > 1:
                    title = f"{captioner} against what was masked ({name}, {attacker})"
                    note = "Dots are measured values with 95% intervals; dashed: chance for LIC_M, 0 for the others."
                    yield (title, condition_chart(by_condition, by_condition.iloc[:0]), note)
