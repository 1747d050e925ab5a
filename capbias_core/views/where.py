"""Where: a metric in images with an object, words, a value or a text, beside the other images; and the values that
captions name beside objects, beside people's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field as Described

from capbias_core.aggregate import REFITS, Counts, Metric
from capbias_core.aggregate.estimate import AMPLIFIES
from capbias_core.aggregate.ranking import ALPHA, holm
from capbias_core.aggregate.resampling import LEAST_SEEDS
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.measures.lic import ABOUT_EQUAL
from capbias_core.measures.registry import METRICS, is_metric, measure_of
from capbias_core.measures.registry import metric as metric_named
from capbias_core.types import counted, silent
from capbias_core.views.choose import Choice
from capbias_core.views.objects import (
    DIFFERENCE,
    ENOUGH,
    METRIC,
    OWN,
    PEOPLE,
    captions_with,
    named_rows,
    named_sentence,
    naming,
    spec_of,
)
from capbias_core.views.results import object_rows
from capbias_core.views.sentence import OVER, limit, listed, say
from capbias_core.views.slices import (
    FEWEST_IMAGES,
    LEAST_IMAGES,
    OBJECT,
    SEARCH,
    WORDS,
    Members,
    Slice,
    SliceSources,
    default_slices,
    slice_numbers,
    slice_sources,
    values_of,
)
from capbias_core.views.view import Field, Forest, View, ViewOptions
from capbias_core.workspace.sources import data_of

BY_OBJECT = ("gender_object_distance", "gender_score")  # runs of their own, which have a row for each object
INSIDE, OUTSIDE = "these images", "other images"
HIGHER, LOWER = "higher", "lower"
MOST_NAMED, MOST_DRAWN = 3, 20  # slices in a sentence, lines of the chart


class WhereOptions(ViewOptions):
    metric: str = Described(
        default="",
        description=f"LIC, error or refused: in slices of images (default: LIC, or LIC_M). {METRIC}: the values that "
        f"captions name beside objects, with people's. {' or '.join(BY_OBJECT)}, if measured: by object",
    )
    objects: tuple[str, ...] = Described(default=(), description="slices by these objects")
    words: tuple[str, ...] = Described(
        default=(), description="slices by words of human captions, | between alternatives"
    )
    column: tuple[str, ...] = Described(
        default=(), description="slices by each value of these columns of stored tables"
    )
    search: tuple[str, ...] = Described(default=(), description="slices by texts in the captioner's captions")
    minimum: int = Described(
        default=LEAST_IMAGES,
        ge=FEWEST_IMAGES,
        description=f"images that a slice needs for a number; with fewer than {LEAST_IMAGES} it is not tested",
    )
    objects_from: str = Described(
        default="caption", description="caption or image: where objects beside values are named"
    )
    further: tuple[str, ...] = Described(default=(), description="further words that count as objects beside values")


USUAL = WhereOptions()


def where_rows(choice: Choice, options: WhereOptions = USUAL) -> pd.DataFrame:
    """A row for each captioner, line (a slice of images, or an object) and number. of: what it is a number of.

    Of slices `these images` and `other images`, with images, their share (%), the n that the metric counts and
    n_per_seed of them by one seed, the share of each label among these; and the `difference`, with p and p_holm, which
    Holm's correction makes of it over the tested slices of the captioner and metric. verdict: `higher` or `lower` than
    in the other images, if significantly. reason: why there is no number. Of a slice by an object or a word that
    captions are counted beside, further rows say how often they name the last value beside it.
    """
    name, several = metric_of(choice, options), len(choice.captioners) > 1
    usual = dict.fromkeys(("captioner", "line", "of", "metric", "direction"), "")
    usual |= {"value": math.nan, "low": math.nan, "high": math.nan, "n": 0, "p": math.nan, "p_holm": math.nan}
    usual |= dict.fromkeys(("verdict", "reason", "rule", "object", "other", "group", "encoder"), "")
    usual |= {"setting": choice.setting, "setting_name": choice.setting_name}
    found = [usual | row for captioner in choice.captioners for row in _of_captioner(choice, captioner, name, options)]
    for row in found:
        thing = row.pop("thing")
        row["line"] = f"{row['captioner']}: {thing}" if several else thing
    rows = pd.DataFrame(found, columns=None if found else list(usual))
    order = {line: place for place, line in enumerate(dict.fromkeys(rows["line"]))}
    if name == METRIC:
        rows.attrs["title"] = say(
            "where.axis", value=choice.defined.values[1] if len(choice.defined.values) == 2 else "it"
        )
    return rows.assign(drawn=[order[line] < MOST_DRAWN for line in rows["line"]])


def _of_captioner(choice: Choice, captioner: str, name: str, options: WhereOptions) -> Iterator[dict[str, Any]]:
    if name == METRIC:
        return named_rows(choice, spec_of(choice, captioner, options.objects_from, options.further))
    return _scored_rows(choice, captioner, name) if name in BY_OBJECT else _slice_rows(choice, captioner, name, options)


def metric_of(choice: Choice, options: WhereOptions = USUAL) -> str:
    """The metric that is asked for; LIC, or LIC_M without human captions. Raises CapbiasError for an unknown one."""
    known = metrics_of(choice)
    if not options.metric:
        return known[0]
    wanted = metric_named(options.metric).name if is_metric(options.metric) else options.metric
    if wanted not in known:
        raise unknown_name("metric of slices", options.metric, known)
    return wanted


def metrics_of(choice: Choice) -> list[str]:
    """The metrics that this view has of a choice."""
    first = "LIC" if choice.settings[choice.setting].references else "LIC_M"
    measured = set(choice.rows["metric"])
    named = [METRIC] if choice.defined.names_values else []
    return [first, "error", "refused", *named, *(name for name in BY_OBJECT if name in measured)]


# slices of images


def _slice_rows(choice: Choice, captioner: str, name: str, options: WhereOptions) -> Iterator[dict[str, Any]]:
    run, values, metric = choice.run(captioner), choice.defined.values, METRICS[name]
    sources, labelled = slice_sources(choice.workspace, choice.collection, run), _labelled(choice, captioner)
    members = _members(choice, sources, options, labelled)
    counts = _counts(choice, captioner, metric)
    found = {
        slice_: slice_numbers([metric], counts, part, values, options.minimum)[name] for slice_, part in members.items()
    }
    family = [slice_ for slice_, numbers in found.items() if not math.isnan(numbers.get("p", math.nan))]
    corrected = dict(zip(family, holm(np.array([found[slice_]["p"] for slice_ in family])), strict=True))
    named = naming(choice, captioner)
    for slice_, numbers in found.items():
        part = members[slice_]
        inside = len(part.inside & labelled)
        about = {"captioner": captioner, "thing": slice_.title, "rule": slice_.rule, "metric": name}
        about |= {"reason": numbers["reason"], "images": inside}
        about["share"] = 100 * inside / max(1, len(part.known & labelled))
        p = corrected.get(slice_, math.nan)
        verdict = (HIGHER if numbers["difference"] > 0 else LOWER) if p < ALPHA else ""
        shares = {key: number for key, number in numbers.items() if key.startswith("share_")}
        sizes = {"n": numbers["n"], "n_per_seed": numbers["n_per_seed"]}
        yield about | _ends(numbers, "value") | {"of": INSIDE, "verdict": verdict} | sizes | shares
        yield about | _ends(numbers, "rest") | {"of": OUTSIDE, "n": numbers["n_rest"]}
        tested = {"p": numbers.get("p", math.nan), "p_holm": p, "n": numbers["n"] + numbers["n_rest"]}
        yield about | _ends(numbers, "difference") | tested | {"of": DIFFERENCE}
        for of, number in named.get(slice_.value, {}).items() if slice_.kind in (OBJECT, WORDS) else ():
            yield about | number | {"of": of, "metric": METRIC}


def _ends(numbers: Mapping[str, Any], name: str) -> dict[str, float]:
    keys = {"value": name, "low": f"{name}_low", "high": f"{name}_high"}
    return {key: numbers.get(column, math.nan) for key, column in keys.items()}


def _labelled(choice: Choice, captioner: str) -> frozenset[str]:
    """The captioner's images with a label, and with human captions if it is compared with these."""
    return frozenset(choice.run(captioner).counts_of().images)


