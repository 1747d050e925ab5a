"""How far a detector agrees with people: a table, and a sentence over all photographs."""

from __future__ import annotations

import pandas as pd

from capbias_core.aggregate.detection_agreement import Agreement
from capbias_core.vision.overlap import LEAST_OVERLAP


def agreement_table(found: Agreement) -> pd.DataFrame:
    """The rows of an agreement with one over all photographs, for a reader."""
    whole = {
        "image_id": "all",
        "annotated": found.annotated,
        "boxes": found.boxes,
        "found": found.found,
        "recall": found.recall,
        "mean_iou": found.mean_iou,
    }
    table = pd.concat([found.rows, pd.DataFrame([whole])], ignore_index=True)
    return table.assign(
        **{
            name: table[name].map(lambda value: "" if value != value else f"{value:.3f}")
            for name in ("recall", "mean_iou")
        }
    )


def agreement_line(found: Agreement, name: str) -> str:
    """What an agreement says over all, with its intervals."""
    parts = [
        f"{words} {value:.3f}" + (f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval[0] is not None else "")
        for words, value, interval in (
            ("recall", found.recall, found.recall_interval),
            ("mean IoU", found.mean_iou, found.mean_iou_interval),
        )
    ]
    return (
        f"{name}: {', '.join(parts)}; {found.found:,} of {found.annotated:,} annotated found (IoU {LEAST_OVERLAP:g} "
        f"and more) on {len(found.rows):,} photographs; 95% intervals over photographs (Wilson)"
    )
