"""What a run leaves out: metrics with the reason of each, captions and objects with their number; faults end it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import capbias_core as capbias
from capbias_core.errors import CapbiasError, NotMeasurable
from capbias_core.measures.base import run_available
from capbias_core.measures.training import caption_lists, unread_notes


def lacking():
    raise NotMeasurable("No word counts.", "Load more.")


def test_only_what_the_inputs_do_not_allow_is_left_out():
    found, notes, reasons = run_available({"one": lambda: (1, "a note."), "two": lacking}, "X ")
    assert found == {"one": 1} and notes == ["X one: a note."] and reasons == {"X two": "No word counts."}
    with pytest.raises(NotMeasurable, match="No word counts"):
        run_available({"two": lacking})
    with pytest.raises(ZeroDivisionError):
        run_available({"one": lambda: (1, ""), "two": lambda: 1 / 0})


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
    lists = caption_lists(frame, frame["caption"], ["1", "2", "3", "4"], np.array([0, 1, 0, 1]), 2)
    assert [len(own.masked) for own in lists] == [4, 3] and [own.unread for own in lists] == [0, 2]
    (note,) = unread_notes("the human captions", lists)
    assert "2 of 9" in note
    whole = frame[frame["caption_index"] < 2]
    assert (
        unread_notes(
            "captions", caption_lists(whole, whole["caption"], ["1", "2", "3", "4"], np.array([0, 1, 0, 1]), 2)
        )
        == []
    )
