"""A Dask cluster of two hosts, one of which vanishes: `python -m benchmarks.two_hosts [--images 300]`.

Linux, by root. Each host is a worker with namespaces of its own: network (a link to a bridge, where the scheduler and
the command are), pids, name and mounts. `capbias run` sends its runs there by CAPBIAS_SCHEDULER. Once both hosts train,
the link of one is taken down, and the workspace's folder is hidden from it, as a network file system would be; its
process is not ended. With `--keep-folder` the folder stays: the lost host goes on writing. Printed: when each run began
where, seconds until all were finished, and whether the rows are those of an undisturbed run to the last digit.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from benchmarks.namespaces import made
from capbias_core.workspace.store import Workspace
from tests.browser import ROOT, free_port
from tests.plans import PLAN, write_files

BRIDGE, HERE = "capbias-br", "10.78.0.1"
HOSTS = {"capbias-one": "10.78.0.2", "capbias-two": "10.78.0.3"}
PATIENCE = 540
PYTHON = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=300)
    parser.add_argument("--keep-folder", action="store_true", help="the lost host still reaches the workspace")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        plans = {"lstm_bi": PLAN.format(attacker="lstm_bi", seeds=1)}
        files = write_files(Path(tempfile.mkdtemp(dir=place)), options.images, plans)
        stack.enter_context(network())
        scheduler = stack.enter_context(scheduling())
        workers = {host: stack.enter_context(working(host, scheduler)) for host in HOSTS}
        homes = {name: Path(place) / name for name in ("undisturbed", "disturbed")}
        began = time.monotonic()
        first = asked(files, homes["undisturbed"], scheduler)
        assert first.wait(PATIENCE) == 0
        print(f"undisturbed: finished after {time.monotonic() - began:.1f} s", flush=True)
        disturbed(asked(files, homes["disturbed"], scheduler), homes["disturbed"], workers, options.keep_folder)
        rows = [Path(f"{home}.csv").read_bytes() for home in homes.values()]
        print(f"the rows are {'the same' if rows[0] == rows[1] else 'OTHERS'}")


def disturbed(command: subprocess.Popen, home: Path, workers: dict[str, subprocess.Popen], keep_folder: bool) -> None:
    """Cut off the host that trains the first run, and print what comes of it."""
    began = time.monotonic()
    while len(set(training(home).values())) < len(HOSTS):
        assert command.poll() is None and time.monotonic() < began + PATIENCE, "the hosts do not share the runs"
        time.sleep(0.1)
    run, host = next(iter(training(home).items()))
    while not list((home / "checkpoints" / run).glob("*.pt")) and run in training(home):
        time.sleep(0.1)
    cut = time.monotonic()
    subprocess.run(["ip", "-n", host, "link", "set", "eth0", "down"], check=True)
    if not keep_folder:
        inside = ["nsenter", "--target", str(inner(workers[host])), "--mount"]
        subprocess.run([*inside, "mount", "-t", "tmpfs", "none", str(home)], check=True)
    print(f"{host} was cut off after {cut - began:.1f} s, in the middle of {run}", flush=True)
    while training(home).get(run) == host:
        assert time.monotonic() < cut + PATIENCE, "the run is not given to the other host"
        time.sleep(0.1)
    print(f"{run} left it after {time.monotonic() - cut:.1f} s", flush=True)
    code = command.wait(PATIENCE)
    print(f"all were finished {time.monotonic() - cut:.1f} s after the cut, exit {code}")
    workspace = Workspace(home)
    for own in reversed(workspace.runs()):
        told = [f"{at - own.created:.1f} s {text}" for at, text in workspace.log_of(own.run_id) if told_of(text)]
        print(f"{own.run_id} {own.status}, {len(workspace.results([own.run_id]))} rows: {'; '.join(told)}")
    said = "is still alive" if workers[host].poll() is None else f"ended with {workers[host].returncode}"
    print(f"the process of the lost host {said}")


def told_of(text: str) -> bool:
    return not text.startswith("the model's") or "epoch 1 of" in text


def training(home: Path) -> dict[str, str]:
    """Run -> the host that has it."""
    if not (home / "capbias.sqlite").exists():
        return {}
    with closing(sqlite3.connect(home / "capbias.sqlite", timeout=60)) as db:
        try:
            rows = db.execute("SELECT run_id, process FROM runs WHERE status='running'").fetchall()
        except sqlite3.OperationalError:  # it is being made
            return {}
    return {run: process.split()[0].rsplit(":", 1)[1] for run, process in rows}


def asked(files: Path, home: Path, scheduler: str) -> subprocess.Popen:
    """`capbias run`, whose runs go to the scheduler."""
    command = ["run", "lstm_bi.toml", "--workspace", str(home), "--output", f"{home}.csv"]
    own = {**os.environ, **PYTHON, "CAPBIAS_SCHEDULER": scheduler}
    return subprocess.Popen([sys.executable, "-m", "capbias_core", *command], cwd=files, env=own)


@contextmanager
def network() -> Iterator[None]:
    """A network namespace per host, joined to this one by a bridge."""
    commands = [f"ip link add {BRIDGE} type bridge", f"ip addr add {HERE}/24 dev {BRIDGE}", f"ip link set {BRIDGE} up"]
    for number, (host, address) in enumerate(HOSTS.items()):
        commands += [
            f"ip netns add {host}",
            f"ip link add capbias{number} type veth peer name eth0 netns {host}",
            f"ip link set capbias{number} master {BRIDGE} up",
            f"ip -n {host} addr add {address}/24 dev eth0",
            f"ip -n {host} link set eth0 up",
            f"ip -n {host} link set lo up",
        ]
    with made(commands, [*(f"ip netns del {host}" for host in HOSTS), f"ip link del {BRIDGE}"]):
        yield


@contextmanager
def scheduling() -> Iterator[str]:
    """A scheduler on this side of the bridge; its address."""
    port = free_port()
    with running("dask", "scheduler", "--host", HERE, "--port", str(port), "--no-dashboard"):
        yield f"tcp://{HERE}:{port}"


@contextmanager
def working(host: str, scheduler: str) -> Iterator[subprocess.Popen]:
    """A worker on a host, which is known there by the host's name."""
    own = [
        "ip",
        "netns",
        "exec",
        host,
        "unshare",
        "--uts",
        "--pid",
        "--mount",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ]
    worker = ["--host", HOSTS[host], "--nthreads", "1", "--no-dashboard", "--memory-limit", "0"]
    with running(*own, "sh", "-c", f'hostname {host}; exec "$@"', "sh", *dask("worker", scheduler, *worker)) as found:
        yield found


def dask(*asked: str) -> list[str]:
    return [sys.executable, "-m", "dask", *asked]


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen]:
    whole = dask(*command[1:]) if command[0] == "dask" else command
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(whole, cwd=ROOT, env={**os.environ, **PYTHON}, stdout=quiet, stderr=quiet)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()


def inner(worker: subprocess.Popen) -> int:
    """A process in the namespaces of a worker: `ip` and `unshare` are outside of some."""
    import psutil

    return psutil.Process(worker.pid).children(recursive=True)[-1].pid


if __name__ == "__main__":
    main()
