"""Several files at once: what each is, what they have in common, and keeping them together."""

import json

import pandas as pd
import pytest

from capbias_core.analysis.read import first_request
from capbias_core.errors import CapbiasError
from capbias_core.load.kinds import GENERATED, HUMAN, LABELS, OBJECTS
from capbias_core.runs.plan import Request, plan
from capbias_core.workspace.ingest import SEGMENTS
from capbias_core.workspace.labels import suggested_details
from capbias_core.workspace.offers import (
    Choices,
    choose_references,
    in_common,
    keep_offers,
    kept_images,
    offers_of,
    outlines_of,
    references_among,
)
from capbias_core.workspace.store import Workspace

LMMS_EVAL, VLMEVALKIT = "20260806_102223_samples_coco2014_cap_val.jsonl", "LLaVA_COCO_VAL.tsv"


@pytest.fixture
def files(tmp_path):
    """Captions of images 1 to 4, people's of 1 and 2 (two each), labels of 2 to 5, objects of image 9."""
    texts = {
        "sat.csv": "image_id,caption\n" + "".join(f"{image},a dog {image}\n" for image in range(1, 5)),
        "all.csv": "image_id,caption\n1,a dog\n1,a cat\n2,a dog\n2,a bird\n",
        "labels.csv": "image_id,gender,mood\n2,Male,glad\n3,Female,sad\n4,Male,sad\n5,Female,glad\n",
        "objects.csv": "image_id,objects\n9,dog\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return [tmp_path / name for name in texts]


def test_what_files_are_and_have_in_common(files, tmp_path):
    workspace = Workspace(tmp_path / "home")
    offers = [offers_of(workspace, path, "c")[0] for path in files]
    assert [own.kind for own in offers] == [GENERATED, HUMAN, LABELS, OBJECTS]
    assert [own.own.human_by for own in offers] == ["", "since its images have several captions", "", ""]
    common = in_common(offers, kept_images(workspace, "c"))
    assert [common[own.key] for own in offers] == [4, 2, 3, 0]
    assert in_common(offers[:1], kept_images(workspace, "c")) == {offers[0].key: None}


def test_a_wrong_kind_is_read_as_asked_and_said(files, tmp_path):
    workspace = Workspace(tmp_path / "home")
    wrong = offers_of(workspace, files[0], "c", LABELS)[0]
    assert (wrong.kind, wrong.own.kind) == (LABELS, GENERATED)
    unread = offers_of(workspace, files[2], "c", GENERATED)[0]
    assert unread.preview is None and unread.own.kind == LABELS and "labels.csv" in unread.error.got


def test_all_are_kept_together_and_can_be_scored(files, tmp_path):
    workspace = Workspace(tmp_path / "home")
    assert first_request(workspace, "c") is None
    offers = [offers_of(workspace, path, "c")[0] for path in files]
    mapped = [suggested_details("gender", offers[2].preview.frame)]
    said = {offers[0].key: Choices(trained=True), offers[2].key: Choices(attributes=mapped)}
    kept = keep_offers(workspace, "c", offers, said)
    assert [(item.kind, item.name) for item in kept] == [
        ("attributes", "labels"),
        ("references", "all"),
        ("objects", "objects"),
        ("captions", "sat"),
    ]
    assert kept[-1].details["trained_on_references"] is True
    request = first_request(workspace, "c")
    assert (request.captions, request.attribute, request.references, request.words) == (("sat",), "gender", "all", True)
    # What is kept counts for the next file.
    assert in_common([offers_of(workspace, files[0], "c")[0]], kept_images(workspace, "c")) == {(files[0], False): 4}


def test_files_of_one_name_or_under_a_run_are_refused_together(files, tmp_path):
    """Nothing is kept then, labels neither."""
    workspace = Workspace(tmp_path / "home")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "sat.csv").write_text("image_id,caption\n2,a cat\n")
    labels, sat = offers_of(workspace, files[2], "c")[0], offers_of(workspace, files[0], "c")[0]
    said = {labels.key: Choices(attributes=[suggested_details("gender", labels.preview.frame)])}
    with pytest.raises(CapbiasError, match="called sat"):
        keep_offers(workspace, "c", [labels, sat, offers_of(workspace, tmp_path / "other" / "sat.csv", "c")[0]], said)
    assert not workspace.items()

    keep_offers(workspace, "c", [labels, sat], said)
    (spec,) = plan(workspace, Request("c", ("sat",), "labels", "gender", ("ratio",)))
    assert workspace.enqueue(spec, "c", "t")
    human = offers_of(workspace, files[1], "c")[0]
    with pytest.raises(CapbiasError, match="A run is reading sat"):
        keep_offers(workspace, "c", [human, offers_of(workspace, tmp_path / "other" / "sat.csv", "c")[0]], {})
    assert not workspace.items("references")
    # The same content again is no replacement, whatever reads it.
    assert [item.name for item in keep_offers(workspace, "c", [human, sat], {})] == ["all", "sat"]


