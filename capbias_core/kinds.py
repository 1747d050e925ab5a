"""What a collection may hold: one row for each kind of item, and the names that items and collections may have."""

from __future__ import annotations

from dataclasses import dataclass

from capbias_core.errors import CapbiasError, short

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
LONGEST_NAME = 80
FORBIDDEN = frozenset("<>&\"'`|\\/*[]$")  # in names
SOURCES = tuple(name for name, kind in KINDS.items() if kind.joins)  # arguments of `capbias.score`


def kind_title(kind: str, unknown: str = "") -> str:
    """What an item of a kind holds, for people. unknown: for a file that holds none of them."""
    return KINDS[kind].title if kind in KINDS else unknown


def suggested_name(text: str) -> str:
    """A name that `checked_name` accepts, from the name of a file.

    >>> suggested_name("my [best] model's $captions")
    'my best model s captions'
    """
    letters = (letter if letter.isprintable() and letter not in FORBIDDEN else " " for letter in text)
    return " ".join("".join(letters).split())[:60].strip() or "file"


def checked_name(name: str) -> str:
    """A name for an item or collection: printable, at most 80 characters, none of <>&\"'`|\\/ or line breaks."""
    cleaned = " ".join(name.split())
    if not cleaned or len(cleaned) > LONGEST_NAME or not cleaned.isprintable() or FORBIDDEN & set(cleaned):
        raise CapbiasError(
            f"A name must be 1 to {LONGEST_NAME} letters, digits, spaces or . _ - + ( ) , : =, not "
            f"{short(name, 100)!r}."
        )
    return cleaned
