"""Attackers of the papers that need PyTorch: networks from scratch, and pretrained encoders, frozen or fine-tuned.

The networks are in networks/scratch.py and networks/pretrained.py. A further encoder is one entry.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from capbias_core.attackers.base import Attacker, AttackerEntry, Seconds, Setup
from capbias_core.language.files import MINILM


def _scratch(setup: Setup, unit: str, **settings: Any) -> Attacker:
    from capbias_core.attackers.networks import scratch

    made = {"lstm_bi": scratch.LSTM_BI, "transformer": scratch.TransformerAttacker()}
    attacker = made.get(unit) or scratch.RecurrentAttacker(unit=unit)
    return replace(attacker, device=setup.device, **settings)


def _pretrained(setup: Setup, tuned: bool = False, **settings: Any) -> Attacker:
    from capbias_core.attackers.networks.pretrained import FineTunedAttacker, FrozenAttacker

    assert setup.model is not None  # an entry that names a model gets its files
    kind = FineTunedAttacker if tuned else FrozenAttacker
    return kind(path=setup.model.path, digest=setup.model.digest, device=setup.device, cache=setup.cache, **settings)


# Names of pretrained encoders on the Hugging Face hub; none is downloaded.
SENTENCES = "sentence-transformers/"
MPNET, ROBERTA = f"{SENTENCES}all-mpnet-base-v2", f"{SENTENCES}all-distilroberta-v1"
BERT, DISTILBERT = "bert-base-uncased", "distilbert-base-uncased"
PACKAGES = ("torch", "transformers", "sentence_transformers")
# Frozen encoders of twelve layers of 768 and of six, by their size compared with MiniLM, which was measured.
BASE, HALF, TUNED = Seconds(2.3, 770.0), Seconds(1.3, 390.0), Seconds(300.0, 2250.0)
# LIC's BERT attackers (batches of 64, no early stopping), and what Baratov et al. change in them.
LIC_HEAD = {"pooling": "first", "hidden": (256,), "leak": 0.01, "batch": 64, "patience": 0}
BERT_PRE = LIC_HEAD | {"learning_rate": 5e-5, "epochs": 20}
BERT_FT = LIC_HEAD | {"learning_rate": 1e-5, "epochs": 5}
NORMALISED = {"norm": True, "optimizer": "AdamW"}

INTEGRATED_GRADIENTS = "integrated gradients (Captum)"  # how networks attribute a logit to words
SCRATCH = partial(AttackerEntry, from_scratch=True, packages=("torch",), attribution=INTEGRATED_GRADIENTS, version=1)
PRETRAINED = partial(AttackerEntry, attends=True, packages=PACKAGES, attribution=INTEGRATED_GRADIENTS)
LIC, DBAC, AGE = "(the LIC paper's)", "(the DBAC paper's)", "batch normalisation and AdamW (the age study's)"


def frozen_entry(model: str) -> AttackerEntry:
    """The entry of an encoder that has none: a folder, or a name on the Hugging Face hub."""
    shown = Path(model.rstrip("/")).name or model
    return PRETRAINED(shown, f"{shown}, frozen", _pretrained, BASE, model=model)


LSTM_BI, LSTM, RNN = (partial(_scratch, unit=unit) for unit in ("lstm_bi", "lstm", "rnn"))
RNN_BI = partial(_scratch, unit="rnn", ways=2)
ONE_HEAD, FIVE_HEADS = (partial(_scratch, unit="transformer", heads=heads) for heads in (1, 5))
PRE, PRE_BN = (partial(_pretrained, **BERT_PRE, **more) for more in ({}, NORMALISED))
FT, FT_BN = (partial(_pretrained, tuned=True, **BERT_FT, **more) for more in ({}, NORMALISED))

ENTRIES = (
    SCRATCH("lstm_bi", f"bidirectional LSTM {LIC}", LSTM_BI, Seconds(25.0, 85.0), lic_paper=True),
    SCRATCH("lstm", f"one-way LSTM {DBAC}", LSTM, Seconds(4.4, 20.0)),
    SCRATCH("rnn", f"one-way RNN {DBAC}", RNN, Seconds(2.0, 9.0)),
    SCRATCH("rnn_bi", f"bidirectional RNN {DBAC}", RNN_BI, Seconds(4.0, 18.0)),
    SCRATCH("transformer_1h", f"Transformer, 1 head {DBAC}", ONE_HEAD, Seconds(2.0, 10.0), attends=True),
    SCRATCH("transformer_5h", f"Transformer, 5 heads {DBAC}", FIVE_HEADS, Seconds(2.0, 10.0), attends=True),
    PRETRAINED("minilm", f"MiniLM-L6-v2, frozen {DBAC}", _pretrained, Seconds(0.4, 100.0), model=MINILM),
    PRETRAINED("mpnet", f"MPNet, frozen {DBAC}", _pretrained, BASE, model=MPNET),
    PRETRAINED("distilroberta", f"DistilRoBERTa, frozen {DBAC}", _pretrained, HALF, model=ROBERTA),
    PRETRAINED("distilbert", f"DistilBERT, frozen {DBAC}", _pretrained, HALF, model=DISTILBERT),
    PRETRAINED("bert_pre", f"BERT, frozen {LIC}", PRE, BASE, model=BERT, lic_paper=True),
    PRETRAINED("bert_ft", f"BERT, fine-tuned {LIC}", FT, TUNED, model=BERT, lic_paper=True, version=1),
    PRETRAINED("bert_pre_bn", f"BERT, frozen, {AGE}", PRE_BN, BASE, model=BERT),
    PRETRAINED("bert_ft_bn", f"BERT, fine-tuned, {AGE}", FT_BN, TUNED, model=BERT),
)
