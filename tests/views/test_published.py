"""Printed figures beside measured ones: matching, what decides, and the papers' claims."""

import io
import math

import pandas as pd
import pytest

from capbias_core.cli import main
from capbias_core.load.published import published_results
from capbias_core.measures.registry import METRICS
from capbias_core.question import Question
from capbias_core.runs.engine import run_all
from capbias_core.runs.plan import plan
from capbias_core.types import ORIGIN_COLUMNS
from capbias_core.views import published as view
from capbias_core.views.claims import AGREE, CLAIMS, DISAGREE, OPEN, claim_block, verdicts
from capbias_core.workspace.labels import table_with
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep
from tests.views.rows import frame, row

NAMES = ("nic", "sat", "fc", "att2in", "updn", "transformer", "oscar", "nic_plus", "nic_equalizer")


@pytest.fixture(scope="module")
def published() -> pd.DataFrame:
    return published_results()


def measured(*rows: dict) -> pd.DataFrame:
    """Measured LIC_M of sat for gender with lstm_bi, 44 [43, 45] x100, unless a row says otherwise.

    captioner, masked: of a row, if its set was named so.
    """
    usual = {"metric": "LIC_M", "value": 44.0, "low": 43.0, "high": 45.0}
    usual |= {"model": "sat", "encoder": "lstm_bi", "seeds": 3}
    own = pd.DataFrame(rows).reindex(columns=["captioner", "masked"])
    plain = [{key: value for key, value in given.items() if key not in own} for given in rows]
    found = frame(*(row(**(usual | given)) for given in plain))
    found = found.astype(dict.fromkeys(("value", "spread", "scale", "ci_low", "ci_high"), float))
    return found.join(own) if "masked" in rows[0] else found


NOTHING = measured({}).iloc[:0]


def table_of(published: pd.DataFrame, paper: str, name: str, **only) -> pd.DataFrame:
    rows = published[(published["paper"] == paper) & (published["table"] == name)]
    for column, value in only.items():
        rows = rows[rows[column] == value]
    return rows


def only(frame: pd.DataFrame) -> pd.Series:
    assert len(frame) == 1
    return frame.iloc[0]


PART = {"coverage": "with_references", "value": 42.0}
# What is measured beside LIC_M of sat with lstm_bi, 44.4 in LIC's table 2 -> what decides, and the value that counts.
BESIDE = {
    "the interval holds it": ([{}], "yes", 44.0),
    "it is below the interval": ([{"ci_low": 44.5}], "no", 44.0),
    "another encoder": ([{"encoder": "ngram"}], "another encoder, not comparable", 44.0),
    "the same encoder comes first": ([{"encoder": "ngram", "value": 43.0}, {}], "yes", 44.0),
    "a part of the images": ([PART], "part of the images, not comparable", 42.0),
    "the printed encoder comes first": ([PART, {"encoder": "ngram"}], "part of the images, not comparable", 42.0),
    "no interval": ([{"ci_low": None, "ci_high": None}], "no interval, not comparable", 44.0),
    "no value": ([{"value": math.nan}], "not measured", math.nan),
    "a group": ([{"group": "Female"}], "not measured", math.nan),
    "another metric": ([{"metric": "SC"}], "not measured", math.nan),
    "another condition": ([{"condition": "masked_person"}], "not measured", math.nan),
}


@pytest.mark.parametrize(("rows", "holds", "value"), BESIDE.values(), ids=BESIDE)
def test_what_decides_whether_a_printed_value_was_reproduced(published, rows, holds, value):
    printed = table_of(published, "lic", "2", model="sat", metric="LIC_M", encoder="lstm_bi")
    row = only(view.beside_measured(printed, measured(*rows)))
    assert row["value"] == 44.4 and row["holds"] == holds
    assert row["measured_value"] == pytest.approx(value, nan_ok=True)
    shown = only(view.beside_table(view.beside_measured(printed, measured(*rows))))
    assert shown["published"] == "44.4 ±1.4" and shown[view.HOLDS] == holds


