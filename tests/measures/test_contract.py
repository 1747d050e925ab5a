"""What every measure that the registry finds must keep: whoever adds one need not read the others."""

import json
import re
from dataclasses import MISSING, field, fields, make_dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from capbias_core.aggregate import by_name
from capbias_core.api import score
from capbias_core.attributes import get_attribute, plain_attribute
from capbias_core.errors import CapbiasError
from capbias_core.load.labels import mapping_details
from capbias_core.measures.base import Group, Measure
from capbias_core.measures.caption_quality import SCORERS
from capbias_core.measures.options import Option, Options
from capbias_core.measures.protocols import NAMES, PROTOCOLS, protocol_in, protocol_of, protocol_text
from capbias_core.measures.registry import MEASURES, METRICS, check
from capbias_core.prepare.java import PLAIN
from capbias_core.question import Question
from capbias_core.runs.plan import plan, spec_of, useful
from capbias_core.runs.run import estimates
from capbias_core.types import RESULT_COLUMNS
from capbias_core.worker import execute
from capbias_core.workspace.derived import cross, keep_crossed
from capbias_core.workspace.ingest import DEMO, keep_attributes, load_demo
from capbias_core.workspace.store import Workspace

# As little training as there can be, of measures that have such choices, and no program of Java.
QUICK = {"judge_epochs": 1, "picture_size": 32, "tokenizer": PLAIN}
# METEOR's counts of two captions of two words, of which one matches.
ONE_OF_TWO = np.bincount([0, 0, 1, 1, 4, 5, 20, 21, 22], minlength=23).astype(float)
# Measures that `score` and the pages ask for together, so that their choices share flags and controls; those that make
# an item (boxes, masks, captions) have a command of their own each.
TOGETHER = [own for own in MEASURES.values() if not own.makes]


def test_a_taken_name_or_flag_is_said_when_a_command_starts():
    own = next(own for own in TOGETHER if own.options.about())
    row, about = own.metrics[0], next(about for about in own.options.about().values() if about.flag)
    other = replace(own, name="other", options=Options, metrics=(replace(row, name="new"),), groups=())
    check([own, other])
    taken = make_dataclass("Taken", [("mine", str, field(metadata={"option": about}))], bases=(Options,), frozen=True)
    new = replace(row, name="new")

    for broken, named in (
        (replace(other, metrics=(row,)), row.name),
        (replace(other, metrics=(replace(row, name="letters"),)), "letters"),
        (replace(other, groups=(Group("any", "", ("none",)),)), "none"),
        (replace(other, options=taken), about.flag),
    ):
        with pytest.raises(CapbiasError, match=re.escape(named)):
            check([own, broken])
    with pytest.raises(CapbiasError, match="new"):
        by_name(new, replace(new, title="another"))
    with pytest.raises(ValidationError):
        replace(new, better="neither")


@pytest.mark.parametrize("measure", MEASURES.values(), ids=lambda own: own.name)
def test_a_measure_says_what_it_is_and_its_choices_can_be_written_down_and_refused(measure: Measure):
    assert MEASURES[measure.name] is measure and measure.title and measure.version >= 1 and measure.seconds > 0
    assert {name for group in measure.groups for name in group.metrics} <= {row.name for row in measure.metrics}
    usual = measure.options()
    assert measure.options.read(json.loads(json.dumps(usual.to_dict()))) == usual
    for own in fields(measure.options):
        about: Option = own.metadata["option"]
        assert about.help and not about.help.endswith(".") and own.default is not MISSING, own.name
        bounds = about.above, about.at_least, about.at_most
        wrong = [bound for bound in bounds[:1] if bound is not None]
        wrong += [bound + step for bound, step in zip(bounds[1:], (-1, 1), strict=True) if bound is not None]
        wrong += ["no such choice"] * bool(about.known)
        for value in [*wrong, float("nan"), [[3]], b"bytes"]:
            with pytest.raises(CapbiasError, match=own.name.replace("_", "[_ ]")):
                measure.options.read({own.name: value})


