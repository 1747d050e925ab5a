"""What a web server refuses: unknown hosts, foreign origins, messages that no page needs; and that it asks nobody."""

from __future__ import annotations

import asyncio
import http.client
import socket
from urllib.parse import urlsplit

import pytest
from streamlit import config
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from pages.ui import guard
from tests.browser import server

pytestmark = pytest.mark.long


def test_a_foreign_origin_is_refused_and_nothing_is_asked_of_the_internet(tmp_path, monkeypatch):
    """The only way out is a proxy that never answers; whoever asks it would wait. A config.toml in the current folder
    does not count."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.setblocking(False)
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        (tmp_path / ".streamlit").mkdir()
        planted = '[server]\ncorsAllowedOrigins = ["https://evil.test"]\nbaseUrlPath = "evil"\n'
        (tmp_path / ".streamlit" / "config.toml").write_text(planted)
        with server(tmp_path / "home", folder=tmp_path) as (address, _):
            host = urlsplit(address).netloc

            def opens(origin: str | None) -> bool:
                try:
                    connect(
                        f"ws://{host}/_stcore/stream", origin=origin, subprotocols=["streamlit"], proxy=None
                    ).close()
                except InvalidStatus as refused:
                    assert refused.response.status_code == 403
                    return False
                return True

            assert opens(address) and opens(None)
            foreign = [
                "https://evil.test",
                "http://localhost:1",
                f"http://{host}.evil.test",
                "null",
                "http://[",
                "file://",
            ]
            assert [origin for origin in foreign if opens(origin)] == []

            def status(path: str, name: str = host) -> tuple[int, str | None]:
                connection = http.client.HTTPConnection(host)
                connection.request("GET", path, headers={"Host": name})
                answer = connection.getresponse()
                return answer.status, answer.headers["Content-Security-Policy"]

            assert status("/") == status("/Data") == (200, "frame-ancestors 'none'")
            assert status("/_stcore/metrics")[0] == 404
            assert status("/", "evil.test")[0] == 403 and status("/_stcore/health", "10.0.0.1")[0] == 200
        with pytest.raises(BlockingIOError):
            silent.accept()


@pytest.mark.parametrize(
    ("origin", "host", "refused"),
    [
        ("https://lab.test", "127.0.0.1:8501", False),  # a proxy that passes its own name of the host
        ("http://127.0.0.1:9", "127.0.0.1:8501", True),
        ("http://LOCALHOST.:9", "127.0.0.1:8501", True),
        ("https://evil.test", "lab.test", True),
        ("https://partner.test", "lab.test", False),
        ("https://lab.test", "evil.test", True),
    ],
)
def test_origins_are_those_of_the_allowed_names(monkeypatch, origin, host, refused):
    options = {
        "server.allowedHosts": ["localhost", "127.0.0.1", "lab.test"],
        "server.corsAllowedOrigins": ["https://partner.test"],
    }
    monkeypatch.setattr(config, "get_option", options.__getitem__)
    assert bool(guard._refused({"host": host, "origin": origin})) is refused
    for every_host in ([], ["*"]):  # names no site
        options["server.allowedHosts"] = every_host
        assert guard._refused({"host": "lab.test", "origin": "https://evil.test"})


def test_only_messages_that_pages_need_are_passed_on():
    """Clearing the caches, which are everybody's, is none of them."""
    kinds = {field.name: field for field in BackMsg.DESCRIPTOR.oneofs_by_name["type"].fields}
    messages = []
    for name, field in kinds.items():
        message = BackMsg()
        if field.message_type:
            getattr(message, name).SetInParent()
        else:
            setattr(message, name, field.enum_type.values[0].number if field.enum_type else True)
        messages.append({"type": "websocket.receive", "bytes": message.SerializeToString()})
    messages.append({"type": "websocket.receive", "bytes": b"\xff"})  # Streamlit says what is wrong with it
    messages.append({"type": "websocket.disconnect"})
    waiting = iter(messages)

    async def receive():
        return next(waiting)

    async def passed() -> list[dict]:
        asked, result = guard._asked(receive), []
        while not result or result[-1]["type"] == "websocket.receive":
            result.append(await asked())
        return result

    expected = [message for name, message in zip(kinds, messages, strict=False) if name in guard.ASKED]
    assert asyncio.run(passed()) == [*expected, *messages[-2:]]
    assert "clear_cache" in kinds and kinds.keys() >= guard.ASKED
