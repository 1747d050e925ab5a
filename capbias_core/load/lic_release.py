"""The LIC authors' release: pickled lists of dicts (img_id, pred or caption_list, bb_gender, bb_skin, ...).

A pickle can run code when it is read. This reader admits the opcodes of plain containers, text, numbers, booleans and
None: all are checked before the file is read, and no name can be looked up while it is read. What was read is written
as JSON, which neither a list that holds itself nor one that is shared too often survives.
"""

from __future__ import annotations

import io
import json
import pickle
import pickletools

from capbias_core.errors import CapbiasError, first_line

MOST_BYTES, MOST_JSON = 512 << 20, 1 << 30
PLAIN_OPCODES = frozenset(
    str.split("""
    PROTO FRAME STOP MARK POP POP_MARK DUP MEMOIZE GET BINGET LONG_BINGET PUT BINPUT LONG_BINPUT
    NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT
    UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 STRING BINSTRING SHORT_BINSTRING
    LIST EMPTY_LIST APPEND APPENDS TUPLE EMPTY_TUPLE TUPLE1 TUPLE2 TUPLE3
    DICT EMPTY_DICT SETITEM SETITEMS
""")
)


class PlainUnpickler(pickle.Unpickler):
    """An unpickler that looks up no name, should a check of opcodes miss one."""

    def find_class(self, module: str, name: str):
        raise ValueError(f"it asks for {module}.{name}")


def plain_pickle(title: str, data: bytes) -> list:
    """A pickled list of dicts of plain values. Raises CapbiasError for anything else, and runs none of it."""
    try:
        if len(data) > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES >> 20} MiB")
        for count, (opcode, argument, position) in enumerate(pickletools.genops(data)):
            if opcode.name not in PLAIN_OPCODES:
                raise ValueError(f"the opcode {opcode.name} at byte {position}")
            if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(argument or 0) > count:
                raise ValueError(f"the memo place {argument} at byte {position} would fill the memory")
        parts, size = [], 0
        for part in json.JSONEncoder().iterencode(PlainUnpickler(io.BytesIO(data), encoding="utf-8").load()):
            parts.append(part)
            if (size := size + len(part)) > MOST_JSON:
                raise ValueError("it unfolds to far more than its size")
        value = json.loads("".join(parts))
        if not isinstance(value, list) or not all(isinstance(row, dict) and "img_id" in row for row in value):
            raise ValueError("it is no list of records with img_id")
    except MemoryError:
        raise
    except Exception as error:  # damaged bytes can raise nearly anything
        raise CapbiasError(
            f"{title} is a pickle that is not of the LIC release ({first_line(error)}).",
            "Since a pickle can run code, no others are read. Write the captions as JSON, CSV or Parquet instead.",
        ) from None
    return value
