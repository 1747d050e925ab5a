"""Files of strangers are read in a process of its own, with limits, so that none of them takes a server down.

Only so many are read at a time; the next ones wait, and are refused if none of those ends.

A helper starts with the first reading and ends with the server. It has imported what readers need, and forks a child
for each reading: that takes milliseconds, a new interpreter seconds.
"""

from __future__ import annotations

import math
import os
import pickle
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import ParamSpec, TypeVar

from capbias_core.errors import CapbiasError

GIGABYTES, SECONDS, AT_ONCE = "CAPBIAS_READ_MEMORY", "CAPBIAS_READ_SECONDS", "CAPBIAS_READ_AT_ONCE"
USUAL = {GIGABYTES: 2.0, SECONDS: 60.0, AT_ONCE: 4.0}
LATER = 10  # seconds after which a child that does not end in time is given up

Given = ParamSpec("Given")
Found = TypeVar("Found")


def within_limits(name: str, read: Callable[Given, Found], *given: Given.args, **more: Given.kwargs) -> Found:
    """What `read` gives, from a child with limits. name: of the file, for errors. read: a function of a module.

    Raises what `read` raises, and CapbiasError where the child takes more than CAPBIAS_READ_MEMORY (GB) or
    CAPBIAS_READ_SECONDS, or dies; and where as long as that CAPBIAS_READ_AT_ONCE other files were being read.
    """
    gigabytes, seconds = _limit(GIGABYTES), _limit(SECONDS)
    with _PLACES.one(name, _limit(AT_ONCE), seconds), _HELPER.child() as child:
        child.settimeout(seconds + LATER)
        try:
            with child.makefile("rwb") as stream:
                pickle.dump((gigabytes, seconds, read, given, more), stream)
                stream.flush()
                fine, found = pickle.load(stream)
        except (EOFError, pickle.UnpicklingError, OSError):
            raise CapbiasError(
                f"Reading {name} took more than {gigabytes:g} GB or {seconds:g} s, or was ended.",
                f"Use a smaller file, or raise {GIGABYTES} or {SECONDS} where the dashboard is started.",
            ) from None
    if fine:
        return found
    raise found


def all_taken() -> bool:
    """Whether as many files are being read as may be, so that the next one waits."""
    return _PLACES.taken >= _limit(AT_ONCE)


def make_ready() -> None:
    """Start the helper, so that the first reading need not wait for it. Returns at once."""
    _HELPER.child().close()


def _limit(name: str) -> float:
    text = os.environ.get(name) or str(USUAL[name])
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise CapbiasError(
            f"{name} must be a number above 0, not {text!r}.", "Correct it where the dashboard is started."
        )
    return number


class _Places:
    """How many files this server reads at the moment."""

    def __init__(self) -> None:
        self.taken = 0
        self.changed = threading.Condition()

    @contextmanager
    def one(self, name: str, most: float, seconds: float) -> Iterator[None]:
        """A place for a file, when one is free. Raises CapbiasError where none is for so many seconds."""
        with self.changed:
            if not self.changed.wait_for(lambda: self.taken < most, seconds):
                raise CapbiasError(
                    f"{name} was not read, since {most:g} other files were being read for {seconds:g} s.",
                    f"Try again in a minute, or raise {AT_ONCE} where the dashboard is started.",
                )
            self.taken += 1
        try:
            yield
        finally:
            with self.changed:
                self.taken -= 1
                self.changed.notify()


_PLACES = _Places()


class _Helper:
    """The process that forks children, and the socket through which it is handed their ends of a connection."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process: subprocess.Popen | None = None
        self.control: socket.socket | None = None

    def child(self) -> socket.socket:
        """A connection to a new child."""
        near, far = socket.socketpair()
        with self.lock, far:
            try:
                self._hand(far)
            except OSError:  # it is not there yet, or was ended
                self._start()
                self._hand(far)
        return near

    def _hand(self, far: socket.socket) -> None:
        if self.control is None:
            raise BrokenPipeError
        socket.send_fds(self.control, [b"."], [far.fileno()])

    def _start(self) -> None:
        if self.control:
            self.control.close()
        self.control, other = socket.socketpair()
        with other:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "capbias_core.workspace.limited"],
                stdin=other.fileno(),
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )


_HELPER = _Helper()


def _serve() -> None:
    """The helper: a child for each connection, until the server's end of the socket is closed."""
    import pyarrow.parquet  # noqa: F401

    import capbias_core.workspace.offers  # noqa: F401  # here, so that no child needs to

    with suppress(ImportError):
        import PIL.Image  # noqa: F401

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # that is for the server, whose end is this process's
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for children
    with socket.socket(fileno=sys.stdin.fileno()) as control:
        while True:
            said, places, _, _ = socket.recv_fds(control, 1, 1)
            if not said:
                return
            if os.fork() == 0:
                try:
                    control.close()
                    _answer(socket.socket(fileno=places[0]))
                finally:
                    os._exit(0)
            os.close(places[0])


def _answer(connection: socket.socket) -> None:
    """The child: (whether it went well, what was found or raised); nothing where memory or time do not do."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with connection, connection.makefile("rwb") as stream:
        try:
            gigabytes, seconds, read, given, more = pickle.load(stream)
            _limit_this_process(gigabytes, seconds)
            answer = True, read(*given, **more)
        except MemoryError:
            return
        except Exception as error:
            answer = False, error
        pickle.dump(answer, stream, pickle.HIGHEST_PROTOCOL)


def _limit_this_process(gigabytes: float, seconds: float) -> None:
    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_CPU: math.ceil(seconds), resource.RLIMIT_DATA: gigabytes * 1e9}
    for what, most in limits.items():
        resource.setrlimit(what, (int(most), int(most)))
    signal.setitimer(signal.ITIMER_REAL, seconds)  # its signal ends the process, whatever it does


if __name__ == "__main__":
    _serve()
