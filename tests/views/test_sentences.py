"""Verdicts and notes in words: each of these rows reads as tests/sentences.txt says."""

import pandas as pd
import pytest

from capbias_core.aggregate import Pair, Ranking
from capbias_core.aggregate.comparison import ABOVE, BELOW, OPEN, sensitivity
from capbias_core.attackers import attacker_entry
from capbias_core.attributes import get_attribute, plain_attribute
from capbias_core.types import A_TO_T, T_TO_A
from capbias_core.views import sentence
from capbias_core.views.answer import cross_table, overview
from capbias_core.views.directions import basis, directions, directions_answer, directions_table
from capbias_core.views.encoders import devices_note, encoder_note, encoders_answer, encoders_warning, seeds_note
from capbias_core.views.tables import pair_table
from tests import sentences
from tests.views.rows import frame, pair, row

GENDER = get_attribute("gender")


def told(text) -> str:
    return f"{text.headline}\n{text.support}"


LIC = {
    "LIC": (4.4, 2.3, 6.5),
    "LIC_by_H": (1.0, 0.5, 1.5),
    "LIC_by_M": (-1.0, -1.5, -0.5),
    "LIC_M": (50.0, 49.0, 51.0),
    "LIC_D": (45.6, 44.0, 47.0),
    "SC": (70.0, 69.0, 71.0),
    "SC_D": (66.0, 65.0, 67.0),
}


@pytest.mark.parametrize("trained", [True, False])
@pytest.mark.parametrize("verdict", ["amplifies", "reduces", "inconclusive", ""])
def test_the_answer_follows_the_verdict(verdict, trained):
    interval = {} if verdict else {"interval": "images"}  # of one trained attacker
    rows = frame(*(row(name, *values, verdict=verdict, **interval) for name, values in LIC.items()))
    answer = sentence.answer(rows, "m", GENDER, attacker_entry("ngram"), trained)
    sentences.check(
        f"answer: {verdict or 'provisional'}{'' if trained else ', not trained on references'}", told(answer)
    )
    assert verdict == "amplifies" or "amplifies gender" not in answer.headline
    assert sentence.second_dots(rows, "LIC") == {"m": (1.0, 0.5, 1.5)}
    crossed = rows.assign(metric=rows["metric"].replace({"SC": "LIC_HM", "SC_D": "LIC_MH"}))
    assert len(cross_table(crossed, "m")) == 2 and cross_table(rows, "m").empty, "no such scores, no table"


@pytest.mark.parametrize("verdict", ["amplifies", "reduces", "amplifies as given", "amplifies cut", "LIC as given"])
def test_the_answer_says_what_holds_at_equal_length(verdict):
    up, down, open_ = (2.0, 1.0, 3.0), (-2.0, -3.0, -1.0), (0.1, -1.0, 1.2)
    by_human, by_human_cut, by_model = {
        "amplifies": (up, up, open_),
        "reduces": (open_, open_, down),
        "amplifies as given": (up, open_, open_),
        "amplifies cut": (open_, up, open_),
        "LIC as given": (open_, open_, open_),
    }[verdict]
    values = LIC | {"LIC_by_H": by_human, "LIC_by_H_cut": by_human_cut, "LIC_by_M": by_model, "LIC_by_M_cut": by_model}
    values["LIC_cut"] = open_
    known = verdict if verdict in ("amplifies", "reduces") else "inconclusive"
    rows = frame(*(row(name, *numbers, verdict=known) for name, numbers in values.items()))
    answer = sentence.answer(rows, "m", GENDER, attacker_entry("ngram"), True)
    sentences.check(f"answer at equal length: {verdict}", told(answer))
    assert "at equal length" in answer.headline
    lowest = min(by_human, by_human_cut, key=lambda dot: dot[1])
    assert sentence.second_dots(rows, "LIC") == {"m": lowest}


def test_what_is_said_beside_the_answer():
    rows = frame(
        row("error", 1.44, 1.2, 1.7),
        row("ratio", 2.061, 1.97, 2.15, scale=1.0),
        row("DBAC", 24.6, 20.4, 28.9, direction=A_TO_T),
        row("DBAC", 13.8, 10.8, 16.8, direction=T_TO_A),
        row("DBAC_constant", 15.0, 13.4, 16.6, direction=A_TO_T),
        *pair("m", (9.6, 7.0, 12.2), (1.0, -1.0, 3.0), "DBAC_added", coverage=""),
    )
    two = frame(row("LIC_M", 60, 55, 65), row("LIC_M", 50, 45, 55, encoder="rnn"))
    for name, of, attribute in (
        ("measured", rows, GENDER),
        ("nothing measured", frame(), GENDER),
        ("an encoder at chance", pd.concat([two, frame(row("SC", 50, 45, 55, encoder="rnn"))]), GENDER),
        ("other settings", two, GENDER),
        ("an attribute without words", frame(), plain_attribute("place", ("in", "out"))),
    ):
        lines = [f"{line.page}: {line.said}" for line in overview(of, attribute, "ngram", None)]
        sentences.check(f"overview: {name}", "\n".join(lines))


