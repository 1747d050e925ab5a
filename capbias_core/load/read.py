"""Files to tables: what pages, the command line and Python read with. Nothing in a file is ever run or guessed.

`read` opens files (containers.py, formats.py), says what their columns are (columns.py), joins their images (join.py),
and makes captions and labels of them (captions.py, labels.py). What is open is asked once, with an answer that was
tried (questions.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from pathlib import Path

import pandas as pd

from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.kinds import BOXES, CAPTIONS, LABELS, OBJECTS, PHOTOGRAPHS, REFERENCES, SEGMENTS
from capbias_core.load.captions import caption_parts
from capbias_core.load.columns import (
    HUMAN_FILE,
    Wanted,
    caption_columns,
    check_label_options,
    label_columns,
    piece_of,
    selected,
)
from capbias_core.load.formats import check_one_table, sheet_of_table, sheets_of
from capbias_core.load.join import Join, id_alone, joined, use_joined, use_own
from capbias_core.load.labels import label_part, mapping_overrides
from capbias_core.load.parts import Part, Piece, sizes
from capbias_core.load.places import checked_path
from capbias_core.load.questions import Ask, File, Given, Option, read_or_ask
from capbias_core.load.sheet import Sheet, listed
from capbias_core.load.tables import boxes, objects, segments

MANY_OUTLINES = 20_000  # of more, only those of images in the collection are kept


@dataclass(frozen=True)
class Held:
    """What new files are compared with: the images of a collection by kind, and its human captions."""

    images: Mapping[str, frozenset[str]] = field(default_factory=dict)
    references: pd.DataFrame | None = None

    def images_of(self, *kinds: str) -> frozenset[str]:
        """The images of the first of some kinds that the collection has."""
        return next((self.images[kind] for kind in kinds if self.images.get(kind)), frozenset())


@dataclass(frozen=True)
class Read:
    """What files hold."""

    parts: tuple[Part, ...]

    def of(self, kind: str) -> list[Part]:
        """The parts of a kind."""
        return [part for part in self.parts if part.kind == kind]


def read(
    files: Sequence[File],
    given: Given | None = None,
    wanted: Sequence[Wanted] = (),
    held: Held | None = None,
    values: Sequence[str] = (),
    needed: bool = False,
) -> Read:
    """What files hold, joined. wanted: attributes whose labels are looked for. values: the labels to compare, of an
    attribute that is only a column. needed: whether captions must be among the files.
    Raises Ask with one answer that was tried, or CapbiasError.
    """
    names = {one.name for one in wanted}
    for unknown in mapping_overrides(given.map if given else ()).keys() - names:
        raise unknown_name("attribute of labels", unknown, names)
    reads = partial(_read, sheets=[_sheets(file) for file in files], wanted=wanted, held=held or Held())
    return read_or_ask(files, given or Given(), partial(reads, values=values, needed=needed), describe)


def describe(result: Read) -> str:
    """What was read, in a line, so that an answer can be judged before it is given."""
    labels, texts = result.of(LABELS), []
    for part in result.of(CAPTIONS)[:3]:
        joins = f"{len(part.images & labels[0].images):,} of " if labels else ""
        texts.append(f"{part.name}: {joins}{len(part.images):,} images{' have labels' if labels else ''}")
    for details in labels[0].mapping[:1] if labels else ():
        counts = labels[0].frame[details["column"]].map(details["mapping"]).value_counts()
        texts.append(", ".join(f"{value} {counts.get(value, 0):,}" for value in details["attribute"]["values"]))
    texts += [f"human captions of {len(part.images):,} images" for part in result.of(REFERENCES)[:1]]
    return "; ".join(texts)


def _sheets(file: File) -> list[Sheet]:
    """The tables of a source."""
    if isinstance(file.source, Path):
        sheets = sheets_of(checked_path(file.source), file.path)
    else:
        check_one_table(file.source)
        try:
            sheets = [sheet_of_table(file.source, file.title, file.path)]
        except RecursionError:
            raise CapbiasError(f"{file.title} is lists in lists without end.", "Give a table.") from None
    if empty := next((sheet for sheet in sheets if sheet.frame.empty), None):
        raise empty.unusable(empty.faults)
    return sheets


def _read(
    files: Sequence[File],
    given: Given,
    sheets: Sequence[Sequence[Sheet]],
    wanted: Sequence[Wanted],
    held: Held,
    values: Sequence[str],
    needed: bool,
) -> Read:
    """What files hold with what was said of them. sheets: of each file. Raises the first question that is open."""
    found = [
        (file, selected(replace(sheet, notes=list(sheet.notes)), given, wanted))
        for file, own in zip(files, sheets, strict=True)
        for sheet in own
    ]
    sure = [_surely(*each, wanted) for each in found]
    pieces = [
        piece_of(file, sheet, wanted, given, set().union(*sure[:place], *sure[place + 1 :]))
        for place, (file, sheet) in enumerate(found)
    ]
    _check_holds(pieces, wanted, needed)
    _check_names(pieces)
    _join(pieces, given, held)
    for piece in pieces:
        if piece.by_rows and (piece.captions or piece.references):
            _join_by_text(piece, pieces, held)
    texts = []
    for piece in pieces:
        beside = any(each is not piece and each.captions for each in pieces)
        for kind, columns in ((CAPTIONS, piece.captions), (REFERENCES, piece.references)):
            if columns and piece.ids is not None and not (kind == REFERENCES and piece.by_rows):
                texts += caption_parts(piece, kind, given, beside)
    texts = _with_one_reference(texts)
    labels = [label_part(each, wanted, given, texts, values, needed) for each in _labelled(pieces, wanted, needed)]
    parts = [*texts, *(part for piece in pieces if piece.objects for part in _objects(piece, given, held))]
    _check_idle(pieces, given)
    return Read((*(_with_missing(part, labels) for part in parts), *labels))


def _surely(file: File, sheet: Sheet, wanted: Sequence[Wanted]) -> set[str]:
    """The kinds that a file surely holds, before its columns are known."""
    if file.kinds:
        return set(file.kinds) & {CAPTIONS, LABELS, REFERENCES}
    fixed = {kind for kind, role in ((CAPTIONS, "caption"), (LABELS, "label")) if sheet.roles.get(role)}
    named = any(label_columns(sheet, one) for one in wanted)
    return fixed | {LABELS} if named and not (CAPTIONS in fixed or caption_columns(sheet)[0]) else fixed


def _check_holds(pieces: Sequence[Piece], wanted: Sequence[Wanted], needed: bool) -> None:
    """Raises Ask or CapbiasError if files lack captions of a model that are needed, or labels that somebody named."""
    people = [piece for piece in pieces if piece.references]
    sheets = [piece.sheet for piece in pieces]
    held = "; ".join(f"{sheet.title} ({sheet.format}): {listed(sheet.columns, 6)}" for sheet in sheets)
    if needed and not any(piece.captions for piece in pieces):
        if paths := [piece.file.path for piece in people if not piece.file.kinds]:
            raise Ask(
                f"No file holds captions of a model; {people[0].sheet.title} ({people[0].sheet.format}) holds "
                "those of people. Are they a model's?",
                *(Option({"captions": (path,)}, "captions of a model") for path in paths),
            )
        hint = "Name the file of captions, and its columns if needed."
        raise CapbiasError(f"No file holds captions of a model: {held}.", hint, "captions", "caption_column")
    for one in wanted if needed or any(piece.labels for piece in pieces) else ():
        if not one.needed or any(one.name in piece.labels for piece in pieces):
            continue
        for sheet in sheets:
            check_label_options(sheet, one)
        derived = needed and one.attribute is not None and one.attribute.derived is not None
        if not (people and derived):
            more = ", and there are no human captions to derive them from" if derived else ""
            text = f"There are no labels of {one.name}{more}. Read: {held}."
            raise CapbiasError(text, "Name a table of labels.", "labels", "attribute_column")


def _check_names(pieces: Sequence[Piece]) -> None:
    """Raises Ask if the names of some files say that people wrote their captions."""
    captions = [piece for piece in pieces if piece.captions]
    paths = dict.fromkeys(
        piece.file.path
        for piece in captions
        if HUMAN_FILE.search(piece.sheet.name) and not piece.file.kinds and isinstance(piece.file.source, Path)
    )
    if paths and len(captions) > len(paths):
        raise Ask(
            f"{listed(Path(path).name for path in paths)}: written by people, as the "
            f"{'names say' if len(paths) > 1 else 'name says'}?",
            Option({"references": tuple(paths)}, "human captions"),
            Option({"captions": tuple(paths)}, "captions of a model"),
        )


# images


def _rank(piece: Piece) -> int:
    """The place of a file among those whose image IDs are those of all: labels, labels beside captions, human
    captions, others."""
    if piece.labels:
        return 1 if piece.captions else 0
    return 2 if piece.references and not piece.captions else 3


def _join(pieces: Sequence[Piece], given: Given, held: Held) -> None:
    """Give rows images by the IDs of the collection, of the labels, or else of human captions."""
    texts = sorted((piece for piece in pieces if not (piece.objects or piece.by_rows)), key=_rank)
    if not texts:
        return
    first, *others = texts
    base = first
    if known := held.images_of(LABELS, REFERENCES, CAPTIONS):
        ids = pd.DataFrame({"image_id": pd.Series(sorted(known), dtype=object)})
        base = Piece(
            File(None), Sheet("the collection", ids, path="collection"), column="image_id", ids=ids["image_id"]
        )
        others = texts
    joins = [_tried(piece, base, given) for piece in others]
    if base is first:
        # Tables of labels may be of other images.
        rights = [
            join.right for piece, join in zip(others, joins, strict=True) if isinstance(join, Join) and _rank(piece)
        ]
        use_own(first, rights[0] if rights else id_alone(first, given))
    for piece, join in zip(others, joins, strict=True):
        to = base
        if isinstance(join, CapbiasError) and piece is not first and base is not first:
            join, to = _tried(piece, first, given), first  # new images, which may join each other
        if isinstance(join, Join):
            use_joined(piece, to, join)
        elif piece is first or not _rank(piece):
            use_own(piece, id_alone(piece, given))
        else:
            raise join


def _tried(piece: Piece, base: Piece, given: Given) -> Join | CapbiasError:
    """How two files join, or why they do not. Raises Ask."""
    try:
        return joined(piece, base, given)
    except Ask:
        raise
    except CapbiasError as error:
        return error


def _join_by_text(piece: Piece, pieces: Sequence[Piece], held: Held) -> None:
    """Give rows without IDs the image with most of the human captions of the row, and more than half of them.
    Raises CapbiasError if no row has one."""
    known = [held.references] if held.references is not None else []
    for other in pieces:
        if other.references and other.ids is not None:
            known += [part.frame for part in caption_parts(other, REFERENCES, Given(), False)]
    with_text: dict[str, set[str]] = {}
    for frame in known:
        for text, image in zip(frame["caption"].str.strip().str.casefold(), frame["image_id"], strict=True):
            with_text.setdefault(text, set()).add(image)
    ids: list[str | None] = []
    for cell in piece.sheet.frame[piece.references[0]]:
        texts = [str(text).strip().casefold() for text in (cell if isinstance(cell, list) else [cell])]
        votes = Counter(image for text in texts for image in with_text.get(text, ())).most_common(2)
        (best, most), *others = votes or [(None, 0)]
        ids.append(best if 2 * most > len(texts) and all(number < most for _, number in others) else None)
    lost = ids.count(None)
    if lost == len(ids):
        raise CapbiasError(
            f"{piece.sheet.title} has no image IDs, and no human captions with image IDs are those of its rows.",
            "Give human captions with image IDs, too, or add the image ID of each row.",
            "references",
        )
    piece.column, piece.ids = piece.sheet.roles["rows"], pd.Series(ids, dtype=object)
    piece.how = f"{len(ids) - lost:,} rows got the image ID of their human captions; not found: {lost:,}"


# what files hold together


def _with_one_reference(parts: list[Part]) -> list[Part]:
    """The same with the human captions of several files as those of the first. Raises Ask if two are of one image."""
    captions, people = ([part for part in parts if part.kind == kind] for kind in (CAPTIONS, REFERENCES))
    people = [part for part in people if not part.beside] or people[:1]
    said = [part for part in people if REFERENCES in part.file.kinds]
    if said and (unnamed := [part for part in people if REFERENCES not in part.file.kinds]):
        raise CapbiasError(
            f"{listed(part.title for part in unnamed)}: human captions, too, which --references does not name.",
            "Name all files of human captions, or leave this one out.",
            "references",
        )
    if not said and any(one.images & other.images for one, other in combinations(people, 2)):
        raise Ask(
            f"{listed(part.title for part in people)} hold human captions of the same images. Do all count?",
            Option({"references": tuple(part.file.path for part in people)}, "all of them"),
        )
    first, *others = said or people or [None]
    if first is None or not others:
        return [*captions, *([first] if first else [])]
    every = [first, *others]
    frame = pd.concat([part.frame for part in every], ignore_index=True)
    frame["caption_index"] = frame.groupby("image_id", sort=False).cumcount()
    whole = replace(
        first,
        frame=frame,
        rows=sum(part.rows for part in every),
        account=(
            *first.account[:2],
            ("Files", listed(part.title for part in every)),
            ("Captions per image", sizes(frame["image_id"])),
        ),
        notes=tuple(note for part in every for note in part.notes),
    )
    return [*captions, whole]


def _labelled(pieces: Sequence[Piece], wanted: Sequence[Wanted], needed: bool) -> list[Piece]:
    """The tables of labels: of files to be scored, or of different images, one; else that of each file."""
    bare = not any(one.needed for one in wanted)  # which columns are labels is said later
    having = [
        piece for piece in pieces if piece.ids is not None and (piece.labels or (bare and LABELS in piece.file.kinds))
    ]
    ids = [set(piece.ids.dropna()) for piece in having if piece.ids is not None]
    apart = not any(one & other for one, other in combinations(ids, 2))
    return [_one_table(having)] if len(having) > 1 and (needed or apart) else having


def _one_table(pieces: Sequence[Piece]) -> Piece:
    """The labels of several files as those of the first, with a row for each row of each file."""
    first, frames, labels = pieces[0], [], {}
    for piece in pieces:
        frame = piece.sheet.frame
        for attribute, names in piece.labels.items():
            target = labels.setdefault(attribute, first.labels.get(attribute, names))
            frame = frame.rename(columns=dict(zip(names, target, strict=False)))
        frames.append(frame)
    merged = pd.concat(frames, ignore_index=True)
    sheet = Sheet(
        listed(piece.sheet.title for piece in pieces),
        merged.astype(object).where(merged.notna(), None),
        first.sheet.format,
        first.sheet.roles,
        first.sheet.path,
        first.sheet.name,
        [note for piece in pieces for note in piece.sheet.notes],
    )
    ids = pd.concat([piece.ids for piece in pieces], ignore_index=True)
    return Piece(first.file, sheet, labels=labels, column=first.column, ids=ids)


def _objects(piece: Piece, given: Given, held: Held) -> list[Part]:
    """Objects, boxes or outlines of a file."""
    kinds, sheet = piece.file.kinds, piece.sheet
    image = (given.columns("image_id_column", sheet.path, sheet.columns) or [""])[0]
    images = held.images_of(PHOTOGRAPHS, LABELS, CAPTIONS) if len(sheet.frame) > MANY_OUTLINES else None
    reads = {
        OBJECTS: lambda: objects(piece, image),
        SEGMENTS: lambda: segments(piece, images or None),
        BOXES: lambda: boxes(piece),
    }
    wanted = [kind for kind in reads if kind in kinds] or [OBJECTS]
    if not kinds and sheet.format == "COCO instances" and "segmentation" in sheet.columns:
        wanted = [OBJECTS, SEGMENTS]
    parts = []
    for kind in wanted:
        try:
            parts.append(replace(reads[kind](), beside=kind != wanted[0]))
        except CapbiasError:
            if kind == wanted[0]:
                raise
    return parts


def _with_missing(part: Part, labels: Sequence[Part]) -> Part:
    """Captions that are missing or left out, by label."""
    if part.kind != CAPTIONS or not labels or not part.missing:
        return part
    notes = []
    for details in labels[0].mapping[:3]:
        label = labels[0].frame[details["column"]].map(details["mapping"])
        value = dict(zip(labels[0].frame["image_id"], label, strict=True))
        lost = {reason: Counter(map(value.get, images)) for reason, images in part.missing.items()}
        every = sum(lost.values(), Counter(map(value.get, part.frame["image_id"])))
        for reason, of in lost.items():
            shown = ", ".join(f"{name} {of[name]:,} of {every[name]:,}" for name in details["attribute"]["values"])
            notes.append(f"{reason} captions by {details['attribute']['name']}: {shown}")
    return replace(part, warnings=(*part.warnings, *notes))


def _check_idle(pieces: Sequence[Piece], given: Given) -> None:
    """Raises CapbiasError for what the user said that has no effect on any file."""
    if not (idle := given.idle()):
        return
    argument, _, value = idle[0].partition("=")
    sheets = [piece.sheet for piece in pieces]
    columns = "; ".join(f"{sheet.title}: {listed(sheet.columns)}" for sheet in sheets)
    column = value.partition("=")[0] if argument == "rows" else value.rpartition(":")[2]
    known = any(name == column or name.startswith(f"{column}.") for sheet in sheets for name in sheet.columns)
    if not known and argument not in ("sets", "several", "attribute"):
        raise CapbiasError(f"No file has the column {column!r}.", f"Known: {columns}.", argument)
    raise CapbiasError(
        f"The choice {value!r} has no effect on these files.", f"Leave it out. Columns: {columns}.", argument
    )
