"""`explain`: the words that carry the bias of a set, an image or any caption."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

from capbias_core.attackers import ATTACKERS, DEFAULT_ATTACKER, attacker_entry
from capbias_core.cli.inputs import (
    ANSWER,
    INPUTS,
    UNTRAINED,
    WHAT,
    Flags,
    InputFlags,
    Positive,
    ReferencesFlag,
    Training,
    command,
    flag,
    given,
    inputs,
)
from capbias_core.cli.run import outcome, run_all
from capbias_core.cli.terminal import DONE, show
from capbias_core.data import Data, images_in
from capbias_core.errors import CapbiasError
from capbias_core.load.ids import normalise_image_id
from capbias_core.runs.plan import PER_CAPTION, WORDS_COMPARED, load_asked, plan
from capbias_core.views import explain as explained
from capbias_core.views import scored as scored_views
from capbias_core.views import words as word_views
from capbias_core.workspace.store import RunRow

FORMATS = ("table", "json")

app = command(
    "explain",
    """\
  capbias explain sat.json labels.csv --references refs.json --attribute gender
  capbias explain sat.json labels.csv --attribute gender --image 785
  capbias explain sat.json labels.csv --attribute gender \\
    --text "a man with a tie"

An attacker that did not train on the image scores each caption. The contributions of the words and the intercept sum
to the logit. With human captions, each word is compared with them: the same images, equally many captions, and
intervals over seeds and images that hold for all tested words together.""",
)


@dataclass(frozen=True, kw_only=True)
class Explained:
    """What to explain: the whole set, one image or any caption."""

    image: Annotated[str | None, flag("the words of one image's caption", "ID", WHAT)] = None
    text: Annotated[str | None, flag("the words of any caption", "CAPTION", WHAT, allow_leading_hyphen=True)] = None
    top: Annotated[Positive, flag("words per value (default: 20)", "N", ANSWER)] = 20
    min_count: Annotated[Positive, flag("minimum captions with the word (default: 20)", "N", ANSWER)] = 20
    format: Annotated[str, flag("json has all digits (default: table)", None, ANSWER, FORMATS)] = "table"


@app.default
def explain(
    *files: Annotated[str, flag("captions of one captioner, labels, human captions", "FILE", INPUTS)],
    flags: Annotated[InputFlags, Flags],
    references: ReferencesFlag = None,
    question: Annotated[Explained, Flags] = Explained(),
    training: Annotated[Training, Flags] = UNTRAINED,
) -> int:
    """Show the words that carry the bias."""
    chosen = given(training)
    attacker = chosen.get("attacker", DEFAULT_ATTACKER)
    _check(question, attacker)
    options = {name: value for name, value in chosen.items() if name != "attacker"}
    asked = flags.question(
        files, references=references, metrics="error", attacker=attacker, seeds=1, options=options, words=True
    )
    workspace, resolved = inputs(flags, asked)
    if len(resolved.captions) != 1:
        raise CapbiasError(
            f"explain takes one captioner, and here are {len(resolved.captions)}.", "Name one with --captions."
        )
    planned = plan(workspace, resolved)
    spec = next(spec for spec in planned if spec.measure == PER_CAPTION)
    data = load_asked(workspace, resolved)
    image = None if question.image is None else _image(question.image, data)
    of_set = question.image is question.text is None
    compared = [spec for spec in planned if spec.measure == WORDS_COMPARED] if of_set else []
    runs = run_all(workspace, [spec, *compared], resolved.collection)
    code = outcome(runs)
    if code == DONE:
        result, text = _answer(question, image, data, *runs)
        show(json.dumps(result, indent=2) if question.format == "json" else text.rstrip("\n"))
    return code


def _check(question: Explained, attacker: str) -> None:
    """Raises CapbiasError for a wrong question, before an attacker is trained for it."""
    if question.image is not None and question.text is not None:
        raise CapbiasError("--image and --text exclude each other.", "Leave one out.")
    if question.text is not None and not attacker_entry(attacker).rescores:
        able = ", ".join(name for name, entry in ATTACKERS.items() if entry.rescores)
        raise CapbiasError(
            f"{attacker} cannot score other captions, which --text needs.", f"Choose one with --attacker: {able}."
        )


def _image(text: str, data: Data) -> str:
    """The image ID. Raises CapbiasError for an image without a caption or a label."""
    with suppress(ValueError):
        if (image := normalise_image_id(text)) in images_in(data.frame):
            return image
    raise CapbiasError(
        f"{data.captioner} has no caption of the image {text!r} with a label of {data.attribute.name}.",
        "Check the ID, or score the caption with --text.",
    )


def _answer(
    question: Explained, image: str | None, data: Data, run: RunRow, compared: RunRow | None = None
) -> tuple[dict, str]:
    """The answer with all digits, and as text. compared: the run that compared its words with human captions."""
    scores = scored_views.caption_scores(run)
    head = {"captioner": run.spec.model, "attribute": scores.attribute.name, "attacker": run.spec.attacker}
    if question.text is not None:
        scored = explained.scored_text(scores, scored_views.stored_attackers(run), question.text)
        return head | scored, explained.caption_text(scored)
    if image is not None:
        captions = explained.scored_image(scores, data.captions[data.captioner].frame, image)
        return head | {"captions": captions}, "\n".join(map(explained.caption_text, captions))
    table = word_views.words_of_set(run, compared)
    options = word_views.WordsOptions(top=question.top * len(scores.attribute.values), least=question.min_count)
    words, text = explained.words_of_set(scores, table, options)
    return head | words, text
