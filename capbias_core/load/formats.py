"""What files hold: shapes of JSON, and formats that a tool writes, each a row of a table.

A shape or format is recognised by its structure: keys, or columns that only it has. To add one, add its row, with a
real file as test. What is of no known format is a table, whose columns columns.py reads by their usual names or asks
about.
"""

from __future__ import annotations

import pkgutil
import re
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

import capbias_core.load as package
from capbias_core.errors import CapbiasError, short, taken_twice
from capbias_core.load.containers import HEADERLESS, Raw, coco_names, opened
from capbias_core.load.ids import described, normalise_image_id
from capbias_core.load.photographs import MOST_PIXELS
from capbias_core.load.sheet import (
    RowErrors,
    Sheet,
    fields_in,
    frame_of,
    is_missing,
    last_part,
    listed,
    mapped,
    plain,
    present,
    usual_column,
)
from capbias_core.types import counted

NUMBER = "number"  # the column of a number beside a text, in lists of [text, 9.1]


def sheets_of(path: Path, given: str) -> list[Sheet]:
    """The tables of a file. given: the file as the user named it. Raises CapbiasError if nothing can be read."""
    return [sheet_of(raw, given) for raw in opened(path)]


def sheet_of(raw: Raw, given: str) -> Sheet:
    """The table of what a file holds, with what its format says of the columns."""
    value, roles, shape = raw.value, {}, raw.format
    if raw.lines:
        shape, frame, roles = _lines(raw)
    elif isinstance(value, pd.DataFrame):
        nested = any(isinstance(cell, dict) for name in value for cell in value[name])
        frame = _records(value.to_dict("records")) if nested else value
    else:
        shape, frame, roles = _rows(raw.title, value)
        shape = raw.format or shape
    numbers = raw.numbers if len(raw.numbers) == len(frame) else ()
    faults = raw.faults if raw.faults.file else RowErrors(raw.title)
    sheet = Sheet(raw.title, given, raw.name, frame, shape or "table", roles, raw.notes, faults, raw.rows, numbers)
    if isinstance(value, dict) and isinstance(value.get("images"), list):
        sheet.sizes = _sizes(value["images"])
    if not roles:
        known = _format_of(sheet.columns)
        if known:
            sheet.format, sheet.roles = known.name, known.roles
            if known.opens:
                sheet.frame = known.opens(sheet)
                sheet.numbers = (
                    sheet.numbers if len(sheet.numbers) == len(sheet.frame) else range(1, len(sheet.frame) + 1)
                )
    if raw.format == "a text per image":
        sheet.roles = {"caption": ["caption"], "image": "image_id"}
    open_cells(sheet)
    return _kept(sheet)


def _kept(sheet: Sheet) -> Sheet:
    """Without the rows that the format marks as rejected, skipped or drafts, which are counted."""
    column, good = sheet.roles.get("keep", ("", ()))
    if not good or column not in sheet.frame:
        return sheet
    keep = sheet.frame[column].map(lambda state: state in good or is_missing(state))
    if not keep.all():
        states = Counter(str(state) for state in sheet.frame[column][~keep])
        shown = ", ".join(f"{state} {number:,}" for state, number in states.most_common(4))
        sheet.notes.append(f"{(~keep).sum():,} of {counted(len(keep), 'answer')} left out: {column} is {shown}")
        sheet = sheet.kept(keep)
    return sheet


def _sizes(images: list) -> dict[str, tuple[int, int]]:
    """Image ID -> (height, width) of the images that COCO lists, (0, 0) if unknown."""
    sizes: dict[str, tuple[int, int]] = {}
    for record in images:
        with suppress(ValueError, KeyError, TypeError, OverflowError):
            image = normalise_image_id(record["id"])
            sizes[image] = (0, 0)
            height, width = int(record["height"]), int(record["width"])
            if min(height, width) > 0 and height * width <= MOST_PIXELS:
                sizes[image] = (height, width)
    return sizes


# shapes of JSON


def _dicts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and any(isinstance(row, dict) for row in value)


def _texts(values: Any) -> bool:
    return bool(values) and all(isinstance(value, str) for value in values)


def flat(row: Mapping, before: str = "") -> dict[str, Any]:
    """Objects within an object as columns `outer.inner`.

    >>> flat({"a": {"b": 1, "c": {"d": 2}}, "e": []})
    {'a.b': 1, 'a.c.d': 2, 'e': []}
    """
    columns: dict[str, Any] = {}
    for key, value in row.items():
        columns |= flat(value, f"{before}{key}.") if isinstance(value, dict) and value else {f"{before}{key}": value}
    return columns


def _records(rows: list) -> pd.DataFrame:
    return frame_of([flat(row) for row in rows if isinstance(row, dict)])