def _counts(choice: Choice, captioner: str, metric: Metric) -> Counts:
    """What a metric counts: guesses of the run's attackers, or words of captions. Raises CapbiasError without any."""
    run = choice.run(captioner)
    measure = measure_of(metric.name)
    if measure.name == run.spec.measure:
        return run.counts_of()
    spec = replace(run.spec, measure=measure.name, options={}, references="", coverage="", version=0)
    outcome = measure.count(data_of(choice.workspace, spec), measure.options(), silent)
    if metric.name in outcome.lacking:
        raise CapbiasError(f"{captioner} has no {metric.name}: {outcome.lacking[metric.name]}")
    return outcome.by_direction[""]


def _members(
    choice: Choice, sources: SliceSources, options: WhereOptions, labelled: frozenset[str]
) -> dict[Slice, Members]:
    """The slices that are asked for, else the usual ones, with their images."""
    chosen = [Slice.parse(f"{OBJECT}:{name}") for name in options.objects]
    chosen += [Slice.parse(f"{WORDS}:{some}") for some in options.words]
    chosen += [slice_ for name in options.column for slice_ in values_of(sources, name, labelled)]
    chosen += [Slice.parse(f"{SEARCH}:{text}") for text in options.search]
    chosen = chosen or default_slices(sources, choice.defined, labelled)
    return {slice_: sources.members(slice_) for slice_ in dict.fromkeys(chosen)}


