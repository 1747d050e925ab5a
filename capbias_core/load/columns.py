"""What the columns of a file are: by its format, by exact usual names, or asked about. Content decides nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from capbias_core.attributes import known_attributes
from capbias_core.attributes.labels import is_about, is_about_labeller, suggest_mapping
from capbias_core.errors import CapbiasError, nearest, short, unknown_name
from capbias_core.kinds import BOXES, CAPTIONS, LABELS, OBJECTS, REFERENCES, SEGMENTS, kind_title
from capbias_core.load.parts import Piece
from capbias_core.load.questions import Ask, File, Given, Option
from capbias_core.load.sheet import NAMES, Sheet, cell_text, is_scalar, last_part, listed, present
from capbias_core.load.tables import is_boxes
from capbias_core.types import Attribute

NEVER = NAMES["never"] + NAMES["image"]
HUMAN_FILE = re.compile(r"(?i)(?:^|[_\W])(?:humans?|refs?|references?|gts?|ground|truth|annotators?)(?:[_\W\d]|$)")
MOST_LABELS = 12


@dataclass(frozen=True)
class Wanted:
    """An attribute whose labels are looked for. attribute: None if it is only a column of labels."""

    name: str
    attribute: Attribute | None
    needed: bool = True  # False if files without its labels are fine

    @property
    def names(self) -> set[str]:
        """Usual names of its column."""
        names = (self.name, *(self.attribute.columns if self.attribute else ()))
        return {last_part(name) for name in names} | {name.casefold() for name in names}

    def value_of(self, label: str) -> str | None:
        """The value that a label is read as."""
        return suggest_mapping(self.attribute, [label])[label] if self.attribute else label


def words_in(cells: Sequence) -> float:
    """Words of a text in a column, on average; 0 unless most have several."""
    texts = [text.strip() for text in _items(cells) if isinstance(text, str) and text.strip()]
    if not texts or sum(" " not in text for text in texts) > len(texts) / 2:
        return 0.0
    return sum(len(text.split()) for text in texts) / len(texts)


def _items(cells: Sequence) -> list:
    """What is in the cells of a column, also in lists."""
    return [item for cell in present(cells) for item in (cell if isinstance(cell, list) else [cell])]


def _base(column: str) -> str:
    """The last part of a name without a number at its end: ref of `ref1`."""
    return re.sub(r"[ _-]?\d+$", "", last_part(column))


def caption_columns(sheet: Sheet) -> tuple[list[str], list[str], list[str]]:
    """Columns of captions by their usual names, further columns of varied texts, and columns of people."""
    frame = sheet.frame
    words = {name: words_in(frame[name]) for name in frame}
    human = [name for name in frame if _base(name) in NAMES["human"] and words[name] > 1.5]
    named, other = [], []
    for name in frame:
        cells = present(frame[name])
        texts = bool(cells) and all(isinstance(cell, str | list) for cell in cells)
        # A caption may be a word; an answer of one word is no caption.
        of_model = _base(name) in (*NAMES["model"], "caption", "captions") and last_part(name) != "answer"
        brief = of_model and len(cells) > len(frame) / 2
        if name in human:
            continue
        if _base(name) in (*NAMES["model"], *NAMES["plain"]) and texts and (words[name] > 0 or brief):
            named.append(name)
        elif last_part(name) not in NEVER and words[name] >= 2.5 and frame[name].map(str).nunique() > len(frame) / 5:
            other.append(name)
    return named, other, human


def label_columns(sheet: Sheet, wanted: Wanted) -> list[str]:
    """Columns with a usual name of an attribute and a value in them."""
    names = [name for name in sheet.columns if last_part(name) in wanted.names or name.casefold() in wanted.names]
    return [name for name in names if present(sheet.frame[name])]


def example(sheet: Sheet, column: str) -> str:
    """Two values of a column."""
    return " / ".join(short(item, 45) for item in _items(sheet.frame[column])[:2])


def piece_of(file: File, sheet: Sheet, wanted: Sequence[Wanted], given: Given, others: Collection[str]) -> Piece:
    """What the columns of a file are. others: the kinds that another file surely holds. Raises Ask if more than one
    reading fits, and CapbiasError if none does."""
    kinds, fixed = file.kinds, sheet.roles
    if kinds and {OBJECTS, SEGMENTS, BOXES}.issuperset(kinds):
        return Piece(file, sheet, objects=True)
    people = REFERENCES in kinds and CAPTIONS not in kinds
    captions = given.columns("caption_column", sheet.path, sheet.columns)
    references = given.columns("reference_column", sheet.path, sheet.columns)
    labels = _labels_said(sheet, wanted, given)
    if people and not references:
        captions, references = [], captions
    if not (captions or references or (labels and not fixed.get("caption"))):
        captions, references = _by_format(sheet, "caption"), _by_format(sheet, "reference")
    labels = labels or _labels_of_format(sheet, wanted)
    if not (captions or references or labels or fixed.get("objects") or set(kinds) == {LABELS}):
        captions, references = _by_name(sheet, kinds, wanted, others)
    if captions and not references and not fixed.get("caption"):
        references = [name for name in caption_columns(sheet)[2] if name not in captions]
    if {CAPTIONS, REFERENCES}.issubset(kinds) and not (captions and references):  # given as both
        captions = references = captions or references
    elif people and captions and not given.reference_column:
        captions, references = [], captions
    elif CAPTIONS in kinds and not captions:
        captions, references = references, []
    if not (given.attribute_column and labels):
        labels = {one.name: names for one in wanted if (names := label_columns(sheet, one))} | labels
    texts = captions or references
    objects = OBJECTS in kinds or (
        not (texts or labels or kinds) and bool(fixed.get("objects") or _are_objects(sheet, wanted))
    )
    if texts and labels and LABELS not in kinds and LABELS in others:
        names = listed(name for names in labels.values() for name in names)
        sheet.notes.append(f"{names} not read: another file holds the labels")
        labels = {}

    def read(kind: str) -> bool:
        """Whether a kind is read: as the user said, and what is beside captions, unless another file holds it."""
        return not kinds or kind in kinds or (CAPTIONS in kinds and bool(captions) and kind not in others)

    piece = Piece(
        file,
        sheet,
        captions if not kinds or CAPTIONS in kinds else [],
        references if read(REFERENCES) else [],
        labels if read(LABELS) else {},
        objects,
    )
    _check(piece, wanted, given)
    return piece


def _labels_said(sheet: Sheet, wanted: Sequence[Wanted], given: Given) -> dict[str, list[str]]:
    """The columns of labels that the user named, by attribute."""
    labels = {}
    columns = given.columns("attribute_column", sheet.path, sheet.columns)
    for one in wanted:
        pairs = [pair for pair in given.attribute if pair.partition("=")[0] == one.name]
        if named := [pair.partition("=")[2] for pair in pairs if pair.partition("=")[2] in sheet.columns]:
            labels[one.name] = named
            for column in named:
                given.use("attribute", f"{one.name}={column}")
        if columns and (len(wanted) == 1 or set(columns) & set(label_columns(sheet, one))):
            labels[one.name] = columns
    return labels


def _labels_of_format(sheet: Sheet, wanted: Sequence[Wanted]) -> dict[str, list[str]]:
    """The columns of labels that the format fixes, by attribute."""
    fixed = sheet.roles.get("label")
    if isinstance(fixed, dict):
        return {one.name: fixed[one.name] for one in wanted if one.name in fixed}
    names = [name for name in fixed if name in sheet.columns] if isinstance(fixed, list) else []
    labels = set(map(cell_text, _items(sheet.frame[names[0]]))) if names else set()
    fitting = [one.name for one in wanted if len(wanted) == 1 or any(map(one.value_of, labels))]
    return {name: names for name in fitting[:1] if names}


def _by_format(sheet: Sheet, key: str) -> list[str]:
    """The column whose role the format fixes, or of its fields the only one of texts."""
    for name in sheet.roles.get(key, ()):
        if name in sheet.columns:
            return [name]
        inner = [each for each in sheet.columns if each.startswith(f"{name}.") and words_in(sheet.frame[each]) > 1.5]
        usual = [each for each in inner if _base(each) in (*NAMES["plain"], *NAMES["model"])]
        if len(inner) == 1 or len(usual) == 1:
            return (usual or inner)[:1]
    return []


def _by_name(
    sheet: Sheet, kinds: Sequence[str], wanted: Sequence[Wanted], others: Collection[str]
) -> tuple[list[str], list[str]]:
    """Columns of captions of a model and of people by their usual names. Raises Ask if several columns of texts may
    hold the captions."""
    named, other, human = caption_columns(sheet)
    people = REFERENCES in kinds and CAPTIONS not in kinds
    if any(label_columns(sheet, one) for one in wanted) and not named and not (other and CAPTIONS in kinds):
        return [], human if human and not other else []
    if not kinds and _are_objects(sheet, wanted):
        return [], []
    if not named and (people or not other):
        return [], human or other
    loose = [name for name in other if name not in sheet.fields or any(name.startswith(each) for each in named)]
    if len(named) == 1 and (not loose or (_base(named[0]) in NAMES["model"] and set(loose) <= set(human))):
        return named, human
    columns = [*named, *other]
    if people and not any(_base(name) in NAMES["model"] for name in columns):
        return [], columns
    raise _which_captions(sheet, named, other, people, others)


def _are_objects(sheet: Sheet, wanted: Sequence[Wanted]) -> bool:
    objects = {"objects", "object", "categories"} & {last_part(name) for name in sheet.columns}
    if not (is_boxes(sheet) or (objects and not caption_columns(sheet)[0])):
        return False
    return not any(label_options(sheet, one) for one in wanted)


def _which_captions(sheet: Sheet, named: list[str], other: list[str], people: bool, others: Collection[str]) -> Ask:
    """The question which columns of texts are the captions."""
    columns = [*named, *other] if people else [*other, *named]
    if len({name.rpartition(".")[0] for name in columns}) == 1 and "." in columns[0]:  # fields of one object
        columns.sort(key=lambda name: words_in(sheet.frame[name]))
    one_by_one = [Option({"caption_column": (name,)}, f"one captioner: {example(sheet, name)}") for name in columns]
    every = {"caption_column": tuple(columns)}
    each = [Option(every, f"a captioner each: {listed(columns, 4)}")] if len(columns) > 1 else []
    of_people = every if people else {"references": (sheet.path,), "reference_column": tuple(columns)}
    written = [Option(of_people, f"all {len(columns)} columns are captions by people")]
    alike = len({_base(name) for name in columns}) == 1 and _base(columns[0]) not in NAMES["model"]
    plain = [name for name in columns if HUMAN_FILE.search(name)]
    plain = plain or [name for name in named if _base(name) in NAMES["plain"]]
    models = tuple(name for name in columns if name not in plain)
    mixed = []
    if plain and models and not (alike and len(plain) > 1):
        shown = f"{listed(plain)} by people, a captioner each: {listed(models, 4)}"
        mixed = [Option({"caption_column": models, "reference_column": tuple(plain)}, shown)]
    captioners = [*each, *one_by_one[:3]] if REFERENCES in others and not mixed else [*one_by_one[:3], *each]
    if CAPTIONS in others or (alike and len(columns) > 2):
        options = [*written, *mixed, *captioners]
    else:
        options = [*mixed, *captioners[: 2 if mixed else 4], *written]
    return Ask(
        f"{sheet.title}: which are the captions? Its columns of texts are {listed(columns, 8)}, "
        "not one alone with a usual name.",
        *options,
    )


def _check(piece: Piece, wanted: Sequence[Wanted], given: Given) -> None:
    """Raises Ask or CapbiasError if a file does not hold what it was given as, or nothing that is known."""
    sheet, kinds = piece.sheet, piece.file.kinds
    for name in (*piece.captions, *piece.references):
        items = _items(sheet.frame[name])
        if items and all(isinstance(item, int | float) for item in items) and not is_scalar(sheet.frame[name]):
            raise CapbiasError(
                f"{sheet.title}: {name} holds numbers of tokens, not texts.", "Decode them first.", "caption_column"
            )
    for one in wanted:
        columns = piece.labels.get(one.name, ())
        tables = any(pair.startswith(f"{one.name}=") for pair in given.attribute)  # a table each
        if len(columns) > 1 and not (tables or given.several):
            check_label_options(sheet, one, columns)
    bare = not any(one.needed for one in wanted)  # which columns are labels is said later
    holds = {CAPTIONS: piece.captions, REFERENCES: piece.references, LABELS: piece.labels}
    nothing = not any(holds.values()) and not piece.objects
    lacking = [kind for kind, held in holds.items() if kind in kinds and not held and not (kind == LABELS and bare)]
    for one in wanted if nothing and (not kinds or LABELS in kinds) else ():
        check_label_options(sheet, one)
        if one.attribute is None and nearest(one.name, known := [*known_attributes(), *sheet.columns]):
            raise unknown_name("attribute or column", one.name, known)
    if lacking or (nothing and not kinds):
        said = {LABELS: f"labels of {' or '.join(one.name for one in wanted) or 'an attribute'}"}
        what = " and no ".join(said.get(kind, kind_title(kind)) for kind in lacking or (CAPTIONS, LABELS))
        raise CapbiasError(
            f"{sheet.title} ({sheet.format}) holds no {what}; its columns are {listed(sheet.columns)}.",
            "Name the columns to read, or another file.",
            *(lacking or ("caption_column", "attribute_column")),
        )


# labels


def _is_flag(labels: Sequence[str]) -> bool:
    return bool(labels) and set(map(str.lower, labels)) <= {"true", "false", "0", "1", "yes", "no"}


def check_label_options(sheet: Sheet, wanted: Wanted, columns: Sequence[str] = ()) -> None:
    """Raises Ask if a column may hold the labels of an attribute. columns: several with a usual name."""
    if options := label_options(sheet, wanted, columns):
        said = "several columns may hold labels" if columns else "no column has a usual name"
        raise Ask(f"{sheet.title}: {said} of {wanted.name}. Which holds the labels?", *options)


def label_options(sheet: Sheet, wanted: Wanted, columns: Sequence[str] = ()) -> list[Option]:
    """Columns that may hold the labels of an attribute, the best first. columns: the only ones."""
    attribute = wanted.attribute
    if attribute is None and not columns:
        return []
    single: list[tuple[float, str, str]] = []
    for name in columns or sheet.columns:
        items = _items(sheet.frame[name])
        counts = Counter(map(cell_text, items))
        few = bool(columns) or 2 <= len(counts) <= MOST_LABELS
        if not few or not all(isinstance(item, str | int | float) for item in items):
            continue
        known = sum(number for label, number in counts.items() if wanted.value_of(label)) / len(items)
        named = bool(columns) or (attribute is not None and is_about(attribute, name))
        if named or (known > 0.5 and not _is_flag(list(counts))):
            words = set(re.split(r"[._ -]", name.lower()))
            final = bool(words & {"majority", "consensus", "final", "gold", "true", "label"})
            shown = ", ".join(f"{label} {number:,}" for label, number in counts.most_common(4))
            single.append((known + final - 2 * is_about_labeller(name), name, shown))
    single.sort(key=lambda each: -each[0])
    options = [Option({"attribute_column": (name,)}, shown) for _, name, shown in single]
    names = tuple(name for score, name, _ in single if score >= 0.5)
    if len(names) > 1 and (columns or len(set(map(_stem, names))) == 1):
        majority = Option({"attribute_column": names, "several": ("majority",)}, "the majority of them")
        options.insert(0 if len(names) > 2 and not columns else len(options), majority)
    if wanted.needed:
        return options
    # Where several attributes are read, `attribute` names the column.
    return [
        Option({"attribute": tuple(f"{wanted.name}={column}" for column in answer["attribute_column"])}, effect)
        for answer, effect in ((option.answer, option.effect) for option in options)
    ]


def _stem(column: str) -> str:
    name = last_part(column)
    return re.sub(r"[\d_ -]+", "", name) if re.search(r"\d", column) else name.partition("_")[0]


# rows


def selected(sheet: Sheet, given: Given, wanted: Sequence[Wanted]) -> Sheet:
    """The rows that the user asks for. Raises Ask for a column that looks like the status of a review, and CapbiasError
    if no row is left. Numbers such as `rank=min` choose among captions of an image, later."""
    known = {sheet.roles.get("keep", ("",))[0], *(name for one in wanted for name in label_columns(sheet, one))}
    known |= set(sheet.roles["label"]) if isinstance(sheet.roles.get("label"), list) else set()
    for rule, column, value in given.rows_of(sheet.path, sheet.columns):
        known.add(column)
        if value in ("min", "max"):
            continue
        given.use("rows", rule)
        if value == "*":
            continue
        keep = sheet.frame[column].map(cell_text).isin(value.split("|"))
        if not keep.any():
            values = listed(dict.fromkeys(map(cell_text, present(sheet.frame[column]))), 6)
            raise CapbiasError(f"No row of {sheet.title} has {column} {value}.", f"Known: {values}.", "rows")
        sheet = sheet.kept(keep)
        shown = value.replace("|", " or ")
        sheet.notes.append(f"{keep.sum():,} of {len(keep):,} rows read, those where {column} is {shown}")
    for name in sheet.columns:
        counts = Counter(map(cell_text, present(sheet.frame[name]) if is_scalar(sheet.frame[name]) else ()))
        if name in known or last_part(name) in NAMES["captioner"] or not 1 < len(counts) <= 8:
            continue
        values, usual = [value.lower() for value in counts], last_part(name) in NAMES["status"]
        flags = usual and _is_flag(values)
        bad = set(values) & set(NAMES["bad"])
        if not flags and not (bad and (usual or set(values) <= {*NAMES["good"], *NAMES["bad"]})):
            continue
        meant = [*NAMES["good"], "true", "1"] if last_part(name) not in NAMES["negative"] else ["false", "0", "no"]
        good = [value for value in counts if value.lower() in meant] or [max(counts, key=counts.__getitem__)]
        shown = ", ".join(f"{value} {number:,}" for value, number in counts.most_common(6))
        raise Ask(
            f"{sheet.title}: the column {name} looks like the status of a review ({shown}). Which rows count?",
            Option({"rows": (f"{name}={'|'.join(good)}",)}, f"{sum(counts[value] for value in good):,} rows"),
            Option({"rows": (f"{name}=*",)}, "all rows"),
        )
    return sheet
