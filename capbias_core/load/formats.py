"""What files hold: shapes of JSON, and formats that a tool writes, each a row of a table.

A shape or format is recognised by its structure: keys, or columns that only it has. To add one, add its row, with a
real file as test. What is of no known format is a table, whose columns columns.py reads by their usual names or asks
about.
"""

from __future__ import annotations

import fnmatch
import pkgutil
import re
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

import capbias_core.load as package
from capbias_core.errors import CapbiasError, short, taken_twice
from capbias_core.load.containers import Raw, opened
from capbias_core.load.ids import described, normalise_image_id
from capbias_core.load.photographs import MOST_PIXELS
from capbias_core.load.sheet import (
    RowErrors,
    Sheet,
    fields_in,
    frame_of,
    is_missing,
    listed,
    mapped,
    plain,
    present,
    usual_column,
)
from capbias_core.types import counted

NUMBER = "number"  # the column of a number beside a text, in lists of [text, 9.1]
RECORDS = 'Write records with names, such as {"image_id": 785, "caption": "a woman on skis"}.'


def sheets_of(path: Path, given: str) -> list[Sheet]:
    """The tables of a file. given: the file as the user named it. Raises CapbiasError if nothing can be read."""
    return [sheet_of(raw, given) for raw in opened(path)]


def sheet_of(raw: Raw, given: str) -> Sheet:
    """The table of what a file holds, with what its format says of the columns."""
    frame, shape, roles = raw.value, raw.format, raw.roles
    if not isinstance(frame, pd.DataFrame):
        shape, frame, roles = _rows(raw.title, raw.value)
    elif any(isinstance(cell, dict) for name in frame for cell in frame[name]):
        frame = _records(frame.to_dict("records"))
    faults = raw.faults or RowErrors(raw.title)
    rows = len(frame) + faults.count
    sheet = Sheet(raw.title, given, raw.name, frame, shape or "table", roles, raw.notes, faults, rows, raw.numbers)
    if isinstance(raw.value, dict) and isinstance(raw.value.get("images"), list):
        sheet.sizes = _sizes(raw.value["images"])
    if not roles and (known := _format_of(sheet.columns)):
        sheet.format, sheet.roles = known.name, known.roles
        if known.opens:
            sheet = replace(sheet, frame=known.opens(sheet))
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


def _annotated(key: str) -> Callable[[dict], bool]:
    """Whether an object has images, and annotations with a key."""

    def fits(value: dict) -> bool:
        rows = value.get("annotations")
        return "images" in value and _dicts(rows) and any(key in row for row in rows[:50] if isinstance(row, dict))

    return fits


def _coco(value: dict) -> pd.DataFrame:
    """Annotations with the file names of their images, and the names of categories."""
    frame = frame_of([row for row in value["annotations"] if isinstance(row, dict)])
    if "caption" in frame:
        frame = frame.drop(columns="id", errors="ignore")
    categories = [each for each in value.get("categories") or () if isinstance(each, dict)]
    if categories and "category_id" in frame:
        names = {str(each.get("name")): each.get("name") for each in categories}
        names |= {str(each.get("id")): each.get("name") for each in categories}
        frame["category"] = mapped(frame["category_id"], lambda key: names.get(str(key)))
    files = {str(row.get("id")): row.get("file_name") for row in value["images"] or () if isinstance(row, dict)}
    if "image_id" in frame and any(files.values()):
        frame["images.file_name"] = mapped(frame["image_id"], lambda image: files.get(str(image)))
    return frame.astype(object)


def _karpathy(value: dict) -> pd.DataFrame:
    rows = []
    for image in value["images"]:
        others = {key: cell for key, cell in image.items() if key not in ("sentences", "sentids")}
        rows.append(others | {"raw": [sentence["raw"] for sentence in image["sentences"]]})
    return frame_of(rows)


def _evaluated(value: dict) -> pd.DataFrame:
    images = value["imgToEval"]
    return _records(list(images.values()) if isinstance(images, dict) else images)


