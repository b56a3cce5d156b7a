"""The loss: output layer and label-smoothed cross-entropy, fused."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from tests.calls import OperatorCalls
from tests.unit.train.made import PAD, TINY, VOCAB, make_batch, make_model, random_pairs
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from dragoman.models import DecoderOnly, DecoderOnlyConfig, EncoderOnly, EncoderOnlyConfig
from dragoman.models.heads import MaskedLanguageHead
from dragoman.train.objective import (
    CHUNK,
    GPU_LOGITS,
    agreeing_loss,
    chunk_size,
    masked_guesses,
    next_token_loss,
    summed_loss,
)

V = 37
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}


def close(ours: Tensor, theirs: Tensor) -> bool:
    """Whether two tensors agree to their dtype's tolerance, relative to the largest entry."""
    scale = max(1.0, theirs.abs().max().item())
    return (ours - theirs).abs().max().item() <= TOLERANCE[ours.dtype] * scale


def assert_same(ours: Tensor, theirs: Tensor, leaves: list[Tensor]) -> None:
    """The losses agree, and so do their gradients with respect to `leaves`."""
    assert close(ours.detach(), theirs.detach())
    gradients = (torch.autograd.grad(loss, leaves) for loss in (ours, theirs))
    for leaf, mine, other in zip(leaves, *gradients, strict=True):
        assert mine.dtype == leaf.dtype
        assert close(mine, other)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_without_gradients_the_loss_has_the_same_bits(dtype: torch.dtype) -> None:
    """A validation computes the same loss with one product instead of three."""
    model = make_model(replace(TINY, bias=True), torch.float32).to(dtype)
    batch = make_batch(random_pairs(200))
    assert batch.num_targets > CHUNK

    def loss() -> Tensor:
        return summed_loss(model, batch.src_BS, batch.tgt_in_BT, batch.tgt_out_BT, 0.1)

    flops = {}
    losses = []
    for learning in (True, False):
        with torch.set_grad_enabled(learning), FlopCounterMode(display=False) as counter:
            losses.append(loss().detach())
        flops[learning] = counter.get_total_flops()
    assert torch.equal(*losses)
    once = 2 * batch.num_targets * TINY.d_model * VOCAB
    assert flops[True] - flops[False] == 2 * once


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("cap", "count"), [(None, 60), (0.5, 60), (None, 200), (0.5, 200)])
@pytest.mark.parametrize("bias", [True, False])
def test_whole_model_with_tied_weights(
    dtype: torch.dtype, cap: float | None, count: int, *, bias: bool
) -> None:
    """Every gradient, including the shared matrix's, equals that from plain logits.

    This holds for more positions than a chunk, and with logit capping outside the fused loss.
    """
    model = make_model(replace(TINY, logit_soft_cap=cap, output_bias=bias), dtype)
    batch = make_batch(random_pairs(count))
    assert batch.num_targets != batch.tgt_out_BT.numel()
    assert (batch.num_targets > CHUNK) == (count == 200)
    ours = summed_loss(model, batch.src_BS, batch.tgt_in_BT, batch.tgt_out_BT, 0.1)
    logits_MV = model(batch.src_BS, batch.tgt_in_BT).flatten(0, 1)
    # ignore_index is torch's own way to skip padding
    theirs = F.cross_entropy(
        logits_MV,
        batch.tgt_out_BT.flatten(),
        ignore_index=PAD,
        label_smoothing=0.1,
        reduction="sum",
    )
    assert model.output.weight is model.src_embedding.weight
    assert_same(ours, theirs, list(model.parameters()))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("cap", [None, 0.5])
