"""`metrics`: everything that `score --metric` takes is in the list, and each is explained."""

import pytest

from capbias_core.cli import main
from capbias_core.measures.registry import GROUPS, METRICS, NAME_RULE, expand_metrics


def test_the_list_has_every_word_that_score_takes(capsys):
    assert main(["metrics"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1 : len(GROUPS) + 1]] == list(GROUPS)
    assert " ".join(lines[len(GROUPS) + 1 :]).strip() == NAME_RULE
    (lic,) = [line for line in lines if line.startswith("lic ")]
    assert "LIC, LIC_by_H, LIC_by_M" in lic and "references" in lic


@pytest.mark.parametrize("name", [*GROUPS, *METRICS, "lic_m", "Dba"])
def test_each_is_explained_with_range_and_source(name, capsys):
    assert main(["metrics", name]) == 0
    text = capsys.readouterr().out
    for metric in expand_metrics([name]):
        assert METRICS[metric].explanation in text and METRICS[metric].source in text
    assert "range:" in text and "reading:" in text


def test_an_unknown_name_names_the_nearest_before_the_list(capsys):
    assert main(["metrics", "bleu"]) == 2
    said = capsys.readouterr().err
    assert "'bleu'" in said and said.index("bleu4") < said.index("Known")
