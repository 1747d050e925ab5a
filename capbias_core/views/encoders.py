"""Scores by encoder, measured and printed: the plan of a sweep, sentences, dots, bars of CVs, ranks, tables.

A captioner has one look in all charts (see `captioner_looks`). Measured values are filled; printed ones are
open, and grey beside measured values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np
import pandas as pd

from capbias_core.aggregate.comparison import (
    ABOVE,
    BELOW,
    LEAST_ENCODERS,
    OPEN,
    Order,
    Sensitivity,
    learned,
    name_key,
    order_by_value,
    order_of,
    ranks_by_encoder,
    sensitivity,
)
from capbias_core.errors import CapbiasError, need
from capbias_core.measures.registry import METRICS, variants_of
from capbias_core.runs.plan import Request, plan
from capbias_core.types import counted
from capbias_core.views.charts import GREY, MARGINS, Look, encoder_shapes, neutral_line, opened
from capbias_core.views.consistency import CLEAR
from capbias_core.views.results import Comparison, ranking
from capbias_core.views.sentence import Answer, best_text, better_text, measure, number
from capbias_core.views.tables import value_text
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Workspace

# A metric with its direction and what it was measured on (see aggregate/variants.py).
Series = tuple[str, str, str]
SERIES = ["metric", "direction", "variant"]
# The metrics whose dependence on the encoder the papers argue about; of DBAC's directions they print T->A.
ANSWERING = ("LIC", "DBAC")
CV_METRICS = ("CV_LIC", "CV_DBAC")
BINARY = 2


@dataclass(frozen=True)
class Printed:
    """Tables of a paper that give scores by encoder. cv: its own table of coefficients of variation, '' for none."""

    title: str
    paper: str
    tables: tuple[str, ...]
    cv: str = ""


PRINTED = {
    "dbac_gender": Printed("DBAC: gender, six encoders from scratch", "dbac", ("10", "11"), "5a"),
    "dbac_gender_pretrained": Printed("DBAC: gender, four pretrained encoders", "dbac", ("12a", "12b"), "5b"),
    "dbac_race": Printed("DBAC: race, six encoders from scratch", "dbac", ("13", "14"), "6a"),
    "dbac_race_pretrained": Printed("DBAC: race, four pretrained encoders", "dbac", ("15a", "15b"), "6b"),
    "lic_gender": Printed("LIC: gender, three encoders", "lic", ("2",)),
    "lic_race": Printed("LIC: race, three encoders", "lic", ("S1",)),
    "repro_gender": Printed("Reproduction of LIC: gender, three encoders", "repro", ("2",)),
    "repro_race": Printed("Reproduction of LIC: race, three encoders", "repro", ("3",)),
    "repro_age": Printed("Reproduction of LIC: age, three encoders", "repro", ("4",)),
    "imgcap2": Printed("ImageCaptioner²: gender, two encoders", "imgcap2", ("4",)),
}


def printed_scores(published: pd.DataFrame, name: str) -> pd.DataFrame:
    """Rows with an encoder of one entry of PRINTED, in the scale that measured values have."""
    entry = PRINTED[name]
    rows = published[(published["paper"] == entry.paper) & published["table"].isin(entry.tables)]
    return _in_our_scale(rows[rows["encoder"] != ""])


def printed_variation(published: pd.DataFrame, name: str) -> pd.DataFrame:
    """The paper's own CVs: model, measure (`LIC`, `DBAC`), direction, value. Empty where it prints none."""
    entry = PRINTED[name]
    own = (published["paper"] == entry.paper) & (published["table"] == entry.cv)
    rows = published[own & published["metric"].isin(CV_METRICS)]
    direction = np.where(rows["metric"] == "CV_DBAC", "T->A", "")
    return rows.assign(measure=rows["metric"].str.removeprefix("CV_"), direction=direction)[
        ["model", "measure", "direction", "value"]
    ].reset_index(drop=True)


def _in_our_scale(rows: pd.DataFrame) -> pd.DataFrame:
    scale = [
        METRICS[name].scale if name in METRICS else own for name, own in zip(rows["metric"], rows["scale"], strict=True)
    ]
    factor = np.array(scale, dtype=float) / rows["scale"]
    numbers = {name: rows[name] * factor for name in ("value", "spread", "ci_low", "ci_high")}
    return rows.assign(**numbers, scale=scale).reset_index(drop=True)