def _columns(columns: Mapping[str, list]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})


def _coco(value: dict) -> pd.DataFrame:
    """Annotations with the file names of their images, and the names of categories."""
    names = {
        category.get("id"): category.get("name")
        for category in value.get("categories") or ()
        if isinstance(category, dict)
    }
    names |= {str(key): name for key, name in names.items()} | {name: name for name in names.values()}
    rows = []
    for row in value["annotations"]:
        inner = row.get("segments_info") if isinstance(row, dict) else None  # of panoptic annotations
        rows += [{"image_id": row.get("image_id"), **part} for part in inner] if isinstance(inner, list) else [row]
    frame = frame_of([row for row in rows if isinstance(row, dict)])
    if "caption" in frame:
        frame = frame.drop(columns="id", errors="ignore")
    if names and "category_id" in frame:
        frame["category"] = mapped(
            frame["category_id"], lambda key: names.get(key) if isinstance(key, int | str) else None
        )
    files = {str(row.get("id")): row.get("file_name") for row in value.get("images") or () if isinstance(row, dict)}
    if "image_id" in frame and any(files.values()):
        frame["images.file_name"] = mapped(frame["image_id"], lambda image: files.get(str(image)))
    return frame.astype(object)


def _karpathy(value: dict) -> pd.DataFrame:
    rows = []
    for image in value["images"]:
        others = {key: cell for key, cell in image.items() if key not in ("sentences", "sentids")}
        rows.append(others | {"raw": [sentence["raw"] for sentence in image["sentences"]]})
    return frame_of(rows)


def _by_column(value: dict) -> pd.DataFrame:
    """Columns as objects by row: pandas' orient `columns`, or {column: {image: value}}."""
    keys = list(dict.fromkeys(key for column in value.values() for key in column))
    numbered = keys == list(map(str, range(len(keys))))
    first = {} if numbered and usual_column(value, "image_id image file_name id") else {"image_id": keys}
    return _columns(first | {name: [column.get(key) for key in keys] for name, column in value.items()})


def _is_by_column(value: dict) -> bool:
    inner = list(value.values())
    if not all(isinstance(column, dict) and column for column in inner) or len(value) > 100:
        return False
    plain_cells = not any(isinstance(cell, dict) for column in inner for cell in list(column.values())[:50])
    return plain_cells and len(value) < len(inner[0]) and len({tuple(column) for column in inner}) == 1


def _split(value: dict) -> tuple[list, list] | None:
    """Names of columns beside rows: pandas' orient `split`, and tables of Weights & Biases."""
    names = next(
        (value[key] for key in ("columns", "fields", "header", "headers") if isinstance(value.get(key), list)), None
    )
    rows = next((value[key] for key in ("data", "rows", "values", "records") if isinstance(value.get(key), list)), None)
    fits = names and rows and _texts(names) and all(isinstance(row, list) and len(row) == len(names) for row in rows)
    return (names, rows) if names and rows and fits else None


def _of_rows(names: list, rows: list, index: Any = None) -> pd.DataFrame:
    paths = [[cell.get("path", cell) if isinstance(cell, dict) else cell for cell in row] for row in rows]
    columns = {str(name): [row[place] for row in paths] for place, name in enumerate(names)}
    if isinstance(index, list) and len(index) == len(rows) and index != list(range(len(rows))):
        columns = {"image_id": index} | columns
    return _columns(columns)


def _lists(value: dict) -> dict[str, list]:
    """Lists of equal length under an object's keys."""
    lists = {str(key): cells for key, cells in value.items() if isinstance(cells, list) and cells and not _dicts(cells)}
    same = len({len(cells) for cells in lists.values()}) == 1
    # {"Female": [1, 2], "Male": [3, 4]} are images by label
    named = len(lists) > 1 and usual_column(lists, f"{' '.join(LIST_NAMES)}") is not None
    return lists if same and named else {}


LIST_NAMES = str.split("""
    image_id image_ids images ids id img_id image file_name file_names filename filenames caption captions preds pred
    prediction predictions hypotheses text texts refs references gts label labels gender
""")


def _under(value: dict) -> list[str]:
    """Keys under which there are rows."""
    if len(value) > 40:
        return []
    return [
        key
        for key, inner in value.items()
        if _dicts(inner) or (isinstance(inner, dict) and inner and _inner_fits(inner))
    ]


def _inner_fits(inner: dict) -> bool:
    return (
        len(inner) > 12
        or _split(inner) is not None
        or bool(_under(inner) or _lists(inner))
        or (
            all(re.search(r"\d", str(key)) for key in inner)
            and any(isinstance(cell, str) and " " in cell for cell in inner.values())
        )
    )


