"""Which words and pairs of words a caption has, beside scikit-learn's own count."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from capbias_core.prepare.ngrams import NOTHING, ngram_matrix

CAPTIONS = ["a cat on a mat", "a dog a dog", "", "é <gender> a", "dog", "a\u00a0b  c", "<>"]


@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("captions", [CAPTIONS, ["", ""], []])
def test_is_what_scikit_learn_counts(captions, pairs):
    reader = CountVectorizer(token_pattern=r"\S+", lowercase=False, ngram_range=(1, 1 + pairs), binary=True)
    expected = reader.fit_transform([*captions, NOTHING]).toarray()[: len(captions)]
    matrix, columns = ngram_matrix(captions, pairs)
    assert columns == reader.vocabulary_ and list(columns) == sorted(columns)
    assert matrix.shape == expected.shape and np.array_equal(matrix.toarray(), expected)
