"""Published: a table of a paper, each printed number beside the measured one, and whether it holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field as Described

from capbias_core.aggregate.comparison import name_key
from capbias_core.aggregate.variants import variant_text
from capbias_core.errors import unknown_name
from capbias_core.load.published import bundled_measured, published_notes, published_results
from capbias_core.measures.image_judge import UNMASKED
from capbias_core.measures.registry import METRICS, measure_of
from capbias_core.types import counted
from capbias_core.views.choose import Choice
from capbias_core.views.printed import (
    DBAC_TEST,
    GENDER_SCORE,
    LIC_CAPTIONS,
    MOST,
    ONE_JUDGE,
    OTHER_PROTOCOL,
    UNSURE_VALUES,
    WITH_UNSURE,
    as_measured,
    no_counterpart,
)
from capbias_core.views.results import attribute_of_run, object_rows
from capbias_core.views.sentence import listed, say
from capbias_core.views.view import Field, View, ViewOptions
from capbias_core.workspace.conditions import CUT, ORIGINAL, condition_of
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


# measured numbers

# Printed conditions of ImageCaptioner2 -> what the name of the photographs that a judge saw must hold; '' is any.
MASKED_BY = {"": "", ONE_JUDGE: "", "gt_masks": "segment", "yolox": "box"}
# What a printed row takes of the measured one, in the paper's unit.
SCALED = ("value", "low", "high", "spread")
TAKEN = ("n", "seeds", "setting", "setting_name", "other", "run_id")


def _measured(choice: Choice, objects: bool) -> pd.DataFrame:
    """All that is measured of whole caption sets, with `whose` (captioner) and `masked` (condition of the photographs),
    those measured as the chosen ones first. objects: also of single objects. Runs that merged masks are left out: the
    papers mask word by word. Race with the value unsure, as in DBAC, is called WITH_UNSURE."""
    rows = choice.of_all
    runs = choice.workspace.runs_of(list(dict.fromkeys(rows["run_id"])))
    rows = rows[[not runs[run_id].spec.merge_masks for run_id in rows["run_id"]]]
    if objects:
        settings = rows.drop_duplicates("run_id").set_index("run_id")[["setting", "setting_name"]]
        names = {"model": "captioner", "ci_low": "low", "ci_high": "high"}
        parts = [object_rows(runs[run_id]).rename(columns=names) for run_id in settings.index]
        rows = pd.concat([rows, *(part.join(settings, on="run_id") for part in parts if len(part))], ignore_index=True)
    rows = rows[rows["value"].notna() & (rows["group"] == "") & rows["condition"].isin(["", ORIGINAL])]
    parts = []
    for attribute, of_attribute in rows.groupby("attribute", sort=False):
        own = choice if attribute == choice.attribute else choice.of_attribute(str(attribute))
        chosen = own.measured_with if own.attribute == attribute else None
        settings = {key: choice.of_all.attrs["settings"][key] for key in set(of_attribute["setting"])}

        def alike(key: str, settings: dict = settings, chosen: Any = chosen) -> bool:
            """Whether labels and human captions are those of the chosen setting, as far as both read them."""
            pairs = ((getattr(each, name) for each in (settings[key], chosen)) for name in ("labels", "references"))
            return chosen is None or all(one in ("", other) or not other for one, other in pairs)

        fits = {key: chosen is None or setting.fits(chosen) for key, setting in settings.items()}
        part = of_attribute[[alike(key) for key in of_attribute["setting"]]]
        part = part.assign(
            other=["" if fits[key] else name for key, name in zip(part["setting"], part["setting_name"], strict=True)],
            place=[(not fits[key], -settings[key].seeds) for key in part["setting"]],
        )
        if {value.lower() for value in attribute_of_run(runs[of_attribute["run_id"].iloc[0]]).values} == UNSURE_VALUES:
            part = part.assign(attribute=WITH_UNSURE)
        parts.append(part.sort_values("place", kind="stable"))
    rows = pd.concat(parts, ignore_index=True) if parts else rows.assign(other="")
    items = choice.workspace.items("captions", choice.collection)
    known = {item.name: condition_of(item) for item in items if CUT not in item.details}
    rows = rows[rows["captioner"].isin(known)]
    whose = [known[name] for name in rows["captioner"]]
    return rows.assign(whose=[name for name, _ in whose], masked=[condition for _, condition in whose])


def bundled_rows() -> pd.DataFrame:
    """The results that come with capbias, of seven captioners on COCO, as `_measured` has those of a collection."""
    rows = bundled_measured().rename(columns={"model": "captioner", "ci_low": "low", "ci_high": "high"})
    settings = zip(rows["encoder"], rows["seeds"], strict=True)
    parts = ((encoder, f"{seeds} seeds" if encoder else "", BUNDLED) for encoder, seeds in settings)
    named = [", ".join(filter(None, part)) for part in parts]
    return rows.assign(whose=rows["captioner"], masked=ORIGINAL, setting="", setting_name=named, other=named)


BUNDLED = "bundled with capbias"


def beside(printed: pd.DataFrame, measured: pd.DataFrame) -> pd.DataFrame:
    """A row for each printed number, with the measured one of the same thing where there is one.

    Two numbers match if attribute, metric and direction (see `as_measured`), condition of the photographs, captioner
    (see `name_key`), object and alignment are equal; LIC on a part of the images matches LIC. That of the printed
    encoder comes first, then that of the printed alignment on all images, then that of the chosen setting.

    printed: as in the paper. value, low, high: as measured, in the paper's unit. holds: whether the interval contains
    the printed number, '' where that is not decided: `reason`. note: what in the paper contradicts the number.
    """
    by_key: dict[tuple, list[dict]] = {}
    for row in measured.to_dict("records"):
        names = {row["whose"], *([row["captioner"]] if row["masked"] == ORIGINAL else [])}
        for key in {_key(row, name) for name in names}:
            by_key.setdefault(key, []).append(row)
    found = [_matched(row, by_key) for row in printed.to_dict("records")]
    notes, of_tables = published_notes(printed)
    whole = [of_tables.get(key, "") for key in zip(printed["paper"], printed["table"], strict=True)]
    places = {}  # the most decimals among the printed numbers of a metric
    for metric, values in printed.groupby("metric")["value"]:
        parts = [repr(float(value)).partition(".")[2] for value in values.dropna()]
        places[metric] = max((len(part) for part in parts if part != "0"), default=0)
    rows = printed[["paper", "table", "model", "attribute", "metric", "encoder", "direction", "condition"]]
    rows = rows.rename(columns={"model": "captioner"}).assign(
        printed=printed["value"],
        printed_spread=printed["spread"],
        spread_kind=printed["spread_kind"],
        digits=[places[metric] for metric in printed["metric"]],
        note=[f"{text} {note}".strip() for text, note in zip(whole, notes, strict=True)],
        about=list(notes),
        line=range(len(printed)),
    )
    columns = [*SCALED, *TAKEN, "source", "holds", "reason"]
    return rows.join(pd.DataFrame(found, index=rows.index).reindex(columns=columns)).assign(group="")


def _matched(row: dict, by_key: Mapping[tuple, list[dict]]) -> dict[str, Any]:
    """What the best measured row adds to a printed one."""
    empty = dict.fromkeys(SCALED, np.nan) | dict.fromkeys(TAKEN, "") | {"n": 0, "seeds": 0, "source": "", "holds": ""}
    if reason := no_counterpart(row):
        return empty | {"reason": f"no counterpart: {reason}"}
    renamed = as_measured(row)
    keys = [_key(renamed, renamed["model"])]
    if _of_unsure(row):
        keys.insert(0, _key(renamed | {"attribute": WITH_UNSURE}, renamed["model"]))
    named = next((by_key[key] for key in keys if key in by_key), [])
    matches = [result for result in named if _meet(renamed, result)]
    if not matches:
        return empty | {"reason": "not measured"}

    def fit(result: dict) -> tuple:
        exact = _alignment(result) == _alignment(renamed) and not result["coverage"]
        return _same_encoder(renamed, result), exact

    result = max(matches, key=fit)  # of equal ones the first
    factor = row["scale"] / result["scale"]
    scaled = {name: result[name] * factor for name in SCALED}
    reason = _undecided(row, renamed, result, scaled)
    holds = "" if reason else YES if scaled["low"] <= row["value"] <= scaled["high"] else NO
    differing = [
        result[here] for here, there in (("captioner", "model"), ("metric", "metric")) if result[here] != row[there]
    ]
    source = ", ".join(filter(None, (*differing, result["setting_name"], variant_text(result))))
    return scaled | {name: result[name] for name in TAKEN} | {"source": source, "holds": holds, "reason": reason}


def _key(row: dict, model: str) -> tuple:
    named = (model, row["attribute"], row["metric"], row["direction"], row["masked"])
    return tuple(map(name_key, named))


def _alignment(row: dict) -> str:
    """The alignment of a row, '' for constant."""
    alignment = row["alignment"] or row.get("aligned", "")
    return "" if alignment == CONSTANT else name_key(alignment)


def _of_judge(result: dict) -> bool:
    """Whether a judge that sees the photographs measured this. Its protocol differs from the paper's, which does not
    print its sizes, learning rate and size of the pictures."""
    return result["metric"] in METRICS and measure_of(result["metric"]).name == "imagecaptioner2"


def _meet(row: dict, result: dict) -> bool:
    """Whether object, alignment and photographs of a measured row match a printed one, as far as it states them."""
    if result["condition"] not in ("", ORIGINAL):
        return False
    if _of_judge(result):
        wanted = MASKED_BY.get(row["condition"])
        return wanted is not None and wanted in result["photographs"] and result["photographs"] != UNMASKED
    stated = "" if row["alignment"] == CONSTANT else name_key(row["alignment"])
    if result["group"]:  # papers print whole sets
        return False
    return result["object"] == row["object"] and _alignment(result) in (_alignment(row), stated)


def _of_unsure(printed: dict) -> bool:
    """Whether a printed row is of DBAC's race, which has a third value."""
    return printed["paper"] == "dbac" and printed["attribute"] == "race"


