"""Raw captions to clean ones: text that is not part of a caption is removed, rule by rule.

`RULES` is the table: `strip` rules remove text around a caption, `drop` rules mark texts without one. Clean captions
stay unchanged. What only counts is in `load/checks.py`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, NamedTuple

import ftfy
import numpy as np
import pandas as pd

from capbias_core.load.checks import FEWEST, SAMPLE, matches, quoted, text_findings
from capbias_core.load.sheet import NAMES, SHORT, literal

MOST_ROUNDS = 20  # a text that still changes after so many rounds is not a caption
PROMPT_SHARE = 0.05  # of captions that begin or end with the same question; no real ones do


def _pattern(text: str, flags: re.RegexFlag = re.IGNORECASE) -> re.Pattern[str]:
    return re.compile(text, flags)


# reasoning

_THOUGHT = r"(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|analysis|scratchpad)"
_MARKER = _pattern(  # fewer words stand in square brackets, since captions have such
    rf"[<◁]\|?(?P<close>/|end_(?:of_)?)?(?:(?:begin|start)_(?:of_)?)?(?:\w{{1,20}}[:_-])?{_THOUGHT}\b"
    r"[^<>|▷]{0,60}\|?[>▷]|\[(?P<closes>/)?(?:think|thinking|thought|reasoning)\]"
    r"|^thinking\.\.\.(?=\s)|(?P<done>\.\.\.done thinking\.)"
)
_LABELLED = _pattern(  # **Reasoning:** … **Caption:** a woman
    r"[\W_]{0,6}(?:thoughts?|thinking(?: process)?|reasoning|analysis|rationale|step 1)[*_]{0,3}\s?[:\n]"
    r".*(?:^|[\s.*#])(?:answer|caption|conclusion|description)[*_]{0,3}\s?:[*_]{0,3}",
    re.IGNORECASE | re.DOTALL,
)


def _without_reasoning(text: str) -> str:
    """What stands outside the markers of reasoning, whatever their brackets; or after the label of the answer."""
    if "<|channel|>" in text:
        _, final, answer = text.rpartition("<|channel|>final")
        return answer.partition("<|message|>")[2] if final else ""
    outside, start, within = [], 0, False
    for marker in _MARKER.finditer(text):
        if marker["close"] or marker["closes"] or marker["done"]:
            if not within:
                outside.clear()  # a chat template wrote the opening marker, so all before is reasoning
            start, within = marker.end(), False
        elif not within:
            outside.append(text[start : marker.start()])
            within = True
    text = " ".join((*outside, "" if within else text[start:])) if outside or start else text
    return _LABELLED.sub("", text, count=1) if _LABELLED.match(text) else text


# prompts and turns of a chat

_ASSISTANT = _pattern(
    r"(?:<\|im_start\|>|<\|start_header_id\|>|<start_of_turn>|<\|start\|>|<\|)\s?(?:assistant|model|gpt|bot)\b\s?"
    r"(?:<\|end_header_id\|>|<\|message\|>|\|>)?|\[/INST\]"
)
_ASKED = _pattern(
    r"(?:\W{0,6}(?:a chat between|you are|below is an instruction|system\b).*?[\s#>]|[^a-z]*)"
    r"(?:user|human|instruction|input|prompt|question|q)\s?[:\n].*?"
    r"[\s#>](?:assistant|gpt|model|bot|ai|response|output|answer|a|caption|description)\s?[:\n]",
    re.IGNORECASE | re.DOTALL,
)
# `User:` within a sentence is what a sign says, unless somebody answers.
_NEXT_TURN = re.compile(
    r"#{2,3}\s?(?i:human|user|assistant|instruction|question)\b"
    r"|\b(?:USER|Human|User)\s?:(?=.*\b(?:ASSISTANT|Assistant|AI|GPT|Bot)\s?:)"
    r"|(?<=[\n.!?\"')\]>])\s*(?:USER|Human|User)\s?:",
    re.DOTALL,
)
_IMAGE = r"(?:image|photo|picture|photograph|scene)"
_LABEL = _pattern(
    r"(?:[^\w{\[]|_){0,6}(?:(?:here(?:'s| is| are)|this is|the|an?|my|your|one|some|image|photo|picture|visual"
    r"|generated|predicted|suggested|possible|short|brief|detailed|concise|simple|final|model|\w{1,20}[- ]sentence"
    r"|single|english|alt|accurate|descriptive|caption) ){0,6}(?:captions?|descriptions?|answer|response|output"
    r"|prediction|alt[- ]?text|summary|assistant|gpt|chatgpt|bot|sentence|completion)(?: \d{1,2})?"
    rf"(?: (?:for|of|to|describing) (?:the|this|your|an?)(?: \w{{1,20}})? {_IMAGE})?"
    r"(?: (?:is|would be|could be|might be|can be))?[*_\"]{0,4}\s?:[\s*_]*(?=\S)"
)
_SURE = _pattern(
    r"(?:sure(?: thing)?|certainly|of course|absolutely|okay|ok|alright|got it)\s?[!,.:]\s*"
    r"(?=(?:here|the|this|an?|two|in|i)\b)"
)


def _without_prompt(text: str) -> str:
    """The first turn of a captioner; without prompts, labels and phrases before it."""
    if turn := _ASSISTANT.search(text):
        return text[turn.end() :]
    if asked := _ASKED.match(text):
        text = text[asked.end() :]
    if (turn := _NEXT_TURN.search(text)) and text[: turn.start()].strip():
        text = text[: turn.start()]
    for pattern in (_SURE, _LABEL):
        if start := pattern.match(text):
            text = text[start.end() :]
    return text


# special tokens

# <unk> is a word that a captioner does not know, and stays.
_TOKEN = _pattern(
    r"<(box|quad|bbox|coords?)>[^<]{0,200}</\1>|<<?/?SYS>?>|<\|[^<>|\n]{1,40}\|>"
    r"|\[/?(?:CLS|SEP|PAD|BOS|EOS|INST|IMG|IMAGE|EOT|(?-i:SEG|DET|BOX|REF))\]"
    r"|</?(?:s|pad|eos|bos|sos|cls|sep|start|end|im_start|im_end|im_patch|images?|img|image_placeholder|image_soft_token"
    r"|image_pad|start_of_image|end_of_image|start_of_turn|end_of_turn|end_of_utterance|fake_token_around_image"
    r"|grounding|extra_id_\d+|loc_?\d+|bin_\d+|patch_index_\d+|0x[0-9a-f]{2}|n|ref|phrase|object|seg|endofchunk)>"
    r"|#START#|#END#|^startseq\b|\bendseq$"
)
_END = _pattern(
    r"<\|(?:im_end|eot_id|eom_id|endoftext|end_of_text|end|return|endofchunk|user|im_start|start_header_id)\|>|</s>"
    r"|<end_of_turn>|<end_of_utterance>|<eos>|<end>|\[EOS\]|#END#"
)
# Where in the image a phrase is; the phrase stays.
_ENTITY = _pattern(r"\[/EN#[^\s\]]+ ([^\[\]]*)\]")
_PLACE = _pattern(r"\s?(?:[\[{]{1,3}|\{?<)\s*[-+]?[\d.]+(?:\s*(?:[,;|]|>\s*<)\s*[-+]?[\d.]+)+\s*(?:[\]}]{1,3}|>\}?)")


def _without_tokens(text: str) -> str:
    """The text up to the first token that ends it, without any other and without marks of places in the image."""
    text = _PLACE.sub("", _ENTITY.sub(r"\1", text.replace("[UNK]", "<unk>").strip()))
    begun, start = False, 0
    for token in _TOKEN.finditer(text):
        begun = begun or bool(text[start : token.start()].strip())
        if begun and _END.fullmatch(token[0]):
            text = text[: token.start()]
            break
        start = token.end()
    return re.sub(r"\s{2,}", " ", _TOKEN.sub(" ", text)) if start or begun else text


# sub-words and letters


def _whole_words(text: str) -> str:
    """Words from the pieces of SentencePiece (▁), byte-level BPE (Ġ), CLIP (</w>), WordPiece (##) and fastBPE (@@)."""
    for mark in ("▁", "Ġ", "</w>"):
        if mark in text:
            cut = f"{mark} " if mark == "</w>" else f" {mark}"
            text = (text.replace(" ", "") if cut in text else text).replace(mark, " ")
    return re.sub(r"@@(?: |$)", "", re.sub(r" ##(?=\w)", "", text))


_LATIN_FOR = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеѕіјорсухһԁԛԝѵкмтΑΒΕΖΗΙΚΜΝΟΡΤΥΧοανυρικτεηωγ",  # Cyrillic and Greek letters that look alike
    "ABESIJKMHOPCTYXaesijopcyxhdqwvkmtABEZHIKMNOPTYXoavupiktenwy",
)
_WORD = re.compile(r"[^\W\d_]*[A-Za-z][^\W\d_]*")
# What is shown as nothing and ftfy keeps. Joiners stay in scripts that need them, variation selectors after symbols.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\uffa0"
    "\U000e0000-\U000e007f\u0334-\u0338]|(?<=[\u0000-\u024f])[\u200c\u200d]"
    "|(?<=[A-Za-z\u00c0-\u024f])[\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
