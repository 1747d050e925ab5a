"""Networks: the encoders against PyTorch's packed layers and by hand, the one training loop, threads."""

import threading
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn.utils.rnn import pack_padded_sequence  # noqa: E402

from capbias_core.attackers import ATTACKERS, load_attacker  # noqa: E402
from capbias_core.attackers.base import Training  # noqa: E402
from capbias_core.attackers.networks import training  # noqa: E402
from capbias_core.attackers.networks.scratch import RecurrentAttacker, TransformerAttacker, positions  # noqa: E402
from capbias_core.prepare.tokens import Tokens  # noqa: E402
from capbias_core.types import silent  # noqa: E402
from tests.attackers.test_ngram import fit_one  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

SCRATCH = ("lstm_bi", "lstm", "rnn", "rnn_bi", "transformer_1h", "transformer_5h")
SMALL = {"hidden": 12, "embedding": 20, "epochs": 3, "learning_rate": 0.005, "batch": 16, "device": "cpu"}


def captions_of(n: int = 110) -> tuple[list[str], np.ndarray]:
    """Captions of 0 to 9 words, some of them repeated, and labels that one word hints at."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, n)
    captions = [" ".join([*rng.choice(list("abcdefghij"), rng.integers(0, 9)), "kl"[label]]) for label in labels]
    captions[30:34], captions[40:50] = [""] * 4, captions[50:60]
    return captions, labels


def small(name: str, **changes):
    return replace(load_attacker(name), **SMALL | changes)


def fitted(attacker, seed: int = 0):
    captions, labels = captions_of()
    corpus = attacker.corpus(captions)
    return corpus, fit_one(attacker, corpus, np.arange(110), labels, 2, seed)


def test_captions_as_ids_by_hand_are_read_once_by_length_and_an_epoch_has_full_batches():
    vocabulary, batches, pad = training.training_vocabulary(Tokens.read(["b a", "<unk>"])), [], training.PAD
    assert vocabulary == {"<unk>": 1, "a": 2, "b": 3}
    coded = training.with_ids(Tokens.read(["b x", "", "a b a", "", "a"]), vocabulary)
    assert coded.lengths.tolist() == [2, 1, 3, 1, 1]
    ids = training.ids_of(coded, np.arange(4), "cpu")
    assert ids.tolist() == [[3, 1, pad], [pad] * 3, [2, 3, 2], [pad] * 3]

    def encoder(ids):
        batches.append(ids.tolist())
        return ids.sum(dim=1, keepdim=True)

    assert training.read(encoder, coded, np.array([2, 0, 4, 2, 1]), "cpu").flatten().tolist() == [7, 4, 2, 7, 0]
    assert batches == [[[0], [2]], [[3, 1]], [[2, 3, 2]]]
    batches = training.batches_by_length(np.repeat([4, 5, 6, 9], [150, 70, 64, 3]), 64, np.random.default_rng(0))
    assert sorted(np.concatenate(batches)) == list(range(287))
    assert sorted(map(len, batches)) == [31, 64, 64, 64, 64]


@pytest.mark.parametrize(("unit", "ways"), [("lstm", 1), ("lstm", 2), ("rnn", 1), ("rnn", 2)])
def test_vectors_are_the_last_states_of_pytorchs_packed_captions(unit, ways):
    torch.manual_seed(1)
    network = RecurrentAttacker(unit=unit, ways=ways, hidden=6, embedding=5).network(9, 1).eval()
    plain = {"lstm": nn.LSTM, "rnn": nn.RNN}[unit](5, 6, num_layers=2, batch_first=True, bidirectional=ways == 2)
    states = [layer.state_dict().items() for layer in network.layers]
    plain.load_state_dict({name.replace("l0", f"l{n}"): own for n, state in enumerate(states) for name, own in state})
    captions = Tokens(np.array([3, 4, 5, 6, 7, 8, 2, 3, 1, 1, 4, 5]), np.array([0, 4, 5, 8, 12]), [])
    ids = training.ids_of(captions, np.arange(4), "cpu")
    lengths = torch.from_numpy(captions.lengths)
    last = plain(pack_padded_sequence(network.words(ids), lengths, batch_first=True, enforce_sorted=False))[1]
    last = (last[0] if unit == "lstm" else last)[-ways:]
    torch.testing.assert_close(
        training.read(network.vectors, captions, np.arange(4), "cpu"), torch.cat(list(last), dim=1)
    )


def test_attention_is_that_of_the_layers_and_sums_to_one():
    """By hand for the first layer: softmax of queries times keys over the root of the head's size."""
    torch.manual_seed(2)
    network = TransformerAttacker(heads=5, hidden=16, embedding=10).network(9, 1).eval()
    ids = torch.tensor([[3, 4, 5]])
    with torch.no_grad():
        weights = network.attentions(ids)
        states = network.words(ids) + positions(network.words(ids))
        layer = network.layers[0].self_attn
        queries, keys, _ = nn.functional.linear(states[0], layer.in_proj_weight, layer.in_proj_bias).split(10, 1)
    assert weights.shape == (1, 2, 5, 3, 3)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(1, 2, 5, 3))
    expected = (queries[:, 4:6] @ keys[:, 4:6].T / 2**0.5).softmax(dim=1)  # head 2 of 5, of 2 numbers each
    torch.testing.assert_close(weights[0, 0, 2], expected)
    # E = 4: wavelengths 2 pi and 100 x 2 pi; position 1 is sin 1, cos 1, sin 0.01, cos 0.01.
    sines = positions(torch.zeros(1, 2, 4))
    assert sines[0].tolist() == [0, 1, 0, 1]
    assert sines[1].tolist() == pytest.approx([0.841471, 0.540302, 0.0099998, 0.99995], abs=1e-6)


