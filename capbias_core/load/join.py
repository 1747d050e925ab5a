"""Which IDs of two files name the same image: they join or they do not.

IDs are compared at several levels, from as written to what is left of a file name. A level at which two images of one
file would become one is no level. The columns of image IDs are those that join most.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote

import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.load.ids import UNSTORABLE, last_part, normalise_image_id, stem
from capbias_core.load.questions import Ask, Given, Option
from capbias_core.load.sheet import RowErrors, Sheet, is_missing, is_scalar, listed
from capbias_core.load.sheet import last_part as last_name
from capbias_core.types import counted

USUAL = """
    image_id img_id imageid imgid image_name img_name file_name filename image_file image_path img_path filepath
    file_path image img cocoid coco_id photo photo_id picture picture_id image_url img_url file path url id question_id
    idx key custom_id doc_id item image_link image_uri images.file_name
"""
KNOWN = frozenset(USUAL.split())
FOLDERS = ("folder", "dir", "directory", "split", "subset", "dataset")
SURE, ASKED, FEWEST = 0.5, 0.1, 30  # shares of the images of the smaller file that join; images from which it is asked
THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
ROUNDED = re.compile(r"\d\.\d+[eE]\+\d+")


def written(value: object) -> str | None:
    """An ID as text, whole numbers without a decimal point or zeros before; None without one.

    >>> [written(value) for value in (785.0, "000785", "393,031", " a.jpg", "")]
    ['785', '785', '393031', 'a.jpg', None]
    """
    if type(value) is int:
        return str(value)
    if is_missing(value) or isinstance(value, bool | list | dict | bytes):
        return None
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else str(value)
    text = str(value).strip()
    if not text or UNSTORABLE.search(text):
        return None
    text = text.replace(",", "") if THOUSANDS.fullmatch(text) else text
    return (text.partition(".")[0].lstrip("0") or "0") if re.fullmatch(r"\d+(?:\.0+)?", text, re.ASCII) else text


def _parts(text: str) -> list[str]:
    if "/" not in text and "\\" not in text:
        return [text]
    bare = unquote(re.sub(r"[?#][^/\\]*$", "", text)) if "://" in text else text
    return [part for part in bare.replace("\\", "/").split("/") if part and not part.endswith(":")]


def _normal(text: str) -> str:
    try:
        return normalise_image_id(text)
    except ValueError:
        return text


class Level(NamedTuple):
    """How IDs are compared. key: of an ID, by the least number of parts of a path in both files."""

    name: str
    key: Callable[[str, int], str]


LEVELS = (
    Level("as written", lambda text, shared: text),
    Level("by COCO's number", lambda text, shared: _normal(text)),
    Level("by the end of the path", lambda text, shared: "/".join(_parts(text)[-shared:]).casefold()),
    Level("by the path without its ending", lambda text, shared: "/".join([*_parts(text)[-shared:-1], stem(text)])),
    Level("by the last part of the path", lambda text, shared: last_part(text)),
    Level("by the file name without its ending", lambda text, shared: stem(text)),
)


@dataclass(frozen=True)
class Join:
    """How the IDs of one column join those of another. here, there: ID -> what is compared, of either side."""

    left: str
    right: str
    level: str
    share: float  # of the images of the smaller side
    images: int
    here: Mapping[str, str] = field(repr=False)
    there: Mapping[str, str] = field(repr=False)

    def mapping(self) -> dict[str, str]:
        """ID -> that of the other side, of those that join."""
        by_key = {key: image for image, key in self.there.items()}
        return {image: by_key[key] for image, key in self.here.items() if key in by_key}

    @property
    def examples(self) -> str:
        """Two IDs that join."""
        pairs = list(self.mapping().items())[:2]
        return ", ".join(f"{here} is {there}" if here != there else here for here, there in pairs)


def join_ids(left: Iterable[str], right: Iterable[str], columns: tuple[str, str] = ("", "")) -> Join | None:
    """The level that joins most images one to one, the plainest first; None if none joins."""
    left, right = list(dict.fromkeys(left)), list(dict.fromkeys(right))
    shared = min((len(_parts(image)) for image in (*left, *right)), default=1)
    best: Join | None = None
    for level in LEVELS:
        here, there = ({image: level.key(image, shared) for image in side} for side in (left, right))
        common = set(here.values()) & set(there.values())
        if not common or any(
            max(Counter(key for key in side.values() if key in common).values()) > 1 for side in (here, there)
        ):
            continue
        if level is not LEVELS[0] and any(
            _other_split(*pair) for pair in Join("", "", "", 0, 0, here, there).mapping().items()
        ):
            continue
        join = Join(*columns, level.name, len(common) / min(len(left), len(right)), len(common), here, there)
        if best is None or join.share > best.share + 0.02:
            best = join
        if join.share > 0.98:
            break
    return best


def _other_split(here: str, there: str) -> bool:
    """Whether two IDs are of different splits, such as train/7.jpg and val/7.jpg."""
    splits = [
        {name.lower()[:3] for name in re.findall(r"(?i)(?<![a-z])(train|val|test|dev)", image)}
        for image in (here, there)
    ]
    return all(splits) and splits[0].isdisjoint(splits[1])


# columns of IDs


def ids_of(sheet: Sheet, column: str) -> pd.Series:
    """The IDs of rows; of several columns `a+b` joined to a path."""
    if column not in sheet.ids:
        names = [column] if column in sheet.frame else column.split("+")
        columns = [[written(value) for value in sheet.frame[name].tolist()] for name in names]
        joined = columns[0]
        if len(names) > 1:
            joined = [None if None in row else "/".join(map(str, row)) for row in zip(*columns, strict=True)]
        sheet.ids[column] = pd.Series(joined, dtype=object)
    return sheet.ids[column]


def id_columns(sheet: Sheet, given: Given, but: Sequence[str] = ()) -> list[str]:
    """The columns that may hold image IDs, usual names first; the given one alone."""
    if chosen := given.columns("image_id_column", sheet.path, sheet.columns):
        return chosen[:1]
    fixed = sheet.roles.get("image")
    if isinstance(fixed, str) and fixed in sheet.frame:
        more = ["images.file_name"] if "images.file_name" in sheet.frame else []
        return [fixed, *more]
    scalar = [name for name in sheet.columns if name not in but and is_scalar(sheet.frame[name])]
    columns = [name for name in scalar if _may_name_images(sheet, name)]
    order = {name: place for place, name in enumerate(USUAL.split())}
    columns.sort(key=lambda name: order.get(last_name(name), len(order)))
    folders = [name for name in scalar if last_name(name) in FOLDERS and 1 < sheet.frame[name].nunique() < 60]
    return columns + [f"{folder}+{name}" for folder in folders for name in columns if name not in folders]


def _may_name_images(sheet: Sheet, name: str) -> bool:
    """Whether most cells of a column are IDs of enough images, and neither prose nor fractions."""
    cells, ids = sheet.frame[name], ids_of(sheet, name)
    if ids.notna().mean() <= 0.5 or ids.nunique() < max(min(2, len(cells)), len(cells) / 60):
        return False
    texts = [cell for cell in cells if isinstance(cell, str) and cell]
    if any(isinstance(cell, float) and cell == cell and not cell.is_integer() for cell in cells):
        return False
    if sum(map(_is_fraction, texts)) > len(texts) / 2:
        return False
    words = sum(cell.strip().count(" ") for cell in texts) > 1.5 * len(texts) and last_name(name) not in KNOWN
    return not words or sum("/" in cell for cell in texts) > len(texts) / 2


def _is_fraction(text: str) -> bool:
    return "." in text and text.replace(".", "").lstrip("-").isdigit() and not text.endswith(".0")


def id_alone(sheet: Sheet, given: Given, but: Sequence[str]) -> str:
    """The column of image IDs of a file that is compared with no other: by its usual name. Raises Ask, or CapbiasError
    if no column may hold them."""
    columns = id_columns(sheet, given, but)
    usual = [name for name in columns if last_name(name) in KNOWN]
    merging = [name for name in usual if sheet.frame[name].nunique() < len(sheet.frame)]
    if usual and usual[0] in merging:  # folders in which file names repeat
        pairs = [name for name in columns if "+" in name and name.endswith(f"+{usual[0]}")]
        whole = [name for name in pairs if ids_of(sheet, name).nunique() > ids_of(sheet, usual[0]).nunique()]
        if whole:
            options = [
                Option(
                    {"image_id_column": (f"{sheet.path}:{name}",)},
                    f"{ids_of(sheet, name).nunique():,} images, such as {ids_of(sheet, name).iloc[0]}",
                )
                for name in (whole[0], usual[0])
            ]
            raise Ask(f"{sheet.title}: which columns name an image?", *options)
    if usual:
        return usual[0]
    if not columns:
        raise CapbiasError(
            f"{sheet.title} has no column of image IDs; its columns are {listed(sheet.columns)}.",
            "Name the column of image IDs.", "image_id_column",
        )  # fmt: skip
    if len(columns) == 1:
        return columns[0]
    options = [
        Option(
            {"image_id_column": (f"{sheet.path}:{name}",)},
            f"such as {listed(ids_of(sheet, name).dropna().unique()[:2])}",
        )
        for name in columns
    ]
    raise Ask(f"{sheet.title}: which column holds the image IDs?", *options)


def joined(sheet: Sheet, base: Sheet, given: Given, but: Sequence[str], base_but: Sequence[str]) -> Join:
    """How the rows of two files join. Raises Ask if two ways fit or few images join, and CapbiasError if hardly any."""
    rights = {name: list(ids_of(base, name).dropna().unique()) for name in id_columns(base, given, base_but)}
    found = []
    lefts = id_columns(sheet, given, but)
    for left in lefts:
        ids = list(ids_of(sheet, left).dropna().unique())
        found += [join for right, others in rights.items() if (join := join_ids(ids, others, (left, right)))]
    every = found
    most = max((join.images for join in found if join.share >= SURE), default=0)
    found = [join for join in found if 2 * join.images >= most]  # the number of a caption joins the first few images
    found = [join for join in found if not (_repeats(sheet, join.left, given) and _repeats(base, join.right, given))]
    found.sort(key=lambda join: (-round(join.share, 2), -join.images, join.left.count("+") + join.right.count("+")))
    chosen = (
        {f"{sheet.path}:{found[0].left}", f"{base.path}:{found[0].right}"} <= set(given.image_id_column)
        if found
        else False
    )
    if not found or (found[0].share < SURE and not (chosen and found[0].images >= FEWEST)):
        if found and found[0].share >= ASKED and found[0].images >= FEWEST:
            best = found[0]
            question = (
                f"Only {best.images:,} of {counted(len(best.here), 'image')} of {sheet.title} and of "
                f"{len(best.there):,} of {base.title} join. Are they of the same images, of which each has a part?"
            )
            raise Ask(question, Option(_answer(sheet, base, best), f"yes: {best.examples}"))
        raise _apart(sheet, base, given, but, base_but, found[0] if found else None)
    best = found[0]
    if not chosen and _count_rows(sheet, base, best):
        _check_rows(sheet, base, best, every, lefts, list(rights))
    others = [join for join in found[1:8] if join.share >= SURE]
    others = [join for join in others if not _same_rows(sheet, base, best, join)]
    if others and not chosen and (others[0].share >= 0.9 or best.share < 0.9):
        options = [
            Option(
                _answer(sheet, base, join),
                f"{join.images:,} of {counted(len(join.here), 'image')} join {join.level}: {join.examples}",
            )
            for join in (best, *others[:2])
        ]
        raise Ask(
            f"Which column says the image, in {sheet.title} and in {base.title}? Two fit, and pair other rows.",
            *options,
        )
    return best


def _count_rows(sheet: Sheet, base: Sheet, join: Join) -> bool:
    """Whether both columns count as rows are counted, of which a filter may leave a tenth: such join whatever two files
    hold."""
    for numbers in (ids_of(sheet, join.left).dropna().unique(), ids_of(base, join.right).dropna().unique()):
        if not all(re.fullmatch(r"\d{1,15}", number) for number in numbers):
            return False
        if max(map(int, numbers)) - min(map(int, numbers)) >= 10 * len(numbers):
            return False
    return True


def _check_rows(
    sheet: Sheet, base: Sheet, best: Join, found: Sequence[Join], lefts: Sequence[str], rights: Sequence[str]
) -> None:
    """Raises Ask if both files have columns of a more usual name than those that count rows. lefts, rights: columns
    that may hold IDs."""
    place = {name: number for number, name in enumerate(USUAL.split())}

    def before(one: str, other: str) -> bool:
        return place.get(last_name(one), len(place)) < place.get(last_name(other), len(place))

    lefts = [name for name in lefts if before(name, best.left)]
    rights = [name for name in rights if before(name, best.right)]
    if not lefts or not rights:
        return
    rivals = [join for join in found if join.left in lefts and join.right in rights]
    rivals.sort(key=lambda join: -join.images)
    options = [
        Option(
            _answer(sheet, base, join),
            f"{join.images:,} of {counted(len(join.here), 'image')} join {join.level}: {join.examples}",
        )
        for join in (*rivals[:1], best)
    ]
    raise Ask(
        f"{best.left} of {sheet.title} and {best.right} of {base.title} look like numbers of rows, and join more "
        f"images than {lefts[0]} and {rights[0]}. Which says the image?",
        *options,
    )


def _repeats(sheet: Sheet, column: str, given: Given) -> bool:
    """Whether a column, which nobody says holds IDs, has its values again and again, such as a split."""
    ids = ids_of(sheet, column).dropna()
    named = last_name(column.rpartition("+")[2]) in KNOWN or column == sheet.roles.get("image")
    return (
        2 * ids.nunique() < len(ids)
        and not named
        and column not in given.columns("image_id_column", sheet.path, sheet.columns)
    )


def _answer(sheet: Sheet, base: Sheet, join: Join) -> dict[str, tuple[str, ...]]:
    return {"image_id_column": (f"{sheet.path}:{join.left}", f"{base.path}:{join.right}")}


def _apart(
    sheet: Sheet, base: Sheet, given: Given, but: Sequence[str], base_but: Sequence[str], best: Join | None
) -> CapbiasError:
    """The error for files of which hardly an image joins."""
    for each in (sheet, base):
        for name in each.columns:
            cells = [str(cell) for cell in each.frame[name][:100]]
            if sum(bool(ROUNDED.fullmatch(cell)) for cell in cells) > len(cells) / 2:
                return CapbiasError(
                    f"{each.title}: a spreadsheet rounded the IDs of its column {name}, such as {cells[0]}.",
                    "Save them as text.",
                )
    for each, without in ((sheet, but), (base, base_but)):
        if not id_columns(each, given, without):
            return CapbiasError(
                f"{each.title} has no column of image IDs; its columns are {listed(each.columns)}.",
                "Add the image ID of each row.", "image_id_column",
            )  # fmt: skip
    most = (
        f"only {best.images:,} of {counted(len(best.here), 'image')} join ({best.left} and {best.right}, {best.level})"
        if best
        else "no image ID is equal"
    )

    def shown(each: Sheet, without: Sequence[str]) -> str:
        names = id_columns(each, given, without)[:4]
        return "; ".join(f"{name}: {listed(ids_of(each, name).dropna().unique()[:2])}" for name in names) or "none"

    return CapbiasError(
        f"No image of {sheet.title} is surely in {base.title}: {most}.",
        f"Columns that may hold IDs: in {sheet.title} {shown(sheet, but)}; in {base.title} {shown(base, base_but)}. "
        "Check that both are of the same images.",
        "image_id_column",
    )


def _same_rows(sheet: Sheet, base: Sheet, first: Join, second: Join) -> bool:
    """Whether two joins pair the same rows."""
    pairs = []
    for join in (first, second):
        to: dict[str, int] = {}
        for row, image in enumerate(ids_of(base, join.right)):
            if image is not None:
                to.setdefault(join.there[image], row)
        left = ids_of(sheet, join.left)
        pairs.append([to.get(join.here[image]) if image is not None else None for image in left])
    both = [(one, two) for one, two in zip(*pairs, strict=True) if one is not None and two is not None]
    known = min(sum(row is not None for row in side) for side in pairs)
    return sum(one == two for one, two in both) >= 0.98 * known


# images of rows


@dataclass(frozen=True)
class Images:
    """The images of a file's rows by the IDs of the base, and how they were found."""

    ids: pd.Series  # image ID of each row, None without one
    column: str
    how: str = ""  # a sentence if IDs are compared other than as written


