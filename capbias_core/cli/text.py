"""`text`: values and objects in plain texts, without images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from capbias_core.analysis.texts import text_results
from capbias_core.attributes import get_attribute
from capbias_core.cli.objects import add_arguments as add_object_arguments
from capbias_core.cli.score import ordered
from capbias_core.cli.terminal import DONE, checked_output, say, write_output
from capbias_core.errors import CapbiasError
from capbias_core.load.texts import read_texts
from capbias_core.metrics import expand_metrics
from capbias_core.present.table import to_csv
from capbias_core.workspace.models import KINDS

DEFAULT_METRICS = ("cooccurrence",)
OPTIONS = ("object_words", "confidence", "lead", *KINDS)

EXAMPLE = """\
  python -m capbias_core text --input captions.txt --attribute gender --per-object
  python -m capbias_core text --input profiles.csv --column description --attribute gender --lead "a {word} says:" \\
    --object-words family coffee gaming --metric gs --language-model gpt2 --sentence-encoder minilm

One text a line, or a column of a table. Objects are those that a text names. Intervals are over texts."""


def add_arguments(command) -> None:
    """The options of `text`."""
    command.add_argument("--input", required=True, metavar="FILE", help="one text a line, or a table (CSV, Parquet..)")
    command.add_argument("--column", metavar="COLUMN", help="the column of texts, if not found")
    labels = "a column of labels that count in place of the value that a text names"
    command.add_argument("--label-column", metavar="COLUMN", help=labels)
    command.add_argument("--attribute", required=True, help="a known attribute, or a TOML file")
    names = "one or more of: cooccurrence, god, gs, estimation (default: cooccurrence)"
    command.add_argument("--metric", nargs="+", action="extend", help=names)
    lead = "what stands before a text that names no value, such as 'a {word} says:' (default: it does not count)"
    command.add_argument("--lead", metavar="TEXT", help=lead)
    add_object_arguments(command, images=False)
    command.add_argument("--output", metavar="FILE", help="where to write the CSV (default: stdout)")


def text(args) -> int:
    """Rows of plain texts as CSV, to --output or stdout."""
    wanted = expand_metrics(args.metric or DEFAULT_METRICS)
    output = checked_output(args.output)
    attribute = get_attribute(args.attribute)
    texts, labels = read_texts(Path(args.input), args.column, args.label_column)
    options = {key: value for key in OPTIONS if (value := getattr(args, key)) is not None}
    name = Path(args.input).stem
    found = text_results(texts, name, attribute, wanted, options, labels)
    say(f"note: {found.note}")
    _say_what_is_missing(found.rows, wanted)
    rows = ordered(found.rows, [name], wanted)
    if args.per_object:
        rows = pd.concat([rows, ordered(found.by_object, [name], wanted)])
    write_output(to_csv(rows), output)
    return DONE


def _say_what_is_missing(rows: pd.DataFrame, wanted: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in set(rows["metric"])]
    if len(missing) == len(wanted):
        raise CapbiasError(", ".join(missing), "a metric that can be had", "masked_model needs --masked-model.")
    if missing:
        say(f"warning: {', '.join(missing)} left out: a masked language model is needed (--masked-model)")
