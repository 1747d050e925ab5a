"""What does TF32, in which attackers train on CUDA, change in LIC_M of `lstm_bi`? Worked out on a CPU.

Both arms train as on CUDA (all seeds as one network that reads padded captions, the same order), with the same splits,
initial weights and dropout. In one, every operand of every matrix product, forward and backward, is rounded to the ten
bits after the point that TF32 keeps. What differs is the rounding, and what training makes of it. The last line sets
that beside what another seed changes.

    python benchmarks/rounded_products.py --data FOLDER --captioner sat --seeds 3 --epochs 20
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.lstm_against_loop import Captioner, lic, read, spread  # noqa: E402
from capbias_core.attackers.networks.recurrent import lstm_bi  # noqa: E402
from capbias_core.attackers.networks.training import in_groups  # noqa: E402
from capbias_core.types import silent  # noqa: E402

# Which arguments of each product are its factors.
PRODUCTS = {
    torch.ops.aten.mm.default: (0, 1),
    torch.ops.aten.bmm.default: (0, 1),
    torch.ops.aten.addmm.default: (1, 2),
    torch.ops.aten.baddbmm.default: (1, 2),
}
DROPPED = 13  # of the 23 bits after the point


def rounded(values: torch.Tensor) -> torch.Tensor:
    """The nearest number with ten bits after the point."""
    bits = values.contiguous().view(torch.int32)
    return ((bits + (1 << (DROPPED - 1))) & -(1 << DROPPED)).view(torch.float32)


class RoundedProducts(TorchDispatchMode):
    """Matrix products with rounded factors; count: of products."""

    count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        factors = PRODUCTS.get(function, ())
        args = tuple(rounded(value) if place in factors else value for place, value in enumerate(args))
        self.count += bool(factors)
        return function(*args, **(kwargs or {}))


def scores(captioner: Captioner, options: argparse.Namespace, mode) -> list[float]:
    """LIC_M of each seed."""
    attacker = replace(lstm_bi(), device="cpu", epochs=options.epochs)
    corpus = attacker.corpus(captioner.captions)
    fits = [
        attacker.prepared(corpus, split.train, captioner.labels[split.train], 2, split.seed)
        for split in captioner.splits
    ]
    with mode:
        in_groups(attacker, fits, torch.device("cpu"), silent)
    found = [attacker.fitted(fit.vocabulary, fit.network, torch.device("cpu"), 1) for fit in fits]
    return [
        lic(own.logits(corpus, split.test), captioner.labels[split.test])
        for own, split in zip(found, captioner.splits, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of annotations/ and results/")
    parser.add_argument("--captioner", default="sat", help="name of a file in results/ (default: %(default)s)")
    parser.add_argument("--attribute", default="gender", help="an attribute of two values (default: %(default)s)")
    parser.add_argument("--images", type=int, help="the first so many labelled images (default: all)")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=20)
    options = parser.parse_args()
    captioner = read(options.captioner, options)
    found, rounded_products = {}, RoundedProducts()
    for name, mode in (("FP32", nullcontext()), ("TF32", rounded_products)):
        start = time.perf_counter()
        found[name] = scores(captioner, options, mode)
        each = ", ".join(f"{score:.2f}" for score in found[name])
        print(f"LIC_M of {captioner.name} in {name}: {spread(found[name])}; seeds {each}", end="; ")
        print(f"{time.perf_counter() - start:.0f} s", flush=True)
    print(f"{rounded_products.count:,} products rounded")
    change = np.subtract(found["TF32"], found["FP32"])
    print(f"TF32 minus FP32 by seed: {', '.join(f'{own:+.2f}' for own in change)}; mean {change.mean():+.2f}")
    if options.seeds > 1:
        print(f"standard deviation over seeds: {np.std(found['FP32'], ddof=1):.2f}")


if __name__ == "__main__":
    main()