def test_sets_are_beside_their_captioner_and_their_condition(published):
    """NIC and NIC+ are two captioners. DBAC's Table 4 prints BA→ (Wang & Russakovsky) as BA; the BA here is that of
    Zhao et al., another quantity."""
    rows = table_of(published, "lic", "2", metric="LIC", encoder="lstm_bi")
    names = (("NIC", 1.0), ("NIC+", 2.0), ("NIC+Equalizer", 3.0))
    found = view.beside_measured(rows, measured(*({"model": name, "metric": "LIC", "value": v} for name, v in names)))
    values = found.set_index("model")["measured_value"].dropna().to_dict()
    assert values == {"nic": 1.0, "nic_plus": 2.0, "nic_equalizer": 3.0}
    rows = table_of(published, "lic", "4", model="sat")
    own = measured(
        {"captioner": "sat", "masked": "original"},
        {"model": "sat_masked_person", "captioner": "SAT", "masked": "person", "value": 39.0},
        {"model": "sat of boxes", "captioner": "sat", "masked": "box", "value": 38.0},
        {"model": "oscar_masked_both", "captioner": "oscar", "masked": "both", "value": 37.0},
    )
    found = view.beside_measured(rows, own).set_index("condition")
    assert found["measured_value"].dropna().to_dict() == {"original": 44.0, "masked_person": 39.0}
    assert found.at["masked_person", "captioner"] == "sat_masked_person"
    own = measured(
        *(
            {"model": name, "captioner": "blip", "masked": masked, "metric": name, "value": value, "encoder": ""}
            for name in ("DBA_G", "BA")
            for masked, value in (("original", 1.0), ("box", 1.2))
        )
    )
    rows = table_of(published, "dbac", "4", metric="BA", attribute="gender")
    found = view.beside_measured(rows, own).set_index("condition")
    assert found["measured_value"].dropna().to_dict() == {"original": 1.0, "bounding_box_masked": 1.2}
    assert set(found["captioner"]) == {"DBA_G", ""}


# Paper, table, cells of a row -> how its note begins; and the same of whole tables.
NOTES = [
    ("lic", "4", {"model": "oscar", "condition": "original"}, "The table prints a difference of +23.2"),
    ("repro", "3", {"model": "updn", "encoder": "bert_pre", "metric": "LIC"}, "LIC_M − LIC_D is 39.4 − 33.1 = 6.3"),
    ("repro", "3", {"model": "updn", "encoder": "bert_ft", "metric": "LIC"}, ""),
    ("dbac", "9", {"model": "att2in", "direction": "T->A"}, "Table 10 prints +.0590"),
    ("dbac", "9", {"model": "att2in", "direction": "A->T"}, ""),
    ("dbac", "10", {"model": "blip", "encoder": "lstm"}, "Tables 4 and 9 print +9.98"),
    ("dbac", "10", {"model": "blip", "encoder": "rnn"}, ""),
    ("dbac", "4", {"attribute": "gender", "metric": "LIC", "condition": "original"}, "LIC of BLIP is 11.26"),
    ("dbac", "4", {"attribute": "race", "metric": "LIC", "condition": "original"}, ""),
    ("dbac", "3", {"model": "C1", "metric": "LIC_H"}, "The caption calls more than .5 biased"),
    ("imgcap2", "3", {"model": "nic", "metric": "ratio"}, "The caption says female over male"),
    ("genderscore", "3", {"model": "oscar", "metric": "ratio_to_m", "condition": "gender_score"}, ""),
    (
        *("genderscore", "3", {"model": "oscar", "metric": "ratio_to_m", "condition": "gender_object_distance"}),
        ".054 /",
    ),
]


def test_a_note_is_beside_the_rows_that_it_is_about(published):
    for paper, table, cells, begins in NOTES:
        rows = table_of(published, paper, table, **cells)
        text = only(view.noted(view.beside_measured(rows, NOTHING)))["note"]
        whole = view.table_note(paper, table)
        assert text.removeprefix(whole).strip()[: len(begins) or None] == begins, (table, cells)
        assert view.beside_table(view.beside_measured(rows, NOTHING)).get("note", pd.Series([""]))[0] in text
    noted = [table for table in dict.fromkeys(published["table"]) if view.table_note("dbac", table)]
    assert noted == ["10", "12a", "12b", "13", "15a", "15b"]


