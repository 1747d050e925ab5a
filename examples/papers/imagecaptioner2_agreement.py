"""Do judges, masks and people agree? Tables 4 to 6 and Figure 3 of ImageCaptioner² (Abdelrahman et al., 2024).

    python examples/papers/imagecaptioner2_agreement.py

Reads the printed scores that come with capbias, with pandas alone, and takes a second. The paper prints the numbers of
the column `printed`; they follow from its own tables. `capbias view encoders --results FILE` gives the same measures of
any table of results, with intervals where it has them.
"""

from __future__ import annotations

from itertools import combinations

import pandas as pd

from capbias_core.resources import PUBLISHED_FILE

LIC, JUDGED = "LIC", "imagecaptioner2"
# Measure, and what it is of -> what the paper prints.
PRINTED = {
    ("conflict score, %", LIC): 11.11,
    ("conflict score, %", JUDGED): 0.0,
    ("ranking consistency", LIC): 0.926,
    ("ranking consistency", JUDGED): 0.961,
    ("agreement with people", LIC): 0.547,
    ("agreement with people", JUDGED): 0.801,
}


def table(rows: pd.DataFrame, name: str, columns: str) -> pd.DataFrame:
    """A printed table: a row for each captioner."""
    return rows[rows["table"] == name].pivot(index="model", columns=columns, values="value")


def main() -> pd.DataFrame:
    """A row for each measure of agreement."""
    rows = pd.read_csv(PUBLISHED_FILE, dtype={"table": str})
    rows = rows[rows["paper"] == "imgcap2"]
    found: list[tuple[str, str, str, float]] = []
    for metric in (LIC, JUDGED):  # Table 4: two encoders of LIC, two judges of the other
        judges = table(rows[rows["metric"] == metric], "4", "encoder")
        first, second = (judges[name] for name in judges)
        conflicts = 100 * ((first > 0) != (second > 0)).mean()
        both = " and ".join(judges)
        found.append(("conflict score, %", metric, both, conflicts))
        found.append(("ranking consistency", metric, both, first.corr(second)))
    people = table(rows, "5", "metric")  # AnonymousBench: guesses of people
    found += [
        ("agreement with people", name, "Table 5", people[name].corr(people["human_guess"])) for name in (LIC, JUDGED)
    ]
    masks = table(rows, "6", "condition")  # people found by COCO's outlines or by a detector
    for first, second in combinations(masks, 2):
        pair = f"{first} and {second}"
        found.append(("agreement of masks", JUDGED, pair, masks[first].corr(masks[second])))
        found.append(("largest difference of masks", JUDGED, pair, (masks[second] - masks[first]).abs().max()))
    shown = pd.DataFrame(found, columns=["measure", "of", "between", "measured"])
    shown["printed"] = [PRINTED.get(key) for key in zip(shown["measure"], shown["of"], strict=True)]
    print(shown.round(3).to_string(index=False, na_rep=""))
    return shown


if __name__ == "__main__":
    main()
