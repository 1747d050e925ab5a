"""The claims of the papers, each decided by printed rows and by measured ones.

A claim is a list of checks that hold, fail or stay open. A printed value counts as printed. A measured value counts as
its 95% interval with refits: a check holds or fails only if the whole interval does, and one of amplification only if
the verdict does, since simple wording alone can put LIC above 0. All checks hold: agree. One fails: disagree. Else: not
decided. DBAC has a sign only if its difference from a constant attacker has the same sign.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape

import numpy as np
import pandas as pd

from capbias_core.aggregate import REFITS
from capbias_core.aggregate.comparison import conflict_score, name_key, pearson
from capbias_core.aggregate.estimate import AMPLIFIES, INCONCLUSIVE, REDUCES
from capbias_core.measures.dbac import ADDED
from capbias_core.types import A_TO_T, T_TO_A
from capbias_core.views.charts import BLUE_MARK, GREY, ORANGE_MARK
from capbias_core.views.published import as_measured
from capbias_core.views.sentence import listed, with_interval
from capbias_core.workspace.conditions import ORIGINAL
from capbias_core.workspace.spec import WITH_REFERENCES
from capbias_core.workspace.vectors import CONSTANT

SHORT = {
    "lic": "LIC",
    "repro": "reproduction",
    "dbac": "DBAC",
    "imgcap2": "ImageCaptioner²",
    "genderscore": "Gender Score",
}
AGREE, DISAGREE, OPEN = "agree", "disagree", "not decided"
AGE_NAMED = frozenset({"updn", "transformer", "oscar"})
# The eight captioners above 0 in DBAC's Table 9, T→A.
T_TO_A_NAMED = frozenset({"blip", "fc", "oscar", "sat", "nic", "nic_equalizer", "transformer", "updn"})
GLOVE = "contextual_glove"


@dataclass(frozen=True)
class Span:
    """A number of a captioner."""

    value: float
    low: float  # the interval that decides; of a printed number the number itself
    high: float
    verdict: str = ""  # of a measured number
    digits: int = 1  # decimals that are shown


Spans = dict[str, Span]


@dataclass(frozen=True)
class Check:
    """One condition of a claim."""

    model: str
    holds: bool | None  # None: cannot be decided
    text: str  # the row


# From one encoder's numbers, those of the first encoder, and the captioners. A number is named by its captioner and the
# columns in `Claim.by`, joined by spaces.
Checks = Callable[[Spans, Spans, list[str]], list[Check]]


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, and what decides it."""

    title: str
    statement: str  # in the paper's words
    rule: str  # what is checked, in words
    tables: tuple[tuple[str, str], ...]  # (paper, table) of the rows that decide
    checks: Checks
    beside: bool = False  # each encoder is compared with the first one, which then has no verdict
    more: Callable[[Spans, Spans, list[str]], str] | None = None  # a clause to add to what printed rows say
    # The rows that count, by columns as `as_measured` names them.
    only: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"metric": ("LIC",)})
    by: tuple[str, ...] = ()  # columns that name a number, after the captioner
    together: bool = False  # rows of all encoders are read at once
    digits: int | None = None  # None for numbers x100 with one decimal
    closed: str = ""  # why measured values cannot decide it


@dataclass(frozen=True)
class Verdict:
    """What one table's rows of one encoder say about a claim, and what measured rows of that encoder say."""

    paper: str
    table: str
    attribute: str
    encoder: str
    printed: str  # agree, disagree or not decided: a captioner lacks a row, or its interval contains 0
    printed_reason: str  # the rows that decide
    measured: str
    measured_reason: str
    missing: tuple[str, ...] = ()  # encoders without measured values
    closed: str = ""  # why none can decide


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


def _above(first: Span | None, second: Span | None) -> bool | None:
    """As `_greater`, but equal values, which are rounded, cannot tell."""
    if first is not None and second is not None and first.value == second.value:
        return None
    return _greater(first, second)


def _said(model: str, spans: Spans) -> str:
    span = spans.get(model)
    if span is None:
        return f"{model.replace('->', '→')} not measured"
    ends = (None, None) if span.low == span.high else (span.low, span.high)
    verdict = f" amplification {span.verdict}" if span.verdict == INCONCLUSIVE else ""
    return f"{model.replace('->', '→')} {with_interval(span.value, *ends, decimals=span.digits)}{verdict}"


