"""Which metrics see a bias that is in the language alone: measured on sets whose answer is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
import pandas as pd

from capbias_core.aggregate import Counts, Estimate, unlabelled
from capbias_core.attributes import get_attribute
from capbias_core.data import Captions, Data
from capbias_core.load.published import published_results
from capbias_core.measures.dpa import guess_labels
from capbias_core.measures.naming import names_in
from capbias_core.measures.options import Option, Seeded
from capbias_core.measures.registry import MEASURES, measure_of
from capbias_core.metrics.captions import named_alone
from capbias_core.metrics.share import share as part_of
from capbias_core.prepare import held_out_count, image_split
from capbias_core.prepare.known_answer import CAPTIONS, CONTROL, IMBALANCE, SUBSETS, KnownSet, known_set
from capbias_core.question import Question
from capbias_core.runs.plan import runs_for
from capbias_core.runs.run import compute
from capbias_core.types import RESULT_COLUMNS, Progress, Result, counted, silent
from capbias_core.views.rows import shown_rows
from capbias_core.views.sentence import interval, listed, number
from capbias_core.views.view import Shown
from capbias_core.workspace.labels import labels_for, mapped_attribute, resolve_attribute
from capbias_core.workspace.store import Workspace

ATTRIBUTE = "gender"
# Raised when a change of this module changes its numbers, so that kept ones are made anew.
VERSION = 2
ATTACKED = ("LIC_M", "SC")
SEES = {"Q": True, "LIC": True, "BA": False, "DPA": False}


def known_answer(
    times: Annotated[int, Option("size, as a multiple of the paper's", at_least=1, metavar="N")] = 100,
    seeds: Annotated[int, Seeded.about()["seeds"]] = Seeded.seeds,
    progress: Progress = silent,
) -> Shown:
    """`known_answers` of C1 to C4."""
    return known_shown(known_answers(times, seeds, progress))


def known_shown(rows: pd.DataFrame) -> Shown:
    """Rows of `known_answers` as a view, followed by the paper's values."""
    all_rows = pd.concat([rows, printed_answers()], ignore_index=True)
    title = "Metrics of the synthetic sets beside what they tend to"
    return shown_rows(title, all_rows, known_sentence(rows), [known_basis(rows)], known_table(rows))


def known_truth(name: str, metric: str) -> float:
    """What the metric tends to on C1 to C4: of the best possible attacker, and with value and object independent."""
    share = IMBALANCE[name] / CAPTIONS
    return {"Q": share, "LIC": 100 * share**2, "BA": 0.5, "DPA": (len(SUBSETS) - 1) / len(SUBSETS)}[metric]


def known_answers(
    times: int = 100, seeds: int = 10, progress: Progress = silent, sets: Sequence[str] = tuple(IMBALANCE)
) -> pd.DataFrame:
    """Result rows of C1 to C4, one per metric: Q and LIC of the captions, b of BA, accuracy of DPA.

    times: how much larger than in the paper. progress: told the share that is done. sets: names of `known_set`.
    """
    rows = []
    for index, name in enumerate(sets):
        progress(index / len(sets), name)
        rows += _answers(name, known_set(name, times), seeds)
    return pd.DataFrame([row.row() for row in rows], columns=list(RESULT_COLUMNS))


def kept_answers(workspace: Workspace, compute: bool) -> pd.DataFrame | None:
    """`known_answers` of C1 to C4 and the control as kept in the workspace; computed if they are not, or None."""
    measures = {measure_of(name).name for name in ATTACKED}
    versions = ", ".join(f"{name} {MEASURES[name].version}" for name in sorted(measures))
    key = f"known answers {VERSION}: {versions}"
    if not compute and not workspace.has_derived(key):
        return None
    sets = (*IMBALANCE, CONTROL)
    return pd.DataFrame(workspace.derived(key, lambda: known_answers(sets=sets).to_dict("records")))


def _answers(name: str, data: KnownSet, seeds: int) -> list[Result]:
    details = resolve_attribute(data.labels, ATTRIBUTE)
    attribute = mapped_attribute(details)
    labels = labels_for(data.labels, attribute, details["column"], details["mapping"]).values
    made = Data(attribute, lambda: labels, {name: Captions(name, lambda: data.captions)})
    # LIC_M and SC by the runs that everything else uses
    (spec,) = runs_for(made, Question("known", (name,), "labels", ATTRIBUTE, ATTACKED, seeds=seeds))
    attacked = {row.metric: row for row in compute(made, spec, silent).results}
    rows = []
    for metric, source, factor, method in (
        ("Q", attacked["SC"], 0.01, "share of captions whose value the attacker names"),
        ("LIC", attacked["LIC_M"], 1, "LIC of these captions (LIC_H)"),
    ):
        numbers = {key: getattr(source, key) for key in ("value", "spread", "ci_low", "ci_high")}
        values = {key: None if value is None else value * factor for key, value in numbers.items()}
        best = "" if name == CONTROL else f"; the best possible attacker's is {known_truth(name, metric):g}"
        more = {"scale": 100.0 if metric == "LIC" else 1.0, "method": f"{method}{best}; {source.method}"}
        rows.append(Result(**{**source.row(), **values, "metric": metric, **more}))
    chance = f"chance of its encoding, {len(SUBSETS)} objects there or not, is {1 - 1 / len(SUBSETS):.3f}"
    independent = "b: share of the value that an object is associated with, averaged over objects; 0.5 is independent"
    guessed = f"share of labels, whether each object is there, guessed from the value; {chance}"
    n = len(data.labels)
    for metric, estimate, images, method in (
        ("BA", _commoner_value(data), n, independent),
        ("DPA", _objects_guessed(data, seeds), held_out_count(n), guessed),
    ):
        method = f"{method}; {estimate.interval_method}"
        columns = {"direction": "A->T", "n": images, "method": method, **estimate.columns()}
        rows.append(Result(attribute=ATTRIBUTE, model=name, metric=metric, **columns))
    return rows


