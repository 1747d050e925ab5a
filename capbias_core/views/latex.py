"""A view's table in LaTeX: the columns that are shown, no wider than the text, over several pages if it is long."""

from __future__ import annotations

import re
from collections.abc import Iterable

from capbias_core.views.view import Table

LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: rf"\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "[": "{[}",  # at the start of a line it would be an argument of the line break before it
    "]": "{]}",
    "*": "{*}",  # so would a star
    "±": r"$\pm$",
    "−": r"$-$",
    "→": r"$\rightarrow$",
    "–": "--",
    "²": r"$^2$",
    "⚠": "(!)",
}
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\ufeff]")
LONG = 45  # lines of a page
PACKAGES = "% Needs the packages booktabs, graphicx and longtable."


def escape_latex(text: object) -> str:
    """Text with LaTeX's special characters escaped, and without control characters.

    >>> escape_latex("LIC_M & 5%")
    'LIC\\\\_M \\\\& 5\\\\%'
    >>> escape_latex("[1] *")
    '{[}1{]} {*}'
    """
    return "".join(LATEX.get(character, character) for character in CONTROL.sub(" ", str(text)))


def to_latex(table: Table, caption: str, note: str = "") -> str:
    """A table with its caption and a note below. An interval stands under its number."""
    form = "".join("l" if column.digits is None else "r" for column in table.fields.values())
    head = _line(map(escape_latex, table.fields))
    rows = [_line(map(_cell, row)) for row in table.texts.itertuples(index=False, name=None)]
    body = [r"\toprule", head, r"\midrule"]
    caption, note = escape_latex(caption), escape_latex(note)
    if len(rows) > LONG:
        lines = [rf"\begin{{longtable}}{{{form}}}", rf"\caption{{{caption} {note}}} \\", *body, r"\endhead"]
        return "\n".join([PACKAGES, *lines, *rows, r"\bottomrule", r"\end{longtable}", ""])
    lines = [r"\begin{table}[t]", r"\centering\footnotesize\setlength{\tabcolsep}{3pt}", rf"\caption{{{caption}}}"]
    lines += [r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"]
    lines += [rf"\begin{{tabular}}{{@{{}}{form}@{{}}}}", *body, *rows, r"\bottomrule", r"\end{tabular}}"]
    lines += [r"\par\smallskip", rf"\parbox{{\linewidth}}{{\scriptsize {note}}}", r"\end{table}", ""]
    return "\n".join([PACKAGES, *lines])


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _cell(text: str) -> str:
    value, bracket, interval = text.partition(" [")
    if not bracket or not interval.endswith("]"):
        return escape_latex(text)
    below = escape_latex(f"[{interval}")
    return rf"\shortstack[r]{{{escape_latex(value)}\\{{\scriptsize {below}}}}}"
