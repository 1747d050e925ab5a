"""What a collection may hold: one row for each kind of item."""

from __future__ import annotations

from dataclasses import dataclass

CAPTIONS, REFERENCES, LABELS, OBJECTS = "captions", "references", "labels", "objects"
SEGMENTS, BOXES, VECTORS, PHOTOGRAPHS = "segments", "boxes", "vectors", "photographs"


@dataclass(frozen=True)
class Kind:
    """What an item of a collection holds. Users name it by its key, as in `import --kind`."""

    title: str  # for people, in lower case
    joins: tuple[str, ...] = ()  # kinds whose images it should share


# In the order in which files are stored: labels first, so that a collection is complete as soon as it has captions.
KINDS = {
    LABELS: Kind("labels", (CAPTIONS, REFERENCES)),
    REFERENCES: Kind("human captions", (CAPTIONS, LABELS)),
    OBJECTS: Kind("objects in images", (CAPTIONS, LABELS)),
    SEGMENTS: Kind("outlines of objects"),
    BOXES: Kind("boxes"),
    CAPTIONS: Kind("captions of a model", (REFERENCES, LABELS)),
    VECTORS: Kind("word vectors"),
    PHOTOGRAPHS: Kind("photographs"),
}
ORDER = list(KINDS)
SOURCES = tuple(name for name, kind in KINDS.items() if kind.joins)  # arguments of `capbias.score`


def kind_title(kind: str, unknown: str = "") -> str:
    """What an item of a kind holds, for people. unknown: for a file that holds none of them."""
    return KINDS[kind].title if kind in KINDS else unknown
