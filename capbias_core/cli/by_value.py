"""`by-value`: LIC_M by labelled value of finished runs."""

from __future__ import annotations

from typing import Annotated

from capbias_core.analysis.cells import beyond_parts, by_value, cells_left_out, runs_by_value
from capbias_core.attackers import DEFAULT_ATTACKER
from capbias_core.cli.flags import INPUTS, WorkspaceFlag, command, flag
from capbias_core.cli.inputs import known_collection, opened
from capbias_core.cli.terminal import DONE, say, show
from capbias_core.errors import CapbiasError
from capbias_core.present.cells import BEYOND, BY_VALUE, beyond_table, by_value_table, no_beyond
from capbias_core.present.table import to_text

app = command(
    "by-value",
    """\
  capbias score --collection coco --attribute gender --metric lic
  capbias by-value --collection coco --attribute gender""",
)


@app.default
def print_by_value(
    *,
    collection: Annotated[str, flag("the collection", "NAME", INPUTS)],
    attribute: Annotated[str, flag("the attribute, such as gender or gender x race", "NAME", INPUTS)] = "gender",
    attacker: Annotated[str, flag("the attacker whose runs are read", "NAME", INPUTS)] = DEFAULT_ATTACKER,
    references: Annotated[str, flag("human captions (default: those of the best answer)", "NAME", INPUTS)] = "",
    workspace: WorkspaceFlag = None,
) -> int:
    """Whose captions give most away: LIC_M by labelled value, from finished runs of LIC."""
    with opened(workspace) as place:
        human = place.item("references", references, known_collection(place, collection)) if references else None
        runs = runs_by_value(place, known_collection(place, collection), attribute, attacker, human)
        if not runs:
            raise CapbiasError(
                f"{collection} has no finished run of LIC for {attribute} by {attacker}.",
                f'Run: capbias score --collection "{collection}" --attribute "{attribute}" --metric lic',
            )
        show(to_text(by_value_table({name: by_value(place, run) for name, run in runs.items()})).rstrip("\n"))
        say(f"note: {BY_VALUE}")
        crossed = {name: found for name, run in runs.items() if (found := beyond_parts(place, run)) is not None}
        if crossed:
            show("\n" + to_text(beyond_table(crossed)).rstrip("\n"))
            say(f"note: {BEYOND}")
        elif left_out := max(map(cells_left_out, runs.values())):
            say(f"note: {no_beyond(left_out)}")
    return DONE
