"""The BiLSTM attacker, against PyTorch's own to_npz LSTM with the same weights, and on captions with a planted cue."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

from capbias_core.attackers.base import probabilities
from capbias_core.attackers.networks.batches import PAD, UNKNOWN, encode, training_batches, training_vocabulary
from capbias_core.attackers.networks.recurrent import RecurrentAttacker
from capbias_core.attackers.networks.stacked import Dropout
from capbias_core.errors import Cancelled
from capbias_core.types import silent

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

TINY = RecurrentAttacker(
    embedding=12, hidden=16, batch=16, epochs=8, learning_rate=0.01, integration_steps=50, device="cpu"
)
FILLERS = ["a", "<gender>", "is", "riding", "holding", "on", "the", "street", "with", "red", "dog", "ball", "near"]
CUES = ["kitchen", "surfboard", "umbrella"]


def planted(n: int, n_values: int, seed: int = 0) -> tuple[list[str], np.ndarray]:
    """Captions of 3 to 9 words, one of which (anywhere) names the value."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % n_values
    captions = []
    for label in labels:
        words = list(rng.choice(FILLERS, rng.integers(2, 9)))
        words.insert(rng.integers(len(words) + 1), CUES[label])
        captions.append(" ".join(words))
    return captions, labels


def fit(attacker: RecurrentAttacker, captions, labels, n_values: int = 2, seed: int = 0, tick=silent):
    corpus = attacker.corpus(captions)
    return corpus, attacker.fit(corpus, np.arange(len(captions)), labels, n_values, seed, tick)


@pytest.fixture(scope="module", params=[2, 3])
def trained(request):
    """Captions, labels, corpus and model for two and for three values."""
    captions, labels = planted(240, request.param)
    return captions, labels, *fit(TINY, captions, labels, request.param)


def test_defaults_are_the_papers():
    paper = RecurrentAttacker()
    assert (paper.embedding, paper.hidden, paper.layers, paper.dropout) == (100, 256, 2, 0.5)
    assert (paper.learning_rate, paper.batch, paper.epochs) == (5e-5, 64, 20)


def test_learns_a_planted_cue(trained):
    _, labels, _, model = trained
    n_values = len(set(labels))
    unseen, answers = planted(60, n_values, seed=1)
    logits = model.logits(TINY.corpus(unseen), np.arange(60))
    assert logits.shape == (60, 1 if n_values == 2 else n_values)
    assert (probabilities(logits).argmax(axis=1) == answers).mean() > 0.95


def test_random_labels_are_not_learned():
    captions, _ = planted(240, 2)
    labels = np.random.default_rng(3).integers(0, 2, 240)
    unseen, _ = planted(200, 2, seed=1)
    _, model = fit(TINY, captions, labels)
    answers = np.random.default_rng(4).integers(0, 2, 200)
    logits = model.logits(TINY.corpus(unseen), np.arange(200))
    assert 0.35 < (probabilities(logits).argmax(axis=1) == answers).mean() < 0.65


def test_one_seed_one_result_whatever_the_process_drew():
    captions, labels = planted(80, 2)
    torch.manual_seed(1)
    np.random.seed(1)
    corpus, first = fit(TINY, captions, labels, seed=5)
    torch.rand(17)
    np.random.rand(3)
    state = torch.get_rng_state()
    _, second = fit(TINY, captions, labels, seed=5)
    assert torch.equal(state, torch.get_rng_state()), "a fit must leave the process's generator as it was"
    rows = np.arange(80)
    np.testing.assert_array_equal(first.logits(corpus, rows), second.logits(corpus, rows))
    _, other = fit(TINY, captions, labels, seed=6)
    assert np.abs(first.logits(corpus, rows) - other.logits(corpus, rows)).max() > 1e-3


def packed_logits(model, captions: list[str]) -> np.ndarray:
    """The same weights in one two-layer `nn.LSTM`, over padded and to_npz captions."""
    network = model.network
    lstm = nn.LSTM(12, 16, num_layers=2, batch_first=True, bidirectional=True)
    with torch.no_grad():
        for depth, layer in enumerate(network.layers):
            for name, value in layer.named_parameters():
                for way, ending in enumerate(("", "_reverse")):
                    getattr(lstm, f"{name}_l{depth}{ending}").copy_(value[0, way])
        tokens = [torch.tensor([model.vocabulary.get(word, UNKNOWN) for word in c.split()]) for c in captions]
        lengths = torch.tensor([len(each) for each in tokens])
        embedded = network.embed(pad_sequence(tokens, batch_first=True)[None])[0]
        _, (last, _) = lstm(pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False))
        return network.head(torch.cat([last[2], last[3]], dim=1)[None])[0].numpy()


def test_states_are_those_at_the_true_ends(trained):
    captions, _, corpus, model = trained
    np.testing.assert_allclose(model.logits(corpus, np.arange(240)), packed_logits(model, captions), atol=1e-4)


def test_a_caption_alone_has_the_same_logits(trained):
    captions, _, corpus, model = trained
    rows = np.array([7, 200, 3, 3, 91])
    alone = np.concatenate([model.logits(TINY.corpus([captions[row]]), np.array([0])) for row in rows])
    np.testing.assert_allclose(model.logits(corpus, rows), alone, atol=1e-4)
    assert model.logits(corpus, np.array([], dtype=int)).shape == (0, alone.shape[1])


