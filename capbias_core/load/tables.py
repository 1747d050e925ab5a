"""From the content of a file to a typed table; every row that is left out is counted."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.load.account import (
    EACH,
    OTHER,
    REPEATED,
    SAMPLES,
    SCORED,
    SHORT,
    TEXT,
    TEXTS,
    TOKENS,
    Ambiguous,
    Choices,
    Roles,
    Rows,
    account_of,
    best_first,
    content,
    roles_of,
    rows_of,
    separator_of,
    texts_of,
    which_samples,
)
from capbias_core.load.clean import clean_captions
from capbias_core.load.ids import UNSTORABLE, described, normalise_image_id, short
from capbias_core.load.labels import label_text
from capbias_core.load.parsed import (
    CAPTIONS,
    IMAGE_IDS,
    KEPT_PROBLEMS,
    MOST_CHARACTERS,
    REFERENCES,
    Parsed,
    RowErrors,
    chosen_column,
    listed,
    usual_column,
)
from capbias_core.load.segments import extent, outline_fault, read_outline
from capbias_core.types import BOX_COLUMNS, CAPTION_COLUMNS, SEGMENT_COLUMNS, Table, counted

BETWEEN = "|"  # between the names of objects
# How sure a detector is of an object, behind its name: `cat:0.93`.
SURE = r":(?:0(?:\.\d*)?|1(?:\.0*)?|\.\d+)$"
OBJECT_COLUMNS = "objects object categories category"
# Roles of the columns of a table of boxes -> their usual names.
SIDES = ("x1", "y1", "x2", "y2")
BOX_NAMES = {
    "class": "class object label name class_name category category_name labelname",
    "confidence": "confidence score conf",
    "bbox": "bbox box",
    "x1": "x1 xmin",
    "y1": "y1 ymin",
    "x2": "x2 xmax",
    "y2": "y2 ymax",
}
# Codes of Open Images for people.
PEOPLE = {"/m/01g317": "person", "/m/03bt1vf": "woman", "/m/04yx4": "man", "/m/05r655": "girl", "/m/01bl7v": "boy"}
SHOWN_PROMPTS = 8


def _columns_of(parsed: Parsed, columns: Mapping[str, str], needed: Mapping[str, str], hint: str) -> list[str]:
    """The column of image IDs, then one per needed role (role -> usual names): the given one, else the usual one."""
    names = tuple(parsed.columns)
    roles = {"image_id": IMAGE_IDS, **needed}
    chosen = [
        chosen_column(parsed.file, names, columns[role]) if columns.get(role) else usual_column(names, usual)
        for role, usual in roles.items()
    ]
    known = [name for name in chosen if name]
    if len(set(known)) < len(roles):
        raise CapbiasError(f"{parsed.file} has the columns {listed(names)}; needed are {', '.join(roles)}.", hint)
    return known


def _read_rows(parsed: Parsed, rows: Iterable[tuple], read: Callable[..., Any]) -> tuple[list, RowErrors]:
    """What `read` makes of each row; a row for which it raises ValueError is a fault, and None is left out."""
    faults, values = parsed.faults.copy(), []
    for number, row in zip(parsed.numbers, rows, strict=True):
        try:
            if (value := read(*row)) is not None:
                values.append(value)
        except ValueError as error:
            faults.add(number, str(error))
    return values, faults


def _table(
    parsed: Parsed, rows: Sequence, columns: Sequence[str], faults: RowErrors, left_out: str = "", **more: Any
) -> Table:
    """Rows as a table. left_out: why there may be none. more: further fields. Raises CapbiasError without rows."""
    if not rows:
        raise parsed.unusable(faults, left_out)
    frame = pd.DataFrame(rows, columns=list(columns))
    notes = (*parsed.notes, *more.pop("notes", ()))
    return Table(frame, parsed.rows, problems=tuple(faults.first), problem_count=faults.count, notes=notes, **more)


# captions


def captions(parsed: Parsed, given: Mapping[str, Any] = {}, human: bool = False) -> Table:
    """The captions of a file of one kind: image_id, caption_index, caption. given: as for `Choices.of`. human: those of
    people. Raises Ambiguous if it is open which they are, and CapbiasError if none is usable."""
    chosen = Choices.of(given, parsed)
    roles = roles_of(parsed, chosen, REFERENCES if human else CAPTIONS)
    return captions_table(parsed, roles, rows_of(parsed, roles, chosen, True), chosen, human)


def captions_table(parsed: Parsed, roles: Roles, rows: Rows, chosen: Choices, human: bool) -> Table:
    """The captions in the columns of a role. Table.sets names the captioner of each, if there are several: the column,
    the value of the column of captioners, or both."""
    names = roles.references if human else roles.captions
    several = len(names) > 1 and not human and chosen.sets != SAMPLES
    columns, done = [], {}
    for name in names:
        values = parsed.columns[name]
        holds = content(values)
        if holds == SCORED and not best_first(values):
            raise CapbiasError(
                f"In {short(name)} of {parsed.file} the first candidate has the lowest number, which may be a loss.",
                "Write the candidate to read alone.",
                "caption_column",
            )
        separator = separator_of(values) if holds in (TEXT, REPEATED, OTHER) else ""
        if separator and not human:
            if separator != "\n" and not chosen.sets:
                raise Ambiguous(which_samples(parsed, name, separator))
            separator = separator if chosen.sets in (SAMPLES, EACH) else ""
        columns.append((name, values, holds, separator))
        done[name] = {TOKENS: "words joined", SCORED: "of several candidates the one with the best score"}.get(
            holds, ""
        )
        if separator:
            done[name] = f"split at {'line breaks' if separator == chr(10) else separator}"
    ids = parsed.columns[roles.image_id]
    captioners = parsed.columns[rows.captioner] if rows.captioner and not human else None
    faults = parsed.faults.copy()
    images, texts, indices, sets = [], [], [], []
    known: dict[str, str] = {}  # IDs that are texts: 1 and True would be one key
    for index in range(len(ids)) if rows.keep is None else rows.keep:
        number, raw_id = parsed.numbers[index], ids[index]
        image = known.get(raw_id) if type(raw_id) is str else None
        if image is None:
            try:
                image = normalise_image_id(raw_id)
            except ValueError as error:
                faults.add(number, str(error))
                continue
            if type(raw_id) is str:
                known[raw_id] = image
        for name, values, holds, separator in columns:
            cell = values[index]
            value = cell if holds == TEXT and not separator else texts_of(cell, holds, separator)
            whole = isinstance(value, list) and (holds in (TEXTS, SHORT) or separator)
            for caption in (value or [""]) if whole else (value,):
                if fault := caption_fault(caption):
                    faults.add(number, fault)
                    continue
                images.append(image)
                texts.append(caption)
                indices.append(index)
                if several or captioners:
                    parts = [str(captioners[index])] if captioners else []
                    sets.append(" ".join([*parts, *([name] if several else [])]))
    cleaned = clean_captions(texts)
    kept = [index for index, text in enumerate(cleaned.texts) if text is not None]
    empty = len(texts) - len(kept)
    if empty:
        images, indices = [images[index] for index in kept], [indices[index] for index in kept]
        sets = [sets[index] for index in kept] if sets else sets
    texts = [text for text in cleaned.texts if text is not None]
    if not texts:
        raise parsed.unusable(faults, ", ".join(f"{rule}: {number:,}" for rule, number in cleaned.counts.items()))
    frame = pd.DataFrame({"image_id": images, "caption": texts}, dtype="str")
    by_image = frame["image_id"] if not sets else [pd.Series(sets, dtype="str"), frame["image_id"]]
    frame["caption_index"] = frame.groupby(by_image, sort=False).cumcount()
    sizes = frame.groupby(by_image, sort=False).size().rename("size").reset_index()
    sizes = sizes.drop_duplicates(["size", "image_id"])["size"].value_counts().to_dict()  # images, of any captioner
    equal = int(frame.assign(set=sets or "").duplicated(["set", "image_id", "caption"]).sum())
    prompts, notes = (), parsed.notes
    if roles.prompt and not human:
        raw = parsed.columns[roles.prompt]
        asked = [raw[index] for index in indices]
        prompts = tuple(text.strip() if isinstance(text, str) and not caption_fault(text) else "" for text in asked)
        counts = Counter(prompts)
        prompts = prompts if len(counts) > 1 else ()
        if prompts:
            shown = [f"{short(text) or '(none)'} ({number:,})" for text, number in counts.items()][:SHOWN_PROMPTS]
            more = "; …" if len(counts) > SHOWN_PROMPTS else ""
            notes += (f"{counted(len(counts), 'prompt')}: {'; '.join(shown)}{more}",)
    if rows.keep is not None:
        wanted = " and ".join(f"{short(name)} is {short(value)}" for name, value in chosen.rows.items())
        notes += (f"{len(rows.keep):,} of {counted(len(ids), 'row')} read, those where {wanted}",)
    return Table(
        frame[list(CAPTION_COLUMNS)],
        parsed.rows,
        empty=empty,
        problems=tuple(faults.first),
        problem_count=faults.count,
        notes=notes,
        prompts=prompts,
        sets=tuple(sets),
        account=tuple(
            account_of(parsed, roles, rows, sizes, equal, done, second=human and bool(roles.captions)).lines()
        ),
        cleaned=cleaned.counts,
        warnings=cleaned.warnings,
    )


def caption_fault(caption: object) -> str:
    """Why a raw caption cannot be used, or ''."""
    if isinstance(caption, str) and caption.isascii() and "\0" not in caption and len(caption) <= MOST_CHARACTERS:
        return ""  # nearly all, quickly
    if caption is None or caption != caption:
        return "there is no caption (null)"
    if not isinstance(caption, str):
        return f"the caption is {described(caption)}, not text"
    if len(caption) > MOST_CHARACTERS:
        return f"the caption has {len(caption):,} characters; at most {MOST_CHARACTERS:,} are read"
    return "the caption holds a NUL character or half a surrogate pair" if UNSTORABLE.search(caption) else ""


def with_images(table: Table, human: pd.DataFrame, known: pd.DataFrame, file: str) -> Table:
    """Captions by row as captions by image: a row is the image with the same human captions.

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
        faults.add(int(index) + 1, f"no loaded image has the human captions of {table.frame['image_id'].iloc[index]}")
    if lost.all():
        raise CapbiasError(
            f"The rows of {file} have no image IDs, and no loaded image has its human captions.",
            "Load it without other human captions, or into another collection: it holds human captions itself.",
        )
    frame = table.frame.assign(image_id=images)[~lost].reset_index(drop=True)
    frame["caption_index"] = frame.groupby("image_id", sort=False).cumcount()
    note = (
        f"{counted(len(frame), 'caption')} got the image ID of the loaded human captions; not found: {faults.count:,}"
    )
    return replace(
        table,
        frame=frame,
        problems=(*table.problems, *faults.first)[:KEPT_PROBLEMS],
        problem_count=table.problem_count + faults.count,
        notes=(*table.notes, note),
        prompts=tuple(prompt for prompt, out in zip(table.prompts, lost, strict=False) if not out),
        sets=tuple(name for name, out in zip(table.sets, lost, strict=False) if not out),
    )


