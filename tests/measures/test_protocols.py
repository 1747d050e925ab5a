"""Protocols: what each paper fixes, what a request takes from it, and how deviations are named."""

from __future__ import annotations

from dataclasses import fields

import pytest

from capbias_core.api import ScoreRequest
from capbias_core.errors import CapbiasError
from capbias_core.measures.protocols import PROTOCOLS, deviations, protocol_of, protocol_text
from capbias_core.measures.registry import MEASURES

# Of each measure the share of images held out, as its paper has it: LIC section 5, DBAC section 5, ImageCaptioner2
# "Implementation Details" (20%; an eighth of the other 80% chooses the epoch, which is its 10%).
SHARES = {"lic": 0.1, "dbac": 0.2, "dbac_verbs": 0.2, "dpa": 0.2, "imagecaptioner2": 0.2, "vl_lic": 0.2}


@pytest.mark.parametrize(("measure", "share"), SHARES.items())
def test_measures_split_as_their_paper_does(measure, share):
    default = {field.name: field.default for field in fields(MEASURES[measure].options)}
    assert default["test_share"] == share == PROTOCOLS[protocol_of(measure) or "dbac"].settings["test_share"], (
        "the DBAC paper measures DPA"
    )


def test_a_protocol_fills_what_is_not_given():
    asked = ScoreRequest(protocol="dbac")
    assert (asked.metrics, asked.attackers, asked.seeds) == (("dbac",), ("lstm",), 10)
    assert asked.choices == {"test_share": 0.2}
    given = ScoreRequest(("lic",), ("ngram",), 3, "dbac", {"test_share": 0.1})
    assert (given.metrics, given.attackers, given.seeds, given.choices["test_share"]) == (("lic",), ("ngram",), 3, 0.1)
    assert (
        ScoreRequest().attackers == ScoreRequest(protocol="custom").attackers == ("ngram",)
        and ScoreRequest().seeds is None
    )
    assert ScoreRequest(protocol="age").seeds == 3
    with pytest.raises(CapbiasError, match="DBAC|dbac"):
        ScoreRequest(protocol="dabc")


def test_a_protocol_does_not_repeat_what_a_measure_does_anyway():
    """An option that says the usual in words makes another run of the same numbers; and a captioner of transformers
    is asked as it is, unless somebody names epochs."""
    options = MEASURES["imagecaptioner2"].options
    assert options.read(ScoreRequest(protocol="imagecaptioner2").choices).to_dict() == options().to_dict()
    assert deviations("imagecaptioner2", options.read({"judge_epochs": 3})) == ["judge epochs 3 (paper: 40)"]


def test_each_deviation_is_named():
    lic = MEASURES["lic"].options
    paper = lic.read({"attacker": "lstm_bi", "seeds": 10})
    assert deviations("lic", paper) == [] and protocol_text("lic", paper) == "lic protocol"
    text = protocol_text("lic", lic.read({"attacker": "ngram", "seeds": 10, "test_share": 0.2}))
    assert text == "lic protocol, but attacker ngram (paper: lstm_bi), test share 0.2 (paper: 0.1)"
    dbac = MEASURES["dbac"].options.read({"attacker": "lstm", "seeds": 10})
    assert deviations("dbac", dbac) == ["alignment constant (paper: contextual (GloVe, 0.4))"]
    aligned = {"name": "glove", "delta": 0.4, "digest": "", "path": ""}
    assert deviations("dbac", dbac.with_(alignment=aligned)) == []
    assert deviations("lic", paper.with_(alignment=aligned)) == ["alignment contextual_glove (paper: constant)"]
    assert protocol_text("vocabulary", MEASURES["vocabulary"].options()) == ""
