"""Two attributes as one whose values are the cells of both, such as gender x race: Female, Dark; Female, Light; ..."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.types import WITHIN, Attribute

BETWEEN = " x "
LEAST = 100  # labelled images of a cell: of fewer, a split of 90/10 tests on less than ten


def crossed_name(first: str, second: str) -> str:
    return f"{first}{BETWEEN}{second}"


def parts_of(name: str) -> tuple[str, str] | None:
    """The names of the two attributes of a crossed one; None of another."""
    first, between, second = name.partition(BETWEEN)
    return (first.strip(), second.strip()) if between and first.strip() and second.strip() else None


def cells(first: Attribute, second: Attribute) -> tuple[str, ...]:
    """The values of the crossed attribute, the first attribute's outermost."""
    return tuple(f"{one}{WITHIN}{other}" for one in first.values for other in second.values)


def cross_labels(one: pd.Series, other: pd.Series) -> pd.Series:
    """image_id -> cell, of the images that both label. one, other: image_id -> value.

    >>> cross_labels(pd.Series({"1": "Female", "2": "Male"}), pd.Series({"2": "Dark", "3": "Light"})).to_dict()
    {'2': 'Male, Dark'}
    """
    both = pd.concat([one, other], axis=1, join="inner")
    return both.iloc[:, 0] + WITHIN + both.iloc[:, 1]


def crossed(first: Attribute, second: Attribute, counts: dict[str, int]) -> Attribute:
    """The crossed attribute, with the cells that have at least LEAST images.

    Words of both are masked. They name a value of one attribute and no cell, so that metrics that read which value a
    caption names do not apply. counts: images by cell. Raises CapbiasError where fewer than two cells are left.
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
    masks = {own.mask_token for own in (first, second) if own.masked_words}
    return Attribute(
        name=crossed_name(first.name, second.name),
        title=f"{first.title} x {second.title}",
        values=values,
        words={value: words for own in (first, second) for value, words in own.words.items()},
        mask_token=masks.pop() if len(masks) == 1 else "<group>",
        note=f"{left_out}{first.note} {second.note}" if second.note != first.note else f"{left_out}{first.note}",
    )


def cells_of(values: Iterable[str]) -> list[tuple[str, str]]:
    """The values of a crossed attribute as the pair that each is of; [] where one is not of two."""
    found = [tuple(value.split(WITHIN)) for value in values]
    return [(own[0], own[1]) for own in found] if all(len(own) == 2 for own in found) else []
