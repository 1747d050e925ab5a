"""From rows to labels: one row per image, and what each label means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
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
    values_among,
)
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load.columns import Wanted
from capbias_core.load.join import Images
from capbias_core.load.names import NAMES
from capbias_core.load.questions import Ask, Given, Option
from capbias_core.load.sheet import Sheet, cell_text, is_missing, is_scalar, last_part, listed
from capbias_core.types import Attribute, counted

# Rules for the label of an image that has several rows.
BOTH, MAJORITY, FIRST, EACH = "both", "majority", "first", "each"
RULES = {
    BOTH: "rows are people: an image gets the label that they share, else none",
    MAJORITY: "rows are opinions: the most frequent label, none in a tie",
    FIRST: "the first row of an image",
    EACH: "a column for each annotator",
}
MOST_ANNOTATORS = 10  # with a column each; of more, the first labels of all images are a column, and so on
SHOWN_LABELS = 10
BLANK = "___"  # in a flag to paste, for what only the user knows
ONES = ("1", "true", "yes")  # what a column called after a value says of an image that has it
IMAGE = "\0image"  # the column of images, beside those of a file


@dataclass(frozen=True)
class LabelTable:
    """Labels of images. frame: image_id, then columns of text, '' if empty. columns: attribute -> its columns."""

    frame: pd.DataFrame
    columns: Mapping[str, list[str]]
    notes: tuple[str, ...]
    left_out: tuple[str, ...]  # columns that differ between the rows of an image


def label_table(sheet: Sheet, names: Mapping[str, list[str]], images: Images, given: Given, several: str) -> LabelTable:
    """The labels of a file: one row per image. names: attribute -> its columns. several: the rule of the format, ''
    without one. Raises Ask if rows of an image differ and no rule says which counts."""
    if given.several and given.several not in RULES:
        raise unknown_name("rule for several rows", given.several, RULES)
    rule = given.several or several
    rows = sheet.frame.assign(**{IMAGE: images.ids})
    rows = rows[rows[IMAGE].notna()].reset_index(drop=True)
    order = list(dict.fromkeys(rows[IMAGE]))
    frame: dict[str, Any] = {"image_id": order}
    columns: dict[str, list[str]] = {attribute: [] for attribute in names}
    notes, used = [], {IMAGE, images.column}
    who = sheet.roles.get("rater") or annotator_column(sheet.columns)
    for attribute, own in names.items():
        hot = [name for name in own if "=" in name and name not in rows]
        used |= {name.rpartition("=")[2] if name in hot else name for name in own}
        for together in [own] if given.several or hot else [[name] for name in own]:
            name = together[0] if len(together) == 1 and not hot else attribute
            votes = _votes(rows, together, bool(hot))
            by_image: dict[str, list[str]] = {image: [] for image in order}
            for image, labels in zip(rows[IMAGE], votes, strict=True):
                by_image[image] += labels
            mixed = [image for image in order if _shared(by_image[image]) == MIXED]
            if given.several and any(len(labels) > 1 for labels in by_image.values()):
                given.use("several", given.several)
            if mixed and not rule:
                raise _which(sheet, rows, together, mixed, len(order), who)
            if rule == EACH:
                each = _each(rows, votes, name, who, order)
                frame |= each
                columns[attribute] += each
                continue
            combine = COMBINE[rule or BOTH]
            frame[name] = [combine(by_image[image]) for image in order]
            columns[attribute].append(name)
            if mixed:
                differ = f"{len(mixed):,} of {counted(len(order), 'image')}"
                lost = sum(label == MIXED for label in frame[name])
                note = f"rows of {differ} differ in {name}; rule {rule}: {RULES[rule]}"
                notes.append(note + (f"; {lost:,} get no label" if lost else ""))
    left_out = []
    for name in [name for name in sheet.columns if name not in used and name not in frame]:
        if not (is_scalar(rows[name]) or rows[name].map(lambda cell: isinstance(cell, list)).any()):
            continue
        texts = rows[name].map(cell_text)
        if (texts.groupby(rows[IMAGE]).nunique() > 1).any():
            left_out.append(name)
        else:
            of_image = dict(zip(rows[IMAGE], texts, strict=True))
            frame[f"{name} (in the file)" if name == "image_id" else name] = [of_image[image] for image in order]
    return LabelTable(pd.DataFrame(frame, dtype="str"), columns, tuple(notes), tuple(left_out))


def _votes(rows: pd.DataFrame, names: Sequence[str], hot: bool) -> list[list[str]]:
    """The labels of each row. hot: names are `Female=column`, and the label is each value whose column says true."""
    if not hot:
        return [list(row) for row in zip(*(map(cell_text, rows[name]) for name in names), strict=True)]
    flags = [(value, rows[column].map(cell_text)) for value, _, column in (name.partition("=") for name in names)]
    sides = [[value if cell.lower() in ONES else "" for cell in cells] for value, cells in flags]
    return [["|".join(filter(None, row))] for row in zip(*sides, strict=True)]


def _sense(label: str) -> str:
    return meaning(label) or label.casefold()


def _shared(given: Sequence[str]) -> str:
    """The label that all have, in its first spelling; empty and unknown ones do not count beside known ones."""
    labels = [label for label in given if label]
    labels = [label for label in labels if not is_unknown(label)] or labels
    return MIXED if len(set(map(_sense, labels))) > 1 else (labels or [""])[0]


def _most_frequent(given: Sequence[str]) -> str:
    """The label that most have, in its first spelling; empty ones do not vote."""
    labels = [label for label in given if label]
    votes = Counter(map(_sense, labels)).most_common(2)
    if len(votes) == 2 and votes[0][1] == votes[1][1]:
        return MIXED
    return next((label for label in labels if _sense(label) == votes[0][0]), "")


COMBINE = {BOTH: _shared, MAJORITY: _most_frequent, FIRST: lambda given: (*given, "")[0]}


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
        if 1 < texts.nunique() <= 60 and not pd.DataFrame({"image": rows[IMAGE], "text": texts}).duplicated().any():
            result.append(name)
    return result


def _which(
    sheet: Sheet, rows: pd.DataFrame, names: Sequence[str], mixed: Sequence[str], images: int, who: str | None
) -> Ask:
    """The question which rows of an image count."""
    options, raters = [], [who] if who in rows else []
    for name in _varying(rows, names):
        counts = Counter(rows[name].map(cell_text))
        if last_part(name) in NAMES["version"] or (name != who and len(counts) == 2):
            for value, number in sorted(counts.items(), reverse=True)[:2]:
                options.append(Option({"rows": (f"{name}={value}",)}, f"only these {number:,} rows"))
        elif name not in raters:
            raters.append(name)
    said = RULES | {MAJORITY: f"the majority{f' of {raters[0]}' if raters else ''}, as rows are opinions"}
    rules = (MAJORITY, BOTH, FIRST) if raters or options else (BOTH, MAJORITY, FIRST)
    options += [Option({"several": (rule,)}, said[rule]) for rule in rules]
    shown = [name for name in sheet.columns if is_scalar(rows[name])]
    examples = [
        ", ".join(f"{name} {row[name]}" for name in shown if not is_missing(row[name]))
        for row in rows[rows[IMAGE] == mixed[0]].head(2).to_dict("records")
    ]
    return Ask(
        f"{sheet.title}: {len(mixed):,} of {counted(images, 'image')} have rows of labels that differ. Which counts?",
        *options,
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
            found = f"{counted(len(values), 'label')} to compare, not 2 to {MOST_LABELS}"
            raise CapbiasError(f"The column {column} has {found}.", "Choose labels, or name another column.", "values")
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
    return [raw for raw in unread if raw.strip().casefold() not in NAMES["other"] and raw != MIXED]


def mapping_details(
    attribute: Attribute, column: str, mapping: dict[str, str | None], counts: Mapping[str, int] | None = None
) -> dict:
    """What is stored with a table of labels for one mapped attribute. counts: raw label -> images, for the message of
    the CapbiasError if the mapping leaves out a value."""
    if len(attribute.values) < 2:
        raise CapbiasError(f"The column {column} has fewer than two labels to compare.", "Choose another column.")
    missing = [value for value in attribute.values if value not in mapping.values()]
    if missing:
        most = sorted(mapping, key=lambda raw: -(counts or {}).get(raw, 0))
        shown = listed((f"{raw or '(empty)'} ({counts[raw]:,})" if counts else raw for raw in most), SHOWN_LABELS)
        unread = [raw for raw in most if mapping[raw] is None and not is_unknown(raw)]
        hint = f"Name another column, or add one with the labels {', '.join(attribute.values)}."
        if 0 < len(unread) <= MOST_LABELS:  # more are such as ages in years
            flags = " ".join(f"--map {quote(f'{attribute.name}:{raw}={BLANK}')}" for raw in unread)
            values = dict.fromkeys(unread, BLANK)
            blanks = f"Fill in the blanks ({' or '.join(attribute.values)}): {flags}"
            hint = f"{blanks}; in Python, mapping={values}; or choose on the Data page."
        meant = " or ".join(missing)
        raise CapbiasError(f"No label of the column {column} is read as {meant}; it holds {shown}.", hint)
    forms = {"forms": [list(row) for row in attribute.forms]} if attribute.forms else {}
    return {"column": column, "mapping": mapping, "attribute": attribute.stored(), **forms}
