"""Table: captioners by metrics, errors by label, leakage by label, other attributes beside, and pairs of captioners."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field as Described

from capbias_core.aggregate import Counts, Estimate, Ranking
from capbias_core.aggregate.estimate import VERDICTS
from capbias_core.aggregate.resampling import OF_LEVEL, refit_interval
from capbias_core.errors import unknown_name
from capbias_core.measures.registry import METRICS, expand_metrics
from capbias_core.metrics.share import share
from capbias_core.prepare.labels import cells_of, parts_of
from capbias_core.types import counted
from capbias_core.views.choose import ANSWERING, Choice
from capbias_core.views.results import in_order, ranking
from capbias_core.views.sentence import listed, measure, say, significance_note
from capbias_core.views.view import Field, Forest, View, ViewOptions
from capbias_core.workspace.store import RunRow

FIRST = ("LIC", "LIC_M", "error", "unnamed", "ratio", "refused", "length", "LIC_cut")  # shown if nothing is asked for
# What LIC's verdict and other columns follow from: shown if it is asked for by its own name.
BEHIND = ("LIC_by_H", "LIC_by_M", "LIC_by_H_cut", "LIC_by_M_cut", "LIC_HM", "LIC_MH", "SC_D")
GAPS = {name: metric.gap_of for name, metric in METRICS.items() if metric.gap_of}
SCALE = 100.0
CELL, BEYOND = "cell named", "beyond both alone"


class TableOptions(ViewOptions):
    metrics: tuple[str, ...] = Described(
        default=(), description="metrics, or names that stand for several (default: the usual)"
    )
    attributes: tuple[str, ...] = Described(default=(), description="further attributes whose LIC stands beside")
    leakage_by_label: bool = Described(
        default=False,
        description="LIC_M by label; of combined attributes also what both together reveal beyond each alone",
    )


USUAL = TableOptions()


def shown_metrics(asked: Sequence[str]) -> list[str]:
    """The metrics of these names, without gaps and what other numbers follow from unless they are named themselves."""
    named, known = {name.casefold() for name in asked}, expand_metrics(asked) if asked else []
    return [name for name in known if name.casefold() in named or not (name in BEHIND or GAPS.get(name) in known)]


def table_rows(choice: Choice, options: TableOptions = USUAL) -> pd.DataFrame:
    """A row for each captioner and number. column: what it is called at the head of a table."""
    measured = list(dict.fromkeys(choice.rows["metric"]))
    wanted = shown_metrics(options.metrics) or [name for name in FIRST if name in measured] or measured
    gaps = [name for name in expand_metrics(options.metrics or ("error",)) if GAPS.get(name) in wanted]
    rows = choice.measured([*wanted, *gaps])
    by_label = rows["metric"].isin([GAPS[name] for name in gaps])
    rows = rows[((rows["group"] == "") | by_label) & (rows["object"] == "")]
    if not options.metrics and not rows.loc[rows["metric"] == "refused", "value"].any():
        rows = rows[rows["metric"] != "refused"]
    rows = rows.assign(column=pd.Series(map(_column, rows.to_dict("records")), rows.index, dtype=object))
    wanted_of = {name: GAPS[name] for name in gaps}
    parts = [
        choice.ordered(
            in_order(rows.assign(place=rows["metric"].replace(wanted_of)), place=wanted).drop(columns="place")
        )
    ]
    if options.leakage_by_label:
        parts.append(pd.DataFrame([row for name in choice.captioners for row in leakage_by_label(choice, name)]))
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


# leakage by label


def leakage_by_label(choice: Choice, captioner: str) -> Iterator[dict[str, Any]]:
    """Rows of LIC_M on the captions of each label: mean confidence of the attacker where it is right, 0 where it is
    wrong, x100, with refits. Of a combined attribute also `cell named`, the % of captions whose combination it names;
    by the same guesses that of each of both attributes; and `beyond both alone`, the first minus the product of both,
    which two independent guesses would give."""
    run = choice.run(captioner)
    counts, values = run.counts_of(), run.spec.attribute["values"]
    base = {"captioner": captioner, "run_id": run.run_id, "attribute": choice.attribute, "encoder": run.spec.attacker}
    base |= {"setting": choice.setting, "setting_name": choice.setting_name, "other": "", "verdict": "", "letters": ""}

    def row(metric: str, group: str, column: str, value: float, low: float | None, high: float | None) -> dict:
        numbers = {"metric": metric, "group": group, "column": column, "value": value, "low": low, "high": high}
        return base | numbers | {"scale": SCALE, "direction": "", "object": ""}

    for code, value in enumerate(values):
        of_label = _share(counts, "sure", counts.label[counts.image] == code)
        yield row("LIC_M", value, f"LIC_M {value}", of_label.value, *of_label.interval())
    names = parts_of(run.spec.attribute["name"])
    if names is None or cells_left_out(run):  # guesses that tell nothing would name a cell less often than both parts
        return
    both, *parts = (_share(counts, f"right {name}".strip()) for name in ("", *names))
    for column, of_part in zip((CELL, *(f"{name} named" for name in names)), (both, *parts), strict=True):
        yield row("SC", column, column, of_part.value, *of_part.interval())
    beyond, interval = both.seed_values - parts[0].seed_values * parts[1].seed_values / SCALE, (None, None)
    if both.refits is not None and len(beyond) > 1:
        interval = refit_interval(beyond, both.refits.test_over_train, OF_LEVEL, (-SCALE, SCALE))
    yield row("", BEYOND, BEYOND, float(beyond.mean()), *interval)


def cells_left_out(run: RunRow) -> int:
    """How many combinations of two attributes are no value of a run; 0 for an attribute that combines none."""
    pairs = cells_of(run.spec.attribute["values"])
    if parts_of(run.spec.attribute["name"]) is None or not pairs:
        return 0
    return len({one for one, _ in pairs}) * len({other for _, other in pairs}) - len(pairs)


def _share(counts: Counts, column: str, weights: np.ndarray | float = 1.0) -> Estimate:
    """A column of the captioner's captions over its captions, x100. weights: of rows, 0 for those that do not count."""
    columns = {name: counts.columns[name] * weights for name in (f"model {column}", "model captions")}
    return Estimate.read(replace(counts, columns=columns), share, SCALE, (0, SCALE), share=True)


