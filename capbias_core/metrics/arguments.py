"""Checks of what the public metrics are given: arguments that cannot be meant would give a number all the same.

Each function returns the argument as an array, or raises CapbiasError with a sentence that names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.errors import CapbiasError

ROUNDED = 5e-3  # by which the probabilities of a caption may miss 1, as those of a network in float16 or bfloat16 do
NEARLY = 1e-6  # by which a number may pass the end of its range, as a cosine of float32 does


def numbers(
    name: str,
    given: ArrayLike,
    low: float = -np.inf,
    high: float = np.inf,
    shape: tuple[str, ...] | None = None,
    near: float = NEARLY,
) -> np.ndarray:
    """Finite numbers from low to high, one or more. shape: the names of the axes, None for any. near: by how much they
    may pass an end."""
    try:
        array = np.asarray(given)
        if array.dtype == object and not any(isinstance(item, str) for item in array.ravel()):
            array = array.astype(float)  # columns of several kinds, such as those of a table
    except (TypeError, ValueError):  # rows of several lengths, or objects that are no numbers
        array = np.asarray(None)
    wrong = ""
    if not array.size:
        wrong = "is empty"
    elif not (np.issubdtype(array.dtype, np.number) or array.dtype == bool):
        wrong = f"holds {_some(array)}"
    elif shape is not None and array.ndim != len(shape):
        wrong = f"has shape {array.shape}"
    else:
        fits = np.isfinite(array) & (array >= low - near) & (array <= high + near)
        if not fits.all():
            wrong = f"holds {_some(array[~fits])}"
    if wrong:
        axes = f" of shape ({', '.join(shape)}{',' * (len(shape) == 1)})" if shape else ""
        ends = f" from {low:g} to {high:g}" if np.isfinite(high) else f", {low:g} or more" if np.isfinite(low) else ""
        raise _refused(name, f"numbers{axes}{ends}", wrong)
    return array


def counts(name: str, given: ArrayLike, shape: tuple[str, ...] | None = None) -> np.ndarray:
    """Whole numbers, 0 or more."""
    array = numbers(name, given, 0, shape=shape)
    if not (array == np.floor(array)).all():
        raise _refused(name, "whole numbers", f"holds {_some(array[array != np.floor(array)])}")
    return array


def booleans(name: str, given: ArrayLike, columns: str = "K") -> np.ndarray:
    """(n, columns) booleans, or 0 and 1."""
    array = numbers(name, given, shape=("n", columns))
    if not np.isin(array, (0, 1)).all():
        raise _refused(name, "True or False, or 1 or 0", f"holds {_some(array[~np.isin(array, (0, 1))])}")
    return array.astype(bool)


def guesses(probabilities: ArrayLike, labels: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """(n, K) probabilities whose rows sum to 1, and (n,) codes of values."""
    array = numbers("probabilities", probabilities, 0, 1, ("n", "K"), ROUNDED).astype(float)
    if (abs(array.sum(axis=1) - 1) > ROUNDED).any():
        raise CapbiasError(
            "The probabilities of each caption must sum to 1.", "Give the softmax of the attacker's logits."
        )
    return array, codes(labels, array)


def codes(labels: ArrayLike, rows: np.ndarray) -> np.ndarray:
    """(n,) codes of values, whole numbers from 0 to K - 1, one for each of the (n, K) rows."""
    array, (n, k) = counts("labels", labels, ("n",)), rows.shape
    if len(array) != n or array.max() >= k:
        what = f"{n:,} whole numbers from 0 to {k - 1}, a value's code for each row"
        raise _refused("labels", what, f"has {len(array):,} numbers up to {array.max():g}")
    return array.astype(int)


def alike(first: tuple[str, np.ndarray], second: tuple[str, np.ndarray], axis: int | None = None) -> None:
    """Raises CapbiasError where two arrays differ in shape, or along an axis."""
    (name, one), (other, two) = first, second
    if one.shape != two.shape if axis is None else one.shape[axis] != two.shape[axis]:
        what = "shape" if axis is None else "number of " + ("rows" if axis == 0 else "columns")
        raise CapbiasError(f"{name} and {other} must have the same {what}, but have {one.shape} and {two.shape}.")


def together(**arrays: np.ndarray) -> None:
    """Raises CapbiasError where arrays do not broadcast."""
    try:
        np.broadcast_shapes(*(array.shape for array in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise CapbiasError(f"These shapes do not go together: {shapes}.") from None


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


def captions(name: str, given: Iterable[str]) -> list[str]:
    """A list of texts."""
    if isinstance(given, str):
        raise CapbiasError(f"{name} must be a list of texts, but it is one text.", "Put it in a list.")
    try:
        texts = list(given)
    except TypeError:
        raise _refused(name, "a list of texts", f"is {given!r}") from None
    if strange := [text for text in texts if not isinstance(text, str)]:
        raise _refused(name, "texts", f"holds {strange[0]!r}")
    return texts


def references_of(references: Sequence[Sequence[str]], candidates: Sequence[str]) -> None:
    """Raises CapbiasError unless each candidate is a text with a list of references, one or more."""
    texts_given = captions("candidates", candidates)
    if not texts_given:
        raise _refused("candidates", "texts", "is empty")
    if isinstance(references, str) or not hasattr(references, "__len__"):
        raise _refused("references", "lists of texts", f"is {references!r}")
    if len(references) != len(texts_given):
        raise CapbiasError(
            f"references must be {len(texts_given):,} lists, one for each candidate, not {len(references):,}."
        )
    for texts in references:
        if not captions("references of a candidate", texts):
            raise CapbiasError("Each candidate needs one reference or more.")


def _refused(name: str, what: str, but: str) -> CapbiasError:
    return CapbiasError(f"{name} must be {what}, but it {but}.")


def _some(values: np.ndarray) -> str:
    return ", ".join(list(dict.fromkeys(map(str, np.ravel(values).tolist())))[:3])
