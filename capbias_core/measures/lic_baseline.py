"""The baseline of LIC: what LIC would be if the captioner said exactly what people say, as plainly as it does.

The human captions of each image are retold in the captioner's words (prepare/retell.py), and the attacker is trained on
that. If the retelling tells less of what people say than the captions do, or than a human caption in the captioner's
words, be it by all words or of what goes with the label, what it lacks is taken to give away as much as what it
has. People's captions as they are count too: a captioner that writes as they do has LIC 0. So the baseline is a band
from 0 to the LIC of the retelling, and the excess is what LIC lies outside of it. docs/statistics.md has the reasons,
and how often each verdict is wrong.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice

import numpy as np

from capbias_core.aggregate import REFITS, Estimate, difference
from capbias_core.aggregate.verdict import NOT_SHOWN, verdict
from capbias_core.measures.held_out import confidence_where_right, held_out_arrays, held_out_bytes, held_out_from
from capbias_core.measures.training import AttackerTrainer, CaptionList
from capbias_core.metrics.evidence import HeldOut, Ratio
from capbias_core.prepare.ngrams import Coded, coded
from capbias_core.prepare.retell import Told, retell, told, variety
from capbias_core.prepare.split import random_order
from capbias_core.types import UNKNOWN_TOKEN, Split
from capbias_core.workspace.store import RunRow, Workspace

LEAST_HUMAN = 2  # human captions an image: from one alone the retelling loses too much
# Images that are retold: what is retold is looked for among all captions, so twice as many take four times as long.
MOST_RETOLD = 20_000
SAMPLE = "sample"
# A caption was written from a human one with which it shares half of the words of both, and a quarter more than with
# any other. So were 2 to 16% of the captions of eight published captioners, and 80% of human captions of which every
# fifth word was changed. Where half of a set were, people's others alone say what its captions tell.
IN_COMMON, MORE, MOSTLY = 0.5, 0.25, 0.5
LEAST_SHARE = 1 / 3  # of what is to be told: of less, what the retelling lacks is not guessed from what it has
LONGER = 1.5  # times as long as the human captions, from which it is remarked


@dataclass(frozen=True)
class Plainness:
    """How a captioner's captions compare with the human captions of the same images.

    told, retold: how much of what people say the captions and the retelling tell (prepare.retell.told). person: how
    much a human caption tells, of the words that the captioner uses. of_label: the same three of what goes with the
    label, as correlations. person and of_label are 0 in runs of before version 6 and 7. variety: bits
    (prepare.retell.variety), of people's captions as the attacker reads them: with <unk> for words that the captioner
    never uses. type_token: different words over words. repeated: share of captions that another image
    has too. unknown: share of the human words that the captioner never uses. The human side is the mean over the
    human captions of an image. copied: share of captions that were written from a human caption of their image, where
    that is half or more, else 0; told, retold and the retelling then rest on the human captions but the nearest.
    length: words a caption, 0 of runs of before November 2026.
    """

    told: float
    retold: float
    variety: float
    human_variety: float
    type_token: float
    human_type_token: float
    repeated: float
    human_repeated: float
    unknown: float
    copied: float = 0.0
    length: float = 0.0
    human_length: float = 0.0
    person: float = 0.0
    told_of_label: float = 0.0
    retold_of_label: float = 0.0
    person_of_label: float = 0.0

    @property
    def share(self) -> float:
        """What the retelling tells over what the captions tell, in (0, 1]; nan if the captions tell nothing."""
        if self.told <= 0 or self.retold <= 0:
            return np.nan
        return min(1.0, self.retold / self.told)

    @property
    def share_of_person(self) -> float:
        """The same over what a human caption tells, if that is more, and of the words that go with the label, if the
        retelling tells less of those; nan if it tells too little.

        Captions that are wrong about their images tell little of them. They may still give the label away, if they say
        what is usual for it; a retelling that learned from them tells as little and gives less away.
        """
        most = [(self.retold, self.person)]
        most += [(self.retold_of_label, own) for own in (self.told_of_label, self.person_of_label)]
        share = min([self.share, *(retold / own for retold, own in most if own > 0)])
        return share if share >= LEAST_SHARE else np.nan

    @property
    def longer(self) -> bool:
        """Whether the captions are much longer than the human ones, so that part of LIC may be length."""
        return self.length > LONGER * self.human_length > 0

    @property
    def more_varied(self) -> bool:
        """Whether the captions are more varied than the human ones are read, which alone makes them hard to learn."""
        return self.variety > self.human_variety


@dataclass(frozen=True)
class Sides:
    """Held-out predictions on the captioner's captions, and where there are human captions on those and the retelling.

    human, retold and plainness are None where there are none. sample: all sides on a random sample of the images, where
    these are too many to retell.
    """

    model: HeldOut
    human: HeldOut | None = None
    retold: HeldOut | None = None
    plainness: Plainness | None = None
    sample: Sides | None = None

    @property
    def with_retelling(self) -> Sides:
        """The sides beside which the retelling stands."""
        return self.sample or self


def attacked(
    trainer: AttackerTrainer, model: list[CaptionList], human: list[CaptionList], splits: list[Split]
) -> Sides:
    """Attackers trained and tested on each side, on the same splits; no retelling of more than MOST_RETOLD images.

    human: empty for no human captions.
    """
    found = Sides(trainer.held_out(model, splits, "the model's captions"))
    if human:
        found = replace(found, human=trainer.held_out(human, splits, "the human captions", model))
    if len(human) >= LEAST_HUMAN and len(trainer.images) <= MOST_RETOLD:
        lists, plainness = retold_lists(model, human, trainer.y)
        found = replace(found, retold=trainer.held_out(lists, splits, "the retelling"), plainness=plainness)
    return found


def fits(model: int, human: int, images: int) -> int:
    """Attackers of each split for so many captions an image of the captioner and of people."""
    return model + human + (model if human >= LEAST_HUMAN and images <= MOST_RETOLD else 0)


def sampled(images: tuple[str, ...], human: int) -> tuple[str, ...] | None:
    """The images of the sample, for so many human captions an image; None where all images are retold, or none is."""
    if human < LEAST_HUMAN or len(images) <= MOST_RETOLD:
        return None
    return tuple(sorted(images[place] for place in random_order(images, 0)[:MOST_RETOLD]))


@dataclass(frozen=True, kw_only=True)
class Excess(Estimate):
    """LIC beyond a baseline that is only known to lie between two ends.

    The value is against the end that is harder to beat. below: against the other end. more_varied: the captions are
    more varied than the human ones, which alone can put LIC below the band. lost: the retelling, as it is, gives away
    no more than the human captions; plainer words are easier to learn, so it lost what gives away, and how far
    plainness reaches is not known.
    """

    below: Estimate
    more_varied: bool
    lost: bool = False

    def interval(self) -> tuple[float, float] | tuple[None, None]:
        """95%, from the lower limit against one end to the upper limit against the other; it covers both intervals.

        Of captions that are more varied than the human ones the upper limit is at least 0; of a retelling that lost
        what gives away the lower limit is at most 0.
        """
        low, high = super().interval()
        other_low, other_high = self.below.interval()
        if low is None or high is None or other_low is None or other_high is None:
            return None, None
        lowest, highest = min(low, other_low), max(high, other_high)
        return min(lowest, 0.0) if self.lost else lowest, max(highest, 0.0) if self.more_varied else highest


def baseline_estimates(sides: Sides, lic: Estimate | None) -> dict[str, Estimate]:
    """LIC_baseline and LIC_excess beside LIC of the same images; empty without a retelling."""
    model, human, retold, plainness = sides.model, sides.human, sides.retold, sides.plainness
    if lic is None or human is None or retold is None or plainness is None:
        return {}
    share = plainness.share_of_person
    if not np.isfinite(share):
        return {}
    of = confidence_where_right

    def less_people(ratio: Ratio) -> Estimate:
        return difference(ratio, retold, of(human), human, lic.scale, lic.span)

    of_retold = _told_alike(retold, share)
    baseline = less_people(of_retold)
    if baseline.value <= 0:  # what a person tells more makes amplification harder to show, and reduction no easier
        of_retold = _told_alike(retold, plainness.share)
        baseline = less_people(of_retold)
    beyond = difference(of(model), model, of_retold, retold, lic.scale, lic.span)
    harder, other = (beyond, lic) if baseline.value > 0 else (lic, beyond)
    lost = less_people(of(retold)).value <= 0
    return {
        "LIC_baseline": baseline,
        "LIC_excess": Excess(**vars(harder), below=other, more_varied=plainness.more_varied, lost=lost),
    }


def verdict_of(found: dict[str, Estimate]) -> str:
    """What the excess allows to say; nothing is shown without one, or by a single attacker."""
    excess = found.get("LIC_excess")
    if excess is None or excess.interval_over != REFITS:
        return NOT_SHOWN
    low, high = excess.interval()
    return NOT_SHOWN if low is None or high is None else verdict(low, high)


def sides_arrays(sides: Sides) -> dict[str, bytes]:
    """What a run leaves of every side."""
    arrays = held_out_arrays(sides.model, sides.human)
    if sides.human is None:
        return arrays
    if sides.sample is not None:
        sample = {f"{SAMPLE}_{name}": own for name, own in sides_arrays(sides.sample).items()}
        return arrays | sample | {"plainness": json.dumps(SAMPLE).encode()}
    if sides.retold is not None:
        arrays["retold"] = held_out_bytes(sides.retold)
    plainness = asdict(sides.plainness) if sides.plainness is not None else None
    return arrays | {"plainness": json.dumps(plainness).encode()}


def stored_sides(workspace: Workspace, run: RunRow) -> Sides:
    """The sides of a finished run again."""

    def held(name: str) -> HeldOut:
        return held_out_from(workspace.array(run.run_id, name))

    def compared(prefix: str = "") -> Sides:
        sides = Sides(held(f"{prefix}model"), held(f"{prefix}human"))
        plainness = json.loads(workspace.array(run.run_id, f"{prefix}plainness"))
        if plainness == SAMPLE:
            return replace(sides, sample=compared(f"{SAMPLE}_"))
        if plainness is None:
            return sides
        return replace(sides, retold=held(f"{prefix}retold"), plainness=Plainness(**plainness))

    return compared() if run.spec.references else Sides(held("model"))


def plainness_of(workspace: Workspace, run: RunRow) -> Plainness | None:
    """How plain the captions of a finished run of LIC are; None without enough human captions."""
    if not run.spec.references:
        return None
    found = json.loads(workspace.array(run.run_id, "plainness"))
    if found == SAMPLE:
        found = json.loads(workspace.array(run.run_id, f"{SAMPLE}_plainness"))
    return Plainness(**found) if found else None


def _told_alike(retold: HeldOut, share: float) -> Ratio:
    """LIC's scores of the retelling if it told as much as the captions do: what is above chance, over that share."""
    chance = 1 / retold.probabilities.shape[1] ** 2
    own = confidence_where_right(retold)
    return Ratio(chance + (own.numerator - chance) / share, own.denominator)


