"""The command line: parses, calls the functions that the pages call, prints.

Numbers, tables and JSON go to stdout; what is said about them (warnings, progress, notes) to stderr. Exit codes:
0 done; 1 a run failed, was cancelled or died; 2 bad input or usage; 130 stopped with Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from capbias_core.attackers import ATTACKERS
from capbias_core.attackers.device import AUTO, DEVICES
from capbias_core.attributes import known_attributes
from capbias_core.cli import (
    alignment,
    anonymous_bench,
    attribution,
    caption,
    conditions,
    judging,
    mask,
    metrics,
    objects,
    text,
)
from capbias_core.cli.attributes import EXAMPLE as ATTRIBUTES_EXAMPLE
from capbias_core.cli.attributes import add_arguments as add_attributes_arguments
from capbias_core.cli.attributes import attributes
from capbias_core.cli.consistency import EXAMPLE as CONSISTENCY_EXAMPLE
from capbias_core.cli.consistency import add_arguments as add_consistency_arguments
from capbias_core.cli.consistency import consistency
from capbias_core.cli.detect import EXAMPLE as DETECT_EXAMPLE
from capbias_core.cli.detect import add_arguments as add_detect_arguments
from capbias_core.cli.detect import detect
from capbias_core.cli.explain import explain
from capbias_core.cli.importing import import_file
from capbias_core.cli.known_answer import EXAMPLE as KNOWN_EXAMPLE
from capbias_core.cli.known_answer import known_answer
from capbias_core.cli.score import DEFAULT_METRICS, score
from capbias_core.cli.show import FORMATS, export, list_kept, run_demo
from capbias_core.cli.terminal import BAD_INPUT, DONE, STOPPED, say
from capbias_core.errors import CapbiasError
from capbias_core.load import normalise_image_id
from capbias_core.metrics import FAMILIES
from capbias_core.prepare.treebank import TOKENIZERS, default_tokenizer
from capbias_core.types import CONDITIONS
from capbias_core.workspace.ingest import DEFAULT_COLLECTION


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. argparse leaves with SystemExit(2) for wrong usage."""
    args = _parser().parse_args(argv)
    try:
        code = args.run(args)
        sys.stdout.flush()
        return code
    except CapbiasError as error:
        say(f"error: {error}")
        return BAD_INPUT
    except KeyboardInterrupt:
        say("cancelled")
        return STOPPED
    except BrokenPipeError:  # the reader (such as head) has what it wanted; the interpreter's last flush must not fail
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE


# the parser

CODES = "Exit codes: 0 done; 1 a run failed, was cancelled or died; 2 bad input; 130 stopped with Ctrl-C."


class Parser(argparse.ArgumentParser):
    """argparse's own, that says wrong usage in one line, as every other error is said."""

    def error(self, message: str):
        """Leave with SystemExit(2)."""
        self.exit(BAD_INPUT, f"error: {message}. See {self.prog} --help.\n")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m capbias_core", description="Societal bias in image captions, from a terminal.", epilog=CODES
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in (
        _add_import,
        _add_mask,
        _add_caption,
        _add_detect,
        _add_list,
        _add_score,
        _add_text,
        _add_metrics,
        _add_explain,
        _add_consistency,
        _add_anonymous_bench,
        _add_conditions,
        _add_known_answer,
        _add_align,
        _add_attributes,
        _add_export,
        _add_demo,
    ):
        add(commands)
    return parser


def _command(commands, name: str, run, text: str, example: str) -> argparse.ArgumentParser:
    command = commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=f"Example:\n{example}\n\n{CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(run=run)
    command.add_argument("--workspace", metavar="FOLDER", help="the workspace (default: CAPBIAS_HOME, or ./workspace)")
    return command


def _several(command, option: str, metavar: str | None, text: str) -> None:
    command.add_argument(option, nargs="+", action="extend", metavar=metavar, help=text)


def _add_columns(command) -> None:
    command.add_argument("--image-id-column", metavar="COLUMN", help="the column of image ids, if not found")
    command.add_argument("--caption-column", metavar="COLUMN", help="the column of captions, if not found")


