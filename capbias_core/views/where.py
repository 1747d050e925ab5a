"""Where: a metric in images with an object, words or a value, beside the others; and values named beside objects."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field as Described

from capbias_core.aggregate import Counts, Metric
from capbias_core.aggregate.estimate import AMPLIFIES
from capbias_core.aggregate.ranking import ALPHA, holm
from capbias_core.aggregate.resampling import LEAST_SEEDS
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.measures.registry import METRICS, is_metric, measure_of
from capbias_core.measures.registry import metric as metric_named
from capbias_core.types import counted, silent
from capbias_core.views import slices
from capbias_core.views.choose import Choice
from capbias_core.views.objects import ENOUGH, METRIC, OWN, PEOPLE, images_with, named_rows, named_sentence, spec_of
from capbias_core.views.sentence import limit, listed, say
from capbias_core.views.slices import DIFFERENCE, INSIDE, LEAST_IMAGES, OBJECT, OUTSIDE, Slice
from capbias_core.views.view import Field, Forest, View, ViewOptions
from capbias_core.workspace.sources import data_of

HIGHER, LOWER = "higher", "lower"
MOST_NAMED, MOST_DRAWN = 3, 20  # slices in a sentence, lines of the chart


class WhereOptions(ViewOptions):
    metric: str = Described(
        default="",
        description=f"LIC, error or refused: in slices of images (default: LIC, or LIC_M). {METRIC}: the values that "
        f"captions name beside objects, with people's",
    )
    objects: tuple[str, ...] = Described(default=(), description="slices by these objects")
    words: tuple[str, ...] = Described(
        default=(), description="slices by words of human captions, | between alternatives"
    )
    column: tuple[str, ...] = Described(
        default=(), description="slices by each value of these columns of stored tables"
    )


USUAL = WhereOptions()


def where_rows(choice: Choice, options: WhereOptions = USUAL) -> pd.DataFrame:
    """A row for each captioner, line (a slice of images, or an object) and number. of: what it is a number of.

    Of slices `these images` and `other images`, with images, their share (%), the n that the metric counts and
    n_per_seed of them by one seed; and the `difference`, with p and p_holm, which Holm's correction makes of it over
    the tested slices of the captioner and metric. verdict: `higher` or `lower` than in the other images, if
    significantly. reason: why there is no number.
    """
    name, several = metric_of(choice, options), len(choice.captioners) > 1
    usual = dict.fromkeys(("captioner", "line", "of", "metric", "direction"), "")
    usual |= {"value": math.nan, "low": math.nan, "high": math.nan, "n": 0, "p": math.nan, "p_holm": math.nan}
    usual |= dict.fromkeys(("verdict", "reason", "rule", "object", "other", "group", "encoder"), "")
    usual |= {"setting": choice.setting, "setting_name": choice.setting_name}
    found = []
    for captioner in choice.captioners:
        of_captioner = (
            named_rows(choice, spec_of(choice, captioner))
            if name == METRIC
            else _slice_rows(choice, captioner, name, options)
        )
        found += [usual | row for row in of_captioner]
    for row in found:
        thing = row.pop("thing")
        row["line"] = f"{row['captioner']}: {thing}" if several else thing
    rows = pd.DataFrame(found, columns=None if found else list(usual))
    if name == METRIC:
        values = choice.defined.values
        rows.attrs["title"] = say("where.axis", value=values[1] if len(values) == 2 else "it")
    return rows.assign(drawn=pd.factorize(rows["line"])[0] < MOST_DRAWN)


def metric_of(choice: Choice, options: WhereOptions = USUAL) -> str:
    """The metric that is asked for; LIC, or LIC_M without human captions. Raises CapbiasError for an unknown one."""
    known = metrics_of(choice)
    wanted = metric_named(options.metric).name if is_metric(options.metric) else options.metric or known[0]
    if wanted not in known:
        raise unknown_name("metric of slices", options.metric, known)
    return wanted


def metrics_of(choice: Choice) -> list[str]:
    """The metrics that this view has of a choice."""
    first = "LIC" if choice.measured_with.references else "LIC_M"
    named = [METRIC] if choice.defined.names_values else []
    return [first, "error", "refused", *named]


def _slice_rows(choice: Choice, captioner: str, name: str, options: WhereOptions) -> Iterator[dict[str, Any]]:
    metric, labelled = METRICS[name], _labelled(choice, captioner)
    sources = slices.slice_sources(choice.workspace, choice.collection, choice.run(captioner))
    counts, found = _counts(choice, captioner, metric), []
    chosen = [Slice(OBJECT, name) for name in options.objects] + [Slice.of_words(some) for some in options.words]
    chosen += [of_value for name in options.column for of_value in slices.values_of(sources, name, labelled)]
    for rule in dict.fromkeys(chosen or slices.default_slices(sources, choice.defined, labelled)):
        members = sources.members(rule)
        inside = len(members.inside & labelled)
        about = {"captioner": captioner, "thing": rule.title, "rule": rule.rule, "metric": name, "images": inside}
        about["share"] = 100 * inside / max(1, len(members.known & labelled))
        numbers = slices.slice_numbers(metric, counts, members, choice.defined.values)
        found.append({of: about | number | {"of": of} for of, number in numbers.items()})
    tested = [rows for rows in found if "p" in rows[DIFFERENCE]]
    for rows, p in zip(tested, holm(np.array([rows[DIFFERENCE]["p"] for rows in tested])), strict=True):
        rows[DIFFERENCE]["p_holm"] = p
        if p < ALPHA:
            rows[INSIDE]["verdict"] = HIGHER if rows[DIFFERENCE]["value"] > 0 else LOWER
    for rows in found:
        yield from rows.values()


def _labelled(choice: Choice, captioner: str) -> frozenset[str]:
    """The captioner's images with a label, and with human captions if it is compared with these."""
    return frozenset(choice.run(captioner).counts_of().images)


