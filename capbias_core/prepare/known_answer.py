"""Controlled caption sets C1 to C4 of the DBAC paper (section 5.1, tables 2 and 3), whose answer is known.

Three subsets, each with one object and two verbs. Each subset has as many captions of women as of men, so value and
object are independent. Only verbs differ: of 50 captions of men 30, 35, 40 or 45 (C1 to C4) have the first verb, and as
many of women the second. So at most 60, 70, 80 or 90% of the values can be guessed from masked captions.

The control, which is ours, is the reverse: verbs are balanced, and 80% of women's and men's captions name the umbrella
and the frisbee. A metric that counts objects must find it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

CONTROL = "control"
# Of 50 captions of the control, how many name the object that goes with the value; verbs do not depend on it.
CONTROL_OBJECTS = 40
# Of 50 captions of one value and subset, how many have the verb that goes with it.
IMBALANCE = {"C1": 30, "C2": 35, "C3": 40, "C4": 45}
CAPTIONS = 50
VALUES = {"Female": ("a woman", "a girl", "a lady"), "Male": ("a man", "a boy", "a guy")}
# Object, what men do here more often, what women do.
SUBSETS = (
    ("bed", "is lying on a bed", "is sitting on a bed"),
    ("frisbee", "is throwing a frisbee", "is playing with a frisbee"),
    ("umbrella", "is holding an umbrella", "is walking with an umbrella"),
)
ENDS = ("", " in the morning", " near a window", " on a sunny day", " by the road")


@dataclass(frozen=True)
class KnownSet:
    """A caption set whose bias is known."""

    captions: pd.DataFrame  # image_id, caption_index, caption
    labels: pd.DataFrame  # image_id, gender, objects
    share: float  # of captions whose verb (in the control: object) goes with their value


def known_set(name: str, times: int = 100, seed: int = 0) -> KnownSet:
    """The set called `name`, `times` as large as in the paper: 300 * times captions, one per image."""
    rng = np.random.default_rng(seed)
    rows = []
    for subject, *deeds in SUBSETS:
        for value, phrases in VALUES.items():
            often, seldom = deeds if value == "Male" else deeds[::-1]
            if name == CONTROL:  # verbs are balanced, objects are not
                usual = subject == {"Male": "frisbee", "Female": "umbrella"}[value]
                captions = 3 * times * (CONTROL_OBJECTS if usual else (CAPTIONS - CONTROL_OBJECTS) // 2)
                with_often = captions // 2
            else:
                captions, with_often = CAPTIONS * times, IMBALANCE[name] * times
            deed = [often] * with_often + [seldom] * (captions - with_often)
            who, end = (rng.choice(part, len(deed)) for part in (phrases, ENDS))
            rows += [(f"{a} {b}{c}", value, subject) for a, b, c in zip(who, deed, end, strict=True)]
    order = rng.permutation(len(rows))
    frame = pd.DataFrame([rows[index] for index in order], columns=["caption", "gender", "objects"])
    frame.insert(0, "image_id", [str(number) for number in range(len(frame))])
    return KnownSet(
        frame[["image_id", "caption"]].assign(caption_index=0),
        frame[["image_id", "gender", "objects"]],
        IMBALANCE.get(name, CONTROL_OBJECTS) / CAPTIONS,
    )
