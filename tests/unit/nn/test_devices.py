"""Errors that only a device other than the CPU shows, on tensors that claim to be there.

Fake tensors have a device, a dtype and a shape, and obey a GPU's autocast; tensors on the
device "meta" have no numbers, so anything a block creates on the CPU is detected.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
import torch.nn.functional as F
from tests.calls import Call, FunctionCalls, OperatorCalls
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode  # there is no public name

from dragoman.nn import (
    ALiBi,
    AttentionPattern,
    Causal,
    Decoder,
    Documents,
    Dropout,
    DynamicScaling,
    Fixed,
    Full,
    KeyValue,
    LayerConfig,
    LayerNorm,
    Learned,
    LearnedPositions,
    LinearAttention,
    Longformer,
    NoPositions,
    Packed,
    Pattern,
    PositionScheme,
    RelativeBias,
    RMSNorm,
    Rotary,
    Scoring,
    Sinusoidal,
    SinusoidalPositions,
    SlidingWindow,
    Strided,
    TokenEmbedding,
)
from dragoman.nn.cpu.attention import fused_attention
from dragoman.nn.patterns.packed import attend_by_varlen, is_served, torch_has_it


@contextmanager
def bf16_on_a_gpu() -> Iterator[None]:
    """Use fake tensors, and the autocast of a GPU."""
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
    """On a GPU, whose autocast computes it in float32, the residual stream stays in bfloat16."""
    with bf16_on_a_gpu():
        with torch.device("cuda"):
            block = norm(8).requires_grad_(requires_grad=False)
            x_BLD = torch.ones(2, 3, 8, dtype=dtype)
        assert block(x_BLD).dtype == dtype


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
    """With others torch would fall back to a matrix of scores, which the fused path must not keep.

    A GPU has one kernel that takes fewer key-value heads: flash attention, in half precision and
    without a mask.
    """
    q_BHTd, k_BKSd = (torch.zeros(2, n, 5, 8, dtype=dtype, device=device) for n in (4, 2))
    mask: Tensor | None = torch.ones(2, 1, 1, 5, dtype=torch.bool, device=device)
    scoring = Scoring(scale=1.0)
    with FunctionCalls() as calls:
        fused_attention(q_BHTd, KeyValue(k_BKSd, k_BKSd), mask if masked else None, scoring)
    kernels = [call for call in calls.seen if call.function is F.scaled_dot_product_attention]
    heads = [[x.shape[-3] for x in call.arguments[:2]] for call in kernels]
    assert heads == [[4, 2 if shared else 4]]


def test_no_kernel_that_plans_for_each_shape() -> None:
    """cuDNN's does, so it is disabled on a GPU; the process's own setting is restored."""
    offered: list[tuple[bool, bool]] = []

    class Offered(FunctionCalls):
        def see(self, call: Call) -> None:
            if call.function is F.scaled_dot_product_attention:
                chosen = torch.backends.cuda
                offered.append((chosen.cudnn_sdp_enabled(), chosen.flash_sdp_enabled()))

    with bf16_on_a_gpu(), torch.device("cuda"), Offered():
        q_BHTd, k_BKSd = torch.zeros(2, 4, 5, 8), torch.zeros(2, 4, 7, 8)
        fused_attention(q_BHTd, KeyValue(k_BKSd, k_BKSd), None, Scoring(scale=1.0))
    assert offered == [(False, True)]
    assert torch.backends.cuda.cudnn_sdp_enabled()


def waits(calls: FunctionCalls) -> list[Call]:
    """Return the calls for which a CPU would wait for a GPU, here the device "meta".

    A tensor that is created there from Python numbers, or copied there without `non_blocking`, is
    ready only after all work before it. (Reading a number is an error on "meta".)
    """
    there = [call for call in calls.seen if isinstance(call.result, Tensor) and call.result.is_meta]
    return [
        call
        for call in there
        if call.function is torch.tensor
        or (
            call.function is Tensor.to
            and call.arguments[0].is_cpu
            and not call.options.get("non_blocking")
        )
    ]


@pytest.mark.parametrize("lengths", [(5, 300, 4, 6), (7, 7, 7)], ids=str)
@pytest.mark.parametrize("within", [Full(), Causal(), SlidingWindow(size=9)], ids=repr)
def test_packed_documents_wait_for_no_gpu(lengths: tuple[int, ...], within: Pattern) -> None:
    """Their positions follow from their lengths: in groups, one by one, and for the kernel."""
    x_BHLd = torch.zeros(2, 2, sum(lengths), 8, device="meta")
    kv, scoring = KeyValue(x_BHLd, x_BHLd), Scoring(scale=1.0)

    def kernel(q: Tensor, *_: object, **__: object) -> Tensor:
        return q

    with FunctionCalls() as calls:
        out = Packed(within, Documents(lengths)).attend(x_BHLd, kv, None, scoring)
        by_kernel = attend_by_varlen(x_BHLd, kv, lengths, (-1, 0), scoring, kernel)
    assert not waits(calls)
    assert out.shape == by_kernel.shape == x_BHLd.shape


@pytest.mark.skipif(not torch_has_it(), reason="this torch has no such kernel")
@pytest.mark.parametrize(
    ("width", "dtype", "scoring", "capability", "served"),
    [
        (8, torch.bfloat16, Scoring(scale=1.0), (8, 0), True),
        (256, torch.float16, Scoring(scale=1.0), (9, 0), True),
        (12, torch.bfloat16, Scoring(scale=1.0), (8, 0), False),
        (264, torch.bfloat16, Scoring(scale=1.0), (8, 0), False),
        (8, torch.float32, Scoring(scale=1.0), (8, 0), False),
        (8, torch.bfloat16, Scoring(scale=1.0, soft_cap=9.0), (8, 0), False),
        (8, torch.bfloat16, Scoring(scale=1.0, dropout=Dropout(0.1)), (8, 0), False),
        (8, torch.bfloat16, Scoring(scale=1.0), (7, 5), False),
    ],
)
def test_a_gpu_attends_to_packed_documents_by_one_kernel(
    width: int,
    dtype: torch.dtype,
    scoring: Scoring,
    capability: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
    *,
    served: bool,
) -> None:
    """This needs heads of these widths, half precision and plain weights."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    documents = Documents((5, 15))
    with FakeTensorMode(), torch.no_grad(), OperatorCalls() as calls:
        with torch.device("cuda"):
            x_BHLd = torch.ones(2, 2, 20, width, dtype=dtype)
        assert is_served(x_BHLd, scoring) == served
        for within in (Full(), Causal(), SlidingWindow(size=9)) if served else ():
            Packed(within, documents).attend(x_BHLd, KeyValue(x_BHLd, x_BHLd), None, scoring)
    names = [str(call.function) for call in calls.seen]
    assert len([name for name in names if "varlen" in name]) == (3 if served else 0)


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
    """Forward and backward use the input's dtype and device, and no number is read.

    On "meta" there are none, so reading is an error; on a GPU it would wait for all earlier work.
    """
    shape = LayerConfig(
        d_model=16,
        num_heads=4,
        num_kv_heads=2,
        d_ff=8,
        positions=positions,
        final_norm=True,
        dropout=0.1,
    )
    with torch.device("meta"):
        stack = Decoder(shape, 2, (pattern,), cross_attention=False)
        embedding = TokenEmbedding(9, 16, pad_id=0)
        ids_BL = torch.zeros(2, LENGTH, dtype=torch.long)
    x_BLD = embedding.to(dtype)(ids_BL)
    if isinstance(positions, Sinusoidal | Learned):
        table: SinusoidalPositions | LearnedPositions = positions.make_table(16)
        x_BLD = table.to("meta", dtype)(x_BLD)
    stack.to(dtype).train()
    with FunctionCalls() as calls:
        out_BLD = stack(x_BLD)
    assert not waits(calls)
    assert (out_BLD.device.type, out_BLD.dtype) == ("meta", dtype)
    out_BLD.sum().backward()
    for parameter in (*stack.parameters(), *embedding.parameters()):
        assert parameter.grad is not None
        assert (parameter.grad.device.type, parameter.grad.dtype) == ("meta", dtype)
