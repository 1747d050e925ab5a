"""What may be named on a server: nothing, or what lies in the folders that are listed."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from capbias_core.errors import CapbiasError
from capbias_core.language.files import find_model
from capbias_core.load import places
from capbias_core.load.photographs import picture_files
from capbias_core.vision.weights import find_weights
from capbias_core.workspace.models import file_option, model_option, model_path
from capbias_core.workspace.store import Workspace

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folders(tmp_path, monkeypatch) -> tuple[Path, Path]:
    """A folder that is listed and one that is not; links in the first lead to the second."""
    opened, secret = tmp_path / "opened", tmp_path / "secret"
    for folder in (opened, secret):
        folder.mkdir()
        (folder / "captions.csv").write_text("image_id,caption\n1,a dog\n")
        (folder / "1.jpg").write_bytes(b"")
        (folder / "config.json").write_text("{}")
        (folder / "weights.pt").write_bytes(b"")
    (opened / "link").symlink_to(secret)
    (opened / "2.jpg").symlink_to(secret / "1.jpg")
    monkeypatch.setenv(places.ROOTS, str(opened))
    return opened, secret


def test_a_server_names_what_is_listed_and_nothing_else(folders):
    opened, secret = folders
    places.serve()
    assert places.named(opened / "captions.csv").is_file()
    said = set()
    for path in (secret / "captions.csv", secret / "none.csv", opened / "link" / "captions.csv", opened / ".." / "x"):
        with pytest.raises(CapbiasError) as error:
            places.named(path)
        said.add(str(error.value).replace(repr(str(path)), "PATH"))
    assert len(said) == 1, "what is there and what is not are refused in the same words"
    assert [path.name for path in picture_files(opened)] == ["1.jpg"]


@pytest.mark.skipif(not find_spec("transformers"), reason="transformers is not installed")
def test_models_and_weights_are_named_in_the_same_way(folders, tmp_path):
    """A folder elsewhere is refused as one that is not there; what a run knows already stays readable."""
    opened, secret = folders
    workspace = Workspace(tmp_path / "w")
    known = model_option(workspace, "sentence_encoder", str(secret))
    places.serve()
    assert find_model(str(opened), "a model").name == "opened"
    for folder in (secret, secret / "none"):
        with pytest.raises(CapbiasError, match=f"on this machine.*in one that {places.ROOTS} lists"):
            find_model(str(folder), "a model")
    with pytest.raises(CapbiasError, match="by visitors of this server"):
        file_option(workspace, "weights", secret / "weights.pt")
    assert model_path(workspace, known) == str(secret)


@pytest.mark.skipif(not find_spec("ultralytics"), reason="ultralytics is not installed")  # importing it changes PIL
def test_weights_elsewhere_are_not_read(folders):
    places.serve()
    assert find_weights(str(folders[0] / "weights.pt"), folders[0]).name == "weights.pt"
    with pytest.raises(CapbiasError, match="by visitors of this server"):
        find_weights(str(folders[1] / "weights.pt"), folders[0])


def test_of_a_source_elsewhere_a_server_says_the_file_alone(folders):
    opened, secret = folders
    far, near = f"{secret}/captions.csv", f"{opened}/captions.csv"
    assert places.shown(far) == far
    places.serve()
    assert places.shown(far) == "captions.csv" and places.shown(near) == near
    assert places.shown(f"boxes yolo ({secret}/1.jpg)") == "boxes yolo (1.jpg)"
    assert places.shown("captions/of.json, uploaded") == "captions/of.json, uploaded"
