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
from capbias_core.measures.mask import MASKED, MaskOptions
from capbias_core.measures.object_associations import departures, departures_in
from capbias_core.runs.artifact_runs import folder_name, plan_masking
from capbias_core.runs.engine import Engine
from capbias_core.runs.run import run_one
from capbias_core.types import BOX_COLUMNS, SEGMENT_COLUMNS, silent
from capbias_core.vision.mask_regions import MaskRule, NothingToMask, hidden_pixels, regions_to_drop
from capbias_core.vision.masking import (
    FILLS,
    box_mask,
    covered,
    dropped_regions,
    filled,
    foreground,
    most_correlated,
    outline_mask,
    part_of,
    region,
)
from capbias_core.workspace import masked_photographs
from capbias_core.workspace.ingest import read_frame
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


PERSON = drawn("""
    ......
    ..##..
    .####.
    .#..#.
    ......""")
RACKET = drawn("""
    ......
    .....#
    .....#
    ....##
    ......""")
SMALL = drawn("""
    #.....
    #.....
    ......
    ......
    ......""")


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
GOES = {"tennis racket": 0.2}


# which pixels


def test_masks_are_drawn_as_they_are_written():
    assert (outline_mask(runs_of(PERSON), 5, 6) == PERSON).all()
    square = json.dumps([[1, 1, 4, 1, 4, 3, 1, 3]])
    expected = drawn("...... .###.. .###.. ...... ......")
    assert (outline_mask(square, 5, 6) == expected).all()
    two = json.dumps([[0, 0, 1, 0, 1, 1, 0, 1], [4, 2, 6, 2, 6, 4, 4, 4]])
    assert (outline_mask(two, 5, 6) == drawn("#..... ...... ....## ....## ......")).all()


@pytest.mark.parametrize("outline", [runs_of(PERSON), "[[0, 0, 50, 0, 50, 50]]", "no JSON", "3"])
def test_an_outline_of_another_size_is_refused(outline):
    with pytest.raises(CapbiasError):
        outline_mask(outline, 6, 5)


def test_a_box_is_every_pixel_that_it_touches():
    assert (box_mask((1.2, 0.9, 3.0, 2.1), 5, 6) == drawn(".##... .##... .##... ...... ......")).all()
    assert not box_mask((-4, -4, 0, 0), 5, 6).any() and box_mask((-4, -4, 99, 99), 5, 6).all()


@pytest.mark.parametrize(
    ("fraction", "expected"),
    [
        (0.5, "...... ..##.. .##... ...... ......"),  # 4 of 8 pixels
        (0.25, "...... ..##.. ...... ...... ......"),
        (0.3125, "...... ..##.. .#.... ...... ......"),  # 2.5 of 8, rounded up
        (0.01, "...... ...... ...... ...... ......"),  # 0.08 of a pixel
        (1.0, "...... ..##.. .####. .#..#. ......"),
    ],
)
def test_a_part_is_the_first_pixels_in_reading_order(fraction, expected):
    assert (part_of(PERSON, fraction) == drawn(expected)).all()


def test_each_condition_by_hand():
    of = {name: region(name, (5, 6), PERSON, (1, 1, 5, 4), RACKET) for name in MASKED}
    assert (of["part"] == drawn("...... ..##.. .##... ...... ......")).all()
    assert (of["segment"] == PERSON).all() and (of["object"] == RACKET).all()
    assert (of["box"] == drawn("...... .####. .####. .####. ......")).all()
    assert (of["both"] == drawn("...... ..##.# .##### .#..## ......")).all()


@pytest.mark.parametrize(
    ("condition", "given", "said"),
    [
        ("segments", {}, "Did you mean segment"),
        ("segment", {}, "condition segment needs"),
        ("both", {"person_mask": PERSON}, "condition both needs"),
        ("segment", {"person_mask": PERSON.T}, "5 x 6 pixels, the photograph 6 x 5"),
        ("part", {"person_mask": PERSON, "fraction": 0}, "fraction"),
    ],
)
def test_a_region_that_cannot_be_had(condition, given, said):
    with pytest.raises(CapbiasError, match=said):
        region(condition, (5, 6), **given)


