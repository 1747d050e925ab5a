"""What harnesses and services write: nested records, whatever file they are in, to plain columns.

Each shape takes the content of a file as raw columns, and gives None for another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from capbias_core.attributes.labels import is_about_labeller
from capbias_core.kinds import CAPTIONS, REFERENCES
from capbias_core.load.account import FENCE, NEARLY_ALL, is_missing, is_sentence
from capbias_core.load.ids import described, short
from capbias_core.load.parsed import IMAGE_IDS, Parsed, literal, usual_column
from capbias_core.load.tabular import coco_names
from capbias_core.types import counted

DEPTH = 8  # objects within objects whose fields are read
SAMPLE = 50  # rows that are looked at to recognise a shape
HUMAN, PROMPT = "references", "prompt"
ROLES = {"image_id": "image_id", "caption": "caption", HUMAN: "reference", PROMPT: "prompt"}
FAILED = "Failed to obtain answer"  # so begins what VLMEvalKit writes for an answer that the model did not give
ROW = "row "  # of an image in a benchmark; no ID of another file looks so
NOT_IN_COCO = {12, 26, 29, 30, 45, 66, 68, 69, 71, 83}  # numbers that COCO's categories leave out
HUMANS, MODELS = {"human", "user"}, {"gpt", "assistant", "model", "chatgpt", "bot"}
TEXT_KEYS = ("generation", "completion", "refusal")
UPLOADED = re.compile(r"(/data/upload/(?:\d+/)?)[0-9a-f]{8}-")  # Label Studio puts this before a name


def refined(parsed: Parsed) -> Parsed:
    """The content of a file, with the plain columns of the first shape that it has."""
    return next((plain for shape in SHAPES if (plain := shape(parsed))), parsed)


def _dicts(column: Sequence) -> list[dict]:
    return [value for value in column[:SAMPLE] if isinstance(value, dict)]


def _lmms_eval(parsed: Parsed) -> Parsed | None:
    """Samples that lmms-eval logs: the image ID stands in the value of a metric, such as `coco_CIDEr`.

    Beside it are the caption (pred) and the human ones (answer); in metrics of objects such as CHAIR these are words,
    and the caption is in filtered_resps or resps.
    """
    metrics = [name for name, column in parsed.columns.items() if any("image_id" in value for value in _dicts(column))]
    if "doc_id" not in parsed.columns or not metrics:
        return None
    rows, used, words = [], {}, False
    for filtered, answers, prompt, *values in parsed.values("filtered_resps", "resps", "input", *metrics):
        by_metric = [(name, value) for name, value in zip(metrics, values, strict=True) if isinstance(value, dict)]
        by_metric.sort(key=lambda pair: not isinstance(pair[1].get("pred"), str))
        if not by_metric:
            rows.append("no metric whose value has an image_id")
            continue
        metric, value = by_metric[0]
        caption, human = value.get("pred"), value.get("answer")
        if not isinstance(caption, str):
            caption, human, words = _first_text(filtered) or _first_text(answers), None, True
        used[metric] = None
        people = {HUMAN: human} if isinstance(human, list) and any(map(is_sentence, human)) else {}
        prompt = prompt if isinstance(prompt, str) else None
        rows.append([{"image_id": value.get("image_id"), "caption": caption, **people, PROMPT: prompt}])
    source = "captions from filtered_resps, since pred and answer list objects" if words else "captions from pred"
    note = f"image IDs from {', '.join(used)}; {source}"
    sources = ("filtered_resps", "resps") if words else ()
    return _fixed(parsed, rows, (*used, *sources, "input"), "lmms_eval", "lmms-eval samples (JSON Lines)", note)


def _fixed(
    parsed: Parsed, rows: list, used: Collection[str], format: str, title: str, *notes: str, **more: Any
) -> Parsed:
    """What a format fixes: its columns have roles. used: columns of the file that the rows are made of."""
    more |= {"format": format, "title": title, "notes": notes, "kind": CAPTIONS}
    plain = parsed.with_rows(rows, "image_id", "caption", **more)
    roles = {name: ROLES[name] for name in plain.columns if name in ROLES}
    left_out = tuple(name for name in parsed.columns if name not in used and name not in plain.columns)
    return replace(plain, roles=roles, left_out=left_out)


def _first_text(value: Any) -> str | None:
    while isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, str) else None


def _vlmevalkit(parsed: Parsed) -> Parsed | None:
    """Predictions of VLMEvalKit: no image IDs, only the rows of a benchmark, and the human captions as a list."""
    if not {"index", "answer", "prediction"} <= set(parsed.columns):
        return None
    rows = []
    for index, caption, human, prompt in parsed.values("index", "prediction", "answer", "question"):
        if isinstance(caption, str) and caption.startswith(FAILED):
            caption = None
        if isinstance(human, str) and human.lstrip().startswith("["):
            human = literal(human.strip())
        asked = {PROMPT: prompt} if "question" in parsed.columns else {}
        rows.append([{"image_id": f"{ROW}{index}".strip(), "caption": caption, HUMAN: human, **asked}])
    note = "the file has no image IDs: each image is known by its row until human captions with IDs identify it"
    used = ("index", "answer", "prediction", "question")
    return _fixed(parsed, rows, used, "vlmevalkit", "VLMEvalKit predictions", note, by_rows=True)


# Columns of a batch's requests and answers.
BATCHES = (
    ("custom_id", "response"),
    ("custom_id", "result"),
    ("key", "response"),
    ("recordId", "modelOutput"),
    ("request", "response"),
)


def _batch(parsed: Parsed) -> Parsed | None:
    """The output of a batch API: OpenAI's and those like it, Anthropic's, Gemini's, Vertex's and Bedrock's."""
    pair = next(
        (pair for pair in BATCHES if pair[0] in parsed.columns and _dicts(parsed.columns.get(pair[1], ()))), None
    )
    if pair is None:
        return None
    rows, failed = [], 0
    for request, answer, error in parsed.values(*pair, "error"):
        image = request if pair[0] != "request" else _image_in(request)
        texts = _answers(answer)
        if texts:
            rows.append([{"image_id": image, "caption": texts[0] if len(texts) == 1 else texts}])
        else:
            failed += 1
            rows.append(f"the request failed ({short(_reason(error) or _reason(answer) or 'no answer')})")
    notes = (f"image IDs from {pair[0]}, captions from {pair[1]}",)
    if failed:
        notes += (f"{counted(failed, 'request')} of {len(rows):,} failed",)
    return _fixed(parsed, rows, (*pair, "error"), "batch", "Batch API output", *notes)


