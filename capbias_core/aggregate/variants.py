"""What a row of the results table was measured on or with, in words: for headings, and to tell series apart."""

from __future__ import annotations

import pandas as pd

# The columns that make two rows of one metric different things, in the order in which they are said.
ORIGINS = ("condition", "photographs", "prompt", "alignment", "coverage", "object", "group")
# What is usual, and not said. A paper that compares alignments prints both as its condition, which is said.
USUAL = {"alignment": "constant"}


def variant(row: dict) -> str:
    """One row's in words, '' for the usual.

    >>> variant({"condition": "", "alignment": "contextual_glove", "coverage": "with_references"})
    'contextual_glove; with_references'
    """
    said = ((name, row.get(name)) for name in ORIGINS)
    return "; ".join(text for name, text in said if isinstance(text, str) and text and text != USUAL.get(name))


def variants(rows: pd.DataFrame) -> pd.Series:
    """Every row's."""
    own = rows[[name for name in ORIGINS if name in rows]]
    found = [variant(row) for row in own.to_dict("records")]
    return pd.Series(found, index=rows.index, dtype=object)


def variant_text(row: dict) -> str:
    """As `variant`, for a reader: `contextual glove; with references`."""
    return variant(row).replace("_", " ")
