"""Models that score texts, from folders, on the GPU if there is one. Each raises CapbiasError for another folder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from capbias_core.errors import CapbiasError
from capbias_core.language.device import AUTO, choose_device
from capbias_core.language.files import cut_note, loading
from capbias_core.types import ShareDone

BATCH = 64
LONGEST = 512  # tokens; the rest of a longer text is not read


def _load(what: str, path: str, kind: str):
    """Tokenizer, model and device. kind: the class of transformers that makes the model."""
    import transformers

    local = {"local_files_only": True, "trust_remote_code": False}  # no code of the folder runs
    with loading(what, path):
        tokenizer = transformers.AutoTokenizer.from_pretrained(path, **local)
        model = getattr(transformers, kind).from_pretrained(path, **local)
    device = choose_device(AUTO)
    return tokenizer, model.to(device).eval(), device


class CausalModel:
    """How likely a causal language model finds a text."""

    def __init__(self, path: str):
        self.tokenizer, self.model, self.device = _load("a causal language model", path, "AutoModelForCausalLM")
        self.longest = min(LONGEST, getattr(self.model.config, "max_position_embeddings", LONGEST) or LONGEST)

    def mean_token_probability(self, texts: Sequence[str], tick: ShareDone = lambda share: None) -> np.ndarray:
        """(n,) mean over the tokens of each text of their probability given those before, in [0, 1].

        The first token only counts if the tokenizer has a token for the beginning of a text. nan if no token counts.
        tick: called with the share done.
        """
        begin = self.tokenizer.bos_token_id
        ids = [
            ([] if begin is None else [begin])
            + self.tokenizer(text, add_special_tokens=False)["input_ids"][: self.longest - 1]
            for text in texts
        ]
        order = sorted(range(len(ids)), key=lambda row: len(ids[row]))  # alike in length: little padding
        probability = np.full(len(ids), np.nan)
        for start in range(0, len(order), BATCH):
            members = order[start : start + BATCH]
            probability[members] = self._batch([ids[row] for row in members])
            tick(min(1.0, (start + BATCH) / len(order)))
        return probability

    def cut(self, texts: Sequence[str]) -> list[str]:
        """A note if texts are longer than what is read of them."""
        return cut_note(self.tokenizer, texts, self.longest - 1, "the language model")

    @torch.inference_mode()
    def _batch(self, ids: list[list[int]]) -> np.ndarray:
        tokens = torch.zeros((len(ids), max(2, max(map(len, ids)))), dtype=torch.long)  # (B, T)
        mask = torch.zeros_like(tokens)
        for row, text in enumerate(ids):
            tokens[row, : len(text)] = torch.tensor(text, dtype=torch.long)
            mask[row, : len(text)] = 1
        tokens, mask = tokens.to(self.device), mask.to(self.device)
        logits = self.model(input_ids=tokens, attention_mask=mask).logits[:, :-1].float()  # (B, T - 1, V)
        next_token = logits.gather(2, tokens[:, 1:, None])[..., 0]
        shares = (next_token - logits.logsumexp(dim=2)).exp() * mask[:, 1:]  # (B, T - 1)
        return (shares.sum(dim=1) / mask[:, 1:].sum(dim=1)).cpu().double().numpy()


class MaskedModel:
    """How likely a masked language model finds a word in a context."""

    def __init__(self, path: str):
        self.tokenizer, self.model, self.device = _load("a masked language model", path, "AutoModelForMaskedLM")
        if self.tokenizer.mask_token_id is None:
            raise CapbiasError(f"The tokenizer of {path!r} has no mask.", "Name a masked language model, such as BERT.")

    def word_probability(
        self, contexts: Sequence[tuple[str, str, str]], tick: ShareDone = lambda share: None
    ) -> np.ndarray:
        """(n,) probability of each word in its context (text before, word, text after). A word of several pieces has as
        many masks, and the geometric mean of their probabilities."""
        pieces = [
            self.tokenizer(f" {word}" if before.endswith(" ") else word, add_special_tokens=False)["input_ids"]
            for before, word, _ in contexts
        ]
        asked: dict[str, list[int]] = {}  # masked text -> the contexts that ask about it
        for row, (before, _, after) in enumerate(contexts):
            mask = " ".join([self.tokenizer.mask_token] * len(pieces[row]))
            asked.setdefault(f"{before}{mask}{after}", []).append(row)
        texts = sorted(asked, key=len)
        probability = np.full(len(contexts), np.nan)
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            for text, logs in zip(batch, self._at_masks(batch), strict=True):
                for row in asked[text]:
                    at_pieces = logs[range(len(logs)), pieces[row][: len(logs)]]
                    probability[row] = float(at_pieces.mean().exp()) if len(logs) else np.nan
            tick(min(1.0, (start + BATCH) / len(texts)))
        return probability

    @torch.inference_mode()
    def _at_masks(self, texts: list[str]) -> list[torch.Tensor]:
        """For each text the (masks, V) log probabilities at its masks, in their order."""
        read = self.tokenizer(texts, padding=True, truncation=True, max_length=LONGEST, return_tensors="pt")
        ids = read["input_ids"].to(self.device)
        logits = self.model(**{name: value.to(self.device) for name, value in read.items()}).logits.float()  # (B, T, V)
        masks = ids == self.tokenizer.mask_token_id
        return [logits[row, masks[row]].log_softmax(dim=-1).cpu() for row in range(len(texts))]
