"""Labels of images made from the words of their human captions.

By precedence as in the reproducibility paper, section 3.3; by what no caption contradicts, or by the majority, as data
sets of gender are made from COCO's captions (Burns et al. 2018; Tang et al. 2021).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.prepare.text import tokenize
from capbias_core.types import WITHOUT_ORDER, Attribute, Derivation


def derive_labels(references: pd.DataFrame, attribute: Attribute) -> pd.DataFrame:
    """One row an image: image_id, and a column called as the attribute with a value, or '' where none is named.

    references: image_id and caption (further columns are not read). `attribute.derived` says which value an image
    gets. Raises CapbiasError where the attribute has no such rule.

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
    places, captions = pd.factorize(references["caption"])
    values = rule.precedence or attribute.values
    named = _named(captions, [frozenset(attribute.words[value]) for value in values])[places]
    by_image = pd.DataFrame(named).groupby(references["image_id"].to_numpy(dtype=object), sort=False).sum()
    place = _chosen(by_image.to_numpy(dtype=int), rule)
    labels = np.array([*values, ""], dtype=object)[place]
    return pd.DataFrame({"image_id": by_image.index.to_numpy(dtype=object), attribute.name: labels})


def _chosen(counts: np.ndarray, rule: Derivation) -> np.ndarray:
    """(images,) the place of the value of each image, -1 for none. counts: (images, values) captions that name it."""
    named = counts >= rule.at_least
    if rule.both == "drop":
        named &= (counts > 0).sum(axis=1, keepdims=True) == 1
    elif rule.both == "majority":
        named &= counts == counts.max(axis=1, keepdims=True, initial=0)
        named &= named.sum(axis=1, keepdims=True) == 1
    return np.where(named.any(axis=1), named.argmax(axis=1), -1)


def with_rule(attribute: Attribute, at_least: int | None = None, both: str | None = None) -> Attribute:
    """The attribute with another rule than its own by which labels are derived. Raises CapbiasError for none."""
    rule = attribute.derived or Derivation()
    if both not in (None, *WITHOUT_ORDER):
        raise CapbiasError(f"both must be {' or '.join(WITHOUT_ORDER)}, not {both!r}.")
    if at_least is not None and at_least < 1:
        raise CapbiasError(f"at_least must be 1 or more, not {at_least}.")
    if both is not None:
        rule = replace(rule, both=both, precedence=())
    return replace(attribute, derived=replace(rule, at_least=at_least or rule.at_least))


def _named(captions, words: list[frozenset[str]]) -> np.ndarray:
    """(captions, values) bool: whether a caption has a word of a value."""
    named = np.zeros((len(captions), len(words)), dtype=bool)
    for place, caption in enumerate(captions):
        tokens = tokenize(caption)
        named[place] = [not own.isdisjoint(tokens) for own in words]
    return named
