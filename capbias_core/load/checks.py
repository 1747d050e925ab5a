"""What captions say of themselves, of their labels and of the human captions: checks, alike for every format.

`CHECKS` is the table of what single captions may hold; `findings` adds what only captions together, labels and human
captions show. Thresholds lie above the largest share in 18 sets of real captions (docs/files.md).
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from capbias_core.attributes import shipped_files
from capbias_core.errors import CapbiasError, short
from capbias_core.load.sheet import SHORT, literal
from capbias_core.prepare import refusals
from capbias_core.prepare.text import tokenize
from capbias_core.prepare.tokens import Tokens
from capbias_core.resources import REVEALING_FILE
from capbias_core.types import Attribute

FEWEST = 20  # captions needed before a sentence about all of them
FEWEST_IMAGES = 50  # needed before captions are said to be of other images
SAMPLE = 2_000  # captions, or images, that stand for all
GAP_P = 0.001  # of chance, below which groups are said to differ in a check
CLEARLY = 3.0  # standard errors above chance
WARN, REFUSE = "warn", "refuse"
# Findings that a baseline of shuffled captions or labels is meant to show.
OF_OTHER_IMAGES = ("captions and human captions", "human captions and labels")


class Check(NamedTuple):
    """What a caption may hold."""

    name: str
    pattern: str  # in RE2's syntax; matches all such captions
    also: Callable[[str], object] | None  # whether a caption that matches is meant
    warn: float  # the share of captions from which there is a warning
    refuse: float  # the share of captions from which they are not scored
    sentence: str  # follows `3 of 20 captions`

    def find(self, texts: list[str], array: pa.Array | None = None) -> np.ndarray:
        """(n,) booleans: which captions hold it. array: the texts, if they are one already."""
        hits = matches(texts, self.pattern, array) if self.pattern else np.ones(len(texts), dtype=bool)
        if self.also:
            hits[hits] = [bool(self.also(texts[index])) for index in np.flatnonzero(hits)]
        return hits


def arrow(texts: Sequence[str | None]) -> pa.Array:
    try:
        return pa.array(texts, type=pa.large_string())
    except UnicodeEncodeError:  # half a surrogate pair, which only Python keeps
        return pa.array([text and text.encode(errors="replace").decode() + "\ufffd" for text in texts])


def matches(texts: Sequence[str | None], pattern: str, array: pa.Array | None = None) -> np.ndarray:
    """(n,) booleans: which texts match a pattern in RE2's syntax."""
    hits = pc.match_substring_regex(arrow(texts) if array is None else array, pattern)
    return hits.fill_null(False).to_numpy(zero_copy_only=False)


def repeats(text: str) -> bool:
    """Whether a caption repeats itself: three words or more twice in a row, fewer four times, or a whole sentence."""
    words = text.split()
    if len(set(words)) * 4 > len(words) * 3:
        return False
    words, text = text.lower().split(), text.lower()
    sentences = [part.strip() for part in re.split(r"[.!?\n]+", text) if part.count(" ") > 2]
    last: dict[tuple[str, ...], int] = {}  # three words -> where they began last
    for index in range(len(words) - 2):
        three = tuple(words[index : index + 3])
        first = last.get(three, index)
        period = index - first
        if period and words[first:index] == words[index : index + period]:
            run = period if period > 2 else 3 * period
            if words[first : first + run] == words[index : index + run] and index + run <= len(words):
                return True
        last[three] = index
    return len(set(sentences)) < len(sentences)


def fields_of(text: str) -> list[str]:
    """The names of the fields of a caption that is JSON, or the texts of a list; none if it is a plain text."""
    text = re.sub(r"^```\w*\s*|\s*```$", "", text.strip())
    value = literal(text, SHORT)
    return list(map(str, value)) if isinstance(value, dict | list) else []


