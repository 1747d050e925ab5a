"""Recurrent attackers of the papers, LSTM and RNN, one way and both ways; the networks are in networks/recurrent.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from capbias_core.attackers.base import INTEGRATED_GRADIENTS, Attacker, AttackerEntry, Seconds, Setup

NETWORK = partial(
    AttackerEntry, from_scratch=True, one_seed_per_thread=True, packages=("torch",), attribution=INTEGRATED_GRADIENTS
)


def _made(name: str) -> Callable[[Setup], Attacker]:
    """name: of a function in networks/recurrent.py."""

    def make(setup: Setup) -> Attacker:
        from capbias_core.attackers.networks import recurrent

        return replace(getattr(recurrent, name)(), device=setup.device)

    return make


def _entry(name: str, title: str, seconds: Seconds, place: int, lic_paper: bool = False) -> AttackerEntry:
    return NETWORK(name, title, _made(name), seconds, place=place, lic_paper=lic_paper)


ENTRIES = (
    _entry("lstm_bi", "bidirectional LSTM (the LIC paper's)", Seconds(250.0, 30.0), 2, lic_paper=True),
    _entry("lstm", "one-way LSTM (the DBAC paper's)", Seconds(45.0, 12.0), 3),
    _entry("rnn", "one-way RNN (the DBAC paper's)", Seconds(20.0, 5.0), 4),
    _entry("rnn_bi", "bidirectional RNN (the DBAC paper's)", Seconds(40.0, 10.0), 5),
)
