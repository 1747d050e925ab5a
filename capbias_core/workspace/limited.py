"""The web server reads files of strangers, and every surface bundles, in a child process with limits of memory, time
and answer.

A child answers in JSON, from which only values are made: no code of a child's choice runs in this process. One child
waits in advance, since it takes a second to start. The library and the command line read other files in their own
process.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import is_dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

from capbias_core.errors import CapbiasError, short
from capbias_core.load.questions import Ask
from capbias_core.processes import current_folder, python

GIGABYTES, SECONDS, AT_ONCE, TYPE = "CAPBIAS_READ_MEMORY", "CAPBIAS_READ_SECONDS", "CAPBIAS_READ_AT_ONCE", "\0type"
DEFAULTS, MOST = {GIGABYTES: 2.0, SECONDS: 60.0, AT_ONCE: 4.0}, 1_000_000  # GB, seconds or files
_waiting: list[tuple[subprocess.Popen, Any]] = []


def within_limits(name: str, read: Any, *given: Any, seconds: float | None = None, **more: Any) -> Any:
    """What a function of a module returns, from a child with limits. name: of the file. Raises CapbiasError if it
    raises anything, takes more than CAPBIAS_READ_MEMORY (GB) or CAPBIAS_READ_SECONDS, or waits that long for a turn."""
    gigabytes, limit, child = _limit(GIGABYTES), seconds or _limit(SECONDS), None
    turns = _turns(int(_limit(AT_ONCE)))
    if not turns.acquire(timeout=limit):
        raise CapbiasError(
            f"{name} was not read, because other files were being read.", f"Try again, or raise {AT_ONCE}."
        )
    try:
        child, answer = _waiting.pop() if _waiting else _started()
        make_ready()
        child.communicate(pickle.dumps((gigabytes, limit, current_folder(), partial(read, *given, **more))), limit + 2)
        answer.seek(0)
        result = json.loads(answer.read(), object_hook=_value)
    except subprocess.TimeoutExpired:
        raise CapbiasError(
            f"{name} takes longer than {limit:g} seconds.", f"Use a smaller file, or raise {SECONDS}."
        ) from None
    except Exception:  # a child that ran out of memory or time, or was taken over, may write anything
        hint = f"Use a smaller file, or raise {GIGABYTES} ({gigabytes:g} GB) or {SECONDS} ({limit:g})."
        raise CapbiasError(f"{name} ended the process that read it.", hint) from None
    finally:
        turns.release()
        child.kill() if child else None
    if isinstance(result, CapbiasError):
        raise result
    return result


def make_ready() -> None:
    """Start a child before it is needed. Returns at once."""
    _waiting.append(_started()) if not _waiting else None


@cache
def _turns(most: int) -> threading.Semaphore:
    """For files that are read at once."""
    return threading.Semaphore(most)


def _limit(name: str) -> float:
    text = os.environ.get(name) or str(DEFAULTS[name])
    with suppress(ValueError):
        if 0 < float(text) <= MOST:
            return float(text)
    raise CapbiasError(f"{name} is {text}, which is not a number above 0 and at most {MOST:,}.")


def _started() -> tuple[subprocess.Popen, Any]:
    answer = tempfile.TemporaryFile()  # noqa: SIM115 (the caller closes it)
    command, environment = python(
        "-m", "capbias_core.workspace.limited", OMP_NUM_THREADS="1", MIMALLOC_ARENA_EAGER_COMMIT="0"
    )
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=answer, env=environment, process_group=0), answer


def _plain(value: Any) -> Any:
    """What JSON lacks, with its type."""
    match value:
        case np.generic():
            return value.item()
        case os.PathLike():
            return {TYPE: "path", "value": os.fspath(value)}
        case Ask():
            return {TYPE: "ask", "value": [value.questions, value.answer, value.effect]}
        case CapbiasError():
            return {TYPE: "error", "value": [value.message, value.hint, *value.arguments]}
        case bytes() | np.ndarray():
            array = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else value
            kind = "bytes" if isinstance(value, bytes) else "array"
            return {TYPE: kind, "value": [base64.b64encode(array.tobytes()).decode(), array.dtype.str, array.shape]}
        case pd.DataFrame():
            return {TYPE: "frame", "value": [[name, str(value[name].dtype), value[name].tolist()] for name in value]}
        case pd.Series():
            return {TYPE: "series", "value": [value.tolist(), value.index.tolist()]}
        case frozenset():
            return {TYPE: "set", "value": sorted(value)}
    if is_dataclass(value):
        return {TYPE: f"{type(value).__module__}:{type(value).__qualname__}", "value": vars(value)}
    raise TypeError(f"{type(value).__name__} cannot be answered")


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _value(tree: dict) -> Any:
    if TYPE not in tree:
        return tree
    from pathlib import Path

    kind, value = tree[TYPE], tree["value"]
    if kind == "ask":
        ask = Ask("")
        ask.questions, ask.answer, ask.effect = (
            _tuples(value[0]),
            {name: _tuples(each) for name, each in value[1].items()},
            str(value[2]),
        )
        return ask
    if kind in ("bytes", "array"):
        data = base64.b64decode(value[0])
        return data if kind == "bytes" else np.frombuffer(data, np.dtype(value[1])).reshape(value[2])
    made = {
        "path": lambda: Path(value),
        "error": lambda: CapbiasError(*map(str, value)),
        "frame": lambda: pd.DataFrame({name: pd.Series(cells, dtype=dtype) for name, dtype, cells in value}),
        "series": lambda: pd.Series(value[0], index=value[1]),
        "set": lambda: frozenset(value),
    }
    if kind in made:
        return made[kind]()
    module, _, name = kind.partition(":")
    cls = getattr(sys.modules.get(module), name, None) if module.startswith("capbias_core.") else None
    if not (isinstance(cls, type) and is_dataclass(cls)):
        raise ValueError(f"the class {kind!r}")
    made_object = object.__new__(cls)  # no code of the class runs
    for key in {key for base in cls.__mro__ for key in base.__dict__.get("__annotations__", ())} & value.keys():
        object.__setattr__(made_object, key, _tuples(value[key]))
    return made_object


def _answered(work: Callable[[], Any]) -> bytes:
    """What a child answers."""
    try:
        answer = work()
    except CapbiasError as error:
        answer = error
    except Exception as error:
        answer = CapbiasError(
            f"It cannot be read ({type(error).__name__}: {short(error, 200)}).", "The file may be damaged."
        )
    return json.dumps(answer, default=_plain).encode()


if __name__ == "__main__":
    try:
        gigabytes, seconds, folder, work = pickle.load(sys.stdin.buffer)
    except EOFError:  # who started this process needed it no more
        sys.exit()
    os.chdir(folder)
    for what, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_DATA, int(gigabytes * 1e9)),
        (resource.RLIMIT_FSIZE, int(gigabytes * 1e9)),
        (resource.RLIMIT_CPU, int(seconds) + 1),
    ):
        resource.setrlimit(what, (most, most))
    sys.stdout.buffer.write(_answered(work))
