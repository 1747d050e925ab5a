"""The wheel: what it holds, and what works from it where nothing but the core's packages is installed."""

import json
import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from capbias_core import __version__
from capbias_core.errors import EXTRAS

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HELD = (
    "capbias_core/attributes/gender.toml",
    "capbias_core/_assets/objects.toml",
    "capbias_core/_assets/valence.tsv",
    "capbias_core/_assets/icon.svg",
    "capbias_core/_assets/published/results.csv",
    "capbias_core/_assets/demo/attributes.csv",
    "capbias_core/_assets/demo/references.json",
    "capbias_core/_assets/demo/results/amplifier.json",
    "capbias_core/_app/app.py",
    "capbias_core/_app/pages/1_Data.py",
    "capbias_core/_app/pages/ui/frame.py",
    "capbias_core/_app/.streamlit/config.toml",
)
# Modules that are imported only where their extra is installed; every other one imports without.
WITH_EXTRAS = ("capbias_core.attackers.networks", "capbias_core.language", "capbias_core.vision")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def core(wheel, tmp_path_factory) -> Path:
    """The Python of an environment that holds the wheel and the core's packages, and nothing else.

    The packages are those that are installed here, linked, so that no network is needed.
    """
    folder = tmp_path_factory.mktemp("core")
    venv.create(folder, symlinks=True)
    site = next(folder.glob("lib/python*/site-packages"))
    for name in closure(PROJECT["dependencies"]):
        found = metadata.distribution(name)
        for entry in {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}:
            if not (site / entry).exists():
                (site / entry).symlink_to(found.locate_file(entry))
    python = folder / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "-qq", "--no-deps", "--no-index"]
    subprocess.run([*install, str(wheel)], check=True)
    return python


def closure(requirements: list[str]) -> set[str]:
    """Names of the packages that these need, themselves included."""
    found: set[str] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        requirement = waiting.pop()
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if wanted and requirement.name not in found:
            found.add(requirement.name)
            waiting += [Requirement(text) for text in metadata.distribution(requirement.name).requires or ()]
    return found


def run(python: Path, code: str, folder: Path) -> str:
    done = subprocess.run([python, "-c", code], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_the_wheel_holds_data_pages_and_licence(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert set(HELD) <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    pages = {f"capbias_core/_app/pages/{path.name}" for path in (ROOT / "pages").glob("*.py")}
    assert pages <= names


def test_every_extra_is_named_with_its_packages():
    """`need` names the extra that pyproject.toml gives a package to; what others bring along is not written there."""
    extras = {name: {Requirement(text).name for text in own} for name, own in PROJECT["optional-dependencies"].items()}
    brought = {"torchvision", "huggingface_hub"}
    for module, (extra, package) in EXTRAS.items():
        if module not in brought:
            assert any(own.startswith(package) for own in extras[extra]), module


def test_nothing_heavy_is_imported_with_the_package():
    code = "import sys, capbias_core; print(capbias_core.__version__, *{'numpy', 'pandas', 'scipy'} & {*sys.modules})"
    assert run(Path(sys.executable), code, ROOT).split() == [__version__]


@pytest.mark.long
def test_the_core_knows_its_data_outside_the_checkout(core, tmp_path):
    code = """
import json
from capbias_core.attributes import known_attributes
from capbias_core.load.published import published_results
from capbias_core.prepare.tasks import object_names
from capbias_core import resources
found = [sorted(known_attributes()), len(published_results()) > 0, len(object_names()), resources.APP.is_file()]
print(json.dumps([*found, resources.PACKAGE.parts[-2], resources.DEMO_FOLDER.is_dir()]))
"""
    attributes, published, objects, page, parent, demo = json.loads(run(core, code, tmp_path))
    assert {"age", "emotion", "gender", "race"} <= set(attributes)
    assert published and objects == 79 and page and demo
    assert parent == "site-packages", "the package of the checkout was imported"


@pytest.mark.long
def test_the_core_imports_without_extras(core, tmp_path):
    code = f"""
import importlib, json, pkgutil
import capbias_core
failed = {{}}
for found in pkgutil.walk_packages(capbias_core.__path__, "capbias_core.", onerror=lambda name: None):
    if found.name.startswith({WITH_EXTRAS!r}) or found.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(found.name)
    except ImportError as error:
        failed[found.name] = str(error)
print(json.dumps(failed))
"""
    assert json.loads(run(core, code, tmp_path)) == {}


@pytest.mark.long
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["lic", "--attacker", "lstm"], "The attacker lstm needs torch, which is not installed. Run: pip install"),
        (
            ["god"],
            "A sentence encoder needs torch and transformers and sentence-transformers, which are not installed.",
        ),
        (
            ["cider"],
            "cider left out: it needs pycocoevalcap, which is not installed. Run: pip install 'capbias[vision]'",
        ),
    ],
)
def test_a_missing_extra_is_one_line_before_anything_runs(core, tmp_path, asked, said):
    demo = next(core.parents[1].glob("lib/python*/site-packages")) / "capbias_core" / "_assets" / "demo"
    files = ["--captions", demo / "results" / "amplifier.json", "--labels", demo / "attributes.csv"]
    files += ["--references", demo / "references.json", "--attribute", "gender"]
    command = [core.with_name("capbias"), "score", *files, "--metric", *asked]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert done.returncode == 2 and said in line and "run to do" not in done.stderr


@pytest.mark.long
def test_the_core_scores_the_demo_from_the_command_line(core, tmp_path):
    """LIC is known by construction (18.3); the linear attacker with 30 seeds finds 19.2 [17.6, 20.8]."""
    demo = next(core.parents[1].glob("lib/python*/site-packages")) / "capbias_core" / "_assets" / "demo"
    command = [core.with_name("capbias"), "score", "--captions", demo / "results" / "amplifier.json"]
    command += ["--labels", demo / "attributes.csv", "--attribute", "gender", "--references", demo / "references.json"]
    done = subprocess.run(
        [*command, "--metric", "lic", "--format", "json"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    values = {row["metric"]: row["value"] for row in json.loads(done.stdout)}
    both = {"LIC": 19.2, "LIC_by_H": 7.6, "LIC_by_M": 13.9}
    both |= {"LIC_M": 63.8, "LIC_D": 44.6, "LIC_HM": 52.2, "LIC_MH": 49.9}
    assert {name: round(value, 1) for name, value in values.items()} == both
