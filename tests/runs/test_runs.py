"""Runs: from what is asked for to results, on small sets whose answer is known and on the real captions."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from capbias_core.attackers.ngram import NgramAttacker
from capbias_core.attributes import get_attribute, plain_attribute
from capbias_core.errors import CapbiasError
from capbias_core.load.labels import mapping_details
from capbias_core.measures.lic import CUTS
from capbias_core.measures.registry import expand_metrics
from capbias_core.prepare import align
from capbias_core.question import Question
from capbias_core.runs.plan import WORDS_COMPARED, plan
from capbias_core.runs.run import run_one
from capbias_core.views import results
from capbias_core.views.scored import caption_scores, stored_attackers
from capbias_core.views.words import top_words, words_of_set
from capbias_core.worker import execute
from capbias_core.workspace.spec import RunSpec, Setting
from capbias_core.workspace.store import Workspace, bytes_frame
from tests import sentences
from tests.collections_ import keep

NOTHING_TOLD = dict.fromkeys(("LIC_M", "LIC_D", "LIC_HM", "LIC_MH"), 25) | dict.fromkeys(("SC", "SC_D"), 50)
NOTHING_TOLD |= dict.fromkeys(("LIC", "LIC_by_H", "LIC_by_M", "leakage"), 0)


def silent(share: float, text: str) -> None:
    """Progress that nobody watches."""


def caption_frame(captions: dict[str, list[str]]) -> pd.DataFrame:
    rows = [(image, index, text) for image, own in captions.items() for index, text in enumerate(own)]
    return pd.DataFrame(rows, columns=["image_id", "caption_index", "caption"])


def fill(workspace: Workspace, labels: dict[str, str], sets: dict, references: dict | None = None, attribute=None):
    """Keep captions (model -> image -> captions), references and labels in the collection `c`."""
    attribute = attribute or plain_attribute("group", tuple(sorted(set(labels.values()))))
    table = pd.DataFrame({"image_id": list(labels), "label": list(labels.values())})
    details = {attribute.name: mapping_details(attribute, "label", {value: value for value in attribute.values})}
    workspace.keep("labels", "labels", table, "c", "test", {"attributes": details})
    for name, captions in sets.items():
        workspace.keep("captions", name, caption_frame(captions), "c", "test")
    if references:
        workspace.keep("references", "human", caption_frame(references), "c", "test")
    return Question("c", tuple(sets), "labels", attribute.name, ("lic", "leakage"), "human" if references else "")


def results_of(workspace: Workspace, request: Question) -> pd.DataFrame:
    """Compute every run of a request; one row a result."""
    outcomes = [run_one(workspace, spec, silent) for spec in plan(workspace, request)]
    return pd.DataFrame([result.row() for outcome in outcomes for result in outcome.results])


def value_of(results: pd.DataFrame, **where) -> float:
    found = results[np.logical_and.reduce([results[key] == value for key, value in where.items()])]
    assert len(found) == 1, found
    return found["value"].iloc[0]


@pytest.fixture
def workspace(tmp_path) -> Workspace:
    return Workspace(tmp_path)


def labels_of(*counts: int, values=("A", "B", "C")) -> dict[str, str]:
    """That many images of each value, their ids not in the order of the values."""
    drawn = np.random.default_rng(5).permutation(np.repeat(np.arange(len(counts)), counts))
    return {f"{1000 + place}": values[code] for place, code in enumerate(drawn)}


def hinting(labels: dict[str, str], share: float, words=("kitchen", "garage")) -> dict[str, list[str]]:
    """One caption an image; in exactly this share of each value's images the word is that of the value."""
    captions = {}
    for value, word, other in (("A", *words), ("B", *words[::-1])):
        own = [image for image, label in labels.items() if label == value]
        rng = np.random.default_rng(len(own))
        for place, image in enumerate(rng.permutation(own)):
            captions[str(image)] = [f"someone in a {word if place < share * len(own) else other}"]
    return {image: captions[image] for image in labels}


