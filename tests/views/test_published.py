"""Printed numbers beside measured ones: what matches, what decides, and what contradicts a paper."""

import io
import math

import pandas as pd
import pytest

from capbias_core.cli.views import app
from capbias_core.errors import CapbiasError
from capbias_core.load.published import published_results
from capbias_core.measures.registry import METRICS
from capbias_core.question import Question
from capbias_core.runs.engine import run_all
from capbias_core.runs.plan import plan
from capbias_core.views import published as view
from capbias_core.views.choose import choose
from capbias_core.views.choose import measured_rows as rows_of
from capbias_core.views.files import content
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep
from tests.views.rows import frame, row

NAMES = ("nic", "sat", "fc", "att2in", "updn", "transformer", "oscar")


@pytest.fixture(scope="module")
def published() -> pd.DataFrame:
    return published_results()


def measured(*rows: dict) -> pd.DataFrame:
    """Measured LIC_M of sat for gender with lstm_bi, 44 [43, 45] x100, unless a row says otherwise."""
    usual = {"metric": "LIC_M", "value": 44.0, "low": 43.0, "high": 45.0}
    usual |= {"model": "sat", "encoder": "lstm_bi", "seeds": 3}
    of_set = ("whose", "masked")
    found = frame(*(row(**(usual | {k: v for k, v in given.items() if k not in of_set})) for given in rows))
    found = found.astype(dict.fromkeys(("value", "spread", "scale", "ci_low", "ci_high"), float))
    found = found[found["value"].notna()].rename(columns={"model": "captioner", "ci_low": "low", "ci_high": "high"})
    whose = [given.get("whose", name) for given, name in zip(rows, found["captioner"], strict=False)]
    masked = [given.get("masked", "original") for given in rows][: len(found)]
    return found.assign(whose=whose, masked=masked, setting="", setting_name="lstm_bi, 3 seeds", other="")


def table_of(published: pd.DataFrame, paper: str, name: str, **only) -> pd.DataFrame:
    rows = published[(published["paper"] == paper) & (published["table"] == name)]
    for column, value in only.items():
        rows = rows[rows[column] == value]
    return rows


def only(frame: pd.DataFrame) -> pd.Series:
    assert len(frame) == 1
    return frame.iloc[0]


def decision(frame: pd.DataFrame) -> str:
    """Of the only row."""
    return only(frame)["holds"] or only(frame)["reason"]


PART = {"coverage": "with_references", "value": 42.0}
# What is measured beside LIC_M of sat with lstm_bi, 44.4 in LIC's table 2 -> what decides, and the value that counts.
BESIDE = {
    "the interval holds it": ([{}], "yes", 44.0),
    "it is below the interval": ([{"ci_low": 44.5}], "no", 44.0),
    "another encoder": ([{"encoder": "ngram"}], "another encoder", 44.0),
    "the same encoder comes first": ([{"encoder": "ngram", "value": 43.0}, {}], "yes", 44.0),
    "a part of the images": ([PART], "part of the images", 42.0),
    "all images come first": ([PART, {}], "yes", 44.0),
    "the printed encoder comes before all images": ([{"encoder": "ngram"}, PART], "part of the images", 42.0),
    "no interval": ([{"ci_low": None, "ci_high": None}], "no interval", 44.0),
    "no value": ([{"value": math.nan}], "not measured", math.nan),
    "another metric": ([{"metric": "SC"}], "not measured", math.nan),
    "masked photographs": ([{"masked": "person"}], "not measured", math.nan),
}


@pytest.mark.parametrize(("rows", "holds", "value"), BESIDE.values(), ids=BESIDE)
def test_what_decides_whether_a_printed_number_holds(published, rows, holds, value):
    printed = table_of(published, "lic", "2", model="sat", metric="LIC_M", encoder="lstm_bi")
    found = view.beside(printed, measured(*rows))
    assert decision(found) == holds and only(found)["value"] == pytest.approx(value, nan_ok=True)
    shown = view.PUBLISHED.table(found)
    assert shown.texts.loc[0, ["printed", "±"]].tolist() == ["44.4", "1.4"]
    assert shown.numbers.loc[0, "printed"] == 44.4


def test_captions_of_fewer_images_decide_nothing(published):
    printed = table_of(published, "lic", "1", model="sat", metric="error")
    for n, holds in ((10_700, "yes"), (600, "other images")):
        counted = measured({"metric": "error", "encoder": "", "value": 7.5, "ci_low": 7.0, "ci_high": 8.0, "n": n})
        assert decision(view.beside(printed, counted)) == holds


