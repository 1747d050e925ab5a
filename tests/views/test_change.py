"""Before and after: paired intervals beside NumPy's, claims, the gate and its exit codes, and words."""

from __future__ import annotations

import io
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.stats import t as student

from capbias_core import cli
from capbias_core.aggregate import Counts, estimates_of
from capbias_core.aggregate.change import IMPROVED, WORSE, change_of, corrected
from capbias_core.attributes import get_attribute
from capbias_core.measures.registry import METRICS
from capbias_core.views.change import (
    FAILED,
    PASSED,
    UNDECIDED,
    change,
    change_rows,
    clause,
    gate,
    lean_changes,
    pair_scope,
)
from capbias_core.views.view import exported
from capbias_core.workspace.store import Workspace
from tests import sentences
from tests.collections_ import keep
from tests.pages.synthetic import fill, score

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
        metrics=("lic", "ratio", "error"),
        seeds=5,
        words=False,
    )
    score(made, captioners=("others",), metrics=("lic",), seeds=4, words=False)
    return made


def command(workspace: Workspace, *more: str) -> list[str]:
    return ["view", "change", *more, "--collection", "c", "--workspace", str(workspace.folder)]


def test_an_interval_with_refits_beside_numpy(workspace):
    """LIC of each seed on the images that both hold out, from the counts; then the corrected resampled variance."""
    scope = pair_scope(workspace, "c", "first", "telling")
    row = change_rows(scope).set_index("metric").loc["LIC"]
    differences, ratio = [], 0.0
    runs = [scope.run(name) for name in scope.captioners]
    counts = [workspace.counts(run.run_id)[""] for run in runs]
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
    half = student.ppf(0.975, 4) * math.sqrt(spread * (1 / 5 + ratio))
    assert row[["change", "ci_low", "ci_high"]].astype(float).tolist() == pytest.approx(
        [mean, mean - half, mean + half]
    )
    p = 2 * student.sf(abs(mean) / math.sqrt(spread * (1 / 5 + ratio)), 4)
    others = change_rows(scope).set_index("metric").loc["error", "p"]
    assert row["p"] == pytest.approx(2 * p) and others == 1, "Holm over two, of which the other does not change"


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
    assert found.worse_low == (found.low if sign > 0 else -(found.high or 0))
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


@pytest.mark.parametrize("differing", [2, 4, 6, 30])
def test_the_interval_excludes_0_where_p_is_below_005(differing):
    """Of 4 images that differ by 1 to 2.5 the percentiles of a bootstrap exclude 0, and p is above 0.05."""
    before, after = np.zeros(400), np.zeros(400)
    after[:differing] = 1 + 0.5 * (np.arange(differing) % 5)
    one, two = (of_metric("length", np.column_stack([side, np.ones(400)])) for side in (before, after))
    found = change_of(one, two, METRICS["length"], 2)
    assert found.low is not None and (found.low > 0) == (found.p < 0.05)


@pytest.mark.parametrize(
    ("pair", "claim", "said"),
    [
        (("first", "telling"), "", "ratio is the same"),
        (("first", "wrong"), WORSE, "further from 0.90, the ratio of the labels (worse)"),
        (("wrong", "first"), IMPROVED, "nearer to 0.90, the ratio of the labels (better)"),
        (("wrong", "mixed"), "", "nearer to 0.90, the ratio of the labels (no claim: error rose)"),
    ],
)
def test_a_ratio_is_compared_with_that_of_the_labels(workspace, pair, claim, said):
    rows = change_rows(pair_scope(workspace, "c", *pair), ["ratio", "error"]).set_index("metric", drop=False)
    assert rows.at["ratio", "claim"] == claim and said in clause(rows.loc["ratio"].to_dict())


def test_a_claim_that_is_lost_by_the_correction_says_so_and_an_untested_metric_makes_none(workspace):
    rows = change_rows(pair_scope(workspace, "c", "first", "wrong"), ["error"])
    row = rows[rows["metric"] == "error"].iloc[0].to_dict()
    assert clause(row | {"claim": ""}).endswith("not significant after Holm's correction")
    assert clause(row | {"claim": "", "tested": False}).endswith("]")


