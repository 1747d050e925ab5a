"""The leaderboard of a collection: captioners by attributes, each attribute by its best comparison."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from html import escape
from typing import Annotated, Any

import numpy as np
import pandas as pd

from capbias_core.aggregate.estimate import AMPLIFIES, REDUCES
from capbias_core.errors import unknown_name
from capbias_core.measures.lic import LONGER
from capbias_core.measures.options import Option
from capbias_core.measures.registry import METRICS
from capbias_core.prepare.refusals import refusals
from capbias_core.types import counted
from capbias_core.views.charts import BLUE_MARK, GREY, MARGINS, ORANGE_MARK, error_bars, graph_objects
from capbias_core.views.results import Comparison, average_words, comparisons, known_results, like_with_like, ranking
from capbias_core.views.sentence import NOT_TRAINED, best_text, interval, say, verdicts_text, with_interval
from capbias_core.views.view import Scope, Shown
from capbias_core.workspace.conditions import originals
from capbias_core.workspace.store import Workspace

OTHER_IMAGES, OTHER_SETTINGS = "other images", "other settings"
# A collection with more than one measured attribute, or more captioners, opens on it.
MOST_CAPTIONERS = 6
CAPTIONER, IMAGES, WORDS, REFUSALS = "captioner", "images", "words", "refusals"
ASIDE = (WORDS, REFUSALS, IMAGES)  # columns of a captioner, beside those of attributes
CUTS = ("cut", "cut_low", "cut_high")
COLUMNS = (
    *("captioner", "attribute", "metric", "value", "ci_low", "ci_high", "verdict", "letters", "mark", "encoder"),
    *("seeds", "references", "images", "words", "refusals", *CUTS),
)
ACROSS = 3  # attributes side by side in the chart
COLOUR = {AMPLIFIES: ORANGE_MARK, REDUCES: BLUE_MARK}


def leads(found: Sequence[Comparison]) -> bool:
    """Whether a collection with these comparisons opens on the leaderboard."""
    captioners = {run.spec.model for comparison in found for run in comparison.runs}
    return len({item.attribute.name for item in found}) > 1 or len(captioners) > MOST_CAPTIONERS


def leaderboard_rows(workspace: Workspace, collection: str, run_ids: Collection[str] | None = None) -> pd.DataFrame:
    """A row per captioner and attribute that LIC or LIC_M was measured of, in COLUMNS.

    Each attribute has the comparison that answers best; value, interval, verdict and letters are of it, on the images
    that its captioners share. mark: OTHER_IMAGES or OTHER_SETTINGS of those that are not compared with it; they have no
    letters. images: training and held out. words: average of a caption. refusals: % of all captions. cut: LIC at equal
    length, of captioners that write longer captions than people. run_ids: of the runs that count (default: all).
    """
    sets = originals(workspace.items("captions", collection))
    by_attribute: dict[str, list[Comparison]] = {}
    for comparison in comparisons(workspace, collection, sets):
        if runs := tuple(run for run in comparison.runs if run_ids is None or run.run_id in run_ids):
            by_attribute.setdefault(comparison.attribute.name, []).append(replace(comparison, runs=runs))
    rows = []
    for attribute, of_attribute in sorted(by_attribute.items(), key=lambda pair: -len(pair[1][0].runs)):
        seen: set[str] = set()
        for comparison in of_attribute:
            new = [run for run in comparison.runs if run.spec.model not in seen]
            if new:
                names = {run.spec.model for run in new}
                of_best = _compared(workspace, collection, comparison, names, not seen)
                rows += [row | {"attribute": attribute} for row in of_best]
                seen |= names
    about = {name: _captioner(workspace, collection, name) for name in {row["captioner"] for row in rows}}
    frame = pd.DataFrame([row | about[row["captioner"]] for row in rows], columns=list(COLUMNS))
    return frame.astype(dict.fromkeys(("value", "ci_low", "ci_high", *CUTS), float))


def _compared(
    workspace: Workspace, collection: str, comparison: Comparison, names: set[str], best: bool
) -> list[dict[str, Any]]:
    """The rows of some captioners of a comparison. best: whether it is the attribute's best one."""
    rows = known_results(workspace, comparison.run_ids)
    of_metric = rows[rows["metric"] == comparison.metric]
    cuts = rows[rows["metric"] == "LIC_cut"].set_index("model")
    human = {item.hash: item for item in workspace.items("references", collection)}.get(comparison.references)
    human_words = average_words(workspace, human.hash) if human else 0.0
    letters: dict[str, str] = {}
    parts = [("" if best else OTHER_SETTINGS, of_metric)]
    if best:
        pairs = ranking(workspace, list(comparison.runs), comparison.metric)
        split = like_with_like(workspace, of_metric, pairs)
        letters, parts = pairs.letters, [("", split.compared), (OTHER_IMAGES, split.others)]
    made = []
    for mark, part in parts:
        for row in part[part["model"].isin(names)].to_dict("records"):
            model, numbers = row["model"], {name: row[name] for name in ("metric", "value", "ci_low", "ci_high")}
            digest = next(run.spec.captions for run in comparison.runs if run.spec.model == model)
            longer = model in cuts.index and average_words(workspace, digest) > LONGER * human_words
            cut = cuts.loc[model, ["value", "ci_low", "ci_high"]].tolist() if longer else [np.nan] * 3
            made.append(
                numbers
                | dict(zip(CUTS, cut, strict=True))
                | {"captioner": model, "verdict": row["verdict"], "letters": "" if mark else letters.get(model, "")}
                | {"mark": mark, "encoder": comparison.attacker, "seeds": comparison.seeds}
                | {"references": human.name if human else "", IMAGES: int(row["training"] + row["n"])}
            )
    return made


