"""Tables: as wide as their texts, over several lines where these are long, and the first column in view."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
import streamlit as st

from capbias_core.present.table import first_columns
from pages.ui.table import OF_THREE_LINES, THREE_LINES, WIDEST, draw_table

ROOT = Path(__file__).resolve().parents[2]


class Place:
    """What a place of a page is asked to draw."""

    def dataframe(self, shown, **settings):
        return settings


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


@pytest.mark.parametrize(("cells", "pinned"), [(3, None), (12, True)])
def test_names_stay_in_view_only_where_the_table_is_wide(cells, pinned):
    row = {"captioner": "sat"} | {f"encoder {number}": "4.7 ±1.5 [3.4, 6.0]" for number in range(cells)}
    assert drawn(pd.DataFrame([row]))["column_config"]["captioner"]["pinned"] is pinned


def test_what_a_page_says_of_a_column_stands():
    frame = pd.DataFrame({"image_id": ["1"], "share": [0.5], "what": ["a"]})
    given = {
        "image_id": "image",
        "share": st.column_config.NumberColumn(format="%.2f"),
        "what": st.column_config.Column(width=230),
    }
    columns = drawn(frame.style, column_config=given)["column_config"]
    assert columns["image_id"]["label"] == "image" and columns["share"] == given["share"]
    assert columns["what"]["width"] == 230
    assert drawn(pd.DataFrame())["column_config"] == {}


def test_every_page_draws_its_tables_so():
    pages = [*(ROOT / "pages").rglob("*.py"), ROOT / "app.py"]
    direct = {path.name for path in pages if re.search(r"\.dataframe\(", path.read_text(encoding="utf-8"))}
    assert direct == {"table.py"}


def test_every_default_metric_fits_at_1280_pixels():
    cells = ["19.0 ±1.1 [17.8, 20.2]"] * 3 + ["-8.0 ±3.2 [-11.2, -4.7]", "80.4 ±3.9 [75.3, 85.4]", "1.13 [1.01, 1.26]"]
    metrics = dict(zip(["LIC", "LIC_M", "LIC_D", "leakage", "SC", "ratio"], cells, strict=True)) | {
        "error": "5.0 [3.9]"
    }
    frame = pd.DataFrame([{"captioner": "amplifier_masked_person", "letters": "ab", "verdict": "amplifies"} | metrics])
    settings = drawn(frame, intervals=list(metrics))
    boxes = 32  # for selecting a row
    assert boxes + sum(own["width"] for own in settings["column_config"].values()) <= 903  # beside the sidebar
    assert settings["row_height"] == THREE_LINES  # from which on the grid breaks lines
    assert first_columns(["LIC", "LIC_HM", "LIC_M (with references)", "SC_D"]) == ["LIC", "LIC_M (with references)"]
