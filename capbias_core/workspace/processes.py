"""The name of this process, and whether the process of a name lives. It reads no clock."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

PROC = Path("/proc")


def this_process() -> str:
    """A unique name of this process: host, boot, pid namespace, pid, start. '' outside Linux."""
    return _named(os.getpid())


@cache
def _named(pid: int) -> str:
    here, start = _here(), _start(pid)
    return f"{here} {pid} {start}" if here and start else ""


def lives(process: str) -> bool | None:
    """Whether the process of this name lives; None if that cannot be seen: on another host, in another container, or if
    the system hides it."""
    here = _here()
    if not process or not here:
        return None
    host, boot, space, pid, start = process.split()
    own_host, own_boot, own_space = here.split()
    if host == own_host and boot != own_boot:
        return False  # this machine was restarted since
    if (host, space) != (own_host, own_space):
        return None
    now = _start(int(pid))
    if not now:
        try:
            os.kill(int(pid), 0)
        except PermissionError:  # a process of another account, which /proc may hide
            return None
        except OSError:
            pass
    return now == start


@cache
def _here() -> str:
    """Host, boot and pid namespace; two containers on one machine have different namespaces."""
    try:
        machine = Path("/etc/machine-id").read_text().strip()
    except OSError:
        machine = ""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        space = (PROC / "self/ns/pid").stat().st_ino
    except OSError:
        return ""
    # Machines that were copied share their id, so the name of the host is part of it.
    return f"{machine}:{platform.node()} {boot} {space}"


def _start(pid: int) -> str:
    """When a living process started, in ticks since the machine did; '' if it ended."""
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except OSError:
        return ""
    # The name of the program, in brackets, may hold anything. Behind it: state, and as the 20th field the start.
    state, *fields = text.rpartition(")")[2].split()
    return "" if state in "ZX" else fields[18]
