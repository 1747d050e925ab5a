"""All seeds at once: what they learn together and alone, the kernels against PyTorch's own, threads, memory."""

import math
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.utils.rnn import pack_padded_sequence

from capbias_core.attackers import ATTACKERS, load_attacker
from capbias_core.attackers.base import fit_many, task_probabilities
from capbias_core.attackers.device import FP32
from capbias_core.attackers.networks import training
from capbias_core.attackers.networks.batches import PAD, encode, in_step, training_batches, training_vocabulary
from capbias_core.attackers.networks.recurrent import LstmStates, RecurrentAttacker, turned
from capbias_core.attackers.networks.stacked import Dropout, Head, bytes_a_seed, seeds_at_once, stack, unstack
from capbias_core.attackers.networks.training import (
    CPU,
    DBAC,
    CaptionsByLength,
    FittedNetwork,
    Lowest,
    PaddedCaptions,
    Program,
    caption_losses,
    in_groups,
)
from capbias_core.attackers.networks.transformer import TransformerAttacker, positions
from capbias_core.errors import Cancelled
from capbias_core.measures import training as trainer
from capbias_core.prepare import balanced_split
from capbias_core.types import silent

pytestmark = pytest.mark.torch

SCRATCH = ("lstm_bi", "lstm", "rnn", "rnn_bi", "transformer_1h", "transformer_5h")
SMALL = {"hidden": 12, "embedding": 20, "epochs": 3, "learning_rate": 0.005, "batch": 16, "dropout": 0.0}
SMALL |= {"precision": FP32}


@pytest.fixture(autouse=True)
def one_thread():
    """Tensors this small are slower on several threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def captions_of(n: int = 110, n_values: int = 2) -> tuple[list[str], np.ndarray]:
    """Captions of 0 to 9 words and labels that some words hint at; each third seed knows other words."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, n_values, n)
    captions = [" ".join([*rng.choice(list("abcdefghij"), rng.integers(0, 9)), "klm"[own]]) for own in labels]
    captions[30:34] = [""] * 4
    captions[:20] = [f"{caption} only{place}" for place, caption in enumerate(captions[:20])]
    return captions, labels


def small(name: str, **changes):
    return replace(load_attacker(name), device="cpu", **{**SMALL, **changes})


def rows_of(sizes=(90, 84, 88)) -> list[np.ndarray]:
    return [np.sort(np.random.default_rng(seed).permutation(110)[:size]) for seed, size in enumerate(sizes)]


def together(attacker, corpus, rows, labels, n_values: int = 2, seeds=range(3)) -> list[FittedNetwork]:
    """The seeds as one padded network, as on CUDA, but on the CPU."""
    each = zip(seeds, rows, labels, strict=True)
    fits = [attacker.prepared(corpus, own, known, n_values, seed) for seed, own, known in each]
    in_groups(attacker, fits, CPU, silent)
    return [FittedNetwork(fit.vocabulary, fit.network, CPU, 20) for fit in fits]


@pytest.fixture
def own_order(monkeypatch):
    """Batches in each seed's own order, as on a CPU; on CUDA those of one length come together."""
    monkeypatch.setattr(training, "in_step", lambda orders, lengths, rng: orders)


@pytest.mark.parametrize("name", SCRATCH)
def test_a_seed_learns_the_same_alone_and_among_others(name, own_order):
    captions, labels = captions_of()
    attacker = small(name)
    corpus, rows = attacker.corpus(captions), rows_of()
    batched = together(attacker, corpus, rows, [labels[own] for own in rows])
    for seed, (own, found) in enumerate(zip(rows, batched, strict=True)):
        alone = attacker.fit(corpus, own, labels[own], 2, seed, silent)
        everything = np.arange(len(captions))
        assert alone.vocabulary == found.vocabulary
        np.testing.assert_allclose(found.logits(corpus, everything), alone.logits(corpus, everything), atol=1e-4)
        untrained = attacker.prepared(corpus, own, labels[own], 2, seed).network
        assert (untrained.words - found.network.words).abs().max() > 1e-3, "it did learn"


