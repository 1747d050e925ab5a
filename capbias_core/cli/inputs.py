"""Where captions, labels and references come from: files, or a collection that a workspace holds."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from capbias_core.attributes import known_attributes
from capbias_core.cli.alignment import alignment_options, check_alignment
from capbias_core.cli.attribution import keep_people, people_name
from capbias_core.cli.labels import compared_lines, derivable, dropped_line, holds, mapped
from capbias_core.cli.run_detector import keep_found
from capbias_core.cli.terminal import say, warn
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load import detect
from capbias_core.measures import FAMILIES
from capbias_core.runs.plan import Request, compares
from capbias_core.types import Attribute
from capbias_core.workspace import ingest
from capbias_core.workspace.custom_attributes import attribute_folder
from capbias_core.workspace.person_regions import PEOPLE
from capbias_core.workspace.photographs import PHOTOGRAPHS
from capbias_core.workspace.store import Workspace, checked_name, default_folder, suggested_name

FILES = "files"


@contextmanager
def inputs(args, metrics: Sequence[str]) -> Iterator[tuple[Workspace, Request]]:
    """A workspace and what is asked of it by name: of a collection, or of files in one that is removed afterwards."""
    _check_form(args)
    check_alignment(args)
    if args.collection:
        with opened(args) as workspace:
            collection = known_collection(workspace, args.collection)
            yield workspace, _request(workspace, collection, args.attribute, args.captions, metrics, args)
        return
    with tempfile.TemporaryDirectory(prefix="capbias-") as folder:
        workspace, names = Workspace(folder), _stems(args.captions)
        yield workspace, _request(workspace, FILES, _keep_files(workspace, names, args), names, metrics, args)


def _check_form(args) -> None:
    derived = derivable(args.attribute, own_folder(args)) and not args.attributes and not args.collection
    if bool(args.attributes) == bool(args.collection) and not derived:
        raise CapbiasError(
            "both --attributes and --collection" if args.attributes else "neither --attributes nor --collection",
            "--attributes with files, or --collection with names in a workspace",
            f"See python -m capbias_core {args.command} --help.",
        )
    if derived and args.attribute_column:
        got = f"--attribute-column {args.attribute_column} without --attributes"
        raise CapbiasError(got, "a table of labels that has the column", "Name it with --attributes, or leave it out.")
    if getattr(args, "weights", None) and (args.collection or args.objects or not args.photographs):
        raise CapbiasError(
            "--weights without photographs in files, or with --objects",
            "--weights with --photographs FOLDER; or --objects, as `detect` wrote or kept them",
            "Leave one out, or run detect --collection first.",
        )
    of_files = ("image_id_column", "caption_column", "attribute_column", "values")
    own = known_attributes(own_folder(args)).keys() - known_attributes().keys()
    of_workspace = () if args.attribute in own else ("workspace",)
    stray = [name for name in (of_files if args.collection else of_workspace) if getattr(args, name)]
    if stray:
        options = ", ".join("--" + name.replace("_", "-") for name in stray)
        raise CapbiasError(
            f"{options} {'with a collection' if args.collection else 'with files'}",
            "options of files (columns, values) with --attributes, --workspace with --collection or with an attribute "
            "of your own in it",
            "Leave it out.",
        )


def own_folder(args) -> Path | None:
    """Where attributes of the user's own are. Files alone are read without a workspace, unless one is named."""
    of_files = hasattr(args, "attributes") and not args.collection
    if args.workspace or not of_files:
        return attribute_folder(Path(args.workspace) if args.workspace else default_folder())
    return None


@contextmanager
def opened(args, make: bool = False) -> Iterator[Workspace]:
    """The workspace; one that is not there is only made where something will be kept, else an empty one stands in."""
    folder = Path(args.workspace) if args.workspace else default_folder()
    if make or folder.exists():
        yield Workspace(folder)
        return
    with tempfile.TemporaryDirectory(prefix="capbias-") as empty:
        yield Workspace(empty)


def known_collection(workspace: Workspace, name: str) -> str:
    """The name, where there is such a collection. Raises CapbiasError naming those that there are."""
    if name not in workspace.collections():
        raise unknown_name("collection", name, workspace.collections())
    return name


def _request(
    workspace: Workspace, collection: str, attribute: str, captions: list[str] | None, metrics: Sequence[str], args
) -> Request:
    """All captions where none is named, the newest table with the attribute, references where a metric needs them."""
    items = workspace.items(collection=collection)
    tables = {name: item.name for item in items for name in item.details.get("attributes", ())}
    if attribute not in tables and derivable(attribute, own_folder(args)):
        raise CapbiasError(
            f"attribute {attribute!r}, which no table of the collection {collection!r} holds",
            f"one of: {', '.join(tables) or 'none'}; or human captions, from which its labels are derived",
            f"First run: import --kind attributes --attribute {attribute} --from-references NAME.",
        )
    if attribute not in tables:
        raise unknown_name("attribute", attribute, tables)
    captions = captions or [item.name for item in items if item.kind == "captions"]
    human = [item.name for item in items if item.kind == "references"]
    if args.collection and args.references:
        human = [args.references]
    return Request(
        collection,
        tuple(dict.fromkeys(captions)),
        tables[attribute],
        attribute,
        tuple(metrics),
        _only(human, collection) if any(map(compares, metrics)) else "",
        args.attacker,
        args.seeds,
        args.merge_masks,
        objects=_objects_asked(args),
        options=_options(args) | alignment_options(workspace, collection, args),
    )


