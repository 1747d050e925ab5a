"""Imports point one way along the packages and never round, lazy ones too; what pages use stays light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "capbias_core"

# Each package or module directly under capbias_core may import from its own row and from earlier ones.
ROWS = (
    (
        "types",
        "errors",
        "kinds",
        "attributes",
        "databases",
        "entry_points",
        "processes",
        "resources",
        "spreadsheets",
        "typed",
        "whole_files",
    ),
    ("load", "prepare"),
    ("attackers", "language", "vision"),
    ("data", "metrics"),
    ("aggregate",),
    ("workspace",),
    ("measures",),
    ("question",),
    ("runs", "worker"),
    ("views",),
    ("bundle",),
    ("cli", "api", "extensions", "__main__", "__init__"),
)
ORDER = {name: place for place, row in enumerate(ROWS) for name in row}
# Names at the top level of modules that their package finds by itself.
MARKERS = {"MEASURE", "ENTRIES", "FORMAT"}
HEAVY = {"torch", "captum", "transformers", "sentence_transformers", "ultralytics", "distributed", "sklearn", "plotly"}


def called(node: ast.AST) -> str:
    """The name of the function that a node calls; '' for another node."""
    return getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""


@cache
def nodes(source: str) -> tuple[ast.AST, ...]:
    """Every node of a source text, the whole text first."""
    return tuple(ast.walk(ast.parse(source)))


@cache
def imported_modules(source: str, module: str = "capbias_core.here") -> frozenset[str]:
    """The modules that a source text imports, also inside functions. `from a import b` counts as a.b if that is one.

    module: the dotted name of the text, for relative imports. Also counted: literal names given to `import_module`, and
    any text that is the dotted name of a module (tables of what is imported later hold these); not what a command runs
    in another process with `-m`.
    """
    names = set()
    commands = [node.elts for node in nodes(source) if isinstance(node, ast.List)]
    run = {id(name) for elts in commands for flag, name in pairwise(elts) if getattr(flag, "value", "") == "-m"}
    for node in nodes(source):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parents = module.split(".")[: -node.level] if node.level else []
            base = ".".join(filter(None, (*parents, node.module)))
            # What begins with two underscores, such as __version__, needs nothing of what its module imports.
            whole = [f"{base}.{alias.name}" for alias in node.names if not alias.name.startswith("__")]
            names |= {name if name in modules() else base for name in whole}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in run:
            name = node.value.partition(":")[0]
            names |= {name} if "." in name and name in modules() else set()
    return frozenset(names)


def finds_modules(source: str) -> bool:
    """Whether a source text imports the modules of its package whatever their names."""
    return "iter_modules" in source and any(called(node) == "iter_modules" for node in nodes(source))


def has_marker(source: str) -> bool:
    for node in nodes(source)[0].body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id in MARKERS for target in targets):
            return True
    return False


def hidden_imports(source: str) -> list[int]:
    """Lines of imports by a name that is worked out, which nobody can follow."""
    calls = [node for node in nodes(source) if called(node) in ("import_module", "__import__")]
    return [call.lineno for call in calls if not isinstance(call.args[0], ast.Constant)]


@cache
def modules() -> dict[str, Path]:
    """Dotted name -> file, of the core, the pages and the front page."""
    named = {}
    for path in sorted([*CORE.rglob("*.py"), *(ROOT / "pages").rglob("*.py"), ROOT / "app.py"]):
        parts = path.relative_to(ROOT).with_suffix("").parts
        named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return named


@cache
def source_of(module: str) -> str:
    return modules()[module].read_text(encoding="utf-8")


@cache
def imports_of(module: str) -> frozenset[str]:
    """The modules of the project that a module imports.

    Whoever imports a.b.c also runs the __init__ of a and of a.b; what is inside a package has that behind it.
    """
    is_package = modules()[module].name == "__init__.py"
    package = module if is_package else module.rpartition(".")[0]
    named = imported_modules(source_of(module), f"{module}.__init__" if is_package else module) & modules().keys()
    if finds_modules(source_of(module)):
        named |= {name for name in modules() if name.rpartition(".")[0] == package and has_marker(source_of(name))}
    parents = {name.rsplit(".", depth)[0] for name in named for depth in range(1, name.count(".") + 1)}
    behind = {name for name in parents & modules().keys() if not f"{module}.".startswith(f"{name}.")}
    return frozenset((named | behind) - {module})


def circle(imports: dict[str, frozenset[str]]) -> list[str]:
    """A chain of modules that import each other round in a circle; [] if there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def row_name(module: str) -> str | None:
    """The name in ROWS of a module such as capbias_core.load.ids; None for modules that are not the core's."""
    parts = module.split(".")
    return (parts[1] if len(parts) > 1 else "__init__") if parts[0] == "capbias_core" else None


