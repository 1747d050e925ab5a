import numpy as np
import pytest

from benchmarks.statistics.synthetic import Design, draw
from capbias_core.prepare.ngrams import coded
from capbias_core.prepare.retell import retell, told, variety


@pytest.fixture(scope="module")
def drawn():
    return draw(Design(), 400, 0)


@pytest.fixture(scope="module")
def human(drawn):
    return [" ".join(captions) for captions in zip(*drawn.humans, strict=True)]


@pytest.fixture(scope="module")
def retold(drawn, human):
    return retell(drawn.model, human)


def topics(captions):
    return np.array([[word.rsplit("_", 1)[0] for word in own.split() if word.startswith("t")] for own in captions])


def test_tells_the_topics_that_people_tell(drawn, retold):
    assert (topics(retold) == topics(drawn.model)).mean() > 0.7
    assert (topics(drawn.model[1:] + drawn.model[:1]) == topics(drawn.model)).mean() < 0.2


def test_writes_as_the_captioner_does(drawn, retold):
    pairs = {pair for own in drawn.model for pair in zip(own.split(), own.split()[1:], strict=False)}
    assert all(pair in pairs for own in retold for pair in zip(own.split(), own.split()[1:], strict=False))
    assert variety(coded(retold)) <= variety(coded(drawn.model))


def test_never_tells_what_only_the_caption_of_the_image_itself_tells(drawn, human):
    marked = [f"{caption} only{place}" for place, caption in enumerate(drawn.model)]
    assert all(f"only{place}" not in caption.split() for place, caption in enumerate(retell(marked, human)))


def test_is_the_same_each_time_and_has_no_other_source_than_the_human_captions(drawn, human, retold):
    assert retell(drawn.model, human) == retold
    mixed = human[1:] + human[:1]
    assert (topics(retell(drawn.model, mixed)) == topics(drawn.model)).mean() < 0.2


@pytest.mark.parametrize("captions", [["a cat"], ["", "", "", "", "", ""], ["a", "b", "c", "d", "e", "f"]])
def test_leaves_alone_what_it_cannot_learn_from(captions):
    assert retell(captions, ["a dog"] * len(captions)) == captions


def test_told_by_hand():
    # Human words occur in one image each: cosine 1 with the own image, 1/2 with the mean of the two.
    label = np.array([0, 1])
    assert told(["cat", "dog"], ["cat", "dog"], label).words == pytest.approx(0.5)
    assert told(["dog", "cat"], ["cat", "dog"], label).words == pytest.approx(-0.5)
    assert told(["a", "a"], ["a cat", "a dog"], label).words == 0


def test_what_goes_with_the_label_is_told_by_the_words_that_do():
    """Half of the images of each label have a `cat` or a `dog`; `hat` and `tie` go with the label alone."""
    people = ["hat cat", "hat dog", "tie cat", "tie dog"] * 25
    label = np.array([0, 0, 1, 1] * 25)
    right, wrong_of_label = ["hat", "hat", "tie", "tie"] * 25, ["tie cat", "tie dog", "hat cat", "hat dog"] * 25
    assert told(right, people, label).of_label == pytest.approx(0.5), "1 with the own, 1/2 with the mean of all"
    assert told(wrong_of_label, people, label).of_label == pytest.approx(-0.5)
    assert told(wrong_of_label, people, label).words == pytest.approx(0, abs=0.01), "of all words half are right"
    three = np.array([0, 0, 1, 2] * 25)
    assert told(right, people, three).of_label > 0, "labels of several values"


def test_variety_by_hand():
    assert variety(coded(["a b", "a b", "c d", "c d"])) == 1
    assert variety(coded(["a b c", "d e f"])) == 2
    assert variety(coded(["a", ""])) == 0
    assert variety(coded(["it is a b", "it is a b", "it is c d", "it is c d"])) == variety(
        coded(["is a b"] * 2 + ["is c d"] * 2)
    )
