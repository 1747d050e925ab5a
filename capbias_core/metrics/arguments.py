"""What the public metrics are given, as arrays. Each raises CapbiasError where that cannot be meant: a wrong shape or
label would give a number all the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.errors import CapbiasError

ROUNDED = 5e-3  # by which the probabilities of a caption may miss 1, as those of a network in float16 or bfloat16 do


def guesses(probabilities: ArrayLike, labels: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """(n, K) probabilities whose rows sum to 1, and (n,) places of values."""
    found = _matrix("probabilities", probabilities, "(n, K)").astype(float)
    if not (np.isfinite(found).all() and (found >= -ROUNDED).all() and (abs(found.sum(axis=1) - 1) <= ROUNDED).all()):
        raise CapbiasError(
            "probabilities that are below 0, or of a caption do not sum to 1",
            "of each caption the probability of each value",
            "Give the softmax of the attacker's logits.",
        )
    return found, places(labels, found)


def places(labels: ArrayLike, rows: np.ndarray) -> np.ndarray:
    """(n,) places of values, whole numbers from 0 to K - 1, one for each of the (n, K) rows."""
    given, (n, k) = _array(labels), rows.shape
    found = _numbers(given)
    fits = found is not None and found.shape == (n,)
    if found is None or not fits or not (np.isin(found, range(k))).all():
        kind = f"of shape {given.shape}" if given.shape != (n,) else f"such as {_some(given)}"
        raise CapbiasError(
            f"labels {kind} beside {n:,} rows of {k} values",
            f"{n:,} places of values, whole numbers from 0 to {k - 1}",
            "Give each label its place among the values, from 0 on.",
        )
    return found.astype(int)


def booleans(name: str, given: ArrayLike, columns: str = "K") -> np.ndarray:
    """(n, columns) booleans. Whole numbers 0 and 1 are booleans too."""
    found = _matrix(name, given, f"(n, {columns})")
    if not np.isin(found, (0, 1)).all():
        raise CapbiasError(f"{name} such as {_some(found)}", "booleans, or 0 and 1", "Say yes or no of each.")
    return found.astype(bool)


def counts(name: str, given: ArrayLike, shape: str) -> np.ndarray:
    """A matrix of whole numbers, 0 or more."""
    found = _matrix(name, given, shape)
    if not (np.isfinite(found).all() and (found >= 0).all() and (found == np.floor(found)).all()):
        raise CapbiasError(f"{name} such as {_some(found)}", "whole numbers, 0 or more", "Count captions or mentions.")
    return found


def alike(first: tuple[str, np.ndarray], second: tuple[str, np.ndarray], axis: int | None = None) -> None:
    """Raises CapbiasError where two arrays differ in shape, or along an axis."""
    (name, one), (other, two) = first, second
    if one.shape != two.shape if axis is None else one.shape[axis] != two.shape[axis]:
        what = "shape" if axis is None else "number of " + ("rows" if axis == 0 else "columns")
        raise CapbiasError(
            f"{name} of shape {one.shape} and {other} of shape {two.shape}",
            f"the same {what} of both",
            "Give both of the same captions and words.",
        )


def sides(
    human_values: ArrayLike, human_tasks: ArrayLike, model_values: ArrayLike, model_tasks: ArrayLike
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Values (n, K) and task words (n, L) of both sides, as booleans; n may differ between the sides."""
    human = booleans("human_values", human_values), booleans("human_objects", human_tasks, "L")
    model = booleans("model_values", model_values), booleans("model_objects", model_tasks, "L")
    for side, (values, tasks) in (("human", human), ("model", model)):
        alike((f"{side}_values", values), (f"{side}_objects", tasks), 0)
    for what, ours, theirs in zip(("values", "objects"), human, model, strict=True):
        alike((f"human_{what}", ours), (f"model_{what}", theirs), 1)
    return human, model


def texts(references: Sequence[Sequence[str]], candidates: Sequence[str]) -> None:
    """Raises CapbiasError unless every candidate has references of its own, a list of them."""
    if isinstance(candidates, str) or any(isinstance(own, str) or not len(own) for own in references):
        raise CapbiasError(
            "references or candidates that are texts, or no reference",
            "for each candidate a list of references, one or more",
            "Put each in a list.",
        )
    if len(references) != len(candidates):
        raise CapbiasError(
            f"references of {len(references):,} captions and {len(candidates):,} candidates",
            "references of each candidate",
            "Give both in the same order.",
        )


def _matrix(name: str, given: ArrayLike, shape: str) -> np.ndarray:
    found = _array(given)
    numbers = _numbers(found)
    if found.ndim != 2 or numbers is None:
        kind = f"of shape {found.shape}" if found.ndim != 2 else "that are no numbers"
        raise CapbiasError(f"{name} {kind}", f"numbers of shape {shape}", "Give a row a caption, all of one length.")
    return numbers


def _array(given: ArrayLike) -> np.ndarray:
    try:
        return np.asarray(given)
    except ValueError:  # rows of several lengths
        return np.asarray(None)


def _numbers(found: np.ndarray) -> np.ndarray | None:
    """None where some are none. Columns of several kinds, such as those of a table, are objects that may be numbers."""
    if found.dtype != object:
        return found if np.issubdtype(found.dtype, np.number) or found.dtype == bool else None
    try:
        return None if any(isinstance(own, str) for own in found.ravel()) else found.astype(float)
    except (TypeError, ValueError):
        return None


def _some(found: np.ndarray) -> str:
    return ", ".join(list(dict.fromkeys(map(str, found.ravel().tolist())))[:3])
