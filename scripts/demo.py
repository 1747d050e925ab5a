"""Invented captions whose answer is known: demo data that the project makes itself, from a seed.

Every image shows one person and one of eight activities. Four activities lean toward images labelled Female and
four toward Male; `DESIGN` says how strongly, for the references and for four captioners. A caption is a sentence
about subject, activity and place. Nothing but the activity depends on the label: the subject is masked (or is
"person", equally often for both labels), and the other words are drawn without looking at the label, the place
from the places of the activity.

How the truth follows. Let labels be balanced, P(t | a) the design's share of activity t among images labelled a,
and q_t = max_a P(t | a) / (P(t | Female) + P(t | Male)). The masked caption tells the activity and nothing more
about the label, so the attacker that knows the design answers with probability q_t, and is right for a share q_t
of the captions with t. It scores q_t where it is right and 0 elsewhere, hence

    LIC_M = 100 * sum_t P(t) * q_t^2,   with P(t) = (P(t | Female) + P(t | Male)) / 2.

LIC_D is the same sum for the references, and LIC = LIC_M - LIC_D. The images meet the design exactly, by quotas
within each label, so downsampling to equal numbers of labels keeps it. `generate(seed, quotas=False)` draws labels,
activities and subjects instead, so that data sets differ as samples do: the design is then what they meet on average.

The captioner `plain` tells exactly what the references tell, always in the same words. An attacker learns that sooner:
the LIC that is measured is above 0, though the one that is true is 0.

Four more sets are what the amplifier writes of masked photographs: with the object masked it is less sure of the
activity, with the person masked of the label, with the person's box masked of the label and a little of the activity,
with both of either; so its captions tell less and less. Their names say so (amplifier_masked_person), as a user's
would. Their truth follows in the same way.

Ratio and error (masculine over feminine captions, share that names only the wrong gender) are exact too: the
number of captions that say "person" and that name the wrong gender is a fixed share of each label.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from scripts.demo_pictures import CATEGORIES, SIZE, draw, outlines, things

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
MASKED = "_masked_"  # in the names of sets of masked photographs


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
    the association as it is. rich: uses the rare words and every wording, not only the commonest one. plain: says who
    does what and where, in one form of sentence, and nothing else.
    """

    leaning: tuple[tuple[int, int], ...]
    neutral: int
    wrong: int
    mistakes: float = 0.0
    rich: bool = False
    plain: bool = False


REFERENCE_DESIGN = Design(((15, 5), (14, 6), (13, 7), (12, 8)), neutral=4, wrong=0, rich=True)
DESIGN = {
    "faithful": Design(((15, 5), (14, 6), (13, 7), (12, 8)), neutral=4, wrong=1, mistakes=0.2),
    "amplifier": Design(((17, 3), (16, 4), (16, 4), (15, 5)), neutral=2, wrong=2, mistakes=0.1),
    "mitigator": Design(((12, 8), (12, 8), (12, 8), (12, 8)), neutral=8, wrong=1, mistakes=0.1),
    "amplifier_masked_object": Design(((16, 4), (15, 5), (15, 5), (14, 6)), neutral=2, wrong=2, mistakes=0.3),
    "amplifier_masked_person": Design(((14, 6), (13, 7), (13, 7), (12, 8)), neutral=20, wrong=6, mistakes=0.1),
    "amplifier_masked_both": Design(((12, 8), (11, 9), (11, 9), (11, 9)), neutral=20, wrong=8, mistakes=0.3),
    "plain": Design(((15, 5), (14, 6), (13, 7), (12, 8)), neutral=4, wrong=0, plain=True),
    "amplifier_masked_box": Design(((13, 7), (13, 7), (12, 8), (12, 8)), neutral=20, wrong=7, mistakes=0.2),
}

SENTENCES = ("a {who}{activity} {place}", "a {who}{verb} {activity} {place}", "there is a {who}{activity} {place}")


