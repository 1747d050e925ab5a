"""What a file's columns and rows are read as, and what is asked because more than one reading fits. Rows by hand."""

import json

import pytest

from capbias_core.errors import CapbiasError
from capbias_core.load.account import Ambiguous
from capbias_core.load.read import parse_table, readings
from capbias_core.workspace.ingest import File, Part, caption_sets

N = 30
THINGS = ("a bicycle", "an umbrella", "a guitar", "a kite", "a cake")


def text(number: int, other: int = 0) -> str:
    return f"a person {number + 7 * other} holding {THINGS[(number + other) % 5]} outside"


def wide(**columns) -> list[dict]:
    """A row per image. columns: what makes a cell of the number of the image."""
    return [{"image_id": 100 + row, **{name: cell(row) for name, cell in columns.items()}} for row in range(N)]


def long(times: int, **columns) -> list[dict]:
    """So many rows per image. columns: what makes a cell of the numbers of image and row."""
    places = [(row, own) for row in range(N) for own in range(times)]
    return [{"image_id": 100 + row, **{name: cell(row, own) for name, cell in columns.items()}} for row, own in places]


def several(row: int, times: int = 3) -> list[str]:
    return [text(row, own) for own in range(times)]


def fields(row: int) -> dict:
    return {"brief": text(row), "long": f"{text(row, 1)} in the rain", "style": "photo"}


PEOPLE = {f"ref{number}": lambda row, number=number: text(row, number) for number in range(1, 4)}
BY_MODEL = long(2, model=lambda row, own: ("blip", "git")[own], caption=text)
IN_LANGUAGES = long(2, lang=lambda row, own: ("en", "de")[own], caption=text)

