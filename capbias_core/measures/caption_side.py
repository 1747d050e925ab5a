"""What captions of one side say, the model's or people's, and what images show: the same for measures of both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from capbias_core.aggregate import Counts
from capbias_core.data import Data, images_in, label_codes
from capbias_core.errors import NotMeasurable
from capbias_core.load.tables import objects_in
from capbias_core.measures.training import CaptionList, caption_lists
from capbias_core.metrics.cooccurrence import Table
from capbias_core.prepare.split import random_order
from capbias_core.prepare.tasks import named_objects, object_names, pair_counts
from capbias_core.prepare.tokens import Tokens, cell_counts
from capbias_core.types import Attribute

# A word must stand beside each value this often in the human captions of all images (LIC, appendix A.2), and in
# proportion less often where there are fewer captions.
LEAST, OF_CAPTIONS = 100, 53_900
# An attacker learns little about an object that is on a smaller share of the images.
LEAST_SHARE = 0.01


class CaptionSide:
    """The captions of one side on some images, usually those that both sides have.

    images: ids. frame: the captions of these images. image: (n,) index of each caption's image. k: how many values the
    attribute has. labels: value by image id, None if no label is read. tokens: of rows of the frame, where they are
    kept.
    """

    def __init__(
        self,
        frame: pd.DataFrame,
        images: list[str],
        attribute: Attribute,
        labels: pd.Series | None = None,
        tokens: Callable[[pd.DataFrame], Tokens] = lambda frame: Tokens.of(frame["caption"]),
    ):
        image = pd.Index(images).get_indexer(frame["image_id"])
        self.images, self.frame, self.image = images, frame[image >= 0], image[image >= 0]
        self.attribute, self.labels, self.k = attribute, labels, len(attribute.values)
        self.tokens = tokens

    def on(self, images: list[str]) -> CaptionSide:
        """The same on some of these images."""
        return CaptionSide(self.frame, images, self.attribute, self.labels, self.tokens)

    @cached_property
    def encoded(self) -> Tokens:
        return self.tokens(self.frame)

    @cached_property
    def values(self) -> csr_array:
        """(n, K) booleans: the values that each caption names."""
        return self.encoded.naming(self.attribute.value_words)

    @cached_property
    def only_one(self) -> np.ndarray:
        """(n,) booleans: the caption names one value and no other."""
        return np.asarray(self.values.sum(axis=1)).ravel() == 1

    @cached_property
    def objects(self) -> csr_array:
        """(n, objects) booleans: what each caption names of `object_names`."""
        return named_objects(self.encoded, object_names())

    @cached_property
    def y(self) -> np.ndarray:
        """(n_images,) code of each image's labelled value."""
        return label_codes(self.images, self.labels, self.attribute)

    @cached_property
    def labelled(self) -> csr_array:
        """(n, K) booleans: the labelled value of each caption's image."""
        return one_hot(self.y, self.k)[self.image]

    @cached_property
    def _names(self) -> tuple[str, ...]:
        """Of each caption its image ID and words."""
        return tuple(f"{image} {words}" for image, words in zip(self.frame["image_id"], self.encoded, strict=True))

    def one_per_image(self, seed: int) -> np.ndarray:
        """(n_images,) index of a caption of each image, drawn by image ID and words: neither spelling nor the order of
        rows nor rows that come twice change its words."""
        order = random_order(self._names, seed)
        _, first = np.unique(self.image[order], return_index=True)
        return order[first]

    def lists(self, mask: Callable[[Tokens], Sequence[str]]) -> list[CaptionList]:
        """Masked captions, one list for each caption index."""
        return caption_lists(self.frame, mask(self.encoded), self.images, self.y, self.k)

    def rows(self, captions: CaptionList, images: np.ndarray) -> np.ndarray:
        """(len(images),) indices of the captions of these images in one of the lists."""
        return self.frame.index.get_indexer(captions.kept_at[captions.rows(images)])


def both_sides(data: Data) -> tuple[CaptionSide, CaptionSide]:
    """The model's side of a run and the human one, on the images that both have."""
    human = data.human
    images = sorted(images_in(data.frame) & images_in(human))
    return (
        CaptionSide(data.frame, images, data.attribute, data.labels, data.tokens),
        CaptionSide(human, images, data.attribute, data.labels, data.tokens),
    )


def names_in(captions: Iterable[str], attribute: Attribute) -> np.ndarray:
    """(n, K) booleans: which values of the attribute each caption names. captions: Tokens, or texts as written."""
    tokens = captions if isinstance(captions, Tokens) else Tokens.of(pd.Series(captions))
    return tokens.naming(attribute.value_words).toarray() > 0


