"""`view NAME`: each answers a further question on results, with its own flags."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from cyclopts import Group

from capbias_core.aggregate import unlabelled
from capbias_core.aggregate.change import WORSE
from capbias_core.api import measured as measure_question
from capbias_core.api import ordered
from capbias_core.attackers import DEFAULT_ATTACKER, attacker_entry
from capbias_core.attributes import get_attribute, known_attributes
from capbias_core.cli.inputs import (
    ANSWER,
    INPUTS,
    UNTRAINED,
    WHAT,
    CollectionFlag,
    Flags,
    OutputFlag,
    PairFlags,
    Positive,
    SeedsFlag,
    Training,
    WorkspaceFlag,
    command,
    drawn,
    flag,
    given,
    inputs,
    known_collection,
    measure_choices,
    opened,
    own_folder,
)
from capbias_core.cli.run import outcome, run_all
from capbias_core.cli.terminal import (
    BAD_INPUT,
    DONE,
    RUN_FAILED,
    checked_output,
    say,
    ticking,
    write_file,
    write_output,
    write_table,
)
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.kinds import CAPTIONS, LABELS, REFERENCES
from capbias_core.load.published import published_results, read_human_scores, read_results
from capbias_core.load.read import read_texts
from capbias_core.load.vectors import read_vectors
from capbias_core.measures.alignment import DELTAS, NO_JAVA, of_same_images, sweep, sweep_table
from capbias_core.measures.options import Attacked
from capbias_core.measures.registry import MEASURES, METRICS, expand_metrics
from capbias_core.prepare import Tokens
from capbias_core.prepare.align import neighbours
from capbias_core.prepare.java import has_java
from capbias_core.prepare.text import cut_text
from capbias_core.question import DEFAULT_METRICS, Question, caption_files
from capbias_core.runs.condition_runs import AGAINST_CONDITION, plan_conditions
from capbias_core.runs.plan import Lack, lacking_model, left_out, plan
from capbias_core.spreadsheets import csv_text
from capbias_core.types import ORIGIN_COLUMNS, RESULT_COLUMNS, SUPPORT_COLUMNS, counted
from capbias_core.views.change import FAILED, PASSED, UNDECIDED, Runs, change_rows, chosen_metrics, gate, pair_scope
from capbias_core.views.conditions import COLUMNS, condition_rows
from capbias_core.views.consistency import alignment, proxy_scores
from capbias_core.views.consistency import consistency as consistency_rows
from capbias_core.views.known_answer import known_answers, printed_answers
from capbias_core.views.leaderboard import ASIDE, CAPTIONER
from capbias_core.views.lengths import CUTS, by_length, cut_of, keep_cuts
from capbias_core.views.published import PAPERS, beside_measured, beside_table, measured_rows, noted
from capbias_core.views.registry import VIEWS
from capbias_core.views.results import references_read, tables_read
from capbias_core.views.side_by_side import TOP
from capbias_core.views.slices import LEAST_IMAGES
from capbias_core.views.tables import row_table, to_csv
from capbias_core.views.texts import keywords as frequent_words
from capbias_core.views.texts import keywords_by_models, nearest_objects, text_results
from capbias_core.views.view import FORMATS, Scope, Shown, exported, scope
from capbias_core.views.word_comparison import MOST
from capbias_core.whole_files import typed_path
from capbias_core.workspace.conditions import condition_sets, taken_of_several
from capbias_core.workspace.ingest import read_frame
from capbias_core.workspace.labels import dropped_line, labels_for, resolve_attribute, table_with
from capbias_core.workspace.limited import within_limits
from capbias_core.workspace.slices import Slice, keep_slice
from capbias_core.workspace.spec import attribute_from
from capbias_core.workspace.vectors import check_delta

app = command(
    "view",
    """\
  capbias view by-value --collection coco --attribute gender
  capbias view consistency --results scores.csv""",
)
app.group_commands = Group("Views", sort_key=0)

HumanScores = Annotated[str | None, flag("human scores: a CSV with the columns model and value", "FILE", INPUTS)]


# Rows in RESULT_COLUMNS: CSV, or on a terminal one line per number.
_write_rows = partial(write_table, to_csv=to_csv, for_reader=row_table)


@dataclass(frozen=True, kw_only=True)
class ScopeFlags:
    """The flags of views of finished results: which comparison they read."""

    collection: CollectionFlag
    attribute: Annotated[str, flag("the attribute (default: as the page Answer)", "NAME", INPUTS)] = ""
    captioner: Annotated[list[str] | None, flag("captioners (default: all that were measured)", "NAME", INPUTS)] = None
    attacker: Annotated[str, flag("the attacker of the runs (default: of the best answer)", "NAME", INPUTS)] = ""
    seeds: Annotated[int | None, flag("their number of seeds (default: of the best answer)", "N", INPUTS)] = None
    references: Annotated[str, flag("human captions (default: of the best answer)", "NAME", INPUTS)] = ""
    workspace: WorkspaceFlag = None

    def answer(self, view: str, **options: Any) -> Shown:
        """What a view of VIEWS shows."""
        store = opened(self.workspace)
        known_collection(store, self.collection)
        chosen = (self.attribute, self.captioner or (), self.attacker, self.seeds, self.references)
        return VIEWS[view].answer(scope(store, self.collection, *chosen), **options)


ShownFlag = Annotated[
    str | None,
    flag(f"where to write it, as its ending says: {', '.join(FORMATS)} (default: stdout, as CSV)", "FILE", ANSWER),
]


def write_shown(shown: Shown, output: str | None) -> int:
    """A view for a reader, with its sentence and notes on stderr; or as a file."""
    path = checked_output(output)
    if path:
        content = exported(shown, path.name)
        write_file(content.encode() if isinstance(content, str) else content, path)
    for line in filter(None, (shown.sentence, *(f"note: {line}" for line in shown.notes))):
        say(line)
    if not path:
        write_table(shown.rows, None, to_csv=csv_text, for_reader=lambda _: shown.for_reader)
    return DONE


def _read(read: Callable[[Path], Any], path: str) -> Any:
    """A results table or human scores, within the limits of memory."""
    return within_limits(Path(path).name, read, typed_path(path))


# finished runs of a collection


@command(
    "by-value",
    """\
  capbias score --collection coco --attribute gender --metric lic
  capbias view by-value --collection coco --attribute gender""",
    app,
).default
def by_value(*, flags: Annotated[ScopeFlags, Flags], output: ShownFlag = None) -> int:
    """Leakage by group: LIC_M by labelled value, from finished runs of LIC."""
    return write_shown(flags.answer("by-value"), output)


@command(
    "slices",
    """\
  capbias view slices --collection coco
  capbias view slices --collection coco --objects dog skateboard \\
    --words "kitchen|cooking" --column skin
  capbias view slices --collection coco --search "cell phone" --save phones