def _split(value: dict) -> pd.DataFrame | None:
    """Names of columns beside rows: pandas' orient `split`, whose index may hold the images, and tables of Weights &
    Biases, in which a picture has a path."""
    names, rows, index = value.get("columns"), value.get("data"), value.get("index")
    if not names or not rows or not _texts(names) or not all(len(row) == len(names) for row in rows):
        return None
    paths = [[cell.get("path", cell) if isinstance(cell, dict) else cell for cell in row] for row in rows]
    columns = {name: [row[place] for row in paths] for place, name in enumerate(names)}
    if isinstance(index, list) and len(index) == len(rows) and index != list(range(len(rows))):
        columns = {"image_id": index} | columns
    return _columns(columns)


LIST_NAMES = """
    image_id image_ids images ids id img_id image file_name file_names filename filenames caption captions preds pred
    prediction predictions hypotheses text texts refs references gts label labels gender
"""
IMAGES = "image_id image_ids images ids id img_id image file_name file_names filename filenames"


def _lists(value: dict) -> dict[str, list]:
    """Lists of equal length under an object's keys."""
    lists = {str(key): cells for key, cells in value.items() if isinstance(cells, list) and cells and not _dicts(cells)}
    same = len(lists) > 1 and len({len(cells) for cells in lists.values()}) == 1
    # {"Female": [1, 2], "Male": [3, 4]} are images by label
    return lists if same and usual_column(lists, LIST_NAMES) else {}


def _is_by_column(value: dict) -> bool:
    inner = list(value.values())
    same = all(isinstance(column, dict) and column.keys() == inner[0].keys() for column in inner)
    return same and len(value) < len(inner[0]) and not any(isinstance(cell, dict) for cell in inner[0].values())


def _by_column(value: dict) -> pd.DataFrame:
    """Columns as objects by row: pandas' orient `columns`, or {column: {image: value}}."""
    return _objects({key: {name: column[key] for name, column in value.items()} for key in next(iter(value.values()))})


def _is_captions(value: dict) -> bool:
    return _texts(value.values()) and sum(" " in text for text in value.values()) > len(value) / 2


def _is_labels(value: dict) -> bool:
    labels = list(value.values())
    few = len(labels) > 1 and all(isinstance(label, str | int) for label in labels)
    return few and len(set(labels)) <= max(2, len(labels) / 5)


def _is_texts(value: dict) -> bool:
    cells = [[cell] if isinstance(cell, str) else cell for cell in value.values()]
    texts = all(isinstance(cell, list) and _texts(cell) for cell in cells)
    return texts and any(" " in text for cell in cells for text in cell)


def _is_pair(part: Any) -> bool:
    return isinstance(part, list) and len(part) == 2 and isinstance(part[0], str) and isinstance(part[1], int | float)


def _is_objects(value: dict) -> bool:
    rows = list(value.values())
    objects = len(rows) > 1 and all(isinstance(row, dict) and not _dicts(list(row.values())) for row in rows)
    return objects and len({key for row in rows for key in row}) < len(rows) * 2 + 20


def _objects(value: dict) -> pd.DataFrame:
    """Objects by image; keys that only number the rows are no column."""
    numbered = list(value) == list(map(str, range(len(value))))
    named = usual_column(next(iter(value.values())), "image_id image img_id file_name filename image_path")
    return _records(
        [({} if numbered and named else {"image_id" if not named else "key": key}) | row for key, row in value.items()]
    )


def _keyed(name: str) -> Callable[[dict], pd.DataFrame]:
    return lambda value: _columns({"image_id": list(value), name: list(value.values())})


class Shape(NamedTuple):
    """A shape of a JSON object. roles: of its columns, if the shape says them."""

    name: str
    fits: Callable[[dict], Any]
    rows: Callable[[dict], pd.DataFrame]
    roles: Mapping[str, Any] = {}


# Specific before general.
# fmt: off
SHAPES = (
    Shape("COCO captions", _annotated("caption"), _coco, {"reference": ["caption"], "image": "image_id"}),
    Shape("COCO instances", _annotated("category_id"), _coco, {"objects": True, "image": "image_id"}),
    Shape("Karpathy's data set", lambda value: _dicts(value["images"]) and "sentences" in value["images"][0],
          _karpathy, {"reference": ["raw"]}),
    Shape("evaluation of coco-caption", lambda value: "imgToEval" in value, _evaluated),
    Shape("table of pandas (split) or Weights & Biases", lambda value: _split(value) is not None, _split),
    Shape("table of pandas (schema)", lambda value: "schema" in value and _dicts(value["data"]),
          lambda value: _records(value["data"]).drop(columns="index", errors="ignore")),
    Shape("lists of equal length", _lists, lambda value: _columns(_lists(value))),
    Shape("columns by row", _is_by_column, _by_column),
    Shape("captions by image", _is_captions, _keyed("caption"), {"caption": ["caption"], "image": "image_id"}),
    Shape("labels by image", _is_labels, _keyed("label"), {"label": ["label"], "image": "image_id"}),
    Shape("several texts by image", _is_texts, _keyed("captions")),
    Shape("candidates by image", lambda value: all(cell and all(map(_is_pair, cell)) for cell in value.values()),
          _keyed("captions")),
    Shape("rows by image", lambda value: all(_dicts(rows) for rows in value.values()) and len(value) != 1,
          lambda value: frame_of([{"image_id": key, **flat(row)} for key, rows in value.items() for row in rows])),
    Shape("an object by image", _is_objects, _objects),
)
# fmt: on


