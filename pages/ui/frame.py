"""What each page draws first, before anything heavy is imported: set-up, style, navigation, heading."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from capbias_core.resources import ICON
from capbias_core.views.palette import VARIABLES
from pages.ui import controls

ROOT = Path(__file__).resolve().parents[2]
ICONS = {
    "Answer": "balance",
    "Data": "upload_file",
    "Scores": "bar_chart",
    "Captions": "notes",
    "Images": "domino_mask",
    "Published": "menu_book",
}


@cache
def _navigation() -> tuple[tuple[str, str, str], ...]:
    """Path, title and icon of each page: a file NUMBER_Title.py in pages/, in the order of the numbers."""
    files = sorted((ROOT / "pages").glob("[0-9]*_*.py"), key=lambda file: int(file.name.partition("_")[0]))
    titles = {f"pages/{file.name}": file.stem.partition("_")[2].replace("_", " ") for file in files}
    return tuple((path, title, ICONS.get(title, "article")) for path, title in [("app.py", "Answer"), *titles.items()])


# Streamlit makes each change of the address a step of the back button; with this, only another page or tab is one.
# Before a button opens another page, Streamlit drops the choices of the page that is left; they are put back.
ONE_STEP_A_PAGE = """<script>
if (!window.oneStepAPage) {
  window.oneStepAPage = true
  const tab = url => new URL(url, location).searchParams.get('tab')
  const push = history.pushState.bind(history), replace = history.replaceState.bind(history)
  let left = null
  history.replaceState = (state, title, url) => {
    const before = new URL(location)
    replace(state, title, url)
    const dropped = [...before.searchParams.keys()].some(key => !new URL(location).searchParams.has(key))
    if (dropped) left = {href: left ? left.href : before.href, search: location.search}
    else if (location.href !== before.href) left = null
  }
  history.pushState = (state, title, url) => {
    const next = new URL(url, location)
    const here = tab(location), other = here && tab(next) && tab(next) !== here
    if (next.pathname === location.pathname && !other) return history.replaceState(state, title, url)
    if (left && left.search === next.search) replace(history.state, '', left.href)
    left = null
    push(state, title, url)
  }
  // A choice may be written before this runs: the step without choices that is left is skipped.
  addEventListener('popstate', () => location.search || history.back())
}
</script>"""
CSS = """<style>
/* The block keeps Streamlit's own padding: what is drawn before this style arrives must not move. */
[data-testid="stHeader"] {background: transparent; pointer-events: none}
[data-testid="stHeader"] :is(button, a, [role="button"]) {pointer-events: auto}
:is([data-testid="stSidebar"], [data-testid="stSidebarCollapsedControl"], [data-testid="stExpandSidebarButton"]) {
  display: none}
.block-container {max-width: 1500px}
.st-key-pages {margin: -5.1rem 0 -.4rem; align-items: center;
  border-bottom: 1px solid color-mix(in srgb, currentColor 14%, transparent); padding-bottom: .35rem}
/* Controls are lower or higher until their scripts arrive; what is below them must not move. */
:is(.st-key-bar, [class*="st-key-controls"]), .st-key-bar > :not(.st-key-open_runs) {min-height: 4.25rem}
.st-key-tab {height: 2rem}
.st-key-pages .cb-name {font-size: 1.12rem; font-weight: 680; padding-right: .8rem}
/* For readers of screens: on the screen, the line of pages says which one it is. */
.cb-heading {position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); padding: 0}
[data-testid="stMain"] h2 {font-size: 1.25rem !important; font-weight: 620 !important;
  padding: .5rem 0 .3rem !important}
[data-testid="stMain"] h3 {font-size: 1.08rem !important; padding: .3rem 0 .2rem !important}
@media (max-width: 1000px) {
  [class*="st-key-stacks"] [data-testid="stHorizontalBlock"] {flex-wrap: wrap}
  [class*="st-key-stacks"] [data-testid="stColumn"] {min-width: 100%}
}
.cb-answer {border-left: 5px solid var(--cb-blue); padding: .55rem 1rem; margin: .1rem 0 .8rem}
.cb-answer b {font-size: 1.4rem; line-height: 1.3; font-weight: 650}
.cb-answer p {margin: .35rem 0 0; font-size: 1.05rem; max-width: 120ch}
.cb-error {border: 1px solid var(--cb-orange); border-left-width: 5px; border-radius: 6px; padding: .6rem 1rem;
  margin: .4rem 0; overflow-wrap: anywhere}
.cb-error b {display: inline-block; min-width: 5.2rem}
.cb-note {font-size: .86rem; opacity: .85; max-width: 140ch; margin: .1rem 0}
.cb-sentence {font-size: 1.06rem; max-width: 120ch}
.cb-caveats {margin: .8rem 0}
.cb-caveats summary {cursor: pointer; padding: .2rem 0; text-decoration: underline; text-underline-offset: 3px;
  width: max-content}
.cb-caveats ul {margin: .2rem 0 0 1.1rem}
.cb-caveats li {margin: .25rem 0}
:is(a, button, summary, main, canvas, [tabindex], [role="radio"]):focus-visible {
  outline: 2px solid var(--cb-blue) !important; outline-offset: 2px}
:is(main, canvas):focus-visible {outline-offset: -2px}
[data-testid="stButtonGroup"] [role="radio"] {color: inherit !important}
/* The greys of Streamlit's charts and of ours are too light for text: a contrast of 3.7 and 3.1 on white. */
.js-plotly-plot text:is([style*="rgb(128, 132, 149)"], [style*="rgb(138, 148, 163)"]) {
  fill: light-dark(#5A6472, #A3ADBA) !important
}
[data-testid="stDataFrame"] {font-variant-numeric: tabular-nums}
</style>"""


@contextmanager
def frame(title: str) -> Iterator[DeltaGenerator]:
    """Set the page up and draw the line of pages; the first call of each page. Gives a place in that line."""
    # The icon is a file: one by name would be fetched from elsewhere.
    st.set_page_config(f"{title} · capbias", str(ICON), "wide", "collapsed")
    st.html(f"<style>{VARIABLES}</style>{CSS}")
    st.html(ONE_STEP_A_PAGE, unsafe_allow_javascript=True)
    line = st.container(key="pages", horizontal=True, gap="small")
    name = f'<span class="cb-name">capbias</span><h1 class="cb-heading">{title}</h1>'
    line.html(name, width="content")
    places = [(line.empty(), page) for page in _navigation()]
    account = line.container(horizontal=True, width="content")
    yield account
    for place, (path, label, icon) in places:  # now the workspace that links keep is known
        controls.link(place, path, label, f":material/{icon}:")