@pytest.mark.parametrize(("n_values", "tasks"), [(3, 0), (0, 4)])
def test_alone_and_among_others_with_more_values_and_with_task_words(n_values, tasks, own_order):
    captions, labels = captions_of(n_values=3)
    known = np.random.default_rng(2).random((110, tasks)) < 0.4 if tasks else labels
    attacker = small("lstm", patience=1, epochs=4)
    corpus, rows = attacker.corpus(captions), rows_of()
    batched = together(attacker, corpus, rows, [known[own] for own in rows], n_values)
    for seed, (own, found) in enumerate(zip(rows, batched, strict=True)):
        alone = attacker.fit(corpus, own, known[own], n_values, seed, silent).logits(corpus, own)
        assert alone.shape[1] == n_values + tasks
        np.testing.assert_allclose(found.logits(corpus, own), alone, atol=1e-4)


def test_seeds_with_unequally_many_batches_learn_apart(own_order):
    captions, labels = captions_of()
    attacker = small("rnn", patience=0)
    corpus, rows = attacker.corpus(captions), rows_of((90, 40, 85))
    batched = together(attacker, corpus, rows, [labels[own] for own in rows])
    alone = attacker.fit(corpus, rows[1], labels[rows[1]], 2, 1, silent)
    np.testing.assert_allclose(batched[1].logits(corpus, rows[0]), alone.logits(corpus, rows[0]), atol=1e-4)


def test_batches_of_about_one_length_come_together_in_random_order():
    rng = np.random.default_rng(3)
    lengths = [rng.integers(1, 12, size) for size in (90, 84, 88)]
    own = [training_batches(each, 8, rng)[:11] for each in lengths]
    first, second = (in_step(own, lengths, np.random.default_rng(seed)) for seed in (0, 1))
    for orders, before in zip(first, own, strict=True):
        assert sorted(map(tuple, orders)) == sorted(map(tuple, before)), "the same batches"
    longest = np.array([[each[batch].max() for batch in order] for each, order in zip(lengths, first, strict=True)])
    apart = np.sort(longest, axis=1)
    assert longest.max(axis=0).sum() == apart.max(axis=0).sum(), "of one rank at each place, so nothing pads less"
    assert (np.diff(longest[0]) < 0).any() and [len(each) for each in first] == [11] * 3
    assert any(not np.array_equal(one, other) for one, other in zip(first[0], second[0], strict=True))
    (alone,) = in_step(own[1:2], lengths[1:2], np.random.default_rng(0))
    assert all(np.array_equal(one, other) for one, other in zip(alone, first[1], strict=True))


def test_a_seed_of_a_program_is_the_seed_alone_in_one():
    captions, labels = captions_of()
    attacker = small("lstm_bi")
    corpus, rows = attacker.corpus(captions), rows_of()
    everyone = together(attacker, corpus, rows, [labels[own] for own in rows])
    (alone,) = together(attacker, corpus, rows[2:], [labels[rows[2]]], seeds=[2])
    np.testing.assert_allclose(
        everyone[2].logits(corpus, np.arange(110)), alone.logits(corpus, np.arange(110)), atol=1e-4
    )


def threads_of_a_new_thread() -> int:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(torch.get_num_threads).result()


def test_threads_give_what_one_after_the_other_gives():
    captions, labels = captions_of()
    attacker = small("lstm_bi", dropout=0.5)
    corpus, rows = attacker.corpus(captions), rows_of()
    known, reports = [labels[own] for own in rows], []
    alone = [attacker.fit(corpus, own, labels[own], 2, seed, silent) for seed, own in enumerate(rows)]
    torch.set_num_threads(3)
    caller = threading.get_ident()
    fits = list(
        fit_many(
            attacker,
            corpus,
            rows,
            known,
            2,
            range(3),
            lambda share, text: reports.append((share, threading.get_ident() == caller)),
        )
    )
    assert torch.get_num_threads() == threads_of_a_new_thread() == 3
    torch.set_num_threads(1)
    for one, other in zip(alone, fits, strict=True):
        np.testing.assert_allclose(one.logits(corpus, rows[0]), other.logits(corpus, rows[0]), atol=1e-5)
    shares = [share for share, _ in reports]
    assert shares == sorted(shares) and shares[-1] == 1
    assert all(here for _, here in reports), "only the thread that asked writes reports down"


