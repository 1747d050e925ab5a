"""A score in hand gives what one in a workspace gives, and writes nothing."""

import sqlite3

import pandas as pd
import pytest

import capbias_core as capbias
from capbias_core.attributes import get_attribute
from capbias_core.data import Captions, Data

LABELS = [{"image_id": image, "gender": ("Female", "Male")[image % 2]} for image in range(80)]
CAPTIONS = [
    {"image_id": image, "caption": f"a {('woman', 'man')[image % 2]} with a {('cake', 'tie', 'dog')[image % 3]}"}
    for image in range(80)
]
HUMAN = [{**row, "caption": f"{row['caption']} in a room"} for row in CAPTIONS]


def scored(**more):
    given = {"metrics": ["lic", "ratio", "naming"], "seeds": 2} | more
    return capbias.score({"a": CAPTIONS, "b": HUMAN[:70]}, LABELS, "gender", HUMAN, **given)


def test_a_score_is_the_same_in_hand_and_in_a_workspace(tmp_path):
    kept, report = scored(workspace=tmp_path / "w", words=True), scored()
    of_content = ["run_id", "setting"]  # in a workspace, hashes of the content
    pd.testing.assert_frame_equal(kept.table.drop(columns=of_content), report.table.drop(columns=of_content))
    pd.testing.assert_frame_equal(kept.words, report.words)
    assert (kept.notes, kept.sentence, kept.ranking) == (report.notes, report.sentence, report.ranking)


def test_a_score_in_hand_opens_no_database_and_writes_no_file(tmp_path, monkeypatch):
    def refuse(*_args, **_more):
        raise AssertionError("a file is written")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(sqlite3, "connect", refuse)
    monkeypatch.setattr(pd.DataFrame, "to_parquet", refuse)
    report = scored(metrics=["ratio"])
    assert len(report.table) and not [*tmp_path.iterdir()]


def test_tokens_are_of_the_captions_that_are_given():
    written, human = (
        {"image_id": ["1", "2"], "caption": pair} for pair in (["A red bus.", "a cat"], ["a man", "a dog"])
    )
    captions = Captions("m", lambda: pd.DataFrame(written))
    labels = pd.Series(["Female", "Male"], ["1", "2"])
    data = Data(get_attribute("gender"), lambda: labels, {"m": captions}, Captions("h", lambda: pd.DataFrame(human)))
    assert [*data.tokens(data.frame).texts] == ["a red bus", "a cat"]
    assert [*data.tokens(data.human[1:]).texts] == ["a dog"]
    with pytest.raises(ValueError, match="data.human"):
        data.tokens(data.human[::-1].reset_index(drop=True))
