"""Image ids of one file as those of another, and rows without image ids by their human captions."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.load.ids import last_part, normalise_image_id, printable, stem
from capbias_core.load.rows import RowErrors, merged
from capbias_core.types import Table, counted

LEAST_SHARE = 0.1  # of the images of the smaller file; fewer names in common are chance
SHOWN = 50  # characters of an image id in a message
SPLIT = re.compile(r"(?<![a-z])(train|val|valid|validation|test|dev)(?![a-z])", re.IGNORECASE)
NUMBER_AT_END = re.compile(r"(\d+)\D*$")


@dataclass(frozen=True)
class Joined:
    """How the image ids of one file are those of another. mapping: image id -> the other file's id, only where they
    differ. how: a sentence on what they have in common, '' if the ids are equal. near: two ids that may be meant as
    one, as text, if nothing was joined and nothing is equal."""

    mapping: dict[str, str] = field(default_factory=dict)
    how: str = ""
    near: str = ""


def join_ids(
    images: Iterable[str],
    known: Iterable[str],
    names: Mapping[str, str] | None = None,
    known_names: Mapping[str, str] | None = None,
) -> Joined:
    """The image ids `images` as ids of `known`. names, known_names: image id -> file name, if a file of that side lists
    both.

    Ids are compared as they are, through the file names, by the last part of their path, and by that part without its
    ending. The first way that joins images one to one counts. Nothing is joined if two images of one side could be the
    same image of the other. The file names decide against equal ids if they join more images, since numbers of two
    files may be equal by chance. Images without a partner keep their ids, unless another image has that id.

    >>> join_ids(["data/val/dog.jpg"], ["dog.jpg", "cat.jpg"]).mapping
    {'data/val/dog.jpg': 'dog.jpg'}
    >>> join_ids(["val/1000.jpg", "old/1000.jpg"], ["1000"])
    Joined(mapping={}, how='', near='val/1000.jpg here, 1000 there')
    """
    images, known = list(dict.fromkeys(images)), list(dict.fromkeys(known))
    if not images or not known:
        return Joined()
    there = set(known)
    equal = sum(image in there for image in images)
    by_name = _through_names(images, known, names or {}, known_names or {})
    if len(by_name) > equal:
        others = {image: f"{image} (another image)" for image in images if image in there and image not in by_name}
        joined = _joined_by("the file names listed in the file", by_name, images)
        return replace(joined, mapping=joined.mapping | others)
    if equal:
        return Joined()
    for how, key in (("the last part of their path", last_part), ("their file name without its ending", stem)):
        pairs = _one_to_one(images, known, key)
        if len(pairs) >= max(1, LEAST_SHARE * min(len(images), len(known))):
            return _joined_by(how, pairs, images)
    return Joined(near=_near(images, known))


def _joined_by(how: str, pairs: Mapping[str, str], images: list[str]) -> Joined:
    mapping = {image: other for image, other in pairs.items() if image != other}
    if not mapping:
        return Joined()
    image, other = next(iter(mapping.items()))
    text = f"{len(pairs):,} of {counted(len(images), 'image')} joined by {how}, such as {_end(image)} to {_end(other)}"
    return Joined(mapping, text)


def _through_names(
    images: list[str], known: list[str], names: Mapping[str, str], known_names: Mapping[str, str]
) -> dict[str, str]:
    """Images of one side to those of the other by the file names that one side or both list."""
    if not (names or known_names):
        return {}
    here, there = ({image: normalise_image_id(name) for image, name in each.items()} for each in (names, known_names))
    for key in (str, last_part, stem):
        pairs = _one_to_one(
            images,
            known,
            lambda image, key=key: key(here.get(image, image)),
            lambda image, key=key: key(there.get(image, image)),
        )
        if len(pairs) >= max(1, LEAST_SHARE * min(len(images), len(known))):
            return pairs
    return {}


def _one_to_one(
    images: list[str], known: list[str], key: Callable[[str], str], other: Callable[[str], str] | None = None
) -> dict[str, str]:
    """Images with the known ones of the same key; nothing if a key that both sides have is not of one image each, or if
    the images are of another split (`train/7.jpg`, `val/7.jpg`). other: the key of known images."""
    here, there = _by_key(images, key), _by_key(known, other or key)
    shared = here.keys() & there.keys()
    if any(len(here[name]) > 1 or len(there[name]) > 1 for name in shared):
        return {}
    pairs = {here[name][0]: there[name][0] for name in here if name in shared}
    return {} if any(map(_of_other_split, pairs, pairs.values())) else pairs


def _by_key(images: list[str], key: Callable[[str], str]) -> dict[str, list[str]]:
    groups = defaultdict(list)
    for image in images:
        groups[key(image)].append(image)
    return groups


def _of_other_split(image: str, other: str) -> bool:
    here, there = ({name.lower()[:3] for name in SPLIT.findall(each)} for each in (image, other))
    return bool(here and there and here.isdisjoint(there))


def _near(images: list[str], known: list[str]) -> str:
    """`val/1000.jpg here, 1000 there`: two ids with one stem, else with one number at their end, else the first."""
    for key in (stem, _number_at_end):
        there = {name: image for image in reversed(known) if (name := key(image))}
        pair = next(((image, there[key(image)]) for image in images if key(image) in there), None)
        if pair:
            break
    image, other = pair or (images[0], min(known))
    return f"{_end(image)} here, {_end(other)} there"


def _end(image: str) -> str:
    """An image id for a message: the end of a long one, by which ids differ."""
    line = printable(" ".join(image.split()))
    return line if len(line) <= SHOWN else f"…{line[-SHOWN:]}"


def _number_at_end(image: str) -> str:
    match = NUMBER_AT_END.search(stem(image))
    return match[1].lstrip("0") if match else ""


# rows without image ids


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
