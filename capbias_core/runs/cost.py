"""What runs will take: what their measures say, corrected by earlier runs of their kind here.

A measure's cost was measured on two cores. What else a machine does, and how quick it is, it cannot know: where runs of
a kind have finished in this workspace, the time that these took, over what their measure says of them, corrects what is
expected of the next.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median

import numpy as np

from capbias_core.attackers.device import AUTO
from capbias_core.measures.cost import FULL_SET, CaptionCounts, Size
from capbias_core.measures.registry import MEASURES
from capbias_core.runs.beside import at_once
from capbias_core.runs.run import is_current, needs_workers
from capbias_core.workspace.labels import labels_for
from capbias_core.workspace.spec import RunSpec, attribute_from
from capbias_core.workspace.store import ACTIVE, Item, RunRow, Workspace, images_in

# The newest runs of a kind that correct what is expected.
EARLIER = 5
# Before so much is done, what is expected says more of the time left than what has passed.
SURE_SHARE = 0.1


@dataclass(frozen=True)
class Cost:
    """seconds: expected. earlier: whether runs of every kind among them were timed here before."""

    seconds: float
    earlier: bool


def expected(workspace: Workspace, specs: Iterable[RunSpec]) -> Cost:
    """What runs will take: light ones shared among processes, the others one after another."""
    specs = list(specs)
    costs = expected_each(workspace, specs)
    light = [costs[spec.run_id].seconds for spec in specs if not needs_workers(spec)]
    heavy = sum(costs[spec.run_id].seconds for spec in specs if needs_workers(spec))
    seconds = heavy + sum(light) / at_once(len(light), sum(light))
    return Cost(seconds, all(own.earlier for own in costs.values()))


def together(workspace: Workspace, specs: Sequence[RunSpec]) -> int:
    """How many processes share some light runs."""
    seconds = sum(own.seconds for own in expected_each(workspace, specs).values()) if len(specs) > 1 else 0.0
    return at_once(len(specs), seconds)


def expected_each(workspace: Workspace, specs: Iterable[RunSpec]) -> dict[str, Cost]:
    """What each of some runs will take, by id."""
    items = {item.hash: item for item in workspace.items()}
    paces: dict[str, float] = {}
    labelled: Labelled = {}
    found = {}
    for spec in specs:
        kind = _kind(spec)
        if kind not in paces:
            paces[kind] = _pace(workspace, spec, items, labelled)
        timed = not math.isnan(paces[kind])
        seconds = uncorrected(workspace, spec, items, labelled)
        found[spec.run_id] = Cost(seconds * (paces[kind] if timed else 1.0), timed)
    return found


def time_left(rows: Sequence[RunRow], seconds: Mapping[str, float], passed: float) -> tuple[float, float]:
    """The share of some runs that is done, 0 to 1, and the seconds that the rest takes.

    seconds: what each is expected to take, by id. passed: since the first of them began.
    """
    total = sum(seconds[row.run_id] for row in rows) or 1.0
    done = sum(seconds[row.run_id] * (row.progress if row.status in ACTIVE else 1.0) for row in rows) / total
    return done, passed / done * (1 - done) if done > SURE_SHARE else total * (1 - done)


def _kind(spec: RunSpec) -> str:
    """What two runs share whose times can be compared: measure, attacker, device, and the models that they load."""
    models = {
        key: option["name"]
        for key, option in spec.options.items()
        if isinstance(option, dict) and "name" in option and "item" not in option
    }
    return json.dumps([spec.measure, spec.attacker, spec.options.get("device", AUTO), models], sort_keys=True)


def _pace(workspace: Workspace, spec: RunSpec, items: dict[str, Item], labelled: Labelled) -> float:
    """How many times as long as expected the newest runs of this kind took here (median); nan without any."""
    kind = _kind(spec)
    alike = [
        (earlier, seconds)
        for earlier, seconds in workspace.times(spec.measure, spec.attacker)
        if is_current(earlier) and _kind(earlier) == kind
    ]
    found = [seconds / uncorrected(workspace, earlier, items, labelled) for earlier, seconds in alike[:EARLIER]]
    return median(found) if found else math.nan


def uncorrected(workspace: Workspace, spec: RunSpec, items: dict[str, Item], labelled: Labelled) -> float:
    """Rough seconds of a run on two free cores. items: those kept, by content hash. labelled: what `_labelled` has read
    for others."""
    measure = MEASURES[spec.measure]
    size = Size(
        images=_images(spec, items),
        per_image=_per_image(items[spec.captions]) if spec.captions in items else 1,
        references_per_image=_per_image(items[spec.references]) if spec.references in items else 0,
        count=lambda: _counts(workspace, spec, labelled),
    )
    return measure.cost(size, measure.options.read(spec.options))


def _per_image(item: Item) -> int:
    """Captions an image of a kept set."""
    return max(1, round(item.rows / max(1, item.images)))


# The value of each labelled image that has references, by what says so.
Labelled = dict[str, dict[str, str]]


def _labelled(workspace: Workspace, spec: RunSpec, read: Labelled) -> dict[str, str]:
    """The value of each image that a run can read. read: what others have read; this is added."""
    key = json.dumps([spec.references, spec.labels, spec.attribute], sort_keys=True)
    if key not in read:
        table = workspace.frame(spec.labels["table"])
        labels = labels_for(table, attribute_from(spec.attribute), spec.labels["column"], spec.labels["mapping"]).values
        pairs = zip(*(own.to_numpy(dtype=object) for own in (labels.index, labels)), strict=True)
        referred = images_in(workspace.frame(spec.references)) if spec.references else None
        read[key] = {image: value for image, value in pairs if referred is None or image in referred}
    return read[key]


def _counts(workspace: Workspace, spec: RunSpec, labelled: Labelled) -> CaptionCounts:
    """Counted once for a set, its labels and its references."""

    def count() -> dict[str, int]:
        values, value_of = attribute_from(spec.attribute).values, _labelled(workspace, spec, labelled)
        frame = workspace.frame(spec.captions)
        found = [value_of.get(image) for image in frame["image_id"].to_numpy(dtype=object)]
        read = np.array([own is not None for own in found], dtype=bool)
        of_value = Counter(value_of[image] for image in images_in(frame[read]))
        balanced = min(of_value[value] for value in values) * len(values)
        captions = frame["caption"][read]
        return asdict(CaptionCounts(of_value.total(), balanced, len(captions), captions.nunique()))

    key = json.dumps([spec.captions, spec.references, spec.labels], sort_keys=True)
    return CaptionCounts(**workspace.derived(f"read by runs {key}", count))


def rough_seconds(workspace: Workspace, captions: str, measures: Sequence[str]) -> float:
    """Rough seconds of measures that train nothing on the set with this hash, before a run can be planned."""
    images = next((item.images for item in workspace.items() if item.hash == captions), FULL_SET)
    found = [MEASURES[name] for name in measures]
    return sum(measure.cost(Size(images), measure.options()) for measure in found)


def _images(spec: RunSpec, items: dict[str, Item]) -> int:
    """How many images a run reads at most: of the captions and the photographs, whichever are fewer."""
    read = (spec.captions, (spec.options.get("photographs") or {}).get("item", ""))
    limit = [spec.options["max_images"]] if "max_images" in spec.options else []
    return min([*limit, *(items[digest].images if digest in items else FULL_SET for digest in read if digest)])
