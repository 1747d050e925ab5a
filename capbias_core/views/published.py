"""Printed figures beside measured ones: which measured value belongs to which printed one, and what it decides."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated

import pandas as pd

from capbias_core.aggregate import NEUTRAL
from capbias_core.aggregate.comparison import name_key
from capbias_core.aggregate.variants import variant_text
from capbias_core.errors import unknown_name
from capbias_core.load.published import bundled_measured, published_notes, published_results
from capbias_core.measures.image_judge import UNMASKED
from capbias_core.measures.options import Option
from capbias_core.measures.registry import METRICS, measure_of
from capbias_core.types import ORIGIN_COLUMNS, RESULT_COLUMNS, SUPPORT_COLUMNS, T_TO_A, counted
from capbias_core.views import results
from capbias_core.views.rows import dots_chart
from capbias_core.views.sentence import limit, listed, measure, number
from capbias_core.views.view import Shown
from capbias_core.workspace.conditions import ORIGINAL, condition_of, originals, suggested_condition
from capbias_core.workspace.labels import attribute_of, table_with
from capbias_core.workspace.store import Item, Workspace
from capbias_core.workspace.vectors import CONSTANT

GENDER_SCORE = "genderscore"
VALUES = {"m": "Male", "man": "Male", "w": "Female", "woman": "Female", "person": NEUTRAL}
OF_WORDS = ("word2vec", "glove", "fasttext", "gn_glove")
# The condition of a ratio or a count in Tables 3 and 6 -> the metric here, without its ending.
SCORES = {"gender_score_estimation": "estimation", "gpt2_initial_bias": "language_model", "bert_mlm": "masked_model"}


def printed_as(row: dict) -> tuple[str, str, str]:
    """Metric, direction and object of a printed row of the Gender Score paper, named as in measured rows.

    >>> printed_as({"metric": "ratio_to_m", "encoder": "", "condition": "bert_mlm"})
    ('masked_model_ratio', 'Male', '')
    >>> printed_as({"metric": "gender_score", "encoder": "", "condition": "to_w kitchen"})
    ('weighted_cooccurrence', 'Female', 'kitchen')
    >>> printed_as({"metric": "gender_score", "encoder": "", "condition": "man wine bottle"})
    ('gender_score', 'Male', 'wine bottle')
    """
    metric, condition = row["metric"], row["condition"]
    kind, _, value = metric.rpartition("_")
    if value in VALUES:
        score = condition or _distance(row["encoder"])
        score = SCORES.get(score, score)
        named = {"leakage": "naming_ratio", "ratio": f"{score}_to_neutral", "count": f"{score}_count"}
        usual = score if score == "object_gender_cooccurrence" else f"{score}_ratio"
        return named.get(kind, usual), VALUES[value], ""
    if condition.startswith("to_"):
        letter, _, thing = condition.removeprefix("to_").partition(" ")
        return "weighted_cooccurrence" if metric == "gender_score" else metric, VALUES[letter], thing
    name = _distance(row["encoder"]) if metric == "gender_object_distance" else metric
    who, _, thing = condition.partition(" ")
    return name, VALUES[who], thing


def _distance(encoder: str) -> str:
    return "word_object_distance" if encoder in OF_WORDS else "gender_object_distance"


# Metrics that a paper calls otherwise: leakage of aligned human captions, METEOR between those and the originals, the
# share of a map outside people; and DBAC's BA, which is BA→ from T to A (Wang & Russakovsky), DBA_G here, and not the
# BA of Zhao et al. that LIC measures.
OTHER_NAME = {
    ("dbac", "LIC_H"): "LIC_D",
    ("dbac", "METEOR"): "METEOR_aligned",
    ("dbac", "attribution_score_percent"): "attribution_score",
    ("dbac", "BA"): "DBA_G",
}
# The tables of values by what is masked on the photographs, by paper.
BY_CONDITION = {"lic": "4", "dbac": "4"}
# Metrics whose name here says the direction that is printed beside another name.
NAMES_DIRECTION = "DBA_G"
# Directions that the text says and the tables do not.
DIRECTION = {("dbac", "DBAC_H"): "A->T"}
# Encoders that the text says and the tables do not: DBAC's appendix B, and ImageCaptioner2's Table 4, of which Table 3
# repeats the first column.
ENCODER = {("dbac", "DBAC_H"): "lstm", ("dbac", "LIC_H"): "lstm", ("imgcap2", "LIC"): "lstm_bi"}
# Metrics that a paper measured under this alignment where its table does not say one.
ALIGNED = {("dbac", "DBAC"): "contextual_glove"}
# Table 2 of ImageCaptioner2: three scores of one judge.
ONE_JUDGE = "scoring_function_ablation"
OF_ONE_JUDGE = {"LIC": "imagecaptioner2_lic", "leakage_score": "imagecaptioner2_leakage"}
# Metrics that a paper measures by another protocol than the one that has this name here. DBAC does not say which tasks
# its BA→ and DPA are of, nor what guesses them.
# The Gender Score paper's all: other images (the Karpathy test split), objects by a classifier, other captioners.
OTHER_PROTOCOL = {("dbac", name) for name in ("LIC", "LIC_M", "LIC_D", "LIC_H", "METEOR", "BA", "DPA")}

# DBAC's race: its values, what such an attribute is called here, and its test images (section 5).
UNSURE_VALUES, WITH_UNSURE, DBAC_TEST = {"dark", "light", "unsure"}, "race with unsure", 2156

# Why there is no comparable result: paper, what column says it, how the cell begins, and the reason.
NO_COUNTERPART = (
    (
        "dbac",
        "metric",
        "CV_",
        "it compares encoders: the tab Encoder sensitivity of Scores gives it of measured scores",
    ),
    ("dbac", "condition", "verb_imbalance", "captions made up for it: `view known-answer` scores such sets"),
    ("dbac", "model", "average", "a mean over the paper's captioners"),
    ("repro", "metric", "training_gpu_hours", "hours of training, no score"),
    (
        "imgcap2",
        "condition",
        "anonymous_bench",
        "on AnonymousBench, whose photographs nobody can label: `view anonymous-bench` compares captioners",
    ),
    ("imgcap2", "condition", "mask_rcnn", "people found by a detector of outlines; here by COCO's, or boxes by a YOLO"),
    ("genderscore", "metric", "object_rank", "it ranks the objects nearest to a word and prints no score"),
    ("genderscore", "model", "twitter", "texts without images: `capbias view text` measures these"),
)
# What is of the value that captions name.
OF_NAMED = {("BA", T_TO_A), ("DPA", T_TO_A)}
UNNAMED = "captions do not name skin, so that nothing can tell its value from them"


def as_measured(row: dict) -> dict:
    """A printed row with metric, direction, encoder, alignment and object named as in measured rows.

    Further keys: `masked`, the condition of the photographs (a value of CONDITIONS), and `aligned`, an alignment that
    the paper states outside its table.

    >>> row = {"paper": "dbac", "metric": "BA", "direction": "T->A", "condition": "partial_masked", "encoder": ""}
    >>> renamed = as_measured(row)
    >>> renamed["metric"], renamed["direction"], renamed["masked"], renamed["alignment"]
    ('DBA_G', '', 'part', '')
    """
    if row["paper"] == GENDER_SCORE:
        metric, direction, thing = printed_as(row)
        of_series = {"metric": metric, "direction": direction, "object": thing, "alignment": ""}
        return row | of_series | {"masked": ORIGINAL, "aligned": ""}
    named = row["paper"], row["metric"]
    metric, condition = OTHER_NAME.get(named) or row["metric"], row["condition"]
    if condition == ONE_JUDGE:
        metric = OF_ONE_JUDGE.get(metric, metric)
    masked = suggested_condition(condition)[1]
    alignment = condition if condition == CONSTANT or condition.startswith("contextual") else ""
    return row | {
        "metric": metric,
        "alignment": alignment,
        "object": "",
        "masked": masked,
        "direction": "" if metric == NAMES_DIRECTION else row["direction"] or DIRECTION.get(named, ""),
        "encoder": row["encoder"] or ENCODER.get(named, ""),
        "aligned": ALIGNED.get(named, "") if not alignment else "",
    }


def printed_conditions(published: pd.DataFrame, attribute: str) -> pd.DataFrame:
    """The papers' values by condition (LIC's Table 4, DBAC's Table 4): the published columns, metric and direction as
    measured rows have them, and `masked`."""
    rows = published[published["table"] == published["paper"].map(BY_CONDITION)]
    rows = rows[(rows["attribute"] == attribute) & (rows["condition"] != "")]
    named = [as_measured(row) for row in rows.to_dict("records")]
    columns = {name: [row[name] for row in named] for name in ("metric", "direction", "masked")}
    return rows.assign(**columns).reset_index(drop=True)


def no_counterpart(row: dict) -> str:
    """Why nothing that is measured here is the same as a printed row, '' where something is.

    >>> no_counterpart({"paper": "repro", "metric": "training_gpu_hours", "model": "human"})
    'hours of training, no score'
    """
    for paper, column, begins, reason in NO_COUNTERPART:
        if row["paper"] == paper and row[column].startswith(begins):
            return reason
    return UNNAMED if row["attribute"] == "race" and (row["metric"], row["direction"]) in OF_NAMED else ""


@cache
def printed_objects() -> frozenset[str]:
    """The objects that a paper prints values for."""
    rows = published_results().to_dict("records")
    return frozenset(as_measured(row)["object"] for row in rows if not no_counterpart(row)) - {""}


PAPERS = {
    "lic": "LIC (Hirota et al., 2022)",
    "repro": "Reproducibility study of LIC (Baratov et al., 2023)",
    "dbac": "DBAC (Nair et al., 2025)",
    "imgcap2": "ImageCaptioner² (Abdelrahman et al., 2024)",
    "genderscore": "Gender Score (Sabir and Padró, 2023)",
}
BUNDLED = (
    "These measured values come with capbias and are not of this collection: seven captioners on COCO, LIC by ngram "
    "with 30 seeds, a preview. The paper's attacker lstm_bi was not run for them."
)
MAIN_TABLE = ("lic", "1")  # LIC, ratio and error of nine captioners
# Printed conditions of ImageCaptioner2 -> what the name of the photographs that a judge saw must hold; '' is any.
MASKED_BY = {"": "", ONE_JUDGE: "", "gt_masks": "segment", "yolox": "box"}

YES, NO, NOT_MEASURED = "yes", "no", "not measured"
NOTHING = "not comparable"
NONE_HERE = "no counterpart"
MEASURED = ("metric", "encoder", *ORIGIN_COLUMNS, "value", "ci_low", "ci_high", "spread", "seeds", "n", "run_id")
KEYS = ("model", "attribute", "metric", "direction", *ORIGIN_COLUMNS)


def published(
    workspace: Workspace,
    paper: Annotated[str, Option(f"one of: {', '.join(PAPERS)} (default: all)", metavar="NAME")] = "",
    table: Annotated[str, Option("its table, such as 10 or 12a (default: all)", metavar="TABLE")] = "",
    collection: Annotated[str, Option("measured values of this collection beside", metavar="NAME")] = "",
) -> Shown:
    """Printed values of a paper, or of all, beside the measured ones of a collection."""
    rows = published_results()
    for name, wanted in (("paper", paper), ("table", table)):
        if wanted and wanted not in set(rows[name]):
            raise unknown_name(name, wanted, dict.fromkeys(rows[name]))
        rows = rows[rows[name] == wanted] if wanted else rows
    measured = measured_rows(workspace, collection) if collection else pd.DataFrame(columns=list(RESULT_COLUMNS))
    return published_shown(rows, measured, PAPERS.get(paper, "the papers") if not table else _called(rows))


def _called(rows: pd.DataFrame) -> str:
    """Which tables printed rows are of: `Table 12a of DBAC (Nair et al., 2025)`."""
    tables = dict.fromkeys(zip(rows["paper"], rows["table"], strict=True))
    return ", ".join(f"Table {table} of {PAPERS[paper]}" for paper, table in tables)


def published_shown(printed: pd.DataFrame, measured: pd.DataFrame, name: str = "", or_bundled: bool = False) -> Shown:
    """Printed rows beside measured ones as a view. name: what the rows are called (default: their tables). or_bundled:
    whether `bundled_rows` are beside them if nothing measured is."""
    pairs, bundled = beside_measured(printed, measured), False
    if or_bundled and pairs["measured_value"].isna().all():
        pairs = beside_measured(printed, bundled_rows())
        bundled = pairs["measured_value"].notna().any()
    name = name or _called(printed)
    headline, support = beside_sentence(pairs, name, bundled)
    tables = dict.fromkeys(zip(printed["paper"], printed["table"], strict=True))
    against = table_note(*next(iter(tables))) if len(tables) == 1 else ""
    against = f"A contradiction in the paper: {against}" if against else ""
    notes = (*((BUNDLED,) if bundled else ()), support, against, CELLS_HOLD)
    return Shown(
        title=f"Published values of {name}" + (" beside measured ones" if len(measured) else ""),
        rows=noted(pairs).drop(columns=[*ORIGIN_COLUMNS, *SUPPORT_COLUMNS]),
        sentence=headline,
        notes=tuple(filter(None, notes)),
        table=beside_table(pairs),
        chart=lambda: dots_chart(_dots(pairs)),
    )


CELLS_HOLD = (
    "Published: as printed, ± standard deviation over seeds (or 95% if marked). Measured: value ± standard deviation "
    "over seeds [95% interval], in the paper's unit. Note: what in the paper contradicts the number."
)


def _dots(pairs: pd.DataFrame) -> pd.DataFrame:
    """Printed values, with their intervals where a paper has them, each followed by the measured ones."""
    varying = [name for name in ("attribute", "encoder", "condition") if pairs[name].nunique() > 1]
    panel = [measure(*row) for row in zip(pairs["metric"], pairs["direction"], strict=True)]
    label = [" · ".join(filter(None, row)) for row in pairs[["model", *varying]].itertuples(index=False, name=None)]
    pairs = pairs.assign(panel=panel, label=label)
    half = pairs["spread"].where(pairs["spread_kind"] == "ci95")
    printed = pairs.assign(label=pairs["label"] + ", published")
    printed = printed.assign(ci_low=pairs["value"] - half, ci_high=pairs["value"] + half)
    measured = pairs.assign(**{name: pairs[f"measured_{name}"] for name in ("value", "ci_low", "ci_high")})
    measured = measured[measured["value"].notna()].assign(label=lambda rows: rows["label"] + ", measured")
    both = pd.concat([printed, measured]).astype(dict.fromkeys(("value", "ci_low", "ci_high"), float))
    return both.sort_index(kind="stable").drop_duplicates(["panel", "label", "value"])


def measured_rows(
    workspace: Workspace,
    collection: str,
    labels: Mapping[str, Item] | None = None,
    references: Mapping[str, Item] | None = None,
    each_seeds: bool = False,
) -> pd.DataFrame:
    """Results of a collection's finished runs, in RESULT_COLUMNS, captioner and masked (condition of the photographs).

    labels: by attribute, the table of labels of runs that count (default: see `tables_read`). references: by attribute,
    their human captions (default: see `references_read`; runs without human captions always count). Of equal rows those
    with most seeds count, then the newest; with each_seeds one per number of seeds. Runs that merged masks are left
    out: the papers mask word by word. Skin with the value unsure, as in DBAC, is called WITH_UNSURE.
    """
    read = results.tables_read(workspace, collection) if labels is None else labels
    human = results.references_read(workspace, collection) if references is None else references
    all_runs = results.runs_against(results.runs_with(results.current_runs(workspace, collection), read), human)
    runs = [run for run in all_runs if not run.spec.merge_masks]
    rows = results.known_results(workspace, [run.run_id for run in runs])
    of_objects = [results.object_rows(run) for run in runs]
    of_objects = [frame[frame["object"].isin(printed_objects())] for frame in of_objects if len(frame)]
    rows = pd.concat([rows, *of_objects], ignore_index=True)
    unsure = [run.run_id for run in runs if {*map(str.lower, run.spec.attribute["values"])} == UNSURE_VALUES]
    rows["attribute"] = rows["attribute"].mask(rows["run_id"].isin(unsure), WITH_UNSURE)
    best_first = sorted(runs, key=lambda run: -len(run.spec.seeds))
    rank = {run.run_id: rank for rank, run in enumerate(best_first)}
    rows = rows.assign(place=rows["run_id"].map(rank)).sort_values("place", kind="stable")
    rows = (
        rows.drop_duplicates([*KEYS, "encoder", *(["seeds"] if each_seeds else [])])
        .drop(columns="place")
        .sort_index()
        .reset_index(drop=True)
    )
    known = {item.name: condition_of(item) for item in workspace.items("captions", collection)}
    whose = [known.get(name, (name, ORIGINAL)) for name in rows["model"]]
    return rows.assign(captioner=[name for name, _ in whose], masked=[condition for _, condition in whose])


def measured_of(
    workspace: Workspace, collection: str, attribute: str = "", each_seeds: bool = False
) -> tuple[pd.DataFrame, str, int]:
    """`measured_rows` of the unmasked captioners and one attribute, its name, and how many values it has. attribute:
    its name (default: as on the page Answer). each_seeds: as there."""
    attribute = attribute or results.first_attribute(workspace, collection)
    details = attribute_of(table_with(workspace.items("attributes", collection), attribute), attribute)[0]
    rows, names = (
        measured_rows(workspace, collection, each_seeds=each_seeds),
        originals(workspace.items("captions", collection)),
    )
    return rows[(rows["attribute"] == attribute) & rows["model"].isin(names)], attribute, len(details.values)


def bundled_rows() -> pd.DataFrame:
    """The results that come with capbias, as `measured_rows` has those of a collection."""
    rows = bundled_measured()
    return rows.assign(captioner=rows["model"], masked=ORIGINAL)


def of_originals(measured: pd.DataFrame) -> pd.DataFrame:
    """The rows of `measured_rows` of unmasked photographs, by which captioners are compared."""
    return measured[measured["masked"] == ORIGINAL]


def beside_measured(printed: pd.DataFrame, measured: pd.DataFrame) -> pd.DataFrame:
    """Printed rows with the measured values of the same thing: one row per pair, or one without a measured value.

    Two values match if attribute, metric and direction (see `as_measured`), condition of the photographs, captioner
    (see `name_key`), object and alignment are equal; LIC on a part of the images matches LIC. A value of the printed
    encoder and alignment on all images excludes others. Further columns:

    captioner: the measured one.
    measured_metric, measured_encoder, measured_value, ..: MEASURED, in the printed row's scale.
    holds: whether the measured 95% interval contains the printed value (`yes`, `no`), or why that is not decided.
    reason: why nothing measured here can match.
    """
    by_key: dict[tuple, list[dict]] = {}
    for row in measured[measured["value"].notna()].to_dict("records"):
        names = {row.get("captioner", row["model"])}
        if row.get("masked", ORIGINAL) == ORIGINAL:  # the name of the set finds it too
            names.add(row["model"])
        for key in {_key(row, name) for name in names}:
            by_key.setdefault(key, []).append(row)
    pairs = []
    for row in printed.to_dict("records"):
        if reason := no_counterpart(row):
            pairs.append(row | {"captioner": "", "holds": NONE_HERE, "reason": reason})
            continue
        renamed = as_measured(row)  # the printed row, named as measured rows are
        keys = [_key(renamed, renamed["model"])]
        if _of_unsure(row):
            keys.insert(0, _key(renamed | {"attribute": WITH_UNSURE}, renamed["model"]))
        named = next((by_key[key] for key in keys if key in by_key), [])
        matches = [result for result in named if _meet(renamed, result)]
        exact = [
            result for result in matches if _alignment(result) == _alignment(renamed) and not result["coverage"]
        ] or matches
        same = [result for result in exact if _same_encoder(renamed, result)]
        same = same or [result for result in matches if _same_encoder(renamed, result)] or exact
        if not same:
            pairs.append(row | {"captioner": "", "holds": NOT_MEASURED, "reason": ""})
        for result in same:
            factor = row["scale"] / result["scale"]
            scaled = {name: result[name] * factor for name in ("value", "ci_low", "ci_high", "spread")}
            beside = {f"measured_{name}": scaled.get(name, result[name]) for name in MEASURED}
            holds = _holds(row, renamed, result, scaled)
            pairs.append(row | beside | {"captioner": result["model"], "holds": holds, "reason": ""})
    columns = [*printed.columns, "captioner", *(f"measured_{name}" for name in MEASURED), "holds", "reason"]
    return pd.DataFrame(pairs, columns=columns)


def first_table(printed: pd.DataFrame, measured: pd.DataFrame) -> tuple[str, str]:
    """Paper and table to open on: LIC's main table, or if nothing of it was measured, that with most measured values,
    each counted once."""
    beside = beside_measured(printed, measured)
    origins = beside[
        ["paper", "table", *(f"measured_{name}" for name in ("run_id", *ORIGIN_COLUMNS, "value")), "metric"]
    ]
    counts = origins.drop_duplicates().groupby(["paper", "table"], sort=False)["measured_value"].count()
    return counts.idxmax() if not counts[MAIN_TABLE] and counts.any() else MAIN_TABLE


def _key(row: dict, model: str) -> tuple:
    named = (model, row["attribute"], row["metric"], row["direction"], row.get("masked", ORIGINAL))
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


def _holds(printed: dict, renamed: dict, result: dict, scaled: dict) -> str:
    """Whether a measured interval contains a printed value, or why that is not decided. renamed: the printed row from
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
        ("no interval", pd.isna(scaled["ci_low"])),
    )
    if reason := next((text for text, applies in reasons if applies), ""):
        return f"{reason}, {NOTHING}"
    return YES if scaled["ci_low"] <= printed["value"] <= scaled["ci_high"] else NO


