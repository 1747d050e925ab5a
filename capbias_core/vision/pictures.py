"""Photographs as the small pictures that a judge reads: decoded once, all in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from capbias_core.errors import CapbiasError, MissingExtra
from capbias_core.load.photographs import read_photograph

READERS = 4
AT_ONCE = 64  # photographs decoded before any is handed on; a run that is cancelled stops between


@dataclass(frozen=True)
class Pictures:
    """images: their ids, sorted. seen: (n, 3, size, size) uint8, or (n, d) what a backbone makes of those. refused: why
    a photograph was left out, by image."""

    images: tuple[str, ...]
    seen: np.ndarray
    refused: dict[str, str]


def small_pictures(
    files: Mapping[str, Path],
    size: int,
    tick: Callable[[float, str], None],
    look: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Pictures:
    """Every photograph as a square of `size` pixels a side, its sides stretched; a broken one is left out, and said.

    tick: called with the share done and a short text. look: what makes vectors of some pictures, so that only those
    are kept; None keeps the pixels.
    """
    images, found, refused = sorted(files), [], {}
    for part, done in _groups(images):
        tick(done / len(images), f"photograph {done + 1:,} of {len(images):,}")
        read = _read([files[image] for image in part], size)
        refused |= {image: own.message for image, own in zip(part, read, strict=True) if isinstance(own, CapbiasError)}
        pixels = [own for own in read if not isinstance(own, CapbiasError)]
        if pixels:
            found.append(look(np.stack(pixels)) if look else np.stack(pixels))
    kept = tuple(image for image in images if image not in refused)
    return Pictures(kept, np.concatenate(found) if found else np.empty((0, 3, size, size), np.uint8), refused)


def _groups(images: Sequence[str]) -> Iterator[tuple[Sequence[str], int]]:
    for start in range(0, len(images), AT_ONCE):
        yield images[start : start + AT_ONCE], start


def _read(files: Sequence[Path], size: int) -> list[np.ndarray | CapbiasError]:
    with ThreadPoolExecutor(READERS) as pool:
        return list(pool.map(lambda file: _small(file, size), files))


def _small(file: Path, size: int) -> np.ndarray | CapbiasError:
    try:
        pixels = read_photograph(file)
    except MissingExtra:
        raise
    except CapbiasError as error:
        return error
    from PIL import Image

    picture = Image.fromarray(pixels)
    return np.asarray(picture.resize((size, size), Image.Resampling.BILINEAR)).transpose(2, 0, 1)
