"""In which arithmetic products are computed, and when a row's result depends on its row alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Literal

import torch
from torch.backends import mkldnn

Precision = Literal["fp32", "bf16"]


def autocast(precision: Precision, device: torch.device) -> torch.autocast:
    """Return the context in which products on `device` run in `precision`.

    `bf16` rounds the factors of products to bfloat16 and keeps weights in float32; `fp32` switches
    an autocast around it off.
    """
    if precision == "bf16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return torch.autocast(device.type, enabled=False)


@contextmanager
def row_invariant_products() -> Iterator[None]:
    """Inside, a row of a float32 product on a CPU has the same bits whatever rows stand beside it.

    The CPU's default library (MKL) chooses how to sum by the number of rows, so a sentence's
    logits change in the last digits with its batch. oneDNN does not (measured on AVX-512, where
    every row count agreed but one row of more than 1024 columns, which `nn.products` mends; with
    AVX2 alone PyTorch stays with MKL, and the promise does not hold). How PyTorch is made to take
    oneDNN for plain float32 products is `onednn_setting`'s affair.

    The setting belongs to the process, threads included. Inside the context
    `torch.get_float32_matmul_precision` raises an error, so start `torch.compile` outside.
    """
    setting = onednn_setting()
    matmul = mkldnn.matmul  # type: ignore[attr-defined] # a property of the module
    before = matmul.fp32_precision
    matmul.fp32_precision = setting
    try:
        yield
    finally:
        matmul.fp32_precision = before


@cache
def onednn_setting() -> str:
    """Return the precision setting under which this processor's oneDNN multiplies in full float32.

    PyTorch gives float32 products to oneDNN when they may be less precise than float32: `bf16`
    says "bfloat16 units where there are any", `tf32` the same of TF32 units. On processors without
    AMX the first means oneDNN in full accuracy (and the second is passed over, so MKL computes); on
    those with AMX the first loses half of the digits, and the second means full accuracy. Which of
    the two this is, is seen from the error of one product.
    """
    matmul = mkldnn.matmul  # type: ignore[attr-defined] # a property of the module
    before = matmul.fp32_precision
    a, b = torch.linspace(-1, 1, 64 * 256).view(2, 64, 128)
    try:
        matmul.fp32_precision = "bf16"
        error = (a @ b.T - (a.double() @ b.double().T)).abs().max()
    finally:
        matmul.fp32_precision = before
    return "bf16" if error < 1e-3 else "tf32"


def uses_onednn(dtype: torch.dtype) -> bool:
    """Return whether a CPU product of this dtype goes to oneDNN, here and now."""
    matmul = mkldnn.matmul  # type: ignore[attr-defined] # a property of the module
    return dtype is torch.bfloat16 or bool(matmul.fp32_precision == onednn_setting())