HOLDS, NOTE = "reproduced?", "note"
CELLS = {YES: "background-color: rgba(59,130,208,.38)", NO: "background-color: rgba(138,148,163,.42); font-weight: 600"}


def beside_table(frame: pd.DataFrame) -> pd.DataFrame:
    """`beside_measured` as text, rows with a measured value first, without empty columns.

    note: what contradicts the printed number in the papers. `measured with`: settings, or why there is no value. Values
    have the decimals that their metric is printed with.
    """
    frame = frame.sort_values("measured_value", key=pd.isna, kind="stable")
    table = pd.DataFrame({"captioner": frame["model"], "metric": frame["metric"]})
    for name in ("attribute", "encoder", "direction", "condition"):
        if (frame[name] != "").any() and (name != "attribute" or frame[name].nunique() > 1):
            table[name] = frame[name].str.replace("_", " ") if name == "condition" else frame[name]
    places = {}  # the most decimals among the printed values of a metric
    for metric, values in frame.groupby("metric")["value"]:
        parts = [repr(float(value)).partition(".")[2] for value in values.dropna()]
        places[metric] = max((len(part) for part in parts if part != "0"), default=0)
    printed, measured, source = [], [], []
    for row in frame.to_dict("records"):
        digits = places[row["metric"]]
        kind = " (95%)" if row["spread_kind"] == "ci95" else ""
        spread = "" if pd.isna(row["spread"]) else f" ±{number(row['spread'], digits)}{kind}"
        printed.append(f"{number(row['value'], digits)}{spread}")
        result = {name: row[f"measured_{name}"] for name in MEASURED}
        if pd.isna(result["value"]):
            measured.append("")
            source.append(row["reason"])
            continue
        text = limit(result["value"], digits)
        text += "" if pd.isna(result["spread"]) else f" ±{limit(result['spread'], digits)}"
        if pd.notna(result["ci_low"]):
            text += f" [{limit(result['ci_low'], digits)}, {limit(result['ci_high'], digits)}]"
        measured.append(text)
        captioner = row["captioner"] if row["captioner"] != row["model"] else ""
        metric = result["metric"] if result["metric"] != row["metric"] else ""
        seeds = counted(int(result["seeds"]), "seed") if result["seeds"] else ""
        source.append(", ".join(filter(None, (captioner, metric, result["encoder"], seeds, variant_text(result)))))
    notes, _ = published_notes(frame)
    columns = {NOTE: [*notes], "measured": measured, HOLDS: [*frame["holds"]], "measured with": source}
    filled = {name: cells for name, cells in columns.items() if any(cells)}
    return table.assign(published=printed, **filled).reset_index(drop=True)