def _add_attacker(command, several: bool = False) -> None:
    """--attacker and --device. several: a list, `attackers`, beside the one that requests are made with."""
    known = f"one{' or more' if several else ''} of: {', '.join(ATTACKERS)} (default: ngram); or the folder or name "
    known += "of any text encoder, frozen; or one of these with its folder, such as bert_ft=FOLDER"
    if several:
        command.set_defaults(attacker="ngram", attackers=["ngram"])
        command.add_argument("--attacker", nargs="+", dest="attackers", metavar="NAME", help=known)
    else:
        command.add_argument("--attacker", default="ngram", help=known)
    where = "where attackers with networks train (default: auto, CUDA where there is one)"
    command.add_argument("--device", choices=DEVICES, default=AUTO, help=where)
    same = "on CUDA: only algorithms that give the same numbers each time, slower; on a CPU they do anyway"
    command.add_argument("--deterministic", action="store_true", default=None, help=same)


def _add_inputs(command, captions: str) -> None:
    shipped = ", ".join(known_attributes())
    _several(command, "--captions", "FILE", captions)
    labels = "table of labels, one row an image (score: not needed for age, which is derived from --references)"
    command.add_argument("--attributes", metavar="FILE", help=labels)
    text = f"a shipped attribute ({shipped}), one of the workspace, a TOML file, or a column of labels"
    command.add_argument("--attribute", required=True, help=text)
    command.add_argument("--attribute-column", metavar="COLUMN", default="", help="the column of labels, if not found")
    _several(command, "--values", None, "the labels of a column to compare (default: all)")
    _add_columns(command)
    command.add_argument("--merge-masks", action="store_true", help="one mask for a run of masked words")
    command.add_argument("--collection", metavar="NAME", help="use a workspace's collection, and names for files")


def _image_id(text: str) -> str:
    try:
        return normalise_image_id(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"got {text!r}: {error}; expected an image id such as 785") from None


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected a whole number of 1 or more")
    return int(text)


SCORE_EXAMPLE = """\
  python -m capbias_core score --captions nic.json sat.json --attributes attributes.csv --attribute gender \\
    --references captions.json --metric lic ratio error --attacker ngram --seeds 10 --output scores.csv
  python -m capbias_core score --collection "my captions" --captions sat --attribute gender --metric lic

With several names after --attacker each encoder has rows of its own; one that cannot be had is left out, with the
reason. Files are read into a workspace of their own, which is removed afterwards. A captioner is called as its file is,
without the ending. One row a number; LIC, its parts, error and caption quality are x100, ratio is plain. Where a run
fails, the numbers of the others are written and the exit code is 1."""


def _add_score(commands) -> None:
    text = "score captions: LIC, leakage, ratio, error, with intervals, as CSV"
    command = _command(commands, "score", score, text, SCORE_EXAMPLE)
    _add_inputs(command, "files of captions; with --collection, names of caption sets (default: all)")
    _add_attacker(command, several=True)
    command.add_argument("--references", metavar="FILE", help="human captions; with --collection, their name")
    kept = "objects of the images: COCO instances, or a table with image_id and objects (cat|dog); or their name"
    command.add_argument("--objects", metavar="FILE", help=kept)
    words = f"one or more of: {', '.join(FAMILIES)}; or a metric's own name (`metrics` lists them all)"
    _several(command, "--metric", None, f"{words} (default: {' '.join(DEFAULT_METRICS)})")
    tokens = "for caption quality: ptb as COCO's evaluation (needs Java), or plain (default here: %(default)s)"
    command.add_argument("--tokenizer", choices=tuple(TOKENIZERS), default=default_tokenizer(), help=tokens)
    command.add_argument("--seeds", type=_positive, default=10, help="attackers with different splits (default: 10)")
    alignment.add_score_arguments(command)
    objects.add_arguments(command)
    judging.add_score_arguments(command, _positive)
    attribution.add_score_arguments(command, _positive)
    command.add_argument("--output", metavar="FILE", help="where to write the CSV (default: stdout)")


