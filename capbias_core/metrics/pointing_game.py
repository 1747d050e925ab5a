"""Pointing game: whether the strongest place of a map lies on the person (Zhang et al., ECCV 2016).

    pointing_game = maps whose maximum lies in the person's mask / maps

Range [0, 1], shown x100; higher is better. The pixel itself must lie in the mask, without the authors' margin of 15
pixels around it. If several pixels share the maximum, at least half of them must. Pointing anywhere hits as often as
the person covers the photograph, 100 minus `attribution_even`.

>>> person = [[True, True, False]]
>>> pointing_game([[0.2, 0.9, 0.8]], person), pointing_game([[0.2, 0.1, 0.8]], person)
(1.0, 0.0)
"""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from capbias_core.metrics.arguments import heat_map

ALIKE = 1e-6  # of the maximum: what rounding in float32 may take from it


def pointing_game(heat: ArrayLike, person: ArrayLike) -> float:
    """(H, W) map of 0 or more and (H, W) booleans to 1 (hit) or 0; nan if the map is 0 everywhere."""
    heat, person = heat_map(heat, person)
    largest = heat.max()
    if not largest > 0:
        return math.nan
    return float(person[heat >= largest * (1 - ALIKE)].mean() >= 0.5)
