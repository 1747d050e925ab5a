"""What masking photographs does to each metric: rows by condition, a sentence, small multiples, a table."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from html import escape
from typing import Annotated

import pandas as pd

from capbias_core.aggregate import provisional
from capbias_core.attackers import DEFAULT_ATTACKER, attacker_entry
from capbias_core.errors import CapbiasError
from capbias_core.load.published import published_results
from capbias_core.measures.options import Attacked, Option, Seeded
from capbias_core.measures.registry import METRICS, measure_of, needs_references
from capbias_core.runs.condition_runs import AGAINST_CONDITION, Plan, masked_sets, on_shared_images, plan_conditions
from capbias_core.types import CONDITIONS, RESULT_COLUMNS, T_TO_A, counted
from capbias_core.views.charts import COLOURS, GREY, MARGINS, error_bars, graph_objects
from capbias_core.views.published import printed_conditions
from capbias_core.views.results import current_runs, ranking, references_read, runs_against, runs_with, tables_read
from capbias_core.views.sentence import Answer, decimals, interval_over, intervals_over, limit, number, with_interval
from capbias_core.views.view import Run, Shown, nothing_run
from capbias_core.workspace.conditions import ORIGINAL, condition_sets, sets_of, taken_of_several
from capbias_core.workspace.labels import table_with
from capbias_core.workspace.objects import chosen_objects
from capbias_core.workspace.spec import Setting
from capbias_core.workspace.store import ACTIVE, Item, RunRow, Workspace

# What is shown against the condition, in this order: metric and direction as measured. DBA_G is the T->A side of BA→.
PANELS = (("LIC_M", ""), ("LIC", ""), ("DBAC", T_TO_A), ("DPA", T_TO_A), ("DBA_G", ""), ("attribution_score", ""))
# Panels that are not called as the metric is: BA→ as DBAC's Table 4 names it, beside the name that it has here.
NAMED = {"attribution_score": "attribution score", "DBA_G": "BA→ T→A (DBA_G)"}
TO_ORIGINAL, TO_NEUTRAL = (
    tuple(f"to_{other}{end}" for end in ("", "_low", "_high")) for other in ("original", "neutral")
)
DIFFERENCES = (*TO_ORIGINAL, "original_there", *TO_NEUTRAL)
COLUMNS = ("captioner", "masked", *DIFFERENCES, *RESULT_COLUMNS)

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


READING = (
    "Dashed: chance for LIC_M, 0 for the others. Minus original: paired over the images that both sets have, so it "
    "can differ from the difference of the two values. Minus neutral: above chance for LIC_M, above 0 for the others. "
    "LIC_M is on all images, LIC on those with human captions. "
    f"Conditions: {'; '.join(f'{name}: {what}' for name, what in WHAT.items())}."
)
PUBLISHED = (
    "Grey: published values of LIC (BiLSTM, Table 4) and DBAC (BLIP, LSTM, Table 4), of other captioners or encoders, "
    "so not comparable."
)


def conditions(
    workspace: Workspace,
    collection: Annotated[str, Option("the collection", metavar="NAME")],
    attributes: Annotated[Sequence[str], Option("protected attributes", "--attribute", metavar="NAME")],
    captioners: Annotated[
        Sequence[str],
        Option("captioners (default: all with captions under two conditions or more)", "--captioner", metavar="NAME"),
    ] = (),
    references: Annotated[
        str, Option("human captions (default: those of the best answer, else of most images)", metavar="NAME")
    ] = "",
    objects: Annotated[
        str, Option("objects of the photographs, for DBAC, DPA and DBA (default: the only ones)", metavar="NAME")
    ] = "",
    sets: Annotated[
        Sequence[str],
        Option(
            "sets to measure if a captioner has several of one condition (default: the newest)", "--set", metavar="NAME"
        ),
    ] = (),
    metrics: Annotated[
        Sequence[str],
        Option(
            f"one or more of: {', '.join(AGAINST_CONDITION)} (default: all that the collection allows)",
            "--metric",
            metavar="NAME",
        ),
    ] = (),
    measured: Annotated[bool, Option("show finished results, and run nothing")] = False,
    attacker: Annotated[str, Attacked.about()["attacker"]] = DEFAULT_ATTACKER,
    seeds: Annotated[int, Seeded.about()["seeds"]] = Seeded.seeds,
    device: Annotated[str, Attacked.about()["device"]] = "",
    deterministic: Annotated[bool, Attacked.about()["deterministic"]] = False,
    merge_masks: Annotated[bool, Attacked.about()["merge_masks"]] = False,
    run: Run = nothing_run,
) -> Shown:
    """A captioner's metrics for each condition of the photographs, with their changes from the originals.

    rows: in COLUMNS. run: computes what is missing first, unless `measured`. Raises CapbiasError if no captioner has
    captions of masked photographs, or nothing is measured.
    """
    known = condition_sets(workspace, collection)
    captioners = captioners or [name for name, sets_of in known.items() if len(sets_of) > 1]
    if not captioners:
        raise CapbiasError(
            f"No captioner of {collection} has captions of masked photographs.",
            "Import captions of the same photographs, original and masked, with --captioner NAME --condition NAME.",
        )
    tables, human = tables_read(workspace, collection), references_read(workspace, collection)
    if references:
        human = dict.fromkeys(attributes, workspace.item("references", references, collection))
    given = {"device": device, "deterministic": deterministic, "merge_masks": merge_masks}
    options = {name: value for name, value in given.items() if value}
    notes = [
        f"Of several sets of {name}, {line}; choose with --set."
        for name in captioners
        for line in taken_of_several(workspace, collection, name, sets)
    ]
    pairs = [(name, of) for name in captioners for of in attributes]
    if not measured:
        specs = {}
        for name, of in pairs:
            against = human[of].name if of in human else ""
            asked = (attacker, seeds, tuple(metrics or AGAINST_CONDITION), against, options, sets)
            planned = plan_conditions(workspace, collection, name, of, *asked, table=tables.get(of), objects=objects)
            specs |= {spec.run_id: spec for spec in planned.specs}
            notes += planned.lacking
        run(list(specs.values()), collection)
    parts, headlines = [], []
    for name, of in pairs:
        table = tables.get(of) or table_with(workspace.items("attributes", collection), of)
        digest = chosen_objects(workspace, collection, table, objects) if objects else ""
        part = condition_rows(
            *(workspace, collection, name, of, attacker_entry(attacker).name),
            chosen=sets,
            table=tables.get(of),
            references=human.get(of),
            objects=digest,
        )
        parts.append(part)
        headlines += [condition_answer(part, name, of).headline] if "LIC_M" in set(part["metric"]) else []
    rows = pd.concat(parts, ignore_index=True)[list(COLUMNS)]
    if rows.empty:
        if measured:
            raise CapbiasError("No number is measured already.", "Leave out --measured to measure it.")
        raise CapbiasError("No captioner has numbers under two conditions.", " ".join(dict.fromkeys(notes)))
    printed = printed_conditions(published_results(), attributes[0]).iloc[:0]
    return conditions_shown(rows, printed, " ".join(headlines), notes)


def conditions_shown(rows: pd.DataFrame, printed: pd.DataFrame, sentence: str = "", notes: Sequence[str] = ()) -> Shown:
    """Rows of `condition_rows` as a view. printed: published values to overlay in the chart."""
    names = ", ".join(panel_names(pd.concat([rows, printed])))
    of = ", ".join(dict.fromkeys(rows["captioner"])) or "captioners"
    reading = f"Value [{intervals_over(rows)}]. {READING}" if len(rows) else ""
    return Shown(
        title=f"{names} of {of} against what was masked",
        rows=rows,
        sentence=sentence,
        notes=tuple(filter(None, (PUBLISHED if len(printed) else "", *dict.fromkeys(notes), reading))),
        table=condition_table(rows),
        chart=lambda: condition_chart(rows, printed),
    )


# rows


def without_value(workspace: Workspace, plan: Plan, sets: dict[str, Item], rows: pd.DataFrame) -> list[str]:
    """Why metrics of PANELS lack values in these rows: `DBAC T→A has no value for box, both: not run yet.`

    plan: the runs of these sets (by condition). Reasons in `plan.lacking` are not repeated.
    """
    have = set(zip(rows["metric"], rows["direction"], rows["masked"], strict=True))
    known = workspace.runs_of([spec.run_id for spec in plan.specs])
    lines = []
    for metric, direction in PANELS:
        measure, reasons = measure_of(metric), dict[str, list[str]]()
        planned = [spec for spec in plan.specs if spec.measure == measure.name]
        for condition, item in sets.items():
            specs = [spec for spec in planned if spec.model == item.name]
            specs = [spec for spec in specs if spec.references or not needs_references(metric)]
            run = known.get(specs[0].run_id) if specs else None
            if (metric, direction, condition) in have:
                continue
            if measure.needs.people:
                reason = "no run has made maps of its captions"
            elif not planned:
                continue
            elif not specs:
                reason = "that needs human captions of the same photographs"
            elif run is None or run.status in ACTIVE:
                reason = "under way" if run else "not run yet"
            else:
                reason = "its run gave none" if run.status == "finished" else f"its run {run.status} ({run.message})"
            reasons.setdefault(reason, []).append(condition)
        name = _title(metric, direction)
        lines += [f"{name} has no value for {', '.join(names)}: {reason}." for reason, names in reasons.items()]
    return lines


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
    seeds: int | None = None,
    objects: str = "",
) -> pd.DataFrame:
    """Measured metrics of PANELS of a captioner's sets: one row per metric and condition, in COLUMNS.

    chosen: as in `condition_sets`. among, table, references, seeds, objects: count only these runs, or runs with this
    table of labels, these human captions, this number of seeds, objects of this content hash (default: all). If a
    metric was measured in several ways (seeds, alignment, part of the images), the way with most conditions counts; of
    equal ones all images before a part, then most seeds. Columns besides those of results:

    masked: the condition of the photographs.
    to_original: the value minus that on the originals, paired over the images of both, with a 95% interval.
    original_there: the value on the originals over the same images.
    to_neutral: the value minus the metric's neutral point (chance for LIC_M), with a 95% interval.
    """
    sets = sets_of(workspace, collection, captioner, chosen)
    names = {item.name: condition for condition, item in sets.items()}
    runs = [
        run
        for run in current_runs(workspace, collection)
        if run.spec.attribute.get("name") == attribute
        and not run.spec.merge_masks
        and run.spec.model in names
        and run.spec.attacker in ("", attacker)
        and (among is None or run.run_id in among)
        and (seeds is None or len(run.spec.seeds) in (0, seeds))
        and (not objects or run.spec.objects.get("table", objects) == objects)
    ]
    runs = runs if table is None else runs_with(runs, {attribute: table})
    runs = runs if references is None else runs_against(runs, {attribute: references})
    results = workspace.results([run.run_id for run in runs])
    rows = []
    for metric, direction in PANELS:
        measured = _of(results, (metric, direction))
        comparable = _alike(runs, set(measured["run_id"]))
        if not comparable:
            continue
        neutral = METRICS[metric].neutral(len(comparable[0].spec.attribute["values"]))
        original = sets[ORIGINAL].name if ORIGINAL in sets else ""
        changes = _changes(workspace, comparable, metric, direction, original, masked_sets(sets))
        by_condition = {}
        for row in measured[measured["run_id"].isin([run.run_id for run in comparable])].to_dict("records"):
            above = (row["value"] - neutral, row["ci_low"] - neutral, row["ci_high"] - neutral)
            differences = (*changes.get(row["model"], (math.nan,) * 4), *above)
            by_condition[names[row["model"]]] = row | dict(zip(DIFFERENCES, differences, strict=True))
        for condition in CONDITIONS:
            if condition in by_condition:
                rows.append({"captioner": captioner, "masked": condition} | by_condition[condition])
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _alike(runs: Sequence[RunRow], run_ids: set[str]) -> list[RunRow]:
    """The runs that measured most conditions in one way: the same but for the captions and the photographs."""
    groups: dict[str, dict[str, RunRow]] = {}
    for run in runs:  # newest first
        if run.run_id in run_ids:
            groups.setdefault(Setting.of(run.spec).key, {}).setdefault(run.spec.model, run)

    def completeness(runs: list[RunRow]) -> tuple:
        spec, newest = runs[0].spec, max(run.finished or 0.0 for run in runs)
        return len(runs), not spec.coverage, "alignment" not in spec.options, len(spec.seeds), newest

    return max((list(group.values()) for group in groups.values()), key=completeness, default=[])


def _changes(
    workspace: Workspace, runs: list[RunRow], metric: str, direction: str, original: str, masked: Sequence[str] = ()
) -> dict[str, tuple]:
    """By masked set: the change of its value from that on the originals, paired over images, the ends of its interval,
    and the value on the originals of these images.

    Each set is compared on all images that it shares with the originals, whatever the other sets lack. If one side has
    more images, the attackers trained on shared images alone (runs/condition_runs.py). masked: hashes of all sets.
    """
    by_name = {run.spec.model: run for run in runs}
    unmasked = by_name.pop(original, None)
    changes: dict[str, tuple] = {}
    if unmasked is None:
        return changes
    for name, run in by_name.items():
        for pair in ranking(workspace, _on_shared(workspace, unmasked, run, masked), metric, direction).pairs:
            low, high = (math.nan if end is None else end for end in (pair.ci_low, pair.ci_high))
            change = (-pair.difference, -high, -low) if pair.first == original else (pair.difference, low, high)
            changes[name] = (*change, pair.values[pair.second == original])
    return changes


def _on_shared(workspace: Workspace, unmasked: RunRow, run: RunRow, masked: Sequence[str]) -> list[RunRow]:
    """The finished runs of the originals and of a masked set on the images of both."""
    specs = [
        on_shared_images(workspace, one.spec, other.spec.captions, masked)
        for one, other in ((unmasked, run), (run, unmasked))
    ]
    runs = workspace.runs_of([spec.run_id for spec in specs]).values()
    return [run for run in runs if run.status == "finished"]


# the answer


def condition_answer(rows: pd.DataFrame, captioner: str, attribute: str, under_way: bool = False) -> Answer:
    """How far masking lowers LIC_M, whether the rest is above chance, and LIC beside it.

    rows: from `condition_rows`, of one captioner and attribute. under_way: whether runs are active.
    """
    scores = rows[(rows["metric"] == "LIC_M") & (rows["attribute"] == attribute)].set_index("masked")
    strengths = ("object", "part", "person", "segment", "box", "both")  # the strongest last, for the headline
    masked = [condition for condition in strengths if condition in scores.index]
    if ORIGINAL not in scores.index or not masked:
        what = f"{captioner}: what masking does to {attribute} leakage is"
        if under_way:
            return Answer(f"{what} being measured.", "The answer appears here when the runs above are done.")
        needed = "LIC_M is needed on the captions of the originals and on those of masked photographs: press Run."
        return Answer(f"{what} not measured yet.", needed)
    strongest, original = scores.loc[masked[-1]], scores.loc[ORIGINAL]
    left = f"LIC_M {_interval(strongest)}"
    what = f"With {masked[-1]} masked ({WHAT[masked[-1]]}), captions of {captioner}"
    chance = number(strongest["value"] - strongest["to_neutral"])
    if strongest["to_neutral_low"] > 0:
        above = with_interval(*strongest[list(TO_NEUTRAL)])
        headline = f"{what} still reveal {attribute}: {left}, {above} above chance ({chance})."
    elif strongest["to_neutral_high"] < 0:
        headline = f"{what} reveal {attribute} less than chance ({chance}): {left}."
    else:
        headline = f"{what} do not reveal {attribute} measurably above chance ({chance}): {left}."
    support = []
    lic = rows[(rows["metric"] == "LIC") & (rows["attribute"] == attribute)].set_index("masked")
    if {ORIGINAL, masked[-1]} <= set(lic.index):  # is that more than human captions of the originals reveal?
        row = lic.loc[masked[-1]]
        side = 0 if provisional(row.to_dict()) else int(row["ci_low"] > 0) - int(row["ci_high"] < 0)
        more = {1: "more than", -1: "less than", 0: "not measurably more than"}[side]
        support.append(
            f"That is {more} human captions of the originals reveal: LIC is {_interval(row)}, and "
            f"{_interval(lic.loc[ORIGINAL])} on the originals."
        )
    changes = []  # such as `part by −4.5 [−5.5, −3.5] (25% of what was above chance)`
    for condition in masked:
        row = scores.loc[condition]
        text = f"{condition} by {with_interval(*row[list(TO_ORIGINAL)])}"
        # Of the originals of the images that the change is over.
        above = row["original_there"] - (original["value"] - original["to_neutral"])
        if row["to_original_high"] < 0 and original["to_neutral_low"] > 0 and above > 0:
            text += f" ({min(1, -row['to_original'] / above):.0%} of what was above chance)"
        changes.append(text)
    pairing = "Changes are paired over the images that a set and the originals both held out"
    if scores["n"].nunique() > 1:  # see runs/condition_runs.py
        pairing = (
            f"The sets hold different images ({int(scores['n'].min()):,} to {int(scores['n'].max()):,} test images per "
            "seed): each change, and what it is a share of, is by attackers trained on the images that its set and the "
            "originals share, and over those that both held out"
        )
    seeds = f"{counted(int(original['seeds']), 'seed')} with {int(original['n']):,} test images each"
    support.append(
        f"On the originals LIC_M is {_interval(original)}. Masking changes it: {'; '.join(changes)}. {pairing}; an "
        f"interval containing 0 shows no clear change. {seeds}, attacker {original['encoder']}."
    )
    return Answer(headline, " ".join(support))


def _interval(row: pd.Series | dict, digits: int = 1) -> str:
    return with_interval(row["value"], row["ci_low"], row["ci_high"], digits)


# the table


def condition_table(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a metric and condition, as text: value, its change from the original, and from chance. Captioner and
    attribute have columns where there are several."""
    digits_by = {metric: digits_of(metric, group) for metric, group in rows.groupby("metric")}
    cells = []
    for row in rows.to_dict("records"):
        digits = digits_by[row["metric"]]
        differences = {
            title: "" if pd.isna(row[names[0]]) else with_interval(row[names[0]], row[names[1]], row[names[2]], digits)
            for title, names in (("minus original", TO_ORIGINAL), ("minus neutral", TO_NEUTRAL))
        }
        cells.append(
            {
                "captioner": row["captioner"],
                "metric": _title(row["metric"], row["direction"]),
                "attribute": row["attribute"],
                "masked": row["masked"],
                "value": _interval(row, digits),
                **differences,
                "n": row["n"],
                "set": row["model"],
                "± over seeds": "" if pd.isna(row["spread"]) else f"±{limit(row['spread'], digits)}",
            }
        )
    table = pd.DataFrame(cells)
    return table.drop(
        columns=[name for name in ("captioner", "attribute") if name in table and rows[name].nunique() < 2]
    )


