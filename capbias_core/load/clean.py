"""Raw captions to clean ones: text that is not part of a caption is removed or counted, rule by rule.

`RULES` is the table: `strip` rules remove text around a caption, `drop` rules mark texts without one, `keep` rules only
count. Clean captions stay unchanged.
"""

from __future__ import annotations

import ast
import html
import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from capbias_core.prepare import refusals

MOST_ROUNDS = 20  # a text that still changes after so many rounds is not a caption
FEWEST = 20  # captions needed before a sentence about all of them
BEGINNING_SHARE = 0.9


def _pattern(text: str, flags: re.RegexFlag = re.IGNORECASE) -> re.Pattern[str]:
    return re.compile(text, flags)


def _words(text: str) -> dict[str, None]:
    return dict.fromkeys(text.split())


# reasoning

_THOUGHT = (
    r"(?:\w{1,20}[:_-])?"
    r"(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|analysis|scratchpad|rationale|cot|monologue)"
)
_BRACKETED = r"(?:think|thinking|thought|reasoning)"  # more words than these stand in square brackets in captions
_MARKER = _pattern(
    rf"(?P<close><\|?\s?/{_THOUGHT}\|?>|\[/{_BRACKETED}\]|◁/{_THOUGHT}▷|<\|?end_(?:of_)?{_THOUGHT}\|?>|<unused95>"
    r"|\.\.\.done thinking\.)"
    rf"|<\|?{_THOUGHT}\b[^<>|]{{0,60}}\|?>|\[{_BRACKETED}\]|◁{_THOUGHT}▷|<\|?(?:begin|start)_(?:of_)?{_THOUGHT}\|?>"
    r"|<unused94>|^thinking\.\.\.(?=\s)"
)
_THOUGHT_LABEL = _pattern(
    r"[\W_]{0,6}(?:thoughts?|thinking(?: process)?|reasoning|analysis|rationale|chain[- ]of[- ]thought|step 1"
    r"|let'?s think)\b"
)
_FINAL = _pattern(
    r"(?:^|[\s.*#])(?:final (?:answer|caption|output|response)|answer|caption|conclusion|description)[*_]{0,3}\s?:"
    r"[*_]{0,3}"
)
_CHANNELS = re.compile(r"analysis(?=[\sA-Z]).*assistant\s?final(?=[\sA-Z])", re.DOTALL)


def _without_reasoning(text: str) -> str:
    """What stands outside the markers of reasoning, whatever their brackets; or after the label of the answer."""
    if "<|channel|>" in text:
        _, final, answer = text.rpartition("<|channel|>final")
        return answer.partition("<|message|>")[2] if final else ""
    if channels := _CHANNELS.match(text):
        return text[channels.end() :]
    outside, start, within = [], 0, False
    for marker in _MARKER.finditer(text):
        if marker["close"]:
            if not within:
                outside.clear()  # a chat template wrote the opening marker, so all before is reasoning
            start, within = marker.end(), False
        elif not within:
            outside.append(text[start : marker.start()])
            within = True
    text = " ".join((*outside, "" if within else text[start:])) if outside or start else text
    if _THOUGHT_LABEL.match(text) and (answers := list(_FINAL.finditer(text))):
        return text[answers[-1].end() :]
    return text


# prompts and turns of a chat

