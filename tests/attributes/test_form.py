"""The form of an attribute and its TOML file say the same."""

from dataclasses import replace

from capbias_core.attributes import FOLDER, parse_attribute
from capbias_core.attributes.form import fields_of, with_fields


def test_a_form_left_alone_changes_no_attribute():
    rule = '[derived]\nboth = "drop"\nat_least = 2\n'
    least = f'name = "mood"\nvalues = ["glad", "sad"]\n{rule}[words]\nglad = ["glad"]\nsad = ["sad"]\n'
    for text in (least, *(path.read_text() for path in FOLDER.glob("*.toml"))):
        written = with_fields(text, fields_of(text, "a"))
        assert parse_attribute(written, "a") == parse_attribute(text, "a")
        assert written.count("forms =") == text.count("forms =")
    assert parse_attribute(least, "a").derived.at_least == 2


def test_a_value_that_is_renamed_keeps_its_words_labels_and_place():
    text = (FOLDER / "age.toml").read_text()
    own = fields_of(text, "a")
    once = with_fields(text, replace(own, values=("child", "old")))
    again = replace(fields_of(once, "a"), values=("child", "adult"), note='"so" \\ far')
    changed = parse_attribute(with_fields(once, again), "a")
    before = parse_attribute(text, "a")
    assert changed.words == {"child": before.words["young"], "adult": before.words["old"]}
    assert changed.derived and changed.derived.precedence == ("child", "adult")
    assert changed.note == '"so" \\ far'
    young = {label for label, value in before.aliases.items() if value == "young"}
    assert {label for label, value in changed.aliases.items() if value == "child"} == young


def test_an_attribute_of_other_values_and_name_keeps_nothing_of_the_one_that_it_started_from():
    text = (FOLDER / "gender.toml").read_text()
    own = fields_of(text, "a")
    written = with_fields(text, replace(own, name="dress", values=("suit", "gown"), words=(("suit",), ("gown",))))
    changed = parse_attribute(written, "a")
    assert changed.title == "dress" and not changed.aliases
    assert changed.derived and not changed.derived.title and not changed.derived.note
    assert "forms" not in written


def test_a_value_more_ends_what_needs_all_of_them():
    text = (FOLDER / "age.toml").read_text()
    own = fields_of(text, "a")
    more = replace(own, values=(*own.values, "unknown"), words=(*own.words, ()))
    changed = parse_attribute(with_fields(text, more), "a")
    assert changed.values == ("young", "old", "unknown") and changed.derived is None
