"""Values and objects in plain texts, without images or a workspace (Sabir and Padró, 2023, "Gender Bias in Twitter").

Objects are what a text names: COCO's categories, and the words that were given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from capbias_core.attributes import get_attribute, word_forms
from capbias_core.attributes.labels import suggest_mapping
from capbias_core.data import Captions, Data
from capbias_core.errors import CapbiasError
from capbias_core.load.texts import read_texts
from capbias_core.load.vectors import read_vectors
from capbias_core.measures.base import BY_OBJECT
from capbias_core.measures.gender_score import METRIC as GENDER_SCORE
from capbias_core.measures.gender_score import GenderScoreOptions, cosines_of
from capbias_core.measures.gender_score_common import CAPTION, Gendered, ObjectChoices, gendered, text_model
from capbias_core.measures.options import Option
from capbias_core.measures.registry import MEASURES, METRICS, expand_metrics, measure_of
from capbias_core.prepare.tasks import content_words
from capbias_core.prepare.text import WORD
from capbias_core.prepare.tokens import Tokens
from capbias_core.runs.plan import Lack, lacking_model, left_out
from capbias_core.types import RESULT_COLUMNS, Attribute, Progress, Vectors, silent
from capbias_core.views.objects import share_intervals, shares_by_object
from capbias_core.views.rows import dots_chart, shown_rows
from capbias_core.views.tables import ordered
from capbias_core.views.view import Shown
from capbias_core.whole_files import typed_path
from capbias_core.workspace.store import bytes_frame

LEAST_CLOZE = 1e-12  # a keyword of probability 0 is one of the text's all the same


OF_TEXTS = tuple(measure for measure in MEASURES.values() if measure.of_texts)
DEFAULT_METRICS = ("cooccurrence",)


def text(
    input: Annotated[str, Option("one text per line, or a table (CSV, Parquet..)", metavar="FILE")],
    attribute: Annotated[str, Option("a known attribute, or a TOML file", metavar="NAME")],
    column: Annotated[str, Option("the column of texts (default: detected)", metavar="COLUMN")] = "",
    label_column: Annotated[
        str, Option("a column of labels, used instead of the value named in a text", metavar="COLUMN")
    ] = "",
    metrics: Annotated[
        Sequence[str],
        Option(
            f"one or more of: {', '.join(group.name for measure in OF_TEXTS for group in measure.groups)}",
            "--metric",
            metavar="NAME",
        ),
    ] = DEFAULT_METRICS,
    per_object: Annotated[bool, Option("also a row for each object")] = False,
    lead: Annotated[
        str,
        Option(
            "prefix of a text that names no value, such as 'a {word} says:' (default: skip the text)", metavar="TEXT"
        ),
    ] = "",
    keywords: Annotated[
        int, Option("also use the N nouns, verbs, adjectives and adverbs in most texts as objects", metavar="N")
    ] = 0,
    keywords_per_text: Annotated[
        int,
        Option(
            "take as objects of each text its N words nearest to it by --sentence-encoder; with --masked-model P(c) is "
            "their cloze probability",
            metavar="N",
        ),
    ] = 0,
    keyword_table: Annotated[
        bool, Option("instead of metrics, the keywords of each text, with similarity and cloze probability")
    ] = False,
    nearest: Annotated[
        int, Option("instead of metrics, the N objects nearest to each value's word by --word-vectors", metavar="N")
    ] = 0,
    word_vectors: Annotated[str, Option("word vectors for --nearest", metavar="FILE")] = "",
    options: Mapping[str, Any] | None = None,
) -> Shown:
    """Metrics of plain texts, their keywords, or the objects nearest to the words for values.

    options: choices of OF_TEXTS by field. Raises CapbiasError if the texts give none of the metrics.
    """
    wanted, of, name = expand_metrics(metrics), get_attribute(attribute), Path(input).stem
    options = dict(options or {})
    if bool(nearest) != bool(word_vectors):
        raise CapbiasError("--nearest needs --word-vectors, and they need --nearest.", "Give both, or neither.")
    if keyword_table and not keywords_per_text:
        raise CapbiasError("--keyword-table needs --keywords-per-text.", "Say how many keywords a text has.")
    texts, values = read_texts(typed_path(input), column or None, label_column or None)
    notes = []
    if keywords > 0:
        words = frequent_words(texts, of, keywords)
        notes.append(f"keywords: {', '.join(words) or 'none'}")
        options["object_words"] = [*options.get("object_words", ()), *words]
    if nearest:
        read = partial(read_vectors, Path(word_vectors))
        rows = nearest_objects(texts, of, nearest, read, options.get("object_words", ()))
        dots = rows.assign(panel=rows["word"], label=rows["object"], value=rows["cosine"])
        title = f"Objects nearest to words for {of.name}"
        return Shown(title, rows, "", tuple(notes), rows.round({"cosine": 3}), lambda: dots_chart(dots))
    of_texts = keywords_by_models(texts, of, keywords_per_text, options) if keywords_per_text > 0 else None
    if keyword_table and of_texts is not None:
        dots = of_texts.assign(panel="similarity", label=of_texts["keyword"], value=of_texts["similarity"])
        table = of_texts.round({"similarity": 3, "cloze": 3})
        return Shown("Keywords of each text", of_texts, "", tuple(notes), table, lambda: dots_chart(dots))
    results = text_results(texts, name, of, wanted, options, values, lead, keywords=of_texts)
    notes.append(results.note)
    missing: dict[Lack, list[str]] = {}
    for lacking in (name for name in wanted if name not in set(results.rows["metric"])):
        model = METRICS[lacking].needs.model
        reason = lacking_model(model) if model else Lack("no text gives it a value")
        missing.setdefault(reason, []).append(lacking)
    lines = left_out(missing)
    if results.rows.empty:
        raise CapbiasError(f"These texts give none of the metrics: {'; '.join(lines)}.", "Ask for another metric.")
    parts = [results.rows, results.by_object] if per_object else [results.rows]
    rows = pd.concat([ordered(part, [name], wanted) for part in parts])
    return shown_rows(f"{of.name} in the texts of {name}", rows, notes=[*notes, *lines])


@dataclass(frozen=True)
class TextRows:
    """Results of plain texts, in RESULT_COLUMNS."""

    rows: pd.DataFrame  # one per metric and value
    by_object: pd.DataFrame  # one per metric, value and object
    note: str  # how many texts count


def text_results(
    texts: Sequence[str],
    name: str,
    attribute: Attribute,
    metrics: Sequence[str],
    options: Mapping[str, Any],
    labels: Sequence[str] | None = None,
    lead: str = "",
    progress: Progress = silent,
    keywords: pd.DataFrame | None = None,
) -> TextRows:
    """The metrics of plain texts. Intervals are a bootstrap over texts.

    name: what the rows call the texts. options: choices of the measures by field; models as a user names them. labels:
    who wrote each text, or what it is about; they then count in place of the value that a text names. lead: such as
    `a {word} says:`, with which a text that names no value counts too. keywords: of `text_keywords`, the objects of
    each text in place of others; their cloze probability is P(c) where it is known. Raises CapbiasError if a metric
    needs images, or no text counts.
    """
    measures: dict[str, str] = {}
    for metric in metrics:
        measures.setdefault(measure_of(metric).name, metric)
    for measure, metric in measures.items():
        if not MEASURES[measure].of_texts:
            able = ", ".join(name for name in METRICS if measure_of(name).of_texts)
            raise CapbiasError(
                f"{metric} cannot be measured in plain texts: it needs images or human captions.",
                f"Use score, or one of: {able}.",
            )
    if lead and WORD not in lead:
        raise CapbiasError(f"The lead {lead!r} has no {WORD}.", f"Write for example 'a {WORD} says:'.")
    keep_all = labels is not None or bool(lead)  # also texts that name no value
    frame = _numbered(texts)
    choices = GenderScoreOptions.read({**options, "objects_from": CAPTION})
    named = gendered(frame, attribute, None, choices, keep_all=keep_all)
    if labels is not None:  # in place of the values that texts name
        code = {value: number for number, value in enumerate(attribute.values)}
        meant = suggest_mapping(attribute, set(labels))
        value = np.array([code.get(meant[label] or "", -1) for label in labels])
        if (value < 0).all():
            raise CapbiasError(
                f"No label is a value of {attribute.name}, such as {labels[0]!r}.",
                f"The values are {', '.join(attribute.values)}. Check the column of labels.",
            )
        named = replace(named, value=value)
    if keywords is not None:
        named = _with_keywords(named, keywords, choices.object_confidence)
    data = named.with_objects()
    note = (
        f"{len(data.row):,} of {len(texts):,} texts name one value and an object; {named.others:,} name no "
        "or several values (a lead lets them count), and the others no object (further words can count as objects)."
    )
    if keep_all:
        values = (data.value >= 0).sum()
        note = f"{len(data.row):,} of {len(texts):,} texts name an object; {values:,} have a value."
    of_texts = Data(attribute, captions={name: Captions(name, lambda: frame)})
    notes, tables = [note], []
    for measure in (MEASURES[measure] for measure in measures):
        counting = replace(measure, count=partial(measure.count, texts_of_set=data))
        outcome = counting.run(of_texts, measure.options.read({**options, "lead": lead}), progress)
        notes += (
            text.replace("caption", "text") for text in outcome.notes[1:]
        )  # the first is much like the note above
        tables += [pd.DataFrame([row.row() for row in outcome.results]), bytes_frame(outcome.arrays[BY_OBJECT])]
    results = pd.concat(tables, ignore_index=True)[list(RESULT_COLUMNS)]
    results = results[results["metric"].isin(metrics)]
    for image, text in (("caption", "text"), ("over images", "over texts"), ("image bootstrap", "text bootstrap")):
        results["method"] = results["method"].str.replace(image, text)
    whole = results["object"] == ""
    return TextRows(results[whole], results[~whole].reset_index(drop=True), " ".join(notes))


def _numbered(texts: Sequence[str]) -> pd.DataFrame:
    """Texts as captions of images that are called as their rows."""
    return pd.DataFrame({"image_id": [str(row) for row in range(len(texts))], "caption": list(texts)})


def _with_keywords(data: Gendered, keywords: pd.DataFrame, confidence: float) -> Gendered:
    """Texts with their keywords as objects. confidence: in keywords without a cloze probability."""
    row_of = {int(data.images[image]): row for row, image in enumerate(data.image)}
    known = keywords[keywords["text"].isin(row_of)]
    code, names = pd.factorize(known["keyword"])
    sure = known["cloze"].fillna(confidence).clip(lower=LEAST_CLOZE)
    cells = sure, (known["text"].map(row_of), code)
    cloze = "; P(c) is their cloze probability" if known["cloze"].notna().any() else ""
    matrix = csr_array(cells, shape=(len(data.row), len(names)))
    return replace(data, objects=tuple(names), confidence=matrix, source=f"the keywords of each text{cloze}")


def frequent_words(texts: Sequence[str], attribute: Attribute, most: int) -> list[str]:
    """The nouns, verbs, adjectives and adverbs that most texts have, commonest first, at most so many.

    Words for a value and for nobody's (`person`) are left out.
    """
    return content_words(Tokens.of(texts), _words_of_people(attribute))[:most]


def _words_of_people(attribute: Attribute) -> frozenset[str]:
    neutral = set() if attribute.unnamed_values else {row[-1] for row in word_forms(attribute)}
    return frozenset(attribute.masked_words | neutral)


def text_keywords(
    texts: Sequence[str],
    attribute: Attribute,
    most: int,
    encode: Callable[[Sequence[str]], np.ndarray],
    word_probability: Callable[[Sequence[tuple[str, str, str]]], np.ndarray] | None = None,
) -> pd.DataFrame:
    """The keywords of each text as KeyBERT finds them: at most so many of its nouns, verbs, adjectives and adverbs,
    those whose vectors are nearest to the text's. Words for a value and for nobody's are left out.

    Columns: text (place in texts), keyword, similarity (cosine in [-1, 1]), and cloze: the probability in [0, 1] that a
    masked language model gives the keyword where it first stands, nan without one. encode: texts to (n, d) vectors of
    length 1. word_probability: (before, word, after) to probabilities. Sabir and Padró (2023), section "Gender Bias in
    Twitter", do not say which models give keywords and cloze probabilities.
    """
    tokens = Tokens.of(texts)
    column = {word: code for code, word in enumerate(tokens.words)}
    words = content_words(tokens, _words_of_people(attribute), among=None)
    occurrences = csr_array(tokens.matrix())[:, [column[word] for word in words]].tocoo()
    vectors = encode([*texts, *words])
    of_texts, of_words = vectors[: len(texts)], vectors[len(texts) :]
    cosine = (of_texts[occurrences.row] * of_words[occurrences.col]).sum(axis=1)
    table = pd.DataFrame(
        {"text": occurrences.row, "keyword": [words[code] for code in occurrences.col], "similarity": cosine}
    )
    table = table.sort_values(["text", "similarity", "keyword"], ascending=[True, False, True])
    table = table.groupby("text").head(most).reset_index(drop=True)
    if word_probability is None or table.empty:
        return table.assign(cloze=np.nan)
    contexts = [_context(texts[int(index)], word) for index, word in zip(table["text"], table["keyword"], strict=True)]
    return table.assign(cloze=word_probability(contexts))


def keywords_by_models(
    texts: Sequence[str], attribute: Attribute, most: int, options: Mapping[str, Any]
) -> pd.DataFrame:
    """`text_keywords` by the sentence encoder of the options (default: the paper's) and, if they name one, a masked
    language model."""
    from capbias_core.language.models import MaskedModel, SentenceEncoder

    encoder = SentenceEncoder(text_model("sentence_encoder", options.get("sentence_encoder")).path)
    masked = options.get("masked_model")
    cloze = MaskedModel(text_model("masked_model", masked).path) if masked else None
    return text_keywords(texts, attribute, most, encoder.encode, cloze.word_probability if cloze else None)


def _context(text: str, word: str) -> tuple[str, str, str]:
    """The text before a word, the word as written and the text after, where it first stands."""
    match = re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE)
    start, end = match.span() if match else (len(text), len(text))
    return text[:start], text[start:end] or word, text[end:]


def nearest_objects(
    texts: Sequence[str],
    attribute: Attribute,
    most: int,
    vectors: Callable[[set[str]], Vectors],
    object_words: Sequence[str] = (),
) -> pd.DataFrame:
    """The objects nearest to each value's word and to the neutral one, as in Table 1 of Sabir and Padró (2023).

    Columns: word, rank from 1, object, cosine, and texts: how many name it. Of objects that texts name (COCO's
    categories, and object_words), at most so many for each word, nearest first; equal ones by the number of texts. The
    paper does not say how its table joins counts and cosines. vectors: words to their vectors.
    """
    choices = ObjectChoices(objects_from=CAPTION, object_words=tuple(object_words))
    data = gendered(_numbered(texts), attribute, None, choices, keep_all=True).with_objects()
    counts = np.bincount(data.pairs[1], minlength=len(data.objects))
    words = word_forms(attribute)[0]
    names = [name for name, count in zip(data.objects, counts, strict=True) if count]
    cosines = cosines_of(words, names, vectors({*words, *(part for name in names for part in name.split())}))
    parts = [
        pd.DataFrame({"word": word, "object": names, "cosine": cosines[:, column], "texts": counts[counts > 0]})
        .dropna(subset="cosine")
        .sort_values(["cosine", "texts"], ascending=False, kind="stable")
        .head(most)
        .assign(rank=lambda part: range(1, len(part) + 1))
        for column, word in enumerate(words)
    ]
    return pd.concat(parts, ignore_index=True)[["word", "rank", "object", "cosine", "texts"]]


def text_table(by_object: pd.DataFrame, attribute: Attribute) -> pd.DataFrame:
    """One row per word of plain texts, most texts first: texts with it, how many go with each value, the share of the
    last value (of each, for more than two) in percent with its interval, and the Gender Score if it was measured.

    by_object: TextRows.by_object of co-occurrence, and of the Gender Score.
    """
    table = shares_by_object(by_object, attribute.values)
    shown = {"word": table["object"], "texts": table["captions"]}
    shown |= {f"texts {value}": table[f"count{index}"] for index, value in enumerate(attribute.values)}
    places = range(len(attribute.values))
    reported = places[-1:] if len(places) == 2 else places
    for index in reported:
        value = attribute.values[index]
        shown[f"share {value}"] = 100 * table[f"share{index}"]
        shown[f"95% of share {value}"] = share_intervals(table[f"low{index}"], table[f"high{index}"], "texts")
    named = {(GENDER_SCORE, value): f"Gender Score {value}" for value in attribute.values}
    ratios = [attribute.values[index] for index in reported]
    named |= {(f"{GENDER_SCORE}_ratio", value): f"Gender Score ratio {value}" for value in ratios}
    for (metric, value), name in named.items():
        rows = by_object[(by_object["metric"] == metric) & (by_object["direction"] == value)]
        if len(rows):
            shown[name] = rows.set_index("object")["value"].reindex(table["object"]).to_numpy()
    return pd.DataFrame(shown)