def canonical(ids: Iterable[str | None]) -> dict[str, str]:
    """ID -> image ID as it is stored: COCO's number, unless two images would become one."""
    unique = [image for image in dict.fromkeys(ids) if image is not None]
    normal = {image: _normal(image) for image in unique}
    twice = {image for image, count in Counter(normal.values()).items() if count > 1}
    return {image: image if other in twice else other for image, other in normal.items()}


def base_images(sheet: Sheet, column: str) -> Images:
    """The images of the base."""
    ids = ids_of(sheet, column)
    stored = canonical(ids)
    return Images(ids.map(stored).astype(object).where(ids.notna(), None), column)


def images_by(sheet: Sheet, base: Sheet, join: Join, of_base: Images) -> Images:
    """The images of a file that joins the base; those that the base lacks keep their IDs, unless another has them."""
    to_base = dict(zip(ids_of(base, join.right), of_base.ids, strict=True))
    ids = ids_of(sheet, join.left)
    stored = canonical(ids)
    mapping = {image: to_base[other] for image, other in join.mapping().items() if to_base.get(other) is not None}
    taken = set(of_base.ids.dropna())
    for image, other in stored.items():
        if image not in mapping:
            mapping[image] = f"{other} (another image)" if other in taken else other
    how = ""
    if join.level not in (LEVELS[0].name, LEVELS[1].name):
        how = f"{join.images:,} of {counted(len(join.here), 'image')} joined {join.level}, such as {join.examples}"
    return Images(ids.map(mapping).astype(object).where(ids.notna(), None), join.left, how)


def id_faults(sheet: Sheet, images: Images) -> RowErrors:
    """The faults of a file with the rows that have no image ID."""
    faults = sheet.faults.copy()
    for place in images.ids.index[images.ids.isna()]:
        cell = sheet.frame[images.column].iloc[place] if images.column in sheet.frame else None
        what = (
            "holds a NUL character or half a surrogate pair"
            if isinstance(cell, str) and UNSTORABLE.search(cell)
            else "is empty"
            if isinstance(cell, str)
            else "is missing"
        )
        faults.add(sheet.numbers[place], f"the image id {what}")
    return faults
