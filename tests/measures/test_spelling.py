"""Final stops, capitals and spaces change no number, whichever side's captions have them."""

import json

import numpy as np
import pandas as pd
import pytest

import capbias_core as capbias
from capbias_core.measures.registry import MEASURES
from capbias_core.workspace.ingest import DEMO_FOLDER

# Every metric that reads captions in the web server's process and no word vectors. Caption quality has its own test.
READING = [own for own in MEASURES.values() if own.in_process and not own.makes and not own.needs.vectors]
METRICS = [row.name for own in READING for row in own.metrics]
OBJECTS = ("dog", "cup", "umbrella", "two bananas", "hot dog")
SPELLED = {
    "stops behind a space": "{} .".format,
    "all in capitals": str.upper,
    "double spaces": lambda caption: f" {caption} ".replace(" ", "  "),
    "all of it": lambda caption: f"{caption}.\n".capitalize().replace(" ", "  "),
}
# Of the captioner's captions, and of the human ones.
CASES = [("all in capitals", "stops behind a space"), ("double spaces", "all of it")]


@pytest.fixture(scope="module")
def captions():
    """Captions of 100 images of the demo, one of a captioner and three human ones, that end in an object; and refusals.
    The labels, and the objects of the images."""
    labels, objects = (pd.read_csv(DEMO_FOLDER / name, dtype=str) for name in ("attributes.csv", "objects.csv"))
    labels = labels[labels["gender"].isin(["Female", "Male"])].groupby("gender").head(50)
    rng, sides = np.random.default_rng(4), {}
    for side, name in (("model", "results/plain.json"), ("human", "references.json")):
        rows = json.loads((DEMO_FOLDER / name).read_text())
        frame = pd.DataFrame(rows["annotations"] if isinstance(rows, dict) else rows).astype({"image_id": str})
        frame = frame[frame["image_id"].isin(labels["image_id"])].groupby("image_id").head(3 if side == "human" else 1)
        ends = rng.choice(OBJECTS, len(frame))
        sides[side] = frame.assign(caption=frame["caption"].str.rstrip(". ").str.lower() + " and " + ends)
    sides["model"].iloc[:5, sides["model"].columns.get_loc("caption")] = "i'm sorry, i cannot describe this image"
    return sides, labels, objects[objects["image_id"].isin(labels["image_id"])]


def numbers(captions, folder, spelled: dict[str, str]) -> pd.DataFrame:
    """Every number, with files that are written and read."""
    sides, labels, objects = captions
    paths = {}
    for name, frame in {**sides, "labels": labels, "objects": objects}.items():
        if name in spelled:
            frame = frame.assign(caption=frame["caption"].map(SPELLED[spelled[name]]))
        paths[name] = folder / f"{name}.csv"
        frame.to_csv(paths[name], index=False)
    files = paths["labels"], "gender", paths["human"]
    report = capbias.score({"m": paths["model"]}, *files, METRICS, seeds=1, objects=paths["objects"], per_object=True)
    keys = ["metric", "direction", "group", "object"]
    return report.table.set_index(keys)[["value", "spread", "ci_low", "ci_high", "n"]].astype(float).sort_index()


@pytest.fixture(scope="module")
def usual(captions, tmp_path_factory):
    found = numbers(captions, tmp_path_factory.mktemp("usual"), {})
    assert set(found.index.unique("metric")) == set(METRICS)
    return found


@pytest.mark.long
@pytest.mark.parametrize(("model", "human"), CASES)
def test_spelling_changes_no_number(model, human, captions, usual, tmp_path):
    found = numbers(captions, tmp_path, {"model": model, "human": human})
    pd.testing.assert_frame_equal(found, usual, check_exact=True)
