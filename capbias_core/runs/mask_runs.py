"""Masked photographs: the run that makes a folder of them, and the folder, made once for the same content.

A folder is written under another name and gets its own at the end, so that it is whole or not there. The originals are
only read.
"""

from __future__ import annotations

from collections.abc import Mapping

from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.measures.base import RunSpec
from capbias_core.runs.artifact_runs import RUN, plan_artifact
from capbias_core.vision.mask_regions import FOREGROUND, OF_OBJECTS, OF_OUTLINES, WHOSE
from capbias_core.vision.masking import FILLS, HALF
from capbias_core.workspace.masked_photographs import LABELLED, ONLY_MASKED
from capbias_core.workspace.person_regions import PEOPLE, resolve_person_regions
from capbias_core.workspace.photographs import KIND, frozen_photographs
from capbias_core.workspace.store import Workspace, checked_name

FAMILY = "mask"
GREY = "grey"
MASKED = ("part", "segment", "box", "object", "both")


def plan_masking(
    workspace: Workspace,
    collection: str,
    condition: str,
    photographs: str = "",
    people: str = "",
    fill: str = GREY,
    fraction: float = HALF,
    whose: str = FOREGROUND,
    departures: Mapping[str, float] | None = None,
    name: str = "",
    labelled: str = "",
    only_masked: bool = False,
) -> RunSpec:
    """The run that makes a folder of masked photographs of a collection.

    condition: one of MASKED. photographs: the name of a folder, '' for the originals. people: the name of outlines or
    boxes, '' for the only ones (outlines first). fraction: of the outline, for part. whose: the person in the
    foreground, or all. departures: of the objects that may be hidden (object, both); see object_associations.py.
    name: of the folder, '' for `photographs (segment masked)`. labelled: the name of kept boxes of the labelled people,
    one a photograph: the person whose box overlaps most with it is in the foreground; elsewhere the largest.
    only_masked: photographs that show none of the objects are left out under object and both, so that every photograph
    is masked; else they stay as they are under object, and have the person alone hidden under both. That is the usual
    way since it is LIC's: LIC_M on masked images (its Table 4) is over the images of the original, as its published
    captions show (10,780 under every condition; 62% of those under object are word for word those of the originals).
    Raises CapbiasError for what does not go together.
    """
    _check(condition, fill, fraction, whose, departures)
    marks = resolve_person_regions(workspace, collection, people)
    if marks["kind"] == "boxes" and condition in OF_OUTLINES:
        raise CapbiasError(
            f"the condition {condition} with {marks['name']}, boxes that hold no outline of a person",
            "outlines (a COCO instances file), or another condition: box, object, both",
            "Load outlines with import --kind segments.",
        )
    frozen = frozen_photographs(workspace, collection, photographs)
    options = {PEOPLE: marks, "condition": condition, "fill": fill}
    options |= {"fraction": fraction} if condition == "part" else {}
    options |= {"whose": whose} if condition != "object" else {}
    options |= {"departures": dict(departures), ONLY_MASKED: only_masked} if condition in OF_OBJECTS else {}
    if labelled:
        options |= {LABELLED: _labelled(workspace, collection, labelled, options)}
    name = checked_name(name or folder_name(frozen["name"], options))
    _check_free(workspace, collection, name)
    return plan_artifact(workspace, collection, FAMILY, name, options, frozen)


def _labelled(workspace: Workspace, collection: str, name: str, options: Mapping) -> dict:
    if options.get("whose") != FOREGROUND:
        raise CapbiasError(
            "labelled people where everybody or only an object is hidden",
            "labelled people with the person in the foreground",
            "Leave one out.",
        )
    item = workspace.item("boxes", name, collection)
    return {"name": item.name, "item": item.hash}


def _check_free(workspace: Workspace, collection: str, name: str) -> None:
    """A folder of the user's is not replaced by one that is made."""
    taken = {item.name: item for item in workspace.items(KIND, collection) if RUN not in item.details}
    if name in taken:
        raise CapbiasError(
            f"the name {name!r}, which the photographs in {taken[name].source} have in {collection!r}",
            "a name of its own for photographs that are made",
            "Give another one (--name).",
        )


def _check(condition: str, fill: str, fraction: float, whose: str, departures: Mapping[str, float] | None) -> None:
    for what, given, known in (("condition", condition, MASKED), ("fill", fill, FILLS), ("people", whose, WHOSE)):
        if given not in known:
            raise unknown_name(what, given, known)
    if not 0 < fraction <= 1:
        raise CapbiasError(f"the fraction {fraction:g}", "a share above 0, and 1 at most", "The usual one is 0.5.")
    if condition in OF_OBJECTS and not departures:
        raise CapbiasError(
            f"the condition {condition} without the objects that may be masked",
            "human captions, which tell the objects that go with an attribute, or the names of objects",
            "Name --references and --attribute, or --object.",
        )


def folder_name(photographs: str, options: Mapping) -> str:
    """The name of a folder of masked photographs; what is as usual is not in it.

    >>> folder_name("photographs", {"condition": "part", "fill": "blur", "fraction": 0.25})
    'photographs (part masked, blur, 0.25)'
    >>> folder_name("photographs", {"condition": "object", "only_masked": True})
    'photographs (object masked, only masked)'
    """
    unusual = [options["fill"]] if options.get("fill", GREY) != GREY else []
    unusual += [f"{options['fraction']:g}"] if options.get("fraction", HALF) != HALF else []
    unusual += ["only masked"] if options.get(ONLY_MASKED) else []
    unusual += ["labelled people"] if LABELLED in options else []
    unusual += [f"{options['whose']} people"] if options.get("whose", FOREGROUND) != FOREGROUND else []
    return f"{photographs} ({', '.join([options['condition'] + ' masked', *unusual])})"
