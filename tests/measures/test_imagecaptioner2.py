"""Judges that see photographs: their scores by hand, what they learn from planted leaks, runs, prompts, bad inputs."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from capbias_core.aggregate import Counts, estimates_of
from capbias_core.attackers.base import probabilities
from capbias_core.errors import CapbiasError
from capbias_core.measures.image_judge import METRICS, VL_LIC_METRICS, photographs_shown, small_pictures
from capbias_core.measures.photographs import CaptionOptions
from capbias_core.measures.training import AttackerTrainer, Guesses, caption_lists
from capbias_core.metrics import confidence, lic, sentence_classification
from capbias_core.prepare.tokens import Tokens
from capbias_core.question import Question
from capbias_core.runs.artifact_runs import plan_captioning
from capbias_core.runs.plan import plan
from capbias_core.runs.run import run_one
from capbias_core.types import Attribute, silent
from capbias_core.vision.presets import QUESTION, STATEMENT, prompted, written
from capbias_core.workspace.ingest import keep_images
from capbias_core.workspace.photographs import ORIGINALS
from capbias_core.workspace.store import Workspace
from tests.attackers.test_ngram import fit_one  # noqa: E402
from tests.collections_ import keep

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from capbias_core.attackers.networks.scratch import RecurrentAttacker  # noqa: E402
from capbias_core.vision.captioners import Captioner  # noqa: E402
from capbias_core.vision.judges import AskedJudge, JointJudge, JudgeNetwork, PairCorpus, ScratchJudge  # noqa: E402
from tests.captioners import save_blip  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

GENDER = Attribute("gender", "Gender", ("Female", "Male"), {"Female": ("woman",), "Male": ("man",)}, "<gender>")
SIZE = 24
TRAIN = 240
SETTINGS = {"epochs": 10, "learning_rate": 5e-3, "batch": 32, "dropout": 0.2, "device": "cpu"}
SETTINGS |= {"channels": (8, 16, 16), "hidden": 32}


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
    # Amplification is the model minus the humans:
    # B_M = (.9 + .7) / 2 = .8, B_D = (.6 + .5) / 2 = .55; all right, so leakage is 0 and LIC's difference the same.
    # A probability of .5 is right for the first value only, which label 0 is.
    model, human = held_out([1, 0], [0.9, 0.3]), held_out([1, 0], [0.6, 0.5])
    counts = Counts.merge([model.counts("model"), human.counts("human")])
    found = {name: own.value for (name, _), own in estimates_of(METRICS.values(), counts, ()).items()}
    assert found["imagecaptioner2"] == pytest.approx(25.0)
    assert (found["imagecaptioner2_M"], found["imagecaptioner2_D"]) == pytest.approx((80.0, 55.0))
    assert found["imagecaptioner2_lic"] == pytest.approx(25.0) and found["imagecaptioner2_leakage"] == 0
    assert set(VL_LIC_METRICS) == {"vl_lic", "vl_lic_M", "vl_lic_D"}


def test_both_templates_of_the_paper():
    caption = "a <gender> sitting"
    assert prompted(caption, GENDER, STATEMENT) == "a <gender> sitting therefore the gender is"
    assert prompted(caption, GENDER, QUESTION) == "what is the gender of the following sentence a <gender> sitting"
    assert written(caption, GENDER, STATEMENT, "male", "[MASK]") == "a [MASK] sitting. therefore, the gender is male"
    asked = written(caption, GENDER, QUESTION, "male", "[MASK]")
    assert asked == "what is the gender of the following sentence? a [MASK] sitting. male"


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
    pixels, captions, labels = planted(2 * TRAIN, leak, where)
    corpus, test = PairCorpus(pixels, np.arange(2 * TRAIN), Tokens.read(captions)), np.arange(TRAIN, 2 * TRAIN)
    fitted = fit_one(judge, corpus, np.arange(TRAIN), labels)
    shares = probabilities(fitted.logits(corpus, test))
    return Guesses(tuple(map(str, test)), test * 0, test - TRAIN, labels[test], shares)


def scratch(**other):
    return ScratchJudge(**{**SETTINGS, "embedding": 16, **other})


def joint(**other):
    text = RecurrentAttacker(embedding=16, hidden=16, layers=1)
    return JointJudge(**{**SETTINGS, "text": text, **other})


@pytest.mark.parametrize(("where", "leak"), [("caption", 0.0), ("picture", 0.9)])
def test_judges_are_at_chance_without_a_leak_and_rise_with_it(where, leak):
    right = (1 + leak) / 2
    assert score(lic, judged(joint(), leak, where)) == pytest.approx(right**2, abs=0.07)
    assert score(confidence, judged(scratch(), leak, where)) == pytest.approx(right**2 + (1 - right) ** 2, abs=0.05)


def test_attention_follows_show_attend_and_tell():
    """Its Eq. 4 to 6 and the gate of section 4.2.1, in numpy."""
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


# a captioner of transformers as judge

WORDED = Attribute("gender", "Gender", ("Woman", "Man"), {"Woman": ("woman",), "Man": ("man",)}, "<gender>")


@pytest.fixture(scope="module")
def blip(tmp_path_factory) -> Path:
    """A tiny BLIP with random weights whose tokenizer knows both answers."""
    return save_blip(tmp_path_factory.mktemp("blip"))


def photographs(folder: Path, n: int, size: int = 32) -> list[Path]:
    rng = np.random.default_rng(3)
    files = [folder / f"{place}.png" for place in range(n)]
    for file in files:
        Image.fromarray(rng.integers(0, 255, (size, size, 3), dtype=np.uint8)).save(file)
    return files


def test_a_captioner_is_asked_for_each_answer(blip, tmp_path):
    """P(A) is the softmax over the two answers' logits after the prompt, from one forward pass of transformers."""
    from transformers import BlipForConditionalGeneration, BlipProcessor

    files = photographs(tmp_path, 2)
    judge = AskedJudge(Captioner(str(blip), "cpu"), files, WORDED, STATEMENT)
    corpus = judge.corpus([(0, "a <gender> riding"), (1, "a <gender> riding")])
    none = np.array([], dtype=int)
    found = probabilities(fit_one(judge, corpus, none, none).logits(corpus, np.array([0, 1])))

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


