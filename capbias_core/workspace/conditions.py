"""Which caption set was written under which condition: what was masked on the photographs, and by which captioner."""

from __future__ import annotations

import re
from collections.abc import Sequence

from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.types import CONDITIONS
from capbias_core.workspace.store import Item, Workspace, checked_name

ORIGINAL = CONDITIONS[0]

CAPTIONER, CONDITION = "captioner", "condition"  # the keys in a set's details
CUT = "cut"  # the key in the details of captions that were cut short: whose, and after how many words

# Words in the name of a file or of a set, or in a printed table, that say what was masked; the longest first.
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


def left_out_as_masked(sets: Sequence[Item]) -> list[str]:
    """Names of the caption sets of masked photographs, where `originals` leaves them out."""
    whole = originals(sets)
    return [item.name for item in sets if item.name not in whole and CUT not in item.details]


def originals(sets: Sequence[Item]) -> list[str]:
    """Names of the caption sets that nobody cut, of photographs that nothing is masked on, as captioners are compared
    by; of all where all are of masked ones."""
    whole = [item for item in sets if CUT not in item.details]
    return [item.name for item in whole if condition_of(item)[1] == ORIGINAL] or [item.name for item in whole]


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
        if CUT in item.details:
            continue
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
                f"The sets {' and '.join(both)} are of the same captioner and condition.", "Leave all but one out."
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
