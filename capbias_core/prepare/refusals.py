"""Which captions are refusals, such as "I'm sorry, but I can't help with identifying people in images."."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

LONGEST = 2_000  # characters that are read: a refusal comes first
LOOKED_AT = 2  # sentences
FEWEST_WORDS = 5  # of a sentence that describes the image


def _any(words: str, *patterns: str) -> str:
    """An alternative of words, with "_" for a space, and of patterns."""
    return f"(?:{'|'.join((*(word.replace('_', ' ') for word in words.split()), *patterns))})"


# What a refusing model will not do (stems of verbs); phrases of refusal; names for itself and for the request.
_ACT = (
    _any(
        """identif recogni[sz] describ caption assist help compl[yi] fulfil provid generat creat produc writ giv mak
        shar disclos offer suppl[yi] comment discuss speculat guess infer process answer respond reply analy[sz]
        interpret nam tell say determin engag continu support address proceed participat confirm reveal perform
        complet do_that do_this talk assum judg classif label"""
    )
    + r"\w*"
)
_ABLE = _any(
    "able allowed permitted authori[sz]ed comfortable equipped designed programmed capable going supposed trained"
)
_CANNOT = _any(
    """cannot can_?not can'?t could_not couldn'?t won'?t will_not would_not wouldn'?t do_not don'?t must_not unable
    avoid refrain_from""",
    rf"not (?:\w+ )?{_ABLE}",
)
_DECLINE = _any(
    "",
    r"(?:\w+ ){0,3}?(?:decline|refuse|refrain|abstain)\b",
    r"(?:'d |would )?(?:\w+ )?(?:rather|prefer|choose) not\b",
    r"(?:am|'m) (?:only|just) (?:able|designed|programmed)\b",
    r"do(?:n't| not) feel comfortable\b",
)
_AI = _any("ai artificial_intelligence language_model assistant chatbot bot model program machine system")
_REQUEST = _any("request content prompt response output message query question generation completion")
# Clauses that may come before "I cannot".
_CLAUSE = (
    _any(
        """as since because being due_to for per under out_of given based_on while although though however unfortunately
        regrettably sadly sorry apologies hi hello hey thanks? thank_you oh hmm (?:please_)?note at_this_time i_regret
        in_(?:line|accordance|compliance|order) to_(?:protect|respect|preserve|comply|maintain|avoid|ensure|be)
        it_(?:seems|appears|looks) i_understand i_appreciate i_see i_know i'?m_sorry i_am_sorry"""
    )
    + r"\b[^.!?\n]{0,120}?[\s,;:-]"
)
_BROKEN_OFF = _any("violat\\w+ blocked filtered flagged refused declined rejected denied moderated withheld prohibited")
_RULES = _any("me my i i'm guidelines? polic(?:y|ies) appropriate ethical privacy allowed permitted supported")

