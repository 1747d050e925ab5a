"""Captions that name one value, with their objects and their variants (Sabir and Padró, 2023)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray
from scipy.sparse import csr_array, hstack

from capbias_core.attributes import need_words, word_forms
from capbias_core.data import Data
from capbias_core.errors import CapbiasError
from capbias_core.load.tables import objects_in
from capbias_core.measures.caption_side import names_in
from capbias_core.measures.options import Options, option
from capbias_core.prepare.tasks import named_objects, object_names, phrases
from capbias_core.prepare.text import Variants, variants
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import Attribute

IMAGE, CAPTION = "image", "caption"
# The paper's: objects that a detector is less sure of are left out, and of the others the three surest stay.
LEAST_CONFIDENCE, MOST_OBJECTS = 0.2, 3
CONFIDENCE = 0.5


@dataclass(frozen=True)
class ObjectChoices(Options):
    """Which objects count. objects_from: None for what is usual for the measure."""

    objects_from: str | None = option(
        None,
        "objects of the image, or those that the caption names (default: the caption's for cooccurrence, else the "
        "image's if they are known)",
        flag="--objects-from",
        choices=(IMAGE, CAPTION),
    )
    object_words: tuple[str, ...] = option(
        (), "further words that count as objects if a caption has them", flag="--object-words", metavar="WORD"
    )
    least_confidence: float = option(
        LEAST_CONFIDENCE, "leave out objects of which a detector is less sure", at_least=0, at_most=1, metavar="P"
    )
    forms: tuple[list[str], ...] = option((), "the words that replace each other in a caption; () for the usual")


@dataclass(frozen=True)
class Gendered:
    """Captions whose words name one value of the attribute, and which have an object."""

    images: tuple[str, ...]
    image: np.ndarray  # (n,) index in images
    texts: ExtensionArray  # of all captions, as written
    row: np.ndarray  # (n,) index in texts
    value: np.ndarray  # (n,) index of the value that the words name
    objects: tuple[str, ...]
    confidence: csr_array  # (n, L), of a detector in each object of a caption, above 0 and at most 1
    source: str  # in words, where the objects come from
    note: str  # what was left out

    @property
    def captions(self) -> ExtensionArray:
        """(n,) as written."""
        return self.texts[self.row]

    def having(self, which: np.ndarray) -> Gendered:
        """Only these captions, (n,) booleans, and their images."""
        rows = np.flatnonzero(which)
        kept, image = np.unique(self.image[rows], return_inverse=True)
        columns = {name: getattr(self, name)[rows] for name in ("row", "value", "confidence")}
        return replace(self, images=tuple(np.array(self.images, dtype=object)[kept]), image=image, **columns)

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(p,) caption, object and confidence of each caption beside each object of it."""
        pairs = self.confidence.tocoo()
        order = np.lexsort((pairs.col, pairs.row))
        return pairs.row[order], pairs.col[order], pairs.data[order]


def captions_of(data: Data, options: Any, usual: str = IMAGE) -> Gendered:
    """The captions of a run that name one value and have an object. usual: as in `gendered`."""
    return gendered(data.frame, data.attribute, data.objects, options, usual, tokens=data.tokens)


