"""Where maps lie on captioners whose gender word depends on one planted patch: python -m benchmarks.attribution_maps

Small BLIP, GIT and ViT-GPT2 with random weights are trained on the photographs of tests/planted.py, a minute or so each
on one core, and so is the network of convolutions there. Prints, over twelve photographs that none was trained on, the
share of the map within the patch (6% of the photograph), within the other patch, and how often its maximum is within.
"""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import numpy as np
import torch

from capbias_core.metrics.attribution import attribution_score, pointing_game
from capbias_core.vision.captioners import Captioner
from capbias_core.vision.grad_cam import MAPS, upsampled, word_maps
from tests import captioners, planted

STEPS = 250
PLACES = [(12 * row, 12 * column) for row, column in ((0, 0), (3, 2), (2, 1), (1, 2), (2, 3), (0, 3))]
SMALL = 0.05  # deviation of the weights at the start: those of the tests are too large to be trained


def main() -> None:
    torch.set_num_threads(1)
    _report("convolutions", planted.trained())
    captioners.SIDE = captioners.VISION["image_size"] = planted.SIDE
    captioners.VISION["initializer_range"] = captioners.BERT["initializer_range"] = SMALL
    for name in ("blip", "git", "vit-gpt2"):
        with tempfile.TemporaryDirectory() as folder:
            captioner = Captioner(str(captioners.TINY[name](Path(folder))), "cpu")
            _report(f"{name}, loss {_train(captioner):.3f}", captioner)


def _train(captioner: Captioner) -> float:
    """Teacher forcing on planted photographs; the last loss."""
    rng, begin, loss = np.random.default_rng(0), captioner._begin, torch.tensor(torch.nan)
    captioner._begin = lambda name, ids: begin(name, ids).expand(len(ids), 1)  # for a batch
    optimiser = torch.optim.Adam(captioner.model.parameters(), 1e-3)
    for _ in range(STEPS):
        pixels, words = planted.examples(rng)
        captions = [" ".join(planted.VOCABULARY[place] for place in row) for row in words]
        read = captioner.tokenizer(captions, return_tensors="pt", add_special_tokens=captioner._has_decoder())
        logits = captioner._next_logits(captioner._inputs(list(pixels)), read["input_ids"])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), read["input_ids"].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    captioner._begin = begin
    return float(loss.detach())


def _report(name: str, captioner) -> None:
    for way, (_, title) in MAPS.items():
        rows = []
        for number, (gender, at) in enumerate(itertools.product(("woman", "man"), PLACES)):
            other = PLACES[(PLACES.index(at) + 1) % len(PLACES)]
            pixels = planted.photograph(gender, "dog", at, other, 10**6 + number)
            heat = word_maps(captioner, pixels, f"a {gender} with a dog", [1], way)[0]
            over = upsampled(heat, planted.SIDE, planted.SIDE)
            own, others = _patch(at), _patch(other)
            rows.append(
                (1 - attribution_score(over, own), 1 - attribution_score(over, others), pointing_game(over, own))
            )
        print(f"{name}: {title}: patch %.2f, other patch %.2f, maximum within %.2f" % tuple(np.nanmean(rows, axis=0)))


def _patch(at: tuple[int, int]) -> np.ndarray:
    found = np.zeros((planted.SIDE, planted.SIDE), dtype=bool)
    found[at[0] : at[0] + planted.PATCH, at[1] : at[1] + planted.PATCH] = True
    return found


if __name__ == "__main__":
    main()
