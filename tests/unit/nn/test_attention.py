"""Multi-head attention apart from its formula."""

from typing import Any

import pytest
import torch
from tests.unit.nn.test_pattern_weights import PATTERNS

from dragoman.errors import InputError
from dragoman.nn import LayerConfig, LinearAttention, MultiHeadAttention, Pattern


@pytest.mark.parametrize("pattern", PATTERNS, ids=repr)
def test_a_mask_may_say_the_same_of_all_keys(pattern: Pattern) -> None:
    """It broadcasts to `(B, H, T, S)` over any of its axes, in every pattern's fast path."""
    torch.manual_seed(0)
    attn = MultiHeadAttention(8, 2, pattern=pattern).double()
    x_BTD = torch.randn(2, 200, 8, dtype=torch.float64)
    kv = attn.project_kv(x_BTD)
    mask = torch.tensor([True, False])[:, None, None, None]
    out_BTD = attn(x_BTD, kv, mask)
    assert torch.equal(out_BTD, attn(x_BTD, kv, mask.expand(2, 1, 1, 200)))
    assert torch.equal(out_BTD[1], attn.out_proj(torch.zeros(200, 8, dtype=torch.float64)))


@pytest.mark.parametrize("shape", [(1, 2, 1, 3), (3, 3)], ids=["by head", "by query"])
def test_a_state_cannot_hide_keys_from_some(shape: tuple[int, ...]) -> None:
    """A cache of linear attention has one sum for all, and raises instead of ignoring the mask."""
    attn = MultiHeadAttention(8, 2, pattern=LinearAttention())
    x_BTD, mask = torch.randn(1, 3, 8), torch.ones(shape, dtype=torch.bool)
    kv = attn.pattern.make_storage().extend(attn.project_kv(x_BTD))
    with pytest.raises(ValueError, match="takes masks of keys alone"):
        attn(x_BTD, kv, mask)
    without = attn(x_BTD, attn.project_kv(x_BTD), mask)
    torch.testing.assert_close(attn(x_BTD, kv, mask.view(-1)[:3]), without)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"d_model": "512"}, "d_model is '512'; it must be a number"),
        ({"num_heads": 8.0}, "num_heads is 8.0; it must be a whole number"),
        ({"num_kv_heads": 0}, "num_kv_heads is 0; it must be at least 1"),
        ({"head_dim": -4}, "head_dim is -4; it must be at least 1"),
        ({"num_heads": 7}, "d_model = 512 is not a multiple of num_heads = 7; .* set head_dim"),
        ({"num_kv_heads": 3}, "num_heads = 8 is not a multiple of num_kv_heads = 3"),
        ({"num_kv_heads": 16}, "num_heads = 8 is not a multiple of num_kv_heads = 16"),
    ],
)
@pytest.mark.parametrize("build", [MultiHeadAttention, LayerConfig])
def test_sizes_are_checked(build: Any, sizes: dict[str, Any], message: str) -> None:  # noqa: ANN401
    """A module and a config reject invalid sizes, and sizes that do not fit together."""
    with pytest.raises(InputError, match=message):
        build(**{"d_model": 512, "num_heads": 8} | sizes)


def test_keys_and_values_are_projected_first() -> None:
    """A tensor in their place is an error that says what to do."""
    attn, x_BTD = MultiHeadAttention(8, 2), torch.zeros(1, 3, 8)
    for attend in (attn, attn.weights):
        with pytest.raises(TypeError, match=r"kv is a Tensor; .* attn\.project_kv\(x\)"):
            attend(x_BTD, x_BTD)  # type: ignore[arg-type]
