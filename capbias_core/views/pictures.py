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
from html import escape
from typing import Any

from capbias_core.errors import CapbiasError, installed, missing_extra
from capbias_core.processes import python

FORMATS = {"svg": "image/svg+xml", "png": "image/png", "pdf": "application/pdf"}
WIDTH, HEIGHT = 900, 420  # pixels, of figures that do not say theirs
SHARPNESS = 3  # pixels of a PNG for each pixel of the figure
INK = "#1B2733"
TRIES, SECONDS = 2, 60  # of a browser; two to four seconds are usual
BREAK, TAG = re.compile("<br */?>"), re.compile("<[^>]+>")


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


if __name__ == "__main__":
    _draw()