def _is_pair(part: Any) -> bool:
    return isinstance(part, list) and len(part) == 2 and isinstance(part[0], str) and isinstance(part[1], int | float)


def _keyed(value: dict, name: str) -> pd.DataFrame:
    return _columns({"image_id": list(value), name: list(value.values())})


class Shape(NamedTuple):
    """A shape of a JSON object. roles: of its columns, if the shape says them."""

    name: str
    fits: Callable[[dict], Any]
    rows: Callable[[dict], pd.DataFrame]
    roles: Mapping[str, Any] = {}


def _annotations(value: dict, key: str) -> bool:
    rows = value.get("annotations")
    return (
        "images" in value and isinstance(rows, list) and any(isinstance(row, dict) and key in row for row in rows[:50])
    )


def _is_labels(value: dict) -> bool:
    labels = list(value.values())
    few = len(labels) > 1 and all(isinstance(label, str | int) for label in labels)
    return few and len(set(labels)) <= max(2, len(labels) / 5)


def _is_texts(value: dict) -> bool:
    cells = [[cell] if isinstance(cell, str) else cell for cell in value.values()]
    texts = all(isinstance(cell, list) and _texts(cell) for cell in cells)
    return texts and any(" " in text for cell in cells for text in cell)


def _is_objects(value: dict) -> bool:
    rows = list(value.values())
    objects = len(rows) > 1 and all(isinstance(row, dict) and not _dicts(list(row.values())) for row in rows)
    return objects and len({key for row in rows for key in row}) < len(rows) * 2 + 20


def _by_label(value: dict) -> pd.DataFrame:
    pairs = [(image, label) for label, images in value.items() for image in images]
    return _columns({"image_id": [image for image, _ in pairs], "label": [label for _, label in pairs]})


def _inner(value: Any) -> list:
    return list(value.values()) if isinstance(value, dict) else value


def _objects(value: dict) -> pd.DataFrame:
    """Objects by image; keys that only number the rows are no column."""
    numbered = list(value) == list(map(str, range(len(value))))
    named = usual_column(next(iter(value.values())), "image_id image img_id file_name filename image_path")
    return _records(
        [({} if numbered and named else {"image_id" if not named else "key": key}) | row for key, row in value.items()]
    )


# Specific before general.
# fmt: off
SHAPES = (
    Shape("COCO captions", lambda value: _annotations(value, "caption"), _coco,
          {"reference": ["caption"], "image": "image_id"}),
    Shape("COCO instances", lambda value: _annotations(value, "category_id") or _annotations(value, "segments_info"),
          _coco, {"objects": True, "image": "image_id"}),
    Shape("Karpathy's data set", lambda value: _dicts(value.get("images")) and "sentences" in value["images"][0],
          _karpathy, {"reference": ["raw"]}),
    Shape("evaluation of coco-caption", lambda value: "imgToEval" in value,
          lambda value: _records(_inner(value["imgToEval"]))),
    Shape("log of Inspect", lambda value: _dicts(value.get("samples")) and "eval" in value,
          lambda value: _records(value["samples"])),
    Shape("table of pandas (split) or Weights & Biases", _split,
          lambda value: _of_rows(*_split(value) or ([], []), value.get("index"))),
    Shape("table of pandas (schema)", lambda value: "schema" in value and _dicts(value.get("data")),
          lambda value: _records(value["data"]).drop(columns="index", errors="ignore")),
    Shape("table of Polars", lambda value: _dicts(value.get("columns")) and "values" in value["columns"][0],
          lambda value: _columns({column["name"]: column["values"] for column in value["columns"]})),
    Shape("lists of equal length", _lists, lambda value: _columns(_lists(value))),
    Shape("columns by row", _is_by_column, _by_column),
    Shape("captions by image",
          lambda value: _texts(value.values()) and sum(" " in text for text in value.values()) > len(value) / 2,
          lambda value: _keyed(value, "caption"), {"caption": ["caption"], "image": "image_id"}),
    Shape("labels by image", _is_labels, lambda value: _keyed(value, "label"),
          {"label": ["label"], "image": "image_id"}),
    Shape("several texts by image", _is_texts, lambda value: _keyed(value, "captions")),
    Shape("candidates by image",
          lambda value: all(isinstance(cell, list) and cell and all(map(_is_pair, cell)) for cell in value.values()),
          lambda value: _keyed(value, "captions")),
    Shape("images by label",
          lambda value: 1 < len(value) <= 12 and all(
              isinstance(cell, list) and cell and not _dicts(cell) for cell in value.values()),
          _by_label, {"label": ["label"]}),
    Shape("rows by image", lambda value: all(_dicts(rows) for rows in value.values()) and len(value) != 1,
          lambda value: frame_of([{"image_id": key, **flat(row)} for key, rows in value.items() for row in rows])),
    Shape("an object by image", _is_objects, _objects),
)
# fmt: on


