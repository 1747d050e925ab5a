"""Words: what each adds to the guess, beside human captions, with intervals; or what changed between two captioners.

A word is named in a sentence only if the interval of its difference from human captions excludes 0
(measures/word_comparison.py).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field as Described
from scipy.sparse import csr_array
from scipy.special import ndtr

from capbias_core.aggregate.estimate import interval_side
from capbias_core.aggregate.ranking import ALPHA, holm
from capbias_core.aggregate.resampling import NORMAL
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.kinds import CAPTIONS
from capbias_core.measures.word_comparison import ENDS
from capbias_core.prepare import tasks
from capbias_core.prepare.tokens import Tokens
from capbias_core.runs.plan import WORDS_COMPARED
from capbias_core.types import Attribute, counted
from capbias_core.views.choose import Choice
from capbias_core.views.results import current_runs
from capbias_core.views.scored import ALIKE, runs_to_score, scored
from capbias_core.views.sentence import listed, say
from capbias_core.views.view import Field, Forest, View, ViewOptions
from capbias_core.workspace.labels import labels_of
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import RunRow, Workspace, bytes_frame

YES, NO, UNTESTED = "yes", "no", "not tested"
MORE, LESS, CHANGED = "more", "less", "changed"
PEOPLE = "people"
NAMED = 4  # words of a sentence
# What is negated where a word pushes the other way: a lower end becomes an upper one.
NEGATED = {side: side for side in ENDS}
NEGATED |= {low: high for low, high in ENDS.values()} | {high: low for low, high in ENDS.values()}
FEWEST = 20  # captions with a word, mean of two captioners, for its change to be tested
ENDS_OF_DIFFERENCE = ("difference_low", "difference_high")
COLUMNS = ("line", "word", "toward", "captioner", "metric", "encoder", "value", "low", "high", "n", "tested")
COLUMNS += ("difference", *ENDS_OF_DIFFERENCE, "p", "verdict", "letters", "setting", "setting_name", "other")


class WordsOptions(ViewOptions):
    top: int = Described(default=12, ge=1, description="words, equally many toward each value")
    least: int = Described(default=10, ge=1, description="minimum captions with a word, of the captioner or of people")
    before: str = Described(
        default="", description="another captioner: words whose use changed from it to the one read"
    )


USUAL = WordsOptions()


def word_rows(choice: Choice, options: WordsOptions = USUAL) -> pd.DataFrame:
    """A row for each word and side (the captioner, people), in the order of what words add.

    value: what the word adds to the logit where it occurs; of two values of an attribute negative toward the first and
    positive toward the second, of more toward `toward`. n: captions with the word. difference: the captioner's minus
    people's. verdict: whether it reveals more or less than in human captions, if significantly. tested: whether
    intervals are there. line: the word, with its value if there are more than two.
    """
    if options.before:
        return change_rows(choice, options)
    sets = scored(choice)
    if choice.captioner not in sets.runs:
        return pd.DataFrame(columns=list(COLUMNS))
    run = sets.runs[choice.captioner]
    compared = comparison_of(choice.workspace, choice.collection, run, choice.run().spec.references)
    table = words_of_set(run, compared)
    functional = tasks.function_words(table.loc[_captions_with(table) >= options.least, "word"])
    rows = rows_of_words(table, choice.defined, choice.captioner, options, functional)
    rows = rows.assign(encoder=sets.attacker, setting_name=sets.attacker, other=sets.other)
    rows.attrs["notes"] = compared.notes if compared else []
    return rows.assign(setting="" if sets.other else choice.setting)


def rows_of_words(
    table: pd.DataFrame, attribute: Attribute, name: str, options: WordsOptions, functional: Collection[str]
) -> pd.DataFrame:
    """The rows of `word_rows`. table: of `word_table`, of the captioner `name`."""
    tested = _tested(table, functional)
    shown, number = table[~table["word"].isin(functional)], math.ceil(options.top / len(attribute.values))
    top = top_words(shown, options.least, number)
    two, rows = len(attribute.values) == 2, []
    sides = {name: ("captioner", "count_compared")}
    sides |= {PEOPLE if name != PEOPLE else f"{PEOPLE} (human)": ("human", "human_count")}
    for word in top.to_dict("records"):
        sign = -1 if two and word["toward"] == 0 else 1
        value = attribute.values[word["toward"]]
        shared = {"line": word["word"] if two else f"{word['word']} ({value})", "word": word["word"], "toward": value}
        if not tested:
            rows.append(shared | {"captioner": name, "value": sign * word["mean"], "n": word["count"]})
            continue
        for who, (side, count) in sides.items():
            number = _signed(sign, word, side, ("value", "low", "high"))
            rows.append(shared | number | {"captioner": who, "n": word[count]})
        of_captioner = rows[-2]
        of_captioner |= _signed(sign, word, "difference", ("difference", *ENDS_OF_DIFFERENCE))
        of_captioner["tested"] = word["significant"] != UNTESTED
        if word["significant"] == YES:
            of_captioner["verdict"] = MORE if abs(word["captioner"]) > abs(word["human"]) else LESS
    frame = _sorted(pd.DataFrame(rows, columns=list(COLUMNS)).assign(metric="word"), name)
    frame.attrs = {"title": say("words.axis"), "ends": attribute.values if two else (), "tested": tested}
    return frame


def _signed(sign: int, word: Mapping[str, Any], side: str, names: Sequence[str]) -> dict[str, float]:
    """A number of ENDS with its ends, which trade places if the sign is turned."""
    ends = [sign * word[end] for end in ENDS[side][::sign]]
    return dict(zip(names, (sign * word[side], *ends), strict=True))


def _sorted(rows: pd.DataFrame, captioner: str) -> pd.DataFrame:
    """Lines by the value of the captioner, with texts where nothing is."""
    values = rows[rows["captioner"] == captioner].set_index("line")["value"].astype(float)
    rows = rows.sort_values("line", key=lambda lines: lines.map(values), kind="stable", ignore_index=True)
    numbers = ["value", "low", "high", "difference", *ENDS_OF_DIFFERENCE, "p", "n"]
    return rows.fillna(dict.fromkeys(("verdict", "letters", "other"), "")).astype(dict.fromkeys(numbers, float))


def _tested(table: pd.DataFrame, last: Collection[str]) -> dict[str, Any]:
    """Of the words that were tested: how many, and those that reveal more and less, the strongest first. last: words
    that stand behind the others."""
    if "significant" not in table:
        return {}
    differ = table[table["significant"] == YES].sort_values("strength", ascending=False)
    more = abs(differ["captioner"]) > abs(differ["human"])
    ways = {MORE: differ["word"][more], LESS: differ["word"][~more]}
    tested = int((table["significant"] != UNTESTED).sum())
    return {"words": tested} | {way: sorted(words, key=lambda word: word in last) for way, words in ways.items()}


# words of the measures `caption_scores` and `word_comparison`


def comparison_of(workspace: Workspace, collection: str, run: RunRow, references: str = "") -> RunRow | None:
    """The newest finished run that compared the words of a run of `caption_scores` with those of human captions.
    references: the content hash of these, '' for any."""
    alike = (*ALIKE, "model", "captions", "attacker")
    for other in current_runs(workspace, collection, WORDS_COMPARED):
        same = all(getattr(other.spec, key) == getattr(run.spec, key) for key in alike)
        if same and references in ("", other.spec.references):
            return other
    return None


def words_of_set(run: RunRow, compared: RunRow | None = None) -> pd.DataFrame:
    """The `word_table` of a finished run of the measure `caption_scores`, and of one that compared it, if any."""
    words = compared.read("words", bytes_frame) if compared else None
    return run.read("corpus", lambda data: word_table(bytes_frame(data), words))


def word_table(corpus: pd.DataFrame, compared: pd.DataFrame | None = None) -> pd.DataFrame:
    """Words of a set, a row per word and value (of two values only the one that the word pushes toward).

    corpus: the table of measures/caption_scores.py. compared: that of measures/word_comparison.py, if the set was
    compared with human captions. Special tokens are left out. Columns: word; toward (index of the value); mean (what
    the word adds toward it in the set); count; share0.. ; and, of words compared, captioner, human, difference, the
    ends of ENDS, count_compared, human_count; certain (YES, NO, UNTESTED: whether the captioner's interval excludes 0);
    significant (the same of the difference); strength, by which words are chosen: the mean of both sides, or mean
    without a comparison.
    """
    corpus = corpus[~corpus["word"].str.startswith("<")]
    means = corpus.filter(regex=r"^mean\d+$").to_numpy()
    of_word = corpus.drop(columns=corpus.filter(regex=r"^mean\d+$"))
    if means.shape[1] == 1:
        table = of_word.assign(toward=(means[:, 0] > 0).astype(int), mean=abs(means[:, 0]))
    else:
        parts = [of_word.assign(toward=value, mean=column) for value, column in enumerate(means.T)]
        table = pd.concat(parts, ignore_index=True)
    if compared is None:
        return table.assign(strength=table["mean"])
    compared = compared.rename(columns={"count": "count_compared"})
    if means.shape[1] > 1:
        table = table.merge(compared, on=["word", "toward"], how="outer")
    else:  # toward the value that the word pushes toward in the set, if the set has it
        table = table.merge(compared, on="word", how="outer", suffixes=("", "_both"))
        turned = table["toward"].notna() & table["toward_both"].notna() & (table["toward"] != table["toward_both"])
        table = table.assign(**{name: table[name].where(~turned, -table[other]) for name, other in NEGATED.items()})
        table["toward"] = table["toward"].fillna(table["toward_both"]).astype(int)
    table["count"] = table["count"].fillna(0).astype(int)
    strength = (table["captioner"] + table["human"]) / 2
    strength = strength if means.shape[1] > 1 else abs(strength)
    tested = table.pop("tested").eq(True)
    for name, side in (("certain", "captioner"), ("significant", "difference")):
        low, high = (table[end] for end in ENDS[side])
        table[name] = np.where(~tested, UNTESTED, np.where(interval_side(low, high) != 0, YES, NO))
    return table.assign(strength=strength)


def top_words(table: pd.DataFrame, smallest_count: int, number: int) -> pd.DataFrame:
    """The rows of `word_table` that push most toward each value, `number` each, strongest first; of words compared with
    human captions those that differ significantly come first, and words not compared are left out."""
    table = table[(table["strength"] > 0) & (_captions_with(table) >= smallest_count)]
    differs = table["significant"] == YES if "significant" in table else np.zeros(len(table), dtype=bool)
    table = table.assign(differs=differs).sort_values(["toward", "differs", "strength"], ascending=[True, False, False])
    return table.groupby("toward").head(number).drop(columns="differs").reset_index(drop=True)


def _captions_with(table: pd.DataFrame) -> pd.Series:
    """How many captions of the captioner, or of people, have each word."""
    return table.filter(["count", "human_count"]).max(axis=1)


# words whose use changed


def change_rows(choice: Choice, options: WordsOptions) -> pd.DataFrame:
    """Words whose use changed most between the labelled values, from the captioner `before` to the one that is read.

    value: the lean of a word, % of the captions of images with the label `toward` that have it minus % of those of the
    other images; of two values toward the second. difference: its change, with its 95% interval paired over images. p:
    Holm over the tested words. n: captions that have it, mean of both captioners. Words for the attribute are masked.
    """
    first, second, attribute = options.before, choice.captioner, choice.defined
    items = {item.name: item.hash for item in choice.workspace.items(CAPTIONS, choice.collection)}
    if first not in items:
        raise unknown_name("captioner", first, items)
    if first == second:
        raise CapbiasError(f"{first} is compared with itself.", "Name another captioner.")
    if options.least != USUAL.least:
        raise CapbiasError(f"Words that changed are in at least {FEWEST} captions.", "Leave out --least.", "least")
    labels = labels_of(choice.workspace, attribute, choice.run().spec.labels)
    hashes = [items[first], items[second]]
    frames = [choice.workspace.frame(digest)["image_id"] for digest in hashes]
    images = pd.Index(sorted({*frames[0]} & {*frames[1]} & {*labels.index}))
    tokens = Tokens.join([choice.workspace.tokens(digest) for digest in hashes]).masked(attribute)
    matrix, size = tokens.matrix(), len(frames[0])
    before, after = (
        _by_image(rows, images.get_indexer(ids), len(images))
        for rows, ids in zip((matrix[:size], matrix[size:]), frames, strict=True)
    )
    code = pd.Index(attribute.values).get_indexer(labels.loc[images])
    captions = np.asarray((before + after).sum(axis=0)).ravel() / 2
    words = np.array(list(tokens.words), dtype=object)
    tested = np.flatnonzero(captions >= FEWEST)
    tested = tested[~np.isin(words[tested], list(tasks.function_words(words[tested])))]
    changes = lean_changes(before[:, tested], after[:, tested], code, attribute)
    at = tested[changes["word"]]
    changes = changes.assign(word=words[at], n=captions[at], size=changes["change"].abs(), differs=changes["p"] < ALPHA)
    changes = changes.sort_values(["differs", "size", "word"], ascending=[False, False, True], ignore_index=True)
    two, top = len(attribute.values) == 2, changes.head(options.top)
    common = {"metric": "lean", "setting": choice.setting, "setting_name": choice.setting_name}
    common["line"] = top["word"] if two else top["word"] + " (" + top["toward"] + ")"
    common |= {"toward": ""} if two else {}
    renamed = dict(zip(("change", "low", "high"), ("difference", *ENDS_OF_DIFFERENCE), strict=True))
    own = top.rename(columns=renamed).assign(**common, captioner=second, value=top["after"], tested=True)
    own["verdict"] = np.where(top["differs"], CHANGED, "")
    shared = top[["word", "toward", "n"]].assign(**common, captioner=first, value=top["before"])
    rows = _sorted(pd.concat([own, shared]).reindex(columns=list(COLUMNS)), second)
    ends = {"first": attribute.values[0], "second": attribute.values[-1]}
    how = say("words.lean_between" if two else "words.lean", images=len(images), attribute=attribute.name, **ends)
    changed = changes.loc[changes["differs"], "word"].drop_duplicates().tolist()
    rows.attrs = {"title": say("words.lean_axis"), "ends": attribute.values if two else (), "before": first}
    rows.attrs |= {"tested": {"words": len(tested), CHANGED: changed}, "notes": [how]}
    return rows


def lean_changes(before: csr_array, after: csr_array, code: np.ndarray, attribute: Attribute) -> pd.DataFrame:
    """The lean of each word before and after, and its change with a 95% normal interval paired over images.

    before, after: (n_images, V), the share of the image's captions with the word. code: (n_images,) labels. Of two
    values toward the second alone.
    """
    rows, difference = [], csr_array(after - before)
    for value in range(len(attribute.values)) if len(attribute.values) > 2 else (1,):
        inside = code == value
        leans = [_mean(side[inside]) - _mean(side[~inside]) for side in (before, after)]
        error = np.sqrt(sum(_variance(difference[part]) for part in (inside, ~inside)))
        change = leans[1] - leans[0]
        differing = np.diff(csr_array(difference != 0).tocsc().indptr)  # images
        with np.errstate(invalid="ignore", divide="ignore"):  # without any spread p is the sign test's
            p = np.where(error > 0, 2 * ndtr(-np.abs(change) / error), np.minimum(1.0, 2 * 0.5**differing))
        columns = {"before": leans[0], "after": leans[1], "change": change}
        columns |= {"low": change - NORMAL * error, "high": change + NORMAL * error}
        scaled = pd.DataFrame({name: 100 * column for name, column in columns.items()})
        rows.append(scaled.assign(word=np.arange(len(change)), toward=attribute.values[value], p=p))
    table = pd.concat(rows, ignore_index=True)
    return table.assign(p=holm(table["p"].to_numpy(dtype=float)))


def _mean(rows: csr_array) -> np.ndarray:
    return np.asarray(rows.sum(axis=0)).ravel() / max(1, rows.shape[0])


def _variance(rows: csr_array) -> np.ndarray:
    """Of the mean of each column."""
    n = max(2, rows.shape[0])
    return np.maximum(0, np.asarray(rows.multiply(rows).sum(axis=0)).ravel() / n - _mean(rows) ** 2) / (n - 1)


def _by_image(matrix: csr_array, image: np.ndarray, images: int) -> csr_array:
    """(images, V) the share of an image's captions with each word. image: of each row of the matrix, -1 for none."""
    rows, of_image = np.flatnonzero(image >= 0), image[image >= 0]
    sums = csr_array(tasks.rows_by_image(of_image, images) @ matrix[rows], dtype=float)
    sums.data /= np.repeat(np.bincount(of_image, minlength=images), np.diff(sums.indptr))
    return sums


# the view


def sentence_of(rows: pd.DataFrame, captioner: str, attribute: str) -> str:
    """Which words differ significantly; without a comparison those that weigh most."""
    if rows.empty:
        return say("words.nothing", captioner=captioner)
    tested: dict[str, Any] = rows.attrs["tested"]
    about = {"captioner": captioner, "attribute": attribute}
    if not tested:
        weights = rows.assign(size=rows["value"].abs()).sort_values("size", ascending=False)
        sides = sorted((str(value), list(part["word"])) for value, part in weights.groupby("toward", sort=False))
        named = "; ".join(say("words.toward", value=value, named=_named(words)) for value, words in sides)
        return say("words.alone", named=named, **about)
    if CHANGED in tested:
        about |= {"before": rows.attrs["before"], "words": counted(tested["words"], "word")}
        words = tested[CHANGED]
        return say("words.changed" if words else "words.unchanged", count=len(words), named=_named(words), **about)
    about["words"] = tested["words"]
    parts: list[str] = []
    for way in (way for way in (MORE, LESS) if tested[way]):
        template = f"words.{'and_' if parts else ''}{way}"
        parts.append(say(template, count=len(tested[way]), named=_named(tested[way]), **about))
    return say("words.compared", parts="; ".join(parts), **about) if parts else say("words.none", **about)


def _named(words: Sequence[str]) -> str:
    return listed(words) if len(words) <= NAMED else say("words.such_as", named=listed(words[:NAMED]))


def word_notes(choice: Choice, rows: pd.DataFrame) -> Sequence[str]:
    if rows.empty:
        return ()
    if "before" in rows.attrs:
        return (*rows.attrs["notes"], say("words.lean_tested", alpha=ALPHA, fewest=FEWEST), choice.defined.note)
    lines = [say("words.meaning"), say("words.intervals") if rows.attrs["tested"] else say("words.one_training")]
    lines += rows.attrs["notes"]
    if other := rows["other"].iloc[0]:
        lines.append(say("captions.other", other=other, setting=choice.setting_name))
    return [*lines, choice.defined.note]


def runs_for_words(choice: Choice, options: WordsOptions = USUAL) -> list[RunSpec]:
    """What the attacker of the setting still has to read; what changed needs no attacker."""
    return [] if options.before else runs_to_score(choice, [choice.captioner], compared=True)


WORDS = View(
    name="words",
    question="Which words reveal it?",
    rows=word_rows,
    columns=(
        Field("line", label="word"),
        Field("toward"),
        Field("value", low="low", high="high", across=True, signed=True),
        Field("difference", digits=2, low=ENDS_OF_DIFFERENCE[0], high=ENDS_OF_DIFFERENCE[1], signed=True),
        Field("verdict", label="significantly", help="more or less than in human captions, or changed"),
        Field("n", label="captions", digits=0, help="captions with the word"),
    ),
    sentence=lambda choice, rows: sentence_of(rows, choice.captioner, choice.attribute),
    by="line",
    across="captioner",
    chart=Forest(series="captioner", diverging=True),
    options=WordsOptions,
    notes=word_notes,
    needs=runs_for_words,
    example="""\
  capbias view words --collection coco --captioner oscar
  capbias view words --collection coco --captioner oscar --before sat \\
    --output words.csv""",
)
