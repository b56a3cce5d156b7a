"""Hugging Face models against ours with the same weights: the same logits and gradients."""

from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from typing import Any

import pytest
import torch
from tests.parity.foreign import (
    assert_same_gradients,
    assert_same_logits,
    computing_in,
    config_file,
    fill_ours,
    make_named,
    random_ids,
    run,
)
from tests.parity.foreign_sizes import CASES, V
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.models.t5.modeling_t5 import T5Attention

from dragoman.models import DecoderOnly, EncoderDecoder, EncoderOnly
from dragoman.nn import RelativeBias

PROMPT, LENGTH = 6, 22
Logits = Iterator[tuple[Tensor, Tensor]]
"""Our logits and theirs; gradients of the last pair are compared."""


@cache
def made(case: str) -> tuple[Any, PreTrainedModel]:
    """Build our model and theirs with the same weights, in float64."""
    theirs = make_named(*CASES[case])
    config = theirs.config
    if config.model_type in ("t5", "mt5") and not getattr(config, "scale_decoder_outputs", False):
        # files of version 1.1 and of mT5 have a separate output matrix; a new model ties it
        shape = theirs.lm_head.weight.shape
        theirs.lm_head.weight = nn.Parameter(torch.randn(shape, dtype=torch.float64) / 3)
    return fill_ours(theirs, config_file(theirs)), theirs


def both(case: str) -> tuple[Any, PreTrainedModel]:
    """Return both models, theirs as a copy: with dynamic scaling it remembers the longest text."""
    ours, theirs = made(case)
    return ours, deepcopy(theirs)


def translated(ours: EncoderDecoder, theirs: PreTrainedModel) -> Logits:
    """Yield logits for sources of three lengths, padded at the end, and targets."""
    pad_id, start_id = theirs.config.pad_token_id, theirs.config.decoder_start_token_id
    src = random_ids(6, V - 1, 3, 13)
    src[1, 5:] = src[2, 1:] = pad_id
    tgt = random_ids(6, V - 1, 3, 11, seed=2)
    tgt[:, 0] = 4 if start_id is None else start_id
    mask = (src != pad_id).long()
    yield ours(src, tgt), run(theirs, input_ids=src, attention_mask=mask, decoder_input_ids=tgt)


def continued(ours: DecoderOnly, theirs: PreTrainedModel) -> Logits:
    """Yield logits of a single text, then of three lengths padded in front.

    Positions count real tokens. If our padding id is -1, theirs gets another id.
    """
    ids = random_ids(3, V, 3, LENGTH)
    with torch.no_grad():
        yield ours(ids[:1]), run(theirs, input_ids=ids[:1])
    real = torch.ones_like(ids, dtype=torch.bool)
    real[1, :2] = real[2, : PROMPT - 1] = False
    ids[~real] = max(ours.pad_id, 0)
    places = (real.long().cumsum(1) - 1).clamp(min=0)
    found = run(theirs, input_ids=ids, attention_mask=real.long(), position_ids=places)
    yield ours(ids, real)[real], found[real]


def read(ours: EncoderOnly, theirs: PreTrainedModel) -> Logits:
    """Yield logits of three lengths, padded at the end, without and with segments.

    Only real tokens are compared; a head with one row per text is compared as a whole.
    """
    ids, pad_id = random_ids(5, V, 3, 11), theirs.config.pad_token_id
    ids[1, 6:] = ids[2, 1:] = pad_id
    real = ids != pad_id
    given = {"input_ids": ids, "attention_mask": real.long()}

    def rows(*both: Tensor) -> Any:  # noqa: ANN401 -- two tensors
        return [out if out.dim() == 2 else out[real] for out in both]

    yield rows(ours(ids, real), run(theirs, **given))
    if num_types := getattr(theirs.config, "type_vocab_size", 0):
        types = random_ids(0, num_types, 3, 11, seed=3)
        yield rows(ours(ids, types_BL=types), run(theirs, **given, token_type_ids=types))


@pytest.mark.parametrize("case", CASES)
def test_logits_and_gradients_agree(case: str) -> None:
    """Logits agree at real tokens, with any padding, and a loss of both has the same gradients.

    Only T5 trains the embedding of padding, which begins its targets; ours never does.
    """
    ours, theirs = both(case)
    compute: Any = {EncoderDecoder: translated, DecoderOnly: continued, EncoderOnly: read}
    for got, wanted in compute[type(ours)](ours, theirs):
        assert_same_logits(got, wanted)
    padding = theirs.config.pad_token_id if "t5" in case else None
    assert_same_gradients((ours, got), (theirs, wanted), except_row=padding)


@pytest.mark.parametrize("case", ["llama-dynamic", "phi4-mini"])
@torch.no_grad()
def test_cached_decoding_with_dynamic_scaling_agrees(case: str) -> None:
    """Frequencies change with the length, cached keys do not: the same as their cached decoding."""
    ours, theirs = both(case)
    ids = random_ids(3, V, 1, LENGTH)
    state = ours.start(ids[:, :PROMPT], 1)
    with computing_in(torch.float64):
        past = theirs(input_ids=ids[:, : PROMPT - 1], use_cache=True).past_key_values
        for column in ids[:, PROMPT - 1 :].unbind(1):
            out = theirs(input_ids=column[:, None], past_key_values=past, use_cache=True)
            assert_same_logits(ours.step(column, state), out.logits[:, -1])


@pytest.mark.parametrize("buckets", [(32, 128), (8, 20), (4, 3)])
@pytest.mark.parametrize("bidirectional", [True, False], ids=["encoder", "decoder"])
def test_distances_fall_into_the_buckets_of_t5(
    buckets: tuple[int, int], *, bidirectional: bool
) -> None:
    """This holds at every distance, including the borders between buckets."""
    num_buckets, max_distance = buckets
    scheme = RelativeBias(num_buckets=num_buckets, max_distance=max_distance)
    distances = torch.arange(-300, 301)
    theirs = T5Attention._relative_position_bucket(
        distances, bidirectional, num_buckets, max_distance
    )
    ours = scheme.make_bias(3, bidirectional=bidirectional).buckets(distances)
    assert torch.equal(ours, theirs)
