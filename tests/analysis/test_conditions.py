"""Caption sets of masked photographs: whose and which, their differences, the papers' values, sentence and chart."""

from __future__ import annotations

import io
import json
import math
import statistics
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from capbias_core.aggregate import Estimate, Pair, Ranking
from capbias_core.aggregate.estimate import quotient
from capbias_core.analysis import conditions, read
from capbias_core.analysis.conditions import COLUMNS, condition_rows, without_value
from capbias_core.analysis.printed import printed_conditions
from capbias_core.cli import main
from capbias_core.errors import CapbiasError
from capbias_core.load.published import published_results
from capbias_core.measures.base import counts_of
from capbias_core.present.conditions import (
    TITLES,
    WHAT,
    apart_from_measured,
    condition_answer,
    condition_chart,
    condition_table,
    missing_line,
    panel_names,
)
from capbias_core.runs.condition_runs import plan_conditions
from capbias_core.runs.run import SHARED_NOTE
from capbias_core.types import CONDITIONS
from capbias_core.workspace.conditions import (
    all_sets,
    condition_details,
    condition_of,
    condition_sets,
    describe,
    suggested_condition,
    taken_of_several,
)
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep

COLLECTION = "c"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sat_masked_person", ("sat", "person")),
        ("sat_masked_both", ("sat", "both")),
        ("BLIP 2 (bounding box masked)", ("BLIP 2", "box")),
        ("partial_masked git", ("git", "part")),
        ("sat (segment masked)", ("sat", "segment")),
        ("nic-masked-object.v2", ("nic v2", "object")),
        # Nothing is said of a condition: the set is its own captioner's, on the originals.
        ("sat", ("sat", "original")),
        ("unmasked_person", ("unmasked_person", "original")),
        ("masked_bodyguard", ("masked_bodyguard", "original")),
        ("personal captions", ("personal captions", "original")),
    ],
)
def test_captioner_and_condition_are_read_from_a_name(name, expected):
    assert suggested_condition(name) == expected


