"""The tokens of stored captions as numbers: made once per caption set, stored beside it and mapped into memory.

An Arrow file in the workspace's data folder, named by the content of the captions and the form below: a list of tokens
per caption, each token an index of a dictionary. It may be deleted at any time; if nothing can be written, it is made
again each time.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pandas as pd
import pyarrow as pa

from capbias_core.prepare.tokens import Tokens
from capbias_core.whole_files import whole_file
from capbias_core.workspace.store import Workspace

FORM = 2  # to be raised where `tokenize` gives other tokens, or the file has another shape
COLUMN = "tokens"


def kept_tokens(workspace: Workspace, digest: str) -> Tokens:
    """The captions of a stored set, all of them in their order, as `Tokens.of` gives them. Nothing of the lists is
    copied: they stay in the file. Raises CapbiasError if the set is missing."""
    with suppress(OSError, pa.ArrowException, KeyError):
        file = workspace.sidecar_path(digest, f"tokens-{FORM}.arrow")
        lists = pa.ipc.open_file(pa.memory_map(str(file))).get_batch(0)[COLUMN]
        words = lists.values
        codes, start = (array.to_numpy(zero_copy_only=True) for array in (words.indices, lists.offsets))
        return Tokens(codes, start.astype(np.int64, copy=False), words.dictionary.to_pylist())
    return keep_tokens(workspace, digest, workspace.frame(digest))


def keep_tokens(workspace: Workspace, digest: str, frame: pd.DataFrame) -> Tokens:
    """The tokens of a stored set, stored if that is possible. frame: the set."""
    tokens = Tokens.of(frame["caption"])
    path = workspace.sidecar_path(digest, f"tokens-{FORM}.arrow")
    words = pa.DictionaryArray.from_arrays(pa.array(tokens.codes), pa.array(tokens.words, pa.string()))
    table = pa.table({COLUMN: pa.LargeListArray.from_arrays(pa.array(tokens.start), words)})
    with (
        suppress(OSError),
        whole_file(path) as part,
        pa.OSFile(str(part), "wb") as file,
        pa.ipc.new_file(file, table.schema) as writer,
    ):
        writer.write_table(table)
    return tokens
