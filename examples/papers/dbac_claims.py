"""The claims of the DBAC paper (Nair et al., 2025), decided by its printed numbers and by measured ones.

    python examples/papers/dbac_claims.py
    python examples/papers/dbac_claims.py --results scores.csv

Reads the printed numbers that come with capbias, and, if given, a table that `capbias score --metric dbac --output`
wrote for the same captioners with the paper's encoders and contextual alignment. Takes a second.

A printed number decides by itself; one equal to another, since rounded, is open. A measured number decides by its whole
95% interval, and has a sign only if what it adds to an attacker that reads nothing (DBAC_added) has the same. The
claims on masking and on CVs need captions and encoders of the paper, so printed numbers alone decide them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path

import pandas as pd

from capbias_core.resources import PUBLISHED_FILE

A_TO_T, T_TO_A = "A->T", "T->A"
Number = tuple[float, float]  # low and high
Numbers = dict[tuple[str, str], Number]  # by captioner and one column
T_TO_A_ABOVE = {"blip", "fc", "oscar", "sat", "nic", "nic_equalizer", "transformer", "updn"}
STEPS = ("original", "partial_masked", "segment_masked", "bounding_box_masked")
TEXTS = ("encoder", "direction", "condition")


def side(number: Number | None) -> bool | None:
    return None if number is None else True if number[0] > 0 else False if number[1] <= 0 else None


def above(first: Number | None, second: Number | None) -> bool | None:
    if first is None or second is None or first == second:
        return None
    return True if first[0] > second[1] else False if first[1] <= second[0] else None


def above_zero(named: Iterable[str]) -> Callable[[Numbers], list[bool | None]]:
    """Above 0 for these captioners, and for no other."""
    return lambda numbers: [
        None if side(number) is None else side(number) == (name in named) for (name, _), number in numbers.items()
    ]


def higher(*pairs: tuple[str, str]) -> Callable[[Numbers], list[bool | None]]:
    """For every captioner the first number of each pair above the second."""
    return lambda numbers: [
        above(numbers.get((name, high)), numbers.get((name, low)))
        for name in dict.fromkeys(name for name, _ in numbers)
        for high, low in pairs
    ]


def equalizer(numbers: Numbers) -> list[bool | None]:
    """NIC+Equalizer below NIC by T→A, above it by A→T."""
    nic, other = ({way: numbers.get((name, way)) for way in (A_TO_T, T_TO_A)} for name in ("nic", "nic_equalizer"))
    return [above(nic[T_TO_A], other[T_TO_A]), above(other[A_TO_T], nic[A_TO_T])]


rises = higher(*zip(STEPS[1:], STEPS[:-1], strict=True))


def no_rise(numbers: Numbers) -> list[bool | None]:
    steps = rises(numbers)
    return [None if None in steps else not all(steps)]


# Claim, tables, metrics that are read apart ('' for both CVs), the column that names a number beside its captioner, the
# direction, and checks. Measured numbers can decide those of DBAC by direction.
CLAIMS = (
    ("All 13 models reduced A→T.", "9", "DBAC", "direction", A_TO_T, above_zero(())),
    ("8 of them increased T→A.", "9 10 12a", "DBAC", "direction", T_TO_A, above_zero(T_TO_A_ABOVE)),
    ("T→A of NIC+Equalizer is lower than of NIC, A→T higher.", "9", "DBAC", "direction", "", equalizer),
    (
        "Contextual substitution gives higher METEOR, DBAC and LIC of human captions than constant.",
        *("7 8a 8b 16 17a 17b", "METEOR DBAC_H LIC_H", "condition", "", higher(("contextual_glove", "constant"))),
    ),
    ("T→A of BLIP rises with masking.", "4", "DBAC", "condition", "", rises),
    ("Only DBAC rises with masking.", "4", "LIC DPA BA", "condition", "", no_rise),
    ("CV of LIC above that of DBAC.", "5a 5b 6a 6b", "", "metric", "", higher(("CV_LIC", "CV_DBAC"))),
)


def decide(checks: Iterable[bool | None]) -> str:
    found = list(checks)
    return "disagree" if False in found else "not decided" if None in found or not found else "agree"


def numbers_of(rows: pd.DataFrame, column: str) -> Numbers:
    ends = rows[["ci_low", "ci_high"]].itertuples(index=False, name=None)
    return dict(zip(zip(rows["model"], rows[column], strict=True), ends, strict=True))


def measured_numbers(rows: pd.DataFrame) -> pd.DataFrame:
    """Measured DBAC; open where what it adds to an attacker that reads nothing has not its sign."""
    key = ["run_id", "model", "encoder", "direction"]
    added = rows[rows["metric"] == "DBAC_added"].set_index(key)[["ci_low", "ci_high"]]
    dbac = rows[rows["metric"] == "DBAC"].join(added, on=key, rsuffix="_added")
    sure = (dbac[["ci_low", "ci_low_added"]] > 0).all(axis=1) | (dbac[["ci_high", "ci_high_added"]] < 0).all(axis=1)
    return dbac.assign(ci_low=dbac["ci_low"].where(sure, -1.0), ci_high=dbac["ci_high"].where(sure, 1.0))


def main(argv: list[str] | None = None) -> pd.DataFrame:
    """A row for each claim, table, attribute, metric and encoder: what printed and what measured numbers say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args(argv)
    printed = pd.read_csv(PUBLISHED_FILE, dtype={"table": str}).fillna(dict.fromkeys(TEXTS, ""))
    printed = printed[(printed["paper"] == "dbac") & (printed["model"] != "average")]
    printed = printed.assign(ci_low=printed["value"], ci_high=printed["value"])
    measured = measured_numbers(pd.read_csv(given.results).fillna(dict.fromkeys(TEXTS, ""))) if given.results else None
    rows = []
    for claim, tables, metrics, column, direction, checks in CLAIMS:
        for table, metric in product(tables.split(), metrics.split() or [""]):
            named = [metric] if metric else ["CV_LIC", "CV_DBAC"]
            of_table = printed[(printed["table"] == table) & printed["metric"].isin(named)]
            of_table = of_table[of_table["direction"] == direction] if direction else of_table
            for (attribute, encoder), part in of_table.groupby(["attribute", "encoder"], sort=False):
                said = "not decided"
                if measured is not None and column == "direction":
                    same = measured[(measured["attribute"] == attribute) & (measured["encoder"] == (encoder or "lstm"))]
                    same = same[same["direction"].isin(part["direction"]) & same["model"].isin(part["model"])]
                    said = decide(checks(numbers_of(same, column))) if len(same) == len(part) else said
                rows.append((claim, table, attribute, metric, encoder, decide(checks(numbers_of(part, column))), said))
    columns = ["claim", "table", "attribute", "metric", "encoder", "printed numbers", "measured numbers"]
    found = pd.DataFrame(rows, columns=columns)
    for claim, of_claim in found.groupby("claim", sort=False):
        print(f"\n{claim}\n{of_claim[columns[1:]].to_string(index=False)}")
    return found


if __name__ == "__main__":
    main()
