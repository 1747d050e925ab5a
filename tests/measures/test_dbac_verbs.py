"""DBAC of verbs: on sets whose best possible attacker is known, and which words are verbs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from capbias_core.prepare.tasks import mask_verbs, named_verbs, verbs_in
from capbias_core.runs.plan import Request
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep
from tests.measures.test_dbac import finished

FORMS = {"Female": "a woman", "Male": "a man"}


def measured(folder, human: list[str], model: list[str], values):
    ids = [str(place) for place in range(len(values))]
    table = pd.DataFrame({"image_id": ids, "gender": values})
    workspace = Workspace(folder)
    people, machine = (pd.DataFrame({"image_id": ids, "caption": captions}) for captions in (human, model))
    keep(workspace, labels=table, references=people, captions=machine, trained=True)
    request = Request("c", ("m",), "labels", "gender", ("dbac_verbs",), "human", seeds=3, options={"test_share": 0.2})
    return finished(workspace, request)


def test_both_directions_of_known_quality(tmp_path):
    """1,000 images; values and the verbs sit and run are independent and equally common.

    The thing named agrees with the value in 60% of the human captions and in 90% of the model's: of A->T the best
    attackers lose 0.673 and 0.325 nats, P(t) / P(a) = 1, so w is 1.49 and 3.08. Masked, nothing tells the verb: of T->A
    it is 1 / ln 2 = 1.44 on both sides. A constant attacker sees no difference.
    """
    rng = np.random.default_rng(8)
    values = np.array(["Female", "Male"])[np.arange(1000) % 2]
    verbs = np.array(["sitting", "runs"])[np.arange(1000) // 2 % 2]

    def captions(share):
        agree = rng.permutation(1000) < share * 1000
        things = np.where((values == "Female") == agree, "bed", "tie")
        return [f"{FORMS[own]} {verb} near a {thing}" for own, verb, thing in zip(values, verbs, things, strict=True)]

    run, rows = measured(tmp_path, captions(0.6), captions(0.9), values)
    value = rows["value"]
    assert value["DBAC_verbs_H", "A->T"] == pytest.approx(1 / 0.673, rel=0.05)
    assert value["DBAC_verbs_M", "A->T"] == pytest.approx(1 / 0.325, rel=0.12)
    for side in "MH":
        assert value[f"DBAC_verbs_{side}", "T->A"] == pytest.approx(1 / np.log(2), rel=0.06)
    for way in ("A->T", "T->A"):
        assert value["DBAC_verbs_constant", way] == pytest.approx(0, abs=0.5)
    assert rows.loc["DBAC_verbs", "A->T"]["ci_low"] > 0
    assert run and "2 verbs that the human captions" in " ".join(run.notes)


def test_a_verb_is_hidden_in_every_form_from_who_is_to_guess_it(tmp_path):
    """The model says the verb that people say, in another form: left in the caption, it would tell all."""
    rng = np.random.default_rng(2)
    values = np.array(["Female", "Male"])[np.arange(600) % 2]
    place = np.arange(600) // 2 % 2
    mixed = rng.permutation(place)
    human = [f"{FORMS[own]} {['rides', 'eats'][of]} there" for own, of in zip(values, mixed, strict=True)]
    model = [f"{FORMS[own]} {['riding', 'eating'][of]} there" for own, of in zip(values, mixed, strict=True)]
    _, rows = measured(tmp_path, human, model, values)
    assert rows.loc["DBAC_verbs", "T->A"]["value"] == pytest.approx(0, abs=3)
    assert rows.loc["DBAC_verbs_M", "T->A"]["value"] == pytest.approx(1 / np.log(2), rel=0.06)


def test_auxiliaries_and_words_of_the_attribute_are_no_task_words():
    names, there = named_verbs(["a man has held a cup", "people holding and eating", "a rider"])
    assert names == ["eat", "hold"] and there.toarray().tolist() == [[0, 1], [1, 1], [0, 0]]
    assert named_verbs(["a woman is holding a cup"], {"holding"})[0] == []
    assert verbs_in("a man rides past the rides") == ("", "", "ride", "", "", ""), "by its place in the caption"
    assert mask_verbs(["she held a cup holding on"], ()) == ["she <verb> a cup <verb> on"]
    assert mask_verbs(["a woman holding on"], {"holding"}) == ["a woman holding on"]
