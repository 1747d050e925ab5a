"""What vocabulary alignment does to human captions: Figure 1 and Tables 7, 8, 16, 17 of the DBAC paper (2025).

    python examples/papers/dbac_alignment.py --captions sat.json --labels attributes.csv --references captions.json \\
        --vectors glove.6B.300d.txt --objects objects.csv

Reads a captioner's captions, labels with the column gender, human captions, and word vectors; without captions those of
the demo, which need vectors too. One score gives the whole sweep over delta (Figure 1; METEOR of Table 7 needs Java).
With --objects, leakage of the aligned human captions (LIC_H, here LIC_D) and w_H of DBAC (DBAC_H) are measured under
both alignments, beside Tables 8 and 17. 8,423 images with GloVe take a minute for the sweep, and another for the
leakage by `ngram`; the paper's attacker is `--attacker lstm`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

import capbias_core as capbias
from capbias_core.api import Report
from capbias_core.resources import DEMO_FOLDER, PUBLISHED_FILE

SWEPT = ("contextual_share", "unknown_share", "METEOR_aligned")
# Metric and direction here -> as printed, and the tables.
PRINTED = {
    ("METEOR_aligned", ""): ("METEOR", {"7", "16"}),
    ("LIC_D", ""): ("LIC_H", {"8b", "17b"}),
    ("DBAC_H", "A->T"): ("DBAC_H", {"8a", "17a"}),
}
ALIGNMENTS = ("constant", "contextual")


def printed_rows(attribute: str, captioner: str) -> pd.DataFrame:
    """What the tables print of a captioner: alignment, metric, value x100."""
    rows = pd.read_csv(PUBLISHED_FILE, dtype={"table": str})
    rows = rows[(rows["paper"] == "dbac") & (rows["attribute"] == attribute) & (rows["model"] == captioner)]
    parts = [
        rows[(rows["metric"] == name) & rows["table"].isin(tables)].assign(metric=metric)
        for (metric, _), (name, tables) in PRINTED.items()
    ]
    found = pd.concat(parts)
    return found.assign(printed=100 * found["value"] / found["scale"])[["metric", "condition", "printed"]]


def sweep_of(report: Report) -> pd.DataFrame:
    """A row for each alignment: constant, and each delta."""
    rows = report.table[report.table["metric"].isin(SWEPT)]
    delta = rows["alignment"].str.extract(r"_(\d[\d.]*)$")[0].astype(float).fillna(0.4)
    rows = rows.assign(delta=delta.mask(rows["alignment"] == "constant"))
    wide = rows.pivot_table(index=["alignment", "delta"], columns="metric", values="value", dropna=False)
    return wide.dropna(how="all").reset_index().sort_values("delta", na_position="first", ignore_index=True)


def main(argv: list[str] | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The sweep, and the metrics of human captions under both alignments beside the printed ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--captions", type=Path, default=DEMO_FOLDER / "results" / "plain.json")
    parser.add_argument("--labels", type=Path, default=DEMO_FOLDER / "attributes.csv")
    parser.add_argument("--references", type=Path, default=DEMO_FOLDER / "references.json")
    parser.add_argument("--vectors", type=Path, required=True)
    parser.add_argument("--objects", type=Path)
    parser.add_argument("--attacker", default="ngram")
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args(argv)
    name = given.captions.stem
    files = {"labels": given.labels, "attribute": "gender", "references": given.references}
    contextual = {"alignment": "contextual", "vectors": given.vectors}
    report = capbias.score({name: given.captions}, metrics=["alignment"], **contextual, **files)
    sweep = sweep_of(report)
    print(f"Human captions aligned to the words of {name}, x100 (delta 0.4 is the paper's):")
    print(sweep.round(2).to_string(index=False, na_rep=""))
    rows = report.table[report.table["metric"] == "METEOR_aligned"]
    parts = [rows[~rows["alignment"].str.contains(r"_\d[\d.]*$")]]  # constant, and the paper's delta
    if given.objects:
        for alignment in ALIGNMENTS:
            leaked = capbias.score(
                {name: given.captions},
                metrics=["lic", "dbac"],
                objects=given.objects,
                attacker=given.attacker,
                seeds=given.seeds,
                **(contextual if alignment == "contextual" else {}),
                **files,
            ).table
            parts.append(leaked[[key in PRINTED for key in zip(leaked["metric"], leaked["direction"], strict=True)]])
    found = pd.concat(parts)
    found = found[found["group"] == ""]
    if found.empty:
        print("METEOR needs Java, and leakage needs --objects.")
        return sweep, found
    found = found.assign(
        value=100 * found["value"] / found["scale"],
        condition=["constant" if text == "constant" else "contextual_glove" for text in found["alignment"]],
    )
    beside = found.merge(printed_rows("gender", name), on=["metric", "condition"], how="left")
    beside = beside[["metric", "alignment", "encoder", "value", "printed"]]
    print(beside.round(2).to_string(index=False, na_rep=""))
    return sweep, beside


if __name__ == "__main__":
    main()
