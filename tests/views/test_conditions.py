"""Caption sets of masked photographs: their differences, the papers' values, and the chart."""

import math
import statistics
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from capbias_core.aggregate import Estimate, Pair, Ranking
from capbias_core.aggregate.estimate import quotient
from capbias_core.cli import main
from capbias_core.load.published import published_results
from capbias_core.prepare import Tokens
from capbias_core.runs.condition_runs import plan_conditions
from capbias_core.types import CONDITIONS
from capbias_core.views import conditions, results
from capbias_core.views.pictures import figure_data
from capbias_core.views.published import printed_conditions
from capbias_core.workspace.conditions import (
    condition_details,
    condition_sets,
    describe,
    suggested_condition,
    taken_of_several,
)
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


def compared(folder: Path, captions: dict, *asked: str, **given) -> tuple[Workspace, pd.DataFrame]:
    """A workspace with these captions, and the rows of `view conditions`."""
    workspace, out = Workspace(folder / "home"), folder / "rows.csv"
    keep(workspace, COLLECTION, captions=captions, **given)
    if "elsewhere" in captions:
        describe(workspace, workspace.item("captions", "elsewhere", COLLECTION), "m", "both")
    into = ["--workspace", str(workspace.folder), "--collection", COLLECTION, "--output", str(out)]
    assert main(["view", "conditions", "--attribute", "gender", *asked, *into]) == 0
    return workspace, pd.read_csv(out, dtype={"run_id": str})


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Captions of one captioner that tell the label always, under `person` half the time, under `both` never."""
    labels = pd.DataFrame({"image_id": range(600), "gender": ["Female", "Male"] * 300})
    sets = {"m": leaking(600, 1.0, 1), "m_masked_person": leaking(600, 0.5, 2), "elsewhere": leaking(600, 0.0, 3)}
    asked = ("--captioner", "m", "--seeds", "4")
    return compared(tmp_path_factory.mktemp("conditions"), sets, *asked, labels=labels)


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
    assert list(rows.columns) == list(conditions.COLUMNS)
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
    assert (rows["value"] - rows["to_neutral"]).tolist() == pytest.approx([25.0] * 3)
    assert (rows["ci_low"] - rows["to_neutral_low"]).tolist() == pytest.approx([math.nan, 25, 25], nan_ok=True)
    assert rows["to_original"].isna().tolist() == [True, False, False]
    assert rows.at["original", "value"] > 60 and rows.at["original", "spread"] < 1e-9, "all seeds agree: no interval"
    assert rows.at["both", "to_neutral_low"] < 0 < rows.at["both", "to_neutral_high"], "at chance"


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
def test_of_several_sets_of_a_condition_the_newest_counts_or_the_one_that_is_chosen(two_ways):
    taken, older = condition_sets(two_ways, COLLECTION)["m"], ["m_masked_person"]
    assert [item.name for item in taken.values()] == ["m", "m blurred", "elsewhere"]
    assert condition_sets(two_ways, COLLECTION, older)["m"]["person"].name == "m_masked_person"
    assert len(taken_of_several(two_ways, COLLECTION, "m")) == 1
    rows = conditions.condition_rows(two_ways, COLLECTION, "m", "gender", chosen=older)
    assert "m_masked_person" in set(rows["model"]) and "m blurred" not in set(rows["model"])
    planned = plan_conditions(two_ways, COLLECTION, "m", "gender", chosen=older).specs
    assert {spec.model for spec in planned} == {"m", "m_masked_person", "elsewhere"}


@pytest.mark.long
def test_what_has_no_value_is_named_with_the_reason(two_ways):
    """`person` is now a set that nothing was run on; nobody asked for maps; LIC needs human captions."""
    found = plan_conditions(two_ways, COLLECTION, "m", "gender", seeds=4)
    rows = conditions.condition_rows(two_ways, COLLECTION, "m", "gender")
    sets = condition_sets(two_ways, COLLECTION)["m"]

    def lines() -> list[str]:
        return conditions.without_value(two_ways, found, sets, rows)

    said = lines()
    spec = next(spec for spec in found.specs if spec.model == "m blurred")
    two_ways.enqueue(spec, COLLECTION)
    said += lines()[:1]
    two_ways.end(spec.run_id, "failed", "Got nothing.")
    sentences.check("conditions without a value", "\n".join([*said, lines()[0]]))


def test_printed_values_stand_under_our_names_of_conditions():
    """Table 4's "BA T→A" is BA→ of Wang & Russakovsky, not the undirected BA of Zhao et al."""
    by_attribute = {name: printed_conditions(published_results(), name) for name in ("gender", "race")}
    for attribute, model, metric, condition, value in (
        ("gender", "sat", "LIC_M", "person", 39.1),
        ("gender", "oscar", "LIC_M", "both", 39.0),
        ("gender", "blip", "DBAC", "box", 33.42),
        ("gender", "blip", "DBA_G", "segment", 0.83),
        ("race", "blip", "DBA_G", "box", 0.74),
        ("race", "blip", "attribution_score", "part", 74.92),
        ("race", "blip", "LIC", "original", 1.11),
    ):
        rows = by_attribute[attribute]
        own = rows[(rows["model"] == model) & (rows["metric"] == metric) & (rows["masked"] == condition)]
        assert own["value"].tolist() == [value]
        assert "BA" not in set(rows["metric"]) and set(rows["masked"]) <= set(CONDITIONS)