def test_a_cancelled_sweep_stops_its_threads():
    captions, labels = captions_of()
    attacker = small("lstm_bi", epochs=100_000)
    torch.set_num_threads(2)

    def stop(share: float, text: str) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        rows = rows_of()
        attacker.fit_many(attacker.corpus(captions), rows, [labels[own] for own in rows], 2, range(3), stop)
    assert torch.get_num_threads() == threads_of_a_new_thread() == 2


def test_what_breaks_in_a_thread_is_told():
    captions, labels = captions_of()
    attacker = small("lstm_bi", epochs=100_000)
    torch.set_num_threads(2)
    rows = rows_of((90, 90))
    wrong = [labels[rows[0]], labels[rows[1]][:5]]
    with pytest.raises(IndexError):
        attacker.fit_many(attacker.corpus(captions), rows, wrong, 2, range(2), silent)


# the kernels


def test_gradients_of_the_lstm_are_those_of_finite_differences():
    torch.manual_seed(0)
    gates = torch.randn(2, 3, 2, 8, dtype=torch.double, requires_grad=True)
    weight = torch.randn(2, 8, 2, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(LstmStates.apply, (gates, weight))


@pytest.mark.parametrize("ways", [1, 2])
@pytest.mark.parametrize("unit", ["lstm", "rnn"])
def test_padded_captions_of_several_seeds_are_pytorchs_packed_ones(unit, ways):
    attacker = RecurrentAttacker(unit=unit, ways=ways, hidden=6, embedding=5, layers=2)
    torch.manual_seed(1)
    networks = [attacker.network(9, 1) for _ in range(3)]
    tokens, lengths = torch.randint(1, 9, (3, 4, 7)), torch.tensor([[7, 1, 3, 5], [2, 7, 7, 4], [1, 1, 6, 2]])
    tokens[torch.arange(7) >= lengths[..., None]] = PAD
    found = stack(networks)(tokens, lengths)
    plain = (nn.LSTM if unit == "lstm" else nn.RNN)(5, 6, num_layers=2, batch_first=True, bidirectional=ways == 2)
    for seed, network in enumerate(networks):
        with torch.no_grad():
            for depth, layer in enumerate(network.layers):
                for name, value in layer.named_parameters():
                    for way, ending in enumerate(("", "_reverse")[:ways]):
                        getattr(plain, f"{name}_l{depth}{ending}").copy_(value[0, way])
        to_npz = pack_padded_sequence(
            network.words[0][tokens[seed]], lengths[seed], batch_first=True, enforce_sorted=False
        )
        last = plain(to_npz)[1]
        last = (last[0] if unit == "lstm" else last)[-ways:]
        head = network.head.layers[0]
        expected = torch.cat(list(last), dim=1) @ head.weight[0].T + head.bias[0]
        torch.testing.assert_close(found[seed], expected, atol=1e-5, rtol=1e-5)


def test_captions_are_turned_within_their_length():
    states = torch.arange(1, 5.0).reshape(1, 4, 1, 1).expand(1, 4, 2, 1)
    # The first caption has two words, the second all four.
    found = turned(states, torch.tensor([[2, 4]]))[0, :, :, 0].T.tolist()
    assert found == [[2, 1, 3, 4], [4, 3, 2, 1]]
    assert turned(states, None)[0, :, 0, 0].tolist() == [4, 3, 2, 1]


@pytest.mark.parametrize("heads", [1, 5])
def test_a_transformer_layer_is_pytorchs(heads):
    attacker = TransformerAttacker(heads=heads, hidden=16, embedding=10, layers=1, head=(7,))
    torch.manual_seed(2)
    networks = [attacker.network(9, 3) for _ in range(2)]
    tokens, lengths = torch.randint(1, 9, (2, 4, 6)), torch.tensor([[6, 1, 3, 5], [2, 6, 6, 4]])
    gone = torch.arange(6) >= lengths[..., None]
    tokens[gone] = PAD
    found = stack(networks)(tokens, lengths)
    for seed, network in enumerate(networks):
        (own,) = network.layers
        plain = nn.TransformerEncoderLayer(10, heads, 16, dropout=0.0, batch_first=True)
        theirs = plain.self_attn, plain.linear1, plain.linear2
        pairs = [
            (theirs[0].in_proj_weight, own.queries_keys_values.weight),
            (theirs[0].in_proj_bias, own.queries_keys_values.bias),
            (theirs[0].out_proj.weight, own.joined.weight),
            (theirs[0].out_proj.bias, own.joined.bias),
            (theirs[1].weight, own.wide.weight),
            (theirs[1].bias, own.wide.bias),
            (theirs[2].weight, own.narrow.weight),
            (theirs[2].bias, own.narrow.bias),
        ]
        with torch.no_grad():
            for target, source in pairs:
                target.copy_(source[0])
        states = plain(network.words[0][tokens[seed]] + positions(6, 10, CPU), src_key_padding_mask=gone[seed])
        mean = torch.stack([own[:length].mean(dim=0) for own, length in zip(states, lengths[seed], strict=True)])
        torch.testing.assert_close(found[seed], network.head(mean[None])[0], atol=1e-5, rtol=1e-5)


def test_positions_are_sines_and_cosines():
    # E = 4: wavelengths 2 pi and 100 x 2 pi; place 1 is sin 1, cos 1, sin 0.01, cos 0.01.
    assert positions(2, 4, CPU)[0].tolist() == [0, 1, 0, 1]
    assert positions(2, 4, CPU)[1].tolist() == pytest.approx([0.841471, 0.540302, 0.0099998, 0.99995], abs=1e-6)


def test_attention_has_a_row_for_each_word_that_sums_to_one():
    captions, labels = captions_of()
    attacker = small("transformer_5h", epochs=1)
    corpus = attacker.corpus(captions)
    model = attacker.fit(corpus, np.arange(110), labels, 2, 0, silent)
    for row, own in zip((0, 7, 8), model.attention(corpus, [0, 7, 8]), strict=True):
        words = captions[row].split()
        assert own.words == tuple(words) and own.weights.shape == (2, 5, len(words), len(words))
        np.testing.assert_allclose(own.weights.sum(axis=-1), 1, atol=1e-5)
    first = captions[0].split()[0]
    unknown, empty = model.attention(attacker.corpus([f"{first} zebra", ""]), [0, 1])
    assert unknown.words == (first, "<unk>") and (empty.weights == np.ones((2, 5, 1, 1))).all()


# what seeds share and what they do not


def test_seeds_with_other_vocabularies_are_joined_and_parted_unchanged():
    attacker = RecurrentAttacker(hidden=4, embedding=3, layers=1)
    torch.manual_seed(3)
    networks = [attacker.network(words, 1) for words in (5, 8)]
    before = [[value.clone() for value in each.parameters()] for each in networks]
    joined = stack(networks)
    assert joined.words.shape == (2, 8, 3) and not joined.words[0, 5:].any()
    joined.words.data += 1
    unstack(joined, networks)
    torch.testing.assert_close(networks[0].words, before[0][0] + 1)
    torch.testing.assert_close(networks[1].layers[0].weight_hh, before[1][2])


def test_the_padding_of_no_seed_learns():
    captions, labels = captions_of()
    attacker = small("lstm", patience=0)
    corpus, rows = attacker.corpus(captions), rows_of()
    for model in together(attacker, corpus, rows, [labels[own] for own in rows]):
        assert not model.network.words[0, PAD].any()


def test_each_seed_drops_other_values_and_as_it_does_alone():
    rngs = [np.random.default_rng(seed) for seed in (1, 2)]
    both = Dropout(0.5, rngs, CPU)(torch.ones(2, 30, 4))
    alone = Dropout(0.5, [np.random.default_rng(2)], CPU)(torch.ones(1, 30, 4))
    assert torch.equal(both[1], alone[0]) and not torch.equal(both[0], both[1])


def test_the_epoch_with_the_lowest_loss_is_kept_for_each_seed():
    network = RecurrentAttacker(hidden=2, embedding=2, layers=1).network(3, 1)
    joined = stack([network, network])
    lowest = Lowest(joined, 2, patience=2)
    # Seed 0 is lowest at epoch 1, seed 1 at epoch 3; after two without a lower loss, seed 0 takes no more.
    for epoch, losses in enumerate([[3, 5], [1, 4], [2, 6], [2, 2], [0, 3], [0, 3]]):
        joined.words.data.fill_(epoch)
        assert lowest.note(joined, np.array(losses, dtype=float)) == (epoch == 5)
    lowest.restore(joined)
    assert joined.words[:, 0, 0].tolist() == [1, 3]


def test_batches_by_length_and_padded_hold_the_same_captions():
    texts = [text.split() for text in ("a b c", "a", "b b", "c a b a", "", "c c")]
    encoded = encode(texts, training_vocabulary(texts))
    order = [np.array([0, 1, 2]), np.array([5, 3, 4])]
    short = encode(texts[:2], training_vocabulary(texts))
    by_length = list(CaptionsByLength([encoded], CPU).batches([order]))
    padded = list(PaddedCaptions([encoded, short], CPU).batches([order, [np.array([1])]]))
    assert [len(batch.parts) for batch in by_length] == [3, 3] and [len(batch.parts) for batch in padded] == [1, 1]
    assert [sorted(batch.rows[0].tolist()) for batch in by_length] == [[0, 1, 2], [3, 4, 5]]
    assert padded[0].parts[0][0][0].tolist() == encoded.ids[order[0], :3].tolist()
    assert padded[0].present.tolist() == [[1, 1, 1], [1, 0, 0]] and padded[1].present[1].tolist() == [0, 0, 0]


def test_guesses_of_task_words_begin_at_their_frequencies_by_hand():
    """Two of three captions with the first word, none with the second: (2 + 1/2) / 4 and 1/2 / 4."""
    head = Head((4, 3, 2))
    head.begin_at(np.array([[1, 0], [1, 0], [0, 0]], dtype=bool))
    assert head.layers[-1].bias[0].tolist() == pytest.approx([math.log(2.5 / 1.5), math.log(0.5 / 3.5)])
    before = head.layers[-1].bias.tolist()
    head.begin_at(np.array([0, 1, 1]))
    assert head.layers[-1].bias.tolist() == before


def test_a_head_of_many_rare_task_words_learns_them():
    """40 task words, a cue each: with logits that begin at 0 the head all but dies and guesses the frequencies."""
    rng = np.random.default_rng(3)
    there = rng.random((400, 40)) < 0.05
    captions = [" ".join([f"w{place}" for place in np.flatnonzero(own)] or ["none"]) for own in there]
    attacker = replace(load_attacker("rnn"), device="cpu", epochs=14, batch=32, hidden=64)
    corpus = attacker.corpus(captions)
    rows = np.arange(320)
    model = attacker.fit(corpus, rows, there[rows], 2, 0, silent)
    shares, frequency = task_probabilities(model.logits(corpus, np.arange(320, 400))), there[rows].mean(axis=0)
    truth = there[320:]
    ours, constant = (np.log(np.where(truth, own, 1 - own)).sum(axis=1).mean() for own in (shares, frequency))
    assert ours > 0.8 * constant


def test_losses_by_hand():
    # Two seeds with a caption each; logit 0 is -ln 1/2 either way, logit ln 3 is p = 3/4 of the second value.
    two = caption_losses(torch.tensor([[[0.0]], [[np.log(3)]]]), torch.tensor([[1], [0]]))
    assert two.flatten().tolist() == pytest.approx([np.log(2), -np.log(1 / 4)])
    three = caption_losses(torch.log(torch.tensor([[[1.0, 2.0, 5.0]]])), torch.tensor([[2]]))
    assert three.item() == pytest.approx(-np.log(5 / 8))
    tasks = caption_losses(torch.tensor([[[0.0, np.log(3)]]]), torch.tensor([[[True, True]]]))
    assert tasks.item() == pytest.approx(np.log(2) - np.log(3 / 4))


# memory


def test_a_sweep_that_does_not_fit_is_split_by_halves():
    assert seeds_at_once(10, needed=3, free=30) == 10
    assert seeds_at_once(10, needed=3, free=29) == 5
    assert seeds_at_once(10, needed=3, free=14) == 3  # 5 need 15; half of them, rounded up
    assert seeds_at_once(10, needed=3, free=0) == 1


def test_bytes_of_a_seed_by_hand():
    # Words 5 x 3; one way: 4 gates x 2 x (3 + 2 + 1 + 1); head 2 + 1: 74 weights of 16 bytes.
    network = RecurrentAttacker(hidden=2, embedding=3, layers=1, ways=1).network(5, 1)
    assert sum(each.numel() for each in network.parameters()) == 74
    a_token = 2 * (3 + 16 * 2)
    assert bytes_a_seed(network, batch=4, longest=6, captions=9) == 16 * 74 + 4 * 4 * 6 * a_token + 8 * 9 * 6


def test_a_split_sweep_learns_the_same(monkeypatch):
    captions, labels = captions_of()
    attacker = small("rnn", patience=0)
    corpus, rows = attacker.corpus(captions), rows_of()
    sizes = []

    class Counted(Program):
        def __init__(self, attacker, fits, *rest, **options):
            sizes.append(len(fits))
            super().__init__(attacker, fits, *rest, **options)

    monkeypatch.setattr(training, "Program", Counted)
    known = [labels[own] for own in rows]
    whole = together(attacker, corpus, rows, known)
    monkeypatch.setattr(training, "_free", lambda device: 1)
    parts = together(attacker, corpus, rows, known)
    assert sizes == [3, 1, 1, 1]
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one.logits(corpus, rows[0]), other.logits(corpus, rows[0]), atol=1e-4)


