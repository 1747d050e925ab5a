"""Sign-in where the server asks for it, by Streamlit's OpenID Connect; whose workspace pages show; who may upload.

Without `[auth]` in Streamlit's secrets there is no sign-in, and everybody has the one workspace. With it, a page that
is drawn for somebody who signed in notes their session here, for `guard.py`.

The server imports this before a page is drawn, so heavy modules are imported where they are used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx

from pages.ui import controls
from pages.ui.plain import plain

PEOPLE = "people"  # the folder of their workspaces in CAPBIAS_HOME
# The identity provider sends people to the front page. They go on to the link that they had opened.
KEEP_LINK = "<script>sessionStorage.setItem('capbias_link', location.pathname + location.search)</script>"
FOLLOW_LINK = """<script>{
  const kept = sessionStorage.getItem('capbias_link')
  sessionStorage.removeItem('capbias_link')
  if (kept && kept !== location.pathname + location.search) location.replace(location.origin + kept)
}</script>"""
_signed_in: set[str] = set()  # IDs of sessions; they are not given twice


def required() -> bool:
    """Whether the server asks people to sign in."""
    return st.secrets.load_if_toml_exists() and "auth" in st.secrets


def nobody() -> bool:
    """Whether the server asks people to sign in, and nobody is. The session of somebody who is may then upload."""
    if not required():
        return False
    known, context = bool(st.user.is_logged_in), get_script_run_ctx()
    if context:
        (_signed_in.add if known else _signed_in.discard)(context.session_id)
    return not known


def signed_in(session_id: str) -> bool:
    """Whether somebody signed in shows a page in this session, or nobody has to sign in."""
    return session_id in _signed_in or not required()


def ways_in() -> None:
    """A button for each identity provider; whoever signs in comes back to this link."""
    st.html(KEEP_LINK, unsafe_allow_javascript=True)
    providers = [name for name, settings in st.secrets["auth"].items() if isinstance(settings, Mapping)]
    for provider in providers or [None]:  # one provider may have no name
        label = f"Sign in with {plain(provider)}" if provider else "Sign in"
        st.button(label, type="primary", key=f"sign_in_{provider}", on_click=st.login, args=(provider,))


def person() -> str:
    """Who uses the page, the same at each sign-in; '' if the server has no sign-in, or nobody is signed in."""
    if not required() or not st.user.is_logged_in:
        return ""
    identity = f"{st.user.get('iss', '')}\n{st.user['sub']}"
    return hashlib.sha256(identity.encode()).hexdigest()[:16]


def workspace_folder(container: DeltaGenerator) -> tuple[Path, bool]:
    """The workspace that the page shows, and whether it can only be read: that of the person, or the shared one."""
    from capbias_core.workspace.store import default_folder, shared_folder

    home = default_folder()
    if not person():
        return home, False
    st.html(FOLLOW_LINK, unsafe_allow_javascript=True)
    # What the identity provider calls the person. It is shown, and no right depends on it.
    name = str(st.user.get("email") or st.user.get("name") or st.user["sub"])[:80]
    shared = shared_folder()
    folders = {name: home / PEOPLE / person()} | ({f"{shared.name} (shared)": shared} if shared else {})
    chosen = controls.selectbox(
        container,
        "Workspace",
        list(folders),
        key="workspace",
        on_change=_leave_collection,
        label_visibility="collapsed",
    )
    controls.carry(workspace=chosen)
    container.button("Sign out", key="sign_out", on_click=st.logout)
    return folders[chosen], folders[chosen] == shared


def _leave_collection() -> None:
    """Another workspace has other collections."""
    controls.leave("collection", *controls.OF_COLLECTION)
    controls.leave_tab()
