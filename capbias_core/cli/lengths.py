"""`lengths`: leakage of captions that are cut after more and more words."""

from __future__ import annotations

from typing import Annotated

from capbias_core.analysis.lengths import CUTS, by_length, cut_of, keep_cuts
from capbias_core.attackers import DEFAULT_ATTACKER
from capbias_core.cli.flags import INPUTS, WHAT, OutputFlag, SeedsFlag, WorkspaceFlag, command, drawn, flag
from capbias_core.cli.inputs import known_collection, opened
from capbias_core.cli.running import outcome, run_all
from capbias_core.cli.terminal import DONE, checked_output, say, write_output
from capbias_core.prepare.shorten import cut_text
from capbias_core.runs.plan import Request, plan
from capbias_core.spreadsheets import csv_text
from capbias_core.workspace.labels import table_with

app = command(
    "lengths",
    """\
  capbias lengths --collection coco --captioner llava_long vinvl --attribute gender --output lengths.csv

One row per metric and cut: of (the captioner), cut, words (mean words of a caption), then the columns of `score`.
Captions that are shorter than a cut stay whole. The human captions are not cut.""",
)


@app.default
def lengths(
    *,
    collection: Annotated[str, flag("the collection", "NAME", INPUTS)],
    captioner: Annotated[list[str], flag("caption sets, as they were written", "NAME", INPUTS)],
    attribute: Annotated[str, flag("the protected attribute", "NAME", INPUTS)] = "gender",
    references: Annotated[str, flag("human captions (default: none, LIC_M alone)", "NAME", INPUTS)] = "",
    cut: Annotated[
        list[int] | None,
        flag(f"after how many words; 0: after the first sentence (default: {' '.join(map(str, CUTS))})", "WORDS", WHAT),
    ] = None,
    attacker: Annotated[str, flag("who guesses", "NAME", WHAT)] = DEFAULT_ATTACKER,
    seeds: SeedsFlag = None,
    workspace: WorkspaceFlag = None,
    output: OutputFlag = None,
) -> int:
    """Cut captions after more and more words and score each cut: does a captioner give more away, or write more?"""
    path = checked_output(output)
    with opened(workspace) as place:
        known_collection(place, collection)
        sets, cuts = [], CUTS if cut is None else cut
        for name in captioner:
            kept = keep_cuts(place, collection, name, cuts)
            sets += [item.name for item in kept]
            if nothing := [own for own in map(cut_text, cuts) if own not in map(cut_of, kept)]:
                say(f"note: {name}: {', '.join(nothing)} cut no caption and have no rows.")
        table = table_with(place.items("attributes", collection), attribute).name
        more = {"attacker": attacker, "seeds": drawn(seeds)}
        specs = plan(place, Request(collection, (*captioner, *sets), table, attribute, ("lic",), references, **more))
        runs = run_all(place, specs, collection)
        rows = by_length(place, collection, place.results({spec.run_id for spec in specs}))
        write_output(csv_text(rows), path)
        return outcome(runs) if runs else DONE