def _rows(title: str, value: Any) -> tuple[str, pd.DataFrame, Mapping[str, Any]]:
    """Shape, rows and roles of a JSON value. Raises CapbiasError without rows."""
    if _dicts(value):
        return "records", _records(value), {}
    if isinstance(value, dict) and value:
        if usual_column(value, "image_id image file_name") and not any(
            isinstance(cell, dict | list) for cell in value.values()
        ):
            return "records", _records([value]), {}
        for shape in SHAPES:
            with suppress(KeyError, TypeError, AttributeError, IndexError):
                if shape.fits(value) and len(frame := shape.rows(value)):
                    return shape.name, frame, shape.roles
        inside = _under(value)
        if len(inside) > 1:  # rather rows that name images
            inside = [key for key in inside if _dicts(value[key]) and usual_column(value[key][0], IMAGES)] or inside
        if len(inside) == 1:
            return _rows(title, value[inside[0]])
        if inside:
            raise CapbiasError(f"{title} holds rows under {listed(inside)}.", "Write those to read into a file.")
    what = "an empty list" if value == [] else described(value)
    if isinstance(value, dict) and value:
        what = f"an object with the keys {listed(value)}"
    if isinstance(value, list) and value:
        kinds = {list: "lists without names of columns or images", str: "texts without image IDs"}
        what = f"{len(value):,} {kinds.get(type(value[0]), 'values')}, such as {short(value[0])}"
    raise CapbiasError(f"{title} holds {what}, in which no table is found.", RECORDS)


def _under(value: dict) -> list[str]:
    """Keys under which there are rows."""

    def fits(inner: Any) -> bool:
        if not isinstance(inner, dict) or not inner:
            return _dicts(inner)
        numbered = all(re.search(r"\d", str(key)) for key in inner) and _is_captions(inner)
        return len(inner) > 12 or numbered or bool(_under(inner) or _lists(inner))

    return [key for key, inner in value.items() if fits(inner)] if len(value) <= 40 else []


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
        keys = ("message", "content", "parts", "text", "value", "refusal")
        return next((text for key in keys if key in cell and (text := _said(cell[key]))), None)
    return cell if isinstance(cell, str) else None


def _answers(image: str, column: str, several: bool = False) -> Callable[[Sheet], pd.DataFrame]:
    """Opens the answers of a batch; failed requests are faults. column: where a vendor writes the answer, or several
    answers to one request."""

    def opens(sheet: Sheet) -> pd.DataFrame:
        rows = []
        for number, row in zip(sheet.numbers, sheet.frame.to_dict("records"), strict=True):
            cell = row[column]
            if texts := list(filter(None, map(_said, cell if several and isinstance(cell, list) else [cell]))):
                rows.append({"image_id": row[image], "caption": texts[0] if len(texts) == 1 else texts})
                continue
            told = (text for name, text in row.items() if re.search(r"message|error\.type|finish|block|error$", name))
            reason = next((text for text in told if isinstance(text, str)), "no answer")
            sheet.faults.add(number, f"the request failed ({short(reason)})")
        if failed := len(sheet.frame) - len(rows):
            sheet.notes.append(f"{counted(failed, 'request')} of {len(sheet.frame):,} failed")
        if not rows:
            raise sheet.unusable(sheet.faults)
        return frame_of(rows)

    return opens


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
            rows.append(row | asked | {"model turn": _said(turns[answers[0]])})
        sheet.notes += [f"later turns of {counted(longer, 'conversation')} left out"] if longer else []
        return frame_of(rows)

    return opens


