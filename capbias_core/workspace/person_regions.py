"""Where people are on the photographs of a collection: outlines by people, or boxes by a detector."""

from __future__ import annotations

import numpy as np

from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.vision.masking import box_mask, outline_mask, people_of
from capbias_core.workspace.spec import PeopleReference
from capbias_core.workspace.store import Item, Workspace

SEGMENTS, BOXES = "segments", "boxes"  # kinds of items
KINDS = {SEGMENTS: "outlines", BOXES: "boxes"}  # the closer to the person first


def people_sources(workspace: Workspace, collection: str) -> list[Item]:
    """Kept outlines and boxes of a collection, outlines first."""
    return [item for kind in KINDS for item in workspace.items(kind, collection)]


def resolve_person_regions(
    workspace: Workspace, collection: str, name: str | PeopleReference | None = ""
) -> PeopleReference:
    """What a run says of where people are: the kept outlines or boxes.

    name: of those, '' for the only ones (outlines before boxes); a reference is the answer already. Raises CapbiasError
    if there are none, or several and none is named.
    """
    if isinstance(name, dict):
        return name
    sources = people_sources(workspace, collection)
    if not sources:
        raise CapbiasError(
            f"Where people are on the photographs of {collection!r} is not known.",
            "Load outlines (`capbias import --kind segments`), or detect people (`capbias images detect`).",
            "people",
        )
    if name and name not in {item.name for item in sources}:
        raise unknown_name("outlines or boxes", name, [item.name for item in sources])
    chosen = [item for item in sources if item.name == name]
    chosen = chosen or [item for item in sources if item.kind == sources[0].kind]
    if len(chosen) > 1 and not name:
        names = ", ".join(item.name for item in chosen)
        raise CapbiasError(
            f"{collection} has {len(chosen)} sets of {KINDS[chosen[0].kind]} ({names}).",
            "Name one set of people.",
            "people",
        )
    return PeopleReference(name=chosen[0].name, kind=chosen[0].kind, item=chosen[0].hash)


class People:
    """Where people are, photograph by photograph. option: what `resolve_person_regions` gave. rows: by image id."""

    def __init__(self, workspace: Workspace, option: PeopleReference):
        self.outlines = option["kind"] == SEGMENTS
        frame = workspace.frame(option["item"])
        self.rows = dict(list(people_of(frame).groupby("image_id")))

    def mask(self, image: str, height: int, width: int) -> np.ndarray:
        """(height, width) booleans, true on the people marked on a photograph of `rows`. Crowds count as people.

        Raises CapbiasError for outlines of a photograph of another size.
        """

        def part(row: dict) -> np.ndarray:
            if not self.outlines:
                return box_mask([row[name] for name in ("x1", "y1", "x2", "y2")], height, width)
            known = row["height"], row["width"]
            if known not in ((0, 0), (height, width)):
                raise CapbiasError(
                    f"The outline is of {known[1]} x {known[0]} pixels, the photograph of {width} x {height}.",
                    "Check that the outlines belong to these photographs.",
                )
            return outline_mask(row["outline"], height, width)

        return np.any([part(row) for row in self.rows[image].to_dict("records")], axis=0)
