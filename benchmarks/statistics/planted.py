"""Does the verdict tell captioners of known truth apart? `python -m benchmarks.statistics.planted --data FOLDER`.

FOLDER holds annotations/captions.json (five human captions an image) and annotations/attributes.csv. Captioners are
made from the second human caption of each image, so what they amplify beyond people is what is planted here and nothing
else, and are scored beside all five as any file of captions is. --captions: files of models in place of the human
caption, as they are and with a fifth of the words wrong.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd

import capbias_core as capbias
from capbias_core.attributes import get_attribute
from capbias_core.load import read_captions
from capbias_core.prepare.text import tokenize

WRITTEN_FROM = 1  # place of the human caption
COMMON = 300  # words that the plain captioner has
PHRASE, OBJECT = " with a red dot", " next to a laptop"
WRONG = "a fifth of the words wrong"
HEAD = (
    f"{'images':>6}  {'planted':<15} {'LIC':<19} {'baseline':>8} {'excess':<19} {'verdict':<10} {'error':>5}  captioner"
)
GENDER = get_attribute("gender")
OTHER = {"man": "woman", "woman": "man", "men": "women", "women": "men", "boy": "girl", "girl": "boy"}

Words = list[str]


class Captioners:
    """Captioners by name, each as a caption for the words and the label of an image."""

    def __init__(self, words: dict[str, Words], labels: dict[str, str]):
        self.words, self.labels, self.random = words, labels, random.Random(1)
        said = Counter(word for own in words.values() for word in own)
        self.common = {word for word, _ in said.most_common(COMMON)} | GENDER.masked_words
        of = {value: [own for image, own in words.items() if labels[image] == value] for value in GENDER.values}
        self.told = {value: [word for own in texts for word in own if self._free(word)] for value, texts in of.items()}
        self.every = [word for own in self.told.values() for word in own]
        first, second = GENDER.values
        self.known: dict[str, tuple[str, Callable[[Words, str], Words]]] = {
            "human": ("nothing", lambda own, _: own),
            "a phrase in 20% of both": ("nothing", lambda own, _: self._often(own, PHRASE, 0.2)),
            f"a phrase in 35% of {first}, 5% of {second}": (
                "more",
                lambda own, label: self._often(own, PHRASE, 0.35 if label == first else 0.05),
            ),
            f"the {COMMON} commonest words": ("nothing", lambda own, _: self._plain(own)),
            f"the same, an object in 30% of {first}, 8% of {second}": (
                "more",
                lambda own, label: self._often(self._plain(own), OBJECT, 0.3 if label == first else 0.08),
            ),
            WRONG: ("less", lambda own, _: self._wrong(own, self.every)),
            "a fifth wrong, with words of the label": ("more", lambda own, label: self._wrong(own, self.told[label])),
            "the named gender swapped in 15%": ("nothing in LIC", lambda own, _: self._swapped(own)),
            "person for every man": ("more", lambda own, _: ["person" if word in MEN else word for word in own]),
        }

    def captions(self, name: str) -> list[dict]:
        change = self.known[name][1]
        return [
            {"image_id": image, "caption": " ".join(change(own, self.labels[image]))}
            for image, own in self.words.items()
        ]

    def _free(self, word: str) -> bool:
        return word not in GENDER.masked_words

    def _often(self, own: Words, more: str, share: float) -> Words:
        return [*own, *more.split()] if self.random.random() < share else own

    def _plain(self, own: Words) -> Words:
        return [word for word in own if word in self.common] or own

    def _wrong(self, own: Words, words: Words) -> Words:
        draw = self.random
        return [draw.choice(words) if self._free(word) and draw.random() < 0.2 else word for word in own]

    def _swapped(self, own: Words) -> Words:
        return [OTHER.get(word, word) for word in own] if self.random.random() < 0.15 else own


MEN = frozenset(GENDER.words["Male"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of annotations/")
    parser.add_argument("--images", type=int, nargs="+", default=[3000, 8423], help="(default: 3000 8423)")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--captions", type=Path, nargs="+", default=[], help="files of captions of models")
    options = parser.parse_args()
    labels, people = read(options.data)
    print(HEAD)
    for number in options.images:
        images = random.Random(0).sample(sorted(people), min(number, len(people)))
        human = [{"image_id": image, "caption": text} for image in images for text in people[image]]
        table = [{"image_id": image, "gender": labels[image]} for image in images]
        score = partial(shown, table=table, human=human, seeds=options.seeds)
        if not options.captions:
            made = Captioners({image: tokenize(people[image][WRITTEN_FROM]) for image in images}, labels)
            for name, (planted, _) in made.known.items():
                score(made.captions(name), planted, name)
        for file in options.captions:
            found = read_captions(file).frame.drop_duplicates("image_id").set_index("image_id")["caption"]
            made = Captioners({image: tokenize(found[image]) for image in images if image in found.index}, labels)
            score(made.captions("human"), "", file.stem)
            score(made.captions(WRONG), "less", f"{file.stem}, {WRONG}")


def shown(captions: list[dict], planted: str, name: str, table: list[dict], human: list[dict], seeds: int) -> None:
    """Score a captioner, and print its line."""
    report = capbias.score({"c": captions}, table, "gender", human, ("lic", "error"), seeds=seeds)
    lic, base, excess, error = (report[metric] for metric in ("LIC", "LIC_baseline", "LIC_excess", "error"))
    both = []
    for own in (lic, excess):
        low, high = own.interval or (own.value, own.value)
        both.append(f"{own.value:.1f} [{low:.1f}, {high:.1f}]")
    print(
        f"{len(table):>6}  {planted:<15} {both[0]:<19} {base.value:>8.1f} {both[1]:<19} {lic.verdict:<10} "
        f"{error.value:>5.1f}  {name}",
        flush=True,
    )


def read(folder: Path) -> tuple[dict[str, str], dict[str, list[str]]]:
    """image -> label, and image -> its human captions, of the images that have a label and five of them."""
    table = pd.read_csv(folder / "annotations" / "attributes.csv", dtype=str, keep_default_na=False)
    labels = {row.image_id: row.gender for row in table.itertuples() if row.gender in GENDER.values}
    people: dict[str, list[str]] = {}
    for row in json.loads((folder / "annotations" / "captions.json").read_text())["annotations"]:
        people.setdefault(str(row["image_id"]), []).append(row["caption"])
    return labels, {image: own for image, own in people.items() if image in labels and len(own) >= 5}


if __name__ == "__main__":
    main()
