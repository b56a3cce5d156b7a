"""Multi-head attention apart from its formula: masks, sizes, caches and settings of positions."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.calls import OperatorCalls
from tests.unit.nn.test_pattern_weights import PATTERNS

from dragoman.errors import InputError
from dragoman.nn import (
    Cache,
    DynamicScaling,
    GrowingStorage,
    KeyValue,
    LayerConfig,
    LinearAttention,
    Llama3Scaling,
    MultiHeadAttention,
    Pattern,
    RelativeBias,
    RollingStorage,
    Rotary,
    SlidingWindow,
    YaRN,
)


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


def test_selecting_in_an_empty_cache_is_nothing() -> None:
    """A search may select rows before the first token."""
    cache = Cache([GrowingStorage()])
    cache.select(torch.tensor([1, 0]))
    assert cache.length == 0


def test_a_window_keeps_what_can_be_seen() -> None:
    """A causal window keeps only the last keys; otherwise any later query may ask for a key."""
    x_BKLd = torch.zeros(1, 1, 5, 2)
    for causal, kept in ((True, 3), (False, 6)):
        storage = SlidingWindow(size=3, causal=causal).make_storage()
        storage.extend(KeyValue(x_BKLd, x_BKLd))
        seen = storage.extend(KeyValue(x_BKLd[:, :, :1], x_BKLd[:, :, :1]))
        assert seen.k_BKSd.shape[2] == kept


def test_one_question_is_asked_however_many_layers_there_are() -> None:
    """Moving rows are found once, for all layers and for keys and values."""
    cache = Cache([GrowingStorage(), RollingStorage(4), GrowingStorage()])
    new = KeyValue(*torch.randn(2, 3, 1, 5, 2))
    for layer in range(3):
        cache.extend(layer, new)
    with OperatorCalls() as calls:
        cache.select(torch.tensor([0, 2, 2]))
    questions = (torch.ops.aten.nonzero.default, torch.ops.aten.item.default)  # a GPU is waited for
    assert sum(call.function in questions for call in calls.seen) == 1
    none = KeyValue(new.k_BKSd[:, :, :0], new.v_BKSd[:, :, :0])
    moved = cache.extend(0, none)
    assert torch.equal(moved.k_BKSd, new.k_BKSd[[0, 2, 2]])
    assert torch.equal(moved.v_BKSd, new.v_BKSd[[0, 2, 2]])


REJECTED: dict[str, Callable[[], object]] = {
    "num_buckets is 3": lambda: RelativeBias(num_buckets=3),
    "max_distance = 16": lambda: RelativeBias(num_buckets=32, max_distance=16),
    "beta_fast = 1.0": lambda: YaRN(factor=2.0, trained_length=8, beta_fast=1.0, beta_slow=1.0),
    "high_freq_factor = 1.0": lambda: Llama3Scaling(low_freq_factor=1.0, high_freq_factor=1.0),
    "share = 0.5 of head_dim = 4 has one frequency": lambda: LayerConfig(
        head_dim=4,
        positions=Rotary(share=0.5, scaling=DynamicScaling(factor=2.0, trained_length=8)),
    ),
}


@pytest.mark.parametrize("named", REJECTED)
def test_what_cannot_be_computed_is_refused(named: str) -> None:
    """The error names the setting and its value, before anything is divided by it."""
    with pytest.raises(InputError) as caught:
        REJECTED[named]()
    assert named in str(caught.value)
