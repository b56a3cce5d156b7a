"""Laws of the stacks and of the whole model, on small random models."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.models.small import (
    PAD,
    VARIANTS,
    distance,
    make_model,
    random_ids,
    random_sentences,
    stir,
)

from dragoman.models import EncoderDecoder
from dragoman.nn import Encoder, NoPositions

SEEDS = st.integers(0, 2**32)
NAMES = st.sampled_from(list(VARIANTS))
LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=4)


@given(NAMES, SEEDS, LENGTHS, st.integers(0, 20), st.integers(0, 20))
@settings(max_examples=100)
def test_a_sentence_in_a_batch_is_the_sentence_alone(
    name: str, seed: int, lengths: list[int], more_src: int, more_tgt: int
) -> None:
    """Neither its neighbours nor padding, of whatever width, change a logit beyond rounding."""
    model = make_model(VARIANTS[name])
    src_BS = random_sentences(seed, lengths, max(lengths) + more_src)
    tgt_BT = random_sentences(seed + 1, lengths[::-1], max(lengths) + more_tgt)
    with torch.no_grad():
        logits = model(src_BS, tgt_BT)
        for i, (src, tgt) in enumerate(zip(lengths, lengths[::-1], strict=True)):
            alone = model(src_BS[i : i + 1, :src], tgt_BT[i : i + 1, :tgt])
            assert distance(logits[i : i + 1, :tgt], alone) < 1e-12


@given(NAMES, SEEDS, st.integers(1, 3), st.permutations(range(6)))
@settings(max_examples=60)
def test_without_positions_a_stack_commutes_with_permutations(
    name: str, seed: int, rows: int, order: list[int]
) -> None:
    """An encoder without positions maps permuted vectors to permuted vectors."""
    torch.manual_seed(seed)
    config = replace(VARIANTS[name], positions=NoPositions())
    encoder = Encoder(config, 2).double()
    stir(encoder)
    x_BSD = torch.randn(rows, 6, config.d_model, dtype=torch.float64)
    with torch.no_grad():
        assert distance(encoder(x_BSD[:, order]), encoder(x_BSD)[:, order]) < 1e-12


@given(NAMES, SEEDS)
@settings(max_examples=40)
def test_a_source_of_padding_alone_is_harmless(name: str, seed: int) -> None:
    """A blind sentence gives finite logits and gradients and does not touch its neighbours."""
    model = make_model(VARIANTS[name]).train()
    src_BS, tgt_BT = random_ids(seed, 2, 4), random_ids(seed + 1, 2, 3)
    expected = model(src_BS[:1], tgt_BT[:1])
    src_BS[1] = PAD
    logits = model(src_BS, tgt_BT)
    logits.logsumexp(-1).sum().backward()
    assert bool(logits.isfinite().all())
    assert distance(logits[:1], expected) < 1e-12
    for parameter in model.parameters():
        assert parameter.grad is not None
        assert bool(parameter.grad.isfinite().all())


@pytest.mark.parametrize("name", VARIANTS)
def test_evaluation_ignores_dropout(name: str) -> None:
    """In evaluation mode a model with all dropouts on equals the model without dropout."""
    noisy = replace(
        VARIANTS[name], dropout=0.5, attention_dropout=0.5, ffn_dropout=0.5, layer_drop=0.5
    )
    src_BS, tgt_BT = random_ids(1, 2, 5), random_ids(2, 2, 4)
    model: EncoderDecoder = make_model(noisy)
    with torch.no_grad():
        assert torch.equal(model(src_BS, tgt_BT), make_model(VARIANTS[name])(src_BS, tgt_BT))
        assert not torch.equal(model.train()(src_BS, tgt_BT), model.eval()(src_BS, tgt_BT))
