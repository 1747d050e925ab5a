"""The captions of a file, and the account of it: which column has which role, what its rows are, and what to ask.

Content decides the kind of a column. A name decides its role only if no other column has the same kind of content. If
more than one assignment fits, a `OpenQuestion` says so, and nothing is read until it is answered.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.kinds import CAPTIONS, REFERENCES
from capbias_core.load.clean import clean_captions
from capbias_core.load.ids import IMAGE_NAME, PICTURE, UNSTORABLE, described, normalise_image_id, short
from capbias_core.load.parsed import (
    IMAGE_IDS,
    KEPT_PROBLEMS,
    MOST_CHARACTERS,
    Parsed,
    RowErrors,
    cell_text,
    listed,
    literal,
    plain_name,
    usual_column,
)
from capbias_core.types import CAPTION_COLUMNS, Table, counted

# What a column holds.
TEXT, REPEATED, TEXTS, TOKENS, SCORED = "texts", "few different texts", "lists of texts", "lists of words", "candidates"
SHORT, NUMBERS, LABELS, IDS = "lists of short texts", "numbers", "labels", "identifiers"
EMPTY, OTHER = "nothing", "other values"
TEXTUAL = (TEXT, TEXTS, TOKENS, SCORED)
SAMPLE, FEW = 300, 20  # cells that are looked at; different values in a column of labels
NEARLY_ALL = 0.9  # of the cells of a column, if it is read cell by cell
# Several captions of an image are: samples of one set, a set each, a set per prompt; or each text is one caption.
SETS = SAMPLES, EACH, BY_PROMPT, WHOLE = "samples", "each", "prompt", "whole"

# Names of columns, without case and marks.
CAPTION_NAMES = """
    caption pred prediction predicted_caption generated_caption generated_text model_output text sentence generated
    generation hypothesis output outputs response description comment captions caption_list sentences caption_str
    predictions raw answer answers
