"""Paths of files that come with capbias: beside the package in a checkout, inside it once installed."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
# A wheel puts assets/ and the dashboard's files into these two folders of the package (see pyproject.toml).
_INSTALLED_ASSETS = PACKAGE / "_assets"
_INSTALLED_APP = PACKAGE / "_app"

ASSETS = _INSTALLED_ASSETS if _INSTALLED_ASSETS.is_dir() else PACKAGE.parent / "assets"
APP = (_INSTALLED_APP if _INSTALLED_APP.is_dir() else PACKAGE.parent) / "app.py"  # the dashboard's front page

DEMO_FOLDER = ASSETS / "demo"
OBJECTS_FILE = ASSETS / "objects.toml"
REVEALING_FILE = ASSETS / "revealing.toml"
PUBLISHED_FILE = ASSETS / "published" / "results.csv"
PUBLISHED_MEASURED = ASSETS / "published" / "measured.csv"
PUBLISHED_NOTES = ASSETS / "published" / "notes.csv"
PUBLISHED_NAMES = ASSETS / "published" / "names.csv"
ICON = ASSETS / "icon.svg"