def test_settings_are_the_papers():
    lic = load_attacker("lstm_bi")
    assert (lic.embedding, lic.hidden, lic.layers, lic.dropout, lic.head) == (100, 256, 2, 0.5, ())
    assert (lic.learning_rate, lic.batch, lic.epochs, lic.patience, lic.optimizer) == (5e-5, 64, 20, 0, "Adam")
    for name in SCRATCH[1:]:
        dbac = load_attacker(name)
        assert (dbac.learning_rate, dbac.batch, dbac.epochs, dbac.patience) == (1e-3, 256, 50, 5)
        assert len(dbac.head) == 2 and not ATTACKERS[name].in_process
    recurrent = [(load_attacker(name).unit, load_attacker(name).ways) for name in SCRATCH[:4]]
    assert recurrent == [("lstm", 2), ("lstm", 1), ("rnn", 1), ("rnn", 2)]
    assert [load_attacker(name).heads for name in SCRATCH[4:]] == [1, 5]


def test_one_seed_has_one_result_and_a_caption_alone_the_same_logits():
    attacker, state = small("lstm_bi", dropout=0.5, epochs=2), torch.get_rng_state()
    corpus, model = fitted(attacker, 5)
    assert torch.equal(state, torch.get_rng_state()), "a fit leaves the generator of the process alone"
    torch.rand(17)
    logits = [own.logits(corpus, np.arange(110)) for own in (model, fitted(attacker, 5)[1], fitted(attacker, 6)[1])]
    assert np.array_equal(logits[0], logits[1]) and np.abs(logits[0] - logits[2]).max() > 1e-3
    captions, rows = captions_of()[0], np.array([7, 100, 3, 3, 31])
    alone = [model.logits(attacker.corpus([captions[row]]), np.array([0]))[0] for row in rows]
    np.testing.assert_allclose(model.logits(corpus, rows), alone, atol=1e-5)
    assert model.logits(corpus, np.array([], dtype=int)).shape == (0, 1)
    parts = model.contributions(corpus, np.array([30, 0]))  # an empty caption is the baseline
    assert parts.words[0].shape == (0, 1) and parts.delta[0] == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(parts.baseline[0], model.logits(corpus, np.array([30]))[0], atol=1e-6)
    one, other = model.logits(attacker.corpus(["zebra", "<unk>"]), np.arange(2))
    assert one == other, "words that no training caption has are unknown"