def like_named(rows: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """The rows of captioners that have the name of one of these (see `name_key`), under that name."""
    names = {name_key(model): model for model in models}
    named = rows.assign(model=[names.get(name_key(model), "") for model in rows["model"]])
    return named[named["model"] != ""].reset_index(drop=True)


def series_of(rows: pd.DataFrame) -> list[Series]:
    """What was judged with an encoder, LIC and DBAC first, and of each the variant with most values first.

    Only metrics with a neutral point, from which a sign can be told.
    """
    rows = rows.assign(variant=variants_of(rows))
    judged = rows[(rows["encoder"] != "") & np.isfinite(rows["value"]) & rows["metric"].isin(list(METRICS))]
    counts = judged.groupby(SERIES, sort=False).size()
    found = [key for key in counts.index if np.isfinite(METRICS[key[0]].neutral(BINARY))]
    known = [*ANSWERING, *(name for name in METRICS if name not in ANSWERING)]
    return sorted(found, key=lambda key: (known.index(key[0]), -counts[key], key[1] != "T->A", key[2]))


def answering(rows: pd.DataFrame) -> list[Series]:
    """LIC and DBAC in each direction, each in the variant with most values."""
    found: dict[tuple[str, str], Series] = {}
    for key in series_of(rows):
        if key[0] in ANSWERING:
            found.setdefault(key[:2], key)
    return list(found.values())


def rows_of(rows: pd.DataFrame, series: Series) -> pd.DataFrame:
    """The rows of one series, one per captioner and encoder."""
    rows = rows.assign(variant=variants_of(rows))
    own = rows[(rows[SERIES] == list(series)).all(axis=1) & (rows["encoder"] != "") & np.isfinite(rows["value"])]
    return own.drop_duplicates(["model", "encoder"]).reset_index(drop=True)


def sensitivity_of(workspace: Workspace, rows: pd.DataFrame, values: int = BINARY) -> Sensitivity:
    """What the encoders of rows of one series say of each captioner. values: how many the attribute has.

    Measured rows are ordered in pairs on images by the evidence that their runs left, printed ones by value.
    """
    neutral = METRICS[rows["metric"].iloc[0]].neutral(values) if len(rows) else 0.0
    return sensitivity(rows, [_order(workspace, own) for _, own in rows.groupby("encoder", sort=False)], neutral)


def _order(workspace: Workspace, rows: pd.DataFrame) -> Order:
    if not (rows["paper"] == "measured").all():
        return order_by_value(dict(zip(rows["model"], rows["value"], strict=True)))
    runs = list(workspace.runs_of(list(rows["run_id"])).values())
    return order_of(ranking(workspace, runs, rows["metric"].iloc[0], rows["direction"].iloc[0]))


def sensitivity_alike(workspace: Workspace, found: Sequence[Comparison], chosen: Comparison) -> Sensitivity | None:
    """What every attacker that measured as `chosen` did says of its captioners; None where there is one attacker."""
    if len({item.attacker for item in found if _protocol(item) == _protocol(chosen)}) < LEAST_ENCODERS:
        return None
    return sensitivity_of(workspace, measured_alike(workspace, found, chosen), len(chosen.attribute.values))


def measured_alike(workspace: Workspace, found: Sequence[Comparison], chosen: Comparison) -> pd.DataFrame:
    """Rows of the answering metric of everything that was measured as `chosen`, with whichever attacker that learnt.

    Of each captioner and attacker the run with most seeds, that of `chosen` before others.
    """
    alike = [item for item in found if _protocol(item) == _protocol(chosen)]
    first = sorted(alike, key=lambda item: (item.attacker == chosen.attacker and item != chosen, -item.seeds))
    runs = {(run.spec.model, item.attacker): run.run_id for item in reversed(first) for run in item.runs}
    rows = workspace.results(list(runs.values()))
    rows = rows[learned(rows, {chosen.attribute.name: len(chosen.attribute.values)})]
    return rows[rows["metric"] == chosen.metric].reset_index(drop=True)


def _protocol(item: Comparison) -> tuple:
    """What must be the same for two encoders' numbers to be compared."""
    spec = item.runs[0].spec
    return item.attribute, spec.labels, item.coverage, item.references, item.alignment, spec.merge_masks


@dataclass(frozen=True)
class Sweep:
    """The runs of several encoders, each once, and why others cannot be had (by encoder)."""

    specs: list[RunSpec]
    refused: dict[str, CapbiasError]


def plan_sweep(workspace: Workspace, request: Request, attackers: Sequence[str]) -> Sweep:
    """Plan a request once for each attacker; what one lacks keeps no other from running.

    Raises the CapbiasError of the first where none can be had.
    """
    specs: dict[str, RunSpec] = {}
    refused: dict[str, CapbiasError] = {}
    for name in dict.fromkeys(attackers):
        try:
            found = plan(workspace, replace(request, attacker=name))
        except CapbiasError as error:
            refused[name] = error
            continue
        specs |= {spec.run_id: spec for spec in found}
    if refused and not specs:
        raise next(iter(refused.values()))
    return Sweep(list(specs.values()), refused)


FEW = 2
ROW = 17
BAR = 15
# Of the legend, whose marks stand for all captioners.
LEGEND = "#6F7782"
# CVs grow without bound near a mean of 0; longer bars would hide all others.
LARGEST_BAR = 8.0
# Of bars, a metric and direction each: solid, then hatched.
HATCHES = ("", "/", "x", ".")
# A line's name beside it: this wide a character, and cut where longer.
LETTER = 7.5
LONGEST_NAME = 24
THICK, THIN = 4, 1.5
WARNING = "⚠"


def named(key: Series) -> str:
    """A measure in words: `LIC`, `DBAC T→A, contextual glove 0.4`."""
    metric, direction, said = key
    return ", ".join(part for part in (measure(metric, direction), said.replace("_", " ")) if part)


def encoders_answer(found: dict[str, Sensitivity], printed: str = "") -> Answer:
    """Does the choice of encoder change the conclusion? found: name of a measure -> what its encoders say.

    printed: where the values are printed, '' for measured ones. Printed values have no interval, so their sign and
    order are those of the values alone.
    """
    judged = {name: own for name, own in found.items() if own.judged}
    if not judged:
        names = list(dict.fromkeys(name for own in found.values() for name in own.encoders))
        return Answer(
            "Not tested yet: only one encoder has results.",
            f"So far: {', '.join(names) or 'no encoder has scored LIC or DBAC'}. Run a sweep below, or choose "
            "published values under Values.",
        )
    (first, own), *others = judged.items()
    where = f"As printed in {printed}, the" if printed else "The"
    told = f"{where} sign of {first} changes with the encoder for {_share(own.turned, own)}{_open(own)}"
    told += "".join(f", that of {name} for {_share(other.turned, other, own)}{_open(other)}" for name, other in others)
    names = ", ".join(dict.fromkeys(name for other in judged.values() for name in other.encoders))
    return Answer(f"{told}.", f"{_moved(judged)} Encoders: {names}. {_rule(printed)}")


def _moved(judged: dict[str, Sensitivity]) -> str:
    """`The ranking changes for all 13 captioners.`, or for how many by which metric."""
    if all(len(own.moved) == len(own.judged) > 0 for own in judged.values()):
        return f"The ranking changes for all {max(len(own.judged) for own in judged.values())} captioners."
    if not any(own.moved for own in judged.values()):
        return "The ranking changes for no captioner."
    by = " and ".join(f"{_share(own.moved, own)} by {name}" for name, own in judged.items())
    return f"The ranking changes for {by}."


def _share(models: list[str], own: Sensitivity, said: Sensitivity | None = None) -> str:
    """`2 of 7 captioners`, or `2` alone where as many captioners were said before."""
    if len(own.judged) == 1:
        return "the only captioner" if models else "no captioner"
    number_of = f"{len(models) or 'none'}"
    return (
        number_of
        if said and len(said.judged) == len(own.judged)
        else (f"{number_of} of {counted(len(own.judged), 'captioner')}")
    )


def _open(own: Sensitivity) -> str:
    return f" (for {len(own.unsure)} only some encoders can tell it)" if own.unsure else ""


def _rule(printed: str) -> str:
    if printed:
        return "Published without intervals: signs and order use the values alone."
    return (
        "A sign changes if the 95% interval of one encoder lies above the neutral point and that of another below; "
        "the ranking changes if one encoder places the first of two captioners clearly higher and another clearly "
        "lower (paired within each seed, Holm-corrected)."
    )


def devices_note(rows: pd.DataFrame) -> str:
    """`Trained on cpu: lstm, rnn.`, from measured rows; '' where no network was trained."""
    trained = rows[rows["device"].fillna("") != ""]
    where = trained.groupby("device")["encoder"].agg(lambda own: ", ".join(sorted(set(own))))
    told = [f"Trained on {device}: {names}." for device, names in where.items()]
    return " ".join(told)


def seeds_note(rows: pd.DataFrame) -> str:
    """`Seeds: minilm 2, ngram 10.`, of measured rows with unequally many; '' where all have as many."""
    seeds = rows.dropna(subset="seeds").groupby("encoder")["seeds"].agg(lambda own: sorted({int(each) for each in own}))
    if len({tuple(own) for own in seeds}) < 2:
        return ""
    return f"Seeds: {', '.join(_counted(name, own) for name, own in seeds.items())}."


def _counted(name: str, seeds: Sequence[int]) -> str:
    return f"{name} {' or '.join(map(str, seeds))}"


def encoder_note(own: Sensitivity, model: str) -> str:
    """What the encoders say of one captioner: `same sign in 3 of 3 encoders`, with a warning where they differ."""
    signs = own.signs.get(model, {})
    if len(signs) < LEAST_ENCODERS:
        return "one encoder"
    others = sorted({name for pair in own.swapped if model in pair for name in pair} - {model})
    moved = f"; {WARNING} order with {_few(others, 'captioner')} changes" if others else ""
    return _sign_note(signs) + moved


def _sign_note(signs: dict[str, int]) -> str:
    sides = {side: [name for name, said in signs.items() if said == side] for side in (ABOVE, BELOW, OPEN)}
    if sides[ABOVE] and sides[BELOW]:
        return f"{WARNING} sign changes: above with {_few(sides[ABOVE])}; below with {_few(sides[BELOW])}"
    clear = sides[ABOVE] or sides[BELOW]
    if not clear:
        return f"sign open in all {len(signs)} encoders"
    if sides[OPEN]:
        return f"{WARNING} same sign in {len(clear)} of {len(signs)} encoders; open with {_few(sides[OPEN])}"
    return f"same sign in {len(signs)} of {len(signs)} encoders"


def _few(names: list[str], noun: str = "encoder") -> str:
    """The names, or how many where they are many."""
    return ", ".join(names) if len(names) <= FEW else counted(len(names), noun)


def encoders_warning(own: Sensitivity, metric: str) -> str:
    """One line where another encoder would change the conclusion; '' where none would."""
    told = []
    if own.turned:
        told.append(f"the sign of {metric} of {', '.join(own.turned)}")
    if own.moved:
        told.append(f"the order of {', '.join(own.moved)}")
    if not told:
        return ""
    changed, encoders = " and ".join(told), ", ".join(own.encoders)
    return f"{WARNING} The choice of encoder changes {changed} ({encoders}). See Encoder sensitivity on Scores."


def scores_by_encoder(rows: pd.DataFrame, grey: pd.DataFrame, key: Series, values: int, looks: dict[str, Look]):
    """A dot and its 95% interval for each captioner and encoder, with the neutral point as a line.

    rows: of one measure, one a captioner and encoder, in the captioner's colour; printed ones (paper not `measured`)
    are open. Those of `grey` stand beside captioners of the same name, open and grey.
    """
    need("A chart", "plotly")
    import plotly.graph_objects as go

    order = list(rows.groupby("model")["value"].mean().sort_values().index)
    shapes = encoder_shapes([*rows["encoder"], *grey["encoder"]])
    figure = go.Figure()
    for model, own in grey.groupby("model", sort=False):
        figure.add_trace(_dots(go, own, order.index(model), shapes, GREY))
    for model, own in rows.groupby("model", sort=False):
        figure.add_trace(_dots(go, own, order.index(model), shapes, looks[model].colour))
    for part, colour, suffix in ((rows, LEGEND, ""), (grey, GREY, ", printed")):
        for encoder in dict.fromkeys(part["encoder"]):
            figure.add_trace(_key(go, f"{encoder}{suffix}", _shape(part, shapes[encoder]), colour))
    neutral = METRICS[key[0]].neutral(values)
    if math.isfinite(neutral):
        neutral_line(figure, neutral, METRICS[key[0]].reference_line)
    ticks = {"tickmode": "array", "tickvals": list(range(len(order))), "ticktext": [escape(name) for name in order]}
    entries = rows["encoder"].nunique() + grey["encoder"].nunique()
    figure.update_layout(
        **_layout(len(order) * max(2, len(shapes) * 0.75), ROW, entries),
        xaxis={"title": {"text": f"{named(key)} ({better_text(key[0], values)})"}, "zeroline": False},
        yaxis={"automargin": True, "range": [-0.6, len(order) - 0.4], "zeroline": False} | ticks,
    )
    figure.update_layout(legend={"itemclick": False, "itemdoubleclick": False})
    return figure


def _dots(go, own: pd.DataFrame, row: int, shapes: dict[str, str], colour: str):
    """The dots of one captioner, one below the other in the order of the encoders."""
    low, high = own["ci_low"].fillna(own["value"]), own["ci_high"].fillna(own["value"])
    places = [list(shapes).index(encoder) for encoder in own["encoder"]]
    return go.Scatter(
        x=own["value"],
        y=[row - 0.7 * ((place + 0.5) / len(shapes) - 0.5) for place in places],
        mode="markers",
        name=escape(own["model"].iloc[0]),
        showlegend=False,
        hoverinfo="text",
        hovertext=[
            f"{escape(row['model'])}, {escape(row['encoder'])}: {value_text(row)}"
            + ("" if row["paper"] == "measured" else " (printed)")
            for row in own.to_dict("records")
        ],
        marker={
            "size": 10,
            "color": colour,
            "line": {"width": 1.5, "color": colour},
            "symbol": [_shape(own, shapes[encoder]) for encoder in own["encoder"]],
        },
        error_x={
            "type": "data",
            "symmetric": False,
            "array": high - own["value"],
            "arrayminus": own["value"] - low,
            "color": colour,
            "thickness": 2,
            "width": 0,
        },
    )


def _shape(rows: pd.DataFrame, shape: str) -> str:
    """Filled where the rows were measured, open where a paper printed them."""
    return shape if (rows["paper"] == "measured").all() else opened(shape)


def _key(go, name: str, shape: str, colour: str):
    """An entry of the legend alone."""
    marker = {"size": 10, "color": colour, "symbol": shape}
    return go.Scatter(x=[None], y=[None], mode="markers", name=escape(name), marker=marker, hoverinfo="skip")


def _layout(rows: float, height: int, entries: int) -> dict:
    """What the figures share. entries: of the legend, which stands above the plot and the neutral point's name."""
    above = 34 + 24 * math.ceil(entries / 3)
    return {
        "height": int(MARGINS + above + height * max(rows, 5)),
        "dragmode": False,
        "showlegend": entries > 0,
        "margin": {"l": 10, "r": 30, "t": above, "b": 46},
        "legend": {"orientation": "h", "yref": "container", "yanchor": "top", "y": 1, "x": 0, "xanchor": "left"},
    }


def cv_chart(measured: pd.DataFrame, printed: pd.DataFrame, looks: dict[str, Look]):
    """Bars of the coefficient of variation across encoders for each captioner, LIC beside DBAC.

    Both: model, measure, direction, value (not blank). Measured bars are in the captioner's colour, printed ones grey;
    the metric is in the hatching. A bar ends at LARGEST_BAR; the number beside it is the value.
    """
    need("A chart", "plotly")
    import plotly.graph_objects as go

    models = list(dict.fromkeys([*measured["model"], *printed["model"]]))[::-1]
    keys = sorted({*_measures(measured), *_measures(printed)}, reverse=True)
    hatches = dict(zip(keys, HATCHES, strict=False))
    figure, bars = go.Figure(), 0
    for frame, suffix in ((printed, ", printed"), (measured, "")):
        for key, own in sorted(frame.groupby(["measure", "direction"])):  # the first is drawn lowest
            bars += 1
            name = f"{measure(*key)}{suffix}"
            colours = GREY if suffix else [looks[model].colour for model in own["model"]]
            figure.add_trace(_bars(go, own, name, colours, hatches[key]).update(showlegend=False))
            of_all = own.iloc[:1].assign(value=math.nan)  # the legend's
            figure.add_trace(_bars(go, of_all, name, GREY if suffix else LEGEND, hatches[key]))
    figure.update_layout(
        **_layout(len(models) * (bars + 0.6), BAR, bars),
        barmode="group",
        bargap=0.25,
        xaxis={"title": {"text": "coefficient of variation across encoders (← lower is more consistent)"}},
        yaxis={"automargin": True, "categoryorder": "array", "categoryarray": [escape(model) for model in models]},
    )
    figure.update_layout(legend={"traceorder": "reversed", "itemclick": False, "itemdoubleclick": False})
    return figure


def _measures(frame: pd.DataFrame) -> set[tuple[str, str]]:
    return set(zip(frame["measure"], frame["direction"], strict=True))


def _bars(go, own: pd.DataFrame, name: str, colours, hatch: str):
    """The bars of one metric and direction, which stand in a place of their own beside the others."""
    return go.Bar(
        x=own["value"].clip(upper=LARGEST_BAR),
        y=[escape(model) for model in own["model"]],
        orientation="h",
        name=name,
        marker={"color": colours, "pattern": {"shape": hatch, "fillmode": "replace", "size": 6, "solidity": 0.5}},
        text=[f"{value:.2f}{' (bar cut)' if value > LARGEST_BAR else ''}" for value in own["value"]],
        textposition="outside",
        cliponaxis=False,
        offsetgroup=name,
        hovertext=[f"{escape(row.model)}: CV of {name} {row.value:.2f}" for row in own.itertuples()],
        hoverinfo="text",
    )


def cv_table(variation: pd.DataFrame) -> pd.DataFrame:
    """One row per captioner and measured metric: its CV with the interval without noise, the noise floor of one encoder
    against itself, and what follows. Empty where no encoder has an interval with refits.

    variation: of `variation`, with the column measure.
    """
    rows = variation[variation["value"].notna() & variation["ci_low"].notna()]
    return pd.DataFrame(
        {
            "captioner": row["model"],
            "metric": measure(row["measure"], row["direction"]),
            "CV": f"{row['value']:.2f}",
            "95% interval without noise": f"{row['ci_low']:.2f} to {row['ci_high']:.2f}",
            "noise floor": f"{row['spread']:.2f}",
            "encoders differ": "yes" if row["ci_low"] > 0 else "inconclusive",
        }
        for row in rows.to_dict("records")
    )


def cv_reasons(variation: pd.DataFrame) -> list[str]:
    """Why CVs are blank, each reason once with its captioners."""
    found: dict[str, list[str]] = {}
    for row in variation[variation["value"].isna()].to_dict("records"):
        reason = row["method"].removeprefix("blank: ")
        what = measure(row["condition"].partition(";")[0], row["direction"])
        found.setdefault(f"CV of {what} is blank: {reason}", []).append(row["model"])
    return [f"{reason} ({', '.join(dict.fromkeys(models))})." for reason, models in found.items()]


def _ranks(rows: pd.DataFrame, values: int) -> pd.DataFrame:
    """Ranks of the one metric of some rows, the best first."""
    metric = METRICS[rows["metric"].iloc[0]] if len(rows) else METRICS["LIC"]
    return ranks_by_encoder(rows, metric.better, metric.neutral(values))


def rank_chart(rows: pd.DataFrame, own: Sensitivity, looks: dict[str, Look], values: int = 2):
    """Each captioner's rank by encoder as a line, 1 (the best) at the top, named at both ends; lines of those that
    change places are thick. None where fewer than two captioners or encoders can be compared."""
    need("A chart", "plotly")
    import plotly.graph_objects as go

    ranks = _ranks(rows, values)
    if min(ranks.shape) < LEAST_ENCODERS:
        return None
    figure, names = go.Figure(), [escape(encoder) for encoder in ranks.columns]
    for model, line in ranks.sort_values(ranks.columns[0]).iterrows():
        name, moved = escape(str(model)), model in own.moved
        hover = [f"{name}, {encoder}: rank {rank}" for encoder, rank in zip(names, line, strict=True)]
        look = {"color": looks[model].colour, "dash": looks[model].dash, "width": THICK if moved else THIN}
        figure.add_trace(
            go.Scatter(
                x=names,
                y=line,
                mode="lines+markers",
                hovertext=hover,
                hoverinfo="text",
                name=name,
                line=look,
                marker={"size": 10 if moved else 7, "color": looks[model].colour},
            )
        )
    figure.update_layout(annotations=list(_names_at_ends(ranks, names, looks)))  # one by one takes their square
    widest = LETTER * min(LONGEST_NAME + 1, max(len(str(model)) for model in ranks.index)) + 40
    figure.update_layout(
        **_layout(len(ranks), 30, entries=0) | {"margin": {"l": widest, "r": widest, "t": 34, "b": 46}},
        xaxis={"type": "category", "range": [-0.05, len(names) - 0.95]},
        yaxis={"range": [len(ranks) + 0.6, 0.4], "showticklabels": False, "showgrid": False, "zeroline": False},
    )
    return figure


def _names_at_ends(ranks: pd.DataFrame, names: list[str], looks: dict[str, Look]) -> Iterator[dict]:
    """Rank and name at both ends of each line; of equal ranks one below the other, where the next ranks are free, each
    with a dot in its colour, since the lines end at one point."""
    for place, anchor, shift in ((0, "right", -10), (-1, "left", 10)):
        for rank, alike in ranks.groupby(ranks.columns[place]):
            for number_of, model in enumerate(alike.index):
                dot = f'<span style="color:{looks[model].colour}">●</span> ' if len(alike) > 1 else ""
                text = f"{dot}{rank}  {escape(_cut(str(model)))}"
                where = {"x": names[place], "y": rank + number_of, "xanchor": anchor, "xshift": shift}
                yield where | {"text": text, "showarrow": False}


def _cut(name: str) -> str:
    """Only as much of a name as there is room for; the whole stands in the table."""
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"


def ranks_note(rows: pd.DataFrame, values: int = 2) -> str:
    """Which captioners the ranks are among, and which rank is best."""
    ranked, every = len(_ranks(rows, values)), rows["model"].nunique()
    among = f"the {ranked} of {every} captioners that every encoder has scored" if ranked < every else "all captioners"
    return (
        f"Ranks by value among {among}. Values that lie close together change ranks easily: thick lines mark "
        f"captioners whose rank clearly changes. Rank 1 is best: {best_text(rows['metric'].iloc[0], values)}."
    )


def judges_table(agreement: pd.DataFrame) -> pd.DataFrame:
    """Pairs of encoders as text: conflict score, that of their intervals, ranking consistency; or why one is blank."""
    table: dict[str, dict[str, str]] = {}
    for row in agreement.to_dict("records"):
        cells = table.setdefault(row["encoder"], {"captioners": f"{row['n']}"})
        cells[row["metric"]] = _judged(row)
    frame = pd.DataFrame([{"encoders": pair.replace(", ", " and ")} | cells for pair, cells in table.items()])
    return frame.rename(
        columns={
            "conflict_score": "conflict score ↓",
            CLEAR: "of their intervals ↓",
            "ranking_consistency": "ranking consistency ↑ (Pearson)",
        }
    )


def _judged(row: dict) -> str:
    if pd.isna(row["value"]):
        return row["method"]
    return f"{number(row['value'])}%" if row["scale"] == 100 else number(row["value"], 3)


def alignment_table(alignment: pd.DataFrame) -> pd.DataFrame:
    """Human alignment by measure and encoder, as text."""
    return pd.DataFrame(
        {
            "metric": [measure(row["condition"], row["direction"]) for row in alignment.to_dict("records")],
            "encoder": alignment["encoder"],
            "human alignment ↑ (Pearson)": [
                row["method"] if pd.isna(row["value"]) else number(row["value"], 3)
                for row in alignment.to_dict("records")
            ],
            "captioners": alignment["n"],
        }
    )


def human_note(human: pd.Series, rows: pd.DataFrame) -> str:
    """Of how many captioners people gave scores, and which of them are here. human: model -> score."""
    here = {name_key(model): model for model in rows["model"]}
    found = [here[name_key(model)] for model in human.index if name_key(model) in here]
    return f"Human scores of {counted(len(human), 'captioner')}; of those here: {', '.join(found) or 'none'}."


def encoders_table(rows: pd.DataFrame, own: Sensitivity) -> pd.DataFrame:
    """One row a captioner: what the encoders say, and the value of each."""
    encoders = list(dict.fromkeys(rows["encoder"]))
    cells: dict[str, dict[str, str]] = {}
    for row in rows.to_dict("records"):
        cells.setdefault(row["model"], {})[row["encoder"]] = value_text(row)
    table = [{"captioner": model, "encoders": encoder_note(own, model)} | told for model, told in cells.items()]
    return pd.DataFrame(table).reindex(columns=["captioner", "encoders", *encoders]).fillna("")