def test_one_file_of_captions_and_human_captions_is_two_offers(formats, tmp_path):
    workspace = Workspace(tmp_path / "home")
    model, human = offers_of(workspace, formats / LMMS_EVAL, "c")
    assert [(own.kind, own.beside, own.name) for own in (model, human)] == [
        (GENERATED, False, model.name),
        (HUMAN, True, model.name),
    ]
    assert (len(model.preview.frame), len(human.preview.frame), len(human.images)) == (40, 200, 40)
    keep_offers(workspace, "c", [model, human], {})
    assert {item.kind: item.rows for item in workspace.items()} == {GENERATED: 40, HUMAN: 200}
    # Once they are kept, those of the next file are not wanted.
    again = choose_references(offers_of(workspace, formats / LMMS_EVAL, "c"), kept_images(workspace, "c"))
    assert [own.wanted for own in again] == [True, False]


def test_only_the_first_of_several_human_captions_of_the_same_images_is_wanted(formats, tmp_path):
    workspace = Workspace(tmp_path / "home")
    files = [formats / LMMS_EVAL, formats / VLMEVALKIT]
    found = [own for path in files for own in offers_of(workspace, path, "c")]
    assert [own.wanted for own in choose_references(found + found[:2], {})] == [True, True, True, True, True, False]
    assert len(references_among(found)) == 200, "rows without ids are no help to others"


def test_images_without_ids_are_told_apart_by_other_files_or_the_collection(formats, tmp_path):
    workspace = Workspace(tmp_path / "home")
    samples = offers_of(workspace, formats / LMMS_EVAL, "c")
    alone = offers_of(workspace, formats / VLMEVALKIT, "c")
    assert [own.images for own in alone] == [{f"row {number}" for number in range(40)}] * 2
    (beside,) = offers_of(workspace, formats / VLMEVALKIT, "c", references=references_among(samples))
    keep_offers(workspace, "c", [samples[1]], {})
    (later,) = offers_of(workspace, formats / VLMEVALKIT, "c")
    assert beside.images == later.images == samples[0].images
    other = pd.DataFrame({"image_id": ["7"], "caption": ["of other images"]})
    assert offers_of(workspace, formats / VLMEVALKIT, "c", references=other)[0].images == later.images
    keep_offers(workspace, "rows", alone, {})
    mapped = offers_of(workspace, formats / VLMEVALKIT, "rows")
    assert [own.images for own in mapped] == [own.images for own in alone], "its own human captions give no ids"


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
def test_several_captions_of_an_image_are_samples_or_sets(tmp_path, sets, expected):
    workspace, path = Workspace(tmp_path / "home"), tmp_path / "m.csv"
    path.write_text("\n".join(["image_id,prompt,caption", *map(",".join, PROMPTED)]))
    (own,) = offers_of(workspace, path, "c")
    assert own.kind == GENERATED, "several prompts, not several people"
    kept = keep_offers(workspace, "c", [own], {own.key: Choices(sets=sets)})
    frames = {item.name: workspace.frame(item.hash) for item in kept}
    assert {name: frame["caption"].to_list() for name, frame in frames.items()} == expected
    for frame in frames.values():
        assert not frame.duplicated(["image_id", "caption_index"]).any() and set(frame["caption_index"]) <= {0, 1, 2}


def test_instances_beside_photographs_are_objects_and_outlines(tmp_path):
    workspace, path = Workspace(tmp_path / "home"), tmp_path / "instances.json"
    outline = {"image_id": 1, "category_id": 1, "segmentation": [[1, 1, 4, 1, 4, 4]], "bbox": [1, 1, 3, 3]}
    size, tie = {"id": 1, "height": 10, "width": 10}, {"id": 1, "name": "tie"}
    path.write_text(json.dumps({"images": [size], "annotations": [outline], "categories": [tie]}))
    assert [own.kind for own in offers_of(workspace, path, "c")] == [OBJECTS]
    found = [*offers_of(workspace, path, "c"), *outlines_of(workspace, path, "c")]
    both = choose_references(found, kept_images(workspace, "c"))
    assert [(own.kind, own.beside, own.wanted) for own in both] == [(OBJECTS, False, True), (SEGMENTS, True, True)]
    assert {item.kind for item in keep_offers(workspace, "c", both, {})} == {OBJECTS, SEGMENTS}
    del outline["segmentation"]
    path.write_text(json.dumps({"images": [size], "annotations": [outline], "categories": [tie]}))
    assert [own.kind for own in offers_of(workspace, path, "c")] == [OBJECTS]
    assert outlines_of(workspace, path, "c") == []


def test_a_column_that_is_not_there_may_be_known_by_its_labels_where_the_attribute_has_words(tmp_path):
    frame = pd.DataFrame({"image_id": ["1", "2"], "mood": ["glad", "sad"], "tone": ["Dark", "Light"]})
    with pytest.raises(CapbiasError) as gender:
        suggested_details("gender", frame)
    assert gender.value.expected.endswith("or one with the labels Female, Male")
    with pytest.raises(CapbiasError) as race:
        suggested_details("race", frame)
    assert "labels" not in race.value.expected, "dark and light are not only labels of people"


def test_prompts_that_are_not_there(files, tmp_path):
    workspace = Workspace(tmp_path / "home")
    (own,) = offers_of(workspace, files[0], "c")
    with pytest.raises(CapbiasError, match=r"sat.csv, whose captions do not answer several prompts"):
        keep_offers(workspace, "c", [own], {own.key: Choices(sets="prompt")})
    with pytest.raises(CapbiasError, match="'fold'"):
        keep_offers(workspace, "c", [own], {own.key: Choices(sets="fold")})
    assert not workspace.items()
