"""The baseline of LIC: what plainness alone gives is not called amplification, and what is planted is found."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.statistics.baseline import found
from benchmarks.statistics.synthetic import Design, draw
from capbias_core.aggregate import Estimate, Refits
from capbias_core.aggregate.estimate import quotient
from capbias_core.aggregate.verdict import verdict
from capbias_core.measures.held_out import estimates_of
from capbias_core.measures.lic import METRICS, _no_baseline, _of_plainness
from capbias_core.measures.lic_baseline import (
    Excess,
    Plainness,
    Sides,
    _person,
    _plainness,
    _told_alike,
    baseline_estimates,
    fits,
    retold_lists,
    verdict_of,
)
from capbias_core.measures.training import CaptionList
from capbias_core.metrics.evidence import HeldOut
from capbias_core.prepare.retell import Told, retell, told

PLAIN = Plainness(
    told=0.4,
    retold=0.3,
    variety=7.0,
    human_variety=8.0,
    type_token=0.01,
    human_type_token=0.02,
    repeated=0.5,
    human_repeated=0.1,
    unknown=0.2,
)


def estimate_of(*values: float) -> Estimate:
    """Of one value per seed, a ninth as many test images as training images."""
    held = np.ones((len(values), 1), dtype=bool)
    refits = Refits(tuple(range(len(values))), held, 9, lambda kept: np.zeros((len(values), 2)))
    return Estimate(("1",), np.ones((1, 2)), np.array(values), 100, quotient, refits, level=False)


def excess(harder: Estimate, below: Estimate, more_varied: bool = False) -> Excess:
    return Excess(**vars(harder), below=below, more_varied=more_varied)


def test_verdict_is_what_the_whole_interval_says():
    assert [verdict(*ends) for ends in ((0.1, 2), (-0.1, 2), (-2, -0.1), (0, 2))] == [
        "amplifies",
        "not shown",
        "reduces",
        "not shown",
    ]


def test_the_excess_covers_the_intervals_against_both_ends():
    """Two seeds, standard deviation sqrt(2) / 2 * 0.2: half width 12.706 * 0.1414 * sqrt(1/2 + 1/9) = 1.4047."""
    against_retelling, against_people = estimate_of(1.9, 2.1), estimate_of(4.9, 5.1)
    own = excess(against_retelling, against_people)
    assert own.interval() == pytest.approx((2 - 1.4047, 5 + 1.4047), abs=1e-3)
    assert own.value == 2 and verdict_of({"LIC_excess": own}) == "amplifies"
    low = excess(estimate_of(-5.1, -4.9), estimate_of(-3.1, -2.9))
    assert verdict_of({"LIC_excess": low}) == "reduces"
    assert verdict_of({"LIC_excess": replace(low, more_varied=True)}) == "not shown"
    assert replace(low, more_varied=True).interval()[1] == 0


def test_a_retelling_that_lost_what_gives_away_shows_no_amplification():
    """LIC is above 0, but the retelling gives away no more than people: how far plainness reaches is not known."""
    own = excess(estimate_of(2.9, 3.0, 3.1), estimate_of(4.9, 5.0, 5.1))
    assert verdict_of({"LIC_excess": own}) == "amplifies"
    lost = replace(own, lost=True)
    assert lost.interval() == (0.0, own.interval()[1]) and verdict_of({"LIC_excess": lost}) == "not shown"
    below = excess(estimate_of(-2.9, -3.0, -3.1), estimate_of(-2.9, -3.0, -3.1))
    assert replace(below, lost=True).interval() == below.interval(), "what lies below is below"


def test_nothing_is_shown_by_one_attacker_or_without_a_baseline():
    assert verdict_of({}) == "not shown"
    assert verdict_of({"LIC_excess": excess(estimate_of(9.0), estimate_of(9.0))}) == "not shown"


def held_out(*right: float) -> HeldOut:
    """One image a seed, labelled 1; the attacker's confidence in it."""
    places = np.arange(len(right))
    scores = np.column_stack([1 - np.array(right), right])
    return HeldOut(tuple(map(str, places)), places, places, np.ones(len(right), dtype=int), scores, 9)


def lic_of(sides: Sides) -> Estimate:
    return estimates_of(METRICS.values(), sides.model, sides.human)["LIC"]


def values_of(sides: Sides) -> dict[str, float]:
    return {name: own.value for name, own in baseline_estimates(sides, lic_of(sides)).items()}