def test_sets_are_beside_their_captioner_and_their_condition(published):
    """NIC and NIC+ are two captioners. DBAC's Table 4 prints BA→ (Wang & Russakovsky) as BA; the BA here is that of
    Zhao et al., another quantity."""

    def values(printed: pd.DataFrame, *rows: dict, by: str = "condition") -> dict:
        return view.beside(printed, measured(*rows)).set_index(by)["value"].dropna().to_dict()

    rows = table_of(published, "lic", "2", metric="LIC", encoder="lstm_bi")
    names = (("NIC", 1.0), ("NIC+", 2.0), ("NIC+Equalizer", 3.0))
    own = [{"model": name, "metric": "LIC", "value": v} for name, v in names]
    assert values(rows, *own, by="captioner") == {"nic": 1.0, "nic_plus": 2.0, "nic_equalizer": 3.0}
    rows = table_of(published, "lic", "4", model="sat")
    own = [
        {},
        {"model": "sat_masked_person", "whose": "SAT", "masked": "person", "value": 39.0},
        {"model": "sat of boxes", "whose": "sat", "masked": "box", "value": 38.0},
        {"model": "oscar_masked_both", "whose": "oscar", "masked": "both", "value": 37.0},
    ]
    assert values(rows, *own) == {"original": 44.0, "masked_person": 39.0}
    own = [
        {"model": name, "whose": "blip", "masked": masked, "metric": name, "value": value, "encoder": ""}
        for name in ("DBA_G", "BA")
        for masked, value in (("original", 1.0), ("box", 1.2))
    ]
    rows = table_of(published, "dbac", "4", metric="BA", attribute="gender")
    assert values(rows, *own) == {"original": 1.0, "bounding_box_masked": 1.2}


def test_scales_alignments_and_protocols_of_other_papers(published):
    """DBAC prints LIC x1: 5 [4, 6] x100 here is 0.05 there, by another protocol; of race it has three values."""
    rows = table_of(published, "dbac", "11", model="sat", encoder="lstm_bi")
    found = view.beside(rows, measured({"metric": "LIC", "value": 5.0, "ci_low": 4.0, "ci_high": 6.0}))
    assert found[["value", "low", "high"]].iloc[0].tolist() == pytest.approx([0.05, 0.04, 0.06])
    assert decision(found) == "another protocol"
    rows = table_of(published, "dbac", "13", model="sat", encoder="lstm")
    own = {"attribute": "race", "metric": "DBAC", "direction": "T->A", "encoder": "lstm", "scale": 1.0}
    aligned = own | {"alignment": "contextual_glove"}
    assert decision(view.beside(rows, measured(own))) == "another alignment"
    assert decision(view.beside(rows, measured(aligned))) == "another protocol"
    for paper, table, own in (
        ("dbac", "8a", {"metric": "DBAC_H", "direction": "A->T", "encoder": "lstm", "scale": 1.0}),
        ("imgcap2", "3", {"metric": "LIC", "encoder": "lstm_bi"}),
    ):  # the text names the encoder
        rows = table_of(published, paper, table, metric=own["metric"], model="sat")
        rows = rows[rows["condition"].isin(["", "constant"])]
        assert decision(view.beside(rows, measured(own))) == "no"
        assert decision(view.beside(rows, measured(own | {"encoder": "ngram"}))) == "another encoder"


# Paper, table, cells of a row -> how its note begins.
NOTES = [
    ("repro", "3", {"model": "updn", "encoder": "bert_pre", "metric": "LIC"}, "LIC_M − LIC_D is 39.4 − 33.1 = 6.3"),
    ("repro", "3", {"model": "updn", "encoder": "bert_ft", "metric": "LIC"}, ""),
    ("dbac", "9", {"model": "att2in", "direction": "T->A"}, "Table 10 prints +.0590"),
    ("dbac", "9", {"model": "att2in", "direction": "A->T"}, ""),
]