def _rows(title: str, value: Any) -> tuple[str, pd.DataFrame, dict]:
    """Shape, rows and roles of a JSON value. Raises CapbiasError without rows."""
    if isinstance(value, list) and _dicts(value):
        return "records", _records(value), {}
    if isinstance(value, list) and value and all(isinstance(row, list) for row in value):
        width, most = Counter(map(len, value)).most_common(1)[0]
        if width > 1 and most == len(value) and _texts(value[0]) and usual_column(value[0], " ".join(LIST_NAMES)):
            return "lists with a header", _of_rows(value[0], value[1:]), {}
        shown = short(str(value[0]))
        raise CapbiasError(
            f"{title} is a list of {len(value):,} lists without names of columns or images, such as {shown}.",
            'Write records with names, such as {"image_id": 785, "caption": "a woman on skis"}.',
        )
    if isinstance(value, dict) and value:
        if usual_column(value, "image_id image file_name") and not any(
            isinstance(cell, dict | list) for cell in value.values()
        ):
            return "records", _records([value]), {}
        for shape in SHAPES:
            with suppress(KeyError, TypeError, AttributeError, IndexError):
                if shape.fits(value) and len(frame := shape.rows(value)):
                    return shape.name, frame, dict(shape.roles)
        inside = _under(value)
        if len(inside) > 1:  # rather rows that name images
            images = " ".join(LIST_NAMES[:13])
            inside = [key for key in inside if _dicts(value[key]) and usual_column(value[key][0], images)] or inside
        if len(inside) == 1:
            return _rows(title, value[inside[0]])
        if inside:
            raise CapbiasError(f"{title} holds rows under {listed(inside)}.", "Write those to read into a file.")
    if isinstance(value, list) and _texts(value):
        raise CapbiasError(
            f"{title} is a list of {len(value):,} texts without image IDs.", "Write an object {image ID: caption}."
        )
    what = "an empty list" if value == [] else described(value)
    what += f" with the keys {listed(value)}" if isinstance(value, dict) and value else ""
    what += f" of {described(value[0])}" if isinstance(value, list) and value else ""
    raise CapbiasError(
        f"{title} holds {what}, in which no table is found.",
        'Write a list with one record per row, such as {"image_id": 785, "caption": "a woman on skis"}.',
    )


def _lines(raw: Raw) -> tuple[str, pd.DataFrame, dict]:
    """A text without a header. Raises CapbiasError for one in no known format."""
    rows = [line.split("\t") for line in raw.lines if line.strip()]
    names = ("tokens of Flickr30k", "predictions of Oscar and VinVL", "Conceptual Captions")
    for place, fits in enumerate(HEADERLESS):
        if fits(raw.lines):
            good = [row for row in rows if len(row) == 2]
            for number, row in enumerate(rows, start=1):
                if len(row) != 2:
                    raw.faults.add(number, f"{short(' '.join(row))} where an image and a caption are expected")
            raw.rows = len(rows)
            image, caption = (1, 0) if place == 2 else (0, 1)
            ids = [re.sub(r"#\d+$", "", row[image]) for row in good]
            role = "reference" if place == 0 and len(set(ids)) < len(ids) else "caption"
            texts = [row[caption] for row in good]
            return names[place], _columns({"image_id": ids, "caption": texts}), {role: ["caption"], "image": "image_id"}
    raise CapbiasError(
        f"{raw.title} is text without a header, in no known format; its first line is {short(raw.lines[0])!r}.",
        "Put the names of the columns above it, such as image_id,caption.",
    )


# formats: columns that only one tool writes


def _said(cell: Any) -> str | None:
    """The text in a message of a model, whatever the maker; without reasoning."""
    if isinstance(cell, list):
        hidden = ("thinking", "reasoning", "image", "image_url")
        parts = [
            part
            for part in cell
            if not (isinstance(part, dict) and (part.get("type") in hidden or part.get("thought")))
        ]
        return "\n".join(filter(None, map(_said, parts))) or None
    if isinstance(cell, dict):
        keys = ("message", "content", "parts", "text", "value", "completion", "output", "refusal")
        return next((text for key in keys if key in cell and (text := _said(cell[key]))), None)
    return cell if isinstance(cell, str) else None


def _reason(row: Mapping[str, Any]) -> str:
    cells = [
        str(cell)
        for name, cell in row.items()
        if isinstance(cell, str) and re.search(r"error.*message|error\.type|finish|block|error$", name)
    ]
    return cells[0] if cells else "no answer"