@pytest.mark.long
def test_the_chart_has_a_panel_per_metric_with_measured_and_printed_values():
    printed, rows = printed_conditions(published_results(), "gender"), masked(original=(45, 1), person=(40, 1))
    figure = conditions.condition_chart(rows.assign(captioner="<b>m</b>"), printed)
    titles = [note.text for note in figure.layout.annotations]
    assert titles == ["LIC_M ↓", "LIC ↓", "DBAC T→A ↓", "DPA T→A ↓", "BA→ T→A (DBA_G) ↓", "attribution score ↓"]
    own = next(trace for trace in figure.data if trace.name == "&lt;b&gt;m&lt;/b&gt;, gender")
    (low, gap, high), errors = own.y, list(own.error_y.array)
    assert (low, high) == (45, 40) and errors == [1, 0, 1] and "<b>" not in own.hovertext[0]
    assert pd.isna(gap), "no line over conditions that were not measured"
    sat = next(trace for trace in figure.data if trace.name == "published: sat, gender (LIC Table 4)")
    assert [y for y in sat.y if pd.notna(y)] == [44.4, 39.1, 42.9, 37.2], "original, person, object, both"
    assert conditions.condition_chart(rows.iloc[:0], printed.iloc[:0]) is None
    others = ["LIC", "DBAC T→A", "DPA T→A", "BA→ T→A (DBA_G)", "attribution score"]
    assert conditions.panel_names() == conditions.panel_names(printed) == ["LIC_M", *others]
    assert conditions.panel_names(rows) == ["LIC_M"]
    alone = conditions.condition_chart(rows, printed.iloc[:0])
    assert alone and alone.layout.xaxis.domain == (0.0, 1.0), "one panel takes the whole width"


@pytest.mark.long
def test_the_data_of_the_chart_name_the_condition_of_each_of_many_lines():
    rows = pd.concat([masked(original=(45, 1), person=(40, 1)).assign(captioner=f"m{number}") for number in range(12)])
    table = figure_data(conditions.condition_chart(rows, printed_conditions(published_results(), "gender")))
    ours = table[table["series"].str.startswith("m")]
    assert ours["x"].tolist() == ["original", "person"] * 12
    assert set(table["x"]) <= set(CONDITIONS)