def test_the_command_writes_printed_values_with_their_notes(capsys):
    assert main(["view", "published", "--paper", "dbac", "--table", "12b"]) == 0
    rows = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert len(rows) == 52 and rows["note"].str.startswith("No |LIC| here is above .0066").all()
    assert rows["value"].abs().max() == 0.0066 and set(rows["holds"]) == {"not measured"}
    assert main(["view", "published", "--table", "99"]) == 2


def test_notes_say_what_the_printed_numbers_give(published):
    def values(paper: str, table: str, **only) -> pd.Series:
        return table_of(published, paper, table, **only).set_index(["model", "encoder"])["value"]

    (reduction,) = {round(values("dbac", "5b", metric="CV_reduction_percent").mean(), 2)}
    assert reduction == 75.8
    assert [values("dbac", name).abs().max() for name in ("12b", "15b")] == [0.0066, 0.0049]
    assert (values("dbac", "10") == values("dbac", "13")).groupby("model").all().pipe(
        lambda same: [*same[same].index]
    ) == ["llava"]
    by_lstm = 100 * values("dbac", "10", encoder="lstm") - values("dbac", "9", direction="T->A")
    assert [*by_lstm[by_lstm.abs() > 0.011].index.get_level_values(0)] == ["att2in", "blip"]
    differ = {}
    for paper, table in (("lic", "2"), ("lic", "S1"), ("repro", "2"), ("repro", "3"), ("repro", "4")):
        of_m, of_d, lic = (values(paper, table, metric=name) for name in ("LIC_M", "LIC_D", "LIC"))
        off = (of_m - of_d - lic).abs() > 0.11
        differ |= {(paper, table, *key): None for key in off[off].index}
    assert [*differ] == [("repro", "3", name, "bert_pre") for name in ("updn", "transformer")]
    counts = {kind: values("genderscore", "6", metric=f"count_{kind}", condition="object_gender_cooccurrence")
              for kind in ("man", "woman")}  # fmt: skip
    printed = [values("genderscore", "3", metric=f"leakage_{kind}", condition="gender_score") for kind in "mw"]
    wrong = [
        [*own.index[(own - count / people).abs() > 0.011].get_level_values(0)]
        for own, count, people in zip(printed, counts.values(), (930, 291), strict=True)
    ]
    assert wrong == [["oscar", "blip2"], ["aoanet"]]


def test_race_with_unsure_is_beside_dbacs_race(published):
    rows = table_of(published, "dbac", "13", model="sat", encoder="lstm")
    own = {"metric": "DBAC", "direction": "T->A", "encoder": "lstm", "scale": 100.0, "alignment": "contextual_glove"}
    own |= {"attribute": view.WITH_UNSURE, "value": 10.0, "ci_low": 9.0, "ci_high": 11.0}
    assert only(view.beside_measured(rows, measured(own | {"n": 2156})))["holds"] == "yes"
    assert only(view.beside_measured(rows, measured(own | {"n": 2600})))["holds"] == "other images, not comparable"
    both = measured(own | {"n": 2156}, own | {"attribute": "race", "value": 1.0})
    assert only(view.beside_measured(rows, both))["measured_value"] == pytest.approx(0.1)