"""
HUMAN = re.compile(
    r"(?:references?|refs?|gts?|ground_?truths?|humans?|people)(?:_?(?:captions?|strs?|sentences?|texts?))?_?\d*"
)
PROMPT = re.compile(r"(?:\w+_)?(?:prompts?|questions?|instructions?|query)")
CAPTIONER = re.compile(r"(?:\w+_)?(?:models?|captioners?|systems?|methods?|generators?|checkpoints?)(?:_(?:id|name))?")
SAMPLE_NAME = re.compile(
    r"(?:\w+_)?(?:samples?|seeds?|runs?|trials?|draws?|repetitions?)(?:_?(?:id|index|idx|no|number))?"
)
LANGUAGE = re.compile(r"(?:\w+_)?(?:languages?|lang|locale)(?:_code)?")
LANGUAGES = re.compile(
    r"(?:ar|bn|cs|da|de|el|en|es|fa|fi|fr|he|hi|hu|id|it|ja|ko|nl|no|pl|pt|ro|ru|sv|th|tr|uk|vi|zh)(?:[-_]\w+)?"
    r"|english|german|french|spanish|chinese|japanese|italian|portuguese|russian|arabic|hindi|korean|dutch|turkish",
    re.IGNORECASE,
)
REGION = re.compile(
    r"(?:\w+_)?(?:regions?|boxe?s?|bbox|masks?|segments?)(?:_(?:id|index|no|number))?|[xy]\d?|[xy](?:min|max)"
)
LOSS = re.compile(r"(?:\w+_)?(?:loss|nll|ppl|perplexity|cost)")
SCORE = re.compile(r"(?:\w+_)?(?:scores?|log_?probs?|logps?|conf|confidence|probs?|probability|likelihood)")
NUMBERED = re.compile(r"(.*?)[_ -]?\d+")

LIST_OF_TEXT = re.compile(r"\s*[\[(]\s*(?:[bu]?['\"]|[\[(])")
QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
FENCE = re.compile(r"\s*```(?:json)?\s*(.*?)\s*```\s*", re.DOTALL)
FUNCTION_WORDS = re.compile(r"(?:an?|the|of|in|on|with|and|to|at|is|are)", re.IGNORECASE)
MARKS = {"\n": "line breaks", "\t": "tabs"}  # how a message names a separator
# What a column holds -> what was done with its cells.
DONE = {TOKENS: "words joined", SCORED: "of several candidates the one with the best score"}
SHOWN_PROMPTS = 8
SEPARATORS = ("###", "##", "||", "|", "<sep>", "[SEP]", "</s>", "\n", "\t", ";", " // ", " / ", "#", "~")


# what is shown, and what is asked


def account_lines(fields: Iterable[tuple[str, str, str]]) -> tuple[tuple[str, str], ...]:
    """(role, its columns), shown alike everywhere. fields: column, role, and what was done with it or ''."""
    by_role: dict[str, list[str]] = {}
    for name, role, note in fields:
        by_role.setdefault(role, []).append(f"{short(name)} ({note})" if note else short(name))
    return tuple((role, ", ".join(names)) for role, names in by_role.items())


@dataclass(frozen=True)
class OpenQuestion:
    """What a file leaves open."""

    message: str
    hint: str
    # (label, options) of each choice to make; an option is (label, the arguments with values that stand for it).
    boxes: tuple[tuple[str, tuple[tuple[str, tuple[tuple[str, str], ...]], ...]], ...]


class Ambiguous(CapbiasError):
    """More than one assignment fits a file. question: what to ask."""

    def __init__(self, question: OpenQuestion):
        answers = dict.fromkeys(
            f"{name}={value}" for _, options in question.boxes for _, given in options for name, value in given
        )
        super().__init__(question.message, question.hint, *answers)
        self.question = question


def question_of(error: CapbiasError) -> OpenQuestion | None:
    """What to ask, if an error is a question that has answers."""
    return error.question if isinstance(error, Ambiguous) and error.question.boxes else None


@dataclass(frozen=True)
class Choices:
    """What the user said about a file; columns that it lacks are ignored."""

    image_id: str = ""
    captions: tuple[str, ...] = ()  # columns of a model's captions
    references: tuple[str, ...] = ()  # columns of human captions
    captioner: str = ""  # the column that names the captioner
    rows: Mapping[str, str] = field(default_factory=dict)  # column -> the value of the rows to read
    sets: str = ""  # one of SETS, '' if not given

    @classmethod
    def of(cls, given: Mapping[str, Any], parsed: Parsed) -> Choices:
        """From roles (`image_id`, `caption`, `reference`, `captioner`, `rows`, `sets`) to columns of the file."""
        names = tuple(parsed.columns)

        def several(role: str) -> tuple[str, ...]:
            """The columns of a role; of a column of JSON, its fields that hold texts."""
            value, columns = given.get(role) or (), {}
            for name in (value,) if isinstance(value, str) else value:
                fields = [each for each in names if each.startswith(f"{name}.")]
                texts = [each for each in fields if content(parsed.columns[each]) in TEXTUAL]
                columns |= dict.fromkeys([name] if name in names else texts)
            return tuple(columns)

        rows = {name: cell_text(value) for name, value in (given.get("rows") or {}).items() if name in names}
        one = {role: name for role in ("image_id", "captioner") if (name := given.get(role)) in names}
        return cls(
            captions=several("caption"), references=several("reference"), rows=rows, sets=given.get("sets") or "", **one
        )


@dataclass(frozen=True)
class Roles:
    """The columns of a file by role."""

    kind: str  # CAPTIONS, REFERENCES, or '' if it holds no captions
    image_id: str = ""
    captions: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    prompt: str = ""


# what a column holds


def is_sentence(text: object) -> bool:
    """Whether a text may be a caption rather than a label or the name of an image."""
    if not isinstance(text, str) or PICTURE.search(text):
        return False
    words = sum(word[0].isalpha() or word[-1].isalpha() for word in text.split())
    return words > 2 or (not text.isascii() and len(text) > 5)


def is_missing(value: object) -> bool:
    return value is None or value != value or (isinstance(value, str) and not value.strip())


def content(values: Sequence) -> str:
    """What a column holds, judged by some of its cells.

    >>> content(["a man on skis", "a dog in a park"]), content(["Male", "Female"] * 2), content([["a", "man"]])
    ('texts', 'labels', 'lists of words')
    """
    cells = _sample(values)
    if not cells:
        return EMPTY
    lists = [cell for cell in map(as_list, cells) if cell]
    if 2 * sum(isinstance(cell, list) for cell in cells) > len(cells) or len(lists) >= NEARLY_ALL * len(cells):
        kinds = Counter(_content_of_list(cell) for cell in lists)
        return kinds.most_common(1)[0][0] if kinds else EMPTY
    texts = [cell for cell in cells if isinstance(cell, str)]
    if 2 * len(texts) <= len(cells):
        numbers = sum(isinstance(cell, Real) and not isinstance(cell, bool) for cell in cells)
        return NUMBERS if 2 * numbers > len(cells) else OTHER
    different = set(map(str, values)) if len(values) <= 100_000 else set(texts)
    few = len(different) <= FEW and 3 * len(different) <= len(values)
    if 2 * sum(map(is_sentence, texts)) >= len(texts):
        return REPEATED if few else TEXT
    if len(different) <= FEW and 2 * len(different) <= len(values):
        return LABELS
    return IDS if all(IMAGE_NAME.fullmatch(text.strip()) for text in texts) else OTHER


def _sample(values: Sequence) -> list:
    cells = [value for value in values[:: max(1, len(values) // SAMPLE)] if not is_missing(value)]
    return cells or [value for value in values if not is_missing(value)][:SAMPLE]


def _content_of_list(cell: list) -> str:
    if all(isinstance(part, str) for part in cell):
        if 2 * sum(map(is_sentence, cell)) > len(cell):
            return TEXTS
        if 2 * sum(" " in part.strip() for part in cell) >= len(cell):
            return SHORT
        return TOKENS if any(map(FUNCTION_WORDS.fullmatch, cell)) else OTHER
    if all(isinstance(part, Real) for part in cell):
        return NUMBERS
    if all(isinstance(part, list) and part and _content_of_list(part) == TOKENS for part in cell):
        return TEXTS
    return SCORED if all(map(_scored, cell)) else TEXTS if all(map(_text_in, cell)) else OTHER


def as_list(cell: object) -> list | None:
    """A cell that is a list, also one that a table holds as text, with or without commas; None for another."""
    if isinstance(cell, list | tuple):
        return list(cell)
    if not isinstance(cell, str) or not LIST_OF_TEXT.match(cell):
        return None
    text = cell.strip()
    value = literal(text)
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        if all(isinstance(part, str) for part in value):
            quoted = [ast.literal_eval(part) for part in QUOTED.findall(text[1:-1])]
            value = quoted if len(quoted) > len(value) else value  # NumPy writes no commas, and Python joins the texts
    return list(value) if isinstance(value, list | tuple) else None


def _text_in(part: object) -> str:
    """The text of an object with no other text; '' for another."""
    if not isinstance(part, Mapping) or any(REGION.fullmatch(plain_name(str(name))) for name in part):
        return ""
    texts = [value for value in part.values() if isinstance(value, str)]
    return texts[0] if len(texts) == 1 else ""


def _scored(part: object) -> tuple[float, str] | None:
    """(score, text) of a candidate, which is better the higher it is: [text, number], or an object of a text and a
    score or a loss; None for another."""
    sign, values = 1, part
    if isinstance(part, Mapping):
        plain = {plain_name(str(name)): value for name, value in part.items()}
        values = [value for name, value in plain.items() if isinstance(value, str) or SCORE.fullmatch(name)]
        if losses := [value for name, value in plain.items() if LOSS.fullmatch(name)]:
            sign, values = -1, [*(value for value in plain.values() if isinstance(value, str)), *losses]
    if not isinstance(values, list | tuple) or len(values) != 2:
        return None
    texts = [value for value in values if isinstance(value, str)]
    numbers = [value for value in values if isinstance(value, int | float) and -1e300 < value < 1e300]
    return (sign * float(numbers[0]), texts[0]) if len(texts) == len(numbers) == 1 else None


def best_first(values: Sequence) -> bool:
    """Whether numbers without a name may be scores: not if the first candidate always has the lowest."""
    lists = [[part for part in as_list(cell) or [] if not isinstance(part, Mapping)] for cell in _sample(values)]
    scores = [[pair[0] for pair in map(_scored, parts) if pair] for parts in lists]
    several = [numbers for numbers in scores if len(set(numbers)) > 1]
    return not several or any(numbers[0] > min(numbers) for numbers in several)


def texts_of(cell: Any, holds: str, separator: str = "") -> Any:
    """The texts of a cell of a column, or the cell as it is if it has none. holds: what the column holds. Of candidates
    with scores, the best one."""
    if holds == TEXT and not separator:
        return cell
    value = as_list(cell)
    if value is None:
        pieces = [piece.strip() for piece in cell.split(separator)] if separator and isinstance(cell, str) else [cell]
        return [piece for piece in pieces if piece != ""] if len(pieces) > 1 else cell
    if holds == SCORED and all(map(_scored, value)) and value:
        return max(filter(None, map(_scored, value)), key=lambda pair: pair[0])[1]
    if holds == TOKENS and all(isinstance(part, str) for part in value):
        return " ".join(value)
    if holds in (TEXTS, SHORT):
        joined = [
            " ".join(part) if isinstance(part, list) and all(isinstance(word, str) for word in part) else part
            for part in value
        ]
        return [_text_in(part) or part for part in joined]
    return cell


def separator_of(values: Sequence) -> str:
    """What separates several captions in nearly all cells of a column; '' if each holds one."""
    cells = [cell for cell in _sample(values) if isinstance(cell, str)]
    for separator in SEPARATORS if cells else ():
        pieces = [[piece for piece in cell.split(separator) if piece.strip()] for cell in cells if separator in cell]
        several = [cell for cell in pieces if len(cell) > 1 and all(map(is_sentence, cell))]
        if len(several) >= NEARLY_ALL * len(cells):
            return separator
    return ""


# which column has which role


def roles_of(parsed: Parsed, chosen: Choices, kind: str = "") -> Roles:
    """The roles of the columns. kind: as the user says, '' to tell by the columns. Raises Ambiguous if several
    assignments fit, and CapbiasError if a kind was given and no column has its role."""
    kind = kind or parsed.kind
    if kind not in ("", CAPTIONS, REFERENCES):
        return Roles("")
    fixed: dict[str, list[str]] = defaultdict(list)  # role -> columns whose meaning the format fixes
    for name, role in parsed.roles.items():
        fixed[role] += [name] if name in parsed.columns else []
    if not kind and parsed.format == "coco_captions":
        raise Ambiguous(_which_kind(parsed, "has COCO's annotations, but no IDs"))
    image = chosen.image_id or "".join(fixed["image_id"][:1]) or image_column(parsed)
    prompts = fixed["prompt"] or [
        name for name in parsed.columns if name != image and PROMPT.fullmatch(plain_name(name))
    ]
    captions, human = chosen.captions, chosen.references
    others: list[str] = []
    if not captions and not human and fixed["caption"]:
        captions, human = tuple(fixed["caption"]), tuple(fixed["reference"])
    else:
        taken = {image, *captions, *human}
        holds = {name: content(values) for name, values in parsed.columns.items() if name not in taken}
        called = [name for name in holds if HUMAN.fullmatch(plain_name(name)) and holds[name] in (*TEXTUAL, REPEATED)]
        human = human or tuple(called)
        others = [name for name in holds if holds[name] in TEXTUAL and name not in (*human, *called)]
        repeated = [name for name in holds if kind and holds[name] == REPEATED and name not in human]
        others = [name for name in others or repeated if name not in prompts] or others
    if not captions and len(others) > 1:
        if kind != CAPTIONS and not human and numbered(others):
            if not kind:
                raise Ambiguous(_which_kind(parsed, f"has the columns {listed(others, 3)}", others))
            human = tuple(others)
        elif kind != REFERENCES or not human:
            raise Ambiguous(_which_columns(parsed, others, kind))
    captions = captions or (tuple(others) if len(others) == 1 else ())
    if not captions and (kind != REFERENCES or not human):
        captions = tuple(filter(None, [_by_name(parsed, {image, *human}, kind)]))
    if kind == CAPTIONS and not captions and len(human) == 1:
        captions, human = human, ()
    if kind == REFERENCES and not human:
        captions, human = (), captions
    if not captions and not human and not kind:
        return Roles("", image)
    if not image or not (captions or human):
        lacking = " and ".join(["image IDs"] * (not image) + ["texts"] * (not (captions or human)))
        hint = "Name the columns of image IDs and captions."
        if "category_id" in parsed.columns:
            hint = "It lists the objects on images: load it as objects, or as outlines."
        raise CapbiasError(
            f"{parsed.file} has the columns {listed(tuple(parsed.columns))}; none holds {lacking}.",
            hint,
            "image_id_column",
            "caption_column",
        )
    for name in (*captions, *human):
        if content(parsed.columns[name]) == NUMBERS and isinstance(_sample(parsed.columns[name])[0], list):
            message = f"{short(name)} of {parsed.file} holds the numbers of tokens, not words."
            raise CapbiasError(message, "Write the captions as text.", "caption_column")
    return Roles(kind or (CAPTIONS if captions else REFERENCES), image, captions, human, "".join(prompts[:1]))


def numbered(names: Sequence[str]) -> bool:
    """Whether names of columns are one name with different numbers, such as caption_0 and caption_1."""
    stems = [match[1] if (match := NUMBERED.fullmatch(name)) else None for name in names]
    return len(names) > 1 and None not in stems and len(set(stems)) == 1


def image_column(parsed: Parsed) -> str:
    """The column of image IDs: the usual name, else the only column of identifiers; '' without one."""
    if usual := usual_column(parsed.columns, IMAGE_IDS):
        return usual
    counted_rows = {name for name, values in parsed.columns.items() if _counts(values)}
    names = [name for name, values in parsed.columns.items() if name not in counted_rows and content(values) == IDS]
    if len(names) > 1:
        options = tuple(
            (f"{short(name)} (such as {_example(parsed, name)})", (("image_id_column", name),)) for name in names
        )
        message = f"{parsed.file} has {len(names)} columns of identifiers ({listed(names)})."
        raise Ambiguous(OpenQuestion(message, "Name that of image IDs.", (("Column of image IDs", options),)))
    return "".join(names)


def _counts(values: Sequence) -> bool:
    """Whether values only number the rows, from 0 or 1."""
    first = [str(value) for value in values[:SAMPLE]]
    return any(first == [str(row) for row in range(start, start + len(first))] for start in (0, 1))


def _by_name(parsed: Parsed, taken: set[str], kind: str) -> str:
    """Of columns none of which holds texts, the one that is called as captions are; '' without one."""
    names = [name for name in parsed.columns if name not in taken]
    name = usual_column(names, f"{CAPTION_NAMES} references reference refs gts") or ""
    if not name or kind or plain_name(name) in ("caption", "captions"):
        return name
    holds = content(parsed.columns[name])
    labelled = any(content(parsed.columns[other]) == LABELS for other in names)
    return name if holds in (OTHER, SHORT) or (holds == REPEATED and not labelled) else ""


def _example(parsed: Parsed, name: str) -> str:
    cells = _sample(parsed.columns[name])
    cell = as_list(cells[0]) or cells[:1] if cells else [""]
    return short(str(cell[0]))


def _which_columns(parsed: Parsed, names: Sequence[str], kind: str) -> OpenQuestion:
    shown = "; ".join(f"{short(name)}: “{_example(parsed, name)}”" for name in names)
    arguments = ("reference_column",) if kind == REFERENCES else ("caption_column", "reference_column")
    titles = {"caption_column": "captions of a model", "reference_column": "human captions"}
    boxes = [
        (
            f"Column {short(name)}: “{_example(parsed, name)}”",
            (*((titles[argument], ((argument, name),)) for argument in arguments), ("not used", ())),
        )
        for name in names
    ]
    message = f"{parsed.file} has {len(names)} columns of texts ({shown})."
    return OpenQuestion(message, "Say which hold captions of a model, and which human captions.", tuple(boxes))


def _which_kind(parsed: Parsed, why: str, columns: Sequence[str] = ()) -> OpenQuestion:
    """columns: numbered ones, each of which may be a captioner's."""
    named = tuple(("caption_column", name) for name in columns)
    options = [
        ("samples of a model", (("captions", parsed.file), *named, *((("sets", SAMPLES),) if named else ()))),
        ("human captions", (("references", parsed.file),)),
        *([("a captioner per column", (("captions", parsed.file), *named))] if named else []),
    ]
    message = f"{parsed.file} {why}, which may be {' or '.join(name for name, _ in options)}."
    return OpenQuestion(message, "Say which.", ((f"The captions of {parsed.file} are", tuple(options)),))


