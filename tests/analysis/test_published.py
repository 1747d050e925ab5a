"""Printed figures beside measured ones: matching, what decides, the papers' claims, and the page."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.analysis.claims import AGREE, CLAIMS, DISAGREE, OPEN, summary, verdicts
from capbias_core.analysis.printed import UNNAMED, as_measured, no_counterpart
from capbias_core.analysis.published import PAPERS, beside_measured, measured_rows, of_originals
from capbias_core.api import run_here
from capbias_core.load.published import published_results
from capbias_core.measures.registry import METRICS
from capbias_core.present.published import HOLDS, beside_sentence, beside_table, cell_style, claim_block
from capbias_core.runs.engine import Engine
from capbias_core.runs.plan import Request, plan
from capbias_core.types import ORIGIN_COLUMNS, RESULT_COLUMNS, Result
from capbias_core.workspace import ingest
from capbias_core.workspace.labels import table_with
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("nic", "sat", "fc", "att2in", "updn", "transformer", "oscar", "nic_plus", "nic_equalizer")


@pytest.fixture(scope="module")
def published() -> pd.DataFrame:
    return published_results()


def measured(*rows: dict) -> pd.DataFrame:
    """Measured LIC_M of sat for gender with lstm_bi, 44 [43, 45] x100, unless a row says otherwise."""
    usual = {
        "attribute": "gender",
        "model": "sat",
        "metric": "LIC_M",
        "value": 44.0,
        "encoder": "lstm_bi",
        "scale": 100.0,
        "ci_low": 43.0,
        "ci_high": 45.0,
        "spread": 0.8,
        "seeds": 3,
        "n": 662,
        "interval": "refits",
        "run_id": "r",
    }
    frame = pd.DataFrame([Result(**(usual | row)).row() for row in rows], columns=list(RESULT_COLUMNS))
    return frame.astype(dict.fromkeys(("value", "spread", "scale", "ci_low", "ci_high"), float))


def table_of(published: pd.DataFrame, paper: str, name: str, **only) -> pd.DataFrame:
    rows = published[(published["paper"] == paper) & (published["table"] == name)]
    for column, value in only.items():
        rows = rows[rows[column] == value]
    return rows


def sat(published: pd.DataFrame, encoder: str = "lstm_bi", metric: str = "LIC_M") -> pd.DataFrame:
    """One printed row of LIC table 2: LIC_M of sat is 44.4 with lstm_bi."""
    return table_of(published, "lic", "2", model="sat", metric=metric, encoder=encoder)


def only(frame: pd.DataFrame) -> pd.Series:
    assert len(frame) == 1
    return frame.iloc[0]


# what stands beside what


@pytest.mark.parametrize(
    ("low", "high", "holds"), [(43.0, 45.0, "yes"), (44.4, 45.0, "yes"), (44.5, 45.0, "no"), (43.0, 44.3, "no")]
)
def test_the_same_encoder_decides_by_its_interval(published, low, high, holds):
    row = only(beside_measured(sat(published), measured({"ci_low": low, "ci_high": high})))
    assert row["value"] == 44.4 and row["holds"] == holds
    assert (row["captioner"], row["measured_value"], row["measured_seeds"]) == ("sat", 44.0, 3)


def test_another_encoder_is_shown_and_decides_nothing(published):
    row = only(beside_measured(sat(published), measured({"encoder": "ngram"})))
    assert row["holds"] == "another encoder, decides nothing" and row["measured_value"] == 44.0


def test_the_same_encoder_comes_before_another(published):
    both = measured({"encoder": "ngram", "value": 43.0}, {})
    row = only(beside_measured(sat(published), both))
    assert (row["measured_encoder"], row["holds"]) == ("lstm_bi", "yes")


def test_a_group_stands_beside_no_number_of_a_whole_set(published):
    beside = beside_measured(published, measured({"group": "Female"}))
    assert beside["measured_value"].isna().all()


def test_nothing_measured_leaves_the_printed_row(published):
    row = only(beside_measured(sat(published), measured()))
    assert row["holds"] == "not measured" and math.isnan(row["measured_value"]) and row["captioner"] == ""


@pytest.mark.parametrize("name", ["SAT", "S.A.T.", "sat "])
def test_names_are_compared_without_case_and_punctuation(published, name):
    assert only(beside_measured(sat(published), measured({"model": name})))["captioner"] == name


def test_nic_and_nic_plus_are_two_captioners(published):
    rows = table_of(published, "lic", "2", metric="LIC", encoder="lstm_bi")
    own = [
        {"model": name, "metric": "LIC", "value": v}
        for name, v in (("NIC", 1.0), ("NIC+", 2.0), ("NIC+Equalizer", 3.0))
    ]
    found = beside_measured(rows, measured(*own)).set_index("model")["measured_value"].dropna()
    assert found.to_dict() == {"nic": 1.0, "nic_plus": 2.0, "nic_equalizer": 3.0}


@pytest.mark.parametrize(
    "other", [{"attribute": "race"}, {"metric": "SC"}, {"condition": "masked_person"}, {"direction": "T->A"}]
)
def test_another_attribute_metric_condition_or_direction_is_not_the_same_thing(published, other):
    assert only(beside_measured(sat(published), measured(other)))["holds"] == "not measured"


def test_a_part_of_the_images_is_shown_and_decides_nothing_and_all_images_come_first(published):
    part = {"coverage": "with_references", "value": 42.0}
    assert only(beside_measured(sat(published), measured(part)))["holds"] == "part of the images, decides nothing"
    whole = only(beside_measured(sat(published), measured(part, {"encoder": "ngram"})))
    assert whole["measured_coverage"] == "with_references", "the printed encoder comes before other images"
    assert only(beside_measured(sat(published), measured(part, {})))["holds"] == "yes"


def test_original_images_are_those_without_a_condition(published):
    rows = table_of(published, "lic", "4", model="sat")
    found = beside_measured(rows, measured({}, {"condition": "masked_person", "value": 39.0})).set_index("condition")
    assert found["measured_value"].dropna().to_dict() == {"original": 44.0}


def masked_sets(*rows: dict) -> pd.DataFrame:
    """Measured rows of sets with the captioner and the condition that were named: `captioner` and `masked` of a row."""
    plain = [{key: own for key, own in row.items() if key not in ("captioner", "masked")} for row in rows]
    return measured(*plain).assign(**{key: [row[key] for row in rows] for key in ("captioner", "masked")})


def test_sets_of_masked_photographs_stand_beside_their_condition(published):
    rows = table_of(published, "lic", "4", model="sat")
    own = masked_sets(
        {"captioner": "sat", "masked": "original"},
        {"model": "sat_masked_person", "captioner": "SAT", "masked": "person", "value": 39.0},
        {"model": "sat of boxes", "captioner": "sat", "masked": "box", "value": 38.0},
        {"model": "oscar_masked_both", "captioner": "oscar", "masked": "both", "value": 37.0},
    )
    found = beside_measured(rows, own).set_index("condition")
    assert found["measured_value"].dropna().to_dict() == {"original": 44.0, "masked_person": 39.0}
    assert found.at["masked_person", "captioner"] == "sat_masked_person"
    plain = sat(published)  # a printed row without a condition is of the originals
    assert only(beside_measured(plain, own))["measured_value"] == 44.0


def test_ba_from_t_to_a_stands_beside_dba_g_under_each_condition(published):
    """DBAC's Table 4 prints BA→ (Wang & Russakovsky) as BA; the BA here is that of Zhao et al., another quantity."""
    rows = table_of(published, "dbac", "4", metric="BA", attribute="gender")
    own = masked_sets(
        *(
            {
                "model": f"blip {masked}",
                "captioner": "blip",
                "masked": masked,
                "metric": name,
                "value": value,
                "encoder": "",
                "ci_low": 0.5,
                "ci_high": 2.0,
            }
            for name in ("DBA_G", "BA")
            for masked, value in (("original", 1.0), ("box", 1.2))
        )
    )
    found = beside_measured(rows, own.assign(model=own["model"] + own["metric"])).set_index("condition")
    assert found["measured_value"].dropna().to_dict() == {"original": 1.0, "bounding_box_masked": 1.2}
    assert set(found["captioner"]) == {"blip originalDBA_G", "blip boxDBA_G", ""}
    assert found.at["bounding_box_masked", "holds"] == "another protocol, decides nothing"
    assert beside_table(found.reset_index())["measured with"].tolist()[0] == "blip originalDBA_G, DBA_G, 3 seeds"
    race = beside_measured(
        table_of(published, "dbac", "4", metric="BA", attribute="race"), own.assign(attribute="race")
    )
    assert set(race["holds"]) == {"no counterpart"} and set(race["reason"]) == {UNNAMED}