def digits_of(metric: str, rows: pd.DataFrame) -> int:
    """Decimals of a metric: as on Scores, and up to four if an interval in these rows is narrower than they show."""
    usual = decimals(metric, METRICS[metric].scale) if metric in METRICS else 1
    widths = rows["ci_high"] - rows["ci_low"]
    narrowest = widths[widths > 0].min()
    return usual if pd.isna(narrowest) else min(4, max(usual, math.ceil(-math.log10(narrowest))))


def _title(metric: str, direction: str) -> str:
    """As DBAC's Table 4 names it, such as DBAC T→A."""
    return f"{NAMED.get(metric, metric)}{' T→A' if direction else ''}"


# the chart

SHAPES = ("circle", "square", "diamond", "triangle-up")
PRINTED_SHAPES = ("diamond", "square", "triangle-up", "triangle-down", "hexagon", "star")


def _of(rows: pd.DataFrame, panel: tuple[str, str]) -> pd.DataFrame:
    return rows[(rows["metric"] == panel[0]) & (rows["direction"] == panel[1]) & rows["value"].notna()]


def panel_names(rows: pd.DataFrame | None = None) -> list[str]:
    """What the panels of `condition_chart` are called: of these rows, or all."""
    return [_title(*panel) for panel in PANELS if rows is None or len(_of(rows, panel))]


