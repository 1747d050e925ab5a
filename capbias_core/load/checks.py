"""What captions say of themselves, of their labels and of the human captions: checks, alike for every format.

`CHECKS` is the table of what single captions may hold; `findings` adds what only captions together, labels and human
captions show. Thresholds lie above the largest share in 18 sets of real captions (docs/files.md).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
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
SAMPLE = 2_000  # images that stand for all
CLEARLY = 3.0  # standard errors above chance
LEAST_ABOVE = 0.3  # of the agreement above chance that is possible; captions of other images surely have less
STRETCH = 50  # captions that are compared with their labels, or images with their human captions, at a time
DROP = 0.2  # by which a shifted stretch fits its images less often than the others
WARN, REFUSE = "warn", "refuse"
# Findings that a baseline of shuffled captions or labels is meant to show.
OF_OTHER_IMAGES = ("captions and labels", "captions and human captions", "human captions and labels", "shifted rows")


class Check(NamedTuple):
    """What a caption may hold."""

    name: str
    pattern: str  # in RE2's syntax; matches all such captions
    also: Callable[[str], object] | None  # whether a caption that matches is meant
    warn: float  # the share of captions from which there is a warning
    refuse: float  # the share of captions from which they are not scored
    sentence: str  # follows `3 of 20 captions`

    def find(self, texts: list[str]) -> np.ndarray:
        """(n,) booleans: which captions hold it."""
        hits = matches(texts, self.pattern)
        if self.also:
            hits[hits] = [bool(self.also(texts[index])) for index in np.flatnonzero(hits)]
        return hits


def matches(texts: Sequence[str | None], pattern: str) -> np.ndarray:
    """(n,) booleans: which texts match a pattern in RE2's syntax."""
    try:
        array = pa.array(texts, type=pa.large_string())
    except UnicodeEncodeError:  # half a surrogate pair, which only Python keeps
        array = pa.array([text and text.encode(errors="replace").decode() + "\ufffd" for text in texts])
    return pc.match_substring_regex(array, pattern).fill_null(False).to_numpy(zero_copy_only=False)


def fields_of(text: str) -> list[str]:
    """The names of the fields of a caption that is JSON, or the texts of a list; none if it is a plain text."""
    value = literal(re.sub(r"^```\w*\s*|\s*```$", "", text.strip()), SHORT)
    return list(map(str, value)) if isinstance(value, dict | list) else []


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
    Check("unmarked thoughts", _THOUGHTS, None, 0.001, 2, "seem to hold unmarked reasoning, which stays"),
    Check("JSON", r"^\s*(?:```\w*\s*)?[\[{]", fields_of, 0.001, 0.5,
          "are JSON with several fields or texts. Name the field, or keep one text each"),
    Check("several captions", _SEVERAL, None, 0.05, 0.5, "hold several captions or answers in one. Keep one per row"),
    Check("brackets", _BRACKETS, lambda text: text[0] not in "[{`", 0.01, 2,
          "hold brackets, tags or coordinates, which stay"),
    Check("other languages", rf"[^\x00-\x7f]|(?i:{_FOREIGN.pattern})", _in_other_language, 0.001, 0.5,
          "are not in English; only words of the attribute's list are masked and counted"),
    Check("emoji", "[👦-👩👨👴-👵👱👸🤴🧑-🧓🧔]", None, 0.001, 2, "hold emoji of people, which count as no words"),
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
                hint += " Or say that captions are meant to be of other images, or to say nothing of the label."
                asked = ("shuffled",)
            raise CapbiasError(f"{title}: {each.text}", hint, *asked)


def text_findings(texts: list[str], times: np.ndarray) -> list[Finding]:
    """What captions hold, from the captions alone. texts: different ones. times: how often each occurs."""
    total, results = int(times.sum()), []
    for check in CHECKS if texts else ():
        hit = check.find(texts)
        if number := int(times[hit].sum()):
            share = number / total
            effect = REFUSE if share >= check.refuse and number >= FEWEST else WARN if share >= check.warn else ""
            example = quoted(texts[int(hit.argmax())])
            results.append(_of(check.name, number, total, f"{check.sentence}: {example}", effect))
    most = int(times.max()) if texts else 0
    if len(texts) == 1 < total or most >= max(FEWEST, 0.05 * total):  # the most frequent of real captioners has 1 to 3%
        text = quoted(texts[int(times.argmax())])
        results.append(_of("identical", most, total, f"are the same: {text}. Check for failed generations"))
    return results


def _of(name: str, number: int, total: int, sentence: str, effect: str = WARN) -> Finding:
    return Finding(name, number, f"{number:,} of {total:,} captions {sentence}.", effect)


