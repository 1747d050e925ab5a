"""Invented captions whose answer is known: demo data that the project makes itself, from a seed.

Every image shows one person and one of eight activities. Four activities lean toward images labelled Female and
four toward Male; `DESIGN` says how strongly, for the references and for three captioners. A caption is a sentence
about subject, activity and place. Nothing but the activity depends on the label: the subject is masked (or is
"person", equally often for both labels), and the other words are drawn without looking at the label, the place
from the places of the activity.

How the truth follows. Let labels be balanced, P(t | a) the design's share of activity t among images labelled a,
and q_t = max_a P(t | a) / (P(t | Female) + P(t | Male)). The masked caption tells the activity and nothing more
about the label, so the attacker that knows the design answers with probability q_t, and is right for a share q_t
of the captions with t. It scores q_t where it is right and 0 elsewhere, hence

    LIC_M = 100 * sum_t P(t) * q_t^2,   with P(t) = (P(t | Female) + P(t | Male)) / 2.

LIC_D is the same sum for the references, and LIC = LIC_M - LIC_D. The images meet the design exactly, by quotas
within each label, so downsampling to equal numbers of labels keeps it.

Ratio and error (masculine over feminine captions, share that names only the wrong gender) are exact too: the
number of captions that say "person" and that name the wrong gender is a fixed share of each label.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

FIRST_ID = 1001
REFERENCES = 5
UNIT = 80  # shares are counted in 1/80 of a label's images
IMAGES = {"Female": 560, "Male": 640}
# Images that a mapping to Female and Male drops.
DROPPED = {"Both": 14, "Unsure": 10, "": 6}

SUBJECTS = {
    "Female": (("woman", 0.6), ("girl", 0.2), ("lady", 0.2)),
    "Male": (("man", 0.6), ("boy", 0.2), ("guy", 0.2)),
    "person": (("person", 1.0),),
    "both": (("man and a woman", 0.6), ("woman and a man", 0.4)),
}
PRONOUNS = {"Female": "her", "Male": "his", "person": "their", "both": "their"}
OTHER = {"Female": "Male", "Male": "Female"}


@dataclass(frozen=True)
class Activity:
    """What a person does: the commonest wording first, then others; and two places, each in several wordings.

    The words of an activity occur in no other activity, place, manner or outfit.
    """

    leans: str
    wordings: tuple[str, ...]
    places: tuple[tuple[str, ...], tuple[str, ...]]


ACTIVITIES = {
    "phone": Activity(
        "Female",
        ("talking on a cell phone held to one ear", "chatting on {pronoun} cell phone held to one ear"),
        (
            ("next to a parked car", "beside a row of parked cars", "near a parked taxi"),
            ("at a bus stop", "on a bench at the bus stop", "waiting for a city bus"),
        ),
    ),
    "umbrella": Activity(
        "Female",
        ("walking under a striped umbrella with a curved handle", "holding up a striped umbrella with a curved handle"),
        (
            ("in the pouring rain", "on a rainy day", "through a heavy rain shower"),
            ("across a stone bridge", "over an old bridge", "along a quiet canal"),
        ),
    ),
    "cake": Activity(
        "Female",
        ("decorating a chocolate cake with pink frosting", "finishing a chocolate cake with pink frosting"),
        (
            ("in a small kitchen", "on a kitchen counter", "next to a kitchen sink"),
            ("at a birthday party", "at a party table", "for a party with candles"),
        ),
    ),
    "horse": Activity(
        "Female",
        ("grooming a brown horse with a soft brush", "cleaning {pronoun} brown horse with a soft brush"),
        (
            ("inside a wooden stable", "by the door of a stable", "in a dim stable"),
            ("near a farm fence", "behind a long fence", "beside a fence and some hay"),
        ),
    ),
    "skateboard": Activity(
        "Male",
        ("doing tricks on a skateboard with orange wheels", "showing off tricks on a skateboard with orange wheels"),
        (
            ("above a concrete ramp", "at the top of a ramp", "off the edge of a ramp"),
            ("down some stone stairs", "near a set of stairs", "beside a metal railing"),
        ),
    ),
    "surfboard": Activity(
        "Male",
        ("carrying a white surfboard under an arm", "bringing a white surfboard under an arm"),
        (
            ("along a sandy beach", "on the beach at sunset", "across the wet sand"),
            ("toward the ocean", "into the ocean waves", "by the ocean"),
        ),
    ),
    "motorcycle": Activity(
        "Male",
        ("repairing a vintage motorcycle with a large wrench", "fixing {pronoun} vintage motorcycle with a large wrench"),
        (
            ("in a cluttered garage", "in front of an open garage", "on the garage floor"),
            ("at a gas station", "by the pumps of a gas station", "on the side of a road"),
        ),
    ),
    "baseball": Activity(
        "Male",
        ("swinging a baseball bat at a fast pitch", "swinging {pronoun} baseball bat at a fast pitch"),
        (
            ("at home plate", "on a dirt field", "during a game"),
            ("in front of a crowd", "before a crowd of fans", "in a full stadium"),
        ),
    ),
}

LOOKS = ("", "", "", "young ", "tall ", "smiling ")
OUTFITS = ("", "", "", "", "", "in a blue jacket ", "in a red sweater ", "wearing glasses ")
# Words that only references use; alignment to a captioner's vocabulary turns them into <unk>.
RARE_LOOKS = ("freckled ", "bespectacled ")
RARE_OUTFITS = (
    "in a corduroy coat ",
    "in faded denim ",
    "wearing a checkered scarf ",
    "with {pronoun} sleeves rolled ",
)


@dataclass(frozen=True)
class Design:
    """How captions are made. leaning: of 80 images of a label, how many show each activity that leans toward it and
    toward the other label: pairs, for the four activities of a label in the order of `ACTIVITIES`.

    neutral and wrong: of 40 captions of a label, how many say "person" and how many name the other gender.
    mistakes: share of images whose activity is mistaken for that of another image with the same label, which leaves
    the association as it is. rich: uses the rare words too.
    """

    leaning: tuple[tuple[int, int], ...]
    neutral: int
    wrong: int
    mistakes: float = 0.0
    rich: bool = False


REFERENCE_DESIGN = Design(((15, 5), (14, 6), (13, 7), (12, 8)), neutral=4, wrong=0, rich=True)
DESIGN = {
    "faithful": Design(((15, 5), (14, 6), (13, 7), (12, 8)), neutral=4, wrong=1, mistakes=0.2),
    "amplifier": Design(((17, 3), (16, 4), (16, 4), (15, 5)), neutral=2, wrong=2, mistakes=0.1),
    "mitigator": Design(((12, 8), (12, 8), (12, 8), (12, 8)), neutral=8, wrong=1, mistakes=0.1),
}

SENTENCES = ("a {who}{activity} {place}", "a {who}is {activity} {place}", "there is a {who}{activity} {place}")


@dataclass(frozen=True)
class Demo:
    """The demo data. attributes: image_id, gender (raw labels). references and captioners: image_id, caption_index,
    caption. truth: for each captioner LIC_M, LIC_D, LIC (x100), ratio and error (%), on the images labelled Female
    or Male. pictures: image_id -> the activity to draw.
    """

    attributes: pd.DataFrame
    references: pd.DataFrame
    captioners: dict[str, pd.DataFrame]
    truth: dict[str, dict[str, float]]
    pictures: dict[str, str]


def generate(seed: int = 0) -> Demo:
    """The demo data of a seed; another seed gives other sentences with the same truth."""
    streams = iter(np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2 + len(DESIGN)))
    images = _images(next(streams))
    references = _references(images, next(streams))
    captioners = {name: _captions(images, design, next(streams)) for name, design in DESIGN.items()}
    return Demo(
        attributes=images[["image_id", "gender"]],
        references=references,
        captioners={name: frame.drop(columns="caption_index") for name, frame in captioners.items()},
        truth=truth(),
        pictures=_pictured(images),
    )


def shares(design: Design, label: str) -> dict[str, int]:
    """Of 80 images with this label, how many show each activity."""
    place_in_group = {"Female": 0, "Male": 0}
    counts = {}
    for name, activity in ACTIVITIES.items():
        pair = design.leaning[place_in_group[activity.leans]]
        counts[name] = pair[0] if activity.leans == label else pair[1]
        place_in_group[activity.leans] += 1
    return counts


def quotas(design: Design, label: str) -> dict[str, int]:
    """How many captions of images with this label show each activity."""
    return {name: count * IMAGES[label] // UNIT for name, count in shares(design, label).items()}


def truth() -> dict[str, dict[str, float]]:
    """What the design makes true of each captioner; see the text of this module."""
    found = {}
    for name, design in DESIGN.items():
        lic_m, lic_d = _knowing_score(design), _knowing_score(REFERENCE_DESIGN)
        found[name] = {"LIC_M": lic_m, "LIC_D": lic_d, "LIC": lic_m - lic_d} | _counts(design)
    return {name: {metric: round(value, 4) for metric, value in row.items()} for name, row in found.items()}


def _knowing_score(design: Design) -> float:
    """100 * sum of P(t) * q_t^2: the score of the attacker that knows the design."""
    female, male = shares(design, "Female"), shares(design, "Male")
    total = 0.0
    for name in ACTIVITIES:
        both = female[name] + male[name]
        total += both / (2 * UNIT) * (max(female[name], male[name]) / both) ** 2
    return 100 * total


def _counts(design: Design) -> dict[str, float]:
    """Ratio and error from how often a caption is neutral or names the wrong gender."""
    right = 40 - design.neutral - design.wrong
    male = right * IMAGES["Male"] + design.wrong * IMAGES["Female"]
    female = right * IMAGES["Female"] + design.wrong * IMAGES["Male"]
    return {"ratio": male / female, "error": 100 * design.wrong / 40}


def _images(rng: np.random.Generator) -> pd.DataFrame:
    """Every image with its label, activity and place (0 or 1), in random order, numbered from 1001."""
    rows = [
        (label, name)
        for label in IMAGES
        for name, count in quotas(REFERENCE_DESIGN, label).items()
        for _ in range(count)
    ]
    names = list(ACTIVITIES)
    rows += [(label, names[rng.integers(len(names))]) for label, count in DROPPED.items() for _ in range(count)]
    frame = pd.DataFrame([rows[place] for place in rng.permutation(len(rows))], columns=["gender", "activity"])
    frame["place"] = rng.integers(2, size=len(frame))
    frame.insert(0, "image_id", [str(FIRST_ID + number) for number in range(len(frame))])
    return frame


def _references(images: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Five sentences an image, image by image."""
    parts = [_captions(images, REFERENCE_DESIGN, rng, index) for index in range(REFERENCES)]
    return pd.concat(parts).sort_values(["image_id", "caption_index"], ignore_index=True)