def plainly(labels: dict[str, str], text: str = "someone somewhere") -> dict[str, list[str]]:
    return {image: [text] for image in labels}


# known answers


def turned(captions: dict[str, list[str]]) -> dict[str, list[str]]:
    """The captions with the two words of `hinting` exchanged."""
    other = {"kitchen": "garage", "garage": "kitchen"}
    return {image: [" ".join(other.get(word, word) for word in own[0].split())] for image, own in captions.items()}


@pytest.mark.long
@pytest.mark.parametrize(
    ("model", "human", "scores", "verdict"),
    [
        # DBAC, Table 3: an attacker is right in the share q of its side, with confidence q; on the other side in that
        # side's share.
        (
            0.9,
            0.6,
            {"LIC_D": 36, "LIC_HM": 54, "LIC_MH": 54, "LIC_M": 81, "LIC": 45, "SC": 90, "leakage": 30},
            "amplifies",
        ),
        (
            0.6,
            0.9,
            {"LIC_D": 81, "LIC_HM": 54, "LIC_MH": 54, "LIC_M": 36, "LIC": -45, "SC": 60, "leakage": -30},
            "reduces",
        ),
        # The words mean the reverse.
        (
            -0.9,
            0.9,
            {"LIC_D": 81, "LIC_HM": 9, "LIC_MH": 9, "LIC_M": 81, "LIC": 0, "SC": 90, "leakage": 0},
            "inconclusive",
        ),
    ],
)
def test_each_attacker_reads_both_sides(workspace, model, human, scores, verdict):
    labels = labels_of(1500, 1500)
    captions = turned(hinting(labels, -model)) if model < 0 else hinting(labels, model)
    request = fill(workspace, labels, {"m": captions}, hinting(labels, human))
    results = results_of(workspace, replace(request, seeds=4))
    found = dict(zip(results["metric"], results["value"], strict=True))
    for name, value in scores.items():
        assert found[name] == pytest.approx(value, abs=2 if name in ("LIC_M", "LIC_D", "SC") else 3), name
    assert found["LIC_by_H"] == pytest.approx(found["LIC_HM"] - found["LIC_D"])
    assert found["LIC_by_M"] == pytest.approx(found["LIC_M"] - found["LIC_MH"])
    assert dict(zip(results["metric"], results["verdict"], strict=True))["LIC"] == verdict
    for name, times in (("LIC_by_H", 1), ("LIC_by_M", 2)):  # n_test / n_train is added once, and twice
        (row,) = results[results["metric"] == name].to_dict("records")
        half = 3.182446 * row["spread"] * np.sqrt(1 / 4 + times * 300 / 2700)  # Student's t, 3 degrees of freedom
        assert (row["value"] - row["ci_low"], row["ci_high"] - row["value"]) == pytest.approx((half, half), rel=1e-4)
    one = results_of(workspace, replace(request, metrics=("lic",), seeds=1))
    assert set(one["verdict"]) == {"inconclusive", ""}, "a single attacker not comparable"


def test_captions_that_say_nothing_give_chance(workspace):
    labels = labels_of(60, 140)
    request = fill(workspace, labels, {"mute": plainly(labels)}, plainly(labels, "a person"))
    results = results_of(workspace, replace(request, seeds=2))
    assert dict(zip(results["metric"], results["value"], strict=True)) == pytest.approx(NOTHING_TOLD, abs=0.01)
    assert results["coverage"].unique().tolist() == [""] and results["spread"].tolist() == pytest.approx([0] * 10)


@pytest.mark.long
def test_a_captioner_that_repeats_the_references_amplifies_nothing(workspace):
    labels = labels_of(150, 170)
    same = hinting(labels, 0.8)
    results = results_of(workspace, fill(workspace, labels, {"copy": same}, same))
    (row,) = results[results["metric"] == "LIC"].to_dict("records")
    assert row["value"] == pytest.approx(0, abs=1e-9)
    assert pd.isna(row["ci_low"]) and row["verdict"] == "inconclusive", "all seeds agree"
    assert value_of(results, metric="LIC_M") > 40


