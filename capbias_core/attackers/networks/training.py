"""How the networks of attackers train: all seeds together, on CUDA as one network, on a CPU a seed a thread.

Protocol of DBAC (section 5, appendix B): an encoder and an MLP of three layers, Adam 1e-3, batches of 256, at most 50
epochs. The paper does not say how it keeps such an attacker from learning its captions by heart; here a tenth of the
training captions is set aside, and the epoch with the lowest loss on them is kept, with no further ones after five
without a lower loss. The vocabulary comes from the training captions; other words are `<unk>`. Where task words are
guessed, the last layer begins at how often each is there (stacked.py says why).

On CUDA the seeds are one network (stacked.py) that reads padded captions, batches of about one length at a time (of
seven captioners on COCO a third less to read than in each seed's own order), with matrix products in TF32; nothing in
a step waits for the device. On a CPU each seed is a network of its own in a thread of its own: threads that share a
matrix product wait for each other at every product, seeds wait for nobody. `lstm_bi` there rounds factors of products
where that is quicker (rounded.py), and reads padded captions in the order of CUDA. Either way a seed has its own rows,
initialisation, order and dropout; where among its batches the long ones come, is the same for all seeds on CUDA.
`benchmarks/lstm_against_loop.py` measures the speed against a plain loop, and LIC_M of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import nullcontext
from contextvars import copy_context
from dataclasses import dataclass, replace
from itertools import zip_longest
from sys import intern
from threading import Event
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from capbias_core.attackers.device import BF16, TF32, choose_device, precision_on, products
from capbias_core.attackers.networks.batches import (
    PAD,
    Encoded,
    TokenCorpus,
    encode,
    in_step,
    same_length,
    training_batches,
    training_vocabulary,
)
from capbias_core.attackers.networks.checkpoint import Checkpoint, Generators
from capbias_core.attackers.networks.stacked import (
    Dropout,
    Network,
    bytes_a_seed,
    keep_all,
    seeds_at_once,
    stack,
    unstack,
)
from capbias_core.errors import Cancelled, need
from capbias_core.prepare.split import FIT, child_seed
from capbias_core.types import Contributions, Progress

SCORING_BATCH = 512  # captions without gradients
ATTRIBUTION_BATCH = 64  # captions; Captum reads each `integration_steps` times
BATCHES_A_TICK = 5
SECONDS_A_LOOK = 0.2  # between looks at the threads that train
ASIDE = 10  # one in so many training captions is set aside to choose the epoch
PATIENCE = 5
SHARE_OF_MEMORY = 0.7  # of what is free on the device; the rest is for what the estimate leaves out
CPU = torch.device("cpu")
INIT, ORDER, SET_ASIDE, DROP, IN_STEP = range(5)

# The protocol of the DBAC paper as fields of an attacker.
DBAC = {"dropout": 0.0, "learning_rate": 1e-3, "batch": 256, "epochs": 50, "head": (128, 64), "patience": PATIENCE}


@dataclass(frozen=True)
class Fit:
    """One attacker to train: its network (S = 1), and captions and labels, those set aside apart (or None)."""

    seed: int
    vocabulary: dict[str, int]
    network: Network
    encoded: Encoded
    labels: np.ndarray
    aside: Encoded | None
    aside_labels: np.ndarray | None

    def rng(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng(child_seed(self.seed, FIT, purpose))


@dataclass(frozen=True)
class Batch:
    """One batch of every seed. parts: (tokens (S, b, T), lengths (S, b) or None where nothing is padded).

    rows: (S, B), which captions these are; present: (S, B), 0 where a seed has fewer.
    """

    parts: Sequence[tuple[Tensor, Tensor | None]]
    rows: Tensor
    present: Tensor

    def logits(self, network: nn.Module, dropout: Callable[[Tensor], Tensor] = keep_all) -> Tensor:
        """(S, B, C)."""
        return torch.cat([network(tokens, lengths, dropout) for tokens, lengths in self.parts], dim=1)


class CaptionsByLength:
    """The captions of one seed, read without padding: a batch is a part for each length in it."""

    def __init__(self, encoded: Sequence[Encoded], device: torch.device):
        (self.encoded,), self.device = encoded, device

    def batches(self, orders: Sequence[Sequence[np.ndarray]]) -> Iterator[Batch]:
        """For each of the seed's groups of rows a batch, its captions sorted by length."""
        for members in orders[0]:
            groups = list(same_length(self.encoded.lengths, members, len(members)))
            parts = [(self._tensor(self.encoded.of_one_length(group)), None) for group in groups]
            yield Batch(parts, self._tensor(np.concatenate(groups)[None]), torch.ones(1, len(members)).to(self.device))

    def _tensor(self, values: np.ndarray) -> Tensor:
        return torch.from_numpy(values).to(self.device)