def test_race_of_dbac_has_three_values_and_decides_nothing(published):
    rows = table_of(published, "dbac", "13", model="sat", encoder="lstm")
    own = {"attribute": "race", "metric": "DBAC", "direction": "T->A", "encoder": "lstm", "scale": 1.0}
    assert only(beside_measured(rows, measured(own)))["holds"] == "another alignment, decides nothing"
    whole = measured(own | {"alignment": "contextual_glove"})
    assert only(beside_measured(rows, whole))["holds"] == "another protocol, decides nothing"
    gender = table_of(published, "dbac", "10", model="sat", encoder="lstm")
    assert only(beside_measured(gender, whole.assign(attribute="gender")))["holds"] in ("yes", "no")


@pytest.mark.parametrize(
    ("paper", "table", "metric", "model", "own"),
    [
        ("dbac", "8a", "DBAC_H", "sat", {"metric": "DBAC_H", "direction": "A->T", "encoder": "lstm", "scale": 1.0}),
        ("imgcap2", "3", "LIC", "sat", {"metric": "LIC", "encoder": "lstm_bi"}),
    ],
)
def test_encoders_that_the_text_says_decide(published, paper, table, metric, model, own):
    rows = table_of(published, paper, table, metric=metric, model=model)
    printed = rows[rows["condition"].isin(["", "constant"])]
    assert only(beside_measured(printed, measured(own)))["holds"] == "no", "44 [43, 45] is far off"
    assert only(beside_measured(printed, measured(own | {"encoder": "ngram"})))["holds"].startswith("another encoder")