def test_runs_of_masks_tell_nothing_when_merged(workspace):
    labels = labels_of(80, 80, values=("Female", "Male"))
    named = {image: ["she herself" if label == "Female" else "he"] for image, label in labels.items()}
    request = fill(workspace, labels, {"m": named}, attribute=get_attribute("gender"))
    plain, merged = (
        value_of(results_of(workspace, replace(request, seeds=2, options={"merge_masks": merge})), metric="SC")
        for merge in (False, True)
    )
    assert plain == 100 and merged == pytest.approx(50)


def test_the_number_of_seeds_and_the_share_of_test_images_are_chosen(workspace):
    """LIC by ngram, which varies most, has 30 seeds if none are chosen, by others the papers' 10."""
    labels = labels_of(50, 50)
    request = replace(fill(workspace, labels, {"m": plainly(labels)}), seeds=2, options={"test_share": 0.4})
    (spec,) = plan(workspace, request)
    (row, *_) = run_one(workspace, spec, silent).results
    assert row.n == 40 and row.method.startswith("60/40 balanced images")
    for attacker, seeds in (("ngram", 30), ("lstm_bi", 10)):
        (spec,) = plan(workspace, replace(request, metrics=("LIC_M",), attacker=attacker, seeds=None, options={}))
        assert len(spec.seeds) == seeds


@pytest.mark.long
def test_references_for_a_part_give_lic_m_twice(workspace):
    labels = labels_of(100, 130)
    covered = [image for place, image in enumerate(labels) if place % 2]
    human = {image: own for image, own in hinting(labels, 0.6).items() if image in covered}
    request = replace(fill(workspace, labels, {"m": hinting(labels, 0.9)}, human), seeds=2)
    everything, subset = plan(workspace, request)
    assert (everything.coverage, everything.references) == ("", "")
    assert subset.coverage == "with_references" and subset.references
    results = results_of(workspace, request)
    found = results.groupby("coverage")["metric"].agg(set)
    assert found[""] == {"LIC_M", "SC"}
    assert found["with_references"] == set(expand_metrics(["lic", "leakage"])) - set(CUTS), "captions are equally long"
    part = results[results["coverage"] == "with_references"].set_index("metric")["value"]
    assert part["LIC"] == pytest.approx(part["LIC_M"] - part["LIC_D"])
    assert part["leakage"] == pytest.approx(part["SC"] - part["SC_D"])

    outcome = run_one(workspace, subset, silent)
    smaller = min(pd.Series([labels[image] for image in covered]).value_counts())
    test = 2 * round(0.1 * smaller)
    assert {row.n for row in outcome.results} == {test}
    assert f"{2 * smaller - test}/{test} balanced images" in outcome.results[0].method


@pytest.mark.long
def test_three_values(workspace):
    labels = labels_of(90, 70, 120)
    words = {"A": "kitchen", "B": "garage", "C": "garden"}
    told = {image: [f"someone in the {words[label]}"] for image, label in labels.items()}
    request = fill(workspace, labels, {"told": told}, plainly(labels))
    results = results_of(workspace, replace(request, seeds=2))
    assert value_of(results, metric="SC") == 100 and value_of(results, metric="LIC_M") > 40
    assert value_of(results, metric="LIC_D") == pytest.approx(100 / 9, abs=0.05)
    assert value_of(results, metric="SC_D") == pytest.approx(100 / 3, abs=0.05)
    assert {row.n for row in run_one(workspace, plan(workspace, request)[0], silent).results} == {3 * 7}


