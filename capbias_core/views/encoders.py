"""Scores by encoder, measured and printed: the plan of a sweep, sentences, dots, bars of CVs, ranks, tables.

Measured values are filled; printed ones are open, and grey beside measured values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import cycle, product
from typing import Annotated

import numpy as np
import pandas as pd

from capbias_core.aggregate import comparison
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load.published import published_results
from capbias_core.measures.options import Option
from capbias_core.measures.registry import METRICS, variants_of
from capbias_core.types import counted
from capbias_core.views import charts
from capbias_core.views.charts import cut
from capbias_core.views.consistency import CLEAR, agreement, variation
from capbias_core.views.published import measured_of
from capbias_core.views.results import Comparison, ranking
from capbias_core.views.sentence import Answer, best_text, better_text, intervals_over, measure, number
from capbias_core.views.tables import result_columns, value_text
from capbias_core.views.view import Shown
from capbias_core.workspace.store import Workspace

# A metric with its direction and what it was measured on (see aggregate/variants.py).
Series = tuple[str, str, str]
SERIES = ["metric", "direction", "variant"]
# The metrics whose dependence on the encoder the papers argue about; of DBAC's directions they print T->A.
ANSWERING = ("LIC", "DBAC")

BINARY = 2


@dataclass(frozen=True)
class Printed:
    """Tables of a paper with scores by encoder."""

    title: str
    paper: str
    tables: tuple[str, ...]
    cv: str = ""  # its table of coefficients of variation


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


def encoders(
    workspace: Workspace,
    collection: Annotated[str, Option("the collection (default: none, with --printed)", metavar="NAME")] = "",
    attribute: Annotated[str, Option("the attribute (default: as the page Answer)", metavar="NAME")] = "",
    metric: Annotated[str, Option("a metric that encoders measured (default: LIC)", metavar="NAME")] = "",
    printed: Annotated[str, Option("values of a paper instead of measured ones", choices=tuple(PRINTED))] = "",
) -> Shown:
    """Scores by encoder, measured in a collection or printed in a paper, and whether they lead to one conclusion."""
    if bool(collection) == bool(printed):
        raise CapbiasError("Values are of a collection, or printed in a paper.", "Give --collection or --printed.")
    if printed and attribute:
        raise CapbiasError("Printed values are of the attribute that the paper measured.", "Leave out --attribute.")
    rows, values = printed_scores(published_results(), printed) if printed else pd.DataFrame(), BINARY
    if collection:
        rows, attribute, values = measured_of(workspace, collection, attribute)
        rows = rows[rows["encoder"] != ""]
    known = {}
    for series in series_of(rows):
        known.setdefault(series[0], series)
    if not known:
        raise CapbiasError(f"Nothing of {collection} is measured with an encoder.", "Score it with --metric lic.")
    if metric and metric not in known:
        raise unknown_name("metric by encoder", metric, known)
    able = rows[comparison.learned(rows, {attribute: values})]
    text = answer_of(workspace, rows, able, values, PRINTED[printed].title if printed else "")
    shown = encoders_shown(workspace, rows, known[metric or next(iter(known))], able, values)
    notes = (text.support, comparison.unlearned_note(rows, {attribute: values}), *shown.notes)
    return replace(shown, sentence=text.headline, notes=tuple(filter(None, notes)))


def answer_of(workspace: Workspace, rows: pd.DataFrame, able: pd.DataFrame, values: int, printed: str = "") -> Answer:
    """`encoders_answer` of result rows. able: those of encoders better than chance. values, printed: as there, and as
    of `sensitivity_of`."""
    judged = {named(each): sensitivity_of(workspace, rows_of(able, each), values) for each in answering(able)}
    weak = [name for name in dict.fromkeys(rows["encoder"]) if name not in set(able["encoder"])]
    return encoders_answer(judged, printed, weak)


def encoders_shown(
    workspace: Workspace,
    rows: pd.DataFrame,
    series: Series,
    able: pd.DataFrame,
    values: int,
    grey: pd.DataFrame | None = None,
) -> Shown:
    """One series as a view, whose sentence is in `answer_of`; its rows are those of all series, with their variation
    and agreement.

    able: those of encoders better than chance, which are judged and drawn; if there are none, all are drawn. values:
    how many the attribute has. grey: printed values beside.
    """
    all_rows, compared = rows_of(rows, series), rows_of(able, series)
    drawn = compared if len(compared) else all_rows  # an encoder no better than chance would stretch the axis
    beside = all_rows.iloc[:0] if grey is None else grey
    lines = f" Lines are intervals, {intervals_over(drawn)}." if (drawn["paper"] == "measured").any() else ""
    overlaid = " Grey: published values of captioners with the same name." if len(beside) else ""
    return Shown(
        title=f"{named(series)} of each captioner by each encoder",
        rows=result_columns(pd.concat([rows, variation(able), agreement(able)])),
        notes=(
            f"Colour and shape: encoder.{lines}{overlaid} {METRICS[series[0]].explanation}",
            f"Value ± standard deviation over seeds [{intervals_over(all_rows)}].",
            *filter(None, (seeds_note(all_rows), devices_note(all_rows))),
        ),
        table=encoders_table(all_rows, sensitivity_of(workspace, compared, values)),
        chart=lambda: scores_by_encoder(drawn, beside, series, values),
    )


def printed_scores(published: pd.DataFrame, name: str) -> pd.DataFrame:
    """Rows with an encoder of one entry of PRINTED, in the scale that measured values have."""
    entry = PRINTED[name]
    rows = published[(published["paper"] == entry.paper) & published["table"].isin(entry.tables)]
    rows = rows[rows["encoder"] != ""]
    scale = [METRICS[row.metric].scale if row.metric in METRICS else row.scale for row in rows.itertuples()]
    factor = np.array(scale, dtype=float) / rows["scale"]
    numbers = {column: rows[column] * factor for column in ("value", "spread", "ci_low", "ci_high")}
    return rows.assign(**numbers, scale=scale).reset_index(drop=True)


def printed_variation(published: pd.DataFrame, name: str) -> pd.DataFrame:
    """The paper's own CVs: model, measure (`LIC`, `DBAC`), direction, value. Empty where it prints none."""
    entry = PRINTED[name]
    of_table = (published["paper"] == entry.paper) & (published["table"] == entry.cv)
    rows = published[of_table & published["metric"].isin(["CV_LIC", "CV_DBAC"])]
    direction = np.where(rows["metric"] == "CV_DBAC", "T->A", "")
    return rows.assign(measure=rows["metric"].str.removeprefix("CV_"), direction=direction)[
        ["model", "measure", "direction", "value"]
    ].reset_index(drop=True)