def test_the_foreground_is_the_largest_outline_or_the_labelled_person():
    assert foreground(SHOWN)["outline"] == runs_of(PERSON)
    assert foreground(SHOWN, (0, 0, 2, 2))["outline"] == runs_of(SMALL)
    assert foreground(SHOWN, (5, 4, 6, 5)) is None  # nobody is where the label says
    assert foreground(SHOWN[SHOWN["object"] != "person"]) is None
    crowd = outlines(outline_row("1", "person", PERSON, crowd=True), outline_row("1", "person", SMALL))
    assert foreground(crowd)["outline"] == runs_of(SMALL)
    # A thin person across the picture has the larger box, and the smaller outline.
    thin = drawn("#..... .#.... ..#... ...#.. ....#.")
    assert foreground(outlines(outline_row("1", "person", thin), outline_row("1", "person", PERSON)))["x1"] == 1


def test_the_foreground_of_boxes_is_the_largest():
    found = boxes(("1", "person", 0.9, 0, 0, 2, 2), ("1", "dog", 1.0, 0, 0, 6, 5), ("1", "person", 0.4, 0, 1, 5, 2))
    assert foreground(found)["confidence"] == 0.4


def test_what_is_hidden_of_one_photograph():
    def hidden(condition, **further):
        return hidden_pixels(SHOWN, (5, 6), MaskRule(condition, departures=GOES, **further))

    assert (hidden("segment") == PERSON).all()
    assert (hidden("segment", whose="all") == (PERSON | SMALL)).all()
    # Of two people half of each, not half of both together.
    half = drawn("#..... ..##.. .##... ...... ......")
    assert (hidden("part", whose="all") == half).all()
    assert (hidden("object") == RACKET).all() and (hidden("both") == (PERSON | RACKET)).all()


def test_the_labelled_person_is_hidden():
    assert (hidden_pixels(SHOWN, (5, 6), MaskRule("segment"), (0, 0, 1, 2)) == SMALL).all()
    with pytest.raises(NothingToMask, match="without a person where the label says"):
        hidden_pixels(SHOWN, (5, 6), MaskRule("segment"), (5, 4, 6, 5))


def test_boxes_stand_for_outlines_under_object_and_both():
    found = boxes(("1", "person", 0.9, 1, 1, 3, 3), ("1", "tennis racket", 0.9, 3, 2, 6, 4))
    hidden = {name: hidden_pixels(found, (5, 6), MaskRule(name, departures=GOES)) for name in ("box", "object", "both")}
    assert (hidden["box"] == drawn("...... .##... .##... ...... ......")).all()
    assert (hidden["object"] == drawn("...... ...... ...### ...### ......")).all()
    assert (hidden["both"] == (hidden["box"] | hidden["object"])).all()


@pytest.mark.parametrize(
    ("rows", "condition", "said"),
    [
        (SHOWN[SHOWN["object"] != "person"], "segment", "without a person"),
        (SHOWN.iloc[:0], "segment", "without an outline or box of anything"),
        (SHOWN.iloc[:0], "object", "without an outline or box of anything"),
        (SHOWN.iloc[:0], "both", "without an outline or box of anything"),
        (SHOWN[SHOWN["object"] != "person"], "both", "without a person"),
    ],
)
def test_a_photograph_with_nothing_to_hide(rows, condition, said):
    with pytest.raises(NothingToMask, match=said):
        hidden_pixels(rows, (5, 6), MaskRule(condition, departures=GOES))


def test_both_hides_the_person_where_there_is_no_object():
    people = SHOWN[SHOWN["object"] == "person"]
    assert (hidden_pixels(people, (5, 6), MaskRule("both", departures=GOES)) == PERSON).all()


