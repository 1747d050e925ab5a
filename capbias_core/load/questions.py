"""Files with what the user said of them, and the one question about all that is open.

A question lists at most four options, each with what follows from it, and one complete answer that was tried: it reads
on. Answers are arguments; the command line appends them as flags, Python shows the whole call, a page has boxes.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

from capbias_core.errors import CapbiasError, flag_name, short
from capbias_core.kinds import SOURCES

UNNAMED = "captions"  # the captioner of a table or list without a name
MOST_OPTIONS, MOST_LINES, MOST_QUESTIONS = 4, 20, 6
COLUMNS = ("image_id_column", "caption_column", "reference_column", "captioner_column", "attribute_column")
Answer = Mapping[str, tuple[str, ...]]  # argument -> values; of captions, labels, references: files
Result = TypeVar("Result")


@dataclass(frozen=True)
class File:
    """A file, table or list that a user brings. kinds: what they said that it holds, none to detect it."""

    source: Any
    kinds: tuple[str, ...] = ()
    name: str = ""  # of the item, '' for the file's own
    trained: bool | None = None  # whether the model was trained on the references, None if unknown
    captioner: str = ""  # who wrote the captions, '' for what the name suggests
    condition: str = ""  # what was masked on the photographs, '' for what the name suggests

    @property
    def path(self) -> str:
        """The file as answers name it."""
        return str(self.source) if isinstance(self.source, str | Path) else self.name or (self.kinds or ("table",))[0]

    @property
    def title(self) -> str:
        """Its name in messages."""
        return Path(self.source).name if isinstance(self.source, str | Path) else f"the {self.path}"


@dataclass(frozen=True)
class Given:
    """What the user said of columns and rows; each of a column may begin with `FILE:`.

    used: what had an effect on a file, collected while files are read.
    """

    image_id_column: tuple[str, ...] = ()
    caption_column: tuple[str, ...] = ()
    reference_column: tuple[str, ...] = ()
    captioner_column: tuple[str, ...] = ()
    attribute_column: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()  # COLUMN=VALUE; | between values, * for all, min or max of a number
    attribute: tuple[str, ...] = ()  # NAME=COLUMN, where several attributes are read
    map: tuple[str, ...] = ()  # ATTRIBUTE:LABEL=VALUE
    sets: str = ""
    several: str = ""
    used: set[str] = field(default_factory=set, compare=False)

    def use(self, argument: str, value: str) -> None:
        """Note that an argument had an effect."""
        self.used.add(f"{argument}={value}")

    def idle(self) -> list[str]:
        """The arguments without an effect, as `flag_name` takes them."""
        pairs = [f"{name}={value}" for name in (*COLUMNS, "rows") for value in getattr(self, name)]
        pairs += [f"attribute={pair}" for pair in self.attribute if "=" in pair]
        pairs += [f"{name}={getattr(self, name)}" for name in ("sets", "several") if getattr(self, name)]
        return [pair for pair in pairs if pair not in self.used]

    def columns(self, argument: str, path: str, columns: Sequence[str]) -> list[str]:
        """The columns of a file that an argument names, such as `a` or `folder+file`."""
        found = []
        for value in getattr(self, argument):
            name = value.removeprefix(f"{path}:").removeprefix(f"{Path(path).name}:")
            if name in columns or set(name.split("+")) <= set(columns):
                self.use(argument, value)
                found.append(name)
        return found

    def rows_of(self, path: str, columns: Sequence[str]) -> list[tuple[str, str, str]]:
        """Each choice of rows of a file, with its column and value. Names of columns may contain =."""
        found = []
        for rule in self.rows:
            text = rule.removeprefix(f"{path}:")
            ends = [place for place, letter in enumerate(text) if letter == "=" and text[:place] in columns]
            found += [(rule, text[:place], text[place + 1 :]) for place in ends[:1]]
        return found


@dataclass(frozen=True)
class Option:
    """An answer to a question, with what follows from it."""

    answer: Answer
    effect: str


@dataclass(frozen=True)
class OpenQuestion:
    """What is open. options: the best first; once answers were tried, it reads on. examples: what the file holds."""

    text: str
    options: tuple[Option, ...]
    examples: tuple[str, ...] = ()


class Ask(CapbiasError):
    """More than one reading fits. questions: all that is open. answer: one complete answer, which reads on; effect:
    what follows from it."""

    def __init__(self, question: str, *options: Option, examples: Sequence[str] = ()):
        shown = tuple(short(line, 110) for line in examples[:2])
        self.questions: tuple[OpenQuestion, ...] = (OpenQuestion(question, options[:MOST_OPTIONS], shown),)
        self.answer: dict[str, tuple[str, ...]] = {}
        self.effect = self.call = ""  # the whole call of Python
        super().__init__(question)

    def __str__(self) -> str:
        return self.text(self.call or ", ".join(python_form(self.answer)), python_form)

    def text(self, whole: str, form: Callable[[Answer], list[str]]) -> str:
        """The questions with their options, and the one complete answer. form: an option as the surface writes it."""
        lines = []
        room = max(1, (MOST_LINES - 3) // len(self.questions) - 3)
        for number, each in enumerate(self.questions, start=1):
            lines.append(f"Question{f' {number}' if len(self.questions) > 1 else ''}: {each.text}")
            lines += [f"      {line}" for line in each.examples]
            for mark, option in zip(f"*{' ' * room}", each.options[:room], strict=False):
                lines.append(f"  {mark} {' '.join(form(option.answer))}   {option.effect}")
        return "\n".join([*lines[: MOST_LINES - 2], f"One complete answer (tried: {self.effect}):", f"  {whole}"])


def python_form(answer: Answer) -> list[str]:
    """An answer as keyword arguments of Python.

    >>> python_form({"sets": ("samples",), "rows": ("answer=accept",)})
    ["sets='samples'", "rows={'answer': 'accept'}"]
    """
    parts = []
    for name, values in answer.items():
        shown: Any = values[0] if len(values) == 1 else list(values)
        if name == "rows":
            shown = dict(value.split("=", 1) for value in values)
        elif name == "map":
            pairs = (value.partition(":")[2].rpartition("=") for value in values)
            name, shown = "mapping", {label: value for label, _, value in pairs}
        parts.append(f"{name}={shown!r}")
    return parts


def flags_form(answer: Answer) -> list[str]:
    """An answer as flags, in words of a command.

    >>> flags_form({"caption_column": ("a", "b"), "sets": ("each",)})
    ['--caption-column', 'a', 'b', '--sets', 'each']
    """
    return [word for name, values in answer.items() for word in (flag_name(name), *values)]


def python_call(function: Callable[..., Any], given: Mapping[str, Any], answer: Answer) -> str:
    """A whole call with an answer. given: arguments by name; data are shown by the name of their argument.

    >>> def score(captions=None, labels=None, seeds=None): ...
    >>> python_call(score, {"captions": ["a.json"], "labels": [{"id": 1}], "seeds": None}, {"sets": ("each",)})
    "capbias.score(captions=['a.json'], labels=labels, sets='each')"
    """
    usual = {name: each.default for name, each in signature(function).parameters.items()}
    shown = {name: _shown(name, value) for name, value in given.items() if value is not usual.get(name)}
    shown |= dict(part.split("=", 1) for part in python_form(answer))
    return f"capbias.{function.__name__}({', '.join(f'{name}={text}' for name, text in shown.items())})"


def _shown(name: str, value: Any) -> str:
    """An argument as code: what is short and can be written, else the name of the argument."""
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else [value]
    if len(inner) > MOST_LINES or not all(part is None or isinstance(part, str | int | float | Path) for part in inner):
        return name
    if isinstance(value, Mapping):
        return repr({key: str(part) if isinstance(part, Path) else part for key, part in value.items()})
    parts = [str(part) if isinstance(part, Path) else part for part in inner]
    return repr(parts if isinstance(value, list | tuple) else parts[0])


def command_text(ask: Ask, words: Sequence[str]) -> str:
    """A question as a terminal shows it. words: of the command as it was, without `capbias`."""
    whole = shlex.join(["capbias", *words, *flags_form(ask.answer)])
    return ask.text(whole, lambda answer: [shlex.join(flags_form(answer))])


# what is asked, with an answer


def read_or_ask(
    files: Sequence[File],
    given: Given,
    read: Callable[[Sequence[File], Given], Result],
    describe: Callable[[Result], str],
    depth: int = 1,
) -> Result:
    """What is read. Raises Ask with all that is open, the options that read on or ask on, and one answer that was
    tried; or CapbiasError. describe: what a result holds, in a line."""
    try:
        return read(files, replace(given, used=set()))
    except Ask as asked:
        ask = asked
    (question,), reason = ask.questions, None
    for place, option in enumerate(question.options if depth <= MOST_QUESTIONS else ()):
        further, answer = [], {}
        try:
            ask.effect = describe(read_or_ask(*_plus(files, given, option.answer), read, describe, depth + 1))
        except Ask as inner:
            further, answer, ask.effect = inner.questions, inner.answer, inner.effect
        except CapbiasError as error:
            reason = reason or error
            continue
        others = [each for each in question.options[place + 1 :] if _works(read, *_plus(files, given, each.answer))]
        ask.questions = (replace(question, options=(option, *others)), *further)
        ask.answer = merged(option.answer, answer)
        raise ask
    raise reason or CapbiasError(question.text, "Nothing that was tried reads on.")


def merged(first: Answer, second: Answer) -> dict[str, tuple[str, ...]]:
    """Two answers as one."""
    names = dict.fromkeys((*first, *second))
    return {name: tuple(dict.fromkeys((*first.get(name, ()), *second.get(name, ())))) for name in names}


def _plus(files: Sequence[File], given: Given, answer: Answer) -> tuple[Sequence[File], Given]:
    """Files with what was said of them, and an answer."""
    told = merged({name: getattr(given, name) for name in (*COLUMNS, "rows", "attribute", "map")}, answer)
    kinds = {name: told.pop(name, ()) for name in SOURCES}
    words = {name: told.pop(name)[0] for name in ("sets", "several") if name in told}
    said = [[name for name in SOURCES if file.path in kinds[name]] for file in files]
    files = [
        replace(file, kinds=tuple(dict.fromkeys((*file.kinds, *more)))) for file, more in zip(files, said, strict=True)
    ]
    return files, replace(given, **told, **words, used=set())


def _works(read: Callable[[Sequence[File], Given], object], files: Sequence[File], given: Given) -> bool:
    try:
        read(files, given)
    except Ask:
        return True
    except CapbiasError:
        return False
    return True
