"""One image of the Captions page: its photograph, two captions side by side, and what else is known of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from capbias_core.prepare import tokenize
from capbias_core.runs.engine import Engine
from capbias_core.types import Attribute
from capbias_core.views.captions import CaptionScores, closest, toward, words_of_one
from capbias_core.views.words import furthest, legend, logit_waterfall
from capbias_core.workspace.photographs import picture_path
from capbias_core.workspace.store import RunRow
from pages.ui import cached, view
from pages.ui.base import note
from pages.ui.chart import draw_chart
from pages.ui.coloured import attribution, coloured_caption
from pages.ui.encoder_view import other_encoders
from pages.ui.what_if import what_if

PICTURE_CSS = """<style>
.st-key-photograph img {max-height: 13rem; width: auto !important; max-width: 100%}
</style>"""


@dataclass(frozen=True)
class Line:
    """One caption of one set: where it stands in the scores of the set, and its words as they are shown."""

    name: str
    scores: CaptionScores
    place: int
    written: str

    @property
    def tokens(self) -> list[str]:
        return self.scores.table.at[self.place, "masked"].split()

    @property
    def shown(self) -> list[str]:
        """The words as written, where they are as many as the tokens that the attacker reads."""
        words = tokenize(self.written)
        return words if len(words) == len(self.tokens) else self.tokens


@dataclass(frozen=True)
class OneImage:
    """The captions of one image. others: of the set beside it, the closest first."""

    image: str
    own: Line
    others: list[Line]

    @property
    def largest(self) -> float:
        """What the strongest colour stands for: one scale for all captions, so that they can be compared."""
        return max(float(abs(line.scores.words_of(line.place)).max(initial=0.0)) for line in [self.own, *self.others])


def read_image(engine: Engine, runs: dict[str, RunRow], name: str, against: str, place: int) -> OneImage:
    """The caption at a row of the scores of one set, and those of its image in the set beside it."""
    own = _line(engine, name, cached.scores(engine.folder, runs[name].run_id), place)
    image = own.scores.table.at[place, "image_id"]
    others = _lines(engine, against, runs[against], image) if against in runs else []
    if others:
        first = closest(own.shown, [line.shown for line in others])
        others = [others[first], *others[:first], *others[first + 1 :]]
    return OneImage(image, own, others)


def _rest(engine: Engine, runs: dict[str, RunRow], names: tuple[str, str], found: OneImage) -> list[Line]:
    """The other captions of the image in the set of the one shown, and those in every set that is not beside it."""
    name, against = names
    lines = [line for other in runs if other != against for line in _lines(engine, other, runs[other], found.image)]
    return [line for line in lines if (line.name, line.place) != (name, found.own.place)]


def _lines(engine: Engine, name: str, run: RunRow, image: str) -> list[Line]:
    scores = cached.scores(engine.folder, run.run_id)
    return [_line(engine, name, scores, int(row)) for row in np.flatnonzero(scores.table["image_id"] == image)]


def _line(engine: Engine, name: str, scores: CaptionScores, place: int) -> Line:
    written = cached.captions(engine.folder, scores.run.spec.captions)
    return Line(name, scores, place, written["caption"].iloc[scores.table.at[place, "kept_at"]])


def steps(chosen: pd.DataFrame, place: int, page: int) -> None:
    """Where the caption stands in the filtered order, and buttons to the one before and after it; arrow keys too."""
    found = np.flatnonzero(chosen.index == place)
    at = int(found[0]) if len(found) else -1
    bar = st.container(horizontal=True, vertical_alignment="center")
    for label, key, to, possible in (
        ("Previous", "Left", at - 1, at > 0),
        ("Next", "Right", at + 1, at + 1 < len(chosen)),
    ):
        row = chosen.iloc[to] if possible else None
        target = (row["image_id"], int(row["caption_index"]), to // page + 1) if row is not None else ()
        bar.button(label, key=f"step_{key}", shortcut=key, disabled=not possible, on_click=_show, args=target)
    with bar:
        note(f"{at + 1:,} of {len(chosen):,}" if at >= 0 else "Hidden by the filters.")


def _show(image: str, index: int, page: int) -> None:
    show_caption(image, index)
    view.choose("page", page)


def show_caption(image: str, index: int) -> None:
    """Choose what is shown beside the table, before the page is drawn."""
    view.choose("image", image)
    view.choose("caption", index)


def side_by_side(engine: Engine, collection: str, found: OneImage, human: set[str]) -> None:
    """The photograph where there is one, and the two captions, words coloured on one scale."""
    own, attribute = found.own, found.own.scores.attribute
    if picture := picture_path(engine.workspace, collection, found.image):
        st.html(PICTURE_CSS)
        st.container(key="photograph").image(str(picture), alt=f"Photograph {found.image}")
    note(f"Labelled {attribute.values[int(own.scores.table.at[own.place, 'label'])]}.")
    if not found.others:
        _draw(own, found.largest, human)
    else:
        other = found.others[0]
        alone = words_of_one(own.shown, other.shown)
        closest_of = f", the most similar of {len(found.others)}" if len(found.others) > 1 else ""
        left, right = st.container(key="captions_beside").columns(2, gap="small")
        with left:
            _draw(own, found.largest, human, alone[0])
        with right:
            _draw(other, found.largest, human, alone[1], closest_of)
    st.html(legend(attribute, beside=bool(found.others)))
    note("Percentages: probability of each value, by classifiers that did not train on this image.")


def more_of_image(
    engine: Engine,
    collection: str,
    runs: dict[str, RunRow],
    names: tuple[str, str],
    found: OneImage,
    beside: list[str],
    human: set[str],
) -> None:
    """Below the table: other captions of the image, how other encoders read it, and what if it read otherwise.

    names: the set and the one beside it. beside: the images of the page, which another encoder reads at the same time.
    """
    adds_up(found, human)
    box = st.expander(f"Other captions of image {found.image}", key="more_captions", on_change="rerun")
    if box.open:
        with box:
            more = [*found.others[1:], *_rest(engine, runs, names, found)]
            for line in more:
                _draw(line, found.largest, human)
            if not more:
                note("No other caption of this image is scored.")
    own = found.own
    other_encoders(engine, collection, runs[names[0]], own.scores, own.place, beside, tokenize(own.written))
    what_if(engine, own.scores, own.place, own.written, found.largest)


def adds_up(found: OneImage, human: set[str]) -> None:
    """The logits of the captions side by side as waterfalls, drawn once somebody opens them."""
    lines = [found.own, *found.others[:1]]
    box = st.expander("How the score adds up", key="adds_up", on_change="rerun")
    if not box.open:
        return
    parts = [_parts(line) for line in lines]
    largest = max(furthest(values, intercept) for _, values, intercept in parts)
    columns = box.container(key="stacks_adds_up").columns(len(lines), gap="medium")
    for column, line, (ends, values, intercept) in zip(columns, lines, parts, strict=True):
        with column:
            who = _who(line, human)
            note(f"{who}: {line.written}")
            draw_chart(
                logit_waterfall(_named(line), values, intercept, ends, largest),
                key=f"adds_up_{line.name}",
                alt=f"How the logit of the caption of {who} adds up",
            )
            delta = line.scores.table.at[line.place, "delta"]
            near = f", within {delta:.3f}," if delta > 0 else ""
            row = line.scores.table.loc[line.place]
            value = line.scores.attribute.values[int(row["predicted"])]
            note(f"The sum is{near} the logit; probability of {value}: {row['confidence']:.2f}.")


def _named(line: Line) -> list[str]:
    """The words as they are shown, and which of them the attacker does not read."""
    mask = line.scores.attribute.mask_token
    pairs = zip(line.shown, line.tokens, strict=True)
    return [f"{word} (masked)" if token == mask else word for word, token in pairs]


def _parts(line: Line) -> tuple[Attribute, np.ndarray, float]:
    """The two ends of the scale, what each word adds, and the intercept."""
    row, words = line.scores.table.loc[line.place], line.scores.words_of(line.place)
    ends, values = toward(line.scores.attribute, words, int(row["predicted"]))
    return ends, values, line.scores.intercept(row)


def _who(line: Line, human: set[str]) -> str:
    return f"{line.name} (human)" if line.name in human and "human" not in line.name else line.name


def _draw(line: Line, largest: float, human: set[str], alone: np.ndarray | None = None, extra: str = "") -> None:
    coloured_caption(
        _who(line, human),
        line.tokens,
        line.scores.words_of(line.place),
        line.scores.attribute,
        line.scores.probabilities_of(line.place),
        line.shown,
        largest,
        extra,
        alone,
    )
    attribution(line.scores, line.place)
