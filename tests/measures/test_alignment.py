"""Vocabulary alignment: vector files, the nearest word, runs that use it, the sweep over delta, the command line."""

import gzip
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.aggregate import unlabelled
from capbias_core.errors import CapbiasError
from capbias_core.load.vectors import read_vectors
from capbias_core.measures import alignment as measure
from capbias_core.metrics.caption_quality import has_java
from capbias_core.prepare.align import neighbours
from capbias_core.prepare.tokens import Tokens
from capbias_core.runs.plan import Request, plan
from capbias_core.runs.run import run_one
from capbias_core.types import Vectors, silent
from capbias_core.views.alignment import constant_sentence
from capbias_core.workspace.store import Workspace, bytes_frame
from capbias_core.workspace.vectors import aligner, alignment_option, keep_vectors, looked_up, offer_vectors
from tests.collections_ import keep

ROOT = Path(__file__).resolve().parents[2]
ROWS = {"the": [0.5, -2, 3], "cat": [1, 0, 0.25], "naïve": [1, 1, 1]}


# vector files, written by hand


def glove(rows: dict) -> bytes:
    return "".join(f"{word} {' '.join(map(str, own))}\n" for word, own in rows.items()).encode()


def fasttext(rows: dict) -> bytes:
    """With a first line, and a space at the end of every row, as fastText writes."""
    head = f"{len(rows)} {len(next(iter(rows.values())))}\n"
    return head.encode() + glove(rows).replace(b"\n", b" \n")


def tabbed(rows: dict) -> bytes:
    return glove(rows).replace(b" ", b"\t")


def word2vec(rows: dict, end: bytes = b"\n") -> bytes:
    """The binary form; word2vec ends a row with a line break, gensim with nothing."""
    parts = [f"{len(rows)} {len(next(iter(rows.values())))}\n".encode()]
    for word, own in rows.items():
        parts += [word.encode(), b" ", struct.pack(f"<{len(own)}f", *own), end]
    return b"".join(parts)


FORMATS = {
    "glove.txt": glove,
    "fasttext.vec": fasttext,
    "tabs.txt": tabbed,
    "word2vec.bin": word2vec,
    "gensim.bin": lambda rows: word2vec(rows, b""),
}


