"""Leakage at equal length: captions cut after more and more words, scored beside the whole ones."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from capbias_core.measures.registry import METRICS
from capbias_core.runs.engine import Engine
from capbias_core.runs.plan import Request, plan
from capbias_core.views.lengths import LENGTHS, by_length, cuts_of, keep_cuts, lengths_chart, lengths_table
from capbias_core.workspace.conditions import CUT
from pages.ui import cached
from pages.ui.base import errors, note, plain
from pages.ui.chart import draw_chart
from pages.ui.running import start_button
from pages.ui.table import draw_table

ASKED = ("LIC", "LIC_M")


def lengths_view(engine: Engine, collection: str, request: Request) -> None:
    """Of the chosen captioners, drawn when it is opened."""
    box = st.expander("Control for caption length", key="lengths", on_change="rerun")
    if not box.open:
        return
    with box, errors():
        sets = {item.name: item for item in engine.workspace.items("captions", collection)}
        whole = [name for name in request.captions if CUT not in sets[name].details]
        words = {name: cached.mean_words(str(engine.folder), sets[name].hash) for name in whole}
        note("Average caption length (words): " + "; ".join(f"{plain(name)} {own:.1f}" for name, own in words.items()))
        cuts = cuts_of(engine.workspace, collection)
        ready = [name for name in whole if name in cuts]
        if missing := [name for name in whole if name not in cuts]:
            note("Shortened sets keep the first sentence, or the first 5, 10, 20 or 40 words of each caption.")
            if st.button(f"Shorten the captions of {plain(', '.join(missing))}", key="cut"):
                for name in missing:
                    keep_cuts(engine.workspace, collection, name)
                st.rerun()
        if not ready:
            return
        asked = tuple(item.name for name in ready for item in cuts[name])
        specs = plan(engine.workspace, replace(request, captions=asked, metrics=("lic",), words=False))
        start_button(engine, collection, specs, "Score shortened sets", "score_cuts")
        ids = sorted(spec.run_id for spec in specs)
        rows = cached.of_runs(
            engine.workspace,
            ids,
            "lengths",
            lambda: by_length(engine.workspace, collection, engine.workspace.results(ids)),
        )
        rows = rows[rows["metric"].isin(ASKED)]
        if "LIC" in set(rows["metric"]):  # both on the same images
            rows = rows[rows["run_id"].isin(rows[rows["metric"] == "LIC"]["run_id"])]
        if rows.empty:
            return
        metric = "LIC" if "LIC" in set(rows["metric"]) else "LIC_M"
        neutral = METRICS[metric].neutral(len(specs[0].attribute["values"]))
        figure = lengths_chart(rows[rows["metric"] == metric], metric, neutral)
        draw_chart(figure, key="lengths_chart", alt=f"{metric} against the length of captions", notes=LENGTHS)
        draw_table(lengths_table(rows), alt="Leakage of captions that are cut")
