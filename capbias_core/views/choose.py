"""What an answer is about: one collection, attribute, setting and captioners, chosen here for every surface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from capbias_core.errors import unknown_name
from capbias_core.views.results import Comparison, comparisons, first_attribute
from capbias_core.workspace.conditions import originals
from capbias_core.workspace.labels import attributes_in
from capbias_core.workspace.spec import Setting
from capbias_core.workspace.store import Workspace


@dataclass(frozen=True)
class Choice:
    """What is chosen. others: settings that have results of the attribute too, the best first. comparison: the runs of
    the setting, one a captioner; None if nothing is measured."""

    collection: str
    attribute: str
    setting: Setting
    captioners: tuple[str, ...]
    others: tuple[Setting, ...] = ()
    comparison: Comparison | None = None


def choose(
    workspace: Workspace, collection: str = "", attribute: str = "", setting: str = "", captioners: Sequence[str] = ()
) -> Choice:
    """What is given, and for what is not: the collection with results that was filled last, its first attribute, the
    setting that answers best, and all its captioners. setting: the key or the name of one. Raises CapbiasError for a
    name that is not there, and for a workspace without a collection."""
    every = workspace.collections()
    if not every or (collection and collection not in every):
        raise unknown_name("collection", collection, every)
    collection = collection or next(iter([*workspace.scored(), *every]))
    items = workspace.items("captions", collection)
    if unknown := [name for name in captioners if name not in {item.name for item in items}]:
        raise unknown_name("captioner", unknown[0], [item.name for item in items])
    known = attributes_in(workspace.items("labels", collection))
    attribute = attribute or first_attribute(workspace, collection)
    if attribute not in known:
        raise unknown_name("attribute", attribute, known)
    measured = [
        each
        for each in comparisons(workspace, collection, set(captioners) or originals(items))
        if each.attribute.name == attribute and set(captioners) <= {run.spec.model for run in each.runs}
    ]
    chosen = next((each for each in measured if setting in ("", each.setting.key, each.setting.name)), None)
    if setting and chosen is None:
        raise unknown_name("setting", setting, [each.setting.name for each in measured])
    if chosen is None:
        return Choice(collection, attribute, Setting(), tuple(captioners))
    models = tuple(captioners or (run.spec.model for run in chosen.runs))
    others = tuple(each.setting for each in measured if each is not chosen)
    return Choice(collection, attribute, chosen.setting, models, others, chosen)
