"""Caption sets of one captioner on masked photographs: which set is which, and each metric against the condition."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from capbias_core.aggregate import Pair
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.experiments.plan import Request, RunSpec, attribute_of, compares, object_sources, plan
from capbias_core.experiments.read import current_runs, ranking, spec_of
from capbias_core.experiments.store import ACTIVE, Item, RunRow, Workspace, checked_name
from capbias_core.experiments.within import on_shared_images, pairs_of
from capbias_core.metrics import METRICS, run_family
from capbias_core.types import CONDITIONS, RESULT_COLUMNS, T_TO_A, Attribute

ORIGINAL = CONDITIONS[0]
CAPTIONER, CONDITION = "captioner", "condition"  # the keys in a set's details

# What is shown against the condition, in this order: metric and direction as measured. DBA_G is the T->A side of BA→.
PANELS = (
    ("LIC_M", ""), ("LIC", ""), ("DBAC", T_TO_A), ("DPA", T_TO_A), ("DBA_G", ""), ("attribution_score", ""),
)  # fmt: skip
# What a user asks for; all but LIC_M compare with human captions. The last two, from the objects of the photographs to
# the value that captions name, need both.
ASKED = ("lic", "dbac", "dpa", "dba")
OBJECT_TO_VALUE = ("dpa", "dba")

# Words in the name of a file or of a set, or in a printed table, that say what was masked; the longest first.
SPELLED = {
    "bounding box": "box", "partial": "part", "part": "part", "segment": "segment", "box": "box", "person": "person",
    "object": "object", "both": "both",
}  # fmt: skip
_WHAT = "|".join(SPELLED).replace(" ", "[ _-]")
_MASKED = re.compile(rf"(?:masked[ _-]+({_WHAT})|({_WHAT})[ _-]+masked)(?![a-z])", re.IGNORECASE)

TO_ORIGINAL, TO_NEUTRAL = (
    tuple(f"to_{other}{end}" for end in ("", "_low", "_high")) for other in ("original", "neutral")
)
DIFFERENCES = (*TO_ORIGINAL, "original_there", *TO_NEUTRAL)
COLUMNS = ("captioner", "masked", *DIFFERENCES, *RESULT_COLUMNS)


def suggested_condition(name: str) -> tuple[str, str]:
    """Captioner and condition as the name of a file or set tells them; the whole name and `original` where it does not.

    >>> suggested_condition("sat_masked_person"), suggested_condition("BLIP 2 (bounding box masked)")
    (('sat', 'person'), ('BLIP 2', 'box'))
    >>> suggested_condition("segment-masked_git"), suggested_condition("unmasked_both")
    (('git', 'segment'), ('unmasked_both', 'original'))
    """
    found = _MASKED.search(name)
    if not found or (found.start() and name[found.start() - 1].isalnum()):
        return name, ORIGINAL
    captioner = " ".join(filter(None, (part.strip(" _-()[].,:") for part in name.split(found[0], 1))))
    spelled = re.sub(r"[_-]", " ", (found[1] or found[2]).lower())
    return captioner or name, SPELLED[spelled]


def condition_details(name: str, captioner: str = "", condition: str = "") -> dict[str, str]:
    """What is kept with a caption set: as named, else as its name suggests. Raises CapbiasError for an unknown one."""
    suggested = suggested_condition(name)
    if condition and condition not in CONDITIONS:
        raise unknown_name("condition", condition, CONDITIONS)
    return {CAPTIONER: checked_name(captioner or suggested[0]), CONDITION: condition or suggested[1]}


def condition_of(item: Item) -> tuple[str, str]:
    """Captioner and condition of a kept caption set."""
    return item.details.get(CAPTIONER, item.name), item.details.get(CONDITION, ORIGINAL)


def originals(sets: Sequence[Item]) -> list[str]:
    """Names of the caption sets of photographs that nothing is masked on, as captioners are compared by; of all where
    all are of masked ones."""
    return [item.name for item in sets if condition_of(item)[1] == ORIGINAL] or [item.name for item in sets]


def describe(workspace: Workspace, item: Item, captioner: str, condition: str) -> Item:
    """Say anew which captioner wrote a kept set, and under which condition. What was measured of it stays."""
    details = item.details | condition_details(item.name, captioner, condition)
    frame = workspace.frame(item.hash)
    return workspace.keep(item.kind, item.name, frame, item.collection, item.source, details)


def all_sets(workspace: Workspace, collection: str) -> dict[str, dict[str, list[Item]]]:
    """Every set of each captioner by condition, the newest first, in the order of CONDITIONS; captioners with most
    conditions first."""
    found: dict[str, dict[str, list[Item]]] = {}
    for item in workspace.items("captions", collection):
        captioner, condition = condition_of(item)
        found.setdefault(captioner, {}).setdefault(condition, []).insert(0, item)
    ordered = {name: {key: own[key] for key in CONDITIONS if key in own} for name, own in found.items()}
    return dict(sorted(ordered.items(), key=lambda pair: -len(pair[1])))


def condition_sets(workspace: Workspace, collection: str, chosen: Sequence[str] = ()) -> dict[str, dict[str, Item]]:
    """One set of each captioner and condition, in the order of `all_sets`.

    chosen: names of sets that count where a captioner has several of one condition; where none is chosen the newest
    does. Raises CapbiasError for a name that no set has, and for two of one captioner and condition.
    """
    every = all_sets(workspace, collection)
    _check_chosen(every, chosen)
    return {
        captioner: {key: next((own for own in items if own.name in chosen), items[0]) for key, items in sets.items()}
        for captioner, sets in every.items()
    }


def _check_chosen(every: dict[str, dict[str, list[Item]]], chosen: Sequence[str]) -> None:
    groups = [[item.name for item in items] for sets in every.values() for items in sets.values()]
    known = [name for group in groups for name in group]
    for name in chosen:
        if name not in known:
            raise unknown_name("caption set", name, known)
    for group in groups:
        if len(both := [name for name in group if name in chosen]) > 1:
            raise CapbiasError(
                f"the sets {' and '.join(both)}, of one captioner and one condition", "one of them", "Leave one out."
            )


def sets_of(workspace: Workspace, collection: str, captioner: str, chosen: Sequence[str] = ()) -> dict[str, Item]:
    """One set of a captioner by condition, as `condition_sets` says. Raises CapbiasError for an unknown captioner."""
    found = condition_sets(workspace, collection, chosen)
    if captioner not in found:
        raise unknown_name("captioner", captioner, found)
    return found[captioner]


def taken_of_several(
    workspace: Workspace, collection: str, captioner: str, chosen: Sequence[str] = ()
) -> tuple[str, ...]:
    """A line on each condition of which a captioner has several sets: which one counts, and which do not.

    `segment: sat_blurred is taken, not sat_grey`
    """
    taken = sets_of(workspace, collection, captioner, chosen)
    return tuple(
        f"{condition}: {taken[condition].name} is taken, not "
        + " or ".join(item.name for item in items if item.name != taken[condition].name)
        for condition, items in all_sets(workspace, collection)[captioner].items()
        if len(items) > 1
    )


@dataclass(frozen=True)
class Plan:
    """The runs that put a captioner's metrics against the condition, and what cannot be had (one line each)."""

    specs: list[RunSpec]
    lacking: tuple[str, ...]


