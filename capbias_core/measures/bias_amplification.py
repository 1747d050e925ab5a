"""Runs of the family 'cooccurrence': counts of values beside words and objects, human captions against the model's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from capbias_core.aggregate import Estimate, comparison
from capbias_core.errors import CapbiasError
from capbias_core.load.objects import SURE
from capbias_core.measures.base import Job, Outcome, from_npz, label_codes, run_available, to_npz
from capbias_core.metrics import METRICS, Cooccurrence
from capbias_core.prepare.tasks import Encoded, content_words, encode, named_objects, object_names, pair_counts
from capbias_core.types import Attribute
from capbias_core.workspace.store import RunRow, Workspace

# A word must stand beside each value this often in the human captions of all images (LIC, appendix A.2), and in
# proportion less often where there are fewer captions.
LEAST, OF_CAPTIONS = 100, 53_900
# An attacker learns little about an object that is on a smaller share of the images.
LEAST_SHARE = 0.01


def run(job: Job) -> Outcome:
    """Counts of both sides on the images that both have."""
    evidence, notes = evidence_of(job.references(), job.frame, job.labels, job.attribute, job.objects())
    method = "captions of the images that both sides have; 95% image bootstrap, 1000 draws"
    results = [
        job.result(name, found, int(evidence[name].model[:, 0].sum()), method)
        for name, found in cooccurrence_estimates(evidence).items()
    ]
    arrays = {name: cooccurrence_bytes(own) for name, own in evidence.items()}
    return Outcome(results, arrays, tuple(notes))


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The estimates of a finished run again from its counts, by metric and direction."""
    measured = workspace.results([run.run_id])["metric"]
    evidence = {name: cooccurrence_from(workspace.array(run.run_id, name)) for name in measured}
    return {(name, ""): own for name, own in cooccurrence_estimates(evidence).items()}


def evidence_of(
    human: pd.DataFrame, model: pd.DataFrame, labels: pd.Series, attribute: Attribute, objects: pd.Series | None
) -> tuple[dict[str, Cooccurrence], list[str]]:
    """The evidence of each metric that these inputs allow, by its name, and notes.

    human, model: captions of labelled images, image_id and caption; images on one side only are left out. labels:
    value by image id. objects: text such as `cat|dog` by image id, or None.
    """
    images = sorted(set(human["image_id"].unique()) & set(model["image_id"].unique()))
    sides = [Side(frame, images, attribute) for frame in (human, model)]
    ways = {
        "BA": lambda: _ba(sides, images, attribute),
        "DBA_G": lambda: _dba_g(sides, images, objects),
        "DBA_O": lambda: _dba_o(sides, images, labels, attribute),
    }
    if not attribute.words:
        ways = {"DBA_O": ways["DBA_O"]}
    if objects is None:
        ways.pop("DBA_G", None)
    return run_available(ways)


def _ba(sides: list[Side], images: list[str], attribute: Attribute) -> tuple[Cooccurrence, str]:
    words, least = _words(sides[0], attribute)
    found = counts_of(sides, images, words, lambda side: side.named(side.encoded.with_words(words)))
    return found, (
        f"{len(words)} nouns, verbs, adjectives and adverbs among the 1,000 commonest words, that stand beside each "
        f"value in {least} human captions or more ({LEAST} where there are {OF_CAPTIONS:,}). Captions that name no or "
        "several values do not count."
    )


def _dba_g(sides: list[Side], images: list[str], objects: pd.Series) -> tuple[Cooccurrence, str]:
    names, on_image = objects_of(images, objects)
    known = annotated(images, objects)

    def read(side: Side):
        values, tasks, kept = side.named(on_image[side.image])
        return values, tasks, kept & known[side.image]

    part = "" if known.all() else f" Objects are known of {known.sum():,} of the {len(images):,} images."
    return counts_of(sides, images, names, read), (
        f"{len(names)} objects that the images show. Captions that name no or several values do not count.{part}"
    )


def annotated(images: list[str], objects: pd.Series) -> np.ndarray:
    """(n_images,) booleans: somebody looked for objects. An image that nobody annotated is not one without objects."""
    known = set(objects.index)
    return np.array([image in known for image in images], dtype=bool)


def _dba_o(sides: list[Side], images: list[str], labels: pd.Series, attribute: Attribute) -> tuple[Cooccurrence, str]:
    table = object_names()
    kept = np.flatnonzero(named_objects(sides[0].encoded, table).sum(axis=0) > 0)
    if not len(kept):
        raise CapbiasError(
            "human captions that name no object",
            f"names of objects such as {', '.join(list(table)[:3])}",
            "Check them.",
        )
    label = one_hot(label_codes(images, labels, attribute), len(attribute.values))
    found = counts_of(
        sides,
        images,
        [list(table)[place] for place in kept],
        lambda side: (label[side.image], named_objects(side.encoded, table)[:, kept], slice(None)),
    )
    return found, f"{len(kept)} objects that human captions name."


