"""A photograph's file to its pixels: upright, RGB, and refused if it is broken or too large for memory."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd

from capbias_core.errors import CapbiasError, need, short
from capbias_core.load.files import readable
from capbias_core.load.ids import normalise_image_id
from capbias_core.load.places import nameable
from capbias_core.whole_files import check_file, typed_path

PICTURES = {".jpg", ".jpeg", ".png", ".webp"}
# What Pillow may take a file for; others, such as PostScript, it hands to further programs.
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF")
MOST_PIXELS = 64_000_000  # 192 MB as RGB; the header gives away a bomb before anything is decoded


def picture_files(folder: Path) -> list[Path]:
    """The files of photographs in a folder, by name; none without the folder. Links only to what may be named here.
    Raises CapbiasError for a pipe or a device among them."""
    files = folder.glob("*") if folder.is_dir() else []
    pictures = [path for path in files if path.suffix.lower() in PICTURES]
    for path in pictures:
        with suppress(OSError):  # such as a link to nothing
            check_file(path)
    return sorted(path for path in pictures if not path.is_symlink() or nameable(path))


def find_pictures(folder: Path) -> pd.DataFrame:
    """Photographs in a folder by image ID (from the file's name): image_id, file. Raises CapbiasError without any. Of
    several files of one image the first by name is taken; `picture_files` has all."""
    folder = typed_path(folder)
    files = [path.name for path in picture_files(folder)]
    if not files:
        raise CapbiasError(
            f"The folder {short(folder, 200)!r} holds no photograph.",
            "Check the path. A file is named by its image ID, such as 000000000785.jpg.",
        )
    frame = pd.DataFrame({"image_id": list(map(normalise_image_id, files)), "file": files})
    return frame.drop_duplicates("image_id", ignore_index=True)


def read_photograph(path: Path, longest: int = 0) -> np.ndarray:
    """(height, width, 3) uint8 RGB, turned upright by its EXIF; the first frame of an animated file.

    longest: pixels that are enough for its longer side, so that a JPEG is decoded at a half or less.
    Raises CapbiasError for a file that is not a picture, is cut short, or has more than 64 million pixels.
    """
    need("Reading a photograph", "PIL")
    from PIL import Image, ImageOps, UnidentifiedImageError

    path = Path(path)
    with readable(path), path.open("rb") as handle:
        try:
            with Image.open(handle, formats=FORMATS) as opened:
                if opened.width * opened.height > MOST_PIXELS:
                    raise ValueError(f"it has more than {MOST_PIXELS // 1_000_000} million pixels")
                if longest:
                    opened.draft("RGB", (longest, longest))
                image = opened
                with suppress(Exception):  # EXIF may hold anything
                    image = ImageOps.exif_transpose(opened)
                if image.mode.startswith("I"):  # 16 bits a pixel, which Pillow would cut off at 255
                    image = Image.fromarray((np.asarray(image).clip(0, 65535) // 257).astype(np.uint8))
                return np.array(image.convert("RGB"))
        except (CapbiasError, MemoryError):
            raise
        except Exception as error:  # whatever a broken file makes a decoder raise
            fault = "no known format" if isinstance(error, UnidentifiedImageError) else error
            raise CapbiasError(
                f"{path.name} cannot be read as a picture ({fault}).",
                "Use a whole JPEG, PNG, WebP, BMP, TIFF or GIF file of at most 64 million pixels, or leave it out.",
            ) from None


def check_photograph(path: Path) -> None:
    """Raises CapbiasError for a file that `read_photograph` cannot read. A child process need not send the pixels."""
    read_photograph(path)
