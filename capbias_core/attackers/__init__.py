"""Attackers: an encoder plus a head that guesses the protected attribute from a masked caption.

To add one, write its file and name it in `ATTACKERS`. A class is imported where it is used, so that the web
server's process never imports torch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module

from capbias_core.attackers.base import Attacker
from capbias_core.errors import unknown_name


@dataclass(frozen=True)
class AttackerEntry:
    """What is known about an attacker without importing it. seconds_a_fit: rough, two cores, 6,000 captions."""

    name: str
    title: str
    location: str
    in_process: bool
    folds: int
    seconds_a_fit: float


ATTACKERS = {
    entry.name: entry
    for entry in (
        AttackerEntry("ngram", "linear, 1- and 2-grams (preview)", "ngram:NgramAttacker", True, 10, 0.1),
        AttackerEntry("lstm_bi", "bidirectional LSTM (the LIC paper's)", "recurrent:lstm_bi", False, 5, 150.0),
        AttackerEntry("lstm", "one-way LSTM (the DBAC paper's)", "recurrent:lstm", False, 5, 40.0),
        AttackerEntry("rnn", "one-way RNN (the DBAC paper's)", "recurrent:rnn", False, 5, 20.0),
        AttackerEntry("rnn_bi", "bidirectional RNN (the DBAC paper's)", "recurrent:rnn_bi", False, 5, 40.0),
        AttackerEntry(
            "transformer_1h", "Transformer, 1 head (the DBAC paper's)", "transformer:one_head", False, 5, 20.0
        ),
        AttackerEntry(
            "transformer_5h", "Transformer, 5 heads (the DBAC paper's)", "transformer:five_heads", False, 5, 20.0
        ),
    )
}


def attacker_entry(name: str) -> AttackerEntry:
    """The table row of an attacker. Raises CapbiasError for an unknown name."""
    if name not in ATTACKERS:
        raise unknown_name("attacker", name, ATTACKERS)
    return ATTACKERS[name]


def load_attacker(name: str, device: str = "auto") -> Attacker:
    """The attacker itself; for the ones with torch this imports torch. device: where those train (see device.py)."""
    module, _, cls = attacker_entry(name).location.partition(":")
    attacker = getattr(import_module(f"capbias_core.attackers.{module}"), cls)()
    return replace(attacker, device=device) if hasattr(attacker, "device") else attacker
