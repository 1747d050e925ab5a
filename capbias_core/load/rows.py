"""What every reader uses: faulty rows, limits, and the usual names of columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from capbias_core.errors import CapbiasError
from capbias_core.load.ids import UNSTORABLE, short
from capbias_core.types import Problem

KEPT_PROBLEMS = 20
# What a file may hold, so that a small one that unpacks to much does not fill the memory.
MOST_ROWS, MOST_COLUMNS, MOST_CHARACTERS = 5_000_000, 1_000, 1_000_000

USUAL_NAMES = {
    "image_id": """
        image_id img_id imageid imgid image_name img_name file_name filename image_file image_path img_path filepath
        image img cocoid coco_id photo photo_id photograph picture picture_id image_url img_url file path url id
        question_id idx
    """,
    "caption": """
        caption pred prediction predicted_caption generated_caption generated_text model_output text sentence generated
        generation hypothesis output outputs response description comment captions caption_list sentences caption_str
        references predictions raw answer answers
    """,
}
# Columns beside captions. Human captions of the same image; the prompt that a caption answers.
REFERENCES, PROMPT = "references", "prompt"
USUAL_REFERENCES = f"{REFERENCES} refs reference human_captions gts"
USUAL_PROMPTS = f"{PROMPT} question instruction"
# At most so many different values in a column of labels.
FEW_VALUES = 20


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


def names_of(records: Iterable) -> tuple[str, ...]:
    """Every key of the records that are dicts, in order of appearance, but those that cannot be kept as text."""
    names = dict.fromkeys(name for record in records if isinstance(record, dict) for name in record)
    return tuple(name for name in names if not UNSTORABLE.search(name))


def guess_columns(names: Iterable[str]) -> dict[str, str | None]:
    """For `image_id` and `caption`, the column that usually holds it, or None."""
    names = tuple(names)
    return {role: usual_column(names, usual) for role, usual in USUAL_NAMES.items()}


def usual_column(names: Iterable[str], usual: str) -> str | None:
    """The first of the usual names that a file has, as it is written there; `Input.` of Mechanical Turk left out."""
    known = {}
    for name in names:
        known.setdefault(name.strip().lower().replace(" ", "_").replace("-", "_").removeprefix("input."), name)
    return next((known[name] for name in usual.split() if name in known), None)


def column_beside(names: Iterable[str], usual: str) -> str | None:
    """The column with one of the usual names, such as USUAL_REFERENCES, beside one of captions, or None."""
    names = tuple(names)
    caption = guess_columns(names)["caption"]
    return beside if caption and (beside := usual_column(names, usual)) != caption else None


def few_values(values: Sequence) -> bool:
    """Whether values are labels rather than captions: short, and few that come again and again."""
    different = {str(value) for value in values if value is not None}
    if len(different) > FEW_VALUES or len(different) * 2 > len(values):
        return False
    return all(len(value.split()) <= 3 for value in different)


def is_sentence(text: object) -> bool:
    """Whether a text may be a caption rather than a label."""
    return isinstance(text, str) and (len(text.split()) > 2 or (not text.isascii() and len(text) > 5))


def listed(names: Sequence[str], most: int = 12) -> str:
    """Column names for a message, cut where they are many or long."""
    shown = ", ".join(map(short, names[:most])) or "(none)"
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def checked_names(file: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names of columns. Raises CapbiasError if there are too many, or two are the same."""
    if len(names) > MOST_COLUMNS:
        raise CapbiasError(f"{file} has {len(names):,} columns; at most {MOST_COLUMNS:,} are read.", "Delete some.")
    if len(set(names)) < len(names):
        raise CapbiasError(f"{file} has two columns of the same name: {listed(names)}.", "Rename or delete one.")
    return names


def check_rows(file: str, total: int) -> None:
    """Raises CapbiasError for more rows than are read of any file."""
    if total > MOST_ROWS:
        raise CapbiasError(f"{file} has {total:,} rows; at most {MOST_ROWS:,} are read.", "Split the file.")


def chosen_column(file: str, names: Iterable[str], name: str) -> str:
    """`name`, if the file has it. Raises CapbiasError."""
    if name not in (names := tuple(names)):
        raise CapbiasError(f"{file} has no column {short(name)!r}.", f"Its columns are {listed(names)}.")
    return name


def nothing_usable(file: str, rows: int, problems: tuple[Problem, ...], note: str = "") -> CapbiasError:
    """The error for a file of which no row is left."""
    first = "the first problem is at " + ": ".join(place_and_message(problems[0])) if problems else ""
    reason = "; ".join(part for part in (note, first) if part)
    return CapbiasError(
        f"{file} has {rows:,} rows and none that can be used{f' ({reason})' if reason else ''}.",
        "Check the file, and that the chosen columns are the right ones.",
    )
