"""Masked captions for a person to guess the label of, and the person's accuracy beside the attacker's."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import pandas as pd

from capbias_core.aggregate.resampling import wilson
from capbias_core.analysis.read import CaptionScores
from capbias_core.prepare import child_seed
from capbias_core.prepare.split import random_order

NUMBER = 20
LEAST_WORDS = 3  # beside masked ones; fewer say nothing


def draw_captions(scores: CaptionScores, name: str, draw: int = 1) -> pd.DataFrame:
    """Rows of scores.table in random order: one caption per image, and equally many images of each value.

    There are 20 captions, fewer if they cannot be shared equally among the values or the rarest value has too few
    images. name: of the caption set; each set has its order of images, so that answers from one set do not help with
    the next. draw: 1, 2, ...; no two draws share an image. Empty if too few images are left.
    """
    mask, k, seed = scores.attribute.mask_token, len(scores.attribute.values), zlib.crc32(name.encode())
    table = scores.table.sort_values(["image_id", "caption_index"])
    words = np.array([sum(word != mask for word in text.split()) for text in table["masked"]], dtype=int)
    table = table[words >= LEAST_WORDS].drop_duplicates("image_id")
    table = table.iloc[random_order(list(table["image_id"]), seed)]
    by_value = [table[table["label"] == value] for value in range(k)]
    size = min(NUMBER // k, *map(len, by_value))
    first = (draw - 1) * size
    if first + size > min(map(len, by_value)):
        return table[:0]
    drawn = pd.concat([rows[first : first + size] for rows in by_value])
    return drawn.iloc[random_order(list(drawn["image_id"]), child_seed(seed, draw))]


def score_guesses(drawn: pd.DataFrame, guesses: Sequence[int]) -> dict[str, float | int | None]:
    """Accuracy in percent of the guesses and of the attacker, with Wilson's 95% intervals. drawn: rows of
    `draw_captions`; guesses: the place of a value for each of them.

    Keys: n; value, ci_low and ci_high of the guesses; the same with the prefix attacker_.
    """
    label = drawn["label"].to_numpy()
    row: dict[str, float | int | None] = {"n": len(drawn)}
    for prefix, guessed in (("", guesses), ("attacker_", drawn["predicted"])):
        right = int((label == np.asarray(guessed)).sum())
        row[f"{prefix}value"] = 100 * right / len(label)
        for name, end in zip(("ci_low", "ci_high"), wilson(right / len(label), len(label)), strict=True):
            row[prefix + name] = None if end is None else 100 * end
    return row
