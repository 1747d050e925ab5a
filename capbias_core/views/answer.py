"""The front page: what else is known of the captioner that an answer is about, and charts as rows of text with a bar.

Read without a chart library, which takes a browser a second. Every text is escaped. Colours suit both themes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import urlencode

import pandas as pd

from capbias_core.aggregate.comparison import Sensitivity
from capbias_core.measures.registry import METRICS
from capbias_core.types import A_TO_T, T_TO_A, Attribute, counted
from capbias_core.views.charts import BLUE_MARK, GREY, MEASURED, ORANGE_MARK, Scale, intervals_in_order, scale_of
from capbias_core.views.directions import CONSTANT, WAY, beside, directions, ways_measured
from capbias_core.views.encoders import encoder_note
from capbias_core.views.sentence import (
    Second,
    better_text,
    contradicted,
    interval,
    interval_over,
    measure,
    number,
    signed,
)

WAYS = (A_TO_T, T_TO_A)
NOT_YET = "Not measured yet."
OBJECTS = "Which objects its captions mention with one {name} more often than people do."


@dataclass(frozen=True)
class Line:
    """A question that a researcher asks next, what is known, and the page and tab that show it."""

    question: str
    said: str
    page: str
    tab: str


def overview(rows: pd.DataFrame, attribute: Attribute, attacker: str, own: Sensitivity | None) -> list[Line]:
    """The lines for one captioner. rows: what was measured of it for the attribute, in RESULT_COLUMNS, each thing once
    (`measured_rows`). attacker: whose answer stands above. own: what several attackers say, None where one was run."""
    name = attribute.name
    model = rows["model"].iloc[0] if len(rows) else ""
    # Without words for the attribute captions name no value, alone or beside an object.
    lines = (
        [Line(f"Does it name the wrong {name}?", _named(rows, attribute), "Scores", "Table")]
        if attribute.names_values
        else []
    )
    lines.append(Line("In which direction?", _direction(rows, attribute, attacker), "Scores", "Directions"))
    others = f"Not tested yet: only {attacker} was run."
    if own is not None:
        said = encoder_note(own, model)
        others = f"{said[0].upper()}{said[1:]} ({', '.join(own.encoders)})." if model in own.signs else others
    lines.append(Line("Does another encoder agree?", others, "Scores", "Encoder sensitivity"))
    if attribute.names_values:
        lines.append(Line("Because of which objects?", OBJECTS.format(name=name), "Captions", "Objects"))
    return lines


def _named(rows: pd.DataFrame, attribute: Attribute) -> str:
    """How many captions name the wrong value alone, and how many name none."""
    wrong, none = (rows[rows["metric"] == metric] for metric in ("error", "unnamed"))
    parts = []
    if not wrong.empty:
        parts.append(f"{interval(wrong.iloc[0])} of 100 captions name the wrong {attribute.name}")
    if not none.empty:
        parts.append(f"{interval(none.iloc[0])} name none")
    return f"{'; '.join(parts)}." if parts else NOT_YET


def _direction(rows: pd.DataFrame, attribute: Attribute, attacker: str) -> str:
    """DBAC both ways, by what most seeds measured; by which attacker, if that is not the answer's."""
    found = directions(rows, "DBAC")
    if found.empty:
        return NOT_YET
    own = found.set_index(list(WAY), drop=False).loc[[ways_measured(found)[0]]].iloc[0]
    shown = {way: f"{number(own[way])} [{number(own[f'{way}_low'])}, {number(own[f'{way}_high'])}]" for way in WAYS}
    constant = beside(rows, own["model"], attribute.name, own["encoder"], "DBAC")[CONSTANT["DBAC"][0]]
    alone = f"; an attacker that reads no text gets {number(constant['value'])}" if constant else ""
    masked = f"With {attribute.name} words masked" if attribute.masked_words else "With captions as written"
    by = f"By {own['encoder']}: " if own["encoder"] != attacker else ""
    return (
        f"{by}{masked}, {measure('DBAC', A_TO_T)} is {shown[A_TO_T]}{alone}. With objects masked, "
        f"{measure('DBAC', T_TO_A)} is {shown[T_TO_A]}.{_other_sign(rows, own['model'])}"
    )


def _other_sign(rows: pd.DataFrame, model: str) -> str:
    """A sentence where another variant of DBAC has the other sign; else ''."""
    ways = [direction.replace("->", "→") for name, direction in contradicted(rows, "DBAC") if name == model]
    return f" ⚠ Another variant of DBAC has the other sign of {' and '.join(ways)}." if ways else ""


