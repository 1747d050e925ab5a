"""Grad-CAM: maps by hand, beside Captum's, on a captioner whose gender word depends on a planted patch; the metrics of
maps; runs from photographs to rows."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from captum.attr import LayerGradCam
from PIL import Image
from torch.nn import functional

from capbias_core.errors import CapbiasError
from capbias_core.language.files import ModelFiles
from capbias_core.measures import attribution
from capbias_core.metrics.attribution import attribution_even, attribution_pixels, attribution_score, pointing_game
from capbias_core.question import Question
from capbias_core.runs.plan import plan
from capbias_core.runs.run import run_one
from capbias_core.types import BOX_COLUMNS, SEGMENT_COLUMNS, silent
from capbias_core.views.photographs import attribution_runs, kept_maps
from capbias_core.vision.captioners import Captioner
from capbias_core.vision.grad_cam import GRAD_CAM, HIRES_CAM, MAPS, normalised, upsampled, word_maps
from capbias_core.workspace.ingest import keep_images
from capbias_core.workspace.photographs import frozen_photographs
from capbias_core.workspace.store import Workspace
from tests.captioners import save_blip, save_git
from tests.collections_ import keep
from tests.planted import CAPTION, PATCH, SIDE, photograph, tensor, trained

pytestmark = pytest.mark.torch

PLACES = [((0, 0), (36, 36)), ((36, 24), (0, 12)), ((12, 24), (36, 0))]  # of the patch, and of the other one
GENDER, THING = 1, 4  # places of the words in the caption


def patch(at: tuple[int, int], around: int = 0) -> np.ndarray:
    """(SIDE, SIDE) booleans, true on the patch at (top, left) and some pixels around it."""
    top, left = (max(0, place - around) for place in at)
    found = np.zeros((SIDE, SIDE), dtype=bool)
    found[top : at[0] + PATCH + around, left : at[1] + PATCH + around] = True
    return found


def test_maps_by_hand():
    activations = np.array([[[2.0, 0.0], [4.0, 8.0]], [[1.0, 1.0], [1.0, 1.0]]])
    for way, gradients, wanted in (
        # Means of the gradients 0.5 and -1: 0.5 * [[2, 0], [4, 8]] - [[1, 1], [1, 1]] = [[0, -1], [1, 3]], cut at 0.
        (GRAD_CAM, [[[2.0, 0.0], [0.0, 0.0]], [[-1.0, -1.0], [-1.0, -1.0]]], [[0, 0], [1, 3]]),
        # Each cell by itself: [[2, 0], [4, 8]] * [[2, 0], [0, 0]] + [[1, 1], [1, 1]] * [[-1, 1], [3, -2]].
        (HIRES_CAM, [[[2.0, 0.0], [0.0, 0.0]], [[-1.0, 1.0], [3.0, -2.0]]], [[3, 1], [3, 0]]),
    ):
        heat = MAPS[way][0](activations, np.array(gradients))
        assert heat.tolist() == wanted and normalised(heat).max() == 1
    assert normalised(np.zeros((2, 2))).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(("gender", "at", "way"), [("man", PLACES[1], GRAD_CAM), ("man", PLACES[2], HIRES_CAM)])
def test_the_map_of_the_gender_word_lies_on_the_patch(gender, at, way):
    """The patch covers 6% of the photograph and has 61% to 74% of the map, 93% or more with one cell of it around; the
    other patch has nothing. Moved, the map moves with it. A mean over places follows the layer, so both ways agree."""
    pixels = photograph(gender, "dog", *at, seed=10**6)
    maps = word_maps(trained(), pixels, CAPTION.format(gender=gender, thing="dog"), [GENDER, THING], way)
    of_gender, of_thing = (upsampled(heat, SIDE, SIDE) for heat in maps)
    assert 1 - attribution_score(of_gender, patch(at[0])) > 0.55
    assert 1 - attribution_score(of_gender, patch(at[0], around=4)) > 0.9
    assert 1 - attribution_score(of_gender, patch(at[1])) < 0.05
    assert 1 - attribution_score(of_thing, patch(at[1])) > 0.5 > 0.1 > 1 - attribution_score(of_thing, patch(at[0]))
    assert pointing_game(of_gender, patch(at[0])) == pointing_game(of_thing, patch(at[1])) == 1


def test_maps_are_those_of_captum():
    model = trained()
    pixels = photograph("woman", "ball", *PLACES[1], seed=10**6)
    ids = [own for own in model.token_scores(pixels, "a woman with a ball").ids]

    def score(pictures):
        return model(pictures)[:, GENDER].log_softmax(dim=-1)[:, ids[GENDER]]

    theirs = LayerGradCam(score, model.vision_layer).attribute(tensor(pixels[None]), relu_attributions=True)
    for frozen in (False, True):
        model.requires_grad_(not frozen)
        try:
            ours = word_maps(model, pixels, "a woman with a ball", [GENDER], GRAD_CAM)[0]
        finally:
            model.requires_grad_(True)
        assert ours == pytest.approx(normalised(theirs[0, 0].detach().numpy()), abs=1e-5)


@pytest.mark.parametrize(("save", "way"), [(save_blip, GRAD_CAM), (save_git, HIRES_CAM)])
def test_maps_of_transformers_leave_the_class_token_out(save, way, tmp_path):
    """The same from the tokens (1, 17, C) of the layer: the first is of no place, the others are 4 rows of 4."""
    captioner = Captioner(str(save(tmp_path)), "cpu")
    pixels = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    caption, kept = "a man riding a surfboard", []
    found = word_maps(captioner, pixels, caption, [1, 4], way)

    hook = captioner.vision_layer.register_forward_hook(
        lambda module, given, output: kept.append(output if torch.is_tensor(output) else output[0])
    )
    read = captioner.token_scores(pixels, caption)
    hook.remove()
    assert read.texts[-2:] == ["surf", "##board"]
    for heat, score in zip(found, (read.log_probabilities[1], read.log_probabilities[-2:].sum()), strict=True):
        (gradient,) = torch.autograd.grad(score, kept[0], retain_graph=True)
        weights = gradient[0, 1:].mean(dim=0, keepdim=True) if way == GRAD_CAM else gradient[0, 1:]
        raw = (kept[0][0, 1:] * weights).sum(dim=1).reshape(4, 4).relu().detach().numpy()
        assert heat == pytest.approx(normalised(raw), abs=1e-4)


def test_a_map_covers_what_the_captioner_sees():
    """GIT's processor cuts the middle square out of 60 x 40: columns 10 to 50. Outside it the map is 0."""
    heat = np.random.default_rng(0).random((7, 5)).astype(np.float32)
    theirs = functional.interpolate(torch.tensor(heat)[None, None], (48, 60), mode="bilinear", align_corners=False)
    assert upsampled(heat, 48, 60) == pytest.approx(theirs[0, 0].numpy(), abs=1e-6)
    over = upsampled(np.ones((4, 4)), 40, 60, (10, 0, 50, 40))
    assert over[:, 10:50].min() == 1 and over[:, :10].max() == over[:, 50:].max() == 0
    assert upsampled(np.ones((2, 2)), 4, 4, (-2, -2, 6, 6)).tolist() == np.ones((4, 4)).tolist()


