"""What runs will take: from tables of what was measured on two cores, corrected by earlier runs of their kind here.

The tables are FAMILIES (a family's own work) and ATTACKERS (reading captions, training, explaining words). What else a
machine does, and how quick it is, they cannot know: where runs of a kind have finished in this workspace, the time that
these took, over what the tables say of them, corrects what is expected of the next.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from capbias_core.attackers import AttackerEntry, attacker_entry
from capbias_core.attackers.device import AUTO
from capbias_core.measures import FAMILIES
from capbias_core.measures.base import MOST_IMAGES, PROTOCOL, RunSpec
from capbias_core.measures.encoder_view import IMAGES
from capbias_core.workspace.labels import attribute_from, labels_for
from capbias_core.workspace.photographs import PHOTOGRAPHS
from capbias_core.workspace.store import Workspace

# The set on which the seconds of a family were measured (COCO), and how many seeds it had.
FULL_SET = 15_000
USUAL_SEEDS = 10
# Captions of a fit whose seconds ATTACKERS gives, and how many networks train at a time.
TRAINED = 6_000
CORES = 2
# Seconds until a worker has imported PyTorch and begins.
START = 5.0
# The newest runs of a kind that correct what is expected.
EARLIER = 5


@dataclass(frozen=True)
class Cost:
    """seconds: expected. earlier: whether runs of every kind among them were timed here before."""

    seconds: float
    earlier: bool


def expected(workspace: Workspace, specs: Iterable[RunSpec]) -> Cost:
    """What runs will take one after another."""
    sizes = {item.hash: item for item in workspace.items()}
    paces: dict[str, float] = {}
    total = 0.0
    for spec in specs:
        kind = _kind(spec)
        if kind not in paces:
            paces[kind] = _pace(workspace, spec, sizes)
        total += by_tables(workspace, spec, sizes) * (1.0 if math.isnan(paces[kind]) else paces[kind])
    return Cost(total, not any(map(math.isnan, paces.values())))


def _kind(spec: RunSpec) -> str:
    """What two runs share whose times can be compared: family, attacker, device, and the models that they load."""
    models = {
        key: option["name"]
        for key, option in spec.options.items()
        if isinstance(option, dict) and "name" in option and "item" not in option
    }
    return json.dumps([spec.family, spec.attacker, spec.options.get("device", AUTO), models], sort_keys=True)


def _pace(workspace: Workspace, spec: RunSpec, sizes: dict) -> float:
    """How many times as long as the tables say the newest runs of this kind took here (median); nan without any."""
    found = []
    for own, seconds in workspace.times(spec.family, spec.attacker):
        if own["protocol"] == PROTOCOL and _kind(earlier := RunSpec.from_dict(own)) == _kind(spec):
            found.append(seconds / by_tables(workspace, earlier, sizes))
    return median(found[:EARLIER]) if found else math.nan


def by_tables(workspace: Workspace, spec: RunSpec, sizes: dict) -> float:
    """Rough seconds of a run on two free cores. sizes: the kept items by content hash."""
    family = FAMILIES[spec.family]
    seconds = family.seconds * _images(spec, sizes) / FULL_SET
    if spec.attacker:
        return seconds + _attacked(workspace, spec, attacker_entry(spec.attacker), sizes)
    return seconds * (len(spec.seeds) / USUAL_SEEDS if family.seeded else 1.0)


def _attacked(workspace: Workspace, spec: RunSpec, entry: AttackerEntry, sizes: dict) -> float:
    """Seconds of the attackers of a run: read all captions, train, explain those whose words are shown."""
    family, captions = FAMILIES[spec.family], _captions(workspace, spec)
    human = _an_image(sizes[spec.references]) if spec.references in sizes else 0
    fits, read, explained = _an_image(sizes[spec.captions]) if spec.captions in sizes else 1, captions.different, 0.0
    if family.seeded:
        fits, read = len(spec.seeds) * (fits + human), read + human * captions.images
    elif IMAGES in spec.options:  # one attacker reads some images
        explained = fits * len(spec.options[IMAGES])
    else:  # captions that repeat each other in one fold are explained once
        fits, explained = fits * entry.folds, (captions.different + captions.count) / 2
    turns = math.ceil(fits / CORES) if entry.a_seed_a_thread else fits
    return (
        (0.0 if entry.in_process else START)
        + entry.seconds.to_read * read / 1_000
        + entry.seconds.a_fit * family.work * turns * captions.balanced / TRAINED
        + entry.seconds.to_explain * explained / 1_000
    )


def _an_image(item) -> int:
    """Captions an image of a kept set."""
    return max(1, round(item.rows / max(1, item.images)))


@dataclass(frozen=True)
class Captions:
    """The captions that a run reads: of how many labelled images, as many of each value (balanced), how many captions
    (count), and how many different ones."""

    images: int
    balanced: int
    count: int
    different: int


def _captions(workspace: Workspace, spec: RunSpec) -> Captions:
    """Counted once for a set, its labels and its references."""

    def count() -> dict[str, int]:
        attribute = attribute_from(spec.attribute)
        table = workspace.frame(spec.labels["table"])
        labels = labels_for(table, attribute, spec.labels["column"], spec.labels["mapping"]).values
        frame = workspace.frame(spec.captions)
        known = set(labels.index)
        if spec.references:
            known &= set(workspace.frame(spec.references)["image_id"])
        frame = frame[frame["image_id"].isin(known)]
        images = frame["image_id"].unique()
        smallest = labels[images].value_counts().reindex(attribute.values, fill_value=0).min()
        balanced = int(smallest) * len(attribute.values)
        return asdict(Captions(len(images), balanced, len(frame), frame["caption"].nunique()))

    key = json.dumps([spec.captions, spec.references, spec.labels], sort_keys=True)
    return Captions(**workspace.derived(f"read by runs {key}", count))


def family_seconds(workspace: Workspace, captions: str, families: Sequence[str]) -> float:
    """Rough seconds of families that train nothing on the set with this hash, before a run can be planned."""
    images = next((item.images for item in workspace.items() if item.hash == captions), FULL_SET)
    return sum(FAMILIES[name].seconds for name in families) * images / FULL_SET


def _images(spec: RunSpec, sizes: dict) -> int:
    """How many images a run reads at most: of the captions and the photographs, whichever are fewer."""
    read = (spec.captions, spec.options.get(PHOTOGRAPHS, {}).get("item", ""))
    limit = [spec.options[MOST_IMAGES]] if MOST_IMAGES in spec.options else []
    return min([*limit, *(sizes[digest].images if digest in sizes else FULL_SET for digest in read if digest)])
