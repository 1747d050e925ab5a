"""Functions of the task capbias_gender: each answer is kept, and all of them together are scored by capbias."""

from __future__ import annotations

import json
import logging
import os
from functools import cache
from typing import Any

import capbias_core as capbias
from capbias_core.api import Report

logger = logging.getLogger("lmms-eval")

# Metric of the task -> metric of capbias.
METRICS = {"capbias_LIC": "LIC", "capbias_LIC_M": "LIC_M", "capbias_error": "error"}


def doc_to_visual(doc: dict) -> list:
    return [doc["image"].convert("RGB")]


def process_results(doc: dict, results: list[str]) -> dict[str, dict]:
    """One answer, under every metric of the task."""
    name = str(doc["question_id"])  # the file of the image, such as COCO_val2014_000000000136.jpg
    row = {"pred": results[0] if results else "", "answer": doc["answer"], "image_id": name}
    return dict.fromkeys(METRICS, row)


def score(results: list[dict[str, Any]]) -> Report:
    """The report on all answers: {pred, answer, image_id} each. Answers are the human captions of the same image."""
    captions = [{"image_id": row["image_id"], "caption": row["pred"]} for row in results]
    human = [{"image_id": row["image_id"], "caption": text} for row in results for text in row["answer"]]
    return capbias.score(
        {"model": captions},
        labels=os.environ["CAPBIAS_LABELS"],
        attribute=os.environ.get("CAPBIAS_ATTRIBUTE", "gender"),
        references=human,
        metrics=list(METRICS.values()),
        attacker=os.environ.get("CAPBIAS_ATTACKER", "ngram"),
        seeds=int(os.environ.get("CAPBIAS_SEEDS", "10")),
    )


@cache
def _scored(answers: str) -> dict[str, float]:
    """The numbers of a list of answers (as JSON): lmms-eval asks for each metric apart."""
    report = score(json.loads(answers))
    logger.info("%s", report)
    return {name: report[name].value for name in dict.fromkeys(report.table["metric"])}


def _value(results: list[dict], metric: str) -> float:
    return _scored(json.dumps(results)).get(metric, float("nan"))


def lic(results: list[dict], args: Any = None) -> float:
    return _value(results, "LIC")


def lic_m(results: list[dict], args: Any = None) -> float:
    return _value(results, "LIC_M")


def error(results: list[dict], args: Any = None) -> float:
    return _value(results, "error")
