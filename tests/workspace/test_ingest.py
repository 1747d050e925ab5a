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
from capbias_core.load.parsed import CAPTIONS, LABELS, OBJECTS, REFERENCES
from capbias_core.load.read import read_file
from capbias_core.runs.plan import Request, plan
from capbias_core.runs.plan_file import keep_plan, read_plan
from capbias_core.views.results import first_request
from capbias_core.workspace.ingest import File, expand, held_by, ingest, preview, replaced_items, store, with_mapping
from capbias_core.workspace.inputs import Inputs, resolve, source_file
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep

LMMS_EVAL, VLMEVALKIT = "20260806_102223_samples_coco2014_cap_val.jsonl", "LLaVA_COCO_VAL.tsv"
WHO = {1: ("woman", "Female"), 2: ("man", "Male"), 3: ("woman", "Female"), 4: ("man", "Male")}
CAPTIONED = [{"image_id": image, "caption": f"a {word} with a dog"} for image, (word, _) in WHO.items()]
HUMAN = [{"image_id": image, "caption": f"a {word} stands outside"} for image, (word, _) in WHO.items()]
OTHERS = [{"image_id": image + 500, "caption": f"a dog in photograph {image}"} for image in WHO]
TWICE = [row | {"caption": f"{row['caption']} {where}"} for row in HUMAN for where in ("here", "there")]
OUTLINE = {"id": 1, "image_id": 1, "category_id": 1, "segmentation": [[1, 1, 4, 1, 4, 4]], "bbox": [1, 1, 3, 3]}
INSTANCES = {"images": [{"id": 1, "height": 9, "width": 9}], "categories": [{"id": 1, "name": "tie"}]}


def rows(records: list[dict]) -> str:
    return pd.DataFrame(records).to_csv(index=False)


def coco(records: list[dict], ids: bool = True) -> str:
    numbered = [{"id": number} | row if ids else row for number, row in enumerate(records)]
    return json.dumps({"images": [{"id": image} for image in WHO], "annotations": numbered})


TEXTS = {
    "strong.json": json.dumps(CAPTIONED),
    "weak.csv": rows(CAPTIONED[::-1]),
    "again/strong.json": json.dumps(CAPTIONED),
    "other/strong.json": json.dumps(CAPTIONED[:2]),
    "llava-human-aligned.json": json.dumps(HUMAN),
    "references.csv": rows(HUMAN),
    "several.csv": rows(TWICE),
    "human several.csv": rows(TWICE),
    "numbered.csv": rows([row | {"caption_id": number} for number, row in enumerate(TWICE)]),
    "captions.json": coco(TWICE),
    "captions2.json": coco(HUMAN),
    "without ids.json": coco(TWICE, ids=False),
    "labels.csv": "image_id,gender,mood\n" + "".join(f"{image},{own},glad\n" for image, (_, own) in WHO.items()),
    "labels2.csv": "image_id,gender\n" + "".join(f"{image},{own}\n" for image, (_, own) in WHO.items()),
    "moods.csv": "image_id,mood\n1,glad\n2,sad\n3,glad\n4,sad\n",
    "codes.csv": "image_id,gender\n1,0\n2,1\n3,0\n4,1\n",
    "objects.csv": "image_id,objects\n9,dog\n",
    "boxes.csv": "image,class,confidence,x1,y1,x2,y2\n1.jpg,cat,0.9,0,0,10,10\n",
    "instances.json": json.dumps(INSTANCES | {"annotations": [OUTLINE]}),
    "bare.json": json.dumps(INSTANCES | {"annotations": [{**OUTLINE, "segmentation": None}]}),
    "beside.csv": rows([row | {"references": "a cat"} for row in CAPTIONED]),
    "elsewhere.json": json.dumps(OTHERS),
    "broken.json": '[{"image_id": 1, "caption": "a wom',
    "prose.txt": "This is a text,\nwhich is no table\nat all.\n",
}


