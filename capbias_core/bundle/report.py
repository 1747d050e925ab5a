"""Results as one HTML file that opens without a server and without a network, in light and dark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, NamedTuple

import pandas as pd

from capbias_core.measures.registry import METRICS
from capbias_core.types import Attribute, counted
from capbias_core.views import objects
from capbias_core.views.charts import captioner_looks
from capbias_core.views.conditions import condition_chart, condition_rows
from capbias_core.views.directions import basis, directions, explained, measures_in, plane
from capbias_core.views.encoders import named, rows_of, scores_by_encoder, series_of
from capbias_core.views.objects import (
    BINS,
    beside_chart,
    beside_note,
    counted_objects,
    distribution_chart,
    score_chart,
    score_of,
)
from capbias_core.views.results import attribute_of_run, references_read
from capbias_core.views.sentence import intervals_over
from capbias_core.workspace.conditions import all_sets, originals
from capbias_core.workspace.store import RunRow, Workspace

WITHIN_NUMBER = re.compile(r" (?=±)|(?<=\d,) (?=[−\d.]+\])")
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
    """A chart of a report. svg: from `present.svg`. note: what is said under it."""

    title: str
    svg: str
    note: str = ""


@dataclass(frozen=True)
class ReportParts:
    """What a report shows. Texts are plain and are escaped here. answer: headline and what it rests on, ('', '') for
    none. tables: of scores. groups: each metric by group, empty for none. about: what was measured, label to text.
    sections: further tables, title to frame."""

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


def report_html(parts: ReportParts) -> str:
    """The report as one file."""
    headline, support = parts.answer
    said = f'<div class="answer"><b>{escape(headline)}</b><p>{escape(support)}</p></div>' if headline else ""
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<title>{escape(parts.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>",
            f"<h1>{escape(parts.title)}</h1>",
            said,
            "<h2>Scores</h2>",
            *map(_table, parts.tables),
            _small(parts.table_note),
            *(["<h2>By group</h2>", _table(parts.groups), _small(parts.groups_note)] if len(parts.groups) else []),
            "<h2>Charts</h2>" if parts.charts else "",
            *(f"<h3>{escape(own.title)}</h3>{own.svg}{_small(own.note)}" for own in parts.charts),
            *(["<h2>What to know</h2>", _list(parts.notes)] if parts.notes else []),
            "<h2>How it was measured</h2>",
            _table(pd.DataFrame(parts.about.items(), columns=["what", "value"]), "long"),
            *(f"<h3>{escape(title)}</h3>{_table(frame)}" for title, frame in parts.sections.items()),
            "<h2>How to reproduce it</h2>",
            f"<p>{escape(parts.reproduce)}</p>",
            "<pre>capbias reproduce THIS_BUNDLE.zip</pre>",
            f'<h3>The plan</h3>\n<pre tabindex="0">{escape(parts.plan)}</pre>',
            "</main>\n</body>\n</html>\n",
        ]
    )


def _small(text: str) -> str:
    return f'<p class="small">{escape(text)}</p>' if text else ""


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def _table(frame: pd.DataFrame, kind: str = "wide") -> str:
    head = "".join(f'<th scope="col">{_cell(name)}</th>' for name in frame.columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in frame.itertuples(index=False)
    )
    # A region that scrolls is reached with the keyboard.
    return f'<div class="{kind}" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(value: object) -> str:
    """A cell. `18.4 ±1.1 [16.6, 20.2]` may break before its interval alone, a name after each underscore."""
    return WITHIN_NUMBER.sub("\u00a0", escape(str(value))).replace("_", "_<wbr>")


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