def retold_lists(
    model: list[CaptionList], human: list[CaptionList], y: np.ndarray
) -> tuple[list[CaptionList], Plainness]:
    """The retelling of each list of the captioner, and how plain it is. y: (n_images,) their labels."""
    said: list[list[str]] = [[] for _ in model[0].row_of_image]
    for own in human:
        for image, caption in zip(own.images, own.masked, strict=True):
            said[image].append(caption)
    captions = [text for own in model for text in own.masked]
    people, copied = _but_copied(captions, [said[image] for own in model for image in own.images])
    texts = iter([*map(" ".join, people)])
    sources = [list(islice(texts, len(own.masked))) for own in model]
    lists = [replace(own, masked=retell(own.masked, text), unread=0) for own, text in zip(model, sources, strict=True)]
    every, retellings = [*chain.from_iterable(sources)], [text for own in lists for text in own.masked]
    label = y[np.concatenate([own.images for own in model])]
    tells, retells = told(captions, every, label), told(retellings, every, label)
    person = _person(captions, people, label, tells)
    of_label = {
        "told_of_label": tells.of_label,
        "retold_of_label": retells.of_label,
        "person_of_label": person.of_label,
    }
    plainness = _plainness(model, human, tells.words, retells.words)
    return lists, replace(plainness, copied=copied, person=person.words, **of_label)


