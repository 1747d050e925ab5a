"""Whatever a file holds, every reader gives what can be kept, or one CapbiasError.

Each case is read by everything that reads files of strangers. `make fuzz` tries many cases: there a case that takes
more than 10 s or 1.5 GB fails too.
"""

import gzip
import io
import json
import pickle
import tempfile
import zipfile
from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capbias_core.attributes import get_attribute, read_attribute
from capbias_core.errors import CapbiasError
from capbias_core.kinds import BOXES, CAPTIONS, LABELS, OBJECTS, REFERENCES, SEGMENTS
from capbias_core.load.columns import Wanted
from capbias_core.load.files import unpacked_tree
from capbias_core.load.formats import sheets_of
from capbias_core.load.parts import Piece
from capbias_core.load.published import read_human_scores, read_results
from capbias_core.load.read import File, read
from capbias_core.load.tables import boxes
from capbias_core.load.vectors import read_vectors
from tests.load.test_files import zipped
from tests.load.test_formats import FILES as SHAPES

pytestmark = pytest.mark.long

# Valid files: one of each shape that is read, and what else people give to capbias.

RUNS = {"size": [2, 3], "counts": [1, 3, 2]}
INSTANCES = {
    "images": [{"id": 1, "height": 10, "width": 10}, {"id": 2}],
    "annotations": [
        {"image_id": image, "category_id": 1, "bbox": [0, 0, 1, 1], "iscrowd": 0, "segmentation": outline}
        for image, outline in enumerate([[[0, 0, 4, 0, 4, 4]], RUNS, RUNS | {"counts": "132"}], start=1)
    ],
    "categories": [{"id": 1, "name": "person"}],
}
OTHERS = {
    "instances.json": json.dumps(INSTANCES),
    "scores.csv": "model,value\nsat,1.5\n",
    "glove.txt": "dog 0.1 0.2\nman 1 2\n",
    "attribute.toml": 'name = "g"\nvalues = ["F", "M"]\n[words]\nF = ["she"]\nM = ["he"]\n',
    "vectors.gz": gzip.compress(b"2 2\ndog 0.1 0.2\nman 1 2\n"),
}
FILES: dict[str, list[bytes]] = defaultdict(list)  # ending -> contents
for name, content in ({name: content for name, (content, *_) in SHAPES.items()} | OTHERS).items():
    plain = zipped(content) if isinstance(content, dict) else content
    FILES[Path(name).suffix].append(plain.encode() if isinstance(plain, str) else plain)
# Pieces that mean something to one of the readers.
PIECES = [
    *b'" , \t ; \n \r\n [ ] { } : = . \\ \\u0000 \\ud800 \x00 \xff\xfe \xef\xbb\xbf null true -1 1e999 NaN'.split(b" "),
    *b"image_id caption category_id annotations images categories segmentation counts size name id inf".split(),
    *b"imgToEval sentences doc_id answer prediction index references prompt custom_id response".split(),
    *b"conversations messages role content columns data bbox result choices".split(),
    *(b"9" * 5000, b"0x" + b"f" * 5000, b"[" * 5000, b'{"a":' * 5000, b"a." * 150),
    *(b"\xed\xa0\x80", "\u0130\u2028\x85".encode()),
]

FIELDS = "image_id caption category_id segmentation bbox iscrowd id name height size counts"
KEYS = st.sampled_from(FIELDS.split(" "))
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just(10**400), st.just("\ud800")
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=4),
    max_leaves=8,
)
RECORDS = st.lists(st.dictionaries(KEYS, VALUES, min_size=1, max_size=6) | VALUES, max_size=5)


@st.composite
def mutated(draw, data: bytes, whole: bool = False) -> bytes:
    """A file with up to four changes; of an archive, sometimes in a member that is well packed."""
    if not whole and data[:2] == b"PK" and draw(st.booleans()):
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            members = {name: file.read(name) for name in file.namelist()}
        name = draw(st.sampled_from(sorted(members)))
        return zipped(members | {name: draw(mutated(members[name], True))})
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + draw(st.sampled_from([0, 1, 8, 200, len(data)])))))
        again = st.integers(0, 40).map(lambda times, piece=data[start:end]: piece * times)
        data = data[:start] + draw(st.one_of(again, st.sampled_from(PIECES), st.binary(max_size=8))) + data[end:]
    return data


def contents(ending: str) -> st.SearchStrategy[bytes]:
    made = {
        ".json": RECORDS.map(lambda values: json.dumps(values).encode()),
        ".pkl": RECORDS.map(pickle.dumps),
        ".gz": st.one_of(*map(mutated, FILES[".csv"])).map(gzip.compress),
    }
    return st.one_of(*map(mutated, FILES[ending]), *([made[ending]] if ending in made else []), st.binary(max_size=64))


WANTED = [Wanted("gender", get_attribute("gender"), False)]
KINDS = ("", CAPTIONS, REFERENCES, LABELS, OBJECTS, SEGMENTS, BOXES)
READERS = [read_results, read_human_scores, lambda path: read_vectors(path, {"dog", "man", ""}), read_attribute]


@given(RECORDS | st.dictionaries(KEYS | st.text(max_size=3), VALUES, max_size=5))
def test_a_table_of_python_is_read_or_refused(table):
    check_kinds(table)


@pytest.mark.parametrize("ending", sorted(FILES))
@given(data=st.data())
def test_a_file_is_read_or_refused(ending, data):
    content = data.draw(contents(ending))
    name = f"file{data.draw(st.sampled_from([ending, ending, '', *sorted(FILES)]))}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        check_kinds(path)
        for sheet in check(lambda own: sheets_of(own, name), path) or ():
            check(boxes, Piece(File(name), sheet))
        for reads in READERS:
            check(reads, path)
        if path.suffix == ".zip":
            check(lambda own: unpacked_tree(own, Path(folder) / "tree"), path)


def check_kinds(source):
    for kind in KINDS:
        found = check(lambda own, kind=kind: read([File(own, (kind,) if kind else ())], wanted=WANTED), source)
        for part in found.parts if found else ():
            pa.Table.from_pandas(part.frame)


def check(reads, source):
    """What was read; None where it was refused in words that can be shown."""
    try:
        return reads(source)
    except CapbiasError as error:
        str(error).encode()
        return None