# the table


def test_the_table_names_the_papers_encoders_from_scratch():
    heads = {"transformer_1h": 1, "transformer_5h": 5}
    for name in SCRATCH:
        attacker = load_attacker(name)
        assert not ATTACKERS[name].in_process
        if name != "lstm_bi":
            assert {key: getattr(attacker, key) for key in DBAC} == DBAC
        assert getattr(attacker, "heads", 0) == heads.get(name, 0)
        if name not in heads:
            assert (attacker.ways, attacker.unit) == (2 if name.endswith("_bi") else 1, name.partition("_")[0])


def test_the_training_core_runs_on_a_bare_machine():
    absent = ["streamlit", "captum", "distributed", "dask", "transformers"]
    code = f"""
import sys
for name in {absent!r}: sys.modules[name] = None
import numpy as np
from capbias_core.attackers import load_attacker
from capbias_core.types import silent
from dataclasses import replace
for name in ("lstm_bi", "transformer_1h"):
    attacker = replace(load_attacker(name, "cpu"), hidden=4, layers=1, epochs=1)
    corpus = attacker.corpus(["a b", "c"] * 20)
    attacker.fit(corpus, np.arange(40), np.arange(40) % 2, 2, 0, silent).logits(corpus, np.arange(40))
"""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("device", ["cuda", "cpu"])
@pytest.mark.parametrize("name", SCRATCH)
def test_a_step_mixes_no_devices_and_waits_for_none(name, device):
    """Shapes and devices alone are worked out: a tensor of another device breaks this, and so does asking for a value.

    Gradients on CUDA need a device that is there, so those are worked out on the CPU only.
    """
    network, device = small(name).network(9, 1), torch.device(device)
    with FakeTensorMode():
        for module in network.modules():
            for own, value in list(module.named_parameters(recurse=False)):
                setattr(module, own, nn.Parameter(torch.empty(3, *value.shape[1:], device=device)))
        tokens = torch.ones(3, 4, 7, dtype=torch.long, device=device)
        losses = caption_losses(network(tokens, torch.ones_like(tokens[..., 0])), torch.ones_like(tokens[..., 0]))
        assert losses.shape == (3, 4) and losses.device.type == device.type
        if device.type == "cpu":
            losses.sum().backward()
            assert all(value.grad.shape == value.shape for value in network.parameters())


