"""What an import says before anything is kept: coverage, duplicates, unknown ids, problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from capbias_core.load.objects import SURE
from capbias_core.load.rows import place_and_message
from capbias_core.prepare.text import tokenize
from capbias_core.types import AttributeTable, CaptionTable, ObjectTable, Problem, SegmentTable

SHOWN_IDS = 5
SHOWN_SIZES = 8
MOST_LABELS = 20


@dataclass(frozen=True)
class ImportReport:
    """What a file of captions holds.

    captions_an_image: number of captions -> images that have so many. images_with_labels, unknown_ids: images in
    the attribute table and not in it; labelled_percent: the share of the former. None without a table.
    reference_percent: share of the images that have references. Shares are 0 to 100, None where nothing was given.
    distinct: different captions. vocabulary: different tokens. mean_length: tokens a caption.
    warnings: plain sentences.
    """

    file: str
    rows: int
    captions: int
    images: int
    captions_an_image: dict[int, int]
    empty: int
    duplicates: int
    distinct: int
    vocabulary: int
    mean_length: float
    images_with_labels: int | None
    labelled_percent: float | None
    unknown_ids: int | None
    unknown_examples: tuple[str, ...]
    reference_percent: float | None
    problems: tuple[Problem, ...]
    problem_count: int
    warnings: tuple[str, ...]

    def lines(self) -> list[tuple[str, str]]:
        """(label, value) for a table on the page or in the terminal."""
        lines = [
            ("File", self.file),
            ("Rows", f"{self.rows:,}"),
            ("Captions", f"{self.captions:,} ({self.distinct:,} different)"),
            ("Images", f"{self.images:,}"),
            ("Captions an image", _sizes(self.captions_an_image)),
            ("Words", f"{self.vocabulary:,} different, {self.mean_length:.1f} a caption"),
            ("Empty captions", f"{self.empty:,}"),
            ("Repeats left out", f"{self.duplicates:,}"),
        ]
        if self.unknown_ids is not None:
            lines.append(("Images with labels", f"{self.images_with_labels:,} ({self.labelled_percent:.1f}%)"))
            lines.append(("Unknown image ids", _examples(self.unknown_ids, self.unknown_examples)))
        if self.reference_percent is not None:
            lines.append(("Images with references", f"{self.reference_percent:.1f}%"))
        return lines + _problem_lines(self.problems, self.problem_count)


@dataclass(frozen=True)
class LabelColumn:
    """counts: raw label ('' where empty) -> images, most frequent first; the first 20 of a column with more.

    distinct: different labels. is_label: False where there are more than 20.
    """

    name: str
    counts: dict[str, int]
    distinct: int
    is_label: bool

    def line(self) -> tuple[str, str]:
        """(label, value) for a table."""
        if not self.is_label:
            return self.name, f"not a label column ({self.distinct:,} different values)"
        return self.name, "; ".join(f"{value or '(empty)'} {count:,}" for value, count in self.counts.items())


@dataclass(frozen=True)
class AttributeReport:
    """What a table of labels holds. coverage_percent: share of the captioned images that are in it, 0 to 100."""

    file: str
    rows: int
    images: int
    duplicates: int
    columns: tuple[LabelColumn, ...]
    coverage_percent: float | None
    problems: tuple[Problem, ...]
    problem_count: int
    warnings: tuple[str, ...]

    def lines(self) -> list[tuple[str, str]]:
        """(label, value) for a table on the page or in the terminal."""
        lines = [("File", self.file), ("Rows", f"{self.rows:,}"), ("Images", f"{self.images:,}")]
        lines += [column.line() for column in self.columns]
        lines.append(("Repeats left out", f"{self.duplicates:,}"))
        if self.coverage_percent is not None:
            lines.append(("Captioned images with labels", f"{self.coverage_percent:.1f}%"))
        return lines + _problem_lines(self.problems, self.problem_count)


@dataclass(frozen=True)
class ObjectReport:
    """What a file of objects holds.

    rows: annotations, or rows of a table. bare: images without an object. crowds: annotations of a crowd. counts:
    object -> images that show it, most frequent first. coverage_percent: share of the labelled images that are in
    it, 0 to 100; None without a table of labels.
    """

    file: str
    rows: int
    images: int
    bare: int
    crowds: int
    counts: dict[str, int]
    coverage_percent: float | None
    problems: tuple[Problem, ...]
    problem_count: int
    warnings: tuple[str, ...]

    def lines(self) -> list[tuple[str, str]]:
        """(label, value) for a table on the page or in the terminal."""
        shown = ", ".join(f"{name} {count:,}" for name, count in list(self.counts.items())[:MOST_LABELS])
        lines = [
            ("File", self.file),
            ("Rows", f"{self.rows:,}"),
            ("Images", f"{self.images:,} ({self.bare:,} without an object)"),
            ("Categories", f"{len(self.counts):,}"),
            ("Images by category", shown + (", …" if len(self.counts) > MOST_LABELS else "")),
            ("Crowds (each counts as the object)", f"{self.crowds:,}"),
        ]
        if self.coverage_percent is not None:
            lines.append(("Labelled images in the file", f"{self.coverage_percent:.1f}%"))
        return lines + _problem_lines(self.problems, self.problem_count)


@dataclass(frozen=True)
class SegmentReport:
    """What a file of outlines holds.

    rows: annotations in the file. outlines: those that can be used, and are of images that were asked for; others: of
    other images. people: outlines of a person, on so many images with_people. crowds: outlines around several objects.
    sizeless: images whose size the file does not say. coverage_percent: share of the known photographs with an outline,
    0 to 100; None where none are known.
    """

    file: str
    rows: int
    outlines: int
    others: int
    images: int
    people: int
    with_people: int
    crowds: int
    sizeless: int
    coverage_percent: float | None
    problems: tuple[Problem, ...]
    problem_count: int
    warnings: tuple[str, ...]

    def lines(self) -> list[tuple[str, str]]:
        """(label, value) for a table on the page or in the terminal."""
        lines = [
            ("File", self.file),
            ("Rows", f"{self.rows:,}"),
            ("Outlines", f"{self.outlines:,} ({self.crowds:,} of a crowd)"),
            ("Images", f"{self.images:,} ({self.with_people:,} with a person)"),
            ("People", f"{self.people:,}"),
        ]
        if self.others:
            lines.append(("Outlines of images that the collection lacks, left out", f"{self.others:,}"))
        if self.coverage_percent is not None:
            lines.append(("Photographs with outlines", f"{self.coverage_percent:.1f}%"))
        return lines + _problem_lines(self.problems, self.problem_count)


def report_captions(
    table: CaptionTable,
    file_name: str,
    known_ids: Collection[str] | None = None,
    reference_ids: Collection[str] | None = None,
    kind: str = "generated",
) -> ImportReport:
    """Describe captions as read. known_ids: images of the attribute table; reference_ids: images with references.

    kind: "reference" where several captions an image are as expected.
    """
    per_image = table.frame.groupby("image_id", sort=False).size()
    images = per_image.index.tolist()
    unknown = _missing(images, known_ids)
    texts = table.frame["caption"].value_counts(sort=False)
    vocabulary, tokens = _words(texts)
    return ImportReport(
        file=file_name,
        rows=table.rows,
        captions=len(table.frame),
        images=len(images),
        captions_an_image={int(size): int(count) for size, count in per_image.value_counts().sort_index().items()},
        empty=table.empty,
        duplicates=table.duplicates,
        distinct=len(texts),
        vocabulary=vocabulary,
        mean_length=float(np.average(tokens, weights=texts)) if len(texts) else 0.0,
        images_with_labels=None if unknown is None else len(images) - len(unknown),
        labelled_percent=_percent(images, known_ids),
        unknown_ids=None if unknown is None else len(unknown),
        unknown_examples=tuple(unknown or ())[:SHOWN_IDS],
        reference_percent=_percent(images, reference_ids),
        problems=table.problems,
        problem_count=table.problem_count,
        warnings=(
            *_problem_warnings(table.problem_count, table.rows),
            *(_size_warnings(per_image) if kind == "generated" else ()),
            *_text_warnings(texts, tokens, table.empty),
            *_overlap_warnings(images, known_ids, "occurs in the attribute table", "have no label and do not count"),
            *_overlap_warnings(images, reference_ids, "has references", "have no reference and do not count"),
        ),
    )


def report_attributes(
    table: AttributeTable, file_name: str, caption_ids: Collection[str] | None = None
) -> AttributeReport:
    """Describe labels as read. caption_ids: images that have captions."""
    known = table.frame["image_id"].tolist()
    columns = tuple(_label_column(table.frame[name]) for name in table.frame.columns if name != "image_id")
    none = "No column holds labels: every one has more than 20 different values."
    return AttributeReport(
        file=file_name,
        rows=table.rows,
        images=len(known),
        duplicates=table.duplicates,
        columns=columns,
        coverage_percent=None if caption_ids is None else _percent(list(caption_ids), known),
        problems=table.problems,
        problem_count=table.problem_count,
        warnings=(
            *_problem_warnings(table.problem_count, table.rows),
            *(() if any(column.is_label for column in columns) else (none,)),
            *(_overlap_warnings(list(caption_ids), known, "occurs in the attribute table", "") if caption_ids else ()),
        ),
    )


def report_objects(table: ObjectTable, file_name: str, labelled_ids: Collection[str] | None = None) -> ObjectReport:
    """Describe objects as read. labelled_ids: images of the tables of labels."""
    known = table.frame["image_id"].tolist()
    names = table.frame["objects"].str.split("|").explode().str.replace(SURE, "", regex=True)
    counts = names[names != ""].value_counts(sort=False).sort_index().sort_values(ascending=False, kind="stable")
    labelled = None if labelled_ids is None else sorted(labelled_ids)
    return ObjectReport(
        file=file_name,
        rows=table.rows,
        images=len(known),
        bare=int((table.frame["objects"] == "").sum()),
        crowds=table.crowds,
        counts={name: int(count) for name, count in counts.items()},
        coverage_percent=None if labelled is None else _percent(labelled, known),
        problems=table.problems,
        problem_count=table.problem_count,
        warnings=(
            *_problem_warnings(table.problem_count, table.rows),
            *_overlap_warnings(
                labelled or [], known, "with a label is in this file", "have labels and are not in this file"
            ),
        ),
    )


def report_segments(table: SegmentTable, file_name: str, photographs: Collection[str] | None = None) -> SegmentReport:
    """Describe outlines as read. photographs: images whose photographs are known."""
    frame = table.frame
    people = frame["object"] == "person"
    sizeless = frame.loc[frame["height"] == 0, "image_id"].nunique()
    known = frame["image_id"].unique().tolist()
    images = None if photographs is None else sorted(photographs)
    unsaid = f"The size of {_count(sizeless, 'image')} is not said: that outlines fit is seen when they are used."
    return SegmentReport(
        file=file_name,
        rows=table.rows,
        outlines=len(frame),
        others=table.others,
        images=len(known),
        people=int(people.sum()),
        with_people=frame.loc[people, "image_id"].nunique(),
        crowds=int(frame["crowd"].sum()),
        sizeless=sizeless,
        coverage_percent=None if images is None else _percent(images, known),
        problems=table.problems,
        problem_count=table.problem_count,
        warnings=(
            *_problem_warnings(table.problem_count, table.rows),
            *([unsaid] if sizeless else []),
            *_overlap_warnings(
                images or [], known, "of a photograph is in this file", "have a photograph and no outline"
            ),
        ),
    )


def _words(texts: pd.Series) -> tuple[int, np.ndarray]:
    """Vocabulary size, and the number of tokens of each different caption."""
    vocabulary: set[str] = set()
    lengths = np.zeros(len(texts), dtype=int)
    for place, caption in enumerate(texts.index.tolist()):
        tokens = tokenize(caption)
        vocabulary.update(tokens)
        lengths[place] = len(tokens)
    return len(vocabulary), lengths


def _missing(images: list[str], known: Collection[str] | None) -> list[str] | None:
    if known is None:
        return None
    known = frozenset(known)
    return [image for image in images if image not in known]


def _percent(images: list[str], known: Collection[str] | None) -> float | None:
    """Share of `images` that are in `known`, 0 to 100; None without `known`."""
    missing = _missing(images, known)
    return None if missing is None else 100.0 * (1 - len(missing) / max(len(images), 1))


def _label_column(labels: pd.Series) -> LabelColumn:
    counts = Counter(labels.tolist())
    return LabelColumn(str(labels.name), dict(counts.most_common(MOST_LABELS)), len(counts), len(counts) <= MOST_LABELS)


def _problem_warnings(count: int, rows: int) -> Iterable[str]:
    if count:
        yield f"{_count(count, 'problem')} in {_count(rows, 'row')}: what could not be read is left out."


def _size_warnings(per_image: pd.Series) -> Iterable[str]:
    several = int((per_image > 1).sum())
    if several:
        have = "has" if several == 1 else "have"
        yield f"{_count(several, 'image')} {have} more than one caption; a captioner usually gives one."


def _text_warnings(texts: pd.Series, tokens: np.ndarray, empty: int) -> Iterable[str]:
    if empty:
        yield f"{_count(empty, 'caption')} {'is' if empty == 1 else 'are'} empty and left out."
    wordless = int(texts[tokens == 0].sum())
    if wordless:
        yield f"{_count(wordless, 'caption')} {'holds' if wordless == 1 else 'hold'} no word."
    if len(texts) == 1 and texts.iloc[0] > 1:
        yield "All captions are the same."


def _overlap_warnings(images: list[str], known: Collection[str] | None, what: str, otherwise: str) -> Iterable[str]:
    """Nothing in common gets the likely reason; less than half in common is said where `otherwise` has the words."""
    missing = _missing(images, known)
    if not missing:
        return
    if len(missing) == len(images):
        here, there = ", ".join(images[:2]), ", ".join(sorted(known)[:2]) or "none"
        yield f"No image id {what}: the ids may come from another data set ({here} here, {there} there)."
    elif otherwise and len(missing) * 2 > len(images):
        yield f"{len(missing):,} of {_count(len(images), 'image')} {otherwise}."


def _problem_lines(problems: tuple[Problem, ...], count: int) -> list[tuple[str, str]]:
    """The number of problems, then the first ones by place."""
    lines = [("Problems", f"{count:,}" + (f" (the first {len(problems)} follow)" if count > len(problems) else ""))]
    return lines + [place_and_message(problem) for problem in problems]


def _sizes(captions_an_image: dict[int, int]) -> str:
    """`5 (3,601 images), 6 (39 images)`."""
    shown = [f"{size} ({_count(count, 'image')})" for size, count in list(captions_an_image.items())[:SHOWN_SIZES]]
    return ", ".join(shown) + (", more" if len(captions_an_image) > SHOWN_SIZES else "")


def _examples(count: int, examples: tuple[str, ...]) -> str:
    if not count:
        return "0"
    return f"{count:,} ({', '.join(examples)}{', …' if count > len(examples) else ''})"


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