_NO_IMAGE = re.compile(
    r"\W*(?:[^.!?\n]{0,80}\b(?:unable to|not able to|cannot|can'?t|can not|couldn'?t|could not|don'?t|do not)\W+"
    r"(?:\w+ ){0,2}?(?:see|view|access|open|load|display|receive|find)\b"
    r" (?:\w+ ){0,3}?(?:image|picture|photo|attachment)"
    r"|(?:[^.!?\n]{0,40}\b)?(?:no|without an?) (?:image|picture|photo)s?(?: file)? (?:(?:was|is|has been|have been) )?"
    r"(?:provided|attached|uploaded|given|shared|found|included)\b"
    r"|(?:please|could you|can you) (?:please )?(?:provide|upload|share|attach)\b[^.]{0,40}\b(?:image|picture|photo))",
    re.IGNORECASE,
)
_HAS_NO_IMAGE = r"(?i:(?:unable|not|no|n.t|without|please|you) .*(?:image|picture|photo|attachment))"
_THOUGHTS = (
    r"(?i:\b(?:the user (?:wants?|asked|asks|is asking|needs|provided)|let me (?:think|look|start|describe|check)"
    r"|i (?:need|should|have) to (?:describe|write|think|come up|provide|identify))\b)"
)
_SEVERAL = (
    r"(?is:\S\s*(?:\|\|?|###?|<sep>|\t| // )\s*\S.*\w|;.*;|(?:^|\s)\(?(?:1[.):]|a\)) .*\s\(?(?:2[.):]|b\)) "
    r"|^\s*(?:- .*\s- |\* .*\s\* |• .*\s• )"
    r"|\b(?:option|caption|version|alternative) ?[1a][.):].*\b(?:option|caption|version|alternative) ?[2b][.):])"
)
_BRACKETS = r"[\[\]{}|]|<(?:[^u\s/>]|u[^n]|/)[^<>]*>|\d ?, ?\d+ ?, ?\d"
_ENGLISH = r"\b(?i:the|with|of|and|is|are|at|for|his|her|by|next|front|from|this|that|who|while|\w+ing)\b"
_COMMON = rf"{_ENGLISH}|\b(?i:an?|in|on|to|up|(?:wo)?m[ae]n|boy|girl|person|people)\b"
# Frequent words of languages that write in Latin letters, none of which is English.
_FOREIGN = re.compile(
    r"\b(?:eine?[mnrs]?|der|das|und|mit|auf|neben|am|sitzt|isst|une?|des|les|dans|avec|sur|et|du|femme|homme|una|los|con"
    r"|el|del|mujer|hombre|donna|uomo|nel|della|che|il|uma?|com|mulher|homem|na|een|het|van|op|aan|zit|eet|vrouw|met|rijdt|staat"
    r"|fiets|sit|die|n|vrou|ry|ett?|en|och|som|med|på|vid|sitter|kvinna|bord|jest|kobieta|bir|ve|và|một|yang|dengan)\b",
    re.IGNORECASE,
)
_ONLY_ENGLISH = re.compile(
    r"\b(?:the|with|and|his|her|on|while|next|this|that|are|of|holding|sitting|standing|\w\wing)\b", re.I
)


def _in_other_language(text: str) -> bool:
    latin = len(re.findall(r"[a-z]", text, re.IGNORECASE))
    if 2 * latin < sum(map(str.isalpha, text)):
        return True
    foreign = len(_FOREIGN.findall(text)) + sum(not word.isascii() for word in text.split())
    return foreign > 1 and not _ONLY_ENGLISH.search(text)


# fmt: off
CHECKS = (
    Check("refusals", refusals.TRIGGER, refusals.is_refusal, 0.001, 2, "are refusals, which count as captions"),
    Check("no image", _HAS_NO_IMAGE, _NO_IMAGE.match, 0.001, 2, "say that there is no image, and count as captions"),
    Check("unmarked thoughts", _THOUGHTS, None, 0.001, 2, "seem to hold unmarked reasoning, which stays"),
    Check("JSON", r"^\s*(?:```\w*\s*)?[\[{]", lambda text: bool(fields_of(text)), 0.001, 0.5,
          "are JSON with several fields or texts. Name the field, or keep one text each"),
    Check("several captions", _SEVERAL, None, 0.05, 0.5, "hold several captions or answers in one. Keep one per row"),
    Check("several fields", r"\n\s*(?:\w+ ?){1,2}:\s", None, 0.3, 2,
          "hold fields such as `Caption:` on separate lines, all of which are read"),
    Check("brackets", _BRACKETS, lambda text: text[0] not in "[{`", 0.01, 2,
          "hold brackets, tags or coordinates, which stay"),
    Check("other languages", rf"[^\x00-\x7f]|(?i:{_FOREIGN.pattern})", _in_other_language, 0.001, 0.5,
          "are not in English; only words of the attribute's list are masked and counted"),
    Check("emoji", "[👦-👩👨👴-👵👱👸🤴🧑-🧓🧔]", None, 0.001, 2, "hold emoji of people, which count as no words"),
    Check("repetition", "", repeats, 0.01, 2, "repeat themselves"),
)
# fmt: on


