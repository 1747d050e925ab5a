"""Results as a LaTeX table that fits one column of a two-column paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from capbias_core.aggregate.estimate import VERDICTS
from capbias_core.aggregate.variants import variants
from capbias_core.measures.registry import variants_of
from capbias_core.types import counted
from capbias_core.views.sentence import intervals_over
from capbias_core.views.tables import KEYS, LETTERS, scores_table, shown_letters, value_parts

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
    "←": r"$\leftarrow$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "●": r"$\bullet$",
    "⚠": "(!)",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "§": r"\S{}",
    "¶": r"\P{}",
    "–": "--",
}


# Points: a column of the narrowest style in use (ACL), an em at \\footnotesize and at \\scriptsize (Computer Modern is
# wider where it is small), and what stands beside each column of a table.
COLUMN, EM, SMALL_EM, BESIDE = 219.0, 8.5, 8.0, 6.0
MOST_LINES = 50  # of a table: a page of that style holds 60 at \\footnotesize, and note and caption take some
LINES_OF_ROW = 2  # its values, and under them their intervals
NARROW, WIDE = frozenset(" .,:;'|!()[]fijlrt"), frozenset("mwMW%&±−@")
MARKS = "†‡§¶"  # of what the name of a column says in brackets, which would make it wide


@dataclass(frozen=True)
class Cell:
    """What a cell shows, as plain text: a value, raised letters, and an interval that stands under it."""

    value: str
    interval: str = ""
    letters: str = ""

    @property
    def width(self) -> float:
        """Points, roughly."""

        def points(text: str, em: float) -> float:
            return em * sum(0.36 if letter in NARROW else 0.88 if letter in WIDE else 0.56 for letter in text)

        above = points(self.value, EM) + points(self.letters, SMALL_EM)
        return BESIDE + max(above, points(self.interval, SMALL_EM))


def to_latex(frame: pd.DataFrame, metrics: Iterable[str] | None = None) -> str:
    """`scores_table` as a table for one column of a paper, with the package booktabs.

    Metrics that do not fit beside each other stand in blocks, one below the other, and blocks that do not fit on a page
    in further tables. A note under the table explains
    letters and intervals; comments before it say n, seeds and method. frame: also `lettered`. metrics: which (default:
    all).
    """
    table = scores_table(frame, metrics, lambda row: Cell(*value_parts(row)))
    letters = table.pop(LETTERS) if LETTERS in table else pd.Series("", table.index)
    shown = frame if metrics is None else frame[frame["metric"].isin(list(metrics))]
    keys = [name for name in KEYS if name in table]
    lettered = shown_letters(shown)
    metric_of = dict(zip(lettered["attribute"], lettered["metric"], strict=True))  # attribute -> the lettered metric
    attributes = table["attribute"] if "attribute" in table else [*shown["attribute"].iloc[:1]] * len(table)
    # What names of columns say in brackets, such as `with references`, becomes a mark; names beyond the marks stay.
    suffixes = {f" ({text.replace('_', ' ')})" for text in variants_of(frame) if text}
    suffix_of = {name: next((suffix for suffix in suffixes if name.endswith(suffix)), "") for name in table.columns}
    marks = dict(zip(dict.fromkeys(filter(None, suffix_of.values())), MARKS, strict=False))
    columns = {name: [Cell(name), *map(Cell, table[name])] for name in keys}
    for name in table.columns.drop(keys):
        cells = [cell if isinstance(cell, Cell) else Cell(cell) for cell in table[name]]
        by = [metric_of.get(attribute) == name for attribute in attributes]
        cells = [
            replace(cell, letters=letter) if here else cell
            for cell, letter, here in zip(cells, letters, by, strict=True)
        ]
        mark = marks.get(suffix_of[name], "")
        columns[name] = [Cell(name.removesuffix(suffix_of[name]), letters=mark) if mark else Cell(name), *cells]
    blocks = _blocks(keys, columns)
    width = len(keys) + len(blocks[0])
    tables: list[list[str]] = [[]]
    for block in blocks:
        head, *rows = zip(*(columns[name] for name in (*keys, *block)), strict=True)
        empty = [""] * (width - len(head))
        titles = [_row([*map(_above, head), *empty]), r"\midrule"]
        if len(tables[-1]) + len(titles) + LINES_OF_ROW >= MOST_LINES:
            tables.append([])
        tables[-1] += [r"\midrule"] * bool(tables[-1]) + titles
        for row in rows:
            lines = [_row([*map(_above, row), *empty])]
            if any(cell.interval for cell in row):
                below = (rf"{{\scriptsize {escape_latex(cell.interval)}}}" if cell.interval else "" for cell in row)
                lines.append(_row([*below, *empty]))
            if len(tables[-1]) + len(lines) > MOST_LINES:
                tables.append([*titles])
            tables[-1] += lines
    note = escape_latex(_note(shown, list(dict.fromkeys(lettered["metric"])), marks))
    caption = f"Bias in captions by labelled {escape_latex(', '.join(shown['attribute'].unique()))}"
    text = [*_comments(shown)]
    for number, lines in enumerate(tables, start=1):
        part = f", part {number} of {len(tables)}" if len(tables) > 1 else ""
        text += [
            r"\begin{table}[t]",
            r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
            rf"\begin{{tabular}}{{@{{}}{'l' * width}@{{}}}}",
            r"\toprule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\par\smallskip",
            rf"\parbox{{\columnwidth}}{{\scriptsize {note}}}",
            rf"\caption{{{caption}{part}.}}",
            rf"\label{{tab:capbias{f'-{number}' if number > 1 else ''}}}",
            r"\end{table}",
        ]
    return "\n".join([*text, ""])


def to_longtable(frame: pd.DataFrame, caption: str) -> str:
    """Cells as a table over as many pages as it takes, with the packages booktabs and longtable."""
    lines = [_row([escape_latex(cell) for cell in line]) for line in ([*frame], *frame.itertuples(index=False))]
    head, *rows = lines
    return "\n".join(
        [
            rf"\begin{{longtable}}{{{'l' * frame.shape[1]}}}",
            rf"\caption{{{escape_latex(caption)}}} \\",
            *(r"\toprule", head, r"\midrule", r"\endhead"),
            *rows,
            *(r"\bottomrule", r"\end{longtable}", ""),
        ]
    )


def _above(cell: Cell) -> str:
    raised = rf"\textsuperscript{{{escape_latex(cell.letters)}}}" if cell.letters else ""
    return escape_latex(cell.value) + raised


def _row(cells: Sequence[str]) -> str:
    row = " & ".join(cells)
    guard = "{}" if row.lstrip().startswith(("[", "*")) else ""  # else an argument of the \\ before
    return rf"{guard}{row} \\"


def _blocks(keys: Sequence[str], columns: dict[str, list[Cell]]) -> list[list[str]]:
    """The columns besides the keys in blocks of as many as fit beside these, at least one. Blocks share their columns,
    each as wide as its widest cell."""
    names = [name for name in columns if name not in keys]
    widths = {name: max(cell.width for cell in cells) for name, cells in columns.items()}
    for most in range(len(names), 0, -1):
        blocks = [names[start : start + most] for start in range(0, len(names), most)]
        shared = (max(widths[name] for name in names[column::most]) for column in range(most))
        if most == 1 or sum(widths[name] for name in keys) + sum(shared) <= COLUMN:
            return blocks
    return [[]]


def _note(frame: pd.DataFrame, lettered: Sequence[str], marks: dict[str, str]) -> str:
    """What stands in the cells, as far as it does. lettered: the metrics that have letters."""
    parts = []
    if frame["spread"].notna().any():
        seeds = " or ".join(str(seeds) for seeds in sorted({int(seeds) for seeds in frame["seeds"] if seeds}))
        parts.append(f"Value ± standard deviation over {seeds} attacker seeds.")
    if frame["ci_low"].notna().any():
        parts.append(f"In brackets the interval ({intervals_over(frame)}).")
    if lettered:
        parts.append(f"Captioners with the same letter do not differ significantly by {' or '.join(lettered)}.")
    if set(frame["verdict"]) & set(VERDICTS):
        parts.append("The verdict follows from LIC_by_H and LIC_by_M, where one attacker reads both sides.")
        if "LIC_cut" in set(frame["metric"]):
            parts.append("LIC_cut and the like are at equal length; the verdict must hold there too.")
    encoders = [name for name in dict.fromkeys(frame["encoder"]) if name]
    if len(encoders) == 1:
        parts.append(f"Attacker: {encoders[0]}.")
    parts += [f"{mark} {suffix[2:-1]}." for suffix, mark in marks.items()]
    return " ".join(parts)


def _comments(frame: pd.DataFrame) -> list[str]:
    """A line for each way of measuring: which metrics, on how many captions, with how many seeds."""
    lines = [f"% Value, std over attacker seeds, interval ({intervals_over(frame)}). Needs \\usepackage{{booktabs}}."]
    ways = ["attribute", "variant", "n", "seeds", "encoder", "method"]
    rows = frame.assign(variant=variants(frame))
    for (attribute, variant, n, seeds, encoder, method), group in rows.groupby(ways, sort=False):
        names, models = (", ".join(dict.fromkeys(group[name])) for name in ("metric", "model"))
        images = f", {variant.replace('_', ' ')}" if variant else ""
        attacker = f", {encoder}, {counted(seeds, 'seed')}" if seeds else ""
        lines.append(f"% {names} of {models} ({attribute}{images}): n = {n}{attacker}; {method}".replace("\n", " "))
    return lines


def escape_latex(text: object) -> str:
    """Text with LaTeX's special characters escaped, and a space for each control character.

    >>> escape_latex("LIC_M & 5%")
    'LIC\\\\_M \\\\& 5\\\\%'
    """
    return "".join(LATEX.get(letter, letter) if letter.isprintable() else " " for letter in str(text))
