"""The command line: parses, calls the functions that the pages call, prints.

Numbers, tables and JSON go to stdout; what is said about them (warnings, progress, notes) to stderr. Exit codes:
0 done; 1 a run failed, was cancelled or died; 2 bad input or usage; 130 stopped with Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import numpy as np
import pandas as pd

from capbias_core.attackers import ATTACKERS, attacker_entry
from capbias_core.attributes import get_attribute, known_attributes, plain_attribute, suggest_mapping
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.experiments import ingest
from capbias_core.experiments.browse import caption_rows
from capbias_core.experiments.engine import Engine, dask_client
from capbias_core.experiments.plan import (
    Request,
    RunSpec,
    attribute_from,
    expected_seconds,
    find_attribute,
    labels_for,
    mapping_details,
    plan,
)
from capbias_core.experiments.read import (
    CaptionScores,
    caption_scores,
    current_runs,
    stored_attackers,
    top_words,
    words_table,
)
from capbias_core.experiments.store import ACTIVE, RunRow, Workspace, checked_name, default_folder
from capbias_core.explain.what_if import Rescored, StoredAttackers, apply_edit, parse_edit
from capbias_core.load import detect, normalise_image_id
from capbias_core.load.report import MOST_LABELS
from capbias_core.metrics import FAMILIES, METRICS, expand_metrics
from capbias_core.prepare import tokenize
from capbias_core.present.table import (
    caption_text,
    corpus_text,
    counted,
    edit_text,
    scores_table,
    to_csv,
    to_json,
    to_latex,
    to_text,
)
from capbias_core.types import Attribute

DONE, RUN_FAILED, BAD_INPUT, STOPPED = 0, 1, 2, 130
FILES = "files"
DEFAULT_METRICS = ("lic", "ratio", "error")
BETWEEN_LINES = 60.0
SHOWN_DROPPED = 10
EXAMPLES = 3
FORMATS = {"csv": to_csv, "latex": to_latex, "json": to_json}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. argparse leaves with SystemExit(2) for wrong usage."""
    args = _parser().parse_args(argv)
    try:
        code = args.run(args)
        sys.stdout.flush()
        return code
    except CapbiasError as error:
        _say(f"error: {error}")
        return BAD_INPUT
    except KeyboardInterrupt:
        _say("cancelled")
        return STOPPED
    except BrokenPipeError:  # the reader (such as head) has what it wanted; the interpreter's last flush must not fail
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE


def _say(line: str) -> None:
    print(_readable(line), file=sys.stderr, flush=True)


def _readable(text: str) -> str:
    """Text from files without control characters, which a terminal would obey."""
    return "".join(character if character.isprintable() or character == "\n" else " " for character in text)


# where captions, labels and references come from


@dataclass(frozen=True)
class Source:
    """Inputs by name in one collection of a workspace. references: the sets that there are to choose from."""

    workspace: Workspace
    collection: str
    captions: tuple[str, ...]
    table: str
    attribute: str
    references: tuple[str, ...]


@contextmanager
def _source(args) -> Iterator[Source]:
    """The files that were given, in a workspace that is removed afterwards; or the names of a collection."""
    _check_form(args)
    if not args.attributes:
        with _opened(args) as workspace:
            yield _kept_before(workspace, args)
        return
    with tempfile.TemporaryDirectory(prefix="capbias-") as folder:
        yield _keep_files(Workspace(folder), args)


def _check_form(args) -> None:
    if bool(args.attributes) == bool(args.collection):
        raise CapbiasError(
            "both --attributes and --collection" if args.attributes else "neither --attributes nor --collection",
            "--attributes with files, or --collection with names in a workspace",
            f"See python -m capbias_core {args.command} --help.",
        )
    of_files = ("image_id_column", "caption_column", "attribute_column", "values")
    stray = [name for name in (("workspace",) if args.attributes else of_files) if getattr(args, name)]
    if stray:
        options = ", ".join("--" + name.replace("_", "-") for name in stray)
        raise CapbiasError(
            f"{options} {'with files' if args.attributes else 'with a collection'}",
            "options of files (columns, values) with --attributes, --workspace with --collection",
            "Leave it out.",
        )


@contextmanager
def _opened(args, make: bool = False) -> Iterator[Workspace]:
    """The workspace; one that is not there is only made where something will be kept, else an empty one stands in."""
    folder = Path(args.workspace) if args.workspace else default_folder()
    if make or folder.exists():
        yield Workspace(folder)
        return
    with tempfile.TemporaryDirectory(prefix="capbias-") as empty:
        yield Workspace(empty)


def _kept_before(workspace: Workspace, args) -> Source:
    collection = _known_collection(workspace, args.collection)
    tables = [
        item
        for item in workspace.items("attributes", collection)
        if args.attribute in item.details.get("attributes", {})
    ]
    if not tables:
        mapped = [name for item in workspace.items("attributes", collection) for name in item.details["attributes"]]
        raise unknown_name("attribute", args.attribute, mapped)
    captions = args.captions or [item.name for item in workspace.items("captions", collection)]
    references = [args.references] if args.references else [i.name for i in workspace.items("references", collection)]
    return Source(
        workspace, collection, tuple(dict.fromkeys(captions)), tables[-1].name, args.attribute, tuple(references)
    )


def _known_collection(workspace: Workspace, name: str) -> str:
    if name not in workspace.collections():
        raise unknown_name("collection", name, workspace.collections())
    return name


