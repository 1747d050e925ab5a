"""What decides the sign of DBAC A->T: `python -m benchmarks.dbac_readings --data FOLDER`.

FOLDER has annotations/ (attributes.csv, captions.json) and results/. The paper does not say what a task word is, nor
how w of many captions becomes one number. Here the attacker is constant, so w is the mean of P(t) / P(a) alone, where
P(t) is the share of captions with the same task words. Printed is Table 9 of the paper.

Task words: `synonyms`, COCO's 79 objects without person, by the synonyms and plurals of this project; `names`, by
COCO's names as whole words; `one word`, the names of a single word that equal a word of the caption; `DBAC`, these and
`person`, plurals included, as capbias reads them; `at spaces`, the same where captions are split at spaces alone, as in
the authors' code, so that a word before a comma or a full stop is another one. Captions without a task word count as a
pattern of their own (`all`), or not (`some`).
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from capbias_core.load.published import published_results
from capbias_core.prepare.tasks import object_names, task_words
from capbias_core.prepare.text import tokenize

CAPTIONERS = ("nic", "sat", "fc", "att2in", "updn", "transformer", "oscar")
Reading = Callable[[str], tuple[str, ...]]


def readings() -> dict[str, Reading]:
    """Caption -> its task words, by the name of the reading."""
    groups = object_names()
    spelled = {name: [" ".join(phrase) for phrase in phrases] for name, phrases in groups.items()}
    one_word = {name for name in groups if " " not in name}
    of_form = {form: name for name, forms in task_words().items() for form in forms}

    def by_pattern(forms: dict[str, list[str]]) -> Reading:
        patterns = {name: re.compile(rf"\b(?:{'|'.join(map(re.escape, own))})\b") for name, own in forms.items()}
        return lambda caption: tuple(name for name, pattern in patterns.items() if pattern.search(caption))

    return {
        "synonyms": by_pattern(spelled),
        "names": by_pattern({name: [name] for name in groups}),
        "one word": lambda caption: tuple(sorted(one_word.intersection(re.findall(r"\w+", caption)))),
        "DBAC": lambda caption: tuple(sorted({of_form[word] for word in tokenize(caption) if word in of_form})),
        "at spaces": lambda caption: tuple(sorted({of_form[word] for word in caption.split() if word in of_form})),
    }


def weight(patterns: Sequence[tuple[str, ...]], labels: Sequence[str], only_some: bool) -> float:
    """The mean of P(t) / P(a) over captions."""
    often, groups = Counter(patterns), Counter(labels)
    ratios = [often[own] / groups[label] for own, label in zip(patterns, labels, strict=True) if own or not only_some]
    return sum(ratios) / len(ratios)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args().data
    table = pd.read_csv(data / "annotations" / "attributes.csv", dtype=str, keep_default_na=False)
    labels = table[table["gender"].isin(["Female", "Male"])].set_index("image_id")["gender"]

    def read(path: Path, images: pd.Index) -> pd.DataFrame:
        rows = json.loads(path.read_text())
        frame = pd.DataFrame(rows["annotations"] if isinstance(rows, dict) else rows)
        frame = frame[["image_id", "caption"]].astype(str)
        return frame[frame["image_id"].isin(images)]

    human = read(data / "annotations" / "captions.json", labels.index)
    images = pd.Index(human["image_id"].unique())
    models = {name: read(data / "results" / f"{name}.json", images) for name in CAPTIONERS}
    rows = published_results()
    rows = rows[(rows["paper"] == "dbac") & (rows["table"] == "9") & (rows["direction"] == "A->T")]
    printed = rows.set_index("model")["value"] * 100 / rows.set_index("model")["scale"]
    printed = printed.reindex(CAPTIONERS).to_numpy(dtype=float)
    print(f"{len(images):,} images; A->T x100 of a constant attacker\n")
    print(
        f"{'task words':10} {'captions':9}{'w_H':>7}  " + "".join(f"{name:>12}" for name in CAPTIONERS) + "    r  off"
    )
    for name, of in readings().items():
        patterns = {
            side: [of(caption.lower()) for caption in frame["caption"]]
            for side, frame in [("human", human), *models.items()]
        }
        for some in (False, True):
            w_h = weight(patterns["human"], human["image_id"].map(labels).tolist(), some)
            w_m = [weight(patterns[own], models[own]["image_id"].map(labels).tolist(), some) for own in CAPTIONERS]
            values = np.array([100 * (own - w_h) / (own + w_h) for own in w_m])
            r, off = np.corrcoef(values, printed)[0, 1], np.abs(values - printed).mean()
            shown = "".join(f"{value:12.1f}" for value in values)
            print(f"{name:10} {'some' if some else 'all':9}{w_h:7.3f}  {shown} {r:5.2f} {off:4.1f}", flush=True)
    print(f"{'printed':10} {'':9}{'':7}  " + "".join(f"{value:12.1f}" for value in printed))


if __name__ == "__main__":
    main()
