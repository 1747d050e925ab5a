"""Opens the dashboard: Streamlit in a process of its own, on the pages of the checkout or of the installed package."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from capbias_core.errors import need
from capbias_core.resources import APP

DEMO_ASKED = "CAPBIAS_DEMO"  # the environment's variable that lets an empty workspace open on the demo


def dashboard_command(port: int = 8501, address: str = "localhost", more: Sequence[str] = ()) -> list[str]:
    """The command that serves the pages. more: further options of `streamlit run`. Raises MissingExtra."""
    need("The dashboard", "streamlit", "plotly", "PIL")
    options = ["--server.port", str(port), "--server.address", address, *more]
    return [sys.executable, "-m", "streamlit", "run", str(APP), *options]


def open_dashboard(port: int = 8501, address: str = "localhost", demo: bool = True) -> int:
    """Serve the pages until they are stopped; returns Streamlit's exit code.

    demo: whether an empty workspace loads the demo data and measures it.
    """
    environment = {**os.environ, DEMO_ASKED: "1"} if demo else dict(os.environ)
    return subprocess.call(dashboard_command(port, address), env=environment)
