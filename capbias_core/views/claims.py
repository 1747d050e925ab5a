"""The claims of the LIC paper and of its reproduction, each decided by printed rows and by measured ones.

A claim is broken into checks that hold, fail, or cannot be told. A printed value stands as it is printed; a measured
value is its 95% interval with refits, so a check holds or fails only where the whole interval says so, and one of
amplification only where the verdict does: simple wording alone can put LIC above 0. All checks hold: agree. One fails:
disagree. Otherwise: not decided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

import numpy as np
import pandas as pd

from capbias_core.aggregate import REFITS
from capbias_core.aggregate.comparison import conflict_score, name_key, pearson
from capbias_core.aggregate.estimate import AMPLIFIES, INCONCLUSIVE, REDUCES
from capbias_core.views.charts import BLUE_MARK, GREY, ORANGE_MARK
from capbias_core.views.sentence import listed, with_interval
from capbias_core.workspace.spec import WITH_REFERENCES
from capbias_core.workspace.vectors import CONSTANT

METRIC = "LIC"
SHORT = {"lic": "LIC", "repro": "reproduction"}
AGREE, DISAGREE, OPEN = "agree", "disagree", "not decided"
AGE_NAMED = frozenset({"updn", "transformer", "oscar"})


@dataclass(frozen=True)
class Span:
    """What is known of a captioner's LIC: the value, the interval that speaks for it (low = high if printed), and the
    verdict of a measured one."""

    value: float
    low: float
    high: float
    verdict: str = ""


Spans = dict[str, Span]


@dataclass(frozen=True)
class Check:
    """One condition of a claim: about whom, whether it holds (None: cannot be told), and the row as text."""

    model: str
    holds: bool | None
    text: str


@dataclass(frozen=True)
class Claim:
    """statement: as the papers put it. rule: what is checked, in words. tables: (paper, table) whose rows decide.

    checks: from one encoder's LIC, that of the first encoder beside it, and the captioners, to checks.
    beside: whether each encoder is compared with the first one, which then has no verdict of its own.
    more: a clause to add to what printed rows say.
    """

    title: str
    statement: str
    rule: str
    tables: tuple[tuple[str, str], ...]
    checks: Callable[[Spans, Spans, list[str]], list[Check]]
    beside: bool = False
    more: Callable[[Spans, Spans, list[str]], str] | None = None


@dataclass(frozen=True)
class Verdict:
    """What one table's rows of one encoder say about a claim, and what measured rows of that encoder say.

    printed, measured: agree, disagree or not decided (a captioner lacks a row, or its interval holds 0). The reasons
    name the rows that decide. missing: encoders that nothing was measured with.
    """

    paper: str
    table: str
    attribute: str
    encoder: str
    printed: str
    printed_reason: str
    measured: str
    measured_reason: str
    missing: tuple[str, ...] = ()


def _above_zero(span: Span | None) -> bool | None:
    if span is None:
        return None
    if span.verdict:
        return {AMPLIFIES: True, REDUCES: False}.get(span.verdict)
    return True if span.low > 0 else False if span.high <= 0 else None


def _greater(first: Span | None, second: Span | None) -> bool | None:
    if first is None or second is None:
        return None
    return True if first.low > second.high else False if first.high <= second.low else None


def _said(model: str, spans: Spans) -> str:
    span = spans.get(model)
    if span is None:
        return f"{model} not measured"
    ends = (None, None) if span.low == span.high else (span.low, span.high)
    verdict = f" amplification {span.verdict}" if span.verdict == INCONCLUSIVE else ""
    return f"{model} {with_interval(span.value, *ends)}{verdict}"


# The checks of claims. base: what the first encoder says.


def all_above_zero(spans: Spans, base: Spans, models: list[str]) -> list[Check]:
    """LIC above 0 for every captioner."""
    return [Check(model, _above_zero(spans.get(model)), _said(model, spans)) for model in models]


def only_named_above_zero(spans: Spans, base: Spans, models: list[str]) -> list[Check]:
    """LIC above 0 for UpDn, Transformer and OSCAR, and for no other captioner."""
    sides = {model: _above_zero(spans.get(model)) for model in models}
    return [
        Check(model, None if side is None else side == (model in AGE_NAMED), _said(model, spans))
        for model, side in sides.items()
    ]


def equalizer_above_baseline(spans: Spans, base: Spans, models: list[str]) -> list[Check]:
    """LIC of NIC+Equalizer above that of NIC+."""
    pair = ("nic_equalizer", "nic_plus")
    text = ", ".join(_said(model, spans) for model in pair)
    return [Check("nic_equalizer", _greater(*map(spans.get, pair)), text)]


def ends_of_the_order(spans: Spans, base: Spans, models: list[str]) -> list[Check]:
    """NIC lowest and NIC+Equalizer highest of all captioners."""
    low, high = "nic", "nic_equalizer"
    ends = Check(low, _greater(spans.get(high), spans.get(low)), f"{_said(low, spans)} and {_said(high, spans)}")
    checks = [ends]
    for model in models:
        sides = _greater(spans.get(model), spans.get(low)), _greater(spans.get(high), spans.get(model))
        holds = False if False in sides else None if None in sides else True
        if model not in (low, high):
            checks.append(Check(model, holds, _said(model, spans) + ("" if holds else f" beside {ends.text}")))
    return checks


def same_sign(spans: Spans, base: Spans, models: list[str]) -> list[Check]:
    """LIC on the same side of 0 as with the first encoder."""
    checks = []
    for model in models:
        sides = _above_zero(spans.get(model)), _above_zero(base.get(model))
        text = f"{_said(model, spans)} beside {_said(model, base).removeprefix(f'{model} ')}"
        checks.append(Check(model, None if None in sides else sides[0] == sides[1], text))
    return checks


def named_above_zero(spans: Spans, base: Spans, models: list[str]) -> str:
    """The captioners above 0, as a clause."""
    return f"above 0: {', '.join(_said(model, spans) for model in models if _above_zero(spans.get(model))) or 'none'}"


def judges_agreement(first: Spans, second: Spans, models: list[str]) -> str:
    """Conflict score and ranking consistency of two encoders, as a clause."""
    shared = [model for model in models if model in first and model in second]
    a, b = (np.array([spans[model].value for model in shared]) for spans in (first, second))
    return f"conflict score {conflict_score(a, b):.1f}%, ranking consistency {pearson(a, b):.2f}"


CLAIMS = (
    Claim(
        "All amplify gender bias",
        "All the models amplify gender bias.",
        "LIC above 0 for every captioner, with this encoder",
        (("lic", "2"), ("repro", "2")),
        all_above_zero,
    ),
    Claim(
        "All amplify racial bias",
        "All the models amplify racial bias.",
        "LIC above 0 for every captioner, with this encoder",
        (("lic", "S1"), ("repro", "3")),
        all_above_zero,
    ),
    Claim(
        "Robust to encoders: the order",
        "LIC is robust against encoders.",
        "NIC lowest and NIC+Equalizer highest of all captioners, with this encoder",
        (("lic", "2"), ("repro", "2")),
        ends_of_the_order,
    ),
    Claim(
        "Robust to encoders: the sign",
        "LIC is robust against encoders.",
        "every captioner on the same side of 0 as with lstm_bi",
        (("lic", "2"), ("lic", "S1"), ("repro", "2"), ("repro", "3"), ("repro", "4")),
        same_sign,
        beside=True,
        more=judges_agreement,
    ),
    Claim(
        "NIC+Equalizer above NIC+",
        "NIC+Equalizer increases gender bias with respect to the baseline.",
        "LIC of NIC+Equalizer above that of NIC+, with this encoder",
        (("lic", "2"), ("repro", "2")),
        equalizer_above_baseline,
    ),
    Claim(
        "Who amplifies age bias",
        "Only UpDn, Transformer and Oscar appear to amplify age bias.",
        "LIC above 0 for these three and for no other captioner, with this encoder",
        (("repro", "4"),),
        only_named_above_zero,
        more=named_above_zero,
    ),
)


def verdicts(claim: Claim, printed: pd.DataFrame, measured: pd.DataFrame) -> list[Verdict]:
    """A verdict for each table and encoder of a claim. printed: the papers' rows; measured: those of a collection."""
    results = []
    for paper, table in claim.tables:
        rows = printed[(printed["paper"] == paper) & (printed["table"] == table) & (printed["metric"] == METRIC)]
        models, encoders = list(dict.fromkeys(rows["model"])), list(dict.fromkeys(rows["encoder"]))
        ours = _under_printed_names(measured, rows)
        for encoder in encoders[1:] if claim.beside else encoders:
            judges = [encoders[0], encoder] if claim.beside else [encoder]
            spans, base = (_spans(rows[rows["encoder"] == name], models) for name in (encoder, encoders[0]))
            verdict, reason = _decided(claim.checks(spans, base, models))
            if claim.more:
                reason += f"; {claim.more(spans, base, models)}"
            missing = tuple(name for name in judges if name not in set(ours["encoder"]))
            if missing:
                answer = OPEN, f"no {listed(missing, 'or')} run yet"
            else:
                spans, base = (_spans(ours[ours["encoder"] == name], models) for name in (encoder, judges[0]))
                decided, why = _decided(claim.checks(spans, base, models))
                part = (ours.loc[ours["encoder"].isin(judges), "coverage"] == WITH_REFERENCES).any()
                answer = decided, f"{why} (images with references)" if part else why
            attribute = rows["attribute"].iloc[0]
            results.append(Verdict(paper, table, attribute, encoder, verdict, reason, *answer, missing))
    return results


