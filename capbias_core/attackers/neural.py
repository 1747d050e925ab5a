"""Attackers of the papers that need PyTorch: networks from scratch, and pretrained encoders, frozen or fine-tuned.

The networks are in networks/scratch.py and networks/pretrained.py. A further encoder is one entry.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from capbias_core.attackers.base import INTEGRATED_GRADIENTS, Attacker, AttackerEntry, Seconds, Setup
from capbias_core.language.files import MINILM

# Names of pretrained encoders on the Hugging Face hub; none is fetched.
SENTENCES = "sentence-transformers/"
BERT = "bert-base-uncased"
PACKAGES = ("torch", "transformers", "sentence_transformers")
# Of frozen encoders of twelve layers of 768 and of six, by their size beside MiniLM's, which was measured.
BASE, HALF = Seconds(2.3, 770.0), Seconds(1.3, 390.0)

SCRATCH = partial(AttackerEntry, from_scratch=True, packages=("torch",), attribution=INTEGRATED_GRADIENTS, version=1)
PRETRAINED = partial(AttackerEntry, attends=True, packages=PACKAGES, attribution=INTEGRATED_GRADIENTS)


def _scratch(setup: Setup, kind: str, **settings: Any) -> Attacker:
    from capbias_core.attackers.networks import scratch

    kinds: dict[str, Any] = {
        "lstm_bi": scratch.LSTM_BI,
        "recurrent": scratch.RecurrentAttacker(),
        "transformer": scratch.TransformerAttacker(),
    }
    return replace(kinds[kind], device=setup.device, **settings)


def _pretrained(setup: Setup, head: str = "DBAC", normalised: bool = False) -> Attacker:
    """head: DBAC, an MLP on the sentence embedding; BERT_PRE, LIC's two layers on the state of the class token; or
    BERT_FT, the same with the encoder fine-tuned. normalised: as in the age study."""
    from capbias_core.attackers.networks import pretrained

    kind = pretrained.FineTunedAttacker if head == "BERT_FT" else pretrained.FrozenAttacker
    settings: dict[str, Any] = {} if head == "DBAC" else getattr(pretrained, head)
    assert setup.model is not None  # an entry that names a model gets its files
    files = {"path": setup.model.path, "digest": setup.model.digest, "cache": setup.cache}
    return kind(device=setup.device, **files, **settings, **(pretrained.NORMALISED if normalised else {}))


def frozen_entry(model: str) -> AttackerEntry:
    """The entry of an encoder that has none: a folder, or a name on the Hugging Face hub."""
    shown = Path(model.rstrip("/")).name or model
    return PRETRAINED(shown, f"{shown}, frozen", _pretrained, BASE, model=model)


LIC, DBAC, AGE = "(the LIC paper's)", "(the DBAC paper's)", "batch normalisation and AdamW (the age study's)"
TUNED = Seconds(300.0, 2250.0)
pre, tuned = partial(_pretrained, head="BERT_PRE"), partial(_pretrained, head="BERT_FT")
LSTM_BI, LSTM = partial(_scratch, kind="lstm_bi"), partial(_scratch, kind="recurrent", unit="lstm")
RNN, RNN_BI = (partial(_scratch, kind="recurrent", unit="rnn", ways=ways) for ways in (1, 2))
ONE_HEAD, FIVE_HEADS = (partial(_scratch, kind="transformer", heads=heads) for heads in (1, 5))
MPNET, ROBERTA = f"{SENTENCES}all-mpnet-base-v2", f"{SENTENCES}all-distilroberta-v1"

ENTRIES = (
    SCRATCH("lstm_bi", f"bidirectional LSTM {LIC}", LSTM_BI, Seconds(12.5, 85.0), place=2, lic_paper=True),
    SCRATCH("lstm", f"one-way LSTM {DBAC}", LSTM, Seconds(2.2, 20.0), place=3),
    SCRATCH("rnn", f"one-way RNN {DBAC}", RNN, Seconds(1.0, 9.0), place=4),
    SCRATCH("rnn_bi", f"bidirectional RNN {DBAC}", RNN_BI, Seconds(2.0, 18.0), place=5),
    SCRATCH("transformer_1h", f"Transformer, 1 head {DBAC}", ONE_HEAD, Seconds(1.0, 10.0), place=6, attends=True),
    SCRATCH("transformer_5h", f"Transformer, 5 heads {DBAC}", FIVE_HEADS, Seconds(1.0, 10.0), place=7, attends=True),
    PRETRAINED("minilm", f"MiniLM-L6-v2, frozen {DBAC}", _pretrained, Seconds(0.4, 100.0), model=MINILM, place=8),
    PRETRAINED("mpnet", f"MPNet, frozen {DBAC}", _pretrained, BASE, model=MPNET, place=9),
    PRETRAINED("distilroberta", f"DistilRoBERTa, frozen {DBAC}", _pretrained, HALF, model=ROBERTA, place=10),
    PRETRAINED(
        "distilbert", f"DistilBERT, frozen {DBAC}", _pretrained, HALF, model="distilbert-base-uncased", place=11
    ),
    PRETRAINED("bert_pre", f"BERT, frozen {LIC}", pre, BASE, model=BERT, place=12, lic_paper=True),
    PRETRAINED("bert_ft", f"BERT, fine-tuned {LIC}", tuned, TUNED, model=BERT, place=13, lic_paper=True, version=1),
    PRETRAINED("bert_pre_bn", f"BERT, frozen, {AGE}", partial(pre, normalised=True), BASE, model=BERT, place=14),
    PRETRAINED("bert_ft_bn", f"BERT, fine-tuned, {AGE}", partial(tuned, normalised=True), TUNED, model=BERT, place=15),
)