RENAMED = {
    ("dbac", "BA"): ("DBA_G", ""),
    ("dbac", "LIC_H"): ("LIC_D", ""),
    ("dbac", "DBAC_H"): ("DBAC_H", "A->T"),
    ("dbac", "METEOR"): ("METEOR_aligned", ""),
    ("dbac", "attribution_score_percent"): ("attribution_score", ""),
    ("imgcap2", "leakage_score"): ("imagecaptioner2_leakage", ""),
}


def test_every_printed_row_has_a_name_here_or_a_reason(published):
    """Renamed are those that are the same by their papers' text; all others keep their names."""
    reasons = {}
    for row in published[published["paper"] != "genderscore"].to_dict("records"):
        if reason := no_counterpart(row):
            reasons.setdefault((row["paper"], row["table"]), set()).add(reason)
            continue
        expected = RENAMED.get((row["paper"], row["metric"]), (row["metric"], row["direction"]))
        if (row["paper"], row["table"], row["metric"]) == ("imgcap2", "2", "LIC"):
            expected = ("imagecaptioner2_lic", "")
        own = as_measured(row)
        assert (own["metric"], own["direction"]) == expected and own["metric"] in METRICS
    unnamed = table_of(published, "dbac", "4", attribute="race").to_dict("records")
    assert {row["metric"] for row in unnamed if no_counterpart(row)} == {"DPA", "BA"}
    assert {key: len(own) for key, own in reasons.items()} == {
        ("repro", "1"): 1,
        ("imgcap2", "5"): 1,
        ("imgcap2", "6"): 1,
        ("dbac", "3"): 1,
        ("dbac", "4"): 1,
        **{("dbac", name): 1 for name in ("5a", "5b", "6a", "6b", "7", "8a", "8b", "16", "17a", "17b")},
    }
    without = set()
    for row in published[published["paper"] == "genderscore"].to_dict("records"):
        if no_counterpart(row):
            without.add(row["table"])
        else:
            assert as_measured(row)["metric"] in METRICS
    assert without == {"1", "7", "9"}


