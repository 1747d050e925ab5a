"""`python -m capbias_core`."""

import os
import sys

if __name__ == "__main__":
    # -m puts the current folder first, where a `queue.py` may be anybody's; only a checkout of capbias is needed there.
    if not sys.flags.safe_path and not os.path.samefile(sys.path[0], os.path.dirname(os.path.dirname(__file__))):
        del sys.path[0]
    from capbias_core.cli import command

    command()
