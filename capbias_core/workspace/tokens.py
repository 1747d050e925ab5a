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


def read_tokens(path: Path) -> Tokens:
    """The captions of a set. Nothing of the lists is copied: they stay in the file. Raises OSError, ArrowException or
    KeyError for a file that is missing or damaged."""
    lists = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0)[COLUMN]
    words = lists.values
    codes, start = (array.to_numpy(zero_copy_only=True) for array in (words.indices, lists.offsets))
    return Tokens(codes, start.astype(np.int64, copy=False), words.dictionary.to_pylist())


def write_tokens(path: Path, tokens: Tokens) -> None:
    """Write the captions of a set. Raises OSError."""
    words = pa.DictionaryArray.from_arrays(pa.array(tokens.codes), pa.array(tokens.words, pa.string()))
    table = pa.table({COLUMN: pa.LargeListArray.from_arrays(pa.array(tokens.start), words)})
    with whole_file(path) as part, pa.OSFile(str(part), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