# The checks of claims. base: what the first encoder says.


def above_zero(named: frozenset[str] | None = None) -> Checks:
    """Above 0 for these captioners (None: for all), and for no other."""

    def checks(spans: Spans, base: Spans, models: list[str]) -> list[Check]:
        sides = {model: _above_zero(spans.get(model)) for model in models}
        return [
            Check(model, None if side is None else side == (named is None or model in named), _said(model, spans))
            for model, side in sides.items()
        ]

    return checks


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


def _pairs(spans: Spans, pairs: Iterable[tuple[str, str]]) -> list[Check]:
    """A check of each pair of names: the first above the second."""
    return [
        Check(high, _above(spans.get(high), spans.get(low)), f"{_said(high, spans)}, {_said(low, spans)}")
        for high, low in pairs
    ]


def higher(*pairs: tuple[str, str]) -> Checks:
    """The first number of each pair above the second, for every captioner; each is named by the columns of `by`."""
    return lambda spans, base, models: _pairs(
        spans, ((f"{model} {high}", f"{model} {low}") for model in models for high, low in pairs)
    )


def equalizer_by_direction(spans: Spans, base: Spans, models: list[str]) -> list[Check]:
    """NIC+Equalizer below NIC by T→A, and above it by A→T."""
    nic, equalizer = "nic", "nic_equalizer"
    return _pairs(spans, ((f"{nic} {T_TO_A}", f"{equalizer} {T_TO_A}"), (f"{equalizer} {A_TO_T}", f"{nic} {A_TO_T}")))


# Each of DBAC's four conditions above the one before it.
rises_with_masking = higher(("part", ORIGINAL), ("segment", "part"), ("box", "segment"))


def no_other_rises(spans: Spans, base: Spans, models: list[str]) -> list[Check]:
    """LIC, DPA and BA→ do not rise at each step of masking."""
    checks = []
    for metric in ("LIC", "DPA", "DBA_G"):
        named = {name.replace(f"{metric} ", ""): span for name, span in spans.items() if f" {metric} " in name}
        steps = rises_with_masking(named, base, models)
        rises = None if any(step.holds is None for step in steps) else all(step.holds for step in steps)
        values = ", ".join(with_interval(span.value, None, None, 2) for span in named.values())
        checks.append(Check(metric, None if rises is None else not rises, f"{metric} {values}"))
    return checks


def judges_agree_more(spans: Spans, base: Spans, models: list[str]) -> list[Check]:
    """Conflict score lower and ranking consistency higher between the judges of ImageCaptioner² than between LIC's."""
    if missing := [
        f"{model} {name}" for model in models for name in (*LIC_JUDGES, *JUDGES) if f"{model} {name}" not in spans
    ]:
        return [Check(missing[0], None, f"{missing[0]} not measured")]
    lic, judged = ([np.array([spans[f"{model} {name}"].value for model in models]) for name in names]
                   for names in (LIC_JUDGES, JUDGES))  # fmt: skip
    conflicts, orders = (conflict_score(*judged), conflict_score(*lic)), (pearson(*judged), pearson(*lic))
    return [
        Check("conflict", conflicts[0] < conflicts[1], "conflict score {:.1f}% beside {:.1f}%".format(*conflicts)),
        Check("order", orders[0] > orders[1], "ranking consistency {:.3f} beside {:.3f}".format(*orders)),
    ]


def nearer_to_people(spans: Spans, base: Spans, models: list[str]) -> list[Check]:
    """Pearson with people's guesses higher for ImageCaptioner² than for LIC."""
    people, judged, lic = (
        np.array([spans[f"{model} {name}"].value for model in models])
        for name in ("human_guess", "imagecaptioner2", "LIC")
    )
    r = pearson(judged, people), pearson(lic, people)
    return [Check("people", r[0] > r[1], "Pearson with people {:.2f} beside {:.2f}".format(*r))]


def all_toward_men(spans: Spans, base: Spans, models: list[str]) -> list[Check]:
    """The ratio to men above .5 for every set of captions."""
    sides = {model: _above(spans.get(model), Span(0.5, 0.5, 0.5)) for model in models}
    return [Check(model, side, _said(model, spans)) for model, side in sides.items()]


