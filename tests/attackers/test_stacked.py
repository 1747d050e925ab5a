"""Networks trained in one stack: each is what it would be alone, by PyTorch's layers and a plain loop. In double
precision, so that a sum in another order does not hide a difference."""

from __future__ import annotations

import weakref
from copy import deepcopy
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from capbias_core.attackers.base import Training
from capbias_core.attackers.networks import stacked
from capbias_core.attackers.networks.scratch import LSTM_BI, RecurrentAttacker, TransformerAttacker
from capbias_core.attackers.networks.stacked import Head, Reads, Stack, in_stacks, learn_together
from capbias_core.attackers.networks.training import (
    ORDER,
    PAD,
    Learner,
    NetworkAttacker,
    caption_losses,
    cut,
    initialised,
    learn_alone,
    logits_of,
    mlp,
    read,
    set_aside,
)
from capbias_core.errors import Cancelled, CapbiasError
from capbias_core.prepare.split import FIT, child_seed
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import silent

pytestmark = [pytest.mark.torch, pytest.mark.long, pytest.mark.usefixtures("one_thread")]
CPU = torch.device("cpu")
SMALL = {"embedding": 10, "hidden": 12, "batch": 8, "epochs": 4, "learning_rate": 1e-2, "head": (6, 5)}
ATTACKERS = {
    "lstm_bi": replace(LSTM_BI, **SMALL | {"head": (), "dropout": 0.0}),
    "lstm": RecurrentAttacker(**SMALL),
    "rnn_bi": RecurrentAttacker(**SMALL, unit="rnn", ways=2),
    "transformer": TransformerAttacker(**SMALL, heads=2),
}
# Each network with another number of logits: two values, three, and five task words.
CONFIGURATIONS = pytest.mark.parametrize(
    ("kind", "logits"), [("lstm_bi", 1), ("lstm", 5), ("rnn_bi", 3), ("transformer", 3)]
)
EXACT = {"rtol": 1e-9, "atol": 1e-9}


def learner(attacker, seed: int, words: int, n: int, logits: int = 1, aside: int = 0) -> Learner:
    """n captions to train on and more set aside, of random words of a vocabulary, as long as 15 words, one of them
    empty; the first word decides the label."""
    rng, n = np.random.default_rng(seed), n + aside
    lengths = rng.integers(1, 16, n)
    codes = rng.integers(1, words, lengths.sum())
    captions = Tokens(codes, np.concatenate([[0], np.cumsum(lengths)]), [])
    first = codes[captions.start[:-1]]
    labels = first % max(2, logits) if logits < 4 else np.stack([first % (k + 2) == 0 for k in range(logits)], axis=1)
    codes[captions.start[:-1][lengths == 1][:1]] = PAD  # as `with_ids` writes an empty caption
    network = initialised(lambda: attacker.network(words, logits), seed).double()
    order = rng.permutation(n)
    training = Training(np.arange(n), labels, seed)
    return Learner(network, captions, np.arange(n), training, np.sort(order[aside:]), np.sort(order[:aside]), {})


def learners(attacker, **more) -> list[Learner]:
    """Vocabularies of three sizes, and six batches each: of one the last has 9 captions, not 1."""
    return [learner(attacker, seed, words, n, **more) for seed, words, n in ((0, 9, 49), (1, 30, 47), (2, 17, 44))]


@CONFIGURATIONS
def test_a_stack_gives_the_logits_of_its_networks(kind, logits):
    """Of captions of 0 to 15 words, padded to the longest; of one caption alone; of an empty one, which is one PAD."""
    check_logits(learners(ATTACKERS[kind], logits=logits))
    network = initialised(lambda: ATTACKERS[kind].network(9, 1), 0).double()
    for captions in (Tokens(np.array([PAD, 3]), np.array([0, 1, 2]), []), Tokens(np.array([5]), np.array([0, 1]), [])):
        rows = np.arange(len(captions))
        check_logits([Learner(network, captions, rows, Training(rows, rows, 0), rows, rows[:0], {})])


def check_logits(given: list[Learner]) -> None:
    """The stack gives each caption the logits that its network gives it."""
    reads = Reads.of([each.captions for each in given], [each.kept for each in given], CPU)
    stack = Stack([each.network.eval() for each in given], CPU)
    for part, rows in reads.parts(20):
        found = stack.logits(*reads.batch(rows)).detach()
        for each, logits in zip(given, found, strict=True):
            own = each.kept[part]
            np.testing.assert_allclose(logits[: len(own)], logits_of(each.network, each.captions)[own], **EXACT)


