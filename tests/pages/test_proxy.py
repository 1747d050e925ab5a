"""The proxy that docs/deploying.md names, in front of a real server: what it answers, and that pages work."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPSConnection
from pathlib import Path

import pytest

from capbias_core.runs.engine import execute
from capbias_core.runs.plan import Request, plan
from capbias_core.workspace.store import Workspace
from tests.browser import FLAGS, ROOT, chromium, free_port, open_page
from tests.pages.test_links import fill
from tests.pages.test_sign_in import asking, provider  # noqa: F401 (a fixture)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.long,
    pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed"),
]

NAME = "capbias.test"


@contextmanager
def nginx(folder: Path, port: int, *servers: int) -> Iterator[None]:
    """The shipped configuration, whose name, certificate, ports and list of servers alone are changed.

    Which server got what is in the file `asked` of the folder: a line a request, its port and path.
    """
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={NAME}"]
        + ["-keyout", folder / "key", "-out", folder / "pem"],
        check=True,
        capture_output=True,
    )
    shipped = (ROOT / "deploy" / "nginx.conf").read_text()
    for given, here in {
        "capbias.example.org": NAME,
        "/etc/ssl/capbias.pem": str(folder / "pem"),
        "/etc/ssl/capbias.key": str(folder / "key"),
        "listen 80": f"listen {free_port()}",
        "listen 443": f"listen {port}",
        "server 127.0.0.1:8501;": " ".join(f"server 127.0.0.1:{own};" for own in servers),
    }.items():
        assert given in shipped
        shipped = shipped.replace(given, here)
    log = f"log_format asked '$upstream_addr $cookie_capbias_visitor $uri'; access_log {folder}/asked asked;"
    whole = f"pid {folder}/pid; error_log {folder}/log; daemon off;\nevents {{}}\nhttp {{ {log}\n{shipped}\n}}"
    (folder / "conf").write_text(whole)
    running = subprocess.Popen(["nginx", "-p", folder, "-c", folder / "conf"], stderr=subprocess.DEVNULL)
    try:
        wait_for(port)
        yield
    finally:
        running.terminate()
        running.wait(10)


@pytest.fixture(scope="module")
def behind(provider, tmp_path_factory) -> Iterator[tuple[int, Path]]:  # noqa: F811
    """The port of nginx before a server that asks people to sign in, and the server's workspace."""
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("nginx")
    port, inner = free_port(), free_port()
    with asking(provider, home, folder, inner, f"https://{NAME}:{port}"), nginx(folder, port, inner):
        yield port, home


def wait_for(port: int) -> None:
    end = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.05)


def answer(port: int, method: str = "GET", path: str = "/", name: str = NAME, length: int = 0):
    """What is answered to somebody who asks for this host."""
    raw = socket.create_connection(("127.0.0.1", port), 10)
    lax = ssl._create_unverified_context()
    connection = HTTPSConnection(name, port)
    connection.sock = lax.wrap_socket(raw, server_hostname=name)
    connection.request(method, path, headers={"Content-Length": str(length)} if length else {})
    return connection.getresponse()


def test_headers_and_limits(behind):
    port, _ = behind
    found = answer(port)
    assert found.status == 200
    rules = found.headers["Content-Security-Policy"]
    assert "default-src 'self'" in rules and "frame-ancestors 'none'" in rules and "http" not in rules
    assert found.headers["X-Content-Type-Options"] == "nosniff" and found.headers["X-Frame-Options"] == "DENY"
    assert found.headers["Strict-Transport-Security"]
    assert answer(port, "PUT", "/_stcore/upload_file/a/b", length=201 * 1024 * 1024).status == 413
    with pytest.raises(ssl.SSLError):
        answer(port, name="elsewhere.test")


def test_pages_work_behind_it(behind):
    """Nothing that a page does is forbidden by the headers: charts, tables, captions in colour, files to drop."""
    from playwright.sync_api import sync_playwright

    port, home = behind
    workspace = Workspace(home / "shared" / "the lab")
    fill(workspace, "scored")
    for spec in plan(workspace, Request("scored", ("first",), "labels", "gender", ("ratio",), "human", words=True)):
        assert workspace.enqueue(spec, "scored", "t")
        execute(str(workspace.folder), spec.run_id, "t")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=chromium(), args=[*FLAGS, f"--host-resolver-rules=MAP {NAME} 127.0.0.1"]
        )
        window = running.new_context(ignore_https_errors=True, viewport={"width": 1280, "height": 1000}).new_page()
        said = []
        window.on("console", lambda line: said.append(line.text) if line.type == "error" else None)
        start = f"https://{NAME}:{port}"
        open_page(window, f"{start}/")
        window.get_by_role("button", name="Sign in").click()
        window.get_by_role("link", name="anna").click()
        window.get_by_role("button", name="Sign out").wait_for()
        for page in ("", "Scores", "Captions", "Data"):
            open_page(window, f"{start}/{page}?workspace=the+lab+(shared)&collection=scored")
            window.wait_for_timeout(300)  # charts and tables fetch their code
            assert window.get_by_test_id("stException").count() == 0, page
        running.close()
    assert not [line for line in said if "Content Security Policy" in line], said