def _answers(image: str, *columns: str) -> Callable[[Sheet], pd.DataFrame]:
    """Opens the answers of a batch; failed requests are faults. columns: where a vendor writes the answer."""

    def opens(sheet: Sheet) -> pd.DataFrame:
        rows = []
        for number, row in zip(sheet.numbers, sheet.frame.to_dict("records"), strict=True):
            cell = next((row[name] for name in columns if not is_missing(row.get(name))), None)
            choices = cell if isinstance(cell, list) and "message" in str(cell[:1]) else [cell]
            texts = list(
                filter(None, map(_said, choices if columns[0].endswith(("choices", "candidates")) else [cell]))
            )
            if not texts:
                sheet.faults.add(number, f"the request failed ({short(_reason(row))})")
                continue
            shown = row.get(image) or _address(row)
            rows.append({"image_id": shown, "caption": texts[0] if len(texts) == 1 else texts})
        failed = len(sheet.frame) - len(rows)
        if failed:
            sheet.notes.append(f"{counted(failed, 'request')} of {len(sheet.frame):,} failed")
        if not rows:
            raise sheet.unusable(sheet.faults)
        return frame_of(rows)

    return opens


def _address(value: Any) -> str | None:
    """The address of the image in a request."""
    if isinstance(value, dict):
        for name, inner in value.items():
            usual = last_part(str(name)) in ("image", "url", "image_url", "fileuri", "file_uri", "image_path", "path")
            if usual and isinstance(inner, str) and inner and not inner.startswith("data:"):
                return inner
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next(filter(None, map(_address, inner)), None)


def _turns(column: str) -> Callable[[Sheet], pd.DataFrame]:
    """Opens conversations: the model's first turn is the caption, the turn before it the prompt."""

    def opens(sheet: Sheet) -> pd.DataFrame:
        rows, longer = [], 0
        for number, row in zip(sheet.numbers, sheet.frame.to_dict("records"), strict=True):
            turns = [turn for turn in row.pop(column) or () if isinstance(turn, dict)]
            roles = [str(turn.get("from") or turn.get("role") or "").lower() for turn in turns]
            answers = [place for place, role in enumerate(roles) if role in ("gpt", "assistant", "model")]
            if not answers:
                sheet.faults.add(number, "no turn of a model in the conversation")
                continue
            longer += len(answers) > 1
            before = _said(turns[answers[0] - 1]) if answers[0] else None
            asked = {"prompt": before.replace("<image>", "").strip()} if before else {}
            named = (
                row if usual_column(row, "image image_id image_path file_name id") else {"image": _address(turns)} | row
            )
            rows.append(named | asked | {"model turn": _said(turns[answers[0]])})
        sheet.notes += [f"later turns of {counted(longer, 'conversation')} left out"] if longer else []
        return frame_of(rows)

    return opens


def _lmms_eval(sheet: Sheet) -> pd.DataFrame:
    """Logged samples of lmms-eval: the answer of the model, the image that a metric logged, and the human captions that
    CIDEr compared it with. What other metrics call answers may be objects."""
    frame = sheet.frame.copy()
    if human := next((name for name in frame if name.endswith("_CIDEr.answer")), None):
        frame["human captions"] = frame[human]
    if "filtered_resps" not in frame or not present(frame["filtered_resps"]):
        frame["filtered_resps"] = frame.get("resps")

    def first(cell: Any) -> Any:
        while isinstance(cell, list) and len(cell) == 1:
            cell = cell[0]
        return cell

    logged = next((name for name in frame if name.endswith(".pred")), None)
    frame["filtered_resps"] = mapped(frame["filtered_resps"], first)
    if not present(frame["filtered_resps"]) and logged:
        frame["filtered_resps"] = frame[logged]
    return frame.drop(
        columns=[
            name
            for name in frame
            if name.endswith((".pred", ".answer")) or name in ("resps", "target", "doc_hash", "input")
        ]
    )


def _label_studio(sheet: Sheet) -> pd.DataFrame:
    """A row per annotation, a column per question."""
    rows = []
    for row in sheet.frame.to_dict("records"):
        data = {name: cell for name, cell in row.items() if name.startswith("data.")}
        for answer in row["annotations"] or ():
            who = answer.get("completed_by")
            cells = {
                "annotator": str(who.get("email", who) if isinstance(who, dict) else who),
                "was_cancelled": bool(answer.get("was_cancelled")),
            }
            for result in answer.get("result") or ():
                value = result.get("value") or {}
                key = next((key for key in ("choices", "text", "rating", "number") if key in value), "")
                cells[str(result.get("from_name"))] = value.get(key)
            rows.append(data | cells)
    return frame_of([{name: _not_uploaded(cell) for name, cell in row.items()} for row in rows])


