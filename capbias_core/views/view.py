"""What a view reads (`Scope`), and the form of its answer (`Shown`) for pages, command line, reports and files."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pandas as pd

from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.measures.options import Option
from capbias_core.spreadsheets import csv_text
from capbias_core.views.latex import to_longtable
from capbias_core.views.pictures import FORMATS as PICTURES
from capbias_core.views.pictures import picture
from capbias_core.views.results import Comparison, comparisons, first_attribute, first_request
from capbias_core.views.tables import json_text, to_text
from capbias_core.workspace.conditions import originals
from capbias_core.workspace.labels import attributes_in
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Workspace


@dataclass(frozen=True)
class Scope:
    """Which finished results a view reads: those of one comparison of captioners, so that all its numbers are alike."""

    workspace: Workspace
    collection: str
    comparison: Comparison
    captioners: tuple[str, ...]  # of the comparison, in the order asked for

    @property
    def attribute(self) -> str:
        return self.comparison.attribute.name

    def run(self, captioner: str):
        """The run of LIC of a captioner."""
        return next(run for run in self.comparison.runs if run.spec.model == captioner)


def scope(
    workspace: Workspace,
    collection: Annotated[str, Option("the collection", metavar="NAME")],
    attribute: Annotated[str, Option("the attribute (default: as the page Answer)", metavar="NAME")] = "",
    captioners: Annotated[
        Sequence[str], Option("captioners (default: all that were measured)", "--captioner", metavar="NAME")
    ] = (),
    attacker: Annotated[str, Option("the attacker of the runs (default: of the best answer)", metavar="NAME")] = "",
    seeds: Annotated[int | None, Option("their number of seeds (default: of the best answer)", metavar="N")] = None,
    references: Annotated[str, Option("human captions (default: of the best answer)", metavar="NAME")] = "",
) -> Scope:
    """The best comparison with these choices; what is not given is as on the page Answer.

    captioners: all that were measured alike unless given. references: the name of a set of human captions. Raises
    CapbiasError, with the command that measures it, if nothing measured fits.
    """
    items = workspace.items("captions", collection)
    attribute = attribute or first_attribute(workspace, collection)
    if attribute not in (known := attributes_in(workspace.items("labels", collection))):
        raise unknown_name("attribute", attribute, known)
    if unknown := [name for name in captioners if name not in {item.name for item in items}]:
        raise unknown_name("captioner", unknown[0], [item.name for item in items])
    if comparison := fitting(workspace, collection, attribute, captioners, attacker, seeds, references):
        return Scope(
            workspace, collection, comparison, tuple(captioners or (run.spec.model for run in comparison.runs))
        )
    asked = first_request(workspace, collection, attribute)
    lacking = ", ".join(captioners) or "any captioner"
    command = ["capbias", "score", "--collection", collection, "--attribute", attribute, "--metric", "lic"]
    command += ["--captions", *captioners] if captioners else []
    raise CapbiasError(
        f"{collection} has no finished run of LIC for {attribute} of {lacking} with these settings.",
        f"Run: {shlex.join(command)}" if asked else "Add captions and labels first.",
    )


def fitting(
    workspace: Workspace,
    collection: str,
    attribute: str,
    captioners: Sequence[str] = (),
    attacker: str = "",
    seeds: int | None = None,
    references: str = "",
) -> Comparison | None:
    """The best comparison of an attribute with these choices, as of `scope`; None if nothing measured fits."""
    human = workspace.item("references", references, collection).hash if references else ""
    sets = set(captioners) or originals(workspace.items("captions", collection))
    for comparison in comparisons(workspace, collection, sets):
        if (
            comparison.attribute.name == attribute
            and attacker in ("", comparison.attacker)
            and seeds in (None, comparison.seeds)
            and human in ("", comparison.references)
            and set(captioners) <= {run.spec.model for run in comparison.runs}
        ):
            return comparison
    return None


# Computes runs of a collection and waits for them.
Run = Callable[[Sequence[RunSpec], str], None]


def nothing_run(specs: Sequence[RunSpec], collection: str) -> None:
    """A Run that leaves it at what is measured."""


@dataclass(frozen=True)
class Shown:
    """A view's answer, in all the forms in which it is shown."""

    title: str
    rows: pd.DataFrame  # one row per number or item, with all digits
    sentence: str = ""  # what follows from them, and no more than their intervals allow
    notes: tuple[str, ...] = ()  # how to read it, and what is missing
    table: pd.DataFrame | None = None  # the rows for a reader, rounded (default: the rows)
    chart: Callable[[], Any] | None = None  # makes a Plotly figure

    @property
    def for_reader(self) -> pd.DataFrame:
        return self.rows if self.table is None else self.table


# Ending of a file -> what it holds.
FORMATS: dict[str, Callable[[Shown], str | bytes]] = {
    "csv": lambda shown: csv_text(shown.rows),
    "json": lambda shown: json_text(shown.rows),
    "tex": lambda shown: to_longtable(shown.for_reader, shown.title),
    "txt": lambda shown: to_text(shown.for_reader),
    **{ending: lambda shown, ending=ending: _picture(shown, ending) for ending in PICTURES},
}


def format_of(name: str) -> str:
    """The format of a file, as its ending says. Raises CapbiasError for an unknown one."""
    ending = Path(name).suffix.lstrip(".").lower()
    if ending not in FORMATS:
        raise unknown_name("format", ending or name, FORMATS)
    return ending


def exported(shown: Shown, name: str) -> str | bytes:
    """A view as the content of a file (`format_of`). Raises CapbiasError for a picture of a view without a chart."""
    return FORMATS[format_of(name)](shown)


def _picture(shown: Shown, ending: str) -> bytes:
    if shown.chart is None:
        raise CapbiasError(f"{shown.title} has no chart.", "Write csv, json, tex or txt.")
    return picture(shown.chart(), ending, shown.title)
