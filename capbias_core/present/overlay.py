"""What a photograph shows, drawn over it: boxes with names, outlines, hidden pixels; each a layer of its own."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from capbias_core.load.photographs import read_photograph
from capbias_core.vision.masking import PERSON

if TYPE_CHECKING:
    from PIL import Image, ImageDraw

LONGEST = 900  # pixels of the longer side of what is drawn on
# People and everything else: told apart on any photograph by the black line around each, and by the name.
PEOPLE, THINGS = (46, 196, 182), (240, 190, 60)
BEHIND, WRITTEN = (0, 0, 0), (0, 0, 0)
TINT = 0.45  # how much of the photograph an outline's colour hides
LETTERS = 14
STRIPES = 8  # pixels from one stripe of a hidden part to the next


def reduced(pixels: np.ndarray, longest: int = LONGEST) -> np.ndarray:
    """A photograph whose longer side is `longest` pixels at most."""
    share = longest / max(pixels.shape[:2])
    if share >= 1:
        return pixels
    from PIL import Image

    size = (max(1, round(pixels.shape[1] * share)), max(1, round(pixels.shape[0] * share)))
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BILINEAR))


def thumbnail(path: Path, longest: int = 240) -> bytes:
    """A small JPEG of a photograph. Raises CapbiasError where it cannot be read."""
    from PIL import Image

    small = io.BytesIO()
    Image.fromarray(reduced(read_photograph(path, longest), longest)).save(small, "JPEG", quality=80)
    return small.getvalue()


def layered(
    pixels: np.ndarray,
    outlines: Sequence[tuple[str, np.ndarray]] = (),
    boxes: pd.DataFrame | None = None,
    foreground: Sequence[float] | None = None,
    hidden: np.ndarray | None = None,
) -> np.ndarray:
    """A copy of a photograph (H, W, 3) with its layers, reduced to LONGEST.

    outlines: names and (H, W) booleans. boxes: rows with object, x1..y2 and, of a detector, confidence. foreground: the
    box (x1, y1, x2, y2) of the person who is masked, drawn thicker. hidden: (H, W) booleans, striped.
    """
    from PIL import Image, ImageDraw

    found = reduced(pixels).astype(np.float32)
    size = found.shape[1], found.shape[0]
    scale = found.shape[1] / pixels.shape[1]
    for name, mask in outlines:
        inside = _resized(mask, size)
        found[inside] = (1 - TINT) * found[inside] + TINT * np.array(_colour(name), dtype=np.float32)
    if hidden is not None:
        rows, columns = np.indices(found.shape[:2])
        striped = _resized(hidden, size) & ((rows + columns) % STRIPES < STRIPES // 2)
        found[striped] = 255 - found[striped] // 4
    image = Image.fromarray(found.round().astype(np.uint8))
    if boxes is not None:
        _draw_boxes(image, boxes, scale)
    if foreground is not None:
        _rectangle(ImageDraw.Draw(image), [side * scale for side in foreground], PEOPLE, 4)
    return np.asarray(image)


def _resized(mask: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    from PIL import Image

    return np.asarray(Image.fromarray(mask).resize(size, Image.Resampling.NEAREST))


def _colour(name: str) -> tuple[int, int, int]:
    return PEOPLE if name == PERSON else THINGS


def _draw_boxes(image: Image.Image, boxes: pd.DataFrame, scale: float) -> None:
    from PIL import ImageDraw, ImageFont

    draw, font = ImageDraw.Draw(image), ImageFont.load_default(LETTERS)
    for row in boxes.to_dict("records"):
        corners = [row[side] * scale for side in ("x1", "y1", "x2", "y2")]
        _rectangle(draw, corners, _colour(row["object"]), 2)
        sure = row.get("confidence", 1.0)
        text = row["object"] if sure >= 1 else f"{row['object']} {sure:.2f}"
        left, top = max(0.0, corners[0]), max(0.0, corners[1])
        draw.rectangle(draw.textbbox((left + 2, top + 1), text, font=font), fill=_colour(row["object"]))
        draw.text((left + 2, top + 1), text, fill=WRITTEN, font=font)


def _rectangle(draw: ImageDraw.ImageDraw, corners: Sequence[float], colour: tuple[int, int, int], width: int) -> None:
    x1, y1, x2, y2 = corners
    edge = [x1, y1, max(x1, x2 - 1), max(y1, y2 - 1)]
    draw.rectangle(edge, outline=BEHIND, width=width + 2)
    draw.rectangle(
        [edge[0] + 1, edge[1] + 1, max(edge[0] + 1, edge[2] - 1), max(edge[1] + 1, edge[3] - 1)],
        outline=colour,
        width=width,
    )


def photograph_text(image: str, objects: Sequence[str], layers: Sequence[str]) -> str:
    """What the picture shows, in words, for those who cannot see it.

    >>> photograph_text("785", ["person", "skis", "person"], ["boxes"])
    'Photograph 785: 2 person, 1 skis. Drawn over it: boxes.'
    """
    named = ", ".join(f"{count} {name}" for name, count in Counter(objects).most_common())
    what = f": {named}" if named else ""
    return f"Photograph {image}{what}." + (f" Drawn over it: {', '.join(layers)}." if layers else "")
