"""`attributes`: the attributes that are known, what one holds, and whether a TOML file is one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pandas as pd
from cyclopts import Parameter

from capbias_core.attributes import attribute_files, read_attribute, shipped_files
from capbias_core.cli.flags import INPUTS, WorkspaceFlag, command, flag
from capbias_core.cli.inputs import known_collection, opened, own_folder
from capbias_core.cli.terminal import DONE, say, show
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.present.attribute import attribute_lines, examples_table, trial_row, words_text
from capbias_core.present.table import to_text
from capbias_core.types import Attribute
from capbias_core.workspace.custom_attributes import check as check_text
from capbias_core.workspace.custom_attributes import trials

app = command(
    "attributes",
    """\
  capbias attributes
  capbias attributes gender > "my gender.toml"
  capbias attributes --check "my gender.toml" --collection "my captions"

A TOML file in the folder `attributes` of the workspace is known by its name, beside those that ship with capbias.""",
)


@app.default
def attributes(
    name: Annotated[str | None, Parameter(help="print this one's TOML file", group=INPUTS)] = None,
    /,
    *,
    check: Annotated[str | None, flag("a TOML file: what it holds, or what is wrong with it", "FILE", INPUTS)] = None,
    collection: Annotated[str | None, flag("with --check: try it on these kept captions", "NAME", INPUTS)] = None,
    workspace: WorkspaceFlag = None,
) -> int:
    """List what is known; print one file as it is; or check a file, and try it on the captions of a collection."""
    if name and check:
        raise CapbiasError("NAME and --check exclude each other.", "Leave one out.")
    if collection and not check:
        raise CapbiasError("--collection needs a file to try on its captions.", "Add --check FILE.")
    if check:
        return _check(check, collection, workspace)
    files = attribute_files(own_folder(workspace))
    for one in files:
        if one.fault:
            say(f"warning: left out: {one.fault}")
    known = {one.name: one for one in files if one.attribute}
    if not name:
        show(to_text(pd.DataFrame([_row(one) for one in known.values()])).rstrip("\n"))
        return DONE
    if name not in known:
        raise unknown_name("attribute", name, known)
    show(known[name].path.read_text(encoding="utf-8").rstrip("\n"))
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


def _check(file: str, collection: str | None, folder: str | None) -> int:
    attribute = read_attribute(Path(file))
    show(to_text(pd.DataFrame(attribute_lines(attribute), columns=["", ""])).strip("\n"))
    if Path(file).resolve() not in {one.path.resolve() for one in shipped_files()}:
        try:
            check_text(Path(file).read_text(encoding="utf-8"))
        except CapbiasError as error:
            say(f"note: it can be used as a file, and cannot be kept in a workspace: {error}")
    if collection:
        _try(attribute, collection, folder)
    return DONE


def _try(attribute: Attribute, name: str, folder: str | None) -> None:
    """What its words find in the captions of a collection."""
    with opened(folder) as workspace:
        collection = known_collection(workspace, name)
        found = [(item, trial) for item, trial in trials(workspace, attribute) if item.collection == collection]
    for item, trial in found:
        show(f"\n{item.kind} {item.name}: words found: {words_text(trial)}")
        show(to_text(pd.DataFrame([trial_row(trial)])).rstrip("\n"))
        if trial.examples:
            show(to_text(examples_table(trial)).rstrip("\n"))