def by_a_plain_loop(given: Learner, attacker) -> tuple[np.ndarray, int]:
    """Logits of the network after the same batches by PyTorch's own layers, loss and optimizer, without a stack; and
    how many epochs it was trained."""
    network, seed = deepcopy(given.network), given.training.seed
    rng, optimizer = np.random.default_rng(child_seed(seed, FIT, ORDER)), getattr(torch.optim, attacker.optimizer)
    optimizer = optimizer(network.parameters(), attacker.learning_rate)
    answers, lengths = torch.as_tensor(given.training.labels), given.captions.lengths
    best, chosen, weights = np.inf, 0, network.state_dict()

    def losses(rows):
        return caption_losses(network.head(read(network.vectors, given.captions, rows, CPU)), answers[rows])

    for epoch in range(attacker.epochs):
        network.train()
        order = given.kept[np.lexsort((rng.random(len(given.kept)), lengths[given.kept]))]
        batches = cut(order, attacker.batch)
        for visit in np.random.default_rng(child_seed(epoch, FIT, ORDER)).permutation(len(batches)):
            optimizer.zero_grad()
            losses(batches[visit]).mean().backward()
            optimizer.step()
        network.eval()
        if not len(given.aside):
            weights = network.state_dict()
            continue
        with torch.no_grad():
            loss = losses(given.aside).mean().item()
        if loss < best:
            best, chosen, weights = loss, epoch, deepcopy(network.state_dict())
        if epoch - chosen >= attacker.patience:
            break
    network.load_state_dict(weights)
    return logits_of(network, given.captions), epoch + 1


def check_trained(given: list[Learner], expected: list[np.ndarray]) -> None:
    for each, logits in zip(given, expected, strict=True):
        np.testing.assert_allclose(logits_of(each.network, each.captions), logits, rtol=1e-6, atol=1e-6)


@CONFIGURATIONS
def test_each_network_of_a_stack_is_trained_as_by_a_plain_loop(kind, logits):
    """The last batch is of different size for each."""
    attacker, given = ATTACKERS[kind], learners(ATTACKERS[kind], logits=logits)
    expected = [by_a_plain_loop(each, attacker)[0] for each in given]
    learn_together(given, attacker, CPU, silent)
    check_trained(given, expected)


@pytest.mark.parametrize("kind", [pytest.param("lstm", marks=pytest.mark.slow), "transformer"])
def test_each_network_keeps_the_weights_of_its_best_epoch_and_stops_alone(kind):
    attacker = replace(ATTACKERS[kind], epochs=30, patience=2, learning_rate=0.003)
    given = learners(attacker, aside=9)
    expected, stopped = zip(*(by_a_plain_loop(each, attacker) for each in given), strict=True)
    assert len(set(stopped)) > 1 and max(stopped) < 30, "the networks stop at different epochs"
    texts = []
    learn_together(given, attacker, CPU, lambda _share, text: texts.append(text))
    check_trained(given, expected)
    assert texts[-1].startswith(f"epoch {max(stopped)} of"), "it ends when the last network stops"


@pytest.mark.parametrize(("kind", "dropout"), [("lstm_bi", 0.5), ("transformer", 0.0)])
def test_a_network_does_not_depend_on_the_others(kind, dropout):
    """Not on how many there are, where it stands, their vocabularies, or when they stop."""
    attacker = replace(ATTACKERS[kind], patience=2, epochs=8)
    attacker = replace(attacker, dropout=dropout) if kind == "lstm_bi" else attacker
    together, alone, turned = (learners(attacker, aside=6) for _ in range(3))
    learn_together(together, attacker, CPU, silent)
    learn_together(turned[::-1][:2], attacker, CPU, silent)
    learn_together(alone[1:2], attacker, CPU, silent)
    expected = [logits_of(alone[1].network, alone[1].captions)]
    check_trained([together[1]], expected)
    check_trained([turned[1]], expected)


