"""Any captioner of transformers as ImageCaptioner2's judge, also of its own captions (the paper's self-assessment).

It is shown the photograph and reads the masked caption with the prompt, as if it had written them; P(A) is how likely
it finds each answer next, normalised over the answers (an answer of several tokens by their product). As it is, it has
nothing to learn from; with `epochs` its weights are trained further by cross-entropy on the answer, Adam 1e-5 as LIC
trains BERT further, and the epoch with the lowest loss on an eighth of the captions, set aside, is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from capbias_core.attackers.networks.training import DROP, ORDER
from capbias_core.errors import CapbiasError
from capbias_core.load.photographs import read_photograph
from capbias_core.prepare.split import FIT, child_seed
from capbias_core.types import Attribute, Progress
from capbias_core.vision.captioners import Captioner
from capbias_core.vision.judges import set_aside, value_logits
from capbias_core.vision.prompts import written

MASK = "[MASK]"  # what a captioner reads for a masked word where its tokenizer has no token for that


@dataclass(frozen=True)
class AskedJudge:
    """See the module's text. files: the photograph of each image. Captions are given with the index of their image."""

    captioner: Captioner
    files: Sequence[Path]
    attribute: Attribute
    prompt: str
    epochs: int = 0
    learning_rate: float = 1e-5
    batch: int = 128
    answers: dict = field(default_factory=dict)  # of the captioner as it is: every seed asks it the same

    def corpus(self, pairs: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
        return list(pairs)

    def fit(self, corpus, rows, labels, n_values: int, seed: int, tick: Progress) -> FittedAsked:
        if not self.epochs:
            return FittedAsked(self, self.captioner, self.answers, tick)
        captioner = copy(self.captioner)
        captioner.model = deepcopy(self.captioner.model).float()  # half precision would lose what Adam changes
        # The captioner's dropout draws from the process's generators: they are seeded here and put back after.
        with torch.random.fork_rng():
            torch.manual_seed(child_seed(seed, FIT, DROP))
            self._train(captioner, corpus, np.asarray(rows), np.asarray(labels), n_values, seed, tick)
        return FittedAsked(self, captioner, {}, tick)

    def _train(self, captioner: Captioner, corpus, rows, labels, n_values: int, seed: int, tick: Progress) -> None:
        aside = set_aside(labels, n_values, seed)

        def loss(row: int) -> Tensor:
            return -self.read(captioner, *corpus[rows[row]])[int(labels[row])]

        order = np.random.default_rng(child_seed(seed, FIT, ORDER))
        optimizer = torch.optim.Adam(captioner.model.parameters(), lr=self.learning_rate)
        lowest, weights = np.inf, None
        for epoch in range(self.epochs):
            captioner.model.train()
            kept = order.permutation(np.flatnonzero(~aside))
            for start in range(0, len(kept), self.batch):
                batch = kept[start : start + self.batch]
                for row in batch.tolist():
                    (loss(row) / len(batch)).backward()
                optimizer.step()
                optimizer.zero_grad()
                share = (epoch + (start + len(batch)) / len(kept)) / self.epochs
                tick(share, f"epoch {epoch + 1} of {self.epochs}")
            captioner.model.eval()
            with torch.no_grad():
                total = sum(float(loss(row)) for row in np.flatnonzero(aside).tolist())
            if not np.isfinite(total):
                raise CapbiasError(
                    f"The captioner's loss is {total} after {epoch + 1} epochs of training.",
                    "Use it untrained, or another one.",
                    "judge_epochs",
                )
            if total < lowest:
                lowest, weights = total, deepcopy(captioner.model.state_dict())
        captioner.model.load_state_dict(weights)

    def read(self, captioner: Captioner, image: int, caption: str) -> Tensor:
        """(K,) log-probabilities of the answers for a masked caption of an image, by its index."""
        pixels, mask = read_photograph(self.files[image]), captioner.tokenizer.mask_token or MASK
        answers = []
        for value in self.attribute.values:
            answer = value.lower()
            text = written(caption, self.attribute, self.prompt, answer, mask)
            scores = captioner.token_scores(pixels, text)
            first = len(text.split()) - len(answer.split())
            tokens = [number for number, word in enumerate(scores.words) if word >= first]
            answers.append(scores.log_probabilities[tokens].sum())
        return functional.log_softmax(torch.stack(answers).double(), dim=0)


@dataclass(frozen=True)
class FittedAsked:
    """A captioner that is asked. answers: its answers, by caption and image."""

    judge: AskedJudge
    captioner: Captioner
    answers: dict
    tick: Progress

    def logits(self, corpus: list[tuple[int, str]], rows: np.ndarray) -> np.ndarray:
        """See `value_logits`."""
        answers = []
        with torch.no_grad():
            for done, row in enumerate(rows):
                pair = corpus[row]
                if pair not in self.answers:
                    self.tick(done / len(rows), f"caption {done + 1:,} of {len(rows):,}")
                    self.answers[pair] = self.judge.read(self.captioner, *pair).cpu().numpy()
                answers.append(self.answers[pair])
        return value_logits(np.stack(answers))
