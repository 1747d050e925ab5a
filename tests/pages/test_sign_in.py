"""Sign-in by OpenID Connect: a provider of our own, a real server, a real browser, two people."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pandas as pd
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey
from playwright.sync_api import expect

from capbias_core.workspace import people
from capbias_core.workspace.ingest import DEMO, load_demo
from capbias_core.workspace.store import Workspace
from pages.ui.frame import navigation
from tests.browser import free_port, open_page, server, settled

pytestmark = [pytest.mark.browser, pytest.mark.long]

CLIENT, PEOPLE = "capbias", ("anna", "ben")


class Provider(BaseHTTPRequestHandler):
    """An identity provider that asks for a name and believes it."""

    key = RSAKey.generate_key(2048, {"kid": "1"}, private=True)

    def do_GET(self) -> None:
        address = f"http://{self.headers['Host']}"
        asked = parse_qs(urlsplit(self.path).query)
        pages = {
            "/.well-known/openid-configuration": {
                "issuer": address,
                "authorization_endpoint": f"{address}/authorize",
                "token_endpoint": f"{address}/token",
                "jwks_uri": f"{address}/keys",
                "id_token_signing_alg_values_supported": ["RS256"],
            },
            "/keys": {"keys": [self.key.as_dict(private=False)]},
        }
        if (path := urlsplit(self.path).path) == "/authorize":
            back, nonce, state = (asked.get(key, [""])[0] for key in ("redirect_uri", "nonce", "state"))
            queries = {name: urlencode({"code": f"{name} {nonce}", "state": state}) for name in PEOPLE}
            links = "".join(f'<a href="{back}?{query}">{name}</a> ' for name, query in queries.items())
            self._answer(links.encode(), "text/html")
        else:
            self._answer(json.dumps(pages.get(path, {})).encode(), "application/json")

    def do_POST(self) -> None:
        sent = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        name, _, nonce = sent["code"][0].partition(" ")
        now, address = int(time.time()), f"http://{self.headers['Host']}"
        claims = {"iss": address, "sub": name, "aud": CLIENT, "iat": now, "exp": now + 600, "email": f"{name}@lab.test"}
        token = jwt.encode({"alg": "RS256", "kid": "1"}, claims | ({"nonce": nonce} if nonce else {}), self.key)
        answer = {"access_token": "none", "token_type": "Bearer", "expires_in": 600, "id_token": token}
        self._answer(json.dumps(answer).encode(), "application/json")

    def _answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        pass


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    """The address of the identity provider."""
    found = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=found.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{found.server_port}"
    found.shutdown()


def write_secrets(provider: str, folder: Path, seen_as: str) -> None:
    """What makes a server that is started in this folder ask people to sign in. seen_as: where people open it."""
    (folder / ".streamlit").mkdir()
    (folder / ".streamlit" / "secrets.toml").write_text(
        f"""[auth]
redirect_uri = "{seen_as}/oauth2callback"
cookie_secret = "{"s" * 40}"
client_id = "{CLIENT}"
client_secret = "secret"
server_metadata_url = "{provider}/.well-known/openid-configuration"
"""
    )


@contextmanager
def asking(provider: str, home: Path, folder: Path, port: int, seen_as: str = "") -> Iterator[str]:
    """The address of a server that asks people to sign in. seen_as: where people open it, if not there."""
    write_secrets(provider, folder, seen_as or f"http://127.0.0.1:{port}")
    with server(home, port=port, folder=folder, hosts=urlsplit(seen_as).hostname or "") as (found, _):
        yield found


@pytest.fixture(scope="module")
def address(provider, home, tmp_path_factory) -> Iterator[str]:
    with asking(provider, home, tmp_path_factory.mktemp("started"), free_port()) as found:
        yield found


@pytest.fixture
def visit(chrome, address):
    """Opens pages as somebody, each in a browser of their own; who is nobody does not sign in."""
    contexts = []

    def opened(name: str, path: str = ""):
        context = chrome.new_context(viewport={"width": 1280, "height": 1000})
        contexts.append(context)
        window = context.new_page()
        open_page(window, f"{address}/{path}")
        if name:
            window.get_by_role("button", name="Sign in").click()
            window.get_by_role("link", name=name).click()
            window.get_by_role("button", name="Sign out").wait_for()
            settled(window)
        return window

    yield opened
    for context in contexts:
        context.close()


def test_nobody_sees_anything_on_any_page(visit, home, address):
    """Cold deep links too: no file, no collection, no name, but for the address itself."""
    load_demo(Workspace(home))
    window = visit("")
    for _, title, _ in navigation():
        path = "" if title == "Answer" else title.replace(" ", "_")
        open_page(window, f"{address}/{path}?collection={DEMO}&captioner=amplifier")
        expect(window.get_by_role("button", name="Sign in")).to_be_visible()
        assert window.get_by_test_id("stSidebar").get_by_role("combobox").count() == 0
        assert "amplifier" not in window.locator("body").inner_text()
        assert not any(home.glob("people/*")), "nobody has a workspace"


def test_each_has_a_workspace_and_all_have_the_shared_ones(visit, home, address):
    anna, ben = visit("anna", "Data?collection=mine"), visit("ben")
    assert re.search(r"/Data\?.*workspace=anna%40lab.test", anna.url), "the link that was opened first"
    folders = {folder.name for folder in (home / "people").iterdir()}
    assert len(folders) == 2 and not folders & set(PEOPLE)
    anna.get_by_label("Name of a new shared workspace").fill("the lab")
    anna.get_by_role("button", name="Make it").click()
    chosen = anna.get_by_test_id("stSidebar").get_by_role("combobox", name="Workspace")
    expect(chosen).to_have_value("the lab (shared)")
    load_demo(Workspace(home / "shared" / "the lab"))
    settled(anna)
    lab = Workspace(home / "shared" / "the lab")
    captions = pd.DataFrame({"image_id": ["1"], "caption": ["a dog"], "caption_index": [0]})
    with people.acting("another person"):
        lab.keep("captions", "theirs", captions, "other", "here")
    open_page(ben, anna.url.replace("collection=mine", f"collection={DEMO}"))
    expect(ben.get_by_test_id("stSidebar").get_by_role("combobox", name="Workspace")).to_have_value("the lab (shared)")
    expect(ben.get_by_text("amplifier").first).to_be_attached()
    ben.get_by_role("button", name="Sign out").wait_for()
    ben.locator("[data-testid=stDataFrame] .dvn-scroller").first.click(
        position={"x": 15, "y": 52}
    )  # the newest is the first
    expect(ben.get_by_text("It is not yours: only its owner deletes it, or whoever runs the server.")).to_be_visible()
    assert ben.get_by_role("button", name="Delete").count() == 0
    open_page(ben, f"{address}/Data?workspace=anna%40lab.test")
    expect(ben.get_by_text("The link names the workspace 'anna@lab.test', which is not here.")).to_be_visible()
    ben.get_by_role("button", name="Sign out").click()
    expect(ben.get_by_role("button", name="Sign in")).to_be_visible()
