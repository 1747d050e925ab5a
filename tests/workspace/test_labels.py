"""From a table of labels to an attribute; attributes that users define: stored, used by commands, deleted."""

import json
from pathlib import Path

import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.attributes import FOLDER, attribute_files, attribute_folder, known_attributes
from capbias_core.errors import CapbiasError
from capbias_core.prepare.labels import try_attribute
from capbias_core.types import Attribute
from capbias_core.workspace import derived
from capbias_core.workspace.labels import (
    attribute_from,
    compared_lines,
    labels_for,
    mapping_overrides,
    resolve_attribute,
    resolve_attributes,
    unread_columns,
)
from capbias_core.workspace.store import Workspace

# By hand: 6 of one, 4 of the other, and labels of nobody.
LABELS = ["a"] * 6 + ["b"] * 4 + ["Both", "-", "N/A", ""]
COUNTS = {"Female": 6, "Male": 4}


def table(column: str, first: str, second: str) -> pd.DataFrame:
    names = {"a": first, "b": second}
    labels = [names.get(label, label) for label in LABELS]
    return pd.DataFrame({"image_id": [str(index) for index in range(len(labels))], column: labels})


@pytest.mark.parametrize(
    ("column", "first", "second"),
    [
        ("gender", "feminine", "masculine"),
        ("Answer.gender", "W", "M"),
        ("Geschlecht", "weiblich", "männlich"),
        ("pronouns", "['0. She/her/hers']", "['1. He/him/his']"),
    ],
)
def test_labels_are_understood(column, first, second):
    frame = table(column, first, second)
    details = resolve_attribute(frame, "gender")
    assert (details["attribute"]["name"], details["column"]) == ("gender", column)
    labels = labels_for(frame, attribute_from(details["attribute"]), column, details["mapping"])
    assert labels.values.value_counts().to_dict() == COUNTS
    assert labels.dropped == {"Both": 1, "-": 1, "N/A": 1, "": 1}
    assert compared_lines(frame, details) == [f"labels read: Female from {first}; Male from {second}"]
    assert compared_lines(frame, details | {"mapping": {"FEMALE": "Female", "male ": "Male", "": None}}) == []


@pytest.mark.parametrize(
    ("column", "first", "second", "flags"),
    [  # only 1 in a column called after a value says what it means
        ("gender", "0", "1", "--map gender:0=___ --map gender:1=___ --map gender:Both=___"),
        ("Male", "-1", "1", "--map gender:-1=___ --map gender:1=Male --map gender:Both=___"),
        ("is_female", "True", "False", "--map gender:True=Female --map gender:False=___ --map gender:Both=___"),
        ("sex", "type A", "type B", "--map 'gender:type A=___' --map 'gender:type B=___' --map gender:Both=___"),
        ("sex", "(an object)", "x", "--map 'gender:(an object)=___' --map gender:x=___ --map gender:Both=___"),
    ],
)
def test_labels_that_are_not_understood_are_listed_with_blanks_to_fill_in(column, first, second, flags):
    frame = table(column, first, second)
    with pytest.raises(CapbiasError) as refused:
        resolve_attribute(frame, "gender")
    assert f"{first} (6), {second} (4)" in refused.value.message and f": {flags};" in refused.value.hint
    assert "mapping={" in refused.value.hint
    with pytest.raises(CapbiasError) as blank:
        resolve_attribute(frame, "gender", overrides=mapping_overrides([f"gender:{first}=___"]))
    assert f"gender:{first}=___" in blank.value.message
    details = resolve_attribute(
        frame, "gender", overrides=mapping_overrides([f"gender:{first}=Female", f"gender:{second}=Male"])
    )
    labels = labels_for(frame, attribute_from(details["attribute"]), details["column"], details["mapping"])
    assert labels.values.value_counts().to_dict() == COUNTS


def test_ages_in_years_are_refused_without_a_flag_for_each():
    frame = pd.DataFrame({"image_id": list(map(str, range(40))), "age": list(map(str, range(20, 60)))})
    with pytest.raises(CapbiasError) as refused:
        resolve_attribute(frame, "age")
    assert "column age " in refused.value.message and "--map" not in refused.value.hint


