"""Which captions are refusals, such as "I'm sorry, but I can't help with identifying people in images."."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

# What a refusing model does not do.
_ACT = (
    r"(?:identif|recogni[sz]|describ|caption|assist|help|compl[yi]|fulfil|provid|generat|creat|produc|writ|giv|mak|shar"
    r"|disclos|offer|suppl[yi]|comment|discuss|speculat|guess|infer|process|answer|respond|reply|analy[sz]|interpret|nam"
    r"|tell|say|determin|engag|continu|support|address|proceed|participat|confirm|reveal|perform|complet|do (?:that|this)"
    r"|talk|assum|judg|classif|label)\w*"
)
_CANNOT = (
    r"(?:cannot|can ?not|can'?t|could not|couldn'?t|won'?t|will not|would not|wouldn'?t|do not|don'?t|must not"
    r"|unable|not (?:\w+ )?(?:able|allowed|permitted|authori[sz]ed|comfortable|equipped|designed|programmed|capable|going"
    r"|supposed|trained)|avoid|refrain from)"
)
_DECLINE = (
    r"(?:(?:\w+ ){0,3}?(?:decline|refuse|refrain|abstain)\b|(?:'d |would )?(?:\w+ )?(?:rather|prefer|choose) not\b"
    r"|(?:am|'m) (?:only|just) (?:able|designed|programmed)\b|do(?:n't| not) feel comfortable\b)"
)
# Clauses that may come before "I cannot".
_CLAUSE = (
    r"(?:(?:as|since|because|being|due to|for|per|under|out of|given|based on|while|although|though|however|unfortunately"
    r"|regrettably|sadly|sorry|apologies|hi|hello|hey|thanks?|thank you|oh|hmm|(?:please )?note|at this time"
    r"|i regret|in (?:line|accordance|compliance|order)|to (?:protect|respect|preserve|comply|maintain|avoid|ensure|be)"
    r"|it (?:seems|appears|looks)|i understand|i appreciate|i see|i know|i'?m sorry|i am sorry)\b[^.!?\n]{0,120}?[\s,;:-])?"
)
_AI = r"(?:ai|artificial intelligence|language model|assistant|chatbot|bot|model|program|machine)"
_THING = r"(?:request|content|prompt|response|output|message|query|question|generation|completion)"

# Each is searched at the start of a sentence in lower case, whose apostrophes are straight.
PATTERNS = {
    "apology": re.compile(
        r"(?:i'?m|i am|we'?re|we are) (?:\w+ )?sorry\b|(?:sorry|(?:my )?(?:sincere |sincerest )?apologies|(?:i|we) "
        r"(?:do |must )?apologi[sz]e|unfortunately|regrettably)[\s,.!:;-]*(?:but |that |for |about |as )*(?:i|i'm|we|it"
        r"|this|that|your|no|not|unable|cannot|can'?t|any|the (?:image|picture|photo|request|inconvenience|confusion))\b"
    ),
    "inability": re.compile(
        rf"{_CLAUSE}(?:i|we|this (?:\w+ )?{_AI}|the (?:\w+ )?{_AI})(?:'m| am|'re| are| is)?"
        rf"(?: (?:\w+ ){{0,2}}?{_CANNOT}(?: [\w']+){{0,8}}? {_ACT}|(?: |(?='))(?:must |have to |need to |will |'ll )*{_DECLINE})"
    ),
    "without a subject": re.compile(
        r"(?:sorry[,. ]+)?(?:(?:cannot|can ?not|can'?t|could not|couldn'?t|unable|not (?:able|allowed|permitted))(?: to)?"
        rf"|refus\w+ to|declin\w+ to)(?: \w+){{0,2}}? {_ACT}"
    ),
    "as an AI": re.compile(
        rf"(?:as|being|since i am|since i'm|i am|i'm) (?:\w+ )?an? (?:[\w-]+ ){{0,4}}?{_AI}\b.*"
        rf"(?:{_CANNOT}|\bonly\b|\bnot\b|n't\b|{_DECLINE})"
    ),
    "against the rules": re.compile(
        r"(?:(?:it|that|this|doing so|(?:identify|describ|recogni[sz]|nam|caption|comment|provid|giv)ing\b[^.]{0,80}?)"
        r"(?:'s| is| are| would be| goes| go|n't)? ?(?:\w+ ){0,2}?(?:against|violat\w+|not|isn't|inappropriate|unethical"
        r"|prohibited|impossible)\b.*\b(?:me|my|i|i'm|guidelines?|polic(?:y|ies)|appropriate|ethical|privacy|allowed"
        r"|permitted|supported)\b|my (?:guidelines?|polic(?:y|ies)|programming|instructions?|training|safety)\b.*"
        r"(?:\b(?:prevents?|prohibits?|not|against|forbids?)\b|n't\b))"
    ),
    "blocked": re.compile(
        rf"(?:(?:this|the|your|my) (?:\w+ )?)?{_THING}\b.{{0,60}}?\b(?:violat\w+|blocked|filtered|flagged|refused|declined"
        rf"|rejected|denied|moderated|withheld|prohibited|not (?:allowed|permitted)|cannot be \w+|can't be \w+)\b"
        rf"|(?:refused|refusal|declined|(?:content )?(?:filtered|blocked)|blocked by .{{0,40}}|content[ _]filter|redacted"
        rf"|prohibited[ _]content)\W*$"
        rf"|(?:this|the) (?:image|picture|photo|person|individual)s?(?: \w+){{0,3}}? (?:cannot|can't|can not|may not|must not)"
        rf" be (?:described|captioned|identified|processed|analy[sz]ed|named|discussed)\b"
        rf"|the (?:{_AI}) (?:refused|declined)\b"
        rf"|no (?:caption|description|answer|response)s? (?:\w+ ){{0,3}}?(?:provided|given|generated|available|possible)\b"
    ),
    "other languages": re.compile(
        r"lo siento|lamento|no puedo|(?:je suis )?d[ée]sol[ée]|je ne peux pas|es tut mir leid|tut mir leid|entschuldigung"
        r"|ich kann (?:\w+ ){0,4}nicht|mi dispiace|non posso|desculpe|sinto muito|lamento|não posso|het spijt me|sorry, maar"
        r"|ik kan (?:\w+ ){0,4}niet|przepraszam|nie mogę|извините|к сожалению|я не могу|抱歉|很抱歉|非常抱歉|对不起|對不起|我无法"
        r"|我無法|我不能|申し訳|すみません|죄송|क्षमा|मुझे खेद|عذر|آسف|üzgünüm"
    ),
}
# What every refusal holds, for RE2, which looks through a million captions in a moment.
TRIGGER = (
    r"(?i:sorry|apolog|unfortunately|regrettably|\bcan ?no|can.?t\b|could ?no|couldn|unable|\bnot\b|n.t\b|\bavoid|refrain|declin"
    r"|refus|abstain|\brather\b|prefer|\bonly\b|\bjust\b|against|violat|block|filter|flagg|reject|denied|moderat|withheld"
    r"|prohibit|redact|unethical|inappropriate|impossible|prevent|forbid|siento|lamento|puedo|d.sol|peux|leid|entschuld"
    r"|ich kann|dispiace|posso|desculpe|sinto|spijt|ik kan|przepraszam|mog|\bno (?:caption|description|answer|response))"
    r"|извин|сожал|не могу|抱歉|对不起|對不起|我无法|我無法|我不能|申し訳|すみません|죄송|क्षमा|खेद|عذر|آسف|üzgün"
)
# A sentence of these is about the request. Any other of five words and more describes the image after all.
_ABOUT_THE_REQUEST = re.compile(
    r"\b(?:i|i'm|i'd|i'll|i've|me|my|we|our|you|your|you'd|please|feel free|sorry|assist\w*|help\w*|requests?|polic(?:y|ies)"
    r"|guidelines?|privacy|identif\w*|recogni\w*|real (?:people|persons|individuals)|content|ai|language model|violat\w+)\b"
)
_BUT = re.compile(
    r"\b(?:but|however|though|instead)\b[\s,]*(?:(?:i|we) (?:can|could|am able to) (?:\w+ ){0,2}?(?:see|tell|say|describe"
    r"|note|provide|offer|confirm|observe)(?: you)?(?: that)?\b)?(.*)"
)
_SENTENCE = re.compile(r"[^.!?。！？\n]+")
LONGEST = 2_000  # characters that are read: a refusal comes first
LOOKED_AT = 2  # sentences


def is_refusal(caption: str) -> bool:
    """Whether a caption refuses to describe the image. One that says "I cannot" and then describes it does not.

    >>> [is_refusal(text) for text in ("I'm sorry, but I can't help with that.", "A man who is unable to stand.")]
    [True, False]
    """
    text = caption[:LONGEST].lower().replace("’", "'").replace("`", "'")
    sentences = [own.strip(" \t\"'*_#>[]()-:;,“”‘") for own in _SENTENCE.findall(text)]
    sentences = [own for own in sentences if own]
    refusing = [
        place
        for place, own in enumerate(sentences[:LOOKED_AT])
        if any(pattern.match(own) for pattern in PATTERNS.values())
    ]
    if not refusing or any(map(_describes, sentences[: refusing[0]])):
        return False
    after = sentences[refusing[0] + 1 :]
    but = _BUT.search(sentences[refusing[0]])
    return not any(map(_describes, [*after, but[1] if but else ""]))


def _describes(sentence: str) -> bool:
    return len(sentence.split()) >= 5 and not _ABOUT_THE_REQUEST.search(sentence)


def refusals(captions: Sequence[str]) -> np.ndarray:
    """(n,) booleans: which captions are refusals. The same caption is read once."""
    which, different = pd.factorize(pd.Series(captions, dtype=object))
    texts = pa.array(different, type=pa.large_string())
    found = pc.match_substring_regex(texts, TRIGGER).to_numpy(zero_copy_only=False).astype(bool)
    for place in np.flatnonzero(found):
        found[place] = is_refusal(different[place])
    return found[which]
