"""Numbers and answers as text: only what the numbers allow."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from capbias_core.aggregate import IMAGES, REFITS, Ranking, provisional
from capbias_core.aggregate.estimate import AMPLIFIES, INCONCLUSIVE, REDUCES, interval_side, verdict
from capbias_core.aggregate.ranking import ALIKE, LEAST_SHARED
from capbias_core.aggregate.resampling import LEAST_SEEDS, NO_WIDTH
from capbias_core.aggregate.variants import variants
from capbias_core.attackers import AttackerEntry, attacker_entry
from capbias_core.measures import dbac
from capbias_core.measures.lic import LONGER
from capbias_core.measures.registry import MEASURES, METRICS
from capbias_core.runs.engine import Expected
from capbias_core.types import Attribute, counted
from capbias_core.views.results import attribute_of_run
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import RunRow, Workspace
from capbias_core.workspace.vectors import alignment_name

FEW_IMAGES = 300  # balanced images of which fewer tell little
FEW_SEEDS = 5  # fewer say little of how far seeds differ


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

    >>> say("comparison.amplify", count=2)
    '2 amplify'
    """
    return templates()[template].format(**fields)


@dataclass(frozen=True)
class Answer:
    """headline: the answer in a few words. support: why, for readers outside the field. details: the numbers and
    settings behind it. warning: why little follows, if so. captioner: whom it is about, '' for several. Plain text;
    whoever shows it escapes it."""

    headline: str
    support: str
    captioner: str = ""
    details: str = ""
    warning: str = ""

    @property
    def text(self) -> str:
        """All of it in one paragraph."""
        return " ".join(filter(None, (self.headline, self.support, self.details, self.warning)))


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


def interval(row: pd.Series, digits: int | None = None) -> str:
    """`8.7 [6.9, 10.4]`, or the value alone where there is no interval; where all seeds agree it says so.

    digits: as many as `decimals` says unless given.
    """
    digits = decimals(row["metric"], row["scale"]) if digits is None else digits
    return with_interval(row["value"], row["ci_low"], row["ci_high"], digits) + seeds_agree(row)


def seeds_agree(row: Mapping[str, Any] | pd.Series) -> str:
    """Why a number of several seeds has no interval, to stand after it; else ''."""
    several = row.get("seeds", 0) > 1 and pd.notna(row["spread"])
    agreeing = pd.isna(row["ci_low"]) and several and row["spread"] <= NO_WIDTH
    return " (no interval: all seeds agree)" if agreeing else ""


OVER = {REFITS: "95% with refits", IMAGES: "95% over images"}


def interval_over(row: pd.Series | dict) -> str:
    """What an interval is over; '' if there is none."""
    return OVER.get(row.get("interval", ""), "")


def intervals_over(rows: pd.DataFrame) -> str:
    """What the intervals of rows are over: `95% with refits`, `95% over images`, or both."""
    return " or ".join(text for name, text in OVER.items() if name in set(rows["interval"])) or OVER[IMAGES]


def probabilities_text(values: Sequence[str], shares: Iterable[float]) -> str:
    """`Female 16%, Male 84%`, in which no line breaks before a percentage.

    >>> probabilities_text(("Female", "Male"), (0.125, 0.875)).replace("\N{NO-BREAK SPACE}", " ")
    'Female 12%, Male 88%'
    """
    return ", ".join(f"{value}\N{NO-BREAK SPACE}{share:.0%}" for value, share in zip(values, shares, strict=True))