def one_hot(codes: np.ndarray, k: int) -> csr_array:
    """(n,) codes of values to (n, k) booleans."""
    return cell_counts(np.arange(len(codes)), codes, len(codes), k)


def least_captions(human: CaptionSide) -> int:
    """In how many human captions a word must stand to count: 100 of COCO's, in proportion less of fewer."""
    return max(1, round(LEAST * len(human.encoded) / OF_CAPTIONS))


def of_no_value(human: CaptionSide, model: CaptionSide) -> str:
    """How many captions of each side do not count, since they do not name exactly one value; '' if all do."""
    counts = [(int((~side.only_one).sum()), len(side.only_one)) for side in (model, human)]
    if not any(lost for lost, _ in counts):
        return ""
    captioner, people = (f"{lost:,} of {n:,}" for lost, n in counts)
    return (
        f" Captions that name no or several values do not count: {captioner} of the captioner's, {people} human ones."
    )


def cooccurrence(
    sides: Sequence[CaptionSide], tasks: Sequence[csr_array], named_on: np.ndarray | None = None
) -> list[csr_array]:
    """Captions of the human side and of the model's, image by image, as a `Table` has them. tasks: (n, L) of each side.
    named_on: (n_images,) booleans: captions that name one value count, on these images; None: all, with their labels.
    Raises NotMeasurable where none counts: a difference to nothing would be shown as 0."""
    tables = []
    for side, task, whose in zip(sides, tasks, ("people", "the captioner"), strict=True):
        values, kept = side.labelled, np.arange(len(side.image))
        if named_on is not None:
            values, kept = side.values, np.flatnonzero(side.only_one & named_on[side.image])
        if not len(kept):
            raise NotMeasurable(f"No caption of {whose} names exactly one value of {side.attribute.name}.")
        tables.append(pair_counts(side.image[kept], len(side.images), values[kept], task[kept]))
    return tables


def comparing(human: str, model: str, formula: Callable[..., np.ndarray], directed: bool = False) -> dict[str, Any]:
    """Fields of a metric that compares the tables of both sides. human, model: names of their columns. formula: both
    tables, both of all images and, if it is directed, the direction to a value."""

    def fix(counts: Counts, k: int, direction: str) -> dict[str, Any]:
        whole = tuple(Table.of(sums, k) for sums in counts.totals)
        return {"k": k, "whole": whole} | ({"direction": direction} if directed else {})

    return {
        "reads": (human, model),
        "of": lambda human, model, k, **fixed: formula(Table.of(human, k), Table.of(model, k), **fixed),
        "fix": fix,
        "interval": "free",
    }


def annotated(images: list[str], objects: pd.Series) -> np.ndarray:
    """(n_images,) booleans: somebody looked for objects. An image that nobody annotated is not one without objects."""
    known = set(objects.index)
    return np.array([image in known for image in images], dtype=bool)


def objects_of(images: list[str], objects: pd.Series | None) -> tuple[list[str], csr_array, np.ndarray]:
    """Objects on some of these images, without `person` and what is on all of them; (images, objects) booleans; and
    (images,) booleans: the objects are known. objects: text such as `cat|dog` by image id, None without any. Raises
    NotMeasurable where there are none."""
    if objects is None:
        raise NotMeasurable("The objects of the images are not known.", "Load them.", "objects")
    known, found = annotated(images, objects), objects_in(objects.reindex(images))
    found = found[found["object"] != "person"]
    counts = found["object"].value_counts()
    everywhere = counts.index[counts >= max(2, known.sum())]
    found = found[~found["object"].isin(everywhere)]  # what is on every image tells nothing
    column, names = pd.factorize(found["object"], sort=True)
    if not len(names):
        raise NotMeasurable(
            "No object but person is on some of these images and not on others.",
            "Check the image ids and the names in the file of objects.",
        )
    matrix = cell_counts(pd.Index(images).get_indexer(found["image_id"]), column, len(images), len(names))
    matrix.data[:] = 1
    return list(names), matrix, known


def common_objects(on_image: csr_array) -> np.ndarray:
    """Columns of (images, objects) booleans that are on enough images for an attacker; raises if none is."""
    images = on_image.shape[0]
    kept = np.flatnonzero(np.asarray(on_image.sum(axis=0)).ravel() >= max(1, LEAST_SHARE * images))
    if not len(kept):
        raise NotMeasurable(
            f"No object is on {LEAST_SHARE:.0%} of the {images:,} images or more.", "Load the objects of these images."
        )
    return kept
