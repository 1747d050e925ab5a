"""Captions drawn for a person, and accuracies against counts by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from capbias_core.attributes import get_attribute
from capbias_core.types import Attribute
from capbias_core.views.captions import CaptionScores, draw_captions, score_guesses

GENDER = get_attribute("gender")
THREE = Attribute("hair", "Hair", ("red", "dark", "fair"), mask_token="<hair>")


def scores(attribute: Attribute, counts: tuple[int, ...]) -> CaptionScores:
    """Two captions of each image, and for each value one image more whose captions have two words beside the mask."""
    mask, rows = attribute.mask_token, []
    for label, count in enumerate(counts):
        for image in range(count + 1):
            text = f"a {mask} runs fast" if image < count else f"{mask} {mask} runs fast"
            rows += [(f"{label}-{image}", index, label, text, image % 2) for index in (0, 1)]
    columns = ["image_id", "caption_index", "label", "masked", "predicted"]
    table = pd.DataFrame(rows, columns=columns).sample(frac=1, random_state=0)
    return CaptionScores(None, attribute, table, None, None)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("attribute", "counts", "sizes"),
    [
        (GENDER, (24, 31), [20, 20, 0]),  # the third draw would have four images of the first value
        (GENDER, (30, 7), [14, 0, 0]),
        (GENDER, (30, 0), [0, 0, 0]),
        (THREE, (12, 13, 40), [18, 18, 0]),
    ],
)
def test_draws_are_balanced_have_one_caption_per_image_and_share_none(attribute, counts, sizes):
    own = scores(attribute, counts)
    draws = [draw_captions(own, "sat", draw) for draw in (1, 2, 3)]
    assert [len(drawn) for drawn in draws] == sizes
    for drawn in draws:
        assert drawn["label"].value_counts().nunique() <= 1
        assert not drawn["masked"].str.startswith(f"{attribute.mask_token} ").any(), "two words are too few"
    assert pd.concat(draws)["image_id"].is_unique


def test_a_draw_is_seeded_mixes_the_values_and_differs_between_sets():
    own = scores(GENDER, (40, 40))
    first = draw_captions(own, "sat")
    again = CaptionScores(None, GENDER, own.table[::-1], None, None)  # pyright: ignore[reportArgumentType]
    assert draw_captions(again, "sat").equals(first)
    assert set(draw_captions(own, "nic")["image_id"]) != set(first["image_id"])
    for draw in (1, 2):
        drawn = draw_captions(scores(GENDER, (20, 2000)), "sat", draw)
        assert 2 < (drawn["label"][:10] == 0).sum() < 8, "a rare value comes neither first nor last"


def test_accuracies_have_wilsons_intervals():
    drawn = pd.DataFrame({"label": [0, 1] * 5, "predicted": [0] * 10})
    row = score_guesses(drawn, [0, 1] * 4 + [1, 0])
    # Wilson's interval of 8 in 10, as Newcombe (1998) prints it: 0.490 to 0.943; of 5 in 10: 0.237 to 0.763.
    assert row == pytest.approx(
        {"n": 10, "value": 80, "ci_low": 49.0, "ci_high": 94.3}
        | {"attacker_value": 50, "attacker_ci_low": 23.7, "attacker_ci_high": 76.3},
        abs=0.05,
    )
