"""Image IDs as text, however a file writes them; and which IDs of two files name the same image."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from numbers import Integral, Real
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np

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
MOST = 10**100
# Characters that text may hold in JSON and that no Parquet file or database keeps.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


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


def stem(image: str) -> str:
    r"""The last part of an image id that is a path or an address, as an image id in lower case without the ending of a
    file, and of a name such as `mscoco_val_7` the number.

    >>> [stem(each) for each in (r"C:\val\1000.jpg", "s3://b/Dog%201.png", "http://a.org/0012.jpg?x=1", "dog_1000")]
    ['1000', 'dog 1', '12', 'dog_1000']
    """
    try:
        path = urlsplit(image).path if "://" in image else QUERY.sub(r"\1", image)
    except ValueError:  # not an address after all
        path = image
    last = unquote(path).replace("\\", "/").rstrip("/").rpartition("/")[2]
    last = _from_text(last).casefold() if last.strip() and not UNSTORABLE.search(last) else image.casefold()
    name = FILE_ENDING.sub("", last) or last
    match = COCO_NAME.fullmatch(name)
    return match[1] if match else _from_text(name)


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