def test_what_cannot_be_compared_has_a_reason_and_no_claim():
    few = of_metric("cider", np.ones((20, 2)))
    found = change_of(few, few, METRICS["cider"], 2)
    assert "20 images, fewer than 30" in found.undecided and found.claim(0.0) == ""
    assert corrected([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_the_gate(workspace, capsys):
    def ended(*more: str) -> tuple[int, str]:
        capsys.readouterr()
        return cli.main(command(workspace, *more, "--fail-if", "worse")), capsys.readouterr().err.splitlines()[-1]

    lines = []
    for code, *more in (
        (1, "first", "telling"),
        (0, "telling", "first"),
        (0, "first", "second"),
        (1, "first", "telling", "--metric", "error", "LIC"),
        (1, "first", "wrong", "--metric", "error"),
        (0, "wrong", "first", "--metric", "error"),
        (2, "first", "others"),  # other seeds
        (2, "others", "first", "--metric", "LIC"),
        (2, "first", "others", "--metric", "error"),  # not measured
        (2, "telling", "first", "--metric", "LIC", "cider"),  # better, and one is missing
        (2, "first", "second", "--metric", "length"),
        (2, "first", "first"),
        (2, "first", "second", "--metric", "lics"),
        (2, "first", "second", "--seeds", "7"),
    ):
        found = ended(*more)
        lines.append(f"{' '.join(more)}: {found[1]}")
        assert found[0] == code, lines[-1]
    sentences.check("view change, gate", "\n".join(lines), numbers=False)


def test_two_seeds_decide_nothing(workspace):
    rows = change_rows(pair_scope(workspace, "c", "first", "telling"), ["LIC"])
    assert gate(rows)[0] == FAILED and gate(rows.assign(claim=""))[0] == PASSED
    (own,) = rows.loc[rows["tested"], "of"]
    undecided = rows.assign(of=[replace(own, undecided="2 seeds decide nothing")] * len(rows), claim="", undecided="x")
    assert gate(undecided)[0] == UNDECIDED and "no claim" in clause(undecided.iloc[0].to_dict())
    assert own.claim(0.0) == WORSE and replace(own, undecided="x").claim(0.0) == ""


def test_the_answer(workspace, tmp_path, capsys):
    for name in ("x.csv", "x.tex", "x.svg", "x.txt"):
        assert cli.main([*command(workspace, "first", "telling"), "--output", str(tmp_path / name)]) == 0
    err = capsys.readouterr().err.split("written: ")[-1].partition("\n")[2]
    sentences.check("view change", err, numbers=False)
    frame = pd.read_csv(tmp_path / "x.csv")
    assert frame["tested"].sum() == 2 and "LIC_D" not in set(frame["metric"]), "of people alone"
    shown = change(pair_scope(workspace, "c", "telling", "first"))
    assert "LIC fell by" in shown.sentence and "(better)" in shown.sentence and "error is the same" in shown.sentence
    assert exported(shown, "x.json")


def test_from_files(workspace, tmp_path, capsys):
    """Two captioners in files give the change of the same captioners in a collection."""
    kinds = {"first": "captions", "telling": "captions", "human": "references", "labels": "labels"}
    for name, kind in kinds.items():
        frame = workspace.frame(workspace.item(kind, name, "c").hash)
        frame.drop(columns="caption_index", errors="ignore").to_csv(tmp_path / f"{name}.csv", index=False)
    files = [str(tmp_path / f"{name}.csv") for name in ("first", "telling", "labels")]
    human = ["--references", str(tmp_path / "human.csv")]
    asked = [
        "view",
        "change",
        *files,
        *human,
        "--attribute",
        "gender",
        "--seeds",
        "5",
        "--metric",
        "LIC",
        "--fail-if",
        "worse",
    ]
    assert cli.main([*asked, "--output", str(tmp_path / "x.csv")]) == 1
    there = change_rows(pair_scope(workspace, "c", "first", "telling"), ["LIC"]).set_index("metric").loc["LIC"]
    here = pd.read_csv(tmp_path / "x.csv").set_index("metric").loc["LIC"]
    for name in ("before", "after", "change", "ci_low", "ci_high", "p"):
        assert here[name] == pytest.approx(there[name])
    capsys.readouterr()
    assert cli.main([name for name in asked if name != files[1]]) == 2
    assert "two captioners, got 1" in capsys.readouterr().err
    assert cli.main(["view", "change", *files, "--fail-if", "worse"]) == 2


def test_words_that_changed(workspace, capsys):
    before, after = np.zeros((200, 2)), np.zeros((200, 2))
    code = np.arange(200) % 2
    after[(code == 1) & (np.arange(200) < 100), 0] = 1
    after[:, 1] = before[:, 1] = 1
    table = lean_changes(csr_array(before), csr_array(after), code, GENDER).set_index("word")
    assert table.loc[0, ["before", "after", "change"]].tolist() == [0, 50, 50]
    half = 1.959964 * 100 * math.sqrt(np.var([0, 1], ddof=0) / 99)
    assert table.loc[0, ["ci_low", "ci_high"]].tolist() == pytest.approx([50 - half, 50 + half])
    assert table.loc[1, "change"] == 0 and table.loc[1, "p"] == 1 and table.loc[0, "p"] < 1e-6
    assert cli.main(command(workspace, "first", "telling", "--words")) == 0
    printed = capsys.readouterr()
    rows = pd.read_csv(io.StringIO(printed.out)).set_index("word")
    assert set(rows.index[:2]) == {"truck", "purse"} and rows.loc["truck", "change"] == pytest.approx(100, abs=1)
    assert rows.loc["purse", "change"] == pytest.approx(-100, abs=1) and "truck" in printed.err
