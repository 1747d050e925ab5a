"""docs/metrics.md from what the measures say of themselves: python -m scripts.make_docs (make docs)."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from pathlib import Path

from capbias_core.aggregate import Metric, Needs
from capbias_core.measures.base import Measure
from capbias_core.measures.protocols import PROTOCOLS
from capbias_core.measures.registry import GROUPS, MEASURES, NAME_RULE
from capbias_core.views.sentence import best_text

PAPERS = {  # short names of sources that come often
    "Hirota et al., CVPR 2022": "LIC",
    "Nair et al., arXiv:2503.07878 (DBAC)": "DBAC",
    "Sabir and Padró, Findings of EMNLP 2023": "GS",
    "Abdelrahman et al., AAAI 2024": "IC2",
    "Hirota et al., ACL 2025 (LOTUS)": "LOTUS",
    "capbias 2026": "ours",
}
KEYS = "; ".join(f"{short}: {paper}" for paper, short in PAPERS.items()) + "."
FILE = Path(__file__).resolve().parents[1] / "docs" / "metrics.md"
HEAD = f"""# Metrics

By measure, made from `capbias_core/measures/` by `make docs`. A measure reads captions, labels, and what "also reads"
names. `capbias score --metric NAME` takes the names in the headings, or one metric. {NAME_RULE} `capbias metrics NAME`
explains a metric in full, with its cautions, and lists its options: `--option NAME=VALUE`, or an argument in Python.

- "Chance" is what guessing gives, and "neutral" is the value that means no bias by this metric, both for two groups.
- `NAME_gap` is the value on images of the second group minus that on the first. For more groups: the largest minus the
  smallest, which is above 0 by chance alone. The images of the groups differ too. Nearest to 0 is best, and it lies
  between plus and minus the width of the metric's range.
- `NAME_M` is the value for the model's captions; `NAME_D` or `NAME_H` is the value for the human captions. `LIC_HM` and
  `LIC_MH` are those of an attacker that was trained on the other side.
- `NAME_ratio` is the value over the sum for all values, `NAME_to_neutral` the value over that of the neutral word, and
  `NAME_count` the number of captions.
- `NAME_cut` is the value after the captions of the longer side were cut, so that both have equally many words on
  average; it is measured only if the lengths differ by more than 10%. `NAME_crossfit` has signs from other images.
- `NAME_constant` is the value of an attacker that reads nothing, and `NAME_added` what reading adds to that.
- Brackets name the source; a metric without one has the source of the line above it. {KEYS}
- Range and direction under a heading hold for all metrics below that name no other.
"""
PROTOCOL_HEAD = """## Protocols

`--protocol NAME` sets what a paper fixes, unless you set it. Without it, each measure follows its paper with the fast
attacker `ngram`. The method of each result names the protocol and each deviation. A measure that the chosen paper does
not have follows its own. `custom` sets nothing. Of several values the first is set; the others are the paper's too.

