"""The runs that put a captioner's metrics against what was masked on the photographs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from capbias_core.attackers import DEFAULT_ATTACKER
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.runs.plan import Request, plan
from capbias_core.runs.shared_images import pairs_of
from capbias_core.types import Attribute
from capbias_core.workspace.conditions import ORIGINAL, sets_of
from capbias_core.workspace.labels import attribute_of, table_with
from capbias_core.workspace.objects import object_sources
from capbias_core.workspace.references import human_sets
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Item, Workspace

# What a user asks for; all but LIC_M compare with human captions. The last two, from the objects of the photographs to
# the value that captions name, need both.
AGAINST_CONDITION = ("lic", "dbac", "dpa", "dba")


OBJECT_TO_VALUE = ("dpa", "dba")


@dataclass(frozen=True)
class Plan:
    """The runs that put a captioner's metrics against the condition, and what cannot be had (one line each)."""

    specs: list[RunSpec]
    lacking: tuple[str, ...]


def plan_conditions(
    workspace: Workspace,
    collection: str,
    captioner: str,
    attribute: str,
    attacker: str = DEFAULT_ATTACKER,
    seeds: int = 10,
    metrics: Sequence[str] = AGAINST_CONDITION,
    references: str = "",
    options: dict | None = None,
    chosen: Sequence[str] = (),
    table: Item | None = None,
) -> Plan:
    """The runs of a captioner's set of every condition: LIC_M, and with human captions LIC, DBAC, DPA and DBA.

    references: their name, '' for the collection's fullest. chosen: as in `condition_sets`. table: the labels
    (default: `table_with`). Raises CapbiasError where nothing is masked or labelled.
    """
    sets = sets_of(workspace, collection, captioner, chosen)
    if len(sets) < 2:
        raise CapbiasError(
            f"The captioner {captioner!r} has captions under one condition only ({', '.join(sets)}).",
            "Name the condition of a set on the Masking page, or with import --captioner NAME --condition NAME.",
        )
    tables = [own for own in workspace.items("attributes", collection) if attribute in own.details["attributes"]]
    if not tables:
        known = {name for own in workspace.items("attributes", collection) for name in own.details["attributes"]}
        raise unknown_name("attribute", attribute, sorted(known))
    human = references or next((own.name for own in human_sets(workspace, collection)), "")
    table = table or table_with(tables, attribute)
    objects = object_sources(workspace, collection, table)
    wanted, lacking = _possible(metrics, attribute_of(table, attribute)[0], bool(human), bool(objects))
    if not wanted:
        return Plan([], lacking)
    names = tuple(item.name for item in sets.values())
    request = Request(
        collection, names, table.name, attribute, tuple(wanted), human, attacker, seeds, options=options or {}
    )
    specs = plan(workspace, request)
    if ORIGINAL in sets:
        specs += pairs_of(workspace, specs, sets[ORIGINAL].hash, _masked_sets(sets))
    return Plan(specs, lacking)


def _masked_sets(sets: dict[str, Item]) -> list[str]:
    """The content hashes of sets of masked photographs. sets: by condition."""
    return [item.hash for condition, item in sets.items() if condition != ORIGINAL]


def _possible(
    metrics: Sequence[str], attribute: Attribute, human: bool, objects: bool
) -> tuple[list[str], tuple[str, ...]]:
    """What can be measured, and a line on each metric that cannot."""
    wanted, lacking = [], []
    for name in map(str.lower, metrics):
        if name not in AGAINST_CONDITION:
            raise unknown_name("metric", name, AGAINST_CONDITION)
        lack = _lack(name, attribute, human, objects)
        (lacking if lack else wanted).append(lack or name)
    return wanted, tuple(lacking)


def _lack(name: str, attribute: Attribute, human: bool, objects: bool) -> str:
    """Why a metric cannot be measured, or ''."""
    if name != "lic" and not human:
        return f"{name.upper()} needs human captions of the same photographs."
    if name in OBJECT_TO_VALUE and not attribute.names_values:
        return f"{name.upper()} T→A of {attribute.name}: there are no words that captions could name it by."
    if name in OBJECT_TO_VALUE and not objects:
        return f"{name.upper()} T→A needs the objects of the photographs; load them on the Data page."
    return ""
