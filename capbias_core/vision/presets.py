"""Captioners that are known by a short name: where their weights are, what they are asked, how their answer is read;
and how a captioner is asked for the value of an attribute.

Any other captioner of transformers goes by its folder or its name on the Hugging Face hub, and is treated as a preset
of the same kind (the `model_type` of its configuration), if there is one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from capbias_core.language.files import ModelFiles, find_model
from capbias_core.types import Attribute

WHAT = "a captioner"
BEAMS, LENGTH, BATCH = 5, 20, 8  # defaults: beams searched at once, tokens at most, photographs at once
# What a chat model is asked; the first line of its answer is the caption.
DESCRIBE = "Describe the picture in one short sentence."
LINE = "\n"


@dataclass(frozen=True)
class Preset:
    """A captioner of the table."""

    name: str
    hub: str  # its name on the Hugging Face hub
    kind: str  # the `model_type` of its configuration
    layer: str = ""  # whose output is the last map of the picture that the captioner uses, its last norm included
    prompt: str | None = None  # the text that it is given with a picture
    until: str = ""  # ends the caption in its answer; '' if all of it is the caption


PRESETS = {
    preset.name: preset
    for preset in (
        Preset("blip", "Salesforce/blip-image-captioning-base", "blip", "vision_model"),
        Preset("blip2", "Salesforce/blip2-opt-2.7b", "blip-2", "vision_model", prompt="", until=LINE),
        Preset("git", "microsoft/git-base-coco", "git", "git.visual_projection"),
        Preset("vit-gpt2", "nlpconnect/vit-gpt2-image-captioning", "vision-encoder-decoder", "encoder"),
        Preset(
            "llava",
            "llava-hf/llava-1.5-7b-hf",
            "llava",
            "model.vision_tower.encoder.layers.-2",
            prompt=f"USER: <image>\n{DESCRIBE} ASSISTANT:",
            until=LINE,
        ),
        Preset("florence", "florence-community/Florence-2-base", "florence2", "model.vision_tower", prompt="<CAPTION>"),
    )
}


def find_captioner(name: str) -> ModelFiles:
    """The files of a captioner: a name in PRESETS, a folder, or a name in the local cache of Hugging Face. Nothing is
    fetched. Raises CapbiasError, which says how to get the weights, if they are not on this machine."""
    if name not in PRESETS:
        return find_model(name, WHAT)
    return replace(find_model(PRESETS[name].hub, WHAT), name=name)


# Prompts of ImageCaptioner2 (AAAI 2024, Prompt engineering), whose answers are the attribute's values. statement: `A
# <gender> sitting in front of a computer therefore the gender is [Answer]`. question: `what is the gender of the
# following sentence A <gender> sitting in front of a computer [Answer]`.
STATEMENT, QUESTION = "statement", "question"
PROMPTS = {STATEMENT: ("", "therefore the {name} is"), QUESTION: ("what is the {name} of the following sentence", "")}


def prompted(caption: str, attribute: Attribute, prompt: str) -> str:
    """A masked caption (words joined by a space) with the prompt; the answer comes next.

    >>> prompted("a <gender> runs", Attribute("gender", "Gender", ("Female", "Male")), QUESTION)
    'what is the gender of the following sentence a <gender> runs'
    """
    before, after = (part.format(name=attribute.name.lower()) for part in PROMPTS[prompt])
    return " ".join(filter(None, (before, caption, after)))


def written(caption: str, attribute: Attribute, prompt: str, answer: str, mask: str) -> str:
    """The same as a pretrained captioner reads it, with an answer and punctuation. mask: what stands for a mask.

    >>> written("a <gender> runs", Attribute("gender", "Gender", ("Female", "Male"), mask_token="<gender>"), STATEMENT,
    ...         "male", "[MASK]")
    'a [MASK] runs. therefore, the gender is male'
    """
    caption, name = caption.replace(attribute.mask_token, mask), attribute.name.lower()
    if prompt == QUESTION:
        return f"what is the {name} of the following sentence? {caption}. {answer}"
    return f"{caption}. therefore, the {name} is {answer}"