HEAT = np.array([[4.0, 0.0, 1.0], [0.5, 2.0, 0.5]])
PERSON = np.array([[True, False, False], [True, False, True]])


def test_scores_of_maps_by_hand():
    """8 in all; on the person 4 + 0.5 + 0.5, outside 0 + 1 + 2 = 3. At 0.6 (15% of 4) or more: 4, 1 and 2, of which
    two are outside. The person covers 3 pixels of 6."""
    assert attribution_score(HEAT, PERSON) == pytest.approx(3 / 8)
    assert attribution_pixels(HEAT, PERSON) == pytest.approx(2 / 3)
    assert attribution_even(HEAT, PERSON) == 0.5
    for score in (attribution_score, attribution_pixels):
        assert score(HEAT, np.ones((2, 3), dtype=bool)) == 0 and score(HEAT, np.zeros((2, 3), dtype=bool)) == 1
    for score in (attribution_score, attribution_pixels, attribution_even, pointing_game):
        assert np.isnan(score(np.zeros((2, 3)), PERSON)), "a map of nothing has no score"
    assert pointing_game(HEAT, PERSON) == 1 and pointing_game(HEAT, ~PERSON) == 0
    # Three pixels share the maximum: two of them, then one of them, on the person.
    shared = np.array([[4.0, 4.0, 4.0], [0.5, 2.0, 0.5]])
    assert pointing_game(shared, np.array([[True, True, False], [False] * 3])) == 1
    assert pointing_game(shared, PERSON) == 0


