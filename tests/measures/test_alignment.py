"""Vocabulary alignment: vector files, the nearest word, runs that use it, the sweep over delta."""

import gzip
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capbias_core.errors import CapbiasError
from capbias_core.load import vectors
from capbias_core.load.vectors import read_vectors
from capbias_core.measures import alignment as measure
from capbias_core.prepare.align import neighbours
from capbias_core.question import Question
from capbias_core.runs.plan import plan
from capbias_core.runs.run import run_one
from capbias_core.types import Vectors, silent
from capbias_core.workspace.store import Workspace
from capbias_core.workspace.vectors import alignment_option, keep_vectors, offer_vectors
from tests.collections_ import keep

ROWS = {"the": [0.5, -2, 3], "cat": [1, 0, 0.25], "naïve": [1, 1, 1]}


def glove(rows: dict) -> bytes:
    return "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows.items()).encode()


def head(rows: dict) -> bytes:
    return f"{len(rows)} {len(next(iter(rows.values())))}\n".encode()


FORMATS = {
    "glove.txt": glove(ROWS),
    "fasttext.vec": head(ROWS) + glove(ROWS).replace(b"\n", b" \n"),  # with a space at the end of each row
    "tabs.txt": glove(ROWS).replace(b" ", b"\t"),
}


def test_every_format_gives_the_same_vectors(tmp_path):
    packed = {f"{name}.gz": gzip.compress(content) for name, content in FORMATS.items()}
    for name, content in (FORMATS | packed).items():
        (tmp_path / name).write_bytes(content)
        found = read_vectors(tmp_path / name, {"naïve", "cat", "dog"})
        assert found.words == ("cat", "naïve") and found.matrix.dtype == np.float32, name
        assert found.matrix.tolist() == [[1, 0, 0.25], [1, 1, 1]], name


BAD = {
    "fewer numbers": (b"a 1 2 3\nb 1 2\n", "line 2: a row of another dimension"),
    "not a number": (b"a 1 2\nb 3 4\ncat 1 x\n", r"line 3: not a number \(x\)"),
    "no word in common": (b"dog 1 2\n", "a vector for none of the 1 words"),
    "cut text": (b"5 2\ncat 1 2\n", "v.txt has 1 rows.*says 5"),
    "binary": (b"3 2\ncat " + struct.pack("<2f", 1, 2), "not a vector file as text"),
    "cut gzip": (gzip.compress(glove(ROWS))[:-9], "cut off or damaged"),
}


def test_a_wrong_vector_file_is_one_clear_message(tmp_path):
    path = tmp_path / "v.txt"
    for data, message in BAD.values():
        path.write_bytes(data)
        with pytest.raises(CapbiasError, match=message):
            read_vectors(path, {"cat"})


def test_vectors_that_unpack_to_too_much_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(vectors, "SMALL", 1_000)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"cat 1 2\n" * 100_000))
    with pytest.raises(CapbiasError, match="more than 20 times"):
        read_vectors(tmp_path / "bomb.gz", {"dog"})


# On a circle, so that the cosine distance is 1 - cos of the difference of angles.
ANGLES = {"chair": 0, "table": 90, "seat": 30, "bench": 60, "sofa": 53, "opposite": 180}


def at_angles(angles: dict[str, float], length: float = 1.0) -> Vectors:
    rad = np.deg2rad(list(angles.values()))
    return Vectors(tuple(angles), (length * np.column_stack([np.cos(rad), np.sin(rad)])).astype(np.float32))


def test_the_nearest_word_and_its_distance_by_hand(monkeypatch):
    human = {"seat", "sofa", "opposite", "ocarina", "<gender>", "chair"}
    found = neighbours(human, frozenset(["chair", "table", "a"]), at_angles(ANGLES))
    # 30 degrees from chair: 1 - cos 30 = 0.134. 37 from table: 0.201. opposite: 90 from table, 180 from chair: 1.
    assert found.nearest == {"seat": "chair", "sofa": "table", "opposite": "table"}
    expected = {"seat": 1 - np.sqrt(3) / 2, "sofa": 1 - np.cos(np.deg2rad(37)), "opposite": 1}
    assert found.distance == pytest.approx(expected, abs=1e-6)
    assert found.within(0.4) == {"seat": "chair", "sofa": "table"}
    assert found.within(0.15) == {"seat": "chair"} and found.within(0.0) == {}
    # Words without a vector, or with one of length 0, have no neighbour.
    vectors = Vectors(("none", "model", "null"), np.array([[0, 0], [0, 1], [0, 0]], dtype=np.float32))
    assert neighbours({"none", "other"}, frozenset(["model", "null"]), vectors).nearest == {}
    # The product of matrices, seven rows at a time, equals word by word.
    monkeypatch.setattr("capbias_core.prepare.align.ROWS", 7)
    words = [f"h{number}" for number in range(40)] + [f"m{number}" for number in range(25)]
    matrix = np.random.default_rng(1).normal(size=(65, 6)).astype(np.float32)
    found = neighbours(words[:40], frozenset(words[40:]), Vectors(tuple(words), matrix))
    length = [sum(float(a) ** 2 for a in row) ** 0.5 for row in matrix]
    for row, word in enumerate(words[:40]):
        products = [sum(float(a) * float(b) for a, b in zip(matrix[row], other, strict=True)) for other in matrix[40:]]
        distances = [1 - product / (length[row] * length[40 + n]) for n, product in enumerate(products)]
        assert found.nearest[word] == words[40 + int(np.argmin(distances))]
        assert found.distance[word] == pytest.approx(min(distances), abs=1e-5)


