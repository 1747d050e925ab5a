"""How far two people, or a person and a rule, give the same images the same label of an attribute."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from capbias_core.aggregate.resampling import wilson

NO_LABEL = "no label"


@dataclass(frozen=True)
class LabelAgreement:
    """counts: (values and 'no label', the same) images by the label of one side (rows) and the other (columns).

    images: that both label. same: of these, with one label. interval: of same / images, 95% (Wilson's), as if the
    images were drawn at random; (nan, nan) without any. kappa: Cohen's, agreement beyond what two sides with these
    shares of labels have by chance, 0 to 1 and below 0 where it is less; nan where both give one label alone.
    differ: image_id with the label of each side, `one` and `other`, of images where they differ.
    """

    counts: pd.DataFrame
    images: int
    same: int
    interval: tuple[float, float] | tuple[None, None]
    kappa: float
    differ: pd.DataFrame

    @property
    def share(self) -> float:
        """Images with one label of those that both label, 0 to 1."""
        return self.same / self.images if self.images else math.nan


def label_agreement(one: pd.Series, other: pd.Series, values: tuple[str, ...]) -> LabelAgreement:
    """The agreement of two sets of labels. one, other: image_id -> value; an image that is missing has no label.

    >>> one, other = pd.Series({"1": "a", "2": "a", "3": "b", "4": "b"}), pd.Series({"1": "a", "2": "b", "3": "b"})
    >>> found = label_agreement(one, other, ("a", "b"))
    >>> (found.same, found.images, found.differ["image_id"].tolist(), round(found.kappa, 2))
    (2, 3, ['2'], 0.4)
    """
    both = pd.DataFrame({"one": one, "other": other})
    options = [*values, NO_LABEL]
    counts = pd.crosstab(both["one"].fillna(NO_LABEL), both["other"].fillna(NO_LABEL))
    counts = counts.reindex(index=options, columns=options, fill_value=0)
    labelled = both.dropna()
    agreed = labelled["one"] == labelled["other"]
    images, same = len(labelled), int(agreed.sum())
    chance = sum((labelled["one"] == value).mean() * (labelled["other"] == value).mean() for value in values)
    kappa = float((same / images - chance) / (1 - chance)) if images and chance < 1 else math.nan
    differ = labelled[~agreed].rename_axis("image_id").reset_index()
    return LabelAgreement(counts, images, same, wilson(same / images if images else math.nan, images), kappa, differ)
