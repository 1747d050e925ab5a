"""A masked language model: how likely it finds a word at a masked place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from capbias_core.errors import CapbiasError
from capbias_core.language.files import read_model
from capbias_core.types import ShareDone

BATCH = 64
LONGEST = 512


class MaskedModel:
    """A masked language model of a folder, on the GPU where there is one. Raises CapbiasError where it is none."""

    def __init__(self, path: str):
        self.tokenizer, self.model, self.device = read_model("a masked language model", path, "AutoModelForMaskedLM")
        if self.tokenizer.mask_token_id is None:
            raise CapbiasError(f"The tokenizer of {path!r} has no mask.", "Name a masked language model, such as BERT.")

    def word_probability(
        self, places: Sequence[tuple[str, str, str]], tick: ShareDone = lambda share: None
    ) -> np.ndarray:
        """(n,) probability of each word at its place; places: (text before, word, text after).

        A word of several pieces has as many masks, and the geometric mean of its pieces' probabilities.
        """
        pieces = [self._pieces(before, word) for before, word, _ in places]
        asked: dict[str, list[int]] = {}  # masked text -> the places that ask about it
        for place, (before, _, after) in enumerate(places):
            mask = " ".join([self.tokenizer.mask_token] * len(pieces[place]))
            asked.setdefault(f"{before}{mask}{after}", []).append(place)
        texts = sorted(asked, key=len)
        found = np.full(len(places), np.nan)
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            for text, logs in zip(batch, self._at_masks(batch), strict=True):
                for place in asked[text]:
                    own = logs[range(len(logs)), pieces[place][: len(logs)]]
                    found[place] = float(own.mean().exp()) if len(logs) else np.nan
            tick(min(1.0, (start + BATCH) / len(texts)))
        return found

    def _pieces(self, before: str, word: str) -> list[int]:
        spaced = f" {word}" if before.endswith(" ") else word
        return self.tokenizer(spaced, add_special_tokens=False)["input_ids"]

    @torch.inference_mode()
    def _at_masks(self, texts: list[str]) -> list[torch.Tensor]:
        """For each text the (masks, V) log probabilities at its masks, in their order."""
        read = self.tokenizer(texts, padding=True, truncation=True, max_length=LONGEST, return_tensors="pt")
        ids = read["input_ids"].to(self.device)
        given = {name: value.to(self.device) for name, value in read.items()}
        logits = self.model(**given).logits.float()  # (B, T, V)
        masks = ids == self.tokenizer.mask_token_id
        return [logits[row, masks[row]].log_softmax(dim=-1).cpu() for row in range(len(texts))]
