"""Masked photographs: which pixels, worked out by hand; what is left out; folders that are whole or not there."""

import hashlib
import json
import time

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from capbias_core.attributes import known_attributes
from capbias_core.cli import main
from capbias_core.errors import Cancelled, CapbiasError
from capbias_core.load.photographs import read_photograph
from capbias_core.measures.mask import MaskOptions
from capbias_core.measures.object_associations import departures, departures_in
from capbias_core.runs.artifact_runs import plan_masking
from capbias_core.runs.run import run_one
from capbias_core.types import BOX_COLUMNS, SEGMENT_COLUMNS, silent
from capbias_core.vision.masking import (
    FILLS,
    MaskRule,
    NothingToMask,
    box_mask,
    covered,
    filled,
    foreground,
    hidden_pixels,
    outline_mask,
    part_of,
    regions_to_drop,
)
from capbias_core.workspace import masked_photographs
from capbias_core.workspace.photographs import frozen_photographs, keep_images, masked_so, photograph_files
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep


def drawn(text: str) -> np.ndarray:
    """A mask from rows of . and #."""
    return np.array([[cell == "#" for cell in row] for row in text.split()])


def runs_of(mask: np.ndarray) -> str:
    """A mask as COCO's outline: run lengths down the columns, first of what is outside."""
    cells, counts, last = mask.T.ravel(), [0], False
    for cell in cells:
        if cell != last:
            counts.append(0)
            last = cell
        counts[-1] += 1
    return json.dumps({"size": list(mask.shape), "counts": counts})


PERSON = drawn("...... ..##.. .####. .#..#. ......")
RACKET = drawn("...... .....# .....# ....## ......")
SMALL = drawn("#..... #..... ...... ...... ......")
BOX = drawn("...... .####. .####. .####. ......")  # around PERSON
NOTHING = np.zeros((5, 6), dtype=bool)
HALVES = drawn("...... ..##.. .##... ...... ......"), drawn("#..... ...... ...... ...... ......")  # of PERSON and SMALL


def outline_row(image: str, name: str, mask: np.ndarray, crowd: bool = False) -> tuple:
    ys, xs = np.nonzero(mask)
    return image, name, crowd, *mask.shape, xs.min(), ys.min(), xs.max() + 1, ys.max() + 1, runs_of(mask)


def outlines(*rows: tuple) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(SEGMENT_COLUMNS))


def boxes(*rows: tuple) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(BOX_COLUMNS))


SHOWN = outlines(
    outline_row("1", "person", SMALL), outline_row("1", "person", PERSON), outline_row("1", "tennis racket", RACKET)
)
PEOPLE, THINGS = SHOWN.iloc[:2], SHOWN.iloc[2:]
BOXED = boxes(
    ("1", "person", 0.9, 1, 1, 3, 3), ("1", "person", 0.4, 0, 0, 1, 1), ("1", "tennis racket", 0.9, 3, 2, 6, 4)
)
GOES = {"tennis racket": 0.2}


# which pixels


def test_masks_are_drawn_as_they_are_written():
    assert (outline_mask(runs_of(PERSON), 5, 6) == PERSON).all()
    square = json.dumps([[1, 1, 4, 1, 4, 3, 1, 3]])
    assert (outline_mask(square, 5, 6) == drawn("...... .###.. .###.. ...... ......")).all()
    two = json.dumps([[0, 0, 1, 0, 1, 1, 0, 1], [4, 2, 6, 2, 6, 4, 4, 4]])
    assert (outline_mask(two, 5, 6) == drawn("#..... ...... ....## ....## ......")).all()
    for broken in (runs_of(PERSON), "[[0, 0, 50, 0, 50, 50]]", "no JSON", "3"):
        with pytest.raises(CapbiasError):
            outline_mask(broken, 6, 5)
    assert (box_mask((1.2, 0.9, 3.0, 2.1), 5, 6) == drawn(".##... .##... .##... ...... ......")).all()
    assert not box_mask((-4, -4, 0, 0), 5, 6).any() and box_mask((-4, -4, 99, 99), 5, 6).all()


