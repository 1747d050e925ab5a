"""What a person gives that is no table: one sentence, from Python and from the command line, and nothing hangs."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

import capbias_core as capbias
from capbias_core import cli
from capbias_core.errors import CapbiasError

CAPTIONS = [{"image_id": str(index), "caption": f"a man with {index} dogs"} for index in range(4)]
LABELS = [{"image_id": str(index), "gender": "Male" if index % 2 else "Female"} for index in range(4)]
ITSELF: list[Any] = []
ITSELF.append(ITSELF)
DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]
NO_TABLES = {
    "an array of Arrow": pa.array(["a dog"]),
    "a chunked array of Arrow": pa.chunked_array([["a dog"], ["a man"]]),
    "a scalar of Arrow": pa.scalar("a dog"),
    "a list that holds itself": ITSELF,
    "a dict that holds itself": {"image_id": ITSELF},
    "records that hold themselves": [{"image_id": "1", "caption": ITSELF}],
    "lists in lists": DEEP,
    "a number": 5,
}


@pytest.mark.parametrize("role", ["captions", "labels", "references"])
@pytest.mark.parametrize("name", NO_TABLES)
def test_what_is_no_table_is_one_sentence_in_python(name, role):
    given = {"captions": CAPTIONS, "labels": LABELS, role: NO_TABLES[name]}
    with pytest.raises(CapbiasError):
        capbias.score(**given, attribute="gender", metrics=["lic" if role == "references" else "ratio"])


FILES = {"empty.pkl": pickle.dumps([{}]), "labels.csv": b"image_id,gender\n1,Male\n2,Female\n"}


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("import empty.pkl --collection c", "empty.pkl"),
        ("score empty.pkl labels.csv --attribute gender", "empty.pkl"),
        ("score /proc/self/mounts labels.csv --attribute gender", "a file of the system"),
        ("score labels.csv /proc/kmsg --attribute gender", "a file of the system"),
        ("import /proc/kmsg --kind vectors --collection c", "a file of the system"),
    ],
)
def test_what_is_no_file_of_data_is_one_sentence_of_a_command(command, text, tmp_path, monkeypatch, capsys):
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path / "home"))
    assert cli.main(command.split()) == cli.BAD_INPUT
    printed = capsys.readouterr().err
    assert "error: " in printed and text in printed
