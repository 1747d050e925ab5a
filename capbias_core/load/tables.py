"""From the content of a file to a typed table; every row that is left out is counted."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePath

import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.load.ids import UNSTORABLE, described, normalise_image_id, short
from capbias_core.load.labels import label_text
from capbias_core.load.parsed import Parsed
from capbias_core.load.rows import (
    MOST_CHARACTERS,
    USUAL_PROMPTS,
    USUAL_REFERENCES,
    RowErrors,
    chosen_column,
    column_beside,
    guess_columns,
    listed,
    merged,
    nothing_usable,
)
from capbias_core.types import BOX_COLUMNS, CAPTION_COLUMNS, Table, counted

BETWEEN = "|"  # between the names of objects
# How sure a detector is of an object, behind its name: `cat:0.93`.
SURE = r":(?:0(?:\.\d*)?|1(?:\.0*)?|\.\d+)$"
OBJECT_COLUMNS = ("objects", "object", "categories", "category")
SHOWN_PROMPTS = 8

# Roles of the columns of a table of boxes -> their usual names.
BOX_NAMES = {
    "class": ("class", "object", "label", "name", "class_name", "category", "labelname"),
    "x1": ("x1", "xmin"),
    "y1": ("y1", "ymin"),
    "x2": ("x2", "xmax"),
    "y2": ("y2", "ymax"),
    "confidence": ("confidence", "score", "conf"),
}
# Codes of Open Images for people.
MIDS = {"/m/01g317": "person", "/m/03bt1vf": "woman", "/m/04yx4": "man", "/m/05r655": "girl", "/m/01bl7v": "boy"}


# captions


def captions(parsed: Parsed, columns: Mapping[str, str] = {}, human: bool = False) -> Table:
    """The captions of a file: image_id, caption_index, caption.

    columns: names for "image_id" and "caption", if they are not the usual ones. human: take the human captions, also
    from a column beside those of a model, and keep repeats, since people may well write the same; exact repeats of a
    model are left out. Raises CapbiasError if no caption is usable.
    """
    image_column, caption_column = _caption_columns(parsed, columns, human)
    prompt_column = None if human else column_beside(parsed.columns, USUAL_PROMPTS)
    faults = RowErrors(parsed.file, parsed.faults.unit)
    images, texts, places, empty = _usable_captions(parsed, image_column, caption_column, faults)
    problems, count = merged(parsed.faults, faults)
    if not texts:
        note = f"{counted(empty, 'caption')} {'is' if empty == 1 else 'are'} empty" if empty else ""
        raise nothing_usable(parsed.file, parsed.rows, problems, note)
    frame = pd.DataFrame({"image_id": images, "caption": texts}, dtype="str")
    raw = parsed.columns[prompt_column] if prompt_column not in (None, image_column, caption_column) else ()
    asked = [raw[place] for place in places] if raw else []
    frame["prompt"] = [own.strip() if isinstance(own, str) and not caption_fault(own) else "" for own in asked] or ""
    usable = len(texts)
    del images, texts, places  # 100 MB for a million captions, which the rest needs
    if not human:
        frame = frame.drop_duplicates(ignore_index=True)
    frame["caption_index"] = frame.groupby("image_id", sort=False).cumcount()
    prompts = tuple(frame["prompt"]) if frame["prompt"].nunique() > 1 else ()
    return Table(
        frame[list(CAPTION_COLUMNS)],
        parsed.rows,
        empty=empty,
        duplicates=usable - len(frame),
        problems=problems,
        problem_count=count,
        notes=(*parsed.notes, *_prompts_note(prompts)),
        prompts=prompts,
    )


def _caption_columns(parsed: Parsed, columns: Mapping[str, str], human: bool) -> tuple[str, str]:
    """The columns of image IDs and captions: those given, else the usual ones."""
    names = tuple(parsed.columns)
    guess = guess_columns(names)
    if human:
        guess["caption"] = column_beside(names, USUAL_REFERENCES) or guess["caption"]
    for role, name in columns.items():
        if name:
            guess[role] = chosen_column(parsed.file, names, name)
    image, caption = guess["image_id"], guess["caption"]
    if caption is None and {"image_id", "category_id"} <= set(names):
        raise CapbiasError(
            f"{parsed.file} lists the objects on images (category_id), not captions.",
            "Load it as objects, or as outlines.",
        )
    if image is None or caption is None or image == caption:
        raise CapbiasError(
            f"{parsed.file} has the columns {listed(names)}, but captions need a column of image IDs and one of "
            "captions.",
            "Choose the columns by name: in the two boxes on the Data page, or with --image-id-column and "
            "--caption-column.",
        )
    return image, caption


def _usable_captions(
    parsed: Parsed, image_column: str, caption_column: str, faults: RowErrors
) -> tuple[list[str], list[str], list[int], int]:
    """Image ID, caption and row index of every usable caption (equal length), and how many captions are empty."""
    raw_captions = parsed.columns[caption_column]
    # Where most captions are lists, each list holds the captions of an image; one list among texts is a fault.
    lists = sum(isinstance(caption, list) for caption in raw_captions)
    lists = lists * 2 > sum(caption is not None for caption in raw_captions)
    images, texts, places, empty = [], [], [], 0
    rows = zip(parsed.numbers, parsed.columns[image_column], raw_captions, strict=True)
    for place, (number, raw_id, raw) in enumerate(rows):
        try:
            image = normalise_image_id(raw_id)
        except ValueError as error:
            faults.add(number, str(error))
            continue
        for caption in (raw or [""]) if lists and isinstance(raw, list) else (raw,):
            if fault := caption_fault(caption):
                faults.add(number, fault)
            elif not caption.strip():
                empty += 1
            else:
                images.append(image)
                texts.append(caption)
                places.append(place)
    return images, texts, places, empty


def caption_fault(caption: object) -> str:
    """What makes a raw caption unusable, or ''."""
    if isinstance(caption, str) and caption.isascii() and "\0" not in caption and len(caption) <= MOST_CHARACTERS:
        return ""  # nearly all, quickly
    if caption is None or caption != caption:
        return "there is no caption (null)"
    if not isinstance(caption, str):
        return f"the caption is {described(caption)}, not text"
    if len(caption) > MOST_CHARACTERS:
        return f"the caption has {len(caption):,} characters; at most {MOST_CHARACTERS:,} are read"
    if UNSTORABLE.search(caption):
        return "the caption holds a NUL character or half a surrogate pair"
    return ""


def _prompts_note(prompts: tuple[str, ...]) -> list[str]:
    """`2 prompts: Describe it. (2,000); Say it. (2,000)`, in order of appearance; nothing without prompts."""
    counts = Counter(prompts)
    shown = [f"{short(own) or '(none)'} ({number:,})" for own, number in counts.items()][:SHOWN_PROMPTS]
    more = "; …" if len(counts) > SHOWN_PROMPTS else ""
    return [f"{counted(len(counts), 'prompt')}: {'; '.join(shown)}{more}"] if prompts else []


# objects


def objects(parsed: Parsed, columns: Mapping[str, str] = {}) -> Table:
    """The objects of images (image_id, objects): of COCO instances, of boxes, or of a column such as `cat|dog`.

    An image has an object once; images without an object are kept. columns: a name for "image_id". Raises CapbiasError
    for a file without objects.
    """
    names = tuple(parsed.columns)
    if is_boxes(parsed) and parsed.format != "coco_instances":
        table = boxes(parsed, parsed.sizes, relative=True)
        texts = object_texts(table.frame, list(dict.fromkeys(table.frame["image_id"])))
        return Table(texts, table.rows, problems=table.problems, problem_count=table.problem_count, notes=table.notes)
    faults = RowErrors(parsed.file, parsed.faults.unit)
    images: dict[str, set[str]] = {image: set() for image in parsed.sizes}
    crowds = 0
    if parsed.format == "coco_instances":
        rows = zip(*(parsed.columns[name] for name in ("image_id", "category_id", "category", "iscrowd")), strict=True)
        for number, (raw_id, category, name, crowd) in zip(parsed.numbers, rows, strict=True):
            try:
                image = normalise_image_id(raw_id)
                images.setdefault(image, set()).add(known_category(category, name))
            except ValueError as error:
                faults.add(number, str(error))
                continue
            crowds += bool(crowd)
    else:
        by_lower = {name.strip().lower(): name for name in names}
        image_column = columns.get("image_id") or guess_columns(names)["image_id"]
        column = next((by_lower[name] for name in OBJECT_COLUMNS if name in by_lower), None)
        if image_column is None or column is None or image_column == column:
            raise CapbiasError(
                f"{parsed.file} has the columns {listed(names)}, but objects need the columns image_id and objects.",
                "Rename the columns (objects holds text such as cat|dog), or load COCO's instances JSON.",
            )
        values = zip(
            parsed.columns[chosen_column(parsed.file, names, image_column)], parsed.columns[column], strict=True
        )
        for number, (raw_id, raw) in zip(parsed.numbers, values, strict=True):
            try:
                image, text = normalise_image_id(raw_id), label_text(raw)
            except ValueError as error:
                faults.add(number, str(error))
                continue
            images.setdefault(image, set()).update(filter(None, map(kept_name, text.split(BETWEEN))))
    problems, count = merged(parsed.faults, faults)
    if not images:
        raise nothing_usable(parsed.file, parsed.rows, problems)
    if not any(images.values()):
        raise CapbiasError(
            f"{parsed.file} names no object for any of its {counted(len(images), 'image')}.",
            "Check the file, and its column of objects.",
        )
    texts = [BETWEEN.join(sorted(names)) for names in images.values()]
    frame = pd.DataFrame({"image_id": list(images), "objects": texts}, dtype="str")
    return Table(frame, parsed.rows, crowds=crowds, problems=problems, problem_count=count, notes=parsed.notes)


def known_category(category: object, name: str | None) -> str:
    """The name of an annotation's category. ValueError for one that the file does not list."""
    if name:
        return name
    shown = category if isinstance(category, int | str) else described(category)
    raise ValueError(f"the category {short(str(shown))} is not among the categories of the file")


