"""Rows without image ids, told apart by their human captions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.load.rows import RowErrors, merged
from capbias_core.types import Table, counted


def joined(table: Table, own: pd.DataFrame, known: pd.DataFrame, file: str) -> Table:
    """Captions with the image ids of the human captions at hand in place of their rows.

    table: captions by row. own: their human captions by row. known: human captions with image ids. A row is the image
    that has most of its human captions, letter case and outer space aside, and more than half of them; of several
    alike none, unless one is the row itself. Where every row is itself, nothing changes. A row that is no image is left
    out and counted. Raises CapbiasError if none is.
    """
    found = _images(own, known)
    if all(row == image for row, image in found.items()) and len(found) == own["image_id"].nunique():
        return table
    images = table.frame["image_id"].map(found)
    lost, faults = images.isna(), RowErrors(file, "record")
    for place in lost.to_numpy().nonzero()[0]:
        faults.add(int(place) + 1, f"no image at hand has the human captions of {table.frame['image_id'].iloc[place]}")
    if lost.all():
        raise CapbiasError(
            f"{file}, whose rows have no image ids, and human captions that no image at hand has",
            "human captions of the same images, by whose text rows are told apart",
            "Load it without them (or into a collection of its own): it holds human captions itself.",
        )
    frame = table.frame.assign(image_id=images)[~lost].reset_index(drop=True)
    frame["caption_index"] = frame.groupby("image_id", sort=False).cumcount()
    problems, count = merged(faults)
    note = f"{counted(len(frame), 'caption')} got the image id of the human captions at hand; not found: {count:,}"
    return replace(
        table,
        frame=frame,
        problems=(*table.problems, *problems)[:20],
        problem_count=table.problem_count + count,
        notes=(*table.notes, note),
        prompts=tuple(prompt for prompt, out in zip(table.prompts, lost, strict=False) if not out),
    )


def _images(own: pd.DataFrame, known: pd.DataFrame) -> Mapping[str, str]:
    """Row -> image id, of the rows that are an image."""
    with_text = defaultdict(set)
    for text, image in zip(_plain(known["caption"]), known["image_id"], strict=True):
        with_text[text].add(image)
    found = {}
    for row, texts in _plain(own["caption"]).groupby(own["image_id"], sort=False):
        votes = Counter(image for text in texts for image in with_text.get(text, ()))
        most = max(votes.values(), default=0)
        best = [image for image, number in votes.items() if number == most and number * 2 > len(texts)]
        if len(best) == 1 or row in best:
            found[row] = row if row in best else best[0]
    return found


def _plain(captions: pd.Series) -> pd.Series:
    return captions.str.strip().str.casefold()


from dataclasses import dataclass


@dataclass(frozen=True)
class Joined:
    mapping: dict
    how: str = ""
    near: str = ""


def join_ids(images, known, names):
    """TEMPORARY until the labels branch lands."""
    return Joined({})
