"""Imports point one way along the rooms, the core never sees streamlit, and what pages use stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "capbias_core"

# Each room may import from its own row and from earlier ones.
ROOMS = (
    ("types", "errors", "attributes", "databases"),
    ("load", "prepare"),
    ("attackers", "language"),
    ("metrics",),
    ("aggregate",),
    ("explain",),
    ("vision",),
    ("experiments",),
    ("present",),
    ("cli", "__main__"),
)
ORDER = {room: place for place, row in enumerate(ROOMS) for room in row}

HEAVY = {"torch", "captum", "transformers", "sentence_transformers", "ultralytics", "distributed", "sklearn"}


def imported_modules(source: str, package: str = "capbias_core") -> set[str]:
    """Every module that a source text imports, also inside functions; `from a import b` counts as a and a.b."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(filter(None, (package if node.level else "", node.module)))
            found |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return found


def room_of(module: str) -> str | None:
    """The room of a module such as capbias_core.load.ids, or None for the package itself and other packages."""
    parts = module.split(".")
    return parts[1] if parts[0] == "capbias_core" and len(parts) > 1 and parts[1] != "__version__" else None


def room_of_file(path) -> str:
    return path.relative_to(CORE).with_suffix("").parts[0]


def core_files():
    return [path for path in sorted(CORE.rglob("*.py")) if path != CORE / "__init__.py"]


def back_imports(source: str, room: str) -> list[str]:
    """Modules of later rooms that a file of `room` imports (prepare may not import load, though load may use it)."""
    rooms = {module: room_of(module) for module in imported_modules(source)}
    wrong = {module for module, other in rooms.items() if other and ORDER[other] > ORDER[room]}
    if room == "prepare":
        wrong |= {module for module, other in rooms.items() if other == "load"}
    return sorted(wrong)


def test_every_room_has_its_place():
    assert {room_of_file(path) for path in core_files()} <= set(ORDER), "give the new room its place in ROOMS"


@pytest.mark.parametrize("path", core_files(), ids=lambda path: str(path.relative_to(CORE)))
def test_imports_point_one_way(path):
    assert back_imports(path.read_text(encoding="utf-8"), room_of_file(path)) == []


@pytest.mark.parametrize(
    ("source", "room"),
    [
        ("from capbias_core.workspace.store import Workspace", "metrics"),
        ("def late():\n    import capbias_core.cli", "experiments"),
        ("from capbias_core import present", "experiments"),
        ("from capbias_core.load.ids import described", "prepare"),
    ],
)
def test_the_check_sees_a_backward_import(source, room):
    assert back_imports(source, room)


def test_load_may_use_the_tokenizer():
    assert back_imports("from capbias_core.prepare.text import tokenize", "load") == []


def test_the_core_never_imports_streamlit():
    users = [
        path.name
        for path in core_files()
        if any(module.partition(".")[0] == "streamlit" for module in imported_modules(path.read_text(encoding="utf-8")))
    ]
    assert users == []


def page_modules() -> list[str]:
    """Modules of the core that the pages and the front page import."""
    files = [*ROOT.glob("app.py"), *sorted((ROOT / "pages").rglob("*.py"))]
    named = {module for path in files for module in imported_modules(path.read_text(encoding="utf-8"), "pages")}
    return sorted(module for module in named if room_of(module) and is_module(module))


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def test_what_the_web_server_imports_is_light():
    always = ["capbias_core.runs.engine", "capbias_core.analysis.read", "capbias_core.cli"]
    names = [name for name in dict.fromkeys(always + page_modules()) if is_module(name)]
    assert "capbias_core.runs.engine" in names
    code = f"import sys, importlib\nfor name in {names!r}: importlib.import_module(name)\n"
    code += f"print(*sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_a_worker_that_starts_draws_no_page():
    """Processes that are spawned import the script of the server's process, which is the page that asked for them."""
    code = (
        "import runpy, sys\nfrom pathlib import Path\n"
        "for page in ('app.py', *map(str, sorted(Path('pages').glob('*.py')))):\n"
        "    runpy.run_path(page, run_name='__mp_main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "ScriptRunContext" not in done.stderr, "a page runs where it is only imported"
