"""Options of `score` for metrics whose judge sees the photographs: ImageCaptioner2 and VL-LIC."""

from __future__ import annotations

from capbias_core.measures.base import SELF
from capbias_core.measures.imagecaptioner2 import SCRATCH
from capbias_core.measures.vl_lic import FROM_SCRATCH, TEXT
from capbias_core.vision.prompts import PROMPTS, STATEMENT


def add_score_arguments(command, positive) -> None:
    """The options. positive: the reader of whole numbers."""
    group = command.add_argument_group(
        "judges that see the photographs (imagecaptioner2, vl_lic)",
        "The paper masks the person first (command mask). Nothing is fetched.",
    )
    where = "a folder of photographs, named by image id; with --collection, the name of kept ones, such as masked ones"
    group.add_argument("--photographs", metavar="FOLDER", help=where)
    judge = f"imagecaptioner2: {SCRATCH} (default: Show, Attend and Tell, trained here), a captioner of transformers "
    judge += f"(preset, folder or name), or {SELF}, the captioner that wrote each set"
    group.add_argument("--judge", metavar="NAME_OR_FOLDER", help=judge)
    group.add_argument("--prompt", choices=tuple(PROMPTS), help=f"how the answer is asked for (default: {STATEMENT})")
    backbone = "vl_lic: a torchvision classifier with its weights (default: a small network, trained here)"
    group.add_argument("--backbone", metavar="NAME=FILE", help=backbone)
    known = f"vl_lic: one of: {', '.join(FROM_SCRATCH)}; or a pretrained encoder, as an attacker is (default: {TEXT})"
    group.add_argument("--text-encoder", metavar="NAME", help=known)
    size = "pixels a side of the pictures that a judge is trained on (default: 64; 224 for --backbone)"
    group.add_argument("--picture-size", type=positive, metavar="PIXELS", help=size)
    epochs = "epochs of a judge's training (default: 40; a captioner of transformers is asked as it is)"
    group.add_argument("--judge-epochs", type=positive, metavar="N", help=epochs)
