"""Frozen pretrained encoders with a head; networks/pretrained.py trains them. A further encoder is one entry."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from capbias_core.attackers.base import INTEGRATED_GRADIENTS, Attacker, AttackerEntry, Seconds, Setup
from capbias_core.language.files import MINILM

# Where pretrained encoders are on the Hugging Face hub; none is fetched.
SENTENCES = "sentence-transformers/"
BERT = "bert-base-uncased"
PACKAGES = ("torch", "transformers", "sentence_transformers")
# Of frozen encoders of twelve layers of 768 and of six, by their size beside MiniLM's, which was measured.
BASE, HALF = Seconds(2.3, 770.0), Seconds(1.3, 390.0)

PRETRAINED = partial(AttackerEntry, attends=True, packages=PACKAGES, attribution=INTEGRATED_GRADIENTS)


def _sentence_head(setup: Setup) -> Attacker:
    """DBAC's: an MLP on the encoder's sentence embedding."""
    from capbias_core.attackers.networks.pretrained import FrozenAttacker

    return FrozenAttacker(device=setup.device, **located(setup))


def _class_token_head(setup: Setup, normalised: bool = False) -> Attacker:
    """LIC's: two layers on the state of the class token. normalised: as in the age study."""
    from capbias_core.attackers.networks.pretrained import BERT_PRE, NORMALISED, FrozenAttacker

    return FrozenAttacker(device=setup.device, **located(setup), **BERT_PRE, **(NORMALISED if normalised else {}))


def located(setup: Setup) -> dict[str, Any]:
    """The files of an encoder as fields of its attacker."""
    return {"path": setup.files.path, "digest": setup.files.digest, "cache": setup.cache}


def frozen_entry(model: str) -> AttackerEntry:
    """The entry of an encoder that has none: a folder, or a name on the Hugging Face hub."""
    shown = Path(model.rstrip("/")).name or model
    return PRETRAINED(shown, f"{shown}, frozen", _sentence_head, BASE, model=model)


ENTRIES = (
    PRETRAINED(
        "minilm", "MiniLM-L6-v2, frozen (the DBAC paper's)", _sentence_head, Seconds(0.4, 100.0), model=MINILM, place=8
    ),
    PRETRAINED(
        "mpnet",
        "MPNet, frozen (the DBAC paper's)",
        _sentence_head,
        BASE,
        model=f"{SENTENCES}all-mpnet-base-v2",
        place=9,
    ),
    PRETRAINED(
        "distilroberta",
        "DistilRoBERTa, frozen (the DBAC paper's)",
        _sentence_head,
        HALF,
        model=f"{SENTENCES}all-distilroberta-v1",
        place=10,
    ),
    PRETRAINED(
        "distilbert",
        "DistilBERT, frozen (the DBAC paper's)",
        _sentence_head,
        HALF,
        model="distilbert-base-uncased",
        place=11,
    ),
    PRETRAINED(
        "bert_pre", "BERT, frozen (the LIC paper's)", _class_token_head, BASE, model=BERT, place=12, lic_paper=True
    ),
    PRETRAINED(
        "bert_pre_bn",
        "BERT, frozen, batch normalisation and AdamW (the age study's)",
        partial(_class_token_head, normalised=True),
        BASE,
        model=BERT,
        place=14,
    ),
)
