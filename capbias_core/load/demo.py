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

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

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

    Apart from function words ("with", "on"), no word of an activity or its places occurs anywhere else, so no word
    speaks for two activities. Wordings are long because the preview attacker shrinks a short cue's weight.
    pictured: the label and the place of the one image of this activity that gets a picture.
    """

    leans: str
    wordings: tuple[str, ...]
    places: tuple[tuple[str, ...], tuple[str, ...]]
    pictured: tuple[str, int]


ACTIVITIES = {
    "phone": Activity(
        "Female",
        ("talking on a cell phone held to one ear", "chatting on {pronoun} cell phone held to one ear"),
        (
            ("next to a parked car", "beside a row of parked cars", "near a parked taxi"),
            ("at a bus stop", "on a bench at the bus stop", "waiting for a city bus"),
        ),
        ("Male", 0),
    ),
    "umbrella": Activity(
        "Female",
        ("walking under a striped umbrella with a curved handle", "holding a striped umbrella with a curved handle"),
        (
            ("in the pouring rain", "on a rainy day", "through a heavy rain shower"),
            ("across a stone bridge", "over an old bridge", "along a quiet canal"),
        ),
        ("Female", 0),
    ),
    "cake": Activity(
        "Female",
        ("decorating a chocolate cake with pink frosting", "finishing a chocolate cake with pink frosting"),
        (
            ("in a small kitchen", "on a kitchen counter", "next to a kitchen sink"),
            ("at a birthday party", "at a party table", "for a party with candles"),
        ),
        ("Male", 0),
    ),
    "horse": Activity(
        "Female",
        ("grooming a brown horse with a soft brush", "cleaning {pronoun} brown horse with a soft brush"),
        (
            ("inside a wooden stable", "by the door of a stable", "in a dim stable"),
            ("near a farm fence", "behind a long fence", "beside a fence and some hay"),
        ),
        ("Female", 1),
    ),
    "skateboard": Activity(
        "Male",
        ("doing tricks on a skateboard with orange wheels", "showing tricks on a skateboard with orange wheels"),
        (
            ("above a concrete ramp", "at the top of a ramp", "off the edge of a ramp"),
            ("down some steep stairs", "near a set of stairs", "beside a metal railing"),
        ),
        ("Female", 0),
    ),
    "surfboard": Activity(
        "Male",
        ("carrying a white surfboard under an arm", "bringing a white surfboard under an arm"),
        (
            ("along a sandy beach", "on the beach at sunset", "across the wet sand"),
            ("toward the ocean", "into the ocean waves", "by the ocean"),
        ),
        ("Male", 0),
    ),
    "motorcycle": Activity(
        "Male",
        (
            "repairing a vintage motorcycle with a large wrench",
            "fixing {pronoun} vintage motorcycle with a large wrench",
        ),
        (
            ("in a cluttered garage", "in front of an open garage", "on the garage floor"),
            ("at a gas station", "by the pumps of a gas station", "on the side of a road"),
        ),
        ("Female", 0),
    ),
    "baseball": Activity(
        "Male",
        ("swinging a baseball bat at a fast pitch", "swinging {pronoun} baseball bat at a fast pitch"),
        (
            ("at home plate", "on a dirt field", "during a game"),
            ("in front of a crowd", "before a crowd of fans", "in a full stadium"),
        ),
        ("Male", 1),
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
    "with {pronoun} sleeves rolled up ",
)


@dataclass(frozen=True)
class Design:
    """How captions are made. leaning: of 80 images of a label, how many show each activity that leans toward it and
    toward the other label: pairs, for the four activities of a label in the order of `ACTIVITIES`.

    neutral and wrong: of 40 captions of a label, how many say "person" and how many name the other gender.
    mistakes: share of images whose activity is mistaken for that of another image with the same label, which leaves
    the association as it is. rich: uses the rare words and every wording, not only the commonest one.
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

SENTENCES = ("a {who}{activity} {place}", "a {who}{verb} {activity} {place}", "there is a {who}{activity} {place}")


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
    """Five different sentences an image, image by image."""
    said = {image: set() for image in images["image_id"]}
    parts = [_captions(images, REFERENCE_DESIGN, rng, index, said) for index in range(REFERENCES)]
    return pd.concat(parts).sort_values(["image_id", "caption_index"], ignore_index=True)


