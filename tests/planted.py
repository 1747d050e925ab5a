"""A small captioner trained on photographs whose gender word depends on one planted patch, and on nothing else.

Photographs are noise with two patches: one is red or blue and decides between woman and man (without it the caption
says person), the other green or yellow and decides between dog and ball. The captioner has what Grad-CAM needs of a
Captioner of vision/captioners.py.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from capbias_core.vision.captioners import TokenScores

SIDE, PATCH = 48, 12  # pixels of a photograph and of a patch, which covers a sixteenth of it
COLOURS = {"woman": (230, 20, 20), "man": (20, 20, 230), "dog": (20, 200, 20), "ball": (220, 220, 20)}
VOCABULARY = ["a", "with", "person", *COLOURS]
CAPTION = "a {gender} with a {thing}"
WORDS = len(CAPTION.split())
STEPS, BATCH = 150, 32


def photograph(gender: str, thing: str, at: tuple[int, int], other: tuple[int, int], seed: int = 0) -> np.ndarray:
    """(SIDE, SIDE, 3) uint8: noise, the patch of the gender at (top, left), and that of the thing at another place."""
    pixels = np.random.default_rng(seed).integers(100, 156, (SIDE, SIDE, 3), dtype=np.uint8)
    for word, (top, left) in ((gender, at), (thing, other)):
        if word in COLOURS:
            pixels[top : top + PATCH, left : left + PATCH] = COLOURS[word]
    return pixels


class Planted(nn.Module):
    """Convolutions, the mean over their map, and for each place of the caption a choice among the words."""

    numbers = "on cpu, float32"

    def __init__(self):
        super().__init__()
        self.vision_layer = nn.Sequential(nn.Conv2d(3, 12, 5, 2, 2), nn.ReLU(), nn.Conv2d(12, 16, 3, 2, 1), nn.ReLU())
        self.say = nn.Linear(16, WORDS * len(VOCABULARY))

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """(B, 3, H, W) to logits (B, WORDS, V)."""
        return self.say(self.vision_layer(pictures).mean(dim=(2, 3))).unflatten(1, (WORDS, -1))

    def token_scores(self, pixels: np.ndarray, caption: str) -> TokenScores:
        words = caption.split()
        ids = [VOCABULARY.index(word) for word in words]
        chosen = self(tensor(pixels[None]))[0].log_softmax(dim=-1)[torch.arange(WORDS), ids]
        return TokenScores(ids, words, list(range(WORDS)), chosen)

    def grid(self, output: torch.Tensor) -> torch.Tensor:
        return output

    def seen(self, height: int, width: int) -> tuple[float, float, float, float]:
        return 0.0, 0.0, float(width), float(height)


@cache
def trained() -> Planted:
    """The captioner, trained in a few seconds on photographs whose patches are anywhere."""
    torch.manual_seed(0)
    rng = np.random.default_rng(1)
    model = Planted()
    optimiser = torch.optim.Adam(model.parameters(), 0.01)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so small a network only waits for more of them
    for _ in range(STEPS):
        pixels, ids = examples(rng)
        loss = functional.cross_entropy(model(tensor(pixels)).flatten(0, 1), ids.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    torch.set_num_threads(threads)
    return model.eval()


def examples(rng: np.random.Generator) -> tuple[np.ndarray, torch.Tensor]:
    """A batch of photographs with their patches at two different places of a 4 x 4 grid, and their captions."""
    pixels, ids = [], []
    for seed in rng.integers(2**31, size=BATCH):
        gender, thing = rng.choice(["woman", "man", "person"]), rng.choice(["dog", "ball"])
        at, other = ((int(place) // 4 * PATCH, int(place) % 4 * PATCH) for place in rng.permutation(16)[:2])
        pixels.append(photograph(gender, thing, at, other, seed))
        ids.append([VOCABULARY.index(word) for word in CAPTION.format(gender=gender, thing=thing).split()])
    return np.stack(pixels), torch.tensor(ids)


def tensor(pixels: np.ndarray) -> torch.Tensor:
    """(B, H, W, 3) uint8 to (B, 3, H, W) in [-1, 1]."""
    return torch.from_numpy(np.ascontiguousarray(pixels)).permute(0, 3, 1, 2).float() / 127.5 - 1
