"""Consistency of metrics: the papers' own figures from their printed rows, cases by hand, bad files, the command."""

from __future__ import annotations

import io
import math
from itertools import product

import numpy as np
import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.aggregate.consistency import (
    coefficient_of_variation,
    conflict_score,
    name_key,
    noise_floor,
    pearson,
    variation_interval,
)
from capbias_core.analysis.consistency import agreement, alignment, consistency, variation
from capbias_core.errors import CapbiasError
from capbias_core.load.published import PUBLISHED_FILE, published_results, read_human_scores, read_results
from capbias_core.types import PUBLISHED_COLUMNS, RESULT_COLUMNS

# DBAC's tables of CVs, and the tables of scores that they follow from: (LIC, DBAC).
CV_TABLES = {"5a": ("11", "10"), "5b": ("12b", "12a"), "6a": ("14", "13"), "6b": ("15b", "15a")}
# LIC on pretrained encoders is printed with four decimals, of which one or two are not 0: these CVs do not follow
# within 0.1 or 2%. The mean of the last one's four printed values is 0.
TOO_COARSE = {
    ("5b", "bakllava"),
    ("5b", "fc"),
    ("5b", "llava"),
    ("5b", "nic"),
    ("5b", "transformer"),
    ("5b", "vit_gpt2"),
    ("6b", "bakllava"),
    ("6b", "fc"),
    ("6b", "llava"),
    ("6b", "nic"),
    ("6b", "vit_gpt2"),
    ("6b", "nic_equalizer"),
}


@pytest.fixture(scope="module")
def published() -> pd.DataFrame:
    return published_results()


def table_of(published: pd.DataFrame, paper: str, name: str) -> pd.DataFrame:
    return published[(published["paper"] == paper) & (published["table"] == name)]


def cv_pairs(published: pd.DataFrame, name: str) -> list[tuple[str, str, float, float]]:
    """Captioner, metric, printed CV, CV from the printed scores."""
    found = []
    for metric, source in zip(("LIC", "DBAC"), CV_TABLES[name], strict=True):
        printed = table_of(published, "dbac", name).query(f"metric == 'CV_{metric}'").set_index("model")["value"]
        ours = variation(table_of(published, "dbac", source)).set_index("model")["value"]
        assert len(printed) == len(ours) == 13
        found += [(model, metric, printed[model], ours[model]) for model in printed.index]
    return found


def near(printed: float, ours: float) -> bool:
    return abs(printed - ours) <= max(0.1, 0.02 * abs(printed))


# gold


@pytest.mark.parametrize("name", ["5a", "6a"])
def test_every_cv_of_encoders_from_scratch_follows_from_the_scores(published, name):
    pairs = cv_pairs(published, name)
    assert len(pairs) == 26
    assert [pair for pair in pairs if not near(*pair[2:])] == []


@pytest.mark.long
@pytest.mark.parametrize("name", ["5a", "6a"])
def test_cvs_of_encoders_from_scratch_also_follow_tightly(published, name):
    """All within 2% but DBAC of florence for race, printed as 0.15 where 0.1451 rounds to it."""
    loose = {
        (model, metric)
        for model, metric, printed, ours in cv_pairs(published, name)
        if abs(printed - ours) > 0.02 * printed
    }
    assert loose == (set() if name == "5a" else {("florence", "DBAC")})


@pytest.mark.parametrize("name", ["5b", "6b"])
def test_cvs_of_pretrained_encoders_follow_where_the_scores_have_digits_enough(published, name):
    pairs = cv_pairs(published, name)
    far = {(name, model, metric) for model, metric, printed, ours in pairs if not near(printed, ours)}
    assert far == {(table, model, "LIC") for table, model in TOO_COARSE if table == name}


@pytest.mark.parametrize("name", ["5b", "6b"])
def test_the_others_lie_within_what_rounding_allows(published, name):
    """Each of the four values may be 0.00005 off: the printed CV is between the least and the most of these."""
    scores = table_of(published, "dbac", CV_TABLES[name][0])
    for model, metric, printed, _ in cv_pairs(published, name):
        if metric == "LIC" and (name, model) in TOO_COARSE:
            values = scores[scores["model"] == model]["value"].to_numpy()
            corners = [values + 5e-5 * np.array(shift) for shift in product((-1, -0.5, 0, 0.5, 1), repeat=4)]
            found = np.array([coefficient_of_variation(corner) for corner in corners])
            assert np.nanmin(found) - 0.005 <= printed <= np.nanmax(found) + 0.005, model


