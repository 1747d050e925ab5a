"""Masked photographs: which pixels, worked out by hand; what is left out; folders that are whole or not there."""

import hashlib
import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from capbias_core.attributes import known_attributes
from capbias_core.errors import Cancelled, CapbiasError
from capbias_core.load.photographs import read_photograph
from capbias_core.measures.photographs import MaskOptions, departures, departures_in
from capbias_core.runs.artifact_runs import plan_masking
from capbias_core.runs.run import run_one
from capbias_core.types import BOX_COLUMNS, SEGMENT_COLUMNS, silent
from capbias_core.vision.masking import MaskRule, NothingToMask, box_mask, filled, hidden_pixels, outline_mask
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
THIN = drawn("#..... .#.... ..#... ...#.. ....#.")  # a larger box than PERSON's, and a smaller outline
BOX = drawn("...... .####. .####. .####. ......")  # around PERSON
NOTHING = np.zeros((5, 6), dtype=bool)
HALF = drawn("...... ..##.. .##... ...... ......")  # of PERSON


def outlines(image: str, *marks: tuple, crowd: bool = False) -> pd.DataFrame:
    """marks: the name of what is marked, and its mask."""
    rows = []
    for name, mask in marks:
        ys, xs = np.nonzero(mask)
        box = xs.min(), ys.min(), xs.max() + 1, ys.max() + 1
        rows.append((image, name, crowd, *mask.shape, *box, runs_of(mask)))
    return pd.DataFrame(rows, columns=list(SEGMENT_COLUMNS))


def boxes(*rows: tuple) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(BOX_COLUMNS))


SHOWN = outlines("1", ("person", SMALL), ("person", PERSON), ("tennis racket", RACKET))
PEOPLE, THINGS = SHOWN.iloc[:2], SHOWN.iloc[2:]
CROWD = pd.concat([outlines("1", ("person", PERSON), crowd=True), outlines("1", ("person", SMALL))])
SLIM = outlines("1", ("person", THIN), ("person", PERSON))
DOG = outlines("1", ("dog", SMALL), ("tennis racket", RACKET))
BOXED = boxes(
    ("1", "person", 0.9, 1, 1, 3, 3), ("1", "person", 0.4, 0, 0, 1, 1), ("1", "tennis racket", 0.9, 3, 2, 6, 4)
)
GOES = {"tennis racket": 0.2, "dog": 0.1}


def test_masks_are_drawn_as_they_are_written():
    assert (outline_mask(runs_of(PERSON), 5, 6) == PERSON).all()
    two = json.dumps([[0, 0, 1, 0, 1, 1, 0, 1], [4, 2, 6, 2, 6, 4, 4, 4]])
    assert (outline_mask(two, 5, 6) == drawn("#..... ...... ....## ....## ......")).all()
    for broken in (runs_of(PERSON), "[[0, 0, 50, 0, 50, 50]]", "no JSON", "3"):
        with pytest.raises(CapbiasError):
            outline_mask(broken, 6, 5)
    assert (box_mask((1.2, 0.9, 3.0, 2.1), 5, 6) == drawn(".##... .##... .##... ...... ......")).all()
    assert not box_mask((-4, -4, 0, 0), 5, 6).any() and box_mask((-4, -4, 99, 99), 5, 6).all()


@pytest.mark.parametrize(
    ("rows", "rule", "expected"),
    [
        (SHOWN, MaskRule("segment"), PERSON),
        (CROWD, MaskRule("segment"), SMALL),
        (SLIM, MaskRule("segment"), PERSON),
        (SHOWN, MaskRule("part"), HALF),  # 4 of 8 pixels, in reading order
        (SHOWN, MaskRule("part", 0.3125), drawn("...... ..##.. .#.... ...... ......")),  # 2.5 of 8, rounded up
        (SHOWN, MaskRule("box"), BOX),
        (SHOWN, MaskRule("object", departures=GOES), RACKET),
        (DOG, MaskRule("object", departures=GOES | {"dog": 0.3}), SMALL),
        (SHOWN, MaskRule("both", departures=GOES), PERSON | RACKET),
        (PEOPLE, MaskRule("both", departures=GOES), PERSON),
        (PEOPLE, MaskRule("object", departures=GOES), NOTHING),
        (THINGS, MaskRule("both", departures=GOES), "without a person"),
        (BOXED, MaskRule("both", departures=GOES), drawn("...... .##... .##### ...### ......")),
    ],
)
def test_hidden_pixels_by_hand(rows, rule, expected):
    """Of an object the most correlated one of the photograph; `both` and `object` keep photographs without one."""
    if isinstance(expected, str):
        with pytest.raises(NothingToMask, match=f"^{expected}$"):
            hidden_pixels(rows, (5, 6), rule)
    else:
        assert (hidden_pixels(rows, (5, 6), rule) == expected).all()


@pytest.fixture(scope="module")
def pixels() -> np.ndarray:
    return np.random.default_rng(7).integers(0, 256, (5, 6, 3), dtype=np.uint8)


def test_grey_by_hand_and_marks_of_a_photograph_of_another_size(pixels):
    for rows, size in ((SHOWN, (10, 12)), (boxes(("1", "person", 1.0, 0, 0, 60, 5)), (5, 6))):
        with pytest.raises(CapbiasError, match="pixels has"):
            hidden_pixels(rows, size, MaskRule("box"))
    before = pixels.copy()
    result = filled(pixels, PERSON)
    assert (result[PERSON] == 128).all() and (result[~PERSON] == before[~PERSON]).all() and (pixels == before).all()