# objects


def objects(parsed: Parsed, columns: Mapping[str, str] = {}) -> Table:
    """The objects of images (image_id, objects): of COCO instances, of boxes, or of a column such as `cat|dog`.

    An image has an object once; images that COCO lists without an object are kept. columns: a name for "image_id".
    Raises CapbiasError for a file without objects.
    """
    of_coco = parsed.format == "coco_instances"
    if is_boxes(parsed) and not of_coco:
        table = boxes(parsed, relative=True)
        return replace(table, frame=object_texts(table.frame, list(dict.fromkeys(table.frame["image_id"]))))
    names = ("image_id", "category_id", "category", "iscrowd")
    if not of_coco:
        names = _columns_of(parsed, columns, {"objects": OBJECT_COLUMNS}, "Objects are written as cat|dog.")

    def read(image: object, raw: object, name: str | None = None, crowd: object = None) -> tuple[str, set[str], bool]:
        shown = {_category(raw, name)} if of_coco else set(map(kept_name, label_text(raw).split(BETWEEN)))
        return normalise_image_id(image), shown - {""}, of_coco and bool(crowd)

    images: dict[str, set[str]] = {image: set() for image in parsed.sizes} if of_coco else {}
    rows, faults = _read_rows(parsed, parsed.values(*names), read)
    for image, shown, _ in rows:
        images.setdefault(image, set()).update(shown)
    if images and not any(images.values()):
        raise CapbiasError(
            f"{parsed.file} names no object on any of its {len(images):,} images.",
            "Check the file, and its column of objects.",
        )
    texts = [(image, BETWEEN.join(sorted(shown))) for image, shown in images.items()]
    return _table(parsed, texts, ("image_id", "objects"), faults, crowds=sum(crowd for *_, crowd in rows))


