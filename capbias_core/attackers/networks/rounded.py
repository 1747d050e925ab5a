"""LSTM layers on a CPU whose matrix products read bfloat16, 8 bits of every factor, while weights stay as they are.

Processors with AMX multiply such factors several times as fast and add up in full precision. Weights, what Adam knows
of them, gates' values and cells are 32 bits wide; what products read and give is 16 bits wide.

Values are (features, T, B), and each direction is read by itself: a product then reads weights in the order in which
they lie, and what a step needs fits the cache of a core.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

SHORT = torch.bfloat16
CLOSED = -1e4  # a sum that closes every gate
WHOLE = 32  # how many 16-bit factors a processor takes at once
sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
tanh_backward = torch.ops.aten.tanh_backward.grad_input


class Memory:
    """What one direction of a layer keeps from batch to batch: getting it anew takes as long as much of what fills it.

    weights: (4H, H + I + 1 and zeros), for the state before a word, the word and the bias; gates in PyTorch's order,
    input, forget, cell and output. joined: (as many, T + 1, B), what they multiply. way: 1 reads the last word first,
    so the state after a word stands before it.
    """

    def __init__(self, width: int, size: int, way: int):
        self.width, self.size, self.way, self.steps, self.batch = width, size, way, 0, 0
        self.rows = -(-(size + width + 1) // WHOLE) * WHOLE
        self.weights = torch.zeros(4 * size, self.rows, dtype=SHORT)
        self.turned = torch.empty(self.rows, 4 * size, dtype=SHORT)
        self.own = slice(size, size + width)

    def take(self, inputs: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias: Tensor) -> list[tuple[Tensor, ...]]:
        """Rounds inputs (I, T, B) and weights; what each step reads and writes, in order."""
        _, steps, batch = inputs.shape
        if steps > self.steps or batch != self.batch:
            self._grow(max(steps, self.steps), batch)
        self.joined[self.own, self.way : self.way + steps].copy_(inputs)
        self.weights[:, : self.size].copy_(weight_hh)
        self.weights[:, self.own].copy_(weight_ih)
        self.weights[:, self.own.stop].copy_(bias)
        first, last = self.way * steps, (1 - self.way) * steps
        for start in (self.joined[: self.size, first], self.of_joined[: self.size, last], self.cells[first]):
            start.zero_()
        words = self.words[:steps]
        return words[::-1] if self.way else words

    def _grow(self, steps: int, batch: int) -> None:
        size, way, self.steps, self.batch = self.size, self.way, steps, batch
        self.joined, self.of_joined = torch.zeros(2, self.rows, steps + 1, batch, dtype=SHORT)
        self.joined[self.own.stop] = 1
        self.of_sums = torch.empty(4 * size, steps, batch, dtype=SHORT)
        self.sums = torch.empty(4 * size, batch, dtype=SHORT)
        self.of_gates = torch.empty(4 * size, batch)
        self.state, self.cell, self.of_state = torch.empty(3, size, batch)
        self.active, self.cells = torch.empty(steps, 4 * size, batch), torch.empty(steps + 1, size, batch)
        curves = torch.empty(steps, size, batch)
        # Gates, the first two together and each alone; the cell before, after, and its tanh; factors and the state
        # after; gradients of the state after, of sums and of factors.
        self.words = [
            (gates, gates[: 2 * size], *gates.split(size), self.cells[word + way], self.cells[word + 1 - way])
            + (curves[word], self.joined[:, word + way], self.joined[:size, word + 1 - way])
            + (self.of_joined[:size, word + 1 - way], self.of_sums[:, word], self.of_joined[:, word + way])
            for word, gates in enumerate(self.active)
        ]

    def read(self, words: list[tuple[Tensor, ...]], closed: list[Tensor]) -> Tensor:
        """The states after each word, (H, T, B)."""
        for step, values in enumerate(words):
            gates, both, entered, kept, candidate, shown, before, cell, curve, joined, after, *_ = values
            torch.mm(self.weights, joined, out=self.sums)
            if closed:
                self.sums.masked_fill_(closed[step], CLOSED)
            gates.copy_(self.sums)
            both.sigmoid_()
            candidate.tanh_()
            shown.sigmoid_()
            torch.mul(kept, before, out=cell).addcmul_(entered, candidate)
            torch.tanh(cell, out=curve)
            after.copy_(torch.mul(shown, curve, out=self.state))
        return self.joined[: self.size, 1 - self.way : len(words) + 1 - self.way]

    def learn(self, words: list[tuple[Tensor, ...]], given: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients of the inputs (I, T, B) and of the weights from those of the states (H, T, B)."""
        steps, of_gates, state, cell, of_state = len(words), self.of_gates, self.state, self.cell, self.of_state
        of_both = of_gates[: 2 * self.size]
        of_entered, of_kept, of_candidate, of_shown = of_gates.split(self.size)
        self.turned.copy_(self.weights.T)
        cell.zero_()
        above = given.unbind(1)[:: -1 if self.way else 1]
        for values, own in zip(reversed(words), reversed(above), strict=True):
            _, both, entered, kept, candidate, shown, before, _, curve, _, _, later, of_sums, of_joined = values
            state.copy_(own).add_(later)
            tanh_backward(torch.mul(state, shown, out=of_state), curve, grad_input=of_state)
            cell.add_(of_state)
            torch.mul(cell, candidate, out=of_entered)
            torch.mul(cell, before, out=of_kept)
            torch.mul(cell, entered, out=of_candidate)
            torch.mul(state, curve, out=of_shown)
            sigmoid_backward(of_both, both, grad_input=of_both)
            tanh_backward(of_candidate, candidate, grad_input=of_candidate)
            sigmoid_backward(of_shown, shown, grad_input=of_shown)
            of_sums.copy_(of_gates)
            cell.mul_(kept)
            torch.mm(self.turned, of_sums, out=of_joined)
        there = slice(self.way, self.way + steps)
        of_weights = self.of_sums[:, :steps].flatten(1) @ self.joined[:, there].flatten(1).T
        return self.of_joined[self.own, there], of_weights