@pytest.fixture
def files(tmp_path, monkeypatch) -> Path:
    """The folder of TEXTS, as the current one."""
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
    """The human captions count images from 1; of the numbers in their file names some are the same."""
    files = {str(place): first + 2 * place for place in range(1, 9)}
    images = [{"id": int(image), "file_name": f"COCO_val2014_{number:012}.jpg"} for image, number in files.items()]
    people = [{"id": n, "image_id": n, "caption": "a woman"} for n in range(1, 9)]
    labels = "image_id,gender\n" + "".join(f"{number},Female\n" for number in files.values())
    captions = {str(number): "a man" for number in files.values()}
    contents = {
        "model.json": json.dumps([{"image_id": image, "caption": caption} for image, caption in captions.items()]),
        "labels.csv": labels,
        "refs.json": json.dumps({"images": images, "annotations": people}),
    }
    for name, text in contents.items():
        (tmp_path / name).write_text(text)
    parts = preview([File(tmp_path / name) for name in contents], read=read_file)
    expected = {str(number) for number in files.values()}
    assert [set(part.frame["image_id"]) for part in parts] == [expected] * 3


# decide: roles


# files by position -> captioners, references, table of labels
ROLES = {
    ("strong.json", "references.csv", "labels.csv"): (["strong", "references"], "", "labels"),
    ("strong.json", "human several.csv", "labels.csv"): (["strong", "human several"], "", "labels"),
    ("strong.json", "without ids.json", "labels.csv"): (["strong", "without ids"], "", "labels"),
    ("labels.csv", "captions.json", "weak.csv", "strong.json"): (["weak", "strong"], "captions", "labels"),
    ("strong.json", "captions.json", "moods.csv"): (["strong"], "captions", "gender from captions"),
    ("beside.csv", "captions.json", "labels.csv"): (["beside"], "captions", "labels"),
    # Nothing is guessed, and no labels are derived over those that are given.
    ("strong.json", "captions.json", "captions2.json", "labels.csv"): "captions2.json",
    ("strong.json", "labels.csv", "labels2.csv"): "labels",
    ("strong.json", "captions.json", "codes.csv"): "gender",
    ("strong.json", "moods.csv"): "gender",
    ("labels.csv", "captions.json"): "captions",
    ("strong.json", "elsewhere.json", "labels.csv"): "elsewhere.json",
    ("strong.json", "prose.txt", "labels.csv"): "prose.txt",
    ("strong.json", "again/strong.json", "labels.csv"): "strong",
}


@pytest.mark.parametrize("names", ROLES, ids=" ".join)
def test_what_positional_files_are_taken_for(files, workspace, names):
    expected, lines = ROLES[names], []
    given = Inputs("gender", [File(Path(name)) for name in names])
    if isinstance(expected, str):
        with pytest.raises(CapbiasError) as error:
            resolve(workspace, "c", given, lines.append)
        assert expected in error.value.arguments or expected in str(error.value)
        assert not workspace.items()
        return
    found = resolve(workspace, "c", given, lines.append)
    assert (list(found.captions), found.references, found.table) == expected
    # The first line says what each file is taken for, in the order in which they were given.
    places = [lines[0].index(f"{name}: ") for name in names]
    assert places == sorted(places)
    unsure = {"several", "human several", "numbered", "without ids", "references", "llava-human-aligned"} & {
        *expected[0]
    }
    notes = [line for line in lines if "as references" in line]
    assert len(notes) == len(unsure) and all(name in note for name, note in zip(unsure, notes, strict=True))


def test_a_role_that_the_user_gives_is_not_questioned(files, workspace):
    given = [source_file("several.csv", REFERENCES), source_file("captions.json", CAPTIONS)]
    given += [source_file("labels.csv", LABELS)]
    lines = []
    found = resolve(workspace, "c", Inputs("gender", given), lines.append)
    assert (found.captions, found.references) == (("captions",), "several")
    assert not any("--references" in line for line in lines)


def test_swapped_files_are_an_error_that_names_both(files, workspace):
    given = [source_file("labels.csv", CAPTIONS), source_file("strong.json", LABELS)]
    with pytest.raises(CapbiasError, match=r"(?s)labels.csv.*strong.json|strong.json.*labels.csv"):
        resolve(workspace, "c", Inputs("gender", given), [].append)
    assert not workspace.items()


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