def test_dropout_removes_its_share_and_scales_the_rest():
    noise = stacked.Noise(torch.tensor([3, 4]), torch.tensor(1), torch.ones(2, 50))
    values = torch.ones(2, 50, 40)
    first, second = (stacked.dropped(values, noise, 64) for _ in range(2))
    assert first.unique().tolist() == [0, pytest.approx(256 / 192)] and not torch.equal(first, second)
    assert (first == 0).float().mean().item() == pytest.approx(0.25, abs=0.03)
    assert not torch.equal(first[0], first[1])
    counts = torch.bincount(noise.bytes(torch.Size((2, 100_000))).flatten(), minlength=256)
    assert counts.min() > 650 and counts.max() < 920, "bytes are evenly drawn (781 each)"


def test_words_of_padding_learn_nothing():
    given = learners(ATTACKERS["rnn_bi"])
    learn_together(given, ATTACKERS["rnn_bi"], CPU, silent)
    assert not any(each.network.words.weight[0].any() for each in given)


HEADS = {
    "dbac": ({"leak": 0.0}, NetworkAttacker(batch=8, epochs=12, patience=3, learning_rate=0.02)),
    "lic": ({"leak": 0.01}, NetworkAttacker(batch=8, epochs=4, patience=0, learning_rate=0.01)),
    "age": (
        {"leak": 0.01, "norm": True},
        NetworkAttacker(batch=8, epochs=12, patience=3, learning_rate=0.02, optimizer="AdamW"),
    ),
}


@pytest.mark.parametrize(("kind", "logits"), [("dbac", 1), ("lic", 3), ("age", 5), ("age", 1)])
def test_heads_on_vectors_train_in_a_stack_as_alone(kind, logits):
    """On the batches of a CPU, with and without batch normalisation and early stopping. The bias before a normalisation
    has no gradient but rounding, which Adam follows in single precision."""
    shape, settings = HEADS[kind]
    norm = shape.get("norm", False)
    vectors = torch.randn(30, 7, generator=torch.Generator().manual_seed(0), dtype=torch.double if norm else None)
    given = []
    for seed, n in enumerate((54, 52, 48) if settings.patience else (49, 47, 44)):  # six batches each
        copies = np.random.default_rng(seed).integers(0, 30, n)
        signs = (vectors[copies].numpy() > 0).astype(int)
        labels = {1: signs[:, 0], 3: signs[:, 0] + signs[:, 1], 5: signs[:, :5] > 0}[logits]
        head = Head(initialised(partial(mlp, (7, 6, logits), **shape), seed)).to(vectors.dtype)
        split = set_aside(n, seed, settings.patience)
        given.append(Learner(head, vectors, copies, Training(np.arange(n), labels, seed), *split, {}))
    alone = deepcopy(given)
    for each in alone:
        learn_alone(each, settings, silent)
    learn_together(given, settings, CPU, silent)
    for each, single in zip(given, alone, strict=True):
        torch.testing.assert_close(each.network.head(vectors), single.network.head(vectors), rtol=1e-5, atol=1e-5)


# memory, and a run that is stopped


def test_a_stack_that_does_not_fit_is_cut_and_numbers_stay(monkeypatch):
    """Neighbours with other numbers of batches train apart. What did not fit is freed before half of it is tried."""
    attacker, sizes, shares, stacks = ATTACKERS["rnn_bi"], [], [], []
    given = [learner(attacker, seed, 12, 41) for seed in range(5)] + [learner(attacker, 5, 12, 90)]
    expected = [by_a_plain_loop(each, attacker)[0] for each in given]
    plain = stacked.Steps.__call__

    class Watched(stacked.Steps):
        def __init__(self, stack, *more):
            assert not any(old() for old in stacks), "the larger stack is still in memory"
            sizes.append(len(stack.networks))
            stacks.append(weakref.ref(stack))
            super().__init__(stack, *more)

        def __call__(self, *given):
            losses = plain(self, *given)  # after a step, as while a graph is captured
            if len(self.stack.networks) > 2:
                try:
                    raise torch.OutOfMemoryError
                finally:
                    raise RuntimeError("capture ended")
            return losses

    monkeypatch.setattr(stacked, "Steps", Watched)
    parts = list(in_stacks(given, attacker, CPU, lambda share, _text: shares.append(share)))
    assert [[each.training.seed for each in part] for part in parts] == [[0, 1], [2, 3], [4], [5]]
    assert sizes == [5, 2, 2, 1, 1] and shares[-1] == 1
    again = [share for share in shares if share > 0.2]  # the part that was tried again begins anew
    assert again == sorted(again)
    check_trained(given, expected)


