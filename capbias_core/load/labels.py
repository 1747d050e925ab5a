"""From raw rows to a table of labels, one row per image."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from capbias_core.attributes.labels import MIXED, MOST_LABELS, annotator_column, has_people, is_unknown, meaning
from capbias_core.errors import CapbiasError
from capbias_core.load.ids import UNSTORABLE, described, normalise_image_id
from capbias_core.load.parsed import Parsed
from capbias_core.load.rows import (
    MOST_COLUMNS,
    RowErrors,
    chosen_column,
    guess_columns,
    listed,
    merged,
    place_and_message,
)
from capbias_core.types import Table, counted

# What becomes of the labels of an image that has several rows.
RULES = BOTH, MAJORITY, FIRST, EACH = "both", "majority", "first", "each"
MOST_ANNOTATORS = 10  # who get a column each; of more, the first labels of all images are a column, and so on
# Columns of Amazon Mechanical Turk: what annotators saw, what they answered, and whether that was accepted.
INPUT, ANSWER, STATUS = "Input.", "Answer.", "AssignmentStatus"
# Columns that name the image in tables of labels, after the usual names of every table.
IMAGE_NAMES = "image_url img_url image_link image_uri url idx key"

Labels = tuple[str, ...]


def labels(parsed: Parsed, columns: Mapping[str, str] | None = None, several: str = "") -> Table:
    """The labels of a file as text: one row per image, a column for each column but that of image ids.

    columns: the name for `image_id` if it is not a usual one. several: what the label of an image with several rows is,
    one of RULES:

    - `both`: the label that all rows have, whatever its spelling; MIXED if they differ. Unknown labels do not count
      beside known ones. This is the usual rule, as for one row per person.
    - `majority`: the label that most rows have; MIXED in a tie. This is the usual rule if each row of an image has
      another annotator.
    - `first`: that of the first row.
    - `each`: a column per annotator.

    The rule and its counts are in the notes. Raises CapbiasError if no row has an image id and a label.
    """
    if several and several not in RULES:
        raise CapbiasError(f"There is no rule {several!r} for several rows per image.", f"Use {', '.join(RULES)}.")
    file, raw_columns = parsed.path.name, _with_choices(parsed.columns)
    names, chosen = tuple(raw_columns), (columns or {}).get("image_id")
    image_id = chosen_column(file, names, chosen) if chosen else image_column(names)
    answers = [name for name in names if name.startswith(ANSWER)]
    labelled = answers or [name for name in names if name != image_id]
    if image_id is None or not labelled:
        raise CapbiasError(
            f"{file} has no column of image IDs beside columns of labels; its columns are {listed(names)}.",
            "Name the column of image IDs with --image-id-column, or on the Data page.",
        )
    who = annotator_column(name for name in names if name != image_id)
    if who and who not in labelled:
        labelled = [*labelled, who]
    images, rejected, faults = _by_image(parsed, [raw_columns[name] for name in (image_id, *labelled)], file)
    problems, count = merged(parsed.faults, faults)
    if not images:
        first = f" The first problem is at {': '.join(place_and_message(problems[0]))}." if problems else ""
        raise CapbiasError(f"No row of {file} has an image ID and a label ({parsed.rows:,} rows).{first}")
    notes = [f"{counted(rejected, 'rejected answer')} left out"] if rejected else []
    if any(len(set(rows)) > 1 for rows in images.values()):
        single, more = _combined(images, labelled, who, names, several)
        notes += more
    else:  # without a column that says who gave an answer, which is no label
        single = {name: [rows[0][place] for rows in images.values()] for place, name in enumerate(answers or labelled)}
    texts = {f"{name} (in the file)" if name == "image_id" else name: values for name, values in single.items()}
    frame = pd.DataFrame({"image_id": list(images), **texts}, dtype="str")
    return Table(
        frame,
        parsed.rows,
        duplicates=sum(len(rows) - len(set(rows)) for rows in images.values()),
        problems=problems,
        problem_count=count,
        notes=(*parsed.notes, *notes),
    )


def image_column(names: Sequence[str]) -> str | None:
    """The column of a table of labels that usually has the image ids, None if there is none."""
    shown = {name.removeprefix(INPUT): name for name in names if name.startswith(INPUT)}
    for candidates in (shown, {name: name for name in names}):
        usual = guess_columns(candidates)["image_id"]
        by_lower = {name.strip().lower().replace(" ", "_"): name for name in reversed(list(candidates))}
        usual = usual or next((by_lower[name] for name in IMAGE_NAMES.split() if name in by_lower), None)
        if usual:
            return candidates[usual]
    return None


def _with_choices(columns: Mapping[str, Sequence]) -> dict[str, Sequence]:
    """The columns, with `Answer.gender.Female` and `Answer.gender.Male`, true or false, as one column
    `Answer.gender`."""
    choices: dict[str, dict[str, str]] = {}
    for name, values in columns.items():
        question, _, option = name.rpartition(".")
        if question.startswith(ANSWER) and {str(value).lower() for value in values} <= {"true", "false", ""}:
            choices.setdefault(question, {})[option] = name
    merged_columns = dict(columns)
    for question, options in choices.items():
        rows = zip(*(merged_columns.pop(name) for name in options.values()), strict=True)
        chosen = [
            [name for name, ticked in zip(options, row, strict=True) if str(ticked).lower() == "true"] for row in rows
        ]
        merged_columns[question] = chosen
    return merged_columns


def _by_image(
    parsed: Parsed, raw_columns: Sequence[Sequence], file: str
) -> tuple[dict[str, list[Labels]], int, RowErrors]:
    """Image -> the labels of its rows, in file order; how many rows were rejected; rows that cannot be used.

    raw_columns: image ids, then labels.
    """
    faults, images, rejected = RowErrors(file, parsed.faults.unit), {}, 0
    status = parsed.columns[STATUS] if STATUS in parsed.columns else [None] * len(parsed.numbers)
    for number, state, raw_id, *raw in zip(parsed.numbers, status, *raw_columns, strict=True):
        if state == "Rejected":
            rejected += 1
            continue
        try:
            image, row = normalise_image_id(raw_id), tuple(map(label_text, raw))
        except ValueError as error:
            faults.add(number, str(error))
            continue
        images.setdefault(image, []).append(row)
    return images, rejected, faults


def _combined(
    images: Mapping[str, list[Labels]], labelled: list[str], who: str | None, names: Sequence[str], several: str
) -> tuple[dict[str, list[str]], list[str]]:
    """The columns of labels with one label per image, by a rule; sentences on the rule and its counts."""
    repeated = [rows for rows in images.values() if len(rows) > 1]
    by = labelled.index(who) if who else -1
    per_annotator = sum(len({row[by] for row in rows}) == len(rows) for rows in repeated) if who else 0
    annotated = 2 * per_annotator > len(repeated)
    rule = several or (MAJORITY if annotated else BOTH)
    kept = {
        name: place
        for place, name in enumerate(labelled)
        if place != by and (rule == FIRST or _may_be_labels(images, place))
    }
    per = f" (one per {who})" if annotated else " (such as one per person)" if has_people(names) else ""
    notes = [f"{len(repeated):,} of {counted(len(images), 'image')} have several rows{per}: {EXPLAINED[rule]}"]
    if rule == EACH:
        return _by_annotator(images, kept, by), notes
    combine = COMBINE[rule]
    columns = {
        name: [combine([row[place] for row in rows]) if len(rows) > 1 else rows[0][place] for rows in images.values()]
        for name, place in kept.items()
    }
    what = "show people with" if has_people(names) else "have rows with"
    different = "have no majority" if rule == MAJORITY else f"{what} different labels"
    mixed = {name: number for name, values in columns.items() if (number := values.count(MIXED))}
    in_words = [name for name in mixed if not all(map(_is_number, set(columns[name])))]
    notes += [
        f"{mixed[name]:,} of {counted(len(images), 'image')} {different} in {name} and get no label"
        for name in in_words or mixed
    ]
    return columns, notes


def _may_be_labels(images: Mapping[str, list[Labels]], place: int) -> bool:
    """Whether a column of a table with several rows per image may hold labels. Times, ids of rows and coordinates do
    not: they differ in the rows of an image, and most of their values are there once."""
    values = [row[place] for rows in images.values() for row in rows]
    if len(set(values)) <= max(MOST_LABELS + 1, len(values) // 2):
        return True
    return all(row[place] == rows[0][place] for rows in images.values() for row in rows)


def _is_number(label: str) -> bool:
    return not label or label == MIXED or label.replace(".", "", 1).lstrip("+-").isdigit()


def _by_annotator(images: Mapping[str, list[Labels]], kept: Mapping[str, int], by: int) -> dict[str, list[str]]:
    """A column for each column of labels and annotator; of many annotators, for the first row of images and so on."""
    annotators = list(dict.fromkeys(row[by] for rows in images.values() for row in rows)) if by >= 0 else []
    if not 0 < len(annotators) <= MOST_ANNOTATORS:
        annotators = [str(number + 1) for number in range(max(map(len, images.values())))]
        by = -1
    if len(annotators) * len(kept) > MOST_COLUMNS:
        raise CapbiasError(
            f"One column per annotator would be {len(annotators) * len(kept):,} columns, more than {MOST_COLUMNS:,}.",
            f"Use another rule for several rows per image: {', '.join(RULES)}.",
        )
    given: list[dict[str, list[Labels]]] = []
    for rows in images.values():
        given.append({})
        for number, row in enumerate(rows):
            given[-1].setdefault(row[by] if by >= 0 else annotators[number], []).append(row)
    return {
        f"{name} {annotator}".strip(): [_shared([row[place] for row in each.get(annotator, ())]) for each in given]
        for name, place in kept.items()
        for annotator in annotators
    }


def _shared(given: Sequence[str]) -> str:
    """The label that all have, as it was first spelled; unknown ones do not count beside known ones."""
    different = list(dict.fromkeys(label for label in given if label))
    known = [label for label in different if not is_unknown(label)] if len(different) > 1 else different
    return MIXED if len(set(map(_sense, known))) > 1 else (known or different or [""])[0]


def _most_frequent(given: Sequence[str]) -> str:
    """The label that most have, as it was first spelled; empty ones do not vote."""
    labels = [label for label in given if label]
    votes = Counter(map(_sense, labels)).most_common(2)
    if len(votes) == 2 and votes[0][1] == votes[1][1]:
        return MIXED
    return next((label for label in labels if _sense(label) == votes[0][0]), "")


def _sense(label: str) -> str:
    """The same for labels that mean the same."""
    return meaning(label) or label.casefold()


COMBINE: dict[str, Callable[[Sequence[str]], str]] = {
    BOTH: _shared,
    MAJORITY: _most_frequent,
    FIRST: lambda given: given[0],
}
EXPLAINED = {
    BOTH: f"an image gets the label that they share (rule {BOTH})",
    MAJORITY: f"an image gets the label that most of them have (rule {MAJORITY})",
    FIRST: f"an image gets the label of the first (rule {FIRST})",
    EACH: f"each annotator's labels are a column (rule {EACH})",
}


def label_text(value: object) -> str:
    """A raw label as stripped text: '' where empty, lists joined with `|`, objects and bytes only named.

    ValueError for text that cannot be kept.

    >>> [label_text(value) for value in (" Male ", 3, None, ["person", "dog"], {"a": 1}, [[1], "x"])]
    ['Male', '3', '', 'person|dog', '(an object)', '(a list)|x']
    """
    if isinstance(value, (list, tuple)):
        return "|".join(map(_scalar_text, value))
    return _scalar_text(value)


def _scalar_text(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, (list, tuple, dict, bytes)):
        return f"({described(value)})"
    text = str(value).strip()
    if UNSTORABLE.search(text):
        raise ValueError("a label holds a NUL character or half a surrogate pair")
    return text
