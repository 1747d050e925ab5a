"""`score`: metrics of captions: the answer and a table, or files of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from capbias_core.api import Inputs, Report, in_hand, measured, stored
from capbias_core.attackers import ATTACKERS, DEFAULT_ATTACKER
from capbias_core.cli.inputs import (
    ANSWER,
    HUMAN,
    INPUTS,
    SETS_FLAG,
    STDOUT,
    WHAT,
    Flags,
    InputFlags,
    Output,
    ReferencesFlag,
    choices_of,
    command,
    flag,
    inputs,
    option_flag,
    read_options,
)
from capbias_core.cli.inputs import ATTACKERS as ATTACKER_FLAGS
from capbias_core.cli.run import run_all, watched
from capbias_core.cli.terminal import DONE, RUN_FAILED, on_terminal, say, show, text_width, write
from capbias_core.measures.options import PeopleMarked, Photographed, Seeded
from capbias_core.measures.protocols import NAMES
from capbias_core.measures.registry import GROUPS
from capbias_core.question import DEFAULT_METRICS, Question
from capbias_core.runs.engine import expected
from capbias_core.runs.inputs import read
from capbias_core.spreadsheets import csv_text
from capbias_core.types import RESULT_COLUMNS
from capbias_core.views.files import content, json_text
from capbias_core.views.results import exported, lettered
from capbias_core.views.table import TABLE, TableOptions

FORMATS = ("csv", "json", "tex", "txt")

app = command(
    "score",
    """\
  capbias score sat.json attributes.csv captions.json --attribute gender
  capbias score --collection coco --attribute gender --metric lic
  capbias score --collection coco --attribute gender --metric lic \\
    --option test_share=0.2

File types are detected; a captioner is named after its file. Several attackers give separate rows; a missing one is
left out, with the reason. LIC, its parts, error and caption quality are x100; ratio is not scaled. If a run fails, or
after Ctrl-C, the other results are written.""",
)


OF_HUMAN = choices_of(Question, "alignment", "vectors", "delta", group=HUMAN)
SHOWN = (choices_of(Photographed, "photographs", group=INPUTS), choices_of(PeopleMarked, "people", group=INPUTS))
SEEDS = choices_of(Seeded, "seeds", group=ATTACKER_FLAGS)


@dataclass(frozen=True, kw_only=True)
class Further(choices_of(Question, "objects", group=INPUTS), OF_HUMAN, *SHOWN, SEEDS):
    """What is said besides captions and labels."""

    references: ReferencesFlag = None
    sets: Annotated[str, SETS_FLAG] = ""


@app.default
def score(
    *files: Annotated[str, flag("files, also .gz and .zip; their types are detected", "FILE", INPUTS)],
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
            f"default settings from a paper: {', '.join(NAMES)} (default: each measure's paper, with the attacker "
            f"{DEFAULT_ATTACKER})",
            "NAME",
            WHAT,
        ),
    ] = None,
    per_object: Annotated[bool, option_flag("per_object", Question, WHAT)] = False,
    further: Annotated[Further, Flags] = Further(),
    attacker: Annotated[
        list[str] | None,
        flag(
            f"one or more of: {', '.join(ATTACKERS)}; or any text encoder (folder or name), frozen; or bert_ft=FOLDER "
            f"and the like (default: {DEFAULT_ATTACKER})",
            "NAME",
            ATTACKER_FLAGS,
        ),
    ] = None,
    option: Annotated[
        list[str] | None, flag("further options of a metric; `capbias metrics METRIC` lists them", "NAME=VALUE", WHAT)
    ] = None,
    format: Annotated[
        str, flag("to stdout in place of the answer, or what --output holds", "|".join(FORMATS), ANSWER)
    ] = "",
    to: Annotated[Output, Flags] = STDOUT,
) -> int:
    """Score captions: LIC, leakage, ratio, error and more, with intervals."""
    question = flags.question(
        files,
        metrics=metric,
        attacker=attacker,
        protocol=protocol or "",
        options=read_options(option or ()),
        per_object=per_object,
        **vars(further),
    )
    path, ending = to.place(dict(zip(FORMATS, FORMATS, strict=True)), format)
    lines, stops = list[str](), list[KeyboardInterrupt]()
    tell = lines.append if on_terminal() else say  # on a terminal the lines follow the answer
    try:
        asked = _inputs(flags, question, tell, stops.append)
        report = measured(asked, tell)
        for line in (*(f"note: {note}" for note in report.notes), *(f"error: {line}" for line in report.failed)):
            tell(line)
        if answered := bool(len(report.table)) and (path is not None or not format):
            show(report.text(text_width()))  # a sentence, and the captioners with their letters
    finally:
        later = ("read", "note", "labels", "dropped")
        for line in sorted(dict.fromkeys(lines), key=lambda line: line.startswith(later)):
            say(line)
    if len(report.table) and (format or path):
        write(_content(report, ending or "csv"), path)
    if stops:
        raise stops[0]
    if answered:
        show("Next: capbias explain, with the inputs of one captioner, shows the words behind this")
    return RUN_FAILED if report.failed or report.table.empty else DONE


def _content(report: Report, ending: str) -> str:
    """The rows of a report as csv or json, in the columns of the results table; its table as tex or txt."""
    if ending in ("csv", "json"):
        rows = lettered(report.table, report.letters, report.ranked_runs, *report.ranked_by)
        return csv_text(exported(rows)) if ending == "csv" else json_text(rows[[*RESULT_COLUMNS, "letters"]])
    choice = report.choice
    assert choice
    return content(TABLE, choice, TABLE.rows(choice, TableOptions(metrics=report.asked)), ending).decode()


def _inputs(
    flags: InputFlags, question: Question, tell: Callable[[str], None], stopped: Callable[[KeyboardInterrupt], None]
) -> Inputs:
    """What is scored. stopped: gets Ctrl-C; what had finished is written then."""
    if not question.files:
        return stored(*inputs(flags, question, tell), partial(run_all, stopped=stopped))
    data, resolved = read(question, tell)
    return in_hand(data, resolved, lambda specs: watched(specs, expected(data, specs)), stopped)
