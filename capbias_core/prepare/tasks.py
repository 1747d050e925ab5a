"""Which task words captions have: their common content words, or the objects that they name."""

from __future__ import annotations

import re
import tomllib
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import chain

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, hstack

from capbias_core.prepare.text import tokenize
from capbias_core.resources import OBJECTS_FILE

# Tags of content words in the C5 tag set: nouns, proper nouns, lexical verbs, adjectives, adverbs.
CONTENT = ("NN", "NP", "VV", "AJ", "AV")
# Of these nouns, verbs, and what says more about them.
NOUN, VERB, MODIFIER = ("NN", "NP"), ("VV",), ("AJ", "AV0")
# And of function words: articles, conjunctions, numerals, pronouns, prepositions, `to`, auxiliaries and `not`.
FUNCTION = ("AT", "AVQ", "CJ", "CRD", "DPS", "DT", "EX", "ORD", "PN", "PR", "TO", "VB", "VD", "VH", "VM", "XX")
COMMON_WORDS = 1000
TEXTS_AT_ONCE = 100_000
OBJECT_TOKEN, VERB_TOKEN = "<object>", "<verb>"


@dataclass(frozen=True)
class Encoded:
    """Captions as numbers. codes: their tokens, one after another; start: (n + 1,) where those of each caption begin;
    vocabulary: token -> code, in the order in which captions first have them."""

    codes: np.ndarray
    start: np.ndarray
    vocabulary: dict[str, int]

    @property
    def n(self) -> int:
        """How many captions."""
        return len(self.start) - 1

    @cached_property
    def caption(self) -> np.ndarray:
        """(len(codes),): which caption each token is of."""
        return np.repeat(np.arange(self.n, dtype=np.int32), np.diff(self.start))

    def of(self, places: np.ndarray) -> Encoded:
        """These captions alone, in this order: the same as `encode` gives of them."""
        if len(places) == self.n and (np.diff(places) == 1).all():
            return self
        lengths = np.diff(self.start)[places]
        start = np.concatenate([[0], np.cumsum(lengths)])
        codes = self.codes[np.repeat(self.start[:-1][places] - start[:-1], lengths) + np.arange(start[-1])]
        codes, kept = pd.factorize(codes)
        words = list(self.vocabulary)
        return Encoded(codes.astype(np.int32), start, {words[code]: place for place, code in enumerate(kept.tolist())})

    def with_words(self, words: Sequence[str]) -> csr_array:
        """(n, len(words)) booleans: the caption has the word."""
        return self.with_any([[word] for word in words])

    def with_any(self, groups: Sequence[Sequence[str]]) -> csr_array:
        """(n, len(groups)) booleans: the caption has one of the words of the group."""
        column = np.full(len(self.vocabulary), -1, dtype=_smallest(len(groups)))
        for place, words in enumerate(groups):
            column[[self.vocabulary[word] for word in words if word in self.vocabulary]] = place
        found = column[self.codes]
        at = np.flatnonzero(found >= 0)
        return _once(_counts(self.caption[at], found[at], self.n, len(groups)))

    def places(self, words: Collection[str]) -> dict[str, np.ndarray]:
        """Where in codes each of some words of the vocabulary is, in order."""
        wanted = np.zeros(len(self.vocabulary), dtype=bool)
        wanted[[self.vocabulary[word] for word in words]] = True
        at = np.flatnonzero(wanted[self.codes])
        codes = self.codes[at]
        order = np.argsort(codes, kind="stable")
        at, codes, own = at[order], codes[order], {word: self.vocabulary[word] for word in words}
        return {word: at[slice(*np.searchsorted(codes, (code, code + 1)))] for word, code in own.items()}

    def words(self) -> csr_array:
        """(n, len(vocabulary)) booleans: the caption has the token."""
        ones = np.ones(len(self.codes), dtype=np.int32)
        matrix = csr_array((ones, self.codes.copy(), self.start.copy()), shape=(self.n, len(self.vocabulary)))
        matrix.sum_duplicates()
        return _once(matrix)

    def captions_with(self) -> np.ndarray:
        """(len(vocabulary),): in how many captions each token is."""
        return np.bincount(self.words().indices, minlength=len(self.vocabulary))


