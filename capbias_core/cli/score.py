"""`score`: metrics of captions as rows of CSV."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from capbias_core.analysis.encoders import plan_sweep
from capbias_core.cli.inputs import inputs
from capbias_core.cli.objects import lacking, with_objects
from capbias_core.cli.running import outcome, run_all
from capbias_core.cli.terminal import checked_output, say, write_output
from capbias_core.errors import CapbiasError
from capbias_core.measures import FAMILIES
from capbias_core.measures.base import RunSpec
from capbias_core.metrics import expand_metrics, run_family
from capbias_core.present.table import to_csv
from capbias_core.runs.plan import Request, compares
from capbias_core.workspace.labels import attribute_from

DEFAULT_METRICS = ("lic", "ratio", "error")


def score(args) -> int:
    """Score captions of files, or of a collection; CSV to --output or stdout."""
    wanted = expand_metrics(args.metric or DEFAULT_METRICS)
    output = checked_output(args.output)
    with inputs(args, wanted) as (workspace, request):
        sweep = plan_sweep(workspace, request, args.attackers)
        for name, error in sweep.refused.items():
            say(f"warning: {name} left out: {error}")
        specs = _worth_running(sweep.specs, request)
        rows = run_all(workspace, specs, request.collection)
        frame = workspace.results([spec.run_id for spec in specs])
        if args.per_object:
            frame = with_objects(frame, workspace, specs)
        code = outcome(rows)
        if len(frame):
            encoders = list(dict.fromkeys(spec.attacker for spec in sweep.specs))
            write_output(to_csv(ordered(frame, request.captions, wanted, encoders)), output)
    return code


def _worth_running(specs: list[RunSpec], request: Request) -> list[RunSpec]:
    """The runs that give a wanted metric. Says what cannot be had and why; raises where that is everything."""
    kept: set[str] = set()
    reasons: dict[str, dict[str, None]] = {}
    for name in request.metrics:
        if compares(name) and not request.references:
            reasons.setdefault("human captions are needed (--references)", {})[name] = None
            continue
        family = run_family(name)
        able = [spec for spec in specs if spec.family == family]
        giving = [spec for spec in able if not _lacks(name, spec)]
        kept |= {spec.run_id for spec in giving}
        had = {spec.model for spec in giving}
        for lack in (_lacks(name, spec) for spec in able if spec.model not in had):
            reasons.setdefault(lack, {})[name] = None
        if family in FAMILIES and FAMILIES[family].compares and len(had) < len(request.captions):
            planned = {spec.model for spec in able}
            lost = ", ".join(model for model in request.captions if model not in planned)
            if lost:
                reasons.setdefault(f"no labelled image of {lost} has references", {})[name] = None
    lines = [f"{', '.join(names)} left out: {reason}" for reason, names in reasons.items()]
    if not kept:
        raise CapbiasError("; ".join(lines), "a metric that can be had from these inputs", "Ask for another metric.")
    for line in lines:
        say(f"warning: {line}")
    return [spec for spec in specs if spec.run_id in kept]


def _lacks(name: str, spec: RunSpec) -> str:
    """What a run would need to give a metric, or ''."""
    attribute = attribute_from(spec.attribute)
    if (spec.family == "counting" or name in ("BA", "DBA_G")) and not attribute.words:
        return f"{attribute.name} has no words that captions could name"
    if name == "ratio" and len(attribute.values) != 2:
        return f"{attribute.name} has {len(attribute.values)} values, and a ratio is of two"
    if spec.family == "alignment" and not spec.options:
        return "word vectors are needed (--alignment contextual --vectors FILE)"
    if name == "DBA_G" and not spec.objects:
        return "the objects of the images are not known (--objects, or a column objects in the table of attributes)"
    if lack := lacking(name, spec, attribute):
        return lack
    return "" if not compares(name) or spec.references else f"no labelled image of {spec.model} has references"


def ordered(
    frame: pd.DataFrame, models: Sequence[str], wanted: Sequence[str], encoders: Sequence[str] = ()
) -> pd.DataFrame:
    """Rows of the wanted metrics; captioners, metrics and encoders in the order in which they were asked for."""
    judges = list(dict.fromkeys([*encoders, *frame["encoder"]]))
    places = {"model": list(models), "metric": list(wanted), "encoder": judges}
    return frame[frame["metric"].isin(places["metric"])].sort_values(
        ["model", "metric", "condition", "encoder"],
        kind="stable",
        key=lambda column: column.map(places[column.name].index) if column.name in places else column,
    )