UPLOADED = re.compile(r"(/data/upload/\d+/)[0-9a-f]{8}-(?=.)")  # what Label Studio puts before the names of files


def _not_uploaded(cell: Any) -> Any:
    return UPLOADED.sub(r"\1", cell) if isinstance(cell, str) else cell


def _choices(sheet: Sheet) -> pd.DataFrame:
    """The smaller export of Label Studio: a list of choices in a column per question."""
    frame = sheet.frame.rename(columns={name: name.removesuffix(".choices") for name in sheet.columns})
    return frame.map(_not_uploaded)


def _argilla(sheet: Sheet) -> pd.DataFrame:
    asked = [name for name in sheet.columns if name.startswith("responses.")]
    rows = [
        {name: cell for name, cell in row.items() if name.startswith("fields.")}
        | {
            last_part(name): answer.get("value"),
            "annotator": answer.get("user_id"),
            "response_status": answer.get("status"),
        }
        for row in sheet.frame.to_dict("records")
        for name in asked
        for answer in row[name] or ()
    ]
    return frame_of(rows)


def _detections(sheet: Sheet) -> pd.DataFrame:
    """Boxes in COCO's form of results get the names of COCO's categories; nested ones lose the name of the box."""
    frame = sheet.frame.rename(columns={name: last_part(name) for name in sheet.columns if name.startswith("box.")})
    if "category" not in frame and "category_id" in frame:
        numbers = [number for number in range(1, 91) if number not in (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)]
        names = dict(zip(map(str, numbers), coco_names(), strict=True))
        frame["category"] = frame["category_id"].map(lambda number: names.get(str(number)))
        sheet.notes.append("names of categories from COCO, since the file lists none")
    if usual_column([name for name in frame if name != "id"], "image_id image file_name filename imageid") is None:
        frame.insert(0, "image_id", sheet.name)
        sheet.notes.append("the file names no image; its own name is taken as the image ID")
    return frame


def _mturk(sheet: Sheet) -> pd.DataFrame:
    """Several answers per image, of which rejected ones do not count."""
    return sheet.frame.drop(columns=["Title", "HITId"], errors="ignore")


class Format(NamedTuple):
    """Columns that one tool writes. needs: their names; `x.*` is any beginning so; `=` at the end: and few others.

    roles: caption, reference, label -> columns (label: True for usual names, or columns by attribute); image: the
    column of image IDs; keep: column and the values that count; rater: the column of who labelled; several: how rows of
    an image combine; objects: True; rows: True if images are only known by their row.
    """

    name: str
    needs: str
    roles: Mapping[str, Any]
    opens: Callable[[Sheet], pd.DataFrame] | None = None


