"""The words of a set: what each adds to the guess, there and in human captions of the same images, with intervals.

A word has a colour only if the interval of what it adds excludes 0, and is named in a sentence only if that of the
difference from human captions does (measures/word_comparison.py).
"""

from __future__ import annotations

import hashlib
import math
import shlex
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from typing import Annotated, Any

import numpy as np
import pandas as pd

from capbias_core.aggregate.estimate import interval_side
from capbias_core.data import images_in
from capbias_core.errors import CapbiasError
from capbias_core.measures.options import Option
from capbias_core.measures.registry import MEASURES
from capbias_core.measures.word_comparison import ENDS
from capbias_core.prepare import tasks
from capbias_core.runs.plan import PER_CAPTION, WORDS_COMPARED, spec_of
from capbias_core.types import Attribute, counted
from capbias_core.views.captions import SAME, CaptionScores
from capbias_core.views.charts import BLUE_MARK, GREY, MARGINS, ORANGE_MARK, error_bars, graph_objects, two_lines
from capbias_core.views.results import current_runs
from capbias_core.views.rows import dots_chart
from capbias_core.views.sentence import say, signed, with_interval
from capbias_core.views.tables import to_text
from capbias_core.views.view import Run, Scope, Shown, nothing_run
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Item, RunRow, Workspace, bytes_frame

FUNCTION = "function word"
YES, NO, UNTESTED = "yes", "no", "not tested"
NAMED = 10  # words in a sentence
# What is negated where a word pushes the other way: a lower end becomes an upper one.
NEGATED = {side: side for side in ENDS}
NEGATED |= {low: high for low, high in ENDS.values()} | {high: low for low, high in ENDS.values()}
MOST = 30  # words of the view `words`
RARE = 10  # captions with a word, of the captioner or of people; words in fewer are not listed
INTERVALS = say("words.intervals")
ONE_TRAINING = say("words.one_training")
MEANING = say("words.meaning")
GREY_MEANS = say("words.grey")
LINK = "color:inherit;text-decoration:underline"
BOLD_MEANS = say("words.bold")


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


def words_of_set(run: RunRow, compared: RunRow | None = None) -> pd.DataFrame:
    """The `word_table` of a finished run of the measure `caption_scores`, and of one that compared it, if any."""
    corpus, words = run.array("corpus"), compared and compared.array("words")
    assert corpus is not None
    return word_table(bytes_frame(corpus), bytes_frame(words) if words else None)