@pytest.mark.parametrize("condition", ["object", "both"])
def test_a_photograph_without_the_object_is_kept_or_left_out(condition):
    people = SHOWN[SHOWN["object"] == "person"]
    kept = hidden_pixels(people, (5, 6), MaskRule(condition, departures=GOES))
    assert (kept == (PERSON if condition == "both" else np.zeros((5, 6)))).all()
    with pytest.raises(NothingToMask, match="without one of the correlated objects"):
        hidden_pixels(people, (5, 6), MaskRule(condition, departures=GOES, only_masked=True))
    # One that shows the object is hidden alike.
    hidden = hidden_pixels(SHOWN, (5, 6), MaskRule(condition, departures=GOES, only_masked=True))
    assert (hidden == (RACKET | PERSON if condition == "both" else RACKET)).all()


def test_marks_of_a_photograph_of_another_size_are_refused():
    with pytest.raises(CapbiasError, match="12 x 10 pixels has outlines on 6 x 5"):
        hidden_pixels(SHOWN, (10, 12), MaskRule("box"))
    with pytest.raises(CapbiasError, match="boxes that reach to x = 60"):
        hidden_pixels(boxes(("1", "person", 1.0, 0, 0, 60, 5)), (5, 6), MaskRule("box"))


def test_real_outlines_lie_within_their_boxes(coco_bias):
    segments = read_frame(coco_bias / "annotations" / "instances_subset.json", "segments")
    people = segments[(segments["object"] == "person") & ~segments["crowd"]]
    assert len(people) > 70
    for row in people.itertuples():
        size = row.height, row.width
        segment, box = outline_mask(row.outline, *size), box_mask((row.x1, row.y1, row.x2, row.y2), *size)
        assert segment.any() and not (segment & ~box).any()


# what is put there


@pytest.fixture(scope="module")
def pixels() -> np.ndarray:
    return np.random.default_rng(7).integers(0, 256, (5, 6, 3), dtype=np.uint8)


@pytest.mark.parametrize("how", FILLS)
def test_every_pixel_outside_stays_and_the_photograph_is_not_touched(pixels, how):
    before = pixels.copy()
    found = filled(pixels, PERSON, how)
    assert (found[~PERSON] == before[~PERSON]).all() and (pixels == before).all()
    assert (found[PERSON] != before[PERSON]).any()
    assert (filled(pixels, PERSON, how) == found).all()


def test_grey_and_mean_to_the_pixel(pixels):
    assert (filled(pixels, PERSON, "grey")[PERSON] == 128).all()
    flat = np.zeros((1, 4, 3), dtype=np.uint8)
    flat[0, :, 0] = [10, 20, 30, 43]  # 103 / 4 = 25.75
    found = filled(flat, np.array([[True, False, False, False]]), "mean")
    assert found[0].tolist() == [[26, 0, 0], [20, 0, 0], [30, 0, 0], [43, 0, 0]]


def test_noise_is_the_photographs_own(pixels):
    other = pixels.copy()
    other[0, 0, 0] ^= 1
    whole = np.ones((5, 6), dtype=bool)
    assert (filled(pixels, whole, "noise") != filled(other, whole, "noise")).mean() > 0.9
    large = filled(np.zeros((200, 200, 3), dtype=np.uint8), np.ones((200, 200), dtype=bool), "noise")
    assert abs(large.mean() - 127.5) < 1.5 and set(np.unique(large)) == set(range(256))


def test_blur_takes_the_edge_away():
    picture = np.zeros((100, 100, 3), dtype=np.uint8)
    picture[:, 50:] = 200
    found = filled(picture, np.ones((100, 100), dtype=bool), "blur")
    # A Gaussian of deviation 5: half at the edge, 0.02 and 0.98 of the step two deviations away.
    assert abs(found[50, 49:51].mean() - 100) < 6
    assert found[50, 39, 0] == pytest.approx(4.6, abs=4) and found[50, 60, 0] == pytest.approx(195.4, abs=4)


def test_a_fill_that_is_not_known(pixels):
    with pytest.raises(CapbiasError, match="grey"):
        filled(pixels, PERSON, "gray")
    with pytest.raises(CapbiasError, match="mask has 5 x 6"):
        filled(pixels, PERSON.T, "grey")


