"""How other encoders read a caption: words coloured by what they add, and attention; a run that trains one more."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from capbias_core.attackers import ATTACKERS, attacker_entry
from capbias_core.attackers.device import DEVICES
from capbias_core.runs.engine import Engine
from capbias_core.types import Attention, counted
from capbias_core.views.captions import CaptionScores, EncoderView, encoder_views, plan_encoder_view
from capbias_core.views.words import attention_chart, class_token_chart, class_token_weights, first_shown, legend
from capbias_core.workspace.store import RunRow
from pages.ui import cached
from pages.ui.base import errors, note
from pages.ui.chart import draw_chart
from pages.ui.coloured import attribution, coloured_caption
from pages.ui.running import start_button

FIRST = "transformer_5h"
CLASS, WORDS = "from the class token", "between words"


def other_encoders(
    engine: Engine,
    collection: str,
    run: RunRow,
    scores: CaptionScores,
    place: int,
    images: Sequence[str],
    originals: list[str],
) -> None:
    """The caption at a row of the scores of a run, as other encoders read it.

    images: those whose captions a further encoder reads at once. originals: the words of the caption as written.
    """
    image, index = scores.table.loc[place, ["image_id", "caption_index"]]
    # Tracked, so that it stays open when the page is drawn anew at the end of a run.
    box = st.expander("How another encoder reads it", key="another_encoder", on_change="rerun")
    if not box.open:
        return
    with box:
        attention: dict[str, Attention] = {}
        others = encoder_views(engine.workspace, collection, run, image)
        if others:
            st.html(legend(scores.attribute))
        for name, other in others.items():
            found = cached.encoder_view(engine.folder, other.run_id)
            for row in _rows(found, image, index):
                _words(name, found, row, originals)
                if found.attention:
                    attention[name] = found.attention[row]
        if attention:
            _attention(attention)
        with errors():
            _form(engine, collection, run, [*images, image])


def _rows(found: EncoderView, image: str, index: int) -> list[int]:
    table = found.scores.table
    return list(table.index[(table["image_id"] == image) & (table["caption_index"] == index)])


def _words(name: str, found: EncoderView, row: int, originals: list[str]) -> None:
    """One line, in its own scale: logits of two encoders cannot be compared."""
    own, scores = found.scores.table.loc[row], found.scores
    coloured_caption(
        name, own["masked"].split(), scores.words_of(row), scores.attribute, scores.probabilities_of(row), originals
    )
    attribution(scores, row)


def _attention(attention: dict[str, Attention]) -> None:
    """Two attackers side by side: what each reads for the caption as a whole, or one head between all words."""
    kind = st.segmented_control("Attention", [CLASS, WORDS], default=CLASS, required=True, key="attention_kind")
    names, chosen = list(attention), []
    columns = st.container(key="stacks_attention").columns(2, gap="medium")
    for number, column in enumerate(columns[: len(names)]):
        pick, layer, head = column.columns([2, 1, 1])
        name = pick.selectbox("Attention of", names, number, key=f"attention_of_{number}")
        first, (layers, heads) = first_shown(attention[name]), attention[name].weights.shape[:2]
        own = f"{number}_{layers}_{heads}"
        at = layer.number_input(f"Layer of {layers}", 1, layers, first[0], key=f"layer_{own}")
        which = head.number_input(f"Head of {heads}", 1, heads, first[1], key=f"head_{own}") if kind == WORDS else 0
        chosen.append((name, int(at), int(which)))
    largest = max(float(class_token_weights(attention[name], layer)[1].max()) for name, layer, _ in chosen)
    for number, (column, (name, layer, head)) in enumerate(zip(columns, chosen, strict=False)):
        own = attention[name]
        figure = class_token_chart(own, layer, largest) if kind == CLASS else attention_chart(own, layer, head)
        with column:
            draw_chart(figure, key=f"attention_{number}", alt=f"Attention of {name}, layer {layer}")
    if len(names) == 1:
        with columns[1]:
            note("Read the caption with a second Transformer or BERT model below to compare two attackers here.")
    scale = f"The darkest colour is a share of {largest:.2f}, in both charts. " if kind == CLASS else ""
    note(
        f"{scale}A row sums to 1, and pieces of a word are summed. Attention shows what a head mixes, not what the "
        "guess rests on; for that, see the coloured words. In a frozen encoder it does not depend on the attacker's "
        "training."
    )


def _form(engine: Engine, collection: str, run: RunRow, images: list[str]) -> None:
    """Choose an encoder and have it read these captions."""
    left, right = st.columns([2, 1])
    attacker = left.selectbox(
        "Encoder",
        list(ATTACKERS),
        list(ATTACKERS).index(FIRST),
        accept_new_options=True,
        key="reading_encoder",
        help="Or type the folder or name of any model of sentence-transformers or transformers; nothing is fetched.",
    )
    device = right.selectbox("Device", DEVICES, key="reading_device", help="auto: CUDA where there is one.")
    note(
        f"{attacker_entry(attacker).title}: one attacker is trained on the other images, and reads the captions of "
        f"{counted(len(set(images)), 'image')} of this page. Each line has its own scale of colours."
    )
    spec = plan_encoder_view(engine.workspace, run.spec, attacker, images, {"device": device})
    start_button(engine, collection, [spec], "Read", "read_captions")
