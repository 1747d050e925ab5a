"""A photograph's file to its pixels: upright, RGB, and refused where it is broken or larger than memory should hold."""

from __future__ import annotations

import hashlib
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from capbias_core.errors import CapbiasError, need
from capbias_core.load.files import readable
from capbias_core.load.ids import normalise_image_id
from capbias_core.load.places import nameable

if TYPE_CHECKING:
    from PIL import Image

PICTURES = {".jpg", ".jpeg", ".png", ".webp"}


def picture_files(folder: Path) -> list[Path]:
    """The files of photographs in a folder, by name; none where there is no such folder. Links are followed only to
    what may be named here."""
    files = folder.glob("*") if folder.is_dir() else []
    pictures = [path for path in files if path.suffix.lower() in PICTURES]
    return sorted(path for path in pictures if not path.is_symlink() or nameable(path))


def find_pictures(folder: Path) -> pd.DataFrame:
    """Photographs in a folder by image id (from the file's name): image_id, file. Raises CapbiasError for none.

    Of several files of one image the first by name is taken; `picture_files` has all.
    """
    folder = Path(folder).expanduser()
    files = picture_files(folder)
    if not files:
        raise CapbiasError(
            f"The folder {str(folder)[:200]!r} holds no photograph.",
            "Check the path. A file is named by its image ID, such as 000000000785.jpg.",
        )
    return pd.DataFrame(
        {"image_id": [normalise_image_id(path.name) for path in files], "file": [path.name for path in files]}
    ).drop_duplicates("image_id", ignore_index=True)


ORIENTATION = 0x0112  # the field of EXIF, and for its values what turns the picture upright
TURNS = {
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}
MOST_PIXELS = 64_000_000  # 192 MB as RGB; a bomb is known from its header, before anything is decoded


def read_photograph(path: Path, longest: int = 0) -> np.ndarray:
    """(height, width, 3) uint8 RGB, turned upright as its EXIF says; of an animated file the first frame.

    longest: pixels that are enough for its longer side, so that a JPEG is decoded at a half or less.
    Raises CapbiasError for a file that is no picture, is cut short, or has more than 64 million pixels.
    """
    need("Reading a photograph", "PIL")
    from PIL import Image, UnidentifiedImageError

    path = Path(path)
    with readable(path), path.open("rb") as handle, warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            with Image.open(handle) as image:
                if image.width * image.height > MOST_PIXELS:
                    raise _too_large(path, f"{image.width:,} x {image.height:,}")
                if longest:
                    image.draft("RGB", (longest, longest))
                return _rgb(_upright(image))
        except (Image.DecompressionBombError, Image.DecompressionBombWarning):
            raise _too_large(path, "more than 89 million") from None
        except (CapbiasError, MemoryError):
            raise
        except Exception as error:  # whatever a broken file makes a decoder raise
            fault = "no known format" if isinstance(error, UnidentifiedImageError) else error
            raise CapbiasError(
                f"{path.name} cannot be read as a picture ({fault}).",
                "Use a whole JPEG, PNG, WebP, BMP, TIFF or GIF file, or leave it out.",
            ) from None


def check_photograph(path: Path) -> None:
    """Raises CapbiasError for a file that `read_photograph` cannot read."""
    read_photograph(path)


def _upright(image: Image.Image) -> Image.Image:
    """Turned as its EXIF says; as it is if that cannot be read. The other fields may hold anything."""
    from PIL import Image

    try:
        turn = TURNS.get(image.getexif().get(ORIENTATION, 0))
    except Exception:
        turn = None
    return image if turn is None else image.transpose(Image.Transpose[turn])


def photograph_digest(path: Path) -> str:
    """A digest of the file's bytes. Raises CapbiasError where it cannot be read."""
    with readable(Path(path)), Path(path).open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()[:32]


def _rgb(image: Image.Image) -> np.ndarray:
    from PIL import Image

    if image.mode.startswith("I"):  # 16 bits a pixel, which Pillow would cut off at 255
        image = Image.fromarray((np.asarray(image).clip(0, 65535) // 257).astype(np.uint8))
    return np.array(image.convert("RGB"))


def _too_large(path: Path, size: str) -> CapbiasError:
    return CapbiasError(
        f"{path.name} has {size} pixels; at most {MOST_PIXELS // 1_000_000} million pixels are read.",
        "Save it smaller; detectors and captioners reduce it to a few hundred pixels a side anyway.",
    )