class PaddedCaptions:
    """The captions of all seeds on the device, padded; what an epoch reads goes there in one piece."""

    def __init__(self, encoded: Sequence[Encoded], device: torch.device):
        self.host = [own.lengths for own in encoded]
        ids = np.full((len(encoded), max(map(len, self.host)), max(own.ids.shape[1] for own in encoded)), PAD)
        lengths = np.ones(ids.shape[:2], dtype=np.int64)
        for place, own in enumerate(encoded):
            ids[place, : len(own.ids), : own.ids.shape[1]] = own.ids
            lengths[place, : len(own.lengths)] = own.lengths
        self.ids, self.lengths = torch.from_numpy(ids).to(device), torch.from_numpy(lengths).to(device)
        self.seeds = torch.arange(len(encoded), device=device)[:, None]
        self.device = device

    def batches(self, orders: Sequence[Sequence[np.ndarray]]) -> Iterator[Batch]:
        """For each place in the orders (one a seed: groups of rows) a batch."""
        steps = list(zip_longest(*orders, fillvalue=np.empty(0, dtype=np.int64)))
        shape = len(steps), len(orders), max((len(own) for step in steps for own in step), default=0)
        rows, present = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.float32)
        longest = []
        for place, step in enumerate(steps):
            for seed, own in enumerate(step):
                rows[place, seed, : len(own)] = own
                present[place, seed, : len(own)] = 1
            longest.append(max(known[own].max(initial=1) for known, own in zip(self.host, step, strict=True)))
        there = torch.from_numpy(rows).to(self.device), torch.from_numpy(present).to(self.device)
        for own, filled, length in zip(*there, longest, strict=True):
            tokens = self.ids[:, :, :length][self.seeds, own]
            # A row that stands for nothing may be longer than what is there: cut, it counts for nothing all the same.
            yield Batch([(tokens, self.lengths[self.seeds, own].clamp(max=int(length)))], own, filled)


def reader(encoded: Sequence[Encoded], device: torch.device, padded: bool) -> CaptionsByLength | PaddedCaptions:
    return (PaddedCaptions if padded else CaptionsByLength)(encoded, device)


def scoring_groups(encoded: Encoded) -> list[np.ndarray]:
    """All captions, sorted by length, in groups for scoring."""
    order = np.argsort(encoded.lengths, kind="stable")
    return [order[start : start + SCORING_BATCH] for start in range(0, len(order), SCORING_BATCH)]


