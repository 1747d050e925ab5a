"""DBAC: both variants on sets worked out by hand, and from captions to the run."""

import time
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import capbias_core as capbias
from capbias_core.attackers import load_attacker
from capbias_core.attributes import get_attribute
from capbias_core.measures import dbac as measure
from capbias_core.measures.caption_side import CaptionSide, one_hot
from capbias_core.metrics.dbac import dbac, inverse_cross_entropy, pair_weight, side_weight
from capbias_core.prepare.tasks import content_words, function_words, named_words, object_names, task_words
from capbias_core.prepare.tokens import Tokens


def test_the_equations_by_hand():
    """Two values, two task words. 10 held-out captions: F with bed 3, F with tie 1, M with bed 2, M with tie 4.

    Right guesses: of 5 with bed 4, of 5 with tie 2, so Q(bed) = 0.8 and Q(tie) = 0.4. Over the whole set P(bed) = 0.6,
    P(tie) = 0.3, P(F) = 0.4, P(M) = 0.6. A->T: w = Q(t) P(t) / P(a):
    (F, bed) 0.8 * 0.6 / 0.4 = 1.2, (F, tie) 0.4 * 0.3 / 0.4 = 0.3, (M, bed) 0.8, (M, tie) 0.2.
    Mean by captions: (3 * 1.2 + 1 * 0.3 + 2 * 0.8 + 4 * 0.2) / 10 = (3.6 + 0.3 + 1.6 + 0.8) / 10 = 0.63.
    """
    pairs = np.array([[3.0, 1.0], [2.0, 4.0]])
    quality = np.array([4.0, 2.0]) / pairs.sum(axis=0)
    ratio = np.array([[0.6, 0.3]]) / np.array([[0.4], [0.6]])
    assert quality.tolist() == [0.8, 0.4]
    assert float(pair_weight(quality, pairs, ratio)) == pytest.approx(0.63)
    # An attacker that is sure of every truth: of the first word the loss is 0, Q is 1 / 1e-12 and not infinite. By
    # captions (2 * 1e12 + 2 * 2) / 4, of which DBAC beside w_H = 1 is 1 within rounding.
    pairs = np.array([[1.0, 1.0], [1.0, 1.0]])
    quality = inverse_cross_entropy(np.array([0.0, 1.0]), pairs.sum(axis=0))
    assert quality.tolist() == pytest.approx([1e12, 2.0])
    weight = pair_weight(quality, pairs, np.ones((2, 2)))
    assert float(weight) == pytest.approx(5e11) and float(dbac(weight, np.array(1.0))) == pytest.approx(1.0)
    assert np.isnan(inverse_cross_entropy(np.array([0.0]), np.array([0.0]))).all(), "no caption, no quality"


FORMS = {"Female": "a woman", "Male": "a man"}


