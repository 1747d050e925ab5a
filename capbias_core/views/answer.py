"""The front page: what else is known of the captioner that an answer is about, and charts as rows of text with a bar.

They are read without a chart library, which takes a browser a second. Every text is escaped. Colours suit both themes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from capbias_core.aggregate.comparison import LEAST_ENCODERS, Sensitivity, learned
from capbias_core.measures.registry import METRICS
from capbias_core.types import A_TO_T, T_TO_A, Attribute, counted
from capbias_core.views import sentence
from capbias_core.views.charts import BLUE_MARK, GREY, MEASURED, ORANGE_MARK, Scale, intervals_in_order
from capbias_core.views.directions import CONSTANT, WAY, beside, directions, stated, ways_measured
from capbias_core.views.encoders import encoder_note
from capbias_core.views.results import Comparison, current_runs
from capbias_core.views.word_comparison import UNTESTED, YES, against_human, with_ends
from capbias_core.workspace.store import Workspace

NOT_YET = "Not measured yet."


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
    alike = [
        run.run_id
        for run in current_runs(workspace, collection, "lic")
        if (run.spec.model, run.spec.attacker) == (model, comparison.attacker)
        and (run.spec.labels, run.spec.merge_masks) == (spec.labels, spec.merge_masks)
    ]
    rows = workspace.results([*alike, *comparison.run_ids])
    rows = rows[(rows["metric"] == "SC") & (rows["model"] == model)]
    other = ~rows["run_id"].isin(alike)
    return rows.assign(other=other).sort_values(["other", "coverage", "seeds"], ascending=[True, True, False]).iloc[0]


def overview(
    rows: pd.DataFrame, attribute: Attribute, attacker: str, own: Sensitivity | None, seeds: int
) -> list[Line]:
    """The lines for one captioner. rows: what was measured of it for the attribute, in RESULT_COLUMNS, each thing once
    (`measured_rows`). attacker, seeds: of the answer above. own: what several attackers say, None where one was run."""
    name, model, lines = attribute.name, rows["model"].iloc[0] if len(rows) else "", []
    if attribute.names_values:  # else captions name no value, alone or beside an object
        named = []
        for metric, text in (("error", f" of 100 captions name the wrong {name}"), ("unnamed", " of 100 name none")):
            of_metric = rows[rows["metric"] == metric]
            named += [sentence.interval(row) + text for _, row in of_metric.iloc[:1].iterrows()]
        text = f"{'; '.join(named)}." if named else NOT_YET
        lines.append(Line(f"Does it name the wrong {name}?", text, "Scores", "Table"))
    lines.append(Line("In which direction?", _direction(rows, attribute, attacker, seeds), "Scores", "Directions"))
    ran = list(dict.fromkeys(rows[rows["metric"] == "LIC_M"]["encoder"]))
    able = set(rows[learned(rows, {name: len(attribute.values)})]["encoder"])
    weak = [encoder for encoder in ran if encoder not in able]
    if own is not None and model in own.judged:
        note = encoder_note(own, model)
        others = f"{note[0].upper()}{note[1:]} ({', '.join(own.encoders)})."
    elif len(ran) < LEAST_ENCODERS:
        others = f"Not tested yet: only {attacker} was run."
    elif weak:
        others = f"Not comparable: {', '.join(weak)} did no better than chance."
    else:
        others = "Not comparable: other encoders were run with other settings."
    lines.append(Line("Does another encoder agree?", others, "Scores", "Encoder sensitivity"))
    if attribute.names_values:
        objects = f"Which objects its captions mention with one {name} more often than people do."
        lines.append(Line("Because of which objects?", objects, "Captions", "Objects"))
    return lines


def _direction(rows: pd.DataFrame, attribute: Attribute, attacker: str, seeds: int) -> str:
    """DBAC both ways by the answer's attacker, else by what most seeds measured; with attacker and seeds, if those are
    not the answer's."""
    both = directions(rows, "DBAC")
    both = alike if len(alike := both[both["encoder"] == attacker]) else both
    if both.empty:
        return NOT_YET
    row = both.set_index(list(WAY), drop=False).loc[[ways_measured(both)[0]]].iloc[0]
    shown = {
        way: sentence.with_interval(*(row[f"{way}{end}"] for end in ("", "_low", "_high"))) for way in (A_TO_T, T_TO_A)
    }
    constant = beside(rows, row["model"], attribute.name, row["encoder"], "DBAC")[CONSTANT["DBAC"][0]]
    alone = f"; an attacker that reads no text gets {sentence.number(constant['value'])}" if constant else ""
    masked = f"With {attribute.name} words masked" if attribute.masked_words else "With captions as written"
    alike = (row["encoder"], row["seeds"]) == (attacker, seeds)
    by = "" if alike else f"By {row['encoder']}, {counted(int(row['seeds']), 'seed')}: "
    reasons = {way.replace("->", "→"): reason for way, (_, reason) in stated(row, rows, "DBAC").items() if reason}
    other = "".join(f" {way} shows no direction: {reason}." for way, reason in reasons.items())
    return (
        f"{by}{masked}, {sentence.measure('DBAC', A_TO_T)} is {shown[A_TO_T]}{alone}. With objects masked, "
        f"{sentence.measure('DBAC', T_TO_A)} is {shown[T_TO_A]}.{other}"
    )


