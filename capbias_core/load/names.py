"""The usual names of columns and values (names.toml)."""

import tomllib
from pathlib import Path

_FILE = Path(__file__).with_suffix(".toml")
NAMES = {name: tuple(text.split()) for name, text in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()}