def _captioner(workspace: Workspace, collection: str, name: str) -> dict[str, float]:
    digest = workspace.item("captions", name, collection).hash

    def compute() -> float:
        return float(100 * refusals(workspace.frame(digest)["caption"].tolist()).mean())

    share = workspace.derived(f"share of refusals {digest}", compute)
    return {WORDS: average_words(workspace, digest), REFUSALS: share}


def sortings(rows: pd.DataFrame) -> list[str]:
    """What a leaderboard can be sorted by: its attributes, and the columns of captioners."""
    return [*dict.fromkeys(rows["attribute"]), CAPTIONER, *ASIDE]


def sorted_captioners(rows: pd.DataFrame, sort: str) -> list[str]:
    """Captioners in order: of an attribute the highest value first and those that are not ranked last; names from A;
    numbers from the largest. Raises CapbiasError for an unknown sorting."""
    if sort not in sortings(rows):
        raise unknown_name("sorting", sort, sortings(rows))
    names = sorted(set(rows["captioner"]), key=str.casefold)
    if sort == CAPTIONER:
        return names
    if sort in ASIDE:
        largest = rows.groupby("captioner")[sort].max()
        return sorted(names, key=lambda name: -largest[name])
    of = rows[rows["attribute"] == sort].set_index("captioner")

    def sort_key(name: str) -> tuple:
        known = name in of.index
        return not known, bool(of.at[name, "mark"]) if known else True, -of.at[name, "value"] if known else 0

    return sorted(names, key=sort_key)


