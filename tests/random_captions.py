"""Captions of random words of three captioners, and labels: files for commands that are killed."""

from __future__ import annotations

import random
from pathlib import Path

import pandas as pd

WORDS = (
    *("kitchen", "garage", "dog", "cat", "street", "table", "red", "blue", "tall", "old", "small", "new"),
    *("horse", "train", "boat"),
)
FILES = ("a.csv", "b.csv", "c.csv", "labels.csv")


def write_files(folder: Path, images: int) -> Path:
    """The folder with FILES."""
    draw = random.Random(0)
    labels = pd.DataFrame({"image_id": range(images), "gender": ["Male", "Female"] * (images // 2)})
    labels.to_csv(folder / "labels.csv", index=False)
    for name in "abc":
        texts = [" ".join(draw.choices(WORDS, k=10)) for _ in range(images)]
        labels[["image_id"]].assign(caption=texts).to_csv(folder / f"{name}.csv", index=False)
    return folder
