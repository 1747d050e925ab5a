"""Several files at once: what each is, what they have in common, and keeping them together."""

import pytest

from capbias_core.errors import CapbiasError
from capbias_core.load.kinds import GENERATED, HUMAN, LABELS, OBJECTS
from capbias_core.runs.plan import Request, first_request, plan
from capbias_core.workspace.labels import suggested_details
from capbias_core.workspace.offers import Choices, in_common, keep_offers, kept_images, offers_of
from capbias_core.workspace.store import Workspace


@pytest.fixture
def files(tmp_path):
    """Captions of images 1 to 4, people's of 1 and 2 (two each), labels of 2 to 5, objects of image 9."""
    texts = {
        "sat.csv": "image_id,caption\n" + "".join(f"{image},a dog {image}\n" for image in range(1, 5)),
        "all.csv": "image_id,caption\n1,a dog\n1,a cat\n2,a dog\n2,a bird\n",
        "labels.csv": "image_id,gender,mood\n2,Male,glad\n3,Female,sad\n4,Male,sad\n5,Female,glad\n",
        "objects.csv": "image_id,objects\n9,dog\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return [tmp_path / name for name in texts]


def test_what_files_are_and_have_in_common(files, tmp_path):
    workspace = Workspace(tmp_path / "home")
    offers = [offers_of(workspace, path, "c")[0] for path in files]
    assert [own.kind for own in offers] == [GENERATED, HUMAN, LABELS, OBJECTS]
    common = in_common(offers, kept_images(workspace, "c"))
    assert [common[own.key] for own in offers] == [3, 2, 3, 0]
    assert in_common(offers[:1], kept_images(workspace, "c")) == {offers[0].key: None}


def test_a_wrong_kind_is_read_as_asked_and_said(files, tmp_path):
    workspace = Workspace(tmp_path / "home")
    wrong = offers_of(workspace, files[0], "c", LABELS)[0]
    assert (wrong.kind, wrong.own.kind) == (LABELS, GENERATED)
    unread = offers_of(workspace, files[2], "c", GENERATED)[0]
    assert unread.preview is None and unread.own.kind == LABELS and "labels.csv" in unread.error.got


def test_all_are_kept_together_and_can_be_scored(files, tmp_path):
    workspace = Workspace(tmp_path / "home")
    assert first_request(workspace, "c") is None
    offers = [offers_of(workspace, path, "c")[0] for path in files]
    mapped = [suggested_details("gender", offers[2].preview.frame)]
    said = {offers[0].key: Choices(trained=True), offers[2].key: Choices(attributes=mapped)}
    kept = keep_offers(workspace, "c", offers, said)
    assert [(item.kind, item.name) for item in kept] == [
        ("attributes", "labels"),
        ("references", "all"),
        ("objects", "objects"),
        ("captions", "sat"),
    ]
    assert kept[-1].details["trained_on_references"] is True
    request = first_request(workspace, "c")
    assert (request.captions, request.attribute, request.references, request.words) == (("sat",), "gender", "all", True)
    # What is kept counts for the next file.
    assert in_common([offers_of(workspace, files[0], "c")[0]], kept_images(workspace, "c")) == {(files[0], False): 3}


def test_files_of_one_name_or_under_a_run_are_refused_together(files, tmp_path):
    """Nothing is kept then, labels neither."""
    workspace = Workspace(tmp_path / "home")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "sat.csv").write_text("image_id,caption\n2,a cat\n")
    labels, sat = offers_of(workspace, files[2], "c")[0], offers_of(workspace, files[0], "c")[0]
    said = {labels.key: Choices(attributes=[suggested_details("gender", labels.preview.frame)])}
    with pytest.raises(CapbiasError, match="called sat"):
        keep_offers(workspace, "c", [labels, sat, offers_of(workspace, tmp_path / "other" / "sat.csv", "c")[0]], said)
    assert not workspace.items()

    keep_offers(workspace, "c", [labels, sat], said)
    (spec,) = plan(workspace, Request("c", ("sat",), "labels", "gender", ("ratio",)))
    assert workspace.enqueue(spec, "c", "t")
    human = offers_of(workspace, files[1], "c")[0]
    with pytest.raises(CapbiasError, match="sat, which a run is reading"):
        keep_offers(workspace, "c", [human, offers_of(workspace, tmp_path / "other" / "sat.csv", "c")[0]], {})
    assert not workspace.items("references")
    # The same content again is no replacement, whatever reads it.
    assert [item.name for item in keep_offers(workspace, "c", [human, sat], {})] == ["all", "sat"]