def test_a_network_that_does_not_fit_alone_is_an_error(monkeypatch):
    given = learners(ATTACKERS["lstm"])
    before = deepcopy(given[0].network.state_dict())
    monkeypatch.setattr(stacked.Steps, "__call__", lambda *_: (_ for _ in ()).throw(torch.OutOfMemoryError))
    with pytest.raises(CapbiasError, match="does not hold one network"):
        next(in_stacks(given, ATTACKERS["lstm"], CPU, silent))
    assert all(torch.equal(value, before[name]) for name, value in given[0].network.state_dict().items())
    monkeypatch.setattr(stacked.Steps, "__call__", lambda *_: (_ for _ in ()).throw(RuntimeError("a bug")))
    with pytest.raises(RuntimeError, match="a bug"):
        next(in_stacks(given, ATTACKERS["lstm"], CPU, silent))


def test_as_many_networks_fit_as_the_measured_memory_of_one_says(monkeypatch):
    """A copy is measured, on a batch of the longest captions; 1,000 bytes free, of which 800 are used."""
    attacker, taken = replace(ATTACKERS["lstm"], epochs=3), []
    given = [replace(each, kept=each.kept[:40]) for each in learners(attacker, aside=5)]
    before = deepcopy(given[0].network.state_dict())
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _device: 50)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda _device: None)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda _device: 250)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _device: (1000, 5000))
    plain = learn_together

    def watched(part, settings, *more):
        taken.append((len(part), settings.epochs, part[0].lengths.min()))
        plain(part, settings, *more)

    monkeypatch.setattr(stacked, "learn_together", watched)
    memory = stacked.memory_of_one(given, attacker, CPU)
    ((count, epochs, shortest),) = taken
    assert (memory, stacked.fitting(memory, CPU), stacked.fitting(9999, CPU)) == (2 * 200, 2, 1)
    assert (count, epochs) == (1, 1) and shortest >= 10
    assert all(torch.equal(value, before[name]) for name, value in given[0].network.state_dict().items())


def test_a_cancelled_stack_stops_within_an_epoch():
    attacker, shares = replace(ATTACKERS["lstm"], epochs=50), []

    def tick(share, text):
        shares.append(share)
        assert text.startswith("epoch 1 of 50, loss ")
        raise Cancelled

    with pytest.raises(Cancelled):
        list(in_stacks(learners(attacker), attacker, CPU, tick))
    assert len(shares) == 1 and 0 < shares[0] < 1 / 50


# whole attackers


