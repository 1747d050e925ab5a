"""Labels derived from captions, and crossed attributes, whose values are pairs: gender x race has `Female, Dark`.

Labels by precedence follow the reproducibility paper, section 3.3; the other rules data sets of gender made from COCO's
captions (Burns et al. 2018; Tang et al. 2021).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import WITHIN, WITHOUT_ORDER, Attribute, Derivation

BETWEEN = " x "
LEAST = 100  # labelled images of a cell: with fewer, a split of 90/10 tests on less than ten


def derive_labels(references: pd.DataFrame, attribute: Attribute) -> pd.DataFrame:
    """One row per image: image_id, and a column named like the attribute with a value, or '' if none is named.

    references: image_id and caption. `attribute.derived` is the rule; raises CapbiasError without one.

    >>> rule = Derivation(("young", "old"), both="precedence")
    >>> age = Attribute("age", "age", ("young", "old"), {"young": ("boy",), "old": ("man",)}, derived=rule)
    >>> captions = [("1", "a man"), ("1", "a boy"), ("2", "a man"), ("3", "a dog")]
    >>> derive_labels(pd.DataFrame(captions, columns=["image_id", "caption"]), age)["age"].tolist()
    ['young', 'old', '']
    """
    rule = attribute.derived
    if rule is None:
        raise CapbiasError(
            f"Labels of {attribute.name} cannot be derived from captions, since its TOML file has no [derived].",
            "Load a table of labels for it.",
        )
    values = rule.precedence or attribute.values
    tokens = Tokens.of(references["caption"])
    named = tokens.naming([attribute.words[value] for value in values]).toarray() > 0
    by_image = pd.DataFrame(named).groupby(references["image_id"].to_numpy(dtype=object), sort=False).sum()
    counts = by_image.to_numpy(dtype=int)  # (images, values), captions that name the value
    named = counts >= rule.at_least
    if rule.both == "drop":
        named &= (counts > 0).sum(axis=1, keepdims=True) == 1
    elif rule.both == "majority":
        named &= counts == counts.max(axis=1, keepdims=True, initial=0)
        named &= named.sum(axis=1, keepdims=True) == 1
    labels = np.array([*values, ""], dtype=object)[np.where(named.any(axis=1), named.argmax(axis=1), -1)]
    return pd.DataFrame({"image_id": by_image.index.to_numpy(dtype=object), attribute.name: labels})


def with_rule(attribute: Attribute, at_least: int | None = None, both: str | None = None) -> Attribute:
    """The attribute with another rule to derive labels. Raises CapbiasError for an invalid rule."""
    rule = attribute.derived or Derivation()
    if both not in (None, *WITHOUT_ORDER):
        raise CapbiasError(f"both must be {' or '.join(WITHOUT_ORDER)}, not {both!r}.")
    if at_least is not None and at_least < 1:
        raise CapbiasError(f"at_least must be 1 or more, not {at_least}.")
    if both is not None:
        rule = replace(rule, both=both, precedence=())
    return replace(attribute, derived=replace(rule, at_least=at_least or rule.at_least))


def crossed_name(first: str, second: str) -> str:
    return f"{first}{BETWEEN}{second}"


def parts_of(name: str) -> tuple[str, str] | None:
    """The names of the two attributes of a crossed one; None for another."""
    first, between, second = name.partition(BETWEEN)
    return (first.strip(), second.strip()) if between and first.strip() and second.strip() else None


def cells(first: Attribute, second: Attribute) -> tuple[str, ...]:
    """The values of the crossed attribute, the first attribute's outermost."""
    return tuple(f"{one}{WITHIN}{other}" for one in first.values for other in second.values)


def crossed(first: Attribute, second: Attribute, counts: dict[str, int]) -> Attribute:
    """The crossed attribute, with the cells that have at least LEAST images.

    Words of both are masked. They name a value of one attribute and no cell, so metrics of named values do not apply.
    counts: images by cell. Raises CapbiasError if fewer than two cells are left.
    """
    every = cells(first, second)
    values = tuple(cell for cell in every if counts.get(cell, 0) >= LEAST)
    if len(values) < 2:
        shown = "; ".join(f"{cell}: {counts.get(cell, 0):,}" for cell in every)
        raise CapbiasError(
            f"Fewer than two cells of {crossed_name(first.name, second.name)} have {LEAST} labelled images ({shown}).",
            "Load labels of more images, or score the two attributes alone.",
        )
    small = [f"{cell} ({counts.get(cell, 0):,})" for cell in every if cell not in values]
    left_out = f"Left out, with fewer than {LEAST} labelled images: {'; '.join(small)}. " if small else ""
    words: dict[str, tuple[str, ...]] = {}
    for part in (first, second):  # a value of both, such as Other, keeps the words of both
        words |= {value: (*words.get(value, ()), *named) for value, named in part.words.items()}
    masks = {part.mask_token for part in (first, second) if part.masked_words}
    return Attribute(
        name=crossed_name(first.name, second.name),
        title=f"{first.title} x {second.title}",
        values=values,
        words=words,
        mask_token=masks.pop() if len(masks) == 1 else "<group>",
        note=f"{left_out}{first.note} {second.note}" if second.note != first.note else f"{left_out}{first.note}",
    )


def cells_of(values: Iterable[str]) -> list[tuple[str, str]]:
    """The values of a crossed attribute as pairs; [] if one is no pair."""
    pairs = [tuple(value.split(WITHIN)) for value in values]
    return [(pair[0], pair[1]) for pair in pairs] if all(len(pair) == 2 for pair in pairs) else []
