"""Files of strangers are read in a process of its own, with limits of memory and time.

Only so many are read at a time; the next ones wait, and are refused if none of those ends.

A helper starts with the first reading and ends with this process. It has imported what readers need, and forks a child
for each reading: that takes milliseconds, a new interpreter seconds. The child answers in JSON and Arrow, of which only
values are made here: no code of a child's choice runs in this process.
"""

from __future__ import annotations

import io
import json
import math
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

GIGABYTES, SECONDS, AT_ONCE = "CAPBIAS_READ_MEMORY", "CAPBIAS_READ_SECONDS", "CAPBIAS_READ_AT_ONCE"
USUAL = {GIGABYTES: 2.0, SECONDS: 60.0, AT_ONCE: 4.0}
LATER = 10  # seconds after which a child that does not end in time is given up
LENGTH = struct.Struct(">Q")

Given = ParamSpec("Given")
Found = TypeVar("Found")
_limited = False  # whether this process is a child with limits


def within_limits(name: str, read: Callable[Given, Found], *given: Given.args, **more: Given.kwargs) -> Found:
    """What `read` returns, from a child process with limits. name: of the file, for errors.

    read: a function of a module. It may return plain values, lists, tuples, dicts, sets, paths, bytes, arrays, frames,
    and dataclasses of capbias with these. Raises CapbiasError if `read` raises anything, if the child takes more than
    CAPBIAS_READ_MEMORY (GB) or CAPBIAS_READ_SECONDS, and if CAPBIAS_READ_AT_ONCE other files are read that long. A
    child that calls this reads by itself.
    """
    return _within(_limit(SECONDS), f"Use a smaller file, or raise {SECONDS}.", name, partial(read, *given, **more))


def within_seconds(seconds: float, name: str, work: Callable[Given, Found], *given: Given.args, **more: Given.kwargs):
    """What `work` returns, as `within_limits` but for its time. name: of the work, as the subject of a sentence."""
    return _within(seconds, "Try a simpler one.", name, partial(work, *given, **more))


def _within(seconds: float, hint: str, name: str, work: Callable[[], Found]) -> Found:
    if _limited:
        return work()
    gigabytes = _limit(GIGABYTES)
    task = pickle.dumps((gigabytes, seconds, os.getcwd(), work))
    with _PLACES.one(name, _limit(AT_ONCE), seconds), _HELPER.child() as child:
        began = time.monotonic()
        child.settimeout(seconds + LATER)
        try:
            with child.makefile("rwb") as stream:
                stream.write(task)
                stream.flush()
                fine, found = _receive(stream, gigabytes * 1e9)
        except (EOFError, OSError):
            if time.monotonic() - began >= seconds:
                raise CapbiasError(f"{name} takes longer than {seconds:g} seconds.", hint) from None
            hint = f"Use a smaller file, or raise {GIGABYTES} ({gigabytes:g} GB)."
            raise CapbiasError(f"{name} ended the process that read it.", hint) from None
        except Exception as error:  # whatever a child writes that was taken over
            raise CapbiasError(f"{name} has an unusable result ({type(error).__name__}).") from None
    if fine:
        return found
    if found is None:
        raise CapbiasError(
            f"{name} takes more than {gigabytes:g} GB of memory.", f"Use a smaller file, or raise {GIGABYTES} (GB)."
        )
    if isinstance(found, str):
        raise CapbiasError(f"{name} cannot be read ({found}).", "The file may be damaged, or in no supported format.")
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
        raise CapbiasError(f"{name} is {text}, which is not a number above 0.")
    return number


class _Places:
    """How many files this process reads at the moment."""

    def __init__(self) -> None:
        self.taken = 0
        self.changed = threading.Condition()

    @contextmanager
    def one(self, name: str, most: float, seconds: float) -> Iterator[None]:
        """A place for a file, when one is free. Raises CapbiasError where none is for so many seconds."""
        with self.changed:
            if not self.changed.wait_for(lambda: self.taken < most, seconds):
                raise CapbiasError(
                    f"{name} was not read, because {most:g} other files were being read for {seconds:g} seconds.",
                    f"Try again in a minute, or raise {AT_ONCE}.",
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
    """The process that forks children, and the socket through which it gets their ends of a connection."""

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
        """A new interpreter: a fork of this process would share the locks of threads that libraries started."""
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
    """The child: whether it went well, and what was found or raised, None for too little memory."""
    global _limited
    _limited = True
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with connection, connection.makefile("rwb") as stream:
        try:
            gigabytes, seconds, folder, work = pickle.load(stream)
            os.chdir(folder)  # the helper may have started in another
            _limit_this_process(gigabytes, seconds)
            parts = _parts(True, work())
        except MemoryError:
            parts = _parts(False, None)
        except CapbiasError as error:
            parts = _parts(False, error)
        except Exception as error:
            parts = _parts(False, f"{type(error).__name__}: {str(error).split(chr(10))[0][:200]}".strip(": ."))
        for part in parts:
            stream.write(part)


def _limit_this_process(gigabytes: float, seconds: float) -> None:
    for what, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_DATA, int(gigabytes * 1e9))):
        resource.setrlimit(what, (most, most))
    signal.setitimer(signal.ITIMER_REAL, seconds)  # its signal ends the process, whatever it does


# what a child answers: lengths, a tree of values in JSON, and the bytes that it names by number


