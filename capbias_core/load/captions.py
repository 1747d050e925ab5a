"""From rows to captions: the sets of a file, one for each captioner, and what several captions of an image are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from capbias_core.errors import unknown_name
from capbias_core.kinds import CAPTIONS
from capbias_core.load.checks import other_languages, quoted
from capbias_core.load.clean import clean_captions
from capbias_core.load.formats import NUMBER
from capbias_core.load.join import Images, id_faults
from capbias_core.load.names import NAMES
from capbias_core.load.questions import Ask, Given, Option
from capbias_core.load.sheet import (
    MOST_CHARACTERS,
    RowErrors,
    Sheet,
    cell_text,
    fields_in,
    is_missing,
    is_scalar,
    last_part,
    listed,
)
from capbias_core.types import CAPTION_COLUMNS, counted

# What several captions of an image are: samples of one set, or a set each; or files are parts of one captioner's.
SETS = SAMPLES, EACH, PARTS = "samples", "each", "parts"
MARKS = ("###", "|", "&&", "<sep>", ";", "\n")
ITEMS = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+", re.MULTILINE)
IMAGE = ["set", "image_id"]  # what is one image of one captioner


@dataclass
class CaptionSet:
    """Captions of one captioner. frame: image_id, caption_index, caption. missing: the images of captions that were
    left out, by reason."""

    name: str  # of the captioner, '' for that of the file
    frame: pd.DataFrame
    missing: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass
class Captions:
    """What a file's columns of captions hold. used: column -> what it was."""

    sets: list[CaptionSet]
    faults: RowErrors
    warnings: tuple[str, ...]
    used: dict[str, str]
    notes: list[str]


def captions_of(
    sheet: Sheet, columns: Sequence[str], images: Images, given: Given, kinds: Sequence[str], people: bool, beside: bool
) -> Captions:
    """The captions in some columns. people: whether people wrote them. beside: whether another file holds a model's.
    Raises Ask if it is open what several captions of an image are, and CapbiasError if none is usable."""
    if given.sets and given.sets not in SETS:
        raise unknown_name("choice of sets", given.sets, SETS)
    used: dict[str, str] = {}
    notes: list[str] = []
    captioner = "" if people else _captioner(sheet, given, used)
    faults = id_faults(sheet, images)
    names = sheet.frame[captioner].map(cell_text).str.split().str.join(" ").tolist() if captioner else []
    rows: list[tuple] = []
    for column in columns:
        cells = sheet.frame[column].tolist()
        mark = _mark(cells) if people else ""
        if mark:
            used[column] = f"texts split at {mark.strip() or 'line ends'}"
        apart = len(columns) > 1 and not people and given.sets != SAMPLES
        for place, image in enumerate(images.ids):
            who = names[place] if captioner else ""
            if image is None:
                continue
            if captioner and not who:
                faults.add(sheet.numbers[place], "no captioner is named")
                continue
            for text in _texts(cells[place], mark, people) or [None]:
                if fault := _fault(text):
                    faults.add(sheet.numbers[place], fault)
                else:
                    rows.append((place, f"{who} {column}".strip() if apart else who, image, text))
    if len(columns) > 1 and given.sets == SAMPLES and not people:
        given.use("sets", SAMPLES)
    if not rows:
        raise sheet.unusable(faults)
    table = pd.DataFrame(rows, columns=["row", *IMAGE, "caption"], dtype=object)
    if not people and table.duplicated(IMAGE).any():
        table = _several(sheet, table, columns, given, kinds, beside, used, notes, captioner)
    cleaned = clean_captions(["" if is_missing(text) else text for text in table["caption"]])
    table = table.assign(caption=cleaned.texts)
    lost = table["caption"].isna()
    if lost.all():
        raise sheet.unusable(faults, ", ".join(f"{rule}: {number:,}" for rule, number in cleaned.counts.items()))
    foreign, warnings = pd.Series(False, index=table.index), list(cleaned.warnings)
    if not people:
        foreign[~lost] = other_languages(table["caption"][~lost].tolist())
    if foreign.mean() > 0.5:  # checks.py refuses the file as a whole, if the attribute has English words
        foreign[:] = False
    elif foreign.any():
        warnings = [line for line in warnings if "are not in English" not in line]
        shown = quoted(table["caption"][foreign].iloc[0])
        warnings.append(f"{foreign.sum():,} of {len(table):,} captions are not in English and are left out: {shown}.")
    sets, table["reason"] = [], np.select([lost, foreign], ["missing", "not in English"], "")
    for name, of_set in table.groupby("set", sort=False):
        captions = of_set[of_set["reason"] == ""][["image_id", "caption"]].astype("str").reset_index(drop=True)
        captions["caption_index"] = captions.groupby("image_id", sort=False).cumcount()
        missing = {str(reason): tuple(ids) for reason, ids in of_set.groupby("reason")["image_id"] if reason}
        if len(captions):
            sets.append(CaptionSet(str(name), captions[list(CAPTION_COLUMNS)], missing))
    return Captions(sets, faults, tuple(warnings), used, notes)


def _fault(text: object) -> str:
    if is_missing(text) or isinstance(text, int | float):
        return ""
    if not isinstance(text, str):
        return "the caption is no text"
    if "\0" in text:
        return "the caption holds a NUL character"
    return f"the caption has {len(text):,} characters" if len(text) > MOST_CHARACTERS else ""


