"""Metrics of captions by group of the attribute, and the gap between the groups, whatever is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from capbias_core.aggregate import Estimate, quotient
from capbias_core.aggregate.groups import across_groups, by_group
from capbias_core.measures.base import Group, Job, Metric, Outcome, by_name, from_npz, to_npz, zero
from capbias_core.metrics.evidence import Ratio
from capbias_core.metrics.performance_gap import gap
from capbias_core.types import Result
from capbias_core.workspace.store import RunRow, Workspace

LOTUS = "Hirota et al., ACL 2025 (LOTUS)"


@dataclass(frozen=True, kw_only=True)
class GroupedMetric(Metric):
    """A metric that is given for all images, for those of each group, and as a gap.

    of_sums: (..., M) columns summed over captions to (...) unscaled values. within: the same for the images of one
    group, if other columns tell that.
    """

    of_sums: Callable[[np.ndarray], np.ndarray] = quotient
    within: Callable[[np.ndarray], np.ndarray] | None = None

    @property
    def short(self) -> str:
        """Its title without the part that explains."""
        return self.title.partition(",")[0]


@dataclass(frozen=True)
class GroupSums:
    """What was counted in captions, summed over the captions of each image.

    images: their ids. label: (n_images,) places of the attribute's values. captions: (n_images,) how many. sums: metric
    -> (n_images, M), the columns that its `of_sums` takes.
    """

    images: tuple[str, ...]
    label: np.ndarray
    captions: np.ndarray
    sums: dict[str, np.ndarray]

    @classmethod
    def of(
        cls, frame: pd.DataFrame, codes: Callable[[list[str]], np.ndarray], counts: Mapping[str, Ratio | np.ndarray]
    ) -> GroupSums:
        """frame: n captions. codes: image ids to labels. counts: metric -> a Ratio, or (n, M) columns."""
        image, images = pd.factorize(frame["image_id"], sort=True)
        n = len(image)
        of_image = csr_array((np.ones(n), (image, np.arange(n))), shape=(len(images), n))
        sums = {name: of_image @ _columns(own) for name, own in counts.items()}
        return cls(tuple(images), codes(list(images)), np.bincount(image, minlength=len(images)), sums)

    def sizes(self, k: int) -> list[int]:
        """How many captions each of the k groups has."""
        return [int(self.captions[self.label == place].sum()) for place in range(k)]

    def sizes_text(self, values: Sequence[str]) -> str:
        """`Female 788, Male 1,662 captions`."""
        return (
            ", ".join(f"{value} {n:,}" for value, n in zip(values, self.sizes(len(values)), strict=True)) + " captions"
        )


def _columns(counts: Ratio | np.ndarray) -> np.ndarray:
    return np.column_stack([counts.numerator, counts.denominator]) if isinstance(counts, Ratio) else counts


@dataclass(frozen=True)
class Grouped:
    """The metrics of a measure that are given by group.

    given: the metrics. source: of their gaps. array: under which name a run keeps its sums.
    """

    given: Iterable[GroupedMetric]
    source: str = LOTUS
    array: str = "sums"

    @cached_property
    def metrics(self) -> dict[str, GroupedMetric]:
        """By name."""
        return by_name(*self.given)

    @cached_property
    def gaps(self) -> dict[str, Metric]:
        """The gap of each metric, by its own name."""
        return by_name(*(_gap_of(own, self.source) for own in self.metrics.values()))

    @property
    def every(self) -> tuple[Metric, ...]:
        """The metrics, each with its gap after it."""
        return tuple(own for pair in zip(self.metrics.values(), self.gaps.values(), strict=True) for own in pair)

    def group(self, name: str, title: str, default: bool = False) -> Group:
        """All of them under one name to ask for."""
        return Group(name, title, tuple(own.name for own in self.every), default)

    def whole(self, found: GroupSums) -> dict[str, Estimate]:
        """The estimate of each metric that was counted, on all images."""
        estimates = {}
        for name, sums in found.sums.items():
            own = self.metrics[name]
            share = own.of_sums is quotient and own.range == (0, own.scale)
            whole = Estimate(found.images, sums, np.zeros(0), own.scale, own.of_sums, span=own.range, share=share)
            estimates[name] = whole
        return estimates

    def within(self, found: GroupSums) -> dict[str, Estimate]:
        """The same as it is read on the images of one group, or of each."""
        return {name: replace(own, of=self.metrics[name].within or own.of) for name, own in self.whole(found).items()}

    def differences(self, found: GroupSums, k: int) -> dict[str, Estimate]:
        """The estimate of each metric's gap between the k groups."""
        return {f"{name}_gap": across_groups(own, found.label, k, gap) for name, own in self.within(found).items()}

    def outcome(self, job: Job, found: GroupSums, method: Callable[[str], str], notes: Sequence[str]) -> Outcome:
        """For each metric its value on all images and on those of each group, and the gap.

        method: the name of a metric to how it was measured.
        """
        values, n, rows = job.attribute.values, int(found.captions.sum()), []
        differences, within = self.differences(found, len(values)), self.within(found)
        for name, whole in self.whole(found).items():
            how, of_gap = method(name), f"{name}_gap"
            rows.append(job.result(self.metrics[name], whole, n, f"{how}; {whole.interval_method}"))
            rows += _group_results(job, found, self.metrics[name], within[name], f"{how}; {whole.interval_method}")
            gap_method = f"{_gap_text(values)}; {how}; {differences[of_gap].interval_method}"
            rows.append(job.result(self.gaps[of_gap], differences[of_gap], n, gap_method))
        kept = to_npz(found.images, label=found.label, captions=found.captions, **found.sums)
        return Outcome(rows, {self.array: kept}, tuple(notes))

    def estimates(self, workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
        """The estimates of a finished run again from its sums, by metric and direction."""
        images, arrays = from_npz(workspace.array(run.run_id, self.array))
        found = GroupSums(tuple(images), arrays.pop("label"), arrays.pop("captions"), arrays)
        k = len(run.spec.attribute["values"])
        return {(name, ""): own for name, own in (self.whole(found) | self.differences(found, k)).items()}


def _gap_of(whole: GroupedMetric, source: str) -> Metric:
    own, top = whole.short, whole.range[1] - whole.range[0]
    return Metric(
        f"{whole.name}_gap",
        f"difference in {own} between groups",
        whole.scale,
        zero,
        "neutral",
        (-top, top),
        source,
        f"{own[0].upper()}{own[1:]} on the images of the second value minus {own} on those of the first; of more "
        "values the largest minus the smallest, which is above 0 by chance alone. The images of the groups differ too.",
        digits=whole.digits,
        needs=whole.needs,
        gap_of=whole.name,
    )


def _group_results(job: Job, found: GroupSums, metric: Metric, within: Estimate, method: str) -> list[Result]:
    """The metric on the images of each group that has some."""
    values = job.attribute.values
    groups = zip(values, by_group(within, found.label, len(values)), found.sizes(len(values)), strict=True)
    return [job.result(metric, own, size, method, group=value) for value, own, size in groups if size]


def _gap_text(values: Sequence[str]) -> str:
    return f"{values[1]} minus {values[0]}" if len(values) == 2 else "largest minus smallest value of a group"
