"""Image IDs as text, however a file writes them; and which IDs of two files name the same image."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from numbers import Integral, Real
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np

from capbias_core.types import counted

ENDING = r"\.(?:jpe?g|png|gif|bmp|webp|tiff?)"
# COCO_val2014_000000000785.jpg and 000000000785.jpg (in a folder or not), 785.jpg, 000785, 785.0
DIGITS = re.compile(
    rf"(?:.*[/\\])?(?:COCO_[A-Za-z0-9]+_(\d+)(?:{ENDING})?|(\d{{12}}){ENDING})|(\d+)(?:{ENDING}|\.0+)?",
    re.IGNORECASE | re.ASCII,
)
# The start of names that a copy of COCO gave its images, and endings of files that stand for an image.
COCO_NAME = re.compile(r"(?:ms)?coco_(?:train|val|test)(?:20\d\d)?_0*(\d+)", re.IGNORECASE | re.ASCII)
FILE_ENDING = re.compile(rf"(?:{ENDING}|\.(?:txt|json|npy|npz|xml))$", re.IGNORECASE)
QUERY = re.compile(rf"({ENDING})[?#].*$", re.IGNORECASE | re.DOTALL)
# What may name an image: one word with a digit in it, or the name of a picture.
PICTURE = re.compile(rf"{ENDING}\s*$", re.IGNORECASE)
IMAGE_NAME = re.compile(rf"\S*\d\S*|.*{ENDING}", re.IGNORECASE | re.DOTALL)
MOST = 10**100
# Characters that text may hold in JSON and that no Parquet file or database keeps.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
LEAST_SHARE = 0.1  # of the images of the smaller file; fewer common names are chance
SHOWN = 50  # characters of an image ID in a message
SPLIT = re.compile(r"(?<![a-z])(train|val|valid|validation|test|dev)(?![a-z])", re.IGNORECASE)
NUMBER_AT_END = re.compile(r"(\d+)\D*$")


def normalise_image_id(value: object) -> str:
    """An image id as text; ValueError says what is wrong with it.

    Whole numbers, digits, and COCO file names become the number without leading zeros; other text is stripped.

    >>> [normalise_image_id(value) for value in (785, 785.0, "000785", "COCO_val2014_000000000785.jpg", " dog.jpg ")]
    ['785', '785', '785', '785', 'dog.jpg']
    >>> [normalise_image_id(value) for value in ("val2017/000000000785.jpg", "785.jpg", "mine/785.jpg")]
    ['785', '785', 'mine/785.jpg']
    """
    if type(value) is int and -MOST < value < MOST:  # the usual ones, quickly
        return str(value)
    if isinstance(value, str):
        return _from_text(value)
    if value is None or (isinstance(value, Real) and value != value):
        raise ValueError("the image id is missing")
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real) or abs(value) == math.inf:
        raise ValueError(f"the image id is {described(value)}, not a number or text")
    number: Any = value
    if not isinstance(number, Integral) and number != int(number):
        return str(float(number))
    if abs(int(number)) >= MOST:
        raise ValueError("the image id is a number of more than 100 digits")
    return str(int(number))


@lru_cache(100_000)
def _from_text(text: str) -> str:
    stripped = text.strip()
    if not stripped:
        raise ValueError("the image id is empty")
    if UNSTORABLE.search(stripped):
        raise ValueError("the image id holds a NUL character or half a surrogate pair")
    match = DIGITS.fullmatch(stripped)
    return (match[1] or match[2] or match[3]).lstrip("0") or "0" if match else stripped


def last_part(image: str) -> str:
    r"""The last part of an image id that is a path or an address, as an image id in lower case.

    >>> [last_part(each) for each in (r"C:\val\1000.jpg", "s3://b/Dog%201.png", "http://a.org/0012.jpg?x=1", "7")]
    ['1000', 'dog 1.png', '12', '7']
    """
    try:
        path = urlsplit(image).path if "://" in image else QUERY.sub(r"\1", image)
    except ValueError:  # not an address after all
        path = image
    last = unquote(path).replace("\\", "/").rstrip("/").rpartition("/")[2]
    return _from_text(last).casefold() if last.strip() and not UNSTORABLE.search(last) else image.casefold()


def stem(image: str) -> str:
    """The last part of an image id without the ending of a file, and of a name such as `mscoco_val_7` the number.

    >>> [stem(each) for each in ("out/dog_1000.jpg", "mscoco_val_1000", "dog_1000", "1000.5")]
    ['dog_1000', '1000', 'dog_1000', '1000.5']
    """
    last = last_part(image)
    name = FILE_ENDING.sub("", last) or last
    match = COCO_NAME.fullmatch(name)
    return match[1] if match else _from_text(name)


def printable(text: str) -> str:
    """Text from a file, fit for a message: half surrogate pairs, which no terminal can print, become `?`."""
    return text.encode("utf-8", "replace").decode("utf-8")


def short(text: str) -> str:
    """Text from a file on one line of a message, cut after 40 characters."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= 40 else f"{line[:40]}…"


def described(value: object) -> str:
    """A raw value in a researcher's words, short: `null`, `true`, `a number (3)`, `a list`."""
    if value is None:
        return "null"
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, Integral) and abs(int(value)) >= MOST:
        return "a number of more than 100 digits"
    if isinstance(value, Real):
        return f"a number ({value})"
    return {list: "a list", dict: "an object", str: "text", bytes: "bytes"}.get(
        type(value), f"a {type(value).__name__}"
    )


# IDs of two files


@dataclass(frozen=True)
class Joined:
    """How the image IDs of one file map to those of another."""

    mapping: dict[str, str] = field(default_factory=dict)  # image ID -> the other file's ID, if they differ
    how: str = ""  # a sentence on what they have in common, '' if the IDs are equal
    near: str = ""  # two IDs that may mean the same image, if no ID is equal and none could be joined


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
    here, there = ({image: normalise_image_id(by[image]) for image in by} for by in (names or {}, known_names or {}))
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
