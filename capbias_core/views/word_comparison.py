"""The words of a set: what each adds to the guess, there and in human captions of the same images.

A word is named in a sentence only if the two differ significantly (measures/word_comparison.py).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from capbias_core.aggregate.ranking import ALPHA
from capbias_core.measures.registry import MEASURES
from capbias_core.runs.plan import WORDS_COMPARED
from capbias_core.types import Attribute, counted
from capbias_core.views.captions import SAME, CaptionScores
from capbias_core.views.charts import BLUE_MARK, GREY, MARGINS, ORANGE_MARK, graph_objects
from capbias_core.views.results import current_runs
from capbias_core.views.sentence import signed
from capbias_core.views.tables import to_text
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Item, RunRow, Workspace, bytes_frame, images_in

FUNCTION = "function word"
YES, NO, UNTESTED = "yes", "no", "not tested"
NAMED = 10  # words in a sentence
NEGATED = {"captioner": "captioner", "human": "human", "difference": "difference", "low": "high", "high": "low"}


def comparison_of(workspace: Workspace, collection: str, scored: RunRow, references: str = "") -> RunRow | None:
    """The newest finished run that compared the words of a run of `caption_scores` with those of human captions.
    references: the content hash of these, '' for any."""
    for run in current_runs(workspace, collection, WORDS_COMPARED):
        same = all(getattr(run.spec, key) == getattr(scored.spec, key) for key in (*SAME, "attacker"))
        if same and references in ("", run.spec.references):
            return run
    return None


def plan_comparison(workspace: Workspace, scored: RunRow, references: Item) -> RunSpec | None:
    """The run that compares the words of a run of `caption_scores` with those of human captions; None if no image of
    the set has any."""
    if not images_in(workspace.frame(scored.spec.captions)) & images_in(workspace.frame(references.hash)):
        return None
    version = MEASURES[WORDS_COMPARED].version_with(scored.spec.attacker)
    return replace(scored.spec, measure=WORDS_COMPARED, version=version, references=references.hash)


def words_of_set(workspace: Workspace, run: RunRow, compared: RunRow | None = None) -> pd.DataFrame:
    """The `word_table` of a finished run of the measure `caption_scores`, and of one that compared it, if any."""
    corpus = bytes_frame(workspace.array(run.run_id, "corpus"))
    if compared is None or "words" not in workspace.arrays(compared.run_id):
        return word_table(corpus)
    return word_table(corpus, bytes_frame(workspace.array(compared.run_id, "words")))


def word_table(corpus: pd.DataFrame, compared: pd.DataFrame | None = None) -> pd.DataFrame:
    """Words of a set, a row per word and value (of two values only the one that the word pushes toward).

    corpus: the table of measures/caption_scores.py. compared: that of measures/word_comparison.py, if the set was
    compared with human captions. Special tokens are left out. Columns: word; toward (index of the value); mean (what
    the word adds toward it in the set); count; share0.. ; and, of words compared, captioner, human, difference, low,
    high, p, count_compared, human_count; significant (YES, NO, UNTESTED); strength, by which words are chosen: the mean
    of both sides, or mean without a comparison.
    """
    corpus = corpus[~corpus["word"].str.startswith("<")]
    means = corpus.filter(regex=r"^mean\d+$").to_numpy()
    of_word = corpus.drop(columns=corpus.filter(regex=r"^mean\d+$"))
    if means.shape[1] == 1:
        table = of_word.assign(toward=(means[:, 0] > 0).astype(int), mean=abs(means[:, 0]))
    else:
        parts = [of_word.assign(toward=value, mean=column) for value, column in enumerate(means.T)]
        table = pd.concat(parts, ignore_index=True)
    if compared is None:
        return table.assign(strength=table["mean"])
    compared = compared.rename(columns={"count": "count_compared"})
    if means.shape[1] > 1:
        table = table.merge(compared, on=["word", "toward"], how="outer")
    else:  # toward the value that the word pushes toward in the set, if the set has it
        table = table.merge(compared, on="word", how="outer", suffixes=("", "_both"))
        turned = table["toward"].notna() & table["toward_both"].notna() & (table["toward"] != table["toward_both"])
        table = table.assign(**{name: table[name].where(~turned, -table[other]) for name, other in NEGATED.items()})
        table["toward"] = table["toward"].fillna(table["toward_both"]).astype(int)
    table["count"] = table["count"].fillna(0).astype(int)
    strength = (table["captioner"] + table["human"]) / 2
    strength = strength if means.shape[1] > 1 else abs(strength)
    significant = np.where(table["p"].isna(), UNTESTED, np.where(table["p"] < ALPHA, YES, NO))
    return table.assign(significant=significant, strength=strength)


def top_words(table: pd.DataFrame, smallest_count: int, number: int) -> pd.DataFrame:
    """The rows of `word_table` that push most toward each value, `number` each, strongest first; of words compared with
    human captions those that differ significantly come first, and words not compared are left out."""
    table = table[(table["strength"] > 0) & (table.filter(["count", "human_count"]).max(axis=1) >= smallest_count)]
    differs = table["significant"] == YES if "significant" in table else np.zeros(len(table), dtype=bool)
    table = table.assign(differs=differs).sort_values(["toward", "differs", "strength"], ascending=[True, False, False])
    return table.groupby("toward").head(number).drop(columns="differs").reset_index(drop=True)


def comparison_sentence(table: pd.DataFrame, attribute: Attribute, name: str) -> str:
    """Which words of `word_table` reveal the attribute more, or less, in a captioner's captions than in human captions
    of the same images; only words that differ significantly are named."""
    tested = table[table["p"].notna()]
    differ = tested[tested["significant"] == YES].sort_values("strength", ascending=False)

    def named(rows: pd.DataFrame) -> str:
        words = [f"{row.word} ({attribute.values[row.toward]})" for row in rows.itertuples()]
        return f"{', '.join(words[:NAMED])}{f' and {len(words) - NAMED} others' if len(words) > NAMED else ''}"

    n = counted(len(tested), "tested word")
    where = f"in the captions of {name} than in human captions of the same images"
    if differ.empty:
        return f"Of {n}, none reveals {attribute.name} significantly more or less {where}." if len(tested) else ""
    more = abs(differ["captioner"]) > abs(differ["human"])
    sentences = []
    for side, rows in (("more", differ[more]), ("less", differ[~more])):
        if len(rows):
            reveal = f"{len(rows)} reveal{'s' if len(rows) == 1 else ''}"
            clause = f"{reveal} it {side}" if sentences else f"Of {n}, {reveal} {attribute.name} {side} {where}"
            sentences.append(f"{clause}: {named(rows)}.")
    return " ".join(sentences)


def difference_text(row: Any) -> str:
    """The difference of a row of `word_table` from human captions with its interval, if the word was tested."""
    if pd.isna(row["p"]):
        return UNTESTED
    return f"{signed(row['difference'], 2)} [{signed(row['low'], 2)}, {signed(row['high'], 2)}]"


def word_chart(words: pd.DataFrame, attribute: Attribute, name: str, functional: Collection[str]):
    """A bar per word for what it adds to the logit; if words were compared, a hatched one for human captions, and grey
    where the two do not differ significantly.

    words: of `top_words`. name: the captioner. functional: words that are marked as function words. Of two values a bar
    to the left pushes toward the first.
    """
    two, compared = len(attribute.values) == 2, "human" in words
    sign = np.where(words["toward"] == 0, -1, 1) if two else np.ones(len(words))
    rows = words.assign(shown=sign * words["captioner" if compared else "mean"], sign=sign)
    rows = rows.sort_values(["sign", "toward", "shown"])
    labels = []
    for row in rows.itertuples():
        marks = [FUNCTION] if row.word in functional else []
        marks += [] if two else [escape(attribute.values[row.toward])]
        labels.append(escape(row.word) + (f" ({', '.join(marks)})" if marks else ""))
    common = {"y": list(range(len(rows))), "orientation": "h", "customdata": rows["word"], "hoverinfo": "text"}
    figure = graph_objects().Figure()
    colours = np.where(rows["shown"] < 0, ORANGE_MARK, BLUE_MARK) if two else np.full(len(rows), BLUE_MARK)
    hover = [f"{signed(row['shown'], 3)} in {row['count']:,} captions" for _, row in rows.iterrows()]
    if compared:
        colours = np.where(rows["significant"] == YES, colours, GREY)
        hover = [
            f"{escape(name)} {signed(row['captioner'], 3)} and human {signed(row['human'], 3)} toward "
            f"{escape(attribute.values[row['toward']])}; difference {difference_text(row)}, significant: "
            f"{row['significant']}"
            for _, row in rows.iterrows()
        ]
        figure.add_bar(
            **common,
            x=rows["sign"] * rows["human"],
            name="human captions",
            marker={"color": GREY, "pattern": {"shape": "/", "solidity": 0.35}},
            hovertext=hover,
        )
    figure.add_bar(
        **common, x=rows["shown"], name=escape(name), showlegend=False, marker={"color": list(colours)}, hovertext=hover
    )
    # Its bars have several colours; the legend tells them from the hatched ones.
    for title in [escape(name)] if not compared else [f"{escape(name)} (grey: no significant difference)"]:
        key = {"symbol": "square", "size": 11, "color": GREY if not compared else BLUE_MARK}
        figure.add_scatter(x=[None], y=[None], mode="markers", marker=key, name=title, hoverinfo="skip")
    figure.add_vline(x=0, line={"color": GREY, "width": 1.5})
    ends = f"← {attribute.values[0]} · added to the logit on average · {attribute.values[1]} →"
    return figure.update_layout(
        height=MARGINS + 27 * max(len(rows), 3),
        margin={"l": 10, "r": 10, "t": 34, "b": 46},
        barmode="group",
        bargap=0.25,
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "traceorder": "reversed"},
        xaxis={"title": {"text": escape(ends) if two else "added to the logit of the value on average"}},
        yaxis={"tickvals": common["y"], "ticktext": labels, "automargin": True},
        dragmode=False,
    )


def strongest_words(scores: CaptionScores, table: pd.DataFrame, smallest_count: int, number: int) -> dict[str, Any]:
    """The words that push most toward each value, `number` each; special tokens left out.

    table: of `word_table`. mean: of two values positive toward the second. captioner, human, difference, ci_low and
    ci_high of words compared with human captions: toward the value pushes_toward.
    """
    values = scores.attribute.values
    words = []
    for row in top_words(table, smallest_count, number).to_dict("records"):
        sign = -1 if len(values) == 2 and row["toward"] == 0 else 1
        item = {
            "word": row["word"],
            "pushes_toward": values[row["toward"]],
            "mean": None if pd.isna(row["mean"]) else sign * row["mean"],
            "count": row["count"],
            "share": {other: row[f"share{column}"] if row["count"] else 0.0 for column, other in enumerate(values)},
        }
        if "human" in row:
            ends = {"ci_low": row["low"], "ci_high": row["high"]}
            numbers = {name: row[name] for name in ("captioner", "human", "difference")} | ends
            item |= {name: None if pd.isna(number) else number for name, number in numbers.items()}
            item["significant"] = row["significant"]
        words.append(item)
    found = {
        "captions": len(scores.table),
        "smallest_count": smallest_count,
        "largest_convergence_delta": float(scores.table["delta"].max()),
        "words": words,
    }
    if "human" in table:
        found["comparison"] = comparison_sentence(table, scores.attribute, scores.run.spec.model)
    return found


def corpus_text(words: dict[str, Any]) -> str:
    """`strongest_words` as columns."""
    if not words["words"]:
        return f"No word pushes either way in {words['smallest_count']} captions or more; lower --min-count.\n"
    compared = "comparison" in words
    rows = []
    for item in words["words"]:
        row = {"word": item["word"], "pushes toward": item["pushes_toward"]}
        if compared:
            row |= {name: signed(item[name], 3) for name in ("captioner", "human", "difference")}
            lacks = item["ci_low"] is None
            row["interval"] = "" if lacks else f"[{signed(item['ci_low'], 2)}, {signed(item['ci_high'], 2)}]"
            row["significant"] = item["significant"]
        else:
            row["mean"] = signed(item["mean"], 3)
        row["count"] = f"{item['count']:,}"
        rows.append(row | {f"share of {value}": f"{100 * share:.1f}%" for value, share in item["share"].items()})
    what = (
        "Captioner, human: what the word adds to the logit, toward its value"
        if compared
        else ("Mean: what the word adds to the logit where it occurs")
    )
    head = f"{words['comparison']}\n\n" if compared else ""
    return (
        f"{head}{to_text(pd.DataFrame(rows))}\n{words['captions']:,} captions. {what}. Share: of the captions of that "
        f"label.\nLargest convergence delta: {words['largest_convergence_delta']:.2g}.\nIf the "
        "attacker guesses no better than by chance, no word reveals anything; `capbias score` says that (SC).\n"
    )
