"""Photographs as the small pictures that a judge reads: decoded once, all in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from capbias_core.errors import CapbiasError
from capbias_core.load.photographs import read_photograph

READERS = 4
PICTURES_A_TICK = 20


@dataclass(frozen=True)
class Pictures:
    """images: their ids, sorted. pixels: (n, 3, size, size) uint8. refused: why a photograph was left out, by image."""

    images: tuple[str, ...]
    pixels: np.ndarray
    refused: dict[str, str]


def small_pictures(files: Mapping[str, Path], size: int, tick: Callable[[float, str], None]) -> Pictures:
    """Every photograph as a square of `size` pixels a side, its sides stretched; a broken one is left out, and said.

    tick: called with the share done and a short text.
    """
    images, found, refused = sorted(files), [], {}
    with ThreadPoolExecutor(READERS) as pool:
        for done, own in enumerate(pool.map(lambda image: _small(files[image], size), images)):
            if isinstance(own, CapbiasError):
                refused[images[done]] = own.got
            else:
                found.append(own)
            if done % PICTURES_A_TICK == 0:
                tick(done / len(images), f"photograph {done + 1:,} of {len(images):,}")
    kept = tuple(image for image in images if image not in refused)
    return Pictures(kept, np.stack(found) if found else np.empty((0, 3, size, size), np.uint8), refused)


def _small(file: Path, size: int) -> np.ndarray | CapbiasError:
    try:
        picture = Image.fromarray(read_photograph(file))
    except CapbiasError as error:
        return error
    return np.asarray(picture.resize((size, size), Image.Resampling.BILINEAR)).transpose(2, 0, 1)
