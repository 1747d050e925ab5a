"""`app`: the dashboard, through streamlit, by default for this machine only."""

from __future__ import annotations

import os
import socket
import tomllib
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from cyclopts.validators import Number

from capbias_core.cli.inputs import INPUTS, WorkspaceFlag, flag
from capbias_core.cli.inputs import command as command_of
from capbias_core.errors import CapbiasError, need
from capbias_core.processes import STOPPED, python
from capbias_core.resources import APP
from capbias_core.whole_files import typed_path
from capbias_core.workspace.store import shared_folder

LOOPBACK, PORT = "127.0.0.1", 8501
HOSTS = "STREAMLIT_SERVER_ALLOWED_HOSTS"
EVERYWHERE = ("0.0.0.0", "::", "")
# Streamlit's own command ends with 1 if it is stopped with Ctrl-C.
# It obeys a config.toml of the current folder, such as a stranger's that allows the origin of their site.
SERVE = f"""
import sys, click, streamlit.web.cli
from streamlit import file_util
project = file_util.get_project_streamlit_file_path
file_util.get_project_streamlit_file_path = lambda *name: project(*name) if name != ("config.toml",) else {os.devnull!r}
try:
    streamlit.web.cli.main(standalone_mode=False)
except (click.Abort, KeyboardInterrupt):
    sys.exit({STOPPED})
except click.ClickException as error:
    error.show()
    sys.exit(error.exit_code)
"""
# What sign-in needs, in Streamlit's names.
SECRETS = Path(".streamlit", "secrets.toml")
SAMPLE = "a long random text, such as from: openssl rand -hex 32"  # of docs/deploying.md
LEAST_SECRET, LEAST_DIFFERENT = 32, 8  # characters of a cookie_secret; whoever guesses it signs in as anybody
OF_SERVER, OF_PROVIDER = ("redirect_uri", "cookie_secret"), ("client_id", "client_secret", "server_metadata_url")

app = command_of(
    "app",
    """\
  capbias app
  capbias app --workspace studies/gender --port 8600

By default only this machine reaches the dashboard. Anyone who reaches another address can read, change and delete
everything, so it needs sign-in ([auth] in .streamlit/secrets.toml) or --insecure; see docs/deploying.md.""",
)


@app.default
def start(
    *,
    workspace: WorkspaceFlag = None,
    port: Annotated[
        int, flag(f"the port (default: {PORT})", "PORT", INPUTS, validator=Number(gte=1, lte=65_535))
    ] = PORT,
    address: Annotated[str, flag(f"the address (default: {LOOPBACK})", "ADDRESS", INPUTS)] = LOOPBACK,
    insecure: Annotated[bool, flag("allow --address without sign-in", group=INPUTS)] = False,
) -> None:
    """Start the dashboard; Ctrl-C ends it."""
    need("The dashboard", "streamlit", "plotly")
    if not (sign_in() or insecure or _of_this_machine(address)):
        raise CapbiasError(
            f"Others may reach the address {address}, and there is no sign-in.",
            "Leave --address out; set up sign-in (docs/deploying.md); or add --insecure if everybody who can "
            "reach it may read and delete everything.",
        )
    shared_folder()
    home = {"CAPBIAS_HOME": str(typed_path(workspace))} if workspace else {}
    asked = ["--server.address", address, "--server.port", str(port), "--browser.gatherUsageStats", "false"]
    # Otherwise Streamlit offers visitors to write its skills into the package's folder.
    asked += ["--server.headless", "true"]
    if not os.environ.get(HOSTS):
        asked += [part for name in _hosts(address) for part in ("--server.allowedHosts", name)]
    os.umask(0o077)  # what the server writes is its owner's
    command, environment = python("-c", SERVE, "run", str(APP), *asked, **home)
    os.execve(command[0], command, environment)  # in place of this process, so that a signal reaches the server itself


def _hosts(address: str) -> list[str]:
    """The names under which a browser may open the dashboard: of this machine, the address, and those that others know.

    Another site could point a name of its own at this server, and its visitors' browsers would let it read all.
    """
    names = ["localhost", "127.0.0.1", "::1"]
    if address in EVERYWHERE:
        names += [socket.gethostname(), socket.getfqdn()]
    else:
        names.append(address)
    names.append(os.environ.get("STREAMLIT_BROWSER_SERVER_ADDRESS", ""))
    names.append(urlsplit(str(sign_in().get("redirect_uri", ""))).hostname or "")
    return list(dict.fromkeys(filter(None, names)))


def sign_in() -> dict[str, Any]:
    """The table [auth] of Streamlit's secrets, {} without sign-in. Raises CapbiasError if it lacks a key, or its
    cookie_secret can be guessed."""
    auth: dict[str, Any] = {}
    for file in (Path.home() / SECRETS, SECRETS, APP.parent / SECRETS):  # as Streamlit reads them; the last one wins
        try:
            auth |= tomllib.loads(file.read_text(encoding="utf-8")).get("auth", {}) if file.is_file() else {}
        except (OSError, ValueError, AttributeError, TypeError) as error:
            raise CapbiasError(f"{file} cannot be read ({error}).", "Correct the file.") from None
    providers = [table for table in auth.values() if isinstance(table, dict)] or [auth]
    lacking = [key for key in OF_SERVER if not auth.get(key)]
    lacking += [key for key in OF_PROVIDER if not all(provider.get(key) for provider in providers)]
    if auth and lacking:
        raise CapbiasError(
            f"[auth] in {SECRETS} lacks {', '.join(lacking)}.", "Add what is missing; docs/deploying.md has an example."
        )
    secret, sample = ("".join(str(text).lower().split()) for text in (auth.get("cookie_secret", ""), SAMPLE))
    if auth and (sample in secret or len(secret) < LEAST_SECRET or len(set(secret)) < LEAST_DIFFERENT):
        raise CapbiasError(
            f"The cookie_secret in {SECRETS} can be guessed, so anybody could sign in as anybody.",
            f"Use {LEAST_SECRET} random characters or more, such as from: openssl rand -hex 32",
        )
    return auth


def _of_this_machine(address: str) -> bool:
    """Whether only this machine reaches an address.

    >>> [_of_this_machine(name) for name in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    try:
        return address == "localhost" or ip_address(address).is_loopback
    except ValueError:
        return False
