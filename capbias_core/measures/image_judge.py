"""ImageCaptioner2 (Eq. 2 and 4) and VL-LIC: judges that see the photograph beside the caption."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from capbias_core.aggregate import OVER_SEEDS, Counts, Metric, Needs, by_name
from capbias_core.attackers import ATTACKERS, FROM_SCRATCH, PRETRAINED, attacker_entry, load_attacker
from capbias_core.data import Data, images_in
from capbias_core.errors import CapbiasError, MissingExtra
from capbias_core.language.device import choose_device, device_of, trained_on
from capbias_core.load.photographs import read_photograph
from capbias_core.measures.base import Group, Measure, Outcome
from capbias_core.measures.options import Photographed, Split80, Trained, option
from capbias_core.measures.training import (
    HUMAN,
    MODEL,
    AttackerTrainer,
    amplification,
    caption_lists,
    score,
    unread_notes,
)
from capbias_core.prepare.split import SPLIT, balanced_split, child_seed, random_order
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import Progress, Split
from capbias_core.vision.presets import PROMPTS, STATEMENT, prompted
from capbias_core.whole_files import typed_path
from capbias_core.workspace.models import captioner_option, encoder_option, named_file, register_model
from capbias_core.workspace.photographs import ORIGINALS, writer_of
from capbias_core.workspace.spec import WITH_REFERENCES, ModelReference

_PAPER = "Abdelrahman et al., AAAI 2024"
LEAST_TO_TRAIN = 40  # images of every value: fewer leave less than 8 to test on
FEW_IMAGES = 2000
PICTURE_SIZE = 64
LOOK, JUDGE = 0.1, 0.9  # shares of a run's time: decoding photographs, then the judges
READERS = 4
AT_ONCE = 64  # photographs decoded before any is handed on; a run that is cancelled stops between
# Attributes that are read from the whole picture, so that ImageCaptioner2 masks none of it.
OF_WHOLE_PICTURES = ("emotion",)
UNMASKED = "unmasked"  # in results, photographs that show the person
READ = {MODEL: "the model's captions", HUMAN: "the human captions"}


@dataclass(frozen=True)
class JudgeTraining(Split80, Trained, Photographed):
    """Choices of a measure whose judge sees the photographs; None for the usual."""

    picture_size: int | None = option(
        None,
        f"pixels per side of the pictures that a judge is trained on (default: {PICTURE_SIZE}; 224 for a backbone)",
        flag="--picture-size",
        at_least=1,
        metavar="PIXELS",
    )
    judge_epochs: int | None = option(
        None,
        "epochs of a judge's training (default: 40); a captioner of transformers is asked as it is",
        flag="--judge-epochs",
        at_least=1,
        metavar="N",
    )


def three_metrics(name: str, title: str, source: str, column: str, what: str) -> tuple[Metric, ...]:
    """Amplification, and the scores of both sides whose difference it is. column: of `Guesses.counts`. what: the first
    sentence on each."""
    explanation = (
        f"{what} Of the model's captions minus of the human ones: above 0, the photograph and the model's caption tell "
        "more of the labelled value than the photograph and a human caption do."
    )
    of_model, of_human = f"{what} On the model's masked captions.", f"{what} On the masked human captions."
    return (
        amplification(name, f"{title}, bias amplification", source, explanation, column),
        score(f"{name}_M", f"{title} of the model's captions", source, of_model, column),
        score(f"{name}_D", f"{title} of the human captions", source, of_human, column, HUMAN),
    )


# Photographs of the images, and what a trained judge sees of them (`small_pictures`), to the judge, an attacker; what
# the method says; and columns of its rows, encoder among them.
Make = Callable[[tuple[Path, ...], np.ndarray], tuple[Any, str, dict[str, str]]]


def judged(
    data: Data,
    options: Any,
    progress: Progress,
    make: Make,
    mask: Callable[[Tokens], Sequence[str]],
    size: int = 0,
    look: Callable | None = None,
) -> Outcome:
    """A judge for each seed and caption index on the model's captions and, if there are any, the human ones.

    mask: tokens to what is read. size: pixels per side of what a trained judge sees, 0 for a judge that is not trained
    and reads the files. look: see `small_pictures`. Raises CapbiasError if no captioned image has a photograph, or
    there are too few to train on, before any is decoded.
    """
    photographs, captioned = data.sources.photographs(options.photographs), images_in(data.frame)
    sides = {MODEL: (data.frame, data.tokens)}
    if data.human is not None:
        sides[HUMAN] = data.human, data.tokens
        captioned &= images_in(data.human)
    shown = sorted(captioned & set(photographs))
    if not shown:
        raise CapbiasError(
            f"No photograph, such as {', '.join(sorted(photographs)[:3])}, is of the {len(captioned):,} captioned "
            "images.",
            "Photographs must be named by the image IDs of the captions.",
        )
    k, sight, refused = len(data.attribute.values), np.empty(0), {}
    if size:
        counts = np.bincount(data.codes(shown), minlength=k)
        if counts.min() < LEAST_TO_TRAIN:
            each = ", ".join(f"{value} {count:,}" for value, count in zip(data.attribute.values, counts, strict=True))
            raise CapbiasError(
                f"A judge needs {LEAST_TO_TRAIN} labelled photographs with captions of each value to train on, but of "
                f"the {len(shown):,} there are {each}.",
                "Load more photographs, or use a pretrained captioner, which is not trained.",
                "judge",
            )
        files = {image: photographs[image] for image in shown}
        sight, refused = small_pictures(files, size, lambda share, text: progress(LOOK * share, text), look)
    images = [image for image in shown if image not in refused]
    y = data.codes(images)
    judge, method, columns = make(tuple(photographs[image] for image in images), sight)
    lists = {side: caption_lists(frame, mask(tokens(frame)), images, y, k) for side, (frame, tokens) in sides.items()}
    splits = _splits(options, images, y, k, bool(size))
    fits = len(splits) * sum(map(len, lists.values()))

    def judging(share: float, text: str) -> None:
        progress(LOOK + JUDGE * share, text)

    trainer = AttackerTrainer(judge, k, y, tuple(images), judging, fits, sees_images=True)
    parts = [trainer.held_out(each, splits, READ[side]).counts(side) for side, each in lists.items()]

    train, test = len(splits[0].train), len(splits[0].test)
    of_set, notes, differs = photographs_shown(data.attribute.name, options.photographs["name"]), [], []
    if lacking := len(captioned) - len(shown):
        notes.append(f"{lacking:,} of {len(captioned):,} labelled images with captions have no photograph.")
    if refused:
        notes.append(f"{len(refused):,} photographs left out, such as {'; '.join(list(refused.values())[:3])}.")
    notes += [note for side in lists for note in unread_notes(READ[side], lists[side])]
    if of_set == UNMASKED:
        differs = ["photographs unmasked (paper: the person masked)"]
        notes.append(
            f"The photographs are not masked: they show the person, so the judge sees {data.attribute.name} itself. "
            "The paper masks them. Mask photographs first, and name the masked ones."
        )
    if not size:
        differs = ["no training (paper: 40 epochs on 70% of the images)", *differs]
    else:
        notes.append(
            f"{train:,} images to train on, an eighth of them set aside to choose the epoch, and {test:,} to "
            "test, equally many of every value."
        )
        if train + test < FEW_IMAGES:
            notes.append(
                f"Few images: {train + test:,} after balancing, where the paper has some 6,600. Expect wide "
                "intervals, and a judge that learns little."
            )
    if data.coverage == WITH_REFERENCES:
        of = f"Only {len(images):,} of the {len(data.labels):,} labelled images"
        notes.append(f"{of} have captions, references and a photograph.")
    method = f"{f'{train}/{test}' if size else test} balanced images; {method}; {OVER_SEEDS}"
    rows: dict[str, Any] = {"method": method, "n": test, "photographs": of_set, "differs": differs, **columns}
    return Outcome(Counts.merge(parts), rows, notes)


def small_pictures(
    files: Mapping[str, Path], size: int, tick: Progress, look: Callable[[np.ndarray], np.ndarray] | None = None
) -> tuple[np.ndarray, dict[str, str]]:
    """Every photograph as a square of `size` pixels a side, its sides stretched: (n, 3, size, size) uint8, by image id,
    without broken ones; and why those are left out, by image. look: makes (n, d) vectors of some pictures, so that only
    those are kept."""

    def small(image: str) -> np.ndarray | CapbiasError:
        try:
            pixels = read_photograph(files[image])
        except MissingExtra:
            raise
        except CapbiasError as error:
            return error
        from PIL import Image

        picture = Image.fromarray(pixels).resize((size, size), Image.Resampling.BILINEAR)
        return np.asarray(picture).transpose(2, 0, 1)

    images, parts, refused = sorted(files), [np.empty((0, 3, size, size), np.uint8)], {}
    with ThreadPoolExecutor(READERS) as pool:
        for start in range(0, len(images), AT_ONCE):
            part = images[start : start + AT_ONCE]
            tick(start / len(images), f"photograph {start + 1:,} of {len(images):,}")
            read = dict(zip(part, pool.map(small, part), strict=True))
            refused |= {image: result.message for image, result in read.items() if isinstance(result, CapbiasError)}
            if pixels := [result for result in read.values() if not isinstance(result, CapbiasError)]:
                parts.append(look(np.stack(pixels)) if look else np.stack(pixels))
    return np.concatenate(parts[1:] or parts), refused


def _splits(options: Any, images: list[str], y: np.ndarray, k: int, trained: bool) -> list[Split]:
    """One split per seed, balanced: the judge sets an eighth of the training images aside; without training all are
    tested, as many of every value."""
    if trained:
        return [balanced_split(y, k, seed, options.test_share, images) for seed in options.seed_numbers]
    least = np.bincount(y, minlength=k).min()
    if not least:
        raise CapbiasError("One of the values has no labelled photograph.", "Load photographs of each value.")
    splits = []
    for seed in options.seed_numbers:
        order = random_order(images, child_seed(seed, SPLIT))
        held = np.concatenate([order[y[order] == value][:least] for value in range(k)])
        splits.append(Split(seed=seed, train=np.empty(0, dtype=int), test=np.sort(held)))
    return splits


def photographs_shown(attribute: str, name: str) -> str:
    """How results call the photographs: the name of the masked ones, `unmasked`, or '' if none need be masked."""
    if name != ORIGINALS:
        return name
    return "" if attribute in OF_WHOLE_PICTURES else UNMASKED


# ImageCaptioner2: a captioning model is asked for the labelled value

# Judges that are no captioner by name: one trained from scratch, and the captioner that wrote each set.
SCRATCH, SELF = "scratch", "self"
SAT = "sat"  # as the paper calls the judge from scratch

METRICS = by_name(
    *three_metrics(
        "imagecaptioner2",
        "ImageCaptioner²",
        f"{_PAPER}, Eq. 2 and 4",
        "truth",
        "Mean probability that a captioning model, shown the photograph and the masked caption, gives to the labelled "
        "answer.",
    ),
    *three_metrics(
        "imagecaptioner2_lic",
        "ImageCaptioner² scored as LIC",
        f"{_PAPER}, Eq. 4",
        "sure",
        "The same judge: its probability where its answer is right, 0 where it is wrong.",
    ),
    *three_metrics(
        "imagecaptioner2_leakage",
        "ImageCaptioner² scored as leakage",
        f"{_PAPER}, Eq. 4",
        "right",
        "The same judge: how often its answer is right.",
    ),
)


@dataclass(frozen=True)
class ImageCaptioner2Options(JudgeTraining):
    """Choices of ImageCaptioner2. judge: SCRATCH, or a captioner by its content."""

    judge: str | ModelReference = option(
        SCRATCH,
        f"the model that judges: {SCRATCH} (Show, Attend and Tell, trained here), a captioner of transformers (preset, "
        f"folder or name), or {SELF} (the captioner that wrote each set)",
        flag="--judge",
        metavar="NAME_OR_FOLDER",
    )
    own_judge: bool = option(False, "whether the judge is the captioner that wrote the set")
    prompt: str = option(STATEMENT, "how the answer is asked for", flag="--prompt", choices=tuple(PROMPTS))

    def effective(self) -> ImageCaptioner2Options:
        """Without choices of a training if the judge is a captioner, which is not trained."""
        chosen = super().effective()
        untrained = {"judge_epochs": None, "picture_size": None}
        return chosen if chosen.judge == SCRATCH else replace(chosen, **untrained)


def freeze_judge(options: ImageCaptioner2Options, data: Data) -> ImageCaptioner2Options:
    """A pretrained judge by its content. Raises CapbiasError for a captioner that is not on this machine."""
    judge = options.judge or SCRATCH
    return options.with_(judge=judge if judge in (SCRATCH, SELF) else captioner_option(data.sources, judge))


def count_asked(data: Data, options: Any, progress: Progress) -> Outcome:
    """ImageCaptioner2: the judge is trained here, or a captioner that is asked as it is."""
    prompt = "" if options.prompt == STATEMENT else options.prompt  # results name an unusual one

    def asked(files: tuple[Path, ...], sight: np.ndarray) -> tuple[Any, str, dict[str, str]]:
        from capbias_core.vision.captioners import Captioner
        from capbias_core.vision.judges import AskedJudge

        captioner = Captioner(data.sources.model(options.judge).path, options.device)
        name = f"{options.judge['name']} {options.judge['digest'][:8]}"
        method = f"captioner {name}, asked as it is, {captioner.numbers}; prompt {options.prompt}"
        columns = {"encoder": SELF if options.own_judge else options.judge["name"], "prompt": prompt}
        return AskedJudge(captioner, files, data.attribute, options.prompt), method, columns

    if options.judge != SCRATCH:
        return judged(data, options, progress, asked, data.masked)

    size = options.picture_size or PICTURE_SIZE

    def scratch(files: tuple[Path, ...], sight: np.ndarray) -> tuple[Any, str, dict[str, str]]:
        from capbias_core.vision.judges import ScratchJudge

        epochs = options.judge_epochs or ScratchJudge.epochs
        judge = ScratchJudge(epochs=epochs, device=options.device, sight=sight)
        method = (
            f"Show, Attend and Tell from scratch, {epochs} epochs, pictures of {size} x {size}; prompt "
            f"{options.prompt}{trained_on(judge, options.deterministic)}"
        )
        return judge, method, {"encoder": SAT, "prompt": prompt, "device": device_of(judge)}

    def mask(tokens: Tokens) -> list[str]:
        return [prompted(caption, data.attribute, options.prompt) for caption in data.masked(tokens)]

    return judged(data, options, progress, scratch, mask, size)


# VL-LIC: LIC with a classifier that sees the photograph beside the caption

TEXT = "lstm_bi"  # LIC's
CNN = "cnn"
BACKBONE_SIZE = 224  # pixels a side on which torchvision's weights were trained


VL_LIC_METRICS = by_name(
    *three_metrics(
        "vl_lic",
        "VL-LIC",
        "Abdelrahman et al., AAAI 2024, section Multi-Modal Classifier",
        "sure",
        "LIC with a classifier that sees the photograph beside the masked caption: its confidence where it is right, 0 "
        "where it is wrong.",
    )
)


@dataclass(frozen=True)
class VLLICOptions(JudgeTraining):
    """Choices of VL-LIC. backbone: None for a small network from scratch, or a classifier of torchvision."""

    backbone: ModelReference | str | None = option(
        None,
        "a torchvision classifier with its weights (default: a small network, trained here)",
        flag="--backbone",
        metavar="NAME=FILE",
    )
    text_encoder: str | ModelReference = option(
        TEXT,
        f"one of: {', '.join(FROM_SCRATCH)}; or a pretrained encoder, as an attacker is",
        flag="--text-encoder",
        metavar="NAME",
    )
    text_attacker: str = option("", "the attacker that reads captions with the pretrained text encoder")


def freeze_encoders(options: VLLICOptions, data: Data) -> VLLICOptions:
    """Pretrained models by their content. Raises CapbiasError where one is not on this machine."""
    text = options.text_encoder or TEXT
    if isinstance(text, str) and text in ATTACKERS and text not in FROM_SCRATCH and text not in PRETRAINED:
        raise CapbiasError(
            f"The text encoder {text} is no network.",
            f"Choose one of {', '.join(FROM_SCRATCH)}, or a pretrained encoder; {TEXT} is the default.",
        )
    attacker = options.text_attacker
    if isinstance(text, str) and text not in FROM_SCRATCH:
        entry = attacker_entry(text)
        text, attacker = encoder_option(data.sources, entry), entry.name if entry.name in ATTACKERS else ""
    backbone = options.backbone
    if isinstance(backbone, str) and backbone:
        name, _, file = backbone.partition("=")
        if not file:
            raise CapbiasError(
                f"The backbone {backbone!r} needs its weights, as NAME=FILE, such as resnet50=resnet50.pth.",
                "Download them with torchvision, on another computer if this one has no network, and give the file.",
            )
        backbone = register_model(data.sources, named_file(name, typed_path(file)))
    return options.with_(text_encoder=text, text_attacker=attacker, backbone=backbone or None)


def count_joint(data: Data, options: Any, progress: Progress) -> Outcome:
    """VL-LIC: the judge is a classifier on vectors of the photograph and of the caption."""
    from capbias_core.vision.judges import JointJudge, backbone

    model, text, device, look = options.backbone, options.text_encoder, options.device, None
    size = options.picture_size or (BACKBONE_SIZE if model else PICTURE_SIZE)
    if model:
        look = backbone(model["name"], Path(data.sources.model(model).path), choose_device(device))

    def embed(captions: Sequence[str]) -> np.ndarray:
        """(n, d) vectors by the frozen text encoder, stored with those of attackers."""
        files = data.sources.model(text)
        attacker = load_attacker(options.text_attacker or files.path, device, files, data.embeddings)
        corpus: Any = attacker.corpus(list(captions))
        return corpus.vectors(lambda _share, text: progress(LOOK, text)).cpu().numpy()[corpus.copy_of]

    def joint(files: tuple[Path, ...], sight: np.ndarray) -> tuple[Any, str, dict[str, str]]:
        epochs = options.judge_epochs or JointJudge.epochs
        judge = JointJudge(epochs=epochs, device=device, sight=sight)
        frozen, reads = ["backbone"] if model else [], text
        if isinstance(text, str):
            judge = replace(judge, text=load_attacker(text))
        else:
            judge, reads = replace(judge, embed=embed), text["name"]
            frozen.append("text encoder")
        how = f"; {' and '.join(frozen)} frozen" if frozen else ""
        method = f"{judge.epochs} epochs, pictures of {size} x {size}{how}{trained_on(judge, options.deterministic)}"
        columns = {"encoder": f"{model['name'] if model else CNN} + {reads}", "device": device_of(judge)}
        return judge, method, columns

    return judged(data, options, progress, joint, data.masked, size, look)


MEASURES = (
    Measure(
        name="imagecaptioner2",
        title="ImageCaptioner²",
        position=15,
        metrics=tuple(METRICS.values()),
        groups=(Group("imagecaptioner2", "ImageCaptioner²", tuple(METRICS)),),
        options=ImageCaptioner2Options,
        needs=Needs(references="optional", photographs=True),
        seconds=5_000.0,
        count=count_asked,
        version=4,
        freeze=freeze_judge,
        for_set=lambda options, captions: (  # the captioner that wrote a set, if that is asked for
            options.with_(judge=writer_of(captions, "judge"), own_judge=True) if options.judge == SELF else options
        ),
        in_process=False,
        packages=("torch", "PIL"),
    ),
    Measure(
        name="vl_lic",
        title="VL-LIC",
        position=16,
        metrics=tuple(VL_LIC_METRICS.values()),
        groups=(Group("vl_lic", "VL-LIC", tuple(VL_LIC_METRICS)),),
        options=VLLICOptions,
        needs=Needs(references="optional", photographs=True),
        seconds=3_000.0,
        count=count_joint,
        version=4,
        freeze=freeze_encoders,
        in_process=False,
        packages=("torch", "PIL"),
    ),
)
