"""What else is known of the captioner that an answer is about: a line a question, and the page that shows more."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from capbias_core.analysis.directions import CONSTANT, WAY, beside, directions, ways_measured
from capbias_core.analysis.encoders import Sensitivity
from capbias_core.present.encoders import encoder_note
from capbias_core.present.sentence import contradicted, interval, measure, number
from capbias_core.types import A_TO_T, T_TO_A, Attribute

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
