"""Caption quality: by hand, against COCO's own evaluation code, by group, and on machines with and without Java."""

import numpy as np
import pandas as pd
import pytest

import capbias_core as capbias
from capbias_core.aggregate import Counts, Estimate, estimates_of, quotient
from capbias_core.aggregate.resampling import BOOTSTRAP_SEED, resampled_sums
from capbias_core.attributes import get_attribute
from capbias_core.errors import CapbiasError
from capbias_core.measures.caption_quality import PERFORMANCE, SCORERS, scored
from capbias_core.metrics import bleu4, cider, meteor, performance_gap, rouge_l
from capbias_core.metrics.caption_quality import bleu_counts, bleu_of, cider_scores, meteor_of, rouge_scores
from capbias_core.metrics.share import gap
from capbias_core.prepare import java as java_room
from capbias_core.prepare.java import PLAIN, PTB, default_tokenizer, has_java, quality_tokens
from capbias_core.types import silent

GENDER = get_attribute("gender")
QUALITY = ["bleu4", "cider", "rouge_l"]  # without Java
needs_java = pytest.mark.skipif(not has_java(), reason="METEOR and the PTB tokenizer need Java")

# Label, human captions, caption of the model.
ROWS = [
    ("Female", ["a woman rides a horse on the beach", "a lady riding a brown horse"], "a woman riding a horse"),
    ("Female", ["a woman holds an umbrella in the rain", "woman under a red umbrella"], "a woman with an umbrella"),
    ("Female", ["a girl eats a slice of pizza", "the girl is eating pizza at a table"], "a man eating pizza"),
    ("Male", ["a man plays tennis on a court", "a tennis player hits the ball"], "a man plays tennis on a court"),
    ("Male", ["a man in a suit and tie", "a man wearing a black suit"], "a man in a suit and a tie"),
    ("Male", ["two men stand near a truck", "men beside a large truck"], "a dog"),
    ("Male", ["a boy throws a baseball", "the boy is pitching a ball"], "a baseball player throws a ball"),
]
IMAGES = [str(number) for number in range(1, 8)]
LABELS, REFERENCES, CANDIDATES = (list(column) for column in zip(*ROWS, strict=True))
# METEOR of the set and of each caption, by pycocoevalcap.
COCOS_METEOR = (
    0.32791107511141143,
    [0.363166923119682, 0.25560918369087654, 0.20709581270044664, 1.0]
    + [0.5268980818175566, 0.03433476394849786, 0.3029152791078141],
)


def test_bleu_by_hand():
    """Candidate 1 has 5 words, 2 has 2.

    1: a dog runs in rain / a dog runs in the rain: 5 of 5 words, 3 of 4 pairs (not `in rain`), 2 of 3, 1 of 2.
    2: a cat / a cat / the cat sleeps: 2 of 2 words, 1 of 1 pairs.
    Sums: 7/7, 4/5, 2/3, 1/2; lengths 7 against 6 + 2 = 8.
    """
    texts = [["a dog runs in the rain"], ["a cat", "the cat sleeps"]], ["a dog runs in rain", "a cat"]
    counts = bleu_counts(*texts)
    assert counts.tolist() == [[5, 3, 2, 1, 5, 4, 3, 2, 6], [2, 1, 0, 0, 2, 1, 0, 0, 2]]
    expected = np.exp(1 - 8 / 7) * (1 * 4 / 5 * 2 / 3 * 1 / 2) ** 0.25
    assert float(bleu_of(counts.sum(axis=0))) == pytest.approx(expected, abs=1e-8)
    assert bleu4(*texts) == pytest.approx(expected, abs=1e-8)
    assert bleu_counts([["the cat", "the the dog"]], ["the the the"])[0, 0] == 2, "as often as one reference has it"
    assert np.isnan(bleu_of(np.zeros(9))) and np.isnan(meteor_of(np.zeros(23)))


def test_rouge_by_hand():
    """a man on a horse / a man rides a horse: `a man a horse`, 4 of 5 and 4 of 5: P = R = F = 0.8.

    the dog / a big dog barks: 1 of 2, 1 of 4: (1 + 1.44) * 0.5 * 0.25 / (0.25 + 1.44 * 0.5) = 0.305 / 0.97.
    """
    texts = [["a man rides a horse"], ["a big dog barks"], ["x"]], ["a man on a horse", "the dog", "y"]
    assert rouge_scores(*texts) == pytest.approx([0.8, 0.305 / 0.97, 0.0])
    assert rouge_l(*texts) == pytest.approx((0.8 + 0.305 / 0.97) / 3)