def _keep_files(workspace: Workspace, args) -> Source:
    """Read and keep the files: labels first, so that the reports on captions can speak about them."""
    names = _stems(args.captions)
    paths = [Path(path) for path in args.captions]
    references = Path(args.references) if args.references else None
    columns = _columns(args, [Path(args.attributes), *paths, *([references] if references else [])])
    attribute = _keep_labels(workspace, Path(args.attributes), columns, args)
    if references:
        _keep_text(workspace, references, "references", "references", columns)
    for name, path in zip(names, paths, strict=True):
        _keep_text(workspace, path, "captions", name, columns)
    return Source(workspace, FILES, tuple(names), "attributes", attribute, ("references",) if references else ())


def _stems(files: Sequence[str] | None) -> list[str]:
    if not files:
        raise CapbiasError("no --captions", "one or more files of captions", "Name them after --captions.")
    names = [checked_name(Path(file).stem) for file in files]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise CapbiasError(
            f"several --captions files called {', '.join(twice)}",
            "a different name for each, since a captioner is called as its file is (without the ending)",
            "Rename a file.",
        )
    return names


def _columns(args, paths: list[Path]) -> dict[Path, dict[str, str]]:
    """For each file the columns named on the command line that it has; the others are guessed."""
    given = {role: getattr(args, f"{role}_column") for role in ("image_id", "caption")}
    given = {role: name for role, name in given.items() if name}
    found = {path: detect(path).columns if given else () for path in paths}
    for role, name in given.items():
        if not any(name in columns for columns in found.values()):
            option = f"--{role.replace('_', '-')}-column {name}"
            have = ", ".join(dict.fromkeys(column for columns in found.values() for column in columns))
            raise CapbiasError(f"{option}, which no file has", f"one of: {have}", "Check the spelling.")
    return {path: {role: name for role, name in given.items() if name in found[path]} for path in paths}


def _keep_labels(workspace: Workspace, path: Path, columns, args) -> str:
    offered = ingest.offer(workspace, path, "attributes", FILES, columns[path])
    _warn(offered.report)
    attribute, details = _mapped(offered.frame, args.attribute, args.attribute_column, args.values)
    ingest.keep_attributes(workspace, offered.frame, "attributes", FILES, path.name, {attribute.name: details})
    _say(_dropped_line(ingest.dropped_labels(offered.frame, details)))
    return attribute.name


def _keep_text(workspace: Workspace, path: Path, kind: str, name: str, columns) -> None:
    offered = ingest.offer(workspace, path, kind, FILES, columns[path])
    _warn(offered.report)
    if offered.report.images_with_labels == 0:
        raise CapbiasError(
            f"{path.name}, none of whose images is in the table of attributes",
            f"ids of the same data set in both (here {', '.join(offered.report.unknown_examples)})",
            "Check that the files belong together, and --image-id-column.",
        )
    ingest.keep_captions(workspace, offered, name, FILES, path.name)


def _warn(report) -> None:
    for warning in report.warnings:
        _say(f"warning: {report.file}: {warning}")


def _dropped_line(dropped: dict[str, int]) -> str:
    """`dropped: Both 813, Unsure 3,410, empty 759`"""
    parts = [f"{label} {count:,}" for label, count in sorted(dropped.items()) if label]
    parts += [f"empty {dropped['']:,}"] if "" in dropped else []
    more = f" and {len(parts) - SHOWN_DROPPED:,} more labels" if len(parts) > SHOWN_DROPPED else ""
    return f"dropped: {', '.join(parts[:SHOWN_DROPPED]) or 'no label'}{more}"


def _mapped(frame: pd.DataFrame, name: str, column: str, values=None, overrides=None) -> tuple[Attribute, dict]:
    """The attribute meant by a name, and its mapping as it is kept with the table.

    column: its column, or '' to find it. values: the labels to compare, where the name is a column's.
    overrides: attribute -> {raw label: value or None}, in place of what is suggested.
    """
    columns = [item for item in frame.columns if item != "image_id"]
    if column and column not in columns:
        raise unknown_name("column", column, columns)
    known = name in known_attributes() or name.endswith(".toml")
    if known and values:
        raise CapbiasError(f"--values with {name}", "--values with a column of labels", "Leave --values out.")
    if known and column:
        attribute = get_attribute(name)
    elif known:
        attribute, column = find_attribute(name, columns, {})
    else:
        column = column or find_attribute(name, columns, {name: {}})[1]
        attribute = plain_attribute(name, _label_values(frame, column, values))
    own = (overrides or {}).get(attribute.name, {})
    _check_overrides(own, attribute, frame[column])
    return attribute, mapping_details(attribute, column, suggest_mapping(attribute, frame[column].unique()) | own)


def _label_values(frame: pd.DataFrame, column: str, chosen: Sequence[str] | None) -> tuple[str, ...]:
    """The labels to compare: those chosen, in their order, or all of a column."""
    values = tuple(dict.fromkeys(chosen or sorted(value for value in frame[column].unique() if value)))
    if not 2 <= len(values) <= MOST_LABELS:
        raise CapbiasError(
            f"{counted(len(values), 'label')} of the column {column} to compare",
            f"2 to {MOST_LABELS}",
            "Choose them with --values.",
        )
    return values


# runs


