"""`Tokens`: what captions say, as codes; masking, alignment, n-grams and objects of captions."""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from capbias_core.attributes import get_attribute
from capbias_core.prepare.align import Alignment
from capbias_core.prepare.tasks import content_words, function_words, named_objects, object_names
from capbias_core.prepare.text import tokenize, tokens_with_spans
from capbias_core.prepare.tokens import NO_TERM, Tokens

GENDER = get_attribute("gender")
WRITTEN = {
    "A man, riding a wave.": "a man riding a wave",
    "the woman's dog": "the woman 's dog",
    "THE WOMAN’S dogs'": "the woman 's dogs",
    "they're here, I'll go": "they 're here i 'll go",
    "a 'sunny' day": "a sunny day",
    "a T-shirt/jacket (red)": "a t shirt jacket red",
    "a <gender> and <UNK> .": "a <gender> and <unk>",
    "un café à l'été": "un café à l été",
    "man\u0303ana cafe\u0301": "mañana café",
    "eine Straße, 2 Züge": "eine straße 2 züge",
    "  tabs\tand\nlines  ": "tabs and lines",
    "😀 ... !!!": "",
    "": "",
}
READ = ["a cat on a mat", "a dog a dog", "", "é <gender> a", "dog", "a b  c", "<>"]


def test_tokens_of_captions():
    found = Tokens.of(WRITTEN)
    assert list(found) == list(WRITTEN.values()) and len(found) == len(WRITTEN)
    assert [tokenize(caption) for caption in WRITTEN] == [text.split() for text in found]
    assert list(Tokens.of(pd.Series(list(WRITTEN)))) == list(found)

    for caption in [*WRITTEN, "İstanbul man\u0303ana", "ﬁre ẞ"]:
        spans = tokens_with_spans(caption)
        assert [token for token, _, _ in spans] == tokenize(caption)
        assert all(caption[start:end].strip() == caption[start:end] != "" for _, start, end in spans)


@pytest.mark.long
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.text("ab <>", max_size=9), max_size=12), st.randoms())
def test_maps_over_the_vocabulary_are_maps_over_words(texts, random):
    found = Tokens.read(texts)
    assert list(found) == [" ".join(text.split()) for text in texts]
    assert found.words == list(dict.fromkeys(word for text in texts for word in text.split()))
    some = np.array(random.sample(range(len(texts)), random.randint(0, len(texts))), dtype=int)
    part = Tokens.read([texts[row] for row in some])
    assert list(found.rows(some)) == list(part) and found.rows(some).words == part.words
    assert list(Tokens.join([found, part])) == [*found, *part]
    assert list(found.mapped(word[:1] for word in found.words)) == [
        " ".join(word[:1] for word in text.split()) for text in texts
    ]
    distinct, place = found.distinct()
    assert list(distinct) == list(dict.fromkeys(found)) and [distinct[row] for row in place] == list(found)
    assert found.matrix().toarray().tolist() == [[word in text.split() for word in found.words] for text in found]


@pytest.mark.parametrize("texts", [READ, ["", ""], []])
def test_ngrams_are_those_of_scikit_learn(texts):
    reader = CountVectorizer(token_pattern=r"\S+", lowercase=False, ngram_range=(1, 2), binary=True)
    expected = reader.fit_transform([*texts, NO_TERM]).toarray()[: len(texts)]
    found = Tokens.read(texts).ngrams()
    assert dict(zip(found.terms, range(len(found.terms)), strict=True)) == reader.vocabulary_
    assert np.array_equal(found.matrix.toarray(), expected)
    for row, text in enumerate(texts):
        words, own = text.split(), slice(*found.start[row : row + 2])
        assert [found.terms[column] for column in found.words[own]] == words
        pairs = [found.terms[column] for column in found.pairs[own] if column >= 0]
        assert pairs == [" ".join(pair) for pair in zip(words, words[1:], strict=False)]


MASKED = {
    "A man and two women": "a <gender> and two <gender>",
    "a woman's phone": "a <gender> 's phone",
    "The Ladies’ umbrella": "the <gender> umbrella",
    "he's with his wife, herself pregnant": "<gender> 's with <gender> <gender> <gender> <gender>",
    "a policeman on mandarin": "a policeman on mandarin",
    "a <gender> there": "a <gender> there",
    "...": "",
    "his": "<gender>",
}


