"""Recurrent attackers of the papers, LSTM and RNN, one way and both ways; the networks are in networks/scratch.py."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from capbias_core.attackers.base import INTEGRATED_GRADIENTS, Attacker, AttackerEntry, Seconds, Setup

NETWORK = partial(AttackerEntry, from_scratch=True, packages=("torch",), attribution=INTEGRATED_GRADIENTS, version=1)


def _entry(name: str, title: str, seconds: Seconds, place: int, lic_paper: bool = False) -> AttackerEntry:
    def make(setup: Setup) -> Attacker:
        from capbias_core.attackers.networks.scratch import LSTM_BI, RecurrentAttacker

        unit, _, both = name.partition("_")
        attacker = LSTM_BI if lic_paper else RecurrentAttacker(unit=unit, ways=2 if both else 1)
        return replace(attacker, device=setup.device)

    return NETWORK(name, title, make, seconds, place=place, lic_paper=lic_paper)


ENTRIES = (
    _entry("lstm_bi", "bidirectional LSTM (the LIC paper's)", Seconds(12.5, 85.0), 2, lic_paper=True),
    _entry("lstm", "one-way LSTM (the DBAC paper's)", Seconds(2.2, 20.0), 3),
    _entry("rnn", "one-way RNN (the DBAC paper's)", Seconds(1.0, 9.0), 4),
    _entry("rnn_bi", "bidirectional RNN (the DBAC paper's)", Seconds(2.0, 18.0), 5),
)
