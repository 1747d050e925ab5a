"""Metrics of the controlled sets beside what they tend to."""

from __future__ import annotations

import pandas as pd

from capbias_core.analysis.known_answer import SEES, known_truth
from capbias_core.prepare.known_answer import CONTROL, IMBALANCE
from capbias_core.present.sentence import interval, number
from capbias_core.types import counted

TITLES = {
    "Q": "Q, accuracy of DBAC's and LIC's attacker",
    "LIC": "LIC of the captions",
    "BA": "b of BA",
    "DPA": "accuracy of DPA, A→T",
}
# Values, without their scale, that differ by less are the same.
CHANGE = 0.02


def known_sentence(rows: pd.DataFrame) -> str:
    """Which metrics rise from C1 to C4, and which of those that stay move where objects go with values."""
    rising = [name for name in SEES if _rises(rows, name)]
    still = [name for name in SEES if name not in rising]
    moved = [name for name in still if _moves(rows, name)]
    text = f"{_listed(rising)} rise with the bias of the verbs; {_listed(still)} do not see it."
    return f"{text} Where objects go with values (control), {_listed(moved)} see that." if moved else text


def _values(rows: pd.DataFrame, metric: str) -> pd.Series:
    own = rows[rows["metric"] == metric].set_index("model")
    return own["value"] / own["scale"]


def _rises(rows: pd.DataFrame, metric: str) -> bool:
    return bool((_values(rows, metric)[list(IMBALANCE)].diff().dropna() > CHANGE).all())


def _moves(rows: pd.DataFrame, metric: str) -> bool:
    values = _values(rows, metric)
    return CONTROL in values and bool(values[CONTROL] > values[list(IMBALANCE)].max() + CHANGE)


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else "none"


def known_table(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a metric, one column a set: value [95% interval], and on C1 to C4 what it tends to."""
    table = []
    for metric in SEES:
        own = rows[rows["metric"] == metric].set_index("model")
        digits = 1 if metric == "LIC" else 2
        table.append(
            {"metric": TITLES[metric], **{name: _cell(own.loc[name], name, metric, digits) for name in own.index}}
        )
    return pd.DataFrame(table)


def _cell(row: pd.Series, name: str, metric: str, digits: int) -> str:
    text = interval(row, digits)
    return text if name not in IMBALANCE else f"{text}; known: {number(known_truth(name, metric), digits)}"


def known_basis(rows: pd.DataFrame) -> str:
    """n, seeds and attacker of the attacked rows."""
    first = rows[rows["metric"] == "Q"].iloc[0]
    basis = f"Attacker {first['encoder']}, {counted(first['seeds'], 'seed')} with {first['n']:,} test captions each."
    return f"{basis} Value [95% interval over captions]."
