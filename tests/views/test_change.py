"""Before and after: paired intervals beside NumPy's, gaps and error by label, verdicts, the gate and its exit codes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

from capbias_core import cli
from capbias_core.aggregate import Counts, estimates_of
from capbias_core.aggregate.change import IMPROVED, WORSE, change_of
from capbias_core.aggregate.ranking import holm
from capbias_core.attributes import get_attribute
from capbias_core.errors import CapbiasError
from capbias_core.measures.registry import METRICS
from capbias_core.runs.run import estimates
from capbias_core.views.change import (
    BEFORE_AND_AFTER,
    BY_LABEL,
    CHANGE,
    GAPS_OF_ERROR,
    NOT_SIGNIFICANT,
    ChangeOptions,
    change_rows,
)
from capbias_core.views.choose import Choice, choose, measured_rows
from capbias_core.workspace.store import Workspace
from tests import sentences
from tests.collections_ import keep
from tests.pages.synthetic import fill, score

pytestmark = pytest.mark.long

GENDER = get_attribute("gender")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Workspace:
    """Two captioners; one that tells the label by a word; one with other seeds; one that names the wrong value of
    women, one of all."""
    made = Workspace(tmp_path_factory.mktemp("change"))
    fill(made)
    first = made.frame(made.item("captions", "first", "c").hash)[["image_id", "caption"]]
    male = first["caption"].str.contains("a man").to_numpy()
    telling = first.assign(caption=first["caption"] + np.where(male, " near a truck", " near a purse"))
    third = np.arange(len(first)) % 3 == 0
    wrong = first["caption"].str.replace("a woman", "a man").where(third, first["caption"])
    mixed = wrong.str.replace("a man", "a woman").where(np.arange(len(first)) % 3 == 1, wrong)
    sets = {"telling": telling, "others": first, "wrong": first.assign(caption=wrong)}
    keep(made, captions=sets | {"mixed": first.assign(caption=mixed)})
    score(
        made,
        captioners=("first", "second", "telling", "wrong", "mixed"),
        metrics=("lic", "ratio", "error", "naming_gap"),
        seeds=5,
        words=False,
    )
    score(made, captioners=("others",), metrics=("lic",), seeds=4, words=False)
    return made


def pair(workspace: Workspace, *names: str) -> Choice:
    given = {"collection": "c", "captioner": names[0]}
    return choose(workspace, measured_rows(workspace, "c"), given, strict=True, captioners=names)


def changes(choice: Choice, *metrics: str) -> pd.DataFrame:
    """The changes by line."""
    rows = change_rows(choice, ChangeOptions(metric=metrics))
    return rows[rows["of"] == CHANGE].set_index("line", drop=False)


def test_an_interval_with_refits_beside_numpy(workspace):
    """LIC of each seed on the images that both hold out, from the counts; then the corrected resampled variance."""
    choice = pair(workspace, "first", "telling")
    row, differences, ratio = changes(choice, "LIC", "error").loc["LIC"], [], 0.0
    counts = [workspace.counts(choice.run(name).run_id)[""] for name in choice.captioners]
    for seed in range(5):
        values = []
        for of in counts:
            rows = np.asarray(of.seed) == seed
            sums = {name: of.columns[name][rows].sum() for name in of.columns if not name.endswith("cut")}
            model = sums["model sure"] / sums["model captions"]
            values.append(100 * (model - sums["human sure"] / sums["human captions"]))
        differences.append(values[1] - values[0])
        ratio += len(set(counts[0].image[np.asarray(counts[0].seed) == seed])) / counts[0].training / 5
    mean, spread = np.mean(differences), np.var(differences, ddof=1)
    error = math.sqrt(spread * (1 / 5 + ratio))
    half = student.ppf(0.975, 4) * error
    assert row[["value", "low", "high"]].astype(float).tolist() == pytest.approx([mean, mean - half, mean + half])
    p = 2 * student.sf(abs(mean) / error, 4)
    assert row["p"] == pytest.approx(p), "not corrected"
    assert row["p_holm"] == pytest.approx(4 * p), "Holm with error as a whole and by label, which do not change"


def test_error_by_label_and_its_gap_are_tested_by_default_and_equal_a_count_by_hand(workspace):
    """`wrong` names every third woman a man: their error rises, that of men does not, and the gap opens."""
    choice = pair(workspace, "first", "wrong")
    rows = changes(choice)
    base, gap = BY_LABEL[0], f"{BY_LABEL[0]} gap"
    assert [METRICS[name].gap_of for name in GAPS_OF_ERROR] == [base]
    assert list(rows.index) == ["LIC", "error", "error Female", "error Male", gap, "unnamed gap"]
    frame = workspace.frame(workspace.item("captions", "wrong", "c").hash)
    labels = workspace.frame(workspace.item("labels", "labels", "c").hash).set_index("image_id")["gender"]
    women = frame[frame["image_id"].map(labels) == "Female"]
    wrong = women["caption"].str.contains("a man").to_numpy(float)
    female, male = rows.loc[f"{base} Female"], rows.loc[f"{base} Male"]
    half = student.ppf(0.975, wrong.sum() - 1) * 100 * wrong.std() / math.sqrt(len(wrong))
    assert female["value"] == pytest.approx(100 * wrong.mean()) and female["n"] == len(women)
    assert [female["low"], female["high"]] == pytest.approx([female["value"] - half, female["value"] + half], rel=0.05)
    assert male["value"] == 0 and rows.at[gap, "value"] == pytest.approx(-female["value"]), "men minus women"
    verdicts = rows["verdict"].to_dict()
    assert {verdicts[name] for name in (gap, f"{base} Female", "error")} == {WORSE}
    assert {verdicts[name] for name in ("LIC", f"{base} Male", "unnamed gap")} == {NOT_SIGNIFICANT}
    back = changes(pair(workspace, "wrong", "first"))
    assert back.at[gap, "verdict"] == IMPROVED and back.at[gap, "value"] > 0
    before = change_rows(choice)
    sides = before[(before["line"] == f"{base} Female") & (before["of"] != CHANGE)]
    assert sides["captioner"].tolist() == ["first", "wrong"]
    measured = choice.rows[(choice.rows["metric"] == base) & (choice.rows["group"] == "Female")]
    assert sides["value"].tolist() == measured.set_index("captioner").loc[["first", "wrong"], "value"].tolist()


def counted(values: np.ndarray, reads: tuple[str, ...]) -> Counts:
    """Counts of images. values: (n, len(reads))."""
    n = len(values)
    columns = dict(zip(reads, values.T.astype(float), strict=True))
    return Counts.by_image([f"{image:04}" for image in range(n)], np.arange(n) % 2, columns)


def of_metric(name: str, values: np.ndarray):
    counts = counted(values, METRICS[name].reads)
    return estimates_of([METRICS[name]], counts, GENDER.values)[name, ""]


@pytest.mark.parametrize(("name", "claim"), [("cider", IMPROVED), ("unnamed", WORSE)])
def test_an_interval_over_images_beside_numpy_and_which_way_is_better(name, claim):
    rng = np.random.default_rng(1)
    before = rng.random(400) * 0.5
    after = before + 0.1 + 0.1 * rng.standard_normal(400)
    reads = METRICS[name].reads
    one, two = (
        of_metric(name, np.column_stack([side, *[np.ones(400)] * (len(reads) - 1)])) for side in (before, after)
    )
    found = change_of(one, two, METRICS[name], 2)
    scale, differences = METRICS[name].scale, after - before
    error = scale * differences.std(ddof=1) / math.sqrt(400)
    assert found.difference == pytest.approx(scale * differences.mean())
    assert [found.low, found.high] == pytest.approx(
        [found.difference - 1.96 * error, found.difference + 1.96 * error], rel=0.03
    )
    assert found.claim(found.p) == claim and found.claim(0.06) == ""
    sign = 1 if claim == WORSE else -1
    assert found.worse == sign * found.difference
    assert change_of(two, one, METRICS[name], 2).claim(0.0) == ({WORSE, IMPROVED} - {claim}).pop()


def test_a_metric_that_is_best_at_a_neutral_value_is_judged_by_its_distance():
    """A ratio that crosses 1 is no further from it, though the ratio rises."""
    metric, n = METRICS["ratio"], 2000
    assert metric.better == "neutral"

    def ratio_of(share: float):
        first = np.arange(n) < n * share
        order = np.random.default_rng(2).permutation(n)
        return of_metric("ratio", np.column_stack([first, ~first])[order])

    low, middle, high = ratio_of(0.6), ratio_of(0.5), ratio_of(0.375)  # second over first: 0.67, 1, 1.67
    values = [float(one.value) for one in (low, middle, high)]
    assert sorted(values) in (values, values[::-1])
    found = change_of(middle, high, metric, 2)
    assert found.worse == pytest.approx(abs(values[2] - 1)) and found.claim(found.p) == WORSE
    assert change_of(high, middle, metric, 2).claim(found.p) == IMPROVED
    crossing = change_of(low, high, metric, 2)
    assert crossing.worse == pytest.approx(abs(values[2] - 1) - abs(values[0] - 1))
    assert abs(crossing.worse) < abs(crossing.difference)


@pytest.mark.parametrize(
    ("names", "verdict", "reason"),
    [
        (("first", "telling"), NOT_SIGNIFICANT, ""),
        (("first", "wrong"), WORSE, ""),
        (("wrong", "first"), IMPROVED, ""),
        (("wrong", "mixed"), "", "error rose"),
    ],
)
def test_a_ratio_is_compared_with_that_of_the_labels(workspace, names, verdict, reason):
    row = changes(pair(workspace, *names), "ratio", "error").loc["ratio"]
    assert (row["verdict"], row["reason"]) == (verdict, reason)


def test_what_cannot_be_compared_has_a_reason_and_no_claim():
    few = of_metric("cider", np.ones((20, 2)))
    found = change_of(few, few, METRICS["cider"], 2)
    assert "20 images, fewer than 30" in found.undecided and found.claim(0.0) == ""
    assert holm(np.array([0.01, 0.04, 0.03])) == pytest.approx([0.03, 0.06, 0.06])


def test_the_gate(workspace, capsys):
    def ended(*more: str) -> tuple[int, str]:
        capsys.readouterr()
        place = ["--collection", "c", "--workspace", str(workspace.folder), "--fail-if", "worse"]
        return cli.main(["view", "change", *more, *place]), capsys.readouterr().err.splitlines()[-1]

    lines = []
    for code, *more in (
        (1, "first", "telling"),
        (0, "telling", "first"),
        (1, "first", "wrong", "--metric", "error"),
        (1, "first", "wrong", "--metric", GAPS_OF_ERROR[0]),
        (2, "first", "others"),  # other seeds
        (2, "first", "others", "--metric", "error"),  # not measured
        (2, "telling", "first", "--metric", "LIC", "cider"),  # better, and one is missing
        (2, "first", "second", "--metric", "length"),
        (2, "first"),
        (2, "first", "second", "--seeds", "7"),
    ):
        found = ended(*more)
        lines.append(f"{' '.join(more)}: {found[1]}")
        assert found[0] == code, lines[-1]
    sentences.check("view change, gate", "\n".join(lines), numbers=False)


def test_the_sentence_and_notes(workspace):
    choice = pair(workspace, "first", "wrong")
    rows = change_rows(choice)
    text = "\n".join([BEFORE_AND_AFTER.sentence(choice, rows), *BEFORE_AND_AFTER.notes(choice, rows)])
    sentences.check("view change", text, numbers=False)
    drawn = rows[rows["drawn"]]
    assert set(drawn["of"]) == {CHANGE} and all(METRICS[name].scale == 100 for name in drawn["metric"])


def test_from_files(workspace, tmp_path, capsys):
    """Two captioners in files give the change of the same captioners in a collection."""
    kinds = {"first": "captions", "telling": "captions", "human": "references", "labels": "labels"}
    for name, kind in kinds.items():
        frame = workspace.frame(workspace.item(kind, name, "c").hash)
        frame.drop(columns="caption_index", errors="ignore").to_csv(tmp_path / f"{name}.csv", index=False)
    files = [str(tmp_path / f"{name}.csv") for name in ("first", "telling", "labels")]
    human = ["--references", str(tmp_path / "human.csv")]
    asked = ["view", "change", *files, *human, "--attribute", "gender", "--seeds", "5", "--metric", "LIC"]
    asked += ["--fail-if", "worse"]
    assert cli.main([*asked, "--output", str(tmp_path / "x.csv")]) == 1
    there = changes(pair(workspace, "first", "telling"), "LIC").loc["LIC"]
    here = pd.read_csv(tmp_path / "x.csv")
    here = here[here["of"] == CHANGE].set_index("line").loc["LIC"]
    for name in ("value", "low", "high", "p_holm"):
        assert here[name] == pytest.approx(there[name])
    capsys.readouterr()
    assert cli.main([name for name in asked if name != files[1]]) == 2
    assert "two captioners, got 1" in capsys.readouterr().err
    only_error = ["view", "change", *files, "--attribute", "gender", "--metric", "error", "--fail-if", "worse"]
    assert cli.main(only_error) == 0, "no human captions, and nothing with an attacker"


def test_counts_of_another_shape_are_refused(workspace, monkeypatch):
    """As in a workspace that another program wrote."""
    choice = pair(workspace, "first", "second")
    run = choice.run("first", ["LIC"])
    for wide in (lambda column: np.column_stack([column, column]), lambda column: column[:, None][:, [0, 0, 0]]):
        counts = run.counts_of()
        other = replace(counts, columns={name: wide(column) for name, column in counts.columns.items()})
        monkeypatch.setattr(type(run), "counts", lambda _, other=other: {"": other})
        with pytest.raises(CapbiasError, match="counts of another measure"):
            estimates(run)
        monkeypatch.undo()
