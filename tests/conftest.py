"""What tests share: the real captions beside the project, skipped with a reason where they are absent; a browser."""

import io
import os
import pickle
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from capbias_core.load import places
from capbias_core.types import counted
from capbias_core.workspace import limited
from tests.browser import browser, chromium
from tests.small_models import minilm, tiny  # noqa: F401

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
MAIN = sys.modules["__main__"]
os.environ.setdefault("CAPBIAS_DATA_ROOTS", os.sep)  # pages may name any file, but where a test is about that


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out files none of whose tests have the marks that are asked for: to import torch alone takes seconds."""
    words = config.option.markexpr.split(" and ")
    if collection_path.suffix != ".py" or not all(re.fullmatch(r"(not )?\w+", word) for word in words):
        return None
    text = collection_path.read_text(encoding="utf-8")
    of_all = set(re.findall(r"mark\.(\w+)", "".join(re.findall(r"^pytestmark = .*", text, re.MULTILINE))))
    return (
        any(word.removeprefix("not ") in of_all if "not " in word else f"mark.{word}" not in text for word in words)
        or None
    )


NOT_HERE = "are not here"  # in the reason of tests that are skipped without the shared files


def shared_folder(name: str, what: str) -> Path:
    """A folder beside the project, or a skip."""
    folder = SHARED / name
    if not folder.is_dir():
        pytest.skip(f"{what} {NOT_HERE} ({folder})")
    return folder


def pytest_terminal_summary(terminalreporter) -> None:
    """Says that numbers were not tested; pytest's own last line counts all skips alike."""
    skipped = terminalreporter.stats.get("skipped", ())
    lost = [test for test in skipped if NOT_HERE in str(test.longrepr)]
    if lost:
        terminalreporter.section("not tested", yellow=True)
        terminalreporter.line(
            f"{counted(len(lost), 'test')} of real captions and files skipped: the shared folder is not at {SHARED}."
        )


@pytest.fixture(scope="session")
def coco_bias() -> Path:
    """The folder of real captions (data/coco-bias), or a skip."""
    return shared_folder("data/coco-bias", "the real captions")


@pytest.fixture(scope="session")
def formats() -> Path:
    """The folder with a file of each harness (data/formats), or a skip."""
    return shared_folder("data/formats", "the files of harnesses")


@pytest.fixture(autouse=True)
def terminal(monkeypatch):
    """A page that a test draws makes its process a server's, and its script the main module, which processes that are
    spawned would run. The next test starts in a terminal again."""
    monkeypatch.setitem(sys.modules, "__main__", MAIN)
    monkeypatch.setattr(places, "_serving", False)


@pytest.fixture
def read_here(monkeypatch):
    """What is read with limits is read in this process, and answered as a child does, which takes a second to start."""
    monkeypatch.setattr(limited, "_waiting", [])
    monkeypatch.setattr(limited, "_started", lambda: (Here(answer := io.BytesIO()), answer))


class Here(SimpleNamespace):
    """Stands in for a child process."""

    def __init__(self, answer: io.BytesIO):
        super().__init__(answer=answer, kill=lambda: None)

    def communicate(self, asked: bytes, _seconds: float) -> None:
        *_limits, work = pickle.loads(asked)
        self.answer.write(limited._answered(work))


@pytest.fixture(scope="session")
def chrome():
    """A browser, or a skip."""
    if not chromium():
        if os.environ.get("CAPBIAS_REQUIRE_BROWSER"):
            pytest.fail("CAPBIAS_REQUIRE_BROWSER is set, but there is no Chromium")
        pytest.skip("no Chromium on this machine; install it with: apt-get install chromium")
    with browser() as running:
        yield running


@pytest.fixture(scope="module")
def one_thread():
    """Tensors this small are slower on several threads, much slower where other processes use the cores."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