def like_named(rows: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """The rows of captioners that have the name of one of these (see `name_key`), under that name."""
    names = {comparison.name_key(model): model for model in models}
    named = rows.assign(model=[names.get(comparison.name_key(model), "") for model in rows["model"]])
    return named[named["model"] != ""].reset_index(drop=True)


def series_of(rows: pd.DataFrame) -> list[Series]:
    """What was judged with an encoder, LIC and DBAC first, and of each the variant with most values first.

    Only metrics with a neutral point, from which a sign can be told.
    """
    rows = rows.assign(variant=variants_of(rows))
    judged = rows[(rows["encoder"] != "") & np.isfinite(rows["value"]) & rows["metric"].isin(list(METRICS))]
    counts = judged.groupby(SERIES, sort=False).size()
    keys = [key for key in counts.index if np.isfinite(METRICS[key[0]].neutral(BINARY))]
    known = [*ANSWERING, *(name for name in METRICS if name not in ANSWERING)]
    return sorted(keys, key=lambda key: (known.index(key[0]), -counts[key], key[1] != "T->A", key[2]))


def answering(rows: pd.DataFrame) -> list[Series]:
    """LIC and DBAC in each direction, each in the variant with most values."""
    by_direction: dict[tuple[str, str], Series] = {}
    for key in series_of(rows):
        if key[0] in ANSWERING:
            by_direction.setdefault(key[:2], key)
    return list(by_direction.values())


def rows_of(rows: pd.DataFrame, series: Series) -> pd.DataFrame:
    """The rows of one series, one per captioner and encoder."""
    rows = rows.assign(variant=variants_of(rows))
    of_series = rows[(rows[SERIES] == list(series)).all(axis=1) & (rows["encoder"] != "") & np.isfinite(rows["value"])]
    return of_series.drop_duplicates(["model", "encoder"]).reset_index(drop=True)


def sensitivity_of(workspace: Workspace, rows: pd.DataFrame, values: int = BINARY) -> comparison.Sensitivity:
    """Sign and order of each captioner by encoder, from rows of one series. values: how many the attribute has.

    Measured rows are ordered in pairs of captioners by the evidence of their runs, printed ones by value.
    """
    neutral = METRICS[rows["metric"].iloc[0]].neutral(values) if len(rows) else 0.0
    orders = []
    for _, by_encoder in rows.groupby("encoder", sort=False):
        if (by_encoder["paper"] == "measured").all():
            runs, first = list(workspace.runs_of(list(by_encoder["run_id"])).values()), by_encoder.iloc[0]
            orders.append(comparison.order_of(ranking(workspace, runs, first["metric"], first["direction"])))
        else:
            orders.append(comparison.order_by_value(dict(zip(by_encoder["model"], by_encoder["value"], strict=True))))
    return comparison.sensitivity(rows, orders, neutral)


def sensitivity_alike(
    workspace: Workspace, found: Sequence[Comparison], chosen: Comparison
) -> comparison.Sensitivity | None:
    """Results of all attackers with the settings of `chosen`; None with one attacker."""
    if len({item.attacker for item in found if _protocol(item) == _protocol(chosen)}) < comparison.LEAST_ENCODERS:
        return None
    return sensitivity_of(workspace, measured_alike(workspace, found, chosen), len(chosen.attribute.values))


def measured_alike(workspace: Workspace, found: Sequence[Comparison], chosen: Comparison) -> pd.DataFrame:
    """Rows of the metric of `chosen` with the same settings, by any attacker that learnt.

    Of each captioner and attacker the run with most seeds counts; that of `chosen` first.
    """
    comparable = [item for item in found if _protocol(item) == _protocol(chosen)]
    first = sorted(comparable, key=lambda item: (item.attacker == chosen.attacker and item != chosen, -item.seeds))
    runs = {(run.spec.model, item.attacker): run.run_id for item in reversed(first) for run in item.runs}
    rows = workspace.results(list(runs.values()))
    rows = rows[comparison.learned(rows, {chosen.attribute.name: len(chosen.attribute.values)})]
    return rows[rows["metric"] == chosen.metric].reset_index(drop=True)


def _protocol(item: Comparison) -> tuple:
    """What must be the same for two encoders' numbers to be compared."""
    spec = item.runs[0].spec
    return item.attribute, spec.labels, item.coverage, item.references, item.alignment, spec.merge_masks


WARNING = "⚠"


def named(key: Series) -> str:
    """A measure in words: `LIC`, `DBAC T→A, contextual glove 0.4`."""
    metric, direction, variant = key
    return ", ".join(filter(None, (measure(metric, direction), variant.replace("_", " "))))


# sentences


def encoders_answer(found: dict[str, comparison.Sensitivity], printed: str = "", weak: Sequence[str] = ()) -> Answer:
    """Whether the choice of encoder changes the conclusion. found: metric in words -> its encoders' results.

    printed: the source of printed values, '' for measured ones. Printed values have no interval, so sign and order use
    the values alone. weak: further encoders, no better than chance.
    """
    judged = {name: sensitivity for name, sensitivity in found.items() if sensitivity.judged}
    if not judged:
        names = list(dict.fromkeys(name for sensitivity in found.values() for name in sensitivity.encoders))
        if weak:
            able = ", ".join(names) or "none"
            return Answer(
                "Not comparable yet: fewer than two encoders are better than chance.",
                f"Better than chance: {able}. No better: {', '.join(weak)}; more seeds may help.",
            )
        return Answer(
            "Not tested yet: only one encoder has results.",
            f"So far: {', '.join(names) or 'no encoder has scored LIC or DBAC'}. Run a sweep over encoders, or look at "
            "published values.",
        )
    first, parts = next(iter(judged.values())), []
    for name, sensitivity in judged.items():
        what = f"sign of {name} changes with the encoder for" if sensitivity is first else f"that of {name} for"
        unsure = f" (for {len(sensitivity.unsure)} only some encoders can tell it)" if sensitivity.unsure else ""
        parts.append(
            f"{what} {_share(sensitivity.turned, sensitivity, None if sensitivity is first else first)}{unsure}"
        )
    where = f"As printed in {printed}, the" if printed else "The"
    if all(len(sensitivity.moved) == len(sensitivity.judged) for sensitivity in judged.values()):
        moved = f"all {max(len(sensitivity.judged) for sensitivity in judged.values())} captioners"
    elif not any(sensitivity.moved for sensitivity in judged.values()):
        moved = "no captioner"
    else:
        moved = " and ".join(
            f"{_share(sensitivity.moved, sensitivity)} by {name}" for name, sensitivity in judged.items()
        )
    rule = "Published without intervals: signs and order use the values alone."
    if not printed:
        rule = (
            "A sign changes if the 95% interval of one encoder lies above the neutral point and that of another below; "
            "the ranking changes if one encoder places the first of two captioners clearly higher and another clearly "
            "lower (paired within each seed, Holm-corrected)."
        )
    names = ", ".join(dict.fromkeys(name for sensitivity in judged.values() for name in sensitivity.encoders))
    return Answer(f"{where} {', '.join(parts)}.", f"The ranking changes for {moved}. Encoders: {names}. {rule}")


def _share(
    models: Sequence[str], sensitivity: comparison.Sensitivity, first: comparison.Sensitivity | None = None
) -> str:
    """`2 of 7 captioners`, or `2` alone where the sentence named as many captioners before."""
    if len(sensitivity.judged) == 1:
        return "the only captioner" if models else "no captioner"
    if first and len(first.judged) == len(sensitivity.judged):
        return f"{len(models) or 'none'}"
    return f"{len(models) or 'none'} of {counted(len(sensitivity.judged), 'captioner')}"


def devices_note(rows: pd.DataFrame) -> str:
    """`Trained on cpu: lstm, rnn.`, from measured rows; '' where no network was trained."""
    trained = rows[rows["device"].fillna("") != ""]
    where = trained.groupby("device")["encoder"].agg(lambda names: ", ".join(sorted(set(names))))
    return " ".join(f"Trained on {device}: {names}." for device, names in where.items())


def seeds_note(rows: pd.DataFrame) -> str:
    """`Seeds: minilm 2, ngram 10.`, of measured rows with unequally many; '' where all have as many."""
    seeds = (
        rows.dropna(subset="seeds")
        .groupby("encoder")["seeds"]
        .agg(lambda counts: sorted({int(each) for each in counts}))
    )
    if len({tuple(counts) for counts in seeds}) < 2:
        return ""
    texts = [f"{name} {' or '.join(map(str, counts))}" for name, counts in seeds.items()]
    return f"Seeds: {', '.join(texts)}."


def encoder_note(own: comparison.Sensitivity, model: str) -> str:
    """What the encoders say of one captioner: `same sign in 3 of 3 encoders`, with a warning where they differ."""
    signs = own.signs.get(model, {})
    if len(signs) < comparison.LEAST_ENCODERS:
        return "one encoder"

    def few(names: Sequence[str], noun: str = "encoder") -> str:
        """The names, or how many where they are many."""
        return ", ".join(names) if len(names) <= 2 else counted(len(names), noun)

    above, below, unclear = (
        [name for name, sign in signs.items() if sign == side]
        for side in (comparison.ABOVE, comparison.BELOW, comparison.OPEN)
    )
    clear = above or below
    if above and below:
        text = f"{WARNING} sign changes: above with {few(above)}; below with {few(below)}"
    elif not clear:
        text = f"sign open in all {len(signs)} encoders"
    elif unclear:
        text = f"{WARNING} same sign in {len(clear)} of {len(signs)} encoders; open with {few(unclear)}"
    else:
        text = f"same sign in {len(signs)} of {len(signs)} encoders"
    others = sorted({name for pair in own.swapped if model in pair for name in pair} - {model})
    return f"{text}; {WARNING} order with {few(others, 'captioner')} changes" if others else text


def encoders_warning(own: comparison.Sensitivity, metric: str) -> str:
    """One line where another encoder would change the conclusion; '' where none would."""
    parts = [f"the sign of {metric} of {', '.join(own.turned)}"] if own.turned else []
    parts += [f"the order of {', '.join(own.moved)}"] if own.moved else []
    if not parts:
        return ""
    changed, encoders = " and ".join(parts), ", ".join(own.encoders)
    return f"{WARNING} The choice of encoder changes {changed} ({encoders}). See Encoder sensitivity on Scores."


# charts

LARGEST_BAR = 8.0  # CVs grow without bound near a mean of 0; longer bars would hide all others
HATCHES = ("", "/", "x", ".")  # of bars, a metric and direction each: solid, then hatched


def _layout(rows: float, height: int, entries: int) -> dict:
    """What the figures share. entries: of the legend, which stands above the plot and the neutral point's name."""
    above = 34 + 24 * math.ceil(entries / 3)
    legend = {"orientation": "h", "yref": "container", "yanchor": "top", "y": 1, "x": 0, "xanchor": "left"}
    return {
        "height": int(charts.MARGINS + above + height * max(rows, 5)),
        "dragmode": False,
        "showlegend": entries > 0,
        "margin": {"l": 10, "r": 30, "t": above, "b": 46},
        "legend": legend | ({"itemclick": False, "itemdoubleclick": False} if entries else {}),
    }


def scores_by_encoder(rows: pd.DataFrame, grey: pd.DataFrame, key: Series, values: int):
    """A dot and its 95% interval for each captioner and encoder, with the neutral point as a line.

    rows: of one measure, one a captioner and encoder, in the encoder's colour and shape; printed ones (paper not
    `measured`) are open. Those of `grey` stand beside captioners of the same name, open and grey.
    """
    order = list(rows.groupby("model")["value"].mean().sort_values().index)
    shapes = charts.encoder_shapes([*rows["encoder"], *grey["encoder"]])
    figure = charts.graph_objects().Figure()
    for part, suffix in ((grey, ", published"), (rows, "")):
        for encoder, dots in part.groupby("encoder", sort=False):
            index = list(shapes).index(encoder)
            colour = charts.GREY if suffix else charts.COLOURS[index % len(charts.COLOURS)]
            measured = (part["paper"] == "measured").all()
            figure.add_scatter(
                x=dots["value"],
                # One below the other in the order of the encoders.
                y=[order.index(model) - 0.7 * ((index + 0.5) / len(shapes) - 0.5) for model in dots["model"]],
                mode="markers",
                name=escape(f"{encoder}{suffix}"),
                hoverinfo="text",
                hovertext=[
                    f"{escape(row['model'])}, {escape(row['encoder'])}: {value_text(row)}"
                    + ("" if row["paper"] == "measured" else " (printed)")
                    for row in dots.to_dict("records")
                ],
                marker={
                    "size": 10,
                    "color": colour,
                    "line": {"width": 1.5, "color": colour},
                    "symbol": shapes[encoder] if measured else charts.opened(shapes[encoder]),
                },
                error_x=charts.error_bars(dots["value"], dots["ci_low"], dots["ci_high"], colour, 2),
            )
    neutral = METRICS[key[0]].neutral(values)
    if math.isfinite(neutral):
        charts.neutral_line(figure, neutral, METRICS[key[0]].reference_line)
    ticks = {"tickmode": "array", "tickvals": list(range(len(order))), "ticktext": [escape(name) for name in order]}
    entries = rows["encoder"].nunique() + grey["encoder"].nunique()
    return figure.update_layout(
        **_layout(len(order) * max(2, len(shapes) * 0.75), 17, entries),
        xaxis={"title": {"text": f"{named(key)} ({better_text(key[0], values)})"}, "zeroline": False},
        yaxis={"automargin": True, "range": [-0.6, len(order) - 0.4], "zeroline": False} | ticks,
    )


def cv_chart(measured: pd.DataFrame, printed: pd.DataFrame):
    """Bars of the coefficient of variation across encoders for each captioner, LIC beside DBAC.

    Both: model, measure, direction, value (not blank), and spread if the noise floor is known. Measured bars have a
    colour and hatching per metric, printed ones its hatching in grey. A bar ends at LARGEST_BAR; the number beside it
    is the value.
    """
    models = list(dict.fromkeys([*measured["model"], *printed["model"]]))[::-1]
    both = pd.concat([measured[["measure", "direction"]], printed[["measure", "direction"]]])
    keys = sorted({*both.itertuples(index=False, name=None)}, reverse=True)
    hatches = dict(zip(keys, HATCHES, strict=False))
    figure, bars = charts.graph_objects().Figure(), 0
    for frame, suffix in ((printed, ", published"), (measured, "")):
        for key, group in sorted(frame.groupby(["measure", "direction"])):  # the first is drawn lowest
            bars, name = bars + 1, f"{measure(*key)}{suffix}"
            colour = charts.GREY if suffix else charts.COLOURS[keys[::-1].index(key) % len(charts.COLOURS)]
            pattern = {"shape": hatches[key], "fillmode": "replace", "size": 6, "solidity": 0.5}
            noise = group["spread"] if "spread" in group else pd.Series(math.nan, group.index)
            notes = [
                ", ".join(["bar cut"] * (value > LARGEST_BAR) + [f"noise {floor:.2f}"] * (floor == floor))
                for value, floor in zip(group["value"], noise, strict=True)
            ]
            cut = [f" ({text})" if text else "" for text in notes]
            figure.add_bar(
                x=group["value"].clip(upper=LARGEST_BAR),
                y=[escape(model) for model in group["model"]],
                orientation="h",
                name=name,
                marker={"color": colour, "pattern": pattern},
                text=[f"{value:.2f}{text}" for value, text in zip(group["value"], cut, strict=True)],
                textposition="outside",
                cliponaxis=False,
                offsetgroup=name,
                hovertext=[f"{escape(row.model)}: CV of {name} {row.value:.2f}" for row in group.itertuples()],
                hoverinfo="text",
            )
    figure.update_layout(
        **_layout(len(models) * (bars + 0.6), 15, bars),
        barmode="group",
        bargap=0.25,
        xaxis={
            "title": {"text": "coefficient of variation across encoders (← lower is more consistent)"},
            "range": [0, 1.25 * min(LARGEST_BAR, max([*measured["value"], *printed["value"]], default=1.0))],
        },
        yaxis={"automargin": True, "categoryorder": "array", "categoryarray": [escape(model) for model in models]},
    )
    return figure.update_layout(legend={"traceorder": "reversed"})


def _ranks(rows: pd.DataFrame, values: int) -> pd.DataFrame:
    """Ranks of the one metric of some rows, the best first."""
    metric = METRICS[rows["metric"].iloc[0]] if len(rows) else METRICS["LIC"]
    return comparison.ranks_by_encoder(rows, metric.better, metric.neutral(values))


def rank_chart(rows: pd.DataFrame, own: comparison.Sensitivity, values: int = BINARY):
    """Each captioner's rank by encoder as a line, 1 (the best) at the top, named at both ends; lines of those that
    change places are thick. None where fewer than two captioners or encoders can be compared."""
    ranks = _ranks(rows, values)
    if min(ranks.shape) < comparison.LEAST_ENCODERS:
        return None
    figure, names = charts.graph_objects().Figure(), [escape(encoder) for encoder in ranks.columns]
    # A colour each, and where colours run out, a dash.
    looks = dict(zip(sorted(ranks.index), cycle(product(charts.DASHES, charts.COLOURS))))
    for model, line in ranks.sort_values(ranks.columns[0]).iterrows():
        name, moved, (dash, colour) = escape(str(model)), model in own.moved, looks[model]
        figure.add_scatter(
            x=names,
            y=line,
            mode="lines+markers",
            hovertext=[f"{name}, {encoder}: rank {rank}" for encoder, rank in zip(names, line, strict=True)],
            hoverinfo="text",
            name=name,
            line={"color": colour, "dash": dash, "width": 4 if moved else 1.5},
            marker={"size": 10 if moved else 7, "color": colour},
        )
    # Rank and name at both ends of each line; of equal ranks one below the other, where the next ranks are free, each
    # with a dot in its colour, since the lines end at one point.
    labels = []
    for column, anchor, shift in ((0, "right", -10), (-1, "left", 10)):
        for rank, tied in ranks.groupby(ranks.columns[column]):
            for number_of, model in enumerate(tied.index):
                dot = f'<span style="color:{looks[model][1]}">●</span> ' if len(tied) > 1 else ""
                where = {"x": names[column], "y": rank + number_of, "xanchor": anchor, "xshift": shift}
                labels.append(where | {"text": f"{dot}{rank}  {escape(cut(str(model)))}", "showarrow": False})
    widest = charts.LETTER * min(charts.LONGEST_NAME + 1, max(len(str(model)) for model in ranks.index)) + 40
    return figure.update_layout(
        **_layout(len(ranks), 30, entries=0) | {"margin": {"l": widest, "r": widest, "t": 34, "b": 46}},
        annotations=labels,  # one by one takes their square
        xaxis={"type": "category", "range": [-0.05, len(names) - 0.95]},
        yaxis={"range": [len(ranks) + 0.6, 0.4], "showticklabels": False, "showgrid": False, "zeroline": False},
    )


def ranks_note(rows: pd.DataFrame, values: int = BINARY) -> str:
    """Which captioners the ranks are among, and which rank is best."""
    ranked, count = len(_ranks(rows, values)), rows["model"].nunique()
    among = f"the {ranked} of {count} captioners that every encoder has scored" if ranked < count else "all captioners"
    return (
        f"Ranks by value among {among}. Values that lie close together change ranks easily: thick lines mark "
        f"captioners whose rank clearly changes. Rank 1 is best: {best_text(rows['metric'].iloc[0], values)}."
    )


# tables


def cv_reasons(variation: pd.DataFrame) -> list[str]:
    """Why CVs are blank, each reason once with its captioners. variation: of `consistency.variation`."""
    reasons: dict[str, list[str]] = {}
    for row in variation[variation["value"].isna()].to_dict("records"):
        what = measure(row["measure"], row["direction"])
        reasons.setdefault(f"CV of {what} is blank: {row['reason']}", []).append(row["model"])
    return [f"{reason} ({', '.join(dict.fromkeys(models))})." for reason, models in reasons.items()]


def cv_encoders(variation: pd.DataFrame) -> str:
    """Which encoders CVs are over, such as `LIC: ngram, rnn; DBAC T→A: minilm, ngram.`; '' if all are over the same.
    variation: of `consistency.variation`."""
    over: dict[str, set[str]] = {}
    for row in variation.dropna(subset="value").to_dict("records"):
        names = ", ".join(sorted(row["encoder"].split(", ")))
        over.setdefault(measure(row["measure"], row["direction"]), set()).add(names)
    texts = [f"{name}: {' or '.join(sorted(encoders))}" for name, encoders in over.items()]
    same = len({frozenset(encoders) for encoders in over.values()}) < 2
    return "" if same else f"{'; '.join(texts)}. CVs over different encoders are not comparable."


def judges_table(agreement: pd.DataFrame) -> pd.DataFrame:
    """Pairs of encoders as text: conflict score, that of their intervals, ranking consistency; or why one is blank."""
    table: dict[str, dict[str, str]] = {}
    for row in agreement.to_dict("records"):
        percent = row["scale"] == 100
        text = row["method"] if pd.isna(row["value"]) else number(row["value"], 1 if percent else 3) + "%" * percent
        table.setdefault(row["encoder"], {"captioners": f"{row['n']}"})[row["metric"]] = text
    frame = pd.DataFrame([{"encoders": pair.replace(", ", " and ")} | cells for pair, cells in table.items()])
    return frame.rename(
        columns={
            "conflict_score": "conflict score ↓",
            CLEAR: "of their intervals ↓",
            "ranking_consistency": "ranking consistency ↑ (Pearson)",
        }
    )


def alignment_table(alignment: pd.DataFrame) -> pd.DataFrame:
    """Human alignment by measure and encoder, as text."""
    rows = alignment.to_dict("records")
    texts = [row["method"] if pd.isna(row["value"]) else number(row["value"], 3) for row in rows]
    return pd.DataFrame(
        {
            "metric": [measure(row["condition"], row["direction"]) for row in rows],
            "encoder": alignment["encoder"],
            "human alignment ↑ (Pearson)": texts,
            "captioners": alignment["n"],
        }
    )


def encoders_table(rows: pd.DataFrame, own: comparison.Sensitivity) -> pd.DataFrame:
    """One row a captioner: what the encoders say, and the value of each."""
    cells: dict[str, dict[str, str]] = {}
    for row in rows.to_dict("records"):
        cells.setdefault(row["model"], {})[row["encoder"]] = value_text(row)
    table = [{"captioner": model, "encoders": encoder_note(own, model)} | values for model, values in cells.items()]
    columns = ["captioner", "encoders", *dict.fromkeys(rows["encoder"])]
    return pd.DataFrame(table).reindex(columns=columns).fillna("")