def word_table(corpus: pd.DataFrame, compared: pd.DataFrame | None = None) -> pd.DataFrame:
    """Words of a set, a row per word and value (of two values only the one that the word pushes toward).

    corpus: the table of measures/caption_scores.py. compared: that of measures/word_comparison.py, if the set was
    compared with human captions. Special tokens are left out. Columns: word; toward (index of the value); mean (what
    the word adds toward it in the set); count; share0.. ; and, of words compared, captioner, human, difference, the
    ends of ENDS, count_compared, human_count; certain (YES, NO, UNTESTED: whether the captioner's interval excludes 0);
    significant (the same of the difference); strength, by which words are chosen: the mean of both sides, or mean
    without a comparison.
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
    tested = table.pop("tested").eq(True)
    for name, side in (("certain", "captioner"), ("significant", "difference")):
        low, high = (table[end] for end in ENDS[side])
        table[name] = np.where(~tested, UNTESTED, np.where(interval_side(low, high) != 0, YES, NO))
    return table.assign(strength=strength)


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
    tested = table[table["significant"] != UNTESTED]
    differ = tested[tested["significant"] == YES].sort_values("strength", ascending=False)

    def named(rows: pd.DataFrame) -> str:
        words = [f"{row.word} ({attribute.values[row.toward]})" for row in rows.itertuples()]
        listed, others = ", ".join(words[:NAMED]), len(words) - NAMED
        return say("words.others", words=listed, count=others) if others > 0 else listed

    about = {"words": counted(len(tested), "tested word"), "attribute": attribute.name, "captioner": name}
    if differ.empty:
        return say("words.none", **about) if len(tested) else ""
    more = abs(differ["captioner"]) > abs(differ["human"])
    sentences = []
    for way, rows in (("more", differ[more]), ("less", differ[~more])):
        if len(rows):
            template = f"words.{'also_' if sentences else ''}{way}{'_one' if len(rows) == 1 else ''}"
            sentences.append(say(template, count=len(rows), named=named(rows), **about))
    return " ".join(sentences)


def with_ends(row: Any, side: str) -> str:
    """A number of ENDS of a row of `word_table`, with its interval if the word was tested."""
    low, high = ENDS[side]
    return with_interval(row[side], row[low], row[high], 2)


def function_words(workspace: Workspace, words: Iterable[str]) -> set[str]:
    """The function words among some words; computed once, then kept in the workspace."""
    words = tuple(words)
    digest = hashlib.sha256(" ".join(words).encode()).hexdigest()[:16]
    return set(workspace.derived(f"function words {digest}", lambda: sorted(tasks.function_words(words))))


def words(
    scope: Scope,
    top: Annotated[int, Option("words per captioner", at_least=1, metavar="N")] = MOST,
    run: Run = nothing_run,
) -> Shown:
    """The words that weigh most for each captioner, with intervals, beside human captions.

    top: how many per captioner, equally many toward each value. run: scores captions one by one first, where they were
    not. rows: those of `word_rows`. Raises CapbiasError, with the command that helps, if the captions of a captioner
    were not scored one by one.
    """
    workspace, attribute, parts, notes, sentences = scope.workspace, scope.comparison.attribute, [], [], []
    for name in scope.captioners:
        spec = scope.run(name).spec
        scored = scored_alike(workspace, scope.collection, spec, run, (PER_CAPTION, WORDS_COMPARED))
        compared = comparison_of(workspace, scope.collection, scored, spec.references)
        table = words_of_set(scored, compared)
        parts.append((name, table, top_words(table, RARE, math.ceil(top / len(attribute.values)))))
        sentences += [comparison_sentence(table, attribute, name)] if "human" in table else []
        notes += [f"{name}: {line}" for line in (compared.notes if compared else (ONE_TRAINING,))]
    functional = function_words(workspace, dict.fromkeys(word for _, _, listed in parts for word in listed["word"]))
    rows = pd.concat([word_frame(listed, attribute, name, functional) for name, _, listed in parts], ignore_index=True)
    notes = [MEANING, *([INTERVALS] if "human" in rows else []), *notes]
    chart = partial(dots_chart, rows.assign(panel=rows["captioner"], label=rows["word"]))
    if len(parts) == 1:
        name, _, listed = parts[0]
        chart = partial(word_chart, listed, attribute, name, functional)
    title = f"Words that weigh most for {scope.attribute}: {', '.join(scope.captioners)}"
    return Shown(title, rows, " ".join(filter(None, sentences)), tuple(notes), word_cells(rows), chart)


def scored_alike(
    workspace: Workspace, collection: str, spec: RunSpec, run: Run = nothing_run, names: Sequence[str] = (PER_CAPTION,)
) -> RunRow:
    """The newest run that scored the captions of a run of LIC one by one, with its labels and attacker.

    run: computes these measures if there is none. Raises CapbiasError, with the command that does, if there still is
    none."""
    for missing in (False, True):
        if missing:
            same = {key: getattr(spec, key) for key in ("model", "captions", "labels", "attribute")}
            inputs = {PER_CAPTION: same, WORDS_COMPARED: same | {"references": spec.references}}
            measures = [MEASURES[name] for name in names if name == PER_CAPTION or spec.references]
            run([spec_of(each, each.options.read(spec.options), inputs[each.name]) for each in measures], collection)
        for found in current_runs(workspace, collection, PER_CAPTION):
            if all(getattr(found.spec, key) == getattr(spec, key) for key in (*SAME, "attacker")):
                return found
    command = ["capbias", "explain", "--collection", collection, "--captions", spec.model]
    command += ["--attribute", spec.attribute["name"], "--attacker", spec.attacker]
    raise CapbiasError(
        f"The words of {spec.model} with {spec.attacker} are not computed yet.", f"Run: {shlex.join(command)}"
    )


def word_frame(table: pd.DataFrame, attribute: Attribute, name: str, functional: Collection[str]) -> pd.DataFrame:
    """Rows of `word_table` for a file, in their order.

    Columns: captioner; word; kind (FUNCTION or ''); toward (the value that the word pushes toward); value (what it adds
    to the logit, toward that value); n (captions with the word); and of words compared ci_low, ci_high; certain (YES,
    NO, UNTESTED: whether that interval excludes 0); human, human_low, human_high, human_n; difference, difference_low,
    difference_high, significant (whether the interval of the difference excludes 0). Of several captions per image, n
    and human_n are means of one caption per image.
    """
    compared = "human" in table
    rows = pd.DataFrame(
        {
            "captioner": name,
            "word": table["word"],
            "kind": [FUNCTION if word in functional else "" for word in table["word"]],
            "toward": [attribute.values[value] for value in table["toward"]],
            "value": table["captioner" if compared else "mean"],
        }
    )
    if not compared:
        return rows.assign(n=table["count"]).reset_index(drop=True)
    (rows["ci_low"], rows["ci_high"]), rows["n"] = (table[end] for end in ENDS["captioner"]), table["count_compared"]
    for side in ("human", "difference"):
        rows[side] = table[side]
        rows[f"{side}_low"], rows[f"{side}_high"] = (table[end] for end in ENDS[side])
    rows.insert(list(rows).index("human"), "certain", table["certain"])
    return rows.assign(human_n=table["human_count"], significant=table["significant"]).reset_index(drop=True)


def word_cells(rows: pd.DataFrame) -> pd.DataFrame:
    """`word_frame` for a reader: numbers with their intervals."""
    cells = rows[["captioner", "word", "toward"]].copy()

    def numbers(value: str, low: str, high: str) -> list[str]:
        ends = rows.reindex(columns=[value, low, high]).to_numpy(dtype=float)
        return [with_interval(each, first, last, 2) for each, first, last in ends]

    cells["value"] = numbers("value", "ci_low", "ci_high")
    if "human" in rows:
        cells["certain"] = rows["certain"]
        cells["human"] = numbers("human", "human_low", "human_high")
        cells["difference"] = numbers("difference", "difference_low", "difference_high")
        cells["significant"] = rows["significant"]
    return cells.assign(n=[f"{number:,.0f}" for number in rows["n"]], kind=rows["kind"])


def word_chart(
    words: pd.DataFrame,
    attribute: Attribute,
    name: str,
    functional: Collection[str] = (),
    link: Callable[[str], str] | None = None,
):
    """A dot per word for what it adds to the logit, with its interval, grey if that contains 0; if words were compared,
    a hollow dot for human captions, and the names of words that differ in bold.

    words: of `top_words`. name: the captioner. functional: words that are marked as function words. link: word to the
    address of its captions. Of two values a dot to the left pushes toward the first.
    """
    two, compared = len(attribute.values) == 2, "human" in words
    sign = np.where(words["toward"] == 0, -1, 1) if two else np.ones(len(words))
    rows = words.assign(shown=sign * words["captioner" if compared else "mean"], sign=sign)
    rows = rows.sort_values(["sign", "toward", "shown"])
    labels = []
    for row in rows.to_dict("records"):
        marks = [FUNCTION] if row["word"] in functional else []
        marks += [] if two else [escape(attribute.values[row["toward"]])]
        label = escape(row["word"]) + (f" ({', '.join(marks)})" if marks else "")
        label = f"<b>{label}</b>" if compared and row["significant"] == YES else label
        labels.append(
            f'<a href="{escape(link(row["word"]))}" target="_self" style="{LINK}">{label}</a>' if link else label
        )
    figure, y = graph_objects().Figure(), np.arange(len(rows))
    colours = np.where(rows["shown"] < 0, ORANGE_MARK, BLUE_MARK) if two else np.full(len(rows), BLUE_MARK)
    hover = [f"{signed(row['shown'], 3)} in {row['count']:,} captions" for _, row in rows.iterrows()]

    def lines(side: str, colours: Sequence[str], of: np.ndarray) -> dict[str, Any]:
        """One trace for the intervals of a colour: the error bars of a trace have one."""
        low, high = (rows[end] for end in ENDS[side])
        ends = pd.DataFrame({"low": rows["sign"] * low, "high": rows["sign"] * high})[of]
        return error_bars((rows["sign"] * rows[side])[of], ends.min(axis=1), ends.max(axis=1), colours[0], 2)

    common = {"mode": "markers", "hoverinfo": "text", "showlegend": False}
    apart = 0.0
    if compared:
        colours, apart = np.where(rows["certain"] == YES, colours, GREY), 0.17
        hover = [
            f"{escape(name)} {with_ends(row, 'captioner')} and human {with_ends(row, 'human')} toward "
            f"{escape(attribute.values[row['toward']])}; difference {with_ends(row, 'difference')}, significant: "
            f"{row['significant']}"
            for _, row in rows.iterrows()
        ]
        everything = np.ones(len(rows), dtype=bool)
        figure.add_scatter(
            **common | {"showlegend": True},
            x=rows["sign"] * rows["human"],
            y=y - apart,
            customdata=rows["word"],
            hovertext=hover,
            name="human captions",
            marker={"symbol": "circle-open", "size": 9, "color": GREY, "line": {"width": 2}},
            error_x=lines("human", [GREY], everything),
        )
    for colour in dict.fromkeys(colours):
        of = colours == colour
        figure.add_scatter(
            **common,
            x=rows["shown"][of],
            y=y[of] + apart,
            customdata=rows["word"][of],
            hovertext=[text for text, shown in zip(hover, of, strict=True) if shown],
            name=escape(name),
            marker={"symbol": "circle", "size": 11, "color": colour},
            error_x=lines("captioner", [colour], of) if compared else None,
        )
    # Its dots have several colours; one stands for them in the legend.
    title = escape(name) + (" (grey: interval contains 0)" if compared else "")
    figure.add_scatter(
        x=[None], y=[None], mode="markers", marker={"size": 11, "color": BLUE_MARK}, name=title, hoverinfo="skip"
    )
    figure.add_vline(x=0, line={"color": GREY, "width": 1.5})
    ends = two_lines(escape(f"← {attribute.values[0]} · {attribute.values[1]} →"), "added to the logit on average")
    return figure.update_layout(
        height=MARGINS + 18 + 27 * max(len(rows), 3),
        margin={"l": 10, "r": 10, "t": 34, "b": 64},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "traceorder": "reversed"},
        xaxis={"title": {"text": ends if two else "added to the logit of the value on average"}},
        # Fixed, since what drags an axis lies over the links of its labels.
        yaxis={"tickvals": list(y), "ticktext": labels, "automargin": True, "range": [-0.8, len(rows) - 0.2]}
        | {"fixedrange": True},
        dragmode=False,
    )


def strongest_words(scores: CaptionScores, table: pd.DataFrame, smallest_count: int, number: int) -> dict[str, Any]:
    """The words that push most toward each value, `number` each; special tokens left out.

    table: of `word_table`. mean: of two values positive toward the second. captioner, human and difference of words
    compared with human captions, and their ends: toward the value pushes_toward.
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
            numbers = {name: row[name] for side, ends in ENDS.items() for name in (side, *ends)}
            item |= {name: None if pd.isna(number) else number for name, number in numbers.items()}
            item["significant"] = row["significant"]
        words.append(item)
    summary = {
        "captions": len(scores.table),
        "smallest_count": smallest_count,
        "largest_convergence_delta": float(scores.table["delta"].max()),
        "words": words,
    }
    if "human" in table:
        summary["comparison"] = comparison_sentence(table, scores.attribute, scores.run.spec.model)
    return summary


