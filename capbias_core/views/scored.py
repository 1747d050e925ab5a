"""Scored captions: the guess of an attacker for each caption, what each word adds to it, and the runs that say so."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from capbias_core.attackers import ATTACKERS, DEFAULT_ATTACKER, attacker_entry
from capbias_core.attackers.what_if import Rescored, StoredAttackers
from capbias_core.kinds import CAPTIONS, REFERENCES
from capbias_core.measures.base import from_npy
from capbias_core.measures.caption_scores import ENCODER_VIEW, attention_from
from capbias_core.prepare.text import tokenize
from capbias_core.question import Question
from capbias_core.runs.plan import PER_CAPTION, WORDS_COMPARED, plan
from capbias_core.types import Attention, Attribute
from capbias_core.views.choose import Choice
from capbias_core.views.results import attribute_of_run, current_runs
from capbias_core.workspace.models import encoder_option
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Item, RunRow, Workspace, bytes_frame

# What must be the same for two runs on a set to stand beside each other, but for the set.
ALIKE = ("labels", "attribute", "merge_masks")


@dataclass(frozen=True)
class CaptionScores:
    """The guess for each caption of a set, by an attacker that did not train on its image, and what each word adds."""

    run: RunRow
    attribute: Attribute
    # image_id, caption_index, kept_at (row of the caption in the stored set), fold, label (int), masked (str), tokens
    # (how many), logit0.., baseline0.., delta, p0.. (K probabilities), predicted (int) and confidence (its probability)
    table: pd.DataFrame
    words: np.ndarray  # (n, T_i, C) flattened
    offsets: np.ndarray  # (n + 1,) where each caption's words begin
    attention: Sequence[Attention] = ()  # of each caption, from an `encoder_view` by an attacker that has some

    def words_of(self, row: int) -> np.ndarray:
        """(T, C) contributions of the masked tokens of the caption at this row."""
        return self.words[self.offsets[row] : self.offsets[row + 1]]

    @property
    def shares(self) -> np.ndarray:
        """(n, K) what the attackers give each value."""
        return self.numbers("p")

    def numbers(self, part: str) -> np.ndarray:
        """The columns part0, part1, ... of the table."""
        names = (f"{part}{number}" for number in range(len(self.attribute.values)))
        return self.table[[name for name in names if name in self.table]].to_numpy(dtype=float)

    def read(self, row: int) -> Rescored:
        """The caption at this row as the attacker read it."""
        baseline, logit, shares = (self.numbers(part)[row] for part in ("baseline", "logit", "p"))
        return Rescored(self.table.at[row, "masked"].split(), self.words_of(row), baseline, logit, shares)

    def with_word(self, word: str) -> np.ndarray:
        """(n,) which captions have a whole word after masking, or several in a row."""
        masked = self.table["masked"]
        whole = np.array(masked.str.contains(word, regex=False), dtype=bool)  # few; these are looked at again
        whole[whole] = (" " + masked[whole] + " ").str.contains(f" {word} ", regex=False)
        return whole


def caption_scores(run: RunRow) -> CaptionScores:
    """What a finished run of the measure `caption_scores`, or of `encoder_view`, left."""
    attribute = attribute_of_run(run)

    def read(data: bytes) -> tuple[pd.DataFrame, np.ndarray]:
        table = bytes_frame(data)
        shares = table[[f"p{value}" for value in range(len(attribute.values))]].to_numpy()
        table["predicted"], table["confidence"] = shares.argmax(axis=1), shares.max(axis=1)
        return table, np.concatenate([[0], table["tokens"].cumsum().to_numpy()])

    (table, offsets), words = run.read("scores", read), run.read("words", from_npy)
    attends = run.spec.measure == ENCODER_VIEW.name and attacker_entry(run.spec.attacker).attends
    attention = run.read("attention", attention_from) if attends else ()
    return CaptionScores(run, attribute, table, words, offsets, attention)


def stored_attackers(run: RunRow, index: int = 0) -> StoredAttackers:
    """The linear attackers of a finished run of `caption_scores`, for rescoring a caption of this index."""
    return run.read(f"attackers{index}", StoredAttackers.from_bytes)


def written_captions(rows: pd.DataFrame, written: pd.DataFrame) -> pd.Series:
    """The captions of some rows of scores as written. rows: with kept_at. written: the set as stored."""
    return pd.Series(written["caption"].array.take(rows["kept_at"].to_numpy()), rows.index, name="caption")


# the sets of a choice


@dataclass(frozen=True)
class Scored:
    """The sets of captions that can be read, and those that one attacker scored.

    attacker: of the setting if it scored the captioner that is read, else another. other: that other one, else ''.
    sets: by name: the captioner that is read, human captions, the other captioners. runs: of scored sets by name.
    """

    attacker: str
    other: str
    sets: Mapping[str, Item]
    runs: Mapping[str, RunRow]
    human: str = ""  # the name of the human captions
    rescoring: RunRow | None = None  # scores of the captioner that is read by an attacker that scores edits at once


def scored(choice: Choice) -> Scored:
    """What is scored of the captioners of a choice and of the human captions of its setting."""
    spec = choice.run().spec
    items = {item.name: item for item in choice.workspace.items(CAPTIONS, choice.collection)}
    sets, human = {choice.captioner: items[choice.captioner]}, ""
    for item in choice.workspace.items(REFERENCES, choice.collection):
        if item.hash == spec.references:
            plain = "human" in item.name.lower() and item.name not in items
            human = item.name if plain else f"{item.name} (human)"
            sets[human] = item
    sets |= {name: items[name] for name in choice.captioners[1:]}
    runs: dict[str, dict[str, RunRow]] = {}  # attacker -> content hash of a set -> the newest run
    for run in current_runs(choice.workspace, choice.collection, PER_CAPTION):
        if all(getattr(run.spec, key) == getattr(spec, key) for key in ALIKE):
            runs.setdefault(run.spec.attacker, {}).setdefault(run.spec.captions, run)
    able = {name: of_sets for name, of_sets in runs.items() if sets[choice.captioner].hash in of_sets}
    attacker = spec.attacker if spec.attacker in able else max(able, key=lambda name: len(able[name]), default="")
    by_name = {name: runs[attacker][item.hash] for name, item in sets.items() if item.hash in runs.get(attacker, {})}
    rescoring = next(
        (of[sets[choice.captioner].hash] for name, of in able.items() if attacker_entry(name).rescores), None
    )
    other = attacker if spec.attacker not in ("", attacker) else ""
    return Scored(attacker, other, sets, by_name, human, rescoring)


def runs_to_score(choice: Choice, names: Collection[str], compared: bool = False) -> list[RunSpec]:
    """The runs in which the attacker of the setting (the usual one, of a setting without) scores these sets. compared:
    also those in which their words are compared with human captions. Raises CapbiasError if the attacker cannot be had.
    """
    setting, spec = choice.measured_with, choice.run().spec
    hashes = {item.hash for name, item in scored(choice).sets.items() if name in names}
    question = Question(
        *(choice.collection, tuple(choice.captioners), setting.labels, choice.attribute, (), setting.references),
        attacker=(setting.attacker or DEFAULT_ATTACKER,),
        options={"merge_masks": True} if spec.merge_masks else {},
        words=True,
    )
    wanted = (PER_CAPTION, WORDS_COMPARED) if compared else (PER_CAPTION,)
    return [run for run in plan(choice.workspace, question) if run.measure in wanted and run.captions in hashes]


# one caption


@dataclass(frozen=True)
class Line:
    """A caption to show, and how an attacker read it, if one did. row: in the table of scores, -1 for none."""

    name: str
    written: str
    attribute: Attribute | None = None
    read: Rescored | None = None
    row: int = -1

    @property
    def words(self) -> Sequence[str]:
        """The words as written, if they are as many as the attacker reads."""
        words = tokenize(self.written)
        return words if self.read is None or len(words) == len(self.read.tokens) else self.read.tokens

    @property
    def largest(self) -> float:
        """What the word adds that pushes most."""
        return float(abs(self.read.words).max(initial=0.0)) if self.read else 0.0


def lines_of(name: str, scores: CaptionScores | None, written: pd.DataFrame, image: str) -> list[Line]:
    """The captions of an image in a set, in their order. written: the set as stored."""
    frame = written if scores is None else scores.table
    rows = frame[frame["image_id"] == image].sort_values("caption_index", kind="stable")
    if scores is None:
        return [Line(name, text) for text in rows["caption"]]
    texts = written_captions(rows, written)
    return [Line(name, texts[row], scores.attribute, scores.read(row), row) for row in rows.index]


def toward(attribute: Attribute, words: np.ndarray, predicted: int) -> tuple[Attribute, np.ndarray]:
    """Signed contributions to colour: for two values as they are; for more, toward the predicted value or away.

    words: (T, C). Returns an attribute whose two values name the ends of the ramp, and (T,) values.
    """
    if len(attribute.values) == 2:
        return attribute, words[:, 0]
    name = attribute.values[predicted]
    return replace(attribute, values=(f"away from {name}", name)), words[:, predicted]


# how another encoder reads the captions of some images


def plan_encoder_view(
    workspace: Workspace, spec: RunSpec, attacker: str, images: Sequence[str], training: Mapping | None = None
) -> RunSpec:
    """The run in which an attacker reads the captions of some images. spec: a run of `caption_scores` on the same set.
    training: further options. Raises CapbiasError where the encoder cannot be had."""
    entry = attacker_entry(attacker)
    encoder = encoder_option(workspace, entry) if entry.model else None
    settings = {"attacker": entry.name, "images": sorted(set(images)), "merge_masks": spec.merge_masks}
    options = ENCODER_VIEW.options.read({**(training or {}), **settings, "encoder": encoder}).effective()
    version = ENCODER_VIEW.version_with(entry.name)
    return replace(spec, measure=ENCODER_VIEW.name, version=version, options=options.to_dict())


def encoder_views(workspace: Workspace, collection: str, spec: RunSpec, image: str) -> dict[str, RunRow]:
    """The newest finished view of an image by each attacker, those of the table in its order. spec: as above."""
    runs: dict[str, RunRow] = {}
    for run in current_runs(workspace, collection, ENCODER_VIEW.name):
        alike = all(getattr(run.spec, key) == getattr(spec, key) for key in (*ALIKE, "model", "captions"))
        if alike and image in run.spec.options["images"]:
            runs.setdefault(run.spec.attacker, run)
    known = [*ATTACKERS, *sorted(runs.keys() - ATTACKERS.keys())]
    return {name: runs[name] for name in known if name in runs}
