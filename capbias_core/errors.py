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


def unknown_name(kind: str, name: object, known: Iterable[object]) -> CapbiasError:
    """The error for a name that is in no table, listing those that are."""
    names = sorted(str(item) for item in known)
    near = get_close_matches(str(name), names, n=2)
    meant = f"Did you mean {' or '.join(near)}?" if near else f"Choose a known {kind}."
    return CapbiasError(f"{kind} {name!r}", f"one of: {', '.join(names) or 'none'}", meant)


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