def listed(names: Sequence[str], word: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


# metrics and runs


def measure(metric: str, direction: str) -> str:
    """A metric with its direction: `DBAC A→T`, or its name alone."""
    return f"{metric} {direction.replace('->', '→')}" if direction else metric


def with_attacker(metric: str, attacker: AttackerEntry) -> str:
    """A metric and who measured it: `LIC (lstm_bi)`, `LIC (ngram, preview)`."""
    return f"{metric} ({_attacker(attacker)})"


def _attacker(attacker: AttackerEntry) -> str:
    return say("answer.attacker_preview", attacker=attacker.name) if attacker.preview else attacker.name


ARROWS = {"lower": "← {}", "higher": "{} →"}


def better_text(metric: str, values: int = 2) -> str:
    """Beside an axis: which end is better, by number where that is a point, for an attribute of so many values.

    >>> better_text("LIC"), better_text("ratio"), better_text("length")
    ('← lower is better', 'nearest to 1 is best', 'neither end is better')
    """
    return ARROWS.get(METRICS[metric].better, "{}").format(best_text(metric, values))


def best_text(metric: str, values: int = 2) -> str:
    """Which end of an order is best.

    >>> best_text("LIC"), best_text("cider"), best_text("ratio")
    ('lower is better', 'higher is better', 'nearest to 1 is best')
    """
    better, neutral = METRICS[metric].better, METRICS[metric].neutral(values)
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

    >>> cost_text(Expected({}, 150, True)), cost_text(Expected({}, 20, False))
    ('about 2 min', 'about 20 s on two free cores')
    >>> cost_text(Expected({}, 25, True, "NVIDIA H200"))
    'about 25 s on NVIDIA H200'
    >>> cost_text(Expected({}, 7200, False, "NVIDIA H200", no_run_yet=True))
    'about 2.0 h on two free cores; no run on NVIDIA H200 yet'
    """
    time, cores = duration(expected.seconds), say("comparison.two_cores")
    if expected.no_run_yet:
        where = say("comparison.a_cpu") if expected.learned else cores
        return say("comparison.cost_unknown", time=time, where=where, card=expected.card)
    where = expected.card or ("" if expected.learned else cores)
    return say("comparison.cost_on", time=time, where=where) if where else say("comparison.cost", time=time)


def left_text(expected: Expected, left: float) -> str:
    """The time left of runs under way; '' on a card that no such run has finished on.

    >>> left_text(Expected({}, 150, True), 75)
    ', about 75 s left'
    """
    return "" if expected.no_run_yet else say("comparison.left", time=duration(left))


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
        columns = zip(*map(NUMBER.findall, captioners_of), strict=True)
        spans = [
            sorted(set(numbers), key=lambda text: float(text.replace(",", "").replace("−", "-"))) for numbers in columns
        ]
        texts = iter(span[0] if len(span) == 1 else f"{span[0]} to {span[-1]}" for span in spans)
        line = NUMBER.sub(lambda _, texts=texts: next(texts), next(iter(captioners_of)))
        models = set().union(*captioners_of.values())
        named.append(line if models == all_models else f"{', '.join(sorted(models))}: {line}")
    return named


# the answer

# The metrics that answer, and by which captioners are ranked: the first that was measured.
ANSWERING = ("LIC", "LIC_M")


def first_to_answer(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of one metric, a captioner each, in the order in which they answer: those that amplify, then the others,
    each from the highest lower end of its interval: a high value of few images answers nothing."""
    lowest = rows["ci_low"].astype(float).fillna(rows["value"])
    ordered = rows.assign(shown=rows["verdict"] == AMPLIFIES, lowest=lowest)
    return ordered.sort_values(["shown", "lowest"], ascending=False, kind="stable").drop(columns="lowest")


def headline(rows: pd.DataFrame, runs: Iterable[RunRow], trained: Mapping[str, bool | None]) -> Answer | None:
    """The answer for the captioner that answers first by LIC (LIC_M without references); None without either. runs: of
    the rows. trained: by captioner, whether it was trained on the references."""
    metric = next((name for name in ANSWERING if name in set(rows["metric"])), None)
    if metric is None:
        return None
    first = first_to_answer(rows[rows["metric"] == metric]).iloc[0]
    run = next(run for run in runs if run.run_id == first["run_id"])
    rows = rows[rows["run_id"] == run.run_id]
    return answer(
        rows, run.spec.model, attribute_of_run(run), attacker_entry(first["encoder"]), trained.get(first["model"])
    )


def stored_headline(workspace: Workspace, collection: str, rows: pd.DataFrame) -> Answer | None:
    """The `headline` of rows of a collection."""
    items = workspace.items("captions", collection)
    trained = {item.name: item.details.get("trained_on_references") for item in items}
    return headline(rows, workspace.runs_of(rows["run_id"].unique().tolist()).values(), trained)


def answer(
    rows: pd.DataFrame, model: str, attribute: Attribute, attacker: AttackerEntry, trained: bool | None
) -> Answer:
    """The answer for one captioner from its result rows of one attacker and coverage.

    trained: whether the model was trained on the references; only then it can amplify them.
    """
    scores = rows[rows["model"] == model].set_index("metric")
    metric = scores.loc["LIC" if "LIC" in scores.index else "LIC_M"]
    seeds, training, test = (int(scores.iloc[0][name]) for name in ("seeds", "training", "n"))
    error = ""
    if pd.notna(metric["spread"]):
        error = say("answer.error", error=number(metric["spread"] / math.sqrt(metric["seeds"]), 2))
    settings = say(
        "answer.settings_of_one_seed" if seeds == 1 else "answer.settings",
        seeds=counted(seeds, "seed"),
        error=error,
        training=training,
        test=test,
        attacker=attacker.title,
    )
    correct = {
        name: round(scores.loc[name, "value"] * 100 / scores.loc[name, "scale"])
        for name in ("SC", "SC_D")
        if name in scores.index
    }
    guesses = say(
        "answer.guesses_masked" if attribute.masked_words else "answer.guesses",
        attribute=attribute.name,
        correct=correct["SC"],
    )
    chance = round(100 / len(attribute.values))
    numbers = {"sc": interval(scores.loc["SC"], 1), "lic_m": interval(scores.loc["LIC_M"], 1), "settings": settings}
    if "LIC" in scores.index:
        headline, reason = _verdict(scores, model, attribute, trained)
        support = say("answer.support", guesses=guesses, human=correct["SC_D"], chance=chance, reason=reason)
        people = ", ".join(f"{name} {number(scores.loc[name, 'value'])}" for name in ("SC_D", "LIC_D"))
        lic = _numbers(scores, "LIC", with_attacker("LIC", attacker))
        details = say("answer.details", lic=lic, people=people, **numbers)
    else:
        leakage = {"value": interval(metric, 1), "chance": number(attribute.chance)}
        headline = say("answer.leakage", model=model, attribute=attribute.name, **leakage)
        support = say("answer.support_alone", guesses=guesses, chance=chance)
        details = say("answer.details_alone", attacker=_attacker(attacker), **numbers)
    if attacker.preview:
        headline = say("answer.preview", attacker=attacker.name, headline=headline)
    return Answer(headline, support, model, details, _warning(metric))


def _warning(row: pd.Series) -> str:
    """Why little follows from a row of LIC or LIC_M, if so."""
    images = row["training"] + row["n"]
    if provisional(row.to_dict()):
        return say("answer.warn_no_claim", why=no_claim(row), least=LEAST_SEEDS)
    if 0 < images < FEW_IMAGES:
        return say("answer.warn_few_images", images=images)
    if row["training"] and row["seeds"] < FEW_SEEDS:
        return say("answer.warn_few_seeds", seeds=row["seeds"])
    return ""


def _numbers(scores: pd.DataFrame, metric: str, name: str = "") -> str:
    """A metric with its interval, at equal length too if that was measured. scores: rows by metric."""
    texts = {"metric": name or metric, "value": interval(scores.loc[metric], 1)}
    if f"{metric}_cut" in scores.index:
        return say("answer.numbers_at_equal_length", equal=interval(scores.loc[f"{metric}_cut"], 1), **texts)
    return say("answer.numbers", **texts)


def _verdict(scores: pd.DataFrame, model: str, attribute: Attribute, trained: bool | None) -> tuple[str, str]:
    """The headline of LIC, and why. scores: rows by metric."""
    lic, cut = scores.loc["LIC"], "LIC_by_H_cut" in scores.index
    deciding = {AMPLIFIES: "LIC_by_H", REDUCES: "LIC_by_M"}
    if lic["verdict"] in deciding:
        relative = "" if trained else say("answer.relative")
        reason = say(f"answer.because_{lic['verdict']}", numbers=_numbers(scores, deciding[lic["verdict"]]))
        if not trained:
            reason += say("answer.not_trained" if trained is False else "answer.perhaps_trained")
        at_equal_length = say("answer.at_equal_length") if cut else ""
        about = {"model": model, "attribute": attribute.name, "relative": relative}
        return say(f"answer.{lic['verdict']}", at_equal_length=at_equal_length, **about), reason
    as_given, at_equal = (
        verdict(scores["ci_low"].get(f"LIC_by_H{end}"), scores["ci_high"].get(f"LIC_by_M{end}")) for end in ("", "_cut")
    )
    reason, clear = "", interval_side(lic["ci_low"], lic["ci_high"])
    if provisional(lic.to_dict()):
        why = no_claim(lic)
    elif cut and as_given != at_equal:
        alone = at_equal if as_given == INCONCLUSIVE else as_given
        why = say(f"answer.only_{'at_equal_length' if as_given == INCONCLUSIVE else 'as_given'}", verdict=alone)
        reason = say("answer.because_numbers", numbers=_numbers(scores, deciding[alone]))
    elif clear:
        way, decides = ("more", "LIC_by_H") if clear > 0 else ("less", "LIC_by_M")
        equal = cut and interval_side(*scores.loc["LIC_cut", ["ci_low", "ci_high"]]) != clear
        why = say(f"answer.{way}_as_given" if equal else f"answer.{way}")
        reason = say(f"answer.because_{way}", numbers=_numbers(scores, decides))
    else:
        why = say("answer.no_difference")
    return say("answer.inconclusive", model=model, why=why), reason


def no_claim(row: Mapping[str, Any] | pd.Series) -> str:
    """Why a provisional row of results carries no claim."""
    if row["interval"] == IMAGES:
        return say("answer.one_attacker")
    return say("answer.few_seeds_decide_nothing", seeds=row["seeds"])


def chance_warning(row: pd.Series, attribute: Attribute) -> str:
    """What is not known of captions whose attackers are not shown to guess better than chance; else ''. row: of SC."""
    chance = row["scale"] / len(attribute.values)
    if (row["value"] if pd.isna(row["ci_low"]) else row["ci_low"]) > chance + NO_WIDTH:
        return ""
    return say("answer.chance", value=interval(row, 1), chance=number(chance), attribute=attribute.name)


NOT_TRAINED = say("answer.not_trained_note")


def verdicts_text(rows: pd.DataFrame, trained: Mapping[str, bool | None] | None = None) -> str:
    """How many captioners have which verdict; '' for one captioner, or for a metric without. rows: of one metric.

    trained: whether each was trained on the references; of one that was not, or may not have been, it is said what
    `amplifies` means.

    >>> verdicts_text(pd.DataFrame({"verdict": ["inconclusive", "amplifies", "inconclusive", "amplifies"]}))
    '2 amplify, 2 inconclusive.'
    """
    counts = [(name, int((rows["verdict"] == name).sum())) for name in (AMPLIFIES, REDUCES, INCONCLUSIVE)]
    several = {AMPLIFIES: "amplify", REDUCES: "reduce"}
    forms = [(several.get(name, name) if count > 1 else name, count) for name, count in counts if count]
    shown = ", ".join(say(f"comparison.{form}", count=count) for form, count in forms)
    text = f"{shown}." if shown and len(rows) > 1 else ""
    amplifying = rows.loc[rows["verdict"] == AMPLIFIES, "model"] if trained else ()
    if any(not (trained or {}).get(model) for model in amplifying):
        text += f" {NOT_TRAINED}"
    return text.strip()


BY_HUMAN = say("comparison.by_human")
Second = Mapping[str, tuple[float, float, float]]  # captioner -> value and interval of a second dot


def second_dots(rows: pd.DataFrame, metric: str) -> dict[str, tuple[float, float, float]]:
    """LIC_by_H and its interval beside LIC, by captioner; that at equal length if it reaches lower, since both decide;
    nothing beside another metric. rows: of one attacker and coverage; one without an interval has its value at both
    ends."""
    dots = rows[rows["metric"].isin(["LIC_by_H", "LIC_by_H_cut"]) & (metric == "LIC")]
    dots = dots.sort_values("ci_low", kind="stable").drop_duplicates("model")
    low, high = dots["ci_low"].fillna(dots["value"]), dots["ci_high"].fillna(dots["value"])
    return dict(zip(dots["model"], zip(dots["value"], low, high, strict=True), strict=True))


# comparisons

APART = say("comparison.apart")
INCOMPARABLE = say("comparison.incomparable", shared=LEAST_SHARED, alike=ALIKE)


def told_apart(ranking: Ranking | None) -> str:
    """A sentence about which captioners can be told apart, and how that was tested."""
    if ranking is None or len(ranking.letters) < 2:
        return ""
    if not ranking.pairs:
        return say("comparison.no_pair", incomparable=INCOMPARABLE)
    apart = sum(pair.apart for pair in ranking.pairs)
    others = math.comb(len(ranking.letters), 2) - len(ranking.pairs)
    if ranking.provisional and not apart:
        finding = "no_difference_shown"
    elif not apart and not others:
        finding = "no_two_differ"
    elif apart == len(ranking.pairs):
        finding = "all_compared_differ" if others else "all_differ"
    else:
        finding = "same_letter"
    method = ", ".join(filter(None, (ranking.method, ranking.provisional)))
    more = ""
    if others:
        more += say("comparison.pairs_not_compared", pairs=counted(others, "pair"), incomparable=INCOMPARABLE)
    if alone := [f"{name} ({ranking.images[name]:,})" for name in ranking.apart if not ranking.letters[name]]:
        more += say("comparison.compared_with_none", captioners=", ".join(alone))
    more += f" {APART}" if any(letters.isupper() for letters in ranking.letters.values()) else ""
    more += f" {length}" if (length := lengths_note(ranking.words)) else ""
    return say("comparison.letters", finding=say(f"comparison.{finding}"), method=method, more=more)


def lengths_note(words: Mapping[str, float]) -> str:
    """How far captioners differ in length, if they do. words: name -> average words of a caption.

    >>> lengths_note({"sat": 9.4, "llava": 91.2}), lengths_note({"sat": 9.4, "oscar": 10.0})
    ('Average length of captions differs: 9.4 words (sat) to 91.2 (llava); longer captions can reveal more.', '')
    """
    if not differ_in_length(words):
        return ""
    shortest, longest = min(words, key=lambda name: words[name]), max(words, key=lambda name: words[name])
    return say(
        "comparison.lengths",
        shortest=words[shortest],
        shortest_name=shortest,
        longest=words[longest],
        longest_name=longest,
    )


def differ_in_length(words: Mapping[str, float]) -> bool:
    """Whether captioners differ in length by more than a verdict allows."""
    return len(words) > 1 and max(words.values()) > LONGER * min(words.values())


def contradicted(rows: pd.DataFrame) -> dict[tuple[str, str], pd.DataFrame]:
    """Captioners and directions in which variants of DBAC that were measured alike have different signs, both clear of
    0, each with these rows."""
    conflicts: dict[tuple[str, str], pd.DataFrame] = {}
    rows = rows[rows["metric"].isin(list(dbac.VARIANTS))]
    rows = rows.assign(side=interval_side(rows["ci_low"], rows["ci_high"]))
    rows = rows[rows["side"] != 0]
    keys = [rows["model"], rows["direction"], rows["encoder"], variants(rows)]
    for (model, direction, *_), clear in rows.groupby(keys, sort=False):
        if clear["side"].nunique() > 1:
            conflicts[model, direction] = rows[(rows["model"] == model) & (rows["direction"] == direction)]
    return conflicts


def variants_warning(rows: pd.DataFrame) -> str:
    """What each variant of DBAC weighs, if several were measured and their signs differ, both clear of 0; else ''."""
    texts = []  # such as `plain A→T: DBAC −6.8, DBAC_equations 2.4`
    for (model, direction), clear in contradicted(rows).items():
        values = ", ".join(f"{row['metric']} {number(row['value'])}" for row in clear.to_dict("records"))
        texts.append(f"{model} {direction.replace('->', '→')}: {values}")
    return say("comparison.variants", values="; ".join(texts)) if texts else ""