def other_languages(texts: list[str]) -> np.ndarray:
    """(n,) booleans: which captions are not in English."""
    return next(check for check in CHECKS if check.name == "other languages").find(texts)


# with labels and human captions


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
    captions = captions.astype(object).reset_index(drop=True)  # in objects pandas finds texts much quicker
    if labels is not None:
        captions = captions[captions["image_id"].isin(labels.index)]
    results = [each for each in _refused(captions) if each.name != "several captions"]
    if not (attribute.words and _is_shipped(attribute)):  # own words may be of another language
        results = [each for each in results if each.name != "other languages"]
    human = None
    if references is not None:
        human = pd.DataFrame(references, dtype=object)
        results += _of_references(captions, human)
        images = human["image_id"].drop_duplicates()
        images = images[images.isin(captions["image_id"])].sample(frac=1, random_state=0)[:SAMPLE]
        human = human[human["image_id"].isin(images)]
        results += [replace(each, text=f"Human captions: {each.text}") for each in _refused(human)]
    if attribute.names_values and not captions.empty:
        results += _of_words(captions, attribute, labels)
        if labels is not None and not attribute.unnamed_values:
            results += _of_labels(captions, attribute, labels, human)
    return results


def _refused(captions: pd.DataFrame) -> list[Finding]:
    counts = captions["caption"].value_counts(sort=False)
    return [each for each in text_findings(list(counts.index), counts.to_numpy()) if each.effect == REFUSE]


def _of_words(captions: pd.DataFrame, attribute: Attribute, labels: pd.Series | None) -> Iterator[Finding]:
    """Whether captions name values, deny them, and hold words that are not masked."""
    tokens, total = Tokens.of(captions["caption"]), len(captions)
    named = tokens.naming(attribute.value_words).toarray() > 0
    one = named.sum(axis=1) == 1
    if one.mean() < 0.2:
        shares = ", ".join(f"{value} {n:,}" for value, n in zip(attribute.values, named[one].sum(axis=0), strict=True))
        yield _of("value named", int(one.sum()), total, f"name exactly one value of {attribute.name} ({shares})")
    rows = np.unique(tokens.caption[np.flatnonzero(tokens.denied(attribute.masked_words))])
    if len(rows) >= max(1, 0.001 * total):
        example = quoted(captions["caption"].iloc[rows[0]])
        yield _of("denied values", len(rows), total, f"deny a value, which does not count as naming it: {example}")
    words = [word for word in revealing_words(attribute.name) if word in tokens.vocabulary]
    words = [word for word in words if word not in attribute.masked_words]
    matrix = tokens.with_any([[word] for word in words]).tocsc()
    counts, rows = np.asarray(matrix.sum(axis=0)).ravel(), np.unique(matrix.indices)
    if len(rows) >= max(1, 0.02 * total):
        shown = ", ".join(f"“{words[column]}” {counts[column]:,}" for column in np.argsort(-counts, kind="stable")[:6])
        sentence = f"hold words on people that are neither masked nor counted for {attribute.name}: {shown}"
        if labels is not None:
            value = captions["image_id"].map(labels).to_numpy()[rows]
            sentence += f". By label: {', '.join(f'{group} {(value == group).sum():,}' for group in attribute.values)}"
        yield _of("revealing words", len(rows), total, sentence)


@cache
def revealing_words(name: str) -> dict[str, str]:
    """Word -> the value that it reveals ('' for none), of words that the papers' lists of an attribute lack."""
    table = tomllib.loads(REVEALING_FILE.read_text(encoding="utf-8")).get(name, {})
    return {word: value for value, words in table.items() for word in words.split()}


def _is_shipped(attribute: Attribute, derived: bool = False) -> bool:
    """Whether the words are those of a shipped attribute. derived: of one whose labels follow from human captions."""
    shipped = [file.attribute for file in shipped_files() if file.attribute]
    return any(each.words == attribute.words and (each.derived or not derived) for each in shipped)


def _said(captions: pd.DataFrame, attribute: Attribute, labels: pd.Series) -> pd.DataFrame:
    """Of the captions that name one value and have a label: image_id, named and label as places of values."""
    named = Tokens.of(captions["caption"]).naming(attribute.value_words).toarray() > 0
    label = pd.Index(attribute.values).get_indexer(captions["image_id"].map(labels))
    said = pd.DataFrame({"image_id": captions["image_id"], "named": named.argmax(axis=1), "label": label})
    return said[(named.sum(axis=1) == 1) & (label >= 0)]


def agreement(captions: pd.DataFrame, attribute: Attribute, labels: pd.Series) -> pd.Series:
    """Whether each caption that names one value names that of its label, in the order of rows."""
    said = _said(captions, attribute, labels)
    return said["named"] == said["label"]