# a run


class Remembering:
    """An attacker that learns nothing and notes what it was asked to fit together."""

    def __init__(self):
        self.asked = []

    def corpus(self, captions):
        return list(captions)

    def fit_many(self, corpus, rows, labels, n_values, seeds, tick):
        self.asked.append([[corpus[row] for row in own] for own in rows])
        tick(1.0, "")
        return [self] * len(rows)

    def logits(self, corpus, rows):
        last = [corpus[row].split()[-1] for row in rows]
        return np.array([[float(word) if word.isdigit() else np.nan] for word in last])


def crew_of(seeds: int) -> tuple[trainer.AttackerTrainer, Remembering, list]:
    attacker, reports = Remembering(), []
    images = tuple(f"i{place}" for place in range(40))
    own = trainer.AttackerTrainer(
        attacker, 2, np.arange(40) % 2, images, lambda *report: reports.append(report), 2 * seeds
    )
    return own, attacker, reports


@pytest.mark.parametrize("aligned", [False, True])
def test_a_run_fits_every_index_and_split_at_once_on_its_own_captions(aligned):
    own, attacker, reports = crew_of(3)
    # The caption of image 7 at index 1 is "word1 7": what a fit is given and what it is scored on can be read off it.
    lists = [
        trainer.CaptionList(np.arange(40), [f"word{index} {image}" for image in range(40)], np.arange(40))
        for index in (0, 1)
    ]
    splits = [balanced_split(np.arange(40) % 2, 2, seed) for seed in range(3)]
    found = list(own.logits(lists, splits, "captions", lists[:1] if aligned else None))
    assert [(index, split.seed) for index, split, _, _ in found] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    (asked,) = attacker.asked
    for texts, (index, split, test, logits) in zip(asked, found, strict=True):
        # Aligned to index 0, which never says word1.
        word = "<unk>" if aligned and index else f"word{index}"
        seen = {str(image) for image in split.train}
        assert texts == [f"{word} {image if str(image) in seen else '<unk>'}" for image in split.train]
        assert sorted(test) == list(split.test)
        if not aligned:
            assert logits[:, 0].tolist() == test.tolist()
    assert reports == [(1.0, "captions, attackers 1 to 6 of 6")]