def images_of(choice: Choice, rows: pd.DataFrame, line: str, options: WhereOptions = USUAL) -> frozenset[str]:
    """The captioner's images of a line: those of its slice, or those whose captions count for its object."""
    of_line = rows[rows["line"] == line].iloc[0]
    captioner = str(of_line["captioner"])
    if of_line["rule"]:
        sources = slice_sources(choice.workspace, choice.collection, choice.run(captioner))
        return sources.members(Slice.parse(of_line["rule"])).inside & _labelled(choice, captioner)
    spec = spec_of(choice, captioner, options.objects_from, options.further)
    return frozenset(captions_with(choice.workspace, spec, str(of_line["object"]))["image_id"])


# objects and values


def _scored_rows(choice: Choice, captioner: str, name: str) -> Iterator[dict[str, Any]]:
    """Rows of a run that has some for each object, objects of most captions first."""
    measured = choice.measured([name])
    measured = measured[measured["captioner"] == captioner]
    if measured.empty:
        return
    about = measured.iloc[0]
    rows = object_rows(choice.workspace.get_run(about["run_id"]))
    rows = rows[rows["metric"] == name].sort_values("n", ascending=False, kind="stable")
    for row in rows.to_dict("records"):
        number = {"value": row["value"], "low": row["ci_low"], "high": row["ci_high"], "n": row["n"]}
        labels = {"captioner": captioner, "thing": row["object"], "object": row["object"], "metric": name}
        yield labels | number | {"of": row["direction"], "direction": row["direction"], "other": about["other"]}


# sentences


def where_sentence(choice: Choice, rows: pd.DataFrame) -> str:
    """Where a metric is significantly higher, and above what means no bias; never where it is lower."""
    if rows.empty:
        return say("where.nothing")
    name = rows["metric"].iloc[0]
    if name in BY_OBJECT:
        return say("where.by_object", metric=METRICS[name].title, objects=counted(rows["object"].nunique(), "object"))
    sentences, others = [], dict[str, list[str]]()
    for captioner, part in rows.groupby("captioner", sort=False):
        text, found = (named_sentence if name == METRIC else _slices_sentence)(choice, str(captioner), part)
        if found:
            sentences.append(text)
        else:
            others.setdefault(text, []).append(str(captioner))
    return " ".join([*sentences, *(say("where.of", captioners=listed(who), text=text) for text, who in others.items())])


def _slices_sentence(choice: Choice, captioner: str, rows: pd.DataFrame) -> tuple[str, bool]:
    name, kinds = rows["metric"].iloc[0], {rule.partition(":")[0] for rule in rows["rule"]}
    noun = {OBJECT: "object", WORDS: "word"}.get(next(iter(kinds)), "slice") if len(kinds) == 1 else "slice"
    what = counted(rows["line"].nunique(), noun)
    inside, rest = (rows[(rows["of"] == of) & (rows["metric"] == name)].set_index("line") for of in (INSIDE, OUTSIDE))
    p = rows[rows["of"] == DIFFERENCE].set_index("line")["p"]
    neutral = METRICS[name].neutral(len(choice.defined.values))
    signed = math.isfinite(neutral) and METRICS[name].range[0] < neutral
    higher = inside[(inside["verdict"] == HIGHER) & ((inside["low"] > neutral) | (not signed))]
    if not (tested := int(p.notna().sum())):
        return _none_tested(inside, rest["n"], name), False
    if higher.empty:
        more = say("where.of_tested", tested=tested) if tested < len(p) else ""
        below = (inside["verdict"] == HIGHER).any()  # significantly higher, and not above what means no bias
        return say("where.none_above" if below else "where.none", metric=name, what=what, more=more), False
    order = (higher["value"] - rest["value"].reindex(higher.index)).sort_values(ascending=False).index
    first, *further = [Slice.parse(higher.at[line, "rule"]).images for line in order]
    digits = METRICS[name].digits or 1
    numbers = {"value": limit(higher.at[order[0], "value"], digits), "rest": limit(rest.at[order[0], "value"], digits)}
    named = say("where.also", images=listed(further[: MOST_NAMED - 1])) if further else ""
    if left := len(further) - (MOST_NAMED - 1):
        named += say("where.more", slices=counted(left, "more slice")) if left > 0 else ""
    text = say("where.higher", captioner=captioner, metric=name, images=first, also=named, **numbers)
    verdicts = choice.rows[(choice.rows["captioner"] == captioner) & (choice.rows["metric"] == "LIC")]
    verdicts = verdicts[(verdicts["setting"] == choice.setting) & (verdicts["group"] == "")]["verdict"]
    if name == "LIC" and AMPLIFIES not in set(verdicts):
        text += say("where.not_amplifying")
    return text, True


