"""The table of views of finished results. A new view is a row here, and a function from `Scope` to `Shown`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from capbias_core.views.change import change, change_words
from capbias_core.views.groups import leakage_by_group
from capbias_core.views.leaderboard import leaderboard
from capbias_core.views.side_by_side import side_by_side
from capbias_core.views.slices import slices
from capbias_core.views.view import Shown
from capbias_core.views.word_comparison import words


@dataclass(frozen=True)
class View:
    """A question, and the function that answers it from the results of a `Scope`, with keywords for its choices."""

    question: str
    answer: Callable[..., Shown]


# name, as the command `view` has it -> the view
VIEWS = {
    "leaderboard": View("Which captioners amplify, for which attributes?", leaderboard),
    "by-value": View("Do captions of one group leak more than those of another?", leakage_by_group),
    "slices": View("Where does it amplify?", slices),
    "change": View("Did bias fall from one captioner to another, and what did it cost?", change),
    "change-words": View("Which words changed most in the value that they go with?", change_words),
    "side-by-side": View("On which images do captioners differ, and in which words?", side_by_side),
    "words": View("What does each word add, how surely, and more than in human captions?", words),
}