def _captioner(sheet: Sheet, given: Given, used: dict[str, str]) -> str:
    """The column that names the captioner of a row: the given one, or one with a usual name and several values."""
    usual = [name for name in sheet.columns if last_part(name) in NAMES["captioner"] and is_scalar(sheet.frame[name])]
    usual = [name for name in usual if len(set(map(cell_text, sheet.frame[name])) - {""}) > 1]
    for name in [*given.columns("captioner_column", sheet.path, sheet.columns), *usual][:1]:
        used[name] = f"captioners: {listed(dict.fromkeys(map(cell_text, sheet.frame[name])), 6)}"
        return name
    return ""


def _mark(cells: Sequence) -> str:
    """What separates several captions in a text, in nearly all cells of a column; '' if nothing does."""
    texts = [cell.strip() for cell in cells if isinstance(cell, str) and cell.strip()]
    return next((mark for mark in MARKS if texts and sum(mark in text for text in texts) > 0.9 * len(texts)), "")


def _texts(cell: object, mark: str, people: bool) -> list:
    """The texts in a cell."""
    if isinstance(cell, str) and people and cell.lstrip()[:1] == "[" and isinstance(inner := fields_in(cell), list):
        cell = inner
    if isinstance(cell, str) and mark:
        return [ITEMS.sub("", part).strip() for part in cell.split(mark) if part.strip(" #|-\n")]
    if isinstance(cell, list):  # lists within lists, and the objects of pycocoevalcap
        return [text for part in cell for text in _texts(part, "", people)]
    if isinstance(cell, dict):
        return [next((cell[key] for key in ("caption", "text", "raw", "sentence") if key in cell), None)]
    return [cell]


# several captions of an image


def _several(
    sheet: Sheet,
    table: pd.DataFrame,
    columns: Sequence[str],
    given: Given,
    kinds: Sequence[str],
    beside: bool,
    used: dict[str, str],
    notes: list[str],
    captioner: str,
) -> pd.DataFrame:
    """The captions as the user says what several of an image are. Raises Ask if that is open."""
    for rule, column, end in given.rows_of(sheet.path, sheet.columns):  # the best of candidates
        if end in ("min", "max"):
            given.use("rows", rule)
            numbers = table["row"].map(pd.to_numeric(sheet.frame[column], errors="coerce")).astype(float)
            best = table.loc[numbers.sort_values(ascending=end == "min", kind="stable").index].drop_duplicates(IMAGE)
            used[column] = f"of each image the caption with the {'lowest' if end == 'min' else 'highest'}"
            notes.append(
                f"{len(best):,} of {len(table):,} captions read: of each image that with the {end} of {column}"
            )
            return best.sort_index().reset_index(drop=True)
    if given.sets not in (SAMPLES, EACH):
        raise _which(sheet, table, columns, kinds, beside, captioner)
    given.use("sets", given.sets)
    if given.sets == SAMPLES:
        return table
    ends = (table.groupby(IMAGE, sort=False).cumcount() + 1).map(str)
    return table.assign(set=(table["set"] + " " + ends).str.strip())


def _which(
    sheet: Sheet, table: pd.DataFrame, columns: Sequence[str], kinds: Sequence[str], beside: bool, captioner: str
) -> Ask:
    """The question what several captions of an image are."""
    frame = sheet.frame.loc[table["row"].astype(int)].reset_index(drop=True)
    image = table.groupby(IMAGE, sort=False).ngroup()
    scores: list[Option] = []
    sets: list[Option] = []
    for name in frame.columns:
        cells = frame[name].map(str)
        varies = name not in (*columns, captioner) and is_scalar(frame[name])
        if not varies or (cells.groupby(image).nunique() > 1).mean() <= 0.5:
            continue
        values = pd.to_numeric(frame[name], errors="coerce")
        if values.notna().all():
            of_tuple = last_part(name) == NUMBER  # beside a text: a rank, or a probability
            low = last_part(name) in NAMES["loss"] or (of_tuple and values.min() > 0 and values.max() > 1)
            scored = low or of_tuple or last_part(name) in NAMES["score"]
            for end in (("min", "max") if low else ("max", "min")) if scored else ():
                effect = f"of each image the caption with the {'lowest' if end == 'min' else 'highest'} {name}"
                scores.append(Option({"rows": (f"{name}={end}",)}, effect))
        elif cells.nunique() <= 12 and not pd.DataFrame({"image": image, "cell": cells}).duplicated().any():
            counts = Counter(cells)
            value, number = next(iter(counts.items()))
            sets.append(Option({"captioner_column": (name,)}, f"a captioner for each: {listed(counts, 5)}"))
            sets.append(Option({"rows": (f"{name}={value}",)}, f"only {value} ({number:,} rows)"))
    options = [*scores, *sets][:2]
    people = [Option({"references": (sheet.path,)}, "captions by people")] if CAPTIONS not in kinds else []
    samples = Option({"sets": (SAMPLES,)}, "samples of one captioner, all count")
    each = Option({"sets": (EACH,)}, "a set each: the first caption of all images, the second …")
    first = [*people, *options, samples] if beside else [*options, samples, *people]
    sizes = image.value_counts(sort=False)
    return Ask(
        f"{sheet.title}: {(sizes > 1).sum():,} of {counted(len(sizes), 'image')} have several captions in "
        f"{listed(columns, 3)} ({len(table):,} in all). What are they?",
        *first,
        each,
        examples=[quoted(str(text)) for text in table["caption"][image == sizes.idxmax()][:2]],
    )
