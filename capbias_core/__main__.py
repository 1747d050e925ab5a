"""`python -m capbias_core`; the guard is for worker processes, which import this module again."""

import sys

from capbias_core.cli import main

if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")
    sys.exit(main())
