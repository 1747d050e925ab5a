"""What a file is likely to hold, by its content and its name, so that several files can be given at once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path

from capbias_core.load.boxes import is_boxes
from capbias_core.load.coco import CAPTIONS
from capbias_core.load.files import encoding_of, read_head
from capbias_core.load.objects import USUAL_COLUMNS
from capbias_core.load.rows import USUAL_REFERENCES, column_beside, guess_columns
from capbias_core.load.sniff import reader_of

GENERATED, HUMAN, LABELS, OBJECTS = "captions", "references", "attributes", "objects"
TITLES = {GENERATED: "captions of a model", HUMAN: "human captions", LABELS: "a table of labels", OBJECTS: "objects"}
INSTANCES = "COCO instances (JSON)"
HUMAN_NAME = re.compile(r"(^|[^a-z])(refs?|references?|humans?|people|gts?|ground.?truth)([^a-z]|$)", re.IGNORECASE)
SEVERAL = 1.5  # captions per image, from which they are people's
BY_NAME, BY_COUNT = "by its name", "since its images have several captions"


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
    if reader.name == CAPTIONS:  # columns would take a whole reading, which of instances is long
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
    return OBJECTS if is_boxes(columns) or (others and others <= set(USUAL_COLUMNS)) else LABELS


def kind_of_captions(kind: str, images: Sequence[str]) -> str:
    """A likely kind now that the image ids are known, one a caption: where most images have several, people's."""
    return HUMAN if kind == GENERATED and len(images) >= SEVERAL * len(set(images)) else kind