def plan_conditions(
    workspace: Workspace, collection: str, captioner: str, attribute: str, attacker: str = "ngram", seeds: int = 10,
    metrics: Sequence[str] = ASKED, references: str = "", options: dict | None = None, chosen: Sequence[str] = (),
) -> Plan:  # fmt: skip
    """The runs of a captioner's set of every condition: LIC_M, and with human captions LIC, DBAC, DPA and DBA.

    references: their name, '' for the collection's first. chosen: as in `condition_sets`. Raises CapbiasError where
    nothing is masked or labelled.
    """
    sets = sets_of(workspace, collection, captioner, chosen)
    if len(sets) < 2:
        raise CapbiasError(
            f"captioner {captioner!r} with captions under one condition ({', '.join(sets)})",
            "captions of the same photographs, original and masked",
            "Name the condition of a set on the Masking page, or with import --captioner NAME --condition NAME.",
        )
    tables = [own for own in workspace.items("attributes", collection) if attribute in own.details["attributes"]]
    if not tables:
        known = {name for own in workspace.items("attributes", collection) for name in own.details["attributes"]}
        raise unknown_name("attribute", attribute, sorted(known))
    human = references or next((own.name for own in workspace.items("references", collection)), "")
    objects = object_sources(workspace, collection, tables[-1])
    wanted, lacking = _possible(metrics, attribute_of(tables[-1], attribute)[0], bool(human), bool(objects))
    if not wanted:
        return Plan([], lacking)
    names = tuple(item.name for item in sets.values())
    request = Request(
        collection, names, tables[-1].name, attribute, tuple(wanted), human, attacker, seeds, options=options or {}
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
    for name in metrics:
        if name not in ASKED:
            raise unknown_name("metric", name, ASKED)
        lack = _lack(name, attribute, human, objects)
        (lacking if lack else wanted).append(lack or name)
    return wanted, tuple(lacking)


def _lack(name: str, attribute: Attribute, human: bool, objects: bool) -> str:
    """Why a metric cannot be measured, or ''."""
    if name != "lic" and not human:
        return f"{name.upper()} needs human captions of the same photographs."
    if name in OBJECT_TO_VALUE and not attribute.words:
        return f"{name.upper()} T→A of {attribute.name}: there are no words that captions could name it by."
    if name in OBJECT_TO_VALUE and not objects:
        return f"{name.upper()} T→A needs the objects of the photographs; load them on the Data page."
    return ""


@dataclass(frozen=True)
class Missing:
    """Conditions without a value of a metric, and why."""

    metric: str
    direction: str
    conditions: tuple[str, ...]
    reason: str


def without_value(workspace: Workspace, found: Plan, sets: dict[str, Item], rows: pd.DataFrame) -> list[Missing]:
    """Of every metric of PANELS the conditions without a value in these rows, one entry a reason.

    found: the plan of the runs of these sets (by condition). What `found.lacking` says is not said again.
    """
    have = set(zip(rows["metric"], rows["direction"], rows["masked"], strict=True))
    known = workspace.runs_of([spec.run_id for spec in found.specs])
    entries = []
    for metric, direction in PANELS:
        reasons: dict[str, list[str]] = {}
        for condition, item in sets.items():
            if (metric, direction, condition) not in have:
                reasons.setdefault(_reason(metric, item.name, found, known), []).append(condition)
        entries += [Missing(metric, direction, tuple(own), reason) for reason, own in reasons.items() if reason]
    return entries


def _reason(metric: str, name: str, found: Plan, known: dict[str, RunRow]) -> str:
    """Why a set has no value of a metric; '' where `Plan.lacking` says so."""
    family = run_family(metric)
    if family == "attribution":
        return "no run has made maps of its captions"
    planned = [spec for spec in found.specs if spec.family == family]
    if not planned:
        return ""
    own = [spec for spec in planned if spec.model == name and (spec.references or not compares(metric))]
    if not own:
        return "that needs human captions of the same photographs"
    run = known.get(own[0].run_id)
    if run is None:
        return "not run yet"
    if run.status in ACTIVE:
        return "under way"
    return "its run gave none" if run.status == "finished" else f"its run {run.status} ({run.message})"


def condition_rows(
    workspace: Workspace, collection: str, captioner: str, attribute: str, attacker: str = "ngram",
    chosen: Sequence[str] = (),
) -> pd.DataFrame:  # fmt: skip
    """Every metric of PANELS that was measured of a captioner's sets, one row a metric and condition, in COLUMNS.

    chosen: as in `condition_sets`. masked: the condition of the photographs. to_original, to_neutral: the value minus
    that on the originals (paired over the images that both have) and minus the metric's neutral point (chance for
    LIC_M), with 95% intervals. original_there: the value on the originals of the images that to_original is over. Of
    what was measured in several ways (seeds, alignment, part of the images) the one with most conditions, on all images
    before a part, with most seeds.
    """
    sets = sets_of(workspace, collection, captioner, chosen)
    names = {item.name: condition for condition, item in sets.items()}
    runs = [run for run in current_runs(workspace, collection) if _wanted(run, names, attribute, attacker)]
    rows = workspace.results([run.run_id for run in runs])
    found = []
    for metric, direction in PANELS:
        own = rows[(rows["metric"] == metric) & (rows["direction"] == direction) & rows["value"].notna()]
        found += _against(workspace, own, _alike(runs, set(own["run_id"])), sets)
    return pd.DataFrame([{CAPTIONER: captioner} | row for row in found], columns=list(COLUMNS))


def _wanted(run: RunRow, names, attribute: str, attacker: str) -> bool:
    spec = run.spec
    alike = spec["attribute"].get("name") == attribute and not spec.get("merge_masks")
    return spec["model"] in names and alike and spec["attacker"] in ("", attacker)


def _alike(runs: Sequence[RunRow], having: set[str]) -> list[RunRow]:
    """The runs that measured most conditions in one way: the same but for the captions and the photographs."""
    groups: dict[str, dict[str, RunRow]] = {}
    for run in runs:  # newest first
        if run.run_id in having:
            options = {key: own for key, own in run.spec["options"].items() if key != "photographs"}
            key = json.dumps(run.spec | {"model": "", "captions": "", "options": options}, sort_keys=True)
            groups.setdefault(key, {}).setdefault(run.spec["model"], run)
    found = [list(own.values()) for own in groups.values()]
    return max(found, key=_completeness, default=[])


def _completeness(runs: list[RunRow]) -> tuple:
    spec = runs[0].spec
    newest = max(run.finished for run in runs)
    return len(runs), not spec["condition"], "alignment" not in spec["options"], len(spec["seeds"]), newest


def _against(workspace: Workspace, rows: pd.DataFrame, runs: list[RunRow], sets: dict[str, Item]) -> list[dict]:
    """The rows of these runs by condition, with their differences. sets: by condition."""
    if not runs:
        return []
    names = {item.name: condition for condition, item in sets.items()}
    metric, direction = rows.iloc[0][["metric", "direction"]]
    neutral = METRICS[metric].neutral(len(runs[0].spec["attribute"]["values"]))
    original = sets[ORIGINAL].name if ORIGINAL in sets else ""
    changes = _changes(workspace, runs, metric, direction, original, _masked_sets(sets))
    found = {}
    for row in rows[rows["run_id"].isin([run.run_id for run in runs])].to_dict("records"):
        above = (row["value"] - neutral, row["ci_low"] - neutral, row["ci_high"] - neutral)
        differences = (*changes.get(row["model"], (math.nan,) * 4), *above)
        found[names[row["model"]]] = row | dict(zip(DIFFERENCES, differences, strict=True))
    return [{"masked": condition} | found[condition] for condition in CONDITIONS if condition in found]


def _changes(
    workspace: Workspace, runs: list[RunRow], metric: str, direction: str, original: str, masked: Sequence[str] = ()
) -> dict[str, tuple]:
    """Of each masked set the change of its value from that on the originals, paired over images, with its interval,
    and the value on the originals of these images.

    Each set is compared alone, on all images that it shares with the originals, whatever the other sets lack; where
    one of both has more, by attackers that trained on shared images alone (see within.py). masked: the hashes of all.
    """
    by_name = {run.spec["model"]: run for run in runs}
    unmasked = by_name.pop(original, None)
    changes = {}
    for name, run in by_name.items() if unmasked else ():
        both = _on_shared(workspace, unmasked, run, masked)
        for pair in (found := ranking(workspace, both, metric, direction)).pairs:
            changes[name] = (*_masked_minus_original(pair, original), found.values[original])
    return changes


def _on_shared(workspace: Workspace, unmasked: RunRow, run: RunRow, masked: Sequence[str]) -> list[RunRow]:
    """The runs of the originals and of a masked set on the images of both; without those that are not finished."""
    asked = [
        on_shared_images(workspace, spec_of(own), other.spec["captions"], masked).run_id
        for own, other in ((unmasked, run), (run, unmasked))
    ]
    return [own for own in workspace.runs_of(asked).values() if own.status == "finished"]


def _masked_minus_original(pair: Pair, original: str) -> tuple[float, float, float]:
    """Difference and interval of a pair, whichever of both stands first in it."""
    low, high = (math.nan, math.nan) if pair.ci_low is None else (pair.ci_low, pair.ci_high)
    return (-pair.difference, -high, -low) if pair.first == original else (pair.difference, low, high)