def test_a_mean_of_zero_leaves_the_cv_blank_with_the_reason(published):
    row = variation(table_of(published, "dbac", "15b")).set_index("model").loc["nic_equalizer"]
    assert math.isnan(row["value"]) and row["method"] == "blank: the mean over encoders is 0" and row["n"] == 4


@pytest.mark.parametrize(
    ("metric", "judges", "conflict", "ranking"),
    [("LIC", "lstm_bi, bert_ft", 11.11, 0.926), ("imagecaptioner2", "sat, grit", 0.0, 0.961)],
)
def test_two_judges_as_in_imagecaptioner2_table_4(published, metric, judges, conflict, ranking):
    rows = agreement(table_of(published, "imgcap2", "4"))
    rows = rows[rows["condition"] == metric].set_index("metric")
    assert set(rows["encoder"]) == {judges} and set(rows["n"]) == {9}
    assert rows.loc["conflict_score", "value"] == pytest.approx(conflict, abs=0.005)
    assert rows.loc["conflict_score", "scale"] == 100 and rows.loc["ranking_consistency", "scale"] == 1
    assert rows.loc["ranking_consistency", "value"] == pytest.approx(ranking, abs=0.0005)


@pytest.mark.parametrize(("metric", "expected"), [("LIC", 0.547), ("imagecaptioner2", 0.801)])
def test_human_alignment_as_in_imagecaptioner2_table_5(published, metric, expected):
    rows = alignment(table_of(published, "imgcap2", "5")).set_index("condition")
    row = rows.loc[f"{metric}; anonymous_bench"]
    assert (row["metric"], row["n"]) == ("human_alignment", 9)
    assert row["value"] == pytest.approx(expected, abs=0.0005)


# by hand


def results(*rows, **columns) -> pd.DataFrame:
    """Rows of (model, encoder, value), LIC of one table unless columns say otherwise."""
    frame = pd.DataFrame(rows, columns=["model", "encoder", "value"])
    other = {"paper": "measured", "table": "", "attribute": "gender", "metric": "LIC", "direction": "", "condition": ""}
    frame = frame.assign(**(other | {"scale": 1.0} | columns))
    return frame.reindex(columns=list(RESULT_COLUMNS))


def test_cv_by_hand():
    assert coefficient_of_variation(np.array([2.0, 4.0, 6.0])) == 0.5, "std 2 (ddof 1) over mean 4"
    assert coefficient_of_variation(np.array([-2.0, -4.0, -6.0])) == 0.5, "over the size of the mean"
    assert math.isnan(coefficient_of_variation(np.array([3.0])))
    assert math.isnan(coefficient_of_variation(np.array([-1.0, 1.0])))
    assert math.isnan(coefficient_of_variation(np.array([0.1, 0.2, -0.3]))), "a mean of 0 but for rounding"


