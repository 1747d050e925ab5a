"""An attribute, and what its words find in captions, as rows of text."""

from __future__ import annotations

from html import escape

import pandas as pd

from capbias_core.attributes.labels import spellings_of
from capbias_core.prepare.labels import Trial
from capbias_core.types import Attribute


def attribute_lines(attribute: Attribute) -> list[tuple[str, str]]:
    """What an attribute holds, as (label, text)."""
    lines = [
        ("Name", attribute.name),
        ("Title", attribute.title),
        ("Values", ", ".join(attribute.values)),
        *((f"Words for {value}", _listed(attribute.words.get(value, ()))) for value in attribute.values),
        ("Mask token", f"{attribute.mask_token} stands for each of the {len(attribute.masked_words):,} words"),
        ("Columns", ", ".join(attribute.columns) or f"only {attribute.name}"),
    ]
    if not attribute.masked_words:
        lines[-2] = ("Mask token", f"{attribute.mask_token}, not used: no word is masked")
    lines += [
        (f"Labels read as {value}", ", ".join(labels)) for value, labels in spellings_of(attribute).items() if labels
    ]
    rule = f"they can be: {attribute.derived.text}" if attribute.derived else "no: labels come from a table"
    lines.append(("Labels from captions", rule))
    return [*lines, ("Note", attribute.note or "none: say what the labels cannot say")]


def lines_block(lines: list[tuple[str, str]]) -> str:
    """Those lines as an HTML table; every text is escaped."""
    cell = '<td style="padding:.15rem 1.2rem .15rem 0;vertical-align:top'
    rows = [
        f'<tr>{cell};white-space:nowrap;opacity:.8">{escape(label)}</td>'
        f'{cell};overflow-wrap:anywhere">{escape(text)}</td></tr>'
        for label, text in lines
    ]
    return f'<table style="max-width:110ch">{"".join(rows)}</table>'


def _listed(words: tuple[str, ...]) -> str:
    return f"{len(words):,}: {', '.join(words)}" if words else "none"


def trial_row(trial: Trial) -> dict[str, str]:
    """How many captions of a set name each value: `1,234 (12.3%)`."""
    counts = {f"names {value}": count for value, count in trial.named.items()}
    counts |= {"names several": trial.several, "names none": trial.none}
    shares = {title: f"{count:,} ({count / max(trial.captions, 1):.1%})" for title, count in counts.items()}
    return {"captions": f"{trial.captions:,}"} | shares


def examples_table(trial: Trial) -> pd.DataFrame:
    """Captions as written, and as an attacker reads them."""
    return pd.DataFrame(trial.examples, columns=["as written", "as an attacker reads it"])


def words_text(trial: Trial) -> str:
    """`man 9,876, woman 5,432`"""
    return ", ".join(f"{word} {count:,}" for word, count in trial.words.items()) or "none"
