"""What a collection may hold: one row for each kind of item."""

from __future__ import annotations

from dataclasses import dataclass

CAPTIONS, REFERENCES, LABELS, OBJECTS = "captions", "references", "attributes", "objects"
SEGMENTS, BOXES, VECTORS, PHOTOGRAPHS = "segments", "boxes", "vectors", "images"


@dataclass(frozen=True)
class Kind:
    """What an item of a collection holds."""

    title: str  # for people, in lower case
    argument: str  # how users name it, as in `import --kind`
    joins: tuple[str, ...] = ()  # kinds whose images it should share


# In the order in which files are stored: labels first, so that a collection is complete as soon as it has captions.
KINDS = {
    LABELS: Kind("labels", "labels", (CAPTIONS, REFERENCES)),
    REFERENCES: Kind("human captions", "references", (CAPTIONS, LABELS)),
    OBJECTS: Kind("objects in images", "objects", (CAPTIONS, LABELS)),
    SEGMENTS: Kind("outlines of objects", "segments"),
    BOXES: Kind("boxes", "boxes"),
    CAPTIONS: Kind("captions of a model", "captions", (REFERENCES, LABELS)),
    VECTORS: Kind("word vectors", "vectors"),
    PHOTOGRAPHS: Kind("photographs", "images"),
}
ORDER = list(KINDS)
# Arguments of `capbias.score` -> kind.
SOURCES = {kind.argument: name for name, kind in KINDS.items() if kind.joins}


def kind_title(kind: str, unknown: str = "") -> str:
    """What an item of a kind holds, for people. unknown: for a file that holds none of them."""
    return KINDS[kind].title if kind in KINDS else unknown


def kind_name(kind: str) -> str:
    """A kind as users name it."""
    return KINDS[kind].argument if kind in KINDS else kind
