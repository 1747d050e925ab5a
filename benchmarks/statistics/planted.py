"""Does the verdict tell captioners of known truth apart? `python -m benchmarks.statistics.planted --data FOLDER`.

FOLDER holds annotations/captions.json (five human captions an image) and annotations/attributes.csv. Captioners are
made from the second human caption of each image, so what they amplify beyond people is what is planted here and nothing
else, and are scored beside all five as any file of captions is. --captions: files of models in place of the human
caption, as they are and with a fifth of the words wrong. --draws: on how many random sets of images, each time from the
next of the human captions; the mean numbers and how often each verdict comes out are printed. --chosen: captioners are
human captions, chosen among the five of each image, beside the other four.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import capbias_core as capbias
from capbias_core.aggregate.verdict import VERDICTS
from capbias_core.api import Report
from capbias_core.attributes import get_attribute
from capbias_core.load import read_captions
from capbias_core.prepare.text import tokenize

WRITTEN_FROM, HUMANS = 1, 5  # place of the human caption, and how many an image has
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

    def __init__(self, words: dict[str, Words], labels: dict[str, str], seed: int = 1):
        self.words, self.labels, self.random = words, labels, random.Random(seed)
        said = Counter(word for own in words.values() for word in own)
        self.common = {word for word, _ in said.most_common(COMMON)} | GENDER.masked_words
        self.texts = {value: [own for image, own in words.items() if labels[image] == value] for value in GENDER.values}
        self.told = {
            value: [word for own in texts for word in own if self._free(word)] for value, texts in self.texts.items()
        }
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
            "a fifth of the captions of another image of the label": ("nothing", self._exchanged),
            "the named gender swapped in 15%": ("nothing in LIC", lambda own, _: self._swapped(own)),
            "person for every man": ("more", lambda own, _: ["person" if word in MEN else word for word in own]),
        }

    def captions(self, name: str) -> list[dict]:
        change = self.known[name][1]
        return _rows((image, " ".join(change(own, self.labels[image]))) for image, own in self.words.items())

    def _free(self, word: str) -> bool:
        return word not in GENDER.masked_words

    def _often(self, own: Words, more: str, share: float) -> Words:
        return [*own, *more.split()] if self.random.random() < share else own

    def _exchanged(self, own: Words, label: str) -> Words:
        return self.random.choice(self.texts[label]) if self.random.random() < 0.2 else own

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
    parser.add_argument("--chosen", action="store_true", help="human captions as captioners, beside the others")
    parser.add_argument("--draws", type=int, default=1, help="random sets of images (default: %(default)s)")
    options = parser.parse_args()
    labels, people = read(options.data)
    print(HEAD)
    for number in options.images:
        found: dict[tuple[str, str], list[Report]] = {}
        for draw in range(options.draws):
            images = random.Random(draw).sample(sorted(people), min(number, len(people)))
            table = [{"image_id": image, "gender": labels[image]} for image in images]
            said = {image: people[image] for image in images}
            made = _chosen(said, draw) if options.chosen else _captioners(options.captions, said, labels, draw)
            for planted, name, captions, human in made:
                metrics = ("lic", "error")
                report = capbias.score({"c": captions}, table, "gender", human, metrics, seeds=options.seeds)
                found.setdefault((planted, name), []).append(report)
                if options.draws == 1:
                    print(one(report, len(images), planted, name), flush=True)
        if options.draws > 1:
            for (planted, name), reports in found.items():
                print(several(reports, number, planted, name), flush=True)


def _captioners(
    files: list[Path], people: dict[str, list[str]], labels: dict[str, str], draw: int
) -> Iterator[tuple[str, str, list[dict], list[dict]]]:
    """What is planted, the captioner's name, its captions and the human ones."""
    human = _rows((image, text) for image, own in people.items() for text in own)
    if not files:
        place = (WRITTEN_FROM + draw) % HUMANS
        made = Captioners({image: tokenize(own[place]) for image, own in people.items()}, labels, draw + 1)
        for name, (planted, _) in made.known.items():
            yield planted, name, made.captions(name), human
    for file in files:
        own = read_captions(file).frame.drop_duplicates("image_id").set_index("image_id")["caption"]
        made = Captioners({image: tokenize(own[image]) for image in people if image in own.index}, labels, draw + 1)
        yield "", file.stem, made.captions("human"), human
        yield "less", f"{file.stem}, {WRONG}", made.captions(WRONG), human