def test_a_large_run_keeps_few_attackers_at_a_time(monkeypatch):
    monkeypatch.setattr(trainer, "MOST_TOGETHER", 2)
    own, attacker, reports = crew_of(3)
    lists = [trainer.CaptionList(np.arange(40), [f"a {image}" for image in range(40)], np.arange(40))]
    splits = [balanced_split(np.arange(40) % 2, 2, seed) for seed in range(3)]
    own.fits = 3
    assert len(list(own.logits(lists, splits, "captions"))) == 3
    assert [len(asked) for asked in attacker.asked] == [2, 1]
    assert [text for _, text in reports] == ["captions, attackers 1 to 2 of 3", "captions, attacker 3 of 3"]


def test_less_memory_means_fewer_at_a_time_and_at_least_one(monkeypatch):
    """Half of what is free, less what training takes, over what each keeps: (1000 / 2 - 100) / 20 = 20."""
    assert trainer.together_at_most(20, 100, 1000) == 20
    assert trainer.together_at_most(20, 100, 10**9) == trainer.MOST_TOGETHER
    assert trainer.together_at_most(20, 600, 1000) == 1 == trainer.together_at_most(20, 0, 0)
    assert 0 < trainer.free_memory() < 2**50
    own, attacker, _ = crew_of(3)
    monkeypatch.setattr(Remembering, "memory", lambda self, corpus, rows, labels, k: (100, 0), raising=False)
    monkeypatch.setattr(trainer, "free_memory", lambda: 400)
    lists = [trainer.CaptionList(np.arange(40), [f"a {image}" for image in range(40)], np.arange(40))]
    assert len(list(own.logits(lists, [balanced_split(np.arange(40) % 2, 2, seed) for seed in range(3)], "x"))) == 3
    assert [len(asked) for asked in attacker.asked] == [2, 1]


