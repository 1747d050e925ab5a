"""Photographs of which a part is hidden, kept as a folder of their own."""

from __future__ import annotations

from dataclasses import dataclass

from capbias_core.errors import CapbiasError
from capbias_core.load.parsed import BOXES
from capbias_core.load.report import PHOTOGRAPHS
from capbias_core.measures.base import Job, Measure, Needs, Outcome
from capbias_core.measures.options import ArtifactOptions, PeopleMarked, option
from capbias_core.types import Attribute, counted
from capbias_core.vision.masking import FILLS, FOREGROUND, HALF, OF_OBJECTS, OF_OUTLINES, WHOSE, MaskRule
from capbias_core.workspace.masked_photographs import Masking, masked_folder
from capbias_core.workspace.photographs import resolve_person_regions
from capbias_core.workspace.spec import ItemReference
from capbias_core.workspace.store import RUN, Workspace

GREY = "grey"
MASKED = ("part", "segment", "box", "object", "both")
NAMED = 5  # photographs left out that a note names; the log has them all


@dataclass(frozen=True)
class MaskOptions(ArtifactOptions, PeopleMarked):
    """Choices of masked photographs. departures: of objects that may be hidden, by name; see object_associations.py."""

    condition: str = option(
        "",
        "what is hidden: part (the upper half, or fraction, of the person's outline), segment (the outline), box (the "
        "box around it), object (the one that goes most with a value of the attribute), both (person and object)",
        flag="--condition",
        choices=MASKED,
        metavar="CONDITION",
        advanced=False,
    )
    fill: str = option(GREY, "what is put there", flag="--fill", choices=tuple(FILLS), advanced=False)
    fraction: float = option(
        HALF, "for part: how much of the outline, from the top", flag="--fraction", above=0, at_most=1, metavar="SHARE"
    )
    whose: str = option(
        FOREGROUND, "the person in the foreground (the largest), or all people", flag="--whose", choices=WHOSE
    )
    labelled: ItemReference | str | None = option(
        None,
        "boxes of the labelled people, one per photograph: the person whose box overlaps most with it is then in the "
        "foreground; elsewhere the largest (with --collection the name of kept ones)",
        flag="--labelled",
        metavar="FILE",
    )
    departures: dict[str, float] | None = option(None, "the objects that may be hidden, and how far each departs")
    only_masked: bool = option(
        False,
        "object, both: leave out photographs that show no such object (if not said, they are kept, as LIC does)",
        flag="--only-masked",
    )

    @property
    def rule(self) -> MaskRule:
        return MaskRule(self.condition, self.fraction, self.whose, self.departures or {}, self.only_masked)

    def effective(self) -> MaskOptions:
        """Without choices that this condition does not read."""
        names = ("fraction", "whose", "departures", "only_masked")
        unread = set(names) - self.rule.used().keys()
        return self.with_(**{name: getattr(MaskOptions, name) for name in unread})


def freeze(workspace: Workspace, collection: str, options: MaskOptions, attribute: Attribute | None) -> MaskOptions:
    """Outlines or boxes by their content. Raises CapbiasError for what does not go together."""
    if options.condition in OF_OBJECTS and not options.departures:
        raise CapbiasError(
            f"The condition {options.condition} does not say which objects to mask.",
            "Name human captions and an attribute, from which they follow, or the objects.",
            "references",
            "attribute",
            "object",
        )
    people = resolve_person_regions(workspace, collection, options.people)
    if people["kind"] == BOXES and options.condition in OF_OUTLINES:
        raise CapbiasError(
            f"The condition {options.condition} needs outlines of people, but {people['name']} has boxes.",
            "Load a COCO instances file with import --kind segments, or choose the condition box, object or both.",
        )
    labelled = options.labelled
    if labelled and (options.condition == "object" or options.whose != FOREGROUND):
        raise CapbiasError(
            "Labelled people can only be told apart where one person is hidden, not everybody or an object.",
            "Leave out the labelled people, or choose another condition.",
        )
    if isinstance(labelled, str) and labelled:
        item = workspace.item(BOXES, labelled, collection)
        labelled = ItemReference(name=item.name, item=item.hash)
    return options.with_(people=people, labelled=labelled or None)


def run(job: Job) -> Outcome:
    """Mask the photographs and keep the folder. Raises CapbiasError if none can be masked."""
    options, used = job.options, job.options.rule.used()
    labelled = options.labelled["item"] if options.labelled else ""
    masking = Masking(options.rule, options.fill, options.people["item"], labelled)
    masked = masked_folder(job.workspace, job.photographs(), options.photographs["digest"], masking, job.progress)
    used.pop("departures", None)
    details = {
        "folder": str(masked.folder),
        "of": options.photographs["name"],
        "people": options.people["name"],
        "left_out": len(masked.left_out),
        RUN: job.spec.run_id,
        "fill": options.fill,
        **used,
    }
    source = f"{options.photographs['name']}, masked by {options.people['name']}"
    frame = masked.kept[["image_id", "file", "hidden"]]
    # Under the digest of what is in the folder: its list of files is the same under other conditions.
    job.workspace.keep(PHOTOGRAPHS, options.name, frame, options.collection, source, details, digest=masked.folder.name)
    for image, reason in masked.left_out.items():
        job.workspace.log(job.spec.run_id, f"left out: {image}: {reason}")
    unmasked = masked.bare if options.condition == "object" else ()
    changed = masked.kept[~masked.kept["image_id"].isin(unmasked)]
    notes = [
        f"{counted(len(changed), 'photograph')} masked ({options.condition}, {options.fill}) by "
        f"{options.people['name']}; on average {changed['hidden'].mean():.1%} of a photograph is hidden."
    ]
    if unmasked:
        notes.append(f"{len(unmasked):,} more, kept unmasked: they show none of the correlated objects.")
    elif masked.bare:
        notes.append(f"{len(masked.bare):,} of them show none of the correlated objects; only the person is hidden.")
    if masked.left_out:
        images: dict[str, list[str]] = {}
        for image, reason in masked.left_out.items():
            images.setdefault(reason, []).append(image)
        parts = [
            f"{', '.join(own[:NAMED])}{f' and {len(own) - NAMED:,} more' if len(own) > NAMED else ''}: {reason}"
            for reason, own in sorted(images.items(), key=lambda pair: -len(pair[1]))[:NAMED]
        ]
        more = f"; and {len(images) - NAMED:,} more reasons" if len(images) > NAMED else ""
        notes.append(f"{len(masked.left_out):,} left out: {'; '.join(parts)}{more}.")
    return Outcome([], {}, tuple(notes))


MEASURE = Measure(
    name="mask",
    title="masked photographs",
    place=21,
    options=MaskOptions,
    needs=Needs(captions=False, labels=False, photographs=True, people=True),
    seconds=600.0,
    run=run,
    freeze=freeze,
    makes=PHOTOGRAPHS,
)