class RoundedStates(torch.autograd.Function):
    """Hidden states (D * H, T, B) of an LSTM that reads (I, T, B) in D directions, both in bfloat16.

    weight_ih (D, 4H, I), weight_hh (D, 4H, H), bias (D, 4H). after: (T, B), which words stand behind their caption's
    end, None where none does: the direction that reads them first begins at the end. memory: of each direction.
    """

    @staticmethod
    def forward(
        ctx,
        inputs: Tensor,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias: Tensor,
        after: Tensor | None,
        memory: list[Memory],
    ) -> Tensor:
        weights = zip(memory, weight_ih, weight_hh, bias, strict=True)
        ctx.memory, ctx.words = memory, [own.take(inputs, *each) for own, *each in weights]
        closed = [] if after is None else list(after.flip(0))
        return torch.cat(
            [own.read(words, closed if own.way else []) for own, words in zip(memory, ctx.words, strict=True)]
        )

    @staticmethod
    @once_differentiable
    def backward(ctx, given: Tensor):  # pyright: ignore[reportIncompatibleMethodOverride]
        size, of_inputs = ctx.memory[0].size, None
        of_ih, of_hh, of_bias = [], [], []
        for own, words, above in zip(ctx.memory, ctx.words, given.split(size), strict=True):
            more, of_weights = own.learn(words, above)
            of_inputs = more if of_inputs is None else of_inputs + more
            of_hh.append(of_weights[:, :size])
            of_ih.append(of_weights[:, own.own])
            of_bias.append(of_weights[:, own.own.stop])
        return of_inputs, *(torch.stack(each).float() for each in (of_ih, of_hh, of_bias)), None, None
