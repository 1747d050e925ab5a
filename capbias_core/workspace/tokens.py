"""The tokens of kept captions as numbers: made once a caption set, kept beside it and mapped into memory.

An Arrow file in the workspace's data folder, named by the content of the captions and the form below: a list of tokens
a caption, each token a place in a dictionary. Whoever needs it first makes it. It follows from the captions, so it may
be deleted at any time; where nothing can be written, it is made anew each time.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from capbias_core.prepare.tasks import Encoded, encode_rows
from capbias_core.whole_files import whole_file
from capbias_core.workspace.store import Workspace

FORM = 1  # to be raised where `tokenize` gives other tokens, or the file has another shape
COLUMN = "tokens"


def kept_tokens(workspace: Workspace, digest: str) -> Encoded:
    """The captions of a kept set, all of them in their order, as `encode` gives them. Raises CapbiasError where they
    are gone."""
    with suppress(OSError, pa.ArrowException, KeyError):
        return _read(_file(workspace, digest))
    return keep_tokens(workspace, digest, workspace.frame(digest))


def keep_tokens(workspace: Workspace, digest: str, frame: pd.DataFrame) -> Encoded:
    """Make the tokens of a kept set, and keep them where that can be done. frame: the set."""
    found = encode_rows(frame)
    with suppress(OSError):
        _write(_file(workspace, digest), found)
    return found


def _file(workspace: Workspace, digest: str) -> Path:
    return workspace.sidecar_path(digest, f"tokens-{FORM}.arrow")


def _write(path: Path, encoded: Encoded) -> None:
    words = pa.DictionaryArray.from_arrays(pa.array(encoded.codes), pa.array(list(encoded.vocabulary), pa.string()))
    table = pa.table({COLUMN: pa.LargeListArray.from_arrays(pa.array(encoded.start), words)})
    with whole_file(path) as own, pa.OSFile(str(own), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _read(path: Path) -> Encoded:
    """Nothing of the lists is copied: they stay in the file, and only what is read of them is in memory."""
    lists = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0)[COLUMN]
    words = lists.values
    tokens = words.dictionary.to_pylist()
    codes, start = (own.to_numpy(zero_copy_only=True) for own in (words.indices, lists.offsets))
    return Encoded(codes, start.astype(np.int64, copy=False), dict(zip(tokens, range(len(tokens)), strict=True)))
