"""The front page: who answers first, and rows of text and bars, of which nothing of a file is markup."""

import html
import re
from dataclasses import replace
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pandas as pd
import pytest

from capbias_core.attributes import get_attribute, plain_attribute
from capbias_core.question import Question
from capbias_core.runs.engine import Engine
from capbias_core.runs.plan import plan
from capbias_core.views.answer import guessing_row, interval_rows, word_rows
from capbias_core.views.results import Comparison, comparisons, while_running
from capbias_core.views.sentence import first_to_answer
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep


def test_who_is_shown_to_amplify_answers_before_a_higher_value_that_is_not():
    columns, nan = ["model", "value", "verdict", "ci_low"], float("nan")
    given = [("wide", 12.0, "inconclusive", nan), ("clear", 5.0, "amplifies", nan)]
    given += [("less", -3.0, "reduces", nan), ("clearer", 7.0, "amplifies", nan)]
    answering = first_to_answer(pd.DataFrame(given, columns=columns))
    assert answering["model"].tolist() == ["clearer", "clear", "wide", "less"]
    few = pd.DataFrame([("few", 10.6, "inconclusive", 1.7), ("many", 5.1, "inconclusive", 2.8)], columns=columns)
    assert first_to_answer(few)["model"].tolist() == ["many", "few"], "a high value of few images answers nothing"


GENDER = get_attribute("gender")
HOSTILE = '<img src=x onerror="alert(1)">'


def lic_rows(**changes) -> pd.DataFrame:
    values = {"model": ["low", "high"], "value": [-4.0, 8.0], "ci_low": [-8.0, 6.0], "ci_high": [-2.0, 12.0]}
    more = {"metric": "LIC", "interval": "refits", "spread": [0.5, 0.25], "seeds": 10, "scale": 100.0}
    more |= {"training": [68, 1418], "n": [8, 158]}
    return pd.DataFrame(values | more).assign(**changes)


def places(text: str, kind: str) -> list[float]:
    return [float(value) for value in re.findall(rf'cb-{kind}" style="left:([\d.]+)%', text)]


def test_dots_intervals_and_the_neutral_point_stand_where_their_values_are():
    """From -8 to 12 with 6% room at both ends: a value v stands at (v + 8 + 1.2) / 22.4."""
    text = interval_rows(lic_rows(), "LIC", GENDER, {"low": "a", "high": "b"})
    assert places(text, "dot") == pytest.approx([100 * 17.2 / 22.4, 100 * 5.2 / 22.4], abs=0.01)
    assert places(text, "line") == pytest.approx([100 * 15.2 / 22.4, 100 * 1.2 / 22.4], abs=0.01)
    assert places(text, "neutral") == pytest.approx([100 * 9.2 / 22.4] * 2, abs=0.01)
    assert text.index("high") < text.index("low"), "the highest value comes first"
    assert "8.0 [6.0, 12.0]" in text and "−4.0 [−8.0, −2.0]" in text and "(b)</span>" in text
    assert "LIC 8.00 [6.00, 12.00] 95% with refits; ±0.25 std over 10 seeds" in text
    assert "high<small>1,576 images</small>" in text and "low<small>76 images</small>" in text
    lengths = {"low": 91.2, "high": 10.2}
    text = interval_rows(lic_rows(), "LIC", GENDER, {}, words=lengths)
    assert "76 images, 91 words" in text and "1,576 images, 10 words" in text
    assert "words" not in interval_rows(lic_rows(), "LIC", GENDER, {}, words=lengths | {"low": 11.0})
    # Chance, and a value without an interval.
    rows = lic_rows(metric="LIC_M", value=[40.0, 50.0], ci_low=None, ci_high=None, spread=None).head(1)
    text = interval_rows(rows, "LIC_M", GENDER, {"low": "a"})
    assert "chance 25" in text and ">40.0<" in text and ">a</span>" not in text and "std" not in text
    assert "width:0.00%" in text