@dataclass(frozen=True)
class Finding:
    """The result of a check."""

    name: str
    count: int  # captions
    text: str  # a sentence
    effect: str = WARN  # WARN, REFUSE, or '' if too few captions are concerned


def quoted(text: str) -> str:
    return f"“{short(text, 60)}”"


def refuse(results: Sequence[Finding], title: str, shuffled: bool = False) -> None:
    """Raises CapbiasError with the first finding that does not let captions be scored. title: of the captions.
    shuffled: captions or labels of other images are meant."""
    for each in results:
        if each.effect == REFUSE and not (shuffled and each.name in OF_OTHER_IMAGES):
            hint, asked = "Correct the file, and the rows or columns that were read.", ()
            if each.name in OF_OTHER_IMAGES:
                hint, asked = f"{hint} Or say that captions or labels are shuffled on purpose.", ("shuffled",)
            raise CapbiasError(f"{title}: {each.text}", hint, *asked)


def text_findings(texts: list[str], times: np.ndarray) -> list[Finding]:
    """What captions hold, from the captions alone. texts: different ones. times: how often each occurs."""
    return list(_text_findings(texts, times)) if len(texts) else []


def _text_findings(texts: list[str], times: np.ndarray) -> Iterator[Finding]:
    total, array = int(times.sum()), arrow(texts)
    for check in CHECKS:
        hit = check.find(texts, array)
        if number := int(times[hit].sum()):
            share = number / total
            effect = REFUSE if share >= check.refuse and number >= FEWEST else WARN if share >= check.warn else ""
            example = quoted(texts[int(hit.argmax())])
            yield _of(check.name, number, total, f"{check.sentence}: {example}", effect)
    for end, name, verb in ((False, "shared beginning", "begin"), (True, "shared ending", "end")):
        for text, number in shared_texts(texts, times, end, 0.9)[:1]:
            yield _of(name, number, total, f"{verb} with {quoted(text)}, which stays")
    most = int(times.max())
    if len(texts) == 1 < total or most >= max(FEWEST, 0.05 * total):  # the most frequent of real captioners has 1 to 3%
        text = quoted(texts[int(times.argmax())])
        yield _of("identical", most, total, f"are the same: {text}. Check for failed generations")
    without = int(times[~matches(texts, _COMMON)].sum())
    if total >= FEWEST and without >= total / 2:
        yield _of("no English word", without, total, "have no common English word. Check language and column")


def _of(name: str, number: int, total: int, sentence: str, effect: str = WARN) -> Finding:
    return Finding(name, number, f"{number:,} of {total:,} captions {sentence}.", effect)