ALIGNED = {"name": "glove", "item": "0" * 16, "delta": 0.4}
# Measure, choice, a value that is not its default, and what a hurried user or a bundle may give for it.
TYPES = [
    ("lic", "seeds", 3, ("3", True, 2.5, 10**400)),
    ("lic", "test_share", 0.2, ("0.2", True, 10**400)),
    ("lic", "attacker", "rnn", (3, True, ["rnn"], {"name": "rnn"})),
    ("lic", "alignment", ALIGNED, ("glove", {"name": "glove"}, ALIGNED | {"item": "../x"}, ALIGNED | {"more": 1})),
    ("gender_score", "object_words", ("tiara",), ("tiara", {"tiara": 1}, 3, [3])),
    ("lic", "merge_masks", True, ("false", 0, None, [])),
    ("mask", "departures", {"tie": 0.5}, ("tie", ["tie"], 3)),
]


@pytest.mark.parametrize(("measure", "name", "meant", "wrong"), TYPES)
def test_a_choice_of_each_type_is_written_down_or_refused(measure, name, meant, wrong):
    options = MEASURES[measure].options
    changed = options.read({name: meant})
    assert changed != options() and options.read(json.loads(json.dumps(changed.to_dict()))) == changed
    for value in wrong:
        with pytest.raises(CapbiasError, match=name.replace("_", "[_ ]")):
            options.read({name: value})


def asked(*metrics: str, references: str = "human") -> Question:
    return Question(DEMO, ("amplifier",), "labels", "gender", metrics, references=references, seeds=1)


def speed(measure: Measure):
    """Measures that are too heavy for the web server's process train networks or read photographs."""
    return pytest.param(measure, marks=() if measure.in_process else pytest.mark.slow, id=measure.name)


def crossed_with_sky(workspace: Workspace, table: pd.DataFrame) -> str:
    """Its words are masked, but no word names a cell."""
    return keep_crossed(workspace, DEMO, cross(workspace, DEMO, "gender", "sky")).name


def one_value_without_words(workspace: Workspace, table: pd.DataFrame) -> str:
    own = replace(get_attribute("gender"), name="half", words={"Female": ("woman", "she"), "Male": ()})
    details = mapping_details(own, "gender", {value: value for value in own.values})
    return keep_attributes(workspace, table, "half", DEMO, "drawn", {"half": details}).name


def gender(workspace: Workspace, table: pd.DataFrame) -> str:
    return "gender"


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> tuple[Workspace, pd.DataFrame]:
    """500 labelled images of the demo, two human captions of each, and a second attribute, a column of labels."""
    found = Workspace(tmp_path_factory.mktemp("skies"))
    load_demo(found)
    labels = found.item("labels", "labels", DEMO)
    table = found.frame(labels.hash).head(500)
    found.keep("labels", "labels", table, DEMO, "bundled", labels.details)
    human = found.item("references", "human", DEMO)
    fewer = found.frame(human.hash).query("caption_index < 2")
    found.keep("references", "human", fewer, DEMO, "bundled", human.details)
    table = table.assign(sky=["blue", "grey"] * 250)
    mapped = mapping_details(plain_attribute("sky", ("blue", "grey")), "sky", {"blue": "blue", "grey": "grey"})
    keep_attributes(found, table, "sky", DEMO, "drawn", {"sky": mapped})
    return found, table