def _counts(choice: Choice, captioner: str, metric: Metric) -> Counts:
    """What a metric counts: guesses of the run's attackers, or words of captions. Raises CapbiasError without any."""
    run, measure = choice.run(captioner), measure_of(metric.name)
    if measure.name == run.spec.measure:
        return run.counts_of()
    spec = replace(run.spec, measure=measure.name, options={}, references="", coverage="", version=0)
    outcome = measure.count(data_of(choice.workspace, spec), measure.options(), silent)
    if metric.name in outcome.lacking:
        raise CapbiasError(f"{captioner} has no {metric.name}: {outcome.lacking[metric.name]}")
    return outcome.counts


def images_of(choice: Choice, rows: pd.DataFrame, line: str) -> frozenset[str]:
    """The captioner's images of a line: those of its slice, or those whose captions count for its object."""
    of_line = rows[rows["line"] == line].iloc[0]
    captioner = str(of_line["captioner"])
    if of_line["rule"]:
        sources = slices.slice_sources(choice.workspace, choice.collection, choice.run(captioner))
        return sources.members(Slice.parse(of_line["rule"])).inside & _labelled(choice, captioner)
    return images_with(choice.workspace, spec_of(choice, captioner), str(of_line["object"]))


# sentences


def where_sentence(choice: Choice, rows: pd.DataFrame) -> str:
    """Where a metric is significantly higher, and above what means no bias; never where it is lower."""
    if rows.empty:
        return say("where.nothing")
    name = rows["metric"].iloc[0]
    sentences, others = [], dict[str, list[str]]()
    for captioner, part in rows.groupby("captioner", sort=False):
        text, found = (named_sentence if name == METRIC else _slices_sentence)(choice, str(captioner), part)
        if found:
            sentences.append(text)
        else:
            others.setdefault(text, []).append(str(captioner))
    return " ".join([*sentences, *(say("where.of", captioners=listed(who), text=text) for text, who in others.items())])


