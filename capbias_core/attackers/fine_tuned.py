"""BERT-ft of the LIC paper and of the age study, trained as a whole; how is in networks/pretrained.py."""

from __future__ import annotations

from functools import partial

from capbias_core.attackers.base import Attacker, Seconds, Setup
from capbias_core.attackers.frozen import BERT, PRETRAINED, located


def _fine_tuned(setup: Setup, normalised: bool = False) -> Attacker:
    from capbias_core.attackers.networks.pretrained import BERT_FT, NORMALISED, FineTunedAttacker

    return FineTunedAttacker(device=setup.device, **located(setup), **BERT_FT, **(NORMALISED if normalised else {}))


ENTRIES = (
    PRETRAINED(
        "bert_ft",
        "BERT, fine-tuned (the LIC paper's)",
        _fine_tuned,
        Seconds(300.0, 2250.0),
        model=BERT,
        place=13,
        lic_paper=True,
        version=1,
    ),
    PRETRAINED(
        "bert_ft_bn",
        "BERT, fine-tuned, batch normalisation and AdamW (the age study's)",
        partial(_fine_tuned, normalised=True),
        Seconds(300.0, 2250.0),
        model=BERT,
        place=15,
    ),
)
