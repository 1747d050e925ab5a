"""How fast is `LstmAttacker`, against a plain PyTorch loop of the same protocol? And is LIC_M the same?

The plain loop is what one writes from the paper: one `nn.LSTM` with two layers, batches of 64 mixed captions,
padded and packed. Both train on the same split, an epoch of one and then an epoch of the other, so that whatever
else the machine does slows both. On a machine that is busy with other things, `--threads 1` and the processor time
are the fair comparison: several threads of PyTorch wait, spinning, for the slowest. LIC_M means something after the
paper's 20 epochs only.

    python benchmarks/lstm_against_loop.py --captions sat.json --attributes attributes.csv --epochs 20
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from capbias_core.attackers.base import probabilities, silent  # noqa: E402
from capbias_core.attackers.recurrent import LstmAttacker  # noqa: E402
from capbias_core.attributes import get_attribute  # noqa: E402
from capbias_core.prepare import balanced_split, masked_captions  # noqa: E402


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
    """The protocol as a plain loop: a step of `epochs` is one epoch."""

    def __init__(self, captions: list[str], labels: np.ndarray, seed: int):
        torch.manual_seed(seed)
        words = sorted({word for caption in captions for word in caption.split()})
        self.vocabulary = {word: place for place, word in enumerate(words, start=2)}
        self.captions, self.labels = captions, torch.as_tensor(labels, dtype=torch.float32)
        self.network = PlainNetwork(len(words) + 2)

    def batch(self, captions: list[str]):
        tokens = [
            torch.tensor([self.vocabulary.get(word, 1) for word in caption.split()] or [1]) for caption in captions
        ]
        return pad_sequence(tokens, batch_first=True), torch.tensor([len(each) for each in tokens])

    def epochs(self) -> Iterator[None]:
        optimizer = torch.optim.Adam(self.network.parameters(), lr=5e-5)
        loss_of = nn.BCEWithLogitsLoss()
        while True:
            self.network.train()
            for rows in torch.randperm(len(self.captions)).split(64):
                tokens, lengths = self.batch([self.captions[row] for row in rows])
                optimizer.zero_grad()
                loss_of(self.network(tokens, lengths)[:, 0], self.labels[rows]).backward()
                optimizer.step()
            yield

    def logits(self, captions: list[str]) -> np.ndarray:
        self.network.eval()
        with torch.no_grad():
            return self.network(*self.batch(captions)).numpy()


def read(captions: Path, attributes: Path, attribute) -> tuple[list[str], np.ndarray]:
    """Masked captions and labels of the images whose label is a value of the attribute, by sorted image id."""
    with open(attributes, encoding="utf-8", newline="") as file:
        labels = {row["image_id"]: row[attribute.name] for row in csv.DictReader(file)}
    caption_of = {str(row["image_id"]): row["caption"] for row in json.loads(captions.read_text(encoding="utf-8"))}
    ids = sorted(image for image in caption_of if labels.get(image) in attribute.values)
    masked = masked_captions([caption_of[image] for image in ids], attribute)
    return masked, np.array([attribute.values.index(labels[image]) for image in ids])


def lic(logits: np.ndarray, labels: np.ndarray) -> float:
    """100 x mean over captions of p(predicted) where the prediction is right."""
    p = probabilities(logits)
    return 100 * float(np.mean(p.max(axis=1) * (p.argmax(axis=1) == labels)))


def timed(iterator: Iterator) -> tuple[np.ndarray, object]:
    """Seconds on the clock and seconds of processor time (all threads) of the next step, and what it yields."""
    clock, processor = time.perf_counter(), time.process_time()
    value = next(iterator)
    return np.array([time.perf_counter() - clock, time.process_time() - processor]), value


def ratios(loop: np.ndarray, ours: np.ndarray) -> str:
    clock, processor = loop / ours
    return (
        f"loop {loop[0]:.2f} s ({loop[1]:.2f} s processor time), LstmAttacker {ours[0]:.2f} s ({ours[1]:.2f} s), "
        f"ratio {clock:.2f} ({processor:.2f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--captions", type=Path, required=True, help="captions, COCO results format (JSON)")
    parser.add_argument("--attributes", type=Path, required=True, help="labels by image_id (CSV)")
    parser.add_argument("--attribute", default="gender", help="an attribute of two values (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, help="threads of PyTorch (default: its own choice)")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)

    attribute = get_attribute(options.attribute)
    captions, labels = read(options.captions, options.attributes, attribute)
    split = balanced_split(labels, len(attribute.values), options.seed)
    loop = PlainLoop([captions[row] for row in split.train], labels[split.train], options.seed)
    attacker = LstmAttacker(epochs=options.epochs, device="cpu")
    corpus = attacker.corpus(captions)
    ours = attacker.training(corpus, split.train, labels[split.train], len(attribute.values), options.seed, silent)

    print(f"{len(split.train)} training captions, {torch.get_num_threads()} threads, torch {torch.__version__}")
    loop_epochs, seconds, fitted = loop.epochs(), [], None
    for epoch in range(options.epochs):
        loop_seconds, _ = timed(loop_epochs)
        our_seconds, fitted = timed(ours)
        seconds.append((loop_seconds, our_seconds))
        print(f"epoch {epoch + 1}: {ratios(loop_seconds, our_seconds)}", flush=True)
    # Other programs only ever add time, so the fastest epoch of each says most about the code.
    print(f"fastest epoch: {ratios(*np.min(seconds, axis=0))}")
    print(f"mean of an epoch: {ratios(*np.mean(seconds, axis=0))}")
    if options.epochs >= 20:
        loop_lic = lic(loop.logits([captions[row] for row in split.test]), labels[split.test])
        our_lic = lic(fitted.logits(corpus, split.test), labels[split.test])
        print(f"LIC_M on {len(split.test)} test captions: loop {loop_lic:.2f}, LstmAttacker {our_lic:.2f}")


if __name__ == "__main__":
    main()
