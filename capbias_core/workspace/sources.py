"""`Data` of a collection, and where data find what options name: in a workspace, or in hand."""

from __future__ import annotations

import shutil
import tempfile
import uuid
import weakref
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd

from capbias_core.data import Captions, Data, Sources
from capbias_core.errors import CapbiasError
from capbias_core.kinds import CAPTIONS, LABELS, OBJECTS, REFERENCES
from capbias_core.language.files import ModelFiles
from capbias_core.load.photographs import find_pictures
from capbias_core.types import Attribute
from capbias_core.workspace.labels import attribute_of, labels_of
from capbias_core.workspace.models import resolve_model
from capbias_core.workspace.objects import chosen_objects
from capbias_core.workspace.photographs import (
    MADE_BY,
    frozen_photographs,
    made_from,
    masked_so,
    photograph_files,
    reference_to,
    resolve_person_regions,
)
from capbias_core.workspace.spec import PeopleReference, PhotographsReference, RunSpec, attribute_from
from capbias_core.workspace.store import Workspace, content_hash


class _Named(Sources):
    """Sources that know the frames and models that a reference names."""

    def model_path(self, digest: str) -> str:
        raise NotImplementedError

    def keep_model_path(self, digest: str, path: str) -> None:
        raise NotImplementedError

    def model(self, reference: Any) -> ModelFiles:
        return resolve_model(self, reference)

    def photographs(self, reference: Any) -> dict[str, Path]:
        return photograph_files(self, reference)


class InHand(_Named):
    """Sources of data that were read from files and are not stored. `folder` is made if something writes a large file,
    such as vectors of captions, and goes with this object."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.gettempdir()) / f"capbias-{uuid.uuid4().hex}"
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self._frames: dict[str, pd.DataFrame] = {}
        self._models: dict[str, str] = {}
        self._chosen: dict[str, Any] = {}

    def add(self, frame: pd.DataFrame, key: str = "") -> str:
        """The key of a frame, by default the hash of its content."""
        key = key or content_hash(frame)
        self._frames[key] = frame
        return key

    def add_photographs(self, folder: Path, name: str) -> None:
        """The folder of photographs that runs read."""
        frame = find_pictures(folder)
        self._chosen["photographs"] = reference_to(self, name, folder, self.add(frame))

    def add_people(self, frame: pd.DataFrame, name: str, kind: str) -> None:
        """The outlines or boxes that runs read."""
        self._chosen["people"] = PeopleReference(name=name, kind=kind, item=self.add(frame))

    def frame(self, key: str) -> pd.DataFrame:
        return self._frames[key]

    def model_path(self, digest: str) -> str:
        return self._models.get(digest, "")

    def keep_model_path(self, digest: str, path: str) -> None:
        self._models[digest] = path

    def choose_photographs(self, _name: object, _captions: Captions) -> PhotographsReference:
        return self._only("photographs", "The photographs are not known.", "Name their folder.")

    def choose_people(self, _name: object) -> PeopleReference:
        return self._only("people", "Where people are on the photographs is not known.", "Name outlines or boxes.")

    def _only(self, what: str, lacking: str, remedy: str) -> Any:
        if what not in self._chosen:
            raise CapbiasError(lacking, remedy, what)
        return self._chosen[what]


class Stored(_Named):
    """Sources in a workspace. collection: whose photographs and people are chosen by name."""

    def __init__(self, workspace: Workspace, collection: str = ""):
        self.workspace, self.collection, self.folder = workspace, collection, workspace.folder
        self.derived = workspace.derived
        self.model_path, self.keep_model_path = workspace.model_path, workspace.keep_model_path

    def frame(self, key: str) -> pd.DataFrame:
        return self.workspace.frame(key)

    def choose_photographs(self, name: str | PhotographsReference | None, captions: Captions) -> PhotographsReference:
        """As asked for, else those that the captions were made from, or are masked as the set's condition says."""
        made_by = captions.details.get(MADE_BY)
        if not name and made_by:
            name = made_from(self.workspace, self.collection, made_by["photographs"])
        name = name or masked_so(self.workspace, self.collection, captions.details.get("condition"))
        return frozen_photographs(self.workspace, self.collection, name)

    def choose_people(self, name: str | PeopleReference | None) -> PeopleReference:
        return resolve_person_regions(self.workspace, self.collection, name or "")


def load(
    workspace: Workspace,
    collection: str,
    captions: tuple[str, ...],
    labels: str,
    attribute: str,
    references: str = "",
    objects: str | None = None,
) -> Data:
    """Data of a collection: what these names are. objects: '' for the usual ones, None if none are to be read. Raises
    CapbiasError for a name that the collection does not have."""
    table = workspace.item(LABELS, labels, collection)
    chosen, where = attribute_of(table, attribute)
    source = chosen_objects(workspace, collection, table, objects) if objects is not None else ""
    human = workspace.item(REFERENCES, references, collection) if references else None
    items = [workspace.item(CAPTIONS, name, collection) for name in captions]
    return _data(
        workspace,
        chosen,
        where,
        {item.name: _captions(workspace, item.name, item.hash, item.details) for item in items},
        _captions(workspace, human.name, human.hash) if human else None,
        {"table": source, "column": OBJECTS} if source else {},
        collection,
    )


def data_of(workspace: Workspace, spec: RunSpec) -> Data:
    """The data that a run in a workspace reads."""
    if not spec.captions:  # an item is made from photographs alone
        return Data(sources=Stored(workspace))
    attribute = attribute_from(spec.attribute)
    captions = {spec.model: _captions(workspace, spec.model, spec.captions)}
    human = _captions(workspace, "human captions", spec.references) if spec.references else None
    data = _data(workspace, attribute, spec.labels, captions, human, spec.objects)
    data = replace(data, coverage=spec.coverage)
    return data.on(workspace.frame(spec.shared_with)["image_id"]) if spec.shared_with else data


def _data(
    workspace: Workspace,
    attribute: Attribute,
    where: Mapping[str, Any],
    captions: Mapping[str, Captions],
    references: Captions | None,
    objects: Mapping[str, Any],
    collection: str = "",
) -> Data:
    @cache
    def read_objects() -> pd.Series:
        return workspace.frame(objects["table"]).set_index("image_id")[objects["column"]]

    return Data(
        attribute,
        cache(partial(labels_of, workspace, attribute, where)),
        captions,
        references,
        read_objects if objects else None,
        Stored(workspace, collection),
        where,
        objects,
    )


def _captions(workspace: Workspace, name: str, key: str, details: Mapping[str, Any] | None = None) -> Captions:
    return Captions(name, partial(workspace.frame, key), partial(workspace.tokens, key), key, details)


def scratch_workspace() -> Workspace:
    """A workspace for what leaves nothing behind; its folder goes with it."""
    folder = tempfile.mkdtemp(prefix="capbias-")
    workspace = Workspace(folder)
    weakref.finalize(workspace, shutil.rmtree, folder, ignore_errors=True)
    return workspace
