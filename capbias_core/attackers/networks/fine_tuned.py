"""BERT-ft of the LIC paper: a pretrained encoder whose weights are all trained on, with a head of two layers.

Protocol (LIC, appendix A.1): the state of the class token, two fully connected layers with LeakyReLU between (256
wide here; the paper gives no size), Adam 1e-5, 5 epochs, batches of 64, the encoder's own dropout. The reproducibility
paper adds batch normalisation and AdamW; this is the LIC paper's. Each seed trains its own copy of the encoder, one
after the other: copies of a whole BERT side by side would only cost memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from capbias_core.attackers.device import AUTO, choose_device
from capbias_core.attackers.networks.batches import training_batches
from capbias_core.attackers.networks.checkpoint import Checkpoint, Generators
from capbias_core.attackers.networks.heads import untrained
from capbias_core.attackers.networks.pretrained import Attributed
from capbias_core.attackers.networks.stacked import Head
from capbias_core.attackers.networks.training import DROP, ORDER, caption_losses, epoch_tick, logit_count
from capbias_core.language.encoder import FIRST, TextEncoder, of_one_length, text_encoder
from capbias_core.prepare.split import FIT, child_seed
from capbias_core.types import Progress

LEAK = 0.01
SCORING_BATCH = 256  # captions without gradients


@dataclass(frozen=True)
class TokenCorpus:
    """Masked captions and their token ids."""

    captions: list[str]
    ids: list[np.ndarray]


@dataclass(frozen=True)
class FineTunedAttacker:
    """See the module's text. path: the folder of the encoder to start from."""

    path: str
    digest: str = ""
    cache: str | None = None  # of embeddings: there are none to keep here
    pooling: str = FIRST
    hidden: tuple[int, ...] = (256,)
    learning_rate: float = 1e-5
    batch: int = 64
    epochs: int = 5
    integration_steps: int = 20
    device: str = AUTO

    def with_batch(self, batch: int) -> Self:
        return replace(self, batch=batch)

    def encoder(self) -> TextEncoder:
        """The encoder to start from, loaded once."""
        return text_encoder(self.path, self.pooling, str(choose_device(self.device)))

    def corpus(self, captions: Sequence[str]) -> TokenCorpus:
        encoder = self.encoder()
        return TokenCorpus(list(captions), encoder.ids([encoder.read(caption) for caption in captions]))

    def cut(self, captions: Sequence[str]) -> list[str]:
        """As CutsCaptions says."""
        encoder = self.encoder()
        return encoder.cut([encoder.read(caption) for caption in captions])

    def fit(self, corpus: TokenCorpus, rows, labels, n_values: int, seed: int, tick: Progress) -> FittedFineTuned:
        device, logits = choose_device(self.device), logit_count(labels, n_values)
        encoder = deepcopy(self.encoder())
        head = untrained((encoder.width, *self.hidden, logits), LEAK, seed).to(device)
        head.begin_at(np.asarray(labels))
        kind = torch.long if np.ndim(labels) == 1 else torch.bool
        targets = torch.as_tensor(np.asarray(labels), dtype=kind, device=device)
        ids = [corpus.ids[row] for row in rows]
        # The encoder's dropout draws from the process's generators: they are seeded here and put back after.
        with torch.random.fork_rng():
            torch.manual_seed(child_seed(seed, FIT, DROP))
            self._train(encoder, head, ids, targets, np.random.default_rng(child_seed(seed, FIT, ORDER)), tick)
        encoder.model.eval()
        return FittedFineTuned(encoder, head, self.integration_steps)

    def _train(self, encoder: TextEncoder, head: Head, ids: list[np.ndarray], targets: Tensor, rng, tick) -> None:
        encoder.model.train()
        weights = [*encoder.model.parameters(), *head.parameters()]
        optimizer = torch.optim.Adam(weights, lr=self.learning_rate, fused=True)
        lengths = np.array([len(own) for own in ids])
        checkpoint = Checkpoint(
            weights, (optimizer, Generators([rng, *_dropout_of(targets.device)])), [*ids, lengths, targets]
        )
        for epoch in range(checkpoint.epochs, self.epochs):
            checkpoint.keep(epoch)
            report = epoch_tick(tick, epoch, self.epochs)
            batches = training_batches(lengths, self.batch, rng)
            for done, batch in enumerate(batches, start=1):
                groups = [batch[own] for own in of_one_length([ids[row] for row in batch], self.batch)]
                vectors = torch.cat([encoder.pooled(encoder.tensor(ids, group)) for group in groups])
                loss = caption_losses(head(vectors[None]), targets[np.concatenate(groups)][None]).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                report(done / len(batches), loss.item())
        checkpoint.end(self.epochs)


def _dropout_of(device: torch.device) -> list[torch.Generator]:
    """The process's generators, from which an encoder's own dropout draws."""
    own = torch.cuda.default_generators[device.index or 0] if device.type == "cuda" else torch.default_generator
    return [own]


@dataclass(frozen=True)
class FittedFineTuned(Attributed):
    """An encoder and the head that were trained together."""

    own: TextEncoder
    head: Head
    integration_steps: int

    def encoder(self) -> TextEncoder:
        return self.own

    def logits(self, corpus: TokenCorpus, rows: np.ndarray) -> np.ndarray:
        found = np.zeros((len(rows), self.head.logits))
        ids = [corpus.ids[row] for row in rows]
        with torch.no_grad():
            for members in of_one_length(ids, SCORING_BATCH):
                vectors = self.own.pooled(self.own.tensor(ids, members))
                found[members] = self.head(vectors[None])[0].double().cpu().numpy()
        return found
