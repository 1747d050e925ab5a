"""Mapped codes in plans, and image ids that are joined on the way into a collection."""

import json

import pytest

from capbias_core import cli
from capbias_core.workspace.ingest import File, preview

PEOPLE = ("woman", "man")


def written(folder, captions: dict[str, str], **files) -> None:
    (folder / "model.json").write_text(json.dumps([{"image_id": i, "caption": c} for i, c in captions.items()]))
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name.replace("_", ".")).write_text(text)


def test_a_plan_maps_codes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{n},{n % 2}\n" for n in range(40))
    plan = """\
captions = "model.json"
labels = "labels.csv"
[attributes.gender]
mapping = { "0" = "Female", "1" = "Male" }
[[measure]]
attribute = "gender"
metrics = ["ratio"]
"""
    captions = {str(n): f"a {PEOPLE[n % 2]} with a dog" for n in range(40)}
    written(tmp_path, captions, labels_csv="image_id,gender\n" + rows, plan_toml=plan)
    assert cli.main(["run", "plan.toml", "--workspace", "home"]) == 0
    assert "Female 20, Male 20" in capsys.readouterr().err


@pytest.mark.parametrize("first", [0, 1000])
def test_file_names_join_although_numbers_are_equal_by_chance(tmp_path, first):
    """The human captions count images from 1; of the numbers in their file names some are the same."""
    files = {str(place): first + 2 * place for place in range(1, 9)}
    images = [{"id": int(image), "file_name": f"COCO_val2014_{number:012}.jpg"} for image, number in files.items()]
    people = [{"id": n, "image_id": n, "caption": "a woman"} for n in range(1, 9)]
    labels = "image_id,gender\n" + "".join(f"{number},Female\n" for number in files.values())
    captions = {str(number): "a man" for number in files.values()}
    written(tmp_path, captions, labels_csv=labels, refs_json={"images": images, "annotations": people})
    parts = preview([File(tmp_path / name) for name in ("model.json", "labels.csv", "refs.json")])
    expected = {str(number) for number in files.values()}
    assert [set(part.frame["image_id"]) for part in parts] == [expected] * 3


def test_a_near_match_is_no_hint_on_who_wrote_the_captions(tmp_path):
    captions = {f"dog_{n}": "a man" for n in range(7, 11)}
    written(tmp_path, captions, labels_csv="image_id,gender\n" + "".join(f"{n},Male\n" for n in range(7, 11)))
    model, _ = preview([File(tmp_path / "model.json"), File(tmp_path / "labels.csv")])
    assert model.reading.near == "dog_7 here, 7 there" and model.reading.hint == ""