def _specs(source: Source, args, metrics: Sequence[str], references: str = "", words: bool = False) -> list[RunSpec]:
    return plan(
        source.workspace,
        Request(
            collection=source.collection, captions=source.captions, table=source.table, attribute=source.attribute,
            metrics=tuple(metrics), references=references, attacker=args.attacker, seeds=args.seeds,
            merge_masks=args.merge_masks, words=words,
        ),
    )  # fmt: skip


def _run(workspace: Workspace, specs: list[RunSpec], collection: str) -> list[RunRow]:
    """Run what is not finished yet, and wait for all."""
    with _engine(workspace) as engine:
        return _awaited(engine, specs, engine.submit(specs, collection))


def _awaited(engine: Engine, specs: list[RunSpec], started: list[str]) -> list[RunRow]:
    todo = [spec for spec in specs if spec.run_id in started]
    if todo:
        _say(f"{counted(len(todo), 'run')} to do, about {_duration(sum(map(expected_seconds, todo)))} on two cores")
    progress = _Progress()
    try:
        return engine.wait([spec.run_id for spec in specs], progress)
    finally:
        progress.clear()


@contextmanager
def _engine(workspace: Workspace) -> Iterator[Engine]:
    """An engine that is done with the workspace when it is left, so that the folder may go.

    On Ctrl-C the runs that this process started are cancelled first.
    """
    engine = Engine(workspace.folder)
    try:
        yield engine
    except KeyboardInterrupt:
        for run_id in list(engine._owned):
            engine.cancel(run_id)
        raise
    finally:
        threads = [holder for holder in engine._owned.values() if isinstance(holder, Thread)]
        for thread in filter(None, [*threads, engine._watcher]):
            thread.join()
        _close_workers()


def _close_workers() -> None:
    if dask_client.cache_info().currsize:
        client = dask_client()
        if client.cluster is not None:
            client.cluster.close()
        client.close()
        dask_client.cache_clear()


