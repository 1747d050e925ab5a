"""One photograph under each condition: what is hidden, layers drawn over it, captions scored alike, uploads."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from capbias_core.types import BOX_COLUMNS, SEGMENT_COLUMNS
from capbias_core.views import photographs
from capbias_core.worker import execute
from capbias_core.workspace.ingest import keep_images, load_demo
from capbias_core.workspace.store import Workspace


def outline(name: str, x1: int, y1: int, x2: int, y2: int) -> tuple:
    """A row of outlines: a rectangle on a photograph of 20 x 10 pixels."""
    polygon = json.dumps([[x1, y1, x2, y1, x2, y2, x1, y2]])
    return ("1", name, False, 10, 20, x1, y1, x2, y2, polygon)


@pytest.fixture
def marked() -> pd.DataFrame:
    """A person of 4 x 6 pixels, a smaller one, a ball of 2 x 2 beside them."""
    rows = [outline("person", 2, 2, 6, 8), outline("person", 10, 2, 12, 4), outline("ball", 14, 5, 16, 7)]
    return pd.DataFrame(rows, columns=list(SEGMENT_COLUMNS))


def test_what_each_condition_hides_by_hand(marked):
    hidden, reasons = photographs.hidden_of(marked, (10, 20), "ball")
    pixels = {"part": 12, "segment": 24, "box": 24, "person": 24, "object": 4, "both": 28}
    assert photographs.hidden_of(marked, (10, 20), "book")[1] == {"object": "no such object is marked on it"}
    assert reasons == {} and {name: int(own.sum()) for name, own in hidden.items()} == pixels
    assert hidden["part"][2:5, 2:6].all() and not hidden["part"][5:].any(), "the upper half"
    assert hidden["object"][5:7, 14:16].all()
    detected = pd.DataFrame([("1", "person", 0.8, 1, 1, 6, 8)], columns=list(BOX_COLUMNS))
    hidden, reasons = photographs.hidden_of(marked, (10, 20), "ball", boxes=detected)
    assert hidden["box"].sum() == 35 and hidden["both"].sum() == 28, "the detector's box, and the outline"
    hidden, reasons = photographs.hidden_of(detected, (10, 20))
    assert set(hidden) == {"box", "person", "both"} and set(reasons) == {"part", "segment", "object"}
    # The object that departs most comes first.
    more = pd.concat([marked, pd.DataFrame([outline("bench", 0, 8, 20, 10)], columns=list(SEGMENT_COLUMNS))])
    assert photographs.objects_on(more, {}) == ["bench", "ball"], "the larger first where nothing is known"
    assert photographs.objects_on(more, {"ball": 0.3, "bench": 0.1}) == ["ball", "bench"]


@pytest.mark.long
def test_captions_of_every_condition_are_scored_by_the_attackers_that_did_not_see_the_image(tmp_path):
    from capbias_core.question import Question
    from capbias_core.runs.plan import plan
    from capbias_core.views.scored import caption_scores, stored_attackers

    workspace = Workspace(tmp_path)
    load_demo(workspace)
    name = workspace.items("captions", "demo")[0].name
    request = Question("demo", (name,), "labels", "gender", ("LIC_M",), seeds=1, words=True)
    spec = next(spec for spec in plan(workspace, request) if spec.measure == "caption_scores")
    workspace.enqueue(spec, "demo")
    execute(str(tmp_path), spec.run_id)
    scores = caption_scores(workspace.get_run(spec.run_id))
    attackers = stored_attackers(scores.run)
    row = scores.table.iloc[0]
    frame = workspace.frame(spec.captions)
    own = frame.loc[frame["image_id"] == row["image_id"], "caption"].tolist()
    again, edited = photographs.rescored(scores, attackers, row["image_id"], [own[0], "somebody with a ball"])
    assert again.probabilities[row["predicted"]] == pytest.approx(row["confidence"]), "as the run itself scored it"
    assert edited.logit != pytest.approx(again.logit)
    stranger = photographs.rescored(scores, attackers, "not an image", [own[0]])[0]
    mean = np.mean([attackers.score(own[0], scores.attribute, fold).logit for fold in range(len(attackers.weights))], 0)
    assert stranger.logit == pytest.approx(mean), "an image of no fold: the mean of all attackers"


def picture(path, colour: int = 90):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 6), (colour, 90, 90)).save(path)
    return path


@pytest.mark.long
def test_uploaded_photographs_are_kept_together_and_bad_ones_named(tmp_path):
    workspace, given = Workspace(tmp_path / "home"), tmp_path / "given"
    cut = picture(given / "13.jpg")
    cut.write_bytes(cut.read_bytes()[:200])
    item, refused = photographs.keep_uploaded(workspace, "mine", [picture(given / "12.jpg"), cut])
    assert item.rows == 1 and set(refused) == {"13.jpg"}
    item, refused = photographs.keep_uploaded(workspace, "mine", [picture(given / "14.png"), picture(given / "12.png")])
    assert item.rows == 2 and set(refused) == {"12.png"}, "beside the earlier ones, one for each image"
    files = photographs.photographs_of(workspace, "mine")
    assert set(files) == {"12", "14"} and all(path.is_file() for path in files.values())


@pytest.mark.slow
def test_uploaded_photographs_go_for_good_with_their_item(tmp_path):
    """Another collection has photographs of the same names, which stay; the list of files is one, the folders two."""
    workspace, given = Workspace(tmp_path / "home"), tmp_path / "given"
    for collection in ("mine", "other"):
        item, _ = photographs.keep_uploaded(workspace, collection, [picture(given / "1.jpg"), picture(given / "2.jpg")])
        assert sorted(photographs.photographs_of(workspace, collection)) == ["1", "2"]
    mine, others = (set(photographs.photographs_of(workspace, name).values()) for name in ("mine", "other"))
    item, _ = photographs.keep_uploaded(workspace, "mine", [picture(given / "3.jpg")])
    assert all(path.is_file() for path in mine | others), "what is replaced by a longer list stays"
    workspace.delete(item)
    assert not any(path.exists() for path in mine) and all(path.is_file() for path in others)
    photographs.keep_uploaded(workspace, "mine", [picture(given / "4.jpg")])
    assert list(photographs.photographs_of(workspace, "mine")) == ["4"]
    own = picture(tmp_path / "own" / "1.jpg")
    workspace.delete(keep_images(workspace, own.parent, "third"))
    assert own.is_file(), "a folder of the user's is never removed"


def test_a_set_that_was_made_here_is_shown_with_the_photographs_that_it_was_made_from(tmp_path):
    """Two folders of one condition hold files of the same names, so that only the folders' names tell them apart."""
    workspace, frame = Workspace(tmp_path), pd.DataFrame({"image_id": ["1"], "file": ["1.png"]})
    grey, _ = (
        workspace.keep(
            "photographs", f"p (box masked, {fill})", frame, "c", "test", {"folder": fill, "condition": "box"}
        )
        for fill in ("grey", "blur")
    )
    made_by = {"captioner": {}, "photographs": {"name": grey.name, "item": grey.hash, "digest": "x"}}
    captions = pd.DataFrame({"image_id": ["1"], "caption_index": [0], "caption": ["a dog"]})
    made = workspace.keep("captions", "m", captions, "c", "test", {"made_by": made_by})
    for sets, name in (({}, "p (box masked, blur)"), ({"box": made}, grey.name)):  # the newest, else its folder
        assert {key: item.name for key, item in photographs.masked_folders(workspace, "c", sets).items()} == {
            "box": name
        }
