"""Families of runs: what is computed together from the same inputs.

To add one: a file with `run(job) -> Outcome` and `estimates(workspace, run)`, and a row here.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

MODULE = {
    "attack": "lic",
    "counting": "ratio_error",
    "cooccurrence": "bias_amplification",
    "combinations": "multi",
    "predictability": "dpa",
    "quality": "caption_quality",
    "naming": "naming_ratio",
    "judge": "imagecaptioner2",
    "captions": "caption_scores",
    "reading": "encoder_view",
}


@dataclass(frozen=True)
class Family:
    """What is known about a family without importing its file.

    title: what its runs give, in a few words. attacked: it trains the attacker that was asked for. seeded: once for
    each seed that was asked for. both_sides: it scores the model's captions and, where there are any, the human ones of
    the same images. objects: it reads the objects of images, where they are known. compares: it needs the references of
    the same images. in_process: light enough for the web server's process (what an attacker needs is said in
    ATTACKERS). photographs: it reads the photographs of images. people: it reads where people are on them. makes: the
    kind of item that it makes, for a run that leaves no numbers (see runs/artifact_runs.py). options: the keys of
    `Request.options` that its numbers depend on. freezes: `freeze` of its file turns options that name files into ones
    that name their content. seconds: rough, two cores, a set of 15,000 captions, ten seeds where it is seeded; the
    attackers come on top, each fit `work` times one of LIC (see runs/cost.py).
    """

    name: str
    title: str
    attacked: bool = False
    seeded: bool = False
    both_sides: bool = False
    objects: bool = False
    compares: bool = False
    in_process: bool = True
    photographs: bool = False
    people: bool = False
    makes: str = ""
    options: tuple[str, ...] = ()
    freezes: bool = False
    seconds: float = 1.0
    work: float = 1.0

    @property
    def module(self):
        """Its file, imported where it is used: some import torch."""
        return import_module(f"capbias_core.measures.{MODULE.get(self.name, self.name)}")


FAMILIES = {
    family.name: family
    for family in (
        Family(
            "attack",
            "LIC",
            attacked=True,
            seeded=True,
            both_sides=True,
            options=("alignment", "device", "deterministic"),
            seconds=0.5,
        ),
        Family("counting", "ratio and error", seconds=0.3),
        Family("cooccurrence", "BA and DBA", objects=True, compares=True),
        Family(
            "quality",
            "caption quality and its gaps",
            compares=True,
            in_process=False,
            options=("tokenizer",),
            seconds=40.0,
        ),
        Family("vocabulary", "vocabulary size", seconds=0.3),
        Family("combinations", "Multi", objects=True, compares=True),
        Family("predictability", "DPA", seeded=True, objects=True, compares=True, seconds=6.0),
        Family(
            "dbac",
            "DBAC",
            attacked=True,
            seeded=True,
            objects=True,
            compares=True,
            options=("alignment", "device", "deterministic"),
            work=4.0,
        ),
        Family("alignment", "vocabulary alignment", compares=True, options=("alignment",), seconds=40.0),
        Family(
            "object_cooccurrence",
            "objects and values named together",
            objects=True,
            options=("objects_from", "object_words"),
        ),
        Family("naming", "values named, over the human captions", compares=True),
        Family(
            "object_distance",
            "Gender Object Distance",
            objects=True,
            in_process=False,
            freezes=True,
            seconds=100.0,
            options=("objects_from", "object_words", "sentence_encoder", "forms"),
        ),
        Family(
            "word_distance",
            "Gender Object Distance of words",
            objects=True,
            in_process=False,
            freezes=True,
            seconds=30.0,
            options=("objects_from", "object_words", "word_vectors", "forms"),
        ),
        Family(
            "gender_score",
            "Gender Score",
            objects=True,
            in_process=False,
            freezes=True,
            seconds=900.0,
            options=(
                "objects_from",
                "object_words",
                "confidence",
                "language_model",
                "masked_model",
                "sentence_encoder",
                "forms",
            ),
        ),
        Family(
            "attribution",
            "what words rest on in photographs",
            in_process=False,
            photographs=True,
            people=True,
            options=("captioner", "map", "most_images", "device"),
            freezes=True,
            seconds=30_000.0,
        ),
        Family(
            "detect",
            "people and objects on photographs",
            in_process=False,
            makes="boxes",
            options=("weights", "confidence"),
            seconds=3_000.0,
        ),
        Family(
            "mask",
            "masked photographs",
            makes="images",
            options=("people", "condition", "fill", "fraction", "whose", "departures", "only_masked", "labelled"),
            seconds=600.0,
        ),
        Family(
            "caption",
            "captions of photographs",
            in_process=False,
            makes="captions",
            options=("captioner", "condition", "beams", "length", "batch", "device"),
            seconds=40_000.0,
        ),
        Family(
            "judge",
            "ImageCaptioner²",
            seeded=True,
            both_sides=True,
            photographs=True,
            in_process=False,
            options=("judge", "prompt", "picture_size", "judge_epochs", "device", "deterministic"),
            freezes=True,
            seconds=50_000.0,
        ),
        Family(
            "vl_lic",
            "VL-LIC",
            seeded=True,
            both_sides=True,
            photographs=True,
            in_process=False,
            options=("backbone", "text_encoder", "picture_size", "judge_epochs", "device", "deterministic"),
            freezes=True,
            seconds=30_000.0,
        ),
        Family("captions", "scores and words of each caption", attacked=True, options=("device", "deterministic")),
        Family(
            "reading",
            "how an encoder reads some captions",
            attacked=True,
            options=("device", "deterministic", "images"),
            seconds=0.5,
        ),
    )
}
