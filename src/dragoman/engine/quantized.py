"""Integer products: weights and vectors rounded to 8 bits, exact sums in 32 bits.

A weight is `w = w_scale * q` with one scale per output, a vector is `x = scale * q` with one scale
per row, computed for every product (Dettmers et al. 2022, section 2: vector-wise quantisation).
Integers add up to the same sum in any order, so a row's result cannot depend on its neighbours.
"""

import ctypes
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.engine.program import Program
from dragoman.errors import InputError
from dragoman.nn.cpu.native import address, compiled, fields
from dragoman.nn.cpu.rounding import LARGEST, quantized

MOST_INPUTS = (2**31 - 1) // (255 * LARGEST)
"""Maximum inputs for which every sum of `native.c` fits in 32 bits: its vectors are 0 to 255."""
TILE_OUTPUTS = 64
"""Outputs that `native.c` computes side by side."""
BLOCK = 256
"""Rows of weights that are rounded at a time."""


class _Matrix(ctypes.Structure):
    """`struct Matrix` of `native.c`."""

    _fields_ = fields("weight offset scale bias", "inputs outputs")


class QuantizedLinear:
    """`x W^T + b` in 8 bits; with several maps of the same `x`, the results are side by side.

    The product is that of `native.c`.
    """

    def __init__(self, *linears: nn.Linear, first_scale: float = 1.0) -> None:
        """Round the weights; the first map's result is multiplied by `first_scale`.

        The scale does not change the map's integers. Raises InputError for more than `MOST_INPUTS`
        inputs.
        """
        if linears[0].in_features > MOST_INPUTS:
            raise InputError(
                f"int8 is exact for layers of at most {MOST_INPUTS:,} inputs, and this model has "
                f"one of {linears[0].in_features:,}; ask for bfloat16 or float32."
            )
        weight_OI, w_scale_O1 = _rounded([each.weight for each in linears])
        self.outputs, self.inputs = weight_OI.shape
        scale_O = torch.ones(self.outputs, dtype=torch.float32)
        scale_O[: linears[0].out_features] = first_scale
        bias_O = torch.zeros(self.outputs, dtype=torch.float32)
        if linears[0].bias is not None:
            bias_O = torch.cat([each.bias for each in linears]).float() * scale_O
        self._native = compiled()
        self._lay_out(*_tiled(weight_OI, w_scale_O1[:, 0] * scale_O, bias_O))

    def _lay_out(self, *parts: Tensor) -> None:
        """Store what `_tiled` returns and the `struct Matrix` that points to it."""
        self._parts = parts
        self._inputs = parts[0].shape[1] * 4
        self.recorded = self.inputs == self._inputs
        """Whether `record` can be called."""
        addresses = [part.data_ptr() for part in parts]
        self._matrix = _Matrix(*addresses, self._inputs, self.outputs)
        self._at = ctypes.addressof(self._matrix)

    def keep(self, ids_U: Tensor) -> None:
        """Keep only these outputs, in this order, with the same integers."""
        self.outputs = len(ids_U)
        ids_T1O = F.pad(ids_U, (0, -self.outputs % TILE_OUTPUTS)).view(-1, 1, TILE_OUTPUTS)
        fours_TFO = self._parts[0].view(torch.int32).squeeze(3)
        every_F1 = torch.arange(fours_TFO.shape[1])[:, None]
        chosen_TFO = fours_TFO[ids_T1O // TILE_OUTPUTS, every_F1, ids_T1O % TILE_OUTPUTS]
        fours_TFO1 = chosen_TFO[..., None]
        self._lay_out(fours_TFO1, *(part[ids_T1O.flatten()] for part in self._parts[1:]))

    def __call__(
        self,
        x_MI: Tensor,
        *,
        relu: bool = False,
        out_MO: Tensor | None = None,
        residual_MO: Tensor | None = None,
    ) -> Tensor:
        """Map `(M, in)` to `(M, out)`, with ReLU if requested; write to `out_MO` if given."""
        rows, inputs = x_MI.shape
        if inputs < self._inputs:
            x_MI = F.pad(x_MI, (0, self._inputs - inputs))
        x_MI = x_MI.contiguous()
        out_MO = x_MI.new_empty(rows, self.outputs) if out_MO is None else out_MO
        vectors_MI, scale_M = torch.empty(x_MI.shape, dtype=torch.uint8), x_MI.new_empty(rows)
        result = rows, self.outputs
        self._native.product(
            self._at,
            address(x_MI, torch.float32, rows, self._inputs),
            vectors_MI.data_ptr(),
            scale_M.data_ptr(),
            None if residual_MO is None else address(residual_MO, torch.float32, *result),
            relu,
            address(out_MO, torch.float32, *result),
            rows,
        )
        return out_MO

    def plus(self, x_MI: Tensor, residual_MO: Tensor) -> Tensor:
        """Return `x W^T + b + residual`."""
        return self(x_MI, residual_MO=residual_MO)

    def record(
        self,
        program: Program,
        x_RI: Tensor,
        out_RO: Tensor | None = None,
        *,
        relu: bool = False,
        added_RO: Tensor | None = None,
    ) -> Tensor:
        """Append the product to a program, as `__call__` and `plus` compute it."""
        out_RO = program.vectors("product", self.outputs) if out_RO is None else out_RO
        return program.product(self._at, x_RI, out_RO, relu=relu, added_RX=added_RO)


def _rounded(weights: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Quantize the rows of matrices, one matrix below the other, a block at a time.

    A vocabulary of 256,000 has a gigabyte of weights; in blocks, no second copy of it is made.
    """
    blocks = [block for weight in weights for block in weight.split(BLOCK)]
    integers, scales = zip(*(quantized(block.float()) for block in blocks), strict=True)
    return torch.cat(integers), torch.cat(scales)


def _tiled(weight_OI: Tensor, w_scale_O: Tensor, bias_O: Tensor) -> list[Tensor]:
    """Return weights, offsets, scales and biases of a `struct Matrix`, padded to whole tiles."""
    missing = -len(weight_OI) % TILE_OUTPUTS
    weight_OI = F.pad(weight_OI, (0, -weight_OI.shape[1] % 4, 0, missing))
    tiles = weight_OI.view(-1, TILE_OUTPUTS, weight_OI.shape[1] // 4, 4).transpose(1, 2)
    offset_O = 128 * weight_OI.sum(dim=1, dtype=torch.int32)
    return [
        tiles.contiguous(),
        offset_O,
        F.pad(w_scale_O, (0, missing)),
        F.pad(bias_O, (0, missing)),
    ]
