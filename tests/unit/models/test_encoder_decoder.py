"""The assembled model: tying, initialisation, precision."""

import math
from dataclasses import replace

import pytest
import torch
from tests.unit.models.small import (
    SMALL,
    VARIANTS,
    distance,
    make_model,
    random_ids,
    random_sentences,
)

from dragoman.models import EncoderDecoder, EncoderOnly, encoder_preset
from dragoman.models.config import Tying
from dragoman.nn import LearnedPositions, MultiHeadAttention, TokenEmbedding, autocast


@pytest.mark.parametrize(
    ("tying", "source_is_target", "target_is_output"),
    [
        ("none", False, False),
        ("target-output", False, True),
        ("source-target", True, False),
        ("all", True, True),
    ],
)
def test_tied_matrices_are_one_storage(
    tying: Tying, *, source_is_target: bool, target_is_output: bool
) -> None:
    """They use the same memory, also after a change of dtype and after loading weights."""
    model = EncoderDecoder(replace(SMALL, tie_embeddings=tying))
    for _ in range(2):
        src, tgt = model.src_embedding.weight, model.tgt_embedding.weight
        out = model.output.weight
        assert (src.data_ptr() == tgt.data_ptr()) is source_is_target
        assert (tgt.data_ptr() == out.data_ptr()) is target_is_output
        assert (src.data_ptr() == out.data_ptr()) is (source_is_target and target_is_output)
        model = model.double()
        model.load_state_dict(model.state_dict())


def test_a_soft_cap_bends_the_logits() -> None:
    """The logits are `c tanh(logit / c)` of those that the same weights give without a cap."""
    plain, capped = make_model(SMALL), make_model(replace(SMALL, logit_soft_cap=2.0))
    src_BS, tgt_BT = random_ids(1, 2, 5), random_ids(2, 2, 4)
    bent = 2.0 * torch.tanh(plain(src_BS, tgt_BT) / 2.0)
    assert distance(capped(src_BS, tgt_BT), bent) < 1e-12


def test_each_projection_is_drawn_with_its_own_fan() -> None:
    """Keys and values share a matrix but not a fan: all bounds are `sqrt(6 / (in + out))`."""
    torch.manual_seed(0)
    attn = MultiHeadAttention(64, 4)
    bound = math.sqrt(6 / 128)
    for weight in (attn.q_proj.weight, *attn.kv_proj.weight.chunk(2), attn.out_proj.weight):
        assert 0.95 * bound < weight.abs().max().item() <= bound
    assert attn.kv_proj.bias is not None
    assert not attn.kv_proj.bias.any()


@pytest.mark.parametrize(("scale", "std"), [(True, 256**-0.5), (False, 0.02)])
def test_embeddings_are_drawn_for_their_scale(*, scale: bool, std: float) -> None:
    """`N(0, D^-1/2)` if scaled; the padding row is zero and gets no gradient."""
    torch.manual_seed(0)
    embedding = TokenEmbedding(200, 256, pad_id=7, scale=scale)
    assert embedding.weight.std().item() == pytest.approx(std, rel=0.02)
    embedding(torch.tensor([[7, 8]])).sum().backward()
    assert embedding.weight.grad is not None
    assert not embedding.weight[7].any()
    assert not embedding.weight.grad[7].any()
    assert embedding.weight.grad[8].any()


def test_what_is_added_to_tokens_is_drawn_as_small_as_they_are() -> None:
    """Position and segment vectors start as `N(0, 0.02)`, like those of tokens (BERT)."""
    torch.manual_seed(0)
    bert = replace(encoder_preset("bert-tiny"), vocab_size=200, num_token_types=50)
    embedding = EncoderOnly(bert).embedding
    assert isinstance(embedding.positions, LearnedPositions)
    assert embedding.types is not None
    for added in (embedding.positions, embedding.types):
        assert added.weight.std().item() == pytest.approx(0.02, rel=0.05)


@pytest.mark.parametrize("name", ["paper", "llama-like", "adjacent-rotary", "relative-bias"])
def test_bf16_autocast_agrees_within_bf16(name: str) -> None:
    """Under autocast logits are bfloat16, close to those of float32, and gradients are finite."""
    model = make_model(VARIANTS[name], torch.float32)
    src_BS, tgt_BT = random_sentences(1, [9, 4, 7]), random_sentences(2, [5, 9, 8])
    with autocast("fp32", torch.device("cpu")):
        expected = model(src_BS, tgt_BT)
    with autocast("bf16", torch.device("cpu")):
        logits = model(src_BS, tgt_BT)
    assert expected.dtype == torch.float32
    assert logits.dtype == torch.bfloat16
    assert 0 < distance(logits.float(), expected) < 0.1
    logits.float().logsumexp(-1).sum().backward()
    for parameter in model.parameters():
        assert parameter.grad is not None
        assert parameter.grad.dtype == torch.float32
        assert bool(parameter.grad.isfinite().all())


def test_bf16_decodes_with_a_cache() -> None:
    """Prefill and steps work under autocast and agree with its full pass."""
    model = make_model(SMALL, torch.float32)
    src_BS, tgt_NT = random_sentences(1, [5, 3]), random_ids(2, 2, 4)
    with torch.no_grad(), autocast("bf16", torch.device("cpu")):
        expected = model(src_BS, tgt_NT)
        state = model.start(src_BS, 1)
        got = [model.extend(piece, state) for piece in tgt_NT.split([2, 1, 1], dim=1)]
    assert distance(torch.cat(got, dim=1).float(), expected.float()) < 0.1
