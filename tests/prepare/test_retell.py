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


def test_what_goes_with_the_label_is_told_among_images_of_one_label():
    """Of each label's 50 images 30 have its word, `hat` or `tie`, and 20 the other; half have a `cat`, half a `dog`."""
    label = np.repeat([0, 1], 50)
    worn = ["hat"] * 30 + ["tie"] * 20 + ["tie"] * 30 + ["hat"] * 20
    seen = ["cat", "dog"] * 50
    people = [" ".join(words) for words in zip(worn, seen, strict=True)]

    def of_label(captions, label=label):
        return told(captions, people, label).of_label

    other = {"hat": "tie", "tie": "hat"}
    assert of_label(worn) == pytest.approx(1)
    assert of_label([other[word] for word in worn]) == pytest.approx(-1)
    assert of_label(["hat"] * 50 + ["tie"] * 50) == pytest.approx(0), "what is usual for the label tells nothing more"
    assert of_label(seen) == pytest.approx(0), "what goes with no label counts for nothing"
    some = [*worn]
    for start in (0, 30, 50, 80):  # five of each word in each label: 25 of 50 hold it on both sides, by chance 18
        some[start : start + 5] = [other[word] for word in worn[start : start + 5]]
    assert of_label(some) == pytest.approx((25 / 50 - 0.6**2) / (0.6 - 0.6**2))
    assert of_label(worn, np.repeat([0, 1, 2], [50, 25, 25])) > 0.99, "labels of several values"


def test_variety_by_hand():
    assert variety(coded(["a b", "a b", "c d", "c d"])) == 1
    assert variety(coded(["a b c", "d e f"])) == 2
    assert variety(coded(["a", ""])) == 0
    assert variety(coded(["it is a b", "it is a b", "it is c d", "it is c d"])) == variety(
        coded(["is a b"] * 2 + ["is c d"] * 2)
    )