def _none_tested(inside: pd.DataFrame, rest: pd.Series, name: str) -> str:
    """Why a metric is tested in no slice of a captioner."""
    sizes = np.minimum(inside["n"], rest).sort_values(ascending=False)
    if (large := sizes[sizes >= LEAST_IMAGES]).empty:
        most = f"{sizes.index[0]} {int(sizes.iloc[0]):,}"
        return say("where.too_few", metric=name, least=LEAST_IMAGES, most=most)
    line = large.index[0]
    return say("where.no_test", metric=name, reason=f"{line}: {inside.at[line, 'reason']}")


def where_notes(choice: Choice, rows: pd.DataFrame) -> Sequence[str]:
    if rows.empty:
        return ()
    name, lines = rows["metric"].iloc[0], []
    if name in BY_OBJECT:
        return [METRICS[name].explanation, choice.defined.note]
    tested = rows["p"].notna().any()
    if name == METRIC:
        lines.append(say("where.named_tests", least=ENOUGH) if tested else say("where.captions"))
        return [*lines, METRICS[name].explanation, choice.defined.note]
    lines += _contradictions(rows)
    lines += [say("where.tests")] if tested else []
    lines += _held_out(choice, rows)
    if (
        (rows["reason"] == "") & (rows["of"] != DIFFERENCE) & (rows["n"] < LEAST_IMAGES) & (rows["metric"] == name)
    ).any():
        lines.append(say("where.not_tested", least=LEAST_IMAGES))
    elif (rows["reason"] != "").any():
        lines.append(say("where.minimum"))
    runs = [choice.run(captioner) for captioner in choice.captioners]
    equal = not choice.settings[choice.setting].references or all(ABOUT_EQUAL in run.lacking.values() for run in runs)
    lines.append(say("where.balance", length="" if equal else say("where.length")))
    kinds = {rule.partition(":")[0] for rule in rows["rule"]}
    if OBJECT in kinds:
        sources = slice_sources(choice.workspace, choice.collection, runs[0])
        unknown = len(_labelled(choice, choice.captioner) - sources.annotated)
        lost = say("where.objects_lost", images=counted(unknown, "image")) if unknown else ""
        lines.append(say("where.objects", source=sources.objects_from, lost=lost))
    lines += [say(f"where.{kind}") for kind in (WORDS, "column", SEARCH) if kind in kinds]
    return [*lines, choice.defined.note]


def _contradictions(rows: pd.DataFrame) -> list[str]:
    """Objects whose images say the opposite of what captions name beside them."""
    lean = rows[rows["lean"].fillna(0) != 0] if "lean" in rows else rows.iloc[:0]
    inside = rows[rows["of"] == INSIDE].set_index("line")
    lines = []
    for row in lean.to_dict("records"):
        verdict = inside.at[row["line"], "verdict"]
        if verdict == (LOWER if row["lean"] > 0 else HIGHER):
            metric, slice_ = inside.at[row["line"], "metric"], Slice.parse(row["rule"])
            key = "where.more_beside" if row["lean"] > 0 else "where.less_beside"
            about = {"captioner": row["captioner"], "metric": metric, "verdict": verdict, "word": slice_.value}
            lines.append(say(key, images=slice_.images, **about))
    return lines


def _held_out(choice: Choice, rows: pd.DataFrame) -> list[str]:
    counts = choice.run().counts_of()
    if rows["n_per_seed"].isna().all() or not counts.seeds:
        return []
    few = say("where.few_seeds", least=LEAST_SEEDS) if len(counts.seeds) < LEAST_SEEDS else ""
    numbers = {"each": counts.held_out.sum(axis=1).mean(), "guessed": len(counts.taking_part.images)}
    return [say("where.held_out", images=len(counts.images), over=OVER[REFITS], few=few, **numbers)]


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
