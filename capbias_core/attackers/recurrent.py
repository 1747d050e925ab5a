"""Recurrent attackers: the LIC paper's bidirectional LSTM, and the DBAC paper's that reads one way, with an MLP.

Protocol of LIC (Hirota et al. 2022, section 5): embedding 100, two bidirectional LSTM layers of 256, dropout 0.5 on the
embeddings, between the layers and on the last hidden states (forward and backward joined), one linear layer to 1
logit (K for K > 2 values), Adam 5e-5, batches of 64, 20 epochs, no early stopping. The vocabulary comes from the
training captions; other words are `<unk>`.

Protocol of DBAC (section 5, appendix B): two LSTM layers of 256 in one direction, an MLP of three layers, Adam 1e-3,
batches of 256, at most 50 epochs. The paper does not say how it keeps such an attacker from learning its captions by
heart; here a tenth of the training captions is set aside, and the epoch with the lowest loss on them is kept, with no
further ones after five without a lower loss.

Batches are where this differs from a plain loop, which pads or packs 64 captions of mixed length. Here a batch
holds captions of one length, so nothing is padded and the LSTM runs in oneDNN's fused kernel. What is left over of
each length fills mixed batches, whose lengths are run one after the other and averaged in one step. So, as in the
plain loop, every epoch reads each caption once, in batches of 64 in random order, with as many Adam steps; only the
company that a caption keeps in its batch is no longer independent of its length. `benchmarks/lstm_against_loop.py`
measures both: the speed, and LIC_M, which agrees within the spread over seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from capbias_core.attackers.base import Tick
from capbias_core.attackers.device import choose_device
from capbias_core.prepare.split import FIT, child_seed
from capbias_core.types import UNKNOWN_TOKEN, Contributions

PAD, UNKNOWN = 0, 1
SCORING_BATCH = 512  # captions without gradients
ATTRIBUTION_BATCH = 64  # captions; Captum reads each `integration_steps` times
BATCHES_A_TICK = 5
ASIDE = 10  # one in so many training captions is set aside to choose the epoch
PATIENCE = 5


@dataclass(frozen=True)
class LstmCorpus:
    """The tokens of each caption; words become numbers only with the vocabulary of a fit."""

    tokens: list[list[str]]


@dataclass(frozen=True)
class Encoded:
    """Captions as numbers. ids: (n, longest), PAD after the end; lengths: (n,), at least 1.

    An empty caption is one PAD token: the baseline itself, so it has a logit and no contributions.
    """

    ids: np.ndarray
    lengths: np.ndarray

    def tokens(self, members: np.ndarray, device: torch.device) -> Tensor:
        """(B, T) ids of captions that all have the same length."""
        return torch.from_numpy(self.ids[members, : self.lengths[members[0]]]).to(device)


def encode(captions: Sequence[list[str]], vocabulary: dict[str, int]) -> Encoded:
    lengths = np.array([max(1, len(caption)) for caption in captions], dtype=np.int64)
    ids = np.full((len(captions), lengths.max(initial=1)), PAD, dtype=np.int64)
    for row, caption in enumerate(captions):
        ids[row, : len(caption)] = [vocabulary.get(word, UNKNOWN) for word in caption]
    return Encoded(ids, lengths)


def training_vocabulary(captions: Sequence[list[str]]) -> dict[str, int]:
    """Word -> id; sorted, so that the order of the captions does not matter."""
    words = {word for caption in captions for word in caption} - {UNKNOWN_TOKEN}
    return {UNKNOWN_TOKEN: UNKNOWN} | {word: place for place, word in enumerate(sorted(words), start=UNKNOWN + 1)}


def same_length(lengths: np.ndarray, rows: np.ndarray, largest: int) -> Iterator[np.ndarray]:
    """The rows in groups of one length, at most `largest` in each."""
    for length in np.unique(lengths[rows]):
        members = rows[lengths[rows] == length]
        for start in range(0, len(members), largest):
            yield members[start : start + largest]


def training_batches(lengths: np.ndarray, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """One epoch: every caption once, in shuffled batches of one length; the remainders fill mixed batches.

    All batches but one hold `size` captions, so no caption weighs more for having a rare length.
    """
    batches, remainders = [], []
    for length in np.unique(lengths):
        rows = rng.permutation(np.flatnonzero(lengths == length))
        whole = len(rows) - len(rows) % size
        batches += list(rows[:whole].reshape(-1, size))
        remainders.append(rows[whole:])
    left = np.concatenate(remainders)
    batches += [left[start : start + size] for start in range(0, len(left), size)]
    return [batches[place] for place in rng.permutation(len(batches))]


class Dropout:
    """Inverted dropout with its own random numbers, so that nothing else in the process can change a fit.

    One random byte decides about one value (the share is rounded to 1/256; 0.5 is exact): much cheaper on a CPU
    than a random float each, and the same masks on every device.
    """

    def __init__(self, share: float, rng: np.random.Generator):
        self.dropped, self.rng = round(256 * share), rng

    def __call__(self, values: Tensor) -> Tensor:
        draws = torch.from_numpy(self.rng.integers(0, 256, tuple(values.shape), dtype=np.uint8)).to(values.device)
        return values * (draws >= self.dropped).to(values.dtype).mul_(256 / (256 - self.dropped))


def keep_all(values: Tensor) -> Tensor:
    """Dropout switched off."""
    return values


class Network(nn.Module):
    """Embedding, stacked LSTM, head (linear, or an MLP); reads captions of one length.

    ways: 2 reads each caption both ways, 1 from its start to its end. head: sizes of the layers of the head between
    the last hidden states and the logits.

    Dropout is an argument and not a mode: the LSTM layers stay in training mode, in which cuDNN and oneDNN can
    return gradients after training too (for attributions), and in which they have nothing that is random.
    """

    def __init__(
        self, words: int, embedding: int, hidden: int, layers: int, logits: int, ways: int = 2,
        head: tuple[int, ...] = (),
    ):  # fmt: skip
        super().__init__()
        self.logits = logits
        self.embedding = nn.Embedding(words, embedding, padding_idx=PAD)
        sizes = [embedding] + [ways * hidden] * (layers - 1)
        self.layers = nn.ModuleList(nn.LSTM(size, hidden, batch_first=True, bidirectional=ways == 2) for size in sizes)
        steps = [
            layer
            for before, after in pairwise((ways * hidden, *head))
            for layer in (nn.Linear(before, after), nn.ReLU())
        ]
        self.head = nn.Sequential(*steps, nn.Linear((ways * hidden, *head)[-1], logits))

    def forward(self, tokens: Tensor, dropout: Callable[[Tensor], Tensor] = keep_all) -> Tensor:
        states = self.embedding(tokens)  # (B, T, E)
        for layer in self.layers:
            states, (last, _) = layer(dropout(states))  # (B, T, 2H), (2, B, H)
        # No padding: the last states are at the caption's end (forward) and at its start (backward).
        return self.head(dropout(torch.cat(list(last), dim=1)))  # (B, C)


def mean_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy; summed over task words where labels are (B, L) booleans."""
    if labels.dim() == 2:
        losses = functional.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="none")
        return losses.sum(dim=1).mean()
    if logits.shape[1] == 1:
        return functional.binary_cross_entropy_with_logits(logits[:, 0], labels.to(logits.dtype))
    return functional.cross_entropy(logits, labels)


