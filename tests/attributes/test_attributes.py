"""Attributes are data: shipped ones hold what the papers print, a wrong file is refused."""

import json

import pytest

from capbias_core.attributes import FOLDER, get_attribute, known_attributes, plain_attribute, word_forms
from capbias_core.errors import CapbiasError
from capbias_core.load.labels import mapping_details
from capbias_core.workspace.labels import attribute_of
from capbias_core.workspace.store import Item

# Hirota et al., CVPR 2022, appendix B, as printed (singular forms).
FEMININE = "woman female lady mother girl aunt wife actress princess waitress sister queen pregnant daughter she her hers herself"  # noqa: E501
MASCULINE = "man male father gentleman boy uncle husband actor prince waiter son brother guy emperor dude cowboy he his him himself"  # noqa: E501
IRREGULAR = {"woman": "women", "man": "men", "gentleman": "gentlemen", "lady": "ladies", "wife": "wives"}
HUGE = "0x" + "f" * 5000
NO_PLURAL = {"she", "her", "hers", "herself", "he", "his", "him", "himself", "pregnant"}


def with_plurals(singular: str) -> set[str]:
    words = set(singular.split())
    plain = words - NO_PLURAL - set(IRREGULAR)
    regular = {word + ("es" if word.endswith("ss") else "s") for word in plain}
    return words | regular | {IRREGULAR[word] for word in words & set(IRREGULAR)}


def write(tmp_path, text: str) -> str:
    path = tmp_path / "own.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_every_shipped_attribute_keeps_the_contract(path):
    attribute = known_attributes()[path.stem]
    assert len(set(attribute.values)) == len(attribute.values) >= 2
    assert len(attribute.note) > 80 and attribute.title
    assert attribute.mask_token.startswith("<") and attribute.mask_token.endswith(">")
    words = [word for own in attribute.words.values() for word in own]
    assert len(words) == len(set(words)), "a word names one value only, once"
    assert all(word == word.lower() and word.isalnum() for word in words)
    assert set(attribute.words) <= set(attribute.values)
    assert set(attribute.aliases.values()) <= set(attribute.values)


def test_gender_words_are_those_of_the_paper_with_plurals():
    gender = get_attribute("gender")
    assert len(FEMININE.split()) == 18 and len(MASCULINE.split()) == 20
    assert set(gender.words["Female"]) == with_plurals(FEMININE)
    assert set(gender.words["Male"]) == with_plurals(MASCULINE)
    assert gender.masked_words == with_plurals(FEMININE) | with_plurals(MASCULINE)


def test_an_attribute_of_ones_own_is_read(tmp_path):
    for k, chance in ((2, 25.0), (3, 100 / 9), (10, 1.0)):
        assert plain_attribute("own", tuple(map(str, range(k)))).chance == pytest.approx(chance)
    text = 'values = ["young", "old"]\nmask_token = "<age>"\n[words]\nyoung = ["Kid"]\nold = ["elderly"]\n'
    attribute = get_attribute(write(tmp_path, text))
    assert (attribute.name, attribute.values) == ("own", ("young", "old"))
    assert attribute.words == {"young": ("kid",), "old": ("elderly",)}
    attribute = get_attribute(write(tmp_path, 'values = [0, 1]\n[words]\n0 = ["calm"]\n1 = ["angry"]\n'))
    assert attribute.words == {"0": ("calm",), "1": ("angry",)}


@pytest.mark.parametrize(
    "text",
    [
        "values = [",
        'values = ["one"]',
        'values = ["one", "one"]',
        'values = ["one", "two", "two"]',
        'values = "one two"',
        'values = ["a", "b"]\n[words]\nc = ["x"]',
        'values = ["a", "b"]\nwords = ["x"]',
        'values = ["a", "b"]\n[words]\na = "woman"',  # letters would be masked one by one
        'values = ["a", "b"]\n[words]\na = [1]',
        'values = ["a", "b"]\n[words]\na = ["old man"]',  # no token holds a space, so nothing would be masked
        'values = ["a", "b"]\n[words]\na = ["x"]\nb = ["x"]',
        'values = ["a", "b"]\nmask_token = "two words"',
        'values = ["a", "b"]\nmask_token = "mask"',  # cannot be told from a word
        'values = ["a", "b"]\n[aliases]\nc = ["x"]',
        'values = ["a", "b"]\n[aliases]\na = "x"',
        'values = ["a", "b"]\nnote = ["x"]',
        'values = ["a", "b"]\nname = 3',
        'values = ["a", "b"]\nforms = ["xyz"]',
        'values = ["a", "b"]\nforms = [["x", "y"]]',
        'values = ["a", "b"]\nforms = [["x", "y", "old man"]]',
        f"values = [{HUGE}, 1]",
        f"name = {HUGE}",
        f'values = ["a", "b"]\nwords.a = {HUGE}',
    ],
)
def test_a_wrong_file_is_refused_in_words(tmp_path, text):
    with pytest.raises(CapbiasError) as refused:
        get_attribute(write(tmp_path, text))
    assert "own.toml" in str(refused.value)


def test_forms_of_ones_own_reach_the_labels_and_no_run_key(tmp_path):
    """They were accepted and ignored: only those of shipped attributes were read."""
    words = '[words]\nyoung = ["kid", "girl"]\nold = ["elder"]\n'
    own = get_attribute(write(tmp_path, f'values = ["young", "old"]\nforms = [["girl", "elder", "human"]]\n{words}'))
    assert word_forms(own) == (("girl", "elder", "human"),)
    kept = Item(
        "c",
        "attributes",
        "t",
        "0" * 16,
        2,
        2,
        1,
        "",
        0.0,
        {"attributes": {"own": json.loads(json.dumps(mapping_details(own, "age", {"young": "young", "old": "old"})))}},
    )
    read, _ = attribute_of(kept, "own")
    assert word_forms(read) == word_forms(own) and "forms" not in read.stored()
    without = get_attribute(write(tmp_path, f'values = ["young", "old"]\n{words}'))
    assert word_forms(without) == (("kid", "elder", "person"),)


def test_an_unknown_name_lists_the_known_ones(tmp_path):
    with pytest.raises(CapbiasError, match="gender.*race"):
        get_attribute("gendre")
    with pytest.raises(CapbiasError, match="missing.toml"):
        get_attribute(str(tmp_path / "missing.toml"))