def test_losses_and_dropout_by_hand():
    three = training.caption_losses(torch.log(torch.tensor([[1.0, 2.0, 5.0]])), torch.tensor([2]))
    assert three.item() == pytest.approx(-np.log(5 / 8))
    tasks = training.caption_losses(torch.tensor([[0.0, np.log(3)]]), torch.tensor([[True, True]]))
    assert tasks.item() == pytest.approx(np.log(2) - np.log(3 / 4))
    # Dropout keeps the expectation, and scoring drops nothing.
    dropout = training.Dropout(0.25)
    values = dropout(torch.ones(200, 500))
    assert values.unique().tolist() == pytest.approx([0, 4 / 3]) and values.mean().item() == pytest.approx(1, abs=0.02)
    assert torch.equal(dropout.eval()(torch.ones(2, 3)), torch.ones(2, 3))


@pytest.mark.parametrize("optimizer", ["Adam", "AdamW"])
def test_it_is_a_plain_loop_of_pytorch(optimizer):
    """The same first weights and order, BCEWithLogitsLoss and the optimizer, in a loop; double precision."""
    rng = np.random.default_rng(5)
    vectors = torch.from_numpy(rng.normal(size=(240, 12)))
    labels = (vectors[:, 0].numpy() + 0.3 * rng.normal(size=240) > 0).astype(int)
    ours, plain = (
        training.initialised(partial(training.mlp, (12, 16, 8, 1), 0.01, True), 9).double() for _ in range(2)
    )
    settings = training.NetworkAttacker(learning_rate=0.01, epochs=4, patience=0, optimizer=optimizer)
    order = np.random.default_rng(3).permutation(240).reshape(4, 60)
    split = np.arange(240), np.arange(0)
    task = Training(np.arange(240), labels, 0)
    training.learn(ours, lambda rows: ours(vectors[rows]), task, split, lambda rng: list(order), settings, silent)
    step = getattr(torch.optim, optimizer)(plain.parameters(), lr=0.01)
    for _ in range(4):
        for batch in order:
            step.zero_grad()
            loss = nn.BCEWithLogitsLoss()(plain(vectors[batch])[:, 0], torch.from_numpy(labels[batch]).double())
            loss.backward()
            step.step()
    torch.testing.assert_close(ours(vectors), plain.eval()(vectors))


def test_the_epoch_with_the_lowest_loss_on_the_captions_set_aside_is_kept():
    """One weight that rises with each epoch: losses aside fall, rise, and end training."""
    network, seen = nn.Linear(1, 1, bias=False), []
    network.weight.data.zero_()
    labels = np.array([1, 1, 1, 0])  # two of three set aside are 1: the loss is lowest at weight ln 2

    def logits(rows):
        if not network.training:
            seen.append(network.weight.item())
        return torch.ones(len(rows), 1) @ network.weight.T

    settings = training.NetworkAttacker(learning_rate=0.2, epochs=50, patience=3)
    split = np.array([0]), np.array([1, 2, 3])
    task = Training(np.arange(4), labels, 0)
    training.learn(network, logits, task, split, lambda rng: [np.array([0])], settings, silent)
    best = min(range(len(seen)), key=lambda place: abs(seen[place] - np.log(2)))
    assert network.weight.item() == pytest.approx(seen[best], abs=1e-6) and len(seen) == best + 1 + 3


def test_threads_give_what_one_after_the_other_gives():
    captions, labels = captions_of()
    attacker = small("rnn", dropout=0.5, epochs=2)
    corpus, reports, caller = attacker.corpus(captions), [], threading.get_ident()
    rows = [np.random.default_rng(seed).permutation(110)[: 90 - seed] for seed in range(3)]
    torch.set_num_threads(1)
    alone = [fit_one(attacker, corpus, own, labels, 2, seed) for seed, own in enumerate(rows)]
    torch.set_num_threads(2)

    def tick(share: float, text: str) -> None:
        reports.append((share, threading.get_ident() == caller))

    trainings = [Training(own, labels[own], seed) for seed, own in enumerate(rows)]
    together = list(attacker.fit_many(corpus, trainings, 2, tick))
    torch.set_num_threads(1)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(one.logits(corpus, rows[0]), other.logits(corpus, rows[0]), atol=1e-5)
    shares = [share for share, _ in reports]
    assert shares == sorted(shares) and shares[-1] == 1
    assert all(here for _, here in reports), "only the thread that asked reports"
