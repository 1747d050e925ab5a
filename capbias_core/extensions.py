"""Measures, attackers and file formats from outside this package."""

from __future__ import annotations

from capbias_core import attackers
from capbias_core.attackers.base import AttackerEntry
from capbias_core.errors import CapbiasError
from capbias_core.load import formats
from capbias_core.load.formats import Format
from capbias_core.measures import registry
from capbias_core.measures.base import Measure


def register(*parts: Measure | AttackerEntry | Format) -> None:
    """Add measures, attackers or file formats to those of capbias, in this process.

    A package that makes this call in the module of its entry point (group `capbias`) adds them in every process.
    Raises CapbiasError for a name that is taken.
    """
    for part in parts:
        if isinstance(part, Measure):
            registry.add(part)
        elif isinstance(part, AttackerEntry):
            attackers.add(part)
        elif isinstance(part, Format):
            formats.add(part)
        else:
            raise CapbiasError(
                f"A {type(part).__name__} cannot be registered.", "Give a Measure, an entry or a Format."
            )