def score_nearer_half(spans: Spans, base: Spans, models: list[str]) -> list[Check]:
    """The ratio to men of the Gender Score nearer to .5 than that of the cosine, for every captioner."""
    checks = []
    for model in models:
        score, cosine = (spans.get(f"{model} {name}_ratio") for name in ("gender_score", "gender_object_distance"))
        holds = None if score is None or cosine is None else abs(score.value - 0.5) < abs(cosine.value - 0.5)
        texts = (_said(f"{model} {name}_ratio", spans) for name in ("gender_score", "gender_object_distance"))
        checks.append(Check(model, holds, ", ".join(texts)))
    return checks


def counted_and_weighted(spans: Spans, base: Spans, models: list[str]) -> list[Check]:
    """Pearson between the ratio to men by counting and by the Gender Score, which no number of the paper judges."""
    counted = {name: span.value for name, span in spans.items() if "object_gender_cooccurrence" in name}
    weighted = [spans[name.replace("object_gender_cooccurrence", "weighted_cooccurrence")].value for name in counted]
    r = pearson(np.array([*counted.values()]), np.array(weighted))
    text = f"Pearson {r:.2f} over {len(counted)} pairs of captioner and object; the paper does not say when it is close"
    return [Check("order", None, text)]


def named_above_zero(spans: Spans, base: Spans, models: list[str]) -> str:
    """The captioners above 0, as a clause."""
    return f"above 0: {', '.join(_said(model, spans) for model in models if _above_zero(spans.get(model))) or 'none'}"


def judges_agreement(first: Spans, second: Spans, models: list[str]) -> str:
    """Conflict score and ranking consistency of two encoders, as a clause."""
    shared = [model for model in models if model in first and model in second]
    a, b = (np.array([spans[model].value for model in shared]) for spans in (first, second))
    return f"conflict score {conflict_score(a, b):.1f}%, ranking consistency {pearson(a, b):.2f}"


# Why measured values cannot decide.
OTHER_JUDGES = "the paper does not print the sizes of its judges, so judges trained here are others"
OTHER_CAPTIONS = "the paper's captions and the objects that it found on the images are not available here"
LIC_JUDGES, JUDGES = ("lstm_bi", "bert_ft"), ("sat", "grit")