def _captions(
    images: pd.DataFrame,
    design: Design,
    rng: np.random.Generator,
    index: int = 0,
    said: dict[str, set[str]] | None = None,
) -> pd.DataFrame:
    """One sentence an image, other than those already said of it."""
    seen = _seen(images, design, rng)
    subjects = _subjects(images["gender"].to_numpy(), design, rng)
    captions = []
    for image, subject, (name, place) in zip(images["image_id"], subjects, seen, strict=True):
        earlier = said[image] if said else set()
        while (caption := _sentence(rng, subject, ACTIVITIES[name], place, design.rich)) in earlier:
            pass
        earlier.add(caption)
        captions.append(caption)
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
    pronoun = PRONOUNS[subject]
    wordings, places = activity.wordings, activity.places[place]
    nouns, chances = zip(*SUBJECTS[subject], strict=True)
    look = _pick(rng, LOOKS + RARE_LOOKS * rich)
    outfit = _pick(rng, OUTFITS + RARE_OUTFITS * rich)
    sentence = _pick(rng, SENTENCES).format(
        who=f"{look}{nouns[rng.choice(len(nouns), p=chances)]} {outfit}",
        verb="are" if subject == "both" else "is",
        activity=_pick(rng, wordings if rich else wordings[:1]),
        place=_pick(rng, places if rich else places[:1]),
    )
    sentence = sentence.format(pronoun=pronoun)
    return f"{sentence[0].upper()}{sentence[1:]}." if rich else sentence


def _pick(rng: np.random.Generator, options: tuple[str, ...]) -> str:
    return options[rng.integers(len(options))]


def _pictured(images: pd.DataFrame) -> dict[str, str]:
    """The first image of each activity with the label and the place that its picture shows."""
    found = {}
    for name, activity in ACTIVITIES.items():
        label, place = activity.pictured
        fits = (images["activity"] == name) & (images["gender"] == label) & (images["place"] == place)
        found[images.loc[fits, "image_id"].iloc[0]] = name
    return found


README = """# Demo data

Invented data about no real person: no caption, label or picture here comes from a data set. The code makes it from a
seed (`capbias_core/load/demo.py`), with captioners whose bias amplification is known because it was built in. To make
it again: `python -m capbias_core.load.demo assets/demo`.

- `attributes.csv`: a label for each image ({labels}; {dropped} rows hold another label or none, to be dropped).
- `references.json`: five "human" captions an image, in the format of COCO captions.
- `results/`: captions of three invented captioners, in the format of COCO results.
- `truth.json`: the LIC that each captioner has by construction, and how it follows.
- `images/`: pictures of {pictures} of the images. The figure in them is drawn the same way whatever the label.

| captioner | its association of activity and label | LIC_M | LIC_D | LIC |
|---|---|---|---|---|
{table}

Licence: CC0 1.0 (public domain), https://creativecommons.org/publicdomain/zero/1.0/
"""
STORY = {"faithful": "as in the references", "amplifier": "stronger", "mitigator": "weaker"}
HOW = (
    "Nothing in a masked caption depends on the label but the activity, and each label meets the shares below exactly. "
    "With balanced labels, the attacker that knows them answers with q = max(F, M) / (F + M) for an activity shown by "
    "F and M of 80 images labelled Female and Male, and is right for a share q of its captions: the score is "
    "100 * sum of (F + M) / 160 * q^2. LIC_D is that sum for the references, LIC_M for the captioner, and LIC = LIC_M "
    "- LIC_D. ratio and error (%) count the captions of the images labelled Female or Male."
)