def _options(args) -> dict:
    """What families can be told beyond the request's own fields, by the names of the command line's arguments."""
    keys = dict.fromkeys([PHOTOGRAPHS, PEOPLE, *(key for family in FAMILIES.values() for key in family.options)])
    found = {key: value for key in keys if (value := getattr(args, key, None)) is not None}
    if PHOTOGRAPHS in found and not args.collection:
        found[PHOTOGRAPHS] = _folder_name(args.photographs)
    if PEOPLE in found and not args.collection:
        found[PEOPLE] = people_name(args.people)
    return found


def _folder_name(folder: str) -> str:
    """How a folder of photographs is called: as it is, so that results say which masked ones a judge saw."""
    return suggested_name(Path(folder).expanduser().resolve().name)


def _only(references: list[str], collection: str) -> str:
    if len(references) > 1:
        got = f"{len(references)} sets of references in {collection} ({', '.join(references)})"
        raise CapbiasError(got, "one of them", "Name it with --references.")
    return "".join(references)


def _keep_files(workspace: Workspace, names: list[str], args) -> str:
    """Read and keep the files, labels first, so that the reports on captions can speak about them.

    Returns the name of the attribute that was meant.
    """
    labels = [Path(args.attributes)] if args.attributes else []
    human = [("references", "references", Path(args.references))] if args.references else []
    texts = [("captions", name, Path(path)) for name, path in zip(names, args.captions, strict=True)]
    columns = _columns(args, [*labels, *(path for _, _, path in human + texts)])
    tables = [ingest.preview_import(workspace, path, "attributes", FILES, columns[path]) for path in labels]
    reports = [table.report for table in tables]
    rule = derivable(args.attribute, own_folder(args))
    try:
        if rule and not args.attribute_column and not any(holds(table.frame, rule) for table in tables):
            reports.append(_keep_derived(workspace, rule, columns, args))
            attribute, human = rule.name, []
        else:
            attribute = _keep_labels(workspace, tables[0], args)
        for kind, name, path in human + texts:
            offered = ingest.preview_import(workspace, path, kind, FILES, columns[path])
            reports.append(offered.report)
            _keep_text(workspace, offered, name, path)
        if getattr(args, "objects", None):
            offered = ingest.preview_import(workspace, Path(args.objects), "objects", FILES)
            reports.append(offered.report)
            _keep_objects(workspace, offered, Path(args.objects))
        if getattr(args, "photographs", None):
            ingest.keep_images(workspace, Path(args.photographs), FILES, _folder_name(args.photographs))
        if getattr(args, "people", None):
            keep_people(workspace, args.people, FILES)
        if getattr(args, "weights", None):
            keep_found(workspace, args.weights, Path(args.photographs), FILES)
    finally:
        warn(reports)
    return attribute


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
    given = {role: name for role in ("image_id", "caption") if (name := getattr(args, f"{role}_column"))}
    found = {path: detect(path).columns if given else () for path in paths}
    for role, name in given.items():
        if not any(name in columns for columns in found.values()):
            option = f"--{role.replace('_', '-')}-column {name}"
            have = ", ".join(dict.fromkeys(column for columns in found.values() for column in columns))
            raise CapbiasError(f"{option}, which no file has", f"one of: {have}", "Check the spelling.")
    return {path: {role: name for role, name in given.items() if name in found[path]} for path in paths}


def _keep_labels(workspace: Workspace, offered: ingest.ImportPreview, args) -> str:
    given = args.attribute, args.attribute_column, args.values
    attribute, details = mapped(offered.frame, *given, folder=own_folder(args))
    ingest.keep_attributes(workspace, offered.frame, "attributes", FILES, offered.report.file, {attribute: details})
    for line in [*compared_lines(offered.frame, details, own_folder(args)), dropped_line(offered.frame, details)]:
        say(line)
    return attribute


def _keep_derived(workspace: Workspace, attribute: Attribute, columns: dict[Path, dict[str, str]], args):
    """Keep the human captions and the labels that their words give; returns the report on the captions."""
    if not args.references:
        where = f"for which {Path(args.attributes).name} has no column" if args.attributes else "without its labels"
        raise CapbiasError(
            f"attribute {attribute.name!r}, {where}, and no human captions",
            f"a column called {' or '.join(attribute.columns or (attribute.name,))} in a table of labels, or human "
            "captions, from which they are derived",
            "Name a table with --attributes, or human captions with --references (score).",
        )
    if args.values:
        raise CapbiasError(f"--values with {attribute.name}", "--values with a column of labels", "Leave --values out.")
    path = Path(args.references)
    offered = ingest.preview_import(workspace, path, "references", FILES, columns[path])
    item = ingest.keep_captions(workspace, offered, "references", FILES, path.name)
    derived = ingest.derive(workspace, item, attribute)
    say(derived.line(path.name))
    ingest.keep_derived(workspace, derived)
    return offered.report


def _keep_text(workspace: Workspace, offered: ingest.ImportPreview, name: str, path: Path) -> None:
    if offered.report.images_with_labels == 0:
        raise CapbiasError(
            f"{path.name}, none of whose images is in the table of attributes",
            f"ids of the same data set in both (here {', '.join(offered.report.unknown_examples)})",
            "Check that the files belong together, and --image-id-column.",
        )
    ingest.keep_captions(workspace, offered, name, FILES, path.name)


def _objects_asked(args) -> str:
    """The name of the objects that were asked for: a file's, or that of kept ones."""
    given = getattr(args, "objects", None) or getattr(args, "weights", None) or ""
    return "objects" if given and not args.collection else given


def _keep_objects(workspace: Workspace, offered: ingest.ImportPreview, path: Path) -> None:
    if not offered.report.coverage_percent:
        raise CapbiasError(
            f"{path.name}, the objects of images of which none has a label",
            f"ids of the same data set in both (here {', '.join(offered.frame['image_id'][:5])})",
            "Check that the files belong together.",
        )
    ingest.keep_objects(workspace, offered, "objects", FILES, path.name)
