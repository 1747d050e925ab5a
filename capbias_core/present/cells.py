"""Whose captions give most away, and what crossing two attributes adds, as tables."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from capbias_core.aggregate import Estimate
from capbias_core.analysis.cells import Beyond
from capbias_core.present.table import value_text
from capbias_core.types import counted

BY_VALUE = (
    "LIC_M on the captions of the images with each label: how surely an attacker names that label, from captions whose "
    "words for it are masked. Higher gives more away. Attackers lean to some labels, so one label's value is not to be "
    "read without the others'."
)
BEYOND = (
    "Right: captions whose cell the attacker names, %. The next two are by the same guesses, summed over the other "
    "attribute. Beyond: right minus the product of both, which two independent guesses would give; above 0, captions "
    "tell the combination beyond telling each attribute."
)


def no_beyond(left_out: int) -> str:
    """Why what crossing adds is not shown where cells are left out."""
    return (
        "Whether captions tell the combination beyond telling each attribute is not shown: too few images, and so "
        f"{counted(left_out, 'cell')} left out. Guesses that tell nothing would then seem to name the cells less than "
        "both parts."
    )


def by_value_table(found: Mapping[str, Mapping[str, Estimate]]) -> pd.DataFrame:
    """A row a captioner, a column a labelled value. found: captioner -> value -> LIC_M."""
    rows = [{"captioner": model} | {value: _text(own) for value, own in by.items()} for model, by in found.items()]
    return pd.DataFrame(rows).fillna("")


def beyond_table(found: Mapping[str, Beyond]) -> pd.DataFrame:
    """A row a captioner: right, both parts, and what is beyond their product."""
    rows = []
    for model, own in found.items():
        low, high = own.interval
        interval = "" if low is None or high is None else f" [{low:.1f}, {high:.1f}]"
        parts = {name: _text(part) for name, part in own.parts}
        rows.append({"captioner": model, "right": _text(own.right), **parts, "beyond": f"{own.beyond:.1f}{interval}"})
    return pd.DataFrame(rows)


def _text(own: Estimate) -> str:
    return value_text({"metric": "LIC_M"} | own.columns())