def _same_encoder(row: dict, result: dict) -> bool:
    return name_key(row["encoder"]) == name_key(result["encoder"])


def _undecided(printed: dict, renamed: dict, result: dict, scaled: dict) -> str:
    """Why a measured interval does not decide about a printed number, '' if it does. renamed: the printed row from
    `as_measured`. scaled: the measured numbers in the printed scale."""
    other_protocol = (
        printed["paper"] == GENDER_SCORE
        or (printed["paper"], printed["metric"]) in OTHER_PROTOCOL
        or (_of_unsure(printed) and result["attribute"] != WITH_UNSURE)
    )
    reasons = (
        ("another encoder", not _same_encoder(renamed, result)),
        ("another protocol", _of_judge(result)),
        ("another alignment", _alignment(result) != _alignment(renamed)),
        ("part of the images", bool(result["coverage"])),
        ("another protocol", other_protocol),
        ("other images", _of_unsure(printed) and result["n"] != DBAC_TEST),
        ("other images", printed["paper"] == FIRST and not result["encoder"] and result["n"] < MOST * LIC_CAPTIONS),
        ("no interval", pd.isna(scaled["low"])),
    )
    return next((text for text, applies in reasons if applies), "")


# the view


def published_rows(choice: Choice | None, options: PublishedOptions = USUAL) -> pd.DataFrame:
    """`beside` of a paper's tables, those with a measured number first. Where nothing of them is measured, and without
    a choice, measured numbers are those that come with capbias."""
    printed = published_results()
    if options.paper and options.paper not in PAPERS:
        raise unknown_name("paper", options.paper, PAPERS)
    printed = printed[printed["paper"] == (options.paper or FIRST)]
    if options.table:
        if options.table not in set(printed["table"]):
            raise unknown_name("table", options.table, dict.fromkeys(printed["table"]))
        printed = printed[printed["table"] == options.table]
    objects = (options.paper or FIRST) == GENDER_SCORE
    rows = beside(printed, _measured(choice, objects)) if choice else beside(printed, bundled_rows())
    if choice and rows["value"].isna().all():
        rows = beside(printed, bundled_rows())
    return rows.sort_values("value", key=pd.isna, kind="stable", ignore_index=True)


