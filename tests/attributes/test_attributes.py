"""Attributes are data: shipped ones hold what the papers print, a wrong file is refused."""

import json

import pytest

from capbias_core.attributes import (
    FOLDER,
    get_attribute,
    known_attributes,
    parse_attribute,
    plain_attribute,
    read_attribute,
    word_forms,
)
from capbias_core.errors import CapbiasError
from capbias_core.load.labels import mapping_details
from capbias_core.workspace.labels import attribute_of
from capbias_core.workspace.store import Item

# Hirota et al., CVPR 2022, appendix B, as printed (singular forms).
FEMININE = "woman female lady mother girl aunt wife actress princess waitress sister queen pregnant daughter she her hers herself"  # noqa: E501
MASCULINE = "man male father gentleman boy uncle husband actor prince waiter son brother guy emperor dude cowboy he his him himself"  # noqa: E501
# Baratov et al. (2023), appendix A.1, as printed but for "kid child", which stands without its comma there.
YOUNG = "kid child young boy little baby childhood babyhood toddler adolescence adolescent teenager schoolboy schoolgirl youngster infant preschooler student girl"  # noqa: E501
OLD = "elder man woman old elderly grandma grandpa mom dad father ancient aged senior grandparent"
IRREGULAR = {"woman": "women", "man": "men", "gentleman": "gentlemen", "lady": "ladies", "wife": "wives"}
IRREGULAR |= {"child": "children", "baby": "babies"}
HUGE = "0x" + "f" * 5000
AGES = 'values = ["young", "old"]\n[words]\nyoung = ["kid"]\nold = ["elder"]\n'
NO_PLURAL = {"she", "her", "hers", "herself", "he", "his", "him", "himself", "pregnant"}
NO_PLURAL |= {"young", "little", "old", "elderly", "aged"}


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


def test_age_words_are_those_of_the_paper_with_plurals():
    age = get_attribute("age")
    assert age.derived and (age.derived.precedence, age.derived.both) == (("young", "old"), "precedence")
    assert (age.values, age.chance) == (("young", "old"), 25.0)
    assert set(age.words["young"]) == with_plurals(YOUNG)
    assert set(age.words["old"]) == with_plurals(OLD)


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
        'values = ["one", "one"]',
        'values = ["a", "b"]\n[words]\nc = ["x"]',
        'values = ["a", "b"]\n[words]\na = "woman"',  # letters would be masked one by one
        'values = ["a", "b"]\n[words]\na = ["old man"]',  # no token holds a space, so nothing would be masked
        'values = ["a", "b"]\n[words]\na = ["x"]\nb = ["x"]',
        'values = ["a", "b"]\nmask_token = "mask"',  # cannot be told from a word
        'values = ["a", "b"]\n[aliases]\nc = ["x"]',
        'values = ["a", "b"]\nnote = ["x"]',
        'values = ["a", "b"]\nforms = [["x", "y", "old man"]]',
        f"values = [{HUGE}, 1]",
        # rules for derived labels
        f'{AGES}[derived]\nboth = "first"',
        f'{AGES}[derived]\nboth = "drop"\nprecedence = ["young", "old"]',
        'values = ["young", "old"]\n[words]\nyoung = ["kid"]\n[derived]\nprecedence = ["young", "old"]',
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
    details = json.loads(json.dumps(mapping_details(own, "age", {"young": "young", "old": "old"})))
    kept = Item("c", "attributes", "t", "0" * 16, 2, 2, "", 0.0, {"attributes": {"own": details}})
    read, _ = attribute_of(kept, "own")
    assert word_forms(read) == word_forms(own) and "forms" not in read.stored()
    without = get_attribute(write(tmp_path, f'values = ["young", "old"]\n{words}'))
    assert word_forms(without) == (("kid", "elder", "person"),)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(CapbiasError, match="gender.*race"):
        get_attribute("gendre")


# Small files that took gigabytes or ended in a traceback.
HOSTILE = {
    "a key of 20,000 tables": (".".join("a" * 20_000) + " = 1", "dots"),
    "100 kB of words in two bytes each": ("# " + "é" * 50_000, "100,002 bytes"),
    "a number of 5,000 digits": ("a = " + "1" * 5_000, "digits"),
    "5,000 arrays": ("a = " + "[" * 5_000 + "]" * 5_000, "nested"),
}


@pytest.mark.parametrize("text, said", HOSTILE.values(), ids=HOSTILE)
def test_a_text_that_would_eat_the_machine_is_refused(text, said):
    with pytest.raises(CapbiasError) as refused:
        parse_attribute(text, "own.toml")
    assert "own.toml" in str(refused.value) and said in str(refused.value) and len(str(refused.value)) < 500


def test_a_large_file_is_not_read_whole(tmp_path):
    (tmp_path / "own.toml").write_text("# " + "x" * 10_000_000)
    with pytest.raises(CapbiasError, match="65,537 bytes"):
        read_attribute(tmp_path / "own.toml")