def words(*rows) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["word", "mean", "toward", "count"])


def bars(text: str) -> list[tuple[float, float]]:
    found = re.findall(r'cb-fill" style="left:([\d.]+)%;width:([\d.]+)%', text)
    return [(float(left), float(width)) for left, width in found]


def test_bars_of_two_values_go_both_ways_of_three_one_way_and_link_to_the_captions():
    text = word_rows(words(("cake", 0.5, 0, 3000), ("tie", 1.0, 1, 7)), GENDER, "Captions", {"set": "a&b"})
    assert bars(text) == [(50.0, 50.0), (25.0, 25.0)] and "3,000 captions" in text and "toward Female" in text
    first = urlsplit(html.unescape(re.search(r'href="([^"]+)"', text)[1]))
    assert first.path == "Captions" and parse_qs(first.query) == {"set": ["a&b"], "word": ["tie"]}
    ages = plain_attribute("age", ("young", "middle", "old"))
    text = word_rows(words(("toy", 0.5, 0, 10), ("cane", 1.0, 2, 4)), ages, "Captions", {})
    assert bars(text) == [(0.0, 50.0), (0.0, 100.0)] and "young, 10 captions" in text and "old, 4 captions" in text


def test_names_and_words_are_text_only():
    text = interval_rows(lic_rows(model=[HOSTILE, "b"]), "LIC", GENDER, {HOSTILE: "a", "b": "b"}, HOSTILE)
    text += word_rows(words((HOSTILE, 1.0, 1, 3)), GENDER, "Captions", {"set": HOSTILE})
    assert "<img" not in text and 'onerror="' not in text and "&lt;img" in text


@pytest.mark.long
def test_whether_attackers_guess_is_read_on_all_images_as_their_words_are(tmp_path):
    workspace, labels = Workspace(tmp_path), ["Female", "Male"] * 60
    table = pd.DataFrame({"image_id": range(120), "gender": labels})
    said = table[["image_id"]].assign(caption=["a cat" if label == "Female" else "a dog" for label in labels])
    keep(workspace, labels=table, captions=said, references=said[:40])
    engine = Engine(tmp_path)
    request = Question("c", ("m",), "labels", "gender", ("lic",), "human", seeds=2)
    engine.wait(engine.submit(plan(workspace, request), "c"))
    engine.close()
    best = comparisons(workspace, "c")[0]
    assert set(workspace.results(best.run_ids)["coverage"]) == {"with_references"}
    row = guessing_row(workspace, "c", best, "m")
    assert (row["metric"], row["coverage"], row["training"]) == ("SC", "", 108)
    assert guessing_row(workspace, "c", replace(best, attacker="rnn"), "m")["coverage"] == "with_references"


def test_an_answer_waits_for_the_papers_seeds_and_then_stays():
    """While the demo is scored, `minilm` with 5 seeds is finished; `ngram` with 30 arrives, then its words."""
    gender = get_attribute("gender")

    def one(attacker: str, seeds: int) -> Comparison:
        return Comparison(gender, attacker, seeds, "", "", "", ())

    def run(measure: str, attacker: str, seeds: int):
        spec = SimpleNamespace(attribute={"name": "gender"}, attacker=attacker, measure=measure, seeds=range(seeds))
        return SimpleNamespace(spec=spec)

    few, enough, network = one("minilm", 5), one("ngram", 30), one("rnn", 10)
    words = run("caption_scores", "ngram", 1)
    assert while_running([few], [run("lic", "ngram", 30), words]) == []
    assert while_running([enough, few], [run("lic", "ngram", 30), words]) == [enough, few]
    assert while_running([enough, few], [words]) == [enough, few]
    assert while_running([network, enough], [run("lic", "rnn", 10)]) == [enough, network]
    assert while_running([few], [run("lic", "rnn", 5)]) == [few]
    assert while_running([enough, few], []) == [enough, few]
