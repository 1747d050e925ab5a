"""Labels from the words of human captions: the rule by hand, the real counts, the terminal and the workspace."""

import io
import json
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.attributes import get_attribute
from capbias_core.errors import CapbiasError
from capbias_core.load.labels import labels as read_labels
from capbias_core.load.parse import parse
from capbias_core.load.tables import captions
from capbias_core.prepare import derive_labels, masked_captions
from capbias_core.workspace import derived
from capbias_core.workspace.spec import attribute_from
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep

# Baratov et al. (2023), appendix A.1, as printed but for "kid child", which stands without its comma there.
YOUNG = "kid child young boy little baby childhood babyhood toddler adolescence adolescent teenager schoolboy schoolgirl youngster infant preschooler student girl"  # noqa: E501
OLD = "elder man woman old elderly grandma grandpa mom dad father ancient aged senior grandparent"
IRREGULAR = {"child": "children", "baby": "babies", "man": "men", "woman": "women"}
NO_PLURAL = {"young", "little", "old", "elderly", "aged"}


def with_plurals(words: str) -> set[str]:
    singular = set(words.split())
    return singular | {IRREGULAR.get(word, word + "s") for word in singular - NO_PLURAL}


def write(folder: Path, text: str) -> str:
    path = folder / "own.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


# attributes


def test_age_words_are_those_of_the_paper_with_plurals():
    age = get_attribute("age")
    assert age.derived and (age.derived.precedence, age.derived.both) == (("young", "old"), "precedence")
    assert (age.values, age.chance) == (("young", "old"), 25.0)
    assert set(age.words["young"]) == with_plurals(YOUNG)
    assert set(age.words["old"]) == with_plurals(OLD)


def test_emotion_has_nine_labels_and_masks_forms_of_their_names_only():
    emotion = get_attribute("emotion")
    assert len(emotion.values) == 9 and not emotion.words["something else"] and not emotion.derived
    stems = {"amusement": "amus", "contentment": "content", "excitement": "excit", "anger": "ang", "sadness": "sad"}
    for value, words in emotion.words.items():
        assert words == () or value in words
        assert all(word.startswith(stems.get(value, value)) for word in words)
    assert masked_captions(["The ANGRY sea amuses me"], emotion) == ["the <emotion> sea <emotion> me"]


def test_the_rule_is_not_in_what_is_kept_with_a_run():
    age = get_attribute("age")
    assert "derived" not in asdict(age), "earlier runs and tables keep their ids"
    again = attribute_from(json.loads(json.dumps(asdict(age))))
    assert again.words == age.words and again.derived is None


HEAD = 'values = ["young", "old"]\n[words]\nyoung = ["kid"]\nold = ["elder"]\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + '[derived]\nprecedence = ["young", "ancient"]', "each of young, old once"),
        (HEAD + '[derived]\nprecedence = ["young"]', "each of young, old once"),
        (HEAD + '[derived]\nprecedence = ["young", "young"]', "each of young, old once"),
        (HEAD + '[derived]\nprecedence = "young"', "each of young, old once"),
        (HEAD + '[derived]\nprecedence = ["young", "old"]\nfrom = "x"', "each of young, old once"),
        (HEAD + "[derived]", "each of young, old once"),
        (HEAD + '[derived]\nboth = "first"', '"drop" or "majority"'),
        (HEAD + '[derived]\nboth = "drop"\nat_least = 0', "a whole number from 1"),
        (HEAD + '[derived]\nboth = "drop"\nprecedence = ["young", "old"]', '"drop" or "majority"'),
        ('derived = 1\nvalues = ["young", "old"]', "each of young, old once"),
        ('values = ["young"]\n[words]\nyoung = ["kid"]\n[derived]\nprecedence = ["young"]', "two or more"),
        (HEAD.replace('old = ["elder"]', "") + '[derived]\nprecedence = ["young", "old"]', "no words for old"),
    ],
)
def test_a_wrong_rule_is_refused(tmp_path, text, message):
    with pytest.raises(CapbiasError, match=message) as refused:
        get_attribute(write(tmp_path, text))
    assert "own.toml" in str(refused.value)


# the rule


def references(*captions: tuple[str, str]) -> pd.DataFrame:
    rows = [(image, index, caption) for index, (image, caption) in enumerate(captions)]
    return pd.DataFrame(rows, columns=["image_id", "caption_index", "caption"])


@pytest.mark.parametrize(
    ("captions", "label"),
    [
        (["a man", "a kid", "a woman"], "young"),
        (["a man and a boy"], "young"),
        (["a man", "an elderly woman"], "old"),
        (["a dog", "a person", "someone's youth"], ""),
        (["two men"], "old"),
        (["some CHILDREN."], "young"),
        (["The Father's hat"], "old"),
        (["an old-fashioned clock"], "old"),
        (["a kidney, a manhole, the management"], ""),
        ([""], ""),
    ],
)
def test_the_rule_by_hand(captions, label):
    frame = derive_labels(references(*[("7", caption) for caption in captions]), get_attribute("age"))
    assert frame.to_dict("records") == [{"image_id": "7", "age": label}]