def test_words_of_the_attribute_become_masks():
    assert list(Tokens.of(MASKED).masked(GENDER)) == list(MASKED.values())
    merged = Tokens.of(MASKED).masked(GENDER, merge_runs=True)
    assert merged[3] == "<gender> 's with <gender>" and merged[0] == MASKED["A man and two women"]
    assert merged[4:] == list(MASKED.values())[4:]
    assert list(Tokens.of(["A man."]).masked(get_attribute("race"), merge_runs=True)) == ["a man"]


def test_alignment_replaces_words_that_the_model_never_uses():
    known = frozenset(Tokens.read(["a <gender> with a dog", "a cat"]).words)
    human = Tokens.read(["a <gender> walks a dog", "", "owl <mask>"])
    assert list(Alignment(known).captions(human)) == ["a <gender> <unk> a dog", "", "<unk> <mask>"]
    near = Alignment(known, {"owl": "cat", "dog": "cat"})
    assert near.captions(human)[2] == "cat <mask>" and near.counts(human).tolist() == [[5, 0, 1], [0, 0, 0], [2, 1, 0]]


OBJECTS = [
    ("a woman at a desk with a computer", {"laptop"}),
    ("a computer mouse beside a computer keyboard", {"mouse", "keyboard"}),
    ("a computer monitor and two flat screens", {"tv"}),
    ("Two men waiting with suit cases and baggage", {"suitcase"}),
    ("a toaster oven and a microwave oven", {"microwave", "oven"}),
    ("a man throws a disc near a van and busses", {"car", "bus", "frisbee"}),
    ("a dirt bike beside a bike", {"bicycle", "motorcycle"}),
    ("a boy on skiis with two Cell Phones", {"skis", "cell phone"}),
    ("a dog beside hot dogs", {"dog", "hot dog"}),
    ("a teddy bear on a sofa", {"teddy bear", "couch"}),
    ("buses, benches and puppies", {"bus", "bench", "dog"}),
    ("", set()),
]


def test_objects_that_a_caption_names(coco_bias):
    """Names of COCO, of which no phrase names two."""
    names = object_names()
    named = named_objects(Tokens.of([*(caption for caption, _ in OBJECTS), "a hot", "dog days, it is hot"]), names)
    for row, (_, objects) in zip(named.toarray(), OBJECTS, strict=False):
        assert {name for name, there in zip(names, row, strict=True) if there} == objects
    assert named.toarray()[-1].sum() == 1, "a phrase ends with its caption"
    content = json.loads((coco_bias / "annotations" / "instances_subset.json").read_text())
    assert set(names) == {record["name"] for record in content["categories"]} - {"person"}
    phrases = [phrase for forms in names.values() for phrase in set(forms)]
    assert len(set(phrases)) == len(phrases)


def test_kinds_of_words():
    words = ["to", "a", "with", "is", "her", "and", "two", "held", "fire", "top", "giraffe", "quickly", "<unk>", "'s"]
    assert function_words(words) == {"to", "a", "with", "is", "her", "and", "two"}
    captions = Tokens.of(["a red kitchen is in the house"] * 3 + ["a man slowly cooks with the cake"] * 2)
    found = content_words(captions, {"man"})
    assert set(found[:3]) == {"red", "kitchen", "house"} and set(found[3:]) == {"slowly", "cooks", "cake"}


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("s/he", "she he"),
        ("(S)he", "she he"),
        ("wo/man", "woman man"),
        ("(fe)male", "female male"),
        ("wo-man", "woman"),
        ("wo\u2011man", "woman"),
        ("man-made lake", "manmade lake"),
        ("a man-eating-shark", "a maneatingshark"),
        ("mother-in-law", "mother in law"),
    ],
)
def test_two_words_in_one_and_compounds(text, tokens):
    assert tokenize(text) == tokens.split()
    spans = tokens_with_spans(text)
    assert [token for token, _, _ in spans] == tokens.split()
    assert all(end <= start for (_, _, end), (_, start, _) in pairwise(spans))


def test_denied_words_name_nobody():
    groups = [["woman", "women", "her"], ["man", "men"]]
    named = {
        "a street with no man or woman": [0, 0],
        "a woman without a man": [1, 0],
        "not a man but a woman": [1, 0],
        "neither a man nor a woman": [0, 0],
        "there aren't any men": [0, 0],
        "not only a man": [0, 1],
        "neither the man nor the woman is smiling": [1, 1],
        "without any other man a woman sits": [1, 0],
        "without a man or a woman a woman sits": [1, 0],
        "neither man is looking": [0, 1],
        "not the woman but a man": [1, 1],
    }
    assert Tokens.of(list(named)).naming(groups).toarray().tolist() == list(named.values())
