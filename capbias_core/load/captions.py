"""From rows to captions: the sets of a file, one for each captioner, and what several captions of an image are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from capbias_core.errors import unknown_name
from capbias_core.kinds import CAPTIONS, REFERENCES
from capbias_core.load.checks import other_languages, quoted
from capbias_core.load.clean import clean_captions
from capbias_core.load.formats import NUMBER
from capbias_core.load.parts import Part, Piece, sizes
from capbias_core.load.questions import UNNAMED, Ask, Given, Option
from capbias_core.load.sheet import (
    MOST_CHARACTERS,
    NAMES,
    Sheet,
    cell_text,
    fields_in,
    is_missing,
    is_scalar,
    last_part,
    listed,
)
from capbias_core.types import CAPTION_COLUMNS, counted

# What several captions of an image are: samples of one set, or a set each.
SETS = SAMPLES, EACH = "samples", "each"
MARKS = ("###", "|", "&&", "<sep>", ";", "\n")
ITEMS = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+", re.MULTILINE)
IMAGE = ["set", "image_id"]  # what is one image of one captioner


def caption_parts(piece: Piece, kind: str, given: Given, beside: bool) -> list[Part]:
    """The captions of a kind in a file, those of each captioner as a part. beside: whether another file holds a
    model's. Raises Ask if it is open what several captions of an image are, and CapbiasError if none is usable."""
    if given.sets and given.sets not in SETS:
        raise unknown_name("choice of sets", given.sets, SETS)
    sheet, people, faults = piece.sheet, kind == REFERENCES, piece.faults()
    columns = piece.references if people else piece.captions
    used: dict[str, str] = {}  # column -> what it was
    notes: list[str] = []
    captioner = "" if people else _captioner(sheet, given, used)
    names = sheet.frame[captioner].map(cell_text).str.split().str.join(" ").tolist() if captioner else []
    apart = len(columns) > 1 and not people and given.sets != SAMPLES
    rows: list[tuple] = []
    for column in columns:
        cells = sheet.frame[column].tolist()
        mark = _mark(cells) if people else ""
        if mark:
            used[column] = f"texts split at {mark.strip() or 'line ends'}"
        for place, image in enumerate([] if piece.ids is None else piece.ids):
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
        table = _several(piece, table, given, beside, used, notes, captioner)
    cleaned = clean_captions(["" if is_missing(text) else text for text in table["caption"]])
    table = table.assign(caption=cleaned.texts)
    lost = table["caption"].isna()
    if lost.all():
        raise sheet.unusable(faults, ", ".join(f"{rule}: {number:,}" for rule, number in cleaned.counts.items()))
    foreign, warnings = pd.Series(False, index=table.index), cleaned.warnings
    if not people:
        foreign[~lost] = other_languages(table["caption"][~lost].tolist())
    if foreign.mean() > 0.5:  # checks.py refuses the file as a whole, if the attribute has English words
        foreign[:] = False
    elif foreign.any():
        shown = quoted(table["caption"][foreign].iloc[0])
        said = f"{foreign.sum():,} of {len(table):,} captions are not in English and are left out: {shown}."
        warnings = (*(line for line in warnings if "are not in English" not in line), said)
    table["reason"] = np.select([lost, foreign], ["missing", "not in English"], "")
    kept = table[table["reason"] == ""]
    shown = ", ".join(f"{name} ({used[name]})" if name in used else name for name in columns)
    taken = {*piece.used, *piece.column.split("+"), *used}
    rest = [] if people and piece.captions else [name for name in sheet.columns if name not in taken]
    account = {
        "Image ID": piece.column,
        "Human captions" if people else "Captions": shown,
        "Read as": "; ".join(f"{name} ({text})" for name, text in used.items() if name not in columns),
        "Not used": listed(rest, 20) if rest else "",
        "Captions per image": sizes(kept["image_id"] + kept["set"]),
        "Images that join": piece.joins,
    }
    parts = []
    stem = piece.file.name if piece.file.name != UNNAMED else ""
    for who, frame in kept.groupby("set", sort=False):
        frame = frame[["image_id", "caption"]].astype("str").reset_index(drop=True)
        frame["caption_index"] = frame.groupby("image_id", sort=False).cumcount()
        left_out = table[(table["set"] == who) & (table["reason"] != "")].groupby("reason")["image_id"]
        missing = {str(reason): tuple(ids) for reason, ids in left_out}
        own = stem or (sheet.name if who.isdigit() or not who else "")
        more = {"warnings": warnings, "beside": people and bool(piece.captions), "missing": missing}
        name = f"{own} {who}".strip()
        parts.append(piece.part(kind, name, frame[list(CAPTION_COLUMNS)], account, faults, notes, **more))
    return parts


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
    piece: Piece,
    table: pd.DataFrame,
    given: Given,
    beside: bool,
    used: dict[str, str],
    notes: list[str],
    captioner: str,
) -> pd.DataFrame:
    """The captions as the user says what several of an image are. Raises Ask if that is open."""
    sheet = piece.sheet
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
    if not given.sets:
        raise _which(piece, table, beside, captioner)
    given.use("sets", given.sets)
    if given.sets == SAMPLES:
        return table
    ends = (table.groupby(IMAGE, sort=False).cumcount() + 1).map(str)
    return table.assign(set=(table["set"] + " " + ends).str.strip())


def _which(piece: Piece, table: pd.DataFrame, beside: bool, captioner: str) -> Ask:
    """The question what several captions of an image are."""
    sheet, columns = piece.sheet, piece.captions
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
    people = [Option({"references": (sheet.path,)}, "captions by people")] if CAPTIONS not in piece.file.kinds else []
    samples = Option({"sets": (SAMPLES,)}, "samples of one captioner, all count")
    each = Option({"sets": (EACH,)}, "a set each: the first caption of all images, the second …")
    first = [*people, *options, samples] if beside else [*options, samples, *people]
    texts = image.value_counts(sort=False)
    return Ask(
        f"{sheet.title}: {(texts > 1).sum():,} of {counted(len(texts), 'image')} have several captions in "
        f"{listed(columns, 3)} ({len(table):,} in all). What are they?",
        *first,
        each,
        examples=[quoted(str(text)) for text in table["caption"][image == texts.idxmax()][:2]],
    )