# regions


def test_regions_to_drop_by_hand():
    person = np.array([[2, 0, 4, 4]])
    regions = np.array(
        [
            [2, 0, 4, 4],  # all of it
            [1, 0, 3, 4],  # 4 of 8: exactly a half stays
            [1, 0, 4, 4],  # 8 of 12
            [2, 1, 3, 2],  # small, within the person
            [0, 0, 6, 4],  # around the person: 8 of 24
            [1.5, 0, 3, 4],  # touches the columns 1 and 2: 4 of 8
            [9, 9, 12, 12],  # elsewhere
        ]
    )
    assert dropped_regions(regions, person).tolist() == [True, False, True, True, False, False, False]
    assert dropped_regions(regions[:2], person, overlap=0.4).tolist() == [True, True]
    assert dropped_regions(np.zeros((0, 4)), person).tolist() == []
    assert dropped_regions(regions, np.zeros((0, 4))).tolist() == [False] * 7


def test_regions_are_compared_with_boxes():
    # The person's box is columns 1 to 4, rows 1 to 3; the racket's columns 4 and 5, rows 1 to 3.
    regions = pd.DataFrame([[1, 1, 3, 2], [5, 1, 6, 4], [0, 0, 1, 2]], columns=["x1", "y1", "x2", "y2"])

    def dropped(condition, **further):
        return regions_to_drop(regions, SHOWN, MaskRule(condition, departures=GOES, **further)).tolist()

    assert dropped("box") == dropped("segment") == [True, False, False]
    assert dropped("object") == [False, True, False] and dropped("both") == [True, True, False]
    assert dropped("box", whose="all") == [True, False, True]
    assert regions_to_drop(regions, SHOWN, MaskRule("box"), (0, 0, 1, 2)).tolist() == [False, False, True]
    # The person's box and the racket's share the column 4: five columns and three rows are covered, of six and five.
    whole = pd.DataFrame([[0, 0, 6, 5], [0, 1, 6, 4], [0, 0, 1e12, 1e12]], columns=["x1", "y1", "x2", "y2"])
    assert covered(whole.to_numpy(), np.array([[1, 1, 5, 4], [4, 1, 6, 4]])) == pytest.approx([15 / 30, 15 / 18, 0])
    assert regions_to_drop(whole, SHOWN, MaskRule("both", departures=GOES)).tolist() == [False, True, False]
    assert regions_to_drop(regions, SHOWN.iloc[2:], MaskRule("box")).tolist() == [False] * 3


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


def test_an_object_that_is_too_seldom_named_does_not_count(monkeypatch):
    monkeypatch.setattr("capbias_core.measures.object_associations.least_captions", lambda side: 5)
    assert list(departures(HUMAN, known_attributes()["gender"])) == ["tie"]
    monkeypatch.setattr("capbias_core.measures.object_associations.least_captions", lambda side: 9)
    with pytest.raises(CapbiasError, match="No object is named 9 times"):
        departures(HUMAN, known_attributes()["gender"])


def test_the_most_correlated_of_those_in_the_photograph():
    known = {"tie": 0.2, "dog": 0.1, "person": 0.9}
    assert most_correlated(pd.Series(["person", "dog", "tie", "zebra"]), known) == "tie"
    assert most_correlated(pd.Series(["person", "dog"]), known) == "dog"
    assert most_correlated(pd.Series(["person", "zebra"]), known) == ""


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


def test_the_objects_of_a_run_are_said_in_it(scene):
    spec = masking(scene, "both", departures=GOES)
    outcome = run_one(scene, spec, silent)
    assert "1 of them show none of the correlated objects" in outcome.notes[1]
    assert spec.run_id != masking(scene, "both", departures={"tennis racket": 0.3}).run_id


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


def test_a_folder_in_which_nothing_would_be_masked_is_refused(scene):
    for only in (False, True):
        with pytest.raises(CapbiasError, match=r"None of 5 photographs .* \(\d: without one of the corr"):
            run_one(scene, masking(scene, "object", departures={"boat": 1.0}, only_masked=only), silent)
    assert list((scene.folder / "pictures").iterdir()) == []