_ASSISTANT = _pattern(
    r"(?:<\|im_start\|>|<\|start_header_id\|>|<start_of_turn>|<\|start\|>|<\|)\s?(?:assistant|model|gpt|bot)\b\s?"
    r"(?:<\|end_header_id\|>|<\|message\|>|\|>)?"
)
_BARE_USER, _BARE_ASSISTANT = _pattern(r"(?:system|user)\n"), _pattern(r"\n[ \t]*(?:assistant|model)[ \t]*\n")
_SYSTEM_PROMPT = _pattern(r"\W{0,6}(?:a chat between|you are|below is an instruction|system\s?:)")
_BEFORE = r"(?:^|[\s#>])"
_USER = _pattern(rf"{_BEFORE}(?:user|human|instruction|input|prompt)\s?:")
_REPLY = _pattern(
    rf"{_BEFORE}(?:assistant|gpt|model|bot|ai|response|output|answer|short answer|caption|description)\s?:"
)
_QUESTION, _ANSWER = _pattern(rf"{_BEFORE}(?:question|q)\s?:"), _pattern(rf"{_BEFORE}(?:answer|a|caption|response)\s?:")
_NEXT_TURN = re.compile(r"#{2,3}\s?(?i:human|user|assistant|instruction|question)\b|\b(?:USER|Human|User)\s?:")
_IMAGE = r"(?:image|photo|picture|photograph|scene)"
_DEMAND = _pattern(
    r"\W{0,4}(?:please |can you |could you |kindly )*(?:describe|caption|write|provide|give|generate|summari[sz]e"
    rf"|explain|answer|respond|use|keep|limit)\b[^.?!:\n]{{0,200}}\b(?:{_IMAGE}|captions?|sentences?|words?|brief(?:ly)?|detail)\b"
    r"[^.?!:\n]{0,120}[.?!:\n]\s*(?=\S)"
)
_ASKED = _pattern(
    rf"\W{{0,4}}(?:what|who|where|how|which|is|are|can|does|do)\b[^.?!\n]{{0,160}}\b(?:{_IMAGE}|caption)\b[^.?!\n]{{0,80}}"
    r"\?\s*(?=\S)"
)
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
    text = text.partition("[/INST]")[2].partition("[INST]")[0] or text
    if _BARE_USER.match(text) and (turn := _BARE_ASSISTANT.search(text)):
        text = text[turn.end() :]
    # Of questions with their answers, the last is the one that was asked; a chat goes on by itself.
    for asking, answering, which in ((_USER, _REPLY, 0), (_QUESTION, _ANSWER, -1)):
        asked = asking.search(text)
        if asked and (not any(map(str.isalpha, text[: asked.start()])) or _SYSTEM_PROMPT.match(text)):
            answers = [answer.end() for answer in answering.finditer(text, asked.end())]
            text = text[answers[which] if answers else asked.end() :]
    if (turn := _NEXT_TURN.search(text)) and text[: turn.start()].strip():
        text = text[: turn.start()]
    for pattern in (_DEMAND, _ASKED, _SURE, _LABEL):
        if start := pattern.match(text):
            text = text[start.end() :]
    return text


# special tokens

# <unk> is a word that a captioner does not know, and stays.
_TOKEN = _pattern(
    r"<(box|quad)>[^<]{0,200}</\1>|<\|box_start\|>[^<]{0,200}<\|box_end\|>|<<?/?SYS>?>|<\|[^<>|\n]{1,40}\|>"
    r"|\[/?(?:CLS|SEP|PAD|BOS|EOS|INST|IMG|IMAGE|EOT|gMASK)\]"
    r"|</?(?:s|pad|eos|bos|sos|cls|sep|start|end|im_start|im_end|im_patch|images?|img|imagehere|image_placeholder"
    r"|image_soft_token|image_pad|start_of_image|end_of_image|start_of_turn|end_of_turn|end_of_utterance"
    r"|fake_token_around_image|global-img|row_\d+_col_\d+|grounding|extra_id_\d+|unused\d+|loc_?\d+|bin_\d+"
    r"|patch_index_\d+|0x[0-9a-f]{2}|n|blank|video|ref|box|quad|phrase|object|eot|eoc|endofchunk|sot|media|visual"
    r"|delimiter_of_multi_objects)>"
    r"|#START#|#END#|^startseq\b|\bendseq$"
)
_END = _pattern(
    r"<\|(?:im_end|eot_id|eom_id|endoftext|end_of_text|end|return|endofchunk|user|im_start|start_header_id)\|>|</s>"
    r"|<end_of_turn>|<end_of_utterance>|<eos>|<end>|\[EOS\]|#END#"
)


def _without_tokens(text: str) -> str:
    """The text up to the first token that ends it, without any other."""
    text = text.replace("[UNK]", "<unk>").strip()
    if not _TOKEN.search(text):
        return text
    begun, start = False, 0
    for token in _TOKEN.finditer(text):
        begun = begun or bool(text[start : token.start()].strip())
        if begun and _END.fullmatch(token[0]):
            text = text[: token.start()]
            break
        start = token.end()
    return re.sub(r"\s{2,}", " ", _TOKEN.sub(" ", text))


