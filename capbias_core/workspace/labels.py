"""Labels of images: a protected attribute with the column and mapping that give its values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any

import pandas as pd

from capbias_core.attributes import known_attributes, plain_attribute, read_attribute
from capbias_core.attributes.labels import (
    MOST_LABELS,
    columns_by_attribute,
    is_about_labeller,
    is_unknown,
    label_columns,
    suggest_mapping,
    value_of_name,
    values_among,
)
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load.parsed import cell_text
from capbias_core.types import Attribute, counted
from capbias_core.whole_files import typed_path
from capbias_core.workspace.spec import attribute_from
from capbias_core.workspace.store import Item, Workspace, content_hash

DERIVED = "derived"  # the key in the details of labels that were made from human captions
SHOWN_LABELS = 10
BLANK = "___"  # in a flag to paste, for what only the user knows
ONES = ("1", "true", "yes")  # what a column called after a value says of an image that has it
Overrides = Mapping[str, Mapping[str, str | None]]  # attribute -> {raw label: value, or None to drop it}


@dataclass(frozen=True)
class Labels:
    """Labels of images. values: Series image_id -> value of the attribute. dropped: raw label that is mapped to nothing
    -> number of images."""

    attribute: Attribute
    values: pd.Series
    dropped: dict[str, int]


def keep_attributes(
    workspace: Workspace, frame: pd.DataFrame, name: str, collection: str, source: str, attributes: dict
) -> Item:
    """The stored table of labels with its mapped attributes ({name: mapping_details(...)}), besides those that an
    earlier item of this name and content has."""
    stored = {item.name: item for item in workspace.items("labels", collection)}.get(name)
    details = stored.details if stored and stored.hash == content_hash(frame) else {}
    details = {**details, "attributes": details.get("attributes", {}) | attributes}
    return workspace.keep("labels", name, frame, collection, source, details)


def attribute_of(table: Item, name: str) -> tuple[Attribute, dict]:
    """The attribute called `name` in an attribute table, and where its labels are (for RunSpec.labels). The mapping
    kept with the table is used. Raises CapbiasError where the table has no such attribute."""
    mapped = table.details.get("attributes", {})
    if name not in mapped:
        raise CapbiasError(
            f"The table {table.name} has no labels of {name!r}; it has {', '.join(mapped) or 'none'}.",
            "Map a column to it on the Data page, or name another attribute.",
        )
    entry = mapped[name]
    return mapped_attribute(entry), {"table": table.hash, "column": entry["column"], "mapping": entry["mapping"]}


def mapped_attribute(details: Mapping[str, Any]) -> Attribute:
    """The attribute of a mapped column. details: of `mapping_details`."""
    return replace(attribute_from(details["attribute"]), forms=tuple(map(tuple, details.get("forms", ()))))


def table_with(tables: Iterable[Item], attribute: str) -> Item:
    """The newest table of labels (given oldest first) that has an attribute, if possible one that was not derived from
    captions. Of tables with one content, by several annotators, it is the first. Raises CapbiasError if none has it."""
    tables = list(tables)
    matching = tables_with(tables, attribute)
    if not matching:
        raise unknown_name("attribute", attribute, attributes_in(tables))
    given = [table for table in matching if not is_derived(table)] or matching
    return next(table for table in given if table.hash == given[-1].hash)


def is_derived(table: Item | None) -> bool:
    """Whether labels were derived from the words of human captions."""
    return table is not None and DERIVED in table.details


def attributes_in(tables: Iterable[Item]) -> list[str]:
    """The attributes of some tables of labels, each once."""
    return list(dict.fromkeys(name for table in tables for name in table.details["attributes"]))


def tables_with(tables: Iterable[Item], attribute: str) -> list[Item]:
    """The tables of labels that have an attribute."""
    return [table for table in tables if attribute in table.details.get("attributes", {})]


def table_of(tables: Iterable[Item], attribute: str, where: Mapping) -> Item | None:
    """The table that a run read, None if it was deleted. where: RunSpec.labels."""
    same = [table for table in tables_with(tables, attribute) if table.hash == where["table"]]
    return next((table for table in same if table.details["attributes"][attribute]["column"] == where["column"]), None)


def reads(where: Mapping, attribute: str, table: Item) -> bool:
    """Whether a run read its labels of an attribute in this table. where: RunSpec.labels."""
    return table_of([table], attribute, where) is not None


# from columns of a table to an attribute


def resolve_attribute(
    frame: pd.DataFrame,
    name: str,
    column: str = "",
    values: Sequence[str] = (),
    overrides: Overrides | None = None,
    folder: Path | None = None,
) -> dict:
    """An attribute of a table and its mapping, as stored with the table (`mapping_details`).

    name: an attribute (shipped or in the folder), a TOML file, or a column. column: of its labels, '' to detect it.
    values: the labels to compare, if the attribute is a column. overrides: attribute -> {raw label: value or None}, in
    place of what is suggested. folder: of attributes that users defined.

    Raises CapbiasError if no column holds its labels. If one should by its name and no label in it is understood, the
    message lists the labels, and the hint says how to map them.
    """
    counts = {item: frame[item].value_counts().to_dict() for item in frame.columns if item != "image_id"}
    if column and column not in counts:
        raise unknown_name("column", column, counts)
    known = known_attributes(folder)
    attribute = known[name] if name in known else read_attribute(typed_path(name)) if name.endswith(".toml") else None
    if attribute is None:
        column = column or name
        if column not in counts:
            raise unknown_name("attribute or column", name, {*known, *counts})
        given = (raw if raw in counts[column] else cell_text(raw) for raw in values)
        values = tuple(dict.fromkeys(given)) or values_among(counts[column])
        if not 2 <= len(values) <= MOST_LABELS:  # such as a column of free text
            raise CapbiasError(
                f"The column {column} has {counted(len(values), 'label')} to compare, not 2 to {MOST_LABELS}.",
                "Choose labels." if len(values) > 1 else "Name another column, or more of its labels.",
                "values",
            )
        attribute = plain_attribute(name, values)
    elif values:
        raise CapbiasError(
            f"Only labels of a column can be chosen; {name} has fixed values.", "Leave the choice out.", "values"
        )
    else:
        column = column or _only_column(attribute, frame)
    chosen = dict((overrides or {}).get(attribute.name, {}))
    chosen = {raw if raw in counts[column] else cell_text(raw): value for raw, value in chosen.items()}
    for raw, value in chosen.items():
        if value == BLANK:
            raise CapbiasError(
                f"The mapping {attribute.name}:{raw}={BLANK} has a blank.",
                f"Write {' or '.join(attribute.values)} in its place, or leave it out to drop the label.",
            )
        if value is not None and value not in attribute.values:
            raise unknown_name(f"value of {attribute.name}", value, attribute.values)
        if raw not in counts[column]:
            raise unknown_name(f"label in the column {column}", raw, (label or "(empty)" for label in counts[column]))
    mapping = suggest_mapping(attribute, counts[column]) | chosen
    return mapping_details(attribute, column, mapping, counts[column])


def _only_column(attribute: Attribute, frame: pd.DataFrame) -> str:
    """The only column that may hold labels of an attribute. Raises CapbiasError if there is none, or if several may."""
    columns = column_labels(frame)
    if candidates := label_columns(attribute, columns):
        if error := ambiguous(attribute, candidates, frame, "--attribute-column {}"):
            raise error
        return next(iter(candidates))
    names = " or ".join(dict.fromkeys((*attribute.columns, attribute.name)))
    none = f", and none holds labels such as {', '.join(attribute.values)}" if attribute.names_values else ""
    derive = " To derive labels from human captions, leave the table out." if attribute.derived else ""
    raise CapbiasError(
        f"No column is called {names}{none}; the columns are {', '.join(columns)}.",
        f"Name the column.{derive}",
        "attribute_column",
    )


def ambiguous(
    attribute: Attribute, candidates: Collection[str], frame: pd.DataFrame, flag: str, each: str = ""
) -> CapbiasError | None:
    """The question which of several columns holds an attribute, None if there is only one and it is about the image.
    flag: of a command, with {} for the column. each: how to take all of them."""
    if len(candidates) == 1 and not any(map(is_about_labeller, candidates)):
        return None
    shown = [f"{column}: {', '.join(_with_counts(frame[column].value_counts().to_dict()))}" for column in candidates]
    what = "Several columns" if len(shown) > 1 else "A column that may be about the annotators"
    flags = [flag.format(quote(column)) for column in candidates]
    return CapbiasError(
        f"{what} may hold labels of {attribute.name} ({'; '.join(shown)}).",
        f"Choose with {' or '.join(flags)}{each if len(flags) > 1 else ''}.",
        "attribute_column",
    )


def resolve_attributes(
    frame: pd.DataFrame,
    asked: Sequence[str] = (),
    overrides: Overrides | None = None,
    folder: Path | None = None,
    each: bool = False,
) -> list[dict]:
    """The mappings of several attributes of a table, each `NAME` or `NAME=COLUMN`, by default those that its columns
    hold. Columns in which no label is understood are left out beside others (see `unread_columns`). each: several
    columns of one attribute are labels by several annotators.

    Raises CapbiasError if there is none, if several columns may hold one attribute, or if overrides name another one.
    """
    pairs = [(item, "") if item in frame.columns else item.partition("=")[::2] for item in asked]
    if not asked:
        known, columns = known_attributes(folder), column_labels(frame)
        by_attribute = columns_by_attribute(known.values(), columns)
        for name, candidates in by_attribute.items():
            flag, also = f"--attribute {name}={{}}", ", or with all of them for a table each"
            if not each and (error := ambiguous(known[name], candidates, frame, flag, also)):
                raise error
        pairs = [(name, column) for name, candidates in by_attribute.items() for column in candidates]
        mapped = [pair for pair in pairs if by_attribute[pair[0]][pair[1]] or pair[0] in (overrides or {})]
        pairs = mapped or pairs
        if not pairs:
            raise CapbiasError(
                f"No column holds labels of {' or '.join(known)}; the columns are {', '.join(columns)}.",
                "Name an attribute, as NAME or NAME=COLUMN.",
                "attribute",
            )
    resolved = [resolve_attribute(frame, name, column, (), overrides, folder) for name, column in pairs]
    names = [details["attribute"]["name"] for details in resolved]
    for name in set(overrides or ()) - set(names):
        raise unknown_name("attribute in --map", name, names)
    return resolved


def unread_columns(frame: pd.DataFrame, resolved: Sequence[Mapping] = ()) -> list[CapbiasError]:
    """Why columns with the name of a shipped attribute are no labels of it, beside those that were resolved."""
    errors, taken = [], {details["column"] for details in resolved}
    for name, candidates in columns_by_attribute(known_attributes().values(), column_labels(frame)).items():
        for column in candidates.keys() - taken:
            try:
                resolve_attribute(frame, name, column)
            except CapbiasError as error:
                errors.append(error)
    return errors


def column_labels(frame: pd.DataFrame) -> dict[str, Sequence[str]]:
    """Column -> its different labels."""
    return {column: frame[column].unique().tolist() for column in frame.columns if column != "image_id"}


def mapping_overrides(pairs: Sequence[str]) -> dict[str, dict[str, str | None]]:
    """The values of `--map`, for `resolve_attribute`; an empty value drops the label.

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
        raise CapbiasError(
            f"The column {column} has {counted(len(attribute.values), 'different label')}.",
            "Choose another column: an attribute has two or more values.",
        )
    missing = [value for value in attribute.values if value not in mapping.values()]
    if missing:
        labels = ", ".join(_with_counts(counts) if counts else [raw or "(empty)" for raw in mapping])
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