def _add_metrics(commands) -> None:
    text = "list what can be measured, what it means and what it needs"
    metrics.add_arguments(_command(commands, "metrics", metrics.metrics, text, metrics.EXAMPLE))


def _add_text(commands) -> None:
    text.add_arguments(_command(commands, "text", text.text, "values and objects in plain texts, as CSV", text.EXAMPLE))


EXPLAIN_EXAMPLE = """\
  python -m capbias_core explain --captions sat.json --attributes attributes.csv --attribute gender --top 20
  python -m capbias_core explain --captions sat.json --attributes attributes.csv --attribute gender \\
    --words "man -> person" "umbrella -> bat | ball"
  python -m capbias_core explain --captions sat.json --attributes attributes.csv --attribute gender --image 785 \\
    --attacker minilm --attention --layer 4 --head 2

Every caption is scored by an attacker that did not train on its image; what the words add sums, with the intercept,
to the logit."""


def _add_explain(commands) -> None:
    text = "show which words carry the bias, and what edits do"
    command = _command(commands, "explain", explain, text, EXPLAIN_EXAMPLE)
    _add_inputs(command, "a file of captions; with --collection, the name of a caption set")
    _add_attacker(command)
    command.set_defaults(references=None, seeds=1)
    question = command.add_mutually_exclusive_group()
    question.add_argument("--image", metavar="ID", type=_image_id, help="the words of one image's caption")
    question.add_argument("--text", metavar="CAPTION", help="the words of any caption")
    _several(question, "--words", "EDIT", 'edits of the whole set, such as "man -> person"')
    shown = "with --image and a Transformer or pretrained encoder: one trains on the other images and reads this one's "
    command.add_argument("--attention", action="store_true", help=f"{shown}captions; what each word reads of each")
    for part in ("layer", "head"):
        usual = f"the {part} shown by --attention, from 1 (default: that of the reproducibility paper, or the last)"
        command.add_argument(f"--{part}", type=_positive, metavar="N", help=usual)
    command.add_argument("--top", type=_positive, default=20, help="words each way (default: 20)")
    least = "captions with the word, at least (default: 20)"
    command.add_argument("--smallest-count", type=_positive, default=20, help=least)
    command.add_argument("--format", choices=("table", "json"), default="table", help="json has every digit")


def _add_anonymous_bench(commands) -> None:
    text = "how often captions of photographs of nobody in particular name a value (AnonymousBench), as CSV"
    command = _command(commands, "anonymous-bench", anonymous_bench.anonymous_bench, text, anonymous_bench.EXAMPLE)
    anonymous_bench.add_arguments(command)


def _add_consistency(commands) -> None:
    text = "judge the judges: how far a results table depends on encoders, as CSV"
    add_consistency_arguments(_command(commands, "consistency", consistency, text, CONSISTENCY_EXAMPLE))


def _add_conditions(commands) -> None:
    text = "put a captioner's metrics against what was masked on the photographs, as CSV"
    command = _command(commands, "conditions", conditions.conditions, text, conditions.EXAMPLE)
    _add_attacker(command)
    conditions.add_arguments(command)
    command.add_argument("--seeds", type=_positive, default=10, help="attackers with different splits (default: 10)")


def _add_mask(commands) -> None:
    text = "hide people or objects on photographs: copies with the condition, or the regions to drop"
    mask.add_arguments(_command(commands, "mask", mask.mask, text, mask.EXAMPLE))


def _add_caption(commands) -> None:
    text = "caption photographs with a captioner of this machine, as COCO results or as a caption set"
    caption.add_arguments(_command(commands, "caption", caption.caption, text, caption.EXAMPLE), _positive)


def _add_detect(commands) -> None:
    text = "find people and objects on photographs, as boxes in CSV"
    add_detect_arguments(_command(commands, "detect", detect, text, DETECT_EXAMPLE))


