"""`align`: what vocabulary alignment does to human captions, at every delta, as CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from capbias_core.aggregate import unlabelled
from capbias_core.attributes import get_attribute, known_attributes
from capbias_core.cli.flags import INPUTS, WHAT, OutputFlag, command, flag
from capbias_core.cli.terminal import DONE, checked_output, say, ticking, write_output
from capbias_core.errors import CapbiasError
from capbias_core.load import CAPTIONS, LABELS, REFERENCES
from capbias_core.load.vectors import read_vectors
from capbias_core.measures.alignment import DELTAS, NO_JAVA, of_same_images, sweep, sweep_table
from capbias_core.metrics.caption_quality import has_java
from capbias_core.prepare import masked_captions, tokenize, vocabulary
from capbias_core.prepare.align import neighbours
from capbias_core.spreadsheets import csv_text
from capbias_core.types import Attribute
from capbias_core.workspace.ingest import read_frame
from capbias_core.workspace.inputs import check_delta
from capbias_core.workspace.labels import dropped_line, labels_for, resolve_attribute
from capbias_core.workspace.spec import attribute_from

app = command(
    "align",
    """\
  capbias align --captions sat.json --references captions.json --vectors glove.6B.300d.txt \\
    --attribute gender --delta 0 0.2 0.4 0.6 0.8 1 --output sweep.csv

One row per delta, all x100, with 95% intervals over images (_low, _high): contextual, the share of the words that the
captioner never uses, as often as they occur, that became its nearest word and not <unk>; unknown, the share of all
words that became <unk>; METEOR between human captions before and after, and under constant alignment (_constant).
With --attribute its words are masked first, as an attacker reads captions; with --labels too only labelled images
count. For kept captions use: capbias score --metric alignment.""",
)


@app.default
def align(
    *,
    captions: Annotated[str, flag("a captioner's captions", "FILE", INPUTS)],
    references: Annotated[str, flag("human captions of the same images", "FILE", INPUTS)],
    vectors: Annotated[str, flag("word vectors: GloVe, word2vec or fastText", "FILE", INPUTS)],
    labels: Annotated[
        str | None,
        flag("a table of labels: only its labelled images count", "FILE", INPUTS, name=("--labels", "--attributes")),
    ] = None,
    attribute: Annotated[
        str | None,
        flag(f"its words are masked: a shipped one ({', '.join(known_attributes())}), or a TOML file", "NAME", INPUTS),
    ] = None,
    delta: Annotated[list[float] | None, flag("cosine distances (default: 0 0.1 ... 1)", "DISTANCE", WHAT)] = None,
    output: OutputFlag = None,
) -> int:
    """Show what vocabulary alignment does to human captions, at every delta, as CSV."""
    for distance in delta or ():
        check_delta(distance)
    path = checked_output(output)
    of, labelled = _attribute(attribute, labels)
    human = read_frame(references, REFERENCES)
    model = read_frame(captions, CAPTIONS)
    if labelled is not None:
        human, model = (frame[frame["image_id"].isin(labelled)] for frame in (human, model))
    human = of_same_images(human, model)
    own = [_masked(frame["caption"], of) for frame in (human, model)]
    words, known = vocabulary(own[0]), vocabulary(own[1])
    near = neighbours(words, known, read_vectors(Path(vectors), words | known))
    if not has_java():
        say(f"note: {NO_JAVA}")
    with ticking() as tick:
        found = sweep(human["image_id"], unlabelled, own[0], known, near, tuple(delta or DELTAS), tick)
    write_output(csv_text(sweep_table(found)), path)
    return DONE


def _attribute(name: str | None, labels: str | None) -> tuple[Attribute | None, set[str] | None]:
    """The attribute whose words are masked, and the labelled images; None if nothing was said."""
    if not labels:
        return (get_attribute(name) if name else None), None
    if not name:
        raise CapbiasError("--labels needs --attribute.", "Name the attribute that the table labels.")
    table = read_frame(labels, LABELS)
    _, details = resolve_attribute(table, name)
    say(dropped_line(table, details))
    attribute = attribute_from(details["attribute"])
    return attribute, set(labels_for(table, attribute, details["column"], details["mapping"]).values.index)


def _masked(captions, attribute: Attribute | None) -> list[str]:
    return masked_captions(captions, attribute) if attribute else [" ".join(tokenize(text)) for text in captions]
