"""What every reader hands over: raw columns, the number of each row, and the rows that it could not read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from capbias_core.errors import CapbiasError
from capbias_core.load.ids import UNSTORABLE, described, short
from capbias_core.types import Problem

KEPT_PROBLEMS = 20
# What a file may hold, so that a small one that unpacks to much does not eat the machine.
MOST_ROWS, MOST_COLUMNS, MOST_CHARACTERS = 5_000_000, 1_000, 1_000_000

USUAL_NAMES = {
    "image_id": """
        image_id img_id imageid imgid image_name img_name file_name filename image_file image_path img_path filepath
        image img cocoid coco_id photo photo_id photograph picture picture_id file path id question_id
    """,
    "caption": """
        caption pred prediction predicted_caption generated_caption generated_text model_output text sentence generated
        generation hypothesis output outputs response description comment captions caption_list sentences references
        predictions raw answer answers
    """,
}
# Columns beside captions. Human captions of the same image; the prompt that a caption answers.
REFERENCES, PROMPT = "references", "prompt"
USUAL_REFERENCES = f"{REFERENCES} refs reference human_captions gts"
USUAL_PROMPTS = f"{PROMPT} question instruction"


class RowErrors:
    """Rows that are left out: the first few as problems, and how many in all. unit: "line" or "record"."""

    def __init__(self, file: str, unit: str):
        self.file, self.unit = file, unit
        self.first: list[Problem] = []
        self.count = 0

    def add(self, number: int, message: str) -> None:
        self.count += 1
        if len(self.first) < KEPT_PROBLEMS:
            where = "" if self.unit == "line" else f"{self.unit} {number}: "
            self.first.append(Problem(self.file, number, where + message))


def merged(*faults: RowErrors) -> tuple[tuple[Problem, ...], int]:
    """The first problems of several lists in file order, and how many there are in all."""
    together = sorted((problem for each in faults for problem in each.first), key=lambda problem: problem.line)
    return tuple(together[:KEPT_PROBLEMS]), sum(each.count for each in faults)


def place_and_message(problem: Problem) -> tuple[str, str]:
    """("line 7", message); a message that begins with its record gives ("record 7", the rest)."""
    record = f"record {problem.line}: "
    if problem.message.startswith(record):
        return record.rstrip(": "), problem.message.removeprefix(record)
    return f"line {problem.line}", problem.message


@dataclass(frozen=True)
class Rows:
    """values: column -> one raw value a row, in the order asked for (n rows each).

    numbers: (n,) line or record of each row. total: rows in the file, those in `faults` included. notes: what was taken
    from where, as plain sentences, if the names of the columns do not say it.
    """

    values: Mapping[str, Sequence]
    numbers: Sequence[int]
    total: int
    faults: RowErrors
    notes: tuple[str, ...] = ()


Choose = Callable[[tuple[str, ...]], tuple[str, ...]]
"""From the columns a file has to those that are read; raises CapbiasError where one is missing."""


def names_of(records: Iterable) -> tuple[str, ...]:
    """Every key of the records that are dicts, in order of appearance, but those that cannot be kept as text."""
    names = dict.fromkeys(name for record in records if isinstance(record, dict) for name in record)
    return tuple(name for name in names if not UNSTORABLE.search(name))


def rows_of_records(records: Sequence, choose: Choose, file: str) -> Rows:
    """Rows from a list of dicts (JSON, pickle); anything else in the list is a fault."""
    faults, numbers = RowErrors(file, "record"), range(1, len(records) + 1)
    wrong = {place for place, record in enumerate(records) if not isinstance(record, dict)}
    for place in sorted(wrong):
        faults.add(place + 1, f"{described(records[place])} where an object is expected")
    if wrong:
        records = [record for place, record in enumerate(records) if place not in wrong]
        numbers = [number for number in numbers if number - 1 not in wrong]
    return _rows(numbers, records, choose, faults)


def rows_of_numbered(
    numbered: Sequence[tuple[int, dict]],
    choose: Choose,
    faults: RowErrors,
    names: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
) -> Rows:
    """Rows from dicts, each with its line or record; absent keys give None. names: those that a format always has."""
    numbers, records = [number for number, _ in numbered], [record for _, record in numbered]
    return _rows(numbers, records, choose, faults, names, notes)


def _rows(
    numbers: Sequence[int],
    records: Sequence[dict],
    choose: Choose,
    faults: RowErrors,
    names: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
) -> Rows:
    columns = choose(checked_names(faults.file, names or names_of(records)))
    values = {name: [record.get(name) for record in records] for name in columns}
    return Rows(values, numbers, len(records) + faults.count, faults, notes)


def guess_columns(names: Iterable[str]) -> dict[str, str | None]:
    """For `image_id` and `caption`, the column that usually holds it, or None."""
    names = tuple(names)
    return {role: _usual(names, usual) for role, usual in USUAL_NAMES.items()}


def _usual(names: Iterable[str], usual: str) -> str | None:
    """The first of the usual names that there is, as it is written there."""
    known = {}
    for name in names:
        known.setdefault(name.strip().lower().replace(" ", "_").replace("-", "_"), name)
    return next((known[name] for name in usual.split() if name in known), None)


def column_beside(names: Iterable[str], usual: str) -> str | None:
    """The column with one of the usual names, such as USUAL_REFERENCES, that stands beside one of captions, or None."""
    names = tuple(names)
    caption = guess_columns(names)["caption"]
    return found if caption and (found := _usual(names, usual)) != caption else None


def listed(names: Sequence[str], most: int = 12) -> str:
    """Column names for a message, cut where they are many or long."""
    shown = ", ".join(map(short, names[:most])) or "(none)"
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def checked_names(file: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names, each of which a table has once. Raises CapbiasError where two are the same."""
    if len(names) > MOST_COLUMNS:
        raise CapbiasError(
            f"{file} with {len(names):,} columns", f"at most {MOST_COLUMNS:,}", "Keep those that are needed."
        )
    if len(set(names)) < len(names):
        raise CapbiasError(
            f"{file} with the columns {listed(names)}", "columns of different names", "Rename or remove one."
        )
    return names


