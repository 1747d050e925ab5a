"""The examples run, and what they give is what capbias gives."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

import capbias_core as capbias
from capbias_core.api import Report
from capbias_core.resources import DEMO_FOLDER

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
DEMO = {"labels": DEMO_FOLDER / "attributes.csv", "attribute": "gender", "references": DEMO_FOLDER / "references.json"}


def example(name: str):
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(f"example_{Path(name).stem}", EXAMPLES / name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def amplifier() -> Report:
    """The scores of a captioner of the demo."""
    return capbias.score(DEMO_FOLDER / "results" / "amplifier.json", metrics=["lic", "error"], seeds=2, **DEMO)


# the shortest


@pytest.mark.long
def test_lic_with_scikit_learn_alone_is_the_number_of_the_product(amplifier):
    people = pd.DataFrame(json.loads((DEMO_FOLDER / "references.json").read_text())["annotations"])
    captions = pd.read_json(DEMO_FOLDER / "results" / "amplifier.json", dtype={"image_id": str})
    captions = captions.set_index("image_id")["caption"].to_dict()
    references = people.astype({"image_id": str}).groupby("image_id")["caption"].apply(list).to_dict()
    labels = pd.read_csv(DEMO_FOLDER / "attributes.csv", dtype=str).set_index("image_id")["gender"]
    labels = labels[labels.isin(["Female", "Male"]) & labels.index.isin(captions.keys() & references.keys())].to_dict()
    found = example("lic_in_60_lines.py").lic(captions, references, labels, seeds=2)
    assert found == pytest.approx([amplifier[name].value for name in ("LIC", "LIC_M", "LIC_D")], abs=1e-6)


# a callback


@pytest.mark.slow
def test_bias_grows_while_the_demo_captioner_trains(amplifier, capsys):
    table = example("score_after_training.py").main(epochs=2, seeds=2)
    assert table["epoch"].tolist() == [1, 2] and table["LIC"].iloc[1] > table["LIC"].iloc[0]
    assert (table["LIC_low"] < table["LIC"]).all() and (table["LIC"] < table["LIC_high"]).all()
    assert capsys.readouterr().out.startswith("epoch 1: LIC ")
    assert table["LIC"].iloc[1] == amplifier["LIC"].value, "after training it is the amplifier"


@pytest.mark.slow
def test_the_trainer_of_hugging_face_logs_the_scores():
    transformers = pytest.importorskip("transformers")
    module = example("score_after_training.py")
    caption, _ = module.demo_captioner()
    bias = module.BiasCallback(caption, metrics=["ratio"], **DEMO)
    callback = module.trainer_callback(bias)
    assert isinstance(callback, transformers.TrainerCallback)
    state = transformers.TrainerState(epoch=1.0)
    callback.on_epoch_end(None, state, transformers.TrainerControl())
    assert state.log_history == [{f"bias_{name}": own for name, own in bias.scores[0].items()}]
    assert state.log_history[0]["bias_ratio"] > 0


# a figure


@pytest.mark.slow
def test_five_captioners_and_their_figure(tmp_path, capsys, monkeypatch):
    pytest.importorskip("plotly")
    module = example("compare_captioners.py")
    found = module.main(["--seeds", "2", "--output", str(tmp_path / "figure.html")])
    assert len(found.table) == 5 and len(found.pairs) == 10
    text = (tmp_path / "figure.html").read_text(encoding="utf-8")
    for row in found.table.itertuples():
        assert row.captioner in text and f'"text":"{row.letters}"' in text
    assert "written: " in capsys.readouterr().out
    drawn = module.figure(found).data[0]
    assert list(drawn.x) == found.table["value"].tolist()
    assert (drawn.x + drawn.error_x.array).tolist() == pytest.approx(found.table["high"].tolist())
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert module.write(module.figure(found), tmp_path / "other.png") == tmp_path / "other.html"


# a task of lmms-eval


def task() -> dict:
    """The task's YAML, with the names of functions as text."""
    yaml = pytest.importorskip("yaml")

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!function", lambda loader, node: f"function {node.value}")
    return yaml.load((EXAMPLES / "lmms_eval" / "capbias_gender.yaml").read_text(encoding="utf-8"), Loader)


def answers() -> list[dict]:
    """The demo's captions and references as documents of lmms-eval."""
    frame = pd.read_json(DEMO_FOLDER / "results" / "amplifier.json")
    human = pd.DataFrame(json.loads((DEMO_FOLDER / "references.json").read_text(encoding="utf-8"))["annotations"])
    own = human.groupby("image_id")["caption"].apply(list)
    return [
        {"question_id": f"COCO_val2014_{image:012}.jpg", "answer": own[image], "pred": caption}
        for image, caption in zip(frame["image_id"], frame["caption"], strict=True)
    ]


