"""Gaps of what captions say between groups: against a count by hand, against brute force, and as runs leave them."""

import csv
import json
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import hypergeom

from capbias_core.aggregate import Counts, estimates_of, of_groups
from capbias_core.api import score
from capbias_core.attributes import get_attribute
from capbias_core.measures.caption_side import categories_of
from capbias_core.measures.registry import GROUPS, MEASURES, METRICS
from capbias_core.measures.wording import DESCRIPTION, mentions_of, shared_words
from capbias_core.metrics import chair_i, chair_s, object_recall, vocabulary_10
from capbias_core.metrics.captions import shares_of_ten
from capbias_core.prepare.tasks import object_names
from capbias_core.prepare.tokens import Tokens
from capbias_core.question import Question
from capbias_core.runs.plan import plan, useful
from capbias_core.runs.run import run_one
from capbias_core.types import silent
from capbias_core.views.table import GAPS
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep

GENDER = get_attribute("gender")
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


def test_the_vocabulary_of_ten_captions_is_the_mean_over_all_draws_of_ten():
    captions = ["a dog", "a cat", "a cow runs", "two dogs", "a dog runs", "a red dog", "one", "a b", "c", "d", "e", "a"]
    texts = [text.split() for text in captions]
    drawn = [len({word for text in own for word in text}) for own in combinations(texts, 10)]
    assert vocabulary_10(captions) == pytest.approx(np.mean(drawn))
    having = np.array([sum(word in text for text in texts) for word in {word for text in texts for word in text}])
    assert vocabulary_10(captions) == pytest.approx((1 - hypergeom(12, having, 10).pmf(0)).sum())
    assert np.isnan(vocabulary_10(captions[:9]))


def test_nouns_and_verbs_of_the_human_captions_by_hand():
    """Nouns of the people: dog twice, ball, grass; verbs: chase, play. `woman` names the attribute and counts not."""
    frame = pd.DataFrame({"image_id": ["1", "2"], "caption": ["the dogs chasing a woman", "a cat"]})
    texts = ["a dog chases the ball", "women playing with a dog on grass", "a cat"]
    human = pd.DataFrame({"image_id": ["1", "1", "2"], "caption": texts})
    given = Tokens.of(frame["caption"]), Tokens.of(human["caption"]), frame["image_id"], human["image_id"]
    found = shared_words(*given, GENDER.masked_words)
    assert found["nouns in both"].tolist() == [2, 1] and found["nouns"].tolist() == [4, 1]
    assert found["verbs in both"].tolist() == [1, 0] and found["verbs"].tolist() == [2, 0]
    assert shared_words(*given)["nouns"].tolist() == [5, 1]


def test_a_groups_vocabulary_is_that_of_its_captions_alone():
    rng = np.random.default_rng(0)
    words = np.array(["a", "dog", "cat", "runs", "red", "big", "tree", "ball"])
    texts = [" ".join(rng.choice(words[: 4 + place % 5], 3)) for place in range(60)]
    label = np.arange(60) // 2 % 3
    of_group = [[text for text, own in zip(texts, label, strict=True) if own == value] for value in range(3)]
    in_group = np.zeros(60)
    for value, own in enumerate(of_group):
        in_group[label == value] = shares_of_ten(Tokens.of(own).matrix())
    columns = {"variety": shares_of_ten(Tokens.of(texts).matrix()), "variety in group": in_group}
    image_id = pd.Series([f"{place // 2:02}" for place in range(60)])
    found = Counts.of_captions(image_id, lambda images: np.array([int(own) % 3 for own in images]), columns)
    alone = [vocabulary_10(own) for own in of_group]
    whole, gap = estimates_of(DESCRIPTION[2:4], found, "xyz").values()
    assert whole.value == pytest.approx(vocabulary_10(texts)) and gap.value == pytest.approx(max(alone) - min(alone))
    within = of_groups(DESCRIPTION[2], found.reading(DESCRIPTION[2].reads), "xyz")
    assert [within.of_images(np.flatnonzero(found.label == own)).value for own in range(3)] == pytest.approx(alone)


