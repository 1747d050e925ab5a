"""Files of strangers are read by a real child, whose limits end it and nothing else."""

import io
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from capbias_core.errors import CapbiasError
from capbias_core.load.files import unpacked
from capbias_core.load.read import read_file
from capbias_core.types import Problem, Table
from capbias_core.workspace import limited
from capbias_core.workspace.limited import (
    _HELPER,
    AT_ONCE,
    GIGABYTES,
    LENGTH,
    SECONDS,
    TYPE,
    _Helper,
    _message,
    _receive,
    all_taken,
    within_limits,
)
from tests import sentences

pytestmark = pytest.mark.long


@pytest.fixture
def captions(tmp_path):
    path = tmp_path / "sat.csv"
    path.write_text("image_id,caption\n1,a dog\n2,a man\n")
    return path


VALUES = {
    "plain": [None, True, 1, 1.5, float("inf"), "é\ud800"],
    "nested": {"a": [[1, {"b": None}]], "type": "path", "c": np.int64(3)},
    "path": Path("/a/b"),
    "bytes": b"\0\xff",
    "dataclass": Table(pd.DataFrame(), 3, problems=(Problem("a.csv", 2, "odd"),), account=(("Image ID", "id"),)),
    "frame": pd.DataFrame({"image_id": ["1", None], "n": [1, 2], "x": [0.5, float("nan")], "b": [b"a", b""]}),
    "empty frame": pd.DataFrame({"caption": pd.Series([], dtype=str)}),
    "series": pd.Series([1.0, 2.0], index=["sat", "nic"]),
    "array": np.arange(6, dtype=np.uint8).reshape(1, 2, 3),
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_value_comes_back_as_it_was(value):
    fine, (found, last) = _receive(io.BytesIO(b"".join(_message(True, [value, b"last"]))), 1e6)
    assert last == b"last", "values are read in the order in which they were written"
    assert fine and type(found) is type(value)
    if isinstance(value, pd.DataFrame | pd.Series):
        assert found.equals(value)
    elif isinstance(value, np.ndarray):
        assert found.dtype == value.dtype and found.tolist() == value.tolist()
    elif isinstance(value, Table):
        assert (found.problems, found.notes, found.account) == (value.problems, (), value.account)
    else:
        assert found == value


class Code:
    def __reduce__(self):
        return os.mkdir, ("code_ran",)


def answer(found: object, *parts: bytes) -> bytes:
    head = json.dumps({"fine": True, "answer": found}).encode()
    return b"".join(piece for part in (head, *parts) for piece in (LENGTH.pack(len(part)), part))


def typed(kind: str, value: object = None) -> dict:
    return {TYPE: kind, "value": value}


HOSTILE = {
    "pickle": pickle.dumps(Code()),
    "pickle as JSON": LENGTH.pack(len(pickle.dumps(Code()))) + pickle.dumps(Code()),
    "a class of another package": answer(typed("subprocess:Popen", {"args": "id"})),
    "a class that is no dataclass": answer(typed("capbias_core.workspace.store:Workspace", {})),
    "a module within one": answer(typed("capbias_core.workspace.limited:os.system", {})),
    "an array of another shape": answer(typed("array", [2**40]), *_message(True, b"x")[3:]),
    "no Arrow": answer(typed("frame"), b"12345678"),
    "no such part": answer(typed("bytes")),
    "no such type": answer(typed("code", "1")),
    "more than there may be": LENGTH.pack(2**63),
    "more parts than there may be": answer([typed("bytes")] * 2, *[_message(True, b"0" * 600)[3]] * 2),
    "an end that comes early": answer("x")[:-3],
    "nested without end": LENGTH.pack(200_000) + b"[" * 200_000,
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_an_answer_that_a_child_of_ours_never_gives(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, LookupError, EOFError, RecursionError, pa.ArrowException, AttributeError)):
        _receive(io.BytesIO(data), 1000 if "nested" not in str(data[8:9]) else 1e6)
    assert not list(tmp_path.iterdir()), "code of the answer ran"


def test_whatever_happens_in_the_child_is_one_error(tmp_path, captions, monkeypatch):
    (tmp_path / "broken.zip").write_bytes(b"PK")
    for read, *given in (
        (unpacked, tmp_path / "broken.zip", tmp_path / "to"),  # an error of the reader
        (int, "x"),  # an error that no reader expected
        (bytes, 10**12),  # too much memory
        (signal.raise_signal, signal.SIGXCPU),
        (os.getpid, 1, 2),
    ):
        with pytest.raises(CapbiasError):
            within_limits("file", read, *given)
    assert within_limits("a", within_limits, "b", os.getppid) == _HELPER.process.pid, "a child reads by itself"
    monkeypatch.chdir(tmp_path)
    assert within_limits("sat.csv", Path.read_text, Path("sat.csv")).startswith("image_id")


def test_limits_of_time_and_memory(tmp_path, captions, monkeypatch):
    with monkeypatch.context() as limits:
        limits.setenv(SECONDS, "0.000001")
        with pytest.raises(CapbiasError, match=f"sat.csv takes longer than 1e-06 seconds.* raise {SECONDS}"):
            within_limits("sat.csv", read_file, captions)
    same = pa.DictionaryArray.from_arrays(pa.array([0] * 2_000_000, pa.int8()), ["a dog"])
    pyarrow.parquet.write_table(pa.table({"image_id": same, "caption": same}), tmp_path / "rows.parquet")
    monkeypatch.setenv(GIGABYTES, "0.3")
    with pytest.raises(CapbiasError, match=rf"rows.parquet.* {GIGABYTES}"):
        within_limits("rows.parquet", read_file, tmp_path / "rows.parquet")
    for limit in ("none", "0", "-1", "nan"):
        monkeypatch.setenv(GIGABYTES, limit)
        with pytest.raises(CapbiasError, match=f"{GIGABYTES} is {limit}"):
            within_limits("any", os.getpid)


def test_only_so_many_are_read_at_a_time(tmp_path, captions, monkeypatch):
    """The third waits for a place and is read; with nobody ending in time it is refused in words."""
    monkeypatch.setenv(AT_ONCE, "2")
    gate = tmp_path / "gate"
    closed = ["sh", "-c", f"until test -e {gate}; do sleep 0.01; done"]
    with ThreadPoolExecutor(3) as pool:
        held = [pool.submit(within_limits, "held", subprocess.check_call, closed) for _ in range(2)]
        while not all_taken():
            time.sleep(0.01)
        monkeypatch.setenv(SECONDS, "0.2")
        with pytest.raises(CapbiasError, match=f"sat.csv was not read, because 2 other files .*{AT_ONCE}"):
            within_limits("sat.csv", captions.read_text)
        monkeypatch.delenv(SECONDS)
        third = pool.submit(within_limits, "sat.csv", captions.read_text)
        time.sleep(0.2)
        assert not third.done()
        gate.touch()
        assert [own.result(30) for own in held] == [0, 0]
        assert "a dog" in third.result(30) and not all_taken()


def test_a_child_or_the_helper_that_is_killed(captions):
    with pytest.raises(CapbiasError, match="ended the process"):
        within_limits("sat.csv", signal.raise_signal, signal.SIGKILL)
    assert within_limits("sat.csv", unpacked, captions, captions) == [captions], "the helper lives on"
    os.kill(_HELPER.process.pid, signal.SIGKILL)
    os.waitpid(_HELPER.process.pid, 0)
    assert within_limits("sat.csv", unpacked, captions, captions) == [captions], "another takes its place"


def test_the_helper_and_its_children_end_with_the_server():
    helper = _Helper()
    child = helper.child()
    with child.makefile("rwb") as stream:
        stream.write(pickle.dumps((1.0, 60.0, "/", partial(time.sleep, 60))))
        stream.flush()
        helper.control.close()
        with suppress(ConnectionResetError):
            assert stream.read() == b"", "the child ended"
    assert os.waitstatus_to_exitcode(os.waitpid(helper.process.pid, 0)[1]) == -signal.SIGKILL


def test_a_reader_that_does_not_start_says_so(captions, monkeypatch):
    """It said to use a smaller file."""
    helper = limited._Helper()
    monkeypatch.setattr(limited, "_HELPER", helper)
    command = [sys.executable, "-c", "import no_such_package"]
    monkeypatch.setattr(limited, "python", lambda *_, **environment: (command, {**os.environ, **environment}))
    with sentences.raises(CapbiasError):
        limited.within_limits("captions.csv", read_file, captions)