def leaking(n: int, share: float, seed: int) -> list[str]:
    """Captions of n images, labelled Female and Male in turn, a word of which tells the label in this share of them."""
    rng = np.random.default_rng(seed)
    told = rng.random(n) < share
    other = rng.integers(0, 2, n)
    word = ["cake", "ball"]
    return [
        f"somebody with a {word[label if tells else guess]}"
        for label, tells, guess in zip(np.arange(n) % 2, told, other, strict=True)
    ]


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A workspace with captions of one captioner that tell the label always, and under `person` half the time."""
    folder = tmp_path_factory.mktemp("conditions")
    n = 600
    pd.DataFrame({"image_id": range(n), "gender": ["Female", "Male"] * (n // 2)}).to_csv(
        folder / "labels.csv", index=False
    )
    for name, share, seed in (("m", 1.0, 1), ("m_masked_person", 0.5, 2), ("elsewhere", 0.0, 3)):
        rows = [{"image_id": place, "caption": text} for place, text in enumerate(leaking(n, share, seed))]
        (folder / f"{name}.json").write_text(json.dumps(rows))
    home = ["--workspace", str(folder / "home"), "--collection", COLLECTION]
    assert main(["import", str(folder / "labels.csv"), "--kind", "attributes", *home]) == 0
    for name in ("m", "m_masked_person"):
        assert main(["import", str(folder / f"{name}.json"), "--kind", "captions", *home]) == 0
    named = ["--captioner", "m", "--condition", "both"]
    assert main(["import", str(folder / "elsewhere.json"), "--kind", "captions", *named, *home]) == 0
    out = folder / "rows.csv"
    asked = ["--captioner", "m", "--attribute", "gender", "--seeds", "4", "--output", str(out)]
    assert main(["score", "--view", "conditions", *asked, *home]) == 0
    return Workspace(folder / "home"), pd.read_csv(out, dtype={"run_id": str})


@pytest.mark.long
def test_a_set_is_known_by_its_name_or_as_it_was_named_on_import(measured):
    workspace, _ = measured
    sets = condition_sets(workspace, COLLECTION)
    assert {name: {key: item.name for key, item in own.items()} for name, own in sets.items()} == {
        "m": {"original": "m", "person": "m_masked_person", "both": "elsewhere"}
    }


@pytest.mark.long
def test_differences_to_the_original_and_to_chance(measured):
    """Every seed holds out equally many images, the same in every set, so that differences are those of the values."""
    _, rows = measured
    assert list(rows.columns) == list(COLUMNS)
    rows = rows[rows["metric"] == "LIC_M"].set_index("masked")
    assert list(rows.index) == ["original", "person", "both"]
    for condition in ("person", "both"):
        change = rows.at[condition, "value"] - rows.at["original", "value"]
        assert rows.at[condition, "to_original"] == pytest.approx(change)
        assert rows.at[condition, "to_original_high"] < 0, "less is told, and that is beyond doubt"
    assert (rows["value"] - rows["to_neutral"]).tolist() == pytest.approx([25.0] * 3)
    assert (rows["ci_low"] - rows["to_neutral_low"]).tolist() == pytest.approx([math.nan, 25, 25], nan_ok=True)
    assert rows["to_original"].isna().tolist() == [True, False, False]
    assert rows.at["original", "value"] > 60 and rows.at["original", "spread"] < 1e-9, "all seeds agree: no interval"
    assert rows.at["both", "to_neutral_low"] < 0 < rows.at["both", "to_neutral_high"], "nothing is told: at chance"


def test_the_interval_of_a_difference_is_that_of_its_seeds(measured):
    """The corrected resampled variance as a loop: the difference within each seed, a ninth of the images held out."""
    workspace, rows = measured
    rows = rows[rows["metric"] == "LIC_M"].set_index("masked")
    original, person = (by_seed(workspace, rows.at[name, "run_id"]) for name in ("original", "person"))
    differences = [person[seed] - original[seed] for seed in original]
    mean, variance = statistics.mean(differences), statistics.variance(differences)
    half = stats.t.ppf(0.975, len(differences) - 1) * (variance * (1 / len(differences) + 1 / 9)) ** 0.5
    own = rows.loc["person"]
    assert (own["to_original_low"], own["to_original_high"]) == pytest.approx((mean - half, mean + half), abs=1e-6)
    assert half > 0.5, "or the tolerance would decide nothing"


def correct_confidence(workspace, run_id: str) -> dict[str, tuple[float, int]]:
    """Of each held-out image the confidence in right guesses, summed, and how many guesses."""
    counts = counts_of(workspace, workspace.run(run_id))[""].reading(("model sure", "model captions")).taking_part
    return {image: (float(sure), int(n)) for image, (sure, n) in zip(counts.images, counts.sums, strict=True)}


def by_seed(workspace, run_id: str) -> dict[int, float]:
    """LIC_M of each seed as a loop over the images that it tests."""
    counts, found = counts_of(workspace, workspace.run(run_id))[""], {}
    sure, captions = (counts.columns[f"model {name}"] for name in ("sure", "captions"))
    for seed in counts.seeds:
        rows = [row for row, own in enumerate(counts.seed) if own == seed]
        found[seed] = 100 * sum(sure[row] for row in rows) / sum(captions[row] for row in rows)
    return found


def test_naming_a_set_anew_keeps_what_was_measured(measured):
    workspace, _ = measured
    before = len(workspace.results())
    item = workspace.item("captions", "elsewhere", COLLECTION)
    described = describe(workspace, item, "m", "object")
    try:
        assert condition_of(described) == ("m", "object") and described.hash == item.hash
        assert len(workspace.results()) == before
        assert set(condition_rows(workspace, COLLECTION, "m", "gender")["masked"]) == {"original", "person", "object"}
    finally:
        describe(workspace, described, "m", "both")


def test_what_cannot_be_measured_is_said(measured):
    workspace, _ = measured
    found = plan_conditions(workspace, COLLECTION, "m", "gender", seeds=4)
    assert {spec.measure for spec in found.specs} == {"lic"}
    assert len(found.lacking) == 3 and all("human captions" in line for line in found.lacking)
    for wrong in ({"captioner": "n"}, {"attribute": "age"}, {"metrics": ("bleu",)}):
        with pytest.raises(CapbiasError):
            plan_conditions(workspace, COLLECTION, **{"captioner": "m", "attribute": "gender"} | wrong)


# several sets of one condition


@pytest.fixture
def two_ways(measured):
    """The workspace with a further set of the condition person, newer than the first."""
    workspace, _ = measured
    frame = workspace.frame(workspace.item("captions", "elsewhere", COLLECTION).hash)
    details = condition_details("m blurred", "m", "person")
    item = workspace.keep("captions", "m blurred", frame.iloc[:-1], COLLECTION, "test", details)
    yield workspace
    workspace.delete(item)


def test_of_several_sets_of_a_condition_the_newest_counts_or_the_one_that_is_chosen(two_ways):
    every = all_sets(two_ways, COLLECTION)["m"]
    assert [item.name for item in every["person"]] == ["m blurred", "m_masked_person"], "the newest first"
    taken = condition_sets(two_ways, COLLECTION)["m"]
    assert [item.name for item in taken.values()] == ["m", "m blurred", "elsewhere"]
    older = ["m_masked_person"]
    assert condition_sets(two_ways, COLLECTION, older)["m"]["person"].name == "m_masked_person"
    assert taken_of_several(two_ways, COLLECTION, "m") == ("person: m blurred is taken, not m_masked_person",)
    assert taken_of_several(two_ways, COLLECTION, "m", older) == ("person: m_masked_person is taken, not m blurred",)
    rows = condition_rows(two_ways, COLLECTION, "m", "gender", chosen=older)
    assert "m_masked_person" in set(rows["model"]) and "m blurred" not in set(rows["model"])
    planned = plan_conditions(two_ways, COLLECTION, "m", "gender", chosen=older).specs
    assert {spec.model for spec in planned} == {"m", "m_masked_person", "elsewhere"}


def test_the_command_line_says_which_set_it_takes_and_chooses(two_ways, capsys):
    asked = [
        "score",
        "--view",
        "conditions",
        "--workspace",
        str(two_ways.folder),
        "--collection",
        COLLECTION,
        "--captioner",
        "m",
        "--attribute",
        "gender",
        "--measured",
    ]
    assert main(asked) == 0
    out = capsys.readouterr()
    assert "note: of several sets of m, person: m blurred is taken, not m_masked_person; choose with --set" in out.err
    assert "m_masked_person" not in out.out
    assert main([*asked, "--set", "m_masked_person"]) == 0
    out = capsys.readouterr()
    assert "m_masked_person is taken, not m blurred" in out.err and ",m_masked_person," in out.out


@pytest.mark.parametrize(("chosen", "said"), [(["m_person"], "caption set"), (["m blurred", "m_masked_person"], "one")])
def test_a_set_that_is_not_there_or_two_of_one_condition_are_refused(two_ways, chosen, said):
    with pytest.raises(CapbiasError, match=said):
        condition_rows(two_ways, COLLECTION, "m", "gender", chosen=chosen)


# what has no value


def test_what_has_no_value_is_named_with_the_reason(two_ways):
    """`person` is now a set that nothing was run on; nobody asked for maps; LIC needs human captions."""
    found = plan_conditions(two_ways, COLLECTION, "m", "gender", seeds=4)
    rows, sets = condition_rows(two_ways, COLLECTION, "m", "gender"), condition_sets(two_ways, COLLECTION)["m"]
    lines = [missing_line(own) for own in without_value(two_ways, found, sets, rows)]
    assert lines == [
        "LIC_M has no value for person: not run yet.",
        "LIC has no value for original, person, both: that needs human captions of the same photographs.",
        "attribution score has no value for original, person, both: no run has made maps of its captions.",
    ]
    spec = next(spec for spec in found.specs if spec.model == "m blurred")
    two_ways.enqueue(spec, COLLECTION, "token")
    assert "under way" in missing_line(without_value(two_ways, found, sets, rows)[0])
    two_ways.end(spec.run_id, "failed", "Got nothing.")
    assert missing_line(without_value(two_ways, found, sets, rows)[0]) == (
        "LIC_M has no value for person: its run failed (Got nothing.)."
    )


def test_one_condition_alone_is_refused(tmp_path):
    workspace = Workspace(tmp_path)
    frame = pd.DataFrame({"image_id": ["1"], "caption_index": [0], "caption": ["a dog"]})
    workspace.keep("captions", "alone", frame, COLLECTION, "test")
    with pytest.raises(CapbiasError, match="under one condition"):
        plan_conditions(workspace, COLLECTION, "alone", "gender")


@pytest.mark.parametrize("option", [["--condition", "hat"], ["--captioner", "<b>"]])
def test_an_unknown_condition_or_a_name_that_cannot_be_one_keeps_nothing(tmp_path, option):
    (tmp_path / "m.json").write_text(json.dumps([{"image_id": 1, "caption": "a dog"}]))
    home = tmp_path / "home"
    asked = ["import", str(tmp_path / "m.json"), "--kind", "captions", "--workspace", str(home), *option]
    try:
        assert main(asked) == 2
    except SystemExit as stopped:
        assert stopped.code == 2
    assert not home.exists() or Workspace(home).items() == []


@pytest.mark.long
def test_real_masked_captions_leak_as_was_measured_elsewhere(coco_bias, tmp_path):
    """METRICS.md: another linear attacker, 10 seeds, gave 43.1, 39.3 and 37.4 for object, person and both; the paper's
    Table 4 prints 42.9, 39.1, 37.2, with deviations of 0.8 to 1.6 over seeds."""
    home = ["--workspace", str(tmp_path / "home"), "--collection", COLLECTION]
    labels = str(coco_bias / "annotations" / "attributes.csv")
    assert main(["import", labels, "--kind", "attributes", "--attribute", "gender", *home]) == 0
    for name in ("sat", "sat_masked_object", "sat_masked_person", "sat_masked_both"):
        assert main(["import", str(coco_bias / "results" / f"{name}.json"), "--kind", "captions", *home]) == 0
    out = tmp_path / "rows.csv"
    asked = ["--attribute", "gender", "--metric", "lic", "--seeds", "3", "--output", str(out)]
    assert main(["score", "--view", "conditions", *asked, *home]) == 0
    rows = pd.read_csv(out).set_index("masked")
    expected = {"original": 44.1, "object": 43.1, "person": 39.3, "both": 37.4}
    assert rows["captioner"].unique().tolist() == ["sat"]
    for condition, value in expected.items():
        assert rows.at[condition, "value"] == pytest.approx(value, abs=2.0)
    assert rows.at["person", "to_original_high"] < 0 and rows.at["both", "to_original_high"] < 0
    assert (rows["to_neutral_low"] > 5).all(), "far above chance, whatever is masked"


# the papers' values


@pytest.mark.parametrize(
    ("attribute", "model", "metric", "masked", "value"),
    [
        ("gender", "sat", "LIC_M", "person", 39.1),
        ("gender", "oscar", "LIC_M", "both", 39.0),
        ("gender", "blip", "DBAC", "box", 33.42),
        # Table 4's "BA T→A" is BA→ of Wang & Russakovsky, not the undirected BA of Zhao et al.
        ("gender", "blip", "DBA_G", "segment", 0.83),
        ("race", "blip", "DBA_G", "box", 0.74),
        ("race", "blip", "attribution_score", "part", 74.92),
        ("race", "blip", "LIC", "original", 1.11),
    ],
)
def test_printed_values_stand_under_our_names_of_conditions(attribute, model, metric, masked, value):
    rows = printed_conditions(published_results(), attribute)
    own = rows[(rows["model"] == model) & (rows["metric"] == metric) & (rows["masked"] == masked)]
    assert own["value"].tolist() == [value]
    assert "BA" not in set(rows["metric"]), "no printed value stands beside another metric"
    assert set(rows["masked"]) <= set(CONDITIONS)


# the sentence, the chart and the table


def rows_of(**values) -> pd.DataFrame:
    """Rows of LIC_M: condition -> (value, half width of its interval); differences as they follow."""
    original = values["original"][0]
    rows = []
    for masked, (value, half) in values.items():
        change = (
            {
                "to_original": value - original,
                "to_original_low": value - original - half,
                "to_original_high": value - original + half,
                "original_there": original,
            }
            if masked != "original"
            else {}
        )
        above = {"to_neutral": value - 25, "to_neutral_low": value - 25 - half, "to_neutral_high": value - 25 + half}
        rows.append(
            {
                "captioner": "m",
                "masked": masked,
                "attribute": "gender",
                "model": "m",
                "metric": "LIC_M",
                "direction": "",
                "encoder": "ngram",
                "paper": "measured",
                "value": value,
                "ci_low": value - half,
                "ci_high": value + half,
                "interval": "refits",
                "seeds": 10,
                "n": 662,
                **change,
                **above,
            }
        )
    return pd.DataFrame(rows).reindex(columns=list(COLUMNS))


def test_the_sentence_says_how_much_is_left_and_how_much_went():
    text = condition_answer(rows_of(original=(45, 1), person=(40, 1), both=(35, 1)), "m", "gender")
    assert text.headline == (
        "With both masked (person and object), captions of m still give gender away: LIC_M 35.0 [34.0, 36.0], "
        "10.0 [9.0, 11.0] above chance (25.0)."
    )
    # 5 and 10 of the 20 above chance went.
    assert ": person by −5.0 [−6.0, −4.0] (25% of what was above chance)" in text.support
    assert "; both by −10.0 [−11.0, −9.0] (50% of what was above chance)" in text.support


@pytest.mark.parametrize(
    ("half", "said"), [(2, "no more, as far as can be told, than human"), (0.3, "less than human"), (-1, "")]
)
def test_the_sentence_sets_what_is_left_beside_human_captions(half, said):
    rows = rows_of(original=(45, 1), both=(35, 1))
    lic = rows.assign(metric="LIC", value=[4.7, -0.6], ci_low=[3.4, -0.6 - half], ci_high=[6.0, -0.6 + half])
    support = condition_answer(pd.concat([rows, lic]) if said else rows, "m", "gender").support
    assert said in support and ("LIC" in support.replace("LIC_M", "")) == bool(said)
    if said:
        assert (
            f"LIC −0.6 [{-0.6 - half:.1f}, ".replace("-", "−") in support
            and "4.7 [3.4, 6.0] on the originals" in support
        )


def test_while_runs_are_under_way_nobody_is_asked_to_press_run():
    rows = rows_of(original=(45, 1), person=(40, 1)).iloc[:0]
    text = condition_answer(rows, "m", "gender", under_way=True)
    assert "is being measured" in text.headline and "Run" not in text.support


@pytest.mark.parametrize(
    ("value", "said"), [((25.5, 1), "no more than chance (25.0) as far as can be told"), ((22, 1), "less than chance")]
)
def test_the_sentence_claims_no_leakage_where_the_interval_holds_chance(value, said):
    text = condition_answer(rows_of(original=(45, 1), segment=value), "m", "gender")
    assert said in text.headline and "still" not in text.headline


def test_a_change_whose_interval_holds_0_has_no_share():
    text = condition_answer(rows_of(original=(45, 1), object=(44.5, 1)), "m", "gender")
    assert ": object by −0.5 [−1.5, 0.5]." in text.support


def test_sets_of_different_images_say_so():
    """Attackers of a set that lacks images train on others, so that seeds are not paired."""
    rows = rows_of(original=(45, 1), object=(43, 1))
    assert "paired over the images that a set and the originals" in condition_answer(rows, "m", "gender").support
    rows.loc[rows["masked"] == "object", "n"] = 600
    support = condition_answer(rows, "m", "gender").support
    assert "different images (600 to 662 test images per seed)" in support and "Changes are paired" not in support


def test_without_the_original_nothing_is_claimed():
    rows = rows_of(original=(45, 1), person=(40, 1))
    text = condition_answer(rows[rows["masked"] == "person"], "m", "gender")
    assert "not measured yet" in text.headline and "Run" in text.support


def test_the_chart_has_a_panel_a_metric_with_measured_and_printed_values():
    printed = printed_conditions(published_results(), "gender")
    figure = condition_chart(rows_of(original=(45, 1), person=(40, 1)), printed)
    titles = [note.text for note in figure.layout.annotations]
    assert titles == ["LIC_M ↓", "LIC ↓", "DBAC T→A ↓", "DPA T→A ↓", "BA→ T→A (DBA_G) ↓", "attribution score ↓"]
    own = next(trace for trace in figure.data if trace.name == "m, gender")
    assert list(own.y) == [45, 40] and list(own.error_y.array) == [1, 1]
    sat = next(trace for trace in figure.data if trace.name == "printed: sat, gender (LIC Table 4)")
    assert list(sat.y) == [44.4, 39.1, 42.9, 37.2], "original, person, object, both"
    assert condition_chart(rows_of(original=(45, 1)).iloc[:0], printed.iloc[:0]) is None


def test_printed_values_of_what_was_not_measured_are_kept_apart():
    printed = printed_conditions(published_results(), "gender")
    beside, alone = apart_from_measured(rows_of(original=(45, 1), person=(40, 1)), printed)
    assert panel_names(beside) == ["LIC_M"] and len(beside) + len(alone) == len(printed)
    assert panel_names(alone) == ["LIC", "DBAC T→A", "DPA T→A", "BA→ T→A (DBA_G)", "attribution score"]
    nothing, every = apart_from_measured(rows_of(original=(45, 1)).iloc[:0], printed)
    assert nothing.empty and len(every) == len(printed)
    assert all(part.empty for part in apart_from_measured(rows_of(original=(45, 1)), printed.iloc[:0]))


def test_a_condition_has_one_name_everywhere():
    """That of the command line, in the sentence, on the axis, in the table and on hover; what it is, where chosen."""
    rows = rows_of(original=(45, 1), segment=(40, 1))
    figure = condition_chart(rows, rows.iloc[:0])
    assert list(figure.layout.xaxis.ticktext) == ["original", "segment"]
    assert [text.split(": ")[0] for text in figure.data[0].hovertext] == ["m, gender, original", "m, gender, segment"]
    assert condition_table(rows)["masked"].tolist() == ["original", "segment"]
    assert condition_answer(rows, "m", "gender").headline.startswith("With segment masked (the person's outline), ")
    assert list(WHAT) == list(CONDITIONS) and TITLES["segment"] == "segment (the person's outline)"


@pytest.mark.parametrize(("half", "shown"), [(1.0, "0.5 [−0.5, 1.5]"), (0.004, "0.512 [0.508, 0.516]")])
def test_a_metric_has_as_many_digits_as_its_intervals_need(half, shown):
    """Of an interval from 0.508 to 0.516 one decimal would say 0.5 [0.5, 0.5]."""
    rows = rows_of(original=(0.512, half)).assign(metric="DPA", direction="T->A")
    assert condition_table(rows)["value"].tolist() == [shown]
    assert condition_chart(rows, rows.iloc[:0]).data[0].hovertext[0].endswith(f": {shown} 95% with refits")


def test_a_name_from_a_file_is_no_markup_in_the_chart():
    rows = rows_of(original=(45, 1)).assign(captioner="<b>m</b>")
    figure = condition_chart(rows, printed_conditions(published_results(), "nothing"))
    assert figure.data[0].name.startswith("&lt;b&gt;m") and "<b>" not in figure.data[0].hovertext[0]


def test_the_table_has_both_differences():
    table = condition_table(rows_of(original=(45, 1), both=(35, 1)))
    assert table["minus original"].tolist() == ["", "−10.0 [−11.0, −9.0]"]
    assert table["minus neutral"].tolist() == ["20.0 [19.0, 21.0]", "10.0 [9.0, 11.0]"]
    assert io.StringIO(table.to_csv()).read().count("both") == 1


@pytest.mark.parametrize("pair", [("m", "n", 3.0, 1.0, 4.0), ("n", "m", -3.0, -4.0, -1.0)])
def test_a_change_is_masked_minus_original_whichever_stands_first_in_a_pair(tmp_path, monkeypatch, pair):
    """m is the original; of m - n = 3 [1, 4] the change of n is -3 [-4, -1], however the pair was compared."""
    values = (44.0, 41.0) if pair[0] == "m" else (41.0, 44.0)
    found = Ranking({}, (Pair(*pair, p=0.01, values=values),))
    monkeypatch.setattr(conditions, "ranking", lambda *_: found)
    monkeypatch.setattr(conditions, "_on_shared", lambda _, first, second, masked: [first, second])
    changes = conditions._changes(Workspace(tmp_path), runs_of("m", "n"), "LIC_M", "", "m")
    assert changes == {"n": (-3.0, -4.0, -1.0, 44.0)}


def runs_of(*models: str) -> list:
    """What of runs a comparison reads: an id and the set."""
    return [SimpleNamespace(run_id=f"run of {model}", spec=SimpleNamespace(model=model)) for model in models]


def right_of(right: list[int], first: int = 0) -> Estimate:
    """An estimate of the share of images that were guessed right, x100; right: 0 or 1 of each, from this image on."""
    images = tuple(str(first + place) for place in range(len(right)))
    return Estimate(images, np.column_stack([right, np.ones(len(right))]), np.zeros(0), 100, quotient)


def test_a_set_that_lacks_images_does_not_change_what_is_said_of_another(tmp_path, monkeypatch):
    """Of 80 images the first 40 are guessed right on the originals, and 20 of the others. With the outline masked the
    first 40 still are, of the others none: 50 - 75 = -25 over all 80. The set `object` holds only the first 40, and 30
    are right: 75 - 100 = -25. Over those 40 alone the outline would have changed nothing."""
    own = {
        "m": right_of([1] * 60 + [0] * 20),
        "segment": right_of([1] * 40 + [0] * 40),
        "object": right_of([1] * 30 + [0] * 10),
    }
    monkeypatch.setattr(read, "estimates", lambda _, run: {("LIC_M", ""): own[run.spec.model]})
    monkeypatch.setattr(conditions, "_on_shared", lambda _, first, second, masked: [first, second])
    changes = conditions._changes(Workspace(tmp_path), runs_of(*own), "LIC_M", "", "m")
    assert {name: change[0] for name, change in changes.items()} == pytest.approx({"segment": -25, "object": -25})
    there = {name: change[3] for name, change in changes.items()}
    assert there == pytest.approx({"segment": 75, "object": 100}), "the originals of the same images"
    assert conditions._changes(Workspace(tmp_path), runs_of("segment", "object"), "LIC_M", "", "m") == {}


def test_a_share_is_of_what_was_above_chance_on_the_images_of_the_change():
    """The images of `object` are half of the others: there the originals had 33, 8 above chance, of which 2 went: 25%,
    and not 10% of the 20 above chance on all of them."""
    rows = rows_of(original=(45, 1), object=(43, 1), person=(40, 1))
    rows.loc[rows["masked"] == "object", ["n", "original_there", "value"]] = 331, 33.0, 31.0
    support = condition_answer(rows, "m", "gender").support
    assert ": object by −2.0 [−3.0, −1.0] (25% of what was above chance)" in support
    assert "; person by −5.0 [−6.0, −4.0] (25% of what was above chance)" in support
    rows.loc[rows["masked"] == "object", "original_there"] = 24.0
    assert ": object by −2.0 [−3.0, −1.0];" in condition_answer(rows, "m", "gender").support, "none was above it there"


def worth(workspace: Workspace, run_id: str) -> tuple[float, set[str]]:
    """Mean confidence where right (x100) of a run's held-out answers, and their images; by plain means."""
    found = correct_confidence(workspace, run_id)
    total, count = (sum(own[place] for own in found.values()) for place in (0, 1))
    return 100 * total / count, set(found)