# sub-words


# The letters that GPT-2's tokenizer writes for bytes: printable ones stand for themselves.
_PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
_BYTES = {chr(byte): byte for byte in _PRINTABLE} | {chr(256 + index): byte for index, byte in enumerate(_OTHERS)}


def _whole_words(text: str) -> str:
    """Words from the pieces of SentencePiece (▁), byte-level BPE (Ġ), CLIP (</w>), WordPiece (##) and fastBPE (@@)."""
    if "▁" in text:
        text = (text.replace(" ", "") if " ▁" in text else text).replace("▁", " ")
    if "Ġ" in text:
        joined = text.replace(" ", "") if " Ġ" in text else text
        if all(letter in _BYTES for letter in joined):
            text = bytes(_BYTES[letter] for letter in joined).decode(errors="replace")
        else:
            text = joined.replace("Ġ", " ").replace("Ċ", " ")
    if "</w>" in text:
        text = (text.replace(" ", "") if "</w> " in text else text).replace("</w>", " ")
    return re.sub(r"@@(?: |$)", "", re.sub(r" ##(?=\w)", "", text))


# letters

_LIKE = {
    "АВЕЅІЈКМНОРСТУХаеѕіјорсухһԁԛԝѵкмт": "ABESIJKMHOPCTYXaesijopcyxhdqwvkmt",  # Cyrillic
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧοανυρικτεηωγ": "ABEZHIKMNOPTYXoavupiktenwy",  # Greek
    "օոսցհզյ": "onughqj",  # Armenian
    "ɑɡᴀʙᴄᴅᴇɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ": "agabcdeghijklmnoprstuvwyz",  # Latin, small capitals and the like
}
_LATIN_FOR = str.maketrans("".join(_LIKE), "".join(_LIKE.values()))
_LOOKS_LATIN = re.compile(f"[{''.join(_LIKE)}]+")
_WORD = re.compile(r"[^\W\d_]+")
_LATIN = re.compile("[\x00-\u02af\u1d00-\u1eff\ua720-\ua7ff]")
# What is shown as nothing: soft hyphens, zero width, direction, fillers, strokes through letters, control, halves of
# surrogate pairs. Joiners stay in scripts that need them, and variation selectors after symbols.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff"
    "\uffa0\ufff9-\ufffb\U000e0000-\U000e007f\u0334-\u0338\ud800-\udfff\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]"
    "|(?<![^\u0000-\u024f])[\u200c\u200d]|[\u200c\u200d](?![^\u0000-\u024f])"
    "|(?<=[A-Za-z\u00c0-\u024f])[\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
_TERMINAL = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")  # colours
_MOJIBAKE = re.compile("[\u00c2-\u00f4][\u0080-\u00bf\u0152-\u0192\u02c6\u02dc\u2013-\u203a\u20ac\u2122]")


def _plain_letters(text: str) -> str:
    """Letters in their plain form, such as full-width ones; where no letter changes, nothing does."""
    plain, same = (unicodedata.normalize(form, text) for form in ("NFKC", "NFC"))
    return text if [*filter(str.isalpha, plain)] == [*filter(str.isalpha, same)] else plain


def _mostly_latin(text: str) -> bool:
    letters = [letter for letter in text if letter.isalpha()]
    return 2 * sum(map(bool, map(_LATIN.match, letters))) >= len(letters)


def _latin_words(text: str) -> str:
    """Latin letters for those that look like them, in words with Latin letters, and in words that look Latin
    throughout among Latin words."""
    latin = _mostly_latin(text)

    def read(match: re.Match[str]) -> str:
        word = match[0]
        meant = any(letter < "\u0250" for letter in word) or (latin and _LOOKS_LATIN.fullmatch(word))
        return word.translate(_LATIN_FOR) if meant else word

    return _WORD.sub(read, text)


def _decoded(text: str) -> str:
    if not _MOJIBAKE.search(text):
        return text
    try:
        codes = (letter.encode("latin-1" if "\x80" <= letter <= "\x9f" else "cp1252") for letter in text)
        return b"".join(codes).decode()
    except UnicodeError:
        return text


# wrappings