def test_departures_by_hand(tmp_path):
    """10 captions name one value: 6 men, 4 women. tie: 4 and 1 of 5, so |0.8 - 0.6| = 0.2. dog: 2 and 2 of 4: 0.1."""
    texts = ["a man with a tie"] * 4 + ["a man and a dog"] * 2
    texts += ["a woman with a tie"] + ["a woman and a dog"] * 2 + ["a woman"]
    texts += ["a tie", "a man and a woman with a cake"]
    human = pd.DataFrame({"image_id": map(str, range(12)), "caption": texts})
    assert departures(human, known_attributes()["gender"]) == {"tie": 0.2, "dog": 0.1}
    # By labels, if captions do not name the value: 12 captions, 4 of them dark: 1/3. tie: 1 of 6 dark, so 1/6; dog: 2
    # of 4, 1/6; cake: 0 of 1, 1/3.
    labels = pd.Series(["Light"] * 6 + ["Dark"] * 4 + ["Light"] * 2, human["image_id"])
    by_label = departures(human, known_attributes()["race"], labels)
    assert by_label == pytest.approx({"cake": 1 / 3, "dog": 1 / 6, "tie": 1 / 6}, abs=1e-6)
    workspace = Workspace(tmp_path / "home")
    with pytest.raises(CapbiasError, match="0 sets of human captions"):
        departures_in(workspace, "c", "gender")
    table = pd.DataFrame({"image_id": human["image_id"], "gender": ["Male"] * 6 + ["Female"] * 6})
    keep(workspace, labels=table, references=human)
    assert departures_in(workspace, "c", "gender") == {"tie": 0.2, "dog": 0.1}


SCENE = {
    "1": SHOWN,
    "2": outlines("2", ("person", SMALL)),
    "3": outlines("3", ("zebra", SMALL)),
    "4": outlines("4", ("person", np.pad(PERSON, ((0, 1), (0, 0))))),
    "5": outlines("5", ("person", PERSON)),
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


def planned(workspace: Workspace, condition: str, **choices):
    """The run that masks photographs of the collection."""
    return plan_masking(workspace, "c", MaskOptions(condition=condition, **choices))


def files_of(scene: Workspace, name: str) -> dict:
    return photograph_files(scene, frozen_photographs(scene, "c", name))


def test_a_folder_of_masked_photographs(scene, pixels):
    originals = sorted((scene.folder.parent / "pictures").iterdir())
    before = [hashlib.sha256(path.read_bytes()).digest() for path in originals]
    outcome = run_one(scene, planned(scene, "segment"), silent)
    item = scene.item("photographs", "photographs (segment masked)", "c")
    files = files_of(scene, item.name)
    assert sorted(files) == ["1", "2"]
    assert (read_photograph(files["1"]) == filled(pixels, PERSON)).all()
    assert (read_photograph(files["2"]) == filled(pixels, SMALL)).all()
    assert item.details["condition"] == "segment" and item.details["of"] == "photographs"
    assert masked_so(scene, "c", "segment") == item.name
    assert [hashlib.sha256(path.read_bytes()).digest() for path in originals] == before
    kept, left_out = outcome.notes
    # 8 and 2 of 30 pixels, a mean of a sixth.
    assert kept.startswith("2 photographs masked (segment) by outlines; on average 16.7%")
    assert left_out.startswith("3 photographs left out: ") and "3: without a person" in left_out
    assert "4: A photograph of 6 x 5 pixels has outlines on 6 x 6" in left_out and "5: 000005.png" in left_out


def test_a_folder_goes_with_its_item_and_originals_stay(scene, monkeypatch):
    def stop(share: float, text: str) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        run_one(scene, planned(scene, "segment"), stop)
    assert list((scene.folder / "pictures").iterdir()) == [] and len(scene.items("photographs", "c")) == 1
    run_one(scene, planned(scene, "segment"), silent)
    drawings = []
    monkeypatch.setattr(masked_photographs, "_mask_one", lambda *given: drawings.append(given))
    run_one(scene, planned(scene, "segment", name="again"), silent)
    assert drawings == [] and scene.item("photographs", "again", "c").rows == 2, "the same content is masked once"
    for name in ("again", "photographs (segment masked)"):
        scene.delete(scene.item("photographs", name, "c"))
    assert list((scene.folder / "pictures").iterdir()) == []
    scene.delete(scene.item("photographs", "photographs", "c"))
    assert len(list((scene.folder.parent / "pictures").iterdir())) == 5


def test_choices_of_masking(scene):
    """What does not go together is refused, and what a condition does not read makes no other run."""
    scene.keep("boxes", "found", boxes(("1", "person", 0.9, 0, 0, 2, 2)), "c", "detector")
    for condition, choices, reason in (
        ("person", {}, "condition 'person'"),
        ("segment", {"people": "found"}, "needs outlines of people"),
        ("segment", {"name": "photographs"}, "the name 'photographs'"),
    ):
        with pytest.raises(CapbiasError, match=reason):
            planned(scene, condition, **choices)
    again = planned(scene, "segment", fraction=0.25, departures=GOES, people="outlines")
    assert again.run_id == planned(scene, "segment").run_id