@pytest.mark.parametrize(
    ("fraction", "expected"),
    [
        (0.5, HALVES[0]),  # 4 of 8 pixels
        (0.3125, drawn("...... ..##.. .#.... ...... ......")),  # 2.5 of 8, rounded up
        (0.01, NOTHING),  # 0.08 of a pixel
        (1.0, PERSON),
    ],
)
def test_a_part_is_the_first_pixels_in_reading_order(fraction, expected):
    assert (part_of(PERSON, fraction) == expected).all()


@pytest.mark.parametrize(
    ("rows", "rule", "labelled", "expected"),
    [
        (SHOWN, MaskRule("segment"), None, PERSON),
        (SHOWN, MaskRule("part"), None, HALVES[0]),
        (SHOWN, MaskRule("box"), None, BOX),
        (SHOWN, MaskRule("object", departures=GOES), None, RACKET),
        (SHOWN, MaskRule("both", departures=GOES), None, PERSON | RACKET),
        (SHOWN, MaskRule("segment", whose="all"), None, PERSON | SMALL),
        (SHOWN, MaskRule("part", whose="all"), None, HALVES[0] | HALVES[1]),  # half of each, not half of both together
        (SHOWN, MaskRule("segment"), (0, 0, 1, 2), SMALL),
        (SHOWN, MaskRule("segment"), (5, 4, 6, 5), "without a person where the label says"),
        (PEOPLE, MaskRule("both", departures=GOES), None, PERSON),
        (PEOPLE, MaskRule("object", departures=GOES), None, NOTHING),
        (PEOPLE, MaskRule("both", departures=GOES, only_masked=True), None, "without one of the correlated objects"),
        (PEOPLE, MaskRule("object", departures=GOES, only_masked=True), None, "without one of the correlated objects"),
        (THINGS, MaskRule("segment"), None, "without a person"),
        (THINGS, MaskRule("both", departures=GOES), None, "without a person"),
        (SHOWN.iloc[:0], MaskRule("segment"), None, "without an outline or box of anything"),
        (SHOWN.iloc[:0], MaskRule("object", departures=GOES), None, "without an outline or box of anything"),
        (BOXED, MaskRule("box"), None, drawn("...... .##... .##... ...... ......")),
        (BOXED, MaskRule("object", departures=GOES), None, drawn("...... ...... ...### ...### ......")),
        (BOXED, MaskRule("both", departures=GOES), None, drawn("...... .##... .##### ...### ......")),
    ],
)
def test_hidden_pixels_by_hand(rows, rule, labelled, expected):
    """With an object the most correlated one of the photograph; `both` and `object` keep photographs without one."""
    if isinstance(expected, str):
        with pytest.raises(NothingToMask, match=f"^{expected}$"):
            hidden_pixels(rows, (5, 6), rule, labelled)
    else:
        assert (hidden_pixels(rows, (5, 6), rule, labelled) == expected).all()


def test_the_object_that_departs_most_is_hidden():
    rows = pd.DataFrame({"object": ["person", "dog", "tennis racket", "zebra"]})
    rule = MaskRule("object", departures=GOES | {"dog": 0.1, "person": 0.9})
    assert [rule.object_on(rows), rule.object_on(rows[:2]), rule.object_on(rows[[True, False, False, True]])] == [
        "tennis racket",
        "dog",
        "",
    ]


def test_the_foreground_is_the_largest_outline_and_no_crowd():
    assert foreground(SHOWN)["outline"] == runs_of(PERSON)
    assert foreground(THINGS) is None
    crowd = outlines(outline_row("1", "person", PERSON, crowd=True), outline_row("1", "person", SMALL))
    assert foreground(crowd)["outline"] == runs_of(SMALL)
    # A thin person across the picture has the larger box, and the smaller outline.
    thin = drawn("#..... .#.... ..#... ...#.. ....#.")
    assert foreground(outlines(outline_row("1", "person", thin), outline_row("1", "person", PERSON)))["x1"] == 1


