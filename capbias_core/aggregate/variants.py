"""What a row of the results table was measured on or with, in words: for headings, and to tell series apart."""

from __future__ import annotations

import pandas as pd

# The columns that make two rows of one metric different things, in the order in which they are named.
ORIGINS = ("condition", "photographs", "prompt", "alignment", "coverage", "object", "group")
# What rows read, if a column names it: named only if rows of one attribute read several.
INPUTS = ("labels", "references")
# The usual, which is not named. A paper that compares alignments prints both as its condition, which is named.
USUAL = {"alignment": "constant"}


def variant(row: dict) -> str:
    """One row's in words, '' for the usual.

    >>> variant({"condition": "", "alignment": "contextual_glove", "coverage": "with_references"})
    'contextual_glove; with_references'
    """
    named = ((name, row.get(name)) for name in ORIGINS)
    return "; ".join(text for name, text in named if isinstance(text, str) and text and text != USUAL.get(name))


def variants(rows: pd.DataFrame) -> pd.Series:
    """Every row's; with the table of labels and the human captions where there are columns of them, and several are
    among the rows of an attribute."""
    several = [name for name in INPUTS if name in rows and _several(rows, name)]
    columns = rows[[*(name for name in ORIGINS if name in rows), *several]]
    texts = [
        "; ".join(filter(None, (variant(row), *(row[name] for name in several)))) for row in columns.to_dict("records")
    ]
    return pd.Series(texts, index=rows.index, dtype=object)


def _several(rows: pd.DataFrame, name: str) -> bool:
    return bool((rows[rows[name] != ""].groupby("attribute")[name].nunique() > 1).any())


def variant_text(row: dict) -> str:
    """As `variant`, for a reader: `contextual glove; with references`."""
    return variant(row).replace("_", " ")