def test_scales_alignments_and_protocols_of_other_papers(published):
    """DBAC prints LIC x1: 5 [4, 6] x100 here is 0.05 there, by another protocol; of race it has three values."""
    rows = table_of(published, "dbac", "11", model="sat", encoder="lstm_bi")
    row = only(view.beside_measured(rows, measured({"metric": "LIC", "value": 5.0, "ci_low": 4.0, "ci_high": 6.0})))
    assert [row[f"measured_{name}"] for name in ("value", "ci_low", "ci_high")] == pytest.approx([0.05, 0.04, 0.06])
    assert row["holds"] == "another protocol, not comparable"
    rows = table_of(published, "dbac", "13", model="sat", encoder="lstm")
    own = {"attribute": "race", "metric": "DBAC", "direction": "T->A", "encoder": "lstm", "scale": 1.0}
    assert only(view.beside_measured(rows, measured(own)))["holds"] == "another alignment, not comparable"
    aligned = own | {"alignment": "contextual_glove"}
    assert only(view.beside_measured(rows, measured(aligned)))["holds"] == "another protocol, not comparable"
    gender = table_of(published, "dbac", "10", model="sat", encoder="lstm")
    assert only(view.beside_measured(gender, measured(aligned | {"attribute": "gender"})))["holds"] in ("yes", "no")
    rows = table_of(published, "lic", "1", model="nic", metric="ratio")
    own = {"model": "nic", "metric": "ratio", "encoder": "", "value": 2.47, "ci_low": 2.4, "ci_high": 2.6, "scale": 1.0}
    assert only(view.beside_measured(rows, measured(own)))["holds"] == "yes", "what is counted has no encoder"


@pytest.mark.parametrize(
    ("paper", "table", "own"),
    [
        ("dbac", "8a", {"metric": "DBAC_H", "direction": "A->T", "encoder": "lstm", "scale": 1.0}),
        ("imgcap2", "3", {"metric": "LIC", "encoder": "lstm_bi"}),
    ],
)
def test_encoders_that_the_text_names_decide(published, paper, table, own):
    rows = table_of(published, paper, table, metric=own["metric"], model="sat")
    printed = rows[rows["condition"].isin(["", "constant"])]
    assert only(view.beside_measured(printed, measured(own)))["holds"] == "no", "44 [43, 45] is far off"
    assert only(view.beside_measured(printed, measured(own | {"encoder": "ngram"})))["holds"].startswith(
        "another encoder"
    )


RENAMED = {
    ("dbac", "BA"): ("DBA_G", ""),
    ("dbac", "LIC_H"): ("LIC_D", ""),
    ("dbac", "DBAC_H"): ("DBAC_H", "A->T"),
    ("dbac", "METEOR"): ("METEOR_aligned", ""),
    ("dbac", "attribution_score_percent"): ("attribution_score", ""),
    ("imgcap2", "leakage_score"): ("imagecaptioner2_leakage", ""),
}


def test_each_printed_row_has_a_name_here_or_a_reason(published):
    """Renamed are those that are the same by their papers' text; all others keep their names."""
    without = set()
    for printed in published.to_dict("records"):
        if view.no_counterpart(printed):
            without.add((printed["paper"], printed["table"]))
            continue
        own = view.as_measured(printed)
        assert own["metric"] in METRICS
        if printed["paper"] != "genderscore":
            expected = RENAMED.get((printed["paper"], printed["metric"]), (printed["metric"], printed["direction"]))
            if (printed["paper"], printed["table"], printed["metric"]) == ("imgcap2", "2", "LIC"):
                expected = ("imagecaptioner2_lic", "")
            assert (own["metric"], own["direction"]) == expected
    tables = {"repro": "1", "imgcap2": "5 6", "genderscore": "1 7 9", "dbac": "3 4 5a 5b 6a 6b 7 8a 8b 16 17a 17b"}
    assert without == {(paper, name) for paper, names in tables.items() for name in names.split()}


def claim(title: str):
    (found,) = [item for item in CLAIMS if item.title.startswith(title)]
    return found


