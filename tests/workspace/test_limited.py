"""Files of strangers are read by a real child, whose limits end it and nothing else."""

import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet
import pytest

from capbias_core.errors import CapbiasError
from capbias_core.load.archives import unpacked
from capbias_core.workspace.limited import _HELPER, AT_ONCE, GIGABYTES, SECONDS, all_taken, make_ready, within_limits
from capbias_core.workspace.offers import offers_of
from capbias_core.workspace.store import Workspace

pytestmark = pytest.mark.long


@pytest.fixture
def captions(tmp_path):
    path = tmp_path / "sat.csv"
    path.write_text("image_id,caption\n1,a dog\n2,a man\n")
    return path


def test_a_usual_file_is_read_as_it_is_here(tmp_path, captions):
    workspace = Workspace(tmp_path / "w")
    (here,), (there,) = (
        offers_of(workspace, captions, "c"),
        within_limits("sat.csv", offers_of, workspace, captions, "c"),
    )
    assert there.preview.frame.equals(here.preview.frame)
    assert (there.kind, there.own, there.name, there.images) == (here.kind, here.own, here.name, here.images)
    assert there.preview.report == here.preview.report


def test_what_is_wrong_with_a_file_is_said_as_here(tmp_path):
    (tmp_path / "broken.zip").write_bytes(b"PK")
    with pytest.raises(CapbiasError, match="cannot be unpacked"):
        within_limits("broken.zip", unpacked, tmp_path / "broken.zip", tmp_path / "to")


def test_a_file_that_takes_too_long(tmp_path, captions, monkeypatch):
    monkeypatch.setenv(SECONDS, "0.000001")
    with pytest.raises(CapbiasError, match=f"sat.csv .* or raise .*{SECONDS}"):
        within_limits("sat.csv", offers_of, Workspace(tmp_path / "w"), captions, "c")


def test_a_file_that_takes_too_much_memory(tmp_path, monkeypatch):
    same = pa.DictionaryArray.from_arrays(pa.array([0] * 2_000_000, pa.int8()), ["a dog"])
    pyarrow.parquet.write_table(pa.table({"image_id": same, "caption": same}), tmp_path / "rows.parquet")
    monkeypatch.setenv(GIGABYTES, "0.3")
    with pytest.raises(CapbiasError, match="0.3 GB or 60 s"):
        within_limits("rows.parquet", offers_of, Workspace(tmp_path / "w"), tmp_path / "rows.parquet", "c")


def test_only_so_many_are_read_at_a_time(tmp_path, captions, monkeypatch):
    """The third waits for a place and is read; with nobody ending in time it is refused in words."""
    monkeypatch.setenv(AT_ONCE, "2")
    gate = tmp_path / "gate"
    closed = ["sh", "-c", f"until test -e {gate}; do sleep 0.01; done"]
    with ThreadPoolExecutor(3) as pool:
        held = [pool.submit(within_limits, "held", subprocess.check_call, closed) for _ in range(2)]
        until(all_taken)
        monkeypatch.setenv(SECONDS, "0.2")
        with pytest.raises(CapbiasError, match="sat.csv was not read, since 2 other files"):
            within_limits("sat.csv", captions.read_text)
        monkeypatch.delenv(SECONDS)
        third = pool.submit(within_limits, "sat.csv", captions.read_text)
        time.sleep(0.2)
        assert not third.done()
        gate.touch()
        assert [own.result(30) for own in held] == [0, 0]
        assert "a dog" in third.result(30) and not all_taken()


def until(condition) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_child_or_the_helper_that_is_killed(captions):
    with pytest.raises(CapbiasError, match="was ended"):
        within_limits("sat.csv", signal.raise_signal, signal.SIGKILL)
    assert within_limits("sat.csv", unpacked, captions, captions) == [captions], "the helper lives on"
    _HELPER.process.kill()
    _HELPER.process.wait()
    assert within_limits("sat.csv", unpacked, captions, captions) == [captions], "another takes its place"


def test_the_helper_ends_with_the_server():
    make_ready()
    _HELPER.control.close()
    assert _HELPER.process.wait(timeout=60) == 0


@pytest.mark.parametrize("limit", ["none", "0", "-1", "nan"])
def test_a_limit_that_is_none(monkeypatch, limit):
    monkeypatch.setenv(GIGABYTES, limit)
    with pytest.raises(CapbiasError, match=f"{GIGABYTES} .*{limit}"):
        within_limits("any", os.getpid)
