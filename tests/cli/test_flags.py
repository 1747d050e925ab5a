"""Flags of measures come from their options, so that a new measure's flag needs no line in the command line."""

from dataclasses import dataclass, fields, replace
from typing import get_args

import pytest

from capbias_core import cli
from capbias_core.cli.flags import ATTACKERS, INPUTS, Parameter, choices_of, given, measure_choices
from capbias_core.errors import CapbiasError
from capbias_core.measures.base import Group
from capbias_core.measures.options import Attacked, Options, option
from capbias_core.measures.registry import MEASURES


@dataclass(frozen=True)
class ToyOptions(Options):
    """Choices of a measure that is not there."""

    least: int = option(3, "captions at least", flag="--least", at_least=1, at_most=9, metavar="N")
    share: float | None = option(None, "share of them", flag="--share", above=0, below=1)
    how: str = option("plain", "how they are read", flag="--how", choices=("plain", "loud"))
    words: tuple[str, ...] = option((), "which words", flag="--words-too", several=True, metavar="WORD")
    loud: bool = option(False, "loudly", flag="--loud")
    hidden: str = option("", "what only a plan chooses")


TOY = replace(MEASURES["ratio_error"], name="toy", options=ToyOptions, groups=(Group("toy", "toy", ("ratio",)),))


def parameters(choices: type) -> dict[str, tuple[object, Parameter]]:
    """The type and the flag of each field."""
    return {own.name: get_args(own.type) for own in fields(choices)}


def test_each_choice_of_a_measure_with_a_flag_is_one():
    found = parameters(choices_of(ToyOptions, "least", "share", "how", "words", "loud"))
    types = {name: kind for name, (kind, _) in found.items()}
    assert types == {
        "least": int | None,
        "share": float | None,
        "how": str | None,
        "words": list[str] | None,
        "loud": bool | None,
    }
    flags = {name: own for name, (_, own) in found.items()}
    assert flags["least"].name == ("--least",) and flags["least"].metavar == "N"
    assert flags["least"].help == "captions at least (1 to 9; default: 3)"
    assert flags["share"].help == "share of them (a number above 0 and below 1)"
    assert flags["how"].metavar == "plain|loud" and flags["how"].help.endswith("(default: plain)")
    assert flags["loud"].metavar is None and flags["words"].metavar == "WORD"


def test_a_new_measure_gets_a_group_of_its_own():
    found = parameters(measure_choices([*MEASURES.values(), TOY], inputs=("photographs",)))
    assert "hidden" not in found
    assert [group.name for group in found["least"][1].group] == ["For toy"]
    assert found["seeds"][1].group == (ATTACKERS,) and found["photographs"][1].group == (INPUTS,)


def test_choices_are_checked_by_the_bounds_of_their_option():
    choices = choices_of(ToyOptions, "least", "how", "words")
    assert given(choices(least=4, words=["a", "b"]), ToyOptions) == {"least": 4, "words": ("a", "b")}
    with pytest.raises(CapbiasError, match="--least .* 10"):
        given(choices(least=10), ToyOptions)
    with pytest.raises(CapbiasError, match="how 'loudly'. Did you mean loud"):
        given(choices(how="loudly"), ToyOptions)


def test_no_flag_is_said_of_one_measure_that_others_have_too():
    attacked = parameters(measure_choices([own for own in MEASURES.values() if own.groups]))
    for name, about in Attacked.about().items():
        if about.flag:
            assert attacked[name][1].group == (ATTACKERS,)


def test_the_dashboard_starts_on_loopback(monkeypatch, tmp_path):
    pytest.importorskip("streamlit")
    calls = []
    monkeypatch.setattr("os.execve", lambda _, command, env: calls.append((command, env)))
    assert cli.main(["app", "--workspace", str(tmp_path), "--port", "8600"]) == 0
    ((command, environment),) = calls
    assert command[1:4] == ["-m", "streamlit", "run"] and command[4].endswith("app.py")
    asked = dict(zip(command[5::2], command[6::2], strict=True))
    assert asked["--server.address"] == "127.0.0.1" and asked["--server.port"] == "8600"
    assert environment["CAPBIAS_HOME"] == str(tmp_path)
