"""How long runs take: seconds per caption and seed, learned from finished runs or from the tables of measures and
attackers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from capbias_core.attackers import attacker_entry
from capbias_core.measures.registry import MEASURES
from capbias_core.runs.local_workers import light_slots
from capbias_core.runs.run import needs_workers
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import ACTIVE, Item, RunRow, Workspace

TABLE_CAPTIONS = 15_000  # for which measures give their seconds
PAST_RUNS = 5
TORCH_START_SECONDS = 5.0


@dataclass(frozen=True)
class Expected:
    """each: seconds of each run, by id. seconds: of all runs together. learned: from earlier runs here."""

    each: dict[str, float]
    seconds: float
    learned: bool

    def left(self, rows: Sequence[RunRow]) -> tuple[float, float]:
        """The share of these runs that is done, from 0 to 1, and the seconds left, which only ever go down."""
        total = sum(self.each[row.run_id] for row in rows) or 1.0
        done = sum(self.each[row.run_id] * (row.progress if row.status in ACTIVE else 1.0) for row in rows) / total
        return done, self.seconds * (1 - done)


def expected(workspace: Workspace, specs: Iterable[RunSpec], before: float | None = None) -> Expected:
    """How long runs take: light ones side by side, the others one after another.

    before: learn from runs that finished before this time (seconds since 1970), so that an answer about runs under way
    stays the same while some of them finish.
    """
    items = {item.hash: item for item in workspace.items()}
    rates: dict[tuple[str, str], float | None] = {}
    each: dict[str, float] = {}
    light: list[float] = []
    for spec in specs:
        key = spec.measure, spec.attacker
        if key not in rates:
            rates[key] = _learned_rate(workspace, spec, items, before)
        rate = rates[key]
        seconds = _start(spec) + _size(spec, items) * (_table_rate(spec) if rate is None else rate)
        each[spec.run_id] = seconds
        if not needs_workers(spec):
            light.append(seconds)
    total = sum(each.values()) - sum(light) + sum(light) / light_slots(len(light), sum(light))
    return Expected(each, total, None not in rates.values())


def rough_seconds(workspace: Workspace, captions: str, measures: Sequence[str]) -> float:
    """Seconds of measures without attackers on the caption set with this hash, by their table alone."""
    size = next((item.rows for item in workspace.items() if item.hash == captions), TABLE_CAPTIONS)
    return sum(MEASURES[name].seconds for name in measures) * size / TABLE_CAPTIONS


def _start(spec: RunSpec) -> float:
    return TORCH_START_SECONDS if needs_workers(spec) else 0.0


def _size(spec: RunSpec, items: dict[str, Item]) -> int:
    """How many captions or photographs a run reads, times its seeds."""
    texts = sum(items[digest].rows for digest in (spec.captions, spec.references) if digest in items)
    photographs = items.get((spec.options.get("photographs") or {}).get("item", ""))
    limits = (texts, photographs.images if photographs else 0, spec.options.get("max_images"))
    return min((limit for limit in limits if limit), default=TABLE_CAPTIONS) * len(spec.seeds)


def _learned_rate(workspace: Workspace, spec: RunSpec, items: dict[str, Item], before: float | None) -> float | None:
    """The median of the last runs by this measure and attacker in seconds per caption and seed; None without any."""
    past = workspace.past_durations(spec.measure, spec.attacker, PAST_RUNS, before)
    start = _start(spec)
    rates = [max(seconds - start, seconds / 10) / _size(earlier, items) for earlier, seconds in past]
    return median(rates) if rates else None


def _table_rate(spec: RunSpec) -> float:
    measure = MEASURES[spec.measure]
    rate = measure.seconds / TABLE_CAPTIONS
    if spec.attacker:
        to_train, to_explain = attacker_entry(spec.attacker).seconds
        rate += (to_explain if measure.explains else to_train) / 1000
    return rate