def encode(captions: Iterable[str]) -> Encoded:
    """Captions as written (or masked) to numbers."""
    vocabulary: defaultdict[str, int] = defaultdict()
    vocabulary.default_factory = vocabulary.__len__  # the code of a token that is new
    codes, start = array("i"), array("q", [0])
    for caption in captions:
        codes.extend(map(vocabulary.__getitem__, tokenize(caption)))
        start.append(len(codes))
    return Encoded(np.array(codes, dtype=np.int32), np.array(start), dict(vocabulary))


def encode_rows(frame: pd.DataFrame) -> Encoded:
    """The captions of a table, of which only some are texts of Python at a time."""
    starts = range(0, len(frame), TEXTS_AT_ONCE)
    texts = (frame["caption"].iloc[start : start + TEXTS_AT_ONCE].to_numpy(dtype=object) for start in starts)
    return encode(chain.from_iterable(texts))


def _counts(rows: np.ndarray, columns: np.ndarray, n: int, width: int) -> csr_array:
    matrix = csr_array((np.ones(len(rows), dtype=np.int32), (rows, columns)), shape=(n, width))
    matrix.sum_duplicates()
    return matrix


def _smallest(number: int) -> np.dtype:
    """The smallest kind of whole number that has -1 and so many places; there is one for every token."""
    return np.min_scalar_type(-1 - number)


def _once(counts: csr_array) -> csr_array:
    """Counts to booleans, in place."""
    counts.data[:] = 1
    return counts


def content_words(encoded: Encoded, left_out: Iterable[str] = ()) -> list[str]:
    """Nouns, verbs, adjectives and adverbs among the 1,000 tokens that most captions have, commonest first.

    left_out: words that name the attribute. The part of speech is that of the word alone (HanTa's English model):
    the likeliest tag decides. LIC, appendix A.2.
    """
    counts = encoded.captions_with()
    tokens = np.array(list(encoded.vocabulary), dtype=object)
    common = tokens[np.argsort(-counts, kind="stable")[:COMMON_WORDS]]
    skip = set(left_out)
    return [word for word in common if word.isalpha() and word not in skip and _is_content(word)]


def function_words(words: Iterable[str]) -> set[str]:
    """Those of some words that are articles, prepositions, pronouns, conjunctions, auxiliaries or numerals.

    The part of speech is found as for `content_words`.

    >>> sorted(function_words(["to", "held", "with", "fire", "giraffe", "her", "<unk>"]))
    ['her', 'to', 'with']
    """
    return {word for word in words if word.isalpha() and _tag(word).startswith(FUNCTION)}


def lemmas(words: Iterable[str]) -> list[tuple[str, str]]:
    """The lemma and the part of speech of each word alone, both '' for what is no word of letters.

    The likeliest reading decides, found as for `content_words`: a form that is a noun or a verb is always the same one.

    >>> lemmas(["women", "riding", "<unk>"])
    [('woman', 'NN2'), ('ride', 'VVG'), ('', '')]
    """
    return [_tagger().analyze(word) if word.isalpha() else ("", "") for word in words]


@lru_cache(maxsize=1 << 16)
def verbs_in(caption: str) -> tuple[str, ...]:
    """For each token of a caption the verb that it is a form of, '' for others; auxiliaries are none.

    The part of speech is that of the word in this caption (HanTa's English model), which costs half a millisecond.

    >>> verbs_in("A man is riding past the rides.")
    ('', '', '', 'ride', '', '', '')
    """
    tagged = _tagger().tag_sent(tokenize(caption))
    return tuple(lemma if tag.startswith(VERB) and word.isalpha() else "" for word, lemma, tag in tagged)


