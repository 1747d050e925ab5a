"""A Plotly figure as a file: SVG, PNG or PDF for a paper, and the data that it draws.

Pictures are drawn by a Chrome or Chromium on this machine, without a network and on a white ground.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from functools import cache
from html import escape, unescape
from typing import Any

import pandas as pd

from capbias_core.errors import CapbiasError, installed, missing_extra
from capbias_core.processes import python

FORMATS = {"svg": "image/svg+xml", "png": "image/png", "pdf": "application/pdf"}
WIDTH, HEIGHT = 900, 420  # pixels, of figures that do not say theirs
SHARPNESS = 3  # pixels of a PNG for each pixel of the figure
INK = "#1B2733"
TRIES, SECONDS = 2, 60  # of a browser; two to four seconds are usual
BREAK, TAG = re.compile("<br */?>"), re.compile("<[^>]+>")
BESIDE_TICK = 0.45  # units of an axis of names: dots of one name lie a little above and below it
NEAR = 1e-3  # of the width or height of a figure: the same place


@cache
def pictures_lack() -> str:
    """Why no picture can be drawn on this machine, '' where it can be."""
    if not installed("kaleido"):
        return str(missing_extra(["kaleido"], "A picture of a chart"))
    from choreographer.browsers.chromium import Chromium  # comes with kaleido, and finds what kaleido will use

    browser = Chromium.find_browser(skip_local=False)
    return "" if browser else "Pictures need Chrome or Chromium on the machine of the server, and there is none."


def picture(figure: Any, format: str, caption: str = "") -> bytes:
    """A Plotly figure with a caption below it as SVG, PNG or PDF. Raises CapbiasError where none can be drawn."""
    if lack := pictures_lack():
        raise CapbiasError(lack, "Install it, or download the data.")
    shown, below = figure.__class__(figure), 36
    title = {"text": escape(caption), "x": 0.5, "xanchor": "center", "y": 0, "yref": "container", "yanchor": "bottom"}
    shown.update_layout(title=title | {"pad": {"b": 10}, "font": {"size": 14}})
    shown.update_layout(height=(shown.layout.height or HEIGHT) + below, margin_b=(shown.layout.margin.b or 0) + below)
    shown.update_layout(template="plotly_white", paper_bgcolor="white", plot_bgcolor="white", font_color=INK)
    options = {"format": format, "scale": SHARPNESS if format == "png" else 1}
    options |= {"width": shown.layout.width or WIDTH, "height": shown.layout.height}
    asked = json.dumps({"figure": json.loads(shown.to_json() or ""), "opts": options}).encode()
    for _ in range(TRIES):
        if data := _of_browser(asked):
            return data
    raise CapbiasError("The image could not be exported.", "Try again, or download the data.")


def _of_browser(asked: bytes) -> bytes:
    """What a browser draws, b'' where it gave nothing in time: one that starts may wait for ever (seen in tests).

    In a process of its own, which ends together with its browser; kaleido's threads cannot be ended.
    """
    command, environment = python("-m", "capbias_core.views.pictures")
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=nowhere, env=environment, start_new_session=True
    ) as child:
        try:
            return child.communicate(asked, SECONDS)[0]
        except subprocess.TimeoutExpired:
            return b""
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)


def _draw() -> None:
    """A figure and its format as JSON on standard input; the picture on standard output."""
    import kaleido

    kaleido.start_sync_server(mathjax=False)  # without MathJax, which would be fetched
    asked = json.load(sys.stdin)
    drawn = kaleido.calc_fig_sync(asked["figure"], opts=asked["opts"])
    kaleido.stop_sync_server()
    sys.stdout.buffer.write(drawn)


def file_name(title: str) -> str:
    """A title as the name of a file, without its ending.

    >>> file_name("DBAC A→T (mine, gender)"), file_name("..")
    ('DBAC_AtoT_mine_gender', 'file')
    """
    return re.sub(r"[^\w.-]+", "_", title.replace("→", "to")).strip("._") or "file"


def figure_data(figure: Any) -> pd.DataFrame:
    """What a Plotly figure draws, a row per point: series, x and y with the ends of their intervals, about (the text of
    the point), and z of a heat map. panel, x_title and y_title name where that is drawn. Columns that hold nothing are
    left out, and so are lines that only join points and entries of the legend."""
    parts = []
    for trace in figure.data:
        # With gaps, as lines between pairs of points have, or one gap, as an entry of the legend is.
        gapped = trace.x is not None and bool(pd.isna(list(trace.x)).any())
        if not (trace.hoverinfo == "skip" and gapped):
            parts.append(_trace(figure, trace))
    return pd.concat(parts, ignore_index=True).dropna(axis="columns", how="all") if parts else pd.DataFrame()


def _trace(figure: Any, trace: Any) -> pd.DataFrame:
    axes = {axis: figure.layout[f"{axis}axis{(getattr(trace, f'{axis}axis', None) or axis)[1:]}"] for axis in "xy"}
    titles = {"panel": None} | {f"{axis}_title": _plain(axes[axis].title.text) for axis in "xy"}
    across, up = (axes[axis].domain or (0, 1) for axis in "xy")
    for note in figure.layout.annotations:  # the title over a panel is a text in the middle of its upper edge
        on_paper = (note.xref, note.yref) == ("paper", "paper") and None not in (note.x, note.y)
        if on_paper and abs(note.x - sum(across) / 2) < NEAR and abs(note.y - up[1]) < NEAR:
            titles["panel"] = _plain(note.text)
            break
    if trace.type == "heatmap":
        table = pd.DataFrame(trace.z, index=list(trace.y), columns=list(trace.x))
        cells = [(x, y, table.iat[row, column]) for row, y in enumerate(table.index) for column, x in enumerate(table)]
        return pd.DataFrame(cells, columns=["x", "y", "z"]).assign(**titles)
    values = {axis: getattr(trace, axis) for axis in "xy" if getattr(trace, axis) is not None}
    table = pd.DataFrame(
        {"series": _text(trace.name)} | {axis: list(map(_text, points)) for axis, points in values.items()}
    )
    for axis in values:
        error = getattr(trace, f"error_{axis}")
        if error.array is not None:
            below = error.array if error.arrayminus is None else error.arrayminus
            middle = pd.to_numeric(table[axis])
            table[f"{axis}_low"], table[f"{axis}_high"] = middle - list(below), middle + list(error.array)
    if isinstance(trace.hovertext, tuple) and len(trace.hovertext) == len(table):
        table["about"] = [_plain(text or "") for text in trace.hovertext]
    table = table.dropna(subset=list(values))
    for axis in values:
        # The first line of the label of the nearest tick.
        ticks, labels = axes[axis].tickvals or (), axes[axis].ticktext or ()
        named = {at: _plain(BREAK.split(label)[0]) for at, label in zip(ticks, labels, strict=False)}
        if named:
            table[axis] = [
                next((name for at, name in named.items() if at == value or _near(at, value)), value)
                for value in table[axis]
            ]
    return table.assign(**titles)


def _near(tick: Any, value: Any) -> bool:
    numbers = all(isinstance(each, int | float) for each in (tick, value))
    return numbers and abs(tick - value) < BESIDE_TICK


def _text(value: Any) -> Any:
    """A name as it is, without the escapes that a figure needs."""
    return unescape(value) if isinstance(value, str) else value


def _plain(text: str | None) -> str | None:
    """A text of a figure in one line, without markup."""
    return text and _text(TAG.sub("", BREAK.sub("; ", text)))


if __name__ == "__main__":
    _draw()
