"""Finished runs of a collection: which count, which labels and references they read, and what they measured."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd

from capbias_core.aggregate import Pair, Ranking, estimates_of, rank
from capbias_core.aggregate.ranking import ALIKE
from capbias_core.aggregate.variants import INPUTS
from capbias_core.attackers import attacker_entry
from capbias_core.measures.base import BY_OBJECT
from capbias_core.measures.registry import METRICS, default_groups
from capbias_core.prepare.labels import parts_of
from capbias_core.prepare.tokens import Tokens
from capbias_core.question import Question
from capbias_core.runs.run import add_later_metrics, estimates, is_current
from capbias_core.types import RESULT_COLUMNS, Attribute
from capbias_core.workspace.conditions import originals
from capbias_core.workspace.labels import attributes_in, is_derived, reads, table_of, table_with, tables_with
from capbias_core.workspace.objects import OBJECTS, reads_its_column
from capbias_core.workspace.spec import Setting, attribute_from
from capbias_core.workspace.store import Item, RunRow, Workspace, bytes_frame, human_sets
from capbias_core.workspace.vectors import CONSTANT, alignment_name

# What tells rows of one metric and captioner apart, in the order in which they stand.
PARTS = ("coverage", "direction", "alignment", "group", "object", "photographs", "prompt", "encoder")


def ordered(
    frame: pd.DataFrame, models: Sequence[str], wanted: Sequence[str], encoders: Sequence[str] = ()
) -> pd.DataFrame:
    """Rows of the wanted metrics; captioners, metrics and encoders in the order in which they were asked for."""
    order = {"model": models, "metric": wanted, "encoder": [*encoders, *frame["encoder"]]}
    ranks = {name: {value: rank for rank, value in enumerate(dict.fromkeys(known))} for name, known in order.items()}
    return frame[frame["metric"].isin(list(wanted))].sort_values(
        ["model", "metric", *(name for name in PARTS if name != "direction")],
        kind="stable",
        ignore_index=True,
        key=lambda column: column.map(ranks[column.name]) if column.name in ranks else column,
    )


def exported(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows as files hold them: in the columns of the results table, with labels, references and letters where they are
    known, and `name`, the metric with its attacker, such as `LIC (ngram)`."""
    frame = frame.assign(name=frame["metric"] + frame["encoder"].map(lambda by: f" ({by})" if by else ""))
    return frame[[*RESULT_COLUMNS, "name", *(name for name in (*INPUTS, "letters") if name in frame)]]


def lettered(
    frame: pd.DataFrame, letters: Mapping[str, str], run_ids: Collection[str], metric: str, direction: str = ""
) -> pd.DataFrame:
    """Rows with a column of letters (ranking.py): those of each captioner, at its rows of the metric and direction by
    which these runs were compared."""
    compared = frame["run_id"].isin(list(run_ids)) & (frame["metric"] == metric) & (frame["direction"] == direction)
    return frame.assign(letters=frame["model"].map(dict(letters)).fillna("").where(compared, ""))


def current_runs(workspace: Workspace, collection: str, measure: str | None = None) -> list[RunRow]:
    """Finished runs on what a collection holds now (content, names and mapped labels), newest first.

    A run computed for another collection with the same content counts too: it is never computed twice. Runs of an
    earlier protocol do not count, since their numbers are not these, nor runs on the images that another set has too
    (runs/condition_runs.py), which stand beside that set alone.
    """
    items = workspace.items(collection=collection)
    sets = {(item.name, item.hash) for item in items}
    held = {item.hash for item in items}
    references, objects = ({item.hash for item in items if item.kind == kind} for kind in ("references", OBJECTS))
    tables = [item for item in items if item.kind == "labels"]
    # Once a file of objects is there, the column of a table counts only where it is still what runs read.
    columns = {table.hash for table in tables if not objects or reads_its_column(workspace, collection, table)}
    labels = [
        (table.hash, entry["column"], entry["mapping"], entry["attribute"])
        for table in tables
        for entry in table.details["attributes"].values()
    ]
    runs = [
        run
        for run in workspace.runs()
        if run.status == "finished"
        and is_current(run.spec)
        and not run.spec.shared_with
        and (run.spec.model, run.spec.captions) in sets
        and (run.spec.labels["table"], run.spec.labels["column"], run.spec.labels["mapping"], run.spec.attribute)
        in labels
        and run.spec.inputs() <= held
        and run.spec.references in {"", *references}
        and run.spec.objects.get("table") in {None, *objects, *columns}
        and (measure is None or run.spec.measure == measure)
    ]
    add_later_metrics(workspace, runs)
    return runs


def known_results(workspace: Workspace, run_ids: Iterable[str]) -> pd.DataFrame:
    """What these finished runs measured, in RESULT_COLUMNS: of metrics that there are, since one may have been taken
    out again, or come from a newer version that shares the workspace."""
    rows = workspace.results(list(run_ids))
    return rows[rows["metric"].isin(list(METRICS))].reset_index(drop=True)


