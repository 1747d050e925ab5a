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
from collections.abc import Callable, Iterable, Iterator
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
PLAIN = {bool, int, float, str, type(None)}
LENGTH = struct.Struct(">Q")

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
_limited = False  # whether this process is a child with limits


def within_limits(name: str, read: Callable[Given, Answer], *given: Given.args, **more: Given.kwargs) -> Answer:
    """What `read` returns, from a child process with limits. name: of the file, for errors.

    read: a function of a module. It may return plain values, lists, tuples, dicts, sets, paths, bytes, arrays, frames,
    and dataclasses of capbias with these. Raises CapbiasError if `read` raises anything, if the child takes more than
    CAPBIAS_READ_MEMORY (GB) or CAPBIAS_READ_SECONDS, and if CAPBIAS_READ_AT_ONCE other files are read that long. A
    child that calls this reads by itself.
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


# the message of a child: lengths, a tree of values in JSON, and the bytes that it refers to by number


def _message(fine: bool, answer: object) -> list[bytes]:
    blobs: list[bytes] = []
    tree = _encode(answer, blobs)
    head = json.dumps({"fine": fine, "answer": tree, "sizes": [len(blob) for blob in blobs]}).encode()
    return [LENGTH.pack(len(head)), head, *blobs]


def _receive(stream: io.BufferedIOBase, most: float) -> tuple[bool, Any]:
    """The message of a child. Raises EOFError if it ends early, and ValueError for anything but `_message`."""

    def exactly(size: int) -> bytes:
        nonlocal most
        if not 0 <= size <= most:
            raise ValueError(f"{size} bytes")
        most -= size
        data = stream.read(size)
        if len(data) < size:
            raise EOFError
        return data

    head = json.loads(exactly(*LENGTH.unpack(exactly(LENGTH.size))))
    return bool(head["fine"]), _decode(head["answer"], [exactly(size) for size in head["sizes"]])


def _encode(value: Any, blobs: list[bytes]) -> Any:
    """A value as JSON: plain values and lists as they are, any other as an object with its type as the key."""

    def each(values: Iterable) -> list:
        return [_encode(item, blobs) for item in values]

    def blob(data: bytes) -> int:
        blobs.append(data)
        return len(blobs) - 1

    match value:
        case None | bool() | int() | float() | str():
            return value
        case list() if {*map(type, value)} <= PLAIN:  # millions of numbers are not looked at one by one
            return value
        case np.generic():
            return value.item()
        case list():
            return each(value)
        case tuple():
            return {"tuple": each(value)}
        case set() | frozenset():
            return {type(value).__name__: each(value)}
        case dict():
            return {"dict": [each(pair) for pair in value.items()]}
        case Path():
            return {"path": str(value)}
        case CapbiasError():
            return {"error": [value.message, value.hint, *value.arguments]}
        case bytes():
            return {"bytes": blob(value)}
        case np.ndarray() if value.dtype.kind in "biuf":
            return {"array": [value.dtype.str, list(value.shape), blob(value.tobytes())]}
        case pd.DataFrame() | pd.Series():
            name = "frame" if isinstance(value, pd.DataFrame) else "series"
            table = pa.Table.from_pandas(value if name == "frame" else pd.DataFrame({"values": value}))
            with pa.BufferOutputStream() as sink:
                with pa.ipc.new_stream(sink, table.schema) as writer:
                    writer.write_table(table)
                return {name: blob(sink.getvalue().to_pybytes())}
    if is_dataclass(value) and not isinstance(value, type):
        fields = {key: _encode(vars(value)[key], blobs) for key in _names(type(value)) if key in vars(value)}
        return {"object": [f"{type(value).__module__}:{type(value).__qualname__}", fields]}
    raise TypeError(f"{type(value).__name__} cannot be answered")


def _decode(tree: Any, blobs: list[bytes]) -> Any:
    """The value of `_encode`. Whatever a child writes, the result has one of these types."""

    def each(items: list) -> list:
        return [_decode(item, blobs) for item in items]

    match tree:
        case list():
            return tree if {*map(type, tree)} <= PLAIN else each(tree)
        case {"tuple": items}:
            return tuple(each(items))
        case {"set": items}:
            return set(each(items))
        case {"frozenset": items}:
            return frozenset(each(items))
        case {"dict": items}:
            return dict(map(each, items))
        case {"path": text}:
            return Path(text)
        case {"error": list(parts)}:
            return CapbiasError(*map(str, parts))
        case {"bytes": number}:
            return blobs[number]
        case {"array": [kind, shape, number]} if (dtype := np.dtype(kind)).kind in "biuf":
            return np.frombuffer(blobs[number], dtype).reshape(shape).copy()
        case {"frame": number} | {"series": number}:
            table = pa.ipc.open_stream(blobs[number]).read_all()
            table.validate(full=True)
            frame = table.to_pandas(split_blocks=True)
            return frame if "frame" in tree else frame["values"].rename(None)
        case {"object": [name, fields]}:
            kind = _dataclass(name)
            value = object.__new__(kind)  # no code of the class runs
            for key in _names(kind) & fields.keys():
                object.__setattr__(value, key, _decode(fields[key], blobs))
            return value
        case dict():
            raise ValueError(f"the type {list(tree)[:1]!r}")
    return tree


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