Without a choice: the ten objects that most images have, else the ten content words of most human captions; and the
saved slices.""",
    app,
).default
def slices(
    *,
    flags: Annotated[ScopeFlags, Flags],
    objects: Annotated[list[str] | None, flag("objects of the collection", "NAME", WHAT)] = None,
    words: Annotated[list[str] | None, flag("words of human captions, | between alternatives", "WORDS", WHAT)] = None,
    column: Annotated[list[str] | None, flag("columns of stored tables, a slice per value", "COLUMN", WHAT)] = None,
    search: Annotated[list[str] | None, flag("texts in the captioner's captions", "TEXT", WHAT)] = None,
    metric: Annotated[str, flag("the metric of sentence and chart (default: LIC, or LIC_M)", "NAME", WHAT)] = "",
    images: Annotated[bool, flag("list the images of each slice instead", group=WHAT)] = False,
    least: Annotated[
        int, flag(f"images a slice needs for a number; fewer than {LEAST_IMAGES} are not tested", "N", WHAT)
    ] = LEAST_IMAGES,
    save: Annotated[str, flag("save the one slice that is named here, which is then always listed", "NAME", WHAT)] = "",
    output: ShownFlag = None,
) -> int:
    """Where it amplifies: LIC, error and refusals in slices of images, beside the other images."""
    chosen = {"objects": objects, "words": words, "columns": column, "searches": search}
    given_ones = {name: tuple(values or ()) for name, values in chosen.items()}
    shown = flags.answer("slices", **given_ones, metric=metric, images=images, least=least)
    if save:
        rules = list(dict.fromkeys(shown.rows["rule"]))
        if len(rules) != 1:
            raise CapbiasError(f"--save needs one slice, and here are {len(rules)}.", "Name one of them alone.", "save")
        keep_slice(opened(flags.workspace), flags.collection, Slice.parse(rules[0]), save)
    return write_shown(shown, output)


@command(
    "leaderboard",
    """\
  capbias view leaderboard --collection coco
  capbias view leaderboard --collection coco --sort words --output l.tex