# the rows of an image


@dataclass(frozen=True)
class Rows:
    """Which rows are read and how those of an image differ."""

    keep: Sequence[int] | None = None  # indices of the rows, None for all
    captioner: str = ""  # the column whose values are captioners
    differ: Mapping[str, str] = field(default_factory=dict)  # column -> what its values mean in the rows of an image


def rows_of(parsed: Parsed, roles: Roles, chosen: Choices, kind_given: bool) -> Rows:
    """How the rows of an image differ. kind_given: whether the user said what the file is. Raises Ambiguous if it is
    open what they are."""
    keep: list[int] | None = None
    if chosen.rows:
        fits = [[cell_text(value) == text for value in parsed.columns[name]] for name, text in chosen.rows.items()]
        keep = [index for index, row in enumerate(zip(*fits, strict=True)) if all(row)]
        if not keep:
            text = _wanted_rows(chosen)
            raise CapbiasError(f"{parsed.file} has no row where {text}.", "Check the column and its value.", "rows")

    def cells(name: str) -> list[str]:
        values = parsed.columns[name]
        kept = values if keep is None else [values[index] for index in keep]
        return ["" if value is None else str(value) for value in kept]

    images = cells(roles.image_id)
    groups: Sequence = list(zip(images, cells(chosen.captioner), strict=True)) if chosen.captioner else images
    taken = {roles.image_id, *roles.captions, *roles.references, *chosen.rows, chosen.captioner}
    free = [name for name in parsed.columns if name not in taken]
    values = {name: cells(name) for name in free} if _repeated(groups) else {}
    differ = {name: _role_in_rows(name, column) for name, column in values.items() if _differs(groups, column)}
    unique = {name for name, column in values.items() if len(set(column)) == len(column)}  # such as IDs of rows
    differ = {name: role for name, role in differ.items() if name not in unique or role in ("region", "score")}
    captioner = chosen.captioner
    if roles.kind != REFERENCES and not captioner:
        captioner = _captioner(
            groups, {name: values[name] for name, role in differ.items() if role in ("", "captioner")}
        )
        if captioner and any(HUMAN.fullmatch(plain_name(value)) for value in values[captioner]):
            raise Ambiguous(_which_rows(parsed, {captioner: "captioner"}, values))  # people are no captioner
        groups = list(zip(groups, values[captioner], strict=True)) if captioner else groups
    open_columns = [
        name
        for name, role in differ.items()
        if name != captioner
        and role != "sample"
        and _differs(groups, values[name])
        # People may differ in whatever they like, but a language or a region is another task.
        and (roles.kind != REFERENCES or role in ("language", "region"))
    ]
    if open_columns and (roles.kind == REFERENCES or not chosen.sets):  # `sets` are of a model's captions
        raise Ambiguous(_which_rows(parsed, {name: differ[name] for name in open_columns}, values))
    sampled = any(SAMPLE_NAME.fullmatch(plain_name(name)) for name in differ)
    single = len(roles.captions) == 1 and not roles.references
    if not (kind_given or parsed.kind or chosen.sets or captioner or sampled) and single:
        texts = [texts_of(cell, content([cell])) for cell in _sample(parsed.columns[roles.captions[0]])]
        several = [isinstance(cell, list) and len(cell) > 1 for cell in texts]
        if 2 * len(_repeated(groups)) > len(set(groups)) or 2 * sum(several) > len(several):
            raise Ambiguous(_which_kind(parsed, "has several captions per image"))
    return Rows(keep, captioner, differ)


