"""What constant alignment does to the human captions, which needs no word vectors."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from capbias_core.aggregate import Counts
from capbias_core.measures.alignment import METRICS, of_same_images
from capbias_core.measures.base import estimates_of
from capbias_core.prepare.align import Alignment
from capbias_core.runs.run import job_of
from capbias_core.types import silent
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Workspace

LISTED = 8


@dataclass(frozen=True)
class ConstantAlignment:
    """Of one captioner. share: words of the human captions that become `<unk>`, in percent, with its 95% interval over
    images. captions, images: what it rests on. words: those that become it most often, most often first."""

    share: float
    low: float
    high: float
    captions: int
    images: int
    words: tuple[str, ...]


def constant_alignment(workspace: Workspace, spec: RunSpec) -> ConstantAlignment:
    """Counted from the captions and human captions that a run reads, and kept in the workspace."""

    def compute() -> dict:
        job = job_of(workspace, spec, silent)
        human = of_same_images(job.references(), job.frame)
        known = frozenset(job.masked(job.tokens(job.frame)).words)
        masked = job.masked(job.reference_tokens(human))
        words, _, unknown = Alignment(known).counts(masked).T
        counts = Counts.of_captions(human["image_id"], job.codes, {"words": words, "unknown": unknown})
        (found,) = estimates_of(METRICS.values(), counts, job.attribute.values).values()
        low, high = found.interval()
        lost = Counter(
            word for caption in masked for word in caption.split() if word not in known and not word.startswith("<")
        )
        words = [word for word, _ in sorted(lost.items(), key=lambda pair: (-pair[1], pair[0]))[:LISTED]]
        sizes = {"captions": counts.size(), "images": len(counts.images)}
        return {"share": found.value, "low": low, "high": high, **sizes, "words": words}

    data = workspace.derived(f"constant alignment {spec.run_id}", compute)
    return ConstantAlignment(**data | {"words": tuple(data["words"])})
