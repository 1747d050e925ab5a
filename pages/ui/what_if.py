"""What if a caption read otherwise: an edit, its score beside the original's, and the same edit in every caption."""

from __future__ import annotations

import streamlit as st

from capbias_core.attackers import attacker_entry
from capbias_core.attackers.what_if import Rescored, apply_edit, is_edit, parse_edit
from capbias_core.errors import CapbiasError
from capbias_core.prepare import tokenize
from capbias_core.runs.engine import Engine
from capbias_core.types import Attribute, counted
from capbias_core.views.captions import CaptionScores
from capbias_core.views.sentence import signed
from pages.ui import cached, view
from pages.ui.base import errors, note, show_error
from pages.ui.coloured import coloured_caption


@st.fragment
@errors()
def what_if(engine: Engine, scores: CaptionScores, place: int, original: str, largest: float) -> None:
    """Edit the caption at a row of the scores, or give an edit such as `man -> woman | person`; the original, which
    stays as it was written, stands beside it. largest: what the strongest colour stands for."""
    st.markdown("**What if**")
    spec = scores.run.spec
    if not attacker_entry(spec.attacker).rescores:
        note("Choose the ngram attacker to rescore an edited caption at once.")
        return
    _edit_of(f"{scores.run.run_id}_{place}")
    label = "Edit the caption, or write an edit such as: umbrella -> bat | dog"
    edited = view.text(st, label, key="edit", default=original)
    if not edited.strip():
        note(f"Type a caption, or an edit such as: umbrella -> bat | dog. The original reads: {original}")
        return
    models = cached.attackers(engine.folder, scores.run.run_id, int(scores.table.at[place, "caption_index"]))
    fold = int(scores.table.at[place, "fold"])
    before = models.score(original, scores.attribute, fold, spec.merge_masks)
    try:
        variants = _variants(original, edited)
        if variants in ([], [original]):
            _rescored("original", before, None, scores.attribute, original, largest)
        for number, variant in enumerate(variant for variant in variants if variant != original):
            after = models.score(variant, scores.attribute, fold, spec.merge_masks)
            left, right = st.container(key=f"stacks_what_if_{number}").columns(2, gap="large")
            with left:
                _rescored("original", before, None, scores.attribute, original, largest)
            with right:
                _rescored("edited", after, before, scores.attribute, variant, largest)
            if after.tokens == before.tokens:
                note("No change: the attacker reads the same text, because attribute words are masked.")
            if not is_edit(edited) and (unseen := models.unseen(after.tokens, scores.attribute)):
                note(f"⚠ The classifier does not know {', '.join(unseen)}; only the removed words count.")
        if is_edit(edited):
            _everywhere(engine, scores, edited)
    except CapbiasError as error:
        show_error(error)


def _edit_of(caption: str) -> None:
    """A rewritten caption waits with its image; an edit such as `man -> woman` goes along to the next caption."""
    before, edit = st.session_state.get("edit_of", caption), st.session_state.get("edit", "")
    if before != caption and not is_edit(edit):
        rewritten = st.session_state.setdefault("rewritten", {})
        rewritten[before] = edit
        view.forget(["edit"])
        if rewritten.get(caption):
            view.choose("edit", rewritten[caption])
    st.session_state["edit_of"] = caption


def _variants(original: str, edited: str) -> list[str]:
    """The caption as edited; none where an edit is of a word that it does not have, which is said."""
    if not is_edit(edited):
        return [edited]
    word, replacements = parse_edit(edited)
    variants = [apply_edit(original, word, replacement) for replacement in replacements]
    if None in variants:
        note(f"This caption does not have the word {word}.")
    return [variant for variant in variants if variant is not None]


def _everywhere(engine: Engine, scores: CaptionScores, edit: str) -> None:
    """What the same edit does in every caption that has the word; of several captions an image, in the first."""
    word, replacements = parse_edit(edit)
    first = ", the first of each image" if scores.table["caption_index"].any() else ""
    for replacement in replacements:
        found = cached.edit_effect(engine.folder, scores.run.run_id, word, replacement)
        count, values = found["captions_with_the_word"], scores.attribute.values
        shares = ", ".join(
            f"{value} {found['probability_before'][value]:.3f} → {found['probability_after'][value]:.3f}"
            for value in (values if count else ())
        )
        mean = f": mean probability of {shares}" if shares else ""
        note(
            f"{word} → {replacement} in {counted(count, 'caption')} of {scores.run.spec.model}{first}{mean}. "
            f"{found['note']}"
        )


def _rescored(
    name: str, own: Rescored, before: Rescored | None, attribute: Attribute, text: str, largest: float
) -> None:
    column = 0 if len(own.logit) == 1 else int(own.probabilities.argmax())
    change = ""
    if before:
        # Of the value that the original is taken for, so that a sign means the same for every edit.
        first = int(before.probabilities.argmax())
        moved = signed(own.probabilities[first] - before.probabilities[first], 2)
        change = f" · {attribute.values[first]} {moved} against the original"
    extra = f"{change}; logit {signed(own.logit[column], 3)} = intercept {signed(own.baseline[column], 3)} + words"
    coloured_caption(name, own.tokens, own.words, attribute, own.probabilities, tokenize(text), largest, extra)
