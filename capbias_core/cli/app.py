"""`app`: the dashboard, through streamlit, on this machine alone unless it is told otherwise."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from ipaddress import ip_address
from typing import Annotated

from capbias_core.cli.flags import INPUTS, WorkspaceFlag, command, flag
from capbias_core.errors import CapbiasError, need
from capbias_core.resources import APP

LOOPBACK, PORT = "127.0.0.1", 8501
LAST_PORT = 65_535

app = command(
    "app",
    """\
  capbias app
  capbias app --workspace studies/gender --port 8600

The page is for this machine alone. There is no sign-in: whoever reaches another address reads, changes and deletes
everything. So that needs --insecure; read docs/deploying.md first.""",
)


@app.default
def start(
    *,
    workspace: WorkspaceFlag = None,
    port: Annotated[int, flag(f"the port (default: {PORT})", "PORT", INPUTS)] = PORT,
    address: Annotated[str, flag(f"the address (default: {LOOPBACK})", "ADDRESS", INPUTS)] = LOOPBACK,
    insecure: Annotated[bool, flag("open an address to everybody who reaches it", group=INPUTS)] = False,
) -> int:
    """Start the dashboard; Ctrl-C ends it."""
    need("The dashboard", "streamlit", "plotly")
    if not 1 <= port <= LAST_PORT:
        raise CapbiasError(f"--port {port}", f"a number from 1 to {LAST_PORT:,}", "Give another, or leave it out.")
    if not (insecure or _of_this_machine(address)):
        raise CapbiasError(
            f"the address {address}, which others may reach; there is no sign-in",
            f"{LOOPBACK}, behind a proxy with sign-in where others are to use it",
            "Leave --address out; or add --insecure if whoever reaches it may read and delete everything.",
        )
    check_free(address, port)
    if not APP.is_file():
        raise CapbiasError(f"no dashboard at {APP}", "the file that comes with capbias", "Install capbias again.")
    home = {"CAPBIAS_HOME": workspace} if workspace else {}
    asked = ["--server.address", address, "--server.port", str(port), "--browser.gatherUsageStats", "false"]
    return subprocess.call([sys.executable, "-m", "streamlit", "run", str(APP), *asked], env={**os.environ, **home})


def _of_this_machine(address: str) -> bool:
    """Whether only this machine reaches an address.

    >>> [_of_this_machine(own) for own in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    try:
        return address == "localhost" or ip_address(address).is_loopback
    except ValueError:
        return False


def check_free(address: str, port: int) -> None:
    """Raises CapbiasError if another program listens at the port."""
    try:
        socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET).close()
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            return  # streamlit says it
        raise CapbiasError(
            f"port {port}, which another program uses, perhaps a dashboard that is open already",
            "a free port",
            f"Open http://{address}:{port} to see, or choose another: capbias app --port {port + 1}, or "
            f"make app PORT={port + 1}.",
        ) from None
