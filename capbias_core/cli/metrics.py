"""`metrics`: the metrics, their meaning and their inputs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated

import pandas as pd
from cyclopts import Parameter

from capbias_core.aggregate import Metric
from capbias_core.cli.inputs import command, option_help, options_of
from capbias_core.cli.terminal import DONE, show, show_table
from capbias_core.measures.base import Measure
from capbias_core.measures.registry import GROUPS, METRICS, NAME_RULE, expand_metrics, measure_of, needs_references
from capbias_core.views.sentence import say

SHOWN = 3

app = command(
    "metrics",
    """\
  capbias metrics
  capbias metrics dbac

Ask for a metric with `capbias score --metric`, by its name in the column `ask for` or the name of a single part.

"""
    + NAME_RULE,
)


@app.default
def metrics(name: Annotated[str | None, Parameter(help="describe this one")] = None, /) -> int:
    """List the metrics for `score --metric`, or describe one."""
    if name:
        parts = expand_metrics([name])
        show("\n\n".join([*(_one(METRICS[part]) for part in parts), *_options(measure_of(parts[0]))]))
        return DONE
    rows = []
    for group in GROUPS.values():
        more = f" and {len(group.metrics) - SHOWN} more" if len(group.metrics) > SHOWN else ""
        gives = ", ".join(group.metrics[:SHOWN]) + more
        rows.append({"ask for": group.name, "gives": gives, "reads also": _needs(group.metrics[0])})
    show_table(pd.DataFrame(rows))
    show(f"\n{NAME_RULE}")
    return DONE


def _options(measure: Measure) -> Iterator[str]:
    """The options of a measure that have no flag, as a paragraph."""
    if known := options_of([measure]):
        about, defaults = measure.options.about(), measure.options()
        lines = [f"  {name}: {option_help(about[name], getattr(defaults, name))}" for name in known]
        yield "\n".join(["options, as --option NAME=VALUE or an argument in Python", *lines])


def _needs(name: str) -> str:
    """What its runs read besides captions and labels."""
    measure = measure_of(name)
    needs = {
        "references": needs_references(name),
        "photographs": measure.needs.photographs,
        "outlines or boxes of people": measure.needs.people,
        "objects": measure.needs.objects == "required",
        "objects, if available": measure.needs.objects and measure.needs.objects != "required",
        "word vectors": measure.needs.vectors,
        "worker process": not measure.in_process,
    }
    return ", ".join(text for text, needed in needs.items() if needed)


def _one(row: Metric) -> str:
    low, high = (f"{end:g}" for end in row.range)
    neutral = row.neutral(2)
    lines = {
        "what": f"{row.title}. {row.explanation}",
        "range": f"[{low}, {high}], the quantity x{row.scale:g}",
        "no bias": "no value" if math.isnan(neutral) else f"{neutral:g} (for two values)",
        "reading": say(f"comparison.{row.better}"),
        "reads": _needs(row.name) or "captions and labels only",
        "source": row.source,
    }
    return "\n".join([row.name, *(f"  {name + ':':9} {text}" for name, text in lines.items())])
