"""A pretrained text encoder: captions to one vector each, with gradients to their words and attention between them.

A mask such as `<gender>` is read as the encoder's mask token, `<unk>` as its unknown token (as the other one if it has
only one, as written if it has neither). No token is added: a frozen encoder never learned its meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from capbias_core.language.device import AUTO, choose_device
from capbias_core.language.files import cut_note, loading
from capbias_core.types import UNKNOWN_TOKEN, Attention, ShareDone

BATCH = 64
# Pooling of tokens into one vector: as the model's folder says (else the mean), or the first token's state.
OWN, FIRST = "own", "first"
MASK = re.compile(r"<\w+>")


class TextEncoder:
    """A model of sentence-transformers or transformers, from a folder; raises CapbiasError for another folder. pooling:
    OWN or FIRST. No prompt is added; longer texts than the model reads are cut."""

    def __init__(self, path: str, pooling: str = OWN, device: str = "cpu"):
        self.device = torch.device(device)
        with loading("a text encoder", path):
            from sentence_transformers import SentenceTransformer
            from sentence_transformers.sentence_transformer.modules import Pooling

            model = SentenceTransformer(path, local_files_only=True, trust_remote_code=False, device="cpu")
            first: Any = model[0]
            if not callable(getattr(first.auto_model, "get_input_embeddings", None)):
                raise ValueError("it has no transformer that reads text")
            if not getattr(model.tokenizer, "is_fast", False):
                raise ValueError("its tokenizer does not say where its tokens stand in a text")
            if pooling == FIRST:
                width = first.get_embedding_dimension()
                model = SentenceTransformer(modules=[first, Pooling(width, pooling_mode="cls")], device="cpu")
        self.model = model.to(self.device).eval()
        self.tokenizer = tokenizer = self.model.tokenizer
        self.longest = self.model.max_seq_length or tokenizer.model_max_length
        self.mask = tokenizer.mask_token or tokenizer.unk_token
        self.unknown = tokenizer.unk_token or tokenizer.mask_token
        # For a text without tokens and for a word that is left out: the mask, or the closest there is.
        closest = (tokenizer.mask_token_id, tokenizer.pad_token_id, tokenizer.unk_token_id, tokenizer.eos_token_id, 0)
        self.blank = next(token for token in closest if token is not None)

    @property
    def transformer(self) -> Any:
        return self.model[0].auto_model

    @property
    def width(self) -> int:
        return self.model.get_embedding_dimension() or 0

    def read(self, caption: str) -> str:
        """The text that this encoder reads for a masked caption, word by word: BERT reads `[MASK]` for `<gender>`."""

        def word(text: str) -> str:
            if text == UNKNOWN_TOKEN:
                return self.unknown or text
            return self.mask or text if MASK.fullmatch(text) else text

        return " ".join(map(word, caption.split()))

    def ids(self, texts: Sequence[str]) -> list[np.ndarray]:
        """For each text its token ids (T,), with the special tokens around them; at least one."""
        if not len(texts):
            return []
        ids = self.tokenizer(list(texts), truncation=True, max_length=self.longest)["input_ids"]
        return [np.array(tokens or [self.blank], dtype=np.int64) for tokens in ids]

    def cut(self, texts: Sequence[str]) -> list[str]:
        """A note if texts are longer than what is read of them."""
        longest = self.longest - self.tokenizer.num_special_tokens_to_add()
        return cut_note(self.tokenizer, texts, longest, "the encoder")

    def words_of(self, text: str) -> np.ndarray:
        """(T,) the index of the word of `text` that each token of `ids` belongs to, -1 for special tokens."""
        read = self.tokenizer(text, truncation=True, max_length=self.longest, return_offsets_mapping=True)
        ends = [end if end > start else 0 for start, end in read["offset_mapping"]]
        return np.array([text.count(" ", 0, end) if end else -1 for end in ends] or [-1])

    def pooled(self, ids: Tensor) -> Tensor:
        """(B, T) ids of texts of one length to (B, d) vectors, with gradients if they are switched on."""
        return self.model({"input_ids": ids, "attention_mask": torch.ones_like(ids)})["sentence_embedding"]

    @torch.no_grad()
    def embed(self, texts: Sequence[str], tick: ShareDone = lambda share: None) -> np.ndarray:
        """(n, d) float32 vectors. Texts of one length go together, so that nothing is padded. tick: called with the
        share done."""
        vectors, done = np.zeros((len(texts), self.width), dtype=np.float32), 0
        ids = self.ids(texts)
        for members in of_one_length(list(map(len, ids)), BATCH):
            tokens = torch.from_numpy(np.stack([ids[member] for member in members])).to(self.device)  # (B, T)
            vectors[members] = self.pooled(tokens).float().cpu().numpy()
            done += len(members)
            tick(done / len(texts))
        return vectors

    @torch.no_grad()
    def attention(self, text: str) -> Attention:
        """The attention between words and special tokens, in each layer and head. The weight to a word is the sum over
        its tokens, the weight from it their mean, so each row still sums to 1."""
        ids, words, network = self.ids([text])[0], self.words_of(text), self.transformer
        tokens, before = torch.from_numpy(ids[None]).to(self.device), network.config._attn_implementation
        network.set_attn_implementation("eager")  # only the plain implementation gives the weights
        try:
            read = network(input_ids=tokens, attention_mask=torch.ones_like(tokens), output_attentions=True)
        finally:
            network.set_attn_implementation(before)
        weights = torch.cat(read.attentions).double().cpu().numpy()  # (layers, heads, T, T)
        names, unit, last = [], [], None  # words and special tokens; the index (T,) of each token among them
        for token, word in zip(self.tokenizer.convert_ids_to_tokens(ids.tolist()), words, strict=True):
            if word < 0 or word != last:
                names.append(token if word < 0 else text.split(" ")[word])
            unit.append(len(names) - 1)
            last = word
        to = np.eye(len(names))[unit]  # (T, W), the word of each token
        return Attention(tuple(names), (to / to.sum(axis=0)).T @ weights @ to)


def text_encoder(path: str, pooling: str = OWN, device: str = AUTO) -> TextEncoder:
    """The encoder of a folder, loaded once; only the last one stays in memory."""
    return _loaded(path, pooling, choose_device(device).type)


_loaded = lru_cache(maxsize=1)(TextEncoder)


def of_one_length(lengths: Sequence[int] | np.ndarray, most: int) -> Iterator[np.ndarray]:
    """Rows of texts with equally many tokens, at most so many at a time, short ones first."""
    lengths = np.asarray(lengths, dtype=int)
    for length in np.unique(lengths):
        members = np.flatnonzero(lengths == length)
        yield from np.split(members, np.arange(most, len(members), most))
