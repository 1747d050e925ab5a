"""What each page draws first, before anything heavy is imported: set-up, style, navigation, heading."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import streamlit as st

from capbias_core.resources import ICON
from capbias_core.views.palette import VARIABLES
from pages.ui import view

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
.block-container {padding: .9rem clamp(1rem, 3vw, 5rem) 6rem; max-width: 1800px}
/* The heading stands in the row of Streamlit's menu, which lies above it. */
[data-testid="stHeader"] {background: transparent; pointer-events: none}
[data-testid="stHeader"] :is(button, a, [role="button"]) {pointer-events: auto}
h1 {font-size: 1.6rem !important; padding: 0 0 .5rem clamp(0px, calc(48rem - 100vw), 2.5rem) !important}
[data-testid="stMain"] [data-testid="stVerticalBlock"] {gap: .7rem}
.st-key-bar {padding: .4rem .8rem .6rem !important}
[data-testid="stMain"] h2 {font-size: 1.3rem !important; font-weight: 600 !important; padding: .4rem 0 .5rem !important}
@media (min-width: 768px) and (max-width: 1000px) {
  [data-testid="stSidebar"][data-collapsed="false"] {width: 13rem !important; min-width: 13rem !important}
  [data-testid="stSidebarContent"] {padding-inline: .75rem !important}
  [data-testid="stSidebar"] [data-testid="stExpanderDetails"] {padding-inline: .5rem !important}
  [data-testid="stSidebar"] [data-testid="stMultiSelect"] [aria-label="Clear all"] {display: none}
}
@media (max-width: 1000px) {
  [class*="st-key-stacks"] [data-testid="stHorizontalBlock"] {flex-wrap: wrap}
  [class*="st-key-stacks"] [data-testid="stColumn"] {min-width: 100%}
  /* What is chosen has the whole width of the narrow sidebar; the buttons stand below. */
  [data-testid="stSidebar"] [role="group"]:has(> [data-testid="stMultiSelectTagsContainer"]) {
    flex-wrap: wrap; justify-content: flex-end}
  [data-testid="stSidebar"] [data-testid="stMultiSelectTagsContainer"] {flex: 1 0 100%}
}
.cb-answer {border-left: 5px solid var(--cb-blue); padding: .55rem 1rem; margin: .1rem 0 .8rem}
.cb-answer b {font-size: 1.5rem; line-height: 1.3; font-weight: 650}
.cb-answer p {margin: .35rem 0 0; font-size: 1.1rem; max-width: 130ch}
.cb-error {border: 1px solid var(--cb-orange); border-left-width: 5px; border-radius: 6px; padding: .6rem 1rem;
  margin: .4rem 0; overflow-wrap: anywhere}
.cb-error b {display: inline-block; min-width: 5.2rem}
.cb-notes {display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 38rem), 1fr)); gap: .5rem 2rem}
.cb-note {font-size: .82rem; opacity: .85; max-width: 150ch; margin: .1rem 0}
:is(a, button, summary, main, canvas, [tabindex], [role="radio"]):focus-visible {
  outline: 2px solid var(--cb-blue) !important; outline-offset: 2px}
:is(main, canvas):focus-visible {outline-offset: -2px}
[data-testid="stMultiSelect"] [data-tag] {max-width: 100%; height: auto; flex-shrink: 0}
[data-testid="stMultiSelect"] [data-tag] > span {white-space: normal; overflow-wrap: break-word}
.cb-caveats {margin: .8rem 0}
.cb-caveats summary {cursor: pointer; padding: .2rem 0; text-decoration: underline; text-underline-offset: 3px;
  width: max-content}
.cb-caveats ul {margin: .2rem 0 0 1.1rem}
.cb-caveats li {margin: .25rem 0}
/* Room above a table or chart for the buttons that show while a mouse is on it. */
[data-testid="stElementContainer"]:has([data-testid="stDataFrame"], [data-testid="stPlotlyChart"]) {
  padding-top: 1.35rem; box-sizing: content-box
}
[data-testid="stButtonGroup"] [role="radio"] {color: inherit !important}
[data-testid="stSidebar"] [data-testid="stCaptionContainer"] {color: inherit; opacity: .85}
/* The greys of Streamlit's charts and of ours are too light for text: a contrast of 3.7 and 3.1 on white. */
.js-plotly-plot text:is([style*="rgb(128, 132, 149)"], [style*="rgb(138, 148, 163)"]) {
  fill: light-dark(#5A6472, #A3ADBA) !important
}
/* In any order of drawing: attribute, labels, human captions, captioner, then how it was measured. */
.st-key-bar_choices > :is(.st-key-attribute, .st-key-table, .st-key-references) {order: 1}
.st-key-bar_choices > .st-key-captioner {order: 2}
.st-key-bar_choices > div:not(.st-key-collection, .st-key-attribute, .st-key-table, .st-key-references,
  .st-key-captioner) {order: 3}
[data-testid="stDataFrame"] {font-variant-numeric: tabular-nums}
</style>"""


def frame(title: str, heading: str = "") -> None:
    """Set the page up and draw its navigation and heading. The first call of each page."""
    # The icon is a file: one by name would be fetched from elsewhere.
    st.set_page_config(page_title=f"{title} · capbias", page_icon=str(ICON), layout="wide")
    st.html(f"<style>{VARIABLES}</style>{CSS}")
    st.html(ONE_STEP_A_PAGE, unsafe_allow_javascript=True)
    view.enter(title)
    for path, label, icon in _navigation():
        view.link(st.sidebar, path, label, f":material/{icon}:")
    st.sidebar.divider()
    st.title(heading or title)
