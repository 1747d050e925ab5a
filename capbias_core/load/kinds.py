"""What a file most likely holds, by its content."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from capbias_core.load.parsed import BOXES, CAPTIONS, LABELS, OBJECTS, REFERENCES, SEGMENTS, Parsed
from capbias_core.load.rows import FEW_VALUES, USUAL_REFERENCES, column_beside, few_values, guess_columns
from capbias_core.load.tables import BOX_NAMES, OBJECT_COLUMNS, is_boxes

__all__ = ["BOXES", "CAPTIONS", "LABELS", "OBJECTS", "REFERENCES", "SEGMENTS", "Guess", "guess_kind"]

HUMAN_NAME = re.compile(r"(^|[^a-z])(refs?|references?|humans?|people|gts?|ground.?truth)([^a-z]|$)", re.IGNORECASE)
SEVERAL = 1.5  # captions per image, from which they may be people's
# Columns that hold nothing but captions.
SURE_CAPTIONS = {"caption", "captions", "caption_list", "prediction", "pred", "predicted_caption", "generated_caption"}
# Columns that number the captions of an image, as data sets of human captions do.
NUMBERS = {"comment_number", "caption_id", "caption_number"}
# What Open Images and COCO say of a box, besides its class and its corners.
OF_BOXES = {
    "source",
    "isoccluded",
    "istruncated",
    "isgroupof",
    "isdepiction",
    "isdepictionof",
    "isinside",
    "isinsideof",
}
OF_BOXES |= {"bbox", "category_id", "id", "area", "iscrowd", *" ".join(BOX_NAMES.values()).split()}


@dataclass(frozen=True)
class Guess:
    """kind: what a file most likely holds. certain: whether its format or an unmistakable column says so, never its
    name or the number of captions per image. hint: other signs, shown and never acted upon. references_beside: the
    column of human captions beside those of a model. suggests: the kind that a page preselects for the user to confirm,
    if both the name and the number of captions per image speak for it."""

    kind: str
    certain: bool
    hint: str = ""
    references_beside: str = ""
    suggests: str = ""


def guess_kind(parsed: Parsed, columns: Mapping[str, str] = {}) -> Guess:
    """What a file holds, by its format and columns.

    columns: role ("image_id", "caption") -> the column that the user names. Human captions are certain only in COCO's
    own format; a table of a model's captions is one whose columns say so.
    """
    names = tuple(parsed.columns)
    named = {role: name for role, name in columns.items() if name in names}
    guess = {**guess_columns(names), **named}
    if parsed.kind:
        certain = parsed.kind != REFERENCES or parsed.format == "coco_captions"
        return Guess(parsed.kind, certain, "" if certain else f"{parsed.title} holds human captions")
    others = {name.strip().lower() for name in names if name != guess["image_id"]}
    caption = guess["caption"]
    sure = caption is not None and ("caption" in named or caption.strip().lower() in SURE_CAPTIONS)
    if caption is not None and (sure or not few_values(parsed.columns[caption])):
        beside = column_beside(names, USUAL_REFERENCES) or ""
        if not beside and (parsed.format == "coco_captions" or others & NUMBERS):
            sign = "its captions are numbered" if others & NUMBERS else "it is laid out as COCO's human captions"
            return Guess(REFERENCES, False, sign)
        each = 0.0 if parsed.by_rows else _captions_per_image(parsed, guess["image_id"], caption)
        signs = ["its name says so"] if HUMAN_NAME.search(parsed.path.stem) else []
        signs += [f"its images have {each:.2g} captions each"] if each >= SEVERAL else []
        suggests = REFERENCES if len(signs) == 2 and not beside else ""
        return Guess(CAPTIONS, sure, " and ".join(signs), beside, suggests)
    if is_boxes(parsed) and others <= OF_BOXES:
        return Guess(BOXES, True)
    if others and others <= set(OBJECT_COLUMNS.split()):
        return Guess(OBJECTS, True)
    labels = any(_are_labels(values) for name, values in parsed.columns.items() if name != guess["image_id"])
    return Guess(LABELS, guess["image_id"] is not None and labels)


def _are_labels(values: Sequence) -> bool:
    return len({str(value) for value in values}) <= min(FEW_VALUES, max(1, len(values) - 1))


def _captions_per_image(parsed: Parsed, image: str | None, caption: str) -> float:
    images = {str(value) for value in parsed.columns[image]} if image else set()
    texts = sum(len(value) if isinstance(value, list) else 1 for value in parsed.columns[caption])
    return texts / len(images) if images else 0.0