def _answers(value: Any) -> list[str]:
    """The texts of an answer, one for each choice; a refusal that a service sets apart is one too."""
    if isinstance(value, list):  # choices, or what the Responses API puts out: reasoning before messages
        messages = [part for part in value if isinstance(part, dict) and part.get("type") != "reasoning"]
        return [text for message in messages for text in _answers(message)]
    if not isinstance(value, dict):
        return []
    for key in ("body", "message", "choices", "candidates", "output", "content", "parts", *TEXT_KEYS):
        inner = value.get(key)
        if text := _text_of(inner) if key in ("content", "parts", *TEXT_KEYS) else "":
            return [text]
        if key not in TEXT_KEYS and (texts := _answers(inner)):
            return texts
    return []


def _text_of(content: Any) -> str:
    """The text of a message: as it is, or its parts of text together, without reasoning; '' if there is none."""
    if isinstance(content, str):
        return content
    parts = [value for value in content if isinstance(value, dict)] if isinstance(content, list) else []
    texts = [value["text"] for value in parts if isinstance(value.get("text"), str) and not value.get("thought")]
    return "\n".join(texts)


def _reason(value: Any) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        return ""
    names = ("message", "code", "blockReason", "finishReason", "error", "body", "promptFeedback", "type", "status_code")
    inner = [value[name] for name in names if value.get(name)]
    return next(filter(None, (str(part) if isinstance(part, int) else _reason(part) for part in inner)), "")


def _image_in(value: Any) -> str | None:
    if isinstance(value, dict):
        for name in ("image", "image_url", "url", "fileUri", "file_uri", "image_path", "path"):
            address = value.get(name)
            if isinstance(address, str) and address and not address.startswith("data:"):
                return address
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next(filter(None, map(_image_in, inner)), None)


