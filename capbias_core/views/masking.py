"""Masking: what hiding people or objects on the photographs does to the scores of their captions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
from pydantic import Field as Described

from capbias_core.aggregate import provisional
from capbias_core.aggregate.estimate import interval_side
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.kinds import CAPTIONS, LABELS
from capbias_core.measures.registry import METRICS, expand_metrics
from capbias_core.runs.condition_runs import AGAINST_CONDITION, masked_sets, on_shared_images, plan_conditions
from capbias_core.types import CONDITIONS, T_TO_A
from capbias_core.views.choose import Choice
from capbias_core.views.results import in_order, ranking
from capbias_core.views.sentence import decimals, listed, measure, number, say
from capbias_core.views.view import Field, Forest, View, ViewOptions
from capbias_core.workspace.conditions import ORIGINAL, condition_of, condition_sets, taken_of_several
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Item, RunRow, Workspace

# What is shown against the condition, in this order. DBA_G is the T->A side of BA→, as DBAC's Table 4 has it.
SHOWN = (("LIC_M", ""), ("LIC", ""), ("DBAC", T_TO_A), ("DPA", T_TO_A), ("DBA_G", ""), ("attribution_score", ""))
FIRST = ("LIC_M", "LIC")  # if nothing is asked for
CHANGE = ("to_original", "to_original_low", "to_original_high", "original_there")
# What each condition hides, in words. Everywhere else a condition is called by its name.
WHAT = {
    "original": "nothing",
    "part": "a part of the person",
    "segment": "the person's outline",
    "box": "the person's box",
    "person": "the person (mask from elsewhere)",
    "object": "an object",
    "both": "person and object",
}
# Where a condition is chosen: `segment (the person's outline)`.
TITLES = {name: f"{name} ({what})" for name, what in WHAT.items()}
STRENGTHS = ("object", "part", "person", "segment", "box", "both")  # the strongest last: the sentence is about it


class MaskingOptions(ViewOptions):
    metric: tuple[str, ...] = Described(
        default=(), description=f"metrics, or of {', '.join(AGAINST_CONDITION)} (default: {' and '.join(FIRST)})"
    )
    objects: str = Described(
        default="", description="objects of the photographs, for DPA and DBA (default: the only ones)"
    )


USUAL = MaskingOptions()


def asked_metrics(names: Sequence[str]) -> list[tuple[str, str]]:
    """The metrics of SHOWN that some names stand for. Raises CapbiasError for a name that stands for none."""
    known = {key[0].lower(): (key,) for key in SHOWN}
    known |= {group: [key for key in SHOWN if key[0] in expand_metrics([group])] for group in AGAINST_CONDITION}
    if unknown := [name for name in names if name.lower() not in known]:
        raise unknown_name("metric", unknown[0], [*AGAINST_CONDITION, *(key[0] for key in SHOWN)])
    asked = [key for name in names or FIRST for key in known[name.lower()]]
    return [key for key in SHOWN if key in asked]


def masked_captioners(choice: Choice) -> dict[str, dict[str, Item]]:
    """The captioners of the choice with captions under several conditions, and their newest set of each; the one that
    is read first."""
    items = {item.name: item for item in choice.workspace.items(CAPTIONS, choice.collection)}
    read = [condition_of(items[name])[0] for name in choice.captioners if name in items]
    known = condition_sets(choice.workspace, choice.collection)
    return {name: known[name] for name in dict.fromkeys(read) if len(known[name]) > 1}


def masking_runs(choice: Choice, options: MaskingOptions = USUAL) -> list[RunSpec]:
    """The runs that the rows need: with the attacker, labels and human captions of the setting; LIC with its seeds,
    too."""
    setting, wanted = choice.measured_with, {name for name, _ in asked_metrics(options.metric)}
    groups = [name for name in AGAINST_CONDITION if set(expand_metrics([name])) & wanted]
    table = choice.workspace.item(LABELS, setting.labels, choice.collection)
    specs: dict[str, RunSpec] = {}
    for captioner in masked_captioners(choice):
        for group in groups:
            planned = plan_conditions(
                *(choice.workspace, choice.collection, captioner, choice.attribute, setting.attacker),
                seeds=setting.seeds if group == "lic" else None,
                metrics=(group,),
                references=setting.references,
                table=table,
                objects=options.objects,
            )
            specs |= {spec.run_id: spec for spec in planned}
    return list(specs.values())


# rows


def masking_rows(choice: Choice, options: MaskingOptions = USUAL) -> pd.DataFrame:
    """A row for each captioner, metric and condition. captioner, set: whose captions, and what the set is called.
    masked: the condition; what: in words; line: with the captioner if there are several; column: the metric.
    to_original: the value minus that on the originals, paired over the images of both, with a 95% interval.
    original_there: the value on the originals over the same images. neutral: chance for LIC_M, else 0.

    Raises CapbiasError if no captioner has captions of masked photographs.
    """
    captioners = masked_captioners(choice)
    if not captioners:
        names = listed(choice.captioners)
        raise CapbiasError(
            f"{names}: no captions of masked photographs.",
            "Import captions of the same photographs, original and masked, named such as sat and sat_masked_person.",
        )
    wanted, parts, values = asked_metrics(options.metric), [], len(choice.defined.values)
    for captioner, sets in captioners.items():
        part = _measured(choice, {item.name: condition for condition, item in sets.items()}, wanted)
        original, changes = (
            sets[ORIGINAL].name if ORIGINAL in sets else "",
            pd.DataFrame(columns=list(CHANGE), dtype=float),
        )
        for (metric, direction), rows in part.groupby(["metric", "direction"], sort=False):
            runs, masked = choice.workspace.runs_of(list(rows["run_id"])).values(), masked_sets(sets)
            found = change_from_original(choice.workspace, list(runs), metric, direction, original, masked)
            for place, name in rows["captioner"].items():
                changes.loc[place] = found.get(name, (math.nan,) * len(CHANGE))
        parts.append(part.join(changes).assign(line=part["masked"], set=part["captioner"], captioner=captioner))
    rows = pd.concat(parts, ignore_index=True)
    rows = rows.assign(
        what=rows["masked"].map(WHAT),
        column=[measure(*key) for key in zip(rows["metric"], rows["direction"], strict=True)],
        neutral=[METRICS[metric].neutral(values) for metric in rows["metric"]],
        letters="",  # of captioners, not of conditions
    )
    if len(captioners) > 1:
        rows["line"] = rows["captioner"] + ", " + rows["masked"]
    rows.attrs["missing"] = [name for name in (measure(*key) for key in wanted) if name not in set(rows["column"])]
    return rows


def _measured(choice: Choice, names: dict[str, str], wanted: list[tuple[str, str]]) -> pd.DataFrame:
    """The rows of some caption sets (by their condition), of each metric by the setting of most conditions; of equal
    ones by the chosen one."""
    rows = choice.of_all[choice.of_all["captioner"].isin(list(names)) & (choice.of_all["group"] == "")]
    rows = rows[(rows["object"] == "") & rows["value"].notna() & (rows["attribute"] == choice.attribute)]
    rows = rows[pd.MultiIndex.from_frame(rows[["metric", "direction"]]).isin(wanted)]
    conditions = rows.groupby(["metric", "direction", "setting"])["captioner"].transform("nunique")
    most = conditions.groupby([rows["metric"], rows["direction"]]).transform("max")
    rows = replace(choice, of_all=rows[conditions == most]).measured([key[0] for key in wanted], sets=list(names))
    rows = rows.drop_duplicates(["metric", "direction", "captioner"])
    rows = rows.assign(masked=rows["captioner"].map(names))
    return in_order(rows, metric=[name for name, _ in wanted], masked=CONDITIONS)


def change_from_original(
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


# what follows


def masking_sentence(choice: Choice, rows: pd.DataFrame) -> str:
    """Whether the captioner that is read still reveals the attribute with most hidden, and more than people do; of
    another metric than LIC_M, how it changed."""
    captioner = rows["captioner"].iloc[0] if len(rows) else choice.captioner
    rows = rows[rows["captioner"] == captioner]
    scores = rows[rows["column"] == rows["column"].iloc[0]].set_index("masked") if len(rows) else rows
    masked = [condition for condition in STRENGTHS if condition in scores.index]
    if not masked or ORIGINAL not in scores.index:
        return say("masking.not_measured", captioner=captioner)
    strongest, row = masked[-1], scores.loc[masked[-1]].to_dict()
    digits = decimals(row["metric"], METRICS[row["metric"]].scale)
    fields = {"what": WHAT[strongest], "captioner": captioner, "metric": row["column"], "attribute": choice.attribute}
    fields |= {"value": number(row["value"], digits), "chance": number(row["neutral"], digits)}
    fields["setting"] = row["setting_name"]
    if provisional(row) or pd.isna(row["low"]):
        why = say("masking.few_seeds" if provisional(row) else "masking.no_interval")
        return say("masking.no_claim", **fields, why=why)
    if row["metric"] != "LIC_M":
        change = {1: "higher", -1: "lower"}.get(interval_side(*(row[end] for end in CHANGE[1:3])), "same")
        return say(f"masking.{change}", **fields, change=number(abs(row[CHANGE[0]]), digits))
    side = interval_side(row["low"], row["high"], row["neutral"])
    text = say({1: "masking.above", -1: "masking.below"}.get(side, "masking.open"), **fields)
    for lic in rows[(rows["metric"] == "LIC") & (rows["masked"] == strongest)].to_dict("records")[:1]:
        if not provisional(lic):
            text += " " + say(f"masking.more_{int(interval_side(lic['low'], lic['high']))}")
    return text


def masking_notes(choice: Choice, rows: pd.DataFrame) -> Sequence[str]:
    lines = [
        say("masking.several", captioner=captioner, line=line)
        for captioner in dict.fromkeys(rows["captioner"])
        for line in taken_of_several(choice.workspace, choice.collection, captioner)
    ]
    if missing := rows.attrs.get("missing"):
        lines.append(say("masking.missing", metrics=listed(missing), attribute=choice.attribute))
    return [*lines, say("masking.dashed"), say("masking.paired"), choice.defined.note]


MASKING = View(
    name="masking",
    question="What does masking change?",
    rows=masking_rows,
    columns=(
        Field("line", label="masked"),
        Field("what", label="hidden"),
        Field("value", low="low", high="high", across=True),
        Field("to_original", label="minus original", low=CHANGE[1], high=CHANGE[2], across=True, signed=True),
    ),
    sentence=masking_sentence,
    by="line",
    across="column",
    chart=Forest(only=tuple(measure(*key) for key in SHOWN)),
    options=MaskingOptions,
    notes=masking_notes,
    needs=masking_runs,
    example="""\
  capbias view masking --collection coco --captioner sat
  capbias view masking --collection coco --metric lic dbac --output masking.tex""",
)