def kept_name(name: str) -> str:
    """A name of an object as it is kept: lower case, single spaces, without what stands between names."""
    return " ".join(name.replace(BETWEEN, " ").lower().split())


# boxes


def is_boxes(parsed: Parsed) -> bool:
    """Whether a file has the columns of boxes."""
    names = {name.strip().lower() for name in parsed.columns}
    roles = ("class", "x1", "y1", "x2", "y2")
    return "bbox" in names or all(not names.isdisjoint(BOX_NAMES[role]) for role in roles)


def boxes(parsed: Parsed, sizes: Mapping[str, tuple[int, int]] = {}, relative: bool = False) -> Table:
    """The boxes of a file, in BOX_COLUMNS; a box that reaches over the edge of its image is cut there.

    sizes: (height, width) of images, for boxes that are given as shares of the image. relative: keep such shares as
    they are. The image ID is read from the file's name, whatever folder stands before it. Raises CapbiasError for a
    file without a usable box.
    """
    image_column = guess_columns(parsed.columns)["image_id"]
    if image_column is None or not is_boxes(parsed):
        raise CapbiasError(
            f"{parsed.file} has the columns {listed(tuple(parsed.columns))}, but boxes need the columns image, class, "
            "confidence, x1, y1, x2, y2.",
            "Write it with: python -m capbias_core detect.",
        )
    faults, kept, cut = RowErrors(parsed.file, parsed.faults.unit), [], 0
    raw = _box_values(parsed)
    shares = _are_shares(raw)
    for number, image, (name, confidence, *corners) in zip(
        parsed.numbers, parsed.columns[image_column], raw, strict=True
    ):
        try:
            image = normalise_image_id(PurePath(image).name if isinstance(image, str) else image)
            name, numbers = _box_name(name), _box_numbers([confidence, *corners])
            height, width = sizes.get(image) or parsed.sizes.get(image) or (0, 0)
            if shares and not relative:
                numbers = _in_pixels(numbers, height, width)
            inside = _cut_at_edge(numbers, *((1, 1) if shares and relative else (height, width)))
        except ValueError as error:
            faults.add(number, str(error))
            continue
        cut += inside != numbers
        kept.append((image, name, *inside))
    problems, count = merged(parsed.faults, faults)
    if not kept:
        raise nothing_usable(parsed.file, parsed.rows, problems)
    notes = parsed.notes
    if cut:
        notes += (f"{counted(cut, 'box') if cut == 1 else f'{cut:,} boxes'} cut at the edge of the image",)
    frame = pd.DataFrame(kept, columns=list(BOX_COLUMNS))
    return Table(frame, parsed.rows, problems=problems, problem_count=count, notes=notes)