CLAIMS = (
    Claim(
        "All amplify gender bias",
        "All the models amplify gender bias.",
        "LIC above 0 for every captioner, with this encoder",
        (("lic", "2"), ("repro", "2")),
        above_zero(),
    ),
    Claim(
        "All amplify racial bias",
        "All the models amplify racial bias.",
        "LIC above 0 for every captioner, with this encoder",
        (("lic", "S1"), ("repro", "3")),
        above_zero(),
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
        above_zero(AGE_NAMED),
        more=named_above_zero,
    ),
    Claim(
        "All reduce A→T",
        "All 13 models reduced A → T biases.",
        "DBAC A→T below 0 for every captioner, with this encoder, and below that of a constant attacker if measured",
        (("dbac", "9"),),
        above_zero(frozenset()),
        only={"metric": ("DBAC",), "direction": (A_TO_T,)},
    ),
    Claim(
        "Eight of 13 increase T→A",
        "8 of them increased T → A biases.",
        "DBAC T→A above 0 for the eight captioners of Table 9 and for no other, with this encoder",
        (("dbac", "9"), ("dbac", "10"), ("dbac", "12a")),
        above_zero(T_TO_A_NAMED),
        only={"metric": ("DBAC",), "direction": (T_TO_A,)},
        more=named_above_zero,
    ),
    Claim(
        "Equalizer by direction",
        "The T → A bias amplification in NIC+Equalizer is lower than NIC. However, the A → T bias amplification is "
        "higher.",
        "DBAC T→A of NIC+Equalizer below that of NIC, and A→T above, with this encoder",
        (("dbac", "9"),),
        equalizer_by_direction,
        only={"metric": ("DBAC",)},
        by=("direction",),
    ),
    Claim(
        "Contextual above constant",
        "For all captioning models, contextual substitution achieved a higher METEOR score than constant substitution. "
        "Both DBAC and LIC consistently reported higher bias in the HGCs with contextual substitution.",
        "by GloVe above constant for every captioner",
        tuple(("dbac", table) for table in ("7", "8a", "8b", "16", "17a", "17b")),
        higher((GLOVE, CONSTANT)),
        only={"metric": ("METEOR_aligned", "DBAC_H", "LIC_D")},
        by=("alignment",),
        digits=3,
    ),
    Claim(
        "DBAC rises with masking",
        "As masking increases, BLIP relies more on background objects to predict the attribute, leading to a steady "
        "rise in T → A for both gender and race.",
        "DBAC T→A of BLIP higher from each condition to the next: nothing masked, a part, the outline, the box",
        (("dbac", "4"),),
        rises_with_masking,
        only={"metric": ("DBAC",)},
        by=("masked",),
    ),
    Claim(
        "Only DBAC rises with masking",
        "This increase in T → A is captured only by DBAC.",
        "LIC, DPA and BA→ (DBA_G) of BLIP not higher from each condition to the next",
        (("dbac", "4"),),
        no_other_rises,
        only={"metric": ("LIC", "DPA", "DBA_G")},
        by=("metric", "masked"),
        together=True,
        closed="the paper does not say which tasks its BA→ and DPA are of",
    ),
    Claim(
        "DBAC varies less than LIC",
        "For gender and race, DBAC was much more consistent than LIC across sentence encoders.",
        "the CV of LIC above that of DBAC for every captioner",
        tuple(("dbac", table) for table in ("5a", "5b", "6a", "6b")),
        higher(("CV_LIC", "CV_DBAC")),
        only={"metric": ("CV_LIC", "CV_DBAC")},
        by=("metric",),
        digits=2,
        closed="CVs of measured encoders, with intervals, are in the tab Encoder sensitivity of Scores",
    ),
    Claim(
        "All amplify by ImageCaptioner²",
        "Based on our metric, all captioning models amplify the bias.",
        "ImageCaptioner² above 0 for every captioner, with this judge",
        (("imgcap2", "4"),),
        above_zero(),
        only={"metric": ("imagecaptioner2",)},
        closed=OTHER_JUDGES,
    ),
    Claim(
        "Judges agree more than encoders",
        "Based on the consistency measures, our method is more consistent than LIC.",
        "conflict score lower and ranking consistency higher than between LIC's two encoders",
        (("imgcap2", "4"),),
        judges_agree_more,
        only={"metric": ("LIC", "imagecaptioner2")},
        by=("encoder",),
        together=True,
        closed=OTHER_JUDGES,
    ),
    Claim(
        "Nearer to people than LIC",
        "Our metric shows significant superiority over the recent bias metric; LIC, in terms of human alignment.",
        "Pearson with people's guesses higher than that of LIC; whether significantly is not printed",
        (("imgcap2", "5"),),
        nearer_to_people,
        only={"metric": ("LIC", "imagecaptioner2", "human_guess")},
        by=("metric",),
        together=True,
        closed="AnonymousBench's photographs and people's guesses are not available here",
    ),
    Claim(
        "Slight bias toward men",
        "The results show there is a slight bias toward men.",
        "the ratio to men above .5 for both sets of human captions, with this model",
        (("genderscore", "2"),),
        all_toward_men,
        only={"direction": ("Male",), "metric": ("word_object_distance_ratio", "gender_object_distance_ratio")},
        digits=2,
        closed=OTHER_CAPTIONS,
    ),
    Claim(
        "Gender Score is balanced",
        "Our score balances the bias better than direct Cosine Distance.",
        "the ratio to men of the Gender Score nearer to .5 than that of the cosine, for every captioner",
        (("genderscore", "3"),),
        score_nearer_half,
        only={"direction": ("Male",), "metric": ("gender_score_ratio", "gender_object_distance_ratio")},
        by=("metric",),
        digits=2,
        closed=OTHER_CAPTIONS,
    ),
    Claim(
        "Gender Score aligns with counts",
        "Our score (bias ratio) aligns closely with the existing Object Gender Co-Occ approach.",
        "Pearson between the two ratios to men over captioners and objects, for which the paper has no threshold",
        (("genderscore", "4"),),
        counted_and_weighted,
        only={"direction": ("Male",), "metric": ("weighted_cooccurrence", "object_gender_cooccurrence")},
        by=("metric", "object"),
        digits=2,
        closed=OTHER_CAPTIONS,
    ),
    Claim(
        "Estimation favours men more",
        "The fill-in gender score has a more bias towards men results than object-gender pair counting.",
        "the ratio to men by Gender Score estimation above that by counting, for every captioner",
        (("genderscore", "5"),),
        higher(("estimation_ratio", "object_gender_cooccurrence")),
        only={"direction": ("Male",), "metric": ("estimation_ratio", "object_gender_cooccurrence")},
        by=("metric",),
        digits=2,
        closed=OTHER_CAPTIONS,
    ),
)