_HYPHENATED = re.compile(r"(?<=[a-z])[-\u2010]\s*\n\s*(?=[a-z])")  # a word cut at the end of a line
_FTFY = ftfy.TextFixerConfig(uncurl_quotes=False, fix_line_breaks=False, normalization=None)


def _readable(text: str) -> str:
    """Wrongly decoded letters, entities and control characters put right (ftfy); invisible characters and hyphens at
    the end of a line removed; letters in their plain form, where that changes a letter; Latin letters for those that
    look like them in words with Latin letters."""
    text = _HYPHENATED.sub("", _INVISIBLE.sub("", ftfy.fix_text(text, _FTFY)))
    plain, same = (unicodedata.normalize(form, text) for form in ("NFKC", "NFC"))
    text = text if [*filter(str.isalpha, plain)] == [*filter(str.isalpha, same)] else plain
    return _WORD.sub(lambda word: word[0].translate(_LATIN_FOR), text)


# wrappings

_LANGUAGE = r"(?:[\w-]*[ \t]*\n|(?:json|text|plaintext|markdown|python)\b)?"
# Lines of their own, or JSON; not words that a sign says.
_FENCED = re.compile(rf"(?:^|(?<=\n)|(?=```json\b))\s*```{_LANGUAGE}(.*?)```[ \t]*(?:\n|$)", re.DOTALL)
_TAGGED = _pattern(
    r"<(/?)(?:answer|caption|final_answer|final|response|output|description|conclusion|summary|solution|result)>"
)
_ESCAPE = re.compile(r"\\(?:[nrt]|u([0-9a-fA-F]{4})|([\"'/]))")
_HTML = _pattern(r"</?(?:p|br|div|span|b|i|em|strong|html|body)(?:\s[^<>]{0,200})?/?>")
_MARKDOWN = (
    (re.compile(r"\*\*(\S(?:[^*\n]*\S)?)\*\*"), r"\1"),
    (re.compile(r"(?<![\w*])\*(\S[^*\n]*)\*(?![\w*])"), r"\1"),
    (re.compile(r"(?<!\w)__(\S[^_\n]*)__(?!\w)"), r"\1"),
    (re.compile(r"^\s{0,3}(?:#{1,6}\s+|([-*•>])\s+(?!.*\s\1\s)|\(?[1-9][.)]\s+(?!.*\s\(?[2-9][.)]\s))", re.DOTALL), ""),
)
_QUOTES = ('""', "''", "“”", "‘’", "«»", "„“", "„”", "「」", "『』", "``")