def gendered(
    frame: pd.DataFrame,
    attribute: Attribute,
    objects: pd.Series | None,
    choices: ObjectChoices,
    usual: str = CAPTION,
    tokens: Callable[[pd.DataFrame], Tokens] = lambda frame: Tokens.of(frame["caption"]),
) -> Gendered:
    """Captions (image_id, caption) that name one value, with the objects of the image or those that they name.

    objects: text such as `cat|dog` or, from a detector, `cat:0.93|dog:0.41`, by image id. usual: where objects are from
    if `choices` does not say; the caption if there are no objects of images. tokens: of rows of the frame, if they are
    known. Raises CapbiasError for an attribute without words, and where no caption has an object.
    """
    need_words(attribute)
    source = choices.objects_from or (usual if objects is not None else CAPTION)
    confidence = getattr(choices, "object_confidence", CONFIDENCE)
    encoded, unsure, where = tokens(frame), 0, "objects that the caption names"
    named = names_in(encoded, attribute)
    kept = np.flatnonzero(named.sum(axis=1) == 1)

    def mentioned(table: dict) -> tuple[tuple[str, ...], csr_array]:
        return tuple(table), csr_array(named_objects(encoded, table).astype(float) * confidence)

    if source == IMAGE:
        if objects is None:
            raise CapbiasError(
                "The objects of the images are not loaded.",
                "Load COCO instances or a table with a column objects, or use the objects that captions name.",
            )
        names, columns, unsure = _on_images(frame["image_id"], objects, confidence, choices.least_confidence)
        where = "objects of the image"
    else:
        names, columns = mentioned(object_names())
    if further := phrases(choices.object_words):
        words, more = mentioned(further)
        new = [column for column, word in enumerate(words) if word not in names]
        names, columns = (*names, *(words[column] for column in new)), csr_array(hstack([columns, more[:, new]]))
    columns = csr_array(columns[kept])
    having = np.diff(columns.indptr) > 0
    if not having.any():
        raise CapbiasError(
            f"No caption names one value and has an object ({where}).",
            "Load objects of the images, or name words that count as objects.",
        )
    note = (
        f"{having.sum():,} captions name one value and have an object ({where}); {(~having).sum():,} more have none, "
        f"and {len(frame) - len(kept):,} name no or several values."
    )
    if unsure:
        note += (
            f" Of the objects that a detector found, {unsure:,} do not count: only the {MOST_OBJECTS} surest of an "
            f"image do, with a confidence of {choices.least_confidence:g} or more."
        )
    image, images = pd.factorize(frame["image_id"].iloc[kept])
    ids, value = tuple(images.to_numpy(dtype=object)), named.argmax(axis=1)[kept]
    return Gendered(ids, image, frame["caption"].array, kept, value, names, columns, where, note).having(having)


def _on_images(
    image_id: pd.Series, objects: pd.Series, usual: float, least: float
) -> tuple[tuple[str, ...], csr_array, int]:
    """The objects of each caption's image with their confidence, (n, L); and how many a detector was not sure of.

    Of an image with a detector's confidences the MOST_OBJECTS surest of at least `least` stay; of others all, each with
    the usual confidence. `person` does not count.
    """
    found = objects_in(objects[objects.index.isin(image_id)])
    found = found[found["object"] != "person"].groupby(["image_id", "object"], sort=False, as_index=False).last()
    detected = found["confidence"].notna().groupby(found["image_id"]).transform("any")
    surest = found[detected].fillna({"confidence": 0.0}).sort_values(["confidence", "object"], ascending=False)
    surest = surest.groupby("image_id", sort=False).head(MOST_OBJECTS)
    sure = pd.concat([surest[surest["confidence"] >= least], found[~detected].fillna({"confidence": usual})])
    captions = pd.DataFrame({"caption": range(len(image_id)), "image_id": image_id.to_numpy(dtype=object)})
    pairs = captions.merge(sure, on="image_id")
    column, names = pd.factorize(pairs["object"])
    cells, shape = (pairs["confidence"], (pairs["caption"], column)), (len(image_id), len(names))
    return tuple(names), csr_array(cells, shape=shape, dtype=float), len(found) - len(sure)


@dataclass(frozen=True)
class Texts:
    """The variants of captions."""

    variants: tuple[Variants, ...]
    distinct: tuple[str, ...]  # each text once
    code: np.ndarray  # (n, K + 1) index of each caption's variants in distinct


def texts_of(texts_of_set: Gendered, attribute: Attribute, choices: ObjectChoices) -> Texts:
    """Every caption with the words of each value and, last, with neutral words. Raises CapbiasError if a value has no
    words."""
    forms = choices.forms or word_forms(attribute)
    versions = tuple(
        variants(caption, attribute, value, forms)
        for caption, value in zip(texts_of_set.captions, texts_of_set.value, strict=True)
    )
    index: dict[str, int] = {}
    code = np.array([[index.setdefault(text, len(index)) for text in version.texts] for version in versions])
    return Texts(versions, tuple(index), code)