def condition_chart(rows: pd.DataFrame, printed: pd.DataFrame):
    """A panel per metric: a dot with its 95% interval for each condition, joined by a line for each captioner and
    attribute.

    rows: measured. printed: the papers' values (see `printed_conditions`), in open grey marks. The
    neutral point is a dashed line. None without values.
    """
    graph_objects()
    from plotly.subplots import make_subplots

    shown = [panel for panel in PANELS if len(_of(rows, panel)) or len(_of(printed, panel))]
    conditions = [name for name in CONDITIONS if name in {*rows["masked"], *printed["masked"]}]
    attributes = list(dict.fromkeys([*rows["attribute"], *printed["attribute"]]))
    lines = list(dict.fromkeys(zip(rows["captioner"], rows["attribute"], strict=True)))  # a colour each
    if not shown:
        return None
    columns = min(2, len(shown))
    height = math.ceil(len(shown) / columns)
    arrows = {"lower": " ↓", "higher": " ↑"}
    figure = make_subplots(
        rows=height,
        cols=columns,
        subplot_titles=[
            _title(*panel) + (arrows.get(METRICS[panel[0]].better, "") if panel[0] in METRICS else "")
            for panel in shown
        ],
        vertical_spacing=0.28 / height,
        horizontal_spacing=0.09,
    )
    legend: dict[str, int] = {}  # the lines of the legend, in order
    ticks = {"tickmode": "array", "tickvals": list(range(len(conditions))), "ticktext": conditions}
    for number_of, panel in enumerate(shown):
        at = {"row": number_of // columns + 1, "col": number_of % columns + 1}
        measured = _of(rows, panel)
        for (attribute, _, _), line in _of(printed, panel).groupby(["attribute", "paper", "model"], sort=False):
            figure.add_trace(_line(line, conditions, attributes.index(attribute), legend), **at)
        for of, line in measured.groupby(["captioner", "attribute"], sort=False):
            figure.add_trace(_line(line, conditions, lines.index(of), legend), **at)
        # LIC_M's neutral point depends on how many values an attribute has.
        neutrals = (measured["value"] - measured["to_neutral"]).dropna().unique() if panel[0] in METRICS else ()
        for neutral in {round(float(value), 6) for value in neutrals}:
            figure.add_hline(y=neutral, line={"dash": "dash", "color": GREY, "width": 1.5}, **at)
        figure.update_xaxes(**ticks, range=[-0.5, len(conditions) - 0.5], zeroline=False, **at)
        figure.update_yaxes(zeroline=False, automargin=True, **at)
    figure.update_layout(
        height=int(MARGINS + 40 + 250 * height),
        margin={"l": 10, "r": 10, "t": 90, "b": 30},
        dragmode=False,
        legend={"orientation": "h", "yref": "container", "yanchor": "top", "y": 1, "x": 0, "xanchor": "left"},
    )
    return figure.update_annotations(font={"size": 14})


def _line(line: pd.DataFrame, conditions: list[str], index: int, legend: dict[str, int]):
    """The values of one captioner and attribute (number `index`) over conditions. legend: names that it has already."""
    line = line.assign(at=line["masked"].map(conditions.index)).sort_values("at")
    gaps = line[line["at"].diff() > 1]  # the line ends at a condition without a value
    gaps = gaps.assign(at=gaps["at"] - 0.5, value=math.nan, ci_low=math.nan, ci_high=math.nan)
    line = pd.concat([line, gaps]).sort_values("at")
    first, printed = line.iloc[0], "captioner" not in line
    if printed:
        paper = {"lic": "LIC Table 4", "dbac": "DBAC Table 4"}.get(first["paper"], first["paper"])
        name = f"published: {first['model']}, {first['attribute']} ({paper})"
    else:
        name = f"{first['captioner']}, {first['attribute']}"
    # The 95% interval; of printed values that of DBAC over seeds (value ± half width), and none of a deviation.
    half = line["spread"].where(line["spread_kind"] == "ci95", 0.0).fillna(0.0)
    low, high = line["ci_low"].fillna(line["value"] - half), line["ci_high"].fillna(line["value"] + half)
    digits, hover = digits_of(first["metric"], line), []
    for row in line.to_dict("records"):
        text = _interval(row, digits)
        if pd.notna(row["ci_low"]):
            text += f" {interval_over(row)}"
        elif pd.notna(row["spread"]):
            text += f" ± {number(row['spread'], digits)} ({row['spread_kind']})"
        hover.append(f"{escape(name)}, {row['masked']}: {text}")
    new, number_of = name not in legend, legend.setdefault(name, len(legend))
    colour = GREY if printed else COLOURS[index % len(COLOURS)]
    shape = f"{PRINTED_SHAPES[number_of % len(PRINTED_SHAPES)]}-open" if printed else SHAPES[index % len(SHAPES)]
    offset = 0.12 * (index - 0.5) + (0.06 if printed else 0.0)
    return graph_objects().Scatter(
        x=line["at"] + offset,
        y=line["value"],
        mode="lines+markers",
        name=escape(name),
        legendgroup=name,
        showlegend=new,
        legendrank=2 if printed else 1,
        hovertext=hover,
        hoverinfo="text",
        line={"color": colour, "width": 1, "dash": "dot"},
        marker={"size": 9, "color": colour, "symbol": shape},
        error_y=error_bars(line["value"], low, high, colour, 2),
    )