def captions_of(texts: dict[str, str]) -> pd.DataFrame:
    return pd.DataFrame({"image_id": list(texts), "caption": list(texts.values())})


ANGLES_OF_SET = {"someone": 320, "here": 200, "spanner": 5, "wrench": 0, "whisk": 95, "spoon": 90, "unrelated": 270}
GLOVE = glove(dict(zip(ANGLES_OF_SET, at_angles(ANGLES_OF_SET, 3).matrix.tolist(), strict=True)))


@pytest.fixture
def tools(tmp_path) -> tuple[Workspace, Question, Path]:
    """People write spanner (A) and whisk (B); the captioner only knows wrench and spoon, and says them at random."""
    rng = np.random.default_rng(2)
    labels = {f"{image}": "AB"[image % 2] for image in range(240)}
    human = {image: f"someone {'spanner' if value == 'A' else 'whisk'} zzz" for image, value in labels.items()}
    model = {image: f"someone {('wrench', 'spoon')[rng.integers(2)]} here" for image in labels}
    workspace = Workspace(tmp_path / "workspace")
    table = pd.DataFrame({"image_id": list(labels), "group": list(labels.values())})
    keep(workspace, labels=table, attribute="group", captions=captions_of(model), references=captions_of(human))
    path = tmp_path / "my glove.txt"
    path.write_bytes(GLOVE)
    return workspace, Question("c", ("m",), "labels", "group", ("lic",), "human", seeds=2), path


def kept(workspace: Workspace, path: Path):
    return keep_vectors(workspace, offer_vectors(workspace, path, "c"), path.stem, "c")


def values(workspace: Workspace, request: Question) -> dict[tuple[str, str], float]:
    results = [row for spec in plan(workspace, request) for row in run_one(workspace, spec, silent).results]
    return {(row.metric, row.alignment): row.value for row in results}


@pytest.mark.long
def test_an_informative_human_word_keeps_what_it_says_under_contextual_alignment(tools):
    workspace, request, path = tools
    constant = values(workspace, request)
    item = kept(workspace, path)
    found = values(workspace, replace(request, options={"alignment": alignment_option(item)}))
    assert constant["LIC_D", "constant"] == pytest.approx(25, abs=1), "spanner and whisk both became <unk>"
    # spanner -> wrench and whisk -> spoon tell A from B in each caption.
    assert found["LIC_D", "contextual_glove"] > 80
    assert found["LIC_M", ""] == constant["LIC_M", ""], "the model's captions are not aligned"
    both = ("LIC", "LIC_D", "LIC_HM", "LIC_MH", "LIC_by_H", "LIC_by_M", "SC_D", "leakage")
    assert set(found) == {("LIC_M", ""), ("SC", "")} | {(name, "contextual_glove") for name in both}
    # Both are 5 degrees from theirs: 1 - cos 5 = 0.0038. Below that they are <unk> again.
    near = values(workspace, replace(request, options={"alignment": alignment_option(item, 0.0035)}))
    assert near["LIC_D", "contextual_glove_0.0035"] == pytest.approx(constant["LIC_D", "constant"])
    choices = [{}, *({"alignment": alignment_option(item, delta)} for delta in (0.4, 0.3))]
    assert len({plan(workspace, replace(request, options=own))[0].run_id for own in choices}) == 3


@pytest.mark.long
def test_the_sweep_by_hand(tools, monkeypatch):
    """Words of the captions: someone (known), spanner or whisk (0.0038 from a known word), zzz (no vector)."""
    workspace, request, path = tools
    monkeypatch.setattr(measure, "has_java", lambda: False)
    option = {"alignment": alignment_option(kept(workspace, path), 0.003)}
    (spec,) = plan(workspace, replace(request, metrics=("alignment",), options=option))
    outcome = run_one(workspace, spec, silent)
    found = {(row.metric, row.alignment): row.value for row in outcome.results}
    names = ["contextual_glove_0", "contextual_glove_0.003"]
    names += ["contextual_glove" if delta == 0.4 else f"contextual_glove_{delta:g}" for delta in measure.DELTAS[1:]]
    shares = [found["contextual_share", name] for name in names]
    assert shares == pytest.approx([0, 0] + [50] * 10), "one of two words outside"
    unknown = [found["unknown_share", name] for name in ["constant", *names]]
    assert unknown == pytest.approx([200 / 3] * 3 + [100 / 3] * 10)
    assert len(found) == 25 and {row.n for row in outcome.results} == {240}
    assert outcome.lacking == {"METEOR_aligned": measure.NO_JAVA}
