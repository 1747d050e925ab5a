"""The samples that lmms-eval logs (`*_samples_*.jsonl`): image id, caption and human captions stand together in the
value of a metric, such as `coco_CIDEr`."""

from __future__ import annotations

from pathlib import Path

from capbias_core.load.jsonl import numbered_objects, parsed_line
from capbias_core.load.reader import Head, Reader
from capbias_core.load.rows import PROMPT, REFERENCES, Choose, RowErrors, Rows, rows_of_numbered

NUMBER = "doc_id"  # of a sample
TAKEN = {"image_id": "image_id", "pred": "caption", "answer": REFERENCES}
COLUMNS = ("image_id", "caption", REFERENCES, PROMPT)


def _metric(sample: object) -> str:
    """The first metric whose value has an image id and a caption, '' where none has."""
    if not isinstance(sample, dict) or NUMBER not in sample:
        return ""
    own = (name for name, value in sample.items() if isinstance(value, dict) and {"image_id", "pred"} <= value.keys())
    return next(own, "")


def recognises(head: Head) -> bool:
    """Whether the first line is such a sample."""
    try:
        return head.text.startswith("{") and bool(_metric(parsed_line(head.text.split("\n", 1)[0])))
    except ValueError:
        return False


def columns(path: Path) -> tuple[str, ...]:
    """The names under which the parts of a sample are offered."""
    return COLUMNS


def read(path: Path, choose: Choose) -> Rows:
    """A row a sample; one without a metric that names an image is a fault."""
    faults, numbered, metrics = RowErrors(path.name, "line"), [], {}
    for number, sample in numbered_objects(path, faults):
        metric = _metric(sample)
        if not metric:
            faults.add(number, "no metric whose value has image_id and pred")
            continue
        metrics[metric] = None
        taken = {name: sample[metric].get(key) for key, name in TAKEN.items()}
        numbered.append((number, taken | {PROMPT: sample.get("input")}))
    note = f"image_id, pred and answer are taken from {', '.join(metrics)}; what else a sample has is left out"
    return rows_of_numbered(numbered, choose, faults, COLUMNS, (note,))


READERS = (Reader("lmms_eval", "lmms-eval samples (JSON Lines)", recognises, columns, read, place=3),)
