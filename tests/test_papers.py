"""The scripts of examples/papers run, and what they print follows from the papers' tables; stand-ins where captions or
weights are missing."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from capbias_core.prepare import java
from capbias_core.resources import DEMO_FOLDER

PAPERS = Path(__file__).resolve().parents[1] / "examples" / "papers"
NAMES = ("nic", "sat", "fc", "att2in", "updn", "transformer", "oscar", "nic_plus", "nic_equalizer")
DBAC_NAMES = (*NAMES[:7], "nic_equalizer", "bakllava", "blip", "florence", "llava", "vit_gpt2")


def script(name: str) -> ModuleType:
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(f"paper_{name}", PAPERS / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def against(found: pd.DataFrame, claim: str, *columns: str) -> set:
    """Where printed numbers do not agree with a claim."""
    rows = found[found["claim"].str.contains(claim) & (found["printed numbers"] != "agree")]
    assert found["claim"].str.contains(claim).any()
    return set(rows[list(columns)].itertuples(index=False, name=None))


def test_claims_by_printed_numbers():
    lic = script("lic_claims").main([])
    keys = ("paper", "table", "encoder")
    assert against(lic, "gender bias.$", *keys) == {("lic", "2", "bert_ft"), ("repro", "2", "bert_ft")}
    assert against(lic, "racial", *keys) == {("repro", "3", "bert_ft"), ("repro", "3", "bert_pre")}
    assert against(lic, "the order", *keys) == {("repro", "2", "bert_pre")}
    assert against(lic, "NIC\\+Equalizer", *keys) == set()
    assert against(lic, "age", *keys) == {("repro", "4", name) for name in ("lstm_bi", "bert_ft", "bert_pre")}
    signs = lic[lic["claim"].str.contains("the sign") & (lic["printed numbers"] == "agree")]
    agreeing = {
        ("lic", "2", "bert_pre"),
        ("lic", "S1", "bert_ft"),
        ("lic", "S1", "bert_pre"),
        ("repro", "2", "bert_pre"),
    }
    assert set(signs[list(keys)].itertuples(index=False, name=None)) == agreeing
    dbac = script("dbac_claims").main([])
    cases = {
        "All 13": 1,
        "8 of them": 11,
        "NIC\\+Equalizer": 1,
        "Contextual": 6,
        "T→A of BLIP": 2,
        "Only DBAC": 6,
        "CV": 4,
    }
    assert {claim: dbac["claim"].str.contains(claim).sum() for claim in cases} == cases
    assert against(dbac, "8 of them", "table") == {("10",), ("12a",)}
    assert against(dbac, "Contextual", "table", "attribute") == {("16", "race")}, "three are equal to three decimals"
    rising = {("gender", "DPA"), ("gender", "BA"), ("race", "BA")}  # BA→ of race is −0.96 twice
    assert against(dbac, "Only DBAC", "attribute", "metric") == rising
    for claim in ("All 13", "NIC\\+Equalizer", "T→A of BLIP", "CV"):
        assert against(dbac, claim, "table") == set()
    words = script("gender_score_claims").main()
    assert against(words, "toward men", "encoder") == {("word2vec",), ("glove",), ("fasttext",), ("gn_glove",)}
    assert set(words["claim"][words["printed numbers"] == "not decided"]) == {"Our score aligns closely with counting."}


def results(path: Path, metric: str, ends: dict[str, tuple[float, float]], **more) -> str:
    """A table of results as `score` writes it."""
    usual = {"attribute": "gender", "encoder": "lstm_bi", "direction": "", "coverage": "", "group": "", "verdict": ""}
    rows = [
        {"model": name, "metric": metric, "value": (low + high) / 2, "ci_low": low, "ci_high": high, "run_id": name}
        for name, (low, high) in ends.items()
    ]
    pd.DataFrame(rows).assign(**(usual | more)).to_csv(path, index=False, mode="a", header=not path.exists())
    return str(path)


ORDER = dict.fromkeys(NAMES, (3.0, 4.0)) | {"nic": (1.0, 2.0), "nic_equalizer": (5.0, 6.0)}
CLAIMS = ("gender bias.$", "NIC\\+Equalizer", "the order")
# Intervals of LIC by lstm_bi -> the verdicts on CLAIMS.
MEASURED = {
    "clear": (ORDER, ("agree", "agree", "agree")),
    "open": (ORDER | {"fc": (-1.0, 3.0), "nic_equalizer": (2.0, 4.0)}, ("not decided",) * 3),
    "against": (ORDER | {"fc": (-3.0, -1.0)}, ("disagree", "agree", "disagree")),
    "one missing": ({name: ORDER[name] for name in NAMES[1:]}, ("not decided",) * 3),
}


@pytest.mark.parametrize(("ends", "verdicts"), MEASURED.values(), ids=MEASURED)
def test_measured_numbers_decide_only_by_whole_intervals(tmp_path, ends, verdicts):
    found = script("lic_claims").main(["--results", results(tmp_path / "scores.csv", "LIC", ends)])
    for claim, verdict in zip(CLAIMS, verdicts, strict=True):
        rows = found[found["claim"].str.contains(claim) & (found["encoder"] == "lstm_bi")]
        assert set(rows["measured numbers"]) == {verdict}, claim
    assert set(found.loc[found["encoder"] != "lstm_bi", "measured numbers"]) == {"not decided"}


def test_measured_dbac_has_a_sign_only_beyond_an_attacker_that_reads_nothing(tmp_path):
    for name, added, verdict in (("beyond", -5.0, "agree"), ("not", -1.0, "not decided")):
        path, more = tmp_path / f"{name}.csv", {"encoder": "lstm", "direction": "A->T"}
        results(path, "DBAC", dict.fromkeys(DBAC_NAMES, (-40.0, -38.0)), **more)
        given = results(path, "DBAC_added", dict.fromkeys(DBAC_NAMES, (added, added + 2)), **more)
        found = script("dbac_claims").main(["--results", given]).set_index("claim")["measured numbers"]
        assert found["All 13 models reduced A→T."] == verdict
        assert set(found["8 of them increased T→A."]) == {"not decided"}


def test_judges_masks_and_people_as_printed():
    found = script("imagecaptioner2_agreement").main()
    printed = found.dropna(subset="printed")
    assert len(printed) == 6 and printed["measured"].to_numpy() == pytest.approx(printed["printed"], abs=0.005)
    masks = found[found["between"].str.contains("yolox") & found["between"].str.contains("gt_masks")]
    people = np.array([2.7, 1.6, 6.3, 6.2, 6.6, 6.2, 5.1, 3.2, 5.9])
    yolox = np.array([2.9, 1.4, 6.5, 6.3, 7.1, 6.1, 5.4, 3.3, 6.0])
    assert masks["measured"].tolist() == pytest.approx([np.corrcoef(people, yolox)[0, 1], 0.5])


def test_known_sets_by_hand():
    """Of 300 captions of C3 each value has 150, and beside each object 50; their own verb has 40 of 50."""
    module = script("dbac_controlled_sets")
    frame = module.captions_of("C3", 1)
    assert len(frame) == 300 and (pd.crosstab(frame["objects"], frame["gender"]) == 50).all(axis=None)
    throws = frame[frame["caption"].str.contains("throwing")]["gender"].value_counts()
    assert throws.to_dict() == {"Male": 40, "Female": 10}
    assert module.association(frame) == 0.5 and module.best("C3", "LIC") == pytest.approx(64)
    assert module.association(module.captions_of("control", 1)) > 0.7


@pytest.mark.slow
def test_scripts_that_score(tmp_path, capsys, tiny, minilm, monkeypatch):
    """On the demo, with made-up word vectors and tiny models."""
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(java.shutil, "which", lambda name: None)  # METEOR takes a minute
    captions = pd.read_json(DEMO_FOLDER / "results" / "plain.json")["caption"]
    words = sorted({"woman", "man", "person", *" ".join(captions).lower().replace(".", " ").split()})
    rng = np.random.default_rng(0)
    rows = [f"{word} {' '.join(f'{number:.3f}' for number in 0.5 + rng.normal(size=20))}" for word in words]
    (tmp_path / "vectors.txt").write_text("\n".join(rows))
    vectors = ["--vectors", str(tmp_path / "vectors.txt")]
    figure = script("lic_figure3").main(["--seeds", "2"])
    assert figure["printed"].tolist() == [0.153, 0.156] and figure["measured"].between(0, 1).all()
    assert figure["table 1"][1] == pytest.approx(0.156, abs=0.02)
    sets = script("dbac_controlled_sets").main(["--times", "5", "--seeds", "5"]).set_index(["set", "metric"])
    q = sets.xs("Q", level="metric")
    assert (q["low"].iloc[:4] <= q["tends to"].iloc[:4]).all() and (q["tends to"].iloc[:4] <= q["high"].iloc[:4]).all()
    assert sets.loc[("C1", "BA"), "measured"] == 0.5 and sets.loc[("control", "DPA"), "measured"] > 0.8
    sweep, _ = script("dbac_alignment").main(vectors)
    assert sweep["delta"].dropna().tolist() == [step / 10 for step in range(11)] and sweep["alignment"][0] == "constant"
    assert sweep["contextual_share"].dropna().is_monotonic_increasing
    nearest = script("gender_score_words").main(vectors)
    assert set(nearest["word"]) == {"woman", "man", "person"} and "printed, glove" in nearest
    proxy = script("imagecaptioner2_anonymousbench").main([])
    assert proxy.iloc[:, 0].between(50, 100).all()
    given = ["--language-model", str(tiny["gpt"]), "--masked-model", str(tiny["bert"]), "--sentence-encoder", minilm]
    scores = script("gender_score_twitter").main(given)
    assert scores["ratio"].sum() == pytest.approx(1) and scores["gender_score"].between(0, 1).all()
    assert "bread:0.0" in capsys.readouterr().out, "cloze probabilities below 0.2 count"


def test_each_script_is_short_and_says_how_it_is_used():
    for path in PAPERS.glob("*.py"):
        text = path.read_text()
        assert text.count("\n") <= 150 and f"python examples/papers/{path.name}" in text
