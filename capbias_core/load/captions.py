"""From rows to captions: the sets of a file, one for each captioner, and what several captions of an image are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.kinds import CAPTIONS, REFERENCES
from capbias_core.load.checks import FEWEST, other_languages, quoted
from capbias_core.load.clean import clean_captions
from capbias_core.load.columns import CAPTIONER, HUMAN_VALUES
from capbias_core.load.formats import NUMBER
from capbias_core.load.join import Images, id_faults
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

# What several captions of an image are: samples of one set, a set each, a set for each prompt, one caption in a text
# that looks like several; or files are parts of one captioner's captions.
SETS = SAMPLES, EACH, BY_PROMPT, WHOLE, PARTS = "samples", "each", "prompt", "whole", "parts"
PROMPTS = ["prompt", "question", "input", "instruction"]
SCORES = str.split("""
    logp log_prob_sum score scores logprob log_prob log_likelihood confidence prob probability conf cider
""")
LOW_IS_BEST = ["perplexity", "ppl", "nll", "loss", "rank", "distance", "cost"]
MARKS = ("###", " || ", "|", "&&", "<sep>", ";", "\n")
ITEMS = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+", re.MULTILINE)


@dataclass
class CaptionSet:
    """Captions of one captioner. frame: image_id, caption_index, caption. missing: the images of captions that were
    left out, by reason."""

    name: str  # of the captioner, '' for that of the file
    frame: pd.DataFrame
    missing: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class Captions:
    """What a file's columns of captions hold. cleaned: captions by rule of cleaning. used: column -> what it was."""

    sets: list[CaptionSet]
    faults: RowErrors
    cleaned: dict[str, int]
    warnings: tuple[str, ...]
    used: dict[str, str]
    notes: list[str]
    sizes: Counter
    equal: int  # captions that are equal to another of their image


def captions_of(
    sheet: Sheet, columns: Sequence[str], images: Images, given: Given, kinds: Sequence[str], people: bool, beside: bool
) -> Captions:
    """The captions in some columns. people: whether people wrote them. beside: whether another file holds a model's.
    Raises Ask if it is open what several captions of an image are, and CapbiasError if none is usable."""
    if given.sets and given.sets not in SETS:
        raise unknown_name("choice of sets", given.sets, SETS)
    frame, used, notes = sheet.frame, {}, []
    captioner = "" if people else _captioner(sheet, given, used)
    faults = id_faults(sheet, images)
    rows: list[tuple] = []  # row, image, captioner, text
    names = frame[captioner].tolist() if captioner else []
    for column in columns:
        cells = frame[column].tolist()
        mark = _mark(cells) if people else ""
        if mark:
            used[column] = f"texts split at {mark.strip() or 'line ends'}"
        for place, image in enumerate(images.ids):
            if image is None:
                continue
            cell = _texts(cells[place], mark, people)
            who = label_of(names[place]) if captioner else ""
            if captioner and not who:
                faults.add(sheet.numbers[place], "no captioner is named")
                continue
            who = f"{who} {column}".strip() if len(columns) > 1 and not people and given.sets != SAMPLES else who
            for text in cell or [None] if isinstance(cell, list) else [cell]:
                rows.append((place, image, who, text))
    if len(columns) > 1 and given.sets == SAMPLES and not people:
        given.use("sets", SAMPLES)
    table = pd.DataFrame(rows, columns=["row", "image_id", "set", "caption"], dtype=object)
    faulty = [_fault(text) for text in table["caption"]]
    for place, fault in zip(table["row"], faulty, strict=True):
        if fault:
            faults.add(sheet.numbers[place], fault)
    table = table[[not fault for fault in faulty]].reset_index(drop=True)
    if table.empty:
        raise sheet.unusable(faults)
    if not people:
        table = _several(sheet, table, columns, given, kinds, beside, used, notes, captioner)
        _check_whole(sheet, table, given, kinds)
    cleaned = clean_captions(["" if is_missing(text) else text for text in table["caption"]])
    table = table.assign(raw=table["caption"], caption=cleaned.texts)
    lost = table["caption"].isna()
    if lost.all():
        raise sheet.unusable(faults, ", ".join(f"{rule}: {number:,}" for rule, number in cleaned.counts.items()))
    foreign = pd.Series(False, index=table.index)
    if not people:
        foreign[~lost] = other_languages(table["caption"][~lost].tolist())
        if foreign.mean() > 0.5:  # checks.py refuses the file as a whole, if the attribute has English words
            foreign[:] = False
    warnings = list(cleaned.warnings)
    if foreign.any():
        shown = quoted(table["caption"][foreign].iloc[0])
        warnings = [line for line in warnings if "are not in English" not in line]
        warnings.append(f"{foreign.sum():,} of {len(table):,} captions are not in English and are left out: {shown}.")
    sets = []
    for name in dict.fromkeys(table["set"]):
        of_set = table["set"] == name
        kept = table[of_set & ~lost & ~foreign]
        if kept.empty:
            continue
        reasons = {"missing": of_set & lost, "not in English": of_set & foreign}
        missing = {reason: table["image_id"][rows].tolist() for reason, rows in reasons.items() if rows.any()}
        captions = kept[["image_id", "caption"]].astype("str").reset_index(drop=True)
        captions["caption_index"] = captions.groupby("image_id", sort=False).cumcount()
        sets.append(CaptionSet(str(name), captions[list(CAPTION_COLUMNS)], missing))
    kept = table[~lost & ~foreign]
    groups = kept.groupby(["set", "image_id"], sort=False).size()
    equal = int(kept.duplicated(["set", "image_id", "caption"]).sum())
    return Captions(sets, faults, cleaned.counts, tuple(warnings), used, notes, Counter(groups.tolist()), equal)


