"""Imports point one way along the packages and never round, lazy ones too; what pages use stays light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Each package or module directly under capbias_core may import from its own row and from earlier ones.
ROWS = (
    "types errors kinds attributes databases processes resources spreadsheets typed whole_files",
    "load prepare",
    "attackers language vision",
    "data metrics",
    "aggregate",
    "workspace",
    "measures",
    "question",
    "runs worker",
    "views",
    "bundle",
    "cli api extensions __main__ __init__",
)
ORDER = {name: place for place, row in enumerate(ROWS) for name in row.split()}
HEAVY = {"torch", "captum", "transformers", "sentence_transformers", "ultralytics", "distributed", "sklearn", "plotly"}


@cache
def modules() -> dict[str, Path]:
    """Dotted name -> file, of the core, the pages and the front page."""
    paths = [*(ROOT / "capbias_core").rglob("*.py"), *(ROOT / "pages").rglob("*.py"), ROOT / "app.py"]
    dotted = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in sorted(paths)}
    return {name.removesuffix(".__init__"): path for path, name in dotted.items()}


def named_in(source: str) -> set[str]:
    """The modules that a source text imports, also inside functions, and those that any text of it names, as tables of
    what is imported later do. `from a import b` counts as a.b if that is a module."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, "a relative import"
            # What begins with two underscores, such as __version__, needs nothing of what its module imports.
            whole = [f"{node.module}.{alias.name}" for alias in node.names if not alias.name.startswith("__")]
            names |= {name if name in modules() else node.module for name in whole}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
            names |= {node.value.partition(":")[0]} & modules().keys()
    return names


@cache
def imports_of(module: str) -> frozenset[str]:
    """The modules of the project that a module imports. Whoever imports a.b.c also runs the __init__ of a and of a.b;
    what is inside a package has that behind it."""
    named = named_in(modules()[module].read_text(encoding="utf-8")) & modules().keys()
    parents = {name.rsplit(".", depth)[0] for name in named for depth in range(1, name.count(".") + 1)}
    behind = {name for name in parents & modules().keys() if not f"{module}.".startswith(f"{name}.")}
    return frozenset((named | behind) - {module})


def row_name(module: str) -> str:
    """The name in ROWS of a module such as capbias_core.load.ids; '' for modules that are not the core's."""
    first, _, rest = module.partition(".")
    return (rest.partition(".")[0] or "__init__") if first == "capbias_core" else ""


def back_imports(names: frozenset[str] | set[str], row: str) -> list[str]:
    """Those that stand in later rows than this one (prepare may not import load, though load may use it)."""
    rows = {name: row_name(name) for name in names if row_name(name)}
    return sorted(
        name for name, other in rows.items() if ORDER[other] > ORDER[row] or (row, other) == ("prepare", "load")
    )


@pytest.mark.long
def test_imports_point_one_way_and_not_round():
    core = [name for name in modules() if row_name(name)]
    assert {row_name(name) for name in core} <= set(ORDER), "give the new package a row in ROWS"
    back = {name: back_imports(imports_of(name), row_name(name)) for name in core}
    assert {name: wrong for name, wrong in back.items() if wrong} == {}
    TopologicalSorter({name: imports_of(name) for name in modules()}).prepare()
    late = "def late():\n    import capbias_core.cli\nLATER = {'plan': 'capbias_core.runs.plan:plan'}"
    assert back_imports(named_in(late), "metrics") == ["capbias_core.cli", "capbias_core.runs.plan"]


@pytest.mark.long
def test_what_the_web_server_imports_is_light_and_the_core_never_imports_streamlit():
    for name, path in modules().items():
        first = {each.partition(".")[0] for each in named_in(path.read_text(encoding="utf-8"))}
        assert not (row_name(name) and "streamlit" in first), name
    of_pages = sorted({name for page in modules() if not row_name(page) for name in imports_of(page) if row_name(name)})
    names = ["capbias_core.runs.engine", "capbias_core.views.results", "capbias_core.cli", *of_pages]
    code = f"import sys, importlib\nfor name in {names!r}: importlib.import_module(name)\n"
    code += f"print(*sorted({HEAVY!r} & set(sys.modules)))\n"
    # Processes that are spawned import the script of the server's process, which is the page that asked for them.
    code += "import runpy\nfrom pathlib import Path\nfor page in ('app.py', *map(str, Path('pages').glob('*.py'))):\n"
    code += "    runpy.run_path(page, run_name='__mp_main__')\n"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
    assert "ScriptRunContext" not in done.stderr, "a page runs where it is only imported"


def test_only_the_controls_touch_the_address():
    """Else a choice would be missing in links, or a button would fall over what a control is bound to."""
    address = re.compile(r"bind=|query_params|switch_page|page_link")
    users = {path.name for path in (ROOT / "pages").rglob("*.py") if address.search(path.read_text())}
    assert users == {"controls.py"}
