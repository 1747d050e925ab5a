"""Networks trained in one stack: each is what it would be alone, by PyTorch's layers and a plain loop. In double
precision, so that a sum in another order does not hide a difference."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from capbias_core.attackers.base import Training
from capbias_core.attackers.networks import stacked
from capbias_core.attackers.networks.scratch import LSTM_BI, RecurrentAttacker
from capbias_core.attackers.networks.stacked import Stack, in_stacks, learn_together
from capbias_core.attackers.networks.training import (
    ORDER,
    PAD,
    Learner,
    caption_losses,
    cut,
    initialised,
    logits_of,
    read,
)
from capbias_core.errors import CapbiasError
from capbias_core.prepare.split import FIT, child_seed
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import silent

pytestmark = [pytest.mark.torch, pytest.mark.long, pytest.mark.usefixtures("one_thread")]
CPU = torch.device("cpu")
SMALL = {"embedding": 10, "hidden": 12, "batch": 8, "epochs": 2, "learning_rate": 1e-2, "head": (6, 5)}
ATTACKERS = {
    "lstm_bi": replace(LSTM_BI, **SMALL | {"head": (), "dropout": 0.0}),
    "lstm": RecurrentAttacker(**SMALL),
    "rnn_bi": RecurrentAttacker(**SMALL, unit="rnn", ways=2),
}
# Each network with another number of logits: two values, three, and five task words.
CONFIGURATIONS = pytest.mark.parametrize(("kind", "logits"), [("lstm_bi", 1), ("lstm", 5), ("rnn_bi", 3)])


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
    assert not any(each.network.words.weight[PAD].any() for each in given), "padding learns nothing"


@pytest.mark.slow
def test_each_network_keeps_the_weights_of_its_best_epoch_and_stops_alone():
    attacker = replace(ATTACKERS["lstm"], epochs=20, patience=2, learning_rate=0.02)
    given = learners(attacker, aside=9)
    expected, stopped = zip(*(by_a_plain_loop(each, attacker) for each in given), strict=True)
    assert len(set(stopped)) > 1 and max(stopped) < 20, "the networks stop at different epochs"
    texts = []
    learn_together(given, attacker, CPU, lambda _share, text: texts.append(text))
    check_trained(given, expected)
    assert texts[-1].startswith(f"epoch {max(stopped)} of"), "it ends when the last network stops"


def test_a_network_does_not_depend_on_the_others():
    """Not on how many there are, where it stands, their vocabularies, or when they stop."""
    attacker = replace(ATTACKERS["lstm_bi"], patience=2, epochs=8, dropout=0.5)
    together, alone, turned = (learners(attacker, aside=6) for _ in range(3))
    learn_together(together, attacker, CPU, silent)
    learn_together(turned[::-1][:2], attacker, CPU, silent)
    learn_together(alone[1:2], attacker, CPU, silent)
    expected = [logits_of(alone[1].network, alone[1].captions)]
    check_trained([together[1]], expected)
    check_trained([turned[1]], expected)


def test_dropout_removes_its_share_and_scales_the_rest():
    noise = stacked.Noise(torch.tensor([3, 4]), 1)
    values = torch.ones(2, 50, 40)
    first, second = (stacked.dropped(values, noise, 64) for _ in range(2))
    assert first.unique().tolist() == [0, pytest.approx(256 / 192)] and not torch.equal(first, second)
    assert (first == 0).float().mean().item() == pytest.approx(0.25, abs=0.03)
    assert not torch.equal(first[0], first[1])
    counts = torch.bincount(noise.bytes(torch.Size((2, 100_000))).flatten(), minlength=256)
    assert counts.min() > 650 and counts.max() < 920, "bytes are evenly drawn (781 each)"


# memory


@pytest.mark.parametrize(
    ("error", "raised"), [(torch.OutOfMemoryError(), "does not hold one network"), (RuntimeError("a bug"), "a bug")]
)
def test_a_network_that_does_not_fit_alone_is_an_error(error, raised, monkeypatch):
    given = learners(ATTACKERS["lstm"])
    before = deepcopy(given[0].network.state_dict())
    monkeypatch.setattr(Stack, "logits", Mock(side_effect=error))
    with pytest.raises((CapbiasError, RuntimeError), match=raised):
        next(in_stacks(given, ATTACKERS["lstm"], CPU, silent))
    assert all(torch.equal(value, before[name]) for name, value in given[0].network.state_dict().items())