def test_a_note_is_beside_the_numbers_that_it_is_about(published):
    for paper, table, cells, begins in NOTES:
        rows = view.beside(table_of(published, paper, table, **cells), measured({}).iloc[:0])
        assert only(rows)["about"][: len(begins) or None] == begins, (table, cells)
        assert only(rows)["about"] in only(rows)["note"]
    tables = dict.fromkeys(published.loc[published["paper"] == "dbac", "table"])
    noted = [
        table
        for table in tables
        if any("contradicts" in note for note in view.PUBLISHED.notes(None, of_paper("dbac", table)))
    ]
    assert noted == ["10", "12a", "12b", "13", "15a", "15b"]


def of_paper(paper: str, table: str) -> pd.DataFrame:
    return view.published_rows(None, view.PublishedOptions(paper=paper, table=table))


def test_each_printed_number_has_a_name_here_or_a_reason(published):
    named = view.as_measured(published)
    without = named["reason"] != ""
    assert set(named.loc[~without, "metric"]) <= set(METRICS)
    tables = {"repro": "1", "imgcap2": "5 6", "genderscore": "1 2 3 4 5 6 7 8 9"}
    tables["dbac"] = "3 4 5a 5b 6a 6b 7 8a 8b 16 17a 17b"
    known = {(paper, name) for paper, names in tables.items() for name in names.split()}
    assert set(named.loc[without, ["paper", "table"]].itertuples(index=False, name=None)) == known


def test_the_main_table_has_bundled_measured_numbers():
    """Seven captioners; LIC is by another encoder and decides nothing, ratio and error do."""
    rows = of_paper("lic", "1").dropna(subset="value")
    assert set(rows["captioner"]) == set(NAMES) and set(rows["metric"]) == {"LIC", "LIC_M", "ratio", "error"}
    by_attacker = rows["metric"].isin(["LIC", "LIC_M"])
    assert set(rows.loc[by_attacker, "reason"]) == {"another encoder"}
    assert (rows.loc[~by_attacker, "holds"] == view.YES).all() and rows["other"].str.contains(view.BUNDLED).all()
    of_sat = rows[rows["captioner"] == "sat"].set_index("metric")["value"]
    assert of_sat["LIC"] == pytest.approx(2.6, abs=0.05) and of_sat["error"] == pytest.approx(7.28, abs=0.01)
    assert view.published_sentence(None, rows).startswith("14 of 14 comparable numbers of Table 1 of LIC")
    for ending in ("csv", "json", "tex", "txt"):
        assert content(view.PUBLISHED, None, rows, ending)


def test_the_command_needs_no_collection(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path))
    app(["published", "--paper", "dbac", "--table", "12b", "--format", "csv"], result_action="return_value")
    rows = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert len(rows) == 52 and rows["note"].str.startswith("No |LIC| here is above .0066").all()
    assert rows["printed"].abs().max() == 0.0066 and rows["holds"].isna().all()
    with pytest.raises(CapbiasError, match="99"):
        of_paper("lic", "99")


@pytest.mark.long
def test_of_a_collection_most_seeds_count_and_merged_masks_do_not(tmp_path):
    workspace = Workspace(tmp_path)
    rows = [{"image_id": str(n), "gender": ("Male", "Female")[n % 2]} for n in range(80)]
    captions = [{"image_id": n, "caption": f"a {('man', 'woman')[n % 2]} {n % 7}"} for n in range(80)]
    sets = {"sat": captions, "sat_masked_person": captions}
    keep(workspace, labels=pd.DataFrame(rows), captions=sets)
    for seeds, merge in ((3, False), (2, False), (4, True)):  # the papers mask word by word
        request = Question(
            "c", tuple(sets), "labels", "gender", ("LIC_M",), seeds=seeds, options={"merge_masks": merge}
        )
        run_all(workspace, plan(workspace, request), "c")
    choice = choose(workspace, rows_of(workspace, "c"), {"collection": "c", "setting": "ngram, 2 seeds"})
    found = view.published_rows(choice, view.PublishedOptions(paper="lic", table="4")).dropna(subset="value")
    assert found[["captioner", "condition"]].values.tolist() == [["sat", "original"], ["sat", "masked_person"]]
    assert set(found["seeds"]) == {2} and set(found["other"]) == {""}, "as chosen"
    choice = choose(workspace, rows_of(workspace, "c"), {"collection": "c", "setting": "ngram, 4 seeds, merged masks"})
    found = view.published_rows(choice, view.PublishedOptions(paper="lic", table="4")).dropna(subset="value")
    assert set(found["seeds"]) == {3} and set(found["other"]) == {"ngram, 3 seeds"}
