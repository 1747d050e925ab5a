"""Runs that make an item (boxes, masked photographs, captions) instead of numbers."""

from __future__ import annotations

import json

import pandas as pd

from capbias_core.data import Data
from capbias_core.errors import CapbiasError
from capbias_core.kinds import PHOTOGRAPHS, checked_name, suggested_name
from capbias_core.load.places import shown
from capbias_core.measures.options import ArtifactOptions
from capbias_core.measures.photographs import CAPTION as CAPTIONING
from capbias_core.measures.photographs import MASK as MASKING
from capbias_core.measures.photographs import CaptionOptions, MaskOptions
from capbias_core.measures.registry import MEASURES
from capbias_core.runs.plan import spec_of
from capbias_core.workspace.conditions import ORIGINAL
from capbias_core.workspace.models import captioner_option
from capbias_core.workspace.photographs import ORIGINALS, frozen_photographs
from capbias_core.workspace.sources import Stored
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import RUN, Workspace

LONGEST_NUMBER = 18  # digits of an image ID that readers take for a whole number


def plan_artifact(workspace: Workspace, collection: str, measure: str, options: ArtifactOptions) -> RunSpec:
    """The run that makes an item from photographs of a collection, of the kind that the measure makes.

    options: with the name of the item, and the name of a folder as photographs (None or '' for the originals). If the
    item was deleted since, or another run made another one of that name (see RUN), the run is forgotten, so that it can
    start again. Raises CapbiasError for a choice or a name that is not allowed, or no photographs.
    """
    maker = MEASURES[measure]
    options = maker.freeze(maker.options.read(vars(options)), Data(sources=Stored(workspace, collection)))
    photographs = frozen_photographs(workspace, collection, options.photographs)
    options = options.with_(collection=collection, name=checked_name(options.name), photographs=photographs)
    spec = spec_of(maker, options, {"model": photographs["name"]})
    made_by = {item.name: item.details.get(RUN, spec.run_id) for item in workspace.items(maker.makes, collection)}
    if made_by.get(options.name) != spec.run_id:
        workspace.forget(spec.run_id)
    return spec


def plan_captioning(workspace: Workspace, collection: str, options: CaptionOptions) -> RunSpec:
    """The run that captions photographs of a collection; masked ones give the set their condition.

    options.captioner: a preset, a folder, or a name in the local cache. photographs: as in `plan_artifact`. name: of
    the set, '' for that of the captioner and the folder; an earlier set of a run of that name is replaced. Raises
    CapbiasError if the captioner or the photographs are missing, or captions of that name were loaded.
    """
    captioner = captioner_option(workspace, options.captioner)
    photographs = frozen_photographs(workspace, collection, options.photographs)
    condition = workspace.item(PHOTOGRAPHS, photographs["name"], collection).details.get("condition", ORIGINAL)
    name = checked_name(options.name or named_after(suggested_name(captioner["name"]), photographs["name"]))
    _check_free(workspace, "captions", name, collection)
    chosen = options.with_(captioner=captioner, photographs=photographs, condition=condition, name=name)
    return plan_artifact(workspace, collection, CAPTIONING.name, chosen)


def plan_masking(workspace: Workspace, collection: str, options: MaskOptions) -> RunSpec:
    """The run that makes a folder of masked photographs of a collection.

    options name items: photographs (a folder, None for the originals), people (outlines or boxes, None for the only
    ones, outlines first). name: of the folder, '' for `photographs (segment masked)`. Photographs that show none of the
    objects stay as they are under object, and have only the person hidden under both, as in LIC's Table 4 (10,780
    captions under every condition; 62% of those under object are word for word those of the originals).
    """
    photographs = frozen_photographs(workspace, collection, options.photographs)
    name = checked_name(options.name or folder_name(photographs["name"], options))
    _check_free(workspace, PHOTOGRAPHS, name, collection)
    return plan_artifact(workspace, collection, MASKING.name, options.with_(photographs=photographs, name=name))


def _check_free(workspace: Workspace, kind: str, name: str, collection: str) -> None:
    """Raises CapbiasError if the user loaded an item of this name, which a run must not replace."""
    taken = {item.name: item for item in workspace.items(kind, collection) if RUN not in item.details}
    if name in taken:
        what = "Captions loaded from" if kind == "captions" else "The photographs in"
        raise CapbiasError(
            f"{what} {shown(taken[name].source)} have the name {name!r} in {collection!r}.",
            "Choose another name" + (", or delete those." if kind == "captions" else "."),
            "name",
        )


def named_after(maker: str, photographs: str) -> str:
    """The default name of what a captioner or detector made of a folder of photographs.

    >>> named_after("blip", "photographs"), named_after("blip", "faces")
    ('blip', 'blip (faces)')
    >>> named_after("blip", "photographs (segment masked)")
    'blip (segment masked)'
    """
    if photographs == ORIGINALS:
        return maker
    start = f"{ORIGINALS} ("
    whole = photographs.startswith(start) and photographs.endswith(")")
    return f"{maker} ({photographs.removeprefix(start).removesuffix(')') if whole else photographs})"


def folder_name(photographs: str, options: MaskOptions) -> str:
    """The default name of a folder of masked photographs, with the options that differ from the defaults.

    >>> folder_name("photographs", MaskOptions(condition="part", fraction=0.25))
    'photographs (part masked, 0.25)'
    """
    usual, chosen = MaskOptions(), options.effective()
    unusual = [f"{chosen.fraction:g}"] if chosen.fraction != usual.fraction else []
    return f"{photographs} ({', '.join([chosen.condition + ' masked', *unusual])})"


def coco_results(frame: pd.DataFrame) -> str:
    """A caption set in COCO's results format: a JSON list of image_id (a number if it is one) and caption.

    >>> coco_results(pd.DataFrame({"image_id": ["785", "dog.jpg"], "caption": ["a dog", "a cat"]}))
    '[{"image_id": 785, "caption": "a dog"},\\n {"image_id": "dog.jpg", "caption": "a cat"}]\\n'
    """
    lines = []
    for image, caption in zip(frame["image_id"], frame["caption"], strict=True):
        plain = image.isascii() and image.isdigit() and len(image) <= LONGEST_NUMBER and str(int(image)) == image
        lines.append(json.dumps({"image_id": int(image) if plain else image, "caption": caption}, ensure_ascii=False))
    return "[" + ",\n ".join(lines) + "]\n"
