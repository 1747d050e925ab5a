"""Families of runs: what is computed together from the same inputs.

To add one: a file with `run(job) -> Outcome` and `estimates(workspace, run)`, and a row here.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True)
class Family:
    """What is known about a family without importing its file.

    title: what its runs give, in a few words. attacked: it trains the attacker that was asked for. seeded: once for
    each seed that was asked for. objects: it reads the objects of images, where they are known. compares: it needs
    the references of the same images. in_process: light enough for the web server's process (what an attacker needs is
    said in ATTACKERS). options: the keys of `Request.options` that its numbers depend on. seconds: rough, two cores, a
    set of 15,000 captions; the fits of an attacker come on top.
    """

    name: str
    title: str
    attacked: bool = False
    seeded: bool = False
    objects: bool = False
    compares: bool = False
    in_process: bool = True
    options: tuple[str, ...] = ()
    seconds: float = 1.0

    @property
    def module(self):
        """Its file, imported where it is used: some import torch."""
        return import_module(f"capbias_core.experiments.families.{self.name}")


FAMILIES = {
    family.name: family
    for family in (
        Family("attack", "LIC", attacked=True, seeded=True, options=("alignment",), seconds=0.5),
        Family("counting", "ratio and error", seconds=0.3),
        Family("cooccurrence", "BA and DBA", objects=True, compares=True),
        Family(
            "quality", "caption quality and its gaps", compares=True, in_process=False, options=("tokenizer",),
            seconds=60.0,
        ),
        Family("vocabulary", "vocabulary size", seconds=0.3),
        Family("captions", "scores and words of each caption", attacked=True),
    )
}
