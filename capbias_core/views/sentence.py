"""Numbers and answers as text: only what the numbers allow."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from capbias_core.aggregate import IMAGES, REFITS, Ranking, provisional
from capbias_core.aggregate.estimate import AMPLIFIES, INCONCLUSIVE, REDUCES, verdict
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
from capbias_core.workspace.store import Workspace
from capbias_core.workspace.vectors import alignment_name

FEW_IMAGES = 300  # balanced images of which fewer tell little
FEW_SEEDS = 5  # fewer say little of how far seeds differ


@dataclass(frozen=True)
class Answer:
    """headline: the answer in a few words. support: why, for readers outside the field. details: the numbers and
    settings behind it. captioner: whom it is about, '' for several. Plain text; whoever shows it escapes it."""

    headline: str
    support: str
    captioner: str = ""
    details: str = ""

    @property
    def text(self) -> str:
        """All of it in one paragraph."""
        return " ".join(filter(None, (self.headline, self.support, self.details)))


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
    return f"{metric} ({attacker.name}{', preview' if attacker.preview else ''})"


BETTER = {
    "lower": "← lower is better",
    "higher": "higher is better →",
    "neutral": "nearest to neutral is best",
    "none": "neither end is better",
}


def better_text(metric: str, values: int = 2) -> str:
    """Beside an axis: which end is better, by number where that is a point, for an attribute of so many values.

    >>> better_text("LIC"), better_text("ratio"), better_text("length")
    ('← lower is better', 'nearest to 1 is best', 'neither end is better')
    """
    better, neutral = METRICS[metric].better, METRICS[metric].neutral(values)
    return f"nearest to {neutral:g} is best" if better == "neutral" and not math.isnan(neutral) else BETTER[better]


def best_text(metric: str, values: int = 2) -> str:
    """Which end of an order is best.

    >>> best_text("LIC"), best_text("cider"), best_text("ratio")
    ('lower is better', 'higher is better', 'nearest to 1 is best')
    """
    return better_text(metric, values).strip("←→ ")


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
    about = f"about {duration(expected.seconds)}"
    if expected.no_run_yet:
        return f"{about} on {'a CPU' if expected.learned else 'two free cores'}; no run on {expected.card} yet"
    where = expected.card or ("" if expected.learned else "two free cores")
    return f"{about} on {where}" if where else about


def left_text(expected: Expected, left: float) -> str:
    """The time left of runs under way; '' on a card that no such run has finished on.

    >>> left_text(Expected({}, 150, True), 75)
    ', about 75 s left'
    """
    return "" if expected.no_run_yet else f", about {duration(left)} left"


def run_text(spec: RunSpec) -> str:
    """A run in a few words: `nic: LIC and leakage for gender, ngram, 10 seeds`."""
    measure = MEASURES.get(spec.measure)
    title = measure.title if measure else spec.measure
    if measure and measure.makes:
        return f"{spec.model}: {title}, {spec.options['name']}"
    aligned = alignment_name(spec.options["alignment"]).replace("_", " ") if spec.options.get("alignment") else ""
    seeds = counted(len(spec.seeds), "seed") if measure and measure.seeded else ""
    parts = (spec.attacker, seeds, spec.coverage.replace("_", " "), aligned)
    return ", ".join([f"{spec.model}: {title} for {spec.attribute['name']}", *filter(None, parts)])


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
    for alike in by_pattern.values():
        columns = zip(*map(NUMBER.findall, alike), strict=True)
        spans = [sorted(set(own), key=lambda text: float(text.replace(",", "").replace("−", "-"))) for own in columns]
        texts = iter(span[0] if len(span) == 1 else f"{span[0]} to {span[-1]}" for span in spans)
        line = NUMBER.sub(lambda _, texts=texts: next(texts), next(iter(alike)))
        models = set().union(*alike.values())
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


def headline(workspace: Workspace, collection: str, rows: pd.DataFrame) -> Answer | None:
    """The answer for the captioner that answers first by LIC (LIC_M without references); None without either."""
    metric = next((name for name in ANSWERING if name in set(rows["metric"])), None)
    if metric is None:
        return None
    first = first_to_answer(rows[rows["metric"] == metric]).iloc[0]
    trained = workspace.item("captions", first["model"], collection).details.get("trained_on_references")
    run = workspace.runs_of([first["run_id"]])[first["run_id"]]
    rows = rows[rows["run_id"] == run.run_id]
    return answer(rows, run.spec.model, attribute_of_run(run), attacker_entry(first["encoder"]), trained)


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
        error = f" (standard error over seeds {number(metric['spread'] / math.sqrt(metric['seeds']), 2)})"
    settings = (
        f"{counted(seeds, 'seed')}{error}, {'with' if seeds == 1 else 'each with'} {training:,} training and {test:,} "
        f"test images; {attacker.title}."
    )
    preview = f"Preview ({attacker.name}): " if attacker.preview else ""
    leakage = f"SC {interval(scores.loc['SC'], 1)}, LIC_M {interval(scores.loc['LIC_M'], 1)}"
    known = [name for name in ("SC", "SC_D") if name in scores.index]
    correct = {name: round(scores.loc[name, "value"] * 100 / scores.loc[name, "scale"]) for name in known}
    hidden = f"With every {attribute.name} word hidden, a classifier" if attribute.masked_words else "A classifier"
    guessed = f"{hidden} correctly guesses the labelled {attribute.name} from {correct['SC']} of 100 captions"
    chance = f"chance is {round(100 / len(attribute.values))}"
    if "LIC" not in scores.index:
        return Answer(
            f"{preview}{model}: leakage of {attribute.name} is {interval(metric, 1)} "
            f"(LIC_M; chance {number(attribute.chance)}).",
            f"{guessed}; {chance}. Only a comparison with human captions of the same images can show amplification.",
            model,
            f"{leakage} ({attacker.name}{', preview' if attacker.preview else ''}). {settings}{_warning(metric)}",
        )
    headline, reason = _verdict(scores, model, attribute, trained)
    human = f"{correct['SC_D']} of 100 human captions of the same images"
    people = ", ".join(f"{name} {number(scores.loc[name, 'value'])}" for name in ("SC_D", "LIC_D"))
    equal = f"; at equal length {interval(scores.loc['LIC_cut'], 1)}" if "LIC_cut" in scores.index else ""
    return Answer(
        preview + headline,
        f"{guessed} and from {human}; {chance}.{reason}",
        model,
        f"{with_attacker('LIC', attacker)} {interval(metric, 1)}{equal}. Captioner: {leakage}. People: {people}. "
        f"{settings}{_warning(metric)}",
    )


def _warning(row: pd.Series) -> str:
    """Why little follows from a row of LIC or LIC_M, if so."""
    if provisional(row.to_dict()):
        return f" ⚠ {no_claim(row)}: a verdict needs at least {LEAST_SEEDS} seeds. The papers use 10."
    if 0 < row["training"] + row["n"] < FEW_IMAGES:
        return f" ⚠ Only {row['training'] + row['n']:,} images, so intervals are wide and attackers weak."
    if row["training"] and row["seeds"] < FEW_SEEDS:
        return f" ⚠ {row['seeds']} seeds: other seeds may give quite another interval. The papers use 10."
    return ""


def _verdict(scores: pd.DataFrame, model: str, attribute: Attribute, trained: bool | None) -> tuple[str, str]:
    """The headline of LIC, and why. scores: rows by metric."""
    lic, cut = scores.loc["LIC"], "LIC_by_H_cut" in scores.index

    def shown(name: str) -> str:
        equal = f"; at equal length {interval(scores.loc[f'{name}_cut'], 1)}" if cut else ""
        return f"{name} {interval(scores.loc[name], 1)}{equal}"

    better_from_captioner = f"guesses better from the captioner's: {shown('LIC_by_H')}."
    better_from_people = f"guesses better from human ones: {shown('LIC_by_M')}."
    if lic["verdict"] in (AMPLIFIES, REDUCES):
        headline = f"{model} {lic['verdict']} {attribute.name} bias"
        if lic["verdict"] == AMPLIFIES:
            reason = f" Even a classifier trained on human captions {better_from_captioner}"
        else:
            reason = f" Even a classifier trained on the captioner's captions {better_from_people}"
        equal = ", at equal length too" if cut else ""
        if trained:
            return f"{headline}{equal}.", reason
        known = "was not trained" if trained is False else "is not known to be trained"
        reason += f" The captioner {known} on these human captions, so the verdict is a difference from them."
        return f"{headline} relative to these human captions{equal}.", reason
    as_given, at_equal = (
        verdict(scores["ci_low"].get(f"LIC_by_H{end}"), scores["ci_high"].get(f"LIC_by_M{end}")) for end in ("", "_cut")
    )
    reason, not_equal = "", "but not at equal length"
    if provisional(lic.to_dict()):
        why = no_claim(lic)
    elif cut and as_given != at_equal:
        alone, where = as_given, "with captions as given, not at equal length"
        if as_given == INCONCLUSIVE:
            alone, where = at_equal, "at equal length, not with captions as given"
        why = f"it {alone} {where}"
        reason = f" {shown('LIC_by_H' if alone == AMPLIFIES else 'LIC_by_M')}."
    elif lic["ci_low"] > 0:
        alone = cut and not scores.loc["LIC_cut", "ci_low"] > 0
        why = f"more predictable than human captions, {not_equal if alone else 'perhaps only through simpler wording'}"
        reason = " A classifier trained on human captions does not guess clearly better from the captioner's: "
        reason += f"{shown('LIC_by_H')}."
    elif lic["ci_high"] < 0:
        alone = cut and not scores.loc["LIC_cut", "ci_high"] < 0
        why = f"less predictable than human captions, {not_equal if alone else 'perhaps only through other wording'}"
        reason = " A classifier trained on its captions does not guess clearly better from human ones: "
        reason += f"{shown('LIC_by_M')}."
    else:
        why = "no clear difference from human captions"
    return f"{model}: {INCONCLUSIVE} ({why}).", reason


def no_claim(row: Mapping[str, Any] | pd.Series) -> str:
    """Why a provisional row of results carries no claim."""
    return "only one attacker was trained" if row["interval"] == IMAGES else f"{row['seeds']} seeds decide nothing"


def chance_warning(row: pd.Series, attribute: Attribute) -> str:
    """What is not known of captions whose attackers are not shown to guess better than chance; else ''. row: of SC."""
    chance = row["scale"] / len(attribute.values)
    if (row["value"] if pd.isna(row["ci_low"]) else row["ci_low"]) > chance + NO_WIDTH:
        return ""
    return (
        f"⚠ The attackers are not shown to do better than guessing (SC {interval(row, 1)}, chance {number(chance)}), "
        f"so no word is shown to reveal the {attribute.name}."
    )


NOT_TRAINED = "For a captioner not known to be trained on these human captions, 'amplifies' is a difference from them."


def verdicts_text(rows: pd.DataFrame, trained: Mapping[str, bool | None] | None = None) -> str:
    """How many captioners have which verdict; '' for one captioner, or for a metric without. rows: of one metric.

    trained: whether each was trained on the references; of one that was not, or may not have been, it is said what
    `amplifies` means.

    >>> verdicts_text(pd.DataFrame({"verdict": ["inconclusive", "amplifies", "inconclusive", "amplifies"]}))
    '2 amplify, 2 inconclusive.'
    """
    counts = [(name, int((rows["verdict"] == name).sum())) for name in (AMPLIFIES, REDUCES, INCONCLUSIVE)]
    several = {AMPLIFIES: "amplify", REDUCES: "reduce"}
    shown = ", ".join(f"{count} {several.get(name, name) if count > 1 else name}" for name, count in counts if count)
    text = f"{shown}." if shown and len(rows) > 1 else ""
    amplifying = rows.loc[rows["verdict"] == AMPLIFIES, "model"] if trained else ()
    if any(not (trained or {}).get(model) for model in amplifying):
        text += f" {NOT_TRAINED}"
    return text.strip()


BY_HUMAN = (
    "Filled dots: LIC. Hollow dots: LIC_by_H, where one attacker, trained on human captions, reads both sides; at "
    "equal length (LIC_by_H_cut) if that is lower. A captioner amplifies if the whole interval of the hollow dot is "
    "above 0. It reduces if the interval of LIC_by_M (trained on the captioner's captions, not drawn) is below 0, at "
    "equal length too."
)
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

APART = "Captioners with capital letters were measured on different images, so they are not compared with the others."
INCOMPARABLE = f"they share fewer than {LEAST_SHARED} images, or one trained on less than {ALIKE:.0%} as many"


def told_apart(ranking: Ranking | None) -> str:
    """A sentence about which captioners can be told apart, and how that was tested."""
    if ranking is None or len(ranking.letters) < 2:
        return ""
    if not ranking.pairs:
        return f"No pair of captioners can be compared: {INCOMPARABLE}."
    apart = sum(pair.apart for pair in ranking.pairs)
    others = math.comb(len(ranking.letters), 2) - len(ranking.pairs)
    if ranking.provisional and not apart:
        text = "No difference is shown"
    elif not apart and not others:
        text = "No two captioners differ significantly"
    elif apart == len(ranking.pairs):
        text = f"All {'compared ' if others else ''}pairs of captioners differ significantly"
    else:
        text = "Same letter: no significant difference"
    given = f", {ranking.provisional}" if ranking.provisional else ""
    more = f" {counted(others, 'pair')} not compared: {INCOMPARABLE}." if others else ""
    alone = [f"{name} ({ranking.images[name]:,})" for name in ranking.apart if not ranking.letters[name]]
    more += f" Measured on different images, and compared with none: {', '.join(alone)}." if alone else ""
    more += f" {APART}" if any(letters.isupper() for letters in ranking.letters.values()) else ""
    more += f" {length}" if (length := lengths_note(ranking.words)) else ""
    return f"{text} ({ranking.method}{given}).{more}"


def lengths_note(words: Mapping[str, float]) -> str:
    """How far captioners differ in length, if they do. words: name -> average words of a caption.

    >>> lengths_note({"sat": 9.4, "llava": 91.2}), lengths_note({"sat": 9.4, "oscar": 10.0})
    ('Average length of captions differs: 9.4 words (sat) to 91.2 (llava); longer captions can reveal more.', '')
    """
    if not differ_in_length(words):
        return ""
    shortest, longest = min(words, key=lambda name: words[name]), max(words, key=lambda name: words[name])
    ends = f"{words[shortest]:.1f} words ({shortest}) to {words[longest]:.1f} ({longest})"
    return f"Average length of captions differs: {ends}; longer captions can reveal more."


def differ_in_length(words: Mapping[str, float]) -> bool:
    """Whether captioners differ in length by more than a verdict allows."""
    return len(words) > 1 and max(words.values()) > LONGER * min(words.values())


def contradicted(rows: pd.DataFrame) -> dict[tuple[str, str], pd.DataFrame]:
    """Captioners and directions in which variants of DBAC that were measured alike have different signs, both clear of
    0, each with these rows."""
    found: dict[tuple[str, str], pd.DataFrame] = {}
    rows = rows[rows["metric"].isin(list(dbac.VARIANTS))]
    rows = rows[(rows["ci_low"] > 0) | (rows["ci_high"] < 0)]
    alike = [rows["model"], rows["direction"], rows["encoder"], variants(rows)]
    for (model, direction, *_), clear in rows.groupby(alike, sort=False):
        if (clear["ci_low"] > 0).nunique() > 1:
            found[model, direction] = rows[(rows["model"] == model) & (rows["direction"] == direction)]
    return found


def variants_warning(rows: pd.DataFrame) -> str:
    """What each variant of DBAC weighs, if several were measured and their signs differ, both clear of 0; else ''."""
    texts = []  # such as `plain A→T: DBAC −6.8, DBAC_equations 2.4`
    for (model, direction), clear in contradicted(rows).items():
        values = ", ".join(f"{row['metric']} {number(row['value'])}" for row in clear.to_dict("records"))
        texts.append(f"{model} {direction.replace('->', '→')}: {values}")
    if not texts:
        return ""
    return (
        f"The variants of DBAC disagree in sign ({'; '.join(texts)}). Its equations weigh each task word alone by how "
        "often captions have it; its code weighs each caption by how often its whole set of task words occurs, "
        "captions without any included. Name the variant with any number, and draw no conclusion from one alone."
    )
