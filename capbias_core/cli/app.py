"""`app`: the dashboard, through streamlit, on this machine alone unless it is told otherwise."""

from __future__ import annotations

import errno
import os
import socket
import sys
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

from capbias_core.cli.flags import INPUTS, WorkspaceFlag, command, flag
from capbias_core.errors import CapbiasError, need
from capbias_core.resources import APP
from capbias_core.toml import read_toml, start_of

LOOPBACK, PORT = "127.0.0.1", 8501
LAST_PORT = 65_535
# What sign-in needs, in Streamlit's names.
SECRETS = Path(".streamlit", "secrets.toml")
OF_SERVER, OF_PROVIDER = ("redirect_uri", "cookie_secret"), ("client_id", "client_secret", "server_metadata_url")

app = command(
    "app",
    """\
  capbias app
  capbias app --workspace studies/gender --port 8600

The page is for this machine alone. Whoever reaches another address reads, changes and deletes everything, unless people
sign in ([auth] in .streamlit/secrets.toml). So that needs one of them or --insecure; read docs/deploying.md first.""",
)


@app.default
def start(
    *,
    workspace: WorkspaceFlag = None,
    port: Annotated[int, flag(f"the port (default: {PORT})", "PORT", INPUTS)] = PORT,
    address: Annotated[str, flag(f"the address (default: {LOOPBACK})", "ADDRESS", INPUTS)] = LOOPBACK,
    insecure: Annotated[bool, flag("open an address to everybody who reaches it", group=INPUTS)] = False,
) -> None:
    """Start the dashboard; Ctrl-C ends it."""
    need("The dashboard", "streamlit", "plotly")
    if not 1 <= port <= LAST_PORT:
        raise CapbiasError(f"--port {port}", f"a number from 1 to {LAST_PORT:,}", "Give another, or leave it out.")
    if not (has_sign_in() or insecure or _of_this_machine(address)):
        raise CapbiasError(
            f"the address {address}, which others may reach; there is no sign-in",
            f"{LOOPBACK}, or [auth] in .streamlit/secrets.toml, by which people sign in (docs/deploying.md)",
            "Leave --address out; or add --insecure if whoever reaches it may read and delete everything.",
        )
    check_free(address, port)
    if not APP.is_file():
        raise CapbiasError(f"no dashboard at {APP}", "the file that comes with capbias", "Install capbias again.")
    home = {"CAPBIAS_HOME": workspace} if workspace else {}
    asked = ["--server.address", address, "--server.port", str(port), "--browser.gatherUsageStats", "false"]
    # In place of this process, so that a signal reaches the server itself.
    os.execve(sys.executable, [sys.executable, "-m", "streamlit", "run", str(APP), *asked], {**os.environ, **home})


def has_sign_in() -> bool:
    """Whether Streamlit's secrets ask people to sign in. Raises CapbiasError where [auth] lacks something."""
    found = {}
    for file in (Path.home() / SECRETS, SECRETS, APP.parent / SECRETS):  # as Streamlit reads them; the last one wins
        try:
            found |= read_toml(start_of(file)).get("auth", {}) if file.is_file() else {}
        except (OSError, ValueError, AttributeError, TypeError) as error:
            raise CapbiasError(f"{file}, which cannot be read ({error})", "TOML", "Correct the file.") from None
    providers = [own for own in found.values() if isinstance(own, dict)] or [found]
    lacking = [key for key in OF_SERVER if not found.get(key)]
    lacking += [key for key in OF_PROVIDER if not all(own.get(key) for own in providers)]
    if found and lacking:
        raise CapbiasError(
            f"[auth] in {SECRETS} without {', '.join(lacking)}",
            f"{', '.join(OF_SERVER)} and, of each identity provider, {', '.join(OF_PROVIDER)}",
            "Add what is missing; docs/deploying.md has an example.",
        )
    return bool(found)


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