@pytest.mark.long
def test_values_named_wrongly_by_group_make_up_the_papers_error(coco_bias):
    """nic 14.25 on 10,780 images (LIC, Table 1, prints 14.3); by group counted anew in plain Python."""
    captions, labels = coco_bias / "results" / "nic.json", coco_bias / "annotations" / "attributes.csv"
    found = score(captions, labels, "gender", metrics=["naming_gap", "error"]).table.query("group == ''")
    found = found.set_index("metric")["value"]
    table = pd.read_csv(labels, dtype=str).set_index("image_id")["gender"]
    frame = pd.DataFrame(json.loads(captions.read_text())).astype(str)
    frame = frame.assign(label=frame["image_id"].map(table)).query("label in @GENDER.values")
    assert len(frame) == 10780 and round(found["error"], 2) == 14.25
    words = [set(text.split()) for text in frame["caption"]]
    women, men = (np.array([not own.isdisjoint(GENDER.words[value]) for own in words]) for value in GENDER.values)
    male = frame["label"] == "Male"
    gap = 100 * ((women & ~men)[male].mean() - (men & ~women)[~male].mean())
    left = 100 * ((~women & ~men)[male].mean() - (~women & ~men)[~male].mean())
    assert found["error_gap"] == pytest.approx(gap) and found["unnamed_gap"] == pytest.approx(left)


# runs

ASKED = ("chair", "description", "reference_words", "naming_gap", "error")


@pytest.fixture
def workspace(tmp_path) -> Workspace:
    """Forty images of each gender. Captions of women's images name a dog that is not there, and no verb."""
    table = pd.DataFrame({"image_id": range(80), "sex": ["Female"] * 40 + ["Male"] * 40})
    table["objects"] = ["cat"] * 40 + ["dog|cat"] * 40
    said = ["a nice man with a big dog"] * 40 + ["a happy man feeds a dog"] * 40
    mine, human = (table[["image_id"]].assign(caption=texts) for texts in (said, "someone feeds a dog"))
    keep(found := Workspace(tmp_path), labels=table, captions={"mine": mine}, references=human)
    return found


def test_runs_give_values_groups_and_gaps(workspace):
    request = Question("c", ("mine",), "labels", "gender", ASKED, "human")
    specs, reasons = useful(plan(workspace, request), request)
    assert not reasons
    outcomes = {spec.run_id: (spec, run_one(workspace, spec, silent)) for spec in specs}
    rows = pd.DataFrame([row.row() for _, own in outcomes.values() for row in own.results])
    value = rows.set_index(["metric", "group"])["value"]
    by_hand = {
        "object_recall": (0, 50),  # no cat is named; of the men's two objects the dog
        "chair_i": (100, 0),
        "chair_s": (100, 0),
        "length": (7, 6),
        "vocabulary_10": (6, 5),
        "modifiers": (100, 50),  # nice and big, or happy, beside man and dog
        "valence": (180 / 7, 45),  # big is not rated
        "noun_recall": (100, 100),
        "verb_recall": (0, 100),
        "error": (100, 0),
        "unnamed": (0, 0),
    }
    assert set(rows["metric"]) == {own for name in by_hand for own in (name, f"{name}_gap")} | {"ratio"}
    for name, (women, men) in by_hand.items():
        assert (value[name, "Female"], value[name, "Male"]) == pytest.approx((women, men)), name
        assert value[f"{name}_gap", ""] == pytest.approx(men - women), name
    assert value["chair_i", ""] == 50 and value["error", ""] == 50
    assert (rows.loc[rows["metric"].isin(GAPS), "method"].str.startswith("Male minus Female; ")).all()
    without = rows[rows["ci_low"].isna()]
    assert {"noun_recall_gap", "unnamed_gap"} <= set(without["metric"]), "0 in both groups: nothing is known of it"
    assert set(without.loc[without["value"].isin([-100, 100]), "metric"]) == {"modifiers"}, "100 is no end of its range"
    assert not (rows["ci_low"] == rows["ci_high"]).any()
    some = rows.drop(without.index)
    assert (some["ci_low"] - 1e-9 <= some["value"]).all() and (some["value"] <= some["ci_high"] + 1e-9).all()
    for spec, outcome in outcomes.values():
        counts = Counts.load(outcome.kept["counts"])
        again = estimates_of(MEASURES[spec.measure].metrics, counts, GENDER.values)
        assert {name: own.value for (name, _), own in again.items()} == pytest.approx(
            {row.metric: row.value for row in outcome.results if not row.group}, nan_ok=True
        )
    women = rows.set_index(["metric", "group"]).loc[("chair_i", "Female")]
    wilson = [100 * (1 - 1.96**2 / (40 + 1.96**2)), 100]
    assert [women["ci_low"], women["ci_high"]] == pytest.approx(wilson, abs=0.01), "40 images"
    # Each gap is of a metric that one group asks for with it.
    for name, of in GAPS.items():
        assert METRICS[name].scale == METRICS[of].scale and METRICS[name].neutral(2) == 0
        assert [group.name for group in GROUPS.values() if {name, of} <= set(group.metrics)]