def test_an_item_that_a_run_reads_is_not_replaced_and_nothing_else_is_stored(files, workspace):
    first = ingest(workspace, "c", [File(files / "labels.csv"), File(files / "strong.json")])
    (spec,) = plan(workspace, Request("c", ("strong",), "labels", "gender", ("ratio",)))
    assert workspace.enqueue(spec, "c", "t")
    others = [File(files / "captions.json"), File(files / "other" / "strong.json")]
    with pytest.raises(CapbiasError, match="strong"):
        ingest(workspace, "c", others)
    assert stored(workspace) == [(item.kind, item.name) for item in first]
    # The same content again is no replacement, whatever reads it.
    ingest(workspace, "c", [File(files / "captions.json"), File(files / "again" / "strong.json")])
    assert (REFERENCES, "captions") in stored(workspace)


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


# Answers for raw labels -> what is stored of the column, or what the message names


# human captions beside a model's


def test_human_captions_beside_a_models_are_a_second_part(formats, workspace):
    model, human = preview([File(formats / LMMS_EVAL)], read=read_file)
    assert [(own.kind, own.reading.second, own.wanted) for own in (model, human)] == [
        (CAPTIONS, False, True),
        (REFERENCES, True, True),
    ]
    assert (len(model.frame), len(human.frame), len(human.images)) == (40, 200, 40)
    assert {item.kind: item.rows for item in ingest(workspace, "c", [model.file])} == {CAPTIONS: 40, REFERENCES: 200}


def test_they_are_stored_only_where_their_images_have_none(files, formats, workspace):
    both = preview([File(formats / LMMS_EVAL), File(formats / LMMS_EVAL, name="other")], read=read_file)
    assert [own.wanted for own in both] == [True, True, True, False], "those of the first file"
    alone = preview([File(files / "beside.csv"), File(files / "captions.json")], read=read_file)
    assert [(own.kind, own.wanted) for own in alone] == [(CAPTIONS, True), (REFERENCES, False), (REFERENCES, True)]
    ingest(workspace, "c", [File(files / "captions.json")])
    ingest(workspace, "c", [File(files / "beside.csv")])
    assert stored(workspace) == [(REFERENCES, "captions"), (CAPTIONS, "beside")]


def test_rows_without_ids_get_those_of_human_captions_with_the_same_text(formats, workspace):
    names = ("samples", "rows")
    files = [File(formats / own, name=name) for own, name in zip((LMMS_EVAL, VLMEVALKIT), names, strict=True)]
    alone = preview(files[1:], read=read_file)
    assert [own.images for own in alone] == [{f"row {number}" for number in range(40)}] * 2
    together = preview(files, read=read_file)
    samples, human, rows = together
    assert rows.kind == CAPTIONS and rows.images == samples.images == human.images
    ingest(workspace, "c", files[:1])
    (later,) = preview(files[1:], held_by(workspace, "c"), read_file)
    assert later.images == samples.images and len(later.frame) == 40
    ingest(workspace, "rows", files[1:])
    again = preview(files[1:], held_by(workspace, "rows"), read_file)
    assert [own.images for own in again] == [own.images for own in alone], "its own human captions give no ids"


# several captions of an image

PROMPTED = [
    ("1", "Say it.", "a dog"),
    ("1", "Say it.", "dogs"),
    ("1", "Describe it.", "a dog"),
    ("2", "Describe it.", "a cat"),
    ("2", "Say it.", "one cat"),
]


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        ("samples", {"m": ["a dog", "dogs", "a dog", "a cat", "one cat"]}),
        ("each", {"m 1": ["a dog", "a cat"], "m 2": ["dogs", "one cat"], "m 3": ["a dog"]}),
        ("prompt", {"m prompt 1": ["a dog", "dogs", "one cat"], "m prompt 2": ["a dog", "a cat"]}),
    ],
)
def test_several_captions_of_an_image_are_samples_or_sets(files, workspace, sets, expected):
    Path("m.csv").write_text("\n".join(["image_id,prompt,caption", *map(",".join, PROMPTED)]))
    items = ingest(workspace, "c", [File(Path("m.csv"), sets=sets)])
    frames = {item.name: workspace.frame(item.hash) for item in items}
    assert {name: frame["caption"].to_list() for name, frame in frames.items()} == expected
    for frame in frames.values():
        assert not frame.duplicated(["image_id", "caption_index"]).any() and set(frame["caption_index"]) <= {0, 1, 2}