STYLE = f"""<style>
.cb-rows {{display: grid; column-gap: .9rem; row-gap: .55rem; align-items: center; margin: .2rem 0 .4rem;
  font-variant-numeric: tabular-nums}}
.cb-rows > .cb-tail {{white-space: nowrap}}
.cb-rows > .cb-small {{font-size: .85rem; opacity: .75; white-space: nowrap}}
.cb-rows > .cb-name {{text-align: right; overflow-wrap: anywhere}}
.cb-rows > .cb-wrap {{overflow-wrap: anywhere}}
.cb-rows a {{color: inherit; text-decoration: underline; text-underline-offset: 3px; text-decoration-color: {GREY}}}
.cb-bar {{position: relative; height: 1.15rem; min-width: 7rem}}
.cb-bar i {{position: absolute; display: block; top: 50%; transform: translateY(-50%)}}
.cb-bar .cb-neutral {{height: 2.1rem; border-left: 1.5px dashed {GREY}}}
.cb-bar .cb-second {{top: 92%; height: 2px; background: {MEASURED}; opacity: .7}}
.cb-bar .cb-hollow {{top: 92%; width: 5px; height: 5px; margin-left: -4.5px; border: 2px solid {MEASURED};
  border-radius: 50%; background: light-dark(#FFFFFF, #12171E)}}
.cb-bar .cb-line {{height: 3px; background: {MEASURED}; border-radius: 2px}}
.cb-bar .cb-dot {{width: 11px; height: 11px; margin-left: -5.5px; background: {MEASURED}; border-radius: 50%}}
.cb-bar .cb-fill {{height: 1.05rem; border-radius: 2px}}
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
    second: Second | None = None,
) -> str:
    """HTML: a row a captioner, highest value on top: name, dot and 95% interval beside the neutral point, the number,
    the letters, the verdict. rows: results of one metric, one row a captioner. answered: whose name is set in bold.
    second: as of `figures.interval_chart`.
    """
    second = second or {}
    rows, low, high = intervals_in_order(rows)
    neutral = METRICS[metric].neutral(len(attribute.values))
    scale = scale_of(low, high, neutral, second)
    name = METRICS[metric].reference_line
    cells = [
        _interval_row(row, a, b, scale, neutral, letters if len(letters) > 1 else {}, row["model"] == answered, second)
        for (_, row), a, b in zip(rows.iterrows(), low, high, strict=True)
    ]
    mark = (
        f'<span style="left:{scale(neutral):.2f}%">{name} {neutral:g}</span>'
        if math.isfinite(neutral)
        else _better(metric)
    )
    axis = f'<span></span><div class="cb-axis">{mark}</div><span class="cb-small">[95% interval]</span><span></span>'
    return _grid("minmax(4rem, max-content) 1fr max-content max-content", [*cells, axis])


def _neutral_mark(scale: Scale, neutral: float) -> str:
    return f'<i class="cb-neutral" style="left:{scale(neutral):.2f}%"></i>' if math.isfinite(neutral) else ""


def _line(kind: str, dot: str, scale: Scale, value: float, low: float, high: float) -> str:
    """A dot on the line of its interval."""
    return (
        f'<i class="{kind}" style="left:{scale(low):.2f}%;width:{scale(high) - scale(low):.2f}%"></i>'
        f'<i class="{dot}" style="left:{scale(value):.2f}%"></i>'
    )


def _better(metric: str) -> str:
    """Which way is better, where no value is neutral."""
    return f'<span style="left:50%">{better_text(metric)}</span>'


def _interval_row(
    row: pd.Series,
    low: float,
    high: float,
    scale: Scale,
    neutral: float,
    letters: dict[str, str],
    answered: bool,
    second: Second,
) -> str:
    name = escape(row["model"])
    shown = interval(row)
    letter = letters.get(row["model"], "")
    told = " ".join(filter(None, (row.get("verdict", ""), f"({letter})" if letter else "")))
    spread = f"; ±{row['spread']:.2f} std over {counted(int(row['seeds']), 'seed')}" if pd.notna(row["spread"]) else ""
    text, other = f"{row['metric']} {row['value']:.2f} [{low:.2f}, {high:.2f}] {interval_over(row)}{spread}", ""
    if dot := second.get(row["model"]):
        text += f"; LIC_by_H {dot[0]:.2f} [{dot[1]:.2f}, {dot[2]:.2f}]"
        other = _line("cb-second", "cb-hollow", scale, *dot)
    said = _said(text)
    return (
        f'<span class="cb-name">{f"<b>{name}</b>" if answered else name}</span>'
        f'<div class="cb-bar" role="img" {said}>'
        f"{_neutral_mark(scale, neutral)}{_line('cb-line', 'cb-dot', scale, row['value'], low, high)}{other}</div>"
        f'<span class="cb-tail">{escape(shown)}</span><span class="cb-small">{told}</span>'
    )


def cross_table(rows: pd.DataFrame, model: str) -> str:
    """HTML: the four scores of the attackers of LIC, each of which reads both sides, and the difference of each row.

    rows: results of one captioner, attacker and coverage; '' where they have no such scores.
    """
    own = rows[rows["model"] == model].drop_duplicates("metric").set_index("metric")
    if "LIC_HM" not in own.index:
        return ""
    name = escape(model)
    cells = [
        f'<span class="cb-small">{text}</span>'
        for text in ("attacker's score", "reads human captions", f"reads {name}", "difference")
    ]
    for trainer, human, captioner, apart in (
        ("human captions", "LIC_D", "LIC_HM", "LIC_by_H"),
        (name, "LIC_MH", "LIC_M", "LIC_by_M"),
    ):
        row = own.loc[apart]
        ends = f" [{signed(row['ci_low'], 1)}, {signed(row['ci_high'], 1)}]" if pd.notna(row["ci_low"]) else ""
        shown = f"<b>{signed(row['value'], 1)}</b>{ends}"
        values = (f"{number(own.loc[metric, 'value'])}" for metric in (human, captioner))
        cells += [f"<span>trained on {trainer}</span>", *(f"<span>{value}</span>" for value in (*values, shown))]
    return _grid("auto auto auto 1fr", cells)


def word_rows(table: pd.DataFrame, attribute: Attribute, page: str, view: dict[str, str]) -> str:
    """HTML: a row a word, with a bar for what it adds on average; each word links to the captions that contain it.

    table: analysis.read.top_words. page, view: the page that lists them, and its query besides the word.
    Of two values a bar to the left pushes toward the first and one to the right toward the second; of more, every
    bar goes right and the value stands behind it.
    """
    two = len(attribute.values) == 2
    table = table.sort_values("mean", ascending=False) if two else table
    largest = table["mean"].abs().max()
    cells = [_word_row(row, attribute, float(largest), two, page, view) for _, row in table.iterrows()]
    ends = "".join(
        f'<span style="left:{place}%">{escape(text)}</span>'
        for place, text in ((25, f"← {attribute.values[0]}"), (75, f"{attribute.values[1]} →"))
    )
    axis = [f'<span></span><div class="cb-axis">{ends}</div><span></span>'] if two else []
    return _grid("minmax(4rem, max-content) 1fr max-content", [*cells, *axis])


def _word_row(row: pd.Series, attribute: Attribute, largest: float, two: bool, page: str, view) -> str:
    size = abs(row["mean"]) / largest * (50 if two else 100)
    left = 50 - size if two and row["mean"] < 0 else 50 if two else 0
    colour = ORANGE_MARK if two and row["mean"] < 0 else BLUE_MARK
    toward = attribute.values[int(row["toward"])]
    link = f"{page}?{urlencode({**view, 'word': row['word']})}"
    said = _said(f"{number(row['mean'], 2)} on the logit on average, toward {toward}, in {row['count']:,} captions")
    tail = f"{row['count']:,} captions" if two else f"{toward}, {row['count']:,} captions"
    return (
        f'<span class="cb-name"><a href="{escape(link)}" target="_self">{escape(row["word"])}</a></span>'
        f'<div class="cb-bar" role="img" {said}><i class="cb-fill" '
        f'style="left:{left:.2f}%;width:{size:.2f}%;background:{colour}"></i></div>'
        f'<span class="cb-small">{escape(tail)}</span>'
    )


def collection_rows(table: pd.DataFrame, shown: str) -> str:
    """HTML: a row a collection and what it has, each a link to its answer.

    table: columns collection, captions, labels, human captions, scored. shown: whose name is set in bold.
    """
    cells = [f'<span class="cb-small">{escape(name)}</span>' for name in table]
    for row in table.to_dict("records"):
        name = row.pop("collection")
        text = f"<b>{escape(name)}</b>" if name == shown else escape(name)
        cells.append(f'<span><a href="?{urlencode({"collection": name})}" target="_self">{text}</a></span>')
        cells += [f'<span class="cb-wrap">{escape(str(value))}</span>' for value in row.values()]
    return _grid("max-content minmax(6rem, 2fr) 1fr 1fr max-content", cells)


def overview_rows(lines: Sequence[Line], view: dict[str, str]) -> str:
    """HTML: a row a question, a link to the page that shows more, and what is known. view: the query of the links."""
    cells = []
    for line in lines:
        link = f"{line.page}?{urlencode({**view, 'tab': line.tab})}"
        cells.append(f'<span><a href="{escape(link)}" target="_self">{escape(line.question)}</a></span>')
        cells.append(f'<span class="cb-wrap">{escape(line.said)}</span>')
    return _grid("fit-content(38%) 1fr", cells)


def _said(text: str) -> str:
    """What a bar says, to a mouse and to a screen reader."""
    return f'title="{escape(text)}" aria-label="{escape(text)}"'


def _grid(columns: str, cells: list[str]) -> str:
    return f'<div class="cb-rows" style="grid-template-columns:{columns}">{"".join(cells)}</div>'
