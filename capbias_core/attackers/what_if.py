"""Scores of an edited caption by the stored linear attackers of a run: at once, without sklearn or torch."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from capbias_core.attackers.base import probabilities
from capbias_core.attackers.ngram import LinearModel, NgramCorpus
from capbias_core.errors import CapbiasError, short
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import Attribute

ARROWS = ("->", "→")
MOST_REPLACEMENTS = 20  # each is tried in every caption
ARTICLE = re.compile(r"(an?|the)\b", re.IGNORECASE)
# Words after `an`: most that begin with a vowel, and some with a silent h.
AN = re.compile(r"[ai]|e(?!u)|o(?!ne\b|nce\b)|u(?!ni[tvcfoqs]|s[aeu]|ten|kulele)|hour|honest|hono|heir", re.IGNORECASE)


@dataclass(frozen=True)
class Rescored:
    """A caption as the attackers read it, with its score."""

    tokens: list[str]  # T masked tokens
    words: np.ndarray  # (T, C) mean contributions
    baseline: np.ndarray  # (C,) mean intercept
    logit: np.ndarray  # (C,) baseline + words.sum(0), within 1e-6
    probabilities: np.ndarray  # (K,) of the mean logit


@dataclass(frozen=True)
class StoredAttackers:
    """Linear attackers, one for each of F folds."""

    columns: dict[str, int]  # n-gram -> position in V
    weights: np.ndarray  # (F, V, C)
    intercepts: np.ndarray  # (F, C)

    @classmethod
    def from_bytes(cls, data: bytes) -> StoredAttackers:
        arrays = np.load(io.BytesIO(data))
        terms = arrays["terms"].tobytes().decode().split("\n")
        return cls({term: column for column, term in enumerate(terms)}, arrays["weights"], arrays["intercepts"])

    def score(self, caption: str, attribute: Attribute, fold: int | None = None, merge: bool = False) -> Rescored:
        """Score a caption as written; its attribute words are masked first.

        fold: whose attacker did not train on the caption's image. None, for a caption of no image: the mean over all.
        """
        corpus = NgramCorpus(Tokens.of([caption]).masked(attribute, merge))
        weights = self.weights.mean(axis=0) if fold is None else self.weights[fold]
        baseline = self.intercepts.mean(axis=0) if fold is None else self.intercepts[fold]
        zero = np.zeros_like(baseline)
        known = np.array(
            [weights[self.columns[term]] if term in self.columns else zero for term in corpus.ngrams.terms]
        )
        (words,) = LinearModel(known, baseline).contributions(corpus, np.array([0])).words
        logit = baseline + words.sum(axis=0)
        return Rescored(corpus.distinct[0].split(), words, baseline, logit, probabilities(logit[None])[0])

    def unseen(self, tokens: Iterable[str], attribute: Attribute) -> list[str]:
        """Tokens that no attacker has seen, each once; words of the attribute count as seen."""
        known = {*attribute.masked_words, attribute.mask_token}
        return [token for token in dict.fromkeys(tokens) if token not in self.columns and token not in known]


def is_edit(text: str) -> bool:
    """Whether a text is an edit, such as `man -> woman`, and not a caption."""
    return any(arrow in text for arrow in ARROWS)


def parse_edit(edit: str) -> tuple[str, list[str]]:
    """`man -> woman | person`, or with →, to ('man', ['woman', 'person']). Raises CapbiasError for another form."""
    word, *after = re.split("|".join(ARROWS), edit, maxsplit=1)
    replacements = [" ".join(part.split()) for text in after for part in text.split("|")]
    if len(word.split()) != 1 or not replacements or not all(replacements):
        raise CapbiasError(
            f"{short(edit, 200)!r} is not an edit of the form: word -> replacement | replacement.",
            "The part before the arrow is one word. For example: umbrella -> bat | phone",
        )
    if len(replacements) > MOST_REPLACEMENTS:
        raise CapbiasError(f"The edit has {len(replacements):,} replacements, more than {MOST_REPLACEMENTS}.")
    return word.strip().lower(), replacements


def apply_edit(caption: str, word: str, replacement: str) -> str | None:
    """The caption with each occurrence of a whole word replaced, and `a` or `an` before it corrected; None without an
    occurrence."""
    before, after = (r"\b" if edge.isalnum() else "" for edge in (word[0], word[-1]))
    pattern = r"(?:\b(an?)(\s+))?" + before + re.escape(word) + after

    def replaced(match: re.Match) -> str:
        article, space = match[1], match[2]
        if article is None or ARTICLE.match(replacement):
            return replacement
        if replacement[:1].isalpha():  # keep its upper or lower case
            article = article[0] + ("n" if AN.match(replacement) else "")
        return f"{article}{space}{replacement}"

    edited, count = re.subn(pattern, replaced, caption, flags=re.IGNORECASE)
    return edited if count else None
