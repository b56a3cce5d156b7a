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

from dragoman.nn import (
    ALiBi,
    AttentionPattern,
    Causal,
    Decoder,
    DynamicScaling,
    Fixed,
    KeyValue,
    LayerNorm,
    LayerShape,
    Learned,
    LearnedPositions,
    LinearAttention,
    Longformer,
    NoPositions,
    PositionScheme,
    RelativeBias,
    RMSNorm,
    Rotary,
    Sinusoidal,
    SinusoidalPositions,
    SlidingWindow,
    Strided,
    TokenEmbedding,
    Weighting,
)
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


LENGTH = 300  # more than a block of any pattern here


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("pattern", "positions"),
    [
        *((Causal(), scheme) for scheme in (Sinusoidal(), Learned(), RelativeBias(), ALiBi())),
        (Causal(), Rotary(scaling=DynamicScaling(factor=2.0, trained_length=100))),
        (SlidingWindow(size=40), Rotary(pairing="adjacent")),
        (Longformer(window=40, causal=True), RelativeBias()),
        (Strided(stride=32), ALiBi()),
        (Fixed(stride=32, summary=5), NoPositions()),
        (LinearAttention(decay="retnet"), Sinusoidal()),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_what_is_made_inside_follows_the_input(
    pattern: AttentionPattern, positions: PositionScheme, dtype: torch.dtype
) -> None:
    """Forward and backward, in the input's dtype and on its device, and no number is asked for.

    On "meta" there are none, so asking is an error; on a GPU it would wait for all work before.
    """
    shape = LayerShape(
        d_model=16, num_heads=4, num_kv_heads=2, d_ff=8, positions=positions, dropout=0.1
    )
    with torch.device("meta"):
        stack = Decoder(shape, 2, final_norm=True, cross_attention=False, patterns=(pattern,))
        embedding = TokenEmbedding(9, 16, pad_id=0)
        ids_BL = torch.zeros(2, LENGTH, dtype=torch.long)
    x_BLD = embedding.to(dtype)(ids_BL)
    if isinstance(positions, Sinusoidal | Learned):
        table: SinusoidalPositions | LearnedPositions = positions.make_table(16)
        x_BLD = table.to("meta", dtype)(x_BLD)
    out_BLD = stack.to(dtype).train()(x_BLD)
    assert (out_BLD.device.type, out_BLD.dtype) == ("meta", dtype)
    out_BLD.sum().backward()
    for parameter in (*stack.parameters(), *embedding.parameters()):
        assert parameter.grad is not None
        assert (parameter.grad.device.type, parameter.grad.dtype) == ("meta", dtype)