@pytest.fixture(scope="module")
def uneven(tmp_path_factory):
    """Originals of 400 labelled images; two masked sets of the first 120 of them, and one of all."""
    folder = tmp_path_factory.mktemp("uneven")
    labels = pd.DataFrame({"image_id": range(400), "gender": ["Female", "Male"] * 200})
    labels.to_csv(folder / "labels.csv", index=False)
    home = ["--workspace", str(folder / "home"), "--collection", COLLECTION]
    assert main(["import", str(folder / "labels.csv"), "--kind", "attributes", *home]) == 0
    for name, n, seed in (
        ("m", 400, 1),
        ("m_masked_person", 120, 2),
        ("m_masked_both", 120, 3),
        ("m_masked_object", 400, 4),
    ):
        texts = leaking(400, 0.6, seed)[:n]
        (folder / f"{name}.json").write_text(
            json.dumps([{"image_id": place, "caption": text} for place, text in enumerate(texts)])
        )
        assert main(["import", str(folder / f"{name}.json"), "--kind", "captions", *home]) == 0
    out = folder / "rows.csv"
    asked = ["--attribute", "gender", "--metric", "lic", "--seeds", "3", "--output", str(out), *home]
    assert main(["score", "--view", "conditions", *asked]) == 0
    return Workspace(folder / "home"), pd.read_csv(out, dtype={"run_id": str}).set_index("masked")