def test_memory_of_a_fit_by_hand():
    """Ids of 110 captions of at most 10 words, 8 bytes each; 4 bytes a weight; labels of 8 bytes."""
    captions, labels = captions_of()
    attacker = small("rnn", patience=0)
    corpus = attacker.corpus(captions)
    kept, training = attacker.memory(corpus, np.arange(110), labels, 2)
    network = attacker.prepared(corpus, np.arange(110), labels, 2, 0).network
    longest = max(len(caption.split()) for caption in captions)
    assert kept == 4 * sum(each.numel() for each in network.parameters()) + 8 * 110 * longest + 8 * 110
    assert training == torch.get_num_threads() * bytes_a_seed(network, 16, longest, 110)


def test_gradients_do_not_stay_in_memory():
    captions, labels = captions_of()
    attacker = small("rnn")
    model = attacker.fit(attacker.corpus(captions), np.arange(110), labels, 2, 0, silent)
    assert all(each.grad is None for each in model.network.parameters())


class Reading:
    """An attacker that notes what it was trained on, and each time what it reads then."""

    def __init__(self):
        self.read: list[tuple[int, str, list[str]]] = []

    def corpus(self, captions):
        return list(captions)

    def fit(self, corpus, rows, labels, n_values, seed, tick):
        side = corpus[rows[0]].split()[0]

        def logits(texts, places):
            self.read.append((seed, side, [texts[place] for place in places]))
            return np.zeros((len(places), 1))

        return SimpleNamespace(logits=logits)


