"""Which metrics see a bias that is in the wording alone: sets C1 to C4 of the DBAC paper (Nair et al., 2025), Table 3.

    python examples/papers/dbac_controlled_sets.py --times 10

Makes the sets by the rules of section 5.1 and reads no file. Each of three subsets has one object and two verbs, and as
many captions of women as of men, so value and object are independent. Of 50 captions of men 30, 35, 40 or 45 (C1 to C4)
have the first verb, and as many of women the second: at most 60, 70, 80 or 90% of the values can be guessed. The
control, which is ours, is the reverse: verbs are balanced, and 80% of women's captions name the umbrella, of men's the
frisbee. Takes 13 seconds at ten times the paper's size, and half a minute at a hundred times.

Q: share of captions whose value an attacker names (the paper's w_H, as values and objects are equally common). LIC: of
these captions, x100. BA: share of the value that an object is associated with; 0.5 is independent. DPA: accuracy of the
labels `is the object there` guessed from the value; 0.667 is chance.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

import capbias_core as capbias
from capbias_core.resources import PUBLISHED_FILE

CONTROL = "control"
CONTROL_OBJECTS = 40  # of 50 captions of a value, those that name the object that goes with it
VERBS = {"C1": 30, "C2": 35, "C3": 40, "C4": 45}  # of 50 captions of a value and subset, those with its verb
CAPTIONS = 50
VALUES = {"Female": ("a woman", "a girl", "a lady"), "Male": ("a man", "a boy", "a guy")}
SUBSETS = (  # object, what men do here more often, what women do
    ("bed", "is lying on a bed", "is sitting on a bed"),
    ("frisbee", "is throwing a frisbee", "is playing with a frisbee"),
    ("umbrella", "is holding an umbrella", "is walking with an umbrella"),
)
ENDS = ("", " in the morning", " near a window", " on a sunny day", " by the road")
PRINTED = {"Q": "DBAC_H", "LIC": "LIC_H", "BA": "BA_H", "DPA": "DPA_H"}


def captions_of(name: str, times: int, seed: int = 0) -> pd.DataFrame:
    """image_id, caption, gender, objects of a set: 300 * times captions, one for each image."""
    rng, rows = np.random.default_rng(seed), []
    for subject, *deeds in SUBSETS:
        for value, phrases in VALUES.items():
            often, seldom = deeds if value == "Male" else deeds[::-1]
            count, with_often = CAPTIONS * times, VERBS.get(name, 0) * times
            if name == CONTROL:
                usual = subject == {"Male": "frisbee", "Female": "umbrella"}[value]
                count = 3 * times * (CONTROL_OBJECTS if usual else (CAPTIONS - CONTROL_OBJECTS) // 2)
                with_often = count // 2
            deed = [often] * with_often + [seldom] * (count - with_often)
            who, end = (rng.choice(part, len(deed)) for part in (phrases, ENDS))
            rows += [(f"{a} {b}{c}", value, subject) for a, b, c in zip(who, deed, end, strict=True)]
    frame = pd.DataFrame(
        [rows[place] for place in rng.permutation(len(rows))], columns=["caption", "gender", "objects"]
    )
    return frame.assign(image_id=[str(number) for number in range(len(frame))])


def best(name: str, metric: str) -> float:
    """What a metric tends to on C1 to C4: of the best possible attacker, and with value and object independent."""
    share = VERBS[name] / CAPTIONS
    return {"Q": share, "LIC": 100 * share**2, "BA": 0.5, "DPA": 2 / 3}[metric]


def association(frame: pd.DataFrame) -> float:
    """BA's b of each object and the value that is the commoner beside it, averaged over objects."""
    counts = pd.crosstab(frame["objects"], frame["gender"])
    return float((counts.max(axis=1) / counts.sum(axis=1)).mean())


def objects_guessed(frame: pd.DataFrame, seed: int = 0) -> float:
    """Accuracy of `is the object there`, guessed from the value: the commoner answer among the other half's images."""
    there = pd.get_dummies(frame["objects"]).to_numpy(dtype=float)
    half = np.random.default_rng(seed).random(len(frame)) < 0.5
    guesses = {value: there[half & (frame["gender"] == value)].mean(axis=0) > 0.5 for value in VALUES}
    right = [guesses[value] == row for value, row in zip(frame["gender"][~half], there[~half], strict=True)]
    return float(np.mean(right))


def main(argv: list[str] | None = None) -> pd.DataFrame:
    """A row for each set and metric: measured with its interval, what it tends to, and printed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=10, help="size, as a multiple of the paper's")
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args(argv)
    printed = pd.read_csv(PUBLISHED_FILE, dtype={"table": str})
    printed = printed[(printed["paper"] == "dbac") & (printed["table"] == "3")].set_index(["model", "metric"])["value"]
    rows = []
    for name in (*VERBS, CONTROL):
        frame = captions_of(name, given.times)
        report = capbias.score(
            frame[["image_id", "caption"]],
            labels=frame[["image_id", "gender"]],
            attribute="gender",
            metrics=["LIC_M", "SC"],
            seeds=given.seeds,
        )
        measured = {"BA": (association(frame), None, None), "DPA": (objects_guessed(frame), None, None)}
        for metric, source, factor in (("Q", report["SC"], 0.01), ("LIC", report["LIC_M"], 1)):
            measured[metric] = tuple(number * factor for number in (source.value, *source.interval))
        for metric, of_paper in PRINTED.items():
            known, paper = None, None
            if name != CONTROL:
                known, paper = best(name, metric), printed[name, of_paper] * (100 if metric == "LIC" else 1)
            rows.append((name, metric, *measured[metric], known, paper))
    found = pd.DataFrame(rows, columns=["set", "metric", "measured", "low", "high", "tends to", "printed"])
    print(found.astype(dict.fromkeys(found.columns[2:], float)).round(3).to_string(index=False, na_rep=""))
    return found


if __name__ == "__main__":
    main()
