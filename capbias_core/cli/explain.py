"""`explain`: the words that carry the bias of a set, an image or any caption, the effect of edits, and attention."""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

from capbias_core.attackers import ATTACKERS, DEFAULT_ATTACKER, attacker_entry
from capbias_core.attackers.what_if import apply_edit, parse_edit
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
from capbias_core.cli.terminal import DONE, say, show
from capbias_core.data import Data, images_in
from capbias_core.errors import CapbiasError, flag_name
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
  capbias explain sat.json labels.csv --attribute gender \\
    --words "man -> person" "umbrella -> bat | ball"
  capbias explain sat.json labels.csv --attribute gender \\
    --image 785 --attacker minilm --attention

An attacker that did not train on the image scores each caption. The contributions of the words and the intercept sum
to the logit. With human captions, each word is compared with them: the same images, equally many captions, and
intervals over seeds and images that hold for all tested words together.""",
)


@dataclass(frozen=True, kw_only=True)
class Explained:
    """What to explain: the whole set, one image or any caption."""

    image: Annotated[str | None, flag("the words of one image's caption", "ID", WHAT)] = None
    text: Annotated[str | None, flag("the words of any caption", "CAPTION", WHAT, allow_leading_hyphen=True)] = None
    words: Annotated[list[str] | None, flag('edits of the whole set, such as "man -> person"', "EDIT", WHAT)] = None
    attention: Annotated[
        bool,
        flag(
            "with --image and a Transformer or pretrained encoder: attention between its words, from an "
            "attacker trained on the other images; all layers and heads as json",
            group=WHAT,
        ),
    ] = False
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
    """Show the words that carry the bias, and the effect of edits."""
    chosen = given(training)
    attacker = chosen.get("attacker", DEFAULT_ATTACKER)
    _check(question, attacker)
    edits = [(word, new) for word, replacements in map(parse_edit, question.words or ()) for new in replacements]
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
    _check_words(dict.fromkeys(word for word, _ in edits), data)
    if question.attention and image:
        spec = scored_views.plan_encoder_view(workspace, spec, attacker, [image], chosen)
    of_set = question.image is question.text is None and not edits
    compared = [spec for spec in planned if spec.measure == WORDS_COMPARED] if of_set else []
    runs = run_all(workspace, [spec, *compared], resolved.collection)
    code = outcome(runs)
    if code == DONE:
        result, text = _answer(question, image, edits, data, *runs)
        show(json.dumps(result, indent=2) if question.format == "json" else text.rstrip("\n"))
    return code


def _check(question: Explained, attacker: str) -> None:
    """Raises CapbiasError for a wrong question, before an attacker is trained for it."""
    asked = [flag_name(name) for name in ("image", "text", "words") if getattr(question, name) is not None]
    if len(asked) > 1:
        raise CapbiasError(f"{' and '.join(asked)} exclude each other.", "Leave one out.")
    if question.attention and question.image is None:
        raise CapbiasError("--attention needs --image.")
    entry = attacker_entry(attacker)
    if not entry.rescores and asked and asked != ["--image"]:
        able = ", ".join(name for name, entry in ATTACKERS.items() if entry.rescores)
        raise CapbiasError(
            f"{attacker} cannot score other captions, which {asked[0]} needs.", f"Choose one with --attacker: {able}."
        )
    if question.attention and not entry.attends:
        able = ", ".join(name for name, entry in ATTACKERS.items() if entry.attends)
        raise CapbiasError(
            f"{attacker} has no attention.", f"Choose one with --attacker: {able}, or another pretrained encoder."
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


def _check_words(words: Collection[str], data: Data) -> None:
    """Warn about words of edits in no caption; raises if no word is in any, before an attacker is trained for it."""
    captions = data.frame["caption"].unique()
    missing = [word for word in words if all(apply_edit(caption, word, "") is None for caption in captions)]
    if missing and len(missing) == len(words):
        raise CapbiasError(
            f"No caption of {data.captioner} has {' or '.join(missing)}.",
            "Check the spelling, or leave out --words to list the words of the set.",
        )
    if missing:
        say(f"warning: no caption of {data.captioner} has {', '.join(missing)}")


def _answer(
    question: Explained,
    image: str | None,
    edits: list[tuple[str, str]],
    data: Data,
    run: RunRow,
    compared: RunRow | None = None,
) -> tuple[dict, str]:
    """The answer with all digits, and as text. compared: the run that compared its words with human captions."""
    scores = scored_views.caption_scores(run)
    head = {"captioner": run.spec.model, "attribute": scores.attribute.name, "attacker": run.spec.attacker}
    if question.text is not None:
        scored = explained.scored_text(scores, scored_views.stored_attackers(run), question.text)
        return head | scored, explained.caption_text(scored)
    written = data.captions[data.captioner].frame
    if image is not None:
        captions = explained.scored_image(scores, written, image)
        texts = [explained.caption_text(caption) for caption in captions]
        for place, part in enumerate(scores.attention):
            texts[place] += f"\n{explained.attention_text(part)}"
            captions[place] |= {"read_as": list(part.words), "attention": part.weights.tolist()}
        return head | {"captions": captions}, "\n".join(texts)
    if edits:
        attackers = scored_views.stored_attackers(run)
        effects = [explained.edit_effect(scores, written, attackers, *edit) for edit in edits]
        return head | {"edits": effects}, "\n".join(map(explained.edit_text, effects))
    table = word_views.words_of_set(run, compared)
    options = word_views.WordsOptions(top=question.top * len(scores.attribute.values), least=question.min_count)
    words, text = explained.words_of_set(scores, table, options)
    return head | words, text
