"""What reaches the web server: each request and message passes here before Streamlit sees it.

For a WebSocket of a foreign origin Streamlit asks the internet for the machine's address, twice, and blocks. It takes
uploads and clears caches for whoever has a session, and answers `metrics` for any host. The server imports this before
a page is drawn, so heavy modules are imported where they are used.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose
from streamlit import config, net_util
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

from capbias_core.cli.app import sign_in as check_sign_in
from pages.ui import sign_in
from pages.ui.style import STYLE

UPLOAD = re.compile(r"/upload_file(?:/([^/]*))?")
HEALTH, METRICS = "/_stcore/health", "/_stcore/metrics"
LOOPBACK = {"localhost", "127.0.0.1", "::1"}
# What a browser asks of a page. Caches are everybody's, and nobody needs the server's git state.
ASKED = {"rerun_script", "app_heartbeat", "stop_script", "file_urls_request", "backend_operation_request"}
HEADERS = {"Content-Security-Policy": "frame-ancestors 'none'", "X-Frame-Options": "DENY"}


class Guard:
    """Refuses unknown hosts and foreign origins, uploads without sign-in, and messages that no page needs. Other sites
    may not frame an answer."""

    def __init__(self, app: ASGIApp):
        check_sign_in()  # also of a server that was not started by `capbias app`
        self.app = app
        net_util._external_ip = ""  # known, so that nothing asks the internet for it; no host has this name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        web, path = scope["type"] == "http", scope["path"]
        refused = "" if web and path.endswith(HEALTH) else _refused(Headers(scope=scope))
        upload = UPLOAD.search(path) if web and scope["method"] != "OPTIONS" else None
        if not refused and upload and not sign_in.signed_in(upload[1] or ""):
            refused = "Sign in first."
        if refused and web:
            await PlainTextResponse(refused, 403, HEADERS)(scope, receive, send)
        elif refused:
            await WebSocketClose(reason=refused)(scope, receive, send)
        elif web and path.endswith(METRICS):
            await PlainTextResponse("Not found.", 404, HEADERS)(scope, receive, send)
        else:
            await self.app(scope, receive if web else _asked(receive), _framed(send) if web else send)


def _refused(headers: Mapping[str, str]) -> str:
    """Why a request is refused, '' if it is not: its host is unknown, or a page of another site sent it."""
    host, origin = headers.get("host"), headers.get("origin")
    if not is_host_allowed(host):
        return "This host name is not allowed."
    if not origin or origin in config.get_option("server.corsAllowedOrigins"):
        return ""
    try:
        site = urlsplit(origin)
        # Behind a proxy the host may be another one than the browser's. Another port of this machine is another site;
        # who allows every host has named none.
        allowed = config.get_option("server.allowedHosts")
        named = allowed and "*" not in allowed and (site.hostname or "").rstrip(".") not in LOOPBACK
        known = site.netloc == host or (named and is_host_allowed(site.netloc))
    except ValueError:
        known = False
    return "" if known else "This origin is not allowed."


def _asked(receive: Receive) -> Receive:
    """The messages of a WebSocket that a page needs; others are passed over."""

    async def next_asked() -> Message:
        while True:
            message = await receive()
            data = message.get("bytes")
            if message["type"] != "websocket.receive" or data is None:
                return message
            asked = BackMsg()
            try:
                asked.ParseFromString(data)
            except Exception:  # any error of protobuf; Streamlit closes the connection
                return message
            if asked.WhichOneof("type") in ASKED:
                return message

    return next_asked


def _framed(send: Send) -> Send:
    """Answers with HEADERS, pages also with STYLE at their end."""
    start: Message = {}
    body = b""

    async def with_headers(message: Message) -> None:
        nonlocal start, body
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update(HEADERS)
            if headers.get("content-type", "").startswith("text/html"):
                start = message
                return
        if not start:
            await send(message)
            return
        body += message.get("body", b"")
        if not message.get("more_body"):
            headers = MutableHeaders(scope=start)
            if headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            if b"</body>" in body:  # not the answer to HEAD
                body = body.replace(b"</body>", f"{STYLE}</body>".encode())
                headers["content-length"] = str(len(body))
                for name in ("content-encoding", "etag", "last-modified"):  # of the page without it
                    del headers[name]
            await send(start)
            await send({"type": "http.response.body", "body": body})

    return with_headers