def _person(captions: list[str], people: list[list[str]], label: np.ndarray, tells: Told) -> Told:
    """What a human caption tells, of the words that the captions use. tells: what the captions tell.

    One human caption of each image is compared with its others, and so are the captions: these are fewer than all, of
    which less is told. Of images with one human caption nothing is read.
    """
    known = {word for caption in captions for word in caption.split()}
    some = [(place, place % len(own)) for place, own in enumerate(people) if len(own) > 1]
    others = [" ".join(people[place][:one] + people[place][one + 1 :]) for place, one in some]
    own = [" ".join(word for word in people[place][one].split() if word in known) for place, one in some]
    if not some:
        return Told(0.0, 0.0)
    label = label[[place for place, _ in some]]
    both = zip(
        told(own, others, label), told([captions[place] for place, _ in some], others, label), tells, strict=True
    )
    return Told(*(mine * all_tell / some_tell if some_tell > 0 else 0.0 for mine, some_tell, all_tell in both))


def _but_copied(captions: list[str], people: list[list[str]]) -> tuple[list[list[str]], float]:
    """The human captions of each caption's image, and 0.0; where MOSTLY of the captions were written from one of them
    those without the nearest, and the share that was."""
    nearest, written = _nearest(captions, people)
    share = float(written.mean()) if len(written) else 0.0
    if share < MOSTLY:
        return people, 0.0
    return [own[:place] + own[place + 1 :] for own, place in zip(people, nearest.tolist(), strict=True)], share


