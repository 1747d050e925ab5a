"""Sign-in where the server asks for it, by Streamlit's OpenID Connect, and whose workspace the pages show.

Without `[auth]` in Streamlit's secrets there is no sign-in, and everybody has the one workspace.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import streamlit as st

from capbias_core.errors import CapbiasError
from capbias_core.whole_files import private_folder
from capbias_core.workspace.store import checked_name, default_folder
from pages.ui import view
from pages.ui.guard import sign_in_required, signed_in

PEOPLE, SHARED = "people", "shared"  # folders in CAPBIAS_HOME
OF_WORKSPACE = ("collection", *view.OF_COLLECTION)  # choices; another workspace has its own
# The identity provider sends people to the front page. They go on to the link that they had opened.
KEEP_LINK = "<script>sessionStorage.setItem('capbias_link', location.pathname + location.search)</script>"
FOLLOW_LINK = """<script>{
  const kept = sessionStorage.getItem('capbias_link')
  sessionStorage.removeItem('capbias_link')
  if (kept && kept !== location.pathname + location.search) location.replace(location.origin + kept)
}</script>"""


def nobody() -> bool:
    """Whether the server asks people to sign in, and nobody is."""
    return sign_in_required() and not signed_in()


def ways_in() -> None:
    """A button for each identity provider; whoever signs in comes back to this link."""
    st.html(KEEP_LINK, unsafe_allow_javascript=True)
    for provider in _providers():
        label = f"Sign in with {provider}" if provider else "Sign in"
        st.button(label, type="primary", key=f"sign_in_{provider}", on_click=st.login, args=(provider,))


def person() -> str:
    """Who uses the page, the same at every sign-in; '' where the server has no sign-in, or nobody is."""
    if not sign_in_required() or not st.user.is_logged_in:
        return ""
    named = f"{st.user.get('iss', '')}\n{st.user['sub']}"
    return hashlib.sha256(named.encode()).hexdigest()[:16]


def workspace_folder() -> Path:
    """The workspace that the page shows: one's own, or one that all who sign in share."""
    home = default_folder()
    if not person():
        return home
    st.html(FOLLOW_LINK, unsafe_allow_javascript=True)
    own = _name()
    folders = {own: home / PEOPLE / person()} | {f"{path.name} (shared)": path for path in shared_workspaces()}
    chosen = view.selectbox(
        st.sidebar,
        "Workspace",
        list(folders),
        key="workspace",
        missing="the workspace",
        on_change=view.forget,
        args=(OF_WORKSPACE,),
    )
    st.sidebar.button("Sign out", key="sign_out", on_click=st.logout)
    return folders[chosen]


def shared_workspaces() -> list[Path]:
    """The folders of the workspaces that all who sign in share, by name."""
    folder = default_folder() / SHARED
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def share(name: str) -> None:
    """Make a workspace that all who sign in share, and show it. Raises CapbiasError for a name that does not do."""
    name = checked_name(name)
    if name.startswith("."):
        raise CapbiasError(f"The name {name!r} begins with a dot.", "Give it another name.")
    private_folder(default_folder() / SHARED / name)
    view.forget(OF_WORKSPACE)
    view.choose("workspace", f"{name} (shared)")


def _providers() -> list[str | None]:
    """The names of the identity providers; None for one without a name."""
    return [name for name, settings in st.secrets["auth"].items() if isinstance(settings, Mapping)] or [None]


def _name() -> str:
    """What the identity provider calls who is signed in. It is shown, and no right rests on it."""
    return str(st.user.get("email") or st.user.get("name") or st.user["sub"])[:80]
