"""Slices of images: numbers worked out by hand, who is in and who is neither, and where a claim is made."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.statistics.slices import one_set, shares
from capbias_core.errors import CapbiasError
from capbias_core.views.slices import LEAST_IMAGES, UNTESTED, Slice, SliceSources, slices, slices_sentence
from capbias_core.views.view import scope
from capbias_core.workspace.store import Workspace
from tests import sentences
from tests.collections_ import keep
from tests.pages.synthetic import score

IMAGES, SEEDS = 900, 4
REFUSAL = "I'm sorry, but I can't help with identifying people in images."


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """The captioner tells the label by a colour, on images with a kite; people never do. Labels have a column `half`,
    empty for some images; some images are not annotated for objects."""
    found, rng = Workspace(tmp_path_factory.mktemp("slices")), np.random.default_rng(1)
    ids = np.arange(IMAGES).astype(str)
    label = np.where(rng.random(IMAGES) < 0.5, "Female", "Male")
    kite, bench, rare = rng.random(IMAGES) < 0.4, rng.random(IMAGES) < 0.5, rng.random(IMAGES) < 0.05
    shown = np.column_stack([kite, bench, rare])
    objects = ["|".join(["person", *np.array(["kite", "bench", "zebra"])[own]]) for own in shown]
    half = rng.choice(["left", "right", ""], IMAGES, p=[0.45, 0.45, 0.1])
    who, where = np.where(label == "Male", "man", "woman"), ["by the sea", "in a kitchen", "on the street"]

    def said() -> list[str]:
        things = rng.choice(["a bag", "a book", "a cup"], IMAGES)
        return [f"a {one} with {thing} {rng.choice(where)}" for one, thing in zip(who, things, strict=True)]

    captions = np.array(said(), dtype=object)
    colour = np.where(label == "Male", "blue", "pink")
    captions[kite] = [f"{text} {shade}" for text, shade in zip(captions[kite], colour[kite], strict=True)]
    wrong = bench & (rng.random(IMAGES) < 0.2)
    captions[wrong] = [text.replace("a woman", "a man") for text in captions[wrong]]
    captions[(~bench) & (rng.random(IMAGES) < 0.1)] = REFUSAL
    keep(
        found,
        labels=pd.DataFrame({"image_id": ids, "gender": label, "half": half}),
        references=pd.concat([pd.DataFrame({"image_id": ids, "caption": said()}) for _ in range(2)]),
        objects=pd.DataFrame({"image_id": ids[:850], "objects": objects[:850]}),
        captions={"m": pd.DataFrame({"image_id": ids, "caption": captions})},
        attribute="gender",
    )
    score(found, captioners=("m",), metrics=("lic",), seeds=SEEDS, words=False)
    return found


@pytest.fixture(scope="module")
def of_m(workspace):
    return scope(workspace, "c")


def row(shown, rule: str, metric: str) -> pd.Series:
    (found,) = shown.rows[(shown.rows["rule"] == rule) & (shown.rows["metric"] == metric)].to_dict("records")
    return pd.Series(found)


@pytest.mark.long
@pytest.mark.parametrize(("metric", "sides"), [("LIC", ("model", "human")), ("LIC_by_H", ("model_by_human", "human"))])
def test_numbers_and_intervals_by_hand(workspace, of_m, metric, sides):
    frame = workspace.frame(workspace.item("objects", "objects", "c").hash)
    known = set(frame["image_id"])
    inside = {image for image, text in zip(frame["image_id"], frame["objects"], strict=True) if "kite" in text}
    counts = workspace.counts(of_m.run("m").run_id)[""]
    images = np.array(counts.images)[counts.image]
    within, beyond = np.isin(images, list(inside)), np.isin(images, list(known - inside))
    test = np.mean([len(set(images[counts.seed == seed])) for seed in range(SEEDS)])

    def by_seed(kept: np.ndarray) -> np.ndarray:
        values = np.zeros(SEEDS)
        for seed in range(SEEDS):
            rows = kept & (counts.seed == seed)
            one, other = (counts.columns[f"{side} sure"][rows].sum() for side in sides)
            n, m = (counts.columns[f"{side} captions"][rows].sum() for side in sides)
            values[seed] = 100 * (one / n - other / m)
        return values

    def ends(values: np.ndarray) -> tuple[float, float, float, float]:
        error = np.sqrt(values.var(ddof=1) * (1 / SEEDS + test / counts.training))
        half = stats.t.ppf(0.975, SEEDS - 1) * error
        p = 2 * stats.t.sf(abs(values.mean()) / error, SEEDS - 1)
        return float(values.mean()), float(values.mean() - half), float(values.mean() + half), float(p)

    found = row(slices(of_m, objects=["kite", "bench"]), "object:kite", metric)
    assert np.isnan(found["p"]) == (metric == UNTESTED)
    parts = {"value": by_seed(within), "rest": by_seed(beyond), "difference": by_seed(within) - by_seed(beyond)}
    for name, values in parts.items():
        shown = [found[f"{name}{end}"] for end in ("", "_low", "_high")]
        assert shown == pytest.approx(ends(values)[:3], abs=1e-10), name
    assert metric == UNTESTED or found["p"] == pytest.approx(ends(parts["difference"])[3])
    assert (found["n"], found["n_rest"]) == (len(set(images[within])), len(set(images[beyond])))
    each = [len(set(images[within & (counts.seed == seed)])) for seed in range(SEEDS)]
    assert found["n_per_seed"] == np.mean(each) and found["images"] == len(inside)
    assert found["share"] == pytest.approx(100 * len(inside) / 850)


@pytest.mark.long
def test_errors_and_refusals_by_hand(workspace, of_m):
    frame = workspace.frame(workspace.item("captions", "m", "c").hash).set_index("image_id")["caption"]
    labels = workspace.frame(workspace.item("attributes", "labels", "c").hash).set_index("image_id")
    shown = slices(of_m, columns=["half"])
    assert set(shown.rows["slice"]) == {"half: left", "half: right"}, "no slice of empty cells"
    left, right = (set(labels.index[labels["half"] == half]) for half in ("left", "right"))
    wrong = set(frame.index[[" man " in text and labels.at[i, "gender"] == "Female" for i, text in frame.items()]])
    for metric, hit in (("error", wrong), ("refused", set(frame.index[frame == REFUSAL]))):
        found = row(shown, "column:half=left", metric)
        table = [[len(hit & side), len(side - hit)] for side in (left, right)]
        assert found["value"] == pytest.approx(100 * len(hit & left) / len(left))
        assert found["rest"] == pytest.approx(100 * len(hit & right) / len(right))
        wilson = stats.binomtest(len(hit & left), len(left)).proportion_ci(method="wilson")
        assert (found["value_low"], found["value_high"]) == pytest.approx((100 * wilson.low, 100 * wilson.high))
        assert found["p"] == pytest.approx(stats.fisher_exact(table).pvalue)
        assert found["difference_low"] < found["difference"] < found["difference_high"]
        assert (found["n"], found["n_rest"]) == (len(left), len(right))


@pytest.mark.long
def test_the_leaking_slice_is_found_and_small_ones_have_no_number(of_m):
    shown = slices(of_m)
    assert list(dict.fromkeys(shown.rows["slice"])) == ["bench", "kite", "zebra"], "by size, without person"
    assert row(shown, "object:kite", "LIC")["significant"] == "yes"
    zebra = row(shown, "object:zebra", "LIC")
    assert np.isnan(zebra["value"]) and zebra["n"] < LEAST_IMAGES and zebra["significant"] == ""
    tested = [row(shown, f"object:{name}", "LIC") for name in ("kite", "bench")]
    smaller, larger = sorted(one["p"] for one in tested)
    assert sorted(one["p_holm"] for one in tested) == pytest.approx([2 * smaller, max(2 * smaller, larger)])
    sentences.check("slices, sentence and notes", "\n".join([shown.sentence, *shown.notes]), numbers=False)
    assert shown.sentence.startswith("m: LIC is higher in images with “kite”") and "bench”" not in shown.sentence
    assert shown.sentence.endswith("Simpler wording alone may do this: as a whole, it is not shown to amplify.")
    amplifying = slices_sentence(shown.rows, "LIC", "the slices")
    assert amplifying == shown.sentence.partition(" Simpler")[0], "nobody else gets the warning"
    assert shown.chart and len(shown.chart().data) == 3 and "fewer than 100" in shown.for_reader["LIC"].iloc[2]
    kept = slices(of_m, objects=["bench", "zebra"])
    assert "in none of the 2 slices does LIC differ" in kept.sentence
    few = slices(of_m, objects=["zebra"])
    assert few.sentence.startswith("m: no slice has 100 images") and f"(most: zebra {zebra['n']})" in few.sentence
    assert few.chart is None and any("A lower limit" in note for note in few.notes)
    few = slices(of_m, objects=["zebra"], least=10)
    numbers = row(few, "object:zebra", "LIC")
    assert np.isfinite(numbers["value"]) and np.isnan(numbers["p_holm"]) and numbers["significant"] == ""
    assert "none is tested" in few.sentence and "not tested" in few.for_reader["p (Holm)"].iloc[0]
    assert any("support no claim" in note for note in few.notes)


@pytest.mark.long
def test_words_and_searches(workspace, of_m):
    human = workspace.frame(workspace.item("references", "human", "c").hash)
    has = human["caption"].str.contains("kitchen|street", regex=True)
    shown = slices(of_m, words=["Kitchen | street"], searches=["PINK"], images=True)
    by_rule = {rule: set(own["image_id"]) for rule, own in shown.rows.groupby("rule")}
    assert by_rule["words:kitchen|street"] == set(human.loc[has, "image_id"])
    captions = workspace.frame(workspace.item("captions", "m", "c").hash)
    assert by_rule["search:PINK"] == set(captions.loc[captions["caption"].str.contains("pink"), "image_id"])
    assert shown.rows["seeds"].max() <= SEEDS


@pytest.mark.long
def test_what_is_no_slice(workspace, of_m):
    wrong: list[dict[str, Any]] = [{"objects": ["cat"]}, {"columns": ["hal"]}, {"metric": "SC"}, {"metric": UNTESTED}]
    for more in wrong:
        with sentences.raises(CapbiasError):
            slices(of_m, **more)
    for rule in ("words: ", "column:half", "object", "colour:red"):
        with pytest.raises(CapbiasError, match="is not a slice"):
            Slice.parse(rule)
    table = workspace.item("attributes", "labels", "c")
    sources = SliceSources(workspace, "c", table, table.hash)
    with pytest.raises(CapbiasError, match="There is no value of half 'lef'"):
        sources.members(Slice.parse("column:half=lef"))
    with pytest.raises(CapbiasError, match="No human captions"):
        sources.members(Slice.parse("words:sea"))


@pytest.mark.long
def test_claims_of_made_captions():
    """8 sets without a difference and 4 with one planted. At 5% false claims, 3 or more in 8 come once in 170 runs."""
    null = shares([one_set(number) for number in range(8)])
    assert null["LIC: any slice"] <= 100 * 2 / 8
    found = shares([one_set(number, planted=0.6) for number in range(4)])
    assert found["LIC: the planted slice"] >= 75 and found["LIC: another slice"] <= 25
