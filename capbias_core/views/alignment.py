"""What alignment does to the human captions: the sweep over delta, constant alignment, and printed values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

import pandas as pd

from capbias_core.aggregate import Counts
from capbias_core.aggregate.comparison import name_key
from capbias_core.errors import need
from capbias_core.measures.alignment import METRICS, of_same_images
from capbias_core.measures.base import estimates_of
from capbias_core.prepare.align import Alignment
from capbias_core.runs.run import job_of
from capbias_core.types import silent
from capbias_core.views.charts import GREY, MEASURED
from capbias_core.views.tables import value_text
from capbias_core.workspace.spec import AlignmentReference, RunSpec
from capbias_core.workspace.store import RunRow, Workspace, bytes_frame
from capbias_core.workspace.vectors import CONSTANT, alignment_name


def sweep_of(workspace: Workspace, run: RunRow) -> pd.DataFrame:
    """The sweep over delta of a finished run of the measure `alignment`; see its `sweep_table`."""
    return bytes_frame(workspace.array(run.run_id, "sweep"))


LISTED = 8


@dataclass(frozen=True)
class ConstantAlignment:
    """Of one captioner. share: words of the human captions that become `<unk>`, in percent, with its 95% interval over
    images. captions, images: what it rests on. words: those that become it most often, most often first."""

    share: float
    low: float
    high: float
    captions: int
    images: int
    words: tuple[str, ...]


def constant_alignment(workspace: Workspace, spec: RunSpec) -> ConstantAlignment:
    """Counted from the captions and human captions that a run reads, and kept in the workspace."""

    def compute() -> dict:
        job = job_of(workspace, spec, silent)
        human = of_same_images(job.references(), job.frame)
        known = frozenset(job.masked(job.tokens(job.frame)).words)
        masked = job.masked(job.reference_tokens(human))
        words, _, unknown = Alignment(known).counts(masked).T
        counts = Counts.of_captions(human["image_id"], job.codes, {"words": words, "unknown": unknown})
        (found,) = estimates_of(METRICS.values(), counts, job.attribute.values).values()
        low, high = found.interval()
        lost = Counter(
            word for caption in masked for word in caption.split() if word not in known and not word.startswith("<")
        )
        words = [word for word, _ in sorted(lost.items(), key=lambda pair: (-pair[1], pair[0]))[:LISTED]]
        sizes = {"captions": counts.size(), "images": len(counts.images)}
        return {"share": found.value, "low": low, "high": high, **sizes, "words": words}

    data = workspace.derived(f"constant alignment {spec.run_id}", compute)
    return ConstantAlignment(**data | {"words": tuple(data["words"])})


HEIGHT = 380
BAND = "rgba(59,130,208,.22)"
TITLES = {"contextual": "contextual substitutions, %", "METEOR": "METEOR before and after"}
# Measured metric -> the printed one of the paper on DBAC, and how both are called.
COMPARED = {
    "LIC_D": ("LIC_H", "LIC_D, leakage of the human captions (the paper's LIC_H)"),
    "DBAC_H": ("DBAC_H", "w_H of DBAC, attribute to task words (A->T), Q = 1 / cross-entropy"),
    "METEOR_aligned": ("METEOR", "METEOR between human captions before and after alignment"),
}
PRINTED = {"constant": "constant", "contextual_glove": "GloVe", "contextual_fasttext": "fastText"}


def sweep_chart(tables: dict[str, pd.DataFrame], primary: str, delta: float):
    """Contextual share and METEOR against delta: the primary captioner with its 95% band, the others in grey.

    tables: captioner -> its sweep (a row per delta). The dotted line is METEOR under constant alignment, the dashed one
    the delta that was chosen. METEOR is left out if it was not computed.
    """
    need("A chart", "plotly")
    from plotly.subplots import make_subplots

    shown = [name for name in TITLES if tables[primary][name].notna().any()]
    figure = make_subplots(rows=1, cols=len(shown), subplot_titles=[TITLES[name] for name in shown])
    deltas = tables[primary]["delta"]
    margin = 0.05 * (deltas.max() - deltas.min()) or 0.05
    for place, name in enumerate(shown, start=1):
        for model in [*(other for other in tables if other != primary), primary]:
            for trace in _traces(tables[model], name, model, model == primary):
                figure.add_trace(trace, row=1, col=place)
        figure.add_vline(x=delta, line={"dash": "dash", "color": GREY, "width": 1.5}, row=1, col=place)
        figure.update_xaxes(title={"text": "delta"}, zeroline=False, row=1, col=place)
        figure.update_xaxes(range=[deltas.min() - margin, deltas.max() + margin], row=1, col=place)
        figure.update_yaxes(zeroline=False, row=1, col=place)
    for model, table in tables.items():
        figure.add_annotation(
            x=table["delta"].iloc[-1],
            y=table[shown[-1]].iloc[-1],
            text=f"<b>{escape(model)}</b>" if model == primary else escape(model),
            showarrow=False,
            xshift=8,
            xanchor="left",
            row=1,
            col=len(shown),
        )
    figure.update_layout(height=HEIGHT, showlegend=False, dragmode=False, margin={"l": 10, "r": 90, "t": 34, "b": 46})
    return figure


def _traces(table: pd.DataFrame, name: str, model: str, primary: bool) -> list:
    import plotly.graph_objects as go

    x, colour = table["delta"], MEASURED if primary else GREY
    hover = [
        f"{escape(model)}, delta {row['delta']:g}<br>{_with_interval(row, name)} 95% over images"
        for row in table.to_dict("records")
    ]
    line = go.Scatter(
        x=x,
        y=table[name],
        mode="lines+markers",
        line={"color": colour, "width": 3 if primary else 1.5},
        marker={"size": 7 if primary else 4},
        hovertext=hover,
        hoverinfo="text",
    )
    if not primary:
        return [line]
    ends = pd.concat([table[f"{name}_low"], table[f"{name}_high"][::-1]])
    band = go.Scatter(
        x=pd.concat([x, x[::-1]]),
        y=ends,
        fill="toself",
        fillcolor=BAND,
        line={"width": 0},
        mode="lines",
        hoverinfo="skip",
    )
    if f"{name}_constant" not in table or table[f"{name}_constant"].isna().all():
        return [band, line]
    text = f"constant alignment {table[f'{name}_constant'].iloc[0]:.1f}"
    constant = go.Scatter(
        x=x,
        y=table[f"{name}_constant"],
        mode="lines",
        hovertext=text,
        hoverinfo="text",
        line={"color": colour, "dash": "dot", "width": 2},
    )
    return [band, line, constant]


def sweep_sentence(table: pd.DataFrame, model: str, delta: float) -> tuple[str, str]:
    """The answer for one captioner at the chosen delta, and what it rests on."""
    row = table[table["delta"] == delta].iloc[0]
    share = _with_interval(row, "contextual")
    headline = f"Of 100 human words that {model} never uses, {share} become its nearest word."
    support = (
        f"Delta {delta:g}. {row['unknown']:.1f}% of all words in {row['captions']:,.0f} human captions of "
        f"{row['images']:,.0f} images become <unk>; under constant alignment {row['unknown_constant']:.1f}%."
    )
    if pd.isna(row["METEOR"]):
        return headline, support
    return headline, (
        f"{support} METEOR between the captions before and after is {_with_interval(row, 'METEOR')}, under constant "
        f"alignment {_with_interval(row, 'METEOR_constant')}."
    )


def _with_interval(row: Mapping, name: str) -> str:
    """`93.1 [92.8, 93.4]`; the value alone if it has no interval."""
    value, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    return f"{value:.1f}" if pd.isna(low) or pd.isna(high) else f"{value:.1f} [{low:.1f}, {high:.1f}]"


def constant_sentence(own: ConstantAlignment, model: str) -> tuple[str, str]:
    """The answer for one captioner without word vectors, and what it rests on."""
    interval = "" if own.low is None else f" [{own.low:.1f}, {own.high:.1f}]"
    headline = (
        f"Constant alignment turns {own.share:.1f}%{interval} of the words in the human captions into <unk>: {model} "
        "does not use them for these images."
    )
    lost = f" Most often: {', '.join(own.words)}." if own.words else ""
    return headline, f"{own.captions:,} human captions of {own.images:,} images, 95% over images.{lost}"


def side_by_side(
    measured: pd.DataFrame, printed: pd.DataFrame, metric: str, attribute: str, option: AlignmentReference | None
) -> pd.DataFrame:
    """One row per captioner and attacker: a metric of the human captions under constant and contextual alignment.

    All values x100. measured: result rows. printed: rows of the paper on DBAC; its values stand in columns that begin
    with `printed`. option: which contextual alignment, None for none. Empty if nothing was measured.
    """
    own = measured[(measured["metric"] == metric) & (measured["attribute"] == attribute)]
    own = own[own["direction"].isin(["", "A->T"])]
    titles = {CONSTANT: "constant"} | ({alignment_name(option): f"contextual, {option['name']}"} if option else {})
    rows: dict[tuple, dict[str, str]] = {}
    for row in own.to_dict("records"):
        if (title := titles.get(row["alignment"])) is not None:
            rows.setdefault((row["model"], row["encoder"]), {})[title] = value_text(_hundredfold(row))
    beside = _printed(printed, COMPARED[metric][0], attribute)
    table = pd.DataFrame(
        [
            {"captioner": model, "attacker": encoder} | cells | beside.get(name_key(model), {})
            for (model, encoder), cells in rows.items()
        ]
    )
    order = ["captioner", "attacker", *titles.values()]
    order += [f"printed, {name}" for name in PRINTED.values()]
    table = table.reindex(columns=[name for name in order if name in table]).fillna("")
    return table.drop(columns=[name for name in ("attacker",) if name in table and (table[name] == "").all()])


def _hundredfold(row: dict) -> dict:
    """A result row with its numbers x100."""
    factor = 100 / row["scale"]
    return (
        row
        | {name: row[name] * factor for name in ("value", "spread", "ci_low", "ci_high")}
        | {"scale": 100, "metric": ""}
    )


def _printed(printed: pd.DataFrame, metric: str, attribute: str) -> dict[str, dict[str, str]]:
    """Captioner (as a key) -> its printed values by column."""
    found: dict[str, dict[str, str]] = {}
    rows = printed[(printed["paper"] == "dbac") & (printed["metric"] == metric) & (printed["attribute"] == attribute)]
    for row in rows[rows["condition"].isin(list(PRINTED))].to_dict("records"):
        value = f"{_hundredfold(row)['value']:.1f}"
        found.setdefault(name_key(row["model"]), {})[f"printed, {PRINTED[row['condition']]}"] = value
    return found
