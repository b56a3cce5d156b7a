"""The weights that a picture shows are those that attention used, whatever the pattern."""

import pytest
import torch
from tests.unit.models.small import distance, stir

from dragoman.nn import (
    NOWHERE,
    Causal,
    Documents,
    Fixed,
    Full,
    LinearAttention,
    Longformer,
    MultiHeadAttention,
    Packed,
    Pattern,
    SlidingWindow,
    Strided,
)

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
]


@pytest.mark.parametrize("documents", [None, Documents((5, 8))], ids=["one text", "packed"])
@pytest.mark.parametrize("pattern", PATTERNS, ids=repr)
def test_weights_times_values_are_the_output(pattern: Pattern, documents: Documents | None) -> None:
    """Weights are 0 where the pattern or the mask hides, sum to 1, and give the output."""
    torch.manual_seed(0)
    attn = MultiHeadAttention(16, 4, num_kv_heads=2, pattern=pattern).double()
    stir(attn)
    x_BLD, place = torch.randn(2, 13, 16).double(), NOWHERE._replace(documents=documents)
    mask = torch.ones(2, 1, 1, 13, dtype=torch.bool)
    mask[1, ..., 5:7] = False
    kv = attn.project_kv(x_BLD)
    with torch.no_grad():
        weights_BHTS = attn.weights(x_BLD, kv, mask, place)
        values = kv.v_BKSd.repeat_interleave(2, dim=1)
        expected = attn.out_proj((weights_BHTS @ values).transpose(1, 2).flatten(2))
        assert distance(attn(x_BLD, kv, mask, place), expected) < 1e-12
    whole = pattern if documents is None else Packed(pattern, documents)
    own = whole.mask(13, 13, x_BLD.device)
    if own is not None:
        assert not bool(weights_BHTS.masked_select(~own).any())
    assert not bool(weights_BHTS.masked_select(~mask).any())
    sums = weights_BHTS.sum(-1)
    torch.testing.assert_close(sums, (sums > 0).double())
