"""Every sentence that code names is there, and every sentence that is there is named."""

import re
from pathlib import Path

from capbias_core.views.sentence import templates

MADE = {"change.not_significant", "words.and_less", "masking.more_1", "masking.more_0", "masking.more_-1"}  # of parts
ROOT = Path(__file__).parents[2]


def test_sentences_are_there_and_used():
    files = [*(ROOT / "capbias_core").rglob("*.py"), *(ROOT / "pages").rglob("*.py")]
    code = "\n".join(file.read_text("utf-8") for file in files)
    named = set(re.findall(r"""\bsay\(\s*["']([a-z]+\.[a-z_]+)["'][,)]""", code))
    assert len(named) > 100 and named <= templates().keys(), named - templates().keys()
    # Of `answer.{kind}` the last part alone stands in the code.
    unused = {name for name in templates() if not re.search(rf"\b({name}|{name.partition('.')[2]})\b", code)}
    assert unused == MADE