| protocol | paper | settings | always |
| --- | --- | --- | --- |"""
# What ends the name of a part of a metric.
PART = re.compile("_(M|H|D|HM|MH|ratio|to_neutral|count|cut|crossfit|constant|added)$")
DEFAULT = {name for group in GROUPS.values() if group.default for name in group.metrics}


def metrics_page() -> str:
    """The whole page."""
    measures = [measure for measure in MEASURES.values() if measure.metrics]
    parts = [HEAD, *map(_measure, measures), PROTOCOL_HEAD, *map(_protocol, PROTOCOLS)]
    return "\n".join(parts) + "\n"


def _protocol(name: str) -> str:
    """A protocol as a row of the table."""
    protocol = PROTOCOLS[name]
    shown = {name: value for name, value in protocol.settings.items() if name != "merge_masks"}
    settings = ", ".join(
        f"{name.replace('_', ' ')} {' or '.join(value) if isinstance(value, tuple) else value}"
        for name, value in shown.items()
    )
    return f"| `{name}` | {protocol.title}, {protocol.where} | {settings} | {protocol.fixed} |"


def _measure(measure: Measure) -> str:
    """The section of a measure."""
    names = [group.name for group in GROUPS.values() if any(metric.name in group.metrics for metric in measure.metrics)]
    shown = [metric for metric in measure.metrics if not _folded(metric, measure)]
    needs = f"Also reads {text}." if (text := reads(measure.needs)) else ""
    usual, times = Counter(map(_facts, shown)).most_common(1)[0]
    shared = usual if times > 1 else ""
    about = " ".join(filter(None, [needs, shared]))
    lines, source = [f"## {', '.join(names)}: {measure.title}", "", *([about, ""] if about else [])], ""
    for metric in shown:
        cited = "" if metric.source == source else f" [{_short(metric.source)}]"
        source = metric.source
        facts = "" if shared and _facts(metric) == usual else f" {_facts(metric)}"
        lines.append(f"- **{metric.name}**: {_meaning(metric)}{facts}{cited}{_parts(metric, measure)}")
    return "\n".join([*lines, ""])


def _short(source: str) -> str:
    """A source with the short names of papers, without the commits of code and where it is in the docs."""
    for paper, short in PAPERS.items():
        source = source.replace(paper, short)
    return re.sub(r"(the authors' code): .*|, docs/\w+\.md", r"\1", source)


def _meaning(metric: Metric) -> str:
    """The first sentences of the explanation of what is measured by default; of others one if it is short, else the
    title."""
    first, *others = re.split(r"(?<=[a-z)>”]\.) (?=[A-Z`])", metric.explanation)
    if metric.name in DEFAULT:
        return first if len(first) > 120 else " ".join([first, *others[:1]])
    short = first if len(first) <= 70 else f"{metric.title.removeprefix(f'{metric.name}, ')}."
    difference = "captions minus" in metric.explanation and "minus" not in first
    return f"{short} The model's captions minus the human ones." if difference else short


def _base(metric: Metric) -> str:
    """The metric of which this one is a gap, a side or another scale."""
    return metric.gap_of or PART.sub("", metric.name)


def _folded(metric: Metric, measure: Measure) -> bool:
    """Whether a metric is named in the line of another. A side with a source of its own, such as LIC_M, is not."""
    base = {other.name: other for other in measure.metrics}.get(_base(metric))
    if base is None or base is metric:
        return False
    return not re.search("_[MHD]$", metric.name) or base.source.startswith(metric.source)


def _parts(metric: Metric, measure: Measure) -> str:
    """The gap, which has a range of its own, and the sides of a metric, by range."""
    ranges: dict[str, list[str]] = {}
    for part in measure.metrics:
        if _base(part) == metric.name and _folded(part, measure):
            chance = f", chance {part.neutral(2):g}" if part.guessed else ""
            alike = part.gap_of or (part.range == metric.range and part.guessed == metric.guessed)
            ranges.setdefault("" if alike else f": {_range(part)}{chance}", []).append(f"`{part.name}`")
    return "".join(f" {', '.join(names)}{text}." for text, names in ranges.items())


def reads(needs: Needs) -> str:
    """What a measure needs besides captions and labels, in words."""
    fields = {
        "references": "human captions",
        "objects": "objects of the images",
        "photographs": "photographs",
        "people": "where people are",
        "vectors": "word vectors",
    }
    found = [
        f"{text} (optional)" if getattr(needs, name) == "optional" else text
        for name, text in fields.items()
        if getattr(needs, name)
    ]
    words = {"any": "an attribute that captions name", "every": "an attribute with words for every value"}
    return ", ".join([*found, *([words[needs.words]] if needs.words else [])])


def _range(metric: Metric) -> str:
    return " to ".join(f"{end:g}".replace("inf", "∞").replace("-", "−") for end in metric.range)


def _facts(metric: Metric) -> str:
    """Range, direction and neutral point."""
    neutral, better = metric.neutral(2), best_text(metric.name)
    called = "chance" if metric.guessed else "neutral"
    point = "" if metric.better == "neutral" or math.isnan(neutral) else f", {called} {neutral:g}"
    return f"Range {_range(metric)}, {better}{point}."


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(metrics_page(), encoding="utf-8")
    print(f"written: {FILE.name}", file=sys.stderr)
