"""Runs on those images of a caption set that another set has too, so that two sets are compared like with like.

Attackers that train on fewer images guess worse: of two sets of other images the difference would be of their sizes
too. (Race: of COCO's images 10,969 have a label of skin, and of these the LIC paper's masked sets hold 8,692. SAT's
LIC_M on the originals is 34.3 by the linear attacker that trains on 1,972 images, and 33.0 on the images of the masked
sets, of which it trains on 1,692.) On the same images a seed gives the same split to both.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from capbias_core.measures.registry import MEASURES
from capbias_core.workspace.labels import labels_for
from capbias_core.workspace.spec import RunSpec, attribute_from
from capbias_core.workspace.store import Workspace, images_in


def on_shared_images(workspace: Workspace, spec: RunSpec, other: str, alike: Sequence[str] = ()) -> RunSpec:
    """The run on the images that another set has too; the run itself where that is all, or nothing is trained.

    other: content hash of a caption set. alike: hashes of further sets; of those with the same images as `other` always
    the same one is named, so that one run serves them all.
    """
    if not MEASURES[spec.measure].seeded or not _has_more(workspace, spec, other):
        return spec
    images = _images(workspace, other)
    first = min(own for own in (other, *alike) if _images(workspace, own) == images)
    return replace(spec, shared_with=first)


def pairs_of(workspace: Workspace, specs: Iterable[RunSpec], original: str, masked: Sequence[str]) -> list[RunSpec]:
    """What must run besides these runs, so that each masked set can be compared with the originals.

    original, masked: content hashes.
    """
    found: dict[str, RunSpec] = {}
    for spec in specs:
        for other in masked if spec.captions == original else [original]:
            own = on_shared_images(workspace, spec, other, masked)
            if own != spec:
                found[own.run_id] = own
    return list(found.values())


def _has_more(workspace: Workspace, spec: RunSpec, other: str) -> bool:
    """Whether the set of a run has labelled images that another one lacks; looked up once."""

    def look() -> bool:
        where = spec.labels
        table = workspace.frame(where["table"])
        labels = labels_for(table, attribute_from(spec.attribute), where["column"], where["mapping"]).values
        more = images_in(workspace.frame(spec.captions)) - images_in(workspace.frame(other))
        return not more.isdisjoint(labels.index)

    return workspace.derived(f"more in {spec.captions} than {other} {json.dumps(spec.labels, sort_keys=True)}", look)


def _images(workspace: Workspace, captions: str) -> str:
    """A digest of the image ids of a set."""

    def digest() -> str:
        ids = sorted(images_in(workspace.frame(captions)))
        return hashlib.sha256(json.dumps(ids).encode()).hexdigest()

    return workspace.derived(f"images of {captions}", digest)