@pytest.mark.parametrize("to_npz", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_vectors(tmp_path, name, to_npz):
    path = tmp_path / (f"{name}.gz" if to_npz else name)
    data = FORMATS[name](ROWS)
    path.write_bytes(gzip.compress(data) if to_npz else data)
    found = read_vectors(path, {"naïve", "cat", "dog"})
    assert found.words == ("cat", "naïve") and found.matrix.dtype == np.float32
    assert found.matrix.tolist() == [[1, 0, 0.25], [1, 1, 1]]


BAD = {
    "fewer numbers": (b"a 1 2 3\nb 1 2\n", "line 2: a row of another dimension"),
    "more numbers": (b"a 1 2\nb 1 2 3\n", "line 2: a row of another dimension"),
    "another dimension than the first line says": (b"2 3\na 1 2\nb 1 2\n", "line 2: a row of another dimension"),
    "not a number": (b"a 1 2\nb 3 4\ncat 1 x\n", r"line 3: not a number \(x\)"),
    "infinite": (b"a 1 2\ncat inf 2\n", "line 2: not a number"),
    "infinite in binary": (word2vec({"cat": [1, float("nan")]}), "row 1: not a number"),
    "no word in common": (b"dog 1 2\n", "a vector for none of the 1 words"),
    "cut text": (b"5 2\ncat 1 2\n", "v.txt has 1 rows.*says 5"),
    "the model of fastText": (struct.pack("<iii", 793712314, 12, 300) + b"\n" * 40, "not a vector file.*the .vec"),
    "cut binary": (word2vec(ROWS)[:-8], "v.txt has 2 rows.*says 3"),
    "cut gzip": (gzip.compress(glove(ROWS))[:-9], "cut off or damaged"),
    "captions": (b'[{"image_id": 1, "caption": "a cat"}]', "not a vector file"),
    "a table": (b"image_id,gender\n1,Female\n", "not a vector file"),
    "empty": (b"", "not a vector file"),
    "an image": (bytes(range(256)) * 9, "not a vector file"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_vector_file_is_one_clear_message(tmp_path, name):
    data, message = BAD[name]
    path = tmp_path / "v.txt"
    path.write_bytes(data)
    with pytest.raises(CapbiasError, match=message):
        read_vectors(path, {"cat"})


# the nearest word

# On a circle, so that the cosine distance is 1 - cos of the difference of angles.
ANGLES = {"chair": 0, "table": 90, "seat": 30, "bench": 60, "sofa": 53, "opposite": 180}


def at_angles(angles: dict[str, float], length: float = 1.0) -> Vectors:
    rad = np.deg2rad(list(angles.values()))
    return Vectors(tuple(angles), (length * np.column_stack([np.cos(rad), np.sin(rad)])).astype(np.float32))


def test_the_nearest_word_and_its_distance_by_hand():
    found = neighbours(
        {"seat", "sofa", "opposite", "ocarina", "<gender>", "chair"},
        frozenset(["chair", "table", "a"]),
        at_angles(ANGLES),
    )
    # 30 degrees from chair: 1 - cos 30 = 0.134. 37 from table: 0.201. opposite: 90 from table, 180 from chair: 1.
    assert found.nearest == {"seat": "chair", "sofa": "table", "opposite": "table"}
    assert found.distance["seat"] == pytest.approx(1 - np.sqrt(3) / 2, abs=1e-6)
    assert found.distance["sofa"] == pytest.approx(1 - np.cos(np.deg2rad(37)), abs=1e-6)
    assert found.distance["opposite"] == pytest.approx(1, abs=1e-6)
    assert found.within(0.4) == {"seat": "chair", "sofa": "table"}
    assert found.within(0.15) == {"seat": "chair"} and found.within(0.0) == {}


def test_words_without_a_vector_or_with_one_of_length_0_have_no_neighbour():
    vectors = Vectors(("none", "model", "null"), np.array([[0, 0], [0, 1], [0, 0]], dtype=np.float32))
    assert neighbours({"none", "other"}, frozenset(["model", "null"]), vectors).nearest == {}
    assert neighbours({"x"}, frozenset(["y"]), vectors).nearest == {}


def test_the_product_of_matrices_equals_word_by_word(monkeypatch):
    monkeypatch.setattr("capbias_core.prepare.align.ROWS", 7)
    rng = np.random.default_rng(1)
    words = [f"h{place}" for place in range(40)] + [f"m{place}" for place in range(25)]
    vectors = Vectors(tuple(words), rng.normal(size=(65, 6)).astype(np.float32))
    found = neighbours(words[:40], frozenset(words[40:]), vectors)
    for place, word in enumerate(words[:40]):
        own = vectors.matrix[place].astype(float)
        distances = {
            other: 1
            - sum(a * b for a, b in zip(own, vectors.matrix[40 + at].astype(float), strict=True))
            / (np.sqrt(sum(a * a for a in own)) * np.sqrt(sum(b * b for b in vectors.matrix[40 + at].astype(float))))
            for at, other in enumerate(words[40:])
        }
        nearest = min(distances, key=distances.get)
        assert found.nearest[word] == nearest and found.distance[word] == pytest.approx(distances[nearest], abs=1e-5)


# runs


def captions_of(texts: dict[str, str]) -> pd.DataFrame:
    return pd.DataFrame({"image_id": list(texts), "caption_index": 0, "caption": list(texts.values())})


ANGLES_OF_SET = {"someone": 320, "here": 200, "spanner": 5, "wrench": 0, "whisk": 95, "spoon": 90, "unrelated": 270}


@pytest.fixture
def tools(tmp_path) -> tuple[Workspace, Request, Path]:
    """People write spanner (A) and whisk (B); the captioner only knows wrench and spoon, and says them at random."""
    rng = np.random.default_rng(2)
    labels = {f"{place}": "AB"[place % 2] for place in range(240)}
    human = {image: f"someone {'spanner' if value == 'A' else 'whisk'} zzz" for image, value in labels.items()}
    model = {image: f"someone {('wrench', 'spoon')[rng.integers(2)]} here" for image in labels}
    workspace = Workspace(tmp_path / "workspace")
    table = pd.DataFrame({"image_id": list(labels), "group": list(labels.values())})
    keep(workspace, labels=table, attribute="group", captions=captions_of(model), references=captions_of(human))
    path = tmp_path / "my glove.txt"
    path.write_bytes(glove(dict(zip(ANGLES_OF_SET, at_angles(ANGLES_OF_SET, 3).matrix.tolist(), strict=True))))
    request = Request("c", ("m",), "labels", "group", ("lic",), "human", seeds=2)
    return workspace, request, path


def kept(workspace: Workspace, path: Path):
    return keep_vectors(workspace, offer_vectors(workspace, path, "c"), path.stem, "c")


def values(workspace: Workspace, request: Request) -> dict[tuple[str, str], float]:
    results = [row for spec in plan(workspace, request) for row in run_one(workspace, spec, silent).results]
    return {(row.metric, row.alignment): row.value for row in results if row.direction in ("", "A->T")}


@pytest.mark.long
def test_an_informative_human_word_keeps_what_it_says_under_contextual_alignment(tools):
    workspace, request, path = tools
    constant = values(workspace, request)
    item = kept(workspace, path)
    found = values(workspace, replace(request, options={"alignment": alignment_option(item)}))
    assert constant["LIC_D", "constant"] == pytest.approx(25, abs=1), "spanner and whisk both became <unk>"
    # spanner -> wrench and whisk -> spoon tell A from B in every caption.
    assert found["LIC_D", "contextual_glove"] > 80
    assert found["LIC_M", ""] == constant["LIC_M", ""], "the model's captions are not aligned"
    assert set(found) == {("LIC_M", ""), ("SC", "")} | {
        (name, "contextual_glove")
        for name in ("LIC", "LIC_D", "LIC_HM", "LIC_MH", "LIC_by_H", "LIC_by_M", "SC_D", "leakage")
    }
    # Both are 5 degrees from theirs: 1 - cos 5 = 0.0038. Below that they are <unk> again.
    near = values(workspace, replace(request, options={"alignment": alignment_option(item, 0.0035)}))
    assert near["LIC_D", "contextual_glove_0.0035"] == pytest.approx(constant["LIC_D", "constant"])


def test_alignment_is_part_of_a_run_only_where_human_captions_are(tools):
    workspace, request, path = tools
    option = {"alignment": alignment_option(kept(workspace, path))}
    (constant,), (contextual,) = plan(workspace, request), plan(workspace, replace(request, options=option))
    (other,) = plan(workspace, replace(request, options={"alignment": option["alignment"] | {"delta": 0.3}}))
    assert len({constant.run_id, contextual.run_id, other.run_id}) == 3
    assert plan(workspace, replace(request, references="", options=option)) == plan(
        workspace, replace(request, references="")
    )


def test_aligned_captions_for_other_measures(tools):
    workspace, _, path = tools
    option, known = alignment_option(kept(workspace, path)), frozenset(["someone", "wrench", "spoon"])
    captions = Tokens.read(["someone spanner zzz <mask>"])
    assert list(aligner(workspace, option)(captions.words, known).captions(captions)) == ["someone wrench <unk> <mask>"]
    assert list(aligner(workspace, None)(captions.words, known).captions(captions)) == ["someone <unk> <unk> <mask>"]
    with pytest.raises(CapbiasError, match="'ocarina', were not looked up in glove"):
        aligner(workspace, option)(["someone", "ocarina"], known)


# what is kept


def test_the_place_and_the_needed_vectors_are_kept_and_go_with_their_runs(tools):
    workspace, request, path = tools
    item = kept(workspace, path)
    assert item.details["path"] == str(path) and item.details["found"] == 6 and item.rows == 7
    assert looked_up(workspace, item.hash) == {"someone", "here", "spanner", "whisk", "wrench", "spoon", "zzz"}
    (spec,) = plan(workspace, replace(request, options={"alignment": alignment_option(item)}))
    assert workspace.enqueue(spec, "c", "t") and workspace.claim(spec.run_id, "t")
    assert [run.run_id for run in workspace.using(item)] == [spec.run_id]
    with pytest.raises(CapbiasError, match="A run is reading"):
        workspace.delete(item)
    workspace.finish(spec.run_id, "t", [], {}, ())
    assert workspace.delete(item) == 1 and workspace.runs() == [] and path.exists()
    with pytest.raises(CapbiasError, match="missing"):
        workspace.frame(item.hash)


def test_words_of_later_captions_are_looked_up_in_the_same_file(tools, tmp_path):
    workspace, request, path = tools
    item = kept(workspace, path)
    keep(workspace, captions={"later": [{"image_id": 1, "caption": "someone unrelated ocarina"}]})
    (again,) = workspace.items("vectors", "c")
    assert again.hash == item.hash and looked_up(workspace, item.hash) > {"unrelated", "ocarina", "spanner"}
    assert again.details["found"] == 7


# the sweep


def test_the_sweep_by_hand(tools, monkeypatch):
    """Words of the captions: someone (known), spanner or whisk (0.0038 from a known word), zzz (no vector)."""
    workspace, request, path = tools
    monkeypatch.setattr(measure, "has_java", lambda: False)
    option = {"alignment": alignment_option(kept(workspace, path), 0.003)}
    (spec,) = plan(workspace, replace(request, metrics=("alignment",), options=option))
    outcome = run_one(workspace, spec, silent)
    table = bytes_frame(outcome.arrays["sweep"]).set_index("delta")
    assert list(table.index) == [0, 0.003, *measure.DELTAS[1:]]
    assert table["contextual"].tolist() == pytest.approx([0, 0] + [50] * 10), "one of two words outside"
    assert table["unknown"].tolist() == pytest.approx([200 / 3, 200 / 3] + [100 / 3] * 10)
    assert table["unknown_constant"].tolist() == pytest.approx([200 / 3] * 12)
    assert (table["captions"] == 240).all() and (table["images"] == 240).all()
    assert table["METEOR"].isna().all() and outcome.lacking == {"METEOR_aligned": measure.NO_JAVA}
    found = {(row.metric, row.alignment): row for row in outcome.results}
    assert found["contextual_share", "contextual_glove"].value == pytest.approx(50)
    assert found["unknown_share", "constant"].value == pytest.approx(200 / 3) and found["unknown_share", "constant"].n
    assert ("contextual_share", "constant") not in found and not any("METEOR" in name for name, _ in found)


@pytest.mark.long
@pytest.mark.skipif(not has_java(), reason="METEOR needs Java")
@pytest.mark.slow
def test_meteor_of_the_sweep(tools):
    """Java starts once. Half of the captions have spanner, which METEOR knows as a synonym of wrench; whisk is none of
    spoon. Expected: METEOR of each pair of captions by itself."""
    workspace, _, path = tools
    human = Tokens.read(["someone spanner zzz"] * 3 + ["someone whisk zzz", "someone here"])
    known = frozenset(["someone", "here", "wrench", "spoon"])
    near = neighbours({"spanner", "whisk"}, known, read_vectors(path, ANGLES_OF_SET))
    found = measure.sweep(pd.Series(list("abcde")), unlabelled, human, known, near, [0.4], silent)
    constant, nearest = (found[delta].columns["METEOR"] for delta in (None, 0.4))
    assert constant[4] == nearest[4] == 1, "a caption that stays as it is"
    assert len(set(constant[:4])) == 1, "one of three words is left, whichever the others were"
    assert len(set(nearest[:3])) == 1 and nearest[0] > 2 * nearest[3] > 0
    table = measure.sweep_table(found, measure.sweep_numbers(found))
    assert table["METEOR"].tolist() == pytest.approx([100 * nearest.mean()])
    assert table["METEOR_constant"].tolist() == pytest.approx([100 * constant.mean()])
    assert (table["METEOR_low"] < table["METEOR"]).all() and (table["METEOR_high"] > table["METEOR"]).all()


# the command line


@pytest.fixture
def files(tmp_path) -> Path:
    labels = {f"{place}": "AB"[place % 2] for place in range(80)}
    pd.DataFrame({"image_id": list(labels), "group": list(labels.values())}).to_csv(
        tmp_path / "labels.csv", index=False
    )
    human = {image: f"someone {'spanner' if value == 'A' else 'whisk'}" for image, value in labels.items()}
    model = {image: f"someone {('wrench', 'spoon')[int(image) // 2 % 2]}" for image in labels}
    for name, texts in (("human", human), ("sat", model)):
        captions_of(texts).drop(columns="caption_index").to_csv(tmp_path / f"{name}.csv", index=False)
    (tmp_path / "glove.txt").write_bytes(
        glove(dict(zip(ANGLES_OF_SET, at_angles(ANGLES_OF_SET).matrix.tolist(), strict=True)))
    )
    return tmp_path


def test_align_prints_a_row_a_delta(files, capsys, monkeypatch):
    monkeypatch.setattr("capbias_core.cli.views.has_java", lambda: False)
    monkeypatch.setattr(measure, "has_java", lambda: False)
    options = ["--captions", "sat.csv", "--references", "human.csv", "--vectors", "glove.txt", "--delta", "0", "0.4"]
    monkeypatch.chdir(files)
    assert cli.main(["score", "--view", "align", *options, "--output", "sweep.csv"]) == 0
    table = pd.read_csv("sweep.csv")
    assert table["delta"].tolist() == [0, 0.4] and table["contextual"].tolist() == [0, 100]
    assert table["unknown"].tolist() == [50, 0] and table["unknown_constant"].tolist() == [50, 50]
    assert table["METEOR"].isna().all() and capsys.readouterr().err.count("no Java") == 1
    labels = ["--labels", "labels.csv"]
    assert cli.main(["score", "--view", "align", *options, *labels]) == 2
    assert "--labels" in capsys.readouterr().err
    assert cli.main(["score", "--view", "align", *options, *labels, "--attribute", "group"]) == 0
    assert cli.main(["score", "--view", "align", *options, "--attribute", "gendre"]) == 2
    assert cli.main(["score", "--view", "align", *options, "--delta", "nan"]) == 2
    assert "a cosine distance" in capsys.readouterr().err


# beside the printed values


# what pages show


def test_constant_alignment_by_hand(tools):
    """Of the three words of each human caption the captioner knows one; zzz is lost 240 times, the others 120."""
    workspace, request, _ = tools
    spec = next(spec for spec in plan(workspace, request) if spec.references)
    said, support = constant_sentence(workspace, spec)
    assert said.startswith("Constant alignment turns 66.7% of") and support.endswith("Most often: zzz, spanner, whisk.")
    assert support.startswith("240 human captions of 240 images")
    assert constant_sentence(workspace, spec) == (said, support), "as it was kept"