@pytest.mark.parametrize(
    "pairs",
    [
        ["gender"],
        ["gender:0=Woman"],
        ["gender:7=Female"],
        ["gender:0=Female"],
        ["age:0=old", "gender:0=Female", "gender:1=Male"],
    ],
)
def test_wrong_mappings_are_refused(pairs):
    with pytest.raises(CapbiasError):
        resolve_attributes(table("gender", "0", "1"), ["gender"], mapping_overrides(pairs))


def test_which_attributes_a_table_holds():
    frame = pd.DataFrame(
        {
            "image_id": list("1234"),
            "HITId": list("abcd"),
            "first": ["F", "M", "F", "M"],
            "second": ["woman", "man", "man", "man"],
            "AgePresentation": ["Young", "Older", "Middle", "Unknown"],
            "kind": ["x", "x", "y", "y"],
            "skin": ["1", "2", "1", "2"],
        }
    )
    with pytest.raises(CapbiasError) as asked:
        resolve_attributes(frame)
    assert "--attribute gender=first or --attribute gender=second, or with all" in asked.value.hint
    with pytest.raises(CapbiasError) as asked:
        resolve_attribute(frame, "gender")
    assert "--attribute-column first or --attribute-column second" in asked.value.hint
    assert asked.value.arguments == ("attribute_column",)
    assert "(first: F (2), M (2); second: man (3), woman (1))" in asked.value.message
    assert resolve_attribute(frame, "gender", "second")["column"] == "second"
    pairs = ["gender=first", "gender=second"]
    assert [details["column"] for details in resolve_attributes(frame, pairs)] == ["first", "second"]
    resolved = resolve_attributes(frame, each=True)  # the user said that there is a column per annotator
    assert [(one["attribute"]["name"], one["column"]) for one in resolved] == [
        ("age", "AgePresentation"),
        ("gender", "first"),
        ("gender", "second"),
    ]
    (unread,) = unread_columns(frame, resolved)
    assert "column skin " in unread.message and "--map race:1=___" in unread.hint
    frame = frame.drop(columns="second")
    assert [one["column"] for one in resolve_attributes(frame)] == ["AgePresentation", "first"]
    mapped = resolve_attributes(frame, (), mapping_overrides(["race:1=Light", "race:2=Dark"]))
    assert "skin" in {one["column"] for one in mapped} and unread_columns(frame, mapped) == []
    for columns in (["skin"], ["HITId", "kind"]):
        with pytest.raises(CapbiasError):
            resolve_attributes(frame[["image_id", *columns]])
    with pytest.raises(CapbiasError) as asked:
        resolve_attribute(frame.rename(columns={"first": "annotator_gender"}), "gender")
    assert "about the annotators" in asked.value.message


# attributes that users define