# Matched at the start of a sentence in lower case, with straight apostrophes.
PATTERN = re.compile(
    "|".join(
        (
            # apology
            r"(?:i'?m|i am|we'?re|we are) (?:\w+ )?sorry\b",
            r"(?:sorry|(?:my )?(?:sincere |sincerest )?apologies|(?:i|we) (?:do |must )?apologi[sz]e)"
            r"[\s,.!:;-]*(?:(?:but|that|for|about|as) )*(?:i|i'm|we|it|this|that|your|unable|cannot"
            r"|can'?t|the (?:image|picture|photo|request|inconvenience|confusion))\b",
            # inability
            rf"(?:{_CLAUSE})?(?:i|we|(?:this|the) (?:\w+ )?{_AI})(?:'m| am|'re| are| is)?"
            rf"(?: (?:\w+ ){{0,2}}?{_CANNOT}(?: [\w']+){{0,8}}? {_ACT}"
            rf"|(?: |(?='))(?:must |have to |need to |will |'ll )*{_DECLINE})",
            rf"the {_AI} (?:refused|declined)\b",
            # without a subject
            rf"(?:(?:sorry|unfortunately)[,. ]+)?(?:(?:cannot|can ?not|can'?t|could not|couldn'?t|unable"
            rf"|not (?:able|allowed|permitted))(?: to)?|(?:refus|declin)\w+ to)(?: \w+){{0,2}}? {_ACT}",
            # as an AI
            rf"(?:as|being|since i am|since i'm|i am|i'm) (?:\w+ )?an? (?:[\w-]+ ){{0,4}}?{_AI}\b"
            rf".*(?:{_CANNOT}|\b(?:only|not)\b|n't\b|{_DECLINE})",
            # against the rules
            r"(?:it|that|this|doing so|(?:identify|describ|recogni[sz]|nam|caption|comment|provid|giv)ing\b[^.]{0,80}?)"
            r"(?:'s| is| are| would be| goes| go|n't)? ?(?:\w+ ){0,2}?(?:against|violat\w+|not|isn't|inappropriate"
            rf"|unethical|prohibited|impossible)\b.*\b{_RULES}\b",
            r"my (?:guidelines?|polic(?:y|ies)|programming|instructions?|training|safety)\b"
            r".*(?:\b(?:prevents?|prohibits?|not|against|forbids?)\b|n't\b)",
            # blocked
            rf"(?:(?:this|the|your|my) (?:\w+ )?)?{_REQUEST}\b.{{0,60}}?"
            rf"\b(?:{_BROKEN_OFF}|not (?:allowed|permitted)|can(?:no|')t be \w+)\b",
            r"(?:refused|refusal|declined|(?:content )?(?:filtered|blocked)|blocked by .{0,40}|content[ _]filter"
            r"|redacted|prohibited[ _]content)\W*$",
            r"(?:this|the) (?:image|picture|photo|person|individual)s?(?: \w+){0,3}? (?:can(?:no|')t|can not|may not"
            r"|must not) be (?:described|captioned|identified|processed|analy[sz]ed|named|discussed)\b",
            r"no (?:caption|description|answer|response)s? (?:\w+ ){0,3}?"
            r"(?:provided|given|generated|available|possible)\b",
            # other languages
            r"lo siento|lamento|no puedo|(?:je suis )?d[ée]sol[ée]|je ne peux pas|(?:es )?tut mir leid|entschuldigung",
            r"ich kann (?:\w+ ){0,4}nicht|mi dispiace|non posso|desculpe|sinto muito|não posso|het spijt me",
            r"sorry, maar|ik kan (?:\w+ ){0,4}niet|przepraszam|nie mogę|извините|к сожалению|я не могу|抱歉|很抱歉",
            r"非常抱歉|对不起|對不起|我无法|我無法|我不能|申し訳|すみません|죄송|क्षमा|मुझे खेद|عذر|آسف|üzgünüm",
        )
    )
)
# Every refusal matches it; in the syntax of RE2, which reads a million captions in a moment.
TRIGGER = (
    r"(?i:sorry|apolog|unfortunately|regrettably|\bcan *no|can.?t\b|could *no|couldn|unable|\bnot\b|n.t\b|\bavoid"
    r"|refrain|declin|refus|abstain|\brather\b|prefer|\bonly\b|\bjust\b|against|violat|block|filter|flagg|reject|denied|moderat"
    r"|withheld|prohibit|redact|unethical|inappropriate|impossible|prevent|forbid|siento|lamento|puedo|d.sol|peux|leid"
    r"|entschuld|ich +kann|dispiace|posso|desculpe|sinto|spijt|ik +kan|przepraszam|mog"
    r"|\bno +(?:caption|description|answer|response)"
    r"|извин|сожал|не +могу|抱歉|对不起|對不起|我无法|我無法|我不能|申し訳|すみません|죄송|क्षमा|खेद|عذر|آسف|üzgün)"
)
# A sentence with one of these is about the request; any other of some length describes the image after all.
_ABOUT_THE_REQUEST = re.compile(
    r"\b(?:i|i'm|i'd|i'll|i've|me|my|we|our|you|your|you'd|please|feel free|sorry|assist\w*|help\w*|requests?|content"
    r"|ai|polic(?:y|ies)|guidelines?|privacy|identif\w*|recogni\w*|real (?:people|persons|individuals)|language model"
    r"|violat\w+)\b"
)
_BUT = re.compile(
    r"\b(?:but|however|though|instead)\b[\s,]*(?:(?:i|we) (?:can|could|am able to) (?:\w+ ){0,2}?"
    r"(?:see|tell|say|describe|note|provide|offer|confirm|observe)(?: you)?(?: that)?\b)?(.*)"
)
_SPACES = re.compile(r"[^\S\n]+")
_SENTENCE = re.compile(r"[^.!?。！？\n]+")


def is_refusal(caption: str) -> bool:
    """Whether a caption refuses to describe the image. One that says "I cannot" and then describes it does not.

    >>> [is_refusal(text) for text in ("I'm sorry, but I can't help with that.", "A man who is unable to stand.")]
    [True, False]
    """
    text = _SPACES.sub(" ", caption[:LONGEST]).lower().replace("’", "'")
    sentences = list(filter(None, (part.strip(" \t\"'*_#>[]()-:;,“”‘`") for part in _SENTENCE.findall(text))))
    index = next((index for index, sentence in enumerate(sentences[:LOOKED_AT]) if PATTERN.match(sentence)), None)
    if index is None:
        return False
    but = _BUT.search(sentences[index])
    others = [*sentences[:index], but[1] if but else "", *sentences[index + 1 :]]
    return not any(len(other.split()) >= FEWEST_WORDS and not _ABOUT_THE_REQUEST.search(other) for other in others)


def refusals(captions: Sequence[str]) -> np.ndarray:
    """(n,) booleans: which captions are refusals. The same caption is read once."""
    which, different = pd.factorize(np.array(captions, dtype=object))
    texts = pa.array(different, type=pa.large_string())
    hits = pc.match_substring_regex(texts, TRIGGER).to_numpy(zero_copy_only=False)
    return np.array([hit and is_refusal(caption) for hit, caption in zip(hits, different, strict=True)], dtype=bool)[
        which
    ]
