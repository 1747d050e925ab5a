"""What went wrong, what was expected, and what to do about it."""

from difflib import get_close_matches


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


def unknown_name(kind: str, name: object, known) -> CapbiasError:
    """The error for a name that is in no table, listing those that are."""
    known = sorted(str(item) for item in known)
    near = get_close_matches(str(name), known, n=2)
    meant = f"Did you mean {' or '.join(near)}?" if near else f"Choose a known {kind}."
    return CapbiasError(f"{kind} {name!r}", f"one of: {', '.join(known) or 'none'}", meant)
