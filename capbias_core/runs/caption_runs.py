"""Photographs to a caption set of its own: the run that makes one, and the set as a file."""

from __future__ import annotations

import json

import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.load.places import shown
from capbias_core.measures.caption import MEASURE, CaptionOptions
from capbias_core.runs.artifact_runs import named_after, plan_artifact
from capbias_core.workspace.conditions import ORIGINAL
from capbias_core.workspace.models import captioner_option
from capbias_core.workspace.photographs import KIND, frozen_photographs
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import RUN, Workspace, checked_name, suggested_name

LONGEST = 18  # digits of an image id that every reader takes for a whole number


def plan_captioning(workspace: Workspace, collection: str, options: CaptionOptions) -> RunSpec:
    """The run that captions photographs of a collection.

    options.captioner: a preset, a folder, or a name in the local cache. photographs: the name of a folder of the
    collection, None for the originals; masked ones give the set their condition. name: of the set, '' for that of the
    captioner and the folder; a set of that name that was made before is replaced. Raises CapbiasError if the captioner
    or the photographs are not there, or captions of that name were loaded.
    """
    captioner = captioner_option(workspace, options.captioner)
    photographs = frozen_photographs(workspace, collection, options.photographs)
    condition = workspace.item(KIND, photographs["name"], collection).details.get("condition", ORIGINAL)
    name = checked_name(options.name or named_after(suggested_name(captioner["name"]), photographs["name"]))
    _check_free(workspace, collection, name)
    chosen = options.with_(captioner=captioner, photographs=photographs, condition=condition, name=name)
    return plan_artifact(workspace, collection, MEASURE.name, chosen)


def _check_free(workspace: Workspace, collection: str, name: str) -> None:
    """Captions that were loaded are not replaced by captions that are made."""
    kept = {item.name: item for item in workspace.items("captions", collection)}
    if name in kept and RUN not in kept[name].details:
        raise CapbiasError(
            f"Captions loaded from {shown(kept[name].source)} have the name {name!r} in {collection!r}.",
            "Choose another name (--name), or delete those.",
        )


def coco_results(frame: pd.DataFrame) -> str:
    """A caption set in COCO's results format: a JSON list of image_id (a number where it is one) and caption.

    >>> coco_results(pd.DataFrame({"image_id": ["785", "dog.jpg"], "caption": ["a dog", "a cat"]}))
    '[{"image_id": 785, "caption": "a dog"},\\n {"image_id": "dog.jpg", "caption": "a cat"}]\\n'
    """
    rows = zip(frame["image_id"], frame["caption"], strict=True)
    lines = (
        json.dumps({"image_id": _number(image), "caption": caption}, ensure_ascii=False) for image, caption in rows
    )
    return "[" + ",\n ".join(lines) + "]\n"


def _number(image: str) -> int | str:
    plain = image.isascii() and image.isdigit() and len(image) <= LONGEST and str(int(image)) == image
    return int(image) if plain else image
