"""Errors: one sentence, and a hint if there is a way out."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from importlib.util import find_spec


class CapbiasError(Exception):
    """One sentence that says what is wrong, and a hint if there is a way out.

    message and hint are whole sentences. Pages show both; the command line prints them and exits with 2. arguments: of
    `capbias.score` to change, by name, or as NAME=VALUE if only some values fit; the command line shows flags, Python a
    note.
    """

    def __init__(self, message: str, hint: str = "", *arguments: str):
        super().__init__(message, hint, *arguments)
        self.message, self.hint, self.arguments = message, hint, arguments
        if arguments:
            self.add_note(f"Arguments: {', '.join(arguments)}")

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class NotMeasurable(CapbiasError):
    """The inputs do not allow a metric. Other metrics of the same run may still be measured."""


class Cancelled(Exception):
    """A run was asked to stop; raised at its next progress report."""


def flag_name(argument: str) -> str:
    """The flag of the command line for an argument, with its value.

    >>> flag_name("image_id_column"), flag_name("rows=lang=en"), flag_name("caption_column=my captions")
    ('--image-id-column', '--rows lang=en', "--caption-column 'my captions'")
    """
    name, given, value = argument.partition("=")
    return f"--{name.replace('_', '-')}" + (f" {shlex.quote(value)}" if given else "")


def unknown_name(
    kind: str, name: object, known: Iterable[object], listed: Iterable[object] | None = None
) -> CapbiasError:
    """The error for an unknown name, with the nearest and the known names.

    listed: the known names in the hint (default: all).

    >>> print(unknown_name("metric", "LIC_N", ["LIC", "LIC_M", "ratio"]))
    There is no metric 'LIC_N'. Did you mean LIC_M or LIC? Known: LIC, LIC_M, ratio.
    >>> print(unknown_name("metric", "zebra", ["LIC", "LIC_M", "ratio"]))
    There is no metric 'zebra'. Known: LIC, LIC_M, ratio.
    """
    names = sorted(map(str, known))
    near = nearest(str(name), names)
    names = names if listed is None else sorted(map(str, listed))
    question = f"Did you mean {' or '.join(near)}? " if near else ""
    return CapbiasError(f"There is no {kind} {name!r}.", f"{question}Known: {', '.join(names) or 'none'}.")


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The known names closest to a misspelt one, ignoring case; none if all differ much.

    >>> nearest("Scroe", ["score", "list", "export"])
    ['score']
    """
    by_lower = {each.lower(): each for each in known}
    close = get_close_matches(name.lower(), by_lower, n=2)
    # A name that differs in case alone needs no second guess.
    return [by_lower[each] for each in close if each == name.lower() or name.lower() not in close]


def short(text: object, most: int = 40) -> str:
    """A text on one line of a message, cut after so many characters. Half surrogate pairs, which no terminal can print,
    become `?`.

    >>> short("a dog  on a couch", 7)
    'a dog o…'
    """
    line = " ".join(str(text).split()).encode("utf-8", "replace").decode("utf-8")
    return line if len(line) <= most else f"{line[:most]}…"


def first_line(error: BaseException) -> str:
    """What a library says of an error, for a sentence: its first line, without a full stop; its type if it is silent.

    >>> first_line(ValueError("no header.")), first_line(EOFError())
    ('no header', 'EOFError')
    """
    lines = str(error).strip().splitlines()
    return short(lines[0], 200).rstrip(".") if lines else type(error).__name__


def taken_twice(kind: str, name: str, where: Iterable[str]) -> CapbiasError:
    """The error for two parts of capbias with one name. where: the modules that have it."""
    return CapbiasError(
        f"The {kind} {name!r} is taken ({', '.join(dict.fromkeys(where))}).", "Give the new one another name."
    )


# Modules of extras; pyproject.toml says what each extra is for. The extra vision brings all of train.
EXTRAS = {
    "train": ("captum", "distributed", "huggingface_hub", "psutil", "sentence_transformers", "torch", "transformers"),
    "vision": ("ai_edge_litert", "PIL", "pycocoevalcap", "pycocotools", "torchvision", "ultralytics"),
    "app": ("kaleido", "plotly", "streamlit"),
}
PACKAGES = {"huggingface_hub": "transformers", "PIL": "pillow"}  # where `pip install` has another name


class MissingExtra(CapbiasError):
    """A package of an extra is not installed; the hint names the command that installs it."""


def need(what: str, *modules: str) -> None:
    """Raises MissingExtra if a module of an extra is not installed; imports nothing. what: the subject of the sentence.
    modules: as they are imported, such as torch or PIL."""
    missing = [name for name in modules if not installed(name)]
    if missing:
        raise missing_extra(missing, what)


def missing_extra(modules: Sequence[str], what: str = "This") -> MissingExtra:
    """The error for modules of extras that are not installed.

    >>> print(missing_extra(["torch"], "Attacker lstm"))
    Attacker lstm needs torch, which is not installed. Run: pip install 'capbias[train]'
    """
    packages = list(dict.fromkeys(PACKAGES.get(name, name.replace("_", "-")) for name in modules))
    wanted = [extra for extra, names in EXTRAS.items() if set(names) & set(modules)]
    wanted = [extra for extra in wanted if extra != "train" or "vision" not in wanted]
    are = "are" if len(packages) > 1 else "is"
    return MissingExtra(
        f"{what} needs {' and '.join(packages)}, which {are} not installed.",
        f"Run: pip install 'capbias[{','.join(wanted)}]'",
    )


def installed(module: str) -> bool:
    """Whether a module could be imported. Imports nothing."""
    if module in sys.modules:
        return sys.modules[module] is not None
    return find_spec(module) is not None
