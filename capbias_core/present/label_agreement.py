"""How far two tables of labels agree, as a sentence and as tables."""

from __future__ import annotations

import pandas as pd

from capbias_core.aggregate.comparison import LabelAgreement

OTHERS = "A label is what somebody or a rule said of a picture; where two agree, both may be wrong about a person."


def agreement_line(found: LabelAgreement, attribute: str, one: str, other: str) -> str:
    """`gender: given and from captions give the same label to 7 of 8 images that both label, 87.5% [52.9, 97.8]`"""
    low, high = found.interval
    if low is None or high is None:
        return f"{attribute}: {one} and {other} label no image in common."
    kappa = "" if found.kappa != found.kappa else f"; Cohen's kappa {found.kappa:.2f}"
    same = f"the same label to {found.same:,} of {found.images:,} images that both label"
    share = f"{100 * found.share:.1f}% [{100 * low:.1f}, {100 * high:.1f}]"
    return f"{attribute}: {one} and {other} give {same}, {share}{kappa}."


def counts_table(found: LabelAgreement, one: str) -> pd.DataFrame:
    """Images by the label of one table (rows) and of the other (columns)."""
    return found.counts.rename_axis(index=f"{one}, below", columns=None).reset_index()


def differing_table(found: LabelAgreement, one: str, other: str, captions: pd.DataFrame | None = None) -> pd.DataFrame:
    """Images to which the tables give different labels, with their human captions where there are any."""
    names = {"one": one, "other": other if other != one else f"{other} (2)"}
    table = found.differ.rename(columns=names)
    if captions is None:
        return table
    written = captions[captions["image_id"].isin(table["image_id"])]
    joined = written.groupby("image_id", sort=False)["caption"].agg(" · ".join).rename("human captions")
    return table.join(joined, on="image_id")
