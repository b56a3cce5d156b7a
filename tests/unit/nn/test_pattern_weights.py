"""The weights in a picture are those that attention used, whatever the pattern."""

import pytest
import torch
from tests.unit.models.small import distance, stir
from torch import Tensor

from dragoman.nn import (
    Causal,
    Documents,
    Fixed,
    Full,
    LinearAttention,
    Longformer,
    MultiHeadAttention,
    Packed,
    Pattern,
    PositionInfo,
    SlidingWindow,
    Strided,
)
from dragoman.nn.patterns.recording import Recording
from dragoman.nn.position.bias import ALiBiBias

PATTERNS: list[Pattern] = [
    Full(),
    Causal(),
    SlidingWindow(size=4),
    SlidingWindow(size=2, causal=False),
    Longformer(window=2, global_positions=(3,)),
    Strided(stride=3),
    Fixed(stride=4, summary=1),
    LinearAttention(),
    LinearAttention(causal=False),
    LinearAttention(decay="retnet"),
    LinearAttention(decay=(0.9, 0.5)),
]


@pytest.mark.parametrize("documents", [None, Documents((5, 8))], ids=["one text", "packed"])
@pytest.mark.parametrize("pattern", PATTERNS, ids=repr)
def test_weights_times_values_are_the_output(pattern: Pattern, documents: Documents | None) -> None:
    """Weights are 0 for keys that pattern or mask hides, sum to 1, and give the output."""
    torch.manual_seed(0)
    attn = MultiHeadAttention(16, 4, num_kv_heads=2, pattern=pattern).double()
    stir(attn)
    x_BLD = torch.randn(2, 13, 16).double()
    info = PositionInfo(pack=None if documents is None else documents.pack)
    mask = torch.ones(2, 1, 1, 13, dtype=torch.bool)
    mask[1, ..., 5:7] = False
    kv = attn.project_kv(x_BLD)
    with torch.no_grad():
        weights_BHTS = attn.weights(x_BLD, kv, mask, info)
        values = kv.v_BKSd.repeat_interleave(2, dim=1)
        expected = attn.out_proj((weights_BHTS @ values).transpose(1, 2).flatten(2))
        assert distance(attn(x_BLD, kv, mask, info), expected) < 1e-12
    whole = pattern if documents is None else Packed(pattern, documents)
    own = whole.mask(13, 13, x_BLD.device)
    seen = mask.expand(2, 4, 13, 13) if own is None else (own & mask).expand(2, 4, 13, 13)
    assert torch.equal(weights_BHTS > 0, seen)
    torch.testing.assert_close(weights_BHTS.sum(-1), seen.any(-1).double())


@pytest.mark.parametrize("documents", [None, Documents((150, 50))], ids=["one text", "packed"])
@pytest.mark.parametrize("pattern", PATTERNS, ids=repr)
def test_a_batch_may_be_empty(pattern: Pattern, documents: Documents | None) -> None:
    """An empty batch gives an empty output, of the usual shape."""
    attn = MultiHeadAttention(16, 4, num_kv_heads=2, pattern=pattern)
    x_BLD = torch.randn(0, 200, 16)
    info = PositionInfo(pack=None if documents is None else documents.pack)
    assert attn(x_BLD, attn.project_kv(x_BLD), None, info).shape == (0, 200, 16)


@pytest.mark.parametrize(
    ("pattern", "bias"),
    [
        *((pattern, None) for pattern in PATTERNS),
        # linear attention has no scores to add a bias to
        *((p, ALiBiBias(4)) for p in PATTERNS if not isinstance(p, LinearAttention)),
    ],
    ids=repr,
)
def test_the_weights_of_some_heads_are_theirs(pattern: Pattern, bias: ALiBiBias | None) -> None:
    """In the requested order, with their own keys, bias, decay and mask; the output is the same."""
    torch.manual_seed(0)
    attn = MultiHeadAttention(16, 4, num_kv_heads=2, pattern=pattern).double()
    stir(attn)
    x_BLD, info = torch.randn(2, 7, 16).double(), PositionInfo(bias=bias)
    kv = attn.project_kv(x_BLD)
    for mask in (None, torch.rand(2, 1, 7, 7) > 0.3, torch.rand(4, 7, 7) > 0.3):
        every_BHTS = attn.weights(x_BLD, kv, mask, info)
        out_BLD = attn(x_BLD, kv, mask, info)
        for heads in ([3, 0], [2], [1, 2, 3]):
            found: list[Tensor] = []
            attn.pattern = Recording(of=pattern, see=found.append, heads=heads)
            assert torch.equal(attn(x_BLD, kv, mask, info), out_BLD)
            (some_BHTS,) = found
            assert some_BHTS.shape == (2, len(heads), 7, 7)
            assert distance(some_BHTS, every_BHTS[:, heads]) < 1e-12
        attn.pattern = pattern