def _lmms_eval(sheet: Sheet) -> pd.DataFrame:
    """Logged samples of lmms-eval: the answer of the model, the image that a metric logged, and the human captions that
    CIDEr compared it with. What other metrics call answers may be objects."""
    frame = sheet.frame.copy()
    if human := next((name for name in frame if name.endswith("_CIDEr.answer")), None):
        frame["human captions"] = frame[human]
    others = ("resps", "target", "doc_hash", "input")
    return frame.drop(columns=[name for name in frame if name.endswith((".pred", ".answer")) or name in others])


UPLOADED = re.compile(r"(/data/upload/\d+/)[0-9a-f]{8}-(?=.)")  # what Label Studio puts before the names of files


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
    return frame_of(rows).map(lambda cell: UPLOADED.sub(r"\1", cell) if isinstance(cell, str) else cell)


class Format(NamedTuple):
    """Columns that one tool writes. needs: their names; `*` is any text; `=` at the end: and few others.

    roles: caption, reference, label -> columns (label: True for usual names, or columns by attribute); image: the
    column of image IDs; keep: column and the values that count; rater: the column of who labelled; several: how rows of
    an image combine; objects: True; rows: True if images are only known by their row.
    """

    name: str
    needs: str
    roles: Mapping[str, Any]
    opens: Callable[[Sheet], pd.DataFrame] | None = None