def _under_printed_names(measured: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Measured LIC of the printed rows' attribute and captioners, under the printed names.

    Only with refits: an interval that keeps single trained attackers carries no claim. Where LIC was measured on all
    images, that on a part of them is left out.
    """
    names = {name_key(model): model for model in rows["model"]}
    own = measured[(measured["metric"] == METRIC) & measured["attribute"].isin(rows["attribute"].unique())]
    own = own[own["alignment"].isin(["", CONSTANT]) & (own["condition"] == "") & (own["interval"] == REFITS)]
    own = own.assign(model=[names.get(name_key(model), "") for model in own["model"]])
    own = own[own["model"] != ""].sort_values("coverage", kind="stable")
    return own.drop_duplicates(["model", "encoder"])


def _spans(rows: pd.DataFrame, models: list[str]) -> Spans:
    """By captioner, in the order of models. Rows with paper `measured` speak by their interval, others as printed."""
    found = {}
    for row in rows.to_dict("records"):
        ends = (row["ci_low"], row["ci_high"]) if row["paper"] == "measured" else (row["value"], row["value"])
        value, low, high = (100 * number / row["scale"] for number in (row["value"], *ends))
        found[row["model"]] = Span(value, low, high, row.get("verdict") or "")
    return {model: found[model] for model in models if model in found}


def _decided(checks: list[Check]) -> tuple[str, str]:
    """agree, disagree or not decided, and the rows that decide."""
    failing = [check.text for check in checks if check.holds is False]
    open_ones = [check.text for check in checks if check.holds is None]
    if failing:
        return DISAGREE, f"{len(failing)} of {len(checks)} against: {', '.join(failing)}"
    if open_ones:
        return OPEN, f"{len(checks) - len(open_ones)} of {len(checks)} hold; open: {', '.join(open_ones)}"
    texts = [check.text for check in checks]
    return AGREE, texts[0] if len(texts) == 1 else f"all {len(texts)} hold: {', '.join(texts)}"


def summary(results: list[Verdict]) -> str:
    """One careful sentence about the verdicts of a claim: printed rows first, measured ones after."""
    against = [verdict for verdict in results if verdict.printed == DISAGREE]
    agreeing = sum(verdict.printed == AGREE for verdict in results)
    if len(results) in (agreeing, len(against)):
        support = "support" if agreeing == len(results) else "contradict"
        printed = f"Published values {support} it in all tables and with all encoders."
    else:
        where: dict[str, list[str]] = {}
        for verdict in against:
            where.setdefault(verdict.encoder, []).append(f"{SHORT[verdict.paper]} table {verdict.table}")
        cases = ", and with ".join(f"{encoder} ({', '.join(tables)})" for encoder, tables in where.items())
        printed = f"Published values support it in {agreeing} of {len(results)} cases"
        printed += f", but contradict it with {cases}." if cases else "."
    decided = {
        (verdict.encoder, verdict.attribute, verdict.measured) for verdict in results if verdict.measured != OPEN
    }
    texts = [f"{encoder} ({attribute}) {verdict}s" for encoder, attribute, verdict in sorted(decided)]
    if not decided:
        begun = {f"{verdict.encoder} ({verdict.measured_reason})": None for verdict in results if not verdict.missing}
        missing = list(dict.fromkeys(name for verdict in results for name in verdict.missing))
        lacking = [f"no {listed(missing, 'or')} run yet"] if missing else []
        texts = [f"not decided, {'; '.join([*begun, *lacking])}"]
    return f"{printed} Measured: {'; '.join(texts)}."


MARKS = {AGREE: BLUE_MARK, DISAGREE: ORANGE_MARK}

STYLE = f"""<style>
.cb-claim {{border-left: 4px solid {GREY}; padding: .1rem .9rem; margin: .5rem 0; max-width: 110ch}}
.cb-claim summary {{cursor: pointer; font-size: .88rem; opacity: .8}}
.cb-claim table {{border-collapse: collapse; font-size: .85rem; margin: .3rem 0; font-variant-numeric: tabular-nums}}
.cb-claim th, .cb-claim td {{text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0;
  border-top: 1px solid rgba(138,148,163,.4)}}
.cb-claim p {{margin: .15rem 0}}
</style>"""


def claim_block(claim: Claim, results: list[Verdict]) -> str:
    """HTML: a claim, one sentence of verdicts, and the deciding rows, folded."""
    verdicts = {item.printed for item in results}
    colour = MARKS.get(verdicts.pop(), GREY) if len(verdicts) == 1 else GREY
    lines = [("paper, table", "encoder", "published values", "measured values")]
    for item in results:
        printed, measured = f"{item.printed}: {item.printed_reason}", f"{item.measured}: {item.measured_reason}"
        lines.append((f"{SHORT[item.paper]} {item.table} ({item.attribute})", item.encoder, printed, measured))
    head, *rows = (
        "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in line)
        for tag, line in zip(("th", *["td"] * len(results)), lines, strict=True)
    )
    return (
        f'<div class="cb-claim" style="border-color:{colour}"><p><b>{escape(claim.title)}</b>: '
        f"“{escape(claim.statement)}”</p><p>{escape(summary(results))}</p>"
        f"<details><summary>Rows that decide it: {escape(claim.rule)}</summary>"
        f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table></details></div>"
    )