def _with_counts(counts: Mapping[str, int]) -> list[str]:
    """`Female (90)`, the most frequent label first, cut if they are many."""
    labels = sorted(counts, key=lambda raw: -counts[raw])
    shown = [f"{raw or '(empty)'} ({counts[raw]:,})" for raw in labels[:SHOWN_LABELS]]
    return shown + ["…"] * (len(labels) > SHOWN_LABELS)


# lines about a mapping


def compared_lines(frame: pd.DataFrame, details: dict, folder: Path | None = None) -> list[str]:
    """The labels that are compared, for `score`. Of a known attribute: how its labels are read, unless they are spelled
    as its values. Of a column: its labels, and the attribute that usually reads them."""
    name, column = details["attribute"]["name"], details["column"]
    known = known_attributes(folder)
    if name in known:
        mapping = details["mapping"].items()
        same = all(raw.strip().casefold() == value.casefold() for raw, value in mapping if value is not None)
        return [] if same else [f"labels read: {mapping_line(details)}"]
    counts = frame[column].value_counts()
    shown = ", ".join(f"{value} {counts[value]:,}" for value in details["attribute"]["values"] if value in counts)
    usual = [each for each in known.values() if any(label_columns(each, {column: counts.index}).values())]
    hints = [
        f"hint: the attribute {one.name} ({', '.join(one.values)}) also reads the column {column}" for one in usual
    ]
    return [f"compared: {shown} (labels of the column {column}; `values` chooses others)", *hints]


