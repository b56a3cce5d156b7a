"""Laws of the summary of a head, of rollout and of gradient x input."""

from math import log

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.tasks.readers import CLASSIFY, make_model
from torch import Tensor

from dragoman.lens.inspection import HeadKind, HeadSummary
from dragoman.lens.weights import gradient_input, rollout, summarise

SIZES = st.integers(1, 9)


def summary_of(
    weights_TS: Tensor, separators: set[int] | None = None, *, crossing: bool = False
) -> HeadSummary:
    """The summary of one head."""
    special = [place in (separators or set()) for place in range(weights_TS.shape[1])]
    return summarise(weights_TS[None, None], special, crossing=crossing)[0][0]


def shifted(size: int) -> Tensor:
    """Every query looks at the one before, the first at itself."""
    weights_TS = torch.diag(torch.ones(size - 1), -1)
    weights_TS[0, 0] = 1.0
    return weights_TS


@given(SIZES, st.integers(2, 9))
def test_uniform_attention_is_broad(num_queries: int, num_keys: int) -> None:
    """Its entropy is ln S, the greatest; each share is what one key of S gets."""
    weights_TS = torch.full((num_queries, num_keys), 1 / num_keys)
    found = summary_of(weights_TS, {0}, crossing=True)
    assert found.kind == "broad"
    assert found.entropy == pytest.approx(log(num_keys), rel=1e-6)
    assert found.separator == pytest.approx(1 / num_keys)


@pytest.mark.parametrize(
    ("weights_TS", "separators", "kind"),
    [
        (torch.eye(6), set(), "diagonal"),
        (shifted(6), set(), "previous-token"),
        (torch.eye(6)[[5] * 6], {5}, "separator"),
        (torch.eye(6)[[0, 0, 4, 1, 5, 2]], set(), "mixed"),
    ],
)
def test_a_head_is_named_for_where_it_goes(
    weights_TS: Tensor, separators: set[int], kind: HeadKind
) -> None:
    """One-hot attention has no entropy, and all of its share where the kind says."""
    found = summary_of(weights_TS, separators)
    assert (found.kind, found.entropy) == (kind, 0.0)
    shares = {
        "diagonal": found.diagonal,
        "previous-token": found.previous,
        "separator": found.separator,
    }
    if kind == "mixed":
        assert max(shares.values()) < 0.5
    else:
        assert shares[kind] == 1.0


def test_the_first_query_has_no_token_before() -> None:
    """So it does not count: what it must look at says nothing of the others."""
    assert summary_of(shifted(2)).previous == 1.0
    assert summary_of(torch.ones(1, 1)).previous == 0.0


def test_broad_is_judged_by_what_a_query_sees() -> None:
    """A causal head that looks at all there is is broad, though its early rows have few keys."""
    seen_TS = torch.ones(7, 7).tril()
    assert summary_of(seen_TS / seen_TS.sum(1, keepdim=True)).kind == "broad"


def test_a_cross_diagonal_runs_from_corner_to_corner() -> None:
    """It is the same relative place and its neighbours; nothing there has a token before."""
    weights_TS = torch.zeros(3, 9)
    weights_TS[[0, 1, 2], [1, 4, 7]] = 1.0
    found = summary_of(weights_TS, crossing=True)
    assert (found.diagonal, found.previous, found.kind) == (1.0, 0.0, "diagonal")
    assert summary_of(weights_TS.flip(1), crossing=True).diagonal == pytest.approx(1 / 3)
    two_away_TS = torch.eye(9)[[2, 6, 6]]
    assert summary_of(two_away_TS, crossing=True).diagonal == 0.0


@given(seed=st.integers(0, 2**32), num_queries=SIZES, num_keys=SIZES, crossing=st.booleans())
def test_numbers_keep_to_their_bounds(
    *, seed: int, num_queries: int, num_keys: int, crossing: bool
) -> None:
    """Entropy between 0 and ln S, shares between 0 and 1; renaming keys changes no entropy."""
    generator = torch.Generator().manual_seed(seed)
    num_queries = num_queries if crossing else num_keys
    weights_TS = (4 * torch.randn(num_queries, num_keys, generator=generator)).softmax(-1)
    found = summary_of(weights_TS, {0}, crossing=crossing)
    assert 0 <= found.entropy <= log(num_keys) + 1e-6
    for share in (found.previous, found.diagonal, found.separator):
        assert 0 <= share <= 1 + 1e-6
    turned = summary_of(weights_TS.flip(1), {num_keys - 1}, crossing=crossing)
    assert turned.entropy == pytest.approx(found.entropy, abs=1e-6)
    assert turned.separator == pytest.approx(found.separator, abs=1e-6)


def test_each_head_has_its_own() -> None:
    """Layers and heads keep their places."""
    maps = torch.stack([torch.stack([torch.eye(4), shifted(4)]), torch.stack([shifted(4)] * 2)])
    kinds = [
        [head.kind for head in layer] for layer in summarise(maps, [False] * 4, crossing=False)
    ]
    assert kinds == [["diagonal", "previous-token"], ["previous-token", "previous-token"]]


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
