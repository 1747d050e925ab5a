"""`metrics`: what can be measured, what it means, and what it needs."""

from __future__ import annotations

import math

import pandas as pd

from capbias_core.cli.terminal import DONE, show
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.measures import FAMILIES as RUNS
from capbias_core.metrics import FAMILIES, METRICS, run_family
from capbias_core.metrics.base import Metric
from capbias_core.present.sentence import BETTER
from capbias_core.present.table import to_text
from capbias_core.runs.plan import compares

SHOWN = 3

EXAMPLE = """\
  python -m capbias_core metrics
  python -m capbias_core metrics dbac

Ask for one with `score --metric`: by the name in the column `ask for`, which may give several, or by its own."""


def metrics(args) -> int:
    """List what `score --metric` takes; or say all about one of them."""
    if args.workspace:
        raise CapbiasError("--workspace", "no workspace: the list is always the same", "Leave --workspace out.")
    if not args.name:
        show(to_text(pd.DataFrame([_group(word, names) for word, names in FAMILIES.items()])).rstrip("\n"))
        return DONE
    names = FAMILIES.get(args.name) or ((args.name,) if args.name in METRICS else None)
    if names is None:
        raise unknown_name("metric", args.name, {**FAMILIES, **METRICS})
    show("\n\n".join(_one(METRICS[name]) for name in names))
    return DONE


def _group(word: str, names: tuple[str, ...]) -> dict[str, str]:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return {"ask for": word, "gives": ", ".join(names[:SHOWN]) + more, "reads also": _needs(METRICS[names[0]])}


def _needs(row: Metric) -> str:
    """What its runs read beside captions and labels."""
    family = RUNS[run_family(row.name)]
    needs = ["references"] if compares(row.name) else []
    if family.photographs:
        needs.append("photographs")
    if family.people:
        needs.append("where people are on them")
    if family.objects:
        needs.append("objects, if there are any")
    if not family.in_process:
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


def add_arguments(command) -> None:
    """The options of the command."""
    command.add_argument("name", nargs="?", metavar="NAME", help="say all about this one")
