"""Which part of a photograph a captioner's word depends on: Grad-CAM, and HiResCAM, its form for each cell.

    grad_cam  = max(0, sum over channels of (mean over cells of d score / d activation) * activation)
    hires_cam = max(0, sum over channels of d score / d activation * activation)

Grad-CAM: Selvaraju et al., ICCV 2017, Eq. 1 and 2, which the DBAC paper names; HiResCAM: Draelos and Carin, arXiv
2011.08891, 2020. The score is the log-probability of the word, given the photograph and the words before it. Words look
at each cell of a transformer separately, so the mean of the gradients may mislead: HiResCAM is the usual one here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

Window = tuple[int, int, int, int]  # x1, y1, x2, y2 in pixels of the photograph, x2 and y2 exclusive
HIRES_CAM, GRAD_CAM = "hires_cam", "grad_cam"
# Name -> activations (C, h, w) and gradients of a score by them to a (h, w) map, and how methods call it.
MAPS: dict[str, tuple[Callable[[np.ndarray, np.ndarray], np.ndarray], str]] = {
    HIRES_CAM: (lambda activations, gradients: np.maximum((gradients * activations).sum(axis=0), 0.0), "HiResCAM"),
    GRAD_CAM: (
        lambda activations, gradients: np.maximum(np.tensordot(gradients.mean(axis=(1, 2)), activations, axes=1), 0.0),
        "Grad-CAM",
    ),
}


def normalised(heat: np.ndarray) -> np.ndarray:
    """A map of 0 or more divided by its maximum, so that it lies in [0, 1]; one that is 0 everywhere stays so."""
    largest = heat.max()
    return heat / largest if largest > 0 else heat


def upsampled(heat: np.ndarray, height: int, width: int, window: Window | None = None) -> np.ndarray:
    """A (h, w) map over a photograph: (height, width) float32, linear between cells. window: the part of the
    photograph that the network reads; outside it the map is 0."""
    from PIL import Image

    left, top, right, bottom = window or (0, 0, width, height)
    size = right - left, bottom - top
    over = Image.new("F", (width, height))
    over.paste(Image.fromarray(heat.astype(np.float32)).resize(size, Image.Resampling.BILINEAR), (left, top))
    return np.asarray(over)


def _array(grid) -> np.ndarray:
    """(1, C, h, w) tensor to (C, h, w) array, in double precision: gradients of a word that is sure are tiny."""
    if grid.ndim != 4 or len(grid) != 1:
        raise ValueError(f"a grid of the shape {tuple(grid.shape)}, and a map needs (1, C, h, w)")
    return grid[0].detach().double().cpu().numpy()


def word_maps(captioner, pixels: np.ndarray, caption: str, words: Sequence[int], way: str = HIRES_CAM) -> np.ndarray:
    """The map of each of these words of a caption, (S, h, w) float32 in [0, 1]; it covers what the captioner sees.

    words: their places in the caption, split at white space. The score of a word is the sum of the log-probabilities of
    its subwords. way: a name in MAPS. Raises ValueError if the layer does not run exactly once.
    """
    import torch

    seen: list = []

    def watch(module, inputs, output) -> None:
        tensor = output if isinstance(output, torch.Tensor) else output[0]
        seen.append(tensor if tensor.requires_grad else tensor.requires_grad_())  # of a frozen network too

    hook = captioner.vision_layer.register_forward_hook(watch)
    try:
        with torch.enable_grad():
            read = captioner.token_scores(pixels, caption)
            of_word = torch.tensor(read.words)
            scores = [read.log_probabilities[of_word == word].sum() for word in words]
    finally:
        hook.remove()
    if len(seen) != 1:
        raise ValueError(f"the layer ran {len(seen)} times, and a map needs it once")
    activations = _array(captioner.grid(seen[0]))
    gradients = [torch.autograd.grad(score, seen[0], retain_graph=True)[0] for score in scores]
    maps = [normalised(MAPS[way][0](activations, _array(captioner.grid(gradient)))) for gradient in gradients]
    return np.stack(maps).astype(np.float32)
