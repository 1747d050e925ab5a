"""Attribution score: how much of what a captioner's word rests on lies outside the person (the DBAC paper, section
5.2.2 and Table 4; maps as of Grad-CAM, Selvaraju et al., ICCV 2017).

    attribution_score = sum of the map outside the person / sum of the map

The paper says "the percentage of non-person pixels that were involved" in predicting the attribute, and not how a pixel
counts as involved. Two readings, both here: `attribution_score` weighs every pixel by the map; `attribution_pixels`
counts the pixels that the map calls part of the object (15% of its maximum or more, as Grad-CAM's authors cut their
maps, section 4.1):

    attribution_pixels = such pixels outside the person / such pixels

Range [0, 1], shown x100; lower is better: the word rests on the person. A high score says that it rests on the scene,
and not that it is wrong. An even map scores the share of the photograph that is not the person
(`attribution_even`), so compare with that: people are small on most photographs.

>>> heat, person = [[3.0, 1.0], [0.0, 4.0]], [[True, False], [False, False]]
>>> attribution_score(heat, person), round(attribution_pixels(heat, person), 3), attribution_even(heat, person)
(0.625, 0.667, 0.75)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.metrics.arguments import heat_map

PART_OF_IT = 0.15  # of the map's maximum


def attribution_score(heat: ArrayLike, person: ArrayLike) -> float:
    """(H, W) map of 0 or more and (H, W) booleans to a share in [0, 1]; nan if the map is 0 everywhere."""
    heat, person = heat_map(heat, person)
    total = float(heat.sum(dtype=float))
    return float(heat[~person].sum(dtype=float)) / total if total > 0 else math.nan


def attribution_pixels(heat: ArrayLike, person: ArrayLike) -> float:
    """The share by number of pixels, in [0, 1]; nan if the map is 0 everywhere."""
    heat, person = heat_map(heat, person)
    largest = heat.max()
    return float(np.mean(~person[heat >= PART_OF_IT * largest])) if largest > 0 else math.nan


def attribution_even(heat: ArrayLike, person: ArrayLike) -> float:
    """The share that an even map would have, in [0, 1]; nan if this one is 0 everywhere: both count alike."""
    heat, person = heat_map(heat, person)
    return float(np.mean(~person)) if heat.max() > 0 else math.nan
