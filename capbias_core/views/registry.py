"""The table of views. A new view is a row here, and a function to `Shown`; page, command and every format follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from capbias_core.measures.base import Measure
from capbias_core.views.alignment import align
from capbias_core.views.change import change, change_words
from capbias_core.views.conditions import conditions
from capbias_core.views.consistency import agreement_shown, anonymous_bench
from capbias_core.views.directions import both_directions
from capbias_core.views.encoders import encoders
from capbias_core.views.groups import leakage_by_group
from capbias_core.views.known_answer import known_answer
from capbias_core.views.leaderboard import leaderboard
from capbias_core.views.lengths import lengths
from capbias_core.views.published import published
from capbias_core.views.side_by_side import side_by_side
from capbias_core.views.slices import slices
from capbias_core.views.texts import OF_TEXTS, text
from capbias_core.views.view import Shown
from capbias_core.views.word_comparison import words

# What a view reads: the runs of one comparison; the best comparison of each attribute of a collection; a pair of
# captioners; a workspace, in which its choices name what; files alone, which its choices name.
RUNS = ("collection", "attribute", "captioners", "attacker", "seeds", "references")
COLLECTION = ("collection",)
PAIR, WORKSPACE, FILES = "pair", "workspace", "files"


@dataclass(frozen=True)
class View:
    """A question, and the function that answers it.

    The function's parameters that are annotated with an Option are the view's choices, and flags of its command. It
    also gets a `run`, a `progress` and `options`, if it has such a parameter: what computes missing runs, what is told
    the share that is done, and choices of `measures`.
    """

    question: str
    answer: Callable[..., Shown]
    reads: tuple[str, ...] | str = RUNS  # choices of `scope`, which makes the first argument; or PAIR, WORKSPACE, FILES
    measures: tuple[Measure, ...] = ()
    example: str = ""  # command lines, and how to read the columns

    @property
    def scoped(self) -> tuple[str, ...]:
        """The choices of `scope` that the view has, () if it reads no Scope."""
        return self.reads if isinstance(self.reads, tuple) else ()


# name, as the command `view` has it -> the view
VIEWS = {
    "leaderboard": View(
        "Which captioners amplify, for which attributes?",
        leaderboard,
        COLLECTION,
        example="""\
  capbias view leaderboard --collection coco
  capbias view leaderboard --collection coco --sort words --output l.tex

Each attribute by the comparison that answers best. Captioners that were measured with other settings or on different
images are marked and not ranked.""",
    ),
    "by-value": View(
        "Leakage by group: do captions of one group leak more than those of another?",
        leakage_by_group,
        example="""\
  capbias score --collection coco --attribute gender --metric lic
  capbias view by-value --collection coco --attribute gender""",
    ),
    "slices": View(
        "Where does it amplify? LIC, error and refusals in slices of images, beside the other images",
        slices,
        example="""\
  capbias view slices --collection coco
  capbias view slices --collection coco --objects dog skateboard \\
    --words "kitchen|cooking" --column skin
  capbias view slices --collection coco --search "cell phone"

Without a choice: the ten objects that most images have, else the ten content words of most human captions.""",
    ),
    "change": View(
        "Before and after: did bias fall from one captioner to another, and what did it cost?",
        change,
        PAIR,
        example="""\
  capbias view change nic nic_debiased --collection coco --attribute gender
  capbias view change nic nic_debiased --collection coco --fail-if worse \\
    --metric LIC error
  capbias view change old.json new.json labels.csv refs.json \\
    --attribute gender --fail-if worse

Before and after are the first and the second captioner; runs with other settings are never compared. --fail-if worse
ends with 1 if a metric of --metric is significantly worse (default: LIC; LIC_M without human captions), with 2 if that
cannot be decided, such as a metric that was not measured, else with 0. Significant: p below 0.05, corrected by Holm
over the metrics of --metric.""",
    ),
    "change-words": View("Which words changed most in the value that they go with?", change_words, PAIR),
    "side-by-side": View(
        "On which images do 2 to 6 captioners differ, and in which words?",
        side_by_side,
        example="""\
  capbias view side-by-side --collection coco --captioner sat oscar --top 20

One row per image and captioner, of the images on which they disagree most. disagreement: largest minus smallest
probability of the labelled value over the captioners; guess, bias_score: the attacker's guess for the caption and its
probability; only_here: words that no other caption of the image has.""",
    ),
    "words": View(
        "What does each word add, how surely, and more than in human captions?",
        words,
        example="""\
  capbias view words --collection coco --captioner sat --output words.csv

One row per captioner and word: what it adds to the logit (value, ci_low, ci_high), the same in human captions of the
same images (human), and the difference. Intervals are over seeds and images, and hold for all tested words together in
95% of cases (Bonferroni); a word without one was not tested. n: images whose caption has the word.""",
    ),
    "conditions": View(
        "Effect of masking: what does each condition of the photographs do to a captioner's metrics?",
        conditions,
        WORKSPACE,
        example="""\
  capbias import sat_masked_person.json --captioner sat --condition person
  capbias view conditions --collection "my captions" --captioner sat \\
    --attribute gender race

