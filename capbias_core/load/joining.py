"""Image IDs of one file as those of another, and rows without image IDs by their human captions."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.load.ids import last_part, normalise_image_id, printable, stem
from capbias_core.load.parsed import RowErrors, merged
from capbias_core.types import Table, counted

LEAST_SHARE = 0.1  # of the images of the smaller file; fewer common names are chance
SHOWN = 50  # characters of an image ID in a message
SPLIT = re.compile(r"(?<![a-z])(train|val|valid|validation|test|dev)(?![a-z])", re.IGNORECASE)
NUMBER_AT_END = re.compile(r"(\d+)\D*$")


@dataclass(frozen=True)
class Joined:
    """How the image IDs of one file map to those of another. mapping: image ID -> the other file's ID, where they
    differ. how: a sentence on what they have in common, '' if the IDs are equal. near: two IDs that may mean the same
    image, as text, if nothing was joined and nothing is equal."""

    mapping: dict[str, str] = field(default_factory=dict)
    how: str = ""
    near: str = ""


def join_ids(
    images: Iterable[str],
    known: Iterable[str],
    names: Mapping[str, str] | None = None,
    known_names: Mapping[str, str] | None = None,
) -> Joined:
    """The image IDs `images` as IDs of `known`. names, known_names: image ID -> file name, if that side lists both.

    IDs are compared as they are, through the file names, by the last part of their path, and by that part without its
    ending. The first comparison that joins images one to one counts. Nothing is joined if two images of one side could
    be the same image of the other. File names override equal IDs if they join more images, since numbers of two files
    may be equal by chance. Images without a partner keep their IDs, unless another image has that ID.

    >>> join_ids(["data/val/dog.jpg"], ["dog.jpg", "cat.jpg"]).mapping
    {'data/val/dog.jpg': 'dog.jpg'}
    >>> join_ids(["val/1000.jpg", "old/1000.jpg"], ["1000"])
    Joined(mapping={}, how='', near='val/1000.jpg here, 1000 there')
    """
    images, known = list(dict.fromkeys(images)), list(dict.fromkeys(known))
    if not images or not known:
        return Joined()
    here, there = (
        {image: normalise_image_id(name) for image, name in (by or {}).items()} for by in (names, known_names)
    )
    least = max(1, LEAST_SHARE * min(len(images), len(known)))

    def pairs_by(key: Callable[[str], str], *renamed: Mapping[str, str]) -> dict[str, str]:
        """Images with the known ones of the same key; nothing if it is ambiguous, too rare, or of another split."""
        groups: tuple[dict[str, list[str]], ...] = (defaultdict(list), defaultdict(list))
        for group, ids, name_of in zip(groups, (images, known), renamed or ({}, {}), strict=True):
            for image in ids:
                group[key(name_of.get(image, image))].append(image)
        shared = [name for name in groups[0] if name in groups[1]]
        if len(shared) < least or any(len(group[name]) > 1 for name in shared for group in groups):
            return {}
        pairs = {groups[0][name][0]: groups[1][name][0] for name in shared}
        for here, there in pairs.items():  # such as train/7.jpg and val/7.jpg
            splits = [{name.lower()[:3] for name in SPLIT.findall(image)} for image in (here, there)]
            if all(splits) and splits[0].isdisjoint(splits[1]):
                return {}
        return pairs

    def joined_by(pairs: dict[str, str], how: str, more: dict[str, str]) -> Joined:
        mapping = {image: other for image, other in pairs.items() if image != other}
        if not mapping:
            return Joined(more)
        image, other = map(_end, next(iter(mapping.items())))
        how = f"{len(pairs):,} of {counted(len(images), 'image')} joined by {how}, such as {image} to {other}"
        return Joined(mapping | more, how)

    equal = set(images) & set(known)
    by_name = {}
    if here or there:
        by_name = next(filter(None, (pairs_by(key, here, there) for key in (str, last_part, stem))), {})
    if len(by_name) > len(equal):
        others = {image: f"{image} (another image)" for image in images if image in equal and image not in by_name}
        return joined_by(by_name, "the file names listed in the file", others)
    if equal:
        return Joined()
    for how, key in (("the last part of their path", last_part), ("their file name without its ending", stem)):
        if pairs := pairs_by(key):
            return joined_by(pairs, how, {})

    def number_at_end(image: str) -> str:
        match = NUMBER_AT_END.search(stem(image))
        return match[1].lstrip("0") if match else ""

    near = images[0], min(known)
    for key in (number_at_end, stem):  # rather two IDs with one stem, else with one number at their end
        by_key = {name: image for image in reversed(known) if (name := key(image))}
        near = next(((image, by_key[name]) for image in images if (name := key(image)) in by_key), near)
    return Joined(near=f"{_end(near[0])} here, {_end(near[1])} there")


def _end(image: str) -> str:
    """An image ID for a message: the end of a long one, by which IDs differ."""
    line = printable(" ".join(image.split()))
    return line if len(line) <= SHOWN else f"…{line[-SHOWN:]}"


def joined(table: Table, human: pd.DataFrame, known: pd.DataFrame, file: str) -> Table:
    """Captions with the image IDs of the human captions at hand in place of their rows.

    table: captions by row. human: their human captions by row. known: human captions with image IDs. A row is the image
    that has most of its human captions, and more than half of them, ignoring case and outer space; a tie gives no
    image, unless one is the row itself. If each row is itself, nothing changes. A row without an image is left out and
    counted. Raises CapbiasError if no row has one.
    """
    with_text = defaultdict(set)  # text -> image IDs
    for text, image in zip(known["caption"].str.strip().str.casefold(), known["image_id"], strict=True):
        with_text[text].add(image)
    by_row = {}
    for row, texts in human["caption"].str.strip().str.casefold().groupby(human["image_id"], sort=False):
        votes = Counter(image for text in texts for image in with_text.get(text, ()))
        most = max(votes.values(), default=0)
        best = [image for image, number in votes.items() if number == most and number * 2 > len(texts)]
        if len(best) == 1 or row in best:
            by_row[row] = row if row in best else best[0]
    if all(row == image for row, image in by_row.items()) and len(by_row) == human["image_id"].nunique():
        return table
    images = table.frame["image_id"].map(by_row)
    lost, faults = images.isna(), RowErrors(file, "record")
    for index in lost.to_numpy().nonzero()[0]:
        faults.add(int(index) + 1, f"no image at hand has the human captions of {table.frame['image_id'].iloc[index]}")
    if lost.all():
        raise CapbiasError(
            f"The rows of {file} have no image IDs, and no image at hand has its human captions.",
            "Load it without other human captions, or into another collection: it holds human captions itself.",
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
