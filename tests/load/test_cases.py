"""Files as people have them: a table of cases, each a command, what it says and its numbers.

A case that asks is answered with the command that it printed, which must read on. The first case of a folder is in the
quick run. The files are not in the repository (../shared/cases); without them these tests are skipped.
"""

import csv
import io
import shlex

import pytest

from capbias_core.cli import main
from tests.conftest import shared_folder

pytestmark = pytest.mark.long

# The true ratio and error of the captions in most folders.
TOY, COCO = (1.28, 8.5), (1.40, 8.0)
PATHS = (1.47, 10.0)  # of the 40 images of 43_paths
KNOWN = (1.21, 8.8)  # of the images of 44_label_spellings with a label that is known

# Folder, command, what is said, and what is right: (ratio, error), several by captioner, their number, or None where
# it is refused. Where it asks, the numbers are those of the command that it prints.
CASES = [
    ("01_lmms_chair", "20260901_101010_samples_coco_cap_chair.jsonl labels.csv", "", TOY),
    ("05_vlmevalkit_think", "Some-VL-8B-Thinking_COCO_VAL.xlsx labels.csv refs.json", "", (1.29, 8.7)),
    ("101_tokens", "tokens.json labels.csv", "", TOY),
    ("101_tokens", "ids.json labels.csv", "numbers of tokens", None),
    *(("103_classlabel", f"model.json {name}.parquet", "", TOY) for name in ("struct", "map", "categorical")),
    ("115_manmade", "model.json labels.csv", "", (1.18, 6.0)),
    ("116_samples", "run1.json run2.json labels.csv", "", {"run1": (1.35, 8.5), "run2": (1.08, 9.0)}),
    ("11_flickr30k", "results.csv labels.csv --captions results.csv --sets each", "", 5),
    ("120_json_fields", "one_caption.json labels.csv", "", TOY),
    *(("123_echo", f"{name}.json labels.csv", "", TOY) for name in ("prompt", "suffix", "prompt_gender")),
    ("18_miap", "model.json miap_boxes_val.csv", "", (1.45, 7.5)),
    ("208_prodigy", "sat.json gender.jsonl", "answers left out: answer is reject", (1.34, 7.9)),
    *(("212_two_datasets", f"blip.json {labels}", "", COCO) for labels in ("labels.csv", "labels_paths.csv")),
    ("215_sequential_ids", "vis.json labels.csv", "", COCO),
    ("215_sequential_ids", "vis_ids_only.json labels.csv", "No image of", None),
    ("226_two_lists", "both_ids.json labels.csv", "", COCO),
    ("226_two_lists", "both.json labels.csv", "no column of image IDs", None),
    ("27_file_names_in_images", "model.json labels.csv refs.json", "", TOY),
    ("301_three_sources", "sat.json long.csv --rows source=nobody", "Known: mturk, captions, deepface", None),
    *(("305_languages", f"{name}.json labels.csv", "are not in English", None) for name in ("dutch", "chinese")),
    ("305_languages", "dutch_10_percent.json labels.csv", "not in English captions by gender: Female", (1.39, 8.1)),
    ("30_batch_jsonl", "openai_batch_output.jsonl labels.csv", "10 requests of 200 failed", (1.24, 8.4)),
    *(("30_batch_jsonl", f"{vendor}_batch.jsonl labels.csv", "", TOY) for vendor in ("anthropic", "gemini")),
    ("310_refs_in_five", "sat.json labels.csv --references human_1.json human_2.json human_3.json", "", COCO),
    ("311_empty", "model.json labels.csv", "missing captions by gender: Female 100 of 250, Male 0 of 350", (2.21, 7.6)),
    ("314_half_shifted", "model.json labels.csv refs.json", "From about row 301 on", None),
    ("32_json_orients", "index.json ../30_batch_jsonl/labels.csv", "", TOY),
    *(("33_nan_words", f"{name} labels.csv", "", (1.32, 8.4)) for name in ("model.csv", "bare_nan.json")),
    ("40_letters", "model.csv labels.csv", "", (0.00, 50.0)),
    ("41_refusals", "model.json labels.csv", "are refusals", (1.62, 7.5)),
    *(("43_paths", f"model_{name}.json labels_{labels}.csv", "", PATHS) for name, labels in
      (("win", "number"), ("stem", "dog"), ("abs", "dog"), ("url", "number"))),
    *(("44_label_spellings", f"model.json {name}.csv", "", KNOWN) for name in ("wm", "pronouns", "german", "words")),
    *(("45_labels_json", f"model.json {name}.json", "", TOY) for name in ("labels_flat", "label_studio")),
    ("503_same_names", "model_two.csv labels.csv", "", COCO),
    ("503_same_names", "model_two.csv labels_deep.csv", "", COCO),
    ("53_conversations", "share_captioner.json labels.csv", "", TOY),
    *(("61_txt_per_image", f"{name} labels.csv", "", (1.80, 8.3)) for name in ("captions", "captions.zip")),
    ("62_gz_by_flag", "--captions sat.json.gz --references refs.json.gz --labels labels.csv", "", TOY),
    ("71_grounding", "entities.json labels.csv refs.json", "", TOY),
    *(("79_wide_refs", f"refs_{name}.csv labels.csv", "", TOY) for name in ("hash", "json_list", "wide_with_model")),
    ("98_race_words", "model.json labels.csv --attribute race", "race:Black=___", None),
    ("101_tokens", "beams.json labels.csv", "captions.number=max", TOY),
    ("103_classlabel", "model.json list_of_structs.parquet", "--several both", (0.96, 7.3)),
    ("116_samples", "samples_list.json labels.csv", "--sets samples", (1.24, 9.4)),
    ("120_json_fields", "fenced.json labels.csv", "short_caption", ...),
    ("204_doccano_usernames", "sat.json all.json1.jsonl", "150 of 600 images have rows of labels that differ", COCO),
    *(("211_perplexity", f"{name}.json labels.csv", "=min", COCO) for name in ("sampled", "nll")),
    ("211_perplexity", "logprob.json labels.csv", "logprob=max", COCO),
    ("213_blip_references", "sat.json labels.csv coco_karpathy_val.json", "--references coco_karpathy_val.json", COCO),
    ("22_visogender", "captioning_ContextOO.json OO_table.tsv", "Which holds the labels?", (1.32, 8.3)),
    ("23_mturk", "model.json Batch_4711_batch_results.csv", "the majority of WorkerId", (1.32, 9.5)),
    ("301_three_sources", "sat.json long.csv", "--rows source=mturk", COCO),
    ("301_three_sources", "sat.json labels.csv", "the majority of them", (1.40, 7.9)),
    ("310_refs_in_five", "sat.json labels.csv human_1.json human_2.json", "written by people", COCO),
    ("310_refs_in_five", "wide_all.csv labels.csv", "annotator A", COCO),
    *(("408_rank", f"{name} labels.csv", "=min", COCO) for name in ("cands.json", "pairs_nll.json")),
    *(("408_rank", f"{name} labels.csv", "What are they?", COCO) for name in ("score.json", "cells.csv", "beams.csv")),
    ("44_label_spellings", "model.json numbers.csv", "agree with the label", KNOWN),
    ("44_label_spellings", "model.json celeba.csv", "gender:-1=Female", KNOWN),
    ("503_same_names", "model_two.csv labels_two.csv", "folder+file", COCO),
    ("64_wide_models", "three_models.csv labels.csv", "a captioner each", TOY),
    ("64_wide_models", "new_captions.csv labels.csv", "by people", TOY),
    ("79_wide_refs", "gts_res.json labels.csv", "--caption-column res", TOY),
    ("79_wide_refs", "model.json refs_wide.csv labels.csv", "captions by people", TOY),
]  # fmt: skip