def test_the_page_says_why_nothing_can_stand_beside(published):
    found = beside_measured(table_of(published, "dbac", "5a"), measured())
    assert set(beside_table(found)["measured with"]) == {
        "it compares encoders: the Encoders page gives it of measured scores"
    }
    headline, support = beside_sentence(found, "T")
    assert headline == "Nothing that is measured here is what this table prints."
    assert (
        "39 numbers (CV_LIC, CV_DBAC, CV_reduction_percent; gender) cannot have one: it compares" in support
        and "0 measured values stand" in support
    )
    some = beside_measured(table_of(published, "dbac", "8a"), measured())
    assert (
        "3 numbers (DBAC_H; gender) cannot have one: a mean over the paper's captioners."
        in beside_sentence(some, "T")[1]
    )


def test_scales_are_converted(published):
    """DBAC prints LIC x1: 5 [4, 6] x100 here is 0.05 there, and its protocol is another."""
    rows = table_of(published, "dbac", "11", model="sat", encoder="lstm_bi")
    row = only(beside_measured(rows, measured({"metric": "LIC", "value": 5.0, "ci_low": 4.0, "ci_high": 6.0})))
    assert [row[f"measured_{name}"] for name in ("value", "ci_low", "ci_high")] == pytest.approx([0.05, 0.04, 0.06])
    assert row["holds"] == "another protocol, decides nothing"


def test_counting_metrics_have_no_encoder_and_decide(published):
    rows = table_of(published, "lic", "1", model="nic", metric="ratio")
    own = {"model": "nic", "metric": "ratio", "encoder": "", "value": 2.47, "ci_low": 2.4, "ci_high": 2.6, "scale": 1.0}
    assert only(beside_measured(rows, measured(own)))["holds"] == "yes"


@pytest.mark.parametrize(
    ("change", "holds"),
    [({"ci_low": None, "ci_high": None}, "no interval, decides nothing"), ({"value": math.nan}, "not measured")],
)
def test_what_has_no_interval_or_value_decides_nothing(published, change, holds):
    assert only(beside_measured(sat(published), measured(change)))["holds"] == holds


@pytest.mark.long
def test_every_printed_table_can_be_shown(published):
    own = measured(*({"model": name, "metric": metric} for name in NAMES for metric in ("LIC", "LIC_M")))
    for (paper, name), rows in published.groupby(["paper", "table"]):
        found = beside_measured(rows, own)
        shown = beside_table(found)
        assert len(shown) == len(rows) and HOLDS in shown and (shown["printed"] != "").all(), (paper, name)
        assert PAPERS[paper] in beside_sentence(found, PAPERS[paper])[1]


def test_the_table_says_everything_in_words(published):
    own = measured({"model": "Sat", "spread": 0.75, "condition": "", "ci_low": 43.25})
    row = only(beside_table(beside_measured(sat(published), own)))
    assert row["printed"] == "44.4 ±1.4" and row["measured"] == "44.0 ±0.8 [43.2, 45.0]"
    assert row["measured with"] == "Sat, lstm_bi, 3 seeds" and row[HOLDS] == "yes"
    assert len({cell_style("yes"), cell_style("no"), cell_style("another encoder, decides nothing")}) == 3


def test_the_sentence_counts_what_decides(published):
    rows = table_of(published, "lic", "2", metric="LIC_M", encoder="lstm_bi")
    found = beside_measured(rows, measured({}, {"model": "updn"}, {"model": "fc", "encoder": "ngram"}))
    headline, support = beside_sentence(found, "Table 2")
    assert headline == "1 of 2 measured intervals contain the published value."
    assert "9 numbers" in support and "3 measured values" in support
    assert beside_sentence(beside_measured(rows, measured({"encoder": "ngram"})), "T")[0].startswith(
        "Nothing here is decided"
    )
    assert "measured in this collection" in beside_sentence(beside_measured(rows, measured()), "T")[0]


# claims


def claim(title: str):
    return only_one([item for item in CLAIMS if item.title.startswith(title)])


def only_one(items: list):
    assert len(items) == 1
    return items[0]


def printed_verdicts(published, title: str) -> dict[tuple[str, str, str], str]:
    found = verdicts(claim(title), published, measured())
    assert {item.measured for item in found} == {OPEN}
    return {(item.paper, item.table, item.encoder): item.printed for item in found}


