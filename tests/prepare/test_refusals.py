"""Which captions are refusals: wordings of several models, and captions that only sound like one."""

import json
import re

import pytest

from capbias_core.prepare.refusals import TRIGGER, is_refusal, refusals

REFUSALS = """
I'm sorry, but I can't help with identifying people in images.
As an AI, I am unable to identify individuals.
My apologies, but I cannot generate a caption for this image.
Unable to describe the image due to safety guidelines.
I must respectfully decline to describe this person.
I'd rather not describe the person in this photo.
I am only able to describe objects, not people.
For privacy reasons, I cannot identify people in photos.
While I can see a person in the image, I cannot identify who they are.
It is against my guidelines to identify people.
Identifying people in images is not something I can do.
My guidelines don't allow me to identify people.
This request violates our content policy.
The response was filtered due to the prompt triggering the content management policy.
[REFUSED]
The model refused to answer.
This image cannot be described.
Sorry, but I can't provide a caption for this image. If you have any other questions, feel free to ask!
I'm sorry, but I can't identify people. However, I can describe the image if you would like.
Lo siento, no puedo ayudar con eso.
Es tut mir leid, aber ich kann diese Person nicht beschreiben.
抱歉，我无法识别图片中的人物。
"""
CAPTIONS = """
A man who is unable to stand.
A sign that says sorry, we cannot help you
A woman with a sign that reads as an ai I cannot help
Sorry sign hanging on the door of a store
A man declines a drink from a waiter
A cat that can't get out of the box
An assistant helping a man with his suit
The homely lady hugs her teddy bear tightly because she cannot find a man.
no people are in the picture
A message board with a sign that is not allowed
unfortunately the man fell off his surfboard
This is a man that is not wearing a shirt
The man can't help smiling
cannot see the man's face
a filtered photo of a woman
I can see a woman with a bicycle.
we do not see the man's face
The image shows a woman. I cannot identify who she is.
I'm sorry, but I can't identify people. The image shows a woman with a red umbrella in a park.
I cannot identify the person, but I can tell you that the image shows a woman in a red dress.
"""


def test_refusals_and_captions_that_sound_like_one(monkeypatch):
    texts = REFUSALS.strip().splitlines()
    assert [text for text in texts if not (is_refusal(text) and re.search(TRIGGER, text))] == []
    assert [text for text in CAPTIONS.strip().splitlines() if is_refusal(text)] == []
    read = []  # the same caption is read once
    monkeypatch.setattr("capbias_core.prepare.refusals.is_refusal", lambda text: not read.append(text))
    assert refusals(["A dog.", "I cannot help.", "I cannot help."]).tolist() == [False, True, True]
    assert read == ["I cannot help."]
    assert refusals([]).tolist() == []


@pytest.mark.long
def test_no_caption_of_published_captioners_or_people_is_a_refusal(coco_bias):
    texts = [row["caption"] for path in coco_bias.glob("results*/*.json") for row in json.loads(path.read_text())]
    people = json.loads((coco_bias / "annotations" / "captions_subset.json").read_text())["annotations"]
    texts += [row["caption"] for row in people]
    assert len(texts) > 100_000 and not refusals(texts).any()