@pytest.mark.long
def test_a_set_of_fewer_images_is_compared_with_originals_that_trained_on_the_same(uneven):
    """One run of the originals serves both sets of 120 images; the set of all 400 is compared as it is."""
    workspace, rows = uneven
    (twin,) = [run for run in workspace.runs() if run.spec.shared_with]
    assert twin.spec.model == "m" and twin.run_id not in set(rows["run_id"])
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


@pytest.mark.long
def test_runs_on_shared_images_are_shown_nowhere_else(uneven):
    workspace, rows = uneven
    assert {run.run_id for run in read.current_runs(workspace, COLLECTION)} == set(rows["run_id"])


def test_a_run_on_shared_images_says_so(uneven, capsys):
    workspace, rows = uneven
    assert main(["list", "--json", "--workspace", str(workspace.folder)]) == 0
    listed = {run["run_id"]: run for run in json.loads(capsys.readouterr().out)["runs"]}
    (twin,) = [own for own in listed.values() if own["coverage"] == "shared_images"]
    assert twin["run_id"] not in set(rows["run_id"]) and SHARED_NOTE in twin["notes"]


@pytest.mark.long
def test_without_the_run_on_shared_images_no_difference_is_claimed(uneven):
    workspace, rows = uneven
    (twin,) = [run for run in workspace.runs() if run.spec.shared_with]
    workspace.forget(twin.run_id)
    again = condition_rows(workspace, COLLECTION, "m", "gender").set_index("masked")
    home = ["--workspace", str(workspace.folder), "--collection", COLLECTION]
    assert (
        main(["score", "--view", "conditions", "--attribute", "gender", "--metric", "lic", "--seeds", "3", *home]) == 0
    ), "made anew"
    assert again["to_original"].isna().to_dict() == {"original": True, "person": True, "object": False, "both": True}
    assert again["value"].tolist() == pytest.approx(rows["value"].tolist())


