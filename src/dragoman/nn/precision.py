"""In which arithmetic products are computed, and when a row's result depends on its row alone."""

from collections.abc import Iterator
from contextlib import contextmanager
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
    AVX2 alone PyTorch stays with MKL, and the promise does not hold). PyTorch takes
    oneDNN for float32 when the precision of its products is set to `tf32`, which means "TF32 units
    where there are any": x86 processors on sale have none, and the result is a plain float32
    product in full accuracy.

    The setting belongs to the process, threads included. Inside the context
    `torch.get_float32_matmul_precision` raises an error, so start `torch.compile` outside.
    """
    matmul = mkldnn.matmul  # type: ignore[attr-defined] # a property of the module
    before = matmul.fp32_precision
    matmul.fp32_precision = "tf32"
    try:
        yield
    finally:
        matmul.fp32_precision = before


def uses_onednn(dtype: torch.dtype) -> bool:
    """Return whether a CPU product of this dtype goes to oneDNN, here and now."""
    matmul = mkldnn.matmul  # type: ignore[attr-defined] # a property of the module
    return dtype is torch.bfloat16 or bool(matmul.fp32_precision == "tf32")
