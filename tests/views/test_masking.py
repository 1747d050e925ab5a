"""What masking changes: differences from the originals, which sets and settings count, the sentence, the forms."""

import math
import statistics
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from capbias_core.aggregate import Estimate, Pair, Ranking
from capbias_core.aggregate.estimate import quotient
from capbias_core.errors import CapbiasError
from capbias_core.prepare.tokens import Tokens
from capbias_core.question import Question
from capbias_core.runs.plan import plan
from capbias_core.views import masking, results
from capbias_core.views.choose import choose, measured_rows
from capbias_core.views.draw import figure, forest_html
from capbias_core.views.masking import MASKING, MaskingOptions, masking_rows
from capbias_core.worker import execute
from capbias_core.workspace.conditions import condition_details, condition_sets, describe, suggested_condition
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Workspace
from tests import sentences
from tests.collections_ import keep
from tests.views.rows import masked

COLLECTION = "c"


def test_captioner_and_condition_are_read_from_a_name():
    for name, expected in (
        ("sat_masked_person", ("sat", "person")),
        ("sat_masked_both", ("sat", "both")),
        ("BLIP 2 (bounding box masked)", ("BLIP 2", "box")),
        ("partial_masked git", ("git", "part")),
        ("sat (segment masked)", ("sat", "segment")),
        ("nic-masked-object.v2", ("nic v2", "object")),
    ):
        assert suggested_condition(name) == expected
    for name in ("sat", "unmasked_person", "masked_bodyguard", "personal captions"):  # of the originals
        assert suggested_condition(name) == (name, "original")


def leaking(n: int, share: float, seed: int) -> pd.DataFrame:
    """Captions of n images, labelled Female and Male in turn, a word of which tells the label in this share of them."""
    rng = np.random.default_rng(seed)
    tells, other, label = rng.random(n) < share, rng.integers(0, 2, n), np.arange(n) % 2
    word = np.where(np.where(tells, label, other), "ball", "cake")
    return pd.DataFrame({"image_id": range(n), "caption": [f"somebody with a {own}" for own in word]})


def compute(workspace: Workspace, specs: Iterable[RunSpec]) -> None:
    for spec in specs:
        if workspace.enqueue(spec, COLLECTION):
            execute(str(workspace.folder), spec.run_id)


def score(workspace: Workspace, seeds: int, metric: str = "lic", references: str = "") -> None:
    """Measure the originals."""
    asked = Question(COLLECTION, ("m",), "labels", "gender", (metric,), references, seeds=seeds)
    compute(workspace, plan(workspace, asked))


def compared(folder: Path, captions: dict, metric: str, seeds: int, **given) -> tuple[Workspace, pd.DataFrame]:
    """A workspace with these captions of m, and the rows of the view once what it needs is computed."""
    workspace, options = Workspace(folder), MaskingOptions(metric=(metric,))
    keep(workspace, COLLECTION, captions=captions, **given)
    if "elsewhere" in captions:
        describe(workspace, workspace.item("captions", "elsewhere", COLLECTION), "m", "both")
    score(workspace, seeds, metric, "human" if "references" in given else "")
    compute(workspace, MASKING.needs(choice_of(workspace), options))
    return workspace, masking_rows(choice_of(workspace), options)