def test_several_captions_an_image_have_an_attacker_each(workspace):
    """Caption 0 tells all and caption 1 nothing: the score is the mean of both."""
    labels = labels_of(100, 100)
    both = {image: [own[0], "someone somewhere"] for image, own in hinting(labels, 1.0).items()}
    request = fill(workspace, labels, {"both": both, "one": hinting(labels, 1.0)})
    results = results_of(workspace, replace(request, seeds=2))
    assert value_of(results, model="one", metric="SC") == 100
    assert value_of(results, model="both", metric="SC") == pytest.approx(75)
    one, both = (value_of(results, model=name, metric="LIC_M") for name in ("one", "both"))
    assert both == pytest.approx((one + 25) / 2, abs=0.01)


def images_of_seeds(outcome, side: str = "model") -> set[tuple[int, str]]:
    """The images that each seed holds out, with captions of one side."""
    counts = outcome.counts
    rows = np.flatnonzero(counts.columns[f"{side} captions"])
    return {(int(counts.seed[row]), counts.images[counts.image[row]]) for row in rows}


def memorise(monkeypatch) -> None:
    """An attacker that learns every single word by heart."""
    monkeypatch.setattr(NgramAttacker, "smallest_count", 1)
    monkeypatch.setattr(NgramAttacker, "inverse_penalty", 1000.0)


def by_heart(labels: dict[str, str], captions: int = 2) -> dict[str, list[str]]:
    return {image: [f"person number{image}"] * captions for image in labels}


@pytest.mark.long
def test_scores_are_out_of_fold(workspace, monkeypatch):
    """A word that only one image has tells all to an attacker that has seen the image, and nothing to others."""
    memorise(monkeypatch)
    labels = labels_of(120, 150)
    request = replace(fill(workspace, labels, {"m": by_heart(labels)}, by_heart(labels, 5)), seeds=4, words=True)
    attack, *words = [
        run_one(workspace, spec, silent) for spec in plan(workspace, request) if spec.measure != WORDS_COMPARED
    ]
    values = {row.metric: row.value for row in attack.results}
    assert values["SC"] == pytest.approx(50, abs=5) and values["LIC_M"] == pytest.approx(25, abs=4)
    assert values["SC_D"] == pytest.approx(50, abs=5) and values["LIC_D"] == pytest.approx(25, abs=4)
    for outcome, captions in zip(words, (2, 5), strict=True):
        scores = bytes_frame(outcome.arrays["scores"])
        assert len(scores) == 270 * captions and not scores.duplicated(["image_id", "caption_index"]).any()
        assert scores.groupby("image_id")["fold"].nunique().max() == 1
        balanced = scores.groupby("label").apply(lambda part: (part[f"p{part.name}"] > 0.5).mean())
        assert balanced.mean() == pytest.approx(0.5, abs=0.08)


def test_references_are_aligned_to_the_training_words_of_the_model(workspace, monkeypatch):
    seen = []
    original = align.Alignment.captions

    def note(self, captions):
        seen.append(self.known)
        return original(self, captions)

    monkeypatch.setattr(align.Alignment, "captions", note)
    labels = labels_of(40, 45)
    human = {image: [f"number{image} extra"] * 2 for image in labels}
    request = replace(fill(workspace, labels, {"m": by_heart(labels)}, human), seeds=3)
    (spec,) = plan(workspace, request)
    held_out = images_of_seeds(run_one(workspace, spec, silent))
    assert len(seen) == 6
    for place, known in enumerate(seen):
        held = {image for seed, image in held_out if seed == place % 3}
        words = {f"number{image}" for image in held}
        assert len(held) == 8 and not known & words, "words of test captions are not the model's vocabulary"
        assert known > {"person"} and len(known) == 1 + 2 * 36, "words of all training captions, and no others"


def finished_runs(workspace: Workspace, request: Question):
    for spec in plan(workspace, request):
        if workspace.enqueue(spec, request.collection):
            execute(str(workspace.folder), spec.run_id)
        assert workspace.run(spec.run_id).status == "finished", workspace.run(spec.run_id).message
    return results.current_runs(workspace, request.collection)


