"""From a table of labels to an attribute: which column, which mapping, and what is said if no label is understood."""

import json

import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.attributes import get_attribute
from capbias_core.errors import CapbiasError
from capbias_core.workspace.labels import (
    attribute_from,
    compared_lines,
    holds,
    labels_for,
    mapping_overrides,
    resolve_attribute,
    resolve_attributes,
    unread_columns,
)

# By hand: 6 of one, 4 of the other, and labels of nobody.
LABELS = ["a"] * 6 + ["b"] * 4 + ["Both", "-", "N/A", ""]


def table(column: str, first: str, second: str) -> pd.DataFrame:
    names = {"a": first, "b": second}
    labels = [names.get(label, label) for label in LABELS]
    return pd.DataFrame({"image_id": [str(place) for place in range(len(labels))], column: labels})


@pytest.mark.parametrize(
    ("column", "first", "second"),
    [
        ("gender", "feminine", "masculine"),
        ("Answer.gender", "W", "M"),
        ("GenderPresentation", "Predominantly Feminine", "Predominantly Masculine"),
        ("Geschlecht", "weiblich", "männlich"),
        ("pronouns", "['0. She/her/hers']", "['1. He/him/his']"),
    ],
)
def test_labels_are_understood(column, first, second):
    frame = table(column, first, second)
    details = resolve_attribute(frame, "gender")
    assert (details["attribute"]["name"], details["column"]) == ("gender", column)
    found = labels_for(frame, attribute_from(details["attribute"]), column, details["mapping"])
    assert found.values.value_counts().to_dict() == {"Female": 6, "Male": 4}
    assert found.dropped == {"Both": 1, "-": 1, "N/A": 1, "": 1}
    assert compared_lines(frame, details) == [f"labels read: Female from {first}; Male from {second}"]
    assert compared_lines(frame, details | {"mapping": {"FEMALE": "Female", "male ": "Male", "": None}}) == []


@pytest.mark.parametrize(
    ("column", "first", "second", "flags"),
    [
        ("gender", "0", "1", "--map gender:0=Female --map gender:1=Male"),
        ("Answer.gender", "2", "1", "--map gender:1=Female --map gender:2=Male"),
        ("Male", "-1", "1", "--map gender:-1=Female --map gender:1=Male"),
        ("is_female", "1", "0", "--map gender:1=Female --map gender:0=Male"),
        ("sex", "type A", "type B", "--map 'gender:type A=Female' --map 'gender:type B=Male'"),
    ],
)
def test_labels_that_are_not_understood_are_listed_with_how_to_map_them(column, first, second, flags):
    frame = table(column, first, second)
    assert holds(frame, get_attribute("gender")), "labels must not be derived over these"
    with pytest.raises(CapbiasError) as refused:
        resolve_attribute(frame, "gender")
    message, hint = refused.value.message, refused.value.hint
    assert f"column {column} " in message and f"{first} (6), {second} (4)" in message and "(empty) (1)" in message
    assert flags in hint and "Data page" in hint
    overrides = mapping_overrides([f"gender:{first}=Female", f"gender:{second}=Male"])
    details = resolve_attribute(frame, "gender", overrides=overrides)
    found = labels_for(frame, attribute_from(details["attribute"]), details["column"], details["mapping"])
    assert found.values.value_counts().to_dict() == {"Female": 6, "Male": 4}


@pytest.mark.parametrize(
    ("pairs", "wrong"),
    [
        (["gender"], "ATTRIBUTE:LABEL=VALUE"),
        (["gender:0=Woman"], "'Woman'"),
        (["gender:7=Female"], "'7'"),
        (["gender:0=Female"], "read as Male"),
        (["age:0=old", "gender:0=Female", "gender:1=Male"], "'age'"),
    ],
)
def test_wrong_mappings_are_refused(pairs, wrong):
    with pytest.raises(CapbiasError) as refused:
        resolve_attributes(table("gender", "0", "1"), ["gender"], mapping_overrides(pairs))
    assert wrong in str(refused.value)


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
    found = [(details["attribute"]["name"], details["column"]) for details in resolve_attributes(frame)]
    assert found == [("gender", "first"), ("gender", "second"), ("age", "AgePresentation")]
    (unread,) = unread_columns(frame, resolve_attributes(frame))
    assert "column skin " in unread.message and "--map race:1=Dark" in unread.hint
    mapped = resolve_attributes(frame, (), mapping_overrides(["race:1=Light", "race:2=Dark"]))
    assert mapped[-1]["column"] == "skin" and unread_columns(frame, mapped) == []
    with pytest.raises(CapbiasError) as refused:
        resolve_attributes(frame[["image_id", "skin"]])
    assert refused.value.message == unread.message
    with pytest.raises(CapbiasError) as refused:
        resolve_attributes(frame[["image_id", "HITId", "kind"]])
    assert "HITId, kind" in refused.value.message
    assert not holds(frame[["image_id", "HITId", "kind"]], get_attribute("gender"))


@pytest.mark.parametrize(("column", "rows"), [("Male", ["-1", "1"]), ("age", ["31", "52"])])
def test_given_labels_are_never_replaced_by_derived_ones(tmp_path, monkeypatch, capsys, column, rows):
    monkeypatch.chdir(tmp_path)
    captions = [{"image_id": n, "caption": f"a {('woman', 'child', 'man')[n % 3]} with a dog"} for n in range(40)]
    (tmp_path / "model.json").write_text(json.dumps(captions))
    people = [{"id": n, **own, "caption": own["caption"] + " outside"} for n, own in enumerate(captions)]
    (tmp_path / "human.json").write_text(json.dumps({"images": [{"id": n} for n in range(40)], "annotations": people}))
    (tmp_path / "labels.csv").write_text(f"image_id,{column}\n" + "".join(f"{n},{rows[n % 2]}\n" for n in range(40)))
    attribute = "age" if column == "age" else "gender"
    files = ["--captions", "model.json", "--labels", "labels.csv", "--references", "human.json"]
    assert cli.main(["score", *files, "--attribute", attribute, "--metric", "ratio"]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and "derived" not in printed.err
    assert f"column {column} " in printed.err and f"{rows[0]} (20), {rows[1]} (20)" in printed.err