def test_marks_of_a_photograph_of_another_size_are_refused():
    for rows, size in ((SHOWN, (10, 12)), (boxes(("1", "person", 1.0, 0, 0, 60, 5)), (5, 6))):
        with pytest.raises(CapbiasError, match="pixels has"):
            hidden_pixels(rows, size, MaskRule("box"))


# what is put there


@pytest.fixture(scope="module")
def pixels() -> np.ndarray:
    return np.random.default_rng(7).integers(0, 256, (5, 6, 3), dtype=np.uint8)


@pytest.mark.parametrize("how", FILLS)
def test_every_pixel_outside_stays_and_the_photograph_is_not_touched(pixels, how):
    before = pixels.copy()
    result = filled(pixels, PERSON, how)
    assert (result[~PERSON] == before[~PERSON]).all() and (pixels == before).all()
    assert (result[PERSON] != before[PERSON]).any()
    assert (filled(pixels, PERSON, how) == result).all()
    with pytest.raises(CapbiasError):
        filled(pixels, PERSON.T, how)


def test_fills_by_hand(pixels):
    assert (filled(pixels, PERSON, "grey")[PERSON] == 128).all()
    flat = np.zeros((1, 4, 3), dtype=np.uint8)
    flat[0, :, 0] = [10, 20, 30, 43]  # 103 / 4 = 25.75
    mean = filled(flat, np.array([[True, False, False, False]]), "mean")
    assert mean[0].tolist() == [[26, 0, 0], [20, 0, 0], [30, 0, 0], [43, 0, 0]]
    other, whole = pixels.copy(), np.ones((5, 6), dtype=bool)
    other[0, 0, 0] ^= 1
    assert (filled(pixels, whole, "noise") != filled(other, whole, "noise")).mean() > 0.9
    large = filled(np.zeros((200, 200, 3), dtype=np.uint8), np.ones((200, 200), dtype=bool), "noise")
    assert abs(large.mean() - 127.5) < 1.5 and set(np.unique(large)) == set(range(256))
    picture = np.zeros((100, 100, 3), dtype=np.uint8)
    picture[:, 50:] = 200
    blurred = filled(picture, np.ones((100, 100), dtype=bool), "blur")
    # A Gaussian of deviation 5: half at the edge, 0.02 and 0.98 of the step two deviations away.
    assert abs(blurred[50, 49:51].mean() - 100) < 6
    assert blurred[50, 39, 0] == pytest.approx(4.6, abs=4) and blurred[50, 60, 0] == pytest.approx(195.4, abs=4)


# regions


def test_regions_to_drop_by_hand():
    """Of their own area, more than half within the boxes of what is hidden."""
    person = boxes(("1", "person", 1, 2, 0, 4, 4))
    # All of it; exactly a half; 8 of 12; small; around the person; touches half of 8; elsewhere.
    corners = [[2, 0, 4, 4], [1, 0, 3, 4], [1, 0, 4, 4], [2, 1, 3, 2], [0, 0, 6, 4], [1.5, 0, 3, 4], [9, 9, 12, 12]]
    regions = pd.DataFrame(corners, columns=["x1", "y1", "x2", "y2"])
    expected = [True, False, True, True, False, False, False]
    assert regions_to_drop(regions, person, MaskRule("box")).tolist() == expected
    assert regions_to_drop(regions[:0], person, MaskRule("box")).tolist() == []


