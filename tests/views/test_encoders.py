"""What depends on the encoder: signs and orders by hand and as printed, the page, Scores, several attackers at once."""

import io
from dataclasses import replace

import pandas as pd
import pytest

from capbias_core import attackers, cli
from capbias_core.aggregate.comparison import ABOVE, BELOW, OPEN, ranks_by_encoder, sensitivity, sign
from capbias_core.attackers import load_attacker, ngram
from capbias_core.attackers.device import choose_device, trained_on
from capbias_core.errors import CapbiasError
from capbias_core.load.published import published_results
from capbias_core.measures.base import Outcome
from capbias_core.measures.registry import MEASURES
from capbias_core.question import Question
from capbias_core.runs.demo import demo_request
from capbias_core.runs.engine import run_all
from capbias_core.runs.plan import plan
from capbias_core.runs.run import run_one
from capbias_core.views import encoders
from capbias_core.views.charts import COLOURS, GREY
from capbias_core.views.consistency import alignment, variation
from capbias_core.views.results import comparisons
from capbias_core.workspace.ingest import DEMO, load_demo
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep
from tests.views.rows import frame, row

NAN = float("nan")


def said(model: str, encoder: str, value: float, *ends: float, metric: str = "LIC", **more) -> dict:
    return row(metric, value, *ends, model=model, encoder=encoder, **more)


# Three encoders about four captioners: `turns` is above 0 with one and below with another, `opens` is above with one
# and cannot be told with two, `stays` is above with all, `lonely` has one encoder only.
SAID = {
    "turns": ((4, 2, 6), (-4, -6, -2), (1, -1, 3)),
    "opens": ((3, 1, 5), (1, -1, 3), (0, -2, 2)),
    "stays": ((9, 8, 10), (9, 7, 11), (5, 4, 6)),
    "lonely": ((9, 8, 10),),
}
ROWS = frame(*(said(name, by, *own) for name, each in SAID.items() for by, own in zip("abc", each, strict=False)))
# a is sure that turns > opens, b is sure of the contrary; c cannot tell. All are sure that stays is highest.
ORDERS = [
    {("turns", "opens"): ABOVE, ("turns", "stays"): BELOW, ("opens", "stays"): BELOW},
    {("opens", "turns"): ABOVE, ("stays", "turns"): ABOVE, ("opens", "stays"): BELOW},
    {("turns", "opens"): OPEN, ("turns", "stays"): BELOW, ("opens", "stays"): BELOW},
]


def test_signs_and_orders_by_hand():
    """A sign is that of an interval clear of the neutral point; only sure and opposite orders are a change."""
    for value, low, high, neutral, expected in (
        (2, 1, 3, 0, ABOVE),
        (2, -1, 5, 0, OPEN),
        (-2, -3, -1, 0, BELOW),
        (30, 26, 34, 25, ABOVE),
        (30, 24, 36, 25, OPEN),
        (2, NAN, NAN, 0, ABOVE),
        (-2, NAN, NAN, 0, BELOW),
        (0, NAN, NAN, 0, OPEN),
        (2, 0, 4, 0, OPEN),
    ):
        assert sign(value, low, high, neutral) == expected
    found = sensitivity(ROWS, ORDERS)
    assert found.encoders == ("a", "b", "c") and found.judged == ["turns", "opens", "stays"]
    assert (found.turned, found.unsure) == (["turns"], ["opens"])
    assert found.swapped == (("opens", "turns"),) and found.moved == ["turns", "opens"]
    assert sensitivity(pd.DataFrame(columns=["value", "encoder"]), ORDERS[::2]).swapped == ()


def test_ranks_are_among_captioners_that_every_encoder_scored_and_the_best_has_1():
    ranks = ranks_by_encoder(ROWS)
    assert ranks.T.to_dict("list") == {"turns": [2, 1, 2], "opens": [1, 2, 1], "stays": [3, 3, 3]}
    rows = pd.DataFrame({"model": ["low", "middle", "high"], "encoder": "a", "value": [0.8, 1.1, 1.4]})
    for better, expected in (("lower", [1, 2, 3]), ("higher", [3, 2, 1]), ("neutral", [2, 1, 3])):
        found = ranks_by_encoder(rows, better, 1.0)["a"]
        assert found[["low", "middle", "high"]].tolist() == expected


@pytest.fixture(scope="module")
def published() -> pd.DataFrame:
    return published_results()


def test_one_captioner_of_nine_changes_sign_as_the_printed_conflict_score_says(published):
    """ImageCaptioner2, Table 4: LIC with lstm_bi against bert_ft conflicts for 11.11% of nine, which is one."""
    rows = encoders.rows_of(encoders.printed_scores(published, "imgcap2"), ("LIC", "", ""))
    own = encoders.sensitivity_of(None, rows)
    assert len(own.judged) == 9 and len(own.turned) == 1


