"""Both directions of a metric side by side: value to task words (A->T), and task words to value (T->A)."""

from __future__ import annotations

import pandas as pd

from capbias_core.measures.registry import variants_of
from capbias_core.types import A_TO_T, T_TO_A

NAMES = ("DBAC", "DBAC_verbs", "DBAC_equations", "DBAC_accuracy", "DPA")
# Metric and direction of each way, by what the pair is called.
MEASURES = {
    **{name: {way: (name, way) for way in (A_TO_T, T_TO_A)} for name in NAMES},
    "DBA": {A_TO_T: ("DBA_O_crossfit", ""), T_TO_A: ("DBA_G_crossfit", "")},
}
# What captioners that are compared have in common.
WAY = ("encoder", "variant", "seeds")
ALIKE = ("model", "attribute", *WAY)
NUMBERS = ("value", "ci_low", "ci_high")
# Metrics and directions that stand beside a pair.
BESIDE = (("LIC", ""), ("BA_crossfit", ""))
CONSTANT = {name: ((f"{name}_constant", A_TO_T), (f"{name}_added", A_TO_T)) for name in ("DBAC", "DBAC_verbs")}


def directions(rows: pd.DataFrame, measure: str) -> pd.DataFrame:
    """One row per captioner, attribute, encoder, variant and number of seeds for which both directions were measured.

    rows: of the results table. Columns: those of ALIKE, `A->T` and `T->A` with `_low` and `_high` for the 95% interval,
    `A->T_n` and `T->A_n`.
    """
    rows, sides = rows.assign(variant=variants_of(rows)), []
    for way, (metric, direction) in MEASURES[measure].items():
        own = rows[(rows["metric"] == metric) & (rows["direction"] == direction) & rows["value"].notna()]
        names = {"value": way, "ci_low": f"{way}_low", "ci_high": f"{way}_high", "n": f"{way}_n"}
        sides.append(own[[*ALIKE, *NUMBERS, "n"]].rename(columns=names))
    return sides[0].merge(sides[1], on=list(ALIKE))


def signs(row: dict, added: dict | None = None) -> dict[str, int]:
    """Of each direction 1 where it is above 0 by its interval, -1 where it is below, 0 where that is unclear.

    row: of `directions`. added: the row of what the attacker adds to a constant one's A->T, which must then have the
    same sign.
    """
    across = _sign(row[f"{A_TO_T}_low"], row[f"{A_TO_T}_high"])
    if added is not None and across != _sign(added["ci_low"], added["ci_high"]):
        across = 0
    return {A_TO_T: across, T_TO_A: _sign(row[f"{T_TO_A}_low"], row[f"{T_TO_A}_high"])}


def _sign(low: float | None, high: float | None) -> int:
    if low is None or high is None or pd.isna(low):
        return 0
    return 1 if low > 0 else -1 if high < 0 else 0


def ways_measured(frame: pd.DataFrame) -> list[tuple]:
    """How captioners were measured, as values of WAY: first what most captioners share, then most seeds."""
    groups = frame.groupby(list(WAY), sort=False)["model"].nunique()
    return sorted(groups.index, key=lambda way: (-groups[way], -way[-1]))


def measures_in(rows: pd.DataFrame) -> list[str]:
    """The pairs that were measured for some captioner."""
    return [measure for measure in MEASURES if len(directions(rows, measure))]


def beside(
    rows: pd.DataFrame, model: str, attribute: str, encoder: str, measure: str = ""
) -> dict[tuple[str, str], dict | None]:
    """For LIC, of this encoder, and BA the captioner's row with most seeds, or None; beside DBAC also what a constant
    attacker has of A->T, and what this one adds."""
    own = rows[(rows["model"] == model) & (rows["attribute"] == attribute) & rows["value"].notna()]
    own = own[own["encoder"].isin([encoder, ""])] if encoder else own
    found = {}
    for key in (*CONSTANT.get(measure, ()), *BESIDE):
        alike = own[(own["metric"] == key[0]) & (own["direction"] == key[1])].sort_values("seeds", ascending=False)
        found[key] = alike.iloc[0].to_dict() if len(alike) else None
    return found