# archives


def test_files_of_archives_take_their_place_and_what_is_no_table_is_named(files, tmp_path):
    lines = []
    with zipfile.ZipFile("all.zip", "w") as archive:
        for name in ("strong.json", "labels.csv", "prose.txt"):
            archive.write(name)
    with zipfile.ZipFile("texts.zip", "w") as archive:
        for image in WHO:
            archive.writestr(f"{image}.txt", "a dog")
    names = [path.name for path in expand(["weak.csv", "all.zip"], tmp_path / "out", lines.append)]
    assert names == ["weak.csv", "strong.json", "labels.csv"]
    assert len(lines) == 1 and "all.zip" in lines[0] and "prose.txt" in lines[0]
    (texts,) = preview(map(File, expand(["texts.zip"], tmp_path / "texts", lines.append)), read=read_file)
    assert texts.images == {str(image) for image in WHO}
    with zipfile.ZipFile("lists.zip", "w") as archive:  # each text lists images
        for name in ("train", "val"):
            archive.writestr(f"{name}.txt", "".join(f"{name}{image}.jpg\ta dog and a cat\n" for image in WHO))
    lists = [path.name for path in expand(["lists.zip"], tmp_path / "lists", lines.append)]
    assert lists == ["train.txt", "val.txt"]
    with zipfile.ZipFile("none.zip", "w") as archive:
        archive.write("prose.txt")
    with pytest.raises(CapbiasError, match="prose.txt"):
        expand(["none.zip"], tmp_path / "none", lines.append)


# every way in

PLAN = """
collection = "c"
labels = "labels.csv"
references = "captions.json"
captions = ["strong.json", "weak.csv"]

[[measure]]
attribute = "gender"
metrics = ["ratio"]
"""


def hashes(workspace: Workspace, collection: str) -> dict[tuple[str, str], str]:
    return {(item.kind, item.name): item.hash for item in workspace.items(collection=collection)}


def test_the_same_files_are_the_same_items_whichever_way_they_come_in(files, tmp_path, capsys):
    models = ["strong.json", "weak.csv"]
    names = [*models, "captions.json", "labels.csv"]
    found = {}
    with inputs(InputFlags(attribute="gender"), print, files=names) as (workspace, resolved):
        found["score"] = hashes(workspace, resolved.collection)
    flags = InputFlags(attribute="gender", captions=models, labels="labels.csv")
    with inputs(flags, print, references="captions.json") as (workspace, resolved):
        found["flags"] = hashes(workspace, resolved.collection)
    capbias.score(
        models, "labels.csv", "gender", "captions.json", ["ratio"], workspace=tmp_path / "api", collection="c"
    )
    found["api"] = hashes(Workspace(tmp_path / "api"), "c")
    tables = {name: pd.DataFrame(CAPTIONED[::step]) for name, step in (("strong", 1), ("weak", -1))}
    tables |= {"labels": pd.read_csv("labels.csv"), "captions": pd.DataFrame(TWICE)}
    keep(
        Workspace(tmp_path / "tables"),
        captions={name: tables[name] for name in ("strong", "weak")},
        labels=tables["labels"],
        references={"captions": tables["captions"]},
        attribute="gender",
    )
    found["tables"] = hashes(Workspace(tmp_path / "tables"), "c")
    assert cli.main(["import", *names, "--collection", "c", "--workspace", str(tmp_path / "import")]) == 0
    found["import"] = hashes(Workspace(tmp_path / "import"), "c")
    Path("plan.toml").write_text(PLAN)
    keep_plan(Workspace(tmp_path / "plan"), read_plan(Path("plan.toml")), files, print)
    found["plan"] = hashes(Workspace(tmp_path / "plan"), "c")
    page = Workspace(tmp_path / "page")  # as the drop zone does
    store(page, "c", [with_mapping(part) for part in preview([File(files / name) for name in names])])
    found["page"] = hashes(page, "c")
    expected = {(CAPTIONS, "strong"), (CAPTIONS, "weak"), (REFERENCES, "captions"), (LABELS, "labels")}
    assert found["score"].keys() == expected
    for way, items in found.items():
        assert items == found["score"], way
