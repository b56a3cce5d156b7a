"""What only another device than a CPU shows, on tensors that are said to lie there.

Fake tensors have a device, a dtype and a shape, and obey a GPU's autocast; those of the device
"meta" have no numbers, so whatever a block makes beside its input, on the CPU, is found out.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode  # there is no public name for it
from torch.overrides import TorchFunctionMode

from dragoman.nn import KeyValue, LayerNorm, RMSNorm, Weighting
from dragoman.nn.patterns.kernels import fused_attention


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


class Fused(TorchFunctionMode):
    """Remembers how many heads queries and keys have that reach torch's fused kernels."""

    def __init__(self) -> None:
        super().__init__()
        self.heads: list[tuple[int, int]] = []

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        """Look, and do what was asked for."""
        if func is F.scaled_dot_product_attention:
            q, k, *_ = args
            self.heads.append((q.shape[-3], k.shape[-3]))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("device", "dtype", "masked", "shared"),
    [
        ("cpu", torch.float32, True, True),
        ("cpu", torch.float32, False, True),
        ("meta", torch.float32, False, False),
        ("meta", torch.bfloat16, False, True),
        ("meta", torch.bfloat16, True, False),
    ],
)
def test_shared_heads_reach_only_kernels_that_know_them(
    device: str, dtype: torch.dtype, *, masked: bool, shared: bool
) -> None:
    """For others torch would fall back to a matrix of scores, which the fused path must not keep.

    A GPU has one kernel that takes fewer key-value heads: flash attention, in half precision and
    without a mask.
    """
    q_BHTd, k_BKSd = (torch.zeros(2, n, 5, 8, dtype=dtype, device=device) for n in (4, 2))
    mask: Tensor | None = torch.ones(2, 1, 1, 5, dtype=torch.bool, device=device)
    weighting = Weighting(scale=1.0)
    with Fused() as fused:
        fused_attention(q_BHTd, KeyValue(k_BKSd, k_BKSd), mask if masked else None, weighting)
    assert fused.heads == [(4, 2 if shared else 4)]