def test_r_drop_equals_its_definition(dtype: torch.dtype, cap: float | None) -> None:
    """Two passes with different dropout give the mean loss plus their divergence.

    There are more positions than a chunk; every gradient equals that of torch's functions.
    """
    model = make_model(replace(TINY, dropout=0.3, logit_soft_cap=cap), dtype)
    batch = make_batch(random_pairs(200))
    assert batch.num_targets > CHUNK
    torch.manual_seed(3)
    ours = agreeing_loss(model, batch.src_BS, batch.tgt_in_BT, batch.tgt_out_BT, 0.1, 5.0)
    torch.manual_seed(3)
    both = model(batch.src_BS.repeat(2, 1), batch.tgt_in_BT.repeat(2, 1))
    first, second = (half[batch.tgt_out_BT != PAD] for half in both.chunk(2))
    targets = batch.tgt_out_BT[batch.tgt_out_BT != PAD]
    p, q = (logits.log_softmax(-1).exp() for logits in (first, second))
    plain = [
        F.cross_entropy(logits, targets, label_smoothing=0.1, reduction="sum")
        for logits in (first, second)
    ]
    apart = (p * (p / q).log()).sum() + (q * (q / p).log()).sum()
    assert apart > 1.0
    theirs = (plain[0] + plain[1]) / 2 + 5 / 4 * apart
    assert_same(ours, theirs, list(model.parameters()))


def pairs_loss(ids: Tensor, cap: float | None) -> tuple[Tensor, Callable[[], Tensor]]:
    """Return all logits of a small encoder-decoder, and its loss."""
    model = make_model(replace(TINY, src_vocab_size=V, tgt_vocab_size=V, logit_soft_cap=cap)).eval()
    return model(ids, ids), lambda: summed_loss(model, ids, ids, ids, 0.0)


def text_loss(ids: Tensor, cap: float | None) -> tuple[Tensor, Callable[[], Tensor]]:
    """Return all logits of a decoder, and its loss."""
    model = DecoderOnly(
        DecoderOnlyConfig(
            d_model=16, num_heads=2, d_ff=16, num_layers=1, vocab_size=V, logit_soft_cap=cap
        )
    )
    model.double().eval()
    return model(ids), lambda: next_token_loss(model, ids, ids, None, 0.0)


def hidden_words_loss(ids: Tensor, _: float | None) -> tuple[Tensor, Callable[[], Tensor]]:
    """Return all logits of an encoder whose words are all masked, and its loss."""
    head = MaskedLanguageHead()
    model = EncoderOnly(
        EncoderOnlyConfig(d_model=16, num_heads=2, d_ff=16, num_layers=1, vocab_size=V, head=head)
    )
    model.double().eval()
    return model(ids), lambda: masked_guesses(model, ids, ids)[0]


@pytest.mark.parametrize(
    ("make", "cap"),
    [
        (pairs_loss, None),
        (pairs_loss, 0.5),
        (text_loss, None),
        (text_loss, 0.5),
        (hidden_words_loss, None),
    ],
)
def test_a_validation_never_holds_all_logits(
    make: Callable[[Tensor, float | None], tuple[Tensor, Callable[[], Tensor]]], cap: float | None
) -> None:
    """In every task with a vocabulary, the loss is computed in chunks of positions.

    It equals the loss of all logits up to rounding.
    """
    ids = torch.randint(4, V, (2, CHUNK))
    logits_BLV, loss = make(ids, cap)
    with torch.inference_mode(), OperatorCalls() as calls:
        found = loss()
    expected = F.cross_entropy(logits_BLV.detach().flatten(0, 1), ids.flatten(), reduction="sum")
    made = [call.result for call in calls.seen if isinstance(call.result, Tensor)]
    assert max(each.numel() // V for each in made if each.shape[-1:] == (V,)) == CHUNK
    assert close(found, expected)


@pytest.mark.parametrize("vocab_size", [37, 8_000, 32_001, 250_000_000])
def test_chunks_fill_a_gpu_and_fit_a_cache(vocab_size: int) -> None:
    """A CPU has small chunks, a GPU as large ones as its limit allows, always of whole pairs."""
    assert chunk_size(torch.device("cpu"), vocab_size) == CHUNK
    positions = chunk_size(torch.device("cuda"), vocab_size)
    assert positions % 2 == 0
    assert positions == CHUNK or GPU_LOGITS - 2 * vocab_size < positions * vocab_size <= GPU_LOGITS