@pytest.mark.long
@pytest.mark.parametrize("name", ["dbac_gender", "dbac_race"])
def test_cvs_of_what_is_shown_are_those_of_tables_5a_and_6a(published, name):
    rows = encoders.printed_scores(published, name)
    printed = encoders.printed_variation(published, name).set_index(["model", "measure"])["value"]
    ours = pd.concat([variation(encoders.rows_of(rows, key)) for key in encoders.answering(rows)])
    ours = ours.set_index(["model", "condition"])["value"]
    assert len(printed) == len(ours) == 26
    assert all(abs(printed[key] - ours[key]) <= max(0.02 * printed[key], 0.006) for key in printed.index)


def test_measures_with_lic_and_dbac_first_and_the_fullest_variant_before_others():
    rows = frame(
        said("m", "a", 1, metric="LIC_M"),
        said("m", "a", 1, metric="LIC_M", coverage="with_references"),
        said("m", "a", 1, alignment="contextual"),
        said("m", "a", 1),
        said("k", "a", 1, coverage="with_references"),
        said("m", "a", 1, metric="DBAC", direction="A->T"),
        said("m", "", 1, metric="ratio"),
        said("m", "a", 1, metric="printed elsewhere"),
        said("m", "a", 1, metric="DBAC", direction="T->A"),
    )
    lic, *dbac = [("LIC", "", ""), ("DBAC", "T->A", ""), ("DBAC", "A->T", "")]
    rest = [("LIC_M", "", ""), ("LIC_M", "", "with_references")]
    assert encoders.series_of(rows) == [lic, ("LIC", "", "contextual"), *dbac, *rest] and encoders.answering(rows) == [
        lic,
        *dbac,
    ]


def test_the_dots_hold_every_value_and_interval_and_print_in_grey(published):
    grey = encoders.like_named(
        encoders.rows_of(encoders.printed_scores(published, "lic_gender"), ("LIC", "", "")), ["nic"]
    ).assign(model="stays")
    figure = encoders.scores_by_encoder(ROWS, grey, ("LIC", "", ""), 2)
    assert [trace.name for trace in figure.data] == [*(f"{name}, published" for name in grey["encoder"]), "a", "b", "c"]
    beside, first = figure.data[0], figure.data[3]
    assert list(first.x) == [4, 3, 9, 9] and list(first.error_x.array) == [2, 2, 1, 1]
    assert [trace.marker.symbol for trace in figure.data[3:]] == ["circle", "square", "diamond"]
    assert {trace.marker.symbol for trace in figure.data[:3]} == {"triangle-up-open", "x-open", "triangle-down-open"}
    assert [trace.marker.color for trace in figure.data] == [GREY] * 3 + list(COLOURS[:3])
    assert beside.y[0] == pytest.approx(2 - 0.7 * (3.5 / 6 - 0.5))  # on the line of the captioner of the same name


class Misled(ngram.NgramAttacker):
    """Learns from captions that repeat one another by labels turned around; those of people repeat little. So it
    guesses from human captions as well as the other, and is surely wrong of captioners where the other is right."""

    def fit_many(self, corpus, trainings, n_values, tick):
        turned = []
        for each in trainings:
            repeats = len(set(corpus.copy_of[each.rows])) < 0.9 * len(each.rows)
            turned.append(each._replace(labels=1 - each.labels) if repeats else each)
        return super().fit_many(corpus, turned, n_values, tick)


@pytest.fixture(scope="module")
def second():
    """An attacker beside ngram that needs no torch."""
    with pytest.MonkeyPatch.context() as patch:
        entry = replace(attackers.ATTACKERS["ngram"], name="misled", make=lambda setup: Misled())
        patch.setitem(attackers.ATTACKERS, "misled", entry)
        yield "misled"


@pytest.mark.long
def test_measured_encoders_are_compared_by_evidence_and_in_one_protocol(tmp_path, second):
    """Two encoders of 4 seeds, and one of 3 with merged masks."""
    workspace = Workspace(tmp_path)
    load_demo(workspace)
    small = replace(demo_request(), metrics=("lic",), words=False, seeds=4, options={})
    merged = replace(small, captions=small.captions[:2], seeds=3, options={"merge_masks": True})
    both = replace(small, attacker=("ngram", second))
    run_all(workspace, [*plan(workspace, both), *plan(workspace, merged)], DEMO)
    found = comparisons(workspace, DEMO)
    chosen = next(item for item in found if item.attacker == second)
    rows = encoders.measured_alike(workspace, found, chosen)
    # plain has so few words that human captions repeat too once they are aligned; misled is wrong of these as well.
    assert len(rows) == 7 and set(rows["encoder"]) == {"ngram", second} and set(rows["seeds"]) == {4}
    own = encoders.sensitivity_alike(workspace, found, chosen)
    # amplifier's captions say most to an attacker, so one that is surely wrong scores lowest on them.
    assert own.turned and ("amplifier", "mitigator") in own.swapped
    merged = next(item for item in found if item.seeds == 3)
    assert encoders.sensitivity_alike(workspace, found, merged) is None


