"""`score`: metrics of captions: rows as CSV or JSON, or in a terminal the answer."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Annotated

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from capbias_core.api import DEFAULT_METRICS, Asked, Report, measured
from capbias_core.attackers import ATTACKERS, DEFAULT_ATTACKER
from capbias_core.cli.flags import ANSWER, HUMAN, INPUTS, WHAT, Flags, command, flag, given, measure_choices
from capbias_core.cli.flags import ATTACKERS as ATTACKER_FLAGS
from capbias_core.cli.inputs import SETS_FLAG, InputFlags, inputs
from capbias_core.cli.running import run_all
from capbias_core.cli.terminal import DONE, RUN_FAILED, checked_output, on_terminal, readable, say, show, write_output
from capbias_core.errors import unknown_name
from capbias_core.measures.protocols import NAMES
from capbias_core.measures.registry import GROUPS, MEASURES, METRICS
from capbias_core.prepare.align import DELTA
from capbias_core.present.sentence import decimals, told_apart
from capbias_core.present.table import (
    BEHIND,
    first_columns,
    lettered,
    pair_table,
    scores_table,
    to_csv,
    to_json,
    to_text,
)
from capbias_core.workspace.ingest import SAMPLES
from capbias_core.workspace.inputs import ALIGNMENTS, CONSTANT
from capbias_core.workspace.store import suggested_name

FORMATS = {
    "csv": lambda report: to_csv(_lettered(report)),
    "json": lambda report: to_json(report.table),
    "table": lambda report: to_text(scores_table(_lettered(report))),
}
GAP = 2  # columns of the terminal between those of a table

app = command(
    "score",
    """\
  capbias score nic.json sat.json attributes.csv captions.json --attribute gender --output out.csv
  capbias score --collection "my captions" --captions sat --attribute gender --metric lic

With several attackers each has rows of its own; one that cannot be had is left out, with the reason. A captioner is
named after its file. LIC, its parts, error and caption quality are x100, ratio is plain. If a run fails,
or after Ctrl-C, the others' are written.""",
)


@dataclass(frozen=True, kw_only=True)
class FurtherInputs:
    """Inputs of `score` besides captions and labels."""

    references: Annotated[str | None, flag("human captions; with --collection, their name", "FILE", HUMAN)] = None
    alignment: Annotated[
        str,
        flag(
            "what replaces human words that the captioner never uses: <unk>, or the nearest word; default: constant",
            "|".join(ALIGNMENTS),
            HUMAN,
        ),
    ] = CONSTANT
    vectors: Annotated[
        str | None, flag("GloVe, word2vec or fastText, for contextual alignment; or a name", "FILE", HUMAN)
    ] = None
    delta: Annotated[
        float | None, flag(f"cosine distance below which a word is near (default: {DELTA})", "DISTANCE", HUMAN)
    ] = None
    objects: Annotated[
        str | None, flag("COCO instances, or a table image_id, objects (cat|dog); or a name", "FILE", INPUTS)
    ] = None
    sets: Annotated[str, SETS_FLAG] = SAMPLES
    weights: Annotated[
        str | None, flag("find objects on --photographs with this detector (file or name)", "FILE", INPUTS)
    ] = None


OF_INPUTS = ("photographs", "people")


class Choices(measure_choices([own for own in MEASURES.values() if own.groups], OF_INPUTS, left_out=("attacker",))):
    """Choices of the command."""


NO_FURTHER, NO_CHOICES = FurtherInputs(), Choices()