Each attribute by the comparison that answers best. Captioners that were measured with other settings or on different
images are marked and not ranked.""",
    app,
).default
def leaderboard(
    *,
    collection: CollectionFlag,
    workspace: WorkspaceFlag = None,
    sort: Annotated[
        str,
        flag(
            f"an attribute, {', '.join((CAPTIONER, *ASIDE))} (default: the attribute of most captioners)", "NAME", WHAT
        ),
    ] = "",
    output: ShownFlag = None,
) -> int:
    """Captioners by attributes: LIC with its interval and verdict, images, caption length and refusals."""
    store = opened(workspace)
    known_collection(store, collection)
    return write_shown(VIEWS["leaderboard"].answer(scope(store, collection), sort=sort), output)


GATE = {FAILED: RUN_FAILED, UNDECIDED: BAD_INPUT, PASSED: DONE}
ANY_PAIR = PairFlags()  # as if none of its flags was given


def pair(flags: PairFlags, names: Sequence[str], metrics: Sequence[str]) -> Scope:
    """The scope of two captioners: of a collection, or of files, which are scored by these metrics."""
    if flags.collection:
        if len(names) != 2:
            raise CapbiasError(f"Expected two captioners, got {len(names)}.", "Name the one before and the one after.")
        flags.check()
        store = opened(flags.workspace)
        known_collection(store, flags.collection)
        first, second = names
        chosen = (flags.attribute, flags.attacker, flags.seeds, flags.references)
        return pair_scope(store, flags.collection, first, second, *chosen)
    given = {"references": flags.references or None, "attacker": [flags.attacker] if flags.attacker else None}
    store, resolved = inputs(flags, flags.question(tuple(names), metrics=metrics, **given))
    if len(resolved.captions) != 2:
        found = ", ".join(resolved.captions)
        raise CapbiasError(f"Expected captions of two captioners, got {len(resolved.captions)}: {found}.")
    for line in measure_question(store, resolved, run_all, say).failed:
        say(f"error: {line}")
    first, second = resolved.captions
    return pair_scope(store, resolved.collection, first, second, resolved.attribute)


@command(
    "change",
    """\
  capbias view change nic nic_debiased --collection coco --attribute gender
  capbias view change nic nic_debiased --collection coco --fail-if worse \\
    --metric LIC error
  capbias view change old.json new.json labels.csv refs.json \\
    --attribute gender --fail-if worse

Before and after are the first and the second captioner; runs with other settings are never compared. --fail-if worse
ends with 1 if a metric of --metric is significantly worse (default: LIC; LIC_M without human captions), with 2 if that
cannot be decided, such as a metric that was not measured, else with 0. Significant: p below 0.05, corrected by Holm
over the metrics of --metric.""",
    app,
).default
def change(
    *names: Annotated[
        str, flag("two captioners; without --collection, files, whose types are detected", "NAME", INPUTS)
    ],
    flags: Annotated[PairFlags, Flags] = ANY_PAIR,
    metric: Annotated[
        list[str] | None, flag("metrics to test (default: LIC, and what it may cost)", "NAME", WHAT)
    ] = None,
    fail_if: Annotated[str | None, flag("exit code 1 if a tested metric is significantly worse", WORSE, WHAT)] = None,
    words: Annotated[bool, flag("words that changed most in the value that they go with", group=WHAT)] = False,
    output: ShownFlag = None,
) -> int:
    """Before and after: the change of each metric between two captioners, paired over images; a gate for CI."""
    if fail_if not in (None, WORSE):
        raise unknown_name("--fail-if", fail_if, [WORSE])
    if fail_if and words:
        raise CapbiasError("--words tests no metric.", "Leave out --words or --fail-if.")
    tested = chosen_metrics(metric or ())
    found = pair(flags, names, tested or DEFAULT_METRICS)
    if words:
        return write_shown(VIEWS["change-words"].answer(found), output)
    if fail_if and not tested:
        tested = [Runs(found).answering]
    shown = VIEWS["change"].answer(found, metrics=tested)
    code = write_shown(shown, output)
    if fail_if:
        ended, text = gate(change_rows(found, tested))
        code = GATE[ended]
        say(text)
    return code


@command(
    "words",
    """\
  capbias explain --collection coco --captions sat --attribute gender
  capbias view words --collection coco --captioner sat --output words.csv

