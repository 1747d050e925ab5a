"""From rows to labels: one row per image, and what each label means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any

import pandas as pd

from capbias_core.attributes import plain_attribute
from capbias_core.attributes.labels import (
    MIXED,
    MOST_LABELS,
    annotator_column,
    is_unknown,
    meaning,
    suggest_mapping,
    value_of_name,
    values_among,
)
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load.columns import Wanted
from capbias_core.load.join import Images
from capbias_core.load.questions import Ask, Given, Option
from capbias_core.load.sheet import MOST_COLUMNS, Sheet, cell_text, is_missing, is_scalar, last_part
from capbias_core.types import Attribute, counted

# Rules for the label of an image that has several rows.
RULES = BOTH, MAJORITY, FIRST, EACH = "both", "majority", "first", "each"
EXPLAINED = {
    BOTH: "rows are people: an image gets the label that they share, else none",
    MAJORITY: "rows are opinions: the most frequent label, none in a tie",
    FIRST: "the first row of an image",
    EACH: "a column for each annotator",
}
MOST_ANNOTATORS = 10  # with a column each; of more, the first labels of all images are a column, and so on
VERSIONS = str.split("""
    version source dataset split run round date timestamp created_at epoch phase stage batch
""")
SHOWN_LABELS = 10
OTHERS = str.split("""
    both neutral nonbinary non-binary other others mixed none multiple