class _Progress:
    """One line that is rewritten on a terminal; elsewhere a line now and then, for runs that take long."""

    def __init__(self):
        self.live = sys.stderr.isatty()
        self.last = time.monotonic()

    def __call__(self, rows: list[RunRow]) -> None:
        now = time.monotonic()
        if self.live:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\x1b[K{_state(rows)[:width]}", end="", file=sys.stderr, flush=True)
        elif now - self.last > BETWEEN_LINES:
            self.last = now
            _say(_state(rows))

    def clear(self) -> None:
        if self.live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _state(rows: list[RunRow]) -> str:
    over = [row for row in rows if row.status not in ACTIVE]
    share = (len(over) + sum(row.progress for row in rows if row.status in ACTIVE)) / len(rows)
    running = next((row for row in rows if row.status == "running"), None)
    doing = f": {running.spec['model']}, {running.message}" if running else ""
    return f"{len(over)} of {counted(len(rows), 'run')} done, {share:.0%}{doing}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _outcome(rows: list[RunRow]) -> int:
    """Say each note once, and what did not finish; returns the exit code."""
    finished = [row for row in rows if row.status == "finished"]
    models = list(dict.fromkeys(row.spec["model"] for row in finished))
    for note in dict.fromkeys(note for row in finished for note in row.notes):
        own = dict.fromkeys(row.spec["model"] for row in finished if note in row.notes)
        _say(f"note{'' if len(own) == len(models) else ' (' + ', '.join(own) + ')'}: {note}")
    for row in rows:
        if row.status != "finished":
            _say(
                f"error: {row.spec['model']} ({row.spec['attacker'] or row.spec['family']}) {row.status}: {row.message}"
            )
    return DONE if len(finished) == len(rows) else RUN_FAILED


# score


def score(args) -> int:
    """Score captions of files, or of a collection; CSV to --output or stdout."""
    wanted = expand_metrics(args.metric or DEFAULT_METRICS)
    attacker_entry(args.attacker)
    output = _checked_output(args.output)
    with _source(args) as source:
        references = _chosen_references(source) if any(map(_needs_references, wanted)) else ""
        specs = _specs(source, args, wanted, references)
        specs = _worth_running(specs, wanted, source, references)
        rows = _run(source.workspace, specs, source.collection)
        frame = source.workspace.results(run_ids=[spec.run_id for spec in specs])
        code = _outcome(rows)
        if len(frame):
            _write(to_csv(_ordered(frame, source.captions, wanted)), output)
    return code


def _chosen_references(source: Source) -> str:
    if len(source.references) > 1:
        raise CapbiasError(
            f"{len(source.references)} sets of references in {source.collection} ({', '.join(source.references)})",
            "one of them",
            "Name it with --references.",
        )
    return "".join(source.references)


def _needs_references(name: str) -> bool:
    return METRICS[name].family == "difference" or name.endswith("_D")


def _answers(spec: RunSpec) -> set[str]:
    """The metrics that a run will give."""
    if spec.family == "counting":
        return {name for name in ("ratio", "error") if not _unnamed(name, attribute_from(spec.attribute))}
    of_attack = {name for name, row in METRICS.items() if row.family in ("attack", "difference")}
    return of_attack if spec.references else {name for name in of_attack if not _needs_references(name)}


def _unnamed(name: str, attribute: Attribute) -> str:
    """Why a counting metric is not defined for an attribute, or ''."""
    if not attribute.words:
        return f"{attribute.name} has no words that captions could name"
    if name == "ratio" and len(attribute.values) != 2:
        return f"{attribute.name} has {len(attribute.values)} values, and a ratio is of two"
    return ""


def _worth_running(specs: list[RunSpec], wanted: Sequence[str], source: Source, references: str) -> list[RunSpec]:
    """The runs that give a wanted metric. Says what cannot be had and why; raises where that is everything."""
    attribute = attribute_from(specs[0].attribute)
    reasons: dict[str, dict[str, None]] = {}
    for model in source.captions:
        had = set().union(*(_answers(spec) for spec in specs if spec.model == model))
        for name in wanted:
            if name not in had:
                reasons.setdefault(_why_not(name, model, attribute, references), {})[name] = None
    lines = [f"{', '.join(names)} left out: {reason}" for reason, names in reasons.items()]
    kept = [spec for spec in specs if _answers(spec) & set(wanted)]
    if not kept:
        raise CapbiasError("; ".join(lines), "a metric that can be had from these inputs", "Ask for another metric.")
    for line in lines:
        _say(f"warning: {line}")
    return kept


def _why_not(name: str, model: str, attribute: Attribute, references: str) -> str:
    if not _needs_references(name):
        return _unnamed(name, attribute)
    return f"no labelled image of {model} has references" if references else "human captions are needed (--references)"


def _ordered(frame: pd.DataFrame, models: Sequence[str], wanted: Sequence[str]) -> pd.DataFrame:
    """Rows of the wanted metrics, captioners and metrics in the order in which they were asked for."""
    frame = frame[frame["metric"].isin(list(wanted))]
    frame = frame.assign(
        model_place=frame["model"].map(list(models).index), metric_place=frame["metric"].map(list(wanted).index)
    )
    return frame.sort_values(["model_place", "metric_place", "condition"], kind="stable")


def _checked_output(name: str | None) -> Path | None:
    """Where to write, before anything is computed. Raises CapbiasError where that cannot be."""
    if not name:
        return None
    path = Path(name)
    if path.is_dir():
        raise CapbiasError(f"--output {name}, which is a folder", "a file", "Add a file name.")
    folder = path.resolve().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        fault = "cannot be written" if folder.is_dir() else "does not exist"
        raise CapbiasError(f"--output {name}, whose folder {fault}", "a folder that can be written", "Make it first.")
    return path


def _write(text: str, path: Path | None) -> None:
    """To stdout, or to a file that is whole or not there; a device or pipe is written as it is."""
    if path is None:
        print(text, end="")
        return
    target = path.resolve()
    special = target.exists() and not target.is_file()
    temporary = target if special else target.with_name(f".capbias-{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        if not special:
            temporary.replace(target)
    except OSError as error:
        raise CapbiasError(
            f"--output {path}, which cannot be written ({error.strerror})", "a writable file", "Choose another."
        ) from None
    finally:
        if not special:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
    if not special:
        _say(f"written: {path}")


# explain


def explain(args) -> int:
    """Words and contributions: of a whole set, of an image, of any caption, or of edits."""
    _check_question(args)
    with _source(args) as source:
        if len(source.captions) != 1:
            raise CapbiasError(f"{len(source.captions)} caption sets", "one", "Name one after --captions.")
        specs = [spec for spec in _specs(source, args, FAMILIES, words=True) if spec.family == "captions"]
        _check_image(args, source.workspace, specs[0])
        rows = _run(source.workspace, specs, source.collection)
        code = _outcome(rows)
        if code == DONE:
            found, text = _explained(args, source.workspace, rows[0])
            print(json.dumps(found, indent=2) if args.format == "json" else _readable(text.rstrip("\n")))
    return code


def _check_question(args) -> None:
    """What is wrong with the question, before an attacker is trained for it."""
    attacker_entry(args.attacker)
    for edit in args.words or ():
        parse_edit(edit)
    if args.attacker != "ngram" and (args.words or args.text is not None):
        raise CapbiasError(
            f"{'--words' if args.words else '--text'} with {args.attacker}",
            "the attacker ngram, whose weights are kept to score other captions",
            "Add --attacker ngram.",
        )


def _check_image(args, workspace: Workspace, spec: RunSpec) -> None:
    if args.image is None:
        return
    labels = labels_for(
        workspace.frame(spec.labels["table"]), attribute_from(spec.attribute), spec.labels["column"],
        spec.labels["mapping"],
    )  # fmt: skip
    image = _image_id(args.image)
    captioned = image in set(workspace.frame(spec.captions)["image_id"])
    if not captioned or image not in labels.values.index:
        lacks = f"no label for {labels.attribute.name} that is compared" if captioned else f"no caption in {spec.model}"
        raise CapbiasError(
            f"image {args.image!r}, which has {lacks}",
            "an image with a caption and a label",
            "Check the id, or score the caption as a text with --text.",
        )


def _image_id(text: str) -> str:
    try:
        return normalise_image_id(text)
    except ValueError:
        return ""


def _explained(args, workspace: Workspace, run: RunRow) -> tuple[dict, str]:
    """The answer with every digit, and as text."""
    scores = caption_scores(workspace, run)
    head = {"captioner": run.spec["model"], "attribute": scores.attribute.name, "attacker": run.spec["attacker"]}
    if args.text is not None:
        found = _scored_text(args, scores, stored_attackers(workspace, run))
        return head | found, caption_text(found)
    written = caption_rows(scores, workspace.frame(run.spec["captions"]))["caption"]
    if args.image is not None:
        captions = _scored_image(_image_id(args.image), scores, written)
        return head | {"captions": captions}, "\n".join(map(caption_text, captions))
    if args.words:
        edits = _edited(args, scores, written, stored_attackers(workspace, run))
        return head | {"edits": edits}, "\n".join(map(edit_text, edits))
    found = _corpus(args, scores, words_table(workspace, run))
    return head | found, corpus_text(found)


def _towards(attribute: Attribute) -> tuple[str, ...]:
    """What each logit pushes toward: the second of two values, or each of more."""
    return attribute.values[1:] if len(attribute.values) == 2 else attribute.values


def _named(values, names: Sequence[str]) -> dict[str, float]:
    return {name: float(value) for name, value in zip(names, values, strict=True)}


def _corpus(args, scores: CaptionScores, table: pd.DataFrame) -> dict:
    """The words that push most each way; means of two values are signed toward the second."""
    values = scores.attribute.values
    words = [
        {
            "word": row["word"],
            "pushes_toward": toward,
            "mean": row[column],
            "count": row["count"],
            "share": {value: row[f"share{place}"] for place, value in enumerate(values)},
        }
        for toward, column, part in _sides(table, scores.attribute, args.smallest_count, args.top)
        for row in part.to_dict("records")
    ]
    return {
        "captions": len(scores.table),
        "smallest_count": args.smallest_count,
        "largest_convergence_delta": float(scores.table["delta"].max()),
        "words": words,
    }


def _sides(table: pd.DataFrame, attribute: Attribute, smallest: int, number: int):
    """For each value its name, the column of means, and the words that push most toward it, strongest first."""
    if len(attribute.values) == 2:
        top = top_words(table, smallest, number)
        first, second = top[top["mean0"] < 0], top[top["mean0"] > 0]
        yield attribute.values[0], "mean0", first.sort_values("mean0")
        yield attribute.values[1], "mean0", second.sort_values("mean0", ascending=False)
        return
    common = table[(table["count"] >= smallest) & ~table["word"].str.startswith("<")]
    for place, value in enumerate(attribute.values):
        column = f"mean{place}"
        yield value, column, common[common[column] > 0].nlargest(number, column)


def _scored_image(image: str, scores: CaptionScores, written: pd.Series) -> list[dict]:
    names, values = _towards(scores.attribute), scores.attribute.values
    own = scores.table[scores.table["image_id"] == image].sort_values("caption_index")
    return [
        {
            "image_id": image,
            "caption_index": int(row["caption_index"]),
            "caption": written[place],
            "label": values[int(row["label"])],
            "fold": int(row["fold"]),
            **_parts(
                row["masked"].split(), scores.words_of(place),
                *([row[f"{part}{column}"] for column in range(len(names))] for part in ("baseline", "logit")),
                [row[f"p{column}"] for column in range(len(values))], scores.attribute,
            ),
            "convergence_delta": float(row["delta"]),
        }
        for place, row in own.iterrows()
    ]  # fmt: skip


def _parts(tokens: list[str], words: np.ndarray, baseline, logit, shares, attribute: Attribute) -> dict:
    names = _towards(attribute)
    return {
        "tokens": [
            {"token": token, "adds": _named(row, names)} for token, row in zip(tokens, words, strict=True)
        ],
        "intercept": _named(baseline, names),
        "logit": _named(logit, names),
        "probability": _named(shares, attribute.values),
    }  # fmt: skip


def _scored_text(args, scores: CaptionScores, attackers: StoredAttackers) -> dict:
    found: Rescored = attackers.score(args.text, scores.attribute, None, args.merge_masks)
    parts = (found.tokens, found.words, found.baseline, found.logit, found.probabilities)
    return {"caption": args.text, "attackers": len(attackers.weights), **_parts(*parts, scores.attribute)}


def _edited(args, scores: CaptionScores, written: pd.Series, attackers: StoredAttackers) -> list[dict]:
    pairs = [(word, new) for word, replacements in map(parse_edit, args.words) for new in replacements]
    return [_edit(args, scores, written, attackers, word, new) for word, new in pairs]


def _edit(args, scores: CaptionScores, written: pd.Series, attackers: StoredAttackers, word: str, new: str) -> dict:
    """Every caption with the word (of the first caption of each image), before and after, out of fold."""
    attribute = scores.attribute
    table = scores.table[scores.table["caption_index"] == 0].sort_values("image_id")
    edits = ((place, apply_edit(written[place], word, new)) for place in table.index)
    after = {
        place: (text, attackers.score(text, attribute, int(table.at[place, "fold"]), args.merge_masks))
        for place, text in edits
        if text is not None
    }
    before = table.loc[list(after)]
    changed = sum(" ".join(found.tokens) != before.at[place, "masked"] for place, (_, found) in after.items())
    return {
        "word": word,
        "replacement": new,
        "captions_with_the_word": len(after),
        "captions_that_read_differently": changed,
        "note": _edit_note(attribute, word, new, len(after), changed, attackers),
        **_edit_means(before, [found for _, found in after.values()], attribute),
        "examples": [
            _example(before.loc[place], written[place], text, found, attribute)
            for place, (text, found) in list(after.items())[:EXAMPLES]
        ],
    }


def _edit_means(before: pd.DataFrame, after: list[Rescored], attribute: Attribute) -> dict:
    """Means over the captions with the word: probabilities before and after, change of each logit."""
    if not after:
        return {"probability_before": {}, "probability_after": {}, "change_of_logit": {}}
    names, places = _towards(attribute), range(len(attribute.values))
    logits = before[[f"logit{place}" for place in range(len(names))]].to_numpy()
    return {
        "probability_before": _named(before[[f"p{place}" for place in places]].mean(), attribute.values),
        "probability_after": _named(np.mean([found.probabilities for found in after], axis=0), attribute.values),
        "change_of_logit": _named((np.stack([found.logit for found in after]) - logits).mean(axis=0), names),
    }


def _edit_note(attribute: Attribute, word: str, new: str, count: int, changed: int, attackers: StoredAttackers) -> str:
    words = attribute.masked_words
    if not count:
        return f"No caption has the word {word}."
    if not changed and word in words and words.issuperset(tokenize(new)):
        return (
            f"Nothing changes: {word} and {new} are words for {attribute.name}, and the attacker reads "
            f"{attribute.mask_token} for either."
        )
    if not changed:
        return "Nothing changes: the attacker reads the same captions."
    unseen = [token for token in tokenize(new) if token not in attackers.columns and token not in words]
    return f"No attacker has seen {', '.join(unseen)}: only the loss of {word} counts." if unseen else ""


def _example(row: pd.Series, caption: str, text: str, found: Rescored, attribute: Attribute) -> dict:
    return {
        "image_id": row["image_id"],
        "label": attribute.values[int(row["label"])],
        "before": caption,
        "after": text,
        "probability_before": _named([row[f"p{place}"] for place in range(len(attribute.values))], attribute.values),
        "probability_after": _named(found.probabilities, attribute.values),
    }


# import, list, export, demo


def import_file(args) -> int:
    """Report on a file, then keep it (unless --dry-run)."""
    path = Path(args.file)
    _check_kind(args)
    overrides = _overrides(args.map or ())
    name, collection = checked_name(args.name or path.stem), checked_name(args.collection)
    with _opened(args, make=not args.dry_run) as workspace:
        columns = {"image_id": args.image_id_column, "caption": args.caption_column}
        offered = ingest.offer(workspace, path, args.kind, collection, columns)
        print(_readable(to_text(pd.DataFrame(offered.report.lines(), columns=["", ""])).strip("\n")))
        _warn(offered.report)
        attributes = _mapped_attributes(offered.frame, args.attribute, overrides) if args.kind == "attributes" else {}
        for attribute, details in attributes.items():
            print(_readable(f"{attribute} (column {details['column']}): {_mapping_line(details)}"))
            print(_readable(_dropped_line(ingest.dropped_labels(offered.frame, details))))
        if args.dry_run:
            print("nothing was kept (--dry-run)")
            return DONE
        _keep(workspace, offered, name, collection, path.name, attributes, args.trained_on_references)
        print(f"kept: {args.kind} {name} in the collection {collection}")
    return DONE


def _check_kind(args) -> None:
    of_kind = {"captions": ("trained_on_references",), "attributes": ("attribute", "map"), "references": ()}
    for kind, options in of_kind.items():
        for option in options:
            if getattr(args, option) and kind != args.kind:
                name = option.replace("_", "-")
                raise CapbiasError(f"--{name} with {args.kind}", f"--{name} with {kind}", "Leave it out.")


def _keep(workspace: Workspace, offered, name: str, collection: str, source: str, attributes: dict, trained) -> None:
    if offered.kind == "attributes":
        ingest.keep_attributes(workspace, offered.frame, name, collection, source, attributes)
    else:
        ingest.keep_captions(workspace, offered, name, collection, source, {"yes": True, "no": False}.get(trained))


def _mapped_attributes(frame: pd.DataFrame, asked: list[str] | None, overrides: dict) -> dict[str, dict]:
    """The attributes asked for (NAME or NAME=COLUMN) with their mappings; else the shipped ones with a column."""
    asked = [item.partition("=") for item in asked or _columns_present(frame)]
    found = [_mapped(frame, name, column, overrides=overrides) for name, _, column in asked]
    details = {attribute.name: mapping for attribute, mapping in found}
    for name in set(overrides) - set(details):
        raise unknown_name("attribute in --map", name, details)
    return details


def _columns_present(frame: pd.DataFrame) -> list[str]:
    """Shipped attributes for which the table has a column."""
    lower = {column.lower() for column in frame.columns}
    names = [name for name, attribute in known_attributes().items() if lower & {*attribute.columns, name}]
    if not names:
        raise CapbiasError(
            f"the columns {', '.join(frame.columns)}",
            f"one for a shipped attribute ({', '.join(known_attributes())})",
            "Name an attribute with --attribute NAME or --attribute NAME=COLUMN.",
        )
    return names


def _overrides(pairs: Sequence[str]) -> dict[str, dict[str, str | None]]:
    """`gender:f=Female` to {'gender': {'f': 'Female'}}; `gender:f=` drops the label."""
    found: dict[str, dict[str, str | None]] = {}
    for pair in pairs:
        attribute, colon, rest = pair.partition(":")
        raw, equals, value = rest.rpartition("=")
        if not (attribute and colon and equals):
            raise CapbiasError(f"--map {pair}", "the form ATTRIBUTE:LABEL=VALUE", "For example: --map gender:f=Female")
        found.setdefault(attribute, {})[raw] = value or None
    return found


def _check_overrides(own: dict[str, str | None], attribute: Attribute, labels: pd.Series) -> None:
    for raw, value in own.items():
        if value is not None and value not in attribute.values:
            raise unknown_name(f"value of {attribute.name}", value, attribute.values)
        if raw not in set(labels):
            raise CapbiasError(
                f"--map with the label {raw!r}", f"a label of the column {labels.name}", "Check the spelling."
            )


def _mapping_line(details: dict) -> str:
    """`Female from F, female; Male from M`"""
    by_value: dict[str, list[str]] = {}
    for raw, value in sorted(details["mapping"].items()):
        if value is not None:
            by_value.setdefault(value, []).append(raw or "empty")
    return "; ".join(f"{value} from {', '.join(raw)}" for value, raw in by_value.items())


def list_kept(args) -> int:
    """What is kept, and the runs with their status."""
    with _opened(args) as workspace:
        items = [_item_row(item) for item in workspace.items()]
        runs = [_run_row(run) for run in workspace.runs()]
    if args.json:
        print(json.dumps({"items": items, "runs": runs}, indent=2))
        return DONE
    if not items:
        print("Nothing is kept in this workspace.")
    else:
        print(to_text(pd.DataFrame([row | {"attributes": ", ".join(row["attributes"])} for row in items])), end="")
    if runs:
        shown = ("run_id", "collection", "captioner", "family", "attribute", "attacker", "seeds", "condition", "status")
        print("\n" + to_text(pd.DataFrame(runs)[[*shown, "message"]]), end="")
    return DONE


def _item_row(item) -> dict:
    row = {key: getattr(item, key) for key in ("collection", "kind", "name", "rows", "images", "hash")}
    return row | {"attributes": list(item.details.get("attributes", {}))}


def _run_row(run: RunRow) -> dict:
    spec = run.spec
    return {
        "run_id": run.run_id, "collection": run.collection, "captioner": spec["model"], "family": spec["family"],
        "attribute": spec["attribute"]["name"], "attacker": spec["attacker"],
        "seeds": len(spec["seeds"]) if spec["family"] == "attack" else 0,
        "condition": spec["condition"], "status": run.status, "progress": run.progress,
        "message": "" if run.status == "finished" else run.message, "notes": list(run.notes),
    }  # fmt: skip


def export(args) -> int:
    """Results of a collection's finished runs as CSV, LaTeX or JSON."""
    output = _checked_output(args.output)
    with _opened(args) as workspace:
        collection = _known_collection(workspace, args.collection)
        frame = workspace.results(run_ids=[run.run_id for run in current_runs(workspace, collection)])
    frame = _ordered(frame, list(frame["model"].unique()), expand_metrics(args.metric) if args.metric else [*METRICS])
    if frame.empty:
        raise CapbiasError(
            f"no result in the collection {collection}",
            "results of finished runs",
            "Score it first, or ask for others.",
        )
    _write(FORMATS[args.format](frame), output)
    return DONE


def run_demo(args) -> int:
    """Load the bundled demo, run it, and print LIC beside the truth."""
    with _opened(args, make=True) as workspace:
        if args.if_empty and workspace.items():
            _say("the workspace already holds something; the demo was not loaded")
            return DONE
        with _engine(workspace) as engine:
            started = ingest.run_demo(engine)
            specs = plan(workspace, ingest.demo_request())
            rows = _awaited(engine, specs, started)
        code = _outcome(rows)
        frame = workspace.results(run_ids=[row.run_id for row in rows])
    table = scores_table(frame, metrics=["LIC"])
    truth = json.loads((ingest.DEMO_FOLDER / "truth.json").read_text(encoding="utf-8"))["truth"]
    table["true LIC"] = [f"{truth[name]['LIC']:.2f}" for name in table["captioner"]]
    print(to_text(table), end="")
    return code


# the parser

CODES = "Exit codes: 0 done; 1 a run failed, was cancelled or died; 2 bad input; 130 stopped with Ctrl-C."


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m capbias_core", description="Societal bias in image captions, from a terminal.", epilog=CODES
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in (_add_import, _add_list, _add_score, _add_explain, _add_export, _add_demo):
        add(commands)
    return parser


def _command(commands, name: str, run, text: str, example: str) -> argparse.ArgumentParser:
    command = commands.add_parser(
        name, help=text, description=f"{text[0].upper()}{text[1:]}.", epilog=f"Example:\n{example}\n\n{CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    command.set_defaults(run=run)
    return command


def _add_workspace(command) -> None:
    command.add_argument("--workspace", metavar="FOLDER", help="the workspace (default: CAPBIAS_HOME, or ./workspace)")


def _add_inputs(command, captions_help: str) -> None:
    command.add_argument("--captions", nargs="+", action="extend", metavar="FILE", help=captions_help)
    command.add_argument("--attributes", metavar="FILE", help="table of labels, one row an image")
    command.add_argument(
        "--attribute", required=True,
        help=f"a shipped attribute ({', '.join(known_attributes())}), a TOML file, or a column of labels",
    )  # fmt: skip
    command.add_argument("--attribute-column", metavar="COLUMN", default="", help="the column of labels, if not found")
    command.add_argument(
        "--values", nargs="+", action="extend", help="the labels of a column to compare (default: all)"
    )
    command.add_argument("--image-id-column", metavar="COLUMN", help="the column of image ids, if not found")
    command.add_argument("--caption-column", metavar="COLUMN", help="the column of captions, if not found")
    command.add_argument("--attacker", default="ngram", help=f"one of: {', '.join(ATTACKERS)} (default: ngram)")
    command.add_argument("--merge-masks", action="store_true", help="one mask for a run of masked words")
    command.add_argument("--collection", metavar="NAME", help="use a workspace's collection, and names for files")
    _add_workspace(command)


SCORE_EXAMPLE = """\
  python -m capbias_core score --captions nic.json sat.json --attributes attributes.csv --attribute gender \\
    --references captions.json --metric lic ratio error --attacker ngram --seeds 10 --output scores.csv
  python -m capbias_core score --collection "my captions" --captions sat --attribute gender --metric lic

Files are read into a workspace of their own, which is removed afterwards. A captioner is called as its file is,
without the ending. One row a number; LIC, its parts and error are x100, ratio is plain. Where a run fails, the
numbers of the others are written and the exit code is 1."""


def _add_score(commands) -> None:
    text = "score captions: LIC, leakage, ratio, error, with intervals, as CSV"
    command = _command(commands, "score", score, text, SCORE_EXAMPLE)
    _add_inputs(command, "files of captions; with --collection, names of caption sets (default: all)")
    command.add_argument("--references", metavar="FILE", help="human captions; with --collection, their name")
    command.add_argument(
        "--metric", nargs="+", action="extend",
        help=f"one or more of: {', '.join([*FAMILIES, *METRICS])} (default: lic ratio error)",
    )  # fmt: skip
    command.add_argument("--seeds", type=_positive, default=10, help="attackers with different splits (default: 10)")
    command.add_argument("--output", metavar="FILE", help="where to write the CSV (default: stdout)")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected a whole number of 1 or more")
    return int(text)


EXPLAIN_EXAMPLE = """\
  python -m capbias_core explain --captions sat.json --attributes attributes.csv --attribute gender --top 20
  python -m capbias_core explain --captions sat.json --attributes attributes.csv --attribute gender \\
    --words "man -> person" "umbrella -> bat | ball"

Every caption is scored by an attacker that did not train on its image; what the words add sums, with the intercept,
to the logit."""


def _add_explain(commands) -> None:
    command = _command(
        commands, "explain", explain, "show which words carry the bias, and what edits do", EXPLAIN_EXAMPLE
    )
    _add_inputs(command, "a file of captions; with --collection, the name of a caption set")
    command.set_defaults(references=None, seeds=1)
    question = command.add_mutually_exclusive_group()
    question.add_argument("--image", metavar="ID", help="the words of one image's caption")
    question.add_argument("--text", metavar="CAPTION", help="the words of any caption")
    question.add_argument(
        "--words", nargs="+", action="extend", metavar="EDIT", help='edits of the whole set, such as "man -> person"'
    )
    command.add_argument("--top", type=_positive, default=20, help="words each way (default: 20)")
    command.add_argument(
        "--smallest-count", type=_positive, default=20, help="captions with the word, at least (default: 20)"
    )
    command.add_argument("--format", choices=("table", "json"), default="table", help="json has every digit")


IMPORT_EXAMPLE = """\
  python -m capbias_core import attributes.csv --kind attributes --attribute gender=sex --map gender:f=Female
  python -m capbias_core import sat.json --kind captions --trained-on-references yes"""


def _add_import(commands) -> None:
    text = "read a file, report on it, and keep it in the workspace"
    command = _command(commands, "import", import_file, text, IMPORT_EXAMPLE)
    command.add_argument("file", metavar="FILE", help="captions or a table of labels")
    command.add_argument("--kind", required=True, choices=("captions", "references", "attributes"))
    command.add_argument("--name", help="its name (default: the file's, without the ending)")
    command.add_argument("--collection", default=ingest.DEFAULT_COLLECTION, help="(default: %(default)s)")
    command.add_argument("--image-id-column", metavar="COLUMN", help="the column of image ids, if not found")
    command.add_argument("--caption-column", metavar="COLUMN", help="the column of captions, if not found")
    command.add_argument(
        "--attribute", nargs="+", action="extend", metavar="NAME[=COLUMN]",
        help="attributes of a table (default: the shipped ones that have a column)",
    )  # fmt: skip
    command.add_argument(
        "--map",
        nargs="+",
        action="extend",
        metavar="ATTRIBUTE:LABEL=VALUE",
        help="what a label means; an empty value drops it",
    )
    command.add_argument(
        "--trained-on-references", choices=("yes", "no"), help="whether the captioner was trained on the references"
    )
    command.add_argument("--dry-run", action="store_true", help="only report")
    _add_workspace(command)


def _add_list(commands) -> None:
    text = "list what is kept, and the runs with their status"
    command = _command(commands, "list", list_kept, text, "  python -m capbias_core list --json")
    command.add_argument("--json", action="store_true", help="as JSON")
    _add_workspace(command)


def _add_export(commands) -> None:
    example = '  python -m capbias_core export --collection "my captions" --format latex --metric lic --output lic.tex'
    command = _command(commands, "export", export, "write the results of a collection as CSV, LaTeX or JSON", example)
    command.add_argument("--collection", required=True, metavar="NAME")
    command.add_argument("--format", choices=tuple(FORMATS), default="csv", help="(default: csv)")
    command.add_argument("--metric", nargs="+", action="extend", help="only these (default: all)")
    command.add_argument("--output", metavar="FILE", help="where to write (default: stdout)")
    _add_workspace(command)


def _add_demo(commands) -> None:
    text = "load the bundled demo, run it, and print LIC beside the known truth"
    command = _command(commands, "demo", run_demo, text, "  python -m capbias_core demo --if-empty")
    command.add_argument("--if-empty", action="store_true", help="do nothing where the workspace holds something")
    _add_workspace(command)