def _unwrapped(text: str) -> str:
    """What is inside code fences, the tags of an answer, JSON or a list of Python; without HTML and escape codes."""
    if (fenced := _FENCED.search(text)) and (
        fenced[0].lstrip().startswith("```json") or not re.search(r"[^\W_][^:]*$", text[: fenced.start()].strip())
    ):
        text = fenced[1].strip() or text
    elif text.startswith("```"):
        text = re.sub(rf"^```{_LANGUAGE}", "", text)
    if opened := [tag for tag in _TAGGED.finditer(text) if not tag[1]]:
        text = _TAGGED.split(text[opened[-1].end() :])[0].strip() or text
    text = _TAGGED.sub(" ", text)
    if text.strip()[:1] in ("[", "{") and (caption := _caption_in(literal(text.strip(), SHORT))):
        return caption
    text = _ESCAPE.sub(lambda code: chr(int(code[1], 16)) if code[1] else code[2] or " ", text)
    return re.sub(r"\s{2,}", " ", _HTML.sub(" ", text)) if _HTML.search(text) else text


def _caption_in(value: Any) -> str:
    """The caption in what JSON holds, '' unless there is just one."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict):
        texts = {str(key).lower(): text for key, text in value.items() if isinstance(text, str) and text.strip()}
        value = next(
            (texts[key] for key in NAMES["key"] if key in texts), "".join(list(texts.values())[: len(texts) == 1])
        )
    return value.strip() if isinstance(value, str) else ""


def _without_marks(text: str) -> str:
    """Without quotation marks around it and the marks of Markdown."""
    for pattern, inside in _MARKDOWN:
        text = pattern.sub(inside, text)
    quoted = re.sub(r"^b(?=['\"])", "", text.strip())
    for first, last in _QUOTES:
        dot = "." if quoted.endswith(f"{last}.") else ""
        if quoted.startswith(first) and quoted.removesuffix(".").endswith(last):
            inner = quoted[1 : -1 - len(dot)].strip()
            marks = re.sub(r"(?<=\w)['’](?=\w)", "", inner)
            if inner and first not in marks and last not in marks:
                return inner.removesuffix(dot) + dot
    return text


# texts without a caption

_NOTHING = frozenset(["", *(word.replace("_", "") for word in NAMES["missing"])])
_FAILED = (
    r"(?:failed to obtain answer|(?:api )?error(?: code)?\s?:|traceback \(most recent|[\w.]*(?:error|exception)[(:]"
    r"|request timed out|cuda out of memory|https?connectionpool|<[\w.]+ object |tensor\(|array\(|internal server error"
    r"|too many requests|rate limit)"
)
_NAME = _pattern(
    r"(?:https?|s3|gs|ftp|file|data)://?\S+|data:\S+|\S+\.(?:jpe?g|png|gif|bmp|webp|tiff?|jsonl?|csv|txt|np[yz]|pt|mp4)"
    r"|(?:[a-z]:|\.{0,2})[\\/]\S+|\S+[\\/]\S+[\\/]\S*|(?=\S*\d)[0-9a-f-]{8,}|(?=.*\d.*_|.*_.*\d|(?:.*\d){5})[\w.:#-]+"
)


# the table


class Rule(NamedTuple):
    """One kind of text around a caption, or in place of one."""

    name: str
    action: str  # "strip" or "drop"
    trigger: str  # matches all texts that the rule concerns, in the syntax of RE2 and Python
    apply: Callable[[str], Any]  # for `strip` the remaining text, for `drop` whether the text is of this kind
    sentence: str  # follows `3 of 20 captions`


_HAS_THOUGHT = r"(?i:think|thought|reason|reflect|analysis|scratchpad|rationale|step 1|<\|channel)"
_HAS_PROMPT = (
    r":|<\||/INST\]|(?i:<start_of_turn>|^[^A-Za-z]*(?:sure|certainly|of course|absolutely|okay|ok|alright|got it)"
    r"[^A-Za-z]|(?:user|system)\n)"
)
_IS_MISSING = rf"^[^A-Za-z]*(?i:{'|'.join(word.replace('_', '[^a-z]?') for word in NAMES['missing'])})?[^A-Za-z]*$"
_HAS_MARKS = r"<|[\[{]\s*[-+\d.]|\[[/A-Za-z]|#START#|#END#|(?i:startseq|endseq)"
# fmt: off
RULES = (
    Rule("reasoning", "strip", _HAS_THOUGHT, _without_reasoning, "held reasoning, which was removed"),
    Rule("prompts", "strip", _HAS_PROMPT, _without_prompt, "held a prompt or a label, which was removed"),
    Rule("special tokens", "strip", _HAS_MARKS, _without_tokens,
         "held special tokens or coordinates such as </s> and [SEG], which were removed"),
    Rule("sub-words", "strip", r"▁|Ġ|</w>| ##\w|@@", _whole_words, "were cut into sub-words, which were joined"),
    Rule("letters", "strip", r"[^\t\n\r\x20-\x7e]|&#?\w+;|[a-z]-\s*\n", _readable,
         "held entities, or wrongly decoded, invisible, cut, full-width or look-alike letters, which became plain"),
    Rule("wrappings", "strip", r"```|^\s*[\[{]|\\|<", _unwrapped,
         "were wrapped in JSON, code or tags, which were removed"),
    Rule("marks", "strip", "^\\s*b?[\"'“‘«„「『`]|\\*|__|^\\s{0,3}[#>•(1-9-]", _without_marks,
         "held quotation marks or Markdown around them, now removed"),
    Rule("missing", "drop", _IS_MISSING, lambda text: "".join(filter(str.isalpha, text)).lower() in _NOTHING,
         "were missing (empty, nan, null, a number and the like) and left out"),
    Rule("error messages", "drop", rf"^\W*(?i:{_FAILED})", lambda text: True, "were error messages and left out"),
    Rule("IDs", "drop", r"^\s*\S+\s*$", lambda text: _NAME.fullmatch(text.strip()),
         "were IDs, paths or URLs and left out"),
)
# fmt: on


# all captions


@dataclass(frozen=True)
class Cleaned:
    """Captions after cleaning."""

    texts: list[str | None]  # None without a caption
    counts: dict[str, int]  # rule or check -> captions that it concerns, if any
    warnings: tuple[str, ...]  # a sentence per rule, and per check whose share is above its threshold


def clean_captions(texts: Sequence[object]) -> Cleaned:
    """The captions in raw texts, with a count and a sentence for each rule and check that applies. Other values become
    str.

    >>> cleaned = clean_captions(["<think>Hm.</think> A wo\\u00adman.", "nan", "A dog."])
    >>> cleaned.texts, cleaned.counts
    (['A woman.', None, 'A dog.'], {'reasoning': 1, 'letters': 1, 'missing': 1})
    """
    which, raw = pd.factorize(np.array([text if isinstance(text, str) else str(text) for text in texts], dtype=object))
    times = np.bincount(which, minlength=len(raw))
    captions: list[str | None] = list(raw)
    reasons: dict[int, set[str]] = defaultdict(set)  # index of a different text -> rules
    _settle(captions, reasons, range(len(raw)))
    prompts = _without_shared_prompts(captions, reasons, times)
    number: Counter[str] = Counter()
    for index, names in reasons.items():
        number.update(dict.fromkeys(names, int(times[index])))
    sentences = {rule.name: rule.sentence for rule in RULES}
    sentences["shared prompt"] = f"held the prompt {' and '.join(map(quoted, prompts))}, which was removed"
    counts = {name: number[name] for name in sentences if number[name]}
    warnings = [f"{count:,} of {len(which):,} captions {sentences[name]}." for name, count in counts.items()]
    kept = [index for index, caption in enumerate(captions) if caption is not None]
    findings = text_findings([captions[index] or "" for index in kept], times[kept])
    return Cleaned(
        [captions[index] for index in which.tolist()],
        counts | {each.name: each.count for each in findings},
        (*warnings, *(each.text for each in findings if each.effect)),
    )


def _settle(captions: list[str | None], reasons: dict[int, set[str]], indices: Sequence[int]) -> None:
    """Strip and drop captions, in place, until nothing changes."""
    any_rule = "|".join(rule.trigger for rule in RULES)
    for _ in range(MOST_ROUNDS):
        hits = np.flatnonzero(matches([captions[index] for index in indices], any_rule))  # none in most captions
        indices = [indices[int(hit)] for hit in hits]
        triggered = np.transpose([matches([captions[index] for index in indices], rule.trigger) for rule in RULES])
        changed = []
        for index, concerns in zip(indices, triggered, strict=True):
            rules = list(compress(RULES, concerns))
            before = text = captions[index] or ""
            for rule in rules:
                if rule.action == "strip" and (left := rule.apply(text).strip()) != text.strip():
                    text = left
                    reasons[index].add(rule.name)
            if text != before:
                captions[index] = text
                changed.append(index)
            elif dropped := next((rule.name for rule in rules if rule.action == "drop" and rule.apply(text)), None):
                captions[index] = None
                reasons[index].add(dropped)
        indices = changed
    for index in indices:
        captions[index] = None
        reasons[index].add("missing")


# prompts that many captions share

# A shared sentence may be the captioner's; one that asks or announces is a prompt.
_DEMAND = (
    r"\W*(?:please|can you|could you|kindly|describe|caption|write|provide|give|generate|summari[sz]e|explain|answer"
    rf"|respond|use|keep|limit)\b.*\b(?:{_IMAGE}|captions?|sentences?|words?|brief(?:ly)?|detail|prompt)\b"
)
_AT_BEGINNING = _pattern(
    rf"(?![\s`]*[\[{{`])(?:(?:\S++\s++){{2,}}.*[:?]\s+|{_DEMAND}[^.!?]*[.!?]\s+)", re.IGNORECASE | re.DOTALL
)
_AT_END = _pattern(rf"\s*(?:\S++\s++){{2,}}.*[:?]\W*$|{_DEMAND}.*$", re.IGNORECASE | re.DOTALL)


def _without_shared_prompts(
    captions: list[str | None], reasons: dict[int, set[str]], times: np.ndarray
) -> dict[str, None]:
    """Prompts that begin or end many captions, which are removed in place."""
    prompts: dict[str, None] = {}
    for _ in range(MOST_ROUNDS):
        texts = [caption or "" for caption in captions]
        shared = [(text, end) for end in (False, True) for text in _shared(texts, times, end)]
        asking = [(match[0], end) for text, end in shared if (match := (_AT_END if end else _AT_BEGINNING).match(text))]
        if not asking:
            break
        prompt, end = asking[0]
        prompts[prompt] = None
        holds, without = (str.endswith, str.removesuffix) if end else (str.startswith, str.removeprefix)
        indices = [index for index, text in enumerate(texts) if holds(text, prompt)]
        for index in indices:
            captions[index] = without(texts[index], prompt).strip()
            reasons[index].add("shared prompt")
        _settle(captions, reasons, indices)
    return prompts


def _shared(texts: Sequence[str], times: np.ndarray, end: bool) -> list[str]:
    """The longest texts that begin (or end) many captions, three words or more."""
    sample = [text for text in texts if text]
    sample = sample[:: max(1, len(sample) // SAMPLE)]
    three = re.compile(r"(?:\s++\S++){3}\s*\Z" if end else r"(?:\S++\s++){3}")
    holds = str.endswith if end else str.startswith
    shared = []
    starts = Counter(match[0] for text in sample if (match := (three.search if end else three.match)(text)))
    for words in [words for words, number in starts.most_common(5) if number >= PROMPT_SHARE * len(sample)]:
        group = [text for text in sample if holds(text, words)]
        middle = group[len(group) // 2]
        cuts = [match.start() if end else match.end() for match in re.finditer(r"\s+(?=\S)", middle)][:60]
        longer = [middle[cut:] if end else middle[:cut] for cut in (reversed(cuts) if end else cuts)]
        for more in longer:
            if len(more) > len(words):
                if sum(holds(text, more) for text in group) < 0.9 * len(group):
                    break
                words = more
        if times[[holds(text, words) for text in texts]].sum() >= max(FEWEST, PROMPT_SHARE * times.sum() * 0.9):
            shared.append(words)
    return shared