CONVERSATION = {"caption": ["model turn"]}
SCORED = {"caption": ["filtered_resps"], "reference": ["human captions"]}
BATCH = {"caption": ["caption"], "image": "image_id"}
RELEASED = {"label": {"gender": ["bb_gender"], "race": ["bb_skin"]}, "image": "img_id"}
MIAP = {"gender": ["GenderPresentation"], "age": ["AgePresentation"]}
FACET = {"gender": ["Male=gender_presentation_masc", "Female=gender_presentation_fem"]}
# fmt: off
FORMATS = (
    Format("LIC release (pickle)", "img_id pred bb_gender bb_skin", {"caption": ["pred"], **RELEASED}),
    Format("LIC release (pickle)", "img_id caption_list bb_gender bb_skin",
           {"reference": ["caption_list"], **RELEASED}),
    Format("results of COCO", "image_id caption =", {"caption": ["caption"], "image": "image_id"}),
    Format("samples of lmms-eval", "doc_id *_CIDEr.answer", SCORED, _lmms_eval),
    Format("samples of lmms-eval", "doc_id filtered_resps", {"caption": ["filtered_resps"]}, _lmms_eval),
    Format("samples of lmms-eval", "doc_id resps", {"caption": ["filtered_resps"]}, _lmms_eval),
    Format("samples of lmms-eval", "doc_id *.pred", {"caption": ["filtered_resps"]}, _lmms_eval),
    Format("predictions of VLMEvalKit", "index answer prediction",
           {"caption": ["prediction"], "reference": ["answer"], "rows": "index"}),
    Format("batch output of OpenAI", "custom_id response.body.choices", BATCH,
           _answers("custom_id", "response.body.choices")),
    Format("batch output of OpenAI", "custom_id response.body.output", BATCH,
           _answers("custom_id", "response.body.output")),
    Format("batch output of Anthropic", "custom_id result.type", BATCH,
           _answers("custom_id", "result.message.content")),
    Format("batch output of Gemini", "key response.candidates", BATCH, _answers("key", "response.candidates")),
    Format("batch output of Vertex AI", "request.* response.candidates", BATCH,
           _answers("key", "response.candidates")),
    Format("batch output of Bedrock", "recordId modelOutput.content", BATCH,
           _answers("recordId", "modelOutput.content")),
    Format("samples of Inspect", "output.completion epoch",
           {"caption": ["output.completion"], "reference": ["target"]}),
    Format("conversations (LLaVA)", "conversations", CONVERSATION, _turns("conversations")),
    Format("conversations (chat)", "messages", CONVERSATION, _turns("messages")),
    Format("tasks of Label Studio", "data.* annotations",
           {"label": True, "keep": ("was_cancelled", (False,)), "rater": "annotator"}, _label_studio),
    Format("choices of Label Studio", "*.choices", {"label": True, "rater": "annotator"}, _choices),
    Format("records of Argilla", "fields.* responses.*",
           {"label": True, "keep": ("response_status", ("submitted",)), "rater": "annotator"}, _argilla),
    Format("choices of Prodigy", "_task_hash accept answer",
           {"label": ["accept"], "keep": ("answer", ("accept",)), "rater": "_session_id"}),
    Format("labels of doccano by user", "doc_id text labels username",
           {"label": ["labels"], "rater": "username", "image": "text"}),
    Format("labels of doccano", "id text label =", {"label": ["label"], "image": "text"}),
    Format("batch results of MTurk", "WorkerId AssignmentStatus",
           {"label": True, "keep": ("AssignmentStatus", ("Approved", "Submitted")), "rater": "WorkerId"}, _mturk),
    Format("human captions of Flickr30k", "image_name comment_number comment",
           {"reference": ["comment"], "image": "image_name"}),
    Format("human captions of TextCaps", "image_id caption_str reference_strs",
           {"reference": ["caption_str"], "image": "image_id"}),
    Format("people in boxes (Open Images MIAP)", "ImageID LabelName GenderPresentation",
           {"label": MIAP, "several": "both", "image": "ImageID"}),
    Format("people in boxes (FACET)", "person_id filename gender_presentation_masc",
           {"label": FACET, "several": "both", "image": "filename"}),
    Format("boxes of Open Images", "ImageID LabelName XMin", {"objects": True, "image": "ImageID"}),
    Format("boxes of a detector", "bbox category_id score", {"objects": True}, _detections),
    Format("boxes of a detector", "box.x1", {"objects": True}, _detections),
    Format("boxes of a detector", "box.xmin", {"objects": True}, _detections),
)
# fmt: on


_ADDED: list[Format] = []


def add(part: Format) -> None:
    """Make a format known, before those of capbias. Raises CapbiasError if its name is taken."""
    if part.name in {known.name for known in (*_ADDED, *_in_files(), *FORMATS)}:
        raise taken_twice("format", part.name, ["load/"])
    _ADDED.append(part)


@cache
def _in_files() -> list[Format]:
    """The formats of modules of this package that have a `FORMAT`."""
    modules = [import_module(f"{package.__name__}.{module.name}") for module in pkgutil.iter_modules(package.__path__)]
    return [module.FORMAT for module in modules if hasattr(module, "FORMAT")]


def _format_of(columns: list[str]) -> Format | None:
    for known in (*_ADDED, *_in_files(), *FORMATS):
        needs = known.needs.split()
        few = needs[-1] == "=" and needs.pop()
        begins = (any(_fits(name, need) for name in columns) for need in needs)
        if all(begins) and not (few and set(columns) - {*needs, "id", "image_name"}):
            return known
    return None


def _fits(name: str, need: str) -> bool:
    if need.startswith("*"):
        return name.endswith(need[1:])
    return name.startswith(need[:-1]) if need.endswith("*") else name == need


# cells that hold more than a value


def open_cells(sheet: Sheet) -> None:
    """Texts that are JSON become columns, lists of one their item, lists of objects rows, lists of words texts."""
    for _ in range(6):
        if not any([_open_column(sheet, name) for name in sheet.columns]):
            return


