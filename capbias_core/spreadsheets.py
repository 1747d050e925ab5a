"""Tables as CSV in which no text is a formula: a spreadsheet program computes what begins with = + - @, tab or CR."""

from __future__ import annotations

import re

import pandas as pd

# Some programs drop white space before they look for a formula.
FORMULA = re.compile(r"'*(?:[\t\r]|\s*[=+\-@＝＋－＠])")

# Python 3.11 quotes a text with a CR only if lines end with one; a cell would begin a line of its own.
END = "\r\n\0"


def csv_text(frame: pd.DataFrame) -> str:
    """A table as CSV without its index. Texts that a spreadsheet program would compute, names of columns too, get an
    apostrophe before them; numbers stay as they are.

    >>> csv_text(pd.DataFrame({"model": ["=1+1", "sat", "-2"], "value": [-1.5, 2, 3]}))
    "model,value\\n'=1+1,-1.5\\nsat,2.0\\n-2,3.0\\n"
    """
    texts = frame.columns[[not pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes]]
    quoted = frame.assign(**{name: frame[name].map(_quoted, na_action="ignore") for name in texts})
    return quoted.rename(columns=_quoted).to_csv(index=False, lineterminator=END).replace(END, "\n")


def _quoted(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) and not _is_number(value) else value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.strip() == text