def choice_of(workspace: Workspace, **given: str):
    return choose(workspace, measured_rows(workspace, COLLECTION), {"collection": COLLECTION} | given)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Captions of one captioner that tell the label always, under `person` half the time, under `both` never."""
    labels = pd.DataFrame({"image_id": range(600), "gender": ["Female", "Male"] * 300})
    sets = {"m": leaking(600, 1.0, 1), "m_masked_person": leaking(600, 0.5, 2), "elsewhere": leaking(600, 0.0, 3)}
    return compared(tmp_path_factory.mktemp("masking"), sets, "lic", 4, labels=labels)


def by_seed(workspace, run_id: str) -> dict[int, float]:
    """LIC_M of each seed as a loop over the images that it tests."""
    counts, found = workspace.counts(run_id)[""], {}
    sure, captions = (counts.columns[f"model {name}"] for name in ("sure", "captions"))
    for seed in counts.seeds:
        rows = [row for row, own in enumerate(counts.seed) if own == seed]
        found[seed] = 100 * sum(sure[row] for row in rows) / sum(captions[row] for row in rows)
    return found


@pytest.mark.long
def test_differences_to_the_original_and_to_chance(measured):
    """Each seed holds out equally many images, the same in every set, so that differences are those of the values.

    The interval: the corrected resampled variance as a loop, with a ninth of the images held out.
    """
    workspace, rows = measured
    rows = rows[rows["metric"] == "LIC_M"].set_index("masked")
    assert list(rows.index) == ["original", "person", "both"]
    original = by_seed(workspace, rows.at["original", "run_id"])
    for condition in ("person", "both"):
        change = rows.at[condition, "value"] - rows.at["original", "value"]
        assert rows.at[condition, "to_original"] == pytest.approx(change)
        own = by_seed(workspace, rows.at[condition, "run_id"])
        differences = [own[seed] - original[seed] for seed in original]
        mean, variance = statistics.mean(differences), statistics.variance(differences)
        half = stats.t.ppf(0.975, len(differences) - 1) * (variance * (1 / len(differences) + 1 / 9)) ** 0.5
        ends = rows.loc[condition, ["to_original_low", "to_original_high"]].tolist()
        assert ends == pytest.approx([mean - half, mean + half], abs=1e-6) and half > 0.5 and ends[1] < 0
    assert rows["neutral"].tolist() == [25.0] * 3 and math.isnan(rows.at["original", "low"])
    assert rows["to_original"].isna().tolist() == [True, False, False]
    assert rows.at["original", "value"] > 60 and rows.at["original", "spread"] < 1e-9, "all seeds agree: no interval"
    assert rows.at["both", "low"] < 25 < rows.at["both", "high"], "at chance"


@pytest.fixture
def two_ways(measured):
    """The workspace with a further set of the condition person, newer than the first."""
    workspace, _ = measured
    frame = workspace.frame(workspace.item("captions", "elsewhere", COLLECTION).hash)
    details = condition_details("m blurred", "m", "person")
    item = workspace.keep("captions", "m blurred", frame.iloc[:-1], COLLECTION, "test", details)
    yield workspace
    workspace.delete(item)


@pytest.mark.long
def test_of_several_sets_of_a_condition_the_newest_counts(two_ways):
    assert [item.name for item in condition_sets(two_ways, COLLECTION)["m"].values()] == ["m", "m blurred", "elsewhere"]
    choice = choice_of(two_ways)
    rows = masking_rows(choice)
    assert list(rows["set"]) == ["m", "elsewhere"] and rows.attrs["missing"] == ["LIC"], "m blurred is not measured"
    assert {spec.model for spec in MASKING.needs(choice, MaskingOptions())} == {"m", "m blurred", "elsewhere"}
    assert any("m blurred is taken, not m_masked_person" in note for note in MASKING.notes(choice, rows))


@pytest.mark.long
def test_other_seeds_carry_their_setting_and_more_conditions_count_first(measured):
    workspace, _ = measured
    score(workspace, 12)
    choice = choice_of(workspace)
    assert choice.setting_name.startswith("ngram, 12 seeds")
    rows = masking_rows(choice)
    assert set(rows["seeds"]) == {4} and all(rows["other"].str.startswith("ngram, 4 seeds"))
    table = MASKING.table(rows)
    assert list(table.numbers)[2].startswith("LIC_M (ngram, 4 seeds")
    assert table.texts.iloc[1, -1] == table.fields[list(table.numbers)[-1]].text(rows.iloc[1].to_dict())
    assert "person" in forest_html(MASKING, rows) and len(figure(MASKING, rows).data) >= 1
    with pytest.raises(CapbiasError):
        masking_rows(choice, MaskingOptions(metric=("ratio",)))


def runs_of(*models: str) -> list:
    """What of runs a comparison reads: an id and the set."""
    return [
        SimpleNamespace(run_id=f"run of {model}", spec=SimpleNamespace(model=model, captions="")) for model in models
    ]


def test_a_change_is_masked_minus_original_whichever_stands_first_in_a_pair(tmp_path, monkeypatch):
    """m is the original; of m - n = 3 [1, 4] the change of n is -3 [-4, -1], however the pair was compared."""
    monkeypatch.setattr(masking, "_on_shared", lambda _, first, second, masked: [first, second])
    for names, ends, values in (("mn", (3.0, 1.0, 4.0), (44.0, 41.0)), ("nm", (-3.0, -4.0, -1.0), (41.0, 44.0))):
        pair = Pair(*names, *ends, p=0.01, values=values)
        monkeypatch.setattr(masking, "ranking", lambda *_, own=pair: Ranking({}, (own,)))
        changes = masking.change_from_original(Workspace(tmp_path), runs_of("m", "n"), "LIC_M", "", "m")
        assert changes == {"n": (-3.0, -4.0, -1.0, 44.0)}


def right_of(right: list[int]) -> Estimate:
    """An estimate of the share of images that were guessed right, x100; right: 0 or 1 of each."""
    images = tuple(map(str, range(len(right))))
    return Estimate(images, np.column_stack([right, np.ones(len(right))]), np.zeros(0), 100, quotient)


def test_a_set_that_lacks_images_does_not_change_another_set_s_difference(tmp_path, monkeypatch):
    """Of 80 images the first 40 are guessed right on the originals, and 20 of the others. With the outline masked the
    first 40 still are, of the others none: 50 - 75 = -25 over all 80. The set `object` holds only the first 40, and 30
    are right: 75 - 100 = -25. Over those 40 alone the outline would have changed nothing."""
    own = {"m": right_of([1] * 60 + [0] * 20), "segment": right_of([1] * 40 + [0] * 40)}
    own["object"] = right_of([1] * 30 + [0] * 10)
    monkeypatch.setattr(results, "estimates", lambda run: {("LIC_M", ""): own[run.spec.model]})
    monkeypatch.setattr(Workspace, "tokens", lambda *_: Tokens.of(["a dog"]))
    monkeypatch.setattr(masking, "_on_shared", lambda _, first, second, masked: [first, second])
    changes = masking.change_from_original(Workspace(tmp_path), runs_of(*own), "LIC_M", "", "m")
    assert {name: change[0] for name, change in changes.items()} == pytest.approx({"segment": -25, "object": -25})
    originals = {name: change[3] for name, change in changes.items()}
    assert originals == pytest.approx({"segment": 75, "object": 100}), "the originals of the same images"
    assert masking.change_from_original(Workspace(tmp_path), runs_of("segment", "object"), "LIC_M", "", "m") == {}


def worth(workspace: Workspace, run_id: str) -> tuple[float, set[str]]:
    """LIC_M of a run as a plain mean over its held-out guesses, and their images."""
    counts = workspace.counts(run_id)[""].reading(("model sure", "model captions")).taking_part
    sure, captions = counts.sums.sum(axis=0)
    return 100 * sure / captions, set(counts.images)


@pytest.mark.long
def test_a_set_of_fewer_images_is_compared_with_originals_that_trained_on_the_same(tmp_path):
    """Originals of 400 images, two masked sets of 120 and one of all 400: one run of the originals serves both sets of
    120 images, and the set of all 400 is compared as it is."""
    labels = pd.DataFrame({"image_id": range(400), "gender": ["Female", "Male"] * 200})
    sizes = (("m", 400), ("m_masked_person", 120), ("m_masked_both", 120), ("m_masked_object", 400))
    sets = {name: leaking(400, 0.6, seed)[:n] for seed, (name, n) in enumerate(sizes, start=1)}
    workspace, rows = compared(tmp_path, sets, "lic", 3, labels=labels)
    rows = rows.set_index("masked")
    (twin,) = [run for run in workspace.runs() if run.spec.shared_with]
    assert twin.spec.model == "m" and twin.run_id not in set(rows["run_id"])
    assert {run.run_id for run in results.current_runs(workspace, COLLECTION)} == set(rows["run_id"])
    there, images = worth(workspace, twin.run_id)
    assert {int(image) for image in images} <= set(range(120))
    for condition in ("person", "both"):
        value, own = worth(workspace, rows.at[condition, "run_id"])
        assert own == images, "the same images, by the same splits"
        assert rows.at[condition, "original_there"] == pytest.approx(there)
        assert rows.at[condition, "to_original"] == pytest.approx(value - there)
    value, _ = worth(workspace, rows.at["object", "run_id"])
    whole, _ = worth(workspace, rows.at["original", "run_id"])
    assert whole != pytest.approx(there) and rows.at["object", "to_original"] == pytest.approx(value - whole)
    # 400 and 120 images, balanced: a tenth of each value is held out.
    assert rows["n"].to_dict() == {"original": 40, "person": 12, "object": 40, "both": 12}
    workspace.forget(twin.run_id)
    again = masking_rows(choice_of(workspace)).set_index("masked")
    assert again["to_original"].isna().to_dict() == {"original": True, "person": True, "object": False, "both": True}


@pytest.mark.long
def test_ba_from_t_to_a_is_dba_g(tmp_path):
    """Of people's captions of cats 3 in 4 say `woman`, of dogs 1 in 4. The captioner says it of all cats and no dog:
    each pair that goes together does so by 1/4 more, each other by 1/4 less: 25. With the person masked 1 in 4 and
    3 in 4: -50."""
    cats = [image < 20 for image in range(40)]
    human = ["woman" if image % 4 else "man" for image in range(20)]
    human += ["man" if image % 4 else "woman" for image in range(20)]
    labels = pd.DataFrame({"image_id": range(40), "gender": ["Female", "Male"] * 20})
    labels["objects"] = ["cat" if cat else "dog" for cat in cats]
    said = {"human": human, "m": ["woman" if cat else "man" for cat in cats]}
    said["m_masked_person"] = human[20:] + human[:20]
    sets = {
        name: pd.DataFrame({"image_id": range(40), "caption": [f"a {who} outside" for who in people]})
        for name, people in said.items()
    }
    references = {"human": sets.pop("human")}
    _, rows = compared(tmp_path, sets, "dba", 3, labels=labels, references=references)
    assert rows[["metric", "masked"]].to_numpy().tolist() == [["DBA_G", "original"], ["DBA_G", "person"]]
    assert rows["value"].tolist() == pytest.approx([25.0, -50.0]) and rows["to_original"][1] == pytest.approx(-75.0)


NAN = float("nan")
MASKED = {
    "all is less": masked(original=(45, 1), person=(40, 1), both=(35, 1)),
    "at chance": masked(original=(45, 1), segment=(25.5, 1)),
    "below chance": masked(original=(45, 1), segment=(22, 1)),
    "without the original": masked(original=(45, 1), person=(40, 1)).iloc[1:],
    "beside human captions": pd.concat(
        [masked(original=(45, 1), both=(35, 1)), masked("LIC", original=(4.7, 1.3), both=(-0.6, 0.3))]
    ),
    "two seeds": masked(original=(45, 1), both=(35, 1)).assign(seeds=2),
    "no interval": masked(original=(60, NAN), both=(55, NAN)),
    "another metric": masked("DBAC", original=(10, 1), both=(4, 1)),
}


@pytest.mark.parametrize("name", MASKED)
def test_what_masking_does(name):
    choice = SimpleNamespace(captioner="m", attribute="gender")
    sentences.check(f"masking: {name}", MASKING.sentence(choice, MASKED[name]))