def object_rows(run: RunRow) -> pd.DataFrame:
    """What a finished run measured for each object, in RESULT_COLUMNS; empty for runs of other measures."""
    if (data := run.array(BY_OBJECT)) is None:
        return pd.DataFrame(columns=list(RESULT_COLUMNS))
    rows = bytes_frame(data).assign(run_id=run.run_id)
    return rows.astype(dict.fromkeys(("value", "spread", "scale", "ci_low", "ci_high"), float))


def attribute_of_run(run: RunRow) -> Attribute:
    """The protected attribute that a run measured."""
    return attribute_from(run.spec.attribute)


class Remembering(Protocol):
    """A workspace, or runs of data in hand (choose.py)."""

    def tokens(self, key: str, /) -> Tokens:
        """The tokens of a caption set, by the hash of its content."""
        ...

    def derived(self, key: str, compute: Callable[[], Any], /) -> Any:
        """What this computes, kept under the key."""
        ...


def ranking(source: Remembering, runs: Sequence[RunRow], metric: str, direction: str = "") -> Ranking:
    """The captioners of these runs in pairs by one metric. Computed once for these runs."""

    def compute() -> dict:
        by_model = {run.spec.model: estimates(run).get((metric, direction)) for run in runs}
        pairs = asdict(rank({model: estimate for model, estimate in by_model.items() if estimate is not None}))
        words = {run.spec.model: average_words(source, run.spec.captions) for run in runs}
        return pairs | {"words": {model: words[model] for model in pairs["images"]}}

    named = " ".join(sorted(run.run_id for run in runs))
    data = source.derived(f"pairs of captioners by t tests {metric} {direction} {named}", compute)
    return Ranking(**data | {"pairs": tuple(Pair(**pair) for pair in data["pairs"])})


@dataclass(frozen=True)
class LikeWithLike:
    """Rows of captioners that may stand in one chart, and those of others, which were measured on different images.

    compared: of the captioners that most are compared with, on the images that all of them have. others: the rest, each
    on all its images. shared: how many images the compared ones share, if some of them have more; else 0.
    """

    compared: pd.DataFrame
    others: pd.DataFrame
    shared: int = 0

    @property
    def shared_text(self) -> str:
        """A sentence on the images that the compared ones share, if some have more; else ''."""
        return f"Values are on the {self.shared:,} images that all of these have." if self.shared else ""


def like_with_like(workspace: Workspace, rows: pd.DataFrame, pairs: Ranking) -> LikeWithLike:
    """The rows of one metric, a captioner each, by whether they are compared on about the same images: those of the
    largest set, or at least the share ALIKE of them. pairs: their ranking."""
    name, direction = rows.iloc[0]["metric"], rows.iloc[0]["direction"]
    metric, runs = METRICS[name], workspace.runs_of(list(rows["run_id"]))
    if not metric.reads or not pairs.images or metric.by_value or metric.gap_of:
        return LikeWithLike(rows, rows.iloc[:0])
    counts = {
        run_id: workspace.counts(run_id)[direction].reading(metric.reads).taking_part for run_id, run in runs.items()
    }
    images = {run_id: frozenset(of_run.images) for run_id, of_run in counts.items()}
    joined = rows[~rows["model"].isin(pairs.apart)] if pairs.pairs else rows
    most = max((images[run_id] for run_id in joined["run_id"]), key=len)
    comparable = [run_id for run_id in joined["run_id"] if len(images[run_id] & most) >= ALIKE * len(most)]
    compared, others = rows[rows["run_id"].isin(comparable)], rows[~rows["run_id"].isin(comparable)]
    shared = most.intersection(*(images[run_id] for run_id in comparable))
    if all(images[run_id] == shared for run_id in comparable):
        return LikeWithLike(compared, others)
    changed = []
    for row in compared.to_dict("records"):
        run_id = row["run_id"]
        of_run = counts[run_id].subset(np.isin(counts[run_id].images, list(shared)))
        estimate = estimates_of([metric], of_run, runs[run_id].spec.attribute["values"], direction)[name, direction]
        changed.append(row | estimate.columns() | {"n": estimate.n_images})
    return LikeWithLike(pd.DataFrame(changed, index=compared.index), others, len(shared))


def average_words(source: Remembering, captions: str) -> float:
    """The average number of words of a caption of a set. captions: its content hash."""
    return float(source.tokens(captions).lengths.mean())


PAPER_SEEDS = 10


