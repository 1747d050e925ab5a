"""Printed figures beside measured ones as a table of text, and claims with the rows that decide them as HTML.

Every text of the HTML is escaped. Colours suit both themes.
"""

from __future__ import annotations

from html import escape

import pandas as pd

from capbias_core.aggregate.variants import variant_text
from capbias_core.analysis.claims import AGREE, DISAGREE, SHORT, Claim, Verdict, summary
from capbias_core.analysis.published import NO, NONE_HERE, NOT_MEASURED, YES
from capbias_core.present.colour import BLUE_MARK, GREY, ORANGE_MARK
from capbias_core.present.sentence import number
from capbias_core.types import counted

HOLDS = "reproduced?"
OPTIONAL = ("attribute", "encoder", "direction", "condition")
MARKS = {AGREE: BLUE_MARK, DISAGREE: ORANGE_MARK}
CELLS = {YES: "background-color: rgba(59,130,208,.38)", NO: "background-color: rgba(138,148,163,.42); font-weight: 600"}

STYLE = f"""<style>
.cb-claim {{border-left: 4px solid {GREY}; padding: .1rem .9rem; margin: .5rem 0; max-width: 110ch}}
.cb-claim summary {{cursor: pointer; font-size: .88rem; opacity: .8}}
.cb-claim table {{border-collapse: collapse; font-size: .85rem; margin: .3rem 0; font-variant-numeric: tabular-nums}}
.cb-claim th, .cb-claim td {{text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0;
  border-top: 1px solid rgba(138,148,163,.4)}}
.cb-claim p {{margin: .15rem 0}}
</style>"""


def beside_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Text for `beside_measured`: captioner, metric, what it was printed for, printed, measured, holds, with what.

    Rows with a measured value come first; of a row that can have none the last column says why. Columns that say
    nothing in this table are left out. A value keeps the decimals that its metric is printed with.
    """
    frame = frame.sort_values("measured_value", key=pd.isna, kind="stable")
    decimals = {metric: _decimals(group["value"]) for metric, group in frame.groupby("metric")}
    places = frame["metric"].map(decimals)
    table = pd.DataFrame({"captioner": frame["model"], "metric": frame["metric"]})
    for name in OPTIONAL:
        if (frame[name] != "").any() and (name != "attribute" or frame[name].nunique() > 1):
            table[name] = frame[name].str.replace("_", " ") if name == "condition" else frame[name]
    rows = list(zip(frame.to_dict("records"), places, strict=True))
    table["printed"] = [_value_text(row["value"], row["spread"], row["spread_kind"], digits) for row, digits in rows]
    table["measured"] = [_measured_text(row, digits) for row, digits in rows]
    table[HOLDS] = frame["holds"]
    table["measured with"] = [_measured_with(row) for row, _ in rows]
    return table.reset_index(drop=True)


def _decimals(values: pd.Series) -> int:
    """The most decimals among printed values."""
    parts = [repr(float(value)).partition(".")[2] for value in values.dropna()]
    return max((len(part) for part in parts if part != "0"), default=0)


def _value_text(value: float, spread: float, kind: str, digits: int) -> str:
    text = number(value, digits)
    return text if pd.isna(spread) else f"{text} ±{number(spread, digits)}{' (95%)' if kind == 'ci95' else ''}"


def _measured_text(row: dict, digits: int) -> str:
    if pd.isna(row["measured_value"]):
        return ""
    text = _value_text(row["measured_value"], row["measured_spread"], "std", digits)
    if pd.isna(row["measured_ci_low"]):
        return text
    return f"{text} [{number(row['measured_ci_low'], digits)}, {number(row['measured_ci_high'], digits)}]"


def _measured_with(row: dict) -> str:
    if pd.isna(row["measured_value"]):
        return row["reason"]
    seeds = counted(int(row["measured_seeds"]), "seed") if row["measured_seeds"] else ""
    named = row["captioner"] if row["captioner"] != row["model"] else ""
    metric = row["measured_metric"] if row["measured_metric"] != row["metric"] else ""
    own = {name.removeprefix("measured_"): value for name, value in row.items() if name.startswith("measured_")}
    origin = variant_text(own)
    parts = (named, metric, row["measured_encoder"], seeds, origin)
    return ", ".join(part for part in parts if part)


def cell_style(text: str) -> str:
    """CSS of a cell of the column `HOLDS`: blue where the interval holds the value, grey where not; the text says so
    too."""
    return CELLS.get(text, "")


def beside_sentence(frame: pd.DataFrame, name: str) -> tuple[str, str]:
    """Headline and support about one printed table beside measured values."""
    holds = frame["holds"]
    printed = len(frame.drop_duplicates(["model", "attribute", "metric", "encoder", "direction", "condition"]))
    beside = int((~holds.isin([NOT_MEASURED, NONE_HERE])).sum())
    inside, outside = int((holds == YES).sum()), int((holds == NO).sum())
    if inside + outside:
        headline = f"The published value lies in {inside} of {counted(inside + outside, 'measured interval')}."
    elif beside:
        headline = "Nothing here is decided: no measured value has the printed encoder, images and protocol."
    elif (holds == NONE_HERE).all():
        headline = "Nothing that is measured here is what this table prints."
    else:
        headline = "Nothing of this table has been measured in this collection."
    support = (
        f"{name} prints {counted(printed, 'number')}; {counted(beside, 'measured value')} "
        f"{'stands' if beside == 1 else 'stand'} beside them.{_without(frame[holds == NONE_HERE])} "
        "Captioners are matched by name: whether your captions are those of the paper, only you know. Values from a "
        "different encoder are shown but not compared."
    )
    return headline, support


def _without(frame: pd.DataFrame) -> str:
    """How many printed numbers can have no measured one, which, and why."""
    said = (
        f" {counted(len(rows), 'number')} ({', '.join(dict.fromkeys(rows['metric']))}; {attribute}) cannot have one: "
        f"{reason}."
        for (reason, attribute), rows in frame.groupby(["reason", "attribute"], sort=False)
    )
    return "".join(said)


def claim_block(claim: Claim, found: list[Verdict]) -> str:
    """HTML: a claim, one sentence of verdicts, and the deciding rows, folded."""
    verdict = {item.printed for item in found}
    colour = MARKS.get(verdict.pop(), GREY) if len(verdict) == 1 else GREY
    head = "".join(f"<th>{name}</th>" for name in ("paper, table", "encoder", "printed rows", "measured rows"))
    rows = "".join(_verdict_row(item) for item in found)
    return (
        f'<div class="cb-claim" style="border-color:{colour}"><p><b>{escape(claim.title)}</b>: '
        f"“{escape(claim.statement)}”</p><p>{escape(summary(found))}</p>"
        f"<details><summary>Rows that decide it: {escape(claim.rule)}</summary>"
        f"<table><tr>{head}</tr>{rows}</table></details></div>"
    )


def _verdict_row(item: Verdict) -> str:
    cells = (
        f"{SHORT[item.paper]} {item.table} ({item.attribute})",
        item.encoder,
        f"{item.printed}: {item.printed_reason}",
        f"{item.measured}: {item.measured_reason}",
    )
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