def _captions(images: pd.DataFrame, design: Design, rng: np.random.Generator, index: int = 0) -> pd.DataFrame:
    """One sentence an image."""
    seen = _seen(images, design, rng)
    subjects = _subjects(images["gender"].to_numpy(), design, rng)
    captions = [
        _sentence(rng, subject, ACTIVITIES[name], place, design.rich)
        for subject, (name, place) in zip(subjects, seen, strict=True)
    ]
    return pd.DataFrame({"image_id": images["image_id"], "caption_index": index, "caption": captions})


def _seen(images: pd.DataFrame, design: Design, rng: np.random.Generator) -> list[tuple[str, int]]:
    """The activity and place that a captioner sees in each image; each label meets the design's quotas."""
    shown = images["activity"].to_numpy(dtype=object)
    seen = shown.copy()
    for label in IMAGES:
        rows = rng.permutation(np.flatnonzero(images["gender"] == label))
        seen[rows] = _moved(shown[rows], quotas(design, label), rng)
        confused = rng.permutation(rows)[: round(design.mistakes * len(rows))]
        seen[confused] = seen[np.roll(confused, 1)]
    places = np.where(seen == shown, images["place"], rng.integers(2, size=len(images)))
    return list(zip(seen, places, strict=True))


def _moved(names: np.ndarray, target: dict[str, int], rng: np.random.Generator) -> np.ndarray:
    """`names` with as few changes as give every activity its target count."""
    moved = names.copy()
    surplus, missing = [], []
    for name, count in target.items():
        rows = np.flatnonzero(names == name)
        surplus.extend(rows[count:])
        missing.extend([name] * (count - len(rows)))
    moved[surplus] = rng.permutation(np.array(missing, dtype=object))
    return moved


