"""Scored captions as data for a terminal or a page: words of a set, one image, any text, an edit of the whole set.

The dicts become JSON as they are; no digit is lost. Logits and what words add are named by the value that they push
toward: the second of two values, or each of more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from capbias_core.analysis.read import CaptionScores, top_words
from capbias_core.attackers.what_if import StoredAttackers, apply_edit
from capbias_core.prepare import tokenize
from capbias_core.types import Attribute

EXAMPLES = 3


def strongest_words(scores: CaptionScores, table: pd.DataFrame, smallest_count: int, number: int) -> dict:
    """The words that push most toward each value, `number` each; special tokens left out.

    table: as measures/caption_scores.py makes it. mean: of two values positive toward the second.
    """
    values = scores.attribute.values
    words = [
        {
            "word": row["word"],
            "pushes_toward": values[row["toward"]],
            "mean": row["mean"],
            "count": row["count"],
            "share": {other: row[f"share{column}"] for column, other in enumerate(values)},
        }
        for row in top_words(table, smallest_count, number).to_dict("records")
    ]
    return {
        "captions": len(scores.table),
        "smallest_count": smallest_count,
        "largest_convergence_delta": float(scores.table["delta"].max()),
        "words": words,
    }


def scored_image(scores: CaptionScores, written: pd.Series, image: str) -> list[dict]:
    """The captions of an image, each scored by an attacker that did not train on it.

    written: caption as written, by row of scores.table.
    """
    own = scores.table[scores.table["image_id"] == image].sort_values("caption_index")
    return [
        {
            "image_id": image,
            "caption_index": int(row["caption_index"]),
            "caption": written[place],
            "label": scores.attribute.values[int(row["label"])],
            "fold": int(row["fold"]),
            **_parts(
                row["masked"].split(),
                scores.words_of(place),
                _numbers(row, "baseline"),
                _numbers(row, "logit"),
                _numbers(row, "p"),
                scores.attribute,
            ),
            "convergence_delta": float(row["delta"]),
        }
        for place, row in own.iterrows()
    ]


def scored_text(scores: CaptionScores, attackers: StoredAttackers, text: str) -> dict:
    """A caption of no image, scored by all attackers of a set: their mean."""
    found = attackers.score(text, scores.attribute, None, scores.run.spec.merge_masks)
    parts = _parts(found.tokens, found.words, found.baseline, found.logit, found.probabilities, scores.attribute)
    return {"caption": text, "attackers": len(attackers.weights), **parts}


def edit_effect(
    scores: CaptionScores, written: pd.Series, attackers: StoredAttackers, word: str, replacement: str
) -> dict:
    """What replacing a word does over the whole set, each caption rescored by the attacker that held its image out.

    Counts, means and examples are over the captions with the word (the first caption of each image).
    """
    attribute, merge = scores.attribute, scores.run.spec.merge_masks
    first = scores.table[scores.table["caption_index"] == 0].sort_values("image_id")
    texts = written[first.index].map(lambda caption: apply_edit(caption, word, replacement)).dropna()
    before = first.loc[texts.index]
    folds = zip(texts, before["fold"], strict=True)
    after = [attackers.score(text, attribute, int(fold), merge) for text, fold in folds]
    differ = sum(" ".join(found.tokens) != masked for found, masked in zip(after, before["masked"], strict=True))
    shares = _numbers(before, "p"), [found.probabilities for found in after]
    changes = [found.logit - logit for found, logit in zip(after, _numbers(before, "logit"), strict=True)]
    return {
        "word": word,
        "replacement": replacement,
        "captions_with_the_word": len(after),
        "captions_that_read_differently": differ,
        "note": _edit_note(attribute, word, replacement, len(after), differ, attackers),
        "probability_before": _mean(shares[0], attribute.values),
        "probability_after": _mean(shares[1], attribute.values),
        "change_of_logit": _mean(changes, _towards(attribute)),
        "examples": _examples(before, written, texts, shares, attribute),
    }


def _examples(before: pd.DataFrame, written: pd.Series, texts: pd.Series, shares, attribute: Attribute) -> list[dict]:
    return [
        {
            "image_id": before.at[place, "image_id"],
            "label": attribute.values[int(before.at[place, "label"])],
            "before": written[place],
            "after": texts[place],
            "probability_before": _named(earlier, attribute.values),
            "probability_after": _named(later, attribute.values),
        }
        for place, earlier, later in list(zip(texts.index, *shares, strict=True))[:EXAMPLES]
    ]


def _edit_note(attribute: Attribute, word: str, new: str, count: int, differ: int, attackers: StoredAttackers) -> str:
    """What a reader may miss about an edit, or ''."""
    words, tokens = attribute.masked_words, tokenize(new)
    if not count:
        return f"No caption has the word {word}."
    if not differ and word in words and words.issuperset(tokens):
        return (
            f"Nothing changes: {word} and {new} are words for {attribute.name}, and the attacker reads "
            f"{attribute.mask_token} for either."
        )
    if not differ:
        return "Nothing changes: the attacker reads the same captions."
    unseen = attackers.unseen(tokens, attribute)
    return f"No attacker has seen {', '.join(unseen)}: only the loss of {word} counts." if unseen else ""


def _parts(tokens: Sequence[str], words: np.ndarray, baseline, logit, shares, attribute: Attribute) -> dict:
    """What each token adds, and what that makes: intercept + tokens = logit."""
    names = _towards(attribute)
    return {
        "tokens": [{"token": token, "adds": _named(row, names)} for token, row in zip(tokens, words, strict=True)],
        "intercept": _named(baseline, names),
        "logit": _named(logit, names),
        "probability": _named(shares, attribute.values),
    }


def _towards(attribute: Attribute) -> tuple[str, ...]:
    return attribute.values[1:] if len(attribute.values) == 2 else attribute.values


def _numbers(rows: pd.DataFrame | pd.Series, part: str) -> np.ndarray:
    """The columns part0, part1, ... of a table of scores, or of one of its rows."""
    return rows.filter(regex=rf"^{part}\d+$").to_numpy(dtype=float)


def _named(values, names: Sequence[str]) -> dict[str, float]:
    return {name: float(value) for name, value in zip(names, values, strict=True)}


def _mean(rows, names: Sequence[str]) -> dict[str, float]:
    """The mean row by name; empty where there is no row."""
    return _named(np.mean(rows, axis=0), names) if len(rows) else {}
