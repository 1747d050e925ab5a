"""Compare captioners and draw the figure of a paper: LIC of each with its interval, and who can be told apart.

    python examples/compare_captioners.py --captions nic.json sat.json fc.json updn.json oscar.json \\
        --labels attributes.csv --attribute gender --references captions.json --output figure.html

Without arguments it compares the captioners of the bundled demo. A figure that ends in .png or .pdf needs the package
kaleido; without it the figure is written as HTML.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

import plotly.graph_objects as go

import capbias_core as capbias
from capbias_core.api import Comparison
from capbias_core.resources import DEMO_FOLDER


def figure(found: Comparison) -> go.Figure:
    """Values with their 95% intervals, lowest first; captioners that share a letter are not told apart."""
    rows = found.table
    chart = go.Figure(
        go.Scatter(
            x=rows["value"],
            y=rows["captioner"],
            mode="markers",
            marker={"size": 9, "color": "#3b5b92"},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": rows["high"] - rows["value"],
                "arrayminus": rows["value"] - rows["low"],
            },
            hovertemplate="%{y}: %{x:.1f}<extra></extra>",
        )
    )
    chart.add_vline(0, line_dash="dot", annotation_text="as human captions")
    for row in rows.itertuples():
        chart.add_annotation(x=row.high, y=row.captioner, text=row.letters, showarrow=False, xanchor="left", xshift=8)
    chart.update_layout(
        template="plotly_white",
        xaxis_title=f"{found.metric} (95% interval)",
        width=640,
        height=120 + 40 * len(rows),
        margin={"l": 20, "r": 90, "t": 20, "b": 40},
    )
    return chart


def write(chart: go.Figure, output: Path) -> Path:
    """Write the figure; returns where it is."""
    if output.suffix.lower() != ".html" and not find_spec("kaleido"):
        print(f"kaleido is not installed, so {output.name} is written as HTML")
        output = output.with_suffix(".html")
    if output.suffix.lower() == ".html":
        chart.write_html(output, include_plotlyjs="directory")
    else:
        chart.write_image(output, scale=2)
    return output


def main(argv: list[str] | None = None) -> Comparison:
    """Compare, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ("faithful", "amplifier", "mitigator", "amplifier_masked_person", "amplifier_masked_object")
    demo = [DEMO_FOLDER / "results" / f"{name}.json" for name in names]
    parser.add_argument("--captions", nargs="+", type=Path, default=demo)
    parser.add_argument("--labels", type=Path, default=DEMO_FOLDER / "attributes.csv")
    parser.add_argument("--attribute", default="gender")
    parser.add_argument("--references", type=Path, default=DEMO_FOLDER / "references.json")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--output", type=Path, default=Path("captioners.html"))
    given = parser.parse_args(argv)
    found = capbias.compare(
        {path.stem: path for path in given.captions},
        labels=given.labels,
        attribute=given.attribute,
        references=given.references,
        seeds=given.seeds,
    )
    print(found)
    print(f"written: {write(figure(found), given.output)}")
    return found


if __name__ == "__main__":
    main()