@pytest.mark.parametrize(
    ("title", "against"),
    [
        ("All amplify gender", {("lic", "2", "bert_ft"), ("repro", "2", "bert_ft")}),
        ("All amplify racial", {("repro", "3", "bert_ft"), ("repro", "3", "bert_pre")}),
        ("Robust to encoders: the order", {("repro", "2", "bert_pre")}),
        ("NIC+Equalizer", set()),
        ("Who amplifies age", {("repro", "4", name) for name in ("lstm_bi", "bert_ft", "bert_pre")}),
    ],
)
def test_verdicts_of_the_printed_rows(published, title, against):
    found = printed_verdicts(published, title)
    assert {key for key, verdict in found.items() if verdict == DISAGREE} == against
    assert set(found.values()) <= {AGREE, DISAGREE}
    assert len(found) == (3 if "age" in title else 6)


def test_the_sign_with_each_encoder_beside_lstm_bi(published):
    found = printed_verdicts(published, "Robust to encoders: the sign")
    agreeing = {key for key, verdict in found.items() if verdict == AGREE}
    assert len(found) == 10 and agreeing == {
        ("lic", "2", "bert_pre"),
        ("lic", "S1", "bert_ft"),
        ("lic", "S1", "bert_pre"),
        ("repro", "2", "bert_pre"),
    }


def test_reasons_name_the_rows(published):
    gender = verdicts(claim("All amplify gender"), published, measured())
    assert gender[1].printed_reason == "1 of 9 against: nic −0.8"
    assert gender[0].measured_reason == "no lstm_bi run yet"
    age = verdicts(claim("Who amplifies age"), published, measured())[0].printed_reason
    assert age == "1 of 9 against: att2in 1.5; above 0: att2in 1.5, updn 2.5, transformer 2.6, oscar 4.4"
    sign = verdicts(claim("Robust to encoders: the sign"), published, measured())[0].printed_reason
    assert sign == "1 of 9 against: nic −0.8 beside 3.7; conflict score 11.1%, ranking consistency 0.93"
    order = verdicts(claim("Robust to encoders: the order"), published, measured())[5].printed_reason
    assert order == "1 of 8 against: sat 1.0 beside nic 2.6 and nic_equalizer 9.2"


def lic(intervals: dict[str, tuple[float, float]], **more) -> pd.DataFrame:
    rows = [
        {"model": m, "metric": "LIC", "value": (a + b) / 2, "ci_low": a, "ci_high": b, **more}
        for m, (a, b) in intervals.items()
    ]
    return measured(*rows)


def own_verdict(published, title: str, rows: pd.DataFrame, encoder: str = "lstm_bi"):
    return next(item for item in verdicts(claim(title), published, rows) if item.encoder == encoder)


def test_measured_rows_decide_only_by_whole_intervals(published):
    above = dict.fromkeys(NAMES, (1.0, 3.0))
    assert own_verdict(published, "All amplify gender", lic(above)).measured == AGREE
    open_one = own_verdict(published, "All amplify gender", lic(above | {"nic": (-1.0, 3.0)}))
    assert open_one.measured == OPEN and open_one.measured_reason == "8 of 9 hold; open: nic 1.0 [−1.0, 3.0]"
    below = own_verdict(published, "All amplify gender", lic(above | {"nic": (-3.0, -1.0)}))
    assert below.measured == DISAGREE and "nic −2.0 [−3.0, −1.0]" in below.measured_reason


def test_captioners_that_were_not_measured_leave_a_claim_open(published):
    few = own_verdict(published, "All amplify gender", lic({"NIC": (1.0, 2.0), "Sat": (1.0, 2.0)}))
    assert few.measured == OPEN and few.measured_reason.startswith("2 of 9 hold; open: fc not measured")
    assert own_verdict(published, "NIC+Equalizer", lic({"nic_plus": (1.0, 2.0)})).measured == OPEN


