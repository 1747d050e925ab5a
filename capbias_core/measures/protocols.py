"""The protocols of the papers: the settings that each paper fixes, and where it says so.

A measure follows the protocol that was chosen if that lists the measure, else the first one that lists it, with the
fast attacker `ngram` in place of a network. A chosen protocol sets options that are not given, but for those in
NOT_FILLED. Results name their protocol and each deviation from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from capbias_core.errors import unknown_name
from capbias_core.prepare.align import DELTA
from capbias_core.workspace.models import KINDS
from capbias_core.workspace.vectors import alignment_name

CUSTOM, BUT = "custom", ", but "
# What the code of a measure does, whatever its options are.
CODE = {"lic": {"images": "balanced"}}
# Compared, but not set: the code fixes them, they need files, or their default means the paper's.
NOT_FILLED = (*("images", "alignment", "backbone", "text_encoder"), *("judge_epochs", "merge_masks", "tokenizer"))
CONTEXTUAL = f"contextual (GloVe, {DELTA:g})"
UNNAMED = {"backbone": "small network from scratch"}  # what None means where it is not the paper's


@dataclass(frozen=True)
class Protocol:
    """What a paper fixes."""

    title: str  # the paper
    measures: tuple[str, ...]  # names of the measures that follow it
    metrics: tuple[str, ...]  # measured if nothing is named
    # Option, or fact in CODE -> value; a tuple starts with the value that is set, and the others are the paper's too.
    # `alignment` is 'constant' or 'contextual'.
    settings: Mapping[str, Any]
    fixed: str  # what the code of these measures always does
    where: str  # sections of the paper


ENCODERS = ("lstm_bi", "bert_ft", "bert_pre")  # of LIC and of its reproduction
DBAC_ENCODERS = (
    *("lstm", "lstm_bi", "rnn", "rnn_bi", "transformer_1h", "transformer_5h"),
    *("minilm", "mpnet", "distilroberta", "distilbert"),
)
PROTOCOLS = {
    "lic": Protocol(
        "LIC (Hirota et al., CVPR 2022)",
        ("lic", "ratio_error", "bias_amplification", "caption_quality"),
        ("lic", "ratio", "error"),
        {
            "images": "balanced",
            "attacker": ENCODERS,
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
        "DBAC (Nair et al., arXiv:2503.07878)",
        ("dbac", "lic"),
        ("dbac",),
        {
            "images": "not balanced",
            "attacker": DBAC_ENCODERS,
            "test_share": 0.2,
            "alignment": "contextual",
            "merge_masks": False,
        },
        "All labelled images. The paper does not print its seeds, epochs and batches. The sign follows the "
        "authors' code; the equations with Q = 1 / cross-entropy are dbac_equations.",
        "section 5, appendix B",
    ),
    "imagecaptioner2": Protocol(
        "ImageCaptioner² (Abdelrahman et al., AAAI 2024)",
        ("imagecaptioner2", "vl_lic"),
        ("imagecaptioner2",),
        {
            "judge": "scratch",
            "judge_epochs": 40,
            "prompt": "statement",
            "test_share": 0.2,
            "backbone": "resnet50",
            "text_encoder": ("bert", "bert-base-uncased", "bert_ft", "bert_pre"),
        },
        "Values balanced; 70% of the images train, 10% choose the epoch, 20% test. The person is masked on the "
        "photograph, but not for emotion. Adam, batches of 128. The paper does not print how many seeds it uses.",
        "Implementation Details, Multi-Modal Classifier",
    ),
    "age": Protocol(
        "Reproduction of LIC with age (Baratov et al., 2023)",
        ("lic",),
        ("lic",),
        {
            "images": "balanced",
            "attacker": ENCODERS,
            "seeds": 3,
            "test_share": 0.1,
            "alignment": "constant",
            "merge_masks": False,
        },
        "As LIC. Age is young if a human caption has a young word, old if only old words. NIC+ and NIC+Equalizer have "
        "more seeds for gender.",
        "sections 3.3 to 3.5, appendix A.1",
    ),
    "gender_score": Protocol(
        "Gender Score (Sabir and Padró, 2023)",
        ("object_cooccurrence", "object_distance", "word_distance", "gender_score"),
        ("cooccurrence", "gs"),
        {kind: KINDS[kind][1] for kind in ("language_model", "sentence_encoder")},
        "The three most confident objects of an image, 0.2 or more, without person.",
        "sections 3 and 4",
    ),
}
NAMES = (*PROTOCOLS, CUSTOM)


def protocol_settings(name: str) -> dict[str, Any]:
    """The options that a protocol sets, and its name for the method of results; {} for ''. Raises CapbiasError for an
    unknown name."""
    if not name:
        return {}
    if name not in NAMES:
        raise unknown_name("protocol", name, NAMES)
    settings = PROTOCOLS[name].settings if name in PROTOCOLS else {}
    first = {option: _several(value)[0] for option, value in settings.items() if option not in NOT_FILLED}
    return first | {"protocol": name}


def protocol_metrics(name: str, usual: tuple[str, ...]) -> tuple[str, ...]:
    """What is measured if no metric is named; usual: without a protocol."""
    return PROTOCOLS[name].metrics if name in PROTOCOLS else usual


def protocol_of(measure: str, chosen: str = "") -> str:
    """The name of the protocol that a measure follows: the chosen one if it lists the measure, else the first that
    does. '' for a measure of no paper, and if `custom` was chosen."""
    able = [name for name, protocol in PROTOCOLS.items() if measure in protocol.measures]
    if chosen == CUSTOM:
        return ""
    return chosen if chosen in able else next(iter(able), "")


def chosen_beside_usual(measure: str, chosen: str) -> str:
    """The protocol that was chosen if the measure's results differ by its name, else '', so that it makes no run
    anew."""
    return chosen if protocol_of(measure, chosen) != protocol_of(measure) else ""


def deviations(name: str, measure: str, options: Any) -> list[str]:
    """How a run of a measure differs from a protocol, such as `attacker ngram (paper: lstm_bi)`. options: of the
    measure."""
    differences = ["shuffled captions or labels"] if getattr(options, "shuffled", False) else []
    for option, wanted in PROTOCOLS[name].settings.items():
        code = CODE.get(measure, {})
        if option not in code and not hasattr(options, option):
            continue
        given: Any = code.get(option) or getattr(options, option, None)
        if option == "alignment":
            if wanted != "constant" and not given:
                differences.append(f"alignment constant (paper: {CONTEXTUAL})")
            elif wanted == "constant" and given:
                differences.append(f"alignment {alignment_name(given)} (paper: constant)")
            continue
        # Of a model by its content the name; None is the paper's unless UNNAMED says what it is.
        shown = given["name"] if isinstance(given, Mapping) else UNNAMED.get(option) if given is None else given
        if shown is not None and str(shown) not in map(str, _several(wanted)):
            differences.append(f"{option.replace('_', ' ')} {shown} (paper: {_several(wanted)[0]})")
    return differences


def _several(value: Any) -> tuple:
    return value if isinstance(value, tuple) else (value,)


def protocol_text(measure: str, options: Any, differs: Sequence[str] = ()) -> str:
    """For the method of a result: the protocol that its measure follows and each deviation; '' without a protocol.
    differs: deviations that depend on the data or the metric, as `deviations` writes them."""
    name = protocol_of(measure, options.protocol)
    if not name:
        return ""
    differ = [*deviations(name, measure, options), *differs]
    return f"{name} protocol{BUT + ', '.join(differ) if differ else ''}"


def protocol_in(method: str) -> tuple[str, str]:
    """The protocol and the deviations that the method of a result ends with, as `protocol_text` writes them.

    >>> protocol_in("9/1 images; lic protocol, but seeds 3 (paper: 10)")
    ('lic', 'seeds 3 (paper: 10)')
    """
    named, _, differ = method.rpartition("; ")[2].partition(BUT)
    return named.removesuffix(" protocol") if named.endswith(" protocol") else "", differ
