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
from typing import Any, Generic, TypeVar

from capbias_core.errors import CapbiasError, flag_name, short
from capbias_core.kinds import SOURCES

MOST_OPTIONS, MOST_LINES, MOST_QUESTIONS = 4, 20, 6
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

    def use(self, argument: str, value: str = "") -> None:
        """Note that an argument had an effect."""
        self.used.add(f"{argument}={value}" if value else argument)

    def idle(self) -> list[str]:
        """The arguments without an effect, as `flag_name` takes them."""
        names = (
            "image_id_column",
            "caption_column",
            "reference_column",
            "captioner_column",
            "attribute_column",
            "rows",
        )
        pairs = [f"{name}={value}" for name in names for value in getattr(self, name)]
        pairs += [f"attribute={pair}" for pair in self.attribute if "=" in pair]
        pairs += [f"{name}={getattr(self, name)}" for name in ("sets", "several") if getattr(self, name)]
        return [pair for pair in pairs if pair not in self.used]

    def columns(self, argument: str, path: str, columns: Sequence[str]) -> list[str]:
        """The columns of a file that an argument names."""
        found = []
        for value in getattr(self, argument):
            name = value.removeprefix(f"{path}:").removeprefix(f"{Path(path).name}:")
            if argument == "attribute_column" and name not in columns:
                name = name.partition("=")[2] and name
            parts = name.partition("=")[2] if argument == "attribute_column" and name not in columns else name
            if all(part in columns for part in (parts.split("+") if parts not in columns else [parts])) and parts:
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
    """What is open. options: the best first. examples: what the file holds. chosen: the place of the option that was
    tried, -1 before."""

    text: str
    options: tuple[Option, ...]
    examples: tuple[str, ...] = ()
    chosen: int = -1

    @property
    def best(self) -> Answer:
        """The answer that was tried."""
        return self.options[self.chosen].answer if self.chosen >= 0 else {}


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
        return self.text("One complete answer", self.call or ", ".join(python_form(self.answer)), python_form)

    def text(self, how: str, whole: str, form: Callable[[Answer], list[str]]) -> str:
        """The questions with their options, and the one complete answer. form: an option as the surface writes it."""
        lines = []
        room = max(1, (MOST_LINES - 3) // len(self.questions) - 3)
        for number, each in enumerate(self.questions, start=1):
            lines.append(f"Question{f' {number}' if len(self.questions) > 1 else ''}: {each.text}")
            lines += [f"      {line}" for line in each.examples]
            for place, option in list(enumerate(each.options))[:room]:
                lines.append(
                    f"  {'*' if place == each.chosen else ' '} {' '.join(form(option.answer))}   {option.effect}"
                )
        tried = f" (tried: {self.effect})" if self.effect else ""
        return "\n".join([*lines[: MOST_LINES - 2], f"{how}{tried}:", f"  {whole}"])


def python_form(answer: Answer) -> list[str]:
    """An answer as keyword arguments of Python.

    >>> python_form({"sets": ("samples",), "rows": ("answer=accept",)})
    ["sets='samples'", "rows={'answer': 'accept'}"]
    """
    parts = []
    for name, values in answer.items():
        if name == "rows":
            shown: Any = dict(value.split("=", 1) for value in values)
        elif name == "map":
            name, shown = (
                "mapping",
                {label: value for label, _, value in (pair.partition(":")[2].rpartition("=") for pair in values)},
            )
        else:
            shown = values[0] if len(values) == 1 else list(values)
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
    plain = str | int | float | None
    if isinstance(value, Path):
        value = str(value)
    elif isinstance(value, list | tuple) and all(isinstance(part, str | Path) for part in value):
        value = [str(part) for part in value]
    elif isinstance(value, Mapping) and all(isinstance(part, plain | Path) for part in value.values()):
        value = {key: str(part) if isinstance(part, Path) else part for key, part in value.items()}
    elif not isinstance(value, plain):
        return name
    return repr(value) if isinstance(value, plain) or len(value) <= MOST_LINES else name


def command_text(ask: Ask, words: Sequence[str]) -> str:
    """A question as a terminal shows it. words: of the command as it was, without `capbias`."""
    whole = shlex.join(["capbias", *words, *flags_form(ask.answer)])
    return ask.text("One complete answer", whole, lambda answer: [shlex.join(flags_form(answer))])


# what is asked, with an answer


@dataclass(frozen=True)
class Request(Generic[Result]):
    """Files with what was said of them, and how they are read."""

    files: tuple[File, ...]
    given: Given
    read: Callable[[Sequence[File], Given], Result]

    def run(self) -> Result:
        """The result. Raises Ask, or CapbiasError."""
        return self.read(self.files, replace(self.given, used=set()))

    def plus(self, answer: Answer) -> Request[Result]:
        """The request with an answer."""
        files, changes = list(self.files), {}
        for name, values in answer.items():
            if name in SOURCES:
                for place, file in enumerate(files):
                    if file.path in values and name not in file.kinds:
                        files[place] = replace(file, kinds=(*file.kinds, name))
            elif name in ("sets", "several"):
                changes[name] = values[0]
            else:
                changes[name] = (
                    *getattr(self.given, name),
                    *(value for value in values if value not in getattr(self.given, name)),
                )
        return replace(self, files=tuple(files), given=replace(self.given, **changes))


def read_or_ask(request: Request[Result], describe: Callable[[Result], str]) -> Result:
    """What a request reads. Raises Ask with all that is open and an answer that was tried, or CapbiasError.

    describe: what a result holds, in a line.
    """
    try:
        return request.run()
    except Ask as ask:
        asked, answer, result = _solved(request, ask)
    before: dict[str, tuple[str, ...]] = {}
    for place, each in enumerate(asked):  # of further options only those that read on, or ask on
        works = [
            number == each.chosen or _works(request.plus(merged(before, option.answer)))
            for number, option in enumerate(each.options)
        ]
        before = merged(before, each.best)
        order = sorted(
            (number for number, fine in enumerate(works) if fine), key=lambda number, each=each: number != each.chosen
        )
        asked[place] = replace(each, options=tuple(each.options[number] for number in order), chosen=0)
    complete = Ask(asked[0].text)
    complete.questions, complete.answer, complete.effect = tuple(asked), answer, describe(result)
    raise complete


def merged(first: Answer, second: Answer) -> dict[str, tuple[str, ...]]:
    """Two answers as one."""
    return {
        name: tuple(dict.fromkeys((*first.get(name, ()), *second.get(name, ()))))
        for name in dict.fromkeys((*first, *second))
    }


def _works(request: Request) -> bool:
    try:
        request.run()
    except Ask:
        return True
    except CapbiasError:
        return False
    return True


def _solved(
    request: Request[Result], ask: Ask, depth: int = 1
) -> tuple[list[OpenQuestion], dict[str, tuple[str, ...]], Result]:
    """The questions with the first options that read on, the whole answer, and its result. Raises CapbiasError without
    one."""
    reason: CapbiasError | None = None
    (question,) = ask.questions
    for place, option in enumerate(question.options if depth <= MOST_QUESTIONS else ()):
        further = request.plus(option.answer)
        try:
            questions, answer, result = [], {}, further.run()
        except Ask as next_ask:
            try:
                questions, answer, result = _solved(further, next_ask, depth + 1)
            except CapbiasError as error:
                reason = reason or error
                continue
        except CapbiasError as error:
            reason = reason or error
            continue
        return [replace(question, chosen=place), *questions], merged(option.answer, answer), result
    raise reason or CapbiasError(question.text, "Nothing that was tried reads on.")