def test_captions_in_any_order_are_of_their_images():
    frame = references(("b", "a man"), ("a", "a dog"), ("c", "a man"), ("b", "a girl"), ("a", "a cat"))
    assert derive_labels(frame, get_attribute("age")).to_numpy().tolist() == [["b", "young"], ["a", ""], ["c", "old"]]


def test_precedence_is_read_from_the_file(tmp_path):
    text = 'values = ["a", "b", "c"]\n[words]\na = ["x"]\nb = ["y"]\nc = ["z"]\n[derived]\nprecedence = ["c", "a", "b"]'
    own = get_attribute(write(tmp_path, text))
    frame = references(("1", "x y"), ("2", "x y"), ("2", "z"), ("3", "y"), ("4", "w"))
    assert derive_labels(frame, own)["own"].tolist() == ["a", "c", "b", ""]


def test_no_caption_gives_no_label():
    assert derive_labels(references(), get_attribute("age")).empty


def test_an_attribute_without_a_rule_is_refused():
    with pytest.raises(CapbiasError, match="race cannot be derived"):
        derive_labels(references(("1", "a man")), get_attribute("race"))


@pytest.mark.long
def test_counts_on_the_real_captions(coco_bias):
    human = captions(parse(coco_bias / "annotations" / "captions_subset.json"), human=True).frame
    table = read_labels(parse(coco_bias / "annotations" / "attributes.csv")).frame.set_index("image_id")
    labels = derive_labels(human, get_attribute("age"))
    assert labels["age"].value_counts().to_dict() == {"young": 1297, "old": 1759, "": 584}
    people = labels[labels["image_id"].map(table["gender"]).isin(["Male", "Female"])]
    assert people["age"].value_counts().to_dict() == {"young": 963, "old": 1303, "": 184}


# the terminal

IMAGES = 60  # 24 young, 30 old, 6 neither
THINGS = {"young": "kite", "old": "tie"}
NAMED = {"young": "boy", "old": "man", "": "dog"}


def label_of(image: int) -> str:
    return "young" if image <= 24 else "old" if image <= 54 else ""