def caption_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of each caption: (S, B, C) logits and (S, B) labels to (S, B).

    Labels are (S, B, L) of 0 or 1 for task words; their losses are summed.
    """
    if labels.dim() == 3:
        return functional.binary_cross_entropy_with_logits(logits, labels.to(logits), reduction="none").sum(dim=2)
    if logits.shape[2] == 1:
        return functional.binary_cross_entropy_with_logits(logits[..., 0], labels.to(logits), reduction="none")
    return functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view(labels.shape)


def stacked_labels(labels: Sequence[np.ndarray], device: torch.device) -> Tensor:
    """(S, N) or (S, N, L) labels of all seeds, 0 behind those of a seed that has fewer."""
    most = max(map(len, labels))
    filled = [np.concatenate([own, np.zeros((most - len(own), *own.shape[1:]), own.dtype)]) for own in labels]
    return torch.from_numpy(np.stack(filled)).to(device)


class Lowest:
    """For each seed the weights of the epoch with the lowest loss on captions that it did not train on."""

    def __init__(self, network: nn.Module, seeds: int, patience: int):
        self.patience, self.losses, self.since = patience, np.full(seeds, np.inf), np.zeros(seeds, dtype=int)
        self.weights = [parameter.detach().clone() for parameter in network.parameters()]

    def note(self, network: nn.Module, losses: np.ndarray) -> bool:
        """Keep the weights of seeds whose loss (S,) is their lowest; whether every seed has waited long enough."""
        running = self.since < self.patience
        better = np.flatnonzero(running & (losses < self.losses))
        self.since[running] += 1
        self.losses[better], self.since[better] = losses[better], 0
        for kept, parameter in zip(self.weights, network.parameters(), strict=True):
            kept[better] = parameter.detach()[better]
        return bool((self.since >= self.patience).all())

    def restore(self, network: nn.Module) -> None:
        for kept, parameter in zip(self.weights, network.parameters(), strict=True):
            parameter.data.copy_(kept)

    def state_dict(self) -> dict[str, Any]:
        kept = self.weights if self.patience else []
        return {"losses": torch.from_numpy(self.losses), "since": torch.from_numpy(self.since), "weights": kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.losses, self.since = state_dict["losses"].numpy(), state_dict["since"].numpy()
        for own, kept in zip(self.weights, state_dict["weights"], strict=bool(self.patience)):
            own.copy_(kept)


class SeedsProgram:
    """Training of one stacked network of several seeds, each its own; what is read and scored is a subclass's.

    protocol: has learning_rate, epochs and patience. ends: the networks (S = 1) that hold the result. Every seed has as
    many batches an epoch.
    """

    def __init__(self, network: nn.Module, ends: Sequence[nn.Module], protocol, device: torch.device):
        self.network, self.ends, self.protocol, self.device = network, ends, protocol, device
        self.seeds = torch.arange(len(ends), device=device)[:, None]
        # The fused form of Adam is the same update in one pass over the weights.
        self.optimizer = torch.optim.Adam(network.parameters(), lr=protocol.learning_rate, fused=True)

    def batches(self) -> tuple[int, Iterable]:
        """How many batches the next epoch has, and they."""
        raise NotImplementedError

    def losses(self, batch) -> Tensor:
        """(S,) mean loss of each seed on a batch."""
        raise NotImplementedError

    def aside_losses(self) -> np.ndarray:
        """(S,) mean loss of each seed on the captions set aside."""
        raise NotImplementedError

    def random(self) -> list[np.random.Generator | torch.Generator]:
        """Every generator that training draws from."""
        raise NotImplementedError

    def reads(self) -> Iterable[Tensor | np.ndarray]:
        """What it learns from and what is set aside: it tells this training from any other of the run."""
        raise NotImplementedError

    def train(self, tick: Progress) -> None:
        """All epochs, or those that a checkpoint leaves; the ends then hold the result."""
        lowest = Lowest(self.network, len(self.ends), self.protocol.patience)
        parts = (self.optimizer, lowest, Generators(self.random()))
        checkpoint = Checkpoint(list(self.network.parameters()), parts, self.reads())
        if not checkpoint.ended:
            self._epochs(checkpoint, lowest, tick)
        if self.protocol.patience:
            tick(1.0, "")
        if len(self.ends) > 1:
            unstack(self.network, self.ends)

    def _epochs(self, checkpoint: Checkpoint, lowest: Lowest, tick: Progress) -> None:
        epochs, patience = self.protocol.epochs, self.protocol.patience
        for epoch in range(checkpoint.epochs, epochs):
            checkpoint.keep(epoch)
            self.epoch(epoch_tick(tick, epoch, epochs))
            if patience and lowest.note(self.network, self.aside_losses()):
                break
        self.optimizer.zero_grad()  # of many seeds at once, the gradients of those that are done would stay in memory
        if patience:
            lowest.restore(self.network)
        checkpoint.end(epochs)

    def epoch(self, report: Callable[[float, float], None]) -> None:
        count, batches = self.batches()
        total, known = torch.zeros((), device=self.device), float("nan")
        for done, batch in enumerate(batches, start=1):
            total += self._step(batch)
            over = done == count
            if over or done % BATCHES_A_TICK == 0:
                if over or self.device.type == "cpu":  # elsewhere asking for the loss would wait for the device
                    known = total.item() / done
                report(done / count, known)

    def _step(self, batch) -> Tensor:
        """One step of Adam for every seed; returns their mean loss, on the device."""
        losses = self.losses(batch)
        self.optimizer.zero_grad()
        losses.sum().backward()
        self.optimizer.step()
        return losses.detach().mean()


class Program(SeedsProgram):
    """One network of all the seeds of some fits. padded: read padded captions, as several seeds must."""

    def __init__(self, attacker: NetworkAttacker, fits: Sequence[Fit], device: torch.device, padded: bool):
        network = stack([fit.network for fit in fits]).to(device)
        super().__init__(network, [fit.network for fit in fits], attacker, device)
        self.attacker, self.fits = attacker, fits
        self.in_step = np.random.default_rng(child_seed(0, FIT, IN_STEP)) if padded else None  # whatever the seeds are
        self.captions = reader([fit.encoded for fit in fits], device, padded)
        self.labels = stacked_labels([fit.labels for fit in fits], device)
        if attacker.patience:
            self.set_aside = [fit.aside for fit in fits if fit.aside is not None]
            self.aside = reader(self.set_aside, device, padded)
            labels = [fit.aside_labels for fit in fits if fit.aside_labels is not None]
            self.aside_labels = stacked_labels(labels, device)
        self.rngs = [fit.rng(ORDER) for fit in fits]
        self.dropout = Dropout(attacker.dropout, [fit.rng(DROP) for fit in fits], device)

    def batches(self) -> tuple[int, Iterable[Batch]]:
        orders = [
            training_batches(fit.encoded.lengths, self.attacker.batch, rng)
            for fit, rng in zip(self.fits, self.rngs, strict=True)
        ]
        if self.in_step:
            orders = in_step(orders, [fit.encoded.lengths for fit in self.fits], self.in_step)
        return len(orders[0]), self.captions.batches(orders)

    def random(self) -> list[np.random.Generator | torch.Generator]:
        return [*self.rngs, *self.dropout.generators, *([self.in_step] if self.in_step else [])]

    def reads(self) -> Iterable[np.ndarray]:
        for fit in self.fits:
            yield from (fit.encoded.ids, fit.encoded.lengths, fit.labels)
            if fit.aside is not None and fit.aside_labels is not None:
                yield from (fit.aside.ids, fit.aside_labels)

    def losses(self, batch: Batch) -> Tensor:
        losses = caption_losses(batch.logits(self.network, self.dropout), self.labels[self.seeds, batch.rows])
        return (losses * batch.present).sum(dim=1) / batch.present.sum(dim=1)

    def aside_losses(self) -> np.ndarray:
        total = torch.zeros(len(self.fits), device=self.device)
        with torch.no_grad():
            for batch in self.aside.batches([scoring_groups(own) for own in self.set_aside]):
                losses = caption_losses(batch.logits(self.network), self.aside_labels[self.seeds, batch.rows])
                total += (losses * batch.present).sum(dim=1)
        return total.cpu().numpy() / [len(own.lengths) for own in self.set_aside]


@dataclass(frozen=True)
class FittedNetwork:
    """A trained network (S = 1) with its vocabulary."""

    vocabulary: dict[str, int]
    network: Network
    device: torch.device
    integration_steps: int

    def logits(self, corpus: TokenCorpus, rows: np.ndarray) -> np.ndarray:
        return self._logits(self.encoded(corpus, rows))

    def contributions(self, corpus: TokenCorpus, rows: np.ndarray) -> Contributions:
        """Integrated gradients of each logit over the embeddings (Sundararajan et al. 2017), summed for each word.

        The baseline is a caption of the same length whose embeddings are all zero. The integral is a sum over
        `integration_steps` points (Gauss-Legendre), so words and baseline add up to the logit only within `delta`.
        On COCO captions 20 points give each word's value by the LSTM of LIC to 1e-6 of what 200 give.
        """
        encoded = self.encoded(corpus, rows)
        # Captions of one data set repeat each other; each distinct one is attributed once.
        ids, first, copies = np.unique(encoded.ids, axis=0, return_index=True, return_inverse=True)
        copies = copies.reshape(-1)
        distinct = Encoded(ids, encoded.lengths[first])
        words = self._attributions(distinct)
        logits, baseline = self._logits(distinct), self._logits(Encoded(np.full_like(ids, PAD), distinct.lengths))
        sums = np.stack([each.sum(axis=0) for each in words]) if words else np.zeros_like(logits)
        delta = np.abs(baseline + sums - logits).max(axis=1)
        sizes = [len(corpus.tokens[row]) for row in rows]
        return Contributions(
            words=[words[copy][:size] for copy, size in zip(copies, sizes, strict=True)],
            baseline=baseline[copies],
            delta=delta[copies],
        )

    def encoded(self, corpus: TokenCorpus, rows: np.ndarray) -> Encoded:
        """These captions of a corpus in the words of this model."""
        return encode([corpus.tokens[row] for row in rows], self.vocabulary)

    def _logits(self, encoded: Encoded) -> np.ndarray:
        logits = np.zeros((len(encoded.lengths), self.network.logits))
        captions = reader([encoded], self.device, self.device.type == "cuda")
        with torch.no_grad():
            for batch in captions.batches([scoring_groups(encoded)]):
                present = batch.present[0].bool().cpu().numpy()
                logits[batch.rows[0].cpu().numpy()[present]] = batch.logits(self.network)[0].cpu().numpy()[present]
        return logits

    def _attributions(self, encoded: Encoded) -> list[np.ndarray]:
        """For each caption (T, C)."""
        words: list[np.ndarray] = [np.empty(0)] * len(encoded.lengths)
        for members in same_length(encoded.lengths, np.arange(len(words)), ATTRIBUTION_BATCH):
            with torch.no_grad():
                embedded = self.network.embed(torch.from_numpy(encoded.of_one_length(members)).to(self.device))[0]
            shares = [self._attribution(embedded, logit) for logit in range(self.network.logits)]
            for member, share in zip(members, np.stack(shares, axis=-1), strict=True):
                words[member] = share
        return words

    def _attribution(self, embedded: Tensor, logit: int) -> np.ndarray:
        """(B, T) attributions of one logit, from (B, T, E) embeddings."""
        need("Attributing words", "captum")
        from captum.attr import IntegratedGradients

        values = IntegratedGradients(self._read).attribute(
            embedded,
            target=logit,
            n_steps=self.integration_steps,
            internal_batch_size=max(SCORING_BATCH, len(embedded)),
        )
        return values.detach().sum(dim=-1).double().cpu().numpy()

    def _read(self, embedded: Tensor) -> Tensor:
        return self.network.read(embedded[None], None, keep_all)[0]


@dataclass(frozen=True)
class NetworkAttacker:
    """What the attackers with networks have in common; the defaults are the LIC paper's.

    head: sizes of the hidden layers of the head. patience: epochs without a lower loss on the captions set aside after
    which training stops; 0 sets none aside. device: auto (CUDA where there is one), cpu or cuda. precision: of matrix
    products in training on CUDA, TF32 or FP32.
    """

    embedding: int = 100
    hidden: int = 256
    layers: int = 2
    dropout: float = 0.5
    learning_rate: float = 5e-5
    batch: int = 64
    epochs: int = 20
    head: tuple[int, ...] = ()
    patience: int = 0
    fitted: ClassVar[type[FittedNetwork]] = FittedNetwork
    integration_steps: int = 20
    device: str = "auto"
    precision: str = TF32

    def network(self, words: int, logits: int) -> Network:
        """An untrained network (S = 1), its weights drawn from PyTorch's generator."""
        raise NotImplementedError

    def corpus(self, captions: Sequence[str]) -> TokenCorpus:
        # A word is kept once, however many captions say it.
        return TokenCorpus([list(map(intern, caption.split())) for caption in captions])

    def fit(self, corpus: TokenCorpus, rows, labels, n_values: int, seed: int, tick: Progress) -> FittedNetwork:
        return self.fit_many(corpus, [rows], [labels], n_values, [seed], tick)[0]

    def fit_many(self, corpus: TokenCorpus, rows, labels, n_values: int, seeds, tick: Progress) -> list[FittedNetwork]:
        """One attacker a seed, trained together; see `base.fit_many`."""
        device = choose_device(self.device)
        each = zip(rows, labels, seeds, strict=True)
        fits = [self.prepared(corpus, own, np.asarray(known), n_values, seed) for own, known, seed in each]
        (in_threads if device.type == "cpu" else in_groups)(self, fits, device, tick)
        return [self.fitted(fit.vocabulary, fit.network.to(device), device, self.integration_steps) for fit in fits]

    def with_batch(self, batch: int) -> Self:
        return replace(self, batch=batch)

    def memory(self, corpus: TokenCorpus, rows, labels, n_values: int) -> tuple[int, int]:
        """Rough bytes of the machine's memory that each of many fits keeps until all are done, and that training takes.

        Kept: weights and captions as numbers. Training: on a CPU what each thread needs more; on CUDA little here.
        """
        fit = self.prepared(corpus, rows, np.asarray(labels), n_values, 0)
        weights = sum(each.numel() for each in fit.network.parameters())
        kept = 4 * weights + fit.encoded.ids.nbytes + fit.labels.nbytes
        threads = torch.get_num_threads() if choose_device(self.device).type == "cpu" else 0
        return kept, threads * _needed(self, fit)

    def prepared(self, corpus: TokenCorpus, rows, labels: np.ndarray, n_values: int, seed: int) -> Fit:
        """One attacker before it trains."""
        kept, aside = np.arange(len(rows)), None
        if self.patience:
            order = np.random.default_rng(child_seed(seed, FIT, SET_ASIDE)).permutation(len(rows))
            aside, kept = np.split(order, [max(1, len(rows) // ASIDE)])
        captions = [corpus.tokens[row] for row in rows]
        vocabulary = training_vocabulary([captions[place] for place in kept])
        encoded = [encode([captions[place] for place in own], vocabulary) for own in (kept, aside) if own is not None]
        network = self._untrained(len(vocabulary) + 1, logit_count(labels, n_values), seed)
        network.head.begin_at(labels[kept])
        return Fit(
            seed,
            vocabulary,
            network,
            encoded[0],
            labels[kept],
            *((encoded[1], labels[aside]) if self.patience else (None, None)),
        )

    def _untrained(self, words: int, logits: int, seed: int) -> Network:
        # PyTorch draws initial weights from the process's generator: seed it here and put it back after.
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(child_seed(seed, FIT, INIT))
            return self.network(words, logits)


def in_threads(attacker: NetworkAttacker, fits: Sequence[Fit], device: torch.device, tick: Progress) -> None:
    """On a CPU: a seed a thread, each with one thread of PyTorch; one seed alone has all of them."""
    threads = torch.get_num_threads()
    rounded = precision_on(attacker.precision, device.type) == BF16

    def training(fit: Fit) -> Callable[[Progress], None]:
        def train(note: Progress) -> None:
            # A rounded product of few captions takes as long as that of a batch, so mixed batches are padded.
            with fit.network.rounded() if rounded else nullcontext():
                Program(attacker, [fit], device, padded=rounded).train(note)

        return train

    if min(threads, len(fits)) == 1:
        for done, fit in enumerate(fits):
            training(fit)(part_of(tick, done, 1, len(fits)))
        return

    each_in_a_thread([training(fit) for fit in fits], tick)


def each_in_a_thread(trainings: Sequence[Callable[[Progress], None]], tick: Progress) -> None:
    """Trainings (each is given its own tick), as many at a time as PyTorch has threads, one thread of PyTorch each."""
    threads = torch.get_num_threads()
    shares, texts, stop = [0.0] * len(trainings), [""] * len(trainings), Event()

    def work(place: int) -> None:
        def note(share: float, text: str) -> None:
            if stop.is_set():
                raise Cancelled
            shares[place], texts[place] = share, text

        torch.set_num_threads(1)
        trainings[place](note)
        shares[place] = 1.0

    def report() -> None:
        """The furthest of those that still train: epochs of one and then another would seem to run backwards."""
        going = [(share, text) for share, text in zip(shares, texts, strict=True) if share < 1.0]
        done = f"{len(shares) - len(going)} trained"
        tick(sum(shares) / len(shares), ", ".join(filter(None, [done, max(going, default=(1.0, ""))[1]])))

    try:
        with ThreadPoolExecutor(min(threads, len(trainings))) as pool:
            futures = [pool.submit(copy_context().run, work, place) for place in range(len(trainings))]
            _watch(futures, report, stop)
    finally:
        torch.set_num_threads(threads)
    tick(1.0, "")


def _watch(futures, report: Callable[[], None], stop: Event) -> None:
    """Until all are done: reports from this thread, which alone may write them down; what breaks ends the rest."""
    try:
        waiting = set(futures)
        while waiting:
            done, waiting = wait(waiting, SECONDS_A_LOOK, FIRST_EXCEPTION)
            for future in done:
                future.result()
            report()
    except BaseException:
        stop.set()
        for future in futures:
            future.cancel()
        raise


def in_groups(attacker: NetworkAttacker, fits: Sequence[Fit], device: torch.device, tick: Progress) -> None:
    """On CUDA: all seeds with as many batches an epoch as one network, or as many at once as memory holds."""
    groups: dict[int, list[Fit]] = {}
    for fit in fits:
        groups.setdefault(-(-len(fit.labels) // attacker.batch), []).append(fit)
    done = 0
    for group in groups.values():
        size = seeds_at_once(len(group), max(_needed(attacker, fit) for fit in group), _free(device))
        for start in range(0, len(group), size):
            own = group[start : start + size]
            with products(attacker.precision, device):
                Program(attacker, own, device, padded=True).train(part_of(tick, done, len(own), len(fits)))
            done += len(own)


def _needed(attacker: NetworkAttacker, fit: Fit) -> int:
    return bytes_a_seed(fit.network, attacker.batch, fit.encoded.ids.shape[1], len(fit.labels))


def _free(device: torch.device) -> int:
    """Bytes for a program: of what is free on the device, most; on a CPU nothing is counted."""
    if device.type == "cpu":
        return 2**63
    return int(SHARE_OF_MEMORY * torch.cuda.mem_get_info(device)[0])


def part_of(tick: Progress, done: int, own: int, whole: int) -> Progress:
    """Reports of some of the fits as reports of all."""
    return lambda share, text: tick((done + share * own) / whole, text)


def epoch_tick(tick: Progress, epoch: int, epochs: int) -> Callable[[float, float], None]:
    """Reports of one epoch as reports of the whole fit."""

    def report(share: float, loss: float) -> None:
        known = f", loss {loss:.2f}" if loss == loss else ""
        tick((epoch + share) / epochs, f"epoch {epoch + 1} of {epochs}{known}")

    return report


def logit_count(labels: np.ndarray, n_values: int) -> int:
    """One logit for two values, K for more, one each for task words."""
    if np.ndim(labels) == 2:
        return np.shape(labels)[1]
    return 1 if n_values == 2 else n_values