def first_quick(cases: list[tuple]) -> list:
    """The cases; those of a folder that had one before are slow."""
    folders = [case[0] for case in cases]
    return [
        pytest.param(*case, marks=pytest.mark.slow if case[0] in folders[:place] else ())
        for place, case in enumerate(cases)
    ]


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """Runs a command in the folder of a case: exit code, ratio and error of each captioner, and what was printed."""
    cases = shared_folder("cases", "files as people have them")

    def score(folder: str, words: list[str]):
        monkeypatch.chdir(cases / folder)
        monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path))
        code, printed = main(words), capsys.readouterr()
        numbers = {}
        for row in csv.DictReader(io.StringIO(printed.out)):
            if not row["group"]:
                numbers.setdefault(row["model"], {})[row["metric"]] = float(row["value"] or "nan")
        found = {name: (round(each["ratio"], 2), round(each["error"], 1)) for name, each in numbers.items()}
        return code, found, printed.out + printed.err

    return score


@pytest.mark.parametrize("folder, command, said, right", first_quick(CASES))
def test_is_read_refused_or_asked_about(run, folder, command, said, right):
    attribute = [] if "--attribute " in command else ["--attribute", "gender"]
    words = ["score", *shlex.split(command), *attribute, "--metric", "ratio", "error", "--format", "csv"]
    code, found, printed = run(folder, words)
    assert said in printed
    if pasted := [line.strip() for line in printed.splitlines() if line.startswith("  capbias ")]:
        assert (code, found) == (2, {}) and said and len(printed.splitlines()) <= 20
        code, found, printed = run(folder, shlex.split(pasted[0])[1:])
    if right is None:
        assert (code, found, pasted) == (2, {}, [])
    else:
        assert code == 0, printed
        known = {tuple: lambda: right in found.values(), int: lambda: len(found) == right, dict: lambda: found == right}
        assert right is ... or known[type(right)](), found
