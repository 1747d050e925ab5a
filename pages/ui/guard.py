"""What the web server refuses before a page is drawn: uploads from people who did not sign in. Imports nothing heavy.

Streamlit takes an upload from whoever has a session, and whoever opens a page has one. So where people have to sign in,
a page that is drawn for somebody notes their session here, and only such sessions may upload.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import streamlit as st
from starlette.responses import PlainTextResponse
from streamlit.runtime.scriptrunner import get_script_run_ctx

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

UPLOAD = re.compile(r"/upload_file(?:/([^/]*))?")
_signed_in: set[str] = set()  # ids of sessions; they are not given twice


def sign_in_required() -> bool:
    """Whether the server asks people to sign in: whether Streamlit's secrets have [auth]."""
    return st.secrets.load_if_toml_exists() and "auth" in st.secrets


def signed_in() -> bool:
    """Whether somebody signed in uses the page that is being drawn, whose session may then upload."""
    known, context = bool(st.user.is_logged_in), get_script_run_ctx()
    if context:
        (_signed_in.add if known else _signed_in.discard)(context.session_id)
    return known


class UploadGuard:
    """Answers 403 to an upload of a session in which nobody signed in, where people have to."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = UPLOAD.search(scope["path"]) if scope["type"] == "http" else None
        if found and scope["method"] != "OPTIONS" and found[1] not in _signed_in and sign_in_required():
            await PlainTextResponse("Sign in first.", 403)(scope, receive, send)
        else:
            await self.app(scope, receive, send)
