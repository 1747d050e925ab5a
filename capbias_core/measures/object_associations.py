"""Which objects go with one value of an attribute, by human captions, as BA counts them.

    departure(t) = max over a of |P(a | t) - P(a)|

P(a | t): of the captions that name the object t and one value, the share that names a (BA's b); P(a): that share of
all captions that name one value. LIC masks "the object that exhibits the highest correlation with gender according to
the BA metric": here, of the objects that a photograph shows, the one of the largest departure.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.measures.caption_side import CaptionSide, least_captions
from capbias_core.metrics.cooccurrence import Table
from capbias_core.prepare.tasks import object_names, pair_counts
from capbias_core.types import Attribute
from capbias_core.workspace.labels import attribute_of, labels_for, table_with, tables_with
from capbias_core.workspace.store import Item, Workspace, images_in

DIGITS = 6


def departures(human: pd.DataFrame, attribute: Attribute, labels: pd.Series | None = None) -> dict[str, float]:
    """Object -> departure, largest first; of the objects that enough captions name.

    human: image_id and caption. Enough is what BA asks of a word (100 of COCO's 53,900 captions, in proportion less of
    fewer). labels: value by image id, which counts in place of the value that a caption names where the attribute has
    no words (race). Raises CapbiasError where no object is named often enough.
    """
    if not attribute.names_values:
        human = human[human["image_id"].isin(labels.index if labels is not None else ())]
    side = CaptionSide(human, sorted(images_in(human)), attribute, labels)
    counts, least = _counts(side), least_captions(side)
    places = np.flatnonzero(counts.pair.sum(axis=0) >= least)
    if not len(places):
        raise CapbiasError(
            f"No object is named {least} times beside one value of {attribute.name} in the human captions.",
            "Load more human captions, or name the objects.",
            "object",
        )
    pairs = counts.pair[:, places]
    departs = np.abs(pairs / pairs.sum(axis=0) - (counts.value / counts.value.sum())[:, None]).max(axis=0)
    names = list(object_names())
    found = {names[place]: round(float(own), DIGITS) for place, own in zip(places, departs, strict=True)}
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def _counts(side: CaptionSide) -> Table:
    """Captions with each value, each object and both, over all images."""
    tasks = side.objects
    if side.attribute.names_values:
        values, kept = side.values, side.only_one
    else:
        values, kept = side.labelled, np.ones(len(side.image), dtype=bool)
    counts = pair_counts(side.image[kept], len(side.images), values[kept], tasks[kept])
    return Table.of(np.asarray(counts.sum(axis=0), dtype=float).ravel(), side.k)


def departures_in(
    workspace: Workspace, collection: str, attribute: str, references: str = "", table: Item | None = None
) -> dict[str, float]:
    """The departures by the human captions of a collection, for an attribute of one of its tables of labels.

    references: their name, '' for the only ones. table: the labels (default: `table_with`). Raises CapbiasError where
    there are none, or several.
    """
    tables = [table] if table else tables_with(workspace.items("attributes", collection), attribute)
    human = [item.name for item in workspace.items("references", collection)]
    name = references or (human[0] if len(human) == 1 else "")
    if not name or not tables:
        lacking = f"{len(human)} sets of human captions" if not name else f"no labels for {attribute}"
        raise CapbiasError(
            f"The collection {collection!r} has {lacking}.",
            "Name one set of human captions, load them or labels with import, or name the objects to mask.",
        )
    own, where = attribute_of(table_with(tables, attribute), attribute)
    labels = labels_for(workspace.frame(where["table"]), own, where["column"], where["mapping"]).values
    return departures(workspace.frame(workspace.item("references", name, collection).hash), own, labels)
