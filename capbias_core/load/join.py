"""Which IDs of two files name the same image: they join or they do not.

IDs are compared at several levels, from as written to what is left of a file name. A level at which two images of one
file would become one is no level. The columns of image IDs are those that join most.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from urllib.parse import unquote

import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.load.ids import UNSTORABLE, normalise_image_id, stem
from capbias_core.load.parts import Piece
from capbias_core.load.questions import Ask, Given, Option
from capbias_core.load.sheet import NAMES, Sheet, is_missing, is_scalar, last_part, listed, present
from capbias_core.types import counted

SURE, ASKED, FEWEST = 0.5, 0.1, 30  # shares of the images of the smaller file that join; images from which it is asked
THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
ORDER = {name: place for place, name in enumerate(NAMES["image"])}


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


# How IDs are compared; shared: the least number of parts of a path in both files.
LEVELS: dict[str, Callable[[str, int], str]] = {
    "as written": lambda text, shared: text,
    "by COCO's number": lambda text, shared: _normal(text),
    "by the path without its ending": lambda text, shared: "/".join([*_parts(text)[-shared:-1], stem(text)]).casefold(),
    "by the file name without its ending": lambda text, shared: stem(text),
}
PLAIN = list(LEVELS)[:2]


@dataclass(frozen=True)
class Join:
    """How the IDs of one column join those of another. pairs: ID -> that of the other side."""

    left: str
    right: str
    level: str
    share: float  # of the images of the smaller side
    pairs: Mapping[str, str] = field(repr=False)
    of: int  # images of this side
    there: int  # and of the other

    @property
    def images(self) -> int:
        """The images that join."""
        return len(self.pairs)

    @property
    def said(self) -> str:
        """`600 of 600 images`"""
        return f"{self.images:,} of {counted(self.of, 'image')}"

    @property
    def examples(self) -> str:
        """Two IDs that join."""
        pairs = list(self.pairs.items())[:2]
        return ", ".join(f"{here} is {there}" if here != there else here for here, there in pairs)


def join_ids(left: Iterable[str], right: Iterable[str], columns: tuple[str, str] = ("", "")) -> Join | None:
    """The level that joins most images one to one, the plainest first; None if none joins."""
    left, right = list(dict.fromkeys(left)), list(dict.fromkeys(right))
    shared = min((len(_parts(image)) for image in (*left, *right)), default=1)
    best: Join | None = None
    for level, key in LEVELS.items():
        here, there = ([(key(image, shared), image) for image in side] for side in (left, right))
        of_key = dict(there)
        pairs = {image: of_key[each] for each, image in here if each in of_key}
        keys = {each for each, _ in here} & of_key.keys()
        merging = len(pairs) > len(keys) or sum(each in keys for each, _ in there) > len(keys)
        if not keys or merging or (level != PLAIN[0] and any(_other_split(*pair) for pair in pairs.items())):
            continue
        join = Join(*columns, level, len(pairs) / min(len(left), len(right)), pairs, len(left), len(right))
        if best is None or join.share > best.share + 0.02:
            best = join
        if join.share > 0.98:
            break
    return best


def _other_split(here: str, there: str) -> bool:
    """Whether two IDs are of different splits, such as train/7.jpg and val/7.jpg."""
    splits = [
        {name.lower() for name in re.findall(r"(?i)(?<![a-z])(train|val|test|dev)", each)} for each in (here, there)
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


def id_columns(piece: Piece, given: Given) -> list[str]:
    """The columns that may hold image IDs, usual names first; the given one alone."""
    sheet = piece.sheet
    if chosen := given.columns("image_id_column", sheet.path, sheet.columns):
        return chosen[:1]
    fixed = sheet.roles.get("image")
    if isinstance(fixed, str) and fixed in sheet.frame:
        more = ["images.file_name"] if "images.file_name" in sheet.frame else []
        return [fixed, *more]
    scalar = [name for name in sheet.columns if name not in piece.used and is_scalar(sheet.frame[name])]
    columns = [name for name in scalar if _may_name_images(sheet, name)]
    columns.sort(key=_place)
    folders = [name for name in scalar if last_part(name) in NAMES["folder"] and 1 < sheet.frame[name].nunique() < 60]
    return columns + [f"{folder}+{name}" for folder in folders for name in columns if name not in folders]


def _place(column: str) -> int:
    """The place of a column among the usual ones; a large number if its name is not usual."""
    return ORDER.get(last_part(column.rpartition("+")[2]), len(ORDER))


def _may_name_images(sheet: Sheet, name: str) -> bool:
    """Whether most cells of a column are IDs of enough images, and neither prose nor fractions."""
    cells, ids = present(sheet.frame[name]), ids_of(sheet, name)
    if ids.notna().mean() <= 0.5 or ids.nunique() < max(min(2, len(ids)), len(ids) / 60):
        return False
    if sum(map(_is_fraction, map(str, cells))) > len(cells) / 2:
        return False
    words = sum(str(cell).strip().count(" ") for cell in cells) > 1.5 * len(cells)
    return not words or name in ORDER or sum("/" in str(cell) for cell in cells) > len(cells) / 2


def _is_fraction(text: str) -> bool:
    return "." in text and text.replace(".", "").lstrip("-").isdigit() and not text.endswith(".0")


def id_alone(piece: Piece, given: Given) -> str:
    """The column of image IDs of a file that is compared with no other: by its usual name. Raises Ask, or CapbiasError
    if no column may hold them."""
    sheet, columns = piece.sheet, id_columns(piece, given)
    if not columns:
        raise _without_ids(sheet)
    if usual := [name for name in columns if _place(name) < len(ORDER) and "+" not in name]:
        first = usual[0]
        folders = [name for name in columns if name.endswith(f"+{first}")]  # in which file names repeat
        columns = [name for name in folders if ids_of(sheet, name).nunique() > ids_of(sheet, first).nunique()] + [first]
    if len(columns) == 1:
        return columns[0]
    options = []
    for name in columns:
        ids = ids_of(sheet, name).dropna().unique()
        options.append(
            Option({"image_id_column": (f"{sheet.path}:{name}",)}, f"{len(ids):,} images, such as {listed(ids[:2])}")
        )
    raise Ask(f"{sheet.title}: which column says the image?", *options)


def _without_ids(sheet: Sheet) -> CapbiasError:
    return CapbiasError(
        f"{sheet.title} has no column of image IDs; its columns are {listed(sheet.columns)}.",
        "Name or add the image ID of each row.",
        "image_id_column",
    )


def joined(piece: Piece, other: Piece, given: Given) -> Join:
    """How the rows of two files join. Raises Ask if two ways fit or few images join, and CapbiasError if hardly any."""
    sheet, base = piece.sheet, other.sheet
    lefts, rights = id_columns(piece, given), id_columns(other, given)
    for each, columns in ((sheet, lefts), (base, rights)):
        if not columns:
            raise _without_ids(each)
    found = []
    for left, right in product(lefts, rights):
        if _repeats(sheet, left, given) and _repeats(base, right, given):
            continue
        # Numbers of rows are equal whatever two files hold.
        usual = _place(lefts[0]) < _place(left) and _place(rights[0]) < _place(right)
        if usual and _counts_rows(sheet, left) and _counts_rows(base, right):
            continue
        if join := join_ids(ids_of(sheet, left).dropna(), ids_of(base, right).dropna(), (left, right)):
            found.append(join)
    most = max((join.images for join in found if join.share >= SURE), default=0)
    found = [join for join in found if 2 * join.images >= most]  # the number of a caption joins the first few images
    found.sort(key=lambda join: (-round(join.share, 2), -join.images, join.left.count("+") + join.right.count("+")))
    best = found[0] if found else None
    chosen = best and set(_answer(sheet, base, best)["image_id_column"]) <= set(given.image_id_column)
    if best and (best.share >= SURE or (chosen and best.images >= FEWEST)):
        others = [join for join in found[1:8] if join.share >= SURE and not _same_rows(sheet, base, best, join)]
        if chosen or not others or (others[0].share < 0.9 <= best.share):
            return best
        raise Ask(
            f"Which column says the image, in {sheet.title} and in {base.title}? Two fit, and pair other rows.",
            *(
                Option(_answer(sheet, base, join), f"{join.said} join {join.level}: {join.examples}")
                for join in (best, *others[:2])
            ),
        )
    if best and best.share >= ASKED and best.images >= FEWEST:
        raise Ask(
            f"Only {best.said} of {sheet.title} and of {best.there:,} of {base.title} join. Are they of the same "
            "images, of which each has a part?",
            Option(_answer(sheet, base, best), f"yes: {best.examples}"),
        )
    shown = [
        f"in {each.title} "
        + "; ".join(f"{name}: {listed(ids_of(each, name).dropna().unique()[:2])}" for name in names[:4])
        for each, names in ((sheet, lefts), (base, rights))
    ]
    joins = f"only {best.said} join" if best else "no image ID is equal"
    raise CapbiasError(
        f"No image of {sheet.title} is surely in {base.title}: {joins}.",
        f"Columns that may hold IDs: {'; '.join(shown)}. Check that both are of the same images.",
        "image_id_column",
    )


def _counts_rows(sheet: Sheet, column: str) -> bool:
    """Whether a column counts as rows are counted, of which a filter may leave a tenth."""
    ids = ids_of(sheet, column).dropna().unique()
    if not all(re.fullmatch(r"\d{1,15}", number) for number in ids):
        return False
    return max(map(int, ids)) - min(map(int, ids)) < 10 * len(ids)


def _repeats(sheet: Sheet, column: str, given: Given) -> bool:
    """Whether a column, which nobody says holds IDs, has its values again and again, such as a split."""
    ids = ids_of(sheet, column).dropna()
    named = _place(column) < len(ORDER) or column == sheet.roles.get("image")
    return not named and not given.image_id_column and 2 * ids.nunique() < len(ids)


def _answer(sheet: Sheet, base: Sheet, join: Join) -> dict[str, tuple[str, ...]]:
    return {"image_id_column": (f"{sheet.path}:{join.left}", f"{base.path}:{join.right}")}


def _same_rows(sheet: Sheet, base: Sheet, first: Join, second: Join) -> bool:
    """Whether two joins pair the same rows."""
    pairs = []
    for join in (first, second):
        to = dict(zip(ids_of(base, join.right)[::-1], reversed(range(len(base.frame))), strict=True))
        pairs.append(ids_of(sheet, join.left).map(join.pairs).map(to))
    known = min(side.notna().sum() for side in pairs)
    return (pairs[0] == pairs[1]).sum() >= 0.98 * known


# images of rows


def _own(ids: pd.Series) -> dict[str, str]:
    """ID -> the image that it stands for by itself: by COCO's number, unless two images would become one."""
    normal = {image: _normal(image) for image in ids.dropna()}
    twice = {image for image, count in Counter(normal.values()).items() if count > 1}
    return {image: image if other in twice else other for image, other in normal.items()}


def _set_images(piece: Piece, column: str, images: Mapping[str, str]) -> None:
    ids = ids_of(piece.sheet, column)
    piece.column, piece.ids = column, ids.map(images).astype(object).where(ids.notna(), None)


def use_own(piece: Piece, column: str) -> None:
    """Give rows the images of a column of IDs, as they are stored."""
    _set_images(piece, column, _own(ids_of(piece.sheet, column)))


def use_joined(piece: Piece, base: Piece, join: Join) -> None:
    """Give rows the images of a file that they join; those that it lacks keep their IDs, unless another has them."""
    assert base.ids is not None
    to_base = dict(zip(ids_of(base.sheet, join.right), base.ids, strict=True))
    taken = set(base.ids.dropna())
    own = {
        image: f"{other} (another image)" if other in taken else other
        for image, other in _own(ids_of(piece.sheet, join.left)).items()
    }
    _set_images(piece, join.left, own | {image: to_base[other] for image, other in join.pairs.items()})
    piece.joins = join.said
    piece.how = "" if join.level in PLAIN else f"{join.said} joined {join.level}, such as {join.examples}"
