"""Networks trained in one stack: each is what it would be alone, by PyTorch's layers and a plain loop."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from capbias_core.attackers.base import Training
from capbias_core.attackers.networks import scratch, stacked
from capbias_core.attackers.networks.scratch import LSTM_BI, RecurrentAttacker, TransformerAttacker
from capbias_core.attackers.networks.stacked import Head, Learner, Reads, Stack, fitting, in_stacks, learn_together
from capbias_core.attackers.networks.training import ORDER, PAD, caption_losses, initialised, logits_of, mlp, read
from capbias_core.errors import CapbiasError
from capbias_core.prepare.split import FIT, child_seed
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import silent

pytestmark = [pytest.mark.torch, pytest.mark.long]
CPU = torch.device("cpu")
SMALL = {"embedding": 10, "hidden": 12, "batch": 8, "epochs": 4, "learning_rate": 1e-2, "head": (6, 5)}
ATTACKERS = {
    "lstm_bi": replace(LSTM_BI, **SMALL | {"head": (), "dropout": 0.0}),
    "lstm": RecurrentAttacker(**SMALL),
    "rnn_bi": RecurrentAttacker(**SMALL, unit="rnn", ways=2),
    "transformer": TransformerAttacker(**SMALL, heads=2),
}


def learner(attacker, seed: int, words: int, n: int, logits: int = 1, aside: int = 0, shortest: int = 1) -> Learner:
    """n captions to train on and more set aside, of random words of a vocabulary, as long as 30 words; the first word
    decides the label."""
    rng, n = np.random.default_rng(seed), n + aside
    lengths = rng.integers(shortest, 30, n)
    codes = rng.integers(1, words, lengths.sum())
    captions = Tokens(codes, np.concatenate([[0], np.cumsum(lengths)]), [])
    first = codes[captions.start[:-1]]
    labels = first % max(2, logits) if logits < 4 else np.stack([first % (k + 2) == 0 for k in range(logits)], axis=1)
    network = initialised(lambda: attacker.network(words, logits), seed)
    order = rng.permutation(n)
    return Learner(network, captions, np.arange(n), labels, np.sort(order[aside:]), np.sort(order[:aside]), seed)


def learners(attacker, **more) -> list[Learner]:
    return [learner(attacker, seed, words, n, **more) for seed, words, n in ((0, 9, 41), (1, 30, 47), (2, 17, 44))]


@pytest.mark.parametrize("attacker", ATTACKERS.values(), ids=ATTACKERS)
@pytest.mark.parametrize("logits", [1, 3])
def test_a_stack_gives_the_logits_of_its_networks(attacker, logits):
    """Of captions of 1 to 29 words, padded to the longest, and vocabularies of three sizes."""
    check_logits(learners(attacker, logits=logits))


def check_logits(given: list[Learner]) -> None:
    """The stack gives each caption the logits that its network gives it."""
    reads = Reads.of(given, lambda each: each.kept, CPU)
    stack = Stack([each.network.eval() for each in given], CPU)
    found = stack.logits(*reads.batch(torch.arange(reads.ids.shape[1]).expand(len(given), -1))).detach()
    for each, logits in zip(given, found, strict=True):
        np.testing.assert_allclose(
            logits[: len(each.kept)], logits_of(each.network, each.captions)[each.kept], atol=1e-5
        )


@pytest.mark.parametrize("attacker", ATTACKERS.values(), ids=ATTACKERS)
def test_a_caption_alone_and_an_empty_one_have_logits(attacker):
    """An empty caption is one PAD (training.py)."""
    network = initialised(lambda: attacker.network(9, 1), 0)
    for captions in (Tokens(np.array([PAD, 3]), np.array([0, 1, 2]), []), Tokens(np.array([5]), np.array([0, 1]), [])):
        rows = np.arange(len(captions))
        check_logits([Learner(network, captions, rows, rows, rows, rows[:0], 0)])


def by_a_plain_loop(given: Learner, attacker) -> np.ndarray:
    """Logits of the network after the same batches by PyTorch's own layers, loss and optimizer, without a stack."""
    network, rng = deepcopy(given.network), np.random.default_rng(child_seed(given.seed, FIT, ORDER))
    optimizer = torch.optim.Adam(network.parameters(), attacker.learning_rate)
    answers, lengths = torch.as_tensor(given.labels), given.captions.lengths
    best, chosen, weights = np.inf, 0, network.state_dict()

    def losses(rows):
        return caption_losses(network.head(read(network.vectors, given.captions, rows, CPU)), answers[rows])

    for epoch in range(attacker.epochs):
        network.train()
        order = given.kept[np.lexsort((rng.random(len(given.kept)), lengths[given.kept]))]
        batches = np.split(order, range(attacker.batch, len(order), attacker.batch))
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
    return logits_of(network, given.captions)


