"""What a file is likely to hold, by its content and its name, so that several files can be given at once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path

from capbias_core.load import boxes, coco
from capbias_core.load.files import encoding_of, read_head
from capbias_core.load.objects import USUAL_COLUMNS
from capbias_core.load.parsed import Parsed
from capbias_core.load.rows import USUAL_REFERENCES, column_beside, guess_columns
from capbias_core.load.sniff import reader_of
from capbias_core.load.tables import BOX_NAMES, OBJECT_COLUMNS, is_boxes

CAPTIONS, REFERENCES, LABELS, OBJECTS = "captions", "references", "attributes", "objects"
SEGMENTS, BOXES = "segments", "boxes"
GENERATED, HUMAN = CAPTIONS, REFERENCES
TITLES = {GENERATED: "captions of a model", HUMAN: "human captions", LABELS: "a table of labels", OBJECTS: "objects"}
INSTANCES = "COCO instances (JSON)"
HUMAN_NAME = re.compile(r"(^|[^a-z])(refs?|references?|humans?|people|gts?|ground.?truth)([^a-z]|$)", re.IGNORECASE)
SEVERAL = 1.5  # captions per image, from which they are people's
BY_NAME, BY_COUNT = "by its name", "since its images have several captions"


@dataclass(frozen=True)
class Guess:
    """kind: what a file most likely holds. certain: whether its format or an unmistakable column says so, never its
    name or the number of captions per image. hint: another sign, shown and never acted upon. references_beside: the
    column of human captions beside those of a model. suggests: the kind that a page preselects for the user to confirm,
    where both the name and the number of captions per image speak for it."""

    kind: str
    certain: bool
    hint: str = ""
    references_beside: str = ""
    suggests: str = ""


# Columns that hold nothing but captions.
SURE_CAPTIONS = {"caption", "captions", "caption_list", "prediction", "pred", "predicted_caption", "generated_caption"}
# What Open Images says of a box, besides its class and its corners.
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
SMALL = 20  # different values of a column of labels at most


def guess_kind(parsed: Parsed, columns: Mapping[str, str] = {}) -> Guess:
    """What a file holds, by its format and columns. columns: role ("image_id", "caption") -> the column that the user
    names."""
    names = tuple(parsed.columns)
    guess = {**guess_columns(names), **{role: name for role, name in columns.items() if name in names}}
    if parsed.kind:
        certain = parsed.kind != REFERENCES or parsed.format == "coco_captions"
        return Guess(parsed.kind, certain, "" if certain else f"{parsed.title} holds human captions")
    caption = guess["caption"]
    if caption is not None:
        beside = column_beside(names, USUAL_REFERENCES) or ""
        certain = caption.strip().lower() in SURE_CAPTIONS or columns.get("caption") == caption
        numbered = {"comment_number", "caption_id"} & {name.strip().lower() for name in names}
        if not beside and (numbered or parsed.format == "coco_captions"):
            return Guess(REFERENCES, False, "its captions are numbered" if numbered else "it has COCO's form")
        by_name = HUMAN_NAME.search(parsed.path.stem) is not None
        each = 0.0 if parsed.by_rows else _captions_per_image(parsed, guess["image_id"], caption)
        signs = ["its name says so"] * by_name + [f"its images have {each:.2g} captions each"] * (each >= SEVERAL)
        suggests = REFERENCES if len(signs) == 2 and not beside else ""
        return Guess(CAPTIONS, certain, " and ".join(signs), beside, suggests)
    others = {name.strip().lower() for name in names if name != guess["image_id"]}
    if is_boxes(parsed):
        corners = {name for own in BOX_NAMES.values() for name in own} | {"bbox", "category_id", "id", "area"}
        if parsed.format == "coco_instances" or others <= corners | OF_BOXES:
            return Guess(OBJECTS if parsed.format == "coco_instances" else BOXES, True)
    if others and others <= set(OBJECT_COLUMNS):
        return Guess(OBJECTS, True)
    labels = any(_few_values(values) for name, values in parsed.columns.items() if name != guess["image_id"])
    return Guess(LABELS, guess["image_id"] is not None and labels)


def _few_values(values: Sequence) -> bool:
    return len({str(value) for value in values}) <= min(SMALL, max(1, len(values) - 1))


def _captions_per_image(parsed: Parsed, image: str | None, caption: str) -> float:
    images = {str(value) for value in parsed.columns[image]} if image else set()
    texts = sum(len(value) if isinstance(value, list) else 1 for value in parsed.columns[caption])
    return texts / max(1, len(images)) if images else 0.0


@dataclass(frozen=True)
class Likely:
    """kind: `captions`, `references`, `attributes` or `objects`. title: the format, as shown. references: whether
    captions of a model have human captions of the same images beside them. by_rows: whether its images have no ids.
    human_by: what alone says that people wrote its captions, where its format does not: BY_NAME or BY_COUNT."""

    kind: str
    title: str
    references: bool = False
    by_rows: bool = False
    human_by: str = ""


def likely(path: Path, named: Mapping[str, str | None] | None = None) -> Likely:
    """What a file is by its content and name. Raises CapbiasError for one in no format that is known.

    named: role ("image_id", "caption") -> the column that the user says holds it, of files that have it.

    A file without a column of captions is a table of labels, unless it holds objects or boxes alone. Captions are a
    model's, unless they are in COCO's format of human captions or the name says so; how many an image has is known
    when they are read (`kind_of_captions`).
    """
    path = Path(path)
    reader = reader_of(path)
    if reader.name == coco.CAPTIONS:  # columns would take a whole reading, which of instances is long
        return Likely(OBJECTS, INSTANCES) if _has_categories(path) else Likely(HUMAN, reader.title)
    if reader.holds:
        return Likely(reader.holds, reader.title)
    columns = reader.columns(path)
    kind = _kind_of_table(path, columns, {role: name for role, name in (named or {}).items() if name in columns})
    beside = kind == GENERATED and column_beside(columns, USUAL_REFERENCES) is not None
    return Likely(kind, reader.title, beside, reader.by_rows, BY_NAME if kind == HUMAN else "")


def _has_categories(path: Path) -> bool:
    """Whether an annotation of a COCO file names a category, which captions have not."""
    key = '"category_id"'.encode(encoding_of(read_head(path))[1])
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        return content.find(key) >= 0


def _kind_of_table(path: Path, columns: tuple[str, ...], named: Mapping[str, str | None]) -> str:
    names = {name.strip().lower() for name in columns}
    guess = {**guess_columns(columns), **named}
    if guess["caption"] is not None:
        return HUMAN if HUMAN_NAME.search(path.stem) else GENERATED
    others = names - {str(guess["image_id"]).strip().lower()}
    return OBJECTS if boxes.is_boxes(columns) or (others and others <= set(USUAL_COLUMNS)) else LABELS


def kind_of_captions(kind: str, images: Sequence[str]) -> str:
    """A likely kind now that the image ids are known, one a caption: where most images have several, people's."""
    return HUMAN if kind == GENERATED and len(images) >= SEVERAL * len(set(images)) else kind
