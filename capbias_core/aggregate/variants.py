"""What a row of the results table was measured on or with, in words: for headings, and to tell series apart."""

from __future__ import annotations

import pandas as pd

# The columns that make two rows of one metric different things, in the order in which they are named.
ORIGINS = ("condition", "photographs", "prompt", "alignment", "coverage", "object", "group")
INPUTS = ("labels", "references")  # what rows read: named only if rows of one attribute read several
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
    """Every row's; with the labels and the human captions where several are among the rows of an attribute."""
    known = [name for name in INPUTS if name in rows]
    several = [name for name in known if (rows[rows[name] != ""].groupby("attribute")[name].nunique() > 1).any()]
    columns = rows[[*(name for name in ORIGINS if name in rows), *several]]
    texts = [
        "; ".join(filter(None, (variant(row), *(row[name] for name in several)))) for row in columns.to_dict("records")
    ]
    return pd.Series(texts, index=rows.index, dtype=object)
