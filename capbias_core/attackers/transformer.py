"""Transformers trained from scratch, with 1 head and with 5; the networks are in networks/scratch.py."""

from __future__ import annotations

from functools import partial

from capbias_core.attackers.base import INTEGRATED_GRADIENTS, Attacker, AttackerEntry, Seconds, Setup

NETWORK = partial(
    AttackerEntry, from_scratch=True, attends=True, packages=("torch",), attribution=INTEGRATED_GRADIENTS, version=1
)


def _entry(heads: int, title: str, seconds: Seconds, place: int) -> AttackerEntry:
    def make(setup: Setup) -> Attacker:
        from capbias_core.attackers.networks.scratch import TransformerAttacker

        return TransformerAttacker(heads=heads, device=setup.device)

    return NETWORK(f"transformer_{heads}h", title, make, seconds, place=place)


ENTRIES = (
    _entry(1, "Transformer, 1 head (the DBAC paper's)", Seconds(1.0, 10.0), 6),
    _entry(5, "Transformer, 5 heads (the DBAC paper's)", Seconds(1.0, 10.0), 7),
)
