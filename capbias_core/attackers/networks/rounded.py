"""LSTM layers on a CPU whose matrix products read bfloat16, 8 bits of every factor, while weights stay as they are.

Processors with AMX multiply such factors several times as fast and add up in full precision. Weights, what Adam knows
of them, gates' values and cells are 32 bits wide; what products read and give is 16 bits wide.

Values are (features, T, B), and each direction is read by itself: a product then reads weights in the order in which
they lie, and what a step needs fits the cache of a core.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

SHORT = torch.bfloat16
CLOSED = -1e4  # a sum that closes every gate
WHOLE = 32  # how many 16-bit factors a processor takes at once
sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
tanh_backward = torch.ops.aten.tanh_backward.grad_input


class Word(NamedTuple):
    """What reading one word writes, and learning from it reads: places in the memory, (rows, B).

    both: the first two gates. earlier, state: before the word and after it, as cell_before and cell. curve: the cell's
    tanh. of_: gradients.
    """

    gates: Tensor
    both: Tensor
    entered: Tensor
    kept: Tensor
    candidate: Tensor
    shown: Tensor
    cell_before: Tensor
    cell: Tensor
    curve: Tensor
    sums: Tensor
    earlier: Tensor
    state: Tensor
    of_sums: Tensor
    of_earlier: Tensor
    of_state: Tensor


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
        self.turned = torch.empty(size, 4 * size, dtype=SHORT)
        self.own = slice(size, size + width)

    def take(self, inputs: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias: Tensor) -> list[Word]:
        """Rounds inputs (I, T, B) and weights; the words in the order of reading."""
        _, steps, batch = inputs.shape
        if steps > self.steps or batch != self.batch:
            self._grow(max(steps, self.steps), batch)
        there = self.joined[self.size :, self.way : self.way + steps]
        there[: self.width].copy_(inputs)
        self.weights[:, : self.size].copy_(weight_hh)
        self.weights[:, self.own].copy_(weight_ih)
        self.weights[:, self.own.stop].copy_(bias)
        torch.mm(self.weights[:, self.size :], there.flatten(1), out=self.sums[:, :steps].flatten(1))
        first, last = self.way * steps, (1 - self.way) * steps
        for start in (self.joined[: self.size, first], self.of_states[:, last], self.cells[first]):
            start.zero_()
        words = self.words[:steps]
        return words[::-1] if self.way else words

    def _grow(self, steps: int, batch: int) -> None:
        size, self.steps, self.batch = self.size, steps, batch
        self.joined = torch.zeros(self.rows, steps + 1, batch, dtype=SHORT)
        self.joined[self.own.stop] = 1
        self.of_states = torch.zeros(size, steps + 1, batch, dtype=SHORT)
        self.sums, self.of_sums = torch.empty(2, 4 * size, steps, batch, dtype=SHORT)
        self.of_gates = torch.empty(4 * size, batch)
        self.exact, self.of_cell, self.of_curve = torch.empty(3, size, batch)
        self.cells = torch.empty(steps + 1, size, batch)
        active, curves = torch.empty(steps, 4 * size, batch), torch.empty(steps, size, batch)
        self.words = [self._word(*each) for each in zip(range(steps), active, curves, strict=True)]

    def _word(self, place: int, gates: Tensor, curve: Tensor) -> Word:
        size, before, after = self.size, place + self.way, place + 1 - self.way
        return Word(
            gates,
            gates[: 2 * size],
            gates[:size],
            gates[size : 2 * size],
            gates[2 * size : 3 * size],
            gates[3 * size :],
            self.cells[before],
            self.cells[after],
            curve,
            self.sums[:, place],
            self.joined[:size, before],
            self.joined[:size, after],
            self.of_sums[:, place],
            self.of_states[:, before],
            self.of_states[:, after],
        )

    def read(self, words: list[Word], closed: list[Tensor]) -> Tensor:
        """The states after each word, (H, T, B)."""
        staying = self.weights[:, : self.size]
        for step, word in enumerate(words):
            if step:  # before the first word there is no state
                word.sums.addmm_(staying, word.earlier)
            if closed:
                word.sums.masked_fill_(closed[step], CLOSED)
            word.gates.copy_(word.sums)
            word.both.sigmoid_()
            word.candidate.tanh_()
            word.shown.sigmoid_()
            torch.mul(word.kept, word.cell_before, out=word.cell).addcmul_(word.entered, word.candidate)
            torch.tanh(word.cell, out=word.curve)
            word.state.copy_(torch.mul(word.shown, word.curve, out=self.exact))
        return self.joined[: self.size, 1 - self.way : len(words) + 1 - self.way]

    def learn(self, words: list[Word], given: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients of the inputs (I, T, B) and of the weights from those of the states (H, T, B)."""
        steps, of_state, of_cell, of_curve = len(words), self.exact, self.of_cell, self.of_curve
        of_both = self.of_gates[: 2 * self.size]
        of_entered, of_kept, of_candidate, of_shown = self.of_gates.split(self.size)
        turned = self.turned.copy_(self.weights[:, : self.size].T)
        of_cell.zero_()
        above = given.unbind(1)[:: -1 if self.way else 1]
        for word, own in zip(reversed(words), reversed(above), strict=True):
            of_state.copy_(own).add_(word.of_state)
            torch.mul(of_state, word.shown, out=of_curve)
            of_cell.add_(tanh_backward(of_curve, word.curve, grad_input=of_curve))
            torch.mul(of_cell, word.candidate, out=of_entered)
            torch.mul(of_cell, word.cell_before, out=of_kept)
            torch.mul(of_cell, word.entered, out=of_candidate)
            torch.mul(of_state, word.curve, out=of_shown)
            sigmoid_backward(of_both, word.both, grad_input=of_both)
            tanh_backward(of_candidate, word.candidate, grad_input=of_candidate)
            sigmoid_backward(of_shown, word.shown, grad_input=of_shown)
            word.of_sums.copy_(self.of_gates)
            of_cell.mul_(word.kept)
            if word is not words[0]:
                torch.mm(turned, word.of_sums, out=word.of_earlier)
        there = slice(self.way, self.way + steps)
        of_sums = self.of_sums[:, :steps].flatten(1)
        of_weights = of_sums @ self.joined[:, there].flatten(1).T
        return (self.weights[:, self.own].T @ of_sums).view(self.width, steps, -1), of_weights


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
