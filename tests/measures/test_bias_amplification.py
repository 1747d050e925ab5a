"""BA and DBA: against an independent package, against cases worked out by hand, and from captions to the run."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import capbias_core as capbias
from capbias_core.aggregate import Counts, Estimate, estimates_of
from capbias_core.attributes import get_attribute, plain_attribute
from capbias_core.errors import CapbiasError
from capbias_core.measures import bias_amplification
from capbias_core.measures.bias_amplification import METRICS, counts_of_sides, of_tables
from capbias_core.measures.caption_side import CaptionSide, one_hot
from capbias_core.metrics import bias_amplification as ba
from capbias_core.metrics import dba_g, dba_o
from capbias_core.prepare.split import FOLDS, child_seed, random_order
from capbias_core.prepare.tasks import pair_counts

GENDER = get_attribute("gender")


def pairs(values, tasks) -> np.ndarray:
    """(K, L) captions by value and word."""
    return np.asarray(values).T @ np.asarray(tasks)


@pytest.mark.torch
@pytest.mark.parametrize("seed", range(8))
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


PUBLIC = {"DBA_G": dba_g, "DBA_O": dba_o}

# Eight captions; values Female, Male; words cake, tie. Humans: Female with cake 3, with tie 1; Male with cake 1, with
# tie 2; one Male caption has both words. b(F|cake) = 3/4, b(M|tie) = 2/3; the others are below 1/2.
HUMAN_VALUES = [[1, 0]] * 4 + [[0, 1]] * 4
HUMAN_WORDS = [[1, 0], [1, 0], [1, 0], [0, 1], [1, 1], [0, 1], [0, 0], [0, 0]]
# The model: Female with cake 4; Male with tie 3 and with cake 1. b(F|cake) = 4/5, b(M|tie) = 1.
MODEL_WORDS = [[1, 0], [1, 0], [1, 0], [1, 0], [1, 1], [0, 1], [0, 1], [0, 0]]


def test_values_by_hand():
    """From arrays of captions, and summed over images as runs count them.

    BA: 1/2 * ((4/5 - 3/4) + (1 - 2/3)) = 1/2 * (1/20 + 1/3) = 23/120.
    DBA_O: p(cake|F) 3/4, p(tie|F) 1/4, p(cake|M) 1/4, p(tie|M) 2/4; of the model 4/4, 0, 1/4, 3/4.
    y: p(F, cake) = 3/8 > 1/2 * 4/8; p(F, tie) = 1/8 < 1/2 * 3/8; p(M, cake) = 1/8 < 2/8; p(M, tie) = 2/8 > 3/16.
    1/4 * ((1 - 3/4) - (0 - 1/4) - (1/4 - 1/4) + (3/4 - 2/4)) = 3/16.
    DBA_G: p(F|cake) 3/4, p(M|cake) 1/4, p(F|tie) 1/3, p(M|tie) 2/3; of the model 4/5, 1/5, 0, 1.
    1/4 * ((4/5 - 3/4) - (0 - 1/3) - (1/5 - 1/4) + (1 - 2/3)) = 1/4 * 23/30 = 23/120.
    """
    sides = (HUMAN_VALUES, HUMAN_WORDS), (HUMAN_VALUES, MODEL_WORDS)
    summed = [
        pair_counts(np.arange(8) // 2, 4, *(csr_array(np.array(own, dtype=np.int32)) for own in side)) for side in sides
    ]
    for name, expected in (("BA", 23 / 120), ("DBA_O", 3 / 16), ("DBA_G", 23 / 120)):
        public = ba(*(pairs(*side) for side in sides)) if name == "BA" else PUBLIC[name](*sides[0], *sides[1])
        assert public == pytest.approx(expected)
        columns = {f"{name} {side}": own for side, own in zip(("human", "model"), summed, strict=True)}
        counts = Counts.by_image("abcd", np.zeros(4, int), columns)
        (found,) = estimates_of([METRICS[name]], counts, GENDER.values).values()
        assert found.value == pytest.approx(100 * expected) and found.interval() == (None, None)
    # p(a, l) = p(a) p(l) exactly: y is 0, so a rise lowers DBA.
    values = [[1, 0], [1, 0], [0, 1], [0, 1]]
    assert dba_o(values, [[1], [0], [1], [0]], values, [[1], [1], [1], [0]]) == pytest.approx(-0.25)
    # Counts of an image are over its captions.
    values, tasks = csr_array([[1, 0], [0, 1], [1, 0]]), csr_array([[1, 0], [1, 1], [0, 0]])
    counts = pair_counts(np.array([1, 1, 0]), 2, values, tasks).toarray()
    assert counts.tolist() == [[1, 1, 0, 0, 0, 0, 0, 0, 0], [2, 1, 1, 2, 1, 1, 0, 1, 1]]


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


def counted(human, model, labels, attribute=GENDER, objects=None) -> Counts:
    images = sorted(set(human["image_id"]) & set(model["image_id"]))
    return counts_of_sides([CaptionSide(frame, images, attribute, labels) for frame in (human, model)], objects)[0]


def names_of_counts(counts: Counts) -> list[str]:
    return [name.removesuffix(" human") for name in counts.columns if name.endswith(" human")]


def values_of(counts: Counts) -> dict[str, Estimate]:
    return {name: own for (name, _), own in estimates_of(METRICS.values(), counts, GENDER.values).items()}


def test_counts_from_captions():
    human, model, labels = sides()
    objects = pd.Series({image: "person|cake" if label == "Female" else "tie" for image, label in labels.items()})
    found = counted(human, model, labels, GENDER, objects)
    assert names_of_counts(found) == ["BA", "DBA_G", "DBA_O"]
    # All, two values, two words, four pairs. Humans: 3/4 and 1/2 of the captions of each value have its word, so b is
    # 5/8; the model's b is 1.
    assert found.widths["BA human"] == found.widths["DBA_G model"] == 9
    estimate = replace(values_of(found)["BA"], no_interval="")
    assert estimate.value == pytest.approx(37.5)
    low, high = estimate.interval()
    assert low <= 37.5 <= high
    # Captions that name no or both values do not count.
    more = captions({"0": ["a person with a cake"] * 9 + ["a man and a woman with a cake"] * 9})
    found = counted(pd.concat([human, more], ignore_index=True), model, labels)
    assert found.columns["BA human"][:, 0].sum() == len(human) and names_of_counts(found) == ["BA", "DBA_O"]


def test_an_attribute_without_words_and_a_captioner_that_names_nobody_have_dba_o_only():
    """A difference to captions none of which counts is no 0."""
    human, model, labels = sides()
    assert names_of_counts(counted(human, model, labels, plain_attribute("group", ("Female", "Male")))) == ["DBA_O"]
    model["caption"] = model["caption"].str.replace("woman|man", "person", regex=True)
    objects = labels.map({"Female": "cake", "Male": "tie"})
    assert names_of_counts(counted(human, model, labels, GENDER, objects)) == ["DBA_O"]
    assert names_of_counts(counted(human, human, labels, GENDER, pd.Series({"elsewhere": "cake"}))) == ["BA", "DBA_O"]
    with pytest.raises(CapbiasError, match="each value of gender"):
        counted(human.assign(caption="..."), model.assign(caption="..."), labels)
    # A value without words does not keep BA away.
    human, model, labels = sides()
    other = replace(GENDER, values=("Female", "Male", "Other"), words={**GENDER.words, "Other": ()})
    assert counted(human, model, labels, other).widths["BA human"] == 1 + 3 + 2 + 6


def test_a_sign_of_other_images_by_hand(monkeypatch):
    """One word and two halves of two images. The human captions of the first half are of women, those of the second of
    men, and so the word prefers nobody: BA is 0. The model's four are of women. By the other half's sign, the first
    half counts the men (0 of 4 on both sides) and the second the women (2 of 4 for the model, 0 for people): 0.5. The
    halves disagree about both values, whose share changes by a half: half of 0.5 + 0.5 may be wrong.
    """
    monkeypatch.setattr(bias_amplification, "HALVINGS", 1)
    images = tuple("abcd")
    first = np.isin(np.arange(4), random_order(images, child_seed(0, FOLDS))[:2])

    def counted(women) -> csr_array:  # n, F, M, w, F with w, M with w
        women = np.asarray(women, dtype=int)
        return csr_array(np.column_stack([np.ones(4), women, 1 - women, np.ones(4), women, 1 - women]))

    columns, constants = of_tables("BA", images, counted(first), counted(np.ones(4)), 2)
    found = values_of(Counts.by_image("abcd", np.zeros(4, int), columns, constants=constants))["BA_crossfit"]
    assert found.value == pytest.approx(100 * 0.5) and found.unsure == pytest.approx(100 * (0.5 + 0.5) / 2)


def test_halves_follow_image_ids_and_not_their_positions():
    """Cross-fitted values of the same images in another order."""
    rng, ids = np.random.default_rng(0), np.array(list(map(str, range(60))))
    values, words = rng.integers(0, 2, (2, 60)), rng.integers(0, 2, (2, 60))
    human, model = (pair_counts(np.arange(60), 60, one_hot(v, 2), csr_array(words.T)).toarray() for v in values)
    found = []
    for order in (np.arange(60), rng.permutation(60)):
        images = tuple(ids[order])
        columns, constants = of_tables("DBA_G", images, csr_array(human[order]), csr_array(model[order]), 2)
        counts = Counts.by_image(images, np.zeros(60, int), columns, constants=constants)
        found.append((values_of(counts)["DBA_G_crossfit"].value, constants["DBA_G_crossfit unsure"]))
    assert found[0] == pytest.approx(found[1], abs=1e-12) and found[0][0] != 0


def test_runs_give_the_papers_value_no_interval():
    human, model, labels = sides(60)
    table = pd.DataFrame({"image_id": labels.index, "gender": labels.to_numpy()})
    report = capbias.score(model, table, "gender", human, ("ba", "dba"))
    rows = {row.metric: row for row in report.table.itertuples()}
    assert set(rows) == {"BA", "BA_crossfit", "DBA_O", "DBA_O_crossfit"}
    for name in ("BA", "DBA_O"):
        assert np.isnan(rows[name].ci_low) and rows[name].interval == "" and f"{name}_crossfit" in rows[name].method
        own = rows[f"{name}_crossfit"]
        assert own.ci_low < own.value < own.ci_high and own.interval == "images"