def _conversations(parsed: Parsed) -> Parsed | None:
    """Conversations as LLaVA's data sets and chat APIs have them: the first turn of the model is the caption."""
    names = ("conversations", "messages", "conversation")
    column = next((name for name in names if _turns(parsed.columns.get(name, [])[:1])), None)
    if column is None:
        return None
    others = [name for name in parsed.columns if name not in (column, "caption", PROMPT)]
    image = usual_column(others, "image_id image_path image file_name filename images id")
    rows, longer = [], 0
    for turns, *values in parsed.values(column, *others):
        texts = [(_role(turn), _text_of(turn.get("value", turn.get("content")))) for turn in _turns([turns])]
        answers = [index for index, (role, _) in enumerate(texts) if role in MODELS]
        if not answers:
            rows.append("no turn of a model in the conversation")
            continue
        longer += len(answers) > 1
        asked = [text for role, text in texts[: answers[0]] if role in HUMANS]
        prompt = asked[-1].replace("<image>", "").strip() if asked else None
        row = dict(zip(others, values, strict=True))
        name = row.pop(image, None) if image else None
        name = name[0] if isinstance(name, list) and name else name
        rows.append([{"image_id": name or _image_in(turns), "caption": texts[answers[0]][1], PROMPT: prompt, **row}])
    notes = (f"captions are the model's first turn in {column}",)
    if longer:
        notes += (f"later turns of {counted(longer, 'conversation')} left out",)
    return _fixed(parsed, rows, (column, image or ""), "conversations", "Conversations", *notes)


def _turns(values: Sequence) -> list[dict]:
    """The turns of the first conversation; none for anything else."""
    turns = values[0] if values and isinstance(values[0], list) else []
    return turns if turns and all(isinstance(value, dict) and _role(value) for value in turns) else []


def _role(turn: dict) -> str:
    return str(turn.get("from") or turn.get("role") or "").lower()


def _label_studio(parsed: Parsed) -> Parsed | None:
    """Exports of Label Studio: a row per annotation, a column per question; in the smaller one, lists of choices."""

    def plain(image: Any) -> Any:
        return UPLOADED.sub(r"\1", image) if isinstance(image, str) else image

    tasks = [task for task in parsed.columns.get("annotations", ())[:SAMPLE] if isinstance(task, list)]
    if not _dicts(parsed.columns.get("data", ())) or not tasks:
        lists = [name for name, column in parsed.columns.items() if any("choices" in value for value in _dicts(column))]
        image = usual_column(parsed.columns, IMAGE_IDS)
        columns: dict[str, Sequence] = dict(parsed.columns)
        if image:
            columns[image] = list(map(plain, parsed.columns[image]))
        if not lists and (image is None or columns[image] == list(parsed.columns[image])):
            return None
        for name in lists:
            cells = parsed.columns[name]
            columns[name] = [cell.get("choices") if isinstance(cell, dict) else cell for cell in cells]
        return replace(parsed, columns=columns)
    rows = []
    for task, answers in parsed.values("data", "annotations"):
        image = task.get(usual_column(task, IMAGE_IDS) or next(iter(task), "")) if isinstance(task, dict) else None
        parts = []
        for answer in answers if isinstance(answers, list) else ():
            if not isinstance(answer, dict) or answer.get("was_cancelled"):
                continue
            who = answer.get("completed_by")
            part = {"image_id": plain(image), "annotator": who.get("email") if isinstance(who, dict) else who}
            for result in answer.get("result") or ():
                value = result.get("value") if isinstance(result, dict) else None
                if isinstance(value, dict) and isinstance(name := result.get("from_name"), str):
                    keys = (key for key in ("choices", "text", "rating", "number") if key in value)
                    part[name] = value.get(next(keys, ""))
            parts.append(part)
        rows.append(parts or "the task has no annotation")
    parts = [part for row in rows if isinstance(row, list) for part in row]
    if len(parts) == sum(isinstance(row, list) for row in rows):  # one annotation of each image
        for part in parts:
            del part["annotator"]
    return parsed.with_rows(rows, "image_id", format="label_studio", title="Label Studio export")


