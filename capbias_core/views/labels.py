"""Attributes and tables of labels: what an attribute holds, and how far two tables agree."""

from __future__ import annotations

import pandas as pd

from capbias_core.aggregate.comparison import LabelAgreement, label_agreement
from capbias_core.attributes.labels import spellings_of
from capbias_core.errors import CapbiasError
from capbias_core.types import Attribute
from capbias_core.workspace.labels import labels_in
from capbias_core.workspace.store import Item, Workspace


def tables_of(workspace: Workspace, collection: str) -> dict[str, list[Item]]:
    """Attributes that several tables of a collection hold, each with these tables, oldest first."""
    shared: dict[str, list[Item]] = {}
    for item in workspace.items("labels", collection):
        for name in item.details.get("attributes", {}):
            shared.setdefault(name, []).append(item)
    return {name: tables for name, tables in shared.items() if len(tables) > 1}


def compared(workspace: Workspace, name: str, one: Item, other: Item) -> LabelAgreement:
    """How far two tables agree on an attribute. Raises CapbiasError where they give it different values."""
    first, second = (labels_in(workspace, table, name) for table in (one, other))
    values = first.attribute.values
    if sorted(values) != sorted(second.attribute.values):
        raise CapbiasError(
            f"The tables {one.name} and {other.name} give {name} different values.", "Map both to the same attribute."
        )
    return label_agreement(first.values, second.values, values)


OTHERS = "A label is what somebody or a rule said of a picture; where two agree, both may be wrong about a person."


def agreement_line(agreement: LabelAgreement, attribute: str, one: str, other: str) -> str:
    """`gender: given and from captions give the same label to 7 of 8 images that both label, 87.5% [52.9, 97.8]`"""
    low, high = agreement.interval
    if low is None or high is None:
        return f"{attribute}: {one} and {other} label no image in common."
    kappa = "" if agreement.kappa != agreement.kappa else f"; Cohen's kappa {agreement.kappa:.2f}"
    same = f"the same label to {agreement.same:,} of {agreement.images:,} images that both label"
    share = f"{100 * agreement.share:.1f}% [{100 * low:.1f}, {100 * high:.1f}]"
    return f"{attribute}: {one} and {other} give {same}, {share}{kappa}."


def counts_table(agreement: LabelAgreement, one: str) -> pd.DataFrame:
    """Images by the label of one table (rows) and of the other (columns)."""
    return agreement.counts.rename_axis(index=f"{one}, below", columns=None).reset_index()


def attribute_lines(attribute: Attribute) -> list[tuple[str, str]]:
    """What an attribute holds, as (label, text)."""
    masked = f"stands for each of the {len(attribute.masked_words):,} words"
    rule = f"they can be: {attribute.derived.text}" if attribute.derived else "no: labels come from a table"
    words = {value: attribute.words.get(value, ()) for value in attribute.values}
    return [
        ("Name", attribute.name),
        ("Title", attribute.title),
        ("Values", ", ".join(attribute.values)),
        *((f"Words for {value}", f"{len(own):,}: {', '.join(own)}" if own else "none") for value, own in words.items()),
        ("Mask token", f"{attribute.mask_token} {masked}" if attribute.masked_words else "not used: no word is masked"),
        ("Columns", ", ".join(attribute.columns) or f"only {attribute.name}"),
        *((f"Labels read as {value}", ", ".join(own)) for value, own in spellings_of(attribute).items() if own),
        ("Labels from captions", rule),
        ("Note", attribute.note or "none: say what the labels cannot say"),
    ]
