"""What words add to a score: of a set, a caption, an edit, and attention. Every text of the HTML is escaped."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

import numpy as np
import pandas as pd

from capbias_core.attackers.what_if import StoredAttackers, apply_edit
from capbias_core.errors import CapbiasError, need
from capbias_core.prepare import tokenize
from capbias_core.types import Attention, Attribute, counted
from capbias_core.views.captions import CaptionScores
from capbias_core.views.charts import BLUE, BLUE_MARK, GREY, ORANGE_MARK, ramp
from capbias_core.views.sentence import signed
from capbias_core.views.tables import to_text


def top_words(table: pd.DataFrame, smallest_count: int, number: int) -> pd.DataFrame:
    """The words of a corpus table that push most toward each value, `number` each, strongest first.

    Special tokens are left out. Columns of the table, and: toward (place of the value), mean (what the word adds; of
    two values positive toward the second).
    """
    common = table[(table["count"] >= smallest_count) & ~table["word"].str.startswith("<")]
    means = common.filter(regex=r"^mean\d+$")
    pushes = pd.concat([-means, means], axis=1) if means.shape[1] == 1 else means
    found = []
    for place in range(pushes.shape[1]):
        push = pushes.iloc[:, place]
        own = push[push > 0].nlargest(number).index
        mean = means.loc[own].iloc[:, min(place, means.shape[1] - 1)]  # assigned to no rows, a longer column adds them
        found.append(common.loc[own].assign(toward=place, mean=mean))
    return pd.concat(found, ignore_index=True)


# A word of human captions that adds this share of what it adds in a captioner's, the same way, is strong there too.
ALSO_STRONG = 0.5


def beside_human(words: pd.DataFrame, human: pd.DataFrame, smallest_count: int) -> pd.DataFrame:
    """Words of a captioner beside what they add in human captions.

    words: of `top_words`. human: the corpus table of the human captions. Adds the columns human_mean (missing where
    no human caption has the word), human_count, and from_data: in at least smallest_count human captions it pushes the
    same way, with at least half the strength (ALSO_STRONG).
    """
    human = human.set_index("word").reindex(words["word"])
    columns = human.filter(regex=r"^mean\d+$").to_numpy()
    place = np.minimum(words["toward"].to_numpy(), columns.shape[1] - 1)
    mean = columns[np.arange(len(words)), place] if len(words) else np.zeros(0)
    count = human["count"].fillna(0).to_numpy(dtype=int)
    strong = mean * np.sign(words["mean"].to_numpy()) >= ALSO_STRONG * abs(words["mean"].to_numpy())
    return words.assign(human_mean=mean, human_count=count, from_data=strong & (count >= smallest_count))


EXAMPLES = 3


def strongest_words(scores: CaptionScores, table: pd.DataFrame, smallest_count: int, number: int) -> dict:
    """The words that push most toward each value, `number` each; special tokens left out.

    table: as measures/caption_scores.py makes it. mean: of two values positive toward the second.
    """
    values = scores.attribute.values
    words = [
        {
            "word": row["word"],
            "pushes_toward": values[row["toward"]],
            "mean": row["mean"],
            "count": row["count"],
            "share": {other: row[f"share{column}"] for column, other in enumerate(values)},
        }
        for row in top_words(table, smallest_count, number).to_dict("records")
    ]
    return {
        "captions": len(scores.table),
        "smallest_count": smallest_count,
        "largest_convergence_delta": float(scores.table["delta"].max()),
        "words": words,
    }


def scored_image(scores: CaptionScores, written: pd.Series, image: str) -> list[dict]:
    """The captions of an image, each scored by an attacker that did not train on it.

    written: caption as written, by row of scores.table.
    """
    own = scores.table[scores.table["image_id"] == image].sort_values("caption_index")
    return [
        {
            "image_id": image,
            "caption_index": int(row["caption_index"]),
            "caption": written[place],
            "label": scores.attribute.values[int(row["label"])],
            "fold": int(row["fold"]),
            **_parts(
                row["masked"].split(),
                scores.words_of(place),
                _numbers(row, "baseline"),
                _numbers(row, "logit"),
                _numbers(row, "p"),
                scores.attribute,
            ),
            "convergence_delta": float(row["delta"]),
        }
        for place, row in own.iterrows()
    ]


def scored_text(scores: CaptionScores, attackers: StoredAttackers, text: str) -> dict:
    """A caption of no image, scored by all attackers of a set: their mean."""
    found = attackers.score(text, scores.attribute, None, scores.run.spec.merge_masks)
    parts = _parts(found.tokens, found.words, found.baseline, found.logit, found.probabilities, scores.attribute)
    return {"caption": text, "attackers": len(attackers.weights), **parts}


def edit_effect(
    scores: CaptionScores, written: pd.Series, attackers: StoredAttackers, word: str, replacement: str
) -> dict:
    """What replacing a word does over the whole set, each caption rescored by the attacker that held its image out.

    Counts, means and examples are over the captions with the word (the first caption of each image).
    """
    attribute, merge = scores.attribute, scores.run.spec.merge_masks
    first = scores.table[scores.table["caption_index"] == 0].sort_values("image_id")
    texts = written[first.index].map(lambda caption: apply_edit(caption, word, replacement)).dropna()
    before = first.loc[texts.index]
    folds = zip(texts, before["fold"], strict=True)
    after = [attackers.score(text, attribute, int(fold), merge) for text, fold in folds]
    differ = sum(" ".join(found.tokens) != masked for found, masked in zip(after, before["masked"], strict=True))
    shares = _numbers(before, "p"), [found.probabilities for found in after]
    changes = [found.logit - logit for found, logit in zip(after, _numbers(before, "logit"), strict=True)]
    return {
        "word": word,
        "replacement": replacement,
        "captions_with_the_word": len(after),
        "captions_that_read_differently": differ,
        "note": _edit_note(attribute, word, replacement, len(after), differ, attackers),
        "probability_before": _mean(shares[0], attribute.values),
        "probability_after": _mean(shares[1], attribute.values),
        "change_of_logit": _mean(changes, _towards(attribute)),
        "examples": _examples(before, written, texts, shares, attribute),
    }


def _examples(before: pd.DataFrame, written: pd.Series, texts: pd.Series, shares, attribute: Attribute) -> list[dict]:
    return [
        {
            "image_id": before.at[place, "image_id"],
            "label": attribute.values[int(before.at[place, "label"])],
            "before": written[place],
            "after": texts[place],
            "probability_before": _named(earlier, attribute.values),
            "probability_after": _named(later, attribute.values),
        }
        for place, earlier, later in list(zip(texts.index, *shares, strict=True))[:EXAMPLES]
    ]


def _edit_note(attribute: Attribute, word: str, new: str, count: int, differ: int, attackers: StoredAttackers) -> str:
    """What a reader may miss about an edit, or ''."""
    words, tokens = attribute.masked_words, tokenize(new)
    if not count:
        return f"No caption has the word {word}."
    if not differ and word in words and words.issuperset(tokens):
        return (
            f"Nothing changes: {word} and {new} are words for {attribute.name}, and the attacker reads "
            f"{attribute.mask_token} for either."
        )
    if not differ:
        return "Nothing changes: the attacker reads the same captions."
    unseen = attackers.unseen(tokens, attribute)
    return f"No attacker has seen {', '.join(unseen)}: only the loss of {word} counts." if unseen else ""


def _parts(tokens: Sequence[str], words: np.ndarray, baseline, logit, shares, attribute: Attribute) -> dict:
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


def _mean(rows, names: Sequence[str]) -> dict[str, float]:
    """The mean row by name; empty where there is no row."""
    return _named(np.mean(rows, axis=0), names) if len(rows) else {}


def corpus_text(found: dict) -> str:
    """The words that push most each way, as columns. found: as `explain --format json` prints it."""
    if not found["words"]:
        return f"No word pushes either way in {found['smallest_count']} captions or more; lower --min-count.\n"
    rows = [
        {
            "word": item["word"],
            "pushes toward": item["pushes_toward"],
            "mean": signed(item["mean"], 3),
            "count": f"{item['count']:,}",
            **{f"share of {value}": f"{100 * share:.1f}%" for value, share in item["share"].items()},
        }
        for item in found["words"]
    ]
    return (
        to_text(pd.DataFrame(rows))
        + f"\n{found['captions']:,} captions. Mean: what the word adds to the logit where it occurs. Share: of the "
        f"captions of that label.\nLargest convergence delta: {found['largest_convergence_delta']:.2g}.\nIf the "
        "attacker guesses no better than by chance, no word reveals anything; `capbias score` says that (SC).\n"
    )


def caption_text(found: dict) -> str:
    """One caption: its words as the attacker reads them, what each adds, and what that makes."""
    parts = [(item["token"], item["adds"]) for item in found["tokens"]]
    parts += [("(intercept)", found["intercept"]), ("= logit", found["logit"])]
    columns = {value: f"adds toward {value}" for value in found["intercept"]}
    rows = [
        {"word": token} | {title: signed(adds[value], 4) for value, title in columns.items()} for token, adds in parts
    ]
    shares = ", ".join(f"{value} {share:.3f}" for value, share in found["probability"].items())
    return f"{found['caption']}\n{_scorer(found)}\n\n{to_text(pd.DataFrame(rows))}\nProbability: {shares}.\n"


def _scorer(found: dict) -> str:
    if "attackers" in found:
        return f"Mean of {found['attackers']} attackers; the caption belongs to no image."
    delta = found["convergence_delta"]
    gap = f" Convergence delta {delta:.2g}." if delta else ""
    return f"Image {found['image_id']}, labelled {found['label']}; no attacker here trained on this image.{gap}"


def edit_text(edit: dict) -> str:
    """What one edit does: means over the captions with the word, then examples."""
    lines = [f"{edit['word']} -> {edit['replacement']}: {counted(edit['captions_with_the_word'], 'caption')}"]
    if edit["note"]:
        lines.append(edit["note"])
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


STYLE = """<style>
.cb-words {line-height: 2.1; font-size: 1.02rem; overflow-wrap: anywhere}
.cb-w {display: inline-block; max-width: 100%; line-height: 1.4; border-radius: 4px; padding: 1px 5px; margin: 0 1px}
.cb-first {border-bottom: 2px dotted #D9701F}
.cb-second {border-bottom: 2px solid #3B82D0}
.cb-masked {border: 1px dashed #8A94A3; opacity: .75}
.cb-alone {font-weight: 750}
/* What a word adds: read out by a screen reader, and shown where a keyboard goes to the caption. */
.cb-w[data-adds]::after {content: " " attr(data-adds); position: absolute; width: 1px; height: 1px; overflow: hidden;
  clip-path: inset(50%); white-space: nowrap}
.cb-words:focus-visible .cb-w[data-adds]::after {position: static; width: auto; height: auto; clip-path: none;
  font-size: .72rem; padding-left: .2rem; white-space: nowrap}
.cb-legend {font-size: .85rem}
</style>"""


def coloured_words(
    tokens, values: np.ndarray, attribute: Attribute, originals=None, largest: float = 0.0, alone=None, only: str = ""
) -> str:
    """HTML of one caption. tokens: T masked tokens; values: (T,) signed contributions (negative pushes toward the
    first value, positive toward the second). originals: the T words that stood there before masking, if known.
    largest: the value that gets the full colour; 0 takes this caption's own. alone: (T,) booleans, words that the
    caption beside it does not have; they are bold.
    """
    largest = largest or max((abs(float(value)) for value in values), default=0.0)
    marks = [False] * len(tokens) if alone is None else alone
    shown = [
        escape(original)
        if only not in ("", token)
        else _coloured_word(token, float(value), attribute, original, largest, " cb-alone" if mark else "")
        for token, value, original, mark in zip(tokens, values, originals or tokens, marks, strict=True)
    ]
    named = 'role="group" tabindex="0" aria-label="A caption, with what each word adds to the logit"'
    return f'<div class="cb-words" {named}>{" ".join(shown)}</div>'


def _coloured_word(token: str, value: float, attribute: Attribute, original: str, largest: float, mark: str) -> str:
    if token == attribute.mask_token:
        title = f"masked: the attacker reads {token} ({signed(value, 3)})"
        adds = f'title="{escape(title)}" data-adds="(masked, {signed(value, 2)})"'
        return f'<span class="cb-w cb-masked{mark}" {adds}>{escape(original)}</span>'
    toward = attribute.values[0] if value < 0 else attribute.values[1]
    side = "cb-first" if value < 0 else "cb-second"
    title = f"{signed(value, 3)} toward {toward}"
    adds = f'title="{escape(title)}" data-adds="({signed(value, 2)} {escape(toward)})"'
    return f'<span class="cb-w {side}{mark}" style="background:{ramp(value, largest)}" {adds}>{escape(token)}</span>'


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
        f"{masked}{alone} · hover a word for what it adds to the logit, or go to a "
        "caption with Tab</div>"
    )


LARGE = """<style>
.cb-large {display: flex; flex-wrap: wrap; gap: 1.2rem .9rem; margin: 1rem 0}
.cb-large span {display: inline-block; text-align: center; font-size: clamp(28px, 3vw, 52px); line-height: 1.5}
.cb-large small {display: block; font-size: clamp(16px, 1.3vw, 24px); font-variant-numeric: tabular-nums}
.cb-score {font-size: clamp(28px, 3.2vw, 56px); font-weight: 650}
.cb-said {font-size: clamp(18px, 1.5vw, 26px)}
</style>"""


def large_words(tokens, values: np.ndarray, attribute: Attribute, originals, largest: float = 0.0) -> str:
    """HTML of one caption, as `coloured_words` has it, with each word's value and the value of the attribute that it
    pushes toward printed under it.

    tokens: T masked tokens; values: (T,) signed contributions to the logit (negative: toward the first value, positive:
    toward the second). originals: the T words that stood there before masking. largest: the value with the full
    colour; 0 takes this caption's own.
    """
    largest = largest or max((abs(float(value)) for value in values), default=0.0)
    shown = [
        _large_word(token, float(value), attribute, original, largest)
        for token, value, original in zip(tokens, values, originals, strict=True)
    ]
    return f'<div class="cb-large">{"".join(shown)}</div>'


def pushes(value: float, attribute: Attribute) -> str:
    """A part of the logit and the value of the attribute that it is toward: `0.40 Male`, `0.00`."""
    printed = f"{abs(value):.2f}"
    return f"{printed} {attribute.values[int(value > 0)]}" if float(printed) else printed


def _large_word(token: str, value: float, attribute: Attribute, original: str, largest: float) -> str:
    told = escape(pushes(value, attribute))
    if token == attribute.mask_token:
        return f'<span><span class="cb-w cb-masked">{escape(original)}</span><small>masked, {told}</small></span>'
    side = "cb-first" if value < 0 else "cb-second"
    return (
        f'<span><span class="cb-w {side}" style="background:{ramp(value, largest)}">{escape(token)}</span>'
        f"<small>{told}</small></span>"
    )


WORD_HEIGHT, MARGINS = 27, 96
FUNCTION = "function word"


def word_chart(words: pd.DataFrame, attribute: Attribute, name: str, human: str, functional: Collection[str]):
    """A bar per word for what it adds to the logit, and a grey one for what it adds in the human captions.

    words: of analysis.read.top_words, with human_mean where human names a set of human captions. name: the captioner.
    functional: words that are marked as function words. Of two values a bar to the left pushes toward the first.
    """
    need("A chart", "plotly")
    import plotly.graph_objects as go

    two = len(attribute.values) == 2
    rows = words.sort_values("mean", ascending=True) if two else words.sort_values(["toward", "mean"])
    names = [_label(row, attribute, functional) for row in rows.itertuples()]
    places = list(range(len(rows)))
    figure = go.Figure()
    if human:
        figure.add_bar(
            y=places,
            x=rows["human_mean"],
            orientation="h",
            name=f"{escape(human)} (human)",
            marker={"color": GREY, "pattern": {"shape": "/", "solidity": 0.35}},
            customdata=rows["word"],
            hovertext=[
                f"{signed(row.human_mean, 3)} in {row.human_count:,} human captions" if row.human_count else "in none"
                for row in rows.itertuples()
            ],
            hoverinfo="text",
        )
    figure.add_bar(
        y=places,
        x=rows["mean"],
        orientation="h",
        name=escape(name),
        showlegend=False,
        marker={"color": [ORANGE_MARK if two and value < 0 else BLUE_MARK for value in rows["mean"]]},
        customdata=rows["word"],
        hovertext=[f"{signed(row.mean, 3)} in {row.count:,} captions" for row in rows.itertuples(index=False)],
        hoverinfo="text",
    )
    # Its bars have two colours; the legend tells them from the hatched ones.
    key = {"symbol": "square", "size": 11, "color": GREY}
    figure.add_scatter(x=[None], y=[None], mode="markers", marker=key, name=escape(name), hoverinfo="skip")
    figure.add_vline(x=0, line={"color": GREY, "width": 1.5})
    ends = f"← {attribute.values[0]} · added to the logit on average · {attribute.values[1]} →"
    figure.update_layout(
        height=MARGINS + WORD_HEIGHT * max(len(rows), 3),
        margin={"l": 10, "r": 10, "t": 34, "b": 46},
        barmode="group",
        bargap=0.25,
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "traceorder": "reversed"},
        xaxis={"title": {"text": escape(ends) if two else "added to the logit of the value on average"}},
        yaxis={"tickvals": places, "ticktext": names, "automargin": True},
        dragmode=False,
    )
    return figure


def _label(row, attribute: Attribute, functional: Collection[str]) -> str:
    marks = [FUNCTION] if row.word in functional else []
    if len(attribute.values) > 2:
        marks.append(escape(attribute.values[row.toward]))
    return escape(row.word) + (f" ({', '.join(marks)})" if marks else "")


def where_words_come_from(words: pd.DataFrame, name: str, smallest_count: int) -> str:
    """Which words push as the human captions do, so that the data may explain them, and which are the captioner's.

    words: of analysis.read.beside_human.
    """
    data, own = (list(words.loc[words["from_data"] == kind, "word"]) for kind in (True, False))
    said = []
    if data:
        said.append(
            f"In human captions too, the same way and at least half as strong, so the data may explain them: "
            f"{', '.join(data)}."
        )
    if own:
        said.append(
            f"Not so there (weaker, the other way, or in fewer than {smallest_count} human captions), so {name} may "
            f"add them: {', '.join(own)}."
        )
    if said:
        said.append("What words add has no interval here: with other captions a word may change sides.")
    return " ".join(said)


CELL, ATTENTION_MARGINS = 30, 120
# Where the reproduction of LIC (Baratov et al. 2023) found what its classes hang on, counted from 1.
PAPERS_LAYER, PAPERS_HEAD = 4, 2
CLASS_TOKENS = ("[CLS]", "<s>")  # of BERT and RoBERTa, whose state stands for the whole text


def first_shown(attention: Attention) -> tuple[int, int]:
    """Layer and head to begin with, from 1: those of the reproducibility paper, or the last where there are fewer."""
    layers, heads = attention.weights.shape[:2]
    return min(PAPERS_LAYER, layers), min(PAPERS_HEAD, heads)


def attention_data(attention: Attention) -> dict:
    """Everything, for JSON: the words, and attention as layers of heads of rows."""
    return {"read_as": list(attention.words), "attention": attention.weights.tolist()}


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
    return (
        (f"the class token {first}", weights[:, 0])
        if first in CLASS_TOKENS
        else ("the mean over words", weights.mean(axis=1))
    )


def attention_chart(attention: Attention, layer: int, head: int):
    """Which word (row) reads how much of which (column) in a head; darker is more, from 0 to 1."""
    figure = _heat_map(weights_of(attention, layer, head), attention.words, attention.words, "is read")
    return figure.update_yaxes(title_text="word that reads")


def class_token_chart(attention: Attention, layer: int, largest: float = 1.0):
    """How much each head (row) of a layer reads of each word (column); darker is more, from 0 to `largest`."""
    reader, weights = class_token_weights(attention, layer)
    heads = [f"head {number}" for number in range(1, len(weights) + 1)]
    return _heat_map(weights, heads, attention.words, f"is read by {reader}", largest).update_traces(showscale=False)


def _heat_map(weights: np.ndarray, readers: Sequence[str], words: Sequence[str], title: str, largest: float = 1.0):
    need("A chart", "plotly")
    import plotly.graph_objects as go

    down, across = [[escape(name) for name in names] for names in (readers, words)]
    hover = [
        [f"{reader} reads {share:.2f} of {read}" for read, share in zip(across, row, strict=True)]
        for reader, row in zip(down, weights, strict=True)
    ]
    blue = "rgb({},{},{})".format(*BLUE)
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
            colorscale=[[0, "rgba(29,95,168,0.04)"], [1, blue]],
            colorbar={"title": {"text": "share"}, "thickness": 12, "outlinewidth": 0},
        )
    )
    axes = [
        {"tickvals": list(range(len(names))), "ticktext": names, "showgrid": False, "zeroline": False}
        for names in (across, down)
    ]
    figure.update_layout(
        height=ATTENTION_MARGINS + CELL * len(down),
        margin={"l": 10, "r": 10, "t": 60, "b": 30},
        dragmode=False,
        xaxis={
            **axes[0],
            "side": "top",
            "title": {"text": title, "standoff": 12},
            "tickangle": -90,
            "automargin": True,
        },
        yaxis={**axes[1], "autorange": "reversed", "automargin": True},
    )
    return figure


def attention_text(attention: Attention, layer: int | None = None, head: int | None = None) -> str:
    """The same as columns for a terminal: a row for each word that reads, with the words that it reads most of.

    layer, head: from 1; None for those of `first_shown`.
    """
    usual = first_shown(attention)
    layer, head = layer or usual[0], head or usual[1]
    weights = weights_of(attention, layer, head)
    rows = [
        {"word": word, "reads most of": ", ".join(f"{attention.words[place]} {row[place]:.2f}" for place in order[:4])}
        for word, row, order in zip(attention.words, weights, np.argsort(-weights, axis=1), strict=True)
    ]
    layers, heads = attention.weights.shape[:2]
    return f"Attention, layer {layer} of {layers}, head {head} of {heads}:\n\n{to_text(pd.DataFrame(rows))}"