def leaderboard(
    scope: Scope,
    sort: Annotated[
        str,
        Option(
            f"an attribute, {', '.join((CAPTIONER, *ASIDE))} (default: the attribute of most captioners)",
            metavar="NAME",
        ),
    ] = "",
    run_ids: Collection[str] | None = None,
) -> Shown:
    """Captioners by attributes. scope: names the collection; each attribute has its own best comparison.

    rows: of `leaderboard_rows`, with these run_ids. sort: one of `sortings` (default: the first attribute).
    """
    workspace, name = scope.workspace, scope.collection
    rows = leaderboard_rows(workspace, name, run_ids)
    attributes = list(dict.fromkeys(rows["attribute"]))
    order = sorted_captioners(rows, sort or attributes[0])
    rows = rows.assign(place=rows["captioner"].map(order.index)).sort_values("place", kind="stable", ignore_index=True)
    rows = rows.drop(columns="place")
    sentence = " ".join(_sentence(rows, attribute) for attribute in attributes)
    trained = {item.name: item.details.get("trained_on_references") for item in workspace.items("captions", name)}
    amplifying = rows.loc[(rows["verdict"] == AMPLIFIES), "captioner"]
    notes = (
        say("leaderboard.dots", letters=say("leaderboard.letters") if rows["letters"].any() else ""),
        " ".join(_settings(rows, attribute) for attribute in attributes),
        " ".join(filter(None, (_marked(rows, mark) for mark in (OTHER_IMAGES, OTHER_SETTINGS)))),
        say("leaderboard.equal_length", longer=LONGER - 1) if rows["cut"].notna().any() else "",
        say("leaderboard.asides", refusals=say(f"leaderboard.{'' if rows[REFUSALS].any() else 'no_'}refusals")),
        NOT_TRAINED if not all(trained.get(model) for model in amplifying) else "",
    )
    title = f"Leaderboard of {name}"
    table = leaderboard_table(rows, attributes)
    return Shown(title, rows, sentence, tuple(filter(None, notes)), table, lambda: leaderboard_chart(rows, attributes))


def _sentence(rows: pd.DataFrame, attribute: str) -> str:
    """Verdicts of the captioners that are ranked; of LIC_M, which has none, how many were measured."""
    of = rows[(rows["attribute"] == attribute) & (rows["mark"] == "")]
    if not of["verdict"].any():
        return say("leaderboard.no_verdict", attribute=attribute, captioners=counted(len(of), "captioner"))
    if len(of) > 1:
        return say("leaderboard.verdicts", attribute=attribute, verdicts=verdicts_text(of))
    captioner, verdict = of[["captioner", "verdict"]].iloc[0]
    return say("leaderboard.verdict", attribute=attribute, captioner=captioner, verdict=verdict)


def _settings(rows: pd.DataFrame, attribute: str) -> str:
    of = rows[(rows["attribute"] == attribute) & (rows["mark"] == "")].iloc[0]
    return say(
        "leaderboard.settings" if of["references"] else "leaderboard.settings_alone",
        attribute=attribute,
        metric=of["metric"],
        best=best_text(of["metric"]),
        attacker=of["encoder"],
        seeds=counted(int(of["seeds"]), "seed"),
        human=of["references"],
    )


def _marked(rows: pd.DataFrame, mark: str) -> str:
    """Which cells are not ranked, and what they were measured with."""
    cells = []
    for row in rows[rows["mark"] == mark].to_dict("records"):
        with_ = f", {row['encoder']}, {counted(int(row['seeds']), 'seed')}" if mark == OTHER_SETTINGS else ""
        cells.append(f"{row['captioner']} ({row['attribute']}{with_})")
    return say(f"leaderboard.{mark.replace(' ', '_')}", cells=", ".join(cells)) if cells else ""


def leaderboard_table(rows: pd.DataFrame, attributes: Sequence[str]) -> pd.DataFrame:
    """A row per captioner: a cell such as `8.7 [6.9, 10.4] amplifies · b` per attribute, LIC_cut of attributes of which
    a captioner has it, words, refusals if there are any, and images."""
    leading = {of: rows.loc[(rows["attribute"] == of) & (rows["mark"] == ""), "metric"].iloc[0] for of in attributes}
    table = []
    for name, of in rows.groupby("captioner", sort=False):
        by_attribute, first = {row["attribute"]: row for row in of.to_dict("records")}, of.iloc[0]
        images = [
            f"{by_attribute[attribute][IMAGES]:,}" if attribute in by_attribute else "–" for attribute in attributes
        ]
        cells = {CAPTIONER: name}
        for attribute, metric in leading.items():
            row = by_attribute.get(attribute)
            cells[f"{attribute}: {metric}"] = _cell(row, metric) if row else "not measured"
        for attribute in dict.fromkeys(rows.loc[rows["cut"].notna(), "attribute"]):
            row = by_attribute.get(attribute, {})
            known = pd.notna(row.get("cut"))
            cells[f"{attribute}: LIC_cut"] = with_interval(*map(row.get, CUTS)) if known else ""
        cells[WORDS] = f"{first[WORDS]:.1f}"
        if rows[REFUSALS].any():
            cells[REFUSALS] = f"{first[REFUSALS]:.1f}%"
        cells[IMAGES] = " / ".join(images)
        table.append(cells)
    return pd.DataFrame(table)


