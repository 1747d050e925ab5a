"""A small collection with known content, and its scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from benchmarks.statistics.synthetic import Design, draw
from capbias_core.question import Question
from capbias_core.runs.engine import run_all
from capbias_core.runs.plan import plan
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep

IMAGES = 300


def fill(workspace: Workspace, collection: str = "c", labels: bool = True) -> None:
    """Two captioners, two human captions per image and, if asked for, labels of gender."""
    drawn = draw(Design(), IMAGES, len(collection), captioners=2)  # others, or collections would share their runs
    ids = np.arange(IMAGES).astype(str)

    def captions(texts: list[str]) -> pd.DataFrame:
        who = np.where(drawn.labels == 1, "a man", "a woman")
        return pd.DataFrame(
            {"image_id": ids, "caption": [f"{a} {b} with a dog" for a, b in zip(texts, who, strict=True)]}
        )

    table = pd.DataFrame({"image_id": ids, "gender": np.where(drawn.labels == 1, "Male", "Female")})
    keep(
        workspace,
        collection,
        captions={name: captions(texts) for name, texts in zip(("first", "second"), drawn.models, strict=True)},
        references=pd.concat(map(captions, drawn.humans[:2])),
        labels=table if labels else None,
    )


def score(
    workspace: Workspace,
    collection: str = "c",
    captioners: Sequence[str] = ("first", "second"),
    *,
    table: str = "labels",
    attribute: str = "gender",
    metrics: Sequence[str] = ("lic", "ratio", "dbac"),
    human: str = "human",
    seeds: int | None = 2,
    words: bool = True,
    attacker: str = "ngram",
) -> list[str]:
    """The IDs of the runs, all finished."""
    asked = Question(
        collection, tuple(captioners), table, attribute, tuple(metrics), human, (attacker,), seeds=seeds, words=words
    )
    runs = run_all(workspace, plan(workspace, asked), collection)
    assert {run.status for run in runs} == {"finished"}
    return [run.run_id for run in runs]


def more_labels(workspace: Workspace, column: str, values: Sequence[str], collection: str = "c") -> str:
    """The name of a new table with another attribute, by image."""
    table = workspace.frame(workspace.item("attributes", "labels", collection).hash)[["image_id"]]
    keep(workspace, collection, labels={f"{column} table": table.assign(**{column: values})}, attribute=column)
    return f"{column} table"
