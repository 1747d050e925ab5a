"""Karpathy's data sets (`dataset_coco.json`, `dataset_flickr30k.json`): images with their human captions and splits."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from capbias_core.load.coco import parse, wrong_shape
from capbias_core.load.ids import described
from capbias_core.load.reader import Head, Reader
from capbias_core.load.rows import Choose, RowErrors, Rows, rows_of_numbered
from capbias_core.types import counted

IMAGES = re.compile(r'"images"\s*:\s*\[')
SENTENCES = re.compile(r'"sentences"\s*:\s*\[')
COLUMNS = ("image_id", "caption", "split")
IDS = ("cocoid", "filename", "imgid")  # the first of these that an image has


def recognises(head: Head) -> bool:
    """Whether images are listed with sentences in them."""
    return all(own.search(head.text) for own in (IMAGES, SENTENCES)) if head.text.startswith("{") else False


def columns(path: Path) -> tuple[str, ...]:
    """The names under which the parts of an image are offered."""
    return COLUMNS


def read(path: Path, choose: Choose) -> Rows:
    """A row an image, its sentences as a list; images of every split. Raises CapbiasError for any other shape."""
    whole = parse(path, '{"images": [{"filename", "split", "sentences": [{"raw"}]}]}')
    images = whole.get("images") if isinstance(whole, dict) else None
    if not isinstance(images, list):
        raise wrong_shape(path, whole)
    faults, numbered, splits = RowErrors(path.name, "record"), [], Counter()
    for number, image in enumerate(images, start=1):
        sentences = image.get("sentences") if isinstance(image, dict) else None
        if not isinstance(sentences, list):
            faults.add(number, f"{described(image)} where an image with a list of sentences is expected")
            continue
        split = str(image.get("split"))
        splits[split] += 1
        numbered.append((number, {"image_id": _id(image), "caption": [*map(_raw, sentences)], "split": split}))
    return rows_of_numbered(
        numbered, choose, faults, COLUMNS, (f"images of every split are taken: {splits_text(splits)}",)
    )


def splits_text(splits: Counter) -> str:
    """`train 82,783 images, val 5,000 images`"""
    return ", ".join(f"{split} {counted(number, 'image')}" for split, number in splits.items())


def _id(image: dict) -> Any:
    return next((image[name] for name in IDS if image.get(name) is not None), None)


def _raw(sentence: Any) -> Any:
    return sentence.get("raw") if isinstance(sentence, dict) else sentence


READERS = (Reader("karpathy", "Karpathy's data set (JSON)", recognises, columns, read, place=5, holds="references"),)
