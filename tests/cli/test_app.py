"""`app`: which addresses it opens, and the flags that come from the options of measures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from capbias_core import cli
from capbias_core.cli import app
from capbias_core.cli.inputs import options_of, read_options
from capbias_core.errors import CapbiasError
from capbias_core.measures.base import Group
from capbias_core.measures.options import Options, option
from capbias_core.measures.registry import MEASURES

SECRET = "0123456789abcdef5e0a7c3d9b1f8246"
AUTH = f'[auth]\nredirect_uri = "https://capbias.test/oauth2callback"\ncookie_secret = "{SECRET}"\n'
PROVIDER = 'client_id = "a"\nclient_secret = "b"\nserver_metadata_url = "https://provider.test"\n'
LOCAL = ["localhost", "127.0.0.1", "::1"]


@pytest.fixture
def started(tmp_path, monkeypatch) -> list[tuple[list[str], dict]]:
    """The commands, with their environment, that `app` starts in place of this process, in an empty folder."""
    pytest.importorskip("streamlit")
    commands = []
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "nobody")
    monkeypatch.chdir(tmp_path)
    app.SECRETS.parent.mkdir()
    monkeypatch.setattr(app.os, "execve", lambda program, command, environment: commands.append((command, environment)))
    monkeypatch.setattr(app.os, "umask", lambda mode: None)
    return commands


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", False),
        ("[database]\npassword = 'x'\n", False),
        (AUTH + PROVIDER, True),
        (f"{AUTH}[auth.one]\n{PROVIDER}[auth.two]\n{PROVIDER}", True),
        (AUTH, None),
        (f"[auth]\n{PROVIDER}", None),
        (f"{AUTH}[auth.one]\n{PROVIDER}[auth.two]\nclient_id = 'a'\n", None),
        (AUTH.replace(SECRET, SECRET[1:]) + PROVIDER, None),
        (AUTH.replace(SECRET, "a" * 40) + PROVIDER, None),
        *((AUTH.replace(SECRET, f"{text} ") + PROVIDER, None) for text in (app.SAMPLE, app.SAMPLE.upper() * 2)),
        ("[auth", None),
        ("auth = 1", None),
    ],
)
def test_others_reach_the_dashboard_only_with_a_complete_sign_in(started, monkeypatch, text, complete):
    """complete: None for a sign-in that lacks a key, cannot be read, or has a secret that can be guessed."""
    app.SECRETS.write_text(text)
    for address, allowed in (("127.0.0.1", complete is not None), ("0.0.0.0", bool(complete))):
        started.clear()
        if allowed:
            app.start(address=address)
        else:
            with pytest.raises(CapbiasError):
                app.start(address=address)
        assert len(started) == allowed


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
def test_only_known_names_open_the_dashboard(started, monkeypatch, address, text, environment, hosts):
    """Else any site could point its name at it, and read all in its visitors' browsers."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    app.SECRETS.write_text(text)
    app.start(address=address, insecure=True)
    ((command, _),) = started
    assert [command[index + 1] for index, part in enumerate(command) if part == "--server.allowedHosts"] == hosts


def test_the_dashboard_starts_on_loopback(started, tmp_path):
    argv = ["app", "--workspace", str(tmp_path), "--port", "8600"]
    assert cli.main(argv) == 0
    ((command, environment),) = started
    assert command[1:4] == ["-c", app.SERVE, "run"] and command[4].endswith("app.py")
    asked = dict(zip(command[5::2], command[6::2], strict=True))
    assert asked["--server.address"] == "127.0.0.1" and asked["--server.port"] == argv[-1]
    assert environment["CAPBIAS_HOME"] == str(tmp_path)


@dataclass(frozen=True)
class ToyOptions(Options):
    """Choices of a measure that is not there."""

    least: int = option(3, "captions at least", flag="--least", at_least=1, at_most=9, metavar="N")
    share: float | None = option(None, "share of them", flag="--share", above=0, at_most=0.9)
    how: str = option("plain", "how they are read", flag="--how", choices=("plain", "loud"))
    words: tuple[str, ...] = option((), "which words", flag="--words-too", metavar="WORD")
    loud: bool = option(False, "loudly", flag="--loud")
    hidden: str = option("", "what only a plan chooses")


TOY = replace(MEASURES["ratio_error"], name="toy", options=ToyOptions, groups=(Group("toy", "toy", ("ratio",)),))


def test_each_choice_of_a_new_measure_is_an_option_of_score(monkeypatch):
    assert list(options_of([TOY])) == ["shuffled", "least", "share", "how", "words", "loud"]
    monkeypatch.setitem(MEASURES, "toy", TOY)
    given = ["least=4", "share=0.5", "how=loud", "words=a,b", "loud=true", "test-share=0.2"]
    read = {"least": 4, "share": 0.5, "how": "loud", "words": ("a", "b"), "loud": True, "test_share": 0.2}
    assert read_options(given) == read
    for wrong in ("least=10", "share=1", "how=quietly", "loud=perhaps", "hidden=a", "least"):
        with pytest.raises(CapbiasError):
            read_options([wrong])
