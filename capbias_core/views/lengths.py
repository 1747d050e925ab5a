"""Leakage at equal length: captions cut after more and more words, each cut scored like any caption set.

Long captions have more words in which an attribute can show, so captioners are compared where both
have written as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Annotated

import pandas as pd

from capbias_core.attackers import DEFAULT_ATTACKER
from capbias_core.errors import CapbiasError
from capbias_core.measures.options import Attacked, Option, Seeded
from capbias_core.measures.registry import METRICS
from capbias_core.prepare.text import cut, cut_text, mean_words
from capbias_core.question import Question
from capbias_core.runs.plan import plan
from capbias_core.views.charts import graph_objects
from capbias_core.views.tables import value_text
from capbias_core.views.view import Run, Shown, nothing_run
from capbias_core.workspace.conditions import CUT
from capbias_core.workspace.labels import attribute_of, table_with
from capbias_core.workspace.store import Item, Workspace

CUTS = (0, 5, 10, 20, 40)  # SENTENCE, and words
MOST = 500


def lengths(
    workspace: Workspace,
    collection: Annotated[str, Option("the collection", metavar="NAME")],
    captioners: Annotated[Sequence[str], Option("caption sets, as they were written", "--captioner", metavar="NAME")],
    attribute: Annotated[str, Option("the protected attribute (default: gender)", metavar="NAME")] = "gender",
    references: Annotated[str, Option("human captions (default: none, LIC_M alone)", metavar="NAME")] = "",
    cuts: Annotated[
        Sequence[int], Option("after how many words; 0: after the first sentence", "--cut", metavar="WORDS")
    ] = CUTS,
    attacker: Annotated[str, Attacked.about()["attacker"]] = DEFAULT_ATTACKER,
    seeds: Annotated[int, Seeded.about()["seeds"]] = Seeded.seeds,
    run: Run = nothing_run,
) -> Shown:
    """Cuts captions, keeps the cuts as sets of the collection, and shows the scores of each (`by_length`).

    run: computes the scores that are missing first.
    """
    sets, notes = [], []
    for name in captioners:
        shortened = keep_cuts(workspace, collection, name, cuts)
        sets += [item.name for item in shortened]
        if missing := [text for text in map(cut_text, cuts) if text not in map(cut_of, shortened)]:
            notes.append(f"{name}: {', '.join(missing)} cut no caption and have no rows.")
    table = table_with(workspace.items("labels", collection), attribute)
    asked = (collection, (*captioners, *sets), table.name, attribute, ("lic",), references, (attacker,), seeds)
    specs = plan(workspace, Question(*asked))
    run(specs, collection)
    rows = by_length(workspace, collection, workspace.results({spec.run_id for spec in specs}))
    return lengths_shown(rows, len(attribute_of(table, attribute)[0].values), notes)


def lengths_shown(rows: pd.DataFrame, values: int, notes: Sequence[str] = ()) -> Shown:
    """Rows of `by_length` as a view; the chart is of LIC, or of LIC_M without human captions. values: how many the
    attribute has. notes: further ones."""
    metric = "LIC" if "LIC" in set(rows["metric"]) else "LIC_M"
    drawn, table = rows[rows["metric"] == metric], rows[rows["metric"].isin(["LIC", "LIC_M"])]
    if metric == "LIC":  # both on the same images
        table = table[table["run_id"].isin(drawn["run_id"])]
    return Shown(
        title=f"{metric} against the length of captions",
        rows=rows,
        notes=(*notes, LENGTHS),
        table=lengths_table(table),
        chart=lambda: lengths_chart(drawn, metric, METRICS[metric].neutral(values)),
    )


def keep_cuts(workspace: Workspace, collection: str, name: str, cuts: Sequence[int] = CUTS) -> list[Item]:
    """Keep a captioner's captions cut in each way, as sets of their own; a cut that changes nothing is left out.

    Raises CapbiasError for a set that is itself a cut, and for a number of words that is none.
    """
    item = workspace.item("captions", name, collection)
    if CUT in item.details:
        raise CapbiasError(f"The captions of {name} are cut already.", "Name the set that was cut.")
    if wrong := [words for words in cuts if not 0 <= words <= MOST]:
        raise CapbiasError(f"Captions are cut after 1 to {MOST} words, or 0 for the first sentence, not {wrong[0]}.")
    whole, items = workspace.frame(item.hash), []
    for words in cuts:
        frame = cut(whole, words)
        if not frame["caption"].equals(whole["caption"]):
            details = item.details | {CUT: [name, words]}
            called = f"{name}, {cut_text(words)}"
            items.append(workspace.keep("captions", called, frame, collection, f"{name}, cut", details))
    return items


def cuts_of(workspace: Workspace, collection: str) -> dict[str, list[Item]]:
    """Captioners of which cuts are kept -> all their sets, the cuts by words, the whole captions last."""
    items = {item.name: item for item in workspace.items("captions", collection)}
    sets: dict[str, list[Item]] = {}
    for item in items.values():
        if CUT in item.details and item.details[CUT][0] in items:
            sets.setdefault(item.details[CUT][0], []).append(item)
    return {
        name: [*sorted(cuts, key=lambda item: item.details[CUT][1]), items[name]] for name, cuts in sorted(sets.items())
    }


def by_length(workspace: Workspace, collection: str, rows: pd.DataFrame) -> pd.DataFrame:
    """The result rows of cuts and of the captions that they are cuts of, with `of` (whose), `cut` and `words` (mean
    words of a caption, on all its images), in the order of words. rows: results of the collection."""
    sets = cuts_of(workspace, collection)
    about = {
        item.name: {"of": name, "cut": cut_of(item), "words": mean_words(workspace.frame(item.hash))}
        for name, items in sets.items()
        for item in items
    }
    of_cuts = rows[rows["model"].isin(about)]
    table = of_cuts.assign(**{key: [about[model][key] for model in of_cuts["model"]] for key in ("of", "cut", "words")})
    return table.sort_values(["of", "words"], kind="stable").reset_index(drop=True)


def cut_of(item: Item) -> str:
    """How a set was cut: `first 5 words`, or `all`."""
    return cut_text(item.details[CUT][1]) if CUT in item.details else "all"


LENGTHS = (
    "With captions cut to the same length, a captioner that writes more cannot reveal more by its length. Cuts keep "
    "the first words; later words may matter more or less. Shorter captions stay whole. All points of a line are of "
    "the same images."
)


def lengths_chart(rows: pd.DataFrame, metric: str, neutral: float):
    """A dot and its 95% interval for each cut, over the mean words of a caption. rows: of one metric (`by_length`)."""
    figure = graph_objects().Figure()
    for name, line in rows.groupby("of", sort=False):
        above, below = line["ci_high"] - line["value"], line["value"] - line["ci_low"]
        figure.add_scatter(
            x=line["words"],
            y=line["value"],
            error_y={"array": above, "arrayminus": below, "thickness": 1.5, "width": 0},
            mode="lines+markers",
            name=escape(str(name)),
            customdata=line["cut"],
            hovertemplate="%{customdata}: %{y:.1f} at %{x:.0f} words<extra>%{fullData.name}</extra>",
        )
    figure.add_hline(y=neutral, line_dash="dash", line_width=1, line_color="grey")
    return figure.update_layout(
        xaxis_title="mean words of a caption",
        yaxis_title=metric,
        height=380,
        margin={"l": 0, "r": 0, "t": 20, "b": 46},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0},
    )


def lengths_table(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a captioner and cut: mean words, and each metric with its interval."""
    table_rows: dict[tuple, dict] = {}
    for row in rows.to_dict("records"):
        cells = table_rows.setdefault((row["of"], row["cut"]), {"captioner": row["of"], "cut": row["cut"]})
        cells["words"] = f"{row['words']:.1f}"
        cells[row["metric"]] = value_text(row)
    return pd.DataFrame(table_rows.values()).fillna("")