def _box_values(parsed: Parsed) -> list[tuple]:
    """(class, confidence, x1, y1, x2, y2) of each row, as written."""
    by_lower = {name.strip().lower(): parsed.columns[name] for name in parsed.columns}
    size = len(parsed.numbers)
    chosen = {role: [by_lower[name] for name in names if name in by_lower] for role, names in BOX_NAMES.items()}
    confidence = chosen["confidence"][0] if chosen["confidence"] else [None] * size
    confidence = [1 if value is None or value == "" else value for value in confidence]
    if "bbox" in by_lower:
        corners = [_corners(box) for box in by_lower["bbox"]]
        names = by_lower.get("category") or by_lower["category_id"]
        return [(name, sure, *box) for name, sure, box in zip(names, confidence, corners, strict=True)]
    # A number of a class stands beside its name in some tables.
    named = [own for own in chosen["class"] if not all(str(value).strip().isdigit() for value in own)]
    columns = [(named or chosen["class"])[0], confidence, *(chosen[side][0] for side in ("x1", "y1", "x2", "y2"))]
    return list(zip(*columns, strict=True))


def _corners(box: object) -> tuple:
    """COCO's [x, y, width, height] as x1, y1, x2, y2; as it is if it is none."""
    if isinstance(box, list) and len(box) == 4 and all(type(value) in (int, float) for value in box):
        return box[0], box[1], box[0] + box[2], box[1] + box[3]
    return box, None, None, None


