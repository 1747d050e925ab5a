"""The captioner and condition (what was masked on the photographs) of each caption set."""

from __future__ import annotations

import re
from collections.abc import Sequence

from capbias_core.errors import unknown_name
from capbias_core.kinds import checked_name
from capbias_core.types import CONDITIONS
from capbias_core.workspace.store import Item, Workspace

ORIGINAL = CONDITIONS[0]

CAPTIONER, CONDITION = "captioner", "condition"  # the keys in a set's details

# Words in names of files and sets and in printed tables -> what was masked; the longest first.
SPELLED = {
    "bounding box": "box",
    "partial": "part",
    "part": "part",
    "segment": "segment",
    "box": "box",
    "person": "person",
    "object": "object",
    "both": "both",
}
_WHAT = "|".join(SPELLED).replace(" ", "[ _-]")
_MASKED = re.compile(rf"(?:masked[ _-]+({_WHAT})|({_WHAT})[ _-]+masked)(?![a-z])", re.IGNORECASE)


def suggested_condition(name: str) -> tuple[str, str]:
    """Captioner and condition by the name of a file or set; the whole name and `original` if it says nothing.

    >>> suggested_condition("sat_masked_person"), suggested_condition("BLIP 2 (bounding box masked)")
    (('sat', 'person'), ('BLIP 2', 'box'))
    >>> suggested_condition("segment-masked_git"), suggested_condition("unmasked_both")
    (('git', 'segment'), ('unmasked_both', 'original'))
    """
    match = _MASKED.search(name)
    if not match or (match.start() and name[match.start() - 1].isalnum()):
        return name, ORIGINAL
    captioner = " ".join(filter(None, (part.strip(" _-()[].,:") for part in name.split(match[0], 1))))
    spelled = re.sub(r"[_-]", " ", (match[1] or match[2]).lower())
    return captioner or name, SPELLED[spelled]


def condition_details(name: str, captioner: str = "", condition: str = "") -> dict[str, str]:
    """Details of a caption set: as given, else as its name suggests. Raises CapbiasError for an unknown condition."""
    suggested = suggested_condition(name)
    if condition and condition not in CONDITIONS:
        raise unknown_name("condition", condition, CONDITIONS)
    return {CAPTIONER: checked_name(captioner or suggested[0]), CONDITION: condition or suggested[1]}


def condition_of(item: Item) -> tuple[str, str]:
    """Captioner and condition of a stored caption set."""
    return item.details.get(CAPTIONER, item.name), item.details.get(CONDITION, ORIGINAL)


def originals(sets: Sequence[Item]) -> list[str]:
    """Names of the caption sets of unmasked photographs, by which captioners are compared, or of all if all are of
    masked photographs."""
    return [item.name for item in sets if condition_of(item)[1] == ORIGINAL] or [item.name for item in sets]


def describe(workspace: Workspace, item: Item, captioner: str, condition: str) -> Item:
    """Store another captioner or condition with a caption set. What was measured of it stays."""
    details = item.details | condition_details(item.name, captioner, condition)
    frame = workspace.frame(item.hash)
    return workspace.keep(item.kind, item.name, frame, item.collection, item.source, details)


def all_sets(workspace: Workspace, collection: str) -> dict[str, dict[str, list[Item]]]:
    """The sets of each captioner by condition, the newest first, in the order of CONDITIONS; captioners with most
    conditions first."""
    by_captioner: dict[str, dict[str, list[Item]]] = {}
    for item in workspace.items("captions", collection):
        captioner, condition = condition_of(item)
        by_captioner.setdefault(captioner, {}).setdefault(condition, []).insert(0, item)
    ordered = {name: {key: sets[key] for key in CONDITIONS if key in sets} for name, sets in by_captioner.items()}
    return dict(sorted(ordered.items(), key=lambda pair: -len(pair[1])))


def condition_sets(workspace: Workspace, collection: str) -> dict[str, dict[str, Item]]:
    """The newest set of each captioner and condition, in the order of `all_sets`."""
    by_captioner = all_sets(workspace, collection)
    return {name: {key: items[0] for key, items in sets.items()} for name, sets in by_captioner.items()}


def taken_of_several(workspace: Workspace, collection: str, captioner: str) -> list[str]:
    """A line on each condition of which a captioner has several sets: `segment: sat_blurred is taken, not sat_grey`."""
    several = [(key, items) for key, items in all_sets(workspace, collection)[captioner].items() if len(items) > 1]
    return [
        f"{condition}: {items[0].name} is taken, not {' or '.join(item.name for item in items[1:])}"
        for condition, items in several
    ]
