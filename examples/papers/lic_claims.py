"""The claims about LIC of three tables of the LIC paper and of its reproducibility study, decided by numbers.

    python examples/papers/lic_claims.py
    python examples/papers/lic_claims.py --results scores.csv

Reads the printed numbers that come with capbias, and, if given, a table that `capbias score --metric lic --output`
wrote for the same captioners with the papers' encoders. Takes a second.

A printed number decides by itself. A measured one decides by its verdict where it has one, since simple wording alone
can put LIC above 0, and else by its whole 95% interval. A claim agrees if all its checks hold, and disagrees if one
fails.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

import pandas as pd

from capbias_core.resources import PUBLISHED_FILE

# One captioner's LIC: value, low, high, verdict.
Number = tuple[float, float, float, str]
Numbers = dict[str, Number]
# Numbers of one encoder, and of lstm_bi -> what each check says; None is open.
Checks = Callable[[Numbers, Numbers], Iterable[bool | None]]
AGE = {"updn", "transformer", "oscar"}
COLUMNS = {"encoder": "", "verdict": "", "coverage": ""}


def above_zero(number: Number | None) -> bool | None:
    if number is None:
        return None
    _, low, high, verdict = number
    if verdict:
        return {"amplifies": True, "reduces": False}.get(verdict)
    return True if low > 0 else False if high <= 0 else None


def above(first: Number | None, second: Number | None) -> bool | None:
    if first is None or second is None:
        return None
    return True if first[1] > second[2] else False if first[2] <= second[1] else None


def all_amplify(numbers: Numbers, base: Numbers) -> Iterable[bool | None]:
    return map(above_zero, numbers.values())


def equalizer(numbers: Numbers, base: Numbers) -> Iterable[bool | None]:
    return [above(numbers.get("nic_equalizer"), numbers.get("nic_plus"))]


def ends_of_order(numbers: Numbers, base: Numbers) -> Iterable[bool | None]:
    """NIC lowest, NIC+Equalizer highest."""
    low, high = numbers.get("nic"), numbers.get("nic_equalizer")
    yield above(high, low)
    for name, number in numbers.items():
        if name not in ("nic", "nic_equalizer"):
            yield above(number, low)
            yield above(high, number)


def same_sign(numbers: Numbers, base: Numbers) -> Iterable[bool | None]:
    for name, number in numbers.items():
        sides = above_zero(number), above_zero(base.get(name))
        yield None if None in sides else sides[0] == sides[1]


def age_of_three(numbers: Numbers, base: Numbers) -> Iterable[bool | None]:
    for name, number in numbers.items():
        side = above_zero(number)
        yield None if side is None else side == (name in AGE)


# Claim, tables, checks.
CLAIMS: tuple[tuple[str, tuple[tuple[str, str], ...], Checks], ...] = (
    ("All the models amplify gender bias.", (("lic", "2"), ("repro", "2")), all_amplify),
    ("All the models amplify racial bias.", (("lic", "S1"), ("repro", "3")), all_amplify),
    ("LIC is robust against encoders: the order.", (("lic", "2"), ("repro", "2")), ends_of_order),
    (
        "LIC is robust against encoders: the sign.",
        (("lic", "2"), ("lic", "S1"), ("repro", "2"), ("repro", "3"), ("repro", "4")),
        same_sign,
    ),
    ("NIC+Equalizer increases gender bias with respect to NIC+.", (("lic", "2"), ("repro", "2")), equalizer),
    ("Only UpDn, Transformer and Oscar amplify age bias.", (("repro", "4"),), age_of_three),
)


def decide(checks: Iterable[bool | None]) -> str:
    found = list(checks)
    return "disagree" if False in found else "not decided" if None in found or not found else "agree"


def numbers_of(rows: pd.DataFrame, models: Iterable[str], encoder: str) -> Numbers:
    """Each captioner's number by an encoder; that on all images first."""
    rows = rows[rows["encoder"] == encoder].sort_values("coverage", kind="stable")
    rows = rows.drop_duplicates("model").set_index("model")
    if rows.empty:
        return {}
    columns = ["value", "ci_low", "ci_high", "verdict"]
    return {name: tuple(rows.loc[name, columns]) for name in models if name in rows.index}


def main(argv: list[str] | None = None) -> pd.DataFrame:
    """A row for each claim, table and encoder: what printed and what measured numbers say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args(argv)
    printed = pd.read_csv(PUBLISHED_FILE, dtype={"table": str}).fillna(COLUMNS)
    printed = printed[printed["metric"] == "LIC"].assign(coverage="", verdict="")
    printed = printed.assign(ci_low=printed["value"], ci_high=printed["value"])
    measured = pd.read_csv(given.results).fillna(COLUMNS) if given.results else printed.iloc[:0]
    whole = (measured["metric"] == "LIC") & (measured.get("group", pd.Series("", measured.index)).fillna("") == "")
    measured, rows = measured[whole], []
    for claim, tables, checks in CLAIMS:
        for paper, table in tables:
            of_table = printed[(printed["paper"] == paper) & (printed["table"] == table)]
            attribute = of_table["attribute"].iloc[0]
            models = list(dict.fromkeys(of_table["model"]))
            same = measured[measured["attribute"] == attribute]
            for encoder in of_table["encoder"].unique()[checks is same_sign :]:
                said = []
                for numbers in (of_table, same):
                    own, base = (numbers_of(numbers, models, name) for name in (encoder, "lstm_bi"))
                    said.append(
                        "not decided" if len(own) < len(models) and numbers is same else decide(checks(own, base))
                    )
                rows.append((claim, paper, table, attribute, encoder, *said))
    columns = ["claim", "paper", "table", "attribute", "encoder", "printed numbers", "measured numbers"]
    found = pd.DataFrame(rows, columns=columns)
    for claim, of_claim in found.groupby("claim", sort=False):
        print(f"\n{claim}\n{of_claim[columns[1:]].to_string(index=False)}")
    return found


if __name__ == "__main__":
    main()