def _wanted_rows(chosen: Choices) -> str:
    return " and ".join(f"{short(name)} is {short(value)}" for name, value in chosen.rows.items())


def _repeated(groups: Sequence) -> set:
    return {key for key, number in Counter(groups).items() if number > 1}


def _differs(groups: Sequence, values: Sequence[str]) -> bool:
    """Whether a column has different values in the rows of an image."""
    first: dict = {}
    return any(first.setdefault(key, value) != value for key, value in zip(groups, values, strict=True))


def _role_in_rows(name: str, values: Sequence[str]) -> str:
    """What a column tells apart in the rows of an image, by its name or its values; '' if neither says so."""
    plain, different = plain_name(name), set(values)
    if LANGUAGE.fullmatch(plain) or all(map(LANGUAGES.fullmatch, different)):
        return "language"
    for role, pattern in (
        ("region", REGION),
        ("score", SCORE),
        ("prompt", PROMPT),
        ("sample", SAMPLE_NAME),
        ("captioner", CAPTIONER),
    ):
        if pattern.fullmatch(plain):
            return role
    numbers = {str(number) for number in range(len(different) + 1)}
    return "sample" if different <= numbers else ""


def _captioner(groups: Sequence, columns: Mapping[str, Sequence[str]]) -> str:
    """The column with few values that splits the rows so that each image occurs once, or that is called as captioners
    are; '' without one, or if several split them in different ways."""
    few = {name: values for name, values in columns.items() if len(set(values)) <= FEW}
    split = [name for name, values in few.items() if len(set(zip(groups, values, strict=True))) == len(groups)]
    split = split or [name for name in few if CAPTIONER.fullmatch(plain_name(name))]
    split.sort(key=lambda name: not CAPTIONER.fullmatch(plain_name(name)))
    numbers = {len(set(few[name])) for name in split}
    together = len(set(zip(*(few[name] for name in split), strict=True))) if split else 0
    return split[0] if numbers == {together} else ""


