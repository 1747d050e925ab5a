"""What a visitor reaches from another machine without signing in: `python -m benchmarks.outside --home WORKSPACE`.

The other machine is a network namespace with a link of its own to this one (Linux, as root, with `ip`, `ss`, curl and
Chromium). Printed: which of the ports that `capbias app` opens as it comes answer there (none should), whether an
address that others reach is refused without sign-in, and, with sign-in, what pages and other addresses say.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.namespaces import made
from capbias_core.workspace.store import Workspace
from pages.ui.frame import navigation
from tests.browser import FLAGS, READY, app, chromium, free_port

SPACE, HERE, THERE = "capbias-outside", "10.77.0.1", "10.77.0.2"
SECRETS = """[auth]
redirect_uri = "http://{address}/oauth2callback"
cookie_secret = "a secret of this measurement alone"
client_id = "capbias"
client_secret = "none"
server_metadata_url = "http://127.0.0.1:1/.well-known/openid-configuration"
"""
PROBE = """
import socket, sys
for port in map(int, sys.argv[2:]):
    with socket.socket() as own:
        own.settimeout(1)
        print(port, "open" if own.connect_ex((sys.argv[1], port)) == 0 else "closed")
"""
ADDRESSES = ("_stcore/health", "_stcore/host-config", "media/x.csv", "component/x/index.html", "auth/login", "static/x")


@contextmanager
def another_machine() -> Iterator[None]:
    """A network namespace that reaches this machine at HERE and nothing else."""
    commands = [
        f"ip netns add {SPACE}",
        f"ip link add capbias0 type veth peer name capbias1 netns {SPACE}",
        f"ip addr add {HERE}/24 dev capbias0",
        "ip link set capbias0 up",
        f"ip -n {SPACE} addr add {THERE}/24 dev capbias1",
        f"ip -n {SPACE} link set capbias1 up",
    ]
    with made(commands, [f"ip netns del {SPACE}"]):
        yield


def listening() -> set[int]:
    """TCP ports at which anything on this machine listens."""
    said = subprocess.run(["ss", "-ltnH"], capture_output=True, text=True, check=True).stdout
    return {int(line.split()[3].rsplit(":", 1)[1]) for line in said.splitlines()}


def outside(*command: str) -> str:
    """What a command prints on the other machine."""
    return subprocess.run(
        ["ip", "netns", "exec", SPACE, *command], capture_output=True, text=True, check=False
    ).stdout.strip()


def seen(address: str, names: set[str]) -> Iterator[str]:
    """A line a page: what a browser on the other machine reads there, and which names of what is kept stand in it."""
    from playwright.sync_api import sync_playwright

    with tempfile.NamedTemporaryFile("w", suffix=".sh", delete=False) as script:
        script.write(f'#!/bin/sh\nexec ip netns exec {SPACE} {chromium()} "$@"\n')
    Path(script.name).chmod(0o755)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=script.name, args=FLAGS)
        window = browser.new_page()
        for number, (_, title, _) in enumerate(navigation()):
            window.goto(f"{address}/{title.replace(' ', '_') if number else ''}")
            window.wait_for_selector(READY, timeout=60_000)
            window.get_by_text("Sign in first.").wait_for()
            text, said = (window.locator(own).inner_text() for own in ("body", ".cb-answer"))
            found = sorted(names & set(re.findall(r"\w+", text.lower())))
            yield f"{title}: {' '.join(said.split())!r}; names of what is kept: {', '.join(found) or 'none'}"
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True, help="a workspace with captions")
    home = parser.parse_args().home.resolve()
    sets = [item.name.lower() for item in Workspace(home).items()]
    with another_machine(), tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        before = listening()
        with app(home, folder):
            ports = sorted(listening() - before)
            answers = outside(sys.executable, "-c", PROBE, HERE, *map(str, ports))
            print(f"as it comes: {len(ports)} port opened; open from outside: {answers.count('open')}")
        command = [sys.executable, "-m", "capbias_core", "app", "--address", HERE, "--port", str(free_port())]
        own = {**os.environ, "CAPBIAS_HOME": str(home), "PYTHONPATH": os.getcwd()}
        refused = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, check=False)
        print(f"--address without sign-in: exit {refused.returncode}, {refused.stderr.strip()[:120]!r}")
        (folder / ".streamlit").mkdir()
        (folder / ".streamlit" / "secrets.toml").write_text(SECRETS.format(address=HERE))
        with app(home, folder, HERE) as (port, _):
            for line in seen(f"http://{HERE}:{port}", set(sets)):
                print(line)
            for address in ADDRESSES:
                said = outside("curl", "-s", "-m", "10", "-w", " %{http_code}", f"http://{HERE}:{port}/{address}")
                print(f"/{address}: {said[-80:]!r}")


if __name__ == "__main__":
    main()
