"""From raw rows to a table of captions."""

from __future__ import annotations

import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.load.ids import UNSTORABLE, described, normalise_image_id
from capbias_core.load.rows import MOST_CHARACTERS, RowErrors, Rows, merged, place_and_message
from capbias_core.types import CAPTION_COLUMNS, Problem, Table


def caption_table(rows: Rows, file: str, drop_repeats: bool) -> Table:
    """The captions of rows with two columns, image ids and captions. Raises CapbiasError where none is usable.

    drop_repeats: leave out exact repeats of an image and a caption, and count them.
    """
    faults = RowErrors(file, rows.faults.unit)
    images, captions, empty = _kept(rows, faults)
    problems, count = merged(rows.faults, faults)
    if not captions:
        raise nothing_usable(file, rows.total, problems, f"{empty:,} captions are empty" if empty else "")
    frame = pd.DataFrame({"image_id": images, "caption": captions}, dtype="str")
    if drop_repeats:
        frame = frame.drop_duplicates(ignore_index=True)
    frame["caption_index"] = frame.groupby("image_id", sort=False).cumcount()
    duplicates = len(captions) - len(frame)
    return Table(
        frame[list(CAPTION_COLUMNS)],
        rows.total,
        empty=empty,
        duplicates=duplicates,
        problems=problems,
        problem_count=count,
    )


def _kept(rows: Rows, faults: RowErrors) -> tuple[list[str], list[str], int]:
    """Image ids and captions of the usable rows (equal length), and how many captions are empty."""
    ids, raw_captions = rows.values.values()
    lists = _holds_lists(raw_captions)
    images, captions, empty = [], [], 0
    for number, raw_id, raw in zip(rows.numbers, ids, raw_captions, strict=True):
        try:
            image = normalise_image_id(raw_id)
        except ValueError as error:
            faults.add(number, str(error))
            continue
        for caption in (raw or [""]) if lists and isinstance(raw, list) else (raw,):
            fault = caption_fault(caption)
            if fault:
                faults.add(number, fault)
            elif not caption.strip():
                empty += 1
            else:
                images.append(image)
                captions.append(caption)
    return images, captions, empty


def _holds_lists(captions) -> bool:
    """Whether most captions that are there are lists (caption_list); a list among texts is a fault instead."""
    lists = sum(isinstance(caption, list) for caption in captions)
    return lists * 2 > sum(caption is not None for caption in captions)


def caption_fault(caption: object) -> str:
    """What makes a raw caption unusable, or ''."""
    if isinstance(caption, str) and caption.isascii() and "\0" not in caption and len(caption) <= MOST_CHARACTERS:
        return ""  # nearly all, quickly
    if caption is None:
        return "there is no caption (null)"
    if not isinstance(caption, str):
        return f"the caption is {described(caption)}, not text"
    if len(caption) > MOST_CHARACTERS:
        return f"the caption has {len(caption):,} characters; at most {MOST_CHARACTERS:,} are read"
    if UNSTORABLE.search(caption):
        return "the caption holds a NUL character or half a surrogate pair"
    return ""


def nothing_usable(file: str, rows: int, problems: tuple[Problem, ...], note: str = "") -> CapbiasError:
    """The error for a file of which no row is left."""
    first = "the first problem is at " + ": ".join(place_and_message(problems[0])) if problems else ""
    reason = "; ".join(part for part in (note, first) if part)
    return CapbiasError(
        f"{file} with {rows:,} rows and none that can be used" + (f" ({reason})" if reason else ""),
        "one or more rows with an image id and a text",
        "Check the file, and that the columns chosen are the right ones.",
    )