def _open_column(sheet: Sheet, name: str) -> bool:
    """Whether a column held more than plain values, and was opened."""
    frame, cells = sheet.frame, present(sheet.frame[name])
    if not cells or name in ("segmentation", "bbox"):
        return False
    if all(isinstance(cell, str) and (cell.lstrip("` \njson")[:1] in ("{", "[") or "\n" in cell) for cell in cells):
        values = [fields_in(cell) for cell in cells]
        good = sum(value is not None for value in values)
        if good >= 0.95 * len(values):
            sheet.notes.append(
                f"{short(name)}: {counted(good, 'text')} of {len(cells):,} hold fields or lists, which were read"
            )
            sheet.frame = frame.assign(
                **{name: mapped(frame[name], lambda cell: None if is_missing(cell) else fields_in(cell) or cell)}
            )
            sheet.fields.add(name)
            return True
        return False
    if all(isinstance(cell, dict) for cell in cells):
        rows = [flat(cell) if isinstance(cell, dict) else {} for cell in frame[name]]
        inner = frame_of(rows).add_prefix(f"{name}.").set_axis(frame.index)
        sheet.fields |= set(inner) if name in sheet.fields else set()
        sheet.frame = pd.concat([frame.drop(columns=name), inner], axis=1)
        return True
    if not all(isinstance(cell, list) for cell in cells):
        return False
    if all(len(cell) == 1 for cell in cells):
        sheet.frame = frame.assign(**{name: mapped(frame[name], lambda cell: cell[0] if cell else None)})
        return True
    inner = [part for cell in cells for part in cell]
    pairs = all(map(_is_pair, inner))
    if all(isinstance(part, dict) for part in inner) or pairs:
        of = (lambda part: {"text": part[0], NUMBER: part[1]}) if pairs else dict
        lists = mapped(frame[name], lambda cell: [of(part) for part in cell or ()])
        numbers = [number for number, cell in zip(sheet.numbers, lists, strict=True) for _ in cell or (None,)]
        sheet.frame, sheet.numbers = frame.assign(**{name: lists}).explode(name, ignore_index=True), numbers
        return True
    words = all(_texts(cell) and not any(" " in text.strip() for text in cell) for cell in cells)
    if words and len(inner) > 3 * len(cells) and len({text.casefold() for text in inner}) > 12:
        sheet.notes.append(f"{short(name)}: lists of words, joined to texts")
        sheet.frame = frame.assign(**{name: mapped(frame[name], lambda cell: " ".join(cell) if cell else None)})
        return True
    return False


# tables of Python


def sheet_of_table(table: Any, title: str, given: str) -> Sheet:
    """The content of a DataFrame, a Series with an index, a Dataset of Hugging Face, a table of another library, a list
    of dicts, or a dict in any shape of JSON files. Raises CapbiasError for anything else."""
    if isinstance(table, pd.Series):
        table = pd.DataFrame({"image_id": table.index, str(table.name or "value"): table.to_numpy()})
    if hasattr(table, "to_pandas"):
        kind = type(table).__name__
        if not isinstance(table := _as_frame(table), pd.DataFrame):
            raise CapbiasError(f"{title} is a {kind}.", "Give a path, a DataFrame or a list of dicts.")
    if isinstance(table, pd.DataFrame):
        index = table.index.name is not None or not isinstance(table.index, pd.RangeIndex)
        named = usual_column(map(str, table.columns), "image_id image file_name filename img_id id")
        frame = (
            table.reset_index(names=table.index.name or "image_id")
            if index and not (named and not table.index.name)
            else table
        )
        columns = {
            str(name): pd.Series([plain(cell) for cell in frame.iloc[:, place]], dtype=object)
            for place, name in enumerate(frame.columns)
        }
        if len(columns) < frame.shape[1]:
            raise CapbiasError(f"{title} has two columns of the same name.", "Rename or delete one.")
        return sheet_of(Raw(title, given, pd.DataFrame(columns)), given)
    if isinstance(table, str | bytes) or not hasattr(table, "__iter__"):
        raise CapbiasError(f"{title} is a {type(table).__name__}.", "Give a path, a DataFrame or a list of dicts.")
    return sheet_of(Raw(title, given, plain(table if isinstance(table, Mapping) else list(table))), given)


MEDIA = ("Image", "Audio", "Video")  # what columns of a Dataset may hold besides data


def _as_frame(table: Any) -> pd.DataFrame:
    """A table of polars, Arrow or Hugging Face's `datasets` as a DataFrame: classes by their names, and without columns
    of pictures, sound and films, which would be decoded."""
    features = getattr(table, "features", None) or {}
    media = [column for column, feature in features.items() if getattr(feature, "_type", "") in MEDIA]
    frame = (table.remove_columns(media) if media else table).to_pandas()
    for column in features:
        if names := getattr(features[column], "names", None):
            frame[column] = [names[value] if value >= 0 else None for value in frame[column].fillna(-1).astype(int)]
    return frame


def check_one_table(source: Any) -> None:
    """Raises CapbiasError for a DatasetDict, whose splits are no captioners."""
    if isinstance(source, Mapping) and hasattr(source, "num_rows"):
        raise CapbiasError(
            f"This data set has several splits: {', '.join(source)}.",
            f"Give one of them, as in dataset[{next(iter(source))!r}], or concatenate_datasets of several.",
        )