def test_contributions_sum_to_the_logit_within_the_stated_delta(trained):
    captions, labels, corpus, model = trained
    rows = np.array([5, 0, 11, 5, 30, 31])
    parts = model.contributions(corpus, rows)
    logits = model.logits(corpus, rows)
    for place, row in enumerate(rows):
        assert parts.words[place].shape == (len(captions[row].split()), logits.shape[1])
        gap = np.abs(parts.baseline[place] + parts.words[place].sum(axis=0) - logits[place]).max()
        assert gap <= parts.delta[place] + 1e-5
    assert parts.baseline.shape == logits.shape and parts.delta.shape == (len(rows),)
    assert parts.delta.max() < 0.05 * np.abs(logits).max()
    np.testing.assert_array_equal(parts.words[0], parts.words[3])


def test_the_cue_is_the_largest_contribution_with_the_right_sign(trained):
    captions, labels, corpus, model = trained
    rows = np.arange(30)
    parts = model.contributions(corpus, rows)
    right = 0
    for row, words in zip(rows, parts.words, strict=True):
        toward = words[:, labels[row]] if words.shape[1] > 1 else words[:, 0] * (2 * labels[row] - 1)
        right += captions[row].split()[toward.argmax()] == CUES[labels[row]]
    assert right >= 27


def test_an_empty_caption_is_the_baseline():
    captions, labels = planted(80, 2)
    captions[0] = ""
    corpus, model = fit(TINY, captions, labels)
    parts = model.contributions(corpus, np.array([0, 1]))
    assert parts.words[0].shape == (0, 1) and parts.delta[0] == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(parts.baseline[0], model.logits(corpus, np.array([0]))[0], atol=1e-6)
    assert model.contributions(TINY.corpus([""]), np.array([0])).words[0].shape == (0, 1)


def test_vocabulary_is_the_training_captions_only():
    captions, labels = planted(40, 2)
    corpus = TINY.corpus(captions + ["a zebra <unk>"])
    model = TINY.fit(corpus, np.arange(40), labels, 2, 0, silent)
    assert "zebra" not in model.vocabulary and "a" in model.vocabulary
    assert sorted(model.vocabulary.values()) == list(range(UNKNOWN, UNKNOWN + len(model.vocabulary)))
    same = TINY.corpus(["a zebra", "a <unk>"])
    first, second = model.logits(same, np.array([0, 1]))
    assert first == pytest.approx(second, abs=1e-5)


def test_encoding_pads_after_the_end():
    encoded = encode([["b", "x"], [], ["a", "b", "a"]], training_vocabulary([["b", "a"]]))
    assert encoded.ids.tolist() == [[3, UNKNOWN, PAD], [PAD, PAD, PAD], [2, 3, 2]]
    assert encoded.lengths.tolist() == [2, 1, 3]


def test_an_epoch_reads_each_caption_once_in_full_batches():
    lengths = np.repeat([4, 5, 6, 9], [150, 70, 64, 3])
    batches = training_batches(lengths, 64, np.random.default_rng(0))
    assert sorted(np.concatenate(batches)) == list(range(287))
    assert sorted(map(len, batches)) == [31, 64, 64, 64, 64]
    assert sum(len(set(lengths[batch])) == 1 for batch in batches) == 4
    again = training_batches(lengths, 64, np.random.default_rng(1))
    assert any(not np.array_equal(one, other) for one, other in zip(batches, again, strict=True))


def dropout(share: float) -> Dropout:
    return Dropout(share, [np.random.default_rng(0)], torch.device("cpu"))


def test_dropout_keeps_the_expectation_and_drops_its_share():
    values = dropout(0.5)(torch.ones(1, 200, 500))
    assert set(values.unique().tolist()) == {0.0, 2.0}
    assert values.mean().item() == pytest.approx(1, abs=0.02)
    assert dropout(0.25)(torch.ones(1, 200, 500)).mean().item() == pytest.approx(1, abs=0.02)
    assert dropout(0.0)(torch.ones(1, 3)).tolist() == [[1, 1, 1]]


def test_training_drops_and_scoring_does_not(monkeypatch):
    captions, labels = planted(40, 2)
    calls = []
    plain = Dropout.__call__
    monkeypatch.setattr(Dropout, "__call__", lambda self, values: calls.append(values.shape) or plain(self, values))
    corpus, model = fit(RecurrentAttacker(embedding=12, hidden=16, epochs=1, device="cpu"), captions, labels)
    # Embeddings, between the layers, last states: three times for each group of one length.
    assert len(calls) == 3 * len({len(caption.split()) for caption in captions})
    assert {shape[-1] for shape in calls} == {12, 32}
    calls.clear()
    model.logits(corpus, np.arange(40))
    model.contributions(corpus, np.arange(2))
    assert not calls


def test_progress_rises_to_one_and_names_the_epoch():
    captions, labels = planted(200, 2)
    reports = []
    fit(
        RecurrentAttacker(embedding=4, hidden=4, batch=16, epochs=2),
        captions,
        labels,
        tick=lambda *r: reports.append(r),
    )
    shares = [share for share, _ in reports]
    assert shares == sorted(shares) and shares[-1] == 1 and len(shares) >= 4
    assert reports[0][1].startswith("epoch 1 of 2, loss 0.") and reports[-1][1].startswith("epoch 2 of 2")


def test_cancelled_stops_the_fit():
    captions, labels = planted(80, 2)
    reports = []

    def tick(share: float, text: str) -> None:
        reports.append(share)
        if len(reports) == 2:
            raise Cancelled

    with pytest.raises(Cancelled):
        fit(TINY, captions, labels, tick=tick)
    assert len(reports) == 2 and reports[-1] < 1


def test_listing_the_attackers_imports_no_torch():
    code = "import sys, capbias_core.attackers as a; a.attacker_entry('lstm_bi'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_table_of_attackers_loads_it():
    from capbias_core.attackers import load_attacker

    assert isinstance(load_attacker("lstm_bi"), RecurrentAttacker)
