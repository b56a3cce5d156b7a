"""Masks, in which True means may attend."""

import pytest
import torch
from tests.unit.models.small import distance

from dragoman.nn import MultiHeadAttention, length_mask, padding_mask
from dragoman.nn.dot_product import additive


def test_lengths_make_the_same_mask_as_padding() -> None:
    """A mask from lengths equals the mask from the padding id."""
    ids = torch.tensor([[5, 6, 0], [7, 0, 0], [0, 0, 0]])
    assert torch.equal(length_mask(torch.tensor([2, 1, 0]), 3), padding_mask(ids, 0))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_hidden_key_has_weight_zero_in_every_dtype(dtype: torch.dtype) -> None:
    """The stand-in for minus infinity never overflows and gives exactly 0, never NaN."""
    mask = torch.tensor([[True, False, True], [False, False, False]])
    scores = torch.tensor([[30.0, 60.0, -30.0], [60.0, -60.0, 1.0]], dtype=dtype)
    weights = (scores + additive(mask, dtype)).softmax(-1)
    assert weights[0, 1] == 0
    assert bool(weights.isfinite().all())


def attend(mask: torch.Tensor) -> torch.Tensor:
    """Attend from `(2, 3)` queries to 5 keys with 4 heads."""
    torch.manual_seed(0)
    attn = MultiHeadAttention(8, 4)
    out: torch.Tensor = attn(torch.randn(2, 3, 8), attn.project_kv(torch.randn(2, 5, 8)), mask)
    return out


@pytest.mark.parametrize("shape", [(2, 4, 3, 5), (2, 1, 1, 5), (4, 3, 5), (3, 5), (5,), (1,), ()])
def test_masks_broadcast(shape: tuple[int, ...]) -> None:
    """Any shape that broadcasts to `(B, H, T, S)` is accepted."""
    mask = torch.rand(shape) < 0.7
    assert distance(attend(mask), attend(mask.expand(2, 4, 3, 5))) < 1e-6


@pytest.mark.parametrize("shape", [(2, 4, 3, 4), (3, 1, 1, 5), (5, 3), (1, 2, 4, 3, 5), (0,)])
def test_a_wrong_shape_is_an_error_with_both_shapes(shape: tuple[int, ...]) -> None:
    """The message shows both the actual and the target shape."""
    with pytest.raises(ValueError, match=r"\(2, 4, 3, 5\)") as caught:
        attend(torch.ones(shape, dtype=torch.bool))
    assert str(shape) in str(caught.value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8])
def test_a_mask_of_another_dtype_is_an_error(dtype: torch.dtype) -> None:
    """An additive mask, read as a boolean one, would hide what it should show."""
    attn = MultiHeadAttention(8, 4)
    kv = attn.project_kv(torch.randn(2, 5, 8))
    for path in (attn, attn.weights):
        with pytest.raises(TypeError, match=f"boolean.*{dtype}"):
            path(torch.randn(2, 3, 8), kv, torch.zeros(2, 1, 1, 5, dtype=dtype))
