"""Attributes of the user's own: checked, kept in the workspace, tried on captions, used by commands, deleted."""

import json

import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.attributes import FOLDER, attribute_files, known_attributes
from capbias_core.errors import CapbiasError
from capbias_core.prepare.labels import try_attribute
from capbias_core.types import Attribute
from capbias_core.workspace import custom_attributes as own_attributes
from capbias_core.workspace import derived
from capbias_core.workspace.store import Workspace

OWN = """\
name = "mood"
values = ["calm", "loud"]
mask_token = "<mood>"
[words]
calm = ["quiet", "still"]
loud = ["noisy"]
[derived]
precedence = ["loud", "calm"]
"""


@pytest.fixture
def workspace(tmp_path, monkeypatch) -> Workspace:
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return Workspace(tmp_path / "home")


def test_a_kept_attribute_is_known_beside_the_shipped_ones(workspace):
    own_attributes.keep(workspace, OWN)
    known = own_attributes.known(workspace)
    assert set(known) == set(known_attributes()) | {"mood"} and "mood" not in known_attributes()
    assert known["mood"].words == {"calm": ("quiet", "still"), "loud": ("noisy",)}
    own_attributes.keep(workspace, OWN.replace('"noisy"', '"noisy", "shouting"'))
    assert own_attributes.known(workspace)["mood"].words["loud"] == ("noisy", "shouting")
    assert [path.name for path in own_attributes.attribute_folder(workspace).iterdir()] == ["mood.toml"]


@pytest.mark.parametrize(
    ("text", "got"),
    [
        (OWN.replace('"mood"', '"Gender"', 1), "name 'Gender', which another attribute has"),
        (OWN.replace('name = "mood"\n', ""), "no name"),
        (OWN.replace('"mood"', '"../mood"', 1), "name '../mood'"),
        (OWN.replace('"mood"', '"mood.toml"', 1), "name 'mood.toml'"),
        (OWN.replace('["calm", "loud"]', '["calm"]', 1), "values = ['calm']"),
        (OWN.replace('["calm", "loud"]', '["calm", ""]', 1), "values = ['calm', '']"),
        (OWN.replace("[words]", "[word]"), "unknown keys: word"),
        (OWN.replace("<mood>", "<unk>"), "mask_token = '<unk>'"),
        (OWN.replace('"still"]', '"still"'), "(at line 6"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_leaves_nothing(workspace, text, got):
    with pytest.raises(CapbiasError) as caught:
        own_attributes.keep(workspace, text)
    assert got in caught.value.message and caught.value.hint
    assert not own_attributes.attribute_folder(workspace).exists()


def test_files_that_cannot_be_used_are_named_and_do_not_hide_the_others(workspace):
    folder = own_attributes.attribute_folder(workspace)
    own_attributes.keep(workspace, OWN)
    (folder / "gender.toml").write_text((FOLDER / "gender.toml").read_text())
    (folder / "zzz.toml").write_text("values = [")
    assert set(own_attributes.known(workspace)) == set(known_attributes()) | {"mood"}
    faults = {one.path.name: one.fault.message for one in attribute_files(folder) if one.fault}
    assert set(faults) == {"gender.toml", "zzz.toml"}
    assert "which another attribute has" in faults["gender.toml"] and "at line 1" in faults["zzz.toml"]


def test_an_attribute_that_a_table_uses_is_not_deleted(workspace):
    own_attributes.keep(workspace, OWN)
    path = own_attributes.attribute_folder(workspace) / "mood.toml"
    human = pd.DataFrame({"image_id": ["1", "2"], "caption_index": [0, 0], "caption": ["a quiet day", "Noisy!"]})
    item = workspace.keep("references", "human", human, "c", "t")
    attribute = own_attributes.known(workspace)["mood"]
    found = derived.derive(workspace, item, attribute)
    assert found.counts == {"calm": 1, "loud": 1}
    table = derived.keep_derived(workspace, found)
    with pytest.raises(CapbiasError, match="mapped to the attribute mood in mood from human in c"):
        own_attributes.delete(workspace, path)
    own_attributes.keep(workspace, OWN.replace('"noisy"', '"shouting"'))
    assert workspace.item("attributes", table.name, "c").details["attributes"]["mood"]["attribute"]["words"] == {
        "calm": ["quiet", "still"],
        "loud": ["noisy"],
    }, "a later edit does not reach what was mapped"
    workspace.delete(table)
    own_attributes.delete(workspace, path)
    assert not path.exists()
    with pytest.raises(CapbiasError, match="not in this workspace"):
        own_attributes.delete(workspace, FOLDER / "gender.toml")


def test_words_are_tried_by_hand():
    attribute = Attribute("m", "m", ("calm", "loud"), {"calm": ("quiet", "still"), "loud": ("noisy",)}, "<m>")
    captions = ["A quiet, still day", "a NOISY bus", "a quiet noisy bus", "a bus", "quiet"]
    trial = try_attribute(captions, attribute)
    assert trial.captions == 5 and trial.named == {"calm": 3, "loud": 2} and (trial.several, trial.none) == (1, 1)
    assert list(trial.words.items()) == [("quiet", 3), ("noisy", 2), ("still", 1)]
    assert trial.examples == (("A quiet, still day", "a <m> <m> day"), ("a NOISY bus", "a <m> bus"))


# the command line


def files(folder):
    labels = ["quiet", "noisy"] * 20
    rows = "".join(f"{n},{'calm' if own == 'quiet' else 'loud'}\n" for n, own in enumerate(labels))
    (folder / "labels.csv").write_text("image_id,mood\n" + rows)
    captions = [{"image_id": n, "caption": f"a {own} {'tree' if n % 3 else 'bus'}"} for n, own in enumerate(labels)]
    for name in ("model", "human"):
        (folder / f"{name}.json").write_text(json.dumps(captions))
    return ["score", "--captions", "model.json", "--attribute", "mood", "--metric"]


@pytest.mark.long
def test_score_of_files_knows_the_attributes_of_a_named_workspace(workspace, tmp_path, capsys, monkeypatch):
    """Named by CAPBIAS_HOME or by --workspace."""
    own_attributes.keep(workspace, OWN)
    ask = [*files(tmp_path), "error", "--labels", "labels.csv"]
    assert cli.main(ask) == 0
    assert ",mood,model,error," in capsys.readouterr().out
    monkeypatch.delenv("CAPBIAS_HOME")
    assert cli.main(ask) == 2, "without a workspace mood is a column, and a column has no words"
    assert "mood has no words" in capsys.readouterr().err
    assert cli.main([*ask, "--workspace", str(workspace.folder)]) == 0
    assert ",mood,model,error," in capsys.readouterr().out


def test_import_maps_and_derives_ones_own(workspace, tmp_path, capsys):
    own_attributes.keep(workspace, OWN)
    files(tmp_path)
    assert cli.main(["import", "labels.csv", "--kind", "attributes", "--attribute", "mood"]) == 0
    assert "mood (column mood): calm from calm; loud from loud" in capsys.readouterr().out
    assert cli.main(["import", "human.json", "--kind", "references"]) == 0
    derive = ["labels", "derive", "mood", "--references", "human", "--collection", "my captions"]
    assert cli.main(derive) == 0
    table = workspace.item("attributes", "mood from human", "my captions")
    assert table.details["attributes"]["mood"]["attribute"]["words"]["loud"] == ["noisy"]
