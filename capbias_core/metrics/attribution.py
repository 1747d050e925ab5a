"""How much of what a captioner's word depends on lies outside the person (the DBAC paper, section 5.2.2 and Table 4;
maps as of Grad-CAM, Selvaraju et al., ICCV 2017), and the pointing game (Zhang et al., ECCV 2016).

Each takes an (H, W) map of 0 or more and (H, W) booleans, where the person is, and is nan if the map is 0 everywhere.

>>> heat, person = [[3.0, 1.0], [0.0, 4.0]], [[True, False], [False, False]]
>>> attribution_score(heat, person), round(attribution_pixels(heat, person), 3), attribution_even(heat, person)
(0.625, 0.667, 0.75)
>>> pointing_game(heat, person), pointing_game(heat, [[False, False], [False, True]])
(0.0, 1.0)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.metrics.arguments import alike, booleans, numbers

PART_OF_IT = 0.15  # of the map's maximum
ALIKE = 1e-6  # of the maximum: what rounding in float32 may take from it


def attribution_score(heat: ArrayLike, person: ArrayLike) -> float:
    """attribution_score = sum of the map outside the person / sum of the map

    The paper says "the percentage of non-person pixels that were involved" in predicting the attribute, and not how a
    pixel counts as involved; here every pixel is weighed by the map. Range [0, 1], shown x100; lower is better: the
    word depends on the person, not on the scene. People are small: compare with `attribution_even`.
    """
    heat, person = _map(heat, person)
    total = float(heat.sum(dtype=float))
    return float(heat[~person].sum(dtype=float)) / total if total > 0 else math.nan


def attribution_pixels(heat: ArrayLike, person: ArrayLike) -> float:
    """attribution_pixels = pixels outside the person that are part of the object / pixels that are

    The other reading: pixels with 15% of the map's maximum or more, as Grad-CAM's authors cut their maps (section 4.1).
    Range [0, 1], shown x100; lower is better.
    """
    heat, person = _map(heat, person)
    largest = heat.max()
    return float(np.mean(~person[heat >= PART_OF_IT * largest])) if largest > 0 else math.nan


def attribution_even(heat: ArrayLike, person: ArrayLike) -> float:
    """The share that an even map would have. Range [0, 1]; nan if this one is 0 everywhere: both count alike."""
    heat, person = _map(heat, person)
    return float(np.mean(~person)) if heat.max() > 0 else math.nan


def pointing_game(heat: ArrayLike, person: ArrayLike) -> float:
    """pointing_game = maps whose maximum lies in the person's mask / maps

    1 for a hit, else 0. Range [0, 1], shown x100; higher is better. The pixel itself must lie in the mask, without the
    authors' margin of 15 pixels; of several that share the maximum, at least half. Pointing anywhere hits as often as
    the person covers the photograph.
    """
    heat, person = _map(heat, person)
    largest = heat.max()
    return float(person[heat >= largest * (1 - ALIKE)].mean() >= 0.5) if largest > 0 else math.nan


def _map(heat: ArrayLike, person: ArrayLike) -> tuple[np.ndarray, ...]:
    return alike(heat=numbers("heat", heat, 0, shape=("H", "W")), person=booleans("person", person, "W"))