# charts as rows of text

STYLE = f"""<style>
.cb-rows {{display: grid; column-gap: .9rem; row-gap: .55rem; align-items: center; margin: .2rem 0 .4rem;
  font-variant-numeric: tabular-nums}}
.cb-rows > .cb-tail {{white-space: nowrap}}
.cb-rows > .cb-small {{font-size: .85rem; opacity: .75; white-space: nowrap}}
.cb-rows > .cb-name {{text-align: right; overflow-wrap: anywhere}}
.cb-name > small {{display: block; font-size: .8rem; opacity: .75}}
.cb-rows > .cb-wrap {{overflow-wrap: anywhere}}
.cb-rows a {{color: inherit; text-decoration: underline; text-underline-offset: 3px; text-decoration-color: {GREY}}}
.cb-bar {{position: relative; height: 1.15rem; min-width: 7rem}}
.cb-bar i {{position: absolute; display: block; top: 50%; transform: translateY(-50%)}}
.cb-bar .cb-neutral {{height: 2.1rem; border-left: 1.5px dashed {GREY}}}
.cb-bar .cb-second {{top: 92%; height: 2px; background: {MEASURED}; opacity: .7}}
.cb-bar .cb-hollow {{top: 92%; width: 7px; height: 7px; margin-left: -5.5px; border: 2px solid {MEASURED};
  border-radius: 50%; background: light-dark(#FFFFFF, #12171E)}}
.cb-bar .cb-line {{height: 3px; background: {MEASURED}; border-radius: 2px}}
.cb-bar .cb-dot {{width: 11px; height: 11px; margin-left: -5.5px; background: {MEASURED}; border-radius: 50%}}
.cb-bar .cb-fill {{height: 1.05rem; border-radius: 2px}}
.cb-bar .cb-ends {{height: 2px; background: light-dark(#1F2733, #E8ECF2); opacity: .75}}
.cb-name:focus-within + .cb-bar::after {{content: attr(aria-label); position: absolute; left: 0; top: 1.5rem;
  z-index: 9; padding: .2rem .5rem; font-size: .85rem; background: #1F2733; color: #FFFFFF; border-radius: 4px;
  width: max-content; max-width: 13rem; border: 1px solid #8A94A3}}
.cb-axis {{position: relative; height: 1.2rem; opacity: .75; font-size: .85rem; white-space: nowrap}}
.cb-axis span {{position: absolute; transform: translateX(-50%)}}
</style>"""


