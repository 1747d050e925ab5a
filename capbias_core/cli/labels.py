"""`labels`: derive and cross labels of protected attributes."""

from __future__ import annotations

from typing import Annotated

from capbias_core.attributes import known_attributes
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
from capbias_core.cli.terminal import DONE, show
from capbias_core.errors import CapbiasError
from capbias_core.kinds import REFERENCES
from capbias_core.prepare.labels import with_rule
from capbias_core.types import WITHOUT_ORDER
from capbias_core.workspace.derived import cross, derivable, derive, keep_crossed, keep_derived

app = command(
    "labels",
    """\
  capbias labels derive gender --references human --collection coco
  capbias labels cross gender race --collection coco""",
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