def test_the_same_captions_in_two_collections_have_results_in_both(workspace):
    labels = labels_of(20, 20)
    request = replace(fill(workspace, labels, {"m": plainly(labels)}), seeds=1)
    finished_runs(workspace, request)
    for item in workspace.items(collection="c"):
        workspace.keep(item.kind, item.name, workspace.frame(item.hash), "other", "test", item.details)
    (row,) = finished_runs(workspace, replace(request, collection="other"))
    workspace.delete(workspace.item("captions", "m", "c"))
    assert results.current_runs(workspace, "c") == [] and results.current_runs(workspace, "other") == [row]
    assert set(workspace.results([row.run_id])["metric"]) == {"LIC_M", "SC"}
    workspace.delete(workspace.item("captions", "m", "other"))
    assert workspace.runs() == [] and len(workspace.results()) == 0


# ratio and error by hand


def test_ratio_and_error_of_a_small_set(workspace):
    labels = {"1": "Female", "2": "Female", "3": "Male", "4": "Male", "5": "Male"}
    captions = {
        "1": ["a woman"],
        "2": ["a man"],
        "3": ["his dog"],
        "4": ["a man and a woman"],
        "5": ["a person", "Boys!"],
    }
    request = replace(
        fill(workspace, labels, {"m": captions}, attribute=get_attribute("gender")), metrics=("ratio", "error")
    )
    (spec,) = plan(workspace, request)
    outcome = run_one(workspace, spec, silent)
    values = {row.metric: row.value for row in outcome.results if not row.group}
    assert set(values) == {"ratio", "error", "error_gap"}
    assert values["ratio"] == pytest.approx(3) and values["error"] == pytest.approx(100 / 6)
    counts = outcome.counts
    assert {name: counts.size(name) for name in counts.columns} == {
        "captions": 6,
        "misnamed": 1,
        "unnamed": 1,
        "first": 1,
        "second": 3,
    }
    assert counts.label.tolist() == [0, 0, 1, 1, 1]


def test_error_of_three_values(workspace):
    attribute = replace(plain_attribute("group", ("A", "B", "C")), words={"A": ("ay",), "B": ("bee",), "C": ("sea",)})
    labels = {"1": "A", "2": "B", "3": "C", "4": "C"}
    captions = {"1": ["ay"], "2": ["sea"], "3": ["sea bee"], "4": ["none"]}
    request = fill(workspace, labels, {"m": captions}, attribute=attribute)
    (spec,) = plan(workspace, replace(request, metrics=("ratio", "error")))
    outcome = run_one(workspace, spec, silent)
    values = {(row.metric, row.group): row.value for row in outcome.results}
    groups = {("error", "A"): 0, ("error", "B"): 100, ("error", "C"): 0}
    assert values == {("error", ""): 25, ("error_gap", ""): 100} | groups
    assert all("C" in note for note in outcome.notes), "what is said of the labels is said of all values"


# the real captions

# Hirota et al., CVPR 2022, Table 1 as METRICS measured it to two decimals on the 10,780 labelled images.
RATIO_AND_ERROR = {
    "nic": (2.47, 14.25),
    "sat": (2.06, 7.28),
    "fc": (2.07, 10.07),
    "att2in": (2.06, 4.06),
    "updn": (2.15, 3.68),
    "transformer": (2.23, 3.60),
    "oscar": (2.06, 1.43),
}
# The same paper, Table 2: LIC_M of gender with the bidirectional LSTM, 10 seeds.
PUBLISHED_LIC_M = {
    "nic": 43.2,
    "sat": 44.4,
    "fc": 46.4,
    "att2in": 45.9,
    "updn": 48.0,
    "transformer": 48.4,
    "oscar": 48.5,
}


