"""Labels: which column, which rows of an image, and what they mean. All counts by hand."""

import pandas as pd
import pytest

from capbias_core.attributes import get_attribute
from capbias_core.errors import CapbiasError
from capbias_core.kinds import LABELS
from capbias_core.load.columns import Wanted
from capbias_core.load.labels import mapping_overrides
from capbias_core.load.read import Ask, File, Given, read

GENDER = Wanted("gender", get_attribute("gender"))
N = 40
CAPTIONS = [
    {"image_id": number, "caption": f"a {('woman', 'man')[number % 2]} rides a bicycle {number}"} for number in range(N)
]


def rows(times: int = 1, **columns) -> pd.DataFrame:
    """So many rows per image. columns: what makes a cell of the numbers of image and row."""
    places = [(image, row) for image in range(N) for row in range(times)]
    return pd.DataFrame(
        [{"image_id": image, **{name: of(image, row) for name, of in columns.items()}} for image, row in places]
    )


def labels(frame, wanted=GENDER, **given):
    """Counts of each value, and the notes."""
    files = [File(CAPTIONS, (), "model"), File(frame, (LABELS,), "labels")]
    (part,) = read(files, Given(**given), [wanted], needed=True).of(LABELS)
    (details, *_) = part.mapping
    return part.frame[details["column"]].map(details["mapping"]).value_counts().to_dict(), part.notes


def asked(frame, **given) -> list[dict]:
    with pytest.raises(Ask) as question:
        labels(frame, **given)
    answer = question.value.answer
    labels(frame, **given | answer | ({"several": answer["several"][0]} if "several" in answer else {}))
    return [option.answer for option in question.value.questions[0].options]


HALVES = {"Female": 20, "Male": 20}


def test_names_of_columns_may_contain_an_equals_sign():
    """Only the part before the first one was looked for, and the column was called that of the attribute."""
    frame = rows(2, **{"a=b": lambda image, _: ("Female", "Male")[image % 2], "who=by": lambda _, row: "xy"[row]})
    counts, notes = labels(frame, attribute_column=("a=b",), rows=("who=by=x",))
    assert counts == HALVES and "40 of 80 rows read" in notes[0]


@pytest.mark.parametrize(
    ("column", "first", "second"),
    [
        ("gender", "feminine", "masculine"),
        ("Answer.gender", "W", "M"),
        ("sex", "weiblich", "männlich"),
        ("bb_gender", "['0. She/her/hers']", "['1. He/him/his']"),
    ],
)
def test_usual_names_and_spellings(column, first, second):
    assert labels(rows(**{column: lambda image, _: (first, second)[image % 2]}))[0] == HALVES


def test_another_name_is_asked_about_with_a_column_that_works():
    frame = rows(person=lambda image, _: "FM"[image % 2], other=lambda image, _: "FM"[image % 3 == 0])
    assert asked(frame)[0] == {"attribute_column": ("person",)}
    with pytest.raises(Ask) as question:
        labels(rows(Male=lambda image, _: (-1, 1)[image % 2]))
    assert question.value.answer == {"attribute_column": ("Male",), "map": ("gender:-1=Female", "gender:1=Male")}
    frame = rows(is_female=lambda image, _: 1 - image % 2, is_male=lambda image, _: image % 2)
    assert asked(frame)[0] == {"attribute_column": ("is_female",)}


def test_codes_are_asked_about_with_what_captions_say():
    options = asked(rows(gender=lambda image, _: image % 2))
    assert options[0] == {"map": ("gender:0=Female", "gender:1=Male")}
    assert labels(rows(gender=lambda image, _: image % 2), map=options[0]["map"])[0] == HALVES
    silent = rows(gender=lambda image, _: image // 4 % 2)
    with pytest.raises(CapbiasError, match="gender:0=___"):  # nothing says which is which
        labels(silent)


THREE = {"gender": lambda image, row: "FM"[image % 2 if row or image % 4 else 1]}  # the first rows of ten women differ
RATED = THREE | {"who": lambda _, row: "abc"[row]}


@pytest.mark.parametrize(
    ("columns", "first"),
    [
        (RATED, {"several": ("majority",)}),
        (THREE | {"version": lambda _, row: f"v{row}"}, {"rows": ("version=v2",)}),
        (THREE, {"several": ("both",)}),
    ],
)
def test_rows_that_differ_are_asked_about(columns, first):
    assert asked(rows(3, **columns))[0] == first


def test_rules_for_rows_that_differ():
    frame = rows(3, **RATED)
    assert labels(frame, several="majority")[0] == HALVES
    assert labels(frame, several="both")[0] == {"Female": 10, "Male": 20}
    assert labels(frame, several="first")[0] == {"Female": 10, "Male": 30}
    assert labels(frame, rows=("who=b",))[0] == HALVES
    with pytest.raises(Ask, match="each annotator has a column"):
        labels(frame, several="each")
    assert labels(frame, several="each", attribute_column=("gender c",))[0] == HALVES
    with pytest.raises(CapbiasError, match="no effect"):  # a rule without rows that it could concern
        labels(rows(gender=lambda image, _: "FM"[image % 2]), several="majority")


def test_a_column_of_states_is_asked_about():
    frame = rows(
        2, gender=lambda image, row: "FM"[image % 2 if row else 0], state=lambda _, row: ("rejected", "ok")[row]
    )
    assert asked(frame)[0] == {"rows": ("state=ok",)}
    assert labels(frame, rows=("state=ok",))[0] == HALVES


def test_several_tables_are_one():
    frame = rows(gender=lambda image, _: "FM"[image % 2])
    files = [File(CAPTIONS, (), "model"), File(frame[:25], (LABELS,), "a"), File(frame[25:], (LABELS,), "b")]
    (part,) = read(files, wanted=[GENDER], needed=True).of(LABELS)
    assert len(part.frame) == N
    other = rows(gender=lambda image, _: "FM"[image % 3 == 0])
    with pytest.raises(Ask, match="rows of labels that differ"):
        read([File(CAPTIONS), File(frame, (LABELS,), "a"), File(other, (LABELS,), "b")], wanted=[GENDER], needed=True)


def test_wrong_mappings_are_refused():
    frame = rows(gender=lambda image, _: image % 2)
    for pairs in (("gender:0=Woman",), ("gender:7=Female",), ("gender:0=___", "gender:1=Male")):
        with pytest.raises(CapbiasError):
            labels(frame, map=pairs)
    with pytest.raises(CapbiasError):
        mapping_overrides(["gender"])
    with pytest.raises(CapbiasError, match="10 different|to compare"):
        labels(rows(sky=lambda image, _: image), Wanted("sky", None))