def test_regions_are_compared_with_boxes():
    # The person's box is columns 1 to 4, rows 1 to 3; the racket's columns 4 and 5, rows 1 to 3.
    regions = pd.DataFrame([[1, 1, 3, 2], [5, 1, 6, 4], [0, 0, 1, 2]], columns=["x1", "y1", "x2", "y2"])

    def dropped(condition, **further):
        return regions_to_drop(regions, SHOWN, MaskRule(condition, departures=GOES, **further)).tolist()

    assert dropped("box") == dropped("segment") == [True, False, False]
    assert dropped("object") == [False, True, False] and dropped("both") == [True, True, False]
    assert dropped("box", whose="all") == [True, False, True]
    assert regions_to_drop(regions, SHOWN, MaskRule("box"), (0, 0, 1, 2)).tolist() == [False, False, True]
    assert regions_to_drop(regions, THINGS, MaskRule("box")).tolist() == [False] * 3
    # The person's box and the racket's share the column 4: five columns and three rows are covered, of six and five.
    whole = np.array([[0, 0, 6, 5], [0, 1, 6, 4], [0, 0, 1e12, 1e12]])
    assert covered(whole, np.array([[1, 1, 5, 4], [4, 1, 6, 4]])) == pytest.approx([15 / 30, 15 / 18, 0])


# the most correlated object


def captions_of(**texts: list[str]) -> pd.DataFrame:
    rows = [(f"{name}{place}", text) for name, own in texts.items() for place, text in enumerate(own)]
    return pd.DataFrame(rows, columns=["image_id", "caption"])


HUMAN = captions_of(
    he=["a man with a tie"] * 4 + ["a man and a dog"] * 2,
    she=["a woman with a tie"] + ["a woman and a dog"] * 2 + ["a woman"],
    nobody=["a tie", "a man and a woman with a cake"],
)


def test_departures_by_hand():
    # 10 captions name one value: 6 men, 4 women. tie: 4 and 1 of 5, so |0.8 - 0.6| = 0.2. dog: 2 and 2 of 4: 0.1.
    assert departures(HUMAN, known_attributes()["gender"]) == {"tie": 0.2, "dog": 0.1}


def test_departures_by_labels_where_captions_do_not_name_the_value():
    labels = pd.Series({image: "Dark" if image.startswith("she") else "Light" for image in HUMAN["image_id"]})
    # 12 captions, 4 of them dark: 1/3. tie: 1 of 6 dark, so 1/6; dog: 2 of 4, 1/6; cake: 0 of 1, 1/3.
    found = departures(HUMAN, known_attributes()["race"], labels)
    assert found == pytest.approx({"cake": 1 / 3, "dog": 1 / 6, "tie": 1 / 6}, abs=1e-6)


def test_departures_of_a_collection(tmp_path):
    workspace = Workspace(tmp_path / "home")
    with pytest.raises(CapbiasError, match="0 sets of human captions"):
        departures_in(workspace, "c", "gender")
    labels = pd.DataFrame({"image_id": HUMAN["image_id"], "gender": ["Male"] * 6 + ["Female"] * 6})
    keep(workspace, labels=labels, references=HUMAN)
    assert departures_in(workspace, "c", "gender") == {"tie": 0.2, "dog": 0.1}
    with pytest.raises(CapbiasError, match="no labels for race"):
        departures_in(workspace, "c", "race")


# a folder of masked photographs


SCENE = {
    "1": SHOWN,
    "2": outlines(outline_row("2", "person", SMALL)),
    "3": outlines(outline_row("3", "dog", SMALL)),
    "4": outlines(outline_row("4", "person", np.pad(PERSON, ((0, 1), (0, 0))))),
    "5": outlines(outline_row("5", "person", PERSON)),
}


