"""What small files that want the machine take of it: `python -m benchmarks.hostile`.

Each file is made, and read as the pages read it: in a child with limits. So are TOML and vectors here, which the server
itself reads. Printed: bytes of the file, seconds, by how many MB the memory of the child rose at its peak ("limit"
where it was ended), and what was said of it.
"""

from __future__ import annotations

import gzip
import json
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from capbias_core.attributes import read_attribute
from capbias_core.errors import CapbiasError
from capbias_core.load.vectors import read_vectors
from capbias_core.workspace.ingest import File, preview
from capbias_core.workspace.limited import within_limits
from capbias_core.workspace.store import Workspace


def main() -> None:
    print(f"{'file':44} {'bytes':>11} {'seconds':>8} {'MB':>6}  said")
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder) / "workspace")
        within_limits("none", time.sleep, 0)  # so that no file waits for the helper
        for title, (name, make) in FILES.items():
            path = Path(folder) / name
            make(path)
            start = time.perf_counter()
            said, memory = _read(workspace, path)
            seconds = time.perf_counter() - start
            print(f"{title:44} {path.stat().st_size:11,} {seconds:8.2f} {memory:>6}  {said[:110]}")
            path.unlink()


def _read(workspace: Workspace, path: Path) -> tuple[str, str]:
    from benchmarks.hostile import measured  # by the name under which the child finds it

    try:
        said, memory = within_limits(path.name, measured, workspace, path)
    except CapbiasError as error:
        return str(error), "limit"
    return said, f"{memory / 1000:,.0f}"


def measured(workspace: Workspace, path: Path) -> tuple[str, int]:
    """What is said of a file, and the kB by which reading it raised the peak memory of this process."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        if path.suffix == ".toml":
            said = f"read: {read_attribute(path).name}"
        elif path.name.endswith(".vec.gz"):
            said = f"read: {len(read_vectors(path, {'w'}).words)} word"
        else:
            part = preview([File(path)])[0]
            said = (
                str(part.reading.error) if part.reading.error else f"read: {len(part.images):,} images as {part.kind}"
            )
    except CapbiasError as error:
        said = str(error)
    return said, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before


def _text(text: str) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(text.encode())


def _equal_rows(path: Path) -> None:
    same = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000_000, pa.int8()), ["a dog"])
    pyarrow.parquet.write_table(pa.table({"image_id": same, "caption": same}), path)


def _long_text(path: Path) -> None:
    path.write_text(json.dumps([{"image_id": 1, "caption": "a" * 200_000_000}]))


def _vectors(path: Path) -> None:
    row = b" ".join([b"w", *[b"0.0"] * 300]) + b"\n"
    with gzip.open(path, "wb", 6) as file:
        for _ in range(700_000):
            file.write(row)


def _many_keys(path: Path) -> None:
    path.write_text(json.dumps([{f"k{number}": 1 for number in range(1_000_000)}], separators=(",", ":")))


def _half_surrogate(path: Path) -> None:
    content = {"images": [{"id": 1}], "annotations": [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1]}]}
    path.write_text(json.dumps(content | {"categories": [{"id": 1, "name": "\ud800"}]}))


FILES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "TOML, 40 kB of one dotted key": ("a.toml", _text(".".join(["a"] * 20_000) + " = 1")),
    "TOML, 100 kB of dotted keys": ("b.toml", _text("\n".join(f"a{place}.b.c = 1" for place in range(7_500)))),
    "Parquet, 20 million equal rows": ("rows.parquet", _equal_rows),
    "JSON, one caption of 200 MB": ("long.json", _long_text),
    "vectors, .gz": ("zeros.vec.gz", _vectors),
    "CSV, 20,000 columns": (
        "columns.csv",
        _text("\n".join([",".join(f"c{place}" for place in range(20_000)), *[",".join(["1"] * 20_000)] * 48])),
    ),
    "JSON, a million keys": ("keys.json", _many_keys),
    "COCO, half a surrogate pair in a category": ("objects.json", _half_surrogate),
    "TOML, an integer of 5,000 digits": ("c.toml", _text(f"name = {'9' * 5_000}")),
    "TOML, nested 5,000 deep": ("d.toml", _text(f"name = {'[' * 5_000}{']' * 5_000}")),
    "CSV, a header over 1 MiB": ("header.csv", _text(f"image_id,caption,{'x' * (2 << 20)}\n1,a dog,2\n2,a man,3\n")),
}

if __name__ == "__main__":
    main()