# Image -> gender, place of the patch (the person), caption. The last four have no map, each for another reason.
PEOPLE = {
    "1": ("woman", (0, 0), "a woman with a dog"),
    "2": ("man", (24, 12), "a man with a dog"),
    "3": ("man", (12, 24), "a man with a dog"),
    "4": ("woman", (36, 0), "a person with a dog"),
    "5": ("woman", (36, 0), "a woman with a dog"),
    "6": ("man", (36, 0), "a man with a dog"),
    "7": ("man", (36, 0), "a man with a dog"),
}
LABELS = {"woman": "Female", "man": "Male"}
AWAY = (24, 36)  # where the dog is, and where nobody is
REQUEST = Question("c", ("planted",), "labels", "gender", ("attribution",))


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """Captions, labels, photographs and outlines of PEOPLE; the captioner is the planted one."""
    folder = tmp_path / "photographs"
    folder.mkdir()
    for image, (value, at, _) in PEOPLE.items():
        Image.fromarray(photograph(value, "dog", at, AWAY, int(image))).save(folder / f"{image}.png")
    (folder / "6.png").write_bytes((folder / "6.png").read_bytes()[:300])  # 6: a photograph that is cut short
    found = Workspace(tmp_path / "workspace")
    rows = [(image, LABELS[value], text) for image, (value, _, text) in PEOPLE.items()]
    table = pd.DataFrame(rows, columns=["image_id", "gender", "caption"])
    keep(found, labels=table[["image_id", "gender"]], captions={"planted": table[["image_id", "caption"]]})
    keep_images(found, folder, "c")
    keep_outlines(found, "people", {image: at for image, (_, at, _) in PEOPLE.items() if image != "5"})  # 5: nobody
    monkeypatch.setattr("capbias_core.vision.captioners.Captioner", lambda *given: trained())
    monkeypatch.setattr(
        "capbias_core.workspace.sources.resolve_model", lambda *given: ModelFiles("planted", "planted", "")
    )
    monkeypatch.setattr(attribution, "captioner_option", lambda workspace, name: {"name": name, "digest": "0" * 16})
    return found


def keep_outlines(workspace: Workspace, name: str, places: dict[str, tuple[int, int]]) -> None:
    """Each person is a square, the patch; image 7's was drawn on a photograph of another size."""
    rows = []
    for image, (top, left) in places.items():
        corners = [left, top, left + PATCH, top, left + PATCH, top + PATCH, left, top + PATCH]
        side = SIDE * 2 if image == "7" else SIDE
        box = left, top, left + PATCH, top + PATCH
        rows.append((image, "person", False, side, side, *box, json.dumps([corners])))
    workspace.keep("segments", name, pd.DataFrame(rows, columns=list(SEGMENT_COLUMNS)), "c", "instances.json")


def measured(workspace: Workspace, **options):
    """The run and its outcome."""
    (spec,) = plan(workspace, replace(REQUEST, options={"captioner": "planted"} | options))
    return spec, run_one(workspace, spec, silent)


def values(outcome, direction: str = "") -> dict[str, float]:
    return {row.metric: row.value for row in outcome.results if row.direction == direction}