# the metrics that the page compares


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """A workspace with human captions, objects, and a captioner of originals and masked photographs; rows of `dba`.

    Of 40 images half show a cat; two people write of each, and say `woman` of three cats in four, `man` of the rest.
    """
    folder = tmp_path_factory.mktemp("dba")
    cats = [place < 20 for place in range(40)]
    human = ["woman" if place % 4 else "man" for place in range(20)] + [
        "man" if place % 4 else "woman" for place in range(20)
    ]
    labels = pd.DataFrame({"image_id": range(40), "gender": ["Female", "Male"] * 20})
    labels.assign(objects=["cat" if cat else "dog" for cat in cats]).to_csv(folder / "labels.csv", index=False)
    said = {
        "human": human,
        "m": ["woman" if cat else "man" for cat in cats],
        "m_masked_person": human[20:] + human[:20],
    }
    home = ["--workspace", str(folder / "home"), "--collection", COLLECTION]
    assert main(["import", str(folder / "labels.csv"), "--kind", "attributes", *home]) == 0
    for name, people in said.items():
        rows = [{"image_id": place, "caption": f"a {who} outside"} for place, who in enumerate(people)]
        (folder / f"{name}.json").write_text(json.dumps(rows))
        kind = "references" if name == "human" else "captions"
        assert main(["import", str(folder / f"{name}.json"), "--kind", kind, *home]) == 0
    out = folder / "rows.csv"
    assert (
        main(["score", "--view", "conditions", "--attribute", "gender", "--metric", "dba", "--output", str(out), *home])
        == 0
    )
    return Workspace(folder / "home"), pd.read_csv(out, dtype={"run_id": str}, keep_default_na=False)


