"""`explain`: the words that carry the bias of a set, of an image or of any caption, what edits do, and attention."""

from __future__ import annotations

import json
from dataclasses import replace

from capbias_core.analysis.caption_filters import caption_rows
from capbias_core.analysis.edits import edit_effect, scored_image, scored_text, strongest_words
from capbias_core.analysis.encoder_view import plan_reading, reading
from capbias_core.analysis.read import caption_scores, stored_attackers, words_table
from capbias_core.attackers import ATTACKERS, attacker_entry
from capbias_core.attackers.device import DETERMINISTIC
from capbias_core.attackers.what_if import apply_edit, parse_edit
from capbias_core.cli.inputs import inputs
from capbias_core.cli.running import outcome, run_all
from capbias_core.cli.terminal import DONE, say, show
from capbias_core.errors import CapbiasError
from capbias_core.measures.base import RunSpec
from capbias_core.present.attention import attention_data, attention_text
from capbias_core.present.table import caption_text, corpus_text, edit_text
from capbias_core.runs.plan import plan
from capbias_core.workspace.labels import attribute_from, labels_for
from capbias_core.workspace.store import RunRow, Workspace


def explain(args) -> int:
    """Words and contributions: of a whole set, of an image, of any caption, or of edits."""
    edits = _edits(args)
    with inputs(args, ["error"]) as (workspace, request):
        if len(request.captions) != 1:
            raise CapbiasError(f"{len(request.captions)} caption sets", "one", "Name one after --captions.")
        specs = [spec for spec in plan(workspace, replace(request, words=True)) if spec.family == "captions"]
        _check_image(args.image, workspace, specs[0])
        _check_words(edits, workspace, specs[0])
        if args.attention:
            options = {"device": args.device, DETERMINISTIC: args.deterministic}
            specs = [plan_reading(workspace, specs[0], args.attacker, [args.image], options)]
        rows = run_all(workspace, specs, request.collection)
        code = outcome(rows)
        if code == DONE:
            answer = _attended if args.attention else _explained
            found, text = answer(args, edits, workspace, rows[0])
            show(json.dumps(found, indent=2) if args.format == "json" else text.rstrip("\n"))
    return code


def _edits(args) -> list[tuple[str, str]]:
    """Word and replacement of each edit. Raises for a wrong question, before an attacker is trained for it."""
    if args.attacker != "ngram" and (args.words or args.text is not None):
        raise CapbiasError(
            f"{'--words' if args.words else '--text'} with {args.attacker}",
            "the attacker ngram, whose weights are kept to score other captions",
            "Add --attacker ngram.",
        )
    if (args.layer or args.head) and not args.attention:
        got = f"--{'layer' if args.layer else 'head'} without --attention"
        raise CapbiasError(got, "--attention, of which it chooses a part", "Add --attention, or leave it out.")
    if args.attention and args.image is None:
        raise CapbiasError("--attention without --image", "the image whose captions are read", "Add --image ID.")
    if args.attention and not attacker_entry(args.attacker).attends:
        able = ", ".join(name for name, entry in ATTACKERS.items() if entry.attends)
        got = f"--attention with {args.attacker}, which has none"
        raise CapbiasError(got, f"one of: {able}; or another pretrained encoder", "Choose one with --attacker.")
    return [(word, new) for word, replacements in map(parse_edit, args.words or ()) for new in replacements]


def _check_words(edits: list[tuple[str, str]], workspace: Workspace, spec: RunSpec) -> None:
    """Say which words of edits no caption has; raises where none has any, before an attacker is trained for it."""
    captions = workspace.frame(spec.captions)["caption"].unique()
    words = dict.fromkeys(word for word, _ in edits)
    missing = [word for word in words if all(apply_edit(caption, word, "") is None for caption in captions)]
    if missing and len(missing) == len(words):
        raise CapbiasError(
            f"--words with {', '.join(missing)}, which no caption of {spec.model} has",
            "a word of its captions",
            "Check the spelling; without --words the words of the set are listed.",
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
    captioned = image in set(workspace.frame(spec.captions)["image_id"])
    if not captioned or image not in labels.values.index:
        lacks = f"no label for {labels.attribute.name} that is compared" if captioned else f"no caption in {spec.model}"
        raise CapbiasError(
            f"image {image!r}, which has {lacks}",
            "an image with a caption and a label",
            "Check the id, or score the caption as a text with --text.",
        )


def _attended(args, _edits, workspace: Workspace, run: RunRow) -> tuple[dict, str]:
    """How an attacker that trained on other images reads the captions of one: words and attention."""
    found = reading(workspace, run)
    written = caption_rows(found.scores, workspace.frame(run.spec["captions"]))["caption"]
    captions = scored_image(found.scores, written, args.image)
    head = {"captioner": run.spec["model"], "attribute": found.scores.attribute.name, "attacker": run.spec["attacker"]}
    shown = [attention_text(own, args.layer, args.head) for own in found.attention]
    texts = [f"{caption_text(caption)}\n{own}" for caption, own in zip(captions, shown, strict=True)]
    data = [caption | attention_data(own) for caption, own in zip(captions, found.attention, strict=True)]
    return head | {"captions": data}, "\n".join(texts)


def _explained(args, edits: list[tuple[str, str]], workspace: Workspace, run: RunRow) -> tuple[dict, str]:
    """The answer with every digit, and as text."""
    scores = caption_scores(workspace, run)
    head = {"captioner": run.spec["model"], "attribute": scores.attribute.name, "attacker": run.spec["attacker"]}
    if args.text is not None:
        found = scored_text(scores, stored_attackers(workspace, run), args.text)
        return head | found, caption_text(found)
    written = caption_rows(scores, workspace.frame(run.spec["captions"]))["caption"]
    if args.image is not None:
        captions = scored_image(scores, written, args.image)
        return head | {"captions": captions}, "\n".join(map(caption_text, captions))
    if edits:
        attackers = stored_attackers(workspace, run)
        effects = [edit_effect(scores, written, attackers, *edit) for edit in edits]
        return head | {"edits": effects}, "\n".join(map(edit_text, effects))
    found = strongest_words(scores, words_table(workspace, run), args.smallest_count, args.top)
    return head | found, corpus_text(found)