def _which_rows(parsed: Parsed, differ: Mapping[str, str], values: Mapping[str, Sequence[str]]) -> OpenQuestion:
    boxes, shown = [], []
    for name, role in differ.items():
        different = list(dict.fromkeys(values[name]))
        few = different if len(different) <= FEW else []
        shown.append(f"{short(name)} ({listed(different, 4)})")
        options = [] if role in ("language", "region", "captioner") else [("samples of one set", (("sets", SAMPLES),))]
        options += [("a set per prompt", (("sets", BY_PROMPT),))] if role == "prompt" and few else []
        if role not in ("prompt", "score"):
            options += [("a captioner per value", (("captioner_column", name),))] if few else []
            options += [(f"only {short(value)}", (("rows", f"{name}={value}"),)) for value in few]
        boxes.append((f"The rows of an image, which differ in {short(name)}, are", tuple(options)))
    message = f"{parsed.file} has several rows per image, which differ in {', '.join(shown)}."
    boxes = [box for box in boxes if box[1]]
    hint = "Say what they are." if boxes else "Write the rows to read into a separate file."
    return OpenQuestion(message, hint, tuple(boxes))


def _account(
    parsed: Parsed,
    roles: Roles,
    rows: Rows,
    per_image: Mapping[int, int],
    equal: int,
    notes: Mapping[str, str],
    second: bool,
) -> tuple[tuple[str, str], ...]:
    """What became of each column, and the captions per image.

    per_image: captions of an image -> images.
    equal: captions that repeat another of their image.
    notes: column -> what was done with it.
    second: of human captions beside a model's.
    """
    titles = {roles.image_id: "Image ID", roles.prompt: "Prompt", rows.captioner: "Captioner"}
    titles |= dict.fromkeys(roles.captions, "Captions") | dict.fromkeys(roles.references, "Human captions")
    order = ("Image ID", "Captions", "Human captions", "Captioner", "Sample", "Prompt", "Not used")
    fields = []
    for name, values in parsed.columns.items():
        role = titles.get(name) or ("Sample" if rows.differ.get(name) == "sample" else "Not used")
        same, note = len(set(map(str, _sample(values)))) == 1, notes.get(name, "")
        if same and (role == "Prompt" or (role == "Not used" and len(values) > 1)):
            note = "the same in every row"
        elif role == "Prompt":
            note = counted(len(set(map(str, values))), "different text")
        fields.append((name, role, note))
    fields += [(name, "Not used", "") for name in parsed.left_out]
    fields = [each for each in fields if not second or each[1] == "Human captions"]
    fields.sort(key=lambda each: order.index(each[1]))
    sizes = [f"{size} ({counted(images, 'image')})" for size, images in sorted(per_image.items())]
    text = ", ".join(sizes[:8] + ["more"] * (len(sizes) > 8))
    if rows.captioner or len(roles.captions) > 1:
        text += " by each captioner"
    if rows.differ:
        text += f"; rows differ in {', '.join(map(short, rows.differ))}"
    if equal:
        text += f"; {equal:,} equal to another of their image, which count too"
    return (*account_lines(fields), ("Captions per image", text))