def _category(category: object, name: str | None) -> str:
    """The name of an annotation's category. Raises ValueError for one that the file does not list."""
    if name:
        return kept_name(name)
    shown = category if isinstance(category, int | str) else described(category)
    raise ValueError(f"the category {short(str(shown))} is not among the categories of the file")


def kept_name(name: str) -> str:
    """The stored name of an object: lower case, single spaces, without BETWEEN."""
    return " ".join(name.replace(BETWEEN, " ").lower().split())


# boxes


def is_boxes(parsed: Parsed) -> bool:
    """Whether a file has the columns of boxes."""
    has = {role: usual_column(parsed.columns, names) is not None for role, names in BOX_NAMES.items()}
    return has["class"] and (has["bbox"] or all(has[side] for side in SIDES))


def boxes(parsed: Parsed, sizes: Mapping[str, tuple[int, int]] = {}, relative: bool = False) -> Table:
    """The boxes of a file, in BOX_COLUMNS; a box that reaches over the edge of its image is cut there.

    sizes: (height, width) of images, for boxes given as shares of the image. relative: leave shares as they are. The
    image ID is the file's name, without its folders. Raises CapbiasError for a file without a usable box.
    """
    needed = {} if is_boxes(parsed) else {role: BOX_NAMES[role] for role in ("class", "confidence", *SIDES)}
    image_column, *_ = _columns_of(parsed, {}, needed, "`capbias images detect` writes such a table.")
    columns = {role: usual_column(parsed.columns, names) for role, names in BOX_NAMES.items()}
    classes = [name for name in parsed.columns if usual_column((name,), BOX_NAMES["class"])]
    # Some tables have the number of a class beside its name.
    named = (name for name in classes if not all(str(value).strip().isdigit() for value in parsed.columns[name]))
    columns["class"] = next(named, columns["class"])
    order = ("class", "confidence", "bbox") if columns["bbox"] else ("class", "confidence", *SIDES)
    rows = [
        (name, 1 if sure is None or sure == "" else sure, *(_corners(rest[0]) if columns["bbox"] else rest))
        for name, sure, *rest in parsed.values(*(columns[role] or "" for role in order))
    ]
    shares = False  # of the image, if no corner is far above 1, as rounding may bring one
    with suppress(TypeError, ValueError, OverflowError):
        shares = bool(rows) and max(float(value) for row in rows for value in row[2:]) <= 1.5
    cut = 0

    def read(image: object, name: object, *raw: object) -> tuple:
        nonlocal cut
        image = normalise_image_id(PurePath(image).name if isinstance(image, str) else image)
        height, width = (1, 1) if shares and relative else sizes.get(image) or parsed.sizes.get(image) or (0, 0)
        text = "" if name is None else str(name).strip()
        name = PEOPLE.get(text) or kept_name(text)
        if not name:
            raise ValueError("the class is empty")
        confidence, *corners = _floats(raw)
        if not 0 < confidence <= 1:
            raise ValueError(f"a confidence of {confidence:g}, not above 0 and at most 1")
        if shares and not height:
            raise ValueError("the box is given as shares of the image, whose size is not known")
        if shares:
            corners = [value * side for value, side in zip(corners, (width, height) * 2, strict=True)]
        inside = _on_image(corners, height, width)
        cut += inside != tuple(corners)
        return image, name, confidence, *inside

    images = zip(parsed.columns[image_column], rows, strict=True)
    kept, faults = _read_rows(parsed, ((image, *row) for image, row in images), read)
    notes = (f"boxes cut at the edge of their image: {cut:,}",) if cut else ()
    return _table(parsed, kept, BOX_COLUMNS, faults, notes=notes)