def asked(metric: str, references: str = "human", **options) -> Question:
    options = {"photographs": "segment masked", "picture_size": 16, "judge_epochs": 1} | options
    return Question("set", ("one",), "labels", "gender", (metric,), references, seeds=2, options=options)


def run(workspace: Workspace, request: Question):
    return run_one(workspace, plan(workspace, request)[0], silent)


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
    values = [rows[f"imagecaptioner2{end}"].value for end in ("", "_M", "_D")]
    assert values[0] == pytest.approx(values[1] - values[2])
    assert any("7.png" in note for note in outcome.notes)
    for own in ({"prompt": QUESTION}, {"judge_epochs": 2}, {"picture_size": 32}):
        assert plan(workspace, asked("imagecaptioner2", **own))[0].run_id != spec.run_id
    other, few = tmp_path / "other", tmp_path / "few"
    other.mkdir(), few.mkdir()
    Image.new("RGB", (8, 8)).save(other / "999.png")
    photographs(few, 17, 16)
    for folder, message in ((other, "100 captioned images"), (few, "17 there are Female 9, Male 8")):
        keep_images(workspace, folder, "set", folder.name)
        with pytest.raises(CapbiasError, match=message):
            run(workspace, asked("imagecaptioner2", photographs=folder.name))
    assert [photographs_shown(name, "photographs") for name in ("gender", "emotion")] == ["unmasked", ""]


def test_a_pretrained_judge_is_asked_about_all_balanced_photographs_and_may_be_the_captioner(blip, tmp_path):
    workspace = kept(tmp_path, 80, pictures=9)
    outcome = run(workspace, asked("imagecaptioner2", "", judge=str(blip), judge_epochs=None, prompt=QUESTION))
    row = next(row for row in outcome.results if row.metric == "imagecaptioner2_M")
    # Photographs 0 to 8: five of women and four of men, so four of each.
    assert row.n == 8 and row.encoder == blip.name
    assert any("71 of 80" in note for note in outcome.notes)
    keep_images(workspace, tmp_path / "shown", "set", ORIGINALS)
    making = plan_captioning(workspace, "set", CaptionOptions(captioner=str(blip), name="own"))
    captions = workspace.frame(workspace.item("captions", "one", "set").hash)
    workspace.keep("captions", "own", captions, "set", "made", {"made_by": making.options})
    request = replace(asked("imagecaptioner2", "", judge="self", judge_epochs=None), captions=("own",))
    (spec,) = plan(workspace, request)
    assert spec.options["judge"]["digest"] == making.options["captioner"]["digest"]
    row = run_one(workspace, spec, silent).results[0]
    assert row.encoder == "self" and blip.name in row.method


def test_each_caption_is_read_with_its_picture(tmp_path):
    """Captions in another order than the images, and an index that some images lack; pictures are squares in the order
    of their ids."""
    images = ["5", "7", "8", "9"]
    rows = [("9", 0), ("5", 0), ("8", 0), ("7", 0), ("8", 1), ("5", 1), ("9", 1)]
    texts = [(image, index, f"{image} {index}") for image, index in rows]
    frame = pd.DataFrame(texts, columns=["image_id", "caption_index", "caption"])
    labels = np.array([0, 1, 0, 1])
    lists, read = caption_lists(frame, frame["caption"], images, labels, 2), []
    attacker = SimpleNamespace(corpus=read.extend, fit_many=lambda *given: [])
    trainer = AttackerTrainer(attacker, 2, labels, tuple(images), silent, 2, sees_images=True)
    assert list(trainer.logits(lists, [], "captions")) == []
    assert sorted(f"{images[image]} {text[-1]}" for image, text in read) == sorted(frame["caption"])
    assert all(text.startswith(images[image]) for image, text in read) and len(read) == 7

    Image.new("RGB", (40, 10), (200, 0, 0)).save(tmp_path / "b.png")
    Image.new("L", (10, 40), 7).save(tmp_path / "a.png")
    (tmp_path / "c.png").write_bytes(b"no picture")
    files = {name: tmp_path / f"{name}.png" for name in "cba"}
    seen, refused = small_pictures(files, 8, silent)
    assert list(refused) == ["c"] and seen.shape == (2, 3, 8, 8) and seen.dtype == np.uint8
    assert (seen[0] == 7).all() and (seen[1, 0] == 200).all() and (seen[1, 1:] == 0).all()
    vectors, _ = small_pictures(files, 8, silent, lambda pictures: pictures.mean(axis=(2, 3)))
    assert vectors.tolist() == [[7, 7, 7], [200, 0, 0]]
