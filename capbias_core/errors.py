"""What went wrong, what was expected, and what to do about it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from importlib.util import find_spec


class CapbiasError(Exception):
    """One clear message for the user: what was got, what was expected, the remedy.

    Pages show it as it is and the command line prints it and exits with 2; no traceback reaches a user.
    """

    def __init__(self, got: str, expected: str, remedy: str):
        super().__init__(got, expected, remedy)
        self.got, self.expected, self.remedy = got, expected, remedy

    def __str__(self) -> str:
        return f"Got {self.got}. Expected {self.expected}. {self.remedy}"


class Cancelled(Exception):
    """A run was asked to stop; raised at its next progress report."""


class UnknownName(CapbiasError):
    """A name that is in no table; the nearest known one is said before the list of all."""

    def __str__(self) -> str:
        return f"Got {self.got}. {self.remedy} Expected {self.expected}."


def unknown_name(kind: str, name: object, known: Iterable[object]) -> CapbiasError:
    """The error for a name that is in no table, with the nearest names and those that there are.

    >>> print(unknown_name("metric", "lic_m", ["LIC", "LIC_M", "ratio"]))
    Got metric 'lic_m'. Did you mean LIC_M? Expected one of: LIC, LIC_M, ratio.
    >>> print(unknown_name("metric", "zebra", ["LIC", "LIC_M", "ratio"]))
    Got metric 'zebra'. Expected one of: LIC, LIC_M, ratio. Choose a known metric.
    """
    names = sorted(str(item) for item in known)
    expected = f"one of: {', '.join(names) or 'none'}"
    if near := nearest(str(name), names):
        return UnknownName(f"{kind} {name!r}", expected, f"Did you mean {' or '.join(near)}?")
    return CapbiasError(f"{kind} {name!r}", expected, f"Choose a known {kind}.")


def nearest(name: str, known: Iterable[str], most: int = 2) -> list[str]:
    """The known names that a misspelt one is closest to, whatever their case; none if all are far from it.

    >>> nearest("Scroe", ["score", "list", "export"])
    ['score']
    """
    by_lower = {own.lower(): own for own in known}
    found = get_close_matches(name.lower(), by_lower, n=most)
    # A name that differs in case alone needs no second guess.
    return [by_lower[own] for own in found if own == name.lower() or name.lower() not in found]


def taken_twice(kind: str, name: str, where: Iterable[str]) -> CapbiasError:
    """The error for a part of capbias that is called as another one. where: who has the name.

    >>> print(taken_twice("metric", "length", ["colours", "description"]))
    Got the metric 'length' in both colours and description. Expected a name of its own for each. Rename the new one.
    >>> print(taken_twice("metric", "length", ["colours", "colours"]))
    Got the metric 'length' twice in colours. Expected a name of its own for each. Rename the new one.
    """
    places = list(dict.fromkeys(where))
    found = f"twice in {places[0]}" if len(places) == 1 else f"in both {' and '.join(places)}"
    return CapbiasError(f"the {kind} {name!r} {found}", "a name of its own for each", "Rename the new one.")


# Packages that only an extra installs: name in an import -> extra, name for `pip install`. pyproject.toml says why each
# is there.
EXTRAS = {
    "captum": ("train", "captum"),
    "distributed": ("train", "distributed"),
    "huggingface_hub": ("train", "transformers"),
    "psutil": ("train", "psutil"),
    "sentence_transformers": ("train", "sentence-transformers"),
    "torch": ("train", "torch"),
    "transformers": ("train", "transformers"),
    "ai_edge_litert": ("vision", "ai-edge-litert"),
    "PIL": ("vision", "pillow"),
    "pycocoevalcap": ("vision", "pycocoevalcap"),
    "pycocotools": ("vision", "pycocotools"),
    "torchvision": ("vision", "torchvision"),
    "ultralytics": ("vision", "ultralytics"),
    "kaleido": ("app", "kaleido"),
    "plotly": ("app", "plotly"),
    "streamlit": ("app", "streamlit"),
}


class MissingExtra(CapbiasError):
    """A package of an extra is not installed; said in one line that names the command to install it."""

    def __str__(self) -> str:
        return f"{self.got}. {self.remedy}"


def need(what: str, *modules: str) -> None:
    """Raises MissingExtra if a module of an extra is not installed. Imports nothing.

    what: what needs them, as the subject of a sentence. modules: as they are imported, such as torch or PIL.
    """
    missing = [name for name in modules if not installed(name)]
    if missing:
        raise missing_extra(missing, what)


def missing_extra(modules: Sequence[str], what: str = "This") -> MissingExtra:
    """The error for modules of extras that are not installed.

    >>> print(missing_extra(["torch"], "Attacker lstm"))
    Attacker lstm needs torch, which is not installed. Run: pip install 'capbias[train]'
    """
    packages = list(dict.fromkeys(EXTRAS[name][1] for name in modules))
    extras = list(dict.fromkeys(EXTRAS[name][0] for name in modules))
    # The extra vision brings all of train.
    wanted = [name for name in extras if name != "train" or "vision" not in extras]
    are = "are" if len(packages) > 1 else "is"
    return MissingExtra(
        f"{what} needs {' and '.join(packages)}, which {are} not installed",
        f"the packages of capbias[{','.join(wanted)}]",
        f"Run: pip install 'capbias[{','.join(wanted)}]'",
    )


def installed(module: str) -> bool:
    """Whether a module could be imported. Imports nothing."""
    if module in sys.modules:
        return sys.modules[module] is not None
    return find_spec(module) is not None
