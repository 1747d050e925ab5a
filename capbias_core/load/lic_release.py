"""The LIC authors' release: pickled lists of dicts (img_id, pred or caption_list, bb_gender, bb_skin, ...).

A pickle can run code when it is read. This reader admits plain containers, text, numbers, booleans and None, and
nothing else: all opcodes are checked before the file is read, no name can be looked up while it is read, and all
types are checked afterwards.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from typing import Any

from capbias_core.errors import CapbiasError, first_line, short

MOST_BYTES = 512 << 20
MOST_TEXT = 1 << 30
PLAIN_TYPES = (list, tuple, dict, str, int, float, bool, type(None))
PLAIN_OPCODES = """
    PROTO FRAME STOP MARK POP POP_MARK DUP MEMOIZE GET BINGET LONG_BINGET PUT BINPUT LONG_BINPUT
    NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT
    UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 STRING BINSTRING SHORT_BINSTRING
    LIST EMPTY_LIST APPEND APPENDS TUPLE EMPTY_TUPLE TUPLE1 TUPLE2 TUPLE3
    DICT EMPTY_DICT SETITEM SETITEMS
"""


def plain_pickle(title: str, data: bytes) -> list:
    """A pickled list of dicts of plain values. Raises CapbiasError for anything else, and runs none of it."""

    def refused(fault: str) -> CapbiasError:
        return CapbiasError(
            f"{title} is a pickle {short(fault, 200)}.",
            "Since a pickle can run code, only lists and dicts of text and numbers are read, as in the LIC release. "
            "Write the captions as JSON, CSV or Parquet instead.",
        )

    class PlainUnpickler(pickle.Unpickler):
        """An unpickler that looks up no name, so that nothing in the file can be called."""

        def find_class(self, module: str, name: str):
            raise refused(f"that asks for {module}.{name}")

        def persistent_load(self, pid):
            raise refused("that asks for an object outside the file")

    if len(data) > MOST_BYTES:
        raise refused(f"of {len(data) / 2**20:,.0f} MiB; at most {MOST_BYTES >> 20} MiB are read")
    try:
        if fault := _fault_of_opcodes(data):
            raise refused(fault)
        value = PlainUnpickler(io.BytesIO(data), encoding="utf-8").load()
    except (CapbiasError, MemoryError):
        raise
    except Exception as error:  # damaged bytes can raise nearly anything
        raise refused(f"that is broken ({first_line(error)})") from None
    if not isinstance(value, (list, tuple)) or not any(isinstance(record, dict) for record in value):
        raise refused(f"that holds a {type(value).__name__} without records")
    if fault := _fault_of_values(value, len(data)):
        raise refused(fault)
    return list(value)


def _fault_of_opcodes(data: bytes) -> str:
    """Opcodes that plain data has no use for (extension codes, buffers), or memo places never reached; else ''."""
    last, plain = -1, frozenset(PLAIN_OPCODES.split())
    for count, (opcode, argument, position) in enumerate(pickletools.genops(data)):
        name, last = opcode.name, position or 0
        if name in ("GLOBAL", "STACK_GLOBAL", "INST"):  # reading stops at a name, which the error then has
            return ""
        if name not in plain:
            return f"with the opcode {name} at byte {last}"
        if name in ("PUT", "BINPUT", "LONG_BINPUT") and argument is not None and argument > count:
            return f"that would fill the memory (memo place {argument} at byte {last})"
    return f"that ends at byte {last} of {len(data)}" if last + 1 != len(data) else ""


def _fault_of_values(value: Any, size: int) -> str:
    """Types that are not plain, or containers that are shared so often that they would fill the memory; else ''. size:
    of the file, in which a value that is not shared takes at least a byte."""
    waiting, values, text = [value], 1, 0
    while waiting:
        item = waiting.pop()
        if type(item) not in PLAIN_TYPES:
            return f"that holds a {type(item).__module__}.{type(item).__name__}"
        if isinstance(item, str):
            text += len(item)
        elif isinstance(item, list | tuple | dict):
            if isinstance(item, dict) and not all(type(key) is str for key in item):
                return "with keys that are not text"
            waiting += item.values() if isinstance(item, dict) else item
            values += len(item)
        if values > size or text > MOST_TEXT:
            return "that unfolds to far more than its size"
    return ""