""")  # labels of no value
BLANK = "___"  # in a flag to paste, for what only the user knows
ONES = ("1", "true", "yes")  # what a column called after a value says of an image that has it


@dataclass(frozen=True)
class LabelTable:
    """Labels of images. frame: image_id, then columns of text, '' if empty. columns: attribute -> its columns."""

    frame: pd.DataFrame
    columns: Mapping[str, list[str]]
    notes: tuple[str, ...]
    sizes: Mapping[int, int]  # rows of an image -> images
    repeats: int = 0  # rows that repeat the labels of an image
    left_out: tuple[str, ...] = ()  # columns that differ between the rows of an image


def label_table(sheet: Sheet, names: Mapping[str, list[str]], images: Images, given: Given, several: str) -> LabelTable:
    """The labels of a file: one row per image. names: attribute -> its columns. several: the rule of the format, ''
    without one. Raises Ask if rows of an image differ and no rule says which counts."""
    if given.several and given.several not in RULES:
        raise unknown_name("rule for several rows", given.several, RULES)
    rows = sheet.frame.assign(**{IMAGE: images.ids})
    rows = rows[rows[IMAGE].notna()].reset_index(drop=True)
    order = list(dict.fromkeys(rows[IMAGE]))
    sizes = Counter(rows[IMAGE].value_counts().tolist())
    frame: dict[str, Any] = {"image_id": order}
    columns: dict[str, list[str]] = {}
    notes: list[str] = []
    who = sheet.roles.get("rater") or annotator_column(sheet.columns)
    hot = {attribute for attribute, own in names.items() if any("=" in name and name not in rows for name in own)}
    tables: list[tuple[str, list[str]]] = []  # attribute, columns whose labels are votes on an image
    for attribute, own in names.items():
        together = given.several or attribute in hot
        tables += [(attribute, own)] if together else [(attribute, [name]) for name in own]
    for attribute, listed_names in tables:
        votes = _votes(rows, listed_names)
        name = listed_names[0] if len(listed_names) == 1 and attribute not in hot else attribute
        by_image: dict[str, list[str]] = {}
        for image, labels in zip(rows[IMAGE], votes, strict=True):
            by_image.setdefault(image, []).extend(labels)
        mixed = [image for image in order if len(_senses(by_image[image])) > 1]
        rule = given.several or several
        if given.several and max(map(len, by_image.values())) > 1:
            given.use("several", given.several)
        if mixed and not rule:
            raise _which(sheet, rows, listed_names, mixed, len(order), who)
        if rule == EACH:
            for label, cells in _each(rows, votes, name, who, order).items():
                frame[label] = cells
                columns.setdefault(attribute, []).append(label)
            continue
        combine = COMBINE[rule or BOTH]
        frame[name] = [combine(by_image[image]) for image in order]
        columns.setdefault(attribute, []).append(name)
        if mixed:
            lost = sum(label == MIXED for label in frame[name])
            differ = f"{len(mixed):,} of {counted(len(order), 'image')}"
            note = f"rows of {differ} differ in {name}; rule {rule}: {EXPLAINED[rule]}"
            notes.append(note + (f"; {lost:,} get no label" if lost else ""))
    read = [name for listed_names in names.values() for name in listed_names]
    used = {name if name in rows else name.rpartition("=")[2] for name in read} | {IMAGE, images.column}
    left_out = []
    for name in rows.columns:
        shown = is_scalar(rows[name]) or rows[name].map(lambda cell: isinstance(cell, list)).any()
        if name in used or name in frame or not shown:
            continue
        texts = rows[name].map(cell_text)
        if len(order) < len(rows) and (texts.groupby(rows[IMAGE]).nunique() > 1).any():
            left_out.append(name)
            continue
        first = dict(zip(reversed(rows[IMAGE].tolist()), reversed(texts.tolist()), strict=True))
        frame[f"{name} (in the file)" if name == "image_id" else name] = [first[image] for image in order]
    if len(frame) > MOST_COLUMNS:
        raise CapbiasError(
            f"{sheet.title} would have {len(frame):,} columns, more than {MOST_COLUMNS:,}.",
            "Use another rule.",
            "several",
        )
    votes = map(str, _votes(rows, [name for each in names.values() for name in each])) if names else rows.index
    repeats = pd.DataFrame({"image": rows[IMAGE], "labels": list(votes)}).duplicated().sum()
    return LabelTable(pd.DataFrame(frame, dtype="str"), columns, tuple(notes), sizes, int(repeats), tuple(left_out))


IMAGE = "\0image"  # the column of images, beside those of a file


def _votes(rows: pd.DataFrame, names: Sequence[str]) -> list[list[str]]:
    """The labels of each row. `Female=column`: the value, if the column says true."""
    columns = []
    for name in names:
        value, equals, column = name.partition("=") if name not in rows else ("", "", name)
        if equals:
            columns.append([value if cell_text(cell).lower() in ONES else None for cell in rows[column]])
        else:
            columns.append([cell_text(cell) for cell in rows[column]])
    hot = any("=" in name and name not in rows for name in names)
    if hot:  # a label per row: the values that are true
        return [["|".join(filter(None, row))] for row in zip(*columns, strict=True)]
    return [[label for label in row if label is not None] for row in zip(*columns, strict=True)]


def _senses(labels: Sequence[str]) -> set[str]:
    """The different meanings of labels; empty and unknown ones do not count beside known ones."""
    known = {_sense(label) for label in labels if label and not is_unknown(label)}
    return known or {_sense(label) for label in labels if label}


def _sense(label: str) -> str:
    return meaning(label) or label.casefold()


def _shared(given: Sequence[str]) -> str:
    """The label that all have, in its first spelling; unknown ones do not count beside known ones."""
    labels = [label for label in given if label]
    known = [label for label in labels if not is_unknown(label)] or labels
    return MIXED if len(set(map(_sense, known))) > 1 else (known or [""])[0]


def _most_frequent(given: Sequence[str]) -> str:
    """The label that most have, in its first spelling; empty ones do not vote."""
    labels = [label for label in given if label]
    votes = Counter(map(_sense, labels)).most_common(2)
    if len(votes) == 2 and votes[0][1] == votes[1][1]:
        return MIXED
    return next((label for label in labels if _sense(label) == votes[0][0]), "")


COMBINE: dict[str, Callable[[Sequence[str]], str]] = {
    BOTH: _shared,
    MAJORITY: _most_frequent,
    FIRST: lambda given: given[0] if given else "",
}


def _each(
    rows: pd.DataFrame, votes: list[list[str]], name: str, who: str | None, order: Sequence[str]
) -> dict[str, list[str]]:
    """A column for each annotator; of many annotators, for the first row of an image, the second and so on."""
    who = who if who in rows else next(iter(_varying(rows, [name])), None)
    raters = [cell_text(cell) for cell in rows[who]] if who in rows else []
    if not 0 < len(set(raters)) <= MOST_ANNOTATORS:
        raters = [str(number) for number in rows.groupby(IMAGE, sort=False).cumcount() + 1]
    given: dict[str, dict[str, list[str]]] = {}
    for rater, image, labels in zip(raters, rows[IMAGE], votes, strict=True):
        given.setdefault(rater, {}).setdefault(image, []).extend(labels)
    return {
        f"{name} {rater}".strip(): [_shared(labels.get(image, ())) for image in order]
        for rater, labels in given.items()
    }


def _varying(rows: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Columns of few values of which each occurs once among the rows of an image, such as who labelled it."""
    result = []
    for name in rows.columns:
        if name == IMAGE or name in names or not is_scalar(rows[name]):
            continue
        texts = rows[name].map(cell_text)
        varies = 1 < texts.nunique() <= 60 and (texts.groupby(rows[IMAGE]).nunique() > 1).any()
        if varies and not pd.DataFrame({"image": rows[IMAGE], "text": texts}).duplicated().any():
            result.append(name)
    return result


