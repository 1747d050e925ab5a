"""`agreement`: how far two tables of labels in a workspace agree."""

from __future__ import annotations

from typing import Annotated

from capbias_core.analysis.label_tables import compared, keep_agreed, tables_of
from capbias_core.cli.flags import INPUTS, WorkspaceFlag, command, flag
from capbias_core.cli.inputs import opened
from capbias_core.cli.terminal import DONE, say, show
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.present.label_agreement import OTHERS, agreement_line, counts_table
from capbias_core.present.table import to_text
from capbias_core.workspace.store import checked_name

app = command(
    "agreement",
    """\
  capbias agreement --collection coco --attribute gender
  capbias agreement labels "gender from human" --collection coco --attribute gender --keep agreed""",
)


@app.default
def agreement(
    *tables: Annotated[str, flag("two tables of labels, where there are more", "TABLE", INPUTS)],
    collection: Annotated[str, flag("the collection that holds them", "NAME", INPUTS)],
    attribute: Annotated[str, flag("the attribute that both hold", "NAME", INPUTS)] = "gender",
    keep: Annotated[str, flag("keep the labels on which they agree as a table of this name", "NAME", INPUTS)] = "",
    workspace: WorkspaceFlag = None,
) -> int:
    """Compare two tables of labels: the same label, by chance alone or beyond it, and which labels are confused."""
    with opened(workspace) as place:
        every = tables_of(place, collection)
        if attribute not in every:
            raise CapbiasError(
                f"Fewer than two tables of {collection} hold labels for {attribute}.",
                f"Import another table. Attributes that two tables hold: {', '.join(every) or 'none'}.",
            )
        held = {item.name: item for item in every[attribute]}
        for name in tables:
            if name not in held:
                raise unknown_name("table", name, held)
        named = tables or tuple(held)
        if len(named) != 2:
            raise CapbiasError(
                f"Two tables of labels are compared, and here are {len(named)}.", f"Name two of: {', '.join(held)}."
            )
        one, other = (held[name] for name in named)
        found = compared(place, attribute, one, other)
        show(agreement_line(found, attribute, one.name, other.name))
        show(to_text(counts_table(found, one.name)).rstrip("\n"))
        say(f"note: {OTHERS}")
        if keep:
            item = keep_agreed(place, attribute, [one, other], checked_name(keep))
            show(f"kept: attributes {item.name} in the collection {collection}, {item.images:,} images")
    return DONE