def write(folder: Path, seed: int = 0) -> None:
    """Write the demo data as the files that a user would bring."""
    folder, demo = Path(folder), generate(seed)
    for name in ("results", "images"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    demo.attributes.to_csv(folder / "attributes.csv", index=False, lineterminator="\n")
    _write_json(folder / "references.json", _coco_captions(demo.references))
    for name, frame in demo.captioners.items():
        _write_json(folder / "results" / f"{name}.json", _coco_records(frame))
    _write_json(folder / "truth.json", {"how": HOW, "seed": seed, "truth": demo.truth, "shares of 80": _all_shares()})
    for image, name in demo.pictures.items():
        draw(name).save(folder / "images" / f"{image}.png", optimize=True)
    (folder / "README.md").write_text(_readme(demo), encoding="utf-8", newline="\n")


def _coco_records(frame: pd.DataFrame) -> list[dict]:
    return [
        {"image_id": int(image), "caption": caption}
        for image, caption in zip(frame["image_id"], frame["caption"], strict=True)
    ]


def _coco_captions(references: pd.DataFrame) -> dict:
    records = _coco_records(references)
    return {
        "info": {"description": "Invented captions about no real person, made by capbias", "version": "1.0"},
        "licenses": [{"id": 1, "name": "CC0 1.0", "url": "https://creativecommons.org/publicdomain/zero/1.0/"}],
        "images": [{"id": int(image), "file_name": f"{image}.png"} for image in references["image_id"].unique()],
        "annotations": [{"id": number, **record} for number, record in enumerate(records, start=1)],
    }


def _all_shares() -> dict:
    designs = {"references": REFERENCE_DESIGN} | DESIGN
    return {name: {label: shares(design, label) for label in IMAGES} for name, design in designs.items()}


def _write_json(path: Path, content: list | dict) -> None:
    """JSON with one record a line, so that a change can be read."""
    text = json.dumps(content, ensure_ascii=False).replace("}, {", "},\n{")
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


def _readme(demo: Demo) -> str:
    rows = [
        f"| {name} | {STORY[name]} | {row['LIC_M']:.2f} | {row['LIC_D']:.2f} | {row['LIC']:.2f} |"
        for name, row in demo.truth.items()
    ]
    labels = ", ".join(f"{count} {label}" for label, count in IMAGES.items())
    return README.format(
        labels=labels, dropped=sum(DROPPED.values()), pictures=len(demo.pictures), table="\n".join(rows)
    )


# Pictures. Shapes are drawn in order on 480 x 360 points: (kind, colour, numbers...).
SIZE = (480, 360)
FINER = 3  # drawn this many times as large, then averaged down
INK, HEAD, CLOTH, LIMB = "#39424e", "#8492a0", "#56657a", "#6c7b8f"
CROWD = ("#cfdae2", "#ecdcc6", "#cfe0d3", "#ebd0ca", "#d6d8ea")

SCENES: dict[str, tuple[tuple, ...]] = {
    "phone": (
        ("box", "#dfe9ef", 0, 0, 480, 360, 0),
        ("box", "#c3d0d8", 20, 60, 120, 260, 0),
        ("box", "#b3c3cd", 130, 100, 210, 260, 0),
        ("box", "#c3d0d8", 390, 40, 470, 260, 0),
        *(("box", "#e9f1f5", x, y, x + 18, y + 24, 2) for x in (36, 74) for y in (80, 124, 168)),
        ("box", "#a9aeb3", 0, 252, 480, 360, 0),
        ("box", "#c9cdd1", 0, 252, 480, 276, 0),
        ("shape", "#c96f5a", 262, 226, 292, 182, 388, 182, 424, 226),
        ("box", "#c96f5a", 232, 220, 468, 276, 18),
        ("shape", "#e6f2f7", 286, 222, 304, 192, 338, 192, 338, 222),
        ("shape", "#e6f2f7", 348, 222, 348, 192, 382, 192, 406, 222),
        ("disc", INK, 282, 276, 24, 24),
        ("disc", INK, 416, 276, 24, 24),
        ("disc", "#c9cdd1", 282, 276, 11, 11),
        ("disc", "#c9cdd1", 416, 276, 11, 11),
        ("figure", 160, 116, 160, 222, 122, 196, 134, 236, 146, 274, 142, 326, 174, 274, 178, 326),
        ("line", LIMB, 17, 174, 166, 206, 176, 190, 126),
        ("line", INK, 13, 187, 104, 184, 132),
    ),
    "umbrella": (
        ("box", "#b9c6d2", 0, 0, 480, 360, 0),
        ("box", "#93a5b5", 0, 286, 480, 360, 0),
        ("disc", "#a9bac8", 120, 330, 80, 10),
        ("disc", "#a9bac8", 372, 322, 60, 8),
        *(
            ("line", "#dce6ee", 3, x + y // 9, y, x + y // 9 - 8, y + 26)
            for number, x in enumerate(range(14, 480, 46))
            for y in range(12 + 37 * (number % 3), 280, 84)
        ),
        ("line", INK, 6, 270, 92, 270, 214),
        ("slice", "#e0a458", 270, 128, 118, 96, 180, 360),
        ("slice", "#f4ead7", 270, 128, 74, 96, 180, 360),
        ("slice", "#e0a458", 270, 128, 28, 96, 180, 360),
        ("line", INK, 5, 270, 24, 270, 36),
        ("figure", 226, 158, 222, 246, 184, 226, 172, 262, 196, 288, 176, 330, 244, 288, 262, 328),
        ("line", LIMB, 17, 240, 208, 252, 222, 270, 200),
        ("line", INK, 6, 270, 206, 270, 222, 278, 228, 286, 222),
    ),
    "cake": (
        ("box", "#f3e6d3", 0, 0, 480, 360, 0),
        ("box", "#d9ecf2", 300, 40, 420, 136, 6),
        ("line", "#ffffff", 6, 360, 40, 360, 136),
        ("line", "#ffffff", 6, 300, 88, 420, 88),
        ("box", "#c9a27a", 40, 46, 150, 120, 4),
        ("line", "#a98259", 3, 95, 50, 95, 116),
        ("disc", "#7c5d3d", 87, 84, 3, 3),
        ("disc", "#7c5d3d", 103, 84, 3, 3),
        ("figure", 196, 118, 196, 246, 150, 224, 186, 254, 186, 300, 186, 330, 206, 300, 206, 330),
        ("box", "#a9825a", 0, 262, 480, 284, 0),
        ("box", "#c9a27a", 0, 284, 480, 360, 0),
        ("line", "#a9825a", 3, 160, 292, 160, 352),
        ("line", "#a9825a", 3, 330, 292, 330, 352),
        ("disc", "#ffffff", 308, 262, 82, 9),
        ("box", "#6b4430", 248, 198, 368, 260, 8),
        ("box", "#f0a6b8", 244, 190, 372, 214, 10),
        *(("disc", "#f0a6b8", x, 216, 10, 10 + x % 7) for x in range(256, 366, 20)),
        *(("disc", "#d9738f", x, 188, 7, 6) for x in (270, 308, 346)),
        ("shape", "#ffffff", 272, 138, 312, 148, 298, 188),
        ("line", LIMB, 17, 210, 168, 250, 198, 284, 152),
    ),
    "horse": (
        ("box", "#cfe5ef", 0, 0, 480, 360, 0),
        ("disc", "#f6d98b", 60, 60, 28, 28),
        ("disc", "#a9c98f", 120, 268, 220, 70),
        ("disc", "#b8d39f", 400, 272, 220, 60),
        ("box", "#97bb7c", 0, 262, 480, 360, 0),
        *(("box", "#d9c3a0", x, 190, x + 14, 292, 3) for x in range(20, 480, 106)),
        ("box", "#e4d2b4", 0, 206, 480, 219, 2),
        ("box", "#e4d2b4", 0, 246, 480, 259, 2),
        ("line", "#5f4330", 12, 424, 190, 444, 220, 440, 268),
        *(("line", "#7c5940", 17, x, 230, x + 1, 318) for x in (276, 306, 384, 412)),
        *(("line", "#4a3526", 17, x + 1, 312, x + 1, 318) for x in (276, 306, 384, 412)),
        ("disc", "#8d674b", 344, 208, 88, 42),
        ("shape", "#8d674b", 258, 204, 236, 128, 268, 104, 300, 120, 326, 182),
        ("shape", "#8d674b", 266, 100, 272, 78, 284, 104),
        ("line", "#8d674b", 34, 264, 122, 218, 156),
        ("line", "#5f4330", 14, 284, 106, 306, 136, 320, 168),
        ("disc", INK, 254, 120, 4, 4),
        ("disc", INK, 210, 158, 3, 3),
        ("figure", 130, 128, 130, 236, 90, 206, 96, 246, 118, 284, 112, 330, 144, 284, 148, 330),
        ("line", LIMB, 17, 144, 178, 190, 206, 246, 196),
        ("box", "#c98b4e", 244, 182, 262, 210, 4),
        ("line", "#f1e2c4", 5, 265, 186, 265, 207),
    ),
    "skateboard": (
        ("box", "#f0e3cf", 0, 0, 480, 360, 0),
        ("disc", "#f7c97f", 392, 74, 34, 34),
        ("box", "#d8c6aa", 0, 210, 70, 300, 0),
        ("box", "#cdb997", 80, 180, 140, 300, 0),
        ("box", "#a7abaf", 0, 296, 480, 360, 0),
        ("shape", "#8f9499", 250, 300, 340, 288, 400, 262, 440, 222, 458, 180, 480, 180, 480, 300),
        ("line", "#6f757b", 6, 456, 180, 480, 180),
        ("figure", 218, 76, 226, 166, 160, 126, 122, 104, 190, 198, 186, 240, 272, 190, 272, 232),
        ("line", LIMB, 17, 233, 126, 278, 124, 314, 92),
        ("line", "#5a4a7a", 10, 142, 244, 158, 254, 296, 244, 312, 230),
        ("disc", "#e8823a", 176, 266, 10, 10),
        ("disc", "#e8823a", 280, 258, 10, 10),
        ("disc", "#91969b", 226, 324, 74, 7),
    ),
    "surfboard": (
        ("box", "#d5ebf2", 0, 0, 480, 360, 0),
        ("disc", "#f9d77e", 390, 70, 32, 32),
        ("box", "#6fb3c8", 0, 150, 480, 250, 0),
        ("line", "#a8d6e2", 5, 20, 182, 70, 176, 120, 182, 170, 176),
        ("line", "#a8d6e2", 5, 330, 200, 380, 194, 430, 200, 476, 194),
        ("line", "#ffffff", 12, 0, 244, 60, 238, 130, 246, 210, 238, 290, 246, 370, 238, 430, 246, 480, 240),
        ("box", "#ecd9ae", 0, 248, 480, 360, 0),
        ("disc", "#dcc590", 250, 336, 110, 9),
        *(("disc", "#dcc590", x, y, 5, 3) for x, y in ((60, 290), (110, 330), (420, 300), (380, 342), (30, 344))),
        ("figure", 246, 96, 246, 206, 206, 178, 190, 214, 222, 258, 204, 326, 272, 258, 288, 326),
        ("disc", "#c7d0d6", 282, 194, 132, 25),
        ("disc", "#fdfdfb", 280, 190, 130, 23),
        ("line", "#e07a5f", 4, 158, 190, 402, 190),
        ("line", LIMB, 18, 264, 142, 296, 178, 268, 206),
    ),
    "motorcycle": (
        ("box", "#e4e1dc", 0, 0, 480, 360, 0),
        ("box", "#cfcac2", 0, 292, 480, 360, 0),
        ("box", "#b08d62", 24, 72, 190, 82, 2),
        ("box", "#7f9aa8", 36, 40, 60, 72, 3),
        ("box", "#c46b4f", 70, 48, 104, 72, 3),
        ("box", "#8aa17b", 116, 34, 138, 72, 3),
        ("box", "#d9b65c", 148, 52, 178, 72, 3),
        ("box", "#c9b491", 300, 30, 460, 130, 4),
        ("line", "#77808a", 8, 330, 54, 330, 108),
        ("disc", "#77808a", 330, 52, 11, 11),
        ("line", "#77808a", 8, 372, 60, 372, 108),
        ("box", "#a5553f", 358, 44, 386, 62, 3),
        ("line", "#77808a", 7, 412, 50, 430, 108),
        ("disc", INK, 240, 274, 50, 50),
        ("disc", "#cfcac2", 240, 274, 32, 32),
        ("disc", INK, 420, 274, 50, 50),
        ("disc", "#cfcac2", 420, 274, 32, 32),
        ("line", "#8b939b", 9, 240, 274, 300, 280, 352, 280),
        ("line", "#8b939b", 10, 420, 274, 384, 186, 366, 176),
        ("line", INK, 10, 240, 274, 282, 224, 388, 212),
        ("box", "#6a737c", 296, 236, 356, 286, 10),
        ("line", "#a9b0b6", 4, 302, 248, 350, 248),
        ("line", "#a9b0b6", 4, 302, 260, 350, 260),
        ("disc", "#3f7d7a", 340, 208, 46, 24),
        ("line", INK, 18, 236, 212, 296, 214),
        ("disc", "#f6e7a8", 402, 198, 15, 15),
        ("line", INK, 8, 366, 176, 346, 170),
        ("disc", "#8b939b", 240, 274, 8, 8),
        ("disc", "#8b939b", 420, 274, 8, 8),
        ("figure", 126, 158, 104, 262, 118, 248, 168, 258, 160, 264, 156, 324, 76, 318, 40, 326),
        ("line", LIMB, 17, 138, 208, 178, 232, 236, 238),
        ("line", "#8b939b", 9, 234, 238, 284, 250),
        ("disc", "#8b939b", 288, 251, 11, 11),
        ("disc", "#e4e1dc", 292, 252, 6, 5),
    ),
    "baseball": (
        ("box", "#bcd9e8", 0, 0, 480, 360, 0),
        ("box", "#dfe5e9", 0, 66, 480, 200, 0),
        *(
            (
                "disc",
                CROWD[(3 * row + 2 * seat + row * seat) % 5],
                14 + 32 * seat + 16 * (row % 2),
                90 + 32 * row,
                11,
                11,
            )
            for row in range(4)
            for seat in range(15)
        ),
        ("box", "#3f6f5a", 0, 196, 480, 232, 0),
        ("box", "#8fba77", 0, 230, 480, 360, 0),
        ("disc", "#d1a679", 240, 346, 210, 52),
        ("shape", "#ffffff", 262, 326, 306, 326, 306, 338, 284, 348, 262, 338),
        ("line", "#b98545", 9, 244, 166, 292, 112),
        ("line", "#b98545", 15, 276, 130, 330, 70),
        ("figure", 196, 112, 196, 216, 214, 200, 246, 164, 160, 266, 146, 322, 226, 266, 244, 322),
        ("line", LIMB, 17, 210, 162, 232, 176, 250, 156),
        ("disc", "#ffffff", 410, 214, 11, 11),
        ("line", "#d0675a", 2, 405, 207, 408, 214, 405, 221),
        ("line", "#8fb3a2", 4, 430, 210, 462, 207),
        ("line", "#8fb3a2", 4, 430, 219, 454, 220),
    ),
}


def draw(name: str):
    """The picture of an activity (a Pillow image): a plain figure that says nothing of gender, and its things."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (SIZE[0] * FINER, SIZE[1] * FINER))
    canvas = ImageDraw.Draw(image)
    for kind, *rest in SCENES[name]:
        SHAPES[kind](canvas, *rest)
    return image.reduce(FINER)


def _fine(numbers: Iterable[float]) -> list[float]:
    return [FINER * number for number in numbers]


def _box(canvas, colour: str, left, top, right, bottom, radius) -> None:
    left, top, right, bottom, radius = _fine((left, top, right, bottom, radius))
    canvas.rounded_rectangle((left, top, right - 1, bottom - 1), radius, fill=colour)


def _disc(canvas, colour: str, x, y, half_width, half_height) -> None:
    canvas.ellipse(_fine((x - half_width, y - half_height, x + half_width, y + half_height)), fill=colour)


def _slice(canvas, colour: str, x, y, half_width, half_height, start, end) -> None:
    around = _fine((x - half_width, y - half_height, x + half_width, y + half_height))
    canvas.pieslice(around, start, end, fill=colour)


def _shape(canvas, colour: str, *numbers) -> None:
    canvas.polygon(_fine(numbers), fill=colour)


def _line(canvas, colour: str, width, *numbers) -> None:
    """A line through points (x, y, x, y, ...) with round joints and ends."""
    points = list(zip(numbers[::2], numbers[1::2], strict=True))
    for start, end in pairwise(points):
        canvas.line(_fine((*start, *end)), fill=colour, width=FINER * width)
    for x, y in points:
        _disc(canvas, colour, x, y, width / 2, width / 2)


def _figure(canvas, head_x, head_y, hip_x, hip_y, *limbs) -> None:
    """Head and hip, then the far arm (elbow, hand) and both legs (knee, foot); the near arm is a line of its own."""
    neck_x, neck_y = head_x + 0.1 * (hip_x - head_x), head_y + 46
    far_arm, *legs = limbs[:4], limbs[4:8], limbs[8:]
    for leg in legs:
        _line(canvas, INK, 21, hip_x, hip_y, *leg)
    _line(canvas, LIMB, 17, neck_x - 14, neck_y + 4, *far_arm)
    _line(canvas, CLOTH, 46, neck_x, neck_y + 6, hip_x, hip_y - 6)
    _disc(canvas, HEAD, head_x, head_y, 25, 25)


SHAPES = {"box": _box, "disc": _disc, "slice": _slice, "shape": _shape, "line": _line, "figure": _figure}


if __name__ == "__main__":
    import sys

    write(Path(sys.argv[1] if len(sys.argv) > 1 else "assets/demo"))