@dataclass(frozen=True)
class Comparison:
    """Captioners measured alike: the finished runs of LIC with one setting.

    coverage: '' with references, which name the images. alignment: as results name it. runs: one a captioner.
    metric: the one that answers: LIC with references, else LIC_M.
    """

    attribute: Attribute
    attacker: str
    seeds: int
    coverage: str
    references: str
    alignment: str
    runs: tuple[RunRow, ...]

    @property
    def setting(self) -> Setting:
        return Setting.of(self.runs[0].spec)

    @property
    def metric(self) -> str:
        return "LIC" if self.references else "LIC_M"

    @property
    def run_ids(self) -> tuple[str, ...]:
        return tuple(run.run_id for run in self.runs)


def comparisons(workspace: Workspace, collection: str, sets: Collection[str] | None = None) -> list[Comparison]:
    """The groups of finished attack runs that may be compared; the one that answers best first.

    sets: the names of the caption sets that count (default: all). Best is: with references, then with as many seeds as
    the papers, then by an encoder of the LIC paper, then by any but the preview, then of an attribute that is no
    crossing, then by labels that people gave, then most captioners, most seeds, constant alignment, newest.
    """
    groups: dict[str, dict[str, RunRow]] = {}
    tables = workspace.items("labels", collection)
    for run in current_runs(workspace, collection, "lic"):
        if sets is None or run.spec.model in sets:  # the newest first, which stands for its captioner
            groups.setdefault(Setting.of(run.spec).key, {}).setdefault(run.spec.model, run)
    items = []
    for runs in map(list, map(dict.values, groups.values())):
        spec = runs[0].spec
        items.append(
            Comparison(
                attribute=attribute_of_run(runs[0]),
                attacker=spec.attacker,
                seeds=len(spec.seeds),
                coverage="" if spec.references else spec.coverage,
                references=spec.references,
                alignment=alignment_name(spec.options.get("alignment")),
                runs=tuple(runs),
            )
        )
    return sorted(
        items,
        key=lambda item: (
            bool(item.references),
            item.seeds >= PAPER_SEEDS,
            attacker_entry(item.attacker).precedence,
            parts_of(item.attribute.name) is None,
            not is_derived(table_of(tables, item.attribute.name, item.runs[0].spec.labels)),
            len(item.runs),
            item.seeds,
            item.alignment == CONSTANT,
            max(run.finished or 0.0 for run in item.runs),
        ),
        reverse=True,
    )


def while_running(found: Sequence[Comparison], active: Sequence[RunRow]) -> list[Comparison]:
    """Comparisons, those first that answer while runs are under way. found: the best first. active: runs under way.

    A comparison with runs under way has only a part of its captioners or words. It comes last, unless only it has as
    many seeds as the papers. Comparisons with fewer seeds are left out as long as the first run with as many is under
    way, so that an answer is not replaced by that of another attacker.
    """
    coming = {(run.spec.attribute.get("name"), run.spec.attacker) for run in active}
    lic = [run.spec for run in active if run.spec.measure == "lic" and len(run.spec.seeds) >= PAPER_SEEDS]
    enough = [item for item in found if item.seeds >= PAPER_SEEDS]
    awaited = {spec.attribute.get("name") for spec in lic} - {item.attribute.name for item in enough}
    whole = {item.attribute.name for item in enough if (item.attribute.name, item.attacker) not in coming}

    def waits(item: Comparison) -> bool:
        name, partly = item.attribute.name, (item.attribute.name, item.attacker) in coming
        return partly and (name in whole or item.seeds < PAPER_SEEDS)

    return sorted((item for item in found if item.attribute.name not in awaited), key=waits)


def best_comparisons(found: Sequence[Comparison], run_ids: Collection[str]) -> dict[str, Comparison]:
    """Attribute -> the first of these comparisons that has any of these runs, with those runs alone."""
    best: dict[str, Comparison] = {}
    for comparison in found:
        if runs := tuple(run for run in comparison.runs if run.run_id in run_ids):
            best.setdefault(comparison.attribute.name, replace(comparison, runs=runs))
    return best


def tables_read(workspace: Workspace, collection: str) -> dict[str, Item]:
    """Attribute -> the table of labels that is read unless another is chosen.

    It is that of the attribute's best answer, else one with which anything was measured, else any; of several, that of
    `table_with`. So a table that is added, and by which nothing is measured, changes no view.
    """
    tables = workspace.items("labels", collection)
    answered: dict[str, Item | None] = {}
    for item in comparisons(workspace, collection, originals(workspace.items("captions", collection))):
        answered.setdefault(item.attribute.name, table_of(tables, item.attribute.name, item.runs[0].spec.labels))
    runs, read = current_runs(workspace, collection), {}
    for name in attributes_in(tables):
        labelling = tables_with(tables, name)
        used = [table for table in labelling if runs_with(runs, {name: table})]
        read[name] = answered.get(name) or table_with(used or labelling, name)
    return read