def human_captions(images: range) -> dict:
    """Two captions an image: the first always says man, the second names the label."""
    rows = []
    for image in images:
        thing = THINGS[label_of(image) or "old"]
        first = f"a {'man' if label_of(image) else 'cat'} with a {thing}"
        rows += [{"image_id": image, "caption": text} for text in (first, f"one {NAMED[label_of(image)]} on a street")]
    numbered = [{"id": number, **row} for number, row in enumerate(rows)]
    return {"images": [{"id": image} for image in images], "annotations": numbered}


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """Small files as the current folder."""
    captions = [
        {"image_id": image, "caption": f"a {NAMED[label_of(image)]} holds a {THINGS[label_of(image) or 'old']}"}
        for image in range(1, IMAGES + 1)
    ]
    files = {
        "model.json": captions,
        "human.json": human_captions(range(1, IMAGES + 1)),
        "adults.json": human_captions(range(25, IMAGES + 1)),
    }
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    genders = [f"{image},{'Male' if image % 2 else 'Female'}" for image in range(1, IMAGES + 1)]
    (tmp_path / "gender.csv").write_text("\n".join(["image_id,gender", *genders]) + "\n")
    ages = [f"{image},{'Young' if image <= 20 else 'Old'}" for image in range(1, IMAGES + 1)]
    (tmp_path / "ages.csv").write_text("\n".join(["image_id,AGE", *ages]) + "\n")
    years = [f"{row},{20 + place % 40}" for place, row in enumerate(genders)]
    (tmp_path / "years.csv").write_text("\n".join(["image_id,gender,age", *years]) + "\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path / "home"))
    return tmp_path


AGE = ["score", "--captions", "model.json", "--attribute", "age"]
COUNTS = "age derived from human.json: young 24, old 30; neither 6, left out"


def scored(text: str) -> dict[str, dict]:
    return pd.read_csv(io.StringIO(text)).set_index("metric").to_dict("index")


@pytest.mark.long
@pytest.mark.parametrize("labels", [[], ["--labels", "gender.csv"]], ids=["no table", "a table without age"])
def test_score_derives_age_from_references(here, capsys, labels):
    more = ["--references", "human.json", "--metric", "lic", "ratio", "error", "--seeds", "2"]
    assert cli.main([*AGE, *labels, *more]) == 0
    printed = capsys.readouterr()
    assert COUNTS in printed.err.splitlines()
    rows = scored(printed.out)
    assert set(rows) == {"LIC", "LIC_by_H", "LIC_by_M", "LIC_M", "LIC_D", "LIC_HM", "LIC_MH", "ratio", "error"}
    assert rows["ratio"]["value"] == pytest.approx(30 / 24) and rows["error"]["value"] == 0
    assert rows["ratio"]["n"] == 54, "the images without a label take no part"
    assert not (here / "home").exists()


@pytest.mark.long
def test_a_column_of_the_table_goes_before_the_rule(here, capsys):
    argv = [*AGE, "--labels", "ages.csv", "--references", "human.json", "--metric", "ratio", "error"]
    assert cli.main(argv) == 0
    printed = capsys.readouterr()
    assert "derived from" not in printed.err
    assert scored(printed.out)["error"]["value"] == pytest.approx(100 * 4 / 60), "4 boys are labelled old there"


@pytest.mark.long
def test_a_rule_of_ones_own(here, capsys):
    text = 'values = ["dog", "boy"]\n[words]\ndog = ["dog"]\nboy = ["boy"]\n[derived]\nprecedence = ["dog", "boy"]'
    path = write(here, text)
    argv = ["score", "--captions", "model.json", "--attribute", path, "--references", "human.json", "--metric", "ratio"]
    assert cli.main(argv) == 0
    printed = capsys.readouterr()
    assert "own derived from human.json: dog 6, boy 24; neither 30, left out" in printed.err
    assert scored(printed.out)["ratio"]["value"] == pytest.approx(24 / 6)


REFERENCES = ["--references", "human.json"]
BAD = {
    "no references": (AGE, "--references"),
    "no references, another table": ([*AGE, "--labels", "gender.csv"], "age"),
    "only old": ([*AGE, "--references", "adults.json"], "no image is young"),
    "values": ([*AGE, *REFERENCES, "--values", "young", "old"], "--values"),
    "a column without a table": ([*AGE, *REFERENCES, "--attribute-column", "x"], "--labels"),
    "no such column": ([*AGE, *REFERENCES, "--labels", "gender.csv", "--attribute-column", "x"], "column 'x'"),
    "race is not derived": (["score", "--captions", "model.json", "--attribute", "race", *REFERENCES], "--labels"),
    "explain has no references": (["explain", "--captions", "model.json", "--attribute", "age"], "human captions"),
    "no rule": (["labels", "derive", "race", "--references", "human", "--collection", "x"], "'race'"),
    "no collection": (["labels", "derive", "age", "--references", "human", "--collection", "x"], "collection 'x'"),
}


@pytest.mark.parametrize(("argv", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_code_2(here, capsys, argv, message):
    assert cli.main(argv) == 2
    printed = capsys.readouterr()
    (error,) = [line for line in printed.err.splitlines() if line.startswith("error: ")]
    assert message in error
    assert printed.out == ""


# a workspace

DERIVE = ["labels", "derive", "age", "--references", "human", "--collection", "my captions"]
KEPT = "age derived from human: young 24, old 30; neither 6, left out"


@pytest.mark.long
def test_labels_of_kept_captions(here, capsys):
    assert cli.main(["import", "model.json", "--kind", "captions"]) == 0
    assert cli.main(DERIVE) == 2
    assert "'my captions'" in capsys.readouterr().err
    assert cli.main(["import", "human.json", "--kind", "references"]) == 0
    scoring = ["score", "--collection", "my captions", "--attribute", "age", "--metric", "ratio"]
    assert cli.main(scoring) == 2
    assert "capbias labels derive age --references NAME" in capsys.readouterr().err
    assert cli.main([*DERIVE, "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines() == [KEPT, "nothing was stored (--dry-run)"]
    assert Workspace().items("attributes") == []
    assert cli.main(DERIVE) == 0
    last = "stored: attributes age from human in the collection my captions"
    assert capsys.readouterr().out.splitlines() == [KEPT, last]
    (table,) = Workspace().items("attributes")
    assert table.images == 60 and table.details["derived"]["precedence"] == ["young", "old"]
    assert table.details["attributes"]["age"]["mapping"] == {"young": "young", "old": "old", "": None}
    assert cli.main(scoring) == 0
    assert scored(capsys.readouterr().out)["ratio"]["value"] == pytest.approx(30 / 24)


def test_counting_keeps_nothing(here):
    workspace = Workspace(here / "own")
    item = keep(workspace, references=here / "human.json")["human"]
    found = derived.derive(workspace, item, get_attribute("age"))
    assert (found.counts, found.neither) == ({"young": 24, "old": 30}, 6)
    assert workspace.items("attributes") == []
    kept = derived.keep_derived(workspace, found)
    assert kept.collection == "c" and not derived.outdated(workspace, kept)
    workspace.delete(item)
    assert derived.outdated(workspace, kept)


def test_a_column_of_years_does_not_stop_an_import(here, capsys):
    assert cli.main(["import", "years.csv", "--kind", "attributes"]) == 0
    assert "gender (column gender)" in capsys.readouterr().out
    (table,) = Workspace().items("attributes")
    assert list(table.details["attributes"]) == ["gender"]


@pytest.mark.long
def test_emotion_from_a_column(here, capsys):
    emotions = get_attribute("emotion").values
    rows = [f"{image},{emotions[image % 9]}" for image in range(1, IMAGES + 1)]
    (here / "emotions.csv").write_text("\n".join(["image_id,emotion", *rows]) + "\n")
    argv = ["score", "--captions", "model.json", "--attribute", "emotion", "--labels", "emotions.csv"]
    assert cli.main([*argv, "--metric", "error", "ratio", "length"]) == 0
    printed = capsys.readouterr()
    assert "ratio left out: emotion has 9 values" in printed.err and "error left out: no caption names" in printed.err
    assert ",length," in printed.out
