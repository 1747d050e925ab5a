"""What a user may choose of a measure: frozen dataclasses whose fields say everything about each choice.

From the fields come the flags of the command line, the controls of the pages, the checks of what was given, and the
part of a run's key that depends on choices. A field with the same name means the same in every measure: measures that
share one inherit it from one class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Annotated, Any, Self, get_type_hints

from annotated_types import Interval

from capbias_core.attackers import DEFAULT_ATTACKER, attacker_entry
from capbias_core.errors import unknown_name
from capbias_core.language.device import AUTO, DEVICES
from capbias_core.measures.protocols import NAMES
from capbias_core.prepare.align import DELTA
from capbias_core.prepare.split import TEST_SHARE
from capbias_core.typed import typed
from capbias_core.workspace.spec import AlignmentReference, ModelReference, PeopleReference, PhotographsReference


@dataclass(frozen=True)
class Option:
    """What is known about a choice besides its default."""

    help: str  # one line, lower case, without a full stop
    flag: str = ""  # in a terminal, '' for a choice that only the plan makes
    above: float | None = None  # a bound that is not allowed itself
    at_least: float | None = None  # bounds that are allowed
    at_most: float | None = None
    choices: tuple[str, ...] | Callable[[], tuple[str, ...]] = ()  # () for any
    metavar: str = ""  # stands for the value in help
    kept: bool = False  # in a run's key even if it is the default

    @property
    def known(self) -> tuple[str, ...]:
        """The choices, () for any."""
        return self.choices() if callable(self.choices) else self.choices

    @property
    def bounds(self) -> str:
        """The bounds in words, '' if there are none.

        >>> Option("share", above=0, at_most=1).bounds
        'above 0 and at most 1'
        """
        if self.at_least is not None and self.at_most is not None:
            return f"from {self.at_least:g} to {self.at_most:g}"
        words = {"above": self.above, "of at least": self.at_least, "at most": self.at_most}
        return " and ".join(f"{word} {bound:g}" for word, bound in words.items() if bound is not None)


def option(default: Any, help: str, kw_only: bool = False, **about: Any) -> Any:
    """A field of Options; `about` as in Option."""
    return field(default=default, kw_only=kw_only, metadata={"option": Option(help, **about)})


@dataclass(frozen=True)
class Checked:
    """A dataclass whose fields say what may be given for them, by their type hints and by `option`; pydantic checks
    them (typed.py). Raises CapbiasError for anything else."""

    def __post_init__(self) -> None:
        for choice in fields(self):
            object.__setattr__(self, choice.name, self.checked(choice.name, getattr(self, choice.name)))

    @classmethod
    def about(cls) -> dict[str, Option]:
        """Every field by name, in order."""
        return {choice.name: choice.metadata["option"] for choice in fields(cls)}

    @classmethod
    def checked(cls, name: str, value: Any) -> Any:
        """A value as its field holds it. Raises CapbiasError if it is not allowed."""
        about, hint = cls.about()[name], hints_of(cls)[name]
        if about.bounds:
            hint = Annotated[hint, Interval(gt=about.above, ge=about.at_least, le=about.at_most)]
        value = typed(name, value, hint, name)
        if about.known and isinstance(value, str) and value not in (*about.known, getattr(cls, name, None)):
            raise unknown_name(name.replace("_", " "), value, about.known)
        return value


@cache
def hints_of(kind: type) -> dict[str, Any]:
    """The type hints of a class by the names of its fields."""
    return get_type_hints(kind, include_extras=True)


@dataclass(frozen=True)
class Options(Checked):
    """Choices of a measure. Values are what JSON holds; lists are tuples."""

    protocol: str = option("", "the paper whose protocol was chosen", choices=("", *NAMES), kw_only=True)
    shuffled: bool = option(
        False,
        "captions or labels are shuffled on purpose, as a baseline: what is of other images is scored, too",
        flag="--shuffled",
        kw_only=True,
    )

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        """The choices among those given that are this measure's; others are another measure's."""
        return cls(**{name: value for name, value in given.items() if name in cls.about()})

    def to_dict(self) -> dict[str, Any]:
        """The choices in a run's key: those that differ from their default, and those that are always in it."""
        chosen = ((choice, getattr(self, choice.name)) for choice in fields(self))
        return {
            choice.name: list(value) if isinstance(value, tuple) else value
            for choice, value in chosen
            if choice.metadata["option"].kept or value != choice.default
        }

    @property
    def seed_numbers(self) -> tuple[int, ...]:
        """The seeds: 0 alone for a measure that draws nothing."""
        return tuple(range(getattr(self, "seeds", 1)))

    def with_(self, **changed: Any) -> Self:
        """A copy with other choices."""
        return replace(self, **changed)

    def effective(self) -> Self:
        """A copy without choices that change nothing here, so that they do not make two runs of one."""
        return self


