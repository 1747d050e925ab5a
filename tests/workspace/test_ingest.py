"""The contract of ingestion: what files are, what is stored of them, and that every way in stores the same."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import capbias_core as capbias
from capbias_core import cli
from capbias_core.cli.inputs import InputFlags, inputs
from capbias_core.errors import CapbiasError
from capbias_core.kinds import CAPTIONS, LABELS, OBJECTS, REFERENCES
from capbias_core.load.read import read_file
from capbias_core.question import Question
from capbias_core.runs.inputs import resolve
from capbias_core.runs.plan import plan
from capbias_core.views.results import first_request
from capbias_core.workspace import limited
from capbias_core.workspace.ingest import File, expand, held_by, ingest, preview, replaced_items, store, with_mapping
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep

LMMS_EVAL, VLMEVALKIT = "20260806_102223_samples_coco2014_cap_val.jsonl", "LLaVA_COCO_VAL.tsv"
WHO = {1: ("woman", "Female"), 2: ("man", "Male"), 3: ("woman", "Female"), 4: ("man", "Male")}
CAPTIONED = [{"image_id": image, "caption": f"a {word} with a dog"} for image, (word, _) in WHO.items()]
HUMAN = [{"image_id": image, "caption": f"a {word} stands outside"} for image, (word, _) in WHO.items()]
OTHERS = [{"image_id": image + 500, "caption": f"a dog in photograph {image}"} for image in WHO]
TWICE = [row | {"caption": f"{row['caption']} {where}"} for row in HUMAN for where in ("here", "there")]


def rows(records: list[dict]) -> str:
    return pd.DataFrame(records).to_csv(index=False)


def coco(records: list[dict]) -> str:
    numbered = [{"id": number} | row for number, row in enumerate(records)]
    return json.dumps({"images": [{"id": image} for image in WHO], "annotations": numbered})


TEXTS = {
    "strong.json": json.dumps(CAPTIONED),
    "weak.csv": rows(CAPTIONED[::-1]),
    "again/strong.json": json.dumps(CAPTIONED),
    "other/strong.json": json.dumps(CAPTIONED[:2]),
    "references.csv": rows(HUMAN),
    "human several.csv": rows(TWICE),
    "captions.json": coco(TWICE),
    "captions2.json": coco(HUMAN),
    "labels.csv": "image_id,gender,mood\n" + "".join(f"{image},{own},glad\n" for image, (_, own) in WHO.items()),
    "moods.csv": "image_id,mood\n1,glad\n2,sad\n3,glad\n4,sad\n",
    "codes.csv": "image_id,gender\n1,0\n2,1\n3,0\n4,1\n",
    "objects.csv": "image_id,objects\n9,dog\n",
    "beside.csv": rows([row | {"references": f"a cat in photograph {row['image_id']}"} for row in CAPTIONED]),
    "gendered.csv": rows([row | {"gender": WHO[row["image_id"]][1]} for row in CAPTIONED]),
    "wide.csv": rows([row | {"other": f"a dog and {row['caption']}"} for row in CAPTIONED]),
    "elsewhere.json": json.dumps(OTHERS),
    "broken.json": '[{"image_id": 1, "caption": "a wom',
    "prose.txt": "This is a text,\nwhich is no table\nat all.\n",
}


@pytest.fixture
def files(tmp_path, monkeypatch) -> Path:
    """The folder of TEXTS, as the current one; files are read in this process."""
    monkeypatch.setattr(limited, "_limited", True)
    folder = tmp_path / "files"
    for name, text in TEXTS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def workspace(tmp_path) -> Workspace:
    return Workspace(tmp_path / "home")


def stored(workspace: Workspace, collection: str = "c") -> list[tuple[str, str]]:
    return [(item.kind, item.name) for item in workspace.items(collection=collection)]


# detect


def test_a_file_is_read_as_the_user_says_whatever_it_looks_like(files):
    (wrong,) = preview([File(files / "weak.csv", LABELS)], read=read_file)
    assert (wrong.kind, wrong.reading.guess, wrong.frame.columns.to_list()) == (
        LABELS,
        CAPTIONS,
        ["image_id", "caption"],
    )
    (unread,) = preview([File(files / "labels.csv", CAPTIONS)], read=read_file)
    assert unread.frame is None and unread.reading.guess == LABELS and "labels.csv" in unread.reading.error.message


# store


def test_all_is_stored_together_labels_first_and_can_be_scored(files, workspace):
    assert first_request(workspace, "c") is None
    given = [File(files / name) for name in ("objects.csv", "strong.json", "captions.json", "labels.csv")]
    items = ingest(workspace, "c", [replace(file, trained=True) for file in given])
    assert [(item.kind, item.name, item.rows) for item in items] == [
        (LABELS, "labels", 4),
        (REFERENCES, "captions", 8),
        (OBJECTS, "objects", 1),
        (CAPTIONS, "strong", 4),
    ]
    assert items[-1].details["trained_on_references"] is True and items[0].details["attributes"].keys() == {"gender"}
    request = first_request(workspace, "c")
    assert (request.captions, request.attribute, request.references) == (("strong",), "gender", "captions")


# Files that are refused together -> what the message names
REFUSED = {
    ("labels.csv", "strong.json", "broken.json"): "broken.json",
    ("labels.csv", "strong.json", "nowhere.json"): "nowhere.json",
    ("labels.csv", "strong.json", "prose.txt"): "prose.txt",
    ("labels.csv", "strong.json", "other/strong.json"): "strong",
    ("strong.json", "moods.csv"): "NAME=COLUMN",
}


@pytest.mark.parametrize("names", REFUSED, ids=" ".join)
def test_nothing_is_stored_if_one_of_the_files_is_refused(files, workspace, names):
    with pytest.raises(CapbiasError) as error:
        ingest(workspace, "c", [File(files / name) for name in names])
    assert REFUSED[names] in str(error.value)
    assert workspace.items() == [] and not list((workspace.folder / "data").glob("*"))


@pytest.mark.long
def test_an_item_that_a_run_reads_is_not_replaced_and_nothing_else_is_stored(files, workspace):
    first = ingest(workspace, "c", [File(files / "labels.csv"), File(files / "strong.json")])
    (spec,) = plan(workspace, Question("c", ("strong",), "labels", "gender", ("ratio",)))
    assert workspace.enqueue(spec, "c")
    others = [File(files / "captions.json"), File(files / "other" / "strong.json")]
    with pytest.raises(CapbiasError, match="strong"):
        ingest(workspace, "c", others)
    assert stored(workspace) == [(item.kind, item.name) for item in first]
    # The same content again is no replacement, whatever reads it.
    ingest(workspace, "c", [File(files / "captions.json"), File(files / "again" / "strong.json")])
    assert (REFERENCES, "captions") in stored(workspace)


@pytest.mark.long
def test_what_new_files_would_replace(files, workspace):
    (item,) = ingest(workspace, "c", [File(files / "strong.json", trained=True)])
    for name, expected in (("again/strong.json", []), ("other/strong.json", [item]), ("weak.csv", [])):
        assert replaced_items(workspace, "c", preview([File(files / name)], read=read_file)) == expected
    assert replaced_items(workspace, "other", preview([File(files / "other" / "strong.json")], read=read_file)) == []
    (same,) = ingest(workspace, "c", [File(files / "again" / "strong.json")])
    assert same.details["trained_on_references"] is True, "a file that says nothing about it changes nothing"
    (new,) = ingest(workspace, "c", [File(files / "other" / "strong.json")])
    assert new.hash != item.hash and [own.hash for own in workspace.items()] == [new.hash]


def test_two_annotators_are_a_table_each(workspace):
    table = [{"image_id": image, "first": own, "second": own[:1].lower()} for image, (_, own) in WHO.items()]
    items = keep(workspace, labels=table, attribute=("gender=first", "gender=second"))
    columns = {name: item.details["attributes"]["gender"]["column"] for name, item in items.items()}
    assert columns == {"labels first": "first", "labels second": "second"}


def test_images_that_files_share_with_each_other_and_with_a_collection(files, workspace):
    names = ("strong.json", "captions.json", "labels.csv", "objects.csv")
    parts = preview([File(files / name) for name in names], read=read_file)
    assert [part.known for part in parts] == [4, 4, 4, 0]
    assert preview([File(files / "strong.json")], read=read_file)[0].known is None
    keep(workspace, labels=files / "labels.csv", attribute="gender")
    (alone,) = preview([File(files / "strong.json")], held_by(workspace, "c"), read_file)
    assert alone.known == 4


@pytest.mark.parametrize("first", [0, 1000])
def test_file_names_join_although_numbers_are_equal_by_chance(tmp_path, first):
    """The human captions count images from 1; some of these numbers are also in their file names."""
    numbers = [first + 2 * image for image in range(1, 9)]
    images = [{"id": image, "file_name": f"COCO_val2014_{n:012}.jpg"} for image, n in enumerate(numbers, start=1)]
    people = [{"id": image, "image_id": image, "caption": "a woman"} for image in range(1, 9)]
    contents = {
        "model.json": json.dumps([{"image_id": str(number), "caption": "a man"} for number in numbers]),
        "labels.csv": "image_id,gender\n" + "".join(f"{number},Female\n" for number in numbers),
        "refs.json": json.dumps({"images": images, "annotations": people}),
    }
    for name, text in contents.items():
        (tmp_path / name).write_text(text)
    parts = preview([File(tmp_path / name) for name in contents], read=read_file)
    assert [set(part.frame["image_id"]) for part in parts] == [set(map(str, numbers))] * 3


# files by position -> captioners, references, table of labels; or what the error names
ROLES = {
    ("strong.json", "references.csv", "labels.csv"): (["strong", "references"], "", "labels"),
    ("labels.csv", "captions.json", "weak.csv", "strong.json"): (["weak", "strong"], "captions", "labels"),
    ("strong.json", "captions.json"): (["strong"], "captions", "gender from captions"),
    ("beside.csv", "captions.json", "labels.csv"): (["beside"], "captions", "labels"),
    # Nothing is guessed, and no labels are derived over those that are given.
    ("strong.json", "captions.json", "captions2.json", "labels.csv"): "captions2.json",
    ("strong.json", "captions.json", "codes.csv"): "gender",
    ("strong.json", "moods.csv"): "gender",
    ("strong.json", "captions.json", "moods.csv"): "gender",
    ("gendered.csv", "captions.json"): "gendered.csv has a column gender",
    ("labels.csv", "captions.json"): "captions",
    ("strong.json", "elsewhere.json", "labels.csv"): "elsewhere.json",
    ("strong.json", "again/strong.json", "labels.csv"): "strong",
}


@pytest.mark.parametrize("names", ROLES, ids=" ".join)
def test_what_positional_files_are_read_as(files, workspace, names):
    expected, lines = ROLES[names], []
    given = Question.of(collection="c", files=names, attribute="gender")
    if isinstance(expected, str):
        with pytest.raises(CapbiasError) as error:
            resolve(workspace, given, lines.append)
        assert expected in error.value.arguments or expected in str(error.value)
        assert not workspace.items()
        return
    resolved = resolve(workspace, given, lines.append)
    assert (list(resolved.captions), resolved.references, resolved.labels) == expected
    assert all(f"{name}: " in lines[0] for name in names)


@pytest.mark.long
def test_human_captions_beside_a_models_are_stored_only_if_their_images_have_none(files, formats, workspace):
    parts = preview([File(formats / LMMS_EVAL), File(formats / LMMS_EVAL, name="other")], read=read_file)
    assert [(part.kind, part.reading.second, part.wanted, len(part.frame)) for part in parts] == [
        (CAPTIONS, False, True, 40),
        (REFERENCES, True, True, 200),
        (CAPTIONS, False, True, 40),
        (REFERENCES, True, False, 200),
    ]
    alone = preview([File(files / "beside.csv"), File(files / "captions.json")], read=read_file)
    assert [(part.kind, part.wanted) for part in alone] == [(CAPTIONS, True), (REFERENCES, False), (REFERENCES, True)]
    ingest(workspace, "c", [File(files / "captions.json")])
    ingest(workspace, "c", [File(files / "beside.csv")])
    assert stored(workspace) == [(REFERENCES, "captions"), (CAPTIONS, "beside")]


@pytest.mark.long
def test_rows_without_ids_get_those_of_human_captions_with_the_same_text(formats, workspace):
    files = [File(formats / LMMS_EVAL, name="samples"), File(formats / VLMEVALKIT, name="rows")]
    alone = preview(files[1:], read=read_file)
    assert [part.images for part in alone] == [{f"row {number}" for number in range(40)}] * 2
    samples, human, rows = preview(files, read=read_file)
    assert rows.kind == CAPTIONS and rows.images == samples.images == human.images
    ingest(workspace, "c", files[:1])
    (later,) = preview(files[1:], held_by(workspace, "c"), read_file)
    assert later.images == samples.images and len(later.frame) == 40


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        ("samples", {"m": ["a dog", "dogs", "a dog", "a cat", "one cat"]}),
        ("each", {"m 1": ["a dog", "a cat"], "m 2": ["dogs", "one cat"], "m 3": ["a dog"]}),
        ("prompt", {"m prompt 1": ["a dog", "dogs", "one cat"], "m prompt 2": ["a dog", "a cat"]}),
    ],
)
def test_several_captions_of_an_image_are_samples_or_sets(files, workspace, sets, expected):
    lines = ["1,Say it.,a dog", "1,Say it.,dogs", "1,Describe it.,a dog", "2,Describe it.,a cat", "2,Say it.,one cat"]
    Path("m.csv").write_text("\n".join(["image_id,prompt,caption", *lines]))
    items = ingest(workspace, "c", [File(Path("m.csv"), sets=sets)])
    frames = {item.name: workspace.frame(item.hash) for item in items}
    assert {name: frame["caption"].to_list() for name, frame in frames.items()} == expected
    for frame in frames.values():
        assert not frame.duplicated(["image_id", "caption_index"]).any() and set(frame["caption_index"]) <= {0, 1, 2}


def test_archives_are_replaced_by_their_files_and_what_is_no_table_is_named(files, tmp_path):
    lines = []
    with zipfile.ZipFile("all.zip", "w") as archive, zipfile.ZipFile("none.zip", "w") as none:
        for name in ("strong.json", "labels.csv", "prose.txt"):
            archive.write(name)
        none.write("prose.txt")
    with zipfile.ZipFile("texts.zip", "w") as archive:
        for image in WHO:
            archive.writestr(f"{image}.txt", "a dog")
    names = [path.name for path in expand(["weak.csv", "all.zip"], tmp_path / "out", lines.append)]
    assert names == ["weak.csv", "strong.json", "labels.csv"]
    assert len(lines) == 1 and "all.zip" in lines[0] and "prose.txt" in lines[0]
    (texts,) = preview(map(File, expand(["texts.zip"], tmp_path / "texts", lines.append)), read=read_file)
    assert texts.images == {str(image) for image in WHO}
    with pytest.raises(CapbiasError, match="prose.txt"):
        expand(["none.zip"], tmp_path / "none", lines.append)


@pytest.mark.long
def test_columns_of_several_captioners_are_the_same_sets_whichever_way_they_come_in(files, tmp_path, capsys):
    """What each set is read from is stored with it."""
    columns = ["caption", "other"]
    with pytest.raises(CapbiasError) as asked:
        capbias.score("wide.csv", "labels.csv", "gender", metrics=["ratio"])
    assert "caption_column=other" in asked.value.arguments
    assert cli.main(["score", "wide.csv", "labels.csv", "--attribute", "gender"]) == 2
    assert "\n  --caption-column other\n" in capsys.readouterr().err
    given = {"workspace": tmp_path / "api", "collection": "c", "caption_column": columns}
    capbias.score("wide.csv", "labels.csv", "gender", metrics=["ratio"], **given)
    flags = [word for column in columns for word in ("--caption-column", column)]
    assert cli.main(["import", "wide.csv", *flags, "--collection", "c", "--workspace", str(tmp_path / "import")]) == 0
    for way in ("api", "import"):
        items = {item.name: item for item in Workspace(tmp_path / way).items(CAPTIONS, "c")}
        assert items.keys() == set(columns), way
        assert items["other"].details["account"][:2] == [["Image ID", "image_id"], ["Captions", "caption, other"]]


@pytest.mark.long
def test_the_same_files_are_the_same_items_whichever_way_they_come_in(files, tmp_path):
    models = ["strong.json", "weak.csv"]
    names = [*models, "captions.json", "labels.csv"]
    ways = {}
    flags = InputFlags(attribute="gender", captions=models, labels="labels.csv")
    asked = {
        "files": InputFlags(attribute="gender").question(names),
        "flags": flags.question(references="captions.json"),
    }
    for way, question in asked.items():
        workspace, resolved = inputs(flags, question, print)
        ways[way] = workspace.items(collection=resolved.collection)
    home = tmp_path / "api"
    capbias.score(models, "labels.csv", "gender", "captions.json", ["ratio"], workspace=home, collection="c")
    ways["api"] = Workspace(home).items(collection="c")
    tables = {"strong": pd.DataFrame(CAPTIONED), "weak": pd.DataFrame(CAPTIONED[::-1])}
    people, labels = {"captions": pd.DataFrame(TWICE)}, pd.read_csv("labels.csv")
    keep(Workspace(tmp_path / "tables"), captions=tables, labels=labels, references=people, attribute="gender")
    ways["tables"] = Workspace(tmp_path / "tables").items()
    assert cli.main(["import", *names, "--collection", "c", "--workspace", str(tmp_path / "import")]) == 0
    ways["import"] = Workspace(tmp_path / "import").items()
    page = Workspace(tmp_path / "page")  # as the drop zone does
    store(page, "c", [with_mapping(part) for part in preview([File(files / name) for name in names])])
    ways["page"] = page.items()
    hashes = {way: {(item.kind, item.name): item.hash for item in items} for way, items in ways.items()}
    expected = {(CAPTIONS, "strong"), (CAPTIONS, "weak"), (REFERENCES, "captions"), (LABELS, "labels")}
    assert hashes["files"].keys() == expected
    assert all(stored_hashes == hashes["files"] for stored_hashes in hashes.values())
