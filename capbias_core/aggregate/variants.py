"""What a row of the results table was measured on or with, in words: for headings, and to tell series apart."""

from __future__ import annotations

import pandas as pd

# The columns that make two rows of one metric different things, in the order in which they are said.
ORIGINS = ("condition", "photographs", "prompt", "alignment", "coverage", "object", "group")
# What is usual is not said.
USUAL = ("", "constant")


def variant(row: dict) -> str:
    """One row's in words, '' for the usual.

    >>> variant({"condition": "", "alignment": "contextual_glove", "coverage": "with_references"})
    'contextual_glove; with_references'
    """
    said = (row.get(name) for name in ORIGINS)
    return "; ".join(text for text in said if isinstance(text, str) and text not in USUAL)


def variants(rows: pd.DataFrame) -> pd.Series:
    """Every row's."""
    own = rows[[name for name in ORIGINS if name in rows]]
    found = [variant(row) for row in own.to_dict("records")]
    return pd.Series(found, index=rows.index, dtype=object)


def variant_text(row: dict) -> str:
    """As `variant`, for a reader: `contextual glove; with references`."""
    return variant(row).replace("_", " ")
