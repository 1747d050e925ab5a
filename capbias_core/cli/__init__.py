"""The command line: parses, calls the functions that the pages call, prints.

Numbers, tables and JSON go to stdout; what is said about them (warnings, progress, notes) to stderr. Exit codes:
0 done; 1 a run failed, was cancelled or died; 2 bad input, usage or workspace; 130 stopped with Ctrl-C; 143 ended by
SIGTERM.

Only what `capbias --help` needs is imported here; each command is imported when it is used.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Group, Parameter, UnknownOptionError
from cyclopts.exceptions import MissingArgumentError, UnusedCliTokensError

from capbias_core import __version__
from capbias_core.cli.help import Compact
from capbias_core.cli.terminal import BAD_INPUT, DONE, STOPPED, TERMINATED, Terminated, say
from capbias_core.errors import CapbiasError, nearest

ABOUT = """Societal bias in image captions, from a terminal.

capbias COMMAND --help says what a command takes, with examples."""

# Title of a group -> its commands: name, and what it does in a few words. A command `a-b` is `app` in cli/a_b.py.
COMMANDS = {
    "Measure": {
        "score": "score captions: LIC, leakage, ratio, error and more, with intervals",
        "explain": "show which words carry the bias, and what edits do",
        "text": "values and objects in plain texts, without images",
        "metrics": "list what can be measured, what it means and what it needs",
    },
    "Look closer": {
        "align": "show what vocabulary alignment does to human captions, at every delta",
        "agreement": "compare two tables of labels, and keep those on which they agree",
        "anonymous-bench": "how often captions of images without identifiable people name a value (AnonymousBench)",
        "by-value": "whose captions give most away: LIC_M by labelled value",
        "conditions": "put a captioner's metrics against what was masked on the photographs",
        "consistency": "how far a results table depends on encoders",
        "lengths": "cut captions after more and more words: who gives more away at equal length",
        "known-answer": "measure caption sets whose answer is known",
    },
    "Photographs": {
        "detect": "find people and objects on photographs, as boxes in CSV",
        "mask": "hide people or objects on photographs, or list the regions to drop",
        "caption": "caption photographs with a captioner of this machine",
    },
    "Runs": {
        "run": "run a plan: a TOML file that names files and what to measure",
        "runs": "list the runs: what, status, progress, seconds",
        "cancel": "stop runs that are queued or running",
        "resume": "start runs again that failed, died or were cancelled",
        "reproduce": "make the numbers of a bundle again, and say which differ",
    },
    "Workspace": {
        "import": "read a file, report on it, and keep it in the workspace",
        "list": "list what is kept, and the runs with their status",
        "cross": "make one attribute of two, such as gender x race, by the labels of a collection",
        "export": "write the results of a collection as CSV, LaTeX, JSON or a bundle",
        "attributes": "list the known attributes, print one's file, or check a file of your own",
        "demo": "load the bundled demo, run it, and print LIC beside the known truth",
        "app": "start the dashboard",
    },
}
NAMES = tuple(name for commands in COMMANDS.values() for name in commands)
# Commands whose module is called otherwise: a word of Python, or a function of another module.
MODULES = {"import": "importing", "list": "kept"}


def _app() -> App:
    app = App(
        name="capbias",
        help=ABOUT,
        help_format="plaintext",
        version=__version__,
        version_flags=["--version"],
        help_formatter=Compact(),
        default_parameter=Parameter(
            show_default=False, negative=(), consume_multiple=(1, None), show_choices=False, allow_leading_hyphen=False
        ),
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )
    for place, (title, commands) in enumerate(COMMANDS.items()):
        group = Group(title, sort_key=place)
        for order, (name, about) in enumerate(commands.items()):
            module = MODULES.get(name, name.replace("-", "_"))
            app.command(f"{__name__}.{module}:app", name=name, help=about, group=group, sort_key=order)
    app["--help"].show = app["--version"].show = False
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    try:
        _check_command(given)
        code = _app()(given)
        sys.stdout.flush()
        return code or DONE
    except CycloptsError as error:
        say(f"error: {_usage(error)} See {_prog(given)} --help.")
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


# wrong usage


def _prog(given: Sequence[str]) -> str:
    return f"capbias {given[0]}" if given and given[0] in NAMES else "capbias"


def _check_command(given: Sequence[str]) -> None:
    """Raises CycloptsError without a command, or for an unknown one; cyclopts would import all to suggest one."""
    if not given:
        raise CycloptsError("Got no command. Expected one of: " + ", ".join(NAMES) + ".")
    if given[0].startswith("-") or given[0] in NAMES:
        return
    near = nearest(given[0], NAMES, most=1)
    meant = f" Did you mean {near[0]}?" if near else ""
    raise CycloptsError(f"Got the command {given[0]!r}.{meant} Expected one of: {', '.join(NAMES)}.")


def _usage(error: CycloptsError) -> str:
    """Wrong usage in one line."""
    if isinstance(error, UnknownOptionError):
        return _unknown_option(error)
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        return f"Got no {error.argument.name}, or no value for it."
    if isinstance(error, UnusedCliTokensError):
        return f"Got {' '.join(error.unused_tokens or ())}, which belongs to no flag."
    text = " ".join(str(error).split())
    return text if text.endswith((".", "?")) else f"{text}."


def _unknown_option(error: UnknownOptionError) -> str:
    name = (error.token.keyword or error.token.value).partition("=")[0]
    known = [own for argument in error.argument_collection for own in argument.names if own.startswith("--")]
    near = nearest(name, known, most=1)
    meant = f" Did you mean {near[0]}?" if near else ""
    return f"Got {name}, which is not one of its flags.{meant}"
