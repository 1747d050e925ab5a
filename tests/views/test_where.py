"""Where: slices worked out by hand, who is in and who is neither, where a claim is made, and values beside objects."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.statistics.slices import one_set, shares
from capbias_core.errors import CapbiasError
from capbias_core.views.choose import choose, measured_rows
from capbias_core.views.objects import METRIC, OWN, PEOPLE
from capbias_core.views.slices import DIFFERENCE, INSIDE, LEAST_IMAGES, OUTSIDE
from capbias_core.views.where import WHERE, WhereOptions, images_of, where_rows
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
    return choose(workspace, measured_rows(workspace, "c"), {"collection": "c"}, strict=True)


def number(rows: pd.DataFrame, rule: str, of: str) -> dict[str, Any]:
    (found,) = rows[(rows["rule"] == rule) & (rows["of"] == of)].to_dict("records")
    return found


@pytest.mark.long
def test_numbers_and_intervals_by_hand(workspace, of_m):
    frame = workspace.frame(workspace.item("objects", "objects", "c").hash)
    known = set(frame["image_id"])
    inside = {image for image, text in zip(frame["image_id"], frame["objects"], strict=True) if "kite" in text}
    counts = workspace.counts(of_m.run().run_id)[""]
    images = np.array(counts.images)[counts.image]
    within, beyond = np.isin(images, list(inside)), np.isin(images, list(known - inside))
    test = np.mean([len(set(images[counts.seed == seed])) for seed in range(SEEDS)])

    def by_seed(kept: np.ndarray) -> np.ndarray:
        values = np.zeros(SEEDS)
        for seed in range(SEEDS):
            rows = kept & (counts.seed == seed)
            one, other = (counts.columns[f"{side} sure"][rows].sum() for side in ("model", "human"))
            n, m = (counts.columns[f"{side} captions"][rows].sum() for side in ("model", "human"))
            values[seed] = 100 * (one / n - other / m)
        return values

    def ends(values: np.ndarray) -> tuple[float, float, float, float]:
        error = np.sqrt(values.var(ddof=1) * (1 / SEEDS + test / counts.training))
        half = stats.t.ppf(0.975, SEEDS - 1) * error
        p = 2 * stats.t.sf(abs(values.mean()) / error, SEEDS - 1)
        return float(values.mean()), float(values.mean() - half), float(values.mean() + half), float(p)

    rows = where_rows(of_m, WhereOptions(objects=("kite", "bench")))
    parts = {INSIDE: by_seed(within), OUTSIDE: by_seed(beyond), DIFFERENCE: by_seed(within) - by_seed(beyond)}
    for of, values in parts.items():
        found = number(rows, "object:kite", of)
        assert [found[end] for end in ("value", "low", "high")] == pytest.approx(ends(values)[:3], abs=1e-10), of
    assert number(rows, "object:kite", DIFFERENCE)["p"] == pytest.approx(ends(parts[DIFFERENCE])[3])
    found, rest = number(rows, "object:kite", INSIDE), number(rows, "object:kite", OUTSIDE)
    assert (found["n"], rest["n"]) == (len(set(images[within])), len(set(images[beyond])))
    each = [len(set(images[within & (counts.seed == seed)])) for seed in range(SEEDS)]
    assert found["n_per_seed"] == np.mean(each) and found["images"] == len(inside)
    assert found["share"] == pytest.approx(100 * len(inside) / 850)
    assert images_of(of_m, rows, "kite") == inside, "what a click shows"


@pytest.mark.long
def test_errors_and_refusals_by_hand(workspace, of_m):
    frame = workspace.frame(workspace.item("captions", "m", "c").hash).set_index("image_id")["caption"]
    labels = workspace.frame(workspace.item("labels", "labels", "c").hash).set_index("image_id")
    left, right = (set(labels.index[labels["half"] == half]) for half in ("left", "right"))
    wrong = set(frame.index[[" man " in text and labels.at[i, "gender"] == "Female" for i, text in frame.items()]])
    for metric, hit in (("error", wrong), ("refused", set(frame.index[frame == REFUSAL]))):
        rows = where_rows(of_m, WhereOptions(metric=metric, column=("half",)))
        assert set(rows["line"]) == {"half: left", "half: right"}, "no slice of empty cells"
        found, rest, change = (number(rows, "column:half=left", of) for of in (INSIDE, OUTSIDE, DIFFERENCE))
        table = [[len(hit & side), len(side - hit)] for side in (left, right)]
        assert found["value"] == pytest.approx(100 * len(hit & left) / len(left))
        assert rest["value"] == pytest.approx(100 * len(hit & right) / len(right))
        wilson = stats.binomtest(len(hit & left), len(left)).proportion_ci(method="wilson")
        assert (found["low"], found["high"]) == pytest.approx((100 * wilson.low, 100 * wilson.high))
        assert change["p"] == pytest.approx(stats.fisher_exact(table).pvalue)
        assert change["low"] < change["value"] < change["high"]
        assert (found["n"], rest["n"]) == (len(left), len(right))


@pytest.mark.long
def test_the_leaking_slice_is_found_and_small_ones_have_no_number(of_m):
    rows = where_rows(of_m)
    assert list(dict.fromkeys(rows["line"])) == ["bench", "kite", "zebra"], "by size, without person"
    assert number(rows, "object:kite", INSIDE)["verdict"] == "higher"
    zebra = number(rows, "object:zebra", INSIDE)
    assert np.isnan(zebra["value"]) and zebra["n"] < LEAST_IMAGES and zebra["verdict"] == ""
    tested = [number(rows, f"object:{name}", DIFFERENCE) for name in ("kite", "bench")]
    smaller, larger = sorted(one["p"] for one in tested)
    assert sorted(one["p_holm"] for one in tested) == pytest.approx([2 * smaller, max(2 * smaller, larger)])
    sentence = WHERE.sentence(of_m, rows)
    sentences.check("where, sentence and notes", "\n".join([sentence, *WHERE.notes(of_m, rows)]), numbers=False)
    assert sentence.startswith("m: LIC is higher in images with “kite”") and "bench”" not in sentence
    assert sum(part.strip("(,.").replace(".", "").isdigit() for part in sentence.split()) <= 3
    for objects, said in (
        (("bench", "zebra"), "LIC is significantly higher than elsewhere in none of 2 objects"),
        (("zebra",), f"zebra: {zebra['n']} images held out in the slice, fewer than 100"),
    ):
        assert said in WHERE.sentence(of_m, where_rows(of_m, WhereOptions(objects=objects)))


def test_where_it_amplifies_is_never_answered_with_where_it_is_lower(of_m, monkeypatch):
    """A slice where LIC is lower, one where it is higher and not above 0, and one where it is both."""

    def rows_of(value: float, low: float, verdict: str) -> pd.DataFrame:
        of_slice = {"captioner": "m", "metric": "LIC", "line": "dog", "rule": "object:dog", "n": 150, "reason": ""}
        inside = of_slice | {"of": INSIDE, "value": value, "low": low, "verdict": verdict}
        rest = of_slice | {"of": OUTSIDE, "value": 4.0, "low": 3.0, "verdict": ""}
        change = of_slice | {"of": DIFFERENCE, "value": value - 4, "p": 0.001, "verdict": ""}
        return pd.DataFrame([inside, rest, change])

    for value, low, verdict, found in ((1.0, 0.5, "lower", 0), (9.0, -1.0, "higher", 0), (9.0, 2.0, "higher", 1)):
        sentence = WHERE.sentence(of_m, rows_of(value, low, verdict))
        assert "lower" not in sentence and ("9.0, others 4.0" in sentence) == bool(found)


@pytest.mark.long
def test_words_and_what_is_no_slice(workspace, of_m):
    human = workspace.frame(workspace.item("references", "human", "c").hash)
    has = human["caption"].str.contains("kitchen|street", regex=True)
    rows = where_rows(of_m, WhereOptions(words=("Kitchen | street",)))
    (words,) = set(rows["line"])
    assert images_of(of_m, rows, words) == set(human.loc[has, "image_id"])
    unknown = [WhereOptions(objects=("cat",)), WhereOptions(column=("hal",)), WhereOptions(words=(" ",))]
    for wrong in (*unknown, WhereOptions(metric="SC"), WhereOptions(metric="LIC_by_H")):
        with sentences.raises(CapbiasError):
            where_rows(of_m, wrong)


@pytest.mark.long
def test_values_beside_objects_by_hand(of_m, workspace):
    """Of captions with a book, those that name one value; people's beside them."""
    rows = where_rows(of_m, WhereOptions(metric=METRIC))
    captions = workspace.frame(workspace.item("captions", "m", "c").hash)["caption"]
    book = captions[captions.str.contains("a book")]
    own, people, change = (
        rows[(rows["line"] == "book") & (rows["of"] == of)].iloc[0] for of in (OWN, PEOPLE, DIFFERENCE)
    )
    assert own["value"] == pytest.approx(book.str.contains("a man").mean()) and own["n"] == len(book)
    assert change["value"] == pytest.approx(own["value"] - people["value"])
    assert change["low"] < change["value"] < change["high"] and 0 < change["p"] <= change["p_holm"] <= 1


@pytest.mark.slow
def test_claims_of_made_captions():
    """8 sets without a difference and 4 with one planted. At 5% false claims, 3 or more in 8 come once in 170 runs."""
    null = shares([one_set(number) for number in range(8)])
    assert null["LIC: any slice"] <= 100 * 2 / 8
    found = shares([one_set(number, planted=0.6) for number in range(4)])
    assert found["LIC: the planted slice"] >= 75 and found["LIC: another slice"] <= 25


@pytest.mark.long
def test_of_several_files_of_objects_that_of_most_images_is_read(workspace, of_m):  # the last: it adds a file
    rows = where_rows(of_m, WhereOptions(objects=("kite",)))
    few = pd.DataFrame({"image_id": ["1", "2"], "objects": ["kite", "bench"]})
    workspace.keep("objects", "few", few, "c", "few.csv", {})
    pd.testing.assert_frame_equal(where_rows(of_m, WhereOptions(objects=("kite",))), rows)
