"""`cross`: the labels of two attributes of a collection as one table of cells."""

from __future__ import annotations

from typing import Annotated

from capbias_core.cli.flags import INPUTS, WorkspaceFlag, command, flag
from capbias_core.cli.inputs import known_collection, opened
from capbias_core.cli.terminal import DONE, show
from capbias_core.workspace.crossing import cross, keep_crossed

app = command(
    "cross",
    """\
  capbias cross gender race --collection coco
  capbias score --collection coco --attribute "gender x race" --metric lic
  capbias by-value --collection coco --attribute "gender x race"

Each combination of values is a cell. Cells with fewer than 100 labelled images are left out: a split of 90/10 would
test on less than ten of them.""",
)


@app.default
def cross_two(
    first: Annotated[str, flag("an attribute that the collection holds labels of", "FIRST", INPUTS)],
    second: Annotated[str, flag("another", "SECOND", INPUTS)],
    /,
    *,
    collection: Annotated[str, flag("the collection", "NAME", INPUTS)],
    table: Annotated[
        str, flag("the table whose labels count (default: of each the newest that is given)", "NAME", INPUTS)
    ] = "",
    dry_run: Annotated[bool, flag("only count the cells", group=INPUTS)] = False,
    workspace: WorkspaceFlag = None,
) -> int:
    """Make one attribute of two, whose values are the cells of both, and keep its labels."""
    with opened(workspace) as opened_workspace:
        crossing = cross(opened_workspace, known_collection(opened_workspace, collection), first, second, table)
        show(crossing.line())
        if not dry_run:
            item = keep_crossed(opened_workspace, collection, crossing)
            show(f"kept: attributes {item.name} in the collection {collection}")
    return DONE
