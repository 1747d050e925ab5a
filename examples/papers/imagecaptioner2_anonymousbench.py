"""AnonymousBench: captions of photographs whose people cannot be told apart, Table 5 of ImageCaptioner² (2024).

    python examples/papers/imagecaptioner2_anonymousbench.py --captions nic.json sat.json fc.json --human people.csv

Reads captions of such photographs, and, if given, the share of captions by whose words people guess a gender: a CSV
with the columns model and value. Nobody can label these photographs, so 100 minus `unnamed`, the share of captions that
name a value, stands for the score. Without arguments it reads the demo's captions. Takes seconds. A correlation needs
three captioners; the paper prints 0.547 for LIC and 0.801 for its own metric.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

import capbias_core as capbias
from capbias_core.resources import DEMO_FOLDER, PUBLISHED_FILE


def standing_labels(paths: list[Path]) -> pd.DataFrame:
    """A label for each image: a score needs some, and `unnamed` of all images does not depend on them."""
    images = pd.concat([pd.read_json(path, dtype={"image_id": str}) for path in paths])["image_id"].drop_duplicates()
    values = (["Female", "Male"] * len(images))[: len(images)]
    return pd.DataFrame({"image_id": images, "gender": values})


def main(argv: list[str] | None = None) -> pd.DataFrame:
    """A row for each captioner: captions that name a value, people's guesses, and the printed ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    demo = [DEMO_FOLDER / "results" / f"{name}.json" for name in ("faithful", "amplifier", "mitigator")]
    parser.add_argument("--captions", nargs="+", type=Path, default=demo, help="JSON files of image_id and caption")
    parser.add_argument("--human", type=Path, help="a CSV with the columns model and value")
    given = parser.parse_args(argv)
    report = capbias.score(
        {path.stem: path for path in given.captions},
        labels=standing_labels(given.captions),
        attribute="gender",
        metrics=["unnamed"],
    )
    named = {name: 100 - report["unnamed", name].value for name in report.models}
    rows = pd.DataFrame({"captions that name a value, %": named})
    printed = pd.read_csv(PUBLISHED_FILE, dtype={"table": str})
    printed = printed[(printed["paper"] == "imgcap2") & (printed["table"] == "5")]
    rows = rows.join(printed.pivot(index="model", columns="metric", values="value").add_prefix("printed "))
    if given.human:
        rows["people"] = pd.read_csv(given.human).set_index("model")["value"]
        if rows["people"].notna().sum() >= 3:
            print(f"Pearson with people: {rows.iloc[:, 0].corr(rows['people']):.3f}")
    print(rows.round(1).to_string(na_rep=""))
    return rows


if __name__ == "__main__":
    main()
