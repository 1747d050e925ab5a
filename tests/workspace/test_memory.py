"""A workspace in memory gives what one on disk gives, and writes nothing."""

import sqlite3

import pandas as pd
import pytest

import capbias_core as capbias
from capbias_core.errors import CapbiasError
from capbias_core.workspace.memory import MemoryWorkspace
from capbias_core.workspace.store import Workspace

LABELS = [{"image_id": image, "gender": ("Female", "Male")[image % 2]} for image in range(80)]
CAPTIONS = [
    {"image_id": image, "caption": f"a {('woman', 'man')[image % 2]} with a {('cake', 'tie', 'dog')[image % 3]}"}
    for image in range(80)
]
HUMAN = [{**row, "caption": f"{row['caption']} in a room"} for row in CAPTIONS]


def scored(**more):
    given = {"metrics": ["lic", "ratio", "reference_words"], "seeds": 2} | more
    return capbias.score({"a": CAPTIONS, "b": HUMAN[:70]}, LABELS, "gender", HUMAN, **given)


def test_a_score_is_the_same_in_memory_and_on_disk(tmp_path):
    kept, report = scored(workspace=tmp_path / "w", words=True), scored()
    pd.testing.assert_frame_equal(kept.table, report.table)
    pd.testing.assert_frame_equal(kept.words, report.words)
    assert (kept.notes, kept.sentence, kept.ranking) == (report.notes, report.sentence, report.ranking)


def test_a_score_in_memory_opens_no_database_and_writes_no_file(tmp_path, monkeypatch):
    def refuse(*_args, **_more):
        raise AssertionError("a file is written")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(sqlite3, "connect", refuse)
    monkeypatch.setattr(pd.DataFrame, "to_parquet", refuse)
    report = scored(metrics=["ratio"])
    assert len(report.table) and not [*tmp_path.iterdir()]


def test_worker_processes_need_a_workspace():
    with pytest.raises(CapbiasError, match="Name its folder with workspace="):
        scored(workers=True)


@pytest.mark.parametrize("make", [lambda folder: MemoryWorkspace(), Workspace])
def test_items_are_kept_replaced_listed_and_deleted_alike(make, tmp_path):
    workspace, frame = make(tmp_path / "w"), pd.DataFrame(CAPTIONS).astype(str)
    first = workspace.keep("captions", "a", frame, "c", "file", {"x": [1]})
    workspace.keep("captions", "b", frame[:3], "c", "file")
    other = workspace.keep("captions", "a", frame[3:], "c", "file")
    assert first.hash != other.hash and (other.rows, other.images) == (77, 77)
    assert [item.name for item in workspace.items("captions", "c")] == ["b", "a"]
    assert workspace.frame(other.hash)["caption"].tolist() == frame["caption"].tolist()[3:]
    assert workspace.columns(other.hash) == ["image_id", "caption"] and len(workspace.tokens(other.hash)) == 77
    assert workspace.derived("key", lambda: [1, 2]) == workspace.derived("key", lambda: None) == [1, 2]
    workspace.delete(other)
    assert [item.name for item in workspace.items()] == ["b"] and workspace.collections() == ["c"]
    with pytest.raises(CapbiasError, match="It has: b"):
        workspace.item("captions", "a", "c")
