"""Multi, DPA and leakage of labels: against an independent package, by hand, and from captions to the run."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import capbias_core as capbias
from capbias_core.errors import CapbiasError
from capbias_core.measures.bias_amplification import combinations
from capbias_core.measures.dpa import as_unlike, cross_entropy
from capbias_core.metrics import multi, predictability


def all_combinations(tasks: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Single tasks and pairs that occur in `tasks`, on both sides, by the function under test."""
    (found, same), _ = combinations([csr_array(side.astype(np.int32)) for side in (tasks, predicted)], 1)
    return found.toarray(), same.toarray()


def corrected_package():
    """The package's Multi with one fault put right: it divides p(m | a) by its own sum over the combination's single
    column, which makes every conditional 1; here it is divided by how often the value occurs."""
    package = pytest.importorskip("bias_amplification.metrics.CoOccurMetrics").MDBA

    class Corrected(package):
        def computeTgivenA(self, A, T):  # noqa: N802, N803 (the package's names)
            return (A.T @ T) / A.sum(axis=0).reshape(-1, 1)

    return Corrected(max_attr_size=2)


def changes_by_the_authors(value, human, model) -> np.ndarray:
    """(K, M) changes as the authors of Multi compute them (SonyResearch/multi_bias_amp, mba.py): pair by pair, the
    share of captions with the combination among those of the value. The package above is by others."""
    changes = np.full((value.shape[1], human.shape[1]), np.nan)
    for a in range(value.shape[1]):
        own = value[:, a] == 1
        for m in range(human.shape[1]):
            changes[a, m] = (model[own, m] == 1).sum() / own.sum() - (human[own, m] == 1).sum() / own.sum()
    return changes


@pytest.mark.torch
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("one_hot", [True, False])
def test_multi_equals_the_package(seed, one_hot):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(seed)
    n, k, l = rng.integers(40, 300), rng.integers(2, 4), rng.integers(2, 7)  # noqa: E741 (the formula's letter)

    def tasks():
        if one_hot:
            return np.eye(l)[np.concatenate([np.arange(l), rng.integers(0, l, n - l)])]
        return np.vstack([np.ones(l), rng.random((n - 1, l)) < 0.4]).astype(float)

    value = np.eye(k)[np.concatenate([np.arange(k), rng.integers(0, k, n - k)])]
    human, model = tasks(), tasks()
    mean, _ = corrected_package().computeBiasAmp(*(torch.tensor(side) for side in (value, human, model)))
    human, model = all_combinations(human, model)
    assert multi(value, human, value, model) == pytest.approx(float(mean), abs=1e-6)
    changes = changes_by_the_authors(value, human, model)
    assert multi(value, human, value, model) == pytest.approx(np.nanmean(np.abs(changes)))


def test_multi_by_hand():
    """Two women, two men; humans: cake with both women, tie with one man, cake and tie together with the other man.

    p(cake | F) = 1, p(cake | M) = 1/2, p(tie | M) = 1, p(both | M) = 1/2. The model takes the cake from that man:
    p(cake | M) and p(both | M) become 0, so A->T = (1/2 + 1/2) / (2 values * 3 combinations) = 1/6. T->A: p(F | cake)
    = 2/3 becomes 1, p(M | cake) = 1/3 becomes 0; with both objects no one is left, which adds 0: (1/3 + 1/3) / 6 = 1/9.
    """
    value = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])
    human, model = np.array([[1, 0], [1, 0], [0, 1], [1, 1]]), np.array([[1, 0], [1, 0], [0, 1], [0, 1]])
    human, model = all_combinations(human, model)
    assert multi(value, human, value, model) == pytest.approx(1 / 6)
    assert multi(value, human, value, model, direction="T->A") == pytest.approx(1 / 9)
    with pytest.raises(CapbiasError, match="direction 'TA'"):
        multi(value, human, value, model, direction="TA")


