"""Photographs: read upright, refused where broken; what a run says of a folder of them."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image, ImageOps

from capbias_core.errors import CapbiasError
from capbias_core.load.photographs import read_photograph
from capbias_core.workspace.photographs import frozen_photographs, keep_images, photograph_files, picture_path
from capbias_core.workspace.store import Workspace

RED, BLUE = (200, 10, 20), (5, 20, 210)


@pytest.fixture
def folder(tmp_path):
    """Two photographs, three pixels wide and two high."""
    place = tmp_path / "pictures"
    place.mkdir()
    for name, colour in (("000000000785.png", RED), ("COCO_val2014_000000000872.png", BLUE)):
        Image.new("RGB", (3, 2), colour).save(place / name)
    return place


def test_pictures_are_turned_as_pillow_turns_them_and_other_modes_become_rgb(tmp_path):
    for turn in range(1, 9):
        picture = Image.fromarray(np.random.default_rng(turn).integers(0, 256, (2, 3, 3), dtype=np.uint8))
        exif = Image.Exif()
        exif[0x0112] = turn
        picture.save(tmp_path / "a.png", exif=exif)
        with Image.open(tmp_path / "a.png") as saved:
            wanted = np.array(ImageOps.exif_transpose(saved))
        assert (read_photograph(tmp_path / "a.png") == wanted).all()
    white = [Image.new("RGB", (3, 2), (255, 255, 255)).convert(mode) for mode in ("CMYK", "L", "P", "RGBA")]
    for picture in [*white, Image.fromarray(np.full((2, 3), 65535, dtype=np.uint16))]:
        picture.save(tmp_path / "a.tiff")
        pixels = read_photograph(tmp_path / "a.tiff")
        assert pixels.shape == (2, 3, 3) and (pixels == 255).all()


def jpeg() -> bytes:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(data := io.BytesIO(), "JPEG")
    return data.getvalue()


def png(size: int) -> bytes:
    Image.new("1", (size, size)).save(data := io.BytesIO(), "PNG")
    return data.getvalue()


# Pillow would start Ghostscript for a file named .png that is PostScript.
REFUSED = {
    "cut short": (jpeg()[:2000], "cannot be read as a picture"),
    "no picture": (b"hello", "cannot be read as a picture"),
    "PostScript": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n", "cannot be read as a picture"),
    "PPM": (b"P6 1 1 255 abc", "cannot be read as a picture"),
    "too many pixels": (png(10_000), "64 million pixels"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_picture_or_too_large_is_refused(tmp_path, case):
    data, message = REFUSED[case]
    (tmp_path / "a.png").write_bytes(data)
    with pytest.raises(CapbiasError, match=message):
        read_photograph(tmp_path / "a.png")


# what a run says of them


def test_a_run_names_the_contents(tmp_path, folder):
    workspace = Workspace(tmp_path / "home")
    keep_images(workspace, folder, "mine")
    frozen = frozen_photographs(workspace, "mine")
    assert photograph_files(workspace, frozen) == {
        "785": folder / "000000000785.png",
        "872": folder / "COCO_val2014_000000000872.png",
    }
    Image.new("RGB", (3, 2), BLUE).save(folder / "000000000785.png")
    assert frozen_photographs(workspace, "mine")["digest"] != frozen["digest"]
    with pytest.raises(CapbiasError, match="or have changed"):
        photograph_files(workspace, frozen)


def test_masked_photographs_are_not_shown_as_the_originals(tmp_path, folder):
    workspace = Workspace(tmp_path / "home")
    keep_images(workspace, folder, "mine", "a mask", {"condition": "box", "of": "photographs"})
    assert picture_path(workspace, "mine", "785") is None
    keep_images(workspace, folder, "mine")
    assert picture_path(workspace, "mine", "785") == folder / "000000000785.png"
