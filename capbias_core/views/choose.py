"""What is shown: one collection, attribute, setting and captioner, chosen alike for pages, commands and Python."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pandas as pd

from capbias_core.attackers import attacker_entry
from capbias_core.data import Captions, Data
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.kinds import CAPTIONS, LABELS
from capbias_core.measures.registry import METRICS, default_groups
from capbias_core.prepare.labels import parts_of
from capbias_core.prepare.tokens import Tokens
from capbias_core.question import Question
from capbias_core.types import Attribute
from capbias_core.views.results import attribute_of_run, current_runs, in_order, ranking
from capbias_core.workspace.conditions import originals
from capbias_core.workspace.labels import is_derived, table_with
from capbias_core.workspace.spec import Setting, attribute_from
from capbias_core.workspace.store import Item, RunRow, Workspace, human_sets
from capbias_core.workspace.vectors import CONSTANT, alignment_name

ANSWERING = ("LIC", "LIC_M")  # the metrics that answer; the first that was measured does
PAPER_SEEDS = 10  # that the LIC paper uses


@dataclass(frozen=True)
class MeasuredWith(Setting):
    """A setting with the names of what its runs read; '' and 0 where they read no such thing."""

    labels: str = ""
    references: str = ""
    attacker: str = ""
    seeds: int = 0
    alignment: str = ""
    objects: str = ""

    def shares(self, other: MeasuredWith, *names: str) -> bool:
        """Whether both read the same by these names, as far as both read such a thing."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in names)
        return all(one == two or not (one and two) for one, two in pairs)


def measured_with(run: RunRow, names: Mapping[str, str]) -> MeasuredWith:
    """The setting of a run. names: of stored items by content hash."""
    spec, setting = run.spec, Setting.of(run.spec)
    return MeasuredWith(
        setting.key,
        setting.name,
        labels=names.get(spec.labels.get("table", ""), ""),
        references=names.get(spec.references, ""),
        attacker=spec.attacker,
        seeds=len(spec.seeds) if spec.attacker else 0,
        alignment=alignment_name(spec.options.get("alignment")) if spec.references and spec.attacker else "",
        objects=names.get(spec.objects.get("table", ""), ""),
    )


def _told_by_inputs(settings: Mapping[str, MeasuredWith]) -> dict[str, MeasuredWith]:
    """Settings of which no two have one name: those that would also name what differs of their human captions and
    labels."""
    named = {}
    for key, each in settings.items():
        same = [other for other in settings.values() if other.name == each.name]
        human, labels = ({getattr(other, name) for other in same} - {""} for name in ("references", "labels"))
        inputs = [f"human captions {each.references}"] if each.references and len(human) > 1 else []
        inputs += ["without human captions"] if human and not each.references else []
        inputs += [f"labels {each.labels}"] if each.labels and len(labels) > 1 else []
        named[key] = replace(each, name=", ".join([each.name, *inputs]))
    return named


@dataclass(frozen=True)
class RunsInHand:
    """What a choice asks of a workspace, for runs of data in hand: the runs by their IDs, and what is known of a
    captioner."""

    data: Data
    runs: Mapping[str, RunRow]

    def get_run(self, run_id: str) -> RunRow:
        return self.runs[run_id]

    def item(self, _kind: str, name: str, _collection: str) -> Captions:
        return self.data.captions[name]

    def items(self, _kind: str = "", _collection: str = "") -> list[Item]:
        return []

    def tokens(self, key: str) -> Tokens:
        known = {captions.key: captions for captions in self.data.captions.values()}
        if key not in known:
            raise CapbiasError("A run read other captions than these.", "Run it again.")
        return known[key].tokens

    def derived(self, key: str, compute: Callable[[], Any], kind: Any) -> Any:
        return self.data.sources.derived(key, compute, kind)


def measured_rows(workspace: Workspace, collection: str) -> pd.DataFrame:
    """The rows (`rows_of_runs`) of every finished run of a collection's caption sets."""
    runs = {run.run_id: run for run in current_runs(workspace, collection)}
    items = workspace.items(collection=collection)
    names = {item.hash: item.name for item in items}
    unmasked = originals([item for item in items if item.kind == CAPTIONS])
    return rows_of_runs(workspace.results(list(runs)), runs, names, unmasked, workspace)


