"""The protocols of the papers: the settings that each paper fixes, and where it says so.

A measure follows the first protocol that lists it, with the fast attacker `ngram` in place of a network. A user who
names a protocol gets its settings as defaults, but for those in NOT_FILLED. Results name each setting that differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from capbias_core.errors import unknown_name
from capbias_core.measures.options import Options
from capbias_core.prepare.align import DELTA
from capbias_core.workspace.models import KINDS
from capbias_core.workspace.vectors import alignment_name

CUSTOM = "custom"
# Compared, but not set: alignment needs a file of vectors, and of the others None or the default means the paper's.
NOT_FILLED = ("alignment", "judge_epochs", "merge_masks", "tokenizer")
CONTEXTUAL = f"contextual (GloVe, {DELTA:g})"


@dataclass(frozen=True)
class Protocol:
    """What a paper fixes. metrics: what is measured if nothing is named. settings: option -> value; `alignment` is
    'constant' or 'contextual'. fixed: what the code of these measures always does. where: sections of the paper."""

    title: str
    measures: tuple[str, ...]
    metrics: tuple[str, ...]
    settings: Mapping[str, Any]
    fixed: str
    where: str


PROTOCOLS = {
    "lic": Protocol(
        "LIC (Hirota et al., CVPR 2022)",
        ("lic", "ratio_error", "bias_amplification", "caption_quality"),
        ("lic", "ratio", "error"),
        {
            "attacker": "lstm_bi",
            "seeds": 10,
            "test_share": 0.1,
            "alignment": "constant",
            "merge_masks": False,
            "tokenizer": "ptb",
        },
        "Values balanced by downsampling, split by image. Each gendered word becomes one mask; race has no words. Adam "
        "5e-5, 20 epochs.",
        "section 5, appendices A.2 and B",
    ),
    "dbac": Protocol(
        "DBAC",
        ("dbac", "dbac_verbs", "lic"),
        ("dbac",),
        {"attacker": "lstm", "seeds": 10, "test_share": 0.2, "alignment": "contextual", "merge_masks": False},
        "All labelled images, not balanced. The sign follows the authors' code; the equations with Q = 1 / "
        "cross-entropy are dbac_equations.",
        "section 5, appendix B",
    ),
    "imagecaptioner2": Protocol(
        "ImageCaptioner2 (Abdelrahman et al., AAAI 2024)",
        ("imagecaptioner2", "vl_lic"),
        ("imagecaptioner2",),
        {"judge": "scratch", "judge_epochs": 40, "prompt": "statement", "test_share": 0.2, "seeds": 10},
        "Values balanced; 70% of the images train, 10% choose the epoch, 20% test. The person is masked on the "
        "photograph, but not for emotion. Adam, batches of 128.",
        "Implementation Details",
    ),
    "age": Protocol(
        "Reproduction of LIC with age (Baratov et al., 2023)",
        ("lic",),
        ("lic",),
        {"attacker": "lstm_bi", "seeds": 3, "test_share": 0.1, "alignment": "constant", "merge_masks": False},
        "As LIC. Age is young if a human caption has a young word, old if only old words.",
        "sections 3.3 to 3.5, appendix A.1",
    ),
    "gender_score": Protocol(
        "Gender Score (Sabir and Padro, 2023)",
        ("object_cooccurrence", "object_distance", "word_distance", "gender_score"),
        ("cooccurrence", "gs"),
        {kind: KINDS[kind][1] for kind in ("language_model", "sentence_encoder")},
        "The three most confident objects of an image, 0.2 or more, without person.",
        "sections 3 and 4",
    ),
}
NAMES = (*PROTOCOLS, CUSTOM)


def protocol_settings(name: str) -> dict[str, Any]:
    """The options that a protocol sets; {} for '' and 'custom'. Raises CapbiasError for an unknown name."""
    if name and name not in NAMES:
        raise unknown_name("protocol", name, NAMES)
    settings = PROTOCOLS[name].settings if name in PROTOCOLS else {}
    return {option: value for option, value in settings.items() if option not in NOT_FILLED}


def protocol_metrics(name: str, usual: tuple[str, ...]) -> tuple[str, ...]:
    """What is measured if no metric is named; usual: without a protocol."""
    return PROTOCOLS[name].metrics if name in PROTOCOLS else usual


def protocol_of(measure: str) -> str:
    """The name of the protocol that a measure follows unless another is named; '' for a measure of no paper."""
    return next((name for name, protocol in PROTOCOLS.items() if measure in protocol.measures), "")


def deviations(name: str, options: Options) -> list[str]:
    """How a run's options differ from a protocol's settings, such as `attacker ngram (paper: lstm_bi)`."""
    differences = []
    for option, wanted in PROTOCOLS[name].settings.items():
        if not hasattr(options, option):
            continue
        given = getattr(options, option)
        if option == "alignment":
            if wanted != "constant" and not given:
                differences.append(f"alignment constant (paper: {CONTEXTUAL})")
            elif wanted == "constant" and given:
                differences.append(f"alignment {alignment_name(given)} (paper: constant)")
        elif given is not None:
            shown = str(given["name"] if isinstance(given, Mapping) else given)  # of a model by its content, its name
            if shown != str(wanted):
                differences.append(f"{option.replace('_', ' ')} {shown} (paper: {wanted})")
    return differences


def protocol_text(measure: str, options: Options) -> str:
    """For the method of a result: the protocol that its measure follows and each deviation; '' without a protocol."""
    name = protocol_of(measure)
    if not name:
        return ""
    differ = deviations(name, options)
    return f"{name} protocol{', but ' + ', '.join(differ) if differ else ''}"