MOST_SEEDS = 50


@dataclass(frozen=True)
class Seeded(Options):
    """Choices of a measure that draws splits at random, once per seed."""

    seeds: int = option(
        10,
        "splits and trainings with different seeds; the LIC paper uses 10, its reproduction 3, and `score` for LIC by "
        f"ngram {attacker_entry(DEFAULT_ATTACKER).seeds} if none is given",
        flag="--seeds",
        at_least=1,
        at_most=MOST_SEEDS,
        metavar="N",
        kept=True,
    )
    test_share: float = option(
        TEST_SHARE,
        "share of images held out in each split (default: that of the measure's paper, 0.1, or 0.2 for DBAC, DPA, "
        "ImageCaptioner2 and VL-LIC)",
        flag="--test-share",
        at_least=0.05,
        at_most=0.5,
        metavar="SHARE",
    )


@dataclass(frozen=True)
class Split80(Seeded):
    """Choices of a measure whose paper tests on 20% of the images."""

    test_share: float = field(default=0.2, metadata={"option": Seeded.about()["test_share"]})


@dataclass(frozen=True)
class OnDevice(Options):
    """Choices of a measure that computes with networks."""

    device: str = option(
        AUTO, "where networks compute: auto takes CUDA if there is one", flag="--device", choices=DEVICES
    )


@dataclass(frozen=True)
class Trained(OnDevice):
    """Choices of a measure that trains networks."""

    deterministic: bool = option(
        False, "on CUDA: use only algorithms that give the same numbers each time; slower", flag="--deterministic"
    )

    def effective(self) -> Self:
        """Without what a CPU does not read; a light attacker has no device."""
        attacker = getattr(self, "attacker", "")
        if attacker and attacker_entry(attacker).in_process:
            return replace(self, deterministic=False, device=AUTO)
        return replace(self, deterministic=False) if self.device == "cpu" else self


@dataclass(frozen=True)
class Attacked(Trained):
    """Choices of a measure that trains attackers."""

    attacker: str = option(
        DEFAULT_ATTACKER,
        "the attacker: a name, or the folder of a text encoder",
        flag="--attacker",
        metavar="NAME",
        kept=True,
    )
    encoder: ModelReference | None = option(None, "the files of a pretrained attacker")
    merge_masks: bool = option(
        False, "one mask for a run of masked words; the papers have one per word", flag="--merge-masks"
    )


@dataclass(frozen=True)
class Aligned(Options):
    """Choices of a measure that compares with human captions."""

    alignment: AlignmentReference | None = option(
        None,  # constant
        "how human words that the captioner never uses are replaced: constant (by <unk>) or contextual (by the "
        f"nearest word below a cosine distance, default {DELTA:g})",
    )


@dataclass(frozen=True)
class Photographed(Options):
    """Choices of a measure that reads photographs."""

    photographs: PhotographsReference | str | None = option(
        None,
        "photographs named by image id: a folder, or with --collection the name of kept ones, such as masked ones",
        flag="--photographs",
        metavar="FOLDER",
    )


@dataclass(frozen=True)
class PeopleMarked(Options):
    """Choices of a measure that reads where people are on photographs."""

    people: PeopleReference | str | None = option(
        None,
        "where people are: COCO instances with outlines, or a table of boxes from `images detect`; with --collection "
        "the name of kept ones (default: the only ones, outlines before boxes)",
        flag="--people",
        metavar="FILE",
    )


@dataclass(frozen=True)
class ArtifactOptions(Options):
    """What the plan says of a run that makes an item in place of numbers."""

    collection: str = option("", "the collection that the item is kept in")
    name: str = option("", "the name of the item")
    photographs: PhotographsReference | str | None = option(None, "the photographs that it is made from")
