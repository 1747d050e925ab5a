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
    assert told(["cat", "dog"], ["cat", "dog"]) == pytest.approx(0.5)
    assert told(["dog", "cat"], ["cat", "dog"]) == pytest.approx(-0.5)
    assert told(["a", "a"], ["a cat", "a dog"]) == 0


def test_variety_by_hand():
    assert variety(coded(["a b", "a b", "c d", "c d"])) == 1
    assert variety(coded(["a b c", "d e f"])) == 2
    assert variety(coded(["a", ""])) == 0