@pytest.fixture
def scene(tmp_path, pixels) -> Workspace:
    """Photographs: 1 and 2 with people, 3 without, 4 of another size than its outline, 5 cut off."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    for name in "12345":
        Image.fromarray(pixels).save(folder / f"00000{name}.png")
    whole = (folder / "000005.png").read_bytes()
    (folder / "000005.png").write_bytes(whole[: len(whole) // 2])
    workspace = Workspace(tmp_path / "home")
    keep_images(workspace, folder, "c")
    workspace.keep("segments", "outlines", pd.concat(SCENE.values(), ignore_index=True), "c", "instances.json")
    return workspace


def masking(workspace: Workspace, condition: str, **choices):
    """The run that masks photographs of the collection."""
    return plan_masking(workspace, "c", MaskOptions(condition=condition, **choices))


def digests(workspace: Workspace) -> dict[str, str]:
    folder = workspace.folder.parent / "pictures"
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_a_folder_of_masked_photographs(scene, pixels):
    before = digests(scene)
    spec = masking(scene, "segment", fill="mean")
    outcome = run_one(scene, spec, silent)
    item = scene.item("images", "photographs (segment masked, mean)", "c")
    files = photograph_files(scene, frozen_photographs(scene, "c", item.name))
    assert sorted(files) == ["1", "2"]
    assert (read_photograph(files["1"]) == filled(pixels, PERSON, "mean")).all()
    assert (read_photograph(files["2"]) == filled(pixels, SMALL, "mean")).all()
    assert item.details["condition"] == "segment" and item.details["of"] == "photographs"
    assert masked_so(scene, "c", "segment") == item.name
    assert digests(scene) == before
    kept, left_out = outcome.notes
    # 8 and 2 of 30 pixels, a mean of a sixth.
    assert kept.startswith("2 photographs masked (segment, mean) by outlines; on average 16.7%")
    assert "3 left out" in left_out and "3: without a person" in left_out
    assert "4: A photograph of 6 x 5 pixels has outlines on 6 x 6" in left_out and "5: 000005.png" in left_out


def files_of(scene: Workspace, name: str) -> dict:
    return photograph_files(scene, frozen_photographs(scene, "c", name))


def test_photographs_without_the_object_stay_as_they_are(scene, pixels):
    """1 shows a racket, 2 a person and 3 a dog; 4 has outlines of another size, 5 cannot be read."""
    spec = masking(scene, "object", departures=GOES)
    masked, unmasked, left_out = run_one(scene, spec, silent).notes
    files = files_of(scene, "photographs (object masked)")
    assert sorted(files) == ["1", "2", "3"]
    assert (read_photograph(files["1"]) == filled(pixels, RACKET)).all()
    assert all((read_photograph(files[name]) == pixels).all() for name in "23")
    share = scene.frame(scene.item("images", "photographs (object masked)", "c").hash).set_index("image_id")["hidden"]
    assert share.to_dict() == {"1": round(RACKET.mean(), 6), "2": 0, "3": 0}
    assert masked.startswith("1 photograph masked (object, grey) by outlines; on average 13.3%")  # 4 of 30 pixels
    assert unmasked == "2 more, kept unmasked: they show none of the correlated objects."
    assert left_out.startswith("2 left out: 4")


@pytest.mark.parametrize(("condition", "hidden"), [("object", RACKET), ("both", RACKET | PERSON)])
def test_photographs_without_the_object_are_left_out_where_that_is_asked(scene, pixels, condition, hidden):
    spec = masking(scene, condition, departures=GOES, only_masked=True)
    assert spec.run_id != masking(scene, condition, departures=GOES).run_id
    masked, left_out = run_one(scene, spec, silent).notes
    files = files_of(scene, f"photographs ({condition} masked, only masked)")
    assert list(files) == ["1"] and (read_photograph(files["1"]) == filled(pixels, hidden)).all()
    assert masked.startswith("1 photograph masked") and "2, 3: without one of the correlated objects" in left_out
    assert scene.item("images", f"photographs ({condition} masked, only masked)", "c").details["only_masked"]


def test_labelled_people_are_hidden_and_elsewhere_the_largest(scene, pixels):
    scene.keep("boxes", "labels", boxes(("1", "person", 1.0, 0, 0, 1, 2)), "c", "labels.csv")
    run_one(scene, masking(scene, "segment", people="outlines", labelled="labels"), silent)
    item = scene.item("images", "photographs (segment masked, labelled people)", "c")
    files = photograph_files(scene, frozen_photographs(scene, "c", item.name))
    assert (read_photograph(files["1"]) == filled(pixels, SMALL)).all()
    assert (read_photograph(files["2"]) == filled(pixels, SMALL)).all()
    with pytest.raises(CapbiasError, match="Labelled people can only"):
        masking(scene, "segment", people="outlines", labelled="labels", whose="all")


def test_the_same_content_is_masked_once(scene, monkeypatch):
    run_one(scene, masking(scene, "segment"), silent)
    drawings = []
    monkeypatch.setattr(masked_photographs, "_mask_one", lambda *given: drawings.append(given))
    run_one(scene, masking(scene, "segment", name="again"), silent)
    assert drawings == [] and scene.item("images", "again", "c").rows == 2


def test_a_run_that_is_stopped_leaves_nothing(scene):
    def stop(share: float, text: str) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        run_one(scene, masking(scene, "segment"), stop)
    assert list((scene.folder / "pictures").iterdir()) == [] and len(scene.items("images", "c")) == 1


def test_what_a_killed_process_left_is_removed_after_an_hour(scene, monkeypatch):
    left = scene.folder / "pictures" / ".0123456789abcdef-half"
    left.mkdir(parents=True)
    run_one(scene, masking(scene, "segment"), silent)
    assert left.exists()
    monkeypatch.setattr(masked_photographs, "ABANDONED", time.time() - left.stat().st_mtime - 1)
    run_one(scene, masking(scene, "box"), silent)
    assert not left.exists()


def test_a_folder_goes_with_its_item_and_originals_stay(scene):
    run_one(scene, masking(scene, "segment"), silent)
    item = scene.item("images", "photographs (segment masked)", "c")
    scene.delete(item)
    assert list((scene.folder / "pictures").iterdir()) == []
    scene.delete(scene.item("images", "photographs", "c"))
    assert len(list((scene.folder.parent / "pictures").iterdir())) == 5


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"condition": "person"}, "condition 'person'"),
        ({"condition": "segment", "fill": "white"}, "fill 'white'"),
        ({"condition": "segment", "whose": "most"}, "whose 'most'"),
        ({"condition": "part", "fraction": 1.5}, "fraction .* 1.5"),
        ({"condition": "object"}, "object"),
        ({"condition": "segment", "people": "found"}, "needs outlines of people"),
        ({"condition": "segment", "name": "photographs"}, "the name 'photographs'"),
    ],
)
def test_what_does_not_go_together_is_refused(scene, asked, said):
    scene.keep("boxes", "found", boxes(("1", "person", 0.9, 0, 0, 2, 2)), "c", "detector")
    with pytest.raises(CapbiasError, match=said):
        masking(scene, **asked)


def test_choices_that_a_condition_does_not_read_make_no_other_run(scene):
    again = masking(scene, "segment", fill="grey", fraction=0.25, departures=GOES, only_masked=True, people="outlines")
    assert again.run_id == masking(scene, "segment").run_id == masking(scene, "segment").run_id
    assert set(again.options) == {"collection", "name", "photographs", "people", "condition"}
    others = [{"fill": "blur"}, {"whose": "all"}]
    assert again.run_id not in {masking(scene, "segment", **own).run_id for own in others}


# from a terminal


@pytest.fixture
def files(scene):
    """The photographs, and their outlines as COCO's instances."""
    folder = scene.folder.parent
    rows = pd.concat(SCENE.values(), ignore_index=True)
    content = {
        "images": [{"id": int(row.image_id), "height": row.height, "width": row.width} for row in rows.itertuples()],
        "categories": [{"id": place, "name": name} for place, name in enumerate(sorted(set(rows["object"])))],
    }
    number = {own["name"]: own["id"] for own in content["categories"]}
    content["annotations"] = [
        {"image_id": int(row.image_id), "category_id": number[row.object], "segmentation": json.loads(row.outline)}
        for row in rows.itertuples()
    ]
    (folder / "instances.json").write_text(json.dumps(content))
    return folder


