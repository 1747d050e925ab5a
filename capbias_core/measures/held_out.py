"""What measures share whose evidence is held-out predictions: estimates, and the evidence as bytes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from capbias_core.aggregate import Estimate, difference, estimate
from capbias_core.measures.base import Metric, RatioMetric, by_name
from capbias_core.metrics.evidence import HeldOut, Ratio
from capbias_core.metrics.lic import lic_scores
from capbias_core.metrics.sentence_classification import right_predictions
from capbias_core.workspace.store import RunRow, Workspace, bytes_frame, frame_bytes


def confidence_where_right(evidence: HeldOut) -> Ratio:
    """LIC's: the confidence of each right prediction, over captions."""
    return Ratio(lic_scores(evidence.probabilities, evidence.label), np.ones(len(evidence.label)))


def accuracy(evidence: HeldOut) -> Ratio:
    """SC's: right predictions, over captions."""
    return Ratio(right_predictions(evidence.probabilities, evidence.label), np.ones(len(evidence.label)))


def estimates_of(metrics: Iterable[Metric], model: HeldOut, reference: HeldOut | None) -> dict[str, Estimate]:
    """Each of these metrics that both sides allow, by name: a RatioMetric, or a difference, which names the metric of
    both sides in `of`."""
    rows, found = by_name(*metrics), {}
    ratios = {name: row.ratio for name, row in rows.items() if isinstance(row, RatioMetric)}
    for name, row in rows.items():
        if row.of and reference is not None:
            ratio = ratios[row.of]
            found[name] = difference(ratio(model), model, ratio(reference), reference, row.scale, row.range)
        elif name in ratios and (evidence := reference if row.side == "human" else model) is not None:
            found[name] = estimate(ratios[name](evidence), evidence, row.scale, row.range)
    return found


def stored_estimates(metrics: Iterable[Metric], workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The estimates of a finished run again from its held-out predictions, by metric and direction."""
    reference = held_out_from(workspace.array(run.run_id, "human")) if run.spec.references else None
    model = held_out_from(workspace.array(run.run_id, "model"))
    return {(name, ""): own for name, own in estimates_of(metrics, model, reference).items()}


def held_out_arrays(model: HeldOut, reference: HeldOut | None) -> dict[str, bytes]:
    """What a run leaves of both sides."""
    return {"model": held_out_bytes(model)} | ({"human": held_out_bytes(reference)} if reference is not None else {})


def held_out_bytes(evidence: HeldOut) -> bytes:
    """Held-out predictions as Parquet; `held_out_from` reads them back."""
    frame = pd.DataFrame({"seed": evidence.seed, "image": evidence.image, "label": evidence.label})
    for value in range(evidence.probabilities.shape[1]):
        frame[f"p{value}"] = evidence.probabilities[:, value]
    frame["training"] = evidence.training
    frame["image_id"] = pd.Categorical.from_codes(evidence.image, list(evidence.images))
    return frame_bytes(frame)


def held_out_from(data: bytes) -> HeldOut:
    """The held-out predictions in Parquet bytes."""
    frame = bytes_frame(data)
    scores = frame[[column for column in frame if column.startswith("p")]].to_numpy()
    seed, image, label = (frame[name].to_numpy() for name in ("seed", "image", "label"))
    training = int(frame["training"].iloc[0])
    return HeldOut(tuple(frame["image_id"].cat.categories), seed, image, label, scores, training)
