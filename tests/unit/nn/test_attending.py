"""How compiled code attends to sources."""

import pytest
import torch
from tests.processors import needs_compiler

from dragoman.engine.store import Heads, Sources
from dragoman.nn import KeyValue


@needs_compiler
@torch.inference_mode()
def test_a_source_longer_than_a_stack() -> None:
    """The scores of a row, 12 MB here, are on the heap; the mean of equal values is that value."""
    length = 3_000_000
    sources = Sources(Heads(1, 1, 1, None), torch.ones(1, length, dtype=torch.bool))
    sources.rows_at(torch.zeros(2, dtype=torch.int32))
    kv = KeyValue(torch.zeros(1, 1, length, 1), torch.ones(1, 1, length, 1))
    found_MX = sources.attend(*sources.laid_out(kv), torch.ones(2, 1))
    assert found_MX.tolist() == [[1.0], [1.0]]
    with pytest.raises(ValueError, match="1 queries for 2 rows"):
        sources.attend(*sources.laid_out(kv), torch.ones(1, 1))


@needs_compiler
@pytest.mark.parametrize(("dim", "kv_heads"), [(64, 2), (21, 1), (80, 2)])
@torch.inference_mode()
def test_rows_that_read_a_source_together_are_those_of_each_alone(dim: int, kv_heads: int) -> None:
    """One to nine rows of the same sentence, from any first row: the same bits."""
    torch.manual_seed(0)
    heads = Heads(2, kv_heads, dim, None)
    mask_PS = torch.arange(19) < torch.tensor([[19], [1], [16], [0], [7]])
    sources = Sources(heads, mask_PS)
    shape = (5, kv_heads, 19, dim)
    kv = KeyValue(torch.randn(shape), 9 * torch.randn(shape))
    place_N = torch.tensor([0] * 9 + [1] + [2] * 3 + [3] + [4] * 6, dtype=torch.int32)
    q_MX, laid_out = torch.randn(len(place_N), 2 * dim), sources.laid_out(kv)
    sources.rows_at(place_N)
    together_MX = sources.attend(*laid_out, q_MX.clone())
    for row in range(len(place_N)):
        sources.rows_at(place_N[row : row + 1].clone())
        assert torch.equal(
            sources.attend(*laid_out, q_MX[row : row + 1].clone())[0], together_MX[row]
        )
    assert not together_MX[13].any()
