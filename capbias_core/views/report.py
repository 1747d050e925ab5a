"""A report to send: two pages with the verdict, captioners, errors, words and captions; everything else is folded.

One HTML file that opens without a server, a network or a script.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.kinds import REFERENCES
from capbias_core.views.answer import answer, error_rows
from capbias_core.views.choose import Choice
from capbias_core.views.draw import FOREST_CSS, drawable, forest_html
from capbias_core.views.registry import VIEWS
from capbias_core.views.sentence import say
from capbias_core.views.view import Field, Forest, Table, View

OF_TEXTS = ("words", "captions")  # views that show words of captions
FOLDED = ("table", "where", "directions", "encoders", "masking")
SHOWN_CAPTIONS, PEOPLE = 6, 2  # captions in the report, and people's beside each


@dataclass(frozen=True)
class Part:
    """A view in the report. chart: HTML."""

    title: str
    sentence: str
    table: Table | None = None
    chart: str = ""
    notes: tuple[str, ...] = ()


def report_html(
    choice: Choice,
    others: Sequence[Choice] = (),
    about: Mapping[str, Any] = {},
    items: Sequence[Mapping[str, Any]] = (),
    notes: Sequence[str] = (),
    reproduce: str = "",
    note: str = "",
    texts: bool = True,
) -> str:
    """The report of a choice.

    others: of further attributes, whose answer is a line. about: how it was measured. items: the inputs. notes: of the
    runs. note: by the author. texts: whether it may show words and captions.
    """
    said = answer(choice)
    first = [_part(VIEWS["table"], choice, chart_alone=True)]
    errors = error_rows(choice)
    if len(errors):
        first.append(_errors(choice, errors))
    if texts and (words := _part(VIEWS["words"], choice, chart_alone=True)):
        first.append(words)
    folded = [_part(VIEWS[name], choice) for name in FOLDED if name in VIEWS]
    template = jinja2.Environment(autoescape=True, loader=jinja2.FileSystemLoader(Path(__file__).parent))
    return template.get_template("report.html.j2").render(
        title=f"{choice.collection}: {choice.attribute} bias in image captions",
        subtitle=choice.title,
        css=FOREST_CSS,
        answer=said,
        elsewhere=[f"{other.attribute}: {answer(other).sentence}" for other in others],
        note=note,
        first=[part for part in first if part],
        captions=_captions(choice) if texts else [],
        limits=[choice.defined.note, say("answer.limits")],
        folded=[part for part in folded if part and part.table is not None],
        notes=list(notes),
        about=about,
        items=items,
        reproduce=reproduce,
    )


def _part(view: View, choice: Choice, chart_alone: bool = False) -> Part | None:
    """A view, None if it has no rows."""
    with suppress(CapbiasError):
        rows = view.rows(choice)
        if rows.empty:
            return None
        chart = ""
        if isinstance(view.chart, Forest) and not view.chart.panel and drawable(view, rows):
            chart = forest_html(view, rows, choice.captioner)
        table = None if chart_alone and chart else view.table(rows)
        return Part(view.question, view.sentence(choice, rows), table, chart, tuple(view.notes(choice, rows)))
    return None


ERRORS = View(
    name="errors",
    question="Who is named wrongly?",
    rows=lambda choice: error_rows(choice),
    columns=(Field("captioner"), Field("value", low="low", high="high", across=True)),
    sentence=lambda choice, rows: say("answer.wrong", attribute=choice.attribute),
    across="column",
)


def _errors(choice: Choice, rows: pd.DataFrame) -> Part:
    """`error` by label and its gap, a line for each captioner."""
    named = rows.assign(column=rows["group"].where(rows["metric"] == "error", "gap"))
    return Part(ERRORS.question, ERRORS.sentence(choice, rows) + ", %.", ERRORS.table(choice.ordered(named)))


def _captions(choice: Choice) -> list[dict[str, Any]]:
    """Some captions of the captioner that is read, equally many of each label, with people's."""
    run = choice.run()
    captions = choice.workspace.frame(run.spec.captions).drop_duplicates("image_id")
    item = next(
        (item for item in choice.workspace.items(REFERENCES, choice.collection) if item.hash == run.spec.references),
        None,
    )
    if item is None:
        return []
    people = choice.workspace.frame(item.hash).groupby("image_id")["caption"].agg(list)
    labels = choice.labels()
    captions = captions[captions["image_id"].isin(people.index) & captions["image_id"].isin(labels.index)]
    captions = captions.assign(label=captions["image_id"].map(labels))
    each = max(1, SHOWN_CAPTIONS // max(1, captions["label"].nunique()))
    shown = captions.groupby("label", sort=False).head(each).head(SHOWN_CAPTIONS)
    return [
        {"caption": row["caption"], "label": row["label"], "people": people[row["image_id"]][:PEOPLE]}
        for row in shown.to_dict("records")
    ]
