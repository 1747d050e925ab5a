"""What looks at a picture: a small convolutional network trained from scratch, or a pretrained one, frozen.

Weights begin as He et al. (ICCV 2015) draw them, as ImageCaptioner2 says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from capbias_core.errors import CapbiasError

# Of the photographs on which torchvision's weights were trained.
MEAN, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def begin_as_he(network: nn.Module) -> None:
    """Weights of linear layers and convolutions normal with variance 2 / inputs, biases 0."""
    for layer in network.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d) and layer.bias is not None:
            nn.init.normal_(layer.weight, std=math.sqrt(2 / math.prod(layer.weight.shape[1:])))
            nn.init.zeros_(layer.bias)


class ImageEncoder(nn.Module):
    """Convolutions of 3 x 3 with ReLU, each but the last halving the sides. channels: after each of them."""

    def __init__(self, channels: Sequence[int]):
        super().__init__()
        strides = [2] * (len(channels) - 1) + [1]
        self.layers = nn.ModuleList(
            nn.utils.skip_init(nn.Conv2d, before, after, 3, stride, padding=1)
            for (before, after), stride in zip(pairwise((3, *channels)), strides, strict=True)
        )
        self.width = channels[-1]
        begin_as_he(self)

    def forward(self, pictures: Tensor) -> Tensor:
        """(B, 3, H, W) bytes to a vector for each of L places, (B, L, width)."""
        values = pictures.float() / 127.5 - 1
        for layer in self.layers:
            values = functional.relu(layer(values))
        return values.flatten(2).transpose(1, 2)


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
