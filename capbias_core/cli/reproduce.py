"""`reproduce`: recompute the numbers of a bundle, and compare them one by one."""

from __future__ import annotations

import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

from capbias_core.bundle.reproduce import TOLERANCE, find_data, read_bundle, reproduce
from capbias_core.cli.flags import INPUTS, WHAT, command, flag
from capbias_core.cli.running import run_all
from capbias_core.cli.terminal import DONE, RUN_FAILED, say, show, show_table
from capbias_core.errors import CapbiasError
from capbias_core.types import counted
from capbias_core.workspace.inputs import checked_path, temporary_workspace
from capbias_core.workspace.store import Workspace

app = command(
    "reproduce",
    f"""\
  capbias reproduce bundle.zip
  capbias reproduce bundle.zip --data results/ annotations/

Checks the content of the data, runs the plan in an empty workspace without a network, and compares each number. On the
same machine and versions all digits are equal. Other processors sum in another order: numbers are equal within
{TOLERANCE:g}, and the largest difference is printed. The exit code is 1 if any row differs.""",
)


@app.default
def run(
    bundle: Annotated[str, flag("a bundle, from the page Scores or from export", "FILE", INPUTS)],
    *,
    data: Annotated[
        list[str] | None, flag("files or folders with the data, for a bundle without data", "FILE", INPUTS)
    ] = None,
    workspace: Annotated[
        str | None, flag("an empty folder in which to run and keep it (default: a temporary one)", "FOLDER", INPUTS)
    ] = None,
    tolerance: Annotated[
        float, flag(f"largest difference of equal numbers (default: {TOLERANCE:g})", "NUMBER", WHAT)
    ] = TOLERANCE,
) -> int:
    """Recompute the numbers of a bundle, and list the differences."""
    if not tolerance >= 0:
        raise CapbiasError(f"--tolerance is {tolerance:g}, which is below 0.", "Give another, or leave it out.")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="capbias-") as folder:
        read = read_bundle(checked_path(bundle), Path(folder) / "bundle")
        frames = find_data(read, map(checked_path, data or ()), say)
        say(f"{counted(len(read.items), 'input')} with the content that the bundle names")
        with nullcontext(Workspace(workspace)) if workspace else temporary_workspace() as store:
            compared = reproduce(store, read, frames, run_all, tolerance)
    for reason in compared.reasons:
        say(f"error: {reason}")
    for name, (there, here) in compared.versions.items():
        say(f"note: {name} {there} made the bundle, {here} is here")
    equal = compared.same + compared.near
    show(f"rows         {compared.rows:,}")
    show(f"rows equal   {equal:,}")
    if compared.near:
        show(f"             {compared.same:,} to the last digit, {compared.near:,} within {tolerance:g}")
    elif compared.same:
        show("             to the last digit")
    show(f"rows differ  {compared.rows - equal:,}")
    show(f"largest difference {compared.largest:.3g}, {time.monotonic() - began:.0f} s")
    if equal == compared.rows:
        return DONE
    show_table(compared.differ, before="\n")
    return RUN_FAILED