def _which(
    sheet: Sheet, rows: pd.DataFrame, names: Sequence[str], mixed: Sequence[str], images: int, who: str | None
) -> Ask:
    """The question which rows of an image count."""
    options, raters = [], [who] if who in rows else []
    for name in _varying(rows, names):
        if last_part(name) in VERSIONS or (name != who and rows[name].map(cell_text).nunique() == 2):
            counts = sorted(Counter(rows[name].map(cell_text)).items(), reverse=True)[:2]
            options += [
                Option({"rows": (f"{name}={value}",)}, f"only these {number:,} rows") for value, number in counts
            ]
        elif name not in raters:
            raters.append(name)
    majority = f"the majority{f' of {raters[0]}' if raters else ''}, as rows are opinions"
    votes = [
        Option({"several": (MAJORITY,)}, majority),
        Option({"several": (BOTH,)}, EXPLAINED[BOTH]),
        Option({"several": (FIRST,)}, EXPLAINED[FIRST]),
    ]
    votes = votes if raters or options else [votes[1], votes[0], votes[2]]
    shown = [name for name in rows.columns if name != IMAGE and is_scalar(rows[name])]
    first = rows[rows[IMAGE] == mixed[0]]
    examples = [
        ", ".join(f"{name} {row[name]}" for name in shown if not is_missing(row[name]))
        for row in first.head(2).to_dict("records")
    ]
    return Ask(
        f"{sheet.title}: {len(mixed):,} of {counted(images, 'image')} have rows of labels that differ. Which counts?",
        *options,
        *votes,
        examples=examples,
    )


# what labels mean


def mapping_overrides(pairs: Sequence[str]) -> dict[str, dict[str, str | None]]:
    """The values of `--map` by attribute; an empty value drops the label.

    >>> mapping_overrides(["gender:0=Female", "gender:1=Male", "age:?="])
    {'gender': {'0': 'Female', '1': 'Male'}, 'age': {'?': None}}
    """
    overrides: dict[str, dict[str, str | None]] = {}
    for pair in pairs:
        attribute, _, rest = pair.partition(":")
        raw, equals, value = rest.rpartition("=")
        if not (attribute and equals):
            raise CapbiasError(
                f"--map {pair} does not have the form ATTRIBUTE:LABEL=VALUE.", "An example is --map gender:f=Female."
            )
        overrides.setdefault(attribute, {})[raw] = value or None
    return overrides