def called(rows: pd.DataFrame) -> str:
    """What printed rows are of: `Table 12a of DBAC (Nair et al., 2025)`."""
    tables = rows["table"].unique()
    paper = PAPERS[rows["paper"].iloc[0]]
    return f"Table {tables[0]} of {paper}" if len(tables) == 1 else f"all tables of {paper}"


def published_sentence(choice: Choice | None, rows: pd.DataFrame) -> str:
    """How many printed numbers the measured intervals contain."""
    name, decided = called(rows), rows[rows["holds"] != ""]
    if len(decided):
        whose = "bundled" if decided["source"].str.contains(BUNDLED).all() else "measured"
        inside = int((decided["holds"] == YES).sum())
        metrics = listed(list(dict.fromkeys(decided["metric"])))
        numbers = counted(len(decided), "comparable number")
        return say("published.decided", inside=inside, numbers=numbers, name=name, whose=whose, metrics=metrics)
    if rows["value"].notna().any():
        return say("published.not_comparable", name=name)
    without = rows["reason"].str.startswith("no counterpart").all()
    return say("published.no_counterpart" if without else "published.not_measured", name=name)


def published_notes_of(choice: Choice | None, rows: pd.DataFrame) -> Iterator[str]:
    tables = rows.drop_duplicates("table")
    _, of_tables = published_notes(published_results().iloc[:0])
    for key in zip(tables["paper"], tables["table"], strict=True):
        if key in of_tables:
            yield say("published.contradiction", table=key[1], note=of_tables[key])
    if rows["source"].str.contains(BUNDLED).any():
        yield say("published.bundled")
    without = rows[rows["reason"].str.startswith("no counterpart")]
    for reason, of_reason in without.groupby("reason", sort=False):
        metrics = listed(list(dict.fromkeys(of_reason["metric"])))
        yield f"{metrics}: {reason}."
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