def corpus_text(words: dict[str, Any]) -> str:
    """`strongest_words` as columns."""
    if not words["words"]:
        return f"No word pushes either way in {words['smallest_count']} captions or more; lower --min-count.\n"
    compared = "comparison" in words
    rows = []
    for item in words["words"]:
        row = {"word": item["word"], "pushes toward": item["pushes_toward"]}
        if compared:
            row |= {side: with_ends(item, side) for side in ENDS} | {"significant": item["significant"]}
        else:
            row["mean"] = signed(item["mean"], 3)
        row["count"] = f"{item['count']:,}"
        rows.append(row | {f"share of {value}": f"{100 * share:.1f}%" for value, share in item["share"].items()})
    what = (
        f"Captioner, human: what the word adds to the logit, toward its value. {INTERVALS.rstrip('.')}"
        if compared
        else ("Mean: what the word adds to the logit where it occurs")
    )
    head = f"{words['comparison']}\n\n" if compared else ""
    return (
        f"{head}{to_text(pd.DataFrame(rows))}\n{words['captions']:,} captions. {what}. Share: of the captions of that "
        f"label.\nLargest convergence delta: {words['largest_convergence_delta']:.2g}.\nIf the "
        "attacker guesses no better than by chance, no word reveals anything; `capbias score` says that (SC).\n"
    )
