"""Paths of files that come with capbias: beside the package in a checkout, inside it once installed."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

from capbias_core.errors import CapbiasError, taken_twice

PACKAGE = Path(__file__).resolve().parent
# A wheel puts assets/ and the dashboard's files into these two folders of the package (see pyproject.toml).
_INSTALLED_ASSETS = PACKAGE / "_assets"
_INSTALLED_APP = PACKAGE / "_app"

ASSETS = _INSTALLED_ASSETS if _INSTALLED_ASSETS.is_dir() else PACKAGE.parent / "assets"
APP = (_INSTALLED_APP if _INSTALLED_APP.is_dir() else PACKAGE.parent) / "app.py"  # the dashboard's front page

DEMO_FOLDER = ASSETS / "demo"
OBJECTS_FILE = ASSETS / "objects.toml"
REVEALING_FILE = ASSETS / "revealing.toml"
VALENCE_FILE = ASSETS / "valence.tsv"
PUBLISHED_FILE = ASSETS / "published" / "results.csv"
PUBLISHED_MEASURED = ASSETS / "published" / "measured.csv"
PUBLISHED_NOTES = ASSETS / "published" / "notes.csv"
ICON = ASSETS / "icon.svg"

EXTENSIONS = "CAPBIAS_EXTENSIONS"
EXTENDED = ("measures", "attackers", "load")  # packages that have further modules in the folders that it names


def extension_folders(package: str) -> list[str]:
    """Folders with users' modules of a package, one of EXTENDED. Raises CapbiasError for a folder without any, and for
    a module with the name of another one, which would hide it."""
    roots = [Path(root).expanduser().resolve() for root in os.environ.get(EXTENSIONS, "").split(os.pathsep) if root]
    for root in roots:
        if not any((root / name).is_dir() for name in EXTENDED):
            raise CapbiasError(
                f"{root}, which {EXTENSIONS} names, has no folder {' or '.join(EXTENDED)}.", "Name another folder."
            )
    folders, known = [root / package for root in roots], {}
    for path in (path for folder in (PACKAGE / package, *folders) if roots for path in folder.glob("*.py")):
        if path.stem != "__init__" and (other := known.setdefault(path.stem, path)) != path:
            raise taken_twice("module", path.stem, [str(other.parent), str(path.parent)])
    return [str(folder) for folder in folders]


def extensions() -> dict[str, str]:
    """Each of the users' modules, such as `measures/long_captions.py`, with the beginning of its content hash."""
    folders = (Path(folder) for package in EXTENDED for folder in extension_folders(package))
    paths = sorted(path for folder in folders for path in folder.glob("*.py"))
    return {f"{path.parent.name}/{path.name}": sha256(path.read_bytes()).hexdigest()[:12] for path in paths}