def values_and(one: str, other: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Of n images the value and the word, independent and equally common."""
    return np.array(["Female", "Male"])[np.arange(n) % 2], np.array([one, other])[np.arange(n) // 2 % 2]


def captions_of(form: str, values, words, cues=None) -> pd.DataFrame:
    """Captions of the form, with who, word and cue of each image."""
    each = zip(values, words, values if cues is None else cues, strict=True)
    texts = [form.format(who=FORMS[value], word=word, cue=cue) for value, word, cue in each]
    return pd.DataFrame({"image_id": map(str, range(len(texts))), "caption_index": 0, "caption": texts})


def scored(human, model, values, *metrics: str, objects=None):
    """The report and its rows by metric and direction."""
    labels = pd.DataFrame({"image_id": human["image_id"], "gender": values})
    given = {} if objects is None else {"objects": objects}
    report = capbias.score({"m": model}, labels, "gender", human, metrics, seeds=3, **given)
    return report, report.table.set_index(["metric", "direction"])


def of_images(objects, n: int | None = None) -> pd.DataFrame:
    """Objects of the first n images."""
    return pd.DataFrame({"image_id": map(str, range(len(objects))), "objects": objects}).head(n or len(objects))


# Of A->T the best attackers are right in 60 and 90%; their losses are the entropies of these, 0.673 and 0.325 nats.
# The authors' code has the mean probability of the truth, 0.6 * 0.6 + 0.4 * 0.4 = 0.52 and 0.82. Of T->A masked
# captions say nothing of the word: 1 / ln 2 on both sides, and two words, each there or not with probability 1/2,
# give 1/4. Values and words are as common on both sides: a constant attacker sees no difference.
KNOWN = [
    ("DBAC_accuracy_H", "A->T", 0.6, 0.05),
    ("DBAC_accuracy_M", "A->T", 0.9, 0.03),
    ("DBAC_accuracy", "A->T", 100 * (0.9 - 0.6) / (0.9 + 0.6), 4),
    ("DBAC_equations_H", "A->T", 1 / 0.673, 0.08),
    ("DBAC_equations_M", "A->T", 1 / 0.325, 0.37),
    ("DBAC_H", "A->T", 0.52, 0.03),
    ("DBAC_M", "A->T", 0.82, 0.04),
    ("DBAC_constant", "A->T", 0, 0.5),
    ("DBAC_equations_M", "T->A", 1 / np.log(2), 0.09),
    ("DBAC_equations_H", "T->A", 1 / np.log(2), 0.09),
    ("DBAC_equations", "T->A", 0, 2),
    ("DBAC_H", "T->A", 0.25, 0.02),
]


@pytest.mark.long
def test_values_of_the_best_possible_attackers():
    """1,000 images, values and words independent and equally common. The human captions' cue agrees with the value in
    60% of them, the model's in 90%, and each caption names its word: P(t) / P(a) = 1 on both sides, and w is Q."""
    (values, tasks), rng = values_and("bed", "tie", 1000), np.random.default_rng(8)

    def captions(share):
        agree = rng.permutation(1000) < share * 1000
        cues = np.where((values == "Female") == agree, "sits by", "lies by")
        return captions_of("{who} {cue} a {word}", values, tasks, cues)

    human, model = captions(0.6), captions(0.9)
    metrics = "dbac", "dbac_equations", "dbac_accuracy"
    _, rows = scored(human, model, values, *metrics, objects=of_images(tasks))
    for metric, direction, value, tolerance in KNOWN:
        assert rows.loc[metric, direction]["value"] == pytest.approx(value, abs=tolerance), (metric, direction)
    row = rows.loc["DBAC_accuracy", "A->T"]
    assert 0 < row["ci_low"] < 20 < row["ci_high"]
    assert row["n"] == 200 and row["seeds"] == 3 and row["encoder"] == "ngram"
    added = rows.loc["DBAC_added", "A->T"]
    difference = rows.loc["DBAC", "A->T"]["value"] - rows.loc["DBAC_constant", "A->T"]["value"]
    assert added["value"] == pytest.approx(difference) and added["interval"] == "refits"


@pytest.mark.long
def test_images_that_nobody_annotated_are_left_out_of_t_to_a():
    values, objects = values_and("bed", "tie", 200)
    frame = captions_of("{who} near a {word}", values, objects)
    _, rows = scored(frame, frame, values, "dbac", objects=of_images(objects, 120))
    assert rows.loc["DBAC", "A->T"]["n"] == 40 and rows.loc["DBAC", "T->A"]["n"] == 24


def test_the_ratio_of_patterns_by_hand():
    """Four captions of four images; patterns bed, bed, none, tie, values F F M M: bed 2/4 over F 2/4 = 1, none 1/4 over
    M 2/4 = 1/2, tie the same; the other way round the inverse. All guessed with probability 1."""
    tasks = csr_array(np.array([[1, 0], [1, 0], [0, 0], [0, 1]]))
    label, patterns = one_hot(np.array([0, 0, 1, 1]), 2), measure.different_rows(tasks)
    truth = np.zeros((4, 1)), np.ones((4, 1)), np.ones(4)

    def sums_of(groups) -> dict[str, np.ndarray]:
        of_all = {"with task": tasks, "with value": label, "with pattern": patterns.T, "with group": groups}
        columns = measure.held_out_columns(tasks, label, patterns, groups, *truth) | of_all
        return {name: np.asarray(own.sum(axis=0)).ravel() for name, own in columns.items()}

    def weight(sums, inverse: bool, variant: str = "DBAC", constant: bool = False) -> float:
        return float(side_weight(sums, inverse, variant, constant))

    sums = sums_of(label)
    assert weight(sums, False) == pytest.approx((1 + 1 + 0.5 + 0.5) / 4)
    assert weight(sums, True) == pytest.approx((1 + 1 + 2 + 2) / 4)
    # The captions name F, M, M and nobody: 1/4, 2/4, 2/4 and 1/4 over bed 2/4, bed 2/4, none 1/4 and tie 1/4.
    assert weight(sums_of(one_hot(np.array([0, 1, 1, 2]), 3)), True) == pytest.approx((0.5 + 1 + 2 + 1) / 4)
    # A constant attacker that gives each truth probability 1 has the same by the authors' code.
    assert weight(sums, False, constant=True) == pytest.approx((1 + 1 + 0.5 + 0.5) / 4)
    # By the equations: A->T (2 * 1 + 1 * 1/2) / 3; T->A with P(F) / P(bed) = 1 and P(M) / P(tie) = 2, 4 / 3.
    assert weight(sums, False, "DBAC_equations", True) == pytest.approx(2.5 / 3)
    assert weight(sums, True, "DBAC_equations", True) == pytest.approx(4 / 3)
    # The equations: (F, bed) twice, P(bed) / P(F) = 1; (M, tie) once, 1/4 over 1/2.
    assert weight(sums, False, "DBAC_accuracy") == pytest.approx((2 * 1 + 1 * 0.5) / 3)


def test_task_words_of_a_to_t_are_names_of_one_word_and_their_plurals():
    """As the authors' code has it, which lemmatises; but a full stop hides nothing."""
    captions = {
        "A man with a bat.": set(),
        "two bananas, a CAKE": {"banana", "cake"},
        "a hot dog.": {"dog"},
        "A person\u2019s dogs": {"person", "dog"},
        "people ski with knives (and mice)": {"skis", "knife", "mouse"},
        'skiing by the "buses";benches  couches': {"bus", "bench", "couch"},
    }
    names = list(task_words())
    found = named_words(Tokens.of(captions)).toarray()
    assert [{names[place] for place in np.flatnonzero(row)} for row in found] == list(captions.values())


def test_the_value_that_a_caption_names_is_the_one_of_most_words():
    """As the authors' script reads it."""
    told = {
        "a woman with a cake": [True, False],
        "a man and his dog": [False, True],
        "a man and a woman": [True, True],
        "a man and a woman with her dog": [True, False],
        "man man woman": [True, True],
        "a person with a cake": [True, True],
    }
    frame = pd.DataFrame({"image_id": list(map(str, range(len(told)))), "caption_index": 0, "caption": list(told)})
    side = CaptionSide(frame, list(frame["image_id"]), get_attribute("gender"))
    assert measure.named_most(side).tolist() == list(told.values())
    race = CaptionSide(frame, list(frame["image_id"]), get_attribute("race"))
    assert measure.named_most(race).all(), "captions name no value: all of them are one group"


@pytest.mark.long
def test_objects_that_only_the_annotation_names_are_masked_too():
    """Guitar and violin are not in the table of COCO's names. The model names the one that is there, people any: left
    in the captions, that word alone would tell it."""
    values, objects = values_and("guitar", "violin", 400)
    sides = np.random.default_rng(5).permutation(objects), objects
    human, model = (captions_of("{who} near a {word}", values, side) for side in sides)
    report, rows = scored(human, model, values, "dbac", objects=of_images(objects))
    assert rows.loc["DBAC", "T->A"]["value"] == pytest.approx(0, abs=3)
    assert "DBAC A->T left out" in " ".join(report.notes), "no object of the table is named"


@pytest.mark.long
def test_synonyms_of_cocos_names_change_no_number_of_t_to_a():
    """Captions that write COCO's name for each synonym and plural are the same to an attacker that sees no object."""
    forms = {name: [" ".join(form) for form in forms] for name, forms in object_names().items()}
    rng, names = np.random.default_rng(6), np.array(["baseball bat", "couch", "knife", "suitcase", "tennis racket"])
    values, objects = np.array(["Female", "Male"])[np.arange(400) % 2], names[rng.integers(5, size=400)]
    side = [[str(rng.choice(forms[name])) for name in objects] for _ in range(2)]
    written, renamed = (
        [captions_of("{who} with {word}", values, words) for words in pair] for pair in (side, (objects, objects))
    )
    rows = [scored(*pair, values, "dbac", objects=of_images(objects))[1] for pair in (written, renamed)]
    first, second = (table.xs("T->A", level="direction")[["value", "ci_low", "ci_high"]] for table in rows)
    pd.testing.assert_frame_equal(first, second)


@dataclass(frozen=True)
class Reads:
    batch: int


def test_batches_shrink_with_the_images_by_hand():
    """1,960 of 2,450 images train: 256 x 1,960 / 8,624 = 58.2, and 64 x the same = 14.5, at least 16."""
    assert measure.small_batches(Reads(256), 1960) == (Reads(58), "; batches of 58, 256 for 8624 training images")
    assert measure.small_batches(Reads(64), 1960)[0] == Reads(16)
    assert measure.small_batches(Reads(8), 2450) == (Reads(8), "")
    assert measure.small_batches(Reads(256), 8624) == (Reads(256), "") == measure.small_batches(Reads(256), 20_000)
    linear = load_attacker("ngram")
    assert measure.small_batches(linear, 100) == (linear, "")


def test_a_word_of_any_length_is_tagged_at_once():
    """HanTa takes 33 s for 4,000 letters, and hours for 80,000; a word that long is none."""
    long, began = "abcdefgh" * 10_000, time.monotonic()
    assert function_words([long, "to"]) == {"to"}
    assert content_words(Tokens.of([f"a dog {long}"])) == ["dog"] and time.monotonic() - began < 5