def _slices_sentence(choice: Choice, captioner: str, rows: pd.DataFrame) -> tuple[str, bool]:
    """What slices show of a captioner, and whether that is a difference."""
    name, of_objects = rows["metric"].iloc[0], rows["rule"].str.startswith(OBJECT).all()
    what = counted(rows["line"].nunique(), "object" if of_objects else "slice")
    inside, rest, difference = (rows[rows["of"] == of].set_index("line") for of in (INSIDE, OUTSIDE, DIFFERENCE))
    if not (tested := int(difference["p"].notna().sum())):
        largest = inside.loc[np.minimum(inside["n"], rest["n"]).idxmax()]
        reason = f"{Slice.parse(largest['rule']).title}: {largest['reason']}"
        return say("where.no_test", metric=name, reason=reason), False
    neutral = METRICS[name].neutral(len(choice.defined.values))
    signed = math.isfinite(neutral) and METRICS[name].range[0] < neutral
    higher = inside[inside["verdict"] == HIGHER]
    above = higher[(higher["low"] > neutral) | (not signed)]
    if above.empty:
        more = say("where.of_tested", tested=tested) if tested < len(difference) else ""
        return say("where.none_above" if len(higher) else "where.none", metric=name, what=what, more=more), False
    order = (above["value"] - rest["value"].reindex(above.index)).sort_values(ascending=False).index
    first, *further = [Slice.parse(above.at[line, "rule"]).images for line in order]
    digits = METRICS[name].digits or 1
    numbers = {"value": limit(above.at[order[0], "value"], digits), "rest": limit(rest.at[order[0], "value"], digits)}
    named = say("where.also", images=listed(further[: MOST_NAMED - 1])) if further else ""
    if (left := len(further) - (MOST_NAMED - 1)) > 0:
        named += say("where.more", slices=counted(left, "more slice"))
    text = say("where.higher", captioner=captioner, metric=name, images=first, also=named, **numbers)
    if name == "LIC" and choice.verdicts().get(captioner) != AMPLIFIES:
        text += say("where.not_amplifying")
    return text, True


def where_notes(choice: Choice, rows: pd.DataFrame) -> Sequence[str]:
    if rows.empty:
        return ()
    name, tested = rows["metric"].iloc[0], rows["p"].notna().any()
    if name == METRIC:
        how = say("where.named_tests", least=ENOUGH) if tested else say("where.captions")
        return [how, METRICS[name].explanation, choice.defined.note]
    lines = [say("where.tests")] if tested else []
    lines += [say("where.held_out")] if rows["n_per_seed"].notna().any() else []
    lines += [say("where.few_seeds", least=LEAST_SEEDS)] if choice.measured_with.seeds < LEAST_SEEDS else []
    lines += [say("where.small", least=LEAST_IMAGES)] if (rows["reason"] != "").any() else []
    lines.append(say("where.balance"))
    for kind in dict.fromkeys(rule.partition(":")[0] for rule in rows["rule"]):
        sources = slices.slice_sources(choice.workspace, choice.collection, choice.run())
        lines.append(say(f"where.{kind}", source=sources.objects_from))
    return [*lines, choice.defined.note]


WHERE = View(
    name="where",
    question="Where does it amplify?",
    rows=where_rows,
    columns=(
        Field("line", label="where"),
        Field("value", low="low", high="high", across=True),
        Field("p_holm", label="p (Holm)", digits=3, least=0.001, help="corrected over the tested lines of a captioner"),
        Field("verdict", label="significant"),
        Field("n", label="n", digits=0, help="images, or captions, that count"),
        Field("reason", label="no number, since"),
    ),
    sentence=where_sentence,
    by="line",
    across="of",
    chart=Forest(only=(INSIDE, OUTSIDE, OWN, PEOPLE), series="of", where="drawn"),
    options=WhereOptions,
    notes=where_notes,
    example=f"""\
  capbias view where --collection coco --captioner oscar
  capbias view where --collection coco --objects dog skateboard \\
    --words "kitchen|cooking" --column skin
  capbias view where --collection coco --metric {METRIC}""",
)