def rows_of_runs(
    results: pd.DataFrame,
    runs: Mapping[str, RunRow],
    names: Mapping[str, str],
    unmasked: Collection[str],
    source: Workspace | RunsInHand,
) -> pd.DataFrame:
    """Rows of runs in the columns of the results table with `captioner`, `low` and `high` for `model`, `ci_low` and
    `ci_high`, and letters (of captioners by LIC or LIC_M within a setting), original (whether the photographs were
    unmasked).

    names: of stored items by content hash. source: of the runs.
    """
    rows = results.rename(columns={"model": "captioner", "ci_low": "low", "ci_high": "high"})
    rows = rows[rows["metric"].isin(list(METRICS))].reset_index(drop=True)
    of_runs = {run_id: measured_with(run, names) for run_id, run in runs.items()}
    settings = _told_by_inputs({each.key: each for each in of_runs.values()})
    rows["setting"] = [of_runs[run_id].key for run_id in rows["run_id"]]
    rows["setting_name"] = [settings[key].name for key in rows["setting"]]
    rows["original"] = rows["captioner"].isin(unmasked)
    rows["letters"] = ""
    answering = rows[rows["metric"].isin(ANSWERING) & rows["original"] & (rows["group"] == "")]
    for (_, _, metric, _), alike in answering.groupby(["attribute", "setting", "metric", "coverage"], sort=False):
        chosen = [runs[run_id] for run_id in alike["run_id"]]
        if len(chosen) > 1:
            letters = ranking(source, chosen, str(metric)).letters
            rows.loc[alike.index, "letters"] = alike["captioner"].map(letters).fillna("")
    rows.attrs["settings"] = settings
    return rows


