"""The front page: what else is known of the captioner that an answer is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import urlencode

import pandas as pd

from capbias_core.aggregate.comparison import LEAST_ENCODERS, Sensitivity, learned
from capbias_core.types import A_TO_T, T_TO_A, Attribute
from capbias_core.views import sentence
from capbias_core.views.directions import CONSTANT, WAY, beside, directions, stated, ways_measured
from capbias_core.views.encoders import encoder_note
from capbias_core.views.results import Comparison, current_runs
from capbias_core.views.sentence import say
from capbias_core.workspace.store import Workspace

NOT_YET = say("answer.not_yet")


@dataclass(frozen=True)
class Line:
    """A question that a researcher asks next, what is known, and the page and tab that show it."""

    question: str
    said: str
    page: str
    tab: str


def guessing_row(workspace: Workspace, collection: str, comparison: Comparison, model: str) -> pd.Series:
    """The row of SC that tells whether the attackers behind a captioner's words guess better than chance: on all
    labelled images, as the words are, if that was measured; else the row of the comparison."""
    spec = comparison.runs[0].spec
    lic_runs = [
        run.run_id
        for run in current_runs(workspace, collection, "lic")
        if (run.spec.model, run.spec.attacker) == (model, comparison.attacker)
        and (run.spec.labels, run.spec.merge_masks) == (spec.labels, spec.merge_masks)
    ]
    rows = workspace.results([*lic_runs, *comparison.run_ids])
    rows = rows[(rows["metric"] == "SC") & (rows["model"] == model)]
    other = ~rows["run_id"].isin(lic_runs)
    return rows.assign(other=other).sort_values(["other", "coverage", "seeds"], ascending=[True, True, False]).iloc[0]


def overview(rows: pd.DataFrame, attribute: Attribute, attacker: str, own: Sensitivity | None) -> list[Line]:
    """The lines for one captioner. rows: what was measured of it for the attribute, in RESULT_COLUMNS, each thing once
    (`measured_rows`). attacker: of the answer above. own: what several attackers say, None where one was run."""
    name, model, lines = attribute.name, rows["model"].iloc[0] if len(rows) else "", []
    if attribute.names_values:  # else captions name no value, alone or beside an object
        named = []
        for metric in ("error", "unnamed"):
            of_metric = rows[rows["metric"] == metric]
            rates = [sentence.interval(row) for _, row in of_metric.iloc[:1].iterrows()]
            named += [say(f"answer.{metric}_rate", value=rate, attribute=name) for rate in rates]
        text = f"{'; '.join(named)}." if named else NOT_YET
        lines.append(Line(say("answer.ask_wrong", attribute=name), text, "Scores", "Table"))
    direction = _direction(rows, attribute, attacker)
    lines.append(Line(say("answer.ask_direction"), direction, "Scores", "Directions"))
    ran = list(dict.fromkeys(rows[rows["metric"] == "LIC_M"]["encoder"]))
    able = set(rows[learned(rows, {name: len(attribute.values)})]["encoder"])
    weak = [encoder for encoder in ran if encoder not in able]
    if own is not None and model in own.judged:
        note = encoder_note(own, model)
        note = f"{note[0].upper()}{note[1:]}"
        others = say("answer.encoders_agree", note=note, encoders=", ".join(own.encoders))
    elif len(ran) < LEAST_ENCODERS:
        others = say("answer.encoders_one", attacker=attacker)
    elif weak:
        others = say("answer.encoders_weak", encoders=", ".join(weak))
    else:
        others = say("answer.encoders_other")
    lines.append(Line(say("answer.ask_encoders"), others, "Scores", "Encoder sensitivity"))
    if attribute.names_values:
        objects = say("answer.objects", attribute=name)
        lines.append(Line(say("answer.ask_objects"), objects, "Captions", "Objects"))
    return lines


def _direction(rows: pd.DataFrame, attribute: Attribute, attacker: str) -> str:
    """DBAC both ways by the answer's attacker, else by what most seeds measured; with its own setting, since DBAC is
    mostly measured with other seeds than LIC."""
    both = directions(rows, "DBAC")
    both = by_attacker if len(by_attacker := both[both["encoder"] == attacker]) else both
    if both.empty:
        return NOT_YET
    row = both.set_index(list(WAY), drop=False).loc[[ways_measured(both)[0]]].iloc[0]
    shown = {
        way: sentence.with_interval(*(row[f"{way}{end}"] for end in ("", "_low", "_high"))) for way in (A_TO_T, T_TO_A)
    }
    constant = beside(rows, row["model"], attribute.name, row["encoder"], "DBAC")[CONSTANT["DBAC"][0]]
    alone = say("answer.direction_alone", value=sentence.number(constant["value"])) if constant else ""
    masked = "answer.direction_masked" if attribute.masked_words else "answer.direction_as_written"
    reasons = {way.replace("->", "→"): reason for way, (_, reason) in stated(row, rows, "DBAC").items() if reason}
    return say(
        "answer.direction",
        setting=sentence.setting(row),
        masked=say(masked, attribute=attribute.name),
        first=sentence.measure("DBAC", A_TO_T),
        first_value=shown[A_TO_T],
        alone=alone,
        second=sentence.measure("DBAC", T_TO_A),
        second_value=shown[T_TO_A],
        reasons="".join(say("answer.direction_none", direction=way, reason=why) for way, why in reasons.items()),
    )


# tables

STYLE = """<style>
.cb-table {border-collapse: collapse; margin: .2rem 0 .4rem; font-variant-numeric: tabular-nums}
.cb-table :is(th, td) {padding: .25rem 1.2rem .25rem 0; vertical-align: baseline; font-weight: normal;
  border: none; overflow-wrap: anywhere; text-align: left}
