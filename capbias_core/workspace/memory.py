"""A workspace in memory, for scores that leave nothing behind."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from capbias_core.aggregate import Counts
from capbias_core.errors import CapbiasError
from capbias_core.prepare.tokens import Tokens
from capbias_core.processes import scratch_folder
from capbias_core.types import RESULT_COLUMNS, Result, left_out_lines
from capbias_core.workspace.catalogue import this_process
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import ACTIVE, Item, RunRow, Workspace, checked_name, content_hash, results_frame


class MemoryWorkspace(Workspace):
    """Items, runs and results of this process. Nothing is queued: `put` adds a run that was computed.

    `folder` is made only if something writes a large file, such as vectors of captions, and goes with this object.
    """

    def __init__(self) -> None:
        self.folder = scratch_folder(self)
        self.database = self.folder / "none"
        self._items: dict[tuple[str, str, str], Item] = {}
        self._frames: dict[str, pd.DataFrame] = {}
        self._tokens: dict[str, Tokens] = {}
        self._models: dict[str, str] = {}
        self._derived: dict[str, Any] = {}
        self._runs: dict[str, RunRow] = {}
        self._results: dict[str, Sequence[Result]] = {}
        self._counts: dict[str, Mapping[str, Counts]] = {}
        self._arrays: dict[str, Mapping[str, bytes]] = {}

    def version(self) -> str:
        return f"{len(self._items)} {len(self._results)}"

    # items

    def keep(
        self,
        kind: str,
        name: str,
        frame: pd.DataFrame,
        collection: str,
        source: str,
        details: dict | None = None,
        digest: str = "",
    ) -> Item:
        name, collection, digest = checked_name(name), checked_name(collection), digest or content_hash(frame)
        images = frame["image_id"].nunique() if "image_id" in frame else 0
        item = Item(collection, kind, name, digest, len(frame), images, 0, source, time.time(), details or {})
        self._frames[digest] = frame.reset_index(drop=True)
        self._items.pop((collection, kind, name), None)  # the newest item is the last
        self._items[collection, kind, name] = item
        return item

    def check_replaceable(self, kind: str, name: str, frame: pd.DataFrame, collection: str) -> None:
        """Everything is: no run reads it now, and nobody else owns it."""

    def items(self, kind: str | None = None, collection: str | None = None, name: str | None = None) -> list[Item]:
        return [
            item
            for item in self._items.values()
            if kind in (None, item.kind) and collection in (None, item.collection) and name in (None, item.name)
        ]

    def collections(self) -> list[str]:
        return list(dict.fromkeys(item.collection for item in reversed(self._items.values())))

    def frame(self, digest: str, read: Callable[..., Any] | None = None) -> Any:
        if digest not in self._frames:
            raise CapbiasError(f"There is no table {digest}.")
        return self._frames[digest]

    def columns(self, digest: str) -> list[str]:
        return list(self.frame(digest).columns)

    def tokens(self, digest: str) -> Tokens:
        if digest not in self._tokens:
            self._tokens[digest] = Tokens.of(self.frame(digest)["caption"])
        return self._tokens[digest]

    def delete(self, item: Item) -> int:
        del self._items[item.collection, item.kind, item.name]
        return 0

    def model_path(self, digest: str) -> str:
        return self._models.get(digest, "")

    def keep_model_path(self, digest: str, path: str) -> None:
        self._models[digest] = path

    def derived(self, key: str, compute: Callable[[], object]) -> Any:
        if key not in self._derived:
            self._derived[key] = compute()
        return self._derived[key]

    def has_derived(self, key: str) -> bool:
        return key in self._derived

    # runs

    def add(self, spec: RunSpec, collection: str) -> None:
        """A run that is to be computed."""
        now = time.time()
        self._runs[spec.run_id] = RunRow(
            spec.run_id, collection, spec, "queued", 0.0, "waiting", (), now, None, None, now, this_process()
        )

    def update(self, run_id: str, **fields: Any) -> None:
        """Change fields of a run."""
        self._runs[run_id] = replace(self._runs[run_id], **fields)

    def put(
        self,
        run_id: str,
        results: Sequence[Result],
        counts: Mapping[str, Counts],
        arrays: Mapping[str, bytes],
        notes: Sequence[str],
        metrics: Sequence[str],
        lacking: Mapping[str, str],
    ) -> None:
        """End a run with what it has computed. counts: by direction. The others: as of `Workspace.finish`."""
        self._results[run_id], self._counts[run_id], self._arrays[run_id] = results, counts, arrays
        notes = (*notes, *left_out_lines(lacking))
        ended = {"status": "finished", "progress": 1.0, "message": "finished", "finished": time.time()}
        self.update(run_id, notes=notes, metrics=tuple(metrics), lacking=lacking, **ended)

    def runs(self, collection: str | None = None) -> list[RunRow]:
        return [run for run in reversed(self._runs.values()) if collection in (None, run.collection)]

    def runs_of(self, run_ids: Sequence[str]) -> dict[str, RunRow]:
        return {run_id: self._runs[run_id] for run_id in run_ids if run_id in self._runs}

    def past_durations(self, measure: str, attacker: str, card: str, most: int) -> list[tuple[RunSpec, float]]:
        return []

    def forget(self, run_id: str) -> None:
        if self._runs.get(run_id) and self._runs[run_id].status not in ACTIVE:
            del self._runs[run_id]

    def array(self, run_id: str, name: str) -> bytes:
        return self._arrays[run_id][name]

    def arrays(self, run_id: str) -> list[str]:
        return list(self._arrays[run_id])

    def counts(self, run_id: str) -> dict[str, Counts]:
        return dict(self._counts[run_id])

    def results(self, run_ids=None) -> pd.DataFrame:
        wanted = self._results if run_ids is None else set(run_ids)
        rows = [{**row.row(), "run_id": name} for name, of in self._results.items() for row in of if name in wanted]
        return results_frame([tuple(row[column] for column in RESULT_COLUMNS) for row in rows])
