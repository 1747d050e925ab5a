"""Files of strangers are read in a child process with limits on memory and time, only so many at once.

A helper process starts with the first file and ends with this process. It has imported what readers need and forks a
child for each file, which takes milliseconds. The child answers in JSON and Arrow, from which only values are made: no
code of a child's choice runs in this process.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

from capbias_core.errors import CapbiasError
from capbias_core.processes import current_folder, python

GIGABYTES, SECONDS, AT_ONCE = "CAPBIAS_READ_MEMORY", "CAPBIAS_READ_SECONDS", "CAPBIAS_READ_AT_ONCE"
DEFAULTS = {GIGABYTES: 2.0, SECONDS: 60.0, AT_ONCE: 4.0}
# One thread; and pyarrow's allocator would reserve 1 GiB at once, which counts as taken.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MIMALLOC_ARENA_EAGER_COMMIT": "0"}
MOST = 1_000_000  # GB, seconds or files
GRACE = 10  # seconds after which a child that does not end in time is given up
TYPE = "\0type"  # the key in an object of JSON that stands for a value of another type
LENGTH = struct.Struct(">Q")

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
_limited = False  # whether this process is a child with limits


def within_limits(name: str, read: Callable[Given, Answer], *given: Given.args, **more: Given.kwargs) -> Answer:
    """What `read` returns, from a child process with limits. name: of the file, for errors.

    read: a function of a module. It may return plain values, lists, dicts by text, paths, bytes, arrays, frames, and
    dataclasses of capbias with these. Tuples come back as lists, and lists in dataclasses as tuples. Raises
    CapbiasError if `read` raises anything, if the child takes more than CAPBIAS_READ_MEMORY (GB) or
    CAPBIAS_READ_SECONDS, and if CAPBIAS_READ_AT_ONCE other files are read that long. A child that calls this reads by
    itself.
    """
    return _within(_limit(SECONDS), f"Use a smaller file, or raise {SECONDS}.", name, partial(read, *given, **more))


def within_seconds(seconds: float, name: str, work: Callable[Given, Answer], *given: Given.args, **more: Given.kwargs):
    """What `work` returns, as `within_limits` but for its time. name: of the work, as the subject of a sentence."""
    return _within(seconds, "Try a simpler one.", name, partial(work, *given, **more))


def _within(seconds: float, hint: str, name: str, work: Callable[[], Answer]) -> Answer:
    if _limited:
        return work()
    gigabytes = _limit(GIGABYTES)
    task = pickle.dumps((gigabytes, seconds, current_folder(), work))
    with _slot(name, _limit(AT_ONCE), seconds), _HELPER.child() as child:
        began = time.monotonic()
        child.settimeout(seconds + GRACE)
        try:
            with child.makefile("rwb") as stream:
                stream.write(task)
                stream.flush()
                fine, answer = _receive(stream, gigabytes * 1e9)
        except (EOFError, OSError):
            if time.monotonic() - began >= seconds:
                raise CapbiasError(f"{name} takes longer than {seconds:g} seconds.", hint) from None
            if _HELPER.did_not_start():
                raise CapbiasError(
                    f"{name} was not read, because the process that reads files did not start.",
                    "Its error is printed above. Check the installation of capbias.",
                ) from None
            hint = f"Use a smaller file, or raise {GIGABYTES} ({gigabytes:g} GB)."
            raise CapbiasError(f"{name} ended the process that read it.", hint) from None
        except Exception as error:  # a child that was taken over may write anything
            raise CapbiasError(f"{name} has an unusable result ({type(error).__name__}).") from None
    if fine:
        return answer
    if answer is None:
        raise CapbiasError(
            f"{name} takes more than {gigabytes:g} GB of memory.", f"Use a smaller file, or raise {GIGABYTES} (GB)."
        )
    if isinstance(answer, str):
        raise CapbiasError(f"{name} cannot be read ({answer}).", "The file may be damaged, or in no supported format.")
    raise answer


def make_ready() -> None:
    """Start the helper before the first file. Returns at once."""
    _HELPER.child().close()


def _limit(name: str) -> float:
    text = os.environ.get(name) or str(DEFAULTS[name])
    with suppress(ValueError):
        if 0 < float(text) <= MOST:
            return float(text)
    raise CapbiasError(f"{name} is {text}, which is not a number above 0 and at most {MOST:,}.")


_active = 0  # files that this process reads now
_active_changed = threading.Condition()


def all_taken() -> bool:
    """Whether the next file must wait, since CAPBIAS_READ_AT_ONCE files are being read."""
    return _active >= _limit(AT_ONCE)


@contextmanager
def _slot(name: str, most: float, seconds: float) -> Iterator[None]:
    """Counts a file that is read, once fewer than `most` are. Raises CapbiasError if that takes too many seconds."""
    global _active
    with _active_changed:
        if not _active_changed.wait_for(lambda: _active < most, seconds):
            raise CapbiasError(
                f"{name} was not read, because {most:g} other files were being read for {seconds:g} seconds.",
                f"Try again in a minute, or raise {AT_ONCE}.",
            )
        _active += 1
    try:
        yield
    finally:
        with _active_changed:
            _active -= 1
            _active_changed.notify()


class _Helper:
    """The process that forks children, and the socket that sends it their ends of a connection."""

    lock = threading.Lock()
    process: subprocess.Popen | None = None
    control: socket.socket | None = None

    def child(self) -> socket.socket:
        """A connection to a new child."""
        near, far = socket.socketpair()
        with self.lock, far:
            try:
                if self.control is None:
                    raise BrokenPipeError
                socket.send_fds(self.control, [b"."], [far.fileno()])
            except OSError:  # the helper was not started, or has ended
                if self.control:
                    self.control.close()
                self.control, other = socket.socketpair()
                command, environment = python("-m", "capbias_core.workspace.limited", **ENVIRONMENT)
                with other:  # a new interpreter: a fork of this process would share the locks of its threads
                    self.process = subprocess.Popen(command, stdin=other.fileno(), env=environment)
                socket.send_fds(self.control, [b"."], [far.fileno()])
        return near

    def did_not_start(self) -> bool:
        """Whether the helper ended by itself, which it never does once it runs."""
        with suppress(subprocess.TimeoutExpired):
            return self.process is not None and self.process.wait(1) > 0
        return False


_HELPER = _Helper()


# the helper and its children


def _serve(control: socket.socket) -> None:
    """The helper: a child for each connection. It ends with all of them when the other end of the socket is closed."""
    os.setpgrp()  # Ctrl-C is for the process whose helper this is
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for children
    while True:
        message, files, _, _ = socket.recv_fds(control, 1, 1)
        if not message:
            os.killpg(0, signal.SIGKILL)
        if os.fork() == 0:
            try:
                control.close()
                _answer(socket.socket(fileno=files[0]))
            finally:
                os._exit(0)
        os.close(files[0])


def _answer(connection: socket.socket) -> None:
    """The child: whether the work succeeded, and its result or error; None for too little memory."""
    global _limited
    _limited = True
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with connection, connection.makefile("rwb") as stream:
        try:
            gigabytes, seconds, folder, work = pickle.load(stream)
            os.chdir(folder)  # the helper may have started in another
            for what, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_DATA, int(gigabytes * 1e9))):
                resource.setrlimit(what, (most, most))
            signal.setitimer(signal.ITIMER_REAL, seconds)  # its signal ends the process
            message = _message(True, work())
        except MemoryError:
            message = _message(False, None)
        except CapbiasError as error:
            message = _message(False, error)
        except Exception as error:
            message = _message(False, f"{type(error).__name__}: {str(error).split(chr(10))[0][:200]}".strip(": ."))
        for part in message:
            stream.write(part)


# the message of a child: JSON, then in Arrow's format what JSON lacks, each with its length before it


def _message(fine: bool, answer: object) -> list[bytes]:
    parts = [b""]

    def beside_json(kind: str, table: pa.Table, value: object = None) -> dict:
        with pa.BufferOutputStream() as sink:
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            parts.append(sink.getvalue().to_pybytes())
        return {TYPE: kind, "value": value}

    def tagged(value: Any) -> Any:
        """A value that JSON lacks as an object with its type."""
        match value:
            case np.generic():
                return value.item()
            case Path():
                return {TYPE: "path", "value": str(value)}
            case CapbiasError():
                return {TYPE: "error", "value": [value.message, value.hint, *value.arguments]}
            case bytes():
                return beside_json("bytes", pa.table({"values": [value]}))
            case np.ndarray():
                return beside_json("array", pa.table({"values": value.ravel()}), value.shape)
            case pd.Series():
                return beside_json("series", pa.Table.from_pandas(pd.DataFrame({"values": value})))
            case pd.DataFrame():
                return beside_json("frame", pa.Table.from_pandas(value))
        if is_dataclass(value) and not isinstance(value, type):
            fields = {name: vars(value)[name] for name in _names(type(value)) if name in vars(value)}
            return {TYPE: f"{type(value).__module__}:{type(value).__qualname__}", "value": fields}
        raise TypeError(f"{type(value).__name__} cannot be answered")

    parts[0] = json.dumps({"fine": fine, "answer": answer}, default=tagged).encode()
    return [piece for part in parts for piece in (LENGTH.pack(len(part)), part)]


def _receive(stream: io.BufferedIOBase, most: float) -> tuple[bool, Any]:
    """The message of a child. Raises EOFError if it ends early, and any other error for anything but `_message`.
    Whatever a child writes, only values of these types are made."""

    def read(size: int) -> bytes:
        nonlocal most
        if size > most:
            raise ValueError(f"{size} bytes")
        most -= size
        data = stream.read(size)
        if len(data) < size:
            raise EOFError
        return data

    def next_part() -> bytes:
        return read(*LENGTH.unpack(read(LENGTH.size)))

    def untagged(tree: dict) -> Any:
        if TYPE not in tree:
            return tree
        kind, value = tree[TYPE], tree["value"]
        if kind == "path":
            return Path(value)
        if kind == "error":
            return CapbiasError(*map(str, value))
        if kind in ("bytes", "array", "series", "frame"):  # in the order in which they were written
            table = pa.ipc.open_stream(next_part()).read_all()
            table.validate(full=True)
            if kind == "bytes":
                return table["values"][0].as_py()
            if kind == "array":
                return np.array(table["values"].to_numpy()).reshape(value)
            frame = table.to_pandas(split_blocks=True)
            return frame if kind == "frame" else frame["values"].rename(None)
        made = object.__new__(cls := _dataclass(kind))  # no code of the class runs
        for name in _names(cls) & value.keys():
            object.__setattr__(made, name, _as_tuples(value[name]))
        return made

    head = json.loads(next_part(), object_hook=untagged)
    return bool(head["fine"]), head["answer"]


def _as_tuples(value: Any) -> Any:
    """Lists as the tuples that fields of dataclasses have; JSON has only lists."""
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def _names(kind: type) -> set[str]:
    """The fields of a dataclass, also those that only `__init__` gets."""
    return {name for base in kind.__mro__ for name in base.__dict__.get("__annotations__", ())}


def _dataclass(name: str) -> type:
    """A dataclass of capbias that is imported already. Raises ValueError for any other."""
    module, _, qualname = name.partition(":")
    kind = getattr(sys.modules.get(module), qualname, None) if module.startswith("capbias_core.") else None
    if not (isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module):
        raise ValueError(f"the class {name!r}")
    return kind


if __name__ == "__main__":
    import pyarrow.parquet  # noqa: F401

    # here, so that no child needs to import them
    from capbias_core.load import read, report  # noqa: F401

    with suppress(ImportError):
        import PIL.Image  # noqa: F401
    # Children answer by the module that readers import, not by __main__.
    from capbias_core.workspace import limited

    with socket.socket(fileno=sys.stdin.fileno()) as control:
        limited._serve(control)
