"""The tab Guess yourself of Captions: a person guesses labels from masked captions and sees the attacker's guesses.

Guesses stay in the session. Nothing is written to disk.
"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from capbias_core.spreadsheets import csv_text
from capbias_core.types import counted
from capbias_core.views.captions import draw_captions, score_guesses, written_captions
from capbias_core.workspace.store import RunRow
from pages.ui import cached, present, view
from pages.ui.bar import Bar
from pages.ui.base import box, note
from pages.ui.captions import scored_sets
from pages.ui.drawing import THREE_LINES, draw_table
from pages.ui.plain import plain

GUESSES = "guesses"  # in the session: (run, draw) -> codes of the guessed values
CAPTION_WIDTH = 240  # so that both guesses are in view in a narrow window
CSS = """<style>
.st-key-guess_values button {min-height: 3.5rem}
.st-key-guess_values button p {font-size: 1.15rem}
.st-key-guess_caption {min-height: 6rem}
</style>"""


def guess_tab(bar: Bar) -> None:
    """One caption at a time; the scores after the last."""
    runs = scored_sets(bar)
    if not runs:
        return
    name = bar.captioner(list(runs))
    run_id, guesses_of = runs[name].run_id, st.session_state.setdefault(GUESSES, {})
    last = max((draw for run, draw in guesses_of if run == run_id), default=1)  # of somebody who left this tab
    draw = max(1, view.state("draw", last))
    captions = _drawn(bar.folder, name, run_id, draw)
    if captions.empty:
        note(f"Too few captions of {name} are left to guess.")
        if draw > 1:
            st.button("Start with the first captions", on_click=view.choose, args=("draw", 1))
        return
    guesses = guesses_of.setdefault((run_id, draw), [])
    if len(guesses) == len(captions):
        _result(bar, runs, name, draw, captions)
        return
    attribute, at = cached.scores(bar.folder, run_id).attribute, len(guesses)
    values = attribute.values

    def save(at: int, codes: list[int]) -> None:
        guesses[at:] = codes  # a second click that comes before the page is drawn again changes nothing

    st.html(CSS)
    question = f"Which {attribute.name} label does the image of this caption have?"
    with present.whole(question):
        note(f"Caption {at + 1} of {len(captions)}")
        with st.container(key="guess_caption"):
            box(captions["masked"].iloc[at])
        if not present.on():  # else it is the headline
            note(question)
        with st.container(key="guess_values", horizontal=True):
            for code, value in enumerate(values):
                st.button(
                    plain(value),
                    key=f"guess_{at}_{code}",
                    shortcut=str(code + 1) if code < 9 else None,
                    width="stretch",
                    on_click=save,
                    args=(at, [code]),
                )
        st.button(
            "Undo last guess",
            key=f"undo_{at}",
            shortcut="Backspace",
            disabled=not guesses,
            on_click=save,
            args=(at - 1, []),
        )
    hidden = f"{attribute.mask_token} hides words that name the label. " if attribute.masked_words else ""
    binary = "binary and " if len(values) == 2 else ""
    note(f"{hidden}Labels are {binary}assigned by others; chance is {1 / len(values):.0%}.")
    note("Your guesses are not saved. Reloading the page discards them.")


@st.cache_resource(show_spinner=False, max_entries=64)
def _drawn(folder: str, name: str, run_id: str, draw: int) -> pd.DataFrame:
    return draw_captions(cached.scores(folder, run_id), name, draw)


def _result(bar: Bar, runs: dict[str, RunRow], name: str, draw: int, captions: pd.DataFrame) -> None:
    """Both accuracies, the captions with their labels, and the file for the view anonymous-bench."""
    run, guesses_of = runs[name], st.session_state[GUESSES]
    attribute, guesses = cached.scores(bar.folder, run.run_id).attribute, guesses_of[run.run_id, draw]
    score, values = score_guesses(captions, guesses), pd.Series(attribute.values)
    you, attacker = (
        "{:.0f}% [{:.0f}, {:.0f}]".format(*(score[f"{who}{part}"] for part in ("value", "ci_low", "ci_high")))
        for who in ("", "attacker_")
    )
    box(
        f"Your accuracy is {you}, the attacker's {attacker}.",
        f"{counted(len(captions), 'caption')} of {name}, attacker {run.spec.attacker}, 95% Wilson intervals. "
        f"Chance is {1 / len(values):.0%}.",
        "The attacker trained on captions of other images with their labels.",
    )
    rows = []  # of each set with finished draws, all of them together
    for model, of_model in runs.items():
        draws = {number: codes for (run_id, number), codes in guesses_of.items() if run_id == of_model.run_id}
        drawn = {number: _drawn(bar.folder, model, of_model.run_id, number) for number in draws}
        done = [number for number, codes in draws.items() if codes and len(codes) == len(drawn[number])]
        if done:
            asked = pd.concat([drawn[number] for number in done])
            codes = [code for number in done for code in draws[number]]
            facts = {"model": model, "attribute": of_model.spec.attribute["name"]}
            rows.append({**facts, **score_guesses(asked, codes), "attacker": of_model.spec.attacker})
    table = pd.DataFrame(rows)
    buttons = st.container(horizontal=True)
    buttons.button(
        "Start again with other captions",
        type="primary",
        key="other_captions",
        disabled=_drawn(bar.folder, name, run.run_id, draw + 1).empty,
        on_click=view.choose,
        args=("draw", draw + 1),
    )
    buttons.download_button(
        "CSV", csv_text(table), "human_guesses.csv", "text/csv", key="guesses_csv", on_click="ignore"
    )
    draw_table(
        pd.DataFrame(
            {
                "caption": written_captions(captions, cached.captions(bar.folder, run.spec.captions)),
                "label": values[captions["label"]].to_numpy(),
                "you": values[guesses].to_numpy(),
                "attacker": values[captions["predicted"]].to_numpy(),
                "image": captions["image_id"],
            }
        ),
        row_height=THREE_LINES,
        column_config={"caption": st.column_config.Column(width=CAPTION_WIDTH)},
        alt="Captions with label and guesses",
    )
    note(
        f"The CSV has a row for each caption set that you finished here ({', '.join(table['model'])}). The command "
        "capbias view anonymous-bench --human FILE reads it; a correlation needs three captioners."
    )
    note(attribute.note)