def core_modules() -> list[str]:
    return [name for name in modules() if row_name(name)]


def back_imports(named: Iterable[str], row: str) -> list[str]:
    """Those of the modules named that stand in later rows (prepare may not import load, though load may use it)."""
    rows = {name: row_name(name) for name in named if row_name(name)}
    return sorted(
        name for name, other in rows.items() if ORDER[other] > ORDER[row] or (row, other) == ("prepare", "load")
    )


@pytest.mark.long
def test_imports_point_one_way_and_can_be_followed():
    assert {row_name(name) for name in core_modules()} <= set(ORDER), "give the new package a row in ROWS"
    back = {name: back_imports(imports_of(name), row_name(name)) for name in core_modules()}
    assert {name: wrong for name, wrong in back.items() if wrong} == {}
    hidden = [name for name in core_modules() if not finds_modules(source_of(name)) and hidden_imports(source_of(name))]
    assert hidden == [], "give import_module the whole name, as a literal"
    assert circle({name: imports_of(name) for name in modules()}) == []


BACKWARD = {
    "from capbias_core.workspace.store import Workspace": "metrics",
    "def late():\n    import capbias_core.cli": "runs",
    "from .. import views": "runs",
    "from capbias_core.load.ids import described": "prepare",
    "from importlib import import_module\nimport_module('capbias_core.runs.plan')": "measures",
    "LATER = {'plan': 'capbias_core.runs.plan:plan'}": "measures",
}


def test_the_checks_see_imports_that_are_backward_in_circles_or_hidden():
    for source, row in BACKWARD.items():
        assert back_imports(imported_modules(source, f"capbias_core.{row}.here") & modules().keys(), row), source
    round_ = {"a": frozenset("b"), "b": frozenset("c"), "c": frozenset("a"), "d": frozenset("a")}
    assert set(circle(round_)) == set("abc") and circle(round_ | {"c": frozenset()}) == []
    assert hidden_imports("from importlib import import_module\n\nimport_module(name)") == [3]
    assert hidden_imports("import importlib\nimportlib.import_module('torch')") == []


# what is imported at all


@pytest.mark.long
def test_what_the_web_server_imports_is_light_and_the_core_never_imports_streamlit():
    for name in core_modules():
        assert "streamlit" not in {each.partition(".")[0] for each in imported_modules(source_of(name), name)}, name
    pages = [name for name in modules() if not row_name(name)]
    of_pages = sorted({name for page in pages for name in imports_of(page) if row_name(name)})
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


# What Streamlit draws its first argument of as Markdown, beside the controls of the view, which escape their labels.
MARKDOWN = {"markdown", "caption", "header", "subheader", "title", "info", "warning", "error", "success", "toast"}
MARKDOWN |= {"button", "download_button", "expander", "popover", "spinner", "checkbox", "radio", "selectbox", "pills"}
MARKDOWN |= {"multiselect", "text_input", "number_input", "slider", "segmented_control"}


def raw_markdown(source: str) -> list[int]:
    """The lines where a text that is not all written there is drawn as Markdown, and not by `plain`."""

    def is_raw(node: ast.AST) -> bool:
        if isinstance(node, ast.JoinedStr):
            return any(isinstance(part, ast.FormattedValue) and is_unsafe(part) for part in node.values)
        return isinstance(node, ast.Attribute) or (isinstance(node, ast.Call) and called(node) != "plain")

    def is_unsafe(part: ast.FormattedValue) -> bool:
        is_constant = isinstance(part.value, ast.Name) and part.value.id.isupper()
        return not (part.format_spec or is_constant or called(part.value) in ("plain", "counted"))

    def drawn(call: ast.Call) -> list[ast.expr]:
        by_view = ast.unparse(call.func).startswith("view.")
        first = call.args[:1] if called(call) in MARKDOWN and not by_view else []
        return [*first, *(word.value for word in call.keywords if word.arg == "help")]

    return [node.lineno for call in nodes(source) if isinstance(call, ast.Call) for node in drawn(call) if is_raw(node)]


def test_pages_draw_texts_of_files_as_text():
    pages = {path.name: raw_markdown(path.read_text()) for path in (ROOT / "pages").rglob("*.py")}
    assert {name: lines for name, lines in pages.items() if lines} == {}
    raw = "st.markdown(shown.sentence)\nst.header(f'{name}')\nbox.button(title(x))\nview.text(st, 'a', help=f'{name}')"
    assert raw_markdown(raw) == [1, 2, 3, 4]
    assert not raw_markdown("st.header(plain(a.b))\nst.header(f'{plain(name)} {n:,} {LEAST}')\nview.text(st, a.b)")
