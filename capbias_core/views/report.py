"""A report to send: two pages on the answer, and everything else folded behind them. One HTML file without a script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pandas as pd
from markupsafe import Markup

from capbias_core.errors import CapbiasError
from capbias_core.views import coloured
from capbias_core.views.answer import answer, error_rows
from capbias_core.views.captions import CAPTIONS, CaptionsOptions, caption_rows
from capbias_core.views.choose import ANSWERING, Choice
from capbias_core.views.draw import drawable, forest_html
from capbias_core.views.markup import html, style
from capbias_core.views.palette import VARIABLES
from capbias_core.views.registry import VIEWS
from capbias_core.views.scored import caption_scores, lines_of, scored
from capbias_core.views.sentence import say
from capbias_core.views.table import TABLE
from capbias_core.views.view import Forest, Table, View
from capbias_core.views.words import WORDS

QUOTED = 6  # images whose captions are shown
PEOPLE = 2  # captions by people of each


@dataclass(frozen=True)
class Part:
    """A view for a reader. chart: HTML, '' for none."""

    view: View
    sentence: str
    table: Table
    chart: str
    notes: Sequence[str]


def part_of(view: View, choice: Choice, rows: pd.DataFrame) -> Part:
    forest = isinstance(view.chart, Forest) and not view.chart.panel and drawable(view, rows)
    chart = forest_html(view, rows, choice.captioner) if forest else ""
    return Part(view, view.sentence(choice, rows), view.table(rows), chart, view.notes(choice, rows))


def report_html(
    choices: Sequence[Choice],
    about: Mapping[str, str],
    inputs: pd.DataFrame,
    reproduce: str,
    methods: Sequence[str] = (),
    note: str = "",
) -> str:
    """The report as one HTML file.

    choices: one for each attribute, the first for the two pages. about: what was measured, label to text. inputs: what
    it was measured from. methods: further lines on how. note: by the author.
    """
    choice = choices[0]
    rows, of_answer = TABLE.rows(choice), answer(choice)
    parts = {part.view.name: part for part in _parts(choice)}
    errors = error_rows(choice).assign(column=lambda frame: frame["group"].where(frame["group"] != "", "gap"))
    captioners = part_of(TABLE, choice, rows[~rows["metric"].isin(["error", "error_gap"])])
    return html(
        "report",
        title=f"{choice.collection}: {choice.attribute} bias in image captions",
        styles=Markup("\n".join([VARIABLES, style("forest"), style("coloured")])),  # noqa: S704
        choice=choice,
        answer=of_answer,
        note=note,
        captioners=captioners,
        errors=TABLE.table(errors.assign(verdict="", letters="")) if len(errors) else None,
        words=parts.get(WORDS.name),
        captions=list(_quoted(choice)) if of_answer.main["metric"] in ANSWERING else [],
        legend=coloured.legend(choice.defined),
        limits=captioners.notes if choice.defined.note else [*captioners.notes, say("answer.limits")],
        others=[
            {"title": each.attribute, "answer": answer(each).text, "part": part_of(TABLE, each, TABLE.rows(each))}
            for each in choices[1:]
        ],
        parts=list(parts.values()),
        about=about,
        methods=methods,
        inputs=inputs,
        reproduce=reproduce,
    )


def _parts(choice: Choice) -> Iterator[Part]:
    """Every view that has rows of what is measured."""
    for view in VIEWS.values():
        if view.name == CAPTIONS.name:
            continue
        with suppress(CapbiasError):  # what the view reads is not there
            rows = view.rows(choice, view.options())
            if len(rows):
                yield part_of(view, choice, rows)


def _quoted(choice: Choice) -> Iterator[dict[str, Any]]:
    """Some images: the captioner's caption, with its words coloured if it is scored, and people's. Of scored captions
    they are those on which the guesses from the captioner's and people's captions differ most."""
    sets = scored(choice)
    beside: tuple[str, ...] = (sets.human,) if sets.human else ()
    written, *human = (choice.workspace.frame(sets.sets[name].hash) for name in (choice.captioner, *beside))
    people = human[0].groupby("image_id")["caption"].agg(list).to_dict() if human else {}
    rows = caption_rows(choice, CaptionsOptions(beside=beside, top=QUOTED))
    labels = rows.drop_duplicates("image_id").set_index("image_id")["labelled"].to_dict()
    if not labels:
        shared = dict.fromkeys(image for image in written["image_id"] if image in people or not people)
        labels = dict.fromkeys(list(shared)[:QUOTED], "")
    run = sets.runs.get(choice.captioner)
    scores = caption_scores(run) if run else None
    for image, label in labels.items():
        line = lines_of(choice.captioner, scores, written, image)[0]
        texts = {"guess": coloured.guess_text(line), "people": people.get(image, [])[:PEOPLE]}
        yield {"image": image, "label": label, "words": coloured.line_words(line), **texts}
