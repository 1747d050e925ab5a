"""Tables of files while they are read (`Piece`), and what they hold once they are (`Part`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from capbias_core.kinds import CAPTIONS, KINDS, REFERENCES, kind_title
from capbias_core.load.questions import File
from capbias_core.load.sheet import RowErrors, Sheet
from capbias_core.types import Problem, counted


@dataclass(frozen=True)
class Part:
    """One table of a file: captions of one captioner, human captions, labels, objects, boxes or outlines."""

    kind: str
    file: File
    title: str  # of the file
    name: str  # of the captioner or the table
    frame: pd.DataFrame
    format: str
    rows: int
    beside: bool = False  # human captions or outlines beside what the file is read for
    account: tuple[tuple[str, str], ...] = ()  # what became of each column and row
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    problem_count: int = 0
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # reason -> images of captions left out
    mapping: tuple[dict, ...] = ()  # of labels: details of each mapped column (`mapping_details`)

    @property
    def images(self) -> frozenset[str]:
        """Its image IDs."""
        return frozenset(self.frame["image_id"])

    def lines(self, known: Mapping[str, Collection[str]] = {}) -> list[tuple[str, str]]:
        """(label, value) for a report. known: kind -> images of other files and of the collection."""
        images = self.images
        lines = [("File", self.title), ("Read as", self.kind), ("Format", self.format)]
        lines += [("Read", note) for note in self.notes]
        lines += [*self.account, ("Rows", f"{self.rows:,}")]
        if self.kind in (CAPTIONS, REFERENCES):
            lines.append(("Captions", f"{len(self.frame):,} ({self.frame['caption'].nunique():,} different)"))
        lines.append(("Images", f"{len(images):,}"))
        for kind in [kind for kind in KINDS[self.kind].joins if kind in known]:
            both = len(images.intersection(known[kind]))
            lines.append((f"Images with {kind_title(kind)}", f"{both:,} ({both / max(len(images), 1):.1%})"))
        problems = [(f"{problem.unit} {problem.line}", problem.message) for problem in self.problems]
        return [*lines, ("Problems", f"{self.problem_count:,}"), *problems]

    @property
    def told(self) -> list[str]:
        """Its warnings, the faulty rows first."""
        if not self.problem_count:
            return list(self.warnings)
        counts = f"{counted(self.problem_count, 'problem')} in {counted(self.rows, 'row')}"
        return [f"{counts}: these rows are left out. The first is at {self.problems[0]}.", *self.warnings]


@dataclass(eq=False)
class Piece:
    """A table of a file: what its columns are, and the image of each row once files are joined."""

    file: File
    sheet: Sheet
    captions: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    labels: dict[str, list[str]] = field(default_factory=dict)  # by attribute
    objects: bool = False
    column: str = ""  # of the image IDs
    ids: pd.Series | None = None  # the image of each row by the IDs of all files, None without one
    how: str = ""  # a sentence if IDs are compared other than as written
    joins: str = ""  # the images that join

    @property
    def used(self) -> list[str]:
        """The columns that hold no image IDs."""
        return [*self.captions, *self.references, *(name for names in self.labels.values() for name in names)]

    @property
    def by_rows(self) -> bool:
        """Whether its format has no image IDs."""
        return "rows" in self.sheet.roles

    def faults(self) -> RowErrors:
        """Its faults, with the rows that have no image."""
        faults = self.sheet.faults.copy()
        for place in [] if self.ids is None else self.ids.index[self.ids.isna()]:
            faults.add(self.sheet.numbers[place], "the image id is missing")
        return faults

    def part(
        self,
        kind: str,
        name: str,
        frame: pd.DataFrame,
        account: Mapping[str, str],
        faults: RowErrors,
        notes: Sequence[str],
        **more: Any,
    ) -> Part:
        """A part of it. account: what is empty is not said. more: further fields."""
        return Part(
            kind,
            self.file,
            self.sheet.title,
            name,
            frame,
            self.sheet.format,
            self.sheet.rows,
            account=tuple((label, text) for label, text in account.items() if text),
            notes=tuple(filter(None, (*self.sheet.notes, self.how, *notes))),
            problems=tuple(faults.first),
            problem_count=faults.count,
            **more,
        )


def sizes(images: pd.Series) -> str:
    """How many rows images have: `1 (9 images), 2 (1 image)`."""
    counts = Counter(images.value_counts().tolist())
    return ", ".join(f"{size} ({counted(number, 'image')})" for size, number in sorted(counts.items())[:8])