@pytest.mark.long
def test_another_encoder_or_attribute_decides_no_claim(published):
    above = dict.fromkeys(NAMES, (1.0, 3.0))
    assert own_verdict(published, "All amplify gender", lic(above, encoder="ngram")).measured == OPEN
    assert own_verdict(published, "All amplify gender", lic(above, attribute="race")).measured == OPEN
    assert own_verdict(published, "All amplify racial", lic(above, attribute="race")).measured == AGREE
    part = own_verdict(published, "All amplify gender", lic(above, coverage="with_references"))
    assert part.measured == AGREE and part.measured_reason.endswith("(images with references)")
    assert own_verdict(published, "All amplify gender", lic(above, condition="masked_person")).measured == OPEN
    below = lic(dict.fromkeys(NAMES, (-3.0, -1.0)), coverage="with_references")
    both = own_verdict(published, "All amplify gender", pd.concat([below, lic(above)]))
    assert both.measured == AGREE and "images with references" not in both.measured_reason, "all images come first"


@pytest.mark.parametrize(
    ("plus", "equalizer", "verdict"), [((1, 2), (3, 4), AGREE), ((1, 3), (2, 4), OPEN), ((3, 4), (1, 2), DISAGREE)]
)
def test_one_captioner_above_another(published, plus, equalizer, verdict):
    rows = lic({"NIC+": plus, "NIC+Equalizer": equalizer})
    assert own_verdict(published, "NIC+Equalizer", rows).measured == verdict


def test_the_order_by_intervals(published):
    between = dict.fromkeys(NAMES, (3.0, 4.0))
    right = between | {"nic": (1.0, 2.0), "nic_equalizer": (5.0, 6.0)}
    assert own_verdict(published, "Robust to encoders: the order", lic(right)).measured == AGREE
    assert own_verdict(published, "Robust to encoders: the order", lic(right | {"fc": (0.0, 0.5)})).measured == DISAGREE
    assert own_verdict(published, "Robust to encoders: the order", lic(right | {"fc": (1.5, 2.5)})).measured == OPEN


@pytest.mark.long
def test_the_sign_needs_both_encoders(published):
    above = dict.fromkeys(NAMES, (1.0, 3.0))
    one = own_verdict(published, "Robust to encoders: the sign", lic(above, encoder="bert_ft"), "bert_ft")
    assert (one.measured, one.measured_reason) == (OPEN, "no lstm_bi run yet")
    both = pd.concat([lic(above), lic(above, encoder="bert_ft")])
    assert own_verdict(published, "Robust to encoders: the sign", both, "bert_ft").measured == AGREE
    turned = pd.concat([lic(above), lic(above | {"fc": (-3.0, -1.0)}, encoder="bert_ft")])
    assert own_verdict(published, "Robust to encoders: the sign", turned, "bert_ft").measured == DISAGREE


@pytest.mark.long
def test_summaries_are_careful(published):
    none = summary(verdicts(claim("All amplify gender"), published, measured()))
    assert none == (
        "Printed rows agree in 4 of 6 cases; they disagree with bert_ft (LIC table 2, reproduction table 2). "
        "Measured: not decided, no lstm_bi, bert_ft or bert_pre run yet."
    )
    some = summary(verdicts(claim("All amplify gender"), published, lic({"nic": (1.0, 2.0)})))
    assert "Measured: not decided, lstm_bi (1 of 9 hold; open: sat not measured" in some
    whole = summary(verdicts(claim("All amplify gender"), published, lic(dict.fromkeys(NAMES, (1.0, 2.0)))))
    assert whole.endswith("Measured: lstm_bi (gender) agrees.")
    assert not any("unbiased" in claim_block(item, verdicts(item, published, measured())) for item in CLAIMS)


def test_a_changed_printed_row_changes_the_verdict(published):
    changed = published.copy()
    here = (changed["paper"] == "lic") & (changed["table"] == "2") & (changed["metric"] == "LIC")
    changed.loc[here & (changed["model"] == "sat") & (changed["encoder"] == "lstm_bi"), "value"] = -0.1
    assert verdicts(claim("All amplify gender"), changed, measured())[0].printed == DISAGREE


@pytest.mark.long
def test_nothing_of_a_name_is_markup(published):
    rows = lic({"<b>nic": (1.0, 2.0)})
    text = "".join(claim_block(item, verdicts(item, published, rows)) for item in CLAIMS)
    assert "<b>nic" not in text and "NIC+Equalizer" in text and text.count("<details>") == len(CLAIMS)


