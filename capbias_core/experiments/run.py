"""`run_one`: the only place that joins the rooms. A frozen run and its inputs in, results and arrays out."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from capbias_core.aggregate import Estimate, difference, estimate
from capbias_core.attackers import attacker_entry, load_attacker
from capbias_core.attackers.base import probabilities
from capbias_core.errors import CapbiasError
from capbias_core.experiments.cooccurrence import cooccurrence_bytes, cooccurrence_estimates, evidence_of
from capbias_core.experiments.plan import TEST_SHARE, WITH_REFERENCES, RunSpec, attribute_from, labels_for
from capbias_core.experiments.store import Workspace, bytes_frame, frame_bytes
from capbias_core.explain.corpus import corpus_table
from capbias_core.metrics import METRICS, HeldOut, Naming
from capbias_core.prepare import (
    align_captions,
    balanced_folds,
    balanced_split,
    child_seed,
    masked_captions,
    tokenize,
    vocabulary,
)
from capbias_core.prepare.split import FIT, random_order
from capbias_core.types import Attribute, Result, Split

FEW_IMAGES = 2000

# (share done, text): reported often; raises Cancelled where the run must stop.
Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class Outcome:
    """What a run leaves: rows, named arrays (Parquet or npz bytes) and notes for the reader."""

    results: list[Result]
    arrays: dict[str, bytes]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class CaptionList:
    """One caption index of one set on the labelled images: row of each image (-1 where it has none), and texts.

    kept_at: where each caption stands in the set as kept.
    """

    row_of_image: np.ndarray
    masked: list[str]
    kept_at: np.ndarray

    def rows(self, images: np.ndarray) -> np.ndarray:
        rows = self.row_of_image[images]
        return rows[rows >= 0]

    def having(self, images: np.ndarray) -> np.ndarray:
        return images[self.row_of_image[images] >= 0]


def run_one(workspace: Workspace, spec: RunSpec, progress: Progress) -> Outcome:
    """Compute one run. Raises CapbiasError for inputs that cannot be scored, Cancelled when asked to stop."""
    attribute = attribute_from(spec.attribute)
    table = workspace.frame(spec.labels["table"])
    labels = labels_for(table, attribute, spec.labels["column"], spec.labels["mapping"]).values
    frame = workspace.frame(spec.captions)
    frame = frame[frame["image_id"].isin(labels.index)]
    if frame.empty:
        raise CapbiasError(
            f"{spec.model}, none of whose images has a label for {attribute.name}",
            "captions of images in the attribute table",
            "Check that the ids of both files are of the same data set.",
        )
    if spec.family == "counting":
        return _count(spec, attribute, frame, labels)
    if spec.family == "cooccurrence":
        return _cooccurrence(workspace, spec, attribute, frame, labels, table)
    if spec.family == "captions":
        return _score_captions(spec, attribute, frame, labels, progress)
    return _attack(workspace, spec, attribute, frame, labels, progress)


def caption_lists(
    frame: pd.DataFrame, images: list[str], y: np.ndarray, attribute: Attribute, merge: bool
) -> list[CaptionList]:
    """A set as one list of masked captions for each caption index, as LIC trains one attacker an index.

    An index is used where at least half of the images of every value have it; the captions beyond are left out.
    """
    k = len(attribute.values)
    code = pd.Series(range(len(images)), index=images)
    frame = frame[frame["image_id"].isin(code.index)]
    lists = []
    for _, part in frame.groupby("caption_index", sort=True):
        having = code[part["image_id"]].to_numpy()
        if lists and (2 * np.bincount(y[having], minlength=k) < np.bincount(y, minlength=k)).any():
            break
        row_of_image = np.full(len(images), -1)
        row_of_image[having] = np.arange(len(part))
        lists.append(
            CaptionList(row_of_image, masked_captions(part["caption"], attribute, merge), part.index.to_numpy())
        )
    return lists


def _label_codes(images: list[str], labels: pd.Series, attribute: Attribute) -> np.ndarray:
    code = {value: place for place, value in enumerate(attribute.values)}
    return labels[images].map(code).to_numpy(dtype=int)


# family 'attack': LIC, leakage, SC


def _attack(workspace, spec: RunSpec, attribute: Attribute, frame, labels, progress: Progress) -> Outcome:
    images = sorted(set(frame["image_id"]))
    human = None
    if spec.references:
        human = workspace.frame(spec.references)
        images = sorted(set(images) & set(human["image_id"]))
    y = _label_codes(images, labels, attribute)
    k = len(attribute.values)
    splits = [balanced_split(y, k, seed, TEST_SHARE[spec.condition], images) for seed in spec.seeds]
    model_lists = caption_lists(frame, images, y, attribute, spec.merge_masks)
    human_lists = caption_lists(human, images, y, attribute, spec.merge_masks) if human is not None else []
    crew = _Crew(spec, k, y, tuple(images), progress, len(splits) * (len(model_lists) + len(human_lists)))
    model = crew.held_out(model_lists, splits, "the model's captions")
    reference = crew.held_out(human_lists, splits, "the human captions", model_lists) if human_lists else None
    return _attack_outcome(spec, attribute, model, reference, splits, labels)


class _Crew:
    """Trains the attackers of one run and counts how many are done."""

    def __init__(self, spec: RunSpec, k: int, y: np.ndarray, images: tuple[str, ...], progress: Progress, fits: int):
        self.spec, self.k, self.y, self.images, self.progress, self.fits = spec, k, y, images, progress, fits
        self.attacker = load_attacker(spec.attacker)
        self.place = np.argsort(random_order(images, 0))
        self.done = 0

    def fit(self, corpus, captions: CaptionList, train: np.ndarray, seed: tuple[int, ...], what: str):
        """One attacker, trained on the captions of the training images. seed: the run's, and whose child it is."""

        def tick(share: float, text: str) -> None:
            where = f"{what}, attacker {self.done + 1} of {self.fits}"
            self.progress((self.done + share) / self.fits, f"{where}, {text}" if text else where)

        images = self.even(captions.having(train))
        fitted = self.attacker.fit(corpus, captions.rows(images), self.y[images], self.k, child_seed(*seed), tick)
        self.done += 1
        return fitted

    def even(self, images: np.ndarray) -> np.ndarray:
        """Equally many of these images of every value: how many captions an image has must not tell its value."""
        images = images[np.argsort(self.place[images])]
        groups = [images[self.y[images] == value] for value in range(self.k)]
        size = min(map(len, groups))
        return np.sort(np.concatenate([group[:size] for group in groups]))

    def held_out(self, lists: list[CaptionList], splits: list[Split], what: str, align_to=None) -> HeldOut:
        """Predictions on the test images of every split, one attacker a caption index.

        align_to: the model's captions; words outside their training vocabulary become <unk> before training.
        """
        known = (
            [vocabulary(text for own in align_to for text in _texts(own, split.train)) for split in splits]
            if align_to
            else []
        )
        parts = []
        for index, captions in enumerate(lists):
            corpus = None if align_to else self.attacker.corpus(captions.masked)
            for number, split in enumerate(splits):
                if align_to:
                    corpus = self.attacker.corpus(align_captions(captions.masked, known[number]))
                fitted = self.fit(corpus, captions, split.train, (split.seed, FIT, index), what)
                test = self.even(captions.having(split.test))
                scores = probabilities(fitted.logits(corpus, captions.rows(test)))
                parts.append((np.full(len(test), split.seed), test, scores))
        seed, image, scores = (np.concatenate(column) for column in zip(*parts, strict=True))
        return HeldOut(self.images, seed, image, self.y[image], scores)