# A table, what it is given as and what is said of it -> captions by set, human captions.
READ = {
    "names of people": (wide(prediction=text, **PEOPLE), "", {}, {"m": N}, 3 * N),
    "three models": (wide(a=text, b=text, c=text), "captions", {"caption": ["a", "c"]}, {"m a": N, "m c": N}, 0),
    "a model and people": (wide(caption=text, blip=text), "", {"caption": "blip", "reference": "caption"}, {"m": N}, N),
    "numbered columns": (wide(caption_0=text, caption_1=text), "references", {}, {}, 2 * N),
    "samples in columns": (
        wide(a=text, b=text), "captions", {"caption": ["a", "b"], "sets": "samples"}, {"m": 2 * N}, 0),
    "bars": (wide(caption=text, references=lambda row: " | ".join(several(row))), "", {}, {"m": N}, 3 * N),
    "a list as text": (wide(caption=text, gts=lambda row: str(several(row))), "", {}, {"m": N}, 3 * N),
    "a list without commas": (
        wide(caption=text, gts=lambda row: "[" + "\n ".join(map(repr, several(row))) + "]"), "", {}, {"m": N}, 3 * N),
    "words": (wide(caption=lambda row: text(row).split()), "", {}, {"m": N}, 0),
    "JSON of one text": (wide(output=lambda row: json.dumps({"caption": text(row), "n": 1})), "", {}, {"m": N}, 0),
    "JSON, chosen": (
        wide(output=lambda row: f"```json\n{json.dumps(fields(row))}\n```"), "captions", {"caption": "output.brief"},
        {"m": N}, 0),
    "a captioner by its values": (BY_MODEL, "", {}, {"m blip": N, "m git": N}, 0),
    "rows without a captioner": (
        long(2, model=lambda row, own: None if row < 3 else float(own), caption=text), "captions",
        {"captioner": "model"}, {"m 0": N - 3, "m 1": N - 3}, 0),
    "captioners and samples": (
        long(4, model=lambda row, own: "ab"[own % 2], seed=lambda row, own: own // 2, caption=text), "", {},
        {"m a": 2 * N, "m b": 2 * N}, 0),
    "equal samples": (long(3, caption=lambda row, own: text(row)), "captions", {}, {"m": 3 * N}, 0),
    "no language": (
        long(2, lang=lambda row, own: (None, "de")[own], caption=text), "captions", {"rows": {"lang": ""}},
        {"m": N}, 0),
    "one language": (IN_LANGUAGES, "captions", {"rows": {"lang": "en"}}, {"m": N}, 0),
    "people": (long(3, worker=lambda row, own: f"w{own * row}", caption=text), "references", {}, {}, 3 * N),
}  # fmt: skip


@pytest.mark.parametrize("case", READ)
def test_what_columns_and_rows_are(case):
    table, kind, given, sets, human = READ[case]
    parts = [Part(File(table, kind, "m"), reading) for reading in readings(parse_table(table, "m"), kind, given)]
    assert not any(part.reading.error for part in parts)
    found = {part.kind: {name: len(rows) for name, rows in caption_sets(part).items()} for part in parts}
    assert found.get("captions", {}) == sets and sum(found.get("references", {}).values()) == human


def test_the_best_candidate_is_read_whether_it_has_a_score_or_a_loss():
    for score, best in (("logprob", 1), ("loss", 0)):
        table = wide(beams=lambda row, score=score: [{"text": text(row, own), score: own} for own in (0, 1)])
        (reading,) = readings(parse_table(table, "m"))
        assert reading.table.frame["caption"].tolist() == [text(row, best) for row in range(N)]
    (reading,) = readings(parse_table(wide(beams=lambda row: [[text(row, own), own] for own in (0, 1)]), "m"))
    assert "may be a loss" in reading.error.message


# A table and what it is given as -> the arguments that answer what is asked.
ASKED = {
    "two columns": (wide(caption=text, blip=text), "", ("caption_column=caption", "reference_column=blip")),
    "samples or people": (long(3, caption=text), "", ("captions=m", "references=m")),
    "lists": (wide(caption=several), "", ("captions=m", "references=m")),
    "people beside models": (
        long(2, system=lambda row, own: ("human", "git")[own], caption=text),
        "captions",
        ("captioner_column=system", "rows=system=human", "rows=system=git"),
    ),
    "languages": (IN_LANGUAGES, "captions", ("captioner_column=lang", "rows=lang=de")),
    "a language that is missing": (
        long(2, lang=lambda row, own: (None, "de")[own], caption=text),
        "captions",
        ("captioner_column=lang", "rows=lang=", "rows=lang=de"),
    ),
    "languages of people": (IN_LANGUAGES, "references", ("rows=lang=en",)),
    "prompts": (long(2, prompt=lambda row, own: "?!"[own], caption=text), "captions", ("sets=prompt", "sets=samples")),
    "scores": (long(2, score=lambda row, own: own, caption=text), "captions", ("sets=samples",)),
    "unknown": (long(3, place=lambda row, own: f"p{row * own % 7}", caption=text), "captions", ("rows=place=p0",)),
    "JSON of two texts": (wide(output=fields), "", ("caption_column=output.brief", "caption_column=output.long")),
    "several in a text": (wide(caption=lambda row: "; ".join(several(row))), "captions", ("sets=whole",)),
}


@pytest.mark.parametrize("case", ASKED)
def test_what_is_open_is_asked_and_nothing_is_read(case):
    table, kind, arguments = ASKED[case]
    (reading,) = readings(parse_table(table, "m"), kind)
    assert reading.table is None and isinstance(reading.error, Ambiguous) and reading.question.boxes
    assert set(arguments) <= set(reading.error.arguments)


def test_what_the_captions_of_a_model_are_does_not_answer_for_those_of_people():
    (reading,) = readings(parse_table(IN_LANGUAGES, "m"), "references", {"sets": "samples"})
    assert isinstance(reading.error, Ambiguous)


def test_the_account_names_every_column_and_how_rows_differ():
    (reading,) = readings(
        parse_table(long(2, seed=lambda row, own: own, split=lambda *_: "val", said=lambda row, own: text(row)), "m"),
        "captions",
    )
    assert dict(reading.table.account) == {
        "Image ID": "image_id",
        "Captions": "said",
        "Sample": "seed",
        "Not used": "split (the same in every row)",
        "Captions per image": "2 (30 images); rows differ in seed; 30 equal to another of their image, which count too",
    }


def test_numbers_of_tokens_and_regions_are_refused():
    regions = wide(regions=lambda row: [{"phrase": text(row), "x": 0, "y": 1}])
    for table, word in ((wide(caption=lambda row: [101, row]), "tokens"), (regions, "none holds texts")):
        (reading,) = readings(parse_table(table, "m"), "captions")
        assert isinstance(reading.error, CapbiasError) and word in reading.error.message
