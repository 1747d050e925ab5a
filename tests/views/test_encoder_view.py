"""How another encoder reads a caption: the run, what it keeps, the chart, the terminal, the page."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from capbias_core.attackers import ATTACKERS, load_attacker
from capbias_core.attackers.base import Training
from capbias_core.attackers.networks.scratch import TransformerAttacker
from capbias_core.measures.caption_scores import attention_bytes, attention_from
from capbias_core.prepare.split import FIT, child_seed, split_around
from capbias_core.prepare.tokens import Tokens
from capbias_core.question import Question
from capbias_core.runs.plan import plan
from capbias_core.types import Attention, silent
from capbias_core.views.coloured import attention_map
from capbias_core.views.scored import caption_scores, plan_encoder_view
from capbias_core.worker import execute
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep

pytestmark = pytest.mark.torch
ASKED = ["3", "10", "11"]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Workspace:
    """70 images of each value, a caption with the value's cue for each, and their scores by ngram."""
    found = Workspace(tmp_path_factory.mktemp("reading"))
    labels = pd.DataFrame({"image_id": [str(place) for place in range(140)], "gender": ["Female", "Male"] * 70})
    rng = np.random.default_rng(1)
    who = {"Female": "woman with an umbrella", "Male": "man with a skateboard"}
    written = [f"a {who[value]} on a {rng.choice(['street', 'field'])}" for value in labels["gender"]]
    keep(found, labels=labels, captions={"cued": labels[["image_id"]].assign(caption=written)})
    done(found, scored_spec(found))
    return found


def scored_spec(workspace: Workspace) -> RunSpec:
    request = Question("c", ("cued",), "labels", "gender", ("ratio",), words=True)
    return next(spec for spec in plan(workspace, request) if spec.measure == "caption_scores")


def done(workspace: Workspace, spec: RunSpec):
    """The row of a run, computed here."""
    workspace.enqueue(spec, "c")
    execute(str(workspace.folder), spec.run_id)
    return workspace.run(spec.run_id)


@pytest.fixture(scope="module")
def small(one_thread):
    """A Transformer that learns the cue in a second."""
    with pytest.MonkeyPatch.context() as patch:
        changes = {"epochs": 12, "batch": 16, "embedding": 20, "hidden": 16, "heads": 5}
        make = lambda setup: TransformerAttacker(**changes)  # noqa: E731
        patch.setitem(ATTACKERS, "transformer_5h", replace(ATTACKERS["transformer_5h"], make=make))
        yield


@pytest.fixture(scope="module")
def read_by_transformer(workspace, small):
    return done(workspace, plan_encoder_view(workspace, scored_spec(workspace), "transformer_5h", ASKED))


def test_a_reading_is_what_the_attacker_says_that_trained_on_the_other_images(workspace):
    """ngram, fitted here by hand on the captions of the others."""
    run = done(workspace, plan_encoder_view(workspace, scored_spec(workspace), "ngram", ASKED))
    found = caption_scores(run)
    captions = workspace.frame(run.spec.captions)
    order = captions.sort_values("image_id").reset_index(drop=True)  # images are in the order of their ids, as text
    labels = (order["image_id"].astype(int) % 2).to_numpy()
    split = split_around(labels, 2, 0, np.flatnonzero(order["image_id"].isin(ASKED)))
    attacker = load_attacker("ngram")
    corpus = attacker.corpus(Tokens.of(captions["caption"]).masked(found.attribute))
    rows = order["image_id"].astype(int).to_numpy()  # the caption of each image stands at its number
    training = Training(rows[split.train], labels[split.train], child_seed(0, FIT, 0))
    (fitted,) = attacker.fit_many(corpus, [training], 2, silent)
    table = found.table
    assert sorted(table["image_id"]) == sorted(ASKED) and found.attention == ()
    expected = fitted.logits(corpus, table["image_id"].astype(int).to_numpy())
    assert table["logit0"].to_numpy() == pytest.approx(expected[:, 0], abs=1e-9)
    assert "trained on 136 other images" in run.notes[0]


def test_words_add_up_and_attention_is_of_every_layer_and_head(workspace, read_by_transformer):
    assert read_by_transformer.status == "finished", read_by_transformer.message
    found = caption_scores(read_by_transformer)
    for row, own in zip(found.table.itertuples(), found.attention, strict=True):
        assert own.words == tuple(row.masked.split()) and own.weights.shape == (2, 5, row.tokens, row.tokens)
        assert own.weights.sum(axis=-1) == pytest.approx(np.ones((2, 5, row.tokens)), abs=1e-5)
        words = found.words_of(row.Index)[:, 0]
        assert abs(row.baseline0 + words.sum() - row.logit0) <= row.delta + 1e-9
        cue = row.masked.split().index("umbrella" if row.label == 0 else "skateboard")
        assert abs(words).argmax() == cue and row.predicted == row.label


# attention as bytes, as a chart, as text

HALVES = Attention(("[CLS]", "a"), np.array([[[[0.25, 0.75], [0.5, 0.5]]], [[[1.0, 0.0], [0.125, 0.875]]]]))
ONE = Attention(("dog",), np.ones((2, 1, 1, 1)))


def test_attention_is_read_back_as_it_was():
    for found, own in zip(attention_from(attention_bytes([HALVES, ONE])), (HALVES, ONE), strict=True):
        assert found.words == own.words and (found.weights == own.weights).all()


def test_a_chart_of_attention():
    chart = attention_map(HALVES, 2, 1)
    assert np.array(chart.data[0].z).tolist() == [[1.0, 0.0], [0.125, 0.875]]
    assert list(chart.layout.yaxis.ticktext) == ["[CLS]", "a"]