def test_verdicts_of_the_printed_rows(published):
    for title, cases, against in (
        ("All amplify gender", 6, {("lic", "2", "bert_ft"), ("repro", "2", "bert_ft")}),
        ("All amplify racial", 6, {("repro", "3", "bert_ft"), ("repro", "3", "bert_pre")}),
        ("Robust to encoders: the order", 6, {("repro", "2", "bert_pre")}),
        ("NIC+Equalizer", 6, set()),
        ("Who amplifies age", 3, {("repro", "4", name) for name in ("lstm_bi", "bert_ft", "bert_pre")}),
    ):
        found = verdicts(claim(title), published, NOTHING)
        assert len(found) == cases and {item.measured for item in found} == {OPEN}
        assert {(item.paper, item.table, item.encoder) for item in found if item.printed == DISAGREE} == against
        assert {item.printed for item in found} <= {AGREE, DISAGREE}
    # Of the other papers: (table, attribute) -> verdict, where not all agree.
    for title, cases, other in (
        ("All reduce A→T", 1, {}),
        ("Eight of 13", 11, {(table, "gender"): DISAGREE for table in ("10", "12a")}),
        ("Equalizer by direction", 1, {}),
        ("Contextual above constant", 6, {("16", "race"): OPEN}),  # three are equal to three decimals
        ("DBAC rises with masking", 2, {}),
        ("Only DBAC rises", 2, {("4", "gender"): DISAGREE, ("4", "race"): OPEN}),  # BA→ of race is −0.96 twice
        ("DBAC varies less", 4, {}),
        ("All amplify by ImageCaptioner²", 2, {}),
        ("Judges agree", 1, {}),
        ("Nearer to people", 1, {}),
        ("Gender Score is balanced", 1, {}),
        ("Gender Score aligns", 1, {("4", "gender"): OPEN}),
        ("Estimation favours", 1, {}),
    ):
        found = verdicts(claim(title), published, NOTHING)
        assert len(found) == cases and {item.measured for item in found} == {OPEN}, title
        assert {(item.table, item.attribute): item.printed for item in found if item.printed != AGREE} == other, title
    toward_men = {item.encoder: item.printed for item in verdicts(claim("Slight bias"), published, NOTHING)}
    assert [name for name, verdict in toward_men.items() if verdict == DISAGREE] == ["word2vec", "gn_glove"]
    (judges,) = verdicts(claim("Judges agree"), published, NOTHING)
    assert "conflict score 0.0% beside 11.1%, ranking consistency 0.961 beside 0.926" in judges.printed_reason
    # The sign with each encoder beside lstm_bi.
    found = verdicts(claim("Robust to encoders: the sign"), published, NOTHING)
    agreeing = {(item.paper, item.table, item.encoder) for item in found if item.printed == AGREE}
    bert = {("lic", "2", "bert_pre"), ("lic", "S1", "bert_ft"), ("lic", "S1", "bert_pre"), ("repro", "2", "bert_pre")}
    assert len(found) == 10 and agreeing == bert


def lic(intervals: dict[str, tuple[float, float]], **more) -> pd.DataFrame:
    usual = {"metric": "LIC", **more}
    rows = ({"model": m, "value": (a + b) / 2, "ci_low": a, "ci_high": b, **usual} for m, (a, b) in intervals.items())
    return measured(*rows)


ABOVE, BELOW = dict.fromkeys(NAMES, (1.0, 3.0)), dict.fromkeys(NAMES, (-3.0, -1.0))
ORDER = dict.fromkeys(NAMES, (3.0, 4.0)) | {"nic": (1.0, 2.0), "nic_equalizer": (5.0, 6.0)}
GENDER, PART_BELOW = "All amplify gender", lic(BELOW, coverage="with_references")
OTHER_SIGN = lic(ABOVE | {"fc": (-3.0, -1.0)}, encoder="bert_ft")
# Claim, measured rows -> verdict.
MEASURED = {
    "all above": (GENDER, [lic(ABOVE)], AGREE),
    "one open": (GENDER, [lic(ABOVE | {"nic": (-1.0, 3.0)})], OPEN),
    "one below": (GENDER, [lic(ABOVE | {"nic": (-3.0, -1.0)})], DISAGREE),
    "another encoder": (GENDER, [lic(ABOVE, encoder="ngram")], OPEN),
    "that attribute": ("All amplify racial", [lic(ABOVE, attribute="race")], AGREE),
    "images with references": (GENDER, [lic(ABOVE, coverage="with_references")], AGREE),
    "all images come first": (GENDER, [PART_BELOW, lic(ABOVE)], AGREE),
    "higher": ("NIC+Equalizer", [lic({"NIC+": (1, 2), "NIC+Equalizer": (3, 4)})], AGREE),
    "overlapping": ("NIC+Equalizer", [lic({"NIC+": (1, 3), "NIC+Equalizer": (2, 4)})], OPEN),
    "the order": ("Robust to encoders: the order", [lic(ORDER)], AGREE),
    "another order": ("Robust to encoders: the order", [lic(ORDER | {"fc": (0.0, 0.5)})], DISAGREE),
    "an open order": ("Robust to encoders: the order", [lic(ORDER | {"fc": (1.5, 2.5)})], OPEN),
    "both encoders": ("Robust to encoders: the sign", [lic(ABOVE), lic(ABOVE, encoder="bert_ft")], AGREE),
    "another sign": ("Robust to encoders: the sign", [lic(ABOVE), OTHER_SIGN], DISAGREE),
}