@dataclass(frozen=True)
class FittedLstm:
    """A trained network with its vocabulary."""

    vocabulary: dict[str, int]
    network: Network
    device: torch.device
    integration_steps: int

    def logits(self, corpus: LstmCorpus, rows: np.ndarray) -> np.ndarray:
        return self._logits(self._encoded(corpus, rows))

    def contributions(self, corpus: LstmCorpus, rows: np.ndarray) -> Contributions:
        """Integrated gradients of each logit over the embeddings (Sundararajan et al. 2017), summed for each word.

        The baseline is a caption of the same length whose embeddings are all zero. The integral is a sum over
        `integration_steps` points (Gauss-Legendre), so words and baseline add up to the logit only within `delta`.
        On COCO captions 20 points give each word's value to 1e-6 of what 200 give.
        """
        encoded = self._encoded(corpus, rows)
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

    def _encoded(self, corpus: LstmCorpus, rows: np.ndarray) -> Encoded:
        return encode([corpus.tokens[row] for row in rows], self.vocabulary)

    def _logits(self, encoded: Encoded) -> np.ndarray:
        logits = np.zeros((len(encoded.lengths), self.network.logits))
        with torch.no_grad():
            for members in same_length(encoded.lengths, np.arange(len(logits)), SCORING_BATCH):
                logits[members] = self.network(encoded.tokens(members, self.device)).cpu().numpy()
        return logits

    def _attributions(self, encoded: Encoded) -> list[np.ndarray]:
        """For each caption (T, C)."""
        from captum.attr import LayerIntegratedGradients

        gradients = LayerIntegratedGradients(self.network, self.network.embedding)
        words: list[np.ndarray] = [np.empty(0)] * len(encoded.lengths)
        for members in same_length(encoded.lengths, np.arange(len(words)), ATTRIBUTION_BATCH):
            tokens = encoded.tokens(members, self.device)
            shares = [self._attribution(gradients, tokens, logit) for logit in range(self.network.logits)]
            for member, share in zip(members, np.stack(shares, axis=-1), strict=True):
                words[member] = share
        return words

    def _attribution(self, gradients, tokens: Tensor, logit: int) -> np.ndarray:
        """(B, T) attributions of one logit."""
        values = gradients.attribute(
            tokens,
            baselines=torch.full_like(tokens, PAD),
            target=logit,
            n_steps=self.integration_steps,
            internal_batch_size=max(SCORING_BATCH, len(tokens)),
        )
        return values.detach().sum(dim=-1).double().cpu().numpy()


