"""From raw rows to a table of labels, one row per image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from capbias_core.attributes.labels import MIXED, MOST_LABELS, annotator_column, is_unknown, meaning
from capbias_core.errors import CapbiasError
from capbias_core.load.account import account_lines
from capbias_core.load.ids import normalise_image_id
from capbias_core.load.parsed import IMAGE_IDS, MOST_COLUMNS, Parsed, chosen_column, label_text, listed, usual_column
from capbias_core.types import Table, counted

# Rules for the label of an image that has several rows.
RULES = BOTH, MAJORITY, FIRST, EACH = "both", "majority", "first", "each"
EXPLAINED = {
    BOTH: f"an image gets the label that they share (rule {BOTH})",
    MAJORITY: f"an image gets the label that most of them have (rule {MAJORITY})",
    FIRST: f"an image gets the label of the first (rule {FIRST})",
    EACH: f"each annotator's labels are a column (rule {EACH})",
}
MOST_ANNOTATORS = 10  # with a column each; of more, the first labels of all images are a column, and so on
STATUS = "AssignmentStatus"  # the column in which Amazon Mechanical Turk says whether an answer was accepted

Labels = tuple[str, ...]


def labels(parsed: Parsed, columns: Mapping[str, str] | None = None, several: str = "") -> Table:
    """The labels of a file as text: one row per image, with all columns but that of image IDs.

    columns: the name for `image_id` if it is not a usual one. several: the rule for images with several rows:

    - `both`: the label that all rows have, in any spelling; MIXED if they differ. Unknown labels do not count beside
      known ones. The default, as for one row per person.
    - `majority`: the label that most rows have; MIXED in a tie. The default if each row has another annotator.
    - `first`: that of the first row.
    - `each`: a column per annotator.

    The rule and its counts are in the notes. Raises CapbiasError if no row has an image ID and a label.
    """
    if several and several not in RULES:
        raise CapbiasError(f"There is no rule {several!r} for several rows per image.", f"Use {', '.join(RULES)}.")
    file, names, chosen = parsed.path.name, tuple(parsed.columns), (columns or {}).get("image_id")
    usual = usual_column(names, f"{IMAGE_IDS} image_link image_uri key")
    image_id = chosen_column(file, names, chosen) if chosen else usual
    labelled = [name for name in names if name != image_id]
    if image_id is None or not labelled:
        raise CapbiasError(
            f"{file} has no column of image IDs beside columns of labels; its columns are "
            f"{'; '.join((listed(names), *parsed.notes))}.",
            "Name the column of image IDs.",
            "image_id_column",
        )
    who = annotator_column(labelled)
    faults, rejected = parsed.faults.copy(), 0
    images: dict[str, list[Labels]] = {}  # image ID -> the labels of its rows, in file order
    raw_rows = parsed.values(STATUS, image_id, *labelled)
    for number, (state, raw_id, *raw) in zip(parsed.numbers, raw_rows, strict=True):
        if state == "Rejected":
            rejected += 1
            continue
        try:
            image, row = normalise_image_id(raw_id), tuple(map(label_text, raw))
            images.setdefault(image, []).append(row)
        except ValueError as error:
            faults.add(number, str(error))
    if not images:
        raise parsed.unusable(faults)
    notes = [f"{counted(rejected, 'rejected answer')} left out"] if rejected else []
    if any(len(set(rows)) > 1 for rows in images.values()):
        single, more = _combined(images, labelled, who, several)
        notes += more
    else:
        single = {name: [rows[0][index] for rows in images.values()] for index, name in enumerate(labelled)}
    account = _account(parsed, image_id, single, Counter(len(rows) for rows in images.values()))
    texts = {f"{name} (in the file)" if name == "image_id" else name: values for name, values in single.items()}
    return Table(
        pd.DataFrame({"image_id": list(images), **texts}, dtype="str"),
        parsed.rows,
        duplicates=sum(len(rows) - len(set(rows)) for rows in images.values()),
        problems=tuple(faults.first),
        problem_count=faults.count,
        notes=(*parsed.notes, *notes),
        account=account,
    )


def _account(
    parsed: Parsed, image_id: str, columns: Mapping[str, Sequence[str]], sizes: Mapping[int, int]
) -> tuple[tuple[str, str], ...]:
    """What became of each column and row. columns: of labels, by their names in the table. sizes: rows of an image ->
    images."""
    fields, unused = [(image_id, "Image ID", "")], []
    for name, labels in columns.items():
        different = len(set(labels))
        if 1 < different <= MOST_LABELS:
            fields.append((name, "Labels", ""))
        else:
            same = "differs between rows of an image" if labels[0] == MIXED else "the same in every row"
            unused.append((name, "Not used", same if different == 1 else f"{different:,} different"))
    gone = [name for name in parsed.columns if name != image_id and not any(each.startswith(name) for each in columns)]
    unused += [(name, "Not used", "differs between rows of an image") for name in gone]
    unused += [(name, "Not used", "") for name in parsed.left_out]
    rows = ", ".join(f"{size} ({counted(number, 'image')})" for size, number in sorted(sizes.items())[:8])
    return (*account_lines((*fields, *unused)), ("Rows per image", rows))


def _combined(
    images: Mapping[str, list[Labels]], labelled: list[str], who: str | None, several: str
) -> tuple[dict[str, list[str]], list[str]]:
    """The columns of labels with one label per image, by a rule; sentences on the rule and its counts."""
    repeated = [rows for rows in images.values() if len(rows) > 1]
    by = labelled.index(who) if who else -1
    per_annotator = sum(len({row[by] for row in rows}) == len(rows) for rows in repeated) if who else 0
    annotated = 2 * per_annotator > len(repeated)
    rule = several or (MAJORITY if annotated else BOTH)
    kept = {}  # times, IDs of rows and coordinates are not labels: they differ within an image, and most occur once
    for index, name in enumerate(labelled):
        values = [row[index] for rows in images.values() for row in rows]
        few = len(set(values)) <= max(MOST_LABELS + 1, len(values) // 2)
        same = all(row[index] == rows[0][index] for rows in repeated for row in rows)
        if index != by and (rule == FIRST or few or same):
            kept[name] = index
    per = f" (one per {who})" if annotated else ""
    notes = [f"{len(repeated):,} of {counted(len(images), 'image')} have several rows{per}: {EXPLAINED[rule]}"]
    if rule == EACH:  # a column per column of labels and annotator; of many annotators, for the first row and so on
        annotators = list(dict.fromkeys(row[by] for rows in images.values() for row in rows)) if by >= 0 else []
        if not 0 < len(annotators) <= MOST_ANNOTATORS:
            annotators, by = [str(number + 1) for number in range(max(map(len, images.values())))], -1
        if len(annotators) * len(kept) > MOST_COLUMNS:
            number = len(annotators) * len(kept)
            raise CapbiasError(
                f"One column per annotator would be {number:,} columns, more than {MOST_COLUMNS:,}.",
                f"Use another rule for several rows per image: {', '.join(RULES)}.",
            )
        given: list[dict[str, list[Labels]]] = []  # per image: annotator -> rows
        for rows in images.values():
            given.append({})
            for number, row in enumerate(rows):
                given[-1].setdefault(row[by] if by >= 0 else annotators[number], []).append(row)
        return {
            f"{name} {annotator}".strip(): [_shared([row[index] for row in rows.get(annotator, ())]) for rows in given]
            for name, index in kept.items()
            for annotator in annotators
        }, notes
    combine = COMBINE[rule]
    columns = {
        name: [combine([row[index] for row in rows]) if len(rows) > 1 else rows[0][index] for rows in images.values()]
        for name, index in kept.items()
    }
    different = "have no majority" if rule == MAJORITY else "have rows with different labels"
    mixed = {name: number for name, values in columns.items() if (number := values.count(MIXED))}
    if len(columns) > 1:  # a column that differs within every image holds no labels of images
        mixed = {name: number for name, number in mixed.items() if number < len(images)}
    in_words = [
        name
        for name in mixed
        if not all(value.replace(".", "", 1).lstrip("+-").isdigit() for value in {*columns[name]} - {"", MIXED})
    ]
    notes += [
        f"{mixed[name]:,} of {counted(len(images), 'image')} {different} in {name} and get no label"
        for name in in_words or mixed
    ]
    return columns, notes


def _shared(given: Sequence[str]) -> str:
    """The label that all have, in its first spelling; unknown ones do not count beside known ones."""
    different = list(dict.fromkeys(label for label in given if label))
    known = [label for label in different if not is_unknown(label)] if len(different) > 1 else different
    return MIXED if len(set(map(_sense, known))) > 1 else (known or different or [""])[0]


def _most_frequent(given: Sequence[str]) -> str:
    """The label that most have, in its first spelling; empty ones do not vote."""
    labels = [label for label in given if label]
    votes = Counter(map(_sense, labels)).most_common(2)
    if len(votes) == 2 and votes[0][1] == votes[1][1]:
        return MIXED
    return next((label for label in labels if _sense(label) == votes[0][0]), "")


def _sense(label: str) -> str:
    return meaning(label) or label.casefold()


COMBINE: dict[str, Callable[[Sequence[str]], str]] = {
    BOTH: _shared,
    MAJORITY: _most_frequent,
    FIRST: lambda given: given[0],
}
