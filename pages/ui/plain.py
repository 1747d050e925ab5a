"""Text that is shown as written, where Streamlit reads Markdown."""

from __future__ import annotations

import re

# Marks of Markdown in a line: anywhere, not within a word, before a name, and only at the beginning of the line.
MARKS = r"[\\`*\[\]<~$]|&(?=#?\w)|(?<![^\W_])_|_(?![^\W_])|:(?=\S)|^[#+>=-]|(?<=^\d)[.)](?= )|(?<=^\d\d)[.)](?= )"
# What Streamlit makes a link of, marks escaped or not: addresses of pages and of mail.
ADDRESS = re.compile(r"(?<=:)(?=//)|(?<=\bwww)(?=\.)|(?<=\w)(?=@\w)", re.IGNORECASE)


def plain(text: str) -> str:
    """Text for a label that Streamlit reads as Markdown: marks are escaped, so that it is shown as written. An address
    gets a space without width, so that it becomes no link.

    Only where they are marks: a control's name for screen readers is the label as it stands, escapes and all.
    """
    return re.sub(MARKS, r"\\\g<0>", ADDRESS.sub("\u200b", text))