# captions


def captions(parsed: Parsed, given: Mapping[str, Any] = {}, human: bool = False) -> Table:
    """The captions of a file of one kind: image_id, caption_index, caption. given: as for `Choices.of`. human: those of
    people. Raises Ambiguous if it is open which they are, and CapbiasError if none is usable."""
    chosen = Choices.of(given, parsed)
    roles = roles_of(parsed, chosen, REFERENCES if human else CAPTIONS)
    return captions_table(parsed, roles, rows_of(parsed, roles, chosen, True), chosen, human)


def captions_table(parsed: Parsed, roles: Roles, rows: Rows, chosen: Choices, human: bool) -> Table:
    """The captions in the columns of a role. Table.sets names the captioner of each, if there are several: the column,
    the value of the column of captioners, or both."""
    names = roles.references if human else roles.captions
    columns = {name: _how_to_read(parsed, name, human, chosen.sets) for name in names}
    ids, by_column = parsed.columns[roles.image_id], len(names) > 1 and not human and chosen.sets != SAMPLES
    captioners = parsed.columns[rows.captioner] if rows.captioner and not human else None
    faults, images, texts, indices, sets = parsed.faults.copy(), [], [], [], []
    for index in range(len(ids)) if rows.keep is None else rows.keep:
        try:
            image = normalise_image_id(ids[index])
        except ValueError as error:
            faults.add(parsed.numbers[index], str(error))
            continue
        of_row = cell_text(captioners[index]) if captioners else ""
        if captioners and not of_row:
            faults.add(parsed.numbers[index], "no captioner is named")
            continue
        for name, (holds, separator) in columns.items():
            value = texts_of(parsed.columns[name][index], holds, separator)
            whole = isinstance(value, list) and (holds in (TEXTS, SHORT) or separator)
            for text in (value or [""]) if whole else (value,):
                if fault := caption_fault(text):
                    faults.add(parsed.numbers[index], fault)
                    continue
                images.append(image)
                texts.append(text)
                indices.append(index)
                sets.append(f"{of_row} {name}".strip() if by_column else of_row)
    cleaned = clean_captions(texts)
    frame = pd.DataFrame({"image_id": images, "caption": cleaned.texts, "set": sets, "row": indices}, dtype=object)
    frame = frame[frame["caption"].notna()].reset_index(drop=True)
    if frame.empty:
        raise parsed.unusable(faults, ", ".join(f"{rule}: {number:,}" for rule, number in cleaned.counts.items()))
    frame = frame.astype({"image_id": "str", "caption": "str", "set": "str"})
    groups = frame.groupby(["set", "image_id"], sort=False)
    frame["caption_index"] = groups.cumcount()
    sizes = groups.size().rename("size").reset_index()
    sizes = sizes.drop_duplicates(["size", "image_id"])["size"].value_counts().to_dict()  # images, of any captioner
    equal = int(frame.duplicated(["set", "image_id", "caption"]).sum())
    prompts, notes = (), parsed.notes
    if roles.prompt and not human:
        asked = [parsed.columns[roles.prompt][index] for index in frame["row"]]
        prompts = tuple(text.strip() if isinstance(text, str) and not caption_fault(text) else "" for text in asked)
        counts = Counter(prompts)
        prompts = prompts if len(counts) > 1 else ()
        if prompts:
            shown = [f"{short(text) or '(none)'} ({number:,})" for text, number in counts.items()][:SHOWN_PROMPTS]
            more = "; …" if len(counts) > SHOWN_PROMPTS else ""
            notes += (f"{counted(len(counts), 'prompt')}: {'; '.join(shown)}{more}",)
    if rows.keep is not None:
        notes += (f"{len(rows.keep):,} of {counted(len(ids), 'row')} read, those where {_wanted_rows(chosen)}",)
    done = {name: DONE.get(holds, "") for name, (holds, _) in columns.items()}
    for name, (_, separator) in columns.items():
        if separator:
            done[name] = f"split at {MARKS.get(separator, separator)}"
    return Table(
        frame[list(CAPTION_COLUMNS)],
        parsed.rows,
        empty=len(texts) - len(frame),
        problems=tuple(faults.first),
        problem_count=faults.count,
        notes=notes,
        prompts=prompts,
        sets=tuple(frame["set"]) if captioners or by_column else (),
        account=_account(parsed, roles, rows, sizes, equal, done, second=human and bool(roles.captions)),
        cleaned=cleaned.counts,
        warnings=cleaned.warnings,
    )


