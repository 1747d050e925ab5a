"""Answer: the verdict on one captioner as a sentence, three cards, and the 2 x 2 behind the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from capbias_core.aggregate import provisional
from capbias_core.aggregate.estimate import AMPLIFIES, INCONCLUSIVE, REDUCES, interval_side, verdict
from capbias_core.aggregate.resampling import LEAST_SEEDS
from capbias_core.attackers import attacker_entry
from capbias_core.measures.registry import METRICS
from capbias_core.types import counted
from capbias_core.views.choose import ANSWERING, Choice
from capbias_core.views.markup import html
from capbias_core.views.palette import BLUE_MARK, COLOURS, ORANGE_MARK
from capbias_core.views.sentence import decimals, measure, number, say
from capbias_core.views.view import Field

DECIDES = {AMPLIFIES: "LIC_by_H", REDUCES: "LIC_by_M"}
ONE = Field("value", digits=1, low="low", high="high")
SIGNED = Field("value", digits=1, low="low", high="high", signed=True)
FEW_IMAGES = 300  # balanced images of which fewer tell little
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """The answer for one captioner. Plain text; whoever shows it escapes it.

    sentence: the verdict. because: why, for readers outside the field. warning: why little follows, if so. verdict: of
    LIC, '' without human captions. rows: what was measured of the captioner with the setting, by metric.
    """

    captioner: str
    attribute: str
    sentence: str
    because: str
    warning: str
    verdict: str
    rows: Mapping[str, Row]

    @property
    def main(self) -> Row:
        """The row of LIC, or of LIC_M without human captions; where neither was measured, the first."""
        return next(self.rows[name] for name in (*ANSWERING, *self.rows) if name in self.rows)

    @property
    def text(self) -> str:
        """All of it in one paragraph."""
        return " ".join(filter(None, (self.sentence, self.because, self.warning)))


def answer(choice: Choice, captioner: str = "") -> Answer:
    """The answer for a captioner (default: the one that is read) by the chosen setting."""
    captioner = captioner or choice.captioner
    rows = choice.rows[(choice.rows["captioner"] == captioner) & (choice.rows["setting"] == choice.setting)]
    rows = rows[(rows["group"] == "") & (rows["object"] == "")]
    by_metric = {row["metric"]: row for row in rows.drop_duplicates("metric").to_dict("records")}
    what = choice.attribute
    if not by_metric.keys() & set(ANSWERING):
        return Answer(captioner, what, _alone(captioner, by_metric), "", "", "", by_metric)
    main = by_metric.get("LIC") or by_metric["LIC_M"]
    attacker = attacker_entry(main["encoder"])
    correct = {
        name: round(100 * by_metric[name]["value"] / by_metric[name]["scale"])
        for name in ("SC", "SC_D")
        if name in by_metric and pd.notna(by_metric[name]["value"])
    }
    masked = "answer.masked" if choice.defined.masked_words else "answer.as_written"
    common = {"captioner": captioner, "attribute": what, "masked": say(masked, attribute=what)}
    if "LIC" not in by_metric:
        sentence = say("answer.leakage", value=ONE.text(main), chance=number(choice.defined.chance), **common)
        because = say("answer.alone", **common)
    else:
        reason = _reason(by_metric)
        sentence = say(f"answer.{main['verdict']}", reason=reason, **common)
        side = "better" if by_metric["LIC"]["value"] > 0 else "worse"
        because = say("answer.because", side=side, **common) if main["verdict"] != INCONCLUSIVE else ""
        if not because and len(correct) == 2:
            because = say("answer.guesses", own=correct["SC"], human=correct["SC_D"], **common)
    if attacker.preview:
        sentence = say("answer.preview", sentence=sentence.rstrip("."))
    return Answer(captioner, what, sentence, because, _warning(choice, main), main["verdict"] or "", by_metric)


def _alone(captioner: str, rows: Mapping[str, Row]) -> str:
    """The first number of a captioner that LIC did not measure, and what is beyond an attacker that reads nothing."""
    name, main = next(iter(rows.items()))
    value = replace(ONE, digits=decimals(name, main["scale"]))
    fields = {"metric": measure(name, main["direction"]), "captioner": captioner, "value": value.text(main)}
    if added := rows.get(f"{name}_added"):
        return say("answer.number_beyond", beyond=value.text(added), **fields)
    return say("answer.number", **fields)


def _reason(rows: Mapping[str, Row]) -> str:
    """Why LIC is inconclusive; '' if it is not."""
    lic = rows["LIC"]
    if lic["verdict"] in DECIDES:
        return ""
    if provisional(_result(lic)):
        return say("answer.few_seeds")
    ends = [(rows.get(f"LIC_by_H{end}"), rows.get(f"LIC_by_M{end}")) for end in ("", "_cut")]
    given, equal = (
        verdict(by_human["low"] if by_human else None, by_model["high"] if by_model else None)
        for by_human, by_model in ends
    )
    if "LIC_by_H_cut" in rows and given != equal:
        return say("answer.only_given" if equal == INCONCLUSIVE else "answer.only_equal")
    side = interval_side(lic["low"], lic["high"])
    return say("answer.more" if side > 0 else "answer.less" if side < 0 else "answer.no_difference")


def _result(row: Row) -> dict[str, Any]:
    return {**row, "ci_low": row["low"], "ci_high": row["high"]}


def _warning(choice: Choice, row: Row) -> str:
    """Why little follows, if so; of a captioner not trained on these human captions, what the verdict means."""
    images = row["training"] + row["n"]
    if provisional(_result(row)):
        return say("answer.warn_seeds", least=LEAST_SEEDS)
    if 0 < images < FEW_IMAGES:
        return say("answer.warn_images", images=counted(int(images), "image"))
    item = choice.workspace.item("captions", row["captioner"], choice.collection)
    if row["verdict"] in DECIDES and not item.details.get("trained_on_references"):
        return say(
            "answer.not_trained" if item.details.get("trained_on_references") is False else "answer.perhaps_trained"
        )
    return ""


# the cards, as HTML


def _parts_of(text: str) -> dict[str, str]:
    """A number and its interval, which stands smaller beside it."""
    number, _, interval = text.partition(" ")
    return {"number": number, "interval": interval}


def lic_card(choice: Choice, of: Answer) -> str:
    """The headline figure: LIC with its interval."""
    row = of.main
    below = METRICS[row["metric"]].explanation
    if row["metric"] in ANSWERING:
        kind = "lic_means" if row["metric"] == "LIC" else "leakage_means"
        below = say(f"answer.{kind}", chance=number(choice.defined.chance))
    images = counted(int(row["training"] + row["n"]), "image")
    return html("card", title=row["metric"], below=f"{below} {images}.", **_parts_of(ONE.text(row)))


def error_rows(choice: Choice) -> pd.DataFrame:
    """`error` of every captioner by label, and its gap, in the setting or one that fits it."""
    rows = choice.measured(("error", "error_gap"))
    return rows[(rows["metric"] == "error_gap") | (rows["group"] != "")]


def error_card(choice: Choice, of: Answer) -> str:
    """How often the captioner names the wrong value, by label, and whether the labels differ."""
    title, rows = say("answer.wrong", attribute=of.attribute), error_rows(choice)
    rows = rows[rows["captioner"] == of.captioner]
    groups, gaps = (rows[rows["metric"] == name].to_dict("records") for name in ("error", "error_gap"))
    if not groups:
        unnamed = "answer.names_nothing" if not choice.defined.names_values else "answer.no_error"
        return html("card", title=title, below=say(unnamed, attribute=of.attribute))
    colours = (ORANGE_MARK, BLUE_MARK) if len(groups) == 2 else COLOURS
    shares = [_parts_of(ONE.text(row))["number"] for row in groups]
    values = list(zip([row["group"] for row in groups], shares, colours, strict=False))
    below = [
        say("answer.gap" if interval_side(gap["low"], gap["high"]) else "answer.no_gap", gap=SIGNED.text(gap))
        for gap in gaps[:1]
    ]
    return html("card", title=title, values=values, below=" ".join(below))


def attacker_card(choice: Choice, of: Answer) -> str:
    """By which attacker, and whether it is a preview."""
    below = say("answer.by_preview" if attacker_entry(of.main["encoder"]).preview else "answer.by_paper")
    return html("card", title=say("answer.attacker"), number=choice.setting_name, name=True, below=below)


def cross(of: Answer) -> str:
    """The 2 x 2 of who trained and who is read, with the difference that decides at the end of its row, as HTML; ''
    without human captions."""
    rows = of.rows
    if "LIC_HM" not in rows:
        return ""
    decides = DECIDES.get(of.verdict, "LIC_by_H" if rows["LIC"]["value"] > 0 else "LIC_by_M")

    def line(trainer: str, metric: str, *read: str) -> dict[str, Any]:
        texts = [SIGNED.text(rows[metric])]
        if f"{metric}_cut" in rows:
            texts.append(say("answer.at_equal_length", value=SIGNED.text(rows[f"{metric}_cut"])))
        numbers = [number(rows[name]["value"]) for name in read]
        return {"trainer": trainer, "decides": metric == decides, "numbers": numbers, "difference": "; ".join(texts)}

    lines = [line("people", "LIC_by_H", "LIC_D", "LIC_HM"), line(of.captioner, "LIC_by_M", "LIC_MH", "LIC_M")]
    names = {"model": "LIC_M", "human": "LIC_D", "lic": "LIC"}
    total = say("answer.diagonal", **{key: number(rows[name]["value"]) for key, name in names.items()})
    return html("cross", captioner=of.captioner, lines=lines, total=total)
