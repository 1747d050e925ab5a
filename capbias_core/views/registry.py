"""The table of views of finished results. A new view is a row here, and a function from `Scope` to `Shown`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from capbias_core.views.groups import leakage_by_group
from capbias_core.views.side_by_side import side_by_side
from capbias_core.views.view import Shown
from capbias_core.views.word_comparison import words


@dataclass(frozen=True)
class View:
    """A question, and the function that answers it from the results of a `Scope`, with keywords for its choices."""

    question: str
    answer: Callable[..., Shown]


# name, as the command `view` has it -> the view
VIEWS = {
    "by-value": View("Do captions of one group leak more than those of another?", leakage_by_group),
    "side-by-side": View("On which images do captioners differ, and in which words?", side_by_side),
    "words": View("What does each word add, how surely, and more than in human captions?", words),
}