One row per captioner and word: what it adds to the logit (value, ci_low, ci_high), the same in human captions of the
same images (human), and the difference. Intervals are over seeds and images, and hold for all tested words together in
95% of cases (Bonferroni); a word without one was not tested. n: images whose caption has the word.""",
    app,
).default
def words(
    *,
    flags: Annotated[ScopeFlags, Flags],
    top: Annotated[Positive, flag(f"words per captioner (default: {MOST})", "N", ANSWER)] = MOST,
    output: ShownFlag = None,
) -> int:
    """What each word adds, with intervals, beside human captions."""
    return write_shown(flags.answer("words", top=top), output)


@command(
    "side-by-side",
    """\
  capbias explain --collection coco --captions sat --attribute gender
  capbias explain --collection coco --captions oscar --attribute gender
  capbias view side-by-side --collection coco --captioner sat oscar --top 20

One row per image and captioner, of the images on which they disagree most. disagreement: largest minus smallest
probability of the labelled value over the captioners; guess, bias_score: the attacker's guess for the caption and its
probability; only_here: words that no other caption of the image has.""",
    app,
).default
def side_by_side(
    *,
    flags: Annotated[ScopeFlags, Flags],
    top: Annotated[Positive, flag(f"images (default: {TOP})", "N", ANSWER)] = TOP,
    output: ShownFlag = None,
) -> int:
    """Captions of 2 to 6 captioners on the images on which they disagree most."""
    return write_shown(flags.answer("side-by-side", top=top), output)


@command(
    "conditions",
    """\
  capbias import sat_masked_person.json --captioner sat --condition person
  capbias view conditions --collection "my captions" --captioner sat \\
    --attribute gender race

One row per metric and condition. masked: what was masked; model: the set of captions. to_original: the value minus
that on the original photographs, paired over the images in both sets; original_there: the original value on those
images; to_neutral: the value minus the metric's neutral point (chance, for LIC_M). Differences have 95% intervals
(_low, _high). dba gives DBA_G, which is BA→ from T to A. Missing results are measured first.""",
    app,
).default
def conditions(
    *,
    collection: CollectionFlag,
    captioner: Annotated[
        list[str] | None, flag("captioners (default: all with captions under two conditions or more)", "NAME", INPUTS)
    ] = None,
    attribute: Annotated[list[str], flag("protected attributes", "NAME", INPUTS)],
    references: Annotated[
        str, flag("human captions (default: those of the best answer, else of most images)", "NAME", INPUTS)
    ] = "",
    set: Annotated[
        list[str] | None,
        flag("sets to measure if a captioner has several of one condition (default: the newest)", "NAME", INPUTS),
    ] = None,
    workspace: WorkspaceFlag = None,
    metric: Annotated[
        list[str] | None,
        flag(f"one or more of: {', '.join(AGAINST_CONDITION)} (default: all that the collection allows)", "NAME", WHAT),
    ] = None,
    measured: Annotated[bool, flag("print finished results, and run nothing", group=WHAT)] = False,
    training: Annotated[Training, Flags] = UNTRAINED,
    seeds: SeedsFlag = None,
    output: OutputFlag = None,
) -> int:
    """Effect of masking: a captioner's metrics for each condition of the photographs, as CSV."""
    path, chosen, sets = checked_output(output), given(training, Attacked), tuple(set or ())
    attacker = chosen.pop("attacker", DEFAULT_ATTACKER)
    code, specs = DONE, {}
    store = opened(workspace)
    known_collection(store, collection)
    known = condition_sets(store, collection)
    captioners = captioner or [name for name, sets_of in known.items() if len(sets_of) > 1]
    if not captioners:
        raise CapbiasError(
            f"No captioner of {collection} has captions of masked photographs.",
            "Import captions of the same photographs, original and masked, with --captioner NAME --condition NAME.",
        )
    for name in captioners:
        for line in taken_of_several(store, collection, name, sets):
            say(f"note: of several sets of {name}, {line}; choose with --set")
    tables, human = tables_read(store, collection), references_read(store, collection)
    if references:
        human = dict.fromkeys(attribute, store.item("references", references, collection))
    pairs = [(name, of) for name in captioners for of in attribute]
    if not measured:
        for name, of in pairs:
            against = human[of].name if of in human else ""
            asked = (attacker, drawn(seeds), tuple(metric or AGAINST_CONDITION), against, chosen, sets)
            planned = plan_conditions(store, collection, name, of, *asked, table=tables.get(of))
            specs |= {spec.run_id: spec for spec in planned.specs}
            for line in planned.lacking:
                say(f"note: {line}")
        code = outcome(run_all(store, list(specs.values()), collection))
    rows_of = partial(condition_rows, store, collection, attacker=attacker_entry(attacker).name, chosen=sets)
    parts = [
        rows_of(captioner=name, attribute=of, table=tables.get(of), references=human.get(of)) for name, of in pairs
    ]
    frame = pd.concat(parts, ignore_index=True)
    if len(frame):
        write_output(csv_text(frame[list(COLUMNS)]), path)
    elif code == DONE:
        raise CapbiasError(
            "No number is measured already." if measured else "No captioner has numbers under two conditions.",
            "Leave out --measured to measure it." if measured else "The lines above say what is missing.",
        )
    return code