def mapping_line(details: Mapping) -> str:
    """`Female from F, female; Male from M`"""
    by_value = {value: [] for value in details["attribute"]["values"]}
    for raw, value in sorted(details["mapping"].items()):
        if value is not None:
            by_value[value].append(raw or "empty")
    return "; ".join(f"{value} from {', '.join(raw)}" for value, raw in by_value.items() if raw)


def dropped_line(frame: pd.DataFrame, details: Mapping) -> str:
    """`dropped: Both 813, Unsure 3,410, empty 759`"""
    attribute = attribute_from(details["attribute"])
    labels = labels_for(frame, attribute, details["column"], details["mapping"]).dropped
    dropped = sorted(labels.items(), key=lambda pair: (not pair[0], pair[0]))
    shown = ", ".join(f"{label or 'empty'} {count:,}" for label, count in dropped[:SHOWN_LABELS])
    more = len(dropped) - SHOWN_LABELS
    return f"dropped: {shown or 'none'}" + (f" and {more:,} more labels" if more > 0 else "")


# the labels of images


def labels_in(workspace: Workspace, table: Item, name: str) -> Labels:
    """The labels that a stored table has of an attribute. Raises CapbiasError if it has none."""
    attribute, where = attribute_of(table, name)
    return labels_for(workspace.frame(table.hash), attribute, where["column"], where["mapping"])


