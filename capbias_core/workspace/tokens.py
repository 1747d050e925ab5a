"""The tokens of stored captions as numbers: made once per caption set, stored beside it and mapped into memory.

An Arrow file named by the content of the captions and the form below: a list of tokens per caption, each token an index
of a dictionary. It may be deleted at any time.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from capbias_core.prepare.tokens import Tokens
from capbias_core.whole_files import whole_file

SUFFIX = "tokens-2.arrow"  # another number where `tokenize` gives other tokens, or the file has another shape
COLUMN = "tokens"


def read_tokens(path: Path, captions: int) -> Tokens:
    """The captions of a set. Nothing of the lists is copied: they stay in the file. captions: how many there are.
    Raises OSError, ArrowException, LookupError, AttributeError or ValueError for a file that is missing or of another
    set."""
    lists = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0)[COLUMN]
    words = lists.values
    codes, start = (array.to_numpy(zero_copy_only=True) for array in (words.indices, lists.offsets))
    start = start.astype(np.int64, copy=False)
    whole = len(start) == captions + 1 and start[0] == 0 and start[-1] == len(codes) and (np.diff(start) >= 0).all()
    if not whole or (len(codes) and not 0 <= codes.min() <= codes.max() < len(words.dictionary)):
        raise ValueError("these are not the tokens of the captions")
    return Tokens(codes, start, words.dictionary.cast(pa.string()).to_pylist())


def write_tokens(path: Path, tokens: Tokens) -> None:
    """Write the captions of a set. Raises OSError."""
    words = pa.DictionaryArray.from_arrays(pa.array(tokens.codes), pa.array(tokens.words, pa.string()))
    table = pa.table({COLUMN: pa.LargeListArray.from_arrays(pa.array(tokens.start), words)})
    with whole_file(path) as part, pa.OSFile(str(part), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