@pytest.mark.long
def test_mask_files(files, pixels, capsys):
    given = ["images", "mask", str(files / "pictures"), "--instances", str(files / "instances.json")]
    assert main([*given, "--condition", "segment", "box", "--output", str(files / "out")]) == 0
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[0] == "image_id,condition,file,hidden" and len(lines) == 5
    assert lines[1] == f"1,segment,{files / 'out' / 'segment' / '000001.png'},0.266667"
    assert "3: without a person" in said.err and "5: 000005.png" in said.err
    assert (read_photograph(files / "out" / "segment" / "000001.png") == filled(pixels, PERSON)).all()
    assert sorted(path.name for path in (files / "out" / "box").iterdir()) == ["000001.png", "000002.png"]


@pytest.mark.long
@pytest.mark.parametrize("conditions", [["segment"], ["segment", "box"]])
def test_mask_writes_over_its_own_files_alone(files, capsys, conditions):
    """A file of the user's under the name of a masked photograph is refused before anything is written."""
    out = files / "out"
    given = ["images", "mask", str(files / "pictures"), "--instances", str(files / "instances.json"), "--output"]
    given += [str(out)]
    place = out / "segment" if len(conditions) > 1 else out
    assert main([*given, "--condition", *conditions]) == 0
    assert main([*given, "--condition", *conditions, "--fill", "mean"]) == 0, "again, over its own"
    for name, content in (("000002.png", (files / "pictures" / "000002.png").read_bytes()), ("000003.png", b"notes")):
        before = (place / "000001.png").read_bytes()
        (place / name).write_bytes(content)
        capsys.readouterr()
        assert main([*given, "--condition", *conditions]) == 2
        said = capsys.readouterr().err
        assert "1 file in --output" in said and str(place / name) in said
        assert said.count("error:") == 1
        assert (place / name).read_bytes() == content and (place / "000001.png").read_bytes() == before
        (place / name).unlink()