@pytest.mark.slow
def test_real_captions_give_what_the_paper_printed(coco_bias, workspace):
    """LIC_D of the linear attacker is 37.3 to 37.7 over 10 seeds at 80/20; at 90/10, as here, more images train it."""
    keep(
        workspace,
        "coco",
        labels=coco_bias / "annotations" / "attributes.csv",
        attribute="gender",
        references=coco_bias / "annotations" / "captions_subset.json",
        captions={name: coco_bias / "results" / f"{name}.json" for name in RATIO_AND_ERROR},
    )
    request = Question("coco", tuple(RATIO_AND_ERROR), "labels", "gender", ("LIC_M", "ratio", "error"), seeds=2)
    found = results_of(workspace, request).query("group == ''")
    values = found.pivot(index="model", columns="metric", values="value")
    pairs = dict(zip(values.index, zip(values["ratio"].round(2), values["error"].round(2), strict=True), strict=True))
    assert pairs == RATIO_AND_ERROR and set(found[found["metric"] == "ratio"]["n"]) == {10780}
    assert values["LIC_M"].to_dict() == {name: pytest.approx(value, abs=2.5) for name, value in PUBLISHED_LIC_M.items()}
    assert np.corrcoef(values["LIC_M"], [PUBLISHED_LIC_M[name] for name in values.index])[0, 1] >= 0.9
    assert found[found["metric"] == "LIC_M"]["method"].str.startswith("5966/662 balanced images").all()
    beside = replace(request, captions=("oscar",), metrics=("lic",), references="human")
    (spec,) = [spec for spec in plan(workspace, beside) if spec.coverage]
    rows = {row.metric: row for row in run_one(workspace, spec, silent).results}
    assert rows["LIC"].value > 0 and rows["LIC_D"].value == pytest.approx(37.5 + 1.2, abs=1.5)
    assert rows["LIC_D"].method.startswith("1418/158 balanced images")  # 788 women with references: 79 in test


@pytest.mark.long
def test_how_many_captions_an_image_has_tells_nothing(workspace):
    """All images of A have a second caption and a share of those of B; the captions themselves say nothing."""
    labels = labels_of(120, 120)
    rng = np.random.default_rng(0)
    twice = {image: label == "A" or rng.random() < 0.3 for image, label in labels.items()}
    uneven = {image: ["a thing"] * (2 if more else 1) for image, more in twice.items()}
    request = replace(fill(workspace, labels, {"m": uneven}, uneven), seeds=3, words=True)
    attack, words, _ = [
        run_one(workspace, spec, silent) for spec in plan(workspace, request) if spec.measure != WORDS_COMPARED
    ]
    values = {row.metric: row.value for row in attack.results}
    assert values == pytest.approx(NOTHING_TOLD, abs=0.05)
    assert bytes_frame(words.arrays["scores"])["p1"].to_numpy() == pytest.approx(0.5, abs=0.001)


def test_captions_that_are_empty_after_masking(workspace):
    labels = labels_of(40, 40, values=("Female", "Male"))
    captions = {"some": {image: ["..." if place % 3 else "a dog"] for place, image in enumerate(labels)}}
    captions["all"] = {image: ["..."] for image in labels}
    request = fill(workspace, labels, captions, attribute=get_attribute("gender"))
    results = results_of(workspace, replace(request, seeds=2))
    assert np.isfinite(results["value"]).all()
    assert value_of(results, model="all", metric="LIC_M") == pytest.approx(25, abs=0.01)


@pytest.mark.long
def test_both_sides_and_all_captioners_hold_out_the_same_images(workspace):
    labels = labels_of(60, 80)
    request = fill(workspace, labels, {"a": hinting(labels, 0.9), "b": plainly(labels)}, hinting(labels, 0.6))
    held = []
    for spec in plan(workspace, replace(request, seeds=3)):
        outcome = run_one(workspace, spec, silent)
        held += [images_of_seeds(outcome, side) for side in ("model", "human")]
        counts = outcome.counts
        tested = counts.label >= 0
        assert counts.label[tested].tolist() == [int(labels[image] == "B") for image in np.array(counts.images)[tested]]
    assert held[0] == held[1] == held[2] == held[3] and len(held[0]) == 3 * 12