def verdicts(claim: Claim, printed: pd.DataFrame, measured: pd.DataFrame) -> list[Verdict]:
    """A verdict for each table, attribute and encoder of a claim. printed: the papers' rows; measured: those of a
    collection, as `measured_rows` gives them."""
    return [
        verdict
        for paper, table in claim.tables
        for _, rows in _rows_of(claim, printed, paper, table).groupby("attribute", sort=False)
        for verdict in _verdicts(claim, rows, measured)
    ]


def _rows_of(claim: Claim, printed: pd.DataFrame, paper: str, table: str) -> pd.DataFrame:
    """The printed rows that count, under the names of measured ones."""
    rows = printed[(printed["paper"] == paper) & (printed["table"] == table) & (printed["model"] != "average")]
    named = pd.DataFrame([as_measured(row) for row in rows.to_dict("records")])
    return named[np.logical_and.reduce([named[name].isin(values) for name, values in claim.only.items()])]


def _verdicts(claim: Claim, rows: pd.DataFrame, measured: pd.DataFrame) -> Iterator[Verdict]:
    """rows: printed ones of one table and attribute."""
    models, encoders = list(dict.fromkeys(rows["model"])), list(dict.fromkeys(rows["encoder"]))
    matching = _under_printed_names(claim, measured, rows)
    first, known = rows.iloc[0], set(matching["encoder"])
    for encoder in encoders[:1] if claim.together else encoders[1:] if claim.beside else encoders:
        judges = encoders if claim.together else [encoders[0], encoder] if claim.beside else [encoder]

        def spans_by(frame: pd.DataFrame, names: list[str]) -> Spans:
            return _spans(claim, frame[frame["encoder"].isin(names)])

        here = judges if claim.together else [encoder]
        spans, base = spans_by(rows, here), spans_by(rows, encoders[:1])
        verdict, reason = _decided(claim.checks(spans, base, models))
        if claim.more:
            reason += f"; {claim.more(spans, base, models)}"
        missing = tuple(name or listed(rows["metric"].unique(), "or") for name in judges if name not in known)
        if claim.closed:
            answer, missing = (OPEN, claim.closed), ()
        elif missing:
            answer = OPEN, f"no {listed(missing, 'or')} run yet"
        else:
            decided, why = _decided(claim.checks(spans_by(matching, here), spans_by(matching, judges[:1]), models))
            part = (matching.loc[matching["encoder"].isin(judges), "coverage"] == WITH_REFERENCES).any()
            answer = decided, f"{why} (images with references)" if part else why
        about = first["paper"], first["table"], first["attribute"], encoder
        if claim.together:
            about = *about[:3], listed(judges) if "encoder" in claim.by else ""
        yield Verdict(*about, verdict, reason, *answer, missing, claim.closed)