@command(
    "lengths",
    """\
  capbias view lengths --collection coco --captioner llava_long vinvl \\
    --attribute gender --output lengths.csv

One row per metric and cut: of (the captioner), cut, words (average caption length), then the columns of `score`.
Captions shorter than a cut stay whole. The human captions are not cut.""",
    app,
).default
def lengths(
    *,
    collection: CollectionFlag,
    captioner: Annotated[list[str], flag("caption sets, as they were written", "NAME", INPUTS)],
    attribute: Annotated[str, flag("the protected attribute", "NAME", INPUTS)] = "gender",
    references: Annotated[str, flag("human captions (default: none, LIC_M alone)", "NAME", INPUTS)] = "",
    cut: Annotated[
        list[int] | None,
        flag(f"after how many words; 0: after the first sentence (default: {' '.join(map(str, CUTS))})", "WORDS", WHAT),
    ] = None,
    attacker: Annotated[str, flag("the attacker", "NAME", WHAT)] = DEFAULT_ATTACKER,
    seeds: SeedsFlag = None,
    workspace: WorkspaceFlag = None,
    output: OutputFlag = None,
) -> int:
    """Control for caption length: cut captions after more and more words, and score each cut."""
    path, sets, cuts = checked_output(output), [], CUTS if cut is None else cut
    store = opened(workspace)
    known_collection(store, collection)
    for name in captioner:
        shortened = keep_cuts(store, collection, name, cuts)
        sets += [item.name for item in shortened]
        if missing := [text for text in map(cut_text, cuts) if text not in map(cut_of, shortened)]:
            say(f"note: {name}: {', '.join(missing)} cut no caption and have no rows.")
    table = table_with(store.items("attributes", collection), attribute).name
    more = {"attacker": attacker, "seeds": drawn(seeds)}
    specs = plan(store, Question(collection, (*captioner, *sets), table, attribute, ("lic",), references, **more))
    runs = run_all(store, specs, collection)
    rows = by_length(store, collection, store.results({spec.run_id for spec in specs}))
    write_output(csv_text(rows), path)
    return outcome(runs) if runs else DONE


# results tables


@command(
    "consistency",
    """\
  capbias view consistency --output published.csv
  capbias view consistency --results scores.csv --human people.csv

One row per number, in the columns of `score`. The column metric is one of:

  cv                    sample standard deviation / |mean| of a captioner's values across encoders
  conflict_score        % of captioners that one of two encoders puts above 0 and the other does not
  clear_conflict_score  % of captioners whose intervals by two encoders lie on different sides of 0
  ranking_consistency   Pearson between two encoders over captioners
  human_alignment       Pearson with the human score over captioners
  mask_correlation      of metrics that see the photographs: Pearson over captioners between two ways of masking them
  mask_difference       of one captioner: the second way of masking minus the first

The column condition names the metric, such as LIC, and after a semicolon its condition; encoder names the encoders;
n counts encoders (cv) or captioners; method names the method, or after `blank:` why there is no value. Human scores
are the rows human_guess of the table, or a CSV. Names match regardless of case and punctuation.""",
    app,
).default
def consistency(
    *,
    results: Annotated[
        str | None, flag("a results table, as `score` writes it (default: the papers' printed figures)", "FILE", INPUTS)
    ] = None,
    human: HumanScores = None,
    output: OutputFlag = None,
) -> int:
    """Agreement between encoders, for each metric of a results table, as CSV."""
    path = checked_output(output)
    frame = _read(read_results, results) if results else published_results()
    rows = consistency_rows(frame, _read(read_human_scores, human) if human else None)
    if rows.empty:
        raise CapbiasError(
            "This results table has neither several encoders nor human scores.",
            "Score with two attackers, or add --human.",
        )
    if blank := int(rows["value"].isna().sum()):
        say(f"note: {counted(blank, 'value')} of {len(rows):,} left blank; the column method of the CSV says why")
    write_table(rows, path, to_csv=to_csv, for_reader=lambda rows: row_table(rows.dropna(subset=["value"])))
    return DONE


