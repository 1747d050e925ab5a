"""Which addresses `capbias app` opens."""

from __future__ import annotations

from pathlib import Path

import pytest

from capbias_core.cli import app
from capbias_core.errors import CapbiasError
from tests.browser import free_port

AUTH = """[auth]
redirect_uri = "https://capbias.test/oauth2callback"
cookie_secret = "s"
"""
PROVIDER = """client_id = "a"
client_secret = "b"
server_metadata_url = "https://provider.test"
"""


@pytest.fixture
def secrets(tmp_path, monkeypatch) -> Path:
    """Where Streamlit reads what sign-in needs, in a folder from which the dashboard starts."""
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "nobody")
    monkeypatch.chdir(tmp_path)
    file = tmp_path / app.SECRETS
    file.parent.mkdir()
    return file


def test_without_secrets_nobody_signs_in(secrets):
    assert not app.sign_in()
    secrets.write_text("[database]\npassword = 'x'\n")
    assert not app.sign_in()


@pytest.mark.parametrize("text", [AUTH + PROVIDER, f"{AUTH}[auth.one]\n{PROVIDER}[auth.two]\n{PROVIDER}"])
def test_one_provider_or_several(secrets, text):
    secrets.write_text(text)
    assert app.sign_in()


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        (AUTH, "client_id, client_secret, server_metadata_url"),
        (f"[auth]\n{PROVIDER}", "redirect_uri, cookie_secret"),
        (f"{AUTH}[auth.one]\n{PROVIDER}[auth.two]\nclient_id = 'a'\n", "client_secret, server_metadata_url"),
        ("[auth", "cannot be read"),
        ("auth = 1", "cannot be read"),
    ],
)
def test_half_a_sign_in_is_none(secrets, text, missing):
    secrets.write_text(text)
    with pytest.raises(CapbiasError, match=missing):
        app.sign_in()


def test_an_address_that_others_reach_needs_sign_in_or_a_word(secrets, monkeypatch):
    asked, port = [], free_port()
    monkeypatch.setattr(app.os, "execve", lambda program, command, environment: asked.append(command))
    monkeypatch.setattr(app.os, "umask", lambda mode: None)
    with pytest.raises(CapbiasError, match="no sign-in"):
        app.start(address="0.0.0.0", port=port)
    app.start(address="0.0.0.0", port=port, insecure=True)
    secrets.write_text(AUTH + PROVIDER)
    app.start(address="0.0.0.0", port=port)
    assert len(asked) == 2


LOCAL = ["localhost", "127.0.0.1", "::1"]


@pytest.mark.parametrize(
    ("address", "text", "environment", "hosts"),
    [
        ("127.0.0.1", "", {}, LOCAL),
        ("192.0.2.7", "", {}, [*LOCAL, "192.0.2.7"]),
        ("127.0.0.1", AUTH + PROVIDER, {}, [*LOCAL, "capbias.test"]),
        ("127.0.0.1", "", {"STREAMLIT_BROWSER_SERVER_ADDRESS": "lab.test"}, [*LOCAL, "lab.test"]),
        ("127.0.0.1", "", {app.HOSTS: "lab.test"}, []),  # whoever sets it means it
    ],
)
def test_only_known_names_open_the_dashboard(secrets, monkeypatch, address, text, environment, hosts):
    """Else any site could point a name of its own at it, and read all in its visitors' browsers."""
    asked = []
    monkeypatch.setattr(app.os, "execve", lambda program, command, environment: asked.append(command))
    monkeypatch.setattr(app, "check_free", lambda address, port: None)
    monkeypatch.setattr(app.os, "umask", lambda mode: None)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    secrets.write_text(text)
    app.start(address=address, insecure=True)
    (command,) = asked
    assert [command[place + 1] for place, part in enumerate(command) if part == "--server.allowedHosts"] == hosts
