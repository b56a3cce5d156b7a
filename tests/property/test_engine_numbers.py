"""Numbers of the engine: 8 bits against the module, non-finite values, rows and padding."""

import pytest
import torch
from tests.processors import needs_compiler
from tests.property.test_engine import CLOSE, PRECISIONS, frozen, full
from tests.unit.models.small import (
    PAD,
    VARIANTS,
    distance,
    make_model,
    random_ids,
    random_sentences,
)

from dragoman.engine.products import DTYPES, prepared
from dragoman.nn import Arithmetic, Linear

pytestmark = needs_compiler


@pytest.mark.parametrize("precision", PRECISIONS[1:])
@pytest.mark.parametrize("name", VARIANTS)
@torch.inference_mode()
def test_logits_are_near(name: str, precision: Arithmetic) -> None:
    """In 8 bits they differ from the model's in float64 by rounding, a few percent.

    A rounding step is 1/127 of the largest number of a row, so a product has an error of half a
    percent of its size, and about ten of them follow each other. In bfloat16, by its rounding.
    """
    model, fast = make_model(VARIANTS[name]), frozen(make_model(VARIANTS[name]).float(), precision)
    src_BS, tgt_NT = random_sentences(3, [7, 20, 1]), random_ids(4, 6, 3)
    state = fast.start(src_BS, 2)
    for length in range(1, 4):
        logits_NV = fast.step(tgt_NT[:, length - 1], state)
        assert logits_NV.dtype is DTYPES[precision]
        expected_NV = full(model, src_BS, tgt_NT[:, :length])
        error = (logits_NV.double() - expected_NV).square().mean().sqrt()
        assert 0.0 < error < 0.1 * expected_NV.square().mean().sqrt()


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@torch.inference_mode()
def test_what_is_not_finite_stays_so(precision: Arithmetic, value: float) -> None:
    """A product with such a row or such a weight never looks like an answer."""
    x_MI = torch.randn(3, 40)
    x_MI[1, 17] = value
    dtype = DTYPES[precision]
    product = prepared(Linear(40, 70), arithmetic=precision)
    found_MO = product(x_MI.to(dtype))
    assert found_MO[[0, 2]].isfinite().all()
    assert not found_MO[1].isfinite().any()
    assert not product.plus(x_MI.to(dtype), torch.zeros(3, 70, dtype=dtype))[1].isfinite().any()
    broken = Linear(40, 70)
    broken.weight[5, 8] = value
    found_MO = prepared(broken, arithmetic=precision)(torch.ones(3, 40, dtype=dtype))
    assert found_MO.isfinite().all(dim=0).logical_not().nonzero().tolist() == [[5]]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@torch.inference_mode()
def test_a_broken_weight_breaks_the_logits(precision: Arithmetic, value: float) -> None:
    """A broken weight anywhere in a model makes its logits non-finite, which a search rejects."""
    src_BS, ids_N = random_sentences(3, [7, 20]), random_ids(4, 2)
    names = [name for name, each in make_model().named_parameters() if each.dim() == 2]
    for name in names:
        model = make_model().float()
        weight = model.get_parameter(name)
        weight[weight.shape[0] // 2] = value
        if "embedding" in name:
            weight[:] = value
        fast = frozen(model, precision)
        logits_NV = fast.step(ids_N, fast.start(src_BS, 1))
        assert not logits_NV.isfinite().all(), name


@torch.inference_mode()
def test_sources_move_with_the_rows_that_are_repeated() -> None:
    """Each row still attends to its original sentence, in any order and number."""
    model, fast = make_model(), frozen(make_model().float())
    src_BS = random_sentences(1, [9, 1, 4])
    state = fast.start(src_BS, 1)
    tgt_NT = random_ids(2, 3, 1)
    fast.step(tgt_NT[:, 0], state)
    for turn, rows in enumerate(([2, 0, 0, 1, 2], [4, 4, 1, 3], [1, 0])):
        state.select(torch.tensor(rows))
        src_BS = src_BS[rows]
        tgt_NT = torch.cat([tgt_NT[rows], random_ids(3 + turn, len(rows), 1)], dim=1)
        logits_NV = fast.step(tgt_NT[:, -1], state)
        assert distance(logits_NV.double(), full(model, src_BS, tgt_NT)) < CLOSE


@pytest.mark.parametrize("name", VARIANTS)
@torch.inference_mode()
def test_padding_in_front_or_between(name: str) -> None:
    """Hidden positions may be anywhere in a source: the plan attends as the model does."""
    model, fast = make_model(VARIANTS[name]), frozen(make_model(VARIANTS[name]).float())
    src_BS, tgt_NT = random_sentences(1, [9, 9, 9]), random_ids(2, 6, 1)
    src_BS[0, :6], src_BS[1, 3:5], src_BS[2, ::2] = PAD, PAD, PAD
    logits_NV = fast.step(tgt_NT[:, 0], fast.start(src_BS, 2))
    assert distance(logits_NV.double(), full(model, src_BS, tgt_NT)) < CLOSE
