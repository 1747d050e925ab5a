"""`conditions`: a captioner's metrics against what was masked on the photographs, as CSV."""

from __future__ import annotations

import pandas as pd

from capbias_core.analysis.conditions import COLUMNS, condition_rows
from capbias_core.attackers import attacker_entry
from capbias_core.cli.inputs import known_collection, opened
from capbias_core.cli.running import outcome, run_all
from capbias_core.cli.terminal import DONE, checked_output, say, write_output
from capbias_core.errors import CapbiasError
from capbias_core.runs.condition_runs import ASKED, plan_conditions
from capbias_core.workspace.conditions import condition_sets, taken_of_several

EXAMPLE = """\
  python -m capbias_core import sat_masked_person.json --kind captions --captioner sat --condition person
  python -m capbias_core conditions --collection "my captions" --captioner sat --attribute gender race

One row a metric and condition. masked: what was masked on the photographs; model: the set whose value it is.
to_original: the value minus that on the originals, paired over the images that both have; original_there: the
originals' value on those; to_neutral: the value minus the metric's neutral point (chance, for LIC_M); differences with
their 95% interval (_low, _high). dba gives DBA_G, which is BA→ from T to A. What is not measured yet is measured
first."""


def add_arguments(command) -> None:
    """The options of `conditions`."""
    command.add_argument("--collection", required=True, metavar="NAME")
    several = "captioners (default: all with captions under two conditions or more)"
    command.add_argument("--captioner", nargs="+", metavar="NAME", help=several)
    command.add_argument("--attribute", nargs="+", required=True, metavar="NAME", help="protected attributes")
    asked = f"one or more of: {', '.join(ASKED)} (default: all that the collection allows)"
    command.add_argument("--metric", nargs="+", metavar="NAME", default=ASKED, help=asked)
    command.add_argument("--references", metavar="NAME", default="", help="human captions (default: the first)")
    sets = "of several sets of one captioner and condition, those to measure (default: the newest; it is said which)"
    command.add_argument("--set", nargs="+", metavar="NAME", default=(), help=sets)
    command.add_argument("--measured", action="store_true", help="print what is measured already, and run nothing")
    command.add_argument("--output", metavar="FILE", help="where to write the CSV (default: stdout)")


def conditions(args) -> int:
    """Measure what is missing, then print the rows."""
    output = checked_output(args.output)
    with opened(args) as workspace:
        collection = known_collection(workspace, args.collection)
        captioners = args.captioner or _masked(workspace, collection)
        for captioner in captioners:
            for line in taken_of_several(workspace, collection, captioner, args.set):
                say(f"note: of several sets of {captioner}, {line}; choose with --set")
        code = DONE if args.measured else _measure(workspace, collection, captioners, args)
        attacker = attacker_entry(args.attacker).name
        found = [
            condition_rows(workspace, collection, captioner, attribute, attacker, args.set)
            for captioner in captioners
            for attribute in args.attribute
        ]
    frame = pd.concat(found, ignore_index=True)
    if len(frame):
        write_output(frame[list(COLUMNS)].to_csv(index=False, lineterminator="\n"), output)
    else:
        say("nothing is measured yet; leave --measured out to measure it")
    return code


def _masked(workspace, collection: str) -> list[str]:
    found = [name for name, sets in condition_sets(workspace, collection).items() if len(sets) > 1]
    if not found:
        raise CapbiasError(
            f"the collection {collection!r}, in which no captioner has captions of masked photographs",
            "captions of the same photographs, original and masked",
            "Import them with --captioner NAME --condition NAME.",
        )
    return found


def _measure(workspace, collection: str, captioners: list[str], args) -> int:
    specs = {}
    for captioner in captioners:
        for attribute in args.attribute:
            found = plan_conditions(
                workspace,
                collection,
                captioner,
                attribute,
                args.attacker,
                args.seeds,
                args.metric,
                args.references,
                {"device": args.device},
                args.set,
            )
            specs |= {spec.run_id: spec for spec in found.specs}
            for line in found.lacking:
                say(f"note: {line}")
    return outcome(run_all(workspace, list(specs.values()), collection))
