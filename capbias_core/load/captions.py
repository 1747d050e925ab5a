"""From raw rows to a table of captions."""

from __future__ import annotations

from collections import Counter

import pandas as pd

from capbias_core.load.ids import UNSTORABLE, described, normalise_image_id, short
from capbias_core.load.rows import MOST_CHARACTERS, RowErrors, Rows, merged, nothing_usable
from capbias_core.types import CAPTION_COLUMNS, Table, counted

SHOWN_PROMPTS = 8


def caption_table(rows: Rows, file: str, drop_repeats: bool) -> Table:
    """The captions of rows with two columns, image ids and captions, or with a third, prompts.

    drop_repeats: leave out exact repeats of an image and a caption (for one prompt), and count them. Raises
    CapbiasError where no caption is usable.
    """
    faults = RowErrors(file, rows.faults.unit)
    images, captions, places, empty = _kept(rows, faults)
    problems, count = merged(rows.faults, faults)
    if not captions:
        raise nothing_usable(file, rows.total, problems, f"{empty:,} captions are empty" if empty else "")
    frame = pd.DataFrame({"image_id": images, "caption": captions}, dtype="str")
    frame["prompt"] = _prompts(rows, places)
    usable = len(captions)
    del images, captions, places  # of a million captions 100 MB, which the rest needs
    if drop_repeats:
        frame = frame.drop_duplicates(ignore_index=True)
    frame["caption_index"] = frame.groupby("image_id", sort=False).cumcount()
    duplicates = usable - len(frame)
    prompts = tuple(frame["prompt"]) if frame["prompt"].nunique() > 1 else ()
    return Table(
        frame[list(CAPTION_COLUMNS)],
        rows.total,
        empty=empty,
        duplicates=duplicates,
        problems=problems,
        problem_count=count,
        notes=(*rows.notes, *_prompts_note(prompts)),
        prompts=prompts,
    )


def _prompts_note(prompts: tuple[str, ...]) -> list[str]:
    """`2 prompts: Describe it. (2,000); Say it. (2,000)`, in order of appearance; nothing without prompts."""
    counts = Counter(prompts)
    shown = [f"{short(own) or '(none)'} ({number:,})" for own, number in counts.items()][:SHOWN_PROMPTS]
    more = "; …" if len(counts) > SHOWN_PROMPTS else ""
    return [f"{counted(len(counts), 'prompt')}: {'; '.join(shown)}{more}"] if prompts else []


def _prompts(rows: Rows, places: list[int]) -> list[str] | str:
    """The prompt of the row of each caption; '' where rows have none, or one that is no text."""
    _, _, *prompts = rows.values.values()
    raw = [prompts[0][place] for place in places] if prompts else []
    return [own.strip() if isinstance(own, str) and not caption_fault(own) else "" for own in raw] or ""


def _kept(rows: Rows, faults: RowErrors) -> tuple[list[str], list[str], list[int], int]:
    """Image id, caption and place of its row of every usable caption (equal length); how many captions are empty."""
    ids, raw_captions, *_ = rows.values.values()
    lists = _holds_lists(raw_captions)
    images, captions, places, empty = [], [], [], 0
    for place, (number, raw_id, raw) in enumerate(zip(rows.numbers, ids, raw_captions, strict=True)):
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
                places.append(place)
    return images, captions, places, empty


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