One row per metric and condition. masked: what was masked; model: the set of captions. to_original: the value minus
that on the original photographs, paired over the images in both sets; original_there: the original value on those
images; to_neutral: the value minus the metric's neutral point (chance, for LIC_M). Differences have 95% intervals
(_low, _high). dba gives DBA_G, which is BA→ from T to A. Missing results are measured first.""",
    ),
    "lengths": View(
        "Control for caption length: what is left if captions are cut after more and more words?",
        lengths,
        WORKSPACE,
        example="""\
  capbias view lengths --collection coco --captioner llava_long vinvl \\
    --attribute gender --output lengths.csv

One row per metric and cut: of (the captioner), cut, words (average caption length), then the columns of `score`.
Captions shorter than a cut stay whole. The human captions are not cut.""",
    ),
    "directions": View(
        "Do captions over-reveal the value, the objects, or both?",
        both_directions,
        WORKSPACE,
        example="""\
  capbias score --collection coco --attribute gender --metric dbac dba
  capbias view directions --collection coco --attribute gender

One row per captioner with both directions measured: A->T from the value to the task words, T->A back, each with its
95% interval (_low, _high) and n. Of several settings those of most captioners are shown.""",
    ),
    "encoders": View(
        "Does the verdict hold for every encoder?",
        encoders,
        WORKSPACE,
        example="""\
  capbias score --collection coco --attribute gender --metric lic \\
    --attacker ngram lstm
  capbias view encoders --collection coco --attribute gender --output e.svg
  capbias view encoders --printed dbac_gender --metric DBAC

Rows: the scores of each captioner and encoder, then their variation and agreement, as of `view consistency`.""",
    ),
    "consistency": View(
        "Does the choice of encoder change the result? Agreement between encoders, for each metric of a table",
        agreement_shown,
        FILES,
        example="""\
  capbias view consistency --output published.csv
  capbias view consistency --results scores.csv --human people.csv

One row per number, in the columns of `score`. The column metric is one of:

  cv                    sample standard deviation / |mean| of a captioner's values across encoders
  conflict_score        % of captioners that one of two encoders puts above 0 and the other does not
  clear_conflict_score  % of captioners whose intervals by two encoders lie on different sides of 0
  ranking_consistency   Pearson between two encoders over captioners
  human_alignment       Pearson with the human score over captioners
  mask_correlation      of metrics that see the photographs: Pearson over captioners between two ways of masking them
  mask_difference       of one captioner: the second way of masking minus the first

The column condition names the metric, such as LIC, and after a semicolon its condition; encoder names the encoders;
n counts encoders (cv) or captioners; method names the method, or after `blank:` why there is no value. Human scores
are the rows human_guess of the table, or a CSV. Names match regardless of case and punctuation.""",
    ),
    "published": View(
        "What do papers print, where do they contradict themselves, and what was measured here?",
        published,
        WORKSPACE,
        example="""\
  capbias view published --paper dbac --table 10
  capbias view published --collection coco --output published.csv

One row per printed value and measured value of the same thing. note: what in the paper contradicts the printed value.
holds: whether the measured 95% interval contains it, or why that is not decided.""",
    ),
    "anonymous-bench": View(
        "Do captions name a value though the image shows no identifiable person (AnonymousBench)?",
        anonymous_bench,
        WORKSPACE,
        example="""\
  capbias view anonymous-bench --captions nic.json sat.json fc.json \\
    --attribute gender --output proxy.csv
  capbias view anonymous-bench --captions nic.json sat.json fc.json \\
    --attribute gender --results scores.csv --human people.csv

The photographs do not show the value; the captions need no labels. human_guess_proxy is the share of captions that
name a value: a proxy for whether people can guess it, not their answers. proxy_alignment (--results) is the Pearson of
each metric with the proxy over captioners; human_alignment (--human) is that with people's scores, also of the proxy.
""",
    ),
    "known-answer": View(
        "Which metrics see a bias in the language alone, in caption sets with a known answer?",
        known_answer,
        FILES,
        example="""\
  capbias view known-answer --output known.csv

Four sets, the DBAC paper's C1 to C4 made 100 times as large. Women, men and objects are balanced and independent; only
the verbs differ, so that the best possible accuracy is 60, 70, 80 and 90%. One row per set and metric: Q (accuracy of
the attacker ngram), LIC (x100), BA (b) and DPA (accuracy). The column method gives the expected value.""",
    ),
    "align": View(
        "What does vocabulary alignment do to human captions, at each delta?",
        align,
        FILES,
        example="""\
  capbias view align --captions sat.json --references captions.json \\
    --vectors glove.6B.300d.txt --attribute gender --delta 0 0.5 1

One row per delta, all x100, with 95% intervals over images (_low, _high): contextual, the share of unknown words (by
count) that became their nearest word and not <unk>; unknown, the share of all words that became <unk>; METEOR between
human captions before and after, and under constant alignment (_constant). --attribute masks its words first, as for an
attacker; --labels keeps labelled images only. For a collection use: capbias score --metric alignment.""",
    ),
    "text": View(
        "Which values and objects go together in plain texts, without images?",
        text,
        FILES,
        OF_TEXTS,
        example="""\
  capbias view text --input lines.txt --attribute gender --per-object
  capbias view text --input profiles.csv --column description \\
    --attribute gender --lead "a {word} says:" --object-words family coffee \\
    --metric gs --language-model gpt2 --sentence-encoder minilm

One text per line, or a column of a table. Objects are those named in a text. Intervals are over texts.""",
    ),
}