@command(
    "published",
    """\
  capbias view published --paper dbac --table 10
  capbias view published --collection coco --output published.csv

One row per printed value and measured value of the same thing. note: what in the paper contradicts the printed value.
holds: whether the measured 95% interval contains it, or why that is not decided.""",
    app,
).default
def published(
    *,
    paper: Annotated[str | None, flag(f"one of: {', '.join(PAPERS)} (default: all)", "NAME", WHAT)] = None,
    table: Annotated[str | None, flag("its table, such as 10 or 12a (default: all)", "TABLE", WHAT)] = None,
    collection: Annotated[str | None, flag("measured values of this collection beside", "NAME", INPUTS)] = None,
    workspace: WorkspaceFlag = None,
    output: OutputFlag = None,
) -> int:
    """The papers' printed values, their contradictions and, with --collection, measured values beside them."""
    path, rows = checked_output(output), published_results()
    for name, wanted in (("paper", paper), ("table", table)):
        if wanted and wanted not in set(rows[name]):
            raise unknown_name(name, wanted, dict.fromkeys(rows[name]))
        rows = rows[rows[name] == wanted] if wanted else rows
    measured = pd.DataFrame(columns=list(RESULT_COLUMNS))
    if collection:
        store = opened(workspace)
        known_collection(store, collection)
        measured = measured_rows(store, collection)
    pairs = noted(beside_measured(rows, measured)).drop(columns=[*ORIGIN_COLUMNS, *SUPPORT_COLUMNS])
    write_table(pairs, path, to_csv=csv_text, for_reader=beside_table)
    return DONE


@command(
    "anonymous-bench",
    """\
  capbias view anonymous-bench --captions nic.json sat.json fc.json \\
    --attribute gender --output proxy.csv
  capbias view anonymous-bench --captions nic.json sat.json fc.json \\
    --attribute gender --results scores.csv --human people.csv

The photographs do not show the value; the captions need no labels. human_guess_proxy is the share of captions that
name a value: a proxy for whether people can guess it, not their answers. proxy_alignment (--results) is the Pearson of
each metric with the proxy over captioners; human_alignment (--human) is that with people's scores, also of the proxy.
""",
    app,
).default
def anonymous_bench(
    *,
    captions: Annotated[
        list[str], flag("files of captions, one per captioner; with --collection, names", "FILE", INPUTS)
    ],
    collection: Annotated[str | None, flag("use a workspace's collection, and names for files", "NAME", INPUTS)] = None,
    attribute: Annotated[str, flag("an attribute with words, such as gender, or a TOML file", "NAME", INPUTS)],
    results: Annotated[
        str | None, flag("metrics of the same captioners, as `score` writes them", "FILE", INPUTS)
    ] = None,
    human: HumanScores = None,
    workspace: WorkspaceFlag = None,
    output: OutputFlag = None,
) -> int:
    """Share of captions that name a value, though the image shows no identifiable person (AnonymousBench), as CSV."""
    path = checked_output(output)
    if collection:
        store = opened(workspace)
        items = [store.item("captions", name, collection) for name in captions]
        sets = {item.name: store.frame(item.hash) for item in items}
    else:
        sets = {file.item_name: read_frame(file.source, CAPTIONS) for file in caption_files(captions)}
    scores = proxy_scores(sets, get_attribute(attribute, own_folder(workspace, of_files=False)))
    measured = [_read(read_results, results)] if results else []
    parts = [scores]
    for table in measured:
        rows = alignment(table, scores.set_index("model")["value"] / 100.0)
        method = rows["method"].str.replace("the human score", "the proxy for human guesses")
        parts.append(rows.assign(metric="proxy_alignment", method=method))
    if human:
        people = _read(read_human_scores, human)
        parts += [alignment(table, people) for table in (scores, *measured)]
    say("note: human_guess_proxy is a proxy for people's guesses; AnonymousBench asks people.")
    _write_rows(pd.concat([part for part in parts if len(part)], ignore_index=True), path)
    return DONE