@pytest.mark.long
@pytest.mark.parametrize("attribute", [gender, crossed_with_sky, one_value_without_words])
@pytest.mark.parametrize("measure", [speed(own) for own in TOGETHER if own.metrics])
def test_every_metric_is_emitted_or_refused_aloud(demo, attribute, measure: Measure, monkeypatch):
    """Never silence or a traceback, whatever values have words: a row, or one line that says what is missing. And what
    is kept gives the same values again."""
    monkeypatch.setitem(SCORERS, "meteor", (lambda references, *_: np.tile(ONE_OF_TWO, (len(references), 1)), 0.5))
    workspace, table = demo
    name, names = attribute(workspace, table), {row.name for row in measure.metrics}
    quick = {choice: value for choice, value in QUICK.items() if choice in measure.options.about()}
    labels = "labels" if name == "gender" else name
    request = Question(DEMO, ("amplifier",), labels, name, tuple(names), "human", seeds=1, options=quick)
    try:
        specs, reasons = useful(plan(workspace, request), request)
    except CapbiasError as refusal:
        assert refusal.message
        return
    lost, emitted = {metric for metrics in reasons.values() for metric in metrics}, set()
    for spec in specs:
        workspace.enqueue(spec, DEMO)
        execute(str(workspace.folder), spec.run_id)
        run = workspace.run(spec.run_id)
        if run.status != "finished":
            # It lacks an input, which is no error of the code.
            assert not any("Traceback" in line for _, line in workspace.log_of(spec.run_id)), run.message
            lost |= names
            continue
        rows = workspace.results([spec.run_id])
        emitted |= set(rows["metric"])
        lost |= run.lacking.keys()
        assert list(rows.columns) == list(RESULT_COLUMNS) and set(rows["metric"]) <= names
        again = {key: found.value for key, found in estimates(run).items()}
        whole = [row for row in rows.itertuples() if not row.object and not row.group]
        own = {(row.metric, row.direction): row.value for row in whole}
        assert {key for key in own if METRICS[key[0]].reads} <= set(again), "what ranks captioners"
        same = {key: value for key, value in again.items() if key in own}
        assert same == pytest.approx({key: own[key] for key in same}, nan_ok=True)
    assert names - emitted - lost == set()


@pytest.mark.long
def test_a_version_makes_the_runs_of_its_measure_anew_and_no_others(demo, monkeypatch):
    light = [own for own in TOGETHER if own.in_process and own.metrics and not own.needs.vectors]
    request = replace(asked(*(own.metrics[0].name for own in light)), words=True)
    workspace, _ = demo
    before = plan(workspace, request)
    assert {spec.measure for spec in before} >= {own.name for own in light}
    for name in {spec.measure for spec in before}:
        with monkeypatch.context() as patched:
            patched.setitem(MEASURES, name, replace(MEASURES[name], version=MEASURES[name].version + 1))
            after = plan(workspace, request)
        changed = {old.measure for old, new in zip(before, after, strict=True) if old.run_id != new.run_id}
        assert changed == {name}
    assert [spec.run_id for spec in plan(workspace, request)] == [spec.run_id for spec in before]


# protocols

# Of each measure the share of images held out, as its paper has it: LIC section 5, DBAC section 5, ImageCaptioner2
# "Implementation Details" (20%; an eighth of the other 80% chooses the epoch, which is its 10%).
SHARES = {"lic": 0.1, "dbac": 0.2, "dpa": 0.2, "imagecaptioner2": 0.2, "vl_lic": 0.2}


def test_a_protocol_fills_what_is_not_given():
    asked = partial(Question.of, stored=True, attribute="gender")
    of_paper = asked(protocol="dbac")
    assert (of_paper.metrics, of_paper.attacker, of_paper.seeds) == (("dbac",), ("lstm",), None)
    assert of_paper.options == {"test_share": 0.2, "protocol": "dbac"}
    given = asked(metrics=("lic",), attacker="ngram", seeds=3, protocol="dbac", options={"test_share": 0.1})
    assert (given.metrics, given.attacker, given.seeds, given.options["test_share"]) == (("lic",), ("ngram",), 3, 0.1)
    assert asked().attacker == asked(protocol="custom").attacker == ("ngram",)
    assert asked().seeds is None
    assert asked(protocol="age").seeds == 3
    with pytest.raises(CapbiasError, match="DBAC|dbac"):
        asked(protocol="dabc")
    for measure, share in SHARES.items():
        default = {field.name: field.default for field in fields(MEASURES[measure].options)}
        protocol = PROTOCOLS[protocol_of(measure) or "dbac"]  # the DBAC paper measures DPA
        assert default["test_share"] == share == protocol.settings["test_share"]
    # An option that says the usual in words makes another run of the same numbers; and a captioner of transformers is
    # asked as it is, unless somebody names epochs.
    options = MEASURES["imagecaptioner2"].options
    chosen = options.read(asked(protocol="imagecaptioner2").choices)
    assert spec_of(MEASURES["imagecaptioner2"], chosen, {"model": "a"}).options == options().to_dict()


