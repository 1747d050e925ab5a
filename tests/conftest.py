"""What tests share: the real captions beside the project, skipped with a reason where they are absent."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


@pytest.fixture(scope="session")
def coco_bias() -> Path:
    """The folder of real captions (data/coco-bias), or a skip."""
    folder = SHARED / "data" / "coco-bias"
    if not folder.is_dir():
        pytest.skip(f"the real captions are not here ({folder})")
    return folder
