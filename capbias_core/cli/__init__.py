"""The command line: parses, calls the functions that the pages call, prints.

Numbers, tables and JSON go to stdout; warnings, progress and notes to stderr. Only what `capbias --help` needs is
imported here; each command is imported when it is used.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import traceback
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Parameter
from cyclopts.exceptions import UnusedCliTokensError

from capbias_core import __version__
from capbias_core.cli.terminal import BAD_INPUT, DONE, UNEXPECTED, WORDS, say
from capbias_core.errors import CapbiasError, flag_name, unknown_name
from capbias_core.load.questions import Ask, command_text
from capbias_core.processes import STOPPED, TERMINATED, Terminated, current_folder, terminate

ABOUT = """Societal bias in image captions, from a terminal.

`capbias COMMAND --help` shows the flags of a command, with examples.

To start: `capbias demo`, or `capbias score captions.json labels.csv --attribute gender`.

Exit codes: 0 done; 1 a run failed, was cancelled or died; 2 bad input or workspace; 70 unexpected error; 130 stopped \
with Ctrl-C; 143 ended by SIGTERM."""

# Command -> module, and what it does.
COMMANDS = {
    "score": ("score", "Score captions: LIC, leakage, ratio, error and more"),
    "view": ("views", "Answer a further question on results, one subcommand each"),
    "explain": ("explain", "Show the words that carry the bias"),
    "metrics": ("metrics", "List the metrics, their meaning and their inputs"),
    "import": ("importing", "Read files, report on them, and store them in the workspace"),
    "list": ("run:list_app", "List the stored files and the runs of the workspace"),
    "export": ("export", "Write the results of a collection as CSV, LaTeX, JSON or a bundle"),
    "reproduce": ("export:reproduce_app", "Recompute the numbers of a bundle, and list the differences"),
    "labels": ("labels", "Derive and cross labels"),
    "images": ("images", "Detect, mask and caption photographs"),
    "demo": ("run:demo_app", "Load and score the bundled demo, and print the true LIC next to the measured one"),
    "app": ("app", "Start the dashboard"),
}


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
    for order, (name, (module, about)) in enumerate(COMMANDS.items()):
        path = f"{__name__}.{module}" if ":" in module else f"{__name__}.{module}:app"
        app.command(path, name=name, help=about, sort_key=order)
    app["--help"].show = app["--version"].show = False
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    WORDS.set(given)
    try:
        current_folder()
        _check_command(given)
        code = _app()(given)
        sys.stdout.flush()
        return code or DONE
    except CycloptsError as error:
        text = " ".join(str(error).split())
        if isinstance(error, UnusedCliTokensError):
            text = f"Unexpected: {' '.join(error.unused_tokens or ())}."
        known = _app().parse_commands(given)[0] if given and given[0] in COMMANDS else ()
        see = " ".join(["capbias", *known])
        say(f"error: {text}{'' if text.endswith(('.', '?')) else '.'} See {see} --help.")
        return BAD_INPUT
    except Ask as ask:
        say(command_text(ask, given))
        return BAD_INPUT
    except CapbiasError as error:
        say(f"error: {_error_text(error, *given[:1])}")
        return BAD_INPUT
    except KeyboardInterrupt as stop:
        say("cancelled")
        return TERMINATED if isinstance(stop, Terminated) else STOPPED
    except BrokenPipeError:  # the reader (such as head) has what it wanted; the interpreter's last flush must not fail
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE


# Arguments of `capbias.score` for which `import` has another flag.
OF_IMPORT = {"attribute_column": "--attribute NAME=COLUMN", "values": "--map ATTRIBUTE:LABEL=VALUE"}


def _error_text(error: CapbiasError, command: str = "") -> str:
    """An error with the flags of a command that its hint is about: `There are no labels. Name a table. (--labels)`."""
    others = dict(OF_IMPORT) if command == "import" else {}
    if command == "score":
        from capbias_core.cli.inputs import known_options

        others = {name: f"--option {name}" for name in known_options()}
    others |= {"mapping": "--map", "map": "--map"}
    flags = [others.get(name.partition("=")[0], flag_name(name)) for name in error.arguments]
    if any("=" in name for name in error.arguments):  # one line each, to paste
        return "\n  ".join([str(error), *flags])
    return f"{error} ({', '.join(flags)})" if flags else str(error)


def command() -> None:
    """The command `capbias`: runs the command line and leaves with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")

    signal.signal(signal.SIGTERM, terminate)
    try:
        code = main()
    except Exception:  # Python would exit with 1, which a gate reads as "worse"
        traceback.print_exc()
        say("error: this is a bug in capbias. Please report it with the lines above.")
        code = UNEXPECTED
    sys.exit(code)


def _check_command(given: Sequence[str]) -> None:
    """Raises CapbiasError without a command, or for an unknown one; cyclopts would import all to suggest one."""
    if not given:
        raise CapbiasError("No command is given.", "See capbias --help.")
    if not given[0].startswith("-") and given[0] not in COMMANDS:
        raise unknown_name("command", given[0], COMMANDS)
