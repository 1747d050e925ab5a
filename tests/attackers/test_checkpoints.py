"""A training that was stopped goes on from its checkpoint and ends with the numbers of one that never was."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from capbias_core.attackers.checkpoints import checkpoints_in
from capbias_core.attackers.networks import checkpoint
from capbias_core.attackers.networks.heads import HeadProtocol, prepared, together, untrained
from capbias_core.attackers.networks.training import CPU, FittedNetwork, in_groups
from capbias_core.errors import Cancelled
from capbias_core.types import Progress
from tests.attackers.test_training import captions_of, rows_of, small
from tests.measures.test_imagecaptioner2 import joint, planted

pytestmark = pytest.mark.torch

SEEDS = range(3)
CHANGES = {"epochs": 6, "dropout": 0.5}


@pytest.fixture(autouse=True)
def at_every_epoch(monkeypatch):
    """And on one thread, one seed after the other: a report is then of the epoch that is being trained."""
    monkeypatch.setattr(checkpoint, "BETWEEN", 0.0)
    monkeypatch.setattr(checkpoint, "TIMES", 0)
    monkeypatch.setattr(checkpoint, "WORTH_KEEPING", 0.0)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def one_by_one(tick: Progress, **changes) -> np.ndarray:
    captions, labels = captions_of()
    attacker = small("lstm", **CHANGES | changes)
    corpus, rows = attacker.corpus(captions), rows_of()
    fitted = attacker.fit_many(corpus, rows, [labels[own] for own in rows], 2, SEEDS, tick)
    return np.stack([own.logits(corpus, np.arange(110)) for own in fitted])


def stacked(tick: Progress) -> np.ndarray:
    """All seeds as one network, as on CUDA, with captions set aside."""
    captions, labels = captions_of()
    attacker = small("transformer_1h", patience=2, **CHANGES)
    corpus = attacker.corpus(captions)
    fits = [attacker.prepared(corpus, own, labels[own], 2, seed) for seed, own in zip(SEEDS, rows_of(), strict=True)]
    in_groups(attacker, fits, CPU, tick)
    fitted = [FittedNetwork(fit.vocabulary, fit.network, CPU, 20) for fit in fits]
    return np.stack([own.logits(corpus, np.arange(110)) for own in fitted])


def heads(tick: Progress) -> np.ndarray:
    vectors = torch.from_numpy(np.random.default_rng(0).normal(size=(110, 5)).astype(np.float32))
    protocol = HeadProtocol(hidden=(4,), batch=16, epochs=6, patience=3)
    labels = captions_of()[1]
    fits = [
        prepared(own, labels[own], untrained((5, 4, 1), 0.0, seed), seed, protocol)
        for seed, own in zip(SEEDS, rows_of(), strict=True)
    ]
    together(vectors, fits, protocol, tick)
    return np.stack([fit.head(vectors[None]).detach().numpy() for fit in fits])


def judges(tick: Progress) -> np.ndarray:
    from capbias_core.vision.image_text_training import PairCorpus, PairProgram

    pixels, captions, labels = planted(80, 0.9, "caption")
    corpus, judge = PairCorpus(pixels, np.arange(80), captions), joint(epochs=6)
    fit = judge._prepared(corpus, np.arange(60), labels[:60], 2, 0)
    PairProgram(judge, corpus, torch.from_numpy(pixels), [fit], CPU).train(tick)
    return np.concatenate([own.detach().numpy().ravel() for own in fit.network.parameters()])


def told(texts: list[str], until: int = 0) -> Progress:
    """Notes what is reported, and breaks off in an epoch."""

    def tick(share: float, text: str) -> None:
        texts.append(text)
        if until and f"epoch {until} of" in text:
            raise Cancelled

    return tick


def epochs_in(texts: list[str]) -> list[int]:
    return [int(found[1]) for text in texts if (found := re.match(r"epoch (\d+) of", text))]


def stopped(train: Callable, folder: Path, until: int) -> None:
    with checkpoints_in(folder), pytest.raises(Cancelled):
        train(told([], until))


def goes_on(train: Callable, folder: Path) -> tuple[np.ndarray, list[int]]:
    """Its numbers, and the epochs that it trained."""
    texts: list[str] = []
    with checkpoints_in(folder):
        return train(told(texts)), epochs_in(texts)


@pytest.mark.parametrize("train", [one_by_one, stacked, heads, judges])
def test_it_goes_on_with_the_same_numbers(train, tmp_path):
    undisturbed = train(told([]))
    stopped(train, tmp_path, until=4)
    found, epochs = goes_on(train, tmp_path)
    assert np.array_equal(found, undisturbed)
    assert max(epochs) == 6 and epochs[0] in (4, 1) and len(epochs) < len(goes_on(train, tmp_path / "none")[1])
    found, epochs = goes_on(train, tmp_path)  # from the end
    assert np.array_equal(found, undisturbed) and not epochs
    assert not list(tmp_path.glob("*.tmp"))


def test_it_goes_on_from_the_epoch_before_the_one_that_was_broken_off(tmp_path):
    stopped(stacked, tmp_path, until=4)
    assert goes_on(stacked, tmp_path)[1][0] == 4


@pytest.mark.parametrize("changes", [{"learning_rate": 0.1}, {"hidden": 8}])
def test_another_training_begins_anew(tmp_path, changes, monkeypatch):
    """Another network has another file; other settings are another run, whose folder is another."""
    stopped(one_by_one, tmp_path, until=4)
    folder = tmp_path if "hidden" in changes else tmp_path / "other"
    found, epochs = goes_on(lambda tick: one_by_one(tick, **changes), folder)
    assert epochs[0] == 1 and np.array_equal(found, one_by_one(told([]), **changes))


def test_a_checkpoint_of_other_code_is_left_alone(tmp_path, monkeypatch):
    stopped(stacked, tmp_path, until=4)
    monkeypatch.setattr(checkpoint, "code_digest", lambda: "other")
    assert goes_on(stacked, tmp_path)[1][0] == 1


def test_a_damaged_checkpoint_begins_anew(tmp_path):
    stopped(stacked, tmp_path, until=4)
    (file,) = tmp_path.iterdir()
    for damaged in (b"", file.read_bytes()[:2000], b"cos\nsystem\n(S'false'\ntR."):
        file.write_bytes(damaged)
        found, epochs = goes_on(stacked, tmp_path)
        assert epochs[0] == 1 and np.array_equal(found, stacked(told([])))


def test_a_checkpoint_that_would_fill_the_disk_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "SHARE_OF_DISK", 1e-12)
    stopped(stacked, tmp_path, until=4)
    assert not list(tmp_path.iterdir())


def test_nothing_is_kept_more_often_than_it_is_worth(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "BETWEEN", 10.0)
    monkeypatch.setattr(checkpoint, "WORTH_KEEPING", 10.0)
    goes_on(stacked, tmp_path)
    assert not list(tmp_path.iterdir())


def test_seeds_in_threads_of_their_own_keep_theirs_too(tmp_path):
    torch.set_num_threads(2)
    goes_on(one_by_one, tmp_path)
    assert len(list(tmp_path.iterdir())) == len(SEEDS)
