"""Small attribute files that took gigabytes or ended in a traceback."""

import pytest

from capbias_core.attributes import parse_attribute, read_attribute
from capbias_core.errors import CapbiasError

HOSTILE = {
    "a key of 20,000 tables": (".".join("a" * 20_000) + " = 1", "dots"),
    "a header of 20,000 tables": (f"[{'.'.join('a' * 20_000)}]", "dots"),
    "a quoted key before them": ('"=".' + ".".join("a" * 20_000) + " = 1", "dots"),
    "100 kB": ("# " + "x" * 100_000, "100,002 bytes"),
    "100 kB of words in two bytes each": ("# " + "é" * 50_000, "100,002 bytes"),
    "a number of 5,000 digits": ("a = " + "1" * 5_000, "digits"),
    "5,000 arrays": ("a = " + "[" * 5_000 + "]" * 5_000, "nested"),
    "5,000 tables in a line": ("a = " + "{b=" * 5_000 + "1" + "}" * 5_000, "nested"),
}


@pytest.mark.parametrize("text, said", HOSTILE.values(), ids=HOSTILE)
def test_a_text_that_would_eat_the_machine_is_refused(text, said):
    with pytest.raises(CapbiasError) as refused:
        parse_attribute(text, "own.toml")
    assert "own.toml" in str(refused.value) and said in str(refused.value) and len(str(refused.value)) < 500


def test_a_large_file_is_not_read_whole(tmp_path):
    (tmp_path / "own.toml").write_text("# " + "x" * 10_000_000)
    with pytest.raises(CapbiasError, match="65,537 bytes"):
        read_attribute(tmp_path / "own.toml")
