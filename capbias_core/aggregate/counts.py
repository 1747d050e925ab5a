"""`Counts`, the evidence of every measure: numbers summed over captions, by image and by seed."""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, hstack, issparse, vstack

from capbias_core.prepare.tasks import rows_by_image

Block = np.ndarray | csr_array
EVERY_SEED = -1


@dataclass(frozen=True)
class Counts:
    """Named columns, a row for each image; with attackers a row for each image that a seed holds out."""

    images: tuple[str, ...]
    label: np.ndarray  # (n_images,) code of each image's value
    columns: Mapping[str, Block]  # name -> (rows,) numbers, or (rows, W) of W alike, dense or sparse
    image: np.ndarray  # (rows,) index of each row's image
    # (rows,) seed of each row, EVERY_SEED for one that counts with every seed; None without seeds.
    seed: np.ndarray | None = None
    training: int = 0  # images that each attacker was trained on, 0 if nothing was trained
    # Numbers of the whole, such as `METRIC unsure`: how far its value may be off (measures/bias_amplification.py).
    constants: Mapping[str, float] = field(default_factory=dict)
    # L of them: see `beside_objects`, (rows, L * W), and `captions_beside_objects`.
    objects: tuple[str, ...] = ()

    @classmethod
    def by_image(cls, images: Iterable[str], label: np.ndarray, columns: Mapping[str, Block], **more) -> Counts:
        """Without seeds: row i is of image i."""
        ids = tuple(images)
        return cls(ids, label, columns, np.arange(len(ids)), **more)

    @classmethod
    def of_captions(
        cls,
        image_id: pd.Series,
        codes: Callable[[Sequence[str]], np.ndarray],
        columns: Mapping[str, np.ndarray],
        sort: bool = True,
    ) -> Counts:
        """Numbers of n captions, (n,) or (n, W), summed by image, and how many `captions` there are. codes: ids to
        labels. sort: images by id, else in the order of the captions."""
        image, images = pd.factorize(image_id, sort=sort)
        for name, column in columns.items():
            if len(column) != len(image):
                raise ValueError(f"the column {name!r} has {len(column):,} numbers for {len(image):,} captions")
        of_image = rows_by_image(image, len(images))
        sums = {name: of_image @ np.asarray(column, dtype=float) for name, column in columns.items()}
        captions = np.bincount(image, minlength=len(images)).astype(float)
        return cls.by_image(images.tolist(), codes(images.tolist()), {"captions": captions, **sums})

    @classmethod
    def merge(cls, parts: Sequence[Counts]) -> Counts:
        """The rows of several counts of the same images, one after the other; a column that a part lacks is 0 there."""
        if any(part.images != parts[0].images for part in parts):
            raise ValueError("counts are merged of the same images")
        columns = {}
        for name, like in {name: column for part in parts for name, column in part.columns.items()}.items():
            shapes = [(len(part.image), *like.shape[1:]) for part in parts]
            zeros = [csr_array(shape, dtype=like.dtype) if issparse(like) else np.zeros(shape) for shape in shapes]
            blocks = [part.columns.get(name, nothing) for part, nothing in zip(parts, zeros, strict=True)]
            columns[name] = csr_array(vstack(blocks)) if issparse(like) else np.concatenate(blocks)
        seeds = [part.seed for part in parts if part.seed is not None]
        return replace(
            parts[0],
            columns=columns,
            label=np.max([part.label for part in parts], axis=0),
            image=np.concatenate([part.image for part in parts]),
            seed=np.concatenate(seeds) if seeds else None,
            constants={name: number for part in parts for name, number in part.constants.items()},
        )

    def reading(self, names: Sequence[str]) -> Counts:
        """Only these columns."""
        return replace(self, columns={name: self.columns[name] for name in names})

    def subset(self, kept: np.ndarray) -> Counts:
        """Only some images, (n_images,) booleans, with their rows."""
        places = np.cumsum(kept) - 1
        rows = np.flatnonzero(kept[self.image])
        return replace(
            self,
            images=tuple(image for image, one in zip(self.images, kept, strict=True) if one),
            label=self.label[kept],
            columns={name: column[rows] for name, column in self.columns.items()},
            image=places[self.image[rows]],
            seed=None if self.seed is None else self.seed[rows],
        )

    @property
    def taking_part(self) -> Counts:
        """Only the images that have a row: attackers hold out some of the others never."""
        kept = np.zeros(len(self.images), dtype=bool)
        kept[self.image] = True
        return self if kept.all() else self.subset(kept)

    @property
    def widths(self) -> dict[str, int]:
        """How many numbers each column has in a row; 0 for one that is not in a block."""
        return {name: column.shape[1] if column.ndim == 2 else 0 for name, column in self.columns.items()}

    @cached_property
    def table(self) -> Block:
        """(rows, M), all columns side by side."""
        blocks = [column if column.ndim == 2 else column[:, None] for column in self.columns.values()]
        return csr_array(hstack(blocks)) if any(map(issparse, blocks)) else np.hstack(blocks)

    @cached_property
    def sums(self) -> Block:
        """(n_images, M), the rows of each image added up."""
        if len(self.image) == len(self.images) and (self.image == np.arange(len(self.images))).all():
            return self.table
        return rows_by_image(self.image, len(self.images)) @ self.table

    @property
    def totals(self) -> tuple[np.ndarray, ...]:
        """Each column summed over all rows: (), or (W,)."""
        return tuple(np.asarray(column.sum(axis=0), dtype=float) for column in self.columns.values())

    def size(self, name: str = "captions") -> int:
        """A column summed over all images, such as how many captions there are."""
        return int(self.columns[name].sum())

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """S of them, in order; () without."""
        return () if self.seed is None else tuple(seed for seed in np.unique(self.seed).tolist() if seed != EVERY_SEED)

    @cached_property
    def held_out(self) -> np.ndarray:
        """(S, n_images) booleans: the images that each seed tests."""
        tested = np.zeros((len(self.seeds), len(self.images)), dtype=bool)
        for row, seed in enumerate(self.seeds):
            tested[row, self.image[self.seed == seed]] = True
        return tested

    @property
    def test_over_train(self) -> float:
        """Test images over training images of a seed."""
        return float(self.held_out.sum(axis=1).mean() / self.training)

    def by_seed(self, kept: np.ndarray) -> np.ndarray:
        """(S, M) sums of each seed over the images that count, (S, n_images) booleans. Rows of every seed count of each
        image but those that no seed keeps and some seed tests."""
        there = np.asarray(kept.any(axis=0) | ~self.held_out.any(axis=0))
        seeds, sums = np.asarray(self.seed), []
        for seed, tested in zip(self.seeds, kept, strict=True):
            counts = np.where(seeds == EVERY_SEED, there[self.image], (seeds == seed) & tested[self.image])
            sums.append(np.asarray(self.table[np.flatnonzero(counts)].sum(axis=0)).ravel())
        return np.array(sums).reshape(len(self.seeds), -1)

    def save(self) -> bytes:
        """The bytes of an npz file; `load` reads them back."""
        about = {"images": self.images, "training": self.training, "constants": dict(self.constants)}
        about |= {"seeded": self.seed is not None, "objects": self.objects}
        rows = {"label": self.label, "image": self.image, "seed": np.zeros(0) if self.seed is None else self.seed}
        return to_npz(about, **rows, **{f"column {name}": column for name, column in self.columns.items()})

    @classmethod
    def load(cls, data: bytes) -> Counts:
        """What `save` kept. Raises ValueError, LookupError, TypeError or AttributeError for anything else."""
        about, arrays = from_npz(data)
        label, image, seed = (arrays.pop(name) for name in ("label", "image", "seed"))
        columns = {name.removeprefix("column "): column for name, column in arrays.items()}
        seed = seed if about["seeded"] else None
        objects = tuple(about.get("objects", ()))
        numbers = [label, image, *columns.values(), np.array([about["training"], *about["constants"].values()])]
        if any(array.dtype.kind not in "biuf" for array in numbers) or label.dtype.kind != "i" or about["training"] < 0:
            raise ValueError("counts are not numbers")
        if about["training"] and seed is None:
            raise ValueError("counts of attackers are of no seed")
        lengths = {len(image), len(image if seed is None else seed), *(column.shape[0] for column in columns.values())}
        inside = image.size == 0 or 0 <= image.min() <= image.max() < len(about["images"])
        if len(lengths) > 1 or len(label) != len(about["images"]) or not inside:
            raise ValueError("the columns of counts are not of their images")
        return cls(tuple(about["images"]), label, columns, image, seed, about["training"], about["constants"], objects)


