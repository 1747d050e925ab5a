"""Task words of captions: their common content words, or the objects that they name."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable
from functools import cache, lru_cache
from itertools import chain

import numpy as np
from scipy.sparse import csr_array, hstack

from capbias_core.prepare.text import tokenize
from capbias_core.prepare.tokens import Tokens, cell_counts
from capbias_core.resources import OBJECTS_FILE

# Tags of content words in the C5 tag set: nouns, proper nouns, lexical verbs, adjectives, adverbs.
CONTENT = ("NN", "NP", "VV", "AJ", "AV")
# Tags of function words: articles, conjunctions, numerals, pronouns, prepositions, `to`, auxiliaries and `not`.
FUNCTION = ("AT", "AVQ", "CJ", "CRD", "DPS", "DT", "EX", "ORD", "PN", "PR", "TO", "VB", "VD", "VH", "VM", "XX")
COMMON_WORDS = 1000
LONGEST_WORD = 45  # letters; no English word has more, and HanTa's time grows with their square
OBJECT_TOKEN = "<object>"
# Further forms of COCO's names of one word.
IRREGULAR = {"bus": ("busses",), "knife": ("knives",), "mouse": ("mice",), "skis": ("ski",)}


def content_words(tokens: Tokens, left_out: Collection[str] = (), among: int | None = COMMON_WORDS) -> list[str]:
    """Nouns, verbs, adjectives and adverbs among the commonest tokens, commonest first (LIC, appendix A.2).

    left_out: words that name the attribute. among: how many tokens, None for all. The part of speech is the likeliest
    of the word alone (HanTa's English model).
    """
    counts = np.bincount(tokens.matrix().indices, minlength=len(tokens.words))
    common = [tokens.words[code] for code in np.argsort(-counts, kind="stable")[:among]]
    return [word for word in common if word not in left_out and _tag(word).startswith(CONTENT)]


def function_words(words: Iterable[str]) -> set[str]:
    """The articles, prepositions, pronouns, conjunctions, auxiliaries and numerals, as tagged in `content_words`.

    >>> sorted(function_words(["to", "held", "with", "fire", "giraffe", "her", "<unk>"]))
    ['her', 'to', 'with']
    """
    return {word for word in words if _tag(word).startswith(FUNCTION)}


@lru_cache(maxsize=1 << 16)
def _tag(word: str) -> str:
    """The likeliest part of speech; '' for what is no word."""
    tags = _tagger().tag_word(word) if word.isalpha() and len(word) <= LONGEST_WORD else ()
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
    """Further names with their phrases (itself and its plural), as in `object_names`."""
    return {" ".join(words): tuple(_forms(words)) for words in map(tokenize, names) if words}


def _forms(phrase: list[str]) -> list[tuple[str, ...]]:
    *first, last = phrase
    plural = last + "s"
    if last.endswith(("s", "x", "ch", "sh")):
        plural = last + "es"
    elif last.endswith("y") and last[-2] not in "aeiou":
        plural = last[:-1] + "ies"
    return [tuple(phrase), (*first, plural)]


@cache
def task_words() -> dict[str, tuple[str, ...]]:
    """COCO's names of one word, `person` included -> their forms, singular and plural.

    As DBAC's authors search them: without synonyms and names of two words, and a hot dog counts as a dog.
    """
    single = [name for name in (*object_names(), "person") if " " not in name]
    return {name: (*chain.from_iterable(_forms([name])), *IRREGULAR.get(name, ())) for name in single}


def named_words(tokens: Tokens) -> csr_array:
    """(n, L) 0 or 1: the caption has a form of each of the `task_words`."""
    return tokens.with_any(list(task_words().values()))


def named_objects(tokens: Tokens, names: dict[str, tuple[tuple[str, ...], ...]]) -> csr_array:
    """(n, len(names)) 0 or 1: the caption names the object. See `object_mentions`."""
    named = object_mentions(tokens, names)
    named.data[:] = 1
    return named


def object_mentions(tokens: Tokens, names: dict[str, tuple[tuple[str, ...], ...]]) -> csr_array:
    """(n, len(names)): how often the caption names the object. A word counts for its longest phrase. Neighbouring names
    of one object, such as `laptop computer`, count once."""
    codes, caption, vocabulary = tokens.codes, tokens.caption, tokens.vocabulary
    owner = np.full(len(codes), -1, dtype=np.min_scalar_type(-1 - len(names)))  # the object that each token names
    alone = np.full(len(vocabulary), -1, dtype=owner.dtype)
    known = [(phrase, number) for number, forms in enumerate(names.values()) for phrase in forms]
    known = [(phrase, number) for phrase, number in known if all(word in vocabulary for word in phrase)]
    longest_first = sorted((pair for pair in known if len(pair[0]) > 1), key=lambda pair: -len(pair[0]))
    begins = np.zeros(len(vocabulary), dtype=bool)
    begins[[vocabulary[phrase[0]] for phrase, _ in longest_first]] = True
    begin = np.flatnonzero(begins[codes])
    starts, columns = [], []
    for phrase, number in longest_first:
        start = begin[codes[begin] == vocabulary[phrase[0]]]
        for step, word in enumerate(phrase[1:], start=1):
            start = start[start + step < len(codes)]
            start = start[(codes[start + step] == vocabulary[word]) & (caption[start + step] == caption[start])]
        start = start[owner[start] < 0]
        for step in range(len(phrase)):
            owner[start + step] = number
        starts.append(start)
        columns.append(np.full(len(start), number))
    for phrase, number in reversed(known):  # the first object with this name wins
        if len(phrase) == 1:
            alone[vocabulary[phrase[0]]] = number
    column = alone[codes]
    start = np.flatnonzero((column >= 0) & (owner < 0))
    owner[start] = column[start]
    start, column = np.concatenate([*starts, start]), np.concatenate([*columns, column[start]])
    before = np.maximum(start - 1, 0)
    again = (start > 0) & (owner[before] == column) & (caption[before] == caption[start])
    return cell_counts(caption[start[~again]], column[~again], len(tokens), len(names))


def mask_objects(captions: Iterable[str], names: dict[str, tuple[tuple[str, ...], ...]]) -> list[str]:
    """Captions, tokens joined by spaces, with the object token for each longest phrase that names an object (DBAC
    section 4.1).

    >>> mask_objects(["a man with a tennis racket"], {"tennis racket": (("tennis", "racket"),)})
    ['a man with a <object>']
    """
    phrases = sorted({" ".join(phrase) for forms in names.values() for phrase in forms}, key=len, reverse=True)
    pattern = re.compile(rf"(?<!\S)(?:{'|'.join(map(re.escape, phrases))})(?!\S)")
    return [pattern.sub(OBJECT_TOKEN, caption) for caption in captions]


def pair_counts(image: np.ndarray, n_images: int, values: csr_array, tasks: csr_array) -> csr_array:
    """Counts of captions by image, as in `Table` of metrics/cooccurrence.py: (n_images, 1 + K + L + K * L).
    image: (n,) position of each caption's image; values: (n, K), tasks: (n, L) booleans."""
    ones = csr_array(np.ones((len(image), 1), dtype=np.int32))
    pairs = [tasks.multiply(values[:, [column]]) for column in range(values.shape[1])]
    return csr_array(rows_by_image(image, n_images) @ csr_array(hstack([ones, values, tasks, *pairs])))


def rows_by_image(image: np.ndarray, n_images: int) -> csr_array:
    """(n_images, n): its product with (n, ...) rows of captions sums them by image. image: (n,) index of each image."""
    n = len(image)
    return csr_array((np.ones(n, dtype=np.int32), (image, np.arange(n))), shape=(n_images, n))
