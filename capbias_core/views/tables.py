"""Results as text: CSV and JSON with every digit, and tables of rounded cells."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np
import pandas as pd

from capbias_core.aggregate import Ranking, provisional
from capbias_core.aggregate.variants import INPUTS
from capbias_core.measures.registry import METRICS, variants_of
from capbias_core.spreadsheets import csv_text
from capbias_core.types import RESULT_COLUMNS, counted
from capbias_core.views.sentence import decimals, limit, measure, seeds_agree, signed

LETTERS = "letters"


def one_number_a_cell(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows without those of other numbers of seeds: if a captioner was measured with several, those stay that most
    captioners share, then the most seeds.

    frame: in RESULT_COLUMNS, with the columns captioner and variant.
    """
    by = ["attribute", "encoder", "metric", "direction", "group", "variant"]
    if not frame.duplicated([*by, "captioner"]).any():
        return frame
    shared = frame.groupby([*by, "seeds"])["captioner"].transform("nunique")
    order = frame.assign(shared=shared).sort_values(["shared", "seeds"], ascending=False, kind="stable")
    return order.drop(columns="shared").drop_duplicates([*by, "captioner"])


def shown_letters(frame: pd.DataFrame) -> pd.DataFrame:
    """The lettered rows whose letters a table shows: of each attribute those by one metric, LIC before LIC_M."""
    if LETTERS not in frame:
        return frame.iloc[:0]
    rows = frame[frame[LETTERS] != ""]
    order = rows["metric"].map(list(METRICS).index)
    return rows[order == order.groupby(rows["attribute"]).transform("min")]


