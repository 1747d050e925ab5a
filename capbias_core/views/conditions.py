"""What masking photographs does to each metric: rows by condition, a sentence, small multiples, a table."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from html import escape

import pandas as pd

from capbias_core.aggregate import Pair, provisional
from capbias_core.attackers import DEFAULT_ATTACKER
from capbias_core.errors import need
from capbias_core.measures.registry import METRICS, measure_of, needs_references
from capbias_core.runs.condition_runs import Plan, masked_sets, on_shared_images
from capbias_core.types import CONDITIONS, RESULT_COLUMNS, T_TO_A, counted
from capbias_core.views.charts import BLUE_MARK, GREY, MARGINS, ORANGE_MARK
from capbias_core.views.results import current_runs, ranking, runs_against, runs_with
from capbias_core.views.sentence import Answer, decimals, interval_over, limit, number
from capbias_core.workspace.conditions import ORIGINAL, sets_of
from capbias_core.workspace.store import ACTIVE, Item, RunRow, Workspace

# What is shown against the condition, in this order: metric and direction as measured. DBA_G is the T->A side of BA→.
PANELS = (("LIC_M", ""), ("LIC", ""), ("DBAC", T_TO_A), ("DPA", T_TO_A), ("DBA_G", ""), ("attribution_score", ""))


TO_ORIGINAL, TO_NEUTRAL = (
    tuple(f"to_{other}{end}" for end in ("", "_low", "_high")) for other in ("original", "neutral")
)
DIFFERENCES = (*TO_ORIGINAL, "original_there", *TO_NEUTRAL)
COLUMNS = ("captioner", "masked", *DIFFERENCES, *RESULT_COLUMNS)


@dataclass(frozen=True)
class Missing:
    """Conditions without a value of a metric, and why."""

    metric: str
    direction: str
    conditions: tuple[str, ...]
    reason: str


def without_value(workspace: Workspace, found: Plan, sets: dict[str, Item], rows: pd.DataFrame) -> list[Missing]:
    """Of every metric of PANELS the conditions without a value in these rows, one entry a reason.

    found: the plan of the runs of these sets (by condition). What `found.lacking` says is not said again.
    """
    have = set(zip(rows["metric"], rows["direction"], rows["masked"], strict=True))
    known = workspace.runs_of([spec.run_id for spec in found.specs])
    entries = []
    for metric, direction in PANELS:
        reasons: dict[str, list[str]] = {}
        for condition, item in sets.items():
            if (metric, direction, condition) not in have:
                reasons.setdefault(_reason(metric, item.name, found, known), []).append(condition)
        entries += [Missing(metric, direction, tuple(own), reason) for reason, own in reasons.items() if reason]
    return entries


def _reason(metric: str, name: str, found: Plan, known: dict[str, RunRow]) -> str:
    """Why a set has no value of a metric; '' where `Plan.lacking` says so."""
    measure = measure_of(metric)
    if measure.needs.people:
        return "no run has made maps of its captions"
    planned = [spec for spec in found.specs if spec.measure == measure.name]
    if not planned:
        return ""
    own = [spec for spec in planned if spec.model == name and (spec.references or not needs_references(metric))]
    if not own:
        return "that needs human captions of the same photographs"
    run = known.get(own[0].run_id)
    if run is None:
        return "not run yet"
    if run.status in ACTIVE:
        return "under way"
    return "its run gave none" if run.status == "finished" else f"its run {run.status} ({run.message})"


def condition_rows(
    workspace: Workspace,
    collection: str,
    captioner: str,
    attribute: str,
    attacker: str = DEFAULT_ATTACKER,
    chosen: Sequence[str] = (),
    among: Collection[str] | None = None,
    table: Item | None = None,
    references: Item | None = None,
) -> pd.DataFrame:
    """Every metric of PANELS that was measured of a captioner's sets, one row a metric and condition, in COLUMNS.

    chosen: as in `condition_sets`. among, table, references: of these runs, of this table of labels, with these
    human captions alone (default: all). masked:
    the condition of the photographs. to_original, to_neutral: the value minus that on the originals (paired over the
    images that both have) and minus the metric's neutral point (chance for LIC_M), with 95% intervals. original_there:
    the value on the originals of the images that to_original is over. Of what was measured in several ways (seeds,
    alignment, part of the images) the one with most conditions, on all images before a part, with most seeds.
    """
    sets = sets_of(workspace, collection, captioner, chosen)
    names = {item.name: condition for condition, item in sets.items()}
    runs = [run for run in current_runs(workspace, collection) if _wanted(run, names, attribute, attacker)]
    runs = [run for run in runs if among is None or run.run_id in among]
    runs = runs if table is None else runs_with(runs, {attribute: table})
    runs = runs if references is None else runs_against(runs, {attribute: references})
    rows = workspace.results([run.run_id for run in runs])
    found = []
    for metric, direction in PANELS:
        own = rows[(rows["metric"] == metric) & (rows["direction"] == direction) & rows["value"].notna()]
        found += _against(workspace, own, _alike(runs, set(own["run_id"])), sets)
    return pd.DataFrame([{"captioner": captioner} | row for row in found], columns=list(COLUMNS))


def _wanted(run: RunRow, names, attribute: str, attacker: str) -> bool:
    spec = run.spec
    alike = spec.attribute.get("name") == attribute and not spec.merge_masks
    return spec.model in names and alike and spec.attacker in ("", attacker)


def _alike(runs: Sequence[RunRow], having: set[str]) -> list[RunRow]:
    """The runs that measured most conditions in one way: the same but for the captions and the photographs."""
    groups: dict[str, dict[str, RunRow]] = {}
    for run in runs:  # newest first
        if run.run_id in having:
            options = {name: own for name, own in run.spec.options.items() if name != "photographs"}
            key = repr(replace(run.spec, model="", captions="", options=options))
            groups.setdefault(key, {}).setdefault(run.spec.model, run)
    found = [list(own.values()) for own in groups.values()]
    return max(found, key=_completeness, default=[])


def _completeness(runs: list[RunRow]) -> tuple:
    spec = runs[0].spec
    newest = max(run.finished or 0.0 for run in runs)
    return len(runs), not spec.coverage, "alignment" not in spec.options, len(spec.seeds), newest


def _against(workspace: Workspace, rows: pd.DataFrame, runs: list[RunRow], sets: dict[str, Item]) -> list[dict]:
    """The rows of these runs by condition, with their differences. sets: by condition."""
    if not runs:
        return []
    names = {item.name: condition for condition, item in sets.items()}
    metric, direction = rows.iloc[0][["metric", "direction"]]
    neutral = METRICS[metric].neutral(len(runs[0].spec.attribute["values"]))
    original = sets[ORIGINAL].name if ORIGINAL in sets else ""
    changes = _changes(workspace, runs, metric, direction, original, masked_sets(sets))
    found = {}
    for row in rows[rows["run_id"].isin([run.run_id for run in runs])].to_dict("records"):
        above = (row["value"] - neutral, row["ci_low"] - neutral, row["ci_high"] - neutral)
        differences = (*changes.get(row["model"], (math.nan,) * 4), *above)
        found[names[row["model"]]] = row | dict(zip(DIFFERENCES, differences, strict=True))
    return [{"masked": condition} | found[condition] for condition in CONDITIONS if condition in found]


def _changes(
    workspace: Workspace, runs: list[RunRow], metric: str, direction: str, original: str, masked: Sequence[str] = ()
) -> dict[str, tuple]:
    """Of each masked set the change of its value from that on the originals, paired over images, with its interval,
    and the value on the originals of these images.

    Each set is compared alone, on all images that it shares with the originals, whatever the other sets lack; where
    one of both has more, by attackers that trained on shared images alone (runs/condition_runs.py). masked: all hashes.
    """
    by_name = {run.spec.model: run for run in runs}
    unmasked = by_name.pop(original, None)
    changes: dict[str, tuple] = {}
    if unmasked is None:
        return changes
    for name, run in by_name.items():
        both = _on_shared(workspace, unmasked, run, masked)
        for pair in ranking(workspace, both, metric, direction).pairs:
            changes[name] = (*_masked_minus_original(pair, original), pair.values[pair.second == original])
    return changes


def _on_shared(workspace: Workspace, unmasked: RunRow, run: RunRow, masked: Sequence[str]) -> list[RunRow]:
    """The runs of the originals and of a masked set on the images of both; without those that are not finished."""
    asked = [
        on_shared_images(workspace, own.spec, other.spec.captions, masked).run_id
        for own, other in ((unmasked, run), (run, unmasked))
    ]
    return [own for own in workspace.runs_of(asked).values() if own.status == "finished"]


def _masked_minus_original(pair: Pair, original: str) -> tuple[float, float, float]:
    """Difference and interval of a pair, whichever of both stands first in it."""
    low, high = (math.nan, math.nan) if pair.ci_low is None or pair.ci_high is None else (pair.ci_low, pair.ci_high)
    return (-pair.difference, -high, -low) if pair.first == original else (pair.difference, low, high)


# What each condition masks, in words. Everywhere else a condition is called by its name.
WHAT = {
    "original": "the photograph as it is",
    "part": "a part of the person",
    "segment": "the person's outline",
    "box": "the person's box",
    "person": "person mask from another source",
    "object": "an object",
    "both": "person and object",
}
# Where a condition is chosen: `segment (the person's outline)`.
TITLES = {name: f"{name} ({what})" for name, what in WHAT.items()}
# The strongest last, for the headline.
BY_STRENGTH = ("object", "part", "person", "segment", "box", "both")
LEAKAGE = "LIC_M"
COLOURS = (BLUE_MARK, ORANGE_MARK, "#2A9D8F", "#8C6BC8")
SHAPES = ("circle", "square", "diamond", "triangle-up")
PRINTED_SHAPES = ("diamond", "square", "triangle-up", "triangle-down", "hexagon", "star")
A_ROW = 2
PANEL = 250
MOST_DIGITS = 4
# Panels that are not called as the metric is: BA→ as DBAC's Table 4 names it, beside the name that it has here.
NAMED = {"attribution_score": "attribution score", "DBA_G": "BA→ T→A (DBA_G)"}


def condition_answer(rows: pd.DataFrame, captioner: str, attribute: str, under_way: bool = False) -> Answer:
    """Does masking take the leakage away, by how much, and is what is left above chance? Of LIC_M, with intervals;
    and what human captions of the originals say (LIC).

    rows: of one captioner and attribute, as `condition_rows` gives them. under_way: whether runs are.
    """
    own = rows[(rows["metric"] == LEAKAGE) & (rows["attribute"] == attribute)].set_index("masked")
    masked = [condition for condition in BY_STRENGTH if condition in own.index]
    if ORIGINAL not in own.index or not masked:
        what = f"{captioner}: what masking does to {attribute} leakage is"
        if under_way:
            return Answer(f"{what} being measured.", "The answer appears here by itself when the runs above are done.")
        needed = "LIC_M is needed on the captions of the originals and on those of masked photographs: press Run."
        return Answer(f"{what} not measured yet.", needed)
    strongest = own.loc[masked[-1]]
    left = f"LIC_M {_interval(strongest, 'value', 'ci_low', 'ci_high')}"
    what = f"With {masked[-1]} masked ({WHAT[masked[-1]]}), captions of {captioner}"
    chance = number(strongest["value"] - strongest["to_neutral"])
    if strongest["to_neutral_low"] > 0:
        above = _interval(strongest, "to_neutral", "to_neutral_low", "to_neutral_high")
        headline = f"{what} still reveal {attribute}: {left}, {above} above chance ({chance})."
    elif strongest["to_neutral_high"] < 0:
        headline = f"{what} reveal {attribute} less than chance ({chance}): {left}."
    else:
        headline = f"{what} do not reveal {attribute} measurably above chance ({chance}): {left}."
    support = (_beside_humans(rows, attribute, masked[-1]), _support(own, masked))
    return Answer(headline, " ".join(filter(None, support)))


def _beside_humans(rows: pd.DataFrame, attribute: str, strongest: str) -> str:
    """Whether captions of masked photographs give more away than human captions of the originals; '' without LIC."""
    own = rows[(rows["metric"] == "LIC") & (rows["attribute"] == attribute)].set_index("masked")
    if not {ORIGINAL, strongest} <= set(own.index):
        return ""
    row = own.loc[strongest]
    side = 0 if provisional(row.to_dict()) else int(row["ci_low"] > 0) - int(row["ci_high"] < 0)
    said = {1: "more than", -1: "less than", 0: "not measurably more than"}[side]
    after, before = (_interval(own.loc[condition], "value", "ci_low", "ci_high") for condition in (strongest, ORIGINAL))
    return f"That is {said} human captions of the originals reveal: LIC is {after}, and {before} on the originals."


def _support(own: pd.DataFrame, masked: Sequence[str]) -> str:
    original = own.loc[ORIGINAL]
    changes = "; ".join(f"{condition} by {_change(own.loc[condition], original)}" for condition in masked)
    seeds = f"{counted(int(original['seeds']), 'seed')} with {int(original['n']):,} test images each"
    basis = f"{seeds}, attacker {original['encoder']}"
    return (
        f"On the originals LIC_M is {_interval(original, 'value', 'ci_low', 'ci_high')}. Masking changes it: "
        f"{changes}. {_pairing(own)}; an interval containing 0 shows no clear change. {basis}."
    )


def _pairing(own: pd.DataFrame) -> str:
    """What changes rest on; see runs/condition_runs.py."""
    if own["n"].nunique() == 1:
        return "Changes are paired over the images that a set and the originals both held out"
    return (
        f"The sets hold different images ({int(own['n'].min()):,} to {int(own['n'].max()):,} test images per seed): "
        "each change, and what it is a share of, is by attackers trained on the images that its set and the originals "
        "share, and over those that both held out"
    )


def _change(row: pd.Series, original: pd.Series) -> str:
    """`−4.5 [−5.5, −3.5] (25% of what was above chance)`: of the originals of the images that the change is over."""
    text = _interval(row, "to_original", "to_original_low", "to_original_high")
    above = row["original_there"] - (original["value"] - original["to_neutral"])
    told = row["to_original_high"] < 0 and original["to_neutral_low"] > 0 and above > 0
    return f"{text} ({min(1, -row['to_original'] / above):.0%} of what was above chance)" if told else text


def _interval(row, value: str, low: str, high: str, digits: int = 1) -> str:
    if pd.isna(row[low]):
        return number(row[value], digits)
    return f"{number(row[value], digits)} [{limit(row[low], digits)}, {limit(row[high], digits)}]"


def condition_table(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a metric, attribute and condition, as text: value, its change from the original, and from chance.

    The attribute is left out where there is one.
    """
    needed = {metric: digits_of(metric, own) for metric, own in rows.groupby("metric")}
    records = [(row, needed[row["metric"]]) for row in rows.to_dict("records")]
    table = pd.DataFrame(
        {
            "metric": [_title(row["metric"], row["direction"]) for row, _ in records],
            "attribute": rows["attribute"],
            "masked": rows["masked"],
            "set": rows["model"],
            "value": [_interval(row, "value", "ci_low", "ci_high", digits) for row, digits in records],
            "± over seeds": [
                "" if pd.isna(row["spread"]) else f"±{number(row['spread'], digits)}" for row, digits in records
            ],
            "minus original": [_cell(row, "to_original", digits) for row, digits in records],
            "minus neutral": [_cell(row, "to_neutral", digits) for row, digits in records],
            "n": rows["n"],
        }
    )
    return table if table["attribute"].nunique() > 1 else table.drop(columns="attribute")