class Side:
    """The captions of one side on the images that both have."""

    def __init__(self, frame: pd.DataFrame, images: list[str], attribute: Attribute):
        image = pd.Index(images).get_indexer(frame["image_id"])
        self.image = image[image >= 0]
        self.encoded: Encoded = encode(frame["caption"].to_numpy(dtype=object)[image >= 0])
        self.values = None
        if attribute.words:
            named = self.encoded.with_any([attribute.words[value] for value in attribute.values])
            self.only_one = np.asarray(named.sum(axis=1)).ravel() == 1
            self.values = named

    def named(self, tasks: csr_array):
        """Values that captions name, and tasks, of the captions that name one value only."""
        return self.values, tasks, self.only_one


def counts_of(sides: list[Side], images: list[str], tasks: Sequence[str], read: Callable) -> Cooccurrence:
    counts = []
    for side in sides:
        values, task, kept = read(side)
        counts.append(pair_counts(side.image[kept], len(images), values[kept], task[kept]))
    return Cooccurrence(tuple(images), values.shape[1], tuple(tasks), *counts)


def least_captions(human: Side) -> int:
    """In how many human captions a word must stand to count: 100 of COCO's, in proportion less of fewer."""
    return max(1, round(LEAST * human.encoded.n / OF_CAPTIONS))


def _words(human: Side, attribute: Attribute) -> tuple[list[str], int]:
    """Task words of the human captions, and how often each must stand beside each value."""
    least = least_captions(human)
    words = content_words(human.encoded, attribute.masked_words)
    pairs = human.values[human.only_one].T @ human.encoded.with_words(words)[human.only_one]
    have = [place for place, value in enumerate(attribute.values) if attribute.words[value]]
    often = (pairs.toarray()[have] >= least).all(axis=0)
    words = [word for word, kept in zip(words, often, strict=True) if kept]
    if not words:
        raise CapbiasError(
            f"human captions in which no word stands beside each value of {attribute.name} {least} times",
            "captions of more images, or with more variety",
            "Load more references.",
        )
    return words, least


def objects_of(images: list[str], objects: pd.Series) -> tuple[list[str], csr_array]:
    """Objects on some of these images, without `person` and what is on all of them; (images, objects) booleans."""
    lists = objects.reindex(images).fillna("").str.split("|")
    exploded = lists.explode().str.strip().str.replace(SURE, "", regex=True)
    code = pd.Series(range(len(images)), index=images)
    exploded = exploded[(exploded != "") & (exploded != "person")]
    counts = exploded.value_counts()
    everywhere = counts.index[counts >= max(2, annotated(images, objects).sum())]
    if len(everywhere):  # what is on every image tells nothing
        exploded = exploded[~exploded.isin(everywhere)]
    column, names = pd.factorize(exploded, sort=True)
    if not len(names):
        raise CapbiasError(
            "objects of images, of which none (but person) is on some of these images and not on others",
            "objects of the same images, such as cat|dog",
            "Check the file of objects: its image ids, and its names.",
        )
    matrix = csr_array(
        (np.ones(len(column), dtype=np.int32), (code[exploded.index].to_numpy(), column)), (len(images), len(names))
    )
    matrix.data[:] = 1
    return list(names), matrix


def common_objects(on_image: csr_array) -> np.ndarray:
    """Columns of (images, objects) booleans that are on enough images for an attacker; raises where none is."""
    images = on_image.shape[0]
    kept = np.flatnonzero(np.asarray(on_image.sum(axis=0)).ravel() >= max(1, LEAST_SHARE * images))
    if not len(kept):
        raise CapbiasError(
            f"no object on {LEAST_SHARE:.0%} of the {images:,} images or more",
            "objects that are on some images",
            "Load the objects of these images.",
        )
    return kept


def one_hot(codes: np.ndarray, k: int) -> csr_array:
    """(n,) places of values to (n, k) booleans."""
    n = len(codes)
    return csr_array((np.ones(n, dtype=np.int32), (np.arange(n), codes)), shape=(n, k))


def cooccurrence_estimates(evidence: dict[str, Cooccurrence]) -> dict[str, Estimate]:
    """The estimate of each metric from its evidence."""
    return {name: comparison(METRICS[name].compare, own, METRICS[name].scale) for name, own in evidence.items()}


def cooccurrence_bytes(evidence: Cooccurrence) -> bytes:
    """Evidence as bytes; `cooccurrence_from` reads them back."""
    return to_npz([evidence.n_values, evidence.tasks, evidence.images], human=evidence.human, model=evidence.model)


def cooccurrence_from(data: bytes) -> Cooccurrence:
    """The evidence in bytes of `cooccurrence_bytes`."""
    (n_values, tasks, images), sides = from_npz(data)
    return Cooccurrence(tuple(images), n_values, tuple(tasks), **sides)
