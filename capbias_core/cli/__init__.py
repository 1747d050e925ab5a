"""The command line: parses, calls the functions that the pages call, prints.

Numbers, tables and JSON go to stdout; warnings, progress and notes to stderr.

Only what `capbias --help` needs is imported here; each command is imported when it is used.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Parameter

from capbias_core import __version__
from capbias_core.cli.terminal import BAD_INPUT, DONE, STOPPED, TERMINATED, Terminated, say
from capbias_core.errors import CapbiasError, nearest, unknown_name

ABOUT = """Societal bias in image captions, from a terminal.

`capbias COMMAND --help` shows the flags of a command, with examples.

Exit codes: 0 done; 1 a run failed, was cancelled or died; 2 bad input or workspace; 130 stopped with Ctrl-C; 143 \
ended by SIGTERM."""

# Name of a command -> what it does. Its module in this package has the App `app`.
COMMANDS = {
    "score": "Score captions: LIC, leakage, ratio, error and more; --view NAME gives further tables",
    "explain": "Show the words that carry the bias, and the effect of edits",
    "metrics": "List the metrics, their meaning and their inputs",
    "import": "Read files, report on them, and store them in the workspace",
    "list": "List the stored files and the runs of the workspace",
    "export": "Write the results of a collection as CSV, LaTeX, JSON or a bundle",
    "run": "Run a plan, a TOML file; list, cancel and resume runs",
    "reproduce": "Recompute the numbers of a bundle, and list the differences",
    "labels": "Derive, cross, compare and check labels",
    "images": "Detect, mask and caption photographs",
    "demo": "Load and score the bundled demo, and print the true LIC next to the measured one",
    "app": "Start the dashboard",
}
NAMES = tuple(COMMANDS)
VIEWS = (
    "by-value", "conditions", "lengths", "consistency", "anonymous-bench", "known-answer", "align", "text"
)  # fmt: skip
# Names of earlier versions -> how to call the command now.
RENAMED = {
    **{name: f"score --view {name}" for name in VIEWS},
    **{name: f"images {name}" for name in ("detect", "mask", "caption")},
    "agreement": "labels compare",
    "attributes": "labels check",
    "cross": "labels cross",
    "runs": "run status",
    "cancel": "run cancel",
    "resume": "run resume",
}
# Commands whose module has another name, because theirs is a word of Python.
MODULES = {"import": "importing", "list": "kept"}


def _app() -> App:
    app = App(
        name="capbias",
        help=ABOUT,
        help_format="plaintext",
        version=__version__,
        version_flags=["--version"],
        default_parameter=Parameter(
            show_default=False, negative=(), consume_multiple=(1, None), show_choices=False, allow_leading_hyphen=False
        ),
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )
    for order, (name, about) in enumerate(COMMANDS.items()):
        app.command(f"{__name__}.{MODULES.get(name, name)}:app", name=name, help=about, sort_key=order)
    app["--help"].show = app["--version"].show = False
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    try:
        _check_command(given)
        code = _app()(with_view(given))
        sys.stdout.flush()
        return code or DONE
    except CycloptsError as error:
        text = " ".join(str(error).split())
        say(f"error: {text}{'' if text.endswith(('.', '?')) else '.'} See {_prog(given)} --help.")
        return BAD_INPUT
    except CapbiasError as error:
        say(f"error: {error}")
        return BAD_INPUT
    except KeyboardInterrupt as stop:
        say("cancelled")
        return TERMINATED if isinstance(stop, Terminated) else STOPPED
    except BrokenPipeError:  # the reader (such as head) has what it wanted; the interpreter's last flush must not fail
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE


def command() -> None:
    """The command `capbias`: runs the command line and leaves with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    signal.signal(signal.SIGTERM, _terminated)
    sys.exit(main())


def _terminated(*_signal: object) -> None:
    raise Terminated


def with_view(given: Sequence[str]) -> list[str]:
    """The words of a command, with `--view NAME` of `score` as the name of a subcommand.

    >>> with_view(["score", "--captions", "sat.json", "--view=text"])
    ['score', '--view text', '--captions', 'sat.json']
    """
    words = [part for word in given for part in (word.split("=", 1) if word.startswith("--view=") else [word])]
    if words[:1] != ["score"] or "--view" not in words:
        return words
    index = words.index("--view")
    view = words[index + 1] if words[index + 1 :] else ""
    if view not in VIEWS:
        raise unknown_name("--view", view, VIEWS)
    return ["score", f"--view {view}", *words[1:index], *words[index + 2 :]]


# wrong usage


def _prog(given: Sequence[str]) -> str:
    """`capbias score --view text`: the command and its subcommand, as far as they are known."""
    if not given or given[0] not in NAMES:
        return "capbias"
    return " ".join(["capbias", *_app().parse_commands(with_view(given))[0]])


def _check_command(given: Sequence[str]) -> None:
    """Raises CycloptsError without a command, or for an unknown one; cyclopts would import all to suggest one."""
    if not given:
        raise CycloptsError("Got no command. Expected one of: " + ", ".join(NAMES) + ".")
    name = given[0]
    if name.startswith("-") or name in NAMES:
        return
    if name in RENAMED:
        raise CycloptsError(f"The command is now: capbias {RENAMED[name]}.")
    meant = f" Did you mean {near[0]}?" if (near := nearest(name, NAMES, most=1)) else ""
    raise CycloptsError(f"Got the command {name!r}.{meant} Expected one of: {', '.join(NAMES)}.")