CONVERSATION = {"caption": ["model turn"]}
BATCH = {"caption": ["caption"], "image": "image_id"}
RELEASED = {"label": {"gender": ["bb_gender"], "race": ["bb_skin"]}, "image": "img_id"}
MIAP = {"gender": ["GenderPresentation"], "age": ["AgePresentation"]}
# fmt: off
FORMATS = (
    Format("LIC release", "img_id pred bb_gender bb_skin", {"caption": ["pred"], **RELEASED}),
    Format("LIC release", "img_id caption_list bb_gender bb_skin", {"reference": ["caption_list"], **RELEASED}),
    Format("results of COCO", "image_id caption =", {"caption": ["caption"], "image": "image_id"}),
    Format("samples of lmms-eval", "doc_id filtered_resps *_CIDEr.answer",
           {"caption": ["filtered_resps"], "reference": ["human captions"]}, _lmms_eval),
    Format("samples of lmms-eval", "doc_id filtered_resps", {"caption": ["filtered_resps"]}, _lmms_eval),
    Format("predictions of VLMEvalKit", "index answer prediction",
           {"caption": ["prediction"], "reference": ["answer"], "rows": "index"}),
    Format("batch output of OpenAI", "custom_id response.body.choices", BATCH,
           _answers("custom_id", "response.body.choices", several=True)),
    Format("batch output of OpenAI", "custom_id response.body.output", BATCH,
           _answers("custom_id", "response.body.output")),
    Format("batch output of Anthropic", "custom_id result.message.content", BATCH,
           _answers("custom_id", "result.message.content")),
    Format("batch output of Gemini", "key response.candidates", BATCH,
           _answers("key", "response.candidates", several=True)),
    Format("conversations (LLaVA)", "conversations", CONVERSATION, _turns("conversations")),
    Format("conversations (chat)", "messages", CONVERSATION, _turns("messages")),
    Format("tasks of Label Studio", "data.* annotations",
           {"label": True, "keep": ("was_cancelled", (False,)), "rater": "annotator"}, _label_studio),
    Format("choices of Prodigy", "_task_hash accept answer",
           {"label": ["accept"], "keep": ("answer", ("accept",)), "rater": "_session_id"}),
    Format("labels of doccano by user", "doc_id text labels username",
           {"label": ["labels"], "rater": "username", "image": "text"}),
    Format("batch results of MTurk", "WorkerId AssignmentStatus",
           {"label": True, "keep": ("AssignmentStatus", ("Approved", "Submitted")), "rater": "WorkerId"},
           lambda sheet: sheet.frame.drop(columns=["Title", "HITId"], errors="ignore")),
    Format("human captions of Flickr30k", "image_name comment_number comment",
           {"reference": ["comment"], "image": "image_name"}),
    Format("human captions of TextCaps", "image_id caption_str reference_strs",
           {"reference": ["caption_str"], "image": "image_id"}),
    Format("people in boxes (Open Images MIAP)", "ImageID LabelName GenderPresentation",
           {"label": MIAP, "several": "both", "image": "ImageID"}),
    Format("boxes of Open Images", "ImageID LabelName XMin", {"objects": True, "image": "ImageID"}),
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
        has_all = all(fnmatch.filter(columns, need) for need in needs)
        if has_all and not (few and set(columns) - {*needs, "id", "image_name"}):
            return known
    return None


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
    if all(isinstance(cell, dict) for cell in cells):
        rows = [flat(cell) if isinstance(cell, dict) else {} for cell in frame[name]]
        inner = frame_of(rows).add_prefix(f"{name}.").set_axis(frame.index)
        sheet.fields |= set(inner) if name in sheet.fields else set()
        sheet.frame = pd.concat([frame.drop(columns=name), inner], axis=1)
        return True
    if all(isinstance(cell, list) for cell in cells):
        inner = [part for cell in cells for part in cell]
        pairs = all(map(_is_pair, inner))
        words = all(_texts(cell) and not any(" " in text.strip() for text in cell) for cell in cells)
        if all(len(cell) == 1 for cell in cells):
            sheet.frame = frame.assign(**{name: mapped(frame[name], lambda cell: cell[0] if cell else None)})
            return True
        if pairs or all(isinstance(part, dict) for part in inner):
            of = (lambda part: {"text": part[0], NUMBER: part[1]}) if pairs else dict
            lists = mapped(frame[name], lambda cell: [of(part) for part in cell or ()])
            sheet.numbers = [number for number, cell in zip(sheet.numbers, lists, strict=True) for _ in cell or (None,)]
            sheet.frame = frame.assign(**{name: lists}).explode(name, ignore_index=True)
            return True
        if words and len(inner) > 3 * len(cells) and len({text.casefold() for text in inner}) > 12:
            sheet.notes.append(f"{short(name)}: lists of words, joined to texts")
            sheet.frame = frame.assign(**{name: mapped(frame[name], lambda cell: " ".join(cell) if cell else None)})
            return True
    if all(isinstance(cell, str) and cell.lstrip("` \njson")[:1] in ("{", "[") for cell in cells):
        good = sum(fields_in(cell) is not None for cell in cells)
        if good >= 0.95 * len(cells):
            sheet.notes.append(
                f"{short(name)}: {counted(good, 'text')} of {len(cells):,} hold fields or lists, which were read"
            )
            sheet.frame = frame.assign(
                **{name: mapped(frame[name], lambda cell: None if is_missing(cell) else fields_in(cell) or cell)}
            )
            sheet.fields.add(name)
            return True
    return False


# tables of Python


def sheet_of_table(table: Any, title: str, given: str) -> Sheet:
    """The content of a DataFrame, a Series with an index, a Dataset of Hugging Face, a table of another library, a list
    of dicts, or a dict in any shape of JSON files. Raises CapbiasError for anything else."""
    kind = type(table).__name__
    if isinstance(table, pd.Series):
        table = pd.DataFrame({"image_id": table.index, str(table.name or "value"): table.to_numpy()})
    if hasattr(table, "to_pandas"):
        table = _as_frame(table)
    if isinstance(table, pd.DataFrame):
        named = usual_column(map(str, table.columns), "image_id image file_name filename img_id id")
        if table.index.name or not (named or isinstance(table.index, pd.RangeIndex)):
            table = table.reset_index(names=table.index.name or "image_id")
        if table.columns.map(str).has_duplicates:
            raise CapbiasError(f"{title} has two columns of the same name.", "Rename or delete one.")
        frame = _columns({str(name): [plain(cell) for cell in table[name]] for name in table})
        return sheet_of(Raw(title, given, frame), given)
    if isinstance(table, str | bytes) or not hasattr(table, "__iter__"):
        raise CapbiasError(f"{title} is a {kind}.", "Give a path, a DataFrame or a list of dicts.")
    return sheet_of(Raw(title, given, plain(table if isinstance(table, Mapping) else list(table))), given)


def _as_frame(table: Any) -> Any:
    """A table of polars, Arrow or Hugging Face's `datasets` as a DataFrame: classes by their names, and without columns
    of pictures, sound and films, which would be decoded."""
    features = getattr(table, "features", None) or {}
    media = [name for name, feature in features.items() if getattr(feature, "_type", "") in ("Image", "Audio", "Video")]
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
