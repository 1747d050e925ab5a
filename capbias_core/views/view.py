"""A view is data: a question, rows, the fields of its columns, a chart and a sentence. Renderers know no view."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from pydantic import BaseModel, ConfigDict

from capbias_core.measures.registry import METRICS
from capbias_core.views.choose import Choice
from capbias_core.views.sentence import better_text, decimals, with_interval
from capbias_core.workspace.spec import RunSpec

# Columns of every view's rows that hold numbers of metrics; a view may add others.
TIDY = ("captioner", "metric", "direction", "group", "encoder", "value", "low", "high", "n", "verdict", "letters")
TIDY += ("setting", "setting_name", "other")

BY_METRIC = -1  # digits of a column in which each number has as many as its row's metric


class ViewOptions(BaseModel):
    """What can be chosen of one view beside the four fields of the bar. A field's description is the help of its flag
    and of its control."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class Field:
    """A column for readers.

    name: of the column in the rows. label: its heading (default: the name). unit: follows the heading. digits: None for
    a text; of a metric the metric's; BY_METRIC. places: a column with the digits of each row. low, high: columns of the
    ends of its interval. across: there is one such column for each value of the view's `across`. signed: with a plus
    above 0. least: a number from 0 to here is shown as `< 0.001`, such as a p. varying: shown only if its values
    differ.
    """

    name: str
    label: str = ""
    unit: str = ""
    digits: int | None = None
    help: str = ""
    low: str = ""
    high: str = ""
    across: bool = False
    signed: bool = False
    least: float = 0.0
    places: str = ""
    varying: bool = False

    def text(self, row: Mapping[str, Any]) -> str:
        """The value in a row as text, '' for none. Numbers become text here and nowhere else."""
        value = row.get(self.name)
        if value is None or pd.isna(value):
            return ""
        if (digits := self.digits) is None:
            return str(value)
        if self.places:
            digits = int(row[self.places])
        if isinstance(value, int) or (digits == 0 and not self.low):
            return f"{value:,.0f}"
        if digits == BY_METRIC:
            digits = decimals(row["metric"], METRICS[row["metric"]].scale)
        if 0 <= value < self.least:
            return f"< {self.least:g}"
        low, high = (row.get(self.low), row.get(self.high)) if self.low else (None, None)
        text = with_interval(value, low, high, digits)
        return f"+{text}" if self.signed and round(value, digits) > 0 else text


@dataclass(frozen=True)
class Forest:
    """Points with intervals, a line for each `by` of the view.

    title: of the axis. only: the first of these values of `across` that there is is drawn (default: the first; all if
    there are series or panels). series: a column whose values are drawn beside each other on a line. panel: a column
    for whose values there is a chart each. diverging: orange below 0, blue above; the names of both ends are in
    `rows.attrs["ends"]`. reference: where the reference line is (default: the metric's neutral point). where: a column
    of booleans; only rows with True are drawn.
    """

    title: str = ""
    only: Sequence[str] = ()
    series: str = ""
    panel: str = ""
    reference: float | None = None
    diverging: bool = False
    where: str = ""


@dataclass(frozen=True)
class Scatter:
    """A point for each captioner: its rows with the values x and y of the column `by`. titles: of both axes. corners:
    what a corner means, such as `top right`."""

    x: str
    y: str
    by: str
    titles: tuple[str, str]
    corners: Mapping[str, str]


Chart = Forest | Scatter


