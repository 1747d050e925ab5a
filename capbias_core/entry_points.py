"""Modules of installed packages that add to capbias: they call `capbias.register` when they are imported."""

from __future__ import annotations

import warnings
from importlib.metadata import entry_points

_loaded = False


def load_entry_points() -> None:
    """Import these modules, once per process. One that fails is a warning."""
    global _loaded
    if _loaded:
        return
    _loaded = True  # the modules themselves import what calls this
    for entry in entry_points(group="capbias"):
        try:
            entry.load()
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            warnings.warn(f"capbias does without {entry.value}, which cannot be loaded ({why}).", stacklevel=2)
