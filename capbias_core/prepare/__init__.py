"""Pure and seeded: from captions as written to what an attacker reads, and which images it reads."""

from capbias_core.prepare.align import align_captions, vocabulary
from capbias_core.prepare.derive import derive_labels, with_rule
from capbias_core.prepare.mask import mask_tokens, masked_captions
from capbias_core.prepare.split import (
    balanced_folds,
    balanced_split,
    child_seed,
    held_out_count,
    image_split,
    split_around,
)
from capbias_core.prepare.text import tokenize, tokens_with_spans

__all__ = [
    "align_captions",
    "balanced_folds",
    "balanced_split",
    "child_seed",
    "derive_labels",
    "held_out_count",
    "image_split",
    "split_around",
    "mask_tokens",
    "masked_captions",
    "tokenize",
    "tokens_with_spans",
    "vocabulary",
    "with_rule",
]