@pytest.mark.long
def test_words_and_scores_of_each_caption_are_read_back(workspace):
    labels = labels_of(60, 60, values=("Female", "Male"))
    told = {
        image: [f"a {'lady' if labels[image] == 'Female' else 'man'} in a {word[0]}", "..."]
        for image, word in hinting(
            {image: "A" if label == "Female" else "B" for image, label in labels.items()}, 0.9
        ).items()
    }
    request = fill(workspace, labels, {"m": told}, attribute=get_attribute("gender"))
    runs = finished_runs(workspace, replace(request, words=True))
    (row,) = [run for run in runs if run.spec.measure == "caption_scores"]
    scores = caption_scores(row)
    assert len(scores.table) == 120 * 2 and len(scores.words) == scores.offsets[-1]
    attackers = [stored_attackers(row, index) for index in (0, 1)]
    for place, own in enumerate(scores.table.itertuples()):
        words = scores.words_of(place)
        assert len(words) == len(own.masked.split())
        assert own.baseline0 + words.sum() == pytest.approx(own.logit0, abs=1e-9)
        written = told[own.image_id][own.caption_index]
        again = attackers[own.caption_index].score(written, scores.attribute, own.fold)
        assert again.tokens == own.masked.split() and again.logit == pytest.approx([own.logit0])
        assert again.words == pytest.approx(words)
    table = words_of_set(row)
    toward = table.set_index("word")["toward"]
    assert (toward["kitchen"], toward["garage"]) == (0, 1) and not {"<gender>"} & set(table["word"])
    assert top_words(table, 5, 1)["word"].tolist() == ["kitchen", "garage"]


SPEC = RunSpec(
    measure="lic",
    version=1,
    model="m",
    captions="c",
    labels={"table": "t", "column": "l", "mapping": {"a": "A"}},
    attribute=get_attribute("gender").stored(),
    options={"attacker": "ngram", "seeds": 2},
)


def test_numbers_by_other_options_are_of_another_setting():
    dpa = replace(SPEC, measure="dpa", options={"seeds": 4})
    few, same = (replace(dpa, options={"seeds": 2}), replace(dpa, options={"seeds": 4, "device": "cpu"}))
    assert Setting.of(few).key != Setting.of(dpa).key == Setting.of(same).key
    assert Setting.of(dpa).fits(Setting.of(SPEC).key), "with numbers of other measures they may stand"


CHANGES = (
    {"measure": "caption_scores"},
    {"model": "n"},
    {"captions": "d"},
    {"references": "r"},
    {"labels": {"table": "t", "column": "l", "mapping": {"a": None}}},
    {"attribute": replace(get_attribute("gender"), mask_token="<g>").stored()},
    {"coverage": "with_references"},
    {"shared_with": "d"},
    {"version": 99},
    *({"options": SPEC.options | more} for more in ({"attacker": "lstm_bi"}, {"seeds": 3}, {"merge_masks": True})),
)


def test_a_run_is_another_where_anything_that_counts_differs():
    others = {replace(SPEC, **change).run_id for change in CHANGES}
    assert len(others) == len(CHANGES) and SPEC.run_id == replace(SPEC).run_id not in others


WRONG = (
    {"seeds": 0},
    {"options": {"smallest": 3}},
    {"options": {"test_share": 0.6}},
    {"captions": ()},
    {"captions": ("x",)},
    {"attacker": "bert"},
    {"metrics": ("bleu",)},
    {"metrics": ()},
    {"attribute": "age"},
    {"labels": "x"},
    {"references": "x"},
    {"collection": "x"},
)


def test_a_wrong_request_is_refused_in_words(workspace):
    labels = labels_of(20, 20)
    request = fill(workspace, labels, {"m": plainly(labels)})
    for change in WRONG:
        with sentences.raises(CapbiasError):
            plan(workspace, replace(request, **change))