@command(
    "known-answer",
    """\
  capbias view known-answer --output known.csv

Four sets, the DBAC paper's C1 to C4 made 100 times as large. Women, men and objects are balanced and independent; only
the verbs differ, so that the best possible accuracy is 60, 70, 80 and 90%. One row per set and metric: Q (accuracy of
the attacker ngram), LIC (x100), BA (b) and DPA (accuracy). The column method gives the expected value.""",
    app,
).default
def known_answer(
    *,
    times: Annotated[Positive, flag("size, as a multiple of the paper's (default: 100)", "N", WHAT)] = 100,
    seeds: SeedsFlag = None,
    output: OutputFlag = None,
) -> int:
    """Metrics of caption sets with a known answer: which metrics see a bias in the language alone."""
    path = checked_output(output)
    rows = known_answers(times, drawn(seeds), lambda share, name: say(f"{name} ({share:.0%} done)"))
    _write_rows(pd.concat([rows, printed_answers()], ignore_index=True), path)
    return DONE


# files without a workspace


@command(
    "align",
    """\
  capbias view align --captions sat.json --references captions.json \\
    --vectors glove.6B.300d.txt --attribute gender --delta 0 0.5 1

One row per delta, all x100, with 95% intervals over images (_low, _high): contextual, the share of unknown words (by
count) that became their nearest word and not <unk>; unknown, the share of all words that became <unk>; METEOR between
human captions before and after, and under constant alignment (_constant). --attribute masks its words first, as for an
attacker; --labels keeps labelled images only. For a collection use: capbias score --metric alignment.""",
    app,
).default
def align(
    *,
    captions: Annotated[str, flag("a captioner's captions", "FILE", INPUTS)],
    references: Annotated[str, flag("human captions of the same images", "FILE", INPUTS)],
    vectors: Annotated[str, flag("word vectors: GloVe, word2vec or fastText", "FILE", INPUTS)],
    labels: Annotated[str | None, flag("a table of labels: use its labelled images only", "FILE", INPUTS)] = None,
    attribute: Annotated[
        str | None,
        flag(f"mask its words: a shipped one ({', '.join(known_attributes())}), or a TOML file", "NAME", INPUTS),
    ] = None,
    delta: Annotated[list[float] | None, flag("cosine distances (default: 0 0.1 ... 1)", "DISTANCE", WHAT)] = None,
    output: OutputFlag = None,
) -> int:
    """Effect of vocabulary alignment on human captions, at each delta, as CSV."""
    for distance in delta or ():
        check_delta(distance)
    path = checked_output(output)
    if labels and not attribute:
        raise CapbiasError("--labels needs --attribute.", "Name the attribute that the table labels.")
    frames = [read_frame(references, REFERENCES), read_frame(captions, CAPTIONS)]
    masked = get_attribute(attribute) if attribute and not labels else None
    if attribute and labels:
        table = read_frame(labels, LABELS)
        details = resolve_attribute(table, attribute)
        say(dropped_line(table, details))
        masked = attribute_from(details["attribute"])
        labelled = labels_for(table, masked, details["column"], details["mapping"]).values.index
        frames = [frame[frame["image_id"].isin(labelled)] for frame in frames]
    human = of_same_images(*frames)
    texts, model_texts = (Tokens.of(frame["caption"]) for frame in (human, frames[1]))
    if masked:
        texts, model_texts = texts.masked(masked), model_texts.masked(masked)
    words, known = frozenset(texts.words), frozenset(model_texts.words)
    near = neighbours(words, known, read_vectors(typed_path(vectors), words | known))
    if not has_java():
        say(f"note: {NO_JAVA}")
    with ticking() as tick:
        rows = sweep(human["image_id"], unlabelled, texts, known, near, tuple(delta or DELTAS), tick)
    write_output(csv_text(sweep_table(rows)), path)
    return DONE


OF_TEXTS = [measure for measure in MEASURES.values() if measure.of_texts]
TEXT_METRICS = ", ".join(group.name for measure in OF_TEXTS for group in measure.groups)
DEFAULT_TEXT_METRICS = ("cooccurrence",)


@dataclass(frozen=True, kw_only=True)
class TextChoices(measure_choices(OF_TEXTS, left_out=("objects_from",))):
    """Choices of measures that read texts."""


