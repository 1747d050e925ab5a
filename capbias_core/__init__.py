"""Measures societal bias in image captions: captions in, scores and the words behind them out.

    import capbias_core as capbias

    report = capbias.score(captions="sat.json", labels="attributes.csv", attribute="gender", metrics=["lic"])
    capbias.compare({"sat": "sat.json", "updn": "updn.json"}, labels="attributes.csv", attribute="gender")
    capbias.metrics.lic(probabilities, labels)
    capbias.register(MEASURE)

An input that cannot be scored raises `capbias.CapbiasError`: what was got, what was expected, and what to do.
These names are imported when they are first used, so that `import capbias_core` itself is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capbias_core import metrics
    from capbias_core.api import compare, score
    from capbias_core.errors import CapbiasError
    from capbias_core.extensions import register

__version__ = "0.1.0"
__all__ = ["CapbiasError", "__version__", "compare", "metrics", "register", "score"]


def __getattr__(name: str):
    if name in ("compare", "score"):
        return getattr(import_module("capbias_core.api"), name)
    if name == "CapbiasError":
        return import_module("capbias_core.errors").CapbiasError
    if name == "register":
        import_module("capbias_core.measures.registry")  # loads packages, which call it themselves
        return import_module("capbias_core.extensions").register
    if name == "metrics":
        return import_module("capbias_core.metrics")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
