"""The wheel: what it holds, and what works from it where nothing but the core's packages is installed."""

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from capbias_core import __version__
from capbias_core.errors import EXTRAS, PACKAGES

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HELD = (
    "capbias_core/attributes/gender.toml",
    "capbias_core/_assets/objects.toml",
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


def closure(requirements: list[str]) -> set[str]:
    """Names of the packages that these need, themselves included."""
    found: set[str] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name not in found and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            found.add(name)
            waiting += [Requirement(text) for text in metadata.distribution(name).requires or ()]
    return found


# What the core does where nothing else is installed. Its arguments: modules that are not, modules of extras.
CODE = """
import importlib, json, pkgutil, sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
sys.modules.update(dict.fromkeys(json.loads(sys.argv[1])))
import capbias_core
from capbias_core import cli, resources
from capbias_core.attributes import known_attributes
from capbias_core.load.published import published_results
from capbias_core.prepare.tasks import object_names

known = [len(published_results()) > 0, len(object_names()), resources.APP.is_file(), str(resources.PACKAGE)]
done = {"attributes": sorted(known_attributes()), "known": known, "failed": {}, "scored": {}}
for module in pkgutil.walk_packages(capbias_core.__path__, "capbias_core.", onerror=lambda name: None):
    if not module.name.startswith(tuple(json.loads(sys.argv[2]))) and not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            done["failed"][module.name] = str(error)
demo = resources.DEMO_FOLDER
files = ["--captions", f"{demo}/results/amplifier.json", "--labels", f"{demo}/attributes.csv"]
files += ["--references", f"{demo}/references.json", "--attribute", "gender", "--format", "json"]
for asked in (["lic", "--seeds", "3"], ["lic", "--attacker", "lstm"], ["god"], ["cider"]):
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = cli.main(["score", *files, "--metric", *asked])
    done["scored"][" ".join(asked)] = [code, out.getvalue(), err.getvalue()]
print(json.dumps(done))
"""


@pytest.fixture(scope="module")
def done(wheel, tmp_path_factory) -> dict:
    """What the unpacked wheel does where only packages that the core needs can be imported."""
    folder = tmp_path_factory.mktemp("core")
    zipfile.ZipFile(wheel).extractall(folder)
    needed = closure(PROJECT["dependencies"])
    others = [
        module
        for module, names in metadata.packages_distributions().items()
        if module != "capbias_core" and not needed & set(map(canonicalize_name, names))
    ]
    command = [sys.executable, "-c", CODE, json.dumps(others), json.dumps(WITH_EXTRAS)]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout) | {"folder": str(folder / "capbias_core")}


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
    for extra, modules in EXTRAS.items():
        for module in set(modules) - brought:
            package = PACKAGES.get(module, module.replace("_", "-"))
            assert any(own.startswith(package) for own in extras[extra]), module


def test_nothing_heavy_is_imported_with_the_package():
    code = "import sys, capbias_core; print(capbias_core.__version__, *{'numpy', 'pandas', 'scipy'} & {*sys.modules})"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert ended.stdout.split() == [__version__]


@pytest.mark.slow
def test_the_core_imports_without_extras_and_knows_its_data(done):
    assert done["failed"] == {}
    assert {"age", "emotion", "gender", "race"} <= set(done["attributes"])
    assert done["known"] == [True, 79, True, done["folder"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("lic --attacker lstm", "The attacker lstm needs torch, which is not installed. Run: pip install"),
        ("god", "A sentence encoder needs torch and transformers and sentence-transformers, which are not installed."),
        ("cider", "cider left out: it needs pycocoevalcap, which is not installed. Run: pip install 'capbias[vision]'"),
    ],
)
def test_a_missing_extra_is_one_line_before_anything_runs(done, asked, said):
    code, _, printed = done["scored"][asked]
    (line,) = [line for line in printed.splitlines() if line.startswith("error:")]
    assert code == 2 and said in line and "run to do" not in printed


@pytest.mark.slow
def test_the_core_scores_the_demo_from_the_command_line(done):
    """LIC is known by construction (18.3)."""
    code, printed, _ = done["scored"]["lic --seeds 3"]
    values = {row["metric"]: round(row["value"], 1) for row in json.loads(printed)}
    both = {"LIC": 18.7, "LIC_by_H": 6.6, "LIC_by_M": 13.3}
    both |= {"LIC_M": 62.8, "LIC_D": 44.1, "LIC_HM": 50.7, "LIC_MH": 49.5}
    assert code == 0 and values == both
