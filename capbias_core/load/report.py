"""What an import reports before anything is stored: coverage, duplicates, unknown IDs, problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from capbias_core.attributes.labels import MOST_LABELS
from capbias_core.kinds import BOXES, CAPTIONS, LABELS, OBJECTS, PHOTOGRAPHS, REFERENCES, SEGMENTS
from capbias_core.load.tables import BETWEEN, SURE
from capbias_core.prepare.text import tokenize
from capbias_core.types import Problem, Table, counted


@dataclass(frozen=True)
class ImportReport:
    """What a file holds."""

    file: str
    details: tuple[tuple[str, str], ...]  # label, value
    warnings: tuple[str, ...]  # sentences
    problems: tuple[Problem, ...]  # the first ones
    problem_count: int
    notes: tuple[str, ...] = ()  # where columns come from
    several: int = 0  # images with more than one caption
    account: tuple[tuple[str, str], ...] = ()  # what became of each column and row

    def lines(self) -> list[tuple[str, str]]:
        """(label, value) for a table; the problems last, by line."""
        more = f" (the first {len(self.problems)} follow)" if self.problem_count > len(self.problems) else ""
        problems = [(f"{problem.unit} {problem.line}", problem.message) for problem in self.problems]
        notes = [("Read", note) for note in self.notes]
        return [
            ("File", self.file),
            *notes,
            *self.account,
            *self.details,
            ("Problems", f"{self.problem_count:,}{more}"),
            *problems,
        ]


def report_table(table: Table, kind: str, file: str, known: Mapping[str, Collection[str]] = {}) -> ImportReport:
    """A report on a table as read. known: kind -> images of other files and of the collection, to compare with."""
    details, warnings, several = [("Rows", f"{table.rows:,}")], list(table.warnings), 0
    if table.problem_count:
        counts = f"{counted(table.problem_count, 'problem')} in {counted(table.rows, 'row')}"
        warnings.insert(0, f"{counts}: these rows are left out. The first is at {table.problems[0]}.")
    if kind in (CAPTIONS, REFERENCES):
        several = int((table.frame["caption_index"] == 1).sum())
        describe = _captions(table, kind, known, several)
    else:
        describe = {LABELS: _labels, OBJECTS: _objects, SEGMENTS: _segments, BOXES: _boxes}[kind](table, known)
    for line in describe:
        details.append(line) if isinstance(line, tuple) else warnings.append(line)
    return ImportReport(
        file, tuple(details), tuple(warnings), table.problems, table.problem_count, table.notes, several, table.account
    )


# Details (label, value), and warnings as sentences.


def _captions(table: Table, kind: str, known: Mapping[str, Collection[str]], several: int) -> Iterator:
    images = list(dict.fromkeys(table.frame["image_id"]))
    texts = table.frame["caption"].value_counts(sort=False)
    words: set[str] = set()
    lengths = []  # of each different caption, in tokens
    for tokens in map(tokenize, texts.index.tolist()):
        words.update(tokens)
        lengths.append(len(tokens))
    mean = float(np.average(lengths, weights=texts)) if lengths else 0.0
    yield "Captions", f"{len(table.frame):,} ({len(texts):,} different)"
    yield "Images", f"{len(images):,}"
    if table.sets:
        counts = Counter(table.sets)
        yield "Captioners", ", ".join(f"{name} ({number:,} captions)" for name, number in counts.items())
    yield "Words", f"{len(words):,} different, {mean:.1f} per caption"
    yield "Missing captions", f"{table.empty:,}"
    for rule, number in table.cleaned.items():
        if rule != "missing":
            yield rule[0].upper() + rule[1:], f"{number:,}"
    if kind == CAPTIONS and several:
        have = "has" if several == 1 else "have"
        yield f"{counted(several, 'image')} {have} more than one caption: they are samples of one set."
    if labelled := known.get(LABELS):
        unknown = _missing(images, labelled)
        examples = ", ".join(unknown[:5] + ["…"] * (len(unknown) > 5))
        otherwise = "have no label and do not count"
        yield from _overlap("Images with labels", images, labelled, "has a label", otherwise)
        yield "Unknown image IDs", f"{len(unknown):,} ({examples})" if unknown else "0"
    if kind == CAPTIONS and (referenced := known.get(REFERENCES)):
        otherwise = "have no human captions and count for LIC_M only"
        yield from _overlap("Images with references", images, referenced, "has references", otherwise)


def _labels(table: Table, known: Mapping[str, Collection[str]]) -> Iterator:
    images, any_label = table.frame["image_id"].tolist(), False
    yield "Images", f"{len(images):,}"
    for name in table.frame.columns.drop("image_id"):
        counts = Counter(table.frame[name].tolist())
        is_label = len(counts) <= MOST_LABELS
        any_label |= is_label
        shown = "; ".join(f"{value or '(empty)'} {count:,}" for value, count in counts.most_common(MOST_LABELS))
        yield str(name), shown if is_label else f"not a label column ({len(counts):,} different values)"
    yield "Repeats left out", f"{table.duplicates:,}"
    if not any_label:
        yield f"No column holds labels: each has more than {MOST_LABELS} different values."
    if captioned := sorted(known.get(CAPTIONS, ())):
        yield from _overlap("Captioned images with labels", captioned, images, "with a caption is in this file")


def _objects(table: Table, known: Mapping[str, Collection[str]]) -> Iterator:
    images = table.frame["image_id"].tolist()
    names = table.frame["objects"].str.split(BETWEEN).explode().str.replace(SURE, "", regex=True)
    counts = names[names != ""].value_counts(sort=False).sort_index().sort_values(ascending=False, kind="stable")
    shown = [f"{name} {count:,}" for name, count in counts.items()]
    yield "Images", f"{len(images):,} ({int((table.frame['objects'] == '').sum()):,} without an object)"
    yield "Categories", f"{len(counts):,}"
    yield "Images by category", ", ".join(shown[:MOST_LABELS] + ["…"] * (len(shown) > MOST_LABELS))
    yield "Crowds (each counts as the object)", f"{table.crowds:,}"
    if labelled := sorted(known.get(LABELS, ())):
        what, otherwise = "with a label is in this file", "have labels and are not in this file"
        yield from _overlap("Labelled images in the file", labelled, images, what, otherwise)


def _boxes(table: Table, _known: Mapping[str, Collection[str]]) -> Iterator:
    yield "Boxes", f"{len(table.frame):,}"
    yield "Images", f"{table.frame['image_id'].nunique():,}"


def _segments(table: Table, known: Mapping[str, Collection[str]]) -> Iterator:
    frame, people = table.frame, table.frame[table.frame["object"] == "person"]
    images = frame["image_id"].unique().tolist()
    yield "Outlines", f"{len(frame):,} ({int(frame['crowd'].sum()):,} of a crowd)"
    yield "Images", f"{len(images):,} ({people['image_id'].nunique():,} with a person)"
    yield "People", f"{len(people):,}"
    if table.others:
        yield "Outlines of images that the collection lacks, left out", f"{table.others:,}"
    if without_size := frame.loc[frame["height"] == 0, "image_id"].nunique():
        size = f"The file does not give the size of {counted(without_size, 'image')}"
        yield f"{size}: whether outlines fit is checked when they are used."
    if photographs := sorted(known.get(PHOTOGRAPHS, ())):
        what, otherwise = "of a photograph is in this file", "have a photograph and no outline"
        yield from _overlap("Photographs with outlines", photographs, images, what, otherwise)


def _missing(images: Sequence[str], known: Collection[str]) -> list[str]:
    known = frozenset(known)
    return [image for image in images if image not in known]


def _overlap(
    label: str, images: Sequence[str], known: Collection[str], what: str, otherwise: str = ""
) -> Iterator[tuple[str, str] | str]:
    """How many images are known. A warning with the likely reason if none is, and one in the words `otherwise` if less
    than half are."""
    missing = _missing(images, known)
    matched = len(images) - len(missing)
    yield label, f"{matched:,} ({matched / max(len(images), 1):.1%})"
    if not matched:
        here, there = ", ".join(images[:2]), ", ".join(sorted(known)[:2]) or "none"
        yield f"No image ID {what}: the IDs may come from another data set ({here}; {there})."
    elif otherwise and matched * 2 < len(images):
        yield f"{len(missing):,} of {counted(len(images), 'image')} {otherwise}."
