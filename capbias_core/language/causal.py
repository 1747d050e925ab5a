"""A causal language model: how likely it finds a text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from capbias_core.language.files import cut_note, read_model
from capbias_core.types import ShareDone

BATCH = 64
LONGEST = 512  # tokens; the rest of a longer text is not read


class CausalModel:
    """A causal language model of a folder, on the GPU where there is one. Raises CapbiasError where it is none."""

    def __init__(self, path: str):
        self.tokenizer, self.model, self.device = read_model("a causal language model", path, "AutoModelForCausalLM")
        self.longest = min(LONGEST, getattr(self.model.config, "max_position_embeddings", LONGEST) or LONGEST)

    def mean_token_probability(self, texts: Sequence[str], tick: ShareDone = lambda share: None) -> np.ndarray:
        """(n,) mean over the tokens of each text of their probability given those before; in [0, 1].

        Where the tokenizer has a token for the beginning of a text, the first token is read after it; else the first
        has no probability and does not count. nan for a text of which no token counts. tick: called with the share
        done, a batch at a time.
        """
        ids = [self._ids(text) for text in texts]
        order = sorted(range(len(ids)), key=lambda place: len(ids[place]))  # alike in length: little padding
        found = np.full(len(ids), np.nan)
        for start in range(0, len(order), BATCH):
            members = order[start : start + BATCH]
            found[members] = self._batch([ids[place] for place in members])
            tick(min(1.0, (start + BATCH) / len(order)))
        return found

    def cut(self, texts: Sequence[str]) -> list[str]:
        """A note where texts are longer than what is read of them."""
        return cut_note(self.tokenizer, texts, self.longest - 1, "the language model")

    def _ids(self, text: str) -> list[int]:
        begin = self.tokenizer.bos_token_id
        own = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ([] if begin is None else [begin]) + own[: self.longest - 1]

    @torch.inference_mode()
    def _batch(self, ids: list[list[int]]) -> np.ndarray:
        length = max(2, max(map(len, ids)))
        tokens = torch.zeros((len(ids), length), dtype=torch.long)  # (B, T)
        mask = torch.zeros_like(tokens)
        for row, own in enumerate(ids):
            tokens[row, : len(own)] = torch.tensor(own, dtype=torch.long)
            mask[row, : len(own)] = 1
        tokens, mask = tokens.to(self.device), mask.to(self.device)
        logits = self.model(input_ids=tokens, attention_mask=mask).logits[:, :-1].float()  # (B, T - 1, V)
        own = logits.gather(2, tokens[:, 1:, None])[..., 0]
        shares = (own - logits.logsumexp(dim=2)).exp() * mask[:, 1:]  # (B, T - 1)
        return (shares.sum(dim=1) / mask[:, 1:].sum(dim=1)).cpu().double().numpy()