def test_labelled_people_are_hidden_and_elsewhere_the_largest(scene, pixels):
    scene.keep("boxes", "labels", boxes(("1", "person", 1.0, 0, 0, 1, 2)), "c", "labels.csv")
    run_one(scene, masking(scene, "segment", people="outlines", labelled="labels"), silent)
    item = scene.item("images", "photographs (segment masked, labelled people)", "c")
    files = photograph_files(scene, frozen_photographs(scene, "c", item.name))
    assert (read_photograph(files["1"]) == filled(pixels, SMALL)).all()
    assert (read_photograph(files["2"]) == filled(pixels, SMALL)).all()
    with pytest.raises(CapbiasError, match="Labelled people can only"):
        masking(scene, "segment", people="outlines", labelled="labels", whose="all")


@pytest.mark.long
def test_pictures_of_every_kind_and_the_batch_goes_on(scene):
    folder = scene.folder.parent / "pictures"
    Image.new("1", (10_000, 10_000)).save(folder / "000001.png")  # 100 megapixels, 12 kB
    (folder / "000003.png").write_bytes(b"no picture")
    Image.new("CMYK", (6, 5), (0, 255, 255, 0)).save(folder / "000004.jpg")
    (folder / "000004.png").unlink()
    frames = [Image.new("RGB", (6, 5), colour) for colour in ("red", "blue")]
    frames[0].save(folder / "000005.webp", save_all=True, append_images=frames[1:], lossless=True)
    (folder / "000005.png").unlink()
    keep_images(scene, folder, "c")
    rows = pd.concat([SCENE["1"], SCENE["2"], SCENE["5"], SCENE["5"].assign(image_id="4")], ignore_index=True)
    scene.keep("segments", "outlines", rows, "c", "instances.json")
    outcome = run_one(scene, masking(scene, "segment"), silent)
    item = scene.item("images", "photographs (segment masked)", "c")
    files = photograph_files(scene, frozen_photographs(scene, "c", item.name))
    assert sorted(files) == ["2", "4", "5"]
    first_frame = read_photograph(files["5"])
    assert (first_frame[~PERSON] == (255, 0, 0)).all() and (first_frame[PERSON] == 128).all()
    said = outcome.notes[-1]
    assert "000001.png" in said and "000003.png" in said


def test_the_same_content_is_masked_once(scene, monkeypatch):
    run_one(scene, masking(scene, "segment"), silent)
    drawings = []
    monkeypatch.setattr(masked_photographs, "_mask_one", lambda *given: drawings.append(given))
    run_one(scene, masking(scene, "segment", name="again"), silent)
    assert drawings == [] and scene.item("images", "again", "c").rows == 2


def test_other_content_is_another_folder(scene):
    run_one(scene, masking(scene, "segment"), silent)
    run_one(scene, masking(scene, "segment", fill="blur"), silent)
    run_one(scene, masking(scene, "part", fraction=0.25), silent)
    hashes = {item.hash for item in scene.items("images", "c")}
    assert len(hashes) == 4 and len(list((scene.folder / "pictures").iterdir())) == 3


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
    monkeypatch.setattr(masked_photographs, "FORGOTTEN", time.time() - left.stat().st_mtime - 1)
    run_one(scene, masking(scene, "box"), silent)
    assert not left.exists()


def test_where_nothing_can_be_masked_nothing_is_kept(scene):
    scene.keep("segments", "elsewhere", outlines(outline_row("77", "person", PERSON)), "c", "f")
    with pytest.raises(CapbiasError, match="None of 5 photographs"):
        run_one(scene, masking(scene, "segment", people="elsewhere"), silent)
    assert list((scene.folder / "pictures").iterdir()) == []


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