def _how_to_read(parsed: Parsed, name: str, human: bool, sets: str) -> tuple[str, str]:
    """What a column of captions holds, and what separates several captions in a cell. Raises Ambiguous if it is open
    what they are, and CapbiasError if it is open which candidate is the best."""
    values = parsed.columns[name]
    holds = content(values)
    if holds == SCORED and not best_first(values):
        raise CapbiasError(
            f"In {short(name)} of {parsed.file} the first candidate has the lowest number, which may be a loss.",
            "Write the candidate to read alone.",
            "caption_column",
        )
    separator = separator_of(values) if holds in (TEXT, REPEATED, OTHER) else ""
    if not separator or human:
        return holds, separator
    if separator != "\n" and not sets:
        options = (("samples of one set", (("sets", SAMPLES),)), ("one caption each", (("sets", WHOLE),)))
        mark = MARKS.get(separator, separator)
        message = f"Nearly all texts in {short(name)} of {parsed.file} look like several captions, separated by {mark}."
        raise Ambiguous(OpenQuestion(message, "Say what they are.", ((f"The texts in {short(name)} are", options),)))
    return holds, separator if sets in (SAMPLES, EACH) else ""


def caption_fault(caption: object) -> str:
    """Why a raw caption cannot be used, or ''."""
    if isinstance(caption, str) and caption.isascii() and "\0" not in caption and len(caption) <= MOST_CHARACTERS:
        return ""  # nearly all, quickly
    if caption is None or caption != caption:
        return "there is no caption (null)"
    if not isinstance(caption, str):
        return f"the caption is {described(caption)}, not text"
    if len(caption) > MOST_CHARACTERS:
        return f"the caption has {len(caption):,} characters; at most {MOST_CHARACTERS:,} are read"
    return "the caption holds a NUL character or half a surrogate pair" if UNSTORABLE.search(caption) else ""


