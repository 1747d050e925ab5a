"""The claims of the Gender Score paper (Sabir and Padró, 2023), decided by its own numbers.

    python examples/papers/gender_score_claims.py

Reads the printed numbers of Tables 2 to 5, which come with capbias, with pandas alone, and takes a second. Measured
numbers cannot decide these claims: the paper's captions and the objects that it found on the images are not available.
"""

from __future__ import annotations

import pandas as pd

from capbias_core.resources import PUBLISHED_FILE

COUNTED, WEIGHTED = "object_gender_cooccurrence", "gender_score"


def verdict(holds: pd.Series, what: str) -> tuple[str, str]:
    """Whether a claim holds for all, and for how many."""
    against = ", ".join(map(str, holds.index[~holds]))
    text = f"{holds.sum()} of {len(holds)} {what}" + (f"; against: {against}" if against else "")
    return ("agree" if holds.all() else "disagree"), text


def main() -> pd.DataFrame:
    """A row for each claim."""
    rows = pd.read_csv(PUBLISHED_FILE, dtype={"table": str}).fillna({"encoder": "", "condition": ""})
    rows = rows[rows["paper"] == "genderscore"]
    tables = {name: part for name, part in rows.groupby("table")}
    to_men = {name: tables[name][tables[name]["metric"] == "ratio_to_m"] for name in ("2", "3", "5")}
    found = []
    for encoder, part in to_men["2"].groupby("encoder", sort=False):  # the ratio to men above one half
        said = verdict(part.set_index("model")["value"] > 0.5, "sets of human captions")
        found.append(("There is a slight bias toward men.", "2", encoder, *said))
    ratios = to_men["3"].pivot(index="model", columns="condition", values="value")
    nearer = (ratios["gender_score"] - 0.5).abs() < (ratios["gender_object_distance"] - 0.5).abs()
    found.append(("Our score balances the bias better than cosine distance.", "3", "", *verdict(nearer, "captioners")))
    of_objects = tables["4"][tables["4"]["condition"].str.startswith("to_m ")]
    pairs = of_objects.pivot(index=["model", "condition"], columns="metric", values="value")
    r = pairs[COUNTED].corr(pairs[WEIGHTED])
    reason = f"Pearson {r:.2f} over {len(pairs)} pairs of captioner and object; the paper does not say when it is close"
    found.append(("Our score aligns closely with counting.", "4", "", "not decided", reason))
    estimates = to_men["5"].pivot(index="model", columns="condition", values="value")
    more = estimates["gender_score_estimation"] > estimates[COUNTED]
    found.append(("Estimation favours men more than counting.", "5", "", *verdict(more, "captioners")))
    shown = pd.DataFrame(found, columns=["claim", "table", "encoder", "printed numbers", "reason"])
    print(shown.to_string(index=False))
    return shown


if __name__ == "__main__":
    main()
