"""`python -m capbias_core` and the command `capbias`; the guard is for worker processes, which import this again."""

import io
import sys


def command() -> None:
    """Run the command line and leave with its exit code."""
    from capbias_core.cli import main

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(main())


if __name__ == "__main__":
    command()
