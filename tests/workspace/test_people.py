"""Where people sign in, each cancels, replaces and deletes only what is their own."""

from __future__ import annotations

import pandas as pd
import pytest

from capbias_core.errors import CapbiasError
from capbias_core.runs.engine import Engine
from capbias_core.runs.plan import Request, plan
from capbias_core.workspace import custom_attributes, people
from capbias_core.workspace.ingest import load_demo
from capbias_core.workspace.store import Item, Workspace


@pytest.fixture
def shared(tmp_path) -> Workspace:
    return Workspace(tmp_path / "lab")


@pytest.fixture
def signed_in():
    """Somebody uses the page from now on."""

    def sign_in(name: str) -> None:
        people.ask(lambda: name)

    return sign_in


def keep(workspace: Workspace, caption: str) -> Item:
    frame = pd.DataFrame({"image_id": ["1"], "caption": [caption], "caption_index": [0]})
    return workspace.keep("captions", "sat", frame, "coco", "here")


def test_only_the_owner_replaces_and_deletes(shared, signed_in):
    signed_in("anna")
    first = keep(shared, "a dog")
    assert first.owner == shared.items()[0].owner == "anna"
    signed_in("ben")
    assert keep(shared, "a dog").owner == "anna", "the same again changes nothing"
    for change in (lambda: keep(shared, "a cat"), lambda: shared.delete(first)):
        with pytest.raises(CapbiasError, match="Only its owner can change sat"):
            change()
    assert shared.frame(shared.items()[0].hash)["caption"].tolist() == ["a dog"]
    signed_in("anna")
    after = keep(shared, "a cat")
    assert shared.items() == [after]
    shared.delete(shared.items()[0])
    assert not shared.items()


def test_what_a_terminal_kept_is_nobodys_but_in_ones_own_workspace(tmp_path, signed_in):
    lab, own = Workspace(tmp_path / "lab"), Workspace(tmp_path / "anna")
    items = [keep(workspace, "a dog") for workspace in (lab, own)]
    signed_in("anna")
    with pytest.raises(CapbiasError, match="whoever runs the server can change"):
        lab.delete(items[0])
    own.delete(items[1])
    assert lab.items() and not own.items()


def test_only_who_started_a_run_cancels_it(shared, signed_in):
    signed_in("anna")
    load_demo(shared)
    request = Request("demo", ("amplifier", "faithful"), "labels", "gender", ("ratio",))
    first, second = plan(shared, request)
    shared.enqueue(first, "demo", "t")
    signed_in("ben")
    shared.enqueue(second, "demo", "t")
    engine = Engine(shared.folder)
    with pytest.raises(CapbiasError, match="Only its owner can change the run"):
        engine.cancel(first.run_id)
    assert engine.cancel_all() == 1
    assert {run.owner: run.status for run in shared.runs()} == {"anna": "queued", "ben": "cancelled"}
    signed_in("")
    assert engine.cancel(first.run_id), "a terminal and a server without sign-in may"


def test_attributes_have_owners_too(shared, signed_in):
    def text(word: str) -> str:
        return (
            'name = "role"\ntitle = "Role"\nvalues = ["Cook", "Rider"]\nmask_token = "<role>"\nnote = "Ours."\n'
            f'[words]\nCook = ["{word}"]\nRider = ["rider"]\n'
        )

    signed_in("anna")
    custom_attributes.keep(shared, text("cook"))
    path = custom_attributes.attribute_folder(shared) / "role.toml"
    signed_in("ben")
    for change in (
        lambda: custom_attributes.keep(shared, text("chef")),
        lambda: custom_attributes.delete(shared, path),
    ):
        with pytest.raises(CapbiasError, match="Only its owner can change role"):
            change()
    assert custom_attributes.known(shared)["role"].words["Cook"] == ("cook",)
    signed_in("anna")
    custom_attributes.keep(shared, text("chef"))
    assert custom_attributes.owner_of(path) == "anna"
    custom_attributes.delete(shared, path)
    assert not list(path.parent.iterdir())
    signed_in("")
    custom_attributes.keep(shared, text("cook"))
    assert custom_attributes.owner_of(path) == "", "in a terminal everything is everybody's"