def _under_printed_names(claim: Claim, measured: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Measured rows of the printed rows' attribute, metrics, directions, alignments and captioners, under the printed
    names.

    Only with refits if an attacker was trained: an interval that keeps single trained attackers carries no claim. Where
    a metric was measured on all images, that on a part of them is left out.
    """
    names = {name_key(model): model for model in rows["model"]}
    of_sets = "masked" not in claim.by
    matching = measured
    for column in ("attribute", "metric", "direction"):
        matching = matching[matching[column].isin(rows[column].unique())]
    aligned = {row["alignment"] or row["aligned"] or CONSTANT for row in rows.to_dict("records")}
    alignment = matching["alignment"].replace("", CONSTANT)
    matching = matching.assign(alignment=alignment)[alignment.isin(aligned)]
    matching = matching[
        (matching["condition"] == "") & ((matching["interval"] == REFITS) | (matching["encoder"] == ""))
    ]
    if of_sets and "masked" in matching:
        matching = matching[matching["masked"] == ORIGINAL]
    whose = matching["captioner" if not of_sets and "captioner" in matching else "model"]
    matching = matching.assign(model=[names.get(name_key(model), "") for model in whose])
    matching = matching[matching["model"] != ""].sort_values("coverage", kind="stable")
    matching = matching.drop_duplicates([*dict.fromkeys(("model", "encoder", "metric", "direction", *claim.by))])
    if (matching["metric"] == "DBAC").any():
        matching = matching.assign(verdict=_beyond_constant(matching, measured))
    return matching


def _beyond_constant(matching: pd.DataFrame, measured: pd.DataFrame) -> list[str]:
    """The verdict of each row of DBAC: a sign only where what it adds to a constant attacker has the same."""
    added = measured[measured["metric"] == ADDED]
    rows = {(row["run_id"], row["direction"]): row for row in added.to_dict("records")}
    verdicts = []
    for row in matching.to_dict("records"):
        more = rows.get((row["run_id"], row["direction"]))
        both = [row, more] if more else []
        above, below = (all(score["ci_low"] > 0 for score in both), all(score["ci_high"] < 0 for score in both))
        verdicts.append(INCONCLUSIVE if not both or above == below else AMPLIFIES if above else REDUCES)
    return verdicts


def _spans(claim: Claim, rows: pd.DataFrame) -> Spans:
    """By captioner and the claim's columns. Rows with paper `measured` speak by their interval, others as printed."""
    spans, times = {}, 100 if claim.digits is None else 1
    for row in rows.to_dict("records"):
        ends = (row["ci_low"], row["ci_high"]) if row["paper"] == "measured" else (row["value"], row["value"])
        value, low, high = (times * number / row["scale"] for number in (row["value"], *ends))
        name = " ".join([row["model"], *(row[column] for column in claim.by)])
        spans[name] = Span(value, low, high, row.get("verdict") or "", 1 if claim.digits is None else claim.digits)
    return spans


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
        by_encoder: dict[str, list[str]] = {}
        by_table: dict[str, list[str]] = {}
        for verdict in against:
            table = f"{SHORT[verdict.paper]} table {verdict.table}"
            by_encoder.setdefault(verdict.encoder, []).append(table)
            by_table.setdefault(table, []).append(verdict.encoder)
        if "" in by_encoder or len(by_table) < len(by_encoder):
            places = [f"{table} ({', '.join(names)})" if any(names) else table for table, names in by_table.items()]
            cases = f"in {', '.join(places)}" if places else ""
        else:
            cases = ", and ".join(f"with {encoder} ({', '.join(tables)})" for encoder, tables in by_encoder.items())
        printed = f"Published values support it in {agreeing} of {len(results)} cases"
        printed += f", but contradict it {cases}." if cases else "."
    decided = {
        (verdict.encoder, verdict.attribute, verdict.measured) for verdict in results if verdict.measured != OPEN
    }
    texts = [f"{encoder} ({attribute}) {verdict}s".strip() for encoder, attribute, verdict in sorted(decided)]
    if not decided:
        begun = {f"{verdict.encoder} ({verdict.measured_reason})": None for verdict in results if not verdict.missing}
        missing = list(dict.fromkeys(name for verdict in results for name in verdict.missing))
        lacking = [f"no {listed(missing, 'or')} run yet"] if missing else []
        texts = [f"not decided, {results[0].closed or '; '.join([*begun, *lacking])}"]
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
    papers = listed(list(dict.fromkeys(SHORT[paper] for paper, _ in claim.tables)))
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
        f'<div class="cb-claim" style="border-color:{colour}"><p><b>{escape(claim.title)}</b> ({escape(papers)}): '
        f"“{escape(claim.statement)}”</p><p>{escape(summary(results))}</p>"
        f"<details><summary>Rows that decide it: {escape(claim.rule)}</summary>"
        f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table></details></div>"
    )
