"""Formats that a tool writes, each a row of a table, recognised by columns that only it has.

To add one, add its row, with a real file as test. What is of no known format is a table, whose columns columns.py reads
by their usual names or asks about.
"""

from __future__ import annotations

import fnmatch
import pkgutil
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

import capbias_core.load as package
from capbias_core.errors import CapbiasError, short, taken_twice, unknown_name
from capbias_core.load.containers import opened
from capbias_core.load.shapes import all_texts, is_pair, sheet_of
from capbias_core.load.sheet import (
    Sheet,
    columns_of,
    fields_in,
    flat_frame,
    frame_of,
    is_missing,
    mapped,
    plain,
    present,
    usual_column,
)
from capbias_core.types import counted

NUMBER = "number"  # the column of a number beside a text, in lists of [text, 9.1]


def sheets_of(path: Path, given: str) -> list[Sheet]:
    """The tables of a file. given: the file as the user named it. Raises CapbiasError if nothing can be read."""
    return [recognised(replace(sheet, path=given)) for sheet in opened(path)]


def recognised(sheet: Sheet) -> Sheet:
    """A table with what its format says of the columns, and with cells that hold more than a value opened."""
    if sheet.format == "table" and any(isinstance(cell, dict) for name in sheet.frame for cell in sheet.frame[name]):
        sheet = replace(sheet, frame=flat_frame(sheet.frame.to_dict("records")))
    if not sheet.roles and (known := _format_of(sheet.columns)):
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
            sheet.faults.add(number, "the request failed, or has no answer")
        if failed := len(sheet.frame) - len(rows):
            sheet.notes.append(f"{counted(failed, 'request')} of {len(sheet.frame):,} failed")
        if not rows:
            raise sheet.unusable(sheet.faults)
        return frame_of(rows)

    return opens


def _turns(column: str) -> Callable[[Sheet], pd.DataFrame]:
    """Opens conversations: the model's first turn is the caption, the turn before it the prompt."""

    def opens(sheet: Sheet) -> pd.DataFrame:
        rows = []
        for number, row in zip(sheet.numbers, sheet.frame.to_dict("records"), strict=True):
            turns = [turn for turn in row.pop(column) or () if isinstance(turn, dict)]
            roles = [str(turn.get("from") or turn.get("role") or "").lower() for turn in turns]
            first = next((place for place, role in enumerate(roles) if role in ("gpt", "assistant", "model")), None)
            if first is None:
                sheet.faults.add(number, "no turn of a model in the conversation")
                continue
            prompt = _said(turns[first - 1]) if first else None
            rows.append(row | {"prompt": prompt, "model turn": _said(turns[first])})
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


ROLES = ("caption", "reference", "label", "image", "keep", "rater", "several", "objects", "rows")


@dataclass(frozen=True)
class Format:
    """Columns that one tool writes. needs: their names; `*` is any text; `=` at the end: and few others.

    roles: caption, reference, label -> columns (label: True for usual names, or columns by attribute); image: the
    column of image IDs; keep: column and the values that count; rater: the column of who labelled; several: how rows of
    an image combine; objects: True; rows: True if images are only known by their row.
    """

    name: str
    needs: str
    roles: Mapping[str, Any]
    opens: Callable[[Sheet], pd.DataFrame] | None = None

    def __post_init__(self):
        if unknown := sorted(set(self.roles) - {*ROLES}):
            raise unknown_name("role", unknown[0], ROLES)


CONVERSATION = {"caption": ["model turn"]}
BATCH = {"caption": ["caption"], "image": "image_id"}
RELEASED = {"label": {"gender": ["bb_gender"], "race": ["bb_skin"]}, "image": "img_id"}
MIAP = {"gender": ["GenderPresentation"], "age": ["AgePresentation"]}
# fmt: off
FORMATS = (
    Format("LIC release", "img_id pred bb_gender bb_skin", {"caption": ["pred"], **RELEASED}),
    Format("LIC release", "img_id caption_list bb_gender bb_skin", {"reference": ["caption_list"], **RELEASED}),
    Format("results of COCO", "image_id caption =", {"caption": ["caption"], "image": "image_id"}),
    Format("samples of lmms-eval", "doc_id filtered_resps",
           {"caption": ["filtered_resps"], "reference": ["human captions"]}, _lmms_eval),
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
        rows = [cell if isinstance(cell, dict) else {} for cell in frame[name]]
        inner = flat_frame(rows).add_prefix(f"{name}.").reindex(frame.index)
        sheet.fields |= set(inner) if name in sheet.fields else set()
        sheet.frame = pd.concat([frame.drop(columns=name), inner], axis=1)
        return True
    if all(isinstance(cell, list) for cell in cells):
        inner = [part for cell in cells for part in cell]
        pairs = all(map(is_pair, inner))
        words = all(all_texts(cell) and not any(" " in text.strip() for text in cell) for cell in cells)
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
        cells = {str(name): [plain(cell) for cell in table[name]] for name in table}
        return recognised(Sheet(title, columns_of(cells), path=given, name=given))
    if isinstance(table, str | bytes) or not hasattr(table, "__iter__"):
        raise CapbiasError(f"{title} is a {kind}.", "Give a path, a DataFrame or a list of dicts.")
    value = plain(table if isinstance(table, Mapping) else list(table))
    return recognised(replace(sheet_of(title, value), path=given, name=given))


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