@command(
    "text",
    """\
  capbias view text --input lines.txt --attribute gender --per-object
  capbias view text --input profiles.csv --column description \\
    --attribute gender --lead "a {word} says:" --object-words family coffee \\
    --metric gs --language-model gpt2 --sentence-encoder minilm

One text per line, or a column of a table. Objects are those named in a text. Intervals are over texts.""",
    app,
).default
def text(
    *,
    input: Annotated[str, flag("one text per line, or a table (CSV, Parquet..)", "FILE", INPUTS)],
    column: Annotated[str | None, flag("the column of texts (default: detected)", "COLUMN", INPUTS)] = None,
    label_column: Annotated[
        str | None, flag("a column of labels, used instead of the value named in a text", "COLUMN", INPUTS)
    ] = None,
    attribute: Annotated[str, flag("a known attribute, or a TOML file", "NAME", INPUTS)],
    metric: Annotated[
        list[str] | None,
        flag(f"one or more of: {TEXT_METRICS} (default: {' '.join(DEFAULT_TEXT_METRICS)})", "NAME", WHAT),
    ] = None,
    per_object: Annotated[bool, flag("also a row for each object", group=WHAT)] = False,
    lead: Annotated[
        str,
        flag("prefix of a text that names no value, such as 'a {word} says:' (default: skip the text)", "TEXT", WHAT),
    ] = "",
    keywords: Annotated[
        int, flag("also use the N nouns, verbs, adjectives and adverbs in most texts as objects", "N", WHAT)
    ] = 0,
    keywords_per_text: Annotated[
        int,
        flag(
            "take as objects of each text its N words nearest to it by --sentence-encoder; with --masked-model P(c) is "
            "their cloze probability",
            "N",
            WHAT,
        ),
    ] = 0,
    keyword_table: Annotated[
        str | None, flag("write the keywords of each text, with similarity and cloze probability", "FILE", WHAT)
    ] = None,
    nearest: Annotated[
        int, flag("instead of metrics, the N objects nearest to each value's word by --word-vectors", "N", WHAT)
    ] = 0,
    word_vectors: Annotated[str | None, flag("word vectors for --nearest", "FILE", INPUTS)] = None,
    choices: Annotated[TextChoices, Flags] = TextChoices(),
    output: OutputFlag = None,
) -> int:
    """Values and objects in plain texts, without images."""
    wanted, path = expand_metrics(metric or DEFAULT_TEXT_METRICS), checked_output(output)
    of, name, options = get_attribute(attribute), Path(input).stem, given(choices)
    if bool(nearest) != bool(word_vectors):
        raise CapbiasError("--nearest needs --word-vectors, and they need --nearest.", "Give both, or neither.")
    if keyword_table and not keywords_per_text:
        raise CapbiasError("--keyword-table needs --keywords-per-text.", "Say how many keywords a text has.")
    texts, values = read_texts(typed_path(input), column, label_column)
    if keywords > 0:
        words = frequent_words(texts, of, keywords)
        say(f"note: keywords: {', '.join(words) or 'none'}")
        options["object_words"] = [*options.get("object_words", ()), *words]
    if word_vectors:
        read = partial(read_vectors, Path(word_vectors))
        table = nearest_objects(texts, of, nearest, read, options.get("object_words", ()))
        write_table(table, path, to_csv=csv_text, for_reader=lambda rows: rows.round({"cosine": 3}))
        return DONE
    of_texts = None
    if keywords_per_text > 0:
        of_texts = keywords_by_models(texts, of, keywords_per_text, options)
        if keyword_table:
            write_output(csv_text(of_texts), checked_output(keyword_table))
    results = text_results(texts, name, of, wanted, options, values, lead, keywords=of_texts)
    say(f"note: {results.note}")
    missing: dict[Lack, list[str]] = {}
    for lacking in (name for name in wanted if name not in set(results.rows["metric"])):
        model = METRICS[lacking].needs.model
        reason = lacking_model(model) if model else Lack("no text gives it a value")
        missing.setdefault(reason, []).append(lacking)
    lines = left_out(missing)
    if results.rows.empty:
        raise CapbiasError(f"These texts give none of the metrics: {'; '.join(lines)}.", "Ask for another metric.")
    for line in lines:
        say(f"warning: {line}")
    rows = ordered(results.rows, [name], wanted)
    _write_rows(pd.concat([rows, ordered(results.by_object, [name], wanted)]) if per_object else rows, path)
    return DONE
