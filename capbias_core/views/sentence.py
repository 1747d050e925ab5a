"""Numbers and answers as text: only what the numbers allow."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from capbias_core.aggregate import Ranking
from capbias_core.aggregate.ranking import ALIKE, LEAST_SHARED
from capbias_core.aggregate.resampling import NO_WIDTH
from capbias_core.measures.lic import LONGER
from capbias_core.measures.registry import MEASURES, METRICS
from capbias_core.runs.engine import Expected
from capbias_core.types import counted
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.vectors import alignment_name

# templates

TEMPLATES = Path(__file__).parent / "sentences"


@cache
def templates() -> dict[str, str]:
    """The sentences of the files in `sentences/`, by name: `answer.leakage` is `leakage` of answer.toml."""
    return {
        f"{path.stem}.{name}": text
        for path in sorted(TEMPLATES.glob("*.toml"))
        for name, text in tomllib.loads(path.read_text("utf-8")).items()
    }


def say(template: str, **fields: Any) -> str:
    """A sentence of `sentences/` with its fields. Raises KeyError for an unknown template and for a missing field.

    >>> say("comparison.left", time="2 s")
    ', about 2 s left'
    """
    return templates()[template].format(**fields)


# numbers


def number(value: float, decimals: int = 1) -> str:
    """A number with these decimals and a real minus sign, which no zero has."""
    return f"{round(value, decimals) + 0.0:.{decimals}f}".replace("-", "−")


def signed(value: float, decimals: int) -> str:
    """The same with a plus, which no zero has either."""
    return ("+" if round(value, decimals) > 0 else "") + number(value, decimals)


def limit(value: float, decimals: int) -> str:
    """A number or limit of an interval: one that is no 0 but would be shown as one has up to three more decimals, since
    a claim may depend on its side.

    >>> limit(0.013, 1), limit(0.13, 1), limit(1e-12, 1)
    ('0.01', '0.1', '0.0')
    """
    shown = (more for more in range(decimals, decimals + 4) if round(value, more))
    return number(value, next(shown, decimals))


def with_interval(value: float, low: float | None, high: float | None, decimals: int = 1) -> str:
    """`8.7 [6.9, 10.4]`, or the value alone if there is no interval."""
    if low is None or high is None or pd.isna(low):
        return limit(value, decimals)
    return f"{limit(value, decimals)} [{limit(low, decimals)}, {limit(high, decimals)}]"


def decimals(metric: str, scale: float) -> int:
    """How many of a score are shown: one where it is x100; two of BA and DBA, whose values are small, and of others."""
    usual = METRICS[metric].digits if metric in METRICS else None
    return usual or (2 if scale != 100 else 1)


def interval(row: pd.Series) -> str:
    """`8.7 [6.9, 10.4]`, or the value alone where there is no interval; where all seeds agree it says so."""
    text = with_interval(row["value"], row["ci_low"], row["ci_high"], decimals(row["metric"], row["scale"]))
    several = row.get("seeds", 0) > 1 and pd.notna(row["spread"])
    agreeing = pd.isna(row["ci_low"]) and several and row["spread"] <= NO_WIDTH
    return f"{text} (no interval: all seeds agree)" if agreeing else text


def listed(names: Sequence[str], word: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


# metrics and runs


def measure(metric: str, direction: str) -> str:
    """A metric with its direction: `DBAC A→T`, or its name alone."""
    return f"{metric} {direction.replace('->', '→')}" if direction else metric


ARROWS = {"lower": "← {}", "higher": "{} →"}


def better_text(metric: str, values: int = 2) -> str:
    """Beside an axis: which end is better, by number where that is a point, for an attribute of so many values.

    >>> better_text("LIC"), better_text("ratio"), better_text("length")
    ('← lower is better', 'nearest to the ratio of the labels is best', 'neither end is better')
    """
    return ARROWS.get(METRICS[metric].better, "{}").format(best_text(metric, values))


def best_text(metric: str, values: int = 2) -> str:
    """Which end of an order is best.

    >>> best_text("LIC"), best_text("cider"), best_text("ratio")
    ('lower is better', 'higher is better', 'nearest to the ratio of the labels is best')
    """
    better, neutral = METRICS[metric].better, METRICS[metric].neutral(values)
    if METRICS[metric].of_labels:
        return say("comparison.nearest_labels")
    if better == "neutral" and not math.isnan(neutral):
        return say("comparison.nearest", neutral=neutral)
    return say(f"comparison.{better}")


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def cost_text(expected: Expected) -> str:
    """How long runs take.

    >>> cost_text(Expected({}, 150))
    'about 2 min on two free cores'
    """
    return say("comparison.cost", time=duration(expected.seconds))


def left_text(left: float) -> str:
    """The time left of runs under way.

    >>> left_text(75)
    ', about 75 s left'
    """
    return say("comparison.left", time=duration(left))


def run_text(spec: RunSpec) -> str:
    """A run in a few words: `nic: LIC and leakage for gender, ngram, 10 seeds`."""
    measure = MEASURES.get(spec.measure)
    title = measure.title if measure else spec.measure
    if measure and measure.makes:
        return f"{spec.model}: {title}, {spec.options['name']}"
    aligned = alignment_name(spec.options["alignment"]).replace("_", " ") if spec.options.get("alignment") else ""
    seeds = counted(len(spec.seeds), "seed") if measure and measure.seeded else ""
    parts = (spec.attacker, seeds, spec.coverage.replace("_", " "), aligned)
    run = say("comparison.run", model=spec.model, measure=title, attribute=spec.attribute["name"])
    return ", ".join([run, *filter(None, parts)])


# A number of a note, which is another for another captioner.
NUMBER = re.compile(r"(?<![\w.,])[−-]?\d+(?:,\d{3})*(?:\.\d+)?(?!\w)")


def named_notes(notes: list[tuple[str, tuple[str, ...]]]) -> list[str]:
    """Notes of runs, each once: what holds for every captioner as it is, the others after their captioners' names.

    Notes that differ in numbers alone are one, with the smallest and the largest of each.

    >>> named_notes([("a", ("same", "5 of 9 words")), ("b", ("same", "7 of 9 words")), ("c", ("same", "other"))])
    ['same', 'a, b: 5 to 7 of 9 words', 'c: other']
    >>> named_notes([("a", ("Male 1,298, all",)), ("b", ("Male 12,597, all",))])
    ['Male 1,298 to 12,597, all']
    """
    all_models = {model for model, _ in notes}
    by_pattern: dict[str, dict[str, set[str]]] = {}  # the note without its numbers -> the note -> captioners
    for model, lines in notes:
        for line in lines:
            by_pattern.setdefault(NUMBER.sub("#", line), {}).setdefault(line, set()).add(model)
    named = []
    for captioners_of in by_pattern.values():
        columns = [
            sorted(set(numbers), key=_as_number) for numbers in zip(*map(NUMBER.findall, captioners_of), strict=True)
        ]
        texts = iter(" to ".join(dict.fromkeys((span[0], span[-1]))) for span in columns)
        line = NUMBER.sub(lambda _, texts=texts: next(texts), next(iter(captioners_of)))
        models = set().union(*captioners_of.values())
        named.append(line if models == all_models else f"{', '.join(sorted(models))}: {line}")
    return named


def _as_number(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


# comparisons


def significance_note(ranking: Ranking | None) -> str:
    """A sentence about which captioners can be told apart, and how that was tested."""
    if ranking is None or len(ranking.letters) < 2:
        return ""
    incomparable = say("comparison.incomparable", shared=LEAST_SHARED, alike=ALIKE)
    if not ranking.pairs:
        return say("comparison.no_pair", incomparable=incomparable)
    apart = sum(pair.apart for pair in ranking.pairs)
    others = math.comb(len(ranking.letters), 2) - len(ranking.pairs)
    finding = "same_letter" if apart < len(ranking.pairs) else "all_compared_differ" if others else "all_differ"
    if not apart and (ranking.provisional or not others):
        finding = "no_difference_shown" if ranking.provisional else "no_two_differ"
    method = ", ".join(filter(None, (ranking.method, ranking.provisional)))
    compared = {"pairs": counted(others, "pair"), "incomparable": incomparable}
    more = [say("comparison.pairs_not_compared", **compared)] if others else []
    if alone := [f"{name} ({ranking.images[name]:,})" for name, letters in ranking.letters.items() if not letters]:
        more.append(say("comparison.not_with_most", captioners=", ".join(alone)))
    said = say("comparison.letters", finding=say(f"comparison.{finding}"), method=method)
    return " ".join(filter(None, [said, *more, lengths_note(ranking.words)]))


def lengths_note(words: Mapping[str, float]) -> str:
    """How far captioners differ in length, if they do. words: name -> average words of a caption.

    >>> lengths_note({"sat": 9.4, "llava": 91.2}), lengths_note({"sat": 9.4, "oscar": 10.0})
    ('Average length of captions differs: 9.4 words (sat) to 91.2 (llava); longer captions can reveal more.', '')
    """
    if len(words) < 2 or max(words.values()) <= LONGER * min(words.values()):
        return ""
    (short, shortest), *_, (long, longest) = sorted(words.items(), key=lambda item: item[1])
    return say("comparison.lengths", shortest=shortest, shortest_name=short, longest=longest, longest_name=long)
