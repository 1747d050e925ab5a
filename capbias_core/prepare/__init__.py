"""From captions as written to what an attacker reads, and on which images; pure and seeded."""

from capbias_core.prepare.align import Alignment
from capbias_core.prepare.labels import derive_labels, with_rule
from capbias_core.prepare.split import (
    balanced_folds,
    balanced_split,
    child_seed,
    held_out_count,
    image_split,
    split_around,
)
from capbias_core.prepare.text import tokenize, tokens_with_spans
from capbias_core.prepare.tokens import Tokens

__all__ = [
    "Alignment",
    "Tokens",
    "balanced_folds",
    "balanced_split",
    "child_seed",
    "derive_labels",
    "held_out_count",
    "image_split",
    "split_around",
    "tokenize",
    "tokens_with_spans",
    "with_rule",
]