def test_the_task_names_functions_that_are_there():
    module, found = example("lmms_eval/utils.py"), task()
    named = [found["doc_to_visual"], found["process_results"], *(own["aggregation"] for own in found["metric_list"])]
    for name in named:
        assert callable(getattr(module, name.removeprefix("function utils.")))
    assert [own["metric"] for own in found["metric_list"]] == list(module.METRICS)
    assert not any(own["higher_is_better"] for own in found["metric_list"])


@pytest.mark.long
def test_aggregation_gives_what_capbias_gives_of_the_same_answers(amplifier, monkeypatch):
    monkeypatch.setenv("CAPBIAS_LABELS", str(DEMO["labels"]))
    monkeypatch.setenv("CAPBIAS_SEEDS", "2")
    module = example("lmms_eval/utils.py")
    rows = [module.process_results(doc, [doc["pred"]])["capbias_LIC"] for doc in answers()]
    assert set(rows[0]) == {"pred", "answer", "image_id"}
    assert module.lic(rows, None) == amplifier["LIC"].value
    assert module.lic_m(rows) == amplifier["LIC_M"].value and module.error(rows) == amplifier["error"].value


# a dataset of VLMEvalKit


def stand_in(monkeypatch, tmp_path: Path) -> None:
    """What the dataset uses of VLMEvalKit (vlmeval/dataset/image_base.py, image_caption.py and smp/file.py): the TSV is
    in $LMUData, an answer is asked for by `build_prompt`, and `evaluate` gets the file of answers."""

    class ImageCaptionDataset:
        def __init__(self, dataset):
            self.data = pd.read_csv(tmp_path / self.DATASET_URL[dataset], sep="\t")

    parts = {
        "vlmeval": {},
        "vlmeval.dataset": {},
        "vlmeval.dataset.image_caption": {"ImageCaptionDataset": ImageCaptionDataset},
        "vlmeval.smp": {"load": pd.read_excel, "dump": lambda value, path: Path(path).write_text(json.dumps(value))},
        "vlmeval.smp.file": {
            "get_intermediate_file_path": lambda file, suffix, ending: file.replace(".xlsx", f"{suffix}.{ending}")
        },
    }
    for name, values in parts.items():
        module = ModuleType(name)
        vars(module).update(values)
        monkeypatch.setitem(sys.modules, name, module)


@pytest.mark.long
def test_the_dataset_of_vlmevalkit_gives_the_numbers_of_capbias(amplifier, monkeypatch, tmp_path, capsys):
    stand_in(monkeypatch, tmp_path)
    for name, value in (("CAPBIAS_LABELS", str(DEMO["labels"])), ("CAPBIAS_SEEDS", "2"), ("LMUData", str(tmp_path))):
        monkeypatch.setenv(name, value)
    captions = pd.read_json(DEMO_FOLDER / "results" / "amplifier.json").set_index("image_id")["caption"]
    photographs = tmp_path / "photographs"
    photographs.mkdir()
    for image in captions.index:
        (photographs / f"COCO_val2014_{image:012}.jpg").touch()
    module = example("vlmevalkit/capbias_caption.py")
    count = module.write_dataset(photographs, DEMO["references"], tmp_path / f"{module.NAME}.tsv")
    dataset = module.dataset_class()(module.NAME)
    assert count == len(dataset.data) == len(captions)
    asked = [dataset.build_prompt(dataset.data.iloc[place]) for place in range(count)]
    assert all([part["type"] for part in message] == ["image", "text"] for message in asked)
    images = [int(Path(message[0]["value"]).stem.rpartition("_")[2]) for message in asked]
    file = tmp_path / "replay.xlsx"
    rows = dataset.data.assign(prediction=[captions[image] for image in images])
    failed = rows.iloc[:1].assign(index=1, prediction="Failed to obtain answer via API.")  # counts for nothing
    pd.concat([rows, failed]).to_excel(file, index=False)
    scores = dataset.evaluate(str(file))
    assert scores == json.loads((tmp_path / "replay_score.json").read_text())
    for name in ("LIC", "LIC_M", "error"):
        assert scores[name] == amplifier[name].value and scores[f"{name}_low"] == amplifier[name].interval[0]
    assert f"{scores['LIC']:.1f} [" in capsys.readouterr().out
