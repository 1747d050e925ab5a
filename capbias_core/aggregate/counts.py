"""`Counts`, the evidence of every measure: numbers summed over captions, by image and by seed."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, hstack, issparse, vstack

Block = np.ndarray | csr_array
EVERY_SEED = -1


@dataclass(frozen=True)
class Counts:
    """Named columns, a row for each image; with attackers a row for each image that a seed holds out.

    images: ids. label: (n_images,) code of each image's value. columns: name -> (rows,) numbers, or (rows, W) of W
    alike, dense or sparse. image: (rows,) index of each row's image. seed: (rows,) seed of each row, EVERY_SEED for one
    that counts with every seed; None without seeds. training: images that each attacker was trained on, 0 if nothing
    was trained. unsure: metric -> how far its shown value may be off besides (cross_fitting.py).
    """

    images: tuple[str, ...]
    label: np.ndarray
    columns: Mapping[str, Block]
    image: np.ndarray
    seed: np.ndarray | None = None
    training: int = 0
    unsure: Mapping[str, float] = field(default_factory=dict)

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
        """Numbers of n captions, (n,) or (n, W), summed by image, and how many `captions` there are.

        image_id: of each caption. codes: image ids to labels. sort: images by id, else in the order of the captions.
        """
        image, images = pd.factorize(image_id, sort=sort)
        of_image = csr_array((np.ones(len(image)), (image, np.arange(len(image)))), shape=(len(images), len(image)))
        sums = {name: of_image @ np.asarray(own, dtype=float) for name, own in columns.items()}
        captions = np.bincount(image, minlength=len(images)).astype(float)
        return cls.by_image(images.tolist(), codes(images.tolist()), {"captions": captions, **sums})

    @classmethod
    def merge(cls, parts: Sequence[Counts]) -> Counts:
        """The rows of several counts of the same images, one after the other; a column that a part lacks is 0 there."""
        if any(part.images != parts[0].images for part in parts):
            raise ValueError("counts are merged of the same images")
        widths = {name: own for part in parts for name, own in part.columns.items()}
        columns = {}
        for name, like in widths.items():
            own = [part.columns.get(name, _zeros(like, len(part.image))) for part in parts]
            columns[name] = csr_array(vstack(own)) if issparse(like) else np.concatenate(own)
        seeds = [part.seed for part in parts if part.seed is not None]
        return replace(
            parts[0],
            columns=columns,
            label=np.max([part.label for part in parts], axis=0),
            image=np.concatenate([part.image for part in parts]),
            seed=np.concatenate(seeds) if seeds else None,
            unsure={name: own for part in parts for name, own in part.unsure.items()},
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
            columns={name: own[rows] for name, own in self.columns.items()},
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
        return {name: own.shape[1] if own.ndim == 2 else 0 for name, own in self.columns.items()}

    @cached_property
    def table(self) -> Block:
        """(rows, M), all columns side by side."""
        blocks = [own if own.ndim == 2 else own[:, None] for own in self.columns.values()]
        return csr_array(hstack(blocks)) if any(map(issparse, blocks)) else np.hstack(blocks)

    @cached_property
    def sums(self) -> Block:
        """(n_images, M), the rows of each image added up."""
        if len(self.image) == len(self.images) and (self.image == np.arange(len(self.images))).all():
            return self.table
        ones = np.ones(len(self.image))
        of_image = csr_array((ones, (self.image, np.arange(len(ones)))), shape=(len(self.images), len(ones)))
        return of_image @ self.table

    @property
    def totals(self) -> tuple[np.ndarray, ...]:
        """Each column summed over all rows: (), or (W,)."""
        return tuple(np.asarray(own.sum(axis=0), dtype=float) for own in self.columns.values())

    def size(self, name: str = "captions") -> int:
        """A column summed over all images, such as how many captions there are."""
        return int(self.columns[name].sum())

    # by seed

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """S of them, in order; () without."""
        return () if self.seed is None else tuple(own for own in np.unique(self.seed).tolist() if own != EVERY_SEED)

    @cached_property
    def held_out(self) -> np.ndarray:
        """(S, n_images) booleans: the images that each seed tests."""
        found = np.zeros((len(self.seeds), len(self.images)), dtype=bool)
        for place, seed in enumerate(self.seeds):
            found[place, self.image[self.seed == seed]] = True
        return found

    def by_seed(self, kept: np.ndarray | None = None) -> np.ndarray:
        """(S, M) sums of each seed over the images that count, (S, n_images) booleans; None for all.

        Rows of every seed count of each image but those that no seed keeps and some seed tests.
        """
        kept = self.held_out if kept is None else kept
        there = kept.any(axis=0) | ~self.held_out.any(axis=0)
        rows = [
            np.flatnonzero(np.where(self.seed == EVERY_SEED, there[self.image], (self.seed == seed) & own[self.image]))
            for seed, own in zip(self.seeds, kept, strict=True)
        ]
        return np.array([np.asarray(self.table[own].sum(axis=0)).ravel() for own in rows]).reshape(len(rows), -1)

    # kept

    def save(self) -> bytes:
        """The bytes of an npz file; `load` reads them back."""
        about = {"images": self.images, "training": self.training, "unsure": dict(self.unsure)}
        arrays = {"label": self.label, "image": self.image} | ({} if self.seed is None else {"seed": self.seed})
        found: dict[str, np.ndarray] = {}
        for name, own in (arrays | {f"column {name}": own for name, own in self.columns.items()}).items():
            if issparse(own):
                own = csr_array(own)
                parts = {"data": own.data, "indices": own.indices, "indptr": own.indptr, "shape": np.array(own.shape)}
                found |= {f"{name}|{part}": value for part, value in parts.items()}
            else:
                found[name] = own
        buffer = io.BytesIO()
        about["names"] = list(self.columns)
        np.savez_compressed(buffer, about=np.frombuffer(json.dumps(about).encode(), dtype=np.uint8), **found)
        return buffer.getvalue()

    @classmethod
    def load(cls, data: bytes) -> Counts:
        """What `save` kept."""
        arrays = dict(np.load(io.BytesIO(data)))
        about = json.loads(arrays.pop("about").tobytes())
        columns = {}
        for name in about["names"]:
            key = f"column {name}"
            columns[name] = arrays[key] if key in arrays else _sparse(arrays, key)
        seed, more = arrays.get("seed"), (about["training"], about["unsure"])
        return cls(tuple(about["images"]), arrays["label"], columns, arrays["image"], seed, *more)


def _zeros(like: Block, rows: int) -> Block:
    shape = (rows, *like.shape[1:])
    return csr_array(shape, dtype=like.dtype) if issparse(like) else np.zeros(shape)


def _sparse(arrays: Mapping[str, np.ndarray], key: str) -> csr_array:
    data, indices, indptr, shape = (arrays[f"{key}|{part}"] for part in ("data", "indices", "indptr", "shape"))
    return csr_array((data, indices, indptr), shape=tuple(shape))
