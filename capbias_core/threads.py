"""One thread for the products of small matrices: more gain nothing, and cost three times the processor time where other
work keeps the cores busy, since threads that wait for each other spin."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache


@contextmanager
def one_thread() -> Iterator[None]:
    """A block, or a function, in which BLAS has one thread, in the whole process."""
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@cache
def _libraries():
    import scipy.linalg  # noqa: F401  so that its BLAS is found, too
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # looks for them once, which takes 50 ms
