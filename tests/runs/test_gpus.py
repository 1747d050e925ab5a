"""One worker a GPU, with real Dask workers (the GPUs themselves are only named)."""

import os

import pytest

from capbias_core.runs import engine as engine_module
from capbias_core.runs import gpus


def seen() -> str | None:
    return os.environ.get(gpus.VISIBLE)


@pytest.mark.parametrize(("named", "found"), [("2,5", ["2", "5"]), (" GPU-1a ", ["GPU-1a"]), ("", []), ("-1", [])])
def test_the_gpus_that_the_user_left_visible(monkeypatch, named, found):
    monkeypatch.setenv(gpus.VISIBLE, named)
    assert gpus.visible_gpus() == found


def test_the_gpus_that_the_driver_lists(monkeypatch, tmp_path):
    monkeypatch.delenv(gpus.VISIBLE, raising=False)
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nprintf 'GPU 0: H200 (UUID: a)\\nGPU 1: H200 (UUID: b)\\n'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert gpus.visible_gpus() == ["0", "1"]
    program.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed'\nexit 9\n")
    assert gpus.visible_gpus() == []


@pytest.mark.long
def test_each_worker_sees_a_gpu_of_its_own(monkeypatch):
    monkeypatch.setenv(gpus.VISIBLE, "2,5")
    monkeypatch.delenv("CAPBIAS_SCHEDULER", raising=False)
    client = engine_module._own_cluster()
    try:
        assert sorted(client.run(seen).values()) == ["2", "5"]
    finally:
        client.cluster.close()
        client.close()


@pytest.mark.long
def test_one_worker_where_there_is_one_gpu_or_none(monkeypatch):
    monkeypatch.setenv(gpus.VISIBLE, "")
    client = engine_module._own_cluster()
    try:
        assert len(client.run(seen)) == 1
    finally:
        client.cluster.close()
        client.close()
