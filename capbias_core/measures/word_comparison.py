"""Words compared: what each adds in a captioner's captions and in human captions of the same images.

Both sides are alike: the same balanced images, and attackers trained on equally many captions. Each seed draws half of
the images; an attacker of each side trains on them and explains its captions of the other half.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from capbias_core.aggregate import Needs
from capbias_core.aggregate.resampling import ROUNDING, refit_interval
from capbias_core.attackers import attacker_entry
from capbias_core.data import Data, images_in
from capbias_core.errors import NotMeasurable
from capbias_core.measures.base import Measure, Outcome
from capbias_core.measures.options import Attacked
from capbias_core.measures.training import AttackerTrainer, CaptionList, Case, attacker_of
from capbias_core.prepare.split import FIT, balanced_split, child_seed
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import Progress, Split, counted
from capbias_core.workspace.store import frame_bytes

# With as many test as training images the corrected resampled variance is that of a jackknife which leaves half out: it
# holds for what an attacker learned, not only for how well it guesses, and for a side alone too (docs/statistics.md).
HALF = 0.5
TESTED = 40  # words, equally many toward each value
LEAST = 10  # captions with a compared word, the mean of both sides
# What has an interval: a word's contribution on each side, and their difference.
ENDS = {
    "captioner": ("captioner_low", "captioner_high"),
    "human": ("human_low", "human_high"),
    "difference": ("low", "high"),
}


def count(data: Data, options: Any, progress: Progress) -> Outcome:
    """A table of words, as `compare_words` makes it; none if the images are too few to train on half of them."""
    human, attribute = data.human, data.attribute
    images = tuple(sorted(images_in(data.frame) & images_in(human)))
    y, k, seeds = data.codes(images), len(attribute.values), range(attacker_entry(options.attacker).seeds)
    try:
        splits = [balanced_split(y, k, seed, HALF, images) for seed in seeds]
    except NotMeasurable as error:  # the captioner's own words can be shown all the same
        return Outcome(notes=[f"Words are not compared with human captions: {error.message}"])
    sides = [
        complete_lists(data.frame, data.masked(data.tokens(data.frame), options.merge_masks), images),
        complete_lists(human, data.masked(data.tokens(human), options.merge_masks), images),
    ]
    trainer = AttackerTrainer(attacker_of(data, options), k, y, images, progress, len(seeds) * sum(map(len, sides)))
    trainer.note_unread("captions", [captions for side in sides for captions in side])
    words = explain_sides(trainer, sides, splits)
    train, test = len(splits[0].train), len(splits[0].test)
    note = (
        f"Words are compared on {len(images):,} images with human captions. On each side, an attacker of each of "
        f"{len(seeds)} seeds trains on {train:,} captions and explains {test:,} others. "
        f"{counted(int(words['tested'].sum()), 'word')} tested."
    )
    return Outcome(notes=[note, *trainer.notes], arrays={"words": frame_bytes(words)})


def explain_sides(
    trainer: AttackerTrainer, sides: Sequence[Sequence[CaptionList]], splits: Sequence[Split]
) -> pd.DataFrame:
    """The table of `compare_words`. sides: the captioner's lists and the human ones, of `complete_lists`; an attacker
    trains on each list and split. splits: of seeds 0, 1, ..."""
    tokens = Tokens.join([captions.masked for side in sides for captions in side])
    corpus, has_word, start = trainer.attacker.corpus(tokens), tokens.matrix(), 0
    added, having, total = [], [], []
    for side in sides:
        cases = []
        for index, captions in enumerate(side):
            begin = start + index * len(captions.masked)
            cases += [Case(captions, split, child_seed(split.seed, FIT, index), begin, index) for split in splits]
        columns = 1 if trainer.k == 2 else trainer.k
        sums = np.zeros((len(splits), len(tokens.words), columns))  # (S, V, C)
        captions_with = np.zeros(sums.shape[:2])
        for case, fitted in zip(cases, trainer.fit(corpus, cases), strict=True):
            rows, seed = case.rows(case.split.test), case.split.seed
            explained = np.concatenate(fitted.contributions(corpus, rows).words)  # (T, C)
            read = tokens.rows(rows)
            code = np.array([tokens.vocabulary[word] for word in read.words])[read.codes]
            for column, values in enumerate(explained.T):
                sums[seed, :, column] += np.bincount(code, values, len(tokens.words))
            captions_with[seed] += has_word[rows].sum(axis=0)
        end = start + sum(len(captions.masked) for captions in side)
        added, having = [*added, sums], [*having, captions_with]
        total.append(has_word[start:end].sum(axis=0) / len(side))
        start = end
    return compare_words(tokens.words, added, having, total, len(splits[0].test) / len(splits[0].train))


def complete_lists(frame: pd.DataFrame, masked: Sequence[str], images: Sequence[str]) -> list[CaptionList]:
    """A set as lists that each have one caption of every image: as many lists as half of the images have captions. An
    image with fewer repeats its own. masked: (len(frame),) what an attacker reads."""
    image = pd.Index(images, dtype=object).get_indexer(frame["image_id"].to_numpy(dtype=object))
    order = np.lexsort((frame["caption_index"].to_numpy(), image))
    order = order[image[order] >= 0]
    size = np.bincount(image[order], minlength=len(images))
    first, tokens, kept_at = np.cumsum(size) - size, Tokens.read(masked), frame.index.to_numpy()
    parts = [order[first + number % size] for number in range(int(np.median(size)))]
    return [CaptionList(np.arange(len(images)), tokens.rows(part), kept_at[part]) for part in parts]


def compare_words(
    words: Sequence[str],
    added: Sequence[np.ndarray],
    having: Sequence[np.ndarray],
    total: Sequence[np.ndarray],
    test_over_train: float,
) -> pd.DataFrame:
    """A row per word and value: what it adds in the captioner's captions and in human ones, and the difference.

    Of each argument the captioner's part, then the human part. added: (S, V, C) sums over explained captions of what
    the words add to the logit. having: (S, V) how many of these captions have the word. total: (V,) of all captions.
    Columns: word; toward (index of the value; of two values that of the larger sum of both sides); captioner, human
    (means over captions with the word, toward that value; 0 where no caption has it); difference; tested; the ends of
    ENDS (with refits, 95% for all tested words together by Bonferroni; missing for words that are not tested, and
    where all seeds agree); count, human_count (captions with the word; of several captions per image the mean). Special
    tokens, and words in fewer than LEAST captions, are left out.

    Tested are the words with the largest sum of both sides: under no difference it says nothing of the difference.
    """
    frequent = [not word.startswith("<") and n >= LEAST for word, n in zip(words, np.mean(total, axis=0), strict=True)]
    kept = np.flatnonzero(frequent)
    captioner, human = (
        np.divide(sums[:, kept], size[:, kept, None], where=size[:, kept, None] > 0, out=np.zeros_like(sums[:, kept]))
        for sums, size in zip(added, having, strict=True)
    )  # (S, W, C)
    captioner, human = (np.ascontiguousarray(np.moveaxis(side, 0, -1)) for side in (captioner, human))  # (W, C, S)
    columns, sign = captioner.shape[1], 1
    toward = np.tile(np.arange(columns), (len(kept), 1))
    if columns == 1:
        toward = (captioner.mean(axis=-1) + human.mean(axis=-1) > 0).astype(int)
        sign = 2 * toward[:, :, None] - 1
    of_seeds = {"captioner": sign * captioner, "human": sign * human, "difference": sign * captioner - sign * human}
    names = [words[code] for code in kept.tolist()]
    table = pd.DataFrame({"word": np.repeat(names, columns), "toward": toward.ravel()})
    for name, values in of_seeds.items():
        table[name] = values.mean(axis=-1).ravel()
    table["count"], table["human_count"] = (np.repeat(each[kept], columns) for each in total)
    strength = table["captioner"] + table["human"]
    ordered = table[strength > 0].assign(strength=strength).sort_values("strength", ascending=False)
    tested = ordered.groupby("toward").head(TESTED // max(2, columns)).index
    table["tested"] = table.index.isin(tested)
    for name, ends in ENDS.items():
        table[list(ends)] = np.nan
        for position, values in enumerate(of_seeds[name].reshape(len(table), captioner.shape[-1])):
            if table.at[position, "tested"] and abs(values).max() > ROUNDING:  # else the same but for rounding
                low_high = refit_interval(values, test_over_train, together=len(tested))
                table.loc[position, list(ends)] = low_high
    return table


MEASURE = Measure(
    name="word_comparison",
    title="words compared with human captions",
    position=92,
    options=Attacked,
    needs=Needs(references="required"),
    version=2,
    explains=True,
    balanced=True,
    count=count,
)
