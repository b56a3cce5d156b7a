"""A decoder step, or an encoder, as a list of operations of `native.c` that one call runs.

With a single row, Python takes longer between two operations than many operations take themselves,
and a second thread that is woken for each of them comes too late. A step has the same operations
for every token, so they are listed once, with the memory that each reads and writes. Without a
program the same functions are called one by one, so the bits are the same.
"""

import ctypes
from typing import Self

import torch
from torch import Tensor

from dragoman.nn.cpu.native import Ahead, address, compiled, fields

EMBED, NORM, PRODUCT, GATE, SILU, ATTEND, LAY_OUT = range(7)


class _Operation(ctypes.Structure):
    """`struct Operation` of `native.c`."""

    _fields_ = (*fields("", "kind relu width length"), *fields("by source added to keys values"))


class Program:
    """Operations on the vectors of up to `rows` rows, and the memory of these vectors."""

    def __init__(self, rows: int, length: int = 1) -> None:
        """Start with no operations; the rows are sequences of `length` tokens."""
        self._functions, self._rows, self.length = compiled(), rows, length
        self._memory: dict[tuple[str, int], Tensor] = {}
        self._rounded = torch.empty(0, dtype=torch.uint8)
        self._scale_R = torch.empty(rows, dtype=torch.float32)
        self.clear()

    def clear(self) -> None:
        """Remove the operations, but keep the memory for the next ones."""
        self.operations: list[_Operation] = []
        self.products = 0
        """Number of multiplications per row."""

    def vectors(self, name: str, columns: int) -> Tensor:
        """Return memory for `(rows, columns)`, the same for the same name."""
        key = name, columns
        if key not in self._memory:
            self._memory[key] = torch.empty(self._rows, columns, dtype=torch.float32)
        return self._memory[key]

    def embed(self, by: int, columns: int) -> Tensor:
        """Look up the vectors of the tokens that are passed to `run`.

        `by` is the address of the operation's parameters, here and below.
        """
        x_RX = self.vectors("input", columns)
        return self._add(_Operation(kind=EMBED, by=by, length=self.length), x_RX, x_RX)

    def norm(self, by: int, x_RX: Tensor, out_RX: Tensor) -> Tensor:
        """Normalise."""
        return self._add(_Operation(kind=NORM, by=by), x_RX, out_RX)

    def product(
        self, by: int, x_RX: Tensor, out_RX: Tensor, *, relu: bool, added_RX: Tensor | None
    ) -> Tensor:
        """Multiply."""
        self.products += x_RX.shape[1] * out_RX.shape[1]
        if self._rounded.numel() < x_RX.numel():
            self._rounded = torch.empty(x_RX.numel(), dtype=torch.uint8)
        added = None if added_RX is None else added_RX.data_ptr()
        return self._add(_Operation(kind=PRODUCT, by=by, relu=relu, added=added), x_RX, out_RX)

    def silu(self, x_RX: Tensor, *, gated: bool) -> Tensor:
        """Compute `silu` of each number or, if `gated`, `silu(gate) * value` of a row's halves."""
        operation = _Operation(kind=GATE if gated else SILU, width=x_RX.shape[1] // (1 + gated))
        return self._add(operation, x_RX, self.vectors("gated", operation.width))

    def attend(
        self, by: int, q_RX: Tensor, columns: int, keys_values: tuple[Tensor, Tensor], *, own: bool
    ) -> Tensor:
        """Attend; with `own`, keys and values follow the queries."""
        keys, values = (each.data_ptr() for each in keys_values)
        behind = q_RX[0, columns:].data_ptr() if own else None
        operation = _Operation(kind=ATTEND, by=by, added=behind, keys=keys, values=values)
        operation.width = q_RX.shape[1]
        return self._add(operation, q_RX, self.vectors("attended", columns))

    def lay_out(self, by: int, kv_RX: Tensor, keys_values: tuple[Tensor, Tensor]) -> None:
        """Copy keys and values, side by side in rows, to where those of sources are read."""
        keys, values = (each.data_ptr() for each in keys_values)
        operation = _Operation(kind=LAY_OUT, by=by, keys=keys, values=values, length=self.length)
        operation.width = kv_RX.stride(0)
        self._add(operation, kv_RX, kv_RX)

    def _add(self, operation: _Operation, x_RX: Tensor, out_RX: Tensor) -> Tensor:
        operation.source, operation.to = x_RX.data_ptr(), out_RX.data_ptr()
        self.operations.append(operation)
        self.output_RX = out_RX
        return out_RX

    def finish(self) -> Self:
        """Close the list of operations."""
        self._listed = (_Operation * len(self.operations))(*self.operations)
        return self

    def run(self, ids_N: Tensor, added_LD: Tensor | None) -> Tensor:
        """Compute the last operation's result for these tokens, valid until the next call.

        `added_LD` is added to the vectors of each sequence.
        """
        ids_N, rows = ids_N.long().contiguous(), len(ids_N)
        first = self._listed[0]
        first.source = address(ids_N, torch.int64, rows)
        first.added = None
        if added_LD is not None:
            first.added = address(added_LD, torch.float32, self.length, added_LD.shape[1])
        scratch = self._rounded.data_ptr(), self._scale_R.data_ptr()
        self._functions.run(self._listed, len(self._listed), *scratch, rows, self.products)
        return self.output_RX[:rows]

    def tell(self, ahead: Ahead) -> None:
        """Tell `ahead` how to run a step, whose last operation gives logits."""
        ahead.operations, ahead.count = ctypes.addressof(self._listed), len(self._listed)
        ahead.vectors, ahead.scale = self._rounded.data_ptr(), self._scale_R.data_ptr()
        ahead.work = self.products
        ahead.logits, ahead.columns = self.output_RX.data_ptr(), self.output_RX.shape[1]