def _are_shares(raw: Sequence[tuple]) -> bool:
    """Whether corners are shares of the image: none is above 1."""
    try:
        return bool(raw) and max(float(value) for row in raw for value in row[2:]) <= 1
    except (TypeError, ValueError, OverflowError):
        return False


def _box_name(value: object) -> str:
    text = str(value if value is not None else "").strip()
    name = MIDS.get(text) or kept_name(text)
    if not name:
        raise ValueError("the class is empty")
    return name


def _box_numbers(raw: Sequence) -> tuple[float, ...]:
    try:
        confidence, x1, y1, x2, y2 = (float(value) for value in raw)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{', '.join(short(str(value)) for value in raw)}: not five numbers") from None
    if not 0 < confidence <= 1:
        raise ValueError(f"a confidence of {confidence:g}, not above 0 and at most 1")
    return confidence, x1, y1, x2, y2


def _in_pixels(numbers: tuple[float, ...], height: int, width: int) -> tuple[float, ...]:
    if not height:
        raise ValueError("the box is given as shares of the image, whose size is not known")
    confidence, x1, y1, x2, y2 = numbers
    return confidence, x1 * width, y1 * height, x2 * width, y2 * height


def _cut_at_edge(numbers: tuple[float, ...], height: int, width: int) -> tuple[float, ...]:
    """The part of a box on its image. height, width: 0 where they are not known. ValueError if there is none."""
    confidence, *corners = numbers
    x1, y1, x2, y2 = (max(value, 0.0) for value in corners)
    x2, y2 = min(x2, width or x2), min(y2, height or y2)
    if not (x1 < x2 < math.inf and y1 < y2 < math.inf):
        shown = ", ".join(f"{value:g}" for value in corners)
        raise ValueError(f"a box ({shown}) that encloses nothing on its image")
    return confidence, x1, y1, x2, y2


def object_texts(boxes: pd.DataFrame, images: Sequence[str]) -> pd.DataFrame:
    """The objects of images with a detector's confidence in the surest box of each: image_id, objects.

    boxes: in BOX_COLUMNS. images: those that were looked at; one without a box has ''.

    >>> rows = [("1", "cat", 0.5, 0, 0, 1, 1), ("1", "cat", 0.75, 0, 0, 2, 2), ("1", "dog", 0.25, 0, 0, 1, 1)]
    >>> object_texts(pd.DataFrame(rows, columns=list(BOX_COLUMNS)), ["1", "2"])["objects"].tolist()
    ['cat:0.75|dog:0.25', '']
    """
    surest = boxes.groupby(["image_id", "object"], sort=True)["confidence"].max().reset_index()
    surest = surest.sort_values("confidence", ascending=False, kind="stable")
    texts: dict[str, list[str]] = {image: [] for image in images}
    for image, name, confidence in surest.itertuples(index=False):
        texts.setdefault(image, []).append(f"{kept_name(name)}:{confidence:.4g}")
    return pd.DataFrame({"image_id": list(texts), "objects": list(map(BETWEEN.join, texts.values()))}, dtype="str")