def _corners(box: object) -> tuple:
    """x1, y1, x2, y2 of COCO's [x, y, width, height], also as text; anything else with None."""
    if isinstance(box, str) and box.startswith("[") and len(box) < 200:
        with suppress(ValueError):
            box = json.loads(box)
    if isinstance(box, list) and len(box) == 4 and all(type(value) in (int, float) for value in box):
        return box[0], box[1], box[0] + box[2], box[1] + box[3]
    return box, None, None, None


def _floats(raw: Sequence) -> list[float]:
    try:
        return [float(value) for value in raw]
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{', '.join(short(str(value)) for value in raw)}: not numbers") from None


def _on_image(corners: Sequence[float], height: int, width: int) -> tuple[float, ...]:
    """The part of a box on its image. height, width: 0 if unknown. ValueError if there is none."""
    x1, y1, x2, y2 = (max(value, 0.0) for value in corners)
    x2, y2 = min(x2, width or x2), min(y2, height or y2)
    if not (x1 < x2 < math.inf and y1 < y2 < math.inf):
        raise ValueError(f"a box ({', '.join(f'{value:g}' for value in corners)}) that encloses nothing on its image")
    return x1, y1, x2, y2


def object_texts(boxes: pd.DataFrame, images: Sequence[str]) -> pd.DataFrame:
    """The objects of images with a detector's confidence in the surest box of each: image_id, objects.

    boxes: in BOX_COLUMNS. images: those that were looked at; '' without a box.

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


# regions and outlines


def segments(parsed: Parsed, wanted: Collection[str] | None = None) -> Table:
    """The outlines in a COCO instances file (SEGMENT_COLUMNS), of all images or of those wanted.

    Annotations without an outline, or with one that is broken or of another size than the image, are counted as
    problems. Raises CapbiasError for another file, or one without a usable outline.
    """
    if parsed.format != "coco_instances" or "segmentation" not in parsed.columns:
        raise CapbiasError(
            f"{parsed.file} ({parsed.title}) holds no outlines.",
            'Load COCO instances: JSON with "images", "annotations" (each with a segmentation) and "categories".',
        )
    others = 0

    def read(raw_id: object, category: object, name: str | None, crowd: object, box: object, given: object) -> Any:
        nonlocal others
        image = normalise_image_id(raw_id)
        if wanted is not None and image not in wanted:
            others += 1
            return None
        height, width = parsed.sizes.get(image, (0, 0))
        outline, text = read_outline(given, height, width)
        if fault := outline_fault(outline, height, width):
            raise ValueError(fault)
        if not height and isinstance(outline, dict):
            height, width = outline["size"]
        try:
            around = _on_image(_corners(box), height, width)
        except (TypeError, ValueError):  # no box is given, or one beside the image
            around = extent(outline)
        return image, _category(category, name), bool(crowd), height, width, *around, text

    names = ("image_id", "category_id", "category", "iscrowd", "bbox", "segmentation")
    rows, faults = _read_rows(parsed, parsed.values(*names), read)
    left_out = f"{others:,} are of images that the collection does not have" if others else ""
    return _table(parsed, rows, SEGMENT_COLUMNS, faults, left_out, others=others)
