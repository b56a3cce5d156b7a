"""Products whose rows do not depend on how many rows there are.

On a CPU, PyTorch gives a product to one library or another by its size: oneDNN (inside
`row_invariant_products`) sums a row in one order whatever rows stand beside it, but products of at
most 4096 multiplications go to MKL or to a plain loop, which sum in another order. So one token of
a short sentence, decoded alone, would differ in its last digits from the same token in a batch.
Rows of zeros, added below and cut off again, lift such products over the limit. Only tiny products
are ever touched: from 4097 multiplications on, these are the plain operators.
"""

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.nn.cpu.precision import Precision, autocast, row_invariant_products, uses_onednn

SMALL_PRODUCT = 16**3  # multiplications up to which PyTorch does not ask oneDNN
LONG_ROW = 1024  # columns beyond which oneDNN sums a lone row in another order
TRIED = ((32, 256), (64, 64), (128, 512), (512, 512), (2048, 96))  # columns and rows of matrices


class Linear(nn.Linear):
    """`x W^T + b`, each row of `x` by itself."""

    def forward(self, x: Tensor) -> Tensor:
        """Map `(..., in_features)` to `(..., out_features)`."""
        rows = x.numel() // self.in_features
        if rows == 0 or x.device.type != "cpu":
            return super().forward(x)
        wanted = max(_least_rows(self.weight.numel()), 2 if self.in_features > LONG_ROW else 1)
        if uses_onednn(x.dtype):
            wanted = max(wanted, _familiar_rows(rows))
        if rows >= wanted:
            return super().forward(x)
        flat = x.reshape(rows, self.in_features)
        out = super().forward(F.pad(flat, (0, 0, 0, wanted - rows)))[:rows]
        return out.view(*x.shape[:-1], self.out_features)


def _familiar_rows(rows: int) -> int:
    """Round up to one of few numbers: multiples of 8 to 64, then of 64.

    oneDNN compiles a kernel for each new shape, which takes as long as ten such products (measured:
    5 to 10 ms). Batches of sentences hardly ever have the same number of tokens, and decoding
    loses rows as sentences end.
    """
    grid = 1 if rows <= 4 else 8 if rows <= 64 else 64
    return -(-rows // grid) * grid


def head_product(a_BHTK: Tensor, b_BHKN: Tensor) -> Tensor:
    """Return `a @ b` of every head, `(B, H, T, N)`, each row of `a` by itself."""
    rows = a_BHTK.shape[-2]
    wanted = _least_rows(b_BHKN.numel())
    if rows >= wanted or a_BHTK.device.type != "cpu":
        return a_BHTK @ b_BHKN
    return (F.pad(a_BHTK, (0, 0, 0, wanted - rows)) @ b_BHKN)[..., :rows, :]


def _least_rows(multiplications_per_row: int) -> int:
    return SMALL_PRODUCT // max(1, multiplications_per_row) + 1


@cache
@torch.inference_mode()
def rows_are_independent(precision: Precision) -> bool:
    """Return whether a row of a product on this CPU has the same bits whatever rows are beside it.

    Found by multiplying a few matrices. Seen so far with PyTorch 2.13: fp32 rows are independent
    with AVX-512, not with AVX2; bf16 rows are, except with an AVX-512 that has no units for bf16.
    With PyTorch 2.11 and 2.12, fp32 rows are not independent.
    """

    def numbers(*size: int) -> Tensor:
        return torch.arange(float(size[0] * size[1])).sin().view(size)

    with row_invariant_products(), autocast(precision, torch.device("cpu")):
        for columns, rows in TRIED:
            linear, x = nn.utils.skip_init(Linear, columns, rows, bias=False), numbers(66, columns)
            linear.weight.copy_(numbers(rows, columns))
            expected = linear(x)
            for count in (1, 2, 3, 5, 8, 33):
                if not torch.equal(torch.cat([linear(part) for part in x.split(count)]), expected):
                    return False
    return True