def _texts(captions: CaptionList, images: np.ndarray) -> list[str]:
    return [captions.masked[row] for row in captions.rows(images)]


def estimates_of(model: HeldOut, reference: HeldOut | None) -> dict[str, Estimate]:
    """Every metric of the family 'attack' that the evidence allows, by name."""
    found = {}
    for name, of_human in (("LIC_M", False), ("SC", False), ("LIC_D", True), ("SC_D", True)):
        evidence = reference if of_human else model
        if evidence is not None:
            row = METRICS[name]
            found[name] = estimate(row.parts(evidence), evidence, row.scale)
    if reference is not None:
        for name in ("LIC", "leakage"):
            row = METRICS[name]
            parts = METRICS[row.of].parts
            found[name] = difference(parts(model), model, parts(reference), reference, row.scale)
    return found


def _attack_outcome(spec, attribute, model: HeldOut, reference, splits, labels) -> Outcome:
    train, test = len(splits[0].train), len(splits[0].test)
    method = f"{train}/{test} balanced images; std over seeds; 95% image bootstrap, 1000 draws"
    if reference is not None:
        method += "; references aligned by <unk>"
    if spec.merge_masks:
        method += "; runs of masks merged"
    results = [
        _result(spec, attribute, name, found, len(spec.seeds), test, method)
        for name, found in estimates_of(model, reference).items()
    ]
    arrays = {"model": held_out_bytes(model)}
    if reference is not None:
        arrays["human"] = held_out_bytes(reference)
    return Outcome(results, arrays, _attack_notes(spec, attribute, train, test, len(model.images), labels))


