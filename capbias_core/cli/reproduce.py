"""`reproduce`: the numbers of a bundle made again, and compared one by one."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from capbias_core.bundle.reproduce import TOLERANCE, Comparison, find_data, read_bundle, reproduce
from capbias_core.cli.flags import INPUTS, WHAT, command, flag
from capbias_core.cli.running import run_all
from capbias_core.cli.terminal import DONE, RUN_FAILED, say, show
from capbias_core.errors import CapbiasError
from capbias_core.present.table import to_text
from capbias_core.types import counted
from capbias_core.workspace.inputs import checked_path, temporary_workspace
from capbias_core.workspace.store import Workspace

app = command(
    "reproduce",
    f"""\
  capbias reproduce bundle.zip
  capbias reproduce bundle.zip --data results/ annotations/

Checks the content of the data, runs the plan in an empty workspace, without a network, and compares every number of
every row. On the same machine and versions all are equal to the last digit. Elsewhere processors sum in another order:
numbers count as equal within {TOLERANCE:g}, and the largest difference is printed. Exit code 1 if any row differs.""",
)


@app.default
def run(
    bundle: Annotated[str, flag("a bundle, from the page Scores or from export", "FILE", INPUTS)],
    *,
    data: Annotated[
        list[str] | None,
        flag("of a bundle without data: files or folders in which they are found by content", "FILE", INPUTS),
    ] = None,
    workspace: Annotated[
        str | None, flag("an empty folder in which to run and keep it (default: a temporary one)", "FOLDER", INPUTS)
    ] = None,
    tolerance: Annotated[
        float, flag(f"how far numbers may be off (default: {TOLERANCE:g})", "NUMBER", WHAT)
    ] = TOLERANCE,
) -> int:
    """Make the numbers of a bundle again and compare them."""
    if not tolerance >= 0:
        raise CapbiasError(f"--tolerance is {tolerance:g}, which is below 0.", "Give another, or leave it out.")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="capbias-") as folder:
        read = read_bundle(checked_path(bundle), Path(folder) / "bundle")
        frames = find_data(read, map(checked_path, data or ()), say)
        say(f"{counted(len(read.items), 'input')} with the content that the bundle names")
        with _place(workspace) as place:
            found = reproduce(place, read, frames, run_all, tolerance)
    return _told(found, tolerance, time.monotonic() - began)


@contextmanager
def _place(folder: str | None) -> Iterator[Workspace]:
    if folder:
        yield Workspace(folder)
        return
    with temporary_workspace() as workspace:
        yield workspace


def _told(found: Comparison, tolerance: float, seconds: float) -> int:
    """The comparison for a reader; returns the exit code."""
    for reason in found.reasons:
        say(f"error: {reason}")
    for name, (there, here) in found.versions.items():
        say(f"note: {name} {there} made the bundle, {here} is here")
    differing = found.rows - found.same - found.near
    show(f"rows         {found.rows:,}")
    show(f"rows equal   {found.same + found.near:,}")
    if found.near:
        show(f"             {found.same:,} to the last digit, {found.near:,} within {tolerance:g}")
    elif found.same:
        show("             to the last digit")
    show(f"rows differ  {differing:,}")
    show(f"largest difference {found.largest:.3g}, {seconds:.0f} s")
    if differing:
        show("\n" + to_text(found.differ).rstrip("\n"))
    return RUN_FAILED if differing else DONE