# a workspace, and the page


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """The demo with runs of one captioner: 2 and 3 seeds, merged masks, and counts."""
    folder = tmp_path_factory.mktemp("home")
    ingest.load_demo(Workspace(folder))
    score = [
        "score",
        "--workspace",
        str(folder),
        "--collection",
        "demo",
        "--attribute",
        "gender",
        "--captions",
        "faithful",
    ]
    for more in (["lic", "--seeds", "3"], ["lic", "--seeds", "2"], ["ratio"], ["lic", "--seeds", "4", "--merge-masks"]):
        assert cli.main([*score, "--metric", *more, "--output", str(folder / "out.csv")]) == 0
    return folder


@pytest.mark.long
def test_most_seeds_count_and_merged_masks_do_not(home):
    rows = measured_rows(Workspace(home), "demo")
    assert not rows.duplicated(["model", "metric", "direction", *ORIGIN_COLUMNS, "encoder"]).any()
    by_metric = rows.set_index("metric")["seeds"]
    assert by_metric["LIC"] == 3 and by_metric["ratio"] == 0
    assert measured_rows(Workspace(home), "no such collection").empty


@pytest.mark.long
def test_of_two_annotators_columns_the_first_is_read_whichever_run_is_newer(tmp_path):
    """The second annotator's labels are the other way round: with both equally sure, the first one's rows stand."""
    workspace = Workspace(tmp_path)
    rows = [{"image_id": str(n), "a": ("Male", "Female")[n % 2], "b": ("Female", "Male")[n % 2]} for n in range(40)]
    frame = pd.DataFrame(rows)
    captions = [{"image_id": n, "caption": f"a {('man', 'woman')[n % 2]}"} for n in range(40)]
    items = keep(workspace, labels=frame, attribute=("gender=a", "gender=b"), captions={"x": captions})
    first, second = items["labels a"], items["labels b"]
    assert table_with(workspace.items("attributes", "c"), "gender").name == first.name
    for table in (first, second):
        run_here(workspace, plan(workspace, Request("c", ("x",), table.name, "gender", ("error",))), "c")
    errors = {run.spec.labels["column"]: workspace.results([run.run_id]) for run in workspace.runs()}
    wrong = {own: float(rows.set_index("metric").loc["error", "value"]) for own, rows in errors.items()}
    assert wrong == {"a": 0.0, "b": 100.0}
    shown = measured_rows(workspace, "c")
    assert list(shown[shown["metric"] == "error"]["value"]) == [0.0]


def test_measured_rows_say_whose_captions_and_what_was_masked(tmp_path):
    workspace = Workspace(tmp_path / "home")
    frame = pd.DataFrame({"image_id": list("abcd"), "caption_index": 0, "caption": ["a man"] * 3 + ["a woman"]})
    labels = pd.DataFrame({"image_id": list("abcd"), "gender": ["Male", "Male", "Female", "Female"]})
    keep(workspace, labels=labels, captions=dict.fromkeys(("sat", "sat_masked_person"), frame))
    engine = Engine(workspace.folder)
    asked = Request("c", ("sat", "sat_masked_person"), "labels", "gender", ("ratio",))
    engine.wait(engine.submit(plan(workspace, asked), "c"))
    engine.close()
    rows = measured_rows(workspace, "c").set_index("model")
    assert rows["captioner"].to_dict() == {"sat": "sat", "sat_masked_person": "sat"}
    assert rows["masked"].to_dict() == {"sat": "original", "sat_masked_person": "person"}
    assert set(of_originals(rows).index) == {"sat"}, "a masked set is no captioner more"


@pytest.mark.long
@pytest.mark.parametrize("loaded", [True, False])
def test_the_page(home, tmp_path, monkeypatch, loaded):
    from streamlit.testing.v1 import AppTest

    monkeypatch.setenv("CAPBIAS_HOME", str(home if loaded else tmp_path / "empty"))
    monkeypatch.chdir(ROOT)
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).switch_page("pages/5_Published.py").run()
    assert not page.exception
    assert len(page.dataframe[0].value) == 99
    page.selectbox(key="paper").set_value("repro").run()
    page.selectbox(key="printed_table").set_value("4").run()
    assert not page.exception
    assert len(page.dataframe[0].value) == 81 and set(page.dataframe[0].value[HOLDS]) == {"not measured"}