def label_of(cell: object) -> str:
    """A captioner's name from a cell."""
    return " ".join(cell_text(cell).split())


def _fault(text: object) -> str:
    if is_missing(text) or isinstance(text, int | float):
        return ""
    if not isinstance(text, str):
        return "the caption is no text"
    if "\0" in text:
        return "the caption holds a NUL character"
    return f"the caption has {len(text):,} characters" if len(text) > MOST_CHARACTERS else ""


def _captioner(sheet: Sheet, given: Given, used: dict[str, str]) -> str:
    """The column that names the captioner of a row: the given one, or one with a usual name and several values. Raises
    Ask if people are among them."""
    chosen = given.columns("captioner_column", sheet.path, sheet.columns)
    usual = [name for name in sheet.columns if last_part(name) in CAPTIONER and is_scalar(sheet.frame[name])]
    usual = [name for name in usual if len(set(map(label_of, sheet.frame[name])) - {""}) > 1]
    name = (chosen or usual or [""])[0]
    if not name:
        return ""
    values = Counter(map(label_of, sheet.frame[name]))
    people = [value for value in values if value.lower() in HUMAN_VALUES]
    if people and not chosen:
        options = [
            Option({"rows": (f"{name}={value}",)}, f"only {value} ({number:,} rows)")
            for value, number in values.items()
            if value not in people
        ]
        options.append(Option({"captioner_column": (name,)}, f"a captioner for each: {listed(values, 5)}"))
        raise Ask(
            f"{sheet.title}: people are among the captioners in the column {name} ({listed(values, 6)}). "
            "Which captions count?",
            *options,
        )
    used[name] = f"captioners: {listed(values, 6)}"
    return name


def _mark(cells: Sequence) -> str:
    """What separates several captions in a text, in nearly all cells of a column; '' if nothing does."""
    texts = [cell.strip() for cell in cells if isinstance(cell, str) and cell.strip()]
    return next((mark for mark in MARKS if texts and sum(mark in text for text in texts) > 0.9 * len(texts)), "")


def _texts(cell: object, mark: str, people: bool) -> object:
    """The texts in a cell."""
    if isinstance(cell, str) and people and cell.lstrip()[:1] == "[" and isinstance(inner := fields_in(cell), list):
        cell = inner
    if isinstance(cell, str) and mark:
        return [ITEMS.sub("", part).strip() for part in cell.split(mark.strip() or mark) if part.strip(" #-\n")]
    if isinstance(cell, list):
        flat = []
        for part in cell:  # lists within lists, and the objects of pycocoevalcap
            inner = _texts(part, "", people)
            flat += inner if isinstance(inner, list) else [inner]
        return flat
    if isinstance(cell, dict):
        return next((cell[key] for key in ("caption", "text", "raw", "sentence") if key in cell), None)
    return cell


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
    many = table.groupby(["set", "image_id"], sort=False).size()
    if not (many > 1).any():
        return table
    for rule, column, end in given.rows_of(sheet.path, sheet.columns):  # the best of candidates
        if end in ("min", "max"):
            given.use("rows", rule)
            numbers = pd.to_numeric(sheet.frame[column], errors="coerce")
            order = table["row"].map(numbers).astype(float).sort_values(ascending=end == "min", kind="stable").index
            best = table.loc[order].drop_duplicates(["set", "image_id"])
            used[column] = f"of each image the caption with the {'lowest' if end == 'min' else 'highest'}"
            read = f"{len(best):,} of {len(table):,} captions read"
            notes.append(f"{read}: of each image that with the {end} of {column}")
            return best.sort_index().reset_index(drop=True)
    asked = [name for name in sheet.columns if last_part(name) in PROMPTS]
    prompts = next((name for name in asked if sheet.frame[name].map(str).nunique() > 1), "")
    if given.sets in (SAMPLES, EACH, BY_PROMPT):
        given.use("sets", given.sets)
        if given.sets == SAMPLES:
            return table
        if given.sets == EACH:
            ends = (table.groupby(["set", "image_id"], sort=False).cumcount() + 1).map(str)
        elif prompts:
            number = pd.Series(pd.factorize(sheet.frame[prompts].map(str))[0] + 1)
            used[prompts] = f"{number.nunique()} prompts"
            ends = table["row"].map(lambda row: f"prompt {number[row]}")
        else:
            raise CapbiasError(
                f"{sheet.title} has no column with two or more prompts.", "Choose samples or each.", "sets"
            )
        return table.assign(set=[f"{name} {end}".strip() for name, end in zip(table["set"], ends, strict=True)])
    same = len(table[["set", "image_id", "caption"]].map(str).drop_duplicates()) == len(many)
    if same and CAPTIONS not in kinds and len(table) > len(many):
        notes.append("the captions of an image are equal")
    raise _which(sheet, table, many, columns, given, kinds, beside, prompts, captioner)