@pytest.mark.torch
def test_quality_and_amplification_equal_the_package_of_the_same_attackers():
    """100 pairs of guesses: the attackers' part is the same, what is made of it must be too (single precision)."""
    torch = pytest.importorskip("torch")
    models = pytest.importorskip("bias_amplification.attacker_models.ANN")
    metrics = pytest.importorskip("bias_amplification.metrics.PredMetrics")
    attacker = models.simpleDenseModel(1, 1, 1, numFirst=1, activations=["sigmoid"])
    settings = {"learning_rate": 0.05, "loss_function": "bce", "epochs": 1, "batch_size": 256}
    package = metrics.DPA(attacker, attacker, settings, "bce", False, True)
    rng = np.random.default_rng(0)
    for _ in range(100):
        guessed = rng.uniform(0.05, 0.95, (2, 60, 3)).astype(np.float32)
        truth = (rng.random((2, 60, 3)) < 0.5).astype(np.float32)
        ours = [1 / cross_entropy(*pair).mean() for pair in zip(guessed, truth, strict=True)]
        theirs = [
            package.calcLambda(lambda x: x, *(torch.tensor(side) for side in pair))
            for pair in zip(guessed, truth, strict=True)
        ]
        assert ours == pytest.approx([float(value) for value in theirs], rel=1e-5)
        expected = float(package.compute_leakage(theirs[0], theirs[1], True))
        assert predictability(ours[1], ours[0]) == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_human_labels_are_made_as_unlike_and_as_common():
    """Of 6 and 4 labels the model misses 2 and adds 1: so does the changed human side, at places drawn at random."""
    human = np.array([[1.0]] * 6 + [[0.0]] * 4)
    model = np.array([[1.0]] * 4 + [[0.0]] * 2 + [[1.0]] + [[0.0]] * 3)
    drawn = [as_unlike(human, model, np.random.default_rng(seed)) for seed in range(50)]
    assert all(own[:6].sum() == 4 and own[6:].sum() == 1 for own in drawn)
    assert len({own.tobytes() for own in drawn}) > 20
    assert human.sum() == 6, "the labels given are left alone"


def generated(n: int = 400) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Labels with objects, human and model captions: cake with women in 70% of the human captions, in 95% of the
    model's; the named value is that of the label for people, and that of the object for the model."""
    rng = np.random.default_rng(4)
    women = rng.random(n) < 0.5
    there = np.where(rng.random(n) < 0.7, women, ~women)
    named = np.where(rng.random(n) < 0.95, women, ~women)
    ids, things = [str(image) for image in range(n)], np.array(["tie", "cake"])
    table = pd.DataFrame({"image_id": ids, "gender": np.where(women, "Female", "Male"), "objects": things[there * 1]})

    def captions(value, thing):
        who = np.array(["man", "woman"])[value * 1]
        texts = [f"a {name} with a {what}" for name, what in zip(who, things[thing * 1], strict=True)]
        return pd.DataFrame({"image_id": ids, "caption": texts})

    return table, captions(women, there), captions(there, named)


def measured(table, human, model, seeds: int, **more) -> pd.DataFrame:
    """DPA and Multi, by metric and direction."""
    labels, objects = table[["image_id", "gender"]], table[["image_id", "objects"]]
    given = {"objects": objects, "metrics": ("dpa", "Multi"), "seeds": seeds} | more
    return capbias.score({"m": model}, labels, "gender", human, **given).table.set_index(["metric", "direction"])


@pytest.mark.long
def test_a_model_that_ties_objects_and_values_together():
    """The model names the value by the object, and the object by the label in 95 instead of 70%: both directions."""
    rows = measured(*generated(), seeds=10)
    value = rows["value"]
    for direction in ("A->T", "T->A"):
        row = rows.loc["DPA", direction]
        assert 0 < row["ci_low"] < row["value"] < row["ci_high"] <= 100
        assert row["interval"] == "refits" and row["seeds"] == 10 and row["spread"] > 0
        model, human = value["DPA_M", direction], value["DPA_H", direction]
        assert row["value"] == pytest.approx(100 * (model - human) / (model + human), abs=3)
        row = rows.loc["Multi", direction]
        assert row["ci_low"] < row["value"] < row["ci_high"]
    assert value["DPA_M", "T->A"] > 20, "the object tells the value that the model names without fail"
    # A->T: p(cake | F) is 0.7 for people, 0.95 for the model, as are the others: a change of about 0.25 everywhere.
    assert value["Multi", "A->T"] == pytest.approx(25, abs=4)
    assert value["Multi", "T->A"] == pytest.approx(30, abs=4), "p(F | cake) is 0.7 and becomes 1"


@pytest.mark.long
def test_repeated_rows_change_no_dpa():
    """Each caption of the model once and twice, and the human captions, two of each image, in another order."""
    table, human, model = generated()
    human = pd.concat([human.assign(caption_index=0), human.assign(caption_index=1, caption=model["caption"])])
    turned = human.assign(caption_index=1 - human["caption_index"]).sort_values("caption_index")
    twice = pd.concat([model.assign(caption_index=index) for index in (0, 1)])
    first = measured(table, human, model, seeds=2)
    second = measured(table, turned, twice, seeds=2, sets="samples")
    assert first.loc["DPA"]["value"].to_dict() == second.loc["DPA"]["value"].to_dict()