def beside_objects(column: str) -> str:
    """The name of the column with the same numbers beside each object."""
    return f"{column} beside objects"


def captions_beside_objects(column: str) -> str:
    """The name of the column that counts the captions beside each object."""
    return f"{column} captions beside objects"


def unlabelled(images: Sequence[str]) -> np.ndarray:
    """(n_images,) codes of images without labels, -1."""
    return np.full(len(images), -1)


def to_npz(about: Any, **arrays: Block) -> bytes:
    """Arrays as the bytes of an npz file; `from_npz` reads them back, in order. about: whatever JSON can hold."""
    saved = {}
    for name, array in arrays.items():
        if issparse(array):
            array = csr_array(array)
            parts = {part: getattr(array, part) for part in ("data", "indices", "indptr")}
            saved |= {f"{name}|{part}": value for part, value in (parts | {"shape": np.array(array.shape)}).items()}
        else:
            saved[name] = array
    buffer = io.BytesIO()
    text = json.dumps([about, list(arrays)]).encode()
    np.savez_compressed(buffer, about=np.frombuffer(text, dtype=np.uint8), **saved)
    return buffer.getvalue()


def from_npz(data: bytes) -> tuple[Any, dict[str, Any]]:
    """What `to_npz` was given. Raises ValueError or LookupError for other bytes."""
    try:
        kept, arrays = dict(np.load(io.BytesIO(data))), {}
    except (OSError, EOFError, BadZipFile, zlib.error, TypeError) as error:
        raise ValueError(str(error)) from None
    about, names = json.loads(kept["about"].tobytes())
    for name in names:
        if name in kept:
            arrays[name] = kept[name]
        else:
            values, indices, indptr, shape = (kept[f"{name}|{part}"] for part in ("data", "indices", "indptr", "shape"))
            arrays[name] = csr_array((values, indices, indptr), shape=tuple(shape))
    return about, arrays
