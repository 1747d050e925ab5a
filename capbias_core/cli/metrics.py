"""`metrics`: what can be measured, what it means, and what it needs."""

from __future__ import annotations

import math
from typing import Annotated

import pandas as pd
from cyclopts import Parameter

from capbias_core.cli.flags import command
from capbias_core.cli.terminal import DONE, show
from capbias_core.measures.base import Group, Metric
from capbias_core.measures.registry import GROUPS, METRICS, NAME_RULE, expand_metrics, measure_of, needs_references
from capbias_core.present.sentence import BETTER
from capbias_core.present.table import to_text

SHOWN = 3

app = command(
    "metrics",
    """\
  capbias metrics
  capbias metrics dbac

Ask for them with `capbias score --metric`, by the names in the column `ask for` or by the name of a single part.

"""
    + NAME_RULE,
)


@app.default
def metrics(name: Annotated[str | None, Parameter(help="say all about this one")] = None, /) -> int:
    """List what `score --metric` takes; or say all about one of them."""
    if not name:
        show(to_text(pd.DataFrame([_group(group) for group in GROUPS.values()])) + f"\n{NAME_RULE}")
        return DONE
    show("\n\n".join(_one(METRICS[own]) for own in expand_metrics([name])))
    return DONE


def _group(group: Group) -> dict[str, str]:
    more = f" and {len(group.metrics) - SHOWN} more" if len(group.metrics) > SHOWN else ""
    needs = _needs(METRICS[group.metrics[0]])
    return {"ask for": group.name, "gives": ", ".join(group.metrics[:SHOWN]) + more, "reads also": needs}


def _needs(row: Metric) -> str:
    """What its runs read beside captions and labels."""
    measure = measure_of(row.name)
    needs = ["references"] if needs_references(row.name) else []
    if measure.needs.photographs:
        needs.append("photographs")
    if measure.needs.people:
        needs.append("where people are on them")
    if measure.needs.objects:
        needs.append("objects" if measure.needs.objects == "required" else "objects, if there are any")
    if measure.needs.vectors:
        needs.append("word vectors")
    if not measure.in_process:
        needs.append("worker process")
    return ", ".join(needs)


def _one(row: Metric) -> str:
    low, high = (f"{end:g}" for end in row.range)
    neutral = row.neutral(2)
    lines = {
        "what": f"{row.title}. {row.explanation}",
        "range": f"[{low}, {high}], the quantity x{row.scale:g}",
        "no bias": "no value" if math.isnan(neutral) else f"{neutral:g} (for two values)",
        "reading": BETTER[row.better].strip("←→ "),
        "reads": _needs(row) or "captions and labels only",
        "source": row.source,
    }
    return "\n".join([row.name, *(f"  {name + ':':9} {text}" for name, text in lines.items())])