def _of_labels(
    captions: pd.DataFrame, attribute: Attribute, labels: pd.Series, human: pd.DataFrame | None
) -> Iterator[Finding]:
    """Whether captions, and human captions, name the labels of their images: all no more often than chance, or a
    stretch of rows less often than others."""
    said = _said(captions, attribute, labels)
    own = _at_chance("captions", said, attribute)
    people = _at_chance("human captions", _said(human, attribute, labels), attribute) if human is not None else None
    if people:
        yield replace(people, effect=REFUSE if _is_shipped(attribute, derived=True) else WARN)
    if own:
        # People's words that fit the labels show that the captioner is weak, not that images are confused.
        fit = human is not None and not people and human["image_id"].nunique() >= FEWEST_IMAGES
        yield replace(own, effect=WARN) if fit else own
    yield from _shifted(said["named"] == said["label"], 0.7, 0.75, "name the labelled value")


def _at_chance(side: str, said: pd.DataFrame, attribute: Attribute) -> Finding | None:
    """A finding if captions name the label of their image no more often than chance; they are refused unless they may
    be those of a weak captioner. said: of `_said`."""
    size, images, number = len(attribute.values), said["image_id"].nunique(), len(said)
    if images < FEWEST_IMAGES:
        return None
    named, label = (np.bincount(said[each], minlength=size) / number for each in ("named", "label"))
    agree, chance = float((said["named"] == said["label"]).mean()), float(named @ label)
    # Of labels that are dealt anew (Fleiss, Cohen and Everitt 1969); 0 for captions that name one value alone.
    error = np.sqrt(max(0.0, chance + chance**2 - named * label @ (named + label)) / images)
    above, most = agree - chance, float(np.minimum(named, label).sum()) - chance
    if above >= CLEARLY * error - 1e-9:
        return None
    text = (
        f"The {side} name the labelled value of {attribute.name} no more often than chance: {agree:.0%} of {number:,} "
        f"that name one value, chance {chance:.0%}. Check that both are of the same images, and what the labels mean."
    )
    weak = above + 2 * error >= LEAST_ABOVE * most
    return Finding(f"{side} and labels", number, text, WARN if weak else REFUSE)


def _shifted(fits: pd.Series, low: float, high: float, what: str) -> Iterator[Finding]:
    """A finding if captions fit their images in one stretch of rows less often than in the others. fits: row -> whether
    its caption does."""
    stretches = [fits.iloc[at : at + STRETCH] for at in range(0, len(fits) - STRETCH // 2, STRETCH)]
    shares = np.array([stretch.mean() for stretch in stretches])
    runs = [list(run) for below, run in groupby(range(len(shares)), lambda place: shares[place] < low) if below]
    longest = max(runs, key=len, default=[])
    # A shift lasts: single stretches of a captioner that is often wrong are as low by chance.
    if len(longest) < max(2, len(shares) // 10) or len(longest) == len(shares):
        return
    inside, outside = shares[longest].mean(), np.delete(shares, longest).mean()
    if outside > high and outside - inside > DROP:
        row = stretches[longest[0]].index[0] + 1
        text = (
            f"From about row {row:,} on captions {what} in {inside:.0%}, elsewhere in {outside:.0%}. Did captions and "
            "images shift against each other?"
        )
        yield Finding("shifted rows", len(longest) * STRETCH, text, REFUSE)


_LITTLE = frozenset(
    re.findall(r"\w+", "a an the of in on at to with and or is are it its his her by for from up that this as there")
)


def _words(text: str) -> set[str]:
    return set(tokenize(text)) - _LITTLE


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
    written, read = map(_words, sample["caption"]), [_words(text) for text in by_image[sample["image_id"]]]
    shares = [
        (len(words & own) / max(len(words), 1), len(words & other) / max(len(words), 1))
        for words, own, other in zip(written, read, read[1:] + read[:1], strict=True)
    ]
    overlap = pd.DataFrame(shares, index=sample.index, columns=["own", "other"])
    more = overlap["own"] - overlap["other"]
    if more.mean() < CLEARLY * more.std() / np.sqrt(len(more)):
        text = (
            f"The captions share no more words with human captions of their image ({overlap['own'].mean():.0%}) than "
            f"with those of another image ({overlap['other'].mean():.0%}; {len(more):,} images). Are both of the same "
            "images?"
        )
        yield Finding("captions and human captions", len(more), text, REFUSE)
    fits = (overlap["own"] > 0.25).sort_index()
    yield from _shifted(fits, 0.4, 0.6, "share words with the human captions")
