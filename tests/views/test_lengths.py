"""Captions cut short: cuts by hand, sets that are kept, and a captioner that leaks in its later words alone."""

import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.prepare.text import SENTENCE, shortened
from capbias_core.views.lengths import by_length, cuts_of
from capbias_core.workspace.conditions import originals
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep

LONG = 'A man, 3.5 feet tall, says "no!" He runs. Fast'


def test_a_cut_by_hand():
    for words, text in ((1, "A"), (2, "A man"), (SENTENCE, 'A man, 3.5 feet tall, says "no!"'), (500, LONG)):
        assert shortened(LONG, words) == text
    assert shortened("a dog on a sofa", SENTENCE) == "a dog on a sofa" and shortened("", SENTENCE) == ""
    endless = "?" * 100_000 + "'" * 100_000 + "x"  # takes a minute where a search begins anew at each mark
    assert shortened(endless, SENTENCE) == endless


@pytest.mark.long
def test_a_captioner_leaks_where_it_says_more(tmp_path, capsys):
    """Captions begin alike; their eighth word gives the label away."""
    workspace, labels = Workspace(tmp_path / "home"), ["Female", "Male"] * 100
    said = [f"there is someone in a room. A {'pink' if label == 'Female' else 'blue'} chair" for label in labels]
    table = pd.DataFrame({"image_id": range(200), "gender": labels})
    keep(workspace, labels=table, captions={"model": table[["image_id"]].assign(caption=said)})
    asked = ["score", "--view", "lengths", "--collection", "c", "--captioner", "model", "--seeds", "2", "--workspace"]
    assert cli.main([*asked, str(workspace.folder), "--output", str(tmp_path / "out.csv")]) == 0
    assert "note: model: first 10 words, first 20 words, first 40 words cut no caption" in capsys.readouterr().err
    rows = pd.read_csv(tmp_path / "out.csv").query("metric == 'SC'")
    assert rows["cut"].tolist() == ["first 5 words", "first sentence", "all"], "20 words and 40 cut nothing"
    assert rows["words"].tolist() == [5, 6, 9]
    assert rows["value"].tolist() == [50, 50, 100]
    items = workspace.items("captions", "c")
    assert originals(items) == ["model"], "cuts are compared when one asks for them"
    assert [item.name for item in cuts_of(workspace, "c")["model"]][-1] == "model"
    assert len(by_length(workspace, "c", workspace.results())) >= 3