def chosen_column(file: str, names: Sequence[str], name: str) -> str:
    """`name`, where the file has it. Raises CapbiasError."""
    if name not in names:
        raise CapbiasError(
            f"{file} with the columns {listed(names)}", f"a column called {name}", "Choose one of its columns."
        )
    return name


def choose_captions(names: tuple[str, ...], file: str, given: dict[str, str | None], human: bool) -> tuple[str, ...]:
    """The column of image ids and that of captions: those given by name, else the usual ones.

    human: take the human captions, if they have a column beside the captions of a model. Else the column of prompts, if
    there is one, comes third.
    """
    guess = guess_columns(names)
    if human:
        guess["caption"] = column_beside(names, USUAL_REFERENCES) or guess["caption"]
    chosen = {role: chosen_column(file, names, name) if (name := given.get(role)) else guess[role] for role in guess}
    image_id, caption = chosen["image_id"], chosen["caption"]
    if {"image_id", "category_id"} <= set(names) and caption is None:
        raise CapbiasError(
            f"{file}, which tells the objects on images (category_id)",
            "a column of image ids and one of captions",
            "Load it as objects, or as outlines.",
        )
    if image_id is None or caption is None or image_id == caption:
        raise CapbiasError(
            f"{file} with the columns {listed(names)}",
            "a column of image ids and one of captions",
            "Choose the columns by name: in the two boxes on the Data page, or with --image-id-column and "
            "--caption-column.",
        )
    prompt = None if human else column_beside(names, USUAL_PROMPTS)
    return (image_id, caption, prompt) if prompt and prompt not in (image_id, caption) else (image_id, caption)


def choose_labels(names: tuple[str, ...], file: str, id_column: str | None) -> tuple[str, ...]:
    """The column of image ids first, then every other column."""
    image_id = chosen_column(file, names, id_column) if id_column else guess_columns(names)["image_id"]
    labels = [name for name in names if name != image_id]
    if image_id is None or not labels:
        raise CapbiasError(
            f"{file} with the columns {listed(names)}",
            "a column of image ids (such as image_id) and one or more columns of labels",
            "Choose the column of image ids and, if the file holds captions, theirs: in the boxes on the Data page, or "
            "with --image-id-column and --caption-column.",
        )
    return image_id, *labels


def nothing_usable(file: str, rows: int, problems: tuple[Problem, ...], note: str = "") -> CapbiasError:
    """The error for a file of which no row is left."""
    first = "the first problem is at " + ": ".join(place_and_message(problems[0])) if problems else ""
    reason = "; ".join(part for part in (note, first) if part)
    return CapbiasError(
        f"{file} has {rows:,} rows and none that can be used{f' ({reason})' if reason else ''}.",
        "Check the file, and that the chosen columns are the right ones.",
    )
