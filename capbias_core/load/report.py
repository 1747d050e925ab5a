"""What an import reports before anything is stored: coverage, duplicates, unknown IDs, problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from capbias_core.attributes.labels import MOST_LABELS
from capbias_core.load.parsed import place_and_message
from capbias_core.load.tables import BETWEEN, SURE
from capbias_core.prepare.text import tokenize
from capbias_core.types import Problem, Table, counted

SHOWN_IDS, SHOWN_SIZES = 5, 8


@dataclass(frozen=True)
class ImportReport:
    """What a file holds. facts: numbers by name, listed by the report functions below. details: (label, value).
    warnings: sentences. problems: the first of problem_count. notes: which columns were read."""

    file: str
    facts: dict[str, Any]
    details: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    problems: tuple[Problem, ...]
    problem_count: int
    notes: tuple[str, ...] = ()

    def __getitem__(self, fact: str) -> Any:
        return self.facts[fact]

    def lines(self) -> list[tuple[str, str]]:
        """(label, value) for a table; the problems last, by line."""
        more = f" (the first {len(self.problems)} follow)" if self.problem_count > len(self.problems) else ""
        problems = [("Problems", f"{self.problem_count:,}{more}"), *map(place_and_message, self.problems)]
        return [("File", self.file), *(("Read", note) for note in self.notes), *self.details, *problems]


def _report(table: Table, file: str, facts: dict[str, Any], details: list, *warnings: Iterable[str]) -> ImportReport:
    """A report that begins with the rows of its file. Details without a value are left out."""
    lines = [*table.warnings, *(line for group in warnings for line in group)]
    if table.problem_count:
        where, what = place_and_message(table.problems[0])
        counts = f"{counted(table.problem_count, 'problem')} in {counted(table.rows, 'row')}"
        lines.insert(0, f"{counts}: these rows are left out. The first is at {where}: {what}.")
    details = [("Rows", f"{table.rows:,}"), *(pair for pair in details if pair[1] is not None)]
    facts = {"rows": table.rows, "repeats": table.duplicates, **facts}
    return ImportReport(file, facts, tuple(details), tuple(lines), table.problems, table.problem_count, table.notes)


@dataclass(frozen=True)
class LabelColumn:
    """counts: the 20 most frequent raw labels ('' if empty) -> images. distinct: number of different labels."""

    name: str
    counts: dict[str, int]
    distinct: int

    @property
    def is_label(self) -> bool:
        return self.distinct <= MOST_LABELS


def report_captions(
    table: Table,
    file_name: str,
    known_ids: Collection[str] | None = None,
    reference_ids: Collection[str] | None = None,
    kind: str = "generated",
) -> ImportReport:
    """Describe captions as read. known_ids: images of the table of labels; reference_ids: images with references.

    kind: "reference" if several captions an image are as expected. Facts: captions, images, captions_an_image (number
    of captions -> images), distinct captions, cleaned (rule -> captions, as load/clean.py counts them), vocabulary
    (different tokens), mean_length (tokens a caption), labelled_percent, unknown_ids, unknown_examples,
    reference_percent. Shares are 0 to 100, None if nothing was given.
    """
    per_image = table.frame.groupby("image_id", sort=False).size()
    images = per_image.index.tolist()
    unknown = None if known_ids is None else _missing(images, known_ids)
    texts = table.frame["caption"].value_counts(sort=False)
    vocabulary: set[str] = set()
    tokens = []  # per different caption
    for caption in texts.index.tolist():
        words = tokenize(caption)
        vocabulary.update(words)
        tokens.append(len(words))
    sizes = {int(size): int(count) for size, count in per_image.value_counts().sort_index().items()}
    facts = {
        "captions": len(table.frame),
        "images": len(images),
        "captions_an_image": sizes,
        "distinct": len(texts),
        "cleaned": dict(table.cleaned),
        "vocabulary": len(vocabulary),
        "mean_length": float(np.average(tokens, weights=texts)) if len(texts) else 0.0,
        "labelled_percent": _percent(images, known_ids),
        "unknown_ids": None if unknown is None else len(unknown),
        "unknown_examples": tuple(unknown or ())[:SHOWN_IDS],
        "reference_percent": _percent(images, reference_ids),
    }
    shown = ", ".join(f"{size} ({counted(count, 'image')})" for size, count in list(sizes.items())[:SHOWN_SIZES])
    examples = ", ".join(facts["unknown_examples"]) + (", …" if len(unknown or ()) > SHOWN_IDS else "")
    labelled, with_human = facts["labelled_percent"], facts["reference_percent"]
    details = [
        ("Captions", f"{len(table.frame):,} ({len(texts):,} different)"),
        ("Images", f"{len(images):,}"),
        ("Captions per image", shown + (", more" if len(sizes) > SHOWN_SIZES else "")),
        ("Words", f"{len(vocabulary):,} different, {facts['mean_length']:.1f} per caption"),
        ("Missing captions", f"{table.empty:,}"),
        *((rule[0].upper() + rule[1:], f"{number:,}") for rule, number in table.cleaned.items() if rule != "missing"),
        ("Repeats left out", f"{table.duplicates:,}"),
        ("Images with labels", None if unknown is None else f"{len(images) - len(unknown):,} ({labelled:.1f}%)"),
        ("Unknown image IDs", None if unknown is None else f"{len(unknown):,} ({examples})" if unknown else "0"),
        ("Images with references", None if with_human is None else f"{with_human:.1f}%"),
    ]
    warnings = []
    if kind == "generated" and (several := int((per_image > 1).sum())):
        have = "has" if several == 1 else "have"
        warnings.append(f"{counted(several, 'image')} {have} more than one caption: they are samples of one set.")
    return _report(
        table,
        file_name,
        facts,
        details,
        warnings,
        _overlap_warnings(images, known_ids, "has a label", "have no label and do not count"),
        _overlap_warnings(images, reference_ids, "has references", "have no reference and count for LIC_M alone"),
    )


def report_attributes(table: Table, file_name: str, caption_ids: Collection[str] | None = None) -> ImportReport:
    """Describe labels as read. caption_ids: images that have captions. Facts: images, columns (each a LabelColumn),
    coverage_percent (share of the captioned images that are in the file, 0 to 100)."""
    known = table.frame["image_id"].tolist()
    coverage = _percent(caption_ids, known)
    columns: list[LabelColumn] = []
    details: list[tuple[str, str | None]] = [("Images", f"{len(known):,}")]
    for name in table.frame.columns.drop("image_id"):
        counts = Counter(table.frame[name].tolist())
        columns.append(LabelColumn(str(name), dict(counts.most_common(MOST_LABELS)), len(counts)))
        shown = "; ".join(f"{value or '(empty)'} {count:,}" for value, count in columns[-1].counts.items())
        several = f"not a label column ({len(counts):,} different values)"
        details.append((str(name), shown if columns[-1].is_label else several))
    details.append(("Repeats left out", f"{table.duplicates:,}"))
    details.append(("Captioned images with labels", None if coverage is None else f"{coverage:.1f}%"))
    none = f"No column holds labels: each has more than {MOST_LABELS} different values."
    return _report(
        table,
        file_name,
        {"images": len(known), "columns": tuple(columns), "coverage_percent": coverage},
        details,
        () if any(column.is_label for column in columns) else (none,),
        _overlap_warnings(sorted(caption_ids), known, "with a caption is in this file", "") if caption_ids else (),
    )


def report_objects(table: Table, file_name: str, labelled_ids: Collection[str] | None = None) -> ImportReport:
    """Describe objects as read. labelled_ids: images of the tables of labels. Facts: images, bare (images without an
    object), crowds (annotations of a crowd), counts (object -> images that show it, most frequent first),
    coverage_percent (share of the labelled images that are in the file, 0 to 100)."""
    known = table.frame["image_id"].tolist()
    names = table.frame["objects"].str.split(BETWEEN).explode().str.replace(SURE, "", regex=True)
    counts = names[names != ""].value_counts(sort=False).sort_index().sort_values(ascending=False, kind="stable")
    labelled = None if labelled_ids is None else sorted(labelled_ids)
    coverage = _percent(labelled, known)
    bare = int((table.frame["objects"] == "").sum())
    shown = ", ".join(f"{name} {count:,}" for name, count in list(counts.items())[:MOST_LABELS])
    details = [
        ("Images", f"{len(known):,} ({bare:,} without an object)"),
        ("Categories", f"{len(counts):,}"),
        ("Images by category", shown + (", …" if len(counts) > MOST_LABELS else "")),
        ("Crowds (each counts as the object)", f"{table.crowds:,}"),
        ("Labelled images in the file", None if coverage is None else f"{coverage:.1f}%"),
    ]
    facts = {"images": len(known), "bare": bare, "crowds": table.crowds, "coverage_percent": coverage}
    facts["counts"] = {name: int(count) for name, count in counts.items()}
    have, lack = "with a label is in this file", "have labels and are not in this file"
    return _report(table, file_name, facts, details, _overlap_warnings(labelled or [], known, have, lack))


def report_boxes(table: Table, file_name: str) -> ImportReport:
    """Describe boxes as read. Facts: boxes, images."""
    facts = {"boxes": len(table.frame), "images": table.frame["image_id"].nunique()}
    return _report(table, file_name, facts, [(name.capitalize(), f"{number:,}") for name, number in facts.items()])


def report_segments(table: Table, file_name: str, photographs: Collection[str] | None = None) -> ImportReport:
    """Describe outlines as read. photographs: images whose photographs are known. Facts: outlines that can be used, and
    are of images that were asked for; others, of other images; images; people (outlines of a person), on so many images
    with_people; crowds (outlines around several objects); sizeless (images whose size the file does not say);
    coverage_percent (share of the known photographs with an outline, 0 to 100)."""
    frame = table.frame
    people = frame["object"] == "person"
    known = frame["image_id"].unique().tolist()
    images = None if photographs is None else sorted(photographs)
    facts = {
        "outlines": len(frame),
        "others": table.others,
        "images": len(known),
        "people": int(people.sum()),
        "with_people": frame.loc[people, "image_id"].nunique(),
        "crowds": int(frame["crowd"].sum()),
        "sizeless": frame.loc[frame["height"] == 0, "image_id"].nunique(),
        "coverage_percent": _percent(images, known),
    }
    others = f"{table.others:,}" if table.others else None
    details = [
        ("Outlines", f"{len(frame):,} ({facts['crowds']:,} of a crowd)"),
        ("Images", f"{len(known):,} ({facts['with_people']:,} with a person)"),
        ("People", f"{facts['people']:,}"),
        ("Outlines of images that the collection lacks, left out", others),
        ("Photographs with outlines", None if images is None else f"{facts['coverage_percent']:.1f}%"),
    ]
    size = f"The file does not give the size of {counted(facts['sizeless'], 'image')}"
    return _report(
        table,
        file_name,
        facts,
        details,
        [f"{size}: whether outlines fit is checked when they are used."] if facts["sizeless"] else (),
        _overlap_warnings(images or [], known, "of a photograph is in this file", "have a photograph and no outline"),
    )


def _missing(images: list[str], known: Collection[str]) -> list[str]:
    known = frozenset(known)
    return [image for image in images if image not in known]


def _percent(images: Iterable[str] | None, known: Collection[str] | None) -> float | None:
    """Share of `images` that are in `known`, 0 to 100; None if one of them is unknown."""
    if images is None or known is None:
        return None
    images = list(images)
    return 100.0 * (1 - len(_missing(images, known)) / max(len(images), 1))


def _overlap_warnings(images: list[str], known: Collection[str] | None, what: str, otherwise: str) -> Iterable[str]:
    """A warning with the likely reason if nothing is in common, and one in the words `otherwise` for less than half."""
    missing = [] if known is None else _missing(images, known)
    if not missing or known is None:
        return
    if len(missing) == len(images):
        here, there = ", ".join(images[:2]), ", ".join(sorted(known)[:2]) or "none"
        yield f"No image ID {what}: the IDs may come from another data set ({here}; {there})."
    elif otherwise and len(missing) * 2 > len(images):
        yield f"{len(missing):,} of {counted(len(images), 'image')} {otherwise}."