def _attack_notes(spec, attribute: Attribute, train: int, test: int, images: int, labels) -> tuple[str, ...]:
    notes = [f"{train:,} training and {test:,} test images a seed, equally many of every value; chance for LIC_M and "
             f"LIC_D is {attribute.chance:.1f}."]  # fmt: skip
    if spec.condition == WITH_REFERENCES:
        notes.append(
            f"Only {images:,} of the {len(labels):,} labelled images have both captions and references: LIC_D and LIC "
            f"rest on {train + test:,} balanced images, {test:,} held out a seed."
        )
    if train + test < FEW_IMAGES:
        notes.append(f"Few images: {train + test:,} after balancing. Expect wide intervals and weaker attackers.")
    return tuple(notes)


def _result(spec: RunSpec, attribute: Attribute, name: str, found: Estimate, seeds: int, n: int, method: str) -> Result:
    low, high = found.interval()
    return Result(
        attribute=attribute.name, model=spec.model, metric=name, value=found.value, encoder=spec.attacker,
        condition=spec.condition, spread=found.spread, spread_kind="std" if found.spread is not None else "",
        scale=found.scale, seeds=seeds, n=n, ci_low=low, ci_high=high, method=method,
    )  # fmt: skip


def held_out_bytes(evidence: HeldOut) -> bytes:
    """Held-out predictions as Parquet; `held_out_from` reads them back."""
    frame = pd.DataFrame({"seed": evidence.seed, "image": evidence.image, "label": evidence.label})
    for value in range(evidence.probabilities.shape[1]):
        frame[f"p{value}"] = evidence.probabilities[:, value]
    frame["image_id"] = pd.Categorical.from_codes(evidence.image, list(evidence.images))
    return frame_bytes(frame)


def held_out_from(data: bytes) -> HeldOut:
    """The held-out predictions in Parquet bytes."""
    frame = bytes_frame(data)
    scores = frame[[column for column in frame if column.startswith("p")]].to_numpy()
    images = tuple(frame["image_id"].cat.categories)
    return HeldOut(images, *(frame[name].to_numpy() for name in ("seed", "image", "label")), scores)


# family 'counting': ratio, error


def naming(frame: pd.DataFrame, labels: pd.Series, attribute: Attribute) -> Naming:
    """Which values of the attribute each caption names, by its words."""
    code, images = pd.factorize(frame["image_id"])
    words = [frozenset(attribute.words[value]) for value in attribute.values]
    names = np.array([[not own.isdisjoint(tokens) for own in words] for tokens in map(tokenize, frame["caption"])])
    label = _label_codes(list(frame["image_id"]), labels, attribute)
    return Naming(tuple(images), code, label, names)


def counting_estimates(evidence: Naming) -> dict[str, Estimate]:
    """The counting metrics that are defined for this attribute, by name."""
    names = ("ratio", "error") if evidence.names.shape[1] == 2 else ("error",)
    return {name: estimate(METRICS[name].parts(evidence), evidence, METRICS[name].scale) for name in names}


def _count(spec: RunSpec, attribute: Attribute, frame, labels) -> Outcome:
    if not attribute.words:
        raise CapbiasError(
            f"ratio and error for {attribute.name}, which has no words",
            "an attribute that captions name",
            "Leave ratio and error out for this attribute.",
        )
    evidence = naming(frame, labels, attribute)
    found = counting_estimates(evidence)
    method = "captions by the values that their words name; 95% image bootstrap, 1000 draws"
    results = [_result(spec, attribute, name, item, 0, len(evidence.label), method) for name, item in found.items()]
    named = pd.DataFrame(evidence.names, columns=[f"n{value}" for value in range(evidence.names.shape[1])])
    named["label"] = evidence.label
    named["image_id"] = pd.Categorical.from_codes(evidence.image, list(evidence.images))
    counts = np.bincount(evidence.label, minlength=len(attribute.values))
    notes = ("Labels: " + ", ".join(f"{value} {n:,}" for value, n in zip(attribute.values, counts, strict=True)) + ".",)
    missing = [name for name, item in found.items() if not np.isfinite(item.value)]
    if missing:
        notes += (f"No caption names only {attribute.values[0]}, so {' and '.join(missing)} is not defined.",)
        results = [row if row.metric not in missing else replace(row, value=float("nan")) for row in results]
    return Outcome(results, {"naming": frame_bytes(named)}, notes)


