"""Runs of the family 'mask': photographs of which a part is hidden, kept as a folder of their own."""

from __future__ import annotations

from collections import Counter

from capbias_core.aggregate import Estimate
from capbias_core.measures.base import COLLECTION, NAME, Job, Outcome
from capbias_core.workspace.masked_photographs import ONLY_MASKED, Masked, masked_folder
from capbias_core.workspace.person_regions import PEOPLE
from capbias_core.workspace.photographs import KIND, PHOTOGRAPHS
from capbias_core.workspace.store import RUN, RunRow, Workspace

NAMED = 5  # photographs left out that a note names; the log has them all


def run(job: Job) -> Outcome:
    """Mask the photographs and keep the folder. Raises CapbiasError where none can be masked."""
    options = dict(job.spec.options)
    asked = {key: options.pop(key) for key in (COLLECTION, NAME, PHOTOGRAPHS)}
    photographs = asked[PHOTOGRAPHS]
    rows = job.workspace.frame(options[PEOPLE]["item"])
    found = masked_folder(job.workspace, job.photographs(), photographs["digest"], rows, options, job.progress)
    _keep(job, found, asked, options)
    for image, reason in found.left_out.items():
        job.workspace.log(job.spec.run_id, f"left out: {image}: {reason}")
    return Outcome([], {}, notes(found, options))


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """None: such a run leaves no numbers."""
    return {}


def _keep(job: Job, found: Masked, asked: dict, options: dict) -> None:
    about = {key: options[key] for key in ("condition", "fill", "fraction", "whose", ONLY_MASKED) if key in options}
    details = {
        "folder": str(found.folder),
        "of": asked[PHOTOGRAPHS]["name"],
        "people": options[PEOPLE]["name"],
        "left_out": len(found.left_out),
        RUN: job.spec.run_id,
        **about,
    }
    source = f"{asked[PHOTOGRAPHS]['name']}, masked by {options[PEOPLE]['name']}"
    frame = found.kept[["image_id", "file", "hidden"]]
    # Under the digest of what is in the folder: its list of files is the same under other conditions.
    job.workspace.keep(KIND, asked[NAME], frame, asked[COLLECTION], source, details, digest=found.folder.name)


def notes(found: Masked, options: dict) -> tuple[str, ...]:
    """What was masked, what was kept unmasked, and which photographs were left out and why."""
    unmasked = found.bare if options["condition"] == "object" else ()
    masked = found.kept[~found.kept["image_id"].isin(unmasked)]
    share = masked["hidden"].mean()
    photographs = "1 photograph" if len(masked) == 1 else f"{len(masked):,} photographs"
    lines = [
        f"{photographs} masked ({options['condition']}, {options['fill']}) by {options[PEOPLE]['name']}; on average "
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
