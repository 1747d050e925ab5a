"""Contextual vocabulary alignment: how quick it is, and what it changes: `python -m benchmarks.alignment`.

Without a folder: the table of distances of 10,000 human words to 1,000 known ones (300 numbers each) as one product of
matrices, beside the same word by word. With `--data FOLDER`, as for benchmarks.interactive: LIC_D and LIC of a
captioner (`--captioner`, default sat) with ngram under constant and contextual alignment, and the sweep over delta. The
vectors (`--vectors FILE`) are, where none are named, made from the folder's own human captions: the positive pointwise
mutual information of words within five words of each other, cut to 100 numbers by singular values. They stand in for
GloVe where it is not at hand, and say nothing about GloVe's own distances.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds

from benchmarks.interactive import COLLECTION, load
from capbias_core.prepare import tokenize
from capbias_core.prepare.align import neighbours
from capbias_core.runs.plan import Request, plan
from capbias_core.runs.run import run_one
from capbias_core.types import Vectors
from capbias_core.workspace.store import Workspace, bytes_frame
from capbias_core.workspace.vectors import alignment_option, keep_vectors, offer_vectors

WORDS, KNOWN, NUMBERS = 10_000, 1_000, 300
WINDOW, COMMON, KEPT = 5, 3, 100
SHOWN = ("LIC_M", "LIC_D", "LIC", "contextual_share", "unknown_share", "METEOR_aligned")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--captioner", default="sat")
    parser.add_argument("--vectors", type=Path)
    options = parser.parse_args()
    time_table()
    if options.data:
        with tempfile.TemporaryDirectory() as folder:
            load(Path(folder), options.data)
            compare(Workspace(folder), Path(folder), options)


def time_table() -> None:
    rng = np.random.default_rng(0)
    words = [f"w{place}" for place in range(WORDS + KNOWN)]
    vectors = Vectors(tuple(words), rng.normal(size=(len(words), NUMBERS)).astype(np.float32))
    start = time.perf_counter()
    found = neighbours(words[:WORDS], frozenset(words[WORDS:]), vectors)
    product = time.perf_counter() - start
    start = time.perf_counter()
    part = 100
    alone = [one_by_one(vectors, place) for place in range(part)]
    single = (time.perf_counter() - start) * WORDS / part
    assert all(found.nearest[words[place]] == words[own] for place, own in enumerate(alone))
    print(
        f"{WORDS:,} words x {KNOWN:,} known, {NUMBERS} numbers: {product:.2f} s (at most 1), word by word "
        f"{single:.0f} s (from {part} words), {single / product:.0f} times as long"
    )


def one_by_one(vectors: Vectors, place: int) -> int:
    """The nearest known word of one word, pair by pair."""
    own = vectors.matrix[place]
    return min(range(WORDS, WORDS + KNOWN), key=lambda other: distance(own, vectors.matrix[other]))


def distance(first: np.ndarray, second: np.ndarray) -> float:
    return 1 - first @ second / (np.linalg.norm(first) * np.linalg.norm(second))


def compare(workspace: Workspace, folder: Path, options) -> None:
    """Both alignments of one captioner, and the sweep."""
    path = options.vectors or folder / "own_vectors.txt"
    if not options.vectors:
        write_vectors(path, workspace.frame(workspace.items("references")[0].hash)["caption"])
    item = keep_vectors(workspace, offer_vectors(workspace, path, COLLECTION), path.stem, COLLECTION)
    print(f"{item.name}: {item.details['found']:,} of {item.rows:,} words of the captions have a vector")
    request = {"metrics": ("lic",), "references": "human"}
    for extra in ({}, {"options": {"alignment": alignment_option(item)}, "metrics": ("lic", "alignment")}):
        asked = Request(COLLECTION, (options.captioner,), "labels", "gender", **request | extra)
        for spec in plan(workspace, asked):
            start = time.perf_counter()
            outcome = run_one(workspace, spec, lambda share, text: None)
            for row in outcome.results:
                default = row.condition in ("", "with_references", "constant") or row.condition.endswith(item.name)
                if row.metric in SHOWN and (default or row.metric.startswith("LIC")):
                    print(
                        f"{row.model} {row.metric} {row.condition}: {row.value:.2f} ±{row.spread or 0:.2f} "
                        f"[{row.ci_low:.2f}, {row.ci_high:.2f}] n {row.n:,}"
                    )
            print(f"  {spec.family}: {time.perf_counter() - start:.1f} s")
            if "sweep" in outcome.arrays:
                print(bytes_frame(outcome.arrays["sweep"]).round(2).to_string(index=False))


def write_vectors(path: Path, captions) -> None:
    """Vectors of the words of captions, as GloVe writes them."""
    texts = [tokenize(caption) for caption in captions]
    counts: dict[str, int] = {}
    for word in (word for text in texts for word in text):
        counts[word] = counts.get(word, 0) + 1
    words = {word: place for place, word in enumerate(word for word, count in counts.items() if count >= COMMON)}
    codes = [[words[word] for word in text if word in words] for text in texts]
    pairs = np.array(
        [
            (first, second)
            for own in codes
            for place, first in enumerate(own)
            for second in own[max(0, place - WINDOW) : place + WINDOW + 1]
        ]
    )
    together = csr_array((np.ones(len(pairs)), pairs.T), shape=(len(words), len(words))).tocoo()
    alone = np.bincount(pairs[:, 0], minlength=len(words)).astype(float)
    shared = csr_array((together.data, (together.row, together.col)), shape=together.shape)
    shared.sum_duplicates()
    rows, columns = shared.nonzero()
    information = np.log(shared.data * alone.sum() / (alone[rows] * alone[columns]))
    left, values, _ = svds(
        csr_array((np.maximum(information, 0), (rows, columns)), shape=shared.shape), KEPT, random_state=0
    )
    matrix = left * np.sqrt(values)
    lines = (f"{word} {' '.join(f'{number:.5f}' for number in row)}\n" for word, row in zip(words, matrix, strict=True))
    path.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
