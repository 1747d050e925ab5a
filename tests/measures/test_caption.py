"""Captions of photographs from a tiny captioner to a kept set, and a metric on it; in the terminal and as a run."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from capbias_core.errors import Cancelled, CapbiasError
from capbias_core.measures.photographs import CaptionOptions
from capbias_core.question import Question
from capbias_core.runs.artifact_runs import plan_captioning
from capbias_core.runs.engine import needs_workers
from capbias_core.runs.plan import plan
from capbias_core.runs.run import run_one
from capbias_core.types import silent
from capbias_core.workspace.conditions import condition_of
from capbias_core.workspace.photographs import keep_images
from capbias_core.workspace.store import Workspace

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.captioners import save_blip  # noqa: E402
from tests.collections_ import keep  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

SETTINGS = {"beams": 2, "length": 6, "batch": 4}
IMAGES = [str(number) for number in range(1, 11)]
BROKEN = "000000000011.jpg"


@pytest.fixture(scope="module")
def blip(tmp_path_factory) -> Path:
    return save_blip(tmp_path_factory.mktemp("captioners") / "tiny-blip")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Ten photographs of four patches of colour, and one that was cut short."""
    place, rng = tmp_path_factory.mktemp("pictures"), np.random.default_rng(1)
    for image in IMAGES:
        patches = rng.integers(0, 256, (2, 2, 3), dtype=np.uint8).repeat(15, axis=0).repeat(22, axis=1)
        Image.fromarray(patches).save(place / f"{int(image):012d}.jpg")
    (place / BROKEN).write_bytes((place / "000000000001.jpg").read_bytes()[:700])
    return place


@pytest.fixture
def workspace(tmp_path, folder) -> Workspace:
    home = Workspace(tmp_path / "home")
    keep_images(home, folder, "mine")
    return home


def captioning(workspace: Workspace, captioner: str, photographs: str = "", name: str = "", **settings):
    """The run that captions photographs of the collection."""
    options = CaptionOptions(captioner=captioner, photographs=photographs, name=name, **settings)
    return plan_captioning(workspace, "mine", options)


def done(workspace: Workspace, spec, progress=silent):
    return run_one(workspace, spec, progress)


def test_from_photographs_to_a_metric(workspace, blip):
    """Ten of eleven are captioned; ratio and error then rest on those of them that have a label."""
    spec = captioning(workspace, str(blip), **SETTINGS)
    assert needs_workers(spec)
    outcome = done(workspace, spec)
    item = workspace.item("captions", "tiny-blip", "mine")
    frame = workspace.frame(item.hash)
    assert frame["image_id"].tolist() == IMAGES
    assert condition_of(item) == ("tiny-blip", "original")
    assert outcome.results == [] and outcome.notes[0].startswith("10 captions by tiny-blip")
    assert outcome.notes[1].startswith("1 photograph left out: ") and BROKEN in outcome.notes[1]
    labels = pd.DataFrame({"image_id": IMAGES[:9], "gender": ["Female", "Male"] * 4 + ["Female"]})
    keep(workspace, "mine", labels=labels)
    (counting,) = plan(workspace, Question("mine", ("tiny-blip",), "labels", "gender", ("ratio", "error")))
    rows = {row.metric: row for row in done(workspace, counting).results}
    words = [set(caption.split()) for caption in frame["caption"][:9]]
    men, women = (
        sum(word in own and other not in own for own in words) for word, other in (("man", "woman"), ("woman", "man"))
    )
    assert men and women, "the tiny captioner names both"
    assert rows["ratio"].value == pytest.approx(men / women)


def test_a_set_that_another_run_replaced_is_made_again(workspace, blip, monkeypatch):
    """The name is that of the captioner, whatever the settings; asked again, the first settings give their captions."""
    few, many = SETTINGS | {"length": 2}, SETTINGS
    found = {}
    for settings in (few, many, few):
        spec = captioning(workspace, str(blip), **settings)
        assert workspace.enqueue(spec, "mine"), "it is computed"
        outcome = done(workspace, spec)
        workspace.finish(workspace.get_run(spec.run_id), outcome.results, outcome.kept, outcome.notes)
        found.setdefault(spec.run_id, []).append(workspace.item("captions", "tiny-blip", "mine").hash)
    assert sorted(map(len, found.values())) == [1, 2] and len({own for each in found.values() for own in each}) == 2
    again = captioning(workspace, str(blip), **few)
    assert not workspace.enqueue(again, "mine"), "it is there already"


def test_captions_that_were_loaded_are_not_replaced(workspace, blip):
    frame = pd.DataFrame({"image_id": ["1"], "caption_index": [0], "caption": ["a man"]})
    workspace.keep("captions", "tiny-blip", frame, "mine", "tiny.json", {})
    with pytest.raises(CapbiasError, match="loaded from tiny.json"):
        captioning(workspace, str(blip), **SETTINGS)
    assert captioning(workspace, str(blip), name="again", **SETTINGS).options["name"] == "again"


def test_a_run_that_stops_or_can_read_no_photograph_keeps_nothing(workspace, blip, tmp_path):
    for stop in (0.5, 1.0):

        def progress(share, text, stop=stop):
            if share >= stop:
                raise Cancelled

        with pytest.raises(Cancelled):
            done(workspace, captioning(workspace, str(blip), **SETTINGS), progress)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "1.jpg").write_text("no picture")
    keep_images(workspace, tmp_path / "broken", "mine", "broken")
    with pytest.raises(CapbiasError, match="None of 1 photograph got a caption. 1 photograph left out"):
        done(workspace, captioning(workspace, str(blip), "broken"))
    assert workspace.items("captions", "mine") == []
