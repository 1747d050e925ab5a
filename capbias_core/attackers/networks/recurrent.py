"""Recurrent attackers: LSTM and RNN, one way and both ways.

Protocol of LIC (Hirota et al. 2022, section 5; `lstm_bi`): embedding 100, two bidirectional LSTM layers of 256, dropout
0.5 on the embeddings, between the layers and on the last hidden states (forward and backward joined), one linear layer
to 1 logit (K for K > 2 values), Adam 5e-5, batches of 64, 20 epochs, no early stopping. The others follow DBAC; see
training.py.

On a CPU a layer runs in PyTorch's fused kernel, one caption length after the other, or rounded (rounded.py). All seeds
at once, as on CUDA, read padded captions: the direction that reads backward turns each caption around within its own
length, so what follows a caption never reaches its states, and no step needs a mask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from capbias_core.attackers.device import BF16
from capbias_core.attackers.networks.rounded import SHORT, Memory, RoundedStates
from capbias_core.attackers.networks.stacked import Head, Network, linear
from capbias_core.attackers.networks.training import DBAC, NetworkAttacker

# Gates of each kind of unit, and PyTorch's layer of that kind.
UNITS = {"lstm": (4, nn.LSTM), "rnn": (1, nn.RNN)}


class LstmStates(torch.autograd.Function):
    """Hidden states of N LSTMs, one a seed and direction, from what their gates get of the input.

    gates: (N, T, B, 4H), input, forget, cell and output as in PyTorch; weight: (N, 4H, H). Returns (N, T, B, H).
    Written out because each step is then thirteen small kernels, and the gradient of the weight one product for all
    steps; automatic gradients take about three times as many.
    """

    @staticmethod
    def forward(ctx, gates: Tensor, weight: Tensor) -> Tensor:
        size = weight.shape[2]
        active = torch.empty_like(gates)
        cells = gates.new_zeros(gates.shape[0], gates.shape[1] + 1, gates.shape[2], size)
        hidden = torch.zeros_like(cells)
        for step in range(gates.shape[1]):
            sums = torch.baddbmm(gates[:, step], hidden[:, step], weight.mT)
            now = active[:, step]
            torch.sigmoid(sums[..., : 2 * size], out=now[..., : 2 * size])
            torch.tanh(sums[..., 2 * size : 3 * size], out=now[..., 2 * size : 3 * size])
            torch.sigmoid(sums[..., 3 * size :], out=now[..., 3 * size :])
            entered, kept, candidate, shown = now.split(size, dim=-1)
            torch.addcmul(kept * cells[:, step], entered, candidate, out=cells[:, step + 1])
            torch.mul(shown, torch.tanh(cells[:, step + 1]), out=hidden[:, step + 1])
        ctx.save_for_backward(weight, active, cells, hidden)
        return hidden[:, 1:]

    @staticmethod
    @once_differentiable
    def backward(ctx, given: Tensor) -> tuple[Tensor, Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride]
        weight, active, cells, hidden = ctx.saved_tensors
        entered, kept, candidate, shown = active.unflatten(-1, (4, -1)).unbind(-2)
        squashed = torch.tanh(cells[:, 1:])
        # How each gate's sum changes the cell, and how the output gate's sum and the cell change the state.
        of_cell = torch.stack(
            [
                candidate * entered * (1 - entered),
                cells[:, :-1] * kept * (1 - kept),
                entered * (1 - candidate * candidate),
            ],
            dim=-2,
        )
        of_state = squashed * shown * (1 - shown)
        cell_to_state = shown * (1 - squashed * squashed)
        found = torch.empty_like(active)  # gradients of the gates' sums
        by_gate = found.unflatten(-1, (4, -1))
        state, cell = given[:, -1], torch.zeros_like(cells[:, 0])
        for step in reversed(range(active.shape[1])):
            cell = torch.addcmul(cell, state, cell_to_state[:, step])
            torch.mul(of_cell[:, step], cell[..., None, :], out=by_gate[:, step, :, :3])
            torch.mul(of_state[:, step], state, out=by_gate[:, step, :, 3])
            if step:
                cell = cell * kept[:, step]
                state = torch.baddbmm(given[:, step - 1], found[:, step], weight)
        before = hidden[:, :-1].flatten(1, 2)
        return found, torch.bmm(found.flatten(1, 2).mT, before)


def rnn_states(gates: Tensor, weight: Tensor) -> Tensor:
    """Hidden states (N, T, B, H) of N simple RNNs with tanh; arguments as of LstmStates, with one gate."""
    state = torch.tanh(gates[:, 0])
    states = [state]
    for step in range(1, gates.shape[1]):
        state = torch.tanh(torch.baddbmm(gates[:, step], state, weight.mT))
        states.append(state)
    return torch.stack(states, dim=1)


def turned(states: Tensor, lengths: Tensor | None) -> Tensor:
    """(S, T, B, F) with each caption turned around within its own length; lengths: (S, B), or None where all are T."""
    if lengths is None:
        return states.flip(1)
    step = torch.arange(states.shape[1], device=states.device)[:, None]
    inside = lengths[:, None] - 1 - step  # (S, T, B)
    place = torch.where(inside < 0, step, inside)
    return states.gather(1, place[..., None].expand(states.shape))


class Layer(nn.Module):
    """One recurrent layer of S seeds and D directions: weights (S, D, G * H, ...), which begin as PyTorch's own."""

    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor
    bias_hh: Tensor

    def __init__(self, unit: str, size: int, hidden: int, ways: int):
        super().__init__()
        self.gates, plain = UNITS[unit]
        self.unit, self.hidden, self.ways = unit, hidden, ways
        self.memory: list[Memory] = []  # of each direction, while products are rounded
        layer = plain(size, hidden, bidirectional=ways == 2)
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            own = [getattr(layer, f"{name}_l0{end}").detach() for end in ("", "_reverse")[:ways]]
            setattr(self, name, nn.Parameter(torch.stack(own)[None]))

    def forward(self, states: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """(S, B, T, I) to the states at each word (S, B, T, D * H) and those at the captions' ends (S, B, D * H)."""
        if len(states) == 1 and lengths is None and states.device.type == "cpu":
            return self._fused(states[0])
        return self._stacked(states.transpose(1, 2), lengths)

    def _fused(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """PyTorch's own kernel, which oneDNN gives for an LSTM."""
        kinds = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        weights = [weight for way in zip(*(kind[0].unbind(0) for kind in kinds), strict=True) for weight in way]
        empty = states.new_zeros(self.ways, len(states), self.hidden)
        rest = (weights, True, 1, 0.0, True, self.ways == 2, True)
        if self.unit == "lstm":
            found, last, _ = torch.lstm(states, (empty, empty), *rest)
        else:
            found, last = torch.rnn_tanh(states, empty, *rest)
        return found[None], torch.cat(list(last), dim=1)[None]

    def _stacked(self, states: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """As `forward`, from (S, T, B, I)."""
        seeds, steps, batch, size = states.shape
        ways = states[:, None] if self.ways == 1 else torch.stack([states, turned(states, lengths)], dim=1)
        bias = (self.bias_ih + self.bias_hh).flatten(0, 1)
        gates = linear(ways.reshape(seeds * self.ways, -1, size), self.weight_ih.flatten(0, 1), bias)
        gates = gates.view(seeds * self.ways, steps, batch, -1)
        weight = self.weight_hh.flatten(0, 1)
        found = LstmStates.apply(gates, weight) if self.unit == "lstm" else rnn_states(gates, weight)
        found = found.view(seeds, self.ways, steps, batch, self.hidden)
        # Each direction ends where its own reading does: after `length` steps.
        if lengths is None:
            last = found[:, :, -1]
        else:
            place = (lengths - 1)[:, None, None, :, None].expand(-1, self.ways, 1, -1, self.hidden)
            last = found.gather(2, place)[:, :, 0]
        forward, *backward = found.unbind(1)
        whole = torch.cat([forward, *(turned(each, lengths) for each in backward)], dim=-1)
        return whole.transpose(1, 2), torch.cat(list(last.unbind(1)), dim=-1)

    def rounded(self, states: Tensor, after: Tensor | None) -> Tensor:
        """(I, T, B) to the states at each word (D * H, T, B), of one seed, with rounded products.

        after: (T, B), which words stand behind their caption's end, if any do.
        """
        weights = (weight.flatten(0, 1) for weight in (self.weight_ih, self.weight_hh, self.bias_ih + self.bias_hh))
        return RoundedStates.apply(states, *weights, after, self.memory)


class RecurrentNetwork(Network):
    """Stacked recurrent layers and a head on the last hidden states. ways: 2 reads each caption both ways."""

    layers: Any

    def __init__(self, words: int, logits: int, attacker: RecurrentAttacker):
        super().__init__(words, attacker.embedding, logits)
        width = attacker.ways * attacker.hidden
        sizes = [attacker.embedding] + [width] * (attacker.layers - 1)
        self.layers = nn.ModuleList(Layer(attacker.unit, size, attacker.hidden, attacker.ways) for size in sizes)
        self.head = Head((width, *attacker.head, logits))

    def read(self, states: Tensor, lengths: Tensor | None, dropout: Callable[[Tensor], Tensor]) -> Tensor:
        if self.layers[0].memory:
            return self._read_rounded(states, lengths, dropout)
        last = states
        for layer in self.layers:
            states, last = layer(dropout(states), lengths)
        return self.head(dropout(last))

    def _read_rounded(self, states: Tensor, lengths: Tensor | None, dropout: Callable[[Tensor], Tensor]) -> Tensor:
        """As `read`, of one seed, with rounded products."""
        _, batch, steps, _ = states.shape
        ends = torch.full((batch,), steps) if lengths is None else lengths[0]
        after = torch.arange(steps)[:, None] >= ends if ends.min() < steps else None
        found = states.transpose(1, 3).to(SHORT, memory_format=torch.contiguous_format)  # (1, features, T, B)
        for layer in self.layers:
            found = layer.rounded(dropout(found)[0], after)[None]
        forward, *backward = found[0].split(self.layers[-1].hidden)
        last = [forward[:, ends - 1, torch.arange(batch)], *(each[:, 0] for each in backward)]
        return self.head(dropout(torch.cat(last).T.float()[None]))

    @contextmanager
    def rounded(self) -> Iterator[None]:
        for layer in self.layers:
            layer.memory = [Memory(layer.weight_ih.shape[-1], layer.hidden, way) for way in range(layer.ways)]
        try:
            yield
        finally:
            for layer in self.layers:
                layer.memory = []

    def floats_a_token(self) -> int:
        """Of each layer: its input for each way, the gates' sums and values, cells, states; and all gradients."""
        return sum(
            2 * layer.ways * (layer.weight_ih.shape[-1] + (2 * layer.gates + 8) * layer.hidden) for layer in self.layers
        )


@dataclass(frozen=True)
class RecurrentAttacker(NetworkAttacker):
    """See the module's text; the defaults are the LIC paper's. unit: a name in UNITS. ways: 1 or 2."""

    unit: str = "lstm"
    ways: int = 2

    def network(self, words: int, logits: int) -> RecurrentNetwork:
        return RecurrentNetwork(words, logits, self)


def lstm_bi() -> RecurrentAttacker:
    """The LIC paper's LSTM that reads both ways."""
    return RecurrentAttacker(precision=BF16)


def lstm() -> RecurrentAttacker:
    """The DBAC paper's LSTM that reads one way."""
    return RecurrentAttacker(**DBAC, ways=1)


def rnn() -> RecurrentAttacker:
    """The DBAC paper's RNN that reads one way."""
    return RecurrentAttacker(**DBAC, unit="rnn", ways=1)


def rnn_bi() -> RecurrentAttacker:
    """The DBAC paper's RNN that reads both ways."""
    return RecurrentAttacker(**DBAC, unit="rnn")