def named_inputs(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of `measured_rows` in the columns of the results table, with `labels` and `references`: the names of the
    table of labels and of the human captions that each run read."""
    of_rows = [rows.attrs["settings"][key] for key in rows["setting"]]
    rows = rows.rename(columns={"captioner": "model", "low": "ci_low", "high": "ci_high"})
    return rows.assign(labels=[each.labels for each in of_rows], references=[each.references for each in of_rows])


@dataclass(frozen=True)
class Choice:
    """What is shown. captioners: those that the setting measured, the one that is read first. rows: all that was
    measured of the collection and attribute; of_all: of all its attributes. options: what else can be chosen, by
    field."""

    workspace: Any = field(compare=False, repr=False)  # a Workspace, or RunsInHand
    collection: str
    attribute: str
    setting: str
    captioners: tuple[str, ...]
    rows: pd.DataFrame = field(compare=False, repr=False)
    of_all: pd.DataFrame = field(compare=False, repr=False)
    options: Mapping[str, Sequence[str]] = field(compare=False, repr=False, default_factory=dict)

    @property
    def captioner(self) -> str:
        return self.captioners[0]

    @property
    def settings(self) -> dict[str, MeasuredWith]:
        """All that something was measured with, by key."""
        return self.rows.attrs["settings"]

    @property
    def measured_with(self) -> MeasuredWith:
        """The chosen setting."""
        return self.settings[self.setting]

    @property
    def setting_name(self) -> str:
        return self.measured_with.name

    @property
    def title(self) -> str:
        """`coco, gender, ngram, 30 seeds`"""
        return ", ".join((self.collection, self.attribute, self.setting_name))

    @cached_property
    def defined(self) -> Attribute:
        """The attribute with its values and words."""
        rows = self.rows[self.rows["setting"] == self.setting]
        return attribute_of_run(self.workspace.get_run(rows["run_id"].iloc[0]))

    def verdicts(self) -> dict[str, str]:
        """The verdict of LIC by captioner."""
        rows = self.rows[(self.rows["metric"] == "LIC") & (self.rows["setting"] == self.setting)]
        rows = rows[rows["group"] == ""].drop_duplicates("captioner")
        return dict(zip(rows["captioner"], rows["verdict"], strict=True))

    def run(self, captioner: str = "", metrics: Sequence[str] = ()) -> RunRow:
        """The run of the chosen setting by which a captioner (default: the one that is read) was measured. metrics:
        that it measured; by default those that answer, or any if there are none."""
        rows = self.rows[
            (self.rows["captioner"] == (captioner or self.captioner)) & (self.rows["setting"] == self.setting)
        ]
        wanted = rows["metric"].isin(metrics or ANSWERING)
        rows = rows[wanted] if metrics or wanted.any() else rows
        if rows.empty:
            raise CapbiasError(f"{captioner or self.captioner} is not measured with {self.setting_name}.", "Score it.")
        return self.workspace.get_run(rows["run_id"].iloc[0])

    def measured(
        self, metrics: Sequence[str], by: Sequence[str] = ("metric", "direction"), sets: Sequence[str] = ()
    ) -> pd.DataFrame:
        """The rows of these metrics of unmasked photographs (or of these caption sets), of one setting for each `by`:
        the chosen one, else one that fits it, else that of most captioners. `other`: the name of a setting that does
        not fit, else ''."""
        rows = self.of_all[self.of_all["attribute"] == self.attribute] if sets else self.rows
        rows = rows[rows["metric"].isin(list(metrics)) & (rows["captioner"].isin(sets) if sets else rows["original"])]
        parts = [self._of_one_setting(part) for _, part in rows.groupby(list(by), sort=False)]
        rows = pd.concat(parts, ignore_index=True) if parts else rows.assign(other="")
        return in_order(rows, metric=metrics)

    def _of_one_setting(self, rows: pd.DataFrame) -> pd.DataFrame:
        chosen, groups = self.measured_with, rows.groupby("setting", sort=False)
        fits = {key: key == self.setting or self.settings[key].fits(chosen.key) for key, _ in groups}

        def precedence(part: tuple) -> tuple:
            key, own = part
            return key == self.setting, fits[key], own["captioner"].nunique(), int(own["seeds"].max())

        best, part = max(groups, key=precedence)
        return part.assign(other="" if fits[best] else part["setting_name"])

    def of_captioners(self, *names: str) -> Choice:
        """The same of these captioners alone, the first of which is read."""
        return replace(self, captioners=names, rows=self.rows[self.rows["captioner"].isin(names)])

    def of_attribute(self, attribute: str) -> Choice:
        """The same for another attribute of the collection, by the setting that answers it best."""
        given = {"collection": self.collection, "attribute": attribute, "captioner": self.captioner}
        return choose(self.workspace, self.of_all, given)

    def ordered(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Rows in the order of the captioners of the setting, as they answer; others after them."""
        return in_order(rows, captioner=[*self.options.get("captioner", self.captioners), *rows["captioner"]])


def choose(
    workspace: Workspace | RunsInHand,
    rows: pd.DataFrame,
    given: Mapping[str, str],
    strict: bool = False,
    captioners: Sequence[str] = (),
) -> Choice:
    """The choice with what is given of collection, attribute, setting (key or name) and captioner; the rest as it
    answers best.

    rows: `measured_rows` of the collection. captioners: only these, in this order. strict: raise CapbiasError for a
    name that is not there; else the best is taken in its place.
    """
    collection = given.get("collection", "")
    options: dict[str, list[str]] = {}

    def pick(key: str, names: Sequence[str], titles: Mapping[str, str] | None = None) -> str:
        options[key] = list(dict.fromkeys(names))
        wanted = given.get(key, "")
        by_title = {title: name for name, title in reversed([*(titles or {}).items()])}  # of equal ones the first
        wanted = by_title.get(wanted, wanted)
        if strict and wanted and wanted not in names:
            raise unknown_name(key, wanted, list(by_title) or names)
        return wanted if wanted in names else names[0]

    original = rows[rows["original"]]
    answering = original[original["metric"].isin(ANSWERING)]
    if answering.empty:  # other metrics have no verdict, and the first of them stands for all
        answering = original[original["metric"] == next(iter(rows["metric"]), "")]
    if answering.empty:
        raise CapbiasError(
            f"Nothing is scored in {collection!r} yet.", f'Run: capbias score --collection "{collection}"', "collection"
        )
    precedence = _precedence(workspace, collection, answering)
    attribute = pick("attribute", _attributes(rows, answering, precedence))
    of_attribute = rows[rows["attribute"] == attribute]
    answering = answering[answering["attribute"] == attribute]
    known = rows.attrs["settings"]
    settings = [key for key in precedence if key in set(answering["setting"])]
    options["references"] = list(filter(None, dict.fromkeys(known[key].references for key in settings)))
    if (human := given.get("references", "")) in options["references"]:
        settings = [key for key in settings if known[key].references == human]
    elif strict and human:
        raise unknown_name("references", human, options["references"])
    measured_by = answering.groupby("setting")["captioner"].agg(set)
    settings.sort(key=lambda key: not set(captioners) <= measured_by[key])  # first those that have all that are named
    setting = pick("setting", settings, {key: known[key].name for key in settings})
    best = answering[(answering["setting"] == setting) & (answering["group"] == "")]
    if best.empty:
        raise CapbiasError(f"No result of {collection!r} is of all images.", "Score it again.")
    best = best[best["metric"] == next(name for name in (*ANSWERING, *best["metric"]) if name in set(best["metric"]))]
    # Captioners that amplify first, then each from the highest lower end of its interval.
    lowest = best["low"].astype(float).fillna(best["value"])
    best = best.assign(amplifies=best["verdict"] == "amplifies", lowest=lowest)
    best = best.sort_values(["amplifies", "lowest"], ascending=False, kind="stable")
    order = list(dict.fromkeys(best["captioner"]))
    if unknown := [name for name in captioners if name not in order]:
        if unknown[0] in set(rows["captioner"]):
            reason = f"{unknown[0]} is not measured with {known[setting].name}, as others are."
            raise CapbiasError(reason, "Score it so.")
        raise unknown_name("captioner", unknown[0], order)
    if captioners:
        order = list(captioners)
        of_attribute = of_attribute[of_attribute["captioner"].isin(order)]
    first = pick("captioner", order)
    read = (first, *(name for name in order if name != first))
    return Choice(workspace, collection, attribute, setting, read, of_attribute, rows, options)


def _attributes(rows: pd.DataFrame, answering: pd.DataFrame, precedence: Sequence[str]) -> list[str]:
    """The attributes with an answer: those that captions name first, combined ones last, else by their best setting."""
    named = set(rows.loc[rows["metric"].isin(["error", "ratio", "unnamed"]), "attribute"])
    place = {key: number for number, key in enumerate(precedence)}
    best = answering.assign(place=answering["setting"].map(place)).groupby("attribute")["place"].min()
    return sorted(best.index, key=lambda name: (parts_of(name) is not None, name not in named, best[name]))


def _precedence(workspace: Workspace | RunsInHand, collection: str, answering: pd.DataFrame) -> list[str]:
    """Settings, the one that answers best first: with human captions, as many seeds as the papers, an encoder of the
    LIC paper, labels that people gave, most captioners, most seeds, constant alignment."""
    settings, tables = answering.attrs["settings"], workspace.items(LABELS, collection)
    derived = {table.name for table in tables if is_derived(table)}
    captioners = answering.groupby("setting")["captioner"].nunique()

    def rank(key: str) -> tuple:
        setting = settings[key]
        return (
            bool(setting.references),
            setting.seeds >= PAPER_SEEDS,
            attacker_entry(setting.attacker).precedence,
            setting.labels not in derived,
            captioners[key],
            setting.seeds,
            setting.alignment in ("", CONSTANT),
        )

    return sorted(captioners.index, key=rank, reverse=True)


def first_request(workspace: Workspace, collection: str, attribute: str, choice: Choice | None) -> Question | None:
    """What answers a collection first: its captioners by the default metrics and attacker, with scores and words of
    each caption. None where captions or labels are missing.

    attribute: one of the collection's, '' for the first that captions have words for, else the first. choice: what is
    shown. Where it has an answer to the attribute, its labels and human captions are read, so that what is added to a
    collection changes no view; else those of `table_with` and of most images.
    """
    captions = originals(workspace.items(CAPTIONS, collection))
    tables = workspace.items(LABELS, collection)
    entries = {name: entry for table in tables for name, entry in table.details["attributes"].items()}
    if not captions or not entries:
        return None
    named = (name for name, entry in entries.items() if attribute_from(entry["attribute"]).names_values)
    attribute = attribute or next(named, next(iter(entries)))
    answer = choice.of_attribute(attribute) if choice else None
    read = answer.measured_with if answer and answer.attribute == attribute else None
    labels = read.labels if read else table_with(tables, attribute).name
    human = read.references if read else ""
    human = human or next((item.name for item in human_sets(workspace, collection)), "")
    return Question(collection, tuple(captions), labels, attribute, default_groups(), human, words=True)
