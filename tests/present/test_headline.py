"""Which captioner the answer is about."""

import pandas as pd

from capbias_core.views.sentence import first_to_answer


def test_who_is_shown_to_amplify_answers_before_a_higher_value_that_is_not():
    rows = pd.DataFrame(
        {
            "model": ["wide", "clear", "less", "clearer"],
            "value": [12.0, 5.0, -3.0, 7.0],
            "verdict": ["inconclusive", "amplifies", "reduces", "amplifies"],
            "ci_low": float("nan"),
        }
    )
    assert first_to_answer(rows)["model"].tolist() == ["clearer", "clear", "wide", "less"]
    few = pd.DataFrame(
        {"model": ["few", "many"], "value": [10.6, 5.1], "ci_low": [1.7, 2.8], "verdict": "inconclusive"}
    )
    assert first_to_answer(few)["model"].tolist() == ["many", "few"], "a high value of few images answers nothing"