# pairs of captioners


def pairs(choice: Choice) -> Ranking | None:
    """The captioners of the setting in pairs by LIC, else LIC_M; None for a single one."""
    rows = choice.measured(ANSWERING, by=("metric",))
    rows = rows[(rows["group"] == "") & (rows["setting"] == choice.setting)]
    rows = rows[rows["metric"] == rows["metric"].iloc[0]] if len(rows) else rows
    if len(rows) < 2:
        return None
    runs = [choice.workspace.get_run(run_id) for run_id in rows["run_id"]]
    return ranking(choice.workspace, runs, str(rows["metric"].iloc[0]))


# what it says

PLURAL = {"amplifies": "amplify", "reduces": "reduce"}


def verdict_counts(rows: pd.DataFrame) -> str:
    """`1 amplifies, 2 inconclusive`; '' without verdicts."""
    counts = rows.loc[rows["metric"] == "LIC"].drop_duplicates("captioner")["verdict"].value_counts()
    known = [(int(counts[name]), name) for name in VERDICTS if name in counts]
    return ", ".join(f"{number} {name if number == 1 else PLURAL.get(name, name)}" for number, name in known)


def table_sentence(choice: Choice, rows: pd.DataFrame) -> str:
    captioners = counted(rows["captioner"].nunique(), "captioner")
    verdicts = verdict_counts(rows)
    if not verdicts and "LIC_M" in set(rows["metric"]):
        verdicts = "no verdict without human captions"
    return f"{captioners}: {verdicts} ({choice.setting_name})." if verdicts else f"{captioners}."


def table_notes(choice: Choice, rows: pd.DataFrame) -> Sequence[str]:
    lines = []
    if (rows["letters"] != "").any() and rows["metric"].isin(ANSWERING).any():
        lines.append(significance_note(pairs(choice)))
    if others := list(dict.fromkeys(filter(None, rows["other"]))):
        lines.append(f"Columns with a setting in brackets were measured with other settings: {listed(others)}.")
    if rows["column"].str.startswith("LIC_M ").any():
        lines.append(say("groups.by_value"))
        cells = cells_left_out(choice.run())
        lines += [say("groups.beyond")] if BEYOND in set(rows["column"]) else []
        lines += [say("groups.no_beyond", cells=counted(cells, "cell"))] if cells else []
    return [line for line in (*lines, choice.defined.note) if line]


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
  capbias view table --collection coco --metrics lic error \\
    --attributes race --output table.tex
  capbias view table --collection coco --attribute "gender x race" \\
    --leakage-by-label""",
)