def mask_verbs(captions: Iterable[str], left_out: Collection[str] = ()) -> list[str]:
    """Captions as an attacker reads them that guesses verbs: each form of one becomes the verb token.

    left_out: words that stay.

    >>> mask_verbs(["A man is riding his horse."])
    ['a man is <verb> his horse']
    """
    masked = []
    for caption in captions:
        pairs = zip(tokenize(caption), verbs_in(caption), strict=True)
        masked.append(" ".join(VERB_TOKEN if verb and word not in left_out else word for word, verb in pairs))
    return masked


def named_verbs(captions: Sequence[str], left_out: Collection[str] = ()) -> tuple[list[str], csr_array]:
    """The verbs that captions have, in the order of the alphabet, and (n, L) booleans: the caption has the verb.

    left_out: words that do not count.
    """
    rows, found = [], []
    for row, caption in enumerate(captions):
        pairs = zip(tokenize(caption), verbs_in(caption), strict=True)
        own = {verb for word, verb in pairs if verb and word not in left_out}
        rows += [row] * len(own)
        found += own
    names, column = np.unique(np.array(found, dtype=object), return_inverse=True) if found else ([], ())
    return list(names), _counts(np.array(rows, dtype=int), np.array(column, dtype=int), len(captions), len(names))


def _is_content(word: str) -> bool:
    return _tag(word).startswith(CONTENT)


def _tag(word: str) -> str:
    """The likeliest part of speech of a word alone; '' where there is none."""
    tags = _tagger().tag_word(word)
    return tags[0][0] if tags else ""


@cache
def _tagger():
    from HanTa.HanoverTagger import HanoverTagger

    return HanoverTagger("morphmodel_en.pgz")


@cache
def object_names() -> dict[str, tuple[tuple[str, ...], ...]]:
    """Object category -> the phrases that name it, each a tuple of tokens, plurals included."""
    table = tomllib.loads(OBJECTS_FILE.read_text(encoding="utf-8"))
    return {
        name: tuple(form for phrase in dict.fromkeys([name, *others]) for form in _forms(phrase.split()))
        for name, others in table.items()
        if name != "person"
    }


