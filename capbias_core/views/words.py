"""What words add to a caption's score, what an edit changes, and attention. Every text of the HTML is escaped."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from capbias_core.attackers.what_if import StoredAttackers, apply_edit
from capbias_core.errors import CapbiasError
from capbias_core.prepare import tokenize
from capbias_core.types import Attention, Attribute, counted
from capbias_core.views.captions import CaptionScores
from capbias_core.views.charts import BLUE, BLUE_MARK, GREY, MARGINS, ORANGE_MARK, graph_objects, ramp
from capbias_core.views.sentence import signed
from capbias_core.views.tables import to_text

# scored captions as data for a terminal or JSON, with every digit: logits and what words add are named by the value
# that they push toward, the second of two values, or each of more


def scored_image(scores: CaptionScores, written: pd.Series, image: str) -> list[dict[str, Any]]:
    """The captions of an image, each scored by an attacker that did not train on it.

    written: caption as written, by row of scores.table.
    """
    rows = scores.table[scores.table["image_id"] == image].sort_values("caption_index")
    return [
        {
            "image_id": image,
            "caption_index": int(row["caption_index"]),
            "caption": written[index],
            "label": scores.attribute.values[int(row["label"])],
            "fold": int(row["fold"]),
            **_parts(
                scores.attribute,
                row["masked"].split(),
                scores.words_of(index),
                *(_numbers(row, part) for part in ("baseline", "logit", "p")),
            ),
            "convergence_delta": float(row["delta"]),
        }
        for index, row in rows.iterrows()
    ]


def scored_text(scores: CaptionScores, attackers: StoredAttackers, text: str) -> dict[str, Any]:
    """A caption of no image, scored by all attackers of a set: their mean."""
    scored = attackers.score(text, scores.attribute, None, scores.run.spec.merge_masks)
    parts = _parts(scores.attribute, scored.tokens, scored.words, scored.baseline, scored.logit, scored.probabilities)
    return {"caption": text, "attackers": len(attackers.weights), **parts}


def caption_text(scored: dict[str, Any]) -> str:
    """One caption: its words as the attacker reads them, what each adds, and what that makes."""
    parts = [(item["token"], item["adds"]) for item in scored["tokens"]]
    parts += [("(intercept)", scored["intercept"]), ("= logit", scored["logit"])]
    columns = {value: f"adds toward {value}" for value in scored["intercept"]}
    rows = [
        {"word": token} | {title: signed(adds[value], 4) for value, title in columns.items()} for token, adds in parts
    ]
    if "attackers" in scored:
        scorer = f"Mean of {scored['attackers']} attackers; the caption belongs to no image."
    else:
        scorer = f"Image {scored['image_id']}, labelled {scored['label']}; no attacker here trained on this image."
        scorer += f" Convergence delta {scored['convergence_delta']:.2g}." if scored["convergence_delta"] else ""
    shares = ", ".join(f"{value} {share:.3f}" for value, share in scored["probability"].items())
    return f"{scored['caption']}\n{scorer}\n\n{to_text(pd.DataFrame(rows))}\nProbability: {shares}.\n"


def edit_effect(
    scores: CaptionScores, written: pd.Series, attackers: StoredAttackers, word: str, replacement: str
) -> dict[str, Any]:
    """What replacing a word does over the whole set, each caption rescored by the attacker that held its image out.

    Counts, means and examples are over the captions with the word (the first caption of each image).
    """
    attribute, merge = scores.attribute, scores.run.spec.merge_masks
    first = scores.table[scores.table["caption_index"] == 0].sort_values("image_id")
    texts = written[first.index].map(lambda caption: apply_edit(caption, word, replacement)).dropna()
    before = first.loc[texts.index]
    folds = zip(texts, before["fold"], strict=True)
    after = [attackers.score(text, attribute, int(fold), merge) for text, fold in folds]
    differ = sum(" ".join(new.tokens) != masked for new, masked in zip(after, before["masked"], strict=True))
    earlier, later = _numbers(before, "p"), [new.probabilities for new in after]
    changes = [new.logit - logit for new, logit in zip(after, _numbers(before, "logit"), strict=True)]
    note, tokens, words = "", tokenize(replacement), attribute.masked_words  # what a reader may miss
    if not after:
        note = f"No caption has the word {word}."
    elif not differ and word in words and words.issuperset(tokens):
        note = (
            f"Nothing changes: {word} and {replacement} are words for {attribute.name}, and the attacker reads "
            f"{attribute.mask_token} for either."
        )
    elif not differ:
        note = "Nothing changes: the attacker reads the same captions."
    elif unseen := attackers.unseen(tokens, attribute):
        note = f"No attacker has seen {', '.join(unseen)}: only the loss of {word} counts."

    def mean(rows: Any, names: Sequence[str]) -> dict[str, float]:
        return _named(np.mean(rows, axis=0), names) if len(rows) else {}

    return {
        "word": word,
        "replacement": replacement,
        "captions_with_the_word": len(after),
        "captions_that_read_differently": differ,
        "note": note,
        "probability_before": mean(earlier, attribute.values),
        "probability_after": mean(later, attribute.values),
        "change_of_logit": mean(changes, _towards(attribute)),
        "examples": [
            {
                "image_id": before.at[index, "image_id"],
                "label": attribute.values[int(before.at[index, "label"])],
                "before": written[index],
                "after": texts[index],
                "probability_before": _named(first, attribute.values),
                "probability_after": _named(second, attribute.values),
            }
            for index, first, second in list(zip(texts.index, earlier, later, strict=True))[:3]
        ],
    }


def edit_text(edit: dict[str, Any]) -> str:
    """What one edit does: means over the captions with the word, then examples."""
    lines = [f"{edit['word']} -> {edit['replacement']}: {counted(edit['captions_with_the_word'], 'caption')}"]
    lines += [edit["note"]] if edit["note"] else []
    if edit["captions_that_read_differently"]:
        for value, change in edit["change_of_logit"].items():
            before, after = edit["probability_before"][value], edit["probability_after"][value]
            lines.append(
                f"Mean probability of {value} {before:.3f} -> {after:.3f}, mean change of logit {signed(change, 3)}."
            )
        for item in edit["examples"]:
            shares = ", ".join(
                f"{value} {item['probability_before'][value]:.3f} -> {item['probability_after'][value]:.3f}"
                for value in edit["change_of_logit"]
            )
            lines += [f"  image {item['image_id']}, labelled {item['label']}: {shares}"]
            lines += [f"    before: {item['before']}", f"    after:  {item['after']}"]
    return "\n".join(lines) + "\n"


def _parts(attribute: Attribute, tokens: Sequence[str], words: np.ndarray, baseline, logit, shares) -> dict[str, Any]:
    """What each token adds, and what that makes: intercept + tokens = logit."""
    names = _towards(attribute)
    return {
        "tokens": [{"token": token, "adds": _named(row, names)} for token, row in zip(tokens, words, strict=True)],
        "intercept": _named(baseline, names),
        "logit": _named(logit, names),
        "probability": _named(shares, attribute.values),
    }


def _towards(attribute: Attribute) -> tuple[str, ...]:
    return attribute.values[1:] if len(attribute.values) == 2 else attribute.values


def _numbers(rows: pd.DataFrame | pd.Series, part: str) -> np.ndarray:
    """The columns part0, part1, ... of a table of scores, or of one of its rows."""
    return rows.filter(regex=rf"^{part}\d+$").to_numpy(dtype=float)


def _named(values, names: Sequence[str]) -> dict[str, float]:
    return {name: float(value) for name, value in zip(names, values, strict=True)}


# words of a caption in colour

STYLE = """<style>
.cb-words {line-height: 2.1; font-size: 1.02rem; overflow-wrap: anywhere}
.cb-w {display: inline-block; max-width: 100%; line-height: 1.4; border-radius: 4px; padding: 1px 5px; margin: 0 1px}
.cb-first {border-bottom: 2px dotted var(--cb-orange)}
.cb-second {border-bottom: 2px solid var(--cb-blue)}
.cb-masked {border: 1px dashed var(--cb-grey); opacity: .75}
.cb-alone {font-weight: 750}
/* What a word adds: read out by a screen reader, and shown where a keyboard goes to the caption. */
.cb-w[data-adds]::after {content: " " attr(data-adds); position: absolute; width: 1px; height: 1px; overflow: hidden;
  clip-path: inset(50%); white-space: nowrap}