MOOD = """\
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


def keep_mood(workspace: Workspace, text: str = MOOD) -> Path:
    folder = attribute_folder(workspace.folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mood.toml").write_text(text)
    return folder


def test_an_attribute_in_the_folder_is_used(workspace):
    folder = keep_mood(workspace)
    (folder / "gender.toml").write_text((FOLDER / "gender.toml").read_text())
    (folder / "zzz.toml").write_text("values = [")
    mood = known_attributes(folder)["mood"]
    assert set(known_attributes(folder)) == set(known_attributes()) | {"mood"}, "broken files hide no other"
    assert {file.path.name for file in attribute_files(folder) if file.fault} == {"gender.toml", "zzz.toml"}
    human = pd.DataFrame({"image_id": ["1", "2"], "caption_index": [0, 0], "caption": ["a quiet day", "Noisy!"]})
    labels = derived.derive(workspace, workspace.keep("references", "human", human, "c", "t"), mood)
    assert labels.counts == {"calm": 1, "loud": 1}
    made = derived.keep_derived(workspace, labels)
    keep_mood(workspace, MOOD.replace('"noisy"', '"noisy", "shouting"'))
    assert known_attributes(folder)["mood"].words["loud"] == ("noisy", "shouting")
    stored = workspace.item("labels", made.name, "c").details["attributes"]["mood"]["attribute"]["words"]
    assert stored["loud"] == ["noisy"], "a later edit does not reach what was mapped"


def test_words_are_tried_by_hand():
    mood = Attribute("m", "m", ("calm", "loud"), {"calm": ("quiet", "still"), "loud": ("noisy",)}, "<m>")
    trial = try_attribute(["A quiet, still day", "a NOISY bus", "a quiet noisy bus", "a bus", "quiet"], mood)
    assert trial.captions == 5 and trial.named == {"calm": 3, "loud": 2} and (trial.several, trial.none) == (1, 1)
    assert list(trial.words.items()) == [("quiet", 3), ("noisy", 2), ("still", 1)]
    assert trial.examples == (("A quiet, still day", "a <m> <m> day"), ("a NOISY bus", "a <m> bus"))


@pytest.mark.long
def test_commands_know_the_attributes_of_a_workspace(workspace, tmp_path, capsys, monkeypatch):
    keep_mood(workspace)
    labels = ["quiet", "noisy"] * 20
    rows = "".join(f"{n},{'calm' if word == 'quiet' else 'loud'}\n" for n, word in enumerate(labels))
    (tmp_path / "labels.csv").write_text("image_id,mood\n" + rows)
    captions = [{"image_id": n, "caption": f"a {word} {'tree' if n % 3 else 'bus'}"} for n, word in enumerate(labels)]
    for name in ("model", "human"):
        (tmp_path / f"{name}.json").write_text(json.dumps(captions))
    assert cli.main(["import", "labels.csv", "--kind", "labels", "--attribute", "mood"]) == 0
    assert cli.main(["import", "human.json", "--kind", "references"]) == 0
    derive = ["labels", "derive", "mood", "--references", "human", "--collection", "my captions"]
    assert cli.main(derive) == 0 and workspace.item("labels", "mood from human", "my captions")
    ask = ["score", "--captions", "model.json", "--attribute", "mood", "--metric", "error", "--labels", "labels.csv"]
    capsys.readouterr()
    assert cli.main(ask) == 0 and ",mood,model,error," in capsys.readouterr().out
    monkeypatch.delenv("CAPBIAS_HOME")
    assert cli.main(ask) == 2, "without a workspace mood is a column, and a column has no words"
    capsys.readouterr()
    assert cli.main([*ask, "--workspace", str(workspace.folder)]) == 0
    assert ",mood,model,error," in capsys.readouterr().out


@pytest.mark.parametrize(
    ("header", "rows"),
    [("Male", ["-1", "1"]), ("age", ["31", "52"]), ("shade", ["a", "b"]), ("gender,predicted_gender", ["f,m", "m,f"])],
)
def test_given_labels_are_never_replaced_by_derived_ones(tmp_path, monkeypatch, capsys, header, rows):
    monkeypatch.chdir(tmp_path)
    captions = [{"image_id": n, "caption": f"a {('woman', 'child', 'man')[n % 3]} with a dog"} for n in range(40)]
    (tmp_path / "model.json").write_text(json.dumps(captions))
    people = [{"id": n, **row, "caption": row["caption"] + " outside"} for n, row in enumerate(captions)]
    (tmp_path / "human.json").write_text(json.dumps({"images": [{"id": n} for n in range(40)], "annotations": people}))
    (tmp_path / "labels.csv").write_text(f"image_id,{header}\n" + "".join(f"{n},{rows[n % 2]}\n" for n in range(40)))
    attribute = "age" if header == "age" else "gender"
    files = ["--captions", "model.json", "--labels", "labels.csv", "--references", "human.json"]
    ask = ["score", *files, "--attribute", attribute, "--metric", "ratio"]
    assert cli.main(ask) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and "labels derived" not in printed.err and header.split(",")[0] in printed.err
    if "," in header:
        assert cli.main([*ask, "--attribute-column", "gender"]) == 0