@dataclass(frozen=True)
class LstmAttacker:
    """See the module's text; the defaults are the LIC paper's. device: auto (CUDA where there is one), cpu or cuda.

    patience: epochs without a lower loss on the captions set aside after which training stops; 0 sets none aside.
    """

    embedding: int = 100
    hidden: int = 256
    layers: int = 2
    dropout: float = 0.5
    learning_rate: float = 5e-5
    batch: int = 64
    epochs: int = 20
    ways: int = 2
    head: tuple[int, ...] = ()
    patience: int = 0
    integration_steps: int = 20
    device: str = "auto"

    def corpus(self, captions: Sequence[str]) -> LstmCorpus:
        return LstmCorpus([caption.split() for caption in captions])

    def fit(self, corpus: LstmCorpus, rows, labels, n_values: int, seed: int, tick: Tick) -> FittedLstm:
        labels = np.asarray(labels)
        if not self.patience:
            *_, fitted = self.training(corpus, rows, labels, n_values, seed, tick)
            return fitted
        order = np.random.default_rng(child_seed(seed, FIT, 2)).permutation(len(rows))
        aside, kept = np.split(order, [max(1, len(rows) // ASIDE)])
        training = self.training(corpus, rows[kept], labels[kept], n_values, seed, tick)
        fitted = self._lowest(training, corpus, rows[aside], torch.as_tensor(labels[aside]))
        tick(1.0, "")
        return fitted

    def _lowest(self, training: Iterator[FittedLstm], corpus: LstmCorpus, rows, labels: Tensor) -> FittedLstm:
        """The model of the epoch with the lowest loss on captions that it did not train on."""
        lowest, best, since = float("inf"), {}, 0
        for fitted in training:
            loss = mean_loss(torch.as_tensor(fitted.logits(corpus, rows)), labels).item()
            since += 1
            if loss < lowest:
                lowest, since = loss, 0
                best = {name: weights.clone() for name, weights in fitted.network.state_dict().items()}
            if since == self.patience:
                break
        fitted.network.load_state_dict(best)
        return fitted

    def training(self, corpus: LstmCorpus, rows, labels, n_values: int, seed: int, tick: Tick) -> Iterator[FittedLstm]:
        """The fit, one epoch at a time: yields the model (the same object) after each."""
        captions = [corpus.tokens[row] for row in rows]
        fitted = self._untrained(training_vocabulary(captions), _logits_for(labels, n_values), seed)
        encoded = encode(captions, fitted.vocabulary)
        kind = torch.long if np.ndim(labels) == 1 else torch.bool
        targets = torch.as_tensor(np.asarray(labels), dtype=kind, device=fitted.device)
        rng = np.random.default_rng(child_seed(seed, FIT, 1))
        # The fused form of Adam is the same update in one pass over the weights.
        optimizer = torch.optim.Adam(fitted.network.parameters(), lr=self.learning_rate, fused=True)
        for epoch in range(self.epochs):
            self._epoch(fitted, optimizer, encoded, targets, rng, _epoch_tick(tick, epoch, self.epochs))
            yield fitted

    def _untrained(self, vocabulary: dict[str, int], logits: int, seed: int) -> FittedLstm:
        device = choose_device(self.device)
        # PyTorch draws initial weights from the process's generator: seed it here and put it back after.
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(child_seed(seed, FIT, 0))
            network = Network(
                len(vocabulary) + 1, self.embedding, self.hidden, self.layers, logits, self.ways, self.head
            )
        return FittedLstm(vocabulary, network.to(device), device, self.integration_steps)

    def _epoch(self, fitted: FittedLstm, optimizer, encoded: Encoded, targets: Tensor, rng, tick) -> None:
        dropout = Dropout(self.dropout, rng)
        batches = training_batches(encoded.lengths, self.batch, rng)
        total = 0.0
        for done, batch in enumerate(batches, start=1):
            groups = list(same_length(encoded.lengths, batch, self.batch))
            logits = torch.cat([fitted.network(encoded.tokens(group, fitted.device), dropout) for group in groups])
            loss = mean_loss(logits, targets[np.concatenate(groups)])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            if done % BATCHES_A_TICK == 0 or done == len(batches):
                tick(done / len(batches), total / done)


def _logits_for(labels, n_values: int) -> int:
    """One logit for two values, K for more, one each for task words."""
    if np.ndim(labels) == 2:
        return np.shape(labels)[1]
    return 1 if n_values == 2 else n_values


def dbac_attacker() -> LstmAttacker:
    """The DBAC paper's attacker; see the module's text."""
    return LstmAttacker(
        dropout=0.0, learning_rate=1e-3, batch=256, epochs=50, ways=1, head=(128, 64), patience=PATIENCE
    )


def _epoch_tick(tick: Tick, epoch: int, epochs: int) -> Callable[[float, float], None]:
    """Reports of one epoch as reports of the whole fit."""

    def report(share: float, loss: float) -> None:
        tick((epoch + share) / epochs, f"epoch {epoch + 1} of {epochs}, loss {loss:.2f}")

    return report
