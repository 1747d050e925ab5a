"""What went wrong, what was expected, and what to do about it."""


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
    names = ", ".join(sorted(str(item) for item in known)) or "none"
    return CapbiasError(f"{kind} {name!r}", f"one of: {names}", f"Choose a known {kind}.")