def test_cider_by_hand():
    """Two images, so a word of one of them weighs log 2.

    `a b` against `a b`: words 1, pairs 1, no longer runs: 10 * (1 + 1) / 4 = 5. `c e` against `c d`: words 1/2, no
    pair: 10 * 0.5 / 4 = 1.25. A word that both images have weighs nothing. `a b a b` against `a b`: words at cosine 1,
    clipped to half; pairs `a b` twice, `b a` once: 1 / sqrt(5); 4 words against 2: exp(-(2^2) / 72).
    """
    assert cider_scores([["a b"], ["c d"]], ["a b", "c e"]) == pytest.approx([5.0, 1.25])
    assert cider([["a b"], ["c d"]], ["a b", "c e"]) == pytest.approx(6.25 / 2)
    assert cider_scores([["a b"], ["a d"]], ["a", "a d"])[0] == 0
    longer = 10 * (0.5 + 1 / np.sqrt(5)) / 4 * np.exp(-4 / 72)
    assert cider_scores([["a b"], ["c d"]], ["a b a b", "x"])[0] == pytest.approx(longer)


def test_each_metric_equals_cocos():
    """And the bootstrap's sums of BLEU are those of the drawn captions."""
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.rouge.rouge import Rouge

    def coco(scorer, rows=range(7)):
        truth, given = {}, {}
        for number, row in enumerate(rows):
            truth[number], given[number] = REFERENCES[row], [CANDIDATES[row]]
        return scorer.compute_score(truth, given)

    assert bleu4(REFERENCES, CANDIDATES) == pytest.approx(coco(Bleu(4))[0][3], rel=1e-9)
    for function, scores, scorer in ((cider, cider_scores, Cider()), (rouge_l, rouge_scores, Rouge())):
        of_set, each = coco(scorer)
        assert scores(REFERENCES, CANDIDATES) == pytest.approx(each) and of_set == pytest.approx(np.mean(each))
        assert function(REFERENCES, CANDIDATES) == pytest.approx(of_set)
    drawn = np.array([3, 3, 0, 6, 4, 4, 1])
    resampled = bleu_of(np.bincount(drawn, minlength=7) @ bleu_counts(REFERENCES, CANDIDATES))
    assert float(resampled) == pytest.approx(coco(Bleu(4), drawn)[0][3], rel=1e-9)


@pytest.mark.long
@needs_java
def test_ptb_tokens_equal_cocos():
    texts = ["A woman's dog, running!", "Café (really) don't cannot...", "two\nlines\u2028here", ""]
    expected = ["a woman 's dog running", "café -lrb- really -rrb- do n't can not", "two lines here", ""]
    assert quality_tokens([*texts, "O'Hare at 5 o'clock"], PTB) == [*expected, "o'hare at 5 o'clock"]


def test_the_gap_by_hand_and_its_interval_of_resampled_images():
    """Means of the groups 0.2 and 0.5; of three groups 0.2, 0.5 and 0.1."""

    def estimate_of(scores) -> Estimate:
        sums = np.column_stack([scores, np.ones(len(scores))])
        return Estimate(tuple(map(str, range(len(scores)))), sums, np.zeros(0), 100, quotient)

    assert performance_gap([0.2, 0.5, 0.1]) == pytest.approx(0.4)
    whole, three = estimate_of([0.1, 0.3, 0.4, 0.6, 0.1]), np.array([0, 0, 1, 1, 2])
    assert [whole.of_images(np.flatnonzero(three == group)).value for group in range(3)] == pytest.approx([20, 50, 10])
    assert whole.across(three, 3, gap).value == pytest.approx(40)
    assert whole.across(three % 2, 2, gap).value == pytest.approx(100 * (0.5 - 0.5 / 3))

    rng = np.random.default_rng(0)
    scores, group = rng.random(300), rng.integers(0, 2, 300)
    found = estimate_of(scores).across(group, 2, gap)
    low, high = found.interval()
    # Each image as its own column: the draws' weights, with which the means are taken anew.
    weights = resampled_sums(np.eye(300), BOOTSTRAP_SEED)
    means = [(weights[:, group == g] @ scores[group == g]) / weights[:, group == g].sum(axis=1) for g in (0, 1)]
    error = 100 * np.sqrt(sum(scores[group == g].var() / (group == g).sum() for g in (0, 1)))
    assert low < found.value < high
    assert (low, high) == pytest.approx(np.percentile(100 * (means[1] - means[0]), [2.5, 97.5]), abs=1e-9)
    assert (high - low) == pytest.approx(2 * 1.96 * error, rel=0.1), "as wide as the textbook's"


