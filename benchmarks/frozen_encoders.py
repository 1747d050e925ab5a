"""What does it cost to keep the vectors of a frozen encoder, and to train the heads of all seeds together?

Three ways to the same number (LIC_M of one captioner, protocol of DBAC's MLP on a frozen encoder), in one run:

- cold: an empty cache, every distinct masked caption is embedded once;
- warm: a new start with the cache of before;
- loop: what one writes from the paper, a seed after the other, captions embedded anew in every epoch. One epoch of one
  seed is timed; the whole is estimated from it with the epochs and seeds that ours took.

Seconds of cold and warm include everything but the imports. LIC_M is given with its standard deviation over seeds.

    python benchmarks/frozen_encoders.py --data coco-bias --captioner sat --seeds 10
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.lstm_against_loop import Captioner, lic, read  # noqa: E402
from capbias_core.attackers import load_attacker  # noqa: E402
from capbias_core.attackers.device import choose_device  # noqa: E402
from capbias_core.attackers.networks.pretrained import FrozenAttacker  # noqa: E402
from capbias_core.language.encoder import text_encoder  # noqa: E402


def timed(work: Callable):
    """Seconds on the clock and of processor time, and what the work returns; the encoder is loaded anew."""
    text_encoder.cache_clear()
    clock, processor = time.perf_counter(), time.process_time()
    found = work()
    return time.perf_counter() - clock, time.process_time() - processor, found


def ours(attacker: FrozenAttacker, given: Captioner) -> tuple[list[float], float, int]:
    """LIC_M of every seed, the seconds that embedding took, and the epochs of the seed that took most."""
    epochs: list[int] = []

    def tick(share: float, text: str) -> None:
        epochs.extend(int(found) for found in re.findall(r"^epoch (\d+)", text))

    corpus, start = attacker.corpus(given.captions), time.perf_counter()
    corpus.vectors()
    embedding = time.perf_counter() - start
    rows, seeds = [split.train for split in given.splits], [split.seed for split in given.splits]
    fitted = attacker.fit_many(corpus, rows, [given.labels[own] for own in rows], 2, seeds, tick)
    tests = [split.test for split in given.splits]
    values = [lic(own.logits(corpus, test), given.labels[test]) for own, test in zip(fitted, tests, strict=True)]
    return values, embedding, max(epochs)


def loop_epoch(attacker: FrozenAttacker, captions: list[str], labels: np.ndarray) -> None:
    """One epoch of a plain loop: each batch is embedded, then the head takes a step."""
    encoder = attacker.encoder()
    head = nn.Sequential(nn.Linear(encoder.width, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1)).to(
        encoder.device
    )
    optimizer = torch.optim.Adam(head.parameters(), lr=attacker.learning_rate)
    for batch in torch.randperm(len(captions)).split(attacker.batch):
        texts = [encoder.read(captions[row]) for row in batch]
        vectors = torch.from_numpy(encoder.model.encode(texts, batch_size=len(texts), show_progress_bar=False))
        answers = torch.as_tensor(labels[batch.numpy()], dtype=torch.float32, device=encoder.device)
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(head(vectors.to(encoder.device))[:, 0], answers).backward()
        optimizer.step()


def report(name: str, attacker: FrozenAttacker, given: Captioner) -> tuple[float, int]:
    """Times ours and says how it went; seconds and epochs."""
    clock, processor, (values, embedding, epochs) = timed(lambda: ours(attacker, given))
    score = f"LIC_M {np.mean(values):.2f} +- {np.std(values, ddof=1):.2f}" if values[1:] else f"LIC_M {values[0]:.2f}"
    took = f"{clock:.1f} s ({processor:.1f} s processor time), of which vectors {embedding:.1f} s"
    print(f"{name}: {took}; {len(values)} seeds, {epochs} epochs; {score}", flush=True)
    return clock, epochs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder with results/ and annotations/")
    parser.add_argument("--captioner", default="sat", help="a file of results/ without .json (default: %(default)s)")
    parser.add_argument("--attribute", default="gender", help="an attribute of two values (default: %(default)s)")
    parser.add_argument("--attacker", default="minilm", help="a frozen encoder (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default: %(default)s)")
    parser.set_defaults(images=None)  # all of them
    options = parser.parse_args()
    given = read(options.captioner, options)
    train = given.splits[0].train
    print(f"{len(given.captions)} captions, {len(set(given.captions))} of them distinct, {len(train)} to train on")
    print(f"{torch.get_num_threads()} threads, {choose_device(options.device)}, torch {torch.__version__}")
    with tempfile.TemporaryDirectory(prefix="capbias-") as cache:
        attacker = load_attacker(options.attacker, options.device, cache=cache)
        assert isinstance(attacker, FrozenAttacker), f"{options.attacker} is not frozen"
        report("cold", attacker, given)
        warm, epochs = report("warm", attacker, given)
    once, _, _ = timed(lambda: loop_epoch(attacker, [given.captions[row] for row in train], given.labels[train]))
    whole = once * epochs * options.seeds
    print(f"loop: {once:.1f} s for one epoch of one seed, {whole:.0f} s for {options.seeds} seeds of {epochs} epochs")
    print(f"warm is {whole / warm:.0f} times as fast")


if __name__ == "__main__":
    main()