def test_judges_by_hand():
    assert conflict_score([1, -1, 2, 0], [1, 1, 2, -3]) == 25.0, "only the second; 0 is not above 0"
    assert pearson([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert pearson([0, 1, 0, 1], [0, 0, 1, 1]) == pytest.approx(0)
    assert math.isnan(pearson([1, 2], [1, 2])) and math.isnan(pearson([1, 2, 3], [2, 2, 2]))


def test_captioners_all_of_whose_images_have_references_are_ranked_with_others():
    rows = results(*((model, judge, 1.0 + place) for place, model in enumerate("abc") for judge in "xy"))
    covered = rows.assign(coverage=["with_references"] * 4 + [""] * 2)
    assert set(agreement(covered)["n"]) == {3}, "LIC rests on the images with references, be they all or a part"


def test_one_row_a_number_in_the_columns_of_the_results_table():
    frame = results(("a", "x", 200.0), ("a", "y", 400.0), ("a", "z", 600.0), scale=[100.0, 100.0, 100.0])
    rows = consistency(frame)
    assert tuple(rows.columns) == RESULT_COLUMNS
    cv = rows[rows["metric"] == "cv"].iloc[0]
    assert (cv["model"], cv["condition"], cv["encoder"], cv["n"]) == ("a", "LIC", "x, y, z", 3)
    assert cv["value"] == 0.5 and "3 encoders" in cv["method"] and cv["paper"] == "measured"
    assert list(rows["metric"]) == ["cv", *["conflict_score", "ranking_consistency"] * 3], "three pairs of encoders"


def test_a_conflict_of_intervals_needs_one_above_0_and_one_below():
    """Three captioners change sign from x to y: of a both intervals are clear, of b one contains 0, of c one is 0."""
    ends = {
        ("a", "x"): (1.0, 3.0),
        ("a", "y"): (-3.0, -1.0),
        ("b", "x"): (1.0, 3.0),
        ("b", "y"): (-3.0, 1.0),
        ("c", "x"): (0.0, 3.0),
        ("c", "y"): (-3.0, -1.0),
        ("d", "x"): (1.0, 3.0),
        ("d", "y"): (1.0, 3.0),
    }
    frame = results(*((model, by, sum(own) / 2) for (model, by), own in ends.items()))
    with_ends = frame.assign(ci_low=[own[0] for own in ends.values()], ci_high=[own[1] for own in ends.values()])
    rows = agreement(with_ends).set_index("metric")
    assert rows.loc["conflict_score", "value"] == 75.0 and rows.loc["clear_conflict_score", "value"] == 25.0
    assert "clear_conflict_score" not in set(agreement(frame)["metric"]), "nothing to say without intervals"


def test_a_terminal_gets_columns_and_a_file_gets_csv(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("capbias_core.cli.terminal.on_terminal", lambda: True)
    assert cli.main(["score", "--view", "consistency"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split()[:3] == ["captioner", "metric", "attribute"] and "blank:" not in "".join(shown)
    assert cli.main(["score", "--view", "consistency", "--output", str(tmp_path / "rows.csv")]) == 0
    assert tuple(pd.read_csv(tmp_path / "rows.csv").columns[: len(RESULT_COLUMNS)]) == RESULT_COLUMNS


def test_groups_never_mix_conditions_directions_or_attributes():
    frame = pd.concat(
        [
            results(("a", "x", 1.0), ("a", "y", 3.0)),
            results(("a", "x", 5.0), condition="masked_person"),
            results(("a", "y", 9.0), direction="T->A"),
            results(("a", "y", 9.0), attribute="race"),
        ]
    )
    rows = variation(frame)
    assert list(rows["value"].notna()) == [True, False, False, False]
    assert rows["value"][0] == pytest.approx(math.sqrt(2) / 2)
    assert list(rows["condition"]) == ["LIC", "LIC; masked_person", "LIC", "LIC"]


def test_a_cv_has_a_noise_floor_and_an_interval_without_it():
    """Values 10 and 30 of 3 seeds each, half widths 4.30265 and 8.6053: errors 1 and 2 (t(0.975, 2) = 4.30265).

    The floor is sqrt((1 + 4) / 2) / 20 = 0.0791. F = 200 / 2.5 = 80 with 1 and 4 degrees of freedom: p 0.0009, so the
    interval starts above 0; 11 and 9 have F = 2 / 2.5 = 0.8, below its mean: it starts at 0.
    """
    frame = results(("a", "x", 10.0), ("a", "y", 30.0), ("b", "x", 11.0), ("b", "y", 9.0))
    half = np.array([4.30265, 8.6053] * 2)
    low, high = frame["value"] - half, frame["value"] + half
    frame = frame.assign(ci_low=low, ci_high=high, seeds=3, interval="refits")
    differ, alike = variation(frame).to_dict("records")
    assert differ["spread"] == pytest.approx(0.0791, abs=1e-4) and differ["spread_kind"] == "noise floor"
    assert 0 < differ["ci_low"] < differ["value"] < differ["ci_high"]
    assert alike["ci_low"] == 0 and alike["spread"] == pytest.approx(0.1581, abs=1e-4)
    over_images = variation(frame.assign(interval="images"))
    assert over_images["ci_low"].isna().all() and over_images["spread"].isna().all()


def test_intervals_of_cvs_contain_the_true_one():
    """Four encoders with 5 seeds each, alike and not; alike ones have a CV of the floor, and are rarely told apart."""
    rng = np.random.default_rng(0)
    for true in (np.full(4, 10.0), np.array([8.0, 10, 11, 13])):
        contained, floors, found = [], [], []
        for _ in range(300):
            seeds = true[:, None] + rng.normal(0, 3, (4, 5))
            values, errors = seeds.mean(axis=1), seeds.std(axis=1, ddof=1) / math.sqrt(5)
            low, high = variation_interval(values, errors, 16)
            contained.append(low <= coefficient_of_variation(true) <= high)
            floors.append(noise_floor(values, errors))
            found.append(coefficient_of_variation(values))
        assert np.mean(contained) > 0.92
    assert np.mean(np.square(floors)) < np.mean(np.square(found))


def test_one_encoder_leaves_a_blank_with_the_reason_and_no_encoder_leaves_nothing():
    rows = consistency(pd.concat([results(("a", "ngram", 4.0)), results(("a", "", 2.0), metric="ratio")]))
    assert list(rows["metric"]) == ["cv"]
    assert math.isnan(rows["value"][0])
    assert rows["method"][0] == "blank: needs at least two encoders, got one (ngram)"


def test_undefined_values_do_not_count_as_an_encoder():
    rows = variation(results(("a", "x", 4.0), ("a", "y", math.nan), ("a", "z", math.inf)))
    assert rows["n"][0] == 1 and math.isnan(rows["value"][0])


def test_two_values_of_one_encoder_are_not_mixed():
    frame = results(("a", "x", 1.0), ("a", "x", 2.0), ("a", "y", 3.0), ("b", "x", 1.0), ("b", "y", 3.0))
    rows = consistency(frame)
    first, second = rows[rows["metric"] == "cv"].to_dict("records")
    assert math.isnan(first["value"]) and "several values for x" in first["method"]
    assert second["value"] == pytest.approx(math.sqrt(2) / 2)
    assert rows[rows["metric"] != "cv"]["value"].isna().all() and "a with x" in rows["method"].iloc[-1]


def test_judges_are_compared_on_the_captioners_that_both_have():
    frame = results(
        ("a", "x", 1.0),
        ("b", "x", 2.0),
        ("c", "x", 3.0),
        ("d", "x", 9.0),
        ("c", "y", 6.0),
        ("b", "y", 4.0),
        ("a", "y", -2.0),
    )
    conflict, ranking = agreement(frame).to_dict("records")
    assert (conflict["n"], conflict["value"]) == (3, pytest.approx(100 / 3))
    assert ranking["value"] == pytest.approx(pearson([1, 2, 3], [-2, 4, 6]))


def test_a_score_of_one_side_has_no_sign_to_disagree_on():
    frame = results(
        ("a", "x", 40.0), ("b", "x", 42.0), ("c", "x", 45.0), ("a", "y", 41.0), ("b", "y", 43.0), ("c", "y", 44.0)
    )
    conflict, ranking = agreement(frame.assign(metric="LIC_M")).to_dict("records")
    assert math.isnan(conflict["value"]) and "no sign" in conflict["method"]
    assert ranking["value"] > 0.9


def test_human_scores_of_a_file_are_matched_by_name():
    frame = results(("att2in", "x", 1.0), ("nic", "x", 2.0), ("nic_plus", "x", 4.0), ("other", "x", 9.0))
    row = alignment(frame, pd.Series({"Att2In": 10.0, "NIC": 20.0, "NIC+": 40.0})).iloc[0]
    assert (row["n"], row["value"]) == (3, pytest.approx(1.0)) and row["encoder"] == "x"
    few = alignment(frame, pd.Series({"Att2In": 10.0, "NIC": 20.0})).iloc[0]
    assert math.isnan(few["value"]) and "at least 3 captioners" in few["method"]
    twice = alignment(frame, pd.Series({"Att2In": 1.0, "NIC": 2.0, "NIC+": 4.0, "nic plus": 5.0})).iloc[0]
    assert math.isnan(twice["value"]) and "same name" in twice["method"]


@pytest.mark.parametrize("column", ["coverage", "object", "group", "alignment"])
def test_what_was_measured_on_other_images_or_objects_is_judged_apart(column):
    """Two series of one metric stand beside each other; both used to be one with several values a captioner."""
    own = results(("a", "x", 1.0), ("b", "x", 2.0), ("c", "x", 4.0), metric="LIC_M").assign(**{column: ""})
    other = own.assign(value=[4.0, 2.0, 1.0], **{column: "something"})
    rows = alignment(pd.concat([own, other]), pd.Series({"a": 1.0, "b": 2.0, "c": 4.0}))
    found = rows.set_index("condition")["value"]
    assert found["LIC_M"] == pytest.approx(1.0) and found["LIC_M; something"] < 0


@pytest.mark.parametrize(
    "other", [{"paper": "lic"}, {"attribute": "race"}, {"condition": "masked_person"}, {"table": "7"}]
)
def test_people_of_another_table_attribute_or_condition_judge_nothing(other):
    own = results(("a", "x", 1.0), ("b", "x", 2.0), ("c", "x", 4.0))
    people = results(("a", "", 1.0), ("b", "", 2.0), ("c", "", 4.0), metric="human_guess")
    assert list(alignment(pd.concat([own, people]))["value"]) == [pytest.approx(1.0)]
    assert alignment(pd.concat([own, people.assign(**other)])).empty


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("Att2In", "att2in", True),
        ("NIC+Equalizer", "nic_equalizer", True),
        ("NIC+", "nic_plus", True),
        ("ViT GPT-2", "vit_gpt2", True),
        ("NIC+", "NIC", False),
        ("updn", "updn2", False),
    ],
)
def test_names(first, second, same):
    assert (name_key(first) == name_key(second)) is same


# files

HEADER = ",".join(PUBLISHED_COLUMNS)
ROW = "measured,,gender,a,LIC,x,,,1.5,,,100"


def test_a_published_table_and_our_own_are_read_alike(tmp_path):
    short, own = tmp_path / "short.csv", tmp_path / "own.csv"
    short.write_text(f"{HEADER}\n{ROW}\n")
    more = {"run_id": "r1", "seeds": 10, "n": 662, "ci_low": 1.0, "ci_high": 2.0, "interval": "refits", "method": "how"}
    cells = [str(more.get(name, "")) for name in RESULT_COLUMNS[len(PUBLISHED_COLUMNS) :]]
    own.write_text(f"{','.join(RESULT_COLUMNS)}\n{ROW},{','.join(cells)}\n")
    a, b = read_results(short), read_results(own)
    assert tuple(a.columns) == tuple(b.columns) == RESULT_COLUMNS
    assert (a["value"][0], a["scale"][0], a["seeds"][0], a["method"][0]) == (1.5, 100.0, 0, "")
    assert math.isnan(a["spread"][0]) and math.isnan(a["ci_low"][0])
    assert (b["seeds"][0], b["n"][0], b["ci_high"][0], b["run_id"][0]) == (10, 662, 2.0, "r1")


def test_the_bundled_table_is_whole_and_is_not_shared(published):
    assert len(published) == 2468
    changed = published_results()
    changed["value"] = 0.0
    assert published_results()["value"].sum() == published["value"].sum() != 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "an empty file"),
        ("  \n\n", "an empty file"),
        (f"{HEADER}\n", "holds no row"),
        ("a,b\n1,2\n", "lacks the columns paper, table"),
        (f"{HEADER.replace(',scale', '')}\n{ROW.rpartition(',')[0]}\n", "lacks the column scale"),
        (f"{HEADER}\n{ROW}\n{ROW.replace('1.5', 'high')}\n", "line 3: 'high' in the column value"),
        (f"{HEADER}\n{ROW.replace(',100', ',0')}\n", "line 2: '0.0' in the column scale"),
        (f"{HEADER}\n{ROW.replace(',100', ',')}\n", "line 2: 'nan' in the column scale"),
        (f"{HEADER}\n{ROW},7\n", "line 2: 13 fields"),
        (f"{HEADER}\nlic,1\n", "line 2: 2 fields"),
        (f'{HEADER}\n"lic,1\n', "line 2: a quote is opened"),
    ],
)
def test_a_bad_file_is_refused_with_one_clear_error(tmp_path, text, said):
    path = tmp_path / "results.csv"
    path.write_text(text)
    with pytest.raises(CapbiasError) as found:
        read_results(path)
    assert said in found.value.message and "results.csv" in found.value.message