@pytest.fixture
def workspace(tmp_path) -> Workspace:
    """80 captions that tell the label in four of five."""
    labels = pd.DataFrame({"image_id": range(80), "gender": ["Male", "Female"] * 40})
    said = [("tie", "cake")[n % 2] if n % 10 < 8 else "dog" for n in range(80)]
    captions = labels[["image_id"]].assign(caption=[f"a person with a {thing}" for thing in said])
    keep(found := Workspace(tmp_path), labels=labels, captions={"m": captions})
    return found


ASKED = Question("c", ("m",), "labels", "gender", ("LIC_M",), seeds=2)


@pytest.mark.long
def test_several_attackers_have_runs_each_and_shared_ones_once(workspace, second, capsys):
    refused: dict[str, CapbiasError] = {}
    asked = replace(ASKED, metrics=("LIC_M", "vocabulary"), attacker=("ngram", second, "nosuch"))
    specs = plan(workspace, asked, refused)
    assert sorted((spec.measure, spec.attacker) for spec in specs) == [
        ("lic", second),
        ("lic", "ngram"),
        ("vocabulary", ""),
    ]
    assert list(refused) == ["nosuch"]
    into = ["--collection", "c", "--workspace", str(workspace.folder), "--attribute", "gender", "--seeds", "2"]
    wanted = ["--metric", "LIC_M", "vocabulary", "--attacker", "ngram", second, "nosuch"]
    assert cli.main(["score", *into, *wanted]) == 0
    rows = pd.read_csv(io.StringIO(capsys.readouterr().out), keep_default_na=False)
    pairs = [("LIC_M", "ngram"), ("LIC_M", second), ("vocabulary", "")]
    assert list(zip(rows["metric"], rows["encoder"], strict=True)) == pairs


def test_device_and_determinism_are_part_of_runs_that_they_can_change(workspace):
    for attacker, given, kept in (
        ("lstm", {"device": "auto"}, {}),
        ("lstm", {"device": "cpu"}, {"device": "cpu"}),
        ("lstm", {"deterministic": True}, {"deterministic": True}),
        ("lstm", {"deterministic": True, "device": "cuda"}, {"deterministic": True, "device": "cuda"}),
        ("lstm", {"deterministic": True, "device": "cpu"}, {"device": "cpu"}),  # which a CPU is anyway
        ("ngram", {"deterministic": True, "device": "cuda"}, {}),
    ):
        (spec,) = plan(workspace, replace(ASKED, attacker=attacker, options=given))
        assert {name: spec.options[name] for name in ("deterministic", "device") if name in spec.options} == kept


@pytest.mark.torch
def test_a_run_that_asks_for_it_has_deterministic_algorithms_and_others_do_not(workspace, monkeypatch):
    torch = pytest.importorskip("torch")
    seen = []
    (spec,) = plan(workspace, replace(ASKED, attacker="lstm", options={"deterministic": True}))

    def count(data, options, progress) -> Outcome:
        seen.append(torch.are_deterministic_algorithms_enabled())
        return Outcome()

    monkeypatch.setitem(MEASURES, "lic", replace(MEASURES["lic"], count=count))
    for own in (spec, replace(spec, options={})):
        run_one(workspace, own, lambda *_: None)
    assert seen == [True, False] and not torch.are_deterministic_algorithms_enabled()
    for name, method in (("lstm", "; trained on cpu, deterministic algorithms"), ("ngram", "")):
        assert trained_on(load_attacker(name, "cpu"), True) == method
    with pytest.raises(CapbiasError):
        choose_device("tpu")


def test_people_beside_each_encoder():
    """People say 1, 2, 3 of opens, turns, stays, where a says 3, 4, 9 and b says 1, -4, 9."""
    people = pd.Series({"opens": 1.0, "turns": 2.0, "stays": 3.0})
    table = encoders.alignment_table(alignment(ROWS, people)).set_index("encoder")["human alignment ↑ (Pearson)"]
    # a: deviations -7/3 -4/3 11/3, people -1 0 1: 6 / sqrt(2 * (49 + 16 + 121) / 9) = 6 / 6.429 = 0.933
    # b: 1 -4 9, mean 2: -1 -6 7: 8 / sqrt(2 * 86) = 0.610
    assert table["a"] == "0.933" and table["b"] == "0.610"


def test_cvs_over_other_encoders_are_said_to_differ():
    alike = {"value": 0.1, "direction": ""}
    lic = alike | {"measure": "LIC", "encoder": "ngram, rnn"}
    assert encoders.cv_encoders(pd.DataFrame([lic, lic | {"measure": "DBAC"}])) == ""
    text = encoders.cv_encoders(pd.DataFrame([lic, lic | {"measure": "DBAC", "encoder": "ngram"}]))
    assert "LIC: ngram, rnn; DBAC: ngram." in text and "not comparable" in text
