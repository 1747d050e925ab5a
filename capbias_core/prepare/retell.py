"""Human captions retold as a captioner writes: what people say of each image, said as plainly as the captioner does.

A captioner that uses few words is easier to learn from than people, who use many: an attacker guesses more from its
captions though they say nothing more of the attribute. The retelling has the captioner's plainness and no other source
than the human captions, and nothing in it reads a label; `told` does, to weigh words. docs/statistics.md says how it
was checked.

Ridge regression learns from other images which of the captioner's 1- and 2-grams go with the words that people use for
an image. The retold caption is the captioner's caption of another image that is nearest to the n-grams expected here;
words are then changed, one at a time, where both neighbours have stood beside the new word in its captions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from capbias_core.prepare.ngrams import Coded, ngrams_of
from capbias_core.threads import one_thread

FOLDS = 5
HUMAN_WORDS, COMPONENTS = 3000, 300  # the commonest human words, and the dimensions that they are reduced to
PENALTIES = (1.0, 3.0, 10.0, 30.0, 100.0)
LEAST_COUNT = 3  # captions that hold an n-gram, for it to be expected
WORDS_TRIED, WORDS_CHANGED = 8, 3
CHUNK = 512
EDGES = ("<s>", "</s>")
NEARLY_EVERY = 0.9  # of captions


class Told(NamedTuple):
    """What captions tell: by all words, and of what goes with the label in the human captions."""

    words: float
    of_label: float


@one_thread()
def retell(captions: Sequence[str], human: Sequence[str]) -> list[str]:
    """The human captions of n images, retold in the captioner's words.

    captions: n masked captions of the captioner. human: n texts, each all masked human captions of the image, joined by
    spaces. Returns n captions; the same arguments give the same. None is made from the captioner's caption of its own
    image.
    """
    texts = sorted(set(captions))
    place = {text: number for number, text in enumerate(texts)}
    which = np.array([place[caption] for caption in captions])
    found = ngrams_of(texts, pairs=True)
    grams, names = sp.csr_matrix(found.matrix), found.terms
    counts = np.asarray(grams[which].sum(axis=0)).ravel()
    kept = counts >= LEAST_COUNT
    if len(captions) < FOLDS or not kept.any():
        return list(captions)
    names = [name for name, own in zip(names, kept, strict=True) if own]
    grams, weights = grams[:, kept].tocsr(), np.log(len(captions) / counts[kept])
    said, read = grams[which] @ sp.diags(weights), _components(tuple(human))
    near = _unit(grams @ sp.diags(weights))
    fold = np.random.default_rng(0).permutation(len(captions)) % FOLDS
    retold, penalty = np.empty(len(captions), dtype=object), None
    for own in range(FOLDS):
        train, test = np.flatnonzero(fold != own), np.flatnonzero(fold == own)
        ridge = _Ridge(read[train], said[train])
        penalty = penalty or ridge.best_penalty(read[test], said[test])
        shrunk, known = ridge.shrunk(penalty), np.unique(which[train])
        editor, near_known = _Editor([texts[own] for own in known], names, weights), near[known]
        for start in range(0, len(test), CHUNK):
            rows = test[start : start + CHUNK]
            expected = ridge.expected(read[rows], shrunk)
            alike = near_known @ expected.T
            nearest = known[(alike == alike.max(axis=0)).argmax(axis=0)]  # argmax alone takes three times as long
            retold[rows] = editor.edited([texts[own] for own in nearest], expected)
    return retold.tolist()


def told(captions: Sequence[str], human: Sequence[str], label: np.ndarray) -> Told:
    """How much of what people say of an image its caption tells, beyond what it tells of any image.

    words: mean cosine (words, weighted by rarity in the human captions) with the human captions of the image,
    minus that with those of all images. of_label: correlation of how far the caption leans to each label with how far
    the image's human captions do, among images of one label; a text leans by the sum of its words' log odds, those of
    the human captions. Both from -1 to 1; about 0: the caption could be that of any image, or any image of the label.
    Arguments as of `retell`; label: (n,) that of each image.
    """
    both = sp.csr_matrix(ngrams_of([*human, *captions], pairs=False).matrix)
    own, theirs = both[len(human) :], both[: len(human)]
    said = np.flatnonzero(np.asarray(theirs.sum(axis=0)).ravel())
    own, theirs = own[:, said], theirs[:, said]
    return Told(_alike(own, theirs), _leaning_alike(own, theirs, label))


def _alike(own: sp.csr_matrix, theirs: sp.csr_matrix) -> float:
    rarity = sp.diags(_rarity(theirs))
    own, theirs = _unit(own @ rarity), _unit(theirs @ rarity)
    return float(own.multiply(theirs).sum(axis=1).mean() - (own @ np.asarray(theirs.mean(axis=0)).ravel()).mean())


def _leaning_alike(own: sp.csr_matrix, theirs: sp.csr_matrix, label: np.ndarray) -> float:
    own, theirs = ((grams > 0).astype(float) for grams in (own, theirs))
    images = [np.flatnonzero(label == value) for value in np.unique(label)]
    held = np.vstack([np.asarray(theirs[rows].sum(axis=0)).ravel() for rows in images])
    odds = np.log((held + 1) / (np.array([[len(rows)] for rows in images]) + 2))  # one more with and without each word
    odds -= odds.mean(axis=0)
    mine, people = own @ odds.T, theirs @ odds.T
    for rows in images:
        for leaning in (mine, people):
            leaning[rows] -= leaning[rows].mean(axis=0)
    return float((mine * people).sum() / max(1e-9, np.sqrt((mine**2).sum() * (people**2).sum())))


def variety(captions: Coded) -> float:
    """Entropy in bits of the captions' pairs of words that stand side by side; the more, the less plain.

    Pairs that nearly every caption has, such as those of a fixed beginning, tell nothing and are left out.
    """
    first = captions.followed
    pairs = captions.codes[first].astype(np.int64) * (captions.codes.max(initial=0) + 1) + captions.codes[first + 1]
    counts = np.unique(pairs, return_counts=True)[1]
    counts = counts[counts < NEARLY_EVERY * (len(captions.start) - 1)]
    shares = counts / max(1, counts.sum())
    return float(-(shares * np.log2(shares)).sum())


def _rarity(grams: sp.csr_matrix) -> np.ndarray:
    held = np.asarray((grams > 0).sum(axis=0)).ravel()
    return np.log(grams.shape[0] / np.maximum(1, held))


def _unit(rows: sp.csr_matrix) -> sp.csr_matrix:
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    return sp.diags(1 / np.maximum(lengths, 1e-9)) @ rows


@lru_cache(maxsize=2)  # captioners one after the other are compared with the same people
def _components(human: tuple[str, ...]) -> np.ndarray:
    """(n, d) what people say of each image: their commonest words, weighted by rarity, in few dimensions."""
    from sklearn.utils.extmath import randomized_svd

    grams = sp.csr_matrix(ngrams_of(human, pairs=False).matrix)
    held = np.asarray((grams > 0).sum(axis=0)).ravel()
    common = np.sort(np.argsort(-held, kind="stable")[:HUMAN_WORDS])
    grams = grams[:, common[held[common] > 1]]
    rows = _unit(grams @ sp.diags(_rarity(grams)))
    if min(rows.shape) <= COMPONENTS:
        found = rows.toarray()
    else:
        left, sizes, _ = randomized_svd(rows, COMPONENTS, n_iter=4, random_state=0)
        found = left * sizes
    found.flags.writeable = False
    return found


class _Ridge:
    """Ridge regression of the captioner's weighted n-grams (n, B) on what people say (n, d)."""

    def __init__(self, read: np.ndarray, said: sp.csr_matrix):
        self.mean = np.asarray(said.mean(axis=0)).ravel()
        self.sizes, self.turn = np.linalg.eigh(read.T @ read)
        self.turned = self.turn.T @ ((said.T @ read).T - np.outer(read.sum(axis=0), self.mean))

    def shrunk(self, penalty: float) -> np.ndarray:
        """(d, B) the coefficients under a penalty, in the turned dimensions."""
        return self.turned / (np.maximum(self.sizes, 0) + penalty)[:, None]

    def expected(self, read: np.ndarray, shrunk: np.ndarray) -> np.ndarray:
        """(m, B) expected weighted n-grams."""
        return (read @ self.turn) @ shrunk + self.mean

    def best_penalty(self, read: np.ndarray, said: sp.csr_matrix) -> float:
        """The penalty whose expectations are nearest to what the captioner said, by mean cosine."""
        said, turned = _unit(said), read @ self.turn
        squared = float(self.mean @ self.mean)

        def nearness(penalty: float) -> float:  # of turned @ shrunk + mean, without that product
            shrunk = self.shrunk(penalty)
            together = (said @ shrunk.T * turned).sum(axis=1) + said @ self.mean
            lengths = (turned @ (shrunk @ shrunk.T) * turned).sum(axis=1) + 2 * turned @ (shrunk @ self.mean) + squared
            return float((together / np.sqrt(np.maximum(lengths, 1e-18))).mean())

        return max(PENALTIES, key=nearness)