def _which(
    sheet: Sheet,
    table: pd.DataFrame,
    many: pd.Series,
    columns: Sequence[str],
    given: Given,
    kinds: Sequence[str],
    beside: bool,
    prompts: str,
    captioner: str,
) -> Ask:
    """The question what several captions of an image are."""
    frame = sheet.frame.loc[table["row"].astype(int)].reset_index(drop=True)
    key = table["set"].astype(str) + "\0" + table["image_id"].astype(str)
    options: list[Option] = []
    numbers, texts = [], []
    for name in frame.columns:
        if name in (*columns, captioner) or not is_scalar(frame[name]):
            continue
        cells = frame[name].map(str)
        if (cells.groupby(key).nunique() > 1).mean() <= 0.5:
            continue
        values = pd.to_numeric(frame[name], errors="coerce")
        if values.notna().all():
            numbers.append(name)
        elif cells.nunique() <= 12 and not pd.DataFrame({"key": key, "cell": cells}).duplicated().any():
            texts.append(name)
    for name in numbers:
        values = pd.to_numeric(frame[name])
        scored = last_part(name) in (*SCORES, *LOW_IS_BEST, NUMBER)
        low = last_part(name) in LOW_IS_BEST or (last_part(name) == NUMBER and values.min() > 0 and values.max() > 1)
        for end in (("min", "max") if low else ("max", "min")) if scored else ():
            effect = f"of each image the caption with the {'lowest' if end == 'min' else 'highest'} {name}"
            options.append(Option({"rows": (f"{name}={end}",)}, effect))
    for name in texts:
        if name == prompts:
            options.append(Option({"sets": (BY_PROMPT,)}, f"a set for each {name}"))
            continue
        counts = Counter(frame[name].map(str))
        options += [
            Option({"rows": (f"{name}={value}",)}, f"only {value} ({number:,} rows)")
            for value, number in list(counts.items())[:2]
        ]
        options.append(Option({"captioner_column": (name,)}, f"a captioner for each: {listed(counts, 5)}"))
    people = [Option({"references": (sheet.path,)}, "captions by people")] if CAPTIONS not in kinds else []
    samples = Option({"sets": (SAMPLES,)}, "samples of one captioner, all count")
    each = Option({"sets": (EACH,)}, "a set each: the first caption of all images, the second …")
    if beside and people:
        options = [*people, *options[:2], samples]
    else:
        options = [*options[:2], samples, *people, each] if options else [samples, *people, each]
    first = many.idxmax()
    examples = [quoted(str(text)) for text in table["caption"][key == f"{first[0]}\0{first[1]}"][:2]]
    return Ask(
        f"{sheet.title}: {(many > 1).sum():,} of {counted(len(many), 'image')} have several captions in "
        f"{listed(columns, 3)} ({len(table):,} in all). What are they?",
        *options,
        examples=examples,
    )


# Of raw texts, in which two hashes may begin a piece of a word (checks.py has the pattern for clean ones).
_SEVERAL = re.compile(
    r"\S\s*(?:\|\|?|###|<sep>)\s*\S.*\w|;.*;|(?:^|\s)1[.)] .*\s2[.)] |^\s*- .*\n\s*- |^\s*• .*\n\s*• ", re.DOTALL
)


def _check_whole(sheet: Sheet, table: pd.DataFrame, given: Given, kinds: Sequence[str]) -> None:
    """Raises Ask if most texts of a model look like several captions in one."""
    texts = [text for text in table["caption"] if isinstance(text, str) and text.strip()]
    hits = [bool(_SEVERAL.search(text)) for text in texts]
    if len(texts) < FEWEST or sum(hits) < len(hits) / 2:
        return
    if given.sets == WHOLE:
        given.use("sets", WHOLE)
        return
    known = {CAPTIONS, REFERENCES} & set(kinds)
    people = [] if known else [Option({"references": (sheet.path,)}, "captions by people")]
    raise Ask(
        f"{sheet.title}: {sum(hits):,} of {counted(len(texts), 'text')} look like several captions in one. "
        "What are they?",
        *people,
        Option({"sets": (WHOLE,)}, "each text is one caption"),
        examples=[quoted(texts[hits.index(True)])],
    )
