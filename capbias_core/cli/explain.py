"""`explain`: the words that carry the bias of a set, of an image or of any caption, what edits do, and attention."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated

from capbias_core.analysis.caption_filters import written_captions
from capbias_core.analysis.edits import edit_effect, scored_image, scored_text, strongest_words
from capbias_core.analysis.encoder_view import encoder_view, plan_encoder_view
from capbias_core.analysis.read import caption_scores, stored_attackers, words_table
from capbias_core.api import Asked
from capbias_core.attackers import ATTACKERS, DEFAULT_ATTACKER, attacker_entry
from capbias_core.attackers.what_if import apply_edit, parse_edit
from capbias_core.cli.flags import ANSWER, WHAT, Flags, Positive, choices_of, command, flag, given
from capbias_core.cli.flags import ATTACKERS as ATTACKER_FLAGS
from capbias_core.cli.inputs import InputFlags, inputs
from capbias_core.cli.running import outcome, run_all
from capbias_core.cli.terminal import DONE, say, show
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load import normalise_image_id
from capbias_core.measures.options import Attacked
from capbias_core.present.attention import attention_data, attention_text
from capbias_core.present.table import caption_text, corpus_text, edit_text
from capbias_core.runs.plan import PER_CAPTION, plan
from capbias_core.workspace.labels import labels_for
from capbias_core.workspace.spec import RunSpec, attribute_from
from capbias_core.workspace.store import RunRow, Workspace, images_in

FORMATS = ("table", "json")

app = command(
    "explain",
    """\
  capbias explain --captions sat.json --labels attributes.csv --attribute gender --top 20
  capbias explain --captions sat.json --labels attributes.csv --attribute gender \\
    --words "man -> person" "umbrella -> bat | ball"
  capbias explain --captions sat.json --labels attributes.csv --attribute gender --image 785 \\
    --attacker minilm --attention --layer 4 --head 2

Every caption is scored by an attacker that did not train on its image; what the words add sums, with the intercept,
to the logit.""",
)


class Training(choices_of(Attacked, "attacker", "device", "deterministic", "merge_masks", group=ATTACKER_FLAGS)):
    """Choices of attackers."""


NO_TRAINING = Training()


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked: of the whole set, of one image or of any caption."""

    image: Annotated[str | None, flag("the words of one image's caption", "ID", WHAT)] = None
    text: Annotated[str | None, flag("the words of any caption", "CAPTION", WHAT, allow_leading_hyphen=True)] = None
    words: Annotated[list[str] | None, flag('edits of the whole set, such as "man -> person"', "EDIT", WHAT)] = None
    attention: Annotated[
        bool,
        flag(
            "with --image and a Transformer or pretrained encoder: one trains on the other images and reads this one's "
            "captions; what each word reads of each",
            group=WHAT,
        ),
    ] = False
    layer: Annotated[
        Positive | None,
        flag("the layer shown by --attention, from 1 (default: the reproducibility paper's, or the last)", "N", WHAT),
    ] = None
    head: Annotated[
        Positive | None,
        flag("the head shown by --attention, from 1 (default: the reproducibility paper's, or the last)", "N", WHAT),
    ] = None
    top: Annotated[Positive, flag("words each way (default: 20)", "N", ANSWER)] = 20
    min_count: Annotated[Positive, flag("captions with the word, at least (default: 20)", "N", ANSWER)] = 20
    format: Annotated[str, flag("json has every digit (default: table)", "|".join(FORMATS), ANSWER)] = "table"


NOTHING_MORE = Question()


@app.default
def explain(
    *,
    flags: Annotated[InputFlags, Flags],
    question: Annotated[Question, Flags] = NOTHING_MORE,
    training: Annotated[Training, Flags] = NO_TRAINING,
) -> int:
    """Show which words carry the bias, and what edits do."""
    chosen = given(training, Attacked)
    attacker = chosen.get("attacker", DEFAULT_ATTACKER)
    edits = _edits(question, attacker)
    with inputs(flags) as (workspace, kept):
        if len(kept.captions) != 1:
            raise CapbiasError(
                f"explain takes one captioner, and here are {len(kept.captions)}.", "Name one with --captions."
            )
        asked = Asked(
            ("error",), (attacker,), 1, choices={name: own for name, own in chosen.items() if name != "attacker"}
        )
        specs = [spec for spec in plan(workspace, asked.of(kept, words=True)) if spec.measure == PER_CAPTION][:1]
        image = None if question.image is None else _image_id(question.image)
        _check_image(image, workspace, specs[0])
        _check_words(edits, workspace, specs[0])
        viewed = image if question.attention else None
        if viewed is not None:
            specs = [plan_encoder_view(workspace, specs[0], attacker, [viewed], chosen)]
        rows = run_all(workspace, specs, kept.collection)
        code = outcome(rows)
        if code == DONE:
            if viewed is not None:
                found, text = _attended(question, viewed, workspace, rows[0])
            else:
                found, text = _explained(question, image, edits, workspace, rows[0])
            show(json.dumps(found, indent=2) if question.format == "json" else text.rstrip("\n"))
    return code


