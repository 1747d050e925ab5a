"""A plan as a TOML file: which files, and what is measured of them. People write it, a bundle holds one.

    collection = "coco"
    labels = "attributes.csv"
    references = "captions.json"
    captions = ["nic.json", "sat.json"]

    [[measure]]
    attribute = "gender"
    metrics = ["lic", "ratio"]
    attacker = "ngram"
    seeds = 10

Files are named relative to the plan. Without files a plan names what its collection holds. A file that needs more is a
table: `captions.nic = {file = "all.csv", caption_column = ["nic"], rows = {language = "en"}}`.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.kinds import CAPTIONS, LABELS, REFERENCES, SOURCES
from capbias_core.load.places import checked_path
from capbias_core.measures.registry import DEFAULT_GROUPS, GROUPS, MEASURES, expand_metrics, measure_of
from capbias_core.question import COLUMNS, Question, named_columns
from capbias_core.runs.inputs import Tell, warn
from capbias_core.toml import read_toml, start_of, toml_key, toml_value
from capbias_core.typed import typed
from capbias_core.types import Attribute
from capbias_core.workspace.ingest import DEFAULT_COLLECTION, File, Part, held_by, preview, store
from capbias_core.workspace.labels import dropped_line, resolve_attribute
from capbias_core.workspace.objects import object_sources
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Workspace, checked_name

TRAINED = "trained_on_references"
# Key of a file in a plan -> type. All but the first two say how it is read, as the arguments of `capbias.score` do.
OF_FILE = {"file": str, TRAINED: bool, **COLUMNS, "rows": dict, "sets": str}
# Keys of a measure in a plan: fields of Question, `protocol`, whose settings fill what is not given, and `merge_masks`,
# which is an option.
OF_MEASURE = (
    *("attribute", "metrics", "captions", "references", "labels", "objects", "attacker", "seeds", "options"),
    *("protocol", "merge_masks"),
)
OF_ATTRIBUTE = {"file": str, "labels": str, "column": str, "mapping": dict[str, str]}
ONLY = "*"  # in place of the name of the human captions: the only ones, none if there are none


@dataclass(frozen=True)
class LabelColumn:
    """Where the labels of an attribute are. file: its TOML, '' for a known attribute or a column. labels: the table, ''
    for the only one. column: '' to detect it. mapping: raw label to value, others are dropped; None to suggest one."""

    file: str = ""
    labels: str = ""
    column: str = ""
    mapping: dict[str, str] | None = None


@dataclass(frozen=True)
class PlanFile:
    """A plan. A question without captions is about all, one with the references ONLY about the only ones, and one
    without labels about the only table."""

    collection: str
    files: tuple[File, ...]  # their sources are relative to the plan
    questions: tuple[Question, ...]
    attributes: Mapping[str, LabelColumn] = field(default_factory=dict)

    def named_files(self, folder: Path) -> list[Path]:
        """The files that it names, of a plan in this folder."""
        names = [file.source for file in self.files] + [entry.file for entry in self.attributes.values() if entry.file]
        return [(folder / name).resolve() for name in names]


# a plan from a file


def read_plan(path: Path) -> PlanFile:
    """The plan in a TOML file. Raises CapbiasError that names what is wrong in it."""
    if path.is_file() and zipfile.is_zipfile(path):
        raise CapbiasError(f"{path.name} is a bundle, not a plan.", f"Run it with: capbias reproduce {path.name}")
    try:
        return parse_plan(start_of(path), path.name)
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path.name, getattr(error, "strerror", None) or error) from None


def parse_plan(text: str, name: str) -> PlanFile:
    """The plan in a text. name: what the text is called in errors."""
    try:
        data = read_toml(text)
    except ValueError as error:
        raise _unreadable(name, error) from None
    known = ("collection", *SOURCES, "attributes", "measure")
    for key in data:
        if key not in known:
            raise unknown_name(f"{name} with the key", key, known)
    files = [
        file for section, kind in SOURCES.items() for file in _files(data.get(section, {}), kind, f"{name}: {section}")
    ]
    measures = data.get("measure", [])
    if not isinstance(measures, list) or not measures:
        raise CapbiasError(f"{name} has no [[measure]].", "Add one or more, each with an attribute.")
    collection = checked_name(typed(f"{name}: collection", data.get("collection", DEFAULT_COLLECTION), str))
    entries = typed(f"{name}: attributes", data.get("attributes", {}), dict)
    return PlanFile(
        collection,
        tuple(files),
        tuple(_question(collection, given, f"{name}: measure {number}") for number, given in enumerate(measures, 1)),
        {key: LabelColumn(**_checked(entry, OF_ATTRIBUTE, f"{name}: {key}")) for key, entry in entries.items()},
    )


def _unreadable(name: str, error: object) -> CapbiasError:
    return CapbiasError(f"The plan {name} cannot be read: {error}.", "A bundle holds an example, plan.toml.")


def _checked(given: Any, known: Mapping[str, Any], where: str) -> dict[str, Any]:
    for key in typed(where, given, dict):
        if key not in known:
            raise unknown_name(f"{where} with the key", key, known)
    return {key: typed(f"{where}: {key}", value, known[key]) for key, value in given.items()}


def _files(given: Any, kind: str, where: str) -> list[File]:
    """Files of one kind: of a path, of a list, or of a table."""
    if isinstance(given, str | list):
        paths = typed(where, [given] if isinstance(given, str) else given, list[str])
        names = [checked_name(Path(path).stem) for path in paths]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise CapbiasError(f"{where} has several files called {', '.join(twice)}.", "Give each a name.")
        return [File(path, kind, name) for name, path in zip(names, paths, strict=True)]
    files = []
    for name, source in typed(where, given, dict).items():
        entry = _checked({"file": source} if isinstance(source, str) else source, OF_FILE, f"{where}: {name}")
        if "file" not in entry:
            raise CapbiasError(f"{where}: {name} has no file.", 'Write: file = "..."')
        path, sets, trained = entry.pop("file"), entry.pop("sets", ""), entry.pop(TRAINED, None)
        trained = trained if kind == CAPTIONS else None
        files.append(File(path, kind, checked_name(name), named_columns(**entry), sets, trained=trained))
    return files


def _question(collection: str, given: Any, where: str) -> Question:
    asked = dict(typed(where, given, dict))
    for key in asked:
        if key not in OF_MEASURE:
            raise unknown_name(f"{where} with the key", key, OF_MEASURE)
    options = typed(f"{where}: options", asked.pop("options", {}), dict)
    if twice := [name for name in OF_MEASURE if name in asked and name in options]:
        raise CapbiasError(f"{where} has {twice[0]} twice, also among its options.", "Leave one out.")
    asked["options"] = {name: asked.pop(name) for name in ("merge_masks",) if name in asked} | options
    try:
        given = {"references": ONLY} | asked
        return Question.of(stored=True, collection=collection, usual_metrics=DEFAULT_GROUPS, **given)
    except CapbiasError as error:
        raise CapbiasError(f"{where}: {error.message}", error.hint, *error.arguments) from None


# a plan as a file


def plan_text(plan: PlanFile) -> str:
    """A plan as TOML, which `parse_plan` reads back as the same."""
    lines = [
        "# What was measured. Edit it and run it: capbias run plan.toml",
        f"collection = {toml_value(plan.collection)}",
    ]
    for section, kind in SOURCES.items():
        files = [file for file in plan.files if file.kind == kind]
        lines += ["", f"[{section}]"] if files else []
        for file in files:
            read = {role if role == "rows" else f"{role}_column": value for role, value in file.columns.items()}
            more = read | ({"sets": file.sets} if file.sets else {})
            more |= {} if file.trained is None else {TRAINED: file.trained}
            entry = {"file": file.source, **more} if more else file.source
            lines.append(f"{toml_key(file.name)} = {toml_value(entry)}")
    for name, entry in plan.attributes.items():
        lines += ["", f"[attributes.{toml_key(name)}]"]
        lines += [f"{key} = {toml_value(value)}" for key, value in vars(entry).items() if value]
    for question in plan.questions:
        metrics, groups = expand_metrics(question.metrics), []  # groups of which all metrics are asked
        left = dict.fromkeys(metrics)
        for name, group in GROUPS.items():
            if set(group.metrics) <= set(metrics) and left.keys() & set(group.metrics):
                groups.append(name)
                left = {metric: None for metric in left if metric not in group.metrics}
        given = {
            "attribute": question.attribute,
            "metrics": [*groups, *left],
            "captions": list(question.captions),
            "references": question.references,
            "labels": question.labels,
        }
        trains = any("attacker" in measure_of(name).options.about() for name in metrics)
        choices = {"objects": question.objects, "seeds": question.seeds, "options": question.options}
        given |= {name: value for name, value in choices.items() if value}
        alone = len(question.attacker) == 1
        given |= {"attacker": question.attacker[0] if alone else list(question.attacker)} if trains else {}
        lines += ["", "[[measure]]", *(f"{key} = {toml_value(value)}" for key, value in given.items())]
    return "\n".join(lines) + "\n"


def attribute_text(attribute: Attribute) -> str:
    """An attribute as a TOML file, which `read_attribute` reads back as the same, without how labels are derived."""
    aliases = {value: [item for item, to in attribute.aliases.items() if to == value] for value in attribute.values}
    head = {name: getattr(attribute, name) for name in ("name", "title", "values", "mask_token", "columns", "note")}
    head |= {"forms": attribute.forms} if attribute.forms else {}
    lines = [f"{name} = {toml_value(value)}" for name, value in head.items()]
    for title, table in (("words", attribute.words), ("aliases", aliases)):
        lines += [
            "",
            f"[{title}]",
            *(f"{toml_key(value)} = {toml_value(item)}" for value, item in table.items() if item),
        ]
    return "\n".join(lines) + "\n"


def questions_of(
    workspace: Workspace, collection: str, specs: Sequence[RunSpec], metrics: Iterable[str]
) -> list[Question]:
    """The questions that runs of a collection answer, one for all runs of the same inputs and options. metrics: the
    names that count."""
    wanted, questions = set(metrics), []
    items = {(item.kind, item.hash): item for item in workspace.items(collection=collection)}
    for spec in specs:
        names = tuple(metric.name for metric in MEASURES[spec.measure].metrics if metric.name in wanted)
        if not names or spec.shared_with:
            continue
        table = items["attributes", spec.labels["table"]]
        sources = {digest: name for name, digest in object_sources(workspace, collection, table).items()}
        # The plan itself finds the files of an encoder.
        options = {name: value for name, value in spec.options.items() if name != "encoder" and value is not None}
        fields = {name: options.pop(name) for name in ("attacker", "seeds") if name in options}
        references = items["references", spec.references].name if spec.references else ""
        objects = sources.get(spec.objects.get("table", ""), "")
        given = (collection, (spec.model,), table.name, spec.attribute["name"], names, references)
        questions.append(Question(*given, objects=objects, options=options, **fields))
    for union in ("captions", "metrics"):
        joined: dict[str, Question] = {}
        for question in questions:
            key = repr(replace(question, **{union: ()}))
            earlier = getattr(joined[key], union) if key in joined else ()
            joined[key] = replace(question, **{union: tuple(dict.fromkeys((*earlier, *getattr(question, union))))})
        questions = list(joined.values())

    def includes(whole: Question, part: Question) -> bool:
        """Whether a question with references gives runs on all images too."""
        options = {name: value for name, value in whole.options.items() if name != "alignment"}
        adapted = replace(whole, references="", options=options, captions=part.captions, metrics=part.metrics)
        return adapted == part and {*part.captions} <= {*whole.captions} and {*part.metrics} <= {*whole.metrics}

    with_references = [question for question in questions if question.references]
    return [
        question
        for question in questions
        if question.references or not any(includes(whole, question) for whole in with_references)
    ]


# the files of a plan


def keep_plan(workspace: Workspace, plan: PlanFile, folder: Path, tell: Tell) -> list[Question]:
    """Store the files of a plan in its collection, and return its questions with the names that items have there.
    folder: that of the plan. Raises CapbiasError for what cannot be read, and for names that the collection lacks."""
    files = [replace(file, source=folder / checked_path(file.source)) for file in plan.files]
    parts = preview(files, held_by(workspace, plan.collection))
    # Human captions beside a model's count if no others are named.
    beside = all(file.kind != REFERENCES for file in plan.files)
    parts = [part for part in parts if not part.reading.second or (beside and part.wanted and part.kind == REFERENCES)]
    for part in parts:
        if part.reading.error:
            raise part.reading.error
    parts = [_with_labels(plan, folder, part, tell) if part.kind == LABELS else part for part in parts]
    warn([part.report for part in parts if part.report], tell)
    store(workspace, plan.collection, parts)
    items = workspace.items(collection=plan.collection)
    captions = tuple(item.name for item in items if item.kind == CAPTIONS)
    human = [item.name for item in items if item.kind == REFERENCES]
    questions = []
    for question in plan.questions:
        references = question.references
        if references == ONLY:
            references = _only(human, "set of human captions", "references") if human else ""
        tables = [
            item.name for item in items if item.kind == LABELS and question.attribute in item.details["attributes"]
        ]
        table = question.labels or _only(tables, f"table of labels with {question.attribute}", "labels")
        captions_asked = question.captions or captions
        questions.append(replace(question, captions=captions_asked, labels=table, references=references))
    return questions


def _with_labels(plan: PlanFile, folder: Path, part: Part, tell: Tell) -> Part:
    name, frame, mapping = part.file.item_name, part.frame, []
    assert frame is not None
    asked = {question.attribute for question in plan.questions if question.labels in ("", name)}
    asked |= plan.attributes.keys()
    for attribute in sorted(asked):
        entry = plan.attributes.get(attribute, LabelColumn())
        if entry.labels not in ("", name):
            continue
        source = str(folder / checked_path(entry.file)) if entry.file else attribute
        details = resolve_attribute(frame, source, entry.column, (), {attribute: entry.mapping or {}})
        if entry.mapping is not None:  # other labels are dropped
            details = details | {"mapping": {label: entry.mapping.get(label) for label in details["mapping"]}}
        mapping.append(details)
        tell(dropped_line(frame, details))
    return replace(part, file=replace(part.file, mapping=tuple(mapping)))


def _only(names: list[str], what: str, key: str) -> str:
    if len(names) != 1:
        raise CapbiasError(
            f"A measure needs one {what}, and here are {len(names)}: {', '.join(names) or 'none'}.",
            f'Name it in the measure: {key} = "...".',
        )
    return names[0]
