"""Files to tables: what pages, the command line and Python read with. Nothing in a file is ever run or guessed.

`read` opens files (containers.py, formats.py), says what their columns are (columns.py), joins their images (join.py),
and makes captions and labels of them (captions.py, labels.py). What is open is asked once, with an answer that was
tried (questions.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from capbias_core.attributes.labels import MOST_LABELS
from capbias_core.errors import CapbiasError, short, unknown_name
from capbias_core.kinds import BOXES, CAPTIONS, KINDS, LABELS, OBJECTS, PHOTOGRAPHS, REFERENCES, SEGMENTS, kind_title
from capbias_core.load.captions import EACH, PARTS, CaptionSet, captions_of
from capbias_core.load.checks import names_only, shifted_from
from capbias_core.load.columns import (
    HUMAN_FILE,
    Roles,
    Wanted,
    caption_columns,
    label_columns,
    label_options,
    roles_of,
    selected,
)
from capbias_core.load.formats import check_one_table, sheet_of_table, sheets_of
from capbias_core.load.join import Images, base_images, id_alone, id_faults, images_by, joined
from capbias_core.load.labels import (
    LabelTable,
    attribute_and_mapping,
    label_table,
    mapping_details,
    mapping_overrides,
    unread_labels,
)
from capbias_core.load.places import checked_path
from capbias_core.load.questions import Ask, File, Given, Option, Request, read_or_ask
from capbias_core.load.sheet import Sheet, is_missing, is_scalar, listed, present
from capbias_core.load.tables import boxes, objects, segments
from capbias_core.types import Problem, counted

UNNAMED = "captions"  # the captioner of a table or list without a name
MANY_OUTLINES = 20_000  # of more, only those of images in the collection are kept
FEWEST_NAMED = 20  # captions that name one value, before labels are compared with them


@dataclass(frozen=True)
class Held:
    """What new files are compared with: the images of a collection by kind, and its human captions."""

    images: Mapping[str, frozenset[str]] = field(default_factory=dict)
    references: pd.DataFrame | None = None


@dataclass(frozen=True)
class Part:
    """One table of a file: captions of one captioner, human captions, labels, objects, boxes or outlines."""

    kind: str
    file: File
    title: str  # of the file
    name: str  # of the captioner or the table
    frame: pd.DataFrame
    format: str
    rows: int
    beside: bool = False  # human captions or outlines beside what the file is read for
    account: tuple[tuple[str, str], ...] = ()  # what became of each column and row
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    problem_count: int = 0
    counts: tuple[tuple[str, str], ...] = ()  # further lines of a report
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # reason -> images of captions left out
    mapping: tuple[dict, ...] = ()  # of labels: details of each mapped column (`mapping_details`)

    @property
    def images(self) -> frozenset[str]:
        """Its image IDs."""
        return frozenset(self.frame["image_id"])

    def lines(self, known: Mapping[str, Collection[str]] = {}) -> list[tuple[str, str]]:
        """(label, value) for a report. known: kind -> images of other files and of the collection."""
        images = self.images
        lines = [
            ("File", self.title),
            ("Read as", self.kind),
            ("Format", self.format),
            *(("Read", note) for note in self.notes),
        ]
        lines += [*self.account, ("Rows", f"{self.rows:,}")]
        if self.kind in (CAPTIONS, REFERENCES):
            lines.append(("Captions", f"{len(self.frame):,} ({self.frame['caption'].nunique():,} different)"))
        lines.append(("Images", f"{len(images):,}"))
        for kind in KINDS[self.kind].joins:
            if kind in known and kind != self.kind:
                missing = sorted(images.difference(known[kind]))
                lines.append(
                    (
                        f"Images with {kind_title(kind)}",
                        f"{len(images) - len(missing):,} ({1 - len(missing) / max(len(images), 1):.1%})",
                    )
                )
                if kind == LABELS and self.kind == CAPTIONS and missing:
                    lines.append(("Unknown image IDs", f"{len(missing):,} ({listed(missing, 5)})"))
        lines += [*self.counts, ("Problems", f"{self.problem_count:,}")]
        return [*lines, *((f"{problem.unit} {problem.line}", problem.message) for problem in self.problems)]

    @property
    def told(self) -> list[str]:
        """Its warnings, the faulty rows first."""
        if not self.problem_count:
            return list(self.warnings)
        counts = f"{counted(self.problem_count, 'problem')} in {counted(self.rows, 'row')}"
        return [f"{counts}: these rows are left out. The first is at {self.problems[0]}.", *self.warnings]


@dataclass(frozen=True)
class Read:
    """What files hold."""

    parts: tuple[Part, ...]
    columns: Mapping[str, tuple[str, ...]]  # file -> names of its columns

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
    known: dict[int, list[Sheet]] = {}
    reader = _Reader(known, tuple(wanted), held or Held(), tuple(values), needed)
    return read_or_ask(Request(tuple(files), given or Given(), reader.run), describe)


def describe(result: Read) -> str:
    """What was read, in a line, so that an answer can be judged before it is given."""
    labels = result.of(LABELS)
    images = labels[0].images if labels else frozenset()
    texts = []
    for part in result.of(CAPTIONS)[:3]:
        joins = (
            f": {len(part.images & images):,} of {len(part.images):,} images have labels"
            if labels
            else f": {len(part.images):,} images"
        )
        texts.append(f"{part.name or part.title}{joins}")
    for details in labels[0].mapping[:1] if labels else ():
        counts = labels[0].frame[details["column"]].map(details["mapping"]).value_counts()
        texts.append(", ".join(f"{value} {counts.get(value, 0):,}" for value in details["attribute"]["values"]))
    texts += [f"human captions of {len(part.images):,} images" for part in result.of(REFERENCES)[:1]]
    return "; ".join(texts)


@dataclass(frozen=True)
class _Reader:
    """What stays the same while answers are tried. known: the opened sources, by identity."""

    known: dict[int, list[Sheet]]
    wanted: tuple[Wanted, ...]
    held: Held
    values: tuple[str, ...]
    needed: bool

    def run(self, files: Sequence[File], given: Given) -> Read:
        """What files hold with what was said of them. Raises the first question that is open."""
        found = [(file, selected(sheet, given, self.wanted)) for file in files for sheet in self.sheets(file)]
        if empty := next((sheet for _, sheet in found if sheet.frame.empty), None):
            raise empty.unusable(empty.faults)
        sure = {kind: [self._surely(file, sheet, kind) for file, sheet in found] for kind in (CAPTIONS, LABELS)}
        pieces: list[_Piece] = []
        for place, (file, sheet) in enumerate(found):
            others = {
                kind: any(sure for other, sure in enumerate(each) if other != place) for kind, each in sure.items()
            }
            others[REFERENCES] = any(REFERENCES in each.kinds for each, _ in found if each is not file)
            pieces.append(_Piece(file, sheet, roles_of(sheet, file.kinds, self.wanted, given, others)))
        self._check_files(pieces, given)
        self._join(pieces, given)
        parts: list[Part] = []
        for piece in pieces:
            parts += self._texts(piece, pieces, given)
        parts = self._merged(parts, pieces, given)
        labels = self._labels(pieces, parts, given)
        for piece in pieces:
            parts += _objects(piece, given, self.held)
        self._check_idle(found, given)
        parts = [self._with_missing(part, labels) for part in parts] + labels
        self._check_shift(parts, labels, pieces, given)
        return Read(tuple(parts), {sheet.title: tuple(sheet.columns) for _, sheet in found})

    def sheets(self, file: File) -> list[Sheet]:
        """The tables of a source, opened once."""
        if id(file.source) not in self.known:
            if isinstance(file.source, Path):
                sheets = sheets_of(checked_path(file.source), file.path)
            else:
                check_one_table(file.source)
                try:
                    sheets = [sheet_of_table(file.source, file.title, file.path)]
                except RecursionError:
                    raise CapbiasError(
                        f"{file.title} is lists in lists without end.", "Give a path, a DataFrame or a list of dicts."
                    ) from None
            self.known[id(file.source)] = sheets
        return [replace(sheet, notes=list(sheet.notes)) for sheet in self.known[id(file.source)]]

    def _surely(self, file: File, sheet: Sheet, kind: str) -> bool:
        if file.kinds:
            return kind in file.kinds
        if kind == CAPTIONS:
            return bool(sheet.roles.get("caption"))
        named = any(label_columns(sheet, one) for one in self.wanted)
        return bool(sheet.roles.get("label")) or (
            named and not sheet.roles.get("caption") and not caption_columns(sheet)[0]
        )

    def _check_files(self, pieces: Sequence[_Piece], given: Given) -> None:
        """Raises Ask or CapbiasError if files lack what is needed, or names of files say that people wrote captions."""
        captions = [piece for piece in pieces if piece.roles.captions]
        people = [piece for piece in pieces if piece.roles.references]
        if self.needed and not captions:
            paths = [piece.file.path for piece in people if not piece.file.kinds]
            whose = [Option({"captions": (path,)}, "captions of a model") for path in paths]
            names = "; ".join(f"{piece.sheet.title} ({piece.sheet.format})" for piece in pieces)
            if whose:
                raise Ask(
                    f"No file holds captions of a model; {people[0].sheet.title} ({people[0].sheet.format}) holds "
                    "those of people. Are they a model's?",
                    *whose,
                )
            raise CapbiasError(
                f"No file holds captions of a model: {names}.",
                "Name the file of captions, and its columns if needed.",
                "captions",
                "caption_column",
            )
        if self.needed and not any(piece.roles.labels for piece in pieces):
            self._check_derivable(pieces, bool(people))
        human = [
            piece
            for piece in captions
            if HUMAN_FILE.search(piece.sheet.name) and not piece.file.kinds and piece.file.path != piece.file.name
        ]
        if human and len(captions) > len(human):
            paths = tuple(dict.fromkeys(piece.file.path for piece in human))
            names = listed(piece.sheet.title for piece in human)
            raise Ask(
                f"{names}: written by people, as the {'names say' if len(paths) > 1 else 'name says'}?",
                Option({"references": paths}, "human captions"),
                Option({"captions": paths}, "captions of a model"),
            )

    def _check_derivable(self, pieces: Sequence[_Piece], people: bool) -> None:
        """Raises Ask for a column that may hold the labels, and CapbiasError if labels cannot be derived either."""
        one = self.wanted[0]
        for piece in pieces:
            if options := label_options(piece.sheet, one):
                raise Ask(
                    f"{piece.sheet.title}: no column has a usual name of {one.name}. Which holds the labels?", *options
                )
        if not (people and one.attribute and one.attribute.derived):
            names = "; ".join(
                f"{piece.sheet.title} ({piece.sheet.format}): {listed(piece.sheet.columns, 6)}" for piece in pieces
            )
            more = (
                ", and there are no human captions to derive them from"
                if one.attribute and one.attribute.derived
                else ""
            )
            raise CapbiasError(
                f"There are no labels of {one.name}{more}. Read: {names}.",
                "Name a table of labels.",
                "labels",
                "attribute_column",
            )

    # images

    def _join(self, pieces: Sequence[_Piece], given: Given) -> None:
        """The images of all files, by the IDs of the collection, of the labels, or else of human captions."""
        texts = [piece for piece in pieces if not piece.roles.objects and not piece.by_rows]
        order = [
            [piece for piece in texts if piece.roles.labels and not piece.roles.captions],
            [piece for piece in texts if piece.roles.labels],
            [piece for piece in texts if piece.roles.references and not piece.roles.captions],
            texts,
        ]
        first = next((each[0] for each in order if each), None)
        known = next(
            (self.held.images[kind] for kind in (LABELS, REFERENCES, CAPTIONS) if self.held.images.get(kind)), None
        )
        if known is not None:
            ids = pd.DataFrame({"image_id": pd.Series(sorted(known), dtype=object)})
            base = _Piece(File(None, (LABELS,), "collection"), Sheet("the collection", "collection", "", ids), Roles())
            base.images = Images(ids["image_id"], "image_id")
            for piece in texts:
                try:
                    self._join_one(piece, base, given)
                except Ask:
                    raise
                except CapbiasError:  # new images, which may join each other
                    if piece is first or first is None:
                        piece.images = base_images(piece.sheet, id_alone(piece.sheet, given, piece.roles.used))
                    else:
                        self._join_one(piece, first, given)
            return
        if first is None:
            return
        others = [piece for piece in texts if piece is not first]
        if not others:
            first.images = base_images(first.sheet, id_alone(first.sheet, given, first.roles.used))
            return
        same = [
            piece
            for piece in others
            if bool(piece.roles.labels) == bool(first.roles.labels) and not piece.roles.captions and first.roles.labels
        ]
        joins = {}
        for piece in others:
            if piece not in same:
                joins[id(piece)] = joined(piece.sheet, first.sheet, given, piece.roles.used, first.roles.used)
        column = next(iter(joins.values())).right if joins else id_alone(first.sheet, given, first.roles.used)
        first.images = base_images(first.sheet, column)
        for piece in others:
            if piece in same:  # further tables of labels may be of other images
                self._join_loosely(piece, first, given)
            else:
                join = joins[id(piece)]
                piece.images = images_by(piece.sheet, first.sheet, join, first.images)
                piece.joins = f"{join.images:,} of {counted(len(join.here), 'image')}"

    def _join_one(self, piece: _Piece, base: _Piece, given: Given) -> None:
        join = joined(piece.sheet, base.sheet, given, piece.roles.used, base.roles.used)
        assert base.images is not None
        piece.images = images_by(piece.sheet, base.sheet, join, base.images)
        piece.joins = f"{join.images:,} of {counted(len(join.here), 'image')}"

    def _join_loosely(self, piece: _Piece, base: _Piece, given: Given) -> None:
        try:
            self._join_one(piece, base, given)
        except Ask:
            raise
        except CapbiasError:
            piece.images = base_images(piece.sheet, id_alone(piece.sheet, given, piece.roles.used))

    # captions

    def _texts(self, piece: _Piece, pieces: Sequence[_Piece], given: Given) -> list[Part]:
        """The captions of a file, by captioner, and the human captions in it."""
        sheet, roles = piece.sheet, piece.roles
        if piece.by_rows and (roles.captions or roles.references):
            piece.images = _images_by_text(piece, pieces, self.held)
        parts: list[Part] = []
        for columns, people in ((roles.captions, False), (roles.references, True)):
            if not columns or piece.images is None or (people and piece.unidentified):
                continue
            other = any(each is not piece and each.roles.captions for each in pieces)
            found = captions_of(sheet, columns, piece.images, given, piece.file.kinds, people, other)
            names = [f"{name} ({found.used[name]})" if name in found.used else name for name in columns]
            used = {*roles.used, *piece.images.column.split("+"), *found.used}
            rest = [name for name in sheet.columns if name not in used] if not (people and roles.captions) else []
            equal = f"; {found.equal:,} equal to another of their image" if found.equal else ""
            account = [
                ("Image ID", piece.images.column),
                ("Human captions" if people else "Captions", ", ".join(names)),
                *(("Read as", f"{name} ({text})") for name, text in found.used.items() if name not in columns),
                *([("Not used", _unused(sheet, rest))] if rest else []),
                ("Captions per image", _sizes(found.sizes, 6) + equal),
                *([("Images that join", piece.joins)] if piece.joins else []),
            ]
            notes = tuple(filter(None, (*sheet.notes, piece.images.how, *found.notes, piece.note)))
            for each in found.sets:
                name = _set_name(piece.file, sheet, each)
                parts.append(
                    Part(
                        REFERENCES if people else CAPTIONS,
                        piece.file,
                        sheet.title,
                        name,
                        each.frame,
                        sheet.format,
                        sheet.rows,
                        people and bool(roles.captions),
                        tuple(account),
                        notes,
                        found.warnings,
                        tuple(found.faults.first),
                        found.faults.count,
                        tuple((rule[0].upper() + rule[1:], f"{number:,}") for rule, number in found.cleaned.items()),
                        {reason: tuple(ids) for reason, ids in each.missing.items()},
                    )
                )
        return parts

    def _merged(self, parts: list[Part], pieces: Sequence[_Piece], given: Given) -> list[Part]:
        """Human captions of several files as one; files that are parts of one captioner's captions, if the user says
        so. Raises Ask if files of captions share no image."""
        captions, people = ([part for part in parts if part.kind == kind] for kind in (CAPTIONS, REFERENCES))
        alone = [part for part in people if not part.beside] or people[:1]
        flagged = [part for part in alone if REFERENCES in part.file.kinds]
        overlap = len(alone) > 1 and any(
            part.images & other.images for place, part in enumerate(alone) for other in alone[:place]
        )
        if overlap and not flagged:
            raise Ask(
                f"{listed(part.title for part in alone)} hold human captions of the same images. Do all count?",
                Option({"references": tuple(part.file.path for part in alone)}, "all of them"),
            )
        alone = flagged or alone
        if len(alone) > 1:
            merged = _as_one(alone)
            size = merged.frame.groupby("image_id").size()
            account = (
                *merged.account[:2],
                ("Files", listed(part.title for part in alone)),
                ("Captions per image", f"{size.min()} to {size.max()}" if size.min() < size.max() else f"{size.min()}"),
            )
            alone = [replace(merged, account=account, notes=tuple(note for part in alone for note in part.notes))]
        if len(captions) > 1:
            files = list(dict.fromkeys(id(part.file) for part in captions))
            images = [frozenset().union(*(part.images for part in captions if id(part.file) == file)) for file in files]
            apart = len(files) > 1 and all(
                not one & other for place, one in enumerate(images) for other in images[:place]
            )
            if given.sets == PARTS and len(files) > 1:
                given.use("sets", PARTS)
                captions = [_as_one(captions)]
            elif apart and given.sets != EACH and not any(part.kind == LABELS and part.beside for part in parts):
                titles = listed(dict.fromkeys(part.title for part in captions))
                raise Ask(
                    f"{titles} have no image in common. Are they parts of one captioner's captions?",
                    Option({"sets": (PARTS,)}, "one captioner"),
                    Option({"sets": (EACH,)}, "captioners of different images"),
                )
            elif apart:
                given.use("sets", EACH)
        return [*captions, *alone]

    # labels

    def _labels(self, pieces: Sequence[_Piece], texts: Sequence[Part], given: Given) -> list[Part]:
        """The labels of all files as one table, with what they mean; of files that are stored, and whose images are
        partly the same, a table each."""
        bare = not any(one.needed for one in self.wanted)  # which columns are labels is said later
        having = [
            piece
            for piece in pieces
            if piece.images is not None and (piece.roles.labels or (bare and LABELS in piece.file.kinds))
        ]
        for one in self.wanted:
            if having and one.needed and not any(piece.roles.labels.get(one.name) for piece in having):
                columns = "; ".join(f"{piece.sheet.title}: {listed(piece.sheet.columns)}" for piece in having)
                raise CapbiasError(
                    f"No column has a usual name of {one.name}. Columns: {columns}.",
                    "Name one, as NAME=COLUMN, or leave the attribute out.",
                    "attribute",
                )
        ids = [set(piece.images.ids.dropna()) for piece in having if piece.images is not None]
        apart = sum(map(len, ids)) == len(set().union(*ids))
        tables = [_one_sheet(having)] if len(having) > 1 and (self.needed or apart) else having
        return [self._label_part(piece, texts, given) for piece in tables]

    def _label_part(self, piece: _Piece, texts: Sequence[Part], given: Given) -> Part:
        """A table of labels with what they mean."""
        sheet, images = piece.sheet, piece.images
        assert images is not None
        table = label_table(sheet, piece.roles.labels, images, given, piece.roles.several)
        mapping = []
        overrides = mapping_overrides(given.map)
        for one in self.wanted:
            columns = table.columns.get(one.name, [])
            chosen = [name for name in given.attribute_column if name in columns] or columns
            if self.needed and len(chosen) > 1:
                options = [
                    Option(
                        {"attribute_column": (name,)},
                        listed(
                            f"{label} {number:,}" for label, number in table.frame[name].value_counts().head(4).items()
                        ),
                    )
                    for name in chosen
                ]
                raise Ask(f"{sheet.title}: each annotator has a column of {one.name}. Which counts?", *options)
            for name in chosen:
                for value in given.attribute_column:
                    if value == name:
                        given.use("attribute_column", value)
                try:
                    mapping.append(self._mapping(one, table, name, overrides.get(one.name, {}), texts))
                except CapbiasError as error:
                    if one.needed or one.name in overrides or isinstance(error, Ask):
                        raise
        faults = id_faults(sheet, images)
        fields = [
            ("Image ID", images.column),
            ("Labels", ", ".join(f"{name} ({', '.join(columns)})" for name, columns in table.columns.items())),
        ]
        used = {"image_id", *(name for columns in table.columns.values() for name in columns)}
        shown = [_unused_label(table.frame, name) for name in table.frame.columns if name not in used]
        shown += [f"{short(name)} (differs between rows of an image)" for name in table.left_out]
        fields += [("Not used", ", ".join(shown))] if shown else []
        fields.append(("Rows per image", _sizes(table.sizes, 8)))
        if unread := [
            name
            for name, columns in piece.roles.labels.items()
            if not any(each["column"] in table.columns.get(name, ()) for each in mapping)
        ]:
            fields.append(("Not read", f"labels of {listed(unread)}"))
        notes = tuple(filter(None, (*sheet.notes, images.how, *table.notes)))
        return Part(
            LABELS,
            piece.file,
            sheet.title,
            piece.file.name or sheet.name,
            table.frame,
            sheet.format,
            sheet.rows,
            bool(piece.roles.captions),
            tuple(fields),
            notes,
            (),
            tuple(faults.first),
            faults.count,
            (("Repeats left out", f"{table.repeats:,}"),),
            {},
            tuple(mapping),
        )

    def _mapping(
        self, one: Wanted, table: LabelTable, column: str, chosen: Mapping[str, str | None], texts: Sequence[Part]
    ) -> dict:
        """What the labels of a column mean. Raises Ask for two labels that no spelling explains."""
        counts = table.frame[column].value_counts().to_dict()
        attribute, mapping = attribute_and_mapping(one, column, counts, chosen, self.values)
        unread = sorted(unread_labels(attribute, mapping), key=lambda label: -counts[label])
        read = [value for value in mapping.values() if value]
        if len(unread) == 2 and len(attribute.values) == 2 and not read and not chosen and self.needed:
            labels = table.frame.set_index("image_id")[column]
            options = []
            for values in (attribute.values, attribute.values[::-1]):
                meant = dict(zip(unread, values, strict=True))
                agree, total = _agreement(texts, attribute, labels.map(meant))
                pairs = tuple(f"{attribute.name}:{label}={value}" for label, value in meant.items())
                options.append(
                    (
                        agree,
                        Option(
                            {"map": pairs}, f"{agree:,} of {total:,} captions that name one value agree with the label"
                        ),
                        total,
                    )
                )
            options.sort(key=lambda each: -each[0])
            if options[0][2] >= FEWEST_NAMED and options[0][0] > options[1][0]:
                shown = ", ".join(f"{label} {counts[label]:,}" for label in unread)
                raise Ask(
                    f"{column}: what do the labels {shown} mean? They are no usual words for "
                    f"{' and '.join(attribute.values)}.",
                    *(option for _, option, _ in options),
                )
        return mapping_details(attribute, column, mapping, counts)

    def _with_missing(self, part: Part, labels: Sequence[Part]) -> Part:
        """Captions that are missing or left out, by label."""
        if part.kind != CAPTIONS or not part.missing or not labels:
            return part
        notes = []
        for details in labels[0].mapping[:3]:
            value = dict(
                zip(
                    labels[0].frame["image_id"], labels[0].frame[details["column"]].map(details["mapping"]), strict=True
                )
            )
            all_images = Counter(
                value.get(image)
                for image in [*part.frame["image_id"], *(image for images in part.missing.values() for image in images)]
            )
            for reason, images in part.missing.items():
                of = Counter(value.get(image) for image in images)
                shown = ", ".join(
                    f"{name} {of[name]:,} of {all_images[name]:,}" for name in details["attribute"]["values"]
                )
                notes.append(f"{reason} captions by {details['attribute']['name']}: {shown}")
        return replace(part, warnings=(*part.warnings, *notes))

    # checks

    def _check_shift(
        self, parts: Sequence[Part], labels: Sequence[Part], pieces: Sequence[_Piece], given: Given
    ) -> None:
        """Raises Ask if captions agree with labels, or share words with human captions, in one stretch of rows and not
        in another, unless the user named the column of IDs."""
        if not self.needed:
            return
        human = next((part.frame for part in parts if part.kind == REFERENCES), None)
        for part in parts:
            if part.kind != CAPTIONS:
                continue
            piece = next(piece for piece in pieces if piece.file is part.file)
            path = piece.sheet.path
            column = piece.images.column if piece.images else ""
            if any(value in (f"{path}:{column}", column) for value in given.image_id_column):
                continue
            for details in labels[0].mapping if labels else ():
                values = labels[0].frame.set_index("image_id")[details["column"]].map(details["mapping"])
                wanted = next((one.attribute for one in self.wanted if one.name == details["attribute"]["name"]), None)
                if found := shifted_from(part.frame, wanted, values.dropna(), human):
                    row, good, bad, what = found
                    raise Ask(
                        f"{part.title}: from about row {row:,} on captions {what} in {bad:.0%}, elsewhere in "
                        f"{good:.0%}. Did captions and images shift against each other? Correct the file, unless "
                        f"{column} is right.",
                        Option({"image_id_column": (f"{path}:{column}",)}, f"{column} is right in every row"),
                    )

    def _check_idle(self, found: Sequence[tuple[File, Sheet]], given: Given) -> None:
        """Raises CapbiasError for what the user said that has no effect on any file."""
        if not (idle := given.idle()):
            return
        argument, _, value = idle[0].partition("=")
        columns = "; ".join(f"{sheet.title}: {listed(sheet.columns)}" for _, sheet in found)
        all_columns = {name for _, sheet in found for name in sheet.columns}
        column = value.partition("=")[0] if argument == "rows" else value.rpartition(":")[2]
        known = column in all_columns or any(name.startswith(f"{column}.") for name in all_columns)
        if not known and (argument.endswith("_column") or argument == "rows"):
            raise CapbiasError(f"No file has the column {column!r}.", f"Known: {columns}.", argument)
        raise CapbiasError(
            f"The choice {value!r} has no effect on these files.", f"Leave it out. Columns: {columns}.", argument
        )


@dataclass(eq=False)
class _Piece:
    """A table of a file with what its columns are, and its images once they are joined."""

    file: File
    sheet: Sheet
    roles: Roles
    images: Images | None = None
    joins: str = ""
    note: str = ""
    unidentified: bool = False

    @property
    def by_rows(self) -> bool:
        """Whether its images are only known by their row."""
        return "rows" in self.sheet.roles


def _set_name(file: File, sheet: Sheet, each: CaptionSet) -> str:
    """The name of a set: of the file, of the captioner in it, or both if the user named the file."""
    if not each.name:
        return file.name or sheet.name
    numbered = each.name.isdigit() or each.name.startswith("prompt ")
    stem = file.name if file.name not in ("", UNNAMED) or numbered else ""
    return f"{stem or (sheet.name if numbered else '')} {each.name}".strip()


def _sizes(sizes: Mapping[int, int], most: int) -> str:
    """How many rows images have: `1 (9 images), 2 (1 image)`."""
    return ", ".join(f"{size} ({counted(number, 'image')})" for size, number in sorted(sizes.items())[:most])


def _unused(sheet: Sheet, names: Sequence[str]) -> str:
    """Columns that are not used, with what all their rows say."""
    texts = []
    for name in names:
        cells = sheet.frame[name]
        values = {str(cell) for cell in present(cells)} if is_scalar(cells) else set()
        same = len(values) == 1 and not cells.map(is_missing).any() and len(cells) > 1
        texts.append(f"{short(name)} (the same in every row)" if same else short(name))
    return ", ".join(texts[:20]) + (f" and {len(texts) - 20:,} more" if len(texts) > 20 else "")


def _unused_label(frame: pd.DataFrame, name: str) -> str:
    different = frame[name].nunique()
    if different == 1:
        return f"{short(name)} (the same in every row)"
    return f"{short(name)} ({different:,} different)" if different > MOST_LABELS else short(name)


def _as_one(parts: Sequence[Part]) -> Part:
    """The captions of several files as those of the first."""
    frame = pd.concat([part.frame for part in parts], ignore_index=True)
    frame["caption_index"] = frame.groupby("image_id", sort=False).cumcount()
    reasons = dict.fromkeys(reason for part in parts for reason in part.missing)
    missing = {reason: tuple(image for part in parts for image in part.missing.get(reason, ())) for reason in reasons}
    return replace(parts[0], frame=frame, missing=missing, rows=sum(part.rows for part in parts))


def _one_sheet(pieces: Sequence[_Piece]) -> _Piece:
    """The labels of several files as one table, with a row for each row of each file."""
    frames, images, roles = [], [], Roles(several=pieces[0].roles.several)
    for piece in pieces:
        assert piece.images is not None
        frame = piece.sheet.frame.copy()
        for attribute, names in piece.roles.labels.items():
            target = pieces[0].roles.labels.get(attribute, names)
            frame = frame.rename(columns=dict(zip(names, target, strict=False)))
            roles.labels.setdefault(attribute, list(target))
        frames.append(frame)
        images.append(piece.images.ids)
    merged = pd.concat(frames, ignore_index=True)
    merged = merged.astype(object).where(merged.notna(), None)
    first = pieces[0]
    title = listed(piece.sheet.title for piece in pieces)
    notes = [note for piece in pieces for note in piece.sheet.notes]
    sheet = Sheet(title, first.sheet.path, first.sheet.name, merged, first.sheet.format, first.sheet.roles, notes)
    column = first.images.column if first.images else ""
    return _Piece(first.file, sheet, roles, Images(pd.concat(images, ignore_index=True), column))


def _images_by_text(piece: _Piece, pieces: Sequence[_Piece], held: Held) -> Images:
    """Images of rows without IDs: the image with most of the human captions of the row, and more than half of them.
    Raises CapbiasError if no row has one."""
    known = held.references
    for other in pieces:
        if other is not piece and other.roles.references and other.images is not None:
            found = captions_of(other.sheet, other.roles.references, other.images, Given(), (REFERENCES,), True, False)
            known = pd.concat([each.frame for each in found.sets])
    rows = piece.sheet.frame[piece.sheet.roles["rows"]]
    if known is None:
        piece.note = (
            "the file has no image IDs: each image is known by its row until human captions with IDs identify it"
        )
        return Images(rows.map(lambda row: f"row {row}").astype(object), piece.sheet.roles["rows"])
    with_text: dict[str, set[str]] = {}
    for text, image in zip(known["caption"].str.strip().str.casefold(), known["image_id"], strict=True):
        with_text.setdefault(text, set()).add(image)
    ids: list[str | None] = []
    for cell in piece.sheet.frame[piece.roles.references[0]]:
        texts = [
            text.strip().casefold() for text in (cell if isinstance(cell, list) else [cell]) if isinstance(text, str)
        ]
        votes = Counter(image for text in texts for image in with_text.get(text, ()))
        most = max(votes.values(), default=0)
        best = [image for image, number in votes.items() if number == most and number * 2 > len(texts)]
        ids.append(best[0] if len(best) == 1 else None)
    lost = sum(image is None for image in ids)
    if lost == len(ids):
        raise CapbiasError(
            f"The rows of {piece.sheet.title} have no image IDs, and no loaded image has its human captions.",
            "Load it without other human captions: it holds human captions itself.",
        )
    piece.unidentified = True  # its human captions are those of the other file
    piece.note = f"{len(ids) - lost:,} rows got the image ID of the loaded human captions; not found: {lost:,}"
    return Images(pd.Series(ids, dtype=object), piece.sheet.roles["rows"])


def _objects(piece: _Piece, given: Given, held: Held) -> list[Part]:
    """Objects, boxes or outlines of a file."""
    if not piece.roles.objects:
        return []
    kinds, sheet = piece.file.kinds, piece.sheet
    image = (given.columns("image_id_column", sheet.path, sheet.columns) or [""])[0]
    images = next((held.images[kind] for kind in (PHOTOGRAPHS, LABELS, CAPTIONS) if held.images.get(kind)), None)
    result = []
    reads = {
        OBJECTS: lambda: objects(sheet, image),
        SEGMENTS: lambda: segments(sheet, images if len(sheet.frame) > MANY_OUTLINES else None),
        BOXES: lambda: boxes(sheet),
    }
    wanted = [kind for kind in reads if kind in kinds] or [OBJECTS]
    if not kinds and sheet.format == "COCO instances" and "segmentation" in sheet.columns:
        wanted = [OBJECTS, SEGMENTS]
    for kind in wanted:
        try:
            table = reads[kind]()
        except CapbiasError:
            if kind != wanted[0]:
                continue
            raise
        result.append(
            Part(
                kind,
                piece.file,
                sheet.title,
                piece.file.name or sheet.name,
                table.frame,
                sheet.format,
                table.rows,
                kind != wanted[0],
                (),
                table.notes,
                (),
                table.problems,
                table.problem_count,
                (("Others", f"{table.others:,}"),),
            )
        )
    return result


def _agreement(texts: Sequence[Part], attribute: Any, labels: pd.Series) -> tuple[int, int]:
    """Captions that name the labelled value, and those that name one value at all."""
    agree = total = 0
    for part in texts[:2]:
        named = names_only(part.frame["caption"], attribute)
        label = part.frame["image_id"].map(labels)
        known = [(one, other) for one, other in zip(named, label, strict=True) if one and isinstance(other, str)]
        agree, total = agree + sum(one == other for one, other in known), total + len(known)
    return agree, total