def _cell(row: dict[str, Any], metric: str) -> str:
    named = "" if row["metric"] == metric else f"{row['metric']} "
    numbers = pd.Series(row | {"scale": METRICS[row["metric"]].scale, "spread": np.nan})
    text = f"{named}{interval(numbers)} {row['verdict']}".strip()
    tail = f"({row['mark']})" if row["mark"] else f"· {row['letters']}" if row["letters"] else ""
    return f"{text} {tail}".strip()


def leaderboard_chart(rows: pd.DataFrame, attributes: Sequence[str]):
    """A panel per attribute: a dot and its 95% interval per captioner, coloured by verdict; hollow if not ranked."""
    graph_objects()
    from plotly.subplots import make_subplots

    names, legend = list(dict.fromkeys(rows["captioner"])), set()
    across = min(ACROSS, len(attributes))
    down = -(-len(attributes) // across)
    height = 28 * max(3, len(names))
    figure = make_subplots(
        down,
        across,
        shared_yaxes=True,
        subplot_titles=[escape(name) for name in attributes],
        horizontal_spacing=0.03,
        vertical_spacing=70 / (down * (height + 70)) if down > 1 else 0,
    )
    for number, attribute in enumerate(attributes):
        cell: dict[str, Any] = {"row": number // across + 1, "col": number % across + 1}
        of = rows[rows["attribute"] == attribute]
        leading = of.loc[of["mark"] == "", "metric"].iloc[0]
        for (verdict, mark), some in of[of["metric"] == leading].groupby(["verdict", "mark"]):
            colour = COLOUR.get(str(verdict), GREY)
            cells = [f"{escape(row['captioner'])}: {escape(_cell(row, leading))}" for row in some.to_dict("records")]
            name = f"{verdict or 'no verdict'}{', not ranked' if mark else ''}"
            figure.add_scatter(
                x=some["value"],
                y=some["captioner"].map(escape),
                mode="markers",
                name=name,
                legendgroup=name,
                showlegend=name not in legend,
                hoverinfo="text",
                hovertext=cells,
                marker={
                    "size": 10,
                    "color": colour,
                    "symbol": "circle-open" if mark else "circle",
                    "line": {"width": 2, "color": colour},
                },
                error_x=error_bars(some["value"], some["ci_low"], some["ci_high"], colour, 1 if mark else 2.5),
                **cell,
            )
            legend.add(name)
        neutral = METRICS[leading].neutral(2)
        if np.isfinite(neutral) and not neutral:
            figure.add_vline(x=neutral, line={"dash": "dash", "color": GREY, "width": 1.5}, **cell)
        figure.update_xaxes(title_text=f"{leading} ({best_text(leading)})", zeroline=False, **cell)
    order = [escape(name) for name in reversed(names)]
    figure.update_yaxes(categoryorder="array", categoryarray=order, automargin=True, tickvals=order)
    return figure.update_layout(
        height=MARGINS + 44 + down * height + 70 * (down - 1),
        margin={"l": 10, "r": 20, "t": 34, "b": 90},
        legend={"orientation": "h", "yref": "container", "yanchor": "bottom", "y": 0, "x": 0},
        dragmode=False,
    )
