"""Files for processes that are killed: captions of three captioners, labels, and plans whose runs take some seconds."""

from __future__ import annotations

import random
from pathlib import Path

import pandas as pd

WORDS = (
    *("kitchen", "garage", "dog", "cat", "street", "table", "red", "blue", "tall", "old", "small", "new"),
    *("horse", "train", "boat"),
)
PLAN = """
collection = "mine"
captions = ["a.csv", "b.csv", "c.csv"]
labels = "labels.csv"

[[measure]]
attribute = "gender"
metrics = ["LIC_M"]
attacker = "{attacker}"
seeds = {seeds}
"""


def write_files(folder: Path, images: int, plans: dict[str, str]) -> Path:
    """The folder with captions, labels and plans (name -> text)."""
    draw = random.Random(0)
    labels = pd.DataFrame({"image_id": range(images), "gender": ["Male", "Female"] * (images // 2)})
    labels.to_csv(folder / "labels.csv", index=False)
    for name in "abc":
        texts = [" ".join(draw.choices(WORDS, k=10)) for _ in range(images)]
        labels[["image_id"]].assign(caption=texts).to_csv(folder / f"{name}.csv", index=False)
    for name, text in plans.items():
        (folder / f"{name}.toml").write_text(text)
    return folder