@pytest.mark.parametrize("attacker", ATTACKERS.values(), ids=ATTACKERS)
@pytest.mark.parametrize("logits", [1, 3, 5])
def test_each_network_of_a_stack_is_trained_as_by_a_plain_loop(attacker, logits):
    """Two values, three, and five task words; the last batch is smaller, and of different size for each."""
    given = learners(attacker, logits=logits)
    expected = [by_a_plain_loop(each, attacker) for each in given]
    learn_together(given, attacker, CPU, "fp32", silent)
    for each, logits_expected in zip(given, expected, strict=True):
        found = logits_of(each.network.eval(), each.captions)
        np.testing.assert_allclose(found, logits_expected, rtol=1e-3, atol=1e-3)


def test_each_network_keeps_the_weights_of_its_best_epoch_and_stops_on_its_own():
    attacker = replace(ATTACKERS["lstm"], epochs=30, patience=2, learning_rate=0.05)
    given = learners(attacker, aside=6)
    expected = [by_a_plain_loop(each, attacker) for each in given]
    epochs = []
    learn_together(given, attacker, CPU, "fp32", lambda _share, text: epochs.append(text.partition(",")[0]))
    for each, logits_expected in zip(given, expected, strict=True):
        np.testing.assert_allclose(logits_of(each.network, each.captions), logits_expected, rtol=2e-2, atol=2e-2)
    assert epochs[-1] < "epoch 30", "it ends when the last network stops"


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_a_network_does_not_depend_on_the_others(dropout):
    attacker = replace(ATTACKERS["lstm_bi"], dropout=dropout)
    together, alone = learners(attacker), learners(attacker)
    learn_together(together, attacker, CPU, "fp32", silent)
    learn_together(alone[1:2], attacker, CPU, "fp32", silent)
    found, expected = (logits_of(each.network.eval(), each.captions) for each in (together[1], alone[1]))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_dropout_removes_its_share_and_scales_the_rest():
    noise = stacked.Noise(torch.tensor([3, 4]), torch.tensor(1))
    values = torch.ones(2, 50, 40)
    first, second = (stacked.dropped(values, noise, 64) for _ in range(2))
    assert first.unique().tolist() == [0, pytest.approx(256 / 192)] and not torch.equal(first, second)
    assert (first == 0).float().mean().item() == pytest.approx(0.25, abs=0.03)
    assert not torch.equal(first[0], first[1])
    counts = torch.bincount(noise.bytes(torch.Size((2, 100_000))).flatten(), minlength=256)
    assert counts.min() > 650 and counts.max() < 920, "bytes are evenly drawn (781 each)"


def test_captions_are_read_from_the_device_by_rows():
    given = learners(ATTACKERS["lstm"])
    reads = Reads.of(given, lambda each: each.kept, CPU)
    ids, lengths = reads.batch(torch.tensor([[0, 3]] * 3))
    for number, each in enumerate(given):
        for place, row in enumerate((0, 3)):
            caption = each.captions.codes[each.captions.start[row] : each.captions.start[row + 1]]
            assert ids[number, place, : lengths[number, place]].tolist() == caption.tolist()
            assert not ids[number, place, lengths[number, place] :].any()


def test_words_of_padding_learn_nothing():
    given = learners(ATTACKERS["rnn_bi"])
    learn_together(given, ATTACKERS["rnn_bi"], CPU, "fp32", silent)
    assert not any(each.network.words.weight[0].any() for each in given)


def test_a_stack_has_a_parameter_of_each_network():
    given = learners(ATTACKERS["transformer"])
    stack = Stack([each.network for each in given], CPU)
    assert {name: value.shape[0] for name, value in stack.parameters.items()} == dict.fromkeys(
        (name for name, _ in given[0].network.named_parameters()), 3
    )
    assert stack.parameters["words.weight"].shape == (3, 30, 10)


