"""`Data`, what is measured: captions, references, labels and what images show, as frames in hand.

Whether it was read from files or loaded from a workspace, measures and plans see the same. Frames of a workspace are
read when they are used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from capbias_core.prepare.tokens import Tokens
from capbias_core.types import CAPTION_COLUMNS, Attribute

NO_ATTRIBUTE = Attribute("", "", ())


class Captions:
    """The captions of a captioner, or those of people: read, and split into words, when they are used.

    name: as shown. key: by which a run names them: a hash of their content if they are stored, else the name.
    details: what is known about them, such as the condition of their photographs.
    """

    def __init__(
        self,
        name: str,
        read: Callable[[], pd.DataFrame],
        tokens: Callable[[], Tokens] | None = None,
        key: str = "",
        details: Mapping[str, Any] | None = None,
    ):
        self.name, self.key, self.details = name, key or name, details or {}
        self._read, self._tokens = read, tokens

    @cached_property
    def frame(self) -> pd.DataFrame:
        """image_id, caption_index and caption."""
        return self._read()

    @cached_property
    def tokens(self) -> Tokens:
        return self._tokens() if self._tokens else Tokens.of(self.frame["caption"])

    @cached_property
    def images(self) -> frozenset[str]:
        return frozenset(images_in(self.frame))


class Sources:
    """Where data find what options name by content: `InHand` and `Stored` (workspace/sources.py) have
    `model(reference)`, `photographs(reference)` and `frame(key)`, of outlines, boxes or word vectors."""

    folder = Path()  # for large files that other runs may read too, such as vectors of captions

    def derived(self, key: str, compute: Callable[[], Any], kind: Any) -> Any:
        """A slow value of this type; where something is stored it is computed once."""
        return compute()


@dataclass(frozen=True)
class Data:
    """What is measured. A measure gets the data of one captioner (`of`)."""

    attribute: Attribute = NO_ATTRIBUTE
    read_labels: Callable[[], pd.Series] = lambda: pd.Series(dtype=object)
    captions: Mapping[str, Captions] = field(default_factory=dict)  # by captioner
    references: Captions | None = None  # what people wrote
    read_objects: Callable[[], pd.Series] | None = None
    sources: Any = Sources()
    # How runs name labels and objects: where they are if they are stored.
    labels_key: Mapping[str, Any] = field(default_factory=dict)
    objects_key: Mapping[str, Any] = field(default_factory=dict)
    coverage: str = ""  # whether only images with references count, see workspace/spec.py
    resume: Path | None = None  # a folder for what a run that is stopped may go on from; perhaps not made yet

    def of(self, key: str, references: bool, objects: bool, coverage: str) -> Data:
        """The data of the captions with this key, the human ones too; without references or objects if they are not
        to be read."""
        every = [*self.captions.values(), *([self.references] if self.references else [])]
        chosen = next(captions for captions in every if captions.key == key)
        return replace(
            self,
            captions={chosen.name: chosen},
            references=self.references if references else None,
            read_objects=self.read_objects if objects else None,
            coverage=coverage,
        )

    def on(self, images: Iterable[str]) -> Data:
        """The data of these images alone."""
        kept, read = set(images), self.read_labels

        def labels() -> pd.Series:
            every = read()
            return every[every.index.isin(kept)]

        return replace(self, read_labels=labels)

    @cached_property
    def labels(self) -> pd.Series:
        """Value of the attribute by image ID."""
        return self.read_labels()

    @cached_property
    def captioner(self) -> str:
        """The name of the only captioner."""
        return next(iter(self.captions), "")

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The captions of labelled images by the only captioner, indexed as in the whole set; empty without any."""
        whole = next((captions.frame for captions in self.captions.values()), pd.DataFrame(columns=[*CAPTION_COLUMNS]))
        return of_images(whole, self.labels.index)

    @cached_property
    def human(self) -> pd.DataFrame | None:
        """The human captions of labelled images, indexed as in the whole set; None without references."""
        return of_images(self.references.frame, self.labels.index) if self.references else None

    @cached_property
    def objects(self) -> pd.Series | None:
        """Text such as `cat|dog` by image ID; None if the objects of images are not known."""
        return self.read_objects() if self.read_objects else None

    @property
    def embeddings(self) -> str:
        """The folder of vectors of captions: CAPBIAS_EMBEDDINGS, or `embeddings` beside the sources."""
        return os.environ.get("CAPBIAS_EMBEDDINGS") or str(self.sources.folder / "embeddings")

    def tokens(self, frame: pd.DataFrame) -> Tokens:
        """The tokens of some rows of `frame` or of `human`. Raises ValueError for other captions."""
        for captions in filter(None, (self.captions.get(self.captioner), self.references)):
            if captions.frame["caption"].reindex(frame.index).equals(frame["caption"]):
                return captions.tokens.rows(frame.index.to_numpy())
        raise ValueError("tokens() takes rows of data.frame or of data.human, with their index")

    def masked(self, tokens: Tokens, merge: bool = False) -> Tokens:
        """Captions with the words of the attribute masked. merge: one mask for a run of masked words."""
        return tokens.masked(self.attribute, merge)

    def codes(self, images: Sequence[str]) -> np.ndarray:
        """The labels of these images as indices of the attribute's values."""
        return label_codes(images, self.labels, self.attribute)


def images_in(frame: pd.DataFrame) -> set[str]:
    """The image IDs of a table."""
    return set(frame["image_id"].to_numpy(dtype=object))  # quicker than iterating over pandas' own strings


def of_images(frame: pd.DataFrame, images: Iterable[str]) -> pd.DataFrame:
    """The rows of these images. Arrow compares texts as they are kept; pandas' `isin` takes twenty times as long."""
    wanted = images if isinstance(images, pd.Index | pd.Series) else list(images)
    ids, known = (pa.array(column, type=pa.large_string()) for column in (frame["image_id"], wanted))
    which = pc.is_in(ids, value_set=known).to_numpy(zero_copy_only=False)
    return frame if which.all() else frame[which]


def label_codes(images: Sequence[str], labels: pd.Series, attribute: Attribute) -> np.ndarray:
    """The labels of these images as indices of the attribute's values."""
    code = {value: number for number, value in enumerate(attribute.values)}
    return labels.loc[list(images)].map(code).to_numpy(dtype=int)