def labels_of(workspace: Workspace, attribute: Attribute, where: Mapping) -> pd.Series:
    """image_id -> value of an attribute, as a run reads it. where: RunSpec.labels."""
    return labels_for(workspace.frame(where["table"]), attribute, where["column"], where["mapping"]).values


@dataclass(frozen=True)
class ImagesUsed:
    """How many images of a caption set count for an attribute: with a caption and a label, and of these with human
    captions (None if there are no human captions). by_value: value -> the images that are left, before balancing."""

    labelled: int
    with_human: int | None
    by_value: Mapping[str, int]

    @property
    def balanced(self) -> int:
        """The images that are left when every value has as many as the rarest."""
        return len(self.by_value) * min(self.by_value.values())


def images_used(labels: Labels, captioned: Collection[str], human: Collection[str] | None) -> ImagesUsed:
    """What counts of a caption set. captioned: its images. human: those with human captions, None if there are none."""
    of_set = labels.values[labels.values.index.isin(captioned)]
    left = of_set if human is None else of_set[of_set.index.isin(human)]
    counts = left.value_counts()
    by_value = {value: int(counts.get(value, 0)) for value in labels.attribute.values}
    return ImagesUsed(len(of_set), None if human is None else len(left), by_value)


def labels_for(frame: pd.DataFrame, attribute: Attribute, column: str, mapping: dict) -> Labels:
    """Labels of images from the raw labels of a table."""
    values = frame[column].map(mapping)
    labelled = values.isin(attribute.values)
    dropped = frame.loc[~labelled, column].value_counts().to_dict()
    images = frame.loc[labelled, "image_id"].to_numpy(dtype=object)
    return Labels(attribute, pd.Series(values[labelled].to_numpy(dtype=object), index=images), dropped)