@pytest.mark.parametrize("data", [b"\xff\xfe\x00\x01", b"\x89PNG\r\n\x1a\n"])
def test_bytes_that_are_no_text_are_refused(tmp_path, data):
    (tmp_path / "r.csv").write_bytes(data)
    with pytest.raises(CapbiasError, match="r.csv"):
        read_results(tmp_path / "r.csv")
    with pytest.raises(CapbiasError, match="does not exist"):
        read_results(tmp_path / "none.csv")
    with pytest.raises(CapbiasError, match="is a folder"):
        read_results(tmp_path)


def test_human_scores_need_one_row_a_captioner(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("value,model,note\n10,nic,x\n,sat,y\n")
    assert read_human_scores(path).to_dict() == {"nic": 10.0}
    path.write_text("model,value\nnic,1\nnic,2\n")
    with pytest.raises(CapbiasError, match="several scores of nic"):
        read_human_scores(path)
    path.write_text("model,value\nnic,\n")
    with pytest.raises(CapbiasError, match="no score"):
        read_human_scores(path)


# the command


@pytest.mark.long
def test_the_command_writes_the_gold_from_the_bundled_table(tmp_path, capsys):
    out = tmp_path / "out.csv"
    assert cli.main(["score", "--view", "consistency", "--output", str(out)]) == 0
    printed = capsys.readouterr()
    assert printed.out == "" and "left blank" in printed.err
    rows = pd.read_csv(out, keep_default_na=False)
    assert tuple(rows.columns) == (*RESULT_COLUMNS, "name")
    assert set(rows["metric"]) == {
        "cv",
        "conflict_score",
        "ranking_consistency",
        "human_alignment",
        "mask_correlation",
        "mask_difference",
    }
    four = rows[(rows["paper"] == "imgcap2") & (rows["table"] == "4")].set_index(["condition", "metric"])["value"]
    assert float(four["LIC", "conflict_score"]) == pytest.approx(100 / 9)
    assert float(four["LIC", "ranking_consistency"]) == pytest.approx(0.926, abs=0.0005)
    blank = rows[rows["value"] == ""]
    assert len(blank) and blank["method"].str.startswith("blank: ").all()
    assert read_results(out).shape == rows.drop(columns="name").shape, "what it writes can be read again"


def test_the_command_reads_files_and_prints(tmp_path, capsys):
    own, people = tmp_path / "own.csv", tmp_path / "people.csv"
    lines = [
        f"measured,,gender,{m},LIC,{e},,,{v},,,100"
        for m, e, v in zip("aabbcc", "xyxyxy", (1, 3, 4, 4, 9, 6), strict=True)
    ]
    own.write_text("\n".join([HEADER, *lines]))
    people.write_text("model,value\nA,1\nB,4\nC,9\n")
    assert cli.main(["score", "--view", "consistency", "--results", str(own), "--human", str(people)]) == 0
    rows = pd.read_csv(io.StringIO(capsys.readouterr().out), keep_default_na=False).set_index(["metric", "encoder"])
    assert float(rows.loc[("human_alignment", "x"), "value"]) == pytest.approx(1)
    assert float(rows.loc[("ranking_consistency", "x, y"), "value"]) == pytest.approx(pearson([1, 4, 9], [3, 4, 6]))


@pytest.mark.parametrize("option", ["--results", "--human"])
def test_the_command_says_in_one_line_what_is_wrong_with_a_file(tmp_path, capsys, option):
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    assert (
        cli.main(
            ["score", "--view", "consistency", option, str(tmp_path / "bad.csv"), "--output", str(tmp_path / "out.csv")]
        )
        == 2
    )
    said = capsys.readouterr().err
    assert said.startswith("error: ") and "bad.csv" in said and len(said.splitlines()) == 1
    assert not (tmp_path / "out.csv").exists()


def test_the_command_refuses_a_table_that_nobody_judged_and_a_workspace(tmp_path, capsys):
    (tmp_path / "counts.csv").write_text(f"{HEADER}\n{ROW.replace('LIC,x', 'ratio,')}\n")
    assert cli.main(["score", "--view", "consistency", "--results", str(tmp_path / "counts.csv")]) == 2
    assert "several encoders" in capsys.readouterr().err
    assert cli.main(["score", "--view", "consistency", "--workspace", str(tmp_path)]) == 2
    assert "--workspace" in capsys.readouterr().err


def test_the_bundled_file_is_beside_the_code():
    assert PUBLISHED_FILE.is_file() and (PUBLISHED_FILE.parent / "README.md").is_file()