def _image_id(text: str) -> str:
    try:
        return normalise_image_id(text)
    except ValueError as error:
        raise CapbiasError(f"--image {text!r} is no image ID: {error}.", "An image ID looks like 785.") from None


def _edits(question: Question, attacker: str) -> list[tuple[str, str]]:
    """Word and replacement of each edit. Raises for a wrong question, before an attacker is trained for it."""
    if question.format not in FORMATS:
        raise unknown_name("--format", question.format, FORMATS)
    asked = {"--image": question.image, "--text": question.text, "--words": question.words}
    if len(both := [name for name, own in asked.items() if own is not None]) > 1:
        raise CapbiasError(f"{' and '.join(both)} exclude each other.", "Leave one out.")
    if not attacker_entry(attacker).rescores and (question.words or question.text is not None):
        able = ", ".join(name for name, entry in ATTACKERS.items() if entry.rescores)
        raise CapbiasError(
            f"{attacker} cannot score other captions, which {'--words' if question.words else '--text'} needs.",
            f"Choose one with --attacker: {able}.",
        )
    if (question.layer or question.head) and not question.attention:
        raise CapbiasError(f"--{'layer' if question.layer else 'head'} needs --attention.")
    if question.attention and question.image is None:
        raise CapbiasError("--attention needs --image.")
    if question.attention and not attacker_entry(attacker).attends:
        able = ", ".join(name for name, entry in ATTACKERS.items() if entry.attends)
        raise CapbiasError(
            f"{attacker} has no attention.", f"Choose one with --attacker: {able}, or another pretrained encoder."
        )
    return [(word, new) for word, replacements in map(parse_edit, question.words or ()) for new in replacements]


def _check_words(edits: list[tuple[str, str]], workspace: Workspace, spec: RunSpec) -> None:
    """Say which words of edits no caption has; raises where none has any, before an attacker is trained for it."""
    captions = workspace.frame(spec.captions)["caption"].unique()
    words = dict.fromkeys(word for word, _ in edits)
    missing = [word for word in words if all(apply_edit(caption, word, "") is None for caption in captions)]
    if missing and len(missing) == len(words):
        raise CapbiasError(
            f"No caption of {spec.model} has {' or '.join(missing)}.",
            "Check the spelling, or leave out --words to list the words of the set.",
        )
    if missing:
        say(f"warning: no caption of {spec.model} has {', '.join(missing)}")


def _check_image(image: str | None, workspace: Workspace, spec: RunSpec) -> None:
    if image is None:
        return
    where = spec.labels
    labels = labels_for(
        workspace.frame(where["table"]), attribute_from(spec.attribute), where["column"], where["mapping"]
    )
    captioned = image in images_in(workspace.frame(spec.captions))
    if not captioned or image not in labels.values.index:
        lacks = f"no label for {labels.attribute.name} that is compared" if captioned else f"no caption in {spec.model}"
        raise CapbiasError(f"The image {image!r} has {lacks}.", "Check the ID, or score the caption with --text.")


def _attended(question: Question, image: str, workspace: Workspace, run: RunRow) -> tuple[dict, str]:
    """How an attacker that trained on other images reads the captions of one: words and attention."""
    found = encoder_view(workspace, run)
    written = written_captions(found.scores.table, workspace.frame(run.spec.captions))
    captions = scored_image(found.scores, written, image)
    head = {"captioner": run.spec.model, "attribute": found.scores.attribute.name, "attacker": run.spec.attacker}
    shown = [attention_text(own, question.layer, question.head) for own in found.attention]
    texts = [f"{caption_text(caption)}\n{own}" for caption, own in zip(captions, shown, strict=True)]
    data = [caption | attention_data(own) for caption, own in zip(captions, found.attention, strict=True)]
    return head | {"captions": data}, "\n".join(texts)


def _explained(
    question: Question, image: str | None, edits: list[tuple[str, str]], workspace: Workspace, run: RunRow
) -> tuple[dict, str]:
    """The answer with every digit, and as text."""
    scores = caption_scores(workspace, run)
    head = {"captioner": run.spec.model, "attribute": scores.attribute.name, "attacker": run.spec.attacker}
    if question.text is not None:
        found = scored_text(scores, stored_attackers(workspace, run), question.text)
        return head | found, caption_text(found)
    written = written_captions(scores.table, workspace.frame(run.spec.captions))
    if image is not None:
        captions = scored_image(scores, written, image)
        return head | {"captions": captions}, "\n".join(map(caption_text, captions))
    if edits:
        attackers = stored_attackers(workspace, run)
        effects = [edit_effect(scores, written, attackers, *edit) for edit in edits]
        return head | {"edits": effects}, "\n".join(map(edit_text, effects))
    found = strongest_words(scores, words_table(workspace, run), question.min_count, question.top)
    return head | found, corpus_text(found)