.cb-table thead th {font-size: .85rem; opacity: .75}
.cb-table td:has(a) {min-width: 13rem}
.cb-table a {color: inherit; text-decoration: underline; text-underline-offset: 3px;
  text-decoration-color: var(--cb-grey)}
</style>"""


def cross_table(rows: pd.DataFrame, model: str) -> pd.DataFrame:
    """The four scores of the attackers of LIC, each of which reads both sides, and the difference of each row, at equal
    length too if the lengths differ.

    rows: results of one captioner, attacker and coverage; an empty frame if they have no such scores.
    """
    scores = rows[rows["model"] == model].drop_duplicates("metric").set_index("metric")
    if "LIC_HM" not in scores.index:
        return pd.DataFrame()
    cells = []
    for trainer, human, captioner, difference in (
        ("human captions", "LIC_D", "LIC_HM", "LIC_by_H"),
        (model, "LIC_MH", "LIC_M", "LIC_by_M"),
    ):
        values = [sentence.number(scores.loc[metric, "value"]) for metric in (human, captioner)]
        cells.append([f"trained on {trainer}", *values, _difference(scores.loc[difference])])
        if f"{difference}_cut" in scores.index:
            cells.append(["at equal length", "", "", _difference(scores.loc[f"{difference}_cut"])])
    return pd.DataFrame(cells, columns=["attacker's score", "reads human captions", f"reads {model}", "difference"])


def _difference(row: pd.Series) -> str:
    low, high = row["ci_low"], row["ci_high"]
    ends = f" [{sentence.limit(low, 1)}, {sentence.limit(high, 1)}]" if pd.notna(low) else ""
    return f"{sentence.signed(row['value'], 1)}{ends}"


def overview_table(lines: Sequence[Line], view: Mapping[str, str]) -> str:
    """HTML: a row a question, a link to the page that shows more, and what is known. view: the query of the links."""
    rows = []
    for line in lines:
        link = escape(f"{line.page}?{urlencode({**view, 'tab': line.tab})}")
        question = f'<a href="{link}" target="_self">{escape(line.question)}</a>'
        rows.append(f"<tr><td>{question}</td><td>{escape(line.said)}</td></tr>")
    return f'<table class="cb-table">{"".join(rows)}</table>'
