"""Finished runs of a collection: which count, which labels and references they read, and what they measured."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import pandas as pd

from capbias_core.aggregate import Ranking, rank
from capbias_core.aggregate.variants import INPUTS
from capbias_core.measures.base import BY_OBJECT
from capbias_core.prepare.tokens import Tokens
from capbias_core.runs.run import estimates, is_current
from capbias_core.types import RESULT_COLUMNS, Attribute
from capbias_core.workspace.objects import COLUMN, OBJECTS, usual_objects
from capbias_core.workspace.spec import attribute_from
from capbias_core.workspace.store import RunRow, Workspace, bytes_frame

# What tells rows of one metric and captioner apart, in the order in which they stand.
PARTS = ("coverage", "direction", "alignment", "group", "object", "photographs", "prompt", "encoder")


def in_order(rows: pd.DataFrame, **known: Iterable[Any]) -> pd.DataFrame:
    """Rows sorted by these columns, each in the order of its known values, with others behind."""
    ranks = {
        name: {value: place for place, value in enumerate(dict.fromkeys(values))} for name, values in known.items()
    }
    return rows.sort_values(
        list(known), key=lambda column: column.map(ranks[column.name]), kind="stable", ignore_index=True
    )


def ordered(
    frame: pd.DataFrame, models: Sequence[str], wanted: Sequence[str], encoders: Sequence[str] = ()
) -> pd.DataFrame:
    """Rows of the wanted metrics; captioners, metrics and encoders in the order in which they were asked for."""
    parts = {name: sorted(set(frame[name])) for name in PARTS if name != "direction"}
    parts["encoder"] = [*encoders, *frame["encoder"]]
    return in_order(frame[frame["metric"].isin(list(wanted))], model=models, metric=wanted, **parts)


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
    columns = {table.hash for table in tables if usual_objects(workspace, collection, table)[0] == COLUMN}
    labels = [
        (table.hash, entry["column"], entry["mapping"], entry["attribute"])
        for table in tables
        for entry in table.details["attributes"].values()
    ]
    return [
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


def object_rows(run: RunRow) -> pd.DataFrame:
    """What a finished run measured for each object, in RESULT_COLUMNS; empty for runs of other measures."""
    if run.array(BY_OBJECT) is None:
        return pd.DataFrame(columns=list(RESULT_COLUMNS))
    rows = run.read(BY_OBJECT, bytes_frame).assign(run_id=run.run_id)
    return rows.astype(dict.fromkeys(("value", "spread", "scale", "ci_low", "ci_high"), float))


def attribute_of_run(run: RunRow) -> Attribute:
    """The protected attribute that a run measured."""
    return attribute_from(run.spec.attribute)


class Remembering(Protocol):
    """A workspace, or runs of data in hand (choose.py)."""

    def tokens(self, key: str, /) -> Tokens:
        """The tokens of a caption set, by the hash of its content."""
        ...

    def derived(self, key: str, compute: Callable[[], Any], kind: Any, /) -> Any:
        """What this computes, kept under the key."""
        ...


def ranking(source: Remembering, runs: Sequence[RunRow], metric: str, direction: str = "") -> Ranking:
    """The captioners of these runs in pairs by one metric. Computed once for these runs."""

    def compute() -> Ranking:
        by_model = {run.spec.model: estimates(run).get((metric, direction)) for run in runs}
        pairs = rank({model: estimate for model, estimate in by_model.items() if estimate is not None})
        words = {run.spec.model: average_words(source, run.spec.captions) for run in runs}
        return replace(pairs, words={model: words[model] for model in pairs.images})

    named = " ".join(sorted(run.run_id for run in runs))
    return source.derived(f"pairs of captioners by t tests {metric} {direction} {named}", compute, Ranking)


def average_words(source: Remembering, captions: str) -> float:
    """The average number of words of a caption of a set. captions: its content hash."""
    return float(source.tokens(captions).lengths.mean())
