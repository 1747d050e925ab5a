"""Directions: do captions over-reveal the value (A->T), the objects (T->A), or both?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from pydantic import Field as Described

from capbias_core.aggregate.estimate import interval_side
from capbias_core.errors import unknown_name
from capbias_core.measures.dbac import VARIANTS
from capbias_core.measures.registry import METRICS
from capbias_core.types import A_TO_T, T_TO_A, counted
from capbias_core.views.choose import Choice
from capbias_core.views.results import in_order
from capbias_core.views.sentence import listed, measure, say
from capbias_core.views.view import Field, Scatter, View, ViewOptions

WAYS = (A_TO_T, T_TO_A)
NAMES = (*VARIANTS, "DPA")
# Metric and direction of each way, by what the pair is called.
PAIRS = {
    **{name: {way: (name, way) for way in WAYS} for name in NAMES},
    "DBA": {A_TO_T: ("DBA_O_crossfit", ""), T_TO_A: ("DBA_G_crossfit", "")},
}
# Metrics that must have one sign before a direction of DBAC is stated: the variants, and what reading captions adds to
# an attacker that ignores the text.
DECIDING = (*VARIANTS, "DBAC_added")
UNCLEAR, DISAGREE, NOT_BEYOND, NOT_COMPARED = (
    say(f"directions.{name}") for name in ("unclear", "disagree", "not_beyond", "not_compared")
)
MORE, LESS = "more", "less"


class DirectionsOptions(ViewOptions):
    metric: str = Described(default="", description=f"one of {', '.join(PAIRS)} (default: the first that was measured)")


USUAL = DirectionsOptions()


def measured_pairs(choice: Choice) -> list[str]:
    """The pairs that were measured in both directions for some captioner."""
    known = set(choice.rows[["metric", "direction"]].itertuples(index=False, name=None))
    return [name for name, ways in PAIRS.items() if set(ways.values()) <= known]


def direction_rows(choice: Choice, options: DirectionsOptions = USUAL) -> pd.DataFrame:
    """A row for each captioner and direction, of captioners measured alike in both. way: the direction; column: its
    metric and direction; shown: `more` or `less` than people's captions, or why neither may be said."""
    known = measured_pairs(choice)
    if options.metric and options.metric not in known:
        raise unknown_name("metric in both directions", options.metric, known)
    if not known:
        return choice.measured(()).assign(way="", column="", shown="")
    name = options.metric or known[0]
    ways = {key: way for way, key in PAIRS[name].items()}
    rows = choice.measured([metric for metric, _ in ways], by=("attribute",))
    rows["way"] = [ways.get(key, "") for key in zip(rows["metric"], rows["direction"], strict=True)]
    rows = rows[(rows["way"] != "") & (rows["group"] == "") & (rows["object"] == "") & rows["value"].notna()]
    rows = rows[rows.groupby("captioner")["way"].transform("nunique") == len(WAYS)]
    shown = [_shown(row, choice.rows, name) for row in rows.to_dict("records")]
    rows = rows.assign(shown=shown, column=[measure(name, way) for way in rows["way"]], pair=name)
    return choice.ordered(in_order(rows, way=WAYS))


def _shown(row: Mapping[str, Any], rows: pd.DataFrame, name: str) -> str:
    """What may be said of one direction. The metric, each variant of it that was measured with the same setting, and
    what reading adds to an attacker that ignores the text must have one sign, all clear of 0."""
    sign = interval_side(row["low"], row["high"])
    alike = rows[(rows["captioner"] == row["captioner"]) & (rows["setting"] == row["setting"])]
    alike = alike[(alike["direction"] == row["direction"]) & (alike["coverage"] == row["coverage"])]
    deciding = alike[alike["metric"].isin(DECIDING if name in VARIANTS else ())]
    of_added = deciding["metric"] == "DBAC_added"

    def all_have(others: pd.DataFrame) -> bool:
        return all(interval_side(*ends) == sign for ends in others[["low", "high"]].itertuples(index=False, name=None))

    if not sign:
        return UNCLEAR
    if not all_have(deciding[~of_added]):
        return DISAGREE
    if name in VARIANTS and not of_added.any():
        return NOT_COMPARED
    if not all_have(deciding[of_added]):
        return NOT_BEYOND
    return MORE if sign > 0 else LESS


def direction_sentence(choice: Choice, rows: pd.DataFrame) -> str:
    """How many captioners reveal more in each direction than people do, or less if none does more; or why none is shown
    to."""
    if rows.empty:
        return say("directions.not_measured")
    name, parts = rows["pair"].iloc[0], []
    for way, what in zip(WAYS, (choice.attribute, say("directions.objects")), strict=True):
        counts = Counter(rows.loc[rows["way"] == way, "shown"])
        side = MORE if counts[MORE] else LESS
        if number := counts[side]:
            template = "directions.one" if number == 1 else "directions.several"
            parts.append(say(template, number=number, side=side, what=what, metric=measure(name, way)))
    if not parts:
        return say("directions.none", metric=name, reason=Counter(rows["shown"]).most_common(1)[0][0])
    return say("directions.of", captioners=counted(rows["captioner"].nunique(), "captioner"), parts=listed(parts))


def direction_notes(choice: Choice, rows: pd.DataFrame) -> Sequence[str]:
    if rows.empty:
        return ()
    name = rows["pair"].iloc[0]
    by_caption = name.startswith("DBAC")
    text = say("directions.of_captions" if by_caption else "directions.of_labels", attribute=choice.attribute)
    others = [other for other in dict.fromkeys(rows["other"]) if other]
    metrics = dict.fromkeys(metric for metric, _ in PAIRS[name].values())
    lines = [text, say("directions.rule")]
    lines += [say("directions.other", setting=listed(others))] if others else []
    return [*lines, *(f"{metric}: {METRICS[metric].explanation}" for metric in metrics), choice.defined.note]


def pair_of(choice: Choice) -> str:
    """The pair that is shown if none is asked for; '' if nothing is measured."""
    return (measured_pairs(choice) or [""])[0]


DIRECTIONS = View(
    name="directions",
    question="In which direction?",
    rows=direction_rows,
    columns=(
        Field("captioner", help="who wrote the captions"),
        Field("value", low="low", high="high", across=True),
        Field(
            "shown",
            label="shown:",
            across=True,
            help="more or less than people's captions reveal, or why neither is shown",
        ),
    ),
    sentence=direction_sentence,
    across="column",
    chart=Scatter(
        x=A_TO_T,
        y=T_TO_A,
        by="way",
        titles=("A→T: the value, from the captions", "T→A: the objects, from the captions"),
        corners={"top right": "over-reveals both", "bottom left": "reveals less of both"},
    ),
    options=DirectionsOptions,
    notes=direction_notes,
    example="""\
  capbias score --collection coco --attribute gender --metric dbac dba
  capbias view directions --collection coco --metric DBA""",
)
