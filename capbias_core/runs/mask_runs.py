"""The run that makes a folder of masked photographs."""

from __future__ import annotations

from capbias_core.errors import CapbiasError
from capbias_core.load.places import shown
from capbias_core.measures.mask import MEASURE, MaskOptions
from capbias_core.runs.artifact_runs import plan_artifact
from capbias_core.workspace.photographs import KIND, frozen_photographs
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import RUN, Workspace, checked_name


def plan_masking(workspace: Workspace, collection: str, options: MaskOptions) -> RunSpec:
    """The run that makes a folder of masked photographs of a collection.

    options: with what is kept by name. photographs: the name of a folder, None for the originals. people: of outlines
    or boxes, None for the only ones (outlines first). labelled: of kept boxes of the labelled people. name: of the
    folder, '' for `photographs (segment masked)`.

    Without only_masked, photographs that show none of the objects stay as they are under object, and have the person
    alone hidden under both. That is the usual way since it is LIC's: LIC_M on masked images (its Table 4) is over the
    images of the original, as its published captions show (10,780 under every condition; 62% of those under object are
    word for word those of the originals). Raises CapbiasError for what does not go together.
    """
    photographs = frozen_photographs(workspace, collection, options.photographs)
    name = checked_name(options.name or folder_name(photographs["name"], options))
    _check_free(workspace, collection, name)
    return plan_artifact(workspace, collection, MEASURE.name, options.with_(photographs=photographs, name=name))


def _check_free(workspace: Workspace, collection: str, name: str) -> None:
    """A folder of the user's is not replaced by one that is made."""
    taken = {item.name: item for item in workspace.items(KIND, collection) if RUN not in item.details}
    if name in taken:
        raise CapbiasError(
            f"The photographs in {shown(taken[name].source)} have the name {name!r} in {collection!r}.",
            "Choose another name (--name).",
        )


def folder_name(photographs: str, options: MaskOptions) -> str:
    """The name of a folder of masked photographs; what is as usual is not in it.

    >>> folder_name("photographs", MaskOptions(condition="part", fill="blur", fraction=0.25))
    'photographs (part masked, blur, 0.25)'
    >>> folder_name("photographs", MaskOptions(condition="object", only_masked=True))
    'photographs (object masked, only masked)'
    """
    usual, own = MaskOptions(), options.effective()
    unusual = [own.fill] if own.fill != usual.fill else []
    unusual += [f"{own.fraction:g}"] if own.fraction != usual.fraction else []
    unusual += ["only masked"] if own.only_masked else []
    unusual += ["labelled people"] if own.labelled else []
    unusual += [f"{own.whose} people"] if own.whose != usual.whose else []
    return f"{photographs} ({', '.join([own.condition + ' masked', *unusual])})"