@pytest.mark.long
def test_a_run_of_the_engine(scene):
    engine = Engine(scene.folder)
    spec = masking(scene, "box")
    engine.submit([spec], "c")
    (row,) = engine.wait([spec.run_id])
    engine.close()
    assert row.status == "finished" and scene.item("images", "photographs (box masked)", "c").rows == 2
    log = [line for _, line in scene.log_of(spec.run_id)]
    assert "left out: 3: without a person" in log


def test_names_say_what_is_unusual():
    assert folder_name("p", MaskOptions(condition="box", fill="grey", whose="all")) == "p (box masked, all people)"
    assert folder_name("p", MaskOptions(condition="part", fill="grey", fraction=0.5)) == "p (part masked)"
    assert folder_name("p", MaskOptions(condition="segment", fraction=0.25)) == "p (segment masked)"


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
    given = [
        "images",
        "mask",
        str(files / "pictures"),
        "--instances",
        str(files / "instances.json"),
        "--output",
        str(out),
    ]
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


@pytest.mark.long
def test_mask_by_boxes(files, capsys):
    (files / "boxes.csv").write_text("image,class,confidence,x1,y1,x2,y2\n000001.png,person,0.9,0,0,3,2\n")
    given = ["images", "mask", str(files / "pictures" / "000001.png"), "--boxes", str(files / "boxes.csv")]
    assert main([*given, "--condition", "box", "--output", str(files / "out")]) == 0
    assert capsys.readouterr().out.endswith(",0.2\n")  # 6 of 30 pixels
    assert main([*given, "--condition", "part", "--output", str(files / "out")]) == 2
    assert "needs outlines of people" in capsys.readouterr().err


@pytest.mark.long
def test_mask_the_labelled_person(files, pixels):
    (files / "labels.csv").write_text("image,class,confidence,x1,y1,x2,y2\n000001.png,person,1,0,0,1,2\n")
    given = ["images", "mask", str(files / "pictures" / "000001.png"), "--instances", str(files / "instances.json")]
    further = ["--condition", "segment", "object", "--object", "tennis racket", "--output", str(files / "out")]
    assert main([*given, *further, "--labelled", str(files / "labels.csv")]) == 0
    assert (read_photograph(files / "out" / "segment" / "000001.png") == filled(pixels, SMALL)).all()
    assert (read_photograph(files / "out" / "object" / "000001.png") == filled(pixels, RACKET)).all()


@pytest.mark.long
def test_mask_a_collection(scene, capsys):
    home = ["--workspace", str(scene.folder), "--collection", "c"]
    assert main(["images", "mask", *home, "--condition", "object", "--object", "dog", "tennis racket"]) == 0
    assert "stored: photographs photographs (object masked)" in capsys.readouterr().err
    assert scene.item("images", "photographs (object masked)", "c").rows == 3
    asked = ["--condition", "segment", "object", "--object", "dog", "tennis racket", "--only-masked"]
    assert main(["images", "mask", *home, *asked]) == 0
    assert "2: without one of the correlated objects" in capsys.readouterr().err
    assert scene.item("images", "photographs (object masked, only masked)", "c").rows == 2
    assert scene.item("images", "photographs (segment masked)", "c").rows == 2


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


@pytest.mark.long
def test_real_photographs(coco_bias, tmp_path):
    workspace = Workspace(tmp_path / "home")
    keep_images(workspace, coco_bias / "images", "c")
    segments = read_frame(coco_bias / "annotations" / "instances_subset.json", "segments")
    workspace.keep("segments", "outlines", segments, "c", "instances.json")
    run_one(workspace, masking(workspace, "segment"), silent)
    item = workspace.item("images", "photographs (segment masked)", "c")
    assert item.rows == 24
    files = photograph_files(workspace, frozen_photographs(workspace, "c", item.name))
    originals = photograph_files(workspace, frozen_photographs(workspace, "c"))
    for image in list(files)[:4]:
        before, after = read_photograph(originals[image]), read_photograph(files[image])
        own = segments[segments["image_id"] == image]
        person = outline_mask(foreground(own)["outline"], *before.shape[:2])
        assert (after[~person] == before[~person]).all() and (after[person] == 128).all()