def references_read(workspace: Workspace, collection: str) -> dict[str, Item]:
    """Attribute -> the human captions that are read unless others are chosen; none where a collection has none.

    They are those of the attribute's best answer, else those that most runs on it compared with, else those of most
    images. So a set that is added changes no view.
    """
    sets = {item.hash: item for item in human_sets(workspace, collection)}
    if not sets:
        return {}
    answered: dict[str, str] = {}
    for item in comparisons(workspace, collection, originals(workspace.items("captions", collection))):
        if item.references:
            answered.setdefault(item.attribute.name, item.references)
    runs, read = current_runs(workspace, collection), {}
    for name in attributes_in(workspace.items("labels", collection)):
        used = [run.spec.references for run in runs if run.spec.attribute["name"] == name]
        read[name] = sets[answered.get(name) or max(sets, key=used.count)]
    return read


def runs_against(runs: Iterable[RunRow], references: Mapping[str, Item]) -> list[RunRow]:
    """Those of some runs that compare with no human captions, or with these. references: attribute -> a set of them."""
    known = {name: item.hash for name, item in references.items()}
    return [run for run in runs if run.spec.references in ("", known.get(run.spec.attribute["name"]))]


def with_inputs(workspace: Workspace, collection: str, rows: pd.DataFrame, runs: Iterable[RunRow]) -> pd.DataFrame:
    """Rows of these runs with the columns labels and references: the table of labels and the human captions that each
    read, by name; '' where it read none."""
    tables = workspace.items("labels", collection)
    human = {item.hash: item.name for item in workspace.items("references", collection)}
    read = {}
    for run in runs:
        table = table_of(tables, run.spec.attribute["name"], run.spec.labels) if run.spec.attribute else None
        read[run.run_id] = table.name if table else "", human.get(run.spec.references, "")
    names = [read[run_id] for run_id in rows["run_id"]]
    return rows.assign(labels=[table for table, _ in names], references=[human for _, human in names])


def with_letters(
    workspace: Workspace, rows: pd.DataFrame, found: Sequence[Comparison], run_ids: Collection[str]
) -> pd.DataFrame:
    """Rows of these runs with a column letters.

    Only captioners that were compared with each other have letters: of several comparisons by one metric, attribute
    and attacker, such as with other numbers of seeds, those of the best one.
    """
    letters: dict[tuple[str, str], str] = {}
    seen: set[tuple[str, str, str]] = set()
    for comparison in found:
        chosen = [run for run in comparison.runs if run.run_id in run_ids]
        key = comparison.attribute.name, comparison.metric, comparison.attacker
        if not chosen or key in seen:
            continue
        seen.add(key)
        compared = ranking(workspace, chosen, comparison.metric).letters
        letters |= {(run.run_id, comparison.metric): compared.get(run.spec.model, "") for run in chosen}
    keys = zip(rows["run_id"], rows["metric"], strict=True)
    return rows.assign(letters=[letters.get(key, "") for key in keys])


def first_request(workspace: Workspace, collection: str, attribute: str = "") -> Question | None:
    """What answers a collection first: its captioners by the default metrics and attacker, with scores and words of
    each caption, by the labels and beside the human captions that pages read. None where captions or labels are
    missing.

    attribute: one of the collection's (default: the first that captions have words for, else the first).
    """
    captions = originals(workspace.items("captions", collection))
    tables = workspace.items("labels", collection)
    attributes = {
        name: attribute_from(entry["attribute"])
        for table in tables
        for name, entry in table.details["attributes"].items()
    }
    if not captions or not attributes:
        return None
    attribute = attribute or next(
        (name for name, candidate in attributes.items() if candidate.names_values), next(iter(attributes))
    )
    table, human = tables_read(workspace, collection)[attribute], references_read(workspace, collection)
    named = human[attribute].name if human else ""
    return Question(collection, tuple(captions), table.name, attribute, default_groups(), named, words=True)


def first_attribute(workspace: Workspace, collection: str) -> str:
    """The attribute that pages open on: the first that captions have words for among those with an answer, else the
    one of the best answer, else the first that a request without an attribute asks for; '' if there are no labels."""
    answered = comparisons(workspace, collection, originals(workspace.items("captions", collection)))
    by_name = {comparison.attribute.name: comparison.attribute for comparison in answered}
    named = [name for name in attributes_in(workspace.items("labels", collection)) if name in by_name]
    usual = (name for name in named if by_name[name].names_values and parts_of(name) is None)
    if answered:
        return next(usual, answered[0].attribute.name)
    asked = first_request(workspace, collection)
    return asked.attribute if asked else ""


def runs_with(runs: Iterable[RunRow], labels: Mapping[str, Item]) -> list[RunRow]:
    """Those of some runs that read one of these attributes in its table of labels. labels: attribute -> table."""
    named = ((run, run.spec.attribute["name"]) for run in runs)
    return [run for run, name in named if name in labels and reads(run.spec.labels, name, labels[name])]