def test_each_attacker_reads_the_held_out_captions_of_both_sides():
    """People write `human`, a list and the image; the model its name and the image. Unknown words differ by split."""
    attacker, images = Reading(), range(40)
    own = trainer.AttackerTrainer(attacker, 2, np.arange(40) % 2, tuple(map(str, images)), lambda *report: None, 6)
    lists = [trainer.CaptionList(np.arange(40), [f"human {n} {i}" for i in images], np.arange(40)) for n in "ab"]
    model = [trainer.CaptionList(np.arange(40), [f"model human a b {i}" for i in images], np.arange(40))]
    splits = [balanced_split(np.arange(40) % 2, 2, seed) for seed in range(2)]
    found = own.crossed(model, lists, splits)
    people = {n: [f"human {n} <unk>"] * 4 for n in "ab"}  # images held out: the model's training captions lack them
    expected = []
    for split in splits:
        expected.append(("model", [f"model human a b {i}" for i in split.test]))
        expected += [("model", people["a"]), ("model", people["b"])]
    for n in "ab":
        for split in splits:
            expected += [("human", people[n]), ("human", [f"model human a b {i}" for i in split.test])]
    assert [(side, texts) for _, side, texts in attacker.read] == expected
    assert {name: len(side.image) for name, side in found.items()} == {
        "model": 8,
        "human": 16,
        "model_by_human": 16,
        "human_by_model": 16,
    }
    assert set(found["human_by_model"].image[found["human_by_model"].seed == 1]) == set(splits[1].test)
