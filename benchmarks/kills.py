"""What a kill costs: `python -m benchmarks.kills [--kills 20] [--only worker] [--images 300]`, by root for a full disk.

Real processes are killed at random moments of a score, in turn: the command; the server; a worker; the
command because its disk (a small tmpfs) is full; and the command where the clock was set back by a day, so that what
its runs noted is in the future. Then the same is asked again at once. Printed for each kill: how the first try ended,
how many seconds passed until a run went on and until all were finished (to be held against an undisturbed try), whether
the rows are those of an undisturbed run to the last digit, and what would have to be repaired by hand.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil

from capbias_core import cli
from capbias_core.workspace.store import Workspace
from tests.browser import ROOT, browser, open_page, server
from tests.disks import small_disk
from tests.random_captions import FILES, write_files

SEEDS = 50
ATTACKERS = {"ngram": SEEDS, "lstm_bi": 1}
A_DAY = 86_400
PATIENCE = 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--images", type=int, default=300)
    parser.add_argument("--only", help="a kind: command, killed_server, worker, full_disk or clock_set_back")
    options = parser.parse_args()
    draw = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder, browser() as running:
        files = write_files(Path(tempfile.mkdtemp(dir=folder)), options.images)
        kinds = [command, by_server(running), worker, full_disk, clock_set_back]
        kinds = [kind for kind in kinds if options.only in (None, kind.__name__)]
        tries = {name: Try(files, Path(folder) / name, name) for name in sorted(map(attacker_of, kinds))}
        for own in tries.values():
            own.undisturbed()
        waits = defaultdict(list)
        for number in range(options.kills):
            kind = kinds[number % len(kinds)]
            name = attacker_of(kind)
            waits[name] += [kill(kind, tries[name].anew(number), draw)]
        for name, seconds in waits.items():
            own, (on, finished) = tries[name], zip(*seconds, strict=True)
            print(
                f"{name}: a run went on after {statistics.median(on):.1f} s, at most {max(on):.1f} s; undisturbed, the "
                f"first began after {own.first:.1f} s"
            )
            print(
                f"{name}: all were finished after {statistics.median(finished):.1f} s, at most {max(finished):.1f} s; "
                f"undisturbed after {own.first + own.took:.1f} s"
            )


def attacker_of(kind: Callable) -> str:
    return "lstm_bi" if kind is worker else "ngram"


class Try:
    """A score in a workspace. took: seconds of its undisturbed runs. first: until the first of them began."""

    def __init__(self, files: Path, folder: Path, attacker: str):
        self.files, self.folder, self.attacker, self.home = files, folder, attacker, folder / "home"
        self.took = self.first = 0.0
        self.rows = b""

    def undisturbed(self) -> None:
        self.folder.mkdir()
        began = time.monotonic()
        process = self.start()
        self.went_on(set())
        self.first = time.monotonic() - began
        assert process.wait(PATIENCE) == 0
        self.took = time.monotonic() - began - self.first
        self.rows = self.output.read_bytes()

    def anew(self, number: int) -> Try:
        """The same score in an empty workspace."""
        other = Try(self.files, self.folder / str(number), self.attacker)
        other.folder.mkdir()
        other.took, other.first, other.rows = self.took, self.first, self.rows
        return other

    @property
    def output(self) -> Path:
        return self.folder / "rows.csv"

    @property
    def place(self) -> list[str]:
        return ["--collection", "mine", "--workspace", str(self.home)]

    def keep(self) -> None:
        assert cli.main(["import", *(str(self.files / name) for name in FILES), *self.place]) == 0

    def start(self) -> subprocess.Popen:
        if not self.home.exists():
            self.keep()
        asked = ["score", *self.place, "--attribute", "gender", "--metric", "lic_m", "--output", str(self.output)]
        asked += ["--attacker", self.attacker, "--seeds", str(ATTACKERS[self.attacker])]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(
            [sys.executable, "-m", "capbias_core", *asked],
            cwd=self.files,
            env=environment,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def begun(self) -> set[tuple[str, float]]:
        """Runs that were begun, with the time."""
        if not (self.home / "capbias.sqlite").exists():
            return set()
        with closing(sqlite3.connect(self.home / "capbias.sqlite", timeout=60)) as db:
            try:
                return set(db.execute("SELECT run_id, started FROM runs WHERE started IS NOT NULL"))
            except sqlite3.OperationalError:  # it is being made
                return set()

    def went_on(self, before: set) -> None:
        """Wait until a run was begun that was not begun before."""
        end = time.monotonic() + PATIENCE
        while not self.begun() - before:
            assert time.monotonic() < end, "no run goes on"
            time.sleep(0.01)

    def a_moment(self, draw: random.Random) -> None:
        """Until some time in the middle of its runs."""
        self.went_on(set())
        time.sleep(draw.random() * self.took / 2)

    def faults(self) -> list[str]:
        """What somebody would have to repair."""
        found = [path.name for path in self.home.rglob("*.tmp")]
        found += [f"{run.run_id} {run.status}" for run in Workspace(self.home).runs() if run.status != "finished"]
        with closing(sqlite3.connect(self.home / "capbias.sqlite")) as db:
            (said,) = db.execute("PRAGMA integrity_check").fetchone()
        return found + ([] if said == "ok" else [said])


Asked = Callable[[Try], Iterator[None]]


def kill(kind: Callable, own: Try, draw: random.Random) -> tuple[float, float]:
    """Kill once, ask again, and say what came of it; returns the seconds until a run went on, and all were finished."""
    started = time.monotonic()
    with kind(own, draw) as (ended, ask):
        before = own.begun()
        began = time.monotonic()
        with ask(own):
            own.went_on(before)
            seconds = time.monotonic() - began
        finished = time.monotonic() - began
        code = own.start().wait(PATIENCE)
        same = "the same rows" if own.output.read_bytes() == own.rows else "OTHER ROWS"
        faults = own.faults()
    print(
        f"{kind.__name__}: {ended} after {began - started:.1f} s; went on after {seconds:.1f} s, finished after "
        f"{finished:.1f} s, exit {code}, {same}, to repair: {faults or 0}",
        flush=True,
    )
    return seconds, finished


@contextmanager
def by_command(own: Try) -> Iterator[None]:
    process = own.start()
    yield
    assert process.wait(PATIENCE) == 0, "the same command does not end well"


@contextmanager
def command(own: Try, draw: random.Random) -> Iterator:
    process = own.start()
    own.a_moment(draw)
    os.killpg(process.pid, signal.SIGKILL)
    yield f"exit {process.wait(PATIENCE)}", by_command


@contextmanager
def clock_set_back(own: Try, draw: random.Random) -> Iterator:
    with command(own, draw) as (ended, ask):
        with closing(sqlite3.connect(own.home / "capbias.sqlite", timeout=60)) as db, db:
            times = ("created", "started", "finished", "heartbeat")
            db.execute("UPDATE runs SET " + ", ".join(f"{name} = {name} + {A_DAY}" for name in times))
        yield ended, ask


@contextmanager
def worker(own: Try, draw: random.Random) -> Iterator:
    process = own.start()
    own.a_moment(draw)
    for child in psutil.Process(process.pid).children(recursive=True):
        if "capbias_core.worker" in child.cmdline():
            child.kill()
    yield f"exit {process.wait(PATIENCE)}", by_command


@contextmanager
def full_disk(own: Try, draw: random.Random) -> Iterator:
    with small_disk(own.folder / "disk", megabytes=8) as disk:
        own.home = disk.folder / "home"
        process = own.start()
        own.a_moment(draw)
        disk.fill()
        ended = process.wait(PATIENCE)
        disk.free()
        yield f"exit {ended}", by_command


def by_server(running) -> Callable:
    """Kill the server. running: a browser, to ask it for runs."""

    @contextmanager
    def asked(own: Try) -> Iterator:
        with server(own.home) as (address, process):
            page = running.new_page()
            open_page(page, f"{address}/Scores?collection=mine&seeds={SEEDS}&references=none")
            page.get_by_role("button", name="Run", exact=True).click()
            yield process
            page.close()

    @contextmanager
    def again(own: Try) -> Iterator[None]:
        with asked(own):
            yield
            end = time.monotonic() + PATIENCE
            while any(run.status != "finished" for run in Workspace(own.home).runs()):
                assert time.monotonic() < end, "the server does not go on"
                time.sleep(0.1)

    @contextmanager
    def killed_server(own: Try, draw: random.Random) -> Iterator:
        own.keep()
        with asked(own) as process:
            own.a_moment(draw)
            os.killpg(process.pid, signal.SIGKILL)
            ended = process.wait(PATIENCE)
        yield f"exit {ended}", again

    return killed_server


if __name__ == "__main__":
    main()
