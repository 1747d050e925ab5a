"""`capbias.score` and `capbias.compare`: numbers against METRICS.md on the real captions, kinds of input, errors."""

from __future__ import annotations

import json
import multiprocessing
import re
import time
from _thread import interrupt_main
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import capbias_core as capbias
from capbias_core.attackers import ATTACKERS
from capbias_core.attackers.ngram import NgramAttacker
from capbias_core.errors import CapbiasError
from capbias_core.load.formats import _as_frame as as_frame
from capbias_core.load.questions import Ask
from capbias_core.prepare.text import tokenize
from capbias_core.question import Question
from capbias_core.runs import inputs
from capbias_core.types import RESULT_COLUMNS
from capbias_core.workspace.ingest import read_part
from capbias_core.workspace.store import Workspace
from tests import sentences


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path_factory, monkeypatch):
    """Temporary workspaces go to a folder of their own, which is empty once a report is there; no usual workspace."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setenv("CAPBIAS_HOME", str(folder / "never"))
    yield folder
    ours = [own.name for own in folder.iterdir() if not own.name.startswith("torchinductor")]
    assert ours == []


# the real captions


def of(coco_bias: Path, *names: str, **more):
    known = {"labels": coco_bias / "annotations" / "attributes.csv", "attribute": "gender"}
    return {"captions": {name: coco_bias / "results" / f"{name}.json" for name in names}, **known, **more}


@pytest.fixture(scope="module")
def sat(coco_bias):
    """The report of sat by the linear attacker, ten seeds."""
    given = of(coco_bias, "sat")
    path, labels = str(given["captions"]["sat"]), str(given["labels"])
    return capbias.score(captions=path, labels=labels, attribute="gender", metrics=["lic", "ratio"], seeds=10)


@pytest.mark.long
def test_lic_m_of_sat_is_what_it_was(sat):
    """43.2 before there was an API; METRICS.md's plain loop gave 44.1, and 43.1 on the object masked.

    The interval of a level from the spread: t(0.975, 9) = 2.262157, 662 test and 5,966 training images.
    """
    found = sat["LIC_M"]
    assert round(found.value, 1) == 43.2
    half = 2.262157 * found.spread * (1 / 10 + 2 * 662 / 5966) ** 0.5
    assert found.interval == pytest.approx((found.value - half, found.value + half)) and found.over == "refits"
    assert (found.n, found.seeds, found.model) == (662, 10, "sat")
    assert found.spread == pytest.approx(1.7, abs=0.05)
    assert float(found) == found.value and str(found) == "LIC_M of sat: 43.2 [41.0, 45.4]"


@pytest.mark.long
def test_a_report_says_it_in_words_and_what_is_missing(sat):
    sentences.check("report of sat", str(sat))
    assert tuple(sat.table.columns) == RESULT_COLUMNS and sat.table["metric"].tolist() == ["LIC_M", "ratio"]
    cut = ["LIC_cut", "LIC_by_H_cut", "LIC_by_M_cut"]
    assert list(sat.left_out) == ["LIC", "LIC_by_H", "LIC_by_M", *cut, "LIC_D", "LIC_HM", "LIC_MH"]
    with sentences.raises(CapbiasError):
        sat["LIC"]


@pytest.mark.long
def test_words_are_computed_when_they_are_asked_for(sat, nothing_is_left):
    assert list(nothing_is_left.iterdir()) == [], "the workspace is gone, its captions are not"
    words = sat.words
    top = words[words["count"] >= 100].head(40)
    assert {"skateboard", "tie"} <= set(words[(words["toward"] == "Male") & (words["mean"] > 0.5)]["word"])
    assert (top["mean"] > 0).all() and set(words["toward"]) == {"Female", "Male"}
    assert not words["word"].str.startswith("<").any()
    assert sat.words is words, "once"


# small inputs of every kind

THINGS = {"Female": ("an umbrella", "a cake"), "Male": ("a skateboard", "a tie")}
LABELS = ["Female" if image % 2 else "Male" for image in range(120)]


def said(image: int, share: int) -> str:
    label = LABELS[image]
    other = "Male" if label == "Female" else "Female"
    thing = THINGS[label if image % 10 < share else other][image // 2 % 2]
    return f"a {'woman' if label == 'Female' else 'man'} with {thing} on a {('street', 'field')[image // 3 % 2]}"


def records(share: int = 9) -> list[dict]:
    return [{"image_id": image, "caption": said(image, share)} for image in range(120)]


CAPTIONS, HUMAN = records(), [row for seed in (5, 6, 7) for row in records(seed)]
TABLE = [
    {"image_id": image, "gender": label, "height": ("low", "mid", "high")[image % 3]}
    for image, label in enumerate(LABELS)
]
KNOWN = {"labels": TABLE, "attribute": "gender", "seeds": 2}


@pytest.fixture(scope="module")
def expected() -> dict[str, float]:
    report = capbias.score(CAPTIONS, references=HUMAN, metrics=["lic", "ratio"], **KNOWN)
    values = dict(zip(report.table["metric"], report.table["value"], strict=True))
    assert values["LIC"] == pytest.approx(values["LIC_M"] - values["LIC_D"]) and values["LIC"] > 0
    coco = {"images": [{"id": 1}], "annotations": [{"id": place, **row} for place, row in enumerate(HUMAN)]}
    assert capbias.score(CAPTIONS, references=coco, metrics=["lic"], **KNOWN)["LIC_D"].value == values["LIC_D"]
    return values


@pytest.mark.long
def test_the_same_rows_give_the_same_numbers_whatever_holds_them(expected):
    given = CAPTIONS, TABLE, HUMAN
    indexed = [pd.DataFrame(rows).set_index("image_id") for rows in given]
    of_numpy = [[{**row, "image_id": np.int64(row["image_id"])} for row in rows] for rows in given]
    for captions, labels, human in (indexed, of_numpy):
        report = capbias.score(captions, labels, "gender", human, metrics=["lic", "ratio"], seeds=2)
        assert dict(zip(report.table["metric"], report.table["value"], strict=True)) == expected


@pytest.mark.long
def test_a_file_with_human_captions_beside_is_enough(formats):
    """The same numbers as with its captions, human captions and ids given apart."""
    (file,) = formats.glob("*_samples_*.jsonl")
    own = [json.loads(line)["coco_CIDEr"] for line in file.read_text().splitlines()]
    captions = [{"image_id": one["image_id"], "caption": one["pred"]} for one in own]
    human = [{"image_id": one["image_id"], "caption": text} for one in own for text in one["answer"]]
    more = {"attribute": "gender", "metrics": ["LIC", "ratio"], "seeds": 2}
    alone = capbias.score(file, **more)
    apart = capbias.score({file.stem: captions}, references=human, **more)
    values = ["metric", "value", "ci_low", "ci_high", "n"]
    assert {"LIC", "LIC_M", "LIC_D", "ratio"} <= set(alone.table["metric"])
    pd.testing.assert_frame_equal(alone.table[values], apart.table[values])


def test_labels_beside_captions_are_read_unless_another_table_is_given():
    wrong = {"Female": "Male", "Male": "Female"}
    label = {row["image_id"]: row["gender"] for row in TABLE}
    both = [{**row, "gender": wrong[label[row["image_id"]]]} for row in CAPTIONS]
    assert capbias.score(both, attribute="gender", metrics=["error"], shuffled=True)["error"].value == 100.0
    assert capbias.score(both, TABLE, "gender", metrics=["error"])["error"].value == 0.0


def test_ratio_by_hand():
    """60 captions name a woman and 60 a man; one man's caption is changed into a woman's."""
    rows = [dict(row) for row in CAPTIONS]
    rows[0]["caption"] = rows[0]["caption"].replace("man", "woman")
    report = capbias.score(rows, metrics=["ratio", "error"], **KNOWN)
    assert report["ratio"].value == pytest.approx(59 / 61) and report["error"].value == pytest.approx(100 / 120)
    assert report["error"].n == 120 and report["ratio"].seeds == 0 and report["ratio"].spread is None


@pytest.mark.long
def test_several_captioners_and_the_keys_of_a_report():
    report = capbias.score({"plain": records(5), "strong": CAPTIONS}, metrics=["sc", "ratio"], **KNOWN)
    assert report["SC", "strong"].value == report["strong"]["SC"].value > report["SC", "plain"].value
    assert list(report.letters) and report.ranked_by[0] == "SC"
    with sentences.raises(CapbiasError):
        report["SC"]
    assert report["sc", "plain"].value == report["SC", "plain"].value
    with sentences.raises(CapbiasError):
        report["SCC"]
    single = capbias.score({"plain": CAPTIONS, "strong": CAPTIONS}, metrics=["vocabulary"], **KNOWN)
    assert single["plain"]["vocabulary"].value == single["vocabulary", "plain"].value, "of one metric, too"


@pytest.mark.long
def test_captioners_are_compared_in_pairs():
    """Independent: differences of what `score` says of each."""
    found = capbias.compare({"plain": records(5), "strong": CAPTIONS}, references=HUMAN, test_share=0.4, **KNOWN)
    assert found.metric == "LIC" and set(found.report.letters) == {"plain", "strong"}
    (pair,) = found.pairs.to_dict("records")
    values = [found.report["LIC", pair[side]].value for side in ("first", "second")]
    assert pair["difference"] == pytest.approx(values[0] - values[1])
    assert pair["low"] < pair["difference"] < pair["high"] and pair["differ"] == (pair["p"] < 0.05)
    assert found.table["captioner"].tolist() == ["plain", "strong"] and found.table["value"].is_monotonic_increasing
    assert found.table["letters"].iloc[0].startswith("a") and "within each seed" in found.method
    assert "captioner" in str(found) and str(found).startswith("LIC. ")


@pytest.mark.long
def test_captioners_that_name_other_objects_are_ranked_by_one_attacker():
    """Its sums have a column per combination of objects in a caption."""
    more = [row | {"caption": row["caption"] + " and a cake" * (row["image_id"] % 5 == 0)} for row in CAPTIONS]
    objects = [
        {"image_id": row["image_id"], "objects": "cake" if "cake" in row["caption"] else "tie"} for row in CAPTIONS
    ]
    known = {**KNOWN, "references": HUMAN, "objects": objects, "seeds": 1}
    found = capbias.compare({"more": more, "strong": CAPTIONS}, metric="dbac", **known)
    assert len(found.pairs) == 1 and found.report.ranking.provisional


@pytest.mark.long
def test_a_value_per_group_and_object_by_hand():
    report = capbias.score(CAPTIONS, metrics=["cooccurrence"], per_object=True, **KNOWN)
    cakes = [row["caption"].split()[1] for row in CAPTIONS if "cake" in row["caption"]]
    found = report["object_gender_cooccurrence", "Female", "cake"]
    assert found.value == pytest.approx(cakes.count("woman") / len(cakes)) and found.n == len(cakes)
    everything = report["object_gender_cooccurrence", "Female"]
    named = [row["caption"].split()[1] for row in CAPTIONS]
    assert everything.row["object"] == "" and everything.value == pytest.approx(named.count("woman") / len(named))
    with sentences.raises(CapbiasError):
        report["object_gender_cooccurrence"]


@pytest.mark.long
def test_a_column_of_labels_is_an_attribute():
    report = capbias.score(CAPTIONS, TABLE, "height", metrics=["sc", "ratio"], values=["low", "high"], seeds=1)
    assert report.table["metric"].tolist() == ["SC"] and "no words" in report.left_out["ratio"]
    assert "dropped: mid 40" in report.notes


@pytest.mark.long
def test_contextual_alignment(tmp_path):
    words = sorted({word for row in (*CAPTIONS, *HUMAN) for word in tokenize(row["caption"])})
    rng = np.random.default_rng(1)
    lines = [" ".join([word, *(f"{own:.3f}" for own in rng.normal(size=4))]) for word in words]
    (tmp_path / "glove.txt").write_text("\n".join(lines) + "\n")
    own = {"alignment": "contextual", "vectors": tmp_path / "glove.txt", "delta": 0.9}
    report = capbias.score(CAPTIONS, references=HUMAN, metrics=["lic"], **own, **KNOWN)
    assert report["LIC"].row["alignment"] == "contextual_glove_0.9"


# a workspace


def score_in(folder: str, barrier, rows) -> None:
    sets = {f"m{number}": CAPTIONS[number:] for number in range(4)}
    barrier.wait()
    report = capbias.score(sets, references=HUMAN, metrics=["LIC", "LIC_M"], workspace=folder, **KNOWN)
    rows.put((len(report.table), report.failed))


@pytest.mark.slow
def test_two_processes_that_score_the_same_at_once_get_all_rows(tmp_path):
    """One got the rows of what it had computed itself, and no error."""
    spawn = multiprocessing.get_context("spawn")
    barrier, rows = spawn.Barrier(2), spawn.Queue()
    Workspace(tmp_path)
    scorers = [spawn.Process(target=score_in, args=(str(tmp_path), barrier, rows)) for _ in range(2)]
    for scorer in scorers:
        scorer.start()
    assert [rows.get(timeout=240) for _ in scorers] == [(28, ())] * 2
    for scorer in scorers:
        scorer.join()


@pytest.mark.long
def test_a_workspace_keeps_inputs_and_runs_and_repeats_none(tmp_path, monkeypatch):
    folder = tmp_path / "studies"
    first = capbias.score({"mine": CAPTIONS}, references=HUMAN, metrics=["lic"], workspace=folder, **KNOWN)
    kept = Workspace(folder)
    assert {(item.kind, item.name) for item in kept.items()} == {
        ("captions", "mine"),
        ("labels", "labels"),
        ("references", "references"),
    }
    assert {run.status for run in kept.runs()} == {"finished"}

    def fit(*_args):
        raise AssertionError("trained again")

    monkeypatch.setattr("capbias_core.attackers.ngram.NgramAttacker.fit_many", fit)
    names = {"captions": "mine", "workspace": folder, "collection": "my captions"}
    again = capbias.score(attribute="gender", metrics=["lic"], seeds=2, **names)
    assert again.table.equals(first.table)
    with sentences.raises(CapbiasError):
        capbias.score(attribute="gender", metrics=["lic"], **{**names, "captions": "others"})
    for read in ({"rows": "split=val"}, {"mapping": {"Female": None}}, {"sets": "each"}, {"image_id_column": "id"}):
        with pytest.raises(CapbiasError) as raised:
            capbias.score(attribute="gender", metrics=["lic"], **names, **read)
        assert raised.value.arguments == tuple(read), "a stored item is as it was read"


class Feature:
    """A column of a Dataset of Hugging Face, as `datasets` describes it."""

    def __init__(self, type: str, names: list[str] | None = None):
        self._type, self.names = type, names


class HubSet:
    """What capbias uses of a Dataset, without the library. Decoding a picture fails."""

    def __init__(self, frame: pd.DataFrame, **features: Feature):
        self.frame, self.features = frame, dict.fromkeys(frame, Feature("Value")) | features

    def remove_columns(self, names: list[str]) -> HubSet:
        return HubSet(self.frame.drop(columns=names), **{n: f for n, f in self.features.items() if n not in names})

    def to_pandas(self) -> pd.DataFrame:
        assert "picture" not in self.frame, "decoded"
        return self.frame


class Splits(dict):
    num_rows = {"train": 1, "test": 1}


def test_a_dataset_of_hugging_face_is_a_table():
    """Classes are integers in it; captioners of one frame without a name are called as the frame calls them."""
    frame = pd.DataFrame(CAPTIONS).assign(model="a", picture=b"", kind=[0, 1] * (len(CAPTIONS) // 2))
    hub = HubSet(frame, picture=Feature("Image"), kind=Feature("ClassLabel", ["Female", "Male"]))
    read = read_part(hub, "captions").frame
    assert read is not None and read["caption"].tolist() == [own["caption"] for own in CAPTIONS]
    labels = HubSet(frame[["image_id", "kind"]].assign(kind=-1), kind=Feature("ClassLabel", ["Female", "Male"]))
    assert as_frame(labels)["kind"].isna().all()
    assert as_frame(hub)["kind"].tolist()[:2] == ["Female", "Male"] and "picture" not in as_frame(hub)
    both = pd.concat([frame, frame.assign(model="b")])[["image_id", "model", "caption"]]
    found = capbias.score(both, TABLE, "gender", metrics="ratio")
    assert set(found.table["model"]) == {"a", "b"}
    with pytest.raises(CapbiasError, match="several splits: train, test"):
        capbias.score(Splits(train=hub, test=hub), labels=hub, attribute="gender")


BAD = {
    "a URL": {"captions": "https://example.org/sat.json"},
    "an empty table": {"captions": pd.DataFrame({"image_id": [], "caption": []})},
    "two files of one name": {"captions": ["a/nic.json", "b/nic.json"]},
    "no labels": {"labels": None},
    "no attribute": {"attribute": ""},
    "an unknown metric": {"metrics": ["bleu"]},
    "one label to compare": {"attribute": "height", "values": ["low"]},
    "vectors that nothing reads": {"vectors": "v.txt"},
    "an unknown attacker": {"metrics": "sc", "attacker": "gpt"},
    "a mapping to no value": {"mapping": {"Female": "Women"}},
    "half a seed": {"seeds": 2.5},
    "one word for a list": {"metrics": "cooccurrence", "object_words": "tiara"},
    "false as a text": {"merge_masks": "false"},
    "an unknown option": {"metrics": ["sc"], "merge_mask": True},
    "ranked by what was not asked for": {"rank_by": "LIC_M"},
    "ranked by what is no mean": {"metrics": ["vocabulary"], "rank_by": "vocabulary"},
    "a rule for rows": {"several": "all"},
}


# Refused as well; their sentences are not compared. The command line refuses more, by the same checks.
REFUSED = (
    {"captions": []},
    {"captions": pd.DataFrame({"image_id": [1, 2]})},
    {"captions": 7},
    {"metrics": 7},
    {"values": np.array(["Male"])},
    {"mapping": {"F": "Female"}},
    {"metrics": ["lic"], "references": HUMAN, "alignment": "contextual", "vectors": "v.txt", "delta": 3},
    {"rank_by": "ratios"},
    {"rank_by": ("ratio", "up")},
)


@pytest.mark.parametrize("given", [*BAD.values(), *REFUSED], ids=[*BAD, *map(str, range(len(REFUSED)))])
def test_an_error_names_what_is_wrong(given, tmp_path):
    home = tmp_path / "home"
    with pytest.raises(CapbiasError) as raised:
        capbias.score(**{"captions": CAPTIONS, "metrics": ["ratio"], "workspace": home, **KNOWN, **given})
    arguments = f" ({', '.join(raised.value.arguments)})" if raised.value.arguments else ""
    for name in (name for name, bad in BAD.items() if bad is given):
        sentences.check(f"score in Python: {name}", f"{raised.value}{arguments}")
    said = re.sub("`[^`]*`", "", str(raised.value))  # a command in backticks has flags
    assert "--" not in said, "arguments, not flags"
    if "attacker" not in given:
        assert not home.exists() or not Workspace(home).items()


@pytest.mark.long
def test_images_with_several_label_rows_follow_the_rule_that_was_asked_for():
    """Every image has its label and, in the first tenth, another one before it."""
    other = {"Female": "Male", "Male": "Female"}
    twice = [{"image_id": row["image_id"], "gender": other[row["gender"]]} for row in TABLE[: len(TABLE) // 10]]
    counts = {}
    with pytest.raises(Ask):
        capbias.score(CAPTIONS, [*twice, *TABLE], "gender", metrics=["error"])
    for rule in ("both", "first"):
        report = capbias.score(CAPTIONS, [*twice, *TABLE], "gender", metrics=["error"], several=rule)
        counts[rule] = report["error"].n
    assert counts["both"] == counts["first"] - len(twice)


@pytest.mark.long
def test_labels_are_mapped_as_the_user_says():
    """0 and 1 say nothing by themselves; the other way round the ratio is the same, and every caption is wrong."""
    coded = [{"image_id": row["image_id"], "gender": str(int(row["gender"] == "Male"))} for row in TABLE]
    errors = {}
    for way in (("Female", "Male"), ("Male", "Female")):
        mapping = dict(zip("01", way, strict=True))
        if errors:
            with pytest.raises(CapbiasError, match="no more often than chance"):
                capbias.score(CAPTIONS, coded, "gender", metrics=["error"], mapping=mapping)
        report = capbias.score(CAPTIONS, coded, "gender", metrics=["error"], mapping=mapping, shuffled=True)
        errors[way] = report["error"].value
    assert errors == {("Female", "Male"): 0.0, ("Male", "Female"): 100.0}
    with pytest.raises(Ask) as asked:
        capbias.score(CAPTIONS, coded, "gender", references=HUMAN, metrics=["error"])
    assert asked.value.answer["map"] == ("gender:1=Male", "gender:0=Female")


@pytest.mark.parametrize(("side", "stored"), [("captions", True), ("labels", False)])
def test_a_baseline_of_shuffled_captions_or_labels_is_scored_if_it_is_called_so(side, stored, tmp_path):
    """They were refused with no way past."""
    known = {"captions": CAPTIONS, **KNOWN, "references": HUMAN, "metrics": ["lic"]}
    column = {"captions": "caption", "labels": "gender"}[side]
    shuffled = known[side] = pd.DataFrame(known[side])
    shuffled[column] = shuffled[column].sample(frac=1, random_state=2).to_numpy()
    place = {"workspace": tmp_path} if stored else {}
    with pytest.raises(CapbiasError) as raised:
        capbias.score(**known, **place)
    assert raised.value.arguments == ("shuffled",)
    report = capbias.score(**known, **place, shuffled=True)
    assert "but shuffled captions or labels" in report["LIC"].method and any("warning" in note for note in report.notes)


MAPPINGS = [  # of labels that are numbers or true and false
    {0: "Female", 1: "Male"},
    {np.int64(0): "Female", 1.0: "Male"},
    {"0": "Female", "1.0": "Male"},
    {False: "Female", True: "Male"},
]


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("mapping", MAPPINGS, ids=str)
def test_numbers_and_truth_values_are_mapped_as_they_are_written(mapping, missing, tmp_path):
    """Keys that are no texts were refused, and one missing label made 0 and 1 to 0.0 and 1.0, which fit nothing."""
    labels = pd.DataFrame(TABLE)[["image_id", "gender"]]
    labels["gender"] = labels["gender"] == "Male"
    if bool not in map(type, mapping):
        labels["gender"] = labels["gender"].astype(float if missing else int)
    if missing:
        labels["gender"] = labels["gender"].astype(object).where(labels.index > 0).infer_objects()
    labels.to_csv(tmp_path / "labels.csv", index=False)
    for given in (labels, tmp_path / "labels.csv"):
        asked = {"captions": CAPTIONS, "labels": given, "attribute": "gender", "mapping": mapping}
        data, _ = inputs.read(Question.of(**asked), lambda line: None)
        known = {str(image): label for image, label in enumerate(LABELS) if image or not missing}
        assert data.labels.to_dict() == known


def test_values_of_a_column_of_numbers_are_chosen_as_numbers():
    labels = [row | {"place": float(row["image_id"] % 3)} for row in TABLE]
    report = capbias.score(CAPTIONS, labels, "place", metrics=["sc"], values=[0, 1.0], seeds=1)
    assert report["SC"].n == 8 and "dropped: 2 40" in report.notes


def test_rows_are_chosen_by_number_in_a_column_of_floats():
    rows = pd.DataFrame(CAPTIONS).assign(fold=[1.0, 2.0] * 60)
    rows.loc[1, "fold"] = None
    for fold in (1, 1.0, "1", "1.0"):
        assert capbias.score(rows, TABLE, "gender", metrics=["error"], rows={"fold": fold})["error"].n == 60


@pytest.mark.long
def test_case_changes_nothing_in_the_names_of_metrics():
    two = {"one": CAPTIONS, "two": CAPTIONS}
    report = capbias.score(two, metrics=["RATIO", "Error"], rank_by="ERROR", **KNOWN)
    assert set(report.table["metric"]) == {"ratio", "error", "error_gap"} and report.ranked_by == ("error", "")
    assert report["Ratio", "one"].value == report["ratio", "one"].value
    assert (
        capbias.score(two, metrics=np.array(["ratio"]), **KNOWN)["ratio", "one"].value == report["ratio", "one"].value
    )
    assert capbias.compare(two, metric="ERROR", **KNOWN).metric == "error"


ATTACKED = ["ngram", "rnn"]


@pytest.mark.torch
@pytest.mark.slow
def test_networks_train_in_this_process_too(tmp_path, monkeypatch):
    pytest.importorskip("torch")

    def refuse(*_args, **_more):
        raise AssertionError("a worker process")

    monkeypatch.setattr("capbias_core.runs.engine.wake_workers", refuse)
    both = {"metrics": ["LIC_M"], "attacker": ATTACKED, "device": "cpu", **KNOWN, "seeds": 1}
    report = capbias.score(CAPTIONS, workspace=tmp_path / "w", **both)
    assert report["LIC_M", "rnn"].row["device"] == "cpu"
    assert report["LIC_M", "ngram"].value < report["LIC_M", "rnn"].value
    assert report.choice.setting_name.startswith("rnn") and all(f"({name}, 1 seed)" in str(report) for name in ATTACKED)
    monkeypatch.setitem(ATTACKERS, "rnn", replace(ATTACKERS["rnn"], preview=True))
    monkeypatch.setitem(ATTACKERS, "ngram", replace(ATTACKERS["ngram"], preview=False))
    report = capbias.score(CAPTIONS, workspace=tmp_path / "w", **both)
    assert report.choice.setting_name.startswith("ngram"), "the preview answers only where no other attacker does"


@pytest.mark.parametrize("seeds", [1, 2])
def test_a_method_names_a_spread_over_seeds_if_there_is_one_and_what_was_chosen(seeds):
    found = capbias.score(CAPTIONS, metrics=["sc"], merge_masks=True, **{**KNOWN, "seeds": seeds})["SC"]
    assert "runs of masks merged" in found.method
    assert (found.spread is not None) == ("std over seeds" in found.method) == (seeds > 1)


def test_several_attackers_have_rows_of_their_own_and_one_that_cannot_be_had_is_named():
    report = capbias.score(CAPTIONS, metrics=["sc"], attacker=["ngram", "nowhere/bert"], **KNOWN)
    assert report.table["encoder"].tolist() == ["ngram"] and report["SC", "ngram"].value > 50
    assert report.refused[0].startswith("nowhere/bert left out: ")


def test_of_several_attackers_one_gives_the_values_and_the_pairs(monkeypatch):
    """The values were those of the first attacker, the pairs and letters those of the one that answers."""
    keen = type("Keen", (NgramAttacker,), {"inverse_penalty": 5.0})
    monkeypatch.setitem(
        ATTACKERS, "keen", replace(ATTACKERS["ngram"], name="keen", make=lambda _: keen(), preview=False)
    )
    sets = {"weak": records(6), "strong": records(8)}
    found = capbias.compare(sets, metric="SC", attacker=["ngram", "keen"], test_share=0.5, **KNOWN)
    values = dict(zip(found.table["captioner"], found.table["value"], strict=True))
    assert values == {model: found.report["SC", model, "keen"].value for model in sets}
    assert values != {model: found.report["SC", model, "ngram"].value for model in sets}
    (pair,) = found.pairs.to_dict("records")
    assert pair["difference"] == pytest.approx(values[pair["first"]] - values[pair["second"]])


def test_ctrl_c_ends_the_run_that_is_under_way(tmp_path, monkeypatch):
    def stopped_by_the_terminal(_workspace, _spec, progress):
        interrupt_main()
        while True:
            progress(0.5, "half")
            time.sleep(0.02)

    monkeypatch.setattr("capbias_core.worker.run_one", stopped_by_the_terminal)
    monkeypatch.setattr("capbias_core.worker.SECONDS_BETWEEN_NOTES", 0.0)
    with pytest.raises(KeyboardInterrupt):
        capbias.score(CAPTIONS, metrics=["sc"], workspace=tmp_path / "w", **KNOWN)
    assert [run.status for run in Workspace(tmp_path / "w").runs()] == ["cancelled"]