def _cell(row: dict, name: str, digits: int) -> str:
    return "" if pd.isna(row[name]) else _interval(row, name, f"{name}_low", f"{name}_high", digits)


def digits_of(metric: str, rows: pd.DataFrame) -> int:
    """Decimals of a metric: those that Scores gives it, and more where an interval of it is narrower than they show.

    rows: of this metric. Of an interval of 0.03 the second decimal is the first that tells anything.
    """
    usual = decimals(metric, METRICS[metric].scale) if metric in METRICS else 1
    widths = rows["ci_high"] - rows["ci_low"]
    narrowest = widths[widths > 0].min()
    return usual if pd.isna(narrowest) else min(MOST_DIGITS, max(usual, math.ceil(-math.log10(narrowest))))


def missing_line(missing: Missing) -> str:
    """`DBAC T→A has no value for box, both: not run yet.`"""
    name = _title(missing.metric, missing.direction)
    return f"{name} has no value for {', '.join(missing.conditions)}: {missing.reason}."


def _title(metric: str, direction: str) -> str:
    """As DBAC's Table 4 names it, such as DBAC T→A."""
    return f"{NAMED.get(metric, metric)}{' T→A' if direction else ''}"


def condition_chart(rows: pd.DataFrame, printed: pd.DataFrame):
    """Small multiples, one a metric: a dot and its 95% interval for each condition and attribute, joined by a line.

    rows: measured, of one captioner. printed: the papers' values of the same attributes (see `printed_conditions`), in
    open grey marks, joined where they are of one captioner. The neutral point is a dashed line. None without values.
    """
    need("A chart", "plotly")
    from plotly.subplots import make_subplots

    shown = [key for key in PANELS if len(_of(rows, key)) or len(_of(printed, key))]
    conditions = [name for name in CONDITIONS if name in {*rows["masked"], *printed["masked"]}]
    attributes = list(dict.fromkeys([*rows["attribute"], *printed["attribute"]]))
    if not shown:
        return None
    height = math.ceil(len(shown) / A_ROW)
    figure = make_subplots(
        rows=height,
        cols=A_ROW,
        subplot_titles=[_panel_title(key) for key in shown],
        vertical_spacing=0.28 / height,
        horizontal_spacing=0.09,
    )
    named: dict[str, int] = {}  # the lines of the legend, in order
    for place, key in enumerate(shown):
        at = {"row": place // A_ROW + 1, "col": place % A_ROW + 1}
        for number_of, attribute in enumerate(attributes):
            for own in _lines(_of(printed, key), attribute):
                _add_line(figure, own, conditions, number_of, named, at, printed=True)
            for own in _lines(_of(rows, key), attribute):
                _add_line(figure, own, conditions, number_of, named, at, printed=False)
        neutrals = {round(own, 6) for own in _neutrals(_of(rows, key), key[0])}
        for neutral in neutrals:
            figure.add_hline(y=neutral, line={"dash": "dash", "color": GREY, "width": 1.5}, **at)
        figure.update_xaxes(
            tickmode="array",
            tickvals=list(range(len(conditions))),
            ticktext=conditions,
            range=[-0.5, len(conditions) - 0.5],
            zeroline=False,
            **at,
        )
        figure.update_yaxes(zeroline=False, automargin=True, **at)
    figure.update_layout(
        height=int(MARGINS + 40 + PANEL * height),
        margin={"l": 10, "r": 10, "t": 90, "b": 30},
        dragmode=False,
        legend={"orientation": "h", "yref": "container", "yanchor": "top", "y": 1, "x": 0, "xanchor": "left"},
    )
    figure.update_annotations(font={"size": 14})
    return figure


def apart_from_measured(rows: pd.DataFrame, printed: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Printed values of the metrics and directions that were measured, and those of all others."""
    measured = [key for key in PANELS if len(_of(rows, key))]
    there = pd.Series(zip(printed["metric"], printed["direction"], strict=True), printed.index, dtype=object)
    return printed[there.isin(measured)], printed[~there.isin(measured)]


def panel_names(rows: pd.DataFrame) -> list[str]:
    """What the panels of `condition_chart` are called for these rows."""
    return [_title(*key) for key in PANELS if len(_of(rows, key))]


def _of(rows: pd.DataFrame, key: tuple[str, str]) -> pd.DataFrame:
    return rows[(rows["metric"] == key[0]) & (rows["direction"] == key[1]) & rows["value"].notna()]


def _panel_title(key: tuple[str, str]) -> str:
    arrow = {"lower": "↓", "higher": "↑"}.get(METRICS[key[0]].better, "") if key[0] in METRICS else ""
    return f"{_title(*key)} {arrow}".strip()


def _lines(rows: pd.DataFrame, attribute: str) -> list[pd.DataFrame]:
    """The rows of an attribute, each captioner's apart."""
    own = rows[rows["attribute"] == attribute]
    keys = ["paper", "captioner"] if "captioner" in own else ["paper", "model"]
    return [part for _, part in own.groupby(keys, sort=False)]


def _neutrals(rows: pd.DataFrame, metric: str) -> list[float]:
    """The neutral points of measured rows; LIC_M's depends on how many values an attribute has."""
    found = (rows["value"] - rows["to_neutral"]).dropna()
    return [float(value) for value in found.unique()] if metric in METRICS else []


def _add_line(
    figure, own: pd.DataFrame, conditions: list[str], place: int, named: dict[str, int], at, printed: bool
) -> None:
    import plotly.graph_objects as go

    own = own.sort_values("masked", key=lambda column: column.map(conditions.index))
    colour = GREY if printed else COLOURS[place % len(COLOURS)]
    name = _name(own.iloc[0], printed)
    low, high = _ends(own)
    digits = digits_of(own.iloc[0]["metric"], own)
    hover = [
        f"{escape(name)}, {row['masked']}: {number(row['value'], digits)}{_told(row, digits)}"
        for row in own.to_dict("records")
    ]
    shown, number_of = name in named, named.setdefault(name, len(named))
    shape = SHAPES[place % len(SHAPES)] if not printed else f"{PRINTED_SHAPES[number_of % len(PRINTED_SHAPES)]}-open"
    offset = 0.12 * (place - 0.5) + (0.06 if printed else 0.0)
    figure.add_trace(
        go.Scatter(
            x=[conditions.index(condition) + offset for condition in own["masked"]],
            y=own["value"],
            mode="lines+markers",
            name=escape(name),
            legendgroup=name,
            showlegend=not shown,
            legendrank=2 if printed else 1,
            hovertext=hover,
            hoverinfo="text",
            line={"color": colour, "width": 1, "dash": "dot"},
            marker={"size": 9, "color": colour, "symbol": shape},
            error_y={
                "type": "data",
                "symmetric": False,
                "array": high - own["value"],
                "arrayminus": own["value"] - low,
                "color": colour,
                "thickness": 2,
                "width": 0,
            },
        ),
        **at,
    )


def _name(row: pd.Series, printed: bool) -> str:
    if not printed:
        return f"{row['captioner']}, {row['attribute']}"
    paper = {"lic": "LIC Table 4", "dbac": "DBAC Table 4"}.get(row["paper"], row["paper"])
    return f"published: {row['model']}, {row['attribute']} ({paper})"


def _ends(own: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """The 95% interval; of printed values that of DBAC over seeds (value ± half width), and none of a deviation."""
    half = own["spread"].where(own["spread_kind"] == "ci95", 0.0).fillna(0.0)
    return own["ci_low"].fillna(own["value"] - half), own["ci_high"].fillna(own["value"] + half)


def _told(row: dict, digits: int) -> str:
    if pd.notna(row["ci_low"]):
        return f" [{number(row['ci_low'], digits)}, {number(row['ci_high'], digits)}] {interval_over(row)}"
    return f" ± {number(row['spread'], digits)} ({row['spread_kind']})" if pd.notna(row["spread"]) else ""
