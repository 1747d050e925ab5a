"""What a file is likely to hold, by its content and its name, so that several files can be given at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from capbias_core.load.boxes import is_boxes
from capbias_core.load.coco import CAPTIONS
from capbias_core.load.objects import USUAL_COLUMNS
from capbias_core.load.rows import guess_columns
from capbias_core.load.sniff import reader_of

GENERATED, HUMAN, LABELS, OBJECTS = "captions", "references", "attributes", "objects"
TITLES = {GENERATED: "captions of a model", HUMAN: "human captions", LABELS: "a table of labels", OBJECTS: "objects"}
HUMAN_NAME = re.compile(r"(^|[^a-z])(refs?|references?|humans?|people|gts?|ground.?truth)([^a-z]|$)", re.IGNORECASE)
SEVERAL = 1.5  # captions per image, from which they are people's


def likely_kind(path: Path) -> str:
    """`captions`, `references`, `attributes` or `objects`. Raises CapbiasError for a file in no format that is known.

    A file without a column of captions is a table of labels, unless it holds objects or boxes alone. Captions are a
    model's, unless they are in COCO's format of human captions or the name says so; how many an image has is known
    when they are read (`looks_human`).
    """
    path = Path(path)
    reader = reader_of(path)
    columns = reader.columns(path)
    names = {name.strip().lower() for name in columns}
    if reader.name == CAPTIONS:
        return OBJECTS if "category_id" in names else HUMAN
    guess = guess_columns(columns)
    if guess["caption"] is not None:
        return HUMAN if HUMAN_NAME.search(path.stem) else GENERATED
    others = names - {str(guess["image_id"]).strip().lower()}
    return OBJECTS if is_boxes(columns) or (others and others <= set(USUAL_COLUMNS)) else LABELS


def looks_human(images: Sequence[str]) -> bool:
    """Whether captions with these image ids, one a caption, are likely people's: most images have several."""
    return len(images) >= SEVERAL * len(set(images))