.cb-words:focus-visible .cb-w[data-adds]::after {position: static; width: auto; height: auto; clip-path: none;
  font-size: .72rem; padding-left: .2rem; white-space: nowrap}
.cb-legend {font-size: .85rem}
</style>"""


MOST_DRAWN = 1_000  # words of a caption; a longer one would send megabytes to the browser


def _further(words: Sequence[str]) -> list[str]:
    """What stands for the words that are not drawn."""
    return [f"… and {len(words) - MOST_DRAWN:,} more words"] if len(words) > MOST_DRAWN else []


def coloured_words(
    tokens: Sequence[str],
    values: np.ndarray,
    attribute: Attribute,
    originals: Sequence[str] | None = None,
    largest: float = 0.0,
    alone: Sequence[bool] | np.ndarray | None = None,
    only: str = "",
    plain: Collection[str] = (),
) -> str:
    """HTML of one caption. tokens: T masked tokens; values: (T,) signed contributions (negative pushes toward the
    first value, positive toward the second). originals: the T words that stood there before masking, if known.
    largest: the value that gets the full colour; 0 takes this caption's largest. alone: (T,) booleans, words that the
    caption beside it does not have; they are bold. only: the token that is coloured (default: all). plain: tokens
    without a colour, such as function words; what they add is on hover.
    """
    largest = largest or max((abs(float(value)) for value in values), default=0.0)
    marks = [False] * len(tokens) if alone is None else alone
    parts = []
    words = zip(tokens, map(float, values), originals or tokens, marks, strict=True)
    for token, value, original, mark in islice(words, MOST_DRAWN):
        kind = " cb-alone" if mark else ""
        if only not in ("", token):
            parts.append(escape(original))
        elif token == attribute.mask_token:
            title = escape(f"masked: the attacker reads {token} ({signed(value, 3)})")
            adds = f'title="{title}" data-adds="(masked, {signed(value, 2)})"'
            parts.append(f'<span class="cb-w cb-masked{kind}" {adds}>{escape(original)}</span>')
        else:
            toward, side = attribute.values[int(value >= 0)], "cb-first" if value < 0 else "cb-second"
            title = escape(f"{signed(value, 3)} toward {toward}")
            adds = f'title="{title}" data-adds="({signed(value, 2)} {escape(toward)})"'
            colour = "" if token in plain else f'style="background:{ramp(value, largest)}"'
            parts.append(f'<span class="cb-w {side}{kind}" {colour} {adds}>{escape(token)}</span>')
    named = 'role="group" tabindex="0" aria-label="A caption, with what each word adds to the logit"'
    return f'<div class="cb-words" {named}>{" ".join([*parts, *_further(tokens)])}</div>'


def legend(attribute: Attribute, beside: bool = False) -> str:
    """HTML that names both ends of the ramp. beside: two captions are compared, and words of only one are marked."""
    ends = "".join(
        f'<span class="cb-w {side}" style="background:{ramp(sign, 1.0)}">{escape(value)}</span>'
        + (" or " if sign < 0 else "")
        for sign, side, value in ((-1, "cb-first", attribute.values[0]), (1, "cb-second", attribute.values[1]))
    )
    masked = (
        ' · <span class="cb-w cb-masked">masked word</span>, of which the attacker sees only that it is there'
        if attribute.masked_words
        else ""
    )
    alone = ' · <span class="cb-alone">only in this caption</span>' if beside else ""
    return (
        f'<div class="cb-legend">A word pushes the attacker toward {ends} (dotted and solid underline)'
        f"{masked}{alone} · function words have no colour · hover a word for what it adds to the logit, or go to a "
        "caption with Tab</div>"
    )


LARGE = """<style>
.cb-large {display: flex; flex-wrap: wrap; gap: 1.2rem .9rem; margin: 1rem 0}
.cb-large span {display: inline-block; text-align: center; font-size: clamp(28px, 3vw, 52px); line-height: 1.5}
.cb-large small {display: block; font-variant-numeric: tabular-nums}
.cb-score {font-size: clamp(28px, 3.2vw, 56px); font-weight: 650}
</style>"""


def large_words(
    tokens: Sequence[str],
    values: np.ndarray,
    attribute: Attribute,
    originals: Sequence[str],
    plain: Collection[str] = (),
) -> str:
    """HTML of one caption to be read from the back of a room, as `coloured_words` has it, with each word's value and
    the value of the attribute that it pushes toward printed under it."""
    largest, parts = max((abs(float(value)) for value in values), default=0.0), []
    for token, value, original in islice(zip(tokens, map(float, values), originals, strict=True), MOST_DRAWN):
        adds = escape(pushes(value, attribute))
        if token == attribute.mask_token:
            word, adds = f'<span class="cb-w cb-masked">{escape(original)}</span>', f"masked, {adds}"
        else:
            side = "cb-first" if value < 0 else "cb-second"
            colour = "" if token in plain else f'style="background:{ramp(value, largest)}"'
            word = f'<span class="cb-w {side}" {colour}>{escape(token)}</span>'
        parts.append(f"<span>{word}<small>{adds}</small></span>")
    return f'<div class="cb-large">{"".join([*parts, *_further(tokens)])}</div>'


def pushes(value: float, attribute: Attribute) -> str:
    """A part of the logit and the value of the attribute that it is toward: `0.40 Male`, `0.00`."""
    printed = f"{abs(value):.2f}"
    return f"{printed} {attribute.values[int(value > 0)]}" if float(printed) else printed


def logit_waterfall(words: Sequence[str], values: np.ndarray, intercept: float, ends: Attribute, largest: float):
    """How a caption's logit adds up: the intercept, every word in order, and the sum as the last bar.

    words: T words as they are shown. values: (T,) what each adds, positive toward the second of the two values of ends.
    largest: the axis goes this far to either side, so that two captions can be compared.
    """
    words = [*words[:MOST_DRAWN], *_further(words)]
    if len(values) > MOST_DRAWN:  # the last bar before the sum is that of all others
        values = np.append(values[:MOST_DRAWN], values[MOST_DRAWN:].sum())
    steps = [intercept, *map(float, values)]
    go, total = graph_objects(), sum(steps)
    figure = go.Figure(
        go.Waterfall(
            orientation="h",
            y=list(range(len(steps) + 1)),
            x=[*steps, total],
            measure=["absolute", *["relative"] * len(values), "total"],
            text=[signed(step, 2) for step in (*steps, total)],
            textposition="outside",
            cliponaxis=False,
            hoverinfo="none",
            connector={"line": {"color": GREY, "width": 1}},
            increasing={"marker": {"color": BLUE_MARK}},
            decreasing={"marker": {"color": ORANGE_MARK}},
            totals={"marker": {"color": GREY}},
        )
    )
    figure.add_vline(x=0, line={"dash": "dash", "color": GREY, "width": 1.5})
    names = ["intercept", *map(escape, words), "sum"]
    title = f"← {escape(ends.values[0])} · logit · {escape(ends.values[1])} →"
    return figure.update_layout(
        height=MARGINS + 24 * len(names),
        margin={"l": 10, "r": 40, "t": 10, "b": 46},
        showlegend=False,
        xaxis={"title": {"text": title}, "zeroline": False, "range": [-largest, largest]},
        yaxis={"tickvals": list(range(len(names))), "ticktext": names, "autorange": "reversed", "automargin": True},
        dragmode=False,
    )


def furthest(values: np.ndarray, intercept: float) -> float:
    """How far from 0 the sums of a waterfall get, with room for the numbers beside its bars.

    >>> furthest(np.array([1.0, -3.0]), 0.0)
    2.6
    """
    return 1.3 * float(abs(intercept + np.cumsum([0.0, *values])).max())


# attention between the words of a caption

# Where the reproduction of LIC (Baratov et al. 2023) found what its classes hang on, counted from 1.
PAPERS_LAYER, PAPERS_HEAD = 4, 2
CLASS_TOKENS = ("[CLS]", "<s>")  # of BERT and RoBERTa, whose state stands for the whole text


def first_shown(attention: Attention) -> tuple[int, int]:
    """Layer and head to begin with, from 1: those of the reproducibility paper, or the last where there are fewer."""
    layers, heads = attention.weights.shape[:2]
    return min(PAPERS_LAYER, layers), min(PAPERS_HEAD, heads)


def weights_of(attention: Attention, layer: int, head: int) -> np.ndarray:
    """(W, W) of one layer and head, counted from 1. Raises CapbiasError where there is none."""
    for what, number, count in zip(("layer", "head"), (layer, head), attention.weights.shape, strict=False):
        if not 1 <= number <= count:
            raise CapbiasError(f"There is no {what} {number}: the encoder has {count}.")
    return attention.weights[layer - 1, head - 1]


def class_token_weights(attention: Attention, layer: int) -> tuple[str, np.ndarray]:
    """Which words each head of a layer reads for the caption as a whole: who reads, and (heads, W) shares.

    That is the class token, such as `[CLS]`; where the encoder has none, as Transformers from scratch that average over
    their words, the mean over all words. layer: from 1. Raises CapbiasError where there is none.
    """
    weights_of(attention, layer, 1)
    weights, first = attention.weights[layer - 1], attention.words[0]
    if first in CLASS_TOKENS:
        return f"the class token {first}", weights[:, 0]
    return "the mean over words", weights.mean(axis=1)


def attention_chart(attention: Attention, layer: int, head: int):
    """Which word (row) reads how much of which (column) in a head; darker is more, from 0 to 1."""
    figure = _heat_map(weights_of(attention, layer, head), attention.words, attention.words, "is read", 1.0)
    return figure.update_yaxes(title_text="word that reads")


def class_token_chart(attention: Attention, layer: int, largest: float = 1.0):
    """How much each head (row) of a layer reads of each word (column); darker is more, from 0 to `largest`."""
    reader, weights = class_token_weights(attention, layer)
    heads = [f"head {number}" for number in range(1, len(weights) + 1)]
    return _heat_map(weights, heads, attention.words, f"is read by {reader}", largest).update_traces(showscale=False)


def _heat_map(weights: np.ndarray, readers: Sequence[str], words: Sequence[str], title: str, largest: float):
    go, down, across = graph_objects(), [escape(name) for name in readers], [escape(name) for name in words]
    hover = [
        [f"{reader} reads {share:.2f} of {read}" for read, share in zip(across, row, strict=True)]
        for reader, row in zip(down, weights, strict=True)
    ]
    figure = go.Figure(
        go.Heatmap(
            z=weights,
            x=list(range(len(across))),
            y=list(range(len(down))),
            hovertext=hover,
            hoverinfo="text",
            zmin=0,
            zmax=largest,
            xgap=2,
            ygap=2,
            colorscale=[[0, "rgba(29,95,168,0.04)"], [1, "rgb({},{},{})".format(*BLUE)]],
            colorbar={"title": {"text": "share"}, "thickness": 12, "outlinewidth": 0},
        )
    )
    axes = [
        {"tickvals": list(range(len(names))), "ticktext": names, "showgrid": False, "zeroline": False}
        for names in (across, down)
    ]
    above = {"side": "top", "title": {"text": title, "standoff": 12}, "tickangle": -90, "automargin": True}
    return figure.update_layout(
        height=120 + 30 * len(down),
        margin={"l": 10, "r": 10, "t": 60, "b": 30},
        dragmode=False,
        xaxis=axes[0] | above,
        yaxis={**axes[1], "autorange": "reversed", "automargin": True},
    )


def attention_text(attention: Attention, layer: int | None = None, head: int | None = None) -> str:
    """The same as columns for a terminal: a row for each word that reads, with the words that it reads most of.

    layer, head: from 1; None for those of `first_shown`.
    """
    usual = first_shown(attention)
    layer, head = layer or usual[0], head or usual[1]
    weights = weights_of(attention, layer, head)
    rows = [
        {
            "word": word,
            "reads most of": ", ".join(f"{attention.words[position]} {row[position]:.2f}" for position in order[:4]),
        }
        for word, row, order in zip(attention.words, weights, np.argsort(-weights, axis=1), strict=True)
    ]
    layers, heads = attention.weights.shape[:2]
    return f"Attention, layer {layer} of {layers}, head {head} of {heads}:\n\n{to_text(pd.DataFrame(rows))}"
