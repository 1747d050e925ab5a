"""Words compared: what each adds in a captioner's captions and in human captions of the same images.

Both sides are alike: the same balanced images, and attackers trained on equally many captions. Each seed draws half of
the images; an attacker of each side trains on them and explains its captions of the other half.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from capbias_core.aggregate.ranking import holm
from capbias_core.aggregate.resampling import refit_interval, refit_p
from capbias_core.attackers import attacker_entry
from capbias_core.errors import NotMeasurable
from capbias_core.measures.base import Job, Measure, Needs, Outcome
from capbias_core.measures.options import Attacked
from capbias_core.measures.training import AttackerTrainer, CaptionList, Case, attacker_of
from capbias_core.prepare.split import FIT, balanced_split, child_seed
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import counted
from capbias_core.workspace.store import frame_bytes, images_in

# With as many test as training images the corrected resampled variance is that of a jackknife which leaves half out: it
# holds for what an attacker learned, not only for how well it guesses.
HALF = 0.5
TESTED = 40  # words, equally many toward each value
LEAST = 10  # captions with a compared word, the mean of both sides


def count(job: Job) -> Outcome:
    """A table of words, as `compare_words` makes it."""
    human, attribute = job.references(), job.attribute
    images = tuple(sorted(images_in(job.frame) & images_in(human)))
    y, k, seeds = job.codes(images), len(attribute.values), range(attacker_entry(job.options.attacker).seeds)
    try:
        splits = [balanced_split(y, k, seed, HALF, images) for seed in seeds]
    except NotMeasurable as error:  # the captioner's own words can be shown all the same
        return Outcome(notes=[f"Words are not compared with human captions: {error.message}"])
    sides = [
        complete_lists(job.frame, job.masked(job.tokens(job.frame)), images),
        complete_lists(human, job.masked(job.reference_tokens(human)), images),
    ]
    lists = [captions for side in sides for captions in side]
    tokens = Tokens.join([captions.masked for captions in lists])
    trainer = AttackerTrainer(attacker_of(job), k, y, images, job.progress, len(lists) * len(seeds))
    trainer.note_unread("captions", lists)
    corpus, texts, found = trainer.attacker.corpus(tokens), tokens.matrix(), 0
    added, having, total = [], [], []
    for side in sides:
        first = found * len(images)
        cases = [
            Case(captions, split, child_seed(split.seed, FIT, index), first + index * len(images))
            for index, captions in enumerate(side)
            for split in splits
        ]
        sums = np.zeros((len(seeds), len(tokens.words), 1 if k == 2 else k))  # (S, V, C)
        captions_with = np.zeros(sums.shape[:2])
        for case, fitted in zip(cases, trainer.fit(corpus, cases, "attackers on equally many captions"), strict=True):
            rows = case.rows(case.split.test)
            words = np.concatenate(fitted.contributions(corpus, rows).words)
            read = tokens.rows(rows)
            code = np.array([tokens.vocabulary[word] for word in read.words])[read.codes]
            for column, values in enumerate(words.T):
                sums[case.split.seed, :, column] += np.bincount(code, values, len(tokens.words))
            captions_with[case.split.seed] += texts[rows].sum(axis=0)
        added.append(sums)
        having.append(captions_with)
        total.append(texts[first : first + len(side) * len(images)].sum(axis=0) / len(side))
        found += len(side)
    words = compare_words(tokens.words, added, having, total, len(splits[0].test) / len(splits[0].train))
    tested = int(words["tested"].sum())
    notes = [
        f"Words compared: {len(images):,} images with human captions; {len(seeds)} seeds, each with attackers trained "
        f"on {counted(len(splits[0].train), 'caption')} per side that explain {len(splits[0].test):,} others; "
        f"{counted(tested, 'word')} tested."
    ]
    return Outcome(notes=[*notes, *trainer.notes], arrays={"words": frame_bytes(words)})


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
    (means over captions with the word, toward that value; 0 where no caption has it); difference, low, high (95%, with
    refits); p (Holm over the tested words; missing for others); tested; count, human_count (captions with the word; of
    several captions per image the mean). Special tokens, and words in fewer than LEAST captions, are left out.

    Tested are the words with the largest sum of both sides: under no difference it says nothing of the difference.
    """
    kept = np.flatnonzero(
        [not word.startswith("<") and size >= LEAST for word, size in zip(words, np.mean(total, axis=0), strict=True)]
    )
    captioner, human = (
        np.divide(sums[:, kept], size[:, kept, None], where=size[:, kept, None] > 0, out=np.zeros_like(sums[:, kept]))
        for sums, size in zip(added, having, strict=True)
    )  # (S, W, C)
    rows = []
    for place, word in enumerate(kept):
        for column in range(captioner.shape[2]):
            ours, theirs = captioner[:, place, column], human[:, place, column]
            toward = column
            if captioner.shape[2] == 1:
                toward = int(ours.mean() + theirs.mean() > 0)
                ours, theirs = ((2 * toward - 1) * values for values in (ours, theirs))
            difference = ours - theirs
            low, high = refit_interval(difference, test_over_train)
            rows.append(
                {
                    "word": words[word],
                    "toward": toward,
                    "captioner": float(ours.mean()),
                    "human": float(theirs.mean()),
                    "difference": float(difference.mean()),
                    "low": low,
                    "high": high,
                    "p": refit_p(difference, test_over_train),
                    "count": float(total[0][word]),
                    "human_count": float(total[1][word]),
                }
            )
    names = ("word", "toward", "captioner", "human", "difference", "low", "high", "p", "count", "human_count")
    table = pd.DataFrame(rows, columns=list(names)).astype({"low": float, "high": float, "p": float})
    strength = table["captioner"] + table["human"]
    each = TESTED // max(2, captioner.shape[2])
    tested = [
        strength[(table["toward"] == value) & (strength > 0)].nlargest(each).index for value in set(table["toward"])
    ]
    table["tested"] = table.index.isin(np.concatenate([*tested, np.zeros(0)]))
    table["p"] = table["p"].where(table["tested"])
    table.loc[table["tested"], "p"] = holm(table.loc[table["tested"], "p"].to_numpy())
    return table


MEASURE = Measure(
    name="word_comparison",
    title="words compared with human captions",
    place=92,
    options=Attacked,
    needs=Needs(references="required"),
    explains=True,
    count=count,
)
