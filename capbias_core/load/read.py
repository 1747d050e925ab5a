"""Files to tables: what pages, the command line and Python read with. Nothing in a file is ever run or guessed.

`read` opens files (containers.py, formats.py), says what their columns are (columns.py), joins their images (join.py),
and makes captions and labels of them (captions.py, labels.py). What is open is asked once, with an answer that was
tried (questions.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pandas as pd

from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.kinds import BOXES, CAPTIONS, KINDS, LABELS, OBJECTS, PHOTOGRAPHS, REFERENCES, SEGMENTS, kind_title
from capbias_core.load.captions import EACH, PARTS, captions_of
from capbias_core.load.checks import agreement
from capbias_core.load.columns import (
    HUMAN_FILE,
    Roles,
    Wanted,
    caption_columns,
    check_label_options,
    label_columns,
    roles_of,
    selected,
)
from capbias_core.load.formats import check_one_table, sheet_of_table, sheets_of
from capbias_core.load.join import Images, Join, base_images, id_alone, id_faults, images_by, joined
from capbias_core.load.labels import (
    attribute_and_mapping,
    label_table,
    mapping_details,
    mapping_overrides,
    unread_labels,
)
from capbias_core.load.places import checked_path
from capbias_core.load.questions import Ask, File, Given, Option, read_or_ask
from capbias_core.load.sheet import RowErrors, Sheet, listed
from capbias_core.load.tables import boxes, objects, segments
from capbias_core.types import Attribute, Problem, counted

UNNAMED = "captions"  # the captioner of a table or list without a name
MANY_OUTLINES = 20_000  # of more, only those of images in the collection are kept
FEWEST_NAMED = 20  # captions that name one value, before labels are compared with them


@dataclass(frozen=True)
class Held:
    """What new files are compared with: the images of a collection by kind, and its human captions."""

    images: Mapping[str, frozenset[str]] = field(default_factory=dict)
    references: pd.DataFrame | None = None

    def images_of(self, *kinds: str) -> frozenset[str]:
        """The images of the first of some kinds that the collection has."""
        return next((self.images[kind] for kind in kinds if self.images.get(kind)), frozenset())


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
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # reason -> images of captions left out
    mapping: tuple[dict, ...] = ()  # of labels: details of each mapped column (`mapping_details`)

    @property
    def images(self) -> frozenset[str]:
        """Its image IDs."""
        return frozenset(self.frame["image_id"])

    def lines(self, known: Mapping[str, Collection[str]] = {}) -> list[tuple[str, str]]:
        """(label, value) for a report. known: kind -> images of other files and of the collection."""
        images = self.images
        lines = [("File", self.title), ("Read as", self.kind), ("Format", self.format)]
        lines += [("Read", note) for note in self.notes]
        lines += [*self.account, ("Rows", f"{self.rows:,}")]
        if self.kind in (CAPTIONS, REFERENCES):
            lines.append(("Captions", f"{len(self.frame):,} ({self.frame['caption'].nunique():,} different)"))
        lines.append(("Images", f"{len(images):,}"))
        for kind in [kind for kind in KINDS[self.kind].joins if kind in known]:
            both = len(images.intersection(known[kind]))
            lines.append((f"Images with {kind_title(kind)}", f"{both:,} ({both / max(len(images), 1):.1%})"))
        problems = [(f"{problem.unit} {problem.line}", problem.message) for problem in self.problems]
        return [*lines, ("Problems", f"{self.problem_count:,}"), *problems]

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
    reader = _Reader({}, tuple(wanted), held or Held(), tuple(values), needed)
    return read_or_ask(tuple(files), given or Given(), reader.run, describe)


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


@dataclass(eq=False)
class _Piece:
    """A table of a file with what its columns are, and its images once they are joined."""

    file: File
    sheet: Sheet
    roles: Roles
    images: Images | None = None
    joins: str = ""

    @property
    def by_rows(self) -> bool:
        """Whether its format has no image IDs."""
        return "rows" in self.sheet.roles

    def part(
        self,
        kind: str,
        name: str,
        frame: pd.DataFrame,
        account: Mapping[str, str],
        faults: RowErrors,
        notes: Sequence[str],
        **more: Any,
    ) -> Part:
        """A part of it. account: what is empty is not said. more: further fields."""
        sheet, how = self.sheet, self.images.how if self.images else ""
        return Part(
            kind,
            self.file,
            sheet.title,
            name,
            frame,
            sheet.format,
            sheet.rows,
            account=tuple((label, text) for label, text in account.items() if text),
            notes=tuple(filter(None, (*sheet.notes, how, *notes))),
            problems=tuple(faults.first),
            problem_count=faults.count,
            **more,
        )


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
        sure = [{kind for kind in (CAPTIONS, LABELS, REFERENCES) if self._surely(*each, kind)} for each in found]
        pieces: list[_Piece] = []
        for place, (file, sheet) in enumerate(found):
            others = dict.fromkeys(set().union(*sure[:place], *sure[place + 1 :]), True)
            pieces.append(_Piece(file, sheet, roles_of(sheet, file.kinds, self.wanted, given, others)))
        if self.needed:
            self._check_needed(pieces)
        _check_names(pieces)
        self._join(pieces, given)
        parts = self._merged([part for piece in pieces for part in self._texts(piece, pieces, given)], given)
        labels = self._labels(pieces, parts, given)
        parts += [part for piece in pieces for part in self._objects(piece, given)]
        _check_idle([sheet for _, sheet in found], given)
        return Read((*(_with_missing(part, labels) for part in parts), *labels))

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
                    raise CapbiasError(f"{file.title} is lists in lists without end.", "Give a table.") from None
            self.known[id(file.source)] = sheets
        return [replace(sheet, notes=list(sheet.notes)) for sheet in self.known[id(file.source)]]

    def _surely(self, file: File, sheet: Sheet, kind: str) -> bool:
        """Whether a file holds a kind, before its columns are known."""
        if file.kinds or kind == REFERENCES:
            return kind in file.kinds
        if kind == CAPTIONS:
            return bool(sheet.roles.get("caption"))
        named = any(label_columns(sheet, one) for one in self.wanted)
        texts = sheet.roles.get("caption") or (named and caption_columns(sheet)[0])
        return bool(sheet.roles.get("label")) or (named and not texts)

    def _check_needed(self, pieces: Sequence[_Piece]) -> None:
        """Raises Ask or CapbiasError if files lack captions of a model, or labels."""
        one = self.wanted[0]
        people = [piece for piece in pieces if piece.roles.references]
        sheets = [piece.sheet for piece in pieces]
        held = "; ".join(f"{sheet.title} ({sheet.format}): {listed(sheet.columns, 6)}" for sheet in sheets)
        if not any(piece.roles.captions for piece in pieces):
            if paths := [piece.file.path for piece in people if not piece.file.kinds]:
                raise Ask(
                    f"No file holds captions of a model; {people[0].sheet.title} ({people[0].sheet.format}) holds "
                    "those of people. Are they a model's?",
                    *(Option({"captions": (path,)}, "captions of a model") for path in paths),
                )
            hint = "Name the file of captions, and its columns if needed."
            raise CapbiasError(f"No file holds captions of a model: {held}.", hint, "captions", "caption_column")
        if any(piece.roles.labels for piece in pieces):
            return
        for sheet in sheets:
            check_label_options(sheet, one)
        derived = one.attribute is not None and one.attribute.derived is not None
        if not (people and derived):
            more = ", and there are no human captions to derive them from" if derived else ""
            text = f"There are no labels of {one.name}{more}. Read: {held}."
            raise CapbiasError(text, "Name a table of labels.", "labels", "attribute_column")

    # images

    def _join(self, pieces: Sequence[_Piece], given: Given) -> None:
        """The images of all files, by the IDs of the collection, of the labels, or else of human captions."""
        texts = [piece for piece in pieces if not piece.roles.objects and not piece.by_rows]
        if not texts:
            return
        first = min(texts, key=_rank)
        base = first
        if known := self.held.images_of(LABELS, REFERENCES, CAPTIONS):
            ids = pd.DataFrame({"image_id": pd.Series(sorted(known), dtype=object)})
            base = _Piece(File(None), Sheet("the collection", ids, path="collection"), Roles())
            base.images = Images(ids["image_id"], "image_id")
        joins = {id(piece): _tried(piece, base, given) for piece in texts if piece is not base}
        further = [piece for piece in texts if _rank(piece) == 0]  # tables of labels may be of other images
        if base is first:
            rights = [
                join.right for piece in texts if piece not in further and isinstance(join := joins.get(id(piece)), Join)
            ]
            column = rights[0] if rights else id_alone(first.sheet, given, first.roles.used)
            first.images = base_images(first.sheet, column)
        for piece in sorted(texts, key=lambda piece: piece is not first):
            if piece is base:
                continue
            join, to = joins[id(piece)], base
            if isinstance(join, CapbiasError) and piece is not first and base is not first:
                join, to = _tried(piece, first, given), first  # new images, which may join each other
            if isinstance(join, Join) and to.images:
                piece.images = images_by(piece.sheet, to.sheet, join, to.images)
                piece.joins = join.said
            elif piece is first or piece in further:
                piece.images = base_images(piece.sheet, id_alone(piece.sheet, given, piece.roles.used))
            elif isinstance(join, CapbiasError):
                raise join

    # captions

    def _texts(self, piece: _Piece, pieces: Sequence[_Piece], given: Given) -> list[Part]:
        """The captions of a file, by captioner, and the human captions in it."""
        sheet, roles = piece.sheet, piece.roles
        if piece.by_rows and (roles.captions or roles.references):
            piece.images = _images_by_text(piece, pieces, self.held)
        parts: list[Part] = []
        for kind, columns in ((CAPTIONS, roles.captions), (REFERENCES, roles.references)):
            people = kind == REFERENCES
            if not columns or piece.images is None or (people and piece.by_rows):
                continue
            other = any(each is not piece and each.roles.captions for each in pieces)
            found = captions_of(sheet, columns, piece.images, given, piece.file.kinds, people, other)
            shown = [f"{name} ({found.used[name]})" if name in found.used else name for name in columns]
            used = {*roles.used, *piece.images.column.split("+"), *found.used}
            rest = [name for name in sheet.columns if name not in used] if not (people and roles.captions) else []
            account = {
                "Image ID": piece.images.column,
                "Human captions" if people else "Captions": ", ".join(shown),
                "Read as": "; ".join(f"{name} ({text})" for name, text in found.used.items() if name not in columns),
                "Not used": listed(rest, 20) if rest else "",
                "Captions per image": _sizes(pd.concat([each.frame["image_id"] + each.name for each in found.sets])),
                "Images that join": piece.joins,
            }
            more = {"warnings": found.warnings, "beside": people and bool(roles.captions)}
            for each in found.sets:
                stem = piece.file.name if piece.file.name != UNNAMED else ""
                numbered = each.name.isdigit() or not each.name
                name = f"{stem or (sheet.name if numbered else '')} {each.name}".strip()
                more["missing"] = each.missing
                parts.append(piece.part(kind, name, each.frame, account, found.faults, found.notes, **more))
        return parts

    def _merged(self, parts: list[Part], given: Given) -> list[Part]:
        """Human captions of several files as one; files that are parts of one captioner's captions, if the user says
        so. Raises Ask if files of captions share no image."""
        captions, people = ([part for part in parts if part.kind == kind] for kind in (CAPTIONS, REFERENCES))
        people = [part for part in people if not part.beside] or people[:1]
        said = [part for part in people if REFERENCES in part.file.kinds]
        if not said and any(one.images & other.images for one, other in combinations(people, 2)):
            raise Ask(
                f"{listed(part.title for part in people)} hold human captions of the same images. Do all count?",
                Option({"references": tuple(part.file.path for part in people)}, "all of them"),
            )
        people = [_as_one(said or people)] if people else []
        images: dict[int, frozenset[str]] = {}
        for part in captions:
            images[id(part.file)] = images.get(id(part.file), frozenset()) | part.images
        if len(images) > 1 and given.sets == PARTS:
            given.use("sets", PARTS)
            captions = [_as_one(captions)]
        elif len(images) > 1 and not any(one & other for one, other in combinations(images.values(), 2)):
            if given.sets != EACH:
                raise Ask(
                    f"{listed(dict.fromkeys(part.title for part in captions))} have no image in common. Are they parts "
                    "of one captioner's captions?",
                    Option({"sets": (PARTS,)}, "one captioner"),
                    Option({"sets": (EACH,)}, "captioners of different images"),
                )
            given.use("sets", EACH)
        return [*captions, *people]

    # labels

    def _labels(self, pieces: Sequence[_Piece], texts: Sequence[Part], given: Given) -> list[Part]:
        """The labels of all files as one table, with what they mean; of files that are stored, and whose images are
        partly the same, a table each."""
        bare = not any(one.needed for one in self.wanted)  # which columns are labels is said later
        having = [
            (piece, piece.images)
            for piece in pieces
            if piece.images and (piece.roles.labels or (bare and LABELS in piece.file.kinds))
        ]
        for one in self.wanted:
            if having and one.needed and not any(piece.roles.labels.get(one.name) for piece, _ in having):
                columns = "; ".join(f"{piece.sheet.title}: {listed(piece.sheet.columns)}" for piece, _ in having)
                raise CapbiasError(
                    f"No column has a usual name of {one.name}. Columns: {columns}.",
                    "Name one, as NAME=COLUMN, or leave the attribute out.",
                    "attribute",
                )
        ids = [set(images.ids.dropna()) for _, images in having]
        apart = not any(one & other for one, other in combinations(ids, 2))
        if len(having) > 1 and (self.needed or apart):
            having = [_one_table(having)]
        return [self._label_part(piece, images, texts, given) for piece, images in having]

    def _label_part(self, piece: _Piece, images: Images, texts: Sequence[Part], given: Given) -> Part:
        """A table of labels with what they mean."""
        sheet = piece.sheet
        table = label_table(sheet, piece.roles.labels, images, given, piece.roles.several)
        mapping, overrides = [], mapping_overrides(given.map)
        for one in self.wanted:
            columns = table.columns.get(one.name, [])
            chosen = [name for name in given.attribute_column if name in columns]
            for name in chosen:
                given.use("attribute_column", name)
            if self.needed and len(chosen or columns) > 1:
                counts = {name: table.frame[name].value_counts().head(4) for name in chosen or columns}
                shown = {name: listed(f"{label} {n:,}" for label, n in each.items()) for name, each in counts.items()}
                raise Ask(
                    f"{sheet.title}: each annotator has a column of {one.name}. Which counts?",
                    *(Option({"attribute_column": (name,)}, text) for name, text in shown.items()),
                )
            for name in chosen or columns:
                try:
                    labels = table.frame.set_index("image_id")[name]
                    mapping.append(self._mapping(one, labels, overrides.get(one.name, {}), texts))
                except CapbiasError as error:
                    if one.needed or one.name in overrides or isinstance(error, Ask):
                        raise
        read = {"image_id", *(name for columns in table.columns.values() for name in columns)}
        rest = [name for name in table.frame.columns if name not in read]
        read_as = {details["column"] for details in mapping}
        unread = [name for name, columns in table.columns.items() if read_as.isdisjoint(columns)]
        account = {
            "Image ID": images.column,
            "Labels": ", ".join(f"{name} ({', '.join(columns)})" for name, columns in table.columns.items()),
            "Not used": listed(rest, 20) if rest else "",
            "Differing between rows of an image, not used": listed(table.left_out) if table.left_out else "",
            "Rows per image": _sizes(images.ids),
            "Not read": f"labels of {listed(unread)}" if unread else "",
        }
        more = {"beside": bool(piece.roles.captions), "mapping": tuple(mapping)}
        name = piece.file.name or sheet.name
        return piece.part(LABELS, name, table.frame, account, id_faults(sheet, images), table.notes, **more)

    def _mapping(self, one: Wanted, labels: pd.Series, chosen: Mapping[str, str | None], texts: Sequence[Part]) -> dict:
        """What the labels of a column mean. Raises Ask for two labels that no spelling explains."""
        column, counts = str(labels.name), labels.value_counts().to_dict()
        attribute, mapping = attribute_and_mapping(one, column, counts, chosen, self.values)
        unread = sorted(unread_labels(attribute, mapping), key=lambda label: -counts[label])
        if len(unread) == 2 == len(attribute.values) and self.needed and not (chosen or any(mapping.values())):
            self._ask_meaning(attribute, labels, unread, texts)
        return mapping_details(attribute, column, mapping, counts)

    def _ask_meaning(self, attribute: Attribute, labels: pd.Series, unread: list[str], texts: Sequence[Part]) -> None:
        """Raises Ask if captions tell what two labels mean, such as 0 and 1."""
        ways = []
        for values in permutations(attribute.values):
            meant = dict(zip(unread, values, strict=True))
            agree = pd.concat([agreement(part.frame, attribute, labels.map(meant)) for part in texts[:2]])
            effect = f"{agree.sum():,} of {len(agree):,} captions that name one value agree with the label"
            pairs = tuple(f"{attribute.name}:{label}={value}" for label, value in meant.items())
            ways.append((agree.sum(), len(agree), Option({"map": pairs}, effect)))
        ways.sort(key=lambda way: -way[0])
        if ways[0][1] >= FEWEST_NAMED and ways[0][0] > ways[1][0]:
            shown = ", ".join(
                f"{label} {number:,}" for label, number in labels.value_counts().items() if label in unread
            )
            raise Ask(
                f"{labels.name}: what do the labels {shown} mean? They are no usual words for "
                f"{' and '.join(attribute.values)}.",
                *(option for *_, option in ways),
            )

    # objects

    def _objects(self, piece: _Piece, given: Given) -> list[Part]:
        """Objects, boxes or outlines of a file."""
        if not piece.roles.objects:
            return []
        kinds, sheet = piece.file.kinds, piece.sheet
        image = (given.columns("image_id_column", sheet.path, sheet.columns) or [""])[0]
        images = self.held.images_of(PHOTOGRAPHS, LABELS, CAPTIONS) or None
        reads = {
            OBJECTS: lambda: objects(sheet, image),
            SEGMENTS: lambda: segments(sheet, images if len(sheet.frame) > MANY_OUTLINES else None),
            BOXES: lambda: boxes(sheet),
        }
        wanted = [kind for kind in reads if kind in kinds] or [OBJECTS]
        if not kinds and sheet.format == "COCO instances" and "segmentation" in sheet.columns:
            wanted = [OBJECTS, SEGMENTS]
        parts = []
        for kind in wanted:
            try:
                table = reads[kind]()
            except CapbiasError:
                if kind == wanted[0]:
                    raise
                continue
            parts.append(
                Part(
                    kind,
                    piece.file,
                    sheet.title,
                    piece.file.name or sheet.name,
                    table.frame,
                    sheet.format,
                    table.rows,
                    kind != wanted[0],
                    (("Others", f"{table.others:,}"),),
                    table.notes,
                    problems=table.problems,
                    problem_count=table.problem_count,
                )
            )
        return parts


def _check_names(pieces: Sequence[_Piece]) -> None:
    """Raises Ask if the names of some files say that people wrote their captions."""
    captions = [piece for piece in pieces if piece.roles.captions]
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


def _rank(piece: _Piece) -> int:
    """The place of a file among those whose image IDs are those of all: labels, labels beside captions, human
    captions, others."""
    roles = piece.roles
    if roles.labels:
        return 1 if roles.captions else 0
    return 2 if roles.references and not roles.captions else 3


def _tried(piece: _Piece, base: _Piece, given: Given) -> Join | CapbiasError:
    """How two files join, or why they do not. Raises Ask."""
    try:
        return joined(piece.sheet, base.sheet, given, piece.roles.used, base.roles.used)
    except Ask:
        raise
    except CapbiasError as error:
        return error


def _images_by_text(piece: _Piece, pieces: Sequence[_Piece], held: Held) -> Images:
    """Images of rows without IDs: the image with most of the human captions of the row, and more than half of them.
    Raises CapbiasError if no row has one."""
    known = [held.references] if held.references is not None else []
    for other in pieces:
        if other.roles.references and other.images:
            found = captions_of(other.sheet, other.roles.references, other.images, Given(), (REFERENCES,), True, False)
            known += [each.frame for each in found.sets]
    with_text: dict[str, set[str]] = {}
    for frame in known:
        for text, image in zip(frame["caption"].str.strip().str.casefold(), frame["image_id"], strict=True):
            with_text.setdefault(text, set()).add(image)
    ids: list[str | None] = []
    for cell in piece.sheet.frame[piece.roles.references[0]]:
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
    note = f"{len(ids) - lost:,} rows got the image ID of their human captions; not found: {lost:,}"
    return Images(pd.Series(ids, dtype=object), piece.sheet.roles["rows"], note)


def _sizes(ids: pd.Series) -> str:
    """How many rows images have: `1 (9 images), 2 (1 image)`."""
    sizes = Counter(ids.value_counts().tolist())
    return ", ".join(f"{size} ({counted(number, 'image')})" for size, number in sorted(sizes.items())[:8])


def _as_one(parts: Sequence[Part]) -> Part:
    """The captions of several files as those of the first."""
    if len(parts) == 1:
        return parts[0]
    frame = pd.concat([part.frame for part in parts], ignore_index=True)
    frame["caption_index"] = frame.groupby("image_id", sort=False).cumcount()
    reasons = dict.fromkeys(reason for part in parts for reason in part.missing)
    missing = {reason: tuple(image for part in parts for image in part.missing.get(reason, ())) for reason in reasons}
    account = (
        *parts[0].account[:2],
        ("Files", listed(part.title for part in parts)),
        ("Captions per image", _sizes(frame["image_id"])),
    )
    notes = tuple(note for part in parts for note in part.notes)
    rows = sum(part.rows for part in parts)
    return replace(parts[0], frame=frame, missing=missing, rows=rows, account=account, notes=notes)


def _one_table(having: Sequence[tuple[_Piece, Images]]) -> tuple[_Piece, Images]:
    """The labels of several files as one table, with a row for each row of each file."""
    (first, of_first), frames = having[0], []
    roles = Roles(several=first.roles.several)
    for piece, _ in having:
        frame = piece.sheet.frame
        for attribute, names in piece.roles.labels.items():
            target = roles.labels.setdefault(attribute, first.roles.labels.get(attribute, names))
            frame = frame.rename(columns=dict(zip(names, target, strict=False)))
        frames.append(frame)
    merged = pd.concat(frames, ignore_index=True)
    sheets = [piece.sheet for piece, _ in having]
    sheet = Sheet(
        listed(each.title for each in sheets),
        merged.astype(object).where(merged.notna(), None),
        first.sheet.format,
        first.sheet.roles,
        first.sheet.path,
        first.sheet.name,
        [note for each in sheets for note in each.notes],
    )
    images = Images(pd.concat([images.ids for _, images in having], ignore_index=True), of_first.column)
    return _Piece(first.file, sheet, roles, images), images


def _with_missing(part: Part, labels: Sequence[Part]) -> Part:
    """Captions that are missing or left out, by label."""
    notes = []
    for details in labels[0].mapping[:3] if labels and part.kind == CAPTIONS else ():
        label = labels[0].frame[details["column"]].map(details["mapping"])
        value = dict(zip(labels[0].frame["image_id"], label, strict=True))
        lost = {reason: Counter(map(value.get, images)) for reason, images in part.missing.items()}
        every = sum(lost.values(), Counter(map(value.get, part.frame["image_id"])))
        for reason, of in lost.items():
            shown = ", ".join(f"{name} {of[name]:,} of {every[name]:,}" for name in details["attribute"]["values"])
            notes.append(f"{reason} captions by {details['attribute']['name']}: {shown}")
    return replace(part, warnings=(*part.warnings, *notes))


def _check_idle(sheets: Sequence[Sheet], given: Given) -> None:
    """Raises CapbiasError for what the user said that has no effect on any file."""
    if not (idle := given.idle()):
        return
    argument, _, value = idle[0].partition("=")
    columns = "; ".join(f"{sheet.title}: {listed(sheet.columns)}" for sheet in sheets)
    column = value.partition("=")[0] if argument == "rows" else value.rpartition(":")[2]
    known = any(name == column or name.startswith(f"{column}.") for sheet in sheets for name in sheet.columns)
    if not known and argument not in ("sets", "several", "attribute"):
        raise CapbiasError(f"No file has the column {column!r}.", f"Known: {columns}.", argument)
    raise CapbiasError(
        f"The choice {value!r} has no effect on these files.", f"Leave it out. Columns: {columns}.", argument
    )
