"""Which words and pairs of words a caption has, beside scikit-learn's own count."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from capbias_core.prepare.ngrams import NOTHING, ngrams_of

CAPTIONS = ["a cat on a mat", "a dog a dog", "", "é <gender> a", "dog", "a\u00a0b  c", "<>"]


@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("captions", [CAPTIONS, ["", ""], []])
def test_is_what_scikit_learn_counts(captions, pairs):
    reader = CountVectorizer(token_pattern=r"\S+", lowercase=False, ngram_range=(1, 1 + pairs), binary=True)
    expected = reader.fit_transform([*captions, NOTHING]).toarray()[: len(captions)]
    found = ngrams_of(captions, pairs)
    assert found.columns == reader.vocabulary_ and found.terms == sorted(found.terms)
    assert found.matrix.shape == expected.shape and np.array_equal(found.matrix.toarray(), expected)


def test_words_and_pairs_stand_where_they_are_read():
    found = ngrams_of(CAPTIONS, pairs=True)
    for place, caption in enumerate(CAPTIONS):
        words, own = caption.split(), slice(found.start[place], found.start[place + 1])
        assert [found.terms[column] for column in found.words[own]] == words
        pairs = [found.terms[column] for column in found.pairs[own] if column >= 0]
        assert pairs == [f"{one} {two}" for one, two in zip(words, words[1:], strict=False)]
        assert not words or found.pairs[own][-1] == -1