def test_guesses_at_chance_are_named():
    for value, low, high, values, warned in (
        (54.4, 44.9, 64.0, 2, True),
        (41.0, 30.0, 52.0, 3, True),
        (50.0, None, None, 2, True),
        (63.8, 60.1, 67.5, 2, False),
        (41.0, 36.0, 46.0, 3, False),
    ):
        attribute = plain_attribute("sky", tuple("abc")[:values])
        found = sentence.chance_warning(pd.Series(row("SC", value, low, high, spread=None)), attribute)
        assert bool(found) == warned
        if warned:
            sentences.check(f"chance: {value} of {values} values", found)


def test_variants_that_disagree_beyond_doubt_are_named():
    def warning(low: float, high: float, direction: str = A_TO_T) -> str:
        rows = frame(
            row("DBAC", 7, 5, 10, direction=direction), row("DBAC_equations", 0, low, high, direction=direction)
        )
        return sentence.variants_warning(rows.assign(alignment="constant"))

    assert warning(1, 3) == warning(-1, 3) == ""
    sentences.check("variants: disagree", warning(-9, -3))


def test_pairs_of_captioners():
    pairs = (
        Pair("a", "b", -1.94, -3.0, -1.0, 0.00002),
        Pair("a", "c", -0.04, -2, 1, 0.61),
        Pair("b", "c", 1.5, 0, 3, 0.041),
    )
    ranking = Ranking({"a": "a", "b": "b", "c": "a"}, pairs, {"a": 1.0, "b": 2.94, "c": 1.4})
    assert pair_table(ranking).to_dict("records") == [
        {"captioner": "b", "b": "", "c": "+1.5, p 0.041, higher", "a": "+1.9, p < 0.001, higher"},
        {"captioner": "c", "b": "−1.5, p 0.041, lower", "c": "", "a": "0.0, p 0.61"},
        {"captioner": "a", "b": "−1.9, p < 0.001, lower", "c": "0.0, p 0.61", "a": ""},
    ]
    sentences.check("pairs", sentence.told_apart(ranking))


HIGH, LOW, OPEN_ = (10, 5, 15), (-10, -15, -5), (1, -5, 7)
FIVE = [
    *pair("one", HIGH, HIGH),
    *pair("two", LOW, HIGH),
    *pair("three", HIGH, LOW),
    *pair("four", LOW, LOW),
    *pair("five", OPEN_, HIGH),
]
ADDED = [own | {"metric": "DBAC_added"} for own in FIVE]
FLIPPED = {"value": "value", "ci_low": "ci_high", "ci_high": "ci_low"}
OTHERS = [own | {"metric": "DBAC_equations"} | {new: -own[old] for new, old in FLIPPED.items()} for own in FIVE]
BOTH_WAYS = {
    "five captioners": ([*FIVE, *ADDED], "DBAC"),
    "another variant disagrees": ([*FIVE, *ADDED, *pair("one", LOW, HIGH, "DBAC_equations")], "DBAC"),
    "another variant disagrees of all": ([*FIVE[:-2], *ADDED, *OTHERS], "DBAC"),
    "not compared with a constant attacker": (FIVE, "DBAC"),
    "verbs": ([own | {"metric": own["metric"].replace("DBAC", "DBAC_verbs")} for own in [*FIVE, *ADDED]], "DBAC_verbs"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", BOTH_WAYS)
def test_both_directions(name):
    given, metric = BOTH_WAYS[name]
    rows = frame(*given)
    found = directions(rows, metric)
    table = directions_table(found, rows, metric)[["captioner", "images to add"]]
    text = [told(directions_answer(found, rows, metric, "gender")), basis(found), *map(": ".join, table.to_numpy())]
    sentences.check(f"directions: {name}", "\n".join(text))


def test_what_depends_on_the_encoder():
    signs = {"turns": ((4, 2, 6), (-4, -6, -2)), "opens": ((3, 1, 5), (1, -1, 3)), "stays": ((9, 8, 10), (9, 7, 11))}
    rows = frame(
        *(
            row("LIC", *own, model=name, encoder=by)
            for name, pair in signs.items()
            for by, own in zip("ab", pair, strict=True)
        )
    )
    orders = [{("turns", "opens"): way, ("turns", "stays"): BELOW, ("opens", "stays"): BELOW} for way in (ABOVE, BELOW)]
    found = sensitivity(rows, orders)
    assert found.turned == ["turns"] and OPEN in found.signs["opens"].values()
    one = sensitivity(rows[rows["encoder"] == "a"], orders[:1])
    notes = [f"{name}: {encoder_note(found, name)}" for name in signs]
    more = [encoders_warning(found, "LIC"), seeds_note(rows.assign(seeds=[10, 2] * 3))]
    more.append(devices_note(rows.assign(device=["cpu", "cuda"] * 3)))
    sentences.check("encoders", "\n".join([told(encoders_answer({"LIC": found})), *notes, *more]))
    sentences.check("encoders: one", told(encoders_answer({"LIC": one})))
    sentences.check("encoders: none", told(encoders_answer({})))
    sentences.check("encoders: weak", told(encoders_answer({"LIC": one}, weak=["rnn"])))
