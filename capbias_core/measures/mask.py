"""Photographs of which a part is hidden, kept as a folder of their own."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from capbias_core.errors import CapbiasError
from capbias_core.measures.base import Job, Measure, Needs, Outcome
from capbias_core.measures.options import ArtifactOptions, PeopleMarked, option
from capbias_core.types import Attribute
from capbias_core.vision.masking import FILLS, FOREGROUND, HALF, OF_OBJECTS, OF_OUTLINES, WHOSE, MaskRule
from capbias_core.workspace.masked_photographs import Masked, Masking, masked_folder
from capbias_core.workspace.person_regions import BOXES, resolve_person_regions
from capbias_core.workspace.photographs import KIND
from capbias_core.workspace.spec import ItemReference, frozen
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
            "Name --references and --attribute, from which they follow, or --object.",
        )
    people = resolve_person_regions(workspace, collection, options.people)
    if people["kind"] == BOXES and options.condition in OF_OUTLINES:
        raise CapbiasError(
            f"The condition {options.condition} needs outlines of people, but {people['name']} has boxes.",
            "Load a COCO instances file with import --kind segments, or choose the condition box, object or both.",
        )
    return options.with_(people=people, labelled=_labelled(workspace, collection, options))


def _labelled(workspace: Workspace, collection: str, options: MaskOptions) -> ItemReference | None:
    if not options.labelled:
        return None
    if options.condition == "object" or options.whose != FOREGROUND:
        raise CapbiasError(
            "Labelled people can only be told apart where one person is hidden, not everybody or an object.",
            "Leave out the labelled people, or choose another condition.",
        )
    if isinstance(options.labelled, dict):
        return options.labelled
    item = workspace.item(BOXES, options.labelled, collection)
    return ItemReference(name=item.name, item=item.hash)


def run(job: Job) -> Outcome:
    """Mask the photographs and keep the folder. Raises CapbiasError if none can be masked."""
    options = job.options
    labelled = options.labelled["item"] if options.labelled else ""
    masking = Masking(options.rule, options.fill, options.people["item"], labelled)
    content = options.photographs["digest"]
    found = masked_folder(job.workspace, job.photographs(), content, masking, job.progress)
    _keep(job, found, masking)
    for image, reason in found.left_out.items():
        job.workspace.log(job.spec.run_id, f"left out: {image}: {reason}")
    return Outcome([], {}, notes(found, options))


def _keep(job: Job, found: Masked, masking: Masking) -> None:
    options, used = job.options, masking.rule.used()
    used.pop("departures", None)
    details = {
        "folder": str(found.folder),
        "of": options.photographs["name"],
        "people": options.people["name"],
        "left_out": len(found.left_out),
        RUN: job.spec.run_id,
        "fill": options.fill,
        **used,
    }
    source = f"{options.photographs['name']}, masked by {options.people['name']}"
    frame = found.kept[["image_id", "file", "hidden"]]
    # Under the digest of what is in the folder: its list of files is the same under other conditions.
    job.workspace.keep(KIND, options.name, frame, options.collection, source, details, digest=found.folder.name)


def notes(found: Masked, options: MaskOptions) -> tuple[str, ...]:
    """What was masked, what was kept unmasked, and which photographs were left out and why."""
    unmasked = found.bare if options.condition == "object" else ()
    masked = found.kept[~found.kept["image_id"].isin(unmasked)]
    share = masked["hidden"].mean()
    photographs = "1 photograph" if len(masked) == 1 else f"{len(masked):,} photographs"
    lines = [
        f"{photographs} masked ({options.condition}, {options.fill}) by {frozen(options.people)['name']}; on average "
        f"{share:.1%} of a photograph is hidden."
    ]
    if unmasked:
        lines.append(f"{len(unmasked):,} more, kept unmasked: they show none of the correlated objects.")
    elif found.bare:
        lines.append(f"{len(found.bare):,} of them show none of the correlated objects; only the person is hidden.")
    if found.left_out:
        reasons = Counter(found.left_out.values()).most_common(NAMED)
        said = "; ".join(f"{_some(found.left_out, reason)}: {reason}" for reason, _ in reasons)
        more = len(set(found.left_out.values())) - len(reasons)
        lines.append(
            f"{len(found.left_out):,} left out: {said}" + (f"; and {more:,} more reasons" if more else "") + "."
        )
    return tuple(lines)


def _some(left_out: dict[str, str], reason: str) -> str:
    """The first images that were left out for a reason, and how many more."""
    images = [image for image, own in left_out.items() if own == reason]
    more = f" and {len(images) - NAMED:,} more" if len(images) > NAMED else ""
    return ", ".join(images[:NAMED]) + more


MEASURE = Measure(
    name="mask",
    title="masked photographs",
    place=21,
    options=MaskOptions,
    needs=Needs(captions=False, labels=False, photographs=True, people=True),
    seconds=600.0,
    run=run,
    freeze=freeze,
    makes=KIND,
)
