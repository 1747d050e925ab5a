"""LSTM layers with products in bfloat16: against the exact ones, where they are used, and what is said of them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from capbias_core.attackers import device as devices
from capbias_core.attackers import load_attacker
from capbias_core.attackers.base import probabilities
from capbias_core.attackers.device import BF16, FP32, TF32, precision_on, trained_on
from capbias_core.attackers.networks.recurrent import RecurrentAttacker
from capbias_core.types import silent
from tests.attackers.test_recurrent import TINY, packed_logits, planted
from tests.attackers.test_training import SCRATCH

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

ROUNDED = replace(TINY, precision=BF16, layers=2)


@pytest.fixture
def amx(monkeypatch):
    """Rounded products are used whatever the processor; without AMX they are only slower."""
    monkeypatch.setattr(devices, "has_bf16", lambda: True)


def learned(network, tokens, lengths, steer) -> list[torch.Tensor]:
    """Logits, and the gradients of all weights where logits are steered."""
    network.zero_grad()
    logits = network(tokens, lengths)
    (logits * steer).sum().backward()
    return [logits.detach(), *(weight.grad.clone() for weight in network.parameters())]


@pytest.mark.parametrize("ways", [1, 2])
@pytest.mark.parametrize("padded", [False, True])
def test_a_rounded_network_learns_what_an_exact_one_does_within_its_rounding(ways, padded):
    torch.manual_seed(0)
    network = RecurrentAttacker(embedding=20, hidden=24, ways=ways).network(50, 1)
    steer = torch.randn(1, 32, 1)
    with network.rounded():
        for longest in (9, 12, 5):  # memory grows, and then is larger than what is read
            tokens = torch.randint(2, 50, (1, 32, longest))
            lengths = torch.randint(1, longest + 1, (1, 32)) if padded else None
            if lengths is not None:
                tokens[torch.arange(longest) >= lengths[..., None]] = 0
            found = learned(network, tokens, lengths, steer)
            memory = [layer.memory for layer in network.layers]
            for layer in network.layers:
                layer.memory = []
            exact = learned(network, tokens, lengths, steer)
            for layer, own in zip(network.layers, memory, strict=True):
                layer.memory = own
            assert not torch.equal(found[0], exact[0]), "nothing was rounded"
            for own, known in zip(found, exact, strict=True):
                assert (own - known).norm() < 0.03 * known.norm()


def fitted(attacker, seed: int = 0, n: int = 240):
    captions, labels = planted(n, 2)
    corpus = attacker.corpus(captions)
    return corpus, attacker.fit(corpus, np.arange(n), labels, 2, seed, silent)


def test_a_rounded_attacker_learns_a_planted_cue_and_the_same_each_time(amx):
    corpus, model = fitted(ROUNDED)
    unseen, answers = planted(60, 2, seed=1)
    guesses = probabilities(model.logits(ROUNDED.corpus(unseen), np.arange(60))).argmax(axis=1)
    assert (guesses == answers).mean() > 0.95
    again, exact = (fitted(own)[1].logits(corpus, np.arange(240)) for own in (ROUNDED, TINY))
    np.testing.assert_array_equal(model.logits(corpus, np.arange(240)), again)
    assert np.abs(again - exact).max() > 1e-4, "it was not rounded"


def test_scoring_is_not_rounded_and_training_gives_its_memory_back(amx):
    captions, _ = planted(240, 2)
    corpus, model = fitted(ROUNDED)
    assert not any(layer.memory for layer in model.network.layers)
    np.testing.assert_allclose(model.logits(corpus, np.arange(240)), packed_logits(model, captions), atol=1e-4)


def test_several_rounded_seeds_learn_what_each_does_alone(amx):
    captions, labels = planted(120, 2)
    corpus, rows = ROUNDED.corpus(captions), np.arange(120)
    torch.set_num_threads(2)
    both = ROUNDED.fit_many(corpus, [rows, rows], [labels, labels], 2, [0, 1], silent)
    torch.set_num_threads(1)
    for seed, found in enumerate(both):
        alone = ROUNDED.fit(corpus, rows, labels, 2, seed, silent)
        np.testing.assert_allclose(found.logits(corpus, rows), alone.logits(corpus, rows), atol=1e-6)


@pytest.mark.parametrize("name", SCRATCH)
def test_only_lstm_bi_rounds_on_a_processor_that_gains_by_it(name, monkeypatch):
    attacker = load_attacker(name, "cpu")
    monkeypatch.setattr(devices, "has_bf16", lambda: False)
    assert precision_on(attacker.precision, "cpu") == FP32 and trained_on(attacker) == "; trained on cpu"
    monkeypatch.setattr(devices, "has_bf16", lambda: True)
    rounds = name == "lstm_bi"
    assert precision_on(attacker.precision, "cpu") == (BF16 if rounds else FP32)
    assert trained_on(attacker) == "; trained on cpu" + ", BF16" * rounds
    assert trained_on(replace(attacker, precision=FP32)) == "; trained on cpu"
    assert precision_on(attacker.precision, "cuda") == TF32