def test_from_photographs_to_rows(workspace):
    """The people of images 1 to 3 are the patches, which cover 144 of 2304 pixels; all else is left out and said."""
    _, outcome = measured(workspace)
    found = values(outcome)
    assert found["attribution_score"] < 45 and found["pointing_game"] == 100
    assert found["attribution_even"] == pytest.approx(100 * (1 - 144 / 2304))
    by_value = values(outcome, "Female"), values(outcome, "Male")
    mean = (by_value[0]["attribution_score"] + 2 * by_value[1]["attribution_score"]) / 3
    assert found["attribution_score"] == pytest.approx(mean)
    assert {row.n for row in outcome.results if row.direction == ""} == {3}
    whole = next(row for row in outcome.results if row.metric == "attribution_score" and row.direction == "")
    assert whole.ci_low <= whole.value <= whole.ci_high and whole.encoder == "planted"
    assert next(row.ci_low for row in outcome.results if row.direction == "Female") is None  # one image has no interval
    assert outcome.notes[1].startswith("Captions left out: 1 name no value, 1 have a photograph on which nobody is")


def test_people_elsewhere_and_maps_that_are_kept(workspace):
    keep_outlines(workspace, "elsewhere", dict.fromkeys(PEOPLE, AWAY))
    away = values(measured(workspace, people="elsewhere")[1])
    assert away["attribution_score"] > 95 and away["pointing_game"] == 0, "the people are where the dog is"
    spec, outcome = measured(workspace, people="people")
    boxes = [(image, "person", 0.9, x, y, x + PATCH, y + PATCH) for image, (_, (y, x), _) in PEOPLE.items()]
    workspace.keep("boxes", "yolo", pd.DataFrame(boxes[:3], columns=list(BOX_COLUMNS)), "c", "detector")
    assert values(measured(workspace, people="yolo")[1]) == pytest.approx(values(outcome)), "the same pixels"
    workspace.enqueue(spec, "c")
    workspace.finish(workspace.get_run(spec.run_id), outcome.results, outcome.kept, outcome.notes)
    kept = kept_maps(attribution_runs(workspace, "c", "gender")["planted"])
    assert kept.table["word"].tolist() == ["woman", "man", "man"]
    (row,) = kept.of_image("2")
    fresh = word_maps(trained(), photograph("man", "dog", (24, 12), AWAY, 2), "a man with a dog", [1])[0]
    assert kept.heat(row) == pytest.approx(fresh, abs=1e-3) and kept.window(row) == (0, 0, SIDE, SIDE)


def test_a_set_is_read_by_the_captioner_that_wrote_it(workspace):
    with pytest.raises(CapbiasError, match="is not known.*captioner=FOLDER"):
        plan(workspace, REQUEST)
    wrote = {"name": "blip", "digest": "f" * 16}
    made_by = {"captioner": wrote, "photographs": frozen_photographs(workspace, "c")}
    item = workspace.item("captions", "planted", "c")
    details = item.details | {"made_by": made_by}
    workspace.keep("captions", "planted", workspace.frame(item.hash), "c", item.source, details)
    assert plan(workspace, REQUEST)[0].options["captioner"] == wrote


def test_masked_captions_are_read_with_masked_photographs(workspace, tmp_path):
    """A set of the condition segment takes the folder of that condition; without one, or with two, it is refused."""
    captions = workspace.frame(workspace.item("captions", "planted", "c").hash).assign(caption="a man with a ball")
    workspace.keep("captions", "planted (segment masked)", captions, "c", "m.json", {"condition": "segment"})
    sets = ("planted", "planted (segment masked)")
    request = replace(REQUEST, captions=sets, metrics=("attribution_score",), options={"captioner": "planted"})
    for number, (name, condition) in enumerate((("boxed", "box"), ("grey", "segment"), ("blurred", "segment"))):
        place = tmp_path / name
        place.mkdir()
        Image.new("RGB", (SIDE, SIDE), (number, 0, 0)).save(place / "1.png")
        keep_images(workspace, place, "c", name, {"condition": condition, "of": "photographs"})
        if name == "grey":
            assert [spec.options["photographs"]["name"] for spec in plan(workspace, request)] == ["photographs", "grey"]
            continue
        with pytest.raises(
            CapbiasError, match="no folder" if name == "boxed" else r"several folders \(grey, blurred\)"
        ):
            plan(workspace, request)