def _add_attributes(commands) -> None:
    text = "list the attributes that are known, print one's file, or check a file of your own"
    add_attributes_arguments(_command(commands, "attributes", attributes, text, ATTRIBUTES_EXAMPLE))


def _add_align(commands) -> None:
    text = "show what vocabulary alignment does to human captions, at every delta, as CSV"
    alignment.add_arguments(_command(commands, "align", alignment.align, text, alignment.EXAMPLE))


IMPORT_EXAMPLE = """\
  python -m capbias_core import attributes.csv --kind attributes --attribute gender=sex --map gender:f=Female
  python -m capbias_core import sat.json --kind captions --trained-on-references yes
  python -m capbias_core import instances_val2014.json --kind objects
  python -m capbias_core import instances_val2014.json --kind segments
  python -m capbias_core import glove.6B.300d.txt --kind vectors
  python -m capbias_core import val2014/ --kind images"""


def _add_import(commands) -> None:
    text = "read a file, report on it, and keep it in the workspace"
    command = _command(commands, "import", import_file, text, IMPORT_EXAMPLE)
    command.add_argument("file", metavar="FILE", nargs="?", help="captions, labels, objects, or word vectors")
    derived = "instead of FILE: derive the labels of --attribute from these kept human captions"
    command.add_argument("--from-references", metavar="NAME", help=derived)
    kinds = ("captions", "references", "attributes", "objects", "segments", "vectors", "images")
    command.add_argument("--kind", required=True, choices=kinds)
    command.add_argument("--name", help="its name (default: the file's, without the ending)")
    command.add_argument("--collection", default=DEFAULT_COLLECTION, help="(default: %(default)s)")
    _add_columns(command)
    asked = "attributes of a table (default: the shipped ones that have a column)"
    _several(command, "--attribute", "NAME[=COLUMN]", asked)
    _several(command, "--map", "ATTRIBUTE:LABEL=VALUE", "what a label means; an empty value drops it")
    trained = "whether the captioner was trained on the references"
    command.add_argument("--trained-on-references", choices=("yes", "no"), help=trained)
    command.add_argument("--captioner", metavar="NAME", help="who wrote the captions (default: as the name suggests)")
    masked = "what was masked on the photographs (default: as the name suggests, such as person in sat_masked_person)"
    command.add_argument("--condition", choices=CONDITIONS, help=masked)
    command.add_argument("--dry-run", action="store_true", help="only report")


def _add_list(commands) -> None:
    text = "list what is kept, and the runs with their status"
    command = _command(commands, "list", list_kept, text, "  python -m capbias_core list --json")
    command.add_argument("--json", action="store_true", help="as JSON")


def _add_known_answer(commands) -> None:
    text = "measure caption sets whose answer is known: which metrics see a bias that is in the language alone"
    command = _command(commands, "known-answer", known_answer, text, KNOWN_EXAMPLE)
    command.add_argument("--times", type=_positive, default=100, help="times as large as in the paper (default: 100)")
    command.add_argument("--seeds", type=_positive, default=10, help="attackers with different splits (default: 10)")
    command.add_argument("--output", metavar="FILE", help="where to write the CSV (default: stdout)")


def _add_export(commands) -> None:
    example = '  python -m capbias_core export --collection "my captions" --format latex --metric lic --output lic.tex'
    command = _command(commands, "export", export, "write the results of a collection as CSV, LaTeX or JSON", example)
    command.add_argument("--collection", required=True, metavar="NAME")
    command.add_argument("--format", choices=tuple(FORMATS), default="csv", help="(default: csv)")
    _several(command, "--metric", None, "only these (default: all)")
    command.add_argument("--output", metavar="FILE", help="where to write (default: stdout)")


def _add_demo(commands) -> None:
    text = "load the bundled demo, run it, and print LIC beside the known truth"
    command = _command(commands, "demo", run_demo, text, "  python -m capbias_core demo --if-empty")
    command.add_argument("--if-empty", action="store_true", help="do nothing where the workspace holds something")