@pytest.mark.long
def test_finished_results_are_those_that_were_asked_for(measured, capsys):
    """Of LIC with 4 seeds: no other metric, no other number of seeds, no other mask."""
    workspace, rows = measured
    asked = ["view", "conditions", "--attribute", "gender", "--collection", COLLECTION, "--measured"]
    asked += ["--workspace", str(workspace.folder)]
    for code, *more in (
        (0, "--metric", "LIC", "--seeds", "4"),
        (2, "--metric", "dba"),
        (2, "--seeds", "1"),
        (2, "--merge-masks"),
        (2, "--metric", "error"),
    ):
        assert main([*asked, *more]) == code, more
        assert code or set(pd.read_csv(StringIO(capsys.readouterr().out))["metric"]) == set(rows["metric"])


def test_the_table_of_conditions_has_both_differences_and_as_many_digits_as_intervals_need():
    """Of an interval from 0.508 to 0.516 one decimal would say 0.5 [0.5, 0.5]."""
    table = conditions.condition_table(masked(original=(45, 1), both=(35, 1)))
    assert set(table["setting"]) == {"ngram, 10 seeds"}
    assert table["minus original"].tolist() == ["", "−10.0 [−11.0, −9.0]"]
    assert table["minus neutral"].tolist() == ["20.0 [19.0, 21.0]", "10.0 [9.0, 11.0]"]
    for half, shown in ((1.0, "0.5 [−0.5, 1.5]"), (0.004, "0.512 [0.508, 0.516]")):
        rows = masked("DPA", original=(0.512, half)).assign(direction="T->A")
        assert conditions.condition_table(rows)["value"].tolist() == [shown]


def runs_of(*models: str) -> list:
    """What of runs a comparison reads: an id and the set."""
    return [
        SimpleNamespace(run_id=f"run of {model}", spec=SimpleNamespace(model=model, captions="")) for model in models
    ]


def test_a_change_is_masked_minus_original_whichever_stands_first_in_a_pair(tmp_path, monkeypatch):
    """m is the original; of m - n = 3 [1, 4] the change of n is -3 [-4, -1], however the pair was compared."""
    monkeypatch.setattr(conditions, "_on_shared", lambda _, first, second, masked: [first, second])
    for names, ends, values in (("mn", (3.0, 1.0, 4.0), (44.0, 41.0)), ("nm", (-3.0, -4.0, -1.0), (41.0, 44.0))):
        pair = Pair(*names, *ends, p=0.01, values=values)
        monkeypatch.setattr(conditions, "ranking", lambda *_, own=pair: Ranking({}, (own,)))
        changes = conditions._changes(Workspace(tmp_path), runs_of("m", "n"), "LIC_M", "", "m")
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
    monkeypatch.setattr(conditions, "_on_shared", lambda _, first, second, masked: [first, second])
    changes = conditions._changes(Workspace(tmp_path), runs_of(*own), "LIC_M", "", "m")
    assert {name: change[0] for name, change in changes.items()} == pytest.approx({"segment": -25, "object": -25})
    originals = {name: change[3] for name, change in changes.items()}
    assert originals == pytest.approx({"segment": 75, "object": 100}), "the originals of the same images"
    assert conditions._changes(Workspace(tmp_path), runs_of("segment", "object"), "LIC_M", "", "m") == {}


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
    asked = ("--metric", "lic", "--seeds", "3")
    workspace, rows = compared(tmp_path, sets, *asked, labels=labels)
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
    again = conditions.condition_rows(workspace, COLLECTION, "m", "gender").set_index("masked")
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
    _, rows = compared(tmp_path, sets, "--metric", "dba", "--seeds", "3", labels=labels, references=references)
    assert rows[["metric", "masked"]].to_numpy().tolist() == [["DBA_G", "original"], ["DBA_G", "person"]]
    assert rows["value"].tolist() == pytest.approx([25.0, -50.0]) and rows["to_original"][1] == pytest.approx(-75.0)
