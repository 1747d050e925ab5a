"""Runs that make something to keep (boxes, masked photographs, captions) in place of numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from capbias_core.errors import CapbiasError
from capbias_core.measures import FAMILIES
from capbias_core.measures.base import COLLECTION, EMPTY, NAME, RunSpec
from capbias_core.workspace.photographs import ORIGINALS, PHOTOGRAPHS, frozen_photographs
from capbias_core.workspace.store import RUN, Workspace, checked_name


def named_after(maker: str, photographs: str) -> str:
    """The usual name of what a captioner or detector made of a folder of photographs; of the originals, its own name.

    >>> named_after("blip", "photographs"), named_after("blip", "faces")
    ('blip', 'blip (faces)')
    >>> named_after("blip", "photographs (segment masked, blur)")
    'blip (segment masked, blur)'
    """
    if photographs == ORIGINALS:
        return maker
    start = f"{ORIGINALS} ("
    whole = photographs.startswith(start) and photographs.endswith(")")
    return f"{maker} ({photographs.removeprefix(start).removesuffix(')') if whole else photographs})"


def apart(specs: Sequence[RunSpec]) -> list[RunSpec]:
    """The same runs. Raises CapbiasError where two of them make an item of one name: the later would replace it."""
    counts = Counter((spec.family, spec.options[NAME]) for spec in dict((own.run_id, own) for own in specs).values())
    twice = [name for (_, name), count in counts.items() if count > 1]
    if twice:
        raise CapbiasError(
            f"several runs that make {', '.join(map(repr, twice))}, each of which would replace the one before",
            "a name of its own for each",
            "Ask for one of them, or in a terminal name each (--name).",
        )
    return list(specs)


def plan_artifact(
    workspace: Workspace, collection: str, family: str, name: str, options: dict, photographs: str | dict = ""
) -> RunSpec:
    """The run that makes the item `name`, of the kind that the family makes, from photographs of a collection.

    options: those of the family. photographs: the name of a folder of the collection, '' for the originals. Where the
    item was deleted since, or another run made another one of that name (see RUN), the run is forgotten, so that it can
    be asked for again. Raises CapbiasError for a name that cannot be one, or no photographs.
    """
    own = FAMILIES[family]
    chosen = {key: options[key] for key in own.options if key in options}
    frozen = frozen_photographs(workspace, collection, photographs)
    chosen |= {COLLECTION: collection, NAME: checked_name(name), PHOTOGRAPHS: frozen}
    bare = {"family": family, "model": frozen["name"], "captions": "", "labels": {}, "attribute": {}}
    spec = RunSpec(**{**EMPTY, **bare, "options": chosen})
    made_by = {item.name: item.details.get(RUN, spec.run_id) for item in workspace.items(own.makes, collection)}
    if made_by.get(chosen[NAME]) != spec.run_id:
        workspace.forget(spec.run_id)
    return spec
