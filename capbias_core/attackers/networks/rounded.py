"""LSTM layers on a CPU whose matrix products read bfloat16, 8 bits of every factor, while weights stay as they are.

Processors with AMX or AVX512-BF16 multiply such factors several times as fast and add up in full precision. Weights,
what Adam knows of them, gates' values, cells and the head are 32 bits wide; products give 16 bits.
"""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

SHORT = torch.bfloat16
sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
tanh_backward = torch.ops.aten.tanh_backward.grad_input


class Scratch:
    """Memory that a layer keeps from one batch to the next: getting it anew takes as long as much of what fills it."""

    def __init__(self):
        self.kept: dict[str, Tensor] = {}

    def __call__(self, name: str, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        size = prod(shape)
        if name not in self.kept or len(self.kept[name]) < size:
            self.kept[name] = torch.empty(size, dtype=dtype)
        return self.kept[name][:size].view(shape)


class RoundedStates(torch.autograd.Function):
    """Hidden states (N, T, B, H) of N LSTMs, one a direction, in bfloat16.

    inputs: (N, T, B, I) in bfloat16; weight_ih (N, 4H, I), weight_hh (N, 4H, H), bias (N, 4H): gates in PyTorch's
    order, input, forget, cell and output. The states lie in the scratch and are read before the layer's next batch.
    """

    @staticmethod
    def forward(ctx, inputs: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias: Tensor, scratch: Scratch) -> Tensor:
        ways, steps, batch, _ = inputs.shape
        size = weight_hh.shape[2]
        entering = scratch("entering", *weight_ih.shape, dtype=SHORT).copy_(weight_ih)
        staying = scratch("staying", *weight_hh.shape, dtype=SHORT).copy_(weight_hh)
        sums = scratch("sums", ways, steps, batch, 4 * size, dtype=SHORT)
        for way in range(ways):
            flat = inputs[way].flatten(0, 1)
            torch.addmm(bias[way].to(SHORT), flat, entering[way].T, out=sums[way].flatten(0, 1))
        active = scratch("active", *sums.shape)
        squashed = scratch("squashed", ways, steps, batch, size)
        cells = scratch("cells", ways, steps + 1, batch, size)
        hidden = scratch("hidden", *cells.shape, dtype=SHORT)
        state = scratch("state", ways, batch, size)
        cells[:, 0], hidden[:, 0] = 0, 0
        cell, *after = cells.unbind(1)
        before = hidden.unbind(1)
        for step, (total, now, curve, new) in enumerate(
            zip(sums.unbind(1), active.unbind(1), squashed.unbind(1), after, strict=True)
        ):
            if step:
                for way in range(ways):
                    total[way].addmm_(before[step][way], staying[way].T)
            now.copy_(total)
            entered, kept, candidate, shown = now.split(size, dim=-1)
            now[..., : 2 * size].sigmoid_()
            candidate.tanh_()
            shown.sigmoid_()
            torch.mul(kept, cell, out=new).addcmul_(entered, candidate)
            torch.tanh(new, out=curve)
            before[step + 1].copy_(torch.mul(shown, curve, out=state))
            cell = new
        ctx.save_for_backward(inputs, entering, staying, active, squashed, cells, hidden)
        ctx.scratch = scratch
        return hidden[:, 1:]

    @staticmethod
    @once_differentiable
    def backward(ctx, given: Tensor):  # pyright: ignore[reportIncompatibleMethodOverride]
        inputs, entering, staying, active, squashed, cells, hidden = ctx.saved_tensors
        scratch = ctx.scratch
        ways, steps, batch, width = inputs.shape
        size = staying.shape[2]
        found = scratch("found", ways, steps, batch, 4 * size, dtype=SHORT)  # gradients of the gates' sums
        own = scratch("own", ways, batch, 4 * size)
        state, cell, of_state = (scratch(name, ways, batch, size) for name in ("given", "cell", "of_state"))
        later = scratch("later", ways, batch, size, dtype=SHORT)
        cell.zero_()
        later.zero_()
        both = own[..., : 2 * size]
        of_entered, of_kept, of_candidate, of_shown = own.split(size, dim=-1)
        each = (tensor.unbind(1) for tensor in (given, active, squashed, cells[:, :-1], found))
        for above, now, curve, before, sums in reversed(list(zip(*each, strict=True))):
            entered, kept, candidate, shown = now.split(size, dim=-1)
            state.copy_(above).add_(later)
            tanh_backward(torch.mul(state, shown, out=of_state), curve, grad_input=of_state)
            cell.add_(of_state)
            torch.mul(cell, candidate, out=of_entered)
            torch.mul(cell, before, out=of_kept)
            torch.mul(cell, entered, out=of_candidate)
            torch.mul(state, curve, out=of_shown)
            sigmoid_backward(both, now[..., : 2 * size], grad_input=both)
            tanh_backward(of_candidate, candidate, grad_input=of_candidate)
            sigmoid_backward(of_shown, shown, grad_input=of_shown)
            sums.copy_(own)
            cell.mul_(kept)
            for way in range(ways):
                torch.mm(sums[way], staying[way], out=later[way])
        of_inputs = scratch("of_inputs", *inputs.shape, dtype=SHORT) if ctx.needs_input_grad[0] else None
        of_ih = scratch("of_ih", *entering.shape, dtype=SHORT)
        of_hh = scratch("of_hh", *staying.shape, dtype=SHORT)
        of_bias = scratch("of_bias", ways, 1, 4 * size, dtype=SHORT)
        ones = torch.ones(1, steps * batch, dtype=SHORT)
        for way in range(ways):
            flat = found[way].flatten(0, 1)
            torch.mm(flat.T, inputs[way].flatten(0, 1), out=of_ih[way])
            torch.mm(flat.T, hidden[way, :-1].flatten(0, 1), out=of_hh[way])
            torch.mm(ones, flat, out=of_bias[way])
            if of_inputs is not None:
                torch.mm(flat, entering[way], out=of_inputs[way].flatten(0, 1))
        return of_inputs, of_ih.float(), of_hh.float(), of_bias[:, 0].float(), None
