"""What only another device than a CPU shows, on tensors that are said to lie there.

Fake tensors have a device, a dtype and a shape, and obey a GPU's autocast; those of the device
"meta" have no numbers, so whatever a block makes beside its input, on the CPU, is found out.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode  # there is no public name for it

from dragoman.nn import LayerNorm, RMSNorm


@contextmanager
def bf16_on_a_gpu() -> Iterator[None]:
    """Fake tensors, and the autocast that a GPU would have."""
    before = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    torch.set_autocast_enabled("cuda", True)  # noqa: FBT003 (torch's form)
    torch.set_autocast_dtype("cuda", torch.bfloat16)
    try:
        with FakeTensorMode(), torch.no_grad():
            yield
    finally:
        torch.set_autocast_enabled("cuda", before[0])
        torch.set_autocast_dtype("cuda", before[1])


@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_norm_gives_back_the_dtype_that_it_is_given(
    norm: type[LayerNorm] | type[RMSNorm], dtype: torch.dtype
) -> None:
    """On a GPU too, whose autocast computes in float32: the residual stream stays in bfloat16."""
    with bf16_on_a_gpu():
        with torch.device("cuda"):
            block = norm(8).requires_grad_(requires_grad=False)
            x_BLD = torch.ones(2, 3, 8, dtype=dtype)
        assert block(x_BLD).dtype == dtype
