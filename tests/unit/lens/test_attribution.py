"""Laws of rollout and of gradient x input."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.tasks.readers import CLASSIFY, make_model
from torch import Tensor

from dragoman.lens.weights import gradient_input, rollout


def random_attention(seed: int, layers: int, size: int) -> Tensor:
    """Rows that sum to one."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(layers, size, size, generator=generator, dtype=torch.float64).softmax(-1)


@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 7))
def test_rollout_gives_shares(seed: int, layers: int, size: int) -> None:
    """They sum to one and none is negative, however deep the model."""
    for pooling in ("first", "mean"):
        shares_S = rollout(random_attention(seed, layers, size), pooling)
        assert shares_S.shape == (size,)
        assert shares_S.sum().item() == pytest.approx(1)
        assert bool((shares_S >= 0).all())


def test_attention_to_oneself_moves_nothing() -> None:
    """The first vector is then the first token's, and the mean that of all alike."""
    own = torch.eye(4).expand(3, 4, 4)
    assert rollout(own, "first").tolist() == [1, 0, 0, 0]
    assert rollout(own, "mean").tolist() == [0.25] * 4


def test_rollout_follows_the_layers_back() -> None:
    """The last layer's choice, then the first layer's, half of each passed on as it is."""
    first = torch.tensor([[1.0, 0, 0], [0, 0, 1], [0, 0, 1]])  # position 1 reads token 2
    last = torch.tensor([[0.0, 1, 0], [0, 1, 0], [0, 0, 1]])  # position 0 reads position 1
    shares = rollout(torch.stack([first, last]), "first").tolist()
    assert shares == [0.5, 0.25, 0.25]


def test_gradient_times_input_is_the_slope_of_each_vector() -> None:
    """By finite differences: what the logit does when a token's vector grows by a little."""
    model = make_model(CLASSIFY).double().eval()
    ids = [2, 300, 290, 310, 3]
    x_BLD = model.embedding(torch.tensor([ids])).detach()
    for label in range(3):
        scores = gradient_input(model, ids, label)
        for place in range(len(ids)):
            step = torch.zeros(1, len(ids), 1, dtype=torch.float64)
            step[0, place] = 1e-5
            with torch.no_grad():
                up, down = (model.encode(x_BLD * (1 + s))[0, label] for s in (step, -step))
            assert scores[place].item() == pytest.approx((up - down).item() / 2e-5, abs=1e-6)
    assert all(parameter.grad is None for parameter in model.parameters())
