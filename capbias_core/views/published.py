"""Published: a table of a paper, each printed number beside the measured one, and whether it holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field as Described

from capbias_core.aggregate.comparison import name_key
from capbias_core.aggregate.variants import variant
from capbias_core.errors import unknown_name
from capbias_core.load.published import bundled_measured, published_notes, published_results
from capbias_core.measures.image_judge import UNMASKED
from capbias_core.measures.registry import METRICS, measure_of
from capbias_core.resources import PUBLISHED_NAMES
from capbias_core.types import counted
from capbias_core.views.choose import Choice
from capbias_core.views.sentence import listed, say
from capbias_core.views.view import Field, View, ViewOptions
from capbias_core.workspace.conditions import ORIGINAL, condition_of, suggested_condition
from capbias_core.workspace.vectors import CONSTANT

PAPERS = {
    "lic": "LIC (Hirota et al., 2022)",
    "repro": "Reproducibility study of LIC (Baratov et al., 2023)",
    "dbac": "DBAC (Nair et al., 2025)",
    "imgcap2": "ImageCaptioner² (Abdelrahman et al., 2024)",
    "genderscore": "Gender Score (Sabir and Padró, 2023)",
}
FIRST = "lic"
YES, NO = "yes", "no"


class PublishedOptions(ViewOptions):
    paper: str = Described(default="", description=f"one of: {', '.join(PAPERS)} (default: {FIRST})")
    table: str = Described(default="", description="its table, such as 10 or 12a (default: all of the paper)")


USUAL = PublishedOptions()


# printed numbers

# Metrics that a paper measures by another protocol than the one that has this name here. DBAC does not say which tasks
# its BA→ and DPA are of, nor what guesses them; its race has a third value.
OTHER_PROTOCOL = {("dbac", name) for name in ("LIC", "LIC_M", "LIC_D", "LIC_H", "METEOR", "BA", "DPA")}
# Captions with a label of gender in the LIC paper; a set of fewer than nine in ten of them is of other images.
LIC_CAPTIONS, MOST = 10_780, 0.9
NO_COUNTERPART = "no counterpart: "


def as_measured(printed: pd.DataFrame) -> pd.DataFrame:
    """Printed rows with metric, direction and encoder named as in measured ones; `masked`, the condition of the
    photographs; `alignment` as stated; `aligned`, what the paper states outside its table; and `reason`, why nothing
    that is measured here is the same. A line of names.csv belongs to the rows that agree with each cell that it fills.
    """
    aligned = printed["condition"].str.startswith((CONSTANT, "contextual"))
    rows = printed.assign(
        masked=[suggested_condition(condition)[1] for condition in printed["condition"]],
        alignment=printed["condition"].where(aligned, ""),
        aligned="",
        reason="",
    )
    for cells in _names():
        given = {name: cells[name] for name in printed.columns if cells.get(name)}
        hit = np.logical_and.reduce([printed[name] == cell for name, cell in given.items()])
        for name, cell in cells.items():
            if cell and (name.startswith("as_") or name == "reason"):
                rows.loc[hit, name.removeprefix("as_")] = cell.removeprefix("-")
    return rows


@cache
def _names() -> list[dict[str, str]]:
    return pd.read_csv(PUBLISHED_NAMES, dtype=str, keep_default_na=False).to_dict("records")


# measured numbers

# Printed conditions of ImageCaptioner2 -> what the name of the photographs that a judge saw must hold; '' is any.
MASKED_BY = {"": "", "scoring_function_ablation": "", "gt_masks": "segment", "yolox": "box"}
BUNDLED = "bundled with capbias"


def _measured(choice: Choice) -> pd.DataFrame:
    """All that is measured of whole caption sets, with `whose` (captioner) and `masked` (condition of the photographs),
    those measured as the chosen ones first. Runs that merged masks are left out: the papers mask word by word."""
    rows = choice.of_all
    runs = choice.workspace.runs_of(list(dict.fromkeys(rows["run_id"])))
    items = choice.workspace.items("captions", choice.collection)
    known = {item.name: condition_of(item) for item in items}
    whole = rows["value"].notna() & (rows["group"] == "") & (rows["object"] == "")
    rows = rows[whole & rows["condition"].isin(["", ORIGINAL]) & rows["captioner"].isin(list(known))]
    rows = rows[~rows["run_id"].isin([run_id for run_id, run in runs.items() if run.spec.merge_masks])]
    parts = []
    for attribute, part in rows.groupby("attribute", sort=False):
        own = choice if attribute == choice.attribute else choice.of_attribute(str(attribute))
        settings = [choice.of_all.attrs["settings"][key] for key in part["setting"]]
        if own.attribute == attribute:
            part = part.assign(other=["" if each.fits(own.setting) else each.name for each in settings])
            part = part[[each.shares(own.measured_with, "labels", "references") for each in settings]]
        parts.append(part.assign(other="") if "other" not in part else part)
    rows = pd.concat(parts) if parts else rows.assign(other="")
    order = rows.assign(unlike=rows["other"] != "", few=-rows["seeds"]).sort_values(["unlike", "few"], kind="stable")
    whose = [known[name] for name in order["captioner"]]
    return order.assign(whose=[name for name, _ in whose], masked=[condition for _, condition in whose])


def bundled_rows() -> pd.DataFrame:
    """The results that come with capbias, of seven captioners on COCO, as `_measured` has those of a collection."""
    rows = bundled_measured().rename(columns={"model": "captioner", "ci_low": "low", "ci_high": "high"})
    settings = zip(rows["encoder"], rows["seeds"], strict=True)
    parts = ((encoder, f"{seeds} seeds" if encoder else "", BUNDLED) for encoder, seeds in settings)
    named = [", ".join(filter(None, part)) for part in parts]
    return rows.assign(whose=rows["captioner"], masked=ORIGINAL, setting="", setting_name=named, other=named)


# both

# What a printed row takes of the measured one, the first in the paper's unit.
SCALED = ("value", "low", "high", "spread")
TAKEN = ("n", "seeds", "setting", "setting_name", "other", "run_id")
EMPTY = dict.fromkeys(SCALED, np.nan) | dict.fromkeys(TAKEN, "") | {"n": 0, "seeds": 0, "source": "", "holds": ""}


def beside(printed: pd.DataFrame, measured: pd.DataFrame) -> pd.DataFrame:
    """A row for each printed number, with the measured one of the same thing where there is one.

    Two numbers match if attribute, metric and direction (see `as_measured`), condition of the photographs, captioner
    (see `name_key`) and alignment are equal; LIC on a part of the images matches LIC. That of the printed encoder comes
    first, then that of the printed alignment on all images, then that of the chosen setting.

    printed: as in the paper. value, low, high: as measured, in the paper's unit. holds: whether the interval contains
    the printed number, '' where that is not decided: `reason`. note: what in the paper contradicts the number.
    """
    by_key: dict[tuple, list[dict]] = {}
    for row in measured.to_dict("records"):
        names = {row["whose"], *([row["captioner"]] if row["masked"] == ORIGINAL else [])}
        for key in {_key(row, name) for name in names}:
            by_key.setdefault(key, []).append(row)
    named = as_measured(printed).to_dict("records")
    found = [_matched(row, here, by_key) for row, here in zip(printed.to_dict("records"), named, strict=True)]
    notes, of_tables = published_notes(printed)
    whole = [of_tables.get(key, "") for key in zip(printed["paper"], printed["table"], strict=True)]
    decimals = printed["value"].map(lambda value: len(repr(float(value)).partition(".")[2].removesuffix("0")))
    rows = printed[["paper", "table", "model", "attribute", "metric", "encoder", "direction", "condition"]]
    rows = rows.rename(columns={"model": "captioner"}).assign(
        printed=printed["value"],
        printed_spread=printed["spread"],
        spread_kind=printed["spread_kind"],
        digits=decimals.groupby(printed["metric"]).transform("max"),
        note=[f"{text} {note}".strip() for text, note in zip(whole, notes, strict=True)],
        about=list(notes),
        line=range(len(printed)),
    )
    columns = [*SCALED, *TAKEN, "source", "holds", "reason"]
    return rows.join(pd.DataFrame(found, index=rows.index).reindex(columns=columns)).assign(group="")


def _key(row: Mapping[str, Any], model: str) -> tuple:
    return tuple(map(name_key, (model, row["attribute"], row["metric"], row["direction"], row["masked"])))


def _matched(row: dict, named: dict, by_key: Mapping[tuple, list[dict]]) -> dict[str, Any]:
    """What the best measured row adds to a printed one. named: it, from `as_measured`."""
    if named["reason"]:
        return EMPTY | {"reason": NO_COUNTERPART + named["reason"]}
    matches = [result for result in by_key.get(_key(named, row["model"]), ()) if _meet(named, result)]
    if not matches:
        return EMPTY | {"reason": "not measured"}

    def fit(result: dict) -> tuple:
        exact = _alignment(result) == _alignment(named) and not result["coverage"]
        return name_key(named["encoder"]) == name_key(result["encoder"]), exact

    result = max(matches, key=fit)  # of equal ones the first
    scaled = {name: result[name] * (row["scale"] / result["scale"]) for name in SCALED}
    reason = _undecided(row, named, result)
    holds = "" if reason else YES if scaled["low"] <= row["value"] <= scaled["high"] else NO
    pairs = ((result["captioner"], row["model"]), (result["metric"], row["metric"]))
    differing = [here for here, there in pairs if here != there]
    source = ", ".join(filter(None, (*differing, result["setting_name"], variant(result).replace("_", " "))))
    return scaled | {name: result[name] for name in TAKEN} | {"source": source, "holds": holds, "reason": reason}


def _alignment(row: dict) -> str:
    """The alignment of a row, '' for constant."""
    alignment = row["alignment"] or row.get("aligned", "")
    return "" if alignment == CONSTANT else name_key(alignment)


def _of_judge(result: dict) -> bool:
    """Whether a judge that sees the photographs measured this. Its protocol differs from the paper's, which does not
    print its sizes, learning rate and size of the pictures."""
    return result["metric"] in METRICS and measure_of(result["metric"]).name == "imagecaptioner2"


def _meet(named: dict, result: dict) -> bool:
    """Whether alignment and photographs of a measured row match a printed one, as far as it states them."""
    if _of_judge(result):
        wanted = MASKED_BY.get(named["condition"])
        return wanted is not None and wanted in result["photographs"] and result["photographs"] != UNMASKED
    stated = "" if named["alignment"] == CONSTANT else name_key(named["alignment"])
    return _alignment(result) in (_alignment(named), stated)


def _undecided(printed: dict, named: dict, result: dict) -> str:
    """Why a measured interval does not decide about a printed number, '' if it does. named: it, from `as_measured`."""
    paper, few = printed["paper"], result["n"] < MOST * LIC_CAPTIONS
    other_protocol = (paper, printed["metric"]) in OTHER_PROTOCOL or (paper, printed["attribute"]) == ("dbac", "race")
    reasons = {
        "another encoder": name_key(named["encoder"]) != name_key(result["encoder"]),
        "another alignment": not _of_judge(result) and _alignment(result) != _alignment(named),
        "part of the images": not _of_judge(result) and bool(result["coverage"]),
        "another protocol": _of_judge(result) or other_protocol,
        "other images": paper == FIRST and not result["encoder"] and few,
        "no interval": pd.isna(result["low"]),
    }
    return next((text for text, applies in reasons.items() if applies), "")


# the view


def published_rows(choice: Choice | None, options: PublishedOptions = USUAL) -> pd.DataFrame:
    """`beside` of a paper's tables, those with a measured number first. Where nothing of them is measured, and without
    a choice, measured numbers are those that come with capbias."""
    printed, paper = published_results(), options.paper or FIRST
    if paper not in PAPERS:
        raise unknown_name("paper", paper, PAPERS)
    printed = printed[printed["paper"] == paper]
    if options.table:
        if options.table not in set(printed["table"]):
            raise unknown_name("table", options.table, dict.fromkeys(printed["table"]))
        printed = printed[printed["table"] == options.table]
    rows = beside(printed, _measured(choice)) if choice else None
    if rows is None or rows["value"].isna().all():
        rows = beside(printed, bundled_rows())
    return rows.sort_values("value", key=pd.isna, kind="stable", ignore_index=True)


def published_sentence(choice: Choice | None, rows: pd.DataFrame) -> str:
    """How many printed numbers the measured intervals contain."""
    tables, paper, decided = rows["table"].unique(), PAPERS[rows["paper"].iloc[0]], rows[rows["holds"] != ""]
    name = f"Table {tables[0]} of {paper}" if len(tables) == 1 else f"all tables of {paper}"
    if len(decided):
        whose = "bundled" if decided["source"].str.contains(BUNDLED).all() else "measured"
        inside = int((decided["holds"] == YES).sum())
        metrics = listed(list(dict.fromkeys(decided["metric"])))
        numbers = counted(len(decided), "comparable number")
        return say("published.decided", inside=inside, numbers=numbers, name=name, whose=whose, metrics=metrics)
    if rows["value"].notna().any():
        return say("published.not_comparable", name=name)
    without = rows["reason"].str.startswith(NO_COUNTERPART).all()
    return say("published.no_counterpart" if without else "published.not_measured", name=name)


def published_notes_of(choice: Choice | None, rows: pd.DataFrame) -> Iterator[str]:
    _, of_tables = published_notes(published_results().iloc[:0])
    for key in dict.fromkeys(zip(rows["paper"], rows["table"], strict=True)):
        if key in of_tables:
            yield say("published.contradiction", table=key[1], note=of_tables[key])
    if rows["source"].str.contains(BUNDLED).any():
        yield say("published.bundled")
    without = rows[rows["reason"].str.startswith(NO_COUNTERPART)]
    for reason, of_reason in without.groupby("reason", sort=False):
        yield f"{listed(list(dict.fromkeys(of_reason['metric'])))}: {reason}."
    yield say("published.how")


PUBLISHED = View(
    name="published",
    question="Do published numbers hold?",
    rows=published_rows,
    columns=(
        Field("table", varying=True),
        Field("captioner"),
        Field("metric", help="as the paper calls it"),
        Field("attribute", varying=True),
        Field("encoder"),
        Field("direction"),
        Field("condition"),
        Field("printed", digits=2, places="digits", help="in the paper's unit"),
        Field(
            "printed_spread",
            label="±",
            digits=2,
            places="digits",
            help="standard deviation over seeds, or half of a 95% interval",
        ),
        Field(
            "value",
            label="measured",
            digits=2,
            places="digits",
            low="low",
            high="high",
            help="with its 95% interval, in the paper's unit",
        ),
        Field("holds", label="holds?", help="whether the measured 95% interval contains the printed number"),
        Field("source", label="measured with"),
        Field("reason", label="not compared because"),
        Field("about", label="note", help="what in the paper contradicts the number"),
    ),
    sentence=published_sentence,
    by="line",
    options=PublishedOptions,
    notes=lambda choice, rows: tuple(published_notes_of(choice, rows)),
    optional=True,
    example="""\
  capbias view published --paper lic --table 1
  capbias view published --paper dbac --table 12a --collection coco \\
    --output table12a.csv""",
)