HASH = "0" * 16
GLOVE = {"name": "glove", "item": HASH, "delta": 0.4}
# Measure, options, and each deviation from the protocol that is chosen, or else the measure's own.
NAMED = [
    (
        "lic",
        {"attacker": "ngram", "seeds": 10, "test_share": 0.2},
        "lic protocol, but attacker ngram (paper: lstm_bi), test share 0.2 (paper: 0.1)",
    ),
    ("lic", {"attacker": "lstm_bi", "seeds": 10, "protocol": "age"}, "age protocol, but seeds 10 (paper: 3)"),
    (
        "lic",
        {"attacker": "lstm", "alignment": GLOVE, "test_share": 0.2, "protocol": "dbac"},
        "dbac protocol, but images balanced (paper: not balanced)",
    ),
    ("lic", {"protocol": "custom"}, ""),
    ("dbac", {"attacker": "lstm", "alignment": GLOVE, "protocol": "lic"}, "dbac protocol"),  # LIC's paper has no DBAC
    (
        "vl_lic",
        {},
        "imagecaptioner2 protocol, but backbone small network from scratch (paper: resnet50), text encoder lstm_bi "
        "(paper: bert)",
    ),
]


@pytest.mark.parametrize(("measure", "options", "text"), NAMED)
def test_the_chosen_protocol_and_each_deviation_are_named(measure, options, text):
    assert protocol_text(measure, MEASURES[measure].options.read(options)) == text


def test_results_name_the_chosen_protocol_and_what_the_data_change():
    """The notes say the same. BA's 100 captions of the paper are scaled to the captions that there are."""
    images = [str(number) for number in range(200)]
    labels = pd.DataFrame({"image_id": images, "gender": ["Female", "Male"] * 100})
    captions = [
        f"a {word} holds a {['cat', 'dog'][place // 2 % 2]}" for place, word in enumerate(["woman", "man"] * 100)
    ]
    frame = pd.DataFrame({"image_id": images, "caption": captions})
    asked = {"protocol": "dbac", "attacker": "ngram", "seeds": 2, "metrics": ("LIC", "ba", "dba", "dbac")}
    report = score({"a": frame}, labels, "gender", frame, **asked)
    named = {row["metric"]: protocol_in(row["method"]) for row in report.table.to_dict("records")}
    attacked = "attacker ngram (paper: lstm), alignment constant (paper: contextual (GloVe, 0.4))"
    words = "words with each value in 1 human captions or more (paper: 100)"
    assert named["LIC"] == ("dbac", f"images balanced (paper: not balanced), {attacked}")
    assert named["BA"] == named["BA_crossfit"] == ("lic", words)
    assert named["DBA_O"] == ("lic", "objects in 2 human captions or more (paper: no minimum)")
    assert named["DBAC"] == ("dbac", f"{attacked}, weights of the authors' code (paper: equations 5 to 8)")
    for _, differ in named.values():
        assert any(differ in note for note in report.notes)
    lic = MEASURES["lic"]
    run = {name: spec_of(lic, lic.options.read({"protocol": name}), {"model": "a"}).run_id for name in ("", *NAMES)}
    assert run[""] == run["lic"] == run["imagecaptioner2"] and len(set(run.values())) == 4  # nothing is computed twice