def naming_from(data: bytes) -> Naming:
    """The naming evidence in Parquet bytes."""
    frame = bytes_frame(data)
    names = frame[[column for column in frame if column.startswith("n")]].to_numpy()
    image_id = frame["image_id"].cat
    return Naming(tuple(image_id.categories), image_id.codes.to_numpy().astype(int), frame["label"].to_numpy(), names)


# family 'cooccurrence': BA, DBA


def _cooccurrence(workspace: Workspace, spec: RunSpec, attribute: Attribute, frame, labels, table) -> Outcome:
    human = workspace.frame(spec.references)
    human = human[human["image_id"].isin(labels.index)]
    objects = table.set_index("image_id")[spec.objects] if spec.objects else None
    evidence, notes = evidence_of(human, frame, labels, attribute, objects)
    method = "captions of the images that both sides have; 95% image bootstrap, 1000 draws"
    results = []
    for name, found in cooccurrence_estimates(evidence).items():
        n = int(evidence[name].model[:, 0].sum())
        results.append(_result(spec, attribute, name, found, 0, n, method))
    arrays = {name: cooccurrence_bytes(own) for name, own in evidence.items()}
    return Outcome(results, arrays, tuple(notes))


# family 'captions': out-of-fold bias scores and words of a whole set


def _score_captions(spec: RunSpec, attribute: Attribute, frame, labels, progress: Progress) -> Outcome:
    """Cross-fitting: every caption is scored by the attacker of the fold that holds its image out."""
    images = sorted(set(frame["image_id"]))
    y = _label_codes(images, labels, attribute)
    k, folds = len(attribute.values), attacker_entry(spec.attacker).folds
    lists = caption_lists(frame, images, y, attribute, spec.merge_masks)
    splits = balanced_folds(y, k, spec.seeds[0], folds)
    crew = _Crew(spec, k, y, tuple(images), progress, folds * len(lists))
    tables, words, arrays = [], [], {}
    for index, captions in enumerate(lists):
        corpus, models = crew.attacker.corpus(captions.masked), []
        for fold, split in enumerate(splits):
            fitted = crew.fit(corpus, captions, split.train, (spec.seeds[0], FIT, index, fold), "bias scores")
            test = captions.having(split.test)
            rows = captions.rows(test)
            table, own = _fold_rows(fitted, corpus, rows)
            position = {"image": test, "caption_index": index, "fold": fold, "label": y[test]}
            texts = {"masked": [captions.masked[row] for row in rows], "kept_at": captions.kept_at[rows]}
            tables.append(table.assign(**position, **texts, tokens=[len(item) for item in own]))
            words += own
            models.append(fitted)
        if spec.attacker == "ngram":
            arrays[f"attackers{index}"] = _linear_models(corpus, models)
    table = pd.concat(tables, ignore_index=True)
    corpus_rows = corpus_table(table["masked"], words, table["label"].to_numpy(), k)
    table["image_id"] = np.array(images, dtype=object)[table.pop("image").to_numpy()]
    arrays |= {
        "scores": frame_bytes(table),
        "words": _npz(values=np.concatenate([*words, np.zeros((0, table.filter(like="logit").shape[1]))])),
        "corpus": frame_bytes(corpus_rows),
    }
    notes = (f"Every caption is scored by an attacker that did not train on its image ({folds} folds).",)
    return Outcome([], arrays, notes)


def _fold_rows(fitted, corpus, rows: np.ndarray) -> tuple[pd.DataFrame, list[np.ndarray]]:
    """Scores of one fold's held-out captions: logits, their baseline and the gap that attribution leaves."""
    logits = fitted.logits(corpus, rows)
    found = fitted.contributions(corpus, rows)
    table = pd.DataFrame({"delta": found.delta})
    for column in range(logits.shape[1]):
        table[f"logit{column}"] = logits[:, column]
        table[f"baseline{column}"] = found.baseline[:, column]
    for value, share in enumerate(probabilities(logits).T):
        table[f"p{value}"] = share
    return table, found.words


def _linear_models(corpus, models) -> bytes:
    """The linear attackers of one caption index, one a fold, for rescoring an edited caption."""
    terms = sorted(corpus.columns, key=corpus.columns.get)
    return _npz(
        terms=np.frombuffer("\n".join(terms).encode(), dtype=np.uint8),
        weights=np.stack([fitted.weights for fitted in models]),
        intercepts=np.stack([fitted.intercept for fitted in models]),
    )


def _npz(**arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()
