"""The k best tokens of a row."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.processors import COMPILED, use_compiled

from dragoman.nn.cpu.ranking import top_tokens

compiled = pytest.fixture(scope="module", params=COMPILED, autouse=True)(use_compiled)


@given(
    st.integers(0, 2**32),
    st.integers(1, 300) | st.integers(1, 2000),
    st.integers(1, 8),
    st.sampled_from([1, 3, 1000]),
)
def test_the_order_is_that_of_a_stable_sort(
    seed: int, vocab_size: int, k: int, levels: int
) -> None:
    """Values decrease, ties go to the lower index, with and without chunks."""
    generator = torch.Generator().manual_seed(seed)
    log_probs_NV = -torch.randint(levels, (3, vocab_size), generator=generator).float() / 7
    log_probs_NV[torch.rand(3, vocab_size, generator=generator) < 0.2] = float("-inf")
    k = min(k, vocab_size)

    values_Nk, tokens_Nk = top_tokens(log_probs_NV, k)

    expected = log_probs_NV.sort(dim=1, descending=True, stable=True)
    possible_Nk = expected.values[:, :k] > float("-inf")
    assert torch.equal(values_Nk, expected.values[:, :k])
    assert torch.equal(tokens_Nk[possible_Nk], expected.indices[:, :k][possible_Nk])


@pytest.mark.parametrize(("k", "vocab_size"), [(5, 101), (5, 1001), (1, 101)])
def test_a_row_of_nan_gives_indices_of_the_row(k: int, vocab_size: int) -> None:
    """No index is outside the vocabulary, so that the search can continue and reject the row."""
    _, tokens_Nk = top_tokens(torch.full((2, vocab_size), float("nan")), k)
    assert bool(((tokens_Nk >= 0) & (tokens_Nk < vocab_size)).all())