class _Editor:
    """Changes single words of a caption toward the expected n-grams. texts: what the captioner is known to write."""

    def __init__(self, texts: Sequence[str], names: list[str], weights: np.ndarray):
        self.column = {name: place for place, name in enumerate(names)}
        self.names, self.weights = names, weights
        self.words = np.flatnonzero([" " not in name for name in names])
        self.pairs = {pair for text in texts for pair in pairwise([EDGES[0], *text.split(), EDGES[1]])}

    def edited(self, texts: Sequence[str], expected: np.ndarray) -> list[str]:
        """Each text after its changes. expected: (m, B)."""
        gains = expected[:, self.words] * self.weights[self.words]
        most = min(WORDS_TRIED, len(self.words))
        best = self.words[np.argpartition(-gains, most - 1, axis=1)[:, :most]].tolist()
        tried = [[self.names[place] for place in own] for own in best]
        return [self._edited(*own) for own in zip(texts, tried, expected, strict=True)]

    def _edited(self, text: str, tried: list[str], expected: np.ndarray) -> str:
        words = text.split()
        score = self._score(words, expected)
        for _ in range(WORDS_CHANGED):
            others = [(self._score(other, expected), other) for other in self._others(words, tried)]
            best = max(others, default=(score, words))
            if best[0] <= score:
                break
            score, words = best
        return " ".join(words)

    def _others(self, words: list[str], tried: list[str]):
        """The captions with one of these words in place of another, between words that it has stood between."""
        framed = [EDGES[0], *words, EDGES[1]]
        for word in tried:
            if word in words:
                continue
            for place in range(len(words)):
                if (framed[place], word) in self.pairs and (word, framed[place + 2]) in self.pairs:
                    yield [*words[:place], word, *words[place + 1 :]]

    def _score(self, words: list[str], expected: np.ndarray) -> float:
        """Cosine of a caption with the expected n-grams, but for their length."""
        grams = dict.fromkeys([*words, *map(" ".join, pairwise(words))])  # in order: sums of a set differ by process
        columns = [self.column[gram] for gram in grams if gram in self.column]
        weights = self.weights[columns]
        return float(expected[columns] @ weights / max(1e-9, float(np.sqrt(weights @ weights))))