def _parts(fine: bool, found: object) -> list[bytes]:
    blobs: list[bytes] = []
    tree = _tree(found, blobs)
    head = json.dumps({"fine": fine, "found": tree, "sizes": [len(blob) for blob in blobs]}).encode()
    return [LENGTH.pack(len(head)), head, *blobs]


def _receive(stream: io.BufferedIOBase, most: float) -> tuple[bool, Any]:
    """The answer of a child. Raises EOFError if it ends early, and ValueError for what no child of ours sends."""
    (length,) = LENGTH.unpack(_exactly(stream, LENGTH.size, LENGTH.size))
    head = json.loads(_exactly(stream, length, most))
    blobs = []
    for size in head["sizes"]:
        blobs.append(_exactly(stream, size, most))
        most -= size
    return bool(head["fine"]), _value(head["found"], blobs)


def _exactly(stream: io.BufferedIOBase, size: int, most: float) -> bytes:
    if not 0 <= size <= most:
        raise ValueError(f"{size} bytes")
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _tree(value: Any, blobs: list[bytes]) -> Any:
    """A value as JSON: plain ones and lists as they are, any other as an object with its type and content."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if type(value) is list:
        return [_tree(item, blobs) for item in value]
    if isinstance(value, tuple | set | frozenset):
        name = "tuple" if isinstance(value, tuple) else type(value).__name__
        return {"type": name, "items": [_tree(item, blobs) for item in value]}
    if isinstance(value, dict):
        return {"type": "dict", "items": [[_tree(key, blobs), _tree(item, blobs)] for key, item in value.items()]}
    if isinstance(value, Path):
        return {"type": "path", "text": str(value)}
    if isinstance(value, CapbiasError):
        return {"type": "error", "message": value.message, "hint": value.hint}
    if isinstance(value, np.generic):
        return value.item()
    if is_dataclass(value) and not isinstance(value, type):
        kept = vars(value)
        items = {key: _tree(kept[key], blobs) for key in _names(type(value)) if key in kept}
        return {"type": "object", "class": f"{type(value).__module__}:{type(value).__qualname__}", "items": items}
    blobs.append(b"")
    entry, number = {"type": "", "blob": len(blobs) - 1}, len(blobs) - 1
    if isinstance(value, bytes):
        entry["type"], blobs[number] = "bytes", value
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        entry |= {"type": "array", "dtype": value.dtype.str, "shape": list(value.shape)}
        blobs[number] = value.tobytes()
    elif isinstance(value, pd.DataFrame | pd.Series):
        entry["type"] = "frame" if isinstance(value, pd.DataFrame) else "series"
        table = pa.Table.from_pandas(pd.DataFrame({"values": value}) if isinstance(value, pd.Series) else value)
        with pa.BufferOutputStream() as sink:
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            blobs[number] = sink.getvalue().to_pybytes()
    else:
        raise TypeError(f"{type(value).__name__} cannot be answered")
    return entry


def _value(tree: Any, blobs: list[bytes]) -> Any:
    """The value of `_tree`; whatever a child writes there, it is a value of one of these types."""
    if isinstance(tree, list):
        return [_value(item, blobs) for item in tree]
    if not isinstance(tree, dict):
        return tree
    match tree["type"]:
        case "tuple" | "set" | "frozenset" as name:
            make = {"tuple": tuple, "set": set, "frozenset": frozenset}[name]
            return make(_value(item, blobs) for item in tree["items"])
        case "dict":
            return {_value(key, blobs): _value(item, blobs) for key, item in tree["items"]}
        case "path":
            return Path(tree["text"])
        case "error":
            return CapbiasError(str(tree["message"]), str(tree["hint"]))
        case "bytes":
            return blobs[tree["blob"]]
        case "array":
            dtype = np.dtype(tree["dtype"])
            if dtype.kind not in "biuf":
                raise ValueError(f"an array of {dtype}")
            return np.frombuffer(blobs[tree["blob"]], dtype).reshape(tree["shape"]).copy()
        case "frame" | "series" as name:
            table = pa.ipc.open_stream(blobs[tree["blob"]]).read_all()
            table.validate(full=True)
            frame = table.to_pandas(split_blocks=True)
            return frame if name == "frame" else frame["values"].rename(None)
        case "object":
            kind = _class(tree["class"])
            made = object.__new__(kind)  # no code of the class runs
            for key in _names(kind) & tree["items"].keys():
                object.__setattr__(made, key, _value(tree["items"][key], blobs))
            return made
    raise ValueError(f"the type {tree['type']!r}")


def _names(kind: type) -> set[str]:
    """The fields of a dataclass, those too that only its making gets."""
    return {name for base in kind.__mro__ for name in base.__dict__.get("__annotations__", ())}


def _class(name: str) -> type:
    """A dataclass of capbias that is imported already. Raises ValueError for any other."""
    module, _, qualname = name.partition(":")
    found = getattr(sys.modules.get(module), qualname, None) if module.startswith("capbias_core.") else None
    if not (isinstance(found, type) and is_dataclass(found) and found.__module__ == module):
        raise ValueError(f"the class {name!r}")
    return found


if __name__ == "__main__":
    import pyarrow.parquet  # noqa: F401

    import capbias_core.load  # noqa: F401  # here, so that no child needs to

    with suppress(ImportError):
        import PIL.Image  # noqa: F401
    # The module that children answer by is the one that readers import, not __main__.
    from capbias_core.workspace import limited

    with socket.socket(fileno=sys.stdin.fileno()) as found:
        limited._serve(found)
