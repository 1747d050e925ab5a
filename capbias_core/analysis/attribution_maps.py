"""What pages read of the maps that runs of attribution left."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import pandas as pd

from capbias_core.analysis.read import current_runs, runs_with
from capbias_core.measures.attribution import MEASURE, WINDOW
from capbias_core.vision.grad_cam import Window
from capbias_core.workspace.store import Item, RunRow, Workspace, bytes_frame


@dataclass(frozen=True)
class KeptMaps:
    """The maps of one run.

    table: one row per map, with image_id, caption_index, kept_at (row of the caption in the set as kept), place and
    word (in the caption, split at spaces), value (place of the attribute's), rows and columns (of the map), height and
    width (of the photograph), and its metrics. values: all maps one after the other.
    """

    run: RunRow
    table: pd.DataFrame
    values: np.ndarray

    def heat(self, row: int) -> np.ndarray:
        """(rows, columns) float32 in [0, 1]: the map of this row of the table."""
        sizes = (self.table["rows"] * self.table["columns"]).to_numpy()
        start = int(sizes[:row].sum())
        own = self.table.iloc[row]
        return self.values[start : start + sizes[row]].reshape(own["rows"], own["columns"]).astype(np.float32)

    def window(self, row: int) -> Window:
        """The part of the photograph that the map of this row covers."""
        left, top, right, bottom = (int(self.table.iloc[row][name]) for name in WINDOW)
        return left, top, right, bottom

    def of_image(self, image_id: str) -> list[int]:
        """The rows of an image's maps."""
        return np.flatnonzero(self.table["image_id"] == image_id).tolist()


def attribution_runs(workspace: Workspace, collection: str, attribute: str, table: Item) -> dict[str, RunRow]:
    """Newest finished run of maps of each caption set (by name) for one attribute and table of labels."""
    found: dict[str, RunRow] = {}
    for run in runs_with(current_runs(workspace, collection, MEASURE.name), {attribute: table}):
        found.setdefault(run.spec.model, run)
    return found


def kept_maps(workspace: Workspace, run: RunRow) -> KeptMaps:
    """The maps that a finished run left."""
    table = bytes_frame(workspace.array(run.run_id, "table"))
    return KeptMaps(run, table, np.load(io.BytesIO(workspace.array(run.run_id, "maps")))["values"])