def test_what_the_retelling_lacks_is_taken_to_tell_as_much():
    """Scores 0.70 and 0.64 are 0.45 and 0.39 above chance, 0.25; at three quarters told that is 0.60 and 0.52."""
    ratio = _told_alike(held_out(0.70, 0.64), PLAIN.share)
    assert PLAIN.share == pytest.approx(0.75)
    assert ratio.numerator == pytest.approx([0.85, 0.77])
    sides = Sides(held_out(0.9, 0.8), held_out(0.52, 0.58), held_out(0.70, 0.64), PLAIN)
    numbers = values_of(sides)
    assert numbers == pytest.approx({"LIC_baseline": 26.0, "LIC_excess": 4.0})
    assert baseline_estimates(sides, lic_of(sides))["LIC_excess"].lost is False
    even = replace(sides, retold=held_out(0.52, 0.58))
    assert baseline_estimates(even, lic_of(even))["LIC_excess"].lost, "it gives away what people give away, and no more"
    # People's own captions are the harder to beat where the retelling gives less away than they do.
    weaker = replace(sides, retold=held_out(0.51, 0.51), plainness=replace(PLAIN, retold=0.5))
    numbers = values_of(weaker)
    assert numbers == pytest.approx({"LIC_baseline": -4.0, "LIC_excess": 30.0})


def test_captions_that_tell_nothing_have_no_baseline():
    assert np.isnan(replace(PLAIN, told=0.0).share) and np.isnan(replace(PLAIN, retold=-0.1).share)
    for plain in (replace(PLAIN, told=0.0), replace(PLAIN, person=0.91)):
        sides = Sides(held_out(0.9), held_out(0.5), held_out(0.7), plain)
        assert values_of(sides) == {}
        assert set(_no_baseline(sides, {})) == {"LIC_baseline", "LIC_excess"}
        assert not any("baseline" in note for note in _of_plainness(sides)), "no word of what a baseline allows for"


def test_the_retelling_is_to_tell_as_much_as_a_human_caption():
    """0.3 of 0.4 told by the captions, but of 0.6 by a human caption in their words: a half, not three quarters."""
    plain = replace(PLAIN, person=0.6)
    assert (PLAIN.share_of_person, plain.share, plain.share_of_person) == pytest.approx((0.75, 0.75, 0.5))
    assert np.isnan(replace(PLAIN, person=0.901).share_of_person) and replace(PLAIN, person=0.899).share_of_person > 0
    # 0.30 above chance counts for 0.60 at half told; where that is below the human score, for 0.40 at three quarters.
    for human, baseline in ((0.55, 0.25 + 0.60 - 0.55), (0.90, 0.25 + 0.40 - 0.90)):
        sides = Sides(held_out(0.9, 0.8), held_out(human, human), held_out(0.53, 0.57), plain)
        assert values_of(sides)["LIC_baseline"] == pytest.approx(100 * baseline)
    told_of = {own: " ".join(_of_plainness(Sides(held_out(0.9), plainness=own))) for own in (PLAIN, plain)}
    assert "tells 75% of what the captions tell" in told_of[PLAIN]
    assert "tells 50% of what a human caption tells in the captioner's words" in told_of[plain]


def test_the_retelling_is_to_tell_as_much_of_what_goes_with_the_label():
    """Of that it tells 0.2, the captions 0.3 and a human caption 0.5: 0.4, whatever it tells of the rest."""
    plain = replace(PLAIN, told_of_label=0.3, retold_of_label=0.2, person_of_label=0.5)
    assert (plain.share, plain.share_of_person) == pytest.approx((0.75, 0.4))
    assert replace(plain, person_of_label=0.2).share_of_person == pytest.approx(2 / 3), "less than the captions do"
    assert np.isnan(replace(plain, retold_of_label=0.1).share_of_person), "a fifth is too little"
    assert replace(plain, retold_of_label=0.6).share_of_person == PLAIN.share
    assert replace(PLAIN, told_of_label=-0.1, retold_of_label=-0.2).share_of_person == PLAIN.share, (
        "nothing goes with it"
    )


def test_what_the_retelling_lost_is_judged_without_what_it_is_taken_to_tell():
    """Scores 8 to 9 below the human ones; at half told they count for 0.79 and more, above them."""
    human, retold, plain = held_out(0.60, 0.62, 0.61), held_out(0.52, 0.53, 0.525), replace(PLAIN, retold=0.2)
    sides = Sides(held_out(0.95, 0.98, 0.96), human, retold, plain)
    own = baseline_estimates(sides, estimates_of(METRICS.values(), sides.model, human)["LIC"])
    assert own["LIC_baseline"].value > 0 and own["LIC_excess"].value > 10
    assert own["LIC_excess"].interval()[0] == 0 and verdict_of(own) == "not shown"


def test_what_a_human_caption_tells_in_the_captions_words():
    """Two images; a caption of the other image tells as much less as one of the image tells more (test_told_by_hand).
    Without `grey`, which no caption has, each human caption is that of the image; beside all, captions tell 0.4."""
    people = [["grey cat", "cat"], ["grey dog", "grey dog"]]
    pair, four_labels = np.array([0, 1]), np.array([0, 1, 0, 1])
    assert _person(["cat", "dog"], people, pair, Told(0.4, 0.2)).words == pytest.approx(0.4)
    # Captions that are wrong of half of the images tell half as much; a human caption tells what it told.
    four = [["cat", "cat"], ["dog", "dog"], ["cow", "cow"], ["pig", "pig"]]
    right, wrong = ["cat", "dog", "cow", "pig"], ["cat", "dog", "pig", "cow"]
    others = [own[0] for own in four]
    tells, all_right = told(wrong, others, four_labels), told(right, others, four_labels)
    assert 0 < tells.words / all_right.words < 0.5
    assert _person(wrong, four, four_labels, tells).words == pytest.approx(all_right.words)
    alone = _person(["cat", "dog"], [["cat"], ["dog"]], pair, Told(0.5, 0.5))
    assert alone == (0, 0), "an image's only human caption has no others"


