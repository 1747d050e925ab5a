"""The front page: who answers first, and how well the attackers behind its words guess."""

from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from capbias_core.attributes import get_attribute
from capbias_core.question import Question
from capbias_core.runs.engine import Engine
from capbias_core.runs.plan import plan
from capbias_core.views.answer import guessing_row
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
