"""How fast do all seeds of `lstm_bi` train, against a plain PyTorch loop of the same protocol? And is LIC_M the same?

The plain loop is what one writes from the paper: one `nn.LSTM` with two layers, batches of 64 mixed captions, padded
and packed, one seed after the other. Both train on the same splits, on the same device, in this one process: half of
the loop's epochs before ours and half after, so that whatever else the machine does slows both. The loop runs on the
first captioner; ours trains every captioner and seed together. LIC_M means something after the paper's 20 epochs only.

It needs PyTorch, numpy, pandas and scikit-learn. FOLDER holds annotations/attributes.csv and results/CAPTIONER.json.

    python -m benchmarks.lstm_against_loop --data FOLDER --captioners sat --seeds 2 --epochs 4
    python -m benchmarks.lstm_against_loop --data FOLDER --captioners all --seeds 10 --loop-seeds 1
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

from capbias_core.attackers.base import Training, probabilities
from capbias_core.attackers.device import DEVICES, choose_device
from capbias_core.attackers.networks.scratch import LSTM_BI
from capbias_core.attributes import get_attribute
from capbias_core.prepare import Tokens, balanced_split
from capbias_core.types import Split, silent

Value = TypeVar("Value")
SEVEN = ("att2in", "fc", "nic", "oscar", "sat", "transformer", "updn")


class PlainNetwork(nn.Module):
    def __init__(self, words: int):
        super().__init__()
        self.embedding = nn.Embedding(words, 100, padding_idx=0)
        self.lstm = nn.LSTM(100, 256, num_layers=2, batch_first=True, bidirectional=True, dropout=0.5)
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(512, 1)

    def forward(self, tokens, lengths):
        embedded = self.dropout(self.embedding(tokens))
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        _, (last, _) = self.lstm(packed)
        return self.head(self.dropout(torch.cat([last[-2], last[-1]], dim=1)))


class PlainLoop:
    """The protocol as a plain loop."""

    def __init__(self, captions: list[str], labels: np.ndarray, seed: int, device: torch.device):
        torch.manual_seed(seed)
        words = sorted({word for caption in captions for word in caption.split()})
        self.vocabulary = {word: place for place, word in enumerate(words, start=2)}
        self.captions, self.device = captions, device
        self.labels = torch.as_tensor(labels, dtype=torch.float32, device=device)
        self.network = PlainNetwork(len(words) + 2).to(device)
        self.optimizer, self.loss_of = torch.optim.Adam(self.network.parameters(), lr=5e-5), nn.BCEWithLogitsLoss()

    def batch(self, captions: list[str]):
        tokens = [
            torch.tensor([self.vocabulary.get(word, 1) for word in caption.split()] or [1]) for caption in captions
        ]
        return pad_sequence(tokens, batch_first=True).to(self.device), torch.tensor([len(each) for each in tokens])

    def epoch(self) -> None:
        self.network.train()
        for rows in torch.randperm(len(self.captions)).split(64):
            tokens, lengths = self.batch([self.captions[row] for row in rows])
            self.optimizer.zero_grad()
            self.loss_of(self.network(tokens, lengths)[:, 0], self.labels[rows.to(self.device)]).backward()
            self.optimizer.step()

    def logits(self, captions: list[str]) -> np.ndarray:
        self.network.eval()
        with torch.no_grad():
            return self.network(*self.batch(captions)).cpu().numpy()


@dataclass(frozen=True)
class Captioner:
    """Masked captions of labelled images, their labels, and a split for each seed."""

    name: str
    captions: list[str]
    labels: np.ndarray
    splits: list[Split]


def read(name: str, options: argparse.Namespace) -> Captioner:
    """The captions of the images whose label is a value of the attribute, by sorted image id."""
    attribute = get_attribute(options.attribute)
    with open(options.data / "annotations" / "attributes.csv", encoding="utf-8", newline="") as file:
        labels = {row["image_id"]: row[attribute.name] for row in csv.DictReader(file)}
    rows = json.loads((options.data / "results" / f"{name}.json").read_text(encoding="utf-8"))
    caption_of = {str(row["image_id"]): row["caption"] for row in rows}
    ids = sorted(image for image in caption_of if labels.get(image) in attribute.values)[: options.images]
    y = np.array([attribute.values.index(labels[image]) for image in ids])
    splits = [balanced_split(y, len(attribute.values), seed, ids=ids) for seed in range(options.seeds)]
    return Captioner(name, list(Tokens.of([caption_of[image] for image in ids]).masked(attribute)), y, splits)


def lic(logits: np.ndarray, labels: np.ndarray) -> float:
    """100 x mean over captions of p(predicted) where the prediction is right."""
    p = probabilities(logits)
    return 100 * float(np.mean(p.max(axis=1) * (p.argmax(axis=1) == labels)))


def timed(work: Callable[[], Value], device: torch.device) -> tuple[np.ndarray, Value]:
    """Seconds on the clock and seconds of processor time (all threads) that a piece of work takes, and its result."""
    clock, processor = time.perf_counter(), time.process_time()
    value = work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return np.array([time.perf_counter() - clock, time.process_time() - processor]), value


def train_ours(captioners: list[Captioner], options: argparse.Namespace) -> list[list[float]]:
    """Every captioner and seed together: LIC_M of each captioner by seed."""
    attacker = replace(LSTM_BI, device=options.device, epochs=options.epochs)
    corpus = attacker.corpus([caption for each in captioners for caption in each.captions])
    starts = np.cumsum([0, *(len(each.captions) for each in captioners)])
    cases = [(each, start, split) for each, start in zip(captioners, starts, strict=False) for split in each.splits]
    trainings = [Training(start + split.train, each.labels[split.train], split.seed) for each, start, split in cases]
    fits = attacker.fit_many(corpus, trainings, 2, silent)
    scores = [
        lic(fitted.logits(corpus, start + split.test), each.labels[split.test])
        for fitted, (each, start, split) in zip(fits, cases, strict=True)
    ]
    return [scores[start : start + options.seeds] for start in range(0, len(scores), options.seeds)]


def plain_loops(captioner: Captioner, options: argparse.Namespace, device: torch.device) -> list[PlainLoop]:
    return [
        PlainLoop([captioner.captions[row] for row in split.train], captioner.labels[split.train], split.seed, device)
        for split in captioner.splits[: options.loop_seeds]
    ]


def run_epochs(loops: list[PlainLoop], epochs: int) -> None:
    for loop in loops:
        for _ in range(epochs):
            loop.epoch()


def loop_scores(captioner: Captioner, loops: list[PlainLoop]) -> list[float]:
    return [
        lic(loop.logits([captioner.captions[row] for row in split.test]), captioner.labels[split.test])
        for loop, split in zip(loops, captioner.splits, strict=False)
    ]


def spread(scores: list[float]) -> str:
    return f"{np.mean(scores):.2f} (std {np.std(scores, ddof=1):.2f})" if len(scores) > 1 else f"{scores[0]:.2f}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of annotations/ and results/")
    parser.add_argument("--captioners", nargs="+", default=["sat"], help="names of files in results/, or all")
    parser.add_argument("--attribute", default="gender", help="an attribute of two values (default: %(default)s)")
    parser.add_argument("--images", type=int, help="the first so many labelled images (default: all)")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--loop-seeds", type=int, help="seeds of the loop, 0 for no loop (default: all)")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--device", choices=DEVICES, default="auto")
    parser.add_argument("--threads", type=int, help="threads of PyTorch (default: its own choice)")
    options = parser.parse_args()
    options.loop_seeds = options.seeds if options.loop_seeds is None else min(options.seeds, options.loop_seeds)
    options.captioners = list(SEVEN) if options.captioners == ["all"] else options.captioners
    return options


def main() -> None:
    options = arguments()
    if options.threads:
        torch.set_num_threads(options.threads)
    device = choose_device(options.device)
    captioners = [read(name, options) for name in options.captioners]
    fits = len(captioners) * options.seeds
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{torch.get_num_threads()} threads"
    print(f"{fits} fits of {options.epochs} epochs, {where}, torch {torch.__version__}")

    first, half = captioners[0], options.epochs // 2
    if device.type == "cuda":  # what the first use of a device costs is not the loop's
        run_epochs(plain_loops(first, options, device)[:1], 1)
    loops = plain_loops(first, options, device)
    before, _ = timed(lambda: run_epochs(loops, half), device)
    ours, scores = timed(lambda: train_ours(captioners, options), device)
    after, _ = timed(lambda: run_epochs(loops, options.epochs - half), device)

    for captioner, own in zip(captioners, scores, strict=True):
        print(f"LIC_M of {captioner.name}, ours: {spread(own)}; seeds {', '.join(f'{score:.2f}' for score in own)}")
    print(f"ours: {ours[0]:.1f} s for all, {ours[0] / fits:.2f} s a fit ({ours[1] / fits:.2f} s processor time)")
    if device.type == "cuda":
        print(f"ours: at most {torch.cuda.max_memory_allocated(device) / 2**30:.1f} GiB of the device's memory")
    if loops:
        loop = (before + after) / len(loops)
        print(f"LIC_M of {first.name}, loop: {spread(loop_scores(first, loops))}")
        print(f"loop: {loop[0]:.2f} s a fit ({loop[1]:.2f} s processor time), {loop[0] * fits:.0f} s for as many fits")
        clock, processor = loop / (ours / fits)
        print(f"the loop takes {clock:.2f} times as long ({processor:.2f} times the processor time)")


if __name__ == "__main__":
    main()
