"""What a run leaves out: metrics with the reason of each, captions and objects with their number; faults end it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import capbias_core as capbias
from capbias_core.attributes import get_attribute
from capbias_core.errors import CapbiasError, NotMeasurable
from capbias_core.measures import bias_amplification
from capbias_core.measures.base import run_available
from capbias_core.measures.gender_score_common import ObjectChoices, gendered
from capbias_core.measures.training import caption_lists, unread_notes
from capbias_core.runs.engine import execute
from capbias_core.runs.plan import Request, plan
from capbias_core.workspace.catalogue import Unavailable
from capbias_core.workspace.ingest import DEMO, load_demo
from capbias_core.workspace.store import Workspace


def lacking():
    raise NotMeasurable("No word counts.", "Load more.")


def full_disk():
    raise Unavailable("The disk is full.", "Free some space.")


def test_only_what_the_inputs_do_not_allow_is_left_out():
    found, notes, reasons = run_available({"one": lambda: (1, "a note."), "two": lacking}, "X ")
    assert found == {"one": 1} and notes == ["X one: a note."] and reasons == {"X two": "No word counts."}
    with pytest.raises(NotMeasurable, match="No word counts"):
        run_available({"two": lacking})
    with pytest.raises(Unavailable):
        run_available({"one": lambda: (1, ""), "two": full_disk})
    with pytest.raises(ZeroDivisionError):
        run_available({"one": lambda: (1, ""), "two": lambda: 1 / 0})


@pytest.fixture
def demo(tmp_path) -> Workspace:
    found = Workspace(tmp_path)
    load_demo(found)
    return found


def run_of(workspace: Workspace, *metrics: str, human: str = "human"):
    (spec,) = plan(workspace, Request(DEMO, ("amplifier",), "labels", "gender", metrics, human))
    workspace.enqueue(spec, DEMO, "t")
    execute(str(workspace.folder), spec.run_id, "t")
    return workspace.run(spec.run_id)


@pytest.mark.parametrize(("fault", "status"), [(lacking, "finished"), (full_disk, "failed"), (lambda: 1 / 0, "failed")])
def test_a_full_disk_fails_a_run_and_a_lack_does_not(demo, monkeypatch, fault, status):
    monkeypatch.setattr(bias_amplification, "_dba_o", lambda sides: fault())
    run = run_of(demo, "ba", "dba")
    assert run.status == status
    if status == "finished":
        assert run.lacking == {"DBA_O": "No word counts."} and "DBA_O left out: No word counts." in run.notes
    assert (len(demo.results([run.run_id])) > 0) == (status == "finished")


def test_the_reason_of_a_metric_is_its_own():
    """No caption names a value, so that there is no BA; how DBA_O depends on the images is no reason."""
    images = [str(image) for image in range(120)]
    labels = [{"image_id": image, "gender": "Female" if int(image) % 2 else "Male"} for image in images]
    captions = [
        {"image_id": image, "caption": f"a person with a {'dog' if int(image) % 3 else 'cat'}"} for image in images
    ]
    report = capbias.score(captions, labels=labels, attribute="gender", references=captions, metrics=["ba", "dba_o"])
    assert set(report.left_out) == {"BA", "BA_crossfit"} and set(report.table["metric"]) == {"DBA_O"}
    assert "value of gender" in report.left_out["BA"] and "halves" not in report.left_out["BA"]
    assert not any("BA left out" in note for note in report.notes), "said once"
    with pytest.raises(CapbiasError, match="value of gender"):
        report["BA"]


def test_captions_beyond_the_last_index_are_counted():
    """Of four images three have a second caption, one a third and a fourth."""
    rows = [("1", 4), ("2", 2), ("3", 2), ("4", 1)]
    frame = pd.DataFrame(
        [(image, index, "a dog") for image, n in rows for index in range(n)],
        columns=["image_id", "caption_index", "caption"],
    )
    lists = caption_lists(frame, ["1", "2", "3", "4"], np.array([0, 1, 0, 1]), 2, list)
    assert [len(own.masked) for own in lists] == [4, 3] and [own.unread for own in lists] == [0, 2]
    (note,) = unread_notes("the human captions", lists)
    assert "2 of 9" in note
    whole = frame[frame["caption_index"] < 2]
    assert unread_notes("captions", caption_lists(whole, ["1", "2", "3", "4"], np.array([0, 1, 0, 1]), 2, list)) == []


def test_objects_that_a_detector_is_unsure_of_are_counted():
    frame = pd.DataFrame({"image_id": ["1", "2", "3"], "caption": ["a man", "a woman", "a man"]})
    objects = pd.Series({"1": "cat:0.9|dog:0.19|person:0.99", "2": "a:0.3|b:0.4|c:0.5|d:0.6", "9": "e:0.1"})
    data = gendered(frame, get_attribute("gender"), objects, ObjectChoices(objects_from="image"))
    assert data.unsure == 2, "the dog, and the fourth object of image 2"


def test_captions_without_a_label_and_images_without_references_are_counted(demo):
    item = demo.item("attributes", "labels", DEMO)
    table = demo.frame(item.hash)
    table = table[table["gender"].isin(["Female", "Male"])].iloc[30:].reset_index(drop=True)
    demo.keep("attributes", "labels", table, DEMO, "drawn", item.details)
    human = demo.frame(demo.item("references", "human", DEMO).hash)
    with_human = human[human["image_id"].isin(table["image_id"].iloc[50:])].reset_index(drop=True)
    demo.keep("references", "human", with_human, DEMO, "drawn")
    captions = demo.frame(demo.item("captions", "amplifier", DEMO).hash)
    labelled = captions["image_id"].isin(table["image_id"]).sum()
    said = " ".join(run_of(demo, "naming").notes)
    assert labelled == len(table) and f"{len(captions) - labelled} of the captions" in said
    assert f"Only {labelled - 50:,} of the {labelled:,} labelled images" in said
