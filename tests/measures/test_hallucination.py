"""CHAIR and object recall: against a count by hand, and as runs leave them."""

import csv
import json

import pandas as pd
import pytest

from capbias_core.api import score
from capbias_core.measures.hallucination import categories_of, mentions_of
from capbias_core.metrics import chair_i, chair_s, object_recall
from capbias_core.prepare.tasks import object_names
from capbias_core.prepare.tokens import Tokens

# Objects that 50 real captions mention, each as often as they do, written down by reading them before any was counted.
# Of nic, sat and oscar 14 captions each were drawn at random, of LLaVA and MiniGPT-4 (long captions) four each.
BY_HAND = {
    "results/nic": """
        73093 frisbee; 73153 frisbee; 137108; 198658 cat; 213434 sports ball; 233968 frisbee; 281111 clock;
        293221 bench|hot dog; 323561 truck; 417849 horse; 440110; 474110 cell phone;
        490620 pizza|knife|fork; 563951 tennis racket""",
    "results/sat": """
        53484 tv; 57550 horse; 76161; 86011 laptop; 168231 skis; 196742 knife; 282659 baseball bat; 292236;
        306619 sports ball; 306749 teddy bear|teddy bear; 378347; 533872 giraffe; 537860; 561901 frisbee""",
    "results/oscar": """
        4509 bed; 92257 toilet; 179522; 200775 sandwich; 234031 cell phone; 239229; 296255 tennis racket;
        298978 car|cell phone; 380088 cow; 383518 boat; 391255 cake; 512985 surfboard;
        533976 dining table|cake; 568325""",
    "results_more/llava_long": """
        152543 bicycle|bicycle|bicycle|backpack|backpack|cup; 240340 motorcycle|motorcycle|traffic light;
        303321 motorcycle|motorcycle|motorcycle|motorcycle|motorcycle|car;
        526892 surfboard|surfboard|surfboard|book|book|refrigerator""",
    "results_more/minigpt4_long": """
        140007; 150088 sink; 460705 surfboard|surfboard; 569758 sports ball|sports ball|sports ball""",
}


def by_hand(counted: str) -> list[tuple[str, list[str]]]:
    """Image ids with the objects that their captions mention."""
    pairs = (row.strip().partition(" ") for row in counted.split(";"))
    return [(image, [name for name in names.split("|") if name]) for image, _, names in pairs]


@pytest.mark.long
def test_objects_of_50_real_captions_equal_a_count_by_hand(coco_bias):
    """Both CHAIR and recall from lists in plain Python, against what the measure counts in the captions' text."""
    with (coco_bias / "annotations" / "objects.csv").open() as rows:
        shown = {row["image_id"]: set(row["objects"].split("|")) - {"person"} for row in csv.DictReader(rows)}
    read = [pair for counted in BY_HAND.values() for pair in by_hand(counted)]
    texts = []
    for file, counted in BY_HAND.items():
        captions = {
            str(row["image_id"]): row["caption"] for row in json.loads((coco_bias / f"{file}.json").read_text())
        }
        texts += [captions[image] for image, _ in by_hand(counted)]
    assert len(texts) == 50
    names, mentions = list(object_names()), mentions_of(Tokens.of(texts)).toarray()
    found = [sorted(names[place] for place in range(len(names)) for _ in range(row[place])) for row in mentions]
    assert found == [sorted(own) for _, own in read]

    wrong = [[name for name in own if name not in shown[image]] for image, own in read]
    annotations = pd.Series({image: "|".join(own) for image, own in shown.items()})
    on_image = categories_of([image for image, _ in read], annotations, object_names())[0].toarray()
    assert chair_i(mentions, on_image) == pytest.approx(sum(map(len, wrong)) / sum(len(own) for _, own in read))
    assert chair_s(mentions, on_image) == pytest.approx(sum(map(bool, wrong)) / 50)
    recalled = sum(len(set(own) & shown[image]) for image, own in read)
    assert object_recall(mentions, on_image) == pytest.approx(recalled / sum(len(shown[image]) for image, _ in read))


def test_values_by_group_and_gaps():
    """Captions of women's images name a dog that is not there and no cat that is; men's name one of two objects."""
    images = pd.DataFrame({"image_id": range(80), "gender": ["Female"] * 40 + ["Male"] * 40})
    objects = images[["image_id"]].assign(objects=["cat"] * 40 + ["dog|cat"] * 40)
    captions = images[["image_id"]].assign(caption=["a man with a dog"] * 40 + ["a man feeds a dog"] * 40)
    report = score(captions, images, "gender", metrics=["chair"], objects=objects)
    assert [report["chair_i", value].value for value in ("Female", "Male")] == [100, 0]
    assert [report["chair_s", value].value for value in ("Female", "Male")] == [100, 0]
    assert [report["object_recall", value].value for value in ("Female", "Male")] == [0, 50]
    assert report["chair_i"].value == 50 and report["chair_i_gap"].value == -100
