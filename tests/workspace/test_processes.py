"""Which process lives, told by the system and not by a clock."""

import os
import subprocess
import sys

from capbias_core.workspace import catalogue
from capbias_core.workspace.catalogue import lives, this_process
from tests.orphans import ELSEWHERE, ended

SAY = "from capbias_core.workspace.catalogue import this_process; print(this_process(), flush=True); input()"


def test_this_process_lives_and_one_with_its_pid_before_it_does_not():
    assert lives(this_process()) is True and lives(ended()) is False


def test_a_process_is_dead_as_soon_as_it_is_killed():
    """Also while its parent has not asked for its end, and the system still knows its pid."""
    child = subprocess.Popen([sys.executable, "-c", SAY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    name = child.stdout.readline().strip()
    assert name.split()[3] == str(child.pid) and lives(name) is True
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert lives(name) is False
    child.communicate()
    assert lives(name) is False


def test_of_what_cannot_be_seen_from_here_nothing_is_said():
    host, _, space, pid, start = this_process().split()
    assert lives("") is None and lives(ELSEWHERE) is None
    assert lives(f"{host} {'0' * 36} {space} {pid} {start}") is False, "before this machine was started anew"
    assert lives(this_process().replace(f" {space} ", " 1 ")) is None, "in another container"


def test_a_process_that_the_system_hides_is_not_called_dead(tmp_path, monkeypatch):
    """As where /proc is mounted with hidepid: other accounts' processes are not in it, and may not be signalled."""

    def refused(*_):
        raise PermissionError

    name = this_process()
    monkeypatch.setattr(catalogue, "PROC", tmp_path)
    assert lives(name) is False
    monkeypatch.setattr(os, "kill", refused)
    assert lives(name) is None
