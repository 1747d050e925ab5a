"""The style sheet and script of all pages. `guard.py` writes them into a page, so that nothing moves as they arrive."""

from __future__ import annotations

from capbias_core.views.markup import style
from capbias_core.views.palette import VARIABLES

PAGES = """
[data-testid="stHeader"] {background: transparent; pointer-events: none}
[data-testid="stHeader"] :is(button, a, [role="button"]) {pointer-events: auto}
:is([data-testid="stSidebar"], [data-testid="stSidebarCollapsedControl"], [data-testid="stExpandSidebarButton"]) {
  display: none}
/* Streamlit learns with the first message only that pages are wide. */
.block-container.block-container {max-width: 1500px; padding-top: 1.9rem}
@media (min-width: 865px) {
  .block-container.block-container {padding-left: 5rem; padding-right: 5rem}
}
.st-key-pages {margin: 0 0 -.4rem; flex: none; min-height: 2.95rem; align-items: center;
  border-bottom: 1px solid color-mix(in srgb, currentColor 14%, transparent); padding-bottom: .35rem}
/* Controls are lower or higher until their scripts arrive; what is below them must not move. */
:is(.st-key-bar, [class*="st-key-controls"]), .st-key-bar > :not(.st-key-open_runs) {min-height: 4.25rem}
.st-key-bar {flex: none}
.st-key-confirm {min-height: 3.5rem}
.st-key-tab {height: 2rem}
[class*="st-key-path_"] {min-height: 4.25rem}
[class*="st-key-file_"] {min-height: 6rem}
/* Icons are words until their font arrives. */
[data-testid="stIconMaterial"] {max-width: 1.5em; overflow: hidden; white-space: nowrap}
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
/* Cells have one width, and as many stand beside each other as fit. */
.cb-cells {display: grid; grid-template-columns: repeat(auto-fill, minmax(12rem, 1fr)); gap: .8rem}
.cb-cells > section {border: 1px solid color-mix(in srgb, currentColor 20%, transparent); border-radius: 8px;
  padding: .7rem; min-width: 0}
.cb-cells img {width: 100%; border-radius: 6px; margin: .3rem 0; display: block}
"""
# Streamlit makes each change of the address a step of the back button; with this, only another page or tab is one.
# Before a button opens another page, Streamlit drops the choices of the page that is left; they are put back.
ONE_STEP_A_PAGE = """<script>
{
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
  // The step without choices, which a page opens on before it writes them, is skipped.
  addEventListener('popstate', () => location.search || history.back())
}
</script>"""
SHEETS = "".join(map(style, ("answer", "coloured", "forest")))
STYLE = f"<style>{VARIABLES}{PAGES}{SHEETS}</style>{ONE_STEP_A_PAGE}"