DBAC_NAMES = (*NAMES[:7], "nic_equalizer", "bakllava", "blip", "florence", "llava", "vit_gpt2")


def dbac(direction: str, low: float, added: float, names=DBAC_NAMES, **more) -> pd.DataFrame:
    """DBAC with lstm and what it adds to a constant attacker: intervals from low, and from added, to 2 more."""
    usual = {"direction": direction, "encoder": "lstm", "alignment": "contextual_glove"} | more
    return measured(
        *(
            {"model": name, "metric": metric, "value": start + 1, "ci_low": start, "ci_high": start + 2, "run_id": name}
            | usual
            for name in names
            for metric, start in (("DBAC", low), ("DBAC_added", added))
        )
    )


# Claim, measured rows -> verdict.
OF_DBAC = {
    "all below 0": ("All reduce A→T", dbac("A->T", -40.0, -5.0), AGREE),
    "a constant attacker gives it": ("All reduce A→T", dbac("A->T", -40.0, -1.0), OPEN),
    "all above 0": ("All reduce A→T", dbac("A->T", 3.0, 3.0), DISAGREE),
    "constant alignment": ("All reduce A→T", dbac("A->T", -40.0, -5.0, alignment=""), OPEN),
    "all above 0 by T→A": ("Eight of 13", dbac("T->A", 3.0, 3.0), DISAGREE),
    "Equalizer lower by T→A, higher by A→T": (
        "Equalizer by direction",
        pd.concat(
            dbac(way, low, 1.0, [name])
            for name, of_ways in (("nic", (9.0, 3.0)), ("nic_equalizer", (3.0, 9.0)))
            for way, low in zip(("T->A", "A->T"), of_ways, strict=True)
        ),
        AGREE,
    ),
    "rises with masking": (
        "DBAC rises",
        pd.concat(
            dbac("T->A", 3.0 * step, 1.0, ["blip"], captioner="blip", masked=masked)
            for step, masked in enumerate(("original", "part", "segment", "box"))
        ),
        AGREE,
    ),
}


@pytest.mark.parametrize(("title", "rows", "verdict"), OF_DBAC.values(), ids=OF_DBAC)
def test_measured_rows_decide_about_dbac_beyond_a_constant_attacker(published, title, rows, verdict):
    found = verdicts(claim(title), published, rows)
    assert next(item for item in found if item.encoder == "lstm" and item.attribute == "gender").measured == verdict


@pytest.mark.parametrize(("title", "rows", "verdict"), MEASURED.values(), ids=MEASURED)
def test_measured_rows_decide_only_by_whole_intervals(published, title, rows, verdict):
    encoder = "bert_ft" if "sign" in title else "lstm_bi"
    found = verdicts(claim(title), published, pd.concat(rows))
    assert next(item for item in found if item.encoder == encoder).measured == verdict


@pytest.mark.long
def test_nothing_of_a_name_is_markup(published):
    rows = lic({"<b>nic": (1.0, 2.0)})
    text = "".join(claim_block(item, verdicts(item, published, rows)) for item in CLAIMS)
    assert "<b>nic" not in text and "NIC+Equalizer" in text and text.count("<details>") == len(CLAIMS)


