"""Laws of decoder-only and encoder-only models, for every option of their configs."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.models.family import DECODERS, ENCODERS, RWKV, make_decoder, make_encoder
from tests.unit.models.small import PAD, VARIANTS, distance, random_ids, random_sentences, stir

from dragoman.errors import InputError
from dragoman.models import DecoderOnlyConfig, EncoderDecoderConfig, ModelConfig, build
from dragoman.models.heads import ClassificationHead
from dragoman.nn import Documents

DECODER_NAMES = st.sampled_from(list(DECODERS))
CAUSAL = DECODERS | {"rwkv": RWKV}
ENCODER_NAMES = st.sampled_from(list(ENCODERS))
SEEDS = st.integers(0, 2**32)
LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=4)
WORDS: dict[str, ModelConfig] = {
    **VARIANTS,
    **{f"decoder {name}": config for name, config in DECODERS.items()},
    **{f"encoder {name}": config for name, config in ENCODERS.items()},
}


@given(st.sampled_from(list(CAUSAL)), SEEDS, st.integers(2, 9), st.data())
@settings(max_examples=60)
def test_padding_behind_changes_nothing(
    name: str, seed: int, length: int, data: st.DataObject
) -> None:
    """Nor do the tokens there, since decoding token by token equals the whole pass."""
    model = make_decoder(CAUSAL[name])
    ids_BL = random_ids(seed, 2, length)
    cut = data.draw(st.integers(1, length - 1))
    padded_BL = ids_BL.clone()
    padded_BL[:, cut:] = PAD
    with torch.no_grad():
        before, padded = model(ids_BL), model(padded_BL, padded_BL != PAD)
    assert distance(padded[:, :cut], before[:, :cut]) < 1e-12


@given(DECODER_NAMES, SEEDS, LENGTHS, st.integers(1, 2))
@settings(max_examples=60)
def test_packed_documents_do_not_see_each_other(
    name: str, seed: int, lengths: list[int], rows: int
) -> None:
    """Documents in one row have the logits that each has alone: neither seen nor shifted."""
    model = make_decoder(DECODERS[name])
    ids_BL = random_ids(seed, rows, sum(lengths))
    with torch.no_grad():
        packed = model(ids_BL, None, Documents(tuple(lengths)))
        alone = [model(part) for part in ids_BL.split(lengths, dim=1)]
    assert distance(packed, torch.cat(alone, dim=1)) < 1e-12


@given(ENCODER_NAMES, SEEDS, LENGTHS, st.integers(0, 4))
@settings(max_examples=60)
def test_a_text_in_a_batch_is_the_text_alone(
    name: str, seed: int, lengths: list[int], extra: int
) -> None:
    """Neither padding nor the other texts of a batch change what a head says of a text."""
    model = make_encoder(ENCODERS[name])
    ids_BL = random_sentences(seed, lengths, max(lengths) + extra)
    with torch.no_grad():
        together = model(ids_BL)
        for i, length in enumerate(lengths):
            alone = model(ids_BL[i : i + 1, :length])
            one = together[i : i + 1] if together.dim() == 2 else together[i : i + 1, :length]
            assert distance(one, alone) < 1e-12


def test_an_encoder_of_vectors_is_the_encoder_of_their_words() -> None:
    """`encode` accepts the vectors that `embedding` would look up, from any source."""
    model = make_encoder(ENCODERS["mean"])
    ids_BL = random_sentences(1, [4, 7, 2])
    with torch.no_grad():
        x_BLD = model.embedding(ids_BL)
        assert distance(model.encode(x_BLD, ids_BL != PAD), model(ids_BL)) < 1e-12
        assert distance(model.encode(x_BLD[1:2]), model(ids_BL[1:2])) < 1e-12


@pytest.mark.parametrize("name", WORDS)
def test_every_weight_learns(name: str) -> None:
    """In training, with all dropouts on, each weight gets a finite, nonzero gradient."""
    config = WORDS[name]
    torch.manual_seed(0)
    model = build(replace(config, dropout=0.1, attention_dropout=0.1, ffn_dropout=0.1)).train()
    stir(model)
    inputs = [random_ids(n, 3, 8) for n in range(2 if name in VARIANTS else 1)]
    model(*inputs).square().sum().backward()
    for path, parameter in model.named_parameters():
        assert parameter.grad is not None, path
        assert bool(parameter.grad.isfinite().all()), path
        assert bool(parameter.grad.any()), path


@pytest.mark.parametrize("name", [*VARIANTS, *(f"decoder {name}" for name in DECODERS)])
def test_a_fresh_model_knows_nothing(name: str) -> None:
    """Before training the loss is within one nat of ln V, for every option of a config."""
    config = WORDS[name]
    torch.manual_seed(0)
    ids_NBL = torch.randint(4, 500, (3, 8, 12))
    with torch.no_grad():
        if isinstance(config, EncoderDecoderConfig):
            config = replace(config, src_vocab_size=500, tgt_vocab_size=500, d_model=64, d_ff=128)
            logits = build(config).eval()(ids_NBL[0], ids_NBL[1])
        else:
            assert isinstance(config, DecoderOnlyConfig)
            logits = build(replace(config, vocab_size=500, d_model=64, d_ff=128)).eval()(ids_NBL[0])
    assert abs(F.cross_entropy(logits.flatten(0, 1), ids_NBL[2].flatten()) - math.log(500)) < 1


def test_a_head_needs_labels() -> None:
    """A head with fewer than two labels cannot be built."""
    config = replace(ENCODERS["mean"], head=ClassificationHead(labels=("only",)))
    with pytest.raises(InputError, match=r"at least two labels, not 1: \w+$"):
        build(config)