def test_regions_from_a_terminal(files, capsys):
    (files / "regions.csv").write_text("image_id,x1,y1,x2,y2\n1,1,1,3,2\n1,0,0,1,1\n9,0,0,1,1\n1,3,3,2,2\n")
    given = ["images", "mask", "--regions", str(files / "regions.csv"), "--instances", str(files / "instances.json")]
    assert main([*given, "--condition", "box"]) == 0
    said = capsys.readouterr()
    assert said.out == "image_id,x1,y1,x2,y2,line,condition\n1,1.0,1.0,3.0,2.0,2,box\n"
    assert "1 row left out; the first at line 5: a box (3, 3, 2, 2)" in said.err
    assert "no outline or box for 1 image" in said.err


@pytest.mark.parametrize(
    ("further", "said"),
    [
        ([], "either --instances or --boxes"),
        (["--instances", "instances.json", "--boxes", "b.csv"], "either --instances or --boxes"),
        (["--instances", "instances.json"], "--output"),
        (["--instances", "instances.json", "--output", "pictures"], "holds originals"),
        (["--instances", "instances.json", "--output", "out", "--people", "x"], "--people needs --collection"),
        (["--collection", "c"], "photographs and --collection"),
        (["--only-masked"], "--only-masked needs the condition object"),
    ],
)
def test_usage_that_does_not_go_together(files, further, said, capsys, monkeypatch):
    monkeypatch.chdir(files)
    assert main(["images", "mask", "pictures", "--condition", "box", *further]) == 2
    assert said in capsys.readouterr().err