def corpus_of(attacker, captions: int = 130):
    """Captions of a, cat or dog, and up to 12 further words; some are alike, and two are empty."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, captions)
    texts = [f"a {('cat', 'dog')[label]} {' '.join(rng.choice(list('efgh'), rng.integers(12)))}" for label in labels]
    return attacker.corpus(["", "", *texts[2:]]), labels


WHOLE = ATTACKERS | {"lstm_bi": replace(ATTACKERS["lstm_bi"], dropout=0.5)}


@pytest.mark.parametrize(("kind", "values"), [("lstm_bi", 2), ("lstm", 3), ("rnn_bi", 2), ("transformer", 3)])
def test_networks_of_a_stack_read_together_what_each_reads_alone(kind, values):
    """Logits and attributions: of differently many captions, read in other orders, and of captions not announced."""
    attacker = WHOLE[kind]
    corpus, labels = corpus_of(attacker)
    labels = labels + (np.arange(len(labels)) % 3 == 0 if values == 3 else 0)
    reads = [np.arange(90, 130), np.arange(0, 35), np.array([1, 0, 1])]
    trainings = [Training(np.arange(40, 90), labels[40:90], seed, own) for seed, own in enumerate(reads)]
    fitted = list(attacker.fit_in_stacks(corpus, trainings, values, silent))
    for one, own in zip(fitted, reads, strict=True):
        one.network.double()
        assert one.together.places(one.network, corpus, own) is not None
        alone, shuffled = replace(one, together=None), own[::-1][: len(own) - 1]
        np.testing.assert_allclose(one.logits(corpus, shuffled), alone.logits(corpus, shuffled), **EXACT)
        found, expected = (each.contributions(corpus, shuffled) for each in (one, alone))
        np.testing.assert_allclose(found.baseline, expected.baseline, **EXACT)
        np.testing.assert_allclose(found.delta, expected.delta, atol=1e-8)
        assert len(found.words) == len(shuffled)
        for together, single in zip(found.words, expected.words, strict=True):
            np.testing.assert_allclose(together, single, rtol=1e-7, atol=1e-7)
        elsewhere = attacker.corpus(["a dog e", "a cat"])
        np.testing.assert_array_equal(one.logits(elsewhere, np.arange(2)), alone.logits(elsewhere, np.arange(2)))
        np.testing.assert_array_equal(one.logits(corpus, np.arange(40, 50)), alone.logits(corpus, np.arange(40, 50)))


def test_captions_that_do_not_fit_are_read_in_smaller_parts(monkeypatch):
    attacker = ATTACKERS["lstm"]
    corpus, labels = corpus_of(attacker)
    reads = np.arange(90, 130)
    trainings = [Training(np.arange(90), labels[:90], seed, reads) for seed in range(2)]
    (first, _) = attacker.fit_in_stacks(corpus, trainings, 2, silent)
    (whole, sizes), plain = (first.contributions(corpus, reads), []), Stack.read

    def small(self, values, lengths, noise=None):
        sizes.append(lengths.shape[1])
        if lengths.shape[1] > 8:
            raise torch.OutOfMemoryError
        return plain(self, values, lengths, noise)

    monkeypatch.setattr(Stack, "read", small)
    del first.together.attributions, first.together.logits
    parts = first.contributions(corpus, reads)
    assert max(sizes) > 8 >= sizes[-1]
    for one, other in zip(whole.words, parts.words, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_an_attacker_trains_in_stacks_on_cuda_alone(monkeypatch):
    attacker, called = ATTACKERS["lstm"], []
    monkeypatch.setattr(stacked.StackedAttacker, "fit_in_stacks", lambda *_: called.append(1) or iter(["stacked"]))
    corpus, labels = corpus_of(attacker, 40)
    trainings = [Training(np.arange(40), labels, 0)]
    assert len(list(replace(attacker, device="cpu", epochs=1).fit_many(corpus, trainings, 2, silent))) == 1
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert not called and list(attacker.fit_many(corpus, trainings, 2, silent)) == ["stacked"]


# the recurrence of CUDA


def fused_cell(gates, before, cell):
    """What PyTorch's fused cell computes on CUDA: state, cell, and the activated gates as its space."""
    enters, forgets, new, leaves = (gates + before).chunk(4, dim=1)
    enters, forgets, new, leaves = enters.sigmoid(), forgets.sigmoid(), new.tanh(), leaves.sigmoid()
    after = forgets * cell + enters * new
    return leaves * after.tanh(), after, torch.cat([enters, forgets, new, leaves], dim=1)


def fused_cell_backward(of_state, of_cell, before, after, space, _has_bias):
    """Gradients of the gates and of the cell before, by hand."""
    enters, forgets, new, leaves = space.chunk(4, dim=1)
    of_after = of_state * leaves * (1 - after.tanh() ** 2) + (0 if of_cell is None else of_cell)
    of_gates = [
        of_after * new * enters * (1 - enters),
        of_after * before * forgets * (1 - forgets),
        of_after * enters * (1 - new**2),
        of_state * after.tanh() * leaves * (1 - leaves),
    ]
    return torch.cat(of_gates, dim=1), of_after * forgets, None


@pytest.mark.parametrize("learns", [True, False])
def test_the_recurrence_of_cuda_has_the_gradients_of_autograd(monkeypatch, learns):
    """Its cell runs on CUDA alone: here a stand-in by its definition. learns: with gradients of the weights."""
    monkeypatch.setattr(torch.ops.aten, "_thnn_fused_lstm_cell", fused_cell)
    monkeypatch.setattr(torch.ops.aten, "_thnn_fused_lstm_cell_backward_impl", fused_cell_backward)
    rng = torch.Generator().manual_seed(0)
    gates = torch.randn(5, 3 * 4, 4 * 6, generator=rng, dtype=torch.float64)  # 5 steps, 3 groups of 4 captions, H = 6
    weights = torch.randn(3, 6, 4 * 6, generator=rng, dtype=torch.float64)
    answers = torch.randn(5, 3 * 4, 6, generator=rng, dtype=torch.float64)
    found = []
    for recurrence in (stacked.Recurrence.apply, partial(stacked.step_by_step, "lstm")):
        given = gates.clone().requires_grad_(), weights.clone().requires_grad_(learns)
        states = recurrence(*given)
        (states * answers).sum().backward()
        found.append([states.detach(), *(each.grad for each in given if each.requires_grad)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)
