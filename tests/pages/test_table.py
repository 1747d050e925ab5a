"""Tables: as wide as their texts, over several lines where these are long, and the first column in view."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from pages.ui.drawing import OF_THREE_LINES, THREE_LINES, WIDEST, draw_table

ROOT = Path(__file__).resolve().parents[2]


class Place:
    """What a place of a page is asked to draw."""

    def dataframe(self, shown, **settings):
        return settings | {"shown": shown}


def drawn(frame, **settings) -> dict:
    return draw_table(frame, Place(), **settings)


def test_a_name_below_the_first_rows_widens_its_column():
    short = pd.DataFrame({"name": ["sat"] * 50, "n": range(50)})
    long = pd.concat([short, pd.DataFrame({"name": ["photographs (segment masked)"], "n": [1]})])
    widths = [drawn(frame)["column_config"]["name"]["width"] for frame in (short, long)]
    # 28 letters of 4 to 7 pixels: the widest m of Source Sans at 14 pixels has 12, an i has 4.
    assert widths[0] < 60 and 130 < widths[1] < 28 * 7.5
    assert "n" not in drawn(short)["column_config"]


def test_long_texts_go_over_lines_and_others_do_not():
    caption = "a man riding a wave on top of a surfboard in the ocean. "
    one, several = drawn(pd.DataFrame({"caption": [caption]})), drawn(pd.DataFrame({"caption": ["a", caption * 3]}))
    assert one["row_height"] is None and one["column_config"]["caption"]["width"] <= WIDEST
    assert several["row_height"] == THREE_LINES and several["column_config"]["caption"]["width"] == OF_THREE_LINES
    flat = drawn(pd.DataFrame({"caption": [caption * 3]}), row_height=None)
    assert flat["row_height"] is None and flat["column_config"]["caption"]["width"] == WIDEST


def test_texts_that_begin_with_a_number_sort_by_it_and_show_as_written():
    lic = ["7.6 ±1.2 [5.7, 9.4] amplifies · b", "−10.2 [−13.0, −1.0]", "1,234 / 76", "not measured", ""]
    n = ["372 (84)", "< 0.001", "24%", "+5", "−4 to 25"]
    texts = {"captioner": ["2 cats", "sat", "nic", "fc", "updn"], "image": ["007", "12", "3", "4", "5"]}
    frame = pd.DataFrame({"LIC": lic, "n": n} | texts)
    settings = drawn(frame)
    values = settings["shown"].data
    assert values["LIC"].tolist()[:3] == [7.6, -10.2, 1234] and values["LIC"].isna().tolist()[3:] == [True, True]
    assert values["n"].tolist() == [372, 0.001, 24, 5, -4] and values[[*texts]].equals(frame[[*texts]])
    written = [
        [cell["display_value"] for cell in row[1:]] for row in settings["shown"]._translate(False, False)["body"]
    ]
    assert written == frame.to_numpy().tolist()
    assert settings["column_config"]["LIC"]["help"].startswith("LIC, bias amplification")
    assert settings["height"] == "content"


@pytest.mark.parametrize(("cells", "pinned"), [(3, None), (12, True)])
def test_names_stay_in_view_only_where_the_table_is_wide(cells, pinned):
    row = {"captioner": "sat"} | {f"encoder {number}": "4.7 ±1.5 [3.4, 6.0]" for number in range(cells)}
    assert drawn(pd.DataFrame([row]))["column_config"]["captioner"]["pinned"] is pinned
