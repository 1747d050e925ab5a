"""What becomes of raw texts: the caption in them, or why there is none."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capbias_core.load.clean import RULES, clean_captions

CAPTION = "A woman riding a horse."
THINK = "The picture may show a man or a woman."
CHAT = "A chat between a curious human and an artificial intelligence assistant."
ASK = "Describe this image in one sentence."

# Rules that concern a text; the text; the caption in it, None if there is none.
CASES = [
    ("", CAPTION, CAPTION),
    ("", " a sign that says `` 350 '' .", " a sign that says `` 350 '' ."),
    ("", "a man holding a box of <unk>", "a man holding a box of <unk>"),
    ("", "What has attracted this many birds to the plaza?", "What has attracted this many birds to the plaza?"),
    ("", "A magazine with a caption: hello", "A magazine with a caption: hello"),
    ("", 'A woman wearing a shirt that says "love"', 'A woman wearing a shirt that says "love"'),
    ("", "'Stop' is on the sign and 'go' is not", "'Stop' is on the sign and 'go' is not"),
    ("", "A thoughtful woman [left] and a man", "A thoughtful woman [left] and a man"),
    ("", "A nurse - a woman - at a desk", "A nurse - a woman - at a desk"),
    *(("", text, text) for text in (
        "A man with wood (2x4) on his shoulder",
        "A player (12,3) and a price (1,999)",
        "A sign that says User: admin next to a man",
        "Thinking man under a sign with the caption: Hope",
        "Analysis of a woman with the answer: yes",
        "A sign that says ``` hello ``` next to a man",
        "A woman beside a screen.\n```\nprint(1)\n```",
    )),
    # reasoning
    ("reasoning", f"<think>\n{THINK}\n</think>\n\n{CAPTION}", CAPTION),
    ("reasoning", f"{THINK}\n</think>\n{CAPTION}", CAPTION),
    ("reasoning", f"<think>{THINK} <think>{THINK}</think> {THINK}</think> {CAPTION}", CAPTION),
    ("reasoning", f"◁think▷{THINK}◁/think▷{CAPTION}", CAPTION),
    ("reasoning", f"<|START_THINKING|>{THINK}<|END_THINKING|>{CAPTION}", CAPTION),
    ("reasoning special tokens", f"<|begin_of_thought|>{THINK}<|end_of_thought|><|solution|>{CAPTION}", CAPTION),
    ("reasoning", f"Thinking...\n{THINK}\n...done thinking.\n\n{CAPTION}", CAPTION),
    ("reasoning letters", f"＜ｔｈｉｎｋ＞{THINK}＜／ｔｈｉｎｋ＞{CAPTION}", CAPTION),
    ("reasoning wrappings", f"<think>{THINK}</think><answer>{CAPTION}</answer>", CAPTION),
    ("reasoning", f"**Reasoning:** {THINK}\n\n**Caption:** {CAPTION}", CAPTION),
    (
        "reasoning special tokens",
        f"<|channel|>analysis<|message|>{THINK}<|end|><|start|>assistant<|channel|>final<|message|>{CAPTION}<|return|>",
        CAPTION,
    ),
    ("reasoning missing", f"<think>{THINK}", None),
    ("", "A lake [reflection] and a woman", "A lake [reflection] and a woman"),
    ("unmarked thoughts", "So the user wants a caption. A man.", "So the user wants a caption. A man."),
    # prompts
    ("prompts", f"USER: {ASK} ASSISTANT: {CAPTION}", CAPTION),
    ("prompts", f"{CHAT} USER: <image>\n{ASK} ASSISTANT: {CAPTION}", CAPTION),
    ("prompts", f"USER: {ASK} ASSISTANT: {CAPTION} USER: And now? ASSISTANT: A man.", CAPTION),
    ("prompts", f"{CAPTION[:-1]} USER: And now? ASSISTANT: A man.", CAPTION[:-1]),
    ("prompts", f"Question: What is this? Answer: {CAPTION}", CAPTION),
    ("prompts", f"Q: What is in the photo?\nA: {CAPTION}", CAPTION),
    ("prompts", f"[INST] {ASK} [/INST] {CAPTION}", CAPTION),
    ("prompts", f"user\n{ASK}\nassistant\n{CAPTION}", CAPTION),
    ("prompts", f"Caption: {CAPTION}", CAPTION),
    ("prompts", f"Sure! Here's a short caption for the image: {CAPTION}", CAPTION),
    ("prompts marks", f'Here is a one-sentence description of the image:\n\n"{CAPTION}"', CAPTION),
    ("prompts special tokens", f"<|im_start|>user\n{ASK}\n<|im_start|>assistant\n{CAPTION}<|im_end|>", CAPTION),
    (
        "prompts special tokens",
        f"<|start_header_id|>assistant<|end_header_id|>\n\n{CAPTION}<|eot_id|>",
        CAPTION,
    ),
    # special tokens
    ("special tokens", f"<s> {CAPTION}</s>", CAPTION),
    ("special tokens", f"{CAPTION}<|endoftext|>The 2016 election", CAPTION),
    ("special tokens", "startseq a woman riding a horse endseq", "a woman riding a horse"),
    ("special tokens", "a [UNK] with a woman", "a <unk> with a woman"),
    ("special tokens", "<ref>A woman</ref><box>(12,3),(4,5)</box> riding a horse.", CAPTION),
    *(("special tokens", f"A woman{box} riding a horse.", CAPTION) for box in (
        "[[773,779,615,137]]", " [0.793,0.499,0.429,0.287]", "{<12><3><4><5>}", "[12, 34]")),
    # sub-words
    ("sub-words", "▁A▁woman▁riding▁a▁horse.", CAPTION),
    ("sub-words", "AĠwomanĠridingĠaĠhorse.", CAPTION),
    ("sub-words", "A wo ##man rid ##ing a horse.", CAPTION),
    ("sub-words", "A</w>woman</w>riding</w>a</w>horse.</w>", CAPTION),
    # letters
    ("letters", "A wo\u00adman rid\u200bing a horse.", CAPTION),
    ("letters", "A wo\ufe0fman r\u200diding a horse.", CAPTION),
    ("letters", "\x1b[1mA woman\x1b[0m riding a horse.", CAPTION),
    ("letters", "A ｗｏｍａｎ riding a horse.", CAPTION),
    ("letters", "A ﬁreﬁghter", "A firefighter"),
    ("letters", "A w\u043em\u0430n riding a horse.", CAPTION),
    ("letters", "A womanâ€™s cafÃ©", "A woman’s café"),
    # wrappings
    ("wrappings", f'```json\n{{"caption": "{CAPTION}"}}\n```', CAPTION),
    ("wrappings", f'{{"caption": "{CAPTION}"}}', CAPTION),
    ("wrappings", f'Here is the JSON you want ```json {{"caption": "{CAPTION}"}}```', CAPTION),
    ("wrappings", f"{{'Description': '{CAPTION}', 'confidence': 0.9}}", CAPTION),
    ("wrappings", f"['{CAPTION}']", CAPTION),
    ("wrappings", f"<caption>{CAPTION}</caption>", CAPTION),
    ("letters", "A woman &amp; a horse", "A woman & a horse"),
    ("wrappings", "A woman\\nriding a horse.", CAPTION),
    ("JSON", "['a man', 'a woman']", "['a man', 'a woman']"),
    ("marks", f'"{CAPTION}"', CAPTION),
    ("marks", "“A man's hat”.", "A man's hat."),
    ("marks", f"**{CAPTION}**", CAPTION),
    ("marks", "- A **woman** riding a *horse*.", CAPTION),
    ("", "- A man. - A dog.", "- A man. - A dog."),
    ("tags", "A <gender> riding a horse.", "A <gender> riding a horse."),
    # no caption
    *(("missing", text, None) for text in ("nan", "None", "null", "N/A", "NaN", "<NA>", "", "  ", ".", "-", "[]")),
    ("special tokens missing", "[101, 2023]", None),
    ("missing letters", "\u200b", None),
    ("error messages", "Failed to obtain answer via API.", None),
    ("error messages", "openai.RateLimitError: too many", None),
    *(("IDs", text, None) for text in ("COCO_val2014_000000000785.jpg", "img_000785", "http://a.b/c", "C:\\a\\b.png")),
    # captions that a reader should know of
    ("refusals", "I'm sorry, but I can't help with that.", "I'm sorry, but I can't help with that."),
    ("other languages", "一个女孩在公园里拿着自行车", "一个女孩在公园里拿着自行车"),
    ("other languages", "Eine Frau reitet auf einem Pferd", "Eine Frau reitet auf einem Pferd"),
]  # fmt: skip


def test_each_text_gives_its_caption_and_reasons():
    """The texts that the same rules concern are cleaned together."""
    names = [rule.name for rule in RULES]
    groups = defaultdict(list)
    for rules, text, caption in CASES:
        groups[rules].append((text, caption))
    for rules, cases in groups.items():
        cleaned = clean_captions([text for text, _ in cases])
        assert cleaned.texts == [caption for _, caption in cases]
        expected = {name: len(cases) for name in names if name in rules}
        assert {name: count for name, count in cleaned.counts.items() if name in names} == expected, rules
        assert len(cleaned.warnings) == len(cleaned.counts)


PIECES = st.one_of(
    st.sampled_from(
        [text for _, text, _ in CASES] + ["<think>", "</think>", "```", '"', "**", "\\n", "&amp;", "{", "[", "<s>", "▁"]
    ),
    st.text(max_size=12),
)


@pytest.mark.long
@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.lists(PIECES, max_size=5).map("".join), max_size=6))
def test_clean_captions_stay_as_they_are(texts):
    once = clean_captions(texts)
    again = clean_captions(once.texts)
    assert again.texts == once.texts
    stripped = {own.name for own in RULES if own.action == "strip"} | {"shared prompt"}
    assert not stripped & again.counts.keys()


def test_what_all_captions_together_show():
    """A prompt before all of them goes, an uncertain beginning stays; many alike are counted."""
    animals = [f"{first} {second}" for first in ("cat", "dog", "cow", "pig", "hen") for second in "abcde"]
    prompt = [f"Now look and tell me: A {own} in the grass." for own in animals]
    found = clean_captions([*prompt, "A bird."])
    assert found.texts == [*(f"A {own} in the grass." for own in animals), "A bird."]
    assert found.counts == {"shared prompt": 25}
    for prompt in (ASK, "What is in this image?"):
        assert clean_captions([f"{prompt} A {own} in the grass." for own in animals]).texts == found.texts[:-1]
    for asked in ("Is there a man or a woman in the image?", "please describe this image in one sentence."):
        texts = [f"In the grass is a {own}." for own in animals]
        assert clean_captions([f"{text} {asked}" for text in texts]).texts == texts
    for certain in ("A photo of a", "There is someone here. A"):
        texts = [f"{certain} {own} in the grass." for own in animals]
        assert (clean_captions(texts).texts, clean_captions(texts).counts) == (texts, {}), "may be the captioner's"
    alike = ["A dog."] * 20 + [f"A {own} in the grass." for own in animals]
    assert clean_captions(alike).counts == {"identical": 20}
    assert clean_captions(alike[1:]).counts == {}


def test_counts_are_of_captions_and_missing_ones_are_told_apart_from_numbers():
    found = clean_captions([None, float("nan"), "nan", 5, "<s>A dog.", "<s>A dog.", {"caption": "A cat."}])
    assert found.texts == [None, None, None, None, "A dog.", "A dog.", "A cat."]
    assert found.counts == {"special tokens": 2, "wrappings": 1, "missing": 4}
    assert found.warnings[0].startswith("2 of 7 captions held special tokens")
    assert clean_captions([]).texts == []