@pytest.mark.long
def test_the_panel_of_ba_from_t_to_a_shows_dba_g(compared):
    """Of people's captions of cats 3 in 4 say `woman`, of dogs 1 in 4. The captioner says it of all cats and no dog:
    every pair that goes together does so by 1/4 more, every other by 1/4 less: 25. With the person masked 1 in 4 and
    3 in 4: -50."""
    _, rows = compared
    assert rows[["metric", "direction", "masked"]].to_numpy().tolist() == [
        ["DBA_G", "", "original"],
        ["DBA_G", "", "person"],
    ]
    assert rows["value"].astype(float).tolist() == pytest.approx([25.0, -50.0])
    assert float(rows["to_original"].iloc[1]) == pytest.approx(-75.0)
    drawn = condition_chart(
        rows.astype({"value": float}).assign(ci_low=0.0, ci_high=0.0, to_neutral=0.0), rows.iloc[:0]
    )
    assert [note.text for note in drawn.layout.annotations] == ["BA→ T→A (DBA_G) ↓"]


@pytest.mark.long
def test_ba_of_the_captions_alone_is_no_choice(compared):
    workspace, _ = compared
    with pytest.raises(CapbiasError, match="dba"):
        plan_conditions(workspace, COLLECTION, "m", "gender", metrics=("ba",))
    assert {spec.measure for spec in plan_conditions(workspace, COLLECTION, "m", "gender", seeds=2).specs} == {
        "lic",
        "dbac",
        "dpa",
        "bias_amplification",
    }


def test_without_objects_of_the_photographs_dba_g_is_said_to_be_lacking(tmp_path):
    workspace = Workspace(tmp_path)
    labels = pd.DataFrame({"image_id": ["1", "2"], "gender": ["Female", "Male"]})
    frame = labels[["image_id"]].assign(caption=["a woman", "a man"])
    sets = dict.fromkeys(("m", "m_masked_person"), frame)
    keep(workspace, COLLECTION, labels=labels, captions=sets, references=frame)
    found = plan_conditions(workspace, COLLECTION, "m", "gender", metrics=("dba",))
    assert found.specs == [] and [line for line in found.lacking if "DBA" in line and "objects" in line]