def run_all(tokenizer: str) -> tuple[pd.DataFrame, list[str]]:
    """The results of all runs as one table, and the notes."""
    labels = pd.DataFrame({"image_id": [*IMAGES, "8"], "gender": [*LABELS, "Male"]})
    captions = pd.DataFrame({"image_id": [*IMAGES, "8"], "caption": [*CANDIDATES, "no reference for this one"]})
    human = pd.DataFrame({"image_id": IMAGES, "caption": REFERENCES}).explode("caption", ignore_index=True)
    metrics = ("performance_gap", "vocabulary")
    report = capbias.score(captions, labels, "gender", human, metrics, tokenizer=tokenizer)
    return report.table, [*report.notes, *report.left_out.values()]


@pytest.mark.long
@needs_java
def test_meteor_of_the_set_and_of_each_caption_equals_cocos():
    of_set, each = COCOS_METEOR
    table = SCORERS["meteor"][0](REFERENCES, CANDIDATES, silent)
    assert meteor_of(table) == pytest.approx(each, abs=1e-12)
    assert float(meteor_of(table.sum(axis=0))) == pytest.approx(of_set, abs=1e-12)


@pytest.mark.long
def test_without_java_a_run_gives_the_rest_with_groups_and_gaps(monkeypatch):
    monkeypatch.setattr(java_room.shutil, "which", lambda name: None)
    monkeypatch.setattr(java_room.subprocess, "Popen", lambda *given, **more: pytest.fail("something was started"))
    assert not has_java() and default_tokenizer() == PLAIN
    rows, notes = run_all(PLAIN)
    assert java_room.NO_JAVA in notes
    whole = rows[(rows["coverage"] == "with_references") & (rows["group"] == "")].set_index("metric")
    assert set(whole.index) == {own for name in QUALITY for own in (name, f"{name}_gap")}
    assert whole.loc["cider", "value"] == pytest.approx(100 * cider(REFERENCES, CANDIDATES))
    women, men = (rows[rows["group"] == value].set_index("metric") for value in GENDER.values)
    assert (women.loc["bleu4", "n"], men.loc["bleu4", "n"]) == (3, 4)
    for name in QUALITY:
        assert whole.loc[f"{name}_gap", "value"] == pytest.approx(men.loc[name, "value"] - women.loc[name, "value"])
    of_men = bleu_of(bleu_counts(REFERENCES, CANDIDATES)[3:].sum(axis=0))
    assert men.loc["bleu4", "value"] == pytest.approx(100 * of_men)
    with pytest.raises(CapbiasError, match="default-jre-headless"):
        meteor([["a"]], ["a"])
    rows, notes = run_all(PTB)
    assert set(rows["metric"]) == {"vocabulary"} and "no Java" in notes[-1]
    # Several captions of an image are drawn together.
    frame = pd.DataFrame({"image_id": ["b", "a", "b"], "caption": ["a dog", "a cat", "a cow"]})
    human = pd.DataFrame({"image_id": ["a", "b", "c"], "caption": ["a cat", "a dog", "of no captioned image"]})
    columns = scored(frame, human, PLAIN, lambda share, text: None)
    counts = Counts.of_captions(frame["image_id"], lambda images: np.array([0, 1]), columns)
    found = {name: own.value for (name, _), own in estimates_of(PERFORMANCE, counts, GENDER.values).items()}
    assert counts.images == ("a", "b") and counts.columns["rouge_l"] == pytest.approx([1, 1.5])
    assert found["rouge_l"] == pytest.approx(100 * 2.5 / 3) and found["rouge_l_gap"] == pytest.approx(-25)


def test_spelling_changes_no_quality(monkeypatch):
    monkeypatch.setattr(java_room.shutil, "which", lambda name: None)
    human = pd.DataFrame({"image_id": list("ab"), "caption": ["a cat on a bed", "a dog in a red car"]})
    model = pd.DataFrame({"image_id": list("ab"), "caption": ["a cat in bed", "a dog in a car"]})
    spelled = [own.assign(caption=own["caption"].str.upper().str.replace(" ", "  ") + ".") for own in (model, human)]
    usual = scored(model, human, PLAIN, lambda share, text: None)
    for sides in ((spelled[0], human), (model, spelled[1])):
        found = scored(*sides, PLAIN, lambda share, text: None)
        assert found.keys() == usual.keys()
        assert all(np.array_equal(np.asarray(found[name]), np.asarray(usual[name])) for name in usual)
