"""BA and DBA: against an independent package, against cases worked out by hand, and from captions to the run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from capbias_core.aggregate import Estimate, comparison, cross_fitting, rank
from capbias_core.aggregate.estimate import BOOTSTRAP_SEED
from capbias_core.attributes import get_attribute, plain_attribute
from capbias_core.errors import CapbiasError
from capbias_core.measures.bias_amplification import (
    METRICS,
    cooccurrence_bytes,
    cooccurrence_estimates,
    cooccurrence_from,
    evidence_of,
    word_to_value,
)
from capbias_core.metrics import bias_amplification as ba
from capbias_core.metrics import dba_g, dba_o
from capbias_core.metrics.directional import counted
from capbias_core.metrics.evidence import Cooccurrence, CooccurrenceCounts
from capbias_core.prepare.tasks import content_words, encode, function_words, named_objects, object_names, pair_counts
from capbias_core.runs.plan import Request, plan
from capbias_core.runs.run import run_one
from capbias_core.workspace.labels import suggested_details
from capbias_core.workspace.store import Workspace

GENDER = get_attribute("gender")


def of_runs(values, tasks) -> CooccurrenceCounts:
    """The counts of captions given as (n, K) and (n, L) booleans, as runs count them."""
    values, tasks = (csr_array(np.asarray(side, dtype=np.int32)) for side in (values, tasks))
    counts = pair_counts(np.arange(values.shape[0]), values.shape[0], values, tasks)
    return CooccurrenceCounts.of(counts.sum(axis=0), values.shape[1], tasks.shape[1])


def compared(metric, human: tuple, model: tuple) -> float:
    """The value of two sides (values, tasks) by the form that runs use, where the human side itself decides."""
    sides = of_runs(*human), of_runs(*model)
    return float(metric(*sides, sides))


def pairs(values, tasks) -> np.ndarray:
    """(K, L) captions by value and word."""
    return np.asarray(values).T @ np.asarray(tasks)


# against the package bias-amplification


@pytest.mark.parametrize("seed", range(200))
def test_dba_equals_the_package_on_one_hot_arrays(seed):
    """One value and one task a row, as its conditionals need; every value and task occurs on both sides."""
    torch = pytest.importorskip("torch")
    package = pytest.importorskip("bias_amplification.metrics.CoOccurMetrics").DBA()
    rng = np.random.default_rng(seed)
    n, k, l = rng.integers(40, 400), rng.integers(2, 5), rng.integers(2, 9)  # noqa: E741 (the formula's letter)

    def one_hot(width):
        return np.eye(width)[np.concatenate([np.arange(width), rng.integers(0, width, n - width)])]

    value, task, task_m, value_m = one_hot(k), one_hot(l), one_hot(l), one_hot(k)
    a, t, t_m, a_m = (torch.tensor(side, dtype=torch.float64) for side in (value, task, task_m, value_m))
    expected = float(package.computeBiasAmp(a, t, t_m)[0])
    assert dba_o(value, task, value, task_m) == pytest.approx(expected, abs=1e-6)
    expected = float(package.computeBiasAmp(t, a, a_m)[0])
    assert dba_g(value, task, value_m, task) == pytest.approx(expected, abs=1e-6)


# worked out by hand

# Eight captions; values Female, Male; words cake, tie. Humans: Female with cake 3, with tie 1; Male with cake 1, with
# tie 2; one Male caption has both words. b(F|cake) = 3/4, b(M|tie) = 2/3; the others are below 1/2.
HUMAN_VALUES = [[1, 0]] * 4 + [[0, 1]] * 4
HUMAN_WORDS = [[1, 0], [1, 0], [1, 0], [0, 1], [1, 1], [0, 1], [0, 0], [0, 0]]
# The model: Female with cake 4; Male with tie 3 and with cake 1. b(F|cake) = 4/5, b(M|tie) = 1.
MODEL_WORDS = [[1, 0], [1, 0], [1, 0], [1, 0], [1, 1], [0, 1], [0, 1], [0, 0]]


def test_ba_by_hand():
    """1/2 * ((4/5 - 3/4) + (1 - 2/3)) = 1/2 * (1/20 + 1/3) = 23/120."""
    assert ba(pairs(HUMAN_VALUES, HUMAN_WORDS), pairs(HUMAN_VALUES, MODEL_WORDS)) == pytest.approx(23 / 120)


def test_ba_does_not_see_a_word_without_the_model():
    """The model never writes tie: only cake counts, over both words."""
    words = np.array(MODEL_WORDS) * [1, 0]
    assert ba(pairs(HUMAN_VALUES, HUMAN_WORDS), pairs(HUMAN_VALUES, words)) == pytest.approx((4 / 5 - 3 / 4) / 2)


def test_ba_of_a_word_that_no_side_prefers():
    """b = 1/2 is not above 1/|A|: whatever the model does, it adds nothing."""
    assert ba([[1], [1]], [[2], [0]]) == 0


def test_multi_hot_dba_o_by_hand():
    """p(cake|F) 3/4, p(tie|F) 1/4, p(cake|M) 1/4, p(tie|M) 2/4; of the model 4/4, 0, 1/4, 3/4.

    y: p(F, cake) = 3/8 > 1/2 * 4/8; p(F, tie) = 1/8 < 1/2 * 3/8; p(M, cake) = 1/8 < 2/8; p(M, tie) = 2/8 > 3/16.
    DBA = 1/4 * ((1 - 3/4) - (0 - 1/4) - (1/4 - 1/4) + (3/4 - 2/4)) = 3/16.
    """
    assert dba_o(HUMAN_VALUES, HUMAN_WORDS, HUMAN_VALUES, MODEL_WORDS) == pytest.approx(3 / 16)


def test_multi_hot_dba_g_by_hand():
    """p(F|cake) 3/4, p(M|cake) 1/4, p(F|tie) 1/3, p(M|tie) 2/3; of the model 4/5, 1/5, 0, 1.

    DBA = 1/4 * ((4/5 - 3/4) - (0 - 1/3) - (1/5 - 1/4) + (1 - 2/3)) = 1/4 * 23/30 = 23/120.
    """
    assert dba_g(HUMAN_VALUES, HUMAN_WORDS, HUMAN_VALUES, MODEL_WORDS) == pytest.approx(23 / 120)


def test_independent_pairs_take_the_other_sign():
    """p(a, l) = p(a) p(l) exactly: y is 0, so a rise lowers DBA."""
    values = [[1, 0], [1, 0], [0, 1], [0, 1]]
    assert dba_o(values, [[1], [0], [1], [0]], values, [[1], [1], [1], [0]]) == pytest.approx(-0.25)


def test_runs_compare_as_the_functions_of_arrays_do():
    sides = (HUMAN_VALUES, HUMAN_WORDS), (HUMAN_VALUES, MODEL_WORDS)
    assert compared(METRICS["BA"].compare, *sides) == ba(*(pairs(*side) for side in sides))
    assert compared(METRICS["DBA_G"].compare, *sides) == dba_g(*sides[0], *sides[1])
    assert compared(METRICS["DBA_O"].compare, *sides) == dba_o(*sides[0], *sides[1])
    own, theirs = counted(*sides[0], *sides[1])[1], of_runs(*sides[1])
    assert (own.n, own.value.tolist(), own.task.tolist()) == (theirs.n, theirs.value.tolist(), theirs.task.tolist())
    assert own.pair.tolist() == theirs.pair.tolist()


# task words


def names_of(caption: str) -> set[str]:
    table = object_names()
    found = named_objects(encode([caption]), table).toarray()[0]
    return {name for name, here in zip(table, found, strict=True) if here}


@pytest.mark.parametrize(
    ("caption", "named"),
    [
        ("a woman with two Cell Phones", {"cell phone"}),
        ("a man eats a hot dog", {"hot dog"}),
        ("a dog beside hot dogs", {"dog", "hot dog"}),
        ("a teddy bear on a sofa", {"teddy bear", "couch"}),
        ("buses, benches and puppies", {"bus", "bench", "dog"}),
        ("people with knives and a person", {"knife"}),
        ("a cellar", set()),
        ("", set()),
    ],
)
def test_objects_that_a_caption_names(caption, named):
    assert names_of(caption) == named


def test_a_phrase_ends_with_its_caption():
    table = object_names()
    found = named_objects(encode(["it is hot", "dog days"]), table).toarray()
    assert found[0].sum() == 0 and found[1].sum() == 1


def test_function_words_are_those_of_the_closed_classes():
    words = ["to", "a", "with", "is", "her", "and", "two", "held", "fire", "top", "giraffe", "quickly", "<unk>", "'s"]
    assert function_words(words) == {"to", "a", "with", "is", "her", "and", "two"}


def test_content_words_are_the_common_ones_of_the_right_kind():
    encoded = encode(["a red kitchen is in the house"] * 3 + ["a man slowly cooks with the cake"] * 2)
    words = content_words(encoded, {"man"})
    assert set(words) == {"red", "kitchen", "house", "slowly", "cooks", "cake"}
    assert set(words[:3]) == {"red", "kitchen", "house"}


def test_counts_of_an_image_are_over_its_captions():
    values, tasks = csr_array([[1, 0], [0, 1], [1, 0]]), csr_array([[1, 0], [1, 1], [0, 0]])
    counts = pair_counts(np.array([1, 1, 0]), 2, values, tasks).toarray()
    assert counts.tolist() == [[1, 1, 0, 0, 0, 0, 0, 0, 0], [2, 1, 1, 2, 1, 1, 0, 1, 1]]


# from captions to numbers


def captions(texts: dict[str, list[str]]) -> pd.DataFrame:
    rows = [(image, index, text) for image, own in texts.items() for index, text in enumerate(own)]
    return pd.DataFrame(rows, columns=["image_id", "caption_index", "caption"])


def sides(n: int = 40):
    """Women with cakes and men with ties, more so in the model's captions."""
    labels = pd.Series({str(i): "Female" if i % 2 else "Male" for i in range(n)})

    def text(i, amount):
        word = ("cake" if i % 2 else "tie") if (i // 2) % 4 < amount else ("tie" if i % 2 else "cake")
        return f"a {'woman' if i % 2 else 'man'} with a {word}"

    human = captions({str(i): [text(i, 3), text(i, 2)] for i in range(n)})
    return human, captions({str(i): [text(i, 4)] for i in range(n)}), labels


def test_evidence_from_captions():
    human, model, labels = sides()
    objects = pd.Series({image: "person|cake" if label == "Female" else "tie" for image, label in labels.items()})
    found, notes = evidence_of(human, model, labels, GENDER, objects)
    assert list(found) == ["BA", "DBA_G", "DBA_O"] and len(notes) == 3
    assert set(found["BA"].tasks) == {"cake", "tie"} and found["DBA_G"].tasks == ("cake", "tie")
    # Humans: 3/4 and 1/2 of the captions of each value have its word, so b = 5/8; the model's b = 1.
    assert comparison(word_to_value, found["BA"], 100).value == pytest.approx(37.5)
    low, high = comparison(word_to_value, found["BA"], 100).interval()
    assert low <= 37.5 <= high


def test_captions_that_name_no_or_both_values_do_not_count():
    human, model, labels = sides()
    more = captions({"0": ["a person with a cake"] * 9 + ["a man and a woman with a cake"] * 9})
    found, _ = evidence_of(pd.concat([human, more], ignore_index=True), model, labels, GENDER, None)
    assert found["BA"].human[:, 0].sum() == len(human) and "DBA_G" not in found


def test_an_attribute_without_words_has_dba_o_only():
    human, model, labels = sides()
    found, _ = evidence_of(human, model, labels, plain_attribute("group", ("Female", "Male")), None)
    assert list(found) == ["DBA_O"]


def test_objects_of_other_images_leave_the_others():
    human, model, labels = sides()
    found, notes = evidence_of(human, model, labels, GENDER, pd.Series({"elsewhere": "cake"}))
    assert list(found) == ["BA", "DBA_O"]
    (note,) = [note for note in notes if note.startswith("DBA_G left out")]
    assert "on some of these images and not on others" in note


def test_captions_without_words_or_objects_are_refused():
    human, model, labels = sides()
    plain = [frame.assign(caption="...") for frame in (human, model)]
    with pytest.raises(CapbiasError, match="each value of gender"):
        evidence_of(*plain, labels, GENDER, None)


def test_a_captioner_that_names_no_value_has_dba_o_only():
    """A difference to captions none of which counts is no 0."""
    human, model, labels = sides()
    model["caption"] = model["caption"].str.replace("woman|man", "person", regex=True)
    objects = labels.map({"Female": "cake", "Male": "tie"})
    found, notes = evidence_of(human, model, labels, GENDER, objects)
    assert list(found) == ["DBA_O"]
    (left,) = [note for note in notes if "left out" in note]
    assert left.startswith("BA, DBA_G left out")


def test_a_value_without_words_does_not_keep_ba_away():
    human, model, labels = sides()
    other = replace(GENDER, values=("Female", "Male", "Other"), words={**GENDER.words, "Other": ()})
    found, _ = evidence_of(human, model, labels, other, None)
    assert set(found["BA"].tasks) == {"cake", "tie"}


@pytest.mark.long
def test_intervals_speak_for_their_values():
    """Another human caption of each image as the model: over many sets of images the intervals hold 0 about as often
    as they say, and the value stands about in their middle."""
    rng, places, held = np.random.default_rng(5), [], 0
    words = np.array(["cake", "tie", "dog", "cup", "book", "kite"])
    labels = pd.Series({str(i): "Female" if i % 2 else "Male" for i in range(300)})

    def told(i):
        lean = words[:3] if i % 2 else words[3:]
        return f"a {'woman' if i % 2 else 'man'} with a {rng.choice(lean if rng.random() < 0.3 else words)}"

    for _ in range(40):
        texts = [captions({image: [told(int(image))] for image in labels.index}) for _ in range(2)]
        found, _ = evidence_of(*texts, labels, GENDER, None)
        estimate = comparison(word_to_value, found["BA"], 100)
        low, high = estimate.interval()
        places.append((estimate.value - low) / (high - low))
        held += low <= 0 <= high
    assert np.mean(places) == pytest.approx(0.5, abs=0.06)
    assert held >= 34


def crossfit(evidence: Cooccurrence, name: str) -> Estimate:
    return cooccurrence_estimates({name: evidence})[f"{name}_crossfit"]


@pytest.mark.parametrize("name", ["BA", "DBA_O"])
def test_signs_that_no_half_doubts_give_the_papers_value(name):
    """Women with cakes and men with ties, three of four times: each half of 400 images says so."""
    human, model, labels = sides(400)
    evidence = evidence_of(human, model, labels, GENDER, None)[0][name]
    paper, own = comparison(METRICS[name].compare, evidence, 100), crossfit(evidence, name)
    assert own.value == pytest.approx(paper.value) and own.unsure == 0
    assert own.interval() == pytest.approx(paper.interval(), abs=1)


def test_a_sign_of_other_images_by_hand(monkeypatch):
    """One word and two halves of two images. The human captions of the first half are of women, those of the second of
    men, and so the word prefers nobody: BA is 0. The model's four are of women. By the other half's sign, the first
    half counts the men (0 of 4 on both sides) and the second the women (2 of 4 for the model, 0 for people): 0.5. The
    halves disagree about both values, whose share changes by a half: half of 0.5 + 0.5 may be wrong.
    """
    monkeypatch.setattr(cross_fitting, "HALVINGS", 1)
    first = np.random.default_rng(BOOTSTRAP_SEED).permutation(4) < 2

    def counted(women) -> csr_array:  # n, F, M, w, F with w, M with w
        women = np.asarray(women, dtype=int)
        return csr_array(np.column_stack([np.ones(4), women, 1 - women, np.ones(4), women, 1 - women]))

    own = Cooccurrence(tuple("abcd"), 2, ("w",), counted(first), counted(np.ones(4)))
    assert comparison(word_to_value, own, 1).value == 0
    found = crossfit(own, "BA")
    assert found.value == pytest.approx(100 * 0.5) and found.unsure == pytest.approx(100 * (0.5 + 0.5) / 2)


@pytest.mark.long
def test_cross_fitted_intervals_contain_the_large_sample_value():
    """36 words that hardly go with a value, and four that go with women in 80%, of the captioner's in 90%. BA picks its
    signs from the captions that it measures, which pulls it below the truth of 1; cross-fitted it stays there."""
    rng, n, words = np.random.default_rng(7), 2000, 40
    women = np.concatenate([np.linspace(0.44, 0.56, words - 4), np.full(4, 0.8)])
    captioner = np.where(women > 0.7, 0.9, women)
    paper, own = [], []
    for _ in range(60):
        word = rng.integers(0, words, n)

        def counted(share, word=word) -> csr_array:
            named, having = rng.random(n) < share[word], np.eye(words)[word]
            pairs = [having * side[:, None] for side in (named, ~named)]
            return csr_array(np.hstack([np.ones((n, 1)), named[:, None], ~named[:, None], having, *pairs]))

        evidence = Cooccurrence(
            tuple(map(str, range(n))), 2, tuple(map(str, range(words))), counted(women), counted(captioner)
        )
        for found, held in ((comparison(word_to_value, evidence, 100), paper), (crossfit(evidence, "BA"), own)):
            low, high = found.interval()
            held.append(low <= 1 <= high)
    assert np.mean(own) >= 0.9 and np.mean(paper) < 0.6


def test_runs_give_the_papers_value_no_interval(tmp_path):
    human, model, labels = sides(60)
    table = pd.DataFrame({"image_id": labels.index, "gender": labels.to_numpy()})
    workspace = Workspace(tmp_path)
    workspace.keep(
        "attributes", "labels", table, "c", "t", {"attributes": {"gender": suggested_details("gender", table)}}
    )
    workspace.keep("references", "human", human, "c", "t")
    workspace.keep("captions", "m", model, "c", "t")
    (spec,) = plan(workspace, Request("c", ("m",), "labels", "gender", ("ba", "dba"), "human"))
    rows = {row.metric: row for row in run_one(workspace, spec, lambda *_: None).results}
    assert set(rows) == {"BA", "BA_crossfit", "DBA_O", "DBA_O_crossfit"}
    for name in ("BA", "DBA_O"):
        assert rows[name].ci_low is None and rows[name].interval == "" and f"{name}_crossfit" in rows[name].method
        own = rows[f"{name}_crossfit"]
        assert own.ci_low < own.value < own.ci_high and own.interval == "images"


def test_evidence_is_kept_whole_and_captioners_are_ranked():
    human, model, labels = sides()
    strong = evidence_of(human, model, labels, GENDER, None)[0]["BA"]
    same = evidence_of(human, human[human["caption_index"] == 1], labels, GENDER, None)[0]["BA"]
    again = cooccurrence_from(cooccurrence_bytes(strong))
    assert isinstance(again, Cooccurrence) and again.images == strong.images and again.tasks == strong.tasks
    assert (again.human != strong.human).nnz == 0 and (again.model != strong.model).nnz == 0
    found = rank({"strong": comparison(word_to_value, again, 100), "same": comparison(word_to_value, same, 100)})
    assert found.letters == {"strong": "b", "same": "a"}
