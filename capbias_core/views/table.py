"""Table: captioners by metrics, errors by label, and other attributes beside."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from pydantic import Field as Described

from capbias_core.aggregate.estimate import VERDICTS
from capbias_core.errors import unknown_name
from capbias_core.measures.registry import METRICS, expand_metrics
from capbias_core.types import counted
from capbias_core.views.choose import ANSWERING, Choice
from capbias_core.views.sentence import listed, measure
from capbias_core.views.view import Field, Forest, View, ViewOptions

FIRST = ("LIC", "LIC_M", "error", "unnamed", "ratio", "refused", "length", "LIC_cut")  # shown if nothing is asked for
GAPS = {name: metric.gap_of for name, metric in METRICS.items() if metric.gap_of}
MOST_CAPTIONERS = 2  # named in the sentence; more are counted


class TableOptions(ViewOptions):
    metrics: tuple[str, ...] = Described(
        (), description="metrics, or names that stand for several (default: the usual)"
    )
    attributes: tuple[str, ...] = Described((), description="further attributes whose LIC stands beside")


USUAL = TableOptions()


def table_rows(choice: Choice, options: TableOptions = USUAL) -> pd.DataFrame:
    """A row for each captioner and number. column: what it is called at the head of a table."""
    wanted = list(expand_metrics(options.metrics)) if options.metrics else list(FIRST)
    of_gaps = [name for name, of in GAPS.items() if of in wanted]
    rows = choice.measured([*wanted, *of_gaps])
    rows = rows[(rows["group"] == "") | rows["metric"].isin(GAPS.values())]
    rows = rows[(rows["object"] == "")]
    rows = rows.assign(column=list(map(_column, rows.to_dict("records"))))
    order = {name: place for place, name in enumerate([*wanted])}
    place = rows["metric"].map(lambda name: order.get(name, order.get(GAPS.get(name, ""), len(order))))
    rows = rows.assign(place=place).sort_values("place", kind="stable").drop(columns="place")
    parts = [choice.ordered(rows)]
    for name in options.attributes:
        if name not in choice.options["attribute"]:
            raise unknown_name("attribute", name, choice.options["attribute"])
        beside = choice.of_attribute(name).measured(ANSWERING)
        beside = beside[(beside["group"] == "") & (beside["metric"] == beside["metric"].iloc[0])]
        parts.append(choice.ordered(beside.assign(column=name + " " + beside["metric"])))
    return pd.concat(parts, ignore_index=True)


def _column(row: dict) -> str:
    if row["metric"] in GAPS:
        return f"{GAPS[row['metric']]} gap"
    return " ".join(filter(None, (measure(row["metric"], row["direction"]), row["group"])))


def verdict_counts(rows: pd.DataFrame) -> str:
    """`1 amplifies, 2 inconclusive`; '' without verdicts."""
    verdicts = rows.loc[rows["metric"] == "LIC"].drop_duplicates("captioner")["verdict"]
    counts = verdicts[verdicts != ""].value_counts()
    return ", ".join(_count(int(counts[name]), name) for name in VERDICTS if name in counts)


def _count(number: int, verdict: str) -> str:
    plural = {"amplifies": "amplify", "reduces": "reduce"}.get(verdict, verdict)
    return f"{number} {verdict if number == 1 else plural}"


def table_sentence(choice: Choice, rows: pd.DataFrame) -> str:
    captioners = counted(rows["captioner"].nunique(), "captioner")
    verdicts = verdict_counts(rows)
    return f"{captioners}: {verdicts or 'no verdict without human captions'} ({choice.setting_name})."


def table_notes(choice: Choice, rows: pd.DataFrame) -> Sequence[str]:
    lines = []
    if (rows["letters"] != "").any():
        lines.append("Same letter: no significant difference.")
    if others := list(dict.fromkeys(filter(None, rows["other"]))):
        lines.append(f"Columns with a setting in brackets were measured with other settings: {listed(others)}.")
    return [*lines, choice.defined.note]


TABLE = View(
    name="table",
    question="Which captioners amplify?",
    rows=table_rows,
    columns=(
        Field("captioner", help="who wrote the captions"),
        Field("verdict", help="of LIC"),
        Field("letters", help="captioners with the same letter do not differ significantly"),
        Field("value", low="low", high="high", across=True),
    ),
    sentence=table_sentence,
    across="column",
    chart=Forest(only=ANSWERING),
    options=TableOptions,
    notes=table_notes,
    example="""\
  capbias view table --collection coco
  capbias view table --collection coco --metrics lic error --attributes race --output table.tex""",
)