def interval_rows(
    rows: pd.DataFrame,
    metric: str,
    attribute: Attribute,
    letters: dict[str, str],
    answered: str = "",
    second: sentence.Second | None = None,
    words: Mapping[str, float] | None = None,
) -> str:
    """HTML: a row a captioner, highest value on top: name with the number of images, dot and 95% interval beside the
    neutral point, the number, the letters, the verdict. rows: results of one metric, one row a captioner. answered:
    whose name is set in bold. second: as of `charts.interval_chart`. words: average words of a caption by captioner,
    shown with the name if they differ much.
    """
    words = words if words and sentence.differ_in_length(words) else {}
    second, letters = second or {}, letters if len(letters) > 1 else {}
    neutral, name = METRICS[metric].neutral(len(attribute.values)), METRICS[metric].reference_line
    rows, low, high, scale = intervals_in_order(rows, neutral, second)
    mark = f'<i class="cb-neutral" style="left:{scale(neutral):.2f}%"></i>' if math.isfinite(neutral) else ""
    cells = []
    for (_, row), first, last in zip(rows.iterrows(), low, high, strict=True):
        model, dot = escape(row["model"]), second.get(row["model"])
        letter = letters.get(row["model"], "")
        verdict = " ".join(filter(None, (row.get("verdict", ""), f"({letter})" if letter else "")))
        text = f"{row['metric']} {row['value']:.2f} [{first:.2f}, {last:.2f}] {sentence.interval_over(row)}"
        text += (
            f"; ±{row['spread']:.2f} std over {counted(int(row['seeds']), 'seed')}" if pd.notna(row["spread"]) else ""
        )
        text += f"; LIC_by_H {dot[0]:.2f} [{dot[1]:.2f}, {dot[2]:.2f}]" if dot else ""
        bar = mark + _dot("cb-line", "cb-dot", scale, row["value"], first, last)
        bar += _dot("cb-second", "cb-hollow", scale, *dot) if dot else ""
        size = f"{row['training'] + row['n']:,} images"
        size += f", {words[row['model']]:.0f} words" if row["model"] in words else ""
        cells += [
            f'<span class="cb-name">{f"<b>{model}</b>" if row["model"] == answered else model}'
            f"<small>{size}</small></span>",
            f'<div class="cb-bar" role="img" {_said(text)}>{bar}</div>',
            f'<span class="cb-tail">{escape(sentence.interval(row))}</span><span class="cb-small">{verdict}</span>',
        ]
    below = ""
    for tick in ticks(scale, neutral):
        text = f"{name} {tick:g}" if tick == neutral else sentence.number(tick, 0)
        below += f'<span style="left:{scale(tick):.2f}%">{text}</span>'
    axis = f'<span></span><div class="cb-axis">{below}</div><span class="cb-small">[95% interval]</span><span></span>'
    return _grid("minmax(4rem, max-content) 1fr max-content max-content", [*cells, axis])


def ticks(scale: Scale, neutral: float) -> list[float]:
    """Whole numbers at even steps on an axis, at most four, with the neutral point where there is one."""
    low, high = scale.low, scale.low + scale.width
    step = next((step for step in (1, 2, 5, 10, 20, 25, 50) if (high - low) / step <= 4), 100)
    first = neutral if math.isfinite(neutral) else step * math.ceil(low / step)
    return [at for n in range(-9, 10) if low <= (at := first + n * step) <= high]


def _dot(line: str, dot: str, scale: Scale, value: float, low: float, high: float) -> str:
    """A dot on the line of its interval. line, dot: their classes."""
    return (
        f'<i class="{line}" style="left:{scale(low):.2f}%;width:{scale(high) - scale(low):.2f}%"></i>'
        f'<i class="{dot}" style="left:{scale(value):.2f}%"></i>'
    )


def cross_table(rows: pd.DataFrame, model: str) -> str:
    """HTML: the four scores of the attackers of LIC, each of which reads both sides, and the difference of each row,
    at equal length too if the lengths differ.

    rows: results of one captioner, attacker and coverage; '' where they have no such scores.
    """
    scores = rows[rows["model"] == model].drop_duplicates("metric").set_index("metric")
    if "LIC_HM" not in scores.index:
        return ""
    name = escape(model)
    cells = [
        f'<span class="cb-small">{text}</span>'
        for text in ("attacker's score", "reads human captions", f"reads {name}", "difference")
    ]
    for trainer, human, captioner, difference in (
        ("human captions", "LIC_D", "LIC_HM", "LIC_by_H"),
        (name, "LIC_MH", "LIC_M", "LIC_by_M"),
    ):
        values = [sentence.number(scores.loc[metric, "value"]) for metric in (human, captioner)]
        texts = [f"trained on {trainer}", *values, _difference(scores.loc[difference])]
        if f"{difference}_cut" in scores.index:
            texts += ["at equal length", "", "", _difference(scores.loc[f"{difference}_cut"])]
        cells += [f"<span>{text}</span>" for text in texts]
    return _grid("auto auto auto 1fr", cells)