def _subjects(labels: np.ndarray, design: Design, rng: np.random.Generator) -> np.ndarray:
    """For each image whom the caption names: a label, "person", or "both"."""
    named = np.where(labels == "Both", "both", "person").astype(object)
    for label, other in OTHER.items():
        rows = rng.permutation(np.flatnonzero(labels == label))
        neutral, wrong = (count * len(rows) // 40 for count in (design.neutral, design.wrong))
        named[rows] = label
        named[rows[:neutral]] = "person"
        named[rows[neutral : neutral + wrong]] = other
    return named


def _sentence(rng: np.random.Generator, subject: str, activity: Activity, place: int, rich: bool) -> str:
    words, chances = zip(*SUBJECTS[subject], strict=True)
    look = _pick(rng, LOOKS + RARE_LOOKS * rich)
    outfit = _pick(rng, OUTFITS + RARE_OUTFITS * rich).format(pronoun=PRONOUNS[subject])
    sentence = _pick(rng, SENTENCES).format(
        who=f"{look}{words[rng.choice(len(words), p=chances)]} {outfit}",
        activity=_pick(rng, activity.wordings if rich else activity.wordings[:1]).format(pronoun=PRONOUNS[subject]),
        place=_pick(rng, activity.places[place] if rich else activity.places[place][:1]),
    )
    return f"{sentence[0].upper()}{sentence[1:]}." if rich else sentence


def _pick(rng: np.random.Generator, options: tuple[str, ...]) -> str:
    return options[rng.integers(len(options))]


def _pictured(images: pd.DataFrame) -> dict[str, str]:
    return {}
