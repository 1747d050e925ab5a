"""LIC by vocabulary size and BLEU-4 of the same captioners: Figure 3 of the LIC paper (Hirota et al., 2022).

    python examples/papers/lic_figure3.py --captions nic.json sat.json fc.json updn.json oscar.json \\
        --labels attributes.csv --references captions.json --seeds 30

Reads captions of COCO images, labels with the column gender, and human captions; without arguments those of the demo.
Prints each captioner's numbers beside those of Table 1, and the line through the captioners beside the R² of the
figure. Seven captioners on 8,423 images by `ngram` take about two minutes for 10 seeds; the paper's attacker is
`--attacker lstm_bi`. A correlation over so few captioners shows no cause.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from scipy.stats import linregress

import capbias_core as capbias
from capbias_core.resources import DEMO_FOLDER, PUBLISHED_FILE

# R² of the figure. Its points for vocabulary are drawn, not printed; its BLEU-4 has more decimals than Table 1.
PRINTED = {"vocabulary": 0.153, "bleu4": 0.156}
METRICS = ("LIC", *PRINTED)


def printed_points() -> pd.DataFrame:
    """Captioner -> LIC and BLEU-4 of Table 1."""
    rows = pd.read_csv(PUBLISHED_FILE, dtype={"table": str}, keep_default_na=False)
    rows = rows[(rows["paper"] == "lic") & (rows["table"] == "1") & rows["metric"].isin(METRICS)]
    return rows.astype({"value": float}).pivot(index="model", columns="metric", values="value")


def line_text(points: pd.DataFrame, against: str) -> tuple[float, str]:
    """R² of LIC over a column, and a line of text on it."""
    both = points[["LIC", against]].dropna()
    if len(both) < 3:
        return float("nan"), "fewer than three captioners"
    line = linregress(both[against], both["LIC"])
    text = f"R² = {line.rvalue**2:.3f}, slope {line.slope:.4f}, p = {line.pvalue:.2f}, {len(both)} captioners"
    return line.rvalue**2, text


def main(argv: list[str] | None = None) -> pd.DataFrame:
    """A row for each line: measured R², that of the printed table, and that of the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ("faithful", "amplifier", "mitigator", "plain")
    demo = [DEMO_FOLDER / "results" / f"{name}.json" for name in names]
    parser.add_argument("--captions", nargs="+", type=Path, default=demo)
    parser.add_argument("--labels", type=Path, default=DEMO_FOLDER / "attributes.csv")
    parser.add_argument("--references", type=Path, default=DEMO_FOLDER / "references.json")
    parser.add_argument("--attacker", default="ngram")
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args(argv)
    report = capbias.score(
        {path.stem: path for path in given.captions},
        labels=given.labels,
        attribute="gender",
        references=given.references,
        metrics=METRICS,
        attacker=given.attacker,
        seeds=given.seeds,
    )
    measured = pd.DataFrame({name: {model: report[name, model].value for model in report.models} for name in METRICS})
    printed = printed_points()
    print(measured.join(printed.add_suffix(", printed")).round(2).to_string())
    rows = []
    for against, of_figure in PRINTED.items():
        r_squared, text = line_text(measured, against)
        of_table = line_text(printed, against)[0] if against in printed else float("nan")
        print(f"LIC by {against}: {text}; Table 1 gives {of_table:.3f}, the figure prints {of_figure}")
        rows.append({"against": against, "measured": r_squared, "table 1": of_table, "printed": of_figure})
    return pd.DataFrame(rows)


if __name__ == "__main__":
    main()
