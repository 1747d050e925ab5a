"""`attributes`: the attributes that are known, what one holds, and whether a TOML file is one."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from capbias_core.attributes import attribute_files, read_attribute
from capbias_core.cli.inputs import known_collection, opened, own_folder
from capbias_core.cli.terminal import DONE, say, show
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.present.attribute import attribute_lines, examples_table, trial_row, words_text
from capbias_core.present.table import to_text
from capbias_core.types import Attribute
from capbias_core.workspace.custom_attributes import check, trials

EXAMPLE = """\
  python -m capbias_core attributes
  python -m capbias_core attributes gender > "my gender.toml"
  python -m capbias_core attributes --check "my gender.toml" --collection "my captions"

A TOML file in the folder `attributes` of the workspace is known by its name, beside those that ship with capbias."""


def attributes(args) -> int:
    """List what is known; print one file as it is; or check a file, and try it on the captions of a collection."""
    if args.name and args.check:
        raise CapbiasError("NAME with --check", "one or the other", "Leave one out.")
    if args.collection and not args.check:
        raise CapbiasError("--collection without --check", "a file to try on its captions", "Add --check FILE.")
    if args.check:
        return _check(args)
    files = attribute_files(own_folder(args))
    for one in files:
        if one.fault:
            say(f"warning: left out: {one.fault}")
    known = {one.name: one for one in files if one.attribute}
    if not args.name:
        print(to_text(pd.DataFrame([_row(one) for one in known.values()])), end="")
        return DONE
    if args.name not in known:
        raise unknown_name("attribute", args.name, known)
    show(known[args.name].path.read_text(encoding="utf-8").rstrip("\n"))
    return DONE


def _row(one) -> dict[str, str]:
    attribute = one.attribute
    return {
        "name": one.name,
        "values": ", ".join(attribute.values),
        "words": f"{len(attribute.masked_words):,}",
        "labels": "derived or from a table" if attribute.derived else "from a table",
        "where": "shipped" if one.shipped else str(one.path),
    }


def _check(args) -> int:
    attribute = read_attribute(Path(args.check))
    show(to_text(pd.DataFrame(attribute_lines(attribute), columns=["", ""])).strip("\n"))
    try:
        check(Path(args.check).read_text(encoding="utf-8"))
    except CapbiasError as error:
        say(f"note: it can be used as a file, and cannot be kept in a workspace: {error}")
    if args.collection:
        _try(args, attribute)
    return DONE


def _try(args, attribute: Attribute) -> None:
    """What its words find in the captions of a collection."""
    with opened(args) as workspace:
        collection = known_collection(workspace, args.collection)
        found = [(item, trial) for item, trial in trials(workspace, attribute) if item.collection == collection]
    for item, trial in found:
        show(f"\n{item.kind} {item.name}: words found: {words_text(trial)}")
        show(to_text(pd.DataFrame([trial_row(trial)])).rstrip("\n"))
        if trial.examples:
            show(to_text(examples_table(trial)).rstrip("\n"))


def add_arguments(command) -> None:
    """The options of the command."""
    command.add_argument("name", metavar="NAME", nargs="?", help="print this one's TOML file")
    command.add_argument("--check", metavar="FILE", help="a TOML file: what it holds, or what is wrong with it")
    command.add_argument("--collection", metavar="NAME", help="with --check: try it on these kept captions")
