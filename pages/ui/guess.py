"""The tab Guess yourself of Captions: a person guesses labels from masked captions and sees the attacker's guesses.

Guesses stay in the session. Nothing is written to disk.
"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from capbias_core.runs.engine import Engine
from capbias_core.spreadsheets import csv_text
from capbias_core.types import counted
from capbias_core.views.captions import draw_captions, score_guesses, written_captions
from capbias_core.workspace.store import RunRow
from pages.ui import cached, view
from pages.ui.base import box, note, plain
from pages.ui.table import THREE_LINES, draw_table

GUESSES = "guesses"  # in the session: (run, draw) -> places of the guessed values
CAPTION_WIDTH = 240  # so that both guesses are in view in a narrow window
CSS = """<style>
.st-key-guess_values button {min-height: 3.5rem}
.st-key-guess_values button p {font-size: 1.15rem}
.st-key-guess_caption {min-height: 6rem}
</style>"""


def guess_yourself(engine: Engine, runs: dict[str, RunRow], name: str) -> None:
    """One caption at a time; the scores after the last. runs: scored sets by name. name: the set that is read."""
    run, held = runs[name], st.session_state.setdefault(GUESSES, {})
    last = max((draw for run_id, draw in held if run_id == run.run_id), default=1)  # of somebody who left this tab
    draw = max(1, view.state("draw", last))
    drawn = _drawn(engine.folder, name, run.run_id, draw)
    if drawn.empty:
        note(f"Too few captions of {name} are left to guess.")
        if draw > 1:
            st.button("Start with the first captions", on_click=view.choose, args=("draw", 1))
        return
    guesses = held.setdefault((run.run_id, draw), [])
    if len(guesses) == len(drawn):
        _result(engine, runs, name, draw, drawn)
        return
    attribute, at = cached.scores(engine.folder, run.run_id).attribute, len(guesses)
    values = attribute.values
    st.html(CSS)
    note(f"Caption {at + 1} of {len(drawn)}")
    with st.container(key="guess_caption"):
        box(drawn["masked"].iloc[at])
    note(f"Which {attribute.name} label does the image of this caption have?")
    with st.container(key="guess_values", horizontal=True):
        for place, value in enumerate(values):
            st.button(
                plain(value),
                key=f"guess_{at}_{place}",
                shortcut=str(place + 1) if place < 9 else None,
                width="stretch",
                on_click=_keep,
                args=(guesses, at, [place]),
            )
    st.button(
        "Undo last guess",
        key=f"undo_{at}",
        shortcut="Backspace",
        disabled=not guesses,
        on_click=_keep,
        args=(guesses, at - 1, []),
    )
    hidden = f"{attribute.mask_token} hides words that name the label. " if attribute.masked_words else ""
    binary = "binary and " if len(values) == 2 else ""
    note(f"{hidden}Labels are {binary}assigned by others; chance is {1 / len(values):.0%}.")
    note("Your guesses are not saved. Reloading the page discards them.")


def _keep(guesses: list[int], at: int, last: list[int]) -> None:
    """Let guesses end with the last. A second click that comes before the page is redrawn changes nothing."""
    guesses[at:] = last


@st.cache_resource(show_spinner=False, max_entries=64)
def _drawn(folder: str, name: str, run_id: str, draw: int) -> pd.DataFrame:
    return draw_captions(cached.scores(folder, run_id), name, draw)


def _result(engine: Engine, runs: dict[str, RunRow], name: str, draw: int, drawn: pd.DataFrame) -> None:
    """Both accuracies, the captions with their labels, and the file for the view anonymous-bench."""
    run, guesses = runs[name], st.session_state[GUESSES][runs[name].run_id, draw]
    attribute = cached.scores(engine.folder, run.run_id).attribute
    score, values = score_guesses(drawn, guesses), pd.Series(attribute.values)
    you, attacker = (
        "{:.0f}% [{:.0f}, {:.0f}]".format(*(score[f"{who}{part}"] for part in ("value", "ci_low", "ci_high")))
        for who in ("", "attacker_")
    )
    box(
        f"Your accuracy is {you}, the attacker's {attacker}.",
        f"{counted(len(drawn), 'caption')} of {name}, attacker {run.spec.attacker}, 95% Wilson intervals. "
        f"Chance is {1 / len(values):.0%}.",
        "The attacker trained on captions of other images with their labels.",
    )
    more = _drawn(engine.folder, name, run.run_id, draw + 1)
    buttons = st.container(horizontal=True)
    buttons.button(
        "Start again with other captions",
        type="primary",
        key="other_captions",
        disabled=more.empty,
        on_click=view.choose,
        args=("draw", draw + 1),
    )
    table = _human_scores(engine, runs)
    buttons.download_button(
        "CSV", csv_text(table), "human_guesses.csv", "text/csv", key="guesses_csv", on_click="ignore"
    )
    draw_table(
        pd.DataFrame(
            {
                "caption": written_captions(drawn, cached.captions(engine.folder, run.spec.captions)),
                "label": values[drawn["label"]].to_numpy(),
                "you": values[guesses].to_numpy(),
                "attacker": values[drawn["predicted"]].to_numpy(),
                "image": drawn["image_id"],
            }
        ),
        row_height=THREE_LINES,
        column_config={"caption": st.column_config.Column(width=CAPTION_WIDTH)},
        alt="Captions with label and guesses",
    )
    note(
        "`capbias score --view anonymous-bench --human` reads the CSV; a correlation needs three captioners. "
        f"It has a row for each caption set that you finished here ({', '.join(table['model'])})."
    )
    note(attribute.note)


def _human_scores(engine: Engine, runs: dict[str, RunRow]) -> pd.DataFrame:
    """A row for each set with finished draws, all of them together."""
    rows = []
    for name, run in runs.items():
        held = {draw: own for (run_id, draw), own in st.session_state[GUESSES].items() if run_id == run.run_id}
        drawn = {draw: _drawn(engine.folder, name, run.run_id, draw) for draw in held}
        done = [draw for draw, own in held.items() if own and len(own) == len(drawn[draw])]
        if done:
            asked = pd.concat([drawn[draw] for draw in done])
            score = score_guesses(asked, [place for draw in done for place in held[draw]])
            rows.append(
                {"model": name, "attribute": run.spec.attribute["name"], **score, "attacker": run.spec.attacker}
            )
    return pd.DataFrame(rows)
