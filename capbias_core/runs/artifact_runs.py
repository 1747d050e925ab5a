"""Runs that make something to keep (boxes, masked photographs, captions) in place of numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from capbias_core.errors import CapbiasError
from capbias_core.measures.options import ArtifactOptions
from capbias_core.measures.registry import MEASURES
from capbias_core.runs.plan import spec_of
from capbias_core.workspace.photographs import ORIGINALS, frozen_photographs
from capbias_core.workspace.spec import RunSpec
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
    """The same runs. Raises CapbiasError if two of them make an item of one name: the later would replace it."""
    counts = Counter((spec.measure, spec.options["name"]) for spec in {own.run_id: own for own in specs}.values())
    twice = [name for (_, name), count in counts.items() if count > 1]
    if twice:
        raise CapbiasError(
            f"Several runs would make {', '.join(map(repr, twice))} and replace each other's.",
            "Ask for one of them, or in a terminal name each (--name).",
        )
    return list(specs)


def plan_artifact(workspace: Workspace, collection: str, measure: str, options: ArtifactOptions) -> RunSpec:
    """The run that makes an item, of the kind that the measure makes, from photographs of a collection.

    options: of the measure, with the name of the item; photographs: the name of a folder of the collection, None or ''
    for the originals. If the item was deleted since, or another run made another one of that name (see RUN), the run is
    forgotten, so that it can be asked for again. Raises CapbiasError for a choice that is not allowed, a name that
    cannot be one, or no photographs.
    """
    own = MEASURES[measure]
    options = own.freeze(workspace, collection, own.options.read(vars(options)), None)
    photographs = frozen_photographs(workspace, collection, options.photographs)
    options = options.with_(collection=collection, name=checked_name(options.name), photographs=photographs)
    spec = spec_of(own, options, {"model": photographs["name"]})
    made_by = {item.name: item.details.get(RUN, spec.run_id) for item in workspace.items(own.makes, collection)}
    if made_by.get(options.name) != spec.run_id:
        workspace.forget(spec.run_id)
    return spec
