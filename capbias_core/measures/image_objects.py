"""The objects that images show, as measures read them: of labelled images, from the annotations that were kept."""

from __future__ import annotations

import re
from itertools import chain

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from capbias_core.errors import NotMeasurable
from capbias_core.load.tables import SURE
from capbias_core.prepare import tokenize

# An attacker learns little about an object that is on a smaller share of the images.
LEAST_SHARE = 0.01


def annotated(images: list[str], objects: pd.Series) -> np.ndarray:
    """(n_images,) booleans: somebody looked for objects. An image that nobody annotated is not one without objects."""
    known = set(objects.index)
    return np.array([image in known for image in images], dtype=bool)


def objects_of(images: list[str], objects: pd.Series) -> tuple[list[str], csr_array]:
    """Objects on some of these images, without `person` and what is on all of them; (images, objects) booleans."""
    lists = objects.reindex(images).fillna("").str.split("|")
    exploded = lists.explode().str.strip().str.replace(SURE, "", regex=True)
    code = pd.Series(range(len(images)), index=images)
    exploded = exploded[(exploded != "") & (exploded != "person")]
    counts = exploded.value_counts()
    everywhere = counts.index[counts >= max(2, annotated(images, objects).sum())]
    if len(everywhere):  # what is on every image tells nothing
        exploded = exploded[~exploded.isin(everywhere)]
    column, names = pd.factorize(exploded, sort=True)
    if not len(names):
        raise NotMeasurable(
            "No object but person is on some of these images and not on others.",
            "Check the image ids and the names in the file of objects.",
        )
    matrix = csr_array(
        (np.ones(len(column), dtype=np.int32), (code[exploded.index].to_numpy(), column)), (len(images), len(names))
    )
    matrix.data[:] = 1
    return list(names), matrix


def categories_of(
    images: list[str], objects: pd.Series, names: dict[str, tuple[tuple[str, ...], ...]]
) -> tuple[csr_array, list[str]]:
    """Which of some categories each of n images shows, (n, L) booleans, and names of objects that are none of them.

    images: ids, all of them in objects. names: category -> the phrases that name it, as `object_names` gives them.
    """
    lists = objects.loc[images].fillna("").str.split("|").to_numpy()
    place = {phrase: column for column, own in enumerate(names.values()) for phrase in own}
    known = {text: place.get(tuple(tokenize(re.sub(SURE, "", text)))) for text in set(chain.from_iterable(lists))}
    pairs = {(row, known[text]) for row, own in enumerate(lists) for text in own if known[text] is not None}
    rows, columns = zip(*pairs, strict=True) if pairs else ((), ())
    shown = csr_array((np.ones(len(rows), dtype=np.int32), (rows, columns)), (len(images), len(names)))
    return shown, sorted(
        text for text, column in known.items() if column is None and text.strip() not in ("", "person")
    )


def common_objects(on_image: csr_array) -> np.ndarray:
    """Columns of (images, objects) booleans that are on enough images for an attacker; raises if none is."""
    images = on_image.shape[0]
    kept = np.flatnonzero(np.asarray(on_image.sum(axis=0)).ravel() >= max(1, LEAST_SHARE * images))
    if not len(kept):
        raise NotMeasurable(
            f"No object is on {LEAST_SHARE:.0%} of the {images:,} images or more.", "Load the objects of these images."
        )
    return kept
