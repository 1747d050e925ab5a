"""A map of a captioner's word over the photograph, as a picture.

The photograph turns grey, and the map is laid over it from dark blue (a little) to yellow (most): lightness rises all
the way, so that it is read without telling red from green, on light and dark grounds alike.
"""

from __future__ import annotations

import math

import numpy as np

from capbias_core.vision.grad_cam import Window, upsampled

# The ends and quarters of cividis (Nuñez et al., PLOS ONE 2018), made for readers who are colour-blind.
RAMP = np.array([(0, 34, 78), (66, 78, 108), (125, 124, 120), (188, 175, 111), (254, 232, 56)], dtype=np.float32)
STRONGEST = 0.75  # how much of the photograph the map hides where it is 1
LONGEST = 800  # pixels of the picture's longer side
LUMINANCE = (0.299, 0.587, 0.114)
LINE, BESIDE = (255, 255, 255), (0, 0, 0)  # the outline of people and the line around it
PARTS = (("top", "", "bottom"), ("left", "", "right"))


def heat_over(
    pixels: np.ndarray, heat: np.ndarray, window: Window | None = None, person: np.ndarray | None = None
) -> np.ndarray:
    """A photograph (H, W, 3) uint8 with a map (h, w) in [0, 1] laid over it: (H', W', 3) uint8, at most 800 a side.

    window: the part of the photograph that the map covers, None for all. person: (H, W) booleans, drawn as an outline.
    """
    from PIL import Image

    height, width = pixels.shape[:2]
    over = upsampled(heat, height, width, window)
    size = _fitting(height, width)
    photograph = np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BILINEAR), dtype=np.float32)
    strength = np.asarray(Image.fromarray(over).resize(size, Image.Resampling.BILINEAR)).clip(0, 1)
    grey = np.repeat(photograph @ np.array(LUMINANCE, dtype=np.float32), 3).reshape(photograph.shape)
    share = STRONGEST * np.sqrt(strength)[..., None]  # so that weak parts are seen too
    picture = ((1 - share) * grey + share * ramp(strength)).round().astype(np.uint8)
    return picture if person is None else outlined(picture, person)


def ramp(values: np.ndarray) -> np.ndarray:
    """(...) values in [0, 1] to (..., 3) colours in [0, 255]."""
    ends = np.linspace(0, 1, len(RAMP))
    return np.stack([np.interp(values, ends, RAMP[:, channel]) for channel in range(3)], axis=-1)


def outlined(picture: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """A picture with the edge of a mask drawn on it: a white line within, a black one around. The mask is resized."""
    from PIL import Image

    size = picture.shape[1], picture.shape[0]
    inside = np.asarray(Image.fromarray(mask).resize(size, Image.Resampling.NEAREST))
    found = picture.copy()
    found[_grown(inside) & ~inside] = BESIDE
    found[inside & _grown(~inside)] = LINE
    return found


def heat_text(word: str, heat: np.ndarray, outside: float, hit: float) -> str:
    """What a map shows, in words, for those who cannot see it. outside: its attribution score, [0, 1]. hit: 1 where its
    maximum lies on a person.

    >>> heat_text("man", np.array([[0.0, 1.0], [0.2, 0.0]]), 0.25, 1.0)
    'Map of the word man: strongest at the top right, on a person; 25% of it lies outside people.'
    """
    if math.isnan(outside):
        return f"Map of the word {word}: it is 0 everywhere."
    places = np.unravel_index(heat.argmax(), heat.shape)
    third = [PARTS[axis][min(2, int(3 * (place + 0.5) / heat.shape[axis]))] for axis, place in enumerate(places)]
    where, on = " ".join(filter(None, third)) or "centre", "on a person" if hit else "not on a person"
    return f"Map of the word {word}: strongest at the {where}, {on}; {outside:.0%} of it lies outside people."


def heat_legend() -> str:
    """HTML: the ramp between the words for its ends."""
    stops = ", ".join(f"rgb({red:.0f},{green:.0f},{blue:.0f})" for red, green, blue in RAMP)
    bar = f'<span style="display:inline-block;width:8em;height:.8em;background:linear-gradient(90deg,{stops})"></span>'
    return f"<span>the word rests on it: a little {bar} most. Grey: not at all. White line: people.</span>"


def _fitting(height: int, width: int) -> tuple[int, int]:
    """(width, height) reduced so that the longer side is at most LONGEST."""
    share = min(1.0, LONGEST / max(height, width))
    return max(1, round(width * share)), max(1, round(height * share))


def _grown(mask: np.ndarray) -> np.ndarray:
    """A mask and the pixels above, below, left and right of it."""
    found = mask.copy()
    found[1:] |= mask[:-1]
    found[:-1] |= mask[1:]
    found[:, 1:] |= mask[:, :-1]
    found[:, :-1] |= mask[:, 1:]
    return found
