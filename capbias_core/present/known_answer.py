"""Metrics of the controlled sets beside what they tend to."""

from __future__ import annotations

import pandas as pd

from capbias_core.experiments.known_answer import SEES, known_truth
from capbias_core.present.sentence import number

TITLES = {
    "Q": "Q, the attacker's accuracy", "LIC": "LIC of the captions", "DBAC_H": "w of DBAC, A→T", "BA": "b of BA",
    "DPA": "accuracy of DPA, A→T",
}  # fmt: skip
CHANGE = 0.02


def known_sentence(rows: pd.DataFrame) -> str:
    """Which metrics rise from C1 to C4, and which stay where they are."""
    rising = [name for name in SEES if _rises(rows, name)]
    still = [name for name in SEES if name not in rising]
    return f"{_listed(rising)} rise with the bias; {_listed(still)} do not see it."


def _rises(rows: pd.DataFrame, metric: str) -> bool:
    own = rows[rows["metric"] == metric].sort_values("model")
    values = own["value"] / own["scale"]
    return bool((values.diff().dropna() > CHANGE).all())


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else "none"


def known_table(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a metric, one column a set: value [95% interval], and what it tends to."""
    table = []
    for metric in SEES:
        own = rows[rows["metric"] == metric].set_index("model")
        digits = 1 if metric == "LIC" else 2
        cells = {name: _cell(own.loc[name], known_truth(name, metric), digits) for name in own.index}
        table.append({"metric": TITLES[metric], **cells})
    return pd.DataFrame(table)


def _cell(row: pd.Series, truth: float, digits: int) -> str:
    low, high = (number(row[end], digits) for end in ("ci_low", "ci_high"))
    return f"{number(row['value'], digits)} [{low}, {high}]; known {number(truth, digits)}"
