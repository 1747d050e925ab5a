"""Bundles that somebody changed: one sentence each, and no file outside of the workspace is written or removed."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from capbias_core import cli
from capbias_core.bundle.reproduce import Manifest, Rows
from capbias_core.bundle.write import write_bundle
from capbias_core.question import Question
from capbias_core.runs.engine import run_all
from capbias_core.runs.plan import plan
from capbias_core.typed import from_json
from capbias_core.workspace.store import Workspace, content_hash
from tests.collections_ import keep

Files = dict[str, bytes]
CAPTIONS, LABELS = "data/captions-sat.parquet", "data/labels-labels.parquet"


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Files:
    """The files of a bundle with two numbers."""
    workspace = Workspace(tmp_path_factory.mktemp("made"))
    who = [("Female", "a woman with a dog") if number % 2 else ("Male", "a man on a horse") for number in range(60)]
    labels, captions = zip(*who, strict=True)
    images = pd.DataFrame({"image_id": range(60)})
    keep(workspace, labels=images.assign(gender=labels), captions={"sat": images.assign(caption=captions)})
    specs = plan(workspace, Question("c", ("sat",), "labels", "gender", ("ratio", "error")))
    run_all(workspace, specs, "c")
    archive = zipfile.ZipFile(io.BytesIO(write_bundle(workspace, "c")))
    return {name: archive.read(name) for name in archive.namelist()}


def zipped(files: Files) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


# ways to change a bundle


def manifest(change: Callable[[dict], Any]) -> Callable[[Files], Files]:
    def changed(files: Files) -> Files:
        content = json.loads(files["manifest.json"])
        change(content)
        return files | {"manifest.json": json.dumps(content).encode()}

    return changed


def item(number: int = 1, **fields: Any) -> Callable[[Files], Files]:
    """Fields of an item, by default of the captions; None takes one away."""

    def change(content: dict) -> None:
        own = content["items"][number]
        for name, value in fields.items():
            own.pop(name) if value is None else own.update({name: value})

    return manifest(change)


def details(**fields: Any) -> Callable[[Files], Files]:
    return manifest(lambda content: content["items"][0]["details"].update(fields))


def rows(change: Callable[[list], Any]) -> Callable[[Files], Files]:
    def changed(files: Files) -> Files:
        content = json.loads(files["rows.json"])
        return files | {"rows.json": json.dumps(change(content) or content).encode()}

    return changed


def file(name: str, data: bytes | None) -> Callable[[Files], Files]:
    return lambda files: files | {name: data} if data is not None else {k: v for k, v in files.items() if k != name}


def table(change: Callable[[pd.DataFrame], pd.DataFrame], name: str = CAPTIONS, number: int = 1, told: int = 0):
    """Another table with the hash that belongs to it. told: its number of rows as the manifest has it."""

    def changed(files: Files) -> Files:
        frame = change(pd.read_parquet(io.BytesIO(files[name])))
        buffer = io.BytesIO()
        frame.to_parquet(buffer)
        digest = content_hash(frame)
        fields = {"hash": digest, "content": digest, "rows": told or len(frame)}
        return item(number, **fields)(files | {name: buffer.getvalue()})

    return changed


def parquet(arrow: pa.Table, rows: int | None = None) -> Callable[[Files], Files]:
    buffer = io.BytesIO()
    pq.write_table(arrow, buffer)
    return lambda files: item(rows=rows or arrow.num_rows)(files | {CAPTIONS: buffer.getvalue()})


def same(count: int, text: str = "a dog") -> pa.Table:
    """Rows that take no place in a file."""
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int8)), pa.array([text]))
    return pa.table({"image_id": column, "caption_index": pa.array(np.zeros(count, np.int64)), "caption": column})


def forged_size(files: Files) -> bytes:
    """A bomb whose directory says that it is small."""
    data = zipped(files | {"figures/bomb.svg": b"0" * 3_000_000})
    return data.replace((3_000_000).to_bytes(4, "little"), (3).to_bytes(4, "little"))


def bomb(files: Files) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("rows.json", "w") as member:
        for _ in range(300):
            member.write(b"0" * 1_000_000)
    return buffer.getvalue()


DEEP = b"[" * 100_000 + b"]" * 100_000
# Refused for the shape of a file, before anything else is read. OUTSIDE stands for a folder beside the workspace.
MISSHAPEN: dict[str, Callable[[Files], Files]] = {
    "a hash that is an absolute path": item(hash="OUTSIDE/precious", kind="vectors"),
    "a hash that leads out": item(hash="../../outside/precious"),
    "a hash of other content": item(hash="0123456789abcdef"),
    "derived from a path": details(derived={"references": "../../outside/x", "precedence": []}),
    "a folder of the reader": details(folder="OUTSIDE"),
    "a name that leads out": item(name="../../outside/x"),
    "a collection that leads out": manifest(lambda own: own.update(collection="../x")),
    "no details": item(details=None),
    "rows without end": item(rows=10**400),
    "an item twice": manifest(lambda own: own["items"].append(own["items"][1])),
    "another format": manifest(lambda own: own.update(format=1)),
    "a manifest nested without end": file("manifest.json", DEEP),
    "captions that lead out": manifest(lambda own: own["runs"][0].update(captions="../../outside/x")),
    "a value that is text": rows(lambda own: own[0].update(value="much")),
    "a value that is no number": rows(lambda own: own[0].update(value=float("nan"))),
}
CASES: dict[str, Callable[[Files], Files | bytes]] = {
    "a file that leads out": item(file="../outside/precious.parquet"),
    "an unknown measure": manifest(lambda own: own["runs"][0].update(measure="secrets")),
    "an option that leads out": manifest(
        lambda own: own["runs"][0].update(measure="lic", options={"alignment": {"item": "../../x", "delta": 0.5}})
    ),
    "fewer rows than the manifest says": rows(lambda own: own[:1]),
    "a table that is no Parquet": file(CAPTIONS, b"PAR1" + b"\0" * 50 + b"PAR1"),
    "a table of other content": lambda files: files | {CAPTIONS: files[LABELS]},
    "a table without captions": table(lambda frame: frame.drop(columns="caption")),
    "labels that are lists": table(lambda frame: frame.assign(gender=[["Female"]] * len(frame)), LABELS, 0),
    "fewer rows than told": table(lambda frame: frame, told=61),
    "six million rows in 40 kB": parquet(same(6_000_000)),
    "200 GB of text in 3 kB": parquet(same(2_000_000, "a" * 100_000)),
    "a name in the archive that leads out": lambda files: files | {"../outside/precious.parquet": b"x"},
    "an archive with a size that is not so": forged_size,
    "an archive that unpacks to much": bomb,
    "a manifest of millions of numbers": manifest(lambda own: own.update(more=[0] * 2_000_000)),
    "3,000 files": lambda files: files | {f"figures/{number}.svg": b"" for number in range(3_000)},
}
END_TO_END = ("a hash that leads out", "a folder of the reader")
# Read in a process of its own, as all bundles are; the others are read here, where it takes less time.
LIMITED = {
    *END_TO_END,
    "six million rows in 40 kB",
    "200 GB of text in 3 kB",
    "an archive that unpacks to much",
    "a manifest of millions of numbers",
}


def seen(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_a_bundle_says_of_itself_is_checked_by_its_shape(good):
    def check(files: Files) -> None:
        from_json(Manifest, files["manifest.json"], "manifest")
        from_json(Rows, files["rows.json"], "rows")

    check(good)
    for case, change in MISSHAPEN.items():
        with pytest.raises(ValueError):  # noqa: PT011
            check(change(good))
            pytest.fail(case)


@pytest.mark.long
@pytest.mark.parametrize("name", [*END_TO_END, *CASES])
def test_a_bundle_that_was_changed_is_refused_in_a_sentence(name, good, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CAPBIAS_READ_MEMORY", "1.2")
    if name not in LIMITED:
        monkeypatch.setattr("capbias_core.bundle.reproduce.within_limits", lambda name, read, *given: read(*given))
    outside, inside = tmp_path / "outside", tmp_path / "home" / "workspace"
    outside.mkdir()
    for own in ("precious.parquet", "precious.tmp", "x.parquet", "x.txt"):
        (outside / own).write_text("precious")
    inside.mkdir(parents=True)
    made = (MISSHAPEN | CASES)[name](good)
    if isinstance(made, dict):
        made = zipped({key: data.replace(b"OUTSIDE", str(outside).encode()) for key, data in made.items()})
    (tmp_path / "bundle.zip").write_bytes(made)
    before = seen(tmp_path)
    assert cli.main(["reproduce", str(tmp_path / "bundle.zip"), "--workspace", str(inside)]) == 2
    said = capsys.readouterr().err
    assert "error: " in said and "Traceback" not in said and "pandas" not in said
    after = {path: data for path, data in seen(tmp_path).items() if not path.startswith("home/workspace/")}
    assert after == before and not Workspace(inside).items()


@pytest.mark.long
def test_the_bundle_that_they_were_made_of_is_none_of_them(good, tmp_path):
    (tmp_path / "bundle.zip").write_bytes(zipped(good))
    assert cli.main(["reproduce", str(tmp_path / "bundle.zip"), "--workspace", str(tmp_path / "w")]) == 0