def noted(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of `beside_measured` with the column note: what contradicts the row or its table in the papers."""
    notes, of_tables = published_notes(frame)
    whole = [of_tables.get(key, "") for key in zip(frame["paper"], frame["table"], strict=True)]
    return frame.assign(**{NOTE: [f"{text} {note}".strip() for text, note in zip(whole, notes, strict=True)]})


def table_note(paper: str, table: str) -> str:
    """What contradicts a whole table in its paper, '' for nothing."""
    _, of_tables = published_notes(published_results().iloc[:0])
    return of_tables.get((paper, table), "")


MATCHED = "Captioners are matched by name: check that your captions are those of the paper. "


def beside_sentence(frame: pd.DataFrame, name: str, bundled: bool = False) -> tuple[str, str]:
    """Headline and support about one printed table beside measured values. bundled: whether they are `bundled_rows`."""
    holds = frame["holds"]
    printed = len(frame.drop_duplicates(["model", "attribute", "metric", "encoder", "direction", "condition"]))
    beside = int((~holds.isin([NOT_MEASURED, NONE_HERE])).sum())
    inside, outside = int((holds == YES).sum()), int((holds == NO).sum())
    if inside + outside:
        compared = list(dict.fromkeys(frame.loc[holds.isin([YES, NO]), "metric"]))
        whose = "bundled" if bundled else "measured"
        headline = (
            f"Within {whose} 95% intervals: {inside} of {counted(inside + outside, 'comparable published value')} "
            f"({listed(compared)})."
        )
    elif beside:
        headline = (
            "No published value can be compared: none was measured with the paper's encoder, images and protocol."
        )
    elif (holds == NONE_HERE).all():
        headline = "capbias measures none of the metrics in this table."
    else:
        headline = "Nothing of this table has been measured in this collection."
    without = "".join(
        f" {counted(len(rows), 'number')} ({', '.join(dict.fromkeys(rows['metric']))}; {attribute}) cannot have one: "
        f"{reason}."
        for (reason, attribute), rows in frame[holds == NONE_HERE].groupby(["reason", "attribute"], sort=False)
    )
    support = (
        f"{name} has {counted(printed, 'number')}; {counted(beside, 'measured value')} "
        f"{'is' if beside == 1 else 'are'} shown next to them.{without} "
        f"{'' if bundled else MATCHED}Values from a different encoder are shown but not compared."
    )
    return headline, support