@pytest.mark.long
def test_of_two_annotators_columns_the_first_is_read_whichever_run_is_newer(tmp_path):
    """The second annotator's labels are the other way round: with both equally sure, the first one's rows stand."""
    workspace = Workspace(tmp_path)
    rows = [{"image_id": str(n), "a": ("Male", "Female")[n % 2], "b": ("Female", "Male")[n % 2]} for n in range(40)]
    captions = [{"image_id": n, "caption": f"a {('man', 'woman')[n % 2]}"} for n in range(40)]
    sets = {"sat": captions, "sat_masked_person": captions}
    items = keep(workspace, labels=pd.DataFrame(rows), attribute=("gender=a", "gender=b"), captions=sets)
    first, second = items["labels a"], items["labels b"]
    assert table_with(workspace.items("attributes", "c"), "gender").name == first.name
    for table in (first, second):
        run_all(workspace, plan(workspace, Question("c", tuple(sets), table.name, "gender", ("error",))), "c")
    found = {run.spec.labels["column"]: workspace.results([run.run_id]) for run in workspace.runs()}
    wrong = {column: float(rows.set_index("metric").loc["error", "value"]) for column, rows in found.items()}
    assert wrong == {"a": 0.0, "b": 100.0}
    shown = view.measured_rows(workspace, "c").query("metric == 'error'").set_index("model")
    assert shown["value"].tolist() == [0.0, 0.0] and set(shown["captioner"]) == {"sat"}
    assert shown["masked"].to_dict() == {"sat": "original", "sat_masked_person": "person"}
    assert set(view.of_originals(shown).index) == {"sat"}, "a masked set is no captioner more"
    for seeds, merge in ((3, False), (2, False), (4, True)):  # the papers mask word by word
        request = Question("c", ("sat",), first.name, "gender", ("SC",), seeds=seeds, options={"merge_masks": merge})
        run_all(workspace, plan(workspace, request), "c")
    rows = view.measured_rows(workspace, "c")
    assert rows.loc[rows["metric"] == "SC", "seeds"].tolist() == [3], "most seeds count, and merged masks do not"
    each = view.measured_rows(workspace, "c", each_seeds=True)
    assert sorted(each.loc[each["metric"] == "SC", "seeds"]) == [2, 3], "both, so that captioners can be compared"
    assert not rows.duplicated(["model", "metric", "direction", *ORIGIN_COLUMNS, "encoder"]).any()


def test_the_page_opens_on_the_main_table_of_lic_if_anything_of_it_is_measured(published):
    assert view.first_table(published, NOTHING) == ("lic", "1")
    encoders = {"lstm_bi": 44.0, "bert_ft": 44.2, "bert_pre": 44.4}
    by_encoder = measured(*({"encoder": name, "value": value} for name, value in encoders.items()))
    assert view.first_table(published, by_encoder) == ("lic", "1"), "though Table 2 has three of them"
    of_age = measured(*({"attribute": "age", "model": name, "encoder": "lstm"} for name in NAMES))
    assert view.first_table(published, of_age) == ("repro", "4")


def test_the_main_table_has_bundled_measured_values(published):
    """Seven captioners; LIC is by another encoder and decides nothing, ratio and error do."""
    printed = published[(published["paper"] == "lic") & (published["table"] == "1")]
    pairs = view.beside_measured(printed, view.bundled_rows()).dropna(subset="measured_value")
    assert set(pairs["model"]) == set(NAMES[:7]) and set(pairs["metric"]) == {"LIC", "LIC_M", "ratio", "error"}
    by_attacker = pairs["metric"].isin(["LIC", "LIC_M"])
    assert set(pairs.loc[by_attacker, "holds"]) == {"another encoder, not comparable"}
    assert set(pairs.loc[by_attacker, "measured_encoder"]) == {"ngram"}
    assert (pairs.loc[~by_attacker, "holds"] == view.YES).mean() > 0.8
    of_sat = pairs[pairs["model"] == "sat"].set_index("metric")["measured_value"]
    assert of_sat["LIC"] == pytest.approx(2.6, abs=0.05) and of_sat["error"] == pytest.approx(7.28, abs=0.01)
