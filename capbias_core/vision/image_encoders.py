"""What looks at a picture: a small convolutional network trained from scratch, or a pretrained one, frozen.

Parameters have a leading seed dimension as those of the attackers' networks do (attackers/stacked.py), so that several
seeds are one network on CUDA. Weights begin as He et al. (ICCV 2015) draw them, as ImageCaptioner2 says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from capbias_core.errors import CapbiasError

# Of the photographs on which torchvision's weights were trained.
MEAN, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def begin_as_he(network: nn.Module) -> None:
    """Weights normal with variance 2 / inputs, biases 0; parameters are (1, out, ...) and (1, out)."""
    for name, parameter in network.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif name.endswith("weight"):
            nn.init.normal_(parameter, std=math.sqrt(2 / math.prod(parameter.shape[2:])))


class StackedConvolution(nn.Module):
    """A convolution of 3 x 3 for each seed: weight (S, out, in, 3, 3), bias (S, out)."""

    def __init__(self, channels: int, out: int, stride: int):
        super().__init__()
        self.stride = stride
        self.weight = nn.Parameter(torch.empty(1, out, channels, 3, 3))
        self.bias = nn.Parameter(torch.empty(1, out))

    def forward(self, values: Tensor) -> Tensor:
        """(S, B, C, H, W) to (S, B, out, H', W'): the seeds are groups of channels."""
        seeds = len(values)
        joined = values.transpose(0, 1).flatten(1, 2)
        found = functional.conv2d(
            joined, self.weight.flatten(0, 1), self.bias.flatten(), self.stride, padding=1, groups=seeds
        )
        return found.unflatten(1, (seeds, -1)).transpose(0, 1)


class ImageEncoder(nn.Module):
    """Convolutions with ReLU, each but the last halving the sides. channels: after each of them."""

    layers: Any

    def __init__(self, channels: Sequence[int]):
        super().__init__()
        strides = [2] * (len(channels) - 1) + [1]
        self.layers = nn.ModuleList(
            StackedConvolution(before, after, stride)
            for (before, after), stride in zip(pairwise((3, *channels)), strides, strict=True)
        )
        self.width = channels[-1]
        begin_as_he(self)

    def forward(self, pictures: Tensor) -> Tensor:
        """(S, B, 3, H, W) bytes to a vector for each of L places, (S, B, L, width)."""
        values = pictures.float() / 127.5 - 1
        for layer in self.layers:
            values = functional.relu(layer(values))
        return values.flatten(3).transpose(2, 3)

    def floats_a_picture(self, size: int) -> int:
        """Values that a step keeps for a picture of so many pixels a side, gradients included."""
        total = 3 * size * size
        for layer in self.layers:
            size = -(-size // layer.stride)
            total += 4 * layer.weight.shape[1] * size * size
        return total

    def places(self, size: int) -> int:
        """L for a picture of so many pixels a side."""
        for layer in self.layers:
            size = -(-size // layer.stride)
        return size * size


def backbone(name: str, weights: Path, device: torch.device) -> Callable[[np.ndarray], np.ndarray]:
    """(n, 3, size, size) bytes to (n, d) float32: what a torchvision classifier knows before its last layer.

    name: of the model in torchvision, such as resnet50. weights: the file of its state_dict; nothing is fetched.
    Raises CapbiasError for a name that torchvision has not, or weights of another model.
    """
    network = _backbone(name, weights).to(device).eval()
    mean, spread = (torch.tensor(own, device=device).view(3, 1, 1) for own in (MEAN, SPREAD))

    def vectors(pixels: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            own = torch.from_numpy(pixels).to(device).float() / 255
            return network((own - mean) / spread).flatten(1).cpu().numpy()

    return vectors


def _backbone(name: str, weights: Path) -> nn.Module:
    from torchvision import models

    known = models.list_models(models)
    if name not in known:
        few = ", ".join(own for own in known if own.startswith("resnet"))
        raise CapbiasError(f"torchvision has no classifier {name!r}.", f"It has for example {few}.")
    network = models.get_model(name, weights=None)
    try:
        network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    except Exception as error:  # whatever a wrong file makes PyTorch raise
        first = str(error).strip().splitlines()[0][:150]
        raise CapbiasError(
            f"{weights.name} does not hold the weights of torchvision's {name} ({first}).",
            "Save them with torch.save(model.state_dict(), FILE), or name the model that the weights are of.",
        ) from None
    last = next(child for child in ("fc", "classifier", "heads", "head") if hasattr(network, child))
    setattr(network, last, nn.Identity())
    return network
