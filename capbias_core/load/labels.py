"""From rows to labels: one row per image, and what each label means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
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
from capbias_core.kinds import LABELS
from capbias_core.load.checks import agreement
from capbias_core.load.columns import Wanted
from capbias_core.load.parts import Part, Piece, sizes
from capbias_core.load.questions import Ask, Given, Option
from capbias_core.load.sheet import NAMES, Sheet, cell_text, is_missing, is_scalar, last_part, listed
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
FEWEST_NAMED = 20  # captions that name one value, before labels are compared with them
IMAGE = "\0image"  # the column of images, beside those of a file


def label_part(
    piece: Piece, wanted: Sequence[Wanted], given: Given, texts: Sequence[Part], values: Sequence[str], needed: bool
) -> Part:
    """A table of labels, one row per image, with what they mean. texts: captions, which tell what codes mean. values,
    needed: as in `read`. Raises Ask if rows of an image differ and no rule says which counts, if several columns may
    hold the labels, or if codes may mean either value."""
    assert piece.ids is not None
    sheet, notes = piece.sheet, list[str]()
    rows = sheet.frame.assign(**{IMAGE: piece.ids})
    rows = rows[rows[IMAGE].notna()].reset_index(drop=True)
    order = list(dict.fromkeys(rows[IMAGE]))
    made: dict[str, dict[str, list[str]]] = {
        attribute: dict(_one_per_image(sheet, rows, order, attribute, names, given, notes))
        for attribute, names in piece.labels.items()
    }
    columns: dict[str, Any] = {"image_id": order}
    for each in made.values():
        columns |= each
    read = set(columns)
    differing = []
    for name in sheet.columns:
        if name in read or name == piece.column or any(name in names for names in piece.labels.values()):
            continue
        if not (is_scalar(rows[name]) or rows[name].map(lambda cell: isinstance(cell, list)).any()):
            continue
        cells = rows[name].map(cell_text)
        if (cells.groupby(rows[IMAGE]).nunique() > 1).any():
            differing.append(name)
        else:
            of_image = dict(zip(rows[IMAGE], cells, strict=True))
            columns[name] = [of_image[image] for image in order]
    frame = pd.DataFrame(columns, dtype="str")
    rest = [name for name in frame.columns if name not in read]
    mapping, overrides = [], mapping_overrides(given.map)
    for one in wanted:
        for labels in _counting(sheet, frame, one, list(made.get(one.name, ())), given, needed):
            try:
                mapping.append(_details(one, labels, overrides.get(one.name, {}), values, texts if needed else ()))
            except CapbiasError as error:
                if one.needed or one.name in overrides or isinstance(error, Ask):
                    raise
    read_as = {details["column"] for details in mapping}
    unread = [attribute for attribute, each in made.items() if read_as.isdisjoint(each)]
    account = {
        "Image ID": piece.column,
        "Labels": ", ".join(f"{attribute} ({', '.join(each)})" for attribute, each in made.items()),
        "Not used": listed(rest, 20) if rest else "",
        "Differing between rows of an image, not used": listed(differing) if differing else "",
        "Rows per image": sizes(rows[IMAGE]),
        "Not read": f"labels of {listed(unread)}" if unread else "",
    }
    more = {"beside": bool(piece.captions), "mapping": tuple(mapping)}
    return piece.part(LABELS, piece.file.name or sheet.name, frame, account, piece.faults(), notes, **more)


def _one_per_image(
    sheet: Sheet,
    rows: pd.DataFrame,
    order: Sequence[str],
    attribute: str,
    names: Sequence[str],
    given: Given,
    notes: list[str],
) -> Iterator[tuple[str, list[str]]]:
    """The columns of labels of an attribute with the label of each image, '' without one. names: columns of the file,
    one alone each unless the user says how several combine."""
    if given.several and given.several not in RULES:
        raise unknown_name("rule for several rows", given.several, RULES)
    rule = given.several or sheet.roles.get("several", "")
    who = sheet.roles.get("rater") or annotator_column(sheet.columns)
    for together in [names] if given.several else [[name] for name in names]:
        name = together[0] if len(together) == 1 else attribute
        votes = [list(row) for row in zip(*(map(cell_text, rows[each]) for each in together), strict=True)]
        by_image: dict[str, list[str]] = {image: [] for image in order}
        for image, labels in zip(rows[IMAGE], votes, strict=True):
            by_image[image] += labels
        mixed = [image for image in order if _shared(by_image[image]) == MIXED]
        if given.several and any(len(labels) > 1 for labels in by_image.values()):
            given.use("several", given.several)
        if mixed and not rule:
            raise _which(sheet, rows, together, mixed, len(order), who)
        if rule == EACH:
            yield from _each(rows, votes, name, who, order).items()
            continue
        combined = [COMBINE[rule or BOTH](by_image[image]) for image in order]
        if mixed:
            differ, lost = f"{len(mixed):,} of {counted(len(order), 'image')}", combined.count(MIXED)
            note = f"rows of {differ} differ in {name}; rule {rule}: {RULES[rule]}"
            notes.append(note + (f"; {lost:,} get no label" if lost else ""))
        yield name, combined


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


def _counting(
    sheet: Sheet, frame: pd.DataFrame, one: Wanted, columns: list[str], given: Given, needed: bool
) -> list[pd.Series]:
    """The columns of labels of an attribute that count, by image. Raises Ask if one is needed of several."""
    chosen = [name for name in given.attribute_column if name in columns]
    for name in chosen:
        given.use("attribute_column", name)
    columns = chosen or columns
    if needed and len(columns) > 1:
        counts = {name: frame[name].value_counts().head(4) for name in columns}
        shown = {name: listed(f"{label} {n:,}" for label, n in each.items()) for name, each in counts.items()}
        raise Ask(
            f"{sheet.title}: each annotator has a column of {one.name}. Which counts?",
            *(Option({"attribute_column": (name,)}, text) for name, text in shown.items()),
        )
    return [frame.set_index("image_id")[name] for name in columns]


def _details(
    one: Wanted, labels: pd.Series, chosen: Mapping[str, str | None], values: Sequence[str], texts: Sequence[Part]
) -> dict:
    """What the labels of a column mean. chosen: what the user said. values: the labels to compare, of an attribute that
    is only a column. texts: captions. Raises CapbiasError for a label or value that is not there, and Ask for two
    labels whose meaning captions tell, such as 0 and 1."""
    column, counts, attribute = str(labels.name), labels.value_counts().to_dict(), one.attribute
    if attribute is None:
        values = tuple(dict.fromkeys(values)) or values_among(counts)
        if not 2 <= len(values) <= MOST_LABELS:  # such as a column of free text
            found = f"{counted(len(values), 'label')} to compare, not 2 to {MOST_LABELS}"
            raise CapbiasError(f"The column {column} has {found}.", "Choose labels, or name another column.", "values")
        attribute = plain_attribute(one.name, tuple(values))
    elif values:
        raise CapbiasError(
            f"Only labels of a column can be chosen; {one.name} has fixed values.", "Leave the choice out.", "values"
        )
    for raw, value in chosen.items():
        if value is not None and value not in attribute.values:
            raise unknown_name(f"value of {attribute.name}", value, attribute.values)
        if raw not in counts:
            raise unknown_name(f"label in the column {column}", raw, (label or "(empty)" for label in counts))
    mapping = suggest_mapping(attribute, counts) | dict(chosen)
    if texts and not chosen and not any(mapping.values()):
        other = (*NAMES["other"], MIXED.casefold())
        unread = [raw for raw in counts if not is_unknown(raw) and raw.strip().casefold() not in other]
        if len(unread) == 2 == len(attribute.values):
            _ask_meaning(attribute, labels, unread, texts)
    return mapping_details(attribute, column, mapping, counts)


def _ask_meaning(attribute: Attribute, labels: pd.Series, unread: list[str], texts: Sequence[Part]) -> None:
    """Raises Ask if captions tell what two labels mean."""
    ways = []
    for values in permutations(attribute.values):
        meant = dict(zip(unread, values, strict=True))
        agree = pd.concat([agreement(part.frame, attribute, labels.map(meant)) for part in texts[:2]])
        effect = f"{agree.sum():,} of {len(agree):,} captions that name one value agree with the label"
        pairs = tuple(f"{attribute.name}:{label}={value}" for label, value in meant.items())
        ways.append((agree.sum(), len(agree), Option({"map": pairs}, effect)))
    ways.sort(key=lambda way: -way[0])
    if ways[0][1] >= FEWEST_NAMED and ways[0][0] > ways[1][0]:
        shown = ", ".join(f"{label} {number:,}" for label, number in labels.value_counts().items() if label in unread)
        raise Ask(
            f"{labels.name}: what do the labels {shown} mean? They are no usual words for "
            f"{' and '.join(attribute.values)}.",
            *(option for *_, option in ways),
        )


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
