"""Matrix products with weights that are laid out once, before the first product.

oneDNN multiplies fastest by a matrix in its own blocked order. A module stores its matrix row by
row, as training and files need it, so each of its products reorders the matrix again: for one row
and 512 by 2048 numbers in bfloat16 that is half of the time. `freeze` reorders it once.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.engine.quantized import QuantizedLinear
from dragoman.nn import Arithmetic, Precision, evaluation_view
from dragoman.nn.cpu.native import native
from dragoman.nn.cpu.products import (
    LONG_ROW,
    has_bf16_units,
    rows_are_independent,
    rows_keep_bits,
)

ModuleT = TypeVar("ModuleT", bound=nn.Module)
DTYPES: dict[Arithmetic, torch.dtype] = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "int8": torch.float32,
}
"""Dtype of the vectors between the products."""
EXPECTED_ROWS = 16
"""Number of rows for which oneDNN chooses the order; the order works for any other number."""


@cache
def can_pack(arithmetic: Arithmetic) -> bool:
    """Return whether this installation can multiply by weights that are laid out in advance.

    The operations around the products must be compiled. bf16 requires hardware units: without them
    the bits of a row depend on its neighbours.
    """
    units = arithmetic != "bf16" or has_bf16_units()
    return native() is not None and torch.backends.mkldnn.is_available() and units


@cache
@torch.inference_mode()
def translations_are_independent(precision: Precision) -> bool:
    """Return whether a translation on this CPU has the same bits whatever else is translated.

    Observed with PyTorch 2.13: fp32 translations do, even with AVX2 only, where a module's products
    are not independent (`rows_are_independent`), because oneDNN multiplies by laid-out weights. The
    exception, with AVX2 only: positions that add to an encoder's scores, which a module computes.
    """
    if rows_are_independent(precision):
        return True
    packs = precision == "fp32" and can_pack(precision)
    return packs and rows_keep_bits(lambda linear: PackedLinear(linear, precision="fp32"))


def prepared(*linears: nn.Linear, arithmetic: Arithmetic, first_scale: float = 1.0) -> "Product":
    """Lay out the weights of maps of the same `x`; `first_scale` multiplies the first one's."""
    if arithmetic == "int8":
        return QuantizedLinear(*linears, first_scale=first_scale)
    return PackedLinear(*linears, precision=arithmetic, first_scale=first_scale)


Lend = Callable[[Iterable[nn.Parameter]], AbstractContextManager[object]]
"""Gives the parameters of a model without memory their values while the context is open. What the
caller takes from them then belongs to the caller."""


class Copies:
    """Copies of parameters, each made once."""

    def __init__(self, lend: Lend | None = None) -> None:
        """Start with no copies; parameters that `lend` provides are taken without copying."""
        self._lent, self.lend = lend is not None, lend or nullcontext
        self._made: dict[int, nn.Parameter] = {}

    def of(self, parameter: nn.Parameter) -> nn.Parameter:
        """Return the copy of a parameter."""
        if id(parameter) not in self._made:
            own = parameter.detach() if self._lent else parameter.detach().clone()
            self._made[id(parameter)] = nn.Parameter(own, requires_grad=False)
        return self._made[id(parameter)]

    def take(self, module: ModuleT) -> ModuleT:
        """Copy a module while it is lent its weights."""
        with self.lending(module):
            return copied(module, self)

    @contextmanager
    def lending(self, module: nn.Module) -> Iterator[None]:
        """Lend a module its weights; for those lent before, such as tied ones, lend the copies."""
        parameters = list(module.parameters())
        known = [each for each in parameters if self._lent and id(each) in self._made]
        copies = [nn.Parameter(self._made[id(each)].detach()) for each in known]
        with self.lend([each for each in parameters if all(each is not other for other in known)]):
            swap(known, copies)
            try:
                yield
            finally:
                swap(known, copies)


def swap(parameters: Sequence[nn.Parameter], others: Sequence[nn.Parameter]) -> None:
    """Swap parameters with others in place, for every module that has them."""
    for one, other in zip(parameters, others, strict=True):
        torch.utils.swap_tensors(one, other)


def copied(module: ModuleT, copies: Copies | None = None) -> ModuleT:
    """Copy a module in evaluation mode; a parameter in `copies` is not copied again."""
    view, made = evaluation_view(module), copies or Copies()
    for part in view.modules():
        shared = part._parameters
        part._parameters = {
            name: None if found is None else made.of(found) for name, found in shared.items()
        }
    return view


class PackedLinear:
    """`x W^T + b`; with several maps of the same `x`, the results are side by side.

    A row's result has the same bits whatever the other rows are. To keep this true for a single
    float32 row of more than `LONG_ROW` columns, a second row is added to it.
    """

    def __init__(self, *linears: nn.Linear, precision: Precision, first_scale: float = 1.0) -> None:
        """Lay out the weights; those of the first map are multiplied by `first_scale`."""
        dtype = DTYPES[precision]
        scales = [first_scale] + [1.0] * (len(linears) - 1)
        parts = [scale * linear.weight for scale, linear in zip(scales, linears, strict=True)]
        self._weight = torch.ops.mkldnn._reorder_linear_weight(
            torch.cat(parts).to(dtype), EXPECTED_ROWS
        )
        self._finite = all(bool(part.isfinite().all()) for part in parts)
        self._lonely = precision == "fp32" and linears[0].in_features > LONG_ROW
        self._bias: Tensor | None = None
        if linears[0].bias is not None:
            biases = [scale * linear.bias for scale, linear in zip(scales, linears, strict=True)]
            self._bias = torch.cat(biases).to(dtype)

    def __call__(self, x_MI: Tensor, *, relu: bool = False) -> Tensor:
        """Map `(M, in)` to `(M, out)`, with ReLU if requested.

        oneDNN's own ReLU turns NaN into 0, which would hide a weight that is not finite.
        """
        if relu and not self._finite:
            return self(x_MI).relu()
        if self._lonely and len(x_MI) == 1:
            return self(with_rows(x_MI, 2), relu=relu)[:1]
        out_MO: Tensor = torch.ops.mkldnn._linear_pointwise(
            x_MI, self._weight, self._bias, "relu" if relu else "none", [], ""
        )
        return out_MO

    def plus(self, x_MI: Tensor, residual_MO: Tensor) -> Tensor:
        """Return `x W^T + b + residual`, rounded once."""
        if self._lonely and len(x_MI) == 1:
            return self.plus(with_rows(x_MI, 2), with_rows(residual_MO, 2))[:1]
        out_MO: Tensor = torch.ops.mkldnn._linear_pointwise.binary(
            x_MI, residual_MO, self._weight, self._bias, "add"
        )
        return out_MO


Product = PackedLinear | QuantizedLinear


def familiar_rows(rows: int) -> int:
    """Round up to one of a few numbers: 1 to 8, multiples of 8 to 64, of 64 to 512, of 256.

    oneDNN compiles a kernel for each new shape, which takes as long as ten products with it, and
    batches rarely have the same number of tokens.
    """
    if rows <= 8:
        return rows
    grid = 8 if rows <= 64 else 64 if rows <= 512 else 256
    return -(-rows // grid) * grid


def with_rows(x_NX: Tensor, rows: int) -> Tensor:
    """Return `x`, padded with rows of zeros to `rows` rows."""
    missing = rows - len(x_NX)
    return F.pad(x_NX, (0, 0, 0, missing)) if missing else x_NX
