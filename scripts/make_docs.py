"""docs/metrics.md from what the measures say of themselves: python -m scripts.make_docs (make docs)."""

from __future__ import annotations

import math
import sys
from pathlib import Path

from capbias_core.measures.base import Measure, Metric, Needs
from capbias_core.measures.options import bounds_text
from capbias_core.measures.protocols import PROTOCOLS
from capbias_core.measures.registry import GROUPS, MEASURES, NAME_RULE
from capbias_core.present.sentence import BETTER

FILE = Path(__file__).resolve().parents[1] / "docs" / "metrics.md"
HEAD = f"""# Metrics

Every number that capbias gives, measure by measure. A measure is computed together from the same inputs. Labels are
binary, given by other people, and incomplete: a number speaks about captions and labels, never about a person.

Ask for metrics by name: `capbias score --metric NAME`. {NAME_RULE}

This page is generated from `capbias_core/measures/` by `make docs`.
"""


PROTOCOL_HEAD = """## Protocols

`--protocol NAME` (or `protocol=`, a plan's `protocol`, and Protocol on Scores) sets what a paper fixes, where nothing else
is given. Without it each measure follows its own paper with the fast attacker `ngram`. The method of each result names the
protocol and each deviation from it. `custom` sets nothing.

| protocol | paper | settings | always |
| --- | --- | --- | --- |"""


def metrics_page() -> str:
    """The whole page."""
    groups = ["| ask for | metrics |", "| --- | --- |"]
    groups += [f"| `{own.name}` | {', '.join(own.metrics)} |" for own in GROUPS.values()]
    parts = [_measure(own) for own in MEASURES.values() if own.metrics]
    return "\n".join([HEAD, *groups, "", PROTOCOL_HEAD, *map(_protocol, PROTOCOLS), "", *parts]).rstrip() + "\n"


def _protocol(name: str) -> str:
    """A protocol as a row of the table."""
    protocol = PROTOCOLS[name]
    settings = ", ".join(f"{option} {value}" for option, value in protocol.settings.items() if option != "merge_masks")
    return f"| `{name}` | {protocol.title}, {protocol.where} | {settings} | {protocol.fixed} |"


def _measure(measure: Measure) -> str:
    lines = [f"## {measure.name}: {measure.title}", "", f"Reads {reads(measure.needs)}. Version {measure.version}.", ""]
    for metric in measure.metrics:
        lines += [f"- **{metric.name}** ({metric.title}). {metric.explanation} {_facts(metric)}"]
    flags = [(name, about) for name, about in measure.options.about().items() if about.flag]
    if flags:
        lines += ["", "| flag | what it chooses |", "| --- | --- |"]
        for name, about in flags:
            default = getattr(measure.options(), name)
            usual = f" Default: {default}." if default not in (None, (), "", False) else ""
            known = f" One of: {', '.join(about.known)}." if about.known else ""
            bounds = f" Takes {bounds_text(about)}." if bounds_text(about) else ""
            lines.append(f"| `{about.flag}` | {about.help.replace('|', '/')}.{known}{bounds}{usual} |")
    return "\n".join([*lines, ""])


def reads(needs: Needs) -> str:
    """What a measure needs, in words."""
    found = ["captions", "labels"] if needs.labels else ["captions"]
    names = {"references": "human captions", "objects": "objects of the images"}
    found += [
        text if getattr(needs, name) == "required" else f"{text} if there are any"
        for name, text in names.items()
        if getattr(needs, name)
    ]
    found += [
        text
        for name, text in (("photographs", "photographs"), ("people", "where people are"), ("vectors", "word vectors"))
        if getattr(needs, name)
    ]
    words = {"any": "an attribute that captions name", "every": "an attribute with words for every value"}
    found += [words[needs.words]] if needs.words else []
    return f"{', '.join(found[:-1])} and {found[-1]}"


def _facts(metric: Metric) -> str:
    low, high = (f"{end:g}".replace("inf", "∞").replace("-", "−") for end in metric.range)
    neutral = metric.neutral(2)
    said = "" if math.isnan(neutral) else f" {metric.reference_line.capitalize()} for two values: {neutral:g}."
    better = BETTER[metric.better].strip("←→ ")
    return f"Range {low} to {high}, {better}.{said} Source: {metric.source}."


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(metrics_page(), encoding="utf-8")
    print(f"written: {FILE.name}", file=sys.stderr)
