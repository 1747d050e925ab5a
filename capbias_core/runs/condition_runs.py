"""The runs that compare a captioner's captions of masked and unmasked photographs.

Two sets are compared on the images that both have, since attackers that train on fewer images guess worse. (Race: SAT's
LIC_M on the originals is 34.3 if the linear attacker trains on 1,972 images, and 33.0 on the 1,692 of them that the LIC
paper's masked sets have.) On the same images a seed gives the same split to both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from capbias_core.attackers import DEFAULT_ATTACKER
from capbias_core.errors import CapbiasError
from capbias_core.measures.registry import MEASURES
from capbias_core.question import Question
from capbias_core.runs.plan import plan
from capbias_core.workspace.conditions import ORIGINAL, condition_sets
from capbias_core.workspace.labels import attribute_of, labels_of, table_with
from capbias_core.workspace.objects import object_sources
from capbias_core.workspace.spec import RunSpec, attribute_from
from capbias_core.workspace.store import Item, Workspace, human_sets

# All but LIC_M compare with human captions.
AGAINST_CONDITION = ("lic", "dbac", "dpa", "dba")
OBJECT_TO_VALUE = ("dpa", "dba")  # they need objects, and words that name the value


def plan_conditions(
    workspace: Workspace,
    collection: str,
    captioner: str,
    attribute: str,
    attacker: str = DEFAULT_ATTACKER,
    seeds: int | None = 10,
    metrics: Sequence[str] = AGAINST_CONDITION,
    references: str = "",
    table: Item | None = None,
    objects: str = "",
) -> list[RunSpec]:
    """The runs of a captioner's set of each condition: LIC_M, and with human captions LIC, DBAC, DPA and DBA, those of
    the metrics that can be measured.

    seeds: None for those of each measure. references: their name, '' for those of most images. table: the labels
    (default: `table_with`). objects: the name of their source. Raises CapbiasError if nothing is masked or labelled.
    """
    sets = condition_sets(workspace, collection).get(captioner, {})
    if len(sets) < 2:
        raise CapbiasError(
            f"The captioner {captioner!r} has captions under one condition only ({', '.join(sets)}).",
            "Name the condition of a set on Images, or import it under a name such as sat_masked_person.",
        )
    human = references or next((item.name for item in human_sets(workspace, collection)), "")
    table = table or table_with(workspace.items("labels", collection), attribute)
    lacking = set() if human else {*AGAINST_CONDITION} - {"lic"}
    if not (attribute_of(table, attribute)[0].names_values and object_sources(workspace, collection, table)):
        lacking |= {*OBJECT_TO_VALUE}
    wanted = tuple(name for name in map(str.lower, metrics) if name not in lacking)
    if not wanted:
        return []
    names = tuple(item.name for item in sets.values())
    common = (collection, names, table.name, attribute, wanted, human, (attacker,), seeds)
    specs = plan(workspace, Question(*common, objects=objects))
    if ORIGINAL in sets:
        original, masked = sets[ORIGINAL].hash, masked_sets(sets)
        pairs: dict[str, RunSpec] = {}
        for spec in specs:
            for other in masked if spec.captions == original else [original]:
                shared = on_shared_images(workspace, spec, other, masked)
                if shared != spec:
                    pairs[shared.run_id] = shared
        specs += pairs.values()
    return specs


def masked_sets(sets: dict[str, Item]) -> list[str]:
    """The content hashes of sets of masked photographs. sets: by condition."""
    return [item.hash for condition, item in sets.items() if condition != ORIGINAL]


def on_shared_images(workspace: Workspace, spec: RunSpec, other: str, others: Iterable[str] = ()) -> RunSpec:
    """The run on the images that another set has too; the run itself if that is all images, or nothing is trained.

    other: content hash of a caption set. others: hashes of further sets. Of those with the same images as `other`
    always the same one is named, so that one run serves them all.
    """
    if not MEASURES[spec.measure].seeded:
        return spec
    images, labels = workspace.images, labels_of(workspace, attribute_from(spec.attribute), spec.labels)
    if (images(spec.captions) - images(other)).isdisjoint(labels.index):
        return spec
    return replace(spec, shared_with=min(each for each in (other, *others) if images(each) == images(other)))
