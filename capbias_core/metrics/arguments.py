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
    axes = f" of shape ({', '.join(shape)}{',' * (len(shape) == 1)})" if shape else ""
    ends = f" from {low:g} to {high:g}" if np.isfinite(high) else f", {low:g} or more" if np.isfinite(low) else ""
    what = f"numbers{axes}{ends}"
    try:
        array = np.asarray(given)
        if array.dtype == object and not any(isinstance(item, str) for item in array.ravel()):
            array = array.astype(float)  # columns of several kinds, such as those of a table
    except (TypeError, ValueError):  # rows of several lengths, or objects that are no numbers
        array = np.asarray(None)
    if not array.size:
        raise _refused(name, what, "is empty")
    if not (np.issubdtype(array.dtype, np.number) or array.dtype == bool):
        raise _refused(name, what, f"holds {_some(array)}")
    if shape is not None and array.ndim != len(shape):
        raise _refused(name, what, f"has shape {array.shape}")
    return _all(name, what, array, np.isfinite(array) & (array >= low - near) & (array <= high + near))


def counts(name: str, given: ArrayLike, shape: tuple[str, ...] | None = None) -> np.ndarray:
    """Whole numbers, 0 or more."""
    array = numbers(name, given, 0, shape=shape)
    return _all(name, "whole numbers", array, array == np.floor(array))


def booleans(name: str, given: ArrayLike, columns: str = "K") -> np.ndarray:
    """(n, columns) booleans, or 0 and 1."""
    array = numbers(name, given, shape=("n", columns))
    return _all(name, "True or False, or 1 or 0", array, np.isin(array, (0, 1))).astype(bool)


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


def alike(axis: int | None = None, **arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Arrays, all of which have the same shape, or the same size along an axis."""
    if len({array.shape if axis is None else array.shape[axis] for array in arrays.values()}) > 1:
        what = "shape" if axis is None else "number of " + ("rows" if axis == 0 else "columns")
        shapes = " and ".join(str(array.shape) for array in arrays.values())
        raise CapbiasError(f"{' and '.join(arrays)} must have the same {what}, but have {shapes}.")
    return tuple(arrays.values())


def together(**arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Arrays that broadcast."""
    try:
        np.broadcast_shapes(*(array.shape for array in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise CapbiasError(f"These shapes do not go together: {shapes}.") from None
    return tuple(arrays.values())


def captions(name: str, given: Iterable[str]) -> list[str]:
    """A list of texts."""
    texts = [] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    if isinstance(given, str) or not isinstance(given, Iterable) or any(not isinstance(text, str) for text in texts):
        raise _refused(name, "a list of texts", f"is {given!r}")
    return texts


def referenced(references: Sequence[Sequence[str]], candidates: Sequence[str]) -> tuple[list[list[str]], list[str]]:
    """Lists of references, one or more in each, and a candidate for each list."""
    texts = captions("candidates", candidates)
    if isinstance(references, str) or not hasattr(references, "__len__"):
        raise _refused("references", "lists of texts", f"is {references!r}")
    lists = [captions("references of a candidate", of_one) for of_one in references]
    if not texts or len(lists) != len(texts) or not all(lists):
        counts = f"{len(texts):,} candidates, and lists of {', '.join(str(len(each)) for each in lists[:3])} references"
        raise CapbiasError(f"Each candidate needs a list with one reference or more, but there are {counts}.")
    return lists, texts


def _all(name: str, what: str, array: np.ndarray, fits: np.ndarray) -> np.ndarray:
    if not fits.all():
        raise _refused(name, what, f"holds {_some(array[~fits])}")
    return array


def _refused(name: str, what: str, but: str) -> CapbiasError:
    return CapbiasError(f"{name} must be {what}, but it {but}.")


def _some(values: np.ndarray) -> str:
    return ", ".join(list(dict.fromkeys(map(str, np.ravel(values).tolist())))[:3])
