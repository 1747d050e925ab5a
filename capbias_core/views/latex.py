"""Results as a LaTeX table that fits one column of a two-column paper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from capbias_core.aggregate.estimate import VERDICTS
from capbias_core.aggregate.variants import variants
from capbias_core.types import counted
from capbias_core.views.sentence import intervals_over
from capbias_core.views.tables import LETTERS, scores_table, shown_letters

LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "−": r"$-$",
    "→": r"$\rightarrow$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "§": r"\S{}",
    "¶": r"\P{}",
    "–": "--",
}


# Points: a column of the narrowest style in use (ACL), an em at \footnotesize and at \scriptsize (Computer Modern is
# wider where it is small), and what stands beside each column of a table.
COLUMN, EM, SMALL_EM, BESIDE = 219.0, 8.5, 8.0, 6.0
NARROW, WIDE = frozenset(" .,:;'|!()[]fijlrt"), frozenset("mwMW%&±−@")


def _points(text: str, em: float) -> float:
    """How wide a text is set, roughly."""
    return em * sum(0.36 if letter in NARROW else 0.88 if letter in WIDE else 0.56 for letter in text)


KEYS = ("captioner", "attribute", "encoder")
BRACKETS = re.compile(r" \(([^()]+)\)$")
MARKS = "†‡§¶"  # of what the name of a column says in brackets, which would make it wide


@dataclass(frozen=True)
class Cell:
    """What a cell shows, as plain text: a value, raised letters, and an interval that stands under it."""

    value: str
    letters: str = ""
    interval: str = ""

    @property
    def width(self) -> float:
        """Points, roughly."""
        above = _points(self.value, EM) + _points(self.letters, SMALL_EM)
        return BESIDE + max(above, _points(self.interval, SMALL_EM))

    @property
    def above(self) -> str:
        """The value as LaTeX."""
        raised = r"\textsuperscript{" + escape_latex(self.letters) + "}" if self.letters else ""
        return escape_latex(self.value) + raised

    @property
    def below(self) -> str:
        """The interval as LaTeX."""
        return r"{\scriptsize " + escape_latex(self.interval) + "}" if self.interval else ""


def to_latex(frame: pd.DataFrame, metrics=None) -> str:
    """`scores_table` as a table for one column of a paper, with the package booktabs.

    Metrics that do not fit beside each other stand in blocks, one below the other. A note under the table explains
    letters and intervals; comments before it say n, seeds and method. frame: also `lettered`. metrics: which (default:
    all).
    """
    table = scores_table(frame, metrics)
    letters = table.pop(LETTERS) if LETTERS in table else pd.Series("", table.index)
    shown = frame if metrics is None else frame[frame["metric"].isin(list(metrics))]
    keys = [name for name in KEYS if name in table]
    marks = _marks(table.columns)
    told = shown_letters(shown)
    note = escape_latex(_note(shown, list(dict.fromkeys(told["metric"])), marks))
    told_by = dict(zip(told["attribute"], told["metric"], strict=True))
    attributes = table["attribute"] if "attribute" in table else [*shown["attribute"].iloc[:1]] * len(table)
    columns = {name: [Cell(name), *map(Cell, table[name])] for name in keys}
    for name in table.columns.drop(keys):
        by = [told_by.get(attribute) == name for attribute in attributes]
        own = [letter if here else "" for letter, here in zip(letters, by, strict=True)]
        columns[name] = [_head(name, marks), *map(_number, table[name], own)]
    blocks = _blocks(keys, columns)
    width = len(keys) + len(blocks[0])
    lines = [r"\toprule"]
    for block in blocks:
        lines += _block([columns[name] for name in (*keys, *block)], width)
    return "\n".join(
        [
            *_latex_comments(shown),
            r"\begin{table}[t]",
            r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
            rf"\begin{{tabular}}{{@{{}}{'l' * width}@{{}}}}",
            *lines[:-1],
            r"\bottomrule",
            r"\end{tabular}",
            r"\par\smallskip",
            rf"\parbox{{\columnwidth}}{{\scriptsize {note}}}",
            rf"\caption{{Bias in captions by labelled {escape_latex(', '.join(shown['attribute'].unique()))}.}}",
            r"\label{tab:capbias}",
            r"\end{table}",
            "",
        ]
    )


def _marks(names: Iterable[str]) -> dict[str, str]:
    """A mark for each of the first things that names of columns say in brackets, such as `with references`."""
    said = dict.fromkeys(found[1] for name in names if (found := BRACKETS.search(name)))
    return dict(zip(said, MARKS, strict=False))


def _head(name: str, marks: dict[str, str]) -> Cell:
    found = BRACKETS.search(name)
    return Cell(name[: found.start()], marks[found[1]]) if found and found[1] in marks else Cell(name)


def _number(text: str, letters: str) -> Cell:
    """The cell of a text such as `8.7 ±0.9 [6.9, 10.4]`, with minus signs."""
    value, _, interval = re.sub(r"(?<![\w.])-(?=\d)", "−", text).partition(" [")
    return Cell(value, letters, f"[{interval}" if interval else "")


def _blocks(keys: Sequence[str], columns: dict[str, list[Cell]]) -> list[list[str]]:
    """The columns besides the keys in blocks of as many as fit beside these, at least one. Blocks share their columns,
    each as wide as its widest cell."""
    names = [name for name in columns if name not in keys]
    widths = {name: max(cell.width for cell in cells) for name, cells in columns.items()}
    own = sum(widths[name] for name in keys)
    for most in range(len(names), 0, -1):
        blocks = [names[start : start + most] for start in range(0, len(names), most)]
        shared = (max(widths[name] for name in names[place::most]) for place in range(most))
        if most == 1 or own + sum(shared) <= COLUMN:
            return blocks
    return [[]]


def _block(columns: Sequence[list[Cell]], width: int) -> list[str]:
    """The lines of one block, a rule after it: its names, then a row a captioner, with a second one for intervals."""
    head, *rows = zip(*columns, strict=True)
    empty = [""] * (width - len(columns))
    lines = [_row([*(cell.above for cell in head), *empty]), r"\midrule"]
    for row in rows:
        lines.append(_row([*(cell.above for cell in row), *empty]))
        if any(cell.interval for cell in row):
            lines.append(_row([*(cell.below for cell in row), *empty]))
    return [*lines, r"\midrule"]


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _note(frame: pd.DataFrame, told_by: Sequence[str], marks: dict[str, str]) -> str:
    """What stands in the cells, as far as it does."""
    parts = []
    if frame["spread"].notna().any():
        seeds = " or ".join(str(own) for own in sorted({int(own) for own in frame["seeds"] if own}))
        parts.append(f"Value ± standard deviation over {seeds} attacker seeds.")
    if frame["ci_low"].notna().any():
        parts.append(f"In brackets the interval ({intervals_over(frame)}).")
    if told_by:
        parts.append(f"Captioners that share a letter are not told apart by {' or '.join(told_by)}.")
    if set(frame["verdict"]) & set(VERDICTS):
        parts.append("The verdict follows from LIC_by_H and LIC_by_M, where one attacker reads both sides.")
    encoders = [own for own in dict.fromkeys(frame["encoder"]) if own]
    if len(encoders) == 1:
        parts.append(f"Attacker: {encoders[0]}.")
    parts += [f"{mark} {said}." for said, mark in marks.items()]
    return " ".join(parts)


def _latex_comments(frame: pd.DataFrame) -> list[str]:
    """A line for each way of measuring: which metrics, on how many captions, with how many seeds."""
    lines = [f"% Value, std over attacker seeds, interval ({intervals_over(frame)}). Needs \\usepackage{{booktabs}}."]
    ways = ["attribute", "variant", "n", "seeds", "encoder", "method"]
    for (attribute, said, n, seeds, encoder, method), group in frame.assign(variant=variants(frame)).groupby(
        ways, sort=False
    ):
        names, models = (", ".join(dict.fromkeys(group[name])) for name in ("metric", "model"))
        images = f", {said.replace('_', ' ')}" if said else ""
        attacker = f", {encoder}, {counted(seeds, 'seed')}" if seeds else ""
        lines.append(f"% {names} of {models} ({attribute}{images}): n = {n}{attacker}; {method}".replace("\n", " "))
    return lines


def escape_latex(text: object) -> str:
    """Text with LaTeX's special characters escaped.

    >>> escape_latex("LIC_M & 5%")
    'LIC\\\\_M \\\\& 5\\\\%'
    """
    return "".join(LATEX.get(character, character) for character in str(text))