def _difference(row: pd.Series) -> str:
    low, high = row["ci_low"], row["ci_high"]
    ends = f" [{sentence.limit(low, 1)}, {sentence.limit(high, 1)}]" if pd.notna(low) else ""
    return f"<b>{sentence.signed(row['value'], 1)}</b>{ends}"


def word_rows(table: pd.DataFrame, attribute: Attribute, page: str, view: Mapping[str, str]) -> str:
    """HTML: a row a word, with a bar for what it adds on average; each word links to the captions that contain it.

    table: of `word_comparison.top_words`. page, view: the page that lists them, and its query besides the word.
    Of two values a bar to the left pushes toward the first and one to the right toward the second; of more, every
    bar goes right and the value stands behind it. Of words compared with human captions, a line is the
    interval of what the word adds; those whose interval contains 0, or that were not tested, are grey.
    """
    two, compared, cells = len(attribute.values) == 2, "human" in table, []
    sign = np.where(table["toward"] == 0, -1, 1) if two else np.ones(len(table))
    table = table.assign(shown=sign * table["captioner" if compared else "mean"])
    table = table.sort_values("shown", ascending=False) if two else table
    reach = table.filter(["shown", "captioner_low", "captioner_high"]).abs().max(axis=1)
    largest = float(reach.max()) or 1.0
    for _, row in table.iterrows():
        size = abs(row["shown"]) / largest * (50 if two else 100)
        back = two and row["shown"] < 0
        left = 50 - size if back else 50 if two else 0
        toward, tail = attribute.values[int(row["toward"])], f"{row['count']:,} captions"
        colour = ORANGE_MARK if back else BLUE_MARK
        text = f"{sentence.number(row['shown'], 2)} on the logit on average, toward {toward}, in {tail}"
        line = ""
        if compared:
            tail, colour = with_ends(row, "captioner"), colour if row["certain"] == YES else GREY
            text = f"{tail} on the logit on average, toward {toward}, in {row['count']:,} captions; in human captions "
            text += f"{with_ends(row, 'human')}; difference {with_ends(row, 'difference')}, significant: "
            text += row["significant"]
            if row["certain"] != UNTESTED:
                first, last = sorted(
                    (50 if two else 0) + (-1 if back else 1) * row[end] / largest * (50 if two else 100)
                    for end in ("captioner_low", "captioner_high")
                )
                first = max(0.0, first)
                line = f'<i class="cb-ends" style="left:{first:.2f}%;width:{last - first:.2f}%"></i>'
            tail += f" {more}" if (more := against_human(row)) else ""
        link = escape(f"{page}?{urlencode({**view, 'word': row['word']})}")
        cells.append(
            f'<span class="cb-name"><a href="{link}" target="_self">{escape(row["word"])}</a></span>'
            f'<div class="cb-bar" role="img" {_said(text)}><i class="cb-fill" style="left:{left:.2f}%;'
            f'width:{size:.2f}%;background:{colour}"></i>{line}</div>'
            f'<span class="cb-small">{escape(tail if two else f"{toward}, {tail}")}</span>'
        )
    ends = "".join(
        f'<span style="left:{place}%">{escape(text)}</span>'
        for place, text in ((25, f"← {attribute.values[0]}"), (75, f"{attribute.values[1]} →"))
    )
    axis = [f'<span></span><div class="cb-axis">{ends}</div><span></span>'] if two else []
    return _grid("minmax(4rem, max-content) 1fr max-content", [*cells, *axis])


def overview_rows(lines: Sequence[Line], view: Mapping[str, str]) -> str:
    """HTML: a row a question, a link to the page that shows more, and what is known. view: the query of the links."""
    cells = []
    for line in lines:
        link = escape(f"{line.page}?{urlencode({**view, 'tab': line.tab})}")
        cells.append(f'<span><a href="{link}" target="_self">{escape(line.question)}</a></span>')
        cells.append(f'<span class="cb-wrap">{escape(line.said)}</span>')
    return _grid("fit-content(38%) 1fr", cells)


def _said(text: str) -> str:
    """What a bar says, to a mouse and to a screen reader."""
    return f'title="{escape(text)}" aria-label="{escape(text)}"'


def _grid(columns: str, cells: Sequence[str]) -> str:
    return f'<div class="cb-rows" style="grid-template-columns:{columns}">{"".join(cells)}</div>'
