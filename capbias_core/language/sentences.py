"""A sentence encoder: texts to vectors whose cosine says how close they are in meaning."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from capbias_core.language.files import cut_note, loading
from capbias_core.types import ShareDone

BATCH = 64
TEXTS_A_TICK = 512


class SentenceEncoder:
    """A sentence encoder of a folder: of sentence-transformers, or any of transformers (mean of its tokens).

    On the GPU where there is one. Raises CapbiasError where it is none.
    """

    def __init__(self, path: str):
        with loading("a sentence encoder", path):
            from sentence_transformers import SentenceTransformer

            self.model = SentenceTransformer(path, local_files_only=True, trust_remote_code=False)

    def cut(self, texts: Sequence[str]) -> list[str]:
        """A note where texts are longer than what is read of them."""
        own = self.model.tokenizer
        longest = (self.model.max_seq_length or own.model_max_length) - own.num_special_tokens_to_add()
        return cut_note(own, texts, longest, "the sentence encoder")

    def encode(self, texts: Sequence[str], tick: ShareDone = lambda share: None) -> np.ndarray:
        """(n, d) vectors of length 1, each distinct text read once. tick: called with the share done."""
        distinct = sorted(set(texts), key=len)
        parts = []
        for start in range(0, len(distinct), TEXTS_A_TICK):
            part = distinct[start : start + TEXTS_A_TICK]
            parts.append(self.model.encode(part, batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False))
            tick(min(1.0, (start + TEXTS_A_TICK) / len(distinct)))
        place = {text: row for row, text in enumerate(distinct)}
        return np.concatenate(parts)[[place[text] for text in texts]]