_KEYS = _words("""
    caption captions image_caption generated_caption predicted_caption description image_description final_answer answer
    alt_text response prediction output outputs result results text generated_text sentence summary content message
    choices candidates parts value
""")
_SPEAKERS = ("assistant", "gpt", "model")
_FENCED = re.compile(r"```[\w-]*\s(.*?)```", re.DOTALL)
_TAGGED = _pattern(
    r"<(/?)(?:answer|caption|final_answer|final|response|output|description|conclusion|summary|solution|result)>"
)
_CUT_JSON = re.compile(rf"[\[{{\s]{{0,20}}[\"'](?:{'|'.join(_KEYS)})[\"']\s?:\s?[\"']", re.IGNORECASE)
_BOXED = re.compile(r".*\\boxed\{(?:\\text\{)?([^{}]*)\}", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:[nrt]|u([0-9a-fA-F]{4})|([\"'/]))")
_ENTITY = re.compile(r"&(?:#\d{1,6}|#x[0-9a-fA-F]{1,5}|[a-zA-Z]{2,8}\d{0,2});")
_HTML = _pattern(r"</?(?:p|br|div|span|caption|description|summary|html|body)(?:\s[^<>]{0,200})?/?>")
_MARKDOWN = (
    (re.compile(r"\*\*(\S(?:[^*\n]*\S)?)\*\*"), r"\1"),
    (re.compile(r"(?<![\w*])\*(\S[^*\n]*)\*(?![\w*])"), r"\1"),
    (re.compile(r"(?<!\w)__(\S[^_\n]*)__(?!\w)"), r"\1"),
    (re.compile(r"^\s{0,3}(?:#{1,6}\s+|[-*•>]\s+|\(?1[.)]\s+(?!.*\s2[.)]\s))", re.DOTALL), ""),
)
_QUOTES = ('""', "''", "“”", "‘’", "«»", "„“", "„”", "「」", "『』", "``")


def _unwrapped(text: str) -> str:
    """What is inside code fences, the tags of an answer, JSON or a list of Python; without HTML and escape codes."""
    if fenced := _FENCED.search(text):
        text = fenced[1].strip() or text
    elif text.startswith("```"):
        text = re.sub(r"^```\w*", "", text)
    tags = list(_TAGGED.finditer(text))
    if opened := [tag for tag in tags if not tag[1]]:
        end = next((tag.start() for tag in tags if tag[1] and tag.start() > opened[-1].start()), len(text))
        text = text[opened[-1].end() : end].strip() or text
    text = _TAGGED.sub(" ", text)
    if boxed := _BOXED.match(text):
        text = boxed[1].strip() or text
    if (stripped := text.strip())[:1] in ("[", "{"):
        if caption := _caption_in(_parsed(stripped)):
            return caption
        if cut := _CUT_JSON.match(stripped):
            return stripped[cut.end() :].rstrip(" \n,}]\"'") or text
    text = _ESCAPE.sub(lambda code: chr(int(code[1], 16)) if code[1] else code[2] or " ", text)
    if _HTML.search(text) or _ENTITY.search(text):
        text = _HTML.sub(" ", _ENTITY.sub(lambda entity: html.unescape(entity[0]), text))
        text = re.sub(r"\s{2,}", " ", text)
    return text


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text) if len(text) <= 5_000 else None
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _caption_in(value: Any, levels: int = 8) -> str:
    """The caption in what JSON holds, '' unless there is just one within so many levels."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list):
        turns = [part for part in value if isinstance(part, dict)]
        spoken = [turn for turn in turns if turn.get("role", turn.get("from")) in _SPEAKERS]
        only = spoken[-1:] or value
        return _caption_in(only[0], levels - 1) if len(only) == 1 and levels else ""
    if not isinstance(value, dict) or not levels:
        return ""
    by_key = {str(key).lower(): inner for key, inner in value.items()}
    for key in _KEYS:
        if key in by_key and (text := _caption_in(by_key[key], levels - 1)):
            return text
    texts = [text.strip() for text in value.values() if isinstance(text, str) and text.strip()]
    return texts[0] if len(texts) == 1 else ""


def _without_marks(text: str) -> str:
    """Without quotation marks around it and the marks of Markdown."""
    for pattern, inside in _MARKDOWN:
        text = pattern.sub(inside, text)
    quoted = text.strip()
    quoted = quoted[1:] if quoted[:2] in ("b'", 'b"') else quoted
    for first, last in _QUOTES:
        dot = "." if quoted.endswith(f"{last}.") else ""
        if quoted.startswith(first) and quoted.removesuffix(".").endswith(last):
            inner = quoted[1 : -1 - len(dot)].strip()
            marks = re.sub(r"(?<=\w)['’](?=\w)", "", inner)
            if inner and first not in marks and last not in marks:
                return inner.removesuffix(dot) + dot if dot else inner
    return text


# texts without a caption

_MISSING = _words("""
    nan none null nil n_a nat undefined missing not_available not_applicable unavailable no_caption no_answer
    no_response no_output empty empty_string unknown
""")
_NOTHING = frozenset(["", *(word.replace("_", "") for word in _MISSING)])
_FAILED = (
    r"(?:failed to obtain answer|(?:api )?error(?: code)?\s?:|traceback \(most recent|[\w.]*(?:error|exception)[(:]"
    r"|request timed out|cuda out of memory|https?connectionpool|<[\w.]+ object |tensor\(|array\(|internal server error"
    r"|too many requests|rate limit)"
)
_NAME = _pattern(
    r"(?:https?|s3|gs|ftp|file|data)://?\S+|data:\S+|\S+\.(?:jpe?g|png|gif|bmp|webp|tiff?|jsonl?|csv|txt|np[yz]|pt|mp4)"
    r"|(?:[a-z]:|\.{0,2})[\\/]\S+|\S+[\\/]\S+[\\/]\S*|(?=\S*\d)[0-9a-f-]{8,}"
)
_CODE = re.compile(r"[\w.:#-]+")


def _is_name(text: str) -> bool:
    name = text.strip()
    digits = sum(map(str.isdigit, name))
    return bool(_NAME.fullmatch(name) or (_CODE.fullmatch(name) and (digits >= 5 or (digits and "_" in name))))


# captions that a reader should know of

_ENGLISH = _words("the with of and is are standing sitting holding riding a an on at to for his her by next front")
_FOREIGN = _words("""
    ein eine einer einem einen eines der das und mit auf im ist neben steht sitzt frau mann mädchen junge
    un une des les dans avec sur et est du au homme femme fille garçon qui le la de una los con en el y del hombre mujer
    niña niño está que junto uomo donna di nel della che ragazza ragazzo il gli um uma homem mulher com do da na menina
    menino een het vrouw met op van zit staat meisje jongen ett kvinna på och som står sitter flicka pojke et kvinne
    kvinde mand kobieta mężczyzna stoi siedzi jest bir kadın adam ve erkek kız một người đàn ông phụ nữ đang trên với
    seorang pria wanita sedang dengan yang dan perempuan femeie bărbat muž žena egy nő férfi nainen mies
""")
_COMMON_ENGLISH = (
    r"(?i:\b(?:a|an|the|in|on|of|and|with|at|to|for|by|is|are|his|her|from|up|this|man|woman|men|women|boy|girl|person"
    r"|people|\w+ing)\b)"
)
_PLANNING = _pattern(
    r"\b(?:the user (?:wants?|asked|asks|is asking|needs|provided)|let me (?:think|look|start|describe|check)"
    r"|i (?:need|should|have) to (?:describe|write|think|come up|provide|identify))\b"
)
_NO_IMAGE = _pattern(
    r"\W*(?:[^.!?\n]{0,80}\b(?:unable to|not able to|cannot|can'?t|can not|couldn'?t|could not|don'?t|do not)\W+"
    r"(?:\w+ ){0,2}?(?:see|view|access|open|load|display|receive|find)\b (?:\w+ ){0,3}?"
    r"(?:image|picture|photo|attachment)"
    r"|(?:[^.!?\n]{0,40}\b)?(?:no|without an?) (?:image|picture|photo)s?(?: file)? (?:(?:was|is|has been|have been) )?"
    r"(?:provided|attached|uploaded|given|shared|found|included)\b"
    r"|(?:please|could you|can you) (?:please )?(?:provide|upload|share|attach)\b[^.]{0,40}\b(?:image|picture|photo))"
)
# A shared sentence may be the captioner's; one that asks or announces is a prompt.
_PROMPT = re.compile(r".*[:?]\s+", re.DOTALL)
_TAG = _pattern(r"<(?!unk>|mask>)/?[a-z][\w:.-]{0,40}>")


def _in_other_language(text: str) -> bool:
    if not _mostly_latin(text):
        return True
    words = [word.lower() for word in _WORD.findall(text[:400])]
    foreign, english = (sum(word in known for word in words) for known in (_FOREIGN, _ENGLISH))
    return foreign >= 2 and foreign > english


# the table


class Rule(NamedTuple):
    """One kind of text that is not a plain caption.

    action: "strip", "drop" or "keep". trigger: matches all texts that the rule concerns, in the syntax shared by RE2
    and Python. apply: for `strip` the remaining text, otherwise whether the text is of this kind. sentence: continues
    `3 of 20 captions`; {s} and {are} agree with the number.
    """

    name: str
    action: str
    trigger: str
    apply: Callable[[str], Any]
    sentence: str


_NOT_ASCII = r"[^\x00-\x7f]"
_HAS_THOUGHT = (
    r"(?i:think|thought|reason|reflect|analysis|scratchpad|rationale|cot\b|monologue|unused9|step 1|<\|channel)|◁"
)
_HAS_PROMPT = (
    r":|<\||/INST\]|(?i:<start_of_turn>|^[^A-Za-z]*(?:please|can you|could you|kindly|describe|caption|write"
    r"|provide|give|generate|summari|explain|answer|respond|use|keep|limit|what|who|where|how|which|is|are|can|does|do"
    r"|sure|certainly|of course|absolutely|okay|ok|alright|got it|user|system)[^A-Za-z])"
)
_IS_MISSING = rf"^[^A-Za-z]*(?i:{'|'.join(word.replace('_', '[^a-z]?') for word in _MISSING)})?[^A-Za-z]*$"
_HAS_NO_IMAGE = (
    r"(?i:(?:unable|not|no|can.?t|n.t|without|please|can you|could you) .*(?:image|picture|photo|attachment))"
)
_HAS_FOREIGN = rf"{_NOT_ASCII}|(?i:\b(?:{'|'.join(sorted(filter(str.isascii, _FOREIGN)))})\b)"
RULES = (
    Rule("reasoning", "strip", _HAS_THOUGHT, _without_reasoning, "held reasoning, which was removed"),
    Rule("prompts", "strip", _HAS_PROMPT, _without_prompt, "held a prompt or a label, which was removed"),
    Rule(
        "special tokens",
        "strip",
        r"<|\[[/A-Za-z]|#START#|#END#|(?i:startseq|endseq)",
        _without_tokens,
        "held special tokens such as </s>, which were removed",
    ),
    Rule("sub-words", "strip", r"▁|Ġ|</w>| ##\w|@@", _whole_words, "were cut into sub-words, which were joined"),
    Rule("wrong decoding", "strip", _NOT_ASCII, _decoded, "held wrongly decoded letters, which were decoded again"),
    Rule(
        "invisible characters",
        "strip",
        r"[^\t\n\x0b\x0c\r\x20-\x7e]",
        lambda text: _INVISIBLE.sub("", _TERMINAL.sub("", text)),
        "held invisible characters, which were removed",
    ),
    Rule("letter forms", "strip", _NOT_ASCII, _plain_letters, "held full-width or similar letters, which became plain"),
    Rule("look-alikes", "strip", _NOT_ASCII, _latin_words, "held letters that only look Latin, which became Latin"),
    Rule(
        "wrappings",
        "strip",
        r"```|^\s*[\[{]|\\|<|&#?\w+;",
        _unwrapped,
        "were wrapped in JSON, code or tags, which were removed",
    ),
    Rule(
        "marks",
        "strip",
        "^\\s*b?[\"'“‘«„「『`]|\\*|__|^\\s{0,3}[#>•(1-]",
        _without_marks,
        "held quotation marks or Markdown around them, now removed",
    ),
    Rule(
        "missing",
        "drop",
        _IS_MISSING,
        lambda text: "".join(filter(str.isalpha, text)).lower() in _NOTHING,
        "{are} missing (empty, nan, null, a number and the like), left out",
    ),
    Rule("error messages", "drop", rf"^\W*(?i:{_FAILED})", lambda text: True, "{are} error messages and left out"),
    Rule("IDs", "drop", r"^\s*\S+\s*$", _is_name, "{are} IDs, paths or URLs and left out"),
    Rule("refusals", "keep", refusals.TRIGGER, refusals.is_refusal, "{are} refusals, which count as captions"),
    Rule("no image", "keep", _HAS_NO_IMAGE, _NO_IMAGE.match, "say{s} that there is no image, and count as captions"),
    Rule(
        "unmarked thoughts",
        "keep",
        r"(?i:the user|let me|i (?:need|should|have) to)",
        _PLANNING.search,
        "seem{s} to hold unmarked reasoning, which stays",
    ),
    Rule(
        "JSON",
        "keep",
        r"^\s*[\[{]",
        lambda text: _parsed(text.strip()) is not None,
        "{are} JSON without a single caption, and count as captions",
    ),
    Rule("tags", "keep", r"<", _TAG.search, "hold{s} unknown tags in angle brackets, which stay"),
    Rule(
        "other languages",
        "keep",
        _HAS_FOREIGN,
        _in_other_language,
        "{are} not in English; only words of the attribute's list are masked and counted",
    ),
)
_SENTENCES = {rule.name: rule.sentence for rule in RULES} | {
    "shared prompt": "began with the prompt “{quoted}”, which was removed",
    "shared beginning": "begin with “{quoted}”, which stays",
    "identical": "are the same: “{quoted}”. Check for failed generations",
    "no English word": "have no common English word. Check their language and column",
}


# all captions


@dataclass(frozen=True)
class Cleaned:
    """Captions after cleaning. texts: None without a caption. counts: rule -> captions that it concerns, if any.
    warnings: a sentence per rule, unless few captions stay unchanged."""

    texts: list[str | None]
    counts: dict[str, int]
    warnings: tuple[str, ...]


def clean_captions(texts: Sequence[object]) -> Cleaned:
    """The captions in raw texts, with a count and a sentence for each rule that applies. Other values become str.

    >>> cleaned = clean_captions(["<think>Hm.</think> A wo\\u00adman.", "nan", "A dog."])
    >>> cleaned.texts, cleaned.counts
    (['A woman.', None, 'A dog.'], {'reasoning': 1, 'invisible characters': 1, 'missing': 1})
    """
    which, raw = pd.factorize(np.array([text if isinstance(text, str) else str(text) for text in texts], dtype=object))
    times = np.bincount(which, minlength=len(raw))
    captions: list[str | None] = list(raw)
    reasons: dict[int, set[str]] = defaultdict(set)  # index of a different text -> rules
    _settle(captions, reasons, range(len(raw)))
    of_all = _without_shared_prompt(captions, reasons, times) | _alike(captions, times)
    for index, rules in _concerned(captions, range(len(raw)), "keep"):
        reasons[index] |= {rule.name for rule in rules if rule.apply(captions[index] or "")}
    counts = Counter({name: number for name, (number, _) in of_all.items()})
    for index, names in reasons.items():
        counts.update(dict.fromkeys(names, int(times[index])))
    if counts["other languages"] >= counts["no English word"]:
        del counts["no English word"]
    counts = {name: counts[name] for name in _SENTENCES if counts[name]}
    warnings, kept = [], {rule.name for rule in RULES if rule.action == "keep"}
    for name, number in counts.items():
        if name not in kept or number >= 0.001 * len(which):  # fewer that stay unchanged need no sentence
            quoted = " ".join(of_all.get(name, (0, ""))[1].split())
            quoted = quoted if len(quoted) <= 60 else f"{quoted[:60]}…"
            verb = {"s": "s", "are": "is"} if number == 1 else {"s": "", "are": "are"}
            rest = _SENTENCES[name].format(quoted=quoted, **verb)
            warnings.append(f"{number:,} of {len(which):,} captions {rest}.")
    return Cleaned([captions[index] for index in which.tolist()], counts, tuple(warnings))


def _matches(texts: Sequence[str | None], pattern: str) -> np.ndarray:
    """(n,) booleans: which texts match a pattern in RE2's syntax."""
    try:
        array = pa.array(texts, type=pa.large_string())
    except UnicodeEncodeError:  # half a surrogate pair, which only Python keeps
        array = pa.array([text and text.encode(errors="replace").decode() + "\ufffd" for text in texts])
    return pc.match_substring_regex(array, pattern).fill_null(False).to_numpy(zero_copy_only=False)


def _concerned(
    captions: Sequence[str | None], indices: Sequence[int], *actions: str
) -> Iterator[tuple[int, list[Rule]]]:
    """The captions that rules of these actions may concern, and the rules. Most captions concern none."""
    rules = [rule for rule in RULES if rule.action in actions]
    texts = [captions[index] for index in indices]
    indices = [indices[int(hit)] for hit in np.flatnonzero(_matches(texts, "|".join(rule.trigger for rule in rules)))]
    texts = [captions[index] for index in indices]
    hits = [_matches(texts, rule.trigger) for rule in rules]
    for number, index in enumerate(indices):
        yield index, [rule for rule, hit in zip(rules, hits, strict=True) if hit[number]]


def _settle(captions: list[str | None], reasons: dict[int, set[str]], indices: Sequence[int]) -> None:
    """Strip and drop captions, in place, until nothing changes."""
    for _ in range(MOST_ROUNDS):
        changed = []
        for index, rules in _concerned(captions, indices, "strip", "drop"):
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


def _without_shared_prompt(
    captions: list[str | None], reasons: dict[int, set[str]], times: np.ndarray
) -> dict[str, tuple[int, str]]:
    """Rule -> number of captions and their beginning; a prompt that begins nearly all captions is removed in place."""

    def beginning() -> tuple[str, int]:
        """The words that begin nearly all captions, '' without any, and how many captions they begin."""
        different = [caption for caption in captions if caption]
        sample, words = sorted(different[:: max(1, len(different) // 500)]), ""
        middle = sample[len(sample) // 2] if len(sample) > 1 else ""
        for word in islice(re.finditer(r"\S+\s+", middle), 60):
            longer = middle[: word.end()]
            if sum(caption.startswith(longer) for caption in sample) < BEGINNING_SHARE * len(sample):
                break
            words = longer
        if not words:
            return "", 0
        total = times[[bool(caption) for caption in captions]].sum()
        number = int(times[[bool(caption) and caption.startswith(words) for caption in captions]].sum())
        return (words, number) if number >= max(FEWEST, BEGINNING_SHARE * total) else ("", 0)

    shared: dict[str, tuple[int, str]] = {}
    words, number = beginning()
    for _ in range(MOST_ROUNDS):
        if not (prompt := _PROMPT.match(words)):
            break
        shared["shared prompt"] = number, shared.get("shared prompt", (0, ""))[1] + prompt[0]
        indices = [index for index, caption in enumerate(captions) if caption and caption.startswith(prompt[0])]
        for index in indices:
            captions[index] = str(captions[index]).removeprefix(prompt[0])
        _settle(captions, reasons, indices)
        words, number = beginning()
    if len(words.split()) >= 3:
        shared["shared beginning"] = number, words
    return shared


def _alike(captions: Sequence[str | None], times: np.ndarray) -> dict[str, tuple[int, str]]:
    """Rule -> number of captions and a quotation, if many captions are identical or have no English word."""
    numbers: Counter[str] = Counter()
    for caption, number in zip(captions, times.tolist(), strict=True):
        if caption:
            numbers[caption] += number
    if not numbers:
        return {}
    alike: dict[str, tuple[int, str]] = {}
    total = numbers.total()
    text, most = numbers.most_common(1)[0]
    # The most frequent caption of published captioners has 1 to 3%.
    if len(numbers) == 1 < total or most >= max(FEWEST, 0.05 * total):
        alike["identical"] = most, text
    without = int(np.array([*numbers.values()])[~_matches(list(numbers), _COMMON_ENGLISH)].sum())
    if total >= FEWEST and without >= total / 2:
        alike["no English word"] = without, ""
    return alike
