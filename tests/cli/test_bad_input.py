"""What does not fit together: one clear message each, on the command line; and what a terminal says unasked."""

import json
import re
import socket
import sqlite3
import threading
import time
from dataclasses import asdict

import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.cli.app import check_free
from capbias_core.errors import CapbiasError
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep

LABELS = ["Female", "Male"] * 20
WHO = {"Female": "woman", "Male": "man"}


def captions(first: int = 0, only: str = "") -> str:
    rows = [(n, own) for n, own in enumerate(LABELS, start=first) if only in ("", own)]
    return json.dumps([{"image_id": n, "caption": f"a {WHO[own]} there"} for n, own in rows])


def instances(image: int, name: str) -> str:
    return json.dumps({"categories": [{"id": 1, "name": name}], "annotations": [{"image_id": image, "category_id": 1}]})


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path / "home"))
    rows = "".join(f"{n},{own},same,{('Dark', 'Light', 'Both', '')[n % 4]},\n" for n, own in enumerate(LABELS))
    contents = {
        "labels.csv": "image_id,gender,one,skin,objects\n" + rows,
        "one.csv": "image_id,gender\n" + "".join(f"{n},Female\n" for n in range(40)),
        "model.json": captions(),
        "human.json": captions(),
        "elsewhere.json": captions(1000),
        "women.json": captions(only="Female"),
        "one.toml": 'name = "mine"\nvalues = ["Female"]\n',
        "nowhere.json": instances(5000, "cat"),
        "persons.json": instances(3, "person"),
        "prose.txt": "This is a text,\nwhich is no table\nat all.\n",
    }
    for name, text in contents.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def asked(*more: str, labels: str = "labels.csv", attribute: str = "gender") -> list[str]:
    return ["score", "--captions", "model.json", "--labels", labels, "--attribute", attribute, *more]


DBA = ("--references", "human.json", "--metric", "dba")
# What the message names: what is wrong, and the way out.
BAD = {
    "references of other images": (asked("--references", "elsewhere.json"), "elsewhere", "image ids"),
    "a column with one label": (asked(attribute="one"), "column one", "column"),
    "an attribute whose labels are all one value": (asked(labels="one.csv"), "column gender", "Male"),
    "a TOML with one value": (asked(attribute="one.toml"), "one.toml", "values"),
    "objects of other images": (asked(*DBA, "--objects", "nowhere.json"), "nowhere.json", "labels.csv"),
    "a table without any object": (["import", "labels.csv", "--kind", "objects"], "labels.csv", "column of objects"),
    "captions as objects": (["import", "model.json", "--kind", "objects"], "model.json", "image_id, caption"),
    "objects as captions": (["import", "persons.json", "--kind", "captions"], "persons.json", "objects"),
    "a text as a table": (asked(labels="prose.txt"), "prose.txt", "CSV"),
    "a word that occurs nowhere": (["explain", *asked()[1:], "--words", "giraffe -> dog"], "giraffe", "model"),
}


@pytest.mark.parametrize(("argv", "wrong", "remedy"), BAD.values(), ids=BAD)
def test_bad_input_is_one_message_before_anything_runs(files, capsys, argv, wrong, remedy):
    assert cli.main(argv) == 2
    lines = capsys.readouterr().err.splitlines()
    (error,) = [line for line in lines if line.startswith("error: ")]
    assert wrong in error and remedy in error and not any("to do" in line for line in lines)


@pytest.mark.long
def test_an_object_vocabulary_that_never_occurs(files, capsys):
    """Nothing can be had from these captions: no metric hides what another one lacks."""
    assert cli.main(asked(*DBA, "--objects", "persons.json")) == 1
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    for metric in ("BA left out", "DBA_G left out", "DBA_O left out"):
        assert metric in errors[0]


@pytest.mark.long
def test_captions_of_one_value_only(files, capsys):
    argv = asked("--metric", "LIC_M")
    argv[2] = "women.json"
    assert cli.main(argv) == 1
    assert "20, 0 images" in capsys.readouterr().err


def test_references_of_other_images_in_a_collection(files, capsys):
    for name, kind in (("labels.csv", "attributes"), ("model.json", "captions"), ("elsewhere.json", "references")):
        assert cli.main(["import", name, "--kind", kind]) == 0
    printed = capsys.readouterr()
    assert re.search("warning: elsewhere.json: .*1000", printed.err)
    assert cli.main(["score", "--collection", "my captions", "--attribute", "gender"]) == 2
    assert "elsewhere" in capsys.readouterr().err


@pytest.mark.long
def test_a_raw_column_says_what_is_compared_and_who_reads_it(files, capsys):
    assert cli.main(asked("--metric", "LIC_M", "--seeds", "1", attribute="skin")) == 0
    err = capsys.readouterr().err.splitlines()
    assert "compared: Both 10, Dark 10, Light 10 (labels of the column skin; --values chooses)" in err
    assert "hint: race (Dark, Light) reads the column skin: --attribute race" in err
    cli.main(asked("--metric", "LIC_M", "--seeds", "1", "--values", "Dark", "Light", attribute="skin"))
    assert "compared: Dark 10, Light 10 (labels of the column skin; --values chooses)" in capsys.readouterr().err
    assert cli.main(asked("--metric", "ratio")) == 0
    assert "compared" not in capsys.readouterr().err, "a known attribute says what it drops"


@pytest.mark.long
def test_a_run_queued_meanwhile_keeps_its_input(tmp_path):
    """Another process queues a run between the click on Delete and the deletion."""
    workspace = Workspace(tmp_path)
    frame = pd.DataFrame({"image_id": ["1", "2"], "gender": ["Female", "Male"]})
    table = keep(workspace, labels={"t": frame})["t"]
    other = sqlite3.connect(workspace.database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    raised = []

    def delete() -> None:
        try:
            workspace.delete(table)
        except CapbiasError as error:
            raised.append(error)

    thread = threading.Thread(target=delete)
    thread.start()
    time.sleep(0.3)  # it has come as far as it can while the other writes
    spec = json.dumps(asdict(RunSpec("lic", 1, "m", labels={"table": table.hash})))
    now = time.time()
    row = ("r", "c", spec, "queued", "token", 0, "waiting", "[]", now, None, None, now)
    columns = "run_id, collection, spec, status, token, progress, message, notes, created, started, finished, heartbeat"
    other.execute(f"INSERT INTO runs ({columns}) VALUES ({', '.join('?' * len(row))})", row)
    other.execute("COMMIT")
    other.close()
    thread.join()
    assert [error.message for error in raised] == ["A run is reading t."]
    assert workspace.item("attributes", "t", "c").hash == table.hash and not workspace.frame(table.hash).empty


def test_a_port_in_use_is_named_with_another():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CapbiasError, match=f"make app PORT={port + 1}"):
            check_free("127.0.0.1", port)
    check_free("127.0.0.1", port)