def _detections(parsed: Parsed) -> Parsed | None:
    """Boxes of a detector: as nested objects (Ultralytics, transformers), or in COCO's form of results."""
    if {"bbox", "category_id"} <= set(parsed.columns) and "category" not in parsed.columns:
        numbers = (str(number) for number in range(1, 91) if number not in NOT_IN_COCO)
        names = dict(zip(numbers, coco_names(), strict=True))
        named = [names.get(str(number)) for number in parsed.columns["category_id"]]
        if not all(named):
            return None
        notes = (*parsed.notes, "names of categories from COCO, since the file lists none")
        return replace(parsed, columns={**parsed.columns, "category": named}, notes=notes)
    if not any({"x1", "xmin"} & value.keys() for value in _dicts(parsed.columns.get("box", ()))):
        return None
    others = [name for name in parsed.columns if name != "box"]
    image = usual_column((name for name in others if name != "id"), IMAGE_IDS)
    of_image = {} if image else {"image_id": parsed.path.stem}
    rows = [
        [{**of_image, **dict(zip(others, values, strict=True)), **box}]
        if isinstance(box, dict)
        else f"{described(box)} where a box is expected"
        for box, *values in parsed.values("box", *others)
    ]
    notes = () if image else ("the file names no image; its own name is taken as the image ID",)
    return parsed.with_rows(rows, notes=(*parsed.notes, *notes))


# Data sets of human captions with a row per caption: columns of image IDs, of captions, and what else they have.
HUMAN_SETS = (("image_name", "comment", "comment_number"), ("image_id", "caption_str", "reference_strs"))


def _human_set(parsed: Parsed) -> Parsed | None:
    """Flickr30k's and TextCaps' tables of human captions."""
    for image, *others in HUMAN_SETS:
        if {image, *others} <= parsed.columns.keys():
            return replace(parsed, kind=REFERENCES, roles={image: "image_id", others[0]: "caption"})
    return None


def _nested(parsed: Parsed) -> Parsed | None:
    """Fields of objects as columns: of JSON in a table, also as text or in a code fence.

    A field with texts is called COLUMN.FIELD; any other, such as a label, by its own name if that is free.
    """
    notes: list[str] = []
    columns: dict[str, Sequence] = dict(parsed.columns)
    for name, column in list(columns.items()) if not parsed.kind else ():  # a format with a kind says what they are
        cells = [cell for cell in column if not is_missing(cell)]
        objects = [_object(cell) for cell in cells[:SAMPLE]]
        if not objects or sum(value is not None for value in objects) < NEARLY_ALL * len(objects):
            continue
        values = list(map(_object, columns.pop(name)))
        notes.append(f"{short(name)} holds objects, whose fields are columns")
        for field in dict.fromkeys(key for value in values if value for key in value):
            inner = [value.get(field) if value else None for value in values]
            free = field not in columns and not is_about_labeller(name) and not any(map(is_sentence, inner[:SAMPLE]))
            columns[field if field == name or free else f"{name}.{field}"] = inner
    return replace(parsed, columns=columns, notes=(*parsed.notes, *notes)) if notes else None


def _object(cell: Any) -> dict | None:
    """A cell that is an object, also one as text; None for another."""
    if isinstance(cell, str):
        text = fenced[1] if (fenced := FENCE.fullmatch(cell)) else cell.strip()
        if text[:1] != "{":
            return None
        try:
            cell = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            return None
    return cell if isinstance(cell, dict) else None


def _listed(parsed: Parsed) -> Parsed | None:
    """A row per object of the first column of lists of objects without captions, such as the people on an image."""
    for name, column in parsed.columns.items() if not parsed.kind else ():
        cells = [cell for cell in column if cell is not None]
        if not all(isinstance(cell, list) and all(isinstance(part, dict) for part in cell) for cell in cells):
            continue
        if any(cells) and not any(is_sentence(text) for cell in cells for part in cell for text in part.values()):
            names = tuple(parsed.columns)
            records = (dict(zip(names, values, strict=True)) for values in parsed.values(*names))
            rows = [[{**record, name: part} for part in record[name] or [None]] for record in records]
            return parsed.with_rows(rows, notes=(*parsed.notes, f"a row per object in {short(name)}"))
    return None


def _plain(parsed: Parsed) -> Parsed | None:
    """Objects within objects, and lists of them, as plain columns and rows."""
    result = None
    for _ in range(DEPTH):
        step = _listed(result or parsed) or _nested(result or parsed)
        if step is None:
            break
        result = step
    return result


SHAPES: tuple[Callable[[Parsed], Parsed | None], ...] = (
    _lmms_eval,
    _vlmevalkit,
    _batch,
    _conversations,
    _label_studio,
    _detections,
    _human_set,
    _plain,
)