def _commoner_value(data: KnownSet) -> Estimate:
    """b of BA (LIC, Eq. 2) for each object and the value that is the commoner beside it, averaged over objects."""
    names = named_alone(names_in(data.captions["caption"], get_attribute(ATTRIBUTE)))
    objects = pd.Series(np.unique(data.labels["objects"], return_inverse=True)[1], data.labels["image_id"])
    pairs = np.zeros((len(names), len(SUBSETS), 2))
    pairs[np.arange(len(names)), objects.loc[data.captions["image_id"]]] = names
    commoner = pairs.sum(axis=0).argmax(axis=1)

    def share(sums: np.ndarray) -> np.ndarray:
        pairs = sums.reshape(*sums.shape[:-1], len(SUBSETS), 2)
        named = np.take_along_axis(pairs, np.broadcast_to(commoner[:, None], (*pairs.shape[:-1], 1)), axis=-1)
        return (named[..., 0] / pairs.sum(axis=-1)).mean(axis=-1)

    columns = {"pairs": pairs.reshape(len(pairs), -1)}
    counts = Counts.of_captions(data.captions["image_id"], unlabelled, columns, sort=False)
    return Estimate.read(counts.reading(("pairs",)), share, 1.0)


def _objects_guessed(data: KnownSet, seeds: int) -> Estimate:
    """Accuracy of DPA, A->T: of three labels per caption (whether an object is there), those guessed from the value."""
    values, objects = (np.unique(data.labels[column], return_inverse=True)[1] for column in (ATTRIBUTE, "objects"))
    features, truth = np.eye(2)[values], np.eye(len(SUBSETS))[objects]
    images, parts, training = tuple(data.labels["image_id"]), [], 0
    for seed in range(seeds):
        split = image_split(values, 2, seed, ids=images)
        shares = guess_labels(features[split.train], truth[split.train], features[split.test])
        right = ((shares > 0.5) == (truth[split.test] > 0.5)).sum(axis=1)
        training = len(split.train)
        parts.append((np.full(len(split.test), seed), split.test, right))
    seed, image, right = (np.concatenate(column) for column in zip(*parts, strict=True))
    columns = {"right": right.astype(float), "labels": np.full(len(right), float(len(SUBSETS)))}
    return Estimate.read(Counts(images, values, columns, image, seed, training), part_of, 1.0, (0, 1), share=True)


TITLES = {
    "Q": "Q, accuracy of DBAC's and LIC's attacker",
    "LIC": "LIC of the captions",
    "BA": "b of BA",
    "DPA": "accuracy of DPA, A→T",
}
# Values, without their scale, that differ by less are the same.
CHANGE = 0.02


def known_sentence(rows: pd.DataFrame) -> str:
    """Which metrics rise from C1 to C4, and which of those that stay move where objects go with values."""
    rising, still, moved = [], [], []
    for name in SEES:
        of_metric = rows[rows["metric"] == name].set_index("model")
        values = of_metric["value"] / of_metric["scale"]
        by_set = values[list(IMBALANCE)]
        (rising if (by_set.diff().dropna() > CHANGE).all() else still).append(name)
        if name in still and CONTROL in values and values[CONTROL] > by_set.max() + CHANGE:
            moved.append(name)
    rise, stay = listed(rising) or "none", listed(still) or "none"
    text = f"{rise} rise with the bias of the verbs; {stay} do not see it."
    return f"{text} Where objects depend on values (control), {listed(moved)} see that." if moved else text


def printed_answers() -> pd.DataFrame:
    """The values of the DBAC paper's Table 3, on sets of a hundredth of the size: rows in RESULT_COLUMNS."""
    rows = published_results()
    rows = rows[(rows["paper"] == "dbac") & (rows["table"] == "3")]
    half = rows["spread"]
    return rows.assign(
        ci_low=rows["value"] - half,
        ci_high=rows["value"] + half,
        method="printed in DBAC, Table 3, on sets of 300 captions",
    )


# Metric here -> in the DBAC paper's Table 3: w_H with Q = accuracy, where values and objects are equally common, is Q.
PRINTED = {"Q": "DBAC_H", "LIC": "LIC_H", "BA": "BA_H", "DPA": "DPA_H"}


def known_table(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a metric, one column a set: value [95% interval]; on C1 to C4 also what it tends to, and as printed."""
    table, printed = [], printed_answers().set_index(["model", "metric"])
    for metric in SEES:
        cells, digits = {"metric": TITLES[metric]}, 1 if metric == "LIC" else 2
        for _, row in rows[rows["metric"] == metric].iterrows():
            name = row["model"]
            cells[name] = interval(row, digits)
            if name in IMBALANCE:
                value = printed.at[(name, PRINTED[metric]), "value"] * (100 if metric == "LIC" else 1)
                cells[name] += f"; known: {number(known_truth(name, metric), digits)}; printed: {number(value, digits)}"
        table.append(cells)
    return pd.DataFrame(table)


def known_basis(rows: pd.DataFrame) -> str:
    """n, seeds and attacker of the attacked rows."""
    first = rows[rows["metric"] == "Q"].iloc[0]
    basis = f"Attacker {first['encoder']}, {counted(first['seeds'], 'seed')} with {first['n']:,} test captions each."
    return (
        f"{basis} Value [95% interval over captions]. Printed: DBAC, Table 3, on sets of 300 captions; its w_H is Q, "
        "and its LIC_H is shown x100."
    )