def shared_texts(texts: Sequence[str], times: np.ndarray, end: bool, share: float) -> list[tuple[str, int]]:
    """The longest texts that begin (or end) at least this share of captions, three words or more, and how many."""
    sample = [text for text in texts if text]
    sample = sample[:: max(1, len(sample) // SAMPLE)]
    three = re.compile(r"(?:\s++\S++){3}\s*\Z" if end else r"(?:\S++\s++){3}")
    holds = str.endswith if end else str.startswith
    shared = []
    starts = Counter(match[0] for text in sample if (match := (three.search if end else three.match)(text)))
    for words, _ in [pair for pair in starts.most_common(5) if pair[1] >= share * len(sample)]:
        group = [text for text in sample if holds(text, words)]
        middle = group[len(group) // 2]
        cuts = [match.start() if end else match.end() for match in re.finditer(r"\s+(?=\S)", middle)][:60]
        longer = [middle[cut:] if end else middle[:cut] for cut in (reversed(cuts) if end else cuts)]
        for more in longer:
            if len(more) > len(words):
                if sum(holds(text, more) for text in group) < 0.9 * len(group):
                    break
                words = more
        number = int(times[[bool(text) and holds(text, words) for text in texts]].sum())
        if number >= max(FEWEST, share * times[[bool(text) for text in texts]].sum() * 0.9):
            shared.append((words, number))
    return shared


def other_languages(texts: list[str]) -> np.ndarray:
    """(n,) booleans: which captions are not in English."""
    check = next(check for check in CHECKS if check.name == "other languages")
    return check.find(texts) if texts else np.zeros(0, dtype=bool)


# with labels and human captions


def names_only(captions: Sequence[str], attribute: Attribute) -> list[str | None]:
    """The value that each caption names, None if it names none or several."""
    named = Tokens.of(captions).naming(attribute.value_words).toarray() > 0
    return [attribute.values[row.argmax()] if row.sum() == 1 else None for row in named]


STRETCH = 50  # captions that are compared with their labels, or images with their human captions, at a time
DROP = 0.2  # by which a shifted stretch fits its images less often than the others


def _longest_run(low: np.ndarray) -> tuple[int, int]:
    """Where the longest run of True begins and ends."""
    best, start = (0, 0), 0
    for place, is_low in enumerate([*low, False]):
        if not is_low:
            best = max(best, (start, place), key=lambda run: run[1] - run[0])
            start = place + 1
    return best


def shifted_from(
    captions: pd.DataFrame, attribute: Attribute | None, labels: pd.Series, references: pd.DataFrame | None
) -> tuple[int, float, float, str] | None:
    """The row from which captions no longer fit their images, how often they do elsewhere and there, and in what; None
    if all stretches of rows are alike."""
    sides = []
    if attribute is not None and attribute.names_values:
        named, label = names_only(captions["caption"], attribute), captions["image_id"].map(labels)
        known = [
            (row, one == other)
            for row, (one, other) in enumerate(zip(named, label, strict=True))
            if one and isinstance(other, str)
        ]
        sides.append((known, 0.7, 0.75, "name the labelled value"))
    if references is not None:
        human = (
            references[references["image_id"].isin(captions["image_id"])].groupby("image_id")["caption"].agg(" ".join)
        )
        words = {image: set(tokenize(text)) - _LITTLE for image, text in human.items()}
        rows = [
            (row, set(tokenize(text)) - _LITTLE, words[image])
            for row, (image, text) in enumerate(zip(captions["image_id"], captions["caption"], strict=True))
            if image in words
        ]
        if len(rows) <= SAMPLE:
            sides.append(
                (
                    [(row, len(own & theirs) > 0.25 * len(own)) for row, own, theirs in rows],
                    0.4,
                    0.6,
                    "share words with the human captions",
                )
            )
    for known, low, high, what in sides:
        stretches = [known[at : at + STRETCH] for at in range(0, len(known) - STRETCH // 2, STRETCH)]
        shares = np.array([np.mean([fits for _, fits in stretch]) for stretch in stretches])
        start, end = _longest_run(shares < low)
        # A shift lasts: single stretches of a captioner that is often wrong are as low by chance.
        if end - start < max(2, len(shares) // 10) or len(shares) == end - start:
            continue
        inside, outside = shares[start:end].mean(), np.delete(shares, slice(start, end)).mean()
        if outside > high and outside - inside > DROP:
            return stretches[start][0][0] + 1, float(outside), float(inside), what
    return None


def findings(
    captions: pd.DataFrame,
    attribute: Attribute,
    labels: pd.Series | None = None,
    references: pd.DataFrame | None = None,
) -> list[Finding]:
    """What checks find that the report on a file alone does not say: captions that are not to be scored, gaps between
    groups, words of the attribute, and captions that belong to other images.

    captions, references: image_id and caption. labels: image ID -> value; only captions with a label count.
    """
    captions = captions.astype(object)  # in which pandas finds texts much quicker than in Arrow's strings
    if labels is not None:
        captions = captions[captions["image_id"].isin(labels.index)]
    which, different = pd.factorize(captions["caption"])
    texts, times = list(different), np.bincount(which, minlength=len(different))
    results = [
        each for each in text_findings(texts, times) if each.effect == REFUSE and each.name != "several captions"
    ]
    if not (attribute.words and _is_shipped(attribute)):  # own words may be of another language
        results = [each for each in results if each.name != "other languages"]
    if references is not None:
        human = pd.DataFrame(references, dtype=object)
        results += _of_references(captions, human)
        images = human["image_id"].drop_duplicates()
        images = images[images.isin(captions["image_id"])].sample(frac=1, random_state=0)[:SAMPLE]
        human = human[human["image_id"].isin(images)]
        references = human
        counts = human["caption"].value_counts(sort=False)
        for each in text_findings(list(counts.index), counts.to_numpy()):
            if each.effect == REFUSE:
                results.append(replace(each, text=f"Human captions: {each.text}"))
    if attribute.names_values and not captions.empty:
        results += _of_words(captions, attribute, labels, references)
    if labels is not None:
        value = captions["image_id"].map(labels)
        for check in CHECKS:
            results += _by_group(check, pd.Series(check.find(texts)[which], index=captions.index), value)
    return results


def _by_group(check: Check, hit: pd.Series, value: pd.Series) -> Iterator[Finding]:
    """A sentence if the groups differ in a check by more than chance."""
    table = pd.crosstab(value, hit)
    if table.shape[0] < 2 or table.shape[1] < 2 or table[True].sum() < 10:
        return
    from scipy.stats import chi2_contingency  # a second to import, and seldom needed

    if chi2_contingency(table)[1] > GAP_P:
        return
    shares = (table[True] / table.sum(axis=1)).sort_values(ascending=False)
    of = ", ".join(f"{group} {share:.1%} ({table[True][group]:,})" for group, share in shares.items())
    more = f", {shares.iloc[0] / shares.iloc[-1]:.1f} times as often" if shares.iloc[-1] else ""
    sentence = check.sentence.partition(",")[0].partition(".")[0]
    yield Finding(check.name, int(table[True].sum()), f"Captions that {sentence}: {of}{more}.")


def _of_words(
    captions: pd.DataFrame, attribute: Attribute, labels: pd.Series | None, references: pd.DataFrame | None
) -> Iterator[Finding]:
    """Whether captions name values, deny them, agree with the labels, and hold words that are not masked."""
    tokens, total = Tokens.of(captions["caption"]), len(captions)
    named = tokens.naming(attribute.value_words).toarray() > 0
    one = named.sum(axis=1) == 1
    if one.mean() < 0.2:
        shares = ", ".join(f"{value} {n:,}" for value, n in zip(attribute.values, named[one].sum(axis=0), strict=True))
        sentence = f"name exactly one value of {attribute.name} ({shares})"
        yield _of("value named", int(one.sum()), total, sentence)
    rows = np.unique(tokens.caption[np.flatnonzero(tokens.denied(attribute.masked_words))])
    if len(rows) >= max(1, 0.001 * total):
        example = quoted(captions["caption"].iloc[rows[0]])
        yield _of("denied values", len(rows), total, f"deny a value, which does not count as naming it: {example}")
    value = None if labels is None else captions["image_id"].map(labels).to_numpy()
    yield from _revealing(tokens, attribute, value)
    if labels is None or attribute.unnamed_values:
        return
    sides = [("captions", captions, named)]
    if references is not None:
        human = Tokens.of(references["caption"]).naming(attribute.value_words).toarray() > 0
        sides.append(("human captions", references, human))
    for side, frame, names in sides:
        codes = pd.Index(attribute.values).get_indexer(frame["image_id"].map(labels))
        counts = (names.sum(axis=1) == 1) & (codes >= 0)
        images, y, guess = frame["image_id"][counts].nunique(), codes[counts], names[counts].argmax(axis=1)
        if images < FEWEST_IMAGES:
            continue
        agree, size = float((y == guess).mean()), len(attribute.values)
        chance = float(np.bincount(y, minlength=size) @ np.bincount(guess, minlength=size)) / len(y) ** 2
        if chance < 0.95 and agree - chance < CLEARLY * np.sqrt(chance * (1 - chance) / images):
            text = (
                f"The {side} name the labelled value of {attribute.name} no more often than chance: {agree:.0%} of "
                f"{len(y):,} that name one value, chance {chance:.0%}. Check that both are of the same images."
            )
            effect = REFUSE if side != "captions" and _derivable(attribute) else WARN
            yield Finding(f"{side} and labels", len(y), text, effect)


def _is_shipped(attribute: Attribute) -> bool:
    return any(file.attribute and file.attribute.words == attribute.words for file in shipped_files())


def _derivable(attribute: Attribute) -> bool:
    """Whether the words are those of a shipped attribute whose labels follow from human captions."""
    shipped = (file.attribute for file in shipped_files() if file.attribute)
    return any(other.derived and other.words == attribute.words for other in shipped)


@cache
def revealing_words(name: str) -> dict[str, str]:
    """Word -> the value that it reveals ('' for none), of words that the papers' lists of an attribute lack."""
    table = tomllib.loads(REVEALING_FILE.read_text(encoding="utf-8")).get(name, {})
    return {word: value for value, words in table.items() for word in words.split()}


def _revealing(tokens: Tokens, attribute: Attribute, value: np.ndarray | None) -> Iterator[Finding]:
    words = [word for word in revealing_words(attribute.name) if word in tokens.vocabulary]
    words = [word for word in words if word not in attribute.masked_words]
    if not words:
        return
    matrix = tokens.with_any([[word] for word in words]).tocsc()
    counts = np.asarray(matrix.sum(axis=0)).ravel()
    rows = np.unique(matrix.indices)
    if len(rows) < max(1, 0.02 * len(tokens)):
        return
    listed = ", ".join(f"“{words[column]}” {counts[column]:,}" for column in np.argsort(-counts, kind="stable")[:6])
    sentence = f"hold words on people that are neither masked nor counted for {attribute.name}: {listed}"
    if value is not None:
        groups = ", ".join(f"{group} {(value[rows] == group).sum():,}" for group in attribute.values)
        sentence += f". By label: {groups}"
    yield _of("revealing words", len(rows), len(tokens), sentence)


_LITTLE = frozenset(
    re.findall(r"\w+", "a an the of in on at to with and or is are it its his her by for from up that this as there")
)


def _of_references(captions: pd.DataFrame, references: pd.DataFrame) -> Iterator[Finding]:
    """Whether captions are of the images of the human captions, and whether they are human captions."""
    shared = captions[captions["image_id"].isin(references["image_id"])]
    if shared["image_id"].nunique() < FEWEST_IMAGES or shared["caption"].nunique() < 10:
        return
    total = len(shared)
    plain, model = (frame["caption"].str.lower().str.strip(" .\n") for frame in (references, shared))
    human = pd.MultiIndex.from_arrays([references["image_id"], plain])
    copied = int(pd.MultiIndex.from_arrays([shared["image_id"], model]).isin(human).sum())
    others = int(model.isin(set(plain)).sum())
    if copied >= 0.25 * total:
        yield _of("human captions", copied, total, "are word for word a human caption of their image")
    elif others >= 0.6 * total:
        yield _of("human captions", others, total, "are word for word a human caption of some image")
    sample = shared.drop_duplicates("image_id").sample(frac=1, random_state=0)[:SAMPLE]
    by_image = references[references["image_id"].isin(sample["image_id"])].groupby("image_id")["caption"].agg(" ".join)
    texts = sample["caption"], by_image[sample["image_id"]]
    written, human_words = ([set(tokenize(text)) - _LITTLE for text in side] for side in texts)
    overlap = [
        np.array([len(a & b) / max(len(a), 1) for a, b in zip(written, side, strict=True)])
        for side in (human_words, human_words[1:] + human_words[:1])
    ]
    more = overlap[0] - overlap[1]
    if more.mean() < CLEARLY * more.std() / np.sqrt(len(more)):
        text = (
            f"The captions share no more words with human captions of their image ({overlap[0].mean():.0%}) than with "
            f"those of another image ({overlap[1].mean():.0%}; {len(more):,} images). Are both of the same images?"
        )
        yield Finding("captions and human captions", len(more), text, REFUSE)
