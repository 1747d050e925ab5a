"""`anonymous-bench`: how often captions of photographs of nobody in particular name a value, as rows of CSV."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from capbias_core.aggregate.consistency import alignment
from capbias_core.analysis.anonymous_bench import proxy_alignment, proxy_scores
from capbias_core.attributes import get_attribute
from capbias_core.cli.inputs import opened, own_folder
from capbias_core.cli.terminal import DONE, checked_output, say, write_output
from capbias_core.errors import CapbiasError
from capbias_core.load import read_captions
from capbias_core.load.published import read_human_scores, read_results
from capbias_core.present.table import to_csv

EXAMPLE = """\
  python -m capbias_core anonymous-bench --captions nic.json sat.json fc.json --attribute gender --output proxy.csv
  python -m capbias_core anonymous-bench --captions nic.json sat.json fc.json --attribute gender \\
    --results scores.csv --human people.csv

Captions are of photographs on which the value cannot be seen; they need no labels. human_guess_proxy is the share of
captions that name a value: a proxy for whether people can guess it, not what people said. With --results (as `score`
writes them) proxy_alignment is the Pearson of each metric with the proxy over captioners; with --human, people's scores
(a CSV with the columns model and value), human_alignment is that with people, also of the proxy itself."""


def add_arguments(command) -> None:
    """The options of the command."""
    sets = "files of captions, one a captioner; with --collection, names of caption sets"
    command.add_argument("--captions", nargs="+", action="extend", required=True, metavar="FILE", help=sets)
    command.add_argument("--collection", metavar="NAME", help="use a workspace's collection, and names for files")
    command.add_argument("--attribute", required=True, help="an attribute with words, such as gender, or a TOML file")
    command.add_argument("--results", metavar="FILE", help="metrics of the same captioners, as `score` writes them")
    command.add_argument("--human", metavar="FILE", help="human scores: a CSV with the columns model and value")
    command.add_argument("--output", metavar="FILE", help="where to write the CSV (default: stdout)")


def anonymous_bench(args) -> int:
    """The proxy of each captioner, and what agrees with it; CSV to --output or stdout."""
    output = checked_output(args.output)
    scores = proxy_scores(_sets(args), get_attribute(args.attribute, own_folder(args)))
    parts = [scores]
    if args.results:
        results = read_results(Path(args.results))
        parts.append(proxy_alignment(scores, results))
    if args.human:
        human = read_human_scores(Path(args.human))
        tables = [scores, *([results] if args.results else [])]
        parts += [alignment(table, human) for table in tables]
    say("note: human_guess_proxy is a proxy for people's guesses; AnonymousBench asks people.")
    write_output(to_csv(pd.concat([part for part in parts if len(part)], ignore_index=True)), output)
    return DONE


def _sets(args) -> dict[str, pd.DataFrame]:
    if args.collection:
        with opened(args) as workspace:
            items = [workspace.item("captions", name, args.collection) for name in args.captions]
            return {item.name: workspace.frame(item.hash) for item in items}
    names = [Path(file).stem for file in args.captions]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise CapbiasError(f"several files called {', '.join(twice)}", "a different name for each", "Rename a file.")
    return {name: read_captions(Path(file)).frame for name, file in zip(names, args.captions, strict=True)}
