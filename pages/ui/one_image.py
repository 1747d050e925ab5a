"""One image of the tab Captions: its photograph, two captions side by side, other encoders, and what if."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np
import pandas as pd
import streamlit as st

from capbias_core.attackers import ATTACKERS, attacker_entry
from capbias_core.attackers.device import DEVICES
from capbias_core.attackers.what_if import Rescored, StoredAttackers, apply_edit, is_edit, parse_edit
from capbias_core.errors import CapbiasError
from capbias_core.prepare import tokenize
from capbias_core.prepare.tasks import function_words
from capbias_core.types import Attention, Attribute, counted
from capbias_core.views import words as word_views
from capbias_core.views.captions import CaptionScores, closest, encoder_views, plan_encoder_view, toward, words_of_one
from capbias_core.views.sentence import probabilities_text, signed
from capbias_core.workspace.photographs import picture_path
from capbias_core.workspace.store import RunRow
from pages.ui import cached, view
from pages.ui.bar import Bar
from pages.ui.base import errors, note, show_error
from pages.ui.drawing import draw_chart
from pages.ui.plain import plain
from pages.ui.runs import start_button

PICTURE_CSS = """<style>
.st-key-photograph img {max-height: 13rem; width: auto !important; max-width: 100%}
</style>"""
DELTA = (
    "Convergence delta: the part of the logit that the words and the intercept leave unexplained. Integrated gradients "
    "approximate an integral by a sum; near 0, the colours explain the score."
)
TRAINING = ("device", "deterministic", "precision")  # options that a what-if takes over
FIRST_ENCODER = "transformer_5h"
CLASS, WORDS = "from the class token", "between words"


def caption_line(
    name: str,
    tokens,
    words: np.ndarray,
    attribute: Attribute,
    shares: np.ndarray,
    originals,
    largest: float = 0.0,
    extra: str = "",
    alone: np.ndarray | None = None,
    only: str = "",
) -> str:
    """HTML of a caption as an attacker reads it: who wrote it, the probability of each value, and coloured words.

    shares: (K,). originals: the words as written, if they are as many as the tokens. alone: (T,) booleans, words that
    the other caption does not have. only: the one token that is coloured; all unless given.
    """
    ends, values = toward(attribute, words, int(shares.argmax()))
    text = probabilities_text(attribute.values, shares)
    written = originals if len(originals) == len(tokens) else None
    who = f"<div><b>{escape(name)}</b> · {escape(text + extra)}</div>"
    plain = function_words(tokens)
    return who + word_views.coloured_words(tokens, values, ends, written, largest, alone, only, plain)


@dataclass(frozen=True)
class Line:
    """One caption of one set. row: its row in the scores of the set."""

    name: str
    scores: CaptionScores
    row: int
    written: str

    @property
    def caption_index(self) -> int:
        return int(self.scores.table.at[self.row, "caption_index"])

    @property
    def tokens(self) -> list[str]:
        return self.scores.table.at[self.row, "masked"].split()

    @property
    def words(self) -> np.ndarray:
        """(T, C) contributions of the tokens."""
        return self.scores.words_of(self.row)

    @property
    def shown(self) -> list[str]:
        """The words as written, if they are as many as the tokens that the attacker reads."""
        words = tokenize(self.written)
        return words if len(words) == len(self.tokens) else self.tokens


def read_image(bar: Bar, runs: dict[str, RunRow], name: str, against: str, row: int) -> list[Line]:
    """The caption at a row of the scores of one set, then those of its image in the other set, the closest first."""
    image = cached.scores(bar.folder, runs[name].run_id).table.at[row, "image_id"]
    first = next(line for line in lines_of_image(bar, name, runs[name], image) if line.row == row)
    others = lines_of_image(bar, against, runs[against], image) if against in runs else []
    if others:
        nearest = closest(first.shown, [line.shown for line in others])
        others = [others[nearest], *others[:nearest], *others[nearest + 1 :]]
    return [first, *others]


def lines_of_image(bar: Bar, name: str, run: RunRow, image: str) -> list[Line]:
    """The scored captions of an image in one set."""
    scores = cached.scores(bar.folder, run.run_id)
    written = cached.captions(bar.folder, run.spec.captions)["caption"]
    rows = np.flatnonzero(scores.table["image_id"] == image).tolist()
    return [Line(name, scores, row, written.iloc[scores.table.at[row, "kept_at"]]) for row in rows]


def largest_word(lines: list[Line]) -> float:
    """The contribution with the strongest colour: one scale for all captions, so that they can be compared."""
    return max(float(abs(line.words).max(initial=0.0)) for line in lines)


def steps(listed: pd.DataFrame, row: int, page_size: int) -> None:
    """Where the caption is in the filtered order, and buttons to the one before and after it; arrow keys too."""
    places = np.flatnonzero(listed.index == row)
    at = int(places[0]) if len(places) else -1

    def show(image: str, index: int, page: int) -> None:
        show_caption(image, index)
        view.choose("page", page)

    buttons = st.container(horizontal=True, vertical_alignment="center")
    for label, key, to, possible in (
        ("Previous", "Left", at - 1, at > 0),
        ("Next", "Right", at + 1, at + 1 < len(listed)),
    ):
        target = ()
        if possible:
            target = (listed["image_id"].iloc[to], int(listed["caption_index"].iloc[to]), to // page_size + 1)
        buttons.button(label, key=f"step_{key}", shortcut=key, disabled=not possible, on_click=show, args=target)
    with buttons:
        note(f"{at + 1:,} of {len(listed):,}" if at >= 0 else "Hidden by the filters.")


def show_caption(image: str, index: int) -> None:
    """Choose what is shown beside the table, before the page is drawn."""
    view.choose("image", image)
    view.choose("caption", index)


def side_by_side(bar: Bar, lines: list[Line], human: set[str]) -> None:
    """The photograph if there is one, and two captions, words coloured on one scale. human: names of human sets."""
    first, *others = lines
    row, attribute, largest = first.scores.table.loc[first.row], first.scores.attribute, largest_word(lines)
    if picture := picture_path(bar.workspace, bar.collection, row["image_id"]):
        st.html(PICTURE_CSS)
        st.container(key="photograph").image(str(picture), alt=f"Photograph {row['image_id']}")
    elif photographs := bar.photographs():
        note(f"No photograph of this image; {counted(photographs.images, 'image')} have one (filter on the left).")
    column = str(first.scores.run.spec.labels["column"])
    named = "" if column == attribute.name else f" ({attribute.name}, from the column {column})"
    note(f"Labelled {attribute.values[int(row['label'])]}{named}.")
    methods = [_attribution(line.scores, line.row) for line in (first, *others[:1])]
    each = len(set(methods)) > 1  # else one line below serves both
    if not others:
        _draw(first, largest, human, method=each)
    else:
        alone = words_of_one(first.shown, others[0].shown)
        most_similar = f", the most similar of {len(others)}" if len(others) > 1 else ""
        left, right = st.container(key="captions_beside").columns(2, gap="small")
        with left:
            _draw(first, largest, human, alone[0], method=each)
        with right:
            _draw(others[0], largest, human, alone[1], most_similar, method=each)
    if not each:
        _show_attribution(methods[0])
    st.html(word_views.legend(attribute, beside=bool(others)))
    note("Percentages: probability of each value, by classifiers that did not train on this image.")


def _draw(
    line: Line, largest: float, human: set[str], alone: np.ndarray | None = None, extra: str = "", method: bool = True
) -> None:
    """method: whether to say how the words got their colours."""
    scores, shares = line.scores, line.scores.probabilities_of(line.row)
    who, tokens = who_wrote(line, human), line.tokens
    st.html(caption_line(who, tokens, line.words, scores.attribute, shares, line.shown, largest, extra, alone))
    if method:
        _show_attribution(_attribution(scores, line.row))


def who_wrote(line: Line, human: set[str]) -> str:
    """The name of a set, marked if people wrote it. human: names of human sets."""
    return f"{line.name} (human)" if line.name in human and "human" not in line.name else line.name


def _attribution(scores: CaptionScores, row: int) -> str:
    """How the words of a caption got their colours."""
    method, delta = attacker_entry(scores.run.spec.attacker).attribution, scores.table.at[row, "delta"]
    gap = f"convergence delta {f'{delta:.3f}' if delta >= 0.0005 else 'under 0.001'}" if delta > 0 else ""
    return ", ".join(filter(None, (method, gap)))


def _show_attribution(text: str) -> None:
    if text:
        st.markdown(f"Word colours: {plain(text)}", help=DELTA if "delta" in text else None)


def more_of_image(
    bar: Bar, runs: dict[str, RunRow], against: str, lines: list[Line], images: list[str], human: set[str]
) -> None:
    """Below the table: how the score adds up, other captions of the image, other encoders, and what if.

    images: those of the page, whose captions another encoder reads at the same time.
    """
    first, largest = lines[0], largest_word(lines)
    image = first.scores.table.at[first.row, "image_id"]
    _adds_up(lines[:2], human)
    box = st.expander(f"Other captions of image {plain(image)}", key="more_captions", on_change="rerun")
    if box.open:
        with box:
            rest = [line for name in runs if name != against for line in lines_of_image(bar, name, runs[name], image)]
            rest = [line for line in rest if (line.name, line.row) != (first.name, first.row)]
            for line in (*lines[2:], *rest):
                _draw(line, largest, human)
            if not lines[2:] and not rest:
                note("No other caption of this image is scored.")
    _other_encoders(bar, first, [*images, image])
    _what_if(bar, first, largest)


def _adds_up(lines: list[Line], human: set[str]) -> None:
    """The logits of the captions side by side as waterfalls, drawn once somebody opens them."""
    box = st.expander("How the score adds up", key="adds_up", on_change="rerun")
    if not box.open:
        return
    parts = []
    for line in lines:
        row, attribute = line.scores.table.loc[line.row], line.scores.attribute
        ends, values = toward(attribute, line.words, int(row["predicted"]))
        pairs = zip(line.shown, line.tokens, strict=True)
        names = [f"{word} (masked)" if token == attribute.mask_token else word for word, token in pairs]
        parts.append((line, row, names, values, line.scores.intercept(row), ends))
    largest = max(word_views.furthest(values, intercept) for _, _, _, values, intercept, _ in parts)
    columns = box.container(key="stacks_adds_up").columns(len(lines), gap="medium")
    for column, (line, row, names, values, intercept, ends) in zip(columns, parts, strict=True):
        with column:
            who = who_wrote(line, human)
            note(f"{who}: {line.written}")
            draw_chart(
                word_views.logit_waterfall(names, values, intercept, ends, largest),
                key=f"adds_up_{line.name}",
                alt=f"How the logit of the caption of {who} adds up",
            )
            within = f", within {row['delta']:.3f}," if row["delta"] > 0 else ""
            value = line.scores.attribute.values[int(row["predicted"])]
            note(f"The sum is{within} the logit; probability of {value}: {row['confidence']:.2f}.")


# Other encoders


def _other_encoders(bar: Bar, line: Line, images: list[str]) -> None:
    """The caption as other encoders read it: coloured words and attention; a run that trains one more.

    images: those whose captions the encoder of a new run reads.
    """
    run, attribute = line.scores.run, line.scores.attribute
    image, index = line.scores.table.loc[line.row, ["image_id", "caption_index"]]
    # Tracked, so that it stays open when the page is drawn anew at the end of a run.
    box = st.expander("How another encoder reads it", key="another_encoder", on_change="rerun")
    if not box.open:
        return
    with box:
        attention: dict[str, Attention] = {}
        others = encoder_views(bar.workspace, bar.collection, run, image)
        if others:
            st.html(word_views.legend(attribute))
        for name, other in others.items():
            encoder = cached.encoder_view(bar.folder, other.run_id)
            scores, table = encoder.scores, encoder.scores.table
            for row in table.index[(table["image_id"] == image) & (table["caption_index"] == index)]:
                # Each line has its scale: logits of two encoders cannot be compared.
                tokens, shares = table.at[row, "masked"].split(), scores.probabilities_of(row)
                originals = tokenize(line.written)
                st.html(caption_line(name, tokens, scores.words_of(row), scores.attribute, shares, originals))
                _show_attribution(_attribution(scores, row))
                if encoder.attention:
                    attention[name] = encoder.attention[row]
        if attention:
            _attention(attention)
        with errors():
            left, right = st.columns([2, 1])
            attacker = left.selectbox(
                "Encoder",
                list(ATTACKERS),
                list(ATTACKERS).index(FIRST_ENCODER),
                accept_new_options=True,
                key="reading_encoder",
                help="Or type the folder or name of any model of sentence-transformers or transformers; nothing is "
                "fetched.",
            )
            device = right.selectbox("Device", DEVICES, key="reading_device", help="auto: CUDA where there is one.")
            note(
                f"{attacker_entry(attacker).title}: one attacker is trained on the other images, and reads the "
                f"captions of {counted(len(set(images)), 'image')} of this page. Each line has its own scale of "
                "colours."
            )
            spec = plan_encoder_view(bar.workspace, run.spec, attacker, images, {"device": device})
            start_button(bar, [spec], "Read", "read_captions")


def _attention(attention: dict[str, Attention]) -> None:
    """Two attackers side by side: what each reads for the caption as a whole, or one head between all words."""
    kind = st.segmented_control("Attention", [CLASS, WORDS], default=CLASS, required=True, key="attention_kind")
    names, chosen = list(attention), []
    columns = st.container(key="stacks_attention").columns(2, gap="medium")
    for number, column in enumerate(columns[: len(names)]):
        pick, left, right = column.columns([2, 1, 1])
        name = pick.selectbox("Attention of", names, number, key=f"attention_of_{number}")
        first, (layers, heads) = word_views.first_shown(attention[name]), attention[name].weights.shape[:2]
        key = f"{number}_{layers}_{heads}"
        layer = left.number_input(f"Layer of {layers:,}", 1, layers, first[0], key=f"layer_{key}")
        head = right.number_input(f"Head of {heads:,}", 1, heads, first[1], key=f"head_{key}") if kind == WORDS else 0
        chosen.append((name, int(layer), int(head)))
    largest = max(float(word_views.class_token_weights(attention[name], layer)[1].max()) for name, layer, _ in chosen)
    for number, (column, (name, layer, head)) in enumerate(zip(columns, chosen, strict=False)):
        weights = attention[name]
        figure = (
            word_views.class_token_chart(weights, layer, largest)
            if kind == CLASS
            else word_views.attention_chart(weights, layer, head)
        )
        with column:
            draw_chart(figure, key=f"attention_{number}", alt=f"Attention of {name}, layer {layer}")
    if len(names) == 1:
        with columns[1]:
            note("Read the caption with a second Transformer or BERT model below to compare two attackers here.")
    scale = f"The darkest colour is a share of {largest:.2f}, in both charts. " if kind == CLASS else ""
    note(
        f"{scale}A row sums to 1, and pieces of a word are summed. Attention shows what a head mixes, not what the "
        "guess depends on; for that, see the coloured words. In a frozen encoder it does not depend on the attacker's "
        "training."
    )


# What if


@st.fragment
@errors()
def _what_if(bar: Bar, line: Line, largest: float) -> None:
    """Edit the caption, or give an edit such as `man -> woman | person`; beside it is the original as written."""
    scores, original = line.scores, line.written
    st.markdown("**What if**")
    spec, attribute = scores.run.spec, scores.attribute
    # A rewritten caption waits with its image; an edit such as `man -> woman` goes along to the next caption.
    caption = f"{scores.run.run_id}_{line.row}"
    before, edit = st.session_state.get("edit_of", caption), st.session_state.get("edit", "")
    if before != caption and not is_edit(edit):
        rewritten = st.session_state.setdefault("rewritten", {})
        rewritten[before] = edit
        view.forget(["edit"])
        if rewritten.get(caption):
            view.choose("edit", rewritten[caption])
    st.session_state["edit_of"] = caption

    label = "Edit the caption, or write an edit such as: umbrella -> bat | dog"
    edited = view.text(st, label, key="edit", default=original)
    if not edited.strip():
        note(f"Type a caption, or an edit such as: umbrella -> bat | dog. The original reads: {original}")
        return
    try:
        variants = [edited]
        if is_edit(edited):
            word, replacements = parse_edit(edited)
            applied = [apply_edit(original, word, replacement) for replacement in replacements]
            variants = [variant for variant in applied if variant is not None]
            if None in applied:
                note(f"This caption does not have the word {word}.")
        variants = [variant for variant in variants if variant != original]
        at_once = attacker_entry(spec.attacker).rescores
        read = _score_at_once(bar, line, variants) if at_once else _train_and_score(bar, line, variants)
        if read is None:
            return
        unedited, *others = read
        if not others:
            _rescored("original", unedited, None, attribute, original, largest)
        for number, (variant, rescored) in enumerate(zip(variants, others, strict=True)):
            left, right = st.container(key=f"stacks_what_if_{number}").columns(2, gap="large")
            with left:
                _rescored("original", unedited, None, attribute, original, largest)
            with right:
                _rescored("edited", rescored, unedited, attribute, variant, largest)
            if rescored.tokens == unedited.tokens:
                note("No change: the attacker reads the same text, because attribute words are masked.")
            if at_once and not is_edit(edited) and (unseen := _models(bar, line).unseen(rescored.tokens, attribute)):
                note(f"⚠ The classifier does not know {', '.join(unseen)}; only the removed words count.")
        if at_once and is_edit(edited):
            _everywhere(bar, scores, edited)
    except CapbiasError as error:
        show_error(error)


def _models(bar: Bar, line: Line) -> StoredAttackers:
    return cached.attackers(bar.folder, line.scores.run.run_id, line.caption_index)


def _score_at_once(bar: Bar, line: Line, variants: list[str]) -> list[Rescored]:
    """The original and its variants by the attacker that was stored, which did not train on the image."""
    models, fold = _models(bar, line), int(line.scores.table.at[line.row, "fold"])
    merge = line.scores.run.spec.merge_masks
    return [models.score(text, line.scores.attribute, fold, merge) for text in (line.written, *variants)]


def _train_and_score(bar: Bar, line: Line, variants: list[str]) -> list[Rescored] | None:
    """As `_score_at_once`, of an attacker whose weights are not stored: a run trains one on the other images. None
    until it is finished; a button starts it."""
    spec = line.scores.run.spec
    name, image = spec.attacker, line.scores.table.at[line.row, "image_id"]
    if not variants:
        note(f"{name} trains again, on the other images, to read an edited caption. The cost is shown first.")
        return None
    training = {option: spec.options[option] for option in TRAINING if option in spec.options}
    asked = plan_encoder_view(bar.workspace, spec, name, [image], training, variants, line.caption_index)
    run = bar.workspace.run(asked.run_id)
    if run and run.status == "finished":
        note(f"{name}, trained once on the other images. Its guess may differ from the one above, of another training.")
        return cached.what_if(bar.folder, run.run_id)
    note(f"{name} trains once on the other images, then reads the original and the edit. The result is kept.")
    start_button(bar, [asked], "Train and read", "what_if")
    return None


def _rescored(
    name: str, scored: Rescored, before: Rescored | None, attribute: Attribute, text: str, largest: float
) -> None:
    column = 0 if len(scored.logit) == 1 else int(scored.probabilities.argmax())
    change = ""
    if before:
        # Of the value that the original is taken for, so that a sign means the same for each edit.
        first = int(before.probabilities.argmax())
        moved = signed(scored.probabilities[first] - before.probabilities[first], 2)
        change = f" · {attribute.values[first]} {moved} against the original"
    logit, intercept = signed(scored.logit[column], 3), signed(scored.baseline[column], 3)
    exact = np.allclose(scored.baseline + scored.words.sum(axis=0), scored.logit, atol=1e-3)
    extra = f"{change}; logit {logit} {'=' if exact else '≈'} intercept {intercept} + words"
    tokens, shares = scored.tokens, scored.probabilities
    st.html(caption_line(name, tokens, scored.words, attribute, shares, tokenize(text), largest, extra))


def _everywhere(bar: Bar, scores: CaptionScores, edit: str) -> None:
    """What the edit does in all captions with the word; of several captions per image, in the first."""
    word, replacements = parse_edit(edit)
    first = ", the first of each image" if scores.table["caption_index"].any() else ""
    for replacement in replacements:
        effect = cached.edit_effect(bar.folder, scores.run.run_id, word, replacement)
        count = effect["captions_with_the_word"]
        shares = ", ".join(
            f"{value} {effect['probability_before'][value]:.3f} → {effect['probability_after'][value]:.3f}"
            for value in (scores.attribute.values if count else ())
        )
        mean = f": mean probability of {shares}" if shares else ""
        note(
            f"{word} → {replacement} in {counted(count, 'caption')} of {scores.run.spec.model}{first}{mean}. "
            f"{effect['note']}"
        )
