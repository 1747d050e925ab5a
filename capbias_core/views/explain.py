"""Scored captions as data and text: the words of an image or of any caption, what an edit does, words of a set.

Numbers have every digit; logits and what words add are named by the value that they push toward, the second of two
values, or each of more."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from capbias_core.attackers.what_if import Rescored, StoredAttackers, apply_edit
from capbias_core.prepare import tasks
from capbias_core.prepare.text import tokenize
from capbias_core.types import Attribute
from capbias_core.views.files import json_text, text_table, view_table
from capbias_core.views.scored import CaptionScores, lines_of, written_captions
from capbias_core.views.sentence import say, signed
from capbias_core.views.words import WORDS, WordsOptions, rows_of_words, sentence_of


def scored_image(scores: CaptionScores, written: pd.DataFrame, image: str) -> list[dict[str, Any]]:
    """The captions of an image, each scored by an attacker that did not train on it. written: the set."""
    captions = []
    for line in lines_of("", scores, written, image):
        row = scores.table.loc[line.row]
        about = {"image_id": image, "caption_index": int(row["caption_index"]), "caption": line.written}
        about |= {"label": scores.attribute.values[int(row["label"])], "fold": int(row["fold"])}
        parts = _parts(scores.attribute, scores.read(line.row))
        captions.append(about | parts | {"convergence_delta": float(row["delta"])})
    return captions


def scored_text(scores: CaptionScores, attackers: StoredAttackers, text: str) -> dict[str, Any]:
    """A caption of no image, scored by all attackers of a set: their mean."""
    read = attackers.score(text, scores.attribute, None, scores.run.spec.merge_masks)
    return {"caption": text, "attackers": len(attackers.weights), **_parts(scores.attribute, read)}


def caption_text(scored: dict[str, Any]) -> str:
    """One caption: its words as the attacker reads them, what each adds, and what that makes."""
    parts = [(item["token"], item["adds"]) for item in scored["tokens"]]
    parts += [("(intercept)", scored["intercept"]), ("= logit", scored["logit"])]
    rows = pd.DataFrame(
        [{"word": word} | {f"adds toward {key}": signed(x, 4) for key, x in by.items()} for word, by in parts]
    )
    if "attackers" in scored:
        scorer = f"Mean of {scored['attackers']} attackers; the caption belongs to no image."
    else:
        scorer = f"Image {scored['image_id']}, labelled {scored['label']}; no attacker here trained on this image."
        scorer += f" Convergence delta {scored['convergence_delta']:.2g}." if scored["convergence_delta"] else ""
    shares = ", ".join(f"{value} {share:.3f}" for value, share in scored["probability"].items())
    return f"{scored['caption']}\n{scorer}\n\n{text_table(rows, rows.columns[1:])}\nProbability: {shares}.\n"


def edit_effect(
    scores: CaptionScores, written: pd.DataFrame, attackers: StoredAttackers, word: str, replacement: str
) -> dict[str, Any]:
    """What replacing a word does over the whole set, each caption rescored by the attacker that held its image out.

    Counts, means and examples are over the captions with the word (the first caption of each image). written: the set.
    note: what a reader may miss.
    """
    attribute, merge = scores.attribute, scores.run.spec.merge_masks
    first = scores.table[scores.table["caption_index"] == 0].sort_values("image_id")
    captions = written_captions(first, written)
    texts = captions.map(lambda caption: apply_edit(caption, word, replacement)).dropna()
    before = first.loc[texts.index]
    folds = zip(texts, before["fold"], strict=True)
    after = [attackers.score(text, attribute, int(fold), merge) for text, fold in folds]
    differ = sum(" ".join(new.tokens) != masked for new, masked in zip(after, before["masked"], strict=True))
    earlier, later = scores.shares[texts.index], [new.probabilities for new in after]
    changes = [new.logit - logit for new, logit in zip(after, scores.numbers("logit")[texts.index], strict=True)]
    note = "" if after else f"No caption has the word {word}."
    if after and not differ:
        masked = attribute.mask_token if word in attribute.masked_words else "the same"
        note = f"Nothing changes: the attacker reads {masked} for either."
    elif unseen := attackers.unseen(tokenize(replacement), attribute):
        note = note or f"No attacker has seen {', '.join(unseen)}: only the loss of {word} counts."

    def mean(rows: Any, names: Sequence[str]) -> dict[str, float]:
        return _named(np.mean(rows, axis=0), names) if len(rows) else {}

    return {
        "word": word,
        "replacement": replacement,
        "captions_with_the_word": len(after),
        "captions_that_read_differently": differ,
        "note": note,
        "probability_before": mean(earlier, attribute.values),
        "probability_after": mean(later, attribute.values),
        "change_of_logit": mean(changes, _towards(attribute)),
        "examples": [
            {
                "image_id": before.at[index, "image_id"],
                "label": attribute.values[int(before.at[index, "label"])],
                "before": captions[index],
                "after": texts[index],
                "probability_before": _named(first, attribute.values),
                "probability_after": _named(second, attribute.values),
            }
            for index, first, second in list(zip(texts.index, earlier, later, strict=True))[:3]
        ],
    }


def _parts(attribute: Attribute, read: Rescored) -> dict[str, Any]:
    """What each token adds, and what that makes: intercept + tokens = logit."""
    names = _towards(attribute)
    tokens = zip(read.tokens, read.words, strict=True)
    return {
        "tokens": [{"token": token, "adds": _named(row, names)} for token, row in tokens],
        "intercept": _named(read.baseline, names),
        "logit": _named(read.logit, names),
        "probability": _named(read.probabilities, attribute.values),
    }


def _towards(attribute: Attribute) -> tuple[str, ...]:
    return attribute.values[1:] if len(attribute.values) == 2 else attribute.values


def _named(values, names: Sequence[str]) -> dict[str, float]:
    return {name: float(value) for name, value in zip(names, values, strict=True)}


def words_of_set(scores: CaptionScores, table: pd.DataFrame, options: WordsOptions) -> tuple[dict[str, Any], str]:
    """The words that push most toward each value, as data and text. table: of `word_table`."""
    functional = tasks.function_words(table["word"])
    rows = rows_of_words(table, scores.attribute, scores.run.spec.model, options, functional)
    delta = float(scores.table["delta"].max())
    kept = json.loads(json_text(rows.dropna(axis="columns", how="all")))
    data = {"captions": len(scores.table), "largest_convergence_delta": delta, "words": kept}
    if rows.empty:
        return data, say("words.rare", count=options.least)
    how = say("words.intervals" if rows.attrs["tested"] else "words.one_training")
    deltas = say("words.delta", delta=delta, captions=len(scores.table))
    sentence = sentence_of(rows, scores.run.spec.model, scores.attribute.name)
    return data, "\n".join([sentence, "", view_table(WORDS.table(rows)), "", how, deltas])