def result_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Result rows in the columns of the results table, with labels, references and letters where they are known. The
    column name is the metric with its attacker, such as `LIC (ngram)`."""
    frame = frame.assign(name=frame["metric"] + frame["encoder"].map(lambda by: f" ({by})" if by else ""))
    return frame[_columns(frame, "name")]


def to_csv(frame: pd.DataFrame) -> str:
    """`result_columns` as CSV, one row a number; nothing is rounded."""
    return csv_text(result_columns(frame))


def _columns(frame: pd.DataFrame, *more: str) -> list[str]:
    """Those of the results table, some more, and those of what was read and of letters, where the rows have them."""
    return [*RESULT_COLUMNS, *more, *(name for name in (*INPUTS, LETTERS) if name in frame)]


def to_json(frame: pd.DataFrame) -> str:
    """Result rows as JSON, in the columns of the results table, as `json_text` writes it."""
    return json_text(frame[_columns(frame)])


def json_text(frame: pd.DataFrame) -> str:
    """Rows as a JSON list of objects; nothing is rounded, and what is not there is null."""
    rows = frame.astype(object)
    return json.dumps(rows.where(rows.notna(), None).to_dict("records"), indent=2, ensure_ascii=False) + "\n"


# Columns of a table of scores that are no metric: what a row is of, and what is said of the captioner.
KEYS = ("captioner", "attribute", "encoder")
IMAGES = "images"  # how many LIC was measured on, if captioners differ
OF_CAPTIONERS = (LETTERS, "verdict", IMAGES)


def value_parts(row: dict) -> tuple[str, str]:
    """`8.7 ±0.9` and `[6.9, 10.4]`, without the parts that are not there.

    Scores x100 get one decimal; BA and DBA, whose values are small, and others two.
    """
    if pd.isna(row["value"]):
        return "not defined", ""
    if row["scale"] == 1 and pd.isna(row["ci_low"]) and float(row["value"]).is_integer():
        return f"{row['value']:,.0f}".replace("-", "−"), ""  # a count, such as the size of a vocabulary
    digits = decimals(row["metric"], row["scale"])
    value = limit(row["value"], digits) + ("" if pd.isna(row["spread"]) else f" ±{limit(row['spread'], digits)}")
    if pd.isna(row["ci_low"]):
        return f"{value}{seeds_agree(row)}", ""
    return value, f"[{limit(row['ci_low'], digits)}, {limit(row['ci_high'], digits)}]"


def value_text(row: dict) -> str:
    """`8.7 ±0.9 [6.9, 10.4]`, without the parts that are not there; where seeds are too few for a claim, it names them:
    `4.4 ±0.8 [−3.7, 12.5] 2 seeds`."""
    seeds = counted(int(row["seeds"]), "seed") if pd.notna(row["ci_low"]) and provisional(row) else ""
    return " ".join(filter(None, (*value_parts(row), seeds)))


def scores_table(
    frame: pd.DataFrame, metrics: Iterable[str] | None = None, cell: Callable[[dict], Any] = value_text
) -> pd.DataFrame:
    """One row a captioner (and attribute or encoder, where there are several), highest LIC first; captioners that were
    measured on different images than most (no small letter) last.

    A cell such as `8.7 ±0.9 [6.9, 10.4]` holds value, standard deviation over seeds and 95% interval. Where some
    numbers depend on all images and some on those with references, a column names its coverage: `LIC_M (with
    references)`; metrics that need references have one column. Each direction has its column. Counting metrics have no
    encoder and stand beside the only one, or on rows without one where there are several.

    frame: in RESULT_COLUMNS, also `lettered`. metrics: which to show, in this order (default: all, in the order of the
    metrics' own table, but beside other metrics no refusals where there are none, nor `unnamed` by group). cell: what a
    result row becomes in the table.
    """
    if metrics is None:
        refusals, metrics = frame["metric"].isin(["refused", "refused_gap"]), list(METRICS)
        nothing = refusals & (not frame.loc[refusals, "value"].any())
        nothing |= (frame["metric"] == "unnamed") & (frame["group"] != "") & ("misnamed" not in set(frame["metric"]))
        frame = frame[~nothing] if (~refusals & (frame["metric"] != "unnamed")).any() else frame
    metrics = list(metrics)
    frame = frame[frame["metric"].isin(metrics)].rename(columns={"model": "captioner"})
    encoders = [encoder for encoder in frame["encoder"].unique() if encoder]
    frame = frame.assign(encoder=encoders[0]) if len(encoders) == 1 else frame
    keys = [KEYS[0], *(name for name in KEYS[1:] if frame[name].nunique() > 1)]
    frame = one_number_a_cell(frame.assign(variant=variants_of(frame)))
    mixed = frame["variant"].nunique() > 1
    # The captioners with the highest LIC come first (LIC_M where there is no LIC); else the order stays.
    ranked_by = next((name for name in ("LIC", "LIC_M") if name in set(frame["metric"])), None)
    highest = frame[frame["metric"] == ranked_by].groupby("captioner")["value"].max().to_dict()
    order = -frame["captioner"].map(highest).astype(float).fillna(-np.inf)
    letters = shown_letters(frame)
    with_letter = set(letters.loc[letters[LETTERS].str.islower(), "captioner"]) if len(letters) else set()
    apart = ~frame["captioner"].isin(with_letter) & bool(with_letter)
    rows: dict[tuple, dict[str, Any]] = {}
    columns: dict[str, dict[str, None]] = {}
    for row in frame.iloc[np.lexsort((order, apart))].to_dict("records"):
        suffix = f" ({row['variant'].replace('_', ' ')})" if mixed and row["variant"] else ""
        column = measure(row["metric"], row["direction"]) + suffix
        columns.setdefault(row["metric"], {})[column] = None
        rows.setdefault(tuple(row[key] for key in keys), {})[column] = cell(row)
    table = pd.DataFrame([dict(zip(keys, key, strict=True)) | cells for key, cells in rows.items()])
    table = table.reindex(columns=[*keys, *(column for name in metrics for column in columns.get(name, ()))]).fillna("")
    ranked = frame[frame["metric"] == ranked_by]
    sizes = ranked.assign(**{IMAGES: [f"{size:,.0f}" for size in ranked["training"] + ranked["n"]]})
    sizes = sizes if sizes[IMAGES].nunique() > 1 else sizes.iloc[:0]
    for name, rows_of in ((IMAGES, sizes), ("verdict", frame), (LETTERS, letters)):
        texts = {tuple(row[key] for key in keys): row.get(name) for row in rows_of.to_dict("records") if row.get(name)}
        if texts:
            table.insert(
                len(keys), name, [texts.get(row, "") for row in table[keys].itertuples(index=False, name=None)]
            )
    return table


def in_blocks(table: pd.DataFrame, columns: int = 4) -> list[pd.DataFrame]:
    """A table of scores as several that fit a page: so many metrics each, captioners named in all of them."""
    keys = [name for name in table if name in KEYS]
    first = [name for name in table if name in OF_CAPTIONERS]
    metrics = [name for name in table if name not in (*keys, *first)]
    starts = range(0, max(1, len(metrics)), columns)
    return [table[[*keys, *(() if start else first), *metrics[start : start + columns]]] for start in starts]


# What the verdict and other columns follow from: a table shows it where one asks for it.
BEHIND = ("LIC_by_M", "LIC_by_M_cut", "LIC_HM", "LIC_MH", "SC_D")


ON_FEWER = " (with references)"  # ends the names of columns on a part of the images
FIRST_COLUMNS = 4  # as many as a window of 1280 pixels shows


def metric_columns(table: pd.DataFrame) -> list[str]:
    """The columns of a table of scores that hold a metric."""
    return [name for name in table if name.partition(" ")[0] in METRICS]


def first_columns(table: pd.DataFrame, asked: Collection[str] = (), most: int = FIRST_COLUMNS) -> list[str]:
    """The columns of a table of scores that hold a metric and are shown at first: at most so many with the images, and
    what was asked for. LIC is LIC_M minus LIC_D on the images with references, so these are beside it, and those on all
    images if a captioner has nothing else.

    asked: metrics by name, in any case; they are always shown.

    >>> first_columns(pd.DataFrame(columns=["captioner", "LIC", "LIC_HM", "LIC_M", "LIC_M (with references)"]))
    ['LIC', 'LIC_M (with references)']
    """
    names, wanted = metric_columns(table), {name.lower() for name in asked}
    metrics = {name: name.partition(" ")[0] for name in names}
    first = [
        name
        for name in names
        if metrics[name] not in BEHIND
        and not metrics[name].endswith("_cut")
        and (name + ON_FEWER not in names or (table[name + ON_FEWER] == "").any())
    ][: most - ("images" in table)]
    return [name for name in names if name in first or metrics[name].lower() in wanted]


def row_table(frame: pd.DataFrame) -> pd.DataFrame:
    """A line a number, for a reader: whose it is, what it is of, the number with its interval, and the method.

    frame: rows in RESULT_COLUMNS. Columns that are empty throughout are left out.
    """
    rows = frame.to_dict("records")
    columns: dict[str, list[str]] = {
        "captioner": [str(row["model"]) for row in rows],
        "metric": [measure(row["metric"], row["direction"]) for row in rows],
        **{name: [str(row[name]) for row in rows] for name in ("group", "object", "attribute", "condition", "encoder")},
        "value": [value_text(row) for row in rows],
        "n": [f"{row['n']:,.0f}" if row["n"] else "" for row in rows],
        "method": [str(row["method"]) for row in rows],
    }
    return pd.DataFrame({name: cells for name, cells in columns.items() if any(cells)})


def pair_table(ranking: Ranking, digits: int = 1) -> pd.DataFrame:
    """Captioners by captioners, highest value first: row minus column, its p after Holm, and what follows.

    A cell such as `+1.9, p 0.003, higher`, or `+0.4, p 0.61` for a pair that is not told apart.
    """
    names = sorted(ranking.values, key=lambda name: -ranking.values[name])
    cells = {(name, name): "" for name in names}
    for pair in ranking.pairs:
        p = "p < 0.001" if pair.p < 0.001 else f"p {pair.p:.{3 if pair.p < 0.1 else 2}f}"
        for row, column, sign in ((pair.first, pair.second, 1), (pair.second, pair.first, -1)):
            difference = sign * pair.difference
            side = (", higher" if difference > 0 else ", lower") if pair.apart else ""
            cells[row, column] = f"{signed(difference, digits)}, {p}{side}"
    rows = [{"captioner": row} | {name: cells.get((row, name), "not compared") for name in names} for row in names]
    return pd.DataFrame(rows, columns=["captioner", *names])


# Name of a gap -> the metric whose values it compares.
GAPS = {name: metric.gap_of for name, metric in METRICS.items() if metric.gap_of}


def of_groups(rows: pd.DataFrame) -> pd.Series:
    """Which result rows are of one group's images."""
    return rows["metric"].isin(GAPS.values()) & (rows["group"] != "")


def of_gaps(rows: pd.DataFrame) -> pd.Series:
    """Which result rows are a difference between groups."""
    return rows["metric"].isin(GAPS)


def gap_table(rows: pd.DataFrame, cell: Callable[[dict], Any] = value_text) -> pd.DataFrame:
    """A row per metric and captioner, largest difference first: the difference and the value in each group. If the
    differences of several attributes are not alike, a column says what each is.

    rows: results that hold rows of groups and of gaps; empty if they hold none. cell: what a result row becomes.
    """
    order = {name: index for index, name in enumerate(GAPS)}
    gaps = rows[of_gaps(rows)]
    gaps = gaps.assign(order=gaps["metric"].map(order), size=-gaps["value"].abs())
    groups = rows[of_groups(rows)]
    compared = {name: _compared(of_attribute) for name, of_attribute in groups.groupby("attribute", sort=False)}
    kinds = [kind for kind in dict.fromkeys(compared.values()) if kind]
    difference = f"difference ({kinds[0]})" if len(kinds) == 1 else "difference"
    values: dict[tuple[str, str], dict[str, Any]] = {}
    for group in groups.to_dict("records"):
        values.setdefault((group["run_id"], group["metric"]), {})[group["group"]] = cell(group)
    table = []
    for row in gaps.sort_values(["attribute", "order", "size"]).to_dict("records"):
        metric = METRICS[GAPS[row["metric"]]]
        arrow = {"higher": " ↑", "lower": " ↓"}.get(metric.better, "")
        what = {"metric": f"{metric.title.partition(',')[0]}{arrow}", "captioner": row["model"]}
        what |= {"attribute": row["attribute"]} if len(compared) > 1 else {}
        what |= {"compared": compared.get(row["attribute"], "")} if len(kinds) > 1 else {}
        table.append(what | {difference: cell(row)} | values.get((row["run_id"], metric.name), {}))
    return pd.DataFrame(table).fillna("")


def _compared(groups: pd.DataFrame) -> str:
    """What a difference between the groups of an attribute is: `Male minus Female`. groups: their rows."""
    # A run gives its groups in the order of the attribute, without those that have no image.
    most = max((list(dict.fromkeys(of_run["group"])) for _, of_run in groups.groupby("run_id", sort=False)), key=len)
    if len(most) < 2:
        return ""
    return f"{most[1]} minus {most[0]}" if len(most) == 2 else "largest minus smallest value of a group"


def score_tables(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Result rows, also `lettered`, as the two tables of page and command line: captioners by metric, and what was
    measured by group."""
    return scores_table(rows[~of_groups(rows) & ~of_gaps(rows)]), gap_table(rows)


def to_text(frame: pd.DataFrame) -> str:
    """A frame as columns for a terminal, two spaces apart: numbers to the right, text to the left."""
    lines = [[str(column) for column in frame], *([str(cell) for cell in row] for row in frame.itertuples(index=False))]
    columns = []
    for name, *cells in zip(*lines, strict=True):
        width = max(map(len, (name, *cells)))
        right = all(re.fullmatch(r"[−+-]?[\d,.]*%?", cell) for cell in cells)
        columns.append([cell.rjust(width) if right else cell.ljust(width) for cell in (name, *cells)])
    return "\n".join("  ".join(row).rstrip() for row in zip(*columns, strict=True)) + "\n"
