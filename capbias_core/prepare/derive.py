"""Labels of images made from the words of their human captions (the reproducibility paper, section 3.3)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.prepare.text import tokenize
from capbias_core.types import Attribute


def derive_labels(references: pd.DataFrame, attribute: Attribute) -> pd.DataFrame:
    """One row an image: image_id, and a column called as the attribute with a value, or '' where none is named.

    references: image_id and caption (further columns are not read). An image gets the first value, in the order of
    `attribute.derived`, that any of its captions names with a word of its own. Raises CapbiasError where the
    attribute has no such order.

    >>> age = Attribute("age", "age", ("young", "old"), {"young": ("boy",), "old": ("man",)}, derived=("young", "old"))
    >>> captions = [("1", "a man"), ("1", "a boy"), ("2", "a man"), ("3", "a dog")]
    >>> derive_labels(pd.DataFrame(captions, columns=["image_id", "caption"]), age)["age"].tolist()
    ['young', 'old', '']
    """
    if not attribute.derived:
        raise CapbiasError(
            f"the attribute {attribute.name}, whose labels are not derived from captions",
            "an attribute whose TOML file has a table [derived]",
            "Load a table of labels for it.",
        )
    places, captions = pd.factorize(references["caption"])
    named = _named(captions, [frozenset(attribute.words[value]) for value in attribute.derived])[places]
    by_image = pd.DataFrame(named).groupby(references["image_id"].to_numpy(dtype=object), sort=False).any()
    first = np.where(by_image.any(axis=1), by_image.to_numpy().argmax(axis=1), len(attribute.derived))
    labels = np.array([*attribute.derived, ""], dtype=object)[first]
    return pd.DataFrame({"image_id": by_image.index.to_numpy(dtype=object), attribute.name: labels})


def _named(captions, words: list[frozenset[str]]) -> np.ndarray:
    """(captions, values) bool: whether a caption has a word of a value."""
    named = np.zeros((len(captions), len(words)), dtype=bool)
    for place, caption in enumerate(captions):
        tokens = tokenize(caption)
        named[place] = [not own.isdisjoint(tokens) for own in words]
    return named
