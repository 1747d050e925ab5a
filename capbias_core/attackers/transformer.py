"""Transformers trained from scratch, with 1 head and with 5; the networks are in networks/transformer.py."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from capbias_core.attackers.base import INTEGRATED_GRADIENTS, Attacker, AttackerEntry, Seconds, Setup

NETWORK = partial(
    AttackerEntry,
    from_scratch=True,
    one_seed_per_thread=True,
    attends=True,
    packages=("torch",),
    attribution=INTEGRATED_GRADIENTS,
)


def _one_head(setup: Setup) -> Attacker:
    from capbias_core.attackers.networks.transformer import one_head

    return replace(one_head(), device=setup.device)


def _five_heads(setup: Setup) -> Attacker:
    from capbias_core.attackers.networks.transformer import five_heads

    return replace(five_heads(), device=setup.device)


ENTRIES = (
    NETWORK("transformer_1h", "Transformer, 1 head (the DBAC paper's)", _one_head, Seconds(20.0, 6.0), place=6),
    NETWORK("transformer_5h", "Transformer, 5 heads (the DBAC paper's)", _five_heads, Seconds(20.0, 6.0), place=7),
)
