"""LIC at equal length: what is cut, its numbers against captions cut beforehand, and what the verdict needs."""

import numpy as np
import pandas as pd
import pytest

import capbias_core as capbias
from capbias_core.measures.lic import at_equal_length
from capbias_core.measures.training import caption_lists
from capbias_core.workspace.store import Workspace
from tests import sentences

N = 400
# What an image shows, whatever its label.
TREES = ["oak", "elm", "ash", "fir", "pine", "palm", "beech", "birch", "cedar", "maple"]


def lists(words: int, n: int = 20) -> list:
    frame = pd.DataFrame({"image_id": list(map(str, range(n))), "caption_index": 0})
    return caption_lists(
        frame, [" ".join(f"w{word}" for word in range(words))] * n, frame["image_id"], np.arange(n) % 2, 2
    )


@pytest.mark.parametrize(
    ("model", "human", "left"), [(10, 20, (10, 10)), (11, 10, None), (10, 11, None), (12, 10, (10, 10))]
)
def test_the_longer_side_is_cut_if_it_is_longer_by_more_than_a_tenth(model, human, left):
    equal = at_equal_length(lists(model), lists(human))
    assert (equal and tuple(side[0].masked.lengths[0] for side in equal.lists)) == left


def world() -> tuple[pd.DataFrame, pd.DataFrame, list[str], list[str]]:
    """Labels, human captions, and for each image a caption like people's and a long one: the same, and ten words more,
    of which one says what people say of half of the images with this label."""
    draw, label = np.random.default_rng(0), ["Female", "Male"] * (N // 2)
    told = {"Female": "kitchen", "Male": "skateboard"}

    def caption(value: str, image: int) -> str:
        other = "Male" if value == "Female" else "Female"
        word = told[value] if draw.random() < 0.5 else told[other] if draw.random() < 0.4 else "street"
        things = f"{TREES[image % 10]} {TREES[image // 10 % 10]} {TREES[image // 100]}"
        return f"{draw.choice(['one', 'some', 'a'])} person near the {word} with {things}"

    tail = "while there is a lot more to see such as"
    labels = pd.DataFrame({"image_id": range(N), "gender": label})
    human = pd.concat([labels[["image_id"]].assign(caption=list(map(caption, label, range(N)))) for _ in range(2)])
    short = list(map(caption, label, range(N)))
    return labels, human, short, [f"{own} {tail} the {told[value]}" for own, value in zip(short, label, strict=True)]


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """The report on the long captions and on those that were cut beforehand, three seeds, and its workspace."""
    labels, human, short, long = world()
    images = labels["image_id"]
    sets = {
        name: pd.DataFrame({"image_id": images, "caption": own}) for name, own in (("long", long), ("short", short))
    }
    workspace = Workspace(tmp_path_factory.mktemp("w"))
    report = capbias.score(sets, labels, "gender", human, metrics=["lic"], seeds=5, workspace=workspace.folder)
    return report, workspace


def test_numbers_at_equal_length_are_those_of_captions_cut_beforehand(scored):
    report, _ = scored
    for name in ("LIC", "LIC_by_H", "LIC_by_M"):
        cut, short = report["long", f"{name}_cut"], report["short", name]
        assert (cut.value, cut.interval) == (short.value, short.interval), name
        assert cut.method.startswith("at equal length: captions (21.0 words on average) cut after 9, ")
    assert not {"LIC_cut"} & set(report.table.loc[report.table["model"] == "short", "metric"])


def test_a_verdict_must_hold_at_equal_length(scored):
    report, _ = scored
    by_human, cut = report["long", "LIC_by_H"], report["long", "LIC_by_H_cut"]
    assert by_human.interval[0] > 0 > cut.interval[0], "the words beyond make the difference"
    assert report["long", "LIC"].verdict == "inconclusive"
    alone = capbias.score(*(world_of("long")), metrics=["lic"], seeds=5)
    sentences.check("answer: amplifies, but not at equal length", alone.sentence, numbers=False)


def world_of(name: str) -> tuple:
    labels, human, short, long = world()
    captions = pd.DataFrame({"image_id": labels["image_id"], "caption": {"long": long, "short": short}[name]})
    return {name: captions}, labels, "gender", human


def test_two_seeds_are_too_few():
    """The words beyond reveal the label so surely that two seeds would say so by their interval alone."""
    (captions, labels, attribute, human), short = world_of("long"), world_of("short")[0]
    report = capbias.score(captions | short, labels, attribute, human, metrics=["lic"], seeds=2)
    assert set(report.table["verdict"]) == {"", "inconclusive"}
    assert report.pairs["p"].tolist() == [1.0] and not report.pairs["differ"].any()
    assert "too few seeds to conclude" in report.sentence and str(report).count("too few seeds to conclude") == 2
    assert "no clear difference" not in str(report)
