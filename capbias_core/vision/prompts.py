"""How a captioning model is asked for a value: the prompt templates of ImageCaptioner2 (AAAI 2024, Prompt engineering).

statement: `A <gender> sitting in front of a computer therefore the gender is [Answer]`. question: `what is the gender
of the following sentence A <gender> sitting in front of a computer [Answer]`. Answers are the attribute's values.
"""

from __future__ import annotations

from capbias_core.types import Attribute

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
