"""What alignment does to the human captions: the sweep over delta, constant alignment, and printed values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Annotated

import pandas as pd

from capbias_core.aggregate import Counts, estimates_of, unlabelled
from capbias_core.aggregate.comparison import name_key
from capbias_core.attributes import get_attribute, known_attributes
from capbias_core.errors import CapbiasError
from capbias_core.kinds import CAPTIONS, LABELS, REFERENCES
from capbias_core.load.vectors import read_vectors
from capbias_core.measures.alignment import DELTAS, METRICS, NO_JAVA, of_same_images, sweep, sweep_table
from capbias_core.measures.options import Option
from capbias_core.prepare.align import DELTA, Alignment, neighbours
from capbias_core.prepare.java import has_java
from capbias_core.prepare.tokens import Tokens
from capbias_core.question import caption_files
from capbias_core.types import Progress, silent
from capbias_core.views.charts import GREY, MEASURED, graph_objects
from capbias_core.views.sentence import with_interval
from capbias_core.views.tables import value_text
from capbias_core.views.view import Shown
from capbias_core.whole_files import typed_path
from capbias_core.workspace.ingest import read_frame
from capbias_core.workspace.labels import dropped_line, labels_for, resolve_attribute
from capbias_core.workspace.sources import data_of
from capbias_core.workspace.spec import AlignmentReference, RunSpec, attribute_from
from capbias_core.workspace.store import Workspace
from capbias_core.workspace.vectors import CONSTANT, alignment_name, check_delta


def align(
    captions: Annotated[str, Option("a captioner's captions", metavar="FILE")],
    references: Annotated[str, Option("human captions of the same images", metavar="FILE")],
    vectors: Annotated[str, Option("word vectors: GloVe, word2vec or fastText", metavar="FILE")],
    labels: Annotated[str, Option("a table of labels: use its labelled images only", metavar="FILE")] = "",
    attribute: Annotated[
        str, Option(f"mask its words: a shipped one ({', '.join(known_attributes())}), or a TOML file", metavar="NAME")
    ] = "",
    deltas: Annotated[
        Sequence[float], Option("cosine distances (default: 0 0.1 ... 1)", "--delta", metavar="DISTANCE")
    ] = DELTAS,
    progress: Progress = silent,
) -> Shown:
    """The sweep over delta of files, as rows of `sweep_table`. Raises CapbiasError for labels without an attribute."""
    for distance in deltas:
        check_delta(distance)
    if labels and not attribute:
        raise CapbiasError("--labels needs --attribute.", "Name the attribute that the table labels.")
    frames = [read_frame(references, REFERENCES), read_frame(captions, CAPTIONS)]
    masked, notes = get_attribute(attribute) if attribute and not labels else None, [] if has_java() else [NO_JAVA]
    if labels:
        table = read_frame(labels, LABELS)
        details = resolve_attribute(table, attribute)
        notes.append(dropped_line(table, details))
        masked = attribute_from(details["attribute"])
        labelled = labels_for(table, masked, details["column"], details["mapping"]).values.index
        frames = [frame[frame["image_id"].isin(labelled)] for frame in frames]
    human = of_same_images(*frames)
    texts, model_texts = (Tokens.of(frame["caption"]) for frame in (human, frames[1]))
    if masked:
        texts, model_texts = texts.masked(masked), model_texts.masked(masked)
    words, known = frozenset(texts.words), frozenset(model_texts.words)
    near = neighbours(words, known, read_vectors(typed_path(vectors), words | known))
    rows = sweep_table(sweep(human["image_id"], unlabelled, texts, known, near, tuple(deltas), progress))
    model = next(file.item_name for file in caption_files([captions]))
    return sweep_shown({model: rows}, model, DELTA if DELTA in set(rows["delta"]) else rows["delta"].iloc[-1], notes)


HOW = (
    "{primary} with its 95% interval over images; dashed: the chosen delta; dotted: METEOR under constant alignment."
    "{others} Words are counted as often as they occur. All values x100."
)


def sweep_shown(tables: Mapping[str, pd.DataFrame], primary: str, delta: float, notes: Sequence[str] = ()) -> Shown:
    """Sweeps of captioners as a view; sentence and table are of the primary one at the chosen delta."""
    headline, support = sweep_sentence(tables[primary], primary, delta)
    rows = tables[primary]
    if len(tables) > 1:
        rows = pd.concat([table.assign(captioner=model) for model, table in tables.items()], ignore_index=True)
    others = " Grey: the other captioners." if len(tables) > 1 else ""
    return Shown(
        title="Contextual share of substitutions, and METEOR, against delta",
        rows=rows,
        sentence=headline,
        notes=(support, HOW.format(primary=primary, others=others), *notes),
        table=tables[primary].round(2),
        chart=lambda: sweep_chart(tables, primary, delta),
    )


def constant_sentence(workspace: Workspace, spec: RunSpec) -> tuple[str, str]:
    """What constant alignment, which needs no word vectors, does to the human captions that a run reads, and what that
    depends on. Counted from the captions of the run, and kept in the workspace."""

    def compute() -> dict:
        data, merge = data_of(workspace, spec), spec.merge_masks
        human = of_same_images(data.human, data.frame)
        known = frozenset(data.masked(data.tokens(data.frame), merge).words)
        masked = data.masked(data.human_tokens(human), merge)
        words, _, unknown = Alignment(known).counts(masked).T
        counts = Counts.of_captions(human["image_id"], data.codes, {"words": words, "unknown": unknown})
        (estimate,) = estimates_of(METRICS.values(), counts, data.attribute.values).values()
        low, high = estimate.interval()
        lost = Counter(
            word for caption in masked for word in caption.split() if word not in known and not word.startswith("<")
        )
        words = [word for word, _ in sorted(lost.items(), key=lambda pair: (-pair[1], pair[0]))[:8]]
        sizes = {"captions": counts.size(), "images": len(counts.images)}
        return {"share": estimate.value, "low": low, "high": high, **sizes, "words": words}

    data = workspace.derived(f"constant alignment {spec.run_id}", compute)
    interval = "" if data["low"] is None else f" [{data['low']:.1f}, {data['high']:.1f}]"
    headline = (
        f"Constant alignment turns {data['share']:.1f}%{interval} of the words in the human captions into <unk>: "
        f"{spec.model} does not use them for these images."
    )
    lost = f" Most often: {', '.join(data['words'])}." if data["words"] else ""
    return headline, f"{data['captions']:,} human captions of {data['images']:,} images, 95% over images.{lost}"


TITLES = {"contextual": "contextual substitutions, %", "METEOR": "METEOR before and after"}
# Measured metric -> the printed one of the paper on DBAC, and how both are called.
COMPARED = {
    "LIC_D": ("LIC_H", "LIC_D, leakage of the human captions (the paper's LIC_H)"),
    "DBAC_H": ("DBAC_H", "w_H of DBAC, attribute to task words (A→T), Q = 1 / cross-entropy"),
    "METEOR_aligned": ("METEOR", "METEOR between human captions before and after alignment"),
}
PRINTED = {"constant": "constant", "contextual_glove": "GloVe", "contextual_fasttext": "fastText"}


def sweep_chart(tables: Mapping[str, pd.DataFrame], primary: str, delta: float):
    """Contextual share and METEOR against delta: the primary captioner with its 95% band, the others in grey.

    tables: captioner -> its sweep (a row per delta). The dotted line is METEOR under constant alignment, the dashed one
    the delta that was chosen. METEOR is left out if it was not computed.
    """
    graph_objects()
    from plotly.subplots import make_subplots

    shown = [name for name in TITLES if tables[primary][name].notna().any()]
    figure = make_subplots(rows=1, cols=len(shown), subplot_titles=[TITLES[name] for name in shown])
    deltas = tables[primary]["delta"]
    margin = 0.05 * (deltas.max() - deltas.min()) or 0.05
    for column, name in enumerate(shown, start=1):
        at = {"row": 1, "col": column}
        for model in [*(other for other in tables if other != primary), primary]:
            table, first = tables[model], model == primary
            x, colour = table["delta"], MEASURED if first else GREY
            if first:
                figure.add_scatter(
                    x=pd.concat([x, x[::-1]]),
                    y=pd.concat([table[f"{name}_low"], table[f"{name}_high"][::-1]]),
                    fill="toself",
                    fillcolor="rgba(59,130,208,.22)",
                    line={"width": 0},
                    mode="lines",
                    hoverinfo="skip",
                    **at,
                )
            figure.add_scatter(
                x=x,
                y=table[name],
                mode="lines+markers",
                line={"color": colour, "width": 3 if first else 1.5},
                marker={"size": 7 if first else 4},
                hovertext=[
                    f"{escape(model)}, delta {row['delta']:g}<br>{_with_interval(row, name)} 95% over images"
                    for row in table.to_dict("records")
                ],
                hoverinfo="text",
                **at,
            )
            if first and f"{name}_constant" in table and table[f"{name}_constant"].notna().any():
                figure.add_scatter(
                    x=x,
                    y=table[f"{name}_constant"],
                    mode="lines",
                    hovertext=f"constant alignment {table[f'{name}_constant'].iloc[0]:.1f}",
                    hoverinfo="text",
                    line={"color": colour, "dash": "dot", "width": 2},
                    **at,
                )
        figure.add_vline(x=delta, line={"dash": "dash", "color": GREY, "width": 1.5}, **at)
        ends = [deltas.min() - margin, deltas.max() + margin]
        figure.update_xaxes(title={"text": "delta"}, zeroline=False, range=ends, **at)
        figure.update_yaxes(zeroline=False, **at)
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
    return figure.update_layout(
        height=380, showlegend=False, dragmode=False, margin={"l": 10, "r": 90, "t": 34, "b": 46}
    )


def sweep_sentence(table: pd.DataFrame, model: str, delta: float) -> tuple[str, str]:
    """The answer for one captioner at the chosen delta, and what it depends on."""
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
    return with_interval(*(row[f"{name}{end}"] for end in ("", "_low", "_high")))


def side_by_side(
    measured: pd.DataFrame, printed: pd.DataFrame, metric: str, attribute: str, option: AlignmentReference | None
) -> pd.DataFrame:
    """One row per captioner and attacker: a metric of the human captions under constant and contextual alignment.

    All values x100. measured: result rows. printed: rows of the paper on DBAC; its values stand in columns that begin
    with `published`. option: which contextual alignment, None for none. Empty if nothing was measured.
    """

    def hundredfold(row: dict) -> dict:
        numbers = {name: row[name] * (100 / row["scale"]) for name in ("value", "spread", "ci_low", "ci_high")}
        return row | numbers | {"scale": 100, "metric": ""}

    measurements = measured[(measured["metric"] == metric) & (measured["attribute"] == attribute)]
    measurements = measurements[measurements["direction"].isin(["", "A->T"])]
    titles = {CONSTANT: "constant"} | ({alignment_name(option): f"contextual, {option['name']}"} if option else {})
    rows: dict[tuple, dict[str, str]] = {}
    for row in measurements.to_dict("records"):
        if (title := titles.get(row["alignment"])) is not None:
            rows.setdefault((row["model"], row["encoder"]), {})[title] = value_text(hundredfold(row))
    beside: dict[str, dict[str, str]] = {}  # captioner (as a key) -> its printed values by column
    published = printed[(printed["paper"] == "dbac") & (printed["attribute"] == attribute)]
    published = published[(published["metric"] == COMPARED[metric][0]) & published["condition"].isin(list(PRINTED))]
    for row in published.to_dict("records"):
        column = f"published, {PRINTED[row['condition']]}"
        beside.setdefault(name_key(row["model"]), {})[column] = f"{hundredfold(row)['value']:.1f}"
    table = pd.DataFrame(
        [
            {"captioner": model, "attacker": encoder} | cells | beside.get(name_key(model), {})
            for (model, encoder), cells in rows.items()
        ]
    )
    order = ["captioner", "attacker", *titles.values(), *(f"published, {name}" for name in PRINTED.values())]
    table = table.reindex(columns=[name for name in order if name in table]).fillna("")
    return table.drop(columns="attacker") if "attacker" in table and (table["attacker"] == "").all() else table
