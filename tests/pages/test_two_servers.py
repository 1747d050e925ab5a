"""Two servers on one workspace behind the proxy that is shipped, and visitors whom it shares out among them."""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import expect

from capbias_core.workspace.store import Workspace
from pages.ui.frame import navigation
from tests.browser import FLAGS, app, chromium, free_port, open_page, settled
from tests.pages.test_links import fill
from tests.pages.test_proxy import NAME, nginx
from tests.pages.test_sign_in import provider, write_secrets  # noqa: F401 (a fixture)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed"),
]

LAB = "workspace=the+lab+(shared)&collection=scored"


class Visitor:
    """Somebody who signed in, in a browser of their own. server: the port of the only one that answered them."""

    def __init__(self, running, start: str, name: str, log: Path):
        self.start, self.log = start, log
        self.context = running.new_context(ignore_https_errors=True, viewport={"width": 1280, "height": 1000})
        self.window = self.context.new_page()
        self.open("")
        self.window.get_by_role("button", name="Sign in").click()
        self.window.get_by_role("link", name=name).click()
        self.window.get_by_role("button", name="Sign out").wait_for()

    def open(self, path: str) -> None:
        open_page(self.window, f"{self.start}/{path}")
        assert self.window.get_by_test_id("stException").count() == 0, path

    @property
    def server(self) -> int:
        (own,) = [cookie["value"] for cookie in self.context.cookies() if cookie["name"] == "capbias_visitor"]
        (found,) = servers_of(self.log)[own]
        return found


def servers_of(log: Path) -> dict[str, set[int]]:
    """The servers by which requests of each visitor were answered."""
    found = defaultdict(set)
    for line in log.read_text().splitlines():
        server, visitor, _ = line.split(" ", 2)
        if server != "-":
            found[visitor].add(int(server.rsplit(":", 1)[1]))
    return found


def test_visitors_share_what_two_servers_show(provider, tmp_path):  # noqa: F811
    from playwright.sync_api import sync_playwright

    home, folder, port = tmp_path / "home", tmp_path / "nginx", free_port()
    folder.mkdir()
    write_secrets(provider, folder, f"https://{NAME}:{port}")
    fill(Workspace(home / "shared" / "the lab"), "scored")
    with ExitStack() as stack:
        processes = dict(stack.enter_context(app(home, folder)) for _ in range(2))
        stack.enter_context(nginx(folder, port, *processes))
        playwright = stack.enter_context(sync_playwright())
        running = playwright.chromium.launch(
            executable_path=chromium(), args=[*FLAGS, f"--host-resolver-rules=MAP {NAME} 127.0.0.1"]
        )
        visitors: dict[int, Visitor] = {}
        for number in range(12):  # 12 who all come to the same server: once in 2,048 times
            if len(visitors) < 2:
                visitor = Visitor(running, f"https://{NAME}:{port}", ("anna", "ben")[number % 2], folder / "asked")
                visitors.setdefault(visitor.server, visitor)
        one, other = visitors.values()

        one.open(f"Scores?{LAB}&seeds=10&attacker=lstm_bi&references=none")
        one.window.get_by_role("button", name="Run", exact=True).click()
        for visitor in (other, one):
            visitor.open(f"Runs?{LAB}")
            expect(visitor.window.get_by_text(re.compile(r"LIC for gender.*· running, .*epoch")).first).to_be_visible(
                timeout=90_000
            )
        one.window.get_by_role("button", name=re.compile("^Cancel")).first.click()
        expect(other.window.get_by_text("No run is under way.")).to_be_visible(timeout=30_000)

        for number, visitor in enumerate(visitors.values()):
            visitor.open(f"Data?{LAB}")
            (tmp_path / f"mine{number}.csv").write_text("image_id,caption\n" + "1,a man\n2,a woman\n" * (number + 1))
            visitor.window.locator("input[type=file]").set_input_files([str(tmp_path / f"mine{number}.csv")])
            visitor.window.get_by_role("heading", name="2 · Check").wait_for()
            for _, title, _ in navigation():
                visitor.open(f"{'' if title == 'Answer' else title.replace(' ', '_')}?{LAB}")
        assert [visitor.server for visitor in visitors.values()] == list(visitors), "each was kept with one server"

        processes[one.server].kill()
        settled(one.window)
        one.open(f"Scores?{LAB}")
        expect(one.window.get_by_role("button", name="Sign out")).to_be_attached()
        running.close()
