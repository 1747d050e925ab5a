"""Objects that captions name: recall of those on the image, and hallucinated ones (CHAIR), by group."""

from __future__ import annotations

from capbias_core.errors import CapbiasError
from capbias_core.measures.base import Job, Measure, Needs, Outcome, no_neutral
from capbias_core.measures.by_group import BOOTSTRAP, LOTUS, Grouped, GroupedMetric, GroupSums
from capbias_core.measures.cost import per_image
from capbias_core.measures.image_objects import annotated, categories_of
from capbias_core.metrics.hallucination import hallucinated_mentions, hallucinating_captions, recalled_objects
from capbias_core.prepare.tasks import encode, object_mentions, object_names

_CHAIR = "Rohrbach et al., EMNLP 2018"
_PEOPLE = "`person` does not count: every labelled image shows one."

GROUPED = Grouped(
    (
        GroupedMetric(
            "object_recall",
            "object recall, objects of the image that are named",
            100,
            no_neutral,
            "higher",
            (0, 100),
            LOTUS,
            f"Objects of the images that the caption names, of COCO's 80 with their synonyms. {_PEOPLE}",
        ),
        GroupedMetric(
            "chair_i",
            "CHAIR_i, hallucinated mentions of objects",
            100,
            no_neutral,
            "lower",
            (0, 100),
            _CHAIR,
            f"Mentions of objects that the image does not show, of all mentions of objects. {_PEOPLE} Papers that "
            "count it, or other synonyms, print other values. An object that nobody annotated counts as hallucinated.",
        ),
        GroupedMetric(
            "chair_s",
            "CHAIR_s, captions with a hallucinated object",
            100,
            no_neutral,
            "lower",
            (0, 100),
            _CHAIR,
            "Captions that mention an object that the image does not show, of all captions. Long captions mention more "
            "objects and so have more.",
        ),
    )
)


def run(job: Job) -> Outcome:
    """Objects that each caption names against those of its image, on the images whose objects are known."""
    objects = job.objects()
    if objects is None:
        raise CapbiasError("no objects of the images", "objects such as cat|dog", "Load the objects of these images.")
    frame = job.frame[annotated(list(job.frame["image_id"]), objects)]
    if frame.empty:
        raise CapbiasError(
            f"objects of {len(objects):,} images, none of which has a caption of {job.spec.model}",
            "objects of the same images",
            "Check that the ids of both files are of the same data set.",
        )
    names = object_names()
    shown, unknown = categories_of(list(frame["image_id"]), objects, names)
    mentions = object_mentions(encode(frame["caption"]), names)
    found = GroupSums.of(
        frame,
        job.codes,
        {
            "object_recall": recalled_objects(mentions, shown),
            "chair_i": hallucinated_mentions(mentions, shown),
            "chair_s": hallucinating_captions(mentions, shown),
        },
    )
    method = f"{len(found.images):,} images with known objects; COCO's objects without person; {BOOTSTRAP}"
    notes = [
        f"Objects rest on the {len(found.images):,} labelled images with known objects "
        f"({found.sizes_text(job.attribute.values)})."
    ]
    if unknown:
        notes.append(f"Objects of images that are none of COCO's were left out: {', '.join(unknown)}.")
    return GROUPED.outcome(job, found, lambda name: method, notes)


MEASURE = Measure(
    name="hallucination",
    title="object recall and hallucinated objects",
    place=7,
    metrics=GROUPED.every,
    groups=(GROUPED.group("chair", "object recall and hallucination by group"),),
    needs=Needs(objects="required"),
    cost=per_image(1.0),
    run=run,
    estimates=GROUPED.estimates,
)