@dataclass(frozen=True)
class Demo:
    """The demo data. attributes: image_id, gender (raw labels). objects: image_id, objects (`person|cake`). references
    and captioners: image_id, caption_index, caption. truth: for each captioner LIC_M, LIC_D, LIC (x100), ratio and
    error (%), on the images labelled Female or Male. pictures: image_id -> the activity to draw.
    """

    attributes: pd.DataFrame
    objects: pd.DataFrame
    references: pd.DataFrame
    captioners: dict[str, pd.DataFrame]
    truth: dict[str, dict[str, float]]
    pictures: dict[str, str]


def generate(seed: int = 0, quotas: bool = True) -> Demo:
    """The demo data of a seed; another seed gives other sentences with the same truth.

    quotas: whether each label meets its design exactly; otherwise everything is drawn.
    """
    streams = iter(np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2 + len(DESIGN)))
    images = _images(next(streams), quotas)
    references = _references(images, next(streams), quotas)
    captioners = {name: _captions(images, design, next(streams), quotas) for name, design in DESIGN.items()}
    return Demo(
        attributes=images[["image_id", "gender"]],
        objects=images[["image_id"]].assign(objects=["|".join(things(name)) for name in images["activity"]]),
        references=references,
        captioners={name: frame.drop(columns="caption_index") for name, frame in captioners.items()},
        truth=truth(),
        pictures=_pictured(images, captioners),
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


def met(design: Design, label: str) -> dict[str, int]:
    """How many captions of images with this label show each activity, by quotas."""
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


def _images(rng: np.random.Generator, quotas: bool) -> pd.DataFrame:
    """Every image with its label, activity and place (0 or 1), in random order, numbered from 1001."""
    names = list(ACTIVITIES)
    numbers = IMAGES
    if not quotas:
        female = int(rng.binomial(sum(IMAGES.values()), IMAGES["Female"] / sum(IMAGES.values())))
        numbers = {"Female": female, "Male": sum(IMAGES.values()) - female}
    rows = []
    for label, number in numbers.items():
        counts = met(REFERENCE_DESIGN, label)
        if not quotas:
            counts = dict(zip(names, rng.multinomial(number, _chances(REFERENCE_DESIGN, label)), strict=True))
        rows += [(label, name) for name, count in counts.items() for _ in range(count)]
    rows += [(label, names[rng.integers(len(names))]) for label, count in DROPPED.items() for _ in range(count)]
    frame = pd.DataFrame([rows[place] for place in rng.permutation(len(rows))], columns=["gender", "activity"])
    frame["place"] = rng.integers(2, size=len(frame))
    frame.insert(0, "image_id", [str(FIRST_ID + number) for number in range(len(frame))])
    return frame


def _chances(design: Design, label: str) -> np.ndarray:
    """(8,) the chance that an image with this label shows each activity."""
    return np.array(list(shares(design, label).values())) / UNIT


def _references(images: pd.DataFrame, rng: np.random.Generator, quotas: bool) -> pd.DataFrame:
    """Five different sentences an image, image by image."""
    said = {image: set() for image in images["image_id"]}
    parts = [_captions(images, REFERENCE_DESIGN, rng, quotas, index, said) for index in range(REFERENCES)]
    return pd.concat(parts).sort_values(["image_id", "caption_index"], ignore_index=True)


def _captions(
    images: pd.DataFrame,
    design: Design,
    rng: np.random.Generator,
    quotas: bool,
    index: int = 0,
    said: dict[str, set[str]] | None = None,
) -> pd.DataFrame:
    """One sentence an image, other than those already said of it."""
    seen = _seen(images, design, rng, quotas)
    subjects = _subjects(images["gender"].to_numpy(), design, rng, quotas)
    captions = []
    for image, subject, (name, place) in zip(images["image_id"], subjects, seen, strict=True):
        earlier = said[image] if said else set()
        while (caption := _sentence(rng, subject, ACTIVITIES[name], place, design)) in earlier:
            pass
        earlier.add(caption)
        captions.append(caption)
    return pd.DataFrame({"image_id": images["image_id"], "caption_index": index, "caption": captions})


def _seen(images: pd.DataFrame, design: Design, rng: np.random.Generator, quotas: bool) -> list[tuple[str, int]]:
    """The activity and place that a captioner sees in each image; with quotas each label meets the design."""
    shown = images["activity"].to_numpy(dtype=object)
    seen = shown.copy()
    for label in IMAGES:
        rows = rng.permutation(np.flatnonzero(images["gender"] == label))
        if quotas:
            seen[rows] = _moved(shown[rows], met(design, label), rng)
        else:
            seen[rows] = _moved_by_chance(shown[rows], design, label, rng)
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


def _moved_by_chance(names: np.ndarray, design: Design, label: str, rng: np.random.Generator) -> np.ndarray:
    """`names` with each changed by chance, so that activities have the design's shares on average."""
    activities, shown = np.array(list(ACTIVITIES), dtype=object), _chances(REFERENCE_DESIGN, label)
    more = _chances(design, label) - shown
    leaves = dict(zip(activities, np.maximum(-more, 0) / shown, strict=True))
    moved = rng.random(len(names)) < [leaves[name] for name in names]
    gains = np.maximum(more, 0)
    return np.where(moved, rng.choice(activities, len(names), p=gains / gains.sum()) if moved.any() else names, names)


def _subjects(labels: np.ndarray, design: Design, rng: np.random.Generator, quotas: bool) -> np.ndarray:
    """For each image whom the caption names: a label, "person", or "both"."""
    named = np.where(labels == "Both", "both", "person").astype(object)
    for label, other in OTHER.items():
        rows = rng.permutation(np.flatnonzero(labels == label))
        neutral, wrong = (count * len(rows) // 40 for count in (design.neutral, design.wrong))
        if not quotas:
            neutral, wrong, _ = rng.multinomial(
                len(rows), np.array([design.neutral, design.wrong, 40 - design.neutral - design.wrong]) / 40
            )
        named[rows] = label
        named[rows[:neutral]] = "person"
        named[rows[neutral : neutral + wrong]] = other
    return named


def _sentence(rng: np.random.Generator, subject: str, activity: Activity, place: int, design: Design) -> str:
    pronoun, rich = PRONOUNS[subject], design.rich
    wordings, places = activity.wordings, activity.places[place]
    nouns, chances = zip(*SUBJECTS[subject], strict=True)
    look = "" if design.plain else _pick(rng, LOOKS + RARE_LOOKS * rich)
    outfit = "" if design.plain else _pick(rng, OUTFITS + RARE_OUTFITS * rich)
    sentence = _pick(rng, SENTENCES[:1] if design.plain else SENTENCES).format(
        who=f"{look}{nouns[rng.choice(len(nouns), p=chances)]} {outfit}",
        verb="are" if subject == "both" else "is",
        activity=_pick(rng, wordings if rich else wordings[:1]),
        place=_pick(rng, places if rich else places[:1]),
    )
    sentence = sentence.format(pronoun=pronoun)
    return f"{sentence[0].upper()}{sentence[1:]}." if rich else sentence


def _pick(rng: np.random.Generator, options: tuple[str, ...]) -> str:
    return options[rng.integers(len(options))]


def _pictured(images: pd.DataFrame, captioners: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    """An image of each activity, with the label and place of its picture, of which all captions of the unmasked
    photograph name both; of these the first one of which most captions of the masked photograph name the activity."""
    found = {}
    for name, activity in ACTIVITIES.items():
        label, place = activity.pictured
        fits = (images["activity"] == name) & (images["gender"] == label) & (images["place"] == place)
        named = rf"\b(?:{'|'.join(noun for noun, _ in SUBJECTS[label])})\b"
        also = np.zeros(len(images), dtype=int)
        for captioner, frame in captioners.items():
            tells = frame["caption"].str.contains(name).to_numpy()
            if MASKED in captioner:
                also += tells
            else:
                fits &= tells & frame["caption"].str.contains(named).to_numpy()
        assert fits.any(), name
        found[images.loc[np.where(fits, also, -1).argmax(), "image_id"]] = name
    return found


README = """# Demo data

Invented data about no real person: no caption, label or picture here comes from a data set. The code makes it from a
seed (`scripts/demo.py`), with captioners whose bias amplification is known because it was built in. To make it again:
`make demo`.

- `attributes.csv`: a label for each image ({labels}; {dropped} rows hold another label or none, to be dropped).
- `objects.csv`: the objects on each image, by COCO's names.
- `references.json`: five "human" captions an image, in the format of COCO captions.
- `results/`: captions of four invented captioners, and what one of them writes of masked photographs, in the format
  of COCO results.
- `truth.json`: the LIC that each captioner has by construction, and how it follows.
- `images/`: pictures of {pictures} of the images. The figure in them is drawn the same way whatever the label.
- `instances.json`: the outlines of that figure and of its thing, in the format of COCO instances.
- `boxes.csv`: what a detector (YOLOv8n, int8) found on the pictures, as
  `capbias images detect --collection demo --weights yolov8n_int8.tflite` finds it; the condition `box` hides its box
  of the person.
- `scored.zip`: runs that take minutes: LIC by two other encoders, DBAC, DBA, BA, DBAC of two captioners by another
  encoder, all but LIC of masked photographs, and two captioners' captions scored by a network.
  `python -m scripts.demo_scores` computes them again.

| captioner | its association of activity and label | LIC_M | LIC_D | LIC |
|---|---|---|---|---|
{table}

Licence: CC0 1.0 (public domain), https://creativecommons.org/publicdomain/zero/1.0/
"""
STORY = {
    "faithful": "as in the references",
    "amplifier": "stronger",
    "mitigator": "weaker",
    "amplifier_masked_object": "stronger, but weaker than unmasked",
    "amplifier_masked_person": "weaker",
    "amplifier_masked_both": "hardly any",
    "plain": "as in the references, always in the same words",
    "amplifier_masked_box": "still weaker",
}
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
    demo.objects.to_csv(folder / "objects.csv", index=False, lineterminator="\n")
    _write_json(folder / "references.json", _coco_captions(demo.references))
    for name, frame in demo.captioners.items():
        _write_json(folder / "results" / f"{name}.json", _coco_records(frame))
    _write_json(folder / "truth.json", {"how": HOW, "seed": seed, "truth": demo.truth, "shares of 80": _all_shares()})
    for image, name in demo.pictures.items():
        draw(name).save(folder / "images" / f"{image}.png", optimize=True)
    _write_json(folder / "instances.json", _coco_instances(demo.pictures))
    (folder / "README.md").write_text(_readme(demo), encoding="utf-8", newline="\n")


def _coco_records(frame: pd.DataFrame) -> list[dict]:
    return [
        {"image_id": int(image), "caption": caption}
        for image, caption in zip(frame["image_id"], frame["caption"], strict=True)
    ]


def _coco_instances(pictures: dict[str, str]) -> dict:
    """The outlines of the figures and things, as run lengths, with COCO's own numbers of the categories."""
    from pycocotools import mask

    records = []
    for image, name in pictures.items():
        for thing, pixels in outlines(name).items():
            runs = mask.encode(np.asfortranarray(pixels, dtype=np.uint8))
            records.append(
                {
                    "id": len(records) + 1,
                    "image_id": int(image),
                    "category_id": CATEGORIES[thing],
                    "bbox": mask.toBbox(runs).tolist(),
                    "area": int(pixels.sum()),
                    "iscrowd": 0,
                    "segmentation": {"size": runs["size"], "counts": runs["counts"].decode("ascii")},
                }
            )
    return {
        "images": [
            {"id": int(image), "file_name": f"{image}.png", "width": SIZE[0], "height": SIZE[1]} for image in pictures
        ],
        "annotations": records,
        "categories": [{"id": number, "name": name} for name, number in CATEGORIES.items()],
    }


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
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":")).replace("},{", "},\n{")
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


if __name__ == "__main__":
    import sys

    write(Path(sys.argv[1] if len(sys.argv) > 1 else "assets/demo"))
