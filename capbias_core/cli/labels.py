"""`labels`: derive, cross and check labels of protected attributes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pandas as pd

from capbias_core.attributes import attribute_files, known_attributes, name_taken, read_attribute, shipped_files
from capbias_core.cli.inputs import (
    HOW,
    INPUTS,
    CollectionFlag,
    WorkspaceFlag,
    command,
    flag,
    known_collection,
    opened,
    own_folder,
)
from capbias_core.cli.terminal import DONE, say, show, show_table
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.kinds import REFERENCES
from capbias_core.prepare.labels import with_rule
from capbias_core.types import WITHOUT_ORDER
from capbias_core.views import labels as label_views
from capbias_core.whole_files import typed_path
from capbias_core.workspace.derived import cross, derivable, derive, keep_crossed, keep_derived

app = command(
    "labels",
    """\
  capbias labels check
  capbias labels derive gender --references human --collection coco""",
)


@command(
    "derive",
    """\
  capbias labels derive age --references human --collection coco --dry-run""",
    app,
).default
def derive_labels(
    attribute: Annotated[str, flag("an attribute with a rule to derive it, or a TOML file", "ATTRIBUTE", INPUTS)],
    /,
    *,
    references: Annotated[str, flag("stored human captions", "NAME", INPUTS)],
    collection: CollectionFlag,
    at_least: Annotated[int | None, flag("minimum captions naming the value", "N", HOW)] = None,
    both: Annotated[str | None, flag("images with conflicting captions", "|".join(WITHOUT_ORDER), HOW)] = None,
    name: Annotated[str, flag("name of the table (default: by attribute and captions)", "NAME", HOW)] = "",
    dry_run: Annotated[bool, flag("only count the labels", group=HOW)] = False,
    workspace: WorkspaceFlag = None,
) -> int:
    """Derive labels from human captions that name a value."""
    folder = own_folder(workspace)
    rule = derivable(attribute, folder)
    if rule is None:
        known = ", ".join(key for key, attribute in known_attributes(folder).items() if attribute.derived)
        raise CapbiasError(
            f"The attribute {attribute!r} has no rule to derive it.", f"Name {known}, or a TOML file with [derived]."
        )
    store = opened(workspace)
    if not store.items(REFERENCES, known_collection(store, collection)):
        raise CapbiasError(f"The collection {collection!r} has no human captions.", "Import them first.")
    source = store.item(REFERENCES, references, collection)
    derived = derive(store, source, with_rule(rule, at_least, both))
    show(derived.line(source.name))
    if dry_run:
        show("nothing was stored (--dry-run)")
    else:
        item = keep_derived(store, derived, name)
        show(f"stored: labels {item.name} in the collection {collection}")
    return DONE


@command(
    "cross",
    """\
  capbias labels cross gender race --collection coco
  capbias score --collection coco --attribute "gender x race" --metric lic

Groups with fewer than 100 labelled images are left out: a 90/10 split would test on fewer than ten of them.""",
    app,
).default
def cross_two(
    first: Annotated[str, flag("an attribute with labels in the collection", "FIRST", INPUTS)],
    second: Annotated[str, flag("another", "SECOND", INPUTS)],
    /,
    *,
    collection: CollectionFlag,
    table: Annotated[str, flag("the table of labels (default: the newest of each attribute)", "NAME", INPUTS)] = "",
    dry_run: Annotated[bool, flag("only count the images of each group", group=INPUTS)] = False,
    workspace: WorkspaceFlag = None,
) -> int:
    """Combine two attributes into one, such as gender x race."""
    store = opened(workspace)
    crossing = cross(store, known_collection(store, collection), first, second, table)
    show(crossing.line())
    if not dry_run:
        show(f"stored: labels {keep_crossed(store, collection, crossing).name} in the collection {collection}")
    return DONE


@command(
    "check",
    """\
  capbias labels check
  capbias labels check gender > "my gender.toml"
  capbias labels check "my gender.toml"

A TOML file in the folder `attributes` of the workspace is known by its name, like the shipped ones.""",
    app,
).default
def check(
    attribute: Annotated[
        str | None, flag("a known attribute: print its file; or a TOML file: check it", "NAME|FILE", INPUTS)
    ] = None,
    /,
    *,
    workspace: WorkspaceFlag = None,
) -> int:
    """List the known attributes, print one as TOML, or check a TOML file."""
    if attribute and Path(attribute).suffix == ".toml":
        file = typed_path(attribute)
        read = read_attribute(file)
        show_table(pd.DataFrame(label_views.attribute_lines(read), columns=["", ""]))
        shipped = {known.name.lower(): known.path.resolve() for known in shipped_files()}
        if shipped.get(read.name.lower(), file.resolve()) != file.resolve():
            say(f"note: it works as a file, but not in a workspace: {name_taken(read.name, file.name)}")
        return DONE
    files = attribute_files(own_folder(workspace))
    for file in files:
        if file.fault:
            say(f"warning: left out: {file.fault}")
    known = {file.name: file for file in files if file.attribute}
    if attribute:
        if attribute not in known:
            raise unknown_name("attribute", attribute, known)
        show(known[attribute].path.read_text(encoding="utf-8").rstrip("\n"))
        return DONE
    rows = [
        {
            "name": file.name,
            "values": ", ".join(file.attribute.values),
            "words": f"{len(file.attribute.masked_words):,}",
            "labels": "derived or from a table" if file.attribute.derived else "from a table",
            "where": "shipped" if file.shipped else str(file.path),
        }
        for file in files
        if file.attribute
    ]
    show_table(pd.DataFrame(rows))
    return DONE