def test_heads_on_vectors_train_in_a_stack():
    """The heads of a frozen encoder: each as by a plain loop."""
    attacker = ATTACKERS["lstm"]
    vectors, given, expected = torch.randn(30, 7, generator=torch.Generator().manual_seed(0)), [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        copies, labels = rng.integers(0, 30, 41 + seed), rng.integers(0, 2, 41 + seed)
        head = initialised(lambda: mlp((7, 6, 1)), seed)
        given.append(Learner(Head(head), vectors, copies, labels, np.arange(len(copies)), np.arange(0), seed))
        head, rng = deepcopy(head), np.random.default_rng(child_seed(seed, FIT, ORDER))
        optimizer = torch.optim.Adam(head.parameters(), attacker.learning_rate)
        for epoch in range(attacker.epochs):
            batches = np.split(np.argsort(rng.random(len(copies)), kind="stable"), range(8, len(copies), 8))
            for visit in np.random.default_rng(child_seed(epoch, FIT, ORDER)).permutation(len(batches)):
                optimizer.zero_grad()
                read = head(vectors[copies[batches[visit]]])
                caption_losses(read, torch.as_tensor(labels[batches[visit]])).mean().backward()
                optimizer.step()
        expected.append(head(vectors).detach())
    learn_together(given, attacker, CPU, "fp32", silent)
    for each, logits in zip(given, expected, strict=True):
        torch.testing.assert_close(each.network.head(vectors).detach(), logits, rtol=1e-3, atol=1e-3)


def test_a_stack_that_does_not_fit_is_cut_and_numbers_stay(monkeypatch):
    """Neighbours with other numbers of batches train apart; memory for two at a time is found by halving."""
    attacker, sizes, shares = ATTACKERS["rnn_bi"], [], []
    given = [learner(attacker, seed, 12, 41) for seed in range(5)] + [learner(attacker, 5, 12, 90)]
    expected = [by_a_plain_loop(each, attacker) for each in given]

    def small(part, *more):
        sizes.append(len(part))
        if len(part) > 2:
            raise torch.OutOfMemoryError
        learn_together(part, *more)

    monkeypatch.setattr(stacked, "learn_together", small)
    trained = list(in_stacks(given, attacker, CPU, "fp32", lambda share, _text: shares.append(share)))
    assert [each.seed for each in trained] == list(range(6)) and sizes == [5, 2, 2, 1, 1]
    assert shares == sorted(shares) and shares[-1] == 1
    for each, logits in zip(trained, expected, strict=True):
        np.testing.assert_allclose(logits_of(each.network.eval(), each.captions), logits, rtol=1e-3, atol=1e-3)
    monkeypatch.setattr(stacked, "learn_together", lambda *_: (_ for _ in ()).throw(torch.OutOfMemoryError))
    with pytest.raises(CapbiasError, match="does not hold one network"):
        next(in_stacks(given, attacker, CPU, "fp32", silent))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _device: (2 * 10**9, 10**10))
    few, many = (fitting(each, replace(attacker, hidden=hidden), torch.device("cuda")) for each, hidden in
                 ((given[0], 20_000), (given[0], 12)))  # fmt: skip
    assert 1 <= few < many


def test_an_attacker_on_a_gpu_hands_all_its_trainings_to_the_stack(monkeypatch):
    """The whole attacker, its stack on the CPU: what it learns is as good as by networks that train in threads."""
    rng, attacker = np.random.default_rng(0), replace(ATTACKERS["lstm"], epochs=25, patience=0, head=())
    labels = rng.integers(0, 2, 300)
    captions = [f"a {('cat', 'dog')[label]} {' '.join(rng.choice(list('efgh'), 3))}" for label in labels]
    corpus, rows = attacker.corpus(captions), np.arange(200)
    trainings = [Training(rows, labels[rows], seed) for seed in range(3)]
    threads = [fitted.logits(corpus, np.arange(200, 300)) for fitted in attacker.fit_many(corpus, trainings, 2, silent)]
    stacks = []
    monkeypatch.setattr(scratch, "choose_device", lambda _name: SimpleNamespace(type="cuda"))
    monkeypatch.setattr(
        scratch, "in_stacks", lambda learners, settings, _device, *more: stacks.append(len(learners))
        or in_stacks(learners, settings, CPU, *more),
    )  # fmt: skip
    stack = [fitted.logits(corpus, np.arange(200, 300)) for fitted in attacker.fit_many(corpus, trainings, 2, silent)]
    assert stacks == [3]
    for logits in (*threads, *stack):
        assert ((logits[:, 0] > 0) == labels[200:]).mean() > 0.95
