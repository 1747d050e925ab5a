"""Word vectors of a collection: the path of a large file, and the vectors of the words in captions.

Runs never read the large file. They name it by the hash of its content, which is the hash of the item, so looking up
more words in the same file changes no number.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.kinds import CAPTIONS, REFERENCES, VECTORS, checked_name
from capbias_core.load.files import file_digest
from capbias_core.load.vectors import read_vectors
from capbias_core.prepare.align import DELTA, Aligner, Alignment, Neighbours, constant, neighbours
from capbias_core.prepare.text import tokenize
from capbias_core.types import Vectors
from capbias_core.whole_files import typed_path
from capbias_core.workspace.spec import AlignmentReference
from capbias_core.workspace.store import Item, Workspace

CONSTANT = "constant"  # what results call alignment by <unk>
# Names under which results of well-known vectors are printed.
KNOWN = ("glove", "fasttext", "word2vec")


@dataclass(frozen=True)
class OfferedVectors:
    """A vector file in which the words of a collection's captions were looked up. Nothing is stored yet. frame: word,
    and vector (its numbers as little-endian 32-bit floats; empty if the file has none)."""

    path: Path
    hash: str
    dimension: int
    frame: pd.DataFrame

    @property
    def found(self) -> int:
        """How many of the words have a vector."""
        return int((self.frame["vector"].str.len() > 0).sum())

    @property
    def name(self) -> str:
        return checked_name(self.path.stem)

    def lines(self) -> list[tuple[str, str]]:
        """(label, value) for a table on the page or in the terminal."""
        share = f"{self.found:,} of {len(self.frame):,}"
        return [("File", self.path.name), ("Numbers a word", f"{self.dimension:,}"), ("Words of captions", share)]


def offer_vectors(workspace: Workspace, path: Path, collection: str) -> OfferedVectors:
    """The vectors of the words of a collection's captions in a file. Raises CapbiasError for a wrong file, and for a
    collection without captions."""
    items = [item for kind in (CAPTIONS, REFERENCES) for item in workspace.items(kind, collection)]
    words = words_in(workspace.frame(item.hash) for item in items)
    if not words:
        raise CapbiasError(
            f"The collection {collection!r} has no captions whose words could be looked up.",
            "Load captions first, then the vectors.",
        )
    digest = file_digest(typed_path(path).resolve())[:16]
    earlier = [item for item in workspace.items(VECTORS) if item.hash == digest]
    words |= set(workspace.frame(digest)["word"]) if earlier else set()
    return look_up(path, words, earlier[0].details["dimension"] if earlier else None)


def look_up(path: Path, words: set[str], dimension: int | None = None) -> OfferedVectors:
    """The vectors of words in a file. dimension: None to read it from the file. Raises CapbiasError for a wrong
    file."""
    path = typed_path(path).resolve()
    digest, vectors = file_digest(path)[:16], read_vectors(path, words, dimension)
    rows = dict(zip(vectors.words, vectors.matrix.astype("<f4"), strict=True))
    data = [rows[word].tobytes() if word in rows else b"" for word in sorted(words)]
    return OfferedVectors(path, digest, vectors.matrix.shape[1], pd.DataFrame({"word": sorted(words), "vector": data}))


def keep_vectors(workspace: Workspace, offered: OfferedVectors, name: str, collection: str, source: str = "") -> Item:
    """The stored item: the path of a vector file, and the vectors of the words that were looked up. source: the name
    of an uploaded file, which is not kept (default: the path)."""
    details = {"path": str(offered.path), "dimension": offered.dimension, "found": offered.found}
    return workspace.keep(VECTORS, name, offered.frame, collection, source or str(offered.path), details, offered.hash)


def words_in(frames: Iterable[pd.DataFrame]) -> set[str]:
    """The words of captions."""
    texts = (caption for frame in frames for caption in frame["caption"])
    return {word for caption in texts for word in tokenize(caption) if not word.startswith("<")}


def check_delta(delta: float) -> None:
    """Raises CapbiasError for a number that is no cosine distance."""
    if not 0 <= delta <= 2:
        raise CapbiasError(f"{delta:g} is not a cosine distance (0 to 2).", f"The paper on DBAC uses {DELTA}.", "delta")


def alignment_option(vectors: Item | OfferedVectors, delta: float = DELTA) -> AlignmentReference:
    """The option `alignment` of a request for contextual alignment. Raises CapbiasError for a delta outside [0, 2]."""
    check_delta(delta)
    lower = vectors.name.lower()
    short = next((name for name in KNOWN if name in lower), lower.replace(" ", "_"))
    return {"item": vectors.hash, "delta": float(delta), "name": short}


def alignment_name(option: AlignmentReference | None) -> str:
    """The name of an alignment in results: `constant`, `contextual_glove`, `contextual_glove_0.3` for another delta."""
    if not option:
        return CONSTANT
    delta = "" if option["delta"] == DELTA else f"_{option['delta']:g}"
    return f"contextual_{option['name']}{delta}"


def alignment_method(option: AlignmentReference | None) -> str:
    """An alignment in words, for a result's method."""
    if not option:
        return "references aligned by <unk>"
    return f"references aligned by the nearest word of {option['name']} below a cosine distance of {option['delta']:g}"


def aligner(table: Callable[[str], pd.DataFrame], option: AlignmentReference | None) -> Aligner:
    """The function that aligns human words to known ones, by a run's option `alignment`. table: content hash to stored
    vectors. The function raises CapbiasError if a word was not looked up in the vector file."""
    if not option:
        return constant
    frame = table(option["item"])
    return lambda words, known: Alignment(known, neighbours_of(frame, option, words, known).within(option["delta"]))


def neighbours_of(
    frame: pd.DataFrame, option: AlignmentReference, words: Collection[str], known: frozenset[str]
) -> Neighbours:
    """For each word the nearest known word in stored vectors, at any distance. Raises as `aligner`."""
    new = sorted(word for word in {*words, *known} - set(frame["word"]) if not word.startswith("<"))
    if new:
        raise CapbiasError(
            f"{len(new):,} words of the captions, such as {new[0]!r}, were not looked up in {option['name']}.",
            "Load the vector file again: on the Data page, or with `capbias import --kind vectors`.",
        )
    rows = frame[frame["vector"].str.len() > 0]
    matrix = np.frombuffer(b"".join(rows["vector"]), dtype="<f4").reshape(len(rows), -1)
    return neighbours(words, known, Vectors(tuple(rows["word"]), matrix.astype(np.float32)))