def test_fits_count_the_retelling_only_with_enough_human_captions():
    assert [fits(1, human, 100) for human in (0, 1, 2, 5)] == [1, 2, 4, 7]
    assert fits(1, 5, 10**6) == 6, "more images than are retold"


def test_variety_of_people_is_that_which_the_attacker_reads():
    """Pairs of words by hand: a-b twice, a-c once on either side, once x and y are <unk>; as written, three pairs."""
    every = np.arange(3)
    model, human = (CaptionList(every, own, every) for own in (["a b", "a b", "a c"], ["a x", "a y", "a b"]))
    _, plain = retold_lists([model], [human], np.array([0, 1, 0]))
    entropy = -(2 / 3 * np.log2(2 / 3) + 1 / 3 * np.log2(1 / 3))
    assert (plain.variety, plain.human_variety) == pytest.approx((entropy, entropy)) and not plain.more_varied
    assert plain.unknown == pytest.approx(2 / 6) and plain.human_type_token == pytest.approx(4 / 6)


def side(captions: list[str]) -> CaptionList:
    every = np.arange(len(captions))
    return CaptionList(every, captions, every)


@pytest.mark.parametrize(
    ("changed", "copies", "copied"), [(0, 60, 1.0), (3, 60, 1.0), (0, 30, 0.5), (0, 29, 0.0), (5, 60, 0.0)]
)
def test_the_human_caption_that_captions_were_written_from_is_left_out(changed, copies, copied):
    """With three of ten words changed 7 of 13 words are in both, with five 5 of 15; of captions drawn alike 1 in 11."""
    rng = np.random.default_rng(0)
    words = np.array([f"w{number}" for number in range(60)])
    first, second, third, fourth = (
        [" ".join(rng.choice(words, 10, replace=False)) for _ in range(60)] for _ in range(4)
    )
    new = "".join(f" new{number}" for number in range(changed))
    model = [caption.split(" ", changed)[-1] + new for caption in first[:copies]] + third[copies:]
    label = np.arange(60) % 2
    lists, plain = retold_lists([side(model)], [side(second), side(first), side(fourth)], label)
    assert plain.copied == pytest.approx(copied, abs=0.03)
    if copies == 60:
        kept = [second, fourth] if copied else [second, first, fourth]
        people = [*map(" ".join, zip(*kept, strict=True))]
        assert lists[0].masked == retell(model, people) and plain.told == pytest.approx(
            told(model, people, label).words
        )
        assert plain.retold == pytest.approx(told(lists[0].masked, people, label).words)
    assert plain.copied == 0 or copied
    assert retold_lists([side(model)], [side(second), side(first)], label)[1].copied == 0, (
        "one would be left, which is too few"
    )


@pytest.mark.parametrize(("words", "said"), [(9, False), (10, True)])
def test_captions_longer_than_peoples_are_said_to_be(words, said):
    """People write six words; from half as many again it is remarked, with both lengths."""
    model = replace(PLAIN, length=float(words), human_length=6.0)
    notes = list(_of_plainness(Sides(held_out(0.9), held_out(0.5), held_out(0.7), model)))
    assert any(f"The captions have {words} words, the human ones 6" in note for note in notes) == said
    assert not any("words, the human ones" in note for note in _of_plainness(Sides(held_out(0.9), plainness=PLAIN)))


def test_words_a_caption_are_counted_on_both_sides():
    own = CaptionList(np.arange(2), ["a dog in a park", "a cat"], np.arange(2))
    people = [CaptionList(np.arange(2), ["a dog", "a big cat here now"], np.arange(2))] * 2
    plain = _plainness([own], people, 0.1, 0.1)
    assert (plain.length, plain.human_length) == (3.5, 3.5)


@pytest.mark.long
def test_plain_captions_do_not_amplify_and_planted_amplification_is_found():
    """Best possible LIC 0, measured about 6; then topics drawn from shares that depend more on the label; then captions
    swapped among images of one label, which give it away as before."""
    plain = [found(draw(Design(), 800, seed), "ngram", 6) for seed in range(4)]
    assert sum(own.above for own in plain) >= 3, "plainness alone puts LIC above 0"
    assert [own.verdict for own in plain] == ["not shown"] * 4
    planted = [found(draw(Design(amplified=0.6), 1500, seed), "ngram", 10) for seed in range(4)]
    assert [own.verdict for own in planted].count("amplifies") >= 3
    swapped = [found(draw(Design(swapped=0.8), 1500, seed), "ngram", 6) for seed in range(4)]
    assert [own.verdict for own in swapped] == ["not shown"] * 4