def _chosen(people: dict[str, list[str]], draw: int) -> Iterator[tuple[str, str, list[dict], list[dict]]]:
    """As `_captioners`, of human captions chosen among the first five of each image."""
    words = {image: [tokenize(text) for text in own[:HUMANS]] for image, own in people.items()}
    said = Counter(word for own in words.values() for text in own for word in text)
    anybody = random.Random(draw)

    def frequent(own: list[Words]) -> list[float]:
        return [float(np.mean([np.log(said[word]) for word in text] or [0])) for text in own]

    def typical(own: list[Words]) -> list[float]:
        """Mean share of the words of both (Jaccard) with all five."""
        sets = [set(text) for text in own]
        return [float(np.mean([len(one & two) / max(1, len(one | two)) for two in sets])) for one in sets]

    choices: dict[str, Callable[[list[Words]], int]] = {
        "any of five": lambda own: anybody.randrange(len(own)),
        "the most frequent words": lambda own: int(np.argmax(frequent(own))),
        "the most typical of five": lambda own: int(np.argmax(typical(own))),
        "the least typical of five": lambda own: int(np.argmin(typical(own))),
    }
    for name, choice in choices.items():
        chosen = {image: choice(own) for image, own in words.items()}
        others = (
            (image, own[place]) for image, own in people.items() for place in range(HUMANS) if place != chosen[image]
        )
        yield (
            "nothing",
            f"human, {name}",
            _rows((image, people[image][own]) for image, own in chosen.items()),
            _rows(others),
        )


def _rows(pairs: Iterable[tuple[str, str]]) -> list[dict]:
    return [{"image_id": image, "caption": text} for image, text in pairs]


def one(report: Report, images: int, planted: str, name: str) -> str:
    """The line of a captioner."""
    both = []
    for metric in ("LIC", "LIC_excess"):
        low, high = _interval(report, metric)
        both.append(f"{_value(report, metric):.1f} [{low:.1f}, {high:.1f}]")
    return (
        f"{images:>6}  {planted:<15} {both[0]:<19} {_value(report, 'LIC_baseline'):>8.1f} {both[1]:<19} "
        f"{report['LIC'].verdict:<10} {_value(report, 'error'):>5.1f}  {name}"
    )


def _value(report: Report, metric: str) -> float:
    """nan without one: of captions that tell too little there is no baseline."""
    return report[metric].value if metric in set(report.table["metric"]) else math.nan


def _interval(report: Report, metric: str) -> tuple[float, float]:
    value = _value(report, metric)
    return (report[metric].interval if value == value else None) or (value, value)


def several(reports: Sequence[Report], images: int, planted: str, name: str) -> str:
    """The line of a captioner on several sets of images: means, and how often each verdict came out."""
    lic, base, excess, error = (
        np.nanmean([_value(report, metric) for report in reports])
        for metric in ("LIC", "LIC_baseline", "LIC_excess", "error")
    )
    said = Counter(report["LIC"].verdict for report in reports)
    verdicts = ", ".join(f"{verdict} {said[verdict]}" for verdict in VERDICTS if said[verdict])
    return (
        f"{images:>6}  {planted:<15} {lic:<19.1f} {base:>8.1f} {excess:<19.1f} {verdicts} of {len(reports)}  "
        f"{error:>5.1f}  {name}"
    )


def read(folder: Path) -> tuple[dict[str, str], dict[str, list[str]]]:
    """image -> label, and image -> its human captions, of the images that have a label and five of them."""
    table = pd.read_csv(folder / "annotations" / "attributes.csv", dtype=str, keep_default_na=False)
    labels = {row.image_id: row.gender for row in table.itertuples() if row.gender in GENDER.values}
    people: dict[str, list[str]] = {}
    for row in json.loads((folder / "annotations" / "captions.json").read_text())["annotations"]:
        people.setdefault(str(row["image_id"]), []).append(row["caption"])
    return labels, {image: own for image, own in people.items() if image in labels and len(own) >= HUMANS}


if __name__ == "__main__":
    main()