@app.default
def score(
    *files: Annotated[str, flag("files, .gz and .zip too: what each is, is found by content", "FILE", INPUTS)],
    flags: Annotated[InputFlags, Flags],
    metric: Annotated[
        list[str] | None,
        flag(
            f"one or more of: {', '.join(GROUPS)}; or a single part, such as LIC_M (case does not matter; `capbias "
            f"metrics` explains them; default: {' '.join(DEFAULT_METRICS)})",
            "NAME",
            WHAT,
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        flag(
            f"a paper whose settings are used where none is given: {', '.join(NAMES)} (default: each measure's paper, "
            f"with the attacker {DEFAULT_ATTACKER})",
            "NAME",
            WHAT,
        ),
    ] = None,
    per_object: Annotated[bool, flag("also a row for each object", group=WHAT)] = False,
    further: Annotated[FurtherInputs, Flags] = NO_FURTHER,
    attacker: Annotated[
        list[str] | None,
        flag(
            f"one or more of: {', '.join(ATTACKERS)}; or any text encoder (folder or name), frozen; or bert_ft=FOLDER "
            f"and the like (default: {DEFAULT_ATTACKER})",
            "NAME",
            ATTACKER_FLAGS,
        ),
    ] = None,
    choices: Annotated[Choices, Flags] = NO_CHOICES,
    format: Annotated[
        str | None,
        flag("default: table on a terminal; else csv, or json if --output ends so", "|".join(FORMATS), ANSWER),
    ] = None,
    output: Annotated[str | None, flag("where to write the rows (default: stdout)", "FILE", ANSWER)] = None,
) -> int:
    """Score captions: LIC, leakage, ratio, error and more, with intervals."""
    chosen = given(choices)
    asked = Asked(
        metrics=tuple(metric or ()),
        attackers=tuple(attacker or ()),
        seeds=chosen.pop("seeds", None),
        protocol=protocol or "",
        choices={name: own for name, own in chosen.items() if name not in OF_INPUTS},
        per_object=per_object,
    )
    asked.check()
    path, written = checked_output(output), _format(format, output)
    more = {name: own for name, own in chosen.items() if name in OF_INPUTS}
    more |= {own.name: getattr(further, own.name) for own in fields(further)}
    said, stops = Said(held=on_terminal()), list[KeyboardInterrupt]()
    compute = partial(run_all, stopped=stops.append)  # what had finished is written then
    try:
        with inputs(flags, said.tell, files, **more) as (workspace, resolved):
            report = measured(workspace, resolved, asked, compute, said.tell)
        for line in (*(f"note: {note}" for note in report.notes), *(f"error: {line}" for line in report.failed)):
            said.tell(line)
        if answered := on_terminal() and len(report.table) and (path or written == "table"):
            _show(report, asked.metrics)
    finally:
        said.end()
    if len(report.table) and not (answered and not path):
        write_output(FORMATS[written](report), path)
    if path and not answered and report.sentence:
        say(report.sentence)
    if stops:
        raise stops[0]
    if answered and (further_command := _next_command(flags, files, resolved.table, report)):
        show(f"Next: {further_command}")
    return RUN_FAILED if report.failed or report.table.empty else DONE


def _format(format: str | None, output: str | None) -> str:
    if format and format not in FORMATS:
        raise unknown_name("--format", format, FORMATS)
    if format:
        return format
    if output:
        return "json" if Path(output).suffix.lower() == ".json" else "csv"
    return "table" if on_terminal() else "csv"


class Said:
    """What is said of results: at once, or held until the answer was shown, so that all of it is in one place."""

    def __init__(self, held: bool):
        self.lines: list[str] = []
        self.held = held

    def tell(self, line: str) -> None:
        if self.held:
            self.lines.append(line)
        else:
            say(line)

    def end(self) -> None:
        """Say what was held, warnings first."""
        for line in sorted(dict.fromkeys(self.lines), key=lambda line: line.startswith(("note", "labels", "dropped"))):
            say(line)


def _show(report: Report, asked: Collection[str]) -> None:
    """The answer for a person: a sentence, the captioners with their letters, and their pairs. asked: the metrics."""
    console = Console(highlight=False, markup=False)
    if report.sentence:
        console.print(Text(readable(report.sentence)), end="\n\n")
    for table in _tables(_shown(report, asked), console.width):
        console.print(table)
        console.print()
    if report.ranking:
        console.print(told_apart(report.ranking))
        if report.ranking.pairs:
            console.print(f"\n{' '.join(report.ranked_by).strip()}, row minus column, p after Holm:")
            console.print(to_text(pair_table(report.ranking, _digits(report.ranked_by[0]))), end="")
    console.file.flush()


def _lettered(report: Report) -> pd.DataFrame:
    own = report.letters
    return lettered(report.table, own, report.ranked_runs, *report.ranked_by) if own else report.table


def _digits(metric: str) -> int:
    return decimals(metric, METRICS[metric].scale)


def _shown(report: Report, asked: Collection[str]) -> pd.DataFrame:
    """What the verdict follows from is shown to those who asked for it by name; the rows have it all."""
    behind = not {name.lower() for name in BEHIND} & {name.lower() for name in asked}
    frame = scores_table(_lettered(report))
    frame = frame[first_columns(frame.columns) if behind else list(frame.columns)]
    return frame.rename(columns=lambda name: readable(str(name))).map(lambda cell: readable(str(cell)))


def _tables(frame: pd.DataFrame, width: int) -> Iterator[Table]:
    """The columns in as many tables as a terminal of this width needs to break no word; each has the captioners."""
    first, *others = frame.columns
    least = {name: max(len(word) for text in (name, *frame[name]) for word in (text.split() or "-")) for name in frame}
    least[first] = min(least[first], width // 3)
    groups: list[list[str]] = [[first]]
    for name in others:
        if len(groups[-1]) > 1 and sum(least[own] + GAP for own in (*groups[-1], name)) > width + GAP:
            groups.append([first])
        groups[-1].append(name)
    for group in groups:
        table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, GAP, 0, 0))
        left = width - sum(least[name] + GAP for name in group) + GAP
        longest = {name: max(map(len, (name, *frame[name]))) for name in group}
        # The room that is left goes to those that lack least, so that most columns are whole.
        for name in sorted(group, key=lambda name: longest[name] - least[name]):
            more = min(left, longest[name] - least[name])
            longest[name], left = least[name] + more, left - more
        for name in group:
            table.add_column(name, overflow="fold", width=longest[name])
        for row in frame[group].itertuples(index=False):
            table.add_row(*map(Text, row))
        yield table


def _next_command(flags: InputFlags, files: Sequence[str], table: str, report: Report) -> str:
    """The command that shows which words carry the bias of the captioner in the answer; '' if it cannot be written."""
    model = report.about
    parts = ["capbias", "explain"]
    if flags.collection:
        parts += ["--captions", model, "--collection", flags.collection]
        labels = flags.labels
    else:
        by_name = {suggested_name(Path(file).stem): file for file in (*files, *(flags.captions or ()))}
        labels = flags.labels or by_name.get(table)
        if not labels or not all(Path(file).is_file() for file in (by_name.get(model, ""), labels)):
            return ""
        parts += ["--captions", by_name[model]]
    parts += ["--labels", labels] if labels else []
    parts += ["--attribute", flags.attribute]
    for name in ("attribute_column", "image_id_column", "caption_column", "workspace"):
        parts += [f"--{name.replace('_', '-')}", value] if (value := getattr(flags, name)) else []
    parts += ["--values", *flags.values] if flags.values else []
    for pair in flags.map or ():
        parts += ["--map", pair]
    return shlex.join(parts)