def phrases(names: Iterable[str]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Further names, each with the phrases that name it (itself and its plural), as `object_names` gives them."""
    return {" ".join(words): tuple(_forms(words)) for words in map(tokenize, names) if words}


def _forms(phrase: list[str]) -> list[tuple[str, ...]]:
    """A phrase and its plural by rule."""
    *first, last = phrase
    plural = last + "s"
    if last.endswith(("s", "x", "ch", "sh")):
        plural = last + "es"
    elif last.endswith("y") and last[-2] not in "aeiou":
        plural = last[:-1] + "ies"
    return [tuple(phrase), (*first, plural)]


def named_objects(encoded: Encoded, names: dict[str, tuple[tuple[str, ...], ...]]) -> csr_array:
    """(n, len(names)) booleans: the caption names the object. A word counts for the longest phrase that it is in."""
    return _once(object_mentions(encoded, names))


def named_at_spaces(captions: Collection[str]) -> csr_array:
    """(n, L) booleans: a word of the caption is the name of a COCO object of one word, as the authors of DBAC read it.

    Captions are split at spaces alone, so `bat.` is not `bat`, and neither plurals nor names of two words count.
    """
    names = {name: column for column, name in enumerate(own for own in object_names() if " " not in own)}
    cells = [
        (row, names[word]) for row, caption in enumerate(captions) for word in {*caption.lower().split()} & names.keys()
    ]
    rows, columns = np.array(cells, dtype=int).reshape(-1, 2).T
    return _counts(rows, columns, len(captions), len(names))


def object_mentions(encoded: Encoded, names: dict[str, tuple[tuple[str, ...], ...]]) -> csr_array:
    """(n, len(names)): how often the caption names the object.

    A word counts for the longest phrase that it is in. Names of one object side by side, such as `laptop computer`,
    count once.
    """
    kind = _smallest(len(names))
    owner = np.full(len(encoded.codes), -1, dtype=kind)  # of each token the object that it names
    starts, columns = [], []
    phrases = [(phrase, place) for place, own in enumerate(names.values()) for phrase in own]
    known = [own for own in phrases if all(word in encoded.vocabulary for word in own[0])]
    several, single = [own for own in known if len(own[0]) > 1], [own for own in known if len(own[0]) == 1]
    begin = encoded.places([phrase[0] for phrase, _ in several])
    for phrase, place in sorted(several, key=lambda pair: -len(pair[0])):
        start = _places(encoded, phrase, begin[phrase[0]])
        start = start[owner[start] < 0]
        for step in range(len(phrase)):
            owner[start + step] = place
        starts.append(start)
        columns.append(np.full(len(start), place))
    alone = np.full(len(encoded.vocabulary), -1, dtype=kind)
    for (word,), place in reversed(single):  # the first object that has a word as its name has it
        alone[encoded.vocabulary[word]] = place
    column = alone[encoded.codes]
    start = np.flatnonzero(column >= 0)
    start = start[owner[start] < 0]
    owner[start] = column[start]
    start, column = np.concatenate([*starts, start]), np.concatenate([*columns, column[start]])
    before = np.maximum(start - 1, 0)
    again = (start > 0) & (owner[before] == column) & (encoded.caption[before] == encoded.caption[start])
    return _counts(encoded.caption[start[~again]], column[~again], encoded.n, len(names))


def _places(encoded: Encoded, phrase: tuple[str, ...], among: np.ndarray) -> np.ndarray:
    """Where a phrase begins in the codes, within one caption. among: where its first word is."""
    start = among
    for step, word in enumerate(phrase[1:], start=1):
        start = start[start + step < len(encoded.codes)]
        same = encoded.caption[start + step] == encoded.caption[start]
        start = start[same & (encoded.codes[start + step] == encoded.vocabulary[word])]
    return start


def mask_objects(captions: Iterable[str], names: dict[str, tuple[tuple[str, ...], ...]]) -> list[str]:
    """Captions as an attacker reads them that guesses objects: each phrase that names one becomes the object token.

    The longest phrase that begins at a word is taken (DBAC section 4.1).

    >>> mask_objects(["A man with a tennis racket."], {"tennis racket": (("tennis", "racket"),)})
    ['a man with a <object>']
    """
    phrases = sorted({" ".join(phrase) for own in names.values() for phrase in own}, key=len, reverse=True)
    pattern = re.compile(rf"(?<!\S)(?:{'|'.join(map(re.escape, phrases))})(?!\S)")
    return [pattern.sub(OBJECT_TOKEN, " ".join(tokenize(caption))) for caption in captions]


def pair_counts(image: np.ndarray, n_images: int, values: csr_array, tasks: csr_array) -> csr_array:
    """Counts of captions by image, as a `Table` of metrics/cooccurrence.py has them: (n_images, 1 + K + L + K * L).

    image: (n,) position of each caption's image; values: (n, K), tasks: (n, L) booleans.
    """
    n = len(image)
    ones = csr_array(np.ones((n, 1), dtype=np.int32))
    pairs = [tasks.multiply(values[:, [column]]) for column in range(values.shape[1])]
    by_caption = csr_array(hstack([ones, values, tasks, *pairs]))
    return csr_array(rows_by_image(image, n_images) @ by_caption)


def rows_by_image(image: np.ndarray, n_images: int) -> csr_array:
    """(n_images, n): its product with (n, ...) rows of captions sums them by image. image: (n,) place of each image."""
    n = len(image)
    return csr_array((np.ones(n, dtype=np.int32), (image, np.arange(n))), shape=(n_images, n))