def _nearest(captions: list[str], people: list[list[str]]) -> tuple[np.ndarray, np.ndarray]:
    """Which human caption of its image is nearest to each caption, and whether it was written from that; a place beyond
    them and no, where too few would be left without it."""
    several = np.array([len(own) for own in people], dtype=int)
    owner = np.repeat(np.arange(len(captions)), several)
    words = coded([*captions, *chain.from_iterable(people)]).matrix
    own, theirs = words[owner], words[len(captions) :]
    both = np.asarray(own.multiply(theirs).sum(axis=1)).ravel()
    either = np.asarray(own.sum(axis=1)).ravel() + np.asarray(theirs.sum(axis=1)).ravel() - both
    alike = np.full((len(captions), max(2, several.max(initial=0))), -1.0)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(several) - several, several)
    alike[owner, place] = both / np.maximum(1, either)
    nearest, (second, first) = alike.argmax(axis=1), np.sort(alike, axis=1)[:, -2:].T
    enough = several > LEAST_HUMAN
    return np.where(enough, nearest, several), enough & (first >= IN_COMMON) & (first - second >= MORE)


def _plainness(model: list[CaptionList], human: list[CaptionList], told_by: float, retold: float) -> Plainness:
    every = coded(text for own in (*model, *human) for text in own.masked)
    ends = np.cumsum([0, *(len(own.masked) for own in (*model, *human))])
    lists = [every.part(first, last) for first, last in zip(ends[:-1], ends[1:], strict=True)]
    texts, people = lists[: len(model)], lists[len(model) :]
    known = np.zeros(len(every.words) + 1, dtype=bool)
    for own in texts:
        known[own.codes] = True
    unknown = [~known[own.codes] for own in people]
    return Plainness(
        told_by,
        retold,
        *(_mean(variety, side) for side in (texts, _aligned(people, every.words, known))),
        *(_mean(_type_token, side) for side in (texts, people)),
        *(_mean(_repeated, side) for side in ([own.masked for own in model], [own.masked for own in human])),
        unknown=sum(int(own.sum()) for own in unknown) / max(1, sum(map(len, unknown))),
        length=_mean(_length, texts),
        human_length=_mean(_length, people),
    )


def _aligned(people: list[Coded], words: list[str], known: np.ndarray) -> list[Coded]:
    """Captions with <unk> for words that are not known, but for special tokens. known: (V + 1,)."""
    kept = known.copy()
    kept[[place for place, word in enumerate(words) if word.startswith("<")]] = True
    become = np.arange(len(words) + 1)
    become[~kept] = words.index(UNKNOWN_TOKEN) if UNKNOWN_TOKEN in words else len(words)
    return [replace(own, codes=become[own.codes]) for own in people]


def _mean(of, side: Sequence) -> float:
    return float(np.mean([of(own) for own in side]))


def _length(captions: Coded) -> float:
    return len(captions.codes) / max(1, len(captions.start) - 1)


def _type_token(captions: Coded) -> float:
    return len(np.unique(captions.codes)) / max(1, len(captions.codes))


def _repeated(captions: list[str]) -> float:
    times = Counter(captions)
    return float(np.mean([times[caption] > 1 for caption in captions]))
