"""The LIC authors' release: pickled lists of dicts (img_id, pred or caption_list, bb_gender, bb_skin, ...).

A pickle can run code when it is read. This reader admits plain containers, text, numbers, booleans and None, and
nothing else: all opcodes are checked before the file is read, no name can be looked up while it is read, and all
types are checked afterwards.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from pathlib import Path
from typing import Any

from capbias_core.errors import CapbiasError
from capbias_core.load.files import readable
from capbias_core.load.ids import printable
from capbias_core.load.parsed import Reader, of_records

TITLE = "LIC release (pickle)"
MOST_BYTES = 512 << 20
MOST_TEXT = 1 << 30
ENDINGS = (".pkl", ".pickle", ".p")
STARTS = (b"\x80\2", b"\x80\3", b"\x80\4", b"\x80\5", b"(lp0\n", b"(lp1\n", b"]q\x00", b"]q\x01")
PLAIN_TYPES = (list, tuple, dict, str, int, float, bool, type(None))
PLAIN_OPCODES = """
    PROTO FRAME STOP MARK POP POP_MARK DUP MEMOIZE GET BINGET LONG_BINGET PUT BINPUT LONG_BINPUT
    NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT
    UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 STRING BINSTRING SHORT_BINSTRING
    LIST EMPTY_LIST APPEND APPENDS TUPLE EMPTY_TUPLE TUPLE1 TUPLE2 TUPLE3
    DICT EMPTY_DICT SETITEM SETITEMS
"""
# These look up a name; reading stops at the first of them with the name in the error.
NAMING_OPCODES = ("GLOBAL", "STACK_GLOBAL", "INST")
MEMO_OPCODES = ("PUT", "BINPUT", "LONG_BINPUT")


def read_pickle(path: Path) -> list:
    """A pickled list of dicts of plain values. Raises CapbiasError for anything else, and runs none of it."""
    with readable(path):
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise _refused(path, f"of {size / 2**20:,.0f} MiB; at most {MOST_BYTES >> 20} MiB are read")
        data = path.read_bytes()
    try:
        _check_opcodes(path, data)
        value = _PlainUnpickler(path, data).load()
    except (CapbiasError, MemoryError):
        raise
    except Exception as error:  # damaged bytes can raise nearly anything
        reason = str(error).split("\n")[0][:200].rstrip(".")
        raise _refused(path, f"that is broken ({reason})") from None
    if not isinstance(value, (list, tuple)) or not any(isinstance(record, dict) for record in value):
        raise _refused(path, f"that holds a {type(value).__name__} without records")
    _check_values(path, value)
    return list(value)


class _PlainUnpickler(pickle.Unpickler):
    """An unpickler that looks up no name, so that nothing in the file can be called."""

    def __init__(self, path: Path, data: bytes):
        super().__init__(io.BytesIO(data), encoding="utf-8")
        self.path = path

    def find_class(self, module: str, name: str):
        raise _refused(self.path, f"that asks for {module}.{name}")

    def persistent_load(self, pid):
        raise _refused(self.path, "that asks for an object outside the file")


def _check_opcodes(path: Path, data: bytes) -> None:
    """Refuse opcodes that plain data has no use for (extension codes, buffers), and memo places never reached."""
    last, plain = -1, frozenset(PLAIN_OPCODES.split())
    for count, (opcode, argument, position) in enumerate(pickletools.genops(data)):
        name, last = opcode.name, position or 0
        if name in NAMING_OPCODES:
            return
        if name not in plain:
            raise _refused(path, f"with the opcode {name} at byte {last}")
        if name in MEMO_OPCODES and argument is not None and argument > count:
            raise _refused(path, f"that would fill the memory (memo place {argument} at byte {last})")
    if last + 1 != len(data):
        raise _refused(path, f"that ends at byte {last} of {len(data)}")


def _check_values(path: Path, value: list | tuple) -> None:
    """Check the types in each container once, and refuse a small file whose records share containers so often that its
    rows would fill the memory. A value that is not shared takes at least a byte of the file."""
    waiting: list[Any] = [value]
    seen = {id(value)}
    while waiting:
        container = waiting.pop()
        if isinstance(container, dict) and not all(type(key) is str for key in container):
            raise _refused(path, "with keys that are not text")
        for item in container.values() if isinstance(container, dict) else container:
            if type(item) not in PLAIN_TYPES:
                raise _refused(path, f"that holds a {type(item).__module__}.{type(item).__name__}")
            if isinstance(item, (list, tuple, dict)) and id(item) not in seen:
                seen.add(id(item))
                waiting.append(item)
    size, values, text = path.stat().st_size, 0, 0
    sizes: dict[int, tuple[int, int]] = {}  # list -> its items, and the characters of the text in it
    for record in value:
        for cell in record.values() if isinstance(record, dict) else ():
            values += 1
            if not isinstance(cell, (list, tuple)):
                text += len(cell) if isinstance(cell, str) else 0
                continue
            if id(cell) not in sizes:
                sizes[id(cell)] = len(cell), sum(len(item) for item in cell if isinstance(item, str))
            values, text = values + sizes[id(cell)][0], text + sizes[id(cell)][1]
        if values > size or text > MOST_TEXT:
            raise _refused(path, "that unfolds to far more than its size")


def _refused(path: Path, fault: str) -> CapbiasError:
    return CapbiasError(
        f"{path.name} is a pickle {printable(fault)}.",
        "Since a pickle can run code, only lists and dicts of text and numbers are read, as in the LIC release. "
        "Write the captions as JSON, CSV or Parquet instead.",
    )


READERS = (
    Reader(
        "lic_release",
        TITLE,
        lambda head: head.data.startswith(STARTS) or head.ending in ENDINGS,
        lambda path: of_records(path, "lic_release", TITLE, read_pickle(path)),
        order=2,
    ),
)
