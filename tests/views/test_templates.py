"""Templates of sentences: code names those that are there, and all of them; a missing field is an error."""

import re
from pathlib import Path
from string import Formatter

import pytest

from capbias_core.views.sentence import TEMPLATES, say, templates

CORE = TEMPLATES.parent.parent
STEMS = "|".join(path.stem for path in TEMPLATES.glob("*.toml"))
# A name, or the pattern of several, such as f"answer.because_{verdict}".
NAMES = re.compile(rf"""["']((?:{STEMS})\.(?:[a-z_]|{{[^{{}}]*}})+)["']""")


def named_in_code() -> set[str]:
    sources = (path.read_text("utf-8") for top in (CORE, CORE.parent / "pages") for path in top.rglob("*.py"))
    return {name for text in sources for name in NAMES.findall(text)} - {"words.weight"}  # of a network's state


def test_code_names_templates_that_are_there_and_all_of_them():
    named = named_in_code()
    plain = {name for name in named if "{" not in name}
    assert len(templates()) > 100 and not plain - set(templates())
    patterns = [re.sub(r"\{[^}]*\}", ".*", name.replace(".", r"\.")) for name in named]
    assert not [name for name in templates() if not any(re.fullmatch(pattern, name) for pattern in patterns)]


def test_fields_have_names_and_a_missing_one_is_an_error():
    for name, text in templates().items():
        fields = [field for _, field, _, _ in Formatter().parse(text) if field is not None]
        assert all(field.isidentifier() for field in fields), name
    with pytest.raises(KeyError, match="captioner"):
        say("answer.amplifies")
    with pytest.raises(KeyError, match="answer.nothing"):
        say("answer.nothing")
    assert say("comparison.run", model="{attribute}", measure="m", attribute="a") == "{attribute}: m for a"


def test_templates_are_files_that_a_translator_reads():
    for path in Path(TEMPLATES).glob("*.toml"):
        assert path.read_text("utf-8").startswith("# "), f"{path.name} says what its sentences are about"
