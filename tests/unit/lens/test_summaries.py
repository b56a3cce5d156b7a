"""Laws of the four numbers and the word for a head."""

from math import log

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dragoman.lens.inspection import HeadKind, HeadSummary
from dragoman.lens.weights import summarise

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
