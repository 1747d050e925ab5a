"""BERT-ft of the LIC paper, trained as a whole; how is in networks/fine_tuned.py."""

from __future__ import annotations

from capbias_core.attackers.base import Attacker, Seconds, Setup
from capbias_core.attackers.frozen import BERT, PRETRAINED


def _fine_tuned(setup: Setup) -> Attacker:
    from capbias_core.attackers.networks.fine_tuned import FineTunedAttacker

    return FineTunedAttacker(setup.files.path, setup.files.digest, setup.cache, device=setup.device)


ENTRIES = (
    PRETRAINED(
        "bert_ft",
        "BERT, fine-tuned (the LIC paper's)",
        _fine_tuned,
        Seconds(300.0, 2250.0),
        model=BERT,
        place=13,
        lic_paper=True,
    ),
)
