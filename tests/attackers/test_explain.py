"""Words behind the score: the corpus table and the rescoring of edited captions, worked out by hand."""

import io

import numpy as np
import pytest

from capbias_core.attackers.what_if import StoredAttackers, apply_edit, parse_edit
from capbias_core.attributes import get_attribute
from capbias_core.errors import CapbiasError
from capbias_core.measures.caption_scores import corpus_table
from capbias_core.workspace.limited import within_limits

GENDER = get_attribute("gender")

MASKED = ["a dog", "a a cat", "", "dog"]
WORDS = [np.array([[1.0], [4.0]]), np.array([[0.5], [0.25], [-2.0]]), np.zeros((0, 1)), np.array([[2.0]])]
LABELS = np.array([0, 1, 1, 1])


def test_the_corpus_table_by_hand():
    table = corpus_table(MASKED, WORDS, LABELS, 2).set_index("word")
    assert list(table.columns) == ["mean0", "count", "share0", "share1"]
    # a: 1 in one caption, 0.5 + 0.25 in another; dog: 4 and 2. One caption is labelled 0, three 1.
    assert table.loc["a"].tolist() == pytest.approx([0.875, 2, 1, 1 / 3])
    assert table.loc["dog"].tolist() == pytest.approx([3, 2, 1, 1 / 3])
    assert table.loc["cat"].tolist() == pytest.approx([-2, 1, 0, 1 / 3])
    assert list(table.index) == ["a", "dog", "cat"]


def test_the_corpus_table_of_three_values():
    words = [np.array([[1.0, 2.0, 3.0]]), np.array([[3.0, 2.0, 1.0]])]
    table = corpus_table(["x", "x"], words, np.array([0, 2]), 3)
    assert table.loc[0].tolist() == ["x", 2.0, 2.0, 2.0, 2, 1.0, 0.0, 1.0]


# what if


def stored() -> StoredAttackers:
    """Two folds: the second has twice the weights of the first."""
    terms = ["a", "<gender>", "skirt", "a skirt", "truck"]
    first = np.array([[0.0], [0.1], [-1.0], [-0.5], [2.0]])
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        terms=np.frombuffer("\n".join(terms).encode(), dtype=np.uint8),
        weights=np.stack([first, 2 * first]),
        intercepts=np.array([[0.2], [0.4]]),
    )
    return StoredAttackers.from_bytes(buffer.getvalue())


@pytest.mark.parametrize(("fold", "factor"), [(0, 1.0), (1, 2.0), (None, 1.5)])
def test_a_caption_is_scored_by_the_attackers_asked_for(fold, factor):
    found = stored().score("A woman in a skirt.", GENDER, fold)
    assert found.tokens == ["a", "<gender>", "in", "a", "skirt"]
    # <gender> 0.1, skirt -1, "a skirt" -0.5 shared by its two words; the intercept apart.
    assert found.words[:, 0] == pytest.approx([0, 0.1 * factor, 0, -0.25 * factor, -1.25 * factor])
    assert found.baseline == pytest.approx([0.2 * factor])
    logit = (0.2 + 0.1 - 1 - 0.5) * factor
    assert found.logit == pytest.approx([logit])
    assert found.probabilities == pytest.approx([1 / (1 + np.exp(logit)), 1 / (1 + np.exp(-logit))])


@pytest.mark.parametrize("caption", ["", "...", "entirely unknown"])
def test_a_caption_of_no_known_word_has_the_intercept(caption):
    found = stored().score(caption, GENDER)
    assert found.logit == pytest.approx([0.3]) and found.words.sum() == 0


@pytest.mark.parametrize(
    ("edit", "parsed"),
    [
        ("man -> woman", ("man", ["woman"])),
        (" Man->woman|person ", ("man", ["woman", "person"])),
        ("woman's -> man's | their own", ("woman's", ["man's", "their own"])),
        ("umbrella → bat", ("umbrella", ["bat"])),
        ("umbrella→bat|dog", ("umbrella", ["bat", "dog"])),
        ("umbrella -> a  red\nbat", ("umbrella", ["a red bat"])),
    ],
)
def test_edits_are_read(edit, parsed):
    assert parse_edit(edit) == parsed


@pytest.mark.parametrize(
    "edit", ["", "man", "man ->", "-> woman", "man -> woman |", "man -> | woman", "a man -> woman", " ->" * 30]
)
def test_other_edits_are_refused(edit):
    with pytest.raises(CapbiasError, match="umbrella -> bat"):
        parse_edit(edit)


@pytest.mark.parametrize("edit", ["x" + "->" * 20_000 + "b" + " " * 40_000 + "\nc d", "a->" + " " * 99_999 + "b"])
def test_the_time_of_an_edit_grows_with_its_length(edit):
    """A search that goes back takes hours for them, and is ended."""
    assert within_limits("The edit", parse_edit, edit)[0] == edit[0]


@pytest.mark.parametrize(
    ("caption", "word", "new", "edited"),
    [
        ("A man with an umbrella", "umbrella", "bat", "A man with a bat"),
        ("An umbrella", "umbrella", "bat", "A bat"),
        ("a bat and the bat", "bat", "umbrella", "an umbrella and the umbrella"),
        ("an orange", "orange", "unicorn", "a unicorn"),
        ("a horse", "horse", "honest horse", "an honest horse"),
        ("an egg", "egg", "one", "a one"),
        ("a bat", "bat", "onion", "an onion"),
        ("a man", "man", "", "a "),
        ("pizza umbrella", "umbrella", "bat", "pizza bat"),
        ("near a man", "man", "an elephant", "near an elephant"),
    ],
)
def test_the_article_is_that_of_the_new_word(caption, word, new, edited):
    assert apply_edit(caption, word, new) == edited
