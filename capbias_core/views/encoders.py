"""Encoder sensitivity: the scores of each captioner by each encoder, ranks, variation (CV) and agreement."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
from pydantic import Field as Described

from capbias_core.aggregate import comparison
from capbias_core.aggregate.comparison import ABOVE, BELOW, Sensitivity
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load.published import published_results, read_human_scores, read_results
from capbias_core.measures.registry import METRICS
from capbias_core.types import T_TO_A, counted
from capbias_core.views.agreement import CLEAR, KEYS, agreement, consistency, variation
from capbias_core.views.choose import Choice
from capbias_core.views.results import ranking
from capbias_core.views.sentence import listed, measure, say
from capbias_core.views.view import Field, Forest, View, ViewOptions
from capbias_core.whole_files import typed_path

# The metrics whose dependence on the encoder the papers argue about.
ARGUED = (("LIC", ""), ("DBAC", T_TO_A))
CV = "CV"
# A CV tells nothing where its mean over encoders is not away from 0: this many noise floors.
AWAY = 1.0


class EncodersOptions(ViewOptions):
    metric: str = Described(
        default="", description="a metric that several encoders measured (default: LIC, and DBAC T→A)"
    )
    results: str = Described(
        default="", description="a results table of other captioners or tools, as `score` writes it"
    )
    human: str = Described(default="", description="human scores: a CSV with the columns model and value")


USUAL = EncodersOptions()


def encoder_rows(choice: Choice, options: EncodersOptions = USUAL) -> pd.DataFrame:
    """A row for each captioner, metric and encoder, and one for its CV over encoders. heading: the column for readers;
    panel: the metric; rank: 1 for the best by this encoder; learned: whether the encoder is better than chance."""
    known = measured_metrics(choice)
    wanted = [key for key in ARGUED if key in known] or known[:1]
    if options.metric:
        wanted = [key for key in known if key[0] == options.metric]
        if not wanted:
            raise unknown_name("metric by encoder", options.metric, [name for name, _ in known])
    parts, values = [], {choice.attribute: len(choice.defined.values)}
    learned = comparison.learned(as_results(choice.rows), values)
    for metric, direction in wanted:
        rows = choice.rows[(choice.rows["metric"] == metric) & (choice.rows["direction"] == direction)]
        rows = rows[rows["original"] & (rows["group"] == "") & (rows["object"] == "") & rows["value"].notna()]
        rows = rows[rows["setting"].isin(_settings(choice, rows))].drop_duplicates(["captioner", "encoder"])
        rows = rows.assign(learned=learned.reindex(rows.index), other="", panel=measure(metric, direction))
        rows = rows.assign(rank=_ranks(rows, len(choice.defined.values)), heading=rows["setting_name"])
        parts += [rows, _variations(rows)]
    rows = pd.concat(parts, ignore_index=True) if parts else choice.measured(()).assign(panel="", heading="", rank=0)
    if len(wanted) > 1:
        rows["heading"] = rows["panel"].where(rows["metric"] == CV, rows["panel"] + " " + rows["heading"])
    return choice.ordered(rows)


def measured_metrics(choice: Choice) -> list[tuple[str, str]]:
    """Metrics with their directions that encoders measured and that have a sign, LIC and DBAC first."""
    rows = choice.rows[(choice.rows["encoder"] != "") & choice.rows["original"]]
    keys = dict.fromkeys(rows[["metric", "direction"]].itertuples(index=False, name=None))
    signed = [key for key in keys if math.isfinite(METRICS[key[0]].neutral(2)) and METRICS[key[0]].range[0] < 0]
    return sorted(signed, key=lambda key: key not in ARGUED)


def as_results(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows in the columns of the results table."""
    return rows.rename(columns={"captioner": "model", "low": "ci_low", "high": "ci_high"})


def _settings(choice: Choice, rows: pd.DataFrame) -> list[str]:
    """One setting for each encoder: with the labels and human captions of the chosen one, with as many seeds as most
    encoders have, else as many captioners and seeds as can be had."""
    counts, read = rows.groupby("setting")["captioner"].nunique(), ("labels", "references", "alignment", "objects")
    alike = [choice.settings[key] for key in counts.index if choice.settings[key].shares(choice.measured_with, *read)]
    encoders_with = Counter(setting.seeds for setting in alike)
    alike.sort(key=lambda setting: (encoders_with[setting.seeds], counts[setting.key], setting.seeds))
    return list({setting.attacker: setting.key for setting in alike}.values())


def _ranks(rows: pd.DataFrame, values: int) -> list[float]:
    """The rank of each row's captioner by its encoder, among captioners that all encoders scored; nan of others."""
    if rows.empty:
        return []
    metric = METRICS[rows["metric"].iloc[0]]
    ranks = comparison.ranks_by_encoder(as_results(rows), metric.better, metric.neutral(values)).stack()  # noqa: PD013
    return [ranks.get(key, math.nan) for key in zip(rows["captioner"], rows["encoder"], strict=True)]


def _variations(rows: pd.DataFrame) -> pd.DataFrame:
    """A row with the CV of each captioner over the encoders that are better than chance, where its mean is away from
    0 by more than seeds alone would move it."""
    able = rows[rows["learned"]]
    if able["encoder"].nunique() < comparison.LEAST_ENCODERS:
        return rows.iloc[:0]
    cvs = variation(as_results(able)).rename(columns={"model": "captioner"})
    cvs = cvs[cvs["value"].notna() & ~(cvs["spread"].astype(float) >= AWAY)]
    about = dict.fromkeys(("verdict", "letters", "setting", "setting_name", "other", "encoder"), "")
    about |= {"heading": CV, "panel": f"{rows['panel'].iloc[0]}: CV", "metric": CV, "learned": True}
    about |= {"seeds": 0, "training": 0, "scale": 1.0}
    return cvs.assign(low=np.nan, high=np.nan, rank=np.nan, **about)


