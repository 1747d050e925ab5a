"""Captioners of transformers, tiny and with random weights: from a folder to captions, token scores and maps."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from capbias_core.errors import CapbiasError

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from capbias_core.vision.captioners import Captioner  # noqa: E402
from tests.captioners import TINY  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

CAPTION = "a man  holding\na red surfboard ."


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict:
    place = tmp_path_factory.mktemp("captioners")
    return {name: save(place / f"tiny-{name}") for name, save in TINY.items()}


@pytest.fixture(scope="module")
def captioners(folders) -> dict[str, Captioner]:
    return {name: Captioner(str(folder), "cpu") for name, folder in folders.items()}


@pytest.fixture(scope="module")
def pixels() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, (*size, 3), dtype=np.uint8) for size in ((40, 60), (64, 32), (50, 50), (33, 47))]


def documented(folder, pixels: list[np.ndarray], asked: dict) -> list[str]:
    """Captions as transformers documents it for a kind, one photograph at a time."""
    from PIL import Image

    model = transformers.AutoModelForImageTextToText.from_pretrained(folder)
    try:
        processor = transformers.AutoProcessor.from_pretrained(folder)
        images, tokenizer = processor.image_processor, processor.tokenizer
    except AttributeError:
        processor = images = transformers.AutoImageProcessor.from_pretrained(folder)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    found = []
    for own in pixels:
        given = (processor if asked else images)(images=Image.fromarray(own), return_tensors="pt", **asked)
        ids = model.generate(**given, num_beams=3, max_new_tokens=7, do_sample=False)
        first = given["input_ids"].shape[1] if "input_ids" in given and not model.config.is_encoder_decoder else 0
        found.append(tokenizer.batch_decode(ids[:, first:], skip_special_tokens=True)[0].strip())
    return found


ASKED = {
    "blip2": {"text": ""},
    "llava": {"text": "USER: <image>\nDescribe the picture in one short sentence. ASSISTANT:"},
    "florence": {"text": "<CAPTION>"},
    "talker": {"text": "user : <image>Describe the picture in one short sentence. assistant :"},
}


def own_loss(name: str, captioner: Captioner, picture: np.ndarray, caption: str) -> tuple[float, int]:
    """The loss that the model computes itself for a caption as its label, and the tokens of the caption."""
    from PIL import Image

    model, tokenizer, image = captioner.model, captioner.tokenizer, Image.fromarray(picture)
    ids = torch.tensor([tokenizer(caption, add_special_tokens=False)["input_ids"]])
    given = captioner.images(images=image, return_tensors="pt")
    if name in ("blip", "git"):
        first = model.config.text_config.bos_token_id if name == "blip" else tokenizer.cls_token_id
        whole = torch.cat([torch.tensor([[first]]), ids], dim=1)
        return model(**given, input_ids=whole, labels=whole).loss.item(), ids.shape[1]
    if name == "vit-gpt2":
        return model(**given, labels=ids).loss.item(), ids.shape[1]
    given = captioner.processor(images=image, return_tensors="pt", **ASKED[name])
    if name == "florence":
        return model(**given, labels=ids).loss.item(), ids.shape[1]
    asked = given.pop("input_ids")
    del given["attention_mask"]
    whole = torch.cat([asked, ids], dim=1)
    labels = torch.cat([torch.full_like(asked, -100), ids], dim=1)
    return model(**given, input_ids=whole, labels=labels).loss.item(), ids.shape[1]


@pytest.mark.parametrize("name", TINY)
def test_captions_are_those_of_the_documented_way_and_token_scores_the_models_own_loss(
    name, folders, captioners, pixels
):
    """Whole batches of ours against one at a time by hand; token scores rest on the map."""
    captioner, seen = captioners[name], []
    found = captioner.captions(pixels, beams=3, length=7, batch=3)
    assert found == documented(folders[name], pixels, ASKED.get(name, {}))
    assert len(set(found)) > 1, "a captioner that does not look at the picture"
    assert found == captioner.captions(pixels, beams=3, length=7, batch=4)
    assert max(len(text.split()) for text in found) <= 7

    watch = torch.nn.Identity() if name == "talker" else captioner.vision_layer
    with watch.register_forward_hook(lambda module, given, output: seen.append(output)):
        read = captioner.token_scores(pixels[0], CAPTION)
    with torch.no_grad():
        loss, tokens = own_loss(name, captioner, pixels[0], " ".join(CAPTION.split()))
    assert len(read.ids) == len(read.texts) == len(read.words) == len(read.log_probabilities) == tokens
    assert -read.log_probabilities.mean().item() == pytest.approx(loss, rel=1e-4)
    if name == "talker":
        with pytest.raises(CapbiasError, match="'vipllava' have no known map"):
            _ = captioner.vision_layer
        return
    # Gradients reach each channel's map of patches from a word in the middle.
    output = seen[-1] if isinstance(seen[-1], torch.Tensor) else seen[-1][0]
    moved = captioner.grid(torch.autograd.grad(read.log_probabilities[2], output)[0])
    assert moved.shape == (1, 32, 4, 4) and (moved.abs().sum(dim=1) > 0).all()


def test_tokens_know_their_words(captioners, pixels):
    """surfboard is two pieces; the words are counted after spaces were made single."""
    found = captioners["blip"].token_scores(pixels[0], CAPTION)
    assert found.texts == ["a", "man", "holding", "a", "red", "surf", "##board", "."]
    assert found.words == [0, 1, 2, 3, 4, 5, 5, 6]
    with pytest.raises(CapbiasError, match="no words"):
        captioners["blip"].token_scores(pixels[0], "  ")


def test_a_grid_puts_patches_in_their_places(captioners):
    """17 tokens: the class, then rows of 4 patches; patch of row 2, column 1 is token 1 + 2 * 4 + 1 = 10."""
    output = torch.zeros(2, 17, 3)
    output[:, 0] = 9.0
    output[1, 10, 2] = 5.0
    found = captioners["blip"].grid(output)
    assert found.shape == (2, 3, 4, 4)
    assert found.nonzero().tolist() == [[1, 2, 2, 1]]
    assert captioners["blip"].grid((output,)).equal(found)
    assert captioners["florence"].grid(output[None]).shape == (1, 2, 17, 3)  # a map already
    with pytest.raises(CapbiasError, match="no known map"):
        captioners["blip"].grid(torch.zeros(1, 12, 3))
    # GIT's processor takes the middle square: of 40 x 60 pixels those from x 10 to 50; BLIP's squeezes all of it.
    assert captioners["git"].seen(40, 60) == (10.0, 0.0, 50.0, 40.0)
    assert captioners["git"].seen(80, 64) == (0.0, 8.0, 64.0, 72.0)
    assert captioners["blip"].seen(40, 60) == (0.0, 0.0, 60.0, 40.0)


def test_a_batch_that_does_not_fit_is_halved(folders, pixels, monkeypatch):
    captioner, sizes = Captioner(str(folders["vit-gpt2"]), "cpu"), []
    want = captioner.captions(pixels, 1, 4, batch=1)
    generate = captioner._generated

    def short(part, beams, length):
        sizes.append(len(part))
        if len(part) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return generate(part, beams, length)

    monkeypatch.setattr(captioner, "_generated", short)
    assert captioner.captions(pixels, 1, 4, batch=4) == want
    assert sizes == [4, 2, 1, 1, 1, 1]


def test_weights_that_are_missing_are_not_made_up(folders, tmp_path):
    """Without its pooler, which no caption rests on, ViT-GPT2 says the same; without another weight it is refused."""
    from safetensors.torch import load_file, save_file

    for lost, name in (("pooler", "vit-gpt2"), ("predictions.transform.dense.weight", "blip")):
        copy = Path(shutil.copytree(folders[name], tmp_path / name))
        weights = load_file(copy / "model.safetensors")
        assert any(lost in key for key in weights)
        save_file(
            {key: own for key, own in weights.items() if lost not in key}, copy / "model.safetensors", {"format": "pt"}
        )
    Captioner(str(tmp_path / "vit-gpt2"), "cpu")
    with pytest.raises(CapbiasError, match="it lacks 1 of its weights, such as .*transform.dense.weight"):
        Captioner(str(tmp_path / "blip"), "cpu")
