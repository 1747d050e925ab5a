"""Below a caption: what if it were edited, by an attacker that scores edits at once; and how other encoders read it."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from capbias_core.attackers import ATTACKERS, attacker_entry
from capbias_core.attackers.what_if import StoredAttackers, apply_edit, is_edit, parse_edit
from capbias_core.errors import CapbiasError
from capbias_core.types import Attention, counted
from capbias_core.views import scored as views
from capbias_core.views.coloured import attention_map, columns, first_shown, section, sum_text
from capbias_core.views.explain import edit_effect
from capbias_core.views.scored import CaptionScores, Line, Scored
from capbias_core.views.sentence import say, signed
from pages.ui import controls
from pages.ui.base import errors, note, once, show_error
from pages.ui.page import Page
from pages.ui.runs import start_button

FIRST_ENCODER = "transformer_5h"


@errors()
def what_if(page: Page, sets: Scored, read: CaptionScores, line: Line) -> None:
    """Edit the caption, or give an edit such as `man -> woman | person`; the original stays beside it."""
    box = st.expander("What if", key="what_if", on_change="rerun", expanded=bool(controls.named("edit")))
    if not box.open:
        return
    with box:
        if not (run := sets.rescoring):
            note("Edits are scored by ngram, which has not scored these captions yet.")
            return
        scores = once(repr((page.folder, run.run_id, "scores")), lambda: views.caption_scores(run))
        image, index = read.table.loc[line.row, ["image_id", "caption_index"]]
        table = scores.table
        row = table.index[(table["image_id"] == image) & (table["caption_index"] == index)][0]
        key = repr((page.folder, run.run_id, int(index), "attackers"))
        attackers = once(key, lambda: views.stored_attackers(run, int(index)))
        if st.session_state.get("edit_of", image) != image and not is_edit(controls.named("edit")):
            controls.leave("edit")  # a rewritten caption belongs to its image; an edit goes along
        st.session_state["edit_of"] = image
        label = "Edit the caption, or write an edit such as: umbrella -> bat | dog"
        edited = controls.text(st, label, key="edit", default=line.written)
        try:
            _variants(page, scores, attackers, int(table.at[row, "fold"]), line.written, edited)
        except CapbiasError as error:
            show_error(error)


def _variants(page: Page, scores: CaptionScores, attackers: StoredAttackers, fold: int, original: str, edited: str):
    attribute, merge = scores.attribute, scores.run.spec.merge_masks
    texts, word, replacements = [edited] if edited.strip() else [], "", []
    if is_edit(edited):
        word, replacements = parse_edit(edited)
        applied = [apply_edit(original, word, replacement) for replacement in replacements]
        texts = [text for text in applied if text is not None]
        if not texts:
            note(f"This caption does not have the word {word}.")
    before, *after = [
        Line(name, text, attribute, attackers.score(text, attribute, fold, merge))
        for name, text in [("original", original), *(("edited", text) for text in texts if text != original)]
    ]
    for line in after:
        assert before.read and line.read
        first = int(before.read.probabilities.argmax())
        change = line.read.probabilities[first] - before.read.probabilities[first]
        moved = f"{attribute.values[first]} {signed(100 * change, 0)} points"
        largest = max(before.largest, line.largest)
        st.html(columns([section("original", before, largest), section("edited", line, largest, rest=[moved])]))
        if line.read.tokens == before.read.tokens:
            note("No change: the attacker reads the same text, because attribute words are masked.")
        elif not is_edit(edited) and (unseen := attackers.unseen(line.read.tokens, attribute)):
            note(f"⚠ The classifier does not know {', '.join(unseen)}; only the removed words count.")
    for replacement in replacements:
        _everywhere(page, scores, attackers, word, replacement)


def _everywhere(page: Page, scores: CaptionScores, attackers: StoredAttackers, word: str, replacement: str) -> None:
    """What the edit does in all captions with the word; of several captions per image, in the first."""
    written = page.workspace.frame(scores.run.spec.captions)
    work = lambda: edit_effect(scores, written, attackers, word, replacement)  # noqa: E731
    effect = once(repr((page.folder, scores.run.run_id, word, replacement)), work)
    count = effect["captions_with_the_word"]
    before, after = (effect[f"probability_{when}"] for when in ("before", "after"))
    value = scores.attribute.values[-1]
    mean = f": mean probability of {value} {before[value]:.3f} → {after[value]:.3f}" if count else ""
    captioner = scores.run.spec.model
    note(f"{word} → {replacement} in {counted(count, 'caption')} of {captioner}{mean}. {effect['note']}")


def other_encoders(page: Page, scores: CaptionScores, line: Line, images: Sequence[str]) -> None:
    """The caption as other encoders read it: coloured words and attention; a run that trains one more.

    images: those of the table, whose captions the encoder of a new run reads at the same time.
    """
    box = st.expander("How another encoder reads it", key="another_encoder", on_change="rerun")
    if not box.open:
        return
    spec = scores.run.spec
    image, index = scores.table.loc[line.row, ["image_id", "caption_index"]]
    with box:
        attention: dict[str, Attention] = {}
        sections = []
        for name, run in views.encoder_views(page.workspace, page.collection, spec, image).items():
            view = once(repr((page.folder, run.run_id, "view")), lambda run=run: views.caption_scores(run))
            for row in view.table.index[(view.table["image_id"] == image) & (view.table["caption_index"] == index)]:
                read = Line(name, line.written, view.attribute, view.read(row), row)
                sections.append(section(name, read, rest=[sum_text(read, view)]))
                if view.attention:
                    attention[name] = view.attention[row]
        if sections:
            st.html(columns(sections))
        if attention:
            _attention(attention)
        with errors():
            attacker = st.selectbox(
                "Encoder",
                list(ATTACKERS),
                list(ATTACKERS).index(FIRST_ENCODER),
                accept_new_options=True,
                key="reading_encoder",
                help="Or type the folder or name of a sentence-transformers or transformers model on this machine.",
            )
            number = counted(len(set(images)), "image")
            note(
                f"{attacker_entry(attacker).title}: one attacker trains on the other images, and reads the captions of "
                f"{number} of this page. Each encoder has its own scale of colours."
            )
            planned = views.plan_encoder_view(page.workspace, spec, attacker, [*images, image])
            start_button(page, [planned], "Read", "read")


def _attention(attention: dict[str, Attention]) -> None:
    """What each word reads of the others in a head."""
    bar = st.container(horizontal=True, vertical_alignment="bottom")
    name = bar.selectbox("Attention of", list(attention), key="attention_of", width=220)
    (layer, head), (layers, heads) = first_shown(attention[name]), attention[name].weights.shape[:2]
    layer = bar.number_input(f"Layer of {layers:,}", 1, layers, layer, key=f"layer_{name}", width=120)
    head = bar.number_input(f"Head of {heads:,}", 1, heads, head, key=f"head_{name}", width=120)
    drawn = attention_map(attention[name], int(layer), int(head))
    st.plotly_chart(drawn, key="attention", config={"displayModeBar": False}, height=drawn.layout.height)
    note(say("captions.attention"))
