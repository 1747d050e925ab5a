"""Vocabulary alignment from a terminal: the options of `score`, and `align`, the sweep over delta."""

from __future__ import annotations

import argparse
from pathlib import Path

from capbias_core.attributes import get_attribute, known_attributes
from capbias_core.cli.labels import dropped_line, mapped
from capbias_core.cli.terminal import DONE, checked_output, say, write_output
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load import read_attributes, read_captions
from capbias_core.load.vectors import read_vectors
from capbias_core.measures.alignment import DELTAS, NO_JAVA, of_same_images, sweep, sweep_table
from capbias_core.metrics.caption_quality import has_java
from capbias_core.prepare import masked_captions, tokenize, vocabulary
from capbias_core.prepare.align import DELTA, neighbours
from capbias_core.types import Attribute
from capbias_core.workspace.labels import attribute_from, labels_for
from capbias_core.workspace.store import Workspace, checked_name
from capbias_core.workspace.vectors import VECTORS, alignment_option, keep_vectors, offer_vectors

KINDS = ("constant", "contextual")

EXAMPLE = """\
  python -m capbias_core align --captions sat.json --references captions.json --vectors glove.6B.300d.txt \\
    --attribute gender --delta 0 0.2 0.4 0.6 0.8 1 --output sweep.csv

One row a delta, all x100, with 95% intervals over images (_low, _high): contextual, the share of the words that the
captioner never uses, as often as they occur, that became its nearest word and not <unk>; unknown, the share of all
words that became <unk>; METEOR between human captions before and after, and under constant alignment (_constant).
With --attribute its words are masked first, as an attacker reads captions; with --attributes too only labelled images
count."""


def delta(text: str) -> float:
    """A cosine distance as an argument, 0 to 2."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 2:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected a cosine distance, 0 to 2")
    return value


def add_score_arguments(command) -> None:
    """The options of `score`."""
    kinds = "what becomes of human words that the captioner never uses: <unk>, or its nearest word (default: constant)"
    command.add_argument("--alignment", choices=KINDS, default="constant", dest="alignment_kind", help=kinds)
    vectors = "word vectors for contextual alignment (GloVe, word2vec, fastText); with --collection, their name"
    command.add_argument("--vectors", metavar="FILE", help=vectors)
    farthest = f"cosine distance below which a word is near (default: {DELTA})"
    command.add_argument("--delta", type=delta, help=farthest)


def add_arguments(command) -> None:
    """The options of `align`."""
    command.add_argument("--captions", metavar="FILE", required=True, help="a captioner's captions")
    command.add_argument("--references", metavar="FILE", required=True, help="human captions of the same images")
    command.add_argument("--vectors", metavar="FILE", required=True, help="word vectors: GloVe, word2vec or fastText")
    command.add_argument("--attributes", metavar="FILE", help="a table of labels: only its labelled images count")
    shipped = ", ".join(known_attributes())
    command.add_argument("--attribute", help=f"whose words are masked: a shipped one ({shipped}), or a TOML file")
    command.add_argument("--delta", type=delta, nargs="+", default=DELTAS, help="distances (default: 0 0.1 ... 1)")
    command.add_argument("--output", metavar="FILE", help="where to write the CSV (default: stdout)")


def align(args) -> int:
    """The sweep over delta as CSV, without a workspace."""
    if args.workspace:
        raise CapbiasError("--workspace", "files only", "For kept captions use: score --metric alignment.")
    output = checked_output(args.output)
    attribute, labelled = _attribute(args)
    human = read_captions(Path(args.references), kind="reference").frame
    model = read_captions(Path(args.captions)).frame
    if labelled is not None:
        human, model = (frame[frame["image_id"].isin(labelled)] for frame in (human, model))
    human = of_same_images(human, model)
    own = [_masked(frame["caption"], attribute) for frame in (human, model)]
    words, known = vocabulary(own[0]), vocabulary(own[1])
    near = neighbours(words, known, read_vectors(Path(args.vectors), words | known))
    if not has_java():
        say(f"note: {NO_JAVA}")
    found = sweep(human["image_id"], own[0], known, near, args.delta, lambda share, text: None)
    write_output(sweep_table(found).to_csv(index=False, lineterminator="\n"), output)
    return DONE


def _attribute(args) -> tuple[Attribute | None, set[str] | None]:
    """The attribute whose words are masked, and the labelled images; None where nothing was said."""
    if not args.attributes:
        known = known_attributes()
        if args.attribute and args.attribute not in known and not args.attribute.endswith(".toml"):
            raise unknown_name("attribute", args.attribute, known)
        return (get_attribute(args.attribute) if args.attribute else None), None
    if not args.attribute:
        raise CapbiasError("--attributes without --attribute", "the attribute that it labels", "Name it.")
    table = read_attributes(Path(args.attributes)).frame
    _, details = mapped(table, args.attribute)
    say(dropped_line(table, details))
    attribute = attribute_from(details["attribute"])
    return attribute, set(labels_for(table, attribute, details["column"], details["mapping"]).values.index)


def _masked(captions, attribute: Attribute | None) -> list[str]:
    return masked_captions(captions, attribute) if attribute else [" ".join(tokenize(text)) for text in captions]


def check_alignment(args) -> None:
    """Raises CapbiasError where the options of alignment do not fit together, before anything is read."""
    kind = getattr(args, "alignment_kind", KINDS[0])
    stray = [f"--{name}" for name in ("vectors", "delta") if kind == KINDS[0] and getattr(args, name, None) is not None]
    if stray:
        got = f"{' and '.join(stray)} with constant alignment"
        raise CapbiasError(got, "--alignment contextual", "Add it, or leave the others out.")
    if kind != KINDS[0] and not args.vectors and not args.collection:
        raise CapbiasError("--alignment contextual without --vectors", "a file of word vectors", "Name one.")


def alignment_options(workspace: Workspace, collection: str, args) -> dict:
    """`Request.options` for the alignment that was asked for. With files the vectors are looked up and kept first."""
    if getattr(args, "alignment_kind", KINDS[0]) == KINDS[0]:
        return {}
    if args.collection:
        item = workspace.item(VECTORS, args.vectors or _only(workspace, collection), collection)
    else:
        path = Path(args.vectors)
        item = keep_vectors(workspace, offer_vectors(workspace, path, collection), checked_name(path.stem), collection)
    say(f"{item.name}: {item.details['found']:,} of {item.rows:,} words of the captions have a vector")
    return {"alignment": alignment_option(item, DELTA if args.delta is None else args.delta)}


def _only(workspace: Workspace, collection: str) -> str:
    names = [item.name for item in workspace.items(VECTORS, collection)]
    if len(names) != 1:
        raise CapbiasError(
            f"{len(names)} files of word vectors in {collection} ({', '.join(names) or 'none'})",
            "one of them",
            "Name it with --vectors, or keep one with: import --kind vectors FILE.",
        )
    return names[0]
