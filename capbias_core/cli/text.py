"""`text`: values and objects in plain texts, without images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pandas as pd

from capbias_core.analysis.texts import keywords as frequent_words
from capbias_core.analysis.texts import text_results
from capbias_core.api import ordered
from capbias_core.attributes import get_attribute
from capbias_core.cli.flags import INPUTS, WHAT, Flags, OutputFlag, command, flag, given, measure_choices
from capbias_core.cli.rows import write_rows
from capbias_core.cli.terminal import DONE, checked_output, say
from capbias_core.errors import CapbiasError
from capbias_core.load.read import read_texts
from capbias_core.measures.registry import MEASURES, METRICS, expand_metrics
from capbias_core.types import left_out_lines

OF_TEXTS = [measure for measure in MEASURES.values() if measure.of_texts]
ASKED = [group.name for measure in OF_TEXTS for group in measure.groups]
DEFAULT_METRICS = ("cooccurrence",)


class Choices(measure_choices(OF_TEXTS, left_out=("objects_from", "object_sources", "object_votes"))):
    """Choices of the command."""


NO_CHOICES = Choices()

app = command(
    "text",
    """\
  capbias text --input captions.txt --attribute gender --per-object
  capbias text --input profiles.csv --column description --attribute gender --lead "a {word} says:" \\
    --object-words family coffee gaming --metric gs --language-model gpt2 --sentence-encoder minilm

One text per line, or a column of a table. Objects are those that a text names. Intervals are over texts.""",
)


@app.default
def text(
    *,
    input: Annotated[str, flag("one text per line, or a table (CSV, Parquet..)", "FILE", INPUTS)],
    column: Annotated[str | None, flag("the column of texts, if not found", "COLUMN", INPUTS)] = None,
    label_column: Annotated[
        str | None, flag("a column of labels that count in place of the value that a text names", "COLUMN", INPUTS)
    ] = None,
    attribute: Annotated[str, flag("a known attribute, or a TOML file", "NAME", INPUTS)],
    metric: Annotated[
        list[str] | None,
        flag(f"one or more of: {', '.join(ASKED)} (default: {' '.join(DEFAULT_METRICS)})", "NAME", WHAT),
    ] = None,
    per_object: Annotated[bool, flag("also a row for each object", group=WHAT)] = False,
    lead: Annotated[
        str,
        flag(
            "what stands before a text that names no value, such as 'a {word} says:' (default: it does not count)",
            "TEXT",
            WHAT,
        ),
    ] = "",
    keywords: Annotated[
        int, flag("also count the N nouns, verbs, adjectives and adverbs that most texts have as objects", "N", WHAT)
    ] = 0,
    choices: Annotated[Choices, Flags] = NO_CHOICES,
    output: OutputFlag = None,
) -> int:
    """Measure values and objects in plain texts, without images."""
    wanted, path = expand_metrics(metric or DEFAULT_METRICS), checked_output(output)
    of = get_attribute(attribute)
    texts, labels = read_texts(Path(input), column, label_column)
    name = Path(input).stem
    options = given(choices)
    if keywords > 0:
        words = frequent_words(texts, of, keywords)
        say(f"note: keywords: {', '.join(words) or 'none'}")
        options["object_words"] = [*options.get("object_words", ()), *words]
    found = text_results(texts, name, of, wanted, options, labels, lead)
    say(f"note: {found.note}")
    _say_what_is_missing(found.rows, wanted)
    rows = ordered(found.rows, [name], wanted)
    if per_object:
        rows = pd.concat([rows, ordered(found.by_object, [name], wanted)])
    write_rows(rows, path)
    return DONE


def _say_what_is_missing(rows: pd.DataFrame, wanted: Sequence[str]) -> None:
    missing = {name: _lack(name) for name in wanted if name not in set(rows["metric"])}
    lines = left_out_lines(missing)
    if len(missing) == len(wanted):
        raise CapbiasError(f"These texts give none of the metrics: {'; '.join(lines)}.", "Ask for another metric.")
    for line in lines:
        say(f"warning: {line}")


def _lack(name: str) -> str:
    model = METRICS[name].needs.model
    if model:
        return f"a {model.replace('_', ' ')} is needed (--{model.replace('_', '-')})"
    return "no text gives it a value"