def attribute_and_mapping(
    wanted: Wanted, column: str, counts: Mapping[str, int], chosen: Mapping[str, str | None], values: Sequence[str] = ()
) -> tuple[Attribute, dict[str, str | None]]:
    """The attribute of a column and what its labels mean. chosen: what the user said. values: the labels to compare, of
    an attribute that is only a column. Raises CapbiasError for a label or value that is not there."""
    attribute = wanted.attribute
    if attribute is None:
        values = tuple(dict.fromkeys(values)) or values_among(counts)
        if not 2 <= len(values) <= MOST_LABELS:  # such as a column of free text
            raise CapbiasError(
                f"The column {column} has {counted(len(values), 'label')} to compare, not 2 to {MOST_LABELS}.",
                "Choose labels." if len(values) > 1 else "Name another column, or more of its labels.",
                "values",
            )
        attribute = plain_attribute(wanted.name, tuple(values))
    elif values:
        raise CapbiasError(
            f"Only labels of a column can be chosen; {wanted.name} has fixed values.", "Leave the choice out.", "values"
        )
    for raw, value in chosen.items():
        if value == BLANK:
            raise CapbiasError(
                f"The mapping {attribute.name}:{raw}={BLANK} has a blank.",
                f"Write {' or '.join(attribute.values)} in its place, or leave it out to drop the label.",
            )
        if value is not None and value not in attribute.values:
            raise unknown_name(f"value of {attribute.name}", value, attribute.values)
        if raw not in counts:
            raise unknown_name(f"label in the column {column}", raw, (label or "(empty)" for label in counts))
    return attribute, suggest_mapping(attribute, counts) | dict(chosen)


def unread_labels(attribute: Attribute, mapping: Mapping[str, str | None]) -> list[str]:
    """The labels that mean nothing, if a value has no label; none if each value has one."""
    if set(attribute.values) <= set(mapping.values()):
        return []
    unread = [raw for raw, value in mapping.items() if value is None and not is_unknown(raw)]
    return [raw for raw in unread if raw.strip().casefold() not in OTHERS and raw != MIXED]


def mapping_details(
    attribute: Attribute, column: str, mapping: dict[str, str | None], counts: Mapping[str, int] | None = None
) -> dict:
    """What is stored with a table of labels for one mapped attribute. counts: raw label -> images, for the message of
    the CapbiasError if the mapping leaves out a value."""
    if len(attribute.values) < 2:
        raise CapbiasError(
            f"The column {column} has {counted(len(attribute.values), 'different label')}.",
            "Choose another column: an attribute has two or more values.",
        )
    missing = [value for value in attribute.values if value not in mapping.values()]
    if missing:
        labels = ", ".join(with_counts(counts) if counts else [raw or "(empty)" for raw in mapping])
        unread = [raw for raw, value in mapping.items() if value is None and not is_unknown(raw)]
        named = value_of_name(attribute, column)  # 1 in the column Male is Male; whether 0 is Female is not known
        values = {raw: named if named and raw.casefold() in ONES else BLANK for raw in unread[:SHOWN_LABELS]}
        flags = " ".join(f"--map {quote(f'{attribute.name}:{raw}={value}')}" for raw, value in values.items())
        hint = (
            f"Fill in the blanks ({' or '.join(attribute.values)}): {flags}; in Python, mapping={values}; or choose on "
            "the Data page."
        )
        if not 0 < len(unread) <= MOST_LABELS:  # such as ages in years
            hint = f"Name another column, or add one with the labels {', '.join(attribute.values)}."
        raise CapbiasError(
            f"No label of the column {column} is read as {' or '.join(missing)}; it holds {labels}.", hint
        )
    forms = {"forms": [list(row) for row in attribute.forms]} if attribute.forms else {}
    return {"column": column, "mapping": mapping, "attribute": attribute.stored(), **forms}


def with_counts(counts: Mapping[str, int]) -> list[str]:
    """`Female (90)`, the most frequent label first, cut if they are many."""
    labels = sorted(counts, key=lambda raw: -counts[raw])
    shown = [f"{raw or '(empty)'} ({counts[raw]:,})" for raw in labels[:SHOWN_LABELS]]
    return shown + ["…"] * (len(labels) > SHOWN_LABELS)
