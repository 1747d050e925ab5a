"""`conditions`: a captioner's metrics against what was masked on the photographs, as CSV."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import pandas as pd

from capbias_core.analysis.conditions import COLUMNS, condition_rows
from capbias_core.analysis.read import references_read, tables_read
from capbias_core.attackers import DEFAULT_ATTACKER, attacker_entry
from capbias_core.cli.flags import ATTACKERS as ATTACKER_FLAGS
from capbias_core.cli.flags import (
    INPUTS,
    WHAT,
    Flags,
    OutputFlag,
    SeedsFlag,
    WorkspaceFlag,
    choices_of,
    command,
    drawn,
    flag,
    given,
)
from capbias_core.cli.inputs import known_collection, opened
from capbias_core.cli.running import outcome, run_all
from capbias_core.cli.terminal import DONE, checked_output, say, write_output
from capbias_core.errors import CapbiasError
from capbias_core.measures.options import Attacked
from capbias_core.runs.condition_runs import AGAINST_CONDITION, plan_conditions
from capbias_core.spreadsheets import csv_text
from capbias_core.workspace.conditions import condition_sets, taken_of_several
from capbias_core.workspace.store import Workspace

app = command(
    "conditions",
    """\
  capbias import sat_masked_person.json --kind captions --captioner sat --condition person
  capbias conditions --collection "my captions" --captioner sat --attribute gender race

One row per metric and condition. masked: what was masked on the photographs; model: the set whose value it is.
to_original: the value minus that on the originals, paired over the images that both have; original_there: the
originals' value on those; to_neutral: the value minus the metric's neutral point (chance, for LIC_M); differences with
their 95% interval (_low, _high). dba gives DBA_G, which is BA→ from T to A. What is not measured yet is measured
first.""",
)


class Training(choices_of(Attacked, "attacker", "device", "deterministic", group=ATTACKER_FLAGS)):
    """Choices of attackers."""


NO_TRAINING = Training()


@app.default
def conditions(
    *,
    collection: Annotated[str, flag("the collection", "NAME", INPUTS)],
    captioner: Annotated[
        list[str] | None, flag("captioners (default: all with captions under two conditions or more)", "NAME", INPUTS)
    ] = None,
    attribute: Annotated[list[str], flag("protected attributes", "NAME", INPUTS)],
    references: Annotated[
        str, flag("human captions (default: those of the best answer, else of most images)", "NAME", INPUTS)
    ] = "",
    set: Annotated[
        list[str] | None,
        flag(
            "of several sets of one captioner and condition, those to measure (default: the newest; it is said which)",
            "NAME",
            INPUTS,
        ),
    ] = None,
    workspace: WorkspaceFlag = None,
    metric: Annotated[
        list[str] | None,
        flag(f"one or more of: {', '.join(AGAINST_CONDITION)} (default: all that the collection allows)", "NAME", WHAT),
    ] = None,
    measured: Annotated[bool, flag("print what is measured already, and run nothing", group=WHAT)] = False,
    training: Annotated[Training, Flags] = NO_TRAINING,
    seeds: SeedsFlag = None,
    output: OutputFlag = None,
) -> int:
    """Put a captioner's metrics against what was masked on the photographs, as CSV."""
    path, chosen, sets = checked_output(output), given(training, Attacked), tuple(set or ())
    attacker = chosen.pop("attacker", DEFAULT_ATTACKER)
    with opened(workspace) as place:
        known_collection(place, collection)
        captioners = captioner or _masked(place, collection)
        for name in captioners:
            for line in taken_of_several(place, collection, name, sets):
                say(f"note: of several sets of {name}, {line}; choose with --set")
        read = tables_read(place, collection)
        human = references_read(place, collection)
        if references:
            human = dict.fromkeys(attribute, place.item("references", references, collection))
        pairs = [(name, own) for name in captioners for own in attribute]
        code = DONE
        if not measured:
            specs = {}
            for name, own in pairs:
                against = human[own].name if own in human else ""
                asked = (attacker, drawn(seeds), tuple(metric or AGAINST_CONDITION), against, chosen, sets)
                found = plan_conditions(place, collection, name, own, *asked, table=read.get(own))
                specs |= {spec.run_id: spec for spec in found.specs}
                for line in found.lacking:
                    say(f"note: {line}")
            code = outcome(run_all(place, list(specs.values()), collection))
        judge = attacker_entry(attacker).name
        rows_of = partial(condition_rows, place, collection, attacker=judge, chosen=sets)
        frame = pd.concat(
            [
                rows_of(captioner=name, attribute=own, table=read.get(own), references=human.get(own))
                for name, own in pairs
            ],
            ignore_index=True,
        )
    if len(frame):
        write_output(csv_text(frame[list(COLUMNS)]), path)
        return code
    if code != DONE:
        return code
    raise CapbiasError(
        "No number is measured already." if measured else "No captioner has numbers under two conditions.",
        "Leave out --measured to measure it." if measured else "The lines above say what is missing.",
    )


def _masked(workspace: Workspace, collection: str) -> list[str]:
    found = [name for name, sets in condition_sets(workspace, collection).items() if len(sets) > 1]
    if not found:
        raise CapbiasError(
            f"No captioner of {collection} has captions of masked photographs.",
            "Import captions of the same photographs, original and masked, with --captioner NAME --condition NAME.",
        )
    return found