def with_images(table: Table, human: pd.DataFrame, known: pd.DataFrame, file: str) -> Table:
    """Captions by row as captions by image: a row is the image with the same human captions.

    table: captions by row. human: their human captions by row. known: human captions with image IDs. A row is the image
    that has most of its human captions, and more than half of them, ignoring case and outer space; a tie gives no
    image, unless one is the row itself. If each row is itself, nothing changes. A row without an image is left out and
    counted. Raises CapbiasError if no row has one.
    """
    with_text = defaultdict(set)  # text -> image IDs
    for text, image in zip(known["caption"].str.strip().str.casefold(), known["image_id"], strict=True):
        with_text[text].add(image)
    by_row = {}
    for row, texts in human["caption"].str.strip().str.casefold().groupby(human["image_id"], sort=False):
        votes = Counter(image for text in texts for image in with_text.get(text, ()))
        most = max(votes.values(), default=0)
        best = [image for image, number in votes.items() if number == most and number * 2 > len(texts)]
        if len(best) == 1 or row in best:
            by_row[row] = row if row in best else best[0]
    if all(row == image for row, image in by_row.items()) and len(by_row) == human["image_id"].nunique():
        return table
    images = table.frame["image_id"].map(by_row)
    lost, faults = images.isna(), RowErrors(file, "record")
    for index in lost.to_numpy().nonzero()[0]:
        faults.add(int(index) + 1, f"no loaded image has the human captions of {table.frame['image_id'].iloc[index]}")
    if lost.all():
        raise CapbiasError(
            f"The rows of {file} have no image IDs, and no loaded image has its human captions.",
            "Load it without other human captions, or into another collection: it holds human captions itself.",
        )
    frame = table.frame.assign(image_id=images)[~lost].reset_index(drop=True)
    frame["caption_index"] = frame.groupby("image_id", sort=False).cumcount()
    note = (
        f"{counted(len(frame), 'caption')} got the image ID of the loaded human captions; not found: {faults.count:,}"
    )
    return replace(
        table,
        frame=frame,
        problems=(*table.problems, *faults.first)[:KEPT_PROBLEMS],
        problem_count=table.problem_count + faults.count,
        notes=(*table.notes, note),
        prompts=tuple(prompt for prompt, out in zip(table.prompts, lost, strict=False) if not out),
        sets=tuple(name for name, out in zip(table.sets, lost, strict=False) if not out),
    )