@dataclass(frozen=True)
class View:
    """A question that researchers ask, and how it is answered.

    rows: from a choice and options to a tidy frame, a row for each number; the CSV is this frame. sentence: from the
    choice and its rows, what follows from them. by: the column that is a line of the table. across: the column whose
    values are the columns of the table. options: what else can be chosen. notes: how to read it, and what is missing.
    gate: whether rows pass, as FAILED, UNDECIDED or PASSED of change.py with a sentence; for the option `fail_if`.
    of_files: from options to the metrics by which its command scores files first; None if it reads no files.
    needs: from a choice and options to the runs that the rows read beside those of the setting; a command computes them
    first, a page offers them. optional: it has rows without a choice, too.
    example: command lines.
    """

    name: str
    question: str
    rows: Callable[..., pd.DataFrame]
    columns: tuple[Field, ...]
    sentence: Callable[..., str]
    by: str = "captioner"
    across: str = ""
    chart: Chart | None = None
    options: type[ViewOptions] = ViewOptions
    notes: Callable[..., Sequence[str]] = lambda choice, rows: ()
    gate: Callable[[pd.DataFrame], tuple[str, str]] | None = None
    of_files: Callable[..., Sequence[str]] | None = None
    needs: Callable[..., list[RunSpec]] = lambda choice, options: []
    optional: bool = False
    example: str = ""

    def title(self, choice: Choice | None) -> str:
        """What a table or file of it is called: the question and what it is about."""
        return f"{self.question} {choice.title}" if choice else self.question

    def field_of(self, column: Field, value: str, row: Mapping[str, Any]) -> Field:
        """The field of a column across: digits and help are those of its metric. The heading of a number of another
        setting than the chosen one has that setting's name, so no renderer can leave it out."""
        if not column.across:
            return column
        metric = METRICS.get(row.get("metric", ""))
        heading = " ".join(filter(None, (column.label, value, column.unit)))
        if not column.low or column.digits == BY_METRIC:
            return replace(column, label=heading)
        if other := row.get("other"):
            heading = f"{heading} ({other})"
        if metric is None:
            return replace(column, label=heading, digits=2 if column.digits is None else column.digits)
        digits = decimals(metric.name, metric.scale) if column.digits is None else column.digits
        meaning = f"{metric.title}: {better_text(metric.name)}. {metric.explanation}"
        return replace(column, label=heading, digits=digits, help=column.help or meaning)

    def table(self, rows: pd.DataFrame) -> Table:
        """The rows for a reader: a line for each `by`."""
        lines = list(dict.fromkeys(rows[self.by])) if len(rows) else []
        fields: dict[str, Field] = {}
        cells: dict[str, dict[str, Mapping[str, Any]]] = {}
        records = rows.to_dict("records")
        for column in self.columns:
            if column.varying and rows[column.name].nunique() < 2:
                continue
            for value in dict.fromkeys(rows[self.across]) if column.across and len(rows) else ("",):
                among: dict[str, Mapping[str, Any]] = {}
                for row in records:
                    in_column = not column.across or row[self.across] == value
                    if in_column and row[column.name] != "" and pd.notna(row[column.name]):
                        among.setdefault(row[self.by], row)
                if among:
                    shown = self.field_of(column, str(value), next(iter(among.values())))
                    fields[shown.label or shown.name] = shown
                    cells[shown.label or shown.name] = among
        values = {
            heading: [among.get(line, {}).get(fields[heading].name) for line in lines]
            for heading, among in cells.items()
        }
        texts = {
            heading: [fields[heading].text(among.get(line, {})) for line in lines] for heading, among in cells.items()
        }
        numbers = pd.DataFrame(values)
        for heading, shown in fields.items():
            if shown.digits is not None:
                numbers[heading] = pd.to_numeric(numbers[heading])
        return Table(numbers, pd.DataFrame(texts, dtype=str), fields)


@dataclass(frozen=True)
class Table:
    """A table for readers: its values, the same as texts, and the field of each column by its heading."""

    numbers: pd.DataFrame
    texts: pd.DataFrame
    fields: dict[str, Field]

    @property
    def styled(self):
        """The values, shown as their texts: a page sorts by the values."""
        styler = self.numbers.style.set_uuid("table")  # else each drawing is another, and is sent anew
        for column, heading in enumerate(self.numbers):
            for line in range(len(self.numbers)):
                styler._display_funcs[line, column] = lambda _, text=self.texts[heading].iloc[line]: text
        return styler