def sensitivity_of(choice: Choice, rows: pd.DataFrame) -> Sensitivity:
    """Sign and order of each captioner by encoder. rows: of `encoder_rows`, of one metric."""
    able = rows[rows["learned"].astype(bool) & (rows["metric"] != CV)]
    neutral = METRICS[able["metric"].iloc[0]].neutral(len(choice.defined.values)) if len(able) else 0.0
    orders = []
    for _, of_encoder in able.groupby("encoder", sort=False):
        runs = list(choice.workspace.runs_of(list(of_encoder["run_id"])).values())
        first = of_encoder.iloc[0]
        orders.append(comparison.order_of(ranking(choice.workspace, runs, first["metric"], first["direction"])))
    return comparison.sensitivity(as_results(able), orders, neutral)


def encoder_sentence(choice: Choice, rows: pd.DataFrame) -> str:
    """What the encoders say of the captioner that is read, by the first metric."""
    rows = rows[rows["metric"] != CV] if len(rows) else rows
    if rows.empty:
        return say("encoders.none")
    rows = rows[rows["panel"] == rows["panel"].iloc[0]]
    own = sensitivity_of(choice, rows)
    signs = own.signs.get(choice.captioner, {})
    able = set(rows.loc[rows["learned"].astype(bool), "encoder"])
    weak = [name for name in dict.fromkeys(rows["encoder"]) if name not in able]
    no_better = say("encoders.weak", encoders=listed(weak)) if weak else ""
    if len(signs) < comparison.LEAST_ENCODERS:
        only = f"only {listed(list(signs))}" if signs else "no encoder"
        return say("encoders.one", captioner=choice.captioner, encoders=only) + no_better
    what = {"captioner": choice.captioner, "metric": rows["panel"].iloc[0], "encoders": counted(len(signs), "encoder")}
    sure = [name for name, side in signs.items() if side in (ABOVE, BELOW)]
    if choice.captioner in own.turned:
        return say("encoders.turned", **what) + no_better
    if not sure:
        return say("encoders.open", **what) + no_better
    moved = say("encoders.moved") if choice.captioner in own.moved else ""
    return say("encoders.same", **what, number=len(sure)) + moved + no_better


def encoder_notes(choice: Choice, rows: pd.DataFrame) -> Sequence[str]:
    if rows.empty:
        return ()
    lines = [say("encoders.rule")]
    for panel, of_metric in rows[rows["metric"] != CV].groupby("panel", sort=False):
        lines += [say("encoders.seeds", metric=panel)] if of_metric["seeds"].nunique() > 1 else []
        pairs = agreement(as_results(of_metric[of_metric["learned"].astype(bool)]))
        for row in pairs[(pairs["metric"] == CLEAR) & pairs["value"].notna()].to_dict("records"):
            pair = row["encoder"].replace(", ", " and ")
            lines.append(say("encoders.pair", metric=panel, pair=pair, share=row["value"], n=row["n"]))
        lines += [say("encoders.no_cv", metric=panel)] if f"{panel}: CV" not in set(rows["panel"]) else []
    weak = comparison.unlearned_note(as_results(choice.rows), {choice.attribute: len(choice.defined.values)})
    return [line for line in (*lines, weak, choice.defined.note) if line]


ENCODERS = View(
    name="encoders",
    question="Does another encoder agree?",
    rows=encoder_rows,
    columns=(
        Field("captioner", help="who wrote the captions"),
        Field("value", low="low", high="high", across=True),
        Field("rank", label="rank", digits=0, across=True, help="1 is best, among captioners that all encoders scored"),
    ),
    sentence=encoder_sentence,
    across="heading",
    chart=Forest(series="encoder", panel="panel"),
    options=EncodersOptions,
    notes=encoder_notes,
    example="""\
  capbias score --collection coco --attribute gender --metric lic \\
    --attacker ngram lstm
  capbias view encoders --collection coco
  capbias view encoders --results scores.csv --human people.csv""",
)


# a results table of other captioners or tools


def results_rows(choice: Choice | None, options: EncodersOptions = USUAL) -> pd.DataFrame:
    """CV, conflicts, ranking consistency, agreement between masks and with human scores, of a results table (default:
    the papers'). Raises CapbiasError if it has neither several encoders nor human scores."""
    frame = read_results(typed_path(options.results)) if options.results else published_results()
    rows = consistency(frame, read_human_scores(typed_path(options.human)) if options.human else None)
    if rows.empty:
        raise CapbiasError(
            "This results table has neither several encoders nor human scores.",
            "Score with two attackers, or add --human.",
        )
    what = [*KEYS, "encoder"]
    return rows.assign(what=rows[what].astype(str).agg(lambda row: " · ".join(filter(None, row)), axis=1))


RESULTS = View(
    name="encoders",
    question="Agreement between encoders, masks and people",
    rows=results_rows,
    columns=(Field("what"), Field("value", digits=3, across=True), Field("n", digits=0)),
    sentence=lambda choice, rows: say("encoders.results", values=counted(len(rows), "value")),
    by="what",
    across="metric",
    options=EncodersOptions,
)
